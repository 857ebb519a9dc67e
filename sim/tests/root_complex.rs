// SPDX-License-Identifier: Apache-2.0
//! The root complex against a scripted device.

#![allow(clippy::unwrap_used, clippy::expect_used)] // a test may

mod common;

use common::{Beat, enumerate, enumerated, request, world};
use openrnic_driver::bus::{Bus, BusError};
use openrnic_sim::pcie::{CompletionFault, HostParams, Split, Which, regs};
use openrnic_sim::rng::Stream;
use openrnic_sim::{Misdeed, NicBus, SimError, WorldParams};
use openrnic_spec::{BAR0_BYTES, CcHdr, CplStatus, CqHdr, PCI_DEVICE_ID, PCI_VENDOR_ID, RcHdr};

fn one(host: HostParams) -> WorldParams {
    WorldParams {
        nics: 1,
        host,
        ..WorldParams::default()
    }
}

fn tolerant(host: HostParams) -> WorldParams {
    WorldParams {
        stop_on_violation: false,
        ..one(host)
    }
}

fn misdeeds(bus: &NicBus) -> Vec<Misdeed> {
    bus.world()
        .borrow_mut()
        .take_violations()
        .into_iter()
        .map(|v| v.what)
        .collect()
}

#[test]
fn a_function_is_found_sized_and_mapped_through_config_space() {
    let (world, scripts) = world(&one(HostParams::default()));
    let mut bus = NicBus::new(&world.shared(), 0).unwrap();
    assert_eq!(bus.config_read(regs::ID).unwrap(), u32::MAX, "in reset nothing answers");
    assert_eq!(bus.mmio_read32(0), Err(BusError::NotMapped));
    bus.advance(100).unwrap();
    assert_eq!(
        bus.config_read(regs::ID).unwrap(),
        u32::from(PCI_DEVICE_ID) << 16 | u32::from(PCI_VENDOR_ID)
    );
    bus.config_write(regs::BAR0, u32::MAX).unwrap();
    assert_eq!(!(bus.config_read(regs::BAR0).unwrap() & !0xf), BAR0_BYTES - 1);
    assert!(!scripts[0].borrow().bus_master);
    enumerate(&mut bus);
    bus.advance(1).unwrap();
    assert!(scripts[0].borrow().bus_master && scripts[0].borrow().port_up);
    assert_eq!(bus.mmio_read32(0), Ok(0));
    assert_eq!(scripts[0].borrow().resets, 1);
}

#[test]
fn bar_accesses_arrive_as_tlps_with_byte_enables_and_in_order() {
    let host = HostParams {
        mmio_jitter_ns: 2000,
        ..HostParams::default()
    };
    for (seed, width) in [(1, 64), (2, 512)] {
        let mut params = WorldParams {
            seed,
            ..one(host.clone())
        };
        params.nic.data_width = width;
        let (_, mut bus, script) = enumerated(&params);
        script.borrow_mut().ready_every = 3;
        for i in 0..200u64 {
            bus.mmio_write64(0x100 + i * 8, 0x1111_2222_0000_0000 + i).unwrap();
        }
        bus.mmio_write32(0x104, 7).unwrap();
        assert_eq!(
            bus.mmio_read64(0x100).unwrap(),
            7 << 32,
            "a read pushes the writes before it"
        );
        assert_eq!(bus.mmio_read32(0x10c).unwrap(), 0x1111_2222);
        let s = script.borrow();
        let addrs: Vec<u64> = s.requests.iter().take(200).map(|(_, h, _)| h.addr()).collect();
        assert!(addrs.iter().enumerate().all(|(i, a)| *a == 0x100 + i as u64 * 8));
        let (_, header, data) = &s.requests[0];
        assert_eq!(
            (header.dw_len(), header.first_be(), header.last_be(), data.len()),
            (2, 0xf, 0xf, 8)
        );
        let (_, header, data) = &s.requests[200];
        assert_eq!(
            (header.dw_len(), header.first_be(), header.last_be(), data.as_slice()),
            (1, 0xf, 0, &[7, 0, 0, 0][..])
        );
        let (_, header, data) = s.requests.last().unwrap();
        assert_eq!(
            (header.wr(), header.addr(), header.bar(), data.len()),
            (false, 0x10c, 0, 0)
        );
    }
}

