// SPDX-License-Identifier: Apache-2.0
//! A serial line as the link needs it.

/// A serial line failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("serial line: {what}: {why}")]
pub struct LineError {
    /// What was attempted.
    pub what: &'static str,
    /// The reason, and what to do where that is known.
    pub why: String,
}

impl LineError {
    /// An error in an attempt.
    pub fn new(what: &'static str, why: impl Into<String>) -> Self {
        Self { what, why: why.into() }
    }
}

/// A serial line that carries bytes both ways; what it loses or changes is its affair.
pub trait Line {
    /// Length of a tick in picoseconds.
    fn tick_ps(&self) -> u64;

    /// Lets one tick pass. What was handed over is on its way; bytes arrive.
    ///
    /// # Errors
    /// [`LineError`] when the line is gone.
    fn tick(&mut self) -> Result<(), LineError>;

    /// Whether what was handed over before is out, or as good as out, so that more makes sense now.
    fn ready(&self) -> bool;

    /// Hands bytes over.
    ///
    /// # Errors
    /// [`LineError`] when the line is gone.
    fn send(&mut self, bytes: &[u8]) -> Result<(), LineError>;

    /// Takes what has arrived. A byte without its stop bit is `None`.
    fn receive(&mut self) -> Vec<Option<u8>>;
}
