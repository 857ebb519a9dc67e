// SPDX-License-Identifier: Apache-2.0
//! The capture of the quickstart as tshark sees it: RoCEv2, no malformed frame, every opcode in the expected number.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use openrnic_spec::{Opcode, opcode_info};

fn tshark(capture: &Path, args: &[&str]) -> String {
    let out = Command::new("tshark")
        .arg("-r")
        .arg(capture)
        .args(args)
        .output()
        .unwrap_or_else(|e| panic!("tshark: {e}; make setup installs it"));
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

#[test]
fn the_quickstart_capture_is_whole_in_wireshark() {
    let dir = std::env::temp_dir().join(format!("openrnic-wireshark-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let capture = dir.join("demo.pcapng");
    let scenario = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios/quickstart.toml");
    let run = Command::new(env!("CARGO_BIN_EXE_openrnic"))
        .arg("run")
        .arg(&scenario)
        .arg("--pcap")
        .arg(&capture)
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let said = String::from_utf8(run.stdout).unwrap();

    assert_eq!(
        tshark(&capture, &["-Y", "_ws.malformed || !infiniband"]),
        "",
        "frames that are no RoCE"
    );
    let mut seen: BTreeMap<u8, u64> = BTreeMap::new();
    for line in tshark(&capture, &["-T", "fields", "-e", "infiniband.bth.opcode"]).lines() {
        *seen.entry(line.trim().parse().unwrap()).or_default() += 1;
    }
    // What the two NICs counted, by name: the row ends with one number per NIC.
    let mut counted: BTreeMap<u8, u64> = BTreeMap::new();
    for line in said.lines() {
        let cells: Vec<&str> = line
            .split(['│', '┆', '|'])
            .map(str::trim)
            .filter(|c| !c.is_empty())
            .collect();
        let [name, numbers @ ..] = cells.as_slice() else {
            continue;
        };
        if let Some(op) = Opcode::ALL.iter().find(|op| op.name() == *name) {
            let sum = numbers
                .iter()
                .map(|n| n.replace(',', "").parse::<u64>().unwrap())
                .sum::<u64>();
            counted.insert(*op as u8, sum);
        }
    }
    assert_eq!(
        seen, counted,
        "frames by opcode: tshark, and the run's own table:\n{said}"
    );
    // The scenario sends SEND, WRITE (with and without immediate) and READ, in one packet and in several.
    for opcode in 0..=17 {
        assert!(
            seen.contains_key(&opcode),
            "no {}",
            opcode_info(opcode).map_or("?", |i| i.opcode.name())
        );
    }
    std::fs::remove_dir_all(&dir).unwrap();
}

/// Fields that tshark reads out of the atomics' own headers, in the order of the frames.
#[test]
fn atomics_are_dissected_with_their_operands_and_results() {
    let dir = std::env::temp_dir().join(format!("openrnic-wireshark-atomics-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let capture = dir.join("atomics.pcapng");
    let scenario = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios/atomics.toml");
    let run = Command::new(env!("CARGO_BIN_EXE_openrnic"))
        .arg("run")
        .arg(&scenario)
        .arg("--pcap")
        .arg(&capture)
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    assert_eq!(tshark(&capture, &["-Y", "_ws.malformed || !infiniband"]), "");
    // Operands of the two swaps, and what the memory held.
    let number = |field: &str| {
        field.trim().strip_prefix("0x").map_or_else(
            || field.trim().parse().unwrap(),
            |hex| u64::from_str_radix(hex, 16).unwrap(),
        )
    };
    let swaps = tshark(
        &capture,
        &[
            "-Y",
            "infiniband.bth.opcode == 0x13",
            "-T",
            "fields",
            "-e",
            "infiniband.atomiceth.swapdt",
            "-e",
            "infiniband.atomiceth.cmpdt",
        ],
    );
    let swaps: Vec<Vec<u64>> = swaps.lines().map(|l| l.split('\t').map(number).collect()).collect();
    assert_eq!(swaps[..2], [[0x1122_3344_5566_7788, 30], [1, 30]]);
    let results = tshark(
        &capture,
        &[
            "-Y",
            "infiniband.bth.opcode == 0x12",
            "-T",
            "fields",
            "-e",
            "infiniband.atomicacketh.origremdt",
        ],
    );
    let results: Vec<u64> = results.lines().map(number).collect();
    let mut sums = results[..6].to_vec();
    sums.sort_unstable();
    assert_eq!(sums, [0, 5, 10, 15, 20, 25]);
    // The result that was lost was captured where it was sent; the next one repeats it.
    assert_eq!(results[6..], [30, 0x1122_3344_5566_7788, 0, 1, 1]);
    std::fs::remove_dir_all(&dir).unwrap();
}