#[test]
fn bad_bar_accesses_are_refused_before_the_device_sees_them() {
    let (_, mut bus, script) = enumerated(&one(HostParams::default()));
    assert_eq!(
        bus.mmio_read32(u64::from(BAR0_BYTES)),
        Err(BusError::OutsideBar {
            offset: 0x40000,
            bytes: 4,
            bar_bytes: 0x40000
        })
    );
    assert!(matches!(
        bus.mmio_write64(0x40000 - 4, 0),
        Err(BusError::Misaligned { align: 8, .. })
    ));
    assert!(matches!(
        bus.mmio_read64(u64::MAX - 7),
        Err(BusError::OutsideBar { .. })
    ));
    assert!(matches!(bus.config_read(2), Err(BusError::Misaligned { .. })));
    assert!(matches!(bus.config_write(0x1000, 0), Err(BusError::Invalid { .. })));
    bus.config_write(regs::COMMAND, 0).unwrap();
    assert_eq!(bus.mmio_write32(0, 0), Err(BusError::NotMapped));
    assert!(script.borrow().requests.is_empty());
}

#[test]
fn split_answers_of_the_device_are_put_together() {
    let (world, mut bus, script) = enumerated(&one(HostParams::default()));
    for i in 0..64 {
        script.borrow_mut().bar[0x200 + i] = i as u8;
    }
    script.borrow_mut().split_answers = true;
    assert_eq!(bus.mmio_read64(0x208).unwrap(), 0x0f0e_0d0c_0b0a_0908);
    for (off, len) in [(0x200, 64), (0x201, 30), (0x203, 1), (0x206, 7)] {
        let mut w = world.borrow_mut();
        let now = w.cycle();
        let id = w.host(0).unwrap().mmio_read(now, off, len);
        let bytes = w.finish_read(0, id, 10_000).unwrap().unwrap();
        let wanted: Vec<u8> = (0..len).map(|i| (off as usize - 0x200 + i) as u8).collect();
        assert_eq!(bytes, wanted);
    }
}

#[test]
fn a_read_that_the_device_refuses_garbles_or_ignores_is_an_error() {
    let (world, mut bus, script) = enumerated(&tolerant(HostParams::default()));
    script.borrow_mut().status = CplStatus::Ur;
    assert_eq!(
        bus.mmio_read32(0),
        Err(BusError::Completion {
            offset: 0,
            status: "unsupported request"
        })
    );
    script.borrow_mut().status = CplStatus::Ca;
    assert_eq!(
        bus.mmio_read64(8),
        Err(BusError::Completion {
            offset: 8,
            status: "completer abort"
        })
    );
    assert_eq!(misdeeds(&bus), []);
    script.borrow_mut().answer = false;
    assert!(matches!(
        bus.mmio_read32(0),
        Err(BusError::Timeout { what: "a BAR read", .. })
    ));
    // An answer to what was given up, and one to what was never asked.
    let tag = script.borrow().requests.last().unwrap().1.tag();
    let late = CcHdr::new().with_tag(tag).with_byte_count(4).with_dw_len(1);
    script.borrow_mut().complete(late, &[0; 4]);
    bus.advance(50).unwrap();
    assert!(matches!(&misdeeds(&bus)[..], [Misdeed::BadCompletion { .. }]));
    // Wrong byte count, lower address, length, requester, status.
    for wrong in 0..5 {
        let id = {
            let mut w = world.borrow_mut();
            let now = w.cycle();
            let id = w.host(0).unwrap().mmio_read(now, 0x44, 4);
            w.run(100).unwrap();
            id
        };
        let tag = script.borrow().requests.last().unwrap().1.tag();
        let good = CcHdr::new()
            .with_tag(tag)
            .with_byte_count(4)
            .with_dw_len(1)
            .with_lower_addr(0x44);
        let (bad, data) = match wrong {
            0 => (good.with_byte_count(8), 4),
            1 => (good.with_lower_addr(0x40), 4),
            2 => (good.with_dw_len(2), 8),
            3 => (good.with_requester_id(5), 4),
            _ => (good.with_status(3), 4),
        };
        script.borrow_mut().complete(bad, &[0; 8][..data]);
        assert!(world.borrow_mut().finish_read(0, id, 100).unwrap().is_err());
        assert!(
            matches!(&misdeeds(&bus)[..], [Misdeed::BadCompletion { .. }]),
            "case {wrong}"
        );
    }
}

