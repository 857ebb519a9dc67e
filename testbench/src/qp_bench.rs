// SPDX-License-Identifier: Apache-2.0
//! The QP engine's control half (`rnic_qp`) on a bench: a small host memory behind its DMA ports, a data
//! path that answers barriers and reports errors, and the comparison of its whole table with the model.
//! It is made for tests and panics when the block breaks a contract.

use std::collections::VecDeque;

use openrnic_sim::model::{BlockBuilder, BlockModel};

use serde::{Deserialize, Serialize};

use crate::gates;
use crate::model::gate::{Attrs, Limits, State};
use crate::model::qp::{Command, HostMemory, Qp, QpEngine};
use crate::wire_bench::PORT_CFG;

/// First address of the bench's host memory.
pub const BASE: u64 = 0x5_0000_0000;
/// Its size.
pub const SIZE: usize = 64 * 1024;

/// Host memory, parts of which cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    bytes: Vec<u8>,
    broken: Vec<std::ops::Range<u64>>,
}

impl Host {
    fn new(size: usize) -> Self {
        Self {
            bytes: (0..size).map(|i| (i * 7 + 13) as u8).collect(),
            broken: Vec::new(),
        }
    }

    /// As the bench begins with it.
    pub fn for_model() -> Self {
        Self::new(SIZE)
    }

    /// The bytes there, whether or not the device could read them; what is beyond is zero.
    pub fn peek(&self, addr: u64, len: usize) -> Vec<u8> {
        let at = addr
            .checked_sub(BASE)
            .map_or(self.bytes.len(), |a| (a as usize).min(self.bytes.len()));
        let mut out = self.bytes[at..(at + len).min(self.bytes.len())].to_vec();
        out.resize(len, 0);
        out
    }

    fn at(&self, addr: u64, len: usize) -> std::ops::Range<usize> {
        let start = addr.checked_sub(BASE).map(|a| a as usize);
        match start {
            Some(start) if start + len <= self.bytes.len() => start..start + len,
            _ => panic!("{len} bytes at {addr:#x} are not in the host's memory"),
        }
    }

    /// Writes bytes.
    pub fn write(&mut self, addr: u64, bytes: &[u8]) {
        let range = self.at(addr, bytes.len());
        self.bytes[range].copy_from_slice(bytes);
    }

    /// From now on reads of these bytes fail, and of no others.
    pub fn break_at(&mut self, addr: u64, len: u64) {
        self.broken.clear();
        self.broken.push(addr..addr + len);
    }

    /// All can be read again.
    pub fn mend(&mut self) {
        self.broken.clear();
    }

    /// Whether a read of these bytes fails.
    pub fn is_broken(&self, addr: u64, len: usize) -> bool {
        self.broken.iter().any(|r| r.start < addr + len as u64 && addr < r.end)
    }

    /// Makes it larger.
    pub fn grow(&mut self, size: usize) {
        *self = Self::new(size);
    }

    /// The first byte that differs: its address and both values.
    pub fn first_difference(&self, other: &Self) -> Option<(u64, u8, u8)> {
        if self.bytes == other.bytes {
            return None;
        }
        let mut both = self.bytes.iter().zip(&other.bytes).zip(BASE..);
        both.find(|((a, b), _)| a != b).map(|((a, b), addr)| (addr, *a, *b))
    }

    /// 32-bit numbers, as a QPN list has them.
    pub fn words(&self, addr: u64, n: usize) -> Vec<u32> {
        self.bytes[self.at(addr, 4 * n)]
            .chunks_exact(4)
            .map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]]))
            .collect()
    }
}

impl HostMemory for Host {
    fn read(&self, addr: u64, len: usize) -> Option<Vec<u8>> {
        (!self.is_broken(addr, len)).then(|| self.bytes[self.at(addr, len)].to_vec())
    }
}

/// A completion as the block gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct RawCompletion {
    pub status: u8,
    pub rule: u8,
    pub handle: u32,
    pub count: u32,
    pub offender: u32,
    pub detail: u32,
    pub offender_index: u32,
}

