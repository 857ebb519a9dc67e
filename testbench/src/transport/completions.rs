// SPDX-License-Identifier: Apache-2.0
//! What comes of posted work: the oracle. It executes the requests of one direction of a connection in the order in which they
//! were posted, once each, and tells contents of both memories, completions of both ends, and what is left of the queue pairs.
//! Of the wire it knows nothing: whatever frames were lost or came twice, the outcome must be this one.

use std::collections::VecDeque;

use super::memory::{ANYBODY, Memory, NotDone};
use super::requester::{Refusal, psns_of};
use super::responder::allowed;
use super::{Checked, Op, QpConfig, Receive, Request, differ, event, right, status, syndrome};

/// A completion that must come, at the requester.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendDone {
    /// Place of the request among those of its direction.
    pub request: usize,
    /// That of the request.
    pub wr_id: u64,
    /// How it ends.
    pub status: u8,
    /// What it was.
    pub op: Op,
    /// Bytes that READs and atomics brought.
    pub len: u32,
}

/// A completion that must come, at the responder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiveDone {
    /// Place of the request that used it among those of its direction.
    pub request: Option<usize>,
    /// It counts for a queue that is armed for solicited completions only.
    pub solicited: bool,
    /// That of the receive; of a shared queue any that waits there.
    pub wr_id: Option<u64>,
    /// How it ends.
    pub status: u8,
    /// What used it.
    pub op: Op,
    /// Bytes.
    pub len: u32,
    /// Immediate, or the key that is gone.
    pub imm: u32,
    /// What lands in a receive of a shared queue.
    pub data: Vec<u8>,
}

/// What becomes of one request on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fate {
    /// Bytes that it carries.
    pub payload: Vec<u8>,
    /// Bytes that it brings back.
    pub result: Vec<u8>,
    /// The responder refuses it.
    pub refusal: Option<Refusal>,
    /// It fails before it is sent.
    pub local_failure: bool,
}

/// What comes of the work of one direction.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// One for each request.
    pub fates: Vec<Fate>,
    /// Completions at the requester, in order.
    pub sends: VecDeque<SendDone>,
    /// Completions at the responder, in order.
    pub receives: VecDeque<ReceiveDone>,
    /// The event that the responder's end raises.
    pub event: Option<u8>,
    /// The requester's queue pair ends in ERR.
    pub requester_fails: bool,
    /// The responder's does.
    pub responder_fails: bool,
    /// Receives that messages used.
    pub receives_used: u64,
}

/// Both ends of a connection, and what they do in a round.
pub struct Round<'a> {
    /// Their queue pairs.
    pub configs: [QpConfig; 2],
    /// Receives of an end come from a shared queue.
    pub shared: [bool; 2],
    /// Nothing of what the end sends arrives.
    pub silence: [bool; 2],
    /// Posted by each end, in this order.
    pub requests: [&'a [Request]; 2],
    /// Posted for them at the other end, early or late.
    pub receives: [&'a [Receive]; 2],
}

impl Round<'_> {
    /// Executes the requests of each direction in order, each when what it waits for has been executed. In which order the directions take
    /// turns otherwise makes no difference: they have no memory in common but what such waiting puts in order. A direction
    /// without all its fates waits for something that never comes.
    pub fn execute(&self, memory: &mut [Memory; 2]) -> [Outcome; 2] {
        let mut outcomes = [Outcome::default(), Outcome::default()];
        let mut receives = [0, 1].map(|from: usize| self.receives[from].iter().cloned().collect::<VecDeque<_>>());
        let mut moved = true;
        while std::mem::take(&mut moved) {
            for from in 0..2 {
                while let Some(r) = self.requests[from].get(outcomes[from].fates.len()) {
                    if r.after.is_some_and(|g| outcomes[g.from].fates.len() <= g.request) {
                        break;
                    }
                    let direction = &mut self.direction(from, memory);
                    direction.step(r, &mut receives[from], &mut outcomes[from]);
                    moved = true;
                }
            }
        }
        for from in 0..2 {
            let flushed = std::mem::take(&mut receives[from]);
            self.direction(from, memory).finish(flushed, &mut outcomes[from]);
        }
        outcomes
    }

    fn direction<'m>(&self, from: usize, memory: &'m mut [Memory; 2]) -> Direction<'m> {
        let to = 1 - from;
        let [first, second] = memory;
        let (local, remote) = if from == 0 { (first, second) } else { (second, first) };
        Direction {
            from: self.configs[from],
            to: self.configs[to],
            local,
            remote,
            shared: self.shared[to],
            silence: self.silence[from],
        }
    }
}

