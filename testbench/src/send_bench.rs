// SPDX-License-Identifier: Apache-2.0
//! The requester (`rnic_send`) on a bench: its control table, send queues, host memory, memory keys, transmitter and the
//! responder at the other end of the wire are played here. Made for tests: a broken contract panics. Numbers (opcodes,
//! statuses, syndromes) are written out from the standard, not taken from the generated ones.

use std::collections::{BTreeMap, VecDeque};

use openrnic_sim::model::BlockModel;
use openrnic_sim::rng::Stream;

use crate::looks::Looks;

use crate::ctrl_bench::KeyOp;
use crate::wire_bench::bits::{Bits, Layout};
use crate::wire_bench::{PORT_CFG, RX_DESC, sgid_fields};

const HOT: Layout = Layout(&[
    ("valid", 1),
    ("state", 3),
    ("qp_type", 4),
    ("sq_draining", 1),
    ("sq_sig_all", 1),
    ("has_srq", 1),
    ("access", 3),
    ("mtu", 3),
    ("uar", 8),
    ("log_sq", 4),
    ("log_rq", 4),
    ("gen", 16),
    ("epoch", 16),
]);
const CREATE: Layout = Layout(&[
    ("fast_reg", 1),
    ("pd", 16),
    ("send_cq", 16),
    ("recv_cq", 16),
    ("srq", 16),
    ("log_sq_stride", 4),
    ("log_rq_stride", 4),
    ("sq_base", 64),
    ("rq_base", 64),
]);
const PATH: Layout = Layout(&[
    ("port", 8),
    ("pkey_index", 16),
    ("rq_psn", 24),
    ("sq_psn", 24),
    ("dest_qpn", 24),
    ("qkey", 32),
    ("timeout", 5),
    ("retry_cnt", 3),
    ("rnr_retry", 3),
    ("min_rnr_timer", 5),
    ("max_rd_atomic", 8),
    ("max_dest_rd_atomic", 8),
    ("path_mig_state", 2),
    ("en_sqd_async_notify", 1),
    ("dgid", 128),
    ("dmac", 48),
    ("vlan", 16),
    ("sgid_index", 8),
    ("hop_limit", 8),
    ("traffic_class", 8),
    ("flow_label", 20),
]);
const EVT: Layout = Layout(&[
    ("left_srq", 1),
    ("idx", 16),
    ("epoch", 16),
    ("state", 3),
    ("new_life", 1),
]);
const QP_ERR: Layout = Layout(&[("idx", 16), ("epoch", 16), ("to_sqe", 1)]);
const POS: Layout = Layout(&[("epoch", 16), ("val", 16)]);
const POS_WR: Layout = Layout(&[("idx", 16), ("epoch", 16), ("val", 16)]);
const RD_REQ: Layout = Layout(&[("addr", 64), ("len", 16)]);
const RD_CTL: Layout = Layout(&[("last", 1), ("err", 3)]);
const WR_HDR: Layout = Layout(&[("addr", 64), ("len", 16)]);
const MR_REQ: Layout = Layout(&[
    ("key", 32),
    ("va", 64),
    ("len", 32),
    ("pd", 16),
    ("qpn", 24),
    ("access", 4),
    ("judge", 1),
]);
const MR_OP: Layout = Layout(&[
    ("op", 3),
    ("key", 32),
    ("pd", 16),
    ("qpn", 24),
    ("change", 3),
    ("access", 6),
    ("va", 64),
    ("length", 49),
    ("host_addr", 64),
    ("log_page", 5),
    ("page_offset", 30),
    ("lkey", 32),
]);
const MR_RSP: Layout = Layout(&[("err", 3), ("room", 13), ("addr", 64)]);
const CQE: Layout = Layout(&[
    ("cqn", 16),
    ("qp_idx", 16),
    ("epoch", 16),
    ("solicited", 1),
    ("qpn", 24),
    ("opcode", 8),
    ("wqe_index", 16),
    ("status", 8),
    ("with_imm", 1),
    ("with_inv", 1),
    ("grh", 1),
    ("byte_len", 32),
    ("imm", 32),
    ("src_qpn", 24),
    ("vendor_err", 8),
]);
const TX_JOB: Layout = Layout(&[
    ("qp_idx", 16),
    ("opcode", 8),
    ("se", 1),
    ("ack_req", 1),
    ("psn", 24),
    ("payload_len", 13),
    ("va", 64),
    ("rkey", 32),
    ("dma_len", 32),
    ("syndrome", 8),
    ("msn", 24),
    ("imm", 32),
    ("swap_add", 64),
    ("compare", 64),
]);
const TX_PIECE: Layout = Layout(&[("addr", 64), ("len", 13), ("is_inline", 1)]);
const TX_ERR: Layout = Layout(&[("qp_idx", 16), ("psn", 24), ("err", 3)]);

/// log2 of the QP table.
pub const QP_IDX_W: u32 = 7;
/// Records of the in-flight pool.
pub const POOL: u64 = 48;
/// Records of one QP.
pub const CAP: usize = 8;
/// First address of host memory.
pub const MEM_BASE: u64 = 0x1_0000_0000;
/// Its bytes.
pub const MEM_SIZE: usize = 1 << 20;
/// Our address is entry 2 of the GID table.
pub const OUR_HIT: u16 = 1 << 2;
/// The peer's address.
pub const PEER_IP: u32 = 0x0a00_0002;
/// PSNs: 24 bits.
pub const PSN_MASK: u32 = 0xff_ffff;

/// Packet opcodes of the reliable connection.
#[allow(missing_docs)]
pub mod op {
    pub const SEND_FIRST: u8 = 0x00;
    pub const SEND_MIDDLE: u8 = 0x01;
    pub const SEND_LAST: u8 = 0x02;
    pub const SEND_LAST_IMM: u8 = 0x03;
    pub const SEND_ONLY: u8 = 0x04;
    pub const SEND_ONLY_IMM: u8 = 0x05;
    pub const WRITE_FIRST: u8 = 0x06;
    pub const WRITE_MIDDLE: u8 = 0x07;
    pub const WRITE_LAST: u8 = 0x08;
    pub const WRITE_LAST_IMM: u8 = 0x09;
    pub const WRITE_ONLY: u8 = 0x0a;
    pub const WRITE_ONLY_IMM: u8 = 0x0b;
    pub const READ_REQUEST: u8 = 0x0c;
    pub const READ_FIRST: u8 = 0x0d;
    pub const READ_MIDDLE: u8 = 0x0e;
    pub const READ_LAST: u8 = 0x0f;
    pub const READ_ONLY: u8 = 0x10;
    pub const ACK: u8 = 0x11;
    pub const ATOMIC_ACK: u8 = 0x12;
    pub const CMP_SWAP: u8 = 0x13;
    pub const FETCH_ADD: u8 = 0x14;
    pub const SEND_LAST_INV: u8 = 0x16;
    pub const SEND_ONLY_INV: u8 = 0x17;
}
/// Work request opcodes (`enum ibv_wr_opcode`).
#[allow(missing_docs)]
pub mod wr {
    pub const WRITE: u8 = 0;
    pub const WRITE_IMM: u8 = 1;
    pub const SEND: u8 = 2;
    pub const SEND_IMM: u8 = 3;
    pub const READ: u8 = 4;
    pub const CMP_SWAP: u8 = 5;
    pub const FETCH_ADD: u8 = 6;
    pub const SEND_INV: u8 = 9;
    pub const LOCAL_INV: u8 = 7;
    pub const BIND_MW: u8 = 8;
    pub const REG_MR: u8 = 0x20;
}
/// Completion statuses (`enum ibv_wc_status`).
#[allow(missing_docs)]
pub mod status {
    pub const SUCCESS: u8 = 0;
    pub const LOC_LEN_ERR: u8 = 1;
    pub const LOC_QP_OP_ERR: u8 = 2;
    pub const LOC_PROT_ERR: u8 = 4;
    pub const WR_FLUSH_ERR: u8 = 5;
    pub const MW_BIND_ERR: u8 = 6;
    pub const BAD_RESP_ERR: u8 = 7;
    pub const REM_INV_REQ_ERR: u8 = 9;
    pub const REM_ACCESS_ERR: u8 = 10;
    pub const REM_OP_ERR: u8 = 11;
    pub const RETRY_EXC_ERR: u8 = 12;
    pub const RNR_RETRY_EXC_ERR: u8 = 13;
}
/// QP states.
#[allow(missing_docs)]
pub mod state {
    pub const RESET: u8 = 0;
    pub const INIT: u8 = 1;
    pub const RTR: u8 = 2;
    pub const RTS: u8 = 3;
    pub const SQD: u8 = 4;
    pub const ERR: u8 = 6;
}
/// Device counters.
#[allow(missing_docs)]
pub mod counter {
    pub const RX_DROP_QPN: usize = 13;
    pub const RX_DROP_QP_STATE: usize = 14;
    pub const RX_DROP_QP_TYPE: usize = 15;
    pub const RX_DROP_PKEY: usize = 16;
    pub const RX_DROP_ADDR: usize = 17;
    pub const RX_GHOST_RESPONSES: usize = 24;
    pub const RX_ACKS: usize = 33;
    pub const RX_RNR_NAKS: usize = 34;
    pub const RX_NAK_PSN_SEQ: usize = 35;
    pub const RX_NAK_INV_REQ: usize = 36;
    pub const RX_NAK_REM_ACCESS: usize = 37;
    pub const RX_NAK_REM_OP: usize = 38;
    pub const RETRANSMISSIONS: usize = 39;
    pub const TIMEOUTS: usize = 40;
}

