// SPDX-License-Identifier: Apache-2.0
//! The host side of a NIC: config space, root complex, faults.

mod config;
mod fault;
mod params;
mod root;
mod tlp;

pub use config::{ConfigSpace, MAX_PAYLOAD, regs};
pub use fault::{CompletionFault, Which};
pub use params::{HostParams, LinkCount, MmioError, PcieStats, Split};
pub(crate) use root::in_bar;
pub use root::{MSI_BASE, ReadId, RootPort};
