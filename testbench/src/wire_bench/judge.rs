// SPDX-License-Identifier: Apache-2.0
//! What the receiver must make of a frame: the rules in their order, on the bytes, without regard to how
//! the RTL works.

use super::{Port, gid_of, sgid_fields};
use crate::wire::{Direction, ExtHeader, PayloadRule, icrc, opcode_info};

/// Counters of the receive side, by their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Counter {
    RxFrames = 0,
    TxFrames = 1,
    DropMacErr = 4,
    DropDmac = 5,
    DropNotRoce = 6,
    DropIpHdr = 7,
    DropLength = 8,
    DropOpcode = 9,
    DropTver = 10,
    DropIcrc = 11,
    DropOverflow = 12,
    DropDip = 19,
    RxRequests = 20,
    RxResponses = 21,
    TxRequests = 25,
    TxAcks = 26,
    TxReadResponses = 27,
    TxRnrNaks = 28,
    TxNakPsnSeq = 29,
    TxNakInvReq = 30,
    TxNakRemAccess = 31,
    TxNakRemOp = 32,
}

/// A packet that passed: fields of its descriptor and its payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// 0 a request, 1 a response.
    pub class: usize,
    /// Fields that the descriptor must show; those of headers that the packet does not have are open.
    pub fields: Vec<(&'static str, u64)>,
    /// The payload.
    pub payload: Vec<u8>,
}

/// What becomes of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Refused, and counted here.
    Drop(Counter),
    /// Passed on.
    Take(Box<Taken>),
    /// A congestion notification: taken, and nothing follows.
    Ignore,
}

