// SPDX-License-Identifier: Apache-2.0
//! The wire between scripted devices.

#![allow(clippy::unwrap_used, clippy::expect_used)] // a test may

mod common;

use std::collections::BTreeMap;

use common::{Handle, world};
use openrnic_sim::wire::{Action, FRAME_OVERHEAD, FaultRates, Rule, TapPoints, WireParams};
use openrnic_sim::{Misdeed, SimError, World, WorldParams};
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::{Block, PcapNgReader};

const WAKE: u64 = 100;

/// Two awake NICs.
fn pair(wire: WireParams, seed: u64) -> (World, Vec<Handle>) {
    let (mut world, scripts) = world(&WorldParams {
        seed,
        wire,
        ..WorldParams::default()
    });
    world.run(WAKE).unwrap();
    (world, scripts)
}

/// A frame that carries its number.
fn frame(number: u32, bytes: usize) -> Vec<u8> {
    let mut f = vec![0x5a; bytes];
    f[..12].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]);
    f[12..14].copy_from_slice(&[0x88, 0xb5]);
    f[14..18].copy_from_slice(&number.to_be_bytes());
    f
}

fn number(frame: &[u8]) -> u32 {
    u32::from_be_bytes(frame[14..18].try_into().unwrap())
}

fn drain(world: &mut World) {
    world
        .run_until("the wire to be idle", 10_000_000, |w| w.is_idle())
        .unwrap();
}

fn send_many(world: &mut World, from: &Handle, count: u32, bytes: usize) {
    for i in 0..count {
        from.borrow_mut().send(&frame(i, bytes));
    }
    let beats = bytes.div_ceil(8) as u64 + 8;
    world.run(u64::from(count) * beats).unwrap();
    drain(world);
}

