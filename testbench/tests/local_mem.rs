// SPDX-License-Identifier: Apache-2.0
//! A memory on the board beside the host: `rnic_local_mem` and `rnic_axi_ram`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use openrnic_driver::spec::LOCAL_MEM_BASE;
use openrnic_sim::model::BlockModel;
use openrnic_sim::rng::Stream;
use openrnic_testbench::local_bench::{Completion, LocalBench, Manners, PATIENCE, Request, request};
use openrnic_testbench::wire_bench::seed;

const PROMPT: Manners = Manners {
    pause: 0.0,
    bad: 0.0,
    latency: 0,
    silent: false,
};

/// Random requests of the core; the host answers its reads. At the end both memories and all completions are what they must be.
fn traffic(data_width: usize, manners: Manners, count: usize) -> LocalBench {
    let seed = seed();
    let mut bench = LocalBench::new(data_width, seed, manners);
    let mut rng = Stream::new(seed, "traffic", data_width as u64);
    let all: Vec<Request> = (0..count)
        .map(|i| request(&mut rng, (i % 1024) as u16, 0.7, 0.6))
        .collect();
    let (mut seen, mut host_reads) = (0, Vec::new());
    for chunk in all.chunks(40) {
        bench.requests.extend(chunk.iter().cloned());
        while !bench.is_idle() {
            assert!(bench.cycles() < 200 * count as u64, "the block hangs");
            bench.clock();
            for r in &bench.to_host[seen..] {
                if !r.write {
                    let data: Vec<u8> = (0..4 * r.dw_len).map(|i| i as u8 ^ r.tag as u8).collect();
                    host_reads.push(Completion {
                        tag: r.tag,
                        status: 0,
                        dw_len: r.dw_len,
                        byte_count: 4 * r.dw_len as u64,
                        lower_addr: r.addr & 0x7f,
                        data,
                    });
                    bench.from_host.extend(host_reads.last().cloned());
                }
            }
            seen = bench.to_host.len();
        }
    }
    let host: Vec<&Request> = all.iter().filter(|r| !r.local()).collect();
    assert_eq!(
        bench.to_host.iter().collect::<Vec<_>>(),
        host,
        "the host has all of its requests, in order"
    );
    let of_host: Vec<&Completion> = bench.completions.iter().filter(|c| host_reads.contains(c)).collect();
    assert_eq!(
        of_host,
        host_reads.iter().collect::<Vec<_>>(),
        "the core has the host's completions, in order"
    );
    let reads = all.iter().filter(|r| !r.write).count();
    assert_eq!(bench.completions.len(), reads, "one completion for each read");
    bench
}

#[test]
fn requests_part_and_completions_join_in_order() {
    for data_width in [64, 128, 512] {
        for (pause, latency) in [(0.0, 0), (0.4, 30)] {
            let bench = traffic(
                data_width,
                Manners {
                    pause,
                    latency,
                    ..PROMPT
                },
                1000,
            );
            assert_eq!(
                bench.memory, bench.image,
                "{data_width} bits: what was written is there"
            );
            assert_eq!(bench.bad_writes, (0, 0));
        }
    }
}

#[test]
fn errors_of_the_memory_are_told() {
    for data_width in [64, 512] {
        let bench = traffic(
            data_width,
            Manners {
                pause: 0.2,
                bad: 0.2,
                latency: 10,
                silent: false,
            },
            1000,
        );
        assert!(
            bench.bad_writes.0 > 20 && bench.failed_reads > 20,
            "{:?}",
            bench.bad_writes
        );
        assert_eq!(bench.bad_writes.0, bench.bad_writes.1, "each bad write is told once");
        let aborted = bench.completions.iter().filter(|c| c.status == 4).count();
        assert_eq!(aborted as u64, bench.failed_reads);
    }
}

