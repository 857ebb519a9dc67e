// SPDX-License-Identifier: Apache-2.0
//! A broken scenario gets one clear message with file and line, and nothing runs.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;

use openrnic::{Scenario, check};

const GOOD: &str = r#"name = "t"
[[nic]]
name = "a"
[[nic]]
name = "b"
[[mr]]
name = "m"
nic = "a"
bytes = 100
[[qp]]
name = "q"
nic = "a"
count = 4
[[qp]]
name = "r"
nic = "b"
count = 4
[[step]]
do = "install"
qps = "q"
[[step]]
do = "install"
qps = "r"
"#;

/// The message for `GOOD` with something appended or replaced.
fn message(text: &str) -> String {
    let outcome = Scenario::parse(Path::new("t.toml"), text.to_owned()).and_then(|s| check::check(&s).map(|()| s));
    match outcome {
        Ok(_) => "fine".to_owned(),
        Err(e) => e.to_string(),
    }
}

fn with(more: &str) -> String {
    message(&format!("{GOOD}{more}"))
}

#[test]
fn the_good_one_is_good() {
    assert_eq!(message(GOOD), "fine");
}

#[test]
fn wrong_toml_and_wrong_types_name_their_line() {
    for (text, at, words) in [
        ("name = \"t\"\n[[nic]\n", "t.toml:2:", "array"),
        ("name = 5\n[[nic]]\nname=\"a\"\n", "t.toml:1:8:", "string"),
        ("[[nic]]\nname = \"a\"\n", "t.toml:1:", "name"),
        ("name = \"t\"\n", "t.toml:1:", "nic"),
        ("name = \"t\"\nnic = []\n", "t.toml:1:1:", "0 NICs"),
        (
            "name = \"t\"\ncolour = 1\n[[nic]]\nname=\"a\"\n",
            "t.toml:2:1:",
            "unknown field `colour`",
        ),
        (
            "name = \"t\"\n[wire]\nloss = 1.5\n[[nic]]\nname=\"a\"\n",
            "t.toml:3:8:",
            "between 0 and 1",
        ),
        (
            "name = \"t\"\n[sim]\ndata_width = 65\n[[nic]]\nname=\"a\"\n",
            "t.toml:3:14:",
            "64, 128, 256, 512 are possible",
        ),
        (
            "name = \"t\"\n[[nic]]\nname=\"a\"\nmac = \"02:00\"\n",
            "t.toml:4:7:",
            "MAC address",
        ),
        (
            "name = \"t\"\n[[nic]]\nname=\"a\"\n[nic.host]\nsplit = \"maybe\"\n",
            "t.toml:5:9:",
            "never, always, random",
        ),
    ] {
        let got = message(text);
        assert!(
            got.starts_with(at) && got.contains(words) && !got.contains('\n'),
            "{text}\n  -> {got}"
        );
    }
}

