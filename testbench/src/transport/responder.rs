// SPDX-License-Identifier: Apache-2.0
//! The responder's end of one queue pair: which of the delivered requests it executes, which responses may follow, and which must.
//!
//! Requests are taken when the wire has delivered them; the device comes to them later, in the same order. Where that makes a
//! difference (a receive that is posted just then) it waits until a response shows which way it was. A request that the
//! device lost inside, for want of room, shows the same way: it is an [`Responder::internal_losses`], to be allowed only where
//! the device has counted such losses.

use std::collections::{BTreeSet, VecDeque};

use super::requester::{LAG_NS, Message, Requester};
use super::{Checked, Op, differ, opcode, psn_near, psn_wire, right, syndrome};
use crate::wire::Roce;

/// READs and atomics that a responder keeps at the same time, duplicates included.
const SLOTS: usize = 16;

/// What was counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResponderCounts {
    /// Requests that were executed before.
    pub duplicates: u64,
    /// Requests ahead of the expected one.
    pub ahead: u64,
    /// Requests without a receive.
    pub not_ready: u64,
    /// Duplicates of READs that are answered again.
    pub reads_again: u64,
    /// Duplicates of atomics.
    pub atomics_again: u64,
    /// Not all requests could be told apart.
    pub unsure: bool,
}

/// A READ or atomic to be answered.
#[derive(Debug, Clone)]
struct Job {
    psn: u64,
    packets: u64,
    sent: u64,
    len: usize,
    again: bool,
    msn: u64,
}

/// A delivered request: as much as is needed of it.
#[derive(Debug, Clone, Copy)]
struct Delivered {
    at_ns: u64,
    opcode: u8,
    psn: u32,
    ack_req: bool,
    dma_len: usize,
}

/// What a response shows of requests before it.
#[derive(Debug, Clone, Copy, Default)]
struct Evidence {
    /// For this one no receive was there.
    not_ready: Option<u64>,
    /// All before this one were executed.
    executed: u64,
}

/// The responder. The messages, and so what each PSN means, are the requester's.
#[derive(Debug, Clone)]
pub struct Responder {
    min_rnr_timer: u8,
    rights: u8,
    mtu: usize,
    inbox: VecDeque<Delivered>,
    expected: u64,
    nak_sent: bool,
    halted: bool,
    jobs: VecDeque<Job>,
    /// Acknowledges that may be sent.
    acks_allowed: u64,
    /// An acknowledge of at least this PSN must follow.
    ack_owed: Option<u64>,
    /// PSNs for which a sequence NAK must or may follow.
    naks_owed: BTreeSet<u64>,
    naks_possible: BTreeSet<u64>,
    naks_sent: BTreeSet<u64>,
    rnr_owed: VecDeque<u64>,
    refusal_owed: Option<(u64, u8)>,
    refused: bool,
    last_ack: u64,
    /// When each receive was posted, and of how many the time does not matter any more.
    receives: VecDeque<u64>,
    receives_gone: u64,
    /// Receives come from a queue that others use, too: whether one is there is not known.
    shared: bool,
    /// It may have failed for reasons of its own: nothing must follow any more.
    pub silent: bool,
    /// Requests that the device must have lost inside.
    pub internal_losses: u64,
    /// What was counted.
    pub counts: ResponderCounts,
}

impl Responder {
    /// One that has received nothing. `config` is its own, `peer` the requester.
    pub fn new(config: &super::QpConfig, peer: &Requester, shared: bool) -> Self {
        let first = peer.posted;
        Self {
            min_rnr_timer: config.min_rnr_timer,
            rights: config.rights,
            mtu: config.mtu,
            inbox: VecDeque::new(),
            expected: first,
            nak_sent: false,
            halted: false,
            jobs: VecDeque::new(),
            acks_allowed: 0,
            ack_owed: None,
            naks_owed: BTreeSet::new(),
            naks_possible: BTreeSet::new(),
            naks_sent: BTreeSet::new(),
            rnr_owed: VecDeque::new(),
            refusal_owed: None,
            refused: false,
            last_ack: first - 1,
            receives: VecDeque::new(),
            receives_gone: 0,
            shared,
            silent: false,
            internal_losses: 0,
            counts: ResponderCounts::default(),
        }
    }

