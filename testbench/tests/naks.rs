// SPDX-License-Identifier: Apache-2.0
//! Each refusal of a responder between two whole NICs, in both directions and at both widths: what is on the wire, how the work
//! requests of both ends complete, which event is raised, what the QPs are afterwards. And what a requester gives up on.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use openrnic_driver::spec::{Access, CounterId, EventType, Mtu, QpState, WcStatus, WqeOpcode};
use openrnic_driver::{LKey, MemoryRegion, QpAttr, QueuePair, RKey, RecvWr, SendWr, Sge};
use openrnic_sim::NicBus;
use openrnic_sim::wire::{Action, Rule, frame};
use openrnic_testbench::e2e::{Pair, all_access, each_width};

type Qp = QueuePair<NicBus>;
type Mr = MemoryRegion<NicBus>;

const BUDGET: u64 = 1_000_000;
const LEN: u32 = 600;

fn send(local: &Mr, _: &Mr) -> SendWr {
    SendWr::send(1, vec![local.sge(0, LEN)])
}

fn write(local: &Mr, remote: &Mr) -> SendWr {
    SendWr::write(1, vec![local.sge(0, LEN)], remote.iova(), remote.rkey())
}

fn read(local: &Mr, remote: &Mr) -> SendWr {
    SendWr::read(1, vec![local.sge(0, LEN)], remote.iova(), remote.rkey())
}

/// A request, what stands in its way, and what comes of it.
struct Case {
    what: &'static str,
    wr: fn(&Mr, &Mr) -> SendWr,
    /// The receive that is posted, if one is.
    receive: Option<fn(&Mr) -> Vec<Sge>>,
    /// Rights of the responder's QP.
    access: Access,
    /// Status at the requester.
    sent: WcStatus,
    /// Status at the responder, when its receive is used up.
    received: Option<WcStatus>,
    /// Event at the responder, when it is not.
    event: Option<EventType>,
    nak: CounterId,
}

fn cases() -> Vec<Case> {
    let invalid = Case {
        what: "",
        wr: write,
        receive: None,
        access: Access::REMOTE_WRITE | Access::REMOTE_READ,
        sent: WcStatus::RemInvReqErr,
        received: None,
        event: Some(EventType::QpReqErr),
        nak: CounterId::TxNakInvReq,
    };
    let access = || Case {
        sent: WcStatus::RemAccessErr,
        event: Some(EventType::QpAccessErr),
        nak: CounterId::TxNakRemAccess,
        ..invalid
    };
    let local = |received| Case {
        wr: send,
        sent: WcStatus::RemOpErr,
        received: Some(received),
        event: None,
        nak: CounterId::TxNakRemOp,
        ..invalid
    };
    vec![
        Case {
            what: "WRITE not enabled on the QP",
            access: Access::REMOTE_READ,
            ..invalid
        },
        Case {
            what: "READ not enabled on the QP",
            wr: read,
            access: Access::REMOTE_WRITE,
            ..invalid
        },
        Case {
            what: "SEND longer than its receive",
            wr: send,
            receive: Some(|m| vec![m.sge(0, LEN - 1)]),
            received: Some(WcStatus::LocLenErr),
            event: None,
            ..invalid
        },
        Case {
            what: "WRITE with a key that does not exist",
            wr: |l, r| SendWr {
                rkey: RKey(0x00ff_ff00),
                ..write(l, r)
            },
            ..access()
        },
        Case {
            what: "READ beyond the region",
            wr: |l, r| SendWr {
                remote_addr: r.iova().offset(4096 - u64::from(LEN) + 1),
                ..read(l, r)
            },
            ..access()
        },
        Case {
            what: "WRITE whose address and length wrap",
            wr: |l, r| SendWr {
                remote_addr: openrnic_driver::Iova(u64::MAX - 100),
                ..write(l, r)
            },
            ..access()
        },
        Case {
            what: "WRITE with immediate and a bad key, a receive posted",
            wr: |l, r| {
                SendWr {
                    rkey: RKey(0x00ff_ff00),
                    ..SendWr::write(1, vec![l.sge(0, 100)], r.iova(), r.rkey())
                }
                .with_imm(5)
            },
            receive: Some(|_| Vec::new()),
            received: Some(WcStatus::LocAccessErr),
            event: None,
            ..access()
        },
        Case {
            what: "receive with a key that does not exist",
            receive: Some(|m| {
                vec![Sge {
                    lkey: LKey(0x00ff_ff00),
                    ..m.sge(0, LEN)
                }]
            }),
            ..local(WcStatus::LocProtErr)
        },
        Case {
            what: "receive whose second element lies outside",
            receive: Some(|m| vec![m.sge(0, 256), m.sge(3900, 400)]),
            ..local(WcStatus::LocProtErr)
        },
    ]
}

