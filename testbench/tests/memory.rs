// SPDX-License-Identifier: Apache-2.0
//! Memory keys on whole NICs: fast registration, memory windows and invalidation by work requests, regions that are changed or go
//! while traffic uses them, and operations that this device refuses by name.
#![allow(clippy::unwrap_used)]

use openrnic_driver::spec::{Access, CmdStatus, CounterId, EventType, Mtu, QpState, WcOpcode, WcStatus, WqeOpcode};
use openrnic_driver::{
    Error, Iova, MrInit, Pages, PostErrorKind, QueuePair, RKey, RecvWr, Rereg, SendWr, WorkCompletion, attr, inc_rkey,
};
use openrnic_sim::NicBus;
use openrnic_sim::wire::{Action, Rule, frame};
use openrnic_testbench::e2e::{Pair, PairParams, all_access, each_width};

const BUDGET: u64 = 400_000;

/// Posts requests on a QP of end `n` and waits for their completions.
#[track_caller]
fn run(pair: &Pair, n: usize, qp: &QueuePair<NicBus>, wrs: &[SendWr]) -> Vec<WorkCompletion> {
    qp.post_send(wrs).unwrap();
    pair.ends[n].send_cq.wait(wrs.len(), BUDGET).unwrap()
}

#[track_caller]
fn statuses(done: &[WorkCompletion]) -> Vec<(u64, WcStatus)> {
    done.iter().map(|c| (c.wr_id, c.status)).collect()
}

#[track_caller]
fn refused(result: Result<(), Error>, status: CmdStatus) {
    match result {
        Err(Error::Command(e)) => assert_eq!(e.status, status),
        other => panic!("{status:?} expected, not {other:?}"),
    }
}

/// A connected pair that may register memory by work requests.
fn of_the_kernel(pair: &Pair, psn: [u32; 2]) -> [QueuePair<NicBus>; 2] {
    pair.connected_with(Mtu::Mtu1024, psn, |init| init.fast_reg = true)
        .unwrap()
}

fn write(wr_id: u64, sge: openrnic_driver::Sge, at: u64, key: RKey) -> SendWr {
    SendWr::write(wr_id, vec![sge], Iova(at), key)
}

#[test]
fn memory_is_registered_and_invalidated_by_work_requests_in_their_turn() {
    each_width(|pair, _| {
        let [a, b] = of_the_kernel(&pair, [3, 4]);
        let src = pair.ends[0].region(9000, all_access(), |i| i as u8).unwrap();
        let memory = |scatter| {
            let pages = Pages {
                offset: 77,
                scatter,
                ..Pages::default()
            };
            let init = MrInit {
                pages: Some(pages),
                ..MrInit::new(20_000, Access::LOCAL_WRITE)
            };
            pair.ends[1].pd.register(&init).unwrap()
        };
        let (first, second) = (memory(5), memory(9));
        let fast = pair.ends[1].pd.alloc_mr(8).unwrap();
        let (k1, k2) = (inc_rkey(fast.rkey()), inc_rkey(inc_rkey(fast.rkey())));
        // Nothing is registered under it yet; registered, it takes WRITEs; registered again, it names other memory.
        let reg = fast.reg_wr(1, k1, &first, Iova(0x10_0000), all_access()).unwrap();
        let done = run(&pair, 1, &b, &[reg]);
        assert_eq!((done[0].status, done[0].opcode), (WcStatus::Success, WcOpcode::RegMr));
        let done = run(&pair, 0, &a, &[write(2, src.sge(1, 8000), 0x10_0000 + 4000, k1)]);
        assert_eq!(statuses(&done), [(2, WcStatus::Success)]);
        let done = run(&pair, 1, &b, &[SendWr::local_inv(3, k1).fenced()]);
        assert_eq!(
            (done[0].status, done[0].opcode),
            (WcStatus::Success, WcOpcode::LocalInv)
        );
        // The list was not in use any more; two operations and a WRITE that only fits in this order.
        let wrs = [
            fast.reg_wr(4, k2, &second, Iova(0), all_access()).unwrap(),
            write(5, second.sge(0, 64), 0, src.rkey()),
        ];
        let mut wrs = wrs.to_vec();
        wrs[1].remote_addr = src.iova();
        let done = run(&pair, 1, &b, &wrs);
        assert_eq!(statuses(&done), [(4, WcStatus::Success), (5, WcStatus::Success)]);
        let done = run(&pair, 0, &a, &[write(6, src.sge(100, 500), 19_500, k2)]);
        assert_eq!(statuses(&done), [(6, WcStatus::Success)]);
        let want = |i: usize| {
            if (4000..12_000).contains(&i) {
                (i - 4000 + 1) as u8
            } else {
                0
            }
        };
        assert!(
            first
                .read(0, 20_000)
                .unwrap()
                .iter()
                .enumerate()
                .all(|(i, b)| *b == want(i))
        );
        let sent = src.read(100, 500).unwrap();
        assert!(second.read(19_500, 500).unwrap() == sent);
        // The old key is nothing.
        let done = run(&pair, 0, &a, &[write(7, src.sge(0, 8), 0x10_0000, k1)]);
        assert_eq!(statuses(&done), [(7, WcStatus::RemAccessErr)]);
        pair.run(3000).unwrap();
        assert!(
            pair.ends[1]
                .events()
                .unwrap()
                .contains(&(EventType::QpAccessErr, b.qpn().0))
        );
        fast.dealloc().unwrap();
        assert!(pair.world.borrow_mut().take_violations().is_empty());
    });
}

