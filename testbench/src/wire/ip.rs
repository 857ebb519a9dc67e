// SPDX-License-Identifier: Apache-2.0
//! IPv4 without options (RFC 791) and IPv6 without extension headers (RFC 8200).

use std::net::{Ipv4Addr, Ipv6Addr};

use super::{Error, be16, be32, head};

/// Bytes of an IPv4 header without options.
pub const IPV4_LEN: usize = 20;
/// Bytes of an IPv6 header.
pub const IPV6_LEN: usize = 40;

/// An IPv4 packet in place.
#[derive(Debug, Clone, Copy)]
pub struct Ipv4Packet<T: AsRef<[u8]>>(T);

impl<T: AsRef<[u8]>> Ipv4Packet<T> {
    /// Looks at a packet.
    ///
    /// # Errors
    /// When it ends within its header, has another version, or options.
    pub fn new(bytes: T) -> Result<Self, Error> {
        let b = head("IPv4 header", bytes.as_ref(), IPV4_LEN)?;
        if b[0] != 0x45 {
            Err(Error::NotA("IPv4 without options"))
        } else {
            Ok(Self(bytes))
        }
    }

    /// DSCP and ECN.
    pub fn tos(&self) -> u8 {
        self.0.as_ref()[1]
    }

    /// Bytes of header and payload.
    pub fn total_len(&self) -> u16 {
        be16(self.0.as_ref(), 2)
    }

    /// Identification.
    pub fn id(&self) -> u16 {
        be16(self.0.as_ref(), 4)
    }

    /// Flags and fragment offset: bit 14 do not fragment, 13 more fragments, 12:0 the offset.
    pub fn fragment(&self) -> u16 {
        be16(self.0.as_ref(), 6)
    }

    /// Hop limit.
    pub fn ttl(&self) -> u8 {
        self.0.as_ref()[8]
    }

    /// Protocol of the payload.
    pub fn protocol(&self) -> u8 {
        self.0.as_ref()[9]
    }

    /// Header checksum as it stands there.
    pub fn checksum(&self) -> u16 {
        be16(self.0.as_ref(), 10)
    }

    /// Source.
    pub fn src(&self) -> Ipv4Addr {
        be32(self.0.as_ref(), 12).into()
    }

    /// Destination.
    pub fn dst(&self) -> Ipv4Addr {
        be32(self.0.as_ref(), 16).into()
    }

    /// What follows the header, what is behind the packet (Ethernet padding) included.
    pub fn rest(&self) -> &[u8] {
        &self.0.as_ref()[IPV4_LEN..]
    }
}

/// An IPv4 header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ipv4 {
    /// DSCP and ECN.
    pub tos: u8,
    /// Bytes of header and payload.
    pub total_len: u16,
    /// Identification.
    pub id: u16,
    /// Flags and fragment offset.
    pub fragment: u16,
    /// Hop limit.
    pub ttl: u8,
    /// Protocol of the payload.
    pub protocol: u8,
    /// Header checksum.
    pub checksum: u16,
    /// Source.
    pub src: Ipv4Addr,
    /// Destination.
    pub dst: Ipv4Addr,
}

impl Ipv4 {
    /// The header's value.
    pub fn parse<T: AsRef<[u8]>>(p: &Ipv4Packet<T>) -> Self {
        Self {
            tos: p.tos(),
            total_len: p.total_len(),
            id: p.id(),
            fragment: p.fragment(),
            ttl: p.ttl(),
            protocol: p.protocol(),
            checksum: p.checksum(),
            src: p.src(),
            dst: p.dst(),
        }
    }

    /// Appends the header.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend([0x45, self.tos]);
        out.extend(self.total_len.to_be_bytes());
        out.extend(self.id.to_be_bytes());
        out.extend(self.fragment.to_be_bytes());
        out.extend([self.ttl, self.protocol]);
        out.extend(self.checksum.to_be_bytes());
        out.extend(self.src.octets());
        out.extend(self.dst.octets());
    }

    /// The checksum that the other fields ask for (RFC 1071).
    pub fn right_checksum(&self) -> u16 {
        let mut bytes = Vec::with_capacity(IPV4_LEN);
        Self { checksum: 0, ..*self }.emit(&mut bytes);
        let sum: u32 = bytes.chunks_exact(2).map(|w| u32::from(be16(w, 0))).sum();
        let sum = (sum & 0xffff) + (sum >> 16);
        !((sum & 0xffff) + (sum >> 16)) as u16
    }
}

