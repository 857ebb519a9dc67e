// SPDX-License-Identifier: Apache-2.0
//! The responder (`rnic_recv`) on a bench: its control table, receive queues, host memory, memory keys, transmitter and a
//! requester are played here. Made for tests: a broken contract panics. Numbers (opcodes, statuses, syndromes) are
//! written out from the standard, not taken from the generated ones.

use std::collections::VecDeque;

use openrnic_sim::model::BlockModel;
use openrnic_sim::rng::Stream;

use crate::looks::Looks;
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
const MR_INV: Layout = Layout(&[("key", 32), ("pd", 16), ("qpn", 24)]);
const MR_REQ: Layout = Layout(&[
    ("key", 32),
    ("va", 64),
    ("len", 32),
    ("pd", 16),
    ("qpn", 24),
    ("access", 4),
    ("judge", 1),
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
const EQE: Layout = Layout(&[("eqn", 8), ("event_type", 8), ("number", 32)]);
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
/// READ slots per QP.
pub const MAX_RD: usize = 4;
/// First address of host memory.
pub const MEM_BASE: u64 = 0x1_0000_0000;
/// Its bytes.
pub const MEM_SIZE: usize = 1 << 20;
/// Our address is entry 2 of the GID table (and entry 9 as well).
pub const OUR_HIT: u16 = 1 << 2 | 1 << 9;
/// The peer's address.
pub const PEER_IP: u32 = 0x0a00_0002;
/// Event types.
#[allow(missing_docs)]
pub mod event {
    pub const QP_FATAL: u8 = 1;
    pub const QP_REQ_ERR: u8 = 2;
    pub const QP_ACCESS_ERR: u8 = 3;
    pub const COMM_EST: u8 = 4;
    pub const SRQ_LIMIT_REACHED: u8 = 15;
    pub const QP_LAST_WQE_REACHED: u8 = 16;
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
    pub const RX_DUPLICATES: usize = 22;
    pub const RX_OUT_OF_SEQUENCE: usize = 23;
}

fn get(layout: Layout, bits: &Bits, field: &str) -> u64 {
    let (lsb, width) = layout.field(field);
    bits.get(lsb, width)
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

/// Element `n` of a packed array of structures at a port.
fn element(words: &[u32], layout: Layout, n: u32) -> Bits {
    let all = Bits(words.to_vec());
    let mut one = Bits::new(layout.width());
    for i in 0..layout.width() {
        one.set(i, 1, all.get(n * layout.width() + i, 1));
    }
    one
}

/// What the responder reads of a QP's control section.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct Qp {
    pub valid: bool,
    pub state: u8,
    pub qp_type: u8,
    pub has_srq: bool,
    /// Access flags as in verbs: 2 remote write, 4 remote read.
    pub access: u8,
    pub mtu: u8,
    pub log_rq: u8,
    pub generation: u16,
    pub epoch: u16,
    pub pd: u16,
    pub recv_cq: u16,
    pub srq: u16,
    pub log_rq_stride: u8,
    pub rq_base: u64,
    pub pkey_index: u16,
    pub rq_psn: u32,
    pub min_rnr_timer: u8,
    pub max_dest_rd_atomic: u8,
    pub dgid: [u8; 16],
    pub sgid_index: u8,
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
                ("has_srq", u64::from(self.has_srq)),
                ("access", u64::from(self.access >> 1)),
                ("mtu", u64::from(self.mtu)),
                ("log_rq", u64::from(self.log_rq)),
                ("gen", u64::from(self.generation)),
                ("epoch", u64::from(self.epoch)),
            ],
        )
    }

    fn ctx(&self) -> Bits {
        let create = pack(
            CREATE,
            &[
                ("pd", u64::from(self.pd)),
                ("recv_cq", u64::from(self.recv_cq)),
                ("srq", u64::from(self.srq)),
                ("log_rq_stride", u64::from(self.log_rq_stride)),
                ("rq_base", self.rq_base),
            ],
        );
        let mut path = pack(
            PATH,
            &[
                ("pkey_index", u64::from(self.pkey_index)),
                ("rq_psn", u64::from(self.rq_psn)),
                ("min_rnr_timer", u64::from(self.min_rnr_timer)),
                ("max_dest_rd_atomic", u64::from(self.max_dest_rd_atomic)),
                ("sgid_index", u64::from(self.sgid_index)),
            ],
        );
        path.set_bytes(PATH.field("dgid").0, &self.dgid);
        let mut all = Bits::new(HOT.width() + CREATE.width() + PATH.width());
        all.put(0, PATH.width(), &path);
        all.put(PATH.width(), CREATE.width(), &create);
        all.put(PATH.width() + CREATE.width(), HOT.width(), &self.hot());
        all
    }
}

/// IPv4-mapped GID.
pub fn gid_v4(ip: u32) -> [u8; 16] {
    let mut gid = [0; 16];
    gid[10] = 0xff;
    gid[11] = 0xff;
    gid[12..].copy_from_slice(&ip.to_be_bytes());
    gid
}

/// A registered region.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct Region {
    pub key: u32,
    pub pd: u16,
    pub access: u8,
    pub va: u64,
    pub len: u64,
    pub addr: u64,
}

/// A scatter element of a receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Sge {
    pub addr: u64,
    pub len: u32,
    pub lkey: u32,
}

