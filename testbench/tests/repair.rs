// SPDX-License-Identifier: Apache-2.0
//! What becomes of each kind of request when one of its frames is lost, doubled or late, between two whole NICs at both
//! widths: everything arrives, nothing is executed twice, a gap is answered by one NAK. Each message crosses the PSN wrap.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::cell::RefCell;
use std::rc::Rc;

use openrnic_driver::spec::{Access, CounterId, MrKind, Mtu, QpAttrBit, QpState, WcStatus, WqeOpcode};
use openrnic_driver::{MemoryRegion, MrInit, QpAttr, QueuePair, RecvWr, SendWr};
use openrnic_sim::NicBus;
use openrnic_sim::wire::{Action, Direction, Rule, frame};
use openrnic_testbench::e2e::{OPERATIONS, Pair, all_access, each_width};

type Qp = QueuePair<NicBus>;
type Mr = MemoryRegion<NicBus>;

const BUDGET: u64 = 400_000;
/// Three packets of 256 bytes.
const LEN: usize = 700;
/// The second packet is the first one after the wrap.
const PSN: u32 = 0xff_ffff;

fn is_atomic(kind: WqeOpcode) -> bool {
    matches!(kind, WqeOpcode::AtomicFetchAndAdd | WqeOpcode::AtomicCmpAndSwp)
}

fn takes_receive(kind: WqeOpcode) -> bool {
    matches!(
        kind,
        WqeOpcode::Send | WqeOpcode::SendWithImm | WqeOpcode::SendWithInv | WqeOpcode::RdmaWriteWithImm
    )
}

fn is_send(kind: WqeOpcode) -> bool {
    matches!(kind, WqeOpcode::Send | WqeOpcode::SendWithImm | WqeOpcode::SendWithInv)
}

/// One message of a kind, from end 0 to end 1, and what it works on.
struct Case {
    kind: WqeOpcode,
    a: Qp,
    b: Qp,
    /// End 0: what is sent, or where a result lands.
    local: Mr,
    /// End 1.
    remote: Mr,
    /// Of end 1: what a SEND with invalidate takes away.
    fast: Option<Mr>,
    before: [openrnic_driver::Counters; 2],
}

impl Case {
    fn new(pair: &Pair, kind: WqeOpcode) -> Self {
        let [a, b] = pair.install(1).unwrap().map(|batch| batch.qps().pop().unwrap());
        for (n, qp, peer) in [(0, &a, &b), (1, &b, &a)] {
            let (rtr, mut rts) = pair.connect_attrs(n, peer, Mtu::Mtu256, [PSN, 5]);
            qp.modify(&rtr, openrnic_driver::attr::RTR_MASK).unwrap();
            // 65 us.
            rts.timeout = 4;
            qp.modify(&rts, openrnic_driver::attr::RTS_MASK).unwrap();
            let attr = QpAttr {
                access_flags: Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC,
                ..QpAttr::default()
            };
            qp.modify(&attr, QpAttrBit::ACCESS_FLAGS).unwrap();
        }
        let region = |n: usize| {
            let access = all_access() | Access::REMOTE_ATOMIC;
            pair.ends[n]
                .region(2048, access, |i| (i * 7 + n * 101 + (i >> 8)) as u8)
                .unwrap()
        };
        let before = [0, 1].map(|n: usize| pair.ends[n].device.counters().unwrap());
        Self {
            kind,
            a,
            b,
            local: region(0),
            remote: region(1),
            fast: (kind == WqeOpcode::SendWithInv).then(|| {
                let init = MrInit {
                    kind: MrKind::FastReg,
                    ..MrInit::new(64, all_access())
                };
                pair.ends[1].pd.register(&init).unwrap()
            }),
            before,
        }
    }

    fn counted(&self, pair: &Pair, n: usize, id: CounterId) -> u64 {
        pair.ends[n].device.counters().unwrap().since(&self.before[n]).get(id)
    }

