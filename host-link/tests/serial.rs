// SPDX-License-Identifier: Apache-2.0
//! A whole NIC behind a serial line, driven by the driver that drives every other: what it is, RDMA through it, a bad line, a pulled cable.
#![allow(clippy::unwrap_used)]

mod common;

use std::cell::Cell;
use std::rc::Rc;

use common::{Board, Cable, DIV, RETRY};
use openrnic_driver::spec::{Mtu, QpState, WcStatus};
use openrnic_driver::{AddressVector, BatchInit, Device, Error, MrInit, Psn, QpAttr, QueuePair, SendWr, attr};
use openrnic_link::{LinkParams, open, open_params};
use openrnic_sim::NicBus;
use openrnic_sim::model::{BlockModel, Effort};
use openrnic_testbench::e2e::{End, all_access};

const TICK: u64 = 40;
/// Clock cycles between two numbers of the counter on the board.
const DAQ_EVERY: u64 = 16;

/// READs and atomics outstanding that each of its QPs has slots for: fewer than the format has.
const MAX_RD: u8 = 4;

/// A board with its port looped back.
fn board(seed: u64) -> Cable {
    let dut = BlockModel::builder("rnic_top_serial")
        .param("Div", DIV)
        .param("RetryCycles", RETRY)
        .param("DaqEvery", DAQ_EVERY)
        .param("MaxRd", u64::from(MAX_RD))
        .effort(Effort::Full)
        .build()
        .unwrap();
    let mut board = Board::new(dut, DIV, TICK, seed);
    board.dut.set("port_up_i", 1);
    board.dut.set("mac_tx_ready_i", 1);
    let pairs = ["valid", "data", "keep", "last"].map(|n| {
        (
            board.dut.port(&format!("mac_tx_{n}_o")),
            board.dut.port(&format!("mac_rx_{n}_i")),
        )
    });
    board.pins = Box::new(move |dut| {
        for (tx, rx) in pairs {
            let value = dut.get_id(tx);
            dut.set_id(rx, value);
        }
    });
    Cable::new(board)
}

fn params() -> LinkParams {
    LinkParams {
        retry_ticks: RETRY.div_ceil(TICK),
        tries: 8,
        tick_ps: TICK * 8000,
    }
}

fn attach(cable: &Cable) -> openrnic_driver::Result<Device<NicBus>> {
    Device::open(open(Box::new(cable.clone()), params()).unwrap(), open_params())
}

/// Two QPs of one NIC in INIT.
fn installed(end: &End) -> Vec<QueuePair<NicBus>> {
    let init = QpAttr {
        qp_state: QpState::Init,
        ..QpAttr::default()
    };
    let batch = end
        .pd
        .install_qps(2, &end.qp_init(), &BatchInit::range(), &init, attr::INIT_MASK)
        .unwrap();
    batch.qps()
}

fn rtr(end: &End, peer: &QueuePair<NicBus>, max_dest_rd_atomic: u8) -> QpAttr {
    QpAttr {
        qp_state: QpState::Rtr,
        av: AddressVector {
            dgid: end.gid,
            dmac: Some(end.mac),
            ..AddressVector::default()
        },
        path_mtu: Mtu::Mtu1024,
        dest_qpn: peer.qpn(),
        rq_psn: Psn::new(0x7d7e),
        max_dest_rd_atomic,
        ..QpAttr::default()
    }
}

fn rts(max_rd_atomic: u8) -> QpAttr {
    QpAttr {
        qp_state: QpState::Rts,
        sq_psn: Psn::new(0x7d7e),
        // 268 ms: the host is slow here.
        timeout: 16,
        max_rd_atomic,
        ..QpAttr::default()
    }
}

/// Two QPs of one NIC, connected to each other.
fn connected(end: &End) -> Vec<QueuePair<NicBus>> {
    let qps = installed(end);
    for (qp, peer) in [(&qps[0], &qps[1]), (&qps[1], &qps[0])] {
        qp.modify(&rtr(end, peer, MAX_RD), attr::RTR_MASK).unwrap();
        qp.modify(&rts(MAX_RD), attr::RTS_MASK).unwrap();
    }
    qps
}

/// Runs until a work request is done.
fn done(end: &End, what: &str) {
    for _ in 0..2_000 {
        if let Some(wc) = end.send_cq.poll(1).unwrap().pop() {
            assert_eq!(wc.status, WcStatus::Success, "{what}");
            return;
        }
        end.device.advance(200).unwrap();
    }
    panic!("{what}: no completion");
}

