// SPDX-License-Identifier: Apache-2.0
//! Simulated host, wire and clock around the Verilated RNIC.
#![deny(missing_docs)]
