// SPDX-License-Identifier: Apache-2.0
//! The invariant CRC (IBTA volume 1, 7.8.1; annex A17.3.3): CRC-32 over eight bytes of ones that stand for
//! the LRH, and the packet from its IP header on, with the fields that change on the way as ones.

use super::ip::{IPV4_LEN, IPV6_LEN};

/// The packet (IP header to pad) with ones where routers may write.
///
/// # Panics
/// When the packet is shorter than its headers up to the BTH.
fn masked(packet: &[u8]) -> Vec<u8> {
    let mut b = packet.to_vec();
    let ip_len = if b[0] >> 4 == 6 {
        b[0] |= 0x0f; // traffic class and flow label
        b[1..4].fill(0xff);
        b[7] = 0xff; // hop limit
        IPV6_LEN
    } else {
        b[1] = 0xff; // DSCP and ECN
        b[8] = 0xff; // TTL
        b[10..12].fill(0xff); // header checksum
        IPV4_LEN
    };
    b[ip_len + 6..ip_len + 8].fill(0xff); // UDP checksum
    b[ip_len + 8 + 4] = 0xff; // FECN, BECN and the reserved bits of the BTH
    b
}

/// By crc32fast. The four bytes to append are those of the result, least significant first.
///
/// # Panics
/// When the packet is shorter than its headers up to the BTH.
pub fn fast(packet: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&[0xff; 8]);
    crc.update(&masked(packet));
    crc.finalize()
}

/// The oracle of [`fast`]: another library, bit by bit.
///
/// # Panics
/// As [`fast`].
pub fn slow(packet: &[u8]) -> u32 {
    let crc = crc::Crc::<u32, crc::NoTable>::new(&crc::CRC_32_ISO_HDLC);
    let mut digest = crc.digest();
    digest.update(&[0xff; 8]);
    digest.update(&masked(packet));
    digest.finalize()
}
