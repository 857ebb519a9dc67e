// SPDX-License-Identifier: Apache-2.0
//! Memory regions.

use openrnic_spec::{Access, CmdHeader, CmdMr, CmdOpcode, MrKind};

use crate::bus::{Bus, DmaBuf};
use crate::device::{Device, lock};
use crate::error::{Doing, Error, Result};
use crate::pd::ProtectionDomain;
use crate::types::{Iova, LKey, RKey};
use crate::wr::Sge;

/// A memory region to register.
#[derive(Debug, Clone)]
pub struct MrInit {
    /// Bytes, 1 or more.
    pub length: usize,
    /// What the region may be used for; reading it locally is always allowed.
    pub access: Access,
    /// Address by which users and peers name the first byte; `None`: its bus address.
    pub iova: Option<Iova>,
    /// Alignment of the buffer in bytes, a power of two.
    pub align: usize,
    /// Variable part of the key (bits 7:0).
    pub key: u8,
    /// Whether work requests and peers may invalidate the key.
    pub kind: MrKind,
}

impl Default for MrInit {
    /// 4096 bytes for local use.
    fn default() -> Self {
        Self {
            length: 4096,
            access: Access::LOCAL_WRITE,
            iova: None,
            align: 4096,
            key: 0,
            kind: MrKind::Region,
        }
    }
}

impl MrInit {
    /// A region with this length and access.
    pub fn new(length: usize, access: Access) -> Self {
        Self {
            length,
            access,
            ..Self::default()
        }
    }
}

pub(crate) struct MrState {
    pub(crate) buf: DmaBuf,
}

/// A memory region and the DMA buffer behind it.
pub struct MemoryRegion<B: Bus> {
    device: Device<B>,
    key: u32,
    iova: Iova,
    length: usize,
    life: u64,
}

impl<B: Bus> Clone for MemoryRegion<B> {
    fn clone(&self) -> Self {
        Self {
            device: self.device.clone(),
            ..*self
        }
    }
}

impl<B: Bus> MemoryRegion<B> {
    pub(crate) fn register(pd: &ProtectionDomain<B>, init: &MrInit) -> Result<Self> {
        if init.length == 0 {
            return Err(Error::invalid("a memory region of 0 bytes: 1 or more are possible"));
        }
        if init.access.0 & !0xff != 0 {
            return Err(Error::invalid(format!(
                "access {:#x} of a memory region: 8 bits are possible",
                init.access.0
            )));
        }
        let mut core = lock(&pd.device.core)?;
        core.alive(pd.life, "protection domain", pd.handle)?;
        let buf = core
            .bus
            .dma_alloc(init.length, init.align)
            .doing("allocating a memory region")?;
        let iova = init.iova.unwrap_or(Iova(buf.addr));
        let command = CmdMr::new()
            .with_opcode(CmdOpcode::CreateMr.into())
            .with_pd(pd.handle.0)
            .with_access(init.access.0 as u8)
            .with_key(init.key)
            .with_kind(init.kind.into())
            .with_va(iova.0)
            .with_length(init.length as u64)
            .with_host_addr(buf.addr);
        let result = match core.command(command.0, 1) {
            Ok(result) => result,
            Err(e) => {
                core.bus.dma_free(buf).doing("freeing a memory region")?;
                return Err(e);
            }
        };
        let key = result.handle;
        if core.mrs.contains_key(&key) {
            core.bus.dma_free(buf).doing("freeing a memory region")?;
            return Err(Error::protocol(format!(
                "CREATE_MR returned key {key:#x}, which exists already"
            )));
        }
        core.mrs.insert(key, MrState { buf });
        Ok(Self {
            device: pd.device.clone(),
            key,
            iova,
            length: init.length,
            life: core.life,
        })
    }

    /// The local key.
    pub fn lkey(&self) -> LKey {
        LKey(self.key)
    }

    /// The remote key; on this device the same number as the local one.
    pub fn rkey(&self) -> RKey {
        RKey(self.key)
    }

    /// Address of the first byte as users and peers name it.
    pub fn iova(&self) -> Iova {
        self.iova
    }

    /// Length in bytes.
    pub fn length(&self) -> usize {
        self.length
    }

    /// An SGE for a part of the region. Not checked: the device does.
    pub fn sge(&self, offset: usize, length: u32) -> Sge {
        Sge {
            addr: self.iova.offset(offset as u64),
            length,
            lkey: self.lkey(),
        }
    }

    fn at(&self, offset: usize, bytes: usize, buf: DmaBuf) -> Result<u64> {
        match offset.checked_add(bytes) {
            Some(end) if end <= buf.len => Ok(buf.addr + offset as u64),
            _ => Err(Error::invalid(format!(
                "bytes {offset} to {} of a memory region of {} bytes",
                offset.saturating_add(bytes),
                buf.len
            ))),
        }
    }

    /// Bus address of a byte of it.
    ///
    /// # Errors
    /// [`Error::Invalid`] outside the region; [`Error::Stale`].
    pub fn bus_addr(&self, offset: usize) -> Result<u64> {
        let core = lock(&self.device.core)?;
        let buf = self.buf(&core.mrs, core.life)?;
        self.at(offset, 1, buf)
    }

    /// Writes the host's view of the region.
    ///
    /// # Errors
    /// [`Error::Invalid`] outside the region; [`Error::Stale`].
    pub fn write(&self, offset: usize, data: &[u8]) -> Result<()> {
        let mut core = lock(&self.device.core)?;
        let buf = self.buf(&core.mrs, core.life)?;
        let at = self.at(offset, data.len(), buf)?;
        core.bus.dma_write(at, data).doing("writing a memory region")
    }

    /// Reads the host's view of the region.
    ///
    /// # Errors
    /// [`Error::Invalid`] outside the region; [`Error::Stale`].
    pub fn read(&self, offset: usize, bytes: usize) -> Result<Vec<u8>> {
        let mut core = lock(&self.device.core)?;
        let buf = self.buf(&core.mrs, core.life)?;
        let at = self.at(offset, bytes, buf)?;
        let mut out = vec![0; bytes];
        core.bus.dma_read(at, &mut out).doing("reading a memory region")?;
        Ok(out)
    }

    fn buf(&self, mrs: &std::collections::BTreeMap<u32, MrState>, life: u64) -> Result<DmaBuf> {
        match mrs.get(&self.key) {
            Some(mr) if life == self.life => Ok(mr.buf),
            _ => Err(Error::Stale {
                what: format!("memory region with key {:#x}", self.key),
            }),
        }
    }

    /// Deregisters the region and frees its buffer. Its handles are stale afterwards.
    ///
    /// # Errors
    /// Those of commands; the region is still there then.
    pub fn deregister(&self) -> Result<()> {
        let mut core = lock(&self.device.core)?;
        let buf = self.buf(&core.mrs, core.life)?;
        let command = CmdHeader::new()
            .with_opcode(CmdOpcode::DestroyMr.into())
            .with_handle(self.key);
        core.command(command.0, 1)?;
        core.mrs.remove(&self.key);
        core.bus.dma_free(buf).doing("freeing a memory region")
    }
}
