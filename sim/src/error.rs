// SPDX-License-Identifier: Apache-2.0
//! Errors of a simulation, and violations: what a device did that no device may.

use std::path::PathBuf;

use crate::model::ModelError;

/// A device broke a rule of its surroundings. An error of the run, unless the test provoked it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cycle {cycle}, NIC {nic}: {what}")]
pub struct Violation {
    /// Clock cycle.
    pub cycle: u64,
    /// Which NIC.
    pub nic: usize,
    /// What it did.
    pub what: Misdeed,
}

/// The rules that the surroundings check.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // the messages name the fields
pub enum Misdeed {
    #[error("DMA {} of {bytes} bytes at {addr:#x}, which is not mapped", if *.write { "write" } else { "read" })]
    DmaUnmapped { write: bool, addr: u64, bytes: u64 },
    #[error("DMA {} at {addr:#x} while the bus master enable is off", if *.write { "write" } else { "read" })]
    NotBusMaster { write: bool, addr: u64 },
    #[error("write of {bytes} bytes at {addr:#x}: the max payload size is {max}")]
    WriteTooLong { addr: u64, bytes: u64, max: u64 },
    #[error("read of {bytes} bytes at {addr:#x}: the max read request size is {max}")]
    ReadTooLong { addr: u64, bytes: u64, max: u64 },
    #[error("request of {bytes} bytes at {addr:#x} crosses a 4 KiB boundary")]
    Crosses4K { addr: u64, bytes: u64 },
    #[error(
        "request at {addr:#x} for {dw_len} double words with byte enables first {first:#x}, last {last:#x}: not allowed by PCIe 2.2.5"
    )]
    ByteEnables {
        addr: u64,
        dw_len: u64,
        first: u8,
        last: u8,
    },
    #[error("request header {header:02x?}: {why}")]
    BadHeader { header: [u8; 16], why: &'static str },
    #[error("{stream}: header says {dw_len} double words, {bytes} bytes came in {beats} beats")]
    PayloadLength {
        stream: &'static str,
        dw_len: u64,
        bytes: u64,
        beats: u64,
    },
    #[error("{stream}: the header changed between beats of a packet")]
    HeaderChanged { stream: &'static str },
    #[error("{stream}: valid was taken back before ready, or the beat changed while it waited")]
    NotHeld { stream: &'static str },
    #[error("read with tag {tag}, which is still in use")]
    TagInUse { tag: u16 },
    #[error("completion with tag {tag}: {why}")]
    BadCompletion { tag: u16, why: String },
    #[error("MSI-X write to {addr:#x} with {data:#x}: {why}")]
    BadInterrupt { addr: u64, data: u32, why: &'static str },
    #[error("Ethernet frame with a gap after {bytes} bytes")]
    FrameGap { bytes: usize },
    #[error("Ethernet frame of {bytes} bytes (14 to {max} are allowed)")]
    FrameLength { bytes: usize, max: usize },
    #[error("Ethernet frame with a hole in the byte lanes after {bytes} bytes")]
    FrameKeep { bytes: usize },
    #[error("the receiving MAC was not taken: mac_rx_ready_o must always be 1")]
    RxNotReady,
}

/// Why a simulation cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The model could not be built or loaded, or an assertion failed.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A device broke a rule. Later steps go on; [`crate::world::WorldParams::stop_on_violation`] turns
    /// this off.
    #[error("the device broke a rule: {0}")]
    Violation(Violation),
    /// What was awaited did not come.
    #[error("waited {budget} clock cycles for {what}, in vain (now at cycle {now})")]
    Timeout {
        /// What was awaited.
        what: String,
        /// Cycles waited.
        budget: u64,
        /// The cycle in which the wait ended.
        now: u64,
    },
    /// Parameters that fit no world.
    #[error("{what}")]
    Params {
        /// What is wrong, and what would be right.
        what: String,
    },
    /// The capture could not be written.
    #[error("writing the capture {path}: {message}", path = path.display())]
    Capture {
        /// The pcapng file.
        path: PathBuf,
        /// Why.
        message: String,
    },
}
