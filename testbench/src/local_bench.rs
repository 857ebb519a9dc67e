// SPDX-License-Identifier: Apache-2.0
//! `rnic_local_mem` on a bench: the core's request and completion streams on one side, a host and an AXI4 memory on the other. It
//! is made for tests and panics when the block breaks a contract.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use openrnic_driver::spec::LOCAL_MEM_BASE;
use openrnic_sim::model::BlockModel;
use openrnic_sim::rng::Stream;

/// log2 of the memory on the bench.
pub const LOG_SIZE: u32 = 13;
const SIZE: usize = 1 << LOG_SIZE;
/// Cycles after which the block gives a silent memory up.
pub const PATIENCE: u64 = 300;

/// A request of the core.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// A write (MWr); else a read (MRd).
    pub write: bool,
    /// Bus address of its first double word.
    pub addr: u64,
    /// Double words.
    pub dw_len: usize,
    /// Byte enables of the first double word.
    pub first_be: u8,
    /// Of the last one; 0 when there is one.
    pub last_be: u8,
    /// Of a read.
    pub tag: u16,
    /// Of a write: all lanes of its double words.
    pub data: Vec<u8>,
}

impl Request {
    /// It is for the memory on the board.
    pub fn local(&self) -> bool {
        self.addr >> LOG_SIZE == LOCAL_MEM_BASE >> LOG_SIZE
    }

    /// Its bytes that are enabled: offset in the request.
    pub fn enabled(&self) -> Vec<usize> {
        let be = |dw: usize| match dw {
            0 => self.first_be,
            d if d + 1 == self.dw_len => self.last_be,
            _ => 15,
        };
        (0..4 * self.dw_len).filter(|b| be(b / 4) >> (b % 4) & 1 == 1).collect()
    }

    fn header(&self) -> Vec<u32> {
        let word2 = self.dw_len as u32 | u32::from(self.write) << 12;
        let word2 = word2 | u32::from(self.first_be) << 16 | u32::from(self.last_be) << 20;
        vec![self.addr as u32, (self.addr >> 32) as u32, word2, u32::from(self.tag)]
    }
}

/// A completion, of the host or of the memory on the board.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Completion {
    pub tag: u16,
    pub status: u64,
    pub dw_len: usize,
    pub byte_count: u64,
    pub lower_addr: u64,
    pub data: Vec<u8>,
}

impl Completion {
    fn header(&self) -> Vec<u32> {
        let low = self.lower_addr as u32 | (self.byte_count as u32) << 16;
        vec![low, self.status as u32, self.dw_len as u32, u32::from(self.tag)]
    }
}

/// How the surroundings behave: chances.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub struct Manners {
    pub pause: f64,
    pub bad: f64,
    pub latency: u64,
    /// The memory takes and answers nothing.
    pub silent: bool,
}

#[derive(Debug)]
struct ReadBurst {
    due: u64,
    addr: usize,
    left: usize,
    failed: bool,
    first: bool,
}

/// A read of the memory that has no completion yet: for each byte what it may be.
#[derive(Debug)]
struct Expected {
    request: Request,
    bytes: Vec<BTreeSet<u8>>,
}

/// Block and surroundings.
pub struct LocalBench {
    dut: BlockModel,
    beat: usize,
    rng: Stream,
    /// How the surroundings behave.
    pub manners: Manners,
    /// Requests that the core has still to make.
    pub requests: VecDeque<Request>,
    sent: usize,
    /// The core's request, the host's completion: offered and not taken.
    offered: [bool; 2],
    /// Requests that reached the host, in order.
    pub to_host: Vec<Request>,
    /// Completions that the host has still to send, as it was asked.
    pub from_host: VecDeque<Completion>,
    host_sent: usize,
    /// Completions that reached the core.
    pub completions: Vec<Completion>,
    completion_now: Option<Completion>,
    /// The memory on the board.
    pub memory: Vec<u8>,
    /// What it must be.
    pub image: Vec<u8>,
    expected: BTreeMap<u16, Expected>,
    writes_before: VecDeque<usize>,
    local_writes: usize,
    answered_writes: usize,
    aw: VecDeque<(usize, usize)>,
    w: Vec<(Vec<u8>, u64, bool)>,
    bursts_w: VecDeque<Vec<(Vec<u8>, u64, bool)>>,
    b: VecDeque<(u64, bool)>,
    ar: VecDeque<ReadBurst>,
    bad_reads: VecDeque<bool>,
    held: BTreeMap<&'static str, Vec<u32>>,
    /// Write errors that the memory answered; those that were told.
    pub bad_writes: (u64, u64),
    /// Reads that the memory answered with an error.
    pub failed_reads: u64,
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes
        .chunks(4)
        .map(|c| c.iter().rev().fold(0, |w, b| w << 8 | u32::from(*b)))
        .collect()
}

