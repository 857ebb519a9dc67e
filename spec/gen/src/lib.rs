// SPDX-License-Identifier: Apache-2.0
//! From `spec/*.toml` to the RTL package, the Rust types and the tables of the book.
//!
//! [`generate`] is a pure function of the files in `spec/`: the same input gives the same bytes.
#![deny(missing_docs)]

mod check;
mod markdown;
mod model;
mod names;
mod rust;
mod sv;

use std::collections::BTreeMap;
use std::path::Path;

pub use check::check;
pub use model::{SourceFile, Spec};

/// What can be wrong with the input.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read.
    #[error("{file}: {source}")]
    Io {
        /// Path of the file.
        file: String,
        /// The cause.
        source: std::io::Error,
    },
    /// A file is no TOML, or has a key that is unknown, missing or of a wrong type.
    #[error("{file}: {message}")]
    Syntax {
        /// Path of the file.
        file: String,
        /// What the parser says, with the line.
        message: String,
    },
    /// The values contradict each other.
    #[error("{file}: {item}: {message}")]
    Invalid {
        /// Path of the file.
        file: String,
        /// Kind and name of what is wrong, such as `layout CmdQp, field pd`.
        item: String,
        /// What is wrong with it.
        message: String,
    },
}

/// Generated files by path relative to the repository's root, `/` as separator.
pub type Files = BTreeMap<String, String>;

const RTL_PACKAGE: &str = "rtl/gen/rnic_spec_pkg.sv";
const RUST_TYPES: &str = "spec/rust/src/generated.rs";
const BOOK_DIR: &str = "docs/src/gen";

/// Reads, checks and generates everything.
///
/// # Errors
/// [`Error`], naming file and item.
pub fn generate(root: &Path) -> Result<Files, Error> {
    generate_from(&model::read_sources(&root.join("spec"))?)
}

/// Generates everything from sources already in memory.
///
/// # Errors
/// [`Error`], naming file and item.
pub fn generate_from(sources: &[SourceFile]) -> Result<Files, Error> {
    let spec = Spec::parse(sources)?;
    check(&spec)?;
    let mut files = Files::new();
    files.insert(RTL_PACKAGE.to_owned(), sv::package(&spec)?);
    files.insert(RUST_TYPES.to_owned(), rust::types(&spec));
    for (name, text) in markdown::pages(&spec) {
        files.insert(format!("{BOOK_DIR}/{name}.md"), text);
    }
    Ok(files)
}

/// What every generated file says of itself.
const MARK: &str = "enerated by openrnic-spec-gen";

/// Paths whose content on disk differs from `files`, and leftovers in the generated directories.
///
/// # Errors
/// [`Error::Io`] when a directory cannot be listed or a file exists and cannot be read.
pub fn stale(root: &Path, files: &Files) -> Result<Vec<String>, Error> {
    let io = |file: &str| {
        let file = file.to_owned();
        move |source| Error::Io { file, source }
    };
    let mut stale = Vec::new();
    for (path, text) in files {
        match std::fs::read_to_string(root.join(path)) {
            Ok(found) if found == *text => {}
            Ok(_) => stale.push(path.clone()),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => stale.push(path.clone()),
            Err(e) => return Err(io(path)(e)),
        }
    }
    for dir in ["rtl/gen", BOOK_DIR] {
        let entries = match std::fs::read_dir(root.join(dir)) {
            Ok(entries) => entries,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
            Err(e) => return Err(io(dir)(e)),
        };
        for entry in entries {
            let path = format!("{dir}/{}", entry.map_err(io(dir))?.file_name().to_string_lossy());
            // Other generators write beside this one: a left-over is a file that bears this one's mark.
            if !files.contains_key(&path) && std::fs::read_to_string(root.join(&path)).is_ok_and(|t| t.contains(MARK)) {
                stale.push(path);
            }
        }
    }
    stale.sort();
    Ok(stale)
}
