// SPDX-License-Identifier: Apache-2.0
//! `rnic_mac` at its GMII: frames of every length both ways, bad ones flagged, clocks of any relation.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use openrnic_sim::rng::Stream;
use openrnic_testbench::mac_bench::{
    Clock, GAP, MAX_BYTES, MIN_BYTES, MacBench, RX, Received, Symbol, carrier, padded, wire_frame, with_fcs,
};
use openrnic_testbench::seed;

/// The board's clocks, none of them in step.
fn clocks() -> [Clock; 3] {
    [Clock::steady(20_000), Clock::steady(8_000), Clock::steady(7_999)]
}

fn frame(len: usize, mark: u64) -> Vec<u8> {
    let mut rng = Stream::new(mark, "frame", len as u64);
    (0..len).map(|_| rng.bits() as u8).collect()
}

fn good(bytes: Vec<u8>) -> Received {
    Received { bytes, err: false }
}

/// Compares frame by frame: what differs is told without all the others.
#[track_caller]
fn assert_received(bench: &MacBench, expected: &[Received]) {
    for (i, (got, want)) in bench.received.iter().zip(expected).enumerate() {
        assert_eq!(got, want, "frame {i}");
    }
    assert_eq!(bench.received.len(), expected.len());
}

#[track_caller]
fn assert_sent(bench: &MacBench, expected: &[Vec<u8>]) {
    for (i, (got, want)) in bench.sent.iter().zip(expected).enumerate() {
        assert_eq!(got.frame(), padded(want), "frame {i}");
    }
    assert_eq!(bench.sent.len(), expected.len());
}

#[test]
fn every_length_both_ways_back_to_back_at_line_rate() {
    let mut bench = MacBench::gmii(clocks(), 1);
    let lengths: Vec<usize> = (14..=1514)
        .chain((1515..=MAX_BYTES).step_by(61))
        .chain([MAX_BYTES])
        .collect();
    let (mut out, mut back) = (Vec::new(), Vec::new());
    for len in lengths {
        let f = frame(len, 1);
        bench.send(&f);
        out.push(f);
        if len >= MIN_BYTES {
            let f = frame(len, 2);
            bench.arrive(&f);
            back.push(good(f));
        }
    }
    bench.drain();
    assert_sent(&bench, &out);
    assert_received(&bench, &back);
    // The clock of the line never waited for the core.
    for (i, s) in bench.sent.iter().enumerate().skip(1) {
        assert_eq!(s.gap, GAP, "gap before frame {i}");
    }
    assert_eq!(bench.tx_count("sent"), out.len() as u64);
    assert_eq!(bench.rx_count("good"), back.len() as u64);
    for name in ["fcs", "runt", "oversize", "er", "junk", "drop"] {
        assert_eq!(bench.rx_count(name), 0, "{name}");
    }
}

