// SPDX-License-Identifier: Apache-2.0
//! Reference model of the QP engine's control half: table, allocator, gate and batches. Commands in,
//! completions and effects out; no notion of time. It imports nothing generated.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::gate::{self, Attrs, Limits, Refusal, Rule, State, Subject, Type, attr};

/// QP commands, by the device's code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Op {
    Create = 0x40,
    Modify = 0x41,
    Query = 0x42,
    Destroy = 0x43,
    Install = 0x44,
    List = 0x45,
}

/// Flags of the QP commands.
pub mod flag {
    #![allow(missing_docs)]
    pub const CONTIGUOUS: u8 = 1;
    pub const REQUESTED: u8 = 2;
    pub const SIG_ALL: u8 = 4;
    pub const USE_SRQ: u8 = 8;
    pub const LIST: u8 = 16;
    pub const RECORDS: u8 = 32;
    pub const FAST_REG: u8 = 64;
}

/// Status of a completion, by the device's code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Status {
    Ok = 0,
    ReservedSet = 2,
    BadHandle = 3,
    BadParam = 4,
    NoResources = 5,
    InUse = 6,
    GateRefused = 7,
    Duplicate = 8,
    NoCommonGeneration = 9,
    Unsupported = 10,
    DmaError = 11,
}

/// One QP command, as its 64 bytes carry it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Command {
    pub op: Op,
    pub flags: u8,
    pub tag: u16,
    pub handle: u32,
    pub count: u32,
    pub qp_type: u8,
    pub align_log2: u8,
    pub pd: u16,
    pub send_cq: u16,
    pub recv_cq: u16,
    pub srq: u16,
    pub uar: u8,
    pub log_sq: u8,
    pub log_rq: u8,
    pub log_sq_stride: u8,
    pub log_rq_stride: u8,
    pub by_state: Option<u8>,
    pub by_type: bool,
    pub by_pd: bool,
    pub sq_base: u64,
    pub rq_base: u64,
    pub sq_pitch: u32,
    pub rq_pitch: u32,
    pub list_addr: u64,
    pub attr_addr: u64,
}

impl Command {
    /// A command with every other field zero and a count of 1.
    pub fn new(op: Op) -> Self {
        Self {
            op,
            flags: 0,
            tag: 0,
            handle: 0,
            count: 1,
            qp_type: 0,
            align_log2: 0,
            pd: 0,
            send_cq: 0,
            recv_cq: 0,
            srq: 0,
            uar: 0,
            log_sq: 0,
            log_rq: 0,
            log_sq_stride: 0,
            log_rq_stride: 0,
            by_state: None,
            by_type: false,
            by_pd: false,
            sq_base: 0,
            rq_base: 0,
            sq_pitch: 0,
            rq_pitch: 0,
            list_addr: 0,
            attr_addr: 0,
        }
    }

    /// The 64 bytes.
    pub fn to_bytes(&self) -> [u8; 64] {
        let mut b = [0; 64];
        b[0] = self.op as u8;
        b[1] = self.flags;
        b[2..4].copy_from_slice(&self.tag.to_le_bytes());
        b[4..8].copy_from_slice(&self.handle.to_le_bytes());
        b[8..11].copy_from_slice(&self.count.to_le_bytes()[..3]);
        b[11] = self.qp_type & 15 | self.align_log2 << 4;
        b[12..14].copy_from_slice(&self.pd.to_le_bytes());
        b[14..16].copy_from_slice(&self.send_cq.to_le_bytes());
        b[16..18].copy_from_slice(&self.recv_cq.to_le_bytes());
        b[18..20].copy_from_slice(&self.srq.to_le_bytes());
        b[20] = self.uar;
        b[21] = self.log_sq & 15 | self.log_rq << 4;
        b[22] = self.log_sq_stride & 15 | self.log_rq_stride << 4;
        b[23] = self.by_state.map_or(0, |s| s & 7 | 8) | u8::from(self.by_type) << 4 | u8::from(self.by_pd) << 5;
        b[24..32].copy_from_slice(&self.sq_base.to_le_bytes());
        b[32..40].copy_from_slice(&self.rq_base.to_le_bytes());
        b[40..44].copy_from_slice(&self.sq_pitch.to_le_bytes());
        b[44..48].copy_from_slice(&self.rq_pitch.to_le_bytes());
        b[48..56].copy_from_slice(&self.list_addr.to_le_bytes());
        b[56..64].copy_from_slice(&self.attr_addr.to_le_bytes());
        b
    }

