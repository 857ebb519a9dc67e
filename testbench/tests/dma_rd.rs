// SPDX-License-Identifier: Apache-2.0
//! The DMA read service of `rnic_host`: every byte against host memory, whatever the host does.
#![allow(clippy::unwrap_used)]

use openrnic_testbench::host_bench::{BASE, Fault, HostBench, Manners, READERS, SIZE, TAGS, counter, seed};
use openrnic_testbench::qp_bench::Random;

const WIDTHS: [u32; 2] = [64, 512];
const ABORT: u64 = 1;
const POISON: u64 = 2;
const TIMEOUT: u64 = 3;
const MALFORMED: u64 = 4;
const MRRS: u64 = 0x21c;
const CPL_TIMEOUT: u64 = 0x220;
const ERRORS: [usize; 5] = [
    counter::DMA_RD_ABORT,
    counter::DMA_RD_POISON,
    counter::DMA_RD_TIMEOUT,
    counter::DMA_RD_MALFORMED,
    counter::DMA_CPL_UNEXPECTED,
];

fn some_read(rng: &mut Random) -> (u64, usize) {
    let len = match rng.below(4) {
        0 => 1 + rng.below(8),
        1 => 1 + rng.below(128),
        2 => 64 * (1 + rng.below(16)),
        _ => 1 + rng.below(4096),
    };
    let addr = match rng.below(3) {
        0 => rng.below(SIZE as u64 - 4096) & !63,
        1 => (rng.below(60) + 1) * 4096 - rng.below(len + 1),
        _ => rng.below(SIZE as u64 - 4096),
    };
    (BASE + addr, len as usize)
}

fn check_bytes(bench: &HostBench) {
    for d in bench.done.iter().filter(|d| d.err == 0) {
        assert!(
            d.data == bench.at(d.addr, d.len),
            "{} bytes at {:#x} of client {}",
            d.len,
            d.addr,
            d.client
        );
    }
}

/// Abort, poison, time-out, malformed, unexpected.
fn error_counters(bench: &mut HostBench) -> [u64; 5] {
    ERRORS.map(|c| bench.counter(c))
}

#[test]
fn random_reads_give_every_byte_in_order() {
    let seed = seed(1);
    for width in WIDTHS {
        for (round, mrrs) in [512usize, 128, 1024, 256].into_iter().enumerate() {
            let mut rng = Random::new(seed + round as u64);
            let mut bench = HostBench::new(width, seed + round as u64);
            bench.write32(MRRS, mrrs as u32);
            bench.run(100);
            bench.mrrs = mrrs;
            bench.manners = Manners::BUSY;
            if round == 2 {
                // A host that keeps its order but is slow: the reorder buffer runs full.
                bench.manners = Manners {
                    latency: 300,
                    jitter: 0,
                    reorder: false,
                    client_stall_one_in: 2,
                    ..Manners::BUSY
                };
            }
            let n = 150;
            for _ in 0..n {
                let (addr, len) = some_read(&mut rng);
                bench.read(rng.below(READERS as u64) as usize, addr, len);
            }
            bench.run(400_000);
            assert_eq!(bench.done.len(), n);
            assert!(bench.done.iter().all(|d| d.err == 0));
            check_bytes(&bench);
            assert_eq!(error_counters(&mut bench), [0; 5]);
        }
    }
}

#[test]
fn commands_are_fetched_when_the_payload_leaves_room_but_not_for_ever() {
    for width in WIDTHS {
        let mut bench = HostBench::new(width, 1);
        let asked = bench.dut.cycles();
        bench.read(0, BASE, 256);
        bench.run(1000);
        assert!(bench.done[0].accepted - asked < 4, "{width} bits");
        bench.done.clear();
        let wait = 65_536 / u64::from(width);
        let reads = 5 * wait as usize * bench.beat / 4096;
        for i in 0..reads {
            bench.read(4, BASE + 4096 * (i as u64 % 8), 4096);
        }
        bench.cycles(20);
        let mut before = bench.dut.cycles();
        for _ in 0..3 {
            bench.read(0, BASE, 256);
        }
        bench.run(50_000);
        check_bytes(&bench);
        for d in bench.done.iter().filter(|d| d.client == 0) {
            let waited = d.accepted - before;
            let most = wait + 2 * (4096 / bench.beat) as u64 + 40;
            assert!((wait - 2..most).contains(&waited), "{width} bits: {waited} cycles");
            before = d.accepted;
        }
        // The last one came while the others were not through.
        assert_eq!(bench.done.last().map(|d| d.client), Some(4));
    }
}

