// SPDX-License-Identifier: Apache-2.0
//! Changes of the frames of a connection on their way, each with what becomes of the request.

use super::*;

/// What end 0 asks for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Ask {
    Write(u32),
    Send(u32),
    Read(u32),
}

/// What becomes of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Outcome {
    /// The frame is refused for this reason, and what is lost with it comes again.
    Lost(CounterId),
    /// The responder refuses: status at the requester, the NAK, what the responder's application hears.
    Refused(WcStatus, CounterId, Hears),
    /// The requester gives up with this status; the responder goes on.
    GivenUp(WcStatus),
}

/// How the responder tells.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Hears {
    Event(EventType),
    Receive(WcStatus),
}

pub(super) type Edit = fn(&mut Roce);

/// A frame of a message and how it is changed.
pub(super) struct Change {
    pub(super) what: &'static str,
    pub(super) ask: Ask,
    /// Which packet of the message or of its answer.
    pub(super) packet: u32,
    pub(super) edit: Edit,
    pub(super) end: Outcome,
}

pub(super) const INVALID: Outcome = Outcome::Refused(
    WcStatus::RemInvReqErr,
    CounterId::TxNakInvReq,
    Hears::Event(EventType::QpReqErr),
);
pub(super) const ACCESS: Outcome = Outcome::Refused(
    WcStatus::RemAccessErr,
    CounterId::TxNakRemAccess,
    Hears::Event(EventType::QpAccessErr),
);

pub(super) fn resized(r: &mut Roce, n: usize) {
    r.payload.resize(n, 0x66);
    *r = r.clone().finish();
}

pub(super) fn ip(r: &mut Roce, change: impl FnOnce(&mut Ipv4)) {
    *r = with_ip(r, change);
}

/// Rows of changes: what is asked for, the packet, how it is changed, what becomes of it.
macro_rules! changes {
    ($($what:literal: $ask:expr, $packet:literal, $edit:expr => $end:expr;)*) => {
        vec![$(Change { what: $what, ask: $ask, packet: $packet, edit: $edit, end: $end }),*]
    };
}

/// The RETH of a request is changed.
pub(super) fn reth(r: &mut Roce, change: impl FnOnce(&mut Reth)) {
    *r = with(r, |r| change(r.ext.reth.as_mut().unwrap()));
}

pub(super) fn bth(r: &mut Roce, change: impl FnOnce(&mut Bth)) {
    *r = with(r, |r| change(&mut r.bth));
}

pub(super) fn syndrome(r: &mut Roce, syndrome: u8) {
    *r = with(r, |r| r.ext.aeth.as_mut().unwrap().syndrome = syndrome);
}

