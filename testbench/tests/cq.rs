// SPDX-License-Identifier: Apache-2.0
//! Completion queues (`rnic_cq` inside `rnic_ctrl`): entries, overrun, doorbells, arming.
#![allow(clippy::unwrap_used)]

use openrnic_sim::rng::Stream;
use openrnic_testbench::ctrl_bench::*;
use openrnic_testbench::ctrl_model::status;

const WIDTHS: [u32; 2] = [64, 512];
const CQ_ERR: u8 = 0;
const CQ_COMP: u8 = 64;
const DROP_QPN: usize = 42;
const DROP_PAGE: usize = 43;
const DROP_RANGE: usize = 44;
const CQE_WRITTEN: usize = 55;
const CQ_OVERRUN: usize = 56;

/// Where the ring of the n-th CQ of a bench lies.
fn ring(n: u32) -> u64 {
    BASE + 0x2_0000 + u64::from(n) * 0x1000
}

/// A bench with event queues 0 and 1, and `n` CQs of 2^log_size entries on queue 1, doorbell page 3.
fn bench(width: u32, n: u32, log_size: u8) -> CtrlBench {
    let mut b = CtrlBench::new(width, seed());
    b.make_eq(0, 6);
    b.make_eq(1, 6);
    for i in 0..n {
        b.clear(ring(i), 32 << log_size);
        assert_eq!(b.ok(&Cmd::create_cq(log_size, 1, 3, ring(i))), i);
    }
    b.run(10);
    b.out.clear();
    b
}

fn cqe(cqn: u16, wqe_index: u16) -> Cqe {
    Cqe {
        cqn,
        qp_idx: 40 + wqe_index,
        epoch: 5,
        qpn: 0x1200 + u32::from(wqe_index),
        wqe_index,
        ..Cqe::default()
    }
}

fn db(b: &mut CtrlBench, cqn: u32, consumer: u32, arm: bool, solicited_only: bool) {
    b.cq_db.push_back((3, cq_doorbell(cqn, consumer, arm, solicited_only)));
    b.run(2);
}

#[test]
fn an_entry_has_the_bytes_of_the_book() {
    for width in WIDTHS {
        let mut b = bench(width, 1, 3);
        let from = b.now();
        let all = Cqe {
            cqn: 0,
            qp_idx: 1,
            epoch: 2,
            solicited: true,
            qpn: 0x0a_0b0c,
            opcode: 0x81,
            wqe_index: 0x1d1e,
            status: 0,
            with_imm: true,
            with_inv: false,
            grh: true,
            byte_len: 0x2122_2324,
            imm: 0x3132_3334,
            src_qpn: 0x41_4243,
            vendor_err: 0x55,
        };
        b.cqes[0].push_back(all);
        b.cqes[0].push_back(Cqe {
            with_imm: false,
            with_inv: true,
            grh: false,
            status: 12,
            ..all
        });
        b.run(60);
        let e = b.bytes(ring(0), 64).to_vec();
        assert_eq!(e[..8], [0x0c, 0x0b, 0x0a, 0x81, 0x1e, 0x1d, 0x00, 0x83]);
        assert_eq!(e[8..16], [0x24, 0x23, 0x22, 0x21, 0x34, 0x33, 0x32, 0x31]);
        assert_eq!(e[16..24], [0x43, 0x42, 0x41, 0x55, 0, 0, 0, 0]);
        let stamp = u64::from_le_bytes(e[24..32].try_into().unwrap());
        assert!((from..b.now()).contains(&stamp), "cycles of the device");
        assert_eq!(e[32 + 6..32 + 8], [12, 0x88]);
        assert_eq!(b.counts[CQE_WRITTEN], 2);
    }
}

