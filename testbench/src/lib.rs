// SPDX-License-Identifier: Apache-2.0
//! Reference models, scoreboard and stimulus: what judges the RTL.
#![deny(missing_docs)]

pub mod board_bench;
pub mod ctrl_bench;
pub mod ctrl_model;
pub mod ctrl_srq;
pub mod e2e;
pub mod features;
pub mod flow;
pub mod gates;
pub mod host_bench;
pub mod local_bench;
pub mod looks;
pub mod mac_bench;
pub mod model;
pub mod phy_model;
pub mod qp_bench;
pub mod qp_pair;
pub mod recv_bench;
pub mod recv_srq;
pub mod send_bench;
pub mod shards;
pub mod soak;
pub mod transport;
pub mod wire;
pub mod wire_bench;

/// The seed of a random test: `OPENRNIC_SEED`, or the one given. It is printed, so that a failure names it.
///
/// # Panics
/// When the variable is no number: another seed than the one that was asked for would show nothing.
pub fn seed(default: u64) -> u64 {
    let seed = match std::env::var("OPENRNIC_SEED") {
        Ok(text) => match text.parse() {
            Ok(seed) => seed,
            Err(e) => panic!("OPENRNIC_SEED={text}: {e}; a number is needed"),
        },
        Err(_) => default,
    };
    println!("OPENRNIC_SEED={seed}");
    seed
}