/// One direction and what is around it.
struct Direction<'a> {
    /// The requester's queue pair.
    from: QpConfig,
    /// The responder's.
    to: QpConfig,
    /// Memory of the requester's end.
    local: &'a mut Memory,
    /// Memory of the responder's end.
    remote: &'a mut Memory,
    /// Receives come from a shared queue.
    shared: bool,
    /// Nothing of what the requester sends arrives.
    silence: bool,
}

/// How a message meets its receive.
enum Landing {
    Whole,
    /// The receive is wrong from this byte on.
    Upto(usize, u8, u8),
}

impl Direction<'_> {
    /// Executes the next request.
    fn step(&mut self, r: &Request, receives: &mut VecDeque<Receive>, out: &mut Outcome) {
        let mut fate = Fate {
            payload: Vec::new(),
            result: Vec::new(),
            refusal: None,
            local_failure: false,
        };
        let ended = if out.requester_fails {
            status::WR_FLUSH_ERR
        } else {
            self.one(r, receives, out, &mut fate)
        };
        out.requester_fails |= ended != status::SUCCESS;
        if ended == status::WR_FLUSH_ERR && r.op.is_key() {
            // It may have been done before the failure was known; what is sent behind it then finds it done.
            let _ = self.key(r);
        } else if ended == status::WR_FLUSH_ERR && !r.op.has_response() {
            // It may be on its way before the failure is known.
            match (&r.inline, self.local.gather(&r.pieces)) {
                (Some(data), _) => fate.payload.clone_from(data),
                (None, Ok(data)) => fate.payload = data,
                (None, Err(_)) => fate.local_failure = true,
            }
        }
        if ended != status::SUCCESS || r.signaled {
            out.sends.push_back(SendDone {
                request: out.fates.len(),
                wr_id: r.wr_id,
                status: ended,
                op: r.op,
                len: if r.op.has_response() { r.len() as u32 } else { 0 },
            });
        }
        out.fates.push(fate);
    }

    /// Receives that nobody used: flushed where the responder has failed.
    fn finish(&self, receives: VecDeque<Receive>, out: &mut Outcome) {
        if out.responder_fails && !self.shared {
            for r in receives {
                out.receives.push_back(ReceiveDone {
                    request: None,
                    solicited: true,
                    wr_id: Some(r.wr_id),
                    status: status::WR_FLUSH_ERR,
                    op: Op::Send,
                    len: 0,
                    imm: 0,
                    data: Vec::new(),
                });
            }
        }
    }

    /// An operation on a key.
    fn key(&mut self, r: &Request) -> Result<(), NotDone> {
        match (r.op, &r.named) {
            (Op::RegMr, Some(named)) => self.local.register(r.rkey, named),
            (Op::BindMw, Some(named)) => self.local.bind(r.rkey, named, self.from.qpn),
            (Op::LocalInv, _) => self
                .local
                .invalidate(r.rkey, self.from.qpn)
                .map_err(|_| NotDone::Refused),
            _ => Err(NotDone::Malformed),
        }
    }

    /// Executes one; its status at the requester.
    fn one(&mut self, r: &Request, receives: &mut VecDeque<Receive>, out: &mut Outcome, fate: &mut Fate) -> u8 {
        let len = r.len();
        let mtu = self.from.mtu;
        let psns = psns_of(r.op, len, mtu);
        // Here.
        if r.op.is_key() {
            return match self.key(r) {
                Ok(()) => status::SUCCESS,
                Err(why) => {
                    fate.local_failure = true;
                    match why {
                        NotDone::Malformed => status::LOC_QP_OP_ERR,
                        NotDone::Refused => status::MW_BIND_ERR,
                    }
                }
            };
        }
        if r.op.has_response() {
            if r.pieces.iter().any(|p| {
                self.local
                    .check(p.key, p.addr, p.len as usize, right::LOCAL_WRITE, ANYBODY)
                    .is_err()
            }) {
                fate.local_failure = true;
                return status::LOC_PROT_ERR;
            }
        } else if let Some(data) = &r.inline {
            fate.payload.clone_from(data);
        } else {
            match self.local.gather(&r.pieces) {
                Ok(data) => fate.payload = data,
                Err(_) => {
                    fate.local_failure = true;
                    return status::LOC_PROT_ERR;
                }
            }
        }
        if self.silence {
            return status::RETRY_EXC_ERR;
        }
        // There.
        let mut refuse = |out: &mut Outcome, packet: u64, syndrome: u8, event: Option<u8>| {
            fate.refusal = Some(Refusal { packet, syndrome });
            out.responder_fails = true;
            out.event = event;
            match syndrome {
                syndrome::INVALID => status::REM_INV_REQ_ERR,
                syndrome::ACCESS => status::REM_ACCESS_ERR,
                _ => status::REM_OP_ERR,
            }
        };
        if !allowed(self.to.rights, r.op) || r.op.is_atomic() && !r.va.is_multiple_of(8) {
            return refuse(out, 0, syndrome::INVALID, Some(event::QP_REQ_ERR));
        }
        let need = match r.op {
            Op::Write | Op::WriteImm => right::REMOTE_WRITE,
            Op::Read => right::REMOTE_READ,
            Op::CompareSwap | Op::FetchAdd => right::REMOTE_ATOMIC,
            _ => 0,
        };
        let by = self.to.qpn;
        let key_ok = r.op.is_send() || self.remote.check(r.rkey, r.va, len, need, by).is_ok();
        if r.op.takes_receive() && !self.shared {
            // The first packet of a SEND, the last of a WRITE asks for the receive.
            let asks = if r.op.is_send() { 0 } else { psns - 1 };
            if key_ok || asks == 0 {
                let Some(receive) = receives.front().cloned() else {
                    if r.op == Op::WriteImm {
                        let before = asks as usize * mtu;
                        let _ = self.remote.write(r.rkey, r.va, &fate.payload[..before], need, by);
                    }
                    return status::RNR_RETRY_EXC_ERR;
                };
                receives.pop_front();
                out.receives_used += 1;
                let mut done = ReceiveDone {
                    request: Some(out.fates.len()),
                    solicited: r.solicited,
                    wr_id: Some(receive.wr_id),
                    status: status::SUCCESS,
                    op: r.op,
                    len: len as u32,
                    imm: r.imm,
                    data: Vec::new(),
                };
                if !key_ok {
                    done.status = status::LOC_ACCESS_ERR;
                    done.solicited = true;
                    out.receives.push_back(done);
                    return refuse(out, 0, syndrome::ACCESS, None);
                }
                if r.op.is_send() {
                    if let Landing::Upto(place, code, nak) = self.land(&receive, &fate.payload) {
                        let packet = (place / mtu) as u64;
                        let _ = self
                            .remote
                            .scatter(&receive.pieces, &fate.payload[..packet as usize * mtu]);
                        done.status = code;
                        done.solicited = true;
                        out.receives.push_back(done);
                        return refuse(out, packet, nak, None);
                    }
                    let _ = self.remote.scatter(&receive.pieces, &fate.payload);
                    if r.op == Op::SendInv && self.remote.invalidate(r.imm, by).is_err() {
                        done.status = status::LOC_ACCESS_ERR;
                        done.solicited = true;
                        out.receives.push_back(done);
                        return refuse(out, psns - 1, syndrome::ACCESS, None);
                    }
                }
                out.receives.push_back(done);
            }
        } else if r.op.takes_receive() && key_ok {
            out.receives_used += 1;
            if r.op == Op::SendInv {
                let _ = self.remote.invalidate(r.imm, by);
            }
            let data = if r.op.is_send() {
                fate.payload.clone()
            } else {
                Vec::new()
            };
            out.receives.push_back(ReceiveDone {
                request: Some(out.fates.len()),
                solicited: r.solicited,
                wr_id: None,
                status: status::SUCCESS,
                op: r.op,
                len: len as u32,
                imm: r.imm,
                data,
            });
        }
        if !key_ok {
            return refuse(out, 0, syndrome::ACCESS, Some(event::QP_ACCESS_ERR));
        }
        match r.op {
            Op::Write | Op::WriteImm => {
                let _ = self.remote.write(r.rkey, r.va, &fate.payload, need, by);
            }
            Op::Read => {
                fate.result = self.remote.read(r.rkey, r.va, len, need, by).unwrap_or_default();
                let _ = self.local.scatter(&r.pieces, &fate.result);
            }
            Op::CompareSwap | Op::FetchAdd => {
                if let Ok(was) = self.remote.atomic(r.op, r.rkey, r.va, r.operands, by) {
                    fate.result = was.to_le_bytes().to_vec();
                    let _ = self.local.scatter(&r.pieces, &fate.result);
                }
            }
            _ => {}
        }
        status::SUCCESS
    }

    /// Whether a receive holds a message.
    fn land(&self, receive: &Receive, data: &[u8]) -> Landing {
        let mut at = 0;
        for p in &receive.pieces {
            if at == data.len() {
                return Landing::Whole;
            }
            let n = (p.len as usize).min(data.len() - at);
            // A piece is judged for what of it the packet needs.
            if self
                .remote
                .check(p.key, p.addr, n, right::LOCAL_WRITE, ANYBODY)
                .is_err()
            {
                return Landing::Upto(at, status::LOC_PROT_ERR, syndrome::OPERATION);
            }
            at += n;
        }
        if at < data.len() {
            // The packet in which the message becomes longer than the receive.
            return Landing::Upto(at, status::LOC_LEN_ERR, syndrome::INVALID);
        }
        Landing::Whole
    }
}

