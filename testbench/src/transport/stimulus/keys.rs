// SPDX-License-Identifier: Apache-2.0
//! Keys that come and go by work requests: fast registration and windows. Each has memory of its own behind it, which only it opens to
//! others; an end registers or binds it, one of both ends uses it, either end invalidates it, and all begins anew.
//!
//! Where one end depends on what the other one has done, a [`Gate`] makes it wait for the completion that says so, as a program would.
//! Nothing else is waited for: around these requests both ends keep their queues full.

use openrnic_sim::rng::Stream;

use super::{Area, BACKING};
use crate::transport::{Gate, Named, Op, Request, right};

/// What sort of key it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// For fast registration, used by the peer.
    Fast,
    /// For fast registration, used by its owner as the source of what it sends.
    Source,
    /// A window for the peer.
    Window,
}

/// A key of an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// What sort.
    pub sort: Sort,
    /// The key as it is, or as it was last.
    pub key: u32,
    /// What it names at present, and for what.
    pub live: Option<(Area, u8)>,
    /// The region whose memory it opens.
    pub backing: Area,
    /// Place of that memory's first byte in its page.
    pub offset: usize,
    /// In this round: the request that made it; its last use, by the peer or by its owner; how its owner learns that it is gone.
    made: Option<Gate>,
    used: Option<Gate>,
    gone: Option<Gate>,
    /// In this round a READ went through it. A copy of that READ that the wire brings late is executed again, and must find the key.
    read: bool,
}

/// Bytes of a page.
const PAGE: usize = 4096;

impl Key {
    /// One that names nothing.
    pub fn new(sort: Sort, key: u32, backing: Area, offset: usize) -> Self {
        Self {
            sort,
            key,
            live: None,
            backing,
            offset,
            made: None,
            used: None,
            gone: None,
            read: false,
        }
    }

    /// A new round, with everything quiet before it.
    pub fn begin(&mut self) {
        (self.made, self.used, self.gone, self.read) = (None, None, None, false);
    }

    /// The peer may use it for such an access.
    pub fn serves(&self, op: Op, len: usize) -> bool {
        let need = match op {
            Op::Read => right::REMOTE_READ,
            op if op.is_atomic() => right::REMOTE_ATOMIC,
            _ => right::REMOTE_WRITE,
        };
        self.sort != Sort::Source
            && len > 0
            && self
                .live
                .is_some_and(|(area, rights)| rights & need != 0 && area.len >= len)
    }

    /// The peer uses it with a request that will have this place: what it must wait for.
    pub fn use_by_peer(&mut self, op: Op, from: usize, request: usize) -> Option<Gate> {
        self.used = Some(Gate {
            from,
            request,
            received: false,
        });
        self.read |= op == Op::Read;
        self.made
    }

    /// Its owner sends from it.
    pub fn use_by_owner(&mut self, from: usize, request: usize) {
        self.used = Some(Gate {
            from,
            request,
            received: false,
        });
    }

    /// The peer may invalidate it.
    pub fn may_be_invalidated_by_peer(&self) -> bool {
        self.sort != Sort::Source && self.live.is_some() && !self.read
    }

    /// The peer invalidates it with a SEND that will have this place: what that must wait for.
    pub fn invalidate_by_peer(&mut self, from: usize, request: usize) -> Option<Gate> {
        self.live = None;
        self.used = None;
        self.gone = Some(Gate {
            from,
            request,
            received: true,
        });
        self.made.take()
    }

    /// What its owner may do with it next, if anything; the request's fields, for one that will have this place.
    pub fn turn(&mut self, rng: &mut Stream, from: usize, request: usize, r: &mut Request) -> bool {
        if self.live.is_some() {
            // It lives for a while.
            if self.read || rng.chance(0.6) {
                return false;
            }
            r.op = Op::LocalInv;
            r.rkey = self.key;
            match self.used.take() {
                // Its own requests may have to read the memory once more.
                Some(own) if own.from == from => r.fence = true,
                peer => r.after = peer,
            }
            (self.live, self.made, self.gone) = (None, None, None);
            return true;
        }
        self.key = self.key & !0xff | (self.key.wrapping_add(1) & 0xff);
        let named = if self.sort == Sort::Window {
            self.window(rng)
        } else {
            self.registration(rng)
        };
        r.op = if self.sort == Sort::Window {
            Op::BindMw
        } else {
            Op::RegMr
        };
        r.rkey = self.key;
        r.named = Some(named);
        r.after = self.gone.take();
        let zero = named.rights & right::ZERO_BASED != 0;
        let area = Area {
            key: self.key,
            base: if zero { 0 } else { named.base },
            len: named.len as usize,
        };
        self.live = Some((area, named.rights));
        self.made = Some(Gate {
            from,
            request,
            received: false,
        });
        true
    }

    /// A part of the memory, under any address: from its first page on, which is what a page list allows; or a piece of one page.
    fn registration(&self, rng: &mut Stream) -> Named {
        let one_piece = rng.chance(0.25);
        let at = if one_piece {
            8 * rng.below(BACKING as u64 / 16) as usize
        } else {
            8 * rng.below(((PAGE - self.offset) / 8) as u64) as usize
        };
        let room = if one_piece {
            (PAGE - (self.offset + at) % PAGE).min(BACKING - at)
        } else {
            BACKING - at
        };
        let remote = (rng.below(8) as u8) << 1;
        let writes = remote & (right::REMOTE_WRITE | right::REMOTE_ATOMIC) != 0;
        Named {
            region: self.backing.key,
            base: if rng.chance(0.2) { 0 } else { rng.bits() >> 8 & !7 },
            at,
            len: if rng.chance(0.3) {
                room as u64
            } else {
                1 + rng.below(room as u64)
            },
            rights: remote
                | if writes || rng.chance(0.5) {
                    right::LOCAL_WRITE
                } else {
                    0
                },
            one_piece,
        }
    }

    /// A part of the region, at any multiple of 8.
    fn window(&self, rng: &mut Stream) -> Named {
        let at = 8 * rng.below(BACKING as u64 / 8) as usize;
        let room = (BACKING - at) as u64;
        Named {
            region: self.backing.key,
            base: self.backing.base + at as u64,
            at,
            len: if rng.chance(0.3) { room } else { 1 + rng.below(room) },
            rights: (1 + rng.below(7) as u8) << 1 | if rng.chance(0.4) { right::ZERO_BASED } else { 0 },
            one_piece: false,
        }
    }
}