fn field(words: &[u32], lsb: u32, width: u32) -> u64 {
    (0..width)
        .map(|i| u64::from(words[(lsb + i) as usize / 32] >> ((lsb + i) % 32) & 1) << i)
        .sum()
}

impl LocalBench {
    /// Builds the block at a data width.
    #[allow(clippy::expect_used)]
    pub fn new(data_width: usize, seed: u64, manners: Manners) -> Self {
        let mut builder = BlockModel::builder("rnic_local_mem")
            .param("DataW", data_width)
            .param("LogSize", LOG_SIZE)
            .param("Patience", PATIENCE)
            .random_init(seed);
        if let Ok(cut) = std::env::var("OPENRNIC_CUT") {
            builder = builder.define(&cut);
        }
        let mut dut = builder.build().expect("rnic_local_mem builds");
        for input in [
            "rq_valid_i",
            "rc_ready_i",
            "host_rq_ready_i",
            "host_rc_valid_i",
            "m_awready_i",
            "m_wready_i",
            "m_bvalid_i",
            "m_arready_i",
            "m_rvalid_i",
        ] {
            dut.set(input, 0);
        }
        dut.reset(3);
        let mut rng = Stream::new(seed, "local", data_width as u64);
        let memory: Vec<u8> = (0..SIZE).map(|_| rng.bits() as u8).collect();
        Self {
            dut,
            beat: data_width / 8,
            rng,
            manners,
            requests: VecDeque::new(),
            sent: 0,
            offered: [false; 2],
            to_host: Vec::new(),
            from_host: VecDeque::new(),
            host_sent: 0,
            completions: Vec::new(),
            completion_now: None,
            image: memory.clone(),
            memory,
            expected: BTreeMap::new(),
            writes_before: VecDeque::new(),
            local_writes: 0,
            answered_writes: 0,
            aw: VecDeque::new(),
            w: Vec::new(),
            bursts_w: VecDeque::new(),
            b: VecDeque::new(),
            ar: VecDeque::new(),
            bad_reads: VecDeque::new(),
            held: BTreeMap::new(),
            bad_writes: (0, 0),
            failed_reads: 0,
        }
    }

    /// The block has given the memory up.
    pub fn dead(&self) -> bool {
        self.dut.get("dead_o") == 1
    }

    /// Cycles since it was built.
    pub fn cycles(&self) -> u64 {
        self.dut.cycles()
    }

    /// Nothing is to be sent and nothing waited for.
    pub fn is_idle(&self) -> bool {
        self.requests.is_empty()
            && self.from_host.is_empty()
            && self.expected.is_empty()
            && self.b.is_empty()
            && self.aw.is_empty()
    }

    /// Runs until everything is done.
    ///
    /// # Panics
    /// When it takes longer, or a contract is broken.
    pub fn finish(&mut self, budget: u64) {
        let end = self.cycles() + budget;
        while !self.is_idle() {
            assert!(
                self.cycles() < end,
                "not done in {budget} cycles: {} requests, {} reads open",
                self.requests.len(),
                self.expected.len()
            );
            self.clock();
        }
    }

    fn may(&mut self) -> bool {
        !self.rng.chance(self.manners.pause)
    }

    /// An AXI or stream output that waits must stay as it is.
    fn stable(&mut self, valid: bool, ready: bool, name: &'static str, shown: Vec<u32>) {
        if let Some(before) = self.held.remove(name) {
            assert!(valid, "{name}: valid was taken back");
            assert_eq!(before, shown, "{name} changed while it waited");
        }
        if valid && !ready {
            self.held.insert(name, shown);
        }
    }