    fn creates(&self) -> bool {
        matches!(self.op, Op::Create | Op::Install)
    }

    fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// A completion, without what the command ring adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Completion {
    pub status: Status,
    pub rule: u8,
    pub handle: u32,
    pub count: u32,
    pub offender: u32,
    pub detail: u32,
    pub offender_index: u32,
}

/// References that a command takes (`n` positive) or gives back (negative). `None`: the type has no such queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub struct RefChange {
    pub n: i32,
    pub pd: u16,
    pub send_cq: Option<u16>,
    pub recv_cq: Option<u16>,
    /// `pd` is an XRC domain.
    pub in_xrcd: bool,
    pub srq: Option<u16>,
}

/// One changed control section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Change {
    pub index: u32,
    pub epoch: u16,
    pub state: State,
    pub new_life: bool,
    /// A life ended that received from an SRQ.
    pub left_srq: bool,
}

/// What a command did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Its completion.
    pub completion: Completion,
    /// Bytes written to the host, in order of address.
    pub writes: Vec<(u64, Vec<u8>)>,
    /// References taken or given back.
    pub refs: Vec<RefChange>,
    /// Sections changed, by index (a record batch: in the order of the batch).
    pub changes: Vec<Change>,
    /// Whether the completion had to wait for a barrier through the data path.
    pub drained: bool,
}

/// Host memory as a command reads it.
pub trait HostMemory {
    /// The bytes there, or `None` when the read fails.
    fn read(&self, addr: u64, len: usize) -> Option<Vec<u8>>;
}

/// Control section of a QP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Qp {
    /// Exists.
    pub valid: bool,
    /// Its index has had a life.
    pub used: bool,
    pub generation: u32,
    pub epoch: u16,
    pub state: State,
    pub draining: bool,
    pub qp_type: u8,
    pub sig_all: bool,
    pub fast_reg: bool,
    pub uar: u8,
    pub log_sq: u8,
    pub log_rq: u8,
    pub log_sq_stride: u8,
    pub log_rq_stride: u8,
    pub pd: u16,
    pub send_cq: Option<u16>,
    pub recv_cq: Option<u16>,
    pub srq: u16,
    pub has_srq: bool,
    pub sq_base: u64,
    pub rq_base: u64,
    /// What transitions have set; the mask is not used.
    pub attrs: Attrs,
}

/// What the device is built with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Params {
    /// log2 of the table.
    pub log_table: u32,
    /// Generation bits of a QPN.
    pub gen_bits: u32,
    /// Number of completion queues.
    pub cqs: u16,
    /// Number of protection domains.
    pub pds: u16,
    /// Number of doorbell pages.
    pub uars: u16,
    /// Largest log2 of a send WQE's 64-byte blocks.
    pub max_sq_stride: u8,
    /// Largest log2 of a receive WQE's 32-byte blocks.
    pub max_rq_stride: u8,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            log_table: 10,
            gen_bits: 14,
            cqs: 256,
            pds: 256,
            uars: 32,
            max_sq_stride: 4,
            max_rq_stride: 4,
        }
    }
}

/// The model: the whole table and the objects that QPs refer to.
#[derive(Debug, Clone)]
pub struct QpEngine {
    params: Params,
    /// The port's configuration, which the gate judges by.
    pub limits: Limits,
    /// Protection domains that exist.
    pub pds: BTreeSet<u16>,
    /// Completion queues that exist.
    pub cqs: BTreeSet<u16>,
    /// Shared receive queues that exist.
    pub srqs: BTreeSet<u16>,
    /// XRC domains that exist.
    pub xrcds: BTreeSet<u16>,
    table: Vec<Qp>,
}

