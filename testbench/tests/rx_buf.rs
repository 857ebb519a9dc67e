// SPDX-License-Identifier: Apache-2.0
//! The store-and-forward buffers of the receiver: what does not fit is dropped whole and counted.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use openrnic_sim::rng::Stream;
use openrnic_testbench::wire_bench::frames::plain;
use openrnic_testbench::wire_bench::{Counter, Manners, SMALL, Taken, Verdict, WireBench, judge, seed};

const WIDTHS: [usize; 2] = [64, 512];
const REQUEST: u8 = 0x04;
const RESPONSE: u8 = 0x10;

fn taken(bench: &WireBench, frame: &[u8]) -> Taken {
    match judge(&bench.port, frame, false) {
        Verdict::Take(packet) => *packet,
        other => panic!("{other:?}"),
    }
}

fn packet(bench: &WireBench, opcode: u8, len: usize, mark: usize) -> Vec<u8> {
    let payload: Vec<u8> = (0..len).map(|i| (i * 5 + mark * 31) as u8).collect();
    plain(&bench.port, opcode, &payload).emit()
}

/// Lets the engines take everything and compares it with what was stored.
fn drain_and_check(bench: &mut WireBench, stored: &[Vec<u8>]) {
    let from = [bench.descs[0].len(), bench.descs[1].len()];
    let mut payloads = [bench.payloads[0].len(), bench.payloads[1].len()];
    let expected: Vec<_> = stored.iter().map(|f| taken(bench, f)).collect();
    bench.stalled = [false; 2];
    bench.run(20 + 20 * stored.iter().map(|f| f.len() as u64).sum::<u64>() / bench.bytes as u64);
    let mut numbers = from;
    for packet in &expected {
        assert!(
            numbers[packet.class] < bench.descs[packet.class].len(),
            "packet {} is there",
            numbers[packet.class]
        );
        bench.check_received(numbers[packet.class], packet, &mut payloads[packet.class]);
        numbers[packet.class] += 1;
    }
    assert_eq!(
        numbers,
        [bench.descs[0].len(), bench.descs[1].len()],
        "nothing else came out"
    );
    assert_eq!(payloads, [bench.payloads[0].len(), bench.payloads[1].len()]);
}

#[test]
fn two_packets_of_4096_bytes_fit_and_a_third_is_dropped_whole() {
    for width in WIDTHS {
        for opcode in [REQUEST, RESPONSE] {
            let mut bench = WireBench::new(width, &SMALL, 1);
            bench.stalled = [true; 2];
            let mut frames: Vec<_> = (0..2).map(|i| packet(&bench, opcode, 4096, i)).collect();
            frames.iter().for_each(|f| bench.receive(f));
            // The beat at the output makes room for one more, which is not enough for this.
            let third = packet(&bench, opcode, 4096, 2);
            bench.receive(&third);
            // A packet without payload still fits behind it, and so does one of a single beat.
            frames.push(packet(&bench, opcode, 0, 3));
            frames.push(packet(&bench, opcode, 3, 4));
            frames[2..].to_vec().iter().for_each(|f| bench.receive(f));
            bench.run_until("frames received", 5000, |b| b.counter(Counter::RxFrames) == 5);
            assert_eq!(bench.counter(Counter::DropOverflow), 1);
            let counter = if opcode == REQUEST {
                Counter::RxRequests
            } else {
                Counter::RxResponses
            };
            assert_eq!(bench.counter(counter), 4);
            drain_and_check(&mut bench, &frames);
            // Room again for two.
            bench.stalled = [true; 2];
            frames.truncate(2);
            frames.iter().for_each(|f| bench.receive(f));
            bench.run_until("frames received", 5000, |b| b.counter(Counter::RxFrames) == 7);
            assert_eq!(bench.counter(Counter::DropOverflow), 1);
            drain_and_check(&mut bench, &frames);
        }
    }
}

