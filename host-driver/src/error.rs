// SPDX-License-Identifier: Apache-2.0
//! Errors: what went wrong, where, and what to do about it.

use std::fmt;

use openrnic_spec::{CmdOpcode, CmdStatus, FatalReason, GateRule, QpAttrBit};

use crate::bus::BusError;
use crate::types::{Gid, Qpn};

/// What a driver call returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a driver call failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The bus failed.
    #[error("{what}: {cause}")]
    Bus {
        /// What the driver was doing.
        what: &'static str,
        /// The bus's own error.
        cause: BusError,
    },
    /// Config space reads as all ones.
    #[error("no PCIe function answers in config space: is the device powered and linked?")]
    NoFunction,
    /// Another device sits there.
    #[error("the function is {vendor:04x}:{device:04x}, not an OpenRNIC ({want_vendor:04x}:{want_device:04x})")]
    WrongFunction {
        /// Vendor ID found.
        vendor: u16,
        /// Device ID found.
        device: u16,
        /// Vendor ID of an OpenRNIC.
        want_vendor: u16,
        /// Device ID of an OpenRNIC.
        want_device: u16,
    },
    /// What the device says of itself makes no sense.
    #[error("the device describes itself wrongly: {what}")]
    BadDevice {
        /// What, where and what was expected.
        what: String,
    },
    /// Something did not come in time.
    #[error("waited {cycles} clock cycles for {awaited}, in vain{hint}")]
    Timeout {
        /// What was awaited.
        awaited: String,
        /// Bound of the wait in device clock cycles.
        cycles: u64,
        /// What is known besides; starts with a separator or is empty.
        hint: String,
    },
    /// The device stopped.
    #[error("the device is in a fatal state ({reason}): reset it with Device::reset and create the objects again")]
    Fatal {
        /// Why, as the device says.
        reason: FatalReason,
    },
    /// The device refused a command.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// The gate refused a transition: nothing changed.
    #[error(transparent)]
    Gate(#[from] GateRefusal),
    /// The device broke the protocol of rings and queues.
    #[error("the device broke the protocol: {what}")]
    Protocol {
        /// What, and where.
        what: String,
    },
    /// The handle's object is gone.
    #[error("{what} no longer exists: it was destroyed, or the device was reset")]
    Stale {
        /// Kind and number of the object.
        what: String,
    },
    /// The argument can be seen to be wrong without asking the device.
    #[error("{what}")]
    Invalid {
        /// What is wrong, and what would be right.
        what: String,
    },
    /// The object is still used by others (EBUSY).
    #[error("{what} is still in use: {by}")]
    Busy {
        /// The object.
        what: String,
        /// What uses it.
        by: String,
    },
    /// The neighbour table lacks the address.
    #[error("no MAC address is known for {gid}: add it with Device::add_neighbour or set AddressVector::dmac")]
    NoNeighbour {
        /// The destination.
        gid: Gid,
    },
    /// A work request was not posted.
    #[error(transparent)]
    Post(#[from] PostError),
    /// The call came from inside [`crate::Device::with_bus`] of the same device.
    #[error("the driver is busy: a closure given to Device::with_bus must not call the driver")]
    Reentered,
}

impl Error {
    pub(crate) fn invalid(what: impl Into<String>) -> Self {
        Self::Invalid { what: what.into() }
    }

    pub(crate) fn protocol(what: impl Into<String>) -> Self {
        Self::Protocol { what: what.into() }
    }

    /// The refusal, when the gate refused.
    pub fn gate(&self) -> Option<&GateRefusal> {
        match self {
            Self::Gate(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// The status of the command, when the device completed one with an error.
    pub fn status(&self) -> Option<CmdStatus> {
        match self {
            Self::Gate(_) => Some(CmdStatus::GateRefused),
            Self::Command(error) => Some(error.status),
            _ => None,
        }
    }
}

/// Names what was being done when the bus failed.
pub(crate) trait Doing<T> {
    fn doing(self, what: &'static str) -> Result<T>;
}

impl<T> Doing<T> for std::result::Result<T, BusError> {
    fn doing(self, what: &'static str) -> Result<T> {
        self.map_err(|cause| Error::Bus { what, cause })
    }
}

/// A command that completed with an error other than a refusal by the gate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct CommandError {
    /// The command; `Err` holds an opcode that the specification does not know.
    pub opcode: std::result::Result<CmdOpcode, u8>,
    /// Its status.
    pub status: CmdStatus,
    /// The handle that the command named.
    pub handle: u32,
    /// Further detail: for BAD_PARAM the byte offset of the parameter in the command.
    pub detail: u32,
    /// First QP that made the command fail; 0 when the command names none.
    pub offender: Qpn,
    /// Its place in the batch, from 0.
    pub offender_index: u32,
}

impl CommandError {
    /// Name of the field at [`Self::detail`], if one starts there. Of several with the same start, the
    /// first.
    fn parameter(&self) -> String {
        format!("parameter at byte {} of the command", self.detail)
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.opcode {
            Ok(opcode) => write!(f, "{opcode}")?,
            Err(opcode) => write!(f, "command {opcode:#04x}")?,
        }
        write!(f, " (handle {:#x}) failed: {}", self.handle, self.status)?;
        if !self.status.doc().is_empty() {
            write!(f, ", {}", self.status.doc().split(';').next().unwrap_or_default())?;
        }
        match self.status {
            CmdStatus::BadParam => write!(f, ": {}", self.parameter()),
            _ if self.offender.0 != 0 => {
                write!(
                    f,
                    ": QP {} at place {} of the batch",
                    self.offender, self.offender_index
                )
            }
            _ => Ok(()),
        }
    }
}

/// A transition that the gate refused. Neither the offender nor any other QP of the batch changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct GateRefusal {
    /// The command.
    pub command: CmdOpcode,
    /// The rule that refused.
    pub rule: GateRule,
    /// The attributes that the rule names: missing, not allowed, or of a bad value.
    pub attrs: QpAttrBit,
    /// First QP refused.
    pub offender: Qpn,
    /// Its place in the batch, from 0.
    pub offender_index: u32,
    /// QPs in the batch.
    pub batch: u32,
}

impl fmt::Display for GateRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of QP {}", self.command, self.offender)?;
        if self.batch > 1 {
            write!(f, " (place {} of a batch of {})", self.offender_index, self.batch)?;
        }
        write!(f, " was refused and nothing changed: {}", self.rule)?;
        match self.rule {
            GateRule::MissingAttrs => write!(f, "({}): the transition needs these attributes in the mask", self.attrs),
            GateRule::ExcessAttrs => write!(f, "({}): the transition does not allow these attributes", self.attrs),
            GateRule::BadValue => write!(f, "({}): the value is out of range", self.attrs),
            rule if rule.doc().is_empty() => Ok(()),
            rule => write!(f, ": {}", rule.doc()),
        }
    }
}

/// Why a list of work requests was not posted to its end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("work request {bad_wr} of the list (wr_id {wr_id}) was not posted, those before it were: {kind}")]
pub struct PostError {
    /// Place of the first work request that was not posted, from 0. Those before it were posted.
    pub bad_wr: usize,
    /// Its wr_id.
    pub wr_id: u64,
    /// Why.
    pub kind: PostErrorKind,
}

/// Bytes that an atomic works on.
pub(crate) const ATOMIC_BYTES: u64 = 8;

/// Why a work request was not posted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PostErrorKind {
    /// The ring is full (ENOMEM).
    #[error("the queue of {capacity} entries is full; poll completions to free entries")]
    Full {
        /// Entries of the ring.
        capacity: usize,
    },
    /// More SGEs than the queue was created for (EINVAL).
    #[error("{given} SGEs, the queue was created for {max}")]
    TooManySges {
        /// SGEs of the request.
        given: usize,
        /// SGEs that a WQE of this queue holds.
        max: usize,
    },
    /// More inline data than the queue was created for (EINVAL).
    #[error("{given} bytes of inline data, the queue was created for {max}")]
    InlineTooLong {
        /// Bytes of the request.
        given: usize,
        /// Bytes that a WQE of this queue holds.
        max: usize,
    },
    /// An atomic without exactly one SGE of 8 bytes or more for its result, or with inline data (EINVAL).
    #[error("an atomic needs one SGE of {ATOMIC_BYTES} bytes for its result, it has {sges} of {bytes} bytes together")]
    AtomicResult {
        /// SGEs of the request.
        sges: usize,
        /// Their bytes.
        bytes: u64,
    },
    /// The device or the QP type does not know the operation (EINVAL).
    #[error("the device does not support {opcode} on a QP of this type")]
    UnsupportedOpcode {
        /// The operation.
        opcode: openrnic_spec::WqeOpcode,
    },
    /// QPs of this type can be created and moved, but the device moves no data for them (EINVAL).
    #[error("the device has no data path for QPs of type {qp_type}")]
    NoDataPath {
        /// The type.
        qp_type: openrnic_spec::QpType,
    },
    /// The QP receives from a shared receive queue (EINVAL).
    #[error("the QP receives from shared receive queue {srq}: post there")]
    SharedQueue {
        /// The queue.
        srq: crate::types::Srqn,
    },
    /// The state of the QP does not allow to post (EINVAL).
    #[error("the QP is in state {state}")]
    BadState {
        /// The state, as far as the driver knows.
        state: openrnic_spec::QpState,
    },
}

impl PostErrorKind {
    /// The errno that verbs return: ENOMEM (12) or EINVAL (22).
    pub fn errno(&self) -> i32 {
        match self {
            Self::Full { .. } => 12,
            _ => 22,
        }
    }
}