    /// The next PSN.
    pub fn expected(&self) -> u64 {
        self.expected
    }

    /// A receive is about to be posted.
    pub fn post_receive(&mut self, now_ns: u64) {
        self.receives.push_back(now_ns);
    }

    /// A request has arrived.
    pub fn deliver(&mut self, roce: &Roce, peer: &Requester, now_ns: u64) {
        self.inbox.push_back(Delivered {
            at_ns: now_ns,
            opcode: roce.bth.opcode,
            psn: roce.bth.psn,
            ack_req: roce.bth.ack_req,
            dma_len: roce.ext.reth.map_or(0, |r| r.dma_len as usize),
        });
        self.advance(peer, now_ns, Evidence::default());
    }

    /// Takes what has been delivered, as far as it is decided.
    fn advance(&mut self, peer: &Requester, now_ns: u64, mut evidence: Evidence) {
        while let Some(d) = self.inbox.front().copied() {
            if !self.take(&d, peer, now_ns, &mut evidence) {
                break;
            }
            self.inbox.pop_front();
        }
        // What was executed before is so whatever becomes of the one that is waited for.
        let expected = self.expected;
        let again = |d: &Delivered| psn_near(d.psn, expected) < expected;
        let duplicates: Vec<Delivered> = self.inbox.iter().filter(|d| again(d)).copied().collect();
        self.inbox.retain(|d| !again(d));
        for d in duplicates {
            self.take(&d, peer, now_ns, &mut evidence);
        }
    }

    /// A receive for one more message: yes, no, or not known (`None`).
    fn ready(&self, used: u64, at_ns: u64, now_ns: u64) -> Option<bool> {
        if self.shared {
            return None;
        }
        match used
            .checked_sub(self.receives_gone)
            .map(|n| self.receives.get(n as usize))
        {
            // Long ago.
            None => Some(true),
            Some(Some(posted)) if posted + LAG_NS <= at_ns => Some(true),
            Some(Some(posted)) if *posted > at_ns + LAG_NS => Some(false),
            Some(Some(_)) => None,
            Some(None) if now_ns > at_ns + LAG_NS => Some(false),
            Some(None) => None,
        }
    }

    /// Whether the receive is posted that a message would use.
    fn posted(&self, used: u64) -> bool {
        self.shared || used < self.receives_gone + self.receives.len() as u64
    }

