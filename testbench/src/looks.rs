// SPDX-License-Identifier: Apache-2.0
//! Looks at queue pairs (the DIAG block's port) at random times: whatever they meet, nothing may come of them.

use openrnic_sim::model::BlockModel;
use openrnic_sim::rng::Stream;

/// Drives `diag_*` of a block.
pub struct Looks {
    rng: Stream,
    first_word: u64,
    words: u64,
    asking: bool,
    answered: bool,
    count: u64,
    wanted: Option<u64>,
    /// Answer of the last look.
    pub word: u64,
}

impl Looks {
    /// Looks at the words from `first_word` on.
    pub fn new(seed: u64, first_word: u64, words: u64) -> Self {
        Self {
            rng: Stream::new(seed, "looks", first_word),
            first_word,
            words,
            asking: false,
            answered: false,
            count: 0,
            wanted: None,
            word: 0,
        }
    }

    /// Looks answered so far.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Looks at a word of a QP in the next cycle that is free for it.
    pub fn ask(&mut self, qpn: u32, word: u64) {
        self.wanted = Some(word << 24 | u64::from(qpn));
    }

    /// Sets the inputs of a cycle; `begin`: a look may begin.
    pub fn drive(&mut self, dut: &mut BlockModel, begin: bool, qps: u64) {
        self.asking &= !self.answered;
        if let Some(what) = self.wanted.filter(|_| !self.asking) {
            self.wanted = None;
            self.asking = true;
            dut.set("diag_i", what);
        } else if !self.asking && begin && self.rng.below(16) == 0 {
            self.asking = true;
            let word = self.first_word + self.rng.below(self.words);
            dut.set("diag_i", word << 24 | self.rng.below(qps));
        }
        dut.set("diag_valid_i", u64::from(self.asking));
    }

    /// Sees the outputs of the cycle: the word, if the look is answered.
    ///
    /// # Panics
    /// When an answer comes that nobody asked for.
    pub fn see(&mut self, answer: Option<u64>) {
        self.answered = answer.is_some();
        if let Some(word) = answer {
            assert!(self.asking, "an answer that nobody asked for");
            self.word = word;
            self.count += 1;
        }
    }
}