fn put(layout: Layout, bits: &mut Bits, field: &str, value: u64) {
    let (lsb, width) = layout.field(field);
    bits.set(lsb, width, value);
}

fn pack(layout: Layout, fields: &[(&str, u64)]) -> Bits {
    let mut bits = Bits::new(layout.width());
    for (field, value) in fields {
        put(layout, &mut bits, field, *value);
    }
    bits
}

fn field(layout: Layout, words: &[u32], name: &str) -> u64 {
    let (lsb, width) = layout.field(name);
    (0..width).fold(0, |v, i| {
        let at = lsb + i;
        v | u64::from(words[at as usize / 32] >> (at % 32) & 1) << i
    })
}

/// IPv4-mapped GID.
pub fn gid_v4(ip: u32) -> [u8; 16] {
    let mut gid = [0; 16];
    gid[10] = 0xff;
    gid[11] = 0xff;
    gid[12..].copy_from_slice(&ip.to_be_bytes());
    gid
}

/// What the peer's memory holds at an address.
pub fn remote_byte(va: u64) -> u8 {
    (va.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u8
}

/// What the requester reads of a QP's control section.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct Qp {
    pub valid: bool,
    pub state: u8,
    pub qp_type: u8,
    pub sq_draining: bool,
    pub sig_all: bool,
    pub fast_reg: bool,
    pub mtu: u8,
    pub log_sq: u8,
    pub generation: u16,
    pub epoch: u16,
    pub pd: u16,
    pub send_cq: u16,
    pub stride: u8,
    pub sq_base: u64,
    pub sq_psn: u32,
    pub pkey_index: u16,
    pub timeout: u8,
    pub retry_cnt: u8,
    pub rnr_retry: u8,
    pub max_rd_atomic: u8,
}

impl Qp {
    /// Bytes of the path MTU.
    pub fn mtu_bytes(&self) -> usize {
        128 << self.mtu
    }

    fn hot(&self) -> Bits {
        pack(
            HOT,
            &[
                ("valid", u64::from(self.valid)),
                ("state", u64::from(self.state)),
                ("qp_type", u64::from(self.qp_type)),
                ("sq_draining", u64::from(self.sq_draining)),
                ("sq_sig_all", u64::from(self.sig_all)),
                ("mtu", u64::from(self.mtu)),
                ("log_sq", u64::from(self.log_sq)),
                ("gen", u64::from(self.generation)),
                ("epoch", u64::from(self.epoch)),
            ],
        )
    }

    fn ctx(&self) -> Bits {
        let create = pack(
            CREATE,
            &[
                ("fast_reg", u64::from(self.fast_reg)),
                ("pd", u64::from(self.pd)),
                ("send_cq", u64::from(self.send_cq)),
                ("log_sq_stride", u64::from(self.stride)),
                ("sq_base", self.sq_base),
            ],
        );
        let mut path = pack(
            PATH,
            &[
                ("pkey_index", u64::from(self.pkey_index)),
                ("sq_psn", u64::from(self.sq_psn)),
                ("timeout", u64::from(self.timeout)),
                ("retry_cnt", u64::from(self.retry_cnt)),
                ("rnr_retry", u64::from(self.rnr_retry)),
                ("max_rd_atomic", u64::from(self.max_rd_atomic)),
                ("sgid_index", 2),
            ],
        );
        path.set_bytes(PATH.field("dgid").0, &gid_v4(PEER_IP));
        let mut all = Bits::new(HOT.width() + CREATE.width() + PATH.width());
        all.put(0, PATH.width(), &path);
        all.put(PATH.width(), CREATE.width(), &create);
        all.put(PATH.width() + CREATE.width(), HOT.width(), &self.hot());
        all
    }
}

/// A registered region.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct Region {
    pub key: u32,
    pub pd: u16,
    /// As in verbs: 1 local write.
    pub access: u8,
    pub va: u64,
    pub len: u64,
    pub addr: u64,
}

/// A scatter/gather element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Sge {
    pub va: u64,
    pub len: u32,
    pub lkey: u32,
}

/// A send work request, as it stands in the ring.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Wqe {
    pub opcode: u8,
    pub signaled: bool,
    pub solicited: bool,
    pub fence: bool,
    pub inline: Option<Vec<u8>>,
    /// Said to be the inline length, when it is not that of the data.
    pub inline_length: Option<u32>,
    pub sges: Vec<Sge>,
    /// Said to be the number of SGEs, when it is not that of `sges`.
    pub num_sge: Option<u8>,
    pub imm: u32,
    pub remote_va: u64,
    pub rkey: u32,
    /// Atomics: compare operand, and swap or add operand.
    pub atomic: (u64, u64),
}

impl Wqe {
    /// The bytes of the ring slot.
    pub fn bytes(&self, stride: u8) -> Vec<u8> {
        let mut b = vec![0u8; 64 << stride];
        b[0] = self.opcode;
        b[1] = u8::from(self.signaled)
            | u8::from(self.solicited) << 1
            | u8::from(self.fence) << 2
            | u8::from(self.inline.is_some()) << 3;
        b[2] = self.num_sge.unwrap_or(self.sges.len() as u8);
        b[4..8].copy_from_slice(&self.imm.to_le_bytes());
        b[8..16].copy_from_slice(&self.remote_va.to_le_bytes());
        b[16..20].copy_from_slice(&self.rkey.to_le_bytes());
        b[24..32].copy_from_slice(&self.atomic.1.to_le_bytes());
        if let Some(data) = &self.inline {
            let len = self.inline_length.unwrap_or(data.len() as u32);
            b[20..24].copy_from_slice(&len.to_le_bytes());
            b[32..32 + data.len()].copy_from_slice(data);
        } else {
            for (i, s) in self.sges.iter().enumerate().take((b.len() - 32) / 16) {
                let at = 32 + 16 * i;
                b[at..at + 8].copy_from_slice(&s.va.to_le_bytes());
                b[at + 8..at + 12].copy_from_slice(&s.len.to_le_bytes());
                b[at + 12..at + 16].copy_from_slice(&s.lkey.to_le_bytes());
            }
        }
        if matches!(self.opcode, wr::CMP_SWAP | wr::FETCH_ADD) {
            b[48..56].copy_from_slice(&self.atomic.0.to_le_bytes());
        }
        b
    }
}

