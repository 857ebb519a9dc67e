// SPDX-License-Identifier: Apache-2.0
//! The captures of Linux Soft-RoCE: every frame is taken apart and put together again, and its ICRC is
//! judged by the RTL at 64 and 512 bits and by two libraries.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeMap;

use openrnic_sim::model::BlockModel;
use openrnic_testbench::wire::{Frame, ROCE_PORT, Roce, capture, icrc};

/// What one frame's ICRC is, by all who computed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Judged {
    ok: bool,
    right: u32,
}

/// Streams packets (IP header to ICRC) through both kinds of `rnic_icrc`, back to back. With `gap` set, every beat is
/// followed by that many empty cycles.
fn rtl_icrc(width: usize, packets: &[Vec<u8>], gap: usize) -> Vec<Judged> {
    let bytes = width / 8;
    let mut builder = BlockModel::builder("icrc_top")
        .source("testbench/tops/icrc_top.sv")
        .param("DataW", width);
    // Features can be cut out to see a test turn red.
    if let Ok(cut) = std::env::var("OPENRNIC_CUT") {
        builder = builder.define(&cut);
    }
    let mut dut = builder.build().unwrap();
    dut.reset(2);
    // Each side's stream of beats; the side that makes the ICRC does not get to see it.
    let beats = |with_icrc: bool| -> Vec<(bool, bool, Vec<u8>)> {
        let mut beats = Vec::new();
        for packet in packets {
            let covered = if with_icrc {
                &packet[..]
            } else {
                &packet[..packet.len() - 4]
            };
            let chunks: Vec<_> = covered.chunks(bytes).collect();
            for (i, chunk) in chunks.iter().enumerate() {
                beats.push((i == 0, i + 1 == chunks.len(), chunk.to_vec()));
            }
        }
        beats
    };
    let (check, make) = (beats(true), beats(false));
    let (mut ok, mut right) = (Vec::new(), Vec::new());
    let cycles = check.len().max(make.len()) * (gap + 1) + 20;
    for cycle in 0..cycles {
        for (side, beats) in [("check", &check), ("make", &make)] {
            let beat = if cycle % (gap + 1) == 0 {
                beats.get(cycle / (gap + 1))
            } else {
                None
            };
            dut.set(&format!("{side}_valid_i"), u64::from(beat.is_some()));
            if let Some((first, last, data)) = beat {
                dut.set(&format!("{side}_first_i"), u64::from(*first));
                dut.set(&format!("{side}_last_i"), u64::from(*last));
                dut.set(&format!("{side}_cnt_i"), data.len() as u64);
                // What stands above the end must not matter.
                let mut lanes = data.clone();
                lanes.resize(bytes, 0xa5);
                let words: Vec<u32> = lanes
                    .chunks(4)
                    .map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]]))
                    .collect();
                dut.set_wide(&format!("{side}_data_i"), &words);
            }
        }
        dut.clock();
        if dut.get("check_valid_o") == 1 {
            ok.push(dut.get("check_ok_o") == 1);
        }
        if dut.get("make_valid_o") == 1 {
            right.push(dut.get("make_crc_o") as u32);
        }
    }
    assert_eq!(
        (ok.len(), right.len()),
        (packets.len(), packets.len()),
        "a result per packet at {width} bits"
    );
    ok.into_iter()
        .zip(right)
        .map(|(ok, right)| Judged { ok, right })
        .collect()
}

/// IP header to ICRC.
fn packet_of(roce: &Roce) -> Vec<u8> {
    let mut bytes = roce.covered();
    bytes.extend(roce.icrc.to_le_bytes());
    bytes
}

/// By both libraries.
fn judged(roce: &Roce) -> Judged {
    let (fast, slow) = (icrc::fast(&roce.covered()), icrc::slow(&roce.covered()));
    assert_eq!(fast, slow, "the two libraries agree");
    Judged {
        ok: roce.icrc == fast,
        right: fast,
    }
}

