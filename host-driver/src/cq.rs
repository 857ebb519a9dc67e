// SPDX-License-Identifier: Apache-2.0
//! Completion queues.

use std::cell::Cell;
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

use openrnic_spec::{CmdCq, CmdHeader, CmdOpcode, Cqe, DB_CQ, DbCq, MAX_CQ_LOG_SIZE, WcOpcode, WcStatus};

use crate::bus::{Bus, DmaBuf};
use crate::device::{Core, Device, lock};
use crate::error::{Doing, Error, Result};
use crate::types::{Cqn, Qpn, RKey};
use crate::wr::WorkCompletion;

/// A completion queue to create.
#[derive(Debug, Clone, Copy)]
pub struct CqInit {
    /// Entries wanted, 1 or more; rounded up to a power of two.
    pub entries: u32,
    /// Completion vector: the event queue that [`CompletionQueue::req_notify`] raises events on.
    pub vector: u8,
    /// Doorbell page.
    pub uar: u8,
}

impl Default for CqInit {
    fn default() -> Self {
        Self {
            entries: 256,
            vector: 1,
            uar: 0,
        }
    }
}

impl CqInit {
    /// A queue of that many entries.
    pub fn entries(entries: u32) -> Self {
        Self {
            entries,
            ..Self::default()
        }
    }
}

/// Event moderation of a completion queue, as struct ibv_moderate_cq of ibv_modify_cq(3). Off by default.
///
/// An armed queue ([`CompletionQueue::req_notify`]) raises its event when `count` completions wait to be polled or when
/// `period` has passed since it had the first of them, whichever is first. Armed for solicited completions only, it counts the
/// solicited ones that came since.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CqModeration {
    /// Completions per event; 0: the period alone decides, 1: no moderation.
    pub count: u16,
    /// Longest wait in microseconds, 4095 at most; 0: no moderation, whatever the count, since an event
    /// might never come.
    pub period: u16,
}

pub(crate) struct CqState {
    pub(crate) ring: DmaBuf,
    log_size: u32,
    uar: u8,
    /// Entries taken from the ring, and of this number that of the first one in this ring.
    consumer: u32,
    origin: u32,
    /// Taken from the ring, but not yet polled: what a purge left.
    kept: VecDeque<Cqe>,
    /// Found while polling behind completions that were good: told by the next poll.
    deferred: Option<Error>,
}

/// A completion queue.
pub struct CompletionQueue<B: Bus> {
    device: Device<B>,
    cqn: Cqn,
    capacity: Rc<Cell<u32>>,
    life: u64,
}

impl<B: Bus> Clone for CompletionQueue<B> {
    fn clone(&self) -> Self {
        Self {
            device: self.device.clone(),
            capacity: Rc::clone(&self.capacity),
            ..*self
        }
    }
}

/// log2 of the ring for that many entries.
fn log_size_for(entries: u32) -> Result<u32> {
    if entries == 0 || entries > 1 << MAX_CQ_LOG_SIZE {
        return Err(Error::invalid(format!(
            "a completion queue of {entries} entries: 1 to {} are possible",
            1 << MAX_CQ_LOG_SIZE
        )));
    }
    Ok(entries.max(2).next_power_of_two().trailing_zeros())
}

impl<B: Bus> CompletionQueue<B> {
    pub(crate) fn create(device: &Device<B>, init: &CqInit) -> Result<Self> {
        let log_size = log_size_for(init.entries)?;
        let mut core = lock(&device.core)?;
        if u32::from(init.uar) >= core.info.caps.num_uar {
            return Err(Error::invalid(format!(
                "doorbell page {}: there are {}, counted from 0",
                init.uar, core.info.caps.num_uar
            )));
        }
        if usize::from(init.vector) >= core.vectors() {
            return Err(Error::invalid(format!(
                "completion vector {}: there are {}, counted from 0",
                init.vector,
                core.vectors()
            )));
        }
        let ring = core
            .bus
            .dma_alloc(Cqe::BYTES << log_size, 64)
            .doing("allocating a completion queue")?;
        let command = CmdCq::new()
            .with_opcode(CmdOpcode::CreateCq.into())
            .with_log_size(log_size as u8)
            .with_eq(init.vector)
            .with_uar(init.uar)
            .with_base(ring.addr);
        let made = core.command(command.0, 1).and_then(|result| {
            u16::try_from(result.handle)
                .map(Cqn)
                .map_err(|_| Error::protocol(format!("CREATE_CQ returned handle {:#x}", result.handle)))
        });
        let cqn = match made {
            Ok(cqn) if !core.cqs.contains_key(&cqn) => cqn,
            other => {
                core.bus.dma_free(ring).doing("freeing a completion queue")?;
                return Err(match other {
                    Err(e) => e,
                    Ok(cqn) => Error::protocol(format!("CREATE_CQ returned CQ {cqn}, which exists already")),
                });
            }
        };
        let uar = init.uar;
        let state = CqState {
            ring,
            log_size,
            uar,
            consumer: 0,
            origin: 0,
            kept: VecDeque::new(),
            deferred: None,
        };
        core.cqs.insert(cqn, state);
        Ok(Self {
            device: device.clone(),
            cqn,
            capacity: Rc::new(Cell::new(1 << log_size)),
            life: core.life,
        })
    }

