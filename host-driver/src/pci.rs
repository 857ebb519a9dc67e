// SPDX-License-Identifier: Apache-2.0
//! Enumeration: config space, BAR sizing, capabilities, function-level reset.

use openrnic_spec::{PCI_DEVICE_ID, PCI_VENDOR_ID};

use crate::bus::Bus;
use crate::device::OpenParams;
use crate::error::{Doing, Error, Result};

const COMMAND: u16 = 0x04;
const BAR0: u16 = 0x10;
const BAR1: u16 = 0x14;
const CAPABILITIES: u16 = 0x34;

const COMMAND_MEMORY: u32 = 1 << 1;
const COMMAND_BUS_MASTER: u32 = 1 << 2;
/// The status half of COMMAND clears by writing ones: write zeros there.
const COMMAND_MASK: u32 = 0xffff;
const STATUS_CAPABILITIES: u32 = 1 << 20;

const CAP_PCIE: u8 = 0x10;
const CAP_MSIX: u8 = 0x11;
const DEVICE_CAP_FLR: u32 = 1 << 28;
const DEVICE_CONTROL_FLR: u32 = 1 << 15;
const MSIX_ENABLE: u32 = 1 << 31;
const MSIX_FUNCTION_MASK: u32 = 1 << 30;

/// Most capabilities that fit config space; a longer list is a loop.
const MAX_CAPABILITIES: usize = 48;

/// What enumeration found and set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PciInfo {
    /// Vendor ID.
    pub vendor: u16,
    /// Device ID.
    pub device: u16,
    /// Size of BAR0 in bytes.
    pub bar0_bytes: u64,
    /// Bus address of BAR0.
    pub bar0_addr: u64,
    /// Max payload size set, in bytes.
    pub max_payload: u32,
    /// Max read request size set, in bytes.
    pub max_read_request: u32,
    /// MSI-X vectors.
    pub vectors: u16,
    /// Byte offset of the MSI-X table in BAR0.
    pub msix_table: u32,
    /// Function-level reset is supported.
    pub can_reset: bool,
    pcie: u16,
    msix: u16,
}

fn read<B: Bus>(bus: &mut B, off: u16) -> Result<u32> {
    bus.config_read(off).doing("reading config space")
}

fn write<B: Bus>(bus: &mut B, off: u16, value: u32) -> Result<()> {
    bus.config_write(off, value).doing("writing config space")
}

fn bad(what: String) -> Error {
    Error::BadDevice { what }
}

/// Cycles that a function may need after power-on until it answers in config space.
const PRESENT_CYCLES: u64 = 20_000;

/// The first double word of config space, once the function answers.
fn await_present<B: Bus>(bus: &mut B, budget: u64) -> Result<Option<u32>> {
    let start = bus.now_cycles();
    loop {
        let id = read(bus, 0)?;
        if id != u32::MAX {
            return Ok(Some(id));
        }
        if bus.now_cycles().saturating_sub(start) >= budget {
            return Ok(None);
        }
        bus.advance(64).doing("waiting for the function to answer")?;
    }
}

/// Finds the function and its capabilities; changes nothing.
pub(crate) fn probe<B: Bus>(bus: &mut B) -> Result<PciInfo> {
    let Some(id) = await_present(bus, PRESENT_CYCLES)? else {
        return Err(Error::NoFunction);
    };
    let (vendor, device) = (id as u16, (id >> 16) as u16);
    if (vendor, device) != (PCI_VENDOR_ID, PCI_DEVICE_ID) {
        return Err(Error::WrongFunction {
            vendor,
            device,
            want_vendor: PCI_VENDOR_ID,
            want_device: PCI_DEVICE_ID,
        });
    }
    let mut info = PciInfo {
        vendor,
        device,
        ..PciInfo::default()
    };
    if read(bus, COMMAND)? & STATUS_CAPABILITIES == 0 {
        return Err(bad("config space has no capability list".into()));
    }
    let mut at = read(bus, CAPABILITIES)? as u16 & 0xfc;
    for _ in 0..MAX_CAPABILITIES {
        if at < 0x40 {
            break;
        }
        let word = read(bus, at)?;
        match word as u8 {
            CAP_PCIE if info.pcie == 0 => info.pcie = at,
            CAP_MSIX if info.msix == 0 => info.msix = at,
            _ => {}
        }
        at = (word >> 8) as u16 & 0xfc;
    }
    if at >= 0x40 {
        return Err(bad("the capability list of config space runs in a circle".into()));
    }
    if info.pcie == 0 {
        return Err(bad("config space has no PCI Express capability".into()));
    }
    if info.msix == 0 {
        return Err(bad("config space has no MSI-X capability".into()));
    }
    info.can_reset = read(bus, info.pcie + 4)? & DEVICE_CAP_FLR != 0;
    info.vectors = (read(bus, info.msix)? >> 16 & 0x7ff) as u16 + 1;
    let table = read(bus, info.msix + 4)?;
    if table & 7 != 0 {
        return Err(bad(format!("the MSI-X table lies in BAR {}, not in BAR 0", table & 7)));
    }
    info.msix_table = table & !7;
    Ok(info)
}

