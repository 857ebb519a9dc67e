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
const QP: u8 = 5;
const IN_USE: u8 = 6;
const LIST: u8 = 7;

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
    b.push_invalidate(port, Invalidate { key, pd, qpn: 0x123 });
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
            log_page: 0,
            page_offset: 0,
        };
        let key = b.ok(&Cmd::create_mr(&m));
        let good = Lookup {
            key,
            va: 0x8010,
            len: 0xff0,
            pd: 1,
            qpn: 0,
            access: 0b0100,
            judge: false,
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
                log_page: 0,
                page_offset: 0,
            };
            let key = b.ok(&Cmd::create_mr(&m));
            move |va, len| Lookup {
                key,
                va,
                len,
                pd: 0,
                qpn: 0,
                access: 1,
                judge: false,
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
            log_page: 0,
            page_offset: 0,
        };
        // All regions but one, so that the index comes back at once.
        let keys: Vec<u32> = (0..NUM_MR - 1).map(|_| b.ok(&Cmd::create_mr(&m))).collect();
        let l = Lookup {
            key: keys[20],
            va: 0,
            len: 64,
            pd: 0,
            qpn: 0,
            access: 0,
            judge: false,
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
        log_page: 0,
        page_offset: 0,
    };
    let key = b.ok(&Cmd::create_mr(&m));
    let l = Lookup {
        key,
        va: 0,
        len: 64,
        pd: 0,
        qpn: 0,
        access: 0,
        judge: false,
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
fn four_ports_share_the_lookups_evenly() {
    for (width, cycles) in [(64, 800), (512, 400)] {
        four_ports(width, cycles);
    }
}

/// As many lookups as there are cycles beside a wide data path, half as many beside a narrow one.
fn four_ports(width: u32, cycles: u64) {
    let mut b = bench(width);
    let m = Mr {
        kind: 0,
        pd: 0,
        access: 1,
        key: 1,
        va: 0,
        length: 1 << 20,
        host_addr: 0,
        log_page: 0,
        page_offset: 0,
    };
    let key = b.ok(&Cmd::create_mr(&m));
    for port in 0..4 {
        for i in 0..400 {
            b.lookups[port].push_back(Lookup {
                key,
                va: i * 4 + port as u64,
                len: 1,
                pd: 0,
                qpn: 0,
                access: 1,
                judge: false,
            });
        }
    }
    b.run(cycles);
    let counts: Vec<usize> = b.found.iter().map(Vec::len).collect();
    assert!(counts.iter().all(|n| (98..=100).contains(n)), "{counts:?}");
    // One alone gets an answer every four cycles.
    b.lookups[0].truncate(1);
    b.lookups[1].truncate(1);
    b.lookups[2].truncate(1);
    let from = b.found[3].len();
    b.run(200);
    assert!((49..=50).contains(&(b.found[3].len() - from)));
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
                        log_page: 0,
                        page_offset: 0,
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
                    qpn: 0,
                    access: if rng.chance(0.8) {
                        access & rng.bits() as u8 & 15
                    } else {
                        rng.below(16) as u8
                    },
                    judge: rng.chance(0.2),
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
        log_page: 0,
        page_offset: 0,
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
            qpn: 0,
            access: 0b0100,
            judge: false,
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
        b.refused(&Cmd::create_mr(&Mr { kind: 3, ..idle }), 4, 12);
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
                qpn: 0,
                access: 1,
                judge: false,
            };
            b.found = [const { Vec::new() }; 4];
            b.inv_done = [const { Vec::new() }; 2];
            let mut asked = [0; 2];
            for key in &keys {
                let port = rng.below(2) as usize;
                asked[port] += 1;
                b.push_invalidate(
                    port,
                    Invalidate {
                        key: *key,
                        pd: 1,
                        qpn: 1,
                    },
                );
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

/// A page list in the bench's memory: writes `pages` from `at` on.
fn write_list(b: &mut CtrlBench, at: u64, pages: &[u64]) {
    for (i, page) in pages.iter().enumerate() {
        let at = (at - BASE) as usize + 8 * i;
        b.mem[at..at + 8].copy_from_slice(&page.to_le_bytes());
    }
}

/// A region of pages: its first byte lies `offset` into the first of them.
fn paged(log_page: u8, list: u64, offset: u32, length: u64) -> Mr {
    Mr {
        kind: 0,
        length,
        host_addr: list,
        log_page,
        page_offset: offset,
        ..fast_reg(1)
    }
}

#[test]
fn a_page_list_says_where_each_byte_lies_and_how_far_it_goes_on_there() {
    let seed = seed();
    for width in WIDTHS {
        let mut rng = Stream::new(seed, "pages", u64::from(width));
        let mut b = bench(width);
        b.manners.stall = 0.1;
        for log_page in [12, 13, 16, 21, 30] {
            let page = 1u64 << log_page;
            let n = 50;
            let pages: Vec<u64> = (0..n).map(|_| rng.bits() >> 1 & !(page - 1)).collect();
            let list = OUT + 0x400 * u64::from(log_page % 8);
            write_list(&mut b, list, &pages);
            let offset = if log_page == 13 { 0 } else { rng.below(page) };
            let length = (n - 1) * page - offset - rng.below(9);
            let va = if log_page == 16 { 0 } else { rng.bits() >> 8 };
            let key = b.ok(&Cmd::create_mr(&Mr {
                va,
                ..paged(log_page, list, offset as u32, length)
            }));
            b.page_reads.clear();
            for turn in 0..120 {
                let at = match turn % 3 {
                    0 => rng.below(length),
                    1 => (rng.below(n - 1) * page).saturating_sub(offset).min(length - 1),
                    _ => ((1 + rng.below(n - 2)) * page - offset - 1 - rng.below(70)).min(length - 1),
                };
                let len = 1 + rng.below((length - at).min(9000));
                let l = Lookup {
                    key,
                    va: va + at,
                    len: len as u32,
                    pd: 1,
                    qpn: 0,
                    access: 1,
                    judge: false,
                };
                let port = rng.below(4) as usize;
                let pos = at + offset;
                let wanted = pages[(pos >> log_page) as usize] + pos % page;
                assert_eq!(ask(&mut b, port, l), (OK, wanted), "{l:x?}");
                let room = *b.rooms[port].last().unwrap();
                assert_eq!(room, (page - pos % page).min(4096), "{l:x?}");
            }
            // 50 addresses stand in 7 lines, and no line is read twice.
            let mut lines = b.page_reads.clone();
            lines.sort_unstable();
            lines.dedup();
            assert_eq!(lines.len(), b.page_reads.len());
            assert!((5..=7).contains(&lines.len()));
            let beyond = Lookup {
                key,
                va: va + length - 1,
                len: 2,
                pd: 1,
                qpn: 0,
                access: 1,
                judge: false,
            };
            assert_eq!(ask(&mut b, 0, beyond).0, RANGE, "past the page list");
            b.ok(&Cmd::destroy_mr(key));
        }
    }
}

#[test]
fn who_only_asks_whether_it_may_reads_no_page_list_and_others_go_on_while_one_is_read() {
    for width in WIDTHS {
        let mut b = bench(width);
        write_list(&mut b, OUT, &[0x10_0000, 0x20_0000]);
        let key = b.ok(&Cmd::create_mr(&paged(12, OUT, 0, 8192)));
        let plain = b.ok(&Cmd::create_mr(&Mr { kind: 0, ..fast_reg(2) }));
        let l = Lookup {
            key,
            va: 0x8000,
            len: 8192,
            pd: 1,
            qpn: 0,
            access: 1,
            judge: true,
        };
        assert_eq!(ask(&mut b, 0, l).0, OK);
        assert_eq!(ask(&mut b, 0, Lookup { len: 8193, ..l }).0, RANGE);
        assert!(b.page_reads.is_empty());
        b.manners.read_latency = 300;
        b.lookups[2].push_back(Lookup { judge: false, ..l });
        b.run(20);
        assert_eq!(b.page_reads.len(), 1);
        let other = Lookup {
            key: plain,
            len: 16,
            judge: false,
            ..l
        };
        for port in [0, 1, 3] {
            for _ in 0..10 {
                let from = b.now();
                assert_eq!(ask(&mut b, port, other).0, OK);
                assert!(b.now() - from < 12);
            }
        }
        assert!(b.found[2].is_empty(), "the list is still on its way");
        b.until("the answer", 400, |b| b.found[2].len() == 1);
        assert_eq!((b.found[2][0], b.rooms[2][0]), ((OK, 0x10_0000), 4096));
    }
}

#[test]
fn a_page_list_that_cannot_be_read_is_an_error_of_its_own_and_is_read_again_the_next_time() {
    for width in WIDTHS {
        let mut b = bench(width);
        write_list(&mut b, OUT, &[0x10_0000, 0x20_0000]);
        let key = b.ok(&Cmd::create_mr(&paged(12, OUT, 0x10, 8000)));
        let l = Lookup {
            key,
            va: 0x8ff0,
            len: 1,
            pd: 1,
            qpn: 0,
            access: 1,
            judge: false,
        };
        for err in 1..=4 {
            b.fail_page = err;
            assert_eq!(ask(&mut b, 1, l).0, LIST);
        }
        assert_eq!(ask(&mut b, 1, l), (OK, 0x20_0000));
        assert_eq!(b.page_reads.len(), 5);
        assert_eq!(ask(&mut b, 2, l), (OK, 0x20_0000));
        assert_eq!(b.page_reads.len(), 5);
    }
}

#[test]
fn nothing_of_an_old_page_list_is_left_for_the_region_after_it() {
    for width in WIDTHS {
        for late in [0, 100] {
            let mut b = bench(width);
            write_list(&mut b, OUT, &[0x10_0000]);
            let key = b.ok(&Cmd::create_mr(&paged(12, OUT, 0, 4096)));
            let l = Lookup {
                key,
                va: 0x8000,
                len: 1,
                pd: 1,
                qpn: 0,
                access: 1,
                judge: false,
            };
            // Either the line is here already, or it is on its way when the region goes.
            b.manners.read_latency = late;
            b.lookups[0].push_back(l);
            b.until("the list to be asked for", 100, |b| b.page_reads.len() == 1);
            b.run(if late == 0 { 40 } else { 0 });
            b.manners.read_latency = 0;
            b.ok(&Cmd::destroy_mr(key));
            b.until("the old answer", 300, |b| b.found[0].len() == 1);
            assert_eq!(b.found[0][0], (OK, 0x10_0000));
            write_list(&mut b, OUT, &[0x77_0000]);
            let key = b.ok(&Cmd::create_mr(&paged(12, OUT, 0, 4096)));
            assert_eq!(ask(&mut b, 1, Lookup { key, ..l }), (OK, 0x77_0000), "latency {late}");
        }
    }
}

#[test]
fn lines_of_many_lists_that_share_a_place_in_the_cache_are_told_apart() {
    for width in WIDTHS {
        let mut b = bench(width);
        // Lists 4096 bytes apart: the same place of 64 lines.
        let keys: Vec<u32> = (0..8)
            .map(|i| {
                let list = OUT + 0x1000 * i;
                write_list(&mut b, list, &[0x10_0000 * (i + 1)]);
                b.ok(&Cmd::create_mr(&paged(12, list, 0, 4096)))
            })
            .collect();
        // Neighbours, and those that differ in a higher bit of their address alone.
        for step in [1, 2, 4] {
            for n in 0..3 * keys.len() {
                let i = n * step % keys.len();
                let l = Lookup {
                    key: keys[i],
                    va: 0x8004,
                    len: 1,
                    pd: 1,
                    qpn: 0,
                    access: 1,
                    judge: false,
                };
                assert_eq!(ask(&mut b, n % 4, l), (OK, 0x10_0000 * (i as u64 + 1) + 4));
            }
        }
    }
}

#[test]
fn page_sizes_offsets_and_lists_are_checked_when_a_region_is_made() {
    let mut b = bench(64);
    let good = paged(12, OUT, 0xfff, 4096);
    for log_page in [1, 11, 31, 32, 44, 255] {
        b.refused(&Cmd::create_mr(&Mr { log_page, ..good }), 4, 13);
    }
    b.refused(
        &Cmd::create_mr(&Mr {
            page_offset: 0x1000,
            ..good
        }),
        4,
        40,
    );
    b.refused(&Cmd::create_mr(&Mr { log_page: 0, ..good }), 4, 40);
    for list in [OUT + 8, OUT + 32, OUT + 1] {
        b.refused(
            &Cmd::create_mr(&Mr {
                host_addr: list,
                ..good
            }),
            4,
            32,
        );
    }
    b.ok(&Cmd::create_mr(&good));
}

/// Has the requester do an operation on a key: MrErr.
#[track_caller]
fn key_op(b: &mut CtrlBench, o: KeyOp) -> u8 {
    let n = b.inv_done[0].len();
    b.key_ops.push_back(o);
    b.until("an operation", 200, |b| b.inv_done[0].len() > n);
    b.inv_done[0][n]
}

/// A region for fast registration without a registration, of PD 1.
fn unregistered(b: &mut CtrlBench, key: u8) -> u32 {
    b.ok(&Cmd::create_mr(&Mr {
        access: 0,
        va: 0,
        length: 0,
        host_addr: 0,
        ..fast_reg(key)
    }))
}

#[test]
fn fast_registration_needs_an_invalid_key_of_the_same_domain_and_gives_it_its_variable_part() {
    for width in WIDTHS {
        let mut b = bench(width);
        let key = unregistered(&mut b, 5);
        write_list(&mut b, OUT, &[0x50_0000, 0x30_0000]);
        let o = KeyOp {
            op: 1,
            key: key + 1,
            pd: 1,
            qpn: 9,
            access: 0b0101,
            va: 0xabc_0000,
            length: 5000,
            host_addr: OUT,
            log_page: 12,
            page_offset: 0x700,
            lkey: 0,
        };
        let region = b.ok(&Cmd::create_mr(&Mr { kind: 0, ..fast_reg(3) }));
        assert_eq!(key_op(&mut b, KeyOp { pd: 0, ..o }), PD);
        assert_eq!(key_op(&mut b, KeyOp { key: region, ..o }), KEY, "an ordinary region");
        assert_eq!(key_op(&mut b, KeyOp { key: key + 0x700, ..o }), KEY);
        assert_eq!(key_op(&mut b, o), OK);
        let l = Lookup {
            key: key + 1,
            va: 0xabc_0900,
            len: 10,
            pd: 1,
            qpn: 4,
            access: 0b0100,
            judge: false,
        };
        assert_eq!(ask(&mut b, 0, l), (OK, 0x30_0000));
        assert_eq!(ask(&mut b, 0, Lookup { key, ..l }).0, KEY, "the key before");
        assert_eq!(ask(&mut b, 0, Lookup { access: 0b1000, ..l }).0, ACCESS);
        assert_eq!(
            ask(
                &mut b,
                0,
                Lookup {
                    va: 0xabc_0000 + 4999,
                    len: 2,
                    ..l
                }
            )
            .0,
            RANGE
        );
        // Registered: it has to be invalidated first. The list of the next registration is another one.
        assert_eq!(key_op(&mut b, KeyOp { key: key + 2, ..o }), IN_USE);
        assert_eq!(invalidate(&mut b, 0, key, 1), KEY);
        assert_eq!(invalidate(&mut b, 0, key + 1, 1), OK);
        write_list(&mut b, OUT, &[0x50_0000, 0x60_0000]);
        assert_eq!(key_op(&mut b, KeyOp { key: key + 2, ..o }), OK);
        assert_eq!(ask(&mut b, 0, Lookup { key: key + 2, ..l }), (OK, 0x60_0000));
        b.ok(&Cmd::destroy_mr(key));
        assert_eq!(ask(&mut b, 0, Lookup { key: key + 2, ..l }).0, KEY);
    }
}

#[test]
fn a_window_gives_its_qp_a_part_of_a_region_and_the_region_stays_while_it_is_bound() {
    for width in WIDTHS {
        for paged_region in [false, true] {
            let mut b = bench(width);
            write_list(&mut b, OUT, &(1..=16).map(|i| i * 0x10_0000).collect::<Vec<u64>>());
            let region = b.ok(&Cmd::create_mr(&Mr {
                access: 0b1_0001,
                va: 0x8000,
                length: 0xc000,
                ..if paged_region {
                    paged(12, OUT, 0x123, 0)
                } else {
                    Mr { kind: 0, ..fast_reg(3) }
                }
            }));
            let window = b.ok(&Cmd::create_mr(&Mr {
                kind: 2,
                access: 0,
                va: 0,
                length: 0,
                host_addr: 0,
                ..fast_reg(0x20)
            }));
            let o = KeyOp {
                op: 2,
                key: window + 1,
                pd: 1,
                qpn: 0x77,
                access: 0b0110,
                va: 0x8000 + 0x3210,
                length: 0x2000,
                host_addr: 0,
                log_page: 0,
                page_offset: 0,
                lkey: region,
            };
            assert_eq!(key_op(&mut b, KeyOp { key: region, ..o }), KEY, "no window");
            assert_eq!(key_op(&mut b, KeyOp { pd: 0, ..o }), PD);
            for lkey in [region ^ 1, region + 0x700, window, region + (NUM_MR << 8)] {
                assert_eq!(key_op(&mut b, KeyOp { lkey, ..o }), KEY, "{lkey:#x}");
            }
            for (va, length) in [
                (0x7fff, 2),
                (0x8000, 0xc001),
                (0x13fff, 2),
                (0x14000, 1),
                (0x8001, 1 << 48),
            ] {
                assert_eq!(key_op(&mut b, KeyOp { va, length, ..o }), RANGE, "{va:#x} {length:#x}");
            }
            let other = b.ok(&Cmd::create_mr(&Mr {
                kind: 0,
                pd: 0,
                access: 0b1_0001,
                ..fast_reg(4)
            }));
            assert_eq!(
                key_op(
                    &mut b,
                    KeyOp {
                        lkey: other,
                        va: 0x8000,
                        length: 8,
                        ..o
                    }
                ),
                PD,
                "the region's"
            );
            for access in [0b0101, 0b1_0100] {
                // Without MW_BIND; without LOCAL_WRITE, of which a window that lets others write has need.
                let shut = b.ok(&Cmd::create_mr(&Mr {
                    kind: 0,
                    access,
                    ..fast_reg(4)
                }));
                assert_eq!(
                    key_op(
                        &mut b,
                        KeyOp {
                            lkey: shut,
                            va: 0x8000,
                            length: 8,
                            ..o
                        }
                    ),
                    ACCESS
                );
            }
            b.ok(&Cmd::destroy_mr(other));
            assert_eq!(key_op(&mut b, o), OK);

            // Place 0x3210 of the region.
            let bus = |at: u64| match paged_region {
                true => ((at + 0x123) / 0x1000 + 1) * 0x10_0000 + (at + 0x123) % 0x1000,
                false => 0x77_0000_0040 + at,
            };
            let l = Lookup {
                key: window + 1,
                va: 0x8000 + 0x3210,
                len: 8,
                pd: 1,
                qpn: 0x77,
                access: 0b0010,
                judge: false,
            };
            for at in [0, 1, 0xccc, 0xccd, 0xdef, 0x1ff8] {
                assert_eq!(
                    ask(&mut b, 0, Lookup { va: l.va + at, ..l }),
                    (OK, bus(0x3210 + at)),
                    "{at:#x}"
                );
            }
            assert_eq!(
                ask(&mut b, 0, Lookup { va: l.va - 1, ..l }).0,
                RANGE,
                "in the region, not in the window"
            );
            assert_eq!(ask(&mut b, 0, Lookup { va: l.va + 0x1ff9, ..l }).0, RANGE);
            assert_eq!(ask(&mut b, 0, Lookup { qpn: 0x78, ..l }).0, QP, "another QP");
            assert_eq!(ask(&mut b, 0, Lookup { qpn: 0, ..l }).0, QP, "a local access");
            assert_eq!(ask(&mut b, 0, Lookup { access: 0b1000, ..l }).0, ACCESS);
            assert_eq!(ask(&mut b, 0, Lookup { pd: 0, ..l }).0, PD);

            // The region is in use; the window is bound.
            b.refused(&Cmd::destroy_mr(region), 6, 0);
            b.refused(
                &Cmd::rereg_mr(
                    region,
                    &Mr {
                        access: 1,
                        ..fast_reg(9)
                    },
                    4,
                ),
                6,
                0,
            );
            assert_eq!(key_op(&mut b, KeyOp { key: window + 2, ..o }), IN_USE);
            for port in 0..2 {
                let i = Invalidate {
                    key: window + 1,
                    pd: 1,
                    qpn: 0x78,
                };
                let n = b.inv_done[port].len();
                b.push_invalidate(port, i);
                b.until("an answer", 200, |b| b.inv_done[port].len() > n);
                assert_eq!(b.inv_done[port][n], QP);
            }
            let i = Invalidate {
                key: window + 1,
                pd: 1,
                qpn: 0x77,
            };
            b.push_invalidate(1, i);
            b.until("an answer", 200, |b| b.inv_done[1].last() == Some(&OK));
            assert_eq!(ask(&mut b, 0, l).0, KEY);
            // Bound again, zero-based; then the command frees it, bound as it is, and the region is free.
            assert_eq!(
                key_op(
                    &mut b,
                    KeyOp {
                        key: window + 3,
                        access: 0b10_0010,
                        ..o
                    }
                ),
                OK
            );
            let l = Lookup {
                key: window + 3,
                va: 0x1800,
                ..l
            };
            assert_eq!(ask(&mut b, 0, l), (OK, bus(0x3210 + 0x1800)));
            assert_eq!(ask(&mut b, 0, Lookup { va: 0x1ff9, ..l }).0, RANGE);
            b.refused(&Cmd::destroy_mr(region), 6, 0);
            b.ok(&Cmd::destroy_mr(window));
            assert_eq!(ask(&mut b, 0, l).0, KEY);
            b.ok(&Cmd::destroy_mr(region));
        }
    }
}

#[test]
fn a_fast_region_with_windows_is_not_invalidated() {
    let mut b = bench(64);
    let fast = b.ok(&Cmd::create_mr(&Mr {
        access: 0b1_0001,
        ..fast_reg(1)
    }));
    let windows: Vec<u32> = (0..3)
        .map(|i| {
            b.ok(&Cmd::create_mr(&Mr {
                kind: 2,
                access: 0,
                va: 0,
                length: 0,
                host_addr: 0,
                ..fast_reg(i)
            }))
        })
        .collect();
    for w in &windows {
        let o = KeyOp {
            op: 2,
            key: *w,
            pd: 1,
            qpn: 0x123,
            access: 2,
            va: 0x8000,
            length: 8,
            host_addr: 0,
            log_page: 0,
            page_offset: 0,
            lkey: fast,
        };
        assert_eq!(key_op(&mut b, o), OK);
    }
    for (i, w) in windows.iter().enumerate() {
        for port in 0..2 {
            assert_eq!(invalidate(&mut b, port, fast, 1), IN_USE);
        }
        b.refused(&Cmd::destroy_mr(fast), 6, 0);
        assert_eq!(invalidate(&mut b, i % 2, *w, 1), OK);
    }
    assert_eq!(invalidate(&mut b, 0, fast, 1), OK);
}

#[test]
fn a_region_is_changed_in_what_is_named_and_the_barrier_comes_before_the_completion() {
    for width in WIDTHS {
        let mut b = bench(width);
        write_list(&mut b, OUT, &[0x10_0000, 0x20_0000]);
        let old = Mr { kind: 0, ..fast_reg(3) };
        let key = b.ok(&Cmd::create_mr(&old));
        let l = Lookup {
            key,
            va: 0x8010,
            len: 16,
            pd: 1,
            qpn: 0,
            access: 0b0100,
            judge: false,
        };
        let new = Mr {
            pd: 0,
            access: 0b0011,
            key: 0x44,
            va: 0x100_0000,
            length: 6000,
            ..paged(12, OUT, 0x80, 0)
        };
        for (name, bad) in [(4, key ^ 1), (4, key + 0x900)] {
            b.refused(&Cmd::rereg_mr(bad, &new, 7), 3, name);
        }
        b.refused(&Cmd::rereg_mr(key, &new, 0), 4, 14);
        b.refused(&Cmd::rereg_mr(key, &Mr { pd: 9, ..new }, 2), 3, 8);
        b.refused(&Cmd::rereg_mr(key, &Mr { access: 2, ..new }, 4), 4, 10);
        b.refused(
            &Cmd::rereg_mr(
                key,
                &Mr {
                    host_addr: OUT + 8,
                    ..new
                },
                1,
            ),
            4,
            32,
        );
        assert_eq!(ask(&mut b, 0, l), (OK, 0x77_0000_0050), "a refusal changes nothing");
        // What is not named is not looked at.
        let barriers = b.barriers;
        let k1 = b.ok(&Cmd::rereg_mr(
            key,
            &Mr {
                pd: 99,
                length: 0,
                access: 1,
                key: 3,
                ..new
            },
            4,
        ));
        assert_eq!((k1, b.barriers), (key, barriers + 1));
        assert_eq!(ask(&mut b, 0, l).0, ACCESS);
        assert_eq!(ask(&mut b, 0, Lookup { access: 1, ..l }), (OK, 0x77_0000_0050));
        let k2 = b.ok(&Cmd::rereg_mr(key, &new, 3));
        assert_eq!(k2, key & !0xff | 0x44);
        assert_eq!(ask(&mut b, 0, l).0, KEY);
        let l = Lookup {
            key: k2,
            pd: 0,
            va: 0x100_0f90,
            access: 1,
            ..l
        };
        assert_eq!(ask(&mut b, 0, l), (OK, 0x20_0010));
        assert_eq!(ask(&mut b, 0, Lookup { access: 2, ..l }).0, ACCESS, "the access stayed");
        // The domains know their users.
        b.ok(&Cmd::destroy_pd(1));
        b.refused(&Cmd::destroy_pd(0), 6, 0);
        b.ok(&Cmd::destroy_mr(k2));
        b.ok(&Cmd::destroy_pd(0));
    }
}

#[test]
fn a_region_that_is_changed_under_lookups_is_either_the_old_or_the_new_and_never_the_old_after_the_barrier() {
    for width in WIDTHS {
        let mut b = bench(width);
        let key = b.ok(&Cmd::create_mr(&Mr { kind: 0, ..fast_reg(3) }));
        let l = Lookup {
            key,
            va: 0x8000,
            len: 1,
            pd: 1,
            qpn: 0,
            access: 1,
            judge: false,
        };
        b.put(&Cmd::rereg_mr(
            key,
            &Mr {
                kind: 0,
                host_addr: 0x99_0000,
                ..fast_reg(3)
            },
            1,
        ));
        b.doorbell(b.produced);
        let mut done = None;
        for _ in 0..200 {
            if b.lookups[2].is_empty() {
                b.lookups[2].push_back(l);
            }
            b.step();
            if done.is_none() && b.poll().is_some() {
                done = Some(b.found[2].len());
            }
        }
        let turn = b.found[2].iter().position(|f| *f == (OK, 0x99_0000)).unwrap();
        assert!(turn > 0 && turn < done.unwrap());
        assert!(b.found[2][..turn].iter().all(|f| *f == (OK, 0x77_0000_0040)));
        assert!(b.found[2][turn..].iter().all(|f| *f == (OK, 0x99_0000)));
    }
}
