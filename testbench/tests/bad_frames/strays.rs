// SPDX-License-Identifier: Apache-2.0
//! Frames that nobody sent: malformed, misdirected and untimely ones, each with what it does to the counters.

use super::*;

/// Rows of frames: what each is, and the counter of its reason.
macro_rules! rows {
    ($($what:literal: $frame:expr => $id:ident;)*) => { vec![$(($what, $frame, CounterId::$id)),*] };
}

/// A frame that nobody sent.
pub(super) struct Bad {
    pub(super) what: &'static str,
    /// Which end gets it.
    pub(super) to: usize,
    pub(super) frame: Vec<u8>,
    pub(super) mac_error: bool,
    /// Everything that it does to the counters of that end, but RX_FRAMES and RX_BYTES.
    pub(super) counts: Vec<CounterId>,
    /// Likewise at the other end, when it is answered.
    pub(super) other: Vec<CounterId>,
}

/// What the receiver refuses before it looks at a queue pair.
pub(super) fn malformed(good: &Roce, to: usize) -> Vec<Bad> {
    let bytes = good.emit();
    let cut = |n: usize| bytes[..n].to_vec();
    let raw = |change: fn(&mut Vec<u8>)| {
        let mut b = bytes.clone();
        change(&mut b);
        b
    };
    let options = {
        let mut b = with_ip(good, |ip| ip.total_len += 4).emit();
        b.splice(34..34, [1, 1, 1, 0]);
        b[14] = 0x46;
        b
    };
    let resp = opcode_info(good.bth.opcode).unwrap().headers.len() == 1 && good.ext.aeth.is_some();
    let mut list = rows! {
        "another MAC": with(good, |r| r.eth.dst[5] ^= 0x40).emit() => RxDropDmac;
        "broadcast": with(good, |r| r.eth.dst = [0xff; 6]).emit() => RxDropDmac;
        "ARP": with(good, |r| r.eth.ethertype = 0x0806).emit() => RxDropNotRoce;
        "TCP": with_ip(good, |ip| ip.protocol = 6).emit() => RxDropNotRoce;
        "another UDP port": with(good, |r| r.udp.dst_port = 4790).emit() => RxDropNotRoce;
        "Ethernet header alone": cut(14) => RxDropNotRoce;
        "IPv4 options": options => RxDropIpHdr;
        "first fragment": with_ip(good, |ip| ip.fragment = 0x2000).emit() => RxDropIpHdr;
        "last fragment": with_ip(good, |ip| ip.fragment = 7).emit() => RxDropIpHdr;
        "TTL 0": with_ip(good, |ip| ip.ttl = 0).emit() => RxDropIpHdr;
        "header checksum": raw(|b| b[24] ^= 1) => RxDropIpHdr;
        "IP version 5": raw(|b| b[14] = 0x55) => RxDropIpHdr;
        "ICRC cut off": cut(bytes.len() - 4) => RxDropLength;
        "cut in the BTH": cut(14 + 20 + 8 + 6) => RxDropLength;
        "IP longer than the frame": with_ip(good, |ip| ip.total_len += 400).emit() => RxDropLength;
        "UDP shorter than IP": with(good, |r| r.udp.length -= 4).emit() => RxDropLength;
        "length no multiple of 4": with_ip(&with(good, |r| r.udp.length -= 2), |ip| ip.total_len -= 2).emit() => RxDropLength;
        "reserved opcode": with(good, |r| r.bth.opcode = 0x1f).emit() => RxDropOpcode;
        "opcode of RD": with(good, |r| r.bth.opcode |= 0x40).emit() => RxDropOpcode;
        "manufacturer's opcode": with(good, |r| r.bth.opcode |= 0xc0).emit() => RxDropOpcode;
        "TVer 1": with(good, |r| r.bth.version = 1).emit() => RxDropTver;
        "ICRC": raw(|b| *b.last_mut().unwrap() ^= 0x80) => RxDropIcrc;
        "a bit of the PSN": raw(|b| b[14 + 20 + 8 + 11] ^= 1) => RxDropIcrc;
        "a bit of the extended header": raw(|b| b[14 + 20 + 8 + 12] ^= 1) => RxDropIcrc;
        "address of nobody": with_ip(good, |ip| ip.dst = Ipv4Addr::new(10, 0, 0, 77)).emit() => RxDropDip;
    };
    if resp {
        list.extend(rows! {
            "ACK with payload": op(good, 0x11, 8).emit() => RxDropLength;
            "LAST without payload": op(good, 0x0f, 0).emit() => RxDropLength;
        });
    } else {
        let mut pad = op(good, 0x04, 0);
        pad.bth.pad_count = 3;
        list.extend(rows! {
            "READ with payload": op(good, 0x0c, 8).emit() => RxDropLength;
            "MIDDLE without payload": op(good, 0x07, 0).emit() => RxDropLength;
            "payload of 4100 bytes": op(good, 0x0a, 4100).emit() => RxDropLength;
            "pad without payload": pad.seal().emit() => RxDropLength;
        });
    }
    let mut list: Vec<Bad> = list
        .into_iter()
        .map(|(what, frame, id)| Bad {
            what,
            to,
            frame,
            mac_error: false,
            counts: vec![id],
            other: Vec::new(),
        })
        .collect();
    list.push(Bad {
        what: "flagged by the MAC",
        to,
        frame: bytes.clone(),
        mac_error: true,
        counts: vec![CounterId::RxDropMacErr],
        other: Vec::new(),
    });
    list
}

