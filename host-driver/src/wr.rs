// SPDX-License-Identifier: Apache-2.0
//! Work requests and work completions.

use openrnic_spec::{Access, VendorErr, WcOpcode, WcStatus, WqeOpcode};

use crate::types::{Iova, LKey, Qpn, RKey};

/// A piece of local memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sge {
    /// Its first byte.
    pub addr: Iova,
    /// Bytes.
    pub length: u32,
    /// Key of the region that it lies in.
    pub lkey: LKey,
}

/// A send work request, as ibv_send_wr.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendWr {
    /// Returned in the completion.
    pub wr_id: u64,
    /// The operation.
    pub opcode: WqeOpcode,
    /// Local memory: gathered, or scattered to (READ and atomics).
    pub sges: Vec<Sge>,
    /// Payload carried in the WQE itself instead of `sges`.
    pub inline_data: Option<Vec<u8>>,
    /// Write a completion even if the QP does not do so for every send.
    pub signaled: bool,
    /// Raise a solicited event at the receiver.
    pub solicited: bool,
    /// Wait for earlier READs and atomics.
    pub fence: bool,
    /// Immediate, as a number in network order; for SEND_WITH_INV the R_Key to invalidate.
    pub imm: u32,
    /// Remote address.
    pub remote_addr: Iova,
    /// Remote key.
    pub rkey: RKey,
    /// Atomics: compare operand, and swap or add operand.
    pub atomic: (u64, u64),
    /// REG_MR and BIND_MW: what `rkey` shall name.
    pub named: Option<Named>,
}

/// The memory that REG_MR or BIND_MW puts under a key. Not checked: the device does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Named {
    /// REG_MR: address of the first byte as users and peers name it; BIND_MW: address of the first byte in the region.
    pub addr: Iova,
    /// Bytes.
    pub length: u64,
    /// What the key may be used for.
    pub access: Access,
    /// BIND_MW: the region.
    pub lkey: LKey,
    /// REG_MR: bus address of the first byte, or of the page list.
    pub host_addr: u64,
    /// REG_MR: log2 of the page size, 0 without a page list.
    pub log_page: u8,
    /// REG_MR: place of the first byte in its page.
    pub page_offset: u32,
}

/// The same key with the next variable part, as ibv_inc_rkey(3).
pub fn inc_rkey(key: RKey) -> RKey {
    RKey(key.0 & !0xff | (key.0.wrapping_add(1) & 0xff))
}

impl SendWr {
    /// A request with everything else off, signaled.
    pub fn new(wr_id: u64, opcode: WqeOpcode, sges: Vec<Sge>) -> Self {
        Self {
            wr_id,
            opcode,
            sges,
            inline_data: None,
            signaled: true,
            solicited: false,
            fence: false,
            imm: 0,
            remote_addr: Iova(0),
            rkey: RKey(0),
            atomic: (0, 0),
            named: None,
        }
    }

    /// LOCAL_INV of the key of a fast-registration region or of a window.
    pub fn local_inv(wr_id: u64, key: RKey) -> Self {
        Self {
            rkey: key,
            ..Self::new(wr_id, WqeOpcode::LocalInv, vec![])
        }
    }

    /// BIND_MW: binds a window of type 2 to a part of the region `lkey`; from then on `key`, the window's own with a new variable part,
    /// names it.
    pub fn bind_mw(wr_id: u64, key: RKey, lkey: LKey, addr: Iova, length: u64, access: Access) -> Self {
        Self {
            rkey: key,
            named: Some(Named {
                addr,
                length,
                access,
                lkey,
                host_addr: 0,
                log_page: 0,
                page_offset: 0,
            }),
            ..Self::new(wr_id, WqeOpcode::BindMw, vec![])
        }
    }

    /// REG_MR: registers memory under `key`, that of a fast-registration region with a new variable part.
    pub fn reg_mr(wr_id: u64, key: RKey, named: Named) -> Self {
        Self {
            rkey: key,
            named: Some(named),
            ..Self::new(wr_id, WqeOpcode::RegMr, vec![])
        }
    }

    /// SEND.
    pub fn send(wr_id: u64, sges: Vec<Sge>) -> Self {
        Self::new(wr_id, WqeOpcode::Send, sges)
    }

    /// RDMA WRITE.
    pub fn write(wr_id: u64, sges: Vec<Sge>, remote_addr: Iova, rkey: RKey) -> Self {
        Self {
            remote_addr,
            rkey,
            ..Self::new(wr_id, WqeOpcode::RdmaWrite, sges)
        }
    }

