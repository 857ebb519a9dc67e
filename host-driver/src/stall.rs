// SPDX-License-Identifier: Apache-2.0
//! Why a queue pair does not send: what requester and responder hold of it, and what that means.
//!
//! The words come through the DIAG block of BAR0 and not by a command, so that they also come when the host's memory does not
//! answer the device, and when the command ring stands still.

use std::fmt;

use openrnic_spec::{self as spec, DIAG_SEND_WORDS, DiagSelect, DiagStatus, QpLive, QpState, SqWqe, WqeOpcode, regs};

use crate::bus::Bus;
use crate::device::{Core, lock};
use crate::error::{Doing, Error, Result};
use crate::qp::QueuePair;
use crate::types::Qpn;

/// Words of a look: DIAG_SEND_WORDS of the requester, and the responder's.
const WORDS: u32 = QpLive::BYTES as u32 / 8;
/// Longest wait for one word, in clock cycles. A look waits for the visit of a queue pair that is under way, and that may wait for the
/// host for a while.
const LOOK_CYCLES: u64 = 4096;
/// A tick of the device's timers in picoseconds.
const TICK_PS: i128 = 1_024_000;

/// What the timer of a queue pair does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timer {
    /// It ends at about this clock cycle, as the `CYCLES` register counts.
    Until(u64),
    /// It has ended; the queue pair has not been visited since.
    Over,
    /// It is off: TIMEOUT is 0.
    Off,
}

impl fmt::Display for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Until(cycle) => write!(f, "until cycle {cycle}"),
            Self::Over => f.write_str("the timer has ended"),
            Self::Off => f.write_str("for ever, since TIMEOUT is 0"),
        }
    }
}

