// SPDX-License-Identifier: Apache-2.0
//! The table of features agrees with the RTL and with the tests; `make cuts` flips its switches.
#![allow(clippy::unwrap_used)]

use openrnic_testbench::features;

#[test]
fn every_switch_of_the_rtl_has_a_feature_and_a_test_that_exists() {
    let table = features::table().unwrap();
    assert!(table.len() > 50, "the table has only {} features", table.len());
    if let Err(error) = features::check(&table) {
        panic!("{error:#}");
    }
}

#[test]
fn a_switch_that_is_not_in_the_table_and_a_test_that_does_not_exist_are_found() {
    let table = features::table().unwrap();
    let message = features::check(&table[1..]).unwrap_err().to_string();
    assert!(message.contains(&format!("{} (", table[0].define())), "{message}");
    let mut bad = table.clone();
    bad[0].test = "no_such_test".to_owned();
    bad[1].cut = "NO_SUCH_SWITCH".to_owned();
    let message = features::check(&bad).unwrap_err().to_string();
    for part in [
        "no test no_such_test",
        "RNIC_CUT_NO_SUCH_SWITCH is in the table, but not in the RTL",
    ] {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn the_fusesoc_core_lists_the_files_of_the_rtl_in_their_order() {
    let rtl = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../rtl");
    let list = std::fs::read_to_string(rtl.join("rnic.f")).unwrap();
    let list: Vec<&str> = list.lines().filter_map(|l| l.trim().strip_prefix("rtl/")).collect();
    let core = std::fs::read_to_string(rtl.join("openrnic.core")).unwrap();
    let core: Vec<&str> = core
        .lines()
        .filter_map(|l| l.trim().strip_prefix("- ").filter(|f| f.ends_with(".sv")))
        .collect();
    assert_eq!(
        core, list,
        "rtl/openrnic.core (right: rtl/rnic.f) is not what it must be"
    );
}
