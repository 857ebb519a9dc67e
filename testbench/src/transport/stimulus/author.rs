// SPDX-License-Identifier: Apache-2.0
//! Writes the work of one direction, a request at a time.

use openrnic_sim::rng::Stream;

use super::faults::{Fault, faulty_op, spoil};
use super::{Area, Ground, Key, LONGEST, SOURCES, Sort, TARGETS, Work};
use crate::transport::responder::allowed;
use crate::transport::{Op, Piece, QpConfig, Receive, Request};

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

/// The work of a direction as far as it is written.
pub(super) struct Author<'a> {
    rng: Stream,
    g: &'a Ground<'a>,
    from: usize,
    /// The requester's queue pair, and the responder's.
    config: QpConfig,
    peer: QpConfig,
    results: Bump,
    buffers: Bump,
    /// Ranges that READs without a fence behind them read.
    reads: Vec<(u64, u64)>,
    fault: Option<(Fault, usize)>,
    broken: bool,
    /// Requests still to be written.
    pub(super) left: usize,
    /// What is written.
    pub(super) out: Work,
}

/// Requests of a direction at most: what a send queue holds.
const MOST: usize = 31;

impl<'a> Author<'a> {
    pub(super) fn new(mut rng: Stream, g: &'a Ground<'a>, from: usize, fault: Option<Fault>) -> Self {
        let to = 1 - from;
        let left = (1 + rng.below(20) as usize).min(g.most).max(1);
        let fault = fault.map(|kind| (kind, 1 + rng.below(left as u64) as usize));
        Self {
            rng,
            g,
            from,
            config: g.configs[from],
            peer: g.configs[to],
            results: Bump {
                area: g.places[from].own,
                at: SOURCES,
            },
            buffers: Bump {
                area: g.places[to].window,
                at: TARGETS,
            },
            reads: Vec::new(),
            fault,
            broken: false,
            left,
            out: Work::default(),
        }
    }

    /// The next request, if there is room for what was drawn.
    pub(super) fn one(&mut self, keys: &mut [Vec<Key>; 2]) {
        let fault = self.fault.filter(|(_, at)| *at == self.left).map(|(kind, _)| kind);
        self.left -= 1;
        if fault.is_none() && !self.broken && self.key_operation(keys) {
            return;
        }
        let (from, to) = (self.from, 1 - self.from);
        let Some((op, len)) = self.draw(fault, keys) else {
            return;
        };
        let shared = self.g.shared[to];
        let mut r = self.request(op);
        if !op.is_key() {
            self.fill(&mut r, len, keys);
        }
        if !op.is_send() && !op.is_key() {
            self.aim(&mut r, len, keys);
        }
        if r.fence {
            let own = if op == Op::Read { self.reads.pop() } else { None };
            self.reads = own.into_iter().collect();
        }
        if op == Op::SendInv {
            let here = self.out.requests.len();
            let mut may: Vec<&mut Key> = keys[to].iter_mut().filter(|k| k.may_be_invalidated_by_peer()).collect();
            let n = self.rng.below(may.len().max(1) as u64) as usize;
            match may.get_mut(n) {
                Some(key) if fault.is_none() => {
                    r.imm = key.key;
                    r.after = key.invalidate_by_peer(from, here);
                }
                _ => r.imm = self.g.places[to].window.key,
            }
        }
        let mut receive = (op.takes_receive() && !shared && !self.broken).then(|| {
            let room = len + self.rng.below(40) as usize;
            Receive {
                wr_id: self.rng.bits() >> 1,
                pieces: if op.is_send() {
                    self.buffers.take(&mut self.rng, room)
                } else {
                    Vec::new()
                },
            }
        });
        if let Some(kind) = fault {
            spoil(&mut self.rng, kind, self.g, from, keys, &mut r, &mut receive);
            self.broken = true;
        }
        self.out.requests.push(r);
        self.out.receives.extend(receive);
    }

    /// A request with everything that needs no place.
    fn request(&mut self, op: Op) -> Request {
        let rng = &mut self.rng;
        Request {
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
            named: None,
            after: None,
        }
    }

    /// Something happens to one of the keys of this end: registered, bound, invalidated.
    fn key_operation(&mut self, keys: &mut [Vec<Key>; 2]) -> bool {
        let own = &mut keys[self.from];
        if own.is_empty() || self.out.requests.len() + self.left + 1 >= MOST || !self.rng.chance(0.3) {
            return false;
        }
        let n = self.rng.below(own.len() as u64) as usize;
        let mut r = self.request(Op::LocalInv);
        r.solicited = false;
        let here = self.out.requests.len();
        if !own[n].turn(&mut self.rng, self.from, here, &mut r) {
            return false;
        }
        // As often as not something else comes in its place, too.
        self.left += usize::from(self.rng.chance(0.7));
        self.out.requests.push(r);
        true
    }

