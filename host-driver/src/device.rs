// SPDX-License-Identifier: Apache-2.0
//! The device: bring-up, commands, events, port configuration.

use std::cell::{RefCell, RefMut};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use openrnic_spec::{
    COUNTERS_BASE, CmdCompletion, CmdEq, CmdGid, CmdHeader, CmdOpcode, CmdOut, CmdPkey, CmdPort, CounterId,
    FatalReason, MSIX_CMD, Mtu, NUM_EQ, regs,
};

use crate::bus::{Bus, DmaBuf};
use crate::cmd::{CmdResult, CmdRing, Ticket, judge, opcode_name};
use crate::cq::{CompletionQueue, CqInit, CqState};
use crate::error::{Doing, Error, Result};
use crate::event::{AsyncEvent, EventQueue};
use crate::mr::MrState;
use crate::pci::{self, PciInfo};
use crate::pd::ProtectionDomain;
use crate::qp::{QpSw, RingMem};
use crate::regs::{DeviceCaps, FoundBlock, RegMap};
use crate::srq::{SrqState, XrcDomain};
use crate::types::{Cqn, Gid, PdHandle, Srqn, XrcdHandle};

/// How to bring a device up.
#[derive(Debug, Clone)]
pub struct OpenParams {
    /// Bus address for BAR0 when nobody has placed it; rounded up to its size.
    pub bar_address: u64,
    /// Max payload size in bytes; `None`: the largest that the function supports.
    pub max_payload: Option<u32>,
    /// Max read request size in bytes.
    pub max_read_request: u32,
    /// log2 of the entries of the command ring, 1 to 12.
    pub log_cmd_ring: u32,
    /// log2 of the entries of each event queue, 1 to 16.
    pub log_event_queue: u32,
    /// Reset the function before bringing it up.
    pub function_reset: bool,
    /// Longest wait for the device to become ready, in clock cycles.
    pub ready_cycles: u64,
    /// Longest wait for the completion of a command, in clock cycles.
    pub command_cycles: u64,
    /// Completion time-out of the device's DMA reads, in clock cycles; `None`: the device's own.
    pub dma_timeout_cycles: Option<u32>,
    /// Allow Q_Keys with bit 31 set (CAP_NET_RAW in Linux).
    pub privileged_qkey: bool,
}

impl Default for OpenParams {
    fn default() -> Self {
        Self {
            bar_address: 0xe000_0000,
            max_payload: None,
            max_read_request: 512,
            log_cmd_ring: 6,
            log_event_queue: 10,
            function_reset: false,
            ready_cycles: 1_000_000,
            command_cycles: 2_000_000,
            dma_timeout_cycles: None,
            privileged_qkey: true,
        }
    }
}

/// What the driver knows of the device.
#[derive(Debug, Clone, Default)]
pub struct DeviceInfo {
    /// Config space.
    pub pci: PciInfo,
    /// Interface version: major.minor.patch as 16.8.8 bits.
    pub version: u32,
    /// Blocks of registers.
    pub blocks: Vec<FoundBlock>,
    /// Capabilities.
    pub caps: DeviceCaps,
}

/// Everything of one device; the handles share it.
pub(crate) struct Core<B> {
    pub(crate) bus: B,
    pub(crate) params: OpenParams,
    pub(crate) info: DeviceInfo,
    pub(crate) map: RegMap,
    /// Advanced by reset and shutdown: handles of an earlier life are stale.
    pub(crate) life: u64,
    up: bool,
    cmd: Option<CmdRing>,
    eqs: Vec<EventQueue>,
    async_events: VecDeque<AsyncEvent>,
    /// The device has said that its command ring is broken: nothing completes any more.
    ring_broken: bool,
    interrupts: Vec<u64>,
    pub(crate) pds: BTreeMap<PdHandle, ()>,
    pub(crate) mrs: BTreeMap<u32, MrState>,
    pub(crate) cqs: BTreeMap<Cqn, CqState>,
    pub(crate) srqs: BTreeMap<Srqn, SrqState>,
    pub(crate) xrcds: BTreeSet<XrcdHandle>,
    pub(crate) qps: BTreeMap<u32, QpSw>,
    pub(crate) rings: BTreeMap<u64, RingMem>,
    pub(crate) next_ring: u64,
    pub(crate) neighbours: BTreeMap<Gid, [u8; 6]>,
    /// Buffers that a command without completion may still write: freed by reset only.
    pub(crate) quarantine: Vec<DmaBuf>,
}

