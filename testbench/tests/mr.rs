// SPDX-License-Identifier: Apache-2.0
//! Memory keys (`rnic_mr` inside `rnic_ctrl`): checks in their order, ranges, four askers at once, keys that go away.
#![allow(clippy::unwrap_used)]

use openrnic_sim::rng::Stream;
use openrnic_testbench::ctrl_bench::*;
use openrnic_testbench::ctrl_model::Objects;

const WIDTHS: [u32; 2] = [64, 512];
const OK: u8 = 0;
const KEY: u8 = 1;
const PD: u8 = 2;
const ACCESS: u8 = 3;
const RANGE: u8 = 4;

/// Asks through one port and waits for the answer: MrErr, and the address when it is OK.
#[track_caller]
fn ask(b: &mut CtrlBench, port: usize, l: Lookup) -> (u8, u64) {
    let n = b.found[port].len();
    b.lookups[port].push_back(l);
    b.until("an answer", 200, |b| b.found[port].len() > n);
    let (err, addr) = b.found[port][n];
    (err, if err == OK { addr } else { 0 })
}

/// Invalidates through one port: MrErr.
#[track_caller]
fn invalidate(b: &mut CtrlBench, port: usize, key: u32, pd: u16) -> u8 {
    let n = b.inv_done[port].len();
    b.invs[port].push_back(Invalidate { key, pd, qpn: 0x123 });
    b.until("an invalidation", 200, |b| b.inv_done[port].len() > n);
    b.inv_done[port][n]
}

/// A bench with PDs 0 and 1.
fn bench(width: u32) -> CtrlBench {
    let mut b = CtrlBench::new(width, seed());
    b.ok(&Cmd::create_pd());
    b.ok(&Cmd::create_pd());
    b
}

#[test]
fn a_lookup_fails_by_key_then_pd_then_access_then_range() {
    for width in WIDTHS {
        let mut b = bench(width);
        let m = Mr {
            kind: 0,
            pd: 1,
            access: 0b0101,
            key: 0xc3,
            va: 0x8000,
            length: 0x1000,
            host_addr: 0x77_0000_0040,
        };
        let key = b.ok(&Cmd::create_mr(&m));
        let good = Lookup {
            key,
            va: 0x8010,
            len: 0xff0,
            pd: 1,
            access: 0b0100,
        };
        assert_eq!(ask(&mut b, 0, good), (OK, 0x77_0000_0050));
        assert_eq!(
            ask(&mut b, 1, Lookup { access: 0, ..good }).0,
            OK,
            "local read needs no bit"
        );
        assert_eq!(ask(&mut b, 2, Lookup { access: 0b0101, ..good }).0, OK);
        // Each wrong in one way, and then in all the later ways as well.
        let range = Lookup { len: 0xff1, ..good };
        let access = Lookup {
            access: 0b0110,
            ..range
        };
        let pd = Lookup { pd: 0, ..access };
        for key in [
            key ^ 0x80,
            key + 0x100,
            key & 0xff,
            key | 0x8000_0000,
            key + (NUM_MR << 8),
        ] {
            assert_eq!(ask(&mut b, 3, Lookup { key, ..good }).0, KEY, "{key:#x}");
            assert_eq!(ask(&mut b, 3, Lookup { key, ..pd }).0, KEY);
        }
        assert_eq!(ask(&mut b, 3, Lookup { pd: 0, ..good }).0, PD);
        assert_eq!(ask(&mut b, 3, Lookup { pd: 0x101, ..good }).0, PD, "all bits of the PD");
        assert_eq!(ask(&mut b, 3, pd).0, PD);
        for bit in [1, 3] {
            assert_eq!(
                ask(
                    &mut b,
                    3,
                    Lookup {
                        access: 1 << bit,
                        ..good
                    }
                )
                .0,
                ACCESS
            );
        }
        assert_eq!(ask(&mut b, 3, access).0, ACCESS);
        assert_eq!(ask(&mut b, 3, range).0, RANGE);
    }
}