impl From<crate::model::qp::Completion> for RawCompletion {
    fn from(c: crate::model::qp::Completion) -> Self {
        Self {
            status: c.status as u8,
            rule: c.rule,
            handle: c.handle,
            count: c.count,
            offender: c.offender,
            detail: c.detail,
            offender_index: c.offender_index,
        }
    }
}

/// A change that the block told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub struct RawChange {
    pub index: u32,
    pub epoch: u16,
    pub state: u8,
    pub new_life: bool,
    pub left_srq: bool,
}

impl From<crate::model::qp::Change> for RawChange {
    fn from(c: crate::model::qp::Change) -> Self {
        Self {
            index: c.index,
            epoch: c.epoch,
            state: c.state as u8,
            new_life: c.new_life,
            left_srq: c.left_srq,
        }
    }
}

/// A report to be made to the block `after` that many cycles of the command under way.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub enum Report {
    Error {
        after: u64,
        source: usize,
        index: u32,
        epoch: u16,
        to_sqe: bool,
    },
    Drained {
        after: u64,
        index: u32,
        epoch: u16,
    },
}

/// How the bench's host and data path behave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manners {
    /// Cycles from the acceptance of a read to its first beat.
    pub read_latency: u64,
    /// Cycles from the request of a barrier to its answer.
    pub drain_latency: u64,
    /// One cycle in so many is a stall of each stream; 0 never.
    pub stall_one_in: u64,
    /// Each stream moves in one cycle of so many; 0 or 1 at any time.
    pub move_one_in: u64,
    /// During commands the data path asks for a whole section in every cycle.
    pub busy_readers: bool,
}

/// Answers at once, never stalls.
pub const PROMPT: Manners = Manners {
    read_latency: 0,
    drain_latency: 1,
    stall_one_in: 0,
    move_one_in: 0,
    busy_readers: false,
};

struct Beat {
    due: u64,
    data: Vec<u8>,
    last: bool,
    err: u64,
}

/// When things happened during a command, in cycles from its acceptance.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Times {
    /// Last beat that was read.
    pub last_read: u64,
    /// First change of a context (the cycle of its write).
    pub first_change: u64,
    /// The barrier was asked for.
    pub drain: u64,
    /// The completion stood there.
    pub completion: u64,
}

/// The block and its surroundings.
pub struct QpBench {
    dut: BlockModel,
    beat_bytes: usize,
    /// The host.
    pub host: Host,
    /// How it behaves.
    pub manners: Manners,
    noise: u64,
    beats: VecDeque<Beat>,
    delivered: u64,
    write: Vec<u8>,
    drain_since: Option<u64>,
    draining: bool,
    /// Changes told, since they were last taken.
    pub changes: Vec<RawChange>,
    /// Reference changes: n (negative: given back), PD, send CQ, receive CQ.
    pub refs: Vec<(i32, u16, u16, u16)>,
    /// Beside each of them: whether the PD is an XRC domain, and the SRQ.
    pub shared: Vec<(bool, Option<u16>)>,
    /// SQ_DRAINED events: QPNs.
    pub events: Vec<u32>,
    /// Reads of host memory that the block asked for.
    pub reads: u64,
    /// Barriers carried out.
    pub barriers: u32,
    /// Counter pulses by counter.
    pub pulses: Vec<u32>,
    /// Cycles that a command may take.
    pub patience: u64,
}

impl QpBench {
    /// Builds the block: data width, log2 of the table, generation bits.
    pub fn new(data_width: u32, log_table: u32, gen_bits: u32) -> Self {
        Self::with(data_width, log_table, gen_bits, |b| b)
    }

    /// As [`new`](Self::new), with more to be said to the builder.
    #[allow(clippy::expect_used)]
    pub fn with(data_width: u32, log_table: u32, gen_bits: u32, more: impl Fn(BlockBuilder) -> BlockBuilder) -> Self {
        let builder = more(Self::builder(data_width, log_table, gen_bits));
        Self::around(builder.build().expect("rnic_qp builds"))
    }

