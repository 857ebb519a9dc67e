// SPDX-License-Identifier: Apache-2.0
//! The control block (`rnic_ctrl`) on a bench: host memory behind its DMA ports, a driver of its command ring, a QP
//! engine that answers, engines that answer barriers, and clients of the memory key, completion and event services.
//! It is made for tests and panics when the block breaks a contract.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::collections::VecDeque;

use openrnic_sim::model::BlockModel;
use openrnic_sim::rng::Stream;

use crate::ctrl_model::{NUM_PD, NUM_XRCD};
use crate::ctrl_srq::{NUM_SRQ, SrqSide};
use crate::qp_bench::Random;

/// First address of the bench's host memory.
pub const BASE: u64 = 0x7_1234_0000_0000;
/// Its size.
pub const SIZE: usize = 1 << 20;
/// Command ring.
pub const RING: u64 = BASE + 0x1_0000;
/// Completion ring of the commands.
pub const CPL: u64 = BASE + 0x8_0000;
/// Free for results.
pub const OUT: u64 = BASE + 0xe_0000;
/// What host memory holds before anything is written.
pub const POISON: u8 = 0xa5;
/// Sizes of the tables in the benches.
pub const NUM_CQ: u32 = 16;
/// Memory regions.
pub const NUM_MR: u32 = 32;
/// log2 of the cycles after which a barrier is given up.
pub const DRAIN_LOG: u32 = 9;

/// A clock cycle in picoseconds.
pub const CLK_PERIOD_PS: u32 = 8000;

/// The seed of this run: `OPENRNIC_SEED`, or a fixed one. Printed, so that a failure names it.
pub fn seed() -> u64 {
    crate::seed(20_251_129)
}

/// A command of 64 bytes, built by hand: opcode, tag and handle stand where every command has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cmd(pub [u8; 64]);

impl Cmd {
    /// A command with this opcode and handle.
    pub fn new(opcode: u8, handle: u32) -> Self {
        let mut bytes = [0; 64];
        bytes[0] = opcode;
        bytes[4..8].copy_from_slice(&handle.to_le_bytes());
        Self(bytes)
    }

    /// Puts `bytes` at byte offset `at`.
    pub fn with(mut self, at: usize, bytes: &[u8]) -> Self {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
        self
    }

    /// CREATE_PD.
    pub fn create_pd() -> Self {
        Self::new(0x10, 0)
    }

    /// DESTROY_PD.
    pub fn destroy_pd(pd: u32) -> Self {
        Self::new(0x11, pd)
    }

    /// CREATE_MR.
    pub fn create_mr(mr: &Mr) -> Self {
        Self::new(0x18, 0)
            .with(8, &mr.pd.to_le_bytes())
            .with(10, &[mr.access, mr.key, mr.kind, mr.log_page])
            .with(16, &mr.va.to_le_bytes())
            .with(24, &mr.length.to_le_bytes())
            .with(32, &mr.host_addr.to_le_bytes())
            .with(40, &mr.page_offset.to_le_bytes())
    }

    /// REREG_MR of what `change` names (MrChange).
    pub fn rereg_mr(key: u32, mr: &Mr, change: u8) -> Self {
        let mut cmd = Self::create_mr(mr);
        cmd.0[0] = 0x1a;
        cmd.with(4, &key.to_le_bytes()).with(12, &[0]).with(14, &[change])
    }

    /// DESTROY_MR.
    pub fn destroy_mr(key: u32) -> Self {
        Self::new(0x19, key)
    }

    /// CREATE_CQ.
    pub fn create_cq(log_size: u8, eq: u8, uar: u8, base: u64) -> Self {
        Self::new(0x20, 0)
            .with(8, &[log_size, eq, uar])
            .with(16, &base.to_le_bytes())
    }

    /// MODIFY_CQ: event moderation, microseconds.
    pub fn modify_cq(cq: u32, count: u16, period: u16) -> Self {
        Self::new(0x22, cq)
            .with(12, &count.to_le_bytes())
            .with(14, &period.to_le_bytes())
    }

    /// RESIZE_CQ.
    pub fn resize_cq(cq: u32, log_size: u8, base: u64) -> Self {
        Self::new(0x23, cq).with(8, &[log_size]).with(16, &base.to_le_bytes())
    }

    /// DESTROY_CQ.
    pub fn destroy_cq(cq: u32) -> Self {
        Self::new(0x21, cq)
    }

    /// CREATE_EQ.
    pub fn create_eq(eq: u32, log_size: u8, base: u64) -> Self {
        Self::new(0x28, eq).with(8, &[log_size]).with(16, &base.to_le_bytes())
    }

    /// DESTROY_EQ.
    pub fn destroy_eq(eq: u32) -> Self {
        Self::new(0x29, eq)
    }

    /// SET_PORT of port 1.
    pub fn set_port(mac: [u8; 6], mtu: u8, up: bool) -> Self {
        Self::new(0x08, 1).with(8, &mac).with(14, &[mtu, u8::from(up)])
    }
}

/// A memory region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Mr {
    /// MrKind.
    pub kind: u8,
    pub pd: u16,
    pub access: u8,
    pub key: u8,
    pub va: u64,
    pub length: u64,
    pub host_addr: u64,
    /// 0: no page list.
    pub log_page: u8,
    pub page_offset: u32,
}

