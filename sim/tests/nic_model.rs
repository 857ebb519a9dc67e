// SPDX-License-Identifier: Apache-2.0
//! The whole world around Verilated RTL, at both widths: a stub with the pins of the NIC.
#![allow(clippy::unwrap_used, clippy::expect_used)] // a test may

mod common;

use std::path::Path;

use common::enumerate;
use openrnic_driver::bus::Bus;
use openrnic_sim::model::{ModelError, NicSpec};
use openrnic_sim::{NicBus, SharedWorld, SimError, World, WorldParams};

fn stub(data_width: usize) -> NicSpec {
    NicSpec {
        top: Some("stub_nic".to_owned()),
        sources: vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rtl/stub_nic.sv")],
        params: vec![("DataW".to_owned(), data_width.to_string())],
        ..NicSpec::new(data_width)
    }
}

fn params(data_width: usize) -> WorldParams {
    WorldParams {
        nic: stub(data_width),
        ..WorldParams::default()
    }
}

fn start(params: &WorldParams) -> (SharedWorld, Vec<NicBus>) {
    let world = World::new(params).unwrap().shared();
    let mut buses: Vec<NicBus> = (0..params.nics).map(|n| NicBus::new(&world, n).unwrap()).collect();
    buses.iter_mut().for_each(enumerate);
    (world, buses)
}

#[test]
fn registers_dma_and_frames_work_on_rtl_at_both_widths() {
    for width in [64, 512] {
        for seed in 0..5 {
            let (world, mut buses) = start(&WorldParams { seed, ..params(width) });
            let bus = &mut buses[0];
            bus.mmio_write64(0x18, 0x0123_4567_89ab_cdef).unwrap();
            bus.mmio_write32(0x1c, 0x5555_aaaa).unwrap();
            assert_eq!(bus.mmio_read64(0x18).unwrap(), 0x5555_aaaa_89ab_cdef);
            assert_eq!(bus.mmio_read32(0x18).unwrap(), 0x89ab_cdef);
            assert_eq!(bus.mmio_read32(0x1c).unwrap(), 0x5555_aaaa);

            let buf = bus.dma_alloc(128, 64).unwrap();
            let content: Vec<u8> = (0..64).map(|i| i * 3 + seed as u8).collect();
            bus.dma_write(buf.addr, &content).unwrap();
            bus.mmio_write64(0x80, buf.addr).unwrap();
            bus.advance(500).unwrap();
            let mut got = [0; 64];
            bus.dma_read(buf.addr + 64, &mut got).unwrap();
            assert!(
                got.iter().zip(&content).all(|(a, b)| *a == !*b),
                "{width} bits, seed {seed}"
            );

            bus.mmio_write64(0x88, 0x42).unwrap();
            bus.advance(200).unwrap();
            assert_eq!(buses[1].mmio_read64(0x90).unwrap(), 64 << 32 | 1);
            assert_eq!(world.borrow_mut().wire().stats(1).received, 1);
            assert_eq!(world.borrow_mut().take_violations(), []);
        }
    }
}

#[test]
fn a_run_repeats_bit_for_bit() {
    let run = |seed| {
        let (world, mut buses) = start(&WorldParams { seed, ..params(64) });
        let buf = buses[0].dma_alloc(128, 64).unwrap();
        buses[0].mmio_write64(0x80, buf.addr).unwrap();
        let mut w = world.borrow_mut();
        w.run_until("the DMA write", 5000, |w| w.host(0).unwrap().stats().writes == 1)
            .unwrap();
        (w.cycle(), w.host(0).unwrap().stats())
    };
    assert_eq!(run(3), run(3));
    assert_ne!(run(3), run(4));
}

#[test]
fn a_trace_holds_all_nics_and_its_signal_groups_name_them() {
    let dir = std::env::temp_dir().join(format!("onr-trace-{}", std::process::id()));
    let path = dir.join("demo.fst");
    {
        let (world, mut buses) = start(&WorldParams {
            trace: Some(path.clone()),
            ..params(64)
        });
        buses[1].mmio_write64(0x18, 0x1234_5678_9abc_def0).unwrap();
        buses[1].mmio_read64(0x18).unwrap();
        buses[0].mmio_write64(0x88, 0x42).unwrap();
        buses[0].advance(300).unwrap();
        world.borrow_mut().flush().unwrap();
        drop(buses);
    }
    let mut waves = wellen::simple::read(&path).unwrap();
    let period = 8000;
    assert!(waves.time_table().last().is_some_and(|t| *t > 300 * period));
    let groups = std::fs::read_to_string(path.with_extension("gtkw")).unwrap();
    let signals: Vec<&str> = groups.lines().filter(|l| l.starts_with("nic")).collect();
    assert_eq!(signals.len(), 2 * 35);
    for signal in signals {
        let name = signal.split('[').next().unwrap();
        let (scope, variable) = name.rsplit_once('.').unwrap();
        let scope: Vec<&str> = scope.split('.').collect();
        assert!(
            waves.hierarchy().lookup_var(&scope, variable).is_some(),
            "{name} is not in the trace"
        );
    }
    let commands = std::fs::read_to_string(path.with_extension("sucl")).unwrap();
    assert_eq!(commands.matches("variable_add").count(), 2 * 35);
    // The write to NIC 1's register is seen in NIC 1 and not in NIC 0.
    for nic in ["nic0", "nic1"] {
        let var = waves.hierarchy().lookup_var(&[nic, "stub_nic"], "cq_data_i").unwrap();
        let signal = waves.hierarchy()[var].signal_ref();
        waves.load_signals(&[signal]);
        let wanted = format!("{:064b}", 0x1234_5678_9abc_def0u64);
        let seen = waves
            .get_signal(signal)
            .unwrap()
            .iter_changes()
            .any(|(_, v)| v.to_string().ends_with(&wanted));
        assert_eq!(seen, nic == "nic1", "{nic}");
    }
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_failed_assertion_names_the_nic_and_ends_the_run() {
    let (world, _) = start(&params(64));
    let mut w = world.borrow_mut();
    let now = w.cycle();
    w.wire().inject(now, 1, &[0; 64], true, 0).unwrap();
    match w.run(200) {
        Err(SimError::Model(ModelError::Assertion { model, place, .. })) => {
            assert!(
                model.starts_with("nic1") && place.contains("stub_nic.sv"),
                "{model} {place}"
            );
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_top_with_other_pins_is_refused_with_the_pin_by_name() {
    let mut spec = stub(64);
    spec.data_width = 512;
    let error = World::new(&WorldParams {
        nic: spec,
        ..WorldParams::default()
    })
    .err()
    .unwrap();
    assert!(error.to_string().contains("input cq_data_i of 512 bits"), "{error}");
    let error = World::new(&WorldParams {
        nic: NicSpec::new(1024),
        ..WorldParams::default()
    })
    .err()
    .unwrap();
    assert!(error.to_string().contains("rnic_top_1024"), "{error}");
}