    /// Operation and length, as far as there is room for results and receives.
    fn draw(&mut self, fault: Option<Fault>, keys: &[Vec<Key>; 2]) -> Option<(Op, usize)> {
        let to = 1 - self.from;
        let shared = self.g.shared[to];
        let (rng, peer, config) = (&mut self.rng, &self.peer, &self.config);
        let op = match fault {
            Some(kind) => faulty_op(rng, kind, peer.rights, shared),
            None => {
                let op = Op::ALL[rng.below(Op::ALL.len() as u64) as usize];
                let op = if allowed(peer.rights, op) && (!op.has_response() || config.max_rd_atomic > 0) {
                    op
                } else {
                    Op::Send
                };
                match op {
                    Op::SendInv if self.broken || !keys[to].iter().any(Key::may_be_invalidated_by_peer) => Op::SendImm,
                    op => op,
                }
            }
        };
        if op.is_key() {
            return Some((op, 0));
        }
        let mut len = if op.is_atomic() { 8 } else { length(rng, config.mtu) };
        if let Some(kind) = fault {
            len = match kind {
                Fault::ShortReceive
                | Fault::BadReceive
                | Fault::BadLocal
                | Fault::BadKey
                | Fault::Range
                | Fault::RegionRight
                | Fault::StaleKey
                | Fault::OthersWindow => len.max(1),
                _ => len,
            };
            if op.is_atomic() {
                len = 8;
            }
        }
        // Room for results and receives is short.
        if op == Op::Read && self.results.left() < len + 32 {
            len = len.min(self.results.left().saturating_sub(32));
        }
        if op.is_atomic() && self.results.left() < 48 {
            return None;
        }
        let room = self.buffers.left();
        if op.is_send() && !shared && !self.broken && room < len + 128 {
            len = len.min(room.saturating_sub(128));
            if room < 256 {
                return None;
            }
        }
        Some((op, len))
    }

    /// Where its bytes are, or go.
    fn fill(&mut self, r: &mut Request, len: usize, keys: &mut [Vec<Key>; 2]) {
        let rng = &mut self.rng;
        let own = self.g.places[self.from].own;
        let inline = !r.op.has_response() && len <= 64 && rng.chance(0.3);
        if r.op.is_atomic() {
            r.pieces = vec![Piece {
                addr: self.results.area.base + self.results.at as u64,
                len: 8,
                key: own.key,
            }];
            self.results.at += 8 + rng.below(4) as usize;
        } else if r.op == Op::Read {
            r.pieces = self.results.take(rng, len);
        } else if inline {
            r.inline = Some((0..len).map(|_| rng.bits() as u8).collect());
        } else {
            let here = self.out.requests.len();
            for part in cut(rng, len, 4) {
                let source = keys[self.from]
                    .iter_mut()
                    .filter(|k| k.sort == Sort::Source && !self.broken)
                    .find(|k| k.live.is_some_and(|(area, _)| area.len >= part && part > 0));
                let area = match source {
                    Some(key) if rng.chance(0.5) => {
                        key.use_by_owner(self.from, here);
                        key.live.map_or(own, |(area, _)| area)
                    }
                    _ => Area { len: SOURCES, ..own },
                };
                r.pieces.push(Piece {
                    addr: area.base + rng.below((area.len - part) as u64 + 1),
                    len: part as u32,
                    key: area.key,
                });
            }
        }
    }

    /// Where it goes at the peer, and what must not overlap it.
    fn aim(&mut self, r: &mut Request, len: usize, keys: &mut [Vec<Key>; 2]) {
        let rng = &mut self.rng;
        let to = 1 - self.from;
        let window = self.g.places[to].window;
        let op = r.op;
        let span = if op.is_atomic() { 8 } else { len };
        let serving = keys[to].iter_mut().filter(|k| k.serves(op, span) && !self.broken);
        let mut serving: Vec<&mut Key> = serving.collect();
        let n = rng.below(serving.len().max(1) as u64) as usize;
        let (area, limit) = match serving.get_mut(n) {
            Some(key) if rng.chance(0.6) => {
                r.after = key.use_by_peer(op, self.from, self.out.requests.len());
                key.live.map_or((window, TARGETS), |(area, _)| (area, area.len))
            }
            _ => (window, TARGETS),
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
        let overlaps = self.reads.iter().any(|o| o.0 < range.1 && range.0 < o.1);
        if op == Op::Read {
            self.reads.push(range);
        } else if overlaps {
            r.fence = true;
        }
        if op == Op::CompareSwap && rng.chance(0.6) {
            let word = self.g.memory[to]
                .read(r.rkey, r.va, 8, 0, self.peer.qpn)
                .ok()
                .and_then(|b| b.try_into().ok());
            r.operands.0 = word.map_or(0, u64::from_le_bytes);
        }
    }

    /// All of it.
    pub(super) fn finish(mut self) -> Work {
        let rng = &mut self.rng;
        if let Some(last) = self.out.requests.last_mut() {
            // When it has completed, all have.
            last.signaled = true;
        }
        if let Some((kind, _)) = self.fault {
            // Receives behind the one at fault are flushed, where the responder fails.
            let fails = !matches!(
                kind,
                Fault::BadLocal | Fault::NotReady | Fault::Silence | Fault::KeyOperation
            );
            if fails && self.broken && !self.g.shared[1 - self.from] {
                for _ in 0..rng.below(3) {
                    self.out.receives.push(Receive {
                        wr_id: rng.bits() >> 1,
                        pieces: Vec::new(),
                    });
                }
            }
        } else if self.config.rnr_retry == 7 && rng.chance(0.2) && !self.out.receives.is_empty() {
            self.out.late = 1 + rng.below(self.out.receives.len() as u64) as usize;
        }
        self.out
    }
}