    /// One cycle.
    ///
    /// # Panics
    /// When a contract is broken.
    pub fn clock(&mut self) {
        let now = self.cycles();
        let live = !self.manners.silent;
        // A stream that was offered stays offered.
        let rq = self.requests.front().cloned();
        let give = rq.is_some() && (self.offered[0] || self.may());
        self.dut.set("rq_valid_i", u64::from(give));
        let mut rq_last = false;
        if let Some(r) = &rq {
            self.dut.set_wide("rq_hdr_i", &r.header());
            let data = r.data.get(self.sent * self.beat..).unwrap_or(&[]);
            self.dut
                .set_wide("rq_data_i", &words(&data[..data.len().min(self.beat)]));
            rq_last = !r.write || (self.sent + 1) * self.beat >= r.data.len();
            self.dut.set("rq_last_i", u64::from(rq_last));
        }
        let cpl = self.from_host.front().cloned();
        let host_give = cpl.is_some() && (self.offered[1] || self.may());
        self.dut.set("host_rc_valid_i", u64::from(host_give));
        let mut cpl_last = false;
        if let Some(c) = &cpl {
            self.dut.set_wide("host_rc_hdr_i", &c.header());
            let data = c.data.get(self.host_sent * self.beat..).unwrap_or(&[]);
            self.dut
                .set_wide("host_rc_data_i", &words(&data[..data.len().min(self.beat)]));
            cpl_last = (self.host_sent + 1) * self.beat >= c.data.len();
            self.dut.set("host_rc_last_i", u64::from(cpl_last));
        }
        let [rc_ready, host_ready, aw_ready, w_ready, ar_ready] =
            [true, true, live, live, live].map(|l| l && self.may());
        self.dut.set("rc_ready_i", u64::from(rc_ready));
        self.dut.set("host_rq_ready_i", u64::from(host_ready));
        self.dut.set("m_awready_i", u64::from(aw_ready));
        self.dut.set("m_wready_i", u64::from(w_ready));
        self.dut.set("m_arready_i", u64::from(ar_ready));
        let b = self.b.front().copied().filter(|(due, _)| live && *due <= now);
        self.dut.set("m_bvalid_i", u64::from(b.is_some()));
        self.dut
            .set("m_bresp_i", b.map_or(0, |(_, bad)| if bad { 2 } else { 0 }));
        let mut r_give = false;
        let first_due = self.ar.front().is_some_and(|r| live && r.due <= now);
        if first_due && (self.dut.get("m_rvalid_i") == 1 || self.may()) {
            let burst = &self.ar[0];
            r_give = true;
            let r_bad = burst.failed && burst.first;
            let data = self.memory[burst.addr..burst.addr + self.beat].to_vec();
            self.dut.set_wide("m_rdata_i", &words(&data));
            self.dut.set("m_rlast_i", u64::from(burst.left == 1));
            self.dut.set("m_rresp_i", if r_bad { 3 } else { 0 });
        }
        self.dut.set("m_rvalid_i", u64::from(r_give));
        self.dut.clock();

        self.axi(now, aw_ready, w_ready, ar_ready);
        if let Some((_, bad)) = b {
            self.b.pop_front();
            self.answered_writes += 1;
            self.bad_writes.0 += u64::from(bad);
        }
        self.bad_writes.1 += self.dut.sampled("bad_write_o");
        if r_give && self.dut.sampled("m_rready_o") == 1 {
            let burst = &mut self.ar[0];
            (burst.addr, burst.left, burst.first) = (burst.addr + self.beat, burst.left - 1, false);
            if burst.left == 0 {
                self.ar.pop_front();
            }
        }
        // The host takes a request.
        let valid = self.dut.sampled("host_rq_valid_o") == 1;
        if valid && host_ready {
            let r = rq.clone().unwrap_or_else(|| panic!("the host is asked for nothing"));
            assert!(!r.local(), "{r:x?} went to the host");
            assert_eq!(self.dut.sampled_wide("host_rq_hdr_o"), r.header());
            let before = self.writes_before.front().copied().unwrap_or(self.local_writes);
            if r.write && self.sent == 0 {
                assert!(
                    self.answered_writes >= before || self.dead(),
                    "a write to the host overtook a local one: {} of {before} answered",
                    self.answered_writes
                );
            }
        }
        // The core's request moves on. Between beats it may pause.
        let taken = [
            self.dut.sampled("rq_ready_o") == 1,
            self.dut.sampled("host_rc_ready_o") == 1,
        ];
        self.offered = [give && !taken[0], host_give && !taken[1]];
        if give && taken[0] {
            let r = rq.unwrap_or_else(|| panic!("taken though nothing was offered"));
            if rq_last {
                self.taken(r);
            } else {
                self.sent += 1;
            }
        }
        if host_give && taken[1] {
            self.host_sent += 1;
            if cpl_last {
                self.from_host.pop_front();
                self.host_sent = 0;
            }
        }
        if self.dut.sampled("rc_valid_o") == 1 && rc_ready {
            self.completion();
        }
    }

