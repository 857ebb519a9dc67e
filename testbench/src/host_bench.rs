// SPDX-License-Identifier: Apache-2.0
//! The host side of the core (`rnic_host`) on a bench: a root complex with host memory at its TLP ports, and DMA
//! clients at its inner ones. It is made for tests and panics when the block breaks a contract.
//!
//! The root complex is as unkind as PCI Express allows: a read is served from memory as it stands when the request
//! arrives, its completions come late, cut anywhere at 64 bytes, and those of different tags in any order.

use std::collections::{BTreeMap, VecDeque};

use openrnic_sim::model::{BlockModel, PortId};

use crate::qp_bench::Random;

/// First address of host memory.
pub const BASE: u64 = 0x12_3450_0000;
/// Its size.
pub const SIZE: usize = 256 * 1024;
/// DMA read clients.
pub const READERS: usize = 6;
/// DMA write clients.
pub const WRITERS: usize = 6;
/// Tags of the DMA reads.
pub const TAGS: usize = 16;
/// log2 of the QP table.
pub const LOG_QP: u32 = 8;

/// Counters by number (`CounterId`).
#[allow(missing_docs)]
pub mod counter {
    pub const RX_FRAMES: usize = 0;
    pub const RX_BYTES: usize = 2;
    pub const TX_BYTES: usize = 3;
    pub const DB_ACCEPTED: usize = 41;
    pub const DB_DROP_QPN: usize = 42;
    pub const DB_DROP_PAGE: usize = 43;
    pub const DB_DROP_RANGE: usize = 44;
    pub const DB_DROP_STATE: usize = 45;
    pub const DB_DROP_FORMAT: usize = 46;
    pub const MSIX_SENT: usize = 59;
    pub const DMA_RD_ABORT: usize = 60;
    pub const DMA_RD_POISON: usize = 61;
    pub const DMA_RD_TIMEOUT: usize = 62;
    pub const DMA_RD_MALFORMED: usize = 63;
    pub const DMA_CPL_UNEXPECTED: usize = 64;
    pub const MMIO_UR: usize = 65;
    pub const PCIE_RD_BYTES: usize = 66;
    pub const PCIE_WR_BYTES: usize = 67;
    pub const COUNT: usize = 68;
}

/// How the root complex and the clients behave; "one in n" with n = 0 is never.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub struct Manners {
    /// Cycles from a read to its first completion: at least, and how many more by chance.
    pub latency: u64,
    pub jitter: u64,
    /// Completions of different tags in any order.
    pub reorder: bool,
    /// A completion ends at each 64-byte boundary with this chance of one in n.
    pub split_one_in: u64,
    /// The host does not take a request beat, one cycle in n.
    pub rq_stall_one_in: u64,
    /// A gap before a completion beat, one cycle in n.
    pub rc_gap_one_in: u64,
    /// A read client does not take a beat, one cycle in n.
    pub client_stall_one_in: u64,
    /// A write client pauses between beats, one cycle in n.
    pub client_gap_one_in: u64,
    /// The host does not take a completion of its MMIO reads, one cycle in n; 1: never takes one.
    pub cc_stall_one_in: u64,
}

impl Manners {
    /// Answers at once and in large pieces, never stalls.
    pub const PROMPT: Self = Self {
        latency: 0,
        jitter: 0,
        reorder: false,
        split_one_in: 0,
        rq_stall_one_in: 0,
        rc_gap_one_in: 0,
        client_stall_one_in: 0,
        client_gap_one_in: 0,
        cc_stall_one_in: 0,
    };
    /// Everything at random.
    pub const BUSY: Self = Self {
        latency: 3,
        jitter: 60,
        reorder: true,
        split_one_in: 3,
        rq_stall_one_in: 5,
        rc_gap_one_in: 5,
        client_stall_one_in: 6,
        client_gap_one_in: 6,
        cc_stall_one_in: 3,
    };
}

/// What the root complex does wrong with one read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Unsuccessful status (UR 1, CA 4) instead of this part, and nothing after it.
    Status(u64, usize),
    /// This part is poisoned.
    Poison(usize),
    /// Nothing comes.
    Missing,
    /// Everything comes that many cycles late.
    Late(u64),
    /// The byte count of this part is wrong.
    ByteCount(usize),
    /// The lower address of this part is wrong.
    LowerAddress(usize),
    /// This part is a double word longer than it says.
    TooLong(usize),
    /// This part lacks its last double word, and says so, but not at a boundary.
    OffBoundary(usize),
    /// The stream ends a beat before the length of this part says.
    Cut(usize),
    /// The last part comes twice.
    Twice,
}

/// A request that came out.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Tlp {
    pub write: bool,
    pub addr: u64,
    pub dw_len: usize,
    pub first_be: u64,
    pub last_be: u64,
    pub tag: usize,
    /// Lanes as they came (writes).
    pub data: Vec<u8>,
    /// Cycle of its last beat.
    pub cycle: u64,
}