#[test]
fn more_packets_than_descriptors_are_dropped_and_counted() {
    for width in WIDTHS {
        let mut bench = WireBench::new(width, &SMALL, 2);
        bench.stalled = [true; 2];
        // 16 in the memory and one at the output.
        let frames: Vec<_> = (0..20).map(|i| packet(&bench, REQUEST, i % 5, i)).collect();
        frames.iter().for_each(|f| bench.receive(f));
        bench.run_until("frames received", 5000, |b| b.counter(Counter::RxFrames) == 20);
        assert_eq!(
            (bench.counter(Counter::RxRequests), bench.counter(Counter::DropOverflow)),
            (17, 3)
        );
        drain_and_check(&mut bench, &frames[..17]);
    }
}

#[test]
fn requests_that_nobody_takes_do_not_hold_responses_up() {
    for width in WIDTHS {
        let mut bench = WireBench::new(width, &SMALL, 3);
        bench.stalled = [true, false];
        for i in 0..40 {
            let (request, response) = (packet(&bench, REQUEST, 600, i), packet(&bench, RESPONSE, 600, i));
            bench.receive(&request);
            bench.receive(&response);
        }
        bench.run_until("frames received", 20_000, |b| b.counter(Counter::RxFrames) == 80);
        bench.run(20);
        assert_eq!(bench.counter(Counter::RxResponses), 40);
        assert_eq!((bench.descs[0].len(), bench.descs[1].len()), (0, 40));
        assert!(bench.counter(Counter::DropOverflow) > 20);
    }
}

#[test]
fn under_random_load_what_is_counted_is_what_comes_out_in_order_and_intact() {
    let seed = seed();
    for width in WIDTHS {
        let mut rng = Stream::new(seed, "load", width as u64);
        let mut bench = WireBench::new(width, &SMALL, seed);
        bench.manners = Manners {
            engine: 0.1,
            ..Manners::PROMPT
        };
        let mut frames = Vec::new();
        for i in 0..150 {
            let opcode = [REQUEST, RESPONSE][rng.below(2) as usize];
            let len = if rng.chance(0.2) { 4096 } else { rng.below(500) as usize };
            let mut frame = packet(&bench, opcode, len, i);
            // Some are refused for another reason, after their payload went into the buffer.
            if rng.chance(0.2) {
                let last = frame.len() - 1;
                frame[last] ^= 1;
            }
            bench.receive(&frame);
            frames.push(frame);
        }
        bench.run_until("frames received", 200_000, |b| b.counter(Counter::RxFrames) == 150);
        bench.manners = Manners::PROMPT;
        bench.run(3000);
        let [requests, responses] = [bench.counter(Counter::RxRequests), bench.counter(Counter::RxResponses)];
        assert_eq!(
            [bench.descs[0].len() as u64, bench.descs[1].len() as u64],
            [requests, responses]
        );
        let lost = bench.counter(Counter::DropOverflow) + bench.counter(Counter::DropIcrc);
        assert_eq!(requests + responses + lost, 150);
        assert!(
            bench.counter(Counter::DropOverflow) > 5 && bench.counter(Counter::DropIcrc) > 5,
            "there was something to lose"
        );
        // Each that came out is one of those sent, in their order, complete.
        let mut next = frames.iter();
        let mut merged = [0, 0];
        let mut payloads = [0, 0];
        let expected: Vec<_> = std::iter::from_fn(|| next.next())
            .filter_map(|f| match judge(&bench.port, f, false) {
                Verdict::Take(p) => Some(*p),
                _ => None,
            })
            .collect();
        for class in 0..2 {
            let mut candidates = expected.iter().filter(|p| p.class == class);
            while merged[class] < bench.descs[class].len() {
                let desc = &bench.descs[class][merged[class]];
                let (lsb, width) = openrnic_testbench::wire_bench::RX_DESC.field("payload_len");
                let found = candidates.find(|p| {
                    let same_len = p.payload.len() as u64 == desc.get(lsb, width);
                    let payload = bench.payloads[class].get(payloads[class]);
                    same_len && (p.payload.is_empty() || payload.is_some_and(|got| got.starts_with(&p.payload)))
                });
                let found = found.expect("a packet that was sent");
                let mut number = payloads[class];
                bench.check_received(merged[class], found, &mut number);
                payloads[class] = number;
                merged[class] += 1;
            }
            assert_eq!(payloads[class], bench.payloads[class].len());
        }
    }
}