/// A request packet, as the parser hands it over.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Packet {
    pub opcode: u8,
    pub se: bool,
    pub ack_req: bool,
    pub pkey: u16,
    pub dest_qpn: u32,
    pub psn: u32,
    /// Source address; of IPv4 as a mapped GID.
    pub sgid: [u8; 16],
    /// Entries of the GID table that hold the destination address.
    pub gid_hit: u16,
    pub payload: Vec<u8>,
    pub va: u64,
    pub rkey: u32,
    pub dma_len: u32,
    pub imm: u32,
    pub swap_add: u64,
    pub compare: u64,
}

/// What the responder did, in the order in which it did it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Effect {
    /// A write message was accepted whole.
    Write {
        addr: u64,
        len: usize,
    },
    /// Consumer index published.
    Cons {
        idx: u16,
        epoch: u16,
        val: u16,
    },
    Cqe(Cqe),
    Event {
        event: u8,
        number: u32,
    },
    /// Acknowledge or READ response handed over; `pieces` are bus addresses and lengths.
    Tx(Tx),
    /// A key was invalidated, or could not be (as `mr_err_e`).
    Inv {
        key: u32,
        err: u8,
    },
    /// ERR asked for.
    Err {
        idx: u16,
        epoch: u16,
    },
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
    pub with_imm: bool,
    pub with_inv: bool,
    pub byte_len: u32,
    pub imm: u32,
    pub vendor_err: u8,
}

/// A packet handed to the transmitter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Tx {
    pub idx: u16,
    pub opcode: u8,
    pub psn: u32,
    pub syndrome: u8,
    pub msn: u32,
    pub len: usize,
    pub pieces: Vec<(u64, usize)>,
    /// Result of an atomic.
    pub value: u64,
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
        latency: 40,
    };
}

struct Answer<T> {
    due: u64,
    what: T,
}

struct Read {
    due: u64,
    data: Vec<u8>,
    err: u8,
}

/// The bench.
pub struct RecvBench {
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
    /// Producer indices of the receive queues.
    pub prod: Vec<(u16, u16)>,
    /// Registered regions.
    pub regions: Vec<Region>,
    /// Keys of them that a peer may invalidate.
    pub fast_reg: Vec<u32>,
    /// Host memory.
    pub mem: Vec<u8>,
    /// Addresses whose reads fail, and how.
    pub bad_reads: Vec<(std::ops::Range<u64>, u8)>,
    /// READ response payloads that fail: QP index, PSN.
    pub bad_tx: Vec<(u16, u32)>,
    /// What was done so far, with the cycle.
    pub effects: Vec<(u64, Effect)>,
    /// Counters.
    pub counters: Vec<u64>,
    /// Requests for ERR are granted after this many cycles; none: never.
    pub err_after: Option<u64>,
    /// The write client takes nothing.
    pub stall_writes: bool,
    /// The transmitter takes no piece and no job.
    pub stall_tx: bool,
    /// The transmitter takes jobs and pieces and finishes none.
    pub hold_tx: bool,
    /// The completion writer takes nothing.
    pub stall_cqe: bool,
    /// Payload reads seen: address, bytes.
    pub wqe_reads: Vec<(u64, usize)>,
    /// The pages of the regions do not follow each other: page n of bus addresses lies where page n ^ 1 would.
    pub paged: bool,
    /// No page list can be read.
    pub list_err: bool,
    /// Key lookups seen: port, key, va, length.
    pub lookups: Vec<(usize, u32, u64, u32)>,
    rx: VecDeque<Packet>,
    beats: VecDeque<(Vec<u8>, bool)>,
    desc_offered: bool,
    beat_offered: bool,
    hot_seen: [u16; 2],
    prod_seen: u16,
    cold: [Option<Answer<u16>>; 2],
    mr: [VecDeque<Answer<Bits>>; 2],
    inv: Option<Answer<()>>,
    reads: VecDeque<Read>,
    read_offered: bool,
    write: Option<(Bits, Vec<u8>)>,
    tx_open: Option<Tx>,
    tx_under_way: VecDeque<(u64, u16, u32, bool)>,
    events: VecDeque<(u16, u16, u8, bool, bool)>,
    kicks: VecDeque<u16>,
    pending_err: Vec<Answer<(u16, u16)>>,
    last_busy: u64,
}

impl RecvBench {
    /// Builds the block for a data width and resets it.
    ///
    /// # Panics
    /// When it does not build or a port is laid out otherwise.
    pub fn new(width: usize, seed: u64) -> Self {
        Self::with(width, seed, None)
    }