/// A completion.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Cqe {
    pub cqn: u16,
    pub idx: u16,
    pub epoch: u16,
    pub solicited: bool,
    pub qpn: u32,
    pub opcode: u8,
    pub wqe_index: u16,
    pub status: u8,
    pub byte_len: u32,
    pub vendor_err: u8,
}

/// A packet handed to the transmitter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Packet {
    pub idx: u16,
    pub opcode: u8,
    pub se: bool,
    pub ack_req: bool,
    pub psn: u32,
    pub va: u64,
    pub rkey: u32,
    pub dma_len: u32,
    pub imm: u32,
    pub swap_add: u64,
    pub compare: u64,
    pub payload: Vec<u8>,
}

/// A response, as the parser hands it over.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Response {
    pub opcode: u8,
    pub qpn: u32,
    pub psn: u32,
    pub syndrome: u8,
    pub pkey: u16,
    /// Source address; of IPv4 as a mapped GID.
    pub sgid: [u8; 16],
    /// Entries of the GID table that hold the destination address.
    pub gid_hit: u16,
    pub payload: Vec<u8>,
    /// Result of an atomic.
    pub value: u64,
}

/// What the requester did, in the order in which it did it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Effect {
    Tx(Packet),
    Write { addr: u64, len: usize },
    Cons { idx: u16, epoch: u16, val: u16 },
    Cqe(Cqe),
    Err { idx: u16, epoch: u16, to_sqe: bool },
    Drained { idx: u16, epoch: u16 },
}

/// A message that the peer has received whole.
#[derive(Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Message {
    /// Work request opcode that made it.
    pub opcode: u8,
    pub bytes: Vec<u8>,
    pub va: u64,
    pub rkey: u32,
    pub len: u32,
    /// Immediate, or the key to invalidate.
    pub imm: Option<u32>,
    pub se: bool,
}

impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let hash = self.bytes.iter().fold(0u32, |h, b| h.rotate_left(5) ^ u32::from(*b));
        write!(
            f,
            "{}: {} bytes ({hash:08x}) va {:x} rkey {:x} len {} imm {:x?} se {}",
            self.opcode,
            self.bytes.len(),
            self.va,
            self.rkey,
            self.len,
            self.imm,
            self.se
        )
    }
}

/// The responder at the other end, one per QP.
#[derive(Debug, Clone, Default)]
pub struct Peer {
    /// Says nothing.
    pub deaf: bool,
    /// Expected PSN.
    pub epsn: u32,
    /// RNR NAKs still to be sent, and their timer code.
    pub rnr: (u32, u8),
    /// Messages received.
    pub messages: Vec<Message>,
    /// Requests that are lost: one in so many.
    pub lose_requests: u64,
    /// Responses that are lost: one in so many.
    pub lose_responses: u64,
    /// Words that atomics work on, by address; a word that was never touched holds its address.
    pub memory: BTreeMap<u64, u64>,
    results: BTreeMap<u32, u64>,
    nak_sent: bool,
    part: Option<Message>,
}

/// How the surroundings behave: chance of a ready or valid in a cycle, longest latency in cycles.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub struct Manners {
    pub ready: f64,
    pub valid: f64,
    pub latency: u64,
}

impl Manners {
    /// Always ready, shortest latencies.
    pub const PROMPT: Self = Self {
        ready: 1.0,
        valid: 1.0,
        latency: 0,
    };
    /// Busy at random.
    pub const BUSY: Self = Self {
        ready: 0.6,
        valid: 0.7,
        latency: 60,
    };
}

struct Read {
    due: u64,
    data: Vec<u8>,
    err: u8,
}

/// The bench.
pub struct SendBench {
    /// The block.
    pub dut: BlockModel,
    /// Bytes of a beat.
    pub bytes: usize,
    /// How the surroundings behave.
    pub manners: Manners,
    /// Looks at QPs at random times, while the surroundings are busy.
    pub looks: Looks,
    /// Random source of the bench and its tests.
    pub rng: Stream,
    /// Control table, by index.
    pub qps: Vec<Qp>,
    /// Producer indices.
    pub prod: Vec<(u16, u16)>,
    /// Consumer indices as published.
    pub cons: Vec<u16>,
    /// Responders.
    pub peers: Vec<Peer>,
    /// Registered regions.
    pub regions: Vec<Region>,
    /// Host memory.
    pub mem: Vec<u8>,
    /// Addresses whose reads fail, and how.
    pub bad_reads: Vec<(std::ops::Range<u64>, u8)>,
    /// Payloads that fail: QP index, PSN (once).
    pub bad_tx: Vec<(u16, u32)>,
    /// What was done so far, with the cycle.
    pub effects: Vec<(u64, Effect)>,
    /// Counters.
    pub counters: Vec<u64>,
    /// Requests for ERR are granted after this many cycles; none: never.
    pub err_after: Option<u64>,
    /// The transmitter takes nothing.
    pub stall_tx: bool,
    /// The write client takes nothing.
    pub stall_writes: bool,
    /// WQE reads are answered late by this many cycles.
    pub slow_reads: u64,
    /// WQE reads: address, bytes.
    pub reads: Vec<(u64, usize)>,
    /// The pages of the regions do not follow each other: each page of the bus address is a piece of its own, and page n lies where
    /// page n ^ 1 would.
    pub paged: bool,
    /// Operations on keys that were done: what they name by the fields of the request, in their order.
    pub key_ops: Vec<KeyOp>,
    /// MrErr of the next ones.
    pub key_op_err: u8,
    /// The responder's barriers for invalidated keys are not over before this is false.
    pub hold_barrier: bool,
    /// Such barriers begun, with the operations on keys that were done until then.
    pub barriers: Vec<usize>,
    barrier_due: Option<u64>,
    key_op_due: Option<u64>,
    /// Key look-ups: key, va, length, access.
    pub lookups: Vec<(u32, u64, u32, u8)>,
    next_hot: usize,
    cold: Option<(u64, usize)>,
    kicks: VecDeque<u16>,
    events: VecDeque<(u16, u16, u8, bool)>,
    errs: VecDeque<(u64, u16, u16)>,
    wqe_reads: VecDeque<Read>,
    mr: VecDeque<(u64, u8, u64)>,
    job: Option<(Packet, usize)>,
    wire: VecDeque<(u64, Packet)>,
    rx: VecDeque<(u64, Response)>,
    beats: VecDeque<(Vec<u8>, bool)>,
    desc_taken: bool,
    desc_offered: bool,
    beat_offered: bool,
    rsp_offered: bool,
    write: Option<(u64, usize, Vec<u8>)>,
    held_job: Option<Vec<u32>>,
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes
        .chunks(4)
        .map(|c| c.iter().rev().fold(0, |w, b| w << 8 | u32::from(*b)))
        .collect()
}

impl SendBench {
    /// Builds the block and resets it.
    pub fn new(width: usize, seed: u64) -> Self {
        Self::with(width, seed, if width == 64 { 8000 } else { 4000 })
    }

