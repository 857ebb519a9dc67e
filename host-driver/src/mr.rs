// SPDX-License-Identifier: Apache-2.0
//! Memory regions.

use openrnic_spec::{
    Access, CmdHeader, CmdMr, CmdOpcode, LOCAL_MEM_BASE, MAX_MR_LOG_PAGE, MIN_MR_LOG_PAGE, MrChange, MrKind,
};

use crate::bus::{Bus, DmaBuf};
use crate::device::{Device, lock};
use crate::error::{Doing, Error, Result};
use crate::pd::ProtectionDomain;
use crate::regs::DeviceCaps;
use crate::types::{Iova, LKey, RKey};
use crate::wr::{Named, SendWr, Sge};

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
    /// The buffer is one piece of bus memory (`None`), or pages that lie anywhere.
    pub pages: Option<Pages>,
    /// Variable part of the key (bits 7:0).
    pub key: u8,
    /// Whether work requests and peers may invalidate the key.
    pub kind: MrKind,
    /// The region is memory on the board from this offset on (as ibv_alloc_dm(3) gives it) instead of host memory: the device
    /// reaches it without the host link, the host only by RDMA.
    pub on_board: Option<u64>,
}

impl Default for MrInit {
    /// 4096 bytes for local use.
    fn default() -> Self {
        Self {
            length: 4096,
            access: Access::LOCAL_WRITE,
            iova: None,
            align: 4096,
            pages: None,
            key: 0,
            kind: MrKind::Region,
            on_board: None,
        }
    }
}

impl MrInit {
    fn check(&self) -> Result<()> {
        if self.length == 0 {
            return Err(Error::invalid("a memory region of 0 bytes: 1 or more are possible"));
        }
        if self.access.0 & !0xff != 0 {
            return Err(Error::invalid(format!(
                "access {:#x} of a memory region: 8 bits are possible",
                self.access.0
            )));
        }
        if self.on_board.is_some() && self.pages.is_some() {
            return Err(Error::invalid("a region on the board is one piece: it has no pages"));
        }
        match self.pages {
            Some(p)
                if !(MIN_MR_LOG_PAGE..=MAX_MR_LOG_PAGE).contains(&p.log_page.into()) || p.offset >> p.log_page != 0 =>
            {
                Err(Error::invalid(format!(
                    "pages of 2^{} bytes with the region beginning at {} of the first: 2^{MIN_MR_LOG_PAGE} to \
                     2^{MAX_MR_LOG_PAGE} and an offset inside are possible",
                    p.log_page, p.offset
                )))
            }
            _ => Ok(()),
        }
    }

    /// A region on the board must lie in its memory.
    fn fits(&self, caps: &DeviceCaps) -> Result<()> {
        let Some(offset) = self.on_board else { return Ok(()) };
        let size = caps.local_mem_bytes();
        match offset.checked_add(self.length as u64) {
            Some(end) if end <= size => Ok(()),
            _ => Err(Error::invalid(format!(
                "{} bytes from {offset} on in the memory of the board, which has {size}",
                self.length
            ))),
        }
    }

    /// A region with this length and access.
    pub fn new(length: usize, access: Access) -> Self {
        Self {
            length,
            access,
            ..Self::default()
        }
    }
}

/// A region of pages that need not follow each other in bus memory, as those of a user's buffer: the device finds them through a
/// page list in host memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pages {
    /// log2 of the page size, [`MIN_MR_LOG_PAGE`] to [`MAX_MR_LOG_PAGE`].
    pub log_page: u8,
    /// Place of the region's first byte in its first page.
    pub offset: usize,
    /// Chooses the order in which the pages, allocated one by one, make up the region.
    pub scatter: u64,
}

impl Default for Pages {
    /// Pages of 4 KiB, the region beginning at the start of the first.
    fn default() -> Self {
        Self {
            log_page: MIN_MR_LOG_PAGE as u8,
            offset: 0,
            scatter: 1,
        }
    }
}

/// The bus memory behind a region.
#[derive(Clone)]
pub(crate) struct MrState {
    /// One piece, or its pages in their order.
    parts: Vec<DmaBuf>,
    /// Place of the region's first byte in the first of them.
    offset: usize,
    list: Option<DmaBuf>,
    /// Bus address in the memory on the board.
    on_board: Option<u64>,
    pub(crate) length: usize,
}

