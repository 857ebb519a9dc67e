// SPDX-License-Identifier: Apache-2.0
//! The captures of Linux in `testbench/data/pcaps`.

use std::path::{Path, PathBuf};

use pcap_file::DataLink;
use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::{Block, PcapNgReader};

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

/// The first bytes of a pcapng file.
const PCAPNG: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

/// The frames of a capture (pcap or pcapng), in order.
///
/// # Errors
/// When the file is none, or a frame was not captured whole.
pub fn frames(path: &Path) -> Result<Vec<Vec<u8>>, CaptureError> {
    let fail = |why: String| CaptureError {
        path: path.to_owned(),
        why,
    };
    let file = std::fs::read(path).map_err(|e| fail(e.to_string()))?;
    let mut frames = Vec::new();
    let mut take = |data: &[u8], length: u32| {
        if data.len() != length as usize {
            return Err(fail(format!("frame {} is not whole", frames.len() + 1)));
        }
        frames.push(data.to_vec());
        Ok(())
    };
    if file.starts_with(&PCAPNG) {
        let mut reader = PcapNgReader::new(&file[..]).map_err(|e| fail(e.to_string()))?;
        while let Some(block) = reader.next_block() {
            if let Block::EnhancedPacket(packet) = block.map_err(|e| fail(e.to_string()))? {
                take(&packet.data, packet.original_len)?;
            }
        }
    } else {
        let mut reader = PcapReader::new(&file[..]).map_err(|e| fail(e.to_string()))?;
        if reader.header().datalink != DataLink::ETHERNET {
            return Err(fail(format!("link type {:?}, not Ethernet", reader.header().datalink)));
        }
        while let Some(packet) = reader.next_packet() {
            let packet = packet.map_err(|e| fail(e.to_string()))?;
            take(&packet.data, packet.orig_len)?;
        }
    }
    Ok(frames)
}