    /// As [`new`](Self::new), with a clock period of its own in ps (for timers).
    #[allow(clippy::expect_used)]
    pub fn with(width: usize, seed: u64, period: u64) -> Self {
        let mut builder = BlockModel::builder("send_top")
            .source("testbench/tops/send_top.sv")
            .param("DataW", width)
            .param("QpIdxW", QP_IDX_W)
            .param("ClkPeriodPs", period)
            .param("PoolDepth", POOL)
            .param("InflightCap", CAP);
        // Features can be cut out to see a test turn red: OPENRNIC_CUT=RNIC_CUT_FENCE.
        if let Ok(cut) = std::env::var("OPENRNIC_CUT") {
            builder = builder.define(&cut);
        }
        let mut dut = builder.build().expect("send_top builds");
        for (port, layout, n) in [
            ("hot_i", HOT, 1),
            ("rx_desc_i", RX_DESC, 1),
            ("tx_job_o", TX_JOB, 1),
            ("tx_piece_o", TX_PIECE, 1),
            ("cqe_o", CQE, 1),
            ("mr_req_o", MR_REQ, 2),
            ("mr_op_o", MR_OP, 1),
            ("port_cfg_i", PORT_CFG, 1),
            ("sq_prod_i", POS, 1),
        ] {
            let built = dut.ports().iter().find(|p| p.name == port).map(|p| p.width);
            assert_eq!(
                built,
                Some(n * layout.width()),
                "{port} is laid out otherwise in rnic_pkg"
            );
        }
        dut.reset(3);
        let n = 1 << QP_IDX_W;
        let qp = Qp {
            valid: false,
            state: state::RESET,
            qp_type: 2,
            sq_draining: false,
            sig_all: false,
            fast_reg: true,
            mtu: 1,
            log_sq: 4,
            generation: 0,
            epoch: 0,
            pd: 7,
            send_cq: 0,
            stride: 1,
            sq_base: 0,
            sq_psn: 0,
            pkey_index: 1,
            timeout: 0,
            retry_cnt: 7,
            rnr_retry: 7,
            max_rd_atomic: 4,
        };
        let mut mem = vec![0; MEM_SIZE];
        let mut rng = Stream::new(seed, "send bench", width as u64);
        for b in mem.chunks_mut(8) {
            b.copy_from_slice(&rng.bits().to_le_bytes()[..b.len()]);
        }
        let mut bench = Self {
            dut,
            bytes: width / 8,
            manners: Manners::PROMPT,
            looks: Looks::new(seed, 0, 6),
            rng,
            qps: vec![qp; n],
            prod: vec![(0, 0); n],
            cons: vec![0; n],
            peers: vec![Peer::default(); n],
            regions: Vec::new(),
            mem,
            bad_reads: Vec::new(),
            bad_tx: Vec::new(),
            effects: Vec::new(),
            counters: vec![0; 68],
            err_after: Some(20),
            stall_tx: false,
            stall_writes: false,
            slow_reads: 0,
            reads: Vec::new(),
            paged: false,
            key_ops: Vec::new(),
            key_op_err: 0,
            hold_barrier: false,
            barriers: Vec::new(),
            barrier_due: None,
            key_op_due: None,
            lookups: Vec::new(),
            next_hot: 0,
            cold: None,
            kicks: VecDeque::new(),
            events: VecDeque::new(),
            errs: VecDeque::new(),
            wqe_reads: VecDeque::new(),
            mr: VecDeque::new(),
            job: None,
            wire: VecDeque::new(),
            rx: VecDeque::new(),
            beats: VecDeque::new(),
            desc_taken: true,
            desc_offered: false,
            beat_offered: false,
            rsp_offered: false,
            write: None,
            held_job: None,
        };
        let mut port = pack(PORT_CFG, &[("mtu", 5), ("up", 1)]);
        port.set(PORT_CFG.field("pkey").0 + 16, 16, 0xffff);
        port.set(PORT_CFG.field("pkey").0 + 2 * 16, 16, 0x1234);
        bench.dut.set_wide("port_cfg_i", &port.0);
        bench.dut.set("enable_i", 1);
        bench.dut.set("eqe_ready_i", 1);
        // The sections are cleared after reset.
        for _ in 0..(1 << QP_IDX_W) + 8 {
            bench.cycle();
        }
        assert_eq!(bench.dut.get("free_cnt_o"), POOL);
        bench
    }

    /// Brings up a QP in RTS with its own ring, peer, and a region that covers all of host memory (key 0x100 + index, VA =
    /// address - `MEM_BASE`).
    pub fn install(&mut self, idx: u16, change: impl FnOnce(&mut Qp)) {
        let i = usize::from(idx);
        let mut qp = self.qps[i].clone();
        qp.valid = true;
        qp.state = state::RTS;
        qp.generation = idx.wrapping_mul(3) & 0x7;
        qp.epoch += 1;
        qp.send_cq = 100 + idx;
        qp.sq_base = MEM_BASE + u64::from(idx) * 8192;
        qp.sq_psn = (0xff_fff0 + u32::from(idx)) & PSN_MASK;
        change(&mut qp);
        assert!((64 << qp.stride) << qp.log_sq <= 8192);
        self.peers[i] = Peer {
            epsn: qp.sq_psn,
            ..Peer::default()
        };
        self.prod[i] = (qp.epoch, 0);
        self.cons[i] = 0;
        let key = 0x100 + u32::from(idx);
        self.regions.retain(|r| r.key != key);
        self.regions.push(Region {
            key,
            pd: qp.pd,
            access: 1,
            va: 0,
            len: MEM_SIZE as u64,
            addr: MEM_BASE,
        });
        self.events.push_back((idx, qp.epoch, qp.state, true));
        self.qps[i] = qp;
    }

    /// The gate changes a QP's state.
    pub fn set_state(&mut self, idx: u16, to: u8) {
        let qp = &mut self.qps[usize::from(idx)];
        qp.state = to;
        qp.sq_draining = to == state::SQD;
        self.events.push_back((idx, qp.epoch, to, false));
    }

    /// The QPN.
    pub fn qpn(&self, idx: u16) -> u32 {
        u32::from(self.qps[usize::from(idx)].generation) << QP_IDX_W | u32::from(idx)
    }

    /// Key of the region over all memory.
    pub fn key(&self, idx: u16) -> u32 {
        0x100 + u32::from(idx)
    }

    /// Writes a work request into the ring without telling.
    pub fn put_wqe(&mut self, idx: u16, wqe: &Wqe) {
        let i = usize::from(idx);
        let qp = &self.qps[i];
        let n = self.prod[i].1;
        let slot = u64::from(n) & ((1 << qp.log_sq) - 1);
        assert!(
            n.wrapping_sub(self.cons[i]) < 1 << qp.log_sq,
            "send queue {idx} is full"
        );
        let at = (qp.sq_base - MEM_BASE + slot * (64 << qp.stride)) as usize;
        let bytes = wqe.bytes(qp.stride);
        self.mem[at..at + bytes.len()].copy_from_slice(&bytes);
        self.prod[i].1 = n.wrapping_add(1);
    }

    /// Rings the doorbell.
    pub fn kick(&mut self, idx: u16) {
        self.kicks.push_back(idx);
    }

    /// Room in the send queue.
    pub fn room(&self, idx: u16) -> usize {
        let i = usize::from(idx);
        (1 << self.qps[i].log_sq) - usize::from(self.prod[i].1.wrapping_sub(self.cons[i]))
    }

    /// Posts a work request.
    pub fn post(&mut self, idx: u16, wqe: &Wqe) {
        self.put_wqe(idx, wqe);
        self.kick(idx);
    }

    /// A response from the peer, as it should be.
    pub fn response(&self, idx: u16, opcode: u8, psn: u32, syndrome: u8, payload: Vec<u8>) -> Response {
        Response {
            opcode,
            qpn: self.qpn(idx),
            psn: psn & PSN_MASK,
            syndrome,
            pkey: 0xffff,
            sgid: gid_v4(PEER_IP),
            gid_hit: OUR_HIT,
            payload,
            value: 0,
        }
    }

    /// Lets it arrive.
    pub fn respond(&mut self, response: Response) {
        let due = self.dut.cycles() + 1 + self.rng.below(self.manners.latency + 1);
        let due = self.rx.back().map_or(due, |(last, _)| due.max(*last));
        self.rx.push_back((due, response));
    }

    /// An ACK.
    pub fn ack(&mut self, idx: u16, psn: u32) {
        let r = self.response(idx, op::ACK, psn, 0x1f, Vec::new());
        self.respond(r);
    }

    /// A NAK (or any syndrome).
    pub fn nak(&mut self, idx: u16, psn: u32, syndrome: u8) {
        let r = self.response(idx, op::ACK, psn, syndrome, Vec::new());
        self.respond(r);
    }

