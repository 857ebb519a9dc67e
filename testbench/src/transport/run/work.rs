// SPDX-License-Identifier: Apache-2.0
//! The work of a round: posted, completed, until everything is quiet.

use openrnic_driver::spec::WqeOpcode;

use super::arming::Weight;
use super::*;

impl Episode {
    /// Receives, then sends of all connections in turns.
    pub(super) fn post(&mut self) -> Outcomes<()> {
        for at in 0..self.slots.len() {
            for from in 0..2 {
                let work = self.slots[at].plan.work[from].clone();
                let early = work.receives.len() - work.late;
                self.post_receives(at, 1 - from, &work.receives[..early])?;
                let now = self.cycle();
                for r in &work.receives[early..] {
                    let due = now + 1000 + self.rng.below(30_000);
                    self.slots[at].late[1 - from].push_back((due, r.clone()));
                }
            }
        }
        let shared_late = self.rng.chance(0.2);
        for end in 0..2 {
            let need: u64 = self
                .slots
                .iter()
                .filter(|s| s.shared[end])
                .map(|s| s.outcomes[1 - end].receives_used)
                .sum();
            let now = self.cycle();
            let Some(shared) = &mut self.shared[end] else { continue };
            let missing = (need as usize)
                .saturating_sub(shared.waiting.len())
                .min(shared.free.len());
            let late = if shared_late {
                self.rng.below(missing as u64 + 1) as usize
            } else {
                0
            };
            shared.late = (0..late).map(|_| now + 1000 + self.rng.below(20_000)).collect();
            for _ in 0..missing - late {
                self.post_shared(end)?;
            }
        }
        self.run(1500)?;
        let start = self.cycle();
        loop {
            let all = || (0..self.slots.len()).flat_map(|at| [(at, 0), (at, 1)]);
            let next = |(at, from): &(usize, usize)| self.slots[*at].to_send[*from].front();
            let passes = |(at, r): (usize, &Request)| r.after.is_none_or(|g| self.slots[at].passes(&g));
            let waiting: Vec<(usize, usize)> = all().filter(|w| next(w).is_some_and(|r| passes((w.0, r)))).collect();
            if waiting.is_empty() {
                if all().all(|w| next(&w).is_none()) {
                    return Ok(());
                }
                // All that is left waits for a completion.
                if self.cycle() - start > BUDGET {
                    return Err(self.stuck());
                }
                self.run(100)?;
                self.poll(false)?;
                self.post_late()?;
                continue;
            }
            let (at, from) = waiting[self.rng.below(waiting.len() as u64) as usize];
            let chunk = 1 + self.rng.below(5) as usize;
            let slot = &mut self.slots[at];
            let left = slot.to_send[from].len();
            let done = slot.plan.work[from].requests.len() - left;
            let free = slot.to_send[from]
                .iter()
                .take(chunk)
                .take_while(|r| r.after.is_none_or(|g| slot.passes(&g)))
                .count();
            let requests: Vec<Request> = slot.to_send[from].drain(..free).collect();
            let fates = &slot.outcomes[from].fates[done..];
            {
                let mut judge = self.judge.borrow_mut();
                if let Some(c) = judge.connections.get_mut(&(slot.number as usize)) {
                    for (r, f) in requests.iter().zip(fates) {
                        if r.op.is_key() {
                            c.flows[from].requester.post_key(r.fence, f.local_failure);
                            continue;
                        }
                        c.flows[from].requester.post(
                            r.clone(),
                            f.payload.clone(),
                            f.result.clone(),
                            f.refusal,
                            f.local_failure,
                        );
                    }
                }
            }
            let list = requests.iter().map(|r| {
                if r.op.is_key() {
                    slot.key_wr(from, r)
                } else {
                    Ok(send_wr(r))
                }
            });
            let list: Vec<SendWr> = list.collect::<Outcomes<_>>()?;
            slot.qps[from].post_send(&list).map_err(bench)?;
            let pause = self.rng.chance(0.3);
            if pause {
                let cycles = 1 + self.rng.below(300);
                self.run(cycles)?;
            }
            self.poll(false)?;
            self.post_late()?;
        }
    }

    pub(super) fn post_receives(&mut self, at: usize, end: usize, receives: &[Receive]) -> Outcomes<()> {
        if receives.is_empty() {
            return Ok(());
        }
        let now = self.now();
        let slot = &self.slots[at];
        if let Some(c) = self.judge.borrow_mut().connections.get_mut(&(slot.number as usize)) {
            for _ in receives {
                c.flows[1 - end].responder.post_receive(now);
            }
        }
        let list: Vec<RecvWr> = receives.iter().map(recv_wr).collect();
        slot.qps[end].post_recv(&list).map_err(bench)
    }

