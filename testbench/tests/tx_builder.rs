// SPDX-License-Identifier: Apache-2.0
//! The transmit side of `rnic_wire`: frames byte for byte, gathering, order, fairness, failures.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::net::IpAddr;

use openrnic_sim::rng::Stream;
use openrnic_testbench::wire::{Direction, Ip, PayloadRule, Roce, opcode_info, source_port};
use openrnic_testbench::wire_bench::{Counter, Job, Manners, Peer, Piece, SMALL, TxFailure, WireBench, seed};

const WIDTHS: [usize; 2] = [64, 512];
/// Opcodes whose headers a job has fields for.
const OPCODES: [u8; 30] = [
    0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x10, 0x11, 0x12,
    0x13, 0x14, 0x16, 0x17, 0x20, 0x23, 0x24, 0x26, 0x29, 0x2a, 0x2b,
];

fn peer(idx: u16) -> Peer {
    Peer {
        idx,
        generation: 0x3a,
        dest_qpn: 0x00_1234,
        dmac: [2, 0, 0, 0, 0, 2],
        dip: IpAddr::from([192, 168, 77, 2]),
        vlan: 0,
        sgid_index: 0,
        pkey_index: 0,
        hop_limit: 64,
        traffic_class: 0,
        flow_label: 0,
    }
}

/// The same over IPv6.
fn peer_ipv6(idx: u16) -> Peer {
    Peer {
        dip: IpAddr::from([0xfd77, 0x8001, 0x0203, 0xfffe, 0x0405, 0x0607, 0x0809, 0x0a0b]),
        sgid_index: 7,
        ..peer(idx)
    }
}

fn random_peer(rng: &mut Stream, idx: u16) -> Peer {
    let v6 = rng.chance(0.5);
    Peer {
        idx,
        generation: rng.bits() as u16,
        dest_qpn: rng.bits() as u32 & 0xff_ffff,
        dmac: std::array::from_fn(|_| rng.bits() as u8),
        dip: if v6 {
            IpAddr::from((u128::from(rng.bits()) << 64 | u128::from(rng.bits())).to_be_bytes())
        } else {
            IpAddr::from((rng.bits() as u32).to_be_bytes())
        },
        vlan: rng.bits() as u16,
        sgid_index: [[0, 15], [7, 8]][usize::from(v6)][rng.below(2) as usize],
        pkey_index: rng.below(8) as usize,
        hop_limit: rng.bits() as u8,
        traffic_class: rng.bits() as u8,
        flow_label: if rng.chance(0.5) {
            0
        } else {
            rng.bits() as u32 & 0xf_ffff
        },
    }
}

fn random_job(rng: &mut Stream, qp_idx: u16, opcode: u8) -> Job {
    Job {
        qp_idx,
        opcode,
        se: rng.chance(0.5),
        ack_req: rng.chance(0.5),
        psn: rng.bits() as u32 & 0xff_ffff,
        va: rng.bits(),
        rkey: rng.bits() as u32,
        dma_len: rng.bits() as u32,
        syndrome: [0x1f, 0x2c, 0x60, 0x61, 0x62, 0x63][rng.below(6) as usize],
        msn: rng.bits() as u32 & 0xff_ffff,
        imm: (rng.bits() as u32).to_le_bytes(),
        swap_add: rng.bits(),
        compare: rng.bits(),
    }
}

/// Splits a payload into pieces, of host memory and inline; with a `beat` of 0 none is inline.
fn random_pieces(rng: &mut Stream, mut len: usize, beat: usize) -> Vec<Piece> {
    let mut pieces = Vec::new();
    while len > 0 {
        if beat > 0 && rng.chance(0.3) {
            let n = (1 + rng.below(beat as u64) as usize).min(len);
            pieces.push(Piece::Inline((0..n).map(|_| rng.bits() as u8).collect()));
            len -= n;
        } else {
            let n = if rng.chance(0.5) {
                len
            } else {
                1 + rng.below(len as u64) as usize
            };
            pieces.push(Piece::Dma {
                addr: rng.bits() >> 8,
                len: n,
            });
            len -= n;
        }
    }
    pieces
}