/// Judges a frame. Bytes that it lacks count as zero.
pub fn judge(port: &Port, frame: &[u8], mac_err: bool) -> Verdict {
    let at = |i: usize| frame.get(i).copied().unwrap_or(0);
    let number = |start: usize, n: usize| (start..start + n).fold(0u64, |v, i| v << 8 | u64::from(at(i)));
    if mac_err {
        return Verdict::Drop(Counter::DropMacErr);
    }
    if (0..6).any(|i| at(i) != port.mac[i]) {
        return Verdict::Drop(Counter::DropDmac);
    }
    let tagged = number(12, 2) == 0x8100;
    let ip = if tagged { 18 } else { 14 };
    let ethertype = number(ip - 2, 2);
    let v6 = ethertype == 0x86dd;
    let ip_len = if v6 { 40 } else { 20 };
    let udp = ip + ip_len;
    let bth = udp + 8;
    let there = frame.len().saturating_sub(ip);

    let odd_shape = if v6 {
        at(ip) >> 4 != 6
    } else {
        at(ip) != 0x45 || number(ip + 6, 2) & 0x3fff != 0
    };
    let protocol = at(if v6 { ip + 6 } else { ip + 9 });
    if !v6 && ethertype != 0x0800 || protocol != 17 || !odd_shape && number(udp + 2, 2) != 4791 {
        return Verdict::Drop(Counter::DropNotRoce);
    }
    let sum: u64 = (0..10).map(|i| number(ip + 2 * i, 2)).sum();
    if odd_shape || !v6 && (at(ip + 8) == 0 || (sum & 0xffff) + (sum >> 16) != 0xffff) {
        return Verdict::Drop(Counter::DropIpHdr);
    }

    let total = if v6 {
        40 + number(ip + 4, 2) as usize
    } else {
        number(ip + 2, 2) as usize
    };
    let opcode = at(bth);
    let info = opcode_info(opcode);
    let headers = ip_len + 20 + info.map_or(0, |i| i.ext_len());
    let pad = usize::from(at(bth + 1) >> 4 & 3);
    let body = total.checked_sub(headers + 4);
    let payload = body.and_then(|b| b.checked_sub(pad));
    let rule_broken = |payload: usize| match info.map(|i| i.payload) {
        Some(PayloadRule::None) => body != Some(0),
        Some(PayloadRule::Mtu | PayloadRule::OneToMtu) => payload == 0,
        Some(PayloadRule::ZeroToMtu) | None => false,
    };
    let payload = match payload {
        Some(p)
            if total <= there
                && number(udp + 4, 2) as usize + ip_len == total
                && total.is_multiple_of(4)
                && p <= 4096
                && !rule_broken(p) =>
        {
            p
        }
        _ => return Verdict::Drop(Counter::DropLength),
    };
    let Some(info) = info else {
        return Verdict::Drop(Counter::DropOpcode);
    };
    if at(bth + 1) & 0xf != 0 {
        return Verdict::Drop(Counter::DropTver);
    }
    let end = ip + total - 4;
    if icrc::fast(&frame[ip..end]).to_le_bytes() != frame[end..end + 4] {
        return Verdict::Drop(Counter::DropIcrc);
    }
    let (sgid, dgid) = if v6 {
        let address = |start: usize| std::array::from_fn(|i| at(start + i));
        (address(ip + 8), address(ip + 24))
    } else {
        let address = |start: usize| gid_of([at(start), at(start + 1), at(start + 2), at(start + 3)].into());
        (address(ip + 12), address(ip + 16))
    };
    // An IPv4-mapped GID is no address of IPv6.
    let hit = (port.gids.iter().enumerate())
        .filter(|(_, g)| g.is_some_and(|g| g.is_ipv6() == v6 && gid_of(g) == dgid))
        .fold(0, |hit, (i, _)| hit | 1 << i);
    if hit == 0 {
        return Verdict::Drop(Counter::DropDip);
    }
    let class = match info.direction {
        Direction::Neither => return Verdict::Ignore,
        Direction::Request => 0,
        Direction::Response => 1,
    };

    let mut fields = vec![
        ("opcode", u64::from(opcode)),
        ("se", number(bth + 1, 1) >> 7),
        ("ack_req", number(bth + 8, 1) >> 7),
        ("pad", pad as u64),
        ("pkey", number(bth + 2, 2)),
        ("dest_qpn", number(bth + 5, 3)),
        ("psn", number(bth + 9, 3)),
        ("ecn", u64::from(if v6 { at(ip + 1) >> 4 } else { at(ip + 1) } & 3)),
        ("gid_hit", hit),
        ("payload_len", payload as u64),
    ];
    fields.extend(sgid_fields(&sgid));
    let mut e = bth + 12;
    // Headers behind an XRCETH are not taken apart.
    for header in info.headers.iter().filter(|_| !info.xrc) {
        match header {
            ExtHeader::Reth => {
                fields.extend([
                    ("va", number(e, 8)),
                    ("rkey", number(e + 8, 4)),
                    ("dma_len", number(e + 12, 4)),
                ]);
            }
            ExtHeader::Aeth => fields.extend([("syndrome", number(e, 1)), ("msn", number(e + 1, 3))]),
            ExtHeader::AtomicEth => fields.extend([
                ("va", number(e, 8)),
                ("rkey", number(e + 8, 4)),
                ("swap_add", number(e + 12, 8)),
                ("compare", number(e + 20, 8)),
            ]),
            ExtHeader::AtomicAckEth => fields.push(("swap_add", number(e, 8))),
            // The first byte on the wire is the lowest.
            ExtHeader::ImmDt => fields.push(("imm", number(e, 4).swap_bytes() >> 32)),
            ExtHeader::Ieth => fields.push(("rkey", number(e, 4))),
            ExtHeader::Deth => fields.extend([("qkey", number(e, 4)), ("src_qpn", number(e + 5, 3))]),
            ExtHeader::XrcEth | ExtHeader::CnpBody => {}
        }
        e += header.bytes();
    }
    let start = ip + headers;
    Verdict::Take(Box::new(Taken {
        class,
        fields,
        payload: frame[start..start + payload].to_vec(),
    }))
}