    /// Bytes that the SGEs of a request name.
    pub fn gather(&self, wqe: &Wqe) -> Vec<u8> {
        wqe.inline.clone().unwrap_or_else(|| {
            wqe.sges
                .iter()
                .flat_map(|s| self.mem[s.va as usize..s.va as usize + s.len as usize].to_vec())
                .collect()
        })
    }

    /// The messages that the peer should see.
    pub fn message(&self, wqe: &Wqe) -> Message {
        let read = matches!(wqe.opcode, wr::READ | wr::CMP_SWAP | wr::FETCH_ADD);
        let with_va = read || wqe.opcode == wr::WRITE || wqe.opcode == wr::WRITE_IMM;
        let with_imm = matches!(wqe.opcode, wr::WRITE_IMM | wr::SEND_IMM | wr::SEND_INV);
        let bytes = self.gather(wqe);
        Message {
            opcode: wqe.opcode,
            len: match wqe.opcode {
                wr::CMP_SWAP | wr::FETCH_ADD => 8,
                _ if with_va => bytes.len() as u32,
                _ => 0,
            },
            bytes: if read { Vec::new() } else { bytes },
            va: if with_va { wqe.remote_va } else { 0 },
            rkey: if with_va { wqe.rkey } else { 0 },
            imm: with_imm.then_some(wqe.imm),
            se: wqe.solicited && !read && wqe.opcode != wr::WRITE,
        }
    }

    /// The peer takes a packet.
    fn peer_takes(&mut self, p: Packet) {
        let i = usize::from(p.idx);
        let idx = p.idx;
        let mtu = self.qps[i].mtu_bytes();
        let lost = self.peers[i].lose_requests;
        if self.peers[i].deaf || lost != 0 && self.rng.below(lost) == 0 {
            return;
        }
        let mut out: Vec<Response> = Vec::new();
        let npsn = if p.opcode == op::READ_REQUEST {
            (p.dma_len as usize).div_ceil(mtu).max(1) as u32
        } else {
            1
        };
        let ahead = p.psn.wrapping_sub(self.peers[i].epsn) & PSN_MASK;
        let read_data = |b: &Self, p: &Packet| -> Vec<Response> {
            (0..npsn)
                .map(|k| {
                    let at = k as usize * mtu;
                    let n = (p.dma_len as usize - at).min(mtu);
                    let data = (0..n).map(|j| remote_byte(p.va + (at + j) as u64)).collect();
                    let opcode = match (k == 0, k == npsn - 1) {
                        (true, true) => op::READ_ONLY,
                        (true, false) => op::READ_FIRST,
                        (false, true) => op::READ_LAST,
                        (false, false) => op::READ_MIDDLE,
                    };
                    b.response(idx, opcode, p.psn + k, 0x1f, data)
                })
                .collect()
        };
        if ahead != 0 && ahead < 0x80_0000 {
            if !self.peers[i].nak_sent {
                self.peers[i].nak_sent = true;
                out.push(self.response(idx, op::ACK, self.peers[i].epsn, 0x60, Vec::new()));
            }
        } else if ahead != 0 {
            if p.opcode == op::READ_REQUEST {
                out = read_data(self, &p);
            } else if matches!(p.opcode, op::CMP_SWAP | op::FETCH_ADD) {
                let value = self.peers[i].results[&p.psn];
                out.push(Response {
                    value,
                    ..self.response(idx, op::ATOMIC_ACK, p.psn, 0x1f, Vec::new())
                });
            } else {
                out.push(self.response(idx, op::ACK, self.peers[i].epsn.wrapping_sub(1), 0x1f, Vec::new()));
            }
        } else {
            let starts = matches!(
                p.opcode,
                op::SEND_FIRST
                    | op::SEND_ONLY
                    | op::SEND_ONLY_IMM
                    | op::SEND_ONLY_INV
                    | op::WRITE_FIRST
                    | op::WRITE_ONLY
                    | op::WRITE_ONLY_IMM
                    | op::READ_REQUEST
                    | op::CMP_SWAP
                    | op::FETCH_ADD
            );
            if starts && self.peers[i].rnr.0 > 0 {
                self.peers[i].rnr.0 -= 1;
                let r = self.response(idx, op::ACK, p.psn, 0x20 | self.peers[i].rnr.1, Vec::new());
                self.respond(r);
                return;
            }
            let peer = &mut self.peers[i];
            peer.nak_sent = false;
            peer.epsn = (peer.epsn + npsn) & PSN_MASK;
            let (first, last) = match p.opcode {
                op::SEND_FIRST | op::WRITE_FIRST => (true, false),
                op::SEND_MIDDLE | op::WRITE_MIDDLE => (false, false),
                op::SEND_LAST | op::SEND_LAST_IMM | op::SEND_LAST_INV | op::WRITE_LAST | op::WRITE_LAST_IMM => {
                    (false, true)
                }
                op::SEND_ONLY
                | op::SEND_ONLY_IMM
                | op::SEND_ONLY_INV
                | op::WRITE_ONLY
                | op::WRITE_ONLY_IMM
                | op::READ_REQUEST
                | op::CMP_SWAP
                | op::FETCH_ADD => (true, true),
                other => panic!("a request with opcode {other:#x}"),
            };
            let imm = matches!(
                p.opcode,
                op::SEND_LAST_IMM | op::SEND_ONLY_IMM | op::WRITE_LAST_IMM | op::WRITE_ONLY_IMM
            );
            let inv = matches!(p.opcode, op::SEND_LAST_INV | op::SEND_ONLY_INV);
            let send = p.opcode <= op::SEND_ONLY_IMM || inv;
            let read = p.opcode == op::READ_REQUEST;
            let atomic = matches!(p.opcode, op::CMP_SWAP | op::FETCH_ADD);
            assert_eq!(peer.part.is_none(), first, "opcode {:#x} out of sequence", p.opcode);
            if !last {
                assert_eq!(p.payload.len(), mtu, "a packet that is not the last");
            }
            assert!(p.payload.len() <= mtu && (first || !p.payload.is_empty()));
            let mut m = peer.part.take().unwrap_or(Message {
                opcode: if read {
                    wr::READ
                } else if atomic {
                    p.opcode - op::CMP_SWAP + wr::CMP_SWAP
                } else if send {
                    wr::SEND
                } else {
                    wr::WRITE
                },
                bytes: Vec::new(),
                va: if send { 0 } else { p.va },
                rkey: if send { 0 } else { p.rkey },
                len: if send {
                    0
                } else if atomic {
                    8
                } else {
                    p.dma_len
                },
                imm: None,
                se: false,
            });
            assert_eq!(
                m.opcode == wr::SEND,
                send,
                "opcode {:#x} within another message",
                p.opcode
            );
            m.bytes.extend_from_slice(&p.payload);
            if last {
                if inv {
                    m.imm = Some(p.rkey);
                    m.opcode = wr::SEND_INV;
                }
                if imm {
                    m.imm = Some(p.imm);
                    m.opcode = if send { wr::SEND_IMM } else { wr::WRITE_IMM };
                }
                m.se = p.se;
                assert!(p.ack_req, "the last packet of a message asks for an acknowledge");
                peer.messages.push(m);
            } else {
                assert!(!p.se);
                peer.part = Some(m);
            }
            if read {
                out = read_data(self, &p);
            } else if atomic {
                // What the memory holds is told by its address; that it is told once, by this table.
                let peer = &mut self.peers[i];
                let value = *peer.memory.entry(p.va).or_insert(p.va);
                let new = match p.opcode {
                    op::CMP_SWAP if value == p.compare => p.swap_add,
                    op::CMP_SWAP => value,
                    _ => value.wrapping_add(p.swap_add),
                };
                peer.memory.insert(p.va, new);
                peer.results.insert(p.psn, value);
                out.push(Response {
                    value,
                    ..self.response(idx, op::ATOMIC_ACK, p.psn, 0x1f, Vec::new())
                });
            } else if p.ack_req {
                out.push(self.response(idx, op::ACK, p.psn, 0x1f, Vec::new()));
            }
        }
        for r in out {
            let lost = self.peers[i].lose_responses;
            if lost == 0 || self.rng.below(lost) != 0 {
                self.respond(r);
            }
        }
    }