impl MrState {
    /// Bus address of the first byte.
    fn first(&self) -> u64 {
        let host = self.parts.first().map_or(0, |p| p.addr + self.offset as u64);
        self.on_board.unwrap_or(host)
    }

    /// All that is to be freed.
    pub(crate) fn buffers(self) -> Vec<DmaBuf> {
        self.parts.into_iter().chain(self.list).collect()
    }

    /// Allocates the memory of a region, and writes its page list.
    fn allocate<B: Bus>(bus: &mut B, init: &MrInit) -> Result<Self> {
        let mut state = Self {
            parts: Vec::new(),
            offset: 0,
            list: None,
            on_board: init.on_board.map(|offset| LOCAL_MEM_BASE + offset),
            length: init.length,
        };
        let done = state.fill(bus, init);
        match done {
            Ok(()) => Ok(state),
            Err(e) => {
                for buf in state.buffers() {
                    bus.dma_free(buf).doing("freeing a memory region")?;
                }
                Err(e)
            }
        }
    }

    fn fill<B: Bus>(&mut self, bus: &mut B, init: &MrInit) -> Result<()> {
        if self.on_board.is_some() {
            return Ok(());
        }
        let Some(pages) = init.pages else {
            let buf = bus.dma_alloc(init.length, init.align);
            self.parts.push(buf.doing("allocating a memory region")?);
            return Ok(());
        };
        self.offset = pages.offset;
        let page = 1usize << pages.log_page;
        let count = (pages.offset + init.length).div_ceil(page);
        for _ in 0..count {
            let buf = bus.dma_alloc(page, page);
            self.parts.push(buf.doing("allocating a page of a memory region")?);
        }
        // A shuffle (Fisher-Yates) with a linear congruential generator: any order will do, the same for the same number.
        let mut state = pages.scatter;
        for i in (1..count).rev() {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            self.parts.swap(i, (state >> 33) as usize % (i + 1));
        }
        let list: Vec<u8> = self.parts.iter().flat_map(|p| p.addr.to_le_bytes()).collect();
        // The device reads whole lines of 64 bytes.
        let buf = bus.dma_alloc(list.len().next_multiple_of(64), 64);
        let buf = buf.doing("allocating a page list")?;
        self.list = Some(buf);
        bus.dma_write(buf.addr, &list).doing("writing a page list")
    }

    /// Bus address and length of the pieces that hold `bytes` bytes from `offset` on.
    fn pieces(&self, offset: usize, bytes: usize) -> Result<Vec<(u64, usize)>> {
        if offset.checked_add(bytes).is_none_or(|end| end > self.length) {
            return Err(Error::invalid(format!(
                "bytes {offset} to {} of a memory region of {} bytes",
                offset.saturating_add(bytes),
                self.length
            )));
        }
        if self.on_board.is_some() {
            return Err(Error::invalid(
                "the host's view of a region on the board: only RDMA reaches it, READ or WRITE it through a queue pair",
            ));
        }
        let (mut at, mut left) = (self.offset + offset, bytes);
        let mut out = Vec::new();
        for part in &self.parts {
            if at < part.len && left > 0 {
                let n = left.min(part.len - at);
                out.push((part.addr + at as u64, n));
                left -= n;
                at = 0;
            } else {
                at = at.saturating_sub(part.len);
            }
        }
        Ok(out)
    }
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
        init.check()?;
        let mut core = lock(&pd.device.core)?;
        core.alive(pd.life, "protection domain", pd.handle)?;
        init.fits(&core.info.caps)?;
        let state = MrState::allocate(&mut core.bus, init)?;
        let first = state.first();
        let iova = init.iova.unwrap_or(Iova(first));
        let log_page = init.pages.map_or(0, |p| p.log_page);
        let command = CmdMr::new()
            .with_opcode(CmdOpcode::CreateMr.into())
            .with_pd(pd.handle.0)
            .with_access(init.access.0 as u8)
            .with_key(init.key)
            .with_kind(init.kind.into())
            .with_va(iova.0)
            .with_length(init.length as u64)
            .with_log_page(log_page)
            .with_page_offset(state.offset as u32)
            .with_host_addr(state.list.map_or(first, |list| list.addr));
        let made = core.command(command.0, 1).and_then(|result| {
            let key = result.handle;
            match core.mrs.contains_key(&key) {
                false => Ok(key),
                true => Err(Error::protocol(format!(
                    "CREATE_MR returned key {key:#x}, which exists already"
                ))),
            }
        });
        let key = match made {
            Ok(key) => key,
            Err(e) => {
                for buf in state.buffers() {
                    core.bus.dma_free(buf).doing("freeing a memory region")?;
                }
                return Err(e);
            }
        };
        core.mrs.insert(key, state);
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