    /// The builder of the block as this bench needs it; with `OPENRNIC_GATES=1` and 64 bits at gate level.
    #[allow(clippy::expect_used)]
    pub fn builder(data_width: u32, log_table: u32, gen_bits: u32) -> BlockBuilder {
        let params = [
            ("DataW", data_width),
            ("QpIdxW", log_table),
            ("GenW", gen_bits),
            ("NumHot", 1),
            ("NumCold", 1),
        ];
        // As the board has it: 64 bits.
        if data_width == 64 && gates::wanted() {
            return gates::builder("rnic_qp", &params).expect("rnic_qp synthesises");
        }
        let mut builder = BlockModel::builder("rnic_qp");
        for (name, value) in params {
            builder = builder.param(name, value);
        }
        // Features can be cut out to see a test turn red: OPENRNIC_CUT=RNIC_CUT_QP_DRAIN.
        if let Ok(cut) = std::env::var("OPENRNIC_CUT") {
            builder = builder.define(&cut);
        }
        builder
    }

    /// The bench around a block that is built already; resets it.
    pub fn around(mut dut: BlockModel) -> Self {
        dut.set("eqe_ready_i", 1);
        let mut bench = Self {
            beat_bytes: dut.get_wide("rd_rsp_data_i").len() * 4,
            dut,
            host: Host::new(SIZE),
            manners: PROMPT,
            noise: 1,
            beats: VecDeque::new(),
            delivered: 0,
            write: Vec::new(),
            drain_since: None,
            draining: false,
            changes: Vec::new(),
            refs: Vec::new(),
            shared: Vec::new(),
            events: Vec::new(),
            reads: 0,
            barriers: 0,
            pulses: vec![0; 128],
            patience: 1 << 20,
        };
        bench.reset();
        bench
    }

    /// Seeds the stalls.
    pub fn seed(&mut self, seed: u64) {
        self.noise = seed | 1;
    }

    /// Resets the block and waits until its tables are clear.
    pub fn reset(&mut self) {
        self.beats.clear();
        self.write.clear();
        self.draining = false;
        self.drain_since = None;
        for port in [
            "qp_cmd_valid_i",
            "qp_cpl_ready_i",
            "rd_rsp_valid_i",
            "qp_err_valid_i",
            "sq_drained_valid_i",
            "drain_ack_i",
        ] {
            self.dut.set(port, 0);
        }
        self.dut.reset(3);
        for port in [
            "qp_cpl_valid_o",
            "rd_req_valid_o",
            "wr_valid_o",
            "qp_evt_valid_o",
            "ref_valid_o",
            "cold_rsp_valid_o",
            "eqe_valid_o",
            "drain_req_o",
        ] {
            assert_eq!(self.dut.get(port), 0, "{port}: nothing is handed over out of a reset");
        }
        self.wait("the tables to be clear", 1 << 17, |b| b.dut.get("ready_o") == 1);
        self.changes.clear();
    }

    /// Tells which PDs and CQs exist, and the port's configuration.
    pub fn configure(
        &mut self,
        pds: impl IntoIterator<Item = u16>,
        cqs: impl IntoIterator<Item = u16>,
        limits: &Limits,
    ) {
        for (port, set) in [
            ("pd_valid_i", pds.into_iter().collect::<Vec<_>>()),
            ("cq_valid_i", cqs.into_iter().collect()),
        ] {
            let mut words = [0u32; 8];
            for n in set {
                words[usize::from(n) / 32] |= 1 << (n % 32);
            }
            self.dut.set_wide(port, &words);
        }
        set_port_cfg(&mut self.dut, limits);
    }

    /// Tells which SRQs and XRC domains exist.
    pub fn share(&mut self, srqs: impl IntoIterator<Item = u16>, xrcds: impl IntoIterator<Item = u16>) {
        let bits = |set: Vec<u16>| set.into_iter().fold(0, |v, n| v | 1u64 << n);
        let srqs = bits(srqs.into_iter().collect());
        self.dut.set_wide("srq_valid_i", &[srqs as u32, (srqs >> 32) as u32]);
        self.dut.set("xrcd_valid_i", bits(xrcds.into_iter().collect()));
    }

    fn stalls(&mut self) -> bool {
        // xorshift: the stalls of a run are those of its seed.
        self.noise ^= self.noise << 13;
        self.noise ^= self.noise >> 7;
        self.noise ^= self.noise << 17;
        let n = self.noise >> 11;
        self.manners.stall_one_in != 0 && n.is_multiple_of(self.manners.stall_one_in)
            || self.manners.move_one_in != 0 && !n.is_multiple_of(self.manners.move_one_in)
    }