/// A WRITE from one QP of a NIC to the other, and a READ back.
fn write_and_read(device: Device<NicBus>) {
    const LEN: usize = 1500;
    let end = End::set_up(device, 0).unwrap();
    let qps = connected(&end);
    let source = end.region(LEN, all_access(), |i| (i * 7) as u8).unwrap();
    let target = end.region(LEN + 16, all_access(), |_| 0xee).unwrap();
    let back = end.region(LEN, all_access(), |_| 0).unwrap();
    let there = target.iova().offset(8);
    qps[0]
        .post_send(&[SendWr::write(1, vec![source.sge(0, LEN as u32)], there, target.rkey())])
        .unwrap();
    done(&end, "the WRITE");
    let all = target.read(0, LEN + 16).unwrap();
    assert_eq!(
        (&all[..8], &all[LEN + 8..]),
        (&[0xee; 8][..], &[0xee; 8][..]),
        "nothing beside it"
    );
    assert!(all[8..LEN + 8].iter().enumerate().all(|(i, b)| *b == (i * 7) as u8));
    qps[0]
        .post_send(&[SendWr::read(2, vec![back.sge(0, LEN as u32)], there, target.rkey())])
        .unwrap();
    done(&end, "the READ");
    assert_eq!(back.read(0, LEN).unwrap(), all[8..LEN + 8]);
}

#[test]
fn the_driver_finds_the_device_behind_the_line_and_moves_data_through_it() {
    let cable = board(1);
    let device = attach(&cable).unwrap();
    let info = device.info().unwrap();
    assert_eq!((info.caps.data_width, info.caps.log_qp), (64, 8));
    assert_eq!(info.pci.max_payload, 256);
    write_and_read(device);
    assert_eq!(cable.passed().flipped, 0);
}

#[test]
fn a_board_tells_how_many_reads_a_qp_may_have_outstanding_and_takes_no_more() {
    let device = attach(&board(7)).unwrap();
    assert_eq!(device.caps().unwrap().max_rd_atomic, u32::from(MAX_RD));
    let end = End::set_up(device, 0).unwrap();
    let qps = installed(&end);
    let refused = |qp: &QueuePair<NicBus>, attrs: &QpAttr, mask| match qp.modify(attrs, mask) {
        Err(Error::Gate(refusal)) => refusal.to_string(),
        other => panic!("{other:?}"),
    };
    let told = refused(&qps[0], &rtr(&end, &qps[1], MAX_RD + 1), attr::RTR_MASK);
    assert!(told.contains("MAX_DEST_RD_ATOMIC"), "{told}");
    qps[0].modify(&rtr(&end, &qps[1], MAX_RD), attr::RTR_MASK).unwrap();
    let told = refused(&qps[0], &rts(MAX_RD + 1), attr::RTS_MASK);
    assert!(told.contains("MAX_QP_RD_ATOMIC"), "{told}");
    qps[0].modify(&rts(MAX_RD), attr::RTS_MASK).unwrap();
}

#[test]
fn a_line_that_changes_bytes_costs_time_alone() {
    let cable = board(2);
    cable.faults(|f| f.flip = 0.0005);
    write_and_read(attach(&cable).unwrap());
    assert!(cable.passed().flipped > 5, "{:?}", cable.passed());
}

#[test]
fn a_board_that_is_not_there_is_told_and_nothing_hangs() {
    let cable = board(3);
    cable.faults(|f| f.pulled = true);
    let error = attach(&cable).err().unwrap().to_string();
    assert!(error.contains("no answer from a board"), "{error}");
    cable.faults(|f| f.pulled = false);
    attach(&cable).unwrap().info().unwrap();
}

#[test]
fn a_cable_pulled_in_the_middle_is_told_and_the_board_works_again_afterwards() {
    let cable = board(4);
    let device = attach(&cable).unwrap();
    let end = End::set_up(device.clone(), 0).unwrap();
    let qps = connected(&end);
    let source = end.region(4096, all_access(), |i| i as u8).unwrap();
    let target = end.region(4096, all_access(), |_| 0).unwrap();
    qps[0]
        .post_send(&[SendWr::write(
            1,
            vec![source.sge(0, 4096)],
            target.iova(),
            target.rkey(),
        )])
        .unwrap();
    device.advance(600).unwrap();
    cable.faults(|f| f.pulled = true);
    let mut error = None;
    for _ in 0..1000 {
        error = device.advance(100).err();
        if error.is_some() {
            break;
        }
    }
    // Nothing is under way towards the board perhaps: an access finds out.
    let error = error.or_else(|| device.registers().err()).unwrap().to_string();
    assert!(error.contains("is the cable still plugged"), "{error}");
    assert!(device.alloc_pd().is_err(), "and it stays so");
    cable.faults(|f| f.pulled = false);
    write_and_read(attach(&cable).unwrap());
}

