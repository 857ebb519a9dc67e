// SPDX-License-Identifier: Apache-2.0
//! The root complex: one port, one function, the host's memory behind it.
//!
//! Order is that of PCI Express without relaxed ordering. To the device, requests keep their order.
//! From the device, a read never passes an earlier write and writes keep their order; the answers to
//! different reads may overtake each other, the parts of one answer do not.

use std::collections::{BTreeMap, VecDeque};

use openrnic_spec::{BAR0_BYTES, CcHdr, CplStatus, CqHdr, NUM_MSIX, RcHdr, RqHdr};

use super::config::ConfigSpace;
use super::fault::{CompletionFault, Faults, Which};
use super::params::{HostParams, MmioError, PcieStats, Split};
use super::tlp::{ByteRange, Down, Packet, Receiver, Sender, enables_of, range_of};
use crate::device::{Device, TlpIn, TlpOut};
use crate::error::{Misdeed, Violation};
use crate::memory::HostMemory;
use crate::rng::Stream;

/// First address of the range in which writes are interrupts; vector n is written to 16 bytes each.
pub const MSI_BASE: u64 = 0xfee0_0000;
const MSI_END: u64 = 0xfef0_0000;
/// What the message of vector n carries: this and n.
const MSI_DATA: u32 = 0x4d00;
/// Completions end at multiples of this, the last one excepted.
const READ_COMPLETION_BOUNDARY: u64 = 64;
/// Cycles after bus mastering went off in which requests under way still come.
const BUS_MASTER_GRACE: u64 = 64;
/// Bus addresses of NIC n's memory start at this, times n + 1: above 4 GiB, and different for each host.
const MEMORY_STRIDE: u64 = 0x10_0000_0000;

/// Names a BAR read that was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ReadId(u64);

/// A BAR read of the host.
#[derive(Debug)]
struct MmioRead {
    id: ReadId,
    /// Next byte awaited.
    addr: u64,
    left: u64,
    data: Vec<u8>,
}

/// A request of the device on its way to memory.
#[derive(Debug)]
struct Up {
    at: u64,
    header: RqHdr,
    data: Vec<u8>,
    bus_master: bool,
}

/// A read of the device that is being answered.
#[derive(Debug)]
struct PendingRead {
    tag: u16,
    ready_at: u64,
    /// Next byte to be sent.
    addr: u64,
    left: u64,
    data: Vec<u8>,
    sent: usize,
    status: CplStatus,
    poison: bool,
    drop_last: bool,
}

fn cycles(ns: u64, clk_period_ps: u64) -> u64 {
    (ns * 1000).div_ceil(clk_period_ps)
}

/// A latency and what chance adds to it, in clock cycles.
#[derive(Debug, Clone, Copy)]
struct Delay {
    least: u64,
    jitter: u64,
}

impl Delay {
    fn draw(self, rng: &mut Stream) -> u64 {
        self.least
            + if self.jitter == 0 {
                0
            } else {
                rng.below(self.jitter + 1)
            }
    }
}

/// The host of one NIC, cycle by cycle.
pub struct RootPort {
    nic: usize,
    params: HostParams,
    clk_period_ps: u64,
    read_delay: Delay,
    write_delay: Delay,
    mmio_delay: Delay,
    config: ConfigSpace,
    /// The host's memory.
    pub memory: HostMemory,
    cq: Sender,
    cq_free_at: u64,
    mmio_reads: BTreeMap<u16, MmioRead>,
    mmio_done: Vec<(ReadId, Result<Vec<u8>, MmioError>)>,
    next_read: u64,
    next_tag: u16,
    rc: Sender,
    rq: Receiver,
    cc: Receiver,
    up: VecDeque<Up>,
    up_free_at: u64,
    pending: Vec<PendingRead>,
    faults: Faults,
    interrupts: VecDeque<u16>,
    rq_ready: bool,
    cc_ready: bool,
    reset_left: u64,
    pins_fresh: bool,
    bus_master_off_at: u64,
    stats: PcieStats,
    violations: Vec<Violation>,
    latency_rng: Stream,
    order_rng: Stream,
    split_rng: Stream,
    stall_rng: Stream,
    mmio_rng: Stream,
}

