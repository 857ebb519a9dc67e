// SPDX-License-Identifier: Apache-2.0
//! The control plane: batches, one MODIFY, CREATE one by one.

use anyhow::{Context, anyhow, ensure};
use openrnic_driver::bus::Bus;
use openrnic_driver::spec::{CmdOpcode, CmdQp, QpState, QpType};
use openrnic_driver::{BatchInit, CqInit, Device, OpenParams, QpAttr, attr};
use openrnic_sim::model::NicSpec;
use openrnic_sim::pcie::HostParams;
use openrnic_sim::{NicBus, World, WorldParams};
use openrnic_testbench::e2e::{Pair, PairParams};
use openrnic_testbench::model::gate::{State, Type};
use openrnic_testbench::model::qp::{Command, Op};
use openrnic_testbench::qp_pair::{self, ATTR};

use crate::report::{Limit, Report};

const LOG_TABLE: u32 = 10;
const SIZES: [u32; 3] = [64, 256, 1000];
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

/// Uniform batches over contiguous ranges: command decoded → completion handed over, as the device measures it. The read
/// of the attribute record is in it.
pub fn batches(report: &mut Report) -> anyhow::Result<()> {
    let per_qp = Limit::budget("uniform_batch_per_qp")?.value();
    let fixed = Limit::budget("uniform_batch_fixed")?.value();
    let search = f64::from(1u32 << LOG_TABLE) / Limit::budget("batch_table_divisor")?.value();
    for width in WIDTHS {
        let pair = ideal(width as usize, LOG_TABLE)?;
        let end = &pair.ends[0];
        for n in SIZES {
            let limit = Limit::at_most(per_qp * f64::from(n) + fixed + search);
            let mut row = |what: &str, cycles: u32| {
                report.measured(
                    format!("{what} of {n} QPs, {width} bits"),
                    f64::from(cycles),
                    "cycles",
                    limit,
                );
            };
            let init = QpAttr {
                qp_state: QpState::Init,
                ..QpAttr::default()
            };
            let made = end.pd.create_qps(n, &end.qp_init(), &BatchInit::range())?;
            ensure!(made.is_range(), "CREATE of {n} QPs found no range");
            row("CREATE", made.created().exec_cycles);
            row("MODIFY", made.modify(&init, attr::INIT_MASK)?.exec_cycles);
            row("DESTROY", made.destroy()?.exec_cycles);
            let made = end
                .pd
                .install_qps(n, &end.qp_init(), &BatchInit::range(), &init, attr::INIT_MASK)?;
            ensure!(made.is_range(), "INSTALL of {n} QPs found no range");
            row("INSTALL", made.created().exec_cycles);
            made.destroy()?;
        }
    }
    for width in WIDTHS {
        one_modify(report, width)?;
    }
    Ok(())
}

/// One MODIFY on the bench of the QP engine, from the acceptance of the command to the change of the context. The cycles in
/// which the host sends the attribute record (its beats, one a cycle from the cycle after the request on) count apart, as those of
/// lists and records of batches do.
fn one_modify(report: &mut Report, width: u32) -> anyhow::Result<()> {
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
        // Two indices of a table are reserved: 1024 QPs need the next larger one.
        nic.params.push(("QpIdxW".to_owned(), (LOG_TABLE + 1).to_string()));
        let world = World::new(&WorldParams {
            nics: 1,
            nic,
            host: HostParams::ideal(),
            ..WorldParams::default()
        })?
        .shared();
        let params = OpenParams {
            log_cmd_ring: LOG_TABLE + 1,
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