type Refused = (Status, Option<Refusal>, u32, u32, u32); // with offender, offender_index, detail

fn plain(status: Status) -> Refused {
    (status, None, 0, 0, 0)
}
fn param(status: Status, detail: u32) -> Refused {
    (status, None, 0, 0, detail)
}
fn at(status: Status, qpn: u32, index: usize) -> Refused {
    (status, None, qpn, index as u32, 0)
}

impl QpEngine {
    /// As after power-up and the first reset.
    pub fn new(params: Params) -> Self {
        let blank = Qp {
            valid: false,
            used: false,
            generation: 0,
            epoch: 0,
            state: State::Reset,
            draining: false,
            qp_type: 0,
            sig_all: false,
            fast_reg: false,
            uar: 0,
            log_sq: 0,
            log_rq: 0,
            log_sq_stride: 0,
            log_rq_stride: 0,
            pd: 0,
            send_cq: None,
            recv_cq: None,
            srq: 0,
            has_srq: false,
            sq_base: 0,
            rq_base: 0,
            attrs: Attrs::default(),
        };
        let mut engine = Self {
            params,
            limits: Limits::default(),
            pds: BTreeSet::new(),
            srqs: BTreeSet::new(),
            xrcds: BTreeSet::new(),
            cqs: BTreeSet::new(),
            table: vec![blank; 1 << params.log_table],
        };
        engine.reset();
        engine
    }

    /// A reset of the device: no QP is left, numbers and epochs go on.
    pub fn reset(&mut self) {
        for qp in &mut self.table {
            qp.valid = false;
            qp.state = State::Reset;
            qp.draining = false;
            qp.epoch = next_epoch(qp.epoch);
        }
    }

    /// Size of the table.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Never: index 0 is always there.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// The entry of an index.
    pub fn entry(&self, index: u32) -> &Qp {
        &self.table[index as usize]
    }

    /// The number of the QP at an index.
    pub fn qpn(&self, index: u32) -> u32 {
        self.entry(index).generation << self.params.log_table | index
    }

    /// Numbers of all QPs, by index.
    pub fn qpns(&self) -> Vec<u32> {
        (0..self.len() as u32)
            .filter(|i| self.entry(*i).valid)
            .map(|i| self.qpn(i))
            .collect()
    }

    /// The index of a QP that exists under this number.
    pub fn find(&self, qpn: u32) -> Option<u32> {
        let index = qpn & (self.len() as u32 - 1);
        (self.entry(index).valid && self.qpn(index) == qpn).then_some(index)
    }

    /// A QP's state; `None` when there is no such QP.
    pub fn state(&self, qpn: u32) -> Option<State> {
        self.find(qpn).map(|i| self.entry(i).state)
    }

    /// The data path found an error in that life of the QP. `to_sqe`: a send error of a datagram or UC QP.
    pub fn hardware_error(&mut self, index: u32, epoch: u16, to_sqe: bool) -> Option<Change> {
        let qp = &mut self.table[index as usize];
        if !qp.valid || qp.epoch != epoch {
            return None;
        }
        let may_sqe = matches!(Type::from_code(qp.qp_type), Some(Type::Uc | Type::Ud | Type::Gsi));
        qp.state = match (qp.state, to_sqe && may_sqe) {
            (State::Reset | State::Err, _) => return None,
            (_, false) | (State::Sqd, true) => State::Err,
            (State::Rts, true) => State::Sqe,
            (_, true) => return None,
        };
        qp.draining = false;
        Some(Change {
            index,
            epoch,
            state: qp.state,
            new_life: false,
            left_srq: false,
        })
    }

    /// The send queue has come to rest in that life. Returns the change, and whether an event is due.
    pub fn drained(&mut self, index: u32, epoch: u16) -> Option<(Change, bool)> {
        let qp = &mut self.table[index as usize];
        if !qp.valid || qp.epoch != epoch || qp.state != State::Sqd || !qp.draining {
            return None;
        }
        qp.draining = false;
        Some((
            Change {
                index,
                epoch,
                state: State::Sqd,
                new_life: false,
                left_srq: false,
            },
            qp.attrs.en_sqd_async_notify,
        ))
    }

