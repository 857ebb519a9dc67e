// SPDX-License-Identifier: Apache-2.0
//! What goes wrong on purpose: which operation shows it, and how its request or receive is spoilt.

use openrnic_sim::rng::Stream;

use super::keys::{Key, Sort};
use super::{Area, Ground};
use crate::transport::responder::allowed;
use crate::transport::{Named, Op, Piece, Receive, Request, right};

/// What goes wrong on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A remote key that names nothing.
    BadKey,
    /// An access beyond its region.
    Range,
    /// A region that peers may not touch.
    RegionRight,
    /// An operation that the queue pair does not take.
    QueueRight,
    /// An atomic that is not aligned.
    Unaligned,
    /// A receive that is too short.
    ShortReceive,
    /// A receive whose key names nothing.
    BadReceive,
    /// A key to invalidate that must not be.
    BadInvalidate,
    /// A local key that names nothing.
    BadLocal,
    /// No receive, and the requester does not wait for ever.
    NotReady,
    /// Nothing of what the requester sends arrives.
    Silence,
    /// A key that was invalidated, or that nothing was ever registered under.
    StaleKey,
    /// A window that is bound to another queue pair.
    OthersWindow,
    /// An operation on a key that the key or the region does not permit, or that makes no sense.
    KeyOperation,
}

impl Fault {
    /// Those that concern keys which come and go.
    pub const KEYS: [Self; 5] = [
        Self::StaleKey,
        Self::OthersWindow,
        Self::KeyOperation,
        Self::KeyOperation,
        Self::BadInvalidate,
    ];

    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::BadKey,
        Self::Range,
        Self::RegionRight,
        Self::QueueRight,
        Self::Unaligned,
        Self::ShortReceive,
        Self::BadReceive,
        Self::BadInvalidate,
        Self::BadLocal,
        Self::NotReady,
        Self::Silence,
        Self::StaleKey,
        Self::OthersWindow,
        Self::KeyOperation,
    ];
}

pub(super) fn possible(kind: Fault, from: usize, g: &Ground<'_>) -> bool {
    let to = 1 - from;
    match kind {
        Fault::ShortReceive | Fault::BadReceive | Fault::BadInvalidate => !g.shared[to],
        Fault::NotReady => !g.shared[to] && g.configs[from].rnr_retry < 7,
        Fault::QueueRight => Op::ALL.iter().any(|op| !allowed(g.configs[to].rights, *op)),
        Fault::Unaligned => allowed(g.configs[to].rights, Op::FetchAdd),
        Fault::BadKey | Fault::Range | Fault::RegionRight => allowed(g.configs[to].rights, Op::Write),
        Fault::BadLocal | Fault::Silence | Fault::KeyOperation => true,
        Fault::StaleKey => allowed(g.configs[to].rights, Op::Write) && g.keys[to].iter().any(|k| k.live.is_none()),
        Fault::OthersWindow => allowed(g.configs[to].rights, Op::Write) && g.others_window[to].is_some(),
    }
}

pub(super) fn faulty_op(rng: &mut Stream, kind: Fault, rights: u8, shared: bool) -> Op {
    let of = |rng: &mut Stream, ops: &[Op]| ops[rng.below(ops.len() as u64) as usize];
    match kind {
        Fault::BadKey | Fault::Range | Fault::RegionRight | Fault::StaleKey | Fault::OthersWindow => loop {
            let op = of(rng, &[Op::Write, Op::WriteImm, Op::Read, Op::CompareSwap, Op::FetchAdd]);
            if allowed(rights, op) && !(shared && op == Op::WriteImm) {
                return op;
            }
        },
        Fault::QueueRight => loop {
            let op = of(rng, &Op::ALL);
            if !allowed(rights, op) {
                return op;
            }
        },
        Fault::Unaligned => of(rng, &[Op::CompareSwap, Op::FetchAdd]),
        Fault::ShortReceive | Fault::BadReceive => of(rng, &[Op::Send, Op::SendImm]),
        Fault::BadInvalidate => Op::SendInv,
        Fault::BadLocal => loop {
            let op = of(rng, &[Op::Send, Op::SendImm, Op::Write, Op::Read, Op::FetchAdd]);
            if allowed(rights, op) {
                return op;
            }
        },
        Fault::NotReady => loop {
            let op = of(rng, &[Op::Send, Op::SendImm, Op::WriteImm]);
            if allowed(rights, op) {
                return op;
            }
        },
        Fault::Silence => Op::Send,
        Fault::KeyOperation => of(rng, &Op::KEYS),
    }
}