    fn note(&mut self, effect: Effect) {
        self.effects.push((self.dut.cycles(), effect));
    }

    /// One cycle.
    pub fn cycle(&mut self) {
        let now = self.dut.cycles();
        self.looks
            .drive(&mut self.dut, self.manners.latency != 0, self.qps.len() as u64);
        // ---- control table, indices, events
        let hot = self.qps[self.next_hot].hot();
        self.dut.set_wide("hot_i", &hot.0);
        let (epoch, val) = self.prod[self.next_hot];
        self.dut.set_wide(
            "sq_prod_i",
            &pack(POS, &[("epoch", u64::from(epoch)), ("val", u64::from(val))]).0,
        );
        let cold_rsp = self.cold.filter(|(due, _)| *due <= now);
        self.dut.set("cold_rsp_valid_i", u64::from(cold_rsp.is_some()));
        if let Some((_, idx)) = cold_rsp {
            self.dut.set_wide("cold_rsp_i", &self.qps[idx].ctx().0);
            self.cold = None;
        }
        let cold_ready = self.cold.is_none() && self.rng.chance(self.manners.ready);
        self.dut.set("cold_req_ready_i", u64::from(cold_ready));
        let kick = self.kicks.pop_front();
        self.dut.set("sq_kick_valid_i", u64::from(kick.is_some()));
        self.dut.set("sq_kick_idx_i", u64::from(kick.unwrap_or(0)));
        let err = self.errs.front().filter(|(due, ..)| *due <= now).copied();
        if let Some((_, idx, epoch)) = err {
            self.errs.pop_front();
            let qp = &self.qps[usize::from(idx)];
            if qp.epoch == epoch && qp.valid && qp.state != state::ERR {
                self.set_state(idx, state::ERR);
            }
        }
        let evt = self.events.pop_front();
        self.dut.set("qp_evt_valid_i", u64::from(evt.is_some()));
        if let Some((idx, epoch, st, new_life)) = evt {
            let bits = pack(
                EVT,
                &[
                    ("idx", idx.into()),
                    ("epoch", epoch.into()),
                    ("state", st.into()),
                    ("new_life", new_life.into()),
                ],
            );
            self.dut.set_wide("qp_evt_i", &bits.0);
        }
        // ---- WQE reads
        if !self.rsp_offered {
            let due = self.wqe_reads.front().is_some_and(|r| r.due <= now);
            self.rsp_offered = due && self.rng.chance(self.manners.valid);
        }
        self.dut.set("rd_rsp_valid_i", u64::from(self.rsp_offered));
        if let Some(r) = self.wqe_reads.front().filter(|_| self.rsp_offered) {
            let n = self.bytes.min(r.data.len());
            let last = r.data.len() == n;
            let ctl = pack(
                RD_CTL,
                &[("last", last.into()), ("err", if last { r.err.into() } else { 0 })],
            );
            let data = words(&r.data[..n]);
            self.dut.set_wide("rd_rsp_data_i", &data);
            self.dut.set_wide("rd_rsp_ctl_i", &ctl.0);
        }
        let rd_ready = self.rng.chance(self.manners.ready);
        self.dut.set("rd_req_ready_i", u64::from(rd_ready));
        // ---- keys
        let mr = self.mr.front().filter(|(due, ..)| *due <= now).copied();
        self.dut.set("mr_rsp_valid_i", u64::from(mr.is_some()));
        if let Some((_, err, addr)) = mr {
            self.mr.pop_front();
            let bits = pack(
                MR_RSP,
                &[("err", err.into()), ("room", self.room_at(addr)), ("addr", addr)],
            );
            self.dut.set_wide("mr_rsp_i", &bits.0);
        }
        let mr_ready = self.rng.chance(self.manners.ready);
        self.dut.set("mr_req_ready_i", u64::from(mr_ready));
        let op_done = self.key_op_due.is_some_and(|due| due <= now);
        self.dut.set("mr_op_done_i", u64::from(op_done));
        self.dut.set("mr_op_err_i", u64::from(self.key_op_err));
        if op_done {
            self.key_op_due = None;
        }
        // ---- the responder's barrier
        if self.barrier_due.is_some_and(|due| due <= now && !self.hold_barrier) {
            self.barrier_due = None;
        }
        self.dut.set("inv_busy_i", u64::from(self.barrier_due.is_some()));
        // ---- transmitter
        let ready = self.rng.chance(self.manners.ready) && !self.stall_tx;
        let job_ready = ready && self.job.is_none() && self.wire.len() < 8;
        self.dut.set("tx_job_ready_i", u64::from(job_ready));
        let piece_ready = self.rng.chance(self.manners.ready) && !self.stall_tx && self.job.is_some();
        self.dut.set("tx_piece_ready_i", u64::from(piece_ready));
        let sent = self
            .wire
            .front()
            .is_some_and(|(due, _)| *due <= now)
            .then(|| self.wire.pop_front())
            .flatten();
        self.dut.set("tx_done_i", u64::from(sent.is_some()));
        self.dut.set("tx_err_valid_i", 0);
        if let Some((_, p)) = sent {
            if let Some(n) = self.bad_tx.iter().position(|b| *b == (p.idx, p.psn)) {
                self.bad_tx.swap_remove(n);
                let bits = pack(TX_ERR, &[("qp_idx", p.idx.into()), ("psn", p.psn.into()), ("err", 3)]);
                self.dut.set("tx_err_valid_i", 1);
                self.dut.set_wide("tx_err_i", &bits.0);
            } else {
                self.note(Effect::Tx(p.clone()));
                self.peer_takes(p);
            }
        }
        // ---- responses
        if !self.desc_offered && self.desc_taken && self.rx.front().is_some_and(|(due, _)| *due <= now) {
            self.desc_taken = false;
            let (_, r) = &self.rx[0];
            let bits = pack(
                RX_DESC,
                &[
                    ("opcode", r.opcode.into()),
                    ("pkey", r.pkey.into()),
                    ("dest_qpn", r.qpn.into()),
                    ("psn", r.psn.into()),
                    ("gid_hit", r.gid_hit.into()),
                    sgid_fields(&r.sgid)[0],
                    sgid_fields(&r.sgid)[1],
                    ("payload_len", r.payload.len() as u64),
                    ("syndrome", r.syndrome.into()),
                    ("swap_add", r.value),
                ],
            );
            let n = r.payload.len().div_ceil(self.bytes);
            for (k, beat) in r.payload.chunks(self.bytes).enumerate() {
                self.beats.push_back((beat.to_vec(), k == n - 1));
            }
            self.dut.set_wide("rx_desc_i", &bits.0);
        }
        if !self.desc_taken && !self.desc_offered {
            self.desc_offered = self.rng.chance(self.manners.valid);
        }
        self.dut.set("rx_desc_valid_i", u64::from(self.desc_offered));
        if !self.beat_offered && !self.beats.is_empty() {
            self.beat_offered = self.rng.chance(self.manners.valid);
        }
        self.dut.set("rx_pay_valid_i", u64::from(self.beat_offered));
        if let Some((data, last)) = self.beats.front().filter(|_| self.beat_offered) {
            let (data, last) = (words(data), *last);
            self.dut.set_wide("rx_pay_data_i", &data);
            self.dut.set("rx_pay_last_i", u64::from(last));
        }
        let wr_ready = self.rng.chance(self.manners.ready) && !self.stall_writes;
        self.dut.set("wr_ready_i", u64::from(wr_ready));
        let cqe_ready = self.rng.chance(self.manners.ready);
        self.dut.set("cqe_ready_i", u64::from(cqe_ready));
        self.dut.eval();

        // ================ what is handed over in this cycle
        let look = (self.dut.get("diag_done_o") == 1).then(|| self.dut.get("diag_data_o"));
        self.looks.see(look);
        self.next_hot = self.dut.get("hot_idx_o") as usize;
        if cold_ready && self.dut.get("cold_req_valid_o") == 1 {
            let idx = self.dut.get("cold_req_idx_o") as usize;
            let due = now + 1 + self.rng.below(self.manners.latency / 8 + 1);
            self.cold = Some((due, idx));
        }
        if self.rsp_offered && self.dut.get("rd_rsp_ready_o") == 1 {
            self.rsp_offered = false;
            let n = self.bytes.min(self.wqe_reads[0].data.len());
            self.wqe_reads[0].data.drain(..n);
            if self.wqe_reads[0].data.is_empty() {
                self.wqe_reads.pop_front();
            }
        }
        if rd_ready && self.dut.get("rd_req_valid_o") == 1 {
            let w = self.dut.get_wide("rd_req_o");
            let (addr, len) = (field(RD_REQ, &w, "addr"), field(RD_REQ, &w, "len") as usize);
            self.check_wqe_read(addr, len);
            self.reads.push((addr, len));
            let at = (addr - MEM_BASE) as usize;
            let err = self
                .bad_reads
                .iter()
                .find(|(r, _)| r.start < addr + len as u64 && addr < r.end)
                .map_or(0, |b| b.1);
            let mut data = self.mem[at..at + len].to_vec();
            if err != 0 {
                data.fill(0xee);
            }
            let due = now + 1 + self.slow_reads + self.rng.below(self.manners.latency + 1);
            self.wqe_reads.push_back(Read { due, data, err });
        }
        let mr_valid = self.dut.get("mr_req_valid_o");
        assert_eq!(mr_valid & 2, 0);
        if mr_ready && mr_valid & 1 == 1 {
            let w = self.dut.get_wide("mr_req_o");
            let (key, va) = (field(MR_REQ, &w, "key") as u32, field(MR_REQ, &w, "va"));
            let (len, pd) = (field(MR_REQ, &w, "len") as u32, field(MR_REQ, &w, "pd") as u16);
            let access = field(MR_REQ, &w, "access") as u8;
            assert!(len != 0, "a look-up of length 0");
            self.lookups.push((key, va, len, access));
            let (err, addr) = match self.regions.iter().find(|r| r.key == key) {
                None => (1, 0),
                Some(r) if r.pd != pd => (2, 0),
                Some(r) if r.access & access != access => (3, 0),
                Some(r) if va < r.va || va - r.va + u64::from(len) > r.len => (4, 0),
                Some(r) if self.paged => (0, (r.addr + (va - r.va)) ^ 0x1000),
                Some(r) => (0, r.addr + (va - r.va)),
            };
            self.mr.push_back((now + 2, err, addr));
        }
        if self.dut.get("mr_op_valid_o") == 1 && self.key_op_due.is_none() && !op_done {
            let w = self.dut.get_wide("mr_op_o");
            let f = |name| field(MR_OP, &w, name);
            self.key_ops.push(KeyOp {
                op: f("op") as u8,
                key: f("key") as u32,
                pd: f("pd") as u16,
                qpn: f("qpn") as u32,
                access: f("access") as u8,
                va: f("va"),
                length: f("length"),
                host_addr: f("host_addr"),
                log_page: f("log_page") as u8,
                page_offset: f("page_offset") as u32,
                lkey: f("lkey") as u32,
            });
            self.key_op_due = Some(now + 1 + self.rng.below(8));
        }
        if self.dut.get("inv_mark_o") == 1 {
            assert!(self.barrier_due.is_none(), "one barrier at a time");
            self.barriers
                .push(self.key_ops.len() - usize::from(self.key_op_due.is_some()));
            self.barrier_due = Some(now + 1 + self.rng.below(60));
        }
        self.transmit(now, job_ready, piece_ready);
        if self.desc_offered && self.dut.get("rx_desc_ready_o") == 1 {
            self.desc_offered = false;
            self.desc_taken = true;
            self.rx.pop_front();
        }
        if self.beat_offered && self.dut.get("rx_pay_ready_o") == 1 {
            self.beat_offered = false;
            self.beats.pop_front();
        }
        if wr_ready && self.dut.get("wr_valid_o") == 1 {
            let w = self.dut.get_wide("wr_hdr_o");
            let (addr, len) = (field(WR_HDR, &w, "addr"), field(WR_HDR, &w, "len") as usize);
            assert!((1..=4096).contains(&len));
            let data = self.dut.get_wide("wr_data_o");
            let (a, l, mut got) = self.write.take().unwrap_or((addr, len, Vec::new()));
            assert_eq!((a, l), (addr, len), "the header stands beside every beat");
            let n = self.bytes.min(len - got.len());
            got.extend((0..n).map(|k| (data[k / 4] >> (8 * (k % 4))) as u8));
            let last = self.dut.get("wr_last_o") == 1;
            assert_eq!(last, got.len() == len, "last beat of a write");
            if last {
                let at = self.payload_at(addr, len);
                self.mem[at..at + len].copy_from_slice(&got);
                self.note(Effect::Write { addr, len });
            } else {
                self.write = Some((addr, len, got));
            }
        }
        if self.dut.get("sq_cons_we_o") == 1 {
            let w = self.dut.get_wide("sq_cons_o");
            let get = |f| field(POS_WR, &w, f) as u16;
            let (idx, epoch, val) = (get("idx"), get("epoch"), get("val"));
            let i = usize::from(idx);
            // What a visit was doing when the life ended: the doorbell block ignores it by its epoch.
            let over = epoch.wrapping_add(1) == self.qps[i].epoch && self.qps[i].state == state::RESET;
            assert!(epoch == self.qps[i].epoch || over, "consumer index of life {epoch}");
            assert_eq!(val, self.cons[i].wrapping_add(1), "consumer index of QP {idx}");
            assert!(self.prod[i].1.wrapping_sub(val) <= 1 << self.qps[i].log_sq);
            self.cons[i] = val;
            self.note(Effect::Cons { idx, epoch, val });
        }
        if cqe_ready && self.dut.get("cqe_valid_o") == 1 {
            let w = self.dut.get_wide("cqe_o");
            let get = |f| field(CQE, &w, f);
            let cqe = Cqe {
                cqn: get("cqn") as u16,
                idx: get("qp_idx") as u16,
                epoch: get("epoch") as u16,
                solicited: get("solicited") == 1,
                qpn: get("qpn") as u32,
                opcode: get("opcode") as u8,
                wqe_index: get("wqe_index") as u16,
                status: get("status") as u8,
                byte_len: get("byte_len") as u32,
                vendor_err: get("vendor_err") as u8,
            };
            let i = usize::from(cqe.idx);
            assert_eq!((cqe.cqn, cqe.qpn), (self.qps[i].send_cq, self.qpn(cqe.idx)));
            if cqe.epoch == self.qps[i].epoch {
                let gone = self.cons[i].wrapping_sub(cqe.wqe_index);
                assert!(
                    (1..0x8000).contains(&gone),
                    "the consumer index is published before the completion"
                );
            }
            self.note(Effect::Cqe(cqe));
        }
        if self.dut.get("qp_err_valid_o") == 1 {
            let w = self.dut.get_wide("qp_err_o");
            let (idx, epoch) = (field(QP_ERR, &w, "idx") as u16, field(QP_ERR, &w, "epoch") as u16);
            let to_sqe = field(QP_ERR, &w, "to_sqe") == 1;
            self.note(Effect::Err { idx, epoch, to_sqe });
            if let Some(after) = self.err_after {
                self.errs.push_back((now + after, idx, epoch));
            }
        }
        if self.dut.get("sq_drained_valid_o") == 1 {
            let (idx, epoch) = (
                self.dut.get("sq_drained_idx_o") as u16,
                self.dut.get("sq_drained_epoch_o") as u16,
            );
            self.note(Effect::Drained { idx, epoch });
            let qp = &mut self.qps[usize::from(idx)];
            if qp.epoch == epoch {
                qp.sq_draining = false;
            }
        }
        assert_eq!(self.dut.get("eqe_valid_o"), 0);
        let pulses = self.dut.get_wide("cnt_o");
        for (n, c) in self.counters.iter_mut().enumerate() {
            *c += u64::from(pulses[n / 32] >> (n % 32) & 1);
        }
        self.dut.clock();
    }

