// SPDX-License-Identifier: Apache-2.0
//! Settings of a host, its counters, and how its BAR reads fail.

use openrnic_spec::{CplStatus, TLP_OVERHEAD_BYTES};

/// How answers to the device's reads are cut into completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Split {
    /// As few as the max payload size allows.
    Never,
    /// At every read completion boundary of 64 bytes.
    Always,
    /// At some of them.
    #[default]
    Random,
}

/// The host of one NIC.
#[derive(Debug, Clone)]
pub struct HostParams {
    /// Memory for DMA buffers, in bytes.
    pub memory_bytes: usize,
    /// Least time from a read request's last beat to the first beat of its completion.
    pub read_latency_ns: u64,
    /// Random time on top, drawn for each read.
    pub read_jitter_ns: u64,
    /// Time from a write's last beat until the host sees it.
    pub write_latency_ns: u64,
    /// Random time on top; writes keep their order.
    pub write_jitter_ns: u64,
    /// Time from a BAR access of the host until the device sees it.
    pub mmio_latency_ns: u64,
    /// Random time on top; accesses keep their order.
    pub mmio_jitter_ns: u64,
    /// How completions are cut.
    pub split: Split,
    /// Answers to different reads overtake each other.
    pub reorder: bool,
    /// Share of cycles in which the host takes no beat from the device, each stream by itself.
    pub stall: f64,
    /// Max payload size of the link in bytes.
    pub max_payload: u64,
    /// Cycles that a reset lasts.
    pub reset_cycles: u64,
}

impl Default for HostParams {
    /// A busy machine: latencies, jitter, completions cut and reordered at random.
    fn default() -> Self {
        Self {
            memory_bytes: 64 << 20,
            read_latency_ns: 400,
            read_jitter_ns: 200,
            write_latency_ns: 100,
            write_jitter_ns: 50,
            mmio_latency_ns: 100,
            mmio_jitter_ns: 100,
            split: Split::Random,
            reorder: true,
            stall: 0.0,
            max_payload: 256,
            reset_cycles: 64,
        }
    }
}

impl HostParams {
    /// A host that answers in the next cycle, in order and in large pieces: for measuring the device.
    pub fn ideal() -> Self {
        Self {
            read_latency_ns: 0,
            read_jitter_ns: 0,
            write_latency_ns: 0,
            write_jitter_ns: 0,
            mmio_latency_ns: 0,
            mmio_jitter_ns: 0,
            split: Split::Never,
            reorder: false,
            ..Self::default()
        }
    }
}

/// TLPs of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkCount {
    /// Packets.
    pub tlps: u64,
    /// Payload bytes (whole double words).
    pub payload: u64,
}

impl LinkCount {
    pub(super) fn add(&mut self, payload: usize) {
        self.tlps += 1;
        self.payload += payload as u64;
    }

    /// Bytes on the link: each packet has 20 bytes beside its payload.
    pub fn link_bytes(&self) -> u64 {
        self.payload + self.tlps * u64::from(TLP_OVERHEAD_BYTES)
    }
}

/// What went over a NIC's link since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PcieStats {
    /// All that the host sent.
    pub to_device: LinkCount,
    /// All that the device sent.
    pub from_device: LinkCount,
    /// Read requests of the device.
    pub reads: u64,
    /// Write requests of the device, interrupts included.
    pub writes: u64,
    /// Completions sent to the device.
    pub completions: u64,
    /// Interrupts delivered.
    pub interrupts: u64,
    /// Most reads of the device that were open at once.
    pub most_reads_open: usize,
    /// Faults injected into completions.
    pub faults: u64,
}

/// How a BAR read failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MmioError {
    /// The device completed it with this status.
    Status(CplStatus),
    /// The function was reset meanwhile.
    Reset,
    /// What the device sent is no answer; the violation says why.
    Garbled,
}

impl MmioError {
    /// The failure by name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Status(CplStatus::Ur) => "unsupported request",
            Self::Status(CplStatus::Ca) => "completer abort",
            Self::Status(CplStatus::Crs) => "configuration retry",
            Self::Status(CplStatus::Sc) => "success",
            Self::Reset => "nothing, as it was reset",
            Self::Garbled => "a garbled completion",
        }
    }
}
