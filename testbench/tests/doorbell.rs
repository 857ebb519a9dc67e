// SPDX-License-Identifier: Apache-2.0
//! Doorbells of `rnic_host`: each rule with the counter it has, and random ones against a model.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use openrnic_testbench::host_bench::{HostBench, Hot, LOG_QP, Mmio, counter, seed};
use openrnic_testbench::qp_bench::Random;

const PAGES: u64 = 0x1_0000;
const SQ: u64 = 0;
const RQ: u64 = 8;
const CQ: u64 = 16;
const RESET: u64 = 0;
const INIT: u64 = 1;
const RTR: u64 = 2;
const RTS: u64 = 3;
const SQD: u64 = 4;
const SQE: u64 = 5;
const ERR: u64 = 6;
const COUNTERS: [usize; 6] = [
    counter::DB_ACCEPTED,
    counter::DB_DROP_QPN,
    counter::DB_DROP_PAGE,
    counter::DB_DROP_STATE,
    counter::DB_DROP_RANGE,
    counter::DB_DROP_FORMAT,
];
const QP: u64 = 9;
const HOT: Hot = Hot {
    valid: true,
    state: RTS,
    has_srq: false,
    uar: 5,
    log_sq: 4,
    log_rq: 3,
    generation: 0x1a2,
    epoch: 7,
};

fn qpn(index: u64, generation: u64) -> u64 {
    index | generation << LOG_QP
}

fn ring(bench: &mut HostBench, page: u64, offset: u64, qpn: u64, producer: u64) {
    bench.write64(PAGES + 0x1000 * page + offset, qpn | producer << 32);
}

fn counts(bench: &mut HostBench) -> [u64; 6] {
    COUNTERS.map(|c| bench.counter(c))
}

/// What the engines read: (epoch, index).
fn producer(bench: &mut HostBench, send: bool, index: u64) -> (u64, u64) {
    let (idx, out) = if send {
        ("sq_prod_idx_i", "sq_prod_o")
    } else {
        ("rq_prod_idx_i", "rq_prod_o")
    };
    bench.dut.set(idx, index);
    bench.cycle();
    let pos = bench.dut.get(out);
    (pos >> 16, pos & 0xffff)
}

fn consume(bench: &mut HostBench, send: bool, index: u64, epoch: u64, val: u64) {
    let (we, pos) = if send {
        ("sq_cons_we_i", "sq_cons_i")
    } else {
        ("rq_cons_we_i", "rq_cons_i")
    };
    bench.dut.set(we, 1);
    bench.dut.set(pos, index << 32 | epoch << 16 | val);
    bench.cycle();
    bench.dut.set(we, 0);
}

fn bench(hot: Hot) -> HostBench {
    let mut bench = HostBench::new(64, 3);
    bench.hot.insert(QP, hot.word());
    bench
}

/// One send doorbell and one receive doorbell (producer 1) to a QP like this: which counters move.
fn both(hot: Hot, page: u64, number: u64) -> ([u64; 6], [u64; 6]) {
    let mut results = Vec::new();
    for offset in [SQ, RQ] {
        let mut bench = bench(hot);
        ring(&mut bench, page, offset, number, 1);
        bench.run(20);
        let counts = counts(&mut bench);
        assert_eq!(bench.kicks.len() as u64, counts[0]);
        results.push(counts);
    }
    (results[0], results[1])
}

fn only(which: usize) -> [u64; 6] {
    let mut c = [0; 6];
    c[which] = 1;
    c
}