    /// One cycle of everything but the command port.
    pub fn cycle(&mut self) {
        let now = self.dut.cycles();
        // Host and data path decide what they show in this cycle.
        let rsp = !self.beats.is_empty() && self.beats[0].due <= now && !self.stalls();
        self.dut.set("rd_rsp_valid_i", u64::from(rsp));
        if rsp {
            let beat = &self.beats[0];
            let words: Vec<u32> = beat
                .data
                .chunks(4)
                .map(|c| c.iter().rev().fold(0, |w, b| w << 8 | u32::from(*b)))
                .collect();
            self.dut.set_wide("rd_rsp_data_i", &words);
            self.dut.set("rd_rsp_ctl_i", u64::from(beat.last) << 3 | beat.err);
        }
        let rd_ready = !self.stalls();
        let wr_ready = !self.stalls();
        self.dut.set("rd_req_ready_i", u64::from(rd_ready));
        self.dut.set("wr_ready_i", u64::from(wr_ready));
        let ack = self.draining && self.drain_since.is_some_and(|t| now >= t + self.manners.drain_latency);
        self.dut.set("drain_ack_i", u64::from(ack));
        self.dut.eval();

        // What is handed over in it.
        if rsp {
            assert_eq!(
                self.dut.get("rd_rsp_ready_o"),
                1,
                "the block has room for what it asked for"
            );
            self.beats.pop_front();
            self.delivered += 1;
        }
        if rd_ready && self.dut.get("rd_req_valid_o") == 1 {
            let len = self.dut.get_bits("rd_req_o", 0, 16) as usize;
            let addr = self.dut.get_bits("rd_req_o", 16, 64);
            self.accept_read(addr, len, now);
        }
        if wr_ready && self.dut.get("wr_valid_o") == 1 {
            self.accept_write();
        }
        let req = self.dut.get("drain_req_o") == 1;
        match (self.draining, req) {
            (false, true) => self.drain_since = Some(now),
            (true, false) => {
                assert!(self.drain_since.is_none(), "a barrier was given up before its answer");
            }
            _ => {}
        }
        if ack && req {
            self.barriers += 1;
            self.drain_since = None;
        }
        self.draining = req;
        self.dut.clock();

        // What the edge told.
        if self.dut.get("qp_evt_valid_o") == 1 {
            self.changes.push(RawChange {
                index: self.dut.get_bits("qp_evt_o", 20, 16) as u32,
                epoch: self.dut.get_bits("qp_evt_o", 4, 16) as u16,
                state: self.dut.get_bits("qp_evt_o", 1, 3) as u8,
                new_life: self.dut.get_bits("qp_evt_o", 0, 1) == 1,
                left_srq: self.dut.get_bits("qp_evt_o", 36, 1) == 1,
            });
        }
        if self.dut.get("ref_valid_o") == 1 {
            let field = |lsb| self.dut.get_bits("ref_o", lsb, 16) as u16;
            let n = self.dut.get_bits("ref_o", 48, 17) as i32;
            let n = if self.dut.get_bits("ref_o", 65, 1) == 1 { n } else { -n };
            self.refs.push((n, field(32), field(16), field(0)));
            let bit = |lsb| self.dut.get_bits("ref_o", lsb, 1) == 1;
            self.shared.push((bit(83), bit(82).then(|| field(66))));
        }
        if self.dut.get("eqe_valid_o") == 1 {
            assert_eq!(self.dut.get_bits("eqe_o", 32, 8), 5, "SQ_DRAINED");
            self.events.push(self.dut.get_bits("eqe_o", 0, 32) as u32);
        }
        for (n, word) in self.dut.get_wide("cnt_o").into_iter().enumerate() {
            for bit in (0..32).filter(|b| word >> b & 1 == 1) {
                self.pulses[32 * n + bit] += 1;
            }
        }
    }

