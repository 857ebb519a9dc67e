// SPDX-License-Identifier: Apache-2.0
//! Extended transport headers (IBTA volume 1, 9.3).

use super::opcode::{ExtHeader, OpcodeInfo};
use super::{Error, be24, be32, be64, head};

/// RDMA extended transport header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reth {
    /// Address at the responder.
    pub va: u64,
    /// Key of the region there.
    pub rkey: u32,
    /// Bytes of the message.
    pub dma_len: u32,
}

/// ACK extended transport header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Aeth {
    /// ACK with credits, RNR NAK with its timer, or NAK with its code.
    pub syndrome: u8,
    /// Messages completed, 24 bits.
    pub msn: u32,
}

/// Atomic extended transport header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AtomicEth {
    /// Address at the responder.
    pub va: u64,
    /// Key of the region there.
    pub rkey: u32,
    /// What to store or to add.
    pub swap_add: u64,
    /// What to compare with.
    pub compare: u64,
}

/// Datagram extended transport header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Deth {
    /// Queue key.
    pub qkey: u32,
    /// Reserved byte.
    pub reserved: u8,
    /// Sending QP, 24 bits.
    pub src_qpn: u32,
}

/// The extended headers of a packet: those that its opcode asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExtHeaders {
    /// Reserved byte and shared receive queue (24 bits) of extended RC.
    pub xrceth: Option<u32>,
    /// See [`Deth`].
    pub deth: Option<Deth>,
    /// See [`Reth`].
    pub reth: Option<Reth>,
    /// See [`AtomicEth`].
    pub atomic: Option<AtomicEth>,
    /// See [`Aeth`].
    pub aeth: Option<Aeth>,
    /// What the memory held before an atomic operation.
    pub atomic_ack: Option<u64>,
    /// Immediate data in the order of the wire.
    pub imm: Option<[u8; 4]>,
    /// Key to invalidate.
    pub ieth: Option<u32>,
    /// Reserved bytes of a congestion notification.
    pub cnp: Option<[u8; 16]>,
}

impl ExtHeaders {
    /// Takes the headers of an opcode from the front of `bytes`; returns them and what follows.
    ///
    /// # Errors
    /// When the bytes end within them.
    pub fn parse<'a>(info: &OpcodeInfo, bytes: &'a [u8]) -> Result<(Self, &'a [u8]), Error> {
        head("extended headers", bytes, info.ext_len())?;
        let mut ext = Self::default();
        let mut b = bytes;
        if info.xrc {
            ext.xrceth = Some(be32(b, 0));
            b = &b[4..];
        }
        for header in info.headers {
            match header {
                ExtHeader::Reth => {
                    ext.reth = Some(Reth {
                        va: be64(b, 0),
                        rkey: be32(b, 8),
                        dma_len: be32(b, 12),
                    })
                }
                ExtHeader::Aeth => {
                    ext.aeth = Some(Aeth {
                        syndrome: b[0],
                        msn: be24(b, 1),
                    })
                }
                ExtHeader::AtomicEth => {
                    ext.atomic = Some(AtomicEth {
                        va: be64(b, 0),
                        rkey: be32(b, 8),
                        swap_add: be64(b, 12),
                        compare: be64(b, 20),
                    });
                }
                ExtHeader::AtomicAckEth => ext.atomic_ack = Some(be64(b, 0)),
                ExtHeader::ImmDt => ext.imm = Some([b[0], b[1], b[2], b[3]]),
                ExtHeader::Ieth => ext.ieth = Some(be32(b, 0)),
                ExtHeader::Deth => {
                    ext.deth = Some(Deth {
                        qkey: be32(b, 0),
                        reserved: b[4],
                        src_qpn: be24(b, 5),
                    })
                }
                ExtHeader::XrcEth => ext.xrceth = Some(be32(b, 0)),
                ExtHeader::CnpBody => {
                    let mut body = [0; 16];
                    body.copy_from_slice(&b[..16]);
                    ext.cnp = Some(body);
                }
            }
            b = &b[header.bytes()..];
        }
        Ok((ext, b))
    }

    /// Appends the headers that are there, in the order of the wire.
    pub fn emit(&self, out: &mut Vec<u8>) {
        if let Some(x) = self.xrceth {
            out.extend(x.to_be_bytes());
        }
        if let Some(d) = self.deth {
            out.extend(d.qkey.to_be_bytes());
            out.push(d.reserved);
            out.extend(&d.src_qpn.to_be_bytes()[1..]);
        }
        if let Some(r) = self.reth {
            out.extend(r.va.to_be_bytes());
            out.extend(r.rkey.to_be_bytes());
            out.extend(r.dma_len.to_be_bytes());
        }
        if let Some(a) = self.atomic {
            out.extend(a.va.to_be_bytes());
            out.extend(a.rkey.to_be_bytes());
            out.extend(a.swap_add.to_be_bytes());
            out.extend(a.compare.to_be_bytes());
        }
        if let Some(a) = self.aeth {
            out.push(a.syndrome);
            out.extend(&a.msn.to_be_bytes()[1..]);
        }
        if let Some(a) = self.atomic_ack {
            out.extend(a.to_be_bytes());
        }
        if let Some(i) = self.imm {
            out.extend(i);
        }
        if let Some(k) = self.ieth {
            out.extend(k.to_be_bytes());
        }
        if let Some(c) = self.cnp {
            out.extend(c);
        }
    }

    /// The headers of an opcode, all fields zero.
    pub fn zeroed(info: &OpcodeInfo) -> Self {
        let zeros = [0; 64];
        Self::parse(info, &zeros).map(|(ext, _)| ext).unwrap_or_default()
    }
}
