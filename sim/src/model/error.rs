// SPDX-License-Identifier: Apache-2.0
//! What can go wrong with a Verilated model.

use std::path::PathBuf;

/// An error of building, loading or running a Verilated model.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// A source file or directory could not be read or written.
    #[error("{what} {path}: {source}", path = path.display())]
    Io {
        /// What was attempted.
        what: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// No file of the RTL tree has the module's name.
    #[error("no file {module}.sv under {root}: one module per file, of the same name", root = root.display())]
    NoSuchModule {
        /// Module asked for.
        module: String,
        /// Where it was looked for.
        root: PathBuf,
    },
    /// Verilator is missing.
    #[error("Verilator not found ({tried}): run `make setup`, or name the executable in $VERILATOR")]
    NoVerilator {
        /// What was tried and how it failed.
        tried: String,
    },
    /// The cache path is too long for a directory name made from it.
    #[error("the model cache path {path} is longer than {limit} bytes: set OPENRNIC_CACHE to a shorter one", path = path.display())]
    CachePathTooLong {
        /// The path.
        path: PathBuf,
        /// Longest path that works, in bytes.
        limit: usize,
    },
    /// Verilator or the C++ compiler refused the sources.
    #[error("building {top} failed: {message}")]
    Build {
        /// Top module.
        top: String,
        /// What the tools said.
        message: String,
    },
    /// The built library does not fit this crate.
    #[error("model of {top} cannot be used: {message}; run `make clean` if the cache is damaged")]
    Load {
        /// Top module.
        top: String,
        /// Why.
        message: String,
    },
    /// A port was named that the design does not have (in this direction or width).
    #[error("{top} has no {wanted}; it has {has}")]
    Port {
        /// Top module.
        top: String,
        /// What was asked for.
        wanted: String,
        /// The ports there are.
        has: String,
    },
    /// A SystemVerilog assertion failed, or the design called `$stop` or `$fatal`.
    #[error("{model}: assertion failed at {place} in clock cycle {cycle} (its message is on standard output); {hint}")]
    Assertion {
        /// Instance name.
        model: String,
        /// Source file, line and instance path.
        place: String,
        /// Cycles since the model was made.
        cycle: u64,
        /// How to look closer.
        hint: String,
    },
    /// A device that is no model (a board behind a link) does not go on.
    #[error("{message}")]
    Device {
        /// Why, and what to do.
        message: String,
    },
    /// A trace was asked of a model without tracing, or its file cannot be written.
    #[error("cannot write the trace {path}: {message}", path = path.display())]
    Trace {
        /// The FST file.
        path: PathBuf,
        /// Why.
        message: &'static str,
    },
}

impl ModelError {
    pub(crate) fn io(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { what, path, source }
    }
}