    fn accept_read(&mut self, addr: u64, len: usize, now: u64) {
        assert!((1..=4096).contains(&len), "a read of {len} bytes");
        self.reads += 1;
        let broken = self.host.is_broken(addr, len);
        let bytes = self.host.read(addr, len).unwrap_or(vec![0xa5; len]);
        let due = now + 1 + self.manners.read_latency;
        let n = len.div_ceil(self.beat_bytes);
        for (i, data) in bytes.chunks(self.beat_bytes).enumerate() {
            let last = i + 1 == n;
            self.beats.push_back(Beat {
                due,
                data: data.to_vec(),
                last,
                err: u64::from(last && broken),
            });
        }
    }

    fn accept_write(&mut self) {
        let len = self.dut.get_bits("wr_hdr_o", 0, 16) as usize;
        let addr = self.dut.get_bits("wr_hdr_o", 16, 64);
        let left = len - self.write.len();
        let bytes: Vec<u8> = self
            .dut
            .get_wide("wr_data_o")
            .iter()
            .flat_map(|w| w.to_le_bytes())
            .take(left)
            .collect();
        self.write.extend(bytes);
        let last = self.dut.get("wr_last_o") == 1;
        assert_eq!(
            last,
            self.write.len() == len,
            "the last beat is the one that completes {len} bytes"
        );
        if last {
            let bytes = std::mem::take(&mut self.write);
            self.host.write(addr, &bytes);
        }
    }

    /// Cycles until `done`, with a bound.
    pub fn wait(&mut self, what: &str, budget: u64, mut done: impl FnMut(&Self) -> bool) -> u64 {
        for n in 0..budget {
            if done(self) {
                return n;
            }
            self.cycle();
        }
        panic!("waited {budget} cycles for {what}, in vain");
    }

    /// Runs a command to its completion.
    pub fn run(&mut self, cmd: &Command) -> RawCompletion {
        self.run_with(cmd, &[]).0
    }

