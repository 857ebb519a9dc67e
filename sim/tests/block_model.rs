// SPDX-License-Identifier: Apache-2.0
//! The harness for block benches, and by example how to write one.

#![allow(clippy::unwrap_used)] // a test may

use openrnic_sim::model::{BlockBuilder, BlockModel, ModelError};

fn counter() -> BlockBuilder {
    BlockModel::builder("sample_counter").source("sim/tests/rtl/sample_counter.sv")
}

#[test]
fn example_a_counter_counts_enabled_cycles() {
    let mut dut = counter().param("Width", 12).build().unwrap();
    dut.reset(2);
    dut.set("en_i", 1);
    dut.eval(); // lets the input reach combinational outputs
    assert_eq!(dut.get("ready_o"), 0);
    dut.clocks(5);
    assert_eq!(dut.get("count_o"), 5); // as the last edge left it
    assert_eq!(dut.sampled("count_o"), 4); // as it stood before that edge
    dut.set("en_i", 0);
    dut.clock();
    assert_eq!(dut.get("count_o"), 5);
    assert_eq!(dut.cycles(), 8);
}

#[test]
fn wide_ports_are_words_least_significant_first() {
    let mut dut = counter().build().unwrap();
    dut.set_wide("wide_i", &[1, 2, 3, 0xf]);
    dut.clock();
    assert_eq!(dut.get_wide("wide_o"), [!1, !2, !3, 0]);
    dut.set_bits("wide_i", 30, 8, 0xa5);
    assert_eq!(dut.get_bits("wide_i", 28, 12), 0xa5 << 2);
    let mut dut = counter().param("WideW", 40).build().unwrap();
    dut.set_wide("wide_i", &[0xffff_ffff, 0x12]);
    dut.clock();
    assert_eq!(dut.get("wide_o"), 0xed_0000_0000);
}

#[test]
fn a_failed_assertion_is_a_value_that_says_where() {
    let mut dut = counter().build().unwrap();
    dut.reset(1);
    dut.clocks(3);
    dut.set("forbidden_i", 1);
    match dut.try_clock() {
        Err(ModelError::Assertion { place, cycle, .. }) => {
            assert!(place.contains("sample_counter.sv:"), "{place}");
            assert_eq!(cycle, 5);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_unknown_port_is_named_with_those_there_are() {
    let dut = counter().build().unwrap();
    let message = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| dut.get("cnt_o"))).unwrap_err();
    let message = message.downcast_ref::<String>().unwrap();
    assert!(
        message.contains("no port cnt_o") && message.contains("output count_o[8]"),
        "{message}"
    );
}

#[test]
fn a_broken_source_gives_verilators_message_and_leaves_nothing_behind() {
    let dir = std::env::temp_dir().join(format!("onr-broken-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let file = dir.join("sample_broken.sv");
    std::fs::write(&file, "module sample_broken(input logic clk_i); foo bar; endmodule\n").unwrap();
    for _ in 0..2 {
        let error = BlockModel::builder("sample_broken")
            .source(&file)
            .build()
            .err()
            .unwrap();
        assert!(
            matches!(&error, ModelError::Build { message, .. } if message.contains("sample_broken.sv:1")),
            "{error}"
        );
    }
    std::fs::write(
        &file,
        "module sample_broken(input logic clk_i, output logic a_o); assign a_o = 1; endmodule\n",
    )
    .unwrap();
    let mut dut = BlockModel::builder("sample_broken").source(&file).build().unwrap();
    dut.clock();
    assert_eq!(dut.get("a_o"), 1);
    std::fs::remove_dir_all(&dir).unwrap();
}