    /// Its number.
    pub fn cqn(&self) -> Cqn {
        self.cqn
    }

    /// Entries, rounded up.
    pub fn capacity(&self) -> u32 {
        self.capacity.get()
    }

    /// Sets when an armed queue raises its event, as ibv_modify_cq(3) with IBV_CQ_ATTR_MODERATE. A queue that is
    /// armed is judged by it at once; a period that runs counts from where it began.
    ///
    /// # Errors
    /// BAD_PARAM for a period above 4095 microseconds; those of commands.
    pub fn modify(&self, moderation: CqModeration) -> Result<()> {
        let mut core = lock(&self.device.core)?;
        core.alive(self.life, "completion queue", self.cqn)?;
        let command = CmdCq::new()
            .with_opcode(CmdOpcode::ModifyCq.into())
            .with_handle(u32::from(self.cqn.0))
            .with_event_count(moderation.count)
            .with_event_period(moderation.period);
        core.command(command.0, 1).map(|_| ())
    }

    /// Gives the queue room for `entries` completions, rounded up to a power of two, more or fewer than it has
    /// (ibv_resize_cq(3)). Traffic goes on: completions that were not polled are kept, in their order, and the queue stays
    /// armed.
    ///
    /// # Errors
    /// TOO_SMALL when more completions wait to be polled, IN_ERROR for a queue that overran: nothing has changed.
    /// Those of commands; after [`Error::Timeout`] the device may use either ring, and the queue is of no use.
    pub fn resize(&self, entries: u32) -> Result<()> {
        let log_size = log_size_for(entries)?;
        let mut core = lock(&self.device.core)?;
        core.alive(self.life, "completion queue", self.cqn)?;
        let ring = core
            .bus
            .dma_alloc(Cqe::BYTES << log_size, 64)
            .doing("allocating a completion queue")?;
        let command = CmdCq::new()
            .with_opcode(CmdOpcode::ResizeCq.into())
            .with_handle(u32::from(self.cqn.0))
            .with_log_size(log_size as u8)
            .with_base(ring.addr);
        match core.command(command.0, 1) {
            Ok(result) => {
                let old = core.cq_switch(self.cqn, ring, log_size, result.count)?;
                self.capacity.set(1 << log_size);
                core.bus.dma_free(old).doing("freeing a completion queue")
            }
            // The command may still be under way.
            Err(e @ (Error::Timeout { .. } | Error::Bus { .. } | Error::Fatal { .. } | Error::Protocol { .. })) => {
                core.quarantine.push(ring);
                Err(e)
            }
            Err(e) => {
                core.bus.dma_free(ring).doing("freeing a completion queue")?;
                Err(e)
            }
        }
    }

    /// Takes up to `max` completions, in order. Does not wait.
    ///
    /// # Errors
    /// [`Error::Protocol`] for an entry that makes no sense; it is skipped, and completions before it have
    /// been returned. [`Error::Stale`].
    pub fn poll(&self, max: usize) -> Result<Vec<WorkCompletion>> {
        let mut core = lock(&self.device.core)?;
        core.alive(self.life, "completion queue", self.cqn)?;
        core.poll_cq(self.cqn, max)
    }

    /// Waits until `count` completions came and takes them, at most `cycles` clock cycles long.
    ///
    /// # Errors
    /// [`Error::Timeout`] names how many came; they are lost. Others as [`Self::poll`].
    pub fn wait(&self, count: usize, cycles: u64) -> Result<Vec<WorkCompletion>> {
        let mut out = Vec::new();
        let start = self.device.now_cycles()?;
        let mut step = 8;
        loop {
            out.extend(self.poll(count - out.len())?);
            if out.len() >= count {
                return Ok(out);
            }
            if self.device.now_cycles()?.saturating_sub(start) >= cycles {
                return Err(Error::Timeout {
                    awaited: format!("{count} completions on CQ {}", self.cqn),
                    cycles,
                    hint: format!("; {} came", out.len()),
                });
            }
            self.device.advance(step)?;
            step = (step * 2).min(128);
        }
    }