#[test]
fn a_frame_arrives_after_the_latency_and_frames_keep_their_gap() {
    let (mut world, nics) = pair(
        WireParams {
            latency_ns: 800,
            ..WireParams::default()
        },
        1,
    );
    let start = world.cycle();
    for i in 0..3 {
        nics[0].borrow_mut().send(&frame(i, 128));
    }
    world.run(400).unwrap();
    let got = nics[1].borrow().frames.clone();
    assert_eq!(got.iter().map(|(_, f, _)| number(f)).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(got[0].1, frame(0, 128));
    // 16 beats to send, 100 cycles of latency, 16 beats to receive.
    assert_eq!(got[0].0 - start, 15 + 1 + 100 + 15);
    let period = (128 + FRAME_OVERHEAD as u64) / 8;
    assert_eq!([got[1].0 - got[0].0, got[2].0 - got[1].0], [period; 2]);
    assert!(nics[0].borrow().frames.is_empty());
}

#[test]
fn the_line_rate_bounds_both_directions_at_any_width() {
    for (width, gbps) in [(64, 1.0), (64, 8.0), (512, 100.0), (512, 25.0)] {
        let mut params = WorldParams::default();
        params.nic.data_width = width;
        params.wire.rate_gbps = Some(gbps);
        let (mut world, nics) = world(&params);
        world.run(WAKE).unwrap();
        for nic in &nics {
            for i in 0..50 {
                nic.borrow_mut().send(&frame(i, 1000));
            }
        }
        drain(&mut world);
        world
            .run_until("all frames", 1_000_000, |w| {
                w.is_idle() && nics[0].borrow().tx.is_empty()
            })
            .unwrap();
        drain(&mut world);
        for nic in &nics {
            let got = nic.borrow().frames.clone();
            assert_eq!(got.len(), 50);
            let cycles = got[49].0 - got[0].0;
            let seconds = cycles as f64 * world.clk_period_ps() as f64 * 1e-12;
            let rate = 49.0 * (1000 + FRAME_OVERHEAD) as f64 * 8.0 / seconds / 1e9;
            assert!(
                (rate / gbps - 1.0).abs() < 0.02,
                "{width} bits: {rate} of {gbps} Gbit/s"
            );
        }
    }
    for rate in [0.0, 8.1, -1.0, f64::NAN] {
        let params = WorldParams {
            wire: WireParams {
                rate_gbps: Some(rate),
                ..WireParams::default()
            },
            ..WorldParams::default()
        };
        let error = World::with_devices(&params, Vec::new()).err().unwrap();
        assert!(matches!(error, SimError::Params { .. }), "{rate}");
    }
}

#[test]
fn losses_come_at_their_rate_and_repeat_by_seed() {
    let run = |seed, loss| {
        let wire = WireParams {
            faults: FaultRates {
                loss,
                ..FaultRates::default()
            },
            ..WireParams::default()
        };
        let (mut world, nics) = pair(wire, seed);
        send_many(&mut world, &nics[0], 2000, 60);
        let stats = world.wire().stats(0);
        let got: Vec<u32> = nics[1].borrow().frames.iter().map(|(_, f, _)| number(f)).collect();
        assert_eq!(stats.sent, 2000);
        assert_eq!(got.len() as u64, 2000 - stats.dropped);
        assert!(got.is_sorted());
        got
    };
    let lost = 2000 - run(1, 0.1).len();
    assert!((150..250).contains(&lost), "{lost}");
    assert_eq!(run(1, 0.1), run(1, 0.1));
    assert_ne!(run(1, 0.1), run(2, 0.1));
    assert_eq!(run(1, 0.0).len(), 2000);
    assert_eq!(run(1, 1.0).len(), 0);
    // A higher rate loses what the lower one lost, and more: rates do not shift each other's draws.
    let (few, many) = (run(3, 0.05), run(3, 0.2));
    assert!(many.iter().all(|n| few.contains(n)));
}

#[test]
fn every_fault_comes_at_its_rate() {
    let rates = FaultRates {
        duplicate: 0.1,
        reorder: 0.1,
        reorder_ns: 3000,
        corrupt: 0.1,
        mac_error: 0.05,
        ..FaultRates::default()
    };
    let wire = WireParams {
        faults: rates,
        ..WireParams::default()
    };
    let (mut world, nics) = pair(wire, 5);
    send_many(&mut world, &nics[0], 2000, 80);
    let stats = world.wire().stats(0);
    for (what, count, rate) in [
        ("duplicated", stats.duplicated, 0.1),
        ("delayed", stats.delayed, 0.1),
        ("changed", stats.changed, 0.145),
        ("mac_errors", stats.mac_errors, 0.05),
    ] {
        let wanted = 2000.0 * rate;
        assert!(
            (count as f64 - wanted).abs() < wanted * 0.3,
            "{what}: {count} for {wanted}"
        );
    }
    let frames = nics[1].borrow().frames.clone();
    assert_eq!(frames.len() as u64, 2000 + stats.duplicated);
    assert_eq!(world.wire().stats(1).received, frames.len() as u64);
    let mut flipped = 0;
    let mut flagged = 0;
    for (_, f, error) in &frames {
        let best = (0..2000)
            .map(|i| frame(i, 80))
            .map(|w| differing_bits(&w, f))
            .min()
            .unwrap();
        assert!(best <= 2, "{best} bits differ");
        flipped += usize::from(best > 0);
        flagged += usize::from(*error);
    }
    assert!(flipped > 200 && flagged > 60, "{flipped} {flagged}");
    let order: Vec<u32> = frames
        .iter()
        .filter(|(_, f, _)| f[20..] == frame(0, 80)[20..])
        .map(|(_, f, _)| number(f))
        .collect();
    assert!(!order.is_sorted(), "held back frames are passed");
}

fn differing_bits(a: &[u8], b: &[u8]) -> u32 {
    a.iter().zip(b).map(|(x, y)| (x ^ y).count_ones()).sum()
}

#[test]
fn only_frames_that_may_be_marked_are_marked() {
    let ip = |ecn: u8, n: u32| {
        let mut f = frame(n, 64);
        f[12..14].copy_from_slice(&[8, 0]);
        f[14] = 0x45;
        f[15] = ecn;
        f
    };
    let wire = WireParams {
        faults: FaultRates {
            congestion: 1.0,
            ..FaultRates::default()
        },
        ..WireParams::default()
    };
    let (mut world, nics) = pair(wire, 1);
    for ecn in [0, 1, 2, 3] {
        nics[0].borrow_mut().send(&ip(ecn, 0));
    }
    nics[0].borrow_mut().send(&frame(9, 64));
    world.run(200).unwrap();
    drain(&mut world);
    assert_eq!(world.wire().stats(0).marked, 2);
    let seen: Vec<u8> = nics[1]
        .borrow()
        .frames
        .iter()
        .take(4)
        .map(|(_, f, _)| f[15] & 3)
        .collect();
    assert_eq!(seen, [0, 3, 3, 3]);
    assert_eq!(nics[1].borrow().frames[4].1, frame(9, 64));
}

#[test]
fn rules_hit_the_frames_they_name() {
    let (mut world, nics) = pair(WireParams::default(), 1);
    let is = |n: u32| move |f: &[u8]| number(f) == n;
    let wire = world.wire();
    let third = wire.add_rule(Rule::nth(2, 0, Action::Drop, |f| number(f) >= 10));
    let twice = wire.add_rule(Rule::once(0, Action::Duplicate, is(1)));
    let late = wire.add_rule(Rule::once(0, Action::Delay(2000), is(2)));
    let bit = wire.add_rule(Rule::once(0, Action::FlipBit(20 * 8 + 3), is(3)));
    wire.add_rule(Rule::once(0, Action::Edit(Box::new(|f| f.truncate(30))), is(4)));
    wire.add_rule(Rule::once(0, Action::MacError, is(5)));
    let other = wire.add_rule(Rule::once(1, Action::Drop, is(0)));
    let all = wire.add_rule(Rule {
        from: None,
        matches: Box::new(|f| number(f) >= 20),
        skip: 1,
        times: u64::MAX,
        action: Action::Drop,
    });
    send_many(&mut world, &nics[0], 24, 64);
    let got = nics[1].borrow().frames.clone();
    let mut count: BTreeMap<u32, usize> = BTreeMap::new();
    got.iter()
        .for_each(|(_, f, _)| *count.entry(number(f)).or_default() += 1);
    let missing: Vec<u32> = (0..24).filter(|n| !count.contains_key(n)).collect();
    assert_eq!(missing, [12, 21, 22, 23]);
    assert_eq!((count[&1], count[&2]), (2, 1));
    let find = |n| got.iter().find(|(_, f, _)| number(f) == n).unwrap().clone();
    assert!(find(2).0 > find(19).0);
    assert_eq!(find(3).1[20], 0x5a ^ 8);
    assert_eq!(find(4).1.len(), 30);
    assert!(find(5).2 && !find(6).2);
    let wire = world.wire();
    assert_eq!(
        [third, twice, late, bit, other, all].map(|id| wire.rule_hits(id)),
        [1, 1, 1, 1, 0, 3]
    );
    assert_eq!(wire.stats(0).dropped, 4);
}

#[test]
fn short_frames_are_filled_up_and_injected_ones_come_as_they_are() {
    let (mut world, nics) = pair(WireParams::default(), 1);
    nics[0].borrow_mut().send(&frame(1, 20));
    world.inject(1, &[7; 3]).unwrap();
    let now = world.cycle();
    world.wire().inject(now, 1, &frame(2, 100), true, 50).unwrap();
    world.run(200).unwrap();
    let got = nics[1].borrow().frames.clone();
    assert_eq!((got[0].1.as_slice(), got[0].2), (&[7u8; 3][..], false));
    assert_eq!(
        (
            got[1].1.len(),
            number(&got[1].1),
            got[1].1[20..].iter().all(|b| *b == 0)
        ),
        (60, 1, true)
    );
    assert_eq!((got[2].1.as_slice(), got[2].2), (frame(2, 100).as_slice(), true));
    assert_eq!(world.wire().stats(1).injected, 2);
    assert!(
        world.inject(1, &[]).is_err() && world.inject(1, &[0; 10_000]).is_err() && world.inject(2, &[0; 64]).is_err()
    );
}

#[test]
fn a_link_that_is_down_carries_nothing_and_the_nic_sees_it() {
    let (mut world, nics) = pair(WireParams::default(), 1);
    world.wire().set_link(1, false).unwrap();
    world.run(2).unwrap();
    assert!(nics[0].borrow().port_up && !nics[1].borrow().port_up);
    nics[0].borrow_mut().send(&frame(1, 64));
    nics[1].borrow_mut().send(&frame(2, 64));
    world.run(100).unwrap();
    drain(&mut world);
    assert!(nics.iter().all(|n| n.borrow().frames.is_empty()));
    assert_eq!((world.wire().stats(0).dropped, world.wire().stats(1).dropped), (1, 1));
    world.wire().set_link(1, true).unwrap();
    nics[0].borrow_mut().send(&frame(3, 64));
    world.run(100).unwrap();
    drain(&mut world);
    assert_eq!(nics[1].borrow().frames.len(), 1);
    assert!(world.wire().set_link(5, true).is_err());
}

#[test]
fn three_nics_are_joined_by_a_switch_that_learns() {
    let (mut world, nics) = world(&WorldParams {
        nics: 3,
        ..WorldParams::default()
    });
    world.run(WAKE).unwrap();
    let mac = |n: u8| [2, 0, 0, 0, 0, n];
    let mut say = |from: usize, to: [u8; 6]| {
        let mut f = frame(from as u32, 64);
        f[..6].copy_from_slice(&to);
        f[6..12].copy_from_slice(&mac(from as u8));
        nics[from].borrow_mut().send(&f);
        world.run(100).unwrap();
        let counts: Vec<usize> = nics.iter().map(|n| n.borrow_mut().frames.drain(..).count()).collect();
        counts
    };
    assert_eq!(say(0, mac(2)), [0, 1, 1], "unknown: to all others");
    assert_eq!(say(2, mac(0)), [1, 0, 0]);
    assert_eq!(say(0, mac(2)), [0, 0, 1], "learned");
    assert_eq!(say(1, [0xff; 6]), [1, 0, 1], "broadcast");
    assert_eq!(say(1, mac(1)), [0, 0, 0], "to oneself");
}

#[test]
fn frames_with_gaps_holes_or_wrong_lengths_are_told() {
    let tolerant = || {
        let (mut world, nics) = world(&WorldParams {
            stop_on_violation: false,
            ..WorldParams::default()
        });
        world.run(WAKE).unwrap();
        (world, nics)
    };
    let told = |world: &mut World| {
        world.run(3000).unwrap();
        world.take_violations().into_iter().map(|v| v.what).collect::<Vec<_>>()
    };
    let (mut world, nics) = tolerant();
    nics[0]
        .borrow_mut()
        .tx
        .extend([Some((vec![0; 8], false)), None, Some((vec![0; 8], true))]);
    let found = told(&mut world);
    assert!(matches!(found[0], Misdeed::FrameGap { bytes: 8 }), "{found:?}");
    let (mut world, nics) = tolerant();
    nics[0].borrow_mut().send(&[0; 13]);
    nics[0].borrow_mut().send(&[0; 9300]);
    assert_eq!(
        told(&mut world),
        [
            Misdeed::FrameLength { bytes: 13, max: 9216 },
            Misdeed::FrameLength { bytes: 9224, max: 9216 }
        ]
    );
    let (mut world, nics) = tolerant();
    nics[0].borrow_mut().bad_keep = true;
    nics[0].borrow_mut().send(&[0; 64]);
    assert!(matches!(told(&mut world)[0], Misdeed::FrameKeep { bytes: 0 }));
    assert!(nics[1].borrow().frames.is_empty());
}

#[test]
fn a_reset_cuts_off_what_is_under_way() {
    let (mut world, nics) = pair(WireParams::default(), 1);
    nics[0].borrow_mut().send(&frame(1, 1000));
    nics[1].borrow_mut().send(&frame(2, 200));
    world.run(10).unwrap();
    world
        .config_write(0, openrnic_sim::pcie::regs::DEVICE_CONTROL, 0x8000)
        .unwrap();
    world.run(300).unwrap();
    assert!(nics.iter().all(|n| n.borrow().frames.is_empty()));
    nics[0].borrow_mut().send(&frame(3, 100));
    world.run(100).unwrap();
    assert_eq!(nics[1].borrow().frames[0].1, frame(3, 100));
}

struct Captured {
    interface: u32,
    ns: u64,
    flags: u32,
    comment: String,
    data: Vec<u8>,
}

fn read_capture(path: &std::path::Path) -> Vec<Captured> {
    let bytes = std::fs::read(path).unwrap();
    let mut reader = PcapNgReader::new(bytes.as_slice()).unwrap();
    let mut packets = Vec::new();
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(p) = block.unwrap() {
            let mut captured = Captured {
                interface: p.interface_id,
                ns: p.timestamp.as_nanos() as u64,
                flags: 0,
                comment: String::new(),
                data: p.data.to_vec(),
            };
            for option in &p.options {
                match option {
                    EnhancedPacketOption::Flags(flags) => captured.flags = *flags,
                    EnhancedPacketOption::Comment(text) => captured.comment = text.to_string(),
                    other => panic!("{other:?}"),
                }
            }
            packets.push(captured);
        }
    }
    packets
}

