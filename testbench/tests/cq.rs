// SPDX-License-Identifier: Apache-2.0
//! Completion queues (`rnic_cq` inside `rnic_ctrl`): entries, overrun, doorbells, arming.
#![allow(clippy::unwrap_used)]

use openrnic_sim::rng::Stream;
use openrnic_testbench::ctrl_bench::*;
use openrnic_testbench::ctrl_model::status::{self, IN_ERROR, TOO_SMALL};

const WIDTHS: [u32; 2] = [64, 512];
const CQ_ERR: u8 = 0;
const CQ_COMP: u8 = 64;
const DROP_QPN: usize = 42;
const DROP_PAGE: usize = 43;
const DROP_RANGE: usize = 44;
const CQE_WRITTEN: usize = 55;
const CQ_OVERRUN: usize = 56;
/// Clock cycles in a microsecond.
const US: u64 = 1_000_000 / CLK_PERIOD_PS as u64;

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

// ---------------------------------------------------------------- event moderation

/// Pushes `n` plain completions for a queue, the first with this index.
fn push(b: &mut CtrlBench, cqn: u32, from: u16, n: u16) {
    b.cqes[0].extend((from..from + n).map(|i| cqe(cqn as u16, i)));
}

/// Events so far, after some cycles.
fn told(b: &mut CtrlBench, cycles: u64) -> usize {
    b.run(cycles);
    b.events_written().len()
}

#[test]
fn a_moderated_queue_tells_after_so_many_completions_or_after_its_period() {
    for width in WIDTHS {
        let mut b = bench(width, 1, 5);
        b.ok(&Cmd::modify_cq(0, 4, 10));
        db(&mut b, 0, 0, true, false);
        push(&mut b, 0, 0, 3);
        assert_eq!(told(&mut b, 100), 0);
        push(&mut b, 0, 3, 1);
        assert_eq!(told(&mut b, 40), 1, "the fourth");
        push(&mut b, 0, 4, 8);
        assert_eq!(told(&mut b, 20 * US), 1, "not armed");
        // Armed with that many already there: at once. With fewer: they count.
        db(&mut b, 0, 8, true, false);
        assert_eq!(told(&mut b, 30), 2);
        db(&mut b, 0, 10, true, false);
        assert_eq!(told(&mut b, 100), 2);
        push(&mut b, 0, 12, 2);
        assert_eq!(told(&mut b, 60), 3);
        // A single one: after the period, and once.
        db(&mut b, 0, 14, true, false);
        assert_eq!(told(&mut b, 20 * US), 3, "there is nothing to tell");
        push(&mut b, 0, 14, 1);
        assert_eq!(told(&mut b, 9 * US), 3);
        assert_eq!(told(&mut b, US + 60), 4, "its period is over");
        assert_eq!(told(&mut b, 20 * US), 4);
        // Taken before: nothing is told, and the next one has a period of its own.
        db(&mut b, 0, 15, true, false);
        push(&mut b, 0, 15, 2);
        assert_eq!(told(&mut b, 8 * US), 4);
        db(&mut b, 0, 17, false, false);
        assert_eq!(told(&mut b, 15 * US), 4);
        push(&mut b, 0, 17, 1);
        assert_eq!(told(&mut b, 9 * US), 4);
        assert_eq!(told(&mut b, US + 60), 5);
        assert!(b.events_written().iter().all(|e| *e == (CQ_COMP, 0)));
        assert_eq!(b.counts[CQ_OVERRUN], 0);
    }
}