#[test]
fn raw_requests_reach_the_device_as_they_are() {
    let (world, mut bus, script) = enumerated(&one(HostParams::default()));
    script.borrow_mut().answer = false;
    {
        let mut w = world.borrow_mut();
        let host = w.host(0).unwrap();
        host.raw_write(
            0,
            CqHdr::new()
                .with_addr(0x80)
                .with_dw_len(3)
                .with_first_be(0x5)
                .with_poisoned(true),
            vec![1; 12],
        );
        host.raw_read(
            0,
            CqHdr::new()
                .with_addr(0x3_fffc)
                .with_dw_len(8)
                .with_bar(2)
                .with_first_be(0xf)
                .with_last_be(0xf),
        );
        host.raw_completion(RcHdr::new().with_tag(9).with_dw_len(1).with_byte_count(4), vec![0; 4]);
    }
    bus.advance(200).unwrap();
    let s = script.borrow();
    let (_, write, data) = &s.requests[0];
    assert!(write.wr() && write.poisoned() && write.first_be() == 5 && data.len() == 12);
    assert_eq!((s.requests[1].1.bar(), s.requests[1].1.dw_len()), (2, 8));
    assert_eq!(s.completions[0].2.tag(), 9);
}

/// A device reads at random places; every answer must be right, whatever the host does on the way.
fn random_reads(host: HostParams, width: usize, seed: u64) -> (u64, Vec<u16>) {
    let mut params = WorldParams { seed, ..one(host) };
    params.nic.data_width = width;
    let (world, mut bus, script) = enumerated(&params);
    let buf = bus.dma_alloc(16384, 4096).unwrap();
    let content: Vec<u8> = (0..16384u32).map(|i| (i * 7 + i / 251) as u8).collect();
    bus.dma_write(buf.addr, &content).unwrap();
    let mut rng = Stream::new(seed, "test", 0);
    let mut wanted = Vec::new();
    for tag in 0..64 {
        let page = rng.below(4) * 4096;
        let start = page + rng.below(4096);
        let len = 1 + rng.below(512.min(page + 4096 - start));
        // At most 512 bytes counted in whole double words.
        let len = len.min(512 - start % 4);
        script.borrow_mut().read(tag, buf.addr + start, len);
        wanted.push((tag, start, len));
    }
    if seed.is_multiple_of(2) {
        script.borrow_mut().ready_every = 2;
    }
    world
        .borrow_mut()
        .run_until("all completions", 100_000, |w| w.cycle() > 2000 && w.is_idle())
        .unwrap();
    let s = script.borrow();
    for (tag, start, len) in wanted {
        let got = s.answer_of(tag, buf.addr + start, len, 256);
        assert_eq!(
            got,
            content[start as usize..(start + len) as usize],
            "seed {seed}, tag {tag}"
        );
    }
    (
        s.completions.last().unwrap().1,
        s.completions.iter().map(|(_, _, h, _)| h.tag()).collect(),
    )
}

#[test]
fn completions_carry_the_right_bytes_however_they_are_split_and_reordered() {
    for seed in 0..8 {
        for width in [64, 512] {
            for split in [Split::Never, Split::Always, Split::Random] {
                random_reads(
                    HostParams {
                        split,
                        ..HostParams::default()
                    },
                    width,
                    seed,
                );
            }
        }
    }
}

