// SPDX-License-Identifier: Apache-2.0
//! What the wire does to frames: at random by rates, and on purpose by rules.

use super::frame;
use crate::rng::Stream;

/// Chances, each from 0 to 1, drawn for every frame that is sent.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FaultRates {
    /// The frame is lost.
    pub loss: f64,
    /// It arrives twice.
    pub duplicate: f64,
    /// It is held back by up to [`Self::reorder_ns`], so that later ones pass it.
    pub reorder: f64,
    /// Longest time that a reordered frame is held back.
    pub reorder_ns: u64,
    /// One bit of it is flipped, and the MAC does not notice (the invariant CRC must).
    pub corrupt: f64,
    /// One bit of it is flipped, and the receiving MAC flags the frame.
    pub mac_error: f64,
    /// It is marked as having met congestion, if its ECN field says that it may be.
    pub congestion: f64,
}

impl FaultRates {
    /// The name of a rate that is no probability, if there is one.
    pub(crate) fn invalid(&self) -> Option<&'static str> {
        let all = [
            ("loss", self.loss),
            ("duplicate", self.duplicate),
            ("reorder", self.reorder),
            ("corrupt", self.corrupt),
            ("mac_error", self.mac_error),
            ("congestion", self.congestion),
        ];
        all.iter()
            .find(|(_, rate)| !(0.0..=1.0).contains(rate))
            .map(|(name, _)| *name)
    }
}

/// Changes a frame.
pub type Edit = Box<dyn FnMut(&mut Vec<u8>)>;
/// Tells whether a frame is meant.
pub type Matches = Box<dyn FnMut(&[u8]) -> bool>;

/// What a rule does to a frame.
pub enum Action {
    /// Loses it.
    Drop,
    /// Delivers it twice.
    Duplicate,
    /// Delivers it later by this many nanoseconds.
    Delay(u64),
    /// Flips a bit, counted from the least significant one of the first byte; unseen by the MAC.
    FlipBit(usize),
    /// Changes it in any way; unseen by the MAC.
    Edit(Edit),
    /// Lets the receiving MAC flag it as damaged.
    MacError,
    /// Marks congestion, whatever its ECN field says.
    MarkCongestion,
}

impl std::fmt::Debug for Action {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Drop => write!(f, "Drop"),
            Self::Duplicate => write!(f, "Duplicate"),
            Self::Delay(ns) => write!(f, "Delay({ns})"),
            Self::FlipBit(bit) => write!(f, "FlipBit({bit})"),
            Self::Edit(_) => write!(f, "Edit"),
            Self::MacError => write!(f, "MacError"),
            Self::MarkCongestion => write!(f, "MarkCongestion"),
        }
    }
}

/// A rule: of the frames that match, lets `skip` pass, then treats `times`.
pub struct Rule {
    /// Only frames of this sender.
    pub from: Option<usize>,
    /// Which frames; sees the frame as it was sent.
    pub matches: Matches,
    /// Matching frames to let pass first.
    pub skip: u64,
    /// Frames to treat then; `u64::MAX` for all.
    pub times: u64,
    /// What to do.
    pub action: Action,
}

impl Rule {
    /// Treats the next frame of a sender that matches.
    pub fn once(from: usize, action: Action, matches: impl FnMut(&[u8]) -> bool + 'static) -> Self {
        Self {
            from: Some(from),
            matches: Box::new(matches),
            skip: 0,
            times: 1,
            action,
        }
    }

    /// Treats the n-th frame (from 0) of a sender that matches.
    pub fn nth(n: u64, from: usize, action: Action, matches: impl FnMut(&[u8]) -> bool + 'static) -> Self {
        Self {
            skip: n,
            ..Self::once(from, action, matches)
        }
    }
}

/// Names a rule that was added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RuleId(pub(super) usize);

/// What became of a frame.
#[derive(Debug, Default)]
pub(super) struct Fate {
    pub(super) dropped: bool,
    pub(super) copies: u32,
    pub(super) delay_ns: u64,
    pub(super) mac_error: bool,
    pub(super) changed: bool,
    pub(super) marked: bool,
    /// For the capture; empty when nothing happened.
    pub(super) comment: String,
}

impl Fate {
    fn note(&mut self, text: &str) {
        if !self.comment.is_empty() {
            self.comment.push_str("; ");
        }
        self.comment.push_str(text);
    }

    fn flip(&mut self, frame: &mut [u8], bit: usize, seen: bool) {
        let bits = frame.len() * 8;
        if bits == 0 {
            return;
        }
        let bit = bit % bits;
        frame[bit / 8] ^= 1 << (bit % 8);
        self.changed = true;
        self.mac_error |= seen;
        let how = if seen { ", flagged by the receiving MAC" } else { "" };
        self.note(&format!("changed: bit {} of byte {} flipped{how}", bit % 8, bit / 8));
    }

    fn mark(&mut self, frame: &mut [u8]) {
        if frame::mark_congestion(frame) {
            self.marked = true;
            self.note("changed: congestion marked");
        }
    }

    /// Applies a rule that hit.
    pub(super) fn apply(&mut self, action: &mut Action, frame: &mut Vec<u8>) {
        match action {
            Action::Drop => {
                self.dropped = true;
                self.note("dropped: by a rule");
            }
            Action::Duplicate => {
                self.copies += 1;
                self.note("duplicated: by a rule");
            }
            Action::Delay(ns) => {
                self.delay_ns += *ns;
                self.note(&format!("delayed: {ns} ns by a rule"));
            }
            Action::FlipBit(bit) => self.flip(frame, *bit, false),
            Action::Edit(edit) => {
                edit(frame);
                self.changed = true;
                self.note("changed: by a rule");
            }
            Action::MacError => {
                self.mac_error = true;
                self.note("flagged by the receiving MAC: by a rule");
            }
            Action::MarkCongestion => self.mark(frame),
        }
    }

    /// Draws what chance does to the frame. Every rate draws, so that one does not shift another.
    pub(super) fn draw(&mut self, rates: &FaultRates, rng: &mut Stream, frame: &mut [u8]) {
        let lost = rng.chance(rates.loss);
        let twice = rng.chance(rates.duplicate);
        let late = rng.chance(rates.reorder).then(|| rng.below(rates.reorder_ns + 1));
        let corrupt = rng.chance(rates.corrupt).then(|| rng.bits() as usize);
        let flagged = rng.chance(rates.mac_error).then(|| rng.bits() as usize);
        let congestion = rng.chance(rates.congestion);
        if lost {
            self.dropped = true;
            self.note("dropped: random loss");
            return;
        }
        if twice {
            self.copies += 1;
            self.note("duplicated: at random");
        }
        if let Some(ns) = late {
            self.delay_ns += ns;
            self.note(&format!("delayed: {ns} ns at random"));
        }
        if let Some(bit) = corrupt {
            self.flip(frame, bit, false);
        }
        if let Some(bit) = flagged {
            self.flip(frame, bit, true);
        }
        if congestion && matches!(frame::ecn(frame), Some(1 | 2)) {
            self.mark(frame);
        }
    }
}