/// A command completion as it stands in host memory, but for the phase, which the bench checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Completion {
    pub tag: u16,
    pub opcode: u8,
    pub status: u8,
    pub rule: u8,
    pub handle: u32,
    pub count: u32,
    pub offender: u32,
    pub detail: u32,
    pub offender_index: u32,
    pub exec_cycles: u32,
}

/// What the QP engine answers to a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct QpAnswer {
    pub status: u8,
    pub rule: u8,
    pub handle: u32,
    pub count: u32,
    pub offender: u32,
    pub detail: u32,
    pub offender_index: u32,
    /// Change of references that goes with it.
    pub refs: Option<Ref>,
}

/// n QPs begin (or cease) to use a PD and two CQs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Ref {
    pub inc: bool,
    pub n: u32,
    pub pd: u16,
    pub send_cq: u16,
    pub recv_cq: u16,
    /// 0xffff: none.
    pub srq: u16,
    /// `pd` is an XRC domain.
    pub in_xrcd: bool,
}

/// An operation of the requester on a memory key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct KeyOp {
    /// 0 invalidate, 1 register, 2 bind.
    pub op: u8,
    pub key: u32,
    pub pd: u16,
    pub qpn: u32,
    pub access: u8,
    pub va: u64,
    pub length: u64,
    pub host_addr: u64,
    pub log_page: u8,
    pub page_offset: u32,
    pub lkey: u32,
}

impl KeyOp {
    /// An invalidation.
    pub fn invalidate(i: &Invalidate) -> Self {
        Self {
            op: 0,
            key: i.key,
            pd: i.pd,
            qpn: i.qpn,
            access: 0,
            va: 0,
            length: 0,
            host_addr: 0,
            log_page: 0,
            page_offset: 0,
            lkey: 0,
        }
    }
}

/// Invalidation of a memory key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Invalidate {
    pub key: u32,
    pub pd: u16,
    pub qpn: u32,
}

/// A lookup of a memory key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Lookup {
    pub key: u32,
    pub va: u64,
    pub len: u32,
    pub pd: u16,
    /// 0: local.
    pub qpn: u32,
    pub access: u8,
    /// The address does not matter.
    pub judge: bool,
}

/// A completion to be written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Cqe {
    pub cqn: u16,
    pub qp_idx: u16,
    pub epoch: u16,
    pub solicited: bool,
    pub qpn: u32,
    pub opcode: u8,
    pub wqe_index: u16,
    pub status: u8,
    pub with_imm: bool,
    pub with_inv: bool,
    pub grh: bool,
    pub byte_len: u32,
    pub imm: u32,
    pub src_qpn: u32,
    pub vendor_err: u8,
}

/// An event to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Event {
    pub eqn: u8,
    pub kind: u8,
    pub number: u32,
}

/// What left the block, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Out {
    /// A message of a write client: 0 commands, 1 CQEs, 2 EQEs.
    Write {
        /// Client.
        client: usize,
        /// Address.
        addr: u64,
        /// The bytes.
        bytes: Vec<u8>,
        /// Cycle in which the last beat was accepted.
        at: u64,
    },
    /// An interrupt: source 0 event queues, 1 command completions.
    Msix {
        /// Source.
        source: usize,
        /// Vector.
        vector: u8,
    },
    /// A QP reported: index, epoch.
    QpErr(u16, u16),
}

/// How the surroundings behave.
#[derive(Debug, Clone, Copy)]
pub struct Manners {
    /// Cycles from the acceptance of a read to its first beat.
    pub read_latency: u64,
    /// Chance that a stream stalls in a cycle.
    pub stall: f64,
    /// Cycles from the request of a barrier to its answer; `None`: never.
    pub drain: Option<u64>,
    /// Cycles that the answer still stands after the request fell.
    pub stale_ack: u64,
    /// Cycles of the QP engine per command; `None`: it never answers.
    pub qp: Option<u64>,
    /// Interrupts are taken.
    pub msix: bool,
}

/// Answers at once, never stalls.
pub const PROMPT: Manners = Manners {
    read_latency: 0,
    stall: 0.0,
    drain: Some(2),
    stale_ack: 1,
    qp: Some(4),
    msix: true,
};

struct Beat {
    due: u64,
    data: Vec<u32>,
    last: bool,
    err: u64,
}

