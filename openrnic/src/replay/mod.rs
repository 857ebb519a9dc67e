// SPDX-License-Identifier: Apache-2.0
//! A recorded conversation played again with the RTL as one of its ends.
//!
//! As the *responder* the RTL gets the recorded requests, one after the other, and what it answers stands beside what the
//! recorded peer answered. As the *requester* it gets the work requests that the recorded frames show and the recorded
//! answers, and what it sends stands beside what the recorded peer sent. Numbers that a host chooses (keys, its own QPN)
//! are mapped; addresses, PSNs and the peer's QPN are the recorded ones.
//!
//! Every field of every pair of frames is compared. A difference needs an entry in a list ([`allowed`]), with its reason.

pub mod allowed;
pub mod bed;
pub mod fields;
pub mod flow;
pub mod report;
mod requester;
mod responder;

use std::path::Path;

use anyhow::Result;
use openrnic_testbench::wire::{Roce, capture};
use serde::Deserialize;

pub use allowed::List;
pub use bed::BedParams;
use flow::{Conversations, Event};

/// Which end of a conversation the RTL is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// It answers.
    Responder,
    /// It asks.
    Requester,
}

impl Side {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Responder => "responder",
            Self::Requester => "requester",
        }
    }
}

/// Something that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Which end the RTL was.
    pub side: Side,
    /// Number of the recorded frame, from 1; of the request when there is no recorded answer.
    pub frame: usize,
    /// Name of the field; `frame` for a frame that only one of them sent.
    pub field: String,
    /// What was recorded.
    pub recorded: String,
    /// What the RTL did.
    pub rtl: String,
    /// The entry of the list that allows it.
    pub reason: Option<usize>,
}

/// A line of a transcript.
#[derive(Debug, Clone)]
pub struct Line {
    /// Number of the recorded frame, if there is one.
    pub frame: Option<usize>,
    /// What the RTL was given.
    pub given: String,
    /// What was recorded.
    pub recorded: String,
    /// What the RTL sent.
    pub rtl: String,
    /// Which differences of the transcript belong to it.
    pub differences: std::ops::Range<usize>,
}

impl Line {
    fn given(e: &Event) -> Self {
        let lost = if e.lost { " (lost)" } else { "" };
        let wrong = if e.roce.icrc_ok() { "" } else { " (wrong ICRC)" };
        Self {
            frame: Some(e.number),
            given: format!("{}{lost}{wrong}", fields::brief(&e.roce)),
            recorded: String::new(),
            rtl: String::new(),
            differences: 0..0,
        }
    }
}

/// What happened in one conversation.
#[derive(Debug, Clone)]
pub struct Transcript {
    /// Which end the RTL was.
    pub side: Side,
    /// Who talked with whom.
    pub title: String,
    /// Frame by frame.
    pub lines: Vec<Line>,
    /// What differs.
    pub differences: Vec<Difference>,
    /// Pairs of frames that were compared.
    pub pairs: usize,
    /// Fields that were compared.
    pub fields: usize,
    /// Completions that the host saw.
    pub completions: usize,
}

impl Transcript {
    fn new(side: Side) -> Self {
        Self {
            side,
            title: String::new(),
            lines: Vec::new(),
            differences: Vec::new(),
            pairs: 0,
            fields: 0,
            completions: 0,
        }
    }

    fn differ(&mut self, frame: usize, field: &str, recorded: &str, rtl: &str) {
        self.differences.push(Difference {
            side: self.side,
            frame,
            field: field.to_owned(),
            recorded: recorded.to_owned(),
            rtl: rtl.to_owned(),
            reason: None,
        });
    }

    /// Puts a recorded frame and one of the RTL side by side.
    fn compare(&mut self, number: usize, recorded: Option<&Roce>, rtl: Option<&Roce>) {
        let from = self.differences.len();
        let brief = |r: Option<&Roce>| r.map_or("-".to_owned(), fields::brief);
        match (recorded, rtl) {
            (Some(a), Some(b)) => {
                let (count, found) = fields::differences(a, b);
                self.pairs += 1;
                self.fields += count;
                for (field, recorded, rtl) in found {
                    self.differ(number, &field, &recorded, &rtl);
                }
            }
            (a, b) => self.differ(number, "frame", &brief(a), &brief(b)),
        }
        self.lines.push(Line {
            frame: recorded.map(|_| number),
            given: String::new(),
            recorded: brief(recorded),
            rtl: brief(rtl),
            differences: from..self.differences.len(),
        });
    }
}

/// How to replay.
#[derive(Debug, Clone)]
pub struct Options {
    /// The NIC.
    pub bed: BedParams,
    /// Give the RTL's queue pair the recorded number.
    pub verbatim: bool,
}

/// A capture that was replayed.
#[derive(Debug, Clone)]
pub struct Replayed {
    /// Name of the capture.
    pub name: String,
    /// What it holds.
    pub conversations: Conversations,
    /// What happened, per conversation and end.
    pub transcripts: Vec<Transcript>,
    /// Why an end was not compared with.
    pub skipped: Vec<String>,
}

impl Replayed {
    /// Differences without a reason.
    pub fn unexplained(&self) -> impl Iterator<Item = &Difference> {
        self.transcripts
            .iter()
            .flat_map(|t| &t.differences)
            .filter(|d| d.reason.is_none())
    }

    /// Nothing is left to explain: no difference, and no answer without a request.
    pub fn agrees(&self) -> bool {
        self.unexplained().next().is_none() && self.conversations.orphans.is_empty()
    }
}

/// Replays a capture file (pcap or pcapng).
///
/// # Errors
/// When the file cannot be read; as simulator and driver say.
pub fn file(path: &Path, options: &Options, list: &mut List) -> Result<Replayed> {
    let name = path
        .file_stem()
        .map_or_else(String::new, |s| s.to_string_lossy().into_owned());
    frames(&name, &capture::frames(path)?, options, list)
}

/// Replays frames.
///
/// # Errors
/// As simulator and driver say; a recording that asks for what a simulated host cannot have.
pub fn frames(name: &str, frames: &[Vec<u8>], options: &Options, list: &mut List) -> Result<Replayed> {
    let conversations = flow::conversations(frames);
    let note = list.note(name);
    let mut transcripts = Vec::new();
    let mut skipped = Vec::new();
    // Misdirected frames go to the conversation that they came with.
    let mut flows = conversations.flows.clone();
    let stray: Vec<Event> = flows
        .extract_if(.., |f| note.absent_qpns.contains(&f.qpn))
        .flat_map(|f| f.events)
        .collect();
    if let Some(flow) = flows.first_mut() {
        flow.events.extend(stray);
        flow.events.sort_by_key(|e| e.number);
    }
    for flow in &flows {
        for side in [Side::Responder, Side::Requester] {
            if note.not_linux == Some(side) {
                skipped.push(format!("as {}: {}", side.name(), note.reason));
                continue;
            }
            let played = match side {
                Side::Responder => responder::play(&options.bed, flow, &note.absent_qpns, options.verbatim),
                Side::Requester => requester::play(&options.bed, flow, options.verbatim),
            };
            // What the RTL cannot be brought to do is a difference too; the other conversations go on.
            let mut t = played.unwrap_or_else(|why| {
                let mut t = Transcript::new(side);
                let first = flow.events.first().map_or(0, |e| e.number);
                t.differ(first, "replay", "-", &format!("{why:#}"));
                t
            });
            t.title = flow.to_string();
            list.explain(name, &mut t.differences);
            transcripts.push(t);
        }
    }
    Ok(Replayed {
        name: name.to_owned(),
        conversations,
        transcripts,
        skipped,
    })
}
