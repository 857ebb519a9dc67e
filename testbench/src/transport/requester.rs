// SPDX-License-Identifier: Apache-2.0
//! The requester's end of one queue pair: which PSNs each message takes, what each of its packets holds, when packets may
//! come again, what the responses that arrive acknowledge.
//!
//! It sees a response when the wire has delivered it, the device handles it later. So what is acknowledged here is what the device
//! may know at most; each rule below holds for anything between.

use std::collections::{BTreeMap, VecDeque};

use super::{
    Checked, Op, QpConfig, Request, differ, first_psn, opcode, psn_near, psn_wire, rnr_timer_ns, syndrome, timeout_ns,
};
use crate::wire::{AtomicEth, ExtHeaders, Reth, Roce};

/// How long a device may take from a frame at its MAC until it acts on it, in nanoseconds: what stands in its queues is included.
pub const LAG_NS: u64 = 150_000;

/// Which refusal a request meets at the responder, from which packet on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// Packet of the message, from 0.
    pub packet: u64,
    /// Syndrome of the NAK.
    pub syndrome: u8,
}

/// A posted request with its PSNs and with what comes of it.
#[derive(Debug, Clone)]
pub struct Message {
    /// The request.
    pub request: Request,
    /// First PSN.
    pub first: u64,
    /// PSNs that it takes.
    pub psns: u64,
    /// Bytes.
    pub len: usize,
    /// Bytes that it carries (SEND, WRITE).
    pub payload: Vec<u8>,
    /// What the responder answers: READ data, or the word before an atomic.
    pub result: Vec<u8>,
    /// The responder refuses it.
    pub refusal: Option<Refusal>,
    /// It fails here, before its first packet: none must be sent.
    pub local_failure: bool,
    /// Messages and receives used before it.
    pub messages_before: u64,
    /// Receives that messages before it use.
    pub receives_before: u64,
    /// An operation on a key with a fence stands before it: all before that have completed when its first packet comes.
    pub after_all: bool,
}

impl Message {
    /// PSN behind its last one.
    pub fn end(&self) -> u64 {
        self.first + self.psns
    }
}

/// PSNs that a request takes.
pub fn psns_of(op: Op, len: usize, mtu: usize) -> u64 {
    if op.is_key() {
        0
    } else if op.is_atomic() {
        1
    } else {
        len.div_ceil(mtu).max(1) as u64
    }
}

/// Why packets come again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Again {
    /// Somebody told: a sequence NAK, an RNR NAK, a response behind a gap; and that may have been the reason alone.
    Told { used: bool },
    /// Nobody answered in time.
    Silence,
}

/// What was counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RequesterCounts {
    /// Request packets.
    pub packets: u64,
    /// Of these, sent before.
    pub again: u64,
    /// Times that a requester went back without having been told to.
    pub timeouts: u64,
    /// Times that it was told to.
    pub told: u64,
    /// Responses whose READ or atomic before them has no answer.
    pub implied: u64,
    /// Responses that nothing waits for.
    pub ghosts: u64,
}

/// The requester.
#[derive(Debug, Clone)]
pub struct Requester {
    /// What it was connected with.
    pub config: QpConfig,
    peer_qpn: u32,
    /// Messages whose packets may still come, oldest first.
    pub messages: Vec<Message>,
    /// PSN behind all posted messages.
    pub posted: u64,
    messages_posted: u64,
    receives_posted: u64,
    /// PSN after the packet sent last.
    next: u64,
    /// PSN after the last packet that was ever sent.
    top: u64,
    /// Everything before is acknowledged.
    una: u64,
    /// Where it went back to last.
    target: u64,
    /// Next PSN that the oldest READ or atomic without a whole answer waits for.
    read_at: Option<u64>,
    tokens: u64,
    /// Last time that something was acknowledged, or sent for the first time with nothing outstanding, or that it went back.
    restarted: u64,
    /// Such times before, as far as what was decided before them may still come.
    restarts: VecDeque<u64>,
    tries: u32,
    rnr: Option<(u64, u64, u64)>,
    /// When a NAK arrived that ends it.
    failed: Option<u64>,
    /// It may have given up: whatever it sends is still judged, but it need not send.
    pub counts: RequesterCounts,
    /// Most times in a row that it may have taken a retry without progress, told or not.
    pub most_tries: u32,
    without_progress: u32,
    /// How often each PSN was sent since nobody judges.
    tallied: BTreeMap<u32, u32>,
    /// An operation on a key was posted behind the last message: with a fence; and one that fails.
    fenced_key: bool,
    failing_key: bool,
}

