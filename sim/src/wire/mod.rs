// SPDX-License-Identifier: Apache-2.0
//! The wire between the NICs' ports: rate, latency, faults, captures.
//!
//! Two NICs are joined directly, more through a switch that learns MAC addresses. The wire stores and
//! forwards: a frame starts to arrive one latency after its last byte was sent. Between frames it keeps
//! the gap that preamble, check sequence and inter-frame gap take on a real line.

pub mod frame;
mod rules;
mod tap;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use rules::Fate;
pub use rules::{Action, Edit, FaultRates, Matches, Rule, RuleId};
pub use tap::{Direction, Tap, TapPoints};

use crate::device::{Device, MacBeat};
use crate::error::{Misdeed, SimError, Violation};
use crate::rng::Stream;

/// Bytes that a frame takes on the line beside its own: preamble, check sequence, gap.
pub const FRAME_OVERHEAD: usize = 24;
/// Shortest frame on the line, without check sequence: the MAC fills up to it.
const MIN_FRAME: usize = 60;
/// Shortest frame that a device may hand to its MAC.
const MIN_HEADER: usize = 14;
/// Fixed point of byte credits.
const CREDIT_SHIFT: u32 = 16;

/// The wire of a world.
#[derive(Debug, Clone)]
pub struct WireParams {
    /// From a frame's last byte sent to its first byte received, in nanoseconds.
    pub latency_ns: u64,
    /// Line rate in Gbit/s; `None`: all byte lanes in every cycle.
    pub rate_gbps: Option<f64>,
    /// Faults by chance, for every sender.
    pub faults: FaultRates,
    /// Longest frame in bytes.
    pub max_frame: usize,
}

impl Default for WireParams {
    fn default() -> Self {
        Self {
            latency_ns: 200,
            rate_gbps: None,
            faults: FaultRates::default(),
            max_frame: 9216,
        }
    }
}

/// Frames of one port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PortStats {
    /// Frames that the NIC sent, and their bytes.
    pub sent: u64,
    /// Bytes of the frames that the NIC sent.
    pub sent_bytes: u64,
    /// Frames that the NIC was given, copies and injected ones included.
    pub received: u64,
    /// Bytes of the frames that the NIC was given.
    pub received_bytes: u64,
    /// Of those sent: lost on the wire, or without a receiver.
    pub dropped: u64,
    /// Of those sent: delivered twice.
    pub duplicated: u64,
    /// Of those sent: held back.
    pub delayed: u64,
    /// Of those sent: changed on the wire.
    pub changed: u64,
    /// Of those sent: flagged by the receiving MAC.
    pub mac_errors: u64,
    /// Of those sent: marked with congestion.
    pub marked: u64,
    /// Of those received: injected.
    pub injected: u64,
}

/// A frame seen at a NIC's port.
#[derive(Debug, Clone, Copy)]
pub struct FrameEvent<'a> {
    /// Clock cycle of the last byte.
    pub cycle: u64,
    /// Which NIC.
    pub nic: usize,
    /// Sent or received.
    pub direction: Direction,
    /// The frame, without check sequence.
    pub frame: &'a [u8],
    /// The receiving MAC flagged it.
    pub mac_error: bool,
    /// What the wire did to it; empty when nothing.
    pub comment: &'a str,
}

