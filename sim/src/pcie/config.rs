// SPDX-License-Identifier: Apache-2.0
//! Config space of the function: a type 0 header, the PCI Express and the MSI-X capability.
//!
//! On a board the hard IP of the link holds it, so it is part of the surroundings here, too.

use openrnic_spec::{BAR0_BYTES, DEV_VERSION, MSIX_PBA_BASE, MSIX_TABLE_BASE, NUM_MSIX, PCI_DEVICE_ID, PCI_VENDOR_ID};

/// Byte offsets in config space, and bits there.
pub mod regs {
    #![allow(missing_docs)] // names as in the PCI Express base specification, chapter 7
    pub const ID: u16 = 0x00;
    pub const COMMAND: u16 = 0x04;
    pub const CLASS: u16 = 0x08;
    pub const HEADER_TYPE: u16 = 0x0c;
    pub const BAR0: u16 = 0x10;
    pub const BAR1: u16 = 0x14;
    pub const SUBSYSTEM: u16 = 0x2c;
    pub const CAPABILITIES: u16 = 0x34;
    /// PCI Express capability.
    pub const PCIE: u16 = 0x40;
    pub const DEVICE_CAP: u16 = PCIE + 0x04;
    pub const DEVICE_CONTROL: u16 = PCIE + 0x08;
    pub const LINK_CAP: u16 = PCIE + 0x0c;
    pub const LINK_CONTROL: u16 = PCIE + 0x10;
    /// MSI-X capability.
    pub const MSIX: u16 = 0x80;
    pub const MSIX_TABLE: u16 = MSIX + 4;
    pub const MSIX_PBA: u16 = MSIX + 8;

    pub const COMMAND_MEMORY: u32 = 1 << 1;
    pub const COMMAND_BUS_MASTER: u32 = 1 << 2;
    pub const STATUS_CAPABILITIES: u32 = 1 << 20;
    pub const DEVICE_CAP_FLR: u32 = 1 << 28;
    pub const DEVICE_CONTROL_FLR: u32 = 1 << 15;
    pub const MSIX_ENABLE: u32 = 1 << 31;
    pub const MSIX_FUNCTION_MASK: u32 = 1 << 30;
}

use regs::*;

const WORDS: usize = 1024;

/// Largest payload that the function takes and makes, in bytes.
pub const MAX_PAYLOAD: u64 = 1024;
/// Reset value of device control: extended tags, no relaxed ordering, 128 bytes of payload, 512 of read
/// request.
const DEVICE_CONTROL_RESET: u32 = 0x2100;

/// Config space, 4096 bytes in double words.
#[derive(Debug, Clone)]
pub struct ConfigSpace {
    words: [u32; WORDS],
    /// Bits that a write changes.
    writable: [u32; WORDS],
    /// Bits that writing 1 clears.
    clearable: [u32; WORDS],
    /// Code of the largest payload that function and link support: 128 bytes << code.
    payload_code: u32,
}

impl ConfigSpace {
    /// As it is after power-on, on a link with this max payload size in bytes (128 to 1024).
    pub fn new(max_payload: u64) -> Self {
        let payload_code = (max_payload.clamp(128, MAX_PAYLOAD) / 128).ilog2();
        let mut space = Self {
            words: [0; WORDS],
            writable: [0; WORDS],
            clearable: [0; WORDS],
            payload_code,
        };
        let mut put = |off: u16, value: u32, writable: u32, clearable: u32| {
            let at = usize::from(off / 4);
            space.words[at] = value;
            space.writable[at] = writable;
            space.clearable[at] = clearable;
        };
        put(ID, u32::from(PCI_DEVICE_ID) << 16 | u32::from(PCI_VENDOR_ID), 0, 0);
        put(
            COMMAND,
            STATUS_CAPABILITIES,
            COMMAND_MEMORY | COMMAND_BUS_MASTER | 0x0540,
            0xf900_0000,
        );
        // Network controller, Ethernet; revision from the device's version.
        put(CLASS, 0x0200_0000 | (DEV_VERSION >> 16) & 0xff, 0, 0);
        put(HEADER_TYPE, 0, 0xff, 0);
        // 64-bit memory, not prefetchable.
        put(BAR0, 0x4, !(BAR0_BYTES - 1), 0);
        put(BAR1, 0, u32::MAX, 0);
        put(
            SUBSYSTEM,
            u32::from(PCI_DEVICE_ID) << 16 | u32::from(PCI_VENDOR_ID),
            0,
            0,
        );
        put(CAPABILITIES, u32::from(PCIE), 0, 0);
        put(0x3c, 0, 0xff, 0);
        // Version 2, endpoint; next capability: MSI-X.
        put(PCIE, 0x0002_0010 | u32::from(MSIX) << 8, 0, 0);
        // Extended tags, role-based errors, function-level reset.
        put(DEVICE_CAP, payload_code | 1 << 5 | 1 << 15 | DEVICE_CAP_FLR, 0, 0);
        put(DEVICE_CONTROL, DEVICE_CONTROL_RESET, 0x7fff, 0x000f_0000);
        // 8 GT/s, 4 lanes.
        put(LINK_CAP, 0x0000_0043, 0, 0);
        put(LINK_CONTROL, 0x0043_0000, 0x01c8, 0);
        // Completion time-out ranges.
        put(PCIE + 0x24, 0x1f, 0, 0);
        put(PCIE + 0x28, 0, 0x1f, 0);
        put(MSIX, (NUM_MSIX - 1) << 16 | 0x11, MSIX_ENABLE | MSIX_FUNCTION_MASK, 0);
        put(MSIX_TABLE, MSIX_TABLE_BASE, 0, 0);
        put(MSIX_PBA, MSIX_PBA_BASE, 0, 0);
        space
    }

