// SPDX-License-Identifier: Apache-2.0
//! The RNIC's image of both boards from pin to pin, joined by their RGMII as by a cable between their PHYs, each behind a serial line of its own: what the
//! quickstart does, through the driver.
#![allow(clippy::unwrap_used)]

mod common;

use std::cell::RefCell;
use std::rc::Rc;

use common::{Uart, Wire};
use openrnic_driver::spec::{CounterId, Mtu, QpState, WcOpcode, WcStatus};
use openrnic_driver::{
    AddressVector, BatchInit, Device, Error, Psn, QpAttr, QpBatch, QueuePair, RecvWr, SendWr, WorkCompletion, attr,
};
use openrnic_link::{Line, LineError, LinkParams, open, open_params};
use openrnic_sim::NicBus;
use openrnic_testbench::board_bench::{Board, SYS};
use openrnic_testbench::e2e::{End, all_access};

/// Clock cycles of 50 MHz a bit: a fast line spares simulation.
const DIV: u64 = 4;
/// Clock cycles of a tick, and its length.
const TICK: u64 = 40;
const TICK_PS: u64 = TICK * 20_000;
/// The board sends again after 20 ms (`rnic_board`).
const RETRY: u64 = 1_000_000;

/// Two boards, their cables, and the clock that all share.
struct Bench {
    boards: [Board; 2],
    to: [Wire; 2],
    from: [Uart; 2],
    arrived: [Vec<Option<u8>>; 2],
}

impl Bench {
    fn new() -> Self {
        let boards = [0, 1].map(|board| Board::rnic(board, (50_000_000 / DIV) as u32));
        let mut bench = Self {
            boards,
            to: [Wire::new(DIV), Wire::new(DIV)],
            from: [Uart::new(DIV), Uart::new(DIV)],
            arrived: Default::default(),
        };
        for board in &mut bench.boards {
            board.phy.link(true, true);
            board.until("link", 3_000_000, |b| b.dut.get("link_o") == 1);
            board.out.clear();
        }
        bench
    }

    /// One cycle of 50 MHz.
    fn cycle(&mut self) {
        for n in 0..2 {
            let level = self.to[n].level();
            self.boards[n].dut.set("uart_rx_i", u64::from(level));
            self.boards[n].run(SYS);
            let level = self.boards[n].dut.get("uart_tx_o") == 1;
            if let Some(byte) = self.from[n].see(level) {
                self.arrived[n].push(byte);
            }
        }
        let [a, b] = &mut self.boards;
        b.line.append(&mut a.out);
        a.line.append(&mut b.out);
    }
}

/// The host's end of a board's serial line.
#[derive(Clone)]
struct Cable(Rc<RefCell<Bench>>, usize);

impl Line for Cable {
    fn tick_ps(&self) -> u64 {
        TICK_PS
    }

    fn tick(&mut self) -> Result<(), LineError> {
        (0..TICK).for_each(|_| self.0.borrow_mut().cycle());
        Ok(())
    }

    fn ready(&self) -> bool {
        self.0.borrow().to[self.1].idle()
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), LineError> {
        bytes.iter().for_each(|b| self.0.borrow_mut().to[self.1].put(*b));
        Ok(())
    }

    fn receive(&mut self) -> Vec<Option<u8>> {
        std::mem::take(&mut self.0.borrow_mut().arrived[self.1])
    }
}

struct Pair {
    bench: Rc<RefCell<Bench>>,
    ends: [End; 2],
}

impl Pair {
    fn new() -> Self {
        let bench = Rc::new(RefCell::new(Bench::new()));
        let ends = [0, 1].map(|n| {
            let params = LinkParams {
                retry_ticks: RETRY / TICK,
                tries: 8,
                tick_ps: TICK_PS,
            };
            let bus = open(Box::new(Cable(bench.clone(), n)), params).unwrap();
            End::set_up(Device::open(bus, open_params()).unwrap(), n).unwrap()
        });
        Self { bench, ends }
    }

    /// `count` QPs on each end, made and moved to INIT by one command, then connected by two more.
    fn connected(&self, count: u32) -> [QpBatch<NicBus>; 2] {
        let init = QpAttr {
            qp_state: QpState::Init,
            ..QpAttr::default()
        };
        let batches = [0, 1].map(|n| {
            let end = &self.ends[n];
            let made = end
                .pd
                .install_qps(count, &end.qp_init(), &BatchInit::range(), &init, attr::INIT_MASK);
            made.unwrap()
        });
        for n in 0..2 {
            let (peers, other) = (batches[1 - n].qps(), &self.ends[1 - n]);
            let rtr = |peer: &QueuePair<NicBus>| QpAttr {
                qp_state: QpState::Rtr,
                av: AddressVector {
                    dgid: other.gid,
                    dmac: Some(other.mac),
                    ..AddressVector::default()
                },
                path_mtu: Mtu::Mtu1024,
                dest_qpn: peer.qpn(),
                rq_psn: Psn::new(0xff_fff0),
                max_dest_rd_atomic: 4,
                ..QpAttr::default()
            };
            let rts = QpAttr {
                qp_state: QpState::Rts,
                sq_psn: Psn::new(0xff_fff0),
                // 268 ms: the hosts are slow here.
                timeout: 16,
                max_rd_atomic: 4,
                ..QpAttr::default()
            };
            let rtr: Vec<_> = peers.iter().map(|p| (rtr(p), attr::RTR_MASK)).collect();
            batches[n].modify_each(&rtr).unwrap();
            batches[n].modify(&rts, attr::RTS_MASK).unwrap();
        }
        batches
    }