fn dma(addr: u64, len: usize) -> Vec<Piece> {
    if len == 0 {
        Vec::new()
    } else {
        vec![Piece::Dma { addr, len }]
    }
}

fn bytes(pieces: &[Piece]) -> Vec<u8> {
    pieces.iter().flat_map(Piece::bytes).collect()
}

/// Which counter a job's frame belongs to.
fn counter(job: &Job) -> Counter {
    match (job.opcode, job.syndrome) {
        (0x0d..=0x10 | 0x12, _) => Counter::TxReadResponses,
        (0x11, 0x60) => Counter::TxNakPsnSeq,
        (0x11, 0x61) => Counter::TxNakInvReq,
        (0x11, 0x62) => Counter::TxNakRemAccess,
        (0x11, 0x63) => Counter::TxNakRemOp,
        (0x11, s) if s >> 5 == 1 => Counter::TxRnrNaks,
        (0x11, _) => Counter::TxAcks,
        _ => Counter::TxRequests,
    }
}

fn check_frame(got: &[u8], expected: &Roce, what: &str) {
    let expected = expected.emit();
    if got != expected {
        let at = got
            .iter()
            .zip(&expected)
            .position(|(a, b)| a != b)
            .unwrap_or(got.len().min(expected.len()));
        panic!("{what}: byte {at}\n got      {got:02x?}\n expected {expected:02x?}");
    }
}

#[test]
fn random_jobs_become_the_frames_that_the_library_writes_in_the_order_of_their_source() {
    let seed = seed();
    for width in WIDTHS {
        for (run, manners) in [Manners::PROMPT, Manners::MOODY].into_iter().enumerate() {
            let mut rng = Stream::new(seed, "jobs", run as u64);
            let mut bench = WireBench::new(width, &[], seed);
            bench.manners = manners;
            for idx in 0..8 {
                bench.add_peer(random_peer(&mut rng, idx));
            }
            let mut expected: [Vec<Roce>; 2] = Default::default();
            let mut counters = vec![0; 68];
            for i in 0..120 {
                let opcode = OPCODES[if i < OPCODES.len() {
                    i
                } else {
                    rng.below(OPCODES.len() as u64) as usize
                }];
                let info = opcode_info(opcode).unwrap();
                let source = usize::from(info.direction == Direction::Response);
                let qp = rng.below(8) as u16;
                let job = random_job(&mut rng, qp, opcode);
                let len = match info.payload {
                    PayloadRule::None => 0,
                    _ if rng.chance(0.1) => 4096,
                    _ => rng.below(200) as usize,
                };
                let pieces = random_pieces(&mut rng, len, if source == 0 { width / 8 } else { 0 });
                expected[source].push(bench.expected_frame(&job, &bytes(&pieces)));
                counters[counter(&job) as usize] += 1;
                counters[Counter::TxFrames as usize] += 1;
                bench.post(source, job, &pieces);
            }
            bench.run_until("all frames sent", 200_000, |b| b.done.iter().sum::<usize>() == 120);
            bench.run(50);
            assert_eq!(bench.sent.len(), 120);
            assert_eq!(bench.counters, counters);
            assert_eq!(
                bench.byte_counts[1],
                bench.sent.iter().map(|(f, ..)| f.len() as u64).sum::<u64>()
            );
            assert_eq!(bench.done, [expected[0].len(), expected[1].len()]);
            let mut next = [0, 0];
            for (frame, ..) in &bench.sent {
                let parsed = Roce::parse(frame).unwrap();
                let info = opcode_info(parsed.bth.opcode).unwrap();
                let source = usize::from(info.direction == Direction::Response);
                check_frame(
                    frame,
                    &expected[source][next[source]],
                    &format!("frame {} of source {source}", next[source]),
                );
                next[source] += 1;
            }
        }
    }
}

