// SPDX-License-Identifier: Apache-2.0
//! The judge of the transport soak can fail: features taken out of the RTL, one at a time, are found by random traffic, as what they
//! are, and the episode that shows it is made small.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use openrnic_testbench::transport::Difference;
use openrnic_testbench::transport::run::Setup;
use openrnic_testbench::transport::shrink::{episode, shrink};

/// With a feature taken out of the RTL: what one of a few episodes shows.
fn found(cut: &str, kinds: &[&str]) -> (Setup, Difference) {
    for seed in 100..106 {
        let mut setup = Setup::new(64, seed, 6, 6);
        setup.cuts = vec![format!("RNIC_CUT_{cut}")];
        setup.faults = false;
        if let Err(d) = episode(&setup) {
            println!("{cut}, seed {seed}: {d}");
            assert!(kinds.contains(&d.kind.as_str()), "{cut}: {d}");
            return (setup, d);
        }
    }
    panic!("{cut}: not found");
}

#[test]
fn an_atomic_that_is_executed_twice_is_found_and_the_episode_shrinks() {
    // The message is counted twice, too, and that shows first.
    let kinds = ["response", "result of an atomic", "MSN", "acknowledge of nothing"];
    let (setup, d) = found("ATOMIC_REPLAY", &kinds);
    let (small, again) = shrink(&setup, &d, None, Duration::from_secs(20));
    println!("{small:?}: {again}");
    assert!(small.connections.len() < setup.connections.len() || small.rounds.len() < setup.rounds.len());
    // It shows the same each time, and nothing with the feature in place.
    assert_eq!(episode(&small), Err(again));
    let whole = Setup {
        cuts: Vec::new(),
        ..small
    };
    assert_eq!(episode(&whole), Ok(()));
}

#[test]
fn a_gap_that_is_told_twice_is_found() {
    found("RECV_GAP_ONCE", &["second NAK of a gap", "sequence NAK"]);
}

#[test]
fn a_fence_that_does_not_wait_is_found() {
    found("FENCE", &["fence"]);
}
