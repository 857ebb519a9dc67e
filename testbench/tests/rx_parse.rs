// SPDX-License-Identifier: Apache-2.0
//! The receive side of `rnic_wire`: what passes, what is dropped and where it is counted.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use openrnic_sim::rng::Stream;
use openrnic_testbench::wire::{Ip, Ipv4, Ipv6, Roce, capture};
use openrnic_testbench::wire_bench::frames::{opcodes, over_ipv6, plain, plain_ipv6, random, random_of};
use openrnic_testbench::wire_bench::{Counter, Manners, OUR_IPV4, OUR_IPV6, Port, Verdict, WireBench, judge, seed};

const WIDTHS: [usize; 2] = [64, 512];
/// Cycles from a frame's last beat until everything about it is known.
const SETTLE: u64 = 20;

/// Receives frames (each with the number of its beat that has a MAC error) and compares everything with the oracle.
fn receive_and_compare(bench: &mut WireBench, frames: &[(Vec<u8>, Option<usize>)]) {
    let counters = bench.counters.clone();
    let bytes = bench.byte_counts[0];
    let taken_before = [bench.descs[0].len(), bench.descs[1].len()];
    let mut payloads = [bench.payloads[0].len(), bench.payloads[1].len()];
    let (mut expected, mut taken) = (counters, Vec::new());
    for (frame, flaw) in frames {
        bench.receive_flawed(frame, flaw.unwrap_or(usize::MAX));
        expected[Counter::RxFrames as usize] += 1;
        match judge(&bench.port, frame, flaw.is_some()) {
            Verdict::Drop(counter) => expected[counter as usize] += 1,
            Verdict::Take(packet) => {
                expected[[Counter::RxRequests, Counter::RxResponses][packet.class] as usize] += 1;
                taken.push(packet);
            }
            Verdict::Ignore => {}
        }
    }
    bench.run_until("frames received", 1_000_000, |_| true);
    let want = |c: usize| taken_before[c] + taken.iter().filter(|t| t.class == c).count();
    let budget = 20 * frames.iter().map(|(f, _)| f.len() as u64).sum::<u64>() + 1000;
    bench.run(SETTLE);
    bench.run_until("descriptors and payloads taken", budget, |b| {
        (0..2).all(|c| b.descs[c].len() >= want(c))
            && (0..2).all(|c| {
                let with_payload = taken.iter().filter(|t| t.class == c && !t.payload.is_empty()).count();
                b.payloads[c].len() >= payloads[c] + with_payload
            })
    });
    bench.run(SETTLE);
    let named = |c: &[u64]| {
        c.iter()
            .copied()
            .enumerate()
            .filter(|(_, n)| *n > 0)
            .collect::<Vec<_>>()
    };
    assert_eq!(named(&bench.counters), named(&expected), "counters");
    assert_eq!(
        bench.byte_counts[0] - bytes,
        frames.iter().map(|(f, _)| f.len() as u64).sum::<u64>(),
        "bytes"
    );
    let mut numbers = taken_before;
    for packet in &taken {
        bench.check_received(numbers[packet.class], packet, &mut payloads[packet.class]);
        numbers[packet.class] += 1;
    }
    assert_eq!(
        [bench.descs[0].len(), bench.descs[1].len()],
        numbers,
        "nothing else came out"
    );
    assert_eq!(
        [bench.payloads[0].len(), bench.payloads[1].len()],
        payloads,
        "no other payload came out"
    );
}

fn whole(frames: Vec<Vec<u8>>) -> Vec<(Vec<u8>, Option<usize>)> {
    frames.into_iter().map(|f| (f, None)).collect()
}

/// Changes the IPv4 header; its checksum and the ICRC follow.
fn with_ip(roce: &Roce, change: impl FnOnce(&mut Ipv4)) -> Roce {
    let mut roce = roce.clone();
    if let Ip::V4(ip) = &mut roce.ip {
        change(ip);
        ip.checksum = ip.right_checksum();
    }
    roce.seal()
}

/// Changes the IPv6 header; the ICRC follows.
fn with_ipv6(roce: &Roce, change: impl FnOnce(&mut Ipv6)) -> Roce {
    let mut roce = roce.clone();
    if let Ip::V6(ip) = &mut roce.ip {
        change(ip);
    }
    roce.seal()
}

fn with(roce: &Roce, change: impl FnOnce(&mut Roce)) -> Roce {
    let mut roce = roce.clone();
    change(&mut roce);
    roce.seal()
}