/// One thing that a queue pair waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wait {
    /// The table holds no such queue pair (any more).
    Gone,
    /// The device is disabled, not ready or fatal.
    Disabled,
    /// A command's barrier holds up all queue pairs.
    Barrier,
    /// Requester or responder has not come to rest for a look.
    Busy {
        /// The requester, else the responder.
        requester: bool,
    },
    /// The state lets nothing be sent.
    State(QpState),
    /// A work request failed; the rest is flushed when the state is ERR.
    Failed,
    /// The driver has posted more than the device was told of.
    NoDoorbell {
        /// Work requests posted.
        posted: u16,
        /// Those that the device knows.
        told: u16,
    },
    /// Nothing is posted.
    Nothing,
    /// A work request has failed and completes when what is under way of it has ended.
    Failing,
    /// The receiver was not ready; it is asked again after the timer.
    Rnr {
        /// First PSN that is sent again.
        psn: u32,
        /// When.
        timer: Timer,
        /// RNR NAKs so far.
        tries: u8,
        /// RNR_RETRY; 7 is endless.
        of: u8,
    },
    /// SQD: nothing new is begun.
    Drain {
        /// What was begun has ended.
        drained: bool,
    },
    /// As many messages are in flight as may be.
    Records {
        /// How many.
        records: u8,
        /// One of them is so long that no other may stand beside it.
        alone: bool,
    },
    /// The WQE is being read from host memory.
    WqeRead {
        /// Its number.
        wqe: u16,
    },
    /// The WQE is not on chip, and others are being read.
    WqeQueue {
        /// Its number.
        wqe: u16,
    },
    /// The WQE has the fence flag.
    Fence {
        /// Its number.
        wqe: u16,
        /// What it waits for.
        outstanding: u8,
        /// These are READs and atomics, else all messages before it.
        reads: bool,
    },
    /// As many READs and atomics are in flight as the peer takes.
    ReadDepth {
        /// The WQE that may not begin.
        wqe: u16,
        /// In flight.
        outstanding: u8,
        /// MAX_RD_ATOMIC.
        max: u8,
    },
    /// Packets wait for their payload from host memory, or for the wire.
    Transmit,
    /// Something can be sent: the queue pair waits for its turn.
    Turn {
        /// The WQE that is next.
        wqe: u16,
        /// The PSN that is next.
        psn: u32,
        /// It was sent before.
        again: bool,
    },
    /// The peer has not acknowledged.
    Ack {
        /// Oldest PSN without acknowledge.
        psn: u32,
        /// Newest PSN that was used.
        last: u32,
        /// How long.
        timer: Timer,
        /// Time-outs since the last progress.
        tries: u8,
        /// RETRY_CNT.
        of: u8,
    },
    /// The peer has not answered a READ or atomic.
    Response {
        /// PSN of the response.
        psn: u32,
        /// READs and atomics in flight.
        outstanding: u8,
        /// How long.
        timer: Timer,
        /// Time-outs since the last progress.
        tries: u8,
        /// RETRY_CNT.
        of: u8,
    },
    /// What the peer sent is being written to host memory.
    Placing,
    /// Everything is acknowledged: the completions are on their way.
    Completing,
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tries = |tries: u8, of: u8| match tries {
            0 => format!("then the first of {of} retries"),
            n if n >= of => format!("all {of} retries are used up"),
            n => format!("try {n} of {of}"),
        };
        match self {
            Self::Gone => f.write_str("the device holds no such queue pair"),
            Self::Disabled => f.write_str("the device is disabled, not ready or fatal"),
            Self::Barrier => f.write_str("a command that waits for everything under way holds up all queue pairs"),
            Self::Busy { requester: true } => f.write_str("the requester is held up by another queue pair's visit"),
            Self::Busy { requester: false } => {
                f.write_str("the responder is held up: a packet waits for host memory or for a key")
            }
            Self::State(state) => write!(f, "state {state} cannot send"),
            Self::Failed => {
                f.write_str("a work request failed: nothing is sent until the queue pair goes through RESET")
            }
            Self::NoDoorbell { posted, told } => write!(
                f,
                "no doorbell: {} work requests are posted of which the device was not told (posted {posted}, told {told})",
                posted.wrapping_sub(*told)
            ),
            Self::Nothing => f.write_str("nothing is posted"),
            Self::Failing => f.write_str("a work request failed and completes when nothing of it is under way"),
            Self::Rnr {
                psn,
                timer,
                tries,
                of: 7,
            } => {
                write!(
                    f,
                    "RNR timer {timer}: the receiver was not ready for PSN {psn:#x} (RNR NAK {tries}, endless)"
                )
            }
            Self::Rnr { psn, timer, tries, of } => {
                write!(
                    f,
                    "RNR timer {timer}: the receiver was not ready for PSN {psn:#x} (RNR NAK {tries} of {of})"
                )
            }
            Self::Drain { drained: true } => f.write_str("SQD drained: nothing is begun until RTS"),
            Self::Drain { drained: false } => f.write_str("SQD: nothing is begun, what was begun has not ended"),
            Self::Records { alone: true, .. } => {
                f.write_str("a message of more than 65536 packets is in flight or next: it stands alone")
            }
            Self::Records { records, alone: false } => {
                write!(f, "{records} messages are in flight, as many as may be")
            }
            Self::WqeRead { wqe } => write!(f, "the read of WQE {wqe} from host memory has no answer yet"),
            Self::WqeQueue { wqe } => write!(f, "WQE {wqe} is not on chip, and its read has not begun"),
            Self::Fence {
                wqe,
                outstanding,
                reads: true,
            } => {
                write!(f, "fence: WQE {wqe} waits for {outstanding} READs or atomics before it")
            }
            Self::Fence {
                wqe,
                outstanding,
                reads: false,
            } => {
                write!(f, "fence: WQE {wqe} waits for all {outstanding} messages before it")
            }
            Self::ReadDepth { wqe, outstanding, max } => write!(
                f,
                "read/atomic depth full: {outstanding} of {max} outstanding, WQE {wqe} waits"
            ),
            Self::Transmit => f.write_str("packets wait for their payload from host memory or for the wire"),
            Self::Turn { wqe, psn, again } => {
                let what = if *again { "sent again" } else { "sent" };
                write!(f, "PSN {psn:#x} (WQE {wqe}) can be {what}: it waits for its turn")
            }
            Self::Ack {
                psn,
                last,
                timer,
                tries: n,
                of,
            } => {
                write!(
                    f,
                    "waits for the ACK of PSN {psn:#x} (sent up to {last:#x}) {timer}, {}",
                    tries(*n, *of)
                )
            }
            Self::Response {
                psn,
                outstanding,
                timer,
                tries: n,
                of,
            } => write!(
                f,
                "waits for the response of PSN {psn:#x} ({outstanding} READs or atomics outstanding) {timer}, {}",
                tries(*n, *of)
            ),
            Self::Placing => f.write_str("data of READs or atomics is being written to host memory"),
            Self::Completing => f.write_str("all is acknowledged: completions are on their way"),
        }
    }
}

