// SPDX-License-Identifier: Apache-2.0
//! MSI-X of `rnic_host`: table and pending bits by BAR, messages behind the writes before them.
#![allow(clippy::unwrap_used)]

use openrnic_testbench::host_bench::{BASE, HostBench, Manners, SIZE, WRITERS, counter, seed};
use openrnic_testbench::qp_bench::Random;

const WIDTHS: [u32; 2] = [64, 512];
const TABLE: u64 = 0x2000;
const PBA: u64 = 0x3000;
const VECTORS: u64 = 5;
const TARGET: u64 = BASE + SIZE as u64 - 4096;

fn arm(bench: &mut HostBench, vector: u64, masked: bool) {
    bench.write64(TABLE + 16 * vector, TARGET + 16 * vector);
    bench.write32(TABLE + 16 * vector + 8, 0x5500 + vector as u32);
    bench.write32(TABLE + 16 * vector + 12, u32::from(masked));
}

/// Vectors of the messages that have arrived.
fn messages(bench: &HostBench) -> Vec<u64> {
    bench
        .writes_seen()
        .filter(|t| t.addr >= TARGET)
        .map(|t| {
            let vector = (t.addr - TARGET) / 16;
            assert_eq!((t.dw_len, t.first_be, t.last_be), (1, 0xf, 0));
            assert_eq!(t.data, (0x5500 + vector as u32).to_le_bytes());
            vector
        })
        .collect()
}

#[test]
fn vectors_are_masked_after_reset_and_the_table_is_read_back() {
    for width in WIDTHS {
        let mut bench = HostBench::new(width, 1);
        for v in 0..VECTORS {
            assert_eq!(bench.read32(TABLE + 16 * v + 12), 1);
        }
        for v in 0..VECTORS {
            bench.write64(TABLE + 16 * v, 0xa1b2_c3d4_0000_0000 + 0x100 * v);
            bench.write64(TABLE + 16 * v + 8, 0x1_0000_0000 * (v & 1) + 0x77 + v);
        }
        for v in 0..VECTORS {
            assert_eq!(bench.read32(TABLE + 16 * v), 0x100 * v as u32);
            assert_eq!(bench.read32(TABLE + 16 * v + 4), 0xa1b2_c3d4);
            assert_eq!(bench.read64(TABLE + 16 * v + 8), 0x1_0000_0000 * (v & 1) + 0x77 + v);
            bench.write32(TABLE + 16 * v + 4, 9);
            assert_eq!(bench.read64(TABLE + 16 * v), (9 << 32) | (0x100 * v));
        }
        assert_eq!(bench.read64(PBA), 0);
    }
}

#[test]
fn an_unmasked_vector_is_sent_once_per_request() {
    for width in WIDTHS {
        let mut bench = HostBench::new(width, 1);
        for v in 0..VECTORS {
            arm(&mut bench, v, false);
        }
        bench.run(100);
        for v in [3, 0, 4, 1, 2, 3] {
            bench.vectors[v % 2].push_back(v as u8);
            bench.cycles(20);
        }
        bench.run(100);
        assert_eq!(messages(&bench), [3, 0, 4, 1, 2, 3]);
        assert_eq!(bench.counter(counter::MSIX_SENT), 6);
        assert_eq!(bench.read64(PBA), 0);
    }
}

#[test]
fn a_masked_vector_is_pending_until_it_is_unmasked() {
    for width in WIDTHS {
        let mut bench = HostBench::new(width, 1);
        for v in 0..VECTORS {
            arm(&mut bench, v, v != 1);
        }
        bench.run(100);
        for v in [4, 2, 1, 4] {
            bench.vectors[0].push_back(v);
        }
        bench.cycles(30);
        assert!(bench.vectors[0].is_empty(), "a source never waits for a mask");
        assert_eq!(messages(&bench), [1]);
        assert_eq!(bench.read64(PBA), 1 << 4 | 1 << 2);
        bench.write32(TABLE + 16 * 4 + 12, 0);
        bench.cycles(30);
        assert_eq!(
            messages(&bench),
            [1, 4],
            "two requests for a pending vector are one interrupt"
        );
        assert_eq!(bench.read32(PBA), 1 << 2);
        bench.write32(TABLE + 16 * 2 + 12, 0);
        bench.cycles(30);
        assert_eq!(messages(&bench), [1, 4, 2]);
        assert_eq!(bench.read32(PBA), 0);
        assert_eq!(bench.counter(counter::MSIX_SENT), 3);
    }
}

#[test]
fn a_vector_outside_of_the_table_is_ignored() {
    let mut bench = HostBench::new(64, 1);
    for v in 0..VECTORS {
        arm(&mut bench, v, false);
    }
    bench.run(100);
    bench.vectors[0].extend([5, 7, 8, 13, 255]);
    bench.cycles(50);
    assert!(bench.vectors[0].is_empty());
    assert!(messages(&bench).is_empty());
    assert_eq!(bench.read64(PBA), 0);
}

#[test]
fn a_message_goes_where_the_table_pointed_when_it_was_raised() {
    let mut bench = HostBench::new(64, 1);
    arm(&mut bench, 0, false);
    bench.run(100);
    bench.dut.set("bus_master_en_i", 0);
    bench.vectors[0].push_back(0);
    bench.cycles(30);
    bench.write32(TABLE + 12, 1);
    bench.write64(TABLE, 0);
    bench.run(100);
    bench.dut.set("bus_master_en_i", 1);
    bench.run(100);
    assert_eq!(messages(&bench), [0]);
}

#[test]
fn an_interrupt_is_behind_every_write_accepted_before_it() {
    let seed = seed(1);
    for width in WIDTHS {
        let mut rng = Random::new(seed);
        let mut bench = HostBench::new(width, seed);
        for v in 0..VECTORS {
            arm(&mut bench, v, false);
        }
        bench.run(100);
        bench.manners = Manners {
            rq_stall_one_in: 2,
            ..Manners::BUSY
        };
        let mut sent = 0;
        for round in 0..150u64 {
            let len = 1 + rng.below(300) as usize;
            bench.write(
                rng.below(WRITERS as u64) as usize,
                BASE + 512 * (round % 64),
                vec![round as u8; len],
            );
            bench.cycles(rng.below(30));
            if rng.chance(1, 3) {
                let v = sent % VECTORS;
                // So that no two requests become one.
                while (messages(&bench).iter().filter(|m| **m == v).count() as u64) < sent / VECTORS {
                    bench.cycle();
                }
                bench.vectors[(sent % 2) as usize].push_back(v as u8);
                sent += 1;
            }
        }
        bench.run(20_000);
        bench.cycles(500);
        assert_eq!(messages(&bench).len() as u64, sent);
        // Walk along the posted stream: at each message, everything taken before its request must have passed.
        let tlps: Vec<_> = bench.writes_seen().collect();
        let mut requests = bench.vectors_taken.clone();
        let mut passed = 0u64;
        for t in tlps {
            if t.addr < TARGET {
                passed += t.bytes().end - t.bytes().start;
                continue;
            }
            let nth = requests
                .iter()
                .position(|r| u64::from(r.1) == (t.addr - TARGET) / 16)
                .unwrap();
            let (taken, vector) = requests.remove(nth);
            let before: u64 = bench
                .written
                .iter()
                .filter(|w| w.0 <= taken)
                .map(|w| w.3.len() as u64)
                .sum();
            assert!(
                passed >= before,
                "vector {vector}, taken in cycle {taken}: {passed} bytes passed, {before} were accepted"
            );
        }
    }
}