#[test]
fn reads_overtake_each_other_only_where_reordering_is_on() {
    let sorted = |tags: &[u16]| tags.is_sorted();
    let (_, tags) = random_reads(
        HostParams {
            reorder: false,
            ..HostParams::default()
        },
        64,
        3,
    );
    assert!(sorted(&tags), "{tags:?}");
    let (_, tags) = random_reads(HostParams::default(), 64, 3);
    assert!(!sorted(&tags));
    let parts = |tag| {
        tags.iter()
            .enumerate()
            .filter(move |(_, t)| **t == tag)
            .map(|(i, _)| i)
            .collect::<Vec<_>>()
    };
    let interleaved = (0..64).any(|tag| parts(tag).windows(2).any(|w| w[1] != w[0] + 1));
    assert!(interleaved, "parts of different answers must mix");
}

#[test]
fn one_seed_is_one_run_and_another_seed_another() {
    let run = |seed| {
        random_reads(
            HostParams {
                stall: 0.3,
                ..HostParams::default()
            },
            64,
            seed,
        )
    };
    assert_eq!(run(11), run(11));
    assert_ne!(run(11), run(12));
}

#[test]
fn an_ideal_host_answers_within_two_cycles_and_fills_every_beat() {
    let mut params = one(HostParams::ideal());
    params.nic.data_width = 64;
    let (_, mut bus, script) = enumerated(&params);
    let buf = bus.dma_alloc(4096, 4096).unwrap();
    let asked = bus.now_cycles();
    script.borrow_mut().read(1, buf.addr, 256);
    bus.advance(60).unwrap();
    let (first, last, ..) = script.borrow().completions[0];
    assert!(first - asked <= 2, "asked in {asked}, answered from {first} on");
    assert_eq!(last - first, 31);
}

#[test]
fn latencies_are_kept_within_their_jitter() {
    let host = HostParams {
        read_latency_ns: 1000,
        read_jitter_ns: 400,
        split: Split::Never,
        ..HostParams::default()
    };
    let (_, mut bus, script) = enumerated(&one(host));
    let buf = bus.dma_alloc(4096, 4096).unwrap();
    let mut waits = Vec::new();
    for tag in 0..40 {
        let asked = bus.now_cycles();
        script.borrow_mut().read(tag, buf.addr, 4);
        bus.advance(250).unwrap();
        waits.push((script.borrow().completions.last().unwrap().0 - asked) * 8);
    }
    let (least, most) = (*waits.iter().min().unwrap(), *waits.iter().max().unwrap());
    assert!(
        (1000..1100).contains(&least) && (1300..1450).contains(&most),
        "{least} to {most} ns"
    );
}

#[test]
fn a_read_never_passes_an_earlier_write_and_writes_keep_their_order() {
    let host = HostParams {
        write_latency_ns: 3000,
        write_jitter_ns: 2000,
        read_latency_ns: 0,
        ..HostParams::default()
    };
    for seed in 0..20 {
        let (world, mut bus, script) = enumerated(&WorldParams {
            seed,
            ..one(host.clone())
        });
        let buf = bus.dma_alloc(256, 64).unwrap();
        for round in 1..=5u8 {
            script.borrow_mut().write(buf.addr, &[round; 16]);
            script.borrow_mut().write(buf.addr + 8, &[round + 100; 8]);
            script.borrow_mut().read(u16::from(round), buf.addr, 16);
        }
        world
            .borrow_mut()
            .run_until("the answers", 20_000, |w| w.cycle() > 500 && w.is_idle())
            .unwrap();
        for round in 1..=5u8 {
            let got = script.borrow().answer_of(round.into(), buf.addr, 16, 256);
            assert_eq!(got, [[round; 8], [round + 100; 8]].concat(), "seed {seed}");
        }
    }
}