    /// The same, with another number of shared receive queues.
    ///
    /// # Panics
    /// As `new`.
    pub fn with(width: usize, seed: u64, srqs: Option<u32>) -> Self {
        let mut builder = BlockModel::builder("rnic_recv")
            .param("DataW", width)
            .param("QpIdxW", QP_IDX_W)
            .param("MaxRd", MAX_RD)
            .random_init(seed);
        if let Some(srqs) = srqs {
            builder = builder.param("NumSrq", srqs);
        }
        // Features can be cut out to see a test turn red: OPENRNIC_CUT=RNIC_CUT_RECV_PSN.
        if let Ok(cut) = std::env::var("OPENRNIC_CUT") {
            builder = builder.define(&cut);
        }
        let mut dut = builder.build().unwrap_or_else(|e| panic!("{e}"));
        for (port, width) in [
            ("rx_desc_i", RX_DESC.width()),
            ("hot_i", 2 * HOT.width()),
            ("cold_rsp_i", HOT.width() + CREATE.width() + PATH.width()),
            ("qp_evt_i", EVT.width()),
            ("rq_prod_i", POS.width()),
            ("rq_cons_o", POS_WR.width()),
            ("tx_job_o", TX_JOB.width()),
            ("tx_piece_o", TX_PIECE.width()),
            ("tx_err_i", TX_ERR.width()),
            ("rd_req_o", RD_REQ.width()),
            ("rd_rsp_ctl_i", RD_CTL.width()),
            ("wr_hdr_o", WR_HDR.width()),
            ("mr_req_o", 2 * MR_REQ.width()),
            ("mr_rsp_i", MR_RSP.width()),
            ("mr_inv_o", MR_INV.width()),
            ("cqe_o", CQE.width()),
            ("eqe_o", EQE.width()),
            ("qp_err_o", QP_ERR.width()),
            ("port_cfg_i", PORT_CFG.width()),
        ] {
            let built = dut.ports().iter().find(|p| p.name == port).map(|p| p.width);
            assert_eq!(built, Some(width), "{port} is laid out otherwise in rnic_pkg");
        }
        let mut rng = Stream::new(seed, "recv bench", width as u64);
        let mut cfg = pack(PORT_CFG, &[("up", 1)]);
        let pkeys = [0xffff_u16, 0x8123, 0x0456, 0, 0, 0, 0, 0x8007];
        for (i, pkey) in pkeys.iter().enumerate() {
            cfg.set(PORT_CFG.field("pkey").0 + 16 * i as u32, 16, u64::from(*pkey));
        }
        dut.set_wide("port_cfg_i", &cfg.0);
        dut.set("enable_i", 1);
        // Inputs start at random, too; the others are set in each cycle.
        for port in [
            "drain_req_i",
            "diag_valid_i",
            "inv_mark_i",
            "srq_set_valid_i",
            "srq_limit_valid_i",
            "srq_clr_i",
            "srq_db_valid_i",
        ] {
            dut.set(port, 0);
        }
        dut.set("cq_idle_i", 1);
        dut.reset(3);
        let empty = Qp {
            valid: false,
            state: state::RESET,
            qp_type: 2,
            has_srq: false,
            access: 6,
            mtu: 1,
            log_rq: 4,
            generation: 0,
            epoch: 0,
            pd: 7,
            recv_cq: 0,
            srq: 0,
            log_rq_stride: 1,
            rq_base: 0,
            pkey_index: 0,
            rq_psn: 0,
            min_rnr_timer: 12,
            max_dest_rd_atomic: MAX_RD as u8,
            dgid: gid_v4(PEER_IP),
            sgid_index: 2,
        };
        let n = 1 << QP_IDX_W;
        let mem = (0..MEM_SIZE).map(|_| rng.bits() as u8).collect();
        Self {
            dut,
            bytes: width / 8,
            manners: Manners::PROMPT,
            looks: Looks::new(seed, 6, 2),
            rng,
            qps: vec![empty; n],
            prod: vec![(0, 0); n],
            regions: Vec::new(),
            fast_reg: Vec::new(),
            mem,
            bad_reads: Vec::new(),
            bad_tx: Vec::new(),
            effects: Vec::new(),
            counters: vec![0; 68],
            err_after: Some(5),
            stall_writes: false,
            stall_tx: false,
            hold_tx: false,
            stall_cqe: false,
            wqe_reads: Vec::new(),
            paged: false,
            list_err: false,
            lookups: Vec::new(),
            rx: VecDeque::new(),
            beats: VecDeque::new(),
            desc_offered: false,
            beat_offered: false,
            hot_seen: [0; 2],
            prod_seen: 0,
            cold: [None, None],
            mr: Default::default(),
            inv: None,
            reads: VecDeque::new(),
            read_offered: false,
            write: None,
            tx_open: None,
            tx_under_way: VecDeque::new(),
            events: VecDeque::new(),
            kicks: VecDeque::new(),
            pending_err: Vec::new(),
            last_busy: 0,
        }
    }

    // ------------------------------------------------------------ the host's and the gate's side

    /// QPN of an index.
    pub fn qpn(&self, idx: u16) -> u32 {
        u32::from(self.qps[usize::from(idx)].generation) << QP_IDX_W | u32::from(idx)
    }

    /// Brings a QP into being, in this state; its receive ring is at `rq_base`.
    pub fn create(&mut self, idx: u16, change: impl FnOnce(&mut Qp)) {
        let old = &self.qps[usize::from(idx)];
        let mut qp = Qp {
            valid: true,
            state: state::RTS,
            generation: old.generation + 1,
            epoch: old.epoch + 1,
            recv_cq: 0x40 + idx,
            rq_psn: 100,
            ..self.qps[127].clone()
        };
        change(&mut qp);
        self.qps[usize::from(idx)] = qp;
        self.tell(idx, true, false);
    }

    /// Changes a QP and tells everybody.
    pub fn change(&mut self, idx: u16, change: impl FnOnce(&mut Qp)) {
        let Qp { epoch, has_srq, .. } = self.qps[usize::from(idx)];
        change(&mut self.qps[usize::from(idx)]);
        let new_life = self.qps[usize::from(idx)].epoch != epoch;
        self.tell(idx, new_life, new_life && has_srq);
    }

