// SPDX-License-Identifier: Apache-2.0
//! Completion queues that are armed. In each round a queue is polled all the time; or armed for any completion, and looked at only when
//! its event has come, as a program that sleeps does; or armed for solicited ones, and looked at by a timer as well. An event that does not
//! come, comes twice or for nothing is a difference.

use super::*;

/// How completions of a queue are taken in a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Manner {
    #[default]
    Polled,
    /// Armed for any completion.
    Any,
    /// Armed for solicited or failed ones.
    Solicited,
}

/// Whether a completion raises the event of a queue that is armed for solicited ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weight {
    Raises,
    Quiet,
    /// Of a connection that was given up: not known.
    Perhaps,
}

/// A queue as its program sees it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Watch {
    manner: Manner,
    /// What it is armed for: solicited ones only?
    armed: Option<bool>,
    armed_at: u64,
    /// Completions taken since then that raise the event; that perhaps do.
    raising: u64,
    perhaps: u64,
    /// Since when the event is owed: such a completion was taken.
    owed: Option<u64>,
    /// When it is looked at without an event.
    look_at: u64,
}

/// The completion vector of both queues, as [`CompletionQueue`]s have it that do not ask for another.
const VECTOR: u8 = 1;
/// Cycles after which a queue is armed for sure: doorbells are posted.
const ARMED: u64 = 3000;
/// Cycles within which an event comes.
const TOLD: u64 = 6000;

impl Watch {
    /// An event is owed.
    pub(super) fn owes(&self) -> bool {
        self.owed.is_some()
    }
}

impl Episode {
    /// How each queue is used in this round. One that is still armed goes on so, or is polled until its event has come.
    pub(super) fn arm(&mut self, round: u64) -> Outcomes<()> {
        for end in 0..2 {
            for queue in 0..2 {
                let number = (end * 2 + queue) as u64;
                let mut rng = Stream::new(self.setup.seed ^ round << 32, "transport arming", number);
                let drawn = match rng.below(10) {
                    0..4 => Manner::Polled,
                    4..7 => Manner::Any,
                    _ => Manner::Solicited,
                };
                let watch = &mut self.watches[end][queue];
                watch.manner = match watch.armed {
                    _ if !self.setup.armed => Manner::Polled,
                    Some(_) if rng.chance(0.5) => Manner::Polled,
                    Some(true) => Manner::Solicited,
                    Some(false) => Manner::Any,
                    None => drawn,
                };
                watch.look_at = 0;
                if watch.manner != Manner::Polled && watch.armed.is_none() {
                    self.arm_one(end, queue)?;
                }
            }
        }
        Ok(())
    }

    fn arm_one(&mut self, end: usize, queue: usize) -> Outcomes<()> {
        let now = self.cycle();
        let watch = &mut self.watches[end][queue];
        let solicited = watch.manner == Manner::Solicited;
        (watch.armed, watch.armed_at, watch.owed) = (Some(solicited), now, None);
        (watch.raising, watch.perhaps) = (0, 0);
        self.report.add("queues armed", 1);
        self.queue(end, queue).req_notify(solicited).map_err(bench)
    }

    fn queue(&self, end: usize, queue: usize) -> &CompletionQueue<NicBus> {
        let e = &self.pair.ends[end];
        if queue == 0 { &e.send_cq } else { &e.recv_cq }
    }

    /// Takes events, and the completions of queues that are looked at now: of all, when so wished.
    pub(super) fn poll(&mut self, all: bool) -> Outcomes<()> {
        for end in 0..2 {
            while let Some(cqn) = self.pair.ends[end].device.get_cq_event(VECTOR).map_err(bench)? {
                match [0, 1].into_iter().find(|q| self.queue(end, *q).cqn() == cqn) {
                    Some(queue) => self.told(end, queue)?,
                    None => {
                        let text = format!("end {end}: queue {cqn}, which nobody has");
                        return Err(Difference::new("queue event", text));
                    }
                }
            }
            for queue in 0..2 {
                let now = self.cycle();
                let watch = &self.watches[end][queue];
                if all || watch.manner == Manner::Polled || now >= watch.look_at {
                    self.take(end, queue)?;
                }
                let watch = &self.watches[end][queue];
                if let Some(since) = watch.owed.filter(|since| now > since + TOLD) {
                    let text = format!("end {end}, queue {queue}: {watch:?}, owed since cycle {since}, it is {now}");
                    return Err(Difference::new("queue event missing", text));
                }
            }
        }
        self.judged()
    }

    /// A queue's event has come.
    fn told(&mut self, end: usize, queue: usize) -> Outcomes<()> {
        let before = self.watches[end][queue];
        let Some(solicited) = before.armed else {
            return Err(Difference::new(
                "queue event",
                format!("end {end}, queue {queue}: it is not armed"),
            ));
        };
        let name = if solicited {
            "queue events: solicited"
        } else {
            "queue events: any"
        };
        self.report.add(name, 1);
        let again = before.manner != Manner::Polled;
        // Both orders are those of programs: arm and look, or look, arm and look again.
        let arm_first = again && self.rng.chance(0.5);
        let watch = &mut self.watches[end][queue];
        (watch.armed, watch.owed) = (None, None);
        (watch.raising, watch.perhaps) = (0, 0);
        if arm_first {
            self.arm_one(end, queue)?;
        }
        self.weigh(end, queue, solicited)?;
        let watch = &self.watches[end][queue];
        if before.raising + before.perhaps + watch.raising + watch.perhaps == 0 {
            let text = format!("end {end}, queue {queue}, {before:?}: nothing came that it was armed for");
            return Err(Difference::new("queue event", text));
        }
        if again && !arm_first {
            self.arm_one(end, queue)?;
            self.weigh(end, queue, solicited)?;
        }
        Ok(())
    }

    /// Looks at a queue without an event.
    fn take(&mut self, end: usize, queue: usize) -> Outcomes<()> {
        let now = self.cycle();
        let before = self.watches[end][queue];
        self.weigh(end, queue, before.armed.unwrap_or_default())?;
        let wait = match before.manner {
            Manner::Polled => 0,
            // Long: were it not for the events, a round would take for ever.
            Manner::Any => 60_000,
            Manner::Solicited => 500 + self.rng.below(4000),
        };
        let watch = &mut self.watches[end][queue];
        watch.look_at = now + wait;
        let sure = watch.armed.is_some() && watch.raising > before.raising && now > watch.armed_at + ARMED;
        if sure && watch.owed.is_none() {
            watch.owed = Some(now);
        }
        Ok(())
    }

    /// Takes completions, and counts those that raise the event.
    fn weigh(&mut self, end: usize, queue: usize, solicited: bool) -> Outcomes<()> {
        let taken = self.queue(end, queue).poll(2048).map_err(bench)?;
        for wc in taken {
            let weight = if queue == 0 {
                self.send_completion(end, &wc)?
            } else {
                self.receive_completion(end, &wc)?
            };
            let watch = &mut self.watches[end][queue];
            match weight {
                Weight::Quiet if solicited => self.report.add("completions that raise no event", 1),
                Weight::Perhaps if solicited => watch.perhaps += 1,
                _ => watch.raising += 1,
            }
        }
        Ok(())
    }
}