#[test]
fn writes_honour_byte_enables_with_holes_and_empty_requests() {
    let (_, mut bus, script) = enumerated(&one(HostParams::default()));
    let buf = bus.dma_alloc(64, 64).unwrap();
    {
        let mut s = script.borrow_mut();
        let header = request(buf.addr, 8).0.with_wr(true);
        s.request(
            header.with_first_be(0b1010).with_last_be(0b0101),
            &[1, 2, 3, 4, 5, 6, 7, 8],
        );
        s.request(
            header
                .with_addr(buf.addr + 16)
                .with_dw_len(1)
                .with_first_be(0)
                .with_last_be(0),
            &[9; 4],
        );
        s.write(buf.addr + 21, &[7; 5]);
        s.read(1, buf.addr, 1);
        let nothing = request(buf.addr + 8, 4).0.with_first_be(0).with_tag(2);
        s.request(nothing, &[]);
    }
    bus.advance(400).unwrap();
    let mut got = [0; 32];
    bus.dma_read(buf.addr, &mut got).unwrap();
    assert_eq!(got[..8], [0, 2, 0, 4, 5, 0, 7, 0]);
    assert_eq!(got[16..28], [0, 0, 0, 0, 0, 7, 7, 7, 7, 7, 0, 0]);
    let s = script.borrow();
    let (_, _, header, data) = s.completions.iter().find(|(_, _, h, _)| h.tag() == 2).unwrap();
    assert_eq!(
        (header.byte_count(), header.dw_len(), data.len()),
        (1, 1, 4),
        "an empty read is answered"
    );
}

#[test]
fn faults_of_the_host_reach_the_device() {
    let (world, mut bus, script) = enumerated(&one(HostParams {
        split: Split::Always,
        ..HostParams::default()
    }));
    let buf = bus.dma_alloc(4096, 4096).unwrap();
    let faults = [
        CompletionFault::Unsupported,
        CompletionFault::Abort,
        CompletionFault::Poison,
        CompletionFault::Drop,
        CompletionFault::DropLast,
        CompletionFault::Delay(5000),
    ];
    for (i, fault) in faults.into_iter().enumerate() {
        world.borrow_mut().host(0).unwrap().inject_fault(Which::Nth(1), fault);
        let tag = i as u16 * 2;
        script.borrow_mut().read(tag, buf.addr, 200);
        script.borrow_mut().read(tag + 1, buf.addr, 200);
        bus.advance(300).unwrap();
        let came = |tag: u16| -> Vec<RcHdr> {
            script
                .borrow()
                .completions
                .iter()
                .filter(|(_, _, h, _)| h.tag() == tag)
                .map(|(_, _, h, _)| *h)
                .collect()
        };
        assert_eq!(
            (came(tag).len(), came(tag).iter().any(|h| h.poisoned())),
            (4, false),
            "{fault:?}: the first is whole"
        );
        let hit = came(tag + 1);
        match fault {
            CompletionFault::Unsupported | CompletionFault::Abort => {
                let status = if fault == CompletionFault::Abort { 4 } else { 1 };
                assert_eq!((hit.len(), hit[0].status(), hit[0].dw_len()), (1, status, 0));
            }
            CompletionFault::Poison => {
                assert_eq!(
                    hit.iter().map(|h| h.poisoned()).collect::<Vec<_>>(),
                    [true, false, false, false]
                );
            }
            CompletionFault::Drop => assert_eq!(hit.len(), 0),
            CompletionFault::DropLast => assert_eq!(hit.len(), 3),
            CompletionFault::Delay(_) => {
                assert_eq!(hit.len(), 0);
                bus.advance(600).unwrap();
                assert_eq!(came(tag + 1).len(), 4);
            }
        }
    }
    let mut w = world.borrow_mut();
    let host = w.host(0).unwrap();
    assert_eq!(host.stats().faults, 6);
    host.inject_fault(
        Which::Range {
            start: buf.addr,
            len: 1,
            times: u64::MAX,
        },
        CompletionFault::Abort,
    );
    host.clear_faults();
    drop(w);
    script.borrow_mut().read(60, buf.addr, 4);
    bus.advance(200).unwrap();
    assert_eq!(script.borrow().completions.last().unwrap().2.status(), 0);
}