    /// WQEs are read whole (of one of 1024 bytes a response needs no more than 512), and never beyond the producer index or before
    /// the oldest.
    fn check_wqe_read(&self, addr: u64, len: usize) {
        let found = self.qps.iter().enumerate().any(|(i, qp)| {
            let stride = 64u64 << qp.stride;
            let whole = len as u64 == stride || (len == 512 && stride == 1024);
            if !qp.valid || !whole || addr < qp.sq_base || addr >= qp.sq_base + (stride << qp.log_sq) {
                return false;
            }
            let slot = (addr - qp.sq_base) / stride;
            let mask = (1u16 << qp.log_sq) - 1;
            // A read may still be under way when its WQE has been flushed or has failed: the old life is judged leniently.
            let ahead = (slot as u16).wrapping_sub(self.cons[i]) & mask;
            (addr - qp.sq_base).is_multiple_of(stride) && ahead < self.prod[i].1.wrapping_sub(self.cons[i])
        });
        assert!(found, "read of {len} bytes at {addr:#x}: no posted WQE");
    }

    fn transmit(&mut self, now: u64, job_ready: bool, piece_ready: bool) {
        let job_valid = self.dut.get("tx_job_valid_o") == 1;
        if job_valid {
            let w = self.dut.get_wide("tx_job_o");
            if let Some(held) = &self.held_job {
                assert_eq!(*held, w, "a job that waits does not change");
            }
            self.held_job = Some(w.clone());
            if job_ready {
                self.held_job = None;
                let get = |f| field(TX_JOB, &w, f);
                let p = Packet {
                    idx: get("qp_idx") as u16,
                    opcode: get("opcode") as u8,
                    se: get("se") == 1,
                    ack_req: get("ack_req") == 1,
                    psn: get("psn") as u32,
                    va: get("va"),
                    rkey: get("rkey") as u32,
                    dma_len: get("dma_len") as u32,
                    imm: get("imm") as u32,
                    swap_add: get("swap_add"),
                    compare: get("compare"),
                    payload: Vec::new(),
                };
                self.job = Some((p, get("payload_len") as usize));
            }
        } else {
            assert!(self.held_job.is_none(), "a job was withdrawn");
        }
        if piece_ready && self.dut.get("tx_piece_valid_o") == 1 {
            let w = self.dut.get_wide("tx_piece_o");
            let len = field(TX_PIECE, &w, "len") as usize;
            let (p, total) = self.job.as_mut().unwrap_or_else(|| panic!("a piece without a job"));
            assert!(len >= 1 && p.payload.len() + len <= *total, "pieces of {p:?}");
            if field(TX_PIECE, &w, "is_inline") == 1 {
                assert!(len <= self.bytes);
                let data = self.dut.get_wide("tx_piece_data_o");
                p.payload.extend((0..len).map(|k| (data[k / 4] >> (8 * (k % 4))) as u8));
            } else {
                let addr = field(TX_PIECE, &w, "addr");
                let room = if self.paged { 0x1000 - addr % 0x1000 } else { 0x1000 };
                assert!(len as u64 <= room, "{len} bytes at {addr:#x} go beyond their page");
                let at = (if self.paged { addr ^ 0x1000 } else { addr } - MEM_BASE) as usize;
                p.payload.extend_from_slice(&self.mem[at..at + len]);
            }
        }
        if self.job.as_ref().is_some_and(|(p, total)| p.payload.len() == *total) {
            let (p, _) = self.job.take().unwrap_or_else(|| unreachable!());
            let due = now + 2 + self.rng.below(self.manners.latency + 1);
            let due = self.wire.back().map_or(due, |(last, _)| due.max(last + 1));
            self.wire.push_back((due, p));
        }
    }

