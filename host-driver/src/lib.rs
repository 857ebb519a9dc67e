// SPDX-License-Identifier: Apache-2.0
//! Host driver of OpenRNIC, in verbs terms, on the [`bus::Bus`] trait.
#![deny(missing_docs)]

pub mod bus;

pub use bus::{Bus, BusError, DmaBuf, MsiMessage};
