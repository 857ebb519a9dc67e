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
    at_least(&report, &LOSSY);
}

/// What random work on keys, addresses and armed queues comes to at least, far below what it does with the seed of the test.
const LOSSY: [(&str, u64); 14] = [
    ("RegMr completed with status 0", 20),
    ("LocalInv completed with status 0", 10),
    ("BindMw completed with status 0", 10),
    ("registrations invalidated by the peer", 5),
    ("windows invalidated by the peer", 5),
    ("WRITEs through registrations", 4),
    ("READs through registrations", 2),
    ("WRITEs through windows", 4),
    ("READs through windows", 2),
    ("requests that wait for the other end", 10),
    ("connections over IPv6", 3),
    ("queue events: any", 10),
    ("queue events: solicited", 2),
    ("completions that raise no event", 10),
];

#[track_caller]
fn at_least(report: &Report, floors: &[(&str, u64)]) {
    for (what, least) in floors {
        let seen = report.seen.get(*what).copied().unwrap_or_default();
        assert!(seen >= *least, "{what}: {seen}, at least {least} are asked for");
    }
}

/// Half of the connections do what a key, a window or a region does not permit.
fn refused(width: usize) {
    let seed = openrnic_testbench::seed(1);
    let report = good(&Setup {
        key_faults: true,
        ..Setup::new(width, seed * 16 + 8, 10, 5)
    });
    at_least(
        &report,
        &[
            ("RegMr completed with status 0", 20),
            ("LocalInv completed with status 0", 5),
            ("BindMw completed with status 0", 5),
            ("RegMr completed with status 6", 1),
            ("LocalInv completed with status 6", 1),
            ("BindMw completed with status 6", 1),
            ("fault StaleKey", 1),
            ("fault OthersWindow", 2),
            ("fault BadInvalidate", 2),
            ("NAKs remote access error", 4),
        ],
    );
}

#[test]
fn what_keys_and_windows_refuse_is_refused_as_the_model_says_at_64_bits() {
    refused(64);
}

#[test]
fn what_keys_and_windows_refuse_is_refused_as_the_model_says_at_512_bits() {
    refused(512);
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
