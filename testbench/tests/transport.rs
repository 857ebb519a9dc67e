// SPDX-License-Identifier: Apache-2.0
//! Random traffic between two NICs against the independent transport model: a slice of `make soak-transport` at both widths.

use openrnic_testbench::transport::Difference;
use openrnic_testbench::transport::run::{Episode, Report, Setup};

fn slice(setup: &Setup) -> Result<Report, Difference> {
    let mut episode = Episode::new(setup, None)?;
    episode.all()?;
    Ok(episode.report())
}

fn good(setup: &Setup) -> Report {
    match slice(setup) {
        Ok(report) => {
            println!("{report:#?}");
            report
        }
        Err(d) => panic!("{setup:?}: {d}"),
    }
}

/// Things were lost, doubled, late and damaged, and repaired.
fn lossy(width: usize) {
    let seed = openrnic_testbench::seed(1);
    let mut report = Report::default();
    for n in 0..2 {
        report.merge(&good(&Setup::new(width, seed * 16 + n, 8, 4)));
    }
    for what in [
        "wire: frames lost",
        "wire: frames doubled",
        "wire: frames held back",
        "wire: frames changed",
        "packets sent again",
        "requests that were duplicates",
        "requests out of sequence",
        "NAKs sequence error",
    ] {
        assert!(report.seen.contains_key(what), "{what}: never");
    }
}

#[test]
fn random_traffic_on_a_bad_wire_is_that_of_the_model_at_64_bits() {
    lossy(64);
}

#[test]
fn random_traffic_on_a_bad_wire_is_that_of_the_model_at_512_bits() {
    lossy(512);
}

#[test]
fn on_a_sound_wire_each_packet_is_sent_once() {
    let seed = openrnic_testbench::seed(1);
    for width in [64, 512] {
        let report = good(&Setup {
            bad_wire: false,
            faults: false,
            ..Setup::new(width, seed, 6, 2)
        });
        for what in [
            "wire: frames lost",
            "wire: frames changed",
            "requests that were duplicates",
        ] {
            assert!(!report.seen.contains_key(what), "{what}: {:?}", report.seen);
        }
    }
}
