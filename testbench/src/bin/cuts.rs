// SPDX-License-Identifier: Apache-2.0
//! `make cuts`: takes every feature of the RTL out, one at a time, and expects the test that the table
//! (`testbench/features.toml`) names to fail. Arguments choose features by switch, target or test.
//!
//! A cut is *noticed* when the test ran and failed, *survives* when it passed, and counts as *not run* when the model
//! could not be built or the test gave no answer in time: that proves nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use comfy_table::{Table, presets};
use openrnic_testbench::features::{self, Feature};

/// Longest time that one test may take, the build of its models included.
const PATIENCE: Duration = Duration::from_secs(900);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Outcome {
    Passed,
    Failed,
    NotRun(String),
}

fn main() -> anyhow::Result<ExitCode> {
    let table = features::table()?;
    for open in features::open()? {
        eprintln!(
            "open: RNIC_CUT_{} is in no test's sight: {} is missing",
            open.cut, open.missing
        );
    }
    // A table that is not whole is a failure, but what it has can be tried.
    let whole = features::check(&table);
    if let Err(error) = &whole {
        eprintln!("{error:#}");
    }
    let chosen = choose(&table, &std::env::args().skip(1).collect::<Vec<_>>())?;
    let programs = build(&chosen)?;
    let log = std::env::temp_dir().join(format!("openrnic-cuts-{}.log", std::process::id()));
    let started = Instant::now();
    let progress = |what: &str| eprintln!("[{:6.0} s] {what}", started.elapsed().as_secs_f64());

    // Uncut, every test passes: else its failure with a cut says nothing.
    let mut sound = BTreeMap::new();
    for feature in &chosen {
        let key = test_of(feature);
        if let std::collections::btree_map::Entry::Vacant(e) = sound.entry(key) {
            let outcome = run(&programs, feature, None, &log)?;
            progress(&format!("uncut: {}::{}: {outcome:?}", feature.target, feature.test));
            e.insert(outcome);
        }
    }

    let mut out = Table::new();
    out.load_preset(presets::UTF8_HORIZONTAL_ONLY);
    out.set_header(["feature", "switch", "test", "result"]);
    let mut bad = Vec::new();
    for feature in &chosen {
        let result = match &sound[&test_of(feature)] {
            Outcome::Passed => match run(&programs, feature, Some(&feature.define()), &log)? {
                Outcome::Failed => "noticed".to_owned(),
                Outcome::Passed => "SURVIVES".to_owned(),
                Outcome::NotRun(why) => format!("NOT RUN: {why}"),
            },
            Outcome::Failed => "NOT RUN: the test fails without the cut".to_owned(),
            Outcome::NotRun(why) => format!("NOT RUN: {why}"),
        };
        progress(&format!("{}: {result}", feature.cut));
        if result != "noticed" {
            bad.push(feature.cut.clone());
        }
        let test = format!("{}::{}", feature.target, feature.test);
        out.add_row([feature.feature.clone(), feature.cut.clone(), test, result]);
    }
    // Only what this run wrote.
    let _ = std::fs::remove_file(&log);
    println!("{out}");
    println!("{} of {} cuts noticed", chosen.len() - bad.len(), chosen.len());
    if !bad.is_empty() {
        eprintln!("not noticed: {}", bad.join(", "));
    }
    if whole.is_err() {
        eprintln!("and the table does not agree with the RTL, see above");
    }
    Ok(if bad.is_empty() && whole.is_ok() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Features named by switch (with or without its prefix), target or test; all without names.
fn choose(table: &[Feature], names: &[String]) -> anyhow::Result<Vec<Feature>> {
    let fits = |f: &Feature, n: &String| *n == f.cut || *n == f.define() || *n == f.target || *n == f.test;
    if let Some(wrong) = names.iter().find(|n| !table.iter().any(|f| fits(f, n))) {
        bail!("testbench/features.toml has no switch, target or test {wrong}");
    }
    let wanted = |f: &&Feature| names.is_empty() || names.iter().any(|n| fits(f, n));
    Ok(table.iter().filter(wanted).cloned().collect())
}

fn test_of(feature: &Feature) -> (String, String, String) {
    (feature.package.clone(), feature.target.clone(), feature.test.clone())
}

type Programs = BTreeMap<(String, String), PathBuf>;

/// Builds the test programs, once; the cuts change only the models that they build when they run.
fn build(chosen: &[Feature]) -> anyhow::Result<Programs> {
    let targets: BTreeSet<_> = chosen.iter().map(|f| (f.package.clone(), f.target.clone())).collect();
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut programs = Programs::new();
    for (package, target) in targets {
        let output = Command::new(&cargo)
            .current_dir(features::project_root())
            .args(["test", "-q", "--no-run", "--message-format=json"])
            .args(["-p", &package, "--test", &target])
            .stderr(Stdio::inherit())
            .output()
            .context("running cargo")?;
        ensure!(output.status.success(), "the tests {target} of {package} do not build");
        let program = String::from_utf8_lossy(&output.stdout)
            .lines()
            .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
            .filter(|v| v["target"]["name"] == target.as_str() && v["target"]["kind"][0] == "test")
            .find_map(|v| v["executable"].as_str().map(PathBuf::from));
        let program = program.with_context(|| format!("cargo names no program of {target}"))?;
        programs.insert((package, target), program);
    }
    Ok(programs)
}

fn run(programs: &Programs, feature: &Feature, cut: Option<&str>, log: &Path) -> anyhow::Result<Outcome> {
    let program = &programs[&(feature.package.clone(), feature.target.clone())];
    let dir = features::package_dir(&feature.package)?;
    let file = File::create(log).with_context(|| format!("creating {}", log.display()))?;
    let mut command = Command::new(program);
    command
        .args(["--exact", &feature.test, "--nocapture"])
        .current_dir(&dir)
        .env("CARGO_MANIFEST_DIR", &dir)
        .env_remove("OPENRNIC_CUT")
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file);
    if let Some(cut) = cut {
        command.env("OPENRNIC_CUT", cut);
    }
    let mut child = command
        .spawn()
        .with_context(|| format!("starting {}", program.display()))?;
    let end = Instant::now() + PATIENCE;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if Instant::now() > end {
            child.kill()?;
            child.wait()?;
            return Ok(Outcome::NotRun(format!("no answer in {} s", PATIENCE.as_secs())));
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let text = String::from_utf8_lossy(&std::fs::read(log)?).into_owned();
    let outcome = if text.contains("running 0 tests") {
        Outcome::NotRun("the target has no such test".to_owned())
    } else if !text.contains("running 1 test") {
        Outcome::NotRun("the test program did not start".to_owned())
    } else if status.success() {
        Outcome::Passed
    } else if let Some(line) = text.lines().find(|l| model_is_missing(l)) {
        Outcome::NotRun(line.trim().chars().take(200).collect())
    } else {
        Outcome::Failed
    };
    Ok(outcome)
}

/// Messages of `openrnic_sim::model::ModelError` that tell that there is no model to test.
fn model_is_missing(line: &str) -> bool {
    (line.contains("building ") && line.contains(" failed: "))
        || line.contains("Verilator not found")
        || line.contains("cannot be used: ")
        || line.contains("ModelError")
        || line.contains("Build {")
}
