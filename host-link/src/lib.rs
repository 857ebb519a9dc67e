// SPDX-License-Identifier: Apache-2.0
//! The host link: a board without PCIe sends its TLPs over a serial line, and the host process is the root complex.
//!
//! - [`frame`]: bytes to frames and back.
//! - [`endpoint`]: the host's end of a session: numbers, acknowledgements, what is sent again, when it is given up.
//! - [`line`]: a serial line, cut down to what is needed; [`tty`] is one of the operating system.
//! - [`device`]: the board as a [`Device`](openrnic_sim::device::Device), for the root complex of `openrnic-sim`; [`open`] and
//!   [`open_tty`] join them to a [`NicBus`], so that the driver above is the one that drives a simulation.
//!
//! The layouts stand in `spec/link.toml`, the rules in the book ("The host link").
#![deny(missing_docs)]

pub mod device;
pub mod endpoint;
pub mod frame;
pub mod line;
pub mod tty;

use std::cell::RefCell;
use std::rc::Rc;

use openrnic_driver::OpenParams;
use openrnic_sim::pcie::HostParams;
use openrnic_sim::{NicBus, SimError, World, WorldParams};
use openrnic_spec::CqHdr;

pub use device::SerialDevice;
pub use endpoint::{LinkError, LinkParams};
pub use line::{Line, LineError};

/// Ticks until the root complex lets the function out of reset.
const RESET_TICKS: u64 = 8;
/// Largest TLP payload that the root complex sends and lets the function send, in bytes.
const MAX_PAYLOAD: u64 = openrnic_spec::LINK_MAX_PAYLOAD as u64 - CqHdr::BYTES as u64;

/// How a driver should open a device behind a line: reads that one completion answers, and the longest completion time-out that the
/// device knows (2^23 clock cycles), since what it asks for comes slowly, and later still when bytes were lost.
pub fn open_params() -> OpenParams {
    OpenParams {
        max_read_request: MAX_PAYLOAD as u32,
        dma_timeout_cycles: Some(0x7f_ffff),
        ready_cycles: 100_000,
        command_cycles: 100_000,
        ..OpenParams::default()
    }
}

/// Begins a session on a line and gives its bus. Time on that bus (its "clock cycles") is counted in ticks of the line.
///
/// # Errors
/// [`SimError`] when the parameters make no sense. That nobody answers is told by the first access: see [`LinkError`].
pub fn open(line: Box<dyn Line>, params: LinkParams) -> Result<NicBus, SimError> {
    let tick_ps = line.tick_ps();
    let device = SerialDevice::new(line, params);
    let mut world = WorldParams {
        nics: 1,
        host: HostParams {
            max_payload: MAX_PAYLOAD,
            reset_cycles: RESET_TICKS,
            ..HostParams::ideal()
        },
        ..WorldParams::default()
    };
    world.nic.params.push(("ClkPeriodPs".to_owned(), tick_ps.to_string()));
    let world = World::with_devices(&world, vec![Box::new(device)])?;
    NicBus::new(&Rc::new(RefCell::new(world)), 0)
}

/// Opens a serial port of the operating system (`/dev/ttyUSB0`) at `baud` bits a second and begins a session.
///
/// # Errors
/// [`LineError`] when it cannot be opened.
pub fn open_tty(path: &str, baud: u32) -> Result<NicBus, LineError> {
    let line = tty::Tty::open(path, baud)?;
    let params = LinkParams::for_baud(baud, tty::TICK_PS);
    open(Box::new(line), params).map_err(|e| LineError::new("beginning a session", e.to_string()))
}
