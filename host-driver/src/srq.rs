// SPDX-License-Identifier: Apache-2.0
//! Shared receive queues and XRC domains.

use openrnic_spec::{CmdHeader, CmdOpcode, CmdSrq, DB_SRQ, DbSrq, RqWqe};

use crate::bus::{Bus, DmaBuf};
use crate::device::{Core, Device, lock};
use crate::error::{Doing, Error, PostError, PostErrorKind, Result};
use crate::pd::ProtectionDomain;
use crate::qp::{RQ_HEADER, put_sges};
use crate::types::{Srqn, XrcdHandle};
use crate::wr::RecvWr;

/// A shared receive queue to create, as ibv_srq_init_attr.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SrqInit {
    /// Work requests that can be posted, 1 or more; rounded up to one less than a power of two.
    pub max_wr: u32,
    /// SGEs of each.
    pub max_sge: u32,
    /// Doorbell page.
    pub uar: u8,
}

impl Default for SrqInit {
    fn default() -> Self {
        Self {
            max_wr: 63,
            max_sge: 1,
            uar: 0,
        }
    }
}

/// A shared receive queue as driver and device hold it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SrqAttr {
    /// Work requests that can be posted and not completed.
    pub max_wr: u32,
    /// SGEs of each.
    pub max_sge: u32,
    /// Limit that is armed; 0 after its event.
    pub limit: u16,
    /// Work requests that no queue pair has taken yet.
    pub waiting: u32,
}

/// What the driver keeps of a shared receive queue: the free slots are a list, and every slot knows the one that is
/// posted after it. The device follows the same list, a work request later each.
pub(crate) struct SrqState {
    pub(crate) ring: DmaBuf,
    stride: usize,
    uar: u8,
    max_sge: u32,
    /// Slot that comes after each.
    next: Vec<u16>,
    /// Work request in each slot; `None`: free.
    wr_ids: Vec<Option<u64>>,
    /// Free slot to be posted next.
    head: u16,
    /// Last free slot: it stays free.
    tail: u16,
    producer: u16,
}

impl SrqState {
    fn new(ring: DmaBuf, log_size: u32, stride: usize, uar: u8, max_sge: u32) -> Self {
        let slots = 1u16 << log_size.min(15);
        Self {
            ring,
            stride,
            uar,
            max_sge,
            next: (1..=slots).map(|n| n % slots).collect(),
            wr_ids: vec![None; usize::from(slots)],
            head: 0,
            tail: slots - 1,
            producer: 0,
        }
    }

    fn capacity(&self) -> usize {
        self.wr_ids.len() - 1
    }

    /// The slot to be written next and its link; `None` when only one is free.
    fn free_slot(&self) -> Option<(u16, u16)> {
        let next = *self.next.get(usize::from(self.head))?;
        (self.head != self.tail).then_some((self.head, next))
    }

    /// The slot of [`Self::free_slot`] was written.
    fn post(&mut self, slot: u16, next: u16, wr_id: u64) {
        if let Some(place) = self.wr_ids.get_mut(usize::from(slot)) {
            *place = Some(wr_id);
        }
        self.head = next;
        self.producer = self.producer.wrapping_add(1);
    }

    /// The work request of a slot is done: the slot is the last that will be used again. `None` when it holds none.
    pub(crate) fn complete(&mut self, slot: u16) -> Option<u64> {
        let wr_id = self.wr_ids.get_mut(usize::from(slot))?.take()?;
        if let Some(link) = self.next.get_mut(usize::from(self.tail)) {
            *link = slot;
        }
        self.tail = slot;
        Some(wr_id)
    }

    /// Work requests posted and not completed.
    pub(crate) fn outstanding(&self) -> usize {
        self.wr_ids.iter().flatten().count()
    }
}

/// A shared receive queue: work requests for whichever of its queue pairs needs one next.
pub struct SharedReceiveQueue<B: Bus> {
    device: Device<B>,
    srqn: Srqn,
    life: u64,
}