/// An IPv6 packet in place.
#[derive(Debug, Clone, Copy)]
pub struct Ipv6Packet<T: AsRef<[u8]>>(T);

impl<T: AsRef<[u8]>> Ipv6Packet<T> {
    /// Looks at a packet.
    ///
    /// # Errors
    /// When it ends within its header or has another version.
    pub fn new(bytes: T) -> Result<Self, Error> {
        let b = head("IPv6 header", bytes.as_ref(), IPV6_LEN)?;
        if b[0] >> 4 != 6 {
            Err(Error::NotA("IPv6"))
        } else {
            Ok(Self(bytes))
        }
    }

    fn address(&self, at: usize) -> Ipv6Addr {
        let mut a = [0; 16];
        a.copy_from_slice(&self.0.as_ref()[at..at + 16]);
        a.into()
    }

    /// DSCP and ECN.
    pub fn traffic_class(&self) -> u8 {
        (be16(self.0.as_ref(), 0) >> 4) as u8
    }

    /// Flow label, 20 bits.
    pub fn flow_label(&self) -> u32 {
        be32(self.0.as_ref(), 0) & 0xf_ffff
    }

    /// Bytes behind the header.
    pub fn payload_len(&self) -> u16 {
        be16(self.0.as_ref(), 4)
    }

    /// Protocol of the payload.
    pub fn next_header(&self) -> u8 {
        self.0.as_ref()[6]
    }

    /// Hop limit.
    pub fn hop_limit(&self) -> u8 {
        self.0.as_ref()[7]
    }

    /// Source.
    pub fn src(&self) -> Ipv6Addr {
        self.address(8)
    }

    /// Destination.
    pub fn dst(&self) -> Ipv6Addr {
        self.address(24)
    }

    /// What follows the header, what is behind the packet (Ethernet padding) included.
    pub fn rest(&self) -> &[u8] {
        &self.0.as_ref()[IPV6_LEN..]
    }
}

/// An IPv6 header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ipv6 {
    /// DSCP and ECN.
    pub traffic_class: u8,
    /// Flow label, 20 bits.
    pub flow_label: u32,
    /// Bytes behind the header.
    pub payload_len: u16,
    /// Protocol of the payload.
    pub next_header: u8,
    /// Hop limit.
    pub hop_limit: u8,
    /// Source.
    pub src: Ipv6Addr,
    /// Destination.
    pub dst: Ipv6Addr,
}

impl Ipv6 {
    /// The header's value.
    pub fn parse<T: AsRef<[u8]>>(p: &Ipv6Packet<T>) -> Self {
        Self {
            traffic_class: p.traffic_class(),
            flow_label: p.flow_label(),
            payload_len: p.payload_len(),
            next_header: p.next_header(),
            hop_limit: p.hop_limit(),
            src: p.src(),
            dst: p.dst(),
        }
    }

    /// Appends the header.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend((6 << 28 | u32::from(self.traffic_class) << 20 | self.flow_label & 0xf_ffff).to_be_bytes());
        out.extend(self.payload_len.to_be_bytes());
        out.extend([self.next_header, self.hop_limit]);
        out.extend(self.src.octets());
        out.extend(self.dst.octets());
    }
}

/// Either.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ip {
    /// IPv4.
    V4(Ipv4),
    /// IPv6.
    V6(Ipv6),
}

impl Ip {
    /// Bytes of the header.
    pub fn header_len(&self) -> usize {
        match self {
            Self::V4(_) => IPV4_LEN,
            Self::V6(_) => IPV6_LEN,
        }
    }

    /// Bytes of the packet as the header claims.
    pub fn packet_len(&self) -> usize {
        match self {
            Self::V4(ip) => ip.total_len.into(),
            Self::V6(ip) => IPV6_LEN + usize::from(ip.payload_len),
        }
    }

    /// Protocol of the payload.
    pub fn protocol(&self) -> u8 {
        match self {
            Self::V4(ip) => ip.protocol,
            Self::V6(ip) => ip.next_header,
        }
    }

    /// Appends the header.
    pub fn emit(&self, out: &mut Vec<u8>) {
        match self {
            Self::V4(ip) => ip.emit(out),
            Self::V6(ip) => ip.emit(out),
        }
    }
}