#[test]
fn every_payload_length_is_padded_and_sealed_with_and_without_a_tag() {
    for width in WIDTHS {
        let mut bench = WireBench::new(width, &[], 1);
        bench.add_peer(peer(1));
        bench.add_peer(Peer {
            vlan: 0xb123,
            ..peer(2)
        });
        bench.add_peer(peer_ipv6(3));
        bench.add_peer(Peer {
            vlan: 0xb123,
            ..peer_ipv6(4)
        });
        let mut expected = Vec::new();
        // Headers of 40, 44, 56 and 60 bytes, over IPv6 20 more.
        for opcode in [0x04, 0x05, 0x0a, 0x0b] {
            for len in 0..=2 * width / 8 + 2 {
                for idx in [1, 3, 2, 4] {
                    let job = Job {
                        qp_idx: idx,
                        opcode,
                        psn: len as u32,
                        ..Job::default()
                    };
                    let pieces = dma(len as u64 * 4099, len);
                    expected.push(bench.expected_frame(&job, &bytes(&pieces)));
                    bench.post(0, job, &pieces);
                }
            }
        }
        bench.run_until("all frames sent", 400_000, |b| b.done[0] == expected.len());
        for (i, (frame, ..)) in bench.sent.iter().enumerate() {
            check_frame(frame, &expected[i], &format!("frame {i} at {width} bits"));
        }
        assert_eq!(
            bench.sent[0].0.len(),
            58,
            "the shortest frame is not padded: the MAC does that"
        );
    }
}

#[test]
fn an_ipv6_header_says_what_the_address_vector_does() {
    for width in WIDTHS {
        let mut bench = WireBench::new(width, &[], 10);
        let mut peers = Vec::new();
        for bit in 0..20 {
            peers.push(Peer {
                flow_label: 1 << bit,
                traffic_class: 1 << (bit % 8),
                hop_limit: if bit == 9 { 0 } else { 1 << (bit % 8) },
                ..peer_ipv6(bit)
            });
        }
        for (bit, p) in peers.iter().enumerate() {
            bench.add_peer(*p);
            let job = Job {
                qp_idx: bit as u16,
                opcode: [0x04, 0x0a, 0x13][bit % 3],
                psn: bit as u32,
                ..Job::default()
            };
            bench.post(0, job, &[]);
        }
        bench.run_until("all frames sent", 20_000, |b| b.done[0] == peers.len());
        for ((frame, ..), p) in bench.sent.iter().zip(&peers) {
            let roce = Roce::parse(frame).unwrap();
            let Ip::V6(ip) = roce.ip else { panic!("{roce:?}") };
            assert_eq!(
                (ip.traffic_class, ip.flow_label, ip.hop_limit, ip.next_header),
                (p.traffic_class, p.flow_label, p.hop_limit, 17)
            );
            assert_eq!(
                (IpAddr::V6(ip.src), IpAddr::V6(ip.dst)),
                (bench.port.gids[7].unwrap(), p.dip)
            );
            assert_eq!(usize::from(ip.payload_len), frame.len() - 54);
            assert_eq!((roce.udp.length, roce.udp.checksum), (ip.payload_len, 0));
            assert!(roce.icrc_ok());
        }
    }
}

#[test]
fn from_an_empty_entry_of_the_gid_table_a_frame_comes_from_the_address_zero() {
    let mut bench = WireBench::new(64, &[], 11);
    for (idx, p) in [peer(1), peer_ipv6(2)].into_iter().enumerate() {
        bench.add_peer(Peer { sgid_index: 3, ..p });
        let job = Job {
            qp_idx: 1 + idx as u16,
            opcode: 0x04,
            ..Job::default()
        };
        bench.post(0, job, &[]);
    }
    bench.run_until("both sent", 2000, |b| b.done[0] == 2);
    let sources: Vec<IpAddr> = (bench.sent.iter())
        .map(|(f, ..)| match Roce::parse(f).unwrap().ip {
            Ip::V4(ip) => ip.src.into(),
            Ip::V6(ip) => ip.src.into(),
        })
        .collect();
    assert_eq!(sources, [IpAddr::from([0; 4]), IpAddr::from([0; 16])]);
}

