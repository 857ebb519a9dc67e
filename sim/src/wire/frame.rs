// SPDX-License-Identifier: Apache-2.0
//! The little that the wire itself needs to know of a frame.

use openrnic_spec::{Bth, ROCE_UDP_PORT};

const ETHERTYPE_VLAN: u16 = 0x8100;
const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
const PROTOCOL_UDP: u8 = 17;

fn be16(frame: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*frame.get(at..)?.first_chunk()?))
}

/// Ethertype and offset of the network header, behind a VLAN tag if there is one.
fn network(frame: &[u8]) -> Option<(u16, usize)> {
    let ethertype = be16(frame, 12)?;
    if ethertype == ETHERTYPE_VLAN {
        Some((be16(frame, 16)?, 18))
    } else {
        Some((ethertype, 14))
    }
}

/// The base transport header of a RoCEv2 frame; `None` for other frames.
pub fn bth(frame: &[u8]) -> Option<Bth> {
    let (ethertype, ip) = network(frame)?;
    let udp = match ethertype {
        ETHERTYPE_IPV4 if *frame.get(ip + 9)? == PROTOCOL_UDP => ip + usize::from(*frame.get(ip)? & 0xf) * 4,
        ETHERTYPE_IPV6 if *frame.get(ip + 6)? == PROTOCOL_UDP => ip + 40,
        _ => return None,
    };
    if be16(frame, udp + 2)? != ROCE_UDP_PORT {
        return None;
    }
    Bth::from_bytes(frame.get(udp + 8..)?).ok()
}

/// The ECN field of an IP frame: 0 not capable, 1 and 2 capable, 3 congestion experienced.
pub fn ecn(frame: &[u8]) -> Option<u8> {
    match network(frame)? {
        (ETHERTYPE_IPV4, ip) => Some(frame.get(ip + 1)? & 3),
        (ETHERTYPE_IPV6, ip) => Some(frame.get(ip + 1)? >> 4 & 3),
        _ => None,
    }
}

/// Marks an IP frame as having met congestion (IPv4: with a new header checksum); false for other
/// frames. The invariant CRC does not cover the field.
pub fn mark_congestion(frame: &mut [u8]) -> bool {
    match network(frame) {
        Some((ETHERTYPE_IPV4, ip)) => {
            let Some(header) = frame.get_mut(ip..ip + 20) else {
                return false;
            };
            let old = u16::from_be_bytes([header[0], header[1]]);
            header[1] |= 3;
            let new = u16::from_be_bytes([header[0], header[1]]);
            // RFC 1624: the checksum follows the change of one word.
            let sum = u16::from_be_bytes([header[10], header[11]]);
            let mut folded = u32::from(!sum) + u32::from(!old) + u32::from(new);
            while folded > 0xffff {
                folded = (folded & 0xffff) + (folded >> 16);
            }
            header[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
            true
        }
        Some((ETHERTYPE_IPV6, ip)) => match frame.get_mut(ip + 1) {
            Some(byte) => {
                *byte |= 0x30;
                true
            }
            None => false,
        },
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An IPv4 RoCEv2 acknowledge without payload.
    pub(crate) fn ack() -> Vec<u8> {
        let mut f = vec![0u8; 14];
        f[12] = 8;
        let mut ip = vec![0x45, 0x02, 0, 48, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        let sum: u32 = ip.chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]]))).sum();
        let sum = !(((sum & 0xffff) + (sum >> 16)) as u16);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
        f.extend(ip);
        f.extend([0xc0, 0, 0x12, 0xb7, 0, 28, 0, 0]);
        f.extend([0x11, 0x40, 0xff, 0xff, 0, 0, 0, 7, 0, 0, 0, 9]);
        f.extend([0; 8]);
        f
    }

    #[test]
    fn the_transport_header_is_found_with_and_without_a_vlan_tag() {
        let frame = ack();
        assert_eq!(bth(&frame).unwrap().opcode(), 0x11);
        let mut tagged = frame.clone();
        tagged.splice(12..12, [0x81, 0x00, 0x00, 0x05]);
        assert_eq!(bth(&tagged).unwrap().psn(), 9);
        for cut in 0..frame.len() {
            let _ = (
                bth(&frame[..cut]),
                ecn(&frame[..cut]),
                mark_congestion(&mut frame[..cut].to_vec()),
            );
        }
        let mut other = frame.clone();
        other[36] = 0x13;
        assert_eq!(bth(&other), None);
    }

    #[test]
    fn a_congestion_mark_keeps_the_ipv4_checksum_right() {
        let mut frame = ack();
        assert_eq!(ecn(&frame), Some(2));
        assert!(mark_congestion(&mut frame));
        assert_eq!(ecn(&frame), Some(3));
        let sum: u32 = frame[14..34]
            .chunks(2)
            .map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])))
            .sum();
        assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
    }
}