    /// Posts the message, and as many receives, each with a place of its own.
    fn post(&self, receives: usize) {
        for k in 0..receives {
            let sges = if is_send(self.kind) {
                vec![self.remote.sge(8 + 1024 * k, 900)]
            } else {
                Vec::new()
            };
            self.b
                .post_recv(&[RecvWr {
                    wr_id: 100 + k as u64,
                    sges,
                }])
                .unwrap();
        }
        let len = if is_atomic(self.kind) { 8 } else { LEN };
        let mut wr = SendWr::new(1, self.kind, vec![self.local.sge(16, len as u32)]);
        wr.remote_addr = self.remote.iova().offset(8);
        wr.rkey = self.remote.rkey();
        wr.imm = self.fast.as_ref().map_or(0x0a0b_0c0d, |fast| fast.rkey().0);
        wr.atomic = (self.word(), 0x1111);
        self.a.post_send(&[wr]).unwrap();
    }

    /// The word that an atomic works on.
    fn word(&self) -> u64 {
        u64::from_le_bytes(self.remote.read(8, 8).unwrap().try_into().unwrap())
    }

    /// Both ends complete once and well, and the bytes are where they belong; `was` is the memory of both before.
    fn check(&self, pair: &Pair, was: &[Vec<u8>; 2], what: &str) {
        let done = pair.ends[0]
            .send_cq
            .wait(1, BUDGET)
            .unwrap_or_else(|e| panic!("{what}: {e}"));
        assert_eq!((done[0].wr_id, done[0].status), (1, WcStatus::Success), "{what}");
        if takes_receive(self.kind) {
            let got = pair.ends[1]
                .recv_cq
                .wait(1, BUDGET)
                .unwrap_or_else(|e| panic!("{what}: {e}"));
            assert_eq!(
                (got[0].wr_id, got[0].status, got[0].byte_len as usize),
                (100, WcStatus::Success, LEN),
                "{what}"
            );
            let imm = !matches!(self.kind, WqeOpcode::Send | WqeOpcode::SendWithInv);
            assert_eq!(got[0].imm, imm.then_some(0x0a0b_0c0d), "{what}");
            assert_eq!(got[0].invalidated, self.fast.as_ref().map(Mr::rkey), "{what}");
        }
        let [mut local, mut remote] = was.clone();
        match self.kind {
            WqeOpcode::RdmaRead => local[16..16 + LEN].copy_from_slice(&remote[8..8 + LEN]),
            kind if is_atomic(kind) => {
                local[16..24].copy_from_slice(&remote[8..16]);
                let word = u64::from_le_bytes(remote[8..16].try_into().unwrap());
                let new = if kind == WqeOpcode::AtomicFetchAndAdd {
                    word.wrapping_add(0x1111)
                } else {
                    0x1111
                };
                remote[8..16].copy_from_slice(&new.to_le_bytes());
            }
            _ => remote[8..8 + LEN].copy_from_slice(&local[16..16 + LEN]),
        }
        assert!(self.local.read(0, 2048).unwrap() == local, "{what}: memory of end 0");
        assert!(self.remote.read(0, 2048).unwrap() == remote, "{what}: memory of end 1");
    }

    fn memory(&self) -> [Vec<u8>; 2] {
        [self.local.read(0, 2048).unwrap(), self.remote.read(0, 2048).unwrap()]
    }

    /// Nothing more completes, nobody failed; the QPs go.
    fn end(self, pair: &Pair, what: &str) {
        for end in &pair.ends {
            assert_eq!(end.send_cq.poll(4).unwrap(), [], "{what}");
            assert_eq!(end.recv_cq.poll(4).unwrap(), [], "{what}");
        }
        for qp in [&self.a, &self.b] {
            assert_eq!(qp.query().unwrap().state, QpState::Rts, "{what}");
        }
        if let Some(fast) = &self.fast {
            // Its key is gone: it cannot be invalidated once more.
            self.b.post_send(&[SendWr::local_inv(5, fast.rkey())]).unwrap();
            let done = pair.ends[1].send_cq.wait(1, BUDGET).unwrap();
            assert_eq!(
                (done[0].status, done[0].vendor_name()),
                (WcStatus::MwBindErr, Some("MR_KEY")),
                "{what}"
            );
        }
        self.a.destroy().unwrap();
        self.b.destroy().unwrap();
        self.local.deregister().unwrap();
        self.remote.deregister().unwrap();
        if let Some(fast) = self.fast {
            fast.deregister().unwrap();
        }
        for end in &pair.ends {
            end.events().unwrap();
        }
    }
}

