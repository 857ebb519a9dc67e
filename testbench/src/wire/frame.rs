// SPDX-License-Identifier: Apache-2.0
//! Whole frames.

use super::bth::{self, Repr as Bth};
use super::ethernet::{self, ETHERTYPE_IPV4, ETHERTYPE_IPV6, Repr as Ethernet};
use super::ext::ExtHeaders;
use super::ip::{Ip, Ipv4, Ipv4Packet, Ipv6, Ipv6Packet};
use super::opcode::opcode_info;
use super::udp::{self, ROCE_PORT, Repr as Udp, UDP_LEN};
use super::{Error, be32, icrc};

/// A RoCEv2 frame, taken apart. It emits to exactly the bytes it was parsed from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roce {
    /// Ethernet header.
    pub eth: Ethernet,
    /// IP header.
    pub ip: Ip,
    /// UDP header.
    pub udp: Udp,
    /// Base transport header.
    pub bth: Bth,
    /// Extended headers; none for an unknown opcode.
    pub ext: ExtHeaders,
    /// Payload.
    pub payload: Vec<u8>,
    /// Pad bytes.
    pub pad: Vec<u8>,
    /// The check as a number: its least significant byte stands first.
    pub icrc: u32,
    /// What stands behind the IP packet (Ethernet padding).
    pub trailer: Vec<u8>,
}

/// A frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// RoCEv2 whose lengths agree.
    Roce(Box<Roce>),
    /// Anything else, and why.
    Opaque(Vec<u8>, Error),
}

impl Frame {
    /// Takes a frame apart as far as it is RoCEv2.
    pub fn parse(bytes: &[u8]) -> Self {
        match Roce::parse(bytes) {
            Ok(roce) => Self::Roce(Box::new(roce)),
            Err(why) => Self::Opaque(bytes.to_vec(), why),
        }
    }

    /// The bytes.
    pub fn emit(&self) -> Vec<u8> {
        match self {
            Self::Roce(roce) => roce.emit(),
            Self::Opaque(bytes, _) => bytes.clone(),
        }
    }

    /// The frame, when it is RoCEv2.
    pub fn roce(&self) -> Option<&Roce> {
        match self {
            Self::Roce(roce) => Some(roce),
            Self::Opaque(..) => None,
        }
    }
}

