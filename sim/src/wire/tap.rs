// SPDX-License-Identifier: Apache-2.0
//! Captures as pcapng: simulated time in nanoseconds, one interface per NIC and port.

use std::borrow::Cow;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use pcap_file::DataLink;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::pcapng::{PcapNgBlock, PcapNgWriter};

use crate::error::SimError;

/// Direction of a frame at its interface; value of the pcapng flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Received by the NIC.
    In = 1,
    /// Sent by the NIC.
    Out = 2,
}

/// Which frames a capture holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TapPoints {
    /// Every frame where it is sent and again where it is received, as captures on both machines would.
    #[default]
    BothEnds,
    /// Every frame once, where it is sent; injected frames where they are received.
    Senders,
}

/// Writes a capture.
pub struct Tap {
    writer: PcapNgWriter<Box<dyn Write>>,
    path: PathBuf,
    points: TapPoints,
    frames: u64,
}

impl Tap {
    /// Starts the capture file for this many NICs.
    ///
    /// # Errors
    /// [`SimError::Capture`] when the file cannot be written.
    pub fn create(path: &Path, nics: usize, bits_per_second: u64, points: TapPoints) -> Result<Self, SimError> {
        let failed = |e: std::io::Error| SimError::Capture {
            path: path.to_path_buf(),
            message: e.to_string(),
        };
        if let Some(dir) = path.parent() {
            std::fs::create_dir_all(dir).map_err(failed)?;
        }
        let file = File::create(path).map_err(failed)?;
        Self::new(Box::new(BufWriter::new(file)), path, nics, bits_per_second, points)
    }

    /// As [`create`](Self::create), to any writer; `path` is only for messages.
    ///
    /// # Errors
    /// [`SimError::Capture`] when it cannot be written.
    pub fn new(
        out: Box<dyn Write>,
        path: &Path,
        nics: usize,
        bits_per_second: u64,
        points: TapPoints,
    ) -> Result<Self, SimError> {
        let failed = |e: pcap_file::PcapError| SimError::Capture {
            path: path.to_path_buf(),
            message: e.to_string(),
        };
        let section = SectionHeaderBlock {
            options: vec![
                SectionHeaderOption::Hardware(Cow::Borrowed("OpenRNIC, simulated")),
                SectionHeaderOption::UserApplication(Cow::Borrowed("openrnic")),
            ],
            ..Default::default()
        };
        let mut writer = PcapNgWriter::with_section_header(out, section).map_err(failed)?;
        for nic in 0..nics {
            let interface = InterfaceDescriptionBlock {
                linktype: DataLink::ETHERNET,
                snaplen: 0,
                options: vec![
                    InterfaceDescriptionOption::IfName(Cow::Owned(format!("nic{nic}.p1"))),
                    InterfaceDescriptionOption::IfDescription(Cow::Owned(format!("OpenRNIC {nic}, port 1"))),
                    InterfaceDescriptionOption::IfSpeed(bits_per_second),
                    InterfaceDescriptionOption::IfTsResol(9),
                ],
            };
            writer.write_block(&interface.into_block()).map_err(failed)?;
        }
        Ok(Self {
            writer,
            path: path.to_path_buf(),
            points,
            frames: 0,
        })
    }

    /// Which frames it holds.
    pub fn points(&self) -> TapPoints {
        self.points
    }

    /// Frames written.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Writes a frame as seen at a NIC's port.
    ///
    /// # Errors
    /// [`SimError::Capture`] when it cannot be written.
    pub fn frame(
        &mut self,
        nic: usize,
        time_ns: u64,
        direction: Direction,
        frame: &[u8],
        comment: &str,
    ) -> Result<(), SimError> {
        let mut options = vec![EnhancedPacketOption::Flags(direction as u32)];
        if !comment.is_empty() {
            options.push(EnhancedPacketOption::Comment(Cow::Borrowed(comment)));
        }
        let block = EnhancedPacketBlock {
            interface_id: nic as u32,
            timestamp: Duration::from_nanos(time_ns),
            original_len: frame.len() as u32,
            data: Cow::Borrowed(frame),
            options,
        };
        self.frames += 1;
        self.writer
            .write_block(&block.into_block())
            .map_err(|e| self.failed(&e.to_string()))?;
        Ok(())
    }

    /// Makes what was written so far readable in the file.
    ///
    /// # Errors
    /// [`SimError::Capture`] when it cannot be written.
    pub fn flush(&mut self) -> Result<(), SimError> {
        self.writer.get_mut().flush().map_err(|e| self.failed(&e.to_string()))
    }

    fn failed(&self, message: &str) -> SimError {
        SimError::Capture {
            path: self.path.clone(),
            message: message.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use pcap_file::pcapng::{Block, PcapNgReader};

    use super::*;

    #[derive(Clone, Default)]
    struct Shared(Rc<RefCell<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.borrow_mut().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_capture_reads_back_with_interfaces_nanoseconds_directions_and_comments() {
        let out = Shared::default();
        let path = Path::new("memory");
        let mut tap = Tap::new(Box::new(out.clone()), path, 2, 10_000_000_000, TapPoints::BothEnds).unwrap();
        tap.frame(0, 1_234_567_891, Direction::Out, &[1, 2, 3, 4, 5], "dropped: told to")
            .unwrap();
        tap.frame(1, 1_234_567_899, Direction::In, &[9; 60], "").unwrap();
        tap.flush().unwrap();
        let bytes = out.0.borrow().clone();
        let mut reader = PcapNgReader::new(bytes.as_slice()).unwrap();
        let (mut names, mut packets) = (Vec::new(), Vec::new());
        while let Some(block) = reader.next_block() {
            match block.unwrap() {
                Block::InterfaceDescription(i) => {
                    assert!(i.options.contains(&InterfaceDescriptionOption::IfTsResol(9)));
                    names.push(format!("{:?}", i.options[0]));
                }
                Block::EnhancedPacket(p) => packets.push(p.into_owned()),
                other => panic!("{other:?}"),
            }
        }
        assert!(
            names[0].contains("nic0.p1") && names[1].contains("nic1.p1"),
            "{names:?}"
        );
        assert_eq!(packets[0].timestamp, Duration::from_nanos(1_234_567_891));
        assert_eq!(packets[0].data.as_ref(), &[1, 2, 3, 4, 5]);
        assert!(packets[0].options.contains(&EnhancedPacketOption::Flags(2)));
        assert!(
            packets[0]
                .options
                .contains(&EnhancedPacketOption::Comment(Cow::Borrowed("dropped: told to")))
        );
        assert_eq!((packets[1].interface_id, packets[1].options.len()), (1, 1));
    }
}