#[test]
fn a_range_ends_where_the_region_ends_and_wraps_nowhere() {
    let top = u64::MAX;
    for width in WIDTHS {
        let mut b = bench(width);
        let region = |b: &mut CtrlBench, va, length| {
            let m = Mr {
                kind: 0,
                pd: 0,
                access: 1,
                key: 9,
                va,
                length,
                host_addr: 0x1_0000,
            };
            let key = b.ok(&Cmd::create_mr(&m));
            move |va, len| Lookup {
                key,
                va,
                len,
                pd: 0,
                access: 1,
            }
        };
        let small = region(&mut b, 0x1000, 0x100);
        for (va, len, err) in [
            (0x1000, 0x100, OK),
            (0x10ff, 1, OK),
            (0x1100, 1, RANGE),
            (0x0fff, 1, RANGE),
            (0x0fff, 2, RANGE),
            (0x1001, 0x100, RANGE),
            (0x1000, 0x101, RANGE),
            (0x1000, 0x8000_0000, RANGE),
            (0x1080, 0xffff_ffff, RANGE),
            (top, 1, RANGE),
            (top, 0x1101, RANGE),
            (top - 0xfff, 0x2001, RANGE),
            (1 << 63 | 0x1000, 1, RANGE),
            (1 << 48 | 0x1000, 1, RANGE),
        ] {
            assert_eq!(ask(&mut b, 0, small(va, len)).0, err, "{va:#x} {len:#x}");
        }
        // A region that ends at the end of all addresses, and one that begins at their beginning.
        let last = region(&mut b, top - 0xff, 0x100);
        for (va, len, err) in [
            (top, 1, OK),
            (top, 2, RANGE),
            (top - 0xff, 0x100, OK),
            (top - 0xff, 0x101, RANGE),
            (top - 0x100, 1, RANGE),
            (0, 1, RANGE),
        ] {
            assert_eq!(ask(&mut b, 1, last(va, len)).0, err, "{va:#x} {len:#x}");
        }
        assert_eq!(ask(&mut b, 1, last(top - 0xf, 0x10)), (OK, 0x1_00f0));
        let zero = region(&mut b, 0, 0x8000_0000);
        for (va, len, err) in [
            (0, 0x8000_0000, OK),
            (0, 0x8000_0001, RANGE),
            (0x7fff_ffff, 1, OK),
            (0x8000_0000, 1, RANGE),
            (top, 1, RANGE),
            (top, 2, RANGE),
        ] {
            assert_eq!(ask(&mut b, 2, zero(va, len)).0, err, "{va:#x} {len:#x}");
        }
        let huge = region(&mut b, 0x123_4567_0000, 1 << 48);
        for (va, len, err) in [
            (0x123_4567_0000, 0xffff_ffff, OK),
            (0x123_4567_0000 + (1 << 48) - 0xffff_ffff, 0xffff_ffff, OK),
            (0x123_4567_0001 + (1 << 48) - 0xffff_ffff, 0xffff_ffff, RANGE),
            (0x123_4566_ffff, 0xffff_ffff, RANGE),
        ] {
            assert_eq!(ask(&mut b, 3, huge(va, len)).0, err, "{va:#x} {len:#x}");
        }
    }
}

#[test]
fn a_key_that_was_destroyed_names_nothing_and_its_index_comes_back_with_another_key() {
    for width in WIDTHS {
        let mut b = bench(width);
        let m = Mr {
            kind: 0,
            pd: 0,
            access: 1,
            key: 1,
            va: 0,
            length: 64,
            host_addr: 0x4000,
        };
        // All regions but one, so that the index comes back at once.
        let keys: Vec<u32> = (0..NUM_MR - 1).map(|_| b.ok(&Cmd::create_mr(&m))).collect();
        let l = Lookup {
            key: keys[20],
            va: 0,
            len: 64,
            pd: 0,
            access: 0,
        };
        assert_eq!(ask(&mut b, 0, l), (OK, 0x4000));
        // Asked all the time while it goes away: good answers first, bad ones from some point on, and none of the good ones
        // after the completion.
        b.put(&Cmd::destroy_mr(keys[20]));
        let from = b.found[2].len();
        b.doorbell(b.produced);
        let mut done = None;
        for _ in 0..300 {
            if b.lookups[2].is_empty() {
                b.lookups[2].push_back(l);
            }
            b.step();
            if done.is_none() && b.poll().is_some() {
                // What was answered up to here, and what is on its way.
                done = Some(b.found[2].len());
            }
        }
        let answers: Vec<u8> = b.found[2][from..].iter().map(|f| f.0).collect();
        let turn = answers.iter().position(|e| *e == KEY).unwrap();
        assert!(turn > 0 && answers[turn..].iter().all(|e| *e == KEY));
        assert!(from + turn < done.unwrap());
        b.run(10);

        let again = b.ok(&Cmd::create_mr(&Mr {
            key: 2,
            host_addr: 0x9000,
            ..m
        }));
        assert_eq!(again, keys[20] + 1);
        assert_eq!(ask(&mut b, 0, l).0, KEY);
        assert_eq!(ask(&mut b, 0, Lookup { key: again, ..l }), (OK, 0x9000));
    }
}

