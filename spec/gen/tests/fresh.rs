// SPDX-License-Identifier: Apache-2.0
//! The generated files in the repository are those that `spec/*.toml` gives now.
#![allow(clippy::unwrap_used)] // in the helpers of the tests, too

use std::path::PathBuf;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn generated_files_are_fresh() {
    let files = openrnic_spec_gen::generate(&root()).unwrap();
    let stale = openrnic_spec_gen::stale(&root(), &files).unwrap();
    assert!(
        stale.is_empty(),
        "stale, run `cargo run -p openrnic-spec-gen`: {stale:?}"
    );
}

#[test]
fn the_same_input_gives_the_same_files() {
    assert_eq!(
        openrnic_spec_gen::generate(&root()).unwrap(),
        openrnic_spec_gen::generate(&root()).unwrap()
    );
}

#[test]
fn a_changed_a_missing_and_a_left_over_file_are_stale() {
    let mut files = openrnic_spec_gen::generate(&root()).unwrap();
    files.remove("docs/src/gen/opcodes.md");
    files.insert("docs/src/gen/no_such_page.md".to_owned(), String::new());
    files.insert("rtl/gen/rnic_spec_pkg.sv".to_owned(), "changed".to_owned());
    let mut stale = openrnic_spec_gen::stale(&root(), &files).unwrap();
    // What a neighbour may be about to regenerate is not the question here.
    stale.retain(|p| p.contains("opcodes") || p.contains("no_such_page") || p.ends_with(".sv"));
    assert_eq!(
        stale,
        [
            "docs/src/gen/no_such_page.md",
            "docs/src/gen/opcodes.md",
            "rtl/gen/rnic_spec_pkg.sv"
        ]
    );
}

#[test]
fn check_writes_nothing_and_fails_with_the_list() {
    let dir = std::env::temp_dir().join(format!("openrnic-spec-gen-{}", std::process::id()));
    std::fs::create_dir_all(dir.join("spec")).unwrap();
    for entry in std::fs::read_dir(root().join("spec")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "toml") {
            std::fs::copy(&path, dir.join("spec").join(path.file_name().unwrap())).unwrap();
        }
    }
    let run = |check: bool| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_openrnic-spec-gen"));
        command.arg("--root").arg(&dir);
        if check {
            command.arg("--check");
        }
        command.output().unwrap()
    };
    let before = run(true);
    assert!(!before.status.success());
    let text = String::from_utf8(before.stderr).unwrap();
    assert!(
        text.contains("rtl/gen/rnic_spec_pkg.sv") && text.contains("spec/rust/src/generated.rs"),
        "{text}"
    );
    assert!(!dir.join("rtl").exists());
    assert!(run(false).status.success());
    assert!(run(true).status.success());
    let package = std::fs::read_to_string(dir.join("rtl/gen/rnic_spec_pkg.sv")).unwrap();
    assert_eq!(
        package,
        openrnic_spec_gen::generate(&root()).unwrap()["rtl/gen/rnic_spec_pkg.sv"]
    );
    std::fs::remove_dir_all(&dir).unwrap();
}