impl<B: Bus> Clone for SharedReceiveQueue<B> {
    fn clone(&self) -> Self {
        Self {
            device: self.device.clone(),
            ..*self
        }
    }
}

impl<B: Bus> SharedReceiveQueue<B> {
    pub(crate) fn create(pd: &ProtectionDomain<B>, init: &SrqInit) -> Result<Self> {
        let mut core = lock(&pd.device.core)?;
        core.alive(pd.life, "protection domain", pd.handle)?;
        let caps = core.info.caps;
        let max_wr = caps.max_qp_wr() - 1;
        if init.max_wr == 0 || init.max_wr > max_wr {
            return Err(Error::invalid(format!(
                "max_wr {}: a shared receive queue has 1 to {max_wr}",
                init.max_wr
            )));
        }
        if init.max_sge > caps.max_sge {
            return Err(Error::invalid(format!(
                "max_sge {}: the device has at most {}",
                init.max_sge, caps.max_sge
            )));
        }
        if u32::from(init.uar) >= caps.num_uar {
            return Err(Error::invalid(format!(
                "doorbell page {}: there are {}, counted from 0",
                init.uar, caps.num_uar
            )));
        }
        let log_size = (init.max_wr + 1).next_power_of_two().trailing_zeros();
        let need = RQ_HEADER + 16 * init.max_sge.max(1) as usize;
        let log_stride = need.div_ceil(RqWqe::BYTES).next_power_of_two().trailing_zeros();
        if log_stride > caps.max_rq_stride {
            return Err(Error::invalid(format!(
                "a receive WQE of {need} bytes: the device has at most {}",
                RqWqe::BYTES << caps.max_rq_stride
            )));
        }
        let stride = RqWqe::BYTES << log_stride;
        let max_sge = (((stride - RQ_HEADER) / 16) as u32).min(caps.max_sge);
        let ring = core
            .bus
            .dma_alloc(stride << log_size, 64)
            .doing("allocating a shared receive queue")?;
        let command = CmdSrq::new()
            .with_opcode(CmdOpcode::CreateSrq.into())
            .with_pd(pd.handle.0)
            .with_uar(init.uar)
            .with_log_size(log_size as u8)
            .with_log_stride(log_stride as u8)
            .with_base(ring.addr);
        let made = core.command(command.0, 1).and_then(|result| {
            u16::try_from(result.handle)
                .map(Srqn)
                .map_err(|_| Error::protocol(format!("CREATE_SRQ returned handle {:#x}", result.handle)))
        });
        let srqn = match made {
            Ok(srqn) if !core.srqs.contains_key(&srqn) => srqn,
            Err(e) if e.status().is_some() => {
                core.bus.dma_free(ring).doing("freeing a shared receive queue")?;
                return Err(e);
            }
            other => {
                // The device may have made it and read its ring.
                core.quarantine.push(ring);
                return Err(match other {
                    Err(e) => e,
                    Ok(srqn) => Error::protocol(format!("CREATE_SRQ returned SRQ {srqn}, which exists already")),
                });
            }
        };
        let state = SrqState::new(ring, log_size, stride, init.uar, max_sge);
        core.srqs.insert(srqn, state);
        Ok(Self {
            device: pd.device.clone(),
            srqn,
            life: core.life,
        })
    }

    /// Its number.
    pub fn srqn(&self) -> Srqn {
        self.srqn
    }

    /// Asks for SRQ_LIMIT_REACHED once, as soon as fewer than `limit` work requests wait; 0: no longer.
    ///
    /// # Errors
    /// [`Error::Invalid`] for more than the queue can hold; those of commands.
    pub fn set_limit(&self, limit: u16) -> Result<()> {
        let mut core = lock(&self.device.core)?;
        let capacity = core.srq(self.life, self.srqn)?.capacity();
        if usize::from(limit) > capacity {
            return Err(Error::invalid(format!(
                "limit {limit}: shared receive queue {} holds {capacity} work requests",
                self.srqn
            )));
        }
        let command = CmdSrq::new()
            .with_opcode(CmdOpcode::ModifySrq.into())
            .with_handle(u32::from(self.srqn.0))
            .with_limit(limit);
        core.command(command.0, 1).map(drop)
    }

