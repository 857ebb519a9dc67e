// SPDX-License-Identifier: Apache-2.0
//! Shared receive queues between two whole NICs, at both widths: several QPs on one queue, slots that come back in any
//! order, an empty queue, the limit, ERR and RESET with messages in progress. Every byte is checked.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use openrnic_driver::spec::{CmdStatus, CounterId, EventType, Mtu, QpState, QpType, WcStatus, WqeOpcode};
use openrnic_driver::{QpInit, QueuePair, RecvWr, SendWr, SharedReceiveQueue, SrqInit};
use openrnic_sim::NicBus;
use openrnic_sim::rng::Stream;
use openrnic_testbench::e2e::{Pair, all_access, each_width};

type Qp = QueuePair<NicBus>;
type Srq = SharedReceiveQueue<NicBus>;

const BUDGET: u64 = 400_000;

/// `count` connected pairs; end 1 receives from a queue of `max_wr`.
fn shared(pair: &Pair, count: u32, max_wr: u32, mtu: Mtu) -> (Srq, Vec<[Qp; 2]>) {
    let end = &pair.ends[1];
    let srq = end
        .pd
        .create_srq(&SrqInit {
            max_wr,
            max_sge: 2,
            uar: 1,
        })
        .unwrap();
    let pairs = (0..count).map(|_| connect(pair, &srq, mtu)).collect();
    (srq, pairs)
}

fn connect(pair: &Pair, srq: &Srq, mtu: Mtu) -> [Qp; 2] {
    let a = pair.ends[0].pd.create_qp(&pair.ends[0].qp_init()).unwrap();
    let init = QpInit {
        srq: Some(srq.srqn()),
        ..pair.ends[1].qp_init()
    };
    let b = pair.ends[1].pd.create_qp(&init).unwrap();
    for qp in [&a, &b] {
        let attr = openrnic_driver::QpAttr {
            qp_state: QpState::Init,
            ..Default::default()
        };
        qp.modify(&attr, openrnic_driver::attr::INIT_MASK).unwrap();
    }
    pair.connect([&a, &b], mtu, [100, 200]).unwrap();
    [a, b]
}

fn events(pair: &Pair, of: EventType) -> Vec<u32> {
    let mut all = Vec::new();
    while let Some(event) = pair.ends[1].device.get_async_event().unwrap() {
        if event.event == of {
            all.push(event.number);
        } else {
            assert!(
                matches!(event.event, EventType::CommEst | EventType::PortActive),
                "{event:?}"
            );
        }
    }
    all
}

#[test]
fn random_messages_of_several_qps_use_one_queue_and_its_slots_in_any_order() {
    const SPAN: usize = 2048;
    const WR: usize = 11;
    each_width(|pair, seed| {
        let mut rng = Stream::new(seed, "srq traffic", 0);
        let (srq, qps) = shared(&pair, 5, WR as u32, Mtu::Mtu256);
        assert_eq!(srq.query().unwrap().max_wr, 15);
        let src = pair.ends[0]
            .region(1 << 14, all_access(), |i| ((i * 7) ^ (i >> 6)) as u8)
            .unwrap();
        let source = src.read(0, 1 << 14).unwrap();
        let dst = pair.ends[1].region(SPAN * 16, all_access(), |_| 0x5a).unwrap();
        let mut expected = vec![0x5a; SPAN * 16];
        // Work request n receives into a place of its own; free places are posted in any order.
        let mut free: Vec<usize> = (0..15).collect();
        let mut at = [0; 16];
        let mut sent = 0;
        for round in 0..12 {
            while free.len() > 3 {
                let n = free.remove(rng.below(free.len() as u64) as usize);
                at[n] = SPAN * n + 1 + rng.below(60) as usize;
                let first = 1 + rng.below(300) as u32;
                srq.post_recv(&[RecvWr {
                    wr_id: n as u64,
                    sges: vec![dst.sge(at[n], first), dst.sge(at[n] + first as usize, 1200 - first)],
                }])
                .unwrap();
            }
            let mut messages = Vec::new();
            for _ in 0..1 + rng.below(8) {
                let q = rng.below(qps.len() as u64) as usize;
                let (from, len) = (rng.below(8000) as usize, rng.below(1200) as u32);
                let mut wr = SendWr::send(0, if len == 0 { vec![] } else { vec![src.sge(from, len)] });
                if rng.chance(0.3) {
                    wr = wr.with_imm(len);
                }
                qps[q][0].post_send(&[wr]).unwrap();
                messages.push((qps[q][1].qpn(), from, len));
            }
            sent += messages.len();
            let got = pair.ends[1].recv_cq.wait(messages.len(), BUDGET).unwrap();
            pair.ends[0].send_cq.wait(messages.len(), BUDGET).unwrap();
            for c in got {
                assert_eq!(c.status, WcStatus::Success);
                // The oldest message of that QP.
                let i = messages.iter().position(|m| m.0 == c.qpn).unwrap();
                let (_, from, len) = messages.remove(i);
                assert_eq!(c.byte_len, len, "round {round}");
                let n = c.wr_id as usize;
                expected[at[n]..at[n] + len as usize].copy_from_slice(&source[from..from + len as usize]);
                free.push(n);
            }
            let mem = dst.read(0, SPAN * 16).unwrap();
            if let Some(i) = (0..mem.len()).find(|i| mem[*i] != expected[*i]) {
                panic!("round {round}: byte {i} is {:#x}, expected {:#x}", mem[i], expected[i]);
            }
        }
        assert!(sent > 30);
        assert!(pair.world.borrow_mut().take_violations().is_empty());
    });
}

