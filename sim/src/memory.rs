// SPDX-License-Identifier: Apache-2.0
//! The memory of one host: a bounded range of bus addresses, an allocator, and the map of what the
//! device may reach.

use std::collections::BTreeMap;

/// Bytes left unmapped behind every buffer, so that running over its end is noticed.
const GUARD: u64 = 64;
/// What freed memory reads as.
const FREED: u8 = 0xdd;

/// Host memory. Addresses are bus addresses; there is no other kind here.
pub struct HostMemory {
    base: u64,
    bytes: Vec<u8>,
    /// Free pieces: address to length.
    free: BTreeMap<u64, u64>,
    /// Mapped buffers: address to (length, length with guard and padding).
    mapped: BTreeMap<u64, (u64, u64)>,
    free_bytes: u64,
}

impl HostMemory {
    /// Memory of `size` bytes from bus address `base` on; nothing mapped.
    pub fn new(base: u64, size: usize) -> Self {
        Self {
            base,
            bytes: vec![0; size],
            free: BTreeMap::from([(base, size as u64)]),
            mapped: BTreeMap::new(),
            free_bytes: size as u64,
        }
    }

    /// Size in bytes.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes not allocated, not necessarily in one piece.
    pub fn free_bytes(&self) -> usize {
        self.free_bytes as usize
    }

    /// Number of mapped buffers.
    pub fn buffers(&self) -> usize {
        self.mapped.len()
    }

    /// Maps `len` zeroed bytes at a multiple of `align` (a power of two). `None` when no piece is
    /// large enough.
    pub fn alloc(&mut self, len: usize, align: usize) -> Option<u64> {
        let align = align.max(4) as u64;
        let len = len.max(1) as u64;
        let whole = (len + GUARD).next_multiple_of(64);
        let (piece, piece_len, start) = self.free.iter().find_map(|(piece, piece_len)| {
            let start = piece.next_multiple_of(align);
            (start + whole <= piece + piece_len).then_some((*piece, *piece_len, start))
        })?;
        self.free.remove(&piece);
        if start > piece {
            self.free.insert(piece, start - piece);
        }
        let end = start + whole;
        if end < piece + piece_len {
            self.free.insert(end, piece + piece_len - end);
        }
        self.free_bytes -= whole;
        self.mapped.insert(start, (len, whole));
        let at = (start - self.base) as usize;
        self.bytes[at..at + len as usize].fill(0);
        Some(start)
    }

    /// Unmaps the buffer that starts at `addr`; false when none does.
    pub fn free(&mut self, addr: u64) -> bool {
        let Some((len, whole)) = self.mapped.remove(&addr) else {
            return false;
        };
        let at = (addr - self.base) as usize;
        self.bytes[at..at + len as usize].fill(FREED);
        self.free_bytes += whole;
        let (mut start, mut end) = (addr, addr + whole);
        if let Some((before, before_len)) = self.free.range(..start).next_back().map(|(a, l)| (*a, *l))
            && before + before_len == start
        {
            self.free.remove(&before);
            start = before;
        }
        if let Some(after_len) = self.free.remove(&end) {
            end += after_len;
        }
        self.free.insert(start, end - start);
        true
    }

    /// Whether all of `[addr, addr + len)` lies in one mapped buffer.
    pub fn is_mapped(&self, addr: u64, len: u64) -> bool {
        self.mapped
            .range(..=addr)
            .next_back()
            .is_some_and(|(start, (buffer, _))| addr.checked_add(len).is_some_and(|end| end <= start + buffer))
    }

    /// Every mapped buffer: its address and a copy of its bytes.
    pub fn snapshot(&self) -> Vec<(u64, Vec<u8>)> {
        let copy = |(addr, (len, _)): (&u64, &(u64, u64))| {
            let at = (addr - self.base) as usize;
            (*addr, self.bytes[at..at + *len as usize].to_vec())
        };
        self.mapped.iter().map(copy).collect()
    }

    /// The bytes of a mapped range.
    pub fn get(&self, addr: u64, len: usize) -> Option<&[u8]> {
        if !self.is_mapped(addr, len as u64) {
            return None;
        }
        let at = (addr - self.base) as usize;
        Some(&self.bytes[at..at + len])
    }

    /// The bytes of a mapped range, to be changed.
    pub fn get_mut(&mut self, addr: u64, len: usize) -> Option<&mut [u8]> {
        if !self.is_mapped(addr, len as u64) {
            return None;
        }
        let at = (addr - self.base) as usize;
        Some(&mut self.bytes[at..at + len])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_zeroed_and_bounded_to_the_byte() {
        let mut m = HostMemory::new(0x1_0000_0000, 1 << 20);
        let a = m.alloc(100, 64).unwrap();
        let b = m.alloc(4096, 4096).unwrap();
        assert_eq!((a % 64, b % 4096), (0, 0));
        assert!(m.get(a, 100).unwrap().iter().all(|x| *x == 0));
        assert!(m.is_mapped(a, 100) && m.is_mapped(a + 99, 1));
        assert!(!m.is_mapped(a, 101) && !m.is_mapped(a + 100, 1) && !m.is_mapped(a - 1, 1));
        assert!(!m.is_mapped(u64::MAX, 2) && !m.is_mapped(0, 1));
        assert!(m.get(b, 4096).is_some() && m.get(b, 4097).is_none());
        // Adjacent buffers do not join: a range over both is in neither.
        let c = m.alloc(64, 64).unwrap();
        let d = m.alloc(64, 64).unwrap();
        assert!(!m.is_mapped(c.min(d), c.max(d) - c.min(d) + 64));
    }

    #[test]
    fn freed_memory_is_unmapped_reused_and_merged() {
        let mut m = HostMemory::new(0x1000, 1 << 16);
        let total = m.free_bytes();
        let all: Vec<u64> = (0..40).map(|_| m.alloc(1000, 64).unwrap()).collect();
        m.get_mut(all[3], 4).unwrap().copy_from_slice(b"abcd");
        for order in [3, 5, 4] {
            assert!(m.free(all[order]));
        }
        assert!(!m.free(all[4]) && m.get(all[4], 1).is_none());
        let joined = m.alloc(3000, 64).unwrap();
        assert_eq!(joined, all[3]);
        assert!(
            m.get(joined, 3000).unwrap().iter().all(|x| *x == 0),
            "an allocation is zeroed"
        );
        m.free(joined);
        for (i, a) in all.iter().enumerate() {
            assert_eq!(m.free(*a), !(3..=5).contains(&i));
        }
        assert_eq!((m.free_bytes(), m.buffers()), (total, 0));
        assert!(m.alloc(total - 64, 64).is_some(), "all pieces are one again");
        assert!(m.alloc(64, 64).is_none());
    }
}