/// A handle to the device. Clones are handles to the same device.
///
/// Objects (protection domains, regions, queues) are handles, too: dropping one changes nothing, its
/// `destroy` does. A handle to an object that is gone gives [`Error::Stale`].
pub struct Device<B: Bus> {
    pub(crate) core: Rc<RefCell<Core<B>>>,
}

impl<B: Bus> Clone for Device<B> {
    fn clone(&self) -> Self {
        Self {
            core: Rc::clone(&self.core),
        }
    }
}

pub(crate) fn lock<B>(core: &Rc<RefCell<Core<B>>>) -> Result<RefMut<'_, Core<B>>> {
    core.try_borrow_mut().map_err(|_| Error::Reentered)
}

impl<B: Bus> Core<B> {
    // ---------------------------------------------------------------- registers

    pub(crate) fn read32(&mut self, reg: u32) -> Result<u32> {
        self.bus.mmio_read32(self.map.at(reg)).doing("reading a register")
    }

    pub(crate) fn write32(&mut self, reg: u32, value: u32) -> Result<()> {
        self.bus
            .mmio_write32(self.map.at(reg), value)
            .doing("writing a register")
    }

    fn write64(&mut self, reg: u32, value: u64) -> Result<()> {
        self.bus
            .mmio_write64(self.map.at(reg), value)
            .doing("writing a register")
    }

    /// Rings a doorbell of a page.
    pub(crate) fn doorbell(&mut self, page: u8, offset: u16, value: [u8; 8]) -> Result<()> {
        let at = u64::from(openrnic_spec::UAR_BASE)
            + u64::from(page) * u64::from(openrnic_spec::UAR_BYTES)
            + u64::from(offset);
        self.bus
            .mmio_write64(at, u64::from_le_bytes(value))
            .doing("ringing a doorbell")
    }

    // ---------------------------------------------------------------- bring-up

    fn bring_up(&mut self) -> Result<()> {
        self.info.pci = pci::probe(&mut self.bus)?;
        if self.params.function_reset {
            pci::function_reset(&mut self.bus, &self.info.pci, self.params.ready_cycles)?;
        }
        self.bring_up_after_reset()
    }

    fn bring_up_after_reset(&mut self) -> Result<()> {
        for (what, value, low, high) in [
            ("log_cmd_ring", self.params.log_cmd_ring, 1, 12),
            ("log_event_queue", self.params.log_event_queue, 1, 16),
        ] {
            if !(low..=high).contains(&value) {
                return Err(Error::invalid(format!(
                    "{what} is {value}: {low} to {high} is possible"
                )));
            }
        }
        pci::set_up(&mut self.bus, &mut self.info.pci, &self.params)?;
        let (map, version) = RegMap::discover(&mut self.bus, self.info.pci.bar0_bytes)?;
        self.info.blocks = map.blocks.clone();
        self.info.version = version;
        self.map = map;
        self.await_ready()?;
        self.info.caps = DeviceCaps::read(&mut self.bus, &self.map)?;
        self.interrupts = vec![0; usize::from(self.info.pci.vectors)];

        self.write32(regs::CTRL_MPS, self.info.pci.max_payload)?;
        self.write32(regs::CTRL_MRRS, self.info.pci.max_read_request)?;
        if let Some(cycles) = self.params.dma_timeout_cycles {
            self.write32(regs::CTRL_CPL_TIMEOUT, cycles)?;
        }
        let ring = CmdRing::new(&mut self.bus, self.params.log_cmd_ring)?;
        let (base, completions, log_size) = (ring.ring.addr, ring.completions.addr, ring.log_size());
        self.cmd = Some(ring);
        self.write64(regs::CMD_RING_BASE, base)?;
        self.write64(regs::CMD_CPL_BASE, completions)?;
        self.write32(regs::CMD_LOG_SIZE, log_size)?;
        self.write32(regs::CTRL_ENABLE, 1)?;
        self.up = true;
        for number in 0..self.info.caps.num_eq.min(NUM_EQ) as u8 {
            self.create_eq(number)?;
        }
        Ok(())
    }

