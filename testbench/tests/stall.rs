// SPDX-License-Identifier: Apache-2.0
//! Queue pairs that do not send, between two whole NICs at both widths: the driver's look at them names the right reason, with the
//! right numbers, and changes nothing.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use openrnic_driver::spec::{CounterId, Mtu, QpAttrBit, QpLive, QpState};
use openrnic_driver::{
    BatchInit, Diagnosis, Error, MemoryRegion, QpAttr, QpCap, QpInit, QueuePair, RecvWr, SendWr, Timer, Wait, attr,
};
use openrnic_sim::NicBus;
use openrnic_sim::pcie::{CompletionFault, Which};
use openrnic_sim::wire::{Action, Rule};
use openrnic_testbench::e2e::{Pair, all_access, each_width};

type Qp = QueuePair<NicBus>;
type Mr = MemoryRegion<NicBus>;

const PSN: [u32; 2] = [0x12, 0x34_5678];
const BUDGET: u64 = 2_000_000;

struct Bed {
    pair: Pair,
    a: Qp,
    b: Qp,
    local: Mr,
    remote: Mr,
}

impl Bed {
    /// A connected pair whose end 0 sends with these attributes.
    fn new(pair: Pair, change: impl FnOnce(&mut QpAttr)) -> Self {
        let qp = |n: usize| {
            let end = &pair.ends[n];
            let init = QpInit {
                cap: QpCap {
                    max_send_wr: 64,
                    ..end.qp_init().cap
                },
                ..end.qp_init()
            };
            let init_attr = QpAttr {
                qp_state: QpState::Init,
                ..QpAttr::default()
            };
            let made = end
                .pd
                .install_qps(1, &init, &BatchInit::default(), &init_attr, attr::INIT_MASK);
            made.unwrap().qps().remove(0)
        };
        let (a, b) = (qp(0), qp(1));
        for (n, own, peer, change) in [(1, &b, &a, None), (0, &a, &b, Some(change))] {
            let (rtr, mut rts) = pair.connect_attrs(n, peer, Mtu::Mtu256, PSN);
            if let Some(change) = change {
                change(&mut rts);
            }
            own.modify(&rtr, attr::RTR_MASK).unwrap();
            own.modify(&rts, attr::RTS_MASK).unwrap();
        }
        let local = pair.ends[0].region(8192, all_access(), |i| i as u8).unwrap();
        let remote = pair.ends[1].region(8192, all_access(), |_| 0).unwrap();
        Self {
            pair,
            a,
            b,
            local,
            remote,
        }
    }

    /// Nothing that end 0 sends arrives any more.
    fn deaf(&self) {
        self.pair.world.borrow_mut().wire().add_rule(Rule {
            from: Some(0),
            matches: Box::new(|_| true),
            skip: 0,
            times: u64::MAX,
            action: Action::Drop,
        });
    }

    fn send(&self, id: u64) -> SendWr {
        SendWr::send(id, vec![self.local.sge(0, 600)])
    }

    fn read(&self, id: u64) -> SendWr {
        SendWr::read(
            id,
            vec![self.local.sge(4096, 300)],
            self.remote.iova(),
            self.remote.rkey(),
        )
    }

    fn slow_reads(&self, start: u64, len: u64, ns: u64) {
        let which = Which::Range { start, len, times: 1 };
        let mut world = self.pair.world.borrow_mut();
        world.host(0).unwrap().inject_fault(which, CompletionFault::Delay(ns));
    }

    /// What end 0's QP waits for, after some time; the sentence must hold `says`.
    fn look(&self, says: &str) -> Diagnosis {
        self.pair.run(10_000).unwrap();
        let d = self.a.diagnose().unwrap();
        println!("{d}");
        assert!(!d.moving && d.requester && d.responder, "{d}");
        assert!(
            d.to_string().contains(&format!("-> {says}")),
            "expected `{says}` in\n{d}"
        );
        d
    }

    fn times_out(&self) -> u64 {
        self.pair.ends[0].device.counter(CounterId::Timeouts).unwrap()
    }

