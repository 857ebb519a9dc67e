// SPDX-License-Identifier: Apache-2.0
//! Random work. What one connection does in one round depends on the seed, the round and the connection's number alone, so that
//! others can be left out of a run without changing it.
//!
//! The outcome must not depend on the order in which the wire and the hosts do things. So results and receives land in places of
//! their own; WRITEs and atomics of a direction may overlap, since they are executed in order; and what overlaps a READ before it
//! carries a fence, since a READ that is asked for again reads the memory again.

use openrnic_sim::rng::Stream;

use super::memory::Memory;
use super::requester::psns_of;
use super::responder::allowed;
use super::{Op, Piece, QpConfig, Receive, Request};

/// A part of a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Area {
    /// The region's key.
    pub key: u32,
    /// Address of its first byte.
    pub base: u64,
    /// Bytes.
    pub len: usize,
}

/// Memory of one end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Places {
    /// Sources ([`SOURCES`] bytes), behind them results. No peer may touch it.
    pub own: Area,
    /// What peers write and read ([`TARGETS`] bytes), behind them receives.
    pub window: Area,
    /// A region that the peer may invalidate.
    pub fast: Option<Area>,
}

/// Bytes of sources.
pub const SOURCES: usize = 8192;
/// Bytes that peers write and read.
pub const TARGETS: usize = 6144;
/// Bytes of each region.
pub const SPAN: usize = 49152;
/// Bytes of a region that can be invalidated.
pub const FAST: usize = 1024;
/// Longest message.
pub const LONGEST: usize = 4500;

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
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 11] = [
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
    ];
}

/// Work of one direction.
#[derive(Debug, Clone, Default)]
pub struct Work {
    /// Posted in this order.
    pub requests: Vec<Request>,
    /// What the other end posts for it.
    pub receives: Vec<Receive>,
    /// Of these, the last ones that it posts late.
    pub late: usize,
}

/// What a connection does in a round.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// Work from end 0, from end 1.
    pub work: [Work; 2],
    /// What goes wrong, in which direction.
    pub fault: Option<(Fault, usize)>,
    /// It is made anew afterwards although nothing went wrong.
    pub renew: bool,
}

/// What a plan is drawn for.
pub struct Ground<'a> {
    /// Both queue pairs.
    pub configs: [QpConfig; 2],
    /// Memory of both ends.
    pub places: [Places; 2],
    /// Receives of an end come from a shared queue.
    pub shared: [bool; 2],
    /// What the memories hold.
    pub memory: &'a [Memory; 2],
    /// Requests of a direction at most.
    pub most: usize,
    /// Things may go wrong on purpose.
    pub faults: bool,
}

/// Places handed out one after the other.
struct Bump {
    area: Area,
    at: usize,
}

impl Bump {
    fn left(&self) -> usize {
        self.area.len - self.at
    }

    /// A few pieces for so many bytes, which are there.
    fn take(&mut self, rng: &mut Stream, len: usize) -> Vec<Piece> {
        let parts = cut(rng, len, 4);
        let mut pieces = Vec::new();
        for part in parts {
            self.at += (rng.below(4) as usize).min(self.left().saturating_sub(part));
            pieces.push(Piece {
                addr: self.area.base + self.at as u64,
                len: part as u32,
                key: self.area.key,
            });
            self.at += part;
        }
        pieces
    }
}

/// Cuts a length into one to `most` parts, of which some may be empty.
fn cut(rng: &mut Stream, len: usize, most: u64) -> Vec<usize> {
    if len == 0 && rng.chance(0.5) {
        return Vec::new();
    }
    let parts = if rng.chance(0.4) {
        1
    } else {
        1 + rng.below(most) as usize
    };
    let mut left = len;
    let mut out: Vec<usize> = (1..parts)
        .map(|_| {
            let n = if rng.chance(0.1) {
                0
            } else {
                rng.below(left as u64 + 1) as usize
            };
            left -= n;
            n
        })
        .collect();
    out.push(left);
    out
}

fn length(rng: &mut Stream, mtu: usize) -> usize {
    let n = match rng.below(12) {
        0 => 0,
        1 | 2 => 1 + rng.below(64) as usize,
        3 => mtu - 1 + rng.below(3) as usize,
        4 => 2 * mtu - 1 + rng.below(3) as usize,
        5 | 6 => rng.below(3 * mtu as u64 + 2) as usize,
        _ => rng.below(700) as usize,
    };
    n.min(LONGEST)
}