    /// Its sizes, its limit and how many work requests wait.
    ///
    /// # Errors
    /// Those of commands; [`Error::Protocol`] when the device counts more than were posted.
    pub fn query(&self) -> Result<SrqAttr> {
        let mut core = lock(&self.device.core)?;
        let srq = core.srq(self.life, self.srqn)?;
        let (capacity, max_sge, outstanding) = (srq.capacity(), srq.max_sge, srq.outstanding());
        let command = CmdHeader::new()
            .with_opcode(CmdOpcode::QuerySrq.into())
            .with_handle(u32::from(self.srqn.0));
        let result = core.command(command.0, 1)?;
        let limit = u16::try_from(result.count);
        match limit {
            Ok(limit) if result.handle as usize <= outstanding => Ok(SrqAttr {
                max_wr: capacity as u32,
                max_sge,
                limit,
                waiting: result.handle,
            }),
            _ => Err(Error::protocol(format!(
                "QUERY_SRQ of {}: {} work requests wait of {outstanding} outstanding, limit {:#x}",
                self.srqn, result.handle, result.count
            ))),
        }
    }

    /// Posts receive work requests and rings the doorbell once.
    ///
    /// # Errors
    /// [`Error::Post`] names the first request that was not posted; those before it were.
    pub fn post_recv(&self, list: &[RecvWr]) -> Result<()> {
        let mut core = lock(&self.device.core)?;
        core.srq(self.life, self.srqn)?;
        let core = &mut *core;
        let Some(srq) = core.srqs.get_mut(&self.srqn) else {
            return Err(Error::Stale {
                what: format!("shared receive queue {}", self.srqn),
            });
        };
        let mut failed = None;
        let mut posted = false;
        for (bad_wr, wr) in list.iter().enumerate() {
            let max = srq.max_sge as usize;
            let place = if wr.sges.len() > max {
                Err(PostErrorKind::TooManySges {
                    given: wr.sges.len(),
                    max,
                })
            } else {
                srq.free_slot().ok_or(PostErrorKind::Full {
                    capacity: srq.capacity(),
                })
            };
            let (slot, next) = match place {
                Ok(place) => place,
                Err(kind) => {
                    failed = Some(PostError {
                        bad_wr,
                        wr_id: wr.wr_id,
                        kind,
                    });
                    break;
                }
            };
            let mut bytes = RqWqe::new()
                .with_num_sge(wr.sges.len() as u8)
                .with_next(next)
                .as_bytes()
                .to_vec();
            bytes.resize(srq.stride.max(RqWqe::BYTES), 0);
            put_sges(&mut bytes, RQ_HEADER, &wr.sges);
            core.bus
                .dma_write(srq.ring.addr + (usize::from(slot) * srq.stride) as u64, &bytes)
                .doing("writing a receive WQE")?;
            srq.post(slot, next, wr.wr_id);
            posted = true;
        }
        if posted {
            let db = DbSrq::new()
                .with_srqn(u32::from(self.srqn.0))
                .with_producer(srq.producer);
            let uar = srq.uar;
            core.doorbell(uar, DB_SRQ, db.0)?;
        }
        failed.map_or(Ok(()), |e| Err(e.into()))
    }