    /// Bus address of a byte of it.
    ///
    /// # Errors
    /// [`Error::Invalid`] outside the region; [`Error::Stale`].
    pub fn bus_addr(&self, offset: usize) -> Result<u64> {
        let core = lock(&self.device.core)?;
        let pieces = self.state(&core.mrs, core.life)?.pieces(offset, 1)?;
        Ok(pieces.first().map_or(0, |(addr, _)| *addr))
    }

    /// Writes the host's view of the region.
    ///
    /// # Errors
    /// [`Error::Invalid`] outside the region; [`Error::Stale`].
    pub fn write(&self, offset: usize, data: &[u8]) -> Result<()> {
        let mut core = lock(&self.device.core)?;
        let pieces = self.state(&core.mrs, core.life)?.pieces(offset, data.len())?;
        let mut rest = data;
        for (addr, bytes) in pieces {
            let (now, later) = rest.split_at(bytes);
            core.bus.dma_write(addr, now).doing("writing a memory region")?;
            rest = later;
        }
        Ok(())
    }

    /// Reads the host's view of the region.
    ///
    /// # Errors
    /// [`Error::Invalid`] outside the region; [`Error::Stale`].
    pub fn read(&self, offset: usize, bytes: usize) -> Result<Vec<u8>> {
        let mut core = lock(&self.device.core)?;
        let pieces = self.state(&core.mrs, core.life)?.pieces(offset, bytes)?;
        let mut out = vec![0; bytes];
        let mut rest = out.as_mut_slice();
        for (addr, bytes) in pieces {
            let (now, later) = rest.split_at_mut(bytes);
            core.bus.dma_read(addr, now).doing("reading a memory region")?;
            rest = later;
        }
        Ok(out)
    }

    fn state<'a>(&self, mrs: &'a std::collections::BTreeMap<u32, MrState>, life: u64) -> Result<&'a MrState> {
        match mrs.get(&self.key) {
            Some(mr) if life == self.life => Ok(mr),
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
        self.state(&core.mrs, core.life)?;
        let command = CmdHeader::new()
            .with_opcode(CmdOpcode::DestroyMr.into())
            .with_handle(self.key);
        core.command(command.0, 1)?;
        for buf in core.mrs.remove(&self.key).map_or_else(Vec::new, MrState::buffers) {
            core.bus.dma_free(buf).doing("freeing a memory region")?;
        }
        Ok(())
    }

    /// Bus address of the region's page list, if it has one.
    ///
    /// # Errors
    /// [`Error::Stale`].
    pub fn page_list_addr(&self) -> Result<Option<u64>> {
        let core = lock(&self.device.core)?;
        Ok(self.state(&core.mrs, core.life)?.list.map(|l| l.addr))
    }
}

/// What [`MemoryRegion::rereg`] changes, as ibv_rereg_mr(3); `None` stays.
pub struct Rereg<'a, B: Bus> {
    /// Protection domain.
    pub pd: Option<&'a ProtectionDomain<B>>,
    /// What the region may be used for.
    pub access: Option<Access>,
    /// The memory behind it, its length and its address; of this neither access nor key are used.
    pub translation: Option<&'a MrInit>,
    /// Variable part of the key.
    pub key: Option<u8>,
}

impl<B: Bus> Default for Rereg<'_, B> {
    /// Nothing.
    fn default() -> Self {
        Self {
            pd: None,
            access: None,
            translation: None,
            key: None,
        }
    }
}

