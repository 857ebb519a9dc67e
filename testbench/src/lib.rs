// SPDX-License-Identifier: Apache-2.0
//! Reference models, scoreboard and stimulus: what judges the RTL.
#![deny(missing_docs)]

pub mod ctrl_bench;
pub mod ctrl_model;
pub mod ctrl_srq;
pub mod e2e;
pub mod features;
pub mod flow;
pub mod host_bench;
pub mod model;
pub mod qp_bench;
pub mod qp_pair;
pub mod recv_bench;
pub mod recv_srq;
pub mod send_bench;
pub mod soak;
pub mod wire;
pub mod wire_bench;