    fn tell(&mut self, idx: u16, new_life: bool, left_srq: bool) {
        let qp = &self.qps[usize::from(idx)];
        self.events.push_back((idx, qp.epoch, qp.state, new_life, left_srq));
    }

    /// Writes a receive WQE without telling the device.
    ///
    /// # Panics
    /// When it does not fit its slot.
    pub fn write_wqe(&mut self, idx: u16, number: u16, num_sge: u8, sges: &[Sge]) {
        let qp = &self.qps[usize::from(idx)];
        let stride = 32usize << qp.log_rq_stride;
        let slot = usize::from(number) % (1 << qp.log_rq);
        let at = (qp.rq_base - MEM_BASE) as usize + slot * stride;
        let mut wqe = vec![0u8; stride];
        wqe[0] = num_sge;
        for (i, sge) in sges.iter().enumerate() {
            let e = &mut wqe[16 + 16 * i..32 + 16 * i];
            e[..8].copy_from_slice(&sge.addr.to_le_bytes());
            e[8..12].copy_from_slice(&sge.len.to_le_bytes());
            e[12..].copy_from_slice(&sge.lkey.to_le_bytes());
        }
        self.mem[at..at + stride].copy_from_slice(&wqe);
    }

    /// Posts a receive and rings.
    pub fn post(&mut self, idx: u16, sges: &[Sge]) {
        let number = self.posted(idx);
        self.write_wqe(idx, number, sges.len() as u8, sges);
        self.ring(idx, number.wrapping_add(1));
    }

    /// Number of receives posted in this life.
    pub fn posted(&self, idx: u16) -> u16 {
        let (epoch, val) = self.prod[usize::from(idx)];
        if epoch == self.qps[usize::from(idx)].epoch {
            val
        } else {
            0
        }
    }

    /// Rings the receive doorbell.
    pub fn ring(&mut self, idx: u16, producer: u16) {
        self.prod[usize::from(idx)] = (self.qps[usize::from(idx)].epoch, producer);
        self.kicks.push_back(idx);
    }

    /// Bytes of host memory.
    pub fn bytes_at(&self, addr: u64, len: usize) -> &[u8] {
        let at = (addr - MEM_BASE) as usize;
        &self.mem[at..at + len]
    }

    /// Asks for the barrier of what was judged until now.
    pub fn mark(&mut self) {
        self.dut.set("inv_mark_i", 1);
        self.cycle();
        self.dut.set("inv_mark_i", 0);
        self.cycle();
    }

    /// That barrier is not over.
    pub fn barrier_open(&self) -> bool {
        self.dut.sampled("inv_busy_o") == 1
    }

    /// Answers the invalidation that is asked for.
    fn invalidate(&mut self) {
        let req = element(&self.dut.get_wide("mr_inv_o"), MR_INV, 0);
        let f = |name| get(MR_INV, &req, name);
        let key = f("key") as u32;
        assert_eq!(self.dut.get("mr_inv_valid_o"), 1, "held until it is answered");
        let (qpn, idx) = (f("qpn") as u32, (f("qpn") & ((1 << QP_IDX_W) - 1)) as u16);
        assert_eq!(qpn, self.qpn(idx));
        let err = match self.regions.iter().position(|r| r.key == key) {
            None => 1,
            Some(_) if !self.fast_reg.contains(&key) => 3,
            Some(i) if u64::from(self.regions[i].pd) != f("pd") => 2,
            Some(i) => {
                self.regions.remove(i);
                0
            }
        };
        self.dut.set("mr_inv_err_i", u64::from(err));
        self.did(Effect::Inv { key, err });
    }

    fn look_up(&self, req: &Bits) -> Bits {
        let f = |name| get(MR_REQ, req, name);
        assert_ne!(f("len"), 0, "a length of 0 is not asked");
        let mut rsp = Bits::new(MR_RSP.width());
        let err = match self.regions.iter().find(|r| u64::from(r.key) == f("key")) {
            None => 1,
            Some(r) if u64::from(r.pd) != f("pd") => 2,
            Some(r) if f("access") & !u64::from(r.access) != 0 => 3,
            Some(r) => {
                let off = f("va").wrapping_sub(r.va);
                if f("va") < r.va || off > r.len || r.len - off < f("len") {
                    4
                } else {
                    let addr = r.addr + off;
                    put(MR_RSP, &mut rsp, "addr", if self.paged { addr ^ 0x1000 } else { addr });
                    let room = if self.paged { 0x1000 - addr % 0x1000 } else { 0x1000 };
                    put(MR_RSP, &mut rsp, "room", room);
                    if self.list_err && f("judge") == 0 { 7 } else { 0 }
                }
            }
        };
        put(MR_RSP, &mut rsp, "err", err);
        rsp
    }

    // ------------------------------------------------------------ the wire's side

    /// A packet to a QP from its peer, all else to be filled in.
    pub fn packet(&self, idx: u16, opcode: u8, psn: u32) -> Packet {
        Packet {
            opcode,
            psn: psn & 0xff_ffff,
            pkey: 0xffff,
            dest_qpn: self.qpn(idx),
            sgid: gid_v4(PEER_IP),
            gid_hit: OUR_HIT,
            ..Packet::default()
        }
    }

    /// The packets of a SEND; the last one asks for an acknowledge.
    pub fn send_packets(&self, idx: u16, psn: u32, data: &[u8], imm: Option<u32>, se: bool) -> Vec<Packet> {
        self.message(idx, psn, data, imm, se, [0x00, 0x01, 0x02, 0x04])
    }