#[test]
fn the_capture_holds_every_frame_at_both_ends_and_says_what_the_wire_did() {
    let path = std::env::temp_dir().join(format!("onr-wire-{}.pcapng", std::process::id()));
    for points in [TapPoints::BothEnds, TapPoints::Senders] {
        let rates = FaultRates {
            loss: 0.2,
            duplicate: 0.1,
            corrupt: 0.1,
            ..FaultRates::default()
        };
        let params = WorldParams {
            capture: Some(path.clone()),
            capture_points: points,
            wire: WireParams {
                faults: rates,
                ..WireParams::default()
            },
            ..WorldParams::default()
        };
        let (mut world, nics) = world(&params);
        world.run(WAKE).unwrap();
        send_many(&mut world, &nics[0], 100, 64);
        send_many(&mut world, &nics[1], 50, 200);
        world.inject(0, &frame(99, 64)).unwrap();
        world.run(100).unwrap();
        world.flush().unwrap();
        let (a, b) = (world.wire().stats(0), world.wire().stats(1));
        let packets = read_capture(&path);
        let count = |interface, flags| {
            packets
                .iter()
                .filter(|p| (p.interface, p.flags) == (interface, flags))
                .count() as u64
        };
        let (at_a, at_b) = if points == TapPoints::BothEnds {
            (a.received, b.received)
        } else {
            (1, 0)
        };
        assert_eq!(
            [count(0, 2), count(1, 2), count(0, 1), count(1, 1)],
            [a.sent, b.sent, at_a, at_b]
        );
        let told = |text: &str, flags| {
            packets
                .iter()
                .filter(|p| p.flags == flags && p.comment.contains(text))
                .count() as u64
        };
        assert_eq!(told("dropped: random loss", 2), a.dropped + b.dropped);
        assert_eq!(told("flipped", 2), a.changed + b.changed);
        assert_eq!(told("duplicated", 2), a.duplicated + b.duplicated);
        assert_eq!(told("injected", 1), 1);
        assert!(a.dropped > 0 && a.changed > 0 && a.duplicated > 0);
        // As sent at the sender, as changed at the receiver.
        let sent = packets
            .iter()
            .find(|p| p.flags == 2 && p.comment.contains("flipped"))
            .unwrap();
        assert!((0..100).any(|i| frame(i, 64) == sent.data || frame(i, 200) == sent.data));
        if points == TapPoints::BothEnds {
            let got = packets
                .iter()
                .find(|p| p.flags == 1 && p.comment == sent.comment)
                .unwrap();
            assert_eq!(differing_bits(&got.data, &sent.data), 1);
        }
        assert!(packets.windows(2).all(|w| w[0].ns <= w[1].ns), "in order of time");
        assert_eq!(packets[0].ns % 8, 0);
    }
    // What others think of the file.
    let fields = [
        "-T",
        "fields",
        "-e",
        "frame.interface_name",
        "-e",
        "frame.packet_flags_direction",
        "-e",
        "frame.comment",
    ];
    let out = std::process::Command::new("tshark")
        .arg("-r")
        .arg(&path)
        .args(fields)
        .output()
        .expect("tshark (make setup)");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8(out.stdout).unwrap();
    assert_eq!(text.lines().count(), read_capture(&path).len());
    assert!(
        text.lines()
            .any(|l| l.starts_with("nic0.p1") && l.contains("dropped: random loss")),
        "{text}"
    );
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_capture_that_cannot_be_written_is_an_error() {
    let params = WorldParams {
        capture: Some("/proc/none/x.pcapng".into()),
        ..WorldParams::default()
    };
    assert!(matches!(
        World::with_devices(&params, Vec::new()),
        Err(SimError::Capture { .. })
    ));
}
