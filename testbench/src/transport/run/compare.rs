// SPDX-License-Identifier: Apache-2.0
//! What a round has left, against the model; and what is made anew after it.

use super::*;

impl Episode {
    pub(super) fn compare(&mut self, round: u64) -> Outcomes<()> {
        let now = self.now();
        // Counters.
        let mut counted = Vec::new();
        for end in 0..2 {
            let all = self.pair.ends[end].device.counters().map_err(bench)?;
            counted.push(all.since(&self.baseline[end]));
            self.baseline[end] = all;
        }
        let overflow: Vec<u64> = counted.iter().map(|c| c.get(CounterId::RxDropOverflow)).collect();
        let lost_inside = overflow.iter().any(|n| *n > 0);
        let failed = self.slots.iter().any(|s| s.void || s.plan.fault.is_some());
        let muted = self.judge.borrow().muted;
        let strict = !lost_inside && !failed;
        self.report
            .add("frames for which a receiver had no room", overflow.iter().sum());
        self.report.add(
            if strict {
                "rounds judged strictly"
            } else {
                "rounds with failures"
            },
            1,
        );
        {
            let mut judge = self.judge.borrow_mut();
            let judge = &mut *judge;
            let mut losses = [0, 0];
            let mut timeouts = [0, 0];
            for slot in &self.slots {
                let Some(c) = judge.connections.get_mut(&(slot.number as usize)) else {
                    continue;
                };
                for from in 0..2 {
                    let flow = &mut c.flows[from];
                    let dead = slot.void || slot.outcomes.iter().any(|o| o.requester_fails || o.responder_fails);
                    if !lost_inside && !slot.void {
                        flow.responder.settled(&flow.requester, now)?;
                    }
                    if !dead && !muted {
                        flow.requester.settled()?;
                    }
                    losses[1 - from] += flow.responder.internal_losses;
                    timeouts[from] += flow.requester.counts.timeouts;
                    let (r, s) = (flow.requester.counts, flow.responder.counts);
                    judge.counters[from].range("RETRANSMISSIONS", 0, r.again);
                    let unsure = if s.unsure { UNKNOWN } else { 0 };
                    judge.counters[1 - from].range("RX_DUPLICATES", 0, s.duplicates + unsure);
                    judge.counters[1 - from].range("RX_OUT_OF_SEQUENCE", 0, s.ahead + unsure);
                    for (name, n) in [
                        ("packets sent again", r.again),
                        ("gone back: told", r.told),
                        ("gone back: time-out", r.timeouts),
                        ("responses behind a gap (implied NAK)", r.implied),
                        ("responses that nothing waits for", r.ghosts),
                        ("requests that were duplicates", s.duplicates),
                        ("READs executed again", s.reads_again),
                        ("atomics answered again", s.atomics_again),
                        ("requests out of sequence", s.ahead),
                    ] {
                        self.report.add(name, n);
                    }
                }
            }
            for end in 0..2 {
                if muted {
                    judge.counters[end] = Counters::default();
                    continue;
                }
                if losses[end] > overflow[end] {
                    return Err(Difference::new(
                        "request lost",
                        format!(
                            "end {end} took {} delivered requests as lost, and had no room for {}",
                            losses[end], overflow[end]
                        ),
                    ));
                }
                let read = |name: &str| {
                    counted[end]
                        .iter()
                        .find(|(id, _)| id.name() == name)
                        .map_or(0, |(_, n)| n)
                };
                judge.counters[end].matches(end, strict, read)?;
                judge.counters[end].nothing_else(end, read)?;
                if read("TIMEOUTS") < timeouts[end] {
                    return Err(Difference::new(
                        "counter",
                        format!(
                            "end {end}: TIMEOUTS is {}, and it went back {} times untold",
                            read("TIMEOUTS"),
                            timeouts[end]
                        ),
                    ));
                }
                for (name, counter) in [
                    ("RNR NAKs", "TX_RNR_NAKS"),
                    ("NAKs sequence error", "TX_NAK_PSN_SEQ"),
                    ("NAKs invalid request", "TX_NAK_INV_REQ"),
                    ("NAKs remote access error", "TX_NAK_REM_ACCESS"),
                    ("NAKs remote operational error", "TX_NAK_REM_OP"),
                    ("ACKs", "TX_ACKS"),
                ] {
                    self.report.add(name, judge.counters[end].get(counter));
                }
                judge.counters[end] = Counters::default();
            }
            for slot in &self.slots {
                if let Some(c) = judge.connections.get_mut(&(slot.number as usize)) {
                    for flow in &mut c.flows {
                        flow.requester.counts = Default::default();
                        flow.responder.counts = Default::default();
                        flow.responder.internal_losses = 0;
                    }
                }
            }
        }
        // Memory.
        for at in 0..self.slots.len() {
            let slot = &self.slots[at];
            for end in 0..2 {
                for mr in slot.compared(end) {
                    same_memory(
                        &mut self.memory[end],
                        mr,
                        slot.void,
                        end,
                        &format!("connection {}", slot.number),
                    )?;
                }
            }
        }
        for end in 0..2 {
            if let Some(shared) = &self.shared[end] {
                let void = self.slots.iter().any(|s| s.void && s.shared[end]);
                same_memory(&mut self.memory[end], &shared.region, void, end, "the shared queue")?;
            }
        }
        // Events and states.
        let mut due: [BTreeMap<(u8, u32), u64>; 2] = Default::default();
        let mut excused = BTreeSet::new();
        for slot in &self.slots {
            for (end, due) in due.iter_mut().enumerate() {
                let qpn = slot.configs[end].qpn;
                let dead = slot.outcomes[end].requester_fails || slot.outcomes[1 - end].responder_fails;
                if slot.void {
                    excused.insert((end, qpn));
                    continue;
                }
                if let Some(event) = slot.outcomes[1 - end].event {
                    *due.entry((event, qpn)).or_default() += 1;
                }
                if dead && slot.shared[end] {
                    *due.entry((event::LAST_WQE_REACHED, qpn)).or_default() += 1;
                }
            }
        }
        let came = self.events()?;
        for (end, events) in came.into_iter().enumerate() {
            let mut got: BTreeMap<(u8, u32), u64> = BTreeMap::new();
            for e in events {
                if !excused.contains(&(end, e.1)) {
                    *got.entry(e).or_default() += 1;
                }
            }
            if got != due[end] {
                return Err(Difference::new(
                    "events",
                    format!("end {end}: {got:x?} came, {:x?} are due", due[end]),
                ));
            }
        }
        let sample = if self.slots.is_empty() {
            0
        } else {
            round as usize % self.slots.len()
        };
        for (at, slot) in self.slots.iter().enumerate() {
            for end in 0..2 {
                let dead = slot.outcomes[end].requester_fails || slot.outcomes[1 - end].responder_fails;
                if slot.void || !dead && at != sample {
                    continue;
                }
                let state = slot.qps[end].query().map_err(bench)?.state;
                let want = if dead { QpState::Err } else { QpState::Rts };
                if state != want {
                    let text = format!(
                        "QP {:#x} of end {end} is in {state:?}, not {want:?}",
                        slot.configs[end].qpn
                    );
                    return Err(Difference::new("state", text));
                }
            }
        }
        Ok(())
    }