#[test]
fn without_a_count_the_period_decides_and_without_a_period_each_completion() {
    for width in WIDTHS {
        let mut b = bench(width, 1, 5);
        b.ok(&Cmd::modify_cq(0, 0, 3));
        db(&mut b, 0, 0, true, false);
        push(&mut b, 0, 0, 20);
        assert_eq!(told(&mut b, 2 * US), 0);
        assert_eq!(told(&mut b, US + 60), 1);
        for (n, (count, period)) in [(4, 0), (1, 4095), (0, 0), (0xffff, 0)].into_iter().enumerate() {
            b.ok(&Cmd::modify_cq(0, count, period));
            db(&mut b, 0, 20 + n as u32, true, false);
            push(&mut b, 0, 20 + n as u16, 1);
            assert_eq!(told(&mut b, 40), n + 2, "count {count}, period {period}");
        }
        // A new queue under the same number has none.
        b.ok(&Cmd::modify_cq(0, 8, 4095));
        b.ok(&Cmd::destroy_cq(0));
        for i in 0..NUM_CQ {
            assert_eq!(b.ok(&Cmd::create_cq(5, 1, 3, ring((i + 1) % NUM_CQ))), (i + 1) % NUM_CQ);
        }
        b.out.clear();
        db(&mut b, 0, 0, true, false);
        push(&mut b, 0, 0, 1);
        assert_eq!(told(&mut b, 40), 1);
        // More than its ring holds would never come: a full queue is told.
        b.ok(&Cmd::modify_cq(0, 0xffff, 4095));
        db(&mut b, 0, 1, true, false);
        push(&mut b, 0, 1, 31);
        assert_eq!(told(&mut b, 500), 1);
        push(&mut b, 0, 32, 1);
        assert_eq!(told(&mut b, 40), 2);
    }
}

#[test]
fn armed_for_solicited_only_a_moderated_queue_counts_those_alone() {
    for width in WIDTHS {
        let mut b = bench(width, 1, 6);
        let solicited = |b: &mut CtrlBench, n: usize| {
            let one = Cqe {
                solicited: true,
                ..cqe(0, 0)
            };
            b.cqes[1].extend(vec![one; n]);
        };
        b.ok(&Cmd::modify_cq(0, 3, 20));
        db(&mut b, 0, 0, true, true);
        push(&mut b, 0, 0, 10);
        assert_eq!(told(&mut b, 50 * US), 0, "nothing that it waits for");
        solicited(&mut b, 2);
        push(&mut b, 0, 0, 10);
        assert_eq!(told(&mut b, 10 * US), 0, "22 completions, of which 2 count");
        solicited(&mut b, 1);
        assert_eq!(told(&mut b, 60), 1);
        // What came before it was armed is not counted, but the period tells it.
        solicited(&mut b, 2);
        b.run(60);
        db(&mut b, 0, 23, true, true);
        solicited(&mut b, 2);
        push(&mut b, 0, 0, 4);
        assert_eq!(told(&mut b, 19 * US), 1);
        assert_eq!(told(&mut b, US + 60), 2);
        // For all: each counts again.
        db(&mut b, 0, 31, true, false);
        push(&mut b, 0, 0, 3);
        assert_eq!(told(&mut b, 60), 3);
        assert_eq!(b.counts[CQ_OVERRUN], 0);
    }
}

#[test]
fn a_new_moderation_judges_an_armed_queue_at_once() {
    for width in WIDTHS {
        let mut b = bench(width, 1, 5);
        b.ok(&Cmd::modify_cq(0, 100, 4095));
        let mut taken = 0;
        // The period counts from the first completion, 30 microseconds before; with 40 of them it is still to run.
        let cases = [(2, 4095, 0), (0, 0, 0), (1, 9, 0), (50, 10, 0), (50, 40, 8)];
        for (n, (count, period, quiet)) in cases.into_iter().enumerate() {
            b.ok(&Cmd::modify_cq(0, 100, 4095));
            db(&mut b, 0, taken, true, false);
            push(&mut b, 0, taken as u16, 2);
            taken += 2;
            assert_eq!(told(&mut b, 30 * US), n);
            b.ok(&Cmd::modify_cq(0, count, period));
            if quiet > 0 {
                assert_eq!(told(&mut b, quiet * US), n);
            }
            let wait = if quiet > 0 { 2 * US + 60 } else { 60 };
            assert_eq!(told(&mut b, wait), n + 1, "count {count}, period {period}");
        }
    }
}