/// Requests, changed.
pub(super) fn requests() -> Vec<Change> {
    use Ask::{Read, Send, Write};
    use CounterId::{
        RxDropAddr, RxDropDip, RxDropDmac, RxDropIcrc, RxDropIpHdr, RxDropLength, RxDropNotRoce, RxDropOpcode,
        RxDropPkey, RxDropQpType, RxDropQpn, RxDropTver, RxGhostResponses, TxNakInvReq, TxNakRemAccess,
    };
    use Outcome::{Lost, Refused};
    let in_use = Refused(
        WcStatus::RemInvReqErr,
        TxNakInvReq,
        Hears::Receive(WcStatus::RemInvReqErr),
    );
    let no_key = Refused(
        WcStatus::RemAccessErr,
        TxNakRemAccess,
        Hears::Receive(WcStatus::LocAccessErr),
    );
    changes! {
        "MIDDLE without FIRST": Write(100), 0, |r| become_op(r, 0x07, MTU) => INVALID;
        "LAST without FIRST": Write(100), 0, |r| become_op(r, 0x08, 100) => INVALID;
        "SEND MIDDLE without FIRST": Write(100), 0, |r| become_op(r, 0x01, MTU) => INVALID;
        "SEND LAST without FIRST": Write(100), 0, |r| become_op(r, 0x02, 100) => INVALID;
        "FIRST within a message": Write(700), 1, |r| become_op(r, 0x06, MTU) => INVALID;
        "ONLY within a message": Write(700), 1, |r| become_op(r, 0x0a, MTU) => INVALID;
        "SEND MIDDLE within a WRITE": Write(700), 1, |r| become_op(r, 0x01, MTU) => INVALID;
        "SEND ONLY within a WRITE": Write(700), 1, |r| become_op(r, 0x04, 9) => INVALID;
        "READ within a WRITE": Write(700), 1, |r| become_op(r, 0x0c, 0) => INVALID;
        "atomic within a WRITE": Write(700), 1, |r| become_op(r, 0x14, 0) => INVALID;
        "FIRST shorter than the MTU": Write(700), 0, |r| resized(r, MTU - 4) => INVALID;
        "MIDDLE shorter than the MTU": Write(700), 1, |r| resized(r, MTU - 1) => INVALID;
        "MIDDLE longer than the MTU": Write(700), 1, |r| resized(r, MTU + 4) => INVALID;
        "LAST longer than the MTU": Write(700), 2, |r| resized(r, MTU + 4) => INVALID;
        "ONLY longer than the MTU": Write(100), 0, |r| { reth(r, |h| h.dma_len = 260); resized(r, 260) } => INVALID;
        "less than DMALen": Write(100), 0, |r| reth(r, |h| h.dma_len += 1) => INVALID;
        "more than DMALen": Write(700), 2, |r| resized(r, 192) => INVALID;
        "DMALen beyond 2^31": Write(700), 0, |r| reth(r, |h| h.dma_len = 0x8000_0001) => INVALID;
        "READ beyond 2^31": Read(700), 0, |r| reth(r, |h| h.dma_len = 0x8000_0001) => INVALID;
        "a wrong pad": Write(2), 0, |r| bth(r, |h| h.pad_count = 1) => INVALID;
        "unknown R_Key": Write(100), 0, |r| reth(r, |h| h.rkey ^= 0xff_0000) => ACCESS;
        "old R_Key": Write(700), 0, |r| reth(r, |h| h.rkey ^= 1) => ACCESS;
        "address outside": Write(100), 0, |r| reth(r, |h| h.va += 1 << 40) => ACCESS;
        "READ with an unknown R_Key": Read(700), 0, |r| reth(r, |h| h.rkey ^= 0xff_0000) => ACCESS;
        "WRITE MIDDLE within a SEND": Send(700), 1, |r| become_op(r, 0x07, MTU) => in_use;
        "SEND FIRST within a SEND": Send(700), 1, |r| become_op(r, 0x00, MTU) => in_use;
        "a key that cannot be invalidated": Send(700), 2, |r| become_op(r, 0x16, 188) => no_key;
        "LAST without payload": Write(700), 2, |r| resized(r, 0) => Lost(RxDropLength);
        "MIDDLE without payload": Send(700), 1, |r| resized(r, 0) => Lost(RxDropLength);
        "READ with payload": Read(700), 0, |r| resized(r, 4) => Lost(RxDropLength);
        "cut": Write(700), 1, |r| r.payload.truncate(100) => Lost(RxDropLength);
        "FLUSH": Write(100), 0, |r| bth(r, |h| h.opcode = 0x1c) => Lost(RxDropOpcode);
        "TVer": Send(700), 0, |r| bth(r, |h| h.version = 8) => Lost(RxDropTver);
        "WRITE of UC": Write(100), 0, |r| bth(r, |h| h.opcode |= 0x20) => Lost(RxDropQpType);
        "another partition": Write(700), 2, |r| bth(r, |h| h.pkey ^= 4) => Lost(RxDropPkey);
        "another generation": Send(700), 1, |r| bth(r, |h| h.dest_qpn ^= 0x40_0000) => Lost(RxDropQpn);
        "another source": Read(700), 0, |r| ip(r, |h| h.src = Ipv4Addr::new(10, 0, 0, 9)) => Lost(RxDropAddr);
        "another destination": Read(700), 0, |r| ip(r, |h| h.dst = Ipv4Addr::new(10, 0, 0, 9)) => Lost(RxDropDip);
        "fragment": Write(700), 0, |r| ip(r, |h| h.fragment |= 0x2000) => Lost(RxDropIpHdr);
        "another port": Write(700), 1, |r| *r = with(r, |r| r.udp.dst_port ^= 1) => Lost(RxDropNotRoce);
        "another MAC": Write(700), 2, |r| r.eth.dst[0] ^= 1 => Lost(RxDropDmac);
        "ICRC": Send(700), 2, |r| r.icrc ^= 1 => Lost(RxDropIcrc);
        "a bit of the payload": Write(700), 1, |r| r.payload[77] ^= 0x10 => Lost(RxDropIcrc);
        "a response": Write(100), 0, |r| become_op(r, 0x11, 0) => Lost(RxGhostResponses);
    }
}