    fn axi(&mut self, now: u64, aw_ready: bool, w_ready: bool, ar_ready: bool) {
        let valid = |s: &Self, n: &str| s.dut.sampled(n) == 1;
        let (aw, w, ar) = (
            valid(self, "m_awvalid_o"),
            valid(self, "m_wvalid_o"),
            valid(self, "m_arvalid_o"),
        );
        let shown = |s: &Self, a: &str, b: &str| vec![s.dut.sampled(a) as u32, s.dut.sampled(b) as u32];
        let aw_shown = shown(self, "m_awaddr_o", "m_awlen_o");
        let ar_shown = shown(self, "m_araddr_o", "m_arlen_o");
        let mut w_shown = self.dut.sampled_wide("m_wdata_o");
        let strobes = self.dut.sampled("m_wstrb_o");
        let last = self.dut.sampled("m_wlast_o") == 1;
        w_shown.extend([strobes as u32, (strobes >> 32) as u32, u32::from(last)]);
        if !self.dead() {
            self.stable(aw, aw_ready, "AW", aw_shown.clone());
            self.stable(w, w_ready, "W", w_shown.clone());
            self.stable(ar, ar_ready, "AR", ar_shown.clone());
        }
        let burst = |a: &[u32], beat: usize| {
            let (addr, beats) = (a[0] as usize, a[1] as usize + 1);
            assert_eq!(addr % beat, 0, "a burst begins in the middle of a beat");
            assert!(addr / 4096 == (addr + beats * beat - 1) / 4096, "a burst crosses 4 KiB");
            (addr, beats)
        };
        if aw && aw_ready {
            self.aw.push_back(burst(&aw_shown, self.beat));
        }
        if w && w_ready {
            let data: Vec<u8> = w_shown[..self.beat / 4].iter().flat_map(|w| w.to_le_bytes()).collect();
            self.w.push((data, strobes, last));
            if last {
                self.bursts_w.push_back(std::mem::take(&mut self.w));
            }
        }
        // Address and data may come in any order; both are there: it is written.
        if let (Some((addr, beats)), Some(data)) = (self.aw.front().copied(), self.bursts_w.front().cloned()) {
            assert_eq!(data.len(), beats, "WLAST where AWLEN does not say so");
            let bad = self.rng.chance(self.manners.bad);
            for (i, (bytes, strobes, _)) in data.iter().enumerate() {
                for (lane, byte) in bytes.iter().enumerate() {
                    if strobes >> lane & 1 == 1 {
                        self.memory[addr + i * self.beat + lane] = *byte;
                    }
                }
            }
            self.aw.pop_front();
            self.bursts_w.pop_front();
            let later = self.rng.below(self.manners.latency + 1);
            self.b.push_back((now + 1 + later, bad));
        }
        if ar && ar_ready {
            let (addr, left) = burst(&ar_shown, self.beat);
            assert_eq!(self.answered_writes, self.local_writes, "a read overtook a local write");
            let failed = self.rng.chance(self.manners.bad);
            let later = self.rng.below(self.manners.latency + 1);
            self.failed_reads += u64::from(failed);
            self.bad_reads.push_back(failed);
            self.ar.push_back(ReadBurst {
                due: now + 1 + later,
                addr,
                left,
                failed,
                first: true,
            });
        }
    }