/// The block and its surroundings.
pub struct CtrlBench {
    /// The block.
    pub dut: BlockModel,
    beat_bytes: usize,
    /// Host memory.
    pub mem: Vec<u8>,
    /// How the surroundings behave.
    pub manners: Manners,
    rng: Stream,
    beats: VecDeque<Beat>,
    page_beats: VecDeque<Beat>,
    /// Page list lines that were read: addresses.
    pub page_reads: Vec<u64>,
    /// DmaErr of the next page list read.
    pub fail_page: u64,
    /// Reads of the command ring: address and length.
    pub reads: Vec<(u64, usize)>,
    /// No read is accepted.
    pub hold_reads: bool,
    /// The read that was offered and not accepted in the cycle before.
    pub read_waits: Option<(u64, usize)>,
    /// DmaErr of the read after so many.
    pub fail_read: Option<(usize, u64)>,
    partial: [Vec<u8>; 3],
    /// What left, in order.
    pub out: Vec<Out>,
    /// Counter pulses.
    pub counts: [u64; 128],
    log_size: u32,
    /// Commands posted.
    pub produced: u16,
    /// Completions taken.
    pub taken: u16,
    next_tag: u16,
    tags: VecDeque<(u16, u8)>,
    /// What the QP engine answers, one after the other; afterwards OK with nothing.
    pub qp_answers: VecDeque<QpAnswer>,
    /// Commands that the QP engine took.
    pub qp_cmds: Vec<[u8; 64]>,
    qp_due: Option<u64>,
    qp_refs: Option<Ref>,
    drain_since: Option<u64>,
    ack_until: u64,
    /// Barriers answered.
    pub barriers: u32,
    /// The block that holds the shared receive queues.
    pub srqs: SrqSide,
    /// Lookups to be asked, by port.
    pub lookups: [VecDeque<Lookup>; 4],
    /// Answers: MrErr, address, by port.
    pub found: [Vec<(u8, u64)>; 4],
    /// Bytes that follow each other at that address.
    pub rooms: [Vec<u64>; 4],
    /// Operations on keys to be asked by the requester.
    pub key_ops: VecDeque<KeyOp>,
    /// Invalidations to be asked by the responder.
    pub invs: VecDeque<Invalidate>,
    /// The answers to both: MrErr.
    pub inv_done: [Vec<u8>; 2],
    /// Completions to be written, by client.
    pub cqes: [VecDeque<Cqe>; 2],
    /// Completions that were taken, in order.
    pub cqes_taken: Vec<Cqe>,
    /// Events to be written, by client.
    pub events: [VecDeque<Event>; 3],
    /// Doorbells of completion queues: page, 64 bits; one a cycle.
    pub cq_db: VecDeque<(u8, u64)>,
    /// Doorbells of event queues.
    pub eq_db: VecDeque<u64>,
    last_cnt_idx: u64,
    shown: [Option<u64>; 11],
}

fn pack(fields: &[(u32, u64)]) -> u128 {
    // Most significant field first, as in a packed struct.
    fields.iter().fold(0, |v, (width, value)| {
        assert!(
            *width == 64 || value >> width == 0,
            "{value:#x} does not fit {width} bits"
        );
        v << width | u128::from(*value)
    })
}

fn put_bits(words: &mut [u32], lsb: usize, width: usize, value: u128) {
    for bit in 0..width {
        let at = lsb + bit;
        words[at / 32] = words[at / 32] & !(1 << (at % 32)) | ((value >> bit & 1) as u32) << (at % 32);
    }
}

fn bits(words: &[u32], lsb: usize, width: usize) -> u64 {
    (0..width).fold(0, |v, bit| {
        v | u64::from(words[(lsb + bit) / 32] >> ((lsb + bit) % 32) & 1) << bit
    })
}

impl CtrlBench {
    /// Builds the block, resets it and starts a command ring of 16.
    pub fn new(data_width: u32, seed: u64) -> Self {
        Self::started(Self::held(data_width, seed))
    }

    /// The same, with a clock cycle of so many picoseconds (instead of [`CLK_PERIOD_PS`]).
    pub fn clocked(data_width: u32, seed: u64, clk_period_ps: u32) -> Self {
        Self::started(Self::built(data_width, seed, clk_period_ps, true))
    }

    /// The same, built without IPv6 and without shared receive queues.
    pub fn smallest(data_width: u32, seed: u64) -> Self {
        Self::started(Self::built(data_width, seed, CLK_PERIOD_PS, false))
    }

    fn started(mut bench: Self) -> Self {
        bench.dut.set("enable_i", 1);
        bench.dut.set("bus_master_en_i", 1);
        // One entry a cycle, all tables at once; that of the PDs, with the XRC domains behind them, is the largest here.
        let budget = u64::from((NUM_PD + NUM_XRCD).max(NUM_CQ).max(NUM_MR).max(NUM_SRQ)) + 8;
        bench.until("tables to be clear", budget, |b| b.dut.get("ready_o") == 1);
        bench.start_ring(4);
        bench
    }

    /// The same, before the device is enabled and without a ring.
    pub fn held(data_width: u32, seed: u64) -> Self {
        Self::built(data_width, seed, CLK_PERIOD_PS, true)
    }