impl Requester {
    /// One that has sent nothing.
    pub fn new(config: QpConfig, peer_qpn: u32) -> Self {
        let first = first_psn(config.sq_psn);
        Self {
            config,
            peer_qpn,
            messages: Vec::new(),
            posted: first,
            messages_posted: 0,
            receives_posted: 0,
            next: first,
            top: first,
            una: first,
            target: first,
            read_at: None,
            tokens: 0,
            restarted: 0,
            restarts: VecDeque::new(),
            tries: 0,
            rnr: None,
            failed: None,
            counts: RequesterCounts::default(),
            most_tries: 0,
            without_progress: 0,
            tallied: BTreeMap::new(),
            fenced_key: false,
            failing_key: false,
        }
    }

    /// An operation on a key is about to be posted; `fails`: nothing behind it is ever sent.
    pub fn post_key(&mut self, fence: bool, fails: bool) {
        self.fenced_key |= fence;
        self.failing_key |= fails;
    }

    /// A request is about to be posted.
    pub fn post(
        &mut self,
        request: Request,
        payload: Vec<u8>,
        result: Vec<u8>,
        refusal: Option<Refusal>,
        local_failure: bool,
    ) {
        let len = request.len();
        let psns = psns_of(request.op, len, self.config.mtu);
        let takes = request.op.takes_receive();
        self.messages.push(Message {
            first: self.posted,
            psns,
            len,
            payload,
            result,
            refusal,
            local_failure: local_failure || self.failing_key,
            after_all: std::mem::take(&mut self.fenced_key),
            messages_before: self.messages_posted,
            receives_before: self.receives_posted,
            request,
        });
        self.posted += psns;
        self.messages_posted += 1;
        self.receives_posted += u64::from(takes);
    }

    /// The message that a PSN belongs to.
    pub fn message_at(&self, psn: u64) -> Option<&Message> {
        let at = self.messages.partition_point(|m| m.end() <= psn);
        self.messages.get(at).filter(|m| m.first <= psn)
    }

    /// Messages that lie wholly before a PSN.
    pub fn messages_before(&self, psn: u64) -> u64 {
        match self.message_at(psn) {
            Some(m) => m.messages_before,
            None => self.messages_posted,
        }
    }

    /// The PSN before which so many messages are complete, if that is where one of those that are remembered ends.
    pub fn complete_at(&self, msn: u32) -> Option<u64> {
        let ends = |m: &&Message| (m.messages_before + 1) & 0xff_ffff == u64::from(msn);
        self.messages.iter().rev().find(ends).map(Message::end)
    }

    /// Receives that are taken when everything before a PSN was executed.
    pub fn receives_before(&self, psn: u64) -> u64 {
        match self.message_at(psn) {
            Some(m) => m.receives_before + u64::from(m.request.op.is_send() && psn > m.first),
            None => self.receives_posted,
        }
    }

