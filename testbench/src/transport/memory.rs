// SPDX-License-Identifier: Apache-2.0
//! The memory of one end, and the keys that name it. A key is a number and, in its low 8 bits, a variable part, which changes each time
//! that memory is put under it anew.

use std::collections::BTreeMap;

use super::{Named, Op, Piece, right};

/// A piece of memory that a command registers.
#[derive(Debug, Clone)]
pub struct Region {
    /// Its key, local and remote.
    pub key: u32,
    /// Address of the first byte.
    pub base: u64,
    /// What it may be used for.
    pub rights: u8,
    /// It was made for fast registration: the key may be invalidated by peers and by work requests.
    pub fast: bool,
    /// What it holds.
    pub bytes: Vec<u8>,
}

/// What sort of key it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Of a region that commands alone make and take away.
    Region,
    /// For fast registration.
    Fast,
    /// A window of type 2.
    Window {
        /// The queue pair that it is bound to.
        qpn: u32,
        /// Number of the region's key.
        region: u32,
    },
}

/// A key and what it names.
#[derive(Debug, Clone)]
struct Name {
    key: u32,
    kind: Kind,
    /// It names something at present.
    live: bool,
    base: u64,
    len: usize,
    rights: u8,
    /// Which memory, and from which byte on.
    store: u32,
    at: usize,
}

/// Key, range or right is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused;

/// Why an operation on a key was not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotDone {
    /// It makes no sense whatever the keys are.
    Malformed,
    /// A key or region does not permit it.
    Refused,
}

/// The memories of one end and their names.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    stores: BTreeMap<u32, Vec<u8>>,
    names: Vec<Name>,
}

/// Who asks, for what a window permits to one queue pair only: nobody in particular.
pub const ANYBODY: u32 = u32::MAX;

impl Memory {
    /// Registers a region. Its memory is called by the key's value from now on.
    pub fn add(&mut self, region: Region) {
        self.names.push(Name {
            key: region.key,
            kind: if region.fast { Kind::Fast } else { Kind::Region },
            live: true,
            base: region.base,
            len: region.bytes.len(),
            rights: region.rights,
            store: region.key,
            at: 0,
        });
        self.stores.insert(region.key, region.bytes);
    }

    /// A key that names nothing yet.
    pub fn allocate(&mut self, key: u32, kind: Kind) {
        self.names.push(Name {
            key,
            kind,
            live: false,
            base: 0,
            len: 0,
            rights: 0,
            store: 0,
            at: 0,
        });
    }

    /// A key is gone, whatever its variable part is by now, and memory that was registered with it.
    pub fn free(&mut self, key: u32) {
        self.names.retain(|n| n.key >> 8 != key >> 8);
        self.stores.remove(&key);
    }

    /// The bytes of a memory.
    pub fn store(&mut self, key: u32) -> Option<&mut Vec<u8>> {
        self.stores.get_mut(&key)
    }

    /// The key names something.
    pub fn is_live(&self, key: u32) -> bool {
        self.names.iter().any(|n| n.live && n.key == key)
    }

    /// Where an access lies: in which memory, how far in it; `by`: the queue pair of this end that it comes through. Nothing is looked
    /// at for a length of 0.
    ///
    /// # Errors
    /// When key, range or right forbid it.
    pub fn check(&self, key: u32, addr: u64, len: usize, need: u8, by: u32) -> Result<(u32, usize), Refused> {
        if len == 0 {
            return Ok((u32::MAX, 0));
        }
        let name = self.names.iter().find(|n| n.live && n.key == key).ok_or(Refused)?;
        let end = u128::from(addr) + len as u128;
        let stranger = matches!(name.kind, Kind::Window { qpn, .. } if qpn != by);
        if stranger || addr < name.base || end > u128::from(name.base) + name.len as u128 || name.rights & need != need
        {
            return Err(Refused);
        }
        Ok((name.store, name.at + (addr - name.base) as usize))
    }