#[test]
fn the_source_port_is_that_of_linux_at_both_ends() {
    let seed = seed();
    let mut rng = Stream::new(seed, "ports", 0);
    let mut bench = WireBench::new(64, &[], seed);
    let mut ports = Vec::new();
    for idx in 0..100 {
        let mut p = if idx % 2 == 0 { peer(idx) } else { peer_ipv6(idx) };
        p.generation = rng.bits() as u16;
        p.dest_qpn = rng.bits() as u32 & 0xff_ffff;
        if idx < 4 {
            p.flow_label = [1, 0x4000, 0xf_ffff, 0xf_c000][usize::from(idx)];
        }
        let local = u32::from(p.generation) << 8 | u32::from(idx);
        ports.push(source_port(p.flow_label, local, p.dest_qpn));
        assert_eq!(
            source_port(p.flow_label, p.dest_qpn, local),
            ports[usize::from(idx)],
            "the same at the other end"
        );
        bench.add_peer(p);
        bench.post(
            0,
            Job {
                qp_idx: idx,
                opcode: 0x04,
                ..Job::default()
            },
            &[],
        );
    }
    bench.run_until("all frames sent", 20_000, |b| b.done[0] == 100);
    let sent: Vec<u16> = bench
        .sent
        .iter()
        .map(|(f, ..)| Roce::parse(f).unwrap().udp.src_port)
        .collect();
    assert_eq!(sent, ports);
    let mut distinct = ports;
    distinct.sort_unstable();
    distinct.dedup();
    assert!(distinct.len() > 90, "they spread");
}

#[test]
fn a_job_whose_read_fails_is_not_sent_and_reported_in_its_turn() {
    for width in WIDTHS {
        for manners in [Manners::PROMPT, Manners::MOODY] {
            let mut bench = WireBench::new(width, &[], 2);
            bench.manners = manners;
            bench.add_peer(peer(1));
            bench.bad_reads = vec![(0x1000_0000..0x1000_1000, 1), (0x2000_0000..0x2000_1000, 3)];
            let mut expected = [Vec::new(), Vec::new()];
            let mut failures = [Vec::new(), Vec::new()];
            for psn in 0..60u32 {
                let source = usize::from(psn % 5 == 4);
                let opcode = if source == 0 { 0x0a } else { 0x10 };
                let job = Job {
                    qp_idx: 1,
                    opcode,
                    psn,
                    ..Job::default()
                };
                let mut pieces = vec![Piece::Dma {
                    addr: u64::from(psn) * 0x5000,
                    len: 1 + psn as usize * 13,
                }];
                if psn % 3 == 1 {
                    // In front of, between and behind good pieces; the first failure is the one that is told.
                    let bad = Piece::Dma {
                        addr: 0x1000_0010,
                        len: 77,
                    };
                    match psn % 9 / 3 {
                        0 => pieces.insert(0, bad),
                        1 => pieces.extend([
                            bad,
                            Piece::Dma {
                                addr: 0x2000_0000,
                                len: 300,
                            },
                        ]),
                        _ if source == 0 => pieces.extend([Piece::Inline(vec![1, 2, 3]), bad, Piece::Inline(vec![4])]),
                        _ => pieces.extend([
                            Piece::Dma { addr: 0x3003, len: 3 },
                            bad,
                            Piece::Dma { addr: 0x4001, len: 1 },
                        ]),
                    }
                    failures[source].push(TxFailure {
                        source,
                        qp_idx: 1,
                        psn,
                        err: 1,
                    });
                } else {
                    expected[source].push(bench.expected_frame(&job, &bytes(&pieces)));
                }
                bench.post(source, job, &pieces);
            }
            bench.run_until("all jobs done", 100_000, |b| b.done.iter().sum::<usize>() == 60);
            bench.run(50);
            for source in 0..2 {
                let told: Vec<_> = bench.failures.iter().copied().filter(|f| f.source == source).collect();
                assert_eq!(told, failures[source]);
                let is_source =
                    |f: &&(Vec<u8>, u64, u64)| (Roce::parse(&f.0).unwrap().bth.opcode == 0x10) == (source == 1);
                let sent: Vec<_> = bench.sent.iter().filter(is_source).collect();
                assert_eq!(sent.len(), expected[source].len());
                for (frame, expected) in sent.iter().zip(&expected[source]) {
                    check_frame(&frame.0, expected, "a job between failed ones");
                }
            }
            assert_eq!(bench.counter(Counter::TxFrames), 40);
        }
    }
}