    pub(super) fn events(&self) -> Outcomes<[Vec<(u8, u32)>; 2]> {
        let of = |end: usize| -> Outcomes<Vec<(u8, u32)>> {
            Ok(self.pair.ends[end]
                .events()
                .map_err(bench)?
                .into_iter()
                .map(|(e, n)| (u8::from(e), n))
                .collect())
        };
        Ok([of(0)?, of(1)?])
    }

    /// Connections that have failed, and some that have not, are made anew; nothing is remembered of the round.
    pub(super) fn renew(&mut self) -> Outcomes<()> {
        for at in 0..self.slots.len() {
            let slot = &mut self.slots[at];
            let failed = slot.void || slot.outcomes.iter().any(|o| o.requester_fails || o.responder_fails);
            for from in 0..2 {
                slot.receives_used[1 - from] += slot.outcomes[from].receives_used;
            }
            {
                let mut judge = self.judge.borrow_mut();
                if judge.muted {
                    judge.resume();
                }
                if let Some(c) = judge.connections.get_mut(&(slot.number as usize)) {
                    for from in 0..2 {
                        let wraps = c.flows[from].requester.forget();
                        self.report.add("PSN wraps", wraps);
                        c.flows[from].responder.forget(slot.receives_used[1 - from]);
                    }
                }
            }
            if failed || self.slots[at].plan.renew {
                self.free_keys(at)?;
            }
            let slot = &mut self.slots[at];
            if failed || slot.plan.renew {
                self.silent
                    .borrow_mut()
                    .retain(|(_, qpn)| !slot.configs.iter().any(|c| c.qpn == *qpn));
                for qp in &slot.qps {
                    qp.destroy().map_err(bench)?;
                }
                self.judge.borrow_mut().disconnect(slot.number as usize);
                slot.life += 1;
                let (number, life, shared) = (slot.number, slot.life, slot.shared);
                let (qps, configs) = self.connect(number, life, shared)?;
                let slot = &mut self.slots[at];
                slot.qps = qps;
                slot.configs = configs;
                slot.receives_used = [0, 0];
                slot.void = false;
            }
        }
        Ok(())
    }
}

fn same_memory(memory: &mut Memory, mr: &Mr, void: bool, end: usize, whose: &str) -> Outcomes<()> {
    let key = mr.rkey().0;
    let Some(bytes) = memory.store(key) else {
        return Err(Difference::new("bench", format!("no region {key:#x}")));
    };
    let got = mr.read(0, bytes.len()).map_err(bench)?;
    if void {
        *bytes = got;
        return Ok(());
    }
    if got == *bytes {
        return Ok(());
    }
    let base = mr.iova().0;
    let wrong: Vec<usize> = (0..got.len()).filter(|i| got[*i] != bytes[*i]).collect();
    let (first, last) = (wrong[0], wrong[wrong.len() - 1]);
    Err(Difference::new(
        "memory",
        format!(
            "end {end}, {whose}, region {key:#x}: {} bytes differ, from {:#x} to {:#x}; the first is {:#04x}, not {:#04x}",
            wrong.len(),
            base + first as u64,
            base + last as u64,
            got[first],
            bytes[first]
        ),
    ))
}
