// SPDX-License-Identifier: Apache-2.0
//! Event queues (`rnic_eq` inside `rnic_ctrl`): entries, interrupts, overrun, port events.
#![allow(clippy::unwrap_used)]

use openrnic_sim::rng::Stream;
use openrnic_testbench::ctrl_bench::*;
use openrnic_testbench::ctrl_model::status;

const WIDTHS: [u32; 2] = [64, 512];
const DEVICE_FATAL: u8 = 8;
const PORT_ACTIVE: u8 = 9;
const PORT_ERR: u8 = 10;
const EQ_OVERRUN: u64 = 2;

fn event(eqn: u8, kind: u8, number: u32) -> Event {
    Event { eqn, kind, number }
}

#[test]
fn an_entry_has_the_bytes_of_the_book() {
    for width in WIDTHS {
        let mut b = CtrlBench::new(width, seed());
        let base = b.make_eq(2, 3);
        let from = b.now();
        b.events[1].push_back(event(2, 0x10, 0x0a0b_0c0d));
        b.run(30);
        let e = b.bytes(base, 32).to_vec();
        assert_eq!(e[..8], [0x10, 0, 0, 0x80, 0x0d, 0x0c, 0x0b, 0x0a]);
        assert_eq!(e[8..24], [0; 16]);
        let stamp = u64::from_le_bytes(e[24..].try_into().unwrap());
        assert!((from..b.now()).contains(&stamp));
        assert_eq!(b.counts[57], 1, "EQE_WRITTEN");
        assert!(b.vectors(0).is_empty(), "nobody armed it");
    }
}

#[test]
fn the_vector_of_an_armed_queue_is_raised_once_and_after_its_entry() {
    for width in WIDTHS {
        let mut b = CtrlBench::new(width, seed());
        for eq in [3, 0, 2, 1] {
            b.make_eq(eq, 3);
            b.eq_db.push_back(eq_doorbell(eq as u8, 0, true));
            b.run(20);
            assert!(b.vectors(0).is_empty(), "empty: nothing to tell");
            b.out.clear();
            b.events[0].push_back(event(eq as u8, 5, 1));
            b.events[0].push_back(event(eq as u8, 5, 2));
            b.run(40);
            assert_eq!(b.vectors(0), [eq as u8], "once");
            let vector = b.out.iter().position(|o| matches!(o, Out::Msix { .. })).unwrap();
            assert!(
                b.out[..vector]
                    .iter()
                    .any(|o| matches!(o, Out::Write { client: 2, .. })),
                "not before its entry"
            );
            // One seen, one not: it fires at once; with both seen it waits.
            b.out.clear();
            b.eq_db.push_back(eq_doorbell(eq as u8, 1, true));
            b.run(20);
            assert_eq!(b.vectors(0), [eq as u8]);
            b.out.clear();
            b.eq_db.push_back(eq_doorbell(eq as u8, 2, true));
            b.run(20);
            assert!(b.vectors(0).is_empty());
            b.events[2].push_back(event(eq as u8, 5, 3));
            b.run(20);
            assert_eq!(b.vectors(0), [eq as u8]);
            // Moving the consumer index alone arms nothing.
            b.out.clear();
            b.eq_db.push_back(eq_doorbell(eq as u8, 3, false));
            b.events[2].push_back(event(eq as u8, 5, 4));
            b.run(20);
            assert!(b.vectors(0).is_empty());
        }
    }
}

#[test]
fn entries_go_round_the_ring_with_the_phase_of_their_lap() {
    let seed = seed();
    for width in WIDTHS {
        let mut rng = Stream::new(seed, "laps", 0);
        let mut b = CtrlBench::new(width, seed);
        b.manners.stall = 0.2;
        let rings: Vec<(u64, u32)> = [1, 2, 4, 3]
            .iter()
            .enumerate()
            .map(|(n, log)| (b.make_eq(n as u32, *log), 1 << log))
            .collect();
        let (mut produced, mut consumed) = ([0u32; 4], [0u32; 4]);
        let mut numbers = [const { Vec::new() }; 4];
        for number in 0..600 {
            let q = rng.below(4) as usize;
            if produced[q] - consumed[q] == rings[q].1 {
                // The driver takes some, and looks at each: phase and content.
                let n = 1 + rng.below(u64::from(rings[q].1)) as u32;
                b.run(100);
                for k in consumed[q]..consumed[q] + n {
                    let e = b.bytes(rings[q].0 + 32 * u64::from(k % rings[q].1), 32);
                    assert_eq!(u32::from(e[3] >> 7), 1 - (k / rings[q].1) % 2);
                    assert_eq!(u32::from_le_bytes(e[4..8].try_into().unwrap()), numbers[q][k as usize]);
                }
                consumed[q] += n;
                b.eq_db.push_back(eq_doorbell(q as u8, consumed[q], rng.chance(0.5)));
                b.step();
            }
            // One client, so that the order is known.
            b.events[1].push_back(event(q as u8, 4, number));
            numbers[q].push(number);
            produced[q] += 1;
            if rng.chance(0.3) {
                b.run(rng.below(20));
            }
        }
        b.until("all events", 5000, |b| b.counts[57] == 600);
        assert_eq!(b.dut.get("fatal_o"), 0);
    }
}