#[test]
fn every_alignment_and_short_length_is_read() {
    for width in WIDTHS {
        let mut bench = HostBench::new(width, 3);
        for start in 0..9u64 {
            for len in (1..=20).chain([63, 64, 65, 127, 128, 129]) {
                bench.read(0, BASE + 4096 - 12 + start, len);
                bench.read(1, BASE + 512 - start, len);
            }
        }
        bench.run(100_000);
        assert!(bench.done.iter().all(|d| d.err == 0));
        check_bytes(&bench);
    }
}

#[test]
fn reads_overlap_up_to_the_number_of_tags() {
    let mut bench = HostBench::new(64, 1);
    bench.manners.latency = 2000;
    for i in 0..2 * TAGS {
        bench.read(i % READERS, BASE + 512 * i as u64, 64);
    }
    bench.cycles(1500);
    assert_eq!(bench.tlps.len(), TAGS, "one read a tag");
    bench.run(10_000);
    check_bytes(&bench);
}

#[test]
fn a_full_reorder_buffer_holds_reads_back() {
    for width in WIDTHS {
        let mut bench = HostBench::new(width, 4);
        bench.write32(MRRS, 1024);
        bench.run(100);
        bench.mrrs = 1024;
        // Twice as much as the buffer holds could be under way with all tags.
        bench.manners = Manners {
            latency: 200,
            jitter: 2000,
            reorder: true,
            ..Manners::PROMPT
        };
        for i in 0..24 {
            bench.read(i % READERS, BASE + 4096 * i as u64, 4096);
        }
        bench.run(100_000);
        assert!(bench.done.iter().all(|d| d.err == 0));
        check_bytes(&bench);
    }
}

#[test]
fn a_stream_of_4_kib_reads_keeps_95_percent_of_the_beats_full() {
    for width in WIDTHS {
        let mut bench = HostBench::new(width, 1);
        let n = 24;
        for i in 0..n {
            bench.read(i % 2, BASE + 4096 * i as u64, 4096);
        }
        bench.run(100_000);
        check_bytes(&bench);
        let cycles = bench.done[n - 1].done - bench.done[3].done;
        let beats = ((n - 4) * 4096 / bench.beat) as u64;
        println!("{width} bits: {beats} beats in {cycles} cycles");
        assert!(
            100 * beats >= 95 * cycles,
            "{width} bits: {beats} beats in {cycles} cycles"
        );
    }
}

#[test]
fn small_reads_of_several_clients_take_two_cycles_each_at_most() {
    let mut bench = HostBench::new(512, 1);
    let n = 200;
    for i in 0..n {
        bench.read(i % 4, BASE + 64 * i as u64, 64);
    }
    bench.run(10_000);
    check_bytes(&bench);
    let cycles = bench.done[n - 1].done - bench.done[10].done;
    println!("{n} reads of 64 bytes in {cycles} cycles");
    assert!(cycles <= 2 * n as u64, "{cycles}");
}

#[test]
fn the_first_byte_comes_soon() {
    for (width, limit) in [(64, 13), (512, 13)] {
        let mut bench = HostBench::new(width, 1);
        bench.read(0, BASE, 8);
        bench.run(100);
        let cycles = bench.done[0].done - bench.done[0].accepted;
        println!("{width} bits: {cycles} cycles from the request to its data, host included");
        assert!(cycles <= limit, "{cycles}");
    }
}

