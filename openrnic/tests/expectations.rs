// SPDX-License-Identifier: Apache-2.0
//! An expectation that does not hold fails the run, with the step's line and what is there instead.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::path::Path;

use openrnic::{RunOptions, Scenario, check};

/// A WRITE is posted.
fn base() -> String {
    common::base(5000)
        + r#"[[step]]
do = "post_send"
qps = "q[0]"
op = "RDMA_WRITE"
sg = [{ mr = "m", bytes = 200 }]
remote = "n"
"#
}

/// Runs that and more; the message of the failure with its line in the added part.
fn failure(more: &str) -> Option<(usize, String)> {
    let base = base();
    let text = format!("{base}{more}");
    let scenario = Scenario::parse(Path::new("t.toml"), text).unwrap_or_else(|e| panic!("{e}"));
    check::check(&scenario).unwrap_or_else(|e| panic!("{e}"));
    let seed = std::env::var("OPENRNIC_SEED").ok().and_then(|s| s.parse().ok());
    match openrnic::run(
        &scenario,
        &RunOptions {
            seed,
            ..RunOptions::default()
        },
        |_, _, _| {},
    ) {
        Ok(_) => None,
        Err(f) => {
            let line = f.line.unwrap_or(0).saturating_sub(base.matches('\n').count());
            Some((line, format!("{:#}", f.error)))
        }
    }
}

#[test]
fn what_is_right_passes() {
    let right = r#"[[step]]
do = "expect_completions"
nic = "a"
qps = "q[0]"
opcode = "RDMA_WRITE"
[[step]]
do = "expect_memory"
mr = "n"
bytes = 200
same_as = "m"
[[step]]
do = "expect_frames"
nic = "b"
opcodes = { RC_ACKNOWLEDGE = 1 }
"#;
    assert_eq!(failure(right), None);
}

#[test]
fn what_is_wrong_fails_with_its_line_and_the_truth() {
    for (step, words) in [
        (
            "do = \"expect_completions\"\nnic = \"a\"\nstatus = \"REM_OP_ERR\"\n",
            "expected status REM_OP_ERR, got RDMA_WRITE of q[0]",
        ),
        (
            "do = \"expect_completions\"\nnic = \"a\"\nqps = \"q[1]\"\n",
            "another queue pair",
        ),
        (
            "do = \"expect_completions\"\nnic = \"a\"\nopcode = \"SEND\"\n",
            "expected opcode SEND",
        ),
        (
            "do = \"expect_completions\"\nnic = \"a\"\ncount = 2\n",
            "2 completions on CQ",
        ),
        ("do = \"expect_completions\"\nnic = \"b\"\n", "in vain; 0 came"),
        (
            "do = \"expect_completions\"\nnic = \"a\"\ncount = 0\n",
            "expected no completion",
        ),
        ("do = \"expect_memory\"\nmr = \"n\"\nbyte = 9\n", "byte 0 differs"),
        (
            "do = \"expect_memory\"\nmr = \"m\"\nhex = \"00 01 03\"\n",
            "byte 2 differs",
        ),
        (
            "do = \"expect_qp\"\nqps = \"q\"\nstate = \"SQD\"\n",
            "expected state SQD, is RTS",
        ),
        (
            "do = \"expect_qp\"\nqps = \"r[1]\"\nattrs = { dest = \"q[0]\" }\n",
            "dest_qpn: expected",
        ),
        (
            "do = \"expect_qp\"\nqps = \"q\"\nattrs = { path_mtu = 256 }\n",
            "path_mtu: expected",
        ),
        (
            "do = \"expect_qp\"\nqps = \"q\"\nfails = \"BAD_HANDLE\"\n",
            "expected the command to fail with BAD_HANDLE",
        ),
        (
            "do = \"expect_frames\"\nnic = \"a\"\nopcodes = { RC_WRITE_ONLY = 2 }\n",
            "sent 1 RC_WRITE_ONLY, expected 2",
        ),
        (
            "do = \"expect_frames\"\nnic = \"b\"\ndirection = \"received\"\nopcodes = { RC_WRITE_ONLY = 0 }\nwait_cycles = 3000\n",
            "fine",
        ),
        (
            "do = \"expect_counters\"\nnic = \"b\"\ncounters = { RX_DROP_ICRC = \">= 1\" }\nwait_cycles = 500\n",
            "RX_DROP_ICRC is 0, expected at least 1",
        ),
        (
            "do = \"expect_event\"\nnic = \"b\"\nevent = \"QP_ACCESS_ERR\"\nwait_cycles = 500\n",
            "expected the event QP_ACCESS_ERR",
        ),
        (
            "do = \"modify\"\nqps = \"q\"\nto = \"ERR\"\nrefused = { rule = \"ILLEGAL_EDGE\" }\n",
            "expected the gate to refuse (ILLEGAL_EDGE)",
        ),
        (
            "do = \"modify\"\nqps = \"q\"\nto = \"INIT\"\nmask = [\"STATE\"]\n",
            "ILLEGAL_EDGE",
        ),
        (
            "do = \"modify\"\nqps = \"q\"\nto = \"INIT\"\nmask = [\"STATE\"]\nrefused = { rule = \"BAD_VALUE\" }\n",
            "expected a refusal by BAD_VALUE, got",
        ),
        (
            "do = \"modify\"\nqps = \"q\"\nto = \"INIT\"\nmask = [\"STATE\"]\nrefused = { rule = \"ILLEGAL_EDGE\", offender = \"q[1]\" }\n",
            "as the offender",
        ),
        (
            "do = \"post_recv\"\nqps = \"q\"\nfails = \"full\"\n",
            "expected the post to fail (full)",
        ),
        (
            "do = \"post_send\"\nqps = \"q\"\nop = \"SEND\"\ncount = 100\n",
            "is full",
        ),
        ("do = \"command\"\nnic = \"a\"\nhex = \"ff\"\n", "BAD_OPCODE"),
        (
            "do = \"command\"\nnic = \"a\"\nhex = \"10\"\nstatus = \"IN_USE\"\n",
            "the command's completion: status OK, expected IN_USE",
        ),
    ] {
        // The zero is judged after the frame is through, so one more step lets it arrive first.
        let (wait, line) = if words == "fine" {
            ("[[step]]\ndo = \"wait\"\ncycles = 3000\n", 4)
        } else {
            ("", 1)
        };
        let got = failure(&format!("{wait}[[step]]\n{step}"));
        let Some((at, message)) = got else {
            panic!("passed: {step}")
        };
        assert_eq!(at, line, "{step}\n  -> {message}");
        assert!(words == "fine" || message.contains(words), "{step}\n  -> {message}");
    }
}

#[test]
fn a_transfer_that_never_ends_is_given_up() {
    let more = r#"[[step]]
do = "expect_completions"
nic = "a"
[[step]]
do = "disturb"
from = "a"
action = "drop"
opcode = "RC_SEND_MIDDLE"
count = 1000000
[[step]]
do = "transfer"
op = "SEND"
from = "q"
to = "r"
bytes = [5000]
"#;
    let (line, message) = failure(more).expect("must not pass");
    assert_eq!(line, 10);
    assert!(
        message.contains("no completion for") || message.contains("failed"),
        "{message}"
    );
}