/// Each fault alone, with the counter that it must show up in. A list of frames with that fault.
fn faults(port: &Port) -> Vec<(Counter, Vec<Vec<u8>>)> {
    let good = plain(port, 0x04, b"payload of a SEND_ONLY");
    let bytes = good.emit();
    let edited = |at: usize, value: u8| {
        let mut b = bytes.clone();
        b[at] = value;
        b
    };
    // Without regard to the lengths: the frame as it is, with another number in these places.
    let lengths = |total: u16, udp: u16| {
        let mut roce = with_ip(&good, |ip| ip.total_len = total);
        roce.udp.length = udp;
        roce.seal().emit()
    };
    let total = bytes.len() as u16 - 14;
    let mut ip_options = bytes.clone();
    ip_options[14] = 0x46;
    let mut arp = bytes.clone();
    arp[12..14].copy_from_slice(&[0x08, 0x06]);
    let mut ipv6_type = bytes.clone();
    ipv6_type[12..14].copy_from_slice(&[0x86, 0xdd]);
    // As IPv6, byte 6 (of the fragment's place) is the next header.
    let mut ipv6_udp = ipv6_type.clone();
    ipv6_udp[20] = 17;
    let mut double_tag = with(&good, |r| r.eth.tag = Some(5)).emit();
    double_tag.splice(12..12, [0x81, 0x00, 0x00, 0x07]);
    let fix = |mut frame: Vec<u8>| {
        // A right header checksum for whatever the header says.
        frame[24..26].fill(0);
        let sum: u32 = frame[14..34]
            .chunks(2)
            .map(|w| u32::from(w[0]) << 8 | u32::from(w[1]))
            .sum();
        let sum = (sum & 0xffff) + (sum >> 16);
        frame[24..26].copy_from_slice(&(!(sum as u16)).to_be_bytes());
        frame
    };
    vec![
        (
            Counter::DropDmac,
            vec![
                edited(0, 3),
                edited(5, 2),
                {
                    let mut b = bytes.clone();
                    b[..6].fill(0xff);
                    b
                },
                {
                    let mut b = bytes.clone();
                    b[..6].copy_from_slice(&[1, 0, 0x5e, 0, 0, 1]);
                    b
                },
            ],
        ),
        (
            Counter::DropNotRoce,
            vec![
                arp,
                ipv6_type,
                double_tag,
                with_ip(&good, |ip| ip.protocol = 6).emit(),
                with(&good, |r| r.udp.dst_port = 4790).emit(),
                with(&good, |r| r.udp.dst_port = 4791 ^ 0x100).emit(),
            ],
        ),
        (
            Counter::DropIpHdr,
            vec![
                fix(ip_options),
                ipv6_udp,
                fix(edited(14, 0x55)),
                with_ip(&good, |ip| ip.fragment = 0x2000).emit(),
                with_ip(&good, |ip| ip.fragment = 0x0001).emit(),
                with_ip(&good, |ip| ip.fragment = 0x1000).emit(),
                with_ip(&good, |ip| ip.ttl = 0).emit(),
                edited(24, bytes[24] ^ 1),
                edited(33, bytes[33] ^ 0x80),
                edited(15, bytes[15] ^ 0x10),
            ],
        ),
        (
            Counter::DropLength,
            vec![
                bytes[..bytes.len() - 1].to_vec(),
                bytes[..60].to_vec(),
                lengths(total + 4, total - 20 + 4),
                lengths(total - 1, total - 21),
                lengths(total, total - 21),
                lengths(total, total - 16),
                lengths(44 - 4, 20),
                lengths(0, 0),
                lengths(0xfffc, 0xfffc - 20),
                // no payload for a LAST, a FIRST or a READ response in the middle
                plain(port, 0x02, b"").emit(),
                plain(port, 0x06, b"").emit(),
                plain(port, 0x0e, b"").emit(),
                // a payload, or pad, where there is none
                plain(port, 0x0c, b"data").emit(),
                plain(port, 0x11, b"data").emit(),
                plain(port, 0x14, b"1").emit(),
                // pad larger than the payload
                with(&plain(port, 0x04, b""), |r| r.bth.pad_count = 3).emit(),
                // 4096 and no more
                plain(port, 0x04, &vec![7; 4097]).emit(),
                plain(port, 0x04, &vec![7; 4100]).emit(),
                plain(port, 0x04, &vec![7; 5000]).emit(),
            ],
        ),
        (
            Counter::DropOpcode,
            [
                0x15, 0x18, 0x1c, 0x1d, 0x1f, 0x2c, 0x31, 0x40, 0x44, 0x60, 0x66, 0x80, 0x82, 0xb5, 0xc0, 0xff,
            ]
            .map(|op| with(&good, |r| r.bth.opcode = op).emit())
            .to_vec(),
        ),
        (
            Counter::DropTver,
            [1, 2, 4, 8].map(|v| with(&good, |r| r.bth.version = v).emit()).to_vec(),
        ),
        (
            Counter::DropIcrc,
            (0..32)
                .map(|bit| {
                    let mut roce = good.clone();
                    roce.icrc ^= 1 << bit;
                    roce.emit()
                })
                .chain([edited(60, bytes[60] ^ 1), edited(45, bytes[45] ^ 1)])
                .collect(),
        ),
        (
            Counter::DropDip,
            vec![
                with_ip(&good, |ip| ip.dst = [192, 168, 77, 3].into()).emit(),
                // in the table, but not as an IPv4 address
                with_ip(&good, |ip| ip.dst = [1, 2, 3, 4].into()).emit(),
                with_ip(&good, |ip| ip.dst = [0, 0, 0, 0].into()).emit(),
                // the last bytes of an IPv6 address of ours
                with_ip(&good, |ip| {
                    ip.dst = (*OUR_IPV6.octets().last_chunk::<4>().unwrap()).into()
                })
                .emit(),
            ],
        ),
    ]
}