impl RootPort {
    /// The host of NIC number `nic`, in a run with this seed.
    pub fn new(nic: usize, params: HostParams, clk_period_ps: u64, seed: u64) -> Self {
        let stream = |name| Stream::new(seed, name, nic as u64);
        let base = MEMORY_STRIDE * (nic as u64 + 1);
        let delay = |latency, jitter| Delay {
            least: cycles(latency, clk_period_ps),
            jitter: cycles(jitter, clk_period_ps),
        };
        Self {
            nic,
            clk_period_ps,
            read_delay: delay(params.read_latency_ns, params.read_jitter_ns),
            write_delay: delay(params.write_latency_ns, params.write_jitter_ns),
            mmio_delay: delay(params.mmio_latency_ns, params.mmio_jitter_ns),
            config: ConfigSpace::new(params.max_payload),
            memory: HostMemory::new(base, params.memory_bytes),
            cq: Sender::new(TlpIn::Cq),
            cq_free_at: 0,
            mmio_reads: BTreeMap::new(),
            mmio_done: Vec::new(),
            next_read: 0,
            next_tag: 0,
            rc: Sender::new(TlpIn::Rc),
            rq: Receiver::new("requester request"),
            cc: Receiver::new("completer completion"),
            up: VecDeque::new(),
            up_free_at: 0,
            pending: Vec::new(),
            faults: Faults::default(),
            interrupts: VecDeque::new(),
            rq_ready: true,
            cc_ready: true,
            reset_left: params.reset_cycles.max(1),
            pins_fresh: false,
            bus_master_off_at: 0,
            stats: PcieStats::default(),
            violations: Vec::new(),
            latency_rng: stream("pcie.latency"),
            order_rng: stream("pcie.order"),
            split_rng: stream("pcie.split"),
            stall_rng: stream("pcie.stall"),
            mmio_rng: stream("pcie.mmio"),
            params,
        }
    }

    // ------------------------------------------------------------------ what the host does

    /// Config space of the function; all ones while it is in reset.
    pub fn config_read(&self, off: u16) -> u32 {
        if self.reset_left > 0 {
            u32::MAX
        } else {
            self.config.read(off)
        }
    }

    /// Writes config space; a function-level reset starts at once. Ignored while in reset.
    pub fn config_write(&mut self, off: u16, value: u32, now: u64, device: &mut dyn Device) {
        if self.reset_left > 0 {
            return;
        }
        let was_master = self.config.bus_master();
        if self.config.write(off, value) {
            self.function_reset(device);
        }
        if was_master && !self.config.bus_master() {
            self.bus_master_off_at = now;
        }
        self.pins_fresh = false;
    }

    /// The function as its host configured it.
    pub fn config(&self) -> &ConfigSpace {
        &self.config
    }

    /// The function is in reset.
    pub fn in_reset(&self) -> bool {
        self.reset_left > 0
    }

    /// Function-level reset: the device is in reset for some cycles, all that was under way is gone.
    pub fn function_reset(&mut self, device: &mut dyn Device) {
        self.config.function_reset();
        self.cq.clear(device);
        self.rc.clear(device);
        self.rq.clear();
        self.cc.clear();
        self.up.clear();
        self.pending.clear();
        self.interrupts.clear();
        for read in std::mem::take(&mut self.mmio_reads).into_values() {
            self.mmio_done.push((read.id, Err(MmioError::Reset)));
        }
        self.reset_left = self.params.reset_cycles.max(1);
        self.pins_fresh = false;
    }

    /// Whether BAR0 answers: memory decoding on and an address given.
    pub fn bar_mapped(&self) -> bool {
        self.config.memory_enabled() && self.config.bar0() != 0
    }