#[test]
fn no_key_survives_a_reset() {
    let mut b = bench(64);
    let m = Mr {
        kind: 0,
        pd: 0,
        access: 1,
        key: 1,
        va: 0,
        length: 64,
        host_addr: 0x4000,
    };
    let key = b.ok(&Cmd::create_mr(&m));
    let l = Lookup {
        key,
        va: 0,
        len: 64,
        pd: 0,
        access: 0,
    };
    assert_eq!(ask(&mut b, 0, l).0, OK);
    b.dut.reset(2);
    assert_eq!(b.dut.get("ready_o"), 0);
    // A lookup that comes too early waits for the table to be clear.
    let n = b.found[0].len();
    b.lookups[0].push_back(l);
    b.until("an answer", 1000, |b| b.found[0].len() > n);
    assert_eq!(b.found[0][n].0, KEY);
}

#[test]
fn four_ports_share_one_lookup_a_cycle_evenly() {
    let mut b = bench(64);
    let m = Mr {
        kind: 0,
        pd: 0,
        access: 1,
        key: 1,
        va: 0,
        length: 1 << 20,
        host_addr: 0,
    };
    let key = b.ok(&Cmd::create_mr(&m));
    for port in 0..4 {
        for i in 0..400 {
            b.lookups[port].push_back(Lookup {
                key,
                va: i * 4 + port as u64,
                len: 1,
                pd: 0,
                access: 1,
            });
        }
    }
    b.run(400);
    let counts: Vec<usize> = b.found.iter().map(Vec::len).collect();
    assert!(counts.iter().all(|n| (98..=100).contains(n)), "{counts:?}");
    // One alone gets all of it.
    b.lookups[0].clear();
    b.lookups[1].clear();
    b.lookups[2].clear();
    let from = b.found[3].len();
    b.run(200);
    assert!(b.found[3].len() - from >= 196);
    for port in 0..4 {
        for (i, f) in b.found[port].iter().enumerate() {
            assert_eq!(*f, (OK, i as u64 * 4 + port as u64), "in the order of the requests");
        }
    }
}

