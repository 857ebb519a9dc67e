// SPDX-License-Identifier: Apache-2.0
//! The only thing the driver knows of the world: one PCIe function seen from the host.
//!
//! A back-end (the simulated root complex, a board behind a serial TLP link, VFIO) implements
//! [`Bus`]; the driver is written against nothing else. All addresses given to the device are *bus
//! addresses*. Nothing here waits without a bound: a call that needs device time advances it by
//! itself and gives up with [`BusError::Timeout`].

/// Why a bus access failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BusError {
    /// The access lies outside the function's BAR.
    #[error("BAR access of {bytes} bytes at offset {offset:#x} lies outside the BAR of {bar_bytes:#x} bytes")]
    OutsideBar {
        /// Byte offset in BAR0.
        offset: u64,
        /// Length of the access in bytes.
        bytes: usize,
        /// Size of BAR0 in bytes; 0 when it is not mapped.
        bar_bytes: u64,
    },
    /// The access is not aligned to its own size.
    #[error("{what} at {offset:#x} is not aligned to {align} bytes")]
    Misaligned {
        /// Which kind of access.
        what: &'static str,
        /// Byte offset or address.
        offset: u64,
        /// Required alignment in bytes.
        align: u64,
    },
    /// Memory decoding is off or the BAR has no address: enumerate the function first.
    #[error("BAR0 is not mapped: set its address and the memory-enable bit of the command register first")]
    NotMapped,
    /// The device answered a read with an unsuccessful completion.
    #[error("device completed the read at BAR offset {offset:#x} with {status}")]
    Completion {
        /// Byte offset in BAR0.
        offset: u64,
        /// Completion status by name: "unsupported request", "completer abort", "poisoned data".
        status: &'static str,
    },
    /// The device did not answer in time.
    #[error(
        "no answer to {what} at {offset:#x} within {cycles} clock cycles: the function is stuck or in reset; reset it and enumerate again"
    )]
    Timeout {
        /// What was awaited.
        what: &'static str,
        /// Byte offset in BAR0 or in config space.
        offset: u64,
        /// Device clock cycles waited.
        cycles: u64,
    },
    /// No DMA memory left.
    #[error(
        "no room for a DMA buffer of {bytes} bytes ({free} bytes free of {total}): free buffers or enlarge the host memory"
    )]
    OutOfMemory {
        /// Bytes asked for.
        bytes: usize,
        /// Bytes free, not necessarily in one piece.
        free: usize,
        /// Size of the memory in bytes.
        total: usize,
    },
    /// The host touched DMA memory that is not allocated.
    #[error("host access to {bytes} bytes at bus address {addr:#x}, which no DMA buffer covers")]
    NotAllocated {
        /// Bus address.
        addr: u64,
        /// Bytes.
        bytes: usize,
    },
    /// An argument no back-end can serve.
    #[error("{what}")]
    Invalid {
        /// What is wrong, and what would be right.
        what: String,
    },
    /// The back-end itself broke: its message says how. Nothing further will work.
    #[error("bus back-end failed: {0}")]
    Backend(String),
}

/// A piece of host memory that the device may reach by DMA.
///
/// A plain handle: dropping it frees nothing, [`Bus::dma_free`] does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DmaBuf {
    /// Bus address of the first byte.
    pub addr: u64,
    /// Length in bytes.
    pub len: usize,
}

impl DmaBuf {
    /// First bus address after the buffer.
    pub fn end(&self) -> u64 {
        self.addr + self.len as u64
    }
}

/// What a function writes to raise one of its MSI-X vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MsiMessage {
    /// Bus address of the 4-byte write.
    pub addr: u64,
    /// The value written.
    pub data: u32,
}

/// One PCIe function as its driver sees it.
///
/// Config space follows the PCI specification (type 0 header). Values of config space and of MMIO
/// are numbers in host order; their bytes on the bus are little-endian. MMIO writes are *posted*:
/// they may reach the device after the call has returned, in order; an MMIO read pushes them.
pub trait Bus {
    /// Reads the config-space double word at byte offset `off` (a multiple of 4, below 4096).
    /// A function that is not there reads as all ones, as on a real bus.
    fn config_read(&mut self, off: u16) -> Result<u32, BusError>;

