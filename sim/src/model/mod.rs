// SPDX-License-Identifier: Apache-2.0
//! Verilated models: built once into a cache, loaded, clocked from Rust.
//!
//! [`BlockModel`] serves benches of single blocks, [`Instance`] is what it is made of.

mod block;
mod build;
mod error;
mod instance;
mod nic;
pub mod rtl;

pub use block::{BlockBuilder, BlockModel, PortId};
pub use build::{BuildSpec, Effort, Variant, cache_root};
pub use error::ModelError;
pub use instance::{Instance, InstanceParams, PortInfo};
pub use nic::{DATA_WIDTHS, NicModel, NicSpec};