    pub(super) fn post_shared(&mut self, end: usize) -> Outcomes<()> {
        let wr_id = self.rng.bits() >> 1;
        let first = 1 + self.rng.below(300) as u32;
        let pick = self.rng.bits();
        let Some(shared) = &mut self.shared[end] else {
            return Ok(());
        };
        if shared.free.is_empty() {
            return Ok(());
        }
        let n = shared.free.swap_remove(pick as usize % shared.free.len());
        let addr = shared.area.base + (n * LONGEST) as u64;
        let piece = |addr, len| Piece {
            addr,
            len,
            key: shared.area.key,
        };
        let receive = Receive {
            wr_id,
            pieces: vec![
                piece(addr, first),
                piece(addr + u64::from(first), LONGEST as u32 - first),
            ],
        };
        shared.srq.post_recv(&[recv_wr(&receive)]).map_err(bench)?;
        shared.waiting.insert(wr_id, receive);
        Ok(())
    }

    pub(super) fn post_late(&mut self) -> Outcomes<()> {
        let now = self.cycle();
        for at in 0..self.slots.len() {
            for end in 0..2 {
                while self.slots[at].late[end].front().is_some_and(|(due, _)| *due <= now) {
                    if let Some((_, r)) = self.slots[at].late[end].pop_front() {
                        self.report.add("receives posted late", 1);
                        self.post_receives(at, end, &[r])?;
                    }
                }
            }
        }
        for end in 0..2 {
            let due = match &mut self.shared[end] {
                Some(s) => {
                    let n = s.late.iter().filter(|d| **d <= now).count();
                    s.late.retain(|d| *d > now);
                    n
                }
                None => 0,
            };
            for _ in 0..due {
                self.report.add("receives posted late", 1);
                self.post_shared(end)?;
            }
        }
        Ok(())
    }

    /// Until everything has completed that must.
    pub(super) fn wait(&mut self) -> Outcomes<()> {
        let start = self.cycle();
        loop {
            self.poll(false)?;
            self.post_late()?;
            if !self.slots.iter().any(|s| s.open()) {
                return Ok(());
            }
            if self.cycle() - start > BUDGET {
                return Err(self.stuck());
            }
            self.run(200)?;
        }
    }

    /// What has not come.
    fn stuck(&self) -> Difference {
        let stuck = self.slots.iter().filter(|s| s.open()).map(|s| {
            format!(
                "connection {} (QPs {:#x}, {:#x}): {:?}, {:?}, {} and {} requests wait for others",
                s.number,
                s.configs[0].qpn,
                s.configs[1].qpn,
                s.outcomes.each_ref().map(|o| o.sends.front().cloned()),
                s.outcomes.each_ref().map(|o| o.receives.front().cloned().map(|mut r| {
                    r.data.clear();
                    r
                })),
                s.to_send[0].len(),
                s.to_send[1].len(),
            )
        });
        Difference::new("completion missing", stuck.collect::<Vec<_>>().join("; "))
    }

    pub(super) fn slot_of(&mut self, end: usize, wc: &WorkCompletion) -> Outcomes<usize> {
        let at = self.slots.iter().position(|s| s.configs[end].qpn == wc.qpn.0);
        at.ok_or_else(|| Difference::new("completion", format!("end {end}: {wc:?}: nobody has this QP")))
    }

    pub(super) fn send_completion(&mut self, end: usize, wc: &WorkCompletion) -> Outcomes<Weight> {
        let at = self.slot_of(end, wc)?;
        self.report.add("completions", 1);
        let seen = seen(wc);
        let slot = &mut self.slots[at];
        if slot.void {
            return Ok(Weight::Perhaps);
        }
        let due: Option<SendDone> = slot.outcomes[end].sends.front().cloned();
        if seen.status == status::RETRY_EXC_ERR && due.as_ref().is_none_or(|d| d.status != seen.status) {
            // Bad luck, if it really tried so often: a NAK that ends its sender is not repeated when it is lost.
            let judge = self.judge.borrow();
            let tries = judge
                .connections
                .get(&(slot.number as usize))
                .map_or(0, |c| c.flows[end].requester.most_tries);
            if tries >= u32::from(slot.configs[end].retry_cnt) {
                drop(judge);
                self.report.add("given up by bad luck", 1);
                self.give_up(at)?;
                return Ok(Weight::Raises);
            }
            return Err(Difference::new(
                "send completion",
                format!(
                    "end {end}: {wc:?}: given up after {tries} tries in a row, and retry_cnt is {}",
                    slot.configs[end].retry_cnt
                ),
            ));
        }
        let Some(due) = due else {
            return Err(Difference::new(
                "send completion",
                format!("end {end}: {wc:?}: nothing is due"),
            ));
        };
        due.matches(wc.qpn.0, &seen)?;
        slot.outcomes[end].sends.pop_front();
        slot.sent[end] = due.request + 1;
        self.report.add(&format!("completed with status {}", seen.status), 1);
        if due.op.is_key() {
            self.report
                .add(&format!("{:?} completed with status {}", due.op, seen.status), 1);
        }
        Ok(if seen.status == status::SUCCESS {
            Weight::Quiet
        } else {
            Weight::Raises
        })
    }