/// Likewise over IPv6.
fn faults_ipv6(port: &Port) -> Vec<(Counter, Vec<Vec<u8>>)> {
    let good = plain_ipv6(port, 0x04, b"payload of a SEND_ONLY");
    let bytes = good.emit();
    let edited = |at: usize, value: u8| {
        let mut b = bytes.clone();
        b[at] = value;
        b
    };
    let lengths = |payload: u16, udp: u16| {
        let mut roce = with_ipv6(&good, |ip| ip.payload_len = payload);
        roce.udp.length = udp;
        roce.seal().emit()
    };
    let len = bytes.len() as u16 - 54;
    // A packet that is right but for an empty options header (hop-by-hop or destination) before UDP.
    let extended = |kind: u8| {
        let mut frame = with_ipv6(&good, |ip| {
            ip.next_header = kind;
            ip.payload_len += 8;
        })
        .emit();
        frame.splice(54..54, [17, 0, 1, 4, 0, 0, 0, 0]);
        frame
    };
    let mut ipv4_type = bytes.clone();
    ipv4_type[12..14].copy_from_slice(&[0x08, 0x00]);
    // As IPv4, byte 9 (of the source address) is the protocol.
    let mut ipv4_udp = ipv4_type.clone();
    ipv4_udp[23] = 17;
    vec![
        (Counter::DropDmac, vec![edited(0, 3), edited(5, 2)]),
        (
            Counter::DropNotRoce,
            [0, 1, 6, 16, 41, 43, 44, 51, 58, 59, 60, 145]
                .into_iter()
                .map(|next| with_ipv6(&good, |ip| ip.next_header = next).emit())
                .chain([0, 43, 60].map(extended))
                .chain([
                    ipv4_type,
                    with(&good, |r| r.udp.dst_port = 4790).emit(),
                    with(&good, |r| r.udp.dst_port = 4791 ^ 0x100).emit(),
                    with(&with_ipv6(&good, |ip| ip.next_header = 6), |r| r.eth.tag = Some(5)).emit(),
                ])
                .collect(),
        ),
        (
            Counter::DropIpHdr,
            [0x40, 0x20, 0x70, 0xe0, 0x00]
                .into_iter()
                .map(|version| edited(14, version))
                .chain([ipv4_udp])
                .collect(),
        ),
        (
            Counter::DropLength,
            vec![
                bytes[..bytes.len() - 1].to_vec(),
                bytes[..74].to_vec(),
                bytes[..60].to_vec(),
                lengths(len + 4, len + 4),
                lengths(len - 1, len - 1),
                lengths(len, len - 1),
                lengths(len, len + 4),
                lengths(len, len - 4),
                lengths(len - 4, len),
                lengths(len, len + 20),
                lengths(20, 20),
                lengths(0, 0),
                // with the header around and beyond 16 bits
                lengths(0xffd4, 0xffd4),
                lengths(0xffd8, 0xffd8),
                lengths(0xfffc, 0xfffc),
                plain_ipv6(port, 0x02, b"").emit(),
                plain_ipv6(port, 0x06, b"").emit(),
                plain_ipv6(port, 0x0e, b"").emit(),
                plain_ipv6(port, 0x0c, b"data").emit(),
                plain_ipv6(port, 0x11, b"data").emit(),
                plain_ipv6(port, 0x14, b"1").emit(),
                with(&plain_ipv6(port, 0x04, b""), |r| r.bth.pad_count = 3).emit(),
                plain_ipv6(port, 0x04, &vec![7; 4097]).emit(),
                plain_ipv6(port, 0x04, &vec![7; 5000]).emit(),
            ],
        ),
        (
            Counter::DropOpcode,
            [0x15, 0x1f, 0x40, 0x82, 0xff]
                .map(|op| with(&good, |r| r.bth.opcode = op).emit())
                .to_vec(),
        ),
        (
            Counter::DropTver,
            [1, 2, 4, 8].map(|v| with(&good, |r| r.bth.version = v).emit()).to_vec(),
        ),
        (
            Counter::DropIcrc,
            // Every byte of the addresses, a port, a number of the BTH, the payload, and the ICRC itself.
            (22..54)
                .chain([54, 69, 75, bytes.len() - 1])
                .map(|at| edited(at, bytes[at] ^ 1 << (at % 8)))
                .collect(),
        ),
        (
            Counter::DropDip,
            (0..128)
                .map(|bit| u128::from(OUR_IPV6) ^ 1 << bit)
                .chain([
                    0,
                    u128::from(OUR_IPV4.to_ipv6_mapped()),
                    u128::from(OUR_IPV4.to_ipv6_compatible()),
                    // in the table, but the entry is empty
                    0xffff_0102_0304,
                    0xff02 << 112 | 1,
                ])
                .map(|dst| with_ipv6(&good, |ip| ip.dst = dst.into()).emit())
                .collect(),
        ),
    ]
}