/// A queue pair as requester and responder hold it, and what it waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnosis {
    /// Its number.
    pub qpn: Qpn,
    /// The words as the device gave them; those of a side that did not come to rest are 0.
    pub live: QpLive,
    /// The requester answered.
    pub requester: bool,
    /// The responder answered.
    pub responder: bool,
    /// It changed from reading to reading: it is at work.
    pub moving: bool,
    /// DMA reads of the device without an answer.
    pub reads: u8,
    /// Clock cycle of the look, as the `CYCLES` register counts.
    pub cycle: u64,
    /// Send work requests posted, as the driver counts.
    pub posted: u16,
    /// Entries of the send and the receive ring.
    pub rings: (usize, usize),
    /// What it waits for; the first is what keeps it from sending, the others are what that hangs on.
    pub waits: Vec<Wait>,
}

impl Diagnosis {
    /// Whether there is nothing to be done: nothing is posted, and nothing is in the way of what may be.
    pub fn is_idle(&self) -> bool {
        let at_rest = matches!(self.waits[..], [Wait::Nothing] | [Wait::State(_), Wait::Nothing]);
        at_rest && !self.live.in_send() && !self.live.in_write() && self.live.rd_waiting() == 0
    }
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let l = &self.live;
        let state = QpState::try_from(l.state()).map_or("?", QpState::name);
        write!(f, "QP {} in {state} at cycle {}", self.qpn, self.cycle)?;
        if self.moving {
            f.write_str(", at work")?;
        }
        for (i, wait) in self.waits.iter().enumerate() {
            write!(f, "\n  {} {wait}", if i == 0 { "->" } else { "  " })?;
        }
        if self.requester && l.live() {
            write!(
                f,
                "\n  PSNs      next {:#x}, oldest unacknowledged {:#x}, first unused {:#x}",
                l.next_psn(),
                l.una_psn(),
                l.top_psn()
            )?;
            write!(
                f,
                "\n  send      {} posted, {} told, {} begun, {} completed of a ring of {}; next WQE {} at byte {}",
                self.posted,
                l.sq_prod(),
                l.sq_fresh(),
                l.sq_cons(),
                self.rings.0,
                l.snd_wqe(),
                l.snd_off()
            )?;
            write!(
                f,
                "\n  in flight {} messages, {} of {} READs and atomics",
                l.records(),
                l.rd_count(),
                l.max_rd_atomic()
            )?;
            write!(
                f,
                "\n  retries   {} of {}, RNR {} of {}; timeout code {}; credits: none are used",
                l.retries(),
                l.retry_cnt(),
                l.rnr_tries(),
                l.rnr_retry(),
                l.timeout()
            )?;
        }
        if self.responder && l.recv_live() {
            write!(
                f,
                "\n  responder expects PSN {:#x}, MSN {}, {} receives told, next {} of a ring of {}",
                l.epsn(),
                l.msn(),
                l.rq_prod(),
                l.rq_next(),
                self.rings.1
            )?;
            for (there, what) in [
                (l.recv_halted(), "refused a request".to_owned()),
                (
                    l.nak_sent(),
                    "a NAK is out and what it asks for has not come".to_owned(),
                ),
                (l.in_send(), format!("{} bytes into a SEND", l.msg_done())),
                (l.in_write(), format!("{} bytes into a WRITE", l.msg_done())),
                (
                    l.rd_waiting() != 0,
                    format!("{} responses to READs or atomics are due", l.rd_waiting()),
                ),
                (l.ack_waiting(), "an acknowledge waits behind them".to_owned()),
            ] {
                if there {
                    write!(f, "; {what}")?;
                }
            }
        }
        write!(f, "\n  device    {} DMA reads without an answer", self.reads)
    }
}

impl<B: Bus> Core<B> {
    /// Waits until no look is under way. False: it takes too long.
    fn look_done(&mut self) -> Result<bool> {
        let start = self.bus.now_cycles();
        let mut step = 4;
        while DiagStatus(self.read32(regs::DIAG_STATUS)?.to_le_bytes()).busy() {
            if self.bus.now_cycles().saturating_sub(start) >= LOOK_CYCLES {
                return Ok(false);
            }
            self.bus.advance(step).doing("waiting for a look at a queue pair")?;
            step = (step * 2).min(256);
        }
        Ok(true)
    }