#[test]
fn a_window_opens_a_part_of_a_region_to_one_qp() {
    each_width(|pair, _| {
        let [a, b] = pair.connected(Mtu::Mtu1024, [3, 4]).unwrap();
        let [c, d] = pair.connected(Mtu::Mtu1024, [5, 6]).unwrap();
        let src = pair.ends[0].region(4096, all_access(), |i| i as u8 | 1).unwrap();
        let init = MrInit {
            pages: Some(Pages {
                offset: 300,
                ..Pages::default()
            }),
            iova: Some(Iova(0x7000)),
            ..MrInit::new(30_000, Access::LOCAL_WRITE | Access::MW_BIND)
        };
        let region = pair.ends[1].pd.register(&init).unwrap();
        let mw = pair.ends[1].pd.alloc_mw().unwrap();
        let key = inc_rkey(mw.rkey());
        let access = Access::REMOTE_WRITE | Access::ZERO_BASED;
        let bind = SendWr::bind_mw(1, key, region.lkey(), Iova(0x7000 + 8000), 10_000, access);
        let done = run(&pair, 1, &b, &[bind]);
        assert_eq!((done[0].status, done[0].opcode), (WcStatus::Success, WcOpcode::BindMw));
        let done = run(&pair, 0, &a, &[write(2, src.sge(0, 4000), 6000, key)]);
        assert_eq!(statuses(&done), [(2, WcStatus::Success)]);
        let memory = region.read(0, 30_000).unwrap();
        let want = |i: usize| {
            if (14_000..18_000).contains(&i) {
                (i - 14_000) as u8 | 1
            } else {
                0
            }
        };
        assert!(memory.iter().enumerate().all(|(i, b)| *b == want(i)));
        // Another QP of the same domain has no part in it.
        let done = run(&pair, 0, &c, &[write(3, src.sge(0, 8), 0, key)]);
        assert_eq!(statuses(&done), [(3, WcStatus::RemAccessErr)]);
        // The region stays while the window is bound.
        refused(region.deregister(), CmdStatus::InUse);
        let done = run(&pair, 1, &b, &[SendWr::local_inv(4, key)]);
        assert_eq!(statuses(&done), [(4, WcStatus::Success)]);
        // Beyond its end, bound anew: the peer is told, and nothing is written.
        let key = inc_rkey(key);
        let bind = SendWr::bind_mw(5, key, region.lkey(), Iova(0x7000), 100, Access::REMOTE_WRITE);
        assert_eq!(statuses(&run(&pair, 1, &b, &[bind])), [(5, WcStatus::Success)]);
        let done = run(&pair, 0, &a, &[write(6, src.sge(0, 2), 0x7000 + 99, key)]);
        assert_eq!(statuses(&done), [(6, WcStatus::RemAccessErr)]);
        assert!(region.read(0, 30_000).unwrap() == memory);
        mw.dealloc().unwrap();
        region.deregister().unwrap();
        drop((c, d));
        assert!(pair.world.borrow_mut().take_violations().is_empty());
    });
}