/// A key that names nothing.
const NO_KEY: u32 = 0x00ff_ff00;

pub(super) fn spoil(
    rng: &mut Stream,
    kind: Fault,
    g: &Ground<'_>,
    from: usize,
    keys: &[Vec<Key>; 2],
    r: &mut Request,
    receive: &mut Option<Receive>,
) {
    let to = 1 - from;
    match kind {
        // A wrong variable part, or a number that does not exist.
        Fault::BadKey => {
            r.rkey = if rng.chance(0.5) {
                NO_KEY
            } else {
                g.places[to].window.key ^ (1 + rng.below(255) as u32)
            };
            r.va = g.places[to].window.base;
        }
        Fault::Range => {
            let window = g.places[to].window;
            r.rkey = window.key;
            r.va = match rng.below(4) {
                0 => u64::MAX - 7,
                1 => window.base - 8,
                2 => window.base + window.len as u64 + 8,
                _ => (window.base + (window.len + 1 - r.len()) as u64).next_multiple_of(8),
            };
        }
        Fault::RegionRight => {
            r.rkey = g.places[to].own.key;
            r.va = g.places[to].own.base;
        }
        Fault::QueueRight | Fault::Silence => {}
        Fault::StaleKey => {
            if let Some(key) = pick(rng, keys[to].iter().filter(|k| k.live.is_none())) {
                (r.rkey, r.va) = (key.key, key.backing.base);
            }
        }
        Fault::OthersWindow => {
            if let Some(area) = g.others_window[to] {
                (r.rkey, r.va) = (area.key, area.base.next_multiple_of(8));
            }
        }
        Fault::KeyOperation => key_operation(rng, g, from, keys, r),
        Fault::Unaligned => r.va += 1 + rng.below(7),
        Fault::ShortReceive => {
            if let Some(receive) = receive {
                shorten(receive, rng.below(r.len() as u64) as usize);
            }
        }
        Fault::BadReceive => {
            if let Some(receive) = receive {
                // One of the pieces that are used.
                let used: Vec<usize> = used_pieces(receive, r.len());
                if let Some(at) = used.get(rng.below(used.len().max(1) as u64) as usize) {
                    receive.pieces[*at].key = NO_KEY;
                }
            }
        }
        Fault::BadInvalidate => {
            let dead = pick(rng, keys[to].iter().filter(|k| k.live.is_none())).map(|k| k.key);
            r.imm = match (rng.below(3), dead) {
                (0, _) => NO_KEY,
                (1, Some(key)) => key,
                _ => g.places[to].window.key,
            }
        }
        Fault::BadLocal => {
            r.inline = None;
            match r.pieces.iter_mut().find(|p| p.len > 0) {
                Some(piece) => piece.key = NO_KEY,
                None => {
                    r.pieces = vec![Piece {
                        addr: g.places[from].own.base,
                        len: 8,
                        key: NO_KEY,
                    }]
                }
            }
            // Nothing before it: what is good in front of it would be sent, or not.
            if let Some(at) = r.pieces.iter().position(|p| p.key == NO_KEY) {
                r.pieces.drain(..at);
            }
        }
        Fault::NotReady => *receive = None,
    }
}

