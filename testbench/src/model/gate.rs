// SPDX-License-Identifier: Apache-2.0
//! The rules of a QP's transitions, transcribed by hand from the table of `ibv_modify_qp(3)` as the
//! Linux core enforces it, and the value checks of this device. It shares nothing with the generated
//! code, so that a mistake there is seen here.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Bits of an attribute mask (`enum ibv_qp_attr_mask`).
pub mod attr {
    #![allow(missing_docs)]
    pub const STATE: u32 = 1 << 0;
    pub const CUR_STATE: u32 = 1 << 1;
    pub const EN_SQD_ASYNC_NOTIFY: u32 = 1 << 2;
    pub const ACCESS_FLAGS: u32 = 1 << 3;
    pub const PKEY_INDEX: u32 = 1 << 4;
    pub const PORT: u32 = 1 << 5;
    pub const QKEY: u32 = 1 << 6;
    pub const AV: u32 = 1 << 7;
    pub const PATH_MTU: u32 = 1 << 8;
    pub const TIMEOUT: u32 = 1 << 9;
    pub const RETRY_CNT: u32 = 1 << 10;
    pub const RNR_RETRY: u32 = 1 << 11;
    pub const RQ_PSN: u32 = 1 << 12;
    pub const MAX_QP_RD_ATOMIC: u32 = 1 << 13;
    pub const ALT_PATH: u32 = 1 << 14;
    pub const MIN_RNR_TIMER: u32 = 1 << 15;
    pub const SQ_PSN: u32 = 1 << 16;
    pub const MAX_DEST_RD_ATOMIC: u32 = 1 << 17;
    pub const PATH_MIG_STATE: u32 = 1 << 18;
    pub const CAP: u32 = 1 << 19;
    pub const DEST_QPN: u32 = 1 << 20;
    pub const RATE_LIMIT: u32 = 1 << 25;
}
use attr::*;

/// QP state, with the value of `enum ibv_qp_state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum State {
    Reset = 0,
    Init = 1,
    Rtr = 2,
    Rts = 3,
    Sqd = 4,
    Sqe = 5,
    Err = 6,
}

impl State {
    /// All of them, in the order of their values.
    pub const ALL: [Self; 7] = [
        Self::Reset,
        Self::Init,
        Self::Rtr,
        Self::Rts,
        Self::Sqd,
        Self::Sqe,
        Self::Err,
    ];

    /// The state of that value; there is none of 7.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }
}

/// QP type, with the device's code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Type {
    Gsi = 1,
    Rc = 2,
    Uc = 3,
    Ud = 4,
    Dci = 5,
    Dct = 6,
    RawPacket = 8,
    XrcIni = 9,
    XrcTgt = 10,
}

impl Type {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Gsi,
        Self::Rc,
        Self::Uc,
        Self::Ud,
        Self::Dci,
        Self::Dct,
        Self::RawPacket,
        Self::XrcIni,
        Self::XrcTgt,
    ];

    /// The type of that code.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|t| *t as u8 == code)
    }
}

/// What a legal transition demands and permits, besides STATE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// Attributes that must be given.
    pub required: u32,
    /// Attributes that may be given.
    pub optional: u32,
}

