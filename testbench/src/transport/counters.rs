// SPDX-License-Identifier: Apache-2.0
//! What a device must have counted, told from the frames that it sent and received alone.

use std::collections::BTreeMap;

use super::{Checked, differ, opcode, syndrome};
use crate::wire::Roce;

/// Why a receiver must not take a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rejected {
    /// The MAC flagged it.
    Mac,
    /// Some check of it fails.
    Damaged,
}

/// Counters by name, as the book has them; each at least and at most.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counters {
    counted: BTreeMap<&'static str, (u64, u64)>,
}

/// More than anything counts: not known.
pub const UNKNOWN: u64 = 1 << 60;

/// Counters of frames that were dropped in the receiver's parser: which one is the device's choice, their sum is not.
pub const PARSER_DROPS: [&str; 9] = [
    "RX_DROP_DMAC",
    "RX_DROP_NOT_ROCE",
    "RX_DROP_IP_HDR",
    "RX_DROP_LENGTH",
    "RX_DROP_OPCODE",
    "RX_DROP_TVER",
    "RX_DROP_ICRC",
    "RX_DROP_DIP",
    "RX_DROP_QKEY",
];

impl Counters {
    fn add(&mut self, name: &'static str) {
        self.range(name, 1, 1);
    }

    /// Something is counted between `least` and `most` times.
    pub fn range(&mut self, name: &'static str, least: u64, most: u64) {
        let c = self.counted.entry(name).or_default();
        c.0 = c.0.saturating_add(least);
        c.1 = c.1.saturating_add(most);
    }

    /// What was counted at least.
    pub fn get(&self, name: &str) -> u64 {
        self.counted.get(name).map_or(0, |c| c.0)
    }

    fn acknowledge(synd: u8, names: [&'static str; 6]) -> Option<&'static str> {
        match synd {
            0..=0x1f => Some(names[0]),
            0x20..=0x3f => Some(names[1]),
            syndrome::SEQUENCE => Some(names[2]),
            syndrome::INVALID => Some(names[3]),
            syndrome::ACCESS => Some(names[4]),
            syndrome::OPERATION => Some(names[5]),
            _ => None,
        }
    }

    /// A frame was sent.
    pub fn sent(&mut self, roce: &Roce) {
        self.add("TX_FRAMES");
        let op = roce.bth.opcode;
        if op == opcode::ACKNOWLEDGE {
            let names = [
                "TX_ACKS",
                "TX_RNR_NAKS",
                "TX_NAK_PSN_SEQ",
                "TX_NAK_INV_REQ",
                "TX_NAK_REM_ACCESS",
                "TX_NAK_REM_OP",
            ];
            if let Some(name) = Self::acknowledge(roce.ext.aeth.unwrap_or_default().syndrome, names) {
                self.add(name);
            }
        } else if op == opcode::ATOMIC_ACKNOWLEDGE || opcode::READ_RESPONSE.contains(&op) {
            self.add("TX_READ_RESPONSES");
        } else {
            self.add("TX_REQUESTS");
        }
    }

    /// A frame came that must not be taken.
    pub fn rejected(&mut self, why: Rejected) {
        self.add("RX_FRAMES");
        self.add(match why {
            Rejected::Mac => "RX_DROP_MAC_ERR",
            Rejected::Damaged => "dropped by the parser",
        });
    }

    /// A good frame came for a queue pair that is not there.
    pub fn nobody(&mut self, _: &Roce) {
        self.add("RX_FRAMES");
        self.range("RX_DROP_QPN", 0, 1);
    }

    /// A request came.
    pub fn request(&mut self) {
        self.add("RX_FRAMES");
        self.range("RX_REQUESTS", 0, 1);
    }

    /// A response came. A requester that has failed does not look at what it says.
    pub fn response(&mut self, roce: &Roce) {
        self.add("RX_FRAMES");
        self.range("RX_RESPONSES", 0, 1);
        if roce.bth.opcode == opcode::ACKNOWLEDGE {
            let names = [
                "RX_ACKS",
                "RX_RNR_NAKS",
                "RX_NAK_PSN_SEQ",
                "RX_NAK_INV_REQ",
                "RX_NAK_REM_ACCESS",
                "RX_NAK_REM_OP",
            ];
            if let Some(name) = Self::acknowledge(roce.ext.aeth.unwrap_or_default().syndrome, names) {
                self.range(name, 0, 1);
            }
        }
    }

    /// Compares with a device: `read` tells a counter by its name. `strict`: the device lost no frame inside and no queue pair
    /// failed, so that what may be counted was.
    ///
    /// # Errors
    /// The first counter that differs.
    pub fn matches(&self, end: usize, strict: bool, read: impl Fn(&str) -> u64) -> Checked {
        for (name, (least, most)) in &self.counted {
            let got = match *name {
                "dropped by the parser" => PARSER_DROPS.iter().map(|n| read(n)).sum(),
                name => read(name),
            };
            let least = if strict && *most < UNKNOWN { most } else { least };
            if got < *least || got > *most {
                return differ("counter", format!("end {end}: {name} is {got}, not {least} to {most}"));
            }
        }
        Ok(())
    }

    /// What a device has counted although no frame called for it.
    ///
    /// # Errors
    /// Its name.
    pub fn nothing_else(&self, end: usize, read: impl Fn(&str) -> u64) -> Checked {
        for name in [
            "TX_NAK_PSN_SEQ",
            "TX_NAK_INV_REQ",
            "TX_NAK_REM_ACCESS",
            "TX_NAK_REM_OP",
            "TX_RNR_NAKS",
            "RX_DROP_MAC_ERR",
        ] {
            let got = read(name);
            if !self.counted.contains_key(name) && got > 0 {
                return differ("counter", format!("end {end}: {name} is {got}, not 0"));
            }
        }
        Ok(())
    }
}