#[test]
fn entries_go_round_the_ring_in_the_order_taken_with_the_phase_of_their_lap() {
    let seed = seed();
    for width in WIDTHS {
        let mut rng = Stream::new(seed, "laps", 0);
        let mut b = bench(width, 0, 0);
        b.manners.stall = 0.15;
        let sizes: Vec<u32> = (0..NUM_CQ).map(|i| 1 + i % 4).collect();
        for (i, log) in sizes.iter().enumerate() {
            b.clear(ring(i as u32), 32 << log);
            b.ok(&Cmd::create_cq(*log as u8, 1, 3, ring(i as u32)));
        }
        let mut posted = [0u32; NUM_CQ as usize];
        let mut taken = [0u32; NUM_CQ as usize];
        let mut seen = vec![Vec::new(); NUM_CQ as usize];
        for index in 0..1500u16 {
            let q = rng.below(u64::from(NUM_CQ)) as usize;
            while posted[q] - taken[q] == 1 << sizes[q] {
                b.run(20);
                let slot = u64::from(taken[q] % (1 << sizes[q]));
                let e = b.bytes(ring(q as u32) + 32 * slot, 32);
                if u32::from(e[7] >> 7) == 1 - (taken[q] >> sizes[q]) % 2 {
                    seen[q].push(u16::from_le_bytes([e[4], e[5]]));
                    taken[q] += 1;
                    db(&mut b, q as u32, taken[q], false, false);
                }
            }
            b.cqes[rng.below(2) as usize].push_back(cqe(q as u16, index));
            posted[q] += 1;
        }
        b.until("all entries", 50_000, |b| b.counts[CQE_WRITTEN] == 1500);
        for q in 0..NUM_CQ as usize {
            while taken[q] < posted[q] {
                let e = b.bytes(ring(q as u32) + 32 * u64::from(taken[q] % (1 << sizes[q])), 32);
                assert_eq!(u32::from(e[7] >> 7), 1 - (taken[q] >> sizes[q]) % 2);
                seen[q].push(u16::from_le_bytes([e[4], e[5]]));
                taken[q] += 1;
            }
            let order: Vec<u16> = b
                .cqes_taken
                .iter()
                .filter(|c| usize::from(c.cqn) == q)
                .map(|c| c.wqe_index)
                .collect();
            assert_eq!(seen[q], order);
        }
        assert_eq!(b.counts[CQ_OVERRUN], 0);
        assert!(b.events_written().is_empty(), "nobody armed");
    }
}

#[test]
fn a_full_queue_is_in_error_for_good_and_each_qp_is_reported() {
    for width in WIDTHS {
        let mut b = bench(width, 2, 2);
        for i in 0..4 {
            b.cqes[0].push_back(cqe(1, i));
        }
        b.run(100);
        assert_eq!(b.counts[CQE_WRITTEN], 4);
        let before = b.bytes(ring(1), 0x1000).to_vec();
        b.out.clear();
        for i in 4..7 {
            b.cqes[1].push_back(cqe(1, i));
        }
        b.run(100);
        assert_eq!(b.bytes(ring(1), 0x1000), before, "nothing is overwritten");
        assert_eq!((b.counts[CQE_WRITTEN], b.counts[CQ_OVERRUN]), (4, 3));
        assert_eq!(b.events_written(), [(CQ_ERR, 1)], "once");
        assert_eq!(b.writes(2)[0].0, BASE + 0x9_0000, "to queue 0");
        let reported: Vec<&Out> = b.out.iter().filter(|o| matches!(o, Out::QpErr(..))).collect();
        assert_eq!(reported, [&Out::QpErr(44, 5), &Out::QpErr(45, 5), &Out::QpErr(46, 5)]);
        // Room comes too late.
        db(&mut b, 1, 4, true, false);
        b.cqes[0].push_back(cqe(1, 7));
        b.run(100);
        assert_eq!((b.counts[CQE_WRITTEN], b.counts[CQ_OVERRUN]), (4, 4));
        assert_eq!(b.events_written().len(), 1);
        // Others are not touched, and a new queue in its place is sound.
        b.cqes[0].push_back(cqe(0, 8));
        b.run(50);
        assert_eq!(b.counts[CQE_WRITTEN], 5);
        b.ok(&Cmd::destroy_cq(1));
        for _ in 2..NUM_CQ {
            b.ok(&Cmd::create_cq(1, 1, 3, ring(2)));
        }
        assert_eq!(b.ok(&Cmd::create_cq(2, 1, 3, ring(1))), 1);
        b.cqes[0].push_back(cqe(1, 9));
        b.run(50);
        assert_eq!((b.counts[CQE_WRITTEN], b.counts[CQ_OVERRUN]), (6, 4));
        assert_eq!(b.bytes(ring(1) + 4, 2), [9, 0], "at its start");
    }
}