/// The plan of a connection for a round.
pub fn plan(rng: &mut Stream, ground: &Ground<'_>) -> Plan {
    let mut plan = Plan {
        renew: rng.chance(0.03),
        ..Plan::default()
    };
    let faulty = rng.chance(0.14) && ground.faults;
    if faulty {
        let from = rng.below(2) as usize;
        let kind = Fault::ALL[rng.below(Fault::ALL.len() as u64) as usize];
        if possible(kind, from, ground) {
            plan.fault = Some((kind, from));
        }
    }
    for from in 0..2 {
        let (quiet, fault) = match plan.fault {
            Some((kind, at)) if at == from => (false, Some(kind)),
            Some(_) => (true, None),
            None => (rng.chance(0.12), None),
        };
        let mut rng = Stream::new(rng.bits(), "transport work", from as u64);
        if !quiet {
            plan.work[from] = work(&mut rng, ground, from, fault);
        }
    }
    plan
}

fn possible(kind: Fault, from: usize, g: &Ground<'_>) -> bool {
    let to = 1 - from;
    match kind {
        Fault::ShortReceive | Fault::BadReceive | Fault::BadInvalidate => !g.shared[to],
        Fault::NotReady => !g.shared[to] && g.configs[from].rnr_retry < 7,
        Fault::QueueRight => Op::ALL.iter().any(|op| !allowed(g.configs[to].rights, *op)),
        Fault::Unaligned => allowed(g.configs[to].rights, Op::FetchAdd),
        Fault::BadKey | Fault::Range | Fault::RegionRight => allowed(g.configs[to].rights, Op::Write),
        Fault::BadLocal | Fault::Silence => true,
    }
}