    /// Carries out a command.
    pub fn execute(&mut self, cmd: &Command, memory: &impl HostMemory) -> Outcome {
        let mut out = Outcome {
            completion: Completion {
                status: Status::Ok,
                rule: 0,
                handle: 0,
                count: 0,
                offender: 0,
                detail: 0,
                offender_index: 0,
            },
            writes: Vec::new(),
            refs: Vec::new(),
            changes: Vec::new(),
            drained: false,
        };
        let done = match self.judge_params(cmd) {
            Err(refused) => Err(refused),
            Ok(()) if cmd.creates() => self.create(cmd, memory, &mut out),
            Ok(()) if cmd.op == Op::List => {
                self.list(cmd, &mut out);
                return out;
            }
            Ok(()) => self.change(cmd, memory, &mut out),
        };
        match done {
            Ok(()) => out.completion.count = cmd.count,
            Err((status, refusal, offender, offender_index, detail)) => {
                let c = &mut out.completion;
                c.status = status;
                c.rule = refusal.map_or(0, |r| r.rule as u8);
                c.detail = refusal.map_or(detail, |r| r.detail);
                c.offender = offender;
                c.offender_index = offender_index;
            }
        }
        out
    }

    // ------------------------------------------------------------ parameters

    fn judge_params(&self, cmd: &Command) -> Result<(), Refused> {
        let bad = |detail| Err(param(Status::BadParam, detail));
        let known = match cmd.op {
            Op::Create | Op::Install => {
                flag::CONTIGUOUS | flag::REQUESTED | flag::SIG_ALL | flag::USE_SRQ | flag::FAST_REG
            }
            Op::Modify => flag::LIST | flag::RECORDS,
            Op::Destroy => flag::LIST,
            Op::Query | Op::List => 0,
        };
        if cmd.flags & !known != 0 {
            return Err(plain(Status::ReservedSet));
        }
        let one = cmd.op == Op::Query || cmd.has(flag::REQUESTED);
        if cmd.count == 0
            || cmd.count as usize > self.len()
            || (one && cmd.count != 1)
            || (cmd.has(flag::RECORDS) && cmd.count > 64)
        {
            return bad(8);
        }
        let aligned = |addr: u64| addr.is_multiple_of(64);
        if cmd.op == Op::List {
            return if cmd.handle as usize >= self.len() {
                bad(4)
            } else if cmd.by_type && Type::from_code(cmd.qp_type).is_none() {
                bad(11)
            } else if cmd.by_state == Some(7) {
                bad(23)
            } else if !aligned(cmd.list_addr) {
                bad(48)
            } else {
                Ok(())
            };
        }
        if !cmd.creates() {
            if cmd.has(flag::LIST) && !aligned(cmd.list_addr) {
                return bad(48);
            }
            if cmd.op != Op::Destroy && !aligned(cmd.attr_addr) {
                return bad(56);
            }
            return Ok(());
        }
        let Some(qp_type) = Type::from_code(cmd.qp_type) else {
            return bad(11);
        };
        if qp_type == Type::Gsi && !cmd.has(flag::REQUESTED) {
            return bad(11);
        }
        // A DCT receives from an SRQ and from nowhere else; these types have a use for one.
        let shared = cmd.has(flag::USE_SRQ);
        if if shared {
            !matches!(qp_type, Type::Rc | Type::Uc | Type::Ud | Type::Dct)
        } else {
            qp_type == Type::Dct
        } {
            return bad(1);
        }
        if cmd.has(flag::REQUESTED) {
            let index = cmd.handle as usize % self.len();
            let fits =
                u64::from(cmd.handle) < 1 << (self.params.log_table + self.params.gen_bits) && cmd.handle != 0xff_ffff;
            let gsi = cmd.handle == 1;
            if !fits || index == 0 || (index == 1 && !gsi) || gsi != (qp_type == Type::Gsi) {
                return bad(4);
            }
        }
        let (has_send, has_recv) = queues(qp_type);
        let domains = if qp_type == Type::XrcTgt {
            &self.xrcds
        } else {
            &self.pds
        };
        if !domains.contains(&cmd.pd) {
            return Err(param(Status::BadHandle, 12));
        }
        if has_send && !self.cqs.contains(&cmd.send_cq) {
            return Err(param(Status::BadHandle, 14));
        }
        if has_recv && !self.cqs.contains(&cmd.recv_cq) {
            return Err(param(Status::BadHandle, 16));
        }
        if shared && !self.srqs.contains(&cmd.srq) {
            return Err(param(Status::BadHandle, 18));
        }
        if u16::from(cmd.uar) >= self.params.uars {
            return bad(20);
        }
        if cmd.log_sq_stride > self.params.max_sq_stride || (!shared && cmd.log_rq_stride > self.params.max_rq_stride) {
            return bad(22);
        }
        if !aligned(cmd.sq_base) {
            return bad(24);
        }
        if !shared && !aligned(cmd.rq_base) {
            return bad(32);
        }
        if cmd.count > 1 && !cmd.sq_pitch.is_multiple_of(64) {
            return bad(40);
        }
        if !shared && cmd.count > 1 && !cmd.rq_pitch.is_multiple_of(64) {
            return bad(44);
        }
        if !cmd.has(flag::CONTIGUOUS) && (!aligned(cmd.list_addr) || (cmd.list_addr == 0 && cmd.count > 1)) {
            return bad(48);
        }
        if cmd.op == Op::Install && !aligned(cmd.attr_addr) {
            return bad(56);
        }
        Ok(())
    }