#[test]
fn dma_outside_of_what_is_mapped_is_refused_and_told() {
    let (_, mut bus, script) = enumerated(&tolerant(HostParams::default()));
    let buf = bus.dma_alloc(100, 64).unwrap();
    let gone = bus.dma_alloc(64, 64).unwrap();
    bus.dma_free(gone).unwrap();
    assert_eq!(
        bus.dma_free(gone),
        Err(BusError::NotAllocated {
            addr: gone.addr,
            bytes: 64
        })
    );
    {
        let mut s = script.borrow_mut();
        s.read(1, buf.addr, 100);
        s.read(2, buf.addr, 101);
        s.write(buf.addr + 98, &[1, 2, 3]);
        s.write(gone.addr, &[1]);
        s.read(3, 0, 4);
        s.read(4, u64::MAX - 7, 4);
    }
    bus.advance(500).unwrap();
    let found = misdeeds(&bus);
    let unmapped = |write, addr, bytes| Misdeed::DmaUnmapped { write, addr, bytes };
    assert_eq!(found.len(), 5, "{found:?}");
    for wanted in [
        unmapped(false, buf.addr, 101),
        unmapped(true, buf.addr + 98, 3),
        unmapped(true, gone.addr, 1),
        unmapped(false, 0, 4),
        unmapped(false, u64::MAX - 7, 4),
    ] {
        assert!(found.contains(&wanted), "{wanted:?} in {found:?}");
    }
    let mut tail = [0; 2];
    bus.dma_read(buf.addr + 98, &mut tail).unwrap();
    assert_eq!(tail, [0, 0], "nothing of a refused write arrives");
    let s = script.borrow();
    for tag in [2, 3, 4] {
        let (_, _, header, _) = s.completions.iter().find(|(_, _, h, _)| h.tag() == tag).unwrap();
        assert_eq!(CplStatus::try_from(header.status()), Ok(CplStatus::Ur));
    }
    assert_eq!(s.answer_of(1, buf.addr, 100, 256).len(), 100);
    assert!(matches!(
        bus.dma_read(buf.addr + 99, &mut tail),
        Err(BusError::NotAllocated { .. })
    ));
}

#[test]
fn a_violation_ends_the_step_unless_told_otherwise() {
    let (world, mut bus, script) = enumerated(&one(HostParams::default()));
    script.borrow_mut().read(1, 0x1000, 4);
    let error = bus.advance(100).unwrap_err();
    assert!(
        matches!(&error, BusError::Backend(text) if text.contains("0x1000") && text.contains("not mapped")),
        "{error}"
    );
    assert!(world.borrow_mut().run(100).is_ok(), "the run can go on");
}