    /// Both hosts serve their boards until the CQs of an end hold a completion.
    fn completion(&self, n: usize, receive: bool, what: &str) -> WorkCompletion {
        let end = &self.ends[n];
        let cq = if receive { &end.recv_cq } else { &end.send_cq };
        for _ in 0..4_000 {
            if let Some(wc) = cq.poll(1).unwrap().pop() {
                assert_eq!(wc.status, WcStatus::Success, "{what}");
                return wc;
            }
            for end in &self.ends {
                end.device.advance(TICK).unwrap();
            }
        }
        panic!("{what}: no completion");
    }
}

#[test]
fn two_boards_run_the_quickstart_over_their_pins() {
    const LEN: usize = 3000;
    let pair = Pair::new();
    for end in &pair.ends {
        let caps = end.device.info().unwrap().caps;
        assert_eq!((caps.data_width, caps.log_qp), (64, 8));
    }
    let [left, right] = pair.connected(64).map(|b| b.qps());
    // From RTS there is no way back to RTR: the gate's refusal comes through the line, too.
    let back_to_rtr = QpAttr {
        qp_state: QpState::Rtr,
        ..QpAttr::default()
    };
    let refused = left[63].modify(&back_to_rtr, attr::RTR_MASK);
    assert!(matches!(refused, Err(Error::Gate(_))), "{refused:?}");

    let byte = |i: usize| (i * 7 + 3) as u8;
    let source = pair.ends[0].region(LEN, all_access(), byte).unwrap();
    let back = pair.ends[0].region(LEN, all_access(), |_| 0).unwrap();
    let target = pair.ends[1].region(LEN + 16, all_access(), |_| 0xee).unwrap();
    let there = target.iova().offset(8);

    // WRITE, and what it wrote READ back.
    left[0]
        .post_send(&[SendWr::write(1, vec![source.sge(0, LEN as u32)], there, target.rkey())])
        .unwrap();
    assert_eq!(pair.completion(0, false, "the WRITE").wr_id, 1);
    let all = target.read(0, LEN + 16).unwrap();
    assert!(all[8..LEN + 8].iter().enumerate().all(|(i, b)| *b == byte(i)));
    assert_eq!(
        (&all[..8], &all[LEN + 8..]),
        (&[0xee; 8][..], &[0xee; 8][..]),
        "nothing beside it"
    );
    left[0]
        .post_send(&[SendWr::read(2, vec![back.sge(0, LEN as u32)], there, target.rkey())])
        .unwrap();
    assert_eq!(pair.completion(0, false, "the READ").wr_id, 2);
    assert_eq!(back.read(0, LEN).unwrap(), all[8..LEN + 8]);

    // SEND, on the last pair, the other way.
    let from = pair.ends[1].region(100, all_access(), byte).unwrap();
    let into = pair.ends[0].region(100, all_access(), |_| 0).unwrap();
    left[63]
        .post_recv(&[RecvWr {
            wr_id: 3,
            sges: vec![into.sge(0, 100)],
        }])
        .unwrap();
    right[63].post_send(&[SendWr::send(4, vec![from.sge(0, 100)])]).unwrap();
    assert_eq!(pair.completion(1, false, "the SEND").wr_id, 4);
    let wc = pair.completion(0, true, "the receive");
    assert_eq!((wc.wr_id, wc.byte_len, wc.opcode), (3, 100, WcOpcode::Recv));
    assert_eq!(into.read(0, 100).unwrap(), from.read(0, 100).unwrap());

    for (n, end) in pair.ends.iter().enumerate() {
        let counters = end.device.counters().unwrap();
        for id in [
            CounterId::RxDropIcrc,
            CounterId::RxDropMacErr,
            CounterId::Retransmissions,
        ] {
            assert_eq!(counters.get(id), 0, "end {n}: {id:?}");
        }
    }
    let bench = pair.bench.borrow();
    // Three packets of data and their answers, at least, each way.
    assert!(bench.boards.iter().all(|b| b.sent.len() >= 4), "frames on the wire");
    assert!(
        bench
            .boards
            .iter()
            .all(|b| b.dut.get("error_o") == 0 && b.dut.get("up_o") == 1)
    );
}