    /// Bytes that follow each other from a bus address on, as a key look-up tells them.
    fn room_at(&self, addr: u64) -> u64 {
        if self.paged { 0x1000 - addr % 0x1000 } else { 0x1000 }
    }

    /// Place in memory of payload of `len` bytes at a bus address.
    fn payload_at(&self, addr: u64, len: usize) -> usize {
        assert!(
            len as u64 <= self.room_at(addr),
            "{len} bytes at {addr:#x} go beyond their page"
        );
        (if self.paged { addr ^ 0x1000 } else { addr } - MEM_BASE) as usize
    }

    /// Cycles until something is true.
    pub fn until(&mut self, what: &str, budget: u64, mut done: impl FnMut(&Self) -> bool) {
        for _ in 0..budget {
            if done(self) {
                return;
            }
            self.cycle();
        }
        panic!("after {budget} cycles: {what}");
    }

    /// That many cycles.
    pub fn run(&mut self, cycles: u64) {
        for _ in 0..cycles {
            self.cycle();
        }
    }

    /// Completions of a QP so far.
    pub fn cqes(&self, idx: u16) -> Vec<Cqe> {
        self.effects
            .iter()
            .filter_map(|(_, e)| match e {
                Effect::Cqe(c) if c.idx == idx => Some(c.clone()),
                _ => None,
            })
            .collect()
    }

    /// Packets of a QP so far.
    pub fn sent(&self, idx: u16) -> Vec<Packet> {
        self.effects
            .iter()
            .filter_map(|(_, e)| match e {
                Effect::Tx(p) if p.idx == idx => Some(p.clone()),
                _ => None,
            })
            .collect()
    }

    /// All WQEs of all QPs in `of` are consumed.
    pub fn all_done(&self, of: &[u16]) -> bool {
        of.iter()
            .all(|q| self.cons[usize::from(*q)] == self.prod[usize::from(*q)].1)
    }

    /// Until all WQEs are consumed and everything is quiet; then the pool must be whole.
    pub fn settle(&mut self, of: &[u16], budget: u64) {
        self.until("all work requests complete", budget, |b| b.all_done(of));
        self.quiet();
    }

    /// Lets the last completions and writes out, and checks that no record is lost.
    pub fn quiet(&mut self) {
        // What was sent twice is answered twice: let that arrive as well.
        let silent = |b: &Self| b.wire.is_empty() && b.rx.is_empty() && b.beats.is_empty() && b.write.is_none();
        for _ in 0..100 {
            self.run(400 + 4 * self.manners.latency);
            if silent(self) {
                break;
            }
        }
        assert!(silent(self), "it never becomes quiet");
        assert_eq!(self.dut.get("free_cnt_o"), POOL, "records of the pool");
    }

    /// Free records.
    pub fn free_records(&self) -> u64 {
        self.dut.get("free_cnt_o")
    }

    /// As [`settle`](Self::settle), while other QPs still have records.
    pub fn settle_others(&mut self, of: &[u16], budget: u64) {
        self.until("their work requests complete", budget, |b| b.all_done(of));
        self.run(200);
    }

    /// Poisons the buffers (above the rings), so that every byte that is written shows.
    pub fn install_guard(&mut self) {
        for b in self.mem[MEM_SIZE / 2..].chunks_mut(8) {
            b.copy_from_slice(&self.rng.bits().to_le_bytes()[..b.len()]);
        }
    }

    /// A work request opcode.
    pub fn rng_opcode(&mut self) -> u8 {
        const KINDS: [u8; 8] = [
            wr::SEND,
            wr::SEND_IMM,
            wr::WRITE,
            wr::WRITE_IMM,
            wr::READ,
            wr::CMP_SWAP,
            wr::FETCH_ADD,
            wr::SEND_INV,
        ];
        KINDS[self.rng.below(8) as usize]
    }
}