    /// Runs a command while the data path reports; the completion is not taken before all is reported.
    pub fn run_with(&mut self, cmd: &Command, reports: &[Report]) -> (RawCompletion, Times) {
        let words: Vec<u32> = cmd
            .to_bytes()
            .chunks_exact(4)
            .map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]]))
            .collect();
        self.dut.set_wide("qp_cmd_i", &words);
        self.dut.set("qp_cmd_valid_i", 1);
        self.wait("the command to be taken", 1 << 14, |b| b.dut.get("qp_cmd_ready_o") == 1);
        self.changes.clear();
        self.refs.clear();
        self.shared.clear();
        if self.manners.busy_readers {
            self.dut.set("cold_req_idx_i", 2);
            self.dut.set("cold_req_valid_i", 1);
        }
        let start = self.dut.cycles();
        self.cycle();
        self.dut.set("qp_cmd_valid_i", 0);

        let mut times = Times::default();
        let end = reports.iter().map(Report::after).max().unwrap_or(0);
        for n in 1.. {
            assert!(n < self.patience, "no completion of {cmd:?}");
            let done = self.dut.get("qp_cpl_valid_o") == 1;
            if done && times.completion == 0 {
                times.completion = self.dut.cycles() - start;
            }
            if done && n > end {
                break;
            }
            self.report(reports.iter().filter(|r| r.after() == n));
            let (delivered, changes, asked) = (self.delivered, self.changes.len(), self.draining);
            self.cycle();
            let now = self.dut.cycles() - start;
            if self.delivered > delivered {
                times.last_read = now;
            }
            if changes == 0 && !self.changes.is_empty() {
                times.first_change = now;
            }
            if !asked && self.draining {
                times.drain = now;
            }
        }
        self.report([].iter());
        let c = |lsb, width| self.dut.get_bits("qp_cpl_o", lsb, width) as u32;
        let completion = RawCompletion {
            status: c(168, 8) as u8,
            rule: c(160, 8) as u8,
            handle: c(128, 32),
            count: c(96, 32),
            offender: c(64, 32),
            detail: c(32, 32),
            offender_index: c(0, 32),
        };
        self.dut.set("qp_cpl_ready_i", 1);
        self.cycle();
        self.dut.set("qp_cpl_ready_i", 0);
        self.dut.set("cold_req_valid_i", 0);
        (completion, times)
    }

    /// Starts a command without waiting for anything; for tests that look at what it waits for.
    pub fn start(&mut self, cmd: &Command) {
        let words: Vec<u32> = cmd
            .to_bytes()
            .chunks_exact(4)
            .map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]]))
            .collect();
        self.dut.set_wide("qp_cmd_i", &words);
        self.dut.set("qp_cmd_valid_i", 1);
        self.wait("the command to be taken", 1 << 14, |b| b.dut.get("qp_cmd_ready_o") == 1);
        self.cycle();
        self.dut.set("qp_cmd_valid_i", 0);
    }

    /// Whether a completion stands there.
    pub fn completed(&self) -> bool {
        self.dut.get("qp_cpl_valid_o") == 1
    }

    /// Takes the completion that stands there.
    pub fn take_completion(&mut self) {
        self.dut.set("qp_cpl_ready_i", 1);
        self.cycle();
        self.dut.set("qp_cpl_ready_i", 0);
    }

    /// Makes reports while no command is under way, one after the other, and lets them take effect.
    pub fn report_idle(&mut self, reports: &[Report]) {
        for r in reports {
            self.report(std::iter::once(r));
            self.cycle();
        }
        self.report([].iter());
        for _ in 0..8 + 6 * reports.len() {
            self.cycle();
        }
    }

    /// Sets the report ports for one cycle.
    fn report<'a>(&mut self, reports: impl Iterator<Item = &'a Report>) {
        let mut valid = 0;
        self.dut.set("sq_drained_valid_i", 0);
        for r in reports {
            match *r {
                Report::Error {
                    source,
                    index,
                    epoch,
                    to_sqe,
                    ..
                } => {
                    valid |= 1 << source;
                    let word = u64::from(index) << 17 | u64::from(epoch) << 1 | u64::from(to_sqe);
                    self.dut.set_bits("qp_err_i", 33 * source as u32, 33, word);
                }
                Report::Drained { index, epoch, .. } => {
                    self.dut.set("sq_drained_valid_i", 1);
                    self.dut.set("sq_drained_idx_i", u64::from(index));
                    self.dut.set("sq_drained_epoch_i", u64::from(epoch));
                }
            }
        }
        self.dut.set("qp_err_valid_i", valid);
    }

    /// Reads an entry's section through the cold port, as the words of `cold_rsp_o`, `after` cycles from now.
    pub fn section(&mut self, index: u32, after: u64) -> Vec<u32> {
        for _ in 0..after {
            self.cycle();
        }
        self.dut.set("cold_req_idx_i", u64::from(index));
        self.dut.set("cold_req_valid_i", 1);
        self.wait("the cold port", 8, |b| b.dut.get("cold_req_ready_o") == 1);
        self.cycle();
        self.dut.set("cold_req_valid_i", 0);
        self.wait("the answer of the cold port", 8, |b| b.dut.get("cold_rsp_valid_o") == 1);
        self.dut.get_wide("cold_rsp_o")
    }

    /// Compares every entry with the model, through the hot and the cold port.
    pub fn check_table(&mut self, model: &QpEngine, when: &str) {
        for index in 0..model.len() as u32 {
            self.dut.set("hot_idx_i", u64::from(index));
            self.dut.set("cold_req_idx_i", u64::from(index));
            self.dut.set("cold_req_valid_i", 1);
            self.wait("the cold port", 8, |b| b.dut.get("cold_req_ready_o") == 1);
            self.cycle();
            self.dut.set("cold_req_valid_i", 0);
            self.wait("the answer of the cold port", 4, |b| b.dut.get("cold_rsp_valid_o") == 1);
            let hot = Fields::new(self.dut.get_wide("hot_o"), 65);
            let section = Fields::new(self.dut.get_wide("cold_rsp_o"), 65 + 201 + 399);
            let expected = model.entry(index);
            let again = read_hot(&mut { hot }, expected);
            let got = read_section(section, &again, expected);
            if expected.valid {
                assert_eq!(got, *expected, "entry {index} {when}");
            }
            let life = |q: &Qp| (q.valid, q.generation, q.epoch, q.state);
            let mut expected_life = life(expected);
            if !expected.used {
                expected_life.1 = got.generation; // no number has been made of it yet
            }
            assert_eq!(life(&got), expected_life, "entry {index} {when} (cold port)");
            assert_eq!(life(&again), expected_life, "entry {index} {when} (hot port)");
        }
    }

    /// Clock cycles so far.
    pub fn cycles(&self) -> u64 {
        self.dut.cycles()
    }
}