#[test]
fn a_refused_operation_fails_with_its_reason_and_the_queue_is_flushed() {
    each_width(|pair, _| {
        let no_bind = pair.ends[0].region(4096, all_access(), |_| 0).unwrap();
        let plain = pair.ends[0].region(4096, all_access(), |_| 0).unwrap();
        let open = pair.ends[0]
            .region(4096, all_access() | Access::MW_BIND, |_| 0)
            .unwrap();
        let mw = pair.ends[0].pd.alloc_mw().unwrap();
        let key = inc_rkey(mw.rkey());
        let bind = |region: &openrnic_driver::MemoryRegion<NicBus>, at: u64, length, access| {
            SendWr::bind_mw(1, key, region.lkey(), region.iova().offset(at), length, access)
        };
        let w = Access::REMOTE_WRITE;
        for (wr, status, vendor) in [
            (SendWr::local_inv(1, plain.rkey()), WcStatus::MwBindErr, 0x13),
            (SendWr::local_inv(1, key), WcStatus::MwBindErr, 0x11),
            (bind(&no_bind, 0, 8, w), WcStatus::MwBindErr, 0x13),
            (bind(&open, 4090, 8, w), WcStatus::MwBindErr, 0x14),
            (bind(&open, 0, 0, w), WcStatus::LocQpOpErr, 0),
            (bind(&open, 0, 8, w | Access::LOCAL_WRITE), WcStatus::LocQpOpErr, 0),
        ] {
            let [a, b] = pair.connected(Mtu::Mtu1024, [3, 4]).unwrap();
            let mut later = write(2, plain.sge(0, 8), 0, RKey(0));
            later.signaled = false;
            let done = run(&pair, 0, &a, &[wr, later]);
            assert_eq!(statuses(&done), [(1, status), (2, WcStatus::WrFlushErr)]);
            assert_eq!(done[0].vendor_err, vendor);
            a.destroy().unwrap();
            b.destroy().unwrap();
        }
        open.deregister().unwrap();
    });
}

#[test]
fn only_a_queue_pair_that_was_created_for_it_registers_memory() {
    each_width(|pair, _| {
        let src = pair.ends[0].region(64, all_access(), |_| 7).unwrap();
        let init = MrInit {
            pages: Some(Pages::default()),
            ..MrInit::new(4096, all_access())
        };
        let memory = pair.ends[1].pd.register(&init).unwrap();
        memory.write(0, &[1; 4096]).unwrap();
        for allowed in [false, true] {
            let [a, b] = pair
                .connected_with(Mtu::Mtu1024, [3, 4], |init| init.fast_reg = allowed)
                .unwrap();
            assert_eq!(b.query().unwrap().init.fast_reg(), allowed);
            let [c, d] = pair.connected(Mtu::Mtu1024, [5, 6]).unwrap();
            let fast = pair.ends[1].pd.alloc_mr(4).unwrap();
            let key = inc_rkey(fast.rkey());
            let reg = fast.reg_wr(1, key, &memory, Iova(0), all_access()).unwrap();
            // Through another QP it is seen what the key names then.
            let touch = |status| {
                let done = run(&pair, 0, &c, &[write(9, src.sge(0, 8), 0, key)]);
                assert_eq!(statuses(&done), [(9, status)], "allowed: {allowed}");
            };
            if allowed {
                assert_eq!(statuses(&run(&pair, 1, &b, &[reg])), [(1, WcStatus::Success)]);
                touch(WcStatus::Success);
                let done = run(&pair, 1, &b, &[SendWr::local_inv(2, key)]);
                assert_eq!(statuses(&done), [(2, WcStatus::Success)]);
                assert_eq!(b.query().unwrap().state, QpState::Rts);
                assert_eq!(memory.read(0, 8).unwrap(), [7; 8]);
            } else {
                let later = write(2, memory.sge(0, 8), 0, src.rkey());
                let done = run(&pair, 1, &b, &[reg, later]);
                assert_eq!(statuses(&done), [(1, WcStatus::LocQpOpErr), (2, WcStatus::WrFlushErr)]);
                assert_eq!((done[0].vendor_err, done[0].qpn), (0, b.qpn()));
                touch(WcStatus::RemAccessErr);
                pair.run(2000).unwrap();
                assert_eq!(b.query().unwrap().state, QpState::Err);
                assert_eq!(memory.read(0, 4096).unwrap(), [1; 4096]);
            }
            fast.dealloc().unwrap();
            for qp in [a, b, c, d] {
                qp.destroy().unwrap();
            }
        }
        assert!(pair.world.borrow_mut().take_violations().is_empty());
    });
}