    /// The words from `range`; false when they do not come.
    fn words(&mut self, qpn: Qpn, range: std::ops::Range<u32>, live: &mut QpLive) -> Result<bool> {
        for word in range {
            if !self.look_done()? {
                return Ok(false);
            }
            let select = DiagSelect::new().with_qpn(qpn.0).with_word(word as u8);
            self.write32(regs::DIAG_SELECT, u32::from_le_bytes(select.0))?;
            if !self.look_done()? {
                return Ok(false);
            }
            let at = self.map.at(regs::DIAG_DATA);
            let value = self.bus.mmio_read64(at).doing("reading a look at a queue pair")?;
            if let Some(place) = live.0.chunks_exact_mut(8).nth(word as usize) {
                place.copy_from_slice(&value.to_le_bytes());
            }
        }
        Ok(true)
    }

    fn diagnose(&mut self, qpn: Qpn) -> Result<Diagnosis> {
        let mut live = QpLive::new();
        let (mut requester, mut responder) = (false, false);
        let mut moving = true;
        // The words are read one by one: of a queue pair that stands still they belong together, which the second reading shows.
        for _ in 0..3 {
            let mut now = QpLive::new();
            requester = self.words(qpn, 0..DIAG_SEND_WORDS, &mut now)?;
            responder = self.words(qpn, DIAG_SEND_WORDS..WORDS, &mut now)?;
            moving = QpLive(now.0).with_late(0) != QpLive(live.0).with_late(0);
            live = now;
            if !moving {
                break;
            }
        }
        let reads = DiagStatus(self.read32(regs::DIAG_STATUS)?.to_le_bytes()).reads();
        let at = self.map.at(regs::CTRL_CYCLES);
        let cycle = self.bus.mmio_read64(at).doing("reading the cycle counter")?;
        let Some(qp) = self.qps.get(&qpn.0) else {
            return Err(Error::Stale {
                what: format!("queue pair {qpn}"),
            });
        };
        let (posted, rings) = (qp.sq.producer(), (qp.sq.capacity(), qp.rq.capacity()));
        let wqe_at = qp.sq.addr_of(live.snd_wqe());
        let mut bytes = [0; SqWqe::BYTES];
        self.bus.dma_read(wqe_at, &mut bytes).doing("reading a work request")?;
        let clk_ps = i128::from(self.info.caps.clk_period_ps.max(1));
        // Of 36 bits, the upper one the sign.
        let late = i128::from((live.late() << 28) as i64 >> 28);
        let timer = match (live.timer_on(), late < 0) {
            (false, _) => Timer::Off,
            (true, false) => Timer::Over,
            (true, true) => Timer::Until((i128::from(cycle) - late * TICK_PS / clk_ps) as u64),
        };
        let mut d = Diagnosis {
            qpn,
            live,
            requester,
            responder,
            moving,
            reads,
            cycle,
            posted,
            rings,
            waits: Vec::new(),
        };
        d.waits = d.reasons(&SqWqe(bytes), timer);
        Ok(d)
    }
}

impl Diagnosis {
    /// What the words mean, in the order in which the requester itself asks.
    fn reasons(&self, wqe: &SqWqe, timer: Timer) -> Vec<Wait> {
        let l = &self.live;
        let mut waits = Vec::new();
        if !self.requester {
            waits.push(Wait::Busy { requester: true });
            return waits;
        }
        if !self.responder {
            waits.push(Wait::Busy { requester: false });
        }
        if !l.valid() || l.qpn() != self.qpn.0 {
            return vec![Wait::Gone];
        }
        if !l.enabled() {
            waits.push(Wait::Disabled);
        }
        if l.stopped() {
            waits.push(Wait::Barrier);
        }
        let state = QpState::try_from(l.state()).unwrap_or(QpState::Err);
        // A section of an earlier life says nothing.
        let cons = if l.live() { l.sq_cons() } else { 0 };
        if !matches!(state, QpState::Rts | QpState::Sqd) {
            waits.push(Wait::State(state));
            if self.posted == cons {
                waits.push(Wait::Nothing);
            }
            return waits;
        }
        if self.posted != l.sq_prod() {
            waits.push(Wait::NoDoorbell {
                posted: self.posted,
                told: l.sq_prod(),
            });
        }
        if !l.live() {
            waits.push(if l.sq_prod() == 0 {
                Wait::Nothing
            } else {
                Wait::Turn {
                    wqe: 0,
                    psn: 0,
                    again: false,
                }
            });
            return waits;
        }
        if l.halted() {
            waits.push(Wait::Failed);
            return waits;
        }
        if l.rem_fail() {
            waits.push(Wait::Failing);
        } else if l.rnr_wait() {
            waits.push(Wait::Rnr {
                psn: l.una_psn(),
                timer,
                tries: l.rnr_tries(),
                of: l.rnr_retry(),
            });
            return waits;
        } else {
            self.next(wqe, state, &mut waits);
        }
        self.outstanding(timer, &mut waits);
        if waits.is_empty() {
            waits.push(if cons == l.sq_prod() {
                Wait::Nothing
            } else {
                Wait::Completing
            });
        }
        waits
    }