    /// Asks for an event on the queue's vector with the next completion, or with the next solicited or
    /// failed one.
    ///
    /// # Errors
    /// Those of the bus; [`Error::Stale`].
    pub fn req_notify(&self, solicited_only: bool) -> Result<()> {
        let mut core = lock(&self.device.core)?;
        core.alive(self.life, "completion queue", self.cqn)?;
        core.cq_doorbell(self.cqn, true, solicited_only)
    }

    /// Destroys the queue. Its handles are stale afterwards.
    ///
    /// # Errors
    /// IN_USE while queue pairs complete to it; those of commands.
    pub fn destroy(&self) -> Result<()> {
        let mut core = lock(&self.device.core)?;
        core.alive(self.life, "completion queue", self.cqn)?;
        let Some(ring) = core.cqs.get(&self.cqn).map(|cq| cq.ring) else {
            return Err(Error::Stale {
                what: format!("completion queue {}", self.cqn),
            });
        };
        let command = CmdHeader::new()
            .with_opcode(CmdOpcode::DestroyCq.into())
            .with_handle(u32::from(self.cqn.0));
        core.command(command.0, 1)?;
        core.cqs.remove(&self.cqn);
        core.bus.dma_free(ring).doing("freeing a completion queue")
    }
}

impl CqState {
    /// The next entry that the device has written, if any.
    fn next<B: Bus>(&mut self, bus: &mut B) -> Result<Option<Cqe>> {
        let place = self.consumer.wrapping_sub(self.origin);
        let slot = u64::from(place & ((1 << self.log_size) - 1));
        let mut bytes = [0; Cqe::BYTES];
        bus.dma_read(self.ring.addr + slot * 32, &mut bytes)
            .doing("reading a completion")?;
        let entry = Cqe(bytes);
        if entry.phase() != (place >> self.log_size & 1 == 0) {
            return Ok(None);
        }
        self.consumer = self.consumer.wrapping_add(1);
        Ok(Some(entry))
    }

    /// The consumer index for the device: what was kept still waits to be polled, and may be what an armed queue
    /// tells.
    fn polled(&self) -> u32 {
        self.consumer.wrapping_sub(self.kept.len() as u32) & CQ_INDEX
    }
}

/// The bits of an index that the device knows.
const CQ_INDEX: u32 = 0xff_ffff;

impl<B: Bus> Core<B> {
    fn cq_doorbell(&mut self, cqn: Cqn, arm: bool, solicited_only: bool) -> Result<()> {
        let Some(cq) = self.cqs.get(&cqn) else {
            return Err(Error::Stale {
                what: format!("completion queue {cqn}"),
            });
        };
        let db = DbCq::new()
            .with_cqn(u32::from(cqn.0))
            .with_arm(arm)
            .with_solicited_only(arm && solicited_only)
            .with_consumer(cq.polled());
        let uar = cq.uar;
        self.doorbell(uar, DB_CQ, db.0)
    }

    pub(crate) fn poll_cq(&mut self, cqn: Cqn, max: usize) -> Result<Vec<WorkCompletion>> {
        let mut out = Vec::new();
        let mut taken = false;
        let mut failed = None;
        while out.len() < max && failed.is_none() {
            let Some(cq) = self.cqs.get_mut(&cqn) else {
                return Err(Error::Stale {
                    what: format!("completion queue {cqn}"),
                });
            };
            if let Some(error) = cq.deferred.take() {
                failed = Some(error);
                break;
            }
            let entry = match cq.kept.pop_front() {
                Some(entry) => entry,
                None => match cq.next(&mut self.bus)? {
                    Some(entry) => entry,
                    None => break,
                },
            };
            taken = true;
            match self.complete(cqn, &entry) {
                Ok(completion) => out.push(completion),
                Err(error) => failed = Some(error),
            }
        }
        if taken {
            self.cq_doorbell(cqn, false, false)?;
        }
        match failed {
            Some(error) if out.is_empty() => Err(error),
            Some(error) => {
                if let Some(cq) = self.cqs.get_mut(&cqn) {
                    cq.deferred = Some(error);
                }
                Ok(out)
            }
            None => Ok(out),
        }
    }