#[test]
fn every_queues_period_ends_in_time_however_long_the_device_runs() {
    // A cycle of a microsecond: periods of any length, and a clock that goes round many times.
    const PS: u32 = 1_000_000;
    let seed = seed();
    let mut rng = Stream::new(seed, "periods", 0);
    let mut b = CtrlBench::clocked(64, seed, PS);
    b.make_eq(1, 12);
    for q in 0..NUM_CQ {
        b.clear(ring(q), 32 << 6);
        b.ok(&Cmd::create_cq(6, 1, 3, ring(q)));
    }
    let mut sent = [0u32; NUM_CQ as usize];
    let mut events = 0;
    for _ in 0..40 {
        let mut due = Vec::new();
        let all_at_once = rng.chance(0.3);
        for q in 0..NUM_CQ {
            let period = if all_at_once { 600 } else { 40 + rng.below(4056) };
            b.ok(&Cmd::modify_cq(q, 0, period as u16));
            db(&mut b, q, sent[q as usize], true, false);
            due.push(period);
        }
        b.out.clear();
        for q in 0..NUM_CQ {
            push(&mut b, q, 0, 1);
            sent[q as usize] += 1;
        }
        let start = b.now();
        b.run(4095 + 250);
        // The event's own time stamp; a write of 32 bytes takes 4 cycles, a check 3.
        for (_, bytes) in b.writes(2) {
            let q = u32::from_le_bytes(bytes[4..8].try_into().unwrap()) as usize;
            let took = u64::from_le_bytes(bytes[24..32].try_into().unwrap()) - start;
            let slack = 200 + u64::from(NUM_CQ);
            assert!(
                (due[q]..due[q] + slack).contains(&took),
                "queue {q}: {took} of {}",
                due[q]
            );
        }
        events += NUM_CQ;
        assert_eq!(b.events_written().len(), NUM_CQ as usize, "each once");
        b.eq_db.push_back(eq_doorbell(1, events, true));
        b.run(4);
    }
    assert!(b.now() > 10 * 8192);
}

// ---------------------------------------------------------------- resizing

/// Where the n-th other ring of a queue lies.
fn other(cqn: u32, n: u32) -> u64 {
    BASE + 0xa_0000 + u64::from(cqn * 8 + n) * 0x800
}

#[test]
fn a_resized_queue_goes_on_in_its_new_ring_and_loses_nothing() {
    for width in WIDTHS {
        let mut b = bench(width, 1, 3);
        push(&mut b, 0, 0, 8);
        b.run(100);
        db(&mut b, 0, 3, false, false);
        push(&mut b, 0, 8, 3);
        b.run(60);
        // 11 written, 8 of them not taken: a ring of 4 is too small, and the old one goes on.
        db(&mut b, 0, 5, true, false);
        b.run(20);
        b.out.clear();
        b.refused(&Cmd::resize_cq(0, 2, other(0, 0)), TOO_SMALL, 0);
        push(&mut b, 0, 11, 1);
        b.run(30);
        assert_eq!(b.writes(1)[0].0, ring(0) + 32 * 3);
        // A ring of just that size is not.
        b.clear(other(0, 1), 32 << 4);
        db(&mut b, 0, 8, true, false);
        b.run(20);
        b.out.clear();
        let c = b.exec(&Cmd::resize_cq(0, 2, other(0, 1)));
        assert_eq!((c.status, c.handle, c.count), (status::OK, 0, 12));
        db(&mut b, 0, 10, false, false);
        let old = b.bytes(ring(0), 0x1000).to_vec();
        push(&mut b, 0, 12, 2);
        b.run(60);
        assert_eq!(b.bytes(ring(0), 0x1000), old, "the old ring is not written any more");
        let at: Vec<(u64, u8, u8)> = b.writes(1).iter().map(|(a, e)| (*a, e[4], e[7] >> 7)).collect();
        assert_eq!(
            at,
            [(other(0, 1), 12, 1), (other(0, 1) + 32, 13, 1)],
            "from its slot 0, first lap"
        );
        // 4 wait; what is taken from the old ring makes room, and the second lap toggles.
        db(&mut b, 0, 14, false, false);
        push(&mut b, 0, 14, 4);
        b.run(100);
        let at: Vec<(u64, u8, u8)> = b.writes(1)[2..].iter().map(|(a, e)| (*a, e[4], e[7] >> 7)).collect();
        let slot = |n: u64| other(0, 1) + 32 * n;
        assert_eq!(
            at,
            [(slot(2), 14, 1), (slot(3), 15, 1), (slot(0), 16, 0), (slot(1), 17, 0)]
        );
        // Larger, with all four waiting; then it is full at its own size.
        b.clear(other(0, 2), 32 << 4);
        let c = b.exec(&Cmd::resize_cq(0, 3, other(0, 2)));
        assert_eq!((c.status, c.count), (status::OK, 18));
        push(&mut b, 0, 18, 4);
        b.run(100);
        assert_eq!(b.counts[CQ_OVERRUN], 0);
        push(&mut b, 0, 22, 1);
        b.run(60);
        assert_eq!(b.counts[CQ_OVERRUN], 1);
        // A queue that overran has lost a completion: it stays in error, in whatever ring.
        db(&mut b, 0, 22, false, false);
        b.refused(&Cmd::resize_cq(0, 5, ring(0)), IN_ERROR, 0);
        push(&mut b, 0, 23, 1);
        b.run(60);
        assert_eq!((b.counts[CQE_WRITTEN], b.counts[CQ_OVERRUN]), (22, 2));
    }
}