#[test]
fn every_frame_of_every_capture_round_trips_and_its_icrc_is_judged_alike_by_rtl_and_libraries() {
    let mut counts = BTreeMap::new();
    let mut opaque = BTreeMap::new();
    let mut bad = Vec::new();
    let mut all = Vec::new();
    for path in capture::files().unwrap() {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        for bytes in capture::frames(&path).unwrap() {
            let frame = Frame::parse(&bytes);
            assert_eq!(frame.emit(), bytes, "{name}: emitted as it was");
            match frame {
                Frame::Roce(roce) => {
                    assert_eq!(roce.udp.dst_port, ROCE_PORT);
                    if !judged(&roce).ok {
                        bad.push(name.clone());
                    }
                    *counts.entry(name.clone()).or_insert(0) += 1;
                    all.push(*roce);
                }
                Frame::Opaque(_, why) => *opaque.entry(format!("{name}: {why}")).or_insert(0) += 1,
            }
        }
    }
    println!(
        "{} RoCEv2 frames in {} captures; opaque: {opaque:?}",
        all.len(),
        counts.len()
    );
    // One frame in each of these two was sent with a wrong ICRC on purpose.
    assert_eq!(bad, ["ext_req_v4", "ext_req_v6"]);

    // The list that came with the captures: none is missing, none is counted as opaque.
    let readme = std::fs::read_to_string(capture::directory().join("README.md")).unwrap();
    let mut listed = BTreeMap::new();
    for line in readme.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        if let [file, count, "RoCE", "icrc", "bad", ..] = words[..] {
            listed.insert(file.trim_end_matches(".pcap").to_owned(), count.parse::<i32>().unwrap());
        }
    }
    assert_eq!(counts, listed);

    let packets: Vec<_> = all.iter().map(packet_of).collect();
    let expected: Vec<_> = all.iter().map(judged).collect();
    for width in [64, 512] {
        assert_eq!(rtl_icrc(width, &packets, 0), expected, "{width} bits");
    }
}

/// IP header to ICRC of a SEND_ONLY, over IPv4 and over IPv6 (as scapy builds them).
const VECTORS: [&str; 2] = [
    "45020034123440004011a52fc0a80101c0a80102c12312b700206a820440ffff000000118012345668656c6c6f212121ae7871b6",
    "6021234500201140fe800000000000000000000000000001fe800000000000000000000000000002c12312b700209a8b0440ffff00000011\
     8012345668656c6c6f2121210ebf67b6",
];

fn vector(n: usize) -> Vec<u8> {
    let digits = VECTORS[n].as_bytes();
    digits
        .chunks(2)
        .map(|p| u8::from_str_radix(std::str::from_utf8(p).unwrap(), 16).unwrap())
        .collect()
}

#[test]
fn the_icrc_of_the_two_known_packets_is_theirs() {
    for n in 0..2 {
        let packet = vector(n);
        let (covered, check) = packet.split_at(packet.len() - 4);
        let stored = u32::from_le_bytes([check[0], check[1], check[2], check[3]]);
        assert_eq!((icrc::fast(covered), icrc::slow(covered)), (stored, stored));
        for width in [64, 128, 256, 512] {
            assert_eq!(
                rtl_icrc(width, std::slice::from_ref(&packet), 0),
                [Judged {
                    ok: true,
                    right: stored
                }]
            );
            assert_eq!(
                rtl_icrc(width, std::slice::from_ref(&packet), 2),
                [Judged {
                    ok: true,
                    right: stored
                }]
            );
        }
    }
}

#[test]
fn a_field_that_routers_change_does_not_change_the_icrc_and_every_other_bit_does() {
    for n in 0..2 {
        let packet = vector(n);
        let ip = if n == 0 { 20 } else { 40 };
        let mut expected = Vec::new();
        let mut packets = Vec::new();
        for bit in 0..packet.len() * 8 {
            let mut changed = packet.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            // The version decides where the fields are.
            if bit / 8 == 0 && bit % 8 >= 4 {
                continue;
            }
            let free: &[usize] = if n == 0 { &[1, 8, 10, 11] } else { &[1, 2, 3, 7] };
            let byte = bit / 8;
            let masked =
                free.contains(&byte) || n == 1 && byte == 0 || [ip + 6, ip + 7].contains(&byte) || byte == ip + 8 + 4;
            expected.push(masked);
            packets.push(changed);
        }
        for width in [64, 512] {
            let got: Vec<_> = rtl_icrc(width, &packets, 0).iter().map(|j| j.ok).collect();
            assert_eq!(got, expected, "vector {n}, {width} bits");
        }
    }
}

#[test]
fn a_packet_of_every_tail_length_gets_its_icrc_at_every_width() {
    // A new packet begins after one that never ended, too.
    let mut packets = Vec::new();
    for words in 0..40u8 {
        let mut packet = vector(usize::from(words & 1));
        packet.truncate(packet.len() - 4);
        packet.extend((0..4 * words).map(|i| i.wrapping_mul(37) ^ words));
        let check = icrc::slow(&packet);
        packet.extend(check.to_le_bytes());
        packets.push(packet);
    }
    for width in [64, 128, 256, 512] {
        for (packet, judged) in packets.iter().zip(rtl_icrc(width, &packets, 0)) {
            let right = icrc::fast(&packet[..packet.len() - 4]);
            assert_eq!(
                judged,
                Judged { ok: true, right },
                "{} bytes at {width} bits",
                packet.len()
            );
        }
    }
}

#[test]
fn the_committed_crc_masks_are_what_their_generator_writes() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let status = std::process::Command::new("python3")
        .arg("scripts/gen_crc_masks.py")
        .arg("--check")
        .current_dir(root)
        .status();
    assert!(
        status.unwrap().success(),
        "rtl/gen/rnic_crc_pkg.sv is stale: run scripts/gen_crc_masks.py"
    );
}