#[test]
fn requests_that_pcie_forbids_are_told() {
    let (_, mut bus, script) = enumerated(&tolerant(HostParams {
        read_latency_ns: 2000,
        ..HostParams::default()
    }));
    let buf = bus.dma_alloc(8192, 4096).unwrap();
    let mut check = |what: &str, act: &dyn Fn(&mut common::Script), wanted: fn(&Misdeed) -> bool| {
        act(&mut script.borrow_mut());
        bus.advance(600).unwrap();
        let found = misdeeds(&bus);
        assert!(found.iter().any(wanted), "{what}: {found:?}");
    };
    let base = buf.addr;
    check("payload", &|s| s.write(base, &[0; 260]), |m| {
        matches!(
            m,
            Misdeed::WriteTooLong {
                bytes: 260,
                max: 256,
                ..
            }
        )
    });
    check("read", &|s| s.read(1, base, 516), |m| {
        matches!(
            m,
            Misdeed::ReadTooLong {
                bytes: 516,
                max: 512,
                ..
            }
        )
    });
    check("page", &|s| s.read(1, base + 4092, 8), |m| {
        matches!(m, Misdeed::Crosses4K { bytes: 8, .. })
    });
    check("page", &|s| s.write(base + 4094, &[0; 4]), |m| {
        matches!(m, Misdeed::Crosses4K { .. })
    });
    check("tag", &|s| (0..2).for_each(|_| s.read(5, base, 4)), |m| {
        matches!(m, Misdeed::TagInUse { tag: 5 })
    });
    check(
        "enables",
        &|s| s.request(request(base, 12).0.with_first_be(5), &[]),
        |m| matches!(m, Misdeed::ByteEnables { first: 5, .. }),
    );
    check(
        "zero length",
        &|s| s.request(request(base, 4).0.with_dw_len(0), &[]),
        |m| matches!(m, Misdeed::BadHeader { .. }),
    );
    check(
        "alignment",
        &|s| s.request(request(base, 4).0.with_addr(base + 2), &[]),
        |m| matches!(m, Misdeed::BadHeader { .. }),
    );
    check(
        "reserved",
        &|s| {
            s.request(
                {
                    let mut h = request(base, 4).0;
                    h.0[15] = 1;
                    h
                },
                &[],
            )
        },
        |m| matches!(m, Misdeed::BadHeader { .. }),
    );
    check(
        "length",
        &|s| s.request(request(base, 64).0.with_wr(true), &[0; 32]),
        |m| {
            matches!(
                m,
                Misdeed::PayloadLength {
                    dw_len: 16,
                    beats: 4,
                    ..
                }
            )
        },
    );
    check(
        "header",
        &|s| {
            let header = request(base, 16).0.with_wr(true);
            let other = header.with_tag(3);
            s.raw_beats([(header, false), (other, true)].map(|(h, last)| Beat {
                header: h.0,
                data: vec![0; 8],
                last,
            }));
        },
        |m| matches!(m, Misdeed::HeaderChanged { .. }),
    );
}

#[test]
fn dma_needs_bus_mastering() {
    let (_, mut bus, script) = enumerated(&tolerant(HostParams::default()));
    let buf = bus.dma_alloc(64, 64).unwrap();
    bus.config_write(regs::COMMAND, regs::COMMAND_MEMORY).unwrap();
    bus.advance(100).unwrap();
    assert!(!script.borrow().bus_master);
    script.borrow_mut().read(1, buf.addr, 4);
    script.borrow_mut().write(buf.addr, &[1; 4]);
    bus.advance(200).unwrap();
    assert_eq!(
        misdeeds(&bus),
        [
            Misdeed::NotBusMaster {
                write: false,
                addr: buf.addr
            },
            Misdeed::NotBusMaster {
                write: true,
                addr: buf.addr
            }
        ]
    );
    assert_eq!(script.borrow().completions[0].2.status(), 1);
    let mut got = [9; 4];
    bus.dma_read(buf.addr, &mut got).unwrap();
    assert_eq!(got, [0; 4]);
}

#[test]
fn interrupts_are_messages_in_order_behind_the_writes_before_them() {
    let (world, mut bus, script) = enumerated(&tolerant(HostParams {
        write_latency_ns: 1000,
        write_jitter_ns: 500,
        ..HostParams::default()
    }));
    let buf = bus.dma_alloc(64, 64).unwrap();
    let message = |bus: &mut NicBus, vector| bus.msix_message(vector).unwrap().unwrap();
    for vector in [3, 0, 4] {
        let m = message(&mut bus, vector);
        script.borrow_mut().write(buf.addr + u64::from(vector) * 4, &[1; 4]);
        script.borrow_mut().write(m.addr, &m.data.to_le_bytes());
    }
    let mut order = Vec::new();
    for _ in 0..2000 {
        bus.advance(1).unwrap();
        for vector in bus.take_interrupts() {
            let mut seen = [0; 4];
            bus.dma_read(buf.addr + u64::from(vector) * 4, &mut seen).unwrap();
            assert_eq!(
                seen, [1; 4],
                "what was written before an interrupt is there when it comes"
            );
            order.push(vector);
        }
    }
    assert_eq!(order, [3, 0, 4]);
    assert!(bus.msix_message(5).is_err());
    let m = message(&mut bus, 1);
    script.borrow_mut().write(m.addr, &(m.data + 1).to_le_bytes());
    script.borrow_mut().write(m.addr + 0x100, &m.data.to_le_bytes());
    bus.advance(500).unwrap();
    bus.config_write(regs::MSIX, 0).unwrap();
    script.borrow_mut().write(m.addr, &m.data.to_le_bytes());
    bus.advance(500).unwrap();
    let found = misdeeds(&bus);
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found.iter().all(|m| matches!(m, Misdeed::BadInterrupt { .. })));
    assert_eq!(bus.take_interrupts(), Vec::<u16>::new());
    assert_eq!(world.borrow_mut().host(0).unwrap().stats().interrupts, 3);
}