    /// Everything before this PSN is acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.una
    }

    /// A packet has been sent while nobody judges: only how often each came is kept.
    pub fn tally(&mut self, bth_psn: u32) {
        let times = self.tallied.entry(bth_psn).or_default();
        *times += 1;
        // The first of these may have been a try already.
        self.most_tries = self.most_tries.max(*times);
    }

    /// A packet has been sent.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn emit(&mut self, roce: &Roce, now_ns: u64) -> Checked {
        let bth = &roce.bth;
        let psn = psn_near(bth.psn, self.next);
        let what = |rule: &str, text: String| {
            differ(
                rule,
                format!(
                    "request of QP {:#x}, opcode {:#04x}, PSN {:#x}: {text}",
                    self.config.qpn, bth.opcode, bth.psn
                ),
            )
        };
        if let Some(at) = self.failed
            && now_ns > at + LAG_NS
        {
            return what(
                "request after failure",
                format!("it was refused {} ns before", now_ns - at),
            );
        }
        let Some(m) = self.message_at(psn) else {
            return what(
                "request of nothing",
                format!(
                    "no posted request has this PSN; the last one is {:#x}",
                    psn_wire(self.posted.wrapping_sub(1))
                ),
            );
        };
        if m.local_failure {
            return what("request of a bad WQE", "its local keys are wrong".into());
        }
        // Which packet may come.
        let mut again = None;
        if psn > self.next && !(psn <= self.una && psn <= self.top) {
            return what(
                "PSN skipped",
                format!(
                    "{:#x} is next, acknowledged up to {:#x}",
                    psn_wire(self.next),
                    psn_wire(self.una)
                ),
            );
        }
        if psn < self.next {
            if psn < self.target || psn > self.una {
                return what(
                    "wrong place to go back to",
                    format!(
                        "acknowledged up to {:#x}, gone back to {:#x} before",
                        psn_wire(self.una),
                        psn_wire(self.target)
                    ),
                );
            }
            let waited = now_ns.saturating_sub(self.restarted);
            let limit = timeout_ns(self.config.timeout);
            let silence = self.config.timeout != 0 && self.may_time_out(now_ns, limit);
            again = Some(if self.tokens > 0 {
                Again::Told {
                    // Perhaps it went back by itself, and will once more because it was told to.
                    used: !silence,
                }
            } else if silence {
                Again::Silence
            } else {
                return what(
                    "sent again without a reason",
                    format!("no NAK, and {waited} ns are no time-out of {limit} ns"),
                );
            });
        }
        if let Some((at, since, timer)) = self.rnr
            && psn == at
            && now_ns > since + LAG_NS
            && now_ns + 2048 < since + timer
        {
            return what(
                "RNR timer",
                format!("{} ns after the RNR NAK, which asked for {timer} ns", now_ns - since),
            );
        }
        // What it must hold.
        let index = psn - m.first;
        let fresh = psn >= self.top;
        if let Err(text) = fields(m, index, self.config.mtu, roce) {
            return what("request", text);
        }
        if bth.dest_qpn != self.peer_qpn {
            return what(
                "request",
                format!("to QP {:#x} instead of {:#x}", bth.dest_qpn, self.peer_qpn),
            );
        }
        if fresh && index == 0 {
            let open = self
                .messages
                .iter()
                .filter(|o| o.request.op.has_response() && o.first < psn && !self.answered(o));
            let open = open.count();
            if m.request.op.has_response() && open >= usize::from(self.config.max_rd_atomic) {
                return what("max_rd_atomic", format!("{open} READs and atomics are outstanding"));
            }
            if m.after_all && m.first > self.una {
                return what(
                    "fence",
                    format!(
                        "a fenced operation on a key stands before it, and only {:#x} is acknowledged",
                        psn_wire(self.una)
                    ),
                );
            }
            if m.request.fence && open > 0 {
                return what("fence", format!("{open} READs and atomics before it have no answer"));
            }
        }
        // Taken.
        let advance = if m.request.op == Op::Read { m.psns - index } else { 1 };
        let reads = m.request.op.has_response();
        let first = m.first;
        self.counts.packets += 1;
        match again {
            Some(Again::Told { used }) => {
                self.tokens -= u64::from(used);
                self.counts.told += 1;
            }
            Some(Again::Silence) => {
                self.counts.timeouts += 1;
                self.tries += 1;
                // One more: progress may have been made between its decision and this frame.
                if self.tries > u32::from(self.config.retry_cnt) + 1 {
                    return differ(
                        "retry_cnt",
                        format!(
                            "QP {:#x} went back {} times without progress",
                            self.config.qpn, self.tries
                        ),
                    );
                }
            }
            None => {}
        }
        if again.is_some() {
            self.target = psn;
            self.restart(now_ns);
            self.without_progress += 1;
            // Being told twice may have been one way back.
            self.most_tries = self.most_tries.max(self.without_progress + self.tokens as u32);
        }
        if psn < self.top {
            self.counts.again += 1;
        } else if self.una == self.top {
            // No timer ran before.
            self.restarts.clear();
            self.restarted = now_ns;
        }
        self.next = psn + advance;
        self.top = self.top.max(self.next);
        if reads && self.read_at.is_none() && first >= self.una {
            self.read_at = Some(first);
        }
        Ok(())
    }

    /// All of its answer has arrived.
    fn answered(&self, m: &Message) -> bool {
        m.end() <= self.una
    }

    /// Everything before a PSN is acknowledged now.
    fn progress(&mut self, to: u64, now_ns: u64) {
        if to > self.una {
            self.una = to;
            self.restart(now_ns);
            self.tries = 0;
            self.without_progress = 0;
        }
    }

    fn restart(&mut self, now_ns: u64) {
        self.restarts.push_back(self.restarted);
        self.restarted = now_ns;
        // One that has ended longer ago than frames take explains nothing any more.
        while self.restarts.get(1).copied().unwrap_or(self.restarted) + LAG_NS < now_ns {
            if self.restarts.pop_front().is_none() {
                break;
            }
        }
    }

    /// A timer may have run out, since the last restart or shortly before it. The device starts its timer when it plans the
    /// packet, which comes out later: half of the time is what is asked for.
    fn may_time_out(&self, now_ns: u64, limit: u64) -> bool {
        let points: Vec<u64> = self.restarts.iter().copied().chain([self.restarted, now_ns]).collect();
        points.windows(2).any(|w| w[1].saturating_sub(w[0]) * 2 >= limit)
    }

    /// A response has arrived.
    pub fn deliver(&mut self, bth_opcode: u8, bth_psn: u32, ext: &ExtHeaders, now_ns: u64) {
        let psn = psn_near(bth_psn, self.una);
        if psn < self.una || psn >= self.top {
            self.counts.ghosts += 1;
            return;
        }
        let syndrome = ext.aeth.map_or(syndrome::ACK, |a| a.syndrome);
        if bth_opcode == opcode::ACKNOWLEDGE {
            let is_ack = syndrome < 0x20;
            if let Some(read) = self.read_at
                && (psn > read || psn == read && is_ack)
            {
                // Its answer is lost.
                self.progress(read, now_ns);
                self.tokens += 1;
                self.counts.implied += 1;
                return;
            }
            self.progress(if is_ack { psn + 1 } else { psn }, now_ns);
            match syndrome {
                0x20..=0x3f => {
                    self.rnr = Some((psn, now_ns, rnr_timer_ns(syndrome)));
                    self.tokens += 1;
                }
                syndrome::SEQUENCE => self.tokens += 1,
                syndrome::INVALID..=syndrome::OPERATION => self.failed = Some(now_ns),
                _ => {}
            }
            return;
        }
        match self.read_at {
            Some(read) if psn == read => {
                self.progress(psn + 1, now_ns);
                let last = self.message_at(psn).is_none_or(|m| psn + 1 == m.end());
                self.read_at = if last { self.next_read(psn + 1) } else { Some(psn + 1) };
            }
            Some(read) if psn > read => {
                self.progress(read, now_ns);
                self.tokens += 1;
                self.counts.implied += 1;
                self.counts.ghosts += 1;
            }
            _ => self.counts.ghosts += 1,
        }
    }

    /// The first PSN of the oldest READ or atomic from a PSN on that was sent.
    fn next_read(&self, from: u64) -> Option<u64> {
        let waits = |m: &&Message| m.request.op.has_response() && m.first >= from && m.first < self.top;
        self.messages.iter().find(waits).map(|m| m.first)
    }

    /// Everything is quiet: all that was posted must be sent and acknowledged.
    ///
    /// # Errors
    /// What is open.
    pub fn settled(&self) -> Checked {
        if self.top == self.posted && self.una == self.posted {
            return Ok(());
        }
        differ(
            "not acknowledged",
            format!(
                "QP {:#x}: posted up to {:#x}, sent up to {:#x}, acknowledged up to {:#x}",
                self.config.qpn,
                psn_wire(self.posted),
                psn_wire(self.top),
                psn_wire(self.una)
            ),
        )
    }

    /// All that was posted has been acknowledged, whatever was seen of it.
    pub fn resume(&mut self) {
        (self.next, self.top, self.una, self.read_at) = (self.posted, self.posted, self.posted, None);
    }

    /// Nothing of what was is still under way: forgets it. How often the PSNs began anew since the last time.
    pub fn forget(&mut self) -> u64 {
        let from = self.messages.first().map_or(self.top, |m| m.first);
        self.messages.clear();
        self.fenced_key = false;
        self.tokens = 0;
        self.tries = 0;
        self.without_progress = 0;
        self.most_tries = 0;
        self.tallied.clear();
        self.rnr = None;
        self.target = self.next;
        (self.top >> 24) - (from.min(self.top) >> 24)
    }
}

