// SPDX-License-Identifier: Apache-2.0
//! `--on-stall`: a wait that runs out tells of each queue pair what it waits for; another failure does not.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::path::Path;

use openrnic::{Failure, RunOptions, Scenario, check};

fn failure(more: &str, on_stall: bool) -> Box<Failure> {
    let scenario = Scenario::parse(Path::new("t.toml"), common::base(6000) + more).unwrap_or_else(|e| panic!("{e}"));
    check::check(&scenario).unwrap_or_else(|e| panic!("{e}"));
    let options = RunOptions {
        on_stall,
        ..RunOptions::default()
    };
    openrnic::run(&scenario, &options, |_, _, _| {}).expect_err("the run cannot go well")
}

/// The report, in lines without their indentation.
fn report(more: &str) -> Vec<String> {
    let stall = failure(more, true).stall.expect("a report");
    println!("{stall}");
    stall.lines().map(|l| l.trim().to_owned()).collect()
}

const DEAF: &str = r#"[[step]]
do = "disturb"
from = "a"
action = "drop"
count = 1000
[[step]]
do = "post_send"
qps = "q[0]"
op = "RDMA_WRITE"
sg = [{ mr = "m", bytes = 200 }]
remote = "n"
"#;

const WAIT: &str = r#"[[step]]
do = "expect_completions"
nic = "a"
"#;

#[test]
fn a_wait_for_completions_names_what_each_queue_pair_waits_for() {
    let lines = report(&format!("{DEAF}{WAIT}"));
    assert!(lines[0].starts_with("q[0] on `a`: QP "), "{lines:?}");
    assert!(
        lines[1].starts_with("-> waits for the ACK of PSN 0x100 (sent up to 0x100) until cycle "),
        "{lines:?}"
    );
    assert_eq!(
        lines.last().unwrap(),
        "3 with nothing to do: q[1] on `a`, r[0] on `b`, r[1] on `b`"
    );
    assert!(failure(&format!("{DEAF}{WAIT}"), false).stall.is_none());
}

#[test]
fn a_wait_for_frames_and_a_transfer_do_so_too() {
    let frames = r#"[[step]]
do = "expect_frames"
nic = "b"
direction = "received"
opcodes = { RC_WRITE_ONLY = 1 }
wait_cycles = 3000
"#;
    assert!(report(&format!("{DEAF}{frames}"))[1].starts_with("-> waits for the ACK"));
    let transfer = r#"[[step]]
do = "transfer"
op = "SEND"
from = "q[1]"
to = "r[1]"
bytes = [100]
"#;
    let lines = report(&format!("{DEAF}{transfer}"));
    assert_eq!(
        lines.iter().filter(|l| l.starts_with("-> waits for the ACK")).count(),
        2,
        "{lines:?}"
    );
}

#[test]
fn a_host_that_does_not_answer_commands_either_is_seen_through() {
    // Work request and commands: the report cannot come by a command.
    let host = r#"[[step]]
do = "host_fault"
nic = "a"
fault = "delay"
delay_ns = 100000
qp = "q[0]"
queue = "send"
[[step]]
do = "post_send"
qps = "q[0]"
op = "RDMA_WRITE"
sg = [{ mr = "m", bytes = 200 }]
remote = "n"
"#;
    let lines = report(&format!("{host}{WAIT}"));
    assert_eq!(lines[1], "-> the read of WQE 0 from host memory has no answer yet");
    assert!(
        lines.iter().any(|l| l == "device    1 DMA reads without an answer"),
        "{lines:?}"
    );
}

#[test]
fn a_failure_that_is_no_wait_has_no_report() {
    let wrong = r#"[[step]]
do = "expect_qp"
qps = "q[0]"
state = "ERR"
"#;
    assert!(failure(wrong, true).stall.is_none());
}
