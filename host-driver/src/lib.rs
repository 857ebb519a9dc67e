// SPDX-License-Identifier: Apache-2.0
//! Host driver of OpenRNIC, in verbs terms, on the [`bus::Bus`] trait.
//!
//! A [`Device`] owns its bus. Everything else is a handle that shares the device: cheap to clone, not
//! `Send`, and stale once its object is gone or the device was reset. Calls that wait are bounded in
//! device clock cycles. Nothing here panics, whatever the device or the caller does.
//!
//! ```no_run
//! # fn main() -> Result<(), openrnic_driver::Error> {
//! # fn bus() -> Box<dyn openrnic_driver::Bus> { unimplemented!() }
//! use openrnic_driver::{attr, *};
//!
//! let device = Device::open(bus(), OpenParams::default())?;
//! device.set_port(1, [2, 0, 0, 0, 0, 1], spec::Mtu::Mtu4096, true)?;
//! device.set_gid(0, Gid::from_ipv4([10, 0, 0, 1]))?;
//! device.set_pkey(0, 0xffff)?;
//! let pd = device.alloc_pd()?;
//! let cq = device.create_cq(&CqInit::entries(1024))?;
//! let batch = pd.create_qps(64, &QpInit::new(spec::QpType::Rc, &cq), &BatchInit::range())?;
//! batch.modify(&QpAttr { qp_state: spec::QpState::Init, ..QpAttr::default() }, attr::INIT_MASK)?;
//! # Ok(())
//! # }
//! ```
#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod attr;
pub mod bus;
mod cmd;
mod cq;
mod device;
mod error;
mod event;
mod mac;
mod mr;
mod pci;
mod pd;
mod qp;
mod qp_list;
mod regs;
mod ring;
mod srq;
mod stall;
mod types;
mod wr;

pub use attr::{AddressVector, QpAttr};
pub use bus::{Bus, BusError, DmaBuf, MsiMessage};
pub use cmd::{CmdResult, Ticket};
pub use cq::{CompletionQueue, CqInit, CqModeration};
pub use device::{Counters, Device, DeviceInfo, OpenParams};
pub use error::{CommandError, Error, GateRefusal, PostError, PostErrorKind, Result};
pub use event::AsyncEvent;
pub use mac::MacStatus;
pub use mr::{FastRegion, MemoryRegion, MemoryWindow, MrInit, Pages, Rereg};
pub use openrnic_spec as spec;
pub use pci::PciInfo;
pub use pd::ProtectionDomain;
pub use qp::{BatchInit, Numbering, QpBatch, QpCap, QpInit, QpQuery, QueuePair};
pub use qp_list::QpFilter;
pub use regs::{DeviceCaps, FoundBlock};
pub use srq::{SharedReceiveQueue, SrqAttr, SrqInit, XrcDomain};
pub use stall::{Diagnosis, Timer, Wait};
pub use types::{Cqn, Gid, Iova, LKey, PdHandle, Psn, Qpn, RKey, Srqn, XrcdHandle};
pub use wr::{Named, RecvWr, SendWr, Sge, WorkCompletion, inc_rkey};
