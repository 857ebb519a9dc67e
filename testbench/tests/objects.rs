// SPDX-License-Identifier: Apache-2.0
//! Objects of a whole NIC: what is in use stays, memory regions end where they end, completion queues are resized
//! and moderated under traffic.
#![allow(clippy::unwrap_used)]

use openrnic_driver::spec::{CmdStatus, Mtu, QpState, QpType, WcStatus};
use openrnic_driver::{CqInit, CqModeration, QpCap, QpFilter, RecvWr, SendWr};
use openrnic_testbench::e2e::{Pair, PairParams, all_access, each_width};

const BUDGET: u64 = 400_000;

fn pair() -> Pair {
    Pair::new(PairParams::new(64, 1)).unwrap()
}

#[test]
fn a_domain_or_queue_in_use_is_not_destroyed() {
    let pair = pair();
    let end = &pair.ends[0];
    let qp = end.pd.create_qp(&end.qp_init()).unwrap();
    let refused = |what: &str, result: openrnic_driver::Result<()>| {
        let status = result.as_ref().err().and_then(|e| e.status());
        assert_eq!(status, Some(CmdStatus::InUse), "{what}: {result:?}");
    };
    refused("domain", end.pd.dealloc());
    refused("send queue", end.send_cq.destroy());
    refused("receive queue", end.recv_cq.destroy());
    assert_eq!(qp.query().unwrap().attr.qp_state, QpState::Reset);
    qp.destroy().unwrap();
    end.send_cq.destroy().unwrap();
    end.recv_cq.destroy().unwrap();
    end.pd.dealloc().unwrap();
}

#[test]
fn the_device_lists_its_qps_by_state_type_and_domain() {
    let pair = pair();
    let end = &pair.ends[0];
    let device = end.pd.device();
    let all = QpFilter::default();
    assert_eq!(device.list_qps(all).unwrap(), []);
    let mut made: Vec<_> = (0..5).map(|_| end.pd.create_qp(&end.qp_init()).unwrap()).collect();
    made[3].to_reset().unwrap();
    made.remove(1).destroy().unwrap();
    let numbers: Vec<_> = made.iter().map(openrnic_driver::QueuePair::qpn).collect();
    assert_eq!(device.list_qps(all).unwrap(), numbers);
    let of = |state, qp_type, pd| device.list_qps(QpFilter { state, qp_type, pd }).unwrap();
    assert_eq!(
        of(Some(QpState::Reset), Some(QpType::Rc), Some(end.pd.handle())),
        numbers
    );
    assert_eq!(of(Some(QpState::Err), None, None), []);
    assert_eq!(of(None, Some(QpType::Ud), None), []);
    let other = device.alloc_pd().unwrap();
    assert_eq!(of(None, None, Some(other.handle())), []);
}

#[test]
fn a_write_beyond_its_region_changes_nothing_and_fails_at_both_ends() {
    let pair = pair();
    // Two regions side by side, so that bytes behind the first are memory that exists.
    let src = pair.ends[0].region(4096, all_access(), |i| i as u8).unwrap();
    let dst = pair.ends[1].region(4096, all_access(), |_| 0x5a).unwrap();
    let next = pair.ends[1].region(4096, all_access(), |_| 0x5a).unwrap();
    for (at, len) in [(4000u64, 97u32), (4096, 1), (4095, 2), (u64::MAX, 2)] {
        let [a, b] = pair.connected(Mtu::Mtu1024, [100, 200]).unwrap();
        let to = dst.sge(0, 1).addr.offset(at);
        a.post_send(&[SendWr::write(1, vec![src.sge(0, len)], to, dst.rkey())])
            .unwrap();
        let done = pair.ends[0].send_cq.wait(1, BUDGET).unwrap();
        assert_eq!(done[0].status, WcStatus::RemAccessErr, "{len} bytes at {at}");
        pair.run(2000).unwrap();
        assert_eq!(b.query().unwrap().attr.qp_state, QpState::Err);
        a.destroy().unwrap();
        b.destroy().unwrap();
    }
    for region in [&dst, &next] {
        assert!(region.read(0, 4096).unwrap().iter().all(|byte| *byte == 0x5a));
    }
    // What ends at its end is taken.
    let [a, _b] = pair.connected(Mtu::Mtu1024, [100, 200]).unwrap();
    let last = dst.sge(4000, 96);
    a.post_send(&[SendWr::write(2, vec![src.sge(0, 96)], last.addr, dst.rkey())])
        .unwrap();
    assert_eq!(
        pair.ends[0].send_cq.wait(1, BUDGET).unwrap()[0].status,
        WcStatus::Success
    );
}