    fn built(data_width: u32, seed: u64, clk_period_ps: u32, all: bool) -> Self {
        let mut dut = BlockModel::builder("rnic_ctrl")
            .param("DataW", data_width)
            .param("QpIdxW", 8)
            .param("NumCq", NUM_CQ)
            .param("NumMr", NUM_MR)
            .param("NumSrq", NUM_SRQ)
            .param("DrainLog", DRAIN_LOG)
            .param("ClkPeriodPs", clk_period_ps)
            .param("Ipv6", u8::from(all))
            .param("HasSrq", u8::from(all))
            .random_init(seed)
            .build()
            .expect("rnic_ctrl builds");
        // Inputs, too, start at random.
        let inputs: Vec<String> = dut
            .ports()
            .iter()
            .filter(|p| !p.is_output && p.name != "clk_i")
            .map(|p| p.name.clone())
            .collect();
        for input in inputs {
            dut.set_wide(&input, &[]);
        }
        dut.set("qp_ready_i", 1);
        dut.reset(3);
        Self {
            dut,
            beat_bytes: data_width as usize / 8,
            mem: vec![POISON; SIZE],
            manners: PROMPT,
            rng: Stream::new(seed, "ctrl_bench", u64::from(data_width)),
            beats: VecDeque::new(),
            page_beats: VecDeque::new(),
            page_reads: Vec::new(),
            fail_page: 0,
            reads: Vec::new(),
            hold_reads: false,
            read_waits: None,
            fail_read: None,
            partial: [const { Vec::new() }; 3],
            out: Vec::new(),
            counts: [0; 128],
            log_size: 0,
            produced: 0,
            taken: 0,
            next_tag: 0x4000,
            tags: VecDeque::new(),
            qp_answers: VecDeque::new(),
            qp_cmds: Vec::new(),
            qp_due: None,
            qp_refs: None,
            drain_since: None,
            ack_until: 0,
            barriers: 0,
            srqs: SrqSide::default(),
            lookups: [const { VecDeque::new() }; 4],
            found: [const { Vec::new() }; 4],
            rooms: [const { Vec::new() }; 4],
            key_ops: VecDeque::new(),
            invs: VecDeque::new(),
            inv_done: [const { Vec::new() }; 2],
            cqes: [const { VecDeque::new() }; 2],
            cqes_taken: Vec::new(),
            events: [const { VecDeque::new() }; 3],
            cq_db: VecDeque::new(),
            eq_db: VecDeque::new(),
            last_cnt_idx: 0,
            shown: [None; 11],
        }
    }

    /// Cycles since the model was made.
    pub fn now(&self) -> u64 {
        self.dut.cycles()
    }

    /// Bytes of host memory.
    pub fn bytes(&self, addr: u64, len: usize) -> &[u8] {
        let at = (addr - BASE) as usize;
        &self.mem[at..at + len]
    }

    /// Fills host memory with zeros, as a driver does with a ring.
    pub fn clear(&mut self, addr: u64, len: usize) {
        let at = (addr - BASE) as usize;
        self.mem[at..at + len].fill(0);
    }

    fn stalls(&mut self) -> bool {
        self.rng.chance(self.manners.stall)
    }

    /// Whether to show a new word of client `slot`: what was shown stays until taken.
    fn offers(&mut self, slot: usize, there: bool) -> bool {
        let shown = self.shown[slot].is_some();
        let offer = there && (shown || !self.stalls());
        self.shown[slot] = offer.then_some(0);
        offer
    }

    /// One cycle.
    pub fn step(&mut self) {
        let now = self.now();
        // ---- what the surroundings show in this cycle
        let rsp = self.beats.front().is_some_and(|b| b.due <= now) && !self.stalls();
        self.dut.set("rd_rsp_valid_i", u64::from(rsp));
        let page_rsp = !rsp && self.page_beats.front().is_some_and(|b| b.due <= now) && !self.stalls();
        self.dut.set("mr_rd_rsp_valid_i", u64::from(page_rsp));
        if rsp || page_rsp {
            let beat = if rsp { &self.beats[0] } else { &self.page_beats[0] };
            self.dut.set_wide("rd_rsp_data_i", &beat.data);
            self.dut.set("rd_rsp_ctl_i", u64::from(beat.last) << 3 | beat.err);
        }
        let rd_ready = !self.stalls() && !self.hold_reads;
        self.dut.set("rd_req_ready_i", u64::from(rd_ready));
        let page_ready = !self.stalls();
        self.dut.set("mr_rd_req_ready_i", u64::from(page_ready));
        let wr_ready = (0..3).fold(0, |m, c| m | u64::from(!self.stalls()) << c);
        self.dut.set("wr_ready_i", wr_ready);
        let msix_ready = if self.manners.msix {
            (0..2).fold(0, |m, c| m | u64::from(!self.stalls()) << c)
        } else {
            0
        };
        self.dut.set("msix_ready_i", msix_ready);
        self.dut.set("cycles_i", now);
        self.dut.set("cnt_rd_i", counter_value(self.last_cnt_idx));

        let qp_ready = self.qp_due.is_none() && !self.stalls();
        self.dut.set("qp_cmd_ready_i", u64::from(qp_ready));
        let answers = self.qp_due.is_some_and(|due| due <= now);
        self.dut.set("qp_cpl_valid_i", u64::from(answers));
        if answers {
            let a = self.qp_answers.front().copied().unwrap_or_default();
            let mut words = [0; 6];
            for (i, v) in [a.offender_index, a.detail, a.offender, a.count, a.handle]
                .iter()
                .enumerate()
            {
                words[i] = *v;
            }
            words[5] = u32::from(a.status) << 8 | u32::from(a.rule);
            self.dut.set_wide("qp_cpl_i", &words);
        }
        // References change just before the answer.
        let refs = if self.qp_due.is_some_and(|due| due <= now + 1) {
            self.qp_refs.take()
        } else {
            None
        };
        self.dut.set("ref_valid_i", u64::from(refs.is_some()));
        if let Some(r) = refs {
            let v = pack(&[
                (1, u64::from(r.in_xrcd)),
                (1, u64::from(r.srq != 0xffff)),
                (16, u64::from(r.srq)),
                (1, u64::from(r.inc)),
                (17, u64::from(r.n)),
                (16, u64::from(r.pd)),
                (16, u64::from(r.send_cq)),
                (16, u64::from(r.recv_cq)),
            ]);
            self.dut
                .set_wide("ref_i", &[v as u32, (v >> 32) as u32, (v >> 64) as u32]);
        } else {
            // What is not valid is not read: any words, others in each cycle.
            let (a, b) = (Random::new(now).bits(), Random::new(!now).bits());
            self.dut
                .set_wide("ref_i", &[a as u32, (a >> 32) as u32, b as u32 & 0xf_ffff]);
        }

        let ack = self
            .drain_since
            .is_some_and(|t| self.manners.drain.is_some_and(|d| now >= t + d))
            || now < self.ack_until;
        self.dut.set("drain_ack_i", u64::from(ack));

        self.show_services();
        self.srqs.show(&mut self.dut);
        self.dut.eval();
        self.srqs.look(&self.dut);
        if page_rsp {
            assert_eq!(
                self.dut.get("mr_rd_rsp_ready_o"),
                1,
                "there is room for what was asked for"
            );
            self.page_beats.pop_front();
        }
        if page_ready && self.dut.get("mr_rd_req_valid_o") == 1 {
            let req = self.dut.get_wide("mr_rd_req_o");
            let (addr, len) = (bits(&req, 16, 64), bits(&req, 0, 16) as usize);
            assert_eq!((addr % 64, len), (0, 64));
            self.page_reads.push(addr);
            let err = std::mem::take(&mut self.fail_page);
            let beats = self.beats_of(addr, len, err, now);
            self.page_beats.extend(beats);
        }
        self.look(now, rsp, rd_ready, wr_ready, msix_ready, qp_ready, answers, ack);
        self.dut.clock();
    }