/// Other queue pairs of an end, for frames that go astray.
pub(super) struct Others {
    pub(super) uc: Qp,
    pub(super) reset: Qp,
    pub(super) init: Qp,
    pub(super) err: Qp,
    pub(super) stale: u32,
}

impl Others {
    pub(super) fn new(end: &End) -> Self {
        let create = |qp_type| {
            end.pd
                .create_qp(&QpInit {
                    qp_type,
                    ..end.qp_init()
                })
                .unwrap()
        };
        let to = |qp: &Qp, qp_state, mask| {
            let attr = QpAttr {
                qp_state,
                ..QpAttr::default()
            };
            qp.modify(&attr, mask).unwrap();
        };
        let (uc, reset, init, err, gone) = (
            create(QpType::Uc),
            create(QpType::Rc),
            create(QpType::Rc),
            create(QpType::Rc),
            create(QpType::Rc),
        );
        for qp in [&uc, &init, &err] {
            to(qp, QpState::Init, attr::INIT_MASK);
        }
        to(&err, QpState::Err, openrnic_driver::spec::QpAttrBit::STATE);
        let stale = gone.qpn().0;
        gone.destroy().unwrap();
        Self {
            uc,
            reset,
            init,
            err,
            stale,
        }
    }
}

/// Well-formed frames that are not for the queue pair that they name.
pub(super) fn misdirected(good: &Roce, to: usize, class: CounterId, others: &Others) -> Vec<Bad> {
    let dest = |qpn: u32| with(good, |r| r.bth.dest_qpn = qpn);
    let xrc = |r: &mut Roce| {
        r.bth.opcode |= 0xa0;
        r.ext.xrceth = ExtHeaders::zeroed(&opcode_info(r.bth.opcode).unwrap()).xrceth;
        *r = r.clone().finish();
    };
    let mut list = rows! {
        "QPN 0": dest(0) => RxDropQpn;
        "QPN of nobody": dest(700) => RxDropQpn;
        "multicast QPN": dest(0xff_ffff) => RxDropQpn;
        "QPN that is gone": dest(others.stale) => RxDropQpn;
        "another generation": dest(good.bth.dest_qpn ^ 0x40_0000) => RxDropQpn;
        "QP of type UC": dest(others.uc.qpn().0) => RxDropQpType;
        "opcode of XRC": with(good, xrc) => RxDropQpType;
        "QP in RESET": dest(others.reset.qpn().0) => RxDropQpState;
        "QP in INIT": dest(others.init.qpn().0) => RxDropQpState;
        "QP in ERR": dest(others.err.qpn().0) => RxDropQpState;
        "another source": with_ip(good, |ip| ip.src = Ipv4Addr::new(10, 0, 0, 99)) => RxDropAddr;
        "from itself": with_ip(good, |ip| ip.src = Ipv4Addr::new(10, 0, 0, 1 + to as u8)) => RxDropAddr;
        "another own address": with_ip(good, |ip| ip.dst = Ipv4Addr::new(10, 9, 9, 9)) => RxDropAddr;
        "another partition": with(good, |r| r.bth.pkey = 0xfffe) => RxDropPkey;
        "P_Key 0": with(good, |r| r.bth.pkey = 0) => RxDropPkey;
        "limited P_Key 0": with(good, |r| r.bth.pkey = 0x8000) => RxDropPkey;
    };
    if class == CounterId::RxRequests {
        list.extend(rows! {
            "WRITE of UC": op(good, 0x2a, good.payload.len()) => RxDropQpType;
            "SEND of UD": op(good, 0x64, 40) => RxDropQpType;
        });
    }
    list.into_iter()
        .map(|(what, roce, id)| Bad {
            what,
            to,
            frame: roce.emit(),
            mac_error: false,
            counts: vec![class, id],
            other: Vec::new(),
        })
        .collect()
}