/// One faulty read between good ones: its request ends with the error and all its bytes, the others are whole.
fn one_fault(width: u32, mrrs: u32, fault: Fault, split: u64, nth: u64) -> (u64, [u64; 5]) {
    let mut bench = HostBench::new(width, 7);
    bench.write32(MRRS, mrrs);
    bench.write32(CPL_TIMEOUT, 3000);
    bench.run(100);
    bench.mrrs = mrrs as usize;
    bench.manners.split_one_in = split;
    bench.faults.insert(nth, fault);
    bench.read(0, BASE + 0x101, 200);
    bench.read(1, BASE + 0x1000, 1500);
    bench.read(2, BASE + 0x2003, 300);
    bench.run(10_000);
    // All tags are used again.
    for i in 0..4 * TAGS {
        bench.read(i % READERS, BASE + 0x3000 + 700 * i as u64, 650);
    }
    bench.run(20_000);
    for d in &bench.done {
        assert_eq!(d.data.len(), d.len);
    }
    let bad: Vec<_> = bench.done.iter().filter(|d| d.err != 0).collect();
    assert!(bad.len() <= 1 && bad.iter().all(|d| d.client == 1), "{bad:?}");
    if let Some(bad) = bad.first() {
        // Never the rest of another read in place of data that failed.
        for (i, b) in bad.data.iter().enumerate() {
            assert!(*b == 0 || *b == bench.at(bad.addr, bad.len)[i], "byte {i}");
        }
    }
    let err = bad.first().map_or(0, |d| d.err);
    check_bytes(&bench);
    (err, error_counters(&mut bench))
}

#[test]
fn an_unsuccessful_completion_ends_in_abort() {
    for width in WIDTHS {
        for (status, part) in [(1, 0), (4, 0), (1, 2), (2, 1)] {
            assert_eq!(
                one_fault(width, 512, Fault::Status(status, part), 1, 2),
                (ABORT, [1, 0, 0, 0, 0])
            );
        }
    }
}

#[test]
fn a_poisoned_completion_ends_in_poison_and_the_rest_of_its_read_is_expected() {
    for width in WIDTHS {
        for part in [0, 1, 9] {
            assert_eq!(
                one_fault(width, 512, Fault::Poison(part), 1, 2),
                (POISON, [0, 1, 0, 0, 0])
            );
        }
    }
}

#[test]
fn a_missing_completion_ends_in_timeout() {
    for width in WIDTHS {
        assert_eq!(one_fault(width, 512, Fault::Missing, 0, 2), (TIMEOUT, [0, 0, 1, 0, 0]));
    }
}

#[test]
fn a_completion_that_does_not_fit_ends_in_malformed() {
    for width in WIDTHS {
        for (fault, unexpected) in [
            // What still comes of that read is no longer expected: 8 parts of 64 bytes.
            (Fault::ByteCount(0), 7),
            (Fault::ByteCount(3), 4),
            (Fault::LowerAddress(0), 7),
            (Fault::LowerAddress(7), 0),
            (Fault::TooLong(7), 0),
            (Fault::TooLong(2), 5),
            (Fault::OffBoundary(1), 6),
            (Fault::OffBoundary(7), 0),
        ] {
            assert_eq!(
                one_fault(width, 512, fault, 1, 2),
                (MALFORMED, [0, 0, 0, 1, unexpected]),
                "{width} bits, {fault:?}"
            );
        }
    }
    assert_eq!(one_fault(64, 512, Fault::Cut(0), 0, 2), (MALFORMED, [0, 0, 0, 1, 0]));
    assert_eq!(one_fault(512, 512, Fault::Cut(0), 0, 2), (MALFORMED, [0, 0, 0, 1, 0]));
}

#[test]
fn a_completion_that_comes_twice_is_counted_and_dropped() {
    for width in WIDTHS {
        assert_eq!(one_fault(width, 512, Fault::Twice, 0, 2), (0, [0, 0, 0, 0, 1]));
    }
}

#[test]
fn a_completion_out_of_nowhere_is_counted_and_dropped() {
    for width in WIDTHS {
        let mut bench = HostBench::new(width, 7);
        for tag in [0, 3, TAGS, 1023] {
            bench.stray_completion(tag, 128);
        }
        bench.run(200);
        bench.read(0, BASE, 4096);
        bench.run(2000);
        check_bytes(&bench);
        assert_eq!(error_counters(&mut bench), [0, 0, 0, 0, 4]);
    }
}