    fn await_ready(&mut self) -> Result<()> {
        let start = self.bus.now_cycles();
        let mut step = 16;
        loop {
            let status = self.read32(regs::CTRL_STATUS)?;
            if status & 1 != 0 {
                return Ok(());
            }
            if self.bus.now_cycles().saturating_sub(start) >= self.params.ready_cycles {
                return Err(Error::Timeout {
                    awaited: "the device to become ready (bit 0 of CTRL.STATUS)".into(),
                    cycles: self.params.ready_cycles,
                    hint: format!("; CTRL.STATUS reads {status:#x}"),
                });
            }
            self.bus.advance(step).doing("waiting for the device to become ready")?;
            step = (step * 2).min(1024);
        }
    }

    fn create_eq(&mut self, number: u8) -> Result<()> {
        let queue = EventQueue::new(&mut self.bus, number, self.params.log_event_queue)?;
        let command = CmdEq::new()
            .with_opcode(CmdOpcode::CreateEq.into())
            .with_handle(u32::from(number))
            .with_log_size(queue.log_size as u8)
            .with_base(queue.ring.addr);
        let doorbell = queue.doorbell();
        self.eqs.push(queue);
        self.command(command.0, 1)?;
        self.write64(regs::EQ_DOORBELL, doorbell)
    }

    /// Takes DMA away from the device and frees all memory; every handle is stale afterwards.
    fn tear_down(&mut self) -> Result<()> {
        self.up = false;
        self.life += 1;
        let mut buffers: Vec<DmaBuf> = self.quarantine.drain(..).collect();
        if let Some(ring) = self.cmd.take() {
            buffers.extend([ring.ring, ring.completions]);
        }
        buffers.extend(self.eqs.drain(..).map(|eq| eq.ring));
        buffers.extend(std::mem::take(&mut self.mrs).into_values().flat_map(MrState::buffers));
        buffers.extend(std::mem::take(&mut self.cqs).into_values().map(|cq| cq.ring));
        buffers.extend(
            std::mem::take(&mut self.rings)
                .into_values()
                .flat_map(|rings| rings.bufs),
        );
        buffers.extend(std::mem::take(&mut self.srqs).into_values().map(|srq| srq.ring));
        self.xrcds.clear();
        self.qps.clear();
        self.pds.clear();
        self.async_events.clear();
        self.ring_broken = false;
        let mut result = Ok(());
        for buf in buffers {
            let freed = self.bus.dma_free(buf).doing("freeing DMA memory");
            result = result.and(freed);
        }
        result
    }

    // ---------------------------------------------------------------- commands

    fn ring(&mut self) -> Result<&mut CmdRing> {
        self.cmd.as_mut().ok_or_else(|| Error::Stale {
            what: "the command ring".into(),
        })
    }

    pub(crate) fn submit(&mut self, command: [u8; 64]) -> Result<Ticket> {
        if !self.up {
            return Err(Error::Stale {
                what: "the device's set-up".into(),
            });
        }
        if self.ring()?.is_full() {
            self.await_that("a free entry in the command ring", |core| Ok(!core.ring()?.is_full()))?;
        }
        let Some(ring) = &mut self.cmd else {
            return Err(Error::Stale {
                what: "the command ring".into(),
            });
        };
        let (tag, producer) = ring.push(&mut self.bus, command)?;
        self.write32(regs::CMD_PRODUCER, producer)?;
        Ok(Ticket { tag, life: self.life })
    }

    pub(crate) fn wait(&mut self, ticket: Ticket, batch: u32) -> Result<CmdResult> {
        let (completion, handle) = self.wait_raw(ticket)?;
        judge(&completion, handle, batch)
    }

    /// The completion as it is, and the handle of the command.
    pub(crate) fn wait_raw(&mut self, ticket: Ticket) -> Result<(CmdCompletion, u32)> {
        if ticket.life != self.life {
            return Err(Error::Stale {
                what: format!("the command with tag {}", ticket.tag),
            });
        }
        let tag = ticket.tag;
        let what = self.ring()?.describe(tag);
        self.await_that(&what, move |core| Ok(core.ring()?.is_done(tag)))?;
        let ring = self.ring()?;
        let handle = ring.handle_of(tag);
        match ring.take(tag) {
            Some(completion) => Ok((completion, handle)),
            None => Err(Error::protocol("a completion was lost")),
        }
    }

    /// Submits and waits. `batch` is the number of QPs, for messages.
    pub(crate) fn command(&mut self, command: [u8; 64], batch: u32) -> Result<CmdResult> {
        let ticket = self.submit(command)?;
        self.wait(ticket, batch)
    }