    /// The packets of a WRITE; the last one asks for an acknowledge.
    pub fn write_packets(&self, idx: u16, psn: u32, va: u64, rkey: u32, data: &[u8], imm: Option<u32>) -> Vec<Packet> {
        let mut packets = self.message(idx, psn, data, imm, false, [0x06, 0x07, 0x08, 0x0a]);
        packets[0].va = va;
        packets[0].rkey = rkey;
        packets[0].dma_len = data.len() as u32;
        packets
    }

    /// A READ request.
    pub fn read_packet(&self, idx: u16, psn: u32, va: u64, rkey: u32, len: u32) -> Packet {
        Packet {
            va,
            rkey,
            dma_len: len,
            ..self.packet(idx, 0x0c, psn)
        }
    }

    fn message(&self, idx: u16, psn: u32, data: &[u8], imm: Option<u32>, se: bool, ops: [u8; 4]) -> Vec<Packet> {
        let mtu = self.qps[usize::from(idx)].mtu_bytes();
        let n = data.len().div_ceil(mtu).max(1);
        (0..n)
            .map(|i| {
                let last = i + 1 == n;
                let op = match (i, last) {
                    (0, true) => ops[3],
                    (0, false) => ops[0],
                    (_, false) => ops[1],
                    (_, true) => ops[2],
                };
                Packet {
                    payload: data[i * mtu..data.len().min((i + 1) * mtu)].to_vec(),
                    ack_req: last,
                    se: se && last,
                    imm: if last { imm.unwrap_or(0) } else { 0 },
                    ..self.packet(idx, op + u8::from(last && imm.is_some()), psn + i as u32)
                }
            })
            .collect()
    }

    /// Lets packets arrive.
    pub fn receive(&mut self, packets: impl IntoIterator<Item = Packet>) {
        self.rx.extend(packets);
    }

    /// Packets that wait.
    pub fn waiting(&self) -> usize {
        self.rx.len()
    }

    // ------------------------------------------------------------ time

    fn latency(&mut self) -> u64 {
        let most = self.manners.latency;
        self.rng.below(most + 1)
    }

    /// Cycles until `done` holds.
    ///
    /// # Panics
    /// When it does not within a bound.
    pub fn run_until(&mut self, what: &str, done: impl Fn(&Self) -> bool) {
        let start = self.dut.cycles();
        while !done(self) {
            self.cycle();
            assert!(self.dut.cycles() - start < 20_000, "waiting for {what}");
        }
    }

    /// Some cycles.
    pub fn run(&mut self, cycles: u64) {
        for _ in 0..cycles {
            self.cycle();
        }
    }

    /// Cycles until all that was given is dealt with.
    ///
    /// # Panics
    /// When it is not within a bound.
    pub fn settle(&mut self) {
        let start = self.dut.cycles();
        self.last_busy = start;
        loop {
            self.cycle();
            let now = self.dut.cycles();
            let open = !self.rx.is_empty()
                || !self.beats.is_empty()
                || !self.reads.is_empty()
                || !self.tx_under_way.is_empty()
                || self.tx_open.is_some()
                || self.mr.iter().any(|m| !m.is_empty())
                || !self.events.is_empty()
                || !self.kicks.is_empty()
                || !self.pending_err.is_empty();
            if open {
                self.last_busy = now;
            }
            if now > self.last_busy + 40 + 4 * self.manners.latency {
                return;
            }
            assert!(now - start < 400_000, "not settled; {} packets wait", self.rx.len());
        }
    }