/// Sends of 64 bytes from end 0 to end 1, on one QP pair with queues of their own: 16 of each may be outstanding.
const DEEP: u32 = 16;

#[test]
fn completion_queues_are_resized_under_traffic_and_nothing_is_lost() {
    each_width(|pair, _| {
        const TOTAL: u64 = 160;
        let [from, to] = &pair.ends;
        let scq = from.device.create_cq(&CqInit::entries(DEEP)).unwrap();
        let rcq = to.device.create_cq(&CqInit::entries(DEEP)).unwrap();
        let cap = QpCap {
            max_send_wr: DEEP,
            max_recv_wr: DEEP,
            ..QpCap::default()
        };
        let make = |n: usize, cq: &openrnic_driver::CompletionQueue<_>| {
            let end = &pair.ends[n];
            let init = openrnic_driver::QpInit {
                send_cq: cq.cqn(),
                recv_cq: cq.cqn(),
                cap,
                ..end.qp_init()
            };
            let qp = end.pd.create_qp(&init).unwrap();
            let attr = openrnic_driver::QpAttr {
                qp_state: QpState::Init,
                ..Default::default()
            };
            qp.modify(&attr, openrnic_driver::attr::INIT_MASK).unwrap();
            qp
        };
        let (a, b) = (make(0, &scq), make(1, &rcq));
        pair.connect([&a, &b], Mtu::Mtu1024, [7, 9]).unwrap();
        let src = from.region(4096, all_access(), |i| i as u8).unwrap();
        let dst = to.region(4096, all_access(), |_| 0).unwrap();
        let recv = |id: u64| RecvWr {
            wr_id: id,
            sges: vec![dst.sge(0, 64)],
        };
        let (mut sent, mut done) = (0u64, [0u64; 2]);
        b.post_recv(&(0..u64::from(DEEP)).map(recv).collect::<Vec<_>>())
            .unwrap();
        let mut resized = 0;
        for round in 0.. {
            let room = u64::from(DEEP) - (sent - done[0].min(done[1]));
            let n = room.min(TOTAL - sent).min(5 + round % 7);
            let wrs: Vec<SendWr> = (sent..sent + n)
                .map(|id| SendWr::send(id, vec![src.sge(0, 64)]))
                .collect();
            a.post_send(&wrs).unwrap();
            sent += n;
            pair.run(100 + 37 * (round % 5)).unwrap();
            // While messages are on their way; never below what may be outstanding.
            let entries = [DEEP, 64, 1024, 32][(round % 4) as usize];
            let cq = if round % 2 == 0 { &scq } else { &rcq };
            cq.resize(entries).unwrap();
            assert_eq!(cq.capacity(), entries);
            resized += 1;
            for (n, cq) in [&scq, &rcq].into_iter().enumerate() {
                for c in cq.poll(3 + (round % 9) as usize).unwrap() {
                    assert_eq!((c.wr_id, c.status), (done[n], WcStatus::Success), "in their order");
                    done[n] += 1;
                    if n == 1 && c.wr_id + u64::from(DEEP) < TOTAL {
                        b.post_recv(&[recv(c.wr_id + u64::from(DEEP))]).unwrap();
                    }
                }
            }
            if done == [TOTAL; 2] {
                break;
            }
            assert!(round < 600, "{done:?} of {TOTAL}");
        }
        println!("{resized} times");
        assert!(resized >= 20);
        // Fewer entries than completions wait: refused by name, and nothing has changed.
        let wrs: Vec<SendWr> = (0..6)
            .map(|id| SendWr::write(id, vec![src.sge(0, 64)], dst.sge(0, 1).addr, dst.rkey()))
            .collect();
        a.post_send(&wrs).unwrap();
        pair.run(8000).unwrap();
        let before = scq.capacity();
        for entries in [4, 2] {
            assert_eq!(scq.resize(entries).unwrap_err().status(), Some(CmdStatus::TooSmall));
            assert_eq!(scq.capacity(), before);
        }
        scq.resize(6).unwrap();
        assert_eq!(scq.capacity(), 8);
        let ids: Vec<u64> = scq.poll(10).unwrap().iter().map(|c| c.wr_id).collect();
        assert_eq!(ids, [0, 1, 2, 3, 4, 5]);
        // A queue that overran stays in error.
        scq.resize(2).unwrap();
        a.post_send(&wrs[..4]).unwrap();
        pair.run(8000).unwrap();
        assert_eq!(scq.resize(64).unwrap_err().status(), Some(CmdStatus::InError));
        assert_eq!(a.query().unwrap().attr.qp_state, QpState::Err);
    });
}