    // ------------------------------------------------------------ LIST

    fn list(&self, cmd: &Command, out: &mut Outcome) {
        let wanted = |i: &u32| {
            let qp = self.entry(*i);
            qp.valid
                && cmd.by_state.is_none_or(|s| s == qp.state as u8)
                && (!cmd.by_type || cmd.qp_type == qp.qp_type)
                && (!cmd.by_pd || (cmd.pd == qp.pd && qp.qp_type != Type::XrcTgt as u8))
        };
        let size = self.len() as u32;
        let found: Vec<u32> = (cmd.handle..size).filter(wanted).take(cmd.count as usize).collect();
        out.completion.count = found.len() as u32;
        if found.len() == cmd.count as usize {
            // Full: the next walk goes on behind the last one told.
            out.completion.handle = found.last().map_or(0, |last| (last + 1) % size);
        }
        let bytes = found
            .iter()
            .flat_map(|i| self.qpn(*i).to_le_bytes())
            .collect::<Vec<u8>>();
        if !bytes.is_empty() {
            out.writes.push((cmd.list_addr, bytes));
        }
    }

    // ------------------------------------------------------------ CREATE, INSTALL

    fn create(&mut self, cmd: &Command, memory: &impl HostMemory, out: &mut Outcome) -> Result<(), Refused> {
        let Some(qp_type) = Type::from_code(cmd.qp_type) else {
            return Err(plain(Status::BadParam));
        };
        let mut record = None;
        if cmd.op == Op::Install {
            let attrs = read_record(memory, cmd.attr_addr).ok_or(plain(Status::DmaError))?;
            if attrs.reserved {
                return Err(plain(Status::ReservedSet));
            }
            let fresh = Subject {
                qp_type: Some(qp_type),
                state: State::Reset,
                draining: false,
                port: 0,
            };
            // INSTALL is the way to INIT and to nowhere else.
            let to_init = attrs.has(attr::STATE) && attrs.qp_state == State::Init as u8;
            let verdict = match gate::check(&fresh, &attrs, &self.limits) {
                Err(r) if r.rule == Rule::WrongCurState || to_init => Err(r),
                Ok(()) if to_init => Ok(()),
                _ => Err(Refusal {
                    rule: Rule::IllegalEdge,
                    detail: 0,
                }),
            };
            verdict.map_err(|r| (Status::GateRefused, Some(r), 0, 0, 0))?;
            record = Some(attrs);
        }

        // Where, and under which number.
        let count = cmd.count as usize;
        let mask = (1u32 << self.params.gen_bits) - 1;
        let mut places: Vec<(u32, u32)> = Vec::new();
        if cmd.has(flag::REQUESTED) {
            let index = cmd.handle % self.len() as u32;
            let generation = cmd.handle >> self.params.log_table;
            let old = self.entry(index);
            if old.valid || (old.used && old.generation == generation && index != 1) {
                return Err(at(Status::InUse, cmd.handle, 0));
            }
            places.push((index, generation));
        } else if cmd.has(flag::CONTIGUOUS) {
            let step = 1usize << cmd.align_log2;
            let start = (0..self.len())
                .step_by(step)
                .find(|s| s + count <= self.len() && (*s..s + count).all(|i| self.is_free(i)))
                .ok_or(plain(Status::NoResources))?;
            let range = start..start + count;
            let newest = self.table[range.clone()]
                .iter()
                .filter(|qp| qp.used)
                .map(|qp| qp.generation)
                .max();
            let generation = newest.map_or(0, |g| g + 1);
            let last = generation << self.params.log_table | (range.end as u32 - 1);
            if generation > mask || last == 0xff_ffff {
                return Err(plain(Status::NoCommonGeneration));
            }
            places.extend(range.map(|i| (i as u32, generation)));
        } else {
            let free: Vec<usize> = (0..self.len()).filter(|i| self.is_free(*i)).take(count).collect();
            if free.len() < count {
                return Err(plain(Status::NoResources));
            }
            for i in free {
                let old = &self.table[i];
                let mut generation = if old.used { (old.generation + 1) & mask } else { 0 };
                if generation << self.params.log_table | i as u32 == 0xff_ffff {
                    generation = 0;
                }
                places.push((i as u32, generation));
            }
        }

        // Nothing can go wrong any more.
        let (has_send, has_recv) = queues(qp_type);
        let send_cq = has_send.then_some(cmd.send_cq);
        let recv_cq = has_recv.then_some(cmd.recv_cq);
        let mut numbers = Vec::new();
        for (k, (index, generation)) in (0u64..).zip(&places) {
            let qp = &mut self.table[*index as usize];
            *qp = Qp {
                valid: true,
                used: true,
                generation: *generation,
                epoch: next_epoch(qp.epoch),
                state: State::Reset,
                draining: false,
                qp_type: cmd.qp_type,
                sig_all: cmd.has(flag::SIG_ALL),
                fast_reg: cmd.has(flag::FAST_REG),
                uar: cmd.uar,
                log_sq: cmd.log_sq,
                log_rq: cmd.log_rq,
                log_sq_stride: cmd.log_sq_stride,
                log_rq_stride: cmd.log_rq_stride,
                pd: cmd.pd,
                send_cq,
                recv_cq,
                srq: cmd.srq,
                has_srq: cmd.has(flag::USE_SRQ),
                sq_base: cmd.sq_base.wrapping_add(k * u64::from(cmd.sq_pitch)),
                rq_base: cmd.rq_base.wrapping_add(k * u64::from(cmd.rq_pitch)),
                attrs: Attrs::default(),
            };
            if let Some(record) = &record {
                transition(qp, record);
            }
            out.changes.push(Change {
                index: *index,
                epoch: qp.epoch,
                state: qp.state,
                new_life: true,
                left_srq: false,
            });
            numbers.extend(self.qpn(*index).to_le_bytes());
        }
        out.refs.push(RefChange {
            n: count as i32,
            pd: cmd.pd,
            send_cq,
            recv_cq,
            in_xrcd: qp_type == Type::XrcTgt,
            srq: cmd.has(flag::USE_SRQ).then_some(cmd.srq),
        });
        out.completion.handle = self.qpn(places[0].0);
        if !cmd.has(flag::CONTIGUOUS) && cmd.list_addr != 0 {
            out.writes.push((cmd.list_addr, numbers));
        }
        Ok(())
    }