#[test]
fn what_is_not_built_is_refused_by_name() {
    let pair = Pair::new(PairParams::new(64, 1)).unwrap();
    let [a, _b] = pair.connected(Mtu::Mtu1024, [3, 4]).unwrap();
    for opcode in [WqeOpcode::Tso, WqeOpcode::Flush, WqeOpcode::AtomicWrite] {
        let e = a.post_send(&[SendWr::new(1, opcode, vec![])]).unwrap_err();
        assert!(
            matches!(&e, Error::Post(p) if p.kind == PostErrorKind::UnsupportedOpcode { opcode }),
            "{e:?}"
        );
        assert!(e.to_string().contains(opcode.name()), "{e}");
    }
}

/// Keeps WRITEs of end 0 on their way until one fails: how many went well, and how the first other one ended.
fn write_until_failure(pair: &Pair, a: &QueuePair<NicBus>, wr: &SendWr, during: impl FnOnce()) -> (usize, WcStatus) {
    a.post_send(&vec![wr.clone(); 16]).unwrap();
    pair.run(2000).unwrap();
    let mut good = 0;
    let mut during = Some(during);
    for _ in 0..2000 {
        for done in pair.ends[0].send_cq.poll(64).unwrap() {
            if done.status != WcStatus::Success {
                return (good, done.status);
            }
            good += 1;
            a.post_send(std::slice::from_ref(wr)).unwrap();
        }
        if good > 30
            && let Some(during) = during.take()
        {
            during();
        }
        pair.run(300).unwrap();
    }
    panic!("no WRITE failed; {good} went well");
}

#[test]
fn a_region_that_goes_under_traffic_is_touched_no_more_once_it_is_gone() {
    for lossy in [false, true] {
        for width in [64, 512] {
            let mut params = PairParams::new(width, 1);
            if lossy {
                // Whatever is sent again is read again.
                params.wire.faults.loss = 0.05;
            }
            let pair = Pair::new(params).unwrap();
            for remote in [true, false] {
                let what = format!("{width} bits, lossy: {lossy}, the remote region goes: {remote}");
                let [a, b] = pair.connected(Mtu::Mtu1024, [3, 4]).unwrap();
                let pages = Some(Pages::default());
                let init = MrInit {
                    pages,
                    ..MrInit::new(20_000, all_access())
                };
                let here = pair.ends[0].pd.register(&init).unwrap();
                let there = pair.ends[1].pd.register(&init).unwrap();
                let wr = SendWr::write(1, vec![here.sge(100, 9000)], there.iova().offset(50), there.rkey());
                let (_, status) = write_until_failure(&pair, &a, &wr, || {
                    // Its memory is not mapped any more when this returns: an access is a violation.
                    if remote {
                        there.deregister().unwrap()
                    } else {
                        here.deregister().unwrap()
                    }
                });
                let want = if remote {
                    WcStatus::RemAccessErr
                } else {
                    WcStatus::LocProtErr
                };
                assert_eq!(status, want, "{what}");
                pair.run(20_000).unwrap();
                pair.ends[0].send_cq.poll(64).unwrap();
                assert!(pair.world.borrow_mut().take_violations().is_empty(), "{what}");
                a.destroy().unwrap();
                b.destroy().unwrap();
            }
        }
    }
}