    /// Takes one request; false when it cannot be decided yet.
    fn take(&mut self, d: &Delivered, peer: &Requester, now_ns: u64, evidence: &mut Evidence) -> bool {
        if self.halted {
            return true;
        }
        let psn = psn_near(d.psn, self.expected);
        if psn > self.expected {
            self.counts.ahead += 1;
            if !self.nak_sent {
                self.nak_sent = true;
                // Behind responses to READs a NAK waits, and is not needed any more when the packet comes meanwhile.
                let late = now_ns != d.at_ns || !self.jobs.is_empty();
                if late {
                    self.naks_possible.insert(self.expected);
                    self.acks_allowed += 1;
                } else {
                    self.naks_owed.insert(self.expected);
                }
            }
            return true;
        }
        if psn < self.expected {
            self.counts.duplicates += 1;
            self.repeat(d, psn, peer);
            return true;
        }
        let Some(m) = peer.message_at(psn) else {
            return true; // the frame was judged when it was sent
        };
        let index = psn - m.first;
        let op = m.request.op;
        if let Some(refusal) = m.refusal
            && refusal.packet == index
            && refusal.syndrome == syndrome::INVALID
            && !allowed(self.rights, op)
        {
            return self.refuse(psn, refusal.syndrome);
        }
        let last = op.has_response() || index + 1 == m.psns;
        if op.is_send() && index == 0 || op == Op::WriteImm && last {
            let executed = self.posted(m.receives_before) && (evidence.executed > psn || now_ns > d.at_ns + LAG_NS);
            match self.ready(m.receives_before, d.at_ns, now_ns) {
                Some(true) => {}
                None if evidence.not_ready != Some(psn) && executed => {
                    // Behind a READ an RNR NAK may come to nothing.
                    self.counts.unsure |= !self.jobs.is_empty();
                }
                None if evidence.not_ready != Some(psn) => return false,
                _ => {
                    // The next copy of it is another matter.
                    evidence.not_ready = None;
                    self.not_ready(psn);
                    return true;
                }
            }
        }
        if let Some(refusal) = m.refusal
            && refusal.packet == index
        {
            return self.refuse(psn, refusal.syndrome);
        }
        self.nak_sent = false;
        self.expected = psn + if op == Op::Read { m.psns - index } else { 1 };
        if op.has_response() {
            let msn = peer.messages_before(self.expected);
            self.jobs.push_back(job(m, psn, m.len, false, msn, self.mtu));
        } else if d.ack_req {
            self.acks_allowed += 1;
            self.ack_owed = Some(psn);
        }
        true
    }

    fn refuse(&mut self, psn: u64, syndrome: u8) -> bool {
        self.refusal_owed = Some((psn, syndrome));
        self.halted = true;
        true
    }

    fn not_ready(&mut self, psn: u64) {
        self.counts.not_ready += 1;
        self.nak_sent = true;
        self.rnr_owed.push_back(psn);
    }

    /// A request that was executed before.
    fn repeat(&mut self, d: &Delivered, psn: u64, peer: &Requester) {
        let Some(m) = peer.message_at(psn) else {
            // Older than what is remembered: whatever it is, an acknowledge may follow.
            self.acks_allowed += 1;
            return;
        };
        match d.opcode {
            opcode::READ_REQUEST => {
                let packets = d.dma_len.div_ceil(self.mtu).max(1) as u64;
                if psn + packets <= self.expected {
                    self.counts.reads_again += 1;
                    let msn = peer.messages_before(m.end());
                    self.jobs.push_back(job(m, psn, d.dma_len, true, msn, self.mtu));
                }
            }
            opcode::COMPARE_SWAP | opcode::FETCH_ADD => {
                self.counts.atomics_again += 1;
                let msn = peer.messages_before(m.end());
                self.jobs.push_back(job(m, psn, 8, true, msn, self.mtu));
            }
            _ => {
                self.acks_allowed += 1;
                self.ack_owed = Some(self.expected - 1);
            }
        }
    }

    /// A response shows that a request was not executed after all.
    fn fall_back(&mut self, psn: u64) {
        self.expected = psn;
        self.nak_sent = true;
        self.halted = false;
        self.refusal_owed = None;
        self.jobs.retain(|j| j.again || j.psn < psn);
        self.naks_owed.split_off(&psn);
        if self.ack_owed.is_some_and(|owed| owed >= psn) {
            self.ack_owed = None;
        }
    }