#[test]
fn a_queue_stays_armed_and_moderated_in_its_new_ring() {
    for width in WIDTHS {
        let mut b = bench(width, 1, 3);
        b.clear(other(0, 0), 32 << 4);
        b.ok(&Cmd::modify_cq(0, 3, 30));
        db(&mut b, 0, 0, true, false);
        push(&mut b, 0, 0, 1);
        b.run(10 * US);
        b.ok(&Cmd::resize_cq(0, 4, other(0, 0)));
        push(&mut b, 0, 1, 1);
        assert_eq!(told(&mut b, 10 * US), 0, "two of three");
        assert_eq!(told(&mut b, 10 * US + 60), 1, "the period of the first");
        db(&mut b, 0, 2, true, false);
        push(&mut b, 0, 2, 2);
        b.run(60);
        b.clear(other(0, 1), 32 << 4);
        b.ok(&Cmd::resize_cq(0, 2, other(0, 1)));
        push(&mut b, 0, 4, 1);
        assert_eq!(told(&mut b, 60), 2, "the third");
    }
}

/// A queue as the driver of the test below sees it.
struct Seen {
    log: u32,
    base: u64,
    /// Index of the first entry of this ring.
    org: u32,
    /// Which of the other rings it is in.
    place: u32,
    taken: u32,
    posted: u32,
    order: Vec<u16>,
    awake: bool,
}

impl Seen {
    fn take(&mut self, b: &CtrlBench) -> bool {
        let pos = self.taken - self.org;
        let e = b.bytes(self.base + 32 * u64::from(pos % (1 << self.log)), 32);
        let there = u32::from(e[7] >> 7) == 1 - (pos >> self.log) % 2;
        if there {
            self.order.push(u16::from_le_bytes([e[4], e[5]]));
            self.taken += 1;
        }
        there
    }
}

