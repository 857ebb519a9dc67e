// SPDX-License-Identifier: Apache-2.0
//! RoCEv2 frames for injection: good ones, and wrong in one way.

use openrnic_driver::Gid;
use openrnic_spec::{Bth, ETHERTYPE_IPV4, ETHERTYPE_IPV6, ExtHeader, ROCE_UDP_PORT, opcode_info};

/// What a frame shall be.
#[derive(Debug, Clone)]
pub struct FrameSpec {
    /// Destination MAC address.
    pub dmac: [u8; 6],
    /// Source MAC address.
    pub smac: [u8; 6],
    /// Source address.
    pub sip: Gid,
    /// Destination address: when it is IPv4-mapped, the frame is IPv4, else IPv6.
    pub dip: Gid,
    /// Destination UDP port.
    pub udp_port: u16,
    /// BTH opcode.
    pub opcode: u8,
    /// Transport version.
    pub tver: u8,
    /// P_Key.
    pub pkey: u16,
    /// Destination QPN.
    pub qpn: u32,
    /// PSN.
    pub psn: u32,
    /// Payload without pad.
    pub payload: Vec<u8>,
    /// Flip a bit of the ICRC.
    pub bad_icrc: bool,
    /// Flip a bit of the IPv4 header checksum (IPv6 has none).
    pub bad_checksum: bool,
}

impl Default for FrameSpec {
    fn default() -> Self {
        Self {
            dmac: [0; 6],
            smac: [0; 6],
            sip: Gid::from_ipv4([0; 4]),
            dip: Gid::from_ipv4([0; 4]),
            udp_port: ROCE_UDP_PORT,
            opcode: 4,
            tver: 0,
            pkey: 0xffff,
            qpn: 0,
            psn: 0,
            payload: Vec::new(),
            bad_icrc: false,
            bad_checksum: false,
        }
    }
}

const ETHERNET: usize = 14;
const IPV4: usize = 20;
const IPV6: usize = 40;
const UDP: usize = 8;

/// The frame without check sequence.
pub fn build(spec: &FrameSpec) -> Vec<u8> {
    let info = opcode_info(spec.opcode);
    let extended: usize = info.map_or(0, |i| i.headers.iter().map(|h| ExtHeader::bytes(*h)).sum());
    let pad = (4 - spec.payload.len() % 4) % 4;
    let transport = Bth::BYTES + extended + spec.payload.len() + pad + 4;

    let mut f = Vec::with_capacity(ETHERNET + IPV6 + UDP + transport);
    f.extend(spec.dmac);
    f.extend(spec.smac);
    if let Some(dip) = spec.dip.ipv4() {
        f.extend(ETHERTYPE_IPV4.to_be_bytes());
        let mut ip = [0u8; IPV4];
        ip[0] = 0x45;
        ip[2..4].copy_from_slice(&((IPV4 + UDP + transport) as u16).to_be_bytes());
        ip[6] = 0x40;
        ip[8] = 64;
        ip[9] = 17;
        // Of another address the last bytes.
        let [.., a, b, c, d] = spec.sip.0;
        ip[12..16].copy_from_slice(&[a, b, c, d]);
        ip[16..20].copy_from_slice(&dip);
        let mut sum = checksum(&ip);
        if spec.bad_checksum {
            sum ^= 1;
        }
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
        f.extend(ip);
    } else {
        f.extend(ETHERTYPE_IPV6.to_be_bytes());
        f.extend([0x60, 0, 0, 0]);
        f.extend(((UDP + transport) as u16).to_be_bytes());
        f.extend([17, 64]);
        f.extend(spec.sip.0);
        f.extend(spec.dip.0);
    }

    f.extend(0xc000u16.to_be_bytes());
    f.extend(spec.udp_port.to_be_bytes());
    f.extend(((UDP + transport) as u16).to_be_bytes());
    f.extend([0, 0]);

    let bth = Bth::new()
        .with_opcode(spec.opcode)
        .with_mig_req(true)
        .with_pad_cnt(pad as u8)
        .with_tver(spec.tver & 0xf)
        .with_pkey(spec.pkey)
        .with_dest_qp(spec.qpn & 0xff_ffff)
        .with_psn(spec.psn & 0xff_ffff);
    f.extend(bth.as_bytes());
    f.resize(f.len() + extended, 0);
    f.extend(&spec.payload);
    f.resize(f.len() + pad, 0);
    let mut icrc = icrc(&f);
    if spec.bad_icrc {
        icrc ^= 1;
    }
    f.extend(icrc.to_le_bytes());
    f
}