    /// Writes the config-space double word at byte offset `off`.
    fn config_write(&mut self, off: u16, value: u32) -> Result<(), BusError>;

    /// Reads 4 bytes at byte offset `off` of BAR0.
    fn mmio_read32(&mut self, off: u64) -> Result<u32, BusError>;

    /// Reads 8 bytes at byte offset `off` of BAR0, as one access.
    fn mmio_read64(&mut self, off: u64) -> Result<u64, BusError>;

    /// Writes 4 bytes at byte offset `off` of BAR0.
    fn mmio_write32(&mut self, off: u64, value: u32) -> Result<(), BusError>;

    /// Writes 8 bytes at byte offset `off` of BAR0, as one access (doorbells).
    fn mmio_write64(&mut self, off: u64, value: u64) -> Result<(), BusError>;

    /// Allocates `bytes` of zeroed DMA memory aligned to `align` (a power of two), mapped for the
    /// device until freed.
    fn dma_alloc(&mut self, bytes: usize, align: usize) -> Result<DmaBuf, BusError>;

    /// Unmaps and frees a buffer. Device access to it from then on is an error of the run.
    fn dma_free(&mut self, buf: DmaBuf) -> Result<(), BusError>;

    /// Reads host memory at a bus address.
    fn dma_read(&mut self, addr: u64, out: &mut [u8]) -> Result<(), BusError>;

    /// Writes host memory at a bus address. Visible to the device at once.
    fn dma_write(&mut self, addr: u64, data: &[u8]) -> Result<(), BusError>;

    /// The message that the driver shall put into the MSI-X table for `vector`; `None` when the back-end
    /// programs the table by itself.
    fn msix_message(&mut self, vector: u16) -> Result<Option<MsiMessage>, BusError> {
        let _ = vector;
        Ok(None)
    }

    /// Takes the MSI-X vectors raised since the last call, in order of arrival.
    fn take_interrupts(&mut self) -> Vec<u16>;

    /// Lets device time pass. A back-end on real hardware waits about that long.
    fn advance(&mut self, cycles: u64) -> Result<(), BusError>;

    /// Device clock cycles since the back-end started.
    fn now_cycles(&self) -> u64;

    /// Length of a device clock cycle in picoseconds.
    fn clk_period_ps(&self) -> u64;
}

impl<T: Bus + ?Sized> Bus for Box<T> {
    fn config_read(&mut self, off: u16) -> Result<u32, BusError> {
        (**self).config_read(off)
    }

    fn config_write(&mut self, off: u16, value: u32) -> Result<(), BusError> {
        (**self).config_write(off, value)
    }

    fn mmio_read32(&mut self, off: u64) -> Result<u32, BusError> {
        (**self).mmio_read32(off)
    }

    fn mmio_read64(&mut self, off: u64) -> Result<u64, BusError> {
        (**self).mmio_read64(off)
    }

    fn mmio_write32(&mut self, off: u64, value: u32) -> Result<(), BusError> {
        (**self).mmio_write32(off, value)
    }

    fn mmio_write64(&mut self, off: u64, value: u64) -> Result<(), BusError> {
        (**self).mmio_write64(off, value)
    }

    fn dma_alloc(&mut self, bytes: usize, align: usize) -> Result<DmaBuf, BusError> {
        (**self).dma_alloc(bytes, align)
    }

    fn dma_free(&mut self, buf: DmaBuf) -> Result<(), BusError> {
        (**self).dma_free(buf)
    }

    fn dma_read(&mut self, addr: u64, out: &mut [u8]) -> Result<(), BusError> {
        (**self).dma_read(addr, out)
    }

    fn dma_write(&mut self, addr: u64, data: &[u8]) -> Result<(), BusError> {
        (**self).dma_write(addr, data)
    }

    fn msix_message(&mut self, vector: u16) -> Result<Option<MsiMessage>, BusError> {
        (**self).msix_message(vector)
    }

    fn take_interrupts(&mut self) -> Vec<u16> {
        (**self).take_interrupts()
    }

    fn advance(&mut self, cycles: u64) -> Result<(), BusError> {
        (**self).advance(cycles)
    }

    fn now_cycles(&self) -> u64 {
        (**self).now_cycles()
    }

    fn clk_period_ps(&self) -> u64 {
        (**self).clk_period_ps()
    }
}