impl Tlp {
    /// Bytes from the first to the last enabled one.
    pub fn bytes(&self) -> std::ops::Range<u64> {
        let first = u64::from(self.first_be.trailing_zeros());
        let last_be = if self.dw_len == 1 { self.first_be } else { self.last_be };
        let start = self.addr + first;
        let end = self.addr + 4 * (self.dw_len as u64 - 1) + 64 - u64::from(last_be.leading_zeros());
        start..end
    }
}

/// A completion to be sent.
#[derive(Debug, Clone)]
struct Part {
    tag: usize,
    lower_addr: u64,
    byte_count: u64,
    status: u64,
    poisoned: bool,
    dw_len: u64,
    data: Vec<u8>,
    beats: usize,
}

#[derive(Debug)]
struct Outstanding {
    tag: usize,
    due: u64,
    parts: VecDeque<Part>,
}

/// A finished read of a client.
#[derive(Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct ReadDone {
    pub client: usize,
    pub addr: u64,
    pub len: usize,
    pub data: Vec<u8>,
    /// DmaErr.
    pub err: u64,
    pub accepted: u64,
    pub done: u64,
}

impl std::fmt::Debug for ReadDone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "client {}: {} bytes at {:#x}, error {}, cycles {} to {}",
            self.client, self.len, self.addr, self.err, self.accepted, self.done
        )
    }
}

#[derive(Debug, Clone)]
struct WriteJob {
    addr: u64,
    data: Vec<u8>,
    sent: usize,
}

/// An MMIO request, as it stands on the completer-request stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Mmio {
    pub write: bool,
    pub addr: u64,
    pub dw_len: u64,
    pub first_be: u64,
    pub last_be: u64,
    pub bar: u64,
    pub poisoned: bool,
    pub tag: u64,
    pub data: u64,
}

/// The answer to an MMIO read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct MmioAnswer {
    pub tag: u64,
    pub status: u64,
    pub lower_addr: u64,
    pub byte_count: u64,
    pub dw_len: u64,
    pub requester_id: u64,
    pub data: u64,
}

struct Ports {
    get: BTreeMap<&'static str, PortId>,
}

/// The block and its surroundings.
pub struct HostBench {
    /// The block.
    pub dut: BlockModel,
    ports: Ports,
    /// Bytes of a beat.
    pub beat: usize,
    /// How host and clients behave.
    pub manners: Manners,
    rng: Random,
    /// Host memory.
    pub mem: Vec<u8>,
    /// Largest payload and read that the host allows.
    pub mps: usize,
    /// See `mps`.
    pub mrrs: usize,
    /// Faults by the number of the read TLP, from 0.
    pub faults: BTreeMap<u64, Fault>,
    /// Requests seen.
    pub tlps: Vec<Tlp>,
    reads_seen: u64,
    cur_tlp: Option<Tlp>,
    held_rq: Option<Vec<u32>>,
    outstanding: Vec<Outstanding>,
    late: Vec<(u64, Part)>,
    sending: Option<(Part, usize)>,
    rd_jobs: Vec<VecDeque<(u64, usize)>>,
    rd_open: VecDeque<ReadDone>,
    /// Reads that are finished, in order.
    pub done: Vec<ReadDone>,
    wr_jobs: Vec<VecDeque<WriteJob>>,
    wr_shown: [bool; WRITERS],
    /// Messages taken: (cycle of the last beat, client, address, bytes), in order of acceptance.
    pub written: Vec<(u64, usize, u64, Vec<u8>)>,
    mmio: VecDeque<Mmio>,
    /// Longest time that a posted write was held at the completer-request stream.
    pub longest_posted_wait: u64,
    posted_wait: u64,
    /// MMIO answers, in order.
    pub answers: Vec<MmioAnswer>,
    /// Interrupt requests waiting per source.
    pub vectors: [VecDeque<u8>; 2],
    /// Interrupt requests taken: (cycle, vector).
    pub vectors_taken: Vec<(u64, u8)>,
    /// Hot words by index, as the port has them (65 bits: low 64, valid).
    pub hot: BTreeMap<u64, (u64, bool)>,
    hot_idx: u64,
    /// Kicks: (is the send queue's, index).
    pub kicks: Vec<(bool, u64)>,
    /// Doorbells of completion queues: page, value.
    pub cq_dbs: Vec<(u64, u64)>,
    /// Doorbells of shared receive queues: page, value.
    pub srq_dbs: Vec<(u64, u64)>,
    /// Doorbells of event queues.
    pub eq_dbs: Vec<u64>,
    /// Command doorbells.
    pub producers: Vec<u64>,
    /// Restarts of the command ring.
    pub restarts: u64,
    /// Times that the device was made fatal.
    pub fatals: u64,
}