impl Report {
    fn after(&self) -> u64 {
        match self {
            Self::Error { after, .. } | Self::Drained { after, .. } => *after,
        }
    }
}

/// Sets `port_cfg_i` of a block to what the model judges by.
pub fn set_port_cfg(dut: &mut BlockModel, limits: &Limits) {
    let mut set = |field: &str, value: u64| {
        let (lsb, width) = PORT_CFG.field(field);
        dut.set_bits("port_cfg_i", lsb, width, value);
    };
    set("mtu", limits.mtu.into());
    set("gid_v4", limits.gids_v4.into());
    set("gid_v6", limits.gids_v6.into());
    for (i, key) in limits.pkeys.iter().enumerate() {
        dut.set_bits(
            "port_cfg_i",
            PORT_CFG.field("pkey").0 + 16 * i as u32,
            16,
            u64::from(*key),
        );
    }
}

/// Reads the fields of a packed struct in the order of its declaration.
struct Fields {
    words: Vec<u32>,
    left: u32,
}

impl Fields {
    fn new(words: Vec<u32>, width: u32) -> Self {
        Self { words, left: width }
    }

    fn take(&mut self, width: u32) -> u64 {
        self.left -= width;
        let at = (self.left / 32) as usize;
        let word = |i: usize| u128::from(self.words.get(i).copied().unwrap_or(0));
        let all = word(at) | word(at + 1) << 32 | word(at + 2) << 64;
        (all >> (self.left % 32)) as u64 & (u64::MAX >> (64 - width))
    }

    /// Bytes of a field whose first byte is in its lowest bits.
    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut b = [0; N];
        for slot in b.iter_mut().rev() {
            *slot = self.take(8) as u8;
        }
        b
    }
}

/// Reads qp_hot_t; what it does not hold is as in `like`.
fn read_hot(f: &mut Fields, like: &Qp) -> Qp {
    let mut q = *like;
    q.valid = f.take(1) == 1;
    q.state = State::from_code(f.take(3) as u8).unwrap_or(State::Err);
    q.qp_type = f.take(4) as u8;
    q.draining = f.take(1) == 1;
    q.sig_all = f.take(1) == 1;
    q.has_srq = f.take(1) == 1;
    q.attrs.access_flags = (f.take(3) << 1) as u8;
    q.attrs.path_mtu = f.take(3) as u8;
    q.uar = f.take(8) as u8;
    q.log_sq = f.take(4) as u8;
    q.log_rq = f.take(4) as u8;
    q.generation = f.take(16) as u32;
    q.epoch = f.take(16) as u16;
    q
}

