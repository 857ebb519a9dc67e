// SPDX-License-Identifier: Apache-2.0
//! Reference models: what the device must do, written from the rules and from nothing generated.

pub mod gate;
pub mod qp;