    /// As [`Self::command`], for a command that reads or writes `buf`, which is freed afterwards.
    pub(crate) fn command_with(
        &mut self,
        command: [u8; 64],
        batch: u32,
        buf: DmaBuf,
        read: impl FnOnce(&mut Self, DmaBuf, CmdResult) -> Result<()>,
    ) -> Result<CmdResult> {
        let ticket = match self.submit(command) {
            Ok(ticket) => ticket,
            Err(e) => {
                self.quarantine.push(buf);
                return Err(e);
            }
        };
        let outcome = self.wait(ticket, batch);
        match &outcome {
            // The command may still be under way and write the buffer later.
            Err(Error::Timeout { .. } | Error::Bus { .. } | Error::Fatal { .. } | Error::Protocol { .. }) => {
                self.quarantine.push(buf);
                outcome
            }
            Err(_) => {
                self.bus.dma_free(buf).doing("freeing a command's buffer")?;
                outcome
            }
            Ok(result) => {
                let result = *result;
                let read = read(self, buf, result);
                self.bus.dma_free(buf).doing("freeing a command's buffer")?;
                read.map(|()| result)
            }
        }
    }

    /// Lets time pass until `done`, taking completions and events meanwhile.
    fn await_that(&mut self, what: &str, mut done: impl FnMut(&mut Self) -> Result<bool>) -> Result<()> {
        let budget = self.params.command_cycles;
        let start = self.bus.now_cycles();
        let mut step = 4;
        loop {
            self.service()?;
            if done(self)? {
                return Ok(());
            }
            if self.ring_broken || self.bus.now_cycles().saturating_sub(start) >= budget {
                return Err(self.why_not(what, budget));
            }
            self.bus.advance(step).doing("waiting for a command")?;
            step = (step * 2).min(64);
        }
    }

    /// The error of a wait in vain: looks whether the device says why.
    fn why_not(&mut self, what: &str, cycles: u64) -> Error {
        let hint = match self.read32(regs::CTRL_STATUS) {
            Ok(status) if status & 2 != 0 => {
                let reason = self.read32(regs::CTRL_FATAL_REASON).unwrap_or(0);
                return Error::Fatal {
                    reason: FatalReason::try_from(reason as u8).unwrap_or(FatalReason::None),
                };
            }
            Ok(status) => match self.read32(regs::CMD_RING_STATUS) {
                Ok(ring) => format!(
                    "; CTRL.STATUS reads {status:#x}, CMD.RING_STATUS {ring:#x}; if it stays like that, reset the device"
                ),
                Err(e) => format!("; {e}"),
            },
            Err(e) => format!("; {e}"),
        };
        Error::Timeout {
            awaited: what.to_owned(),
            cycles,
            hint,
        }
    }

    // ---------------------------------------------------------------- interrupts and events

    /// Takes interrupts, command completions and events. Cheap when there are none.
    pub(crate) fn service(&mut self) -> Result<()> {
        for vector in self.bus.take_interrupts() {
            match self.interrupts.get_mut(usize::from(vector)) {
                Some(count) => *count += 1,
                None => {
                    return Err(Error::protocol(format!(
                        "interrupt of vector {vector}, which does not exist"
                    )));
                }
            }
        }
        if let Some(ring) = &mut self.cmd {
            ring.service(&mut self.bus)?;
        }
        self.service_events()
    }

    pub(crate) fn service_events(&mut self) -> Result<()> {
        let at = self.map.at(regs::EQ_DOORBELL);
        for eq in &mut self.eqs {
            let seen = self.async_events.len();
            let got = eq.service(&mut self.bus, &mut self.async_events);
            self.ring_broken |= self.async_events.iter().skip(seen).any(AsyncEvent::breaks_the_ring);
            if !matches!(got, Ok(false)) {
                // Also after an error, so that the entries taken are free again.
                self.bus
                    .mmio_write64(at, eq.doorbell())
                    .doing("ringing the event doorbell")?;
            }
            got?;
        }
        Ok(())
    }

    pub(crate) fn vectors(&self) -> usize {
        self.eqs.len()
    }

    fn check_life(&self, life: u64, what: impl FnOnce() -> String) -> Result<()> {
        if self.up && life == self.life {
            Ok(())
        } else {
            Err(Error::Stale { what: what() })
        }
    }

