// SPDX-License-Identifier: Apache-2.0
//! The RC transport's independent model: both ends, written from the standard and from the verbs rules, with constants of
//! its own. Nothing below imports what is generated from `spec/`, but for [`run`], which drives the RTL.
//!
//! It is used twice. As a judge ([`judge`]) it follows each frame that two NICs send and receive, and says which frames may
//! not be: [`requester`] knows what each request packet must hold, when packets may be sent again, and how far the peer has
//! acknowledged; [`responder`] knows which requests were executed, which responses may follow and which must. As an oracle
//! ([`completions`]) it tells from the posted work alone what both memories hold afterwards, how everything completes, and
//! which queue pairs are left in ERR. [`counters`] tells from the frames what the devices must have counted.
//!
//! [`stimulus`] makes the work, [`run`] carries an episode out on two RTL NICs and compares, [`shrink`] makes a failing episode small.

pub mod completions;
pub mod counters;
pub mod judge;
pub mod memory;
pub mod requester;
pub mod responder;
pub mod run;
pub mod shrink;
pub mod stimulus;

/// Where RTL and model differ.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Difference {
    /// What differs: the name of a rule.
    pub kind: String,
    /// Both sides.
    pub text: String,
}

impl Difference {
    /// One.
    pub fn new(kind: &str, text: impl Into<String>) -> Self {
        Self {
            kind: kind.to_owned(),
            text: text.into(),
        }
    }
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.kind, self.text)
    }
}

/// Result of a check.
pub type Checked = Result<(), Difference>;

/// A difference, as an error.
pub fn differ(kind: &str, text: impl Into<String>) -> Checked {
    Err(Difference::new(kind, text))
}

/// Opcodes of reliable connections (IBTA volume 1, table 38).
pub mod opcode {
    /// First, middle, last, last with immediate, only, only with immediate.
    pub const SEND: [u8; 6] = [0x00, 0x01, 0x02, 0x03, 0x04, 0x05];
    /// As [`SEND`].
    pub const WRITE: [u8; 6] = [0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b];
    /// READ request.
    pub const READ_REQUEST: u8 = 0x0c;
    /// READ response: first, middle, last, only.
    pub const READ_RESPONSE: [u8; 4] = [0x0d, 0x0e, 0x0f, 0x10];
    /// ACK, NAK, RNR NAK.
    pub const ACKNOWLEDGE: u8 = 0x11;
    /// Result of an atomic.
    pub const ATOMIC_ACKNOWLEDGE: u8 = 0x12;
    /// Compare and swap.
    pub const COMPARE_SWAP: u8 = 0x13;
    /// Fetch and add.
    pub const FETCH_ADD: u8 = 0x14;
    /// SEND with invalidate: last, only.
    pub const SEND_INV: [u8; 2] = [0x16, 0x17];
}

/// AETH syndromes.
pub mod syndrome {
    /// ACK without credits.
    pub const ACK: u8 = 0x1f;
    /// RNR NAK: the timer stands in the low five bits.
    pub const RNR: u8 = 0x20;
    /// PSN sequence error.
    pub const SEQUENCE: u8 = 0x60;
    /// Invalid request.
    pub const INVALID: u8 = 0x61;
    /// Remote access error.
    pub const ACCESS: u8 = 0x62;
    /// Remote operational error.
    pub const OPERATION: u8 = 0x63;
}

/// Rights of a region or of a queue pair, as in `ibv_access_flags`.
pub mod right {
    /// Local write.
    pub const LOCAL_WRITE: u8 = 1;
    /// RDMA WRITE.
    pub const REMOTE_WRITE: u8 = 2;
    /// RDMA READ.
    pub const REMOTE_READ: u8 = 4;
    /// Atomics.
    pub const REMOTE_ATOMIC: u8 = 8;
    /// Windows may be bound to it.
    pub const MW_BIND: u8 = 16;
    /// A window is addressed from 0 on.
    pub const ZERO_BASED: u8 = 32;
}