    /// Destroys the queue. Work requests that wait are forgotten. Its handles are stale afterwards.
    ///
    /// # Errors
    /// IN_USE while queue pairs receive from it; those of commands.
    pub fn destroy(&self) -> Result<()> {
        let mut core = lock(&self.device.core)?;
        let ring = core.srq(self.life, self.srqn)?.ring;
        let command = CmdHeader::new()
            .with_opcode(CmdOpcode::DestroySrq.into())
            .with_handle(u32::from(self.srqn.0));
        core.command(command.0, 1)?;
        core.srqs.remove(&self.srqn);
        core.bus.dma_free(ring).doing("freeing a shared receive queue")
    }
}

impl<B: Bus> Core<B> {
    fn srq(&mut self, life: u64, srqn: Srqn) -> Result<&mut SrqState> {
        self.alive(life, "shared receive queue", srqn)?;
        self.srqs.get_mut(&srqn).ok_or_else(|| Error::Stale {
            what: format!("shared receive queue {srqn}"),
        })
    }
}

/// An XRC domain: XRC target queue pairs belong to one.
pub struct XrcDomain<B: Bus> {
    device: Device<B>,
    handle: XrcdHandle,
    life: u64,
}

impl<B: Bus> Clone for XrcDomain<B> {
    fn clone(&self) -> Self {
        Self {
            device: self.device.clone(),
            ..*self
        }
    }
}

impl<B: Bus> XrcDomain<B> {
    pub(crate) fn create(device: &Device<B>) -> Result<Self> {
        let mut core = lock(&device.core)?;
        let command = CmdHeader::new().with_opcode(CmdOpcode::CreateXrcd.into());
        let result = core.command(command.0, 1)?;
        let handle = u16::try_from(result.handle)
            .map(XrcdHandle)
            .map_err(|_| Error::protocol(format!("CREATE_XRCD returned handle {:#x}", result.handle)))?;
        if !core.xrcds.insert(handle) {
            return Err(Error::protocol(format!(
                "CREATE_XRCD returned XRC domain {handle}, which exists already"
            )));
        }
        Ok(Self {
            device: device.clone(),
            handle,
            life: core.life,
        })
    }

    /// Its handle, for [`crate::QpInit::xrcd`].
    pub fn handle(&self) -> XrcdHandle {
        self.handle
    }

    /// Frees the domain. Its handles are stale afterwards.
    ///
    /// # Errors
    /// IN_USE while queue pairs belong to it; those of commands.
    pub fn dealloc(&self) -> Result<()> {
        let mut core = lock(&self.device.core)?;
        core.alive(self.life, "XRC domain", self.handle)?;
        if !core.xrcds.contains(&self.handle) {
            return Err(Error::Stale {
                what: format!("XRC domain {}", self.handle),
            });
        }
        let command = CmdHeader::new()
            .with_opcode(CmdOpcode::DestroyXrcd.into())
            .with_handle(u32::from(self.handle.0));
        core.command(command.0, 1)?;
        core.xrcds.remove(&self.handle);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_come_back_in_any_order_and_the_links_say_which_is_next() {
        let mut srq = SrqState::new(DmaBuf { addr: 0, len: 0 }, 2, 32, 0, 1);
        assert_eq!(srq.capacity(), 3);
        let mut device = 0u16; // the slot that the device takes next
        let mut links = [0u16; 4];
        let mut held = Vec::new();
        let mut id = 0;
        for round in 0..40_000usize {
            while let Some((slot, next)) = srq.free_slot() {
                links[usize::from(slot)] = next;
                srq.post(slot, next, id);
                id += 1;
            }
            assert_eq!(srq.outstanding(), 3);
            // All that was posted is taken in the order of posting, and comes back in another.
            while held.len() < 3 {
                held.push(device);
                device = links[usize::from(device)];
            }
            let back = 1 + round % 3;
            for n in 0..back {
                let slot = held.remove((round + n) % held.len());
                assert!(srq.complete(slot).is_some(), "round {round}");
                assert_eq!(srq.complete(slot), None, "completed twice");
            }
        }
        assert_eq!(srq.complete(4), None, "no such slot");
        assert_eq!(srq.producer, (id & 0xffff) as u16);
    }
}
