// SPDX-License-Identifier: Apache-2.0
//! Protection domains.

use openrnic_spec::{CmdHeader, CmdOpcode};

use crate::bus::Bus;
use crate::device::{Device, lock};
use crate::error::Result;
use crate::mr::{FastRegion, MemoryRegion, MemoryWindow, MrInit};
use crate::qp::{BatchInit, QpBatch, QpInit, QueuePair};
use crate::srq::{SharedReceiveQueue, SrqInit};
use crate::types::PdHandle;

/// A protection domain: queue pairs reach the memory regions of their own domain only.
pub struct ProtectionDomain<B: Bus> {
    pub(crate) device: Device<B>,
    pub(crate) handle: PdHandle,
    pub(crate) life: u64,
}

impl<B: Bus> Clone for ProtectionDomain<B> {
    fn clone(&self) -> Self {
        Self {
            device: self.device.clone(),
            ..*self
        }
    }
}

impl<B: Bus> ProtectionDomain<B> {
    /// Its handle.
    pub fn handle(&self) -> PdHandle {
        self.handle
    }

    /// The device.
    pub fn device(&self) -> &Device<B> {
        &self.device
    }

    /// Registers a memory region with a DMA buffer of its own.
    ///
    /// # Errors
    /// Those of commands and of the allocator; [`crate::Error::Invalid`] for impossible parameters.
    pub fn register(&self, init: &MrInit) -> Result<MemoryRegion<B>> {
        MemoryRegion::register(self, init)
    }

    /// Allocates a key for fast registration, as ib_alloc_mr: REG_MR work requests of QPs that may post them
    /// ([`QpInit::fast_reg`](crate::QpInit::fast_reg)) register memory of up to `max_pages` pages under it.
    ///
    /// # Errors
    /// Those of commands and of the allocator; [`crate::Error::Invalid`] without a page.
    pub fn alloc_mr(&self, max_pages: usize) -> Result<FastRegion<B>> {
        FastRegion::allocate(self, max_pages)
    }

    /// Allocates a memory window of type 2, as ibv_alloc_mw(3): BIND_MW work requests bind it.
    ///
    /// # Errors
    /// Those of commands.
    pub fn alloc_mw(&self) -> Result<MemoryWindow<B>> {
        MemoryWindow::allocate(self)
    }

    /// Creates a shared receive queue. The keys of its work requests are those of this domain.
    ///
    /// # Errors
    /// Those of commands and of the allocator; [`crate::Error::Invalid`] for impossible parameters.
    pub fn create_srq(&self, init: &SrqInit) -> Result<SharedReceiveQueue<B>> {
        SharedReceiveQueue::create(self, init)
    }

    /// Creates one queue pair, in state RESET.
    ///
    /// # Errors
    /// Those of commands and of the allocator; [`crate::Error::Invalid`] for impossible parameters.
    pub fn create_qp(&self, init: &QpInit) -> Result<QueuePair<B>> {
        crate::qp::create_one(self, init)
    }

    /// Creates `count` queue pairs by one command, in state RESET.
    ///
    /// # Errors
    /// As [`Self::create_qp`]; either all are made or none.
    pub fn create_qps(&self, count: u32, init: &QpInit, batch: &BatchInit) -> Result<QpBatch<B>> {
        crate::qp::create_batch(self, count, init, batch, None)
    }

    /// Creates `count` queue pairs and moves them to INIT by one command: all or none.
    ///
    /// # Errors
    /// As [`Self::create_qps`], and [`crate::Error::Gate`] when the gate refuses the attributes.
    pub fn install_qps(
        &self,
        count: u32,
        init: &QpInit,
        batch: &BatchInit,
        attr: &crate::attr::QpAttr,
        mask: openrnic_spec::QpAttrBit,
    ) -> Result<QpBatch<B>> {
        let record = attr.record(mask)?;
        crate::qp::create_batch(self, count, init, batch, Some(record))
    }

    /// As [`Self::install_qps`] with the record as the device reads it, wrong ones included.
    ///
    /// # Errors
    /// As [`Self::install_qps`].
    pub fn install_qps_raw(
        &self,
        count: u32,
        init: &QpInit,
        batch: &BatchInit,
        record: openrnic_spec::QpAttr,
    ) -> Result<QpBatch<B>> {
        crate::qp::create_batch(self, count, init, batch, Some(record))
    }

    /// Frees the domain. Its handles are stale afterwards.
    ///
    /// # Errors
    /// IN_USE while regions or queue pairs belong to it; those of commands.
    pub fn dealloc(&self) -> Result<()> {
        let mut core = lock(&self.device.core)?;
        core.alive(self.life, "protection domain", self.handle)?;
        if !core.pds.contains_key(&self.handle) {
            return Err(crate::Error::Stale {
                what: format!("protection domain {}", self.handle),
            });
        }
        let command = CmdHeader::new()
            .with_opcode(CmdOpcode::DestroyPd.into())
            .with_handle(u32::from(self.handle.0));
        core.command(command.0, 1)?;
        core.pds.remove(&self.handle);
        Ok(())
    }
}