fn shorten(receive: &mut Receive, len: usize) {
    let mut left = len;
    for p in &mut receive.pieces {
        p.len = p.len.min(left as u32);
        left -= p.len as usize;
    }
}

/// Pieces that hold at least one byte of a message.
fn used_pieces(receive: &Receive, len: usize) -> Vec<usize> {
    let mut at = 0;
    let mut out = Vec::new();
    for (n, p) in receive.pieces.iter().enumerate() {
        if at < len && p.len > 0 {
            out.push(n);
        }
        at += p.len as usize;
    }
    out
}

/// An operation that is refused: by what it says, by the key, or by the region.
fn key_operation(rng: &mut Stream, g: &Ground<'_>, from: usize, keys: &[Vec<Key>; 2], r: &mut Request) {
    let (own, window) = (g.places[from].own, g.places[from].window);
    let key = |sort: &[Sort], live: bool| {
        let fits = |k: &&Key| sort.contains(&k.sort) && k.live.is_some() == live;
        keys[from].iter().find(fits).copied()
    };
    let next = |k: &Key| k.key & !0xff | (k.key.wrapping_add(1) & 0xff);
    (r.pieces, r.inline, r.after) = (Vec::new(), None, None);
    let named = |region: Area, base: u64, len: u64, rights: u8| Named {
        region: region.key,
        base,
        at: 0,
        len,
        rights,
        one_piece: false,
    };
    let good = right::LOCAL_WRITE | right::REMOTE_WRITE;
    match r.op {
        Op::RegMr => {
            let fast = [Sort::Fast, Sort::Source];
            let (live, dead) = (key(&fast, true), key(&fast, false));
            let (key, what) = match (live, dead) {
                // Not invalidated before.
                (Some(k), _) if rng.chance(0.6) => (next(&k), named(k.backing, 0, 64, good)),
                // No bytes; rights for others alone; past the last address.
                (_, Some(k)) => {
                    let bad = [
                        named(k.backing, 0, 0, good),
                        named(k.backing, 0, 64, right::REMOTE_WRITE),
                        named(k.backing, u64::MAX - 7, 64, good),
                    ];
                    (next(&k), bad[rng.below(3) as usize])
                }
                // An ordinary region is not registered so.
                _ => (own.key, named(own, 0, 64, good)),
            };
            (r.rkey, r.named) = (key, Some(what));
        }
        Op::BindMw => {
            let windows = [Sort::Window];
            let (live, dead) = (key(&windows, true), key(&windows, false));
            let write = right::REMOTE_WRITE;
            let (key, what) = match (live, dead) {
                // Bound.
                (Some(k), _) => (next(&k), named(k.backing, k.backing.base, 64, write)),
                // No bytes; a right that is no peer's; beyond the region; a region that permits no windows.
                (_, Some(k)) => {
                    let end = k.backing.base + k.backing.len as u64;
                    let bad = [
                        named(k.backing, k.backing.base, 0, write),
                        named(k.backing, k.backing.base, 64, write | right::LOCAL_WRITE),
                        named(k.backing, end - 63, 64, write),
                        named(k.backing, k.backing.base.wrapping_sub(8), 64, write),
                        named(window, window.base, 64, write),
                    ];
                    (next(&k), bad[rng.below(5) as usize])
                }
                _ => (own.key, named(own, own.base, 64, write)),
            };
            (r.rkey, r.named) = (key, Some(what));
        }
        _ => {
            r.op = Op::LocalInv;
            let dead = pick(rng, keys[from].iter().filter(|k| k.live.is_none())).map(|k| k.key);
            r.rkey = match (rng.below(3), dead) {
                (0, _) => NO_KEY,
                (1, Some(key)) => key,
                _ => own.key,
            };
        }
    }
}

fn pick<'a>(rng: &mut Stream, from: impl Iterator<Item = &'a Key>) -> Option<Key> {
    let all: Vec<&Key> = from.collect();
    all.get(rng.below(all.len().max(1) as u64) as usize).map(|k| **k)
}