    /// [`Error::Stale`] unless the handle is of this life.
    pub(crate) fn alive(&self, life: u64, what: &'static str, number: impl std::fmt::Display) -> Result<()> {
        self.check_life(life, || format!("{what} {number}"))
    }
}

impl<B: Bus> Device<B> {
    /// Finds the function behind the bus and brings it up: BAR, bus mastering, MSI-X, identification,
    /// command ring, event queues.
    ///
    /// # Errors
    /// What was found instead of a working device.
    pub fn open(bus: B, params: OpenParams) -> Result<Self> {
        let mut core = Core {
            bus,
            params,
            info: DeviceInfo::default(),
            map: RegMap::default(),
            life: 1,
            up: false,
            cmd: None,
            eqs: Vec::new(),
            async_events: VecDeque::new(),
            ring_broken: false,
            interrupts: Vec::new(),
            pds: BTreeMap::new(),
            mrs: BTreeMap::new(),
            cqs: BTreeMap::new(),
            srqs: BTreeMap::new(),
            xrcds: BTreeSet::new(),
            qps: BTreeMap::new(),
            rings: BTreeMap::new(),
            next_ring: 0,
            neighbours: BTreeMap::new(),
            quarantine: Vec::new(),
        };
        core.bring_up()?;
        Ok(Self {
            core: Rc::new(RefCell::new(core)),
        })
    }

    /// What the device is.
    ///
    /// # Errors
    /// [`Error::Reentered`].
    pub fn info(&self) -> Result<DeviceInfo> {
        Ok(lock(&self.core)?.info.clone())
    }

    /// Its capabilities.
    ///
    /// # Errors
    /// [`Error::Reentered`].
    pub fn caps(&self) -> Result<DeviceCaps> {
        Ok(lock(&self.core)?.info.caps)
    }