#[test]
fn random_lookups_get_what_the_model_says() {
    let seed = seed();
    for width in WIDTHS {
        let mut rng = Stream::new(seed, "lookups", 0);
        let mut b = CtrlBench::new(width, seed);
        let mut model = Objects::default();
        b.manners.stall = 0.2;
        for _ in 0..3 {
            model.judge(&Cmd::create_pd());
            b.ok(&Cmd::create_pd());
        }
        let mut old = Vec::new();
        let mut seen = [0; 5];
        for _ in 0..60 {
            // Some objects come and go, then all ports ask.
            for _ in 0..4 {
                let keys = model.handles()[2].clone();
                let destroy = !keys.is_empty() && rng.chance(0.45);
                let cmd = if destroy {
                    let key = keys[rng.below(keys.len() as u64) as usize];
                    old.push(key);
                    Cmd::destroy_mr(key)
                } else {
                    let length = 1 << rng.below(33);
                    Cmd::create_mr(&Mr {
                        kind: 0,
                        pd: rng.below(3) as u16,
                        access: [1, 3, 5, 7, 9, 15, 4, 0][rng.below(8) as usize],
                        key: rng.below(4) as u8,
                        va: if rng.chance(0.3) {
                            u64::MAX - length + 1 - rng.below(2)
                        } else {
                            rng.bits() >> rng.below(60)
                        },
                        length: length + rng.below(2),
                        host_addr: rng.bits() >> 1,
                    })
                };
                let (status, handle, _) = model.judge(&cmd);
                let c = b.exec(&cmd);
                assert_eq!((c.status, c.handle), (status, handle));
            }
            let keys = model.handles()[2].clone();
            let mut expected = [const { Vec::new() }; 4];
            for _ in 0..150 {
                let key = match rng.below(10) {
                    0 => rng.below(u64::from(NUM_MR) << 9) as u32,
                    1 if !old.is_empty() => old[rng.below(old.len() as u64) as usize],
                    _ if !keys.is_empty() => keys[rng.below(keys.len() as u64) as usize],
                    _ => 0x101,
                };
                let (from, length, pd, access) = model
                    .region(key)
                    .map_or((0, 1, 0, 0), |m| (m.va, m.length, m.pd, m.access));
                // Around the two ends of the region.
                let near = |rng: &mut Stream| rng.below(5).wrapping_sub(2);
                let va = match rng.below(3) {
                    0 => from.wrapping_add(near(&mut rng)),
                    1 => from.wrapping_add(length).wrapping_sub(rng.below(40)),
                    _ => from.wrapping_add(rng.below(length)),
                };
                let to_end = from.wrapping_add(length).wrapping_sub(va);
                let len = match rng.below(3) {
                    0 => 1 + rng.below(16) as u32,
                    1 => (to_end.wrapping_add(near(&mut rng)) as u32).max(1),
                    _ => (rng.bits() as u32 >> rng.below(32)).max(1),
                };
                let l = Lookup {
                    key,
                    va,
                    len,
                    pd: if rng.chance(0.9) { pd } else { rng.below(4) as u16 },
                    access: if rng.chance(0.8) {
                        access & rng.bits() as u8 & 15
                    } else {
                        rng.below(16) as u8
                    },
                };
                let port = rng.below(4) as usize;
                b.lookups[port].push_back(l);
                expected[port].push((model.lookup(&l), l));
            }
            b.found = [const { Vec::new() }; 4];
            b.until("all answers", 2000, |b| {
                b.found.iter().map(Vec::len).sum::<usize>() == 150
            });
            for (expected, found) in expected.iter().zip(&b.found) {
                for (((err, addr), l), found) in expected.iter().zip(found) {
                    seen[usize::from(*err)] += 1;
                    assert_eq!(*err, found.0, "{l:x?}");
                    if *err == OK {
                        assert_eq!(*addr, found.1, "{l:x?}");
                    }
                }
            }
        }
        assert!(seen.iter().all(|n| *n > 100), "{seen:?}");
    }
}

/// A region for fast registration that is registered from the start.
fn fast_reg(key: u8) -> Mr {
    Mr {
        kind: 1,
        pd: 1,
        access: 0b0101,
        key,
        va: 0x8000,
        length: 0x1000,
        host_addr: 0x77_0000_0040,
    }
}