    pub(super) fn receive_completion(&mut self, end: usize, wc: &WorkCompletion) -> Outcomes<Weight> {
        let at = self.slot_of(end, wc)?;
        self.report.add("completions", 1);
        let slot = &mut self.slots[at];
        let receive = match &mut self.shared[end] {
            Some(shared) if slot.shared[end] => match shared.waiting.remove(&wc.wr_id) {
                Some(r) => {
                    if let Some(p) = r.pieces.first() {
                        shared.free.push(((p.addr - shared.area.base) as usize) / LONGEST);
                    }
                    Some(r)
                }
                None => {
                    return Err(Difference::new(
                        "receive completion",
                        format!("end {end}: {wc:?}: no such receive waits in the shared queue"),
                    ));
                }
            },
            _ => None,
        };
        if slot.void {
            return Ok(Weight::Perhaps);
        }
        let due: Option<ReceiveDone> = slot.outcomes[1 - end].receives.front().cloned();
        let Some(due) = due else {
            return Err(Difference::new(
                "receive completion",
                format!("end {end}: {wc:?}: nothing is due"),
            ));
        };
        due.matches(wc.qpn.0, &seen(wc))?;
        slot.outcomes[1 - end].receives.pop_front();
        if let Some(request) = due.request {
            slot.received[1 - end] = request + 1;
        }
        if let Some(r) = receive {
            self.report.add("receives of a shared queue", 1);
            let _ = self.memory[end].scatter(&r.pieces, &due.data);
        }
        Ok(if due.solicited { Weight::Raises } else { Weight::Quiet })
    }

    /// A connection whose frames were lost too often: ends it without a comparison.
    pub(super) fn give_up(&mut self, at: usize) -> Outcomes<()> {
        let slot = &mut self.slots[at];
        slot.void = true;
        slot.late = Default::default();
        for outcome in &mut slot.outcomes {
            outcome.sends.clear();
            outcome.receives.clear();
        }
        for qp in &slot.qps {
            qp.to_err().map_err(bench)?;
        }
        if let Some(c) = self.judge.borrow_mut().connections.get_mut(&(slot.number as usize)) {
            for flow in &mut c.flows {
                flow.responder.silent = true;
            }
        }
        Ok(())
    }

    /// Until no frame has come for a while.
    pub(super) fn quiet(&mut self) -> Outcomes<()> {
        let start = self.cycle();
        let mut frames = self.judge.borrow().frames;
        let mut since = self.cycle();
        loop {
            self.run(500)?;
            // What is left in the queues by now has raised its event.
            let late = self.cycle() - since > 1500;
            self.poll(late)?;
            let now = self.judge.borrow().frames;
            let idle = self.pair.world.borrow().is_idle();
            if now != frames || !idle {
                frames = now;
                since = self.cycle();
            }
            let owed = self.watches.iter().flatten().any(|w| w.owes());
            if self.cycle() - since > 3000 && !owed {
                return Ok(());
            }
            if self.cycle() - start > BUDGET {
                return Err(Difference::new(
                    "no rest",
                    "frames are sent for ever although everything has completed",
                ));
            }
        }
    }
}

impl Slot {
    /// Something is still to come.
    fn open(&self) -> bool {
        !self.void
            && self
                .outcomes
                .iter()
                .any(|o| !o.sends.is_empty() || !o.receives.is_empty())
            || self.late.iter().any(|l| !l.is_empty())
    }
}

fn seen(wc: &WorkCompletion) -> Seen {
    Seen {
        wr_id: wc.wr_id,
        status: u8::from(wc.status),
        opcode: u8::from(wc.opcode),
        len: wc.byte_len,
        imm: wc.imm,
        invalidated: wc.invalidated.map(|k| k.0),
    }
}

fn sge(p: &Piece) -> Sge {
    Sge {
        addr: Iova(p.addr),
        length: p.len,
        lkey: LKey(p.key),
    }
}

fn recv_wr(r: &Receive) -> RecvWr {
    RecvWr {
        wr_id: r.wr_id,
        sges: r.pieces.iter().map(sge).collect(),
    }
}

fn send_wr(r: &Request) -> SendWr {
    let opcode = match r.op {
        Op::Send => WqeOpcode::Send,
        Op::SendImm => WqeOpcode::SendWithImm,
        Op::SendInv => WqeOpcode::SendWithInv,
        Op::Write => WqeOpcode::RdmaWrite,
        Op::WriteImm => WqeOpcode::RdmaWriteWithImm,
        Op::Read => WqeOpcode::RdmaRead,
        Op::CompareSwap => WqeOpcode::AtomicCmpAndSwp,
        Op::FetchAdd => WqeOpcode::AtomicFetchAndAdd,
        Op::RegMr => WqeOpcode::RegMr,
        Op::LocalInv => WqeOpcode::LocalInv,
        Op::BindMw => WqeOpcode::BindMw,
    };
    SendWr {
        inline_data: r.inline.clone(),
        signaled: r.signaled,
        solicited: r.solicited,
        fence: r.fence,
        imm: r.imm,
        remote_addr: Iova(r.va),
        rkey: RKey(r.rkey),
        atomic: r.operands,
        ..SendWr::new(r.wr_id, opcode, r.pieces.iter().map(sge).collect())
    }
}