/// Sizes and places BAR0, sets payload and read sizes, turns on memory decoding, bus mastering and MSI-X.
pub(crate) fn set_up<B: Bus>(bus: &mut B, info: &mut PciInfo, params: &OpenParams) -> Result<()> {
    let command = read(bus, COMMAND)? & COMMAND_MASK & !(COMMAND_MEMORY | COMMAND_BUS_MASTER);
    write(bus, COMMAND, command)?;
    size_bar(bus, info, params.bar_address)?;

    let device_cap = read(bus, info.pcie + 4)?;
    let largest = 128u32 << (device_cap & 7).min(5);
    let payload = params.max_payload.unwrap_or(largest).min(largest);
    let code = |what: &str, bytes: u32| match bytes {
        128..=4096 if bytes.is_power_of_two() => Ok((bytes / 128).ilog2()),
        _ => Err(Error::invalid(format!(
            "{what} of {bytes} bytes: a power of two from 128 to 4096 is possible"
        ))),
    };
    let payload_code = code("max_payload", payload)?;
    let read_code = code("max_read_request", params.max_read_request)?;
    let control = read(bus, info.pcie + 8)? & 0xffff & !(7 << 5 | 7 << 12 | DEVICE_CONTROL_FLR);
    write(bus, info.pcie + 8, control | payload_code << 5 | read_code << 12)?;
    info.max_payload = payload;
    info.max_read_request = params.max_read_request;

    write(bus, COMMAND, command | COMMAND_MEMORY | COMMAND_BUS_MASTER)?;
    let table_end = u64::from(info.msix_table) + 16 * u64::from(info.vectors);
    if table_end > info.bar0_bytes {
        return Err(bad(format!(
            "the MSI-X table ends at {table_end:#x}, BAR0 at {:#x}",
            info.bar0_bytes
        )));
    }
    for vector in 0..info.vectors {
        let Some(message) = bus.msix_message(vector).doing("asking for an interrupt")? else {
            continue;
        };
        let entry = u64::from(info.msix_table) + 16 * u64::from(vector);
        for (off, value) in [
            (0, message.addr as u32),
            (4, (message.addr >> 32) as u32),
            (8, message.data),
            (12, 0),
        ] {
            bus.mmio_write32(entry + off, value).doing("writing the MSI-X table")?;
        }
    }
    let control = read(bus, info.msix)? & !MSIX_FUNCTION_MASK;
    write(bus, info.msix, control | MSIX_ENABLE)
}

fn size_bar<B: Bus>(bus: &mut B, info: &mut PciInfo, address: u64) -> Result<()> {
    let (old_low, old_high) = (read(bus, BAR0)?, read(bus, BAR1)?);
    if old_low & 1 != 0 {
        return Err(bad("BAR 0 is an I/O BAR, not memory".into()));
    }
    let wide = old_low & 6 == 4;
    write(bus, BAR0, u32::MAX)?;
    let low = read(bus, BAR0)? & !0xf;
    let high = if wide {
        write(bus, BAR1, u32::MAX)?;
        read(bus, BAR1)?
    } else {
        u32::MAX
    };
    let mask = u64::from(high) << 32 | u64::from(low);
    let size = (!mask).wrapping_add(1);
    if mask == 0 || !size.is_power_of_two() || size < 0x1000 {
        return Err(bad(format!(
            "BAR 0 answers {mask:#x} when it is sized, which is no size"
        )));
    }
    // What firmware or the operating system has placed stays where it is.
    let old = if wide { u64::from(old_high) << 32 } else { 0 } | u64::from(old_low & !0xf);
    let address = if old != 0 && old.is_multiple_of(size) {
        old
    } else {
        address.next_multiple_of(size)
    };
    if !wide && address >> 32 != 0 {
        return Err(Error::invalid(format!(
            "bar_address {address:#x}: BAR 0 of this device has 32 bits"
        )));
    }
    write(bus, BAR0, address as u32)?;
    if wide {
        write(bus, BAR1, (address >> 32) as u32)?;
    }
    info.bar0_bytes = size;
    info.bar0_addr = address;
    Ok(())
}

/// Function-level reset; returns when the function answers in config space again.
pub(crate) fn function_reset<B: Bus>(bus: &mut B, info: &PciInfo, budget: u64) -> Result<()> {
    if !info.can_reset {
        return Err(Error::invalid("the function has no function-level reset"));
    }
    // No new requests from the device while it goes down (PCIe base specification 6.6.2).
    let command = read(bus, COMMAND)? & COMMAND_MASK;
    write(bus, COMMAND, command & !COMMAND_BUS_MASTER)?;
    let control = read(bus, info.pcie + 8)? & 0xffff;
    write(bus, info.pcie + 8, control | DEVICE_CONTROL_FLR)?;
    bus.advance(64).doing("waiting for the reset")?;
    match await_present(bus, budget)? {
        Some(_) => Ok(()),
        None => Err(Error::Timeout {
            awaited: "the function to answer in config space after a function-level reset".into(),
            cycles: budget,
            hint: String::new(),
        }),
    }
}

/// Takes bus mastering away.
pub(crate) fn stop_dma<B: Bus>(bus: &mut B) -> Result<()> {
    let command = read(bus, COMMAND)? & COMMAND_MASK;
    write(bus, COMMAND, command & !COMMAND_BUS_MASTER)
}
