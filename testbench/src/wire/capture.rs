// SPDX-License-Identifier: Apache-2.0
//! The captures of Linux in `testbench/data/pcaps`.

use std::fs::File;
use std::path::{Path, PathBuf};

/// Why a capture cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {why}", path = path.display())]
pub struct CaptureError {
    path: PathBuf,
    why: String,
}

/// The directory of the captures.
pub fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data/pcaps")
}

/// The captures, by name.
///
/// # Errors
/// When the directory cannot be read.
pub fn files() -> Result<Vec<PathBuf>, CaptureError> {
    let dir = directory();
    let fail = |e: std::io::Error| CaptureError {
        path: dir.clone(),
        why: e.to_string(),
    };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&dir).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        if path.extension().is_some_and(|e| e == "pcap") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The frames of a capture, in order.
///
/// # Errors
/// When the file is none, or a frame was not captured whole.
pub fn frames(path: &Path) -> Result<Vec<Vec<u8>>, CaptureError> {
    let fail = |why: String| CaptureError {
        path: path.to_owned(),
        why,
    };
    let file = File::open(path).map_err(|e| fail(e.to_string()))?;
    let mut reader = pcap_file::pcap::PcapReader::new(file).map_err(|e| fail(e.to_string()))?;
    let mut frames = Vec::new();
    while let Some(packet) = reader.next_packet() {
        let packet = packet.map_err(|e| fail(e.to_string()))?;
        if packet.data.len() != packet.orig_len as usize {
            return Err(fail(format!("frame {} is not whole", frames.len())));
        }
        frames.push(packet.data.into_owned());
    }
    Ok(frames)
}
