// SPDX-License-Identifier: Apache-2.0
//! The differences between Linux and the RTL that have a reason, and what a recording cannot tell of itself.

use anyhow::{Context, Result};
use serde::Deserialize;

use super::{Difference, Side};

/// The list that comes with the captures of `testbench/data/pcaps`.
const LIST: &str = include_str!("../../replay.toml");

/// A difference that is allowed.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Allowed {
    /// Name of the capture, without `.pcap`; `*` for each.
    pub capture: String,
    /// Which end the RTL is; both if absent.
    pub side: Option<Side>,
    /// Numbers of the frames; each if absent.
    pub frames: Option<Vec<usize>>,
    /// The field; `*` for each.
    pub field: String,
    /// What was recorded, if only that is allowed.
    pub recorded: Option<String>,
    /// What the RTL does, if only that is allowed.
    pub rtl: Option<String>,
    /// Why they may differ.
    pub reason: String,
}

impl Allowed {
    fn covers(&self, capture: &str, d: &Difference) -> bool {
        (self.capture == "*" || self.capture == capture)
            && self.side.is_none_or(|s| s == d.side)
            && self.frames.as_ref().is_none_or(|f| f.contains(&d.frame))
            && (self.field == "*" || self.field == d.field)
            && self.recorded.as_ref().is_none_or(|v| *v == d.recorded)
            && self.rtl.as_ref().is_none_or(|v| *v == d.rtl)
    }
}

/// What a capture cannot tell of itself.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Note {
    /// Name of the capture, without `.pcap`.
    pub capture: String,
    /// Destination QPNs that the recorded host did not have.
    #[serde(default)]
    pub absent_qpns: Vec<u32>,
    /// The end that was not Linux but a program made for the recording: it is not compared with.
    pub not_linux: Option<Side>,
    /// Why.
    pub reason: String,
}

/// The list.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct List {
    /// Differences that are allowed.
    #[serde(default)]
    pub difference: Vec<Allowed>,
    /// What captures cannot tell.
    #[serde(default)]
    pub note: Vec<Note>,
    #[serde(skip)]
    used: Vec<bool>,
}

impl List {
    /// The list that comes with the project.
    ///
    /// # Errors
    /// When the file is no such list.
    pub fn standard() -> Result<Self> {
        Self::parse(LIST).context("openrnic/replay.toml")
    }

    /// Reads a list.
    ///
    /// # Errors
    /// When the text is no such list.
    pub fn parse(text: &str) -> Result<Self> {
        let mut list: Self = toml::from_str(text)?;
        list.used = vec![false; list.difference.len()];
        Ok(list)
    }

    /// What is known of a capture.
    pub fn note(&self, capture: &str) -> Note {
        self.note
            .iter()
            .find(|n| n.capture == capture)
            .cloned()
            .unwrap_or_default()
    }

    /// Gives each difference its reason, if it has one.
    pub fn explain(&mut self, capture: &str, differences: &mut [Difference]) {
        for d in differences {
            for (i, (entry, used)) in self.difference.iter().zip(&mut self.used).enumerate() {
                if entry.covers(capture, d) {
                    *used = true;
                    d.reason = Some(i);
                    break;
                }
            }
        }
    }

    /// Entries of these captures (all of the list, if `complete`) that no difference needed.
    pub fn unused(&self, captures: &[String], complete: bool) -> Vec<&Allowed> {
        self.difference
            .iter()
            .zip(&self.used)
            .filter(|(entry, used)| !**used && (complete || captures.contains(&entry.capture)))
            .map(|(entry, _)| entry)
            .collect()
    }
}
