// SPDX-License-Identifier: Apache-2.0
//! RoCEv2 frames, written from the standards alone: nothing here comes from `spec/`, so that a mistake
//! there does not hide itself.
//!
//! Two levels, as in smoltcp: a `Packet` looks at bytes in place, a `Repr` is the value that they mean.
//! Every `Repr` holds all bits of its header, reserved ones too: what was parsed is emitted identically.
//! [`Frame`] puts them together; [`capture`] reads files of them; [`icrc`] computes the check twice, once
//! quickly and once bit by bit.
//!
//! Left out: IPv4 options and IPv6 extension headers (such a frame stays opaque), the reliable datagram
//! transport, UDP checksums.

mod bth;
pub mod capture;
mod ethernet;
mod ext;
mod frame;
pub mod icrc;
mod ip;
mod opcode;
mod udp;

pub use bth::{BTH_LEN, Packet as BthPacket, Repr as Bth};
pub use ethernet::{ETHERTYPE_IPV4, ETHERTYPE_IPV6, ETHERTYPE_VLAN, Mac, Packet as EthernetPacket, Repr as Ethernet};
pub use ext::{Aeth, AtomicEth, Deth, ExtHeaders, Reth};
pub use frame::{Frame, Roce};
pub use ip::{IPV4_LEN, IPV6_LEN, Ip, Ipv4, Ipv4Packet, Ipv6, Ipv6Packet};
pub use opcode::{Direction, ExtHeader, OpcodeInfo, PayloadRule, opcode_info};
pub use udp::{Packet as UdpPacket, ROCE_PORT, Repr as Udp, UDP_LEN, source_port};

/// Why bytes are no header of their kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The bytes end before the header does.
    #[error("{what} needs {need} bytes, {have} are there")]
    Short {
        /// The header.
        what: &'static str,
        /// Its bytes.
        need: usize,
        /// The bytes there are.
        have: usize,
    },
    /// It is something else than what this library takes apart.
    #[error("not {0}")]
    NotA(&'static str),
}

/// The first `need` bytes, or why not.
fn head<'a>(what: &'static str, bytes: &'a [u8], need: usize) -> Result<&'a [u8], Error> {
    bytes.get(..need).ok_or(Error::Short {
        what,
        need,
        have: bytes.len(),
    })
}

fn be16(b: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([b[at], b[at + 1]])
}

fn be24(b: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([0, b[at], b[at + 1], b[at + 2]])
}

fn be32(b: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]])
}

fn be64(b: &[u8], at: usize) -> u64 {
    u64::from(be32(b, at)) << 32 | u64::from(be32(b, at + 4))
}
