// SPDX-License-Identifier: Apache-2.0
//! BAR0 of `rnic_host`: registers, counters, and every access that is none.
#![allow(clippy::unwrap_used)]

use openrnic_testbench::host_bench::{BASE, HostBench, LOG_QP, Manners, Mmio, TAGS, counter, seed};
use openrnic_testbench::qp_bench::Random;

const WIDTHS: [u32; 2] = [64, 512];
const UR: u64 = 1;
const ENABLE: u64 = 0x208;
const FORCE_FATAL: u64 = 0x214;
const MPS: u64 = 0x218;
const MRRS: u64 = 0x21c;
const CPL_TIMEOUT: u64 = 0x220;
const CYCLES: u64 = 0x228;
const RING_BASE: u64 = 0x308;
const CPL_BASE: u64 = 0x310;
const LOG_SIZE: u64 = 0x318;
const PRODUCER: u64 = 0x31c;
const EQ_DOORBELL: u64 = 0x408;
const MAC: u64 = 0x608;
const PAGES: u64 = 0x1_0000;
const PAGES_END: u64 = 0x3_0000;
const COUNTERS: u64 = 0x1000;

fn read(addr: u64, dw_len: u64) -> Mmio {
    Mmio {
        write: false,
        addr,
        dw_len,
        first_be: 0xf,
        last_be: if dw_len > 1 { 0xf } else { 0 },
        bar: 0,
        poisoned: false,
        tag: 77,
        data: 0,
    }
}

fn write(addr: u64, dw_len: u64, data: u64) -> Mmio {
    Mmio {
        write: true,
        data,
        ..read(addr, dw_len)
    }
}