const HDR_LEN: u32 = 64;

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes
        .chunks(4)
        .map(|c| c.iter().rev().fold(0, |w, b| w << 8 | u32::from(*b)))
        .collect()
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

fn field(hdr: &[u32], lsb: u32, width: u32) -> u64 {
    (0..width)
        .map(|i| u64::from(hdr[(lsb + i) as usize / 32] >> ((lsb + i) % 32) & 1) << i)
        .sum()
}

impl HostBench {
    /// Builds the block at a data width; stalls and the like come from the seed.
    pub fn new(data_width: u32, seed: u64) -> Self {
        Self::built(data_width, seed, &[])
    }

    /// The same with further parameters.
    #[allow(clippy::expect_used)]
    pub fn built(data_width: u32, seed: u64, params: &[(&str, u32)]) -> Self {
        let mut builder = BlockModel::builder("rnic_host")
            .param("DataW", data_width)
            .param("QpIdxW", LOG_QP)
            .param("DmaTags", TAGS)
            .param("NumRd", READERS)
            .param("NumWr", WRITERS)
            .random_init(seed);
        for (name, value) in params {
            builder = builder.param(name, value);
        }
        // Features can be cut out to see a test turn red: OPENRNIC_CUT=RNIC_CUT_DMA_ORDER.
        if let Ok(cut) = std::env::var("OPENRNIC_CUT") {
            builder = builder.define(&cut);
        }
        let dut = builder.build().expect("rnic_host builds");
        let names = [
            "cq_ready_o",
            "cc_valid_o",
            "rq_valid_o",
            "rq_last_o",
            "rc_ready_o",
            "rd_req_ready_o",
            "rd_rsp_valid_o",
            "rd_rsp_ctl_o",
            "wr_ready_o",
            "msix_ready_o",
            "sq_kick_valid_o",
            "rq_kick_valid_o",
            "cq_db_valid_o",
            "srq_db_valid_o",
            "eq_db_valid_o",
            "cmd_producer_we_o",
            "cmd_restart_o",
            "force_fatal_o",
            "db_hot_idx_o",
            "cq_valid_i",
            "cc_ready_i",
            "rq_ready_i",
            "rc_valid_i",
            "rd_req_valid_i",
            "rd_rsp_ready_i",
            "wr_valid_i",
            "wr_last_i",
            "msix_valid_i",
        ];
        let ports = Ports {
            get: names.into_iter().map(|n| (n, dut.port(n))).collect(),
        };
        let mut rng = Random::new(seed);
        let mut bench = Self {
            dut,
            ports,
            beat: data_width as usize / 8,
            manners: Manners::PROMPT,
            mem: (0..SIZE).map(|_| rng.bits() as u8).collect(),
            rng,
            mps: 256,
            mrrs: 512,
            faults: BTreeMap::new(),
            tlps: Vec::new(),
            reads_seen: 0,
            cur_tlp: None,
            held_rq: None,
            outstanding: Vec::new(),
            late: Vec::new(),
            sending: None,
            rd_jobs: vec![VecDeque::new(); READERS],
            rd_open: VecDeque::new(),
            done: Vec::new(),
            wr_jobs: vec![VecDeque::new(); WRITERS],
            wr_shown: [false; WRITERS],
            written: Vec::new(),
            mmio: VecDeque::new(),
            longest_posted_wait: 0,
            posted_wait: 0,
            answers: Vec::new(),
            vectors: Default::default(),
            vectors_taken: Vec::new(),
            hot: BTreeMap::new(),
            hot_idx: 0,
            kicks: Vec::new(),
            cq_dbs: Vec::new(),
            srq_dbs: Vec::new(),
            eq_dbs: Vec::new(),
            producers: Vec::new(),
            restarts: 0,
            fatals: 0,
        };
        // Inputs start at random, too.
        let inputs: Vec<_> = bench
            .dut
            .ports()
            .iter()
            .filter(|p| p.name.ends_with("_i") && p.name != "clk_i")
            .map(|p| (p.name.clone(), p.width))
            .collect();
        for (name, width) in inputs {
            bench.dut.set_wide(&name, &vec![0; width.div_ceil(32) as usize]);
        }
        bench.dut.set("bus_master_en_i", 1);
        bench.dut.reset(3);
        bench
    }

    fn p(&self, name: &'static str) -> u64 {
        self.dut.get_id(self.ports.get[name])
    }

    fn set(&mut self, name: &'static str, value: u64) {
        let id = self.ports.get[name];
        self.dut.set_id(id, value);
    }

    fn one_in(&mut self, n: u64) -> bool {
        n != 0 && self.rng.chance(1, n)
    }