#[test]
fn a_region_is_changed_under_traffic_without_losing_a_byte() {
    each_width(|pair, _| {
        let [a, b] = pair.connected(Mtu::Mtu1024, [3, 4]).unwrap();
        let here = pair.ends[0].region(9000, all_access(), |i| (i * 7) as u8 | 1).unwrap();
        let init = MrInit {
            iova: Some(Iova(0)),
            ..MrInit::new(9000, all_access())
        };
        let there = pair.ends[1].pd.register(&init).unwrap();
        let wr = write(1, here.sge(0, 9000), 0, there.rkey());
        let mut region = Some(there);
        let mut good = 0;
        a.post_send(&vec![wr.clone(); 8]).unwrap();
        for turn in 0..6u64 {
            pair.run(1500).unwrap();
            // Its memory moves: other pages, or one piece again. The old memory is gone when this returns.
            let new = MrInit {
                pages: (turn % 2 == 0).then_some(Pages {
                    offset: 10 * turn as usize,
                    scatter: turn,
                    ..Pages::default()
                }),
                ..init.clone()
            };
            let old = region.take().unwrap();
            let changed = old
                .rereg(&Rereg {
                    translation: Some(&new),
                    ..Rereg::default()
                })
                .unwrap();
            for done in pair.ends[0].send_cq.poll(64).unwrap() {
                assert_eq!(done.status, WcStatus::Success);
                good += 1;
                a.post_send(std::slice::from_ref(&wr)).unwrap();
            }
            region = Some(changed);
        }
        // What is written after the last change is there.
        good += pair.ends[0].send_cq.wait(8, BUDGET).unwrap().len();
        let done = run(&pair, 0, &a, std::slice::from_ref(&wr));
        assert_eq!(done[0].status, WcStatus::Success);
        let region = region.unwrap();
        assert!(region.read(0, 9000).unwrap() == here.read(0, 9000).unwrap());
        assert!(good >= 8);
        // Its rights go: the peer is refused; the domain changes, too.
        let region = region
            .rereg(&Rereg {
                access: Some(Access::LOCAL_WRITE),
                ..Rereg::default()
            })
            .unwrap();
        let done = run(&pair, 0, &a, &[wr]);
        assert_eq!(done[0].status, WcStatus::RemAccessErr);
        let pd = pair.ends[1].device.alloc_pd().unwrap();
        let region = region
            .rereg(&Rereg {
                pd: Some(&pd),
                key: Some(9),
                ..Rereg::default()
            })
            .unwrap();
        assert_eq!(region.rkey().0 & 0xff, 9);
        refused(pd.dealloc(), CmdStatus::InUse);
        region.deregister().unwrap();
        pd.dealloc().unwrap();
        drop(b);
        assert!(pair.world.borrow_mut().take_violations().is_empty());
    });
}

#[test]
fn nothing_reaches_memory_through_a_key_after_the_completion_that_says_it_is_gone() {
    after_the_key_is_gone(&[(WqeOpcode::RdmaWrite, false), (WqeOpcode::RdmaRead, false)]);
}

#[test]
fn nothing_is_read_through_a_key_after_the_receive_that_says_it_is_gone() {
    after_the_key_is_gone(&[(WqeOpcode::RdmaRead, true)]);
}

