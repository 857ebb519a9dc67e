// SPDX-License-Identifier: Apache-2.0
//! What the OpenRNIC hardware, its driver and its testbench must agree on: structures in host
//! memory, wire headers, opcodes, codes, registers, the QP transition table and the budgets.
//!
//! Everything but the small helpers here is generated from `spec/*.toml`, from which the RTL package
//! is generated too.
//!
//! - **Structures in memory** ([`CmdQp`], [`SqWqe`], [`Cqe`], ...) and **wire headers** ([`Bth`],
//!   [`Reth`], ...) are byte arrays with accessors. `x()` reads a field, `set_x(v)` writes it,
//!   `with_x(v)` returns a changed copy. Fields of one bit are `bool`; 48-bit and 128-bit fields (MAC
//!   addresses, GIDs) are byte arrays in memory or wire order. A field that the specification calls
//!   `with_x` is `has_x` here, a name that is a keyword somewhere ends with `_` ([`Eqe::event_`]). Bits that do not belong to a field are
//!   left alone by the setters, so that a reserved bit can be set through the public array on purpose.
//! - A value that does not fit its field is a mistake of the caller: it panics in debug builds and is
//!   cut to the field otherwise.
//! - **Enumerations** convert from `u8` with [`TryFrom`], and to it with `as` or [`From`].
#![deny(missing_docs)]
#![forbid(unsafe_code)]

#[macro_use]
mod macros;
pub mod bits;
#[rustfmt::skip]
mod generated;
mod tables;

pub use generated::*;
pub use tables::{
    Access as RegAccess, Block, Budget, Command, Comparison, OpKind, OpcodeInfo, PacketDir, PacketPos, PayloadRule,
    QpEdge, Register,
};

/// A number that no value of an enumeration has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{value:#04x} is no {name}")]
pub struct UnknownValue {
    /// The enumeration.
    pub name: &'static str,
    /// The number.
    pub value: u8,
}

/// Fewer bytes than a structure or header has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{name} takes {needed} bytes, only {got} are there")]
pub struct TooShort {
    /// The structure or header.
    pub name: &'static str,
    /// Its size in bytes.
    pub needed: usize,
    /// Bytes that were there.
    pub got: usize,
}

/// The properties of a BTH opcode; `None` for one that this device does not know.
pub fn opcode_info(opcode: u8) -> Option<&'static OpcodeInfo> {
    Opcode::try_from(opcode).ok().map(Opcode::info)
}

/// What a command reads and returns; `None` when the specification does not say.
pub fn command(opcode: CmdOpcode) -> Option<&'static Command> {
    COMMANDS.iter().find(|c| c.opcode == opcode)
}

/// Shortest time a requester waits after an RNR NAK, in nanoseconds; the low five bits of `code` count.
pub fn rnr_timer_ns(code: u8) -> u32 {
    RNR_TIMER_NS[usize::from(code & 31)]
}

/// The budget of that name.
pub fn budget(name: &str) -> Option<&'static Budget> {
    BUDGETS.iter().find(|b| b.name == name)
}
