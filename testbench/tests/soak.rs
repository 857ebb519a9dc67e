// SPDX-License-Identifier: Apache-2.0
//! What `make soak` does with a difference, and a slice of its run on a large table.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use openrnic_testbench::soak::{Episode, Replay, Scale, Setup, scale, shrink};

/// With one feature taken out of the RTL: how a run shows it, shrunk.
fn shrunk(cut: &str) -> Replay {
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
    let n = episode.steps.len();
    let small = shrink(&setup, &episode.steps, &difference, Duration::from_secs(60));
    println!("{n} steps shrink to {}", small.to_json().unwrap());
    small
}

#[test]
fn a_difference_shrinks_to_a_few_commands_that_show_it_again() {
    let small = shrunk("RNIC_CUT_QP_GATE_VALUE");
    assert!(small.commands() <= 3, "{} commands", small.commands());
    // As the file has it, it shows the same again; with the feature in place there is no difference.
    let file = std::env::temp_dir().join(format!("openrnic-soak-{}.json", std::process::id()));
    std::fs::write(&file, small.to_json().unwrap()).unwrap();
    let mut again = Replay::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert_eq!(again, small);
    assert_eq!(again.run(|_, _| {}), Some(small.difference));
    again.setup.cut = None;
    assert_eq!(again.run(|_, _| {}), None);
}

#[test]
fn lives_by_the_thousand_leak_nothing_and_keep_their_pace() {
    let slice = Scale {
        setup: Setup {
            data_width: 64,
            log_table: 8,
            gen_bits: 2,
            seed: 1,
            cut: None,
            long: false,
        },
        lives: 6000,
        batch: 64,
        windows: 2,
    };
    let report = scale(&slice, |_| {}).unwrap();
    println!("{report:?}");
    assert!(report.numbers_again > 1000, "generations go round");
    assert!(report.spread() < 15.0, "the pace is even");
}
