// SPDX-License-Identifier: Apache-2.0
//! The command ring: 64-byte commands, 32-byte completions that carry the command's tag, many
//! outstanding.

use std::collections::HashMap;

use openrnic_spec::{CmdCompletion, CmdHeader, CmdOpcode, CmdStatus, GateRule, QpAttrBit};

use crate::bus::{Bus, DmaBuf};
use crate::error::{CommandError, Doing, Error, GateRefusal, Result};
use crate::types::Qpn;

/// Names a command that was submitted.
#[must_use = "the command's completion is awaited with its ticket"]
#[derive(Debug, PartialEq, Eq)]
pub struct Ticket {
    pub(crate) tag: u16,
    pub(crate) life: u64,
}

/// A command under way.
#[derive(Debug, Clone, Copy)]
struct Pending {
    opcode: u8,
    handle: u32,
}

/// What a command returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CmdResult {
    /// Object made, or first QPN.
    pub handle: u32,
    /// QPs made or changed.
    pub count: u32,
    /// Clock cycles from the command decoded to its completion handed over, as measured by the device.
    pub exec_cycles: u32,
}

pub(crate) struct CmdRing {
    pub(crate) ring: DmaBuf,
    pub(crate) completions: DmaBuf,
    log_size: u32,
    producer: u32,
    consumer: u32,
    next_tag: u16,
    pending: HashMap<u16, Pending>,
    done: HashMap<u16, (Pending, CmdCompletion)>,
}

impl CmdRing {
    /// Rings of `1 << log_size` entries in memory; the device is not told yet.
    pub(crate) fn new<B: Bus>(bus: &mut B, log_size: u32) -> Result<Self> {
        let entries = 1usize << log_size;
        let ring = bus
            .dma_alloc(entries * CmdHeader::BYTES, 64)
            .doing("allocating the command ring")?;
        let completions = bus
            .dma_alloc(entries * CmdCompletion::BYTES, 64)
            .doing("allocating the ring of command completions")?;
        Ok(Self {
            ring,
            completions,
            log_size,
            producer: 0,
            consumer: 0,
            next_tag: 0,
            pending: HashMap::new(),
            done: HashMap::new(),
        })
    }

    pub(crate) fn log_size(&self) -> u32 {
        self.log_size
    }

    pub(crate) fn is_full(&self) -> bool {
        self.producer.wrapping_sub(self.consumer) >= 1 << self.log_size
    }

    pub(crate) fn outstanding(&self) -> usize {
        self.pending.len()
    }

    /// Writes a command into the ring with a tag of its own; returns the tag and the producer index for
    /// the doorbell.
    pub(crate) fn push<B: Bus>(&mut self, bus: &mut B, command: [u8; 64]) -> Result<(u16, u32)> {
        let mut tag = self.next_tag;
        while self.pending.contains_key(&tag) || self.done.contains_key(&tag) {
            tag = tag.wrapping_add(1);
            if tag == self.next_tag {
                return Err(Error::invalid(
                    "65536 commands are not waited for: wait for their completions",
                ));
            }
        }
        self.next_tag = tag.wrapping_add(1);
        let command = CmdHeader(command).with_tag(tag);
        let slot = u64::from(self.producer & ((1 << self.log_size) - 1));
        bus.dma_write(self.ring.addr + slot * 64, command.as_bytes())
            .doing("writing a command")?;
        self.pending.insert(
            tag,
            Pending {
                opcode: command.opcode(),
                handle: command.handle(),
            },
        );
        self.producer = self.producer.wrapping_add(1);
        Ok((tag, self.producer & 0xffff))
    }

