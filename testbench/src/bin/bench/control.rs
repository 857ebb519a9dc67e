// SPDX-License-Identifier: Apache-2.0
//! The control plane command by command: one MODIFY, CREATE one by one. Batches: `sweep`.

use anyhow::{Context, anyhow, ensure};
use openrnic_driver::bus::Bus;
use openrnic_driver::spec::{CmdOpcode, CmdQp, QpType};
use openrnic_driver::{CqInit, Device, OpenParams};
use openrnic_sim::model::NicSpec;
use openrnic_sim::pcie::HostParams;
use openrnic_sim::{NicBus, World, WorldParams};
use openrnic_testbench::e2e::{Pair, PairParams};
use openrnic_testbench::model::gate::{State, Type};
use openrnic_testbench::model::qp::{Command, Op};
use openrnic_testbench::qp_pair::{self, ATTR};

use crate::report::{Limit, Report};

const LOG_TABLE: u32 = 10;
/// log2 of the table of all whole NICs but that whose speed is measured, so that few models have to be built.
pub const LOG_LARGE: u32 = 14;
const WIDTHS: [u32; 2] = [64, 512];

/// Two NICs whose hosts answer at once.
pub fn ideal(data_width: usize, log_qp: u32) -> anyhow::Result<Pair> {
    Pair::new(PairParams {
        host: HostParams::ideal(),
        log_qp,
        ..PairParams::new(data_width, 1)
    })
    .map_err(|e| anyhow!("two NICs of {data_width} bits: {e}"))
}

/// One MODIFY at both widths.
pub fn one_modify(report: &mut Report) -> anyhow::Result<()> {
    WIDTHS.into_iter().try_for_each(|width| modify(report, width))
}

/// One MODIFY on the bench of the QP engine, from the acceptance of the command to the change of the context. The cycles in
/// which the host sends the attribute record (its beats, one a cycle from the cycle after the request on) count apart, as those of
/// lists and records of batches do.
fn modify(report: &mut Report, width: u32) -> anyhow::Result<()> {
    let mut pair = qp_pair::Pair::wide(width, LOG_TABLE, 10);
    let made = pair.create(1);
    let qpn = *made.first().context("one QP")?;
    pair.record(&qp_pair::legal(Type::Rc, State::Init));
    let command = Command {
        handle: qpn,
        attr_addr: ATTR,
        ..Command::new(Op::Modify)
    };
    let (outcome, times) = pair.run_with(&command, &[]);
    ensure!(
        outcome.completion.count == 1,
        "MODIFY was refused: {:?}",
        outcome.completion
    );
    let beats = 64 * 8 / u64::from(width);
    report.measured(
        format!("one MODIFY, accepted to context written less the record's beats, {width} bits"),
        (times.first_change - 1 - beats) as f64,
        "cycles",
        Limit::budget("modify_one")?,
    );
    report.info(
        format!("one MODIFY, record read to context written, {width} bits"),
        (times.first_change - times.last_read) as f64,
        "cycles",
    );
    Ok(())
}

/// 1024 CREATE commands in the ring at once: from the first doorbell, which comes before the first fetch, to the last
/// completion in memory.
pub fn one_by_one(report: &mut Report) -> anyhow::Result<()> {
    const COMMANDS: u32 = 1024;
    for (width, budget) in [(64, "create_one_64"), (512, "create_one_512")] {
        let mut nic = NicSpec::new(width);
        // The device of the sweep: two indices of a table are reserved, 1024 QPs need more than a table of that many.
        nic.params.push(("QpIdxW".to_owned(), LOG_LARGE.to_string()));
        let world = World::new(&WorldParams {
            nics: 1,
            nic,
            host: HostParams::ideal(),
            ..WorldParams::default()
        })?
        .shared();
        let params = OpenParams {
            log_cmd_ring: COMMANDS.ilog2(),
            ..OpenParams::default()
        };
        let device = Device::open(NicBus::new(&world, 0)?, params)?;
        let pd = device.alloc_pd()?;
        let cq = device.create_cq(&CqInit::entries(1024))?;
        let rings = device.with_bus(|bus| bus.dma_alloc(4096, 64))??;
        let command = CmdQp::new()
            .with_opcode(CmdOpcode::CreateQp.into())
            .with_count(1)
            .with_qp_type(u8::from(QpType::Rc))
            .with_pd(pd.handle().0)
            .with_send_cq(cq.cqn().0)
            .with_recv_cq(cq.cqn().0)
            .with_sq_base(rings.addr)
            .with_rq_base(rings.addr);
        let start = device.now_cycles()?;
        let tickets = (0..COMMANDS)
            .map(|_| device.submit(command.0))
            .collect::<Result<Vec<_>, _>>()?;
        while device.outstanding()? > 0 {
            ensure!(
                device.now_cycles()? - start < 1000 * u64::from(COMMANDS),
                "{} of {COMMANDS} CREATE commands are not complete",
                device.outstanding()?
            );
            device.advance(1)?;
        }
        let cycles = device.now_cycles()? - start;
        for ticket in tickets {
            device.wait(ticket)?;
        }
        report.measured(
            format!("{COMMANDS} x CREATE, each, {width} bits"),
            cycles as f64 / f64::from(COMMANDS),
            "cycles",
            Limit::budget(budget)?,
        );
    }
    Ok(())
}