    fn show_services(&mut self) {
        let mut valid = 0;
        let mut words = [0; 22];
        for port in 0..4 {
            if self.offers(port, !self.lookups[port].is_empty()) {
                let l = self.lookups[port][0];
                valid |= 1 << port;
                let low = pack(&[(64, l.va), (32, u64::from(l.len)), (16, u64::from(l.pd))]);
                let lowest = pack(&[
                    (24, u64::from(l.qpn)),
                    (4, u64::from(l.access)),
                    (1, u64::from(l.judge)),
                ]);
                put_bits(&mut words, port * 173, 29, lowest);
                put_bits(&mut words, port * 173 + 29, 112, low);
                put_bits(&mut words, port * 173 + 141, 32, u128::from(l.key));
            }
        }
        self.dut.set("mr_req_valid_i", valid);
        if valid != 0 {
            self.dut.set_wide("mr_req_i", &words);
        }

        let offer = self.offers(9, !self.key_ops.is_empty());
        self.dut.set("mr_op_valid_i", u64::from(offer));
        if offer {
            let o = self.key_ops[0];
            let fields = [
                (3, u64::from(o.op)),
                (32, u64::from(o.key)),
                (16, u64::from(o.pd)),
                (24, u64::from(o.qpn)),
                (3, 0),
                (6, u64::from(o.access)),
                (64, o.va),
                (49, o.length),
                (64, o.host_addr),
                (5, u64::from(o.log_page)),
                (30, u64::from(o.page_offset)),
                (32, u64::from(o.lkey)),
            ];
            let mut words = [0; 11];
            let mut lsb = 0;
            for (width, value) in fields.iter().rev() {
                put_bits(&mut words, lsb, *width as usize, pack(&[(*width, *value)]));
                lsb += *width as usize;
            }
            self.dut.set_wide("mr_op_i", &words);
        }
        let offer = self.offers(10, !self.invs.is_empty());
        self.dut.set("mr_inv_valid_i", u64::from(offer));
        if offer {
            let i = self.invs[0];
            let mut words = [0; 3];
            let bits = pack(&[(32, u64::from(i.key)), (16, u64::from(i.pd)), (24, u64::from(i.qpn))]);
            put_bits(&mut words, 0, 72, bits);
            self.dut.set_wide("mr_inv_i", &words);
        }

        let mut valid = 0;
        let mut words = [0; 13];
        for c in 0..2 {
            if self.offers(4 + c, !self.cqes[c].is_empty()) {
                let e = self.cqes[c][0];
                valid |= 1 << c;
                let high = pack(&[
                    (16, u64::from(e.cqn)),
                    (16, u64::from(e.qp_idx)),
                    (16, u64::from(e.epoch)),
                    (1, u64::from(e.solicited)),
                    (24, u64::from(e.qpn)),
                    (8, u64::from(e.opcode)),
                    (16, u64::from(e.wqe_index)),
                ]);
                let low = pack(&[
                    (8, u64::from(e.status)),
                    (1, u64::from(e.with_imm)),
                    (1, u64::from(e.with_inv)),
                    (1, u64::from(e.grh)),
                    (32, u64::from(e.byte_len)),
                    (32, u64::from(e.imm)),
                    (24, u64::from(e.src_qpn)),
                    (8, u64::from(e.vendor_err)),
                ]);
                put_bits(&mut words, c * 204, 107, low);
                put_bits(&mut words, c * 204 + 107, 97, high);
            }
        }
        self.dut.set("cqe_valid_i", valid);
        if valid != 0 {
            self.dut.set_wide("cqe_i", &words);
        }

        let mut valid = 0;
        let mut words = [0; 5];
        for c in 0..3 {
            // (slots 6 to 8)
            if self.offers(6 + c, !self.events[c].is_empty()) {
                let e = self.events[c][0];
                valid |= 1 << c;
                put_bits(
                    &mut words,
                    c * 48,
                    48,
                    pack(&[(8, u64::from(e.eqn)), (8, u64::from(e.kind)), (32, u64::from(e.number))]),
                );
            }
        }
        self.dut.set("eqe_valid_i", valid);
        if valid != 0 {
            self.dut.set_wide("eqe_i", &words);
        }

        let db = self.cq_db.pop_front();
        self.dut.set("cq_db_valid_i", u64::from(db.is_some()));
        if let Some((page, value)) = db {
            self.dut
                .set_wide("cq_db_i", &[value as u32, (value >> 32) as u32, u32::from(page)]);
        }
        let db = self.eq_db.pop_front();
        self.dut.set("eq_db_valid_i", u64::from(db.is_some()));
        if let Some(value) = db {
            self.dut.set("eq_db_i", value);
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn look(
        &mut self,
        now: u64,
        rsp: bool,
        rd_ready: bool,
        wr_ready: u64,
        msix_ready: u64,
        qp_ready: bool,
        answers: bool,
        ack: bool,
    ) {
        if rsp {
            assert_eq!(
                self.dut.get("rd_rsp_ready_o"),
                1,
                "the block has room for what it asked for"
            );
            self.beats.pop_front();
        }
        let waited = self.read_waits.take();
        if self.dut.get("rd_req_valid_o") == 1 {
            let req = self.dut.get_wide("rd_req_o");
            let read = (bits(&req, 16, 64), bits(&req, 0, 16) as usize);
            assert!(
                waited.is_none_or(|w| w == read) || self.dut.get("cmd_restart_i") == 1,
                "a read that waits was {waited:x?} and is {read:x?}"
            );
            if rd_ready {
                self.accept_read(read.0, read.1, now);
            } else {
                self.read_waits = Some(read);
            }
        }
        let valid = self.dut.get("wr_valid_o");
        for client in (0..3).filter(|c| (valid & wr_ready) >> c & 1 == 1) {
            self.accept_write(client, now);
        }
        let valid = self.dut.get("msix_valid_o");
        for source in (0..2).filter(|c| (valid & msix_ready) >> c & 1 == 1) {
            let vector = (self.dut.get("msix_vec_o") >> (8 * source)) as u8;
            self.out.push(Out::Msix { source, vector });
        }
        if self.dut.get("qp_err_valid_o") == 1 {
            let e = self.dut.get_wide("qp_err_o");
            assert_eq!(bits(&e, 0, 1), 0, "an overrun is an error of the whole QP");
            self.out
                .push(Out::QpErr(bits(&e, 17, 16) as u16, bits(&e, 1, 16) as u16));
        }
        if qp_ready && self.dut.get("qp_cmd_valid_o") == 1 {
            let bytes: Vec<u8> = self
                .dut
                .get_wide("qp_cmd_o")
                .iter()
                .flat_map(|w| w.to_le_bytes())
                .collect();
            self.qp_cmds.push(bytes.try_into().unwrap());
            self.qp_due = Some(self.manners.qp.map_or(u64::MAX, |cycles| now + cycles));
            self.qp_refs = self.qp_answers.front().and_then(|a| a.refs);
        }
        if answers && self.dut.get("qp_cpl_ready_o") == 1 {
            assert!(self.qp_refs.is_none());
            self.qp_answers.pop_front();
            self.qp_due = None;
        }
        let request = self.dut.get("drain_req_o") == 1;
        match (self.drain_since, request) {
            (None, true) => {
                assert!(!ack, "a barrier is asked for while an old answer stands");
                self.drain_since = Some(now);
            }
            (Some(_), false) => {
                assert!(
                    ack || self.manners.drain.is_none(),
                    "a barrier was given up before its answer"
                );
                self.drain_since = None;
                if ack {
                    self.barriers += 1;
                    self.ack_until = now + 1 + self.manners.stale_ack;
                }
            }
            _ => {}
        }

        let ready = self.dut.get("mr_req_ready_o");
        for port in (0..4)
            .filter(|p| self.shown[*p].is_some() && ready >> p & 1 == 1)
            .collect::<Vec<_>>()
        {
            self.lookups[port].pop_front();
            self.shown[port] = None;
        }
        let valid = self.dut.get("mr_rsp_valid_o");
        if valid != 0 {
            assert!(valid.is_power_of_two());
            let rsp = self.dut.get_wide("mr_rsp_o");
            let port = valid.trailing_zeros() as usize;
            self.found[port].push((bits(&rsp, 77, 3) as u8, bits(&rsp, 0, 64)));
            self.rooms[port].push(bits(&rsp, 64, 13));
        }
        for (port, done) in ["mr_op_done_o", "mr_inv_done_o"].into_iter().enumerate() {
            if self.dut.get(done) == 1 {
                self.inv_done[port].push(self.dut.get("mr_op_err_o") as u8);
                let asked = if port == 0 {
                    self.key_ops.pop_front().is_some()
                } else {
                    self.invs.pop_front().is_some()
                };
                assert!(asked, "an answer that nobody asked for");
                self.shown[9 + port] = None;
            }
        }
        let ready = self.dut.get("cqe_ready_o");
        for c in (0..2)
            .filter(|c| self.shown[4 + c].is_some() && ready >> c & 1 == 1)
            .collect::<Vec<_>>()
        {
            let cqe = self.cqes[c].pop_front().unwrap();
            self.cqes_taken.push(cqe);
            self.shown[4 + c] = None;
        }
        let ready = self.dut.get("eqe_ready_o");
        for c in (0..3)
            .filter(|c| self.shown[6 + c].is_some() && ready >> c & 1 == 1)
            .collect::<Vec<_>>()
        {
            self.events[c].pop_front();
            self.shown[6 + c] = None;
        }
        for (n, word) in self.dut.get_wide("cnt_o").into_iter().enumerate() {
            for bit in (0..32).filter(|b| word >> b & 1 == 1) {
                self.counts[32 * n + bit] += 1;
            }
        }
        self.last_cnt_idx = self.dut.get("cnt_rd_idx_o");
    }

    fn accept_read(&mut self, addr: u64, len: usize, now: u64) {
        assert!(
            len > 0 && len <= 4096 && len.is_multiple_of(64) && addr.is_multiple_of(64),
            "a read of {len} bytes at {addr:#x}"
        );
        let err = match self.fail_read {
            Some((0, err)) => err,
            _ => 0,
        };
        self.fail_read = self.fail_read.and_then(|(n, err)| n.checked_sub(1).map(|n| (n, err)));
        self.reads.push((addr, len));
        let beats = self.beats_of(addr, len, err, now);
        self.beats.extend(beats);
    }

    fn beats_of(&self, addr: u64, len: usize, err: u64, now: u64) -> Vec<Beat> {
        let beats = len / self.beat_bytes;
        let beat = |(i, chunk): (usize, &[u8])| Beat {
            due: now + 1 + self.manners.read_latency,
            data: chunk
                .chunks(4)
                .map(|c| u32::from_le_bytes(c.try_into().unwrap()))
                .collect(),
            last: i + 1 == beats,
            err: if i + 1 == beats { err } else { 0 },
        };
        self.bytes(addr, len)
            .chunks(self.beat_bytes)
            .enumerate()
            .map(beat)
            .collect()
    }

    fn accept_write(&mut self, client: usize, at: u64) {
        let hdr = self.dut.get_wide("wr_hdr_o");
        let len = bits(&hdr, 80 * client, 16) as usize;
        let addr = bits(&hdr, 80 * client + 16, 64);
        let data = self.dut.get_wide("wr_data_o");
        let words = self.beat_bytes / 4;
        let left = len - self.partial[client].len();
        let beat = data[client * words..(client + 1) * words]
            .iter()
            .flat_map(|w| w.to_le_bytes())
            .take(left);
        self.partial[client].extend(beat);
        let last = self.dut.get("wr_last_o") >> client & 1 == 1;
        assert_eq!(
            last,
            self.partial[client].len() == len,
            "last beat of a message of {len} bytes"
        );
        if last {
            let bytes = std::mem::take(&mut self.partial[client]);
            let start = (addr - BASE) as usize;
            self.mem[start..start + len].copy_from_slice(&bytes);
            self.out.push(Out::Write {
                client,
                addr,
                bytes,
                at,
            });
        }
    }

    /// Asks for an invalidation by the requester (0) or the responder (1).
    pub fn push_invalidate(&mut self, port: usize, i: Invalidate) {
        match port {
            0 => self.key_ops.push_back(KeyOp::invalidate(&i)),
            _ => self.invs.push_back(i),
        }
    }

    /// Some cycles.
    pub fn run(&mut self, cycles: u64) {
        for _ in 0..cycles {
            self.step();
        }
    }

    /// Cycles until `done`, at most `budget`.
    #[track_caller]
    pub fn until(&mut self, what: &str, budget: u64, mut done: impl FnMut(&mut Self) -> bool) {
        for _ in 0..budget {
            if done(self) {
                return;
            }
            self.step();
        }
        panic!("waited {budget} cycles for {what}");
    }

    // ---------------------------------------------------------------- the driver of the command ring

    /// Starts (or restarts) the command ring with 2^log_size entries at its entry 0.
    pub fn start_ring(&mut self, log_size: u32) {
        self.clear(CPL, 32 << log_size.min(12));
        self.dut.set("cmd_ring_base_i", RING);
        self.dut.set("cmd_cpl_base_i", CPL);
        self.dut.set("cmd_log_size_i", u64::from(log_size));
        self.dut.set("cmd_restart_i", 1);
        self.step();
        self.dut.set("cmd_restart_i", 0);
        self.log_size = log_size;
        self.produced = 0;
        self.taken = 0;
        self.tags.clear();
    }

    /// Puts a command into the ring, with a tag of its own; no doorbell.
    pub fn put(&mut self, cmd: &Cmd) {
        assert!(
            u32::from(self.produced.wrapping_sub(self.taken)) < 1 << self.log_size,
            "the ring is full"
        );
        let slot = u64::from(self.produced) & ((1 << self.log_size) - 1);
        let at = (RING - BASE + 64 * slot) as usize;
        self.mem[at..at + 64].copy_from_slice(&cmd.0);
        self.mem[at + 2..at + 4].copy_from_slice(&self.next_tag.to_le_bytes());
        self.tags.push_back((self.next_tag, cmd.0[0]));
        self.next_tag = self.next_tag.wrapping_mul(5).wrapping_add(0x1357);
        self.produced = self.produced.wrapping_add(1);
    }

    /// Writes the producer register.
    pub fn doorbell(&mut self, producer: u16) {
        self.dut.set("cmd_producer_i", u64::from(producer));
        self.dut.set("cmd_producer_we_i", 1);
        self.step();
        self.dut.set("cmd_producer_we_i", 0);
    }

    /// The next completion, if it is there. Its phase, tag and opcode are checked.
    pub fn poll(&mut self) -> Option<Completion> {
        let slot = u64::from(self.taken) & ((1 << self.log_size) - 1);
        let e: [u8; 32] = self.bytes(CPL + 32 * slot, 32).try_into().unwrap();
        let lap = (u32::from(self.taken) >> self.log_size) & 1;
        if u32::from(e[3] >> 7) == lap {
            return None;
        }
        assert_eq!((e[3] & 0x7f, e[6], e[7]), (0, 0, 0), "reserved bytes of a completion");
        let word = |at: usize| u32::from_le_bytes(e[at..at + 4].try_into().unwrap());
        let c = Completion {
            tag: u16::from_le_bytes([e[0], e[1]]),
            opcode: e[2],
            status: e[4],
            rule: e[5],
            handle: word(8),
            count: word(12),
            offender: word(16),
            detail: word(20),
            offender_index: word(24),
            exec_cycles: word(28),
        };
        assert_eq!(
            self.tags.pop_front(),
            Some((c.tag, c.opcode)),
            "completions come in ring order"
        );
        self.taken = self.taken.wrapping_add(1);
        Some(c)
    }

    /// Posts a command and waits for its completion.
    #[track_caller]
    pub fn exec(&mut self, cmd: &Cmd) -> Completion {
        self.put(cmd);
        self.doorbell(self.produced);
        self.completion()
    }

    /// Posts commands as fast as the ring takes them, and waits for their completions.
    #[track_caller]
    pub fn batch(&mut self, cmds: &[Cmd]) -> Vec<Completion> {
        let mut posted = 0;
        let mut done = Vec::new();
        while done.len() < cmds.len() {
            let room = (1usize << self.log_size) - usize::from(self.produced.wrapping_sub(self.taken));
            let n = room.min(cmds.len() - posted);
            for cmd in &cmds[posted..posted + n] {
                self.put(cmd);
            }
            if n > 0 {
                posted += n;
                self.doorbell(self.produced);
            }
            done.push(self.completion());
            while let Some(c) = self.poll() {
                done.push(c);
            }
        }
        done
    }

    /// Waits for the next completion.
    #[track_caller]
    pub fn completion(&mut self) -> Completion {
        let mut found = None;
        self.until("a completion", 20_000, |b| {
            found = b.poll();
            found.is_some()
        });
        found.unwrap()
    }

    /// As [`exec`](Self::exec); the command must be done. Gives its handle.
    #[track_caller]
    pub fn ok(&mut self, cmd: &Cmd) -> u32 {
        let c = self.exec(cmd);
        assert_eq!(c.status, 0, "{c:?}");
        c.handle
    }

    /// As [`exec`](Self::exec); the command must be refused so.
    #[track_caller]
    pub fn refused(&mut self, cmd: &Cmd, status: u8, detail: u32) {
        let c = self.exec(cmd);
        assert_eq!(
            (c.status, c.detail, c.handle, c.count),
            (status, detail, 0, 0),
            "{cmd:02x?}"
        );
    }

    /// Creates an event queue over fresh zeros.
    pub fn make_eq(&mut self, eq: u32, log_size: u8) -> u64 {
        let base = BASE + 0x9_0000 + u64::from(eq) * 0x4000;
        self.clear(base, 32 << log_size);
        self.ok(&Cmd::create_eq(eq, log_size, base));
        base
    }

    /// Messages of one write client: address and bytes.
    pub fn writes(&self, client: usize) -> Vec<(u64, Vec<u8>)> {
        self.out
            .iter()
            .filter_map(|o| match o {
                Out::Write {
                    client: c, addr, bytes, ..
                } if *c == client => Some((*addr, bytes.clone())),
                _ => None,
            })
            .collect()
    }

    /// Vectors raised by one source.
    pub fn vectors(&self, source: usize) -> Vec<u8> {
        self.out
            .iter()
            .filter_map(|o| match o {
                Out::Msix { source: s, vector } if *s == source => Some(*vector),
                _ => None,
            })
            .collect()
    }

    /// Events that were written: queue is known by the address; kind and number.
    pub fn events_written(&self) -> Vec<(u8, u32)> {
        self.writes(2)
            .iter()
            .map(|(_, b)| (b[0], u32::from_le_bytes(b[4..8].try_into().unwrap())))
            .collect()
    }
}

/// Doorbell of a completion queue.
pub fn cq_doorbell(cqn: u32, consumer: u32, arm: bool, solicited_only: bool) -> u64 {
    u64::from(cqn) | u64::from(arm) << 24 | u64::from(solicited_only) << 25 | u64::from(consumer & 0xff_ffff) << 32
}

/// Doorbell of an event queue.
pub fn eq_doorbell(eqn: u8, consumer: u32, arm: bool) -> u64 {
    u64::from(eqn) | u64::from(arm) << 24 | u64::from(consumer & 0xff_ffff) << 32
}

/// What the bench's counter file answers.
pub fn counter_value(idx: u64) -> u64 {
    0x0123_4567_0000_0000 | (idx * 0x1001)
}
