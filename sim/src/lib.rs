// SPDX-License-Identifier: Apache-2.0
//! Simulated host, wire and clock around the Verilated RNIC.
//!
//! - [`model`] builds and clocks the RTL: [`model::BlockModel`] for benches of single blocks,
//!   [`model::NicModel`] for whole NICs.
//! - [`pcie`] is the host of a NIC: config space, BAR accesses, DMA, interrupts, faults.
//! - [`memory`] is its memory.
//! - [`wire`] joins the NICs' ports: rate, latency, loss and worse, captures.
//! - [`world`] holds all of them together under one clock and one seed.
//! - [`NicBus`] shows a NIC to the driver.
//!
//! Whatever happens is decided by the seed: the same seed and the same calls give the same run, bit for
//! bit.
#![deny(missing_docs)]

mod bus;
pub mod device;
mod error;
pub mod memory;
pub mod model;
pub mod pcie;
pub mod rng;
mod waves;
pub mod wire;
pub mod world;

pub use bus::NicBus;
pub use error::{Misdeed, SimError, Violation};
pub use world::{SharedWorld, World, WorldParams};