/// The transition table: `None` when there is no such transition.
pub fn edge(qp_type: Type, from: State, to: State) -> Option<Edge> {
    use State::*;
    use Type::*;
    // Everything goes to RESET, everything but RESET to ERR, with no attribute. A DC target does neither.
    if to == Reset || (to == Err && from != Reset) {
        return (qp_type != Dct).then_some(Edge {
            required: 0,
            optional: 0,
        });
    }
    let alt = ALT_PATH | ACCESS_FLAGS | PATH_MIG_STATE; // of connected types, once they are connected
    let (required, optional) = match (from, to, qp_type) {
        (Reset, Init, Rc | Uc | XrcIni | XrcTgt | Dct) => (PKEY_INDEX | PORT | ACCESS_FLAGS, 0),
        (Reset, Init, Ud) => (PKEY_INDEX | PORT | QKEY, 0),
        (Reset, Init, Gsi) => (PKEY_INDEX | QKEY, 0),
        (Reset, Init, RawPacket) => (PORT, 0),
        (Reset, Init, Dci) => (PKEY_INDEX | PORT, 0),

        (Init, Init, Rc | Uc | XrcIni | XrcTgt) => (0, PKEY_INDEX | PORT | ACCESS_FLAGS),
        (Init, Init, Ud) => (0, PKEY_INDEX | PORT | QKEY),
        (Init, Init, Gsi) => (0, PKEY_INDEX | QKEY),
        (Init, Init, RawPacket) => (0, 0),
        (Init, Init, Dci) => (0, PKEY_INDEX | PORT),

        (Init, Rtr, Rc | XrcTgt) => (
            AV | PATH_MTU | DEST_QPN | RQ_PSN | MAX_DEST_RD_ATOMIC | MIN_RNR_TIMER,
            ALT_PATH | ACCESS_FLAGS | PKEY_INDEX,
        ),
        (Init, Rtr, Uc | XrcIni) => (AV | PATH_MTU | DEST_QPN | RQ_PSN, ALT_PATH | ACCESS_FLAGS | PKEY_INDEX),
        (Init, Rtr, Ud | Gsi) => (0, PKEY_INDEX | QKEY),
        (Init, Rtr, RawPacket) => (0, 0),
        (Init, Rtr, Dci) => (PATH_MTU, PKEY_INDEX | AV),
        (Init, Rtr, Dct) => (MIN_RNR_TIMER | AV | PATH_MTU, 0),

        (Rtr, Rts, Rc) => (
            TIMEOUT | RETRY_CNT | RNR_RETRY | SQ_PSN | MAX_QP_RD_ATOMIC,
            CUR_STATE | alt | MIN_RNR_TIMER,
        ),
        (Rtr, Rts, XrcIni) => (
            TIMEOUT | RETRY_CNT | RNR_RETRY | SQ_PSN | MAX_QP_RD_ATOMIC,
            CUR_STATE | alt,
        ),
        (Rtr, Rts, Uc) => (SQ_PSN, CUR_STATE | alt),
        (Rtr, Rts, Ud | Gsi) => (SQ_PSN, CUR_STATE | QKEY),
        (Rtr, Rts, XrcTgt) => (TIMEOUT | SQ_PSN, CUR_STATE | alt | MIN_RNR_TIMER),
        (Rtr, Rts, RawPacket) => (0, RATE_LIMIT),
        (Rtr, Rts, Dci) => (
            TIMEOUT | RETRY_CNT | RNR_RETRY | MAX_QP_RD_ATOMIC | SQ_PSN,
            MIN_RNR_TIMER,
        ),

        (Rts, Rts, Rc | XrcTgt) | (Sqd, Rts, Rc | XrcTgt) => (0, CUR_STATE | alt | MIN_RNR_TIMER),
        (Rts, Rts, Uc | XrcIni) | (Sqd, Rts, Uc | XrcIni) => (0, CUR_STATE | alt),
        (Rts, Rts, Ud | Gsi) | (Sqd, Rts, Ud | Gsi) => (0, CUR_STATE | QKEY),
        (Rts, Rts, RawPacket) => (0, RATE_LIMIT),
        (Rts, Rts, Dci) => (0, MIN_RNR_TIMER),
        (Sqd, Rts, RawPacket) => (0, 0),

        (Rts, Sqd, Rc | Uc | Ud | Gsi | XrcIni | XrcTgt) => (0, EN_SQD_ASYNC_NOTIFY),
        (Rts, Sqd, RawPacket) => (0, 0),

        (Sqd, Sqd, Rc) => (
            0,
            PORT | AV
                | TIMEOUT
                | RETRY_CNT
                | RNR_RETRY
                | MAX_QP_RD_ATOMIC
                | MAX_DEST_RD_ATOMIC
                | PKEY_INDEX
                | MIN_RNR_TIMER
                | alt,
        ),
        (Sqd, Sqd, Uc) => (0, AV | PKEY_INDEX | alt),
        (Sqd, Sqd, Ud | Gsi) => (0, PKEY_INDEX | QKEY),
        (Sqd, Sqd, XrcIni) => (
            0,
            PORT | AV | TIMEOUT | RETRY_CNT | RNR_RETRY | MAX_QP_RD_ATOMIC | PKEY_INDEX | alt,
        ),
        (Sqd, Sqd, XrcTgt) => (
            0,
            PORT | AV | TIMEOUT | MAX_DEST_RD_ATOMIC | PKEY_INDEX | MIN_RNR_TIMER | alt,
        ),
        (Sqd, Sqd, RawPacket) => (0, 0),

        (Sqe, Rts, Rc | XrcIni | XrcTgt | RawPacket) => (0, 0),
        (Sqe, Rts, Uc) => (0, CUR_STATE | ACCESS_FLAGS),
        (Sqe, Rts, Ud | Gsi) => (0, CUR_STATE | QKEY),
        _ => return None,
    };
    Some(Edge { required, optional })
}

