// SPDX-License-Identifier: Apache-2.0
//! Simulated host, wire and clock around the Verilated RNIC.
//!
//! [`model`] builds and clocks the RTL.
#![deny(missing_docs)]

pub mod model;
