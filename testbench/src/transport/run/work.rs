// SPDX-License-Identifier: Apache-2.0
//! The work of a round: posted, completed, until everything is quiet.

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
        loop {
            let waiting: Vec<(usize, usize)> = (0..self.slots.len())
                .flat_map(|at| [(at, 0), (at, 1)])
                .filter(|(at, from)| !self.slots[*at].to_send[*from].is_empty())
                .collect();
            if waiting.is_empty() {
                return Ok(());
            }
            let (at, from) = waiting[self.rng.below(waiting.len() as u64) as usize];
            let chunk = 1 + self.rng.below(5) as usize;
            let slot = &mut self.slots[at];
            let left = slot.to_send[from].len();
            let done = slot.plan.work[from].requests.len() - left;
            let requests: Vec<Request> = slot.to_send[from].drain(..chunk.min(left)).collect();
            let fates = &slot.outcomes[from].fates[done..];
            {
                let mut judge = self.judge.borrow_mut();
                if let Some(c) = judge.connections.get_mut(&(slot.number as usize)) {
                    for (r, f) in requests.iter().zip(fates) {
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
            let list: Vec<SendWr> = requests.iter().map(send_wr).collect();
            slot.qps[from].post_send(&list).map_err(bench)?;
            let pause = self.rng.chance(0.3);
            if pause {
                let cycles = 1 + self.rng.below(300);
                self.run(cycles)?;
            }
            self.poll()?;
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
            self.poll()?;
            self.post_late()?;
            let open = |s: &&Slot| {
                !s.void && s.outcomes.iter().any(|o| !o.sends.is_empty() || !o.receives.is_empty())
                    || s.late.iter().any(|l| !l.is_empty())
            };
            if !self.slots.iter().any(|s| open(&s)) {
                return Ok(());
            }
            if self.cycle() - start > BUDGET {
                let stuck: Vec<String> = self
                    .slots
                    .iter()
                    .filter(open)
                    .map(|s| {
                        format!(
                            "connection {} (QPs {:#x}, {:#x}): {:?}, {:?}",
                            s.number,
                            s.configs[0].qpn,
                            s.configs[1].qpn,
                            s.outcomes.each_ref().map(|o| o.sends.front().cloned()),
                            s.outcomes.each_ref().map(|o| o.receives.front().cloned().map(|mut r| {
                                r.data.clear();
                                r
                            })),
                        )
                    })
                    .collect();
                return Err(Difference::new("completion missing", stuck.join("; ")));
            }
            self.run(200)?;
        }
    }

    pub(super) fn poll(&mut self) -> Outcomes<()> {
        for end in 0..2 {
            let (send_cq, recv_cq) = (self.pair.ends[end].send_cq.clone(), self.pair.ends[end].recv_cq.clone());
            for wc in all(&send_cq)? {
                self.send_completion(end, &wc)?;
            }
            for wc in all(&recv_cq)? {
                self.receive_completion(end, &wc)?;
            }
        }
        self.judged()
    }

    pub(super) fn slot_of(&mut self, end: usize, wc: &WorkCompletion) -> Outcomes<usize> {
        let at = self.slots.iter().position(|s| s.configs[end].qpn == wc.qpn.0);
        at.ok_or_else(|| Difference::new("completion", format!("end {end}: {wc:?}: nobody has this QP")))
    }

    pub(super) fn send_completion(&mut self, end: usize, wc: &WorkCompletion) -> Outcomes<()> {
        let at = self.slot_of(end, wc)?;
        self.report.add("completions", 1);
        let seen = seen(wc);
        let slot = &mut self.slots[at];
        if slot.void {
            return Ok(());
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
                return self.give_up(at);
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
        self.report.add(&format!("completed with status {}", seen.status), 1);
        Ok(())
    }

    pub(super) fn receive_completion(&mut self, end: usize, wc: &WorkCompletion) -> Outcomes<()> {
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
            return Ok(());
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
        if let Some(r) = receive {
            self.report.add("receives of a shared queue", 1);
            let _ = self.memory[end].scatter(&r.pieces, &due.data);
        }
        Ok(())
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
            self.poll()?;
            let now = self.judge.borrow().frames;
            let idle = self.pair.world.borrow().is_idle();
            if now != frames || !idle {
                frames = now;
                since = self.cycle();
            }
            if self.cycle() - since > 3000 {
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

fn all(cq: &CompletionQueue<NicBus>) -> Outcomes<Vec<WorkCompletion>> {
    cq.poll(256).map_err(bench)
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