/// A completion as a device reports it, in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// That of the request.
    pub wr_id: u64,
    /// `ibv_wc_status`.
    pub status: u8,
    /// `ibv_wc_opcode`.
    pub opcode: u8,
    /// Bytes.
    pub len: u32,
    /// Immediate.
    pub imm: Option<u32>,
    /// Invalidated key.
    pub invalidated: Option<u32>,
}

/// `ibv_wc_opcode` of a send completion.
fn send_code(op: Op) -> u8 {
    match op {
        Op::Send | Op::SendImm | Op::SendInv => 0,
        Op::Write | Op::WriteImm => 1,
        Op::Read => 2,
        Op::CompareSwap => 3,
        Op::FetchAdd => 4,
        Op::BindMw => 5,
        Op::LocalInv => 6,
        // As the kernel's `IB_WC_REG_MR`.
        Op::RegMr => 10,
    }
}

impl SendDone {
    /// Compares with what came.
    ///
    /// # Errors
    /// Where it differs.
    pub fn matches(&self, qpn: u32, seen: &Seen) -> Checked {
        let good = self.status == status::SUCCESS;
        let same = self.wr_id == seen.wr_id
            && self.status == seen.status
            && (!good || send_code(self.op) == seen.opcode)
            && (!good || !self.op.has_response() || self.len == seen.len);
        if same {
            return Ok(());
        }
        differ(
            "send completion",
            format!("QP {qpn:#x}: {seen:?} came, {self:?} is due"),
        )
    }
}