#[test]
fn a_completion_for_no_queue_is_forgotten() {
    for width in WIDTHS {
        let mut b = bench(width, 1, 2);
        for cqn in [1, NUM_CQ as u16, 0x100, 0xffff] {
            b.cqes[0].push_back(cqe(cqn, 0));
            b.cqes[1].push_back(cqe(cqn, 0));
        }
        b.run(100);
        assert!(b.cqes.iter().all(|q| q.is_empty()) && b.out.is_empty());
        assert_eq!((b.counts[CQE_WRITTEN], b.counts[CQ_OVERRUN]), (0, 0));
    }
}

#[test]
fn a_wrong_doorbell_is_counted_by_its_fault_and_changes_nothing() {
    for width in WIDTHS {
        let mut b = bench(width, 1, 2);
        for i in 0..3 {
            b.cqes[0].push_back(cqe(0, i));
        }
        b.run(60);
        db(&mut b, 0, 2, false, false);
        let wrong = [
            (3, 1, 0, DROP_QPN),
            (3, NUM_CQ, 3, DROP_QPN),
            (3, 0x80_0000, 3, DROP_QPN),
            (4, 0, 3, DROP_PAGE),
            (0, 0, 3, DROP_PAGE),
            (3, 0, 4, DROP_RANGE),
            (3, 0, 1, DROP_RANGE),
            (3, 0, 0xff_ffff, DROP_RANGE),
        ];
        for (page, cqn, consumer, counter) in wrong {
            let before = b.counts[counter];
            b.cq_db.push_back((page, cq_doorbell(cqn, consumer, true, false)));
            b.run(20);
            assert_eq!(
                b.counts[counter],
                before + 1,
                "page {page} queue {cqn} consumer {consumer}"
            );
        }
        assert_eq!(b.counts[42..46].iter().sum::<u64>(), wrong.len() as u64);
        b.out.clear();
        b.cqes[0].push_back(cqe(0, 3));
        b.run(30);
        assert!(b.events_written().is_empty(), "none of them armed it");
        // The consumer index is still 2: two more fit, the third does not.
        b.cqes[0].push_back(cqe(0, 4));
        b.cqes[0].push_back(cqe(0, 5));
        b.run(60);
        assert_eq!(b.counts[CQ_OVERRUN], 0);
        b.cqes[0].push_back(cqe(0, 6));
        b.run(60);
        assert_eq!(b.counts[CQ_OVERRUN], 1);
    }
}

