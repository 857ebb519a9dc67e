// SPDX-License-Identifier: Apache-2.0
//! Makes a failing episode small: fewer connections, fewer rounds, fewer requests, a sound wire, quiet hosts, as long as a
//! difference of the same kind shows.

use std::time::{Duration, Instant};

use super::Difference;
use super::run::{Episode, Setup};

/// Runs an episode from the start.
///
/// # Errors
/// The first difference.
pub fn episode(setup: &Setup) -> Result<(), Difference> {
    Episode::new(setup, None)?.all()
}

/// The smallest episode found within a time that still shows a difference of this kind, and the difference that it shows.
pub fn shrink(
    setup: &Setup,
    difference: &Difference,
    failed_in: Option<u64>,
    patience: Duration,
) -> (Setup, Difference) {
    let until = Instant::now() + patience;
    let mut best = (setup.clone(), difference.clone());
    if let Some(round) = failed_in {
        best.0.rounds.retain(|r| *r <= round);
    }
    let mut again = true;
    while again && Instant::now() < until {
        again = false;
        for candidate in candidates(&best.0) {
            if Instant::now() >= until {
                break;
            }
            if let Err(d) = episode(&candidate)
                && d.kind == difference.kind
            {
                best = (candidate, d);
                again = true;
                break;
            }
        }
    }
    best
}

/// Setups that are smaller in one way, boldest first.
fn candidates(s: &Setup) -> Vec<Setup> {
    let mut out = Vec::new();
    let mut with = |change: &dyn Fn(&mut Setup)| {
        let mut c = s.clone();
        change(&mut c);
        if c != *s && !c.rounds.is_empty() && !c.connections.is_empty() {
            out.push(c);
        }
    };
    if s.rounds.len() > 1 {
        with(&|c| c.rounds = c.rounds.split_off(c.rounds.len() - 1));
        with(&|c| c.rounds = c.rounds.split_off(c.rounds.len() / 2));
    }
    let half = s.connections.len() / 2;
    if half > 0 {
        with(&|c| c.connections.truncate(half));
        with(&|c| {
            c.connections.drain(..half);
        });
    }
    with(&|c| c.bad_wire = false);
    with(&|c| c.rough_hosts = false);
    with(&|c| c.faults = false);
    with(&|c| c.keys = false);
    with(&|c| c.v6 = false);
    with(&|c| c.armed = false);
    for most in [1, 2, 4, 8] {
        with(&|c| c.most = c.most.min(most));
    }
    if s.connections.len() <= 8 {
        for at in 0..s.connections.len() {
            with(&|c| {
                c.connections.remove(at);
            });
        }
    }
    for at in 0..s.rounds.len() {
        with(&|c| {
            c.rounds.remove(at);
        });
    }
    out
}