/// Completion statuses, as in `ibv_wc_status`.
pub mod status {
    #![allow(missing_docs)]
    pub const SUCCESS: u8 = 0;
    pub const LOC_LEN_ERR: u8 = 1;
    pub const LOC_QP_OP_ERR: u8 = 2;
    pub const LOC_PROT_ERR: u8 = 4;
    pub const WR_FLUSH_ERR: u8 = 5;
    pub const MW_BIND_ERR: u8 = 6;
    pub const LOC_ACCESS_ERR: u8 = 8;
    pub const REM_INV_REQ_ERR: u8 = 9;
    pub const REM_ACCESS_ERR: u8 = 10;
    pub const REM_OP_ERR: u8 = 11;
    pub const RETRY_EXC_ERR: u8 = 12;
    pub const RNR_RETRY_EXC_ERR: u8 = 13;
}

/// Asynchronous events, as in `ibv_event_type`.
pub mod event {
    #![allow(missing_docs)]
    pub const QP_REQ_ERR: u8 = 2;
    pub const QP_ACCESS_ERR: u8 = 3;
    pub const LAST_WQE_REACHED: u8 = 16;
}

/// `IBV_WR_*` of what the model knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Op {
    /// SEND.
    Send,
    /// SEND with immediate.
    SendImm,
    /// SEND with invalidate.
    SendInv,
    /// RDMA WRITE.
    Write,
    /// RDMA WRITE with immediate.
    WriteImm,
    /// RDMA READ.
    Read,
    /// Atomic compare and swap.
    CompareSwap,
    /// Atomic fetch and add.
    FetchAdd,
    /// REG_MR: memory is put under a key (as `IB_WR_REG_MR`, which the user's interface does not have).
    RegMr,
    /// LOCAL_INV: a key names nothing any more.
    LocalInv,
    /// BIND_MW: a window of type 2 is bound.
    BindMw,
}

impl Op {
    /// All that make packets.
    pub const ALL: [Self; 8] = [
        Self::Send,
        Self::SendImm,
        Self::SendInv,
        Self::Write,
        Self::WriteImm,
        Self::Read,
        Self::CompareSwap,
        Self::FetchAdd,
    ];

    /// All that concern keys of this end.
    pub const KEYS: [Self; 3] = [Self::RegMr, Self::LocalInv, Self::BindMw];

    /// An operation on a key of this end, of which the peer sees nothing.
    pub fn is_key(self) -> bool {
        matches!(self, Self::RegMr | Self::LocalInv | Self::BindMw)
    }

    /// SEND in any form.
    pub fn is_send(self) -> bool {
        matches!(self, Self::Send | Self::SendImm | Self::SendInv)
    }

    /// WRITE in any form.
    pub fn is_write(self) -> bool {
        matches!(self, Self::Write | Self::WriteImm)
    }

    /// An atomic.
    pub fn is_atomic(self) -> bool {
        matches!(self, Self::CompareSwap | Self::FetchAdd)
    }

    /// The peer answers with data: READ and atomics.
    pub fn has_response(self) -> bool {
        self.is_atomic() || self == Self::Read
    }

    /// It uses up a receive.
    pub fn takes_receive(self) -> bool {
        self.is_send() || self == Self::WriteImm
    }

    /// It carries an immediate.
    pub fn has_imm(self) -> bool {
        matches!(self, Self::SendImm | Self::WriteImm)
    }
}

/// A piece of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Address.
    pub addr: u64,
    /// Bytes.
    pub len: u32,
    /// Key.
    pub key: u32,
}

/// What REG_MR and BIND_MW put under a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Named {
    /// Key of the region whose memory it is.
    pub region: u32,
    /// REG_MR: the address of the first byte from now on; BIND_MW: its address in the region.
    pub base: u64,
    /// REG_MR: place of the first byte in the region's memory.
    pub at: usize,
    /// Bytes.
    pub len: u64,
    /// What the key may be used for.
    pub rights: u8,
    /// REG_MR: by the address of a piece of memory, not by a list of pages.
    pub one_piece: bool,
}

/// What must have been seen before a request is posted: as a program waits for one completion before it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gate {
    /// The direction of the request that is waited for.
    pub from: usize,
    /// Its place among the requests of that direction in this round.
    pub request: usize,
    /// For its receive completion at the other end; else for its send completion.
    pub received: bool,
}

