// SPDX-License-Identifier: Apache-2.0
//! The board with the RNIC's image from pin to pin, behind its serial line, its RGMII joined with that of a second one as by a cable between their PHYs, or
//! with the wire of a core behind PCIe: what the quickstart does, through the driver.
#![allow(clippy::unwrap_used)]

mod common;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use common::{Uart, Wire};
use openrnic_driver::spec::{CounterId, Mtu, PhyState, QpState, WcOpcode, WcStatus};
use openrnic_driver::{
    AddressVector, BatchInit, Device, Error, MacStatus, OpenParams, Psn, QpAttr, QpBatch, QueuePair, RecvWr, SendWr,
    WorkCompletion, attr,
};
use openrnic_link::{Line, LineError, LinkParams, open, open_params};
use openrnic_sim::NicBus;
use openrnic_sim::model::NicSpec;
use openrnic_sim::wire::Direction;
use openrnic_sim::world::{SharedWorld, World, WorldParams};
use openrnic_testbench::board_bench::{Board, SYS, SYS_HZ};
use openrnic_testbench::e2e::{End, all_access};
use openrnic_testbench::mac_bench::{Symbol, fcs, padded, wire_frame, with_fcs};

/// Clock cycles a bit: a fast line spares simulation.
const DIV: u64 = 4;
/// Clock cycles of a tick, and its length.
const TICK: u64 = 40;
const TICK_PS: u64 = TICK * 1_000_000_000 / (SYS_HZ / 1000);
/// The board sends again after 20 ms (`rnic_board`).
const RETRY: u64 = SYS_HZ / 50;

/// One board or two, their cables, and the clock that all share.
struct Bench {
    boards: Vec<Board>,
    to: [Wire; 2],
    from: [Uart; 2],
    arrived: [Vec<Option<u8>>; 2],
}

impl Bench {
    /// The board that has room for the RNIC.
    const ECPIX5: u32 = 1;

    fn new(boards: usize) -> Self {
        let board = |_| Board::rnic(Self::ECPIX5, (SYS_HZ / DIV) as u32);
        let boards = (0..boards).map(board).collect();
        let mut bench = Self {
            boards,
            to: [Wire::new(DIV), Wire::new(DIV)],
            from: [Uart::new(DIV), Uart::new(DIV)],
            arrived: Default::default(),
        };
        for board in &mut bench.boards {
            board.phy.link(true, true);
            board.until("link", 170_000 * SYS, |b| b.dut.get("link_o") == 1);
            board.out.clear();
        }
        bench
    }

