// SPDX-License-Identifier: Apache-2.0
//! The base transport header (IBTA volume 1, 9.2).

use super::{Error, be16, be24, head};

/// Bytes of the header.
pub const BTH_LEN: usize = 12;

/// A transport packet in place.
#[derive(Debug, Clone, Copy)]
pub struct Packet<T: AsRef<[u8]>>(T);

impl<T: AsRef<[u8]>> Packet<T> {
    /// Looks at a packet.
    ///
    /// # Errors
    /// When it ends within its header.
    pub fn new(bytes: T) -> Result<Self, Error> {
        head("BTH", bytes.as_ref(), BTH_LEN)?;
        Ok(Self(bytes))
    }

    fn bytes(&self) -> &[u8] {
        self.0.as_ref()
    }

    /// Operation and transport.
    pub fn opcode(&self) -> u8 {
        self.bytes()[0]
    }

    /// Solicited event.
    pub fn solicited(&self) -> bool {
        self.bytes()[1] & 0x80 != 0
    }

    /// Migration state bit.
    pub fn mig_req(&self) -> bool {
        self.bytes()[1] & 0x40 != 0
    }

    /// Bytes between payload and ICRC.
    pub fn pad_count(&self) -> u8 {
        self.bytes()[1] >> 4 & 3
    }

    /// Transport header version.
    pub fn version(&self) -> u8 {
        self.bytes()[1] & 0xf
    }

    /// Partition key.
    pub fn pkey(&self) -> u16 {
        be16(self.bytes(), 2)
    }

    /// FECN (bit 7), BECN (bit 6) and reserved bits.
    pub fn congestion(&self) -> u8 {
        self.bytes()[4]
    }

    /// Destination QP.
    pub fn dest_qpn(&self) -> u32 {
        be24(self.bytes(), 5)
    }

    /// AckReq (bit 7) and reserved bits.
    pub fn ack_byte(&self) -> u8 {
        self.bytes()[8]
    }

    /// Packet sequence number.
    pub fn psn(&self) -> u32 {
        be24(self.bytes(), 9)
    }

    /// What follows the header.
    pub fn rest(&self) -> &[u8] {
        &self.bytes()[BTH_LEN..]
    }
}

/// A base transport header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Repr {
    /// Operation and transport.
    pub opcode: u8,
    /// Solicited event.
    pub solicited: bool,
    /// Migration state bit.
    pub mig_req: bool,
    /// Bytes between payload and ICRC.
    pub pad_count: u8,
    /// Transport header version.
    pub version: u8,
    /// Partition key.
    pub pkey: u16,
    /// FECN (bit 7), BECN (bit 6) and reserved bits.
    pub congestion: u8,
    /// Destination QP.
    pub dest_qpn: u32,
    /// A response is asked for.
    pub ack_req: bool,
    /// Reserved bits beside it.
    pub ack_reserved: u8,
    /// Packet sequence number.
    pub psn: u32,
}

impl Repr {
    /// The header's value.
    pub fn parse<T: AsRef<[u8]>>(p: &Packet<T>) -> Self {
        Self {
            opcode: p.opcode(),
            solicited: p.solicited(),
            mig_req: p.mig_req(),
            pad_count: p.pad_count(),
            version: p.version(),
            pkey: p.pkey(),
            congestion: p.congestion(),
            dest_qpn: p.dest_qpn(),
            ack_req: p.ack_byte() & 0x80 != 0,
            ack_reserved: p.ack_byte() & 0x7f,
            psn: p.psn(),
        }
    }

    /// Appends the header.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let flags = u8::from(self.solicited) << 7 | u8::from(self.mig_req) << 6 | (self.pad_count & 3) << 4;
        out.extend([self.opcode, flags | self.version & 0xf]);
        out.extend(self.pkey.to_be_bytes());
        out.push(self.congestion);
        out.extend(&self.dest_qpn.to_be_bytes()[1..]);
        out.push(u8::from(self.ack_req) << 7 | self.ack_reserved & 0x7f);
        out.extend(&self.psn.to_be_bytes()[1..]);
    }
}