    /// What an access reads.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn read(&self, key: u32, addr: u64, len: usize, need: u8, by: u32) -> Result<Vec<u8>, Refused> {
        let (store, at) = self.check(key, addr, len, need, by)?;
        Ok(match self.stores.get(&store) {
            Some(bytes) => bytes[at..at + len].to_vec(),
            None => Vec::new(),
        })
    }

    /// Writes.
    ///
    /// # Errors
    /// As [`check`](Self::check); nothing is written then.
    pub fn write(&mut self, key: u32, addr: u64, data: &[u8], need: u8, by: u32) -> Result<(), Refused> {
        let (store, at) = self.check(key, addr, data.len(), need, by)?;
        if let Some(bytes) = self.stores.get_mut(&store) {
            bytes[at..at + data.len()].copy_from_slice(data);
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
            out.extend(self.read(p.key, p.addr, p.len as usize, 0, ANYBODY)?);
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
            self.write(p.key, p.addr, &data[at..at + n], right::LOCAL_WRITE, ANYBODY)
                .map_err(|_| at)?;
            at += n;
        }
        if at == data.len() { Ok(()) } else { Err(at) }
    }

    /// Executes an atomic; the 8 bytes there before, as a number.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn atomic(&mut self, op: Op, key: u32, addr: u64, operands: (u64, u64), by: u32) -> Result<u64, Refused> {
        let (store, at) = self.check(key, addr, 8, right::REMOTE_ATOMIC, by)?;
        let place = &mut self.stores.get_mut(&store).ok_or(Refused)?[at..at + 8];
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

    // ---------------------------------------------------------------- operations on keys

    fn bound_to(&self, number: u32) -> bool {
        self.names
            .iter()
            .any(|n| n.live && matches!(n.kind, Kind::Window { region, .. } if region == number))
    }

    /// Invalidates a key, for a peer or for a LOCAL_INV; `by`: the queue pair of this end.
    ///
    /// # Errors
    /// When it names nothing, or something that must not be invalidated so: an ordinary region, a window of another queue pair,
    /// a region with windows.
    pub fn invalidate(&mut self, key: u32, by: u32) -> Result<(), Refused> {
        let bound = self.bound_to(key >> 8);
        let name = self.names.iter_mut().find(|n| n.live && n.key == key).ok_or(Refused)?;
        let may = match name.kind {
            Kind::Region => false,
            Kind::Fast => !bound,
            Kind::Window { qpn, .. } => qpn == by,
        };
        if may {
            name.live = false;
        }
        if may { Ok(()) } else { Err(Refused) }
    }

    /// REG_MR: puts a part of a region's memory under a key for fast registration.
    ///
    /// # Errors
    /// When it makes no sense, or the key names something already.
    pub fn register(&mut self, key: u32, what: &Named) -> Result<(), NotDone> {
        let for_others = right::REMOTE_WRITE | right::REMOTE_ATOMIC;
        if what.len == 0
            || u128::from(what.base) + u128::from(what.len) > 1 << 64
            || what.rights & for_others != 0 && what.rights & right::LOCAL_WRITE == 0
        {
            return Err(NotDone::Malformed);
        }
        let name = self.names.iter_mut().find(|n| n.key >> 8 == key >> 8);
        match name {
            Some(n) if n.kind == Kind::Fast && !n.live => {
                *n = Name {
                    key,
                    kind: Kind::Fast,
                    live: true,
                    base: what.base,
                    len: what.len as usize,
                    rights: what.rights,
                    store: what.region,
                    at: what.at,
                };
                Ok(())
            }
            _ => Err(NotDone::Refused),
        }
    }

    /// BIND_MW: binds a window to a part of a region, for the queue pair `qpn`.
    ///
    /// # Errors
    /// When it makes no sense, the window is bound, or the region does not permit it.
    pub fn bind(&mut self, key: u32, what: &Named, qpn: u32) -> Result<(), NotDone> {
        let remote = right::REMOTE_WRITE | right::REMOTE_READ | right::REMOTE_ATOMIC;
        if what.len == 0
            || u128::from(what.base) + u128::from(what.len) > 1 << 64
            || what.rights & !(remote | right::ZERO_BASED) != 0
        {
            return Err(NotDone::Malformed);
        }
        let writes = what.rights & (right::REMOTE_WRITE | right::REMOTE_ATOMIC) != 0;
        let need = right::MW_BIND | if writes { right::LOCAL_WRITE } else { 0 };
        // A window has no part in another window.
        let (store, at) = self
            .check(what.region, what.base, what.len as usize, need, ANYBODY)
            .map_err(|_| NotDone::Refused)?;
        let name = self.names.iter_mut().find(|n| n.key >> 8 == key >> 8);
        match name {
            Some(n) if matches!(n.kind, Kind::Window { .. }) && !n.live => {
                *n = Name {
                    key,
                    kind: Kind::Window {
                        qpn,
                        region: what.region >> 8,
                    },
                    live: true,
                    base: if what.rights & right::ZERO_BASED != 0 {
                        0
                    } else {
                        what.base
                    },
                    len: what.len as usize,
                    rights: what.rights & remote,
                    store,
                    at,
                };
                Ok(())
            }
            _ => Err(NotDone::Refused),
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
            rights: right::LOCAL_WRITE | right::REMOTE_ATOMIC | right::MW_BIND,
            fast: true,
            bytes: vec![0; 64],
        });
        m
    }

    fn named(base: u64, len: u64, rights: u8) -> Named {
        Named {
            region: 0x100,
            base,
            at: 8,
            len,
            rights,
            one_piece: false,
        }
    }

    #[test]
    fn key_range_and_right_are_judged_and_nothing_for_no_bytes() {
        let m = memory();
        assert!(m.check(0x100, 1000, 64, 0, 1).is_ok());
        assert_eq!(m.check(0x101, 1000, 1, 0, 1), Err(Refused));
        assert_eq!(m.check(0x100, 999, 1, 0, 1), Err(Refused));
        assert_eq!(m.check(0x100, 1000, 65, 0, 1), Err(Refused));
        assert_eq!(m.check(0x100, u64::MAX, 2, 0, 1), Err(Refused));
        assert_eq!(m.check(0x100, 1000, 1, right::REMOTE_READ, 1), Err(Refused));
        assert!(m.check(0, 0, 0, right::REMOTE_READ, 1).is_ok());
    }

    #[test]
    fn atomics_and_invalidation_do_what_they_say() {
        let mut m = memory();
        assert_eq!(m.atomic(Op::FetchAdd, 0x100, 1008, (0, 5), 1).unwrap(), 0);
        assert_eq!(m.atomic(Op::CompareSwap, 0x100, 1008, (4, 9), 1).unwrap(), 5);
        assert_eq!(m.atomic(Op::CompareSwap, 0x100, 1008, (5, 9), 1).unwrap(), 5);
        assert_eq!(m.read(0x100, 1008, 8, 0, 1).unwrap(), 9u64.to_le_bytes());
        m.invalidate(0x100, 1).unwrap();
        assert_eq!(m.invalidate(0x100, 1), Err(Refused));
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
    fn a_key_is_registered_when_it_names_nothing_and_names_what_it_was_given() {
        let mut m = memory();
        m.allocate(0x200, Kind::Fast);
        assert_eq!(m.check(0x200, 0, 1, 0, 1), Err(Refused));
        assert_eq!(
            m.register(0x201, &named(5, 0, right::LOCAL_WRITE)),
            Err(NotDone::Malformed)
        );
        assert_eq!(
            m.register(0x201, &named(5, 8, right::REMOTE_WRITE)),
            Err(NotDone::Malformed)
        );
        let rights = right::LOCAL_WRITE | right::REMOTE_WRITE;
        m.register(0x201, &named(5, 8, rights)).unwrap();
        assert_eq!(m.register(0x202, &named(5, 8, rights)), Err(NotDone::Refused));
        assert_eq!(m.register(0x101, &named(5, 8, rights)), Err(NotDone::Refused));
        m.write(0x201, 6, &[7, 8], right::REMOTE_WRITE, 1).unwrap();
        assert_eq!(m.read(0x100, 1008, 4, 0, 1).unwrap(), [0, 7, 8, 0]);
        assert_eq!(m.check(0x201, 5, 9, 0, 1), Err(Refused));
        m.invalidate(0x201, 1).unwrap();
        m.register(0x202, &named(0, 4, right::REMOTE_READ)).unwrap();
        assert_eq!(m.check(0x201, 5, 1, 0, 1), Err(Refused));
        assert!(m.check(0x202, 3, 1, right::REMOTE_READ, 1).is_ok());
    }

    #[test]
    fn a_window_is_one_queue_pairs_and_holds_its_region() {
        let mut m = memory();
        m.allocate(0x300, Kind::Window { qpn: 0, region: 0 });
        let write = right::REMOTE_WRITE;
        assert_eq!(
            m.bind(0x301, &named(1010, 8, right::LOCAL_WRITE), 5),
            Err(NotDone::Malformed)
        );
        assert_eq!(m.bind(0x301, &named(1060, 8, write), 5), Err(NotDone::Refused));
        m.bind(0x301, &named(1010, 8, write | right::ZERO_BASED), 5).unwrap();
        assert_eq!(m.bind(0x302, &named(1010, 8, write), 5), Err(NotDone::Refused));
        assert_eq!(m.check(0x301, 0, 8, write, 5), Ok((0x100, 10)));
        assert_eq!(m.check(0x301, 0, 8, write, 6), Err(Refused));
        assert_eq!(m.invalidate(0x100, 5), Err(Refused));
        assert_eq!(m.invalidate(0x301, 6), Err(Refused));
        m.invalidate(0x301, 5).unwrap();
        m.invalidate(0x100, 5).unwrap();
        assert_eq!(m.bind(0x302, &named(1010, 8, write), 5), Err(NotDone::Refused));
    }

    #[test]
    fn scattering_tells_how_far_it_came() {
        let mut m = memory();
        let piece = |addr, len| Piece { addr, len, key: 0x100 };
        assert_eq!(m.scatter(&[piece(1000, 3), piece(1010, 9)], &[7; 10]), Ok(()));
        assert_eq!(m.read(0x100, 1010, 8, 0, 1).unwrap(), [7, 7, 7, 7, 7, 7, 7, 0]);
        assert_eq!(m.scatter(&[piece(1000, 3), piece(5000, 9)], &[7; 10]), Err(3));
        assert_eq!(m.scatter(&[piece(1000, 3)], &[7; 4]), Err(3));
    }
}