    /// Bytes of host memory.
    pub fn at(&self, addr: u64, len: usize) -> &[u8] {
        let start = (addr - BASE) as usize;
        &self.mem[start..start + len]
    }

    /// A client asks for bytes.
    pub fn read(&mut self, client: usize, addr: u64, len: usize) {
        self.rd_jobs[client].push_back((addr, len));
    }

    /// A client writes bytes.
    pub fn write(&mut self, client: usize, addr: u64, data: Vec<u8>) {
        self.wr_jobs[client].push_back(WriteJob { addr, data, sent: 0 });
    }

    /// The host makes a request.
    pub fn mmio(&mut self, request: Mmio) {
        self.mmio.push_back(request);
    }

    /// Whether clients and host have nothing under way (reads that the host never answers excepted).
    pub fn idle(&self) -> bool {
        self.rd_jobs.iter().all(VecDeque::is_empty)
            && self.wr_jobs.iter().all(VecDeque::is_empty)
            && self.rd_open.is_empty()
            && self.outstanding.is_empty()
            && self.sending.is_none()
            && self.mmio.is_empty()
            && self.late.is_empty()
    }

    /// Goes on until nothing is under way, and a little longer for what is in the pipe.
    pub fn run(&mut self, budget: u64) {
        let mut left = budget;
        while !self.idle() {
            assert!(
                left > 0,
                "not idle after {budget} cycles: {} reads open, {} outstanding",
                self.rd_open.len(),
                self.outstanding.len()
            );
            left -= 1;
            self.cycle();
        }
        self.cycles(40);
    }

    /// Some cycles.
    pub fn cycles(&mut self, n: u64) {
        for _ in 0..n {
            self.cycle();
        }
    }

    /// One cycle.
    pub fn cycle(&mut self) {
        let now = self.dut.cycles();
        let m = self.manners;
        // ---- inputs
        let rq_ready = !self.one_in(m.rq_stall_one_in);
        self.set("rq_ready_i", u64::from(rq_ready));
        let cc_ready = !self.one_in(m.cc_stall_one_in);
        self.set("cc_ready_i", u64::from(cc_ready));
        self.show_completion(now);
        let mut valid = 0;
        for c in 0..READERS {
            if let Some(&(addr, len)) = self.rd_jobs[c].front() {
                valid |= 1 << c;
                let lsb = 80 * c as u32;
                self.dut.set_bits("rd_req_i", lsb, 16, len as u64);
                self.dut.set_bits("rd_req_i", lsb + 16, 64, addr);
            }
        }
        self.set("rd_req_valid_i", valid);
        let rsp_ready = (0..READERS)
            .map(|c| u64::from(!self.one_in(m.client_stall_one_in)) << c)
            .sum();
        self.set("rd_rsp_ready_i", rsp_ready);
        let wr_valid = self.show_writes();
        let msix_valid = (0..2).filter(|&s| !self.vectors[s].is_empty()).map(|s| 1 << s).sum();
        self.set("msix_valid_i", msix_valid);
        for s in 0..2 {
            if let Some(&v) = self.vectors[s].front() {
                self.dut.set_bits("msix_vec_i", 8 * s as u32, 8, u64::from(v));
            }
        }
        self.show_mmio();
        let (hot, hot_valid) = self.hot.get(&self.hot_idx).copied().unwrap_or((0, false));
        self.dut.set_bits("db_hot_i", 0, 64, hot);
        self.dut.set_bits("db_hot_i", 64, 1, u64::from(hot_valid));
        self.dut.eval();
        // ---- what happens in this cycle
        assert_eq!(self.p("rc_ready_o"), 1, "completions always sink");
        self.hot_idx = self.p("db_hot_idx_o");
        self.take_rq(now, rq_ready);
        if self.p("cc_valid_o") == 1 && cc_ready {
            let hdr = self.dut.get_wide("cc_hdr_o");
            let data = self.dut.get_bits("cc_data_o", 0, 64);
            self.answers.push(MmioAnswer {
                lower_addr: field(&hdr, 0, 7),
                byte_count: field(&hdr, 16, 13),
                status: field(&hdr, 32, 3),
                dw_len: field(&hdr, HDR_LEN, 11),
                tag: field(&hdr, 96, 10),
                requester_id: field(&hdr, 112, 16),
                data,
            });
        }
        self.take_reads(now, valid, rsp_ready);
        let ready = self.p("wr_ready_o");
        for c in 0..WRITERS {
            if wr_valid >> c & ready >> c & 1 == 0 {
                continue;
            }
            self.wr_shown[c] = false;
            let job = &mut self.wr_jobs[c][0];
            job.sent += self.beat;
            if job.sent >= job.data.len()
                && let Some(job) = self.wr_jobs[c].pop_front()
            {
                self.written.push((now, c, job.addr, job.data));
            }
        }
        let taken = msix_valid & self.p("msix_ready_o");
        for s in 0..2 {
            if taken >> s & 1 == 1
                && let Some(v) = self.vectors[s].pop_front()
            {
                self.vectors_taken.push((now, v));
            }
        }
        if let Some(request) = self.mmio.front() {
            let posted = request.write;
            if self.p("cq_ready_o") == 1 {
                self.posted_wait = 0;
                self.mmio_beat_taken();
            } else if posted {
                self.posted_wait += 1;
                self.longest_posted_wait = self.longest_posted_wait.max(self.posted_wait);
            }
        }
        if self.p("sq_kick_valid_o") == 1 {
            self.kicks.push((true, self.dut.get("sq_kick_idx_o")));
        }
        if self.p("rq_kick_valid_o") == 1 {
            self.kicks.push((false, self.dut.get("rq_kick_idx_o")));
        }
        if self.p("cq_db_valid_o") == 1 {
            self.cq_dbs
                .push((self.dut.get_bits("cq_db_o", 64, 8), self.dut.get_bits("cq_db_o", 0, 64)));
        }
        if self.p("srq_db_valid_o") == 1 {
            self.srq_dbs.push((
                self.dut.get_bits("srq_db_o", 64, 8),
                self.dut.get_bits("srq_db_o", 0, 64),
            ));
        }
        if self.p("eq_db_valid_o") == 1 {
            self.eq_dbs.push(self.dut.get_bits("eq_db_o", 0, 64));
        }
        if self.p("cmd_producer_we_o") == 1 {
            self.producers.push(self.dut.get("cmd_producer_o"));
        }
        self.restarts += self.p("cmd_restart_o");
        self.fatals += self.p("force_fatal_o");
        self.dut.clock();
    }