    /// BAR accesses not yet taken by the device.
    pub fn mmio_queued(&self) -> usize {
        self.cq.queue.len()
    }

    fn send_cq(&mut self, now: u64, header: CqHdr, data: Vec<u8>) {
        self.cq_free_at = self.cq_free_at.max(now + self.mmio_delay.draw(&mut self.mmio_rng));
        self.cq.queue.push_back(Down {
            header: header.0,
            data,
            not_before: self.cq_free_at,
        });
    }

    /// Posts a write of `data` at byte offset `off` of BAR0.
    pub fn mmio_write(&mut self, now: u64, off: u64, data: &[u8]) {
        let (addr, dw_len, first, last) = enables_of(off, data.len() as u64);
        let header = CqHdr::new()
            .with_addr(addr)
            .with_dw_len(dw_len)
            .with_wr(true)
            .with_first_be(first)
            .with_last_be(last);
        let mut payload = vec![0; usize::from(dw_len) * 4];
        let lead = (off - addr) as usize;
        payload[lead..lead + data.len()].copy_from_slice(data);
        self.send_cq(now, header, payload);
    }

    /// Starts a read of `len` bytes at byte offset `off` of BAR0.
    pub fn mmio_read(&mut self, now: u64, off: u64, len: usize) -> ReadId {
        let (addr, dw_len, first, last) = enables_of(off, len as u64);
        let header = CqHdr::new()
            .with_addr(addr)
            .with_dw_len(dw_len)
            .with_first_be(first)
            .with_last_be(last);
        self.raw_read(now, header)
    }

    /// Sends any write request: for requests that no driver makes.
    pub fn raw_write(&mut self, now: u64, header: CqHdr, data: Vec<u8>) {
        self.send_cq(now, header.with_wr(true), data);
    }

    /// Sends any read request (its tag is chosen here): for requests that no driver makes.
    pub fn raw_read(&mut self, now: u64, header: CqHdr) -> ReadId {
        while self.mmio_reads.contains_key(&self.next_tag) {
            self.next_tag = (self.next_tag + 1) % 256;
        }
        let tag = self.next_tag;
        self.next_tag = (self.next_tag + 1) % 256;
        let id = ReadId(self.next_read);
        self.next_read += 1;
        let dw_len = u64::from(header.dw_len());
        let range = range_of(header.addr(), dw_len, header.first_be(), header.last_be()).unwrap_or(ByteRange {
            addr: header.addr(),
            len: dw_len * 4,
        });
        self.mmio_reads.insert(
            tag,
            MmioRead {
                id,
                addr: range.addr,
                left: range.len,
                data: Vec::new(),
            },
        );
        self.send_cq(now, header.with_wr(false).with_tag(tag), Vec::new());
        id
    }

    /// The outcome of a read, once.
    pub fn take_read(&mut self, id: ReadId) -> Option<Result<Vec<u8>, MmioError>> {
        let at = self.mmio_done.iter().position(|(done, _)| *done == id)?;
        Some(self.mmio_done.swap_remove(at).1)
    }

    /// Forgets a read that was not answered in time; a late answer is a violation.
    pub fn abandon_read(&mut self, id: ReadId) {
        self.mmio_reads.retain(|_, read| read.id != id);
    }

    /// Sends a completion that answers nothing.
    pub fn raw_completion(&mut self, header: RcHdr, data: Vec<u8>) {
        self.rc.queue.push_back(Down {
            header: header.0,
            data,
            not_before: 0,
        });
    }

    /// Lets the answer to a read of the device go wrong.
    pub fn inject_fault(&mut self, which: Which, fault: CompletionFault) {
        self.faults.add(which, fault);
    }

    /// Forgets the faults that have not happened yet.
    pub fn clear_faults(&mut self) {
        self.faults.clear();
    }

    /// Address and data of the message that raises `vector`.
    pub fn msix_message(vector: u16) -> (u64, u32) {
        (MSI_BASE + u64::from(vector) * 16, MSI_DATA | u32::from(vector))
    }