fn checksum(header: &[u8]) -> u16 {
    let sum: u32 = header
        .chunks(2)
        .map(|w| w.iter().fold(0, |v, b| v << 8 | u32::from(*b)))
        .sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    !((sum & 0xffff) + (sum >> 16)) as u16
}

/// The invariant CRC of a frame that lacks only it: fields that routers change count as ones.
fn icrc(frame: &[u8]) -> u32 {
    let mut hash = crc32fast::Hasher::new();
    hash.update(&[0xff; 8]);
    let mut covered = frame.get(ETHERNET..).unwrap_or(&[]).to_vec();
    let (version, ip) = match covered.first().map(|b| b >> 4) {
        Some(6) => (vec![1, 2, 3, 7], IPV6),
        _ => (vec![1, 8, 10, 11], IPV4),
    };
    if let (IPV6, Some(byte)) = (ip, covered.first_mut()) {
        *byte |= 0x0f;
    }
    for at in version.into_iter().chain([ip + 6, ip + 7, ip + UDP + 4]) {
        if let Some(byte) = covered.get_mut(at) {
            *byte = 0xff;
        }
    }
    hash.update(&covered);
    hash.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_and_padding_agree() {
        let f = build(&FrameSpec {
            payload: vec![7; 5],
            ..FrameSpec::default()
        });
        assert_eq!(f.len(), 14 + IPV4 + 8 + 12 + 8 + 4);
        assert_eq!(u16::from_be_bytes([f[16], f[17]]) as usize, f.len() - 14);
        assert_eq!(u16::from_be_bytes([f[38], f[39]]) as usize, f.len() - 34);
        assert_eq!(f[43] >> 4 & 3, 3, "pad count");
        assert_eq!(checksum(&f[14..34]), 0);
    }

    #[test]
    fn to_an_ipv6_address_goes_an_ipv6_packet() {
        let gid = |last| Gid(std::net::Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, last).octets());
        let f = build(&FrameSpec {
            sip: gid(1),
            dip: gid(2),
            payload: vec![7; 5],
            ..FrameSpec::default()
        });
        let roce = openrnic_testbench::wire::Roce::parse(&f).unwrap();
        assert!(roce.icrc_ok());
        assert_eq!(roce.clone().finish().emit(), f, "lengths and pad are right");
        let openrnic_testbench::wire::Ip::V6(ip) = roce.ip else {
            panic!("{roce:?}")
        };
        assert_eq!((ip.src.octets(), ip.dst.octets()), (gid(1).0, gid(2).0));
    }

    #[test]
    fn the_icrc_is_that_of_a_known_packet() {
        let text = "45020034123440004011a52fc0a80101c0a80102c12312b700206a820440ffff000000118012345668656c6c6f212121";
        let mut f = vec![0; ETHERNET];
        f.extend(
            (0..text.len())
                .step_by(2)
                .map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()),
        );
        assert_eq!(icrc(&f).to_le_bytes(), [0xae, 0x78, 0x71, 0xb6]);
    }

    #[test]
    fn what_routers_change_is_not_covered() {
        let f = build(&FrameSpec {
            payload: vec![1, 2, 3, 4],
            ..FrameSpec::default()
        });
        let body = f.len() - 4;
        let mut g = f.clone();
        for at in [14 + 1, 14 + 8, 14 + 10, 14 + 11, 34 + 6, 42 + 4] {
            g[at] ^= 0x5a;
        }
        assert_eq!(icrc(&g[..body]), icrc(&f[..body]));
        g[55] ^= 1;
        assert_ne!(icrc(&g[..body]), icrc(&f[..body]));
    }
}