    fn cycle(&self) -> u64 {
        let bus = self.pair.ends[0]
            .device
            .with_bus(|bus| openrnic_driver::Bus::mmio_read64(bus, 0x228));
        bus.unwrap().unwrap()
    }
}

#[test]
fn a_dead_peer_is_an_ack_that_does_not_come() {
    each_width(|pair, _| {
        let bed = Bed::new(pair, |_| ());
        bed.deaf();
        bed.a.post_send(&[bed.send(1)]).unwrap();
        let d = bed.look("waits for the ACK of PSN 0x12 (sent up to 0x14) until cycle ");
        let [
            Wait::Ack {
                psn: 0x12,
                last: 0x14,
                timer: Timer::Until(end),
                tries: 0,
                of: 7,
            },
        ] = d.waits[..]
        else {
            panic!("{d}")
        };
        let l: QpLive = d.live;
        assert_eq!((l.next_psn(), l.una_psn(), l.top_psn()), (0x15, 0x12, 0x15));
        assert_eq!(
            (l.sq_prod(), l.sq_cons(), l.sq_fresh(), l.snd_wqe(), l.records()),
            (1, 0, 1, 1, 1)
        );
        // The timer ends when it says.
        let before = bed.times_out();
        while bed.times_out() == before {
            bed.pair.run(50).unwrap();
        }
        let now = bed.cycle();
        assert!(
            (end..end + 1500).contains(&now),
            "the timer ended at {now} and not at {end}"
        );
        let again = bed.look("waits for the ACK of PSN 0x12");
        assert!(matches!(again.waits[..], [Wait::Ack { tries: 1, .. }]), "{again}");
        assert!(again.to_string().contains("try 1 of 7"), "{again}");
    });
}

#[test]
fn no_timer_waits_for_ever() {
    each_width(|pair, _| {
        let bed = Bed::new(pair, |rts| rts.timeout = 0);
        bed.deaf();
        bed.a.post_send(&[bed.send(1)]).unwrap();
        bed.look("waits for the ACK of PSN 0x12 (sent up to 0x14) for ever, since TIMEOUT is 0");
    });
}

#[test]
fn a_receiver_that_is_not_ready_is_an_rnr_timer() {
    each_width(|pair, _| {
        let bed = Bed::new(pair, |rts| rts.rnr_retry = 3);
        let slow = QpAttr {
            min_rnr_timer: 28,
            ..QpAttr::default()
        };
        bed.b.modify(&slow, QpAttrBit::MIN_RNR_TIMER).unwrap();
        bed.a.post_send(&[bed.send(1)]).unwrap();
        let d = bed.look("RNR timer until cycle ");
        let [
            Wait::Rnr {
                psn: 0x12,
                timer: Timer::Until(end),
                tries: 1,
                of: 3,
            },
        ] = d.waits[..]
        else {
            panic!("{d}")
        };
        // 163.84 ms at the responder's wish.
        let clk_ps = u64::from(bed.pair.ends[0].device.caps().unwrap().clk_period_ps);
        let ms = (end - d.cycle) * clk_ps / 1_000_000_000;
        assert!((162..=163).contains(&ms), "{ms} ms");
        let there = bed.b.diagnose().unwrap();
        assert!(there.live.nak_sent() && there.live.epsn() == 0x12, "{there}");
        assert_eq!(there.waits, [Wait::Nothing]);
        assert!(
            there
                .to_string()
                .contains("a NAK is out and what it asks for has not come"),
            "{there}"
        );
    });
}

#[test]
fn a_fence_waits_for_the_read_before_it() {
    each_width(|pair, _| {
        let bed = Bed::new(pair, |_| ());
        bed.deaf();
        bed.a.post_send(&[bed.read(1), bed.send(2).fenced()]).unwrap();
        let d = bed.look("fence: WQE 1 waits for 1 READs or atomics before it");
        assert!(
            matches!(
                d.waits[..],
                [
                    Wait::Fence {
                        wqe: 1,
                        outstanding: 1,
                        reads: true
                    },
                    Wait::Response {
                        psn: 0x12,
                        outstanding: 1,
                        timer: Timer::Until(_),
                        ..
                    }
                ]
            ),
            "{d}"
        );
    });
}

