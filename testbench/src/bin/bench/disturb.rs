// SPDX-License-Identifier: Apache-2.0
//! What the control plane costs the data path: bytes on the wire, with and without 4096 QPs being created meanwhile.

use anyhow::{anyhow, ensure};
use openrnic_driver::spec::{CmdFlag, CmdOpcode, CmdQp, CounterId, Mtu, QpType};
use openrnic_driver::{OpenParams, Ticket};
use openrnic_sim::model::NicSpec;
use openrnic_sim::pcie::HostParams;
use openrnic_sim::{World, WorldParams};
use openrnic_testbench::e2e::Pair;

use crate::control::LOG_LARGE;
use crate::report::{Limit, Report};
use crate::traffic::{Flow, HEADERS};

const CREATES: u32 = 4096;
/// Bytes of a WRITE.
const BYTES: u32 = 64 << 10;
/// Bytes of a packet's payload.
const MTU: usize = 4096;
/// Cycles over which the undisturbed goodput is measured.
const STRETCH: u64 = 40_000;
/// Cycles within which the QPs have to be there.
const PATIENCE: u64 = 2_000_000;
/// Commands that are posted before time passes; the send queues must not run empty meanwhile.
const CHUNK: usize = 32;

/// How the QPs are created.
#[derive(Clone, Copy, PartialEq)]
enum Creation {
    /// A command each, posted at once.
    Single,
    /// One command.
    Batch,
}

/// Goodput of WRITEs one way, before and while QPs are created on both NICs.
pub fn disturbance(report: &mut Report) -> anyhow::Result<()> {
    for (width, budget) in [(64, "create_disturbance_64"), (512, "create_disturbance_512")] {
        let mut nic = NicSpec::new(width);
        nic.params.push(("QpIdxW".to_owned(), LOG_LARGE.to_string()));
        let world = World::new(&WorldParams {
            nic,
            host: HostParams::ideal(),
            ..WorldParams::default()
        })?
        .shared();
        let params = OpenParams {
            log_cmd_ring: CREATES.ilog2(),
            ..OpenParams::default()
        };
        let pair = Pair::opened(world, params).map_err(|e| anyhow!("two NICs of {width} bits: {e}"))?;
        // One way: what two NICs at full rate do to each other's receivers is another matter than what commands do.
        let mut flows = [Flow::with_mtu(&pair, 0, BYTES, Mtu::Mtu4096)?];
        stretch(&pair, &mut flows, STRETCH)?; // until both run
        for (creation, what) in [(Creation::Single, "a command each"), (Creation::Batch, "one command")] {
            let before = stretch(&pair, &mut flows, STRETCH)?;
            let start = mark(&pair)?;
            let tickets = create(&pair, &mut flows, creation)?;
            let mut taken = None;
            // A batch is there before many packets are sent; what it leaves for the data path to look at is not over then.
            while taken.is_none() || pair.world.borrow().cycle() - start.cycle < STRETCH {
                step(&pair, &mut flows)?;
                let elapsed = pair.world.borrow().cycle() - start.cycle;
                let mut open = 0;
                for end in &pair.ends {
                    end.device.advance(0)?; // takes completions of commands
                    open += end.device.outstanding()?;
                }
                if open == 0 {
                    taken.get_or_insert(elapsed);
                }
                ensure!(elapsed < PATIENCE, "the QPs are not created after {PATIENCE} cycles");
            }
            let during = mark(&pair)?.rate_since(&start);
            for (end, tickets) in pair.ends.iter().zip(tickets) {
                for ticket in tickets {
                    end.device.wait(ticket)?;
                }
            }
            stretch(&pair, &mut flows, STRETCH)?;
            let after = stretch(&pair, &mut flows, STRETCH)?;
            let calm = (before + after) / 2.0;
            let limit = Limit::budget(match (creation, width) {
                (Creation::Single, 64) => "create_disturbance_single_64",
                (Creation::Single, 512) => "create_disturbance_single_512",
                _ => budget,
            })?;
            report.info(
                format!("wire, WRITEs one way, no command, {width} bits"),
                calm,
                "bytes per cycle",
            );
            report.info(
                format!("{CREATES} QPs created on either NIC under traffic, {what}, {width} bits"),
                taken.unwrap_or(0) as f64,
                "cycles",
            );
            report.measured(
                format!("loss of goodput while {CREATES} QPs are created, {what}, {width} bits"),
                100.0 * (1.0 - during / calm),
                "%",
                limit,
            );
        }
        for (name, id) in [
            ("retransmissions", CounterId::Retransmissions),
            ("time-outs", CounterId::Timeouts),
        ] {
            let mut sum = 0;
            for end in &pair.ends {
                sum += end.device.counters()?.get(id);
            }
            report.info(format!("{name} under this traffic, {width} bits"), sum as f64, "in all");
        }
    }
    Ok(())
}

/// Bytes that the first NIC has sent by then.
struct Mark {
    cycle: u64,
    bytes: u64,
    /// Of these in packets that had been sent before.
    again: u64,
}

impl Mark {
    /// Bytes per cycle that bring the WRITEs on.
    fn rate_since(&self, earlier: &Self) -> f64 {
        let useful = (self.bytes - self.again) as f64 - (earlier.bytes - earlier.again) as f64;
        useful / (self.cycle - earlier.cycle) as f64
    }
}

fn mark(pair: &Pair) -> anyhow::Result<Mark> {
    // The counters in the BAR: a command would wait behind those that are measured.
    let again = pair.ends[0].device.counter(CounterId::Retransmissions)? * (MTU + HEADERS) as u64;
    let mut world = pair.world.borrow_mut();
    let cycle = world.cycle();
    let wire = world.wire();
    Ok(Mark {
        cycle,
        bytes: wire.stats(0).sent_bytes,
        again,
    })
}

fn step(pair: &Pair, flows: &mut [Flow<'_>]) -> anyhow::Result<()> {
    pair.world.borrow_mut().run(16)?;
    flows.iter_mut().try_for_each(Flow::top_up)
}

/// Bytes per cycle over some cycles.
fn stretch(pair: &Pair, flows: &mut [Flow<'_>], cycles: u64) -> anyhow::Result<f64> {
    let start = mark(pair)?;
    while pair.world.borrow().cycle() - start.cycle < cycles {
        step(pair, flows)?;
    }
    Ok(mark(pair)?.rate_since(&start))
}

/// Posts the commands on both NICs.
fn create(pair: &Pair, flows: &mut [Flow<'_>], creation: Creation) -> anyhow::Result<[Vec<Ticket>; 2]> {
    let (commands, count, flags) = match creation {
        Creation::Single => (CREATES as usize, 1, CmdFlag::EMPTY),
        Creation::Batch => (1, CREATES, CmdFlag::CONTIGUOUS),
    };
    let mut posted = [Vec::new(), Vec::new()];
    while posted[1].len() < commands {
        for (end, tickets) in pair.ends.iter().zip(&mut posted) {
            // Nothing is posted to these QPs: they may name any memory.
            let command = CmdQp::new()
                .with_opcode(CmdOpcode::CreateQp.into())
                .with_flags(flags.0 as u8)
                .with_count(count)
                .with_qp_type(u8::from(QpType::Rc))
                .with_pd(end.pd.handle().0)
                .with_send_cq(end.send_cq.cqn().0)
                .with_recv_cq(end.recv_cq.cqn().0)
                .with_sq_base(0x1000)
                .with_rq_base(0x1000);
            for _ in 0..CHUNK.min(commands - tickets.len()) {
                tickets.push(end.device.submit(command.0)?);
            }
        }
        step(pair, flows)?;
    }
    Ok(posted)
}