    /// One cycle of the clock that the RNIC runs by.
    fn cycle(&mut self) {
        for n in 0..self.boards.len() {
            let level = self.to[n].level();
            self.boards[n].dut.set("uart_rx_i", u64::from(level));
            self.boards[n].run(SYS);
            let level = self.boards[n].dut.get("uart_tx_o") == 1;
            if let Some(byte) = self.from[n].see(level) {
                self.arrived[n].push(byte);
            }
        }
        if let [a, b] = &mut self.boards[..] {
            b.line.append(&mut a.out);
            a.line.append(&mut b.out);
        }
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

/// What the host at board `n`'s line sets up.
fn end(bench: &Rc<RefCell<Bench>>, n: usize) -> End {
    let params = LinkParams {
        retry_ticks: RETRY / TICK,
        tries: 8,
        tick_ps: TICK_PS,
    };
    let bus = open(Box::new(Cable(bench.clone(), n)), params).unwrap();
    End::set_up(Device::open(bus, open_params()).unwrap(), n).unwrap()
}

/// Frames on their way from the core to the board.
type Frames = Rc<RefCell<Vec<Vec<u8>>>>;

struct Pair {
    bench: Rc<RefCell<Bench>>,
    ends: [End; 2],
    /// The core behind PCIe, if the second end is one, and the frames that it sent.
    core: Option<(SharedWorld, Frames)>,
    /// Frames of the board that the core has got.
    taken: Cell<usize>,
}

impl Pair {
    fn two_boards() -> Self {
        let bench = Rc::new(RefCell::new(Bench::new(2)));
        let ends = [0, 1].map(|n| end(&bench, n));
        Self {
            bench,
            ends,
            core: None,
            taken: Cell::new(0),
        }
    }

    fn board_and_core() -> Self {
        let bench = Rc::new(RefCell::new(Bench::new(1)));
        let params = WorldParams {
            nics: 1,
            nic: NicSpec::new(512),
            ..WorldParams::default()
        };
        let world = World::new(&params).unwrap().shared();
        let sent = Rc::new(RefCell::new(Vec::new()));
        let seen = sent.clone();
        world.borrow_mut().wire().observe(move |event| {
            if event.direction == Direction::Out {
                seen.borrow_mut().push(event.frame.to_vec());
            }
        });
        let core = Device::open(NicBus::new(&world, 0).unwrap(), OpenParams::default()).unwrap();
        let ends = [end(&bench, 0), End::set_up(core, 1).unwrap()];
        Self {
            bench,
            ends,
            core: Some((world, sent)),
            taken: Cell::new(0),
        }
    }

    /// Both hosts serve their devices for a while: 40 ticks of the line, and the core for as long.
    fn advance(&self) {
        let Some((world, sent)) = &self.core else {
            return self.ends.iter().for_each(|end| end.device.advance(TICK).unwrap());
        };
        self.ends[0].device.advance(TICK).unwrap();
        let cycles = TICK * TICK_PS / world.borrow().clk_period_ps();
        self.ends[1].device.advance(cycles).unwrap();
        let mut bench = self.bench.borrow_mut();
        let board = &mut bench.boards[0];
        for frame in sent.borrow_mut().drain(..) {
            board.arrive(&padded(&frame));
        }
        for wire in &board.sent[self.taken.get()..] {
            let (frame, check) = wire[8..].split_at(wire.len() - 12);
            assert_eq!(check, fcs(frame), "FCS of a frame of the board");
            world.borrow_mut().inject(0, frame).unwrap();
        }
        self.taken.set(board.sent.len());
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
            self.advance();
        }
        panic!("{what}: no completion");
    }
}

fn quickstart(pair: &Pair) {
    const LEN: usize = 3000;
    const QPS: u32 = 16;
    const LAST: usize = QPS as usize - 1;
    let caps = pair.ends[0].device.info().unwrap().caps;
    assert_eq!((caps.data_width, caps.log_qp, caps.max_rd_atomic), (64, 8, 4));
    let [left, right] = pair.connected(QPS).map(|b| b.qps());
    // From RTS there is no way back to INIT: the gate's refusal comes through the line, too.
    let back = QpAttr {
        qp_state: QpState::Init,
        ..QpAttr::default()
    };
    let refused = left[LAST].modify(&back, attr::INIT_MASK);
    assert!(matches!(refused, Err(Error::Gate(_))), "{refused:?}");

    let byte = |i: usize| (i * 7 + 3) as u8;
    let source = pair.ends[0].region(LEN, all_access(), byte).unwrap();
    let back = pair.ends[0].region(LEN, all_access(), |_| 0).unwrap();
    let target = pair.ends[1].region(LEN + 16, all_access(), |_| 0xee).unwrap();
    let there = target.iova().offset(8);

    // WRITE, and what it wrote READ back: the acknowledgement of a WRITE may be here before its data is through the other board's slow line, but no READ
    // passes them there.
    left[0]
        .post_send(&[SendWr::write(1, vec![source.sge(0, LEN as u32)], there, target.rkey())])
        .unwrap();
    assert_eq!(pair.completion(0, false, "the WRITE").wr_id, 1);
    left[0]
        .post_send(&[SendWr::read(2, vec![back.sge(0, LEN as u32)], there, target.rkey())])
        .unwrap();
    assert_eq!(pair.completion(0, false, "the READ").wr_id, 2);
    let all = target.read(0, LEN + 16).unwrap();
    assert!(all[8..LEN + 8].iter().enumerate().all(|(i, b)| *b == byte(i)));
    assert_eq!(
        (&all[..8], &all[LEN + 8..]),
        (&[0xee; 8][..], &[0xee; 8][..]),
        "nothing beside it"
    );
    assert_eq!(back.read(0, LEN).unwrap(), all[8..LEN + 8]);

    // SEND, on the last pair, the other way.
    let from = pair.ends[1].region(100, all_access(), byte).unwrap();
    let into = pair.ends[0].region(100, all_access(), |_| 0).unwrap();
    left[LAST]
        .post_recv(&[RecvWr {
            wr_id: 3,
            sges: vec![into.sge(0, 100)],
        }])
        .unwrap();
    right[LAST]
        .post_send(&[SendWr::send(4, vec![from.sge(0, 100)])])
        .unwrap();
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
    drop(bench);
    told(pair);
}

/// What the driver reads of PHY and MAC is what was on the cable, a bad frame under its name.
fn told(pair: &Pair) {
    let frame = wire_frame(&with_fcs(&padded(&[0xff; 20])));
    let mut bad = frame.clone();
    bad.last_mut().unwrap().data ^= 1;
    let short = wire_frame(&with_fcs(&[0xff; 40]));
    let boards = pair.bench.borrow().boards.len();
    let before: Vec<MacStatus> = (0..boards).map(|n| mac(pair, n)).collect();
    for board in &mut pair.bench.borrow_mut().boards {
        for wire in [&frame, &bad, &bad, &short] {
            board.line.extend(wire.iter().copied());
            board.line.extend([Symbol::default(); 12]);
        }
    }
    (0..40).for_each(|_| pair.advance());
    for (n, before) in before.into_iter().enumerate() {
        let sent = pair.bench.borrow().boards[n].sent.len() as u32;
        let there = match &pair.core {
            None => before.rx_good == pair.bench.borrow().boards[1 - n].sent.len() as u32,
            Some((_, sent)) => sent.borrow().is_empty() && before.rx_good >= 4,
        };
        assert!(there, "board {n} got what was sent to it: {before}");
        let clean = MacStatus {
            phy_state: PhyState::Up,
            phy_address: 1,
            rx_good: before.rx_good,
            rx_fcs: 0,
            rx_runt: 0,
            rx_oversize: 0,
            rx_er: 0,
            rx_junk: 0,
            rx_drop: 0,
            tx_sent: sent,
            tx_underrun: 0,
            tx_no_link: 0,
            tx_long: 0,
        };
        assert_eq!(before, clean);
        let bad = MacStatus {
            rx_good: before.rx_good + 1,
            rx_fcs: 2,
            rx_runt: 1,
            ..clean
        };
        assert_eq!(mac(pair, n), bad);
    }
    // The core behind PCIe has none.
    if pair.core.is_some() {
        assert_eq!(pair.ends[1].device.mac_status().unwrap(), None);
    }
}

fn mac(pair: &Pair, n: usize) -> MacStatus {
    pair.ends[n].device.mac_status().unwrap().unwrap()
}

#[test]
fn two_boards_run_the_quickstart_over_their_pins() {
    quickstart(&Pair::two_boards());
}

#[test]
fn a_board_and_a_core_run_the_quickstart_over_the_boards_pins() {
    quickstart(&Pair::board_and_core());
}