/// Values of the attributes of one request, as wide as its record has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Attrs {
    pub mask: u32,
    pub qp_state: u8,
    pub cur_qp_state: u8,
    pub en_sqd_async_notify: bool,
    /// Bit 0 local write, 1 remote write, 2 remote read, 3 remote atomic.
    pub access_flags: u8,
    pub path_mig_state: u8,
    pub pkey_index: u16,
    pub port: u8,
    pub path_mtu: u8,
    pub timeout: u8,
    pub retry_cnt: u8,
    pub rnr_retry: u8,
    pub min_rnr_timer: u8,
    pub max_rd_atomic: u8,
    pub max_dest_rd_atomic: u8,
    pub rq_psn: u32,
    pub sq_psn: u32,
    pub dest_qpn: u32,
    pub qkey: u32,
    pub dgid: [u8; 16],
    pub dmac: [u8; 6],
    pub vlan: u16,
    pub sgid_index: u8,
    pub hop_limit: u8,
    pub traffic_class: u8,
    pub av_port: u8,
    pub flow_label: u32,
    pub is_global: bool,
    /// Some reserved bit of the record is set.
    pub reserved: bool,
}

impl Attrs {
    /// The record of 64 bytes. A reserved bit is set when [`Self::reserved`] is.
    pub fn to_bytes(&self) -> [u8; 64] {
        let mut b = [0; 64];
        b[0..4].copy_from_slice(&self.mask.to_le_bytes());
        b[4] = self.qp_state & 7 | u8::from(self.en_sqd_async_notify) << 3 | (self.cur_qp_state & 7) << 4;
        b[5] = self.access_flags & 15 | (self.path_mig_state & 3) << 4;
        b[6..8].copy_from_slice(&self.pkey_index.to_le_bytes());
        b[8] = self.port;
        b[9] = self.path_mtu;
        b[10] = self.timeout;
        b[11] = self.retry_cnt;
        b[12] = self.rnr_retry;
        b[13] = self.min_rnr_timer;
        b[14] = self.max_rd_atomic;
        b[15] = self.max_dest_rd_atomic;
        b[16..20].copy_from_slice(&self.rq_psn.to_le_bytes());
        b[20..24].copy_from_slice(&self.sq_psn.to_le_bytes());
        b[24..28].copy_from_slice(&self.dest_qpn.to_le_bytes());
        b[28..32].copy_from_slice(&self.qkey.to_le_bytes());
        b[32..48].copy_from_slice(&self.dgid);
        b[48..54].copy_from_slice(&self.dmac);
        b[54..56].copy_from_slice(&self.vlan.to_le_bytes());
        b[56] = self.sgid_index;
        b[57] = self.hop_limit;
        b[58] = self.traffic_class;
        b[59] = self.av_port;
        b[60..63].copy_from_slice(&(self.flow_label & 0xf_ffff).to_le_bytes()[..3]);
        b[63] = u8::from(self.is_global);
        if self.reserved {
            b[63] |= 0x40;
        }
        b
    }

    /// Reads a record.
    pub fn from_bytes(b: &[u8; 64]) -> Self {
        let u32_at = |i: usize| u32::from_le_bytes([b[i], b[i + 1], b[i + 2], b[i + 3]]);
        let u16_at = |i: usize| u16::from_le_bytes([b[i], b[i + 1]]);
        let mut dgid = [0; 16];
        dgid.copy_from_slice(&b[32..48]);
        let mut dmac = [0; 6];
        dmac.copy_from_slice(&b[48..54]);
        Self {
            mask: u32_at(0),
            qp_state: b[4] & 7,
            en_sqd_async_notify: b[4] & 8 != 0,
            cur_qp_state: b[4] >> 4 & 7,
            access_flags: b[5] & 15,
            path_mig_state: b[5] >> 4 & 3,
            pkey_index: u16_at(6),
            port: b[8],
            path_mtu: b[9],
            timeout: b[10],
            retry_cnt: b[11],
            rnr_retry: b[12],
            min_rnr_timer: b[13],
            max_rd_atomic: b[14],
            max_dest_rd_atomic: b[15],
            rq_psn: u32_at(16),
            sq_psn: u32_at(20),
            dest_qpn: u32_at(24),
            qkey: u32_at(28),
            dgid,
            dmac,
            vlan: u16_at(54),
            sgid_index: b[56],
            hop_limit: b[57],
            traffic_class: b[58],
            av_port: b[59],
            flow_label: u32_at(60) & 0xf_ffff,
            is_global: b[63] & 1 != 0,
            reserved: b[4] & 0x80 != 0 || b[5] & 0xc0 != 0 || b[62] & 0xf0 != 0 || b[63] & 0xfe != 0,
        }
    }

    /// Whether the mask names every attribute of `bits`.
    pub fn has(&self, bits: u32) -> bool {
        self.mask & bits == bits
    }
}

