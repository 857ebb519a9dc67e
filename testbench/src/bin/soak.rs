// SPDX-License-Identifier: Apache-2.0
//! `make soak`: the differential test of the QP engine at length.
//!
//! ```text
//! soak [--shard K/N] [--commands C] [--seed S] [--episode E] [--out DIR]   one shard of a run
//! soak --merge [--out DIR]                                                 results of all shards together
//! soak --replay FILE                                                       a shrunk difference again, step by step
//! soak --scale [--lives L] [--seed S]                                      lives by the million on a large table
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use comfy_table::{Table, presets};
use openrnic_testbench::shards::{self, Shard as _};
use openrnic_testbench::soak::{Episode, MUST, Replay, Scale, Setup, Step, scale, scenario, shrink};
use serde::{Deserialize, Serialize};

/// Commands of an episode: from power-up on, with its own seed. A difference is found again from the two alone.
const EPISODE: u64 = 20_000;

#[derive(Debug, Clone, Default)]
struct Args {
    shard: Option<(u64, u64)>,
    commands: Option<u64>,
    seed: Option<u64>,
    episode: Option<u64>,
    out: Option<PathBuf>,
    merge: bool,
    replay: Option<PathBuf>,
    scale: bool,
    lives: Option<u64>,
}

fn args() -> anyhow::Result<Args> {
    let mut a = Args::default();
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().with_context(|| format!("{word} needs a value"));
        match word.as_str() {
            "--shard" => a.shard = Some(shards::parse(&value()?)?),
            "--commands" => a.commands = Some(value()?.replace('_', "").parse()?),
            "--seed" => a.seed = Some(value()?.parse()?),
            "--episode" => a.episode = Some(value()?.parse()?),
            "--out" => a.out = Some(value()?.into()),
            "--merge" => a.merge = true,
            "--replay" => a.replay = Some(value()?.into()),
            "--scale" => a.scale = true,
            "--lives" => a.lives = Some(value()?.replace('_', "").parse()?),
            _ => bail!("soak knows no {word}; see the top of testbench/src/bin/soak.rs"),
        }
    }
    Ok(a)
}

fn main() -> anyhow::Result<ExitCode> {
    let args = args()?;
    let out = args.out.clone().unwrap_or_else(|| "out/soak".into());
    if let Some(file) = &args.replay {
        return replay(file);
    }
    if args.merge {
        return merge(&out);
    }
    if args.scale {
        return run_scale(&args, &out);
    }
    run(&args, &out)
}

// ---------------------------------------------------------------- shards

/// Result of a shard, one line of JSON.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Shard {
    shard: u64,
    shards: u64,
    seed: u64,
    /// Commands of all shards together.
    of_commands: u64,
    commands: u64,
    episodes: u64,
    seconds: f64,
    commands_per_second: f64,
    cycles: u64,
    differences: Vec<PathBuf>,
    seen: BTreeMap<String, u64>,
}

impl shards::Shard for Shard {
    fn of(&self) -> shards::Of {
        shards::Of {
            shard: self.shard,
            shards: self.shards,
            seed: self.seed,
            length: self.of_commands,
        }
    }
}

/// Episodes take turns with the data width.
fn setup_of(seed: u64, episode: u64) -> Setup {
    Setup {
        data_width: if episode.is_multiple_of(2) { 64 } else { 512 },
        log_table: 6,
        gen_bits: 3,
        seed: shards::episode_seed(seed, episode),
        cut: None,
        long: true,
    }
}

fn add(to: &mut BTreeMap<String, u64>, from: BTreeMap<String, u64>) {
    for (name, n) in from {
        *to.entry(name).or_default() += n;
    }
}