/// A peer uses a key all the time; then it goes, by LOCAL_INV or by a SEND of another peer.
fn after_the_key_is_gone(cases: &[(WqeOpcode, bool)]) {
    const LEN: usize = 12_288;
    for width in [64, 512] {
        let mut params = PairParams::new(width, openrnic_testbench::seed(1));
        // What was judged stays on its way for long.
        params.host.read_latency_ns = 3000;
        let pair = Pair::new(params).unwrap();
        for (op, by_peer) in cases.iter().copied() {
            for turn in 0..2u64 {
                let what = format!("{width} bits, {op:?}, by the peer: {by_peer}, turn {turn}");
                let [a, b] = of_the_kernel(&pair, [3, 4]);
                let [c, d] = pair.connected(Mtu::Mtu1024, [5, 6]).unwrap();
                let here = pair.ends[0].region(LEN, all_access(), |_| 1).unwrap();
                let init = MrInit {
                    pages: Some(Pages::default()),
                    ..MrInit::new(LEN, all_access())
                };
                let memory = pair.ends[1].pd.register(&init).unwrap();
                memory.write(0, &[2; LEN]).unwrap();
                let fast = pair.ends[1].pd.alloc_mr(16).unwrap();
                let key = inc_rkey(fast.rkey());
                let reg = fast.reg_wr(1, key, &memory, Iova(0), all_access()).unwrap();
                assert_eq!(statuses(&run(&pair, 1, &b, &[reg])), [(1, WcStatus::Success)]);
                if by_peer {
                    d.post_recv(&[RecvWr { wr_id: 1, sges: vec![] }]).unwrap();
                }
                let mut wr = SendWr::new(7, op, vec![here.sge(0, LEN as u32)]);
                wr.rkey = key;
                a.post_send(&vec![wr; 8]).unwrap();
                pair.run(4000 + 237 * turn).unwrap();
                if by_peer {
                    c.post_send(&[SendWr::send_with_inv(9, vec![], key).unsignaled()])
                        .unwrap();
                    let got = pair.ends[1].recv_cq.wait(1, BUDGET).unwrap();
                    assert_eq!((got[0].wr_id, got[0].status), (1, WcStatus::Success), "{what}");
                } else {
                    let done = run(&pair, 1, &b, &[SendWr::local_inv(2, key)]);
                    assert_eq!(statuses(&done), [(2, WcStatus::Success)], "{what}");
                }
                // The application has its memory for itself: what it writes there stays, and no peer sees it.
                memory.write(0, &[3; LEN]).unwrap();
                let done = pair.ends[0].send_cq.wait(8, BUDGET);
                let done = done.unwrap_or_else(|e| panic!("{what}: {e}"));
                assert!(
                    done.iter().any(|wc| wc.status == WcStatus::RemAccessErr),
                    "{what}: {done:?}"
                );
                pair.run(2000).unwrap();
                assert!(memory.read(0, LEN).unwrap() == vec![3; LEN], "{what}");
                assert!(!here.read(0, LEN).unwrap().contains(&3), "{what}");
                for qp in [a, b, c, d] {
                    qp.destroy().unwrap();
                }
                fast.dealloc().unwrap();
                for region in [here, memory] {
                    region.deregister().unwrap();
                }
            }
        }
        assert!(pair.world.borrow_mut().take_violations().is_empty());
    }
}