    /// A response has been sent.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn emit(&mut self, roce: &Roce, peer: &Requester, now_ns: u64) -> Checked {
        let psn = psn_near(roce.bth.psn, self.expected);
        let synd = roce.ext.aeth.map_or(syndrome::ACK, |a| a.syndrome);
        let evidence = Evidence {
            not_ready: (roce.bth.opcode == opcode::ACKNOWLEDGE && (0x20..0x40).contains(&synd)).then_some(psn),
            // A refusal comes after the receive was looked at. An answer that is repeated may count messages behind its own.
            executed: if !(syndrome::RNR..=syndrome::SEQUENCE).contains(&synd) {
                let counted = roce.ext.aeth.and_then(|a| peer.complete_at(a.msn));
                counted.unwrap_or(0).max(psn + 1)
            } else {
                psn
            },
        };
        self.advance(peer, now_ns, evidence);
        let psn = psn_near(roce.bth.psn, self.expected);
        let (kind, text) = match roce.bth.opcode {
            opcode::ACKNOWLEDGE => match self.acknowledge(roce, psn, peer) {
                Ok(()) => return Ok(()),
                Err(e) => e,
            },
            op if op == opcode::ATOMIC_ACKNOWLEDGE || opcode::READ_RESPONSE.contains(&op) => {
                match self.answer(roce, psn, peer) {
                    Ok(()) => return Ok(()),
                    Err(e) => e,
                }
            }
            _ => ("response", "this is no response".to_owned()),
        };
        differ(
            kind,
            format!(
                "response to QP {:#x}, opcode {:#04x}, PSN {:#x}, AETH {:x?}: {text}; {:#x} is expected next",
                roce.bth.dest_qpn,
                roce.bth.opcode,
                roce.bth.psn,
                roce.ext.aeth,
                psn_wire(self.expected)
            ),
        )
    }

    fn acknowledge(&mut self, roce: &Roce, psn: u64, peer: &Requester) -> Result<(), (&'static str, String)> {
        let aeth = roce.ext.aeth.unwrap_or_default();
        if self.refused {
            return Err(("response after refusal", "the queue pair was refused before".into()));
        }
        let is_ack = aeth.syndrome < syndrome::RNR;
        // Everything before the PSN it names, and for an ACK that one too, was executed: no READ of it may be open.
        let executed = if is_ack { psn + 1 } else { psn };
        if executed <= self.last_ack {
            return Err((
                "acknowledge goes back",
                format!("{:#x} was acknowledged", psn_wire(self.last_ack)),
            ));
        }
        if let Some(open) = self.jobs.iter().find(|j| !j.again && j.psn < executed) {
            return Err((
                "acknowledge overtakes",
                format!(
                    "the READ or atomic with PSN {:#x} has no whole answer",
                    psn_wire(open.psn)
                ),
            ));
        }
        let msn = peer.messages_before(executed);
        if u64::from(aeth.msn) != msn & 0xff_ffff {
            return Err(("MSN", format!("{msn} messages are complete")));
        }
        match aeth.syndrome {
            syndrome::ACK => {
                if psn >= self.expected {
                    return Err(("acknowledge of nothing", "it was not delivered, or not in order".into()));
                }
                if self.acks_allowed == 0 {
                    return Err(("acknowledge unasked", "nobody asked for it".into()));
                }
                self.acks_allowed -= 1;
                if self.ack_owed.is_some_and(|owed| psn >= owed) {
                    self.ack_owed = None;
                }
                self.last_ack = psn;
                // Coalesced: a NAK that waited behind a READ has become this.
                self.naks_possible = self.naks_possible.split_off(&(psn + 1));
                return Ok(());
            }
            0x20..=0x3f => {
                if aeth.syndrome & 0x1f != self.min_rnr_timer {
                    return Err(("RNR timer", format!("min_rnr_timer is {}", self.min_rnr_timer)));
                }
                if let Some(at) = self.rnr_owed.iter().position(|p| *p == psn) {
                    self.rnr_owed.drain(..=at);
                } else {
                    return Err(("RNR NAK", "a receive was posted, or nothing asked for one".into()));
                }
            }
            syndrome::SEQUENCE => {
                if self.naks_owed.remove(&psn) || self.naks_possible.remove(&psn) {
                } else if self.naks_sent.contains(&psn) {
                    return Err(("second NAK of a gap", "the same was sent before".into()));
                } else if psn < self.expected {
                    // The device saw what came behind it as out of sequence; here it was taken.
                    self.internal_losses += 1;
                    self.counts.unsure = true;
                    self.fall_back(psn);
                } else {
                    return Err(("sequence NAK", "nothing is missing".into()));
                }
                self.naks_sent.insert(psn);
            }
            syndrome::INVALID..=syndrome::OPERATION => {
                if self.refusal_owed != Some((psn, aeth.syndrome)) {
                    return Err(("NAK", format!("the refusal to come is {:x?}", self.refusal_owed)));
                }
                self.refusal_owed = None;
                self.refused = true;
            }
            _ => return Err(("syndrome", "this one is reserved, or tells credits".into())),
        }
        self.last_ack = self.last_ack.max(psn - 1);
        // What is acknowledged by a NAK is.
        if self.ack_owed.is_some_and(|owed| psn > owed) {
            self.ack_owed = None;
        }
        Ok(())
    }

    fn answer(&mut self, roce: &Roce, psn: u64, peer: &Requester) -> Result<(), (&'static str, String)> {
        if self.refused {
            return Err(("response after refusal", "the queue pair was refused before".into()));
        }
        // One that was begun goes on. Else the next one, or a duplicate's: for some of these there was no room, and when the device
        // came to one is not always known.
        let at = match self.jobs.front() {
            None => return Err(("response to nothing", "no READ or atomic waits for an answer".into())),
            Some(front) if front.sent > 0 => (front.psn + front.sent == psn).then_some(0),
            Some(_) => self.jobs.iter().position(|j| j.psn == psn),
        };
        let Some(at) = at else {
            return Err((
                "response out of order",
                "another READ or atomic waits for its answer".into(),
            ));
        };
        if let Some(first) = self.jobs.iter().take(at).find(|j| !j.again) {
            return Err((
                "response out of order",
                format!("{:#x} comes first", psn_wire(first.psn)),
            ));
        }
        if let Some(job) = self.jobs.remove(at) {
            self.jobs.push_front(job);
        }
        let Some(j) = self.jobs.front() else { return Ok(()) };
        let Some(m) = peer.message_at(psn) else {
            // So old that its message is forgotten.
            self.jobs.pop_front();
            return Ok(());
        };
        let (first, last) = (j.sent == 0, j.sent + 1 == j.packets);
        let wanted = if m.request.op.is_atomic() {
            opcode::ATOMIC_ACKNOWLEDGE
        } else {
            opcode::READ_RESPONSE[match (first, last) {
                (true, true) => 3,
                (true, false) => 0,
                (false, false) => 1,
                (false, true) => 2,
            }]
        };
        if roce.bth.opcode != wanted {
            return Err(("response", format!("opcode {wanted:#04x} is due")));
        }
        if wanted != opcode::READ_RESPONSE[1] {
            let aeth = roce.ext.aeth.unwrap_or_default();
            let most = peer.messages_before(self.expected);
            // A repeated answer may tell what is complete now, or what was then.
            let msns = if j.again { j.msn..=most } else { j.msn..=j.msn };
            if aeth.syndrome != syndrome::ACK || !msns.clone().any(|n| n & 0xff_ffff == u64::from(aeth.msn)) {
                return Err(("response", format!("an ACK with MSN {msns:?} is due")));
            }
        }
        if m.request.op.is_atomic() {
            let mut word = [0; 8];
            word.copy_from_slice(&m.result);
            if roce.ext.atomic_ack != Some(u64::from_le_bytes(word)) {
                return Err((
                    "result of an atomic",
                    format!("{:x?} instead of {:#x}", roce.ext.atomic_ack, u64::from_le_bytes(word)),
                ));
            }
        } else {
            let n = if last {
                j.len - j.sent as usize * self.mtu
            } else {
                self.mtu
            };
            if roce.payload.len() != n {
                return Err(("response", format!("{} bytes instead of {n}", roce.payload.len())));
            }
            let from = (psn - m.first) as usize * self.mtu;
            // Read again after all of it has arrived: the memory may hold something else by now.
            let old = j.again && m.end() <= peer.acknowledged();
            let want = m.result.get(from..from + n).unwrap_or_default();
            if !old && let Some(at) = (0..n).find(|i| want.get(*i) != roce.payload.get(*i)) {
                return Err((
                    "READ data",
                    format!(
                        "byte {} is {:#04x}, not {:#04x?}",
                        from + at,
                        roce.payload[at],
                        want.get(at)
                    ),
                ));
            }
        }
        let whole = if last { self.jobs.pop_front() } else { None };
        match whole {
            Some(j) if !j.again => self.last_ack = self.last_ack.max(psn),
            Some(_) => {}
            None => {
                if let Some(j) = self.jobs.front_mut() {
                    j.sent += 1;
                }
            }
        }
        Ok(())
    }

    /// Everything is quiet: what had to follow must have.
    ///
    /// # Errors
    /// What is owed.
    pub fn settled(&mut self, peer: &Requester, now_ns: u64) -> Checked {
        // Late enough that everything is decided.
        self.advance(peer, now_ns + 2 * LAG_NS, Evidence::default());
        if self.silent {
            return Ok(());
        }
        let owed = if !self.inbox.is_empty() {
            format!("{} requests that were not taken", self.inbox.len())
        } else if let Some(psn) = self.ack_owed {
            format!("an acknowledge of {:#x}", psn_wire(psn))
        } else if let Some(psn) = self.naks_owed.first() {
            format!("a sequence NAK for {:#x}", psn_wire(*psn))
        } else if let Some(psn) = self.rnr_owed.front() {
            format!("an RNR NAK for {:#x}", psn_wire(*psn))
        } else if let Some((psn, s)) = self.refusal_owed {
            format!("the NAK {s:#x} for {:#x}", psn_wire(psn))
        } else if let Some(j) = self.jobs.iter().find(|j| !j.again) {
            format!(
                "{} responses from {:#x} on",
                j.packets - j.sent,
                psn_wire(j.psn + j.sent)
            )
        } else {
            return Ok(());
        };
        differ(
            "response missing",
            format!("responder to QP {:#x} owes {owed}", peer.config.qpn),
        )
    }

    /// All that was posted has been executed and answered, whatever was seen of it.
    pub fn resume(&mut self, peer: &Requester) {
        self.inbox.clear();
        self.expected = peer.posted;
        self.nak_sent = false;
        self.ack_owed = None;
        self.naks_owed.clear();
        self.rnr_owed.clear();
        self.refusal_owed = None;
        self.last_ack = peer.posted - 1;
    }

    /// Nothing of what was is still under way: forgets it.
    pub fn forget(&mut self, receives_used: u64) {
        self.jobs.clear();
        self.acks_allowed = 0;
        self.naks_possible.clear();
        self.naks_sent.clear();
        while self.receives_gone < receives_used && self.receives.pop_front().is_some() {
            self.receives_gone += 1;
        }
    }

    /// Slots are short: duplicates may be passed over, and new ones be taken as lost.
    pub fn crowded(&self) -> bool {
        self.jobs.len() >= SLOTS
    }
}

/// Whether a queue pair with these rights takes such a request.
pub fn allowed(rights: u8, op: Op) -> bool {
    match op {
        Op::Write | Op::WriteImm => rights & right::REMOTE_WRITE != 0,
        Op::Read => rights & right::REMOTE_READ != 0,
        Op::CompareSwap | Op::FetchAdd => rights & right::REMOTE_ATOMIC != 0,
        Op::Send | Op::SendImm | Op::SendInv | Op::RegMr | Op::LocalInv | Op::BindMw => true,
    }
}

fn job(m: &Message, psn: u64, len: usize, again: bool, msn: u64, mtu: usize) -> Job {
    let packets = if m.request.op.is_atomic() {
        1
    } else {
        len.div_ceil(mtu).max(1) as u64
    };
    Job {
        psn,
        packets,
        sent: 0,
        len,
        again,
        msn,
    }
}