    /// The double word at a byte offset below 4096; bits 1:0 of the offset are ignored.
    pub fn read(&self, off: u16) -> u32 {
        self.words[usize::from(off / 4) % WORDS]
    }

    /// Writes a double word; true when that asks for a function-level reset.
    pub fn write(&mut self, off: u16, value: u32) -> bool {
        let at = usize::from(off / 4) % WORDS;
        let kept = self.words[at] & !self.writable[at];
        self.words[at] = (kept | value & self.writable[at]) & !(value & self.clearable[at]);
        at == usize::from(DEVICE_CONTROL / 4) && value & DEVICE_CONTROL_FLR != 0
    }

    /// What a function-level reset leaves: all as after power-on but the max payload size, which
    /// belongs to the link (PCIe base specification 6.6.2).
    pub fn function_reset(&mut self) {
        let payload = self.read(DEVICE_CONTROL) & 0xe0;
        *self = Self::new(128 << self.payload_code);
        self.words[usize::from(DEVICE_CONTROL / 4)] = DEVICE_CONTROL_RESET & !0xe0 | payload;
    }

    /// Memory decoding is on.
    pub fn memory_enabled(&self) -> bool {
        self.read(COMMAND) & COMMAND_MEMORY != 0
    }

    /// The function may use DMA and raise interrupts.
    pub fn bus_master(&self) -> bool {
        self.read(COMMAND) & COMMAND_BUS_MASTER != 0
    }

    /// Address of BAR0; 0 when none was given.
    pub fn bar0(&self) -> u64 {
        u64::from(self.read(BAR1)) << 32 | u64::from(self.read(BAR0) & !0xf)
    }

    /// Max payload size in bytes.
    pub fn max_payload(&self) -> u64 {
        128 << (self.read(DEVICE_CONTROL) >> 5 & 7).min(self.payload_code)
    }

    /// Max read request size in bytes.
    pub fn max_read_request(&self) -> u64 {
        128 << (self.read(DEVICE_CONTROL) >> 12 & 7).min(5)
    }

    /// MSI-X is enabled and not masked as a whole.
    pub fn msix_enabled(&self) -> bool {
        self.read(MSIX) & (MSIX_ENABLE | MSIX_FUNCTION_MASK) == MSIX_ENABLE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_sized_by_writing_ones() {
        let mut c = ConfigSpace::new(256);
        c.write(BAR0, u32::MAX);
        c.write(BAR1, u32::MAX);
        let low = c.read(BAR0);
        assert_eq!(low & 0xf, 0x4, "64-bit, not prefetchable");
        let size = (!(u64::from(c.read(BAR1)) << 32 | u64::from(low & !0xf))).wrapping_add(1);
        assert_eq!(size, u64::from(BAR0_BYTES));
        c.write(BAR0, 0xe000_0000);
        c.write(BAR1, 0x12);
        assert_eq!(c.bar0(), 0x12_e000_0000);
    }

    #[test]
    fn read_only_bits_stay_and_status_bits_clear_by_writing_one() {
        let mut c = ConfigSpace::new(256);
        let id = c.read(ID);
        c.write(ID, 0);
        assert_eq!(c.read(ID), id);
        assert_eq!(id & 0xffff, u32::from(PCI_VENDOR_ID));
        c.words[usize::from(DEVICE_CONTROL / 4)] |= 0x000f_0000;
        let control = c.read(DEVICE_CONTROL) & 0xffff;
        c.write(DEVICE_CONTROL, control | 0x0005_0000);
        assert_eq!(c.read(DEVICE_CONTROL) >> 16, 0x000a);
    }

    #[test]
    fn capabilities_are_chained_and_name_the_sizes() {
        let c = ConfigSpace::new(256);
        assert_ne!(c.read(COMMAND) & STATUS_CAPABILITIES, 0);
        let mut at = c.read(CAPABILITIES) as u16 & 0xff;
        let mut ids = Vec::new();
        while at != 0 {
            ids.push(c.read(at) & 0xff);
            at = (c.read(at) >> 8) as u16 & 0xff;
        }
        assert_eq!(ids, [0x10, 0x11]);
        assert_eq!(c.read(MSIX) >> 16 & 0x7ff, NUM_MSIX - 1);
        assert_eq!((c.max_payload(), c.max_read_request()), (128, 512));
    }

    #[test]
    fn function_reset_keeps_the_payload_size_only() {
        let mut c = ConfigSpace::new(256);
        c.write(COMMAND, COMMAND_MEMORY | COMMAND_BUS_MASTER);
        c.write(BAR0, 0xe000_0000);
        assert!(!c.write(DEVICE_CONTROL, 0x5020));
        assert_eq!((c.max_payload(), c.max_read_request()), (256, 4096));
        assert!(c.write(DEVICE_CONTROL, 0x5020 | DEVICE_CONTROL_FLR));
        assert_eq!(c.read(DEVICE_CONTROL) & DEVICE_CONTROL_FLR, 0, "reads as 0");
        c.function_reset();
        assert!(!c.bus_master() && !c.memory_enabled() && c.bar0() == 0);
        assert_eq!((c.max_payload(), c.max_read_request()), (256, 512));
    }
}