    /// Takes the completions that are in memory.
    pub(crate) fn service<B: Bus>(&mut self, bus: &mut B) -> Result<()> {
        // A full lap at most: a device that flips phases by itself must not keep the driver here.
        for _ in 0..1u32 << self.log_size {
            let slot = u64::from(self.consumer & ((1 << self.log_size) - 1));
            let mut bytes = [0; CmdCompletion::BYTES];
            bus.dma_read(self.completions.addr + slot * 32, &mut bytes)
                .doing("reading a command completion")?;
            let completion = CmdCompletion(bytes);
            let lap = self.consumer >> self.log_size;
            if completion.phase() != (lap & 1 == 0) {
                break;
            }
            if self.producer == self.consumer {
                return Err(Error::protocol(format!(
                    "slot {slot} of the completion ring holds a completion (tag {}), but no command is outstanding",
                    completion.tag()
                )));
            }
            self.consumer = self.consumer.wrapping_add(1);
            let Some(pending) = self.pending.remove(&completion.tag()) else {
                return Err(Error::protocol(format!(
                    "slot {slot} of the completion ring completes tag {}, which is not outstanding",
                    completion.tag()
                )));
            };
            if pending.opcode != completion.opcode() {
                return Err(Error::protocol(format!(
                    "tag {} was {}, its completion says {}",
                    completion.tag(),
                    opcode_name(pending.opcode),
                    opcode_name(completion.opcode())
                )));
            }
            self.done.insert(completion.tag(), (pending, completion));
        }
        Ok(())
    }

    /// The completion of a command, if it came: the raw bytes.
    pub(crate) fn take(&mut self, tag: u16) -> Option<CmdCompletion> {
        self.done.remove(&tag).map(|(_, completion)| completion)
    }

    /// Handle that a command named.
    pub(crate) fn handle_of(&self, tag: u16) -> u32 {
        self.done.get(&tag).map_or(0, |(pending, _)| pending.handle)
    }

    pub(crate) fn is_done(&self, tag: u16) -> bool {
        self.done.contains_key(&tag)
    }

    /// What the driver waits for, in words.
    pub(crate) fn describe(&self, tag: u16) -> String {
        match self.pending.get(&tag) {
            Some(pending) => format!(
                "the completion of {} (tag {tag}, handle {:#x})",
                opcode_name(pending.opcode),
                pending.handle
            ),
            None => format!("the completion of a command with tag {tag}, which is not outstanding"),
        }
    }
}

pub(crate) fn opcode_name(opcode: u8) -> String {
    CmdOpcode::try_from(opcode).map_or_else(|_| format!("command {opcode:#04x}"), |o| o.to_string())
}

/// Turns a completion into a result or an error.
pub(crate) fn judge(completion: &CmdCompletion, handle: u32, batch: u32) -> Result<CmdResult> {
    let opcode = CmdOpcode::try_from(completion.opcode()).map_err(|_| completion.opcode());
    let status = CmdStatus::try_from(completion.status()).map_err(|e| {
        Error::protocol(format!(
            "{} completed with a status that does not exist: {e}",
            opcode_name(completion.opcode())
        ))
    })?;
    match (status, opcode) {
        (CmdStatus::Ok, _) => Ok(CmdResult {
            handle: completion.handle(),
            count: completion.count(),
            exec_cycles: completion.exec_cycles(),
        }),
        (CmdStatus::GateRefused, Ok(command)) => {
            let rule = match GateRule::try_from(completion.rule()) {
                Ok(rule) if rule != GateRule::None => rule,
                _ => {
                    return Err(Error::protocol(format!(
                        "{command} was refused by a rule that does not exist: {:#04x}",
                        completion.rule()
                    )));
                }
            };
            Err(GateRefusal {
                command,
                rule,
                attrs: QpAttrBit(completion.detail()),
                offender: Qpn(completion.offender()),
                offender_index: completion.offender_index(),
                batch,
            }
            .into())
        }
        (status, opcode) => Err(CommandError {
            opcode,
            status,
            handle,
            detail: completion.detail(),
            offender: Qpn(completion.offender()),
            offender_index: completion.offender_index(),
        }
        .into()),
    }
}