#[test]
fn an_empty_queue_holds_its_senders_back_until_somebody_posts() {
    each_width(|pair, _| {
        let (srq, qps) = shared(&pair, 2, 3, Mtu::Mtu1024);
        let src = pair.ends[0].region(4096, all_access(), |i| i as u8).unwrap();
        let dst = pair.ends[1].region(4096, all_access(), |_| 0).unwrap();
        for [a, _] in &qps {
            a.post_send(&[SendWr::send(1, vec![src.sge(0, 100)])]).unwrap();
        }
        pair.run(20_000).unwrap();
        assert!(pair.ends[1].device.counter(CounterId::TxRnrNaks).unwrap() >= 2);
        assert_eq!(pair.ends[1].recv_cq.poll(4).unwrap(), []);
        for n in 0..2usize {
            srq.post_recv(&[RecvWr {
                wr_id: n as u64,
                sges: vec![dst.sge(2000 * n, 100)],
            }])
            .unwrap();
        }
        let done = pair.ends[1].recv_cq.wait(2, 4 * BUDGET).unwrap();
        assert!(done.iter().all(|c| c.status == WcStatus::Success && c.byte_len == 100));
        pair.ends[0].send_cq.wait(2, BUDGET).unwrap();
        assert_eq!(dst.read(0, 100).unwrap(), src.read(0, 100).unwrap());
        assert_eq!(dst.read(2000, 100).unwrap(), src.read(0, 100).unwrap());
        assert_eq!(srq.query().unwrap().waiting, 0);
    });
}

#[test]
fn the_limit_is_told_once_and_a_queue_in_use_stays() {
    each_width(|pair, _| {
        let (srq, qps) = shared(&pair, 2, 7, Mtu::Mtu1024);
        let src = pair.ends[0].region(4096, all_access(), |i| i as u8).unwrap();
        let dst = pair.ends[1].region(4096, all_access(), |_| 0).unwrap();
        let wr = |n| RecvWr {
            wr_id: n,
            sges: vec![dst.sge(0, 512)],
        };
        srq.post_recv(&(0..7).map(wr).collect::<Vec<_>>()).unwrap();
        srq.set_limit(6).unwrap();
        let one = |q: usize| {
            qps[q][0].post_send(&[SendWr::send(1, vec![src.sge(0, 100)])]).unwrap();
            pair.ends[1].recv_cq.wait(1, BUDGET).unwrap();
            pair.run(500).unwrap();
            events(&pair, EventType::SrqLimitReached)
        };
        assert!(one(0).is_empty());
        assert_eq!(one(1), [u32::from(srq.srqn().0)]);
        assert_eq!(srq.query().unwrap().limit, 0);
        assert!(one(0).is_empty());
        assert_eq!(srq.query().unwrap().waiting, 4);
        let e = srq.destroy().unwrap_err();
        assert_eq!(e.status(), Some(CmdStatus::InUse), "{e}");
        for [_, b] in &qps {
            b.destroy().unwrap();
        }
        srq.destroy().unwrap();
        assert!(pair.world.borrow_mut().take_violations().is_empty());
    });
}

/// A message whose first packets have come and whose last ones have not.
fn half_a_message(pair: &Pair, [a, b]: &[Qp; 2], src: openrnic_driver::Sge, srq: &Srq) {
    let left = srq.query().unwrap().waiting;
    a.post_send(&[SendWr::new(1, WqeOpcode::Send, vec![src])]).unwrap();
    for _ in 0..400 {
        pair.run(20).unwrap();
        if srq.query().unwrap().waiting < left {
            break;
        }
    }
    assert_eq!(srq.query().unwrap().waiting, left - 1, "the message has begun");
    // The sender falls silent in the middle of it.
    a.to_err().unwrap();
    pair.run(5000).unwrap();
    assert_eq!(b.query().unwrap().state, QpState::Rts);
}

