// SPDX-License-Identifier: Apache-2.0
//! Queue pairs of a whole NIC through their states with work on them: flushing, draining, forgetting, destroying, and the
//! asynchronous events that tell of it.
#![allow(clippy::unwrap_used)]

use openrnic_driver::spec::{Access, CmdStatus, EventType, GateRule, Mtu, QpAttrBit, QpState, WcStatus};
use openrnic_driver::{
    AsyncEvent, CqInit, Error, PostErrorKind, QpAttr, QpInit, QueuePair, RecvWr, SendWr, WorkCompletion, attr,
};
use openrnic_sim::NicBus;
use openrnic_testbench::e2e::{End, Pair, PairParams, all_access};

const BUDGET: u64 = 400_000;

fn each_width(test: impl Fn(Pair)) {
    for width in [64, 512] {
        println!("{width} bits");
        let pair = Pair::new(PairParams::new(width, 1)).unwrap();
        // What bring-up tells.
        for n in 0..2 {
            assert_eq!(event(&pair, n).event, EventType::PortActive);
        }
        test(pair);
    }
}

fn state(to: QpState) -> QpAttr {
    QpAttr {
        qp_state: to,
        ..QpAttr::default()
    }
}

fn wr_ids(done: &[WorkCompletion]) -> Vec<u64> {
    done.iter().map(|c| c.wr_id).collect()
}

/// The next asynchronous event of an end.
fn event(pair: &Pair, n: usize) -> AsyncEvent {
    for _ in 0..BUDGET / 200 {
        if let Some(event) = pair.ends[n].device.get_async_event().unwrap() {
            return event;
        }
        pair.run(200).unwrap();
    }
    panic!("no asynchronous event in {BUDGET} cycles");
}

fn no_event(end: &End) {
    assert_eq!(end.device.get_async_event().unwrap(), None);
}

/// `count` receives of 64 bytes, numbered from `first` on.
fn receives(end: &End, qp: &QueuePair<NicBus>, first: u64, count: u64) {
    let region = end.region(64 * count as usize, all_access(), |_| 0).unwrap();
    let list: Vec<RecvWr> = (0..count)
        .map(|i| RecvWr {
            wr_id: first + i,
            sges: vec![region.sge(64 * i as usize, 64)],
        })
        .collect();
    qp.post_recv(&list).unwrap();
}

#[test]
fn in_err_all_work_completes_flushed_once_and_in_order_and_so_does_what_is_posted_there() {
    each_width(|pair| {
        let [a, b] = pair.connected(Mtu::Mtu1024, [10, 20]).unwrap();
        let src = pair.ends[0].region(65536, all_access(), |i| i as u8).unwrap();
        let dst = pair.ends[1].region(65536, all_access(), |_| 0).unwrap();
        receives(&pair.ends[0], &a, 100, 7);
        receives(&pair.ends[1], &b, 200, 5);
        // Unsignaled requests are flushed with a completion, too.
        let write = |id| SendWr::write(id, vec![src.sge(0, 65536)], dst.iova(), dst.rkey());
        a.post_send(&[write(1), write(2).unsignaled(), write(3), write(4).unsignaled()])
            .unwrap();
        pair.run(1500).unwrap();
        a.to_err().unwrap();
        let sent = pair.ends[0].send_cq.wait(4, BUDGET).unwrap();
        assert_eq!(wr_ids(&sent), [1, 2, 3, 4]);
        assert!(
            sent.iter()
                .all(|c| c.status == WcStatus::WrFlushErr && c.qpn == a.qpn()),
            "{sent:?}"
        );
        let got = pair.ends[0].recv_cq.wait(7, BUDGET).unwrap();
        assert_eq!(wr_ids(&got), (100..107).collect::<Vec<_>>());
        assert!(got.iter().all(|c| c.status == WcStatus::WrFlushErr));
        // The peer is not touched: its receives stand.
        assert_eq!(pair.ends[1].recv_cq.poll(16).unwrap(), []);
        assert_eq!(b.query().unwrap().state, QpState::Rts);
        a.post_send(&[write(5), write(6).unsignaled()]).unwrap();
        receives(&pair.ends[0], &a, 110, 2);
        let sent = pair.ends[0].send_cq.wait(2, BUDGET).unwrap();
        let got = pair.ends[0].recv_cq.wait(2, BUDGET).unwrap();
        assert_eq!((wr_ids(&sent), wr_ids(&got)), (vec![5, 6], vec![110, 111]));
        assert!(sent.iter().chain(&got).all(|c| c.status == WcStatus::WrFlushErr));
        pair.run(5000).unwrap();
        for cq in [&pair.ends[0].send_cq, &pair.ends[0].recv_cq] {
            assert_eq!(cq.poll(16).unwrap(), []);
        }
        no_event(&pair.ends[0]);
    });
}

