// SPDX-License-Identifier: Apache-2.0
//! The host's end of a session: frames are numbered, acknowledged, sent again, and given up in the end.

use std::collections::VecDeque;

use openrnic_spec::{LINK_MAGIC, LINK_SLOTS, LinkControl, LinkHead, LinkKind, LinkWelcome};

use crate::frame::{Deframer, Frame};

/// Frames from the device that there is always room for: the host's memory takes them.
const WINDOW: u8 = 8;

/// Why a session does not go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// Nobody answered the HELLO.
    #[error(
        "no answer from a board within {ms} ms ({tries} tries, {bad} broken frames seen): is it connected and loaded, and is the rate right?"
    )]
    NoAnswer {
        /// Time waited.
        ms: u64,
        /// HELLOs sent.
        tries: u32,
        /// Things that came and were no frames.
        bad: u64,
    },
    /// The answer is not that of a board of this kind.
    #[error("what answers is no OpenRNIC host link: its WELCOME begins with {magic:#010x}, not {LINK_MAGIC:#010x}")]
    Stranger {
        /// What it said.
        magic: u32,
    },
    /// The board was there, and acknowledges nothing any more.
    #[error(
        "the board has acknowledged nothing for {ms} ms ({tries} tries, {bad} broken frames seen): is the cable still plugged? Open the link again once it is"
    )]
    Lost {
        /// Time waited.
        ms: u64,
        /// How often the oldest frame was sent.
        tries: u32,
        /// Things that came and were no frames.
        bad: u64,
    },
}

/// How a session behaves. Times are in ticks of its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkParams {
    /// Until what was not acknowledged is sent again.
    pub retry_ticks: u64,
    /// How often, without anything new, until the session is given up.
    pub tries: u32,
    /// Length of a tick in picoseconds, for messages.
    pub tick_ps: u64,
}

impl LinkParams {
    /// For a line of this many bits a second: time for four of the longest frames and 20 ms for what lies between, 25 tries.
    pub fn for_baud(baud: u32, tick_ps: u64) -> Self {
        let longest = u64::from(openrnic_spec::LINK_MAX_PAYLOAD) + 32;
        let ps = 4 * longest * 10 * 1_000_000_000_000 / u64::from(baud.max(1)) + 20_000_000_000;
        Self {
            retry_ticks: ps.div_ceil(tick_ps).max(2),
            tries: 25,
            tick_ps,
        }
    }

    fn ms(&self, ticks: u64) -> u64 {
        (u128::from(ticks) * u128::from(self.tick_ps) / 1_000_000_000) as u64
    }
}

/// What a session has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkStats {
    /// Frames sent, those sent again included.
    pub sent: u64,
    /// Of these, the ones sent again.
    pub again: u64,
    /// Frames received whole.
    pub received: u64,
    /// Of the numbered ones, those that were not the one awaited.
    pub out_of_order: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// HELLO was not answered yet.
    Greeting,
    Up,
    /// Given up.
    Dead,
}

/// The host's end.
#[derive(Debug)]
pub struct Endpoint {
    params: LinkParams,
    state: State,
    session: u8,
    deframer: Deframer,
    /// Frames not acknowledged, and those behind them; the first has number `una`.
    queue: VecDeque<(LinkKind, Vec<u8>)>,
    una: u8,
    /// Of the queue: next to go out; how far the device has room.
    next: usize,
    room: usize,
    /// Ever sent, of the queue.
    sent: usize,
    expect: u8,
    ack_due: bool,
    probe: bool,
    tries: u32,
    /// When the timer was started.
    since: u64,
    progress: u64,
    /// Period of the device's clock in picoseconds.
    clk_period_ps: u32,
    received: VecDeque<(LinkKind, Vec<u8>)>,
    stats: LinkStats,
}

impl Endpoint {
    /// An end that has not begun a session.
    pub fn new(params: LinkParams) -> Self {
        Self {
            params,
            state: State::Greeting,
            session: 0,
            deframer: Deframer::default(),
            queue: VecDeque::new(),
            una: 0,
            next: 0,
            room: LINK_SLOTS as usize,
            sent: 0,
            expect: 0,
            ack_due: false,
            probe: false,
            tries: 0,
            since: 0,
            progress: 0,
            clk_period_ps: 0,
            received: VecDeque::new(),
            stats: LinkStats::default(),
        }
    }

    /// Begins a session: all that was under way is gone, and the core is in reset until a [`control`](Self::control) says otherwise.
    pub fn begin(&mut self, now: u64, session: u8) {
        *self = Self {
            session,
            since: now,
            progress: now,
            stats: self.stats,
            deframer: std::mem::take(&mut self.deframer),
            ..Self::new(self.params)
        };
    }

    /// Whether the device has answered the HELLO.
    pub fn is_up(&self) -> bool {
        self.state == State::Up
    }

    /// Period of the device's clock in picoseconds; 0 before it has answered.
    pub fn clk_period_ps(&self) -> u32 {
        self.clk_period_ps
    }

    /// Counters, over all sessions.
    pub fn stats(&self) -> LinkStats {
        self.stats
    }

    /// Things between flags that were no frames, over all sessions.
    pub fn bad(&self) -> u64 {
        self.deframer.bad
    }

