// SPDX-License-Identifier: Apache-2.0
//! `rnic_packer`: packets come out packed, each in beats of its own.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::VecDeque;

use openrnic_sim::model::BlockModel;
use openrnic_sim::rng::Stream;
use openrnic_testbench::wire_bench::{bits::Bits, seed};

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes
        .chunks(4)
        .map(|c| c.iter().rev().fold(0, |v, b| v << 8 | u32::from(*b)))
        .collect()
}

#[test]
fn packets_come_out_packed_each_in_beats_of_its_own() {
    let seed = seed();
    for bytes in [8, 64] {
        let mut dut = BlockModel::builder("rnic_packer")
            .param("Bytes", bytes)
            .param("MetaW", 8)
            .random_init(1)
            .build()
            .unwrap();
        dut.set("in_valid_i", 0);
        dut.set("out_ready_i", 0);
        dut.reset(2);
        let mut rng = Stream::new(seed, "packer", bytes as u64);
        let mut offer: Option<(Vec<u8>, usize, bool, u64)> = None;
        let mut rest: Vec<u8> = Vec::new();
        let mut expected: VecDeque<(Vec<u8>, bool, u64)> = VecDeque::new();
        // Two halves: as it comes, then both sides always there.
        let (mut beats, mut spills) = (0, 0);
        for cycle in 0..6000 {
            let prompt = cycle >= 3000;
            if offer.is_none() && (prompt || rng.chance(0.7)) {
                let count = if rng.chance(0.5) {
                    bytes
                } else {
                    1 + rng.below(bytes as u64) as usize
                };
                let beat = (0..bytes).map(|_| rng.bits() as u8).collect();
                offer = Some((beat, count, rng.chance(0.2), rng.below(256)));
            }
            dut.set("in_valid_i", u64::from(offer.is_some()));
            if let Some((beat, count, last, meta)) = &offer {
                dut.set_wide("in_data_i", &words(beat));
                dut.set("in_cnt_i", *count as u64);
                dut.set("in_last_i", u64::from(*last));
                dut.set("in_meta_i", *meta);
            }
            let ready = prompt || rng.chance(0.7);
            dut.set("out_ready_i", u64::from(ready));
            dut.eval();
            let taken = dut.get("in_ready_o") == 1;
            let out = (dut.get("out_valid_o") == 1 && ready).then(|| {
                let data = Bits(dut.get_wide("out_data_o")).bytes(0, bytes);
                (data, dut.get("out_last_o") == 1, dut.get("out_meta_o"))
            });
            if prompt {
                spills += usize::from(!taken);
                beats += usize::from(taken);
            }
            dut.clock();
            if let Some((beat, count, last, meta)) = taken.then(|| offer.take()).flatten() {
                rest.extend(&beat[..count]);
                let spill = last && rest.len() > bytes;
                if rest.len() >= bytes {
                    let full = rest.drain(..bytes).collect();
                    expected.push_back((full, last && !spill, meta));
                }
                if last && !rest.is_empty() {
                    expected.push_back((std::mem::take(&mut rest), true, meta));
                }
            }
            if let Some((data, last, meta)) = out {
                let (bytes, end, mark) = expected.pop_front().unwrap();
                assert_eq!((&data[..bytes.len()], last, meta), (&bytes[..], end, mark));
            }
        }
        assert!(expected.len() < 2);
        // A beat a cycle, but for the ones in which a packet's end is given alone: at most one of five is the last of its packet.
        assert!(beats > 2300 && spills > 0, "{beats} beats, {spills} spills");
    }
}