/// Frames of this connection that come at a wrong time.
pub(super) fn untimely(request: &Roce, ack: &Roce) -> Vec<Bad> {
    use CounterId::{
        RxAcks, RxDuplicates, RxGhostResponses, RxNakInvReq, RxNakPsnSeq, RxNakRemAccess, RxNakRemOp, RxRequests,
        RxResponses, RxRnrNaks, TxAcks, TxReadResponses,
    };
    let behind = |r: &Roce, n: u32| with(r, |r| r.bth.psn = r.bth.psn.wrapping_sub(n) & 0xff_ffff);
    let request_to = |what, roce: Roce, counts: &[CounterId], other: &[CounterId]| Bad {
        what,
        to: 1,
        frame: roce.emit(),
        mac_error: false,
        counts: [&[RxRequests, RxDuplicates], counts].concat(),
        other: other.to_vec(),
    };
    // The ACK names what was executed last: nothing waits for it.
    let acked = [RxResponses, RxAcks, RxGhostResponses];
    let mut list = vec![
        request_to(
            "duplicate WRITE with other bytes",
            op(request, 0x0a, 8),
            &[TxAcks],
            &acked,
        ),
        request_to("WRITE of long ago", behind(request, 1000), &[TxAcks], &acked),
        request_to("SEND of long ago", op(&behind(request, 9), 0x04, 8), &[TxAcks], &acked),
        request_to(
            "SEND MIDDLE of long ago",
            op(&behind(request, 9), 0x01, 256),
            &[TxAcks],
            &acked,
        ),
        request_to(
            "READ of long ago",
            op(&behind(request, 9), 0x0c, 0),
            &[TxReadResponses],
            &[RxResponses, RxGhostResponses],
        ),
        request_to("atomic of long ago", op(&behind(request, 9), 0x14, 0), &[], &[]),
    ];
    let mut response = |what, roce: Roce, counts: &[CounterId]| {
        list.push(Bad {
            what,
            to: 0,
            frame: roce.emit(),
            mac_error: false,
            counts: [&[RxResponses, RxGhostResponses], counts].concat(),
            other: Vec::new(),
        });
    };
    for n in [0, 1, 1000, 0x80_0000, 0xf0_0000] {
        // Behind the window, and ahead of it.
        response("ACK of a PSN that is not outstanding", behind(ack, n), &[RxAcks]);
        for (syndrome, id) in [
            (0x60, RxNakPsnSeq),
            (0x61, RxNakInvReq),
            (0x62, RxNakRemAccess),
            (0x63, RxNakRemOp),
            (0x21, RxRnrNaks),
        ] {
            let nak = with(&behind(ack, n), |r| r.ext.aeth.as_mut().unwrap().syndrome = syndrome);
            response("NAK of a PSN that is not outstanding", nak, &[id]);
        }
        response(
            "READ response that nobody asked for",
            op(&behind(ack, n), 0x10, 100),
            &[],
        );
        response("MIDDLE that nobody asked for", op(&behind(ack, n), 0x0e, 256), &[]);
        response("atomic result that nobody asked for", op(&behind(ack, n), 0x12, 0), &[]);
    }
    for syndrome in [0x40, 0x5f, 0x64, 0x7f, 0x80, 0xff] {
        let odd = with(ack, |r| r.ext.aeth.as_mut().unwrap().syndrome = syndrome);
        response("reserved syndrome", odd, &[]);
    }
    // Each end answers the other: a response sent to the side that responds reaches its requester, which waits for nothing.
    let back = |r: &Roce| {
        with(r, |r| {
            (r.eth.src, r.eth.dst) = (r.eth.dst, r.eth.src);
            let Ip::V4(ip) = &mut r.ip else { panic!() };
            (ip.src, ip.dst) = (ip.dst, ip.src);
            r.bth.dest_qpn = request.bth.dest_qpn;
        })
    };
    list.push(Bad {
        what: "response to the responder",
        to: 1,
        frame: back(ack).emit(),
        mac_error: false,
        counts: vec![RxResponses, RxAcks, RxGhostResponses],
        other: Vec::new(),
    });
    list
}
