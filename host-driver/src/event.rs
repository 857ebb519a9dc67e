// SPDX-License-Identifier: Apache-2.0
//! Event queues: number 0 takes the asynchronous events, the others are completion vectors.

use std::collections::VecDeque;

use openrnic_spec::{DbEq, Eqe, EventType, FatalReason};

use crate::bus::{Bus, DmaBuf};
use crate::error::{Doing, Error, Result};
use crate::types::Cqn;

/// An asynchronous event, as ibv_get_async_event(3) returns it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AsyncEvent {
    /// What happened.
    pub event: EventType,
    /// QPN, CQ number, SRQ number or port that it happened to.
    pub number: u32,
    /// Device clock cycle.
    pub timestamp: u64,
}

impl AsyncEvent {
    /// The device cannot read its command ring, so no command completes any more. In other fatal states commands
    /// complete and say so.
    pub(crate) fn breaks_the_ring(&self) -> bool {
        self.event == EventType::DeviceFatal && self.number == FatalReason::CmdRingDma as u32
    }
}

pub(crate) struct EventQueue {
    pub(crate) number: u8,
    pub(crate) ring: DmaBuf,
    pub(crate) log_size: u32,
    consumer: u32,
    /// Completion events not fetched yet (queues from 1 on, and 0 when it is used as a vector).
    pub(crate) completions: VecDeque<Cqn>,
}

impl EventQueue {
    pub(crate) fn new<B: Bus>(bus: &mut B, number: u8, log_size: u32) -> Result<Self> {
        let ring = bus
            .dma_alloc(Eqe::BYTES << log_size, 64)
            .doing("allocating an event queue")?;
        Ok(Self {
            number,
            ring,
            log_size,
            consumer: 0,
            completions: VecDeque::new(),
        })
    }

    /// The doorbell that tells the consumer index and arms the vector.
    pub(crate) fn doorbell(&self) -> u64 {
        let db = DbEq::new()
            .with_eqn(self.number)
            .with_arm(true)
            .with_consumer(self.consumer & 0xff_ffff);
        u64::from_le_bytes(db.0)
    }

    /// Takes the entries in memory; asynchronous events go to `out`. Returns whether there were any.
    pub(crate) fn service<B: Bus>(&mut self, bus: &mut B, out: &mut VecDeque<AsyncEvent>) -> Result<bool> {
        let mut any = false;
        for _ in 0..1u32 << self.log_size {
            let slot = u64::from(self.consumer & ((1 << self.log_size) - 1));
            let mut bytes = [0; Eqe::BYTES];
            bus.dma_read(self.ring.addr + slot * 32, &mut bytes)
                .doing("reading an event")?;
            let entry = Eqe(bytes);
            if entry.phase() != (self.consumer >> self.log_size & 1 == 0) {
                break;
            }
            self.consumer = self.consumer.wrapping_add(1);
            any = true;
            match EventType::try_from(entry.event_()) {
                Ok(EventType::CqComp) => match u16::try_from(entry.number()) {
                    Ok(cqn) => {
                        // One waiting event per CQ is enough, so that the list cannot grow without end.
                        if !self.completions.contains(&Cqn(cqn)) {
                            self.completions.push_back(Cqn(cqn));
                        }
                    }
                    Err(_) => {
                        return Err(Error::protocol(format!(
                            "event queue {}: completion event of CQ {:#x}, which cannot exist",
                            self.number,
                            entry.number()
                        )));
                    }
                },
                Ok(event) => {
                    out.push_back(AsyncEvent {
                        event,
                        number: entry.number(),
                        timestamp: entry.timestamp(),
                    });
                    if out.len() > MAX_ASYNC {
                        out.pop_front();
                    }
                }
                Err(e) => {
                    return Err(Error::protocol(format!(
                        "event queue {}, slot {slot}: {e}",
                        self.number
                    )));
                }
            }
        }
        Ok(any)
    }
}

/// Asynchronous events kept for a caller that does not fetch them; the oldest are lost beyond this.
const MAX_ASYNC: usize = 65_536;