    // ---------------------------------------------------------------- MMIO

    fn show_mmio(&mut self) {
        self.set("cq_valid_i", u64::from(!self.mmio.is_empty()));
        let Some(r) = self.mmio.front().copied() else { return };
        for (lsb, width, value) in [
            (0, 64, r.addr),
            (64, 11, r.dw_len),
            (76, 1, u64::from(r.write)),
            (77, 1, u64::from(r.poisoned)),
            (78, 2, r.bar),
            (80, 4, r.first_be),
            (84, 4, r.last_be),
            (96, 10, r.tag),
            (112, 16, 0x1000 + r.tag),
        ] {
            self.dut.set_bits("cq_hdr_i", lsb, width, value);
        }
        self.dut.set_bits("cq_data_i", 0, 64, r.data);
        let more = r.write && r.dw_len as usize * 4 > self.beat;
        self.dut.set("cq_last_i", u64::from(!more));
    }

    fn mmio_beat_taken(&mut self) {
        let beat = self.beat;
        let Some(r) = self.mmio.front_mut() else { return };
        if r.write && r.dw_len as usize * 4 > beat {
            // The header is held beside every beat in truth; a block may look at it in the first one only. What is left of
            // the length is all that this bench keeps.
            r.dw_len -= beat as u64 / 4;
            return;
        }
        self.mmio.pop_front();
    }

    /// An MMIO write of 4 bytes.
    pub fn write32(&mut self, addr: u64, value: u32) {
        self.mmio(Mmio {
            write: true,
            addr,
            dw_len: 1,
            first_be: 0xf,
            last_be: 0,
            bar: 0,
            poisoned: false,
            tag: 0,
            data: u64::from(value),
        });
    }

    /// An MMIO write of 8 bytes.
    pub fn write64(&mut self, addr: u64, value: u64) {
        self.mmio(Mmio {
            write: true,
            addr,
            dw_len: 2,
            first_be: 0xf,
            last_be: 0xf,
            bar: 0,
            poisoned: false,
            tag: 0,
            data: value,
        });
    }

    /// Puts an MMIO read of 4 or 8 bytes into the stream.
    pub fn post_read(&mut self, addr: u64, bytes: u64, tag: u64) {
        self.mmio(Mmio {
            write: false,
            addr,
            dw_len: bytes / 4,
            first_be: 0xf,
            last_be: if bytes > 4 { 0xf } else { 0 },
            bar: 0,
            poisoned: false,
            tag,
            data: 0,
        });
    }

    /// An MMIO request that wants an answer.
    ///
    /// # Panics
    /// When none comes.
    pub fn ask(&mut self, request: Mmio) -> MmioAnswer {
        let before = self.answers.len();
        self.mmio(request);
        for _ in 0..400 {
            if self.answers.len() > before {
                return self.answers[before];
            }
            self.cycle();
        }
        panic!("no answer to {request:x?}");
    }

