// SPDX-License-Identifier: Apache-2.0
//! The loopback image of both boards from pin to pin: PLL, reset, PHY over MDIO, RGMII at both edges, MAC, mirror, LEDs; and the line of numbers that it
//! tells.
#![allow(clippy::unwrap_used)]

use openrnic_sim::model::BlockModel;
use openrnic_sim::rng::Stream;
use openrnic_testbench::board_bench::{Board, SYS};
use openrnic_testbench::mac_bench::{Symbol, wire_frame, with_fcs};

/// `LoopMac` of `rnic_board`.
const OURS: [u8; 6] = [0x02, 0x52, 0x4e, 0x52, 0x00, 0x01];
const HOST: [u8; 6] = [0x02, 0, 0, 0, 0, 0x10];

fn frame(dst: [u8; 6], src: [u8; 6], len: usize) -> Vec<u8> {
    let mut f = [&dst[..], &src[..]].concat();
    f.extend((0..len - 12).map(|i| (i * 7 + len) as u8));
    f
}

fn frames_come_back(board: u32) {
    let mut b = Board::loopback(board);
    b.until("the PHY answers", 170_000 * SYS, |b| b.dut.get("up_o") == 1);
    assert_eq!(b.dut.get("link_o"), 0);
    // Nothing passes without a link.
    b.arrive(&frame(OURS, HOST, 100));
    b.run(20_000);
    b.phy.link(true, true);
    b.until("link", 60_000 * SYS, |b| b.dut.get("link_o") == 1);
    assert!(b.sent.is_empty());
    let settings = b.phy.log.iter().filter(|l| l.0).count();
    assert_eq!(settings, [4, 0][board as usize], "settings written");
    let mut expected = Vec::new();
    for len in [60, 61, 62, 63, 64, 65, 66, 67, 68, 1514] {
        b.arrive(&frame(OURS, HOST, len));
        let mut back = frame(HOST, OURS, len);
        back[12..].copy_from_slice(&frame(OURS, HOST, len)[12..]);
        expected.push(back);
        if len > 64 {
            continue;
        }
        // For others, for all, from a group, from ourselves, broken: not looped.
        b.arrive(&frame(HOST, HOST, len));
        b.arrive(&frame([0xff; 6], HOST, len));
        b.arrive(&frame(OURS, [0x03, 0, 0, 0, 0, 1], len));
        b.arrive(&frame(OURS, OURS, len));
        let mut bad = with_fcs(&frame(OURS, HOST, len));
        bad[30] ^= 4;
        b.line.extend(wire_frame(&bad));
        b.line.extend([Symbol::default(); 12]);
    }
    b.until("all arrived", 2_000_000, |b| b.line.is_empty());
    b.run(60_000);
    assert_eq!((b.dut.get("activity_o"), b.dut.get("error_o")), (1, 1));
    assert_eq!(b.sent.len(), expected.len());
    for (got, want) in b.sent.iter().zip(&expected) {
        assert_eq!(got[8..], with_fcs(want), "{} bytes", want.len());
    }
    // A link of another speed: nothing passes any more.
    b.phy.link(true, false);
    b.until("link goes", 60_000 * SYS, |b| b.dut.get("link_o") == 0);
    b.arrive(&frame(OURS, HOST, 100));
    b.run(30_000);
    assert_eq!(b.sent.len(), expected.len());
}

#[test]
fn frames_come_back_with_addresses_swapped_on_the_versa5g() {
    frames_come_back(0);
}

#[test]
fn frames_come_back_with_addresses_swapped_on_the_ecpix5() {
    frames_come_back(1);
}

#[test]
fn the_mirror_drops_whole_what_it_has_no_room_for() {
    let mut dut = BlockModel::builder("rnic_loopback")
        .param("Depth", 64)
        .random_init(5)
        .build()
        .unwrap();
    let mut rng = Stream::new(5, "mirror", 0);
    let mac = OURS.iter().rev().fold(0u64, |v, b| v << 8 | u64::from(*b));
    dut.set("mac_i", mac);
    dut.reset(3);
    let (mut expected, mut back) = (Vec::new(), Vec::new());
    let (mut frame_in, mut at, mut getting): (Vec<u8>, usize, Vec<u8>) = (Vec::new(), 0, Vec::new());
    let mut sent = 0;
    for cycle in 0..40_000 {
        // First everything is taken, then little, then nothing new comes.
        let take = rng.chance([1.0, 0.3, 1.0][cycle / 14_000]);
        if at >= frame_in.len() && cycle < 38_000 && rng.chance(0.8) {
            frame_in = frame(OURS, HOST, 60 + rng.below(300) as usize);
            sent += 1;
            frame_in[20..24].copy_from_slice(&u32::to_be_bytes(sent));
            at = 0;
            let mut mirrored = frame_in.clone();
            mirrored[..6].copy_from_slice(&HOST);
            mirrored[6..12].copy_from_slice(&OURS);
            expected.push(mirrored);
        }
        let offer = at < frame_in.len();
        dut.set("in_valid_i", u64::from(offer));
        if offer {
            let beat = &frame_in[at..frame_in.len().min(at + 8)];
            let mut word = [0x5a; 8];
            word[..beat.len()].copy_from_slice(beat);
            dut.set("in_data_i", u64::from_le_bytes(word));
            dut.set("in_keep_i", (1 << beat.len()) - 1);
            dut.set("in_last_i", u64::from(at + 8 >= frame_in.len()));
            at += 8;
        }
        dut.set("out_ready_i", u64::from(take));
        dut.eval();
        if take && dut.get("out_valid_o") == 1 {
            let count = dut.get("out_keep_o").trailing_ones() as usize;
            getting.extend(&dut.get("out_data_o").to_le_bytes()[..count]);
            if dut.get("out_last_o") == 1 {
                back.push(std::mem::take(&mut getting));
            }
        }
        dut.clock();
    }
    let mut rest = expected.iter();
    assert!(back.iter().all(|b| rest.any(|f| f == b)), "in order and whole");
    assert_eq!(dut.get("looped_o"), back.len() as u64);
    assert_eq!(dut.get("looped_o") + dut.get("dropped_o"), expected.len() as u64);
    assert!(dut.get("dropped_o") > 50, "there was something to drop");
}

#[test]
fn a_line_of_hexadecimal_words_is_told_again_and_again() {
    let mut dut = BlockModel::builder("rnic_report")
        .param("NumWord", 3)
        .param("Div", 4)
        .param("Period", 1000)
        .build()
        .unwrap();
    dut.reset(3);
    dut.set("words_i", 0x0123_abcd_f00f);
    let mut line = Vec::new();
    for _ in 0..3950 {
        dut.clock();
        line.push(dut.get("tx_o") == 1);
    }
    // Bytes of the serial line, 4 cycles a bit.
    let (mut at, mut text) = (0, String::new());
    while at + 40 < line.len() {
        if line[at] {
            at += 1;
            continue;
        }
        let byte = (0..8).fold(0u8, |b, i| b | u8::from(line[at + 6 + 4 * i]) << i);
        assert!(line[at + 38], "stop bit");
        text.push(byte as char);
        at += 39;
    }
    assert_eq!(text, "0123 abcd f00f\r\n".repeat(3));
}