#[test]
fn a_driver_that_sleeps_loses_nothing_while_queues_are_modified_and_resized() {
    const QUEUES: u32 = 4;
    const TOTAL: u32 = 1200;
    let seed = seed();
    for width in WIDTHS {
        let mut rng = Stream::new(seed, "sleeper and resizer", 0);
        let mut b = bench(width, QUEUES, 4);
        b.manners.stall = 0.15;
        b.eq_db.push_back(eq_doorbell(1, 0, true));
        let mut qs: Vec<Seen> = (0..QUEUES)
            .map(|q| Seen {
                log: 4,
                base: ring(q),
                org: 0,
                place: 0,
                taken: 0,
                posted: 0,
                order: Vec::new(),
                awake: false,
            })
            .collect();
        let (mut events, mut eq_awake, mut idle, mut quiet) = (0u32, false, 0, 0);
        let mut under_way: Option<(u32, u32)> = None;
        let mut outcomes = [0; 16];
        for q in 0..QUEUES {
            b.ok(&Cmd::modify_cq(q, 4, 8));
            db(&mut b, q, 0, true, false);
        }
        while qs.iter().map(|q| q.taken).sum::<u32>() < TOTAL {
            let n = rng.below(u64::from(QUEUES)) as u32;
            let q = &mut qs[n as usize];
            // Never more than fit, nor than the ring asked for; and not before the device knows what was taken.
            let small = q.log == 1 || under_way == Some((n, 1));
            quiet = if b.cq_db.is_empty() { quiet + 1 } else { 0 };
            if rng.chance(0.1)
                && quiet > 3
                && q.posted - q.taken < if small { 2 } else { 4 }
                && q.posted < TOTAL / QUEUES
            {
                b.cqes[rng.below(2) as usize].push_back(cqe(n as u16, q.posted as u16));
                q.posted += 1;
            }
            // (A doorbell of the command ring takes a cycle, too.)
            let before = b.out.len();
            match (under_way, rng.below(100)) {
                (None, 0) => {
                    let (count, period) = (rng.below(8) as u16, rng.below(12) as u16);
                    b.put(&Cmd::modify_cq(n, count, period));
                    b.doorbell(b.produced);
                    under_way = Some((n, u32::MAX));
                }
                (None, 1..4) => {
                    // 4 to 32 entries; or 2, of which more may wait.
                    let on_its_way = b.cqes.iter().flatten().any(|c| u32::from(c.cqn) == n);
                    let log = if on_its_way { 2 } else { 1 } + rng.below(4) as u32;
                    let place = (q.place + 1) % 8;
                    b.clear(other(n, place), 32 << log);
                    b.put(&Cmd::resize_cq(n, log as u8, other(n, place)));
                    b.doorbell(b.produced);
                    under_way = Some((n, log));
                }
                _ => {}
            }
            b.step();
            if let (Some((n, log)), Some(c)) = (under_way, b.poll()) {
                under_way = None;
                outcomes[usize::from(c.status)] += 1;
                if log != u32::MAX && c.status == status::OK {
                    // What is before the new ring is in the old one, now.
                    let q = &mut qs[n as usize];
                    while q.taken != c.count {
                        assert!(q.take(&b), "entry {} of the old ring", q.taken);
                    }
                    (q.log, q.org, q.place) = (log, c.count, (q.place + 1) % 8);
                    q.base = other(n, q.place);
                    q.awake = true;
                    b.cq_db.push_back((3, cq_doorbell(n, q.taken, false, false)));
                }
            }
            eq_awake |= b.out[before..].contains(&Out::Msix { source: 0, vector: 1 });
            if eq_awake && rng.chance(0.2) {
                eq_awake = false;
                loop {
                    let e = b.bytes(BASE + 0x9_4000 + 32 * u64::from(events % 64), 32);
                    if u32::from(e[3] >> 7) != 1 - (events / 64) % 2 {
                        break;
                    }
                    qs[usize::from(e[4])].awake = true;
                    events += 1;
                }
                b.eq_db.push_back(eq_doorbell(1, events, true));
            }
            idle += 1;
            let q = &mut qs[n as usize];
            let moves = under_way.is_some_and(|(m, log)| m == n && log != u32::MAX);
            if q.awake && !moves && rng.chance(0.1) {
                q.awake = false;
                while q.take(&b) {
                    idle = 0;
                }
                b.cq_db.push_back((3, cq_doorbell(n, q.taken, true, false)));
            }
            assert!(
                idle < 12 * US + 3000,
                "a wake-up was lost; under way {under_way:?}, {outcomes:?}, {events} events, woken {eq_awake}: {:?}",
                qs.iter()
                    .map(|q| (q.posted, q.taken, q.log, q.awake))
                    .collect::<Vec<_>>()
            );
        }
        for q in &qs {
            let all: Vec<u16> = (0..q.posted as u16).collect();
            let mut sorted = q.order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, all, "each once");
        }
        for (n, q) in qs.iter().enumerate() {
            let order: Vec<u16> = b
                .cqes_taken
                .iter()
                .filter(|c| usize::from(c.cqn) == n)
                .map(|c| c.wqe_index)
                .collect();
            assert_eq!(q.order, order);
        }
        println!("{width} bits: {events} events, outcomes {outcomes:?}");
        assert!(outcomes[0] > 50 && outcomes[usize::from(TOO_SMALL)] > 3, "{outcomes:?}");
        assert_eq!((b.counts[CQ_OVERRUN], b.dut.get("fatal_o")), (0, 0));
    }
}
