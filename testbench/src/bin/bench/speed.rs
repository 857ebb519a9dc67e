// SPDX-License-Identifier: Apache-2.0
//! How fast the simulation runs: two NICs of 64 bits, idle and under load, on one core.

use std::time::{Duration, Instant};

use anyhow::ensure;
use openrnic_testbench::e2e::Pair;

use crate::control::ideal;
use crate::report::{Limit, Report};
use crate::traffic::{Flow, WRITE_BYTES};

const RUNS: usize = 3;
const RUN_CYCLES: u64 = 60_000;

/// Cycles per second of one core, best of three runs.
pub fn speed(report: &mut Report) -> anyhow::Result<()> {
    let limit = Limit::budget("simulation_speed")?;
    let pair = ideal(64, 10)?;
    let idle = best(&pair, |_| Ok(()))?;
    report.measured("two NICs, 64 bits, idle", idle, "cycles/s", limit);

    let mut flows = [Flow::new(&pair, 0, WRITE_BYTES)?, Flow::new(&pair, 1, WRITE_BYTES)?];
    let before = [flows[0].done, flows[1].done];
    let loaded = best(&pair, |_| flows.iter_mut().try_for_each(Flow::top_up))?;
    for (flow, before) in flows.iter().zip(before) {
        ensure!(flow.done > before, "no WRITE completed while the speed was measured");
    }
    report.measured("two NICs, 64 bits, WRITEs both ways", loaded, "cycles/s", limit);
    Ok(())
}

/// Runs in slices; `serve` is called after each and is part of what is measured.
fn best(pair: &Pair, mut serve: impl FnMut(&Pair) -> anyhow::Result<()>) -> anyhow::Result<f64> {
    const SLICE: u64 = 500;
    let mut best = 0.0f64;
    for _ in 0..RUNS {
        let clock = CoreClock::start();
        let start = pair.world.borrow().cycle();
        while pair.world.borrow().cycle() - start < RUN_CYCLES {
            pair.world.borrow_mut().run(SLICE)?;
            serve(pair)?;
        }
        let cycles = pair.world.borrow().cycle() - start;
        best = best.max(cycles as f64 / clock.elapsed().as_secs_f64());
    }
    Ok(best.round())
}

/// Time that a core worked for this thread. On a machine that does other things too, the wall clock would tell of those.
struct CoreClock {
    wall: Instant,
    core: Option<Duration>,
}

impl CoreClock {
    fn start() -> Self {
        Self {
            wall: Instant::now(),
            core: Self::now(),
        }
    }

    /// Linux counts it per thread, in nanoseconds.
    fn now() -> Option<Duration> {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
    }

    fn elapsed(&self) -> Duration {
        match (self.core, Self::now()) {
            (Some(start), Some(now)) if now > start => now - start,
            _ => self.wall.elapsed(),
        }
    }
}
