// SPDX-License-Identifier: Apache-2.0
//! `make bench`: measures the design, prints each figure beside its limit, writes `out/bench.json`, and fails when a
//! limit is missed. Limits come from `spec/budgets.toml`; figures without one are for information.
//!
//! The only place of the project that looks at the wall clock and at the processor's: all else is simulated time.

mod control;
mod report;
mod speed;
mod traffic;

use std::process::ExitCode;

use report::Report;

/// What can be measured: name, description, and the function that does it.
type Part = (&'static str, &'static str, fn(&mut Report) -> anyhow::Result<()>);

const PARTS: [Part; 4] = [
    ("batch", "batches of queue pairs, one MODIFY", control::batches),
    ("create", "CREATE one by one", control::one_by_one),
    ("speed", "speed of the simulation", speed::speed),
    ("traffic", "goodput and small messages", traffic::traffic),
];

fn main() -> anyhow::Result<ExitCode> {
    let chosen: Vec<String> = std::env::args().skip(1).collect();
    if let Some(wrong) = chosen.iter().find(|c| PARTS.iter().all(|(name, _, _)| name != c)) {
        let names: Vec<&str> = PARTS.iter().map(|(name, _, _)| *name).collect();
        anyhow::bail!(
            "no part of the bench is called {wrong}; there are: {}",
            names.join(", ")
        );
    }
    let mut report = Report::default();
    for (name, what, measure) in PARTS {
        if !chosen.is_empty() && !chosen.iter().any(|c| c == name) {
            continue;
        }
        report.progress(what);
        // A figure that cannot be measured is a figure missed.
        if let Err(error) = measure(&mut report) {
            report.fail(name, &error);
        }
    }
    println!("{}", report.table());
    report.write("out/bench.json")?;
    let missed = report.missed();
    if missed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("{} missed: {}", missed.len(), missed.join(", "));
    Ok(ExitCode::FAILURE)
}