#[test]
fn a_moderated_queue_wakes_its_driver_seldom_and_never_too_late() {
    each_width(|pair, _| {
        const TOTAL: usize = 40;
        let [from, to] = &pair.ends;
        let [a, _b] = pair.connected(Mtu::Mtu1024, [7, 9]).unwrap();
        let src = from.region(4096, all_access(), |i| i as u8).unwrap();
        let dst = to.region(4096, all_access(), |_| 0).unwrap();
        let cq = &from.send_cq;
        let us = 1_000_000 / u64::from(from.device.caps().unwrap().clk_period_ps);
        // A driver that sleeps until its event: events, and cycles that the last one took.
        let sleeper = || {
            let (mut posted, mut done, mut events, mut slept) = (0, 0, 0, 0);
            cq.req_notify(false).unwrap();
            while done < TOTAL {
                while posted < TOTAL && posted - done < 16 {
                    let to = dst.sge(0, 1).addr;
                    a.post_send(&[SendWr::write(posted as u64, vec![src.sge(0, 64)], to, dst.rkey())])
                        .unwrap();
                    posted += 1;
                }
                slept = 0;
                while from.device.get_cq_event(1).unwrap().is_none() {
                    pair.run(50).unwrap();
                    slept += 50;
                    assert!(slept < BUDGET, "an event was lost: {done} completions");
                }
                events += 1;
                let got = cq.poll(TOTAL).unwrap();
                assert!(got.iter().all(|c| c.status == WcStatus::Success));
                done += got.len();
                cq.req_notify(false).unwrap();
            }
            (events, slept)
        };
        let (plain, _) = sleeper();
        let period = 100;
        cq.modify(CqModeration { count: 16, period }).unwrap();
        let (moderated, last) = sleeper();
        println!("{plain} events, moderated {moderated}; the last after {last} cycles, a microsecond is {us}");
        // 16, 16, and the last 8 by the period.
        assert_eq!(moderated, 3);
        assert!(plain > 2 * moderated, "{plain} events");
        let period = u64::from(period) * us;
        assert!((period / 2..period + 20 * us).contains(&last));
        // Off again.
        cq.modify(CqModeration::default()).unwrap();
        assert!(sleeper().0 > 2 * moderated);
        let e = cq.modify(CqModeration { count: 1, period: 4096 }).unwrap_err();
        assert_eq!(e.status(), Some(CmdStatus::BadParam));
    });
}