    /// The next interrupt that arrived.
    pub fn take_interrupt(&mut self) -> Option<u16> {
        self.interrupts.pop_front()
    }

    /// Counters.
    pub fn stats(&self) -> PcieStats {
        PcieStats {
            faults: self.faults.injected,
            ..self.stats
        }
    }

    /// Nothing is under way in either direction.
    pub fn is_idle(&self) -> bool {
        self.cq.is_idle()
            && self.rc.is_idle()
            && self.up.is_empty()
            && self.pending.is_empty()
            && self.mmio_reads.is_empty()
    }

    /// Rules that the device broke since the last call.
    pub(crate) fn violations(&mut self) -> &mut Vec<Violation> {
        &mut self.violations
    }

    // ------------------------------------------------------------------ cycle by cycle

    /// Before the clock edge: sets the device's inputs.
    pub(crate) fn drive(&mut self, now: u64, device: &mut dyn Device) {
        if !self.pins_fresh {
            device.set_reset(self.reset_left > 0);
            device.set_bus_master(self.config.bus_master());
            device.set_tlp_ready(TlpOut::Rq, self.rq_ready);
            device.set_tlp_ready(TlpOut::Cc, self.cc_ready);
            self.pins_fresh = true;
        }
        if self.reset_left > 0 {
            return;
        }
        if self.params.stall > 0.0 {
            self.rq_ready = !self.stall_rng.chance(self.params.stall);
            self.cc_ready = !self.stall_rng.chance(self.params.stall);
            device.set_tlp_ready(TlpOut::Rq, self.rq_ready);
            device.set_tlp_ready(TlpOut::Cc, self.cc_ready);
        }
        self.cq.drive(now, device);
        if self.rc.is_idle() && !self.pending.is_empty() {
            self.next_completion(now);
        }
        self.rc.drive(now, device);
    }

    /// After the clock edge: takes what the device gave.
    pub(crate) fn collect(&mut self, now: u64, device: &mut dyn Device) {
        if self.reset_left > 0 {
            self.reset_left -= 1;
            if self.reset_left == 0 {
                self.pins_fresh = false;
            }
            return;
        }
        let sent = self.cq.queue.front().map_or(0, |down| down.data.len());
        if self.cq.collect(device) {
            self.stats.to_device.add(sent);
        }
        let sent = self.rc.queue.front().map_or(0, |down| down.data.len());
        if self.rc.collect(device) {
            self.stats.to_device.add(sent);
            self.stats.completions += 1;
        }
        let width = device.data_bytes();
        let mut misdeeds: Vec<Misdeed> = Vec::new();
        let request = self
            .rq
            .take(device.tlp(TlpOut::Rq), self.rq_ready, &mut |m| misdeeds.push(m));
        let completion = self
            .cc
            .take(device.tlp(TlpOut::Cc), self.cc_ready, &mut |m| misdeeds.push(m));
        for what in misdeeds {
            self.violation(now, what);
        }
        if let Some(packet) = request {
            self.request(now, packet, width);
        }
        if let Some(packet) = completion {
            self.completion(now, packet, width);
        }
        while self.up.front().is_some_and(|up| up.at <= now) {
            if let Some(up) = self.up.pop_front() {
                self.execute(now, up);
            }
        }
    }

    fn violation(&mut self, cycle: u64, what: Misdeed) {
        self.violations.push(Violation {
            cycle,
            nic: self.nic,
            what,
        });
    }