#[test]
fn each_fault_is_dropped_in_its_own_counter_and_changes_nothing_else() {
    for width in WIDTHS {
        let mut bench = WireBench::new(width, &[], 1);
        // Of both versions, so that what was of the one may disturb the other.
        let good = [
            plain(&bench.port, 0x0a, b"good"),
            plain_ipv6(&bench.port, 0x0a, b"good"),
        ];
        for (counter, frames) in faults(&bench.port).into_iter().chain(faults_ipv6(&bench.port)) {
            for (n, frame) in frames.into_iter().enumerate() {
                assert_eq!(
                    judge(&bench.port, &frame, false),
                    Verdict::Drop(counter),
                    "{frame:02x?}"
                );
                let before = bench.counter(counter);
                // With a good frame right behind it.
                receive_and_compare(&mut bench, &[(frame, None), (good[n % 2].emit(), None)]);
                assert_eq!(bench.counter(counter), before + 1);
            }
        }
        // A MAC error in any beat.
        let frame = plain(&bench.port, 0x04, &[9; 300]).emit();
        for flaw in 0..frame.len().div_ceil(width / 8) {
            receive_and_compare(
                &mut bench,
                &[(frame.clone(), Some(flaw)), (good[flaw % 2].emit(), None)],
            );
        }
        assert_eq!(
            bench.counter(Counter::DropMacErr) as usize,
            frame.len().div_ceil(width / 8)
        );
    }
}