impl<B: Bus> MemoryRegion<B> {
    /// Changes the region under traffic: what comes after is judged and placed anew, and when this returns nothing is under way under
    /// what was before, and memory that was replaced is freed. Earlier handles of the region go on only if its key stays.
    ///
    /// # Errors
    /// Those of commands and of the allocator, IN_USE while windows are bound; the region is then as before.
    pub fn rereg(&self, change: &Rereg<'_, B>) -> Result<Self> {
        let mut core = lock(&self.device.core)?;
        self.state(&core.mrs, core.life)?;
        let key = change.key.map_or(self.key, |tag| self.key & !0xff | u32::from(tag));
        let mut what = MrChange(0);
        let mut command = CmdMr::new()
            .with_opcode(CmdOpcode::ReregMr.into())
            .with_handle(self.key)
            .with_key(key as u8);
        let mut done = Self { key, ..self.clone() };
        if let Some(pd) = change.pd {
            what |= MrChange::PD;
            command = command.with_pd(pd.handle.0);
        }
        if let Some(access) = change.access {
            what |= MrChange::ACCESS;
            command = command.with_access(access.0 as u8);
        }
        let mut state = None;
        if let Some(init) = change.translation {
            init.check()?;
            what |= MrChange::TRANSLATION;
            init.fits(&core.info.caps)?;
            let new = MrState::allocate(&mut core.bus, init)?;
            let first = new.first();
            done.iova = init.iova.unwrap_or(Iova(first));
            done.length = init.length;
            command = command
                .with_va(done.iova.0)
                .with_length(init.length as u64)
                .with_log_page(init.pages.map_or(0, |p| p.log_page))
                .with_page_offset(new.offset as u32)
                .with_host_addr(new.list.map_or(first, |list| list.addr));
            state = Some(new);
        }
        let command = command.with_change(what.0 as u8);
        let result = core.command(command.0, 1);
        // Of the two memories the one that is not used now goes.
        let unused = match &result {
            Ok(_) => {
                let old = core.mrs.remove(&self.key);
                let (kept, gone) = match state {
                    Some(new) => (Some(new), old),
                    None => (old, None),
                };
                if let Some(kept) = kept {
                    core.mrs.insert(key, kept);
                }
                gone
            }
            Err(_) => state,
        };
        for buf in unused.map_or_else(Vec::new, MrState::buffers) {
            core.bus.dma_free(buf).doing("freeing a memory region")?;
        }
        result.map(|_| done)
    }
}

/// A key that CREATE_MR made without memory of its own: of a fast-registration region or of a window.
struct OwnKey<B: Bus> {
    device: Device<B>,
    key: u32,
    life: u64,
}

impl<B: Bus> OwnKey<B> {
    fn allocate(pd: &ProtectionDomain<B>, kind: MrKind, list: Option<usize>) -> Result<Self> {
        let mut core = lock(&pd.device.core)?;
        core.alive(pd.life, "protection domain", pd.handle)?;
        let list = match list {
            None => None,
            Some(bytes) => Some(core.bus.dma_alloc(bytes, 64).doing("allocating a page list")?),
        };
        let command = CmdMr::new()
            .with_opcode(CmdOpcode::CreateMr.into())
            .with_pd(pd.handle.0)
            .with_kind(u8::from(kind));
        let key = match core.command(command.0, 1) {
            Ok(result) => result.handle,
            Err(e) => {
                if let Some(list) = list {
                    core.bus.dma_free(list).doing("freeing a page list")?;
                }
                return Err(e);
            }
        };
        let state = MrState {
            parts: Vec::new(),
            offset: 0,
            list,
            on_board: None,
            length: 0,
        };
        core.mrs.insert(key, state);
        Ok(Self {
            device: pd.device.clone(),
            key,
            life: core.life,
        })
    }

    fn free(&self) -> Result<()> {
        let mut core = lock(&self.device.core)?;
        if life_over(&core.mrs, self.key, core.life, self.life) {
            return Err(Error::Stale {
                what: format!("memory key {:#x}", self.key),
            });
        }
        let command = CmdHeader::new()
            .with_opcode(CmdOpcode::DestroyMr.into())
            .with_handle(self.key);
        core.command(command.0, 1)?;
        for buf in core.mrs.remove(&self.key).map_or_else(Vec::new, MrState::buffers) {
            core.bus.dma_free(buf).doing("freeing a page list")?;
        }
        Ok(())
    }
}