impl ReceiveDone {
    /// Compares with what came.
    ///
    /// # Errors
    /// Where it differs.
    pub fn matches(&self, qpn: u32, seen: &Seen) -> Checked {
        let good = self.status == status::SUCCESS;
        let code = if self.op == Op::WriteImm { 129 } else { 128 };
        let same = self.wr_id.is_none_or(|id| id == seen.wr_id)
            && self.status == seen.status
            && (!good
                || code == seen.opcode
                    && self.len == seen.len
                    && seen.imm == self.op.has_imm().then_some(self.imm)
                    && seen.invalidated == (self.op == Op::SendInv).then_some(self.imm));
        if same {
            return Ok(());
        }
        let mut due = self.clone();
        due.data.clear();
        differ(
            "receive completion",
            format!("QP {qpn:#x}: {seen:x?} came, {due:x?} is due"),
        )
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::Piece;
    use super::super::memory::{Kind, Region};
    use super::super::{Gate, Named};
    use super::*;

    fn region(key: u32, rights: u8, fast: bool) -> Region {
        Region {
            key,
            base: 0x1000,
            rights,
            fast,
            bytes: vec![0; 4096],
        }
    }

    fn request(op: Op, len: u32) -> Request {
        Request {
            wr_id: 1,
            op,
            pieces: vec![Piece {
                addr: 0x1000,
                len,
                key: 1,
            }],
            inline: None,
            signaled: true,
            solicited: false,
            fence: false,
            imm: 7,
            va: 0x1000,
            rkey: 2,
            operands: (0, 3),
            named: None,
            after: None,
        }
    }

    fn run(requests: &[Request], receives: &[Receive]) -> (Outcome, Memory, Memory) {
        let config = QpConfig {
            qpn: 5,
            mtu: 256,
            sq_psn: 0,
            timeout: 5,
            retry_cnt: 7,
            rnr_retry: 7,
            min_rnr_timer: 1,
            max_rd_atomic: 4,
            rights: 14,
            v6: false,
        };
        let (mut local, mut remote) = (Memory::default(), Memory::default());
        local.add(region(1, right::LOCAL_WRITE, false));
        bytes(&mut local, 1).fill(0x11);
        local.allocate(0x100, Kind::Fast);
        remote.add(region(2, 15, false));
        remote.add(region(3, 15, true));
        let mut memory = [local, remote];
        let [out, _] = Round {
            configs: [config; 2],
            shared: [false; 2],
            silence: [false; 2],
            requests: [requests, &[]],
            receives: [receives, &[]],
        }
        .execute(&mut memory);
        let [local, remote] = memory;
        (out, local, remote)
    }

    fn bytes(memory: &mut Memory, key: u32) -> &mut Vec<u8> {
        memory.store(key).unwrap()
    }

    fn receive(len: u32) -> Receive {
        Receive {
            wr_id: 9,
            pieces: vec![Piece {
                addr: 0x1400,
                len,
                key: 2,
            }],
        }
    }

    #[test]
    fn good_work_completes_and_moves_bytes() {
        let (out, mut local, mut remote) = run(&[request(Op::Write, 300), request(Op::FetchAdd, 8)], &[]);
        assert!(out.sends.iter().all(|s| s.status == status::SUCCESS));
        assert_eq!(bytes(&mut remote, 2)[8..300], [0x11; 292]);
        assert_eq!(bytes(&mut remote, 2)[..8], 0x1111_1111_1111_1114u64.to_le_bytes());
        assert_eq!(bytes(&mut local, 1)[..8], [0x11; 8]);
    }

    #[test]
    fn a_send_that_is_too_long_ends_both_ends_in_the_packet_that_does_not_fit() {
        let (out, _, mut remote) = run(
            &[request(Op::Send, 700), request(Op::Write, 1)],
            &[receive(600), receive(1)],
        );
        let statuses: Vec<u8> = out.sends.iter().map(|s| s.status).collect();
        assert_eq!(statuses, [status::REM_INV_REQ_ERR, status::WR_FLUSH_ERR]);
        let statuses: Vec<u8> = out.receives.iter().map(|s| s.status).collect();
        assert_eq!(statuses, [status::LOC_LEN_ERR, status::WR_FLUSH_ERR]);
        assert_eq!(
            out.fates[0].refusal,
            Some(Refusal {
                packet: 2,
                syndrome: syndrome::INVALID
            })
        );
        assert_eq!(bytes(&mut remote, 2)[0x400..0x600], [0x11; 0x200]);
        assert_eq!(bytes(&mut remote, 2)[0x600], 0);
    }

    #[test]
    fn each_refusal_has_its_statuses_and_its_event() {
        let mut bad_key = request(Op::Read, 8);
        bad_key.rkey = 77;
        let (out, ..) = run(&[bad_key], &[]);
        assert_eq!(
            (out.sends[0].status, out.event),
            (status::REM_ACCESS_ERR, Some(event::QP_ACCESS_ERR))
        );
        let mut odd = request(Op::FetchAdd, 8);
        odd.va += 4;
        let (out, ..) = run(&[odd], &[]);
        assert_eq!(
            (out.sends[0].status, out.event),
            (status::REM_INV_REQ_ERR, Some(event::QP_REQ_ERR))
        );
        let mut inv = request(Op::SendInv, 8);
        inv.imm = 2;
        let (out, ..) = run(&[inv.clone()], &[receive(8)]);
        assert_eq!(
            (out.sends[0].status, out.receives[0].status, out.event),
            (status::REM_ACCESS_ERR, status::LOC_ACCESS_ERR, None)
        );
        inv.imm = 3;
        let (out, _, remote) = run(&[inv], &[receive(8)]);
        assert_eq!((out.sends[0].status, remote.is_live(3)), (status::SUCCESS, false));
        let mut local = request(Op::Send, 8);
        local.pieces[0].key = 8;
        let (out, ..) = run(&[local], &[receive(8)]);
        assert!(out.fates[0].local_failure && out.receives.is_empty());
        assert_eq!(out.sends[0].status, status::LOC_PROT_ERR);
        let (out, ..) = run(&[request(Op::Send, 8)], &[]);
        assert_eq!(out.sends[0].status, status::RNR_RETRY_EXC_ERR);
    }

    fn key(op: Op, key: u32) -> Request {
        Request {
            rkey: key,
            pieces: Vec::new(),
            named: (op == Op::RegMr).then_some(Named {
                region: 1,
                base: 0x9000,
                at: 16,
                len: 64,
                rights: 15,
                one_piece: false,
            }),
            ..request(op, 0)
        }
    }

    #[test]
    fn operations_on_keys_are_done_in_their_turn_and_end_the_queue_when_they_are_refused() {
        let mut from_it = request(Op::Write, 8);
        from_it.pieces[0] = Piece {
            addr: 0x9000,
            len: 8,
            key: 0x101,
        };
        let reg = key(Op::RegMr, 0x101);
        let inv = key(Op::LocalInv, 0x101);
        let work = [reg.clone(), from_it.clone(), inv.clone(), inv.clone(), from_it.clone()];
        let (out, ..) = run(&work, &[]);
        let statuses: Vec<u8> = out.sends.iter().map(|s| s.status).collect();
        assert_eq!(statuses, [0, 0, 0, status::MW_BIND_ERR, status::WR_FLUSH_ERR]);
        assert_eq!(
            out.fates.iter().map(|f| f.local_failure).collect::<Vec<_>>(),
            [false, false, false, true, true]
        );
        let mut empty = reg.clone();
        empty.named.as_mut().unwrap().len = 0;
        assert_eq!(run(&[empty], &[]).0.sends[0].status, status::LOC_QP_OP_ERR);
        assert_eq!(run(&[from_it], &[]).0.sends[0].status, status::LOC_PROT_ERR);
        assert_eq!(run(&[reg.clone(), reg], &[]).0.sends[1].status, status::MW_BIND_ERR);
    }

    #[test]
    fn what_waits_for_the_other_direction_is_executed_behind_it() {
        let mut memory = [Memory::default(), Memory::default()];
        memory[0].add(region(1, 15, false));
        memory[1].add(region(2, 15, false));
        memory[1].allocate(0x300, Kind::Fast);
        let mut reg = key(Op::RegMr, 0x301);
        reg.named.as_mut().unwrap().region = 2;
        let mut write = request(Op::Write, 8);
        (write.va, write.rkey) = (0x9000, 0x301);
        write.after = Some(Gate {
            from: 1,
            request: 0,
            received: false,
        });
        let mut inv = key(Op::LocalInv, 0x301);
        inv.after = Some(Gate {
            from: 0,
            request: 0,
            received: false,
        });
        let config = QpConfig {
            qpn: 5,
            mtu: 256,
            sq_psn: 0,
            timeout: 5,
            retry_cnt: 7,
            rnr_retry: 7,
            min_rnr_timer: 1,
            max_rd_atomic: 4,
            rights: 14,
            v6: false,
        };
        let outcomes = Round {
            configs: [config; 2],
            shared: [false; 2],
            silence: [false; 2],
            requests: [&[write], &[reg, inv]],
            receives: [&[], &[]],
        }
        .execute(&mut memory);
        assert!(
            outcomes
                .iter()
                .flat_map(|o| &o.sends)
                .all(|s| s.status == status::SUCCESS)
        );
        assert_eq!(outcomes.map(|o| o.fates.len()), [1, 2]);
        assert!(!memory[1].is_live(0x301));
    }
}