#[test]
fn of_two_faults_the_earlier_one_in_the_order_of_the_checks_counts() {
    for width in WIDTHS {
        let mut bench = WireBench::new(width, &[], 2);
        let port = bench.port.clone();
        type Change = fn(&mut Roce);
        // In the order of the checks; the ICRC fault comes by hand.
        let changes: [(Counter, Change); 7] = [
            (Counter::DropDmac, |r| r.eth.dst[3] ^= 1),
            (Counter::DropNotRoce, |r| r.udp.dst_port = 1),
            (Counter::DropIpHdr, |r| {
                if let Ip::V4(ip) = &mut r.ip {
                    ip.ttl = 0;
                    ip.checksum = ip.right_checksum();
                }
            }),
            (Counter::DropLength, |r| r.udp.length += 1),
            (Counter::DropOpcode, |r| r.bth.opcode = 0x1f),
            (Counter::DropTver, |r| r.bth.version = 1),
            (Counter::DropDip, |r| match &mut r.ip {
                Ip::V4(ip) => {
                    ip.dst = [9, 9, 9, 9].into();
                    ip.checksum = ip.right_checksum();
                }
                Ip::V6(ip) => ip.dst = 9.into(),
            }),
        ];
        for base in [
            plain(&port, 0x04, b"0123456789abcdef"),
            plain_ipv6(&port, 0x04, b"0123456789abcdef"),
        ] {
            // What a header of IPv6 can have wrong, its version, hides where the others are.
            let v6 = matches!(base.ip, Ip::V6(_));
            let changes: Vec<_> = changes
                .iter()
                .filter(|(c, _)| !v6 || *c != Counter::DropIpHdr)
                .collect();
            for (i, (first, change)) in changes.iter().enumerate() {
                for (second, other) in &changes[i + 1..] {
                    let frame = with(&base, |r| {
                        change(r);
                        other(r);
                    });
                    let before = bench.counters.clone();
                    receive_and_compare(&mut bench, &[(frame.emit(), None)]);
                    assert_eq!(
                        bench.counter(*first),
                        before[*first as usize] + 1,
                        "{first:?} before {second:?}"
                    );
                }
                let mut wrong = with(&base, change);
                wrong.icrc ^= 1;
                let before = bench.counters.clone();
                let counter = if *first == Counter::DropDip {
                    Counter::DropIcrc
                } else {
                    *first
                };
                receive_and_compare(&mut bench, &[(wrong.emit(), None)]);
                assert_eq!(bench.counter(counter), before[counter as usize] + 1);
                let before = bench.counter(Counter::DropMacErr);
                receive_and_compare(&mut bench, &[(wrong.emit(), Some(0))]);
                assert_eq!(bench.counter(Counter::DropMacErr), before + 1);
            }
        }
    }
}

#[test]
fn over_ipv6_what_routers_change_and_the_udp_checksum_are_not_looked_at() {
    for width in WIDTHS {
        let mut bench = WireBench::new(width, &[], 8);
        let good = plain_ipv6(&bench.port, 0x0a, b"payload of a WRITE");
        let mut frames: Vec<_> = (0..8)
            .map(|bit| with_ipv6(&good, |ip| ip.traffic_class = 1 << bit))
            .collect();
        frames.extend((0..20).map(|bit| with_ipv6(&good, |ip| ip.flow_label = 1 << bit)));
        frames.extend([0, 1, 255].map(|hops| with_ipv6(&good, |ip| ip.hop_limit = hops)));
        frames.extend([1, 0x8000, 0xffff].map(|sum| with(&good, |r| r.udp.checksum = sum)));
        let n = frames.len() as u64;
        // On the way changed, with the ICRC that the sender gave.
        let frames: Vec<_> = frames
            .into_iter()
            .map(|mut changed| {
                changed.icrc = good.icrc;
                changed.emit()
            })
            .collect();
        receive_and_compare(&mut bench, &whole(frames));
        assert_eq!(bench.counter(Counter::RxRequests), n);
    }
}

#[test]
fn built_without_ipv6_the_receiver_takes_it_for_what_it_does_not_know() {
    let mut bench = WireBench::new(64, &[("Ipv6", 0)], 9);
    let (v4, v6) = (
        plain(&bench.port, 0x0a, b"IPv4").emit(),
        plain_ipv6(&bench.port, 0x0a, b"IPv6").emit(),
    );
    for _ in 0..4 {
        bench.receive(&v6);
        bench.receive(&v4);
    }
    bench.run(200);
    let counted = [Counter::RxFrames, Counter::DropNotRoce, Counter::RxRequests].map(|c| bench.counter(c));
    assert_eq!(counted, [8, 4, 4]);
    let Verdict::Take(packet) = judge(&bench.port, &v4, false) else {
        panic!("a right frame")
    };
    (0..4).for_each(|n| bench.check_received(n, &packet, &mut { n }));
}

