// SPDX-License-Identifier: Apache-2.0
//! The book's page on bad input names tests that exist.
#![allow(clippy::unwrap_used)]

use std::fs;

use openrnic_testbench::features::project_root;

#[test]
fn every_test_that_the_page_on_bad_input_names_exists() {
    let root = project_root();
    let page = fs::read_to_string(root.join("docs/src/bad_input.md")).unwrap();
    let mut named = 0;
    for (n, line) in page.lines().enumerate().filter(|(_, line)| line.starts_with('|')) {
        let tests: Vec<(&str, &str)> = line.split('`').filter_map(|part| part.split_once("::")).collect();
        let heading = line.ends_with("| Test |") || line.starts_with("|---");
        assert!(heading || !tests.is_empty(), "line {}: no test", n + 1);
        for (file, test) in tests {
            let source = fs::read_to_string(root.join(format!("testbench/tests/{file}.rs")));
            let source = source.unwrap_or_else(|e| panic!("line {}: {file}: {e}", n + 1));
            let head = format!("#[test]\nfn {test}() {{");
            assert!(source.contains(&head), "line {}: {file} has no test {test}", n + 1);
            named += 1;
        }
    }
    assert!(named > 60, "the page names only {named} tests");
}
