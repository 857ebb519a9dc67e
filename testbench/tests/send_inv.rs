// SPDX-License-Identifier: Apache-2.0
//! SEND with invalidate between two whole NICs, at both widths: the key is gone when the completion is there, whatever the wire
//! loses; and what cannot be invalidated, as both ends see it.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use openrnic_driver::spec::{CounterId, EventType, MrKind, Mtu, QpState, WcOpcode, WcStatus};
use openrnic_driver::{MemoryRegion, MrInit, QueuePair, RKey, RecvWr, SendWr};
use openrnic_sim::NicBus;
use openrnic_sim::wire::{Action, FaultRates, Rule, frame};
use openrnic_testbench::e2e::{Pair, all_access, each_width};

type Qp = QueuePair<NicBus>;
type Mr = MemoryRegion<NicBus>;

const BUDGET: u64 = 1_000_000;

/// A region of end 1 whose key may be invalidated.
fn fast(pair: &Pair) -> Mr {
    pair.ends[1]
        .pd
        .register(&MrInit {
            kind: MrKind::FastReg,
            ..MrInit::new(4096, all_access())
        })
        .unwrap()
}

fn receive(b: &Qp, wr_id: u64, sink: &Mr, at: usize, len: u32) {
    let sges = vec![sink.sge(at, len)];
    b.post_recv(&[RecvWr { wr_id, sges }]).unwrap();
}

/// A WRITE to the region is refused: its key names nothing any more.
fn is_gone(pair: &Pair, region: &Mr) {
    let [a, b] = pair.connected(Mtu::Mtu256, [1, 2]).unwrap();
    let source = pair.ends[0].region(64, all_access(), |_| 9).unwrap();
    a.post_send(&[SendWr::write(5, vec![source.sge(0, 8)], region.iova(), region.rkey())])
        .unwrap();
    let done = pair.ends[0].send_cq.wait(1, BUDGET).unwrap();
    assert_eq!(done[0].status, WcStatus::RemAccessErr);
    for qp in [a, b] {
        qp.destroy().unwrap();
    }
    pair.ends[1].events().unwrap();
}

#[test]
fn the_key_is_gone_when_the_completion_names_it() {
    each_width(|pair, _| {
        let [a, b] = pair.connected(Mtu::Mtu256, [0xff_ffff, 7]).unwrap();
        let source = pair.ends[0].region(4096, all_access(), |i| (i * 3) as u8).unwrap();
        let sink = pair.ends[1].region(4096, all_access(), |_| 0).unwrap();
        for len in [0u32, 1, 256, 257, 1500] {
            let region = fast(&pair);
            // It works until then: WRITEs before the SEND find it.
            receive(&b, 3, &sink, 0, 2000);
            a.post_send(&[
                SendWr::write(1, vec![source.sge(0, 700)], region.iova(), region.rkey()),
                SendWr::send_with_inv(2, vec![source.sge(5, len)], region.rkey()),
            ])
            .unwrap();
            let got = pair.ends[1].recv_cq.wait(1, BUDGET).unwrap();
            assert_eq!(
                (got[0].wr_id, got[0].status, got[0].opcode, got[0].byte_len),
                (3, WcStatus::Success, WcOpcode::Recv, len)
            );
            assert_eq!((got[0].invalidated, got[0].imm), (Some(region.rkey()), None));
            let done = pair.ends[0].send_cq.wait(2, BUDGET).unwrap();
            assert!(done.iter().all(|wc| wc.status == WcStatus::Success), "{done:?}");
            assert_eq!(
                sink.read(0, len as usize).unwrap(),
                source.read(5, len as usize).unwrap()
            );
            assert_eq!(region.read(0, 700).unwrap(), source.read(0, 700).unwrap());
            is_gone(&pair, &region);
        }
        for qp in [&a, &b] {
            assert_eq!(qp.query().unwrap().state, QpState::Rts);
        }
        assert!(pair.world.borrow_mut().take_violations().is_empty());
    });
}

#[test]
fn a_wire_that_loses_and_doubles_frames_invalidates_each_key_once() {
    each_width(|pair, _| {
        let [a, b] = pair.connected(Mtu::Mtu256, [0xff_fff0, 7]).unwrap();
        let rates = FaultRates {
            loss: 0.05,
            duplicate: 0.08,
            ..FaultRates::default()
        };
        for n in 0..2 {
            pair.world.borrow_mut().wire().set_faults(n, rates.clone()).unwrap();
        }
        let source = pair.ends[0].region(4096, all_access(), |i| (i * 5) as u8).unwrap();
        let sink = pair.ends[1].region(16 * 1024, all_access(), |_| 0).unwrap();
        let regions: Vec<Mr> = (0..12).map(|_| fast(&pair)).collect();
        for (k, region) in regions.iter().enumerate() {
            receive(&b, k as u64, &sink, 1024 * k, 900);
            // A second execution would fail, since the key is gone by then.
            a.post_send(&[SendWr::send_with_inv(k as u64, vec![source.sge(k, 800)], region.rkey())])
                .unwrap();
        }
        let got = pair.ends[1].recv_cq.wait(regions.len(), BUDGET).unwrap();
        for (k, wc) in got.iter().enumerate() {
            assert_eq!((wc.wr_id, wc.status), (k as u64, WcStatus::Success));
            assert_eq!(wc.invalidated, Some(regions[k].rkey()));
            assert_eq!(sink.read(1024 * k, 800).unwrap(), source.read(k, 800).unwrap());
        }
        let done = pair.ends[0].send_cq.wait(regions.len(), BUDGET).unwrap();
        assert!(done.iter().all(|wc| wc.status == WcStatus::Success));
        assert!(pair.world.borrow_mut().wire().stats(0).dropped > 0);
        assert!(pair.ends[1].device.counter(CounterId::RxDuplicates).unwrap() > 0);
    });
}