#[test]
fn a_function_level_reset_ends_everything_and_can_be_survived() {
    let (world, mut bus, script) = enumerated(&one(HostParams {
        read_latency_ns: 5000,
        ..HostParams::default()
    }));
    let buf = bus.dma_alloc(4096, 4096).unwrap();
    bus.mmio_write32(0x10, 5).unwrap();
    bus.mmio_read32(0x10).unwrap();
    script.borrow_mut().read(1, buf.addr, 512);
    script.borrow_mut().answer = false;
    let id = {
        let mut w = world.borrow_mut();
        let now = w.cycle();
        w.host(0).unwrap().mmio_read(now, 0, 4)
    };
    bus.advance(100).unwrap();
    let control = bus.config_read(regs::DEVICE_CONTROL).unwrap() & 0xffff;
    bus.config_write(regs::DEVICE_CONTROL, control | regs::DEVICE_CONTROL_FLR)
        .unwrap();
    assert!(world.borrow_mut().finish_read(0, id, 10).unwrap().is_err());
    assert_eq!(bus.config_read(regs::ID).unwrap(), u32::MAX);
    assert!(script.borrow().reset);
    assert_eq!(bus.mmio_read32(0), Err(BusError::NotMapped));
    bus.advance(2000).unwrap();
    assert_eq!(
        script.borrow().completions.len(),
        0,
        "answers to what was before the reset never come"
    );
    assert_eq!(script.borrow().resets, 2);
    script.borrow_mut().answer = true;
    enumerate(&mut bus);
    script.borrow_mut().read(1, buf.addr, 16);
    bus.advance(1000).unwrap();
    assert_eq!(script.borrow().answer_of(1, buf.addr, 16, 256).len(), 16);
}

#[test]
fn a_host_that_stalls_still_takes_everything_and_sees_beats_held() {
    let (world, mut bus, script) = enumerated(&tolerant(HostParams {
        stall: 0.7,
        ..HostParams::default()
    }));
    let buf = bus.dma_alloc(4096, 64).unwrap();
    for i in 0..16u64 {
        script.borrow_mut().write(buf.addr + i * 256, &[i as u8 + 1; 256]);
    }
    world
        .borrow_mut()
        .run_until("the writes", 20_000, |w| w.host(0).unwrap().stats().writes == 16)
        .unwrap();
    bus.advance(200).unwrap();
    let mut got = vec![0; 4096];
    bus.dma_read(buf.addr, &mut got).unwrap();
    assert!(got.iter().enumerate().all(|(i, b)| usize::from(*b) == i / 256 + 1));
    assert_eq!(misdeeds(&bus), []);
    let stats = world.borrow_mut().host(0).unwrap().stats();
    assert_eq!(
        (stats.from_device.payload, stats.from_device.link_bytes()),
        (4096, 4096 + 16 * 20)
    );
}

#[test]
fn parameters_that_fit_no_world_are_refused() {
    let mut params = one(HostParams::default());
    params.hosts.push((3, HostParams::ideal()));
    let devices = vec![Box::new(common::ScriptedNic(common::Script::new(8))) as Box<dyn openrnic_sim::device::Device>];
    let error = openrnic_sim::World::with_devices(&params, devices).err().unwrap();
    assert!(
        matches!(&error, SimError::Params { what } if what.contains("NIC 3")),
        "{error}"
    );
    let (world, _) = world(&one(HostParams::default()));
    assert!(NicBus::new(&world.shared(), 1).is_err());
}
