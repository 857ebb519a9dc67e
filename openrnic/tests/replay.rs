// SPDX-License-Identifier: Apache-2.0
//! The captures of Linux, played again with the RTL as one of their ends.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use openrnic::replay::{self, BedParams, List, Options};
use openrnic_testbench::wire::{Frame, capture};

fn options(data_width: usize) -> Options {
    Options {
        bed: BedParams {
            data_width,
            seed: 1,
            pcap: None,
            wave: None,
            defines: Vec::new(),
        },
        verbatim: false,
    }
}

fn recording(name: &str) -> PathBuf {
    capture::directory().join(format!("{name}.pcap"))
}

/// Replays all captures; panics with the transcript of the first that does not agree.
fn agree(paths: &[PathBuf], options: &Options, list: &mut List) -> Vec<replay::Replayed> {
    paths
        .iter()
        .map(|path| {
            let r = replay::file(path, options, list).unwrap();
            if !r.agrees() {
                for t in r
                    .transcripts
                    .iter()
                    .filter(|t| t.differences.iter().any(|d| d.reason.is_none()))
                {
                    eprintln!("{}", replay::report::transcript(t, false));
                }
                panic!(
                    "{}\nreplay: openrnic replay {}",
                    replay::report::verdict(&r),
                    path.display()
                );
            }
            r
        })
        .collect()
}

#[test]
fn the_rtl_differs_from_linux_only_where_the_list_says_so_and_the_book_shows_it() {
    let mut list = List::standard().unwrap();
    let all = agree(&capture::files().unwrap(), &options(64), &mut list);
    let names: Vec<String> = all.iter().map(|r| r.name.clone()).collect();
    let unused = list.unused(&names, true);
    assert!(unused.is_empty(), "entries that no difference needs: {unused:#?}");

    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src/gen/replay.md");
    let now = std::fs::read_to_string(&page).unwrap_or_default();
    assert!(
        now == replay::report::page(&all, &list),
        "{} is stale: run `make replay`",
        page.display()
    );
    let pairs: usize = all.iter().flat_map(|r| &r.transcripts).map(|t| t.pairs).sum();
    assert!(pairs > 650, "{pairs} pairs of frames were compared");
}

#[test]
fn at_512_bits_it_is_the_same() {
    let paths: Vec<PathBuf> = [
        "p_write_imm_multi",
        "p_loss_read_middle",
        "p_loss_write_first",
        "p_rnr",
        "p_send_pad",
    ]
    .map(recording)
    .to_vec();
    agree(&paths, &options(512), &mut List::standard().unwrap());
}

#[test]
fn the_recorded_number_can_be_used() {
    let dir = std::env::temp_dir().join(format!("openrnic-replay-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let pcap = dir.join("verbatim.pcapng");
    let mut options = options(64);
    options.verbatim = true;
    options.bed.pcap = Some(pcap.clone());
    let paths = [recording("p_write")];
    agree(&paths, &options, &mut List::standard().unwrap());
    // The last conversation: the RTL as requester, so that the recorded answer goes to the requester's own number.
    let recorded = capture::frames(&paths[0]).unwrap();
    let played = capture::frames(&pcap).unwrap();
    let numbers = |frames: &[Vec<u8>]| -> Vec<u32> {
        frames
            .iter()
            .map(|f| Frame::parse(f).roce().unwrap().bth.dest_qpn)
            .collect()
    };
    assert_eq!(numbers(&played), numbers(&recorded));
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_changed_byte_anywhere_is_reported() {
    let frames = capture::frames(&recording("p_send_zero")).unwrap();
    let mut silent = Vec::new();
    for (n, frame) in frames.iter().enumerate() {
        for at in 0..frame.len() {
            let mut changed = frames.clone();
            changed[n][at] ^= 0x11;
            let r = replay::frames("p_send_zero", &changed, &options(64), &mut List::standard().unwrap()).unwrap();
            if r.agrees() {
                silent.push((n + 1, at));
            }
        }
    }
    assert!(
        silent.is_empty(),
        "changes (frame, byte) that nobody noticed: {silent:?}"
    );
}

#[test]
fn an_entry_without_use_and_a_difference_without_entry_are_told() {
    let text = "[[difference]]\ncapture = \"p_write\"\nfield = \"aeth.msn\"\nreason = \"none\"\n";
    let mut list = List::parse(text).unwrap();
    let r = replay::file(&recording("p_write"), &options(64), &mut list).unwrap();
    let fields: std::collections::BTreeSet<&str> = r.unexplained().map(|d| d.field.as_str()).collect();
    assert_eq!(fields, ["bth.mig_req", "ip.id", "udp.src_port"].into());
    assert_eq!(list.unused(&["p_write".to_owned()], false).len(), 1);
    assert_eq!(
        list.unused(&["p_read".to_owned()], false).len(),
        0,
        "another capture's entry"
    );
}

#[test]
fn what_was_lost_is_found_from_what_came_later() {
    let lost = |name: &str| -> Vec<usize> {
        let c = replay::flow::conversations(&capture::frames(&recording(name)).unwrap());
        c.flows
            .iter()
            .flat_map(|f| &f.events)
            .filter(|e| e.lost)
            .map(|e| e.number)
            .collect()
    };
    assert!(lost("p_write").is_empty());
    assert_eq!(lost("p_loss_write_first"), [1]);
    assert_eq!(lost("p_loss_write_middle"), [2]);
    assert_eq!(lost("p_loss_read_req"), [1]);
    assert_eq!(lost("p_loss_read_middle"), [3]);
    assert_eq!(lost("p_loss_read_last"), [5]);
    assert_eq!(lost("p_loss_ack"), [2]);
    assert_eq!(lost("loss_write_last"), [11]);
    assert!(lost("p_rnr").is_empty());
}