    fn read_bytes(&mut self, addr: u64, bytes: u64) -> u64 {
        let before = self.answers.len();
        self.post_read(addr, bytes, 5);
        for _ in 0..400 {
            if self.answers.len() > before {
                break;
            }
            self.cycle();
        }
        let answer = self.answers[before];
        assert_eq!(
            (answer.status, answer.tag, answer.dw_len, answer.byte_count),
            (0, 5, bytes / 4, bytes),
            "read of {addr:#x}: {answer:x?}"
        );
        answer.data
    }

    /// An MMIO read of 4 bytes that must succeed.
    pub fn read32(&mut self, addr: u64) -> u32 {
        self.read_bytes(addr, 4) as u32
    }

    /// An MMIO read of 8 bytes that must succeed.
    pub fn read64(&mut self, addr: u64) -> u64 {
        self.read_bytes(addr, 8)
    }

    /// A counter, once the last pulses have reached it.
    pub fn counter(&mut self, id: usize) -> u64 {
        self.cycles(2 * counter::COUNT as u64 + 8);
        self.read64(0x1000 + 8 * id as u64)
    }

    // ---------------------------------------------------------------- requests of the device

    fn take_rq(&mut self, now: u64, ready: bool) {
        let valid = self.p("rq_valid_o") == 1;
        if !valid {
            assert!(self.held_rq.is_none(), "a request is withdrawn");
            return;
        }
        let mut seen = self.dut.get_wide("rq_hdr_o");
        let hdr = seen.clone();
        let data = self.dut.get_wide("rq_data_o");
        seen.extend(&data);
        if let Some(held) = &self.held_rq {
            assert_eq!(*held, seen, "a request changes while it waits");
        }
        self.held_rq = (!ready).then_some(seen);
        if !ready {
            return;
        }
        let tlp = Tlp {
            write: field(&hdr, 76, 1) == 1,
            addr: field(&hdr, 0, 64),
            dw_len: field(&hdr, HDR_LEN, 11) as usize,
            first_be: field(&hdr, 80, 4),
            last_be: field(&hdr, 84, 4),
            tag: field(&hdr, 96, 10) as usize,
            data: Vec::new(),
            cycle: now,
        };
        let mut cur = match self.cur_tlp.take() {
            None => tlp.clone(),
            Some(cur) => {
                assert_eq!(
                    (cur.write, cur.addr, cur.dw_len, cur.first_be, cur.last_be),
                    (tlp.write, tlp.addr, tlp.dw_len, tlp.first_be, tlp.last_be),
                    "the header is held"
                );
                cur
            }
        };
        cur.data.extend(bytes(&data));
        cur.cycle = now;
        if self.p("rq_last_o") == 0 {
            assert!(
                cur.write && cur.data.len() < 4 * cur.dw_len,
                "{cur:x?} goes on too long"
            );
            self.cur_tlp = Some(cur);
            return;
        }
        self.tlp_done(now, cur);
    }

    fn tlp_done(&mut self, now: u64, mut tlp: Tlp) {
        assert!(tlp.dw_len >= 1 && tlp.addr.is_multiple_of(4), "{tlp:x?}");
        let contiguous = |be: u64| {
            be != 0 && (be >> be.trailing_zeros()).count_zeros() == (be >> be.trailing_zeros()).leading_zeros()
        };
        if tlp.dw_len == 1 {
            assert!(contiguous(tlp.first_be) && tlp.last_be == 0, "{tlp:x?}");
        } else {
            assert!(
                contiguous(tlp.first_be) && tlp.first_be >> 3 == 1 && contiguous(tlp.last_be) && tlp.last_be & 1 == 1,
                "{tlp:x?}"
            );
        }
        let range = tlp.bytes();
        assert_eq!(range.start >> 12, (range.end - 1) >> 12, "{tlp:x?} crosses 4 KiB");
        assert!(
            range.start >= BASE && range.end <= BASE + SIZE as u64,
            "{tlp:x?} leaves host memory"
        );
        let start = (range.start - BASE) as usize;
        let len = (range.end - range.start) as usize;
        if tlp.write {
            assert!(4 * tlp.dw_len <= self.mps, "{tlp:x?} is longer than max payload");
            assert_eq!(tlp.data.len(), (4 * tlp.dw_len).next_multiple_of(self.beat), "{tlp:x?}");
            tlp.data.truncate(4 * tlp.dw_len);
            let skip = (range.start - tlp.addr) as usize;
            self.mem[start..start + len].copy_from_slice(&tlp.data[skip..skip + len]);
        } else {
            assert!(4 * tlp.dw_len <= self.mrrs, "{tlp:x?} is longer than max read request");
            tlp.data.clear();
            assert!(
                !self.outstanding.iter().any(|o| o.tag == tlp.tag)
                    && self.sending.as_ref().is_none_or(|(p, _)| p.tag != tlp.tag),
                "{tlp:x?} uses a tag twice"
            );
            self.serve(now, &tlp);
        }
        self.tlps.push(tlp);
    }