    /// RDMA READ.
    pub fn read(wr_id: u64, sges: Vec<Sge>, remote_addr: Iova, rkey: RKey) -> Self {
        Self {
            remote_addr,
            rkey,
            ..Self::new(wr_id, WqeOpcode::RdmaRead, sges)
        }
    }

    /// Atomic compare and swap (IBV_WR_ATOMIC_CMP_AND_SWP): the 8 bytes at `remote_addr`, which must be a multiple of 8, become
    /// `swap` if they are `compare`. `result`, 8 bytes or more, receives what they were before. All are numbers in host order.
    pub fn compare_and_swap(wr_id: u64, result: Sge, remote_addr: Iova, rkey: RKey, compare: u64, swap: u64) -> Self {
        Self {
            remote_addr,
            rkey,
            atomic: (compare, swap),
            ..Self::new(wr_id, WqeOpcode::AtomicCmpAndSwp, vec![result])
        }
    }

    /// Atomic fetch and add (IBV_WR_ATOMIC_FETCH_AND_ADD): `add` is added, modulo 2^64; all else as with
    /// [`compare_and_swap`](Self::compare_and_swap).
    pub fn fetch_and_add(wr_id: u64, result: Sge, remote_addr: Iova, rkey: RKey, add: u64) -> Self {
        Self {
            remote_addr,
            rkey,
            atomic: (0, add),
            ..Self::new(wr_id, WqeOpcode::AtomicFetchAndAdd, vec![result])
        }
    }

    /// SEND that invalidates `key` at the receiver before it completes there (IBV_WR_SEND_WITH_INV).
    pub fn send_with_inv(wr_id: u64, sges: Vec<Sge>, key: RKey) -> Self {
        Self {
            imm: key.0,
            ..Self::new(wr_id, WqeOpcode::SendWithInv, sges)
        }
    }

    /// The same after all READs and atomics before it (IBV_SEND_FENCE); an operation on a key after everything before it.
    #[must_use]
    pub fn fenced(mut self) -> Self {
        self.fence = true;
        self
    }

    /// The same with an immediate: SEND and WRITE become SEND_WITH_IMM and WRITE_WITH_IMM.
    #[must_use]
    pub fn with_imm(mut self, imm: u32) -> Self {
        self.imm = imm;
        self.opcode = match self.opcode {
            WqeOpcode::Send => WqeOpcode::SendWithImm,
            WqeOpcode::RdmaWrite => WqeOpcode::RdmaWriteWithImm,
            other => other,
        };
        self
    }

    /// The same with its payload in the WQE.
    #[must_use]
    pub fn with_inline(mut self, data: Vec<u8>) -> Self {
        self.inline_data = Some(data);
        self.sges.clear();
        self
    }

    /// The same without a completion of its own.
    #[must_use]
    pub fn unsignaled(mut self) -> Self {
        self.signaled = false;
        self
    }
}

/// A receive work request, as ibv_recv_wr.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecvWr {
    /// Returned in the completion.
    pub wr_id: u64,
    /// Where the message goes.
    pub sges: Vec<Sge>,
}

/// A completion, as ibv_wc. Of a failed one only `wr_id`, `status`, `qpn`, `is_recv` and `vendor_err`
/// mean something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkCompletion {
    /// That of the work request.
    pub wr_id: u64,
    /// How it ended.
    pub status: WcStatus,
    /// The operation.
    pub opcode: WcOpcode,
    /// The queue pair.
    pub qpn: Qpn,
    /// Of the receive queue.
    pub is_recv: bool,
    /// Bytes received or read.
    pub byte_len: u32,
    /// Immediate as a number in network order, if there is one.
    pub imm: Option<u32>,
    /// R_Key that was invalidated, if one was.
    pub invalidated: Option<RKey>,
    /// The sender (UD).
    pub src_qpn: Qpn,
    /// The first 40 bytes are a GRH (UD).
    pub grh: bool,
    /// The device's own detail; a number that [`VendorErr`] may not know.
    pub vendor_err: u8,
    /// Device clock cycle.
    pub timestamp: u64,
}

impl WorkCompletion {
    /// Name of the vendor error, if it has one.
    pub fn vendor_name(&self) -> Option<&'static str> {
        VendorErr::try_from(self.vendor_err).ok().map(VendorErr::name)
    }
}
