// SPDX-License-Identifier: Apache-2.0
//! Frames for the receiver.

use std::net::Ipv4Addr;

use openrnic_sim::rng::Stream;

use super::Port;
use crate::wire::{
    Aeth, AtomicEth, Bth, Deth, ETHERTYPE_IPV4, Ethernet, ExtHeader, ExtHeaders, Ip, Ipv4, OpcodeInfo, PayloadRule,
    ROCE_PORT, Reth, Roce, Udp, opcode_info,
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
            dst: Ipv4Addr::new(192, 168, 77, 1),
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

/// The opcodes that there are.
pub fn opcodes() -> Vec<u8> {
    (0..=255).filter(|op| opcode_info(*op).is_some()).collect()
}

/// A right frame to this port with a random opcode, random fields, payload, tag and Ethernet padding.
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
    let gids: Vec<Ipv4Addr> = port.gids.iter().flatten().copied().collect();
    if let Ip::V4(ip) = &mut roce.ip {
        ip.tos = rng.bits() as u8;
        ip.id = rng.bits() as u16;
        ip.fragment = (rng.bits() as u16) & 0xc000;
        ip.ttl = 1 + rng.below(255) as u8;
        ip.src = Ipv4Addr::from(rng.bits() as u32);
        ip.dst = gids[rng.below(gids.len() as u64) as usize];
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