#[test]
fn a_failure_is_told_after_the_frames_before_it_are_out() {
    let mut bench = WireBench::new(64, &[], 3);
    bench.add_peer(peer(1));
    bench.bad_reads = vec![(0..0x1000, 2)];
    bench.post(
        0,
        Job {
            qp_idx: 1,
            opcode: 0x0a,
            psn: 1,
            ..Job::default()
        },
        &dma(0x8000, 4000),
    );
    bench.post(
        0,
        Job {
            qp_idx: 1,
            opcode: 0x0a,
            psn: 2,
            ..Job::default()
        },
        &dma(0x10, 8),
    );
    bench.run_until("the failure", 5000, |b| !b.failures.is_empty());
    assert_eq!((bench.done[0], bench.sent.len()), (2, 1), "the first one is out");
    assert_eq!(bench.sent[0].0.len(), 14 + 56 + 4000 + 4);
}

#[test]
fn each_source_gets_its_share_of_the_wire_and_none_waits_for_the_other() {
    for width in WIDTHS {
        let mut bench = WireBench::new(width, &[], 4);
        bench.add_peer(peer(1));
        for psn in 0..100 {
            bench.post(
                0,
                Job {
                    qp_idx: 1,
                    opcode: 0x0a,
                    psn,
                    ..Job::default()
                },
                &dma(0x1000, 1024),
            );
            bench.post(
                1,
                Job {
                    qp_idx: 1,
                    opcode: 0x10,
                    psn,
                    ..Job::default()
                },
                &dma(0x9000, 1024),
            );
        }
        bench.run_until("both sent", 200_000, |b| b.done.iter().sum::<usize>() == 200);
        let responses: Vec<bool> = bench
            .sent
            .iter()
            .map(|(f, ..)| Roce::parse(f).unwrap().bth.opcode == 0x10)
            .collect();
        for window in responses[4..190].windows(8) {
            let n = window.iter().filter(|r| **r).count();
            assert!((2..=6).contains(&n), "{n} responses among 8 packets");
        }
        // A source whose reads are never answered holds nobody up.
        let mut bench = WireBench::new(width, &[], 5);
        bench.add_peer(peer(1));
        bench.manners = Manners {
            dma_latency: 1_000_000,
            ..Manners::PROMPT
        };
        for psn in 0..20 {
            bench.post(
                0,
                Job {
                    qp_idx: 1,
                    opcode: 0x0a,
                    psn,
                    ..Job::default()
                },
                &dma(0x1000, 1024),
            );
            bench.post(
                1,
                Job {
                    qp_idx: 1,
                    opcode: 0x11,
                    psn,
                    syndrome: 0x1f,
                    ..Job::default()
                },
                &[],
            );
        }
        bench.run_until("the acknowledgements sent", 2000, |b| b.done[1] == 20);
    }
}

#[test]
fn reads_of_several_jobs_are_under_way_at_once_but_never_more_than_the_buffer_holds() {
    for width in WIDTHS {
        let mut bench = WireBench::new(width, &SMALL, 6);
        bench.add_peer(peer(1));
        bench.manners = Manners {
            dma_latency: 3000,
            ..Manners::PROMPT
        };
        for psn in 0..8 {
            bench.post(
                0,
                Job {
                    qp_idx: 1,
                    opcode: 0x0a,
                    psn,
                    ..Job::default()
                },
                &dma(0x1000, 1024),
            );
        }
        bench.run(200);
        assert_eq!(bench.reads_seen[0].len(), 8, "all eight wait together");
        bench.run_until("all sent", 20_000, |b| b.done[0] == 8);
        // Payloads of 3000 bytes: two fit, the third waits for a frame to leave.
        for psn in 0..4 {
            bench.post(
                0,
                Job {
                    qp_idx: 1,
                    opcode: 0x0a,
                    psn,
                    ..Job::default()
                },
                &dma(0x1000, 3000),
            );
        }
        bench.run(200);
        assert_eq!(bench.reads_seen[0].len(), 8 + 2);
        bench.run_until("all sent", 20_000, |b| b.done[0] == 12);
    }
}

