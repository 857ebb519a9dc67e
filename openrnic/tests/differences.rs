// SPDX-License-Identifier: Apache-2.0
//! A difference that the soak finds between RTL and reference model becomes a scenario: it fails on a NIC with that fault and
//! passes on one without.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::process::Command;
use std::time::Duration;

use openrnic::{RunOptions, check, load};
use openrnic_testbench::soak::{Episode, Setup, scenario, shrink};

#[test]
fn a_difference_of_the_soak_is_a_scenario_that_fails_on_that_rtl_and_passes_on_the_good_one() {
    // Found on the block with one feature taken out, and shrunk.
    let cut = "RNIC_CUT_QP_GATE_VALUE";
    let setup = Setup {
        data_width: 64,
        log_table: 6,
        gen_bits: 3,
        seed: 1,
        cut: Some(cut.into()),
        long: false,
    };
    let mut episode = Episode::new(&setup).unwrap();
    let difference = (0..6000).find_map(|_| episode.command().err()).unwrap();
    let small = shrink(&setup, &episode.steps, &difference, Duration::from_secs(60));
    let written = scenario(&small);
    println!("{}", written.toml);
    assert_eq!(written.left_out, Vec::<String>::new());
    let file = std::env::temp_dir().join(format!("openrnic-difference-{}.toml", std::process::id()));
    std::fs::write(&file, &written.toml).unwrap();

    // A whole NIC as it is does what the model says.
    let good = load(&file).unwrap_or_else(|e| panic!("{e}"));
    check::check(&good).unwrap_or_else(|e| panic!("{e}"));
    let outcome = openrnic::run(&good, &RunOptions::default(), |_, _, _| {});
    assert!(outcome.is_ok(), "on the good RTL: {:#}", outcome.err().unwrap().error);

    // One with the fault does not, and says where.
    let run = Command::new(env!("CARGO_BIN_EXE_openrnic"))
        .arg("run")
        .arg(&file)
        .env("OPENRNIC_CUT", cut)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&run.stdout) + String::from_utf8_lossy(&run.stderr);
    println!("{text}");
    std::fs::remove_file(&file).unwrap();
    assert_eq!(run.status.code(), Some(1), "{text}");
    assert!(
        text.contains("the command's completion: status OK, expected GATE_REFUSED"),
        "{text}"
    );
}