    /// Takes a queue to its new ring, which begins with completion `first`: those before it are in the old one, which is
    /// returned.
    fn cq_switch(&mut self, cqn: Cqn, ring: DmaBuf, log_size: u32, first: u32) -> Result<DmaBuf> {
        let Some(cq) = self.cqs.get_mut(&cqn) else {
            return Err(Error::Stale {
                what: format!("completion queue {cqn}"),
            });
        };
        let left = first.wrapping_sub(cq.consumer) & CQ_INDEX;
        let mut found = 0;
        while found < left.min(1 << cq.log_size) {
            match cq.next(&mut self.bus)? {
                Some(entry) => cq.kept.push_back(entry),
                None => break,
            }
            found += 1;
        }
        // The new ring is the one that the device writes, whatever it said.
        let old = std::mem::replace(&mut cq.ring, ring);
        cq.log_size = log_size;
        cq.consumer = cq.consumer.wrapping_add(left - found);
        cq.origin = cq.consumer;
        if found != left {
            self.bus.dma_free(old).doing("freeing a completion queue")?;
            return Err(Error::protocol(format!(
                "RESIZE_CQ of CQ {cqn}: the new ring begins with completion {first}, but {} before it are not there",
                left - found
            )));
        }
        Ok(old)
    }

    /// Finds the work request of an entry and frees its slot, and on the send side those before it.
    fn complete(&mut self, cqn: Cqn, entry: &Cqe) -> Result<WorkCompletion> {
        let bad = |what: String| Error::protocol(format!("CQ {cqn}: {what}"));
        let status = WcStatus::try_from(entry.status()).map_err(|e| bad(e.to_string()))?;
        let opcode = WcOpcode::try_from(entry.opcode()).map_err(|e| bad(e.to_string()))?;
        let is_recv = opcode as u8 >= WcOpcode::Recv as u8;
        let qpn = Qpn(entry.qpn());
        let Some(qp) = self.qps.get_mut(&qpn.0) else {
            return Err(bad(format!("a completion of QP {qpn}, which does not exist")));
        };
        let shared = qp.srq.filter(|_| is_recv);
        let wr_id = if let Some(srqn) = shared {
            let wr_id = self.srqs.get_mut(&srqn).and_then(|srq| srq.complete(entry.wqe_index()));
            wr_id.ok_or_else(|| {
                bad(format!(
                    "QP {qpn} completes slot {} of shared receive queue {srqn}, which holds no work request",
                    entry.wqe_index()
                ))
            })?
        } else {
            let queue = if is_recv { &mut qp.rq } else { &mut qp.sq };
            let name = if is_recv { "receive" } else { "send" };
            queue.complete(entry.wqe_index(), is_recv).ok_or_else(|| {
                bad(format!(
                    "QP {qpn} completes {name} WQE {}, but {} are outstanding from {} on",
                    entry.wqe_index(),
                    queue.outstanding(),
                    queue.oldest()
                ))
            })?
        };
        let imm = u32::from_be_bytes(entry.imm().to_le_bytes());
        Ok(WorkCompletion {
            wr_id,
            status,
            opcode,
            qpn,
            is_recv,
            byte_len: entry.byte_len(),
            imm: entry.has_imm().then_some(imm),
            invalidated: entry.has_inv().then_some(RKey(entry.imm())),
            src_qpn: Qpn(entry.src_qpn()),
            grh: entry.grh(),
            vendor_err: entry.vendor_err(),
            timestamp: entry.timestamp(),
        })
    }

    /// Removes completions of the old lives of QPs, which have been moved to RESET or destroyed, from their queues. The
    /// device writes none any more. Each queue is gone through once, however many QPs there are.
    pub(crate) fn purge(&mut self, qpns: &BTreeSet<u32>, cqns: &BTreeSet<Cqn>) -> Result<()> {
        for &cqn in cqns {
            let Some(cq) = self.cqs.get_mut(&cqn) else { continue };
            for _ in 0..1u32 << cq.log_size {
                match cq.next(&mut self.bus)? {
                    Some(entry) => cq.kept.push_back(entry),
                    None => break,
                }
            }
            // What a shared receive queue had given to these QPs is free again.
            let kept = cq.kept.len();
            for entry in &cq.kept {
                let gone = qpns.contains(&entry.qpn()) && entry.opcode() >= u8::from(WcOpcode::Recv);
                let srq = self.qps.get(&entry.qpn()).filter(|_| gone).and_then(|qp| qp.srq);
                if let Some(srq) = srq.and_then(|srqn| self.srqs.get_mut(&srqn)) {
                    srq.complete(entry.wqe_index());
                }
            }
            cq.kept.retain(|entry| !qpns.contains(&entry.qpn()));
            if cq.kept.len() != kept {
                self.cq_doorbell(cqn, false, false)?;
            }
        }
        Ok(())
    }
}