    /// Frames that wait to be sent or acknowledged.
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Queues a numbered frame.
    pub fn send(&mut self, kind: LinkKind, payload: Vec<u8>) {
        self.queue.push_back((kind, payload));
    }

    /// Queues a CONTROL.
    pub fn control(&mut self, run: bool, bus_master: bool) {
        let control = LinkControl::new().with_run(run).with_bus_master(bus_master);
        self.send(LinkKind::Control, control.0.to_vec());
    }

    /// The next numbered frame that came.
    pub fn receive(&mut self) -> Option<(LinkKind, Vec<u8>)> {
        self.received.pop_front()
    }

    /// Takes a byte of the line (`None`: without its stop bit).
    ///
    /// # Errors
    /// [`LinkError::Stranger`].
    pub fn take(&mut self, now: u64, byte: Option<u8>) -> Result<(), LinkError> {
        let Some(frame) = self.deframer.take(byte) else {
            return Ok(());
        };
        if frame.head.session() != self.session {
            return Ok(());
        }
        match (self.state, frame.kind()) {
            (State::Greeting, Some(LinkKind::Welcome)) => {
                self.stats.received += 1;
                let mut welcome = LinkWelcome::new();
                if let Some(bytes) = frame.payload.first_chunk::<8>() {
                    welcome = LinkWelcome(*bytes);
                }
                if welcome.magic() != LINK_MAGIC {
                    self.state = State::Dead;
                    return Err(LinkError::Stranger { magic: welcome.magic() });
                }
                self.clk_period_ps = welcome.clk_period_ps();
                self.state = State::Up;
                self.restart(now);
            }
            (State::Up, Some(kind)) if kind != LinkKind::Welcome => {
                self.stats.received += 1;
                self.acknowledged(now, &frame.head);
                if matches!(kind, LinkKind::Cc | LinkKind::Rq) {
                    self.ack_due = true;
                    if frame.head.seq() == self.expect {
                        self.expect = self.expect.wrapping_add(1);
                        self.received.push_back((kind, frame.payload));
                    } else {
                        self.stats.out_of_order += 1;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn restart(&mut self, now: u64) {
        self.tries = 0;
        self.since = now;
        self.progress = now;
    }

    fn acknowledged(&mut self, now: u64, head: &LinkHead) {
        let got = usize::from(head.ack().wrapping_sub(self.una));
        if got > self.sent {
            return; // of the past: only what was sent can have arrived
        }
        if got > 0 {
            self.queue.drain(..got);
            self.una = head.ack();
            self.next = self.next.saturating_sub(got);
            self.sent = self.sent.saturating_sub(got);
            self.restart(now);
        }
        self.room = usize::from(head.window());
    }

    /// What to put on the line now, when it is free.
    ///
    /// # Errors
    /// [`LinkError`] when there is no sense in going on.
    pub fn poll(&mut self, now: u64) -> Result<Option<Vec<u8>>, LinkError> {
        match self.state {
            State::Dead => Err(self.lost(now)),
            State::Greeting => {
                if self.tries > 0 && now - self.since < self.params.retry_ticks {
                    return Ok(None);
                }
                if self.tries == self.params.tries {
                    let ms = self.params.ms(now - self.progress);
                    let (tries, bad) = (self.tries, self.bad());
                    return Err(LinkError::NoAnswer { ms, tries, bad });
                }
                self.tries += 1;
                self.since = now;
                self.stats.sent += 1;
                Ok(Some(self.frame(LinkKind::Hello, 0, Vec::new())))
            }
            State::Up => {
                if self.queue.is_empty() {
                    self.since = now;
                    self.progress = now;
                } else if now - self.since >= self.params.retry_ticks {
                    if self.tries == self.params.tries {
                        self.state = State::Dead;
                        return Err(self.lost(now));
                    }
                    self.tries += 1;
                    self.since = now;
                    self.next = 0;
                    self.probe = true;
                }
                if self.next < self.queue.len() && (self.next < self.room || self.probe) {
                    self.probe = false;
                    let (kind, payload) = self.queue[self.next].clone();
                    let seq = self.una.wrapping_add(self.next as u8);
                    if self.next < self.sent {
                        self.stats.again += 1;
                    }
                    self.next += 1;
                    self.sent = self.sent.max(self.next);
                    self.stats.sent += 1;
                    return Ok(Some(self.frame(kind, seq, payload)));
                }
                if self.ack_due {
                    self.stats.sent += 1;
                    return Ok(Some(self.frame(LinkKind::Ack, 0, Vec::new())));
                }
                Ok(None)
            }
        }
    }

    fn lost(&self, now: u64) -> LinkError {
        LinkError::Lost {
            ms: self.params.ms(now - self.progress),
            tries: self.tries,
            bad: self.bad(),
        }
    }

    fn frame(&mut self, kind: LinkKind, seq: u8, payload: Vec<u8>) -> Vec<u8> {
        self.ack_due = false;
        let head = LinkHead::new()
            .with_kind(kind as u8)
            .with_session(self.session)
            .with_seq(seq)
            .with_ack(self.expect)
            .with_window(if kind == LinkKind::Hello { 0 } else { WINDOW });
        Frame { head, payload }.encode()
    }
}
