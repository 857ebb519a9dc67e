// SPDX-License-Identifier: Apache-2.0
//! UDP, and the source port of RoCEv2.

use super::{Error, be16, head};

/// Bytes of the header.
pub const UDP_LEN: usize = 8;
/// Destination port of RoCEv2.
pub const ROCE_PORT: u16 = 4791;

/// A datagram in place.
#[derive(Debug, Clone, Copy)]
pub struct Packet<T: AsRef<[u8]>>(T);

impl<T: AsRef<[u8]>> Packet<T> {
    /// Looks at a datagram.
    ///
    /// # Errors
    /// When it ends within its header.
    pub fn new(bytes: T) -> Result<Self, Error> {
        head("UDP header", bytes.as_ref(), UDP_LEN)?;
        Ok(Self(bytes))
    }

    /// Source port.
    pub fn src_port(&self) -> u16 {
        be16(self.0.as_ref(), 0)
    }

    /// Destination port.
    pub fn dst_port(&self) -> u16 {
        be16(self.0.as_ref(), 2)
    }

    /// Bytes of header and payload.
    pub fn length(&self) -> u16 {
        be16(self.0.as_ref(), 4)
    }

    /// Checksum; 0 is none.
    pub fn checksum(&self) -> u16 {
        be16(self.0.as_ref(), 6)
    }

    /// What follows the header.
    pub fn rest(&self) -> &[u8] {
        &self.0.as_ref()[UDP_LEN..]
    }
}

/// A UDP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repr {
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// Bytes of header and payload.
    pub length: u16,
    /// Checksum; 0 is none.
    pub checksum: u16,
}

impl Repr {
    /// The header's value.
    pub fn parse<T: AsRef<[u8]>>(p: &Packet<T>) -> Self {
        Self {
            src_port: p.src_port(),
            dst_port: p.dst_port(),
            length: p.length(),
            checksum: p.checksum(),
        }
    }

    /// Appends the header.
    pub fn emit(&self, out: &mut Vec<u8>) {
        for field in [self.src_port, self.dst_port, self.length, self.checksum] {
            out.extend(field.to_be_bytes());
        }
    }
}

/// Source port of a connection as Linux chooses it (`rdma_calc_flow_label`,
/// `rdma_flow_label_to_udp_sport`): by the flow label, or by the two QPNs when that is 0.
pub fn source_port(flow_label: u32, local_qpn: u32, remote_qpn: u32) -> u16 {
    let label = if flow_label == 0 {
        let mut v = u64::from(local_qpn) * u64::from(remote_qpn);
        v ^= v >> 20;
        v ^= v >> 40;
        (v & 0xf_ffff) as u32
    } else {
        flow_label
    };
    0xc000 | ((label & 0x3fff) ^ (label & 0xf_c000) >> 14) as u16
}