type Observer = Box<dyn FnMut(&FrameEvent<'_>)>;

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Arrival {
    at: u64,
    number: u64,
    frame: Vec<u8>,
    mac_error: bool,
    injected: bool,
    comment: String,
}

/// Byte credits of one direction of a line.
#[derive(Debug, Clone, Copy)]
struct Pace {
    credit: i64,
    rate: i64,
    cap: i64,
}

impl Pace {
    fn tick(&mut self) {
        self.credit = (self.credit + self.rate).min(self.cap);
    }

    fn may_go(&self) -> bool {
        self.credit > 0
    }

    fn spend(&mut self, bytes: usize) {
        self.credit -= (bytes as i64) << CREDIT_SHIFT;
    }
}

struct Port {
    up: bool,
    pins_fresh: bool,
    tx: Vec<u8>,
    tx_pace: Pace,
    tx_ready: bool,
    rx_queue: BinaryHeap<Reverse<Arrival>>,
    rx: Option<(Arrival, usize)>,
    rx_offered: bool,
    rx_pace: Pace,
    faults: FaultRates,
    rng: Stream,
    stats: PortStats,
}

/// The wire.
pub struct Wire {
    params: WireParams,
    clk_period_ps: u64,
    ports: Vec<Port>,
    rules: Vec<(Rule, u64)>,
    switch: HashMap<[u8; 6], usize>,
    frames: u64,
    tap: Option<Tap>,
    observers: Vec<Observer>,
    violations: Vec<Violation>,
    failed: Option<SimError>,
}

impl Wire {
    /// A wire for this many NICs with `width` byte lanes each.
    ///
    /// # Errors
    /// [`SimError::Params`] when a rate makes no sense.
    pub fn new(nics: usize, width: usize, params: WireParams, clk_period_ps: u64, seed: u64) -> Result<Self, SimError> {
        check_rates(&params.faults)?;
        let cap = (width as i64) << CREDIT_SHIFT;
        let rate = match params.rate_gbps {
            None => cap,
            Some(gbps) => {
                let rate = (gbps / 8.0 * clk_period_ps as f64 / 1000.0 * f64::from(1 << CREDIT_SHIFT)) as i64;
                let limit = width as f64 * 8000.0 / clk_period_ps as f64;
                if rate < 1 || rate > cap {
                    let what = format!(
                        "a line rate of {gbps} Gbit/s: the data path carries more than 0 and up to {limit} Gbit/s"
                    );
                    return Err(SimError::Params { what });
                }
                rate
            }
        };
        let pace = Pace { credit: cap, rate, cap };
        let port = |nic| Port {
            up: true,
            pins_fresh: false,
            tx: Vec::new(),
            tx_pace: pace,
            tx_ready: true,
            rx_queue: BinaryHeap::new(),
            rx: None,
            rx_offered: false,
            rx_pace: pace,
            faults: params.faults.clone(),
            rng: Stream::new(seed, "wire.faults", nic),
            stats: PortStats::default(),
        };
        Ok(Self {
            clk_period_ps,
            ports: (0..nics as u64).map(port).collect(),
            rules: Vec::new(),
            switch: HashMap::new(),
            frames: 0,
            tap: None,
            observers: Vec::new(),
            violations: Vec::new(),
            failed: None,
            params,
        })
    }

    /// Line rate in bits per second.
    pub fn bits_per_second(&self) -> u64 {
        let rate = self.ports.first().map_or(0, |port| port.tx_pace.rate as u128);
        ((rate * 8 * 1_000_000_000_000 / u128::from(self.clk_period_ps)) >> CREDIT_SHIFT) as u64
    }

    /// Captures all frames from now on.
    pub fn set_tap(&mut self, tap: Tap) {
        self.tap = Some(tap);
    }

    /// The capture, if there is one.
    pub fn tap(&mut self) -> Option<&mut Tap> {
        self.tap.as_mut()
    }

    /// Shows every frame, sent and received, to a function.
    pub fn observe(&mut self, observer: impl FnMut(&FrameEvent<'_>) + 'static) {
        self.observers.push(Box::new(observer));
    }

    /// Adds a rule; rules apply in the order in which they were added, before chance does.
    pub fn add_rule(&mut self, rule: Rule) -> RuleId {
        self.rules.push((rule, 0));
        RuleId(self.rules.len() - 1)
    }

    /// How often a rule has hit.
    pub fn rule_hits(&self, id: RuleId) -> u64 {
        self.rules.get(id.0).map_or(0, |(_, hits)| *hits)
    }

    /// Changes what chance does to the frames of a sender.
    ///
    /// # Errors
    /// [`SimError::Params`] when a rate is no probability or there is no such NIC.
    pub fn set_faults(&mut self, from: usize, rates: FaultRates) -> Result<(), SimError> {
        check_rates(&rates)?;
        self.port(from)?.faults = rates;
        Ok(())
    }

    /// Takes a port's link down or up. Frames from and to a port that is down are lost.
    ///
    /// # Errors
    /// [`SimError::Params`] when there is no such NIC.
    pub fn set_link(&mut self, nic: usize, up: bool) -> Result<(), SimError> {
        let port = self.port(nic)?;
        port.up = up;
        port.pins_fresh = false;
        Ok(())
    }

    /// Lets a NIC receive a frame that nobody sent, in `delay` cycles from `now` on.
    ///
    /// # Errors
    /// [`SimError::Params`] when there is no such NIC, or the frame is empty or longer than the wire
    /// carries.
    pub fn inject(&mut self, now: u64, to: usize, frame: &[u8], mac_error: bool, delay: u64) -> Result<(), SimError> {
        let max = self.params.max_frame;
        if frame.is_empty() || frame.len() > max {
            return Err(SimError::Params {
                what: format!("a frame of {} bytes: 1 to {max} can be injected", frame.len()),
            });
        }
        let number = self.frames;
        self.frames += 1;
        let comment = if mac_error {
            "injected, flagged by the receiving MAC"
        } else {
            "injected"
        };
        self.port(to)?.rx_queue.push(Reverse(Arrival {
            at: now + delay,
            number,
            frame: frame.to_vec(),
            mac_error,
            injected: true,
            comment: comment.to_owned(),
        }));
        Ok(())
    }

    /// Counters of a NIC's port; all 0 when there is no such NIC.
    pub fn stats(&self, nic: usize) -> PortStats {
        self.ports.get(nic).map_or_else(PortStats::default, |port| port.stats)
    }

    /// No frame is under way.
    pub fn is_idle(&self) -> bool {
        self.ports
            .iter()
            .all(|port| port.tx.is_empty() && port.rx.is_none() && port.rx_queue.is_empty())
    }

    fn port(&mut self, nic: usize) -> Result<&mut Port, SimError> {
        let nics = self.ports.len();
        self.ports.get_mut(nic).ok_or_else(|| SimError::Params {
            what: format!("NIC {nic}: there are {nics}, counted from 0"),
        })
    }

    pub(crate) fn violations(&mut self) -> &mut Vec<Violation> {
        &mut self.violations
    }

    pub(crate) fn take_failure(&mut self) -> Option<SimError> {
        self.failed.take()
    }

    // ------------------------------------------------------------------ cycle by cycle

    /// Before the clock edge: sets a NIC's MAC inputs.
    pub(crate) fn drive(&mut self, now: u64, nic: usize, device: &mut dyn Device) {
        let port = &mut self.ports[nic];
        if !port.pins_fresh {
            device.set_port_up(port.up);
            device.set_mac_tx_ready(port.tx_ready);
            port.pins_fresh = true;
        }
        port.tx_pace.tick();
        let ready = port.tx_pace.may_go();
        if ready != port.tx_ready {
            port.tx_ready = ready;
            device.set_mac_tx_ready(ready);
        }
        port.rx_pace.tick();
        if port.rx.is_none() {
            if port.rx_offered {
                device.set_mac_rx(None);
                port.rx_offered = false;
            }
            match port.rx_queue.peek() {
                Some(Reverse(arrival)) if arrival.at <= now && port.rx_pace.may_go() => {}
                _ => return,
            }
            port.rx = port.rx_queue.pop().map(|Reverse(arrival)| (arrival, 0));
        }
        let Some((arrival, at)) = &port.rx else { return };
        if !port.rx_pace.may_go() {
            if port.rx_offered {
                device.set_mac_rx(None);
                port.rx_offered = false;
            }
            return;
        }
        let end = (at + device.data_bytes()).min(arrival.frame.len());
        let last = end == arrival.frame.len();
        device.set_mac_rx(Some(MacBeat {
            data: &arrival.frame[*at..end],
            last,
            error: last && arrival.mac_error,
        }));
        port.rx_offered = true;
    }

    /// After the clock edge: takes what a NIC's MAC sent, and notes what it received.
    pub(crate) fn collect(&mut self, now: u64, nic: usize, device: &mut dyn Device) {
        self.collect_rx(now, nic, device);
        let port = &mut self.ports[nic];
        let mut misdeed = |what| self.violations.push(Violation { cycle: now, nic, what });
        let beat = match device.mac_tx() {
            Ok(Some(beat)) => beat,
            Ok(None) => {
                if !port.tx.is_empty() {
                    misdeed(Misdeed::FrameGap { bytes: port.tx.len() });
                    port.tx.clear();
                }
                return;
            }
            Err(_) => {
                misdeed(Misdeed::FrameKeep { bytes: port.tx.len() });
                port.tx.clear();
                return;
            }
        };
        if !port.tx_ready {
            return;
        }
        port.tx_pace.spend(beat.data.len());
        if port.tx.len() <= self.params.max_frame {
            port.tx.extend_from_slice(beat.data);
        }
        if !beat.last {
            return;
        }
        port.tx_pace
            .spend(FRAME_OVERHEAD + MIN_FRAME.saturating_sub(port.tx.len()));
        let mut frame = std::mem::take(&mut port.tx);
        if !(MIN_HEADER..=self.params.max_frame).contains(&frame.len()) {
            misdeed(Misdeed::FrameLength {
                bytes: frame.len(),
                max: self.params.max_frame,
            });
            return;
        }
        if frame.len() < MIN_FRAME {
            frame.resize(MIN_FRAME, 0);
        }
        self.send(now, nic, frame);
    }

    fn collect_rx(&mut self, now: u64, nic: usize, device: &mut dyn Device) {
        let port = &mut self.ports[nic];
        if !port.rx_offered {
            return;
        }
        if !device.mac_rx_ready() {
            self.violations.push(Violation {
                cycle: now,
                nic,
                what: Misdeed::RxNotReady,
            });
        }
        let Some((arrival, at)) = &mut port.rx else { return };
        let sent = device.data_bytes().min(arrival.frame.len() - *at);
        *at += sent;
        port.rx_pace.spend(sent);
        if *at < arrival.frame.len() {
            return;
        }
        port.rx_pace.spend(FRAME_OVERHEAD);
        if let Some((arrival, _)) = port.rx.take() {
            port.stats.received += 1;
            port.stats.received_bytes += arrival.frame.len() as u64;
            port.stats.injected += u64::from(arrival.injected);
            let event = FrameEvent {
                cycle: now,
                nic,
                direction: Direction::In,
                frame: &arrival.frame,
                mac_error: arrival.mac_error,
                comment: &arrival.comment,
            };
            self.show(&event, arrival.injected);
        }
    }

    /// A NIC is in reset: what it was sending is cut off, what comes to it is lost.
    pub(crate) fn hold(&mut self, now: u64, nic: usize, device: &mut dyn Device) {
        let port = &mut self.ports[nic];
        port.tx.clear();
        port.rx = None;
        if port.rx_offered {
            device.set_mac_rx(None);
            port.rx_offered = false;
        }
        while port.rx_queue.peek().is_some_and(|Reverse(arrival)| arrival.at <= now) {
            port.rx_queue.pop();
        }
    }

    /// A whole frame has been sent: decides its fate and lets it arrive.
    fn send(&mut self, now: u64, from: usize, mut frame: Vec<u8>) {
        let mut fate = Fate {
            copies: 1,
            ..Fate::default()
        };
        let as_sent = frame.clone();
        for (rule, hits) in &mut self.rules {
            if rule.from.is_some_and(|wanted| wanted != from) || rule.times == 0 || !(rule.matches)(&as_sent) {
                continue;
            }
            if rule.skip > 0 {
                rule.skip -= 1;
                continue;
            }
            rule.times -= u64::from(rule.times != u64::MAX);
            *hits += 1;
            fate.apply(&mut rule.action, &mut frame);
        }
        let port = &mut self.ports[from];
        fate.draw(&port.faults, &mut port.rng, &mut frame);
        if frame.is_empty() {
            fate.dropped = true;
        }
        let up = port.up;
        let mut receivers = Vec::new();
        if !up {
            fate.dropped = true;
            fate.comment.push_str("dropped: the link is down");
        } else if !fate.dropped {
            receivers = self.receivers(from, &frame);
            if receivers.is_empty() {
                fate.dropped = true;
                fate.comment.push_str("dropped: nobody is there to receive it");
            }
        }
        let stats = &mut self.ports[from].stats;
        stats.sent += 1;
        stats.sent_bytes += as_sent.len() as u64;
        stats.dropped += u64::from(fate.dropped);
        stats.duplicated += u64::from(!fate.dropped && fate.copies > 1);
        stats.delayed += u64::from(!fate.dropped && fate.delay_ns > 0);
        stats.changed += u64::from(!fate.dropped && fate.changed);
        stats.mac_errors += u64::from(!fate.dropped && fate.mac_error);
        stats.marked += u64::from(!fate.dropped && fate.marked);
        let event = FrameEvent {
            cycle: now,
            nic: from,
            direction: Direction::Out,
            frame: &as_sent,
            mac_error: false,
            comment: &fate.comment,
        };
        self.show(&event, false);
        if fate.dropped {
            return;
        }
        let at = now + 1 + ((self.params.latency_ns + fate.delay_ns) * 1000).div_ceil(self.clk_period_ps);
        for to in receivers {
            for _ in 0..fate.copies {
                let number = self.frames;
                self.frames += 1;
                self.ports[to].rx_queue.push(Reverse(Arrival {
                    at,
                    number,
                    frame: frame.clone(),
                    mac_error: fate.mac_error,
                    injected: false,
                    comment: fate.comment.clone(),
                }));
            }
        }
    }

    fn receivers(&mut self, from: usize, frame: &[u8]) -> Vec<usize> {
        let others = |wire: &Self| {
            (0..wire.ports.len())
                .filter(|to| *to != from && wire.ports[*to].up)
                .collect()
        };
        if self.ports.len() <= 2 {
            return others(self);
        }
        if let (Some(to), Some(source)) = (
            frame.first_chunk::<6>(),
            frame.get(6..).and_then(<[u8]>::first_chunk::<6>),
        ) {
            if source[0] & 1 == 0 {
                self.switch.insert(*source, from);
            }
            if let Some(to) = self.switch.get(to) {
                return if *to != from && self.ports[*to].up {
                    vec![*to]
                } else {
                    Vec::new()
                };
            }
        }
        others(self)
    }

    fn show(&mut self, event: &FrameEvent<'_>, injected: bool) {
        for observer in &mut self.observers {
            observer(event);
        }
        let Some(tap) = &mut self.tap else { return };
        if tap.points() == TapPoints::Senders && event.direction == Direction::In && !injected {
            return;
        }
        let time_ns = event.cycle * self.clk_period_ps / 1000;
        if let Err(error) = tap.frame(event.nic, time_ns, event.direction, event.frame, event.comment) {
            self.failed.get_or_insert(error);
        }
    }
}

fn check_rates(rates: &FaultRates) -> Result<(), SimError> {
    match rates.invalid() {
        None => Ok(()),
        Some(name) => Err(SimError::Params {
            what: format!("the fault rate {name}: a probability lies between 0 and 1"),
        }),
    }
}