#[test]
fn an_armed_queue_tells_its_event_queue_once_and_after_the_entry() {
    for width in WIDTHS {
        let mut b = bench(width, 3, 4);
        b.eq_db.push_back(eq_doorbell(1, 0, true));
        db(&mut b, 2, 0, true, false);
        b.run(30);
        assert!(b.out.is_empty(), "there is nothing unseen");
        b.cqes[0].push_back(cqe(1, 0));
        b.cqes[0].push_back(cqe(2, 1));
        b.cqes[1].push_back(cqe(2, 2));
        b.run(100);
        assert_eq!(b.events_written(), [(CQ_COMP, 2)]);
        assert_eq!(b.writes(2)[0].0, BASE + 0x9_4000, "to its event queue");
        assert_eq!(b.vectors(0), [1]);
        let kinds: Vec<usize> = b
            .out
            .iter()
            .filter_map(|o| match o {
                Out::Write { client: 1, addr, .. } if *addr >= ring(2) => Some(1),
                Out::Write { client: 2, .. } => Some(2),
                Out::Msix { .. } => Some(3),
                _ => None,
            })
            .collect();
        let at = |k| kinds.iter().position(|x| *x == k).unwrap();
        assert!(at(1) < at(2) && at(2) < at(3), "entry, event, interrupt: {kinds:?}");
        // Armed again with one unseen: at once. With all seen: on the next.
        b.out.clear();
        db(&mut b, 2, 1, true, false);
        b.run(30);
        assert_eq!(b.events_written(), [(CQ_COMP, 2)]);
        db(&mut b, 2, 2, true, false);
        b.run(30);
        assert_eq!(b.events_written().len(), 1);
        b.cqes[1].push_back(cqe(2, 3));
        b.run(30);
        assert_eq!(b.events_written().len(), 2);
        // A consumer index alone neither arms nor disarms.
        db(&mut b, 2, 3, true, false);
        db(&mut b, 2, 3, false, false);
        b.cqes[1].push_back(cqe(2, 4));
        b.run(30);
        assert_eq!(b.events_written().len(), 3);
        db(&mut b, 2, 4, false, false);
        b.cqes[1].push_back(cqe(2, 5));
        b.run(30);
        assert_eq!(b.events_written().len(), 3);
    }
}

#[test]
fn armed_for_solicited_only_it_waits_for_a_solicited_or_failed_one() {
    for width in WIDTHS {
        let mut b = bench(width, 1, 4);
        let told = |b: &mut CtrlBench| {
            b.run(30);
            b.events_written().len()
        };
        let (plain, solicited) = (
            cqe(0, 0),
            Cqe {
                solicited: true,
                ..cqe(0, 1)
            },
        );
        let failed = Cqe { status: 5, ..cqe(0, 2) };
        db(&mut b, 0, 0, true, true);
        b.cqes[0].push_back(plain);
        assert_eq!(told(&mut b), 0);
        b.cqes[0].push_back(solicited);
        assert_eq!(told(&mut b), 1);
        // Unseen: 1 plain, 1 solicited; with the solicited one seen, only a new one counts.
        db(&mut b, 0, 1, true, true);
        assert_eq!(told(&mut b), 2, "a solicited one is unseen");
        b.cqes[0].push_back(plain);
        db(&mut b, 0, 2, true, true);
        assert_eq!(told(&mut b), 2, "the plain one that is unseen does not count");
        b.cqes[0].push_back(failed);
        assert_eq!(told(&mut b), 3);
        // Armed for any one after all.
        db(&mut b, 0, 4, true, true);
        db(&mut b, 0, 4, true, false);
        assert_eq!(told(&mut b), 3);
        b.cqes[0].push_back(plain);
        assert_eq!(told(&mut b), 4);
    }
}

#[test]
fn every_queue_armed_at_once_is_looked_at() {
    for width in WIDTHS {
        let mut b = bench(width, NUM_CQ, 1);
        for i in 0..NUM_CQ as u16 {
            b.cqes[0].push_back(cqe(i, i));
        }
        b.run(400);
        assert_eq!(b.counts[CQE_WRITTEN], u64::from(NUM_CQ));
        // A doorbell every cycle, faster than they can be looked at; again before the first round is over.
        for round in 0..3 {
            b.out.clear();
            for i in (0..NUM_CQ).rev() {
                b.cq_db.push_back((3, cq_doorbell(i, 0, true, false)));
            }
            b.run(25 + round);
            b.run(600);
            let mut told: Vec<u32> = b.events_written().iter().map(|(_, n)| *n).collect();
            told.sort_unstable();
            assert_eq!(told, (0..NUM_CQ).collect::<Vec<_>>());
            b.eq_db.push_back(eq_doorbell(1, (round as u32 + 1) * NUM_CQ, false));
            b.run(5);
        }
    }
}

