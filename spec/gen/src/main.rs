// SPDX-License-Identifier: Apache-2.0
//! Writes everything that is generated from `spec/`, or checks that it is up to date.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

const USAGE: &str = "usage: openrnic-spec-gen [--check] [--root DIR]

Generates the RTL package, the Rust types and the book's tables from DIR/spec/*.toml.

  --check     write nothing; list the stale files and fail if there are any
  --root DIR  root of the repository (default: where this crate stands)";

fn main() -> Result<ExitCode> {
    let mut check = false;
    let mut root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--check" => check = true,
            "--root" => root = args.next().context("--root needs a directory")?.into(),
            "-h" | "--help" => {
                println!("{USAGE}");
                return Ok(ExitCode::SUCCESS);
            }
            other => bail!("unknown argument {other}\n{USAGE}"),
        }
    }
    let files = openrnic_spec_gen::generate(&root)?;
    let stale = openrnic_spec_gen::stale(&root, &files)?;
    if check {
        if stale.is_empty() {
            return Ok(ExitCode::SUCCESS);
        }
        eprintln!("stale, run `cargo run -p openrnic-spec-gen`:");
        for path in &stale {
            eprintln!("  {path}");
        }
        return Ok(ExitCode::FAILURE);
    }
    for path in &stale {
        let target = root.join(path);
        match files.get(path) {
            Some(text) => {
                if let Some(dir) = target.parent() {
                    std::fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
                }
                std::fs::write(&target, text).with_context(|| format!("cannot write {path}"))?;
                println!("wrote {path}");
            }
            None => {
                std::fs::remove_file(&target).with_context(|| format!("cannot remove {path}"))?;
                println!("removed {path}");
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
