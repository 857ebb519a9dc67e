// SPDX-License-Identifier: Apache-2.0
//! Frames for the receiver.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use openrnic_sim::rng::Stream;

use super::{OUR_IPV4, OUR_IPV6, Port};
use crate::wire::{
    Aeth, AtomicEth, Bth, Deth, ETHERTYPE_IPV4, ETHERTYPE_IPV6, Ethernet, ExtHeader, ExtHeaders, Ip, Ipv4, Ipv6,
    OpcodeInfo, PayloadRule, ROCE_PORT, Reth, Roce, Udp, opcode_info,
};

/// A right frame to this port: a peer's packet with plain fields.
///
/// # Panics
/// When the opcode is unknown.
pub fn plain(port: &Port, opcode: u8, payload: &[u8]) -> Roce {
    let info = opcode_info(opcode).expect("a known opcode");
    Roce {
        eth: Ethernet {
            dst: port.mac,
            src: [2, 0, 0, 0, 0, 2],
            tag: None,
            ethertype: ETHERTYPE_IPV4,
        },
        ip: Ip::V4(Ipv4 {
            tos: 2,
            total_len: 0,
            id: 0x1234,
            fragment: 0x4000,
            ttl: 64,
            protocol: 17,
            checksum: 0,
            src: Ipv4Addr::new(192, 168, 77, 2),
            dst: OUR_IPV4,
        }),
        udp: Udp {
            src_port: 0xc123,
            dst_port: ROCE_PORT,
            length: 0,
            checksum: 0,
        },
        bth: Bth {
            opcode,
            pkey: 0xffff,
            dest_qpn: 0x12_3456,
            ack_req: true,
            psn: 0xab_cdef,
            ..Bth::default()
        },
        ext: ExtHeaders::zeroed(&info),
        payload: payload.to_vec(),
        pad: Vec::new(),
        icrc: 0,
        trailer: Vec::new(),
    }
    .finish()
}

/// The same packet over IPv6, to entry 7 of the default port's GID table.
pub fn over_ipv6(mut roce: Roce) -> Roce {
    roce.eth.ethertype = ETHERTYPE_IPV6;
    roce.ip = Ip::V6(Ipv6 {
        traffic_class: 2,
        flow_label: 0x9_1234,
        payload_len: 0,
        next_header: 17,
        hop_limit: 64,
        src: Ipv6Addr::new(0xfd77, 0x8765, 0x4321, 0xfedc, 0xba98, 0x7654, 0x3210, 0x0123),
        dst: OUR_IPV6,
    });
    roce.finish()
}

/// As [`plain`], over IPv6.
pub fn plain_ipv6(port: &Port, opcode: u8, payload: &[u8]) -> Roce {
    over_ipv6(plain(port, opcode, payload))
}

/// The opcodes that there are.
pub fn opcodes() -> Vec<u8> {
    (0..=255).filter(|op| opcode_info(*op).is_some()).collect()
}

/// A right frame to an address of this port with a random opcode, random fields, payload, tag and Ethernet padding.
pub fn random(port: &Port, rng: &mut Stream, max_payload: u64) -> Roce {
    let all = opcodes();
    let opcode = all[rng.below(all.len() as u64) as usize];
    random_of(port, rng, opcode, max_payload)
}

/// As [`random`], of one opcode.
///
/// # Panics
/// When the opcode is unknown.
pub fn random_of(port: &Port, rng: &mut Stream, opcode: u8, max_payload: u64) -> Roce {
    let info = opcode_info(opcode).expect("a known opcode");
    // Short ones often, and the longest.
    let len = match info.payload {
        PayloadRule::None => 0,
        rule => {
            let least = u64::from(rule != PayloadRule::ZeroToMtu);
            match rng.below(4) {
                0 => least + rng.below(16),
                1 => max_payload,
                _ => least + rng.below(max_payload),
            }
            .min(max_payload)
        }
    };
    let payload: Vec<u8> = (0..len).map(|_| rng.bits() as u8).collect();
    let mut roce = plain(port, opcode, &payload);
    let gids: Vec<IpAddr> = port.gids.iter().flatten().copied().collect();
    match gids[rng.below(gids.len() as u64) as usize] {
        IpAddr::V4(dst) => {
            roce.ip = Ip::V4(Ipv4 {
                tos: rng.bits() as u8,
                total_len: 0,
                id: rng.bits() as u16,
                fragment: (rng.bits() as u16) & 0xc000,
                ttl: 1 + rng.below(255) as u8,
                protocol: 17,
                checksum: 0,
                src: Ipv4Addr::from(rng.bits() as u32),
                dst,
            });
        }
        IpAddr::V6(dst) => {
            roce.eth.ethertype = ETHERTYPE_IPV6;
            roce.ip = Ip::V6(Ipv6 {
                traffic_class: rng.bits() as u8,
                flow_label: rng.bits() as u32 & 0xf_ffff,
                payload_len: 0,
                next_header: 17,
                hop_limit: rng.bits() as u8,
                src: Ipv6Addr::from(u128::from(rng.bits()) << 64 | u128::from(rng.bits())),
                dst,
            });
        }
    }
    roce.eth.tag = rng.chance(0.3).then(|| rng.bits() as u16);
    roce.udp.src_port = rng.bits() as u16;
    roce.udp.checksum = rng.bits() as u16;
    roce.bth = Bth {
        opcode,
        solicited: rng.chance(0.5),
        mig_req: rng.chance(0.5),
        pkey: rng.bits() as u16,
        congestion: rng.bits() as u8,
        dest_qpn: rng.bits() as u32 & 0xff_ffff,
        ack_req: rng.chance(0.5),
        ack_reserved: rng.bits() as u8 & 0x7f,
        psn: rng.bits() as u32 & 0xff_ffff,
        ..Bth::default()
    };
    roce.ext = random_ext(&info, rng);
    let mut roce = roce.finish();
    if rng.chance(0.3) {
        roce.trailer = (0..rng.below(100)).map(|_| rng.bits() as u8).collect();
    }
    roce
}

fn random_ext(info: &OpcodeInfo, rng: &mut Stream) -> ExtHeaders {
    let mut ext = ExtHeaders {
        xrceth: info.xrc.then(|| rng.bits() as u32),
        ..ExtHeaders::default()
    };
    for header in info.headers {
        match header {
            ExtHeader::Reth => {
                ext.reth = Some(Reth {
                    va: rng.bits(),
                    rkey: rng.bits() as u32,
                    dma_len: rng.bits() as u32,
                });
            }
            ExtHeader::Aeth => {
                ext.aeth = Some(Aeth {
                    syndrome: rng.bits() as u8,
                    msn: rng.bits() as u32 & 0xff_ffff,
                })
            }
            ExtHeader::AtomicEth => {
                ext.atomic = Some(AtomicEth {
                    va: rng.bits(),
                    rkey: rng.bits() as u32,
                    swap_add: rng.bits(),
                    compare: rng.bits(),
                });
            }
            ExtHeader::AtomicAckEth => ext.atomic_ack = Some(rng.bits()),
            ExtHeader::ImmDt => ext.imm = Some((rng.bits() as u32).to_be_bytes()),
            ExtHeader::Ieth => ext.ieth = Some(rng.bits() as u32),
            ExtHeader::Deth => {
                ext.deth = Some(Deth {
                    qkey: rng.bits() as u32,
                    reserved: 0,
                    src_qpn: rng.bits() as u32 & 0xff_ffff,
                });
            }
            ExtHeader::XrcEth => {}
            ExtHeader::CnpBody => ext.cnp = Some([0; 16]),
        }
    }
    ext
}
