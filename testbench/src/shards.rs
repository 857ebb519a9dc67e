// SPDX-License-Identifier: Apache-2.0
//! Soaks in shards: each takes every n-th episode of a run, leaves its result in a file, and the files are put together.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// `3/16`: the third of 16.
///
/// # Errors
/// What a shard is called.
pub fn parse(text: &str) -> anyhow::Result<(u64, u64)> {
    let (k, n) = text.split_once('/').context("a shard is k/n, 1/16 to 16/16")?;
    let (k, n) = (k.parse()?, n.parse()?);
    ensure!(
        (1..=n).contains(&k),
        "shard {k} of {n}: the first is 1/{n}, the last {n}/{n}"
    );
    Ok((k, n))
}

/// Seed of an episode of a run.
pub fn episode_seed(seed: u64, episode: u64) -> u64 {
    seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ episode.wrapping_add(1).wrapping_mul(0xd134_2543_de82_ef95)
}

/// Which run a shard's result is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Of {
    /// The shard, from 1.
    pub shard: u64,
    /// Shards of the run.
    pub shards: u64,
    /// Its seed.
    pub seed: u64,
    /// Its length, all shards together, in whatever the soak counts.
    pub length: u64,
}

/// The result of a shard.
pub trait Shard: Serialize + DeserializeOwned {
    /// Which run it is of.
    fn of(&self) -> Of;
}

/// Writes a shard's result, one line of JSON; the file's name.
///
/// # Errors
/// The file cannot be written.
pub fn write(dir: &Path, result: &impl Shard) -> anyhow::Result<PathBuf> {
    let of = result.of();
    let file = dir.join(format!("shard-{}-of-{}.json", of.shard, of.shards));
    std::fs::write(&file, serde_json::to_string(result)? + "\n").with_context(|| file.display().to_string())?;
    Ok(file)
}

/// All results in a directory, in order, and the numbers of the shards that have left none.
///
/// # Errors
/// There is none, one cannot be read, or they are of different runs.
pub fn read<S: Shard>(dir: &Path) -> anyhow::Result<(Vec<S>, Vec<u64>)> {
    let mut shards: Vec<S> = Vec::new();
    for entry in std::fs::read_dir(dir).with_context(|| format!("reading {}", dir.display()))? {
        let path = entry?.path();
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        if name.starts_with("shard-") && name.ends_with(".json") {
            let text = std::fs::read_to_string(&path)?;
            shards.push(serde_json::from_str(&text).with_context(|| path.display().to_string())?);
        }
    }
    shards.sort_by_key(|s| s.of().shard);
    let first = shards.first().context("no shard has left a result")?.of();
    ensure!(
        shards.iter().all(|s| Of {
            shard: first.shard,
            ..s.of()
        } == first),
        "{} holds shards of different runs (number of shards, seed or length differ): empty it before a new run",
        dir.display()
    );
    let missing = (1..=first.shards)
        .filter(|k| shards.iter().all(|s| s.of().shard != *k))
        .collect();
    Ok((shards, missing))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_is_one_of_those_there_are() {
        assert_eq!(parse("3/16").unwrap(), (3, 16));
        for wrong in ["0/4", "5/4", "4", "a/b", "1/"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
