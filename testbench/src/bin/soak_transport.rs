// SPDX-License-Identifier: Apache-2.0
//! `make soak-transport`: random traffic between two NICs against the independent transport model, at length.
//!
//! ```text
//! soak-transport [--shard K/N] [--cycles C] [--seed S] [--episode E] [--out DIR]   one shard of a run
//! soak-transport --merge [--out DIR]                                               results of all shards together
//! soak-transport --replay FILE [--pcap FILE]                                       a difference again, with its frames
//! ```

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use openrnic_testbench::shards::{self, Shard as _};
use openrnic_testbench::transport::Difference;
use openrnic_testbench::transport::run::{Episode, MUST, Report, Setup};
use openrnic_testbench::transport::shrink::shrink;
use serde::{Deserialize, Serialize};

/// Rounds of an episode: from power-up on, with its own seed.
const ROUNDS: u64 = 12;

#[derive(Debug, Clone, Default)]
struct Args {
    shard: Option<(u64, u64)>,
    cycles: Option<u64>,
    seed: Option<u64>,
    episode: Option<u64>,
    out: Option<PathBuf>,
    merge: bool,
    replay: Option<PathBuf>,
    pcap: Option<PathBuf>,
    no_shrink: bool,
}

fn args() -> anyhow::Result<Args> {
    let mut a = Args::default();
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().with_context(|| format!("{word} needs a value"));
        match word.as_str() {
            "--shard" => a.shard = Some(shards::parse(&value()?)?),
            "--cycles" => a.cycles = Some(value()?.replace('_', "").parse()?),
            "--seed" => a.seed = Some(value()?.parse()?),
            "--episode" => a.episode = Some(value()?.parse()?),
            "--out" => a.out = Some(value()?.into()),
            "--merge" => a.merge = true,
            "--replay" => a.replay = Some(value()?.into()),
            "--pcap" => a.pcap = Some(value()?.into()),
            "--no-shrink" => a.no_shrink = true,
            _ => bail!("soak-transport knows no {word}; see the top of testbench/src/bin/soak_transport.rs"),
        }
    }
    Ok(a)
}

fn main() -> anyhow::Result<ExitCode> {
    let args = args()?;
    let out = args.out.clone().unwrap_or_else(|| "out/soak-transport".into());
    if let Some(file) = &args.replay {
        return replay(file, args.pcap.clone());
    }
    if args.merge {
        return merge(&out);
    }
    run(&args, &out)
}

/// Result of a shard, one line of JSON.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Shard {
    shard: u64,
    shards: u64,
    seed: u64,
    /// Cycles of all shards together.
    of_cycles: u64,
    episodes: u64,
    seconds: f64,
    cycles_per_second: f64,
    report: Report,
    differences: Vec<PathBuf>,
}

impl shards::Shard for Shard {
    fn of(&self) -> shards::Of {
        shards::Of {
            shard: self.shard,
            shards: self.shards,
            seed: self.seed,
            length: self.of_cycles,
        }
    }
}

/// A difference that was found, to be played again.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Found {
    setup: Setup,
    difference: Difference,
}

/// Episodes take turns with the data width and with the number of connections.
fn setup_of(seed: u64, episode: u64) -> Setup {
    let seed = shards::episode_seed(seed, episode);
    // Both widths for each shard, however many there are.
    let width = if (episode + episode / 2).is_multiple_of(2) {
        64
    } else {
        512
    };
    let connections = [8, 16, 4, 32, 12, 24][(episode / 2 % 6) as usize];
    let mut setup = Setup::new(width, seed, connections, ROUNDS);
    // Some are quiet: nothing may come twice there.
    setup.bad_wire = episode % 7 != 6;
    setup.rough_hosts = episode % 5 != 4;
    setup.faults = episode % 3 != 2;
    setup.key_faults = episode % 6 == 4;
    setup
}