#[test]
fn the_limit_of_reads_is_named() {
    each_width(|pair, _| {
        let bed = Bed::new(pair, |rts| rts.max_rd_atomic = 2);
        bed.deaf();
        bed.a.post_send(&[bed.read(1), bed.read(2), bed.read(3)]).unwrap();
        let d = bed.look("read/atomic depth full: 2 of 2 outstanding, WQE 2 waits");
        assert!(
            matches!(
                d.waits[1],
                Wait::Response {
                    psn: 0x12,
                    outstanding: 2,
                    ..
                }
            ),
            "{d}"
        );
        assert_eq!(d.waits.len(), 2);
    });
}

#[test]
fn as_many_messages_as_may_be_are_in_flight() {
    each_width(|pair, _| {
        let bed = Bed::new(pair, |_| ());
        bed.deaf();
        let list: Vec<_> = (0..40).map(|i| bed.send(i)).collect();
        bed.a.post_send(&list).unwrap();
        let d = bed.look("32 messages are in flight, as many as may be");
        assert!(matches!(d.waits[1], Wait::Ack { psn: 0x12, .. }), "{d}");
    });
}

#[test]
fn a_host_that_does_not_answer_is_named() {
    each_width(|pair, _| {
        let bed = Bed::new(pair, |_| ());
        let ring = bed.a.query().unwrap().init.sq_base();
        bed.slow_reads(ring, 64, 150_000);
        bed.a.post_send(&[bed.send(1)]).unwrap();
        let d = bed.look("the read of WQE 0 from host memory has no answer yet");
        assert_eq!((d.reads, d.waits.len()), (1, 1), "{d}");
    });
}

#[test]
fn a_payload_that_does_not_come_is_named() {
    each_width(|pair, _| {
        let bed = Bed::new(pair, |_| ());
        bed.slow_reads(bed.local.bus_addr(0).unwrap(), 256, 150_000);
        bed.a
            .post_send(&[SendWr::write(
                1,
                vec![bed.local.sge(0, 200)],
                bed.remote.iova(),
                bed.remote.rkey(),
            )])
            .unwrap();
        let d = bed.look("packets wait for their payload from host memory or for the wire");
        assert_eq!(d.reads, 1, "{d}");
        bed.pair.ends[0].send_cq.wait(1, BUDGET).unwrap();
        assert_eq!(bed.look("nothing is posted").waits, [Wait::Nothing]);
    });
}

#[test]
fn a_drained_queue_is_told_from_one_that_drains() {
    each_width(|pair, _| {
        let bed = Bed::new(pair, |_| ());
        let sqd = QpAttr {
            qp_state: QpState::Sqd,
            ..QpAttr::default()
        };
        bed.deaf();
        bed.a.post_send(&[bed.send(1)]).unwrap();
        bed.pair.run(2000).unwrap();
        bed.a.modify(&sqd, QpAttrBit::STATE).unwrap();
        bed.a.post_send(&[bed.send(2)]).unwrap();
        let d = bed.look("SQD: nothing is begun, what was begun has not ended");
        assert!(matches!(d.waits[1], Wait::Ack { psn: 0x12, .. }), "{d}");
    });
    each_width(|pair, _| {
        let bed = Bed::new(pair, |_| ());
        let sqd = QpAttr {
            qp_state: QpState::Sqd,
            ..QpAttr::default()
        };
        bed.a.modify(&sqd, QpAttrBit::STATE).unwrap();
        assert_eq!(bed.look("nothing is posted").waits, [Wait::Nothing]);
        bed.a.post_send(&[bed.send(2)]).unwrap();
        let d = bed.look("SQD drained: nothing is begun until RTS");
        assert_eq!(d.waits, [Wait::Drain { drained: true }]);
    });
}