fn run(args: &Args, out: &Path) -> anyhow::Result<ExitCode> {
    std::fs::create_dir_all(out)?;
    let (shard, shards) = args.shard.unwrap_or((1, 1));
    let of_commands = args.commands.unwrap_or(10_000_000);
    let seed = args.seed.unwrap_or(1);
    let episodes = of_commands.div_ceil(EPISODE);
    let mine: Vec<u64> = match args.episode {
        Some(e) => vec![e],
        None => (0..episodes).filter(|e| e % shards == shard - 1).collect(),
    };
    let length = |e: u64| of_commands.saturating_sub(e * EPISODE).min(EPISODE);
    let total: u64 = mine.iter().map(|e| length(*e)).sum();
    println!(
        "soak: shard {shard}/{shards}, seed {seed}: {total} of {of_commands} commands in {} episodes",
        mine.len()
    );
    let mut result = Shard {
        shard,
        shards,
        seed,
        of_commands,
        commands: 0,
        episodes: 0,
        seconds: 0.0,
        commands_per_second: 0.0,
        cycles: 0,
        differences: Vec::new(),
        seen: BTreeMap::new(),
    };
    // Both models are built before the clock runs.
    for episode in 0..2 {
        Episode::new(&setup_of(seed, episode)).map_err(|d| anyhow::anyhow!("{}: {}", d.kind, d.text))?;
    }
    let started = Instant::now();
    let mut told = started;
    for episode in mine {
        let setup = setup_of(seed, episode);
        let begun = Episode::new(&setup).map_err(|d| anyhow::anyhow!("{}: {}", d.kind, d.text))?;
        let mut e = begun;
        for _ in 0..length(episode) {
            let done = e.command();
            result.commands += 1;
            if let Err(difference) = done {
                println!(
                    "soak: DIFFERENCE in episode {episode} of seed {seed}, after {} steps: {}: {}",
                    e.steps.len(),
                    difference.kind,
                    difference.text
                );
                let raw = out.join(format!("difference-{seed}-{episode}.raw.json"));
                let whole = Replay {
                    setup: setup.clone(),
                    difference: difference.clone(),
                    steps: e.steps.clone(),
                };
                std::fs::write(&raw, whole.to_json()?)?;
                let small = shrink(&setup, &e.steps, &difference, Duration::from_secs(300));
                let file = out.join(format!("difference-{seed}-{episode}.json"));
                std::fs::write(&file, small.to_json()?)?;
                println!(
                    "soak: shrunk to {} commands: soak --replay {}",
                    small.commands(),
                    file.display()
                );
                let written = scenario(&small);
                let toml = file.with_extension("toml");
                std::fs::write(&toml, &written.toml)?;
                println!("soak: on a whole NIC: openrnic run {}", toml.display());
                for what in &written.left_out {
                    println!("soak: the scenario cannot say: {what}");
                }
                result.differences.push(file);
                break;
            }
            if told.elapsed() > Duration::from_secs(10) {
                told = Instant::now();
                let rate = result.commands as f64 / started.elapsed().as_secs_f64();
                println!(
                    "soak: {} of {total} commands, {rate:.0}/s, {:.0} s to go, {} differences",
                    result.commands,
                    (total - result.commands) as f64 / rate,
                    result.differences.len()
                );
            }
        }
        result.episodes += 1;
        result.cycles += e.judge.bench.cycles();
        add(&mut result.seen, e.judge.seen.counts());
        if result.differences.len() >= 5 {
            println!("soak: five differences are enough");
            break;
        }
    }
    result.seconds = (started.elapsed().as_secs_f64() * 10.0).round() / 10.0;
    result.commands_per_second = (result.commands as f64 / started.elapsed().as_secs_f64()).round();
    let file = shards::write(out, &result)?;
    println!(
        "soak: {} commands, {} cycles in {} s, {} commands/s, {} differences; {}",
        result.commands,
        result.cycles,
        result.seconds,
        result.commands_per_second,
        result.differences.len(),
        file.display()
    );
    Ok(if result.differences.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn merge(out: &Path) -> anyhow::Result<ExitCode> {
    let (results, missing) = shards::read::<Shard>(out)?;
    let first = results[0].of();
    let mut seen = BTreeMap::new();
    for s in &results {
        add(&mut seen, s.seen.clone());
    }
    for (name, n) in &seen {
        println!("  {n:>12}  {name}");
    }
    let commands: u64 = results.iter().map(|s| s.commands).sum();
    let seconds: f64 = results.iter().map(|s| s.seconds).sum();
    let differences: Vec<&PathBuf> = results.iter().flat_map(|s| &s.differences).collect();
    println!(
        "soak: {} of {} shards, {commands} commands, {} cycles, {seconds:.0} s of one core, {} differences",
        results.len(),
        first.shards,
        results.iter().map(|s| s.cycles).sum::<u64>(),
        differences.len()
    );
    for d in &differences {
        println!("  {}", d.display());
    }
    if !missing.is_empty() {
        println!("soak: shards missing: {missing:?}");
    }
    let unseen: Vec<&str> = MUST.into_iter().filter(|m| !seen.contains_key(*m)).collect();
    if !unseen.is_empty() {
        println!("soak: never seen: {}", unseen.join(", "));
    }
    let merged = serde_json::json!({
        "commands": commands, "shards": results.len(), "missing": missing, "seed": first.seed, "seconds": seconds,
        "differences": differences, "seen": seen,
    });
    std::fs::write(out.join("merged.json"), serde_json::to_string_pretty(&merged)? + "\n")?;
    let good = missing.is_empty() && unseen.is_empty() && differences.is_empty() && commands == first.length;
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

// ---------------------------------------------------------------- replay

fn replay(file: &Path) -> anyhow::Result<ExitCode> {
    let replay = Replay::read(file)?;
    println!("{}: {:?}", file.display(), replay.setup);
    println!("recorded: {}: {}", replay.difference.kind, replay.difference.text);
    let mut n = 0;
    let shown = replay.run(|step, outcome| {
        n += 1;
        match step {
            Step::Command(call) => {
                println!("{n:>4}  {:?}", call.cmd);
                if !call.list.is_empty() {
                    println!("      list {:x?}", call.list);
                }
                for record in &call.records {
                    println!("      {record:?}");
                }
                if let Some(addr) = call.broken {
                    println!("      {addr:#x} cannot be read");
                }
                for said in &call.reports {
                    println!("      {said:?}");
                }
                if let Some(o) = outcome {
                    println!("      -> {:?}", o.completion);
                }
            }
            other => println!("{n:>4}  {other:?}"),
        }
    });
    match shown {
        Some(d) => {
            println!("      DIFFERENCE: {}: {}", d.kind, d.text);
            Ok(ExitCode::FAILURE)
        }
        None => {
            println!("no difference: RTL and model agree");
            Ok(ExitCode::SUCCESS)
        }
    }
}

// ---------------------------------------------------------------- scale

fn run_scale(args: &Args, out: &Path) -> anyhow::Result<ExitCode> {
    std::fs::create_dir_all(out)?;
    let what = Scale {
        setup: Setup {
            data_width: 512,
            log_table: 14,
            gen_bits: 3,
            seed: args.seed.unwrap_or(1),
            cut: None,
            long: true,
        },
        lives: args.lives.unwrap_or(1_000_000),
        batch: 2048,
        windows: 10,
    };
    println!(
        "soak: {} lives on a table of {} QPs, seed {}",
        what.lives,
        1 << what.setup.log_table,
        what.setup.seed
    );
    let started = Instant::now();
    let report = match scale(&what, |lives| {
        println!("soak: {lives} lives, {:.0} s", started.elapsed().as_secs_f64())
    }) {
        Ok(report) => report,
        Err(d) => {
            println!("soak: FAILED: {}: {}", d.kind, d.text);
            return Ok(ExitCode::FAILURE);
        }
    };
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header(["cycles per QP".to_owned(), "first tenth to last tenth".to_owned()]);
    for (name, windows) in &report.cycles_per_qp {
        let list: Vec<String> = windows.iter().map(|w| format!("{w:.2}")).collect();
        table.add_row([name.clone(), list.join("  ")]);
    }
    println!("{table}");
    println!(
        "soak: {} lives, {} commands, {} cycles, at most {} QPs, {} numbers came again; spread {:.1} %; {:.0} s",
        report.lives,
        report.commands,
        report.cycles,
        report.most,
        report.numbers_again,
        report.spread(),
        started.elapsed().as_secs_f64()
    );
    std::fs::write(out.join("scale.json"), serde_json::to_string(&report)? + "\n")?;
    let good = report.numbers_again > 0 && report.spread() < 10.0;
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