#[test]
fn to_reset_forgets_all_work_and_the_qp_lives_again() {
    each_width(|pair| {
        let qps = pair.connected(Mtu::Mtu1024, [10, 20]).unwrap();
        let [a, b] = &qps;
        let src = pair.ends[0].region(65536, all_access(), |i| i as u8).unwrap();
        let dst = pair.ends[1].region(65536, all_access(), |_| 0).unwrap();
        for round in 0..3 {
            receives(&pair.ends[0], a, 100, 7);
            receives(&pair.ends[1], b, 200, 5);
            let write = |id| SendWr::write(id, vec![src.sge(0, 65536)], dst.iova(), dst.rkey());
            a.post_send(&[write(1), write(2), write(3)]).unwrap();
            pair.run(1000 + 700 * round).unwrap();
            for qp in &qps {
                qp.to_reset().unwrap();
                let refused = [
                    qp.post_send(&[write(9)]),
                    qp.post_recv(&[RecvWr { wr_id: 9, sges: vec![] }]),
                ];
                for r in refused {
                    let Err(Error::Post(e)) = &r else { panic!("{r:?}") };
                    assert!(
                        matches!(e.kind, PostErrorKind::BadState { state: QpState::Reset }),
                        "{e}"
                    );
                    assert_eq!(e.kind.errno(), 22);
                }
            }
            pair.run(5000).unwrap();
            for end in &pair.ends {
                assert_eq!(end.send_cq.poll(64).unwrap(), []);
                assert_eq!(end.recv_cq.poll(64).unwrap(), []);
            }
            // A new life: other numbers on the wire, empty queues.
            for qp in &qps {
                qp.modify(&state(QpState::Init), attr::INIT_MASK).unwrap();
            }
            pair.connect([a, b], Mtu::Mtu1024, [1000 + round as u32, 77]).unwrap();
            receives(&pair.ends[1], b, 300, 1);
            a.post_send(&[SendWr::send(7, vec![src.sge(0, 64)])]).unwrap();
            let sent = pair.ends[0].send_cq.wait(1, BUDGET).unwrap();
            let got = pair.ends[1].recv_cq.wait(1, BUDGET).unwrap();
            assert_eq!((wr_ids(&sent), wr_ids(&got)), (vec![7], vec![300]));
            assert_eq!((sent[0].status, got[0].status), (WcStatus::Success, WcStatus::Success));
        }
    });
}

#[test]
fn a_qp_is_destroyed_from_any_state_under_traffic_and_its_neighbours_go_on() {
    each_width(|pair| {
        let [other, other_peer] = pair.connected(Mtu::Mtu1024, [1, 2]).unwrap();
        let src = pair.ends[0].region(65536, all_access(), |i| (i * 3) as u8).unwrap();
        let dst = pair.ends[1].region(65536, all_access(), |_| 0).unwrap();
        let read_into = pair.ends[0].region(65536, all_access(), |_| 0).unwrap();
        let write = |id| SendWr::write(id, vec![src.sge(0, 65536)], dst.iova(), dst.rkey());
        let rkey = dst.rkey();
        for to in [
            QpState::Reset,
            QpState::Init,
            QpState::Rtr,
            QpState::Rts,
            QpState::Sqd,
            QpState::Err,
        ] {
            let [a, b] = pair.connected(Mtu::Mtu1024, [10, 20]).unwrap();
            other.post_send(&[write(50)]).unwrap();
            if to < QpState::Rts {
                a.to_reset().unwrap();
            }
            if to >= QpState::Init && to < QpState::Rts {
                a.modify(&state(QpState::Init), attr::INIT_MASK).unwrap();
                receives(&pair.ends[0], &a, 100, 5);
            }
            if to == QpState::Rtr {
                let (rtr, _) = pair.connect_attrs(0, &b, Mtu::Mtu1024, [10, 20]);
                a.modify(&rtr, attr::RTR_MASK).unwrap();
                // Its peer sends to it.
                b.post_send(&[SendWr::send(60, vec![dst.sge(0, 64)]).unsignaled()])
                    .unwrap();
            }
            if to >= QpState::Rts {
                receives(&pair.ends[0], &a, 100, 5);
                let reads = SendWr::read(2, vec![read_into.sge(0, 65536)], dst.iova(), rkey);
                a.post_send(&[reads, write(3), write(4)]).unwrap();
                pair.run(900).unwrap();
            }
            if to > QpState::Rts {
                a.modify(&state(to), QpAttrBit::STATE).unwrap();
            }
            let was = a.query().unwrap().state;
            assert_eq!(was, to);
            a.destroy().unwrap();
            // From here on nothing of it is seen: no completion, no write into what it read into.
            read_into.write(0, &[0x77; 65536]).unwrap();
            let done = pair.ends[0].send_cq.wait(1, BUDGET).unwrap();
            assert_eq!((wr_ids(&done), done[0].status), (vec![50], WcStatus::Success), "{to}");
            pair.run(20_000).unwrap();
            assert_eq!(pair.ends[0].send_cq.poll(16).unwrap(), [], "{to}");
            assert_eq!(pair.ends[0].recv_cq.poll(16).unwrap(), [], "{to}");
            assert!(read_into.read(0, 65536).unwrap().iter().all(|b| *b == 0x77), "{to}");
            b.destroy().unwrap();
            for end in &pair.ends {
                while end.device.get_async_event().unwrap().is_some() {}
            }
        }
        for qp in [&other, &other_peer] {
            assert_eq!(qp.query().unwrap().state, QpState::Rts);
            qp.destroy().unwrap();
        }
        pair.ends[0].send_cq.destroy().unwrap();
    });
}