#[test]
fn a_region_that_goes_or_changes_between_two_sendings_of_a_message_is_judged_by_what_it_is_then() {
    #[derive(Debug, Clone, Copy, PartialEq)]
    enum Change {
        Deregister,
        Domain,
        Memory,
    }
    each_width(|pair, _| {
        for (change, op) in [
            (Change::Deregister, WqeOpcode::RdmaWrite),
            (Change::Deregister, WqeOpcode::Send),
            (Change::Domain, WqeOpcode::RdmaWrite),
            (Change::Memory, WqeOpcode::Send),
        ] {
            let what = format!("{change:?}, {op:?}");
            let [a, b] = pair.install(1).unwrap().map(|batch| batch.qps().pop().unwrap());
            for (n, qp, peer) in [(0, &a, &b), (1, &b, &a)] {
                let (rtr, mut rts) = pair.connect_attrs(n, peer, Mtu::Mtu1024, [0xff_fffe, 4]);
                // 65 us.
                rts.timeout = 4;
                qp.modify(&rtr, attr::RTR_MASK).unwrap();
                qp.modify(&rts, attr::RTS_MASK).unwrap();
            }
            let init = MrInit {
                iova: Some(Iova(0x4000)),
                ..MrInit::new(5000, all_access())
            };
            let here = pair.ends[0].pd.register(&init).unwrap();
            here.write(0, &[1; 5000]).unwrap();
            let there = pair.ends[1].region(5000, all_access(), |_| 9).unwrap();
            let sges = vec![there.sge(0, 5000)];
            b.post_recv(&[RecvWr { wr_id: 5, sges }]).unwrap();
            // The second packet is lost the first time, and no response comes back.
            let lost = Rule::once(0, Action::Drop, |f| frame::bth(f).is_some_and(|b| b.psn() == 0xff_ffff));
            let silent = Rule {
                from: Some(1),
                matches: Box::new(|_| true),
                skip: 0,
                times: 1,
                action: Action::Drop,
            };
            let rules = [lost, silent].map(|r| pair.world.borrow_mut().wire().add_rule(r));
            let before = pair.ends[0].device.counters().unwrap();
            let mut wr = SendWr::new(1, op, vec![here.sge(0, 5000)]);
            wr.remote_addr = there.iova();
            wr.rkey = there.rkey();
            a.post_send(&[wr, SendWr::send(2, vec![]).unsignaled()]).unwrap();
            pair.run(4000).unwrap();
            assert_eq!(pair.world.borrow_mut().wire().rule_hits(rules[0]), 1, "{what}");
            assert_eq!(pair.ends[0].send_cq.poll(1).unwrap(), [], "{what}");
            let other = pair.ends[0].device.alloc_pd().unwrap();
            let new = MrInit {
                pages: Some(Pages {
                    offset: 100,
                    scatter: 3,
                    ..Pages::default()
                }),
                ..init.clone()
            };
            let rereg = match change {
                Change::Deregister => {
                    here.deregister().unwrap();
                    None
                }
                Change::Domain => Some(Rereg {
                    pd: Some(&other),
                    ..Rereg::default()
                }),
                Change::Memory => Some(Rereg {
                    translation: Some(&new),
                    ..Rereg::default()
                }),
            };
            let moved = rereg.map(|r| here.rereg(&r).unwrap());
            if change == Change::Memory {
                moved.as_ref().unwrap().write(0, &[2; 5000]).unwrap();
                b.post_recv(&[RecvWr { wr_id: 6, sges: vec![] }]).unwrap();
            }
            let got = |done: Vec<WorkCompletion>| {
                done.iter()
                    .map(|c| (c.wr_id, c.status, c.vendor_err))
                    .collect::<Vec<_>>()
            };
            let sent_again = |pair: &Pair| {
                let counted = pair.ends[0].device.counters().unwrap().since(&before);
                (
                    counted.get(CounterId::Retransmissions),
                    counted.get(CounterId::Timeouts),
                )
            };
            if change == Change::Memory {
                // What is sent again is read again: the bytes of the memory that the key names now.
                assert_eq!(
                    got(pair.ends[0].send_cq.wait(1, BUDGET).unwrap()),
                    [(1, WcStatus::Success, 0)]
                );
                let mut want = vec![1; 1024];
                want.resize(5000, 2);
                assert!(there.read(0, 5000).unwrap() == want, "{what}");
                assert!(sent_again(&pair).0 >= 4, "{what}");
                assert_eq!(a.query().unwrap().state, QpState::Rts);
            } else {
                // It is not sent again, and nothing of it is read: what was sent stays unanswered.
                let vendor = if change == Change::Deregister { 0x11 } else { 0x12 };
                assert_eq!(
                    got(pair.ends[0].send_cq.wait(2, BUDGET).unwrap()),
                    [(1, WcStatus::LocProtErr, vendor), (2, WcStatus::WrFlushErr, 0)],
                    "{what}"
                );
                pair.run(3000).unwrap();
                assert_eq!(sent_again(&pair), (0, 1), "{what}");
                assert_eq!(a.query().unwrap().state, QpState::Err, "{what}");
                // The peer has the first packet and waits for the rest.
                assert_eq!(b.query().unwrap().state, QpState::Rts, "{what}");
                let mut want = vec![1; 1024];
                want.resize(5000, 9);
                assert!(there.read(0, 5000).unwrap() == want, "{what}");
                assert_eq!(pair.ends[1].recv_cq.poll(1).unwrap(), [], "{what}");
            }
            assert!(pair.world.borrow_mut().take_violations().is_empty(), "{what}");
            pair.run(2000).unwrap();
            for qp in [a, b] {
                qp.destroy().unwrap();
            }
            for end in &pair.ends {
                end.send_cq.poll(8).unwrap();
                end.recv_cq.poll(8).unwrap();
            }
            if let Some(moved) = moved {
                moved.deregister().unwrap();
            }
            there.deregister().unwrap();
        }
    });
}