#[test]
fn an_accepted_doorbell_moves_the_producer_and_kicks_its_engine() {
    let mut bench = bench(HOT);
    ring(&mut bench, HOT.uar, SQ, qpn(QP, HOT.generation), 3);
    bench.run(20);
    assert_eq!(bench.kicks, [(true, QP)]);
    assert_eq!(producer(&mut bench, true, QP), (HOT.epoch, 3));
    assert_eq!(producer(&mut bench, false, QP), (0, 0));
    ring(&mut bench, HOT.uar, RQ, qpn(QP, HOT.generation), 8);
    bench.run(20);
    assert_eq!(bench.kicks, [(true, QP), (false, QP)]);
    assert_eq!(producer(&mut bench, false, QP), (HOT.epoch, 8));
    assert_eq!(producer(&mut bench, true, QP), (HOT.epoch, 3));
    assert_eq!(counts(&mut bench), [2, 0, 0, 0, 0, 0]);
}

#[test]
fn the_kick_finds_the_new_producer() {
    let mut bench = bench(HOT);
    bench.dut.set("sq_prod_idx_i", QP);
    for n in 1..=10 {
        ring(&mut bench, HOT.uar, SQ, qpn(QP, HOT.generation), n);
    }
    let mut last = 0;
    for _ in 0..40 {
        let kicks = bench.kicks.len();
        bench.cycle();
        if bench.kicks.len() > kicks {
            // Asked in the cycle of the kick, answered in the next.
            bench.dut.eval();
            let now = bench.dut.get("sq_prod_o") & 0xffff;
            assert!(
                now >= bench.kicks.len() as u64,
                "kick {} finds {now}",
                bench.kicks.len()
            );
            last = now;
        }
    }
    assert_eq!(last, 10);
}

#[test]
fn a_qpn_without_a_life_or_of_an_old_one_is_dropped() {
    assert_eq!(both(HOT, HOT.uar, qpn(QP, HOT.generation)), (only(0), only(0)));
    assert_eq!(both(HOT, HOT.uar, qpn(QP, HOT.generation ^ 1)), (only(1), only(1)));
    assert_eq!(both(HOT, HOT.uar, qpn(QP, HOT.generation ^ 0x8000)), (only(1), only(1)));
    assert_eq!(both(HOT, HOT.uar, qpn(QP + 1, HOT.generation)), (only(1), only(1)));
    let dead = Hot { valid: false, ..HOT };
    assert_eq!(both(dead, HOT.uar, qpn(QP, HOT.generation)), (only(1), only(1)));
}

#[test]
fn a_doorbell_through_another_page_is_dropped() {
    for page in [0, 4, 6, 31] {
        assert_eq!(both(HOT, page, qpn(QP, HOT.generation)), (only(2), only(2)));
    }
}

#[test]
fn a_state_that_takes_no_posts_drops() {
    for state in [RESET, INIT, RTR, RTS, SQD, SQE, ERR] {
        let hot = Hot { state, ..HOT };
        let send = if state >= RTS { 0 } else { 3 };
        let receive = if state >= INIT { 0 } else { 3 };
        assert_eq!(
            both(hot, HOT.uar, qpn(QP, HOT.generation)),
            (only(send), only(receive)),
            "state {state}"
        );
        let srq = Hot { has_srq: true, ..hot };
        assert_eq!(
            both(srq, HOT.uar, qpn(QP, HOT.generation)),
            (only(send), only(3)),
            "state {state}, shared receive queue"
        );
    }
}

#[test]
fn a_producer_beyond_the_ring_or_behind_the_old_one_is_dropped() {
    for (offset, size) in [(SQ, 16), (RQ, 8)] {
        let send = offset == SQ;
        let number = qpn(QP, HOT.generation);
        let mut bench = bench(HOT);
        let mut want = [0; 6];
        for (value, ok) in [
            (size + 1, false),
            (0xffff, false),
            (3, true),
            (2, false),
            (3, true),
            (size, true),
            (size + 1, false),
        ] {
            ring(&mut bench, HOT.uar, offset, number, value);
            want[if ok { 0 } else { 4 }] += 1;
        }
        bench.run(50);
        assert_eq!(counts(&mut bench), want);
        assert_eq!(producer(&mut bench, send, QP), (HOT.epoch, size));
        // The consumer makes room.
        consume(&mut bench, send, QP, HOT.epoch, 2);
        for (value, ok) in [(size + 3, false), (size + 2, true)] {
            ring(&mut bench, HOT.uar, offset, number, value);
            want[if ok { 0 } else { 4 }] += 1;
        }
        bench.run(50);
        assert_eq!(counts(&mut bench), want);
    }
}