#[test]
fn access_flags_changed_in_rts_count_for_the_next_request() {
    each_width(|pair| {
        let [a, b] = pair.connected(Mtu::Mtu1024, [10, 20]).unwrap();
        let src = pair.ends[0].region(4096, all_access(), |i| i as u8).unwrap();
        let dst = pair.ends[1].region(4096, all_access(), |_| 0x33).unwrap();
        let flags = |access| QpAttr {
            access_flags: access,
            ..QpAttr::default()
        };
        let write = |id| SendWr::write(id, vec![src.sge(0, 4096)], dst.iova(), dst.rkey());
        let read = |id| SendWr::read(id, vec![src.sge(0, 4096)], dst.iova(), dst.rkey());
        let status = |wr: SendWr| {
            a.post_send(&[wr]).unwrap();
            pair.ends[0].send_cq.wait(1, BUDGET).unwrap()[0].status
        };
        b.modify(&flags(Access::REMOTE_READ), QpAttrBit::ACCESS_FLAGS).unwrap();
        assert_eq!(status(read(1)), WcStatus::Success);
        b.modify(&flags(Access::REMOTE_WRITE), QpAttrBit::ACCESS_FLAGS).unwrap();
        assert_eq!(status(write(2)), WcStatus::Success);
        dst.write(0, &[0x44; 4096]).unwrap();
        b.modify(&flags(Access::REMOTE_READ), QpAttrBit::ACCESS_FLAGS).unwrap();
        assert_eq!(status(write(3)), WcStatus::RemInvReqErr);
        assert!(dst.read(0, 4096).unwrap().iter().all(|byte| *byte == 0x44));
        assert_eq!(b.query().unwrap().state, QpState::Err);
    });
}