fn work(rng: &mut Stream, g: &Ground<'_>, from: usize, fault: Option<Fault>) -> Work {
    let to = 1 - from;
    let (config, peer) = (g.configs[from], g.configs[to]);
    let (own, window) = (g.places[from].own, g.places[to].window);
    let mut results = Bump { area: own, at: SOURCES };
    let mut buffers = Bump {
        area: window,
        at: TARGETS,
    };
    let mut fast = g.places[to].fast;
    let mut out = Work::default();
    let mut reads: Vec<(u64, u64)> = Vec::new();
    let count = (1 + rng.below(20) as usize).min(g.most).max(1);
    let faulty_at = fault.map(|_| rng.below(count as u64) as usize);
    let mut broken = false;
    let mut inv_next = false;
    let mut n = 0;
    while n < count {
        let here = faulty_at == Some(n);
        n += 1;
        let op = match fault.filter(|_| here) {
            Some(kind) => faulty_op(rng, kind, peer.rights, g.shared[to]),
            None if inv_next => Op::SendInv,
            None => {
                let op = Op::ALL[rng.below(Op::ALL.len() as u64) as usize];
                let op = if allowed(peer.rights, op) && (!op.has_response() || config.max_rd_atomic > 0) {
                    op
                } else {
                    Op::Send
                };
                match op {
                    Op::SendInv if fast.is_none() || broken => Op::SendImm,
                    op => op,
                }
            }
        };
        let mut len = if op.is_atomic() { 8 } else { length(rng, config.mtu) };
        if let Some(kind) = fault.filter(|_| here) {
            len = match kind {
                Fault::ShortReceive
                | Fault::BadReceive
                | Fault::BadLocal
                | Fault::BadKey
                | Fault::Range
                | Fault::RegionRight => len.max(1),
                _ => len,
            };
            if op.is_atomic() {
                len = 8;
            }
        }
        // Room for results and receives is short.
        if op == Op::Read && results.left() < len + 32 {
            len = len.min(results.left().saturating_sub(32));
        }
        if op.is_atomic() && results.left() < 48 {
            continue;
        }
        let room = buffers.left();
        let buffer = op.is_send() && !g.shared[to] && !broken;
        if buffer && room < len + 128 {
            len = len.min(room.saturating_sub(128));
            if room < 256 {
                continue;
            }
        }
        let inline = !op.has_response() && len <= 64 && rng.chance(0.3);
        let mut r = Request {
            wr_id: rng.bits() >> 1,
            op,
            pieces: Vec::new(),
            inline: None,
            signaled: rng.chance(0.75),
            solicited: rng.chance(0.3),
            fence: rng.chance(0.12),
            imm: rng.bits() as u32,
            va: 0,
            rkey: 0,
            operands: (rng.bits(), rng.bits() >> rng.below(60)),
        };
        if op.is_atomic() {
            r.pieces = vec![Piece {
                addr: results.area.base + results.at as u64,
                len: 8,
                key: own.key,
            }];
            results.at += 8 + rng.below(4) as usize;
        } else if op == Op::Read {
            r.pieces = results.take(rng, len);
        } else if inline {
            r.inline = Some((0..len).map(|_| rng.bits() as u8).collect());
        } else {
            r.pieces = cut(rng, len, 4)
                .into_iter()
                .map(|part| Piece {
                    addr: own.base + rng.below((SOURCES - part) as u64 + 1),
                    len: part as u32,
                    key: own.key,
                })
                .collect();
        }
        if !op.is_send() {
            let span = if op.is_atomic() { 8 } else { len };
            let to_fast = fast.filter(|_| op.is_write() && len <= FAST && !inv_next && rng.chance(0.3) && !broken);
            let (area, limit) = match to_fast {
                Some(area) => (area, FAST),
                None => (window, TARGETS),
            };
            r.va = area.base + rng.below((limit - span) as u64 + 1);
            r.rkey = area.key;
            if op.is_atomic() {
                r.va &= !7;
            }
            if span == 0 && rng.chance(0.5) {
                // Nothing is looked at then.
                (r.va, r.rkey) = (u64::MAX, 0xdead_be00);
            }
            let range = (r.va, r.va.saturating_add(span as u64));
            let overlaps = reads.iter().any(|o| o.0 < range.1 && range.0 < o.1);
            if op == Op::Read {
                reads.push(range);
            } else if overlaps {
                r.fence = true;
            }
            if op == Op::CompareSwap && rng.chance(0.6) {
                let word = g.memory[to]
                    .read(r.rkey, r.va, 8, 0)
                    .ok()
                    .and_then(|b| b.try_into().ok());
                r.operands.0 = word.map_or(0, u64::from_le_bytes);
            }
        }
        if r.fence {
            let own = if op == Op::Read { reads.pop() } else { None };
            reads = own.into_iter().collect();
        }
        if op == Op::SendInv {
            match fast.take() {
                Some(area) => r.imm = area.key,
                None => r.imm = window.key,
            }
        }
        inv_next = false;
        let mut receive = (op.takes_receive() && !g.shared[to] && !broken).then(|| {
            let room = len + rng.below(40) as usize;
            Receive {
                wr_id: rng.bits() >> 1,
                pieces: if op.is_send() {
                    buffers.take(rng, room)
                } else {
                    Vec::new()
                },
            }
        });
        if let Some(kind) = fault.filter(|_| here) {
            spoil(rng, kind, g, from, &mut r, &mut receive);
            broken = true;
        }
        out.requests.push(r);
        out.receives.extend(receive);
    }
    if let Some(last) = out.requests.last_mut() {
        // When it has completed, all have.
        last.signaled = true;
    }
    if let Some(kind) = fault {
        // Receives behind the one at fault are flushed, where the responder fails.
        let fails = !matches!(kind, Fault::BadLocal | Fault::NotReady | Fault::Silence);
        if fails && broken && !g.shared[to] {
            for _ in 0..rng.below(3) {
                out.receives.push(Receive {
                    wr_id: rng.bits() >> 1,
                    pieces: Vec::new(),
                });
            }
        }
    } else if config.rnr_retry == 7 && rng.chance(0.2) && !out.receives.is_empty() {
        out.late = 1 + rng.below(out.receives.len() as u64) as usize;
    }
    out
}

fn faulty_op(rng: &mut Stream, kind: Fault, rights: u8, shared: bool) -> Op {
    let of = |rng: &mut Stream, ops: &[Op]| ops[rng.below(ops.len() as u64) as usize];
    match kind {
        Fault::BadKey | Fault::Range | Fault::RegionRight => loop {
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
    }
}

/// A key that names nothing.
const NO_KEY: u32 = 0x00ff_ff00;

fn spoil(rng: &mut Stream, kind: Fault, g: &Ground<'_>, from: usize, r: &mut Request, receive: &mut Option<Receive>) {
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
            r.imm = if rng.chance(0.5) {
                NO_KEY
            } else {
                g.places[to].window.key
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

/// PSNs that some work takes: how far the wrap is crossed.
pub fn psns(work: &Work, mtu: usize) -> u64 {
    work.requests.iter().map(|r| psns_of(r.op, r.len(), mtu)).sum()
}