#[test]
fn producers_run_over_65535() {
    let hot = Hot { log_sq: 15, ..HOT };
    let number = qpn(QP, HOT.generation);
    let mut bench = bench(hot);
    let mut at = 0u64;
    let mut want = [0; 6];
    for _ in 0..6 {
        at += 0x7000;
        ring(&mut bench, HOT.uar, SQ, number, at & 0xffff);
        want[0] += 1;
        bench.run(20);
        consume(&mut bench, true, QP, HOT.epoch, at & 0xffff);
        ring(&mut bench, HOT.uar, SQ, number, (at + 0x8001) & 0xffff);
        ring(&mut bench, HOT.uar, SQ, number, (at - 1) & 0xffff);
        want[4] += 2;
        bench.run(20);
    }
    assert_eq!(counts(&mut bench), want);
}

#[test]
fn a_new_life_starts_at_zero() {
    let number = qpn(QP, HOT.generation);
    let mut bench = bench(HOT);
    ring(&mut bench, HOT.uar, SQ, number, 12);
    bench.run(20);
    consume(&mut bench, true, QP, HOT.epoch, 12);
    bench.hot.insert(
        QP,
        Hot {
            epoch: HOT.epoch + 1,
            ..HOT
        }
        .word(),
    );
    ring(&mut bench, HOT.uar, SQ, number, 17);
    ring(&mut bench, HOT.uar, SQ, number, 1);
    bench.run(20);
    assert_eq!(counts(&mut bench), [2, 0, 0, 0, 1, 0]);
    assert_eq!(producer(&mut bench, true, QP), (HOT.epoch + 1, 1));
}

#[test]
fn what_is_not_one_aligned_write_of_64_bits_to_a_doorbell_is_dropped() {
    let mut bench = bench(HOT);
    let page = PAGES + 0x1000 * HOT.uar;
    let value = qpn(QP, HOT.generation) | 1 << 32;
    bench.write32(page + SQ, value as u32);
    bench.write32(page + SQ + 4, 1);
    bench.write64(page + 32, value);
    bench.write64(page + 0x800, value);
    bench.write64(page + 0xff8, value);
    bench.write64(page + SQ, value | 1 << 24); // reserved bits
    bench.write64(page + RQ, value | 1 << 63);
    bench.write64(page + CQ, value | 1 << 31);
    bench.run(50);
    assert_eq!(counts(&mut bench), [0, 0, 0, 0, 0, 8]);
    assert_eq!(bench.counter(counter::MMIO_UR), 0);
    // Not even an access.
    bench.mmio(Mmio {
        write: true,
        addr: page + SQ,
        dw_len: 2,
        first_be: 0xf,
        last_be: 3,
        bar: 0,
        poisoned: false,
        tag: 0,
        data: value,
    });
    bench.mmio(Mmio {
        write: true,
        addr: page + SQ,
        dw_len: 2,
        first_be: 0xf,
        last_be: 0xf,
        bar: 0,
        poisoned: true,
        tag: 0,
        data: value,
    });
    bench.run(50);
    assert_eq!(bench.counter(counter::MMIO_UR), 2);
    assert_eq!(counts(&mut bench), [0, 0, 0, 0, 0, 8]);
    assert!(bench.kicks.is_empty() && bench.cq_dbs.is_empty());
}

#[test]
fn completion_queue_doorbells_are_handed_on_with_their_page() {
    let mut bench = bench(HOT);
    let mut expected = Vec::new();
    for page in [0, 7, 31] {
        for value in [0x0012_3456_0100_0003, 0x00ff_ffff_03ff_ffff, 0] {
            bench.write64(PAGES + 0x1000 * page + CQ, value);
            expected.push((page, value));
        }
    }
    bench.run(50);
    assert_eq!(bench.cq_dbs, expected);
    assert_eq!(counts(&mut bench), [0; 6]);
}