#[test]
fn a_state_that_cannot_send_is_named() {
    each_width(|pair, _| {
        let [a, b] = pair.install(1).unwrap().map(|batch| batch.qps().remove(0));
        assert_eq!(a.diagnose().unwrap().waits, [Wait::State(QpState::Init), Wait::Nothing]);
        assert!(a.diagnose().unwrap().is_idle());
        pair.connect([&a, &b], Mtu::Mtu256, PSN).unwrap();
        assert!(a.diagnose().unwrap().is_idle());
        let err = QpAttr {
            qp_state: QpState::Err,
            ..QpAttr::default()
        };
        a.modify(&err, QpAttrBit::STATE).unwrap();
        pair.run(500).unwrap();
        let d = a.diagnose().unwrap();
        assert_eq!(d.waits[0], Wait::State(QpState::Err));
        assert!(d.to_string().contains("-> state ERR cannot send"), "{d}");
    });
}

#[test]
fn a_doorbell_that_never_came_is_named() {
    each_width(|pair, _| {
        let bed = Bed::new(pair, |_| ());
        let device = &bed.pair.ends[0].device;
        // The function does not decode its BAR for a moment: the write is lost, and what is posted stays posted.
        let command = device
            .with_bus(|bus| openrnic_driver::Bus::config_read(bus, 4))
            .unwrap()
            .unwrap();
        let decode = |on: bool| {
            let value = if on { command } else { command & !2 } & 0xffff;
            device
                .with_bus(|bus| openrnic_driver::Bus::config_write(bus, 4, value))
                .unwrap()
                .unwrap();
        };
        decode(false);
        let lost = bed.a.post_send(&[bed.send(1), bed.send(2)]).unwrap_err();
        assert!(matches!(lost, Error::Bus { .. }), "{lost}");
        decode(true);
        let d = bed.look("no doorbell: 2 work requests are posted of which the device was not told (posted 2, told 0)");
        assert_eq!(d.waits, [Wait::NoDoorbell { posted: 2, told: 0 }]);
    });
}

#[test]
fn the_responders_side_is_shown_in_the_middle_of_a_message() {
    each_width(|pair, _| {
        let bed = Bed::new(pair, |_| ());
        bed.b
            .post_recv(&[RecvWr {
                wr_id: 1,
                sges: vec![bed.remote.sge(0, 600)],
            }])
            .unwrap();
        // Two of three packets arrive.
        bed.pair.world.borrow_mut().wire().add_rule(Rule {
            from: Some(0),
            matches: Box::new(|_| true),
            skip: 2,
            times: u64::MAX,
            action: Action::Drop,
        });
        bed.a.post_send(&[bed.send(1)]).unwrap();
        bed.pair.run(4000).unwrap();
        let d = bed.b.diagnose().unwrap();
        let l = &d.live;
        assert_eq!(
            (l.epsn(), l.msn(), l.in_send(), l.msg_done()),
            (0x14, 0, true, 512),
            "{d}"
        );
        assert_eq!((l.rq_prod(), l.rq_next()), (1, 0), "{d}");
        assert!(!d.is_idle() && d.to_string().contains("512 bytes into a SEND"), "{d}");
    });
}

#[test]
fn looks_under_traffic_change_nothing() {
    each_width(|pair, _| {
        let bed = Bed::new(pair, |_| ());
        for round in 0..20u64 {
            let list: Vec<_> = (0..8)
                .map(|i| {
                    SendWr::write(
                        8 * round + i,
                        vec![bed.local.sge(0, 3000)],
                        bed.remote.iova(),
                        bed.remote.rkey(),
                    )
                })
                .collect();
            bed.a.post_send(&list).unwrap();
            for _ in 0..5 {
                let (a, b) = (bed.a.diagnose().unwrap(), bed.b.diagnose().unwrap());
                assert!(a.requester && a.responder && b.requester && b.responder, "{a}\n{b}");
            }
            let ids: Vec<_> = bed.pair.ends[0]
                .send_cq
                .wait(8, BUDGET)
                .unwrap()
                .iter()
                .map(|wc| wc.wr_id)
                .collect();
            assert_eq!(ids, (8 * round..8 * round + 8).collect::<Vec<_>>());
        }
        let counters = bed.pair.ends[0].device.counters().unwrap();
        assert_eq!(counters.get(CounterId::Retransmissions), 0);
        assert_eq!(bed.remote.read(0, 3000).unwrap(), bed.local.read(0, 3000).unwrap());
    });
}