#[test]
fn the_blocks_describe_themselves() {
    for width in WIDTHS {
        let mut bench = HostBench::new(width, 1);
        let mut at = 0;
        let mut types = Vec::new();
        loop {
            let head = bench.read32(at);
            assert_eq!(head >> 16, 1, "version of the block at {at:#x}");
            types.push(head & 0xffff);
            at = u64::from(bench.read32(at + 4));
            if at == 0 {
                break;
            }
        }
        assert_eq!(types, [1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(bench.read32(8).to_le_bytes(), *b"ORNC");
        assert_eq!(bench.read64(8), 0x0001_0000_434e_524f);
    }
}

#[test]
fn the_capabilities_are_those_of_the_build() {
    for width in WIDTHS {
        let mut bench = HostBench::new(width, 1);
        let caps: Vec<u32> = (0..24).map(|i| bench.read32(0x108 + 4 * i)).collect();
        let expected = [
            LOG_QP,
            256,
            1024,
            256,
            4,
            32,
            width,
            8000,
            TAGS as u32,
            16,
            992,
            1 << 1 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 8 | 1 << 9 | 1 << 10,
            1 << 2,
            16,
            1,
            16,
            8,
            // WRITE, SEND with and without immediate, READ; atomics, local invalidation, windows, SEND with invalidate.
            0b11_1111_1111,
            4,
            4,
            64,
            16,
            // IPv6; no memory on the board.
            1,
            0,
        ];
        assert_eq!(caps, expected);
        assert_eq!(bench.ask(read(0x168, 1)).status, UR);
    }
    // Built without IPv6, and otherwise the same.
    let mut bench = HostBench::built(64, 1, &[("Ipv6", 0)]);
    assert_eq!((bench.read32(0x15c), bench.read32(0x160)), (16, 0));
    let mut bench = HostBench::built(64, 1, &[("LocalMemLog", 14)]);
    assert_eq!((bench.read32(0x160), bench.read32(0x164)), (1, 14));
}

#[test]
fn control_registers_take_what_they_know_and_ignore_the_rest() {
    let mut bench = HostBench::new(64, 1);
    assert_eq!(
        (bench.read32(MPS), bench.read32(MRRS), bench.read32(CPL_TIMEOUT)),
        (256, 512, 50_000)
    );
    for (reg, start) in [(MPS, 256), (MRRS, 512)] {
        let mut now = start;
        for value in [128, 100, 1024, 0, 2048, 512, 0x0001_0100, 256, 127] {
            bench.write32(reg, value);
            if [128, 256, 512, 1024].contains(&value) {
                now = value;
            }
            assert_eq!(bench.read32(reg), now, "after {value}");
        }
    }
    for (value, kept) in [
        (1000, 1000),
        (1, 64),
        (0xffff_ffff, 0x7f_ffff),
        (0x7f_ffff, 0x7f_ffff),
        (0x80_0000, 0x7f_ffff),
    ] {
        bench.write32(CPL_TIMEOUT, value);
        assert_eq!(bench.read32(CPL_TIMEOUT), kept);
    }
    assert_eq!(bench.read32(ENABLE), 0);
    bench.write32(ENABLE, 0xffff_ffff);
    assert_eq!((bench.read32(ENABLE), bench.dut.get("enable_o")), (1, 1));
    bench.write32(ENABLE, 2);
    assert_eq!((bench.read32(ENABLE), bench.dut.get("enable_o")), (0, 0));
    for (ready, fatal, up) in [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 1)] {
        bench.dut.set("ready_i", ready);
        bench.dut.set("fatal_i", fatal);
        bench.dut.set("port_up_i", up);
        bench.dut.set("fatal_reason_i", 3 * fatal);
        assert_eq!(bench.read64(0x208) >> 32, ready | fatal << 1 | up << 2);
        assert_eq!(u64::from(bench.read32(0x210)), 3 * fatal);
    }
    for value in [0x4641_5440, 0x4154_4146, 1] {
        bench.write32(FORCE_FATAL, value);
    }
    bench.run(50);
    assert_eq!(bench.fatals, 0);
    bench.write32(FORCE_FATAL, 0x4641_5441);
    bench.run(50);
    assert_eq!(bench.fatals, 1);
}

#[test]
fn what_phy_and_mac_tell_is_read_as_it_stands() {
    for width in WIDTHS {
        let mut bench = HostBench::new(width, 1);
        for round in 1..=2_u32 {
            let words: Vec<u32> = (0..12).map(|i| 0x9e37_79b9_u32.wrapping_mul(16 * round + i)).collect();
            bench.dut.set_wide("mac_regs_i", &words);
            let read: Vec<u32> = (0..12).map(|i| bench.read32(MAC + 4 * i)).collect();
            assert_eq!(read, words);
            // Two of them in one access.
            assert_eq!(bench.read64(MAC + 8), u64::from(words[3]) << 32 | u64::from(words[2]));
        }
    }
}

#[test]
fn registers_of_64_bits_are_written_whole_or_by_halves() {
    for width in WIDTHS {
        let mut bench = HostBench::new(width, 1);
        for (reg, port) in [(RING_BASE, "cmd_ring_base_o"), (CPL_BASE, "cmd_cpl_base_o")] {
            bench.write64(reg, 0x1122_3344_5566_7780);
            assert_eq!(bench.read64(reg), 0x1122_3344_5566_7780);
            bench.write32(reg + 4, 0xaabb_ccdd);
            bench.write32(reg, 0x0102_0340);
            assert_eq!((bench.read32(reg), bench.read32(reg + 4)), (0x0102_0340, 0xaabb_ccdd));
            assert_eq!(bench.dut.get(port), 0xaabb_ccdd_0102_0340);
        }
        // Two registers of 32 bits in one access.
        bench.write64(MPS, 1024 << 32 | 128);
        assert_eq!(bench.read64(MPS), 1024 << 32 | 128);
        let a = bench.read64(CYCLES);
        let b = bench.read64(CYCLES);
        assert!(b > a && b - a < 20);
        assert_eq!(bench.read32(CYCLES + 4), 0);
    }
}

#[test]
fn the_command_ring_is_told_of_doorbells_and_restarts() {
    let mut bench = HostBench::new(64, 1);
    for (value, known) in [(0, false), (1, true), (12, true), (13, false), (16, false), (7, true)] {
        let (before, size) = (bench.restarts, bench.dut.get("cmd_log_size_o"));
        bench.write32(LOG_SIZE, value);
        bench.run(20);
        assert_eq!(bench.restarts - before, u64::from(known));
        assert_eq!(
            bench.dut.get("cmd_log_size_o"),
            if known { u64::from(value) } else { size }
        );
    }
    assert_eq!(bench.read32(LOG_SIZE), 7);
    bench.write32(PRODUCER, 0x1_0005);
    bench.write32(PRODUCER, 6);
    bench.run(20);
    assert_eq!(bench.producers, [5, 6]);
    bench.dut.set("cmd_producer_i", 0x1234);
    bench.dut.set("cmd_consumer_i", 0x1233);
    bench.dut.set("cmd_status_i", 5);
    assert_eq!(
        (bench.read32(PRODUCER), bench.read32(0x320), bench.read32(0x324)),
        (0x1234, 0x1233, 5)
    );
    assert_eq!(bench.counter(counter::MMIO_UR), 0);
}

#[test]
fn an_event_queue_doorbell_is_one_write_of_64_bits() {
    let mut bench = HostBench::new(64, 1);
    bench.write64(EQ_DOORBELL, 0x0012_3456_0100_0002);
    bench.run(20);
    assert_eq!(bench.eq_dbs, [0x0012_3456_0100_0002]);
    bench.write32(EQ_DOORBELL, 3);
    bench.write32(EQ_DOORBELL + 4, 3);
    bench.run(20);
    assert_eq!(bench.eq_dbs.len(), 1);
    assert_eq!(bench.counter(counter::MMIO_UR), 2);
    assert_eq!(bench.read64(EQ_DOORBELL), 0);
}

#[test]
fn a_read_that_is_no_access_is_unsupported() {
    for width in WIDTHS {
        let mut bench = HostBench::new(width, 1);
        let good = read(MPS, 1);
        let bad = [
            Mmio { bar: 1, ..good },
            Mmio { poisoned: true, ..good },
            Mmio { first_be: 0x3, ..good },
            Mmio { first_be: 0, ..good },
            Mmio { last_be: 0xf, ..good },
            read(8, 3),
            read(8, 1024),
            read(0x20c, 2),
            Mmio {
                last_be: 0x7,
                ..read(8, 2)
            },
            read(0x10, 1),
            read(0x638, 2),
            read(0x700, 2),
            read(0xffc, 1),
            read(COUNTERS + 8 * counter::COUNT as u64, 2),
            read(0x2000 + 16 * 5, 1),
            read(0x3008, 1),
            read(0x4000, 1),
            read(PAGES_END, 2),
            read(0x4_0000, 1),
            read(1 << 40 | 8, 1),
        ];
        for (i, request) in bad.into_iter().enumerate() {
            let answer = bench.ask(Mmio {
                tag: 100 + i as u64,
                ..request
            });
            assert_eq!(
                (answer.status, answer.dw_len, answer.tag),
                (UR, 0, 100 + i as u64),
                "{request:x?}"
            );
            assert_eq!(answer.byte_count, 4 * request.dw_len);
            assert_eq!(answer.requester_id, 0x1000 + 100 + i as u64);
        }
        let answer = bench.ask(good);
        assert_eq!(
            (answer.status, answer.data as u32, answer.lower_addr),
            (0, 256, MPS & 0x7f)
        );
        assert_eq!(bench.ask(read(PAGES, 2)).data, 0, "doorbells read as zero");
        assert_eq!(bench.counter(counter::MMIO_UR), bad.len() as u64);
    }
}

#[test]
fn a_write_that_is_no_access_changes_nothing_and_is_counted() {
    for width in WIDTHS {
        let mut bench = HostBench::new(width, 1);
        let good = write(MPS, 1, 128);
        let long = write(RING_BASE, 24, 0x4444_4444_4444_4444);
        let bad = [
            Mmio { bar: 2, ..good },
            Mmio { poisoned: true, ..good },
            Mmio { first_be: 0x3, ..good },
            Mmio { first_be: 0, ..good },
            Mmio { last_be: 0xf, ..good },
            long,
            write(RING_BASE - 4, 2, 0x5555_5555_5555_5555),
            Mmio {
                last_be: 0x7,
                ..write(RING_BASE, 2, 0x66)
            },
            write(8, 1, 7),         // read only
            write(0x20c, 1, 7),     // read only
            write(0x608, 1, 7),     // read only
            write(0x700, 1, 7),     // nothing there
            write(COUNTERS, 2, 7),  // read only
            write(0x3000, 1, 7),    // read only
            write(PAGES_END, 2, 7), // behind the last page
            write(0x4_0000 | MPS, 1, 128),
            write(1 << 63 | MPS, 1, 128),
        ];
        for request in bad {
            bench.mmio(request);
        }
        // What follows is understood.
        bench.write32(CPL_TIMEOUT, 4711);
        bench.run(400);
        assert_eq!(bench.read32(MPS), 256);
        assert_eq!(bench.read64(RING_BASE), 0);
        assert_eq!(bench.read64(8), 0x0001_0000_434e_524f);
        assert_eq!(bench.read32(CPL_TIMEOUT), 4711);
        assert_eq!(bench.counter(counter::MMIO_UR), bad.len() as u64);
        assert_eq!(bench.counter(counter::DB_DROP_FORMAT), 0);
        assert_eq!(bench.longest_posted_wait, 0);
    }
}

#[test]
fn a_read_sees_every_write_before_it() {
    let seed = seed(1);
    for width in WIDTHS {
        let mut rng = Random::new(seed);
        let mut bench = HostBench::new(width, seed);
        bench.manners = Manners::BUSY;
        let mut expected = Vec::new();
        let mut value = [0u64; 2];
        for i in 1..=300u64 {
            let which = rng.below(2) as usize;
            let reg = [RING_BASE, CPL_BASE][which];
            if rng.chance(2, 3) {
                value[which] = i;
                bench.write64(reg, i << 32 | i);
            } else {
                bench.post_read(reg, 8, i);
                expected.push((i, value[which]));
            }
            if rng.chance(1, 4) {
                bench.run(2000);
                bench.cycles(100);
            }
        }
        bench.run(20_000);
        bench.cycles(400);
        assert_eq!(bench.answers.len(), expected.len());
        let mut exact = 0;
        for (answer, (tag, at_least)) in bench.answers.iter().zip(&expected) {
            let seen = answer.data >> 32;
            assert_eq!((answer.tag, answer.data & 0xffff_ffff), (*tag, seen));
            // A later write may pass the read, an earlier one must not be passed by it.
            assert!(
                seen >= *at_least,
                "read {tag} sees {seen} after the write of {at_least}"
            );
            exact += u64::from(seen == *at_least);
        }
        assert!(exact > 20, "{exact}");
    }
}

#[test]
fn posted_writes_sink_while_answers_are_stuck() {
    for width in WIDTHS {
        let mut bench = HostBench::new(width, 1);
        bench.manners.cc_stall_one_in = 1;
        // As many reads as the host may have outstanding, with writes in between and behind.
        for i in 0..32 {
            bench.post_read(8, 8, i);
            bench.write64(PAGES + 0x10, i);
        }
        for i in 0..200 {
            bench.write64(PAGES + 0x10, 32 + i);
        }
        bench.run(400);
        assert_eq!(bench.longest_posted_wait, 0);
        assert_eq!(bench.cq_dbs.len(), 232);
        assert!(bench.answers.is_empty());
        bench.manners.cc_stall_one_in = 0;
        bench.cycles(300);
        let tags: Vec<_> = bench.answers.iter().map(|a| a.tag).collect();
        assert_eq!(tags, (0..32).collect::<Vec<_>>());
    }
}

#[test]
fn no_pulse_is_lost() {
    let seed = seed(1);
    let mut rng = Random::new(seed);
    let mut bench = HostBench::new(64, seed);
    let mut expected = [0u64; counter::COUNT];
    let wide = [
        counter::RX_BYTES,
        counter::TX_BYTES,
        counter::PCIE_RD_BYTES,
        counter::PCIE_WR_BYTES,
    ];
    for cycle in 0..1500 {
        let mut pulses = vec![0u32; 3];
        for (c, n) in expected.iter_mut().enumerate() {
            if !wide.contains(&c) && (cycle < 400 || rng.chance(1, 2)) {
                pulses[c / 32] |= 1 << (c % 32);
                *n += 1;
            }
        }
        bench.dut.set_wide("cnt_i", &pulses);
        for (port, c) in [("rx_bytes_i", counter::RX_BYTES), ("tx_bytes_i", counter::TX_BYTES)] {
            let bytes = if cycle < 400 { 0xffff } else { rng.below(0x1_0000) };
            bench.dut.set(port, bytes);
            expected[c] += bytes;
        }
        // What the host side counts itself, in the same cycles.
        if cycle % 2 == 0 {
            if rng.chance(1, 4) {
                bench.post_read(0x10, 4, 1);
            } else {
                bench.write32(0x10, 1);
            }
            expected[counter::MMIO_UR] += 1;
        }
        bench.cycle();
    }
    for port in ["cnt_i", "rx_bytes_i", "tx_bytes_i"] {
        bench
            .dut
            .set_wide(port, &[0, 0, 0][..if port == "cnt_i" { 3 } else { 1 }]);
    }
    bench.run(2000);
    bench.cycles(300);
    for (c, n) in expected.iter().enumerate() {
        assert_eq!(bench.read64(COUNTERS + 8 * c as u64), *n, "counter {c}");
        bench.dut.set("cnt_rd_idx_i", c as u64);
        bench.cycle();
        assert_eq!(bench.dut.get("cnt_rd_o"), *n, "counter {c}, inner port");
        assert_eq!(u64::from(bench.read32(COUNTERS + 8 * c as u64)), n & 0xffff_ffff);
        assert_eq!(u64::from(bench.read32(COUNTERS + 8 * c as u64 + 4)), n >> 32);
    }
    // Reset clears, also before the walker has been everywhere.
    bench.dut.reset(2);
    for c in [counter::RX_FRAMES, counter::MMIO_UR, counter::RX_BYTES] {
        assert_eq!(bench.read64(COUNTERS + 8 * c as u64), 0);
    }
    bench.cycles(300);
    for c in 0..counter::COUNT as u64 {
        assert_eq!(bench.read64(COUNTERS + 8 * c), 0);
    }
}

#[test]
fn reads_of_the_bar_do_not_disturb_dma() {
    let mut bench = HostBench::new(64, 9);
    bench.manners = Manners::BUSY;
    for i in 0..60 {
        bench.read(i % 6, BASE + 3000 * i as u64, 1000);
        bench.post_read(8, 8, i as u64);
    }
    bench.run(40_000);
    bench.cycles(400);
    assert!(
        bench
            .done
            .iter()
            .all(|d| d.err == 0 && d.data == bench.at(d.addr, d.len))
    );
    assert_eq!(bench.answers.len(), 60);
}

#[test]
fn a_look_at_a_queue_pair_is_asked_once_and_kept() {
    const SELECT: u64 = 0x508;
    const STATUS: u64 = 0x50c;
    const DATA: u64 = 0x510;
    for width in WIDTHS {
        let mut bench = HostBench::new(width, 1);
        assert_eq!((bench.read32(STATUS) & 1, bench.read64(DATA)), (0, 0));
        bench.write32(SELECT, 0xff12_3456 & 0x07ff_ffff);
        assert_eq!(bench.read32(STATUS) & 1, 1);
        // Another one while it is under way is not taken.
        bench.write32(SELECT, 0x0300_0001);
        assert_eq!(bench.read32(SELECT), 0x0712_3456);
        assert_eq!(
            (bench.dut.get("diag_valid_o"), bench.dut.get("diag_o")),
            (1, 0x0712_3456)
        );
        bench.dut.set("diag_done_i", 1);
        bench.dut.set("diag_data_i", 0x0123_4567_89ab_cdef);
        bench.run(1);
        bench.dut.set("diag_done_i", 0);
        bench.dut.set("diag_data_i", 0);
        bench.run(1);
        assert_eq!(bench.dut.get("diag_valid_o"), 0);
        assert_eq!(
            (bench.read32(STATUS) & 1, bench.read64(DATA)),
            (0, 0x0123_4567_89ab_cdef)
        );
        assert_eq!(bench.read32(DATA + 4), 0x0123_4567);
        bench.write32(SELECT, 0x0300_0001);
        assert_eq!((bench.read32(SELECT), bench.read32(STATUS) & 1), (0x0300_0001, 1));
        assert_eq!(bench.counter(counter::MMIO_UR), 0);
    }
}