/// What happens to a frame, made anew for each case.
type MakeAction = fn() -> Action;

/// PSNs of the frames of a message: requests, responses.
fn psns(kind: WqeOpcode) -> [Vec<u32>; 2] {
    let at = |k: u32| (PSN + k) & 0xff_ffff;
    match kind {
        WqeOpcode::RdmaRead => [vec![PSN], vec![at(0), at(1), at(2)]],
        kind if is_atomic(kind) => [vec![PSN], vec![PSN]],
        _ => [vec![at(0), at(1), at(2)], vec![at(2)]],
    }
}

#[test]
fn one_frame_of_a_send_may_be_lost_doubled_or_late() {
    one_frame_suffers(&[WqeOpcode::Send, WqeOpcode::SendWithImm]);
}

#[test]
fn one_frame_of_a_send_with_invalidate_may_be_lost_doubled_or_late() {
    one_frame_suffers(&[WqeOpcode::SendWithInv]);
}

#[test]
fn one_frame_of_a_write_may_be_lost_doubled_or_late() {
    one_frame_suffers(&[WqeOpcode::RdmaWrite, WqeOpcode::RdmaWriteWithImm]);
}

#[test]
fn one_frame_of_a_read_or_its_response_may_be_lost_doubled_or_late() {
    one_frame_suffers(&[WqeOpcode::RdmaRead]);
}

#[test]
fn an_atomic_or_its_result_may_be_lost_doubled_or_late() {
    one_frame_suffers(&[WqeOpcode::AtomicFetchAndAdd, WqeOpcode::AtomicCmpAndSwp]);
}

fn one_frame_suffers(kinds: &[WqeOpcode]) {
    each_width(|pair, _| {
        let actions: [(&str, MakeAction); 4] = [
            ("lost", || Action::Drop),
            ("doubled", || Action::Duplicate),
            ("a little late", || Action::Delay(4_000)),
            ("very late", || Action::Delay(150_000)),
        ];
        for kind in kinds.iter().copied() {
            for (from, psns) in psns(kind).into_iter().enumerate() {
                for (k, psn) in psns.iter().copied().enumerate() {
                    for (name, action) in &actions {
                        let side = ["request", "response"][from];
                        let what = format!("{kind:?}, {side} packet {k} {name}");
                        let case = Case::new(&pair, kind);
                        let rule = Rule::once(from, action(), move |f| frame::bth(f).is_some_and(|b| b.psn() == psn));
                        let rule = pair.world.borrow_mut().wire().add_rule(rule);
                        let was = case.memory();
                        case.post(2);
                        case.check(&pair, &was, &what);
                        assert_eq!(pair.world.borrow_mut().wire().rule_hits(rule), 1, "{what}");
                        // What is late comes in now, and changes nothing.
                        pair.run(if *name == "very late" { 40_000 } else { 2_000 }).unwrap();
                        let after = case.memory();
                        assert_eq!(
                            case.counted(&pair, 1, CounterId::TxNakPsnSeq),
                            {
                                // Somebody overtakes it: exactly one NAK for the gap. Behind the last packet comes nobody.
                                let gap = from == 0 && k + 1 < psns.len() && *name != "doubled";
                                u64::from(gap)
                            },
                            "{what}"
                        );
                        assert!(case.memory() == after);
                        if *name == "doubled" && from == 0 {
                            assert_eq!(case.counted(&pair, 1, CounterId::RxDuplicates), 1, "{what}");
                            assert_eq!(case.counted(&pair, 0, CounterId::Retransmissions), 0, "{what}");
                        }
                        if *name == "lost" {
                            assert!(case.counted(&pair, 0, CounterId::Retransmissions) > 0, "{what}");
                            let silent = from == 1 && kind != WqeOpcode::RdmaRead || k + 1 == psns.len();
                            let timeouts = case.counted(&pair, 0, CounterId::Timeouts);
                            assert_eq!(timeouts, u64::from(silent), "{what}: timeouts");
                        }
                        case.end(&pair, &what);
                    }
                }
            }
        }
        assert!(pair.world.borrow_mut().take_violations().is_empty());
    });
}