#[test]
fn a_key_is_invalidated_only_where_it_may_be_and_then_names_nothing() {
    for width in WIDTHS {
        let mut b = bench(width);
        let region = b.ok(&Cmd::create_mr(&Mr { kind: 0, ..fast_reg(3) }));
        let fast = b.ok(&Cmd::create_mr(&fast_reg(7)));
        let l = |key| Lookup {
            key,
            va: 0x8010,
            len: 16,
            pd: 1,
            access: 0b0100,
        };
        for port in 0..2 {
            assert_eq!(invalidate(&mut b, port, region, 1), ACCESS, "an ordinary region");
            assert_eq!(invalidate(&mut b, port, fast, 0), PD);
            for key in [
                fast ^ 1,
                fast + 0x100,
                fast | 0x8000_0000,
                fast + (NUM_MR << 8),
                fast & 0xff,
            ] {
                assert_eq!(invalidate(&mut b, port, key, 1), KEY, "{key:#x}");
            }
        }
        // Nothing of it happened to the two.
        assert_eq!(ask(&mut b, 0, l(region)), (OK, 0x77_0000_0050));
        assert_eq!(ask(&mut b, 0, l(fast)), (OK, 0x77_0000_0050));
        assert_eq!(invalidate(&mut b, 1, fast, 1), OK);
        assert_eq!(ask(&mut b, 0, l(fast)).0, KEY);
        for port in 0..2 {
            assert_eq!(invalidate(&mut b, port, fast, 1), KEY, "it is invalid already");
        }
        assert_eq!(ask(&mut b, 0, l(region)), (OK, 0x77_0000_0050));
        // The key stays the owner's: its PD is in use, and it can be destroyed under any variable part.
        b.refused(&Cmd::destroy_pd(1), 6, 0);
        b.ok(&Cmd::destroy_mr(fast ^ 0xff));
        b.refused(&Cmd::destroy_mr(region ^ 0xff), 3, 4);
        b.ok(&Cmd::destroy_mr(region));
        b.ok(&Cmd::destroy_pd(1));

        // Allocated without a registration.
        let idle = Mr {
            pd: 0,
            length: 0,
            va: 0,
            host_addr: 0,
            ..fast_reg(9)
        };
        let key = b.ok(&Cmd::create_mr(&idle));
        assert_eq!(ask(&mut b, 2, Lookup { va: 0, pd: 0, ..l(key) }).0, KEY);
        assert_eq!(invalidate(&mut b, 0, key, 0), KEY);
        b.refused(&Cmd::create_mr(&Mr { kind: 0, ..idle }), 4, 24);
        b.refused(&Cmd::create_mr(&Mr { kind: 2, ..idle }), 4, 12);
    }
}

#[test]
fn invalidations_lookups_and_commands_do_not_disturb_each_other() {
    let seed = seed();
    for width in WIDTHS {
        let mut rng = Stream::new(seed, "invalidate", u64::from(width));
        let mut b = bench(width);
        b.manners.stall = 0.1;
        let mut done = [0; 2];
        for round in 0..40 {
            // Every key of a set is invalidated once, through either port, while others are looked up, made and destroyed: whatever
            // comes first, each of them is answered, and nothing comes back to life.
            let keys: Vec<u32> = (0..6).map(|i| b.ok(&Cmd::create_mr(&fast_reg(round ^ i)))).collect();
            let stays = b.ok(&Cmd::create_mr(&fast_reg(0xee)));
            let good = Lookup {
                key: stays,
                va: 0x8000,
                len: 4,
                pd: 1,
                access: 1,
            };
            b.found = [const { Vec::new() }; 4];
            b.inv_done = [const { Vec::new() }; 2];
            let mut asked = [0; 2];
            for key in &keys {
                let port = rng.below(2) as usize;
                asked[port] += 1;
                b.invs[port].push_back(Invalidate {
                    key: *key,
                    pd: 1,
                    qpn: 1,
                });
            }
            for _ in 0..40 {
                b.lookups[rng.below(4) as usize].push_back(good);
            }
            // Commands write the table at any of these moments.
            b.put(&Cmd::create_mr(&fast_reg(0x11)));
            b.put(&Cmd::create_mr(&fast_reg(0x12)));
            b.doorbell(b.produced);
            b.run(rng.below(20));
            let made = [b.completion().handle, b.completion().handle];
            b.until("all answers", 2000, |b| {
                b.found.iter().map(Vec::len).sum::<usize>() == 40 && (0..2).all(|p| b.inv_done[p].len() == asked[p])
            });
            assert!(b.found.iter().flatten().all(|f| *f == (OK, 0x77_0000_0040)));
            assert!(b.inv_done.iter().flatten().all(|e| *e == OK));
            for key in &keys {
                assert_eq!(ask(&mut b, 1, Lookup { key: *key, ..good }).0, KEY);
            }
            for key in made {
                assert_eq!(ask(&mut b, 1, Lookup { key, ..good }), (OK, 0x77_0000_0040));
            }
            for key in keys.iter().chain(&made).chain([&stays]) {
                b.ok(&Cmd::destroy_mr(*key));
            }
            done[0] += asked[0];
            done[1] += asked[1];
        }
        assert!(done.iter().all(|n| *n > 50), "{done:?}");
    }
}
