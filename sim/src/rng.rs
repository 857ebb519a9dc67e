// SPDX-License-Identifier: Apache-2.0
//! Randomness from one seed, in streams that do not disturb each other.
//!
//! Each user of randomness (the completions of NIC 0, the losses from A to B) has a stream of its
//! own: that one draws more changes nothing for the others, so that two runs stay comparable.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// A stream of random numbers.
#[derive(Debug, Clone)]
pub struct Stream(ChaCha8Rng);

impl Stream {
    /// The stream called `name`, number `index`, of the run with this seed.
    pub fn new(seed: u64, name: &str, index: u64) -> Self {
        // FNV-1a of the name; the index keeps its own bits.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| {
            (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3)
        });
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(hash ^ index.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        Self(rng)
    }

    /// A number in `0..bound`; 0 when the bound is 0 or 1.
    pub fn below(&mut self, bound: u64) -> u64 {
        // The bias of a 64-bit product is far below what any test could see.
        ((u128::from(self.0.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// True with this probability: never at 0 or below, always at 1 or above. Draws only in between.
    pub fn chance(&mut self, probability: f64) -> bool {
        if probability <= 0.0 {
            false
        } else if probability >= 1.0 {
            true
        } else {
            (self.0.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64) < probability
        }
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_repeat_by_seed_and_differ_by_name_and_index() {
        let draw = |seed, name, index| {
            let mut s = Stream::new(seed, name, index);
            [s.bits(), s.bits(), s.bits()]
        };
        assert_eq!(draw(1, "loss", 0), draw(1, "loss", 0));
        assert_ne!(draw(1, "loss", 0), draw(2, "loss", 0));
        assert_ne!(draw(1, "loss", 0), draw(1, "loss", 1));
        assert_ne!(draw(1, "loss", 0), draw(1, "dup", 0));
    }

    #[test]
    fn chance_hits_its_rate_and_its_ends() {
        let mut s = Stream::new(7, "chance", 0);
        let hits = (0..100_000).filter(|_| s.chance(0.1)).count();
        assert!((9_500..10_500).contains(&hits), "{hits}");
        assert!(!s.chance(0.0) && s.chance(1.0));
        assert_eq!((0..1000).map(|_| s.below(3)).max(), Some(2));
        assert_eq!(s.below(0), 0);
    }
}