    fn is_free(&self, index: usize) -> bool {
        index > 1 && !self.table[index].valid
    }

    // ------------------------------------------------------------ MODIFY, DESTROY, QUERY

    fn change(&mut self, cmd: &Command, memory: &impl HostMemory, out: &mut Outcome) -> Result<(), Refused> {
        let count = cmd.count as usize;
        let records = cmd.has(flag::RECORDS);
        let mut attrs = Vec::new();
        if cmd.op == Op::Modify {
            for k in 0..if records { count } else { 1 } {
                attrs.push(read_record(memory, cmd.attr_addr + 64 * k as u64).ok_or(plain(Status::DmaError))?);
            }
        }

        // Pass 1: look at every QP, in the order of the batch.
        let mut seen = BTreeMap::new();
        for k in 0..count {
            let qpn = if cmd.has(flag::LIST) {
                // The list is read 256 bytes at a time; one that cannot be read is not looked at.
                let chunk = k / 64 * 64;
                let bytes = memory
                    .read(cmd.list_addr + 4 * chunk as u64, 4 * (count - chunk).min(64))
                    .ok_or(at(Status::DmaError, 0, k))?;
                let i = 4 * (k - chunk);
                u32::from_le_bytes([bytes[i], bytes[i + 1], bytes[i + 2], bytes[i + 3]])
            } else {
                cmd.handle.wrapping_add(k as u32)
            };
            if k == 0 {
                out.completion.handle = qpn;
            }
            let beyond = !cmd.has(flag::LIST) && cmd.handle as usize % self.len() + k >= self.len();
            let index = self
                .find(qpn)
                .filter(|_| !beyond)
                .ok_or(at(Status::BadHandle, qpn, k))?;
            if seen.insert(index, k).is_some() {
                return Err(at(Status::Duplicate, qpn, k));
            }
            if cmd.op == Op::Modify {
                let request = &attrs[if records { k } else { 0 }];
                if request.reserved {
                    return Err(at(Status::ReservedSet, qpn, k));
                }
                let qp = self.entry(index);
                let subject = Subject {
                    qp_type: Type::from_code(qp.qp_type),
                    state: qp.state,
                    draining: qp.draining,
                    port: qp.attrs.port,
                };
                gate::check(&subject, request, &self.limits)
                    .map_err(|r| (Status::GateRefused, Some(r), qpn, k as u32, 0))?;
            }
        }

        // Pass 2: every QP takes its change.
        let mut order: Vec<(u32, usize)> = seen.into_iter().collect();
        if records {
            order.sort_by_key(|(_, k)| *k);
        }
        for (index, k) in order {
            if cmd.op == Op::Query {
                out.writes.push((cmd.attr_addr, self.query_bytes(index)));
                continue;
            }
            let qp = &mut self.table[index as usize];
            let mut new_life = true;
            if cmd.op == Op::Destroy {
                qp.valid = false;
                begin_life(qp);
                out.refs.push(RefChange {
                    n: -1,
                    pd: qp.pd,
                    send_cq: qp.send_cq,
                    recv_cq: qp.recv_cq,
                    in_xrcd: qp.qp_type == Type::XrcTgt as u8,
                    srq: qp.has_srq.then_some(qp.srq),
                });
            } else {
                let request = &attrs[if records { k } else { 0 }];
                new_life = request.has(attr::STATE) && request.qp_state == State::Reset as u8;
                transition(qp, request);
            }
            out.drained |= new_life;
            out.changes.push(Change {
                index,
                epoch: qp.epoch,
                state: qp.state,
                new_life,
                left_srq: new_life && qp.has_srq,
            });
        }
        Ok(())
    }