    /// A request of the device has come in whole.
    fn request(&mut self, now: u64, packet: Packet, width: usize) {
        let header = RqHdr(packet.header);
        let bad = |why| Misdeed::BadHeader { header: header.0, why };
        let dw_len = u64::from(header.dw_len());
        let data = match packet.payload(if header.wr() { dw_len } else { 0 }, width, "requester request") {
            Ok(data) => data,
            Err(what) => return self.violation(now, what),
        };
        self.stats.from_device.add(if header.wr() { data.len() } else { 0 });
        if !header.rsvd_ok() {
            return self.violation(now, bad("reserved bits are set"));
        }
        if dw_len == 0 || dw_len > 1024 {
            return self.violation(now, bad("the length is not 1 to 1024"));
        }
        if !header.addr().is_multiple_of(4) {
            return self.violation(now, bad("the address is not a multiple of 4"));
        }
        // A read waits behind the writes before it, its own latency comes after that.
        if header.wr() {
            self.stats.writes += 1;
            self.up_free_at = self.up_free_at.max(now + self.write_delay.draw(&mut self.latency_rng));
        } else {
            self.stats.reads += 1;
            self.up_free_at = self.up_free_at.max(now);
        }
        let bus_master = self.config.bus_master();
        self.up.push_back(Up {
            at: self.up_free_at,
            header,
            data,
            bus_master,
        });
    }

    /// A request reaches memory.
    fn execute(&mut self, now: u64, up: Up) {
        let header = up.header;
        let (addr, dw_len, write) = (header.addr(), u64::from(header.dw_len()), header.wr());
        let (first, last) = (header.first_be(), header.last_be());
        let range = range_of(addr, dw_len, first, last);
        if range.is_none() {
            self.violation(
                now,
                Misdeed::ByteEnables {
                    addr,
                    dw_len,
                    first,
                    last,
                },
            );
        }
        let bytes = dw_len * 4;
        if (addr & 0xfff) + bytes > 4096 {
            self.violation(now, Misdeed::Crosses4K { addr, bytes });
        }
        if !up.bus_master && now > self.bus_master_off_at + BUS_MASTER_GRACE {
            self.violation(now, Misdeed::NotBusMaster { write, addr });
        }
        let max = if write {
            self.config.max_payload()
        } else {
            self.config.max_read_request()
        };
        if bytes > max {
            let what = if write {
                Misdeed::WriteTooLong { addr, bytes, max }
            } else {
                Misdeed::ReadTooLong { addr, bytes, max }
            };
            self.violation(now, what);
        }
        match range {
            // A write without bus mastering goes nowhere, a read is refused.
            Some(range) if write && up.bus_master => self.execute_write(now, &up, range),
            Some(_) | None if write => {}
            Some(range) => self.execute_read(now, header.tag(), range, up.bus_master),
            None => self.execute_read(now, header.tag(), ByteRange { addr, len: bytes }, false),
        }
    }

    fn execute_write(&mut self, now: u64, up: &Up, range: ByteRange) {
        let addr = up.header.addr();
        if (MSI_BASE..MSI_END).contains(&addr) {
            return self.interrupt(now, up);
        }
        if range.len == 0 {
            return;
        }
        let Some(target) = self.memory.get_mut(range.addr, range.len as usize) else {
            let what = Misdeed::DmaUnmapped {
                write: true,
                addr: range.addr,
                bytes: range.len,
            };
            return self.violation(now, what);
        };
        let lead = (range.addr - addr) as usize;
        let source = &up.data[lead..lead + target.len()];
        let (first, last) = (up.header.first_be(), up.header.last_be());
        if matches!(first, 0x5 | 0x9 | 0xa | 0xb | 0xd) || matches!(last, 0x5 | 0x9 | 0xa | 0xb | 0xd) {
            // Holes: at most two double words, byte by byte.
            let enables = u16::from(last) << 4 | u16::from(first);
            for (i, byte) in source.iter().enumerate() {
                if enables >> (lead + i) & 1 != 0 {
                    target[i] = *byte;
                }
            }
        } else {
            target.copy_from_slice(source);
        }
    }

