// SPDX-License-Identifier: Apache-2.0
//! Reference models, scoreboard and stimulus: what judges the RTL.
#![deny(missing_docs)]

pub mod e2e;
pub mod host_bench;
pub mod model;
pub mod qp_bench;
pub mod qp_pair;
pub mod wire;
pub mod wire_bench;
