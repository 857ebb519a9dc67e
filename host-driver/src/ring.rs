// SPDX-License-Identifier: Apache-2.0
//! A send or receive queue as the driver sees it: where its ring is, and what is posted.

/// Work of one queue of one QP.
#[derive(Debug, Clone)]
pub(crate) struct WorkQueue {
    /// Bus address of the ring.
    pub(crate) base: u64,
    /// log2 of its entries.
    pub(crate) log: u32,
    /// Bytes of an entry.
    pub(crate) stride: usize,
    /// Posted since RESET, modulo 65536.
    posted: u16,
    /// Completed since RESET, modulo 65536.
    completed: u16,
    wr_ids: Vec<u64>,
}

impl WorkQueue {
    pub(crate) fn new(base: u64, log: u32, stride: usize) -> Self {
        Self {
            base,
            log,
            stride,
            posted: 0,
            completed: 0,
            wr_ids: vec![0; 1 << log],
        }
    }

    pub(crate) fn capacity(&self) -> usize {
        1 << self.log
    }

    pub(crate) fn outstanding(&self) -> usize {
        usize::from(self.posted.wrapping_sub(self.completed))
    }

    pub(crate) fn oldest(&self) -> u16 {
        self.completed
    }

    pub(crate) fn producer(&self) -> u16 {
        self.posted
    }

    pub(crate) fn is_full(&self) -> bool {
        self.outstanding() >= self.capacity()
    }

    fn slot(&self, index: u16) -> usize {
        usize::from(index) & (self.capacity() - 1)
    }

    /// Bus address of an entry.
    pub(crate) fn addr_of(&self, index: u16) -> u64 {
        self.base + (self.slot(index) * self.stride) as u64
    }

    /// Bus address of the entry to be written next.
    pub(crate) fn next_addr(&self) -> u64 {
        self.addr_of(self.posted)
    }

    /// The entry at [`Self::next_addr`] was written.
    pub(crate) fn post(&mut self, wr_id: u64) {
        let slot = self.slot(self.posted);
        if let Some(place) = self.wr_ids.get_mut(slot) {
            *place = wr_id;
        }
        self.posted = self.posted.wrapping_add(1);
    }

    /// The entry completed: frees it and those before it. `in_order`: it must be the oldest. `None` when it
    /// is not outstanding.
    pub(crate) fn complete(&mut self, index: u16, in_order: bool) -> Option<u64> {
        let ahead = usize::from(index.wrapping_sub(self.completed));
        if ahead >= self.outstanding() || (in_order && ahead != 0) {
            return None;
        }
        self.completed = index.wrapping_add(1);
        self.wr_ids.get(self.slot(index)).copied()
    }

    /// Forgets all work: the QP went to RESET.
    pub(crate) fn clear(&mut self) {
        self.posted = 0;
        self.completed = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_wrap_at_65536_and_slots_at_the_ring() {
        let mut q = WorkQueue::new(0x1000, 2, 64);
        for i in 0..200_000u64 {
            assert_eq!(q.next_addr(), 0x1000 + (i % 4) * 64);
            q.post(i);
            assert_eq!(q.complete(i as u16, true), Some(i));
        }
        assert_eq!(q.outstanding(), 0);
    }

    #[test]
    fn a_completion_frees_the_unsignaled_ones_before_it() {
        let mut q = WorkQueue::new(0, 2, 64);
        for i in 0..4 {
            q.post(100 + i);
        }
        assert!(q.is_full());
        assert_eq!(q.complete(4, false), None, "not posted");
        assert_eq!(q.complete(2, true), None, "not the oldest");
        assert_eq!(q.complete(2, false), Some(102));
        assert_eq!(q.outstanding(), 1);
        assert_eq!(q.complete(2, false), None, "completed twice");
        assert_eq!(q.complete(3, false), Some(103));
        assert_eq!(q.complete(3, false), None);
    }
}