#[test]
fn a_frame_cut_at_any_byte_is_dropped_and_the_next_one_passes() {
    for width in WIDTHS {
        let mut bench = WireBench::new(width, &[], 3);
        let port = bench.port.clone();
        let good = [plain(&port, 0x11, b"").emit(), plain_ipv6(&port, 0x11, b"").emit()];
        for roce in [
            plain(&port, 0x0b, &[5; 70]),
            with(&plain(&port, 0x10, &[6; 30]), |r| r.eth.tag = Some(1)),
            plain_ipv6(&port, 0x0b, &[5; 70]),
            with(&plain_ipv6(&port, 0x13, &[]), |r| r.eth.tag = Some(1)),
        ] {
            let frame = roce.emit();
            let mut frames = Vec::new();
            for cut in 1..frame.len() {
                assert!(matches!(judge(&port, &frame[..cut], false), Verdict::Drop(_)), "{cut}");
                frames.push(frame[..cut].to_vec());
                frames.push(good[cut / 2 % 2].clone());
            }
            receive_and_compare(&mut bench, &whole(frames));
        }
    }
}

#[test]
fn every_opcode_with_random_fields_is_taken_apart_and_its_payload_stands_at_lane_0() {
    let seed = seed();
    for width in WIDTHS {
        for (run, manners) in [Manners::PROMPT, Manners::MOODY].into_iter().enumerate() {
            let mut rng = Stream::new(seed, "valid packets", run as u64);
            let mut bench = WireBench::new(width, &[], seed);
            bench.manners = manners;
            let frames: Vec<_> = opcodes()
                .into_iter()
                .flat_map(|op| [op; 3])
                .map(|op| random_of(&bench.port, &mut rng, op, 300).emit())
                .collect();
            let long: Vec<_> = (0..6).map(|_| random(&bench.port, &mut rng, 4096).emit()).collect();
            // No more at a time than the buffers hold.
            for some in frames.chunks(40).chain(long.chunks(3)) {
                receive_and_compare(&mut bench, &whole(some.to_vec()));
            }
            let all = frames.iter().chain(&long);
            let ignored = all.filter(|f| judge(&bench.port, f, false) == Verdict::Ignore).count() as u64;
            let taken = bench.counter(Counter::RxRequests) + bench.counter(Counter::RxResponses);
            assert_eq!(taken + ignored, bench.counter(Counter::RxFrames), "all are right");
        }
    }
}

#[test]
fn every_payload_length_comes_out_whole_and_cut_to_its_length() {
    for width in WIDTHS {
        let mut bench = WireBench::new(width, &[], 4);
        let port = bench.port.clone();
        // One opcode per length of the headers: 40, 44, 48, 56, 60 bytes, over IPv6 20 more.
        for (opcode, v6) in [0x04, 0x10, 0x64, 0x0a, 0x0b]
            .into_iter()
            .flat_map(|op| [(op, false), (op, true)])
        {
            let frames: Vec<_> = (0..140usize)
                .map(|n| {
                    let payload: Vec<u8> = (0..n).map(|i| (i * 3 + n) as u8 | 1).collect();
                    let mut roce = plain(&port, opcode, &payload);
                    if v6 {
                        roce = over_ipv6(roce);
                    }
                    roce.trailer = vec![0xff; n % 3 * 10];
                    roce.emit()
                })
                .collect();
            for some in frames.chunks(20) {
                receive_and_compare(&mut bench, &whole(some.to_vec()));
            }
        }
        receive_and_compare(&mut bench, &whole(vec![plain(&port, 0x00, &[0xa5; 4096]).emit()]));
        receive_and_compare(&mut bench, &whole(vec![plain_ipv6(&port, 0x00, &[0xa5; 4096]).emit()]));
    }
}

#[test]
fn what_linux_sent_passes_when_it_is_addressed_to_us() {
    for width in WIDTHS {
        let mut bench = WireBench::new(width, &[], 5);
        let mut passed = 0;
        for file in capture::files().unwrap() {
            for frame in capture::frames(&file).unwrap() {
                // This port is whoever the frame is for.
                let mut port = Port::default();
                port.mac.copy_from_slice(&frame[..6]);
                let address = |at: std::ops::Range<usize>| frame[at].to_vec();
                port.gids[3] = Some(if frame[12..14] == [0x86, 0xdd] {
                    <[u8; 16]>::try_from(address(38..54)).unwrap().into()
                } else {
                    <[u8; 4]>::try_from(address(30..34)).unwrap().into()
                });
                bench.configure(port);
                receive_and_compare(&mut bench, &[(frame, None)]);
            }
            passed += 1;
        }
        assert!(passed > 60);
        println!("{width} bits: {:?}", bench.counted());
        assert_eq!(
            bench.counter(Counter::DropIcrc),
            2,
            "the ones wrong on purpose, one over each version of IP"
        );
        assert_eq!(bench.counter(Counter::DropOpcode), 1, "the one with opcode 0x1f");
        let taken = bench.counter(Counter::RxRequests) + bench.counter(Counter::RxResponses);
        assert_eq!(taken + 3, bench.counter(Counter::RxFrames));
    }
}