#[test]
fn a_memory_that_does_not_answer_is_given_up_and_the_host_goes_on() {
    for write_first in [true, false] {
        let mut bench = LocalBench::new(64, seed(), Manners { silent: true, ..PROMPT });
        let one = |write: bool, addr: u64, tag: u16| Request {
            write,
            addr,
            dw_len: 2,
            first_be: 15,
            last_be: 15,
            tag,
            data: vec![7; if write { 8 } else { 0 }],
        };
        let host = 0x12_3450_0000;
        // What is asked before the memory is given up, then a write to the host behind it, then more.
        bench
            .requests
            .extend([one(write_first, LOCAL_MEM_BASE, 1), one(true, host, 0)]);
        bench.requests.extend([
            one(true, LOCAL_MEM_BASE + 8, 0),
            one(false, LOCAL_MEM_BASE + 16, 2),
            one(true, host + 8, 0),
        ]);
        let start = bench.cycles();
        while !(bench.requests.is_empty() && bench.completions.iter().any(|c| c.tag == 2)) {
            assert!(
                bench.cycles() < start + PATIENCE + 50,
                "still waiting, dead: {}",
                bench.dead()
            );
            bench.clock();
        }
        assert!(bench.dead() && bench.cycles() >= start + PATIENCE);
        assert_eq!(bench.to_host.len(), 2);
        assert!(bench.completions.iter().all(|c| c.status == 4), "Completer Abort");
    }
}

#[test]
fn whole_lines_move_at_the_speed_of_the_port() {
    for (data_width, write) in [(64, true), (64, false), (512, true), (512, false)] {
        let mut bench = LocalBench::new(data_width, seed(), PROMPT);
        let count = 64;
        for i in 0..count {
            bench.requests.push_back(Request {
                write,
                addr: LOCAL_MEM_BASE + 256 * (i % 16),
                dw_len: 64,
                first_be: 15,
                last_be: 15,
                tag: i as u16,
                data: vec![i as u8; if write { 256 } else { 0 }],
            });
        }
        let start = bench.cycles();
        bench.finish(100_000);
        let (took, least) = (bench.cycles() - start, count * 256 * 8 / data_width as u64);
        println!("{data_width} bits, write {write}: {took} cycles, {least} at least");
        assert!(took <= least + 40, "{took} cycles for {least}");
    }
}