#[test]
fn requests_that_come_again_much_later_are_answered_by_kind_and_never_executed() {
    each_width(|pair, _| {
        for kind in OPERATIONS.into_iter().chain([WqeOpcode::SendWithInv]) {
            let what = format!("{kind:?}");
            let case = Case::new(&pair, kind);
            let frames: Rc<RefCell<Vec<Vec<u8>>>> = Rc::default();
            let seen: Rc<RefCell<Vec<(u8, u32)>>> = Rc::default();
            let (note, answers) = (frames.clone(), seen.clone());
            pair.world.borrow_mut().wire().observe(move |e| {
                if e.direction == Direction::Out {
                    if e.nic == 0 {
                        note.borrow_mut().push(e.frame.to_vec());
                    } else if let Some(bth) = frame::bth(e.frame) {
                        answers.borrow_mut().push((bth.opcode(), bth.psn()));
                    }
                }
            });
            let was = case.memory();
            case.post(2);
            case.check(&pair, &was, &what);
            // The memory of both ends changes; then all requests come once more, in order.
            case.local.write(0, &[0x33; 2048]).unwrap();
            case.remote.write(0, &[0x44; 2048]).unwrap();
            seen.borrow_mut().clear();
            for frame in frames.borrow_mut().drain(..) {
                pair.world.borrow_mut().inject(1, &frame).unwrap();
            }
            pair.run(20_000).unwrap();
            assert_eq!(case.memory(), [vec![0x33; 2048], vec![0x44; 2048]], "{what}");
            let last = (PSN + 2) & 0xff_ffff;
            let want: Vec<(u8, u32)> = match kind {
                WqeOpcode::RdmaRead => vec![(0x0d, PSN), (0x0e, 0), (0x0f, 1)],
                kind if is_atomic(kind) => vec![(0x12, PSN)],
                // One ACK for each, always with the last PSN that was executed.
                _ => vec![(0x11, last); 3],
            };
            assert_eq!(*seen.borrow(), want, "{what}");
            assert_eq!(
                case.counted(&pair, 1, CounterId::RxDuplicates),
                psns(kind)[0].len() as u64,
                "{what}"
            );
            case.end(&pair, &what);
        }
    });
}

#[test]
fn a_gap_within_an_rnr_wait_and_an_rnr_wait_within_a_gap_are_repaired() {
    each_width(|pair, _| {
        for (lost, receives_late) in [(0u32, true), (1, true), (2, true), (1, false)] {
            let what = format!("packet {lost} lost, receives late: {receives_late}");
            let case = Case::new(&pair, WqeOpcode::Send);
            let psn = (PSN + lost) & 0xff_ffff;
            // The packet is lost twice: before and after the receiver was not ready.
            for n in 0..2 {
                let rule = Rule::nth(n, 0, Action::Drop, move |f| {
                    frame::bth(f).is_some_and(|b| b.psn() == psn)
                });
                pair.world.borrow_mut().wire().add_rule(rule);
            }
            let was = case.memory();
            if receives_late {
                case.post(0);
                pair.run(30_000).unwrap();
                case.b
                    .post_recv(&[RecvWr {
                        wr_id: 100,
                        sges: vec![case.remote.sge(8, 900)],
                    }])
                    .unwrap();
            } else {
                case.post(1);
            }
            case.check(&pair, &was, &what);
            assert!(case.counted(&pair, 0, CounterId::Retransmissions) > 0);
            assert_eq!(
                case.counted(&pair, 1, CounterId::TxRnrNaks) > 0,
                receives_late,
                "{what}"
            );
            case.end(&pair, &what);
        }
    });
}
