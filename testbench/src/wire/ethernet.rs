// SPDX-License-Identifier: Apache-2.0
//! Ethernet II, with or without one IEEE 802.1Q tag. No preamble, no FCS.

use super::{Error, be16, head};

/// A MAC address in the order of the wire.
pub type Mac = [u8; 6];

/// EtherType of IPv4.
pub const ETHERTYPE_IPV4: u16 = 0x0800;
/// EtherType of IPv6.
pub const ETHERTYPE_IPV6: u16 = 0x86dd;
/// EtherType of a C-tag.
pub const ETHERTYPE_VLAN: u16 = 0x8100;

/// A frame in place.
#[derive(Debug, Clone, Copy)]
pub struct Packet<T: AsRef<[u8]>>(T);

impl<T: AsRef<[u8]>> Packet<T> {
    /// Looks at a frame.
    ///
    /// # Errors
    /// When it ends within its header.
    pub fn new(bytes: T) -> Result<Self, Error> {
        let b = head("Ethernet header", bytes.as_ref(), 14)?;
        if be16(b, 12) == ETHERTYPE_VLAN {
            head("Ethernet header with a tag", bytes.as_ref(), 18)?;
        }
        Ok(Self(bytes))
    }

    fn bytes(&self) -> &[u8] {
        self.0.as_ref()
    }

    /// Destination.
    pub fn dst(&self) -> Mac {
        let b = self.bytes();
        [b[0], b[1], b[2], b[3], b[4], b[5]]
    }

    /// Source.
    pub fn src(&self) -> Mac {
        let b = self.bytes();
        [b[6], b[7], b[8], b[9], b[10], b[11]]
    }

    /// Tag control information (PCP, DEI, VID), when there is a tag.
    pub fn tag(&self) -> Option<u16> {
        (be16(self.bytes(), 12) == ETHERTYPE_VLAN).then(|| be16(self.bytes(), 14))
    }

    /// EtherType of the payload.
    pub fn ethertype(&self) -> u16 {
        be16(self.bytes(), if self.tag().is_some() { 16 } else { 12 })
    }

    /// Bytes of the header.
    pub fn header_len(&self) -> usize {
        if self.tag().is_some() { 18 } else { 14 }
    }

    /// What follows the header.
    pub fn payload(&self) -> &[u8] {
        &self.bytes()[self.header_len()..]
    }
}

/// An Ethernet header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repr {
    /// Destination.
    pub dst: Mac,
    /// Source.
    pub src: Mac,
    /// Tag control information.
    pub tag: Option<u16>,
    /// EtherType of the payload.
    pub ethertype: u16,
}

impl Repr {
    /// The header's value.
    pub fn parse<T: AsRef<[u8]>>(packet: &Packet<T>) -> Self {
        Self {
            dst: packet.dst(),
            src: packet.src(),
            tag: packet.tag(),
            ethertype: packet.ethertype(),
        }
    }

    /// Bytes that it takes.
    pub fn len(&self) -> usize {
        if self.tag.is_some() { 18 } else { 14 }
    }

    /// Never: a header has bytes.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Appends the header.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend(self.dst);
        out.extend(self.src);
        if let Some(tag) = self.tag {
            out.extend(ETHERTYPE_VLAN.to_be_bytes());
            out.extend(tag.to_be_bytes());
        }
        out.extend(self.ethertype.to_be_bytes());
    }
}
