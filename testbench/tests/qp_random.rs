// SPDX-License-Identifier: Apache-2.0
//! Random command sequences through `rnic_qp` and the reference model, short; `make soak` runs the same at length. After every
//! command completion, host memory, references, told changes and the whole table must be the model's.
#![allow(clippy::unwrap_used)]

use openrnic_testbench::soak::{Episode, MUST, Setup};

fn seed() -> u64 {
    openrnic_testbench::seed(1)
}

fn run(data_width: u32, log_table: u32, gen_bits: u32, commands: u32) {
    let seed = seed();
    let setup = Setup {
        data_width,
        log_table,
        gen_bits,
        seed,
        cut: None,
        long: false,
    };
    let mut episode = Episode::new(&setup).unwrap();
    for n in 0..commands {
        if let Err(difference) = episode.command() {
            panic!(
                "{} at command {n} of seed {seed}: {}\n{:?}",
                difference.kind,
                difference.text,
                episode.steps.last()
            );
        }
    }
    let seen = episode.judge.seen.counts();
    println!("{seen:#?}");
    for must in MUST {
        assert!(seen.contains_key(must), "the run has not seen: {must}");
    }
}

#[test]
fn random_commands_do_what_the_model_does_64_bits() {
    run(64, 6, 3, 6000);
}

#[test]
fn random_commands_do_what_the_model_does_512_bits() {
    run(512, 6, 3, 6000);
}