    /// Why the next packet does not go, if there is one.
    fn next(&self, wqe: &SqWqe, state: QpState, waits: &mut Vec<Wait>) {
        let l = &self.live;
        let number = l.snd_wqe();
        let fresh = number == l.sq_fresh() && l.snd_off() == 0;
        if number == l.sq_prod() && l.snd_off() == 0 && !l.resync() {
            return;
        }
        if l.loc_fail() && !l.resync() {
            waits.push(Wait::Failing);
            return;
        }
        let opcode = WqeOpcode::try_from(wqe.opcode());
        let is_local = matches!(opcode, Ok(WqeOpcode::LocalInv | WqeOpcode::RegMr | WqeOpcode::BindMw));
        let is_read = matches!(
            opcode,
            Ok(WqeOpcode::RdmaRead | WqeOpcode::AtomicCmpAndSwp | WqeOpcode::AtomicFetchAndAdd)
        );
        waits.push(if fresh && state == QpState::Sqd && !l.resync() {
            Wait::Drain {
                drained: l.records() == 0 && l.sq_cons() == l.sq_fresh(),
            }
        } else if fresh && l.records_full() && !l.resync() {
            Wait::Records {
                records: l.records(),
                alone: l.alone(),
            }
        } else if l.wqe_pending() {
            Wait::WqeRead { wqe: number }
        } else if l.resync() {
            Wait::Turn {
                wqe: number,
                psn: l.una_psn(),
                again: true,
            }
        } else if !l.wqe_here() {
            Wait::WqeQueue { wqe: number }
        } else if fresh && wqe.fence() && is_local && l.records() != 0 {
            Wait::Fence {
                wqe: number,
                outstanding: l.records(),
                reads: false,
            }
        } else if fresh && wqe.fence() && !is_local && l.rd_count() != 0 {
            Wait::Fence {
                wqe: number,
                outstanding: l.rd_count(),
                reads: true,
            }
        } else if fresh && is_read && l.rd_count() >= l.max_rd_atomic() {
            Wait::ReadDepth {
                wqe: number,
                outstanding: l.rd_count(),
                max: l.max_rd_atomic(),
            }
        } else if l.tx_waiting() {
            Wait::Transmit
        } else {
            Wait::Turn {
                wqe: number,
                psn: l.next_psn(),
                again: l.next_psn() != l.top_psn(),
            }
        });
    }

    /// What is on its way.
    fn outstanding(&self, timer: Timer, waits: &mut Vec<Wait>) {
        let l = &self.live;
        if l.tx_waiting() && !waits.contains(&Wait::Transmit) {
            waits.push(Wait::Transmit);
        }
        if l.una_psn() != l.top_psn() {
            let (tries, of) = (l.retries(), l.retry_cnt());
            // Responses acknowledge; the one that is due may lie behind requests that have no response.
            let answer = l.rd_count() != 0 && l.rd_psn() == l.una_psn();
            waits.push(if answer {
                Wait::Response {
                    psn: l.rd_psn(),
                    outstanding: l.rd_count(),
                    timer,
                    tries,
                    of,
                }
            } else {
                Wait::Ack {
                    psn: l.una_psn(),
                    last: l.top_psn().wrapping_sub(1) & 0xff_ffff,
                    timer,
                    tries,
                    of,
                }
            });
        }
        if l.rx_waiting() {
            waits.push(Wait::Placing);
        }
    }
}

impl<B: Bus> QueuePair<B> {
    /// Looks at what requester and responder hold of the queue pair, and says what it waits for. Nothing of it changes, and it works
    /// while the host's memory does not answer the device and while the command ring stands still.
    ///
    /// # Errors
    /// Those of the bus; [`Error::Stale`].
    pub fn diagnose(&self) -> Result<Diagnosis> {
        let mut core = lock(&self.device().core)?;
        core.alive(self.life(), "queue pair", self.qpn())?;
        core.diagnose(self.qpn())
    }
}

const _: () = assert!(WORDS <= 8 && spec::QpLive::BYTES == 64);