#[test]
fn shared_receive_queue_doorbells_are_handed_on_with_their_page() {
    let mut bench = bench(HOT);
    let mut expected = Vec::new();
    for page in [0, 7, 31] {
        for value in [0x0000_3456_0000_0003, 0x0000_ffff_00ff_ffff, 0] {
            bench.write64(PAGES + 0x1000 * page + 0x18, value);
            expected.push((page, value));
        }
        // Reserved bits, and the place behind.
        bench.write64(PAGES + 0x1000 * page + 0x18, 1 << 24);
        bench.write64(PAGES + 0x1000 * page + 0x18, 1 << 48);
        bench.write64(PAGES + 0x1000 * page + 0x20, 0);
    }
    bench.run(50);
    assert_eq!(bench.srq_dbs, expected);
    assert!(bench.cq_dbs.is_empty());
    assert_eq!(counts(&mut bench), [0, 0, 0, 0, 0, 9]);
}

#[test]
fn random_doorbells_one_a_cycle_are_judged_as_by_the_model() {
    let seed = seed(1);
    let mut rng = Random::new(seed);
    let mut bench = HostBench::new(64, seed);
    let mut hots = BTreeMap::new();
    for index in 2..12u64 {
        let hot = Hot {
            valid: rng.chance(9, 10),
            state: rng.below(7),
            has_srq: rng.chance(1, 6),
            uar: rng.below(3),
            log_sq: rng.below(5),
            log_rq: rng.below(16),
            generation: rng.below(0x1_0000),
            epoch: rng.below(0x1_0000),
        };
        bench.hot.insert(index, hot.word());
        hots.insert(index, hot);
    }
    let mut prod = BTreeMap::new();
    let mut want = [0u64; 6];
    let mut kicks = Vec::new();
    for _ in 0..3000 {
        let index = 1 + rng.below(12);
        let hot = hots.get(&index).copied().unwrap_or(Hot { valid: false, ..HOT });
        let generation = if rng.chance(1, 12) {
            rng.below(0x1_0000)
        } else {
            hot.generation
        };
        let page = if rng.chance(1, 12) { rng.below(32) } else { hot.uar };
        let send = rng.chance(1, 2);
        let old = prod.get(&(send, index)).copied().unwrap_or(0u64);
        let size = 1u64 << if send { hot.log_sq } else { hot.log_rq };
        let value = (old + rng.below(4)).wrapping_sub(u64::from(rng.chance(1, 6))) & 0xffff;
        let value = if rng.chance(1, 10) {
            (size + rng.below(3)).wrapping_sub(1) & 0xffff
        } else {
            value
        };
        ring(
            &mut bench,
            page,
            if send { SQ } else { RQ },
            qpn(index, generation),
            value,
        );
        let state_ok = if send {
            hot.state >= RTS
        } else {
            hot.state >= INIT && !hot.has_srq
        };
        let verdict = if !hot.valid || generation != hot.generation {
            1
        } else if page != hot.uar {
            2
        } else if !state_ok {
            3
        } else if value > size || value < old {
            4
        } else {
            0
        };
        want[verdict] += 1;
        if verdict == 0 {
            prod.insert((send, index), value);
            kicks.push((send, index));
        }
    }
    bench.run(3200);
    assert_eq!(bench.longest_posted_wait, 0);
    assert_eq!(counts(&mut bench), want);
    assert!(want[..5].iter().all(|n| *n > 20), "{want:?}");
    assert_eq!(bench.kicks, kicks);
    for ((send, index), value) in prod {
        let epoch = hots[&index].epoch;
        assert_eq!(producer(&mut bench, send, index), (epoch, value));
    }
}