#[test]
fn both_ends_of_each_refusal_agree_on_what_happened() {
    each_width(|pair, _| {
        for case in cases() {
            // Each end is the requester once.
            for from in 0..2 {
                let to = 1 - from;
                let what = format!("{}, from end {from}", case.what);
                let mut qps: [Qp; 2] = pair.install(1).unwrap().map(|batch| batch.qps().pop().unwrap());
                let attr = QpAttr {
                    qp_state: QpState::Init,
                    access_flags: case.access,
                    ..QpAttr::default()
                };
                qps[to]
                    .modify(
                        &attr,
                        openrnic_driver::spec::QpAttrBit::STATE | openrnic_driver::spec::QpAttrBit::ACCESS_FLAGS,
                    )
                    .unwrap();
                pair.connect([&qps[0], &qps[1]], Mtu::Mtu256, [0xff_ffff, 9]).unwrap();
                qps.rotate_left(from);
                let [a, b] = &qps;
                let local = pair.ends[from].region(4096, all_access(), |i| i as u8 | 1).unwrap();
                let remote = pair.ends[to].region(4096, all_access(), |_| 0).unwrap();
                let sink = pair.ends[to].region(4096, all_access(), |_| 0).unwrap();
                for end in &pair.ends {
                    end.events().unwrap();
                }
                let before = [from, to].map(|n: usize| pair.ends[n].device.counters().unwrap());
                if let Some(sges) = case.receive {
                    for wr_id in [10, 11] {
                        let sges = sges(&sink);
                        b.post_recv(&[RecvWr { wr_id, sges }]).unwrap();
                    }
                }
                let second = SendWr {
                    wr_id: 2,
                    ..write(&local, &remote)
                };
                a.post_send(&[(case.wr)(&local, &remote), second]).unwrap();
                let done = pair.ends[from].send_cq.wait(2, BUDGET).unwrap();
                let got: Vec<_> = done.iter().map(|wc| (wc.wr_id, wc.status)).collect();
                assert_eq!(got, [(1, case.sent), (2, WcStatus::WrFlushErr)], "{what}");
                if case.receive.is_some() {
                    let got = pair.ends[to].recv_cq.wait(2, BUDGET).unwrap();
                    let got: Vec<_> = got.iter().map(|wc| (wc.wr_id, wc.status)).collect();
                    let first = case.received.unwrap_or(WcStatus::WrFlushErr);
                    assert_eq!(got, [(10, first), (11, WcStatus::WrFlushErr)], "{what}");
                }
                pair.run(4000).unwrap();
                for qp in [a, b] {
                    assert_eq!(qp.query().unwrap().state, QpState::Err, "{what}");
                }
                let mut events = pair.ends[to].events().unwrap();
                events.retain(|e| e.0 != EventType::CommEst);
                let want: Vec<_> = case.event.map(|e| (e, b.qpn().0)).into_iter().collect();
                assert_eq!(events, want, "{what}");
                assert_eq!(pair.ends[from].events().unwrap(), [], "{what}: events of the requester");
                let counted = pair.ends[to].device.counters().unwrap().since(&before[1]);
                for id in [
                    CounterId::TxNakInvReq,
                    CounterId::TxNakRemAccess,
                    CounterId::TxNakRemOp,
                    CounterId::TxNakPsnSeq,
                ] {
                    assert_eq!(counted.get(id), u64::from(id == case.nak), "{what}: {id:?}");
                }
                assert_eq!(remote.read(0, 4096).unwrap(), vec![0; 4096], "{what}");
                // Packets before the one at fault may have been placed, nothing of that one or later.
                let placed = sink.read(0, 4096).unwrap();
                let end = placed.iter().rposition(|b| *b != 0).map_or(0, |i| i + 1);
                assert!(end.is_multiple_of(256) && end <= 512, "{what}: {end} bytes");
                for qp in &qps {
                    qp.destroy().unwrap();
                }
                for region in [local, remote, sink] {
                    region.deregister().unwrap();
                }
            }
        }
        assert!(pair.world.borrow_mut().take_violations().is_empty());
    });
}