impl Roce {
    /// Takes a frame apart.
    ///
    /// # Errors
    /// When it is no RoCEv2 frame, or ends early, or its lengths disagree. A wrong ICRC, checksum or version is no
    /// error: it is there to be looked at.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let packet = ethernet::Packet::new(bytes)?;
        let eth = Ethernet::parse(&packet);
        let ip = match eth.ethertype {
            ETHERTYPE_IPV4 => Ip::V4(Ipv4::parse(&Ipv4Packet::new(packet.payload())?)),
            ETHERTYPE_IPV6 => Ip::V6(Ipv6::parse(&Ipv6Packet::new(packet.payload())?)),
            _ => return Err(Error::NotA("IP")),
        };
        if ip.protocol() != 17 {
            return Err(Error::NotA("UDP"));
        }
        let (all, len) = (packet.payload(), ip.packet_len());
        if len > all.len() {
            return Err(Error::Short {
                what: "IP packet",
                need: len,
                have: all.len(),
            });
        }
        let (whole, trailer) = all.split_at(len);
        let datagram = udp::Packet::new(whole.get(ip.header_len()..).unwrap_or_default())?;
        let udp = Udp::parse(&datagram);
        if udp.dst_port != ROCE_PORT {
            return Err(Error::NotA("RoCEv2"));
        }
        if usize::from(udp.length) != whole.len() - ip.header_len() {
            return Err(Error::NotA("datagram as long as its packet"));
        }
        let transport = bth::Packet::new(datagram.rest())?;
        let bth = Bth::parse(&transport);
        let (ext, rest) = match opcode_info(bth.opcode) {
            Some(info) => ExtHeaders::parse(&info, transport.rest())?,
            None => (ExtHeaders::default(), transport.rest()),
        };
        let tail = usize::from(bth.pad_count) + 4;
        let Some(payload_len) = rest.len().checked_sub(tail) else {
            return Err(Error::Short {
                what: "pad and ICRC",
                need: tail,
                have: rest.len(),
            });
        };
        let (payload, tail) = rest.split_at(payload_len);
        let (pad, check) = tail.split_at(tail.len() - 4);
        Ok(Self {
            eth,
            ip,
            udp,
            bth,
            ext,
            payload: payload.to_vec(),
            pad: pad.to_vec(),
            icrc: be32(check, 0).swap_bytes(),
            trailer: trailer.to_vec(),
        })
    }

    /// The packet from its IP header to its pad: what the ICRC covers.
    pub fn covered(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.payload.len() + 100);
        self.ip.emit(&mut out);
        self.udp.emit(&mut out);
        self.bth.emit(&mut out);
        self.ext.emit(&mut out);
        out.extend(&self.payload);
        out.extend(&self.pad);
        out
    }

    /// The frame's bytes, every field as it stands.
    pub fn emit(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.payload.len() + 120);
        self.eth.emit(&mut out);
        out.extend(self.covered());
        out.extend(self.icrc.to_le_bytes());
        out.extend(&self.trailer);
        out
    }

    /// Whether the ICRC is right.
    pub fn icrc_ok(&self) -> bool {
        icrc::fast(&self.covered()) == self.icrc
    }

    /// Sets pad, lengths, IPv4 checksum and ICRC to what the rest asks for.
    pub fn finish(mut self) -> Self {
        self.pad = vec![0; self.payload.len().wrapping_neg() & 3];
        self.bth.pad_count = self.pad.len() as u8;
        let mut ext = Vec::new();
        self.ext.emit(&mut ext);
        self.udp.length = (UDP_LEN + bth::BTH_LEN + ext.len() + self.payload.len() + self.pad.len() + 4) as u16;
        match &mut self.ip {
            Ip::V4(ip) => {
                ip.total_len = 20 + self.udp.length;
                ip.checksum = ip.right_checksum();
            }
            Ip::V6(ip) => ip.payload_len = self.udp.length,
        }
        self.seal()
    }

    /// Sets the ICRC alone.
    pub fn seal(mut self) -> Self {
        self.icrc = icrc::fast(&self.covered());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(s: &str) -> Vec<u8> {
        let digits: Vec<u8> = s.bytes().filter(u8::is_ascii_hexdigit).collect();
        digits
            .chunks(2)
            .map(|p| u8::from_str_radix(std::str::from_utf8(p).unwrap(), 16).unwrap())
            .collect()
    }

    #[test]
    fn a_send_only_is_taken_apart_to_its_fields() {
        let mut frame = hex("020000000002 020000000001 0800");
        frame.extend(hex(
            "45020034123440004011a52fc0a80101c0a80102 c12312b700206a82 0440ffff0000001180123456 68656c6c6f212121 ae7871b6",
        ));
        let roce = Roce::parse(&frame).unwrap();
        assert_eq!((roce.bth.opcode, roce.bth.dest_qpn, roce.bth.psn), (4, 0x11, 0x12_3456));
        assert!(roce.bth.ack_req && roce.bth.mig_req && !roce.bth.solicited);
        assert_eq!(roce.payload, b"hello!!!");
        assert_eq!(roce.icrc, 0xb671_78ae);
        assert!(roce.icrc_ok());
        assert_eq!(roce.emit(), frame);
        assert_eq!(
            roce.clone().finish(),
            roce,
            "lengths, checksum and ICRC are those of the vector"
        );
    }

    #[test]
    fn a_frame_cut_anywhere_is_opaque_and_emits_as_it_was() {
        let frame = hex(
            "020000000002 020000000001 8100 6005 0800 45020034123440004011a52fc0a80101c0a80102 c12312b700206a82 \
             0440ffff0000001180123456 68656c6c6f212121 ae7871b6",
        );
        assert_eq!(Frame::parse(&frame).roce().unwrap().eth.tag, Some(0x6005));
        for cut in 0..frame.len() {
            let parsed = Frame::parse(&frame[..cut]);
            assert!(parsed.roce().is_none(), "{cut}");
            assert_eq!(parsed.emit(), &frame[..cut]);
        }
    }
}