/// What the values of a request are judged against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Number of ports; they count from 1.
    pub ports: u8,
    /// GID entries.
    pub gids: u8,
    /// Bit: the entry holds an IPv4-mapped GID.
    pub gids_v4: u16,
    /// Bit: the entry holds another GID. In neither: it is empty.
    pub gids_v6: u16,
    /// The port's largest path MTU (1: 256 to 5: 4096).
    pub mtu: u8,
    /// P_Key table; an entry without any of its low 15 bits is empty.
    pub pkeys: [u16; 8],
    /// Largest number of outstanding READs and atomics, either way.
    pub rd_atomic: u8,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            ports: 1,
            gids: 16,
            gids_v4: 0,
            gids_v6: 0,
            mtu: 5,
            pkeys: [0xffff, 0, 0, 0, 0, 0, 0, 0],
            rd_atomic: 16,
        }
    }
}

/// The rule that refused a request, with the device's code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rule {
    /// CUR_STATE is given and is not the QP's state.
    WrongCurState = 1,
    /// There is no such transition for the type.
    IllegalEdge = 2,
    /// Required attributes are missing.
    MissingAttrs = 3,
    /// Attributes are given that the transition does not allow.
    ExcessAttrs = 4,
    /// An attribute has a value out of range.
    BadValue = 5,
    /// SQD is still draining.
    Draining = 6,
}

/// A refusal: the rule, and the attributes that it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// The first rule that refuses, in the order of their codes.
    pub rule: Rule,
    /// Mask of the missing or excess attributes, or the one attribute with a bad value.
    pub detail: u32,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {:#x}", self.rule, self.detail)
    }
}

/// The part of a QP that the gate looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subject {
    /// Its type; `None` for a code that is no type, for which every transition is illegal.
    pub qp_type: Option<Type>,
    /// Its state.
    pub state: State,
    /// In SQD, with its send queue not yet at rest.
    pub draining: bool,
    /// Its port, 0 before it has one.
    pub port: u8,
}

/// May this QP take this request?
///
/// # Errors
/// The rule that refuses it; nothing of the request is carried out then.
pub fn check(qp: &Subject, request: &Attrs, limits: &Limits) -> Result<(), Refusal> {
    let refuse = |rule, detail| Err(Refusal { rule, detail });
    if request.has(CUR_STATE) && request.cur_qp_state != qp.state as u8 {
        return refuse(Rule::WrongCurState, 0);
    }
    let next = if request.has(STATE) {
        State::from_code(request.qp_state)
    } else {
        Some(qp.state)
    };
    let way = match (qp.qp_type, next) {
        (Some(qp_type), Some(next)) => edge(qp_type, qp.state, next),
        _ => None,
    };
    let (Some(way), Some(next)) = (way, next) else {
        return refuse(Rule::IllegalEdge, 0);
    };
    let missing = way.required & !request.mask;
    if missing != 0 {
        return refuse(Rule::MissingAttrs, missing);
    }
    let excess = request.mask & !(way.required | way.optional | STATE);
    if excess != 0 {
        return refuse(Rule::ExcessAttrs, excess);
    }
    for bit in (0..32).map(|b| 1u32 << b).filter(|b| request.has(*b)) {
        if !value_ok(bit, qp, request, limits) {
            return refuse(Rule::BadValue, bit);
        }
    }
    if qp.draining && next != State::Err && next != State::Reset {
        return refuse(Rule::Draining, 0);
    }
    Ok(())
}

fn value_ok(bit: u32, qp: &Subject, r: &Attrs, limits: &Limits) -> bool {
    let is_port = |p: u8| (1..=limits.ports).contains(&p);
    match bit {
        PKEY_INDEX => limits
            .pkeys
            .get(usize::from(r.pkey_index))
            .is_some_and(|key| key & 0x7fff != 0),
        PORT => is_port(r.port),
        AV => {
            let own_port = if r.has(PORT) { r.port } else { qp.port };
            // Not from an address of the other version of IP.
            let other = match r.dgid {
                [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, ..] => limits.gids_v6,
                _ => limits.gids_v4,
            };
            r.is_global
                && r.sgid_index < limits.gids
                && other >> r.sgid_index & 1 == 0
                && is_port(r.av_port)
                && r.av_port == own_port
        }
        PATH_MTU => (1..=limits.mtu.min(5)).contains(&r.path_mtu),
        TIMEOUT => r.timeout <= 31,
        RETRY_CNT => r.retry_cnt <= 7,
        RNR_RETRY => r.rnr_retry <= 7,
        RQ_PSN => r.rq_psn < 1 << 24,
        MAX_QP_RD_ATOMIC => r.max_rd_atomic <= limits.rd_atomic,
        ALT_PATH => false, // RoCE knows no path migration
        MIN_RNR_TIMER => r.min_rnr_timer <= 31,
        SQ_PSN => r.sq_psn < 1 << 24,
        MAX_DEST_RD_ATOMIC => r.max_dest_rd_atomic <= limits.rd_atomic,
        PATH_MIG_STATE => r.path_mig_state <= 2,
        DEST_QPN => r.dest_qpn < 1 << 24,
        _ => true,
    }
}