#[test]
fn a_lost_ack_lets_the_send_come_again_without_harm() {
    each_width(|pair, _| {
        let [a, b] = pair.connected(Mtu::Mtu256, [0xff_ffff, 7]).unwrap();
        let source = pair.ends[0].region(4096, all_access(), |i| i as u8).unwrap();
        let sink = pair.ends[1].region(4096, all_access(), |_| 0).unwrap();
        let region = fast(&pair);
        // The ACK of the last packet; the first one asks for one, too.
        let rule = Rule::once(1, Action::Drop, |f| {
            frame::bth(f).is_some_and(|b| b.opcode() == 0x11 && b.psn() == 1)
        });
        pair.world.borrow_mut().wire().add_rule(rule);
        receive(&b, 1, &sink, 0, 600);
        receive(&b, 2, &sink, 2000, 600);
        a.post_send(&[SendWr::send_with_inv(1, vec![source.sge(0, 600)], region.rkey())])
            .unwrap();
        let done = pair.ends[0].send_cq.wait(1, BUDGET).unwrap();
        assert_eq!(done[0].status, WcStatus::Success);
        assert!(pair.ends[1].device.counter(CounterId::RxDuplicates).unwrap() > 0);
        assert_eq!(pair.ends[1].recv_cq.wait(1, BUDGET).unwrap()[0].wr_id, 1);
        assert_eq!(pair.ends[1].recv_cq.poll(1).unwrap(), []);
        assert_eq!(sink.read(2000, 600).unwrap(), vec![0; 600]);
    });
}

#[test]
fn both_ends_see_that_a_key_could_not_be_invalidated() {
    each_width(|pair, _| {
        let source = pair.ends[0].region(4096, all_access(), |i| i as u8).unwrap();
        let sink = pair.ends[1].region(4096, all_access(), |_| 0).unwrap();
        let plain = pair.ends[1].region(4096, all_access(), |_| 1).unwrap();
        let other_pd = pair.ends[1].device.alloc_pd().unwrap();
        let foreign = other_pd
            .register(&MrInit {
                kind: MrKind::FastReg,
                ..MrInit::new(4096, all_access())
            })
            .unwrap();
        let twice = fast(&pair);
        for (what, key, vendor) in [
            ("no such key", RKey(0x00ff_ff00), "MR_KEY"),
            ("an ordinary region", plain.rkey(), "MR_ACCESS"),
            ("of another PD", foreign.rkey(), "MR_PD"),
            ("invalidated before", twice.rkey(), "MR_KEY"),
        ] {
            let [a, b] = pair.connected(Mtu::Mtu256, [0xff_ffff, 7]).unwrap();
            let mut first = 10;
            if what == "invalidated before" {
                receive(&b, 9, &sink, 0, 600);
                a.post_send(&[SendWr::send_with_inv(9, vec![source.sge(0, 600)], key)])
                    .unwrap();
                assert_eq!(
                    pair.ends[0].send_cq.wait(1, BUDGET).unwrap()[0].status,
                    WcStatus::Success
                );
                assert_eq!(pair.ends[1].recv_cq.wait(1, BUDGET).unwrap()[0].wr_id, 9);
                first = 20;
            }
            pair.ends[1].events().unwrap();
            receive(&b, first, &sink, 0, 600);
            receive(&b, first + 1, &sink, 0, 600);
            a.post_send(&[
                SendWr::send_with_inv(1, vec![source.sge(0, 600)], key),
                SendWr::send(2, vec![source.sge(0, 6)]),
            ])
            .unwrap();
            let done = pair.ends[0].send_cq.wait(2, BUDGET).unwrap();
            let got: Vec<_> = done.iter().map(|wc| (wc.wr_id, wc.status)).collect();
            assert_eq!(got, [(1, WcStatus::RemAccessErr), (2, WcStatus::WrFlushErr)], "{what}");
            let got = pair.ends[1].recv_cq.wait(2, BUDGET).unwrap();
            assert_eq!((got[0].wr_id, got[0].status), (first, WcStatus::LocAccessErr), "{what}");
            assert_eq!(got[0].vendor_name(), Some(vendor), "{what}");
            assert_eq!((got[1].wr_id, got[1].status), (first + 1, WcStatus::WrFlushErr));
            pair.run(4000).unwrap();
            for qp in [&a, &b] {
                assert_eq!(qp.query().unwrap().state, QpState::Err, "{what}");
            }
            let mut events = pair.ends[1].events().unwrap();
            events.retain(|e| e.0 != EventType::CommEst);
            assert_eq!(events, [], "{what}: the receive tells");
        }
        assert_eq!(plain.read(0, 4096).unwrap(), vec![1; 4096]);
    });
}