fn life_over(mrs: &std::collections::BTreeMap<u32, MrState>, key: u32, now: u64, life: u64) -> bool {
    now != life || !mrs.contains_key(&key)
}

/// A memory window of type 2.
pub struct MemoryWindow<B: Bus>(OwnKey<B>);

impl<B: Bus> MemoryWindow<B> {
    pub(crate) fn allocate(pd: &ProtectionDomain<B>) -> Result<Self> {
        OwnKey::allocate(pd, MrKind::Window, None).map(Self)
    }

    /// Its key as it was allocated; [`crate::inc_rkey`] makes the next one, which a BIND_MW can give it.
    pub fn rkey(&self) -> RKey {
        RKey(self.0.key)
    }

    /// Unbinds and frees it.
    ///
    /// # Errors
    /// Those of commands.
    pub fn dealloc(&self) -> Result<()> {
        self.0.free()
    }
}

/// A region for fast registration: work requests register memory under its key and invalidate it.
pub struct FastRegion<B: Bus> {
    own: OwnKey<B>,
    max_pages: usize,
}

impl<B: Bus> FastRegion<B> {
    pub(crate) fn allocate(pd: &ProtectionDomain<B>, max_pages: usize) -> Result<Self> {
        if max_pages == 0 {
            return Err(Error::invalid(
                "a fast-registration region of 0 pages: 1 or more are possible",
            ));
        }
        let own = OwnKey::allocate(pd, MrKind::FastReg, Some((8 * max_pages).next_multiple_of(64)))?;
        Ok(Self { own, max_pages })
    }

    /// Its key as it was allocated; [`crate::inc_rkey`] makes the next one, which a REG_MR can give it.
    pub fn rkey(&self) -> RKey {
        RKey(self.own.key)
    }

    /// Writes the page list of `memory`, as ib_map_mr_sg, and gives the work request that registers it under `key` with addresses from
    /// `iova` on. The list must not be in use: what was registered before must have been invalidated.
    ///
    /// # Errors
    /// [`Error::Invalid`] for memory that is no list of pages, or of more than were allocated for; [`Error::Stale`].
    pub fn reg_wr(
        &self,
        wr_id: u64,
        key: RKey,
        memory: &MemoryRegion<B>,
        iova: Iova,
        access: Access,
    ) -> Result<SendWr> {
        let mut core = lock(&self.own.device.core)?;
        if life_over(&core.mrs, self.own.key, core.life, self.own.life) {
            return Err(Error::Stale {
                what: format!("memory key {:#x}", self.own.key),
            });
        }
        let from = memory.state(&core.mrs, core.life)?;
        let page = from.parts.first().map_or(0, |p| p.len);
        if from.list.is_none() || from.parts.len() > self.max_pages {
            return Err(Error::invalid(format!(
                "{} pages to register, {} are possible: allocate more, or make the region of pages",
                from.parts.len(),
                self.max_pages
            )));
        }
        let list: Vec<u8> = from.parts.iter().flat_map(|p| p.addr.to_le_bytes()).collect();
        let (offset, length) = (from.offset as u32, from.length as u64);
        let Some(place) = core.mrs.get(&self.own.key).and_then(|s| s.list) else {
            return Err(Error::protocol("a fast-registration region without a page list"));
        };
        core.bus.dma_write(place.addr, &list).doing("writing a page list")?;
        let named = Named {
            addr: iova,
            length,
            access,
            lkey: LKey(0),
            host_addr: place.addr,
            log_page: page.trailing_zeros() as u8,
            page_offset: offset,
        };
        Ok(SendWr::reg_mr(wr_id, key, named))
    }

    /// Frees it, whatever is registered under it. The memory belongs to others.
    ///
    /// # Errors
    /// IN_USE while windows are bound to it; those of commands.
    pub fn dealloc(&self) -> Result<()> {
        self.own.free()
    }
}
