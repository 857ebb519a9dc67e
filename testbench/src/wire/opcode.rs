// SPDX-License-Identifier: Apache-2.0
//! What follows from an opcode: IBTA volume 1, tables 38 to 42, typed by hand.

/// An extended header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExtHeader {
    /// RDMA: address, key, length.
    Reth,
    /// Acknowledge: syndrome, message number.
    Aeth,
    /// Atomic operation.
    AtomicEth,
    /// Its result.
    AtomicAckEth,
    /// Immediate data.
    ImmDt,
    /// Key to invalidate.
    Ieth,
    /// Datagram: Q_Key, source QP.
    Deth,
    /// Extended RC: shared receive queue.
    XrcEth,
    /// The reserved bytes of a congestion notification.
    CnpBody,
}

impl ExtHeader {
    /// Its bytes.
    pub fn bytes(self) -> usize {
        match self {
            Self::Aeth | Self::ImmDt | Self::Ieth | Self::XrcEth => 4,
            Self::AtomicAckEth | Self::Deth => 8,
            Self::Reth | Self::CnpBody => 16,
            Self::AtomicEth => 28,
        }
    }
}

/// How much payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PayloadRule {
    /// Exactly the path MTU.
    Mtu,
    /// One byte to the path MTU.
    OneToMtu,
    /// None to the path MTU.
    ZeroToMtu,
    /// None.
    None,
}

/// Who sends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// The requester.
    Request,
    /// The responder.
    Response,
    /// Neither: congestion notification.
    Neither,
}

/// One row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpcodeInfo {
    /// Who sends it.
    pub direction: Direction,
    /// Headers behind the BTH, in order; without the XRCETH of extended RC.
    pub headers: &'static [ExtHeader],
    /// An XRCETH stands before them.
    pub xrc: bool,
    /// How much payload.
    pub payload: PayloadRule,
}

impl OpcodeInfo {
    /// Bytes of the extended headers.
    pub fn ext_len(&self) -> usize {
        self.headers.iter().map(|h| h.bytes()).sum::<usize>() + if self.xrc { 4 } else { 0 }
    }
}

/// The row of an opcode; none for one that is reserved or not supported (reliable datagrams, FLUSH,
/// ATOMIC WRITE).
pub fn opcode_info(opcode: u8) -> Option<OpcodeInfo> {
    use ExtHeader::*;
    use PayloadRule as P;
    if opcode == 0x81 {
        return Some(OpcodeInfo {
            direction: Direction::Neither,
            headers: &[CnpBody],
            xrc: false,
            payload: P::None,
        });
    }
    let transport = opcode >> 5;
    let (rc, uc, ud, xrc) = (transport == 0, transport == 1, transport == 3, transport == 5);
    if !(rc || uc || ud || xrc) {
        return None;
    }
    let operation = opcode & 0x1f;
    let (headers, payload): (&'static [ExtHeader], P) = match operation {
        0x00 | 0x01 => (&[], P::Mtu),
        0x02 => (&[], P::OneToMtu),
        0x03 => (&[ImmDt], P::OneToMtu),
        0x04 if ud => (&[Deth], P::ZeroToMtu),
        0x04 => (&[], P::ZeroToMtu),
        0x05 if ud => (&[Deth, ImmDt], P::ZeroToMtu),
        0x05 => (&[ImmDt], P::ZeroToMtu),
        0x06 => (&[Reth], P::Mtu),
        0x07 => (&[], P::Mtu),
        0x08 => (&[], P::OneToMtu),
        0x09 => (&[ImmDt], P::OneToMtu),
        0x0a => (&[Reth], P::ZeroToMtu),
        0x0b => (&[Reth, ImmDt], P::ZeroToMtu),
        0x0c => (&[Reth], P::None),
        0x0d => (&[Aeth], P::Mtu),
        0x0e => (&[], P::Mtu),
        0x0f => (&[Aeth], P::OneToMtu),
        0x10 => (&[Aeth], P::ZeroToMtu),
        0x11 => (&[Aeth], P::None),
        0x12 => (&[Aeth, AtomicAckEth], P::None),
        0x13 | 0x14 => (&[AtomicEth], P::None),
        0x16 => (&[Ieth], P::OneToMtu),
        0x17 => (&[Ieth], P::ZeroToMtu),
        _ => return None,
    };
    // UC has no READ, no ATOMIC, no ACK and no invalidation; UD only SEND_ONLY.
    if uc && operation > 0x0b || ud && !matches!(operation, 0x04 | 0x05) {
        return None;
    }
    let response = (0x0d..=0x12).contains(&operation);
    let direction = if response {
        Direction::Response
    } else {
        Direction::Request
    };
    Some(OpcodeInfo {
        direction,
        headers,
        xrc: xrc && !response,
        payload,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_transport_has_as_many_opcodes_as_the_table_shows() {
        let count = |t: u8| {
            (0..=255u8)
                .filter(|op| op >> 5 == t && opcode_info(*op).is_some())
                .count()
        };
        assert_eq!((0..8).map(count).collect::<Vec<_>>(), [23, 12, 0, 2, 1, 23, 0, 0]);
    }

    #[test]
    fn the_longest_headers_are_those_of_an_xrc_atomic() {
        assert_eq!((0..=255u8).filter_map(opcode_info).map(|i| i.ext_len()).max(), Some(32));
        assert_eq!(opcode_info(0x0b).map(|i| i.ext_len()), Some(20));
        assert_eq!(opcode_info(0x12).map(|i| i.ext_len()), Some(12));
        assert_eq!(opcode_info(0xab).map(|i| i.ext_len()), Some(24));
    }
}