    fn serve(&mut self, now: u64, tlp: &Tlp) {
        let fault = self.faults.get(&self.reads_seen).copied();
        self.reads_seen += 1;
        let range = tlp.bytes();
        let mut parts = VecDeque::new();
        let mut at = range.start;
        while at < range.end {
            let mut end = range.end;
            let mut cut = (at | 63) + 1;
            while cut < range.end {
                if self.one_in(self.manners.split_one_in) {
                    end = cut;
                    break;
                }
                cut += 64;
            }
            let first_dw = at & !3;
            let last_dw = end.next_multiple_of(4);
            let mut data: Vec<u8> = (first_dw..last_dw)
                .map(|a| self.mem.get((a - BASE) as usize).copied().unwrap_or(0))
                .collect();
            // What is not asked for is not told.
            for (i, b) in data.iter_mut().enumerate() {
                let a = first_dw + i as u64;
                if a < at || a >= end {
                    *b = 0xee;
                }
            }
            parts.push_back(Part {
                tag: tlp.tag,
                lower_addr: at & 0x7f,
                byte_count: range.end - at,
                status: 0,
                poisoned: false,
                dw_len: (last_dw - first_dw) / 4,
                beats: data.len().div_ceil(self.beat),
                data,
            });
            at = end;
        }
        let last = parts.len() - 1;
        let mut due = now + 1 + self.manners.latency + self.rng.below(self.manners.jitter + 1);
        let beat = self.beat;
        match fault {
            None => {}
            Some(Fault::Missing) => return,
            Some(Fault::Late(cycles)) => {
                for p in parts.drain(..) {
                    self.late.push((now + cycles, p));
                }
                return;
            }
            Some(Fault::Status(status, n)) => {
                parts.truncate(n.min(last) + 1);
                let p = &mut parts[n.min(last)];
                (p.status, p.dw_len, p.beats) = (status, 0, 1);
                p.data.clear();
            }
            Some(Fault::Poison(n)) => parts[n.min(last)].poisoned = true,
            Some(Fault::ByteCount(n)) => parts[n.min(last)].byte_count ^= 4,
            Some(Fault::LowerAddress(n)) => parts[n.min(last)].lower_addr ^= 0x40,
            Some(Fault::TooLong(n)) => {
                // A part that is longer by all that is left would be a correct completion of other data.
                let all = n + 1 == last && parts[last].dw_len == 1;
                let p = &mut parts[if all { last } else { n.min(last) }];
                p.dw_len += 1;
                p.data.extend([0x55; 4]);
                p.beats = p.data.len().div_ceil(beat);
            }
            Some(Fault::OffBoundary(n)) => {
                let p = &mut parts[n.min(last)];
                p.dw_len -= 1;
                let len = p.data.len() - 4;
                p.data.truncate(len);
                p.beats = p.data.len().div_ceil(beat).max(1);
            }
            Some(Fault::Cut(n)) => parts[n.min(last)].beats -= 1,
            Some(Fault::Twice) => {
                let p = parts[last].clone();
                parts.push_back(p);
            }
        }
        if !self.manners.reorder
            && let Some(o) = self.outstanding.last()
        {
            due = due.max(o.due);
        }
        self.outstanding.push(Outstanding {
            tag: tlp.tag,
            due,
            parts,
        });
    }

    fn show_completion(&mut self, now: u64) {
        let gap = self.one_in(self.manners.rc_gap_one_in);
        if self.sending.is_none() {
            if let Some(i) = self.late.iter().position(|(due, _)| *due <= now) {
                self.sending = Some((self.late.remove(i).1, 0));
            } else {
                let ready: Vec<usize> = (0..self.outstanding.len())
                    .filter(|&i| self.outstanding[i].due <= now)
                    .collect();
                if !ready.is_empty() {
                    let i = if self.manners.reorder {
                        *self.rng.pick(&ready)
                    } else {
                        ready[0]
                    };
                    if let Some(part) = self.outstanding[i].parts.pop_front() {
                        self.sending = Some((part, 0));
                    }
                    if self.outstanding[i].parts.is_empty() {
                        self.outstanding.remove(i);
                    }
                }
            }
        }
        let Some((part, sent)) = self.sending.clone() else {
            self.set("rc_valid_i", 0);
            return;
        };
        if gap {
            self.set("rc_valid_i", 0);
            return;
        }
        let last = sent + 1 >= part.beats;
        self.set("rc_valid_i", 1);
        for (lsb, width, value) in [
            (0, 7, part.lower_addr),
            (16, 13, part.byte_count),
            (32, 3, part.status),
            (40, 1, u64::from(part.poisoned)),
            (64, 11, part.dw_len),
            (96, 10, part.tag as u64),
        ] {
            self.dut.set_bits("rc_hdr_i", lsb, width, value);
        }
        let mut lanes = vec![0xcc; self.beat];
        for (i, lane) in lanes.iter_mut().enumerate() {
            if let Some(b) = part.data.get(sent * self.beat + i) {
                *lane = *b;
            }
        }
        self.dut.set_wide("rc_data_i", &words(&lanes));
        self.dut.set("rc_last_i", u64::from(last));
        self.sending = (!last).then_some((part, sent + 1));
    }

