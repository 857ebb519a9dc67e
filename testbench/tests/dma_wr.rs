// SPDX-License-Identifier: Apache-2.0
//! The DMA write service of `rnic_host`: every byte in host memory and none beside it, in the order of acceptance.
#![allow(clippy::unwrap_used)]

use openrnic_testbench::host_bench::{BASE, HostBench, Manners, SIZE, WRITERS, counter, seed};
use openrnic_testbench::qp_bench::Random;

const WIDTHS: [u32; 2] = [64, 512];
const MPS: u64 = 0x218;

fn bytes(rng: &mut Random, len: usize) -> Vec<u8> {
    (0..len).map(|_| rng.bits() as u8).collect()
}

fn set_mps(bench: &mut HostBench, mps: usize) {
    bench.write32(MPS, mps as u32);
    bench.run(100);
    bench.mps = mps;
}

/// The posted stream is the accepted messages, one after the other, nothing else.
fn check_stream(bench: &HostBench) {
    let mut tlps = bench.writes_seen();
    for (_, client, addr, data) in &bench.written {
        let mut at = *addr;
        let end = addr + data.len() as u64;
        while at < end {
            let tlp = tlps
                .next()
                .unwrap_or_else(|| panic!("the message of client {client} at {addr:#x} ends at {at:#x}"));
            let range = tlp.bytes();
            assert_eq!(
                range.start,
                at,
                "client {client}, {} bytes at {addr:#x}: {tlp:x?}",
                data.len()
            );
            assert!(range.end <= end);
            let skip = (range.start - tlp.addr) as usize;
            let sent = &tlp.data[skip..skip + (range.end - range.start) as usize];
            assert!(*sent == data[(at - addr) as usize..(range.end - addr) as usize]);
            // Cut only where it must be.
            assert!(
                range.end == end || range.end.is_multiple_of(bench.mps as u64),
                "{tlp:x?} ends early"
            );
            at = range.end;
        }
    }
    assert!(tlps.next().is_none());
}

#[test]
fn random_messages_arrive_whole_in_order_and_touch_nothing_else() {
    let seed = seed(1);
    for width in WIDTHS {
        for (round, mps) in [256usize, 128, 512, 1024].into_iter().enumerate() {
            let mut rng = Random::new(seed + round as u64);
            let mut bench = HostBench::new(width, seed + round as u64);
            set_mps(&mut bench, mps);
            bench.manners = Manners::BUSY;
            let mut model = bench.mem.clone();
            for _ in 0..150 {
                let len = match rng.below(3) {
                    0 => 1 + rng.below(16),
                    1 => 64 * (1 + rng.below(8)),
                    _ => 1 + rng.below(4096),
                };
                // A small piece of memory, so that the order of messages shows.
                let addr = BASE + 4000 + rng.below(6000);
                let data = bytes(&mut rng, len as usize);
                bench.write(rng.below(WRITERS as u64) as usize, addr, data);
            }
            bench.run(200_000);
            bench.cycles(500);
            assert_eq!(bench.written.len(), 150);
            for (_, _, addr, data) in &bench.written {
                let start = (addr - BASE) as usize;
                model[start..start + data.len()].copy_from_slice(data);
            }
            assert!(model == bench.mem);
            check_stream(&bench);
        }
    }
}

#[test]
fn every_alignment_and_short_length_is_written() {
    for width in WIDTHS {
        let mut rng = Random::new(5);
        let mut bench = HostBench::new(width, 3);
        let mut model = bench.mem.clone();
        for start in 0..9u64 {
            for len in (1..=20).chain([63, 64, 65, 127, 128, 129, 255, 256, 257]) {
                let data = bytes(&mut rng, len);
                let addr = BASE + 4096 - 12 + start;
                model[(addr - BASE) as usize..][..len].copy_from_slice(&data);
                bench.write(2, addr, data);
            }
        }
        bench.run(100_000);
        assert!(model == bench.mem);
        check_stream(&bench);
    }
}

#[test]
fn a_stream_of_4_kib_writes_keeps_99_percent_of_the_beats_full() {
    for width in WIDTHS {
        for clients in [1, 3] {
            let mut bench = HostBench::new(width, 1);
            let n = 24;
            for i in 0..n {
                bench.write(i % clients, BASE + 4096 * i as u64, vec![i as u8; 4096]);
            }
            bench.run(100_000);
            check_stream(&bench);
            let tlps: Vec<_> = bench.writes_seen().collect();
            let cycles = tlps[tlps.len() - 1].cycle - tlps[15].cycle;
            let beats = ((tlps.len() - 16) * 256 / bench.beat) as u64;
            println!("{width} bits, {clients} clients: {beats} beats in {cycles} cycles");
            assert!(
                100 * beats >= 99 * cycles,
                "{width} bits, {clients} clients: {beats} beats in {cycles} cycles"
            );
        }
    }
}

#[test]
fn small_messages_take_three_cycles_a_pair_at_512_bits() {
    let mut bench = HostBench::new(512, 1);
    for i in 0..200 {
        bench.write(i % 3, BASE + 64 * i as u64, vec![i as u8; 32 + 32 * (i % 2)]);
    }
    bench.run(10_000);
    check_stream(&bench);
    let tlps: Vec<_> = bench.writes_seen().collect();
    let cycles = tlps[199].cycle - tlps[9].cycle;
    println!("190 messages in {cycles} cycles");
    assert!(cycles <= 300, "{cycles}");
}

#[test]
fn a_flood_of_one_client_delays_another_by_a_message() {
    for width in WIDTHS {
        let mut bench = HostBench::new(width, 1);
        for i in 0..20 {
            bench.write(1, BASE + 8192 * (i % 8), vec![1; 1024]);
        }
        bench.cycles(100);
        bench.write(4, BASE + 4096, vec![4; 16]);
        let before = bench.written.len();
        bench.run(10_000);
        let place = bench.written.iter().position(|w| w.1 == 4).unwrap();
        assert!(place <= before + 2, "{place}, {before} were taken before");
    }
}