#[test]
fn err_flushes_the_message_in_progress_then_tells_that_it_was_the_last() {
    each_width(|pair, _| {
        let (srq, qps) = shared(&pair, 2, 3, Mtu::Mtu256);
        let src = pair.ends[0].region(1 << 20, all_access(), |i| i as u8).unwrap();
        let dst = pair.ends[1].region(1 << 20, all_access(), |_| 0).unwrap();
        for wr_id in 40..43 {
            let sges = vec![dst.sge(0, 1 << 20)];
            srq.post_recv(&[RecvWr { wr_id, sges }]).unwrap();
        }
        half_a_message(&pair, &qps[0], src.sge(0, 1 << 20), &srq);
        qps[0][1].to_err().unwrap();
        pair.run(2000).unwrap();
        assert_eq!(events(&pair, EventType::QpLastWqeReached), [qps[0][1].qpn().0]);
        let done = pair.ends[1].recv_cq.poll(8).unwrap();
        assert_eq!(done.len(), 1);
        assert_eq!((done[0].wr_id, done[0].status), (40, WcStatus::WrFlushErr));
        // The others were not flushed: the second QP uses them.
        assert_eq!(srq.query().unwrap().waiting, 2);
        qps[1][0].post_send(&[SendWr::send(1, vec![src.sge(0, 300)])]).unwrap();
        let done = pair.ends[1].recv_cq.wait(1, BUDGET).unwrap();
        assert_eq!((done[0].wr_id, done[0].status), (41, WcStatus::Success));
    });
}

#[test]
fn reset_and_destroy_give_the_slot_of_a_message_in_progress_back() {
    each_width(|pair, _| {
        let (srq, qps) = shared(&pair, 2, 3, Mtu::Mtu256);
        let src = pair.ends[0].region(1 << 20, all_access(), |i| i as u8).unwrap();
        let dst = pair.ends[1].region(1 << 20, all_access(), |_| 0).unwrap();
        let wr = |wr_id| RecvWr {
            wr_id,
            sges: vec![dst.sge(0, 1 << 20)],
        };
        srq.post_recv(&[wr(0), wr(1), wr(2)]).unwrap();
        half_a_message(&pair, &qps[0], src.sge(0, 1 << 20), &srq);
        half_a_message(&pair, &qps[1], src.sge(0, 1 << 20), &srq);
        qps[0][1].to_reset().unwrap();
        qps[1][1].destroy().unwrap();
        // Nobody is told, and two slots are free again.
        pair.run(2000).unwrap();
        assert_eq!(pair.ends[1].recv_cq.poll(8).unwrap(), []);
        assert_eq!(srq.query().unwrap().waiting, 1);
        srq.post_recv(&[wr(3), wr(4)]).unwrap();
        assert!(srq.post_recv(&[wr(5)]).is_err());
        // All three are received into.
        let [a, _b] = connect(&pair, &srq, Mtu::Mtu256);
        for want in [2, 3, 4] {
            a.post_send(&[SendWr::send(1, vec![src.sge(0, 3000)])]).unwrap();
            let done = pair.ends[1].recv_cq.wait(1, BUDGET).unwrap();
            assert_eq!((done[0].wr_id, done[0].status), (want, WcStatus::Success));
        }
    });
}

#[test]
fn xrc_domains_and_dcts_are_there_for_control() {
    each_width(|pair, _| {
        let end = &pair.ends[1];
        let xrcd = end.device.alloc_xrcd().unwrap();
        let target = QpInit {
            xrcd: Some(xrcd.handle()),
            ..QpInit::new(QpType::XrcTgt, &end.recv_cq)
        };
        let qp = end.pd.create_qp(&target).unwrap();
        assert_eq!(qp.query().unwrap().init.pd(), xrcd.handle().0);
        assert_eq!(xrcd.dealloc().unwrap_err().status(), Some(CmdStatus::InUse));
        qp.destroy().unwrap();
        xrcd.dealloc().unwrap();
        let e = end
            .pd
            .create_qp(&QpInit::new(QpType::Dct, &end.recv_cq))
            .map(drop)
            .unwrap_err();
        assert_eq!(e.status(), Some(CmdStatus::BadParam));
        let srq = end.pd.create_srq(&SrqInit::default()).unwrap();
        let dct = QpInit {
            srq: Some(srq.srqn()),
            ..QpInit::new(QpType::Dct, &end.recv_cq)
        };
        let qp = end.pd.create_qp(&dct).unwrap();
        assert!(end.device.caps().unwrap().supports_type(QpType::Dct));
        let init = qp.query().unwrap().init;
        assert!(init.has_srq());
        assert_eq!((init.srq(), init.send_cq()), (srq.srqn().0, 0xffff));
        assert_eq!(srq.destroy().unwrap_err().status(), Some(CmdStatus::InUse));
        assert_eq!(end.pd.dealloc().unwrap_err().status(), Some(CmdStatus::InUse));
        qp.destroy().unwrap();
        srq.destroy().unwrap();
    });
}