    /// A completion out of nowhere.
    pub fn stray_completion(&mut self, tag: usize, len: usize) {
        let now = self.dut.cycles();
        self.late.push((
            now,
            Part {
                tag,
                lower_addr: 0,
                byte_count: len as u64,
                status: 0,
                poisoned: false,
                dw_len: len as u64 / 4,
                data: vec![0x99; len],
                beats: len.div_ceil(self.beat),
            },
        ));
    }

    // ---------------------------------------------------------------- clients

    fn take_reads(&mut self, now: u64, valid: u64, rsp_ready: u64) {
        let rsp_valid = self.p("rd_rsp_valid_o");
        assert!(rsp_valid.count_ones() <= 1, "one client a beat");
        if rsp_valid & rsp_ready != 0 {
            let client = rsp_valid.trailing_zeros() as usize;
            let ctl = self.p("rd_rsp_ctl_o");
            let data = bytes(&self.dut.get_wide("rd_rsp_data_o"));
            let Some(open) = self.rd_open.front_mut() else {
                panic!("client {client} is given data that nobody asked for")
            };
            assert_eq!(open.client, client, "data come in the order of the requests");
            let left = open.len - open.data.len();
            open.data.extend(&data[..left.min(self.beat)]);
            let last = ctl >> 3 == 1;
            assert_eq!(
                last,
                left <= self.beat,
                "client {client}: {left} bytes are left, last is {last}"
            );
            if last && let Some(mut open) = self.rd_open.pop_front() {
                open.err = ctl & 7;
                open.done = now;
                self.done.push(open);
            } else {
                assert_eq!(ctl & 7, 0, "an error stands on the last beat");
            }
        }
        let taken = valid & self.p("rd_req_ready_o");
        assert!(taken.count_ones() <= 1, "one request a cycle");
        if taken != 0 {
            let client = taken.trailing_zeros() as usize;
            if let Some((addr, len)) = self.rd_jobs[client].pop_front() {
                self.rd_open.push_back(ReadDone {
                    client,
                    addr,
                    len,
                    data: Vec::new(),
                    err: 0,
                    accepted: now,
                    done: 0,
                });
            }
        }
    }

    fn show_writes(&mut self) -> u64 {
        let mut valid = 0;
        let mut last = 0;
        for c in 0..WRITERS {
            if self.wr_jobs[c].is_empty() {
                continue;
            }
            // Once shown, a beat stays.
            if !self.wr_shown[c] && self.one_in(self.manners.client_gap_one_in) {
                continue;
            }
            self.wr_shown[c] = true;
            valid |= 1 << c;
            let job = &self.wr_jobs[c][0];
            let end = job.data.len().min(job.sent + self.beat);
            let mut lanes = job.data[job.sent..end].to_vec();
            lanes.resize(self.beat, 0xdd);
            if end == job.data.len() {
                last |= 1 << c;
            }
            let (addr, len) = (job.addr, job.data.len() as u64);
            let lsb = 80 * c as u32;
            self.dut.set_bits("wr_hdr_i", lsb, 16, len);
            self.dut.set_bits("wr_hdr_i", lsb + 16, 64, addr);
            for (i, w) in words(&lanes).iter().enumerate() {
                self.dut
                    .set_bits("wr_data_i", (8 * self.beat * c + 32 * i) as u32, 32, u64::from(*w));
            }
        }
        self.set("wr_valid_i", valid);
        self.set("wr_last_i", last);
        valid
    }

    /// How far the posted stream is: writes seen at the host.
    pub fn writes_seen(&self) -> impl Iterator<Item = &Tlp> {
        self.tlps.iter().filter(|t| t.write)
    }
}

/// What a doorbell looks at in a QP's hot word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Hot {
    pub valid: bool,
    pub state: u64,
    pub has_srq: bool,
    pub uar: u64,
    pub log_sq: u64,
    pub log_rq: u64,
    pub generation: u64,
    pub epoch: u64,
}

impl Hot {
    /// As the port has it.
    pub fn word(&self) -> (u64, bool) {
        let word = self.epoch
            | self.generation << 16
            | self.log_rq << 32
            | self.log_sq << 36
            | self.uar << 40
            | u64::from(self.has_srq) << 54
            | 2 << 57
            | self.state << 61;
        (word, self.valid)
    }
}

pub use crate::seed;