#[test]
fn sqd_finishes_what_was_started_says_so_once_and_holds_the_rest_until_rts() {
    // Longer than the commands of the test take, at 512 bits too.
    const LONG: u32 = 512 << 10;
    each_width(|pair| {
        let [a, b] = pair.connected(Mtu::Mtu1024, [10, 20]).unwrap();
        let src = pair.ends[0].region(LONG as usize, all_access(), |i| i as u8).unwrap();
        let dst = pair.ends[1].region(LONG as usize, all_access(), |_| 0).unwrap();
        let write = |id, len| SendWr::write(id, vec![src.sge(0, len)], dst.iova(), dst.rkey());
        let sqd = QpAttr {
            en_sqd_async_notify: true,
            ..state(QpState::Sqd)
        };
        a.post_send(&[write(1, LONG)]).unwrap();
        pair.run(1500).unwrap();
        a.modify(&sqd, QpAttrBit::STATE | QpAttrBit::EN_SQD_ASYNC_NOTIFY)
            .unwrap();
        let query = a.query().unwrap();
        assert!(
            query.sq_draining && query.state == QpState::Sqd,
            "the message is longer than that"
        );
        a.post_send(&[write(2, 64)]).unwrap();
        let too_early = a.modify(&state(QpState::Rts), QpAttrBit::STATE).unwrap_err();
        assert_eq!(too_early.gate().map(|g| g.rule), Some(GateRule::Draining));
        // It goes on answering its peer meanwhile.
        b.post_send(&[SendWr::read(3, vec![dst.sge(0, 64)], src.iova(), src.rkey())])
            .unwrap();
        assert_eq!(
            pair.ends[1].send_cq.wait(1, BUDGET).unwrap()[0].status,
            WcStatus::Success
        );
        let drained = event(&pair, 0);
        assert_eq!((drained.event, drained.number), (EventType::SqDrained, a.qpn().0));
        assert!(!a.query().unwrap().sq_draining);
        let done = pair.ends[0].send_cq.wait(1, BUDGET).unwrap();
        assert_eq!((wr_ids(&done), done[0].status), (vec![1], WcStatus::Success));
        pair.run(20_000).unwrap();
        assert_eq!(
            pair.ends[0].send_cq.poll(4).unwrap(),
            [],
            "what was posted in SQD waits"
        );
        no_event(&pair.ends[0]);
        // Now attributes may change.
        let timeout = QpAttr {
            timeout: 9,
            retry_cnt: 3,
            ..QpAttr::default()
        };
        a.modify(&timeout, QpAttrBit::TIMEOUT | QpAttrBit::RETRY_CNT).unwrap();
        let set = a.query().unwrap().attr;
        assert_eq!((set.timeout, set.retry_cnt), (9, 3));
        a.modify(&state(QpState::Rts), QpAttrBit::STATE).unwrap();
        let done = pair.ends[0].send_cq.wait(1, BUDGET).unwrap();
        assert_eq!((wr_ids(&done), done[0].status), (vec![2], WcStatus::Success));
        // Without the wish there is no event, and an idle queue is drained at once.
        a.modify(&state(QpState::Sqd), QpAttrBit::STATE).unwrap();
        pair.run(2000).unwrap();
        assert!(!a.query().unwrap().sq_draining);
        no_event(&pair.ends[0]);
    });
}

#[test]
fn the_first_packet_in_rtr_is_told_as_comm_est_once() {
    each_width(|pair| {
        let [a, b] = pair.install(1).unwrap();
        let [a, b] = [a.qps().pop().unwrap(), b.qps().pop().unwrap()];
        let (rtr, rts) = pair.connect_attrs(0, &b, Mtu::Mtu1024, [5, 6]);
        a.modify(&rtr, attr::RTR_MASK).unwrap();
        a.modify(&rts, attr::RTS_MASK).unwrap();
        let (rtr, rts) = pair.connect_attrs(1, &a, Mtu::Mtu1024, [5, 6]);
        b.modify(&rtr, attr::RTR_MASK).unwrap();
        receives(&pair.ends[1], &b, 1, 2);
        let src = pair.ends[0].region(64, all_access(), |i| i as u8).unwrap();
        let before = pair.ends[1].device.interrupts().unwrap()[0];
        for id in 0..2 {
            a.post_send(&[SendWr::send(id, vec![src.sge(0, 64)])]).unwrap();
            pair.ends[0].send_cq.wait(1, BUDGET).unwrap();
        }
        let told = event(&pair, 1);
        assert_eq!((told.event, told.number), (EventType::CommEst, b.qpn().0));
        assert!(pair.ends[1].device.interrupts().unwrap()[0] > before, "MSI-X vector 0");
        pair.run(3000).unwrap();
        no_event(&pair.ends[1]);
        b.modify(&rts, attr::RTS_MASK).unwrap();
    });
}

#[test]
fn a_request_that_the_responder_refuses_is_told_at_its_side() {
    each_width(|pair| {
        let src = pair.ends[0].region(64, all_access(), |i| i as u8).unwrap();
        let dst = pair.ends[1].region(64, all_access(), |_| 0).unwrap();
        let cases = [
            // A key that nobody has: QP_ACCESS_ERR. An operation that the QP does not allow: QP_REQ_ERR.
            (
                dst.rkey().0 ^ 0x55,
                Access::REMOTE_WRITE,
                WcStatus::RemAccessErr,
                EventType::QpAccessErr,
            ),
            (
                dst.rkey().0,
                Access::REMOTE_READ,
                WcStatus::RemInvReqErr,
                EventType::QpReqErr,
            ),
        ];
        for (rkey, access, status, event_type) in cases {
            let [a, b] = pair.connected(Mtu::Mtu1024, [10, 20]).unwrap();
            let attr = QpAttr {
                access_flags: access,
                ..QpAttr::default()
            };
            b.modify(&attr, QpAttrBit::ACCESS_FLAGS).unwrap();
            let wr = SendWr::write(1, vec![src.sge(0, 64)], dst.iova(), openrnic_driver::RKey(rkey));
            a.post_send(&[wr]).unwrap();
            assert_eq!(pair.ends[0].send_cq.wait(1, BUDGET).unwrap()[0].status, status);
            let told = event(&pair, 1);
            assert_eq!((told.event, told.number), (event_type, b.qpn().0));
            assert_eq!(b.query().unwrap().state, QpState::Err);
            no_event(&pair.ends[0]);
            a.destroy().unwrap();
            b.destroy().unwrap();
        }
    });
}

