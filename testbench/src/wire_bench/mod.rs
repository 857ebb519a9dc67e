// SPDX-License-Identifier: Apache-2.0
//! The wire side (`rnic_wire`) on a bench: a MAC on one side; receiving engines, transmit sources, host
//! memory and QP contexts on the other. Made for tests: a broken contract panics.
#![allow(clippy::expect_used)]

pub mod bits;
pub mod frames;
mod judge;

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bits::{Bits, Layout};
pub use judge::{Counter, Taken, Verdict, judge};
use openrnic_sim::model::BlockModel;
use openrnic_sim::rng::Stream;

use crate::wire::{
    Aeth, AtomicEth, Bth, ETHERTYPE_IPV4, ETHERTYPE_IPV6, Ethernet, ExtHeader, ExtHeaders, Ip, Ipv4, Ipv6, Mac,
    ROCE_PORT, Reth, Roce, Udp, opcode_info, source_port,
};

/// `rx_desc_t`.
pub const RX_DESC: Layout = Layout(&[
    ("opcode", 8),
    ("se", 1),
    ("ack_req", 1),
    ("pad", 2),
    ("pkey", 16),
    ("dest_qpn", 24),
    ("psn", 24),
    ("ecn", 2),
    ("sgid_tail", 64),
    ("sgid_head", 64),
    ("gid_hit", 16),
    ("payload_len", 13),
    ("va", 64),
    ("rkey", 32),
    ("dma_len", 32),
    ("swap_add", 64),
    ("compare", 64),
    ("syndrome", 8),
    ("msn", 24),
    ("imm", 32),
    ("qkey", 32),
    ("src_qpn", 24),
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
const RD_REQ: Layout = Layout(&[("addr", 64), ("len", 16)]);
const RD_CTL: Layout = Layout(&[("last", 1), ("err", 3)]);
/// `port_cfg_t`.
pub const PORT_CFG: Layout = Layout(&[
    ("mac", 48),
    ("mtu", 3),
    ("up", 1),
    ("pkey", 8 * 16),
    ("gid_v4", 16),
    ("gid_v6", 16),
    ("gid", 16 * 128),
    // gid_wr
    ("gid_wr_valid", 1),
    ("gid_wr_idx", 4),
    ("gid_wr_gid", 128),
]);

/// The GID of an address; that of IPv4 is mapped.
pub fn gid_of(ip: IpAddr) -> [u8; 16] {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
        IpAddr::V6(ip) => ip.octets(),
    }
}

/// The source address as the fields of [`RX_DESC`].
pub fn sgid_fields(gid: &[u8; 16]) -> [(&'static str, u64); 2] {
    let half = |bytes: &[u8]| bytes.iter().rev().fold(0, |v, b| v << 8 | u64::from(*b));
    [("sgid_tail", half(&gid[8..])), ("sgid_head", half(&gid[..8]))]
}
const QP_CTX: Layout = Layout(&[
    // hot
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
    // create
    ("fast_reg", 1),
    ("pd", 16),
    ("send_cq", 16),
    ("recv_cq", 16),
    ("srq", 16),
    ("log_sq_stride", 4),
    ("log_rq_stride", 4),
    ("sq_base", 64),
    ("rq_base", 64),
    // path
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
const QP_IDX_W: u32 = 8;

/// Parameters of the smallest build: buffers of two packets of 4 KiB each, and 16 descriptors.
pub const SMALL: [(&str, u64); 3] = [("RxBufBytes", 8192), ("RxNumDesc", 16), ("TxBufBytes", 8192)];

/// Entry 0 of the GID table.
pub const OUR_IPV4: Ipv4Addr = Ipv4Addr::new(192, 168, 77, 1);
/// Entry 7 of the GID table.
pub const OUR_IPV6: Ipv6Addr = Ipv6Addr::new(0xfd77, 0x1234, 0x5678, 0x9abc, 0xdef0, 0x0fed, 0xcba9, 0x8765);

/// Configuration of the port.
#[derive(Debug, Clone)]
pub struct Port {
    /// Its MAC address.
    pub mac: Mac,
    /// Addresses of the GID table; none: an empty entry.
    pub gids: [Option<IpAddr>; 16],
    /// P_Key table.
    pub pkeys: [u16; 8],
}

impl Default for Port {
    fn default() -> Self {
        let mut gids = [None; 16];
        gids[0] = Some(OUR_IPV4.into());
        gids[7] = Some(OUR_IPV6.into());
        gids[8] = Some(Ipv6Addr::new(0xfe80, 0, 0, 0, 0x11, 0xff_u16, 0xfe00, 1).into());
        gids[15] = Some(Ipv4Addr::new(10, 0, 0, 1).into());
        let mut pkeys = [0xffff; 8];
        pkeys[5] = 0x8123;
        Self {
            mac: [2, 0, 0, 0, 0, 1],
            gids,
            pkeys,
        }
    }
}

/// What the transmitter looks up for a QP.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub struct Peer {
    pub idx: u16,
    pub generation: u16,
    pub dest_qpn: u32,
    pub dmac: Mac,
    pub dip: IpAddr,
    pub vlan: u16,
    pub sgid_index: usize,
    pub pkey_index: usize,
    pub hop_limit: u8,
    pub traffic_class: u8,
    pub flow_label: u32,
}

/// A packet to be sent; see `tx_job_t`.
#[derive(Debug, Clone, Copy, Default)]
#[allow(missing_docs)]
pub struct Job {
    pub qp_idx: u16,
    pub opcode: u8,
    pub se: bool,
    pub ack_req: bool,
    pub psn: u32,
    pub va: u64,
    pub rkey: u32,
    pub dma_len: u32,
    pub syndrome: u8,
    pub msn: u32,
    pub imm: [u8; 4],
    pub swap_add: u64,
    pub compare: u64,
}

/// Where a part of a payload comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Host memory.
    Dma {
        /// Bus address.
        addr: u64,
        /// Bytes.
        len: usize,
    },
    /// Beside the piece.
    Inline(Vec<u8>),
}

/// A job that was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct TxFailure {
    pub source: usize,
    pub qp_idx: u16,
    pub psn: u32,
    pub err: u8,
}

/// How the surroundings behave. Each chance is that of a ready, or of a valid, in a cycle.
#[derive(Debug, Clone, Copy)]
pub struct Manners {
    /// The MAC gives a beat.
    pub mac_rx: f64,
    /// The MAC takes a beat.
    pub mac_tx: f64,
    /// An engine takes a descriptor or a payload beat.
    pub engine: f64,
    /// A source offers what it has.
    pub source: f64,
    /// Host memory takes a request or gives a beat.
    pub dma: f64,
    /// Cycles from the acceptance of a read to its first beat.
    pub dma_latency: u64,
    /// Cycles from the request of a context to its answer.
    pub cold_latency: u64,
}

impl Manners {
    /// Nobody waits.
    pub const PROMPT: Self = Self {
        mac_rx: 1.0,
        mac_tx: 1.0,
        engine: 1.0,
        source: 1.0,
        dma: 1.0,
        dma_latency: 2,
        cold_latency: 1,
    };
    /// Everybody stalls often.
    pub const MOODY: Self = Self {
        mac_rx: 0.7,
        mac_tx: 0.6,
        engine: 0.5,
        source: 0.6,
        dma: 0.6,
        dma_latency: 9,
        cold_latency: 4,
    };
}

/// Byte of host memory.
pub fn host_byte(addr: u64) -> u8 {
    let v = addr.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (v >> 56) as u8 ^ (v >> 24) as u8
}

/// Seed of a random test: 1, or OPENRNIC_SEED. It is printed.
pub fn seed() -> u64 {
    crate::seed(1)
}

struct Read {
    due: u64,
    addr: u64,
    left: usize,
    err: u8,
}

/// The bench.
pub struct WireBench {
    /// The block.
    pub dut: BlockModel,
    /// Bytes of a beat.
    pub bytes: usize,
    /// Configuration of its port.
    pub port: Port,
    /// How the surroundings behave.
    pub manners: Manners,
    rng: Stream,
    rx_beats: VecDeque<(Vec<u8>, bool, bool)>,
    peers: Vec<Peer>,
    jobs: [VecDeque<(Job, usize)>; 2],
    pieces: [VecDeque<Piece>; 2],
    offered_job: [bool; 2],
    offered_piece: [bool; 2],
    reads: [VecDeque<Read>; 2],
    reading: Option<usize>,
    cold: Option<(u64, u16)>,
    tx_frame: Vec<u8>,
    tx_mid: bool,
    /// Addresses whose reads fail, and how.
    pub bad_reads: Vec<(std::ops::Range<u64>, u8)>,
    /// Engines that take nothing.
    pub stalled: [bool; 2],
    /// Descriptors taken, by class.
    pub descs: [Vec<Bits>; 2],
    /// Payload bytes taken (whole beats) and the end marks, by class.
    pub payloads: [Vec<Vec<u8>>; 2],
    open_payload: [Vec<u8>; 2],
    /// Frames sent and the cycles of their first and last beats.
    pub sent: Vec<(Vec<u8>, u64, u64)>,
    /// Jobs done, by source.
    pub done: [usize; 2],
    /// Jobs that failed.
    pub failures: Vec<TxFailure>,
    /// Reads asked for, by source: address, bytes.
    pub reads_seen: [Vec<(u64, usize)>; 2],
    /// Counters.
    pub counters: Vec<u64>,
    /// Bytes received and sent.
    pub byte_counts: [u64; 2],
}

impl WireBench {
    /// Builds the block for a data width, with parameters and defines, and resets it.
    pub fn new(width: usize, params: &[(&str, u64)], seed: u64) -> Self {
        let mut builder = BlockModel::builder("rnic_wire")
            .param("DataW", width)
            .param("QpIdxW", QP_IDX_W)
            .random_init(seed);
        for (name, value) in params {
            builder = builder.param(name, value);
        }
        // Features can be cut out to see a test turn red: OPENRNIC_CUT=RNIC_CUT_RX_ICRC.
        if let Ok(cut) = std::env::var("OPENRNIC_CUT") {
            builder = builder.define(&cut);
        }
        let mut dut = builder.build().unwrap_or_else(|e| panic!("{e}"));
        for (port, layout, n) in [
            ("rx_desc_o", RX_DESC, 2),
            ("tx_job_i", TX_JOB, 2),
            ("tx_piece_i", TX_PIECE, 2),
            ("tx_err_o", TX_ERR, 2),
            ("rd_req_o", RD_REQ, 2),
            ("rd_rsp_ctl_i", RD_CTL, 1),
            ("port_cfg_i", PORT_CFG, 1),
            ("cold_rsp_i", QP_CTX, 1),
        ] {
            let built = dut.ports().iter().find(|p| p.name == port).map(|p| p.width);
            assert_eq!(
                built,
                Some(n * layout.width()),
                "{port} is laid out otherwise in rnic_pkg"
            );
        }
        dut.reset(3);
        let mut bench = Self {
            dut,
            bytes: width / 8,
            port: Port::default(),
            manners: Manners::PROMPT,
            rng: Stream::new(seed, "wire bench", width as u64),
            rx_beats: VecDeque::new(),
            peers: Vec::new(),
            jobs: Default::default(),
            pieces: Default::default(),
            offered_job: [false; 2],
            offered_piece: [false; 2],
            reads: Default::default(),
            reading: None,
            cold: None,
            tx_frame: Vec::new(),
            tx_mid: false,
            bad_reads: Vec::new(),
            stalled: [false; 2],
            descs: Default::default(),
            payloads: Default::default(),
            open_payload: Default::default(),
            sent: Vec::new(),
            done: [0; 2],
            failures: Vec::new(),
            reads_seen: Default::default(),
            counters: vec![0; 68],
            byte_counts: [0; 2],
        };
        bench.configure(Port::default());
        bench
    }

    /// Sets the port's configuration.
    pub fn configure(&mut self, port: Port) {
        let mut bits = Bits::new(PORT_CFG.width());
        bits.set_bytes(PORT_CFG.field("mac").0, &port.mac);
        bits.set(PORT_CFG.field("up").0, 1, 1);
        for (i, pkey) in port.pkeys.iter().enumerate() {
            bits.set(PORT_CFG.field("pkey").0 + 16 * i as u32, 16, u64::from(*pkey));
        }
        // What an empty entry holds is void.
        let gids = port.gids.map(|g| gid_of(g.unwrap_or(Ipv4Addr::new(1, 2, 3, 4).into())));
        for (i, (ip, gid)) in port.gids.iter().zip(&gids).enumerate() {
            let at = i as u32;
            bits.set(
                PORT_CFG.field("gid_v4").0 + at,
                1,
                ip.is_some_and(|ip| ip.is_ipv4()).into(),
            );
            bits.set(
                PORT_CFG.field("gid_v6").0 + at,
                1,
                ip.is_some_and(|ip| ip.is_ipv6()).into(),
            );
            bits.set_bytes(PORT_CFG.field("gid").0 + 128 * at, gid);
        }
        self.port = port;
        // One entry after the other is told to those who keep a copy.
        for (i, gid) in gids.iter().enumerate() {
            bits.set(PORT_CFG.field("gid_wr_valid").0, 1, 1);
            bits.set(PORT_CFG.field("gid_wr_idx").0, 4, i as u64);
            bits.set_bytes(PORT_CFG.field("gid_wr_gid").0, gid);
            self.dut.set_wide("port_cfg_i", &bits.0);
            self.cycle();
        }
        bits.set(PORT_CFG.field("gid_wr_valid").0, 1, 0);
        self.dut.set_wide("port_cfg_i", &bits.0);
    }

    /// Lets the MAC receive a frame.
    pub fn receive(&mut self, frame: &[u8]) {
        self.receive_flawed(frame, usize::MAX);
    }

    /// Lets the MAC receive a frame of which this beat carries the error flag.
    pub fn receive_flawed(&mut self, frame: &[u8], flaw: usize) {
        let beats = frame.len().div_ceil(self.bytes);
        for (i, beat) in frame.chunks(self.bytes).enumerate() {
            self.rx_beats.push_back((beat.to_vec(), i + 1 == beats, i == flaw));
        }
    }

    /// Adds the context of a QP.
    pub fn add_peer(&mut self, peer: Peer) {
        self.peers.push(peer);
    }

    /// Lets a source hand over a job and its pieces.
    pub fn post(&mut self, source: usize, job: Job, pieces: &[Piece]) {
        let len = pieces.iter().map(Piece::len).sum();
        self.jobs[source].push_back((job, len));
        self.pieces[source].extend(pieces.iter().cloned());
    }

    /// One cycle.
    pub fn cycle(&mut self) {
        let now = self.dut.cycles();
        let m = self.manners;
        let width = 8 * self.bytes as u32;

        // What the surroundings offer.
        let rx = if self.rng.chance(m.mac_rx) {
            self.rx_beats.pop_front()
        } else {
            None
        };
        self.dut.set("mac_rx_valid_i", u64::from(rx.is_some()));
        if let Some((beat, last, err)) = &rx {
            let mut lanes: Vec<u8> = (0..self.bytes).map(|_| self.rng.bits() as u8).collect();
            lanes[..beat.len()].copy_from_slice(beat);
            let mut keep = Bits::new(self.bytes as u32);
            (0..beat.len()).for_each(|i| keep.set(i as u32, 1, 1));
            self.dut.set_wide("mac_rx_data_i", &words(&lanes));
            self.dut.set_wide("mac_rx_keep_i", &keep.0);
            self.dut.set("mac_rx_last_i", u64::from(*last));
            self.dut.set("mac_rx_err_i", u64::from(*err));
        }
        let mac_tx_ready = self.rng.chance(m.mac_tx);
        self.dut.set("mac_tx_ready_i", u64::from(mac_tx_ready));
        let mut ready = [0u64; 2];
        for class in 0..2 {
            for r in &mut ready {
                *r |= u64::from(!self.stalled[class] && self.rng.chance(m.engine)) << class;
            }
        }
        self.dut.set("rx_desc_ready_i", ready[0]);
        self.dut.set("rx_pay_ready_i", ready[1]);
        self.offer_work(width);
        let rd_ready = (0..2).fold(0, |v, s| v | u64::from(self.rng.chance(m.dma)) << s);
        self.dut.set("rd_req_ready_i", rd_ready);
        let rsp = self.offer_read_data(now);
        self.dut.set(
            "cold_req_ready_i",
            u64::from(self.cold.is_none() && self.rng.chance(m.source)),
        );
        let cold_rsp = self.cold.filter(|(due, _)| *due <= now);
        self.dut.set("cold_rsp_valid_i", u64::from(cold_rsp.is_some()));
        if let Some((_, idx)) = cold_rsp {
            let context = self.context(idx);
            self.dut.set_wide("cold_rsp_i", &context.0);
            self.cold = None;
        }
        let cold_ready = self.dut.get("cold_req_ready_i") == 1;

        self.dut.clock();

        // What happened in that cycle.
        if rx.is_some() {
            assert_eq!(self.dut.sampled("mac_rx_ready_o"), 1, "the receiver is always ready");
        }
        self.count();
        self.take_received(ready, width);
        self.take_sent(mac_tx_ready, now);
        for s in 0..2 {
            if self.offered_job[s] && self.dut.sampled("tx_job_ready_o") >> s & 1 == 1 {
                self.jobs[s].pop_front();
                self.offered_job[s] = false;
            }
            if self.offered_piece[s] && self.dut.sampled("tx_piece_ready_o") >> s & 1 == 1 {
                self.pieces[s].pop_front();
                self.offered_piece[s] = false;
            }
            if (rd_ready & self.dut.sampled("rd_req_valid_o")) >> s & 1 == 1 {
                self.accept_read(s, now);
            }
        }
        if let Some(s) = rsp
            && self.dut.sampled("rd_rsp_ready_o") >> s & 1 == 1
        {
            let read = &mut self.reads[s][0];
            let n = read.left.min(self.bytes);
            read.addr += n as u64;
            read.left -= n;
            if read.left == 0 {
                self.reads[s].pop_front();
            }
            self.reading = None;
        }
        if cold_ready && self.dut.sampled("cold_req_valid_o") == 1 {
            self.cold = Some((now + m.cold_latency, self.dut.sampled("cold_req_idx_o") as u16));
        }
    }

    /// Cycles until the MAC has given all it has and `done` holds; at most `budget`.
    ///
    /// # Panics
    /// When the budget runs out.
    pub fn run_until(&mut self, what: &str, budget: u64, mut done: impl FnMut(&Self) -> bool) {
        let start = self.dut.cycles();
        while !self.rx_beats.is_empty() || !done(self) {
            assert!(self.dut.cycles() - start < budget, "{what}: not after {budget} cycles");
            self.cycle();
        }
    }

    /// Some cycles.
    pub fn run(&mut self, cycles: u64) {
        for _ in 0..cycles {
            self.cycle();
        }
    }

    /// A counter's value.
    pub fn counter(&self, counter: Counter) -> u64 {
        self.counters[counter as usize]
    }

    /// The counters that are not zero.
    pub fn counted(&self) -> Vec<(usize, u64)> {
        self.counters
            .iter()
            .copied()
            .enumerate()
            .filter(|(_, n)| *n != 0)
            .collect()
    }

    /// Whether a received packet is as it was judged: `n` is its number in its class.
    ///
    /// # Panics
    /// When it is not.
    pub fn check_received(&self, n: usize, taken: &Taken, payload_number: &mut usize) {
        let desc = &self.descs[taken.class][n];
        for (field, value) in &taken.fields {
            let (lsb, width) = RX_DESC.field(field);
            assert_eq!(desc.get(lsb, width), *value, "{field} of packet {n}");
        }
        if !taken.payload.is_empty() {
            let got = &self.payloads[taken.class][*payload_number];
            let mut padded = taken.payload.clone();
            padded.resize(taken.payload.len().next_multiple_of(self.bytes), 0);
            assert!(
                *got == padded,
                "payload of packet {n}: {} bytes, expected {}",
                got.len(),
                padded.len()
            );
            *payload_number += 1;
        }
    }

    /// The frame that a job must become.
    ///
    /// # Panics
    /// When there is no such peer or opcode.
    pub fn expected_frame(&self, job: &Job, payload: &[u8]) -> Roce {
        let peer = self.peer(job.qp_idx);
        let info = opcode_info(job.opcode).expect("a known opcode");
        let mut ext = ExtHeaders::default();
        for header in info.headers {
            match header {
                ExtHeader::Reth => {
                    ext.reth = Some(Reth {
                        va: job.va,
                        rkey: job.rkey,
                        dma_len: job.dma_len,
                    })
                }
                ExtHeader::Aeth => {
                    ext.aeth = Some(Aeth {
                        syndrome: job.syndrome,
                        msn: job.msn,
                    })
                }
                ExtHeader::ImmDt => ext.imm = Some(job.imm),
                ExtHeader::Ieth => ext.ieth = Some(job.rkey),
                ExtHeader::AtomicEth => {
                    ext.atomic = Some(AtomicEth {
                        va: job.va,
                        rkey: job.rkey,
                        swap_add: job.swap_add,
                        compare: job.compare,
                    })
                }
                ExtHeader::AtomicAckEth => ext.atomic_ack = Some(job.swap_add),
                other => panic!("a job has no field for {other:?}"),
            }
        }
        let local_qpn = u32::from(peer.generation) << QP_IDX_W | u32::from(peer.idx);
        Roce {
            eth: Ethernet {
                dst: peer.dmac,
                src: self.port.mac,
                // The tag's bit 12 is DEI, which a path has no room for.
                tag: (peer.vlan & 0x8000 != 0).then_some((peer.vlan & 0x7000) << 1 | peer.vlan & 0xfff),
                ethertype: if peer.dip.is_ipv4() {
                    ETHERTYPE_IPV4
                } else {
                    ETHERTYPE_IPV6
                },
            },
            ip: match (self.port.gids[peer.sgid_index].expect("a GID"), peer.dip) {
                (IpAddr::V4(src), IpAddr::V4(dst)) => Ip::V4(Ipv4 {
                    tos: peer.traffic_class,
                    total_len: 0,
                    id: 0,
                    fragment: 0x4000,
                    ttl: peer.hop_limit,
                    protocol: 17,
                    checksum: 0,
                    src,
                    dst,
                }),
                (IpAddr::V6(src), IpAddr::V6(dst)) => Ip::V6(Ipv6 {
                    traffic_class: peer.traffic_class,
                    flow_label: peer.flow_label,
                    payload_len: 0,
                    next_header: 17,
                    hop_limit: peer.hop_limit,
                    src,
                    dst,
                }),
                (src, dst) => panic!("from {src} to {dst}"),
            },
            udp: Udp {
                src_port: source_port(peer.flow_label, local_qpn, peer.dest_qpn),
                dst_port: ROCE_PORT,
                length: 0,
                checksum: 0,
            },
            bth: Bth {
                opcode: job.opcode,
                solicited: job.se,
                mig_req: true,
                pkey: self.port.pkeys[peer.pkey_index],
                dest_qpn: peer.dest_qpn,
                ack_req: job.ack_req,
                psn: job.psn,
                ..Bth::default()
            },
            ext,
            payload: payload.to_vec(),
            pad: Vec::new(),
            icrc: 0,
            trailer: Vec::new(),
        }
        .finish()
    }

    fn peer(&self, idx: u16) -> &Peer {
        self.peers.iter().find(|p| p.idx == idx).expect("a peer for the QP")
    }

    fn context(&self, idx: u16) -> Bits {
        let peer = self.peer(idx);
        let mut bits = Bits::new(QP_CTX.width());
        bits.set_bytes(QP_CTX.field("dgid").0, &gid_of(peer.dip));
        bits.set_bytes(QP_CTX.field("dmac").0, &peer.dmac);
        for (field, value) in [
            ("valid", 1),
            ("gen", u64::from(peer.generation)),
            ("dest_qpn", u64::from(peer.dest_qpn)),
            ("vlan", u64::from(peer.vlan)),
            ("sgid_index", peer.sgid_index as u64),
            ("pkey_index", peer.pkey_index as u64),
            ("hop_limit", u64::from(peer.hop_limit)),
            ("traffic_class", u64::from(peer.traffic_class)),
            ("flow_label", u64::from(peer.flow_label)),
        ] {
            let (lsb, width) = QP_CTX.field(field);
            bits.set(lsb, width, value);
        }
        bits
    }

    fn offer_work(&mut self, width: u32) {
        let (mut jobs, mut pieces) = (Bits::new(2 * TX_JOB.width()), Bits::new(2 * TX_PIECE.width()));
        let mut data = Bits::new(2 * width);
        for s in 0..2 {
            // Once offered, it stays offered.
            self.offered_job[s] |= !self.jobs[s].is_empty() && self.rng.chance(self.manners.source);
            self.offered_piece[s] |= !self.pieces[s].is_empty() && self.rng.chance(self.manners.source);
            if self.offered_job[s] {
                let (job, len) = self.jobs[s][0];
                for (field, value) in [
                    ("qp_idx", u64::from(job.qp_idx)),
                    ("opcode", u64::from(job.opcode)),
                    ("se", u64::from(job.se)),
                    ("ack_req", u64::from(job.ack_req)),
                    ("psn", u64::from(job.psn)),
                    ("payload_len", len as u64),
                    ("va", job.va),
                    ("rkey", u64::from(job.rkey)),
                    ("dma_len", u64::from(job.dma_len)),
                    ("syndrome", u64::from(job.syndrome)),
                    ("msn", u64::from(job.msn)),
                    ("imm", u64::from(u32::from_le_bytes(job.imm))),
                    ("swap_add", job.swap_add),
                    ("compare", job.compare),
                ] {
                    let (lsb, w) = TX_JOB.field(field);
                    jobs.set(s as u32 * TX_JOB.width() + lsb, w, value);
                }
            }
            if self.offered_piece[s] {
                let base = s as u32 * TX_PIECE.width();
                let piece = &self.pieces[s][0];
                pieces.set(base + TX_PIECE.field("len").0, 13, piece.len() as u64);
                match piece {
                    Piece::Dma { addr, .. } => pieces.set(base + TX_PIECE.field("addr").0, 64, *addr),
                    Piece::Inline(bytes) => {
                        pieces.set(base + TX_PIECE.field("is_inline").0, 1, 1);
                        data.set_bytes(s as u32 * width, &vec![0xee; width as usize / 8]);
                        data.set_bytes(s as u32 * width, bytes);
                    }
                }
            }
        }
        let flags = |f: [bool; 2]| u64::from(f[0]) | u64::from(f[1]) << 1;
        self.dut.set("tx_job_valid_i", flags(self.offered_job));
        self.dut.set("tx_piece_valid_i", flags(self.offered_piece));
        self.dut.set_wide("tx_job_i", &jobs.0);
        self.dut.set_wide("tx_piece_i", &pieces.0);
        self.dut.set_wide("tx_piece_data_i", &data.0);
    }

    /// One client is answered at a time; a beat that is offered stays.
    fn offer_read_data(&mut self, now: u64) -> Option<usize> {
        if self.reading.is_none() && self.rng.chance(self.manners.dma) {
            let due: Vec<usize> = (0..2)
                .filter(|s| self.reads[*s].front().is_some_and(|r| r.due <= now))
                .collect();
            if !due.is_empty() {
                self.reading = Some(due[self.rng.below(due.len() as u64) as usize]);
            }
        }
        self.dut.set("rd_rsp_valid_i", self.reading.map_or(0, |s| 1 << s));
        let s = self.reading?;
        let read = &self.reads[s][0];
        let beat: Vec<u8> = (0..self.bytes)
            .map(|i| {
                if i < read.left {
                    host_byte(read.addr + i as u64)
                } else {
                    0xdd
                }
            })
            .collect();
        let last = read.left <= self.bytes;
        let mut ctl = Bits::new(RD_CTL.width());
        ctl.set(RD_CTL.field("last").0, 1, u64::from(last));
        ctl.set(RD_CTL.field("err").0, 3, if last { u64::from(read.err) } else { 0 });
        self.dut.set_wide("rd_rsp_data_i", &words(&beat));
        self.dut.set_wide("rd_rsp_ctl_i", &ctl.0);
        Some(s)
    }

    fn accept_read(&mut self, s: usize, now: u64) {
        let bits = Bits(self.dut.sampled_wide("rd_req_o"));
        let base = s as u32 * RD_REQ.width();
        let (addr_at, len_at) = (RD_REQ.field("addr").0, RD_REQ.field("len").0);
        let (addr, len) = (bits.get(base + addr_at, 64), bits.get(base + len_at, 16) as usize);
        let end = addr + len as u64;
        let err = self
            .bad_reads
            .iter()
            .find(|(r, _)| r.start < end && addr < r.end)
            .map_or(0, |(_, e)| *e);
        self.reads_seen[s].push((addr, len));
        self.reads[s].push_back(Read {
            due: now + self.manners.dma_latency,
            addr,
            left: len,
            err,
        });
    }

    fn count(&mut self) {
        let cnt = self.dut.sampled_wide("cnt_o");
        for (i, n) in self.counters.iter_mut().enumerate() {
            *n += u64::from(cnt[i / 32] >> (i % 32) & 1);
        }
        for (sum, port) in self.byte_counts.iter_mut().zip(["rx_bytes_o", "tx_bytes_o"]) {
            *sum += self.dut.sampled(port);
        }
        let (done, failed) = (self.dut.sampled("tx_done_o"), self.dut.sampled("tx_err_valid_o"));
        let errs = Bits(self.dut.sampled_wide("tx_err_o"));
        for s in 0..2 {
            self.done[s] += (done >> s & 1) as usize;
            if failed >> s & 1 == 1 {
                assert_eq!(done >> s & 1, 1, "a failure comes with its done");
                let field = |name| errs.get(s as u32 * TX_ERR.width() + TX_ERR.field(name).0, TX_ERR.field(name).1);
                self.failures.push(TxFailure {
                    source: s,
                    qp_idx: field("qp_idx") as u16,
                    psn: field("psn") as u32,
                    err: field("err") as u8,
                });
            }
        }
    }

    fn take_received(&mut self, ready: [u64; 2], width: u32) {
        let (desc, pay) = (self.dut.sampled("rx_desc_valid_o"), self.dut.sampled("rx_pay_valid_o"));
        for class in 0..2 {
            if desc & ready[0] & 1 << class != 0 {
                let all = Bits(self.dut.sampled_wide("rx_desc_o"));
                let mut one = Bits::new(RX_DESC.width());
                for i in 0..RX_DESC.width() {
                    one.set(i, 1, all.get(class as u32 * RX_DESC.width() + i, 1));
                }
                self.descs[class].push(one);
            }
            if pay & ready[1] & 1 << class != 0 {
                let all = Bits(self.dut.sampled_wide("rx_pay_data_o"));
                self.open_payload[class].extend(all.bytes(class as u32 * width, self.bytes));
                if self.dut.sampled("rx_pay_last_o") >> class & 1 == 1 {
                    let whole = std::mem::take(&mut self.open_payload[class]);
                    self.payloads[class].push(whole);
                }
            }
        }
    }

    fn take_sent(&mut self, ready: bool, now: u64) {
        let valid = self.dut.sampled("mac_tx_valid_o") == 1;
        assert!(valid || !self.tx_mid, "no gap within a frame");
        if !(valid && ready) {
            return;
        }
        let data = Bits(self.dut.sampled_wide("mac_tx_data_o"));
        let keep = Bits(self.dut.sampled_wide("mac_tx_keep_o"));
        let n = (0..self.bytes as u32).filter(|i| keep.get(*i, 1) == 1).count();
        assert!((0..n as u32).all(|i| keep.get(i, 1) == 1), "lanes are filled from 0");
        let last = self.dut.sampled("mac_tx_last_o") == 1;
        assert!(last && n > 0 || n == self.bytes, "only the last beat is short");
        if !self.tx_mid {
            self.sent.push((Vec::new(), now, now));
        }
        self.tx_frame.extend(data.bytes(0, n));
        self.tx_mid = !last;
        if last && let Some(frame) = self.sent.last_mut() {
            frame.0 = std::mem::take(&mut self.tx_frame);
            frame.2 = now;
        }
    }
}

impl Piece {
    /// Its bytes.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        match self {
            Self::Dma { len, .. } => *len,
            Self::Inline(bytes) => bytes.len(),
        }
    }

    /// What it brings.
    pub fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Dma { addr, len } => (0..*len as u64).map(|i| host_byte(addr + i)).collect(),
            Self::Inline(bytes) => bytes.clone(),
        }
    }
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes
        .chunks(4)
        .map(|c| c.iter().rev().fold(0, |v, b| v << 8 | u32::from(*b)))
        .collect()
}