#[test]
fn an_event_for_a_queue_that_does_not_exist_is_forgotten() {
    for width in WIDTHS {
        let mut b = CtrlBench::new(width, seed());
        b.make_eq(1, 2);
        for eqn in [0, 2, 3, 4, 5, 255] {
            b.events[0].push_back(event(eqn, 1, 1));
        }
        b.run(60);
        assert!(b.events[0].is_empty(), "and holds nobody up");
        assert!(b.writes(2).is_empty());
        assert_eq!((b.counts[57], b.counts[58], b.dut.get("fatal_o")), (0, 0, 0));
        b.ok(&Cmd::destroy_eq(1));
        b.events[0].push_back(event(1, 1, 1));
        b.run(60);
        assert!(b.writes(2).is_empty());
    }
}

#[test]
fn a_full_queue_is_fatal_loses_the_event_and_writes_nothing_beyond_its_ring() {
    for width in WIDTHS {
        for (eq, told) in [(1, true), (0, false)] {
            let mut b = CtrlBench::new(width, seed());
            b.make_eq(0, 4);
            let base = b.make_eq(if eq == 0 { 2 } else { eq }, 1);
            let base = if eq == 0 { BASE + 0x9_0000 } else { base };
            let size = if eq == 0 { 16 } else { 2 };
            for number in 0..size {
                b.events[0].push_back(event(eq as u8, 2, number));
            }
            b.run(300);
            assert_eq!(
                (b.counts[57], b.counts[58], b.dut.get("fatal_o")),
                (u64::from(size), 0, 0),
                "full, and no more"
            );
            let before = b.bytes(base, 32 * size as usize).to_vec();
            b.out.clear();
            b.events[0].push_back(event(eq as u8, 2, 99));
            b.events[1].push_back(event(eq as u8, 2, 98));
            b.run(100);
            assert_eq!(b.counts[58], 2, "EQ_OVERRUN");
            assert_eq!((b.dut.get("fatal_o"), b.dut.get("fatal_reason_o")), (1, EQ_OVERRUN));
            assert_eq!(b.bytes(base, 32 * size as usize), before);
            let expected: &[(u8, u32)] = if told {
                &[(DEVICE_FATAL, EQ_OVERRUN as u32)]
            } else {
                &[]
            };
            assert_eq!(
                b.events_written(),
                expected,
                "told through queue 0 unless that is the one"
            );
            assert_eq!(b.exec(&Cmd::create_pd()).status, status::FATAL);
            assert!(b.events[0].is_empty() && b.events[1].is_empty(), "nobody is held up");
        }
    }
}

#[test]
fn a_doorbell_beyond_the_producer_or_of_no_queue_changes_nothing() {
    let mut b = CtrlBench::new(64, seed());
    b.make_eq(1, 1);
    b.events[0].push_back(event(1, 2, 0));
    b.run(20);
    for db in [
        eq_doorbell(1, 2, true),
        eq_doorbell(1, 0xff_ffff, true),
        eq_doorbell(0, 0, true),
        eq_doorbell(5, 0, true),
        eq_doorbell(0xff, 1, true),
    ] {
        b.eq_db.push_back(db);
    }
    b.run(20);
    assert!(b.vectors(0).is_empty());
    // The consumer index is still 0: one more fits, the next one not.
    b.events[0].push_back(event(1, 2, 1));
    b.run(20);
    assert_eq!(b.dut.get("fatal_o"), 0);
    b.events[0].push_back(event(1, 2, 2));
    b.run(20);
    assert_eq!(b.dut.get("fatal_o"), 1);
}