#[test]
fn after_a_queue_was_destroyed_nothing_of_it_is_written() {
    for width in WIDTHS {
        let mut b = bench(width, 2, 4);
        b.manners.drain = Some(60);
        db(&mut b, 0, 0, true, false);
        b.put(&Cmd::destroy_cq(0));
        b.doorbell(b.produced);
        let mut done = None;
        for i in 0..400 {
            // Completions to it go on until the barrier is answered, as from an engine that still had some.
            if b.barriers == 0 {
                b.cqes[0].push_back(cqe(0, i));
            }
            b.step();
            if done.is_none() && b.poll().is_some_and(|c| c.status == status::OK) {
                done = Some(b.out.len());
            }
        }
        assert!(b.cqes[0].is_empty());
        let late = &b.out[done.unwrap()..];
        assert!(
            late.iter().all(|o| !matches!(o, Out::Write { client: 1 | 2, .. })),
            "{late:?}"
        );
        assert!(b.barriers == 1 && b.counts[CQE_WRITTEN] < 100);
        db(&mut b, 0, 0, true, false);
        assert_eq!(b.counts[DROP_QPN], 1);
    }
}

#[test]
fn a_driver_that_sleeps_until_its_event_sees_every_completion() {
    let seed = seed();
    for width in WIDTHS {
        let mut rng = Stream::new(seed, "sleeper", 0);
        let mut b = bench(width, 5, 4);
        b.manners.stall = 0.15;
        b.eq_db.push_back(eq_doorbell(1, 0, true));
        let (mut posted, mut taken) = ([0u32; 5], [0u32; 5]);
        let (mut awake, mut events, mut eq_awake, mut idle) = ([false; 5], 0u32, false, 0);
        for q in 0..5 {
            db(&mut b, q, 0, true, false);
        }
        while taken.iter().sum::<u32>() < 1000 {
            let q = rng.below(5) as usize;
            if posted.iter().sum::<u32>() < 1000 && posted[q] - taken[q] < 16 && rng.chance(0.15) {
                b.cqes[rng.below(2) as usize].push_back(cqe(q as u16, posted[q] as u16));
                posted[q] += 1;
            }
            let before = b.out.len();
            b.step();
            eq_awake |= b.out[before..].contains(&Out::Msix { source: 0, vector: 1 });
            if eq_awake && rng.chance(0.2) {
                eq_awake = false;
                loop {
                    let e = b.bytes(BASE + 0x9_4000 + 32 * u64::from(events % 64), 32);
                    if u32::from(e[3] >> 7) != 1 - (events / 64) % 2 {
                        break;
                    }
                    awake[usize::from(e[4])] = true;
                    events += 1;
                }
                b.eq_db.push_back(eq_doorbell(1, events, true));
            }
            idle += 1;
            let q = rng.below(5) as usize;
            if awake[q] && rng.chance(0.1) {
                awake[q] = false;
                while {
                    let e = b.bytes(ring(q as u32) + 32 * u64::from(taken[q] % 16), 32);
                    u32::from(e[7] >> 7) == 1 - (taken[q] / 16) % 2
                } {
                    taken[q] += 1;
                    idle = 0;
                }
                // Sometimes in two doorbells: index first, arm later.
                if rng.chance(0.3) {
                    b.cq_db.push_back((3, cq_doorbell(q as u32, taken[q], false, false)));
                }
                b.cq_db.push_back((3, cq_doorbell(q as u32, taken[q], true, false)));
            }
            assert!(idle < 3000, "a wake-up was lost: {taken:?} of {posted:?}");
        }
        assert_eq!((b.counts[CQ_OVERRUN], b.dut.get("fatal_o")), (0, 0));
    }
}