    /// The block has taken a whole request.
    fn taken(&mut self, r: Request) {
        self.requests.pop_front();
        self.sent = 0;
        if !r.local() {
            self.to_host.push(r);
            return;
        }
        let at = (r.addr - LOCAL_MEM_BASE) as usize;
        if r.write {
            if self.dead() {
                return;
            }
            self.local_writes += 1;
            for b in r.enabled() {
                self.image[at + b] = r.data[b];
                for e in self.expected.values_mut() {
                    let start = (e.request.addr - LOCAL_MEM_BASE) as usize;
                    if let Some(known) = (at + b).checked_sub(start).and_then(|i| e.bytes.get_mut(i)) {
                        known.insert(r.data[b]);
                    }
                }
            }
        } else {
            let bytes = self.image[at..at + 4 * r.dw_len]
                .iter()
                .map(|b| BTreeSet::from([*b]))
                .collect();
            let tag = r.tag;
            let twice = self.expected.insert(tag, Expected { request: r, bytes });
            assert!(twice.is_none(), "the bench used tag {tag} twice");
        }
    }

    fn completion(&mut self) {
        let h = self.dut.sampled_wide("rc_hdr_o");
        let c = self.completion_now.get_or_insert_with(|| Completion {
            lower_addr: field(&h, 0, 7),
            byte_count: field(&h, 16, 13),
            status: field(&h, 32, 3),
            dw_len: field(&h, 64, 11) as usize,
            tag: field(&h, 96, 10) as u16,
            data: Vec::new(),
        });
        assert_eq!(c.header(), h, "the header changes within a completion");
        let data = self.dut.sampled_wide("rc_data_o");
        c.data.extend(data.iter().flat_map(|w| w.to_le_bytes()));
        if self.dut.sampled("rc_last_o") == 0 {
            return;
        }
        let Some(mut c) = self.completion_now.take() else {
            return;
        };
        assert_eq!(c.data.len(), (4 * c.dw_len).next_multiple_of(self.beat).max(self.beat));
        c.data.truncate(4 * c.dw_len);
        if let Some(e) = self.expected.remove(&c.tag) {
            self.judge(&e, &c);
        }
        self.completions.push(c);
    }

    fn judge(&mut self, e: &Expected, c: &Completion) {
        let failed = self.bad_reads.pop_front().unwrap_or(true);
        let enabled = e.request.enabled();
        let (first, last) = (enabled[0], enabled[enabled.len() - 1]);
        assert_eq!(
            c.byte_count,
            (last + 1 - first) as u64,
            "byte count of {:x?}",
            e.request
        );
        assert_eq!(c.lower_addr, (e.request.addr + first as u64) & 0x7f);
        if failed {
            assert_eq!(
                (c.status, c.dw_len),
                (4, 0),
                "Completer Abort, no data: {:x?}",
                e.request
            );
            return;
        }
        assert_eq!((c.status, c.dw_len), (0, e.request.dw_len), "{:x?}", e.request);
        for (i, (got, known)) in c.data.iter().zip(&e.bytes).enumerate() {
            assert!(
                known.contains(got),
                "byte {i} of {:x?} is {got:#x}, not one of {known:x?}",
                e.request
            );
        }
    }
}

/// A request at random; `tag` for a read. In the window with the chance `local`.
pub fn request(rng: &mut Stream, tag: u16, local: f64, write: f64) -> Request {
    let write = rng.chance(write);
    let most = if write { 64 } else { 128 };
    let most = if rng.chance(0.4) { 3 } else { most };
    let dw_len = 1 + rng.below(most) as usize;
    let space = SIZE as u64 / 4 - dw_len as u64;
    let mut at = 4 * rng.below(space);
    if at / 4096 != (at + 4 * dw_len as u64 - 1) / 4096 {
        at = at / 4096 * 4096; // a TLP stays inside 4 KiB
    }
    let base = if rng.chance(local) {
        LOCAL_MEM_BASE
    } else {
        0x12_3450_0000
    };
    // Enabled bytes have no gap (PCI Express: several double words).
    let (head, tail) = (rng.below(4) as u8, rng.below(4) as u8);
    let first = 0xf << head & 0xf;
    let last = 0xf >> tail;
    let (first_be, last_be) = if dw_len > 1 {
        (first, last)
    } else {
        (if first & last == 0 { 1 << head } else { first & last }, 0)
    };
    Request {
        write,
        addr: base + at,
        dw_len,
        first_be,
        last_be,
        tag: if write { 0 } else { tag },
        data: (0..if write { 4 * dw_len } else { 0 })
            .map(|_| rng.bits() as u8)
            .collect(),
    }
}