/// A bad frame: name of its counter, symbols, what the core gets of it.
type Bad = (&'static str, Vec<Symbol>, Option<Vec<u8>>);

fn bad_frames() -> Vec<Bad> {
    let mut all = Vec::new();
    // One bit of the frame or of its FCS differs.
    for at in [0, 13, 59, 60, 63] {
        let mut bytes = with_fcs(&frame(60, 3));
        bytes[at] ^= 1 << (at % 8);
        all.push(("fcs", wire_frame(&bytes), Some(bytes[..60].to_vec())));
    }
    // Cut anywhere: short ones are runts, others have a wrong FCS.
    let whole = with_fcs(&frame(200, 4));
    for cut in 1..whole.len() {
        let name = if cut < MIN_BYTES + 4 { "runt" } else { "fcs" };
        let rest = (cut > 4).then(|| whole[..cut - 4].to_vec());
        all.push((name, wire_frame(&whole[..cut]), rest));
    }
    // Short with a right FCS.
    for len in 1..MIN_BYTES {
        let short = frame(len, 5);
        all.push(("runt", wire_frame(&with_fcs(&short)), Some(short)));
    }
    // RX_ER on any byte of the frame or the FCS.
    for at in 0..72 {
        let f = frame(68, 6);
        let mut symbols = wire_frame(&with_fcs(&f));
        symbols[8 + at].er = true;
        all.push(("er", symbols, Some(f)));
    }
    for len in [MAX_BYTES + 1, MAX_BYTES + 7, MAX_BYTES + 8, MAX_BYTES + 9, 9000, 20_000] {
        let f = frame(len, 7);
        all.push(("oversize", wire_frame(&with_fcs(&f)), Some(f[..MAX_BYTES].to_vec())));
    }
    all
}

#[test]
fn each_bad_frame_is_flagged_and_counted_under_its_name_and_its_neighbours_are_whole() {
    let mut bench = MacBench::gmii(clocks(), 2);
    let mut expected = Vec::new();
    let mut counts = std::collections::BTreeMap::new();
    for (i, (name, symbols, rest)) in bad_frames().into_iter().enumerate() {
        let neighbour = frame(60 + i % 9, 8 + i as u64);
        bench.arrive(&neighbour);
        expected.push(good(neighbour));
        bench.arrive_symbols(symbols);
        expected.extend(rest.map(|bytes| Received { bytes, err: true }));
        *counts.entry(name).or_insert(0) += 1;
    }
    bench.arrive(&frame(60, 9));
    expected.push(good(frame(60, 9)));
    bench.drain();
    assert_received(&bench, &expected);
    for name in ["fcs", "runt", "er", "oversize"] {
        assert_eq!(bench.rx_count(name), counts[name], "{name}");
    }
    assert_eq!(bench.rx_count("junk") + bench.rx_count("drop"), 0);
    assert_eq!(
        bench.rx_count("good"),
        expected.iter().filter(|r| !r.err).count() as u64
    );
}

#[test]
fn a_carrier_without_a_frame_is_counted_and_what_follows_is_received() {
    let mut bench = MacBench::gmii(clocks(), 3);
    let mut rng = Stream::new(seed(3), "junk", 0);
    let mut expected = Vec::new();
    let mut junk = 0;
    for i in 0..300 {
        match i % 5 {
            // Preamble and nothing behind it.
            0 => bench.arrive_symbols(carrier(&vec![0x55; 1 + i % 20])),
            // Anything that does not begin as a frame does.
            1 => {
                let mut bytes: Vec<u8> = (0..1 + i % 90).map(|_| rng.bits() as u8).collect();
                bytes[0] = 0xaa;
                bench.arrive_symbols(carrier(&bytes));
            }
            // A preamble that breaks off into something else; a start of frame inside it is none.
            2 => bench.arrive_symbols(carrier(&[0x55, 0x55, 0x5d, 0x55, 0xd5, 1, 2, 3, 4, 5, 6, 7])),
            // An error in the preamble.
            3 => {
                let mut symbols = wire_frame(&with_fcs(&frame(60, 1)));
                symbols[3].er = true;
                bench.arrive_symbols(symbols);
            }
            // Errors and bytes without carrier (carrier extension, false carrier, in-band status) are nothing.
            _ => {
                let idle = |_| Symbol {
                    dv: false,
                    er: i % 2 == 0,
                    data: 0x0e + (i % 3) as u8,
                };
                bench.line.extend((0..GAP).map(idle));
                junk -= 1;
            }
        }
        junk += 1;
        // Preambles of any length are good, so is a gap of a single byte.
        let f = frame(60 + i % 30, 2);
        let mut bytes = vec![0x55; i % 16];
        bytes.push(0xd5);
        bytes.extend(with_fcs(&f));
        bench.line.extend(carrier(&bytes));
        bench.line.extend(vec![Symbol::default(); 1 + i % 12]);
        expected.push(good(f));
    }
    bench.drain();
    assert_received(&bench, &expected);
    assert_eq!(bench.rx_count("junk"), junk);
    assert_eq!(bench.rx_count("good"), expected.len() as u64);
}

#[test]
fn what_finds_no_room_is_dropped_whole_and_counted() {
    let seed = seed(4);
    let mut bench = MacBench::gmii(clocks(), seed);
    let mut rng = Stream::new(seed, "full", 0);
    let mut sent = Vec::new();
    for round in 0..4 {
        // The core takes nothing for more than the FIFO holds, then little, then everything.
        for take in [0.0, 0.2, 1.0] {
            bench.take = take;
            for _ in 0..30 {
                let len = if rng.chance(0.3) {
                    4000
                } else {
                    60 + rng.below(900) as usize
                };
                let f = frame(len, 100 + sent.len() as u64);
                if rng.chance(0.1) {
                    let mut bytes = with_fcs(&f);
                    bytes[20] ^= 1;
                    bench.arrive_symbols(wire_frame(&bytes));
                    bytes.truncate(len);
                    sent.push(Received { bytes, err: true });
                } else {
                    bench.arrive(&f);
                    sent.push(good(f));
                }
            }
            while !bench.line.is_empty() {
                bench.run_ns(1000);
            }
        }
        bench.drain();
        // Those that came are among those sent, in order and whole; the others are counted.
        let mut rest = sent.iter();
        for (i, got) in bench.received.iter().enumerate() {
            assert!(
                rest.any(|f| f == got),
                "round {round}, frame {i} of {} bytes",
                got.bytes.len()
            );
        }
        let lost = sent.len() - bench.received.len();
        assert_eq!(bench.rx_count("drop"), lost as u64);
        assert!(lost > 10 * (round + 1), "there was something to lose: {lost}");
    }
    assert_eq!(bench.rx_count("good") + bench.rx_count("fcs"), sent.len() as u64);
}

#[test]
fn two_clocks_of_any_ratio_wandering_lose_nothing() {
    let seed = seed(5);
    // From 200 MHz down to 16 MHz, an eighth of the line's clock being 15.6 MHz; prime periods beside.
    let periods = [
        5_000, 7_993, 8_000, 8_009, 12_347, 16_000, 20_000, 33_331, 48_000, 62_500,
    ];
    for (i, period) in periods.into_iter().enumerate() {
        let s = seed + i as u64;
        // The receive clock is up to 100 ppm off, as 802.3 allows at both ends.
        let clocks = [
            Clock::wandering(period, 300, s),
            Clock::wandering(8_000, 100, s + 1),
            Clock::wandering(8_000, 100, s + 2),
        ];
        let mut bench = MacBench::gmii(clocks, s);
        let mut rng = Stream::new(seed, "ratio", i as u64);
        let (mut out, mut back) = (Vec::new(), Vec::new());
        bench.give = [1.0, 0.05][i % 2];
        for n in 0..60 {
            let len = if rng.chance(0.1) {
                4200
            } else {
                14 + rng.below(300) as usize
            };
            out.push(frame(len, 10 + n));
            bench.send(&out[n as usize]);
            let f = frame(len.max(60), 100 + n);
            bench.arrive(&f);
            back.push(good(f));
        }
        bench.drain();
        assert_sent(&bench, &out);
        assert_received(&bench, &back);
        assert_eq!(bench.tx_count("underrun"), 0, "period {period}");
    }
}

#[test]
fn a_core_too_slow_for_the_line_ends_frames_with_a_wrong_fcs() {
    // 10 MHz times 8 bytes is less than the line takes.
    let slow = [Clock::steady(100_000), Clock::steady(8_000), Clock::steady(8_000)];
    let mut bench = MacBench::gmii(slow, 6);
    let frames: Vec<_> = (0..6).map(|i| frame(if i % 2 == 0 { 3000 } else { 60 }, i)).collect();
    frames.iter().for_each(|f| bench.send(f));
    bench.drain();
    assert_eq!(bench.sent.len(), 6);
    for (i, (sent, whole)) in bench.sent.iter().zip(&frames).enumerate() {
        let torn = sent.bytes.len() != whole.len() + 12;
        assert!(torn || sent.frame() == whole, "frame {i}");
        assert!(!torn || !sent.fcs_good(), "a torn frame {i} has no right FCS");
        assert!(i % 2 == 1 || torn, "frame {i} is torn");
    }
    let torn = bench.sent.iter().filter(|s| !s.fcs_good()).count() as u64;
    assert_eq!((bench.tx_count("underrun"), bench.tx_count("sent")), (torn, 6 - torn));
}

#[test]
fn a_frame_of_the_core_that_is_too_long_is_dropped_and_counted() {
    let mut bench = MacBench::gmii(clocks(), 7);
    let mut expected = Vec::new();
    for (i, len) in [60, MAX_BYTES, MAX_BYTES + 1, 14, 9000, 60_000, MAX_BYTES]
        .into_iter()
        .enumerate()
    {
        let f = frame(len, i as u64);
        bench.send(&f);
        if len <= MAX_BYTES {
            expected.push(f);
        }
    }
    bench.drain();
    assert_sent(&bench, &expected);
    assert_eq!(bench.dut.get("tx_long_o"), 3);
}

#[test]
fn without_a_link_nothing_is_received_and_what_is_to_be_sent_is_thrown_away() {
    let mut bench = MacBench::gmii(clocks(), 8);
    bench.dut.set("link_i", 0);
    bench.run_ns(200);
    for i in 0..5 {
        bench.send(&frame(100, i));
        bench.arrive(&frame(100, i));
    }
    bench.drain();
    assert!(bench.sent.is_empty() && bench.received.is_empty());
    assert_eq!((bench.tx_count("no_link"), bench.rx_count("good")), (5, 0));
    bench.dut.set("link_i", 1);
    bench.run_ns(200);
    bench.send(&frame(70, 9));
    bench.arrive(&frame(71, 9));
    bench.drain();
    assert_sent(&bench, &[frame(70, 9)]);
    assert_received(&bench, &[good(frame(71, 9))]);
}

#[test]
fn a_receive_clock_that_stops_and_a_reset_meanwhile_leave_nothing_behind() {
    let mut bench = MacBench::gmii(clocks(), 9);
    // In the middle of a frame, words of others waiting in the FIFO.
    bench.take = 0.0;
    bench.arrive(&frame(300, 1));
    bench.arrive(&frame(3000, 2));
    bench.run_ns(9_000);
    bench.clocks[RX].stopped = true;
    bench.run_ns(5_000);
    bench.reset();
    bench.dut.set("link_i", 1);
    bench.take = 1.0;
    bench.run_ns(5_000);
    assert!(bench.received.is_empty(), "what waited before the reset is gone");
    bench.line.clear();
    bench.line.extend([Symbol::default(); 40]);
    bench.start(RX);
    bench.run_ns(1_000);
    bench.arrive(&frame(64, 3));
    bench.drain();
    assert_received(&bench, &[good(frame(64, 3))]);
    // Only stopped: goes on where it stood; a frame cut by the pause is whole.
    bench.arrive(&frame(1000, 4));
    bench.run_ns(2_000);
    bench.clocks[RX].stopped = true;
    bench.run_ns(50_000);
    bench.start(RX);
    bench.drain();
    assert_eq!(bench.received[1], good(frame(1000, 4)));
}