#[test]
fn a_queue_made_anew_starts_empty_and_disarmed() {
    for width in WIDTHS {
        let mut b = CtrlBench::new(width, seed());
        b.make_eq(2, 1);
        for number in 0..2 {
            b.events[0].push_back(event(2, 2, number));
        }
        b.run(40);
        b.eq_db.push_back(eq_doorbell(2, 2, true));
        b.run(10);
        b.ok(&Cmd::destroy_eq(2));
        let base = b.make_eq(2, 2);
        b.out.clear();
        b.events[0].push_back(event(2, 3, 7));
        b.run(40);
        assert_eq!(b.writes(2)[0].0, base);
        assert_eq!(b.bytes(base, 4), [3, 0, 0, 0x80]);
        assert!(b.vectors(0).is_empty());
    }
}

#[test]
fn changes_of_the_port_are_told_to_queue_0() {
    let mac = [2, 0, 0, 0, 0, 9];
    for width in WIDTHS {
        let mut b = CtrlBench::new(width, seed());
        b.make_eq(0, 4);
        b.dut.set("port_up_i", 1);
        b.run(20);
        assert!(b.events_written().is_empty(), "the driver has not set it up");
        b.ok(&Cmd::set_port(mac, 3, true));
        b.run(20);
        assert_eq!(b.events_written(), [(PORT_ACTIVE, 1)]);
        b.ok(&Cmd::set_port(mac, 4, true));
        b.run(20);
        assert_eq!(b.events_written().len(), 1, "no change of state");
        b.dut.set("port_up_i", 0);
        b.run(20);
        b.dut.set("port_up_i", 1);
        b.run(20);
        b.ok(&Cmd::set_port(mac, 4, false));
        b.run(20);
        assert_eq!(
            b.events_written()[1..],
            [(PORT_ERR, 1), (PORT_ACTIVE, 1), (PORT_ERR, 1)]
        );
        // A link that flickers faster than events go out: what is told last is how it is.
        b.ok(&Cmd::set_port(mac, 4, true));
        for i in 0..21 {
            b.dut.set("port_up_i", i % 2);
            b.step();
        }
        b.run(60);
        let told = b.events_written();
        assert_eq!(told.last(), Some(&(PORT_ERR, 1)));
        assert!(told.windows(2).all(|w| w[0].0 != w[1].0), "active and error take turns");
    }
}

#[test]
fn a_driver_that_sleeps_until_its_vector_sees_every_event() {
    let seed = seed();
    for width in WIDTHS {
        let mut rng = Stream::new(seed, "sleeper", 0);
        let mut b = CtrlBench::new(width, seed);
        b.manners.stall = 0.15;
        let rings: Vec<u64> = (0..4).map(|q| b.make_eq(q, 6)).collect();
        let mut taken = [0u32; 4];
        let mut posted = [0u32; 4];
        for q in 0..4 {
            b.eq_db.push_back(eq_doorbell(q, 0, true));
        }
        let (mut total, mut idle) = (0, 0);
        let mut woken = [false; 4];
        while taken.iter().sum::<u32>() < 800 {
            let q = rng.below(4) as usize;
            if total < 800 && posted[q] - taken[q] < 60 && rng.chance(0.1) {
                let (kind, number) = (6, posted[q]);
                b.events[rng.below(3) as usize].push_back(event(q as u8, kind, number));
                posted[q] += 1;
                total += 1;
            }
            let before = b.out.len();
            b.step();
            for o in &b.out[before..] {
                if let Out::Msix { source: 0, vector } = o {
                    woken[usize::from(*vector)] = true;
                }
            }
            idle += 1;
            // Awake, after a while: take what is there, and arm again.
            let q = rng.below(4) as usize;
            if woken[q] && rng.chance(0.1) {
                woken[q] = false;
                while b.bytes(rings[q] + 32 * u64::from(taken[q] % 64), 32)[3] >> 7 == (1 - (taken[q] / 64) % 2) as u8 {
                    taken[q] += 1;
                    idle = 0;
                }
                b.eq_db.push_back(eq_doorbell(q as u8, taken[q], true));
            }
            assert!(idle < 3000, "a wake-up was lost: {taken:?} of {posted:?}");
        }
        assert_eq!(b.dut.get("fatal_o"), 0);
    }
}