/// Reads `qp_ctx_t` as the cold port gives it: what changes within a life comes from the hot word, port and notify are nowhere else
/// than in the engine, and what RTR sets means nothing before it is set.
fn read_section(mut f: Fields, hot: &Qp, like: &Qp) -> Qp {
    let cq = |n: u64| (n != 0xffff).then_some(n as u16);
    let mut q = read_hot(&mut f, like);
    q.valid = hot.valid;
    q.state = hot.state;
    q.draining = hot.draining;
    q.attrs.access_flags = hot.attrs.access_flags;
    q.attrs.path_mtu = hot.attrs.path_mtu;
    q.epoch = hot.epoch;
    q.fast_reg = f.take(1) == 1;
    q.pd = f.take(16) as u16;
    q.send_cq = cq(f.take(16));
    q.recv_cq = cq(f.take(16));
    q.srq = f.take(16) as u16;
    q.log_sq_stride = f.take(4) as u8;
    q.log_rq_stride = f.take(4) as u8;
    q.sq_base = f.take(64);
    q.rq_base = f.take(64);
    q.attrs = Attrs {
        access_flags: q.attrs.access_flags,
        path_mtu: q.attrs.path_mtu,
        port: f.take(8) as u8,
        pkey_index: f.take(16) as u16,
        rq_psn: f.take(24) as u32,
        sq_psn: f.take(24) as u32,
        dest_qpn: f.take(24) as u32,
        qkey: f.take(32) as u32,
        timeout: f.take(5) as u8,
        retry_cnt: f.take(3) as u8,
        rnr_retry: f.take(3) as u8,
        min_rnr_timer: f.take(5) as u8,
        max_rd_atomic: f.take(8) as u8,
        max_dest_rd_atomic: f.take(8) as u8,
        path_mig_state: f.take(2) as u8,
        en_sqd_async_notify: f.take(1) == 1,
        dgid: f.bytes(),
        dmac: f.bytes(),
        vlan: f.take(16) as u16,
        sgid_index: f.take(8) as u8,
        hop_limit: f.take(8) as u8,
        traffic_class: f.take(8) as u8,
        flow_label: f.take(20) as u32,
        ..Attrs::default()
    };
    assert_eq!(f.left, 0, "the section is read to its end");
    q.attrs.port = like.attrs.port;
    q.attrs.en_sqd_async_notify = like.attrs.en_sqd_async_notify;
    let peer = |a: &mut Attrs| {
        let none = Attrs::default();
        a.rq_psn = none.rq_psn;
        a.dest_qpn = none.dest_qpn;
        a.min_rnr_timer = none.min_rnr_timer;
        a.max_dest_rd_atomic = none.max_dest_rd_atomic;
        a.dgid = none.dgid;
        a.dmac = none.dmac;
        a.vlan = none.vlan;
        a.sgid_index = none.sgid_index;
        a.hop_limit = none.hop_limit;
        a.traffic_class = none.traffic_class;
        a.flow_label = none.flow_label;
    };
    let mut unset = like.attrs;
    peer(&mut unset);
    if unset == like.attrs {
        peer(&mut q.attrs);
    }
    q
}

/// Random stimulus from one seed.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// A stream of its own per seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 random bits (splitmix64).
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// A number in `0..bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.bits() % bound.max(1)
    }

    /// True `n` times in `of`.
    pub fn chance(&mut self, n: u64, of: u64) -> bool {
        self.below(of) < n
    }

    /// One of them.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }

    /// A record with a random mask and values that are mostly within their ranges.
    pub fn attrs(&mut self) -> Attrs {
        let mut small = |good: u64, all: u64| {
            let bound = if self.chance(1, 60) { all } else { good };
            self.below(bound)
        };
        let mut a = Attrs {
            qp_state: small(7, 8) as u8,
            cur_qp_state: small(7, 8) as u8,
            en_sqd_async_notify: small(2, 2) == 1,
            access_flags: small(16, 16) as u8,
            path_mig_state: small(3, 4) as u8,
            pkey_index: small(1, 12) as u16,
            port: 1 + small(1, 3) as u8,
            path_mtu: 1 + small(4, 7) as u8,
            timeout: small(32, 256) as u8,
            retry_cnt: small(8, 256) as u8,
            rnr_retry: small(8, 256) as u8,
            min_rnr_timer: small(32, 256) as u8,
            max_rd_atomic: small(17, 256) as u8,
            max_dest_rd_atomic: small(17, 256) as u8,
            rq_psn: small(1 << 24, 1 << 32) as u32,
            sq_psn: small(1 << 24, 1 << 32) as u32,
            dest_qpn: small(1 << 24, 1 << 32) as u32,
            vlan: small(1 << 16, 1 << 16) as u16,
            sgid_index: small(16, 256) as u8,
            av_port: 1 + small(1, 3) as u8,
            is_global: small(1, 2) == 0,
            ..Attrs::default()
        };
        a.mask = self.bits() as u32;
        a.qkey = self.bits() as u32;
        a.hop_limit = self.bits() as u8;
        a.traffic_class = self.bits() as u8;
        a.flow_label = self.bits() as u32 & 0xf_ffff;
        a.dgid[..8].copy_from_slice(&self.bits().to_le_bytes());
        a.dgid[8..].copy_from_slice(&self.bits().to_le_bytes());
        a.dmac.copy_from_slice(&self.bits().to_le_bytes()[..6]);
        a
    }
}