/// What packet `index` of a message must hold.
fn fields(m: &Message, index: u64, mtu: usize, roce: &Roce) -> Result<(), String> {
    let r = &m.request;
    let bth = &roce.bth;
    let last = r.op.has_response() || index + 1 == m.psns;
    let offset = index as usize * mtu;
    let kind = match (index == 0, last) {
        (true, true) => 4,
        (true, false) => 0,
        (false, false) => 1,
        (false, true) => 2,
    };
    let wanted = match r.op {
        Op::Read => opcode::READ_REQUEST,
        Op::CompareSwap => opcode::COMPARE_SWAP,
        Op::FetchAdd => opcode::FETCH_ADD,
        Op::SendInv if last => opcode::SEND_INV[usize::from(index == 0)],
        op => {
            let row = if op.is_send() { opcode::SEND } else { opcode::WRITE };
            row[kind + usize::from(last && op.has_imm())]
        }
    };
    let same = |name: &str, got: u64, want: u64| {
        if got == want {
            Ok(())
        } else {
            Err(format!("{name} is {got:#x}, not {want:#x}"))
        }
    };
    same("opcode", bth.opcode.into(), wanted.into())?;
    let payload: &[u8] = if r.op.has_response() {
        &[]
    } else {
        &m.payload[offset..m.len.min(offset + mtu)]
    };
    same("payload length", roce.payload.len() as u64, payload.len() as u64)?;
    if let Some(at) = (0..payload.len()).find(|i| payload[*i] != roce.payload[*i]) {
        return Err(format!(
            "byte {} of the message is {:#04x}, not {:#04x}",
            offset + at,
            roce.payload[at],
            payload[at]
        ));
    }
    let solicited = r.solicited && last && r.op.takes_receive();
    same("solicited event", bth.solicited.into(), solicited.into())?;
    if last && !r.op.has_response() && !bth.ack_req {
        return Err("the last packet asks for no acknowledge".into());
    }
    let reth = (r.op == Op::Read || r.op.is_write() && index == 0).then(|| Reth {
        va: r.va.wrapping_add(offset as u64),
        rkey: r.rkey,
        dma_len: (m.len - offset) as u32,
    });
    if roce.ext.reth != reth {
        return Err(format!("RETH {:x?}, not {reth:x?}", roce.ext.reth));
    }
    let atomic = r.op.is_atomic().then_some(AtomicEth {
        va: r.va,
        rkey: r.rkey,
        swap_add: r.operands.1,
        compare: if r.op == Op::CompareSwap { r.operands.0 } else { 0 },
    });
    if roce.ext.atomic != atomic {
        return Err(format!("AtomicETH {:x?}, not {atomic:x?}", roce.ext.atomic));
    }
    let imm = (last && r.op.has_imm()).then(|| r.imm.to_be_bytes());
    if roce.ext.imm != imm {
        return Err(format!("immediate {:x?}, not {imm:x?}", roce.ext.imm));
    }
    let ieth = (last && r.op == Op::SendInv).then_some(r.imm);
    if roce.ext.ieth != ieth {
        return Err(format!("key to invalidate {:x?}, not {ieth:x?}", roce.ext.ieth));
    }
    Ok(())
}