    /// What QUERY_QP writes: 64 bytes of attributes, 64 of creation.
    pub fn query_bytes(&self, index: u32) -> Vec<u8> {
        let qp = self.entry(index);
        let kept = 0x21f_ffff & !(attr::ALT_PATH | attr::CAP);
        let shown = Attrs {
            mask: kept,
            qp_state: qp.state as u8,
            cur_qp_state: qp.state as u8,
            av_port: qp.attrs.port,
            is_global: true,
            ..qp.attrs
        };
        let mut b = shown.to_bytes().to_vec();
        let mut i = [0u8; 64];
        i[0..4].copy_from_slice(&self.qpn(index).to_le_bytes());
        i[4] = qp.qp_type;
        i[5] = qp.state as u8;
        i[6] =
            u8::from(qp.sig_all) | u8::from(qp.has_srq) << 1 | u8::from(qp.draining) << 2 | u8::from(qp.fast_reg) << 3;
        i[7] = qp.uar;
        i[8..10].copy_from_slice(&qp.pd.to_le_bytes());
        i[10..12].copy_from_slice(&qp.send_cq.unwrap_or(0xffff).to_le_bytes());
        i[12..14].copy_from_slice(&qp.recv_cq.unwrap_or(0xffff).to_le_bytes());
        i[14..16].copy_from_slice(&qp.srq.to_le_bytes());
        i[16] = qp.log_sq | qp.log_rq << 4;
        i[17] = qp.log_sq_stride | qp.log_rq_stride << 4;
        i[20..22].copy_from_slice(&qp.epoch.to_le_bytes());
        i[24..32].copy_from_slice(&qp.sq_base.to_le_bytes());
        i[32..40].copy_from_slice(&qp.rq_base.to_le_bytes());
        b.extend(i);
        b
    }
}