/// Responses, changed.
pub(super) fn responses() -> Vec<Change> {
    use Ask::{Read, Write};
    use CounterId::{
        RxDropAddr, RxDropIcrc, RxDropIpHdr, RxDropLength, RxDropOpcode, RxDropPkey, RxDropQpType, RxDropQpn,
        RxDropTver, RxGhostResponses, RxNakPsnSeq, RxRnrNaks,
    };
    use Outcome::{GivenUp, Lost};
    let bad = GivenUp(WcStatus::BadRespErr);
    changes! {
        "ONLY too short": Read(100), 0, |r| resized(r, 96) => bad;
        "ONLY too long": Read(100), 0, |r| resized(r, 104) => bad;
        "FIRST too short": Read(700), 0, |r| resized(r, 252) => bad;
        "MIDDLE too long": Read(700), 1, |r| resized(r, 260) => bad;
        "MIDDLE for ONLY": Read(100), 0, |r| become_op(r, 0x0e, 100) => bad;
        "MIDDLE for FIRST": Read(700), 0, |r| become_op(r, 0x0e, MTU) => bad;
        "FIRST for MIDDLE": Read(700), 1, |r| become_op(r, 0x0d, MTU) => bad;
        "LAST for MIDDLE": Read(700), 1, |r| become_op(r, 0x0f, MTU) => bad;
        "MIDDLE for LAST": Read(700), 2, |r| become_op(r, 0x0e, MTU) => bad;
        "result of an atomic": Read(100), 0, |r| become_op(r, 0x12, 0) => bad;
        "NAK for an ACK: invalid request": Write(100), 0, |r| syndrome(r, 0x61) => GivenUp(WcStatus::RemInvReqErr);
        "NAK for an ACK: access": Write(100), 0, |r| syndrome(r, 0x62) => GivenUp(WcStatus::RemAccessErr);
        "NAK for an ACK: operation": Write(100), 0, |r| syndrome(r, 0x63) => GivenUp(WcStatus::RemOpErr);
        "NAK for a response": Read(100), 0, |r| { become_op(r, 0x11, 0); syndrome(r, 0x62) } => GivenUp(WcStatus::RemAccessErr);
        "NAK for a FIRST": Read(700), 0, |r| { become_op(r, 0x11, 0); syndrome(r, 0x61) } => GivenUp(WcStatus::RemInvReqErr);
        "sequence NAK for an ACK": Write(100), 0, |r| syndrome(r, 0x60) => Lost(RxNakPsnSeq);
        "RNR NAK for an ACK": Write(100), 0, |r| syndrome(r, 0x21) => Lost(RxRnrNaks);
        "reserved syndrome 0x40": Write(100), 0, |r| syndrome(r, 0x40) => Lost(RxGhostResponses);
        "reserved syndrome 0x5f": Write(100), 0, |r| syndrome(r, 0x5f) => Lost(RxGhostResponses);
        "reserved NAK 0x64": Write(100), 0, |r| syndrome(r, 0x64) => Lost(RxGhostResponses);
        "reserved NAK 0x7f": Write(100), 0, |r| syndrome(r, 0x7f) => Lost(RxGhostResponses);
        "syndrome 0x80": Write(100), 0, |r| syndrome(r, 0x80) => Lost(RxGhostResponses);
        "syndrome 0xff": Write(100), 0, |r| syndrome(r, 0xff) => Lost(RxGhostResponses);
        "ACK of what was never sent": Write(100), 0, |r| bth(r, |h| h.psn ^= 0x10_0000) => Lost(RxGhostResponses);
        "READ response to a WRITE": Write(100), 0, |r| become_op(r, 0x10, 100) => Lost(RxGhostResponses);
        "result of an atomic to a WRITE": Write(100), 0, |r| become_op(r, 0x12, 0) => Lost(RxGhostResponses);
        "ACK with payload": Write(100), 0, |r| resized(r, 4) => Lost(RxDropLength);
        "LAST without payload": Read(700), 2, |r| resized(r, 0) => Lost(RxDropLength);
        "cut": Read(700), 1, |r| r.payload.truncate(8) => Lost(RxDropLength);
        "reserved opcode": Read(700), 1, |r| bth(r, |h| h.opcode = 0x15) => Lost(RxDropOpcode);
        "TVer": Read(700), 0, |r| bth(r, |h| h.version = 1) => Lost(RxDropTver);
        "of XRC": Write(100), 0, |r| bth(r, |h| h.opcode |= 0xa0) => Lost(RxDropQpType);
        "another partition": Read(700), 2, |r| bth(r, |h| h.pkey ^= 4) => Lost(RxDropPkey);
        "another generation": Write(100), 0, |r| bth(r, |h| h.dest_qpn ^= 0x40_0000) => Lost(RxDropQpn);
        "another source": Read(700), 0, |r| ip(r, |h| h.src = Ipv4Addr::new(10, 0, 0, 9)) => Lost(RxDropAddr);
        "TTL 0": Read(700), 1, |r| ip(r, |h| h.ttl = 0) => Lost(RxDropIpHdr);
        "ICRC": Read(700), 1, |r| r.icrc ^= 0x100 => Lost(RxDropIcrc);
        "a bit of the data": Read(100), 0, |r| r.payload[3] ^= 1 => Lost(RxDropIcrc);
    }
}