#[test]
fn the_block_ram_keeps_what_is_written_on_both_ways_in() {
    let mut rng = Stream::new(seed(), "axi_ram", 0);
    let mut dut = BlockModel::builder("rnic_axi_ram")
        .param("LogSize", 9)
        .random_init(1)
        .build()
        .unwrap();
    for input in [
        "s_awvalid_i",
        "s_wvalid_i",
        "s_bready_i",
        "s_arvalid_i",
        "s_rready_i",
        "put_valid_i",
    ] {
        dut.set(input, 0);
    }
    dut.reset(2);
    let mut image = [[0u8; 8]; 64];
    let (mut bursts, mut puts) = (0, 0);
    let mut write: Option<(usize, usize, bool)> = None; // beat, beats left, address was taken
    let mut read: Option<(usize, usize, bool)> = None;
    let mut due: Vec<(u64, bool)> = Vec::new();
    let mut waiting = 0;
    for _ in 0..20_000 {
        // Reads only where nobody writes at the same time: lower half; what is written there is written between bursts.
        let w = *write.get_or_insert_with(|| {
            let n = 1 + rng.below(6) as usize;
            (32 + rng.below(32 - n as u64) as usize, n, false)
        });
        let strobes = rng.below(256);
        let value = rng.bits();
        let give = w.2 && rng.chance(0.6);
        dut.set("s_awvalid_i", u64::from(!w.2 && waiting == 0));
        dut.set("s_awaddr_i", 8 * w.0 as u64);
        dut.set("s_wvalid_i", u64::from(give));
        dut.set("s_wdata_i", value);
        dut.set("s_wstrb_i", strobes);
        dut.set("s_wlast_i", u64::from(w.1 == 1));
        let b_ready = rng.chance(0.5);
        dut.set("s_bready_i", u64::from(b_ready));
        let put = read.is_none() && rng.chance(0.5);
        let (put_beat, put_value) = (rng.below(32) as usize, rng.bits());
        dut.set("put_valid_i", u64::from(put));
        dut.set("put_beat_i", put_beat as u64);
        dut.set("put_data_i", put_value);
        if read.is_none() && !put && rng.chance(0.2) {
            let n = 1 + rng.below(8) as usize;
            read = Some((rng.below(32 - n as u64) as usize, n, false));
        }
        let r = read.unwrap_or((0, 1, true));
        dut.set("s_arvalid_i", u64::from(read.is_some() && !r.2));
        dut.set("s_araddr_i", 8 * r.0 as u64);
        dut.set("s_arlen_i", r.1 as u64 - 1);
        let r_ready = rng.chance(0.7);
        dut.set("s_rready_i", u64::from(r_ready));
        dut.clock();
        if dut.sampled("s_awready_o") == 1 && !w.2 && waiting == 0 {
            write = Some((w.0, w.1, true));
        }
        if give && dut.sampled("s_wready_o") == 1 {
            for (lane, byte) in image[w.0].iter_mut().enumerate() {
                if strobes >> lane & 1 == 1 {
                    *byte = value.to_le_bytes()[lane];
                }
            }
            write = (w.1 > 1).then_some((w.0 + 1, w.1 - 1, true));
            waiting += usize::from(w.1 == 1);
        }
        if b_ready && dut.sampled("s_bvalid_o") == 1 {
            assert_eq!((dut.sampled("s_bresp_o"), waiting), (0, 1), "one answer for a burst");
            waiting = 0;
            bursts += 1;
        }
        if put && dut.sampled("put_ready_o") == 1 {
            image[put_beat] = put_value.to_le_bytes();
            puts += 1;
        }
        if read.is_some() && !r.2 && dut.sampled("s_arready_o") == 1 {
            due = (0..r.1)
                .map(|i| (u64::from_le_bytes(image[r.0 + i]), i + 1 == r.1))
                .collect();
            read = Some((r.0, r.1, true));
        }
        if r_ready && dut.sampled("s_rvalid_o") == 1 {
            let (value, last) = due.remove(0);
            assert_eq!((dut.sampled("s_rdata_o"), dut.sampled("s_rlast_o") == 1), (value, last));
            if last {
                read = None;
            }
        }
    }
    assert!(bursts > 1000 && puts > 1000, "{bursts} bursts, {puts} puts");
    // The upper half, that bursts wrote, is read at the end.
    dut.set("put_valid_i", 0);
    dut.set("s_awvalid_i", 0);
    dut.set("s_wvalid_i", 0);
    dut.set("s_rready_i", 1);
    dut.clocks(20);
    dut.set("s_arvalid_i", 1);
    dut.set("s_araddr_i", 8 * 32);
    dut.set("s_arlen_i", 31);
    dut.clock();
    dut.set("s_arvalid_i", 0);
    let mut got = Vec::new();
    for _ in 0..64 {
        dut.clock();
        if dut.sampled("s_rvalid_o") == 1 {
            got.push(dut.sampled("s_rdata_o").to_le_bytes());
        }
    }
    assert_eq!(got, image[32..]);
}

#[test]
fn the_counter_leaves_no_number_out() {
    let mut dut = BlockModel::builder("rnic_daq_counter")
        .param("BeatW", 4)
        .param("Every", 3)
        .random_init(1)
        .build()
        .unwrap();
    dut.set("run_i", 0);
    dut.set("put_ready_i", 0);
    dut.reset(2);
    let mut rng = Stream::new(seed(), "daq", 0);
    let mut next = 0;
    let mut since = 10;
    for _ in 0..2000 {
        let (run, ready) = (rng.chance(0.9), rng.chance(0.6));
        dut.set("run_i", u64::from(run));
        dut.set("put_ready_i", u64::from(ready));
        dut.clock();
        since += 1;
        if dut.sampled("put_valid_o") == 1 && ready {
            assert_eq!(
                (dut.sampled("put_data_o"), dut.sampled("put_beat_o")),
                (next, next % 16)
            );
            assert!(since >= 3, "one number every three cycles");
            (next, since) = (next + 1, 0);
        }
        assert_eq!(dut.get("count_o"), next);
    }
    assert!(next > 300, "{next}");
}