    fn interrupt(&mut self, now: u64, up: &Up) {
        let addr = up.header.addr();
        let data = up.data.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        let vector = ((addr - MSI_BASE) / 16) as u16;
        let why = if up.header.dw_len() != 1 || up.header.first_be() != 0xf {
            Some("it is not one whole double word")
        } else if u32::from(vector) >= NUM_MSIX {
            Some("the function has no such vector")
        } else if (addr, data) != Self::msix_message(vector) {
            Some("this is not the message of a vector")
        } else if !self.config.msix_enabled() {
            Some("MSI-X is off")
        } else {
            None
        };
        if let Some(why) = why {
            return self.violation(now, Misdeed::BadInterrupt { addr, data, why });
        }
        self.stats.interrupts += 1;
        self.interrupts.push_back(vector);
    }

    fn execute_read(&mut self, now: u64, tag: u16, range: ByteRange, allowed: bool) {
        if self.pending.iter().any(|read| read.tag == tag) {
            self.violation(now, Misdeed::TagInUse { tag });
            return;
        }
        // A read without enabled bytes is answered with one double word that means nothing.
        let left = range.len.max(1);
        let mut read = PendingRead {
            tag,
            ready_at: now + self.read_delay.draw(&mut self.latency_rng),
            addr: range.addr,
            left,
            data: Vec::new(),
            sent: 0,
            status: CplStatus::Sc,
            poison: false,
            drop_last: false,
        };
        if range.len == 0 {
            read.data = vec![0];
        } else if !allowed {
            read.status = CplStatus::Ur;
        } else if let Some(bytes) = self.memory.get(range.addr, range.len as usize) {
            read.data = bytes.to_vec();
        } else {
            self.violation(
                now,
                Misdeed::DmaUnmapped {
                    write: false,
                    addr: range.addr,
                    bytes: range.len,
                },
            );
            read.status = CplStatus::Ur;
        }
        match self.faults.hit(range.addr, range.len) {
            None => {}
            Some(CompletionFault::Unsupported) => read.status = CplStatus::Ur,
            Some(CompletionFault::Abort) => read.status = CplStatus::Ca,
            Some(CompletionFault::Poison) => read.poison = true,
            Some(CompletionFault::Drop) => return,
            Some(CompletionFault::DropLast) => read.drop_last = true,
            Some(CompletionFault::Delay(ns)) => read.ready_at += cycles(ns, self.clk_period_ps),
        }
        self.pending.push(read);
        self.stats.most_reads_open = self.stats.most_reads_open.max(self.pending.len());
    }

    /// Queues the next completion, if a read is ready to be answered.
    fn next_completion(&mut self, now: u64) {
        let ready = self.pending.iter().filter(|read| read.ready_at <= now).count() as u64;
        if ready == 0 {
            return;
        }
        // Reads stand in the order in which they came: without reordering the first one goes, and
        // nothing passes it while it is not ready.
        let index = if self.params.reorder {
            let nth = self.order_rng.below(ready) as usize;
            self.pending
                .iter()
                .enumerate()
                .filter(|(_, read)| read.ready_at <= now)
                .nth(nth)
                .map(|(i, _)| i)
        } else {
            (self.pending[0].ready_at <= now).then_some(0)
        };
        let Some(index) = index else { return };
        let max_payload = self.config.max_payload();
        let read = &mut self.pending[index];
        let header = RcHdr::new()
            .with_tag(read.tag)
            .with_lower_addr((read.addr & 0x7f) as u8)
            .with_byte_count(read.left as u16)
            .with_status(read.status as u8);
        if read.status != CplStatus::Sc {
            self.rc.queue.push_back(Down {
                header: header.0,
                data: Vec::new(),
                not_before: now,
            });
            self.pending.remove(index);
            return;
        }
        let lead = read.addr & 3;
        let whole = read.addr + read.left;
        // Not more than the max payload, counted in whole double words, and up to a boundary.
        let limit = (read.addr - lead + max_payload) & !(READ_COMPLETION_BOUNDARY - 1);
        let first_cut = (read.addr & !(READ_COMPLETION_BOUNDARY - 1)) + READ_COMPLETION_BOUNDARY;
        let end = match self.params.split {
            Split::Never => limit,
            Split::Always => first_cut,
            Split::Random => {
                let top = limit
                    .min(whole.next_multiple_of(READ_COMPLETION_BOUNDARY))
                    .max(first_cut);
                let cuts = (top - first_cut) / READ_COMPLETION_BOUNDARY + 1;
                first_cut + self.split_rng.below(cuts) * READ_COMPLETION_BOUNDARY
            }
        };
        let fits = whole - (read.addr - lead) <= max_payload;
        let end = if whole <= end || fits && self.params.split == Split::Never {
            whole
        } else {
            end
        };
        let bytes = (end - read.addr) as usize;
        let last = end == whole;
        let dw_len = (lead + bytes as u64).div_ceil(4);
        let mut data = vec![0; dw_len as usize * 4];
        let start = read.sent;
        data[lead as usize..lead as usize + bytes].copy_from_slice(&read.data[start..start + bytes]);
        let header = header
            .with_dw_len(dw_len as u16)
            .with_poisoned(read.poison && read.sent == 0);
        read.sent += bytes;
        read.addr = end;
        read.left -= bytes as u64;
        if last {
            let read = self.pending.remove(index);
            if read.drop_last {
                return;
            }
        }
        self.rc.queue.push_back(Down {
            header: header.0,
            data,
            not_before: now,
        });
    }