/// A send work request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Comes back in the completion.
    pub wr_id: u64,
    /// The operation.
    pub op: Op,
    /// Where the bytes are, or go.
    pub pieces: Vec<Piece>,
    /// The bytes themselves instead.
    pub inline: Option<Vec<u8>>,
    /// It completes with a completion when it is good, too.
    pub signaled: bool,
    /// It raises a solicited event.
    pub solicited: bool,
    /// It waits for READs and atomics before it.
    pub fence: bool,
    /// Immediate, first byte on the wire uppermost; or the key to invalidate.
    pub imm: u32,
    /// Address at the peer.
    pub va: u64,
    /// Key there; of an operation on a key, that key.
    pub rkey: u32,
    /// Compare operand, and what is swapped in or added.
    pub operands: (u64, u64),
    /// REG_MR and BIND_MW: what the key shall name.
    pub named: Option<Named>,
    /// It is posted when this has been seen.
    pub after: Option<Gate>,
}

impl Request {
    /// Bytes of the message.
    pub fn len(&self) -> usize {
        match &self.inline {
            Some(data) => data.len(),
            None => self.pieces.iter().map(|p| p.len as usize).sum(),
        }
    }

    /// A message of no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A receive work request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receive {
    /// Comes back in the completion.
    pub wr_id: u64,
    /// Where the bytes go.
    pub pieces: Vec<Piece>,
}

/// What a queue pair was connected with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QpConfig {
    /// Its number.
    pub qpn: u32,
    /// Path MTU in bytes.
    pub mtu: usize,
    /// First PSN that it sends.
    pub sq_psn: u32,
    /// Time-out: 4.096 us * 2^n; 0: none.
    pub timeout: u8,
    /// Retries before it gives up.
    pub retry_cnt: u8,
    /// The same for a receiver that is not ready; 7: for ever.
    pub rnr_retry: u8,
    /// What it tells a peer for which it has no receive.
    pub min_rnr_timer: u8,
    /// READs and atomics that it may have outstanding.
    pub max_rd_atomic: u8,
    /// What its peer may do.
    pub rights: u8,
    /// The addresses of both ends are IPv6 ones.
    pub v6: bool,
}

/// PSNs are counted up without end from here on, so that they compare as numbers.
const PSN_BASE: u64 = 1 << 24;

/// The first PSN of a queue pair.
pub fn first_psn(wire: u32) -> u64 {
    PSN_BASE + u64::from(wire & 0xff_ffff)
}

/// The PSN that the wire means, which is less than 2^23 away from `near`.
pub fn psn_near(wire: u32, near: u64) -> u64 {
    let distance = (u64::from(wire).wrapping_sub(near) & 0xff_ffff) as i64;
    let distance = if distance >= 1 << 23 {
        distance - (1 << 24)
    } else {
        distance
    };
    near.wrapping_add_signed(distance)
}

/// A PSN as the wire has it.
pub fn psn_wire(psn: u64) -> u32 {
    (psn & 0xff_ffff) as u32
}

/// Nanoseconds of an RNR timer code.
pub fn rnr_timer_ns(code: u8) -> u64 {
    // In steps of 10 us: IBTA volume 1, table 45.
    const STEPS: [u64; 32] = [
        65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072,
        4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
    ];
    STEPS[usize::from(code & 31)] * 10_000
}

/// Nanoseconds of a time-out code.
pub fn timeout_ns(code: u8) -> u64 {
    4096 << code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn psns_are_followed_over_the_wrap_in_both_directions() {
        let first = first_psn(0xff_fffe);
        assert_eq!(psn_near(0x00_0003, first), first + 5);
        assert_eq!(psn_near(0xff_fffe, first + 5), first);
        assert_eq!(psn_wire(first + 2), 0);
        assert_eq!(psn_near(0, first_psn(0)), first_psn(0));
        assert_eq!(psn_near(0xff_ffff, first_psn(0)), first_psn(0) - 1);
    }

    #[test]
    fn timers_are_those_of_the_tables() {
        assert_eq!(rnr_timer_ns(1), 10_000);
        assert_eq!(rnr_timer_ns(12), 640_000);
        assert_eq!(rnr_timer_ns(0), 655_360_000);
        assert_eq!(rnr_timer_ns(31), 491_520_000);
        assert_eq!(timeout_ns(14), 67_108_864);
    }
}
