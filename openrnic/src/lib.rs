// SPDX-License-Identifier: Apache-2.0
//! Scenarios of OpenRNIC: read, checked, run. The command line is a thin layer above.

pub mod attrs;
pub mod check;
pub mod frame;
pub mod host_fault;
mod raw;
pub mod replay;
pub mod report;
pub mod run;
pub mod scenario;
pub mod shared;
mod transfer;
pub mod value;
pub mod world;

use std::path::Path;

pub use run::{Run, RunOptions, Summary};
pub use scenario::{BadScenario, Scenario};

/// Reads and checks a scenario; nothing runs.
///
/// # Errors
/// The first mistake, with file, line and column.
pub fn load(file: &Path) -> Result<Scenario, BadScenario> {
    let scenario = Scenario::load(file)?;
    check::check(&scenario)?;
    Ok(scenario)
}

/// A run that did not go as the scenario says.
#[derive(Debug)]
pub struct Failure {
    /// Line of the step; `None` when the run failed before the first or after the last.
    pub line: Option<usize>,
    /// Name of the step.
    pub step: String,
    /// What went wrong.
    pub error: anyhow::Error,
    /// Simulated time in nanoseconds.
    pub time_ns: u64,
    /// Seed in use.
    pub seed: u64,
    /// Width in use.
    pub data_width: usize,
    /// With [`RunOptions::on_stall`], when a wait ran out: what each queue pair waits for.
    pub stall: Option<String>,
}

/// Runs a checked scenario. `progress` is told each step before it starts: its number from 0, and simulated
/// time.
///
/// # Errors
/// The step that failed.
pub fn run(
    scenario: &Scenario,
    options: &RunOptions,
    mut progress: impl FnMut(usize, &scenario::Step, u64),
) -> Result<Summary, Box<Failure>> {
    let early = |error: anyhow::Error, step: &str| {
        let seed = options.seed.or(scenario.doc.sim.seed).unwrap_or(1);
        let data_width = options.data_width.unwrap_or(64);
        Box::new(Failure {
            line: None,
            step: step.to_owned(),
            error,
            time_ns: 0,
            seed,
            data_width,
            stall: None,
        })
    };
    let mut run = Run::new(scenario, options).map_err(|e| early(e, "bring-up"))?;
    for (i, step) in scenario.steps.iter().enumerate() {
        progress(i, step, run.time_ns());
        if let Err(error) = run.step(step) {
            run.flush();
            let (seed, data_width) = run.settings();
            let time_ns = run.time_ns();
            let stall = if options.on_stall {
                run.stall_report(&error)
            } else {
                None
            };
            return Err(Box::new(Failure {
                line: Some(step.line),
                step: step.name.clone(),
                error,
                time_ns,
                seed,
                data_width,
                stall,
            }));
        }
    }
    run.finish().map_err(|e| early(e, "end"))
}