#[test]
fn completions_of_commands_wait_for_the_payload_but_not_for_ever() {
    for width in WIDTHS {
        let mut bench = HostBench::new(width, 1);
        let taken = |bench: &HostBench, n: usize| {
            let of_commands = bench.written.iter().filter(|w| w.1 == 0);
            of_commands.map(|w| w.0).nth(n).unwrap()
        };
        // On a quiet link at once.
        let asked = bench.dut.cycles();
        bench.write(0, BASE, vec![9; 32]);
        bench.run(1000);
        assert!(taken(&bench, 0) - asked < 8, "{width} bits");
        // Payload without a pause, from one client and from two.
        for clients in [1, 2] {
            let message = 4096;
            for i in 0..6000 / (message / bench.beat) {
                bench.write(4 + i % clients, BASE + 4096 * (i as u64 % 8), vec![4; message]);
            }
            bench.cycles(100);
            let asked = bench.dut.cycles();
            for i in 0..4 {
                bench.write(0, BASE + 32 * i, vec![i as u8; 32]);
            }
            bench.run(20_000);
            let mut before = asked;
            for n in 0..4 {
                let waited = taken(&bench, 1 + 4 * (clients - 1) + n) - before;
                let most = 256 + (message / bench.beat) as u64 * clients as u64 + 16;
                assert!(
                    (250..most).contains(&waited),
                    "{width} bits, {clients} clients: completion {n} waited for {waited} cycles"
                );
                before += waited;
            }
        }
        check_stream(&bench);
    }
}

#[test]
fn a_read_sees_every_write_accepted_before_it() {
    let seed = seed(1);
    for width in WIDTHS {
        let mut rng = Random::new(seed);
        let mut bench = HostBench::new(width, seed);
        bench.manners = Manners {
            rq_stall_one_in: 2,
            latency: 0,
            ..Manners::BUSY
        };
        let mut asked = 0;
        for i in 0..120u64 {
            let len = 1 + rng.below(if i % 2 == 0 { 16 } else { 1500 });
            let data = bytes(&mut rng, len as usize);
            bench.write((i % WRITERS as u64) as usize, BASE + 2048 * i, data);
        }
        while asked < 120 {
            bench.cycle();
            while asked < bench.written.len() {
                // Requested in the cycle after the message was taken, of its end, which is the last to arrive.
                let (_, client, addr, data) = &bench.written[asked];
                let len = data.len().min(40);
                let (client, addr) = (*client, addr + (data.len() - len) as u64);
                bench.read(client, addr, len);
                asked += 1;
            }
        }
        bench.run(100_000);
        assert_eq!(bench.done.len(), 120);
        for d in &bench.done {
            // Memory does not change there afterwards.
            assert!(d.data == bench.at(d.addr, d.len), "{d:?} is old");
        }
    }
}

#[test]
fn without_bus_mastering_nothing_starts_and_what_is_under_way_ends() {
    for width in WIDTHS {
        let mut bench = HostBench::new(width, 1);
        bench.write(0, BASE, vec![7; 4096]);
        bench.read(0, BASE + 8192, 64);
        let mut cycle = 0;
        while bench.writes_seen().count() < 3 || bench.tlps.len() < 4 {
            bench.cycle();
            cycle += 1;
            assert!(cycle < 300);
        }
        bench.dut.set("bus_master_en_i", 0);
        bench.cycles(40);
        let seen = bench.tlps.len();
        assert!(seen <= 6, "{seen}");
        bench.read(1, BASE + 12288, 64);
        bench.cycles(200);
        assert_eq!(bench.tlps.len(), seen);
        bench.dut.set("bus_master_en_i", 1);
        bench.run(3000);
        check_stream(&bench);
        assert_eq!(bench.done.len(), 2);
        assert!(
            bench
                .done
                .iter()
                .all(|d| d.err == 0 && d.data == bench.at(d.addr, d.len))
        );
    }
}

#[test]
fn reads_and_writes_share_the_link() {
    for width in WIDTHS {
        let mut bench = HostBench::new(width, 1);
        let n = 12;
        for i in 0..n {
            bench.write(0, BASE + 4096 * i, vec![i as u8; 4096]);
            bench.read(0, BASE + (SIZE / 2) as u64 + 4096 * i, 4096);
        }
        bench.run(100_000);
        check_stream(&bench);
        assert!(
            bench
                .done
                .iter()
                .all(|d| d.err == 0 && d.data == bench.at(d.addr, d.len))
        );
        let last = bench.tlps.iter().map(|t| t.cycle).max().unwrap();
        let beats = (n as usize * 4096 / bench.beat) as u64;
        println!("{width} bits: {beats} beats each way in {last} cycles");
        // A read takes a beat of the writes' way.
        assert!(
            last < beats + beats / 4 + 60,
            "{width} bits: {beats} beats each way in {last} cycles"
        );
    }
}

#[test]
fn link_bytes_of_writes_are_counted_with_20_bytes_a_packet() {
    for width in WIDTHS {
        let mut bench = HostBench::new(width, 2);
        bench.write(0, BASE + 2, vec![1; 256]); // 254 + 2 bytes, each with two lanes beside
        bench.write(1, BASE + 4096, vec![1; 512]);
        bench.run(1000);
        assert_eq!(bench.counter(counter::PCIE_WR_BYTES), 4 * 20 + 256 + 4 + 512);
        assert_eq!(bench.counter(counter::PCIE_RD_BYTES), 0);
    }
}