/// A pair whose end 0 has these limits; end 0's side.
fn limited(pair: &Pair, change: impl FnOnce(&mut QpAttr)) -> [Qp; 2] {
    let [a, b] = pair.install(1).unwrap().map(|batch| batch.qps().pop().unwrap());
    let (rtr, mut rts) = pair.connect_attrs(0, &b, Mtu::Mtu256, [0xff_ffff, 9]);
    rts.timeout = 3;
    change(&mut rts);
    a.modify(&rtr, openrnic_driver::attr::RTR_MASK).unwrap();
    a.modify(&rts, openrnic_driver::attr::RTS_MASK).unwrap();
    let (mut rtr, rts) = pair.connect_attrs(1, &a, Mtu::Mtu256, [0xff_ffff, 9]);
    rtr.min_rnr_timer = 1;
    b.modify(&rtr, openrnic_driver::attr::RTR_MASK).unwrap();
    b.modify(&rts, openrnic_driver::attr::RTS_MASK).unwrap();
    [a, b]
}

#[test]
fn silence_is_given_up_after_retry_cnt_and_a_missing_receive_after_rnr_retry() {
    each_width(|pair, _| {
        let local = pair.ends[0].region(4096, all_access(), |_| 1).unwrap();
        let counted = |id| pair.ends[0].device.counters().unwrap().get(id);
        for retries in [0u8, 2, 7] {
            // Nobody answers: the request and so many repetitions, 7 not for ever.
            let [a, b] = limited(&pair, |rts| rts.retry_cnt = retries);
            let peer = b.qpn().0;
            let rule = Rule {
                from: Some(0),
                matches: Box::new(move |f| frame::bth(f).is_some_and(|bth| bth.dest_qp() == peer)),
                skip: 0,
                times: u64::MAX,
                action: Action::Drop,
            };
            let rule = pair.world.borrow_mut().wire().add_rule(rule);
            let before = counted(CounterId::Timeouts);
            a.post_send(&[
                SendWr::send(1, vec![local.sge(0, 9)]).unsignaled(),
                SendWr::send(2, vec![local.sge(0, 1)]),
            ])
            .unwrap();
            let done = pair.ends[0].send_cq.wait(2, BUDGET).unwrap();
            let got: Vec<_> = done.iter().map(|wc| (wc.wr_id, wc.status)).collect();
            assert_eq!(got, [(1, WcStatus::RetryExcErr), (2, WcStatus::WrFlushErr)]);
            let sent = 1 + u64::from(retries);
            assert_eq!(counted(CounterId::Timeouts) - before, sent);
            // Both requests each time, the second one perhaps not in the last.
            let lost = pair.world.borrow_mut().wire().rule_hits(rule);
            assert!((2 * sent - 1..=2 * sent).contains(&lost), "{lost} frames");
            assert_eq!(b.query().unwrap().state, QpState::Rts);
            a.destroy().unwrap();
            b.destroy().unwrap();
        }
        for tries in [0u8, 3] {
            let [a, b] = limited(&pair, |rts| rts.rnr_retry = tries);
            let naks = counted(CounterId::RxRnrNaks);
            a.post_send(&[SendWr::send(1, vec![local.sge(0, 9)])]).unwrap();
            let done = pair.ends[0].send_cq.wait(1, BUDGET).unwrap();
            assert_eq!(done[0].status, WcStatus::RnrRetryExcErr);
            assert_eq!(counted(CounterId::RxRnrNaks) - naks, 1 + u64::from(tries));
            a.destroy().unwrap();
            b.destroy().unwrap();
        }
        // 7 means for ever: far more tries than 7, and then it works.
        let [a, b] = limited(&pair, |rts| rts.rnr_retry = 7);
        let naks = counted(CounterId::RxRnrNaks);
        a.post_send(&[SendWr::send(1, vec![local.sge(0, 9)])]).unwrap();
        for _ in 0..200 {
            if counted(CounterId::RxRnrNaks) - naks > 20 {
                break;
            }
            pair.run(5000).unwrap();
        }
        assert!(counted(CounterId::RxRnrNaks) - naks > 20);
        assert_eq!(pair.ends[0].send_cq.poll(1).unwrap(), []);
        let sink = pair.ends[1].region(64, all_access(), |_| 0).unwrap();
        b.post_recv(&[RecvWr {
            wr_id: 5,
            sges: vec![sink.sge(0, 64)],
        }])
        .unwrap();
        assert_eq!(
            pair.ends[0].send_cq.wait(1, BUDGET).unwrap()[0].status,
            WcStatus::Success
        );
        assert_eq!(pair.ends[1].recv_cq.wait(1, BUDGET).unwrap()[0].byte_len, 9);
        a.destroy().unwrap();
        b.destroy().unwrap();
    });
}