#[test]
fn a_cq_that_overruns_is_told_and_takes_its_qp_to_err_and_no_other() {
    each_width(|pair| {
        let end = &pair.ends[1];
        let [x, y] = pair.connected(Mtu::Mtu1024, [1, 2]).unwrap();
        let small = end.device.create_cq(&CqInit::entries(4)).unwrap();
        let init = QpInit {
            recv_cq: small.cqn(),
            ..end.qp_init()
        };
        let b = end.pd.create_qp(&init).unwrap();
        let a = pair.ends[0].pd.create_qp(&pair.ends[0].qp_init()).unwrap();
        for qp in [&a, &b] {
            qp.modify(&state(QpState::Init), attr::INIT_MASK).unwrap();
        }
        pair.connect([&a, &b], Mtu::Mtu1024, [10, 20]).unwrap();
        receives(end, &b, 1, 12);
        let src = pair.ends[0].region(64, all_access(), |i| i as u8).unwrap();
        let list: Vec<SendWr> = (0..12).map(|i| SendWr::send(i, vec![src.sge(0, 64)])).collect();
        a.post_send(&list).unwrap();
        let told = event(&pair, 1);
        assert_eq!((told.event, told.number), (EventType::CqErr, u32::from(small.cqn().0)));
        let mut budget = BUDGET;
        while b.query().unwrap().state != QpState::Err {
            assert!(
                budget > 0,
                "the QP of an overrun CQ stays in {}",
                b.query().unwrap().state
            );
            pair.run(500).unwrap();
            budget = budget.saturating_sub(500);
        }
        // Others go on.
        receives(end, &y, 1, 1);
        x.post_send(&[SendWr::send(70, vec![src.sge(0, 64)])]).unwrap();
        let got = end.recv_cq.wait(1, BUDGET).unwrap();
        assert_eq!((got[0].status, got[0].qpn), (WcStatus::Success, y.qpn()));
    });
}

#[test]
fn the_port_going_down_and_up_is_told() {
    each_width(|pair| {
        let end = &pair.ends[0];
        for (up, event_type) in [(false, EventType::PortErr), (true, EventType::PortActive)] {
            end.device.set_port(1, end.mac, Mtu::Mtu4096, up).unwrap();
            let told = event(&pair, 0);
            assert_eq!((told.event, told.number), (event_type, 1));
            no_event(end);
        }
    });
}

#[test]
fn a_refused_modify_leaves_every_attribute_and_the_work_as_they_were() {
    each_width(|pair| {
        let [a, b] = pair.connected(Mtu::Mtu1024, [10, 20]).unwrap();
        receives(&pair.ends[1], &b, 1, 1);
        let before = b.query().unwrap();
        let attempts = [
            (state(QpState::Init), QpAttrBit::STATE, GateRule::IllegalEdge),
            (
                state(QpState::Sqd),
                QpAttrBit::STATE | QpAttrBit::PORT,
                GateRule::ExcessAttrs,
            ),
            (
                QpAttr {
                    cur_qp_state: QpState::Sqd,
                    ..state(QpState::Rts)
                },
                QpAttrBit::STATE | QpAttrBit::CUR_STATE,
                GateRule::WrongCurState,
            ),
            (
                QpAttr {
                    min_rnr_timer: 32,
                    ..state(QpState::Rts)
                },
                QpAttrBit::STATE | QpAttrBit::MIN_RNR_TIMER,
                GateRule::BadValue,
            ),
        ];
        for (attr, mask, rule) in attempts {
            let refused = b.modify(&attr, mask).unwrap_err();
            assert_eq!(refused.status(), Some(CmdStatus::GateRefused), "{refused}");
            assert_eq!(refused.gate().map(|g| g.rule), Some(rule));
            let after = b.query().unwrap();
            assert_eq!((after.record, after.init), (before.record, before.init));
        }
        let src = pair.ends[0].region(64, all_access(), |i| i as u8).unwrap();
        a.post_send(&[SendWr::send(1, vec![src.sge(0, 64)])]).unwrap();
        assert_eq!(
            pair.ends[1].recv_cq.wait(1, BUDGET).unwrap()[0].status,
            WcStatus::Success
        );
    });
}
