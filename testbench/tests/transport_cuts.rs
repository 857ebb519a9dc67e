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
    let mut setup = Setup::new(64, 0, 6, 6);
    setup.cuts = vec![format!("RNIC_CUT_{cut}")];
    setup.faults = false;
    shown(cut, &setup, kinds)
}

/// What one of a few episodes like this one shows.
fn shown(cut: &str, like: &Setup, kinds: &[&str]) -> (Setup, Difference) {
    for seed in 100..106 {
        let setup = Setup { seed, ..like.clone() };
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
    // The message is counted twice, too, and that shows first; or the requester fails over what is answered to it, and its peer's receives are flushed.
    let kinds = [
        "response",
        "result of an atomic",
        "MSN",
        "acknowledge of nothing",
        "receive completion",
    ];
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

/// One NIC without four features, each in the way of what the others are asked to show: an episode shows one of them alone.
fn without_four() -> Setup {
    let cuts = ["MR_LIVE", "MW_QP", "CQ_SOLICITED", "TX_IPV6"];
    Setup {
        cuts: cuts.map(|c| format!("RNIC_CUT_{c}")).to_vec(),
        faults: false,
        keys: false,
        v6: false,
        armed: false,
        bad_wire: false,
        ..Setup::new(64, 0, 8, 4)
    }
}

#[test]
fn keys_that_outlive_their_invalidation_and_windows_for_everybody_are_found() {
    let setup = Setup {
        keys: true,
        faults: true,
        key_faults: true,
        ..without_four()
    };
    shown(
        "MR_LIVE, MW_QP",
        &setup,
        &["acknowledge of nothing", "response to nothing"],
    );
}

#[test]
fn events_for_what_a_queue_is_not_armed_for_are_found() {
    let setup = Setup {
        armed: true,
        ..without_four()
    };
    shown("CQ_SOLICITED", &setup, &["queue event"]);
}

#[test]
fn frames_without_their_ipv6_header_are_found() {
    let setup = Setup {
        v6: true,
        ..without_four()
    };
    shown("TX_IPV6", &setup, &["frame"]);
}
