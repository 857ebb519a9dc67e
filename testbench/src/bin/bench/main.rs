// SPDX-License-Identifier: Apache-2.0
//! `make bench`: measures the design, prints each figure beside its limit, writes `out/bench.json` and `out/numbers.json`, and
//! fails when a limit is missed that binds. Limits come from `spec/budgets.toml`; figures without one are for information.
//! Arguments: names of parts; `full` for all tables; `--book` to write what the book shows.
//!
//! The only place of the project that looks at the wall clock and at the processor's: all else is simulated time.

mod book;
mod control;
mod disturb;
mod doorbell;
mod memory;
mod plot;
mod report;
mod speed;
mod sweep;
mod traffic;

use std::process::ExitCode;

use report::Report;

/// What is measured: figures with their limits, and what the book draws.
#[derive(Default)]
pub struct Bench {
    /// Figures.
    pub report: Report,
    /// All tables rather than one.
    full: bool,
    sweeps: Vec<sweep::Sweep>,
    memories: Vec<memory::Memory>,
}

/// What can be measured: name, description, and the function that does it.
type Part = (&'static str, &'static str, fn(&mut Bench) -> anyhow::Result<()>);

const PARTS: [Part; 8] = [
    ("memory", "memory per queue pair", |bench| {
        bench.memories = memory::memory(&mut bench.report)?;
        Ok(())
    }),
    ("speed", "speed of the simulation", |bench| {
        speed::speed(&mut bench.report)
    }),
    ("traffic", "goodput and small messages", |bench| {
        traffic::traffic(&mut bench.report)
    }),
    ("doorbell", "doorbell to wire", |bench| {
        doorbell::latency(&mut bench.report)
    }),
    ("modify", "one MODIFY", |bench| control::one_modify(&mut bench.report)),
    ("create", "CREATE one by one", |bench| {
        control::one_by_one(&mut bench.report)
    }),
    ("batch", "every operation in batches and one by one", |bench| {
        let extent = if bench.full { sweep::FULL } else { sweep::BRIEF };
        bench.sweeps = sweep::sweep(&mut bench.report, extent)?;
        Ok(())
    }),
    ("disturb", "creation under traffic", |bench| {
        disturb::disturbance(&mut bench.report)
    }),
];

fn main() -> anyhow::Result<ExitCode> {
    let mut bench = Bench::default();
    let mut to_book = false;
    let mut chosen: Vec<String> = Vec::new();
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "full" => bench.full = true,
            "--book" => to_book = true,
            name if PARTS.iter().any(|(part, _, _)| *part == name) => chosen.push(argument),
            wrong => {
                let names: Vec<&str> = PARTS.iter().map(|(name, _, _)| *name).collect();
                anyhow::bail!(
                    "no part of the bench is called {wrong}; there are: {}; and full, --book",
                    names.join(", ")
                );
            }
        }
    }
    for (name, what, measure) in PARTS {
        if !chosen.is_empty() && !chosen.iter().any(|c| c == name) {
            continue;
        }
        bench.report.progress(what);
        // A figure that cannot be measured is a figure missed.
        if let Err(error) = measure(&mut bench) {
            bench.report.fail(name, &error);
        }
    }
    println!("{}", bench.report.table());
    bench.report.write("out/bench.json")?;
    book::numbers(&bench, "out/numbers.json")?;
    if to_book {
        book::write(&bench)?;
    }
    let missed = bench.report.missed();
    if missed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("{} missed: {}", missed.len(), missed.join(", "));
    Ok(ExitCode::FAILURE)
}