#[test]
fn a_congestion_notification_is_taken_and_nothing_follows() {
    for width in WIDTHS {
        let mut bench = WireBench::new(width, &[], 6);
        let mut cnp = plain(&bench.port, 0x81, b"");
        cnp.bth.congestion = 0x40;
        let cnp = cnp.seal();
        receive_and_compare(&mut bench, &whole(vec![cnp.emit()]));
        assert_eq!(bench.counted(), [(Counter::RxFrames as usize, 1)]);
        let mut wrong = cnp;
        wrong.icrc ^= 4;
        receive_and_compare(&mut bench, &whole(vec![wrong.emit()]));
        assert_eq!(bench.counter(Counter::DropIcrc), 1);
    }
}

#[test]
fn smallest_frames_back_to_back_at_full_rate_all_pass() {
    for width in WIDTHS {
        let mut bench = WireBench::new(width, &[], 7);
        let port = bench.port.clone();
        // 58, 62, 62 and 74 bytes, over IPv6 78 and 82; some with a payload, whose chunk is completed by the next frame's first beat.
        let kinds = [
            plain(&port, 0x04, b"").emit(),
            plain(&port, 0x11, b"").emit(),
            plain(&port, 0x04, b"abcd").emit(),
            plain(&port, 0x0c, b"").emit(),
            plain(&port, 0x10, b"read response").emit(),
            plain_ipv6(&port, 0x04, b"").emit(),
            plain_ipv6(&port, 0x11, b"").emit(),
            plain_ipv6(&port, 0x10, b"read response").emit(),
        ];
        for kind in 0..=kinds.len() {
            let frames: Vec<_> = (0..300)
                .map(|i| kinds[if kind == kinds.len() { i % kind } else { kind }].clone())
                .collect();
            let beats: u64 = frames.iter().map(|f| f.len().div_ceil(width / 8) as u64).sum();
            let start = bench.dut.cycles();
            let taken = bench.counter(Counter::RxRequests) + bench.counter(Counter::RxResponses);
            receive_and_compare(&mut bench, &whole(frames));
            assert_eq!(
                bench.counter(Counter::RxRequests) + bench.counter(Counter::RxResponses),
                taken + 300
            );
            let cycles = bench.dut.cycles() - start;
            assert!(cycles <= beats + 3 * SETTLE, "{cycles} cycles for {beats} beats");
        }
    }
}

#[test]
fn random_bytes_and_flipped_bits_never_pass_and_never_hang_the_receiver() {
    let seed = seed();
    for width in WIDTHS {
        let mut rng = Stream::new(seed, "noise", width as u64);
        let mut bench = WireBench::new(width, &[], seed);
        bench.manners = Manners {
            mac_rx: 0.9,
            ..Manners::PROMPT
        };
        let port = bench.port.clone();
        let mut frames = Vec::new();
        for i in 0..400 {
            let frame = if i % 4 == 0 {
                // noise behind a right beginning of random length
                let start = rng.below(60) as usize;
                let len = 1 + rng.below(200) as usize;
                let right = plain(&port, 0x04, &[1; 64]).emit();
                (0..len)
                    .map(|b| if b < start { right[b] } else { rng.bits() as u8 })
                    .collect()
            } else {
                // a right frame, a few bits of which are turned
                let mut bytes = random(&port, &mut rng, 200).emit();
                for _ in 0..=rng.below(3) {
                    let bit = rng.below(bytes.len() as u64 * 8) as usize;
                    bytes[bit / 8] ^= 1 << (bit % 8);
                }
                bytes
            };
            frames.push(frame);
        }
        // What still passes has its flipped bits where nobody has to look (a source port's does not: the ICRC covers it).
        let passing = frames
            .iter()
            .filter(|f| !matches!(judge(&port, f, false), Verdict::Drop(_)))
            .count();
        assert!(passing < 80, "{passing}");
        for some in frames.chunks(50) {
            receive_and_compare(&mut bench, &whole(some.to_vec()));
        }
        let good = plain(&port, 0x04, b"still alive").emit();
        receive_and_compare(&mut bench, &whole(vec![good]));
    }
}
