// SPDX-License-Identifier: Apache-2.0
//! The types of the generated tables.

use core::fmt;

use crate::{CmdFlag, CmdOpcode, ExtHeader, Opcode, QpAttrBit, Transport};

/// What follows from a BTH opcode alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpcodeInfo {
    /// The opcode.
    pub opcode: Opcode,
    /// Bits 7:5 of the opcode.
    pub transport: Transport,
    /// The operation.
    pub kind: OpKind,
    /// Request or response.
    pub dir: PacketDir,
    /// The packet's place in its message.
    pub pos: PacketPos,
    /// What follows the BTH, in this order.
    pub headers: &'static [ExtHeader],
    /// How long the payload may be.
    pub payload: PayloadRule,
    /// Bytes of extended headers.
    pub ext_len: usize,
    /// Sent by a requester.
    pub is_request: bool,
    /// Sent by a responder.
    pub is_response: bool,
    /// First packet of a message of several.
    pub first: bool,
    /// Neither first nor last packet.
    pub middle: bool,
    /// Last packet of a message of several.
    pub last: bool,
    /// A message of one packet, ACKs included.
    pub only: bool,
    /// SEND.
    pub is_send: bool,
    /// RDMA WRITE.
    pub is_write: bool,
    /// RDMA READ request.
    pub is_read_req: bool,
    /// RDMA READ response.
    pub is_read_resp: bool,
    /// ACKNOWLEDGE (ACK or NAK).
    pub is_ack: bool,
    /// COMPARE SWAP or FETCH ADD.
    pub is_atomic_req: bool,
    /// ATOMIC ACKNOWLEDGE.
    pub is_atomic_ack: bool,
    /// Congestion notification packet.
    pub is_cnp: bool,
    /// A RETH follows.
    pub has_reth: bool,
    /// An AETH follows.
    pub has_aeth: bool,
    /// An ImmDt follows.
    pub has_imm: bool,
    /// An IETH follows.
    pub has_ieth: bool,
    /// A DETH follows.
    pub has_deth: bool,
    /// An AtomicETH follows.
    pub has_atomiceth: bool,
    /// An AtomicAckETH follows.
    pub has_atomicack: bool,
    /// An XRCETH follows.
    pub has_xrceth: bool,
    /// The payload is exactly the path MTU.
    pub pay_full: bool,
    /// The payload is 1 byte to the path MTU.
    pub pay_min1: bool,
    /// There is no payload.
    pub pay_none: bool,
}

impl OpcodeInfo {
    /// The name as it stands in the specification.
    pub const fn name(&self) -> &'static str {
        self.opcode.name()
    }
}

/// The operation of an opcode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OpKind {
    /// SEND, with or without immediate or invalidate.
    Send,
    /// RDMA WRITE, with or without immediate.
    Write,
    /// RDMA READ request.
    ReadReq,
    /// RDMA READ response.
    ReadResp,
    /// ACKNOWLEDGE (ACK or NAK).
    Ack,
    /// COMPARE SWAP or FETCH ADD.
    AtomicReq,
    /// ATOMIC ACKNOWLEDGE.
    AtomicAck,
    /// Congestion notification.
    Cnp,
}

/// Who sends a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PacketDir {
    /// The requester.
    Request,
    /// The responder.
    Response,
    /// Neither: a congestion notification.
    None,
}

/// A packet's place in its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PacketPos {
    /// First of several.
    First,
    /// Neither first nor last.
    Middle,
    /// Last of several.
    Last,
    /// The message's only packet.
    Only,
    /// Not part of a message.
    None,
}

/// How long a payload may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PayloadRule {
    /// Exactly the path MTU.
    Mtu,
    /// 1 byte to the path MTU.
    OneToMtu,
    /// Up to the path MTU.
    ZeroToMtu,
    /// No payload.
    None,
}

impl PayloadRule {
    /// Whether a payload of `len` bytes, pad not counted, obeys the rule under a path MTU of `mtu` bytes.
    pub const fn allows(self, len: usize, mtu: usize) -> bool {
        match self {
            PayloadRule::Mtu => len == mtu,
            PayloadRule::OneToMtu => len >= 1 && len <= mtu,
            PayloadRule::ZeroToMtu => len <= mtu,
            PayloadRule::None => len == 0,
        }
    }
}

/// What a legal transition of a QP asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct QpEdge {
    /// Attributes that must be given, without STATE.
    pub required: QpAttrBit,
    /// Attributes that may be given: the required and the optional ones, and STATE.
    pub allowed: QpAttrBit,
}

/// What a command reads and returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Command {
    /// The command.
    pub opcode: CmdOpcode,
    /// Name of its structure.
    pub layout: &'static str,
    /// Flags that it knows.
    pub flags: CmdFlag,
    /// Fields that it reads, beside opcode, flags and tag.
    pub fields: &'static [&'static str],
    /// Bits that must be zero: those of no field it reads, and flags that it does not know.
    pub reserved: [u8; 64],
    /// What is special about it.
    pub doc: &'static str,
    /// What its completion carries beside tag, opcode and status.
    pub returns: &'static str,
}

/// A block of registers in BAR0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// Its name.
    pub name: &'static str,
    /// Byte offset in BAR0.
    pub base: u32,
    /// Type, bits 15:0 of the block's first word.
    pub block_type: u16,
    /// Version, bits 31:16 of the block's first word.
    pub version: u16,
    /// Byte offset of the next block, 0 for the last: the block's second word.
    pub next: u32,
    /// What it is for.
    pub doc: &'static str,
    /// Its registers.
    pub regs: &'static [Register],
}

/// A register in BAR0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Register {
    /// Its name within the block.
    pub name: &'static str,
    /// Byte offset in BAR0.
    pub offset: u32,
    /// 32 or 64 bits.
    pub width: u32,
    /// How it may be accessed.
    pub access: Access,
    /// What it is for.
    pub doc: &'static str,
}

/// How a register may be accessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// Reads only.
    ReadOnly,
    /// Writes only.
    WriteOnly,
    /// Both.
    ReadWrite,
}

/// A bound that a bench holds the design to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Budget {
    /// Its name.
    pub name: &'static str,
    /// The bound.
    pub value: f64,
    /// Unit of the bound.
    pub unit: &'static str,
    /// Which side of the bound is good.
    pub comparison: Comparison,
    /// What is measured, and how.
    pub measured: &'static str,
    /// The design does not have to keep to it yet: a miss is told and is no failure.
    pub later: bool,
}

impl Budget {
    /// Whether a measured value keeps to the budget. A value that is no number does not.
    pub fn holds(&self, measured: f64) -> bool {
        match self.comparison {
            Comparison::AtMost => measured <= self.value,
            Comparison::AtLeast => measured >= self.value,
        }
    }
}

/// Which side of a bound is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// The measured value is at most the bound.
    AtMost,
    /// The measured value is at least the bound.
    AtLeast,
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Comparison::AtMost => "<=",
            Comparison::AtLeast => ">=",
        })
    }
}

/// Names of the flags set, unknown bits as a number, `0` for none.
pub(crate) fn write_flags(
    f: &mut fmt::Formatter<'_>,
    bits: u32,
    names: impl Iterator<Item = (u32, &'static str)>,
) -> fmt::Result {
    let mut left = bits;
    let mut separator = "";
    for (flag, name) in names {
        if bits & flag != 0 {
            write!(f, "{separator}{name}")?;
            separator = " | ";
            left &= !flag;
        }
    }
    match left {
        0 if separator.is_empty() => f.write_str("0"),
        0 => Ok(()),
        unknown => write!(f, "{separator}{unknown:#x}"),
    }
}