/// Which completion queues a type has: send, receive.
fn queues(qp_type: Type) -> (bool, bool) {
    (
        !matches!(qp_type, Type::XrcTgt | Type::Dct),
        !matches!(qp_type, Type::XrcTgt | Type::XrcIni),
    )
}

/// Epochs count on through all lives; 0 is none of them.
fn next_epoch(epoch: u16) -> u16 {
    epoch.checked_add(1).unwrap_or(1)
}

fn begin_life(qp: &mut Qp) {
    qp.epoch = next_epoch(qp.epoch);
    qp.state = State::Reset;
    qp.draining = false;
    qp.attrs = Attrs::default();
}

fn read_record(memory: &impl HostMemory, addr: u64) -> Option<Attrs> {
    let bytes = memory.read(addr, 64)?;
    Some(Attrs::from_bytes(bytes.first_chunk()?))
}

/// Carries out an accepted request.
fn transition(qp: &mut Qp, r: &Attrs) {
    use attr::*;
    let from = qp.state;
    let to = if r.has(STATE) {
        State::from_code(r.qp_state).unwrap_or(from)
    } else {
        from
    };
    if r.has(STATE) && to == State::Reset {
        begin_life(qp);
    }
    qp.state = to;
    let starts_to_drain = from == State::Rts && to == State::Sqd;
    qp.draining = starts_to_drain || (qp.draining && to == State::Sqd);
    let a = &mut qp.attrs;
    if starts_to_drain {
        a.en_sqd_async_notify = r.has(EN_SQD_ASYNC_NOTIFY) && r.en_sqd_async_notify;
    }
    macro_rules! take {
        ($($bit:ident: $($field:ident),+;)*) => { $( if r.has($bit) { $( a.$field = r.$field; )+ } )* };
    }
    take! {
        PKEY_INDEX: pkey_index;
        PORT: port;
        QKEY: qkey;
        RATE_LIMIT: qkey;
        PATH_MTU: path_mtu;
        TIMEOUT: timeout;
        RETRY_CNT: retry_cnt;
        RNR_RETRY: rnr_retry;
        RQ_PSN: rq_psn;
        SQ_PSN: sq_psn;
        MAX_QP_RD_ATOMIC: max_rd_atomic;
        MAX_DEST_RD_ATOMIC: max_dest_rd_atomic;
        MIN_RNR_TIMER: min_rnr_timer;
        PATH_MIG_STATE: path_mig_state;
        DEST_QPN: dest_qpn;
        AV: dgid, dmac, vlan, sgid_index, hop_limit, traffic_class, flow_label;
    }
    if r.has(ACCESS_FLAGS) {
        a.access_flags = r.access_flags & 0xe; // local write means nothing to a QP
    }
}