fn run(args: &Args, out: &Path) -> anyhow::Result<ExitCode> {
    std::fs::create_dir_all(out)?;
    let (shard, shards) = args.shard.unwrap_or((1, 1));
    let of_cycles = args.cycles.unwrap_or(100_000_000);
    let seed = args.seed.unwrap_or(1);
    let mine = of_cycles.div_ceil(shards);
    println!("soak-transport: shard {shard}/{shards}, seed {seed}: {mine} of {of_cycles} cycles");
    let mut result = Shard {
        shard,
        shards,
        seed,
        of_cycles,
        episodes: 0,
        seconds: 0.0,
        cycles_per_second: 0.0,
        report: Report::default(),
        differences: Vec::new(),
    };
    let started = Instant::now();
    let mut episode = shard - 1;
    let mut file;
    loop {
        if let Some(only) = args.episode {
            episode = only;
        }
        let setup = setup_of(seed, episode);
        let (report, found, round) = carry_out(&setup, None);
        result.report.merge(&report);
        result.episodes += 1;
        if let Some(difference) = found {
            println!("soak-transport: DIFFERENCE in episode {episode} of seed {seed}, round {round:?}: {difference}");
            let name = format!("difference-{seed}-{episode}");
            result
                .differences
                .push(tell(out, &name, &setup, &difference, round, args.no_shrink)?);
        }
        let seconds = started.elapsed().as_secs_f64();
        result.seconds = (seconds * 10.0).round() / 10.0;
        result.cycles_per_second = (result.report.cycles as f64 / seconds).round();
        // Kept up to date: what a run that is ended early has seen counts.
        file = shards::write(out, &result)?;
        println!(
            "soak-transport: episode {episode}: {} of {mine} cycles, {:.0}/s, {} differences",
            result.report.cycles,
            result.cycles_per_second,
            result.differences.len()
        );
        if args.episode.is_some() || result.report.cycles >= mine {
            break;
        }
        if result.differences.len() >= 5 {
            println!("soak-transport: five differences are enough");
            break;
        }
        episode += shards;
    }
    println!("soak-transport: {}", file.display());
    Ok(if result.differences.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// What an episode has seen, the difference if there was one, and the round that showed it.
fn carry_out(setup: &Setup, pcap: Option<PathBuf>) -> (Report, Option<Difference>, Option<u64>) {
    carry_out_telling(setup, pcap, false)
}

/// The same; the work of the round that failed is printed when asked for.
fn carry_out_telling(setup: &Setup, pcap: Option<PathBuf>, tell: bool) -> (Report, Option<Difference>, Option<u64>) {
    let mut episode = match Episode::new(setup, pcap) {
        Ok(e) => e,
        Err(d) => return (Report::default(), Some(d), None),
    };
    for round in &setup.rounds {
        if let Err(d) = episode.round(*round) {
            episode.flush();
            if tell {
                println!("round {round}:");
                for line in episode.work() {
                    println!("{line}");
                }
            }
            return (episode.report(), Some(d), Some(*round));
        }
    }
    episode.flush();
    (episode.report(), None, None)
}

/// Writes a difference down, shrunk, with its frames.
fn tell(
    out: &Path,
    name: &str,
    setup: &Setup,
    difference: &Difference,
    round: Option<u64>,
    no_shrink: bool,
) -> anyhow::Result<PathBuf> {
    let patience = Duration::from_secs(if no_shrink { 0 } else { 300 });
    let (setup, difference) = shrink(setup, difference, round, patience);
    let file = out.join(format!("{name}.json"));
    let pcap = out.join(format!("{name}.pcapng"));
    std::fs::write(
        &file,
        serde_json::to_string_pretty(&Found {
            setup: setup.clone(),
            difference: difference.clone(),
        })? + "\n",
    )?;
    carry_out(&setup, Some(pcap.clone()));
    println!(
        "soak-transport: shrunk to {} connections, rounds {:?}: {difference}",
        setup.connections.len(),
        setup.rounds
    );
    println!(
        "soak-transport: again: soak-transport --replay {}; its frames: {}",
        file.display(),
        pcap.display()
    );
    Ok(file)
}

fn replay(file: &Path, pcap: Option<PathBuf>) -> anyhow::Result<ExitCode> {
    let text = std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    let found: Found = serde_json::from_str(&text).with_context(|| file.display().to_string())?;
    println!("recorded: {}", found.difference);
    let (report, difference, round) = carry_out_telling(&found.setup, pcap, true);
    println!("{} cycles, {} rounds", report.cycles, report.rounds);
    match difference {
        Some(d) => {
            println!("DIFFERENCE in round {round:?}: {d}");
            Ok(ExitCode::FAILURE)
        }
        None => {
            println!("no difference: RTL and model agree");
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn merge(out: &Path) -> anyhow::Result<ExitCode> {
    let (results, missing) = shards::read::<Shard>(out)?;
    let first = results[0].of();
    let mut report = Report::default();
    for s in &results {
        report.merge(&s.report);
    }
    for (name, n) in &report.seen {
        println!("  {n:>12}  {name}");
    }
    let differences: Vec<&PathBuf> = results.iter().flat_map(|s| &s.differences).collect();
    println!(
        "soak-transport: {} of {} shards, {} of {} cycles, {} rounds in {} episodes, {:.0} s of one core, {} differences",
        results.len(),
        first.shards,
        report.cycles,
        first.length,
        report.rounds,
        results.iter().map(|s| s.episodes).sum::<u64>(),
        results.iter().map(|s| s.seconds).sum::<f64>(),
        differences.len()
    );
    for d in &differences {
        println!("  {}", d.display());
    }
    if !missing.is_empty() {
        println!("soak-transport: shards missing: {missing:?}");
    }
    let unseen: Vec<&str> = MUST.into_iter().filter(|m| !report.seen.contains_key(*m)).collect();
    if !unseen.is_empty() {
        println!("soak-transport: never seen: {}", unseen.join(", "));
    }
    let merged = serde_json::json!({
        "cycles": report.cycles, "rounds": report.rounds, "shards": results.len(), "missing": missing, "seed": first.seed,
        "differences": differences, "seen": report.seen, "unseen": unseen,
    });
    std::fs::write(out.join("merged.json"), serde_json::to_string_pretty(&merged)? + "\n")?;
    let good = missing.is_empty() && unseen.is_empty() && differences.is_empty() && report.cycles >= first.length;
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
