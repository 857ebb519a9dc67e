// SPDX-License-Identifier: Apache-2.0
//! The pins of a NIC, cycle by cycle: what the surroundings drive and see.

use crate::model::ModelError;

/// A beat of a TLP stream: the header stands beside every beat, payload double word 0 in lanes 3:0 of
/// the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TlpBeat<'a> {
    /// One of the headers of `spec/tlp.toml`.
    pub header: &'a [u8; 16],
    /// All byte lanes.
    pub data: &'a [u8],
    /// Last beat of the packet.
    pub last: bool,
}

/// A beat of an Ethernet frame (without preamble and frame check sequence).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MacBeat<'a> {
    /// The lanes in use, from lane 0 on: all of them unless it is the last beat.
    pub data: &'a [u8],
    /// Last beat of the frame.
    pub last: bool,
    /// The MAC found the frame damaged (only seen with `last`).
    pub error: bool,
}

/// The streams that the surroundings drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlpIn {
    /// Completer request: host reads and writes of BAR0.
    Cq,
    /// Requester completion: answers to the device's reads.
    Rc,
}

/// The streams that the device drives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlpOut {
    /// Completer completion: the device's answers to host reads.
    Cc,
    /// Requester request: DMA and interrupts.
    Rq,
}

/// Whether the lanes of a frame's beat are filled from lane 0 on without holes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadKeep;

/// A NIC under simulation. Inputs keep their value until set again. Outputs are those of the cycle that
/// [`Device::clock`] just ended, as they stood before its rising edge: a transfer happened when valid
/// and ready were both set then.
pub trait Device {
    /// Byte lanes of the TLP and MAC streams.
    fn data_bytes(&self) -> usize;

    /// Reset input.
    fn set_reset(&mut self, on: bool);

    /// Bus master enable of the command register.
    fn set_bus_master(&mut self, on: bool);

    /// Link state of the port.
    fn set_port_up(&mut self, up: bool);

    /// Offers a beat, or nothing.
    fn set_tlp(&mut self, stream: TlpIn, beat: Option<TlpBeat<'_>>);

    /// Whether the device took what was offered on the stream.
    fn tlp_ready(&self, stream: TlpIn) -> bool;

    /// Readiness to take a beat of the device.
    fn set_tlp_ready(&mut self, stream: TlpOut, ready: bool);

    /// The beat that the device offered.
    fn tlp(&self, stream: TlpOut) -> Option<TlpBeat<'_>>;

    /// Gives the MAC receive side a beat, or nothing.
    fn set_mac_rx(&mut self, beat: Option<MacBeat<'_>>);

    /// `mac_rx_ready_o`, which must be 1.
    fn mac_rx_ready(&self) -> bool;

    /// Readiness of the transmitting MAC.
    fn set_mac_tx_ready(&mut self, ready: bool);

    /// The beat that the device offered to the MAC.
    ///
    /// # Errors
    /// [`BadKeep`] when its lanes have holes, or a beat that is not the last has fewer than all.
    fn mac_tx(&self) -> Result<Option<MacBeat<'_>>, BadKeep>;

    /// One clock cycle.
    ///
    /// # Errors
    /// A failed assertion of the RTL.
    fn clock(&mut self) -> Result<(), ModelError> {
        self.settle()?;
        self.edge()
    }

    /// First half of a cycle: inputs reach the combinational outputs, which are sampled.
    ///
    /// # Errors
    /// A failed assertion of the RTL.
    fn settle(&mut self) -> Result<(), ModelError>;

    /// Second half of a cycle: the rising edge.
    ///
    /// # Errors
    /// A failed assertion of the RTL.
    fn edge(&mut self) -> Result<(), ModelError>;
}
