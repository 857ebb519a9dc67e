// SPDX-License-Identifier: Apache-2.0
//! The memory of one end, and the keys that name it.

use super::{Op, Piece, right};

/// A registered piece of memory.
#[derive(Debug, Clone)]
pub struct Region {
    /// Its key, local and remote.
    pub key: u32,
    /// Address of the first byte.
    pub base: u64,
    /// What it may be used for.
    pub rights: u8,
    /// A peer may invalidate the key.
    pub fast: bool,
    /// The key names it; false after it was invalidated.
    pub valid: bool,
    /// What it holds.
    pub bytes: Vec<u8>,
}

/// Key, range or right is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused;

/// The regions of one end.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    /// In any order.
    pub regions: Vec<Region>,
}

impl Memory {
    /// Registers a region.
    pub fn add(&mut self, region: Region) {
        self.regions.push(region);
    }

    /// The region of a key, if the key names one.
    pub fn find(&self, key: u32) -> Option<&Region> {
        self.regions.iter().find(|r| r.valid && r.key == key)
    }

    /// Where an access lies: which region, how far in it. Nothing is looked at for a length of 0.
    ///
    /// # Errors
    /// When key, range or right forbid it.
    pub fn check(&self, key: u32, addr: u64, len: usize, need: u8) -> Result<(usize, usize), Refused> {
        if len == 0 {
            return Ok((usize::MAX, 0));
        }
        let at = self
            .regions
            .iter()
            .position(|r| r.valid && r.key == key)
            .ok_or(Refused)?;
        let region = &self.regions[at];
        let end = addr.checked_add(len as u64).ok_or(Refused)?;
        if addr < region.base || end > region.base + region.bytes.len() as u64 || region.rights & need != need {
            return Err(Refused);
        }
        Ok((at, (addr - region.base) as usize))
    }

    /// What an access reads.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn read(&self, key: u32, addr: u64, len: usize, need: u8) -> Result<Vec<u8>, Refused> {
        let (at, offset) = self.check(key, addr, len, need)?;
        Ok(match self.regions.get(at) {
            Some(region) => region.bytes[offset..offset + len].to_vec(),
            None => Vec::new(),
        })
    }

    /// Writes.
    ///
    /// # Errors
    /// As [`check`](Self::check); nothing is written then.
    pub fn write(&mut self, key: u32, addr: u64, data: &[u8], need: u8) -> Result<(), Refused> {
        let (at, offset) = self.check(key, addr, data.len(), need)?;
        if let Some(region) = self.regions.get_mut(at) {
            region.bytes[offset..offset + data.len()].copy_from_slice(data);
        }
        Ok(())
    }

    /// All pieces one after the other.
    ///
    /// # Errors
    /// As [`check`](Self::check), for any of the pieces.
    pub fn gather(&self, pieces: &[Piece]) -> Result<Vec<u8>, Refused> {
        let mut out = Vec::new();
        for p in pieces {
            out.extend(self.read(p.key, p.addr, p.len as usize, 0)?);
        }
        Ok(out)
    }

    /// Spreads data over pieces; what it needs of them is judged, no more.
    ///
    /// # Errors
    /// How many bytes stand before the piece at fault, which are written.
    pub fn scatter(&mut self, pieces: &[Piece], data: &[u8]) -> Result<(), usize> {
        let mut at = 0;
        for p in pieces {
            let n = (p.len as usize).min(data.len() - at);
            self.write(p.key, p.addr, &data[at..at + n], right::LOCAL_WRITE)
                .map_err(|_| at)?;
            at += n;
        }
        if at == data.len() { Ok(()) } else { Err(at) }
    }

    /// Executes an atomic; the 8 bytes there before, as a number.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn atomic(&mut self, op: Op, key: u32, addr: u64, operands: (u64, u64)) -> Result<u64, Refused> {
        let (at, offset) = self.check(key, addr, 8, right::REMOTE_ATOMIC)?;
        let place = &mut self.regions[at].bytes[offset..offset + 8];
        let mut word = [0; 8];
        word.copy_from_slice(place);
        let was = u64::from_le_bytes(word);
        let new = match op {
            Op::CompareSwap if was != operands.0 => was,
            Op::CompareSwap => operands.1,
            _ => was.wrapping_add(operands.1),
        };
        place.copy_from_slice(&new.to_le_bytes());
        Ok(was)
    }

    /// Invalidates a key for a peer.
    ///
    /// # Errors
    /// When it names nothing, or something that peers may not invalidate.
    pub fn invalidate(&mut self, key: u32) -> Result<(), Refused> {
        match self.regions.iter_mut().find(|r| r.valid && r.key == key && r.fast) {
            Some(region) => {
                region.valid = false;
                Ok(())
            }
            None => Err(Refused),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn memory() -> Memory {
        let mut m = Memory::default();
        m.add(Region {
            key: 0x100,
            base: 1000,
            rights: right::LOCAL_WRITE | right::REMOTE_ATOMIC,
            fast: true,
            valid: true,
            bytes: vec![0; 64],
        });
        m
    }

    #[test]
    fn key_range_and_right_are_judged_and_nothing_for_no_bytes() {
        let m = memory();
        assert!(m.check(0x100, 1000, 64, 0).is_ok());
        assert_eq!(m.check(0x101, 1000, 1, 0), Err(Refused));
        assert_eq!(m.check(0x100, 999, 1, 0), Err(Refused));
        assert_eq!(m.check(0x100, 1000, 65, 0), Err(Refused));
        assert_eq!(m.check(0x100, u64::MAX, 2, 0), Err(Refused));
        assert_eq!(m.check(0x100, 1000, 1, right::REMOTE_READ), Err(Refused));
        assert!(m.check(0, 0, 0, right::REMOTE_READ).is_ok());
    }

    #[test]
    fn atomics_and_invalidation_do_what_they_say() {
        let mut m = memory();
        assert_eq!(m.atomic(Op::FetchAdd, 0x100, 1008, (0, 5)).unwrap(), 0);
        assert_eq!(m.atomic(Op::CompareSwap, 0x100, 1008, (4, 9)).unwrap(), 5);
        assert_eq!(m.atomic(Op::CompareSwap, 0x100, 1008, (5, 9)).unwrap(), 5);
        assert_eq!(m.read(0x100, 1008, 8, 0).unwrap(), 9u64.to_le_bytes());
        m.invalidate(0x100).unwrap();
        assert_eq!(m.invalidate(0x100), Err(Refused));
        assert!(
            m.gather(&[Piece {
                addr: 1000,
                len: 1,
                key: 0x100
            }])
            .is_err()
        );
    }

    #[test]
    fn scattering_tells_how_far_it_came() {
        let mut m = memory();
        let piece = |addr, len| Piece { addr, len, key: 0x100 };
        assert_eq!(m.scatter(&[piece(1000, 3), piece(1010, 9)], &[7; 10]), Ok(()));
        assert_eq!(m.read(0x100, 1010, 8, 0).unwrap(), [7, 7, 7, 7, 7, 7, 7, 0]);
        assert_eq!(m.scatter(&[piece(1000, 3), piece(5000, 9)], &[7; 10]), Err(3));
        assert_eq!(m.scatter(&[piece(1000, 3)], &[7; 4]), Err(3));
    }
}