/// Frames on the board's port: cycles of the first and the last beat, bytes.
#[derive(Debug, Clone, Copy, Default)]
struct Frames {
    cycle: u64,
    first: Option<u64>,
    last: u64,
    bytes: u64,
}

fn watch(cable: &Cable) -> Rc<Cell<Frames>> {
    let seen = Rc::new(Cell::new(Frames::default()));
    let mut board = cable.0.borrow_mut();
    let mut pins = std::mem::replace(&mut board.pins, Box::new(|_| ()));
    let (valid, keep) = (board.dut.port("mac_tx_valid_o"), board.dut.port("mac_tx_keep_o"));
    let out = seen.clone();
    board.pins = Box::new(move |dut| {
        pins(dut);
        let mut f = out.get();
        f.cycle += 1;
        if dut.get_id(valid) == 1 {
            f.first = f.first.or(Some(f.cycle));
            f.last = f.cycle;
            f.bytes += u64::from(dut.get_id(keep).count_ones());
        }
        out.set(f);
    });
    seen
}

#[test]
fn a_counter_on_the_board_streams_into_remote_memory_at_line_rate_without_the_serial_line() {
    const HALF: usize = 8192;
    let cable = board(5);
    let device = attach(&cable).unwrap();
    assert_eq!(device.caps().unwrap().local_mem_bytes(), 2 * HALF as u64);
    let end = End::set_up(device, 0).unwrap();
    let qps = connected(&end);
    let on_board = |offset: u64, length: usize| {
        end.pd.register(&MrInit {
            on_board: Some(offset),
            ..MrInit::new(length, all_access())
        })
    };
    assert!(
        matches!(on_board(HALF as u64, HALF + 1), Err(Error::Invalid { .. })),
        "longer than the memory"
    );
    let counter = on_board(0, HALF).unwrap();
    let target = on_board(HALF as u64, HALF).unwrap();
    assert!(
        matches!(target.read(0, 8), Err(Error::Invalid { .. })),
        "the host does not see it"
    );

    // 8 KiB of numbers through the port and back, read and written beside the serial line.
    end.device.advance(5000).unwrap();
    let frames = watch(&cable);
    let before = cable.passed();
    qps[0]
        .post_send(&[SendWr::write(
            1,
            vec![counter.sge(0, HALF as u32)],
            target.iova(),
            target.rkey(),
        )])
        .unwrap();
    done(&end, "the WRITE");
    let after = cable.passed();
    let line = after.to_host + after.to_board - before.to_host - before.to_board;
    assert!(line < 1500, "{line} bytes on the serial line for {HALF} of payload");
    let f = frames.get();
    let cycles = f.last - f.first.unwrap();
    println!(
        "{} bytes of frames in {cycles} cycles of 8 ns, {line} bytes on the serial line",
        f.bytes
    );
    assert!(
        f.bytes as usize > HALF && cycles < f.bytes,
        "slower than a byte a cycle, which is 1 Gbit/s"
    );

    // What arrived: beat i holds a number that is i modulo the beats of the half, of this round of the counter or the one before.
    let back = end.region(512, all_access(), |_| 0).unwrap();
    let mut rounds = std::collections::BTreeSet::new();
    for at in [0, 4096 - 256, HALF - 512] {
        qps[0]
            .post_send(&[SendWr::read(
                2,
                vec![back.sge(0, 512)],
                target.iova().offset(at as u64),
                target.rkey(),
            )])
            .unwrap();
        done(&end, "the READ");
        let bytes = back.read(0, 512).unwrap();
        for (i, word) in bytes.chunks_exact(8).enumerate() {
            let number = u64::from_le_bytes(word.try_into().unwrap());
            let beats = HALF as u64 / 8;
            assert_eq!(
                number % beats,
                (at / 8 + i) as u64,
                "number {number:#x} at {at}, word {i}"
            );
            rounds.insert(number / beats);
        }
    }
    let (first, last) = (rounds.first().unwrap(), rounds.last().unwrap());
    assert!(*last >= 1 && last - first <= 1, "rounds {rounds:?}");
}
