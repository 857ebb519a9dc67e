// SPDX-License-Identifier: Apache-2.0
//! Every scenario that ships is well-formed and runs as it says.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::{Path, PathBuf};

use openrnic::RunOptions;

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios")
}

fn run(name: &str, data_width: usize) -> openrnic::Summary {
    let file = directory().join(name).with_extension("toml");
    let scenario = openrnic::load(&file).unwrap_or_else(|e| panic!("{e}"));
    let seed = std::env::var("OPENRNIC_SEED").ok().and_then(|s| s.parse().ok());
    let options = RunOptions {
        seed,
        data_width: Some(data_width),
        ..RunOptions::default()
    };
    let outcome = openrnic::run(&scenario, &options, |_, _, _| {});
    outcome.unwrap_or_else(|f| {
        let line = f.line.unwrap_or(0);
        panic!(
            "{}:{line}: {}: {:#}\nOPENRNIC_SEED={} at {} bits",
            file.display(),
            f.step,
            f.error,
            f.seed,
            f.data_width
        )
    })
}

macro_rules! scenarios {
    ($($name:ident),*) => {
        const TESTED: &[&str] = &[$(stringify!($name)),*];
        mod at_64_bits { $(#[test] fn $name() { super::run(stringify!($name), 64); })* }
        mod at_512_bits { $(#[test] fn $name() { super::run(stringify!($name), 512); })* }
    };
}

scenarios!(
    quickstart,
    batch_install,
    gate_refusals,
    single_modify,
    read_multi_packet,
    write_imm,
    mtu_sweep,
    many_sges,
    bad_frames,
    bad_doorbells,
    destroy_recreate,
    remote_access_errors,
    bad_commands,
    host_faults,
    wire_faults,
    reset,
    slow_host,
    one_install,
    srq,
    atomics,
    send_inv,
    ipv6
);

/// The widths between take the same paths as their neighbours: the broadest scenarios show that they work.
macro_rules! between {
    ($($name:ident),*) => {
        mod at_128_bits { $(#[test] fn $name() { super::run(stringify!($name), 128); })* }
        mod at_256_bits { $(#[test] fn $name() { super::run(stringify!($name), 256); })* }
    };
}

between!(
    quickstart,
    mtu_sweep,
    many_sges,
    bad_frames,
    batch_install,
    read_multi_packet
);

#[test]
fn every_scenario_that_ships_is_run_here() {
    let mut shipped: Vec<String> = std::fs::read_dir(directory())
        .unwrap()
        .map(|f| f.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .filter_map(|path| path.file_stem().map(|s| s.to_string_lossy().into_owned()))
        .collect();
    let mut tested: Vec<String> = TESTED.iter().map(|s| (*s).to_owned()).collect();
    shipped.sort();
    tested.sort();
    assert_eq!(shipped, tested);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let (a, b) = (run("quickstart", 64), run("quickstart", 64));
    assert_eq!((a.cycles, a.frames, a.counters), (b.cycles, b.frames, b.counters));
}