#[test]
fn messages_of_length_zero_work_in_each_kind() {
    each_width(|pair, _| {
        let [a, b] = pair.connected(Mtu::Mtu1024, [0xff_fffe, 1]).unwrap();
        let untouched = pair.ends[1].region(64, all_access(), |_| 0x5a).unwrap();
        for kind in [
            WqeOpcode::Send,
            WqeOpcode::SendWithImm,
            WqeOpcode::RdmaWrite,
            WqeOpcode::RdmaWriteWithImm,
            WqeOpcode::RdmaRead,
        ] {
            // Neither key nor address are looked at; a receive may have room, none, or no element at all.
            for room in [None, Some(0), Some(64)] {
                let recv = !matches!(kind, WqeOpcode::RdmaWrite | WqeOpcode::RdmaRead);
                if recv {
                    let sges = room.map(|n| untouched.sge(0, n)).into_iter().collect();
                    b.post_recv(&[RecvWr { wr_id: 3, sges }]).unwrap();
                }
                let mut wr = SendWr::new(1, kind, Vec::new());
                wr.rkey = RKey(0xdead_beef);
                wr.remote_addr = openrnic_driver::Iova(u64::MAX);
                wr.imm = 7;
                a.post_send(&[wr]).unwrap();
                let done = pair.ends[0].send_cq.wait(1, BUDGET).unwrap();
                assert_eq!(done[0].status, WcStatus::Success, "{kind:?}");
                if kind == WqeOpcode::RdmaRead {
                    assert_eq!(done[0].byte_len, 0);
                }
                if recv {
                    let got = pair.ends[1].recv_cq.wait(1, BUDGET).unwrap();
                    assert_eq!((got[0].status, got[0].byte_len), (WcStatus::Success, 0), "{kind:?}");
                    assert_eq!(got[0].imm, (kind != WqeOpcode::Send).then_some(7), "{kind:?}");
                }
            }
        }
        assert_eq!(untouched.read(0, 64).unwrap(), [0x5a; 64]);
    });
}
