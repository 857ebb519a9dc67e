// SPDX-License-Identifier: Apache-2.0
//! `rnic_rgmii_tx`, `rnic_rgmii_rx` with models of the ECP5's pads: both edges of both clocks, the MAC behind them.
#![allow(clippy::unwrap_used)]

use openrnic_sim::model::BlockModel;
use openrnic_sim::rng::Stream;
use openrnic_testbench::mac_bench::{Clock, GAP, MacBench, RX, Received, Symbol, padded, wire_frame, with_fcs};

fn bench(clocks: [Clock; 3], seed: u64) -> MacBench {
    let mut builder = BlockModel::builder("rgmii_top").source("testbench/tops/rgmii_top.sv");
    for cell in ["DELAYG", "IDDRX1F", "ODDRX1F"] {
        builder = builder.source(format!("testbench/tops/ecp5/{cell}.sv"));
    }
    MacBench::new(builder, clocks, seed)
}

fn frame(len: usize, mark: u64) -> Vec<u8> {
    let mut rng = Stream::new(mark, "frame", len as u64);
    (0..len).map(|_| rng.bits() as u8).collect()
}

#[test]
fn frames_pass_both_edges_both_ways_at_line_rate() {
    let clocks = [
        Clock::wandering(20_000, 300, 1),
        Clock::steady(8_000),
        Clock::wandering(8_000, 100, 2),
    ];
    let mut bench = bench(clocks, 1);
    let (mut out, mut back) = (Vec::new(), Vec::new());
    for i in 0..120 {
        let len = [60, 61, 64, 127, 300, 1514, 4202][i % 7] + i % 3;
        out.push(frame(len, i as u64));
        bench.send(&out[i]);
        let f = frame(len, 1000 + i as u64);
        bench.arrive(&f);
        back.push(Received { bytes: f, err: false });
    }
    bench.drain();
    assert!(bench.received == back, "{} received", bench.received.len());
    assert_eq!(bench.sent.len(), out.len());
    for (i, (sent, f)) in bench.sent.iter().zip(&out).enumerate() {
        assert_eq!(sent.frame(), padded(f), "frame {i}");
        assert!(i == 0 || sent.gap == GAP, "gap of {}", sent.gap);
    }
}

#[test]
fn rx_er_is_the_two_halves_of_rx_ctl_and_idle_codes_are_no_frame() {
    let clocks = [Clock::steady(20_000), Clock::steady(8_000), Clock::steady(8_000)];
    let mut bench = bench(clocks, 2);
    let mut expected = Vec::new();
    for at in 8..80 {
        let f = frame(68, at as u64);
        let mut symbols = wire_frame(&with_fcs(&f));
        symbols[at].er = true;
        bench.arrive_symbols(symbols);
        expected.push(Received { bytes: f, err: true });
        // In-band status, carrier extension, false carrier: RX_CTL low, or low and high.
        let idle = |n: usize| Symbol {
            dv: false,
            er: n % 2 == 1,
            data: [0x0d, 0x0f, 0xdd, 0x0e][n % 4],
        };
        bench.line.extend((0..12 + at % 5).map(idle));
        let f = frame(60, 500 + at as u64);
        bench.arrive(&f);
        expected.push(Received { bytes: f, err: false });
    }
    bench.drain();
    assert!(bench.received == expected, "{} received", bench.received.len());
    assert_eq!(bench.rx_count("er"), 72);
    assert_eq!(bench.rx_count("junk"), 0);
}

#[test]
fn a_phy_that_is_reset_stops_its_clock_and_comes_back() {
    let clocks = [Clock::steady(20_000), Clock::steady(8_000), Clock::steady(8_000)];
    let mut bench = bench(clocks, 3);
    for round in 0..5 {
        bench.arrive(&frame(500, round));
        bench.run_ns(1_000 + 333 * round);
        bench.clocks[RX].stopped = true;
        bench.run_ns(3_000);
        // The frame under way is cut: what is left of it never comes.
        bench.line.clear();
        bench.line.extend([Symbol::default(); 30]);
        bench.start(RX);
        bench.arrive(&frame(80, 100 + round));
        bench.drain();
        assert_eq!(bench.received.last().unwrap().bytes, frame(80, 100 + round));
        assert!(bench.received.iter().all(|r| r.err || r.bytes.len() != 500));
    }
}