#[test]
fn frames_of_1024_bytes_follow_each_other_without_lost_cycles() {
    for width in WIDTHS {
        let mut bench = WireBench::new(width, &[], 7);
        bench.add_peer(peer(1));
        bench.manners = Manners {
            dma_latency: 100,
            ..Manners::PROMPT
        };
        for psn in 0..60 {
            bench.post(
                0,
                Job {
                    qp_idx: 1,
                    opcode: 0x07,
                    psn,
                    ..Job::default()
                },
                &dma(u64::from(psn) * 1024, 1024),
            );
        }
        bench.run_until("all sent", 60_000, |b| b.done[0] == 60);
        let (start, end) = (bench.sent[10].1, bench.sent[59].1);
        let per_frame = (end - start) as f64 / 49.0;
        let beats = bench.sent[10].0.len().div_ceil(width / 8) as f64;
        println!("{width} bits: {per_frame:.1} cycles per frame of {beats} beats");
        // The MAC makes the gap: at 512 bits gap and preamble are less than a beat.
        assert!(
            per_frame <= beats + 0.01,
            "{per_frame} cycles per frame of {beats} beats"
        );
    }
}

#[test]
fn pieces_at_odd_addresses_and_lengths_are_gathered_at_a_beat_a_cycle() {
    for width in WIDTHS {
        let mut bench = WireBench::new(width, &[], 8);
        bench.add_peer(peer(1));
        bench.manners.dma_latency = 20;
        let mut expected = Vec::new();
        for psn in 0..30 {
            // The first piece leaves the stream at an odd lane.
            let pieces = vec![
                Piece::Inline(vec![psn as u8; 1 + psn as usize % 7]),
                Piece::Dma {
                    addr: 0x1003 + u64::from(psn),
                    len: 2000,
                },
                Piece::Dma {
                    addr: 0x7771,
                    len: 1 + psn as usize,
                },
            ];
            let job = Job {
                qp_idx: 1,
                opcode: 0x08,
                psn,
                ..Job::default()
            };
            expected.push(bench.expected_frame(&job, &bytes(&pieces)));
            bench.post(0, job, &pieces);
        }
        bench.run_until("all sent", 60_000, |b| b.done[0] == 30);
        for ((frame, ..), expected) in bench.sent.iter().zip(&expected) {
            check_frame(frame, expected, "gathered");
        }
        let (start, end) = (bench.sent[8].1, bench.sent[29].1);
        let per_frame = (end - start) as f64 / 21.0;
        let beats = bench.sent[8].0.len().div_ceil(width / 8) as f64;
        println!("{width} bits: {per_frame:.1} cycles per frame of {beats} beats");
        assert!(
            per_frame <= beats + 6.0,
            "{per_frame} cycles per frame of {beats} beats"
        );
    }
}

#[test]
fn a_frame_waits_in_place_while_the_mac_is_not_ready() {
    for width in WIDTHS {
        let mut bench = WireBench::new(width, &[], 9);
        bench.add_peer(peer(1));
        bench.manners.mac_tx = 0.0;
        let job = Job {
            qp_idx: 1,
            opcode: 0x0a,
            psn: 1,
            ..Job::default()
        };
        for _ in 0..12 {
            bench.post(0, job, &dma(0x500, 700));
            bench.post(
                1,
                Job {
                    opcode: 0x11,
                    syndrome: 0x1f,
                    ..job
                },
                &[],
            );
        }
        bench.run(3000);
        assert_eq!((bench.sent.len(), bench.done), (0, [0, 0]));
        bench.manners.mac_tx = 1.0;
        bench.run_until("all sent", 10_000, |b| b.done == [12, 12]);
        let expected = bench.expected_frame(&job, &bytes(&dma(0x500, 700)));
        let writes: Vec<_> = bench.sent.iter().filter(|f| f.0.len() > 100).collect();
        assert_eq!(writes.len(), 12);
        writes
            .iter()
            .for_each(|f| check_frame(&f.0, &expected, "after the stall"));
    }
}