    /// A completion of the device has come in whole.
    fn completion(&mut self, now: u64, packet: Packet, width: usize) {
        let header = CcHdr(packet.header);
        let (tag, dw_len) = (header.tag(), u64::from(header.dw_len()));
        let data = match packet.payload(dw_len, width, "completer completion") {
            Ok(data) => data,
            Err(what) => return self.violation(now, what),
        };
        self.stats.from_device.add(data.len());
        let Some(mut read) = self.mmio_reads.remove(&tag) else {
            let why = "no read with this tag is open".to_owned();
            return self.violation(now, Misdeed::BadCompletion { tag, why });
        };
        let status = CplStatus::try_from(header.status());
        let lead = read.addr & 3;
        let taken = (dw_len * 4).saturating_sub(lead).min(read.left);
        let why = match status {
            Err(_) => Some(format!("status {} does not exist", header.status())),
            Ok(_) if !header.rsvd_ok() => Some("reserved bits are set".to_owned()),
            Ok(_) if header.requester_id() != 0 => {
                Some(format!("requester {:#x} is not the host", header.requester_id()))
            }
            Ok(CplStatus::Sc) => {
                let wanted = ((read.addr & 0x7f) as u8, read.left.max(1) as u16);
                let got = (header.lower_addr(), header.byte_count());
                // Double words that the bytes of this completion take.
                let needed = (lead + read.left.max(1)).div_ceil(4);
                if got != wanted {
                    Some(format!("(lower address, byte count) is {got:x?}, not {wanted:x?}"))
                } else if dw_len == 0 || dw_len > needed {
                    Some(format!("{dw_len} double words where 1 to {needed} are due"))
                } else {
                    None
                }
            }
            Ok(_) if dw_len != 0 => Some("data comes with an error status".to_owned()),
            Ok(_) => None,
        };
        if let Some(why) = why {
            self.mmio_done.push((read.id, Err(MmioError::Garbled)));
            return self.violation(now, Misdeed::BadCompletion { tag, why });
        }
        match status {
            Ok(CplStatus::Sc) => {
                let lead = lead as usize;
                read.data.extend_from_slice(&data[lead..lead + taken as usize]);
                read.addr += taken;
                read.left -= taken;
                if read.left == 0 {
                    self.mmio_done.push((read.id, Ok(read.data)));
                } else {
                    self.mmio_reads.insert(tag, read);
                }
            }
            Ok(other) => self.mmio_done.push((read.id, Err(MmioError::Status(other)))),
            Err(_) => {}
        }
    }
}

/// Whether `[off, off + bytes)` lies in BAR0.
pub(crate) fn in_bar(off: u64, bytes: usize) -> bool {
    off.checked_add(bytes as u64)
        .is_some_and(|end| end <= u64::from(BAR0_BYTES))
}
