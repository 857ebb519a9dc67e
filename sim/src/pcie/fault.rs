// SPDX-License-Identifier: Apache-2.0
//! Faults of the host, injected on purpose into the answers to the device's reads.

/// What goes wrong with a read's completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompletionFault {
    /// Unsupported request, no data.
    Unsupported,
    /// Completer abort, no data.
    Abort,
    /// All data comes, the first completion is marked as poisoned.
    Poison,
    /// No completion ever comes.
    Drop,
    /// All but the last completion come; of a read that is one completion long, none.
    DropLast,
    /// It comes this much later, in nanoseconds.
    Delay(u64),
}

/// Which reads a fault hits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// The n-th read from now on, counted from 0.
    Nth(u64),
    /// Reads that touch `[start, start + len)`, this many times.
    Range {
        /// First bus address.
        start: u64,
        /// Bytes.
        len: u64,
        /// How often; `u64::MAX` for always.
        times: u64,
    },
}

/// The faults still to happen.
#[derive(Debug, Default)]
pub(super) struct Faults {
    rules: Vec<(Which, CompletionFault)>,
    pub(super) injected: u64,
}

impl Faults {
    pub(super) fn add(&mut self, which: Which, fault: CompletionFault) {
        self.rules.push((which, fault));
    }

    pub(super) fn clear(&mut self) {
        self.rules.clear();
    }

    /// The fault of a read of `[addr, addr + len)`, if one applies. Counts the read for all rules.
    pub(super) fn hit(&mut self, addr: u64, len: u64) -> Option<CompletionFault> {
        let mut hit = None;
        self.rules.retain_mut(|(which, fault)| match which {
            Which::Nth(n) => {
                let now = *n == 0;
                if now && hit.is_none() {
                    hit = Some(*fault);
                }
                *n = n.saturating_sub(1);
                !now
            }
            Which::Range {
                start,
                len: bytes,
                times,
            } => {
                let touches = addr < start.saturating_add(*bytes) && *start < addr.saturating_add(len.max(1));
                if touches && hit.is_none() && *times > 0 {
                    hit = Some(*fault);
                    *times -= u64::from(*times != u64::MAX);
                }
                *times > 0
            }
        });
        self.injected += u64::from(hit.is_some());
        hit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_hit_the_nth_read_and_the_range_as_often_as_told() {
        let mut f = Faults::default();
        f.add(Which::Nth(2), CompletionFault::Abort);
        f.add(
            Which::Range {
                start: 0x100,
                len: 0x10,
                times: 2,
            },
            CompletionFault::Drop,
        );
        let hits: Vec<_> = [(0xf0, 16), (0xff, 2), (0x0, 4), (0x10f, 1), (0x10f, 1), (0x110, 4)]
            .map(|(a, l)| f.hit(a, l))
            .into();
        use CompletionFault::{Abort, Drop};
        assert_eq!(hits, [None, Some(Drop), Some(Abort), Some(Drop), None, None]);
        assert_eq!(f.injected, 3);
    }
}