    /// What was done since the last call.
    pub fn take(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects).into_iter().map(|(_, e)| e).collect()
    }

    /// As [`take`](Self::take), after settling and without the writes and consumer indices.
    pub fn outcome(&mut self) -> Vec<Effect> {
        self.settle();
        let mut all = self.take();
        all.retain(|e| !matches!(e, Effect::Write { .. } | Effect::Cons { .. }));
        all
    }

    fn did(&mut self, effect: Effect) {
        let now = self.dut.cycles();
        self.last_busy = now;
        self.effects.push((now, effect));
    }

    /// One cycle.
    ///
    /// # Panics
    /// When the block breaks its contract.
    pub fn cycle(&mut self) {
        let now = self.dut.cycles();
        let m = self.manners;
        // ---- inputs
        self.looks.drive(&mut self.dut, m.latency != 0, self.qps.len() as u64);
        let evt = self.events.pop_front();
        self.dut.set("qp_evt_valid_i", u64::from(evt.is_some()));
        if let Some((idx, epoch, state, new_life, left_srq)) = evt {
            let bits = pack(
                EVT,
                &[
                    ("idx", idx.into()),
                    ("epoch", epoch.into()),
                    ("state", state.into()),
                    ("new_life", new_life.into()),
                    ("left_srq", left_srq.into()),
                ],
            );
            self.dut.set_wide("qp_evt_i", &bits.0);
        }
        let kick = self.kicks.pop_front();
        self.dut.set("rq_kick_valid_i", u64::from(kick.is_some()));
        self.dut.set("rq_kick_idx_i", u64::from(kick.unwrap_or(0)));
        let mut hot = Bits::new(2 * HOT.width());
        for (i, idx) in self.hot_seen.iter().enumerate() {
            hot.put(i as u32 * HOT.width(), HOT.width(), &self.qps[usize::from(*idx)].hot());
        }
        self.dut.set_wide("hot_i", &hot.0);
        let (epoch, val) = self.prod[usize::from(self.prod_seen)];
        self.dut.set_wide(
            "rq_prod_i",
            &pack(POS, &[("epoch", epoch.into()), ("val", val.into())]).0,
        );

        let mut cold_ready = 0u64;
        let mut cold_rsp = 0u64;
        for r in 0..2 {
            if self.cold[r].is_none() && cold_ready == 0 && self.rng.chance(m.ready) {
                cold_ready |= 1 << r;
            }
            if cold_rsp == 0 && self.cold[r].as_ref().is_some_and(|a| a.due <= now) {
                cold_rsp |= 1 << r;
                let idx = self.cold[r].take().map_or(0, |a| a.what);
                self.dut.set_wide("cold_rsp_i", &self.qps[usize::from(idx)].ctx().0);
            }
        }
        // Both may ask: one is granted a cycle, in turn.
        if self.rng.chance(0.5) && self.cold[1].is_none() && self.rng.chance(m.ready) {
            cold_ready = 2;
        }
        self.dut.set("cold_req_ready_i", cold_ready);
        self.dut.set("cold_rsp_valid_i", cold_rsp);

        if !self.desc_offered && !self.rx.is_empty() && self.rng.chance(m.valid) {
            self.desc_offered = true;
            let p = self.rx[0].clone();
            let mut d = Bits::new(RX_DESC.width());
            for (field, value) in [
                ("opcode", u64::from(p.opcode)),
                ("se", p.se.into()),
                ("ack_req", p.ack_req.into()),
                ("pkey", p.pkey.into()),
                ("dest_qpn", p.dest_qpn.into()),
                ("psn", p.psn.into()),
                ("gid_hit", p.gid_hit.into()),
                ("payload_len", p.payload.len() as u64),
                ("va", p.va),
                ("rkey", p.rkey.into()),
                ("dma_len", p.dma_len.into()),
                ("imm", p.imm.into()),
                ("swap_add", p.swap_add),
                ("compare", p.compare),
            ]
            .into_iter()
            .chain(sgid_fields(&p.sgid))
            {
                put(RX_DESC, &mut d, field, value);
            }
            self.dut.set_wide("rx_desc_i", &d.0);
            // The payload stands beside the descriptor, whether it has been taken or not.
            let n = p.payload.chunks(self.bytes).count();
            for (i, chunk) in p.payload.chunks(self.bytes).enumerate() {
                let mut beat: Vec<u8> = (0..self.bytes).map(|_| self.rng.bits() as u8).collect();
                beat[..chunk.len()].copy_from_slice(chunk);
                self.beats.push_back((beat, i + 1 == n));
            }
        }
        self.dut.set("rx_desc_valid_i", u64::from(self.desc_offered));
        if !self.beat_offered && !self.beats.is_empty() && self.rng.chance(m.valid) {
            self.beat_offered = true;
            let (beat, last) = &self.beats[0];
            self.dut.set_wide("rx_pay_data_i", &words(beat));
            self.dut.set("rx_pay_last_i", u64::from(*last));
        }
        self.dut.set("rx_pay_valid_i", u64::from(self.beat_offered));

        let job_ready = self.tx_open.is_none() && !self.stall_tx && self.rng.chance(m.ready);
        let piece_ready = !self.stall_tx && self.rng.chance(m.ready);
        self.dut.set("tx_job_ready_i", u64::from(job_ready));
        self.dut.set("tx_piece_ready_i", u64::from(piece_ready));
        let done = match self.tx_under_way.front() {
            Some((due, ..)) if *due <= now && !self.stall_tx && !self.hold_tx => self.tx_under_way.pop_front(),
            _ => None,
        };
        self.dut.set("tx_done_i", u64::from(done.is_some()));
        let failed = done.filter(|(_, _, _, fail)| *fail);
        self.dut.set("tx_err_valid_i", u64::from(failed.is_some()));
        if let Some((_, idx, psn, _)) = failed {
            self.dut.set_wide(
                "tx_err_i",
                &pack(TX_ERR, &[("qp_idx", idx.into()), ("psn", psn.into()), ("err", 1)]).0,
            );
        }

        let rd_ready = self.rng.chance(m.ready);
        self.dut.set("rd_req_ready_i", u64::from(rd_ready));
        if !self.read_offered && self.reads.front().is_some_and(|r| r.due <= now) && self.rng.chance(m.valid) {
            self.read_offered = true;
        }
        self.dut.set("rd_rsp_valid_i", u64::from(self.read_offered));
        if self.read_offered {
            let read = &self.reads[0];
            let n = read.data.len().min(self.bytes);
            let last = read.data.len() <= self.bytes;
            let mut beat = read.data[..n].to_vec();
            beat.resize(self.bytes, 0xee);
            let err = if last { read.err } else { 0 };
            self.dut.set_wide("rd_rsp_data_i", &words(&beat));
            self.dut.set_wide(
                "rd_rsp_ctl_i",
                &pack(RD_CTL, &[("last", last.into()), ("err", err.into())]).0,
            );
        }
        let wr_ready = !self.stall_writes && self.rng.chance(m.ready);
        self.dut.set("wr_ready_i", u64::from(wr_ready));

        let mut mr_ready = 0u64;
        let mut mr_rsp = 0u64;
        for p in 0..2 {
            if mr_ready == 0 && self.rng.chance(m.ready) {
                mr_ready = 1 << p;
            }
            if mr_rsp == 0 && self.mr[p].front().is_some_and(|a| a.due <= now) {
                mr_rsp = 1 << p;
                if let Some(a) = self.mr[p].pop_front() {
                    let rsp = self.look_up(&a.what);
                    self.dut.set_wide("mr_rsp_i", &rsp.0);
                }
            }
        }
        if self.rng.chance(0.5) {
            mr_ready = (3 - mr_ready) & 3;
        }
        mr_ready &= 3;
        if mr_ready == 3 {
            mr_ready = 1;
        }
        let inv_done = self.inv.as_ref().is_some_and(|a| a.due <= now);
        self.dut.set("mr_inv_done_i", u64::from(inv_done));
        if inv_done {
            self.inv = None;
            self.invalidate();
        }
        self.dut.set("mr_req_ready_i", mr_ready);
        self.dut.set("mr_rsp_valid_i", mr_rsp);
        let cqe_ready = !self.stall_cqe && self.rng.chance(m.ready);
        let eqe_ready = self.rng.chance(m.ready);
        self.dut.set("cqe_ready_i", u64::from(cqe_ready));
        self.dut.set("eqe_ready_i", u64::from(eqe_ready));

        self.dut.clock();

        // ---- what happened in that cycle
        let look = (self.dut.sampled("diag_done_o") == 1).then(|| self.dut.sampled("diag_data_o"));
        self.looks.see(look);
        // The table looks at the low bits, whatever stands above them.
        let low = (1 << QP_IDX_W) - 1;
        self.hot_seen = std::array::from_fn(|i| (self.dut.sampled("hot_idx_o") >> (16 * i)) as u16 & low);
        self.prod_seen = self.dut.sampled("rq_prod_idx_o") as u16 & low;
        let asked = self.dut.sampled("cold_req_valid_o");
        for r in 0..2 {
            if asked & cold_ready & 1 << r != 0 {
                let idx = (self.dut.sampled("cold_req_idx_o") >> (16 * r)) as u16;
                let due = now + 1 + self.latency();
                self.cold[r] = Some(Answer { due, what: idx });
            }
        }
        if self.desc_offered && self.dut.sampled("rx_desc_ready_o") == 1 {
            self.rx.pop_front();
            self.desc_offered = false;
        }
        if self.beat_offered && self.dut.sampled("rx_pay_ready_o") == 1 {
            self.beats.pop_front();
            self.beat_offered = false;
        }
        if self.dut.sampled("rq_cons_we_o") == 1 {
            let c = element(&self.dut.sampled_wide("rq_cons_o"), POS_WR, 0);
            let f = |name| get(POS_WR, &c, name) as u16;
            self.did(Effect::Cons {
                idx: f("idx"),
                epoch: f("epoch"),
                val: f("val"),
            });
        }
        if wr_ready && self.dut.sampled("wr_valid_o") == 1 {
            self.take_write();
        }
        self.take_tx(job_ready, piece_ready, now);
        if rd_ready && self.dut.sampled("rd_req_valid_o") == 1 {
            let req = element(&self.dut.sampled_wide("rd_req_o"), RD_REQ, 0);
            let (addr, len) = (get(RD_REQ, &req, "addr"), get(RD_REQ, &req, "len") as usize);
            self.wqe_reads.push((addr, len));
            let err = self
                .bad_reads
                .iter()
                .find(|(r, _)| r.start < addr + len as u64 && addr < r.end)
                .map_or(0, |(_, e)| *e);
            let due = now + 1 + self.latency();
            let data = self.bytes_at(addr, len).to_vec();
            self.reads.push_back(Read { due, data, err });
        }
        if self.read_offered && self.dut.sampled("rd_rsp_ready_o") == 1 {
            let read = &mut self.reads[0];
            read.data.drain(..read.data.len().min(self.bytes));
            if read.data.is_empty() {
                self.reads.pop_front();
            }
            self.read_offered = false;
        }
        if self.inv.is_none() && !inv_done && self.dut.sampled("mr_inv_valid_o") == 1 {
            let due = now + 2 + self.latency();
            self.inv = Some(Answer { due, what: () });
        }
        let mr_asked = self.dut.sampled("mr_req_valid_o") & mr_ready;
        for p in 0..2 {
            if mr_asked & 1 << p != 0 {
                let req = element(&self.dut.sampled_wide("mr_req_o"), MR_REQ, p as u32);
                let f = |name| get(MR_REQ, &req, name);
                self.lookups.push((p, f("key") as u32, f("va"), f("len") as u32));
                let due = now + 2 + self.latency();
                self.mr[p].push_back(Answer { due, what: req });
            }
        }
        if cqe_ready && self.dut.sampled("cqe_valid_o") == 1 {
            let c = element(&self.dut.sampled_wide("cqe_o"), CQE, 0);
            let f = |name| get(CQE, &c, name);
            assert_eq!((f("grh"), f("src_qpn")), (0, 0));
            self.did(Effect::Cqe(Cqe {
                cqn: f("cqn") as u16,
                idx: f("qp_idx") as u16,
                epoch: f("epoch") as u16,
                solicited: f("solicited") == 1,
                qpn: f("qpn") as u32,
                opcode: f("opcode") as u8,
                wqe_index: f("wqe_index") as u16,
                status: f("status") as u8,
                with_imm: f("with_imm") == 1,
                with_inv: f("with_inv") == 1,
                byte_len: f("byte_len") as u32,
                imm: f("imm") as u32,
                vendor_err: f("vendor_err") as u8,
            }));
        }
        if eqe_ready && self.dut.sampled("eqe_valid_o") == 1 {
            let e = element(&self.dut.sampled_wide("eqe_o"), EQE, 0);
            assert_eq!(get(EQE, &e, "eqn"), 0, "asynchronous events go to queue 0");
            let (event, number) = (get(EQE, &e, "event_type") as u8, get(EQE, &e, "number") as u32);
            self.did(Effect::Event { event, number });
        }
        self.take_err(now);
        let counted = Bits(self.dut.sampled_wide("cnt_o"));
        if counted.0.iter().any(|w| *w != 0) {
            for i in 0..self.counters.len() {
                self.counters[i] += counted.get(i as u32, 1);
            }
        }
    }

    fn take_write(&mut self) {
        let hdr = Bits(self.dut.sampled_wide("wr_hdr_o"));
        let (addr, len) = (get(WR_HDR, &hdr, "addr"), get(WR_HDR, &hdr, "len") as usize);
        assert!((1..=4096).contains(&len), "a write of {len} bytes");
        let (held, mut data) = self.write.take().unwrap_or_else(|| (hdr.clone(), Vec::new()));
        assert_eq!(held, hdr, "the header of a write is held beside every beat");
        let beat = Bits(self.dut.sampled_wide("wr_data_o")).bytes(0, self.bytes);
        let n = self.bytes.min(len - data.len());
        data.extend(&beat[..n]);
        assert_eq!(
            self.dut.sampled("wr_last_o") == 1,
            data.len() == len,
            "last beat of a write of {len} bytes"
        );
        if data.len() == len {
            assert!(
                !self.paged || len as u64 <= 0x1000 - addr % 0x1000,
                "a write beyond its page"
            );
            let at = (if self.paged { addr ^ 0x1000 } else { addr } - MEM_BASE) as usize;
            self.mem[at..at + len].copy_from_slice(&data);
            self.did(Effect::Write { addr, len });
        } else {
            self.write = Some((hdr, data));
        }
    }

    fn take_tx(&mut self, job_ready: bool, piece_ready: bool, now: u64) {
        let mut tx = self.tx_open.take();
        if tx.is_some() && piece_ready && self.dut.sampled("tx_piece_valid_o") == 1 {
            let p = element(&self.dut.sampled_wide("tx_piece_o"), TX_PIECE, 0);
            assert_eq!(get(TX_PIECE, &p, "is_inline"), 0);
            if let Some(tx) = &mut tx {
                tx.pieces
                    .push((get(TX_PIECE, &p, "addr"), get(TX_PIECE, &p, "len") as usize));
            }
        }
        if tx.is_none() && piece_ready {
            assert_eq!(self.dut.sampled("tx_piece_valid_o"), 0, "a piece without its job");
        }
        if job_ready && self.dut.sampled("tx_job_valid_o") == 1 {
            let j = element(&self.dut.sampled_wide("tx_job_o"), TX_JOB, 0);
            let f = |name| get(TX_JOB, &j, name);
            assert_eq!((f("se"), f("ack_req"), f("imm")), (0, 0, 0));
            tx = Some(Tx {
                idx: f("qp_idx") as u16,
                opcode: f("opcode") as u8,
                psn: f("psn") as u32,
                syndrome: f("syndrome") as u8,
                msn: f("msn") as u32,
                len: f("payload_len") as usize,
                pieces: Vec::new(),
                value: if f("opcode") == 0x12 { f("swap_add") } else { 0 },
            });
        }
        let Some(tx) = tx else { return };
        let have: usize = tx.pieces.iter().map(|(_, n)| n).sum();
        assert!(have <= tx.len, "pieces beyond the payload");
        if have == tx.len {
            let fails = self.bad_tx.contains(&(tx.idx, tx.psn)) && tx.len > 0;
            let due = now + 1 + self.latency();
            self.tx_under_way.push_back((due, tx.idx, tx.psn, fails));
            self.did(Effect::Tx(tx));
        } else {
            self.tx_open = Some(tx);
        }
    }

    fn take_err(&mut self, now: u64) {
        if self.dut.sampled("qp_err_valid_o") == 1 {
            let e = element(&self.dut.sampled_wide("qp_err_o"), QP_ERR, 0);
            assert_eq!(get(QP_ERR, &e, "to_sqe"), 0);
            let (idx, epoch) = (get(QP_ERR, &e, "idx") as u16, get(QP_ERR, &e, "epoch") as u16);
            self.did(Effect::Err { idx, epoch });
            if let Some(after) = self.err_after {
                self.pending_err.push(Answer {
                    due: now + after,
                    what: (idx, epoch),
                });
            }
        }
        for a in std::mem::take(&mut self.pending_err) {
            let (idx, epoch) = a.what;
            if a.due > now {
                self.pending_err.push(a);
            } else if self.qps[usize::from(idx)].epoch == epoch && self.qps[usize::from(idx)].state != state::ERR {
                self.change(idx, |qp| qp.state = state::ERR);
            }
        }
    }
}

/// Seed of a random test: `OPENRNIC_SEED` or a fixed one; printed.
pub fn seed() -> u64 {
    crate::seed(1)
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes
        .chunks(4)
        .map(|c| c.iter().rev().fold(0, |w, b| w << 8 | u32::from(*b)))
        .collect()
}