#[test]
fn wrong_objects_and_steps_name_their_line() {
    let first = GOOD.matches('\n').count() + 1;
    for (more, line, words) in [
        ("[[nic]]\nname = \"a\"\n", 2, "two NICs called `a`"),
        ("[[mr]]\nname = \"n\"\nnic = \"c\"\nbytes = 1\n", 3, "no NIC `c`"),
        ("[[mr]]\nname = \"n\"\nnic = \"a\"\nbytes = 0\n", 4, "bytes = 0"),
        (
            "[[mr]]\nname = \"n\"\nnic = \"a\"\nbytes = 1\naccess = [\"REMOTE_RAED\"]\n",
            5,
            "did you mean `REMOTE_READ`",
        ),
        ("[[qp]]\nname = \"x\"\nnic = \"a\"\ncount = 0\n", 4, "count = 0"),
        (
            "[[qp]]\nname = \"x\"\nnic = \"a\"\ntype = \"RD\"\n",
            4,
            "unknown QP type `RD`",
        ),
        ("[[step]]\nqps = \"q\"\n", 1, "needs `do`"),
        ("[[step]]\ndo = \"modfy\"\n", 2, "did you mean `modify`"),
        (
            "[[step]]\ndo = \"modify\"\nqps = \"q\"\nto = \"RTX\"\n",
            4,
            "unknown QP state `RTX`",
        ),
        (
            "[[step]]\ndo = \"modify\"\nqps = \"q\"\nstate = \"RTS\"\n",
            4,
            "unknown field `state`",
        ),
        (
            "[[step]]\ndo = \"modify\"\nqps = \"q[4]\"\nto = \"RTS\"\n",
            3,
            "4 queue pairs",
        ),
        (
            "[[step]]\ndo = \"modify\"\nqps = \"p\"\nto = \"RTS\"\n",
            3,
            "no group of queue pairs `p`",
        ),
        ("[[step]]\ndo = \"modify\"\nqps = \"q[2..2]\"\n", 3, "is empty"),
        (
            "[[step]]\ndo = \"modify\"\nqps = \"q\"\nattrs = { port = 300 }\n",
            4,
            "300",
        ),
        (
            "[[step]]\ndo = \"modify\"\nqps = \"q\"\nmask = [\"PROT\"]\n",
            4,
            "did you mean `PORT`",
        ),
        (
            "[[step]]\ndo = \"modify\"\nqps = [\"q\", \"r\"]\n",
            3,
            "belongs to one NIC",
        ),
        (
            "[[step]]\ndo = \"modify\"\nqps = \"q\"\neach = [{}]\n",
            4,
            "1 records for 4",
        ),
        ("[[step]]\ndo = \"install\"\nqps = \"q\"\n", 3, "exist already"),
        (
            "[[step]]\ndo = \"connect\"\na = \"q\"\nb = \"r[0]\"\n",
            4,
            "each needs a peer",
        ),
        (
            "[[step]]\ndo = \"transfer\"\nop = \"BIND_MW\"\nfrom = \"q\"\nto = \"r\"\nbytes = [1]\n",
            3,
            "a transfer by BIND_MW",
        ),
        (
            "[[step]]\ndo = \"transfer\"\nop = \"SEND\"\nfrom = \"q\"\nto = \"r\"\nbytes = [-1]\n",
            6,
            "-1",
        ),
        (
            "[[step]]\ndo = \"expect_memory\"\nmr = \"m\"\nbytes = 101\nbyte = 0\n",
            3,
            "has 100 bytes",
        ),
        ("[[step]]\ndo = \"expect_memory\"\nmr = \"m\"\n", 1, "one of"),
        (
            "[[step]]\ndo = \"expect_counters\"\nnic = \"a\"\ncounters = { RX_FRAME = 1 }\n",
            4,
            "did you mean `RX_FRAMES`",
        ),
        (
            "[[step]]\ndo = \"expect_counters\"\nnic = \"a\"\ncounters = { RX_FRAMES = \"many\" }\n",
            4,
            "bound like",
        ),
        (
            "[[step]]\ndo = \"inject\"\nnic = \"b\"\nhex = \"abc\"\n",
            4,
            "even number",
        ),
        (
            "[[step]]\ndo = \"inject\"\nnic = \"b\"\nto = \"r[0]\"\n",
            4,
            "connect it first",
        ),
        ("[[step]]\ndo = \"wait\"\n", 1, "cycles"),
    ] {
        let got = with(more);
        let at = format!("t.toml:{}:", first + line - 1);
        assert!(
            got.starts_with(&at) && got.contains(words) && !got.contains('\n'),
            "{more}\n  -> {got}"
        );
    }
}

#[test]
fn any_cut_or_changed_scenario_gives_a_message_and_never_panics() {
    let files = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios")).unwrap();
    for file in files {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        for cut in (0..text.len()).step_by(97).filter(|c| text.is_char_boundary(*c)) {
            let _ = message(&text[..cut]);
            let mut other = text.clone();
            other.replace_range(cut..(cut + 1).min(other.len()), "9");
            let _ = message(&other);
        }
    }
}

#[test]
fn a_host_fault_names_one_fault_and_one_target() {
    let at = |keys: &str| message(&format!("{GOOD}[[step]]\ndo = \"host_fault\"\nnic = \"a\"\n{keys}\n"));
    for (keys, expected) in [
        ("fault = \"abort\"\nmr = \"m\"\noffset = 10", "fine"),
        ("fault = \"delay\"\ndelay_ns = 5\ncommands = true", "fine"),
        ("fault = \"drop\"\nqp = \"q[1]\"\nqueue = \"recv\"\ncount = 2", "fine"),
        ("fault = \"burn\"\nnth = 0", "fault `burn`: one of unsupported, abort"),
        ("fault = \"abort\"", "give one of `mr`"),
        ("fault = \"abort\"\nnth = 0\ncommands = true", "give one of `mr`"),
        ("fault = \"abort\"\nqp = \"q[0]\"", "`qp` and `queue` go together"),
        ("fault = \"delay\"\nnth = 0", "`delay` and `delay_ns` go together"),
        ("fault = \"abort\"\nnth = 0\ncount = 2", "`count` does not go with it"),
        (
            "fault = \"abort\"\nqp = \"q\"\nqueue = \"send\"",
            "one queue pair of the NIC",
        ),
        (
            "fault = \"abort\"\nqp = \"r[0]\"\nqueue = \"send\"",
            "one queue pair of the NIC",
        ),
        (
            "fault = \"abort\"\nmr = \"m\"\noffset = 100",
            "memory region `m` has 100 bytes",
        ),
    ] {
        let got = at(keys);
        assert!(got.contains(expected), "{keys}: {got}");
    }
}