    /// Function-level reset and a new bring-up, with traffic under way or in a fatal state. All objects
    /// are gone, their memory is freed, their handles are stale.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn reset(&self) -> Result<()> {
        let mut core = lock(&self.core)?;
        let (pci, budget) = (core.info.pci, core.params.ready_cycles);
        pci::function_reset(&mut core.bus, &pci, budget)?;
        core.tear_down()?;
        core.bring_up_after_reset()
    }

    /// Disables the device, takes bus mastering away and frees all memory. All handles are stale.
    ///
    /// # Errors
    /// Those of the bus.
    pub fn shutdown(&self) -> Result<()> {
        let mut core = lock(&self.core)?;
        core.write32(regs::CTRL_ENABLE, 0)?;
        // A read pushes the posted write, and answers only when it has taken effect.
        core.read32(regs::CTRL_STATUS)?;
        pci::stop_dma(&mut core.bus)?;
        core.bus.advance(256).doing("waiting for the last DMA")?;
        core.tear_down()
    }

    /// Lends the bus: raw register accesses, time, memory. The closure must not call the driver.
    ///
    /// # Errors
    /// [`Error::Reentered`].
    pub fn with_bus<R>(&self, f: impl FnOnce(&mut B) -> R) -> Result<R> {
        Ok(f(&mut lock(&self.core)?.bus))
    }

    /// Lets device time pass, then takes completions of commands and events.
    ///
    /// # Errors
    /// Those of the bus and of the queues.
    pub fn advance(&self, cycles: u64) -> Result<()> {
        let mut core = lock(&self.core)?;
        core.bus.advance(cycles).doing("letting time pass")?;
        core.service()
    }

    /// Device clock cycles since the bus started.
    ///
    /// # Errors
    /// [`Error::Reentered`].
    pub fn now_cycles(&self) -> Result<u64> {
        Ok(lock(&self.core)?.bus.now_cycles())
    }

    // ---------------------------------------------------------------- commands

    /// Submits a command as it is but for its tag, which the driver sets. Nothing is checked: for tests
    /// and tools. Waits only when the ring is full.
    ///
    /// # Errors
    /// Those of the bus; [`Error::Timeout`] when the ring stays full.
    pub fn submit(&self, command: [u8; 64]) -> Result<Ticket> {
        lock(&self.core)?.submit(command)
    }

    /// Waits for the completion of a submitted command.
    ///
    /// # Errors
    /// The command's own error; [`Error::Timeout`] after [`OpenParams::command_cycles`].
    pub fn wait(&self, ticket: Ticket) -> Result<CmdResult> {
        lock(&self.core)?.wait(ticket, 1)
    }

    /// Submits a command and waits for it.
    ///
    /// # Errors
    /// As [`Self::submit`] and [`Self::wait`].
    pub fn command(&self, command: [u8; 64]) -> Result<CmdResult> {
        lock(&self.core)?.command(command, 1)
    }

    /// Submits a command, waits for it and returns its completion as it is, whatever its status.
    ///
    /// # Errors
    /// As [`Self::submit`]; [`Error::Timeout`] after [`OpenParams::command_cycles`].
    pub fn raw_command(&self, command: [u8; 64]) -> Result<CmdCompletion> {
        let mut core = lock(&self.core)?;
        let ticket = core.submit(command)?;
        Ok(core.wait_raw(ticket)?.0)
    }

    /// Commands without completion.
    ///
    /// # Errors
    /// [`Error::Reentered`].
    pub fn outstanding(&self) -> Result<usize> {
        Ok(lock(&self.core)?.cmd.as_ref().map_or(0, CmdRing::outstanding))
    }

    // ---------------------------------------------------------------- port

    /// Configures a port (1-based).
    ///
    /// # Errors
    /// Those of commands.
    pub fn set_port(&self, port: u8, mac: [u8; 6], mtu: Mtu, up: bool) -> Result<()> {
        let command = CmdPort::new()
            .with_opcode(CmdOpcode::SetPort.into())
            .with_handle(u32::from(port))
            .with_mac(mac)
            .with_mtu(mtu.into())
            .with_up(up);
        lock(&self.core)?.command(command.0, 1).map(drop)
    }

    /// Sets an entry of the GID table: an IPv4-mapped GID for IPv4 on the wire, another for IPv6; all zero clears it.
    ///
    /// # Errors
    /// Those of commands.
    pub fn set_gid(&self, index: u32, gid: Gid) -> Result<()> {
        let command = CmdGid::new()
            .with_opcode(CmdOpcode::SetGid.into())
            .with_handle(index)
            .with_gid(gid.0);
        lock(&self.core)?.command(command.0, 1).map(drop)
    }

    /// Sets an entry of the P_Key table; 0 clears it.
    ///
    /// # Errors
    /// Those of commands.
    pub fn set_pkey(&self, index: u32, pkey: u16) -> Result<()> {
        let command = CmdPkey::new()
            .with_opcode(CmdOpcode::SetPkey.into())
            .with_handle(index)
            .with_pkey(pkey);
        lock(&self.core)?.command(command.0, 1).map(drop)
    }

    /// Tells the MAC address of a peer, used where an address vector gives none.
    ///
    /// # Errors
    /// [`Error::Reentered`].
    pub fn add_neighbour(&self, gid: Gid, mac: [u8; 6]) -> Result<()> {
        lock(&self.core)?.neighbours.insert(gid, mac);
        Ok(())
    }

    // ---------------------------------------------------------------- counters and state

    /// All counters, in one command.
    ///
    /// # Errors
    /// Those of commands.
    pub fn counters(&self) -> Result<Counters> {
        let mut core = lock(&self.core)?;
        let bytes = Counters::COUNT * 8;
        let buf = core
            .bus
            .dma_alloc(bytes, 64)
            .doing("allocating room for the counters")?;
        let command = CmdOut::new()
            .with_opcode(CmdOpcode::QueryCounters.into())
            .with_out_addr(buf.addr);
        let mut raw = vec![0; bytes];
        core.command_with(command.0, 1, buf, |core, buf, _| {
            core.bus.dma_read(buf.addr, &mut raw).doing("reading the counters")
        })?;
        let value = |c: &[u8]| c.first_chunk().map_or(0, |b| u64::from_le_bytes(*b));
        Ok(Counters(raw.chunks(8).map(value).collect()))
    }

    /// One counter, by register.
    ///
    /// # Errors
    /// Those of the bus.
    pub fn counter(&self, id: CounterId) -> Result<u64> {
        let at = u64::from(COUNTERS_BASE) + 8 * u64::from(id as u8);
        lock(&self.core)?.bus.mmio_read64(at).doing("reading a counter")
    }

    /// Every readable register with its name.
    ///
    /// # Errors
    /// Those of the bus.
    pub fn registers(&self) -> Result<Vec<(String, u64)>> {
        let mut core = lock(&self.core)?;
        let core = &mut *core;
        crate::regs::dump(&mut core.bus, &core.map)
    }

    /// Why the device stopped; `None` while it runs.
    ///
    /// # Errors
    /// Those of the bus.
    pub fn fatal_reason(&self) -> Result<Option<FatalReason>> {
        let mut core = lock(&self.core)?;
        if core.read32(regs::CTRL_STATUS)? & 2 == 0 {
            return Ok(None);
        }
        let reason = core.read32(regs::CTRL_FATAL_REASON)?;
        FatalReason::try_from(reason as u8)
            .map(Some)
            .map_err(|e| Error::protocol(format!("CTRL.FATAL_REASON reads {reason:#x}: {e}")))
    }

    /// Interrupts taken so far, by vector; the last one is that of command completions.
    ///
    /// # Errors
    /// [`Error::Reentered`].
    pub fn interrupts(&self) -> Result<Vec<u64>> {
        Ok(lock(&self.core)?.interrupts.clone())
    }

    /// Number of the vector that command completions raise.
    pub const COMMAND_VECTOR: u16 = MSIX_CMD as u16;

    // ---------------------------------------------------------------- events

    /// The next asynchronous event, if one came. Does not wait.
    ///
    /// # Errors
    /// Those of the bus and of the queues.
    pub fn get_async_event(&self) -> Result<Option<AsyncEvent>> {
        let mut core = lock(&self.core)?;
        core.service()?;
        Ok(core.async_events.pop_front())
    }

    /// The next CQ that raised an event on a completion vector, if one did. Does not wait.
    ///
    /// # Errors
    /// Those of the bus and of the queues; [`Error::Invalid`] when there is no such vector.
    pub fn get_cq_event(&self, vector: u8) -> Result<Option<Cqn>> {
        let mut core = lock(&self.core)?;
        core.service()?;
        let vectors = core.vectors();
        match core.eqs.get_mut(usize::from(vector)) {
            Some(eq) => Ok(eq.completions.pop_front()),
            None => Err(Error::invalid(format!(
                "completion vector {vector}: there are {vectors}, counted from 0"
            ))),
        }
    }

    // ---------------------------------------------------------------- objects

    /// Allocates a protection domain.
    ///
    /// # Errors
    /// Those of commands.
    pub fn alloc_pd(&self) -> Result<ProtectionDomain<B>> {
        let mut core = lock(&self.core)?;
        let command = CmdHeader::new().with_opcode(CmdOpcode::CreatePd.into());
        let result = core.command(command.0, 1)?;
        let handle = u16::try_from(result.handle).map(PdHandle).map_err(|_| {
            Error::protocol(format!(
                "{} returned handle {:#x}",
                opcode_name(command.opcode()),
                result.handle
            ))
        })?;
        if core.pds.insert(handle, ()).is_some() {
            return Err(Error::protocol(format!(
                "CREATE_PD returned PD {handle}, which exists already"
            )));
        }
        Ok(ProtectionDomain {
            device: self.clone(),
            handle,
            life: core.life,
        })
    }

    /// Creates a completion queue.
    ///
    /// # Errors
    /// Those of commands; [`Error::Invalid`] for impossible parameters.
    pub fn create_cq(&self, init: &CqInit) -> Result<CompletionQueue<B>> {
        CompletionQueue::create(self, init)
    }

    /// Allocates an XRC domain.
    ///
    /// # Errors
    /// Those of commands.
    pub fn alloc_xrcd(&self) -> Result<XrcDomain<B>> {
        XrcDomain::create(self)
    }
}

/// The device's counters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counters(Vec<u64>);

impl Counters {
    /// How many there are.
    pub const COUNT: usize = CounterId::ALL.len();

    /// One of them.
    pub fn get(&self, id: CounterId) -> u64 {
        self.0.get(usize::from(id as u8)).copied().unwrap_or(0)
    }

    /// All with their names.
    pub fn iter(&self) -> impl Iterator<Item = (CounterId, u64)> + '_ {
        CounterId::ALL.iter().map(|id| (*id, self.get(*id)))
    }

    /// What was counted since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self(
            self.0
                .iter()
                .enumerate()
                .map(|(i, v)| v.wrapping_sub(earlier.0.get(i).copied().unwrap_or(0)))
                .collect(),
        )
    }
}