#[test]
fn a_late_completion_meets_no_new_read() {
    for width in WIDTHS {
        let mut bench = HostBench::new(width, 7);
        bench.write32(CPL_TIMEOUT, 400);
        bench.run(100);
        // One read is answered after its time-out. New reads use every other tag again and again meanwhile, and wait
        // long enough themselves to be met by it.
        bench.manners.latency = 100;
        bench.faults.insert(0, Fault::Late(700));
        bench.read(0, BASE, 64);
        for i in 0..40 {
            for c in 0..READERS {
                bench.read(c, BASE + 0x1000 + 64 * i, 64);
            }
        }
        let tag = loop {
            bench.cycle();
            if let Some(t) = bench.tlps.first() {
                break (t.tag, t.cycle);
            }
        };
        bench.run(20_000);
        assert!(
            bench
                .tlps
                .iter()
                .skip(1)
                .all(|t| t.tag != tag.0 || t.cycle > tag.1 + 800),
            "the tag rests"
        );
        assert!(bench.tlps.len() > 3 * TAGS);
        assert_eq!(bench.done.iter().filter(|d| d.err == TIMEOUT).count(), 1);
        check_bytes(&bench);
        assert_eq!(error_counters(&mut bench), [0, 0, 1, 0, 1]);
        // and is used again later
        bench.cycles(1000);
        bench.tlps.clear();
        for i in 0..2 * TAGS as u64 {
            bench.read(0, BASE + 64 * i, 64);
        }
        bench.run(20_000);
        assert!(bench.tlps.iter().any(|t| t.tag == tag.0));
    }
}

#[test]
fn a_host_that_answers_nothing_costs_one_timeout_not_one_per_read() {
    let mut bench = HostBench::new(64, 7);
    bench.write32(CPL_TIMEOUT, 1000);
    bench.run(100);
    for n in 0..8 {
        bench.faults.insert(n, Fault::Missing);
    }
    bench.read(0, BASE, 4096);
    bench.run(2000);
    assert_eq!(bench.done[0].err, TIMEOUT);
    assert!(bench.done[0].data.iter().all(|b| *b == 0));
    assert_eq!(error_counters(&mut bench), [0, 0, 8, 0, 0]);
}

#[test]
fn random_faults_reach_their_request_and_no_other() {
    let seed = seed(1);
    for width in WIDTHS {
        let mut rng = Random::new(seed);
        let mut bench = HostBench::new(width, seed);
        bench.write32(CPL_TIMEOUT, 4000);
        bench.run(100);
        bench.manners = Manners {
            split_one_in: 2,
            ..Manners::BUSY
        };
        let mut n = 0;
        while n < 400 {
            n += 1 + rng.below(12);
            let part = rng.below(5) as usize;
            let late = 3900 + rng.below(400);
            let fault = *rng.pick(&[
                Fault::Status(1, part),
                Fault::Poison(part),
                Fault::Missing,
                Fault::Late(late),
                Fault::ByteCount(part),
                Fault::LowerAddress(part),
                Fault::TooLong(part),
                Fault::OffBoundary(part),
            ]);
            bench.faults.insert(n, fault);
        }
        for _ in 0..250 {
            let (addr, len) = some_read(&mut rng);
            bench.read(rng.below(READERS as u64) as usize, addr, len.min(1200));
        }
        bench.run(600_000);
        assert_eq!(bench.done.len(), 250);
        check_bytes(&bench);
        let bad = bench.done.iter().filter(|d| d.err != 0).count();
        let counted = error_counters(&mut bench);
        println!("{width} bits: {bad} requests failed, {counted:?}");
        assert!(bad > 10 && bad < 150, "{bad}");
        assert!(counted[..4].iter().all(|c| *c > 0), "{counted:?}");
        assert!(counted[..4].iter().sum::<u64>() >= bad as u64);
    }
}

#[test]
fn link_bytes_of_reads_are_counted_with_20_bytes_a_packet() {
    for width in WIDTHS {
        let mut bench = HostBench::new(width, 2);
        bench.manners.split_one_in = 1;
        bench.read(0, BASE + 1, 254); // one request; 4 completions of 64 bytes
        bench.read(0, BASE + 4096 - 64, 128); // two; one each
        bench.run(1000);
        assert_eq!(bench.counter(counter::PCIE_RD_BYTES), 3 * 20 + 6 * 20 + 256 + 128);
        assert_eq!(bench.counter(counter::PCIE_WR_BYTES), 0);
    }
}
