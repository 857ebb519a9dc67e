// SPDX-License-Identifier: Apache-2.0
//! What comes of posted work: the oracle. It executes the requests of one direction of a connection in the order in which they
//! were posted, once each, and tells contents of both memories, completions of both ends, and what is left of the queue pairs.
//! Of the wire it knows nothing: whatever frames were lost or came twice, the outcome must be this one.

use std::collections::VecDeque;

use super::memory::Memory;
use super::requester::{Refusal, psns_of};
use super::responder::allowed;
use super::{Checked, Op, QpConfig, Receive, Request, differ, event, right, status, syndrome};

/// A completion that must come, at the requester.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendDone {
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

/// The work of one direction and what is around it.
pub struct Direction<'a> {
    /// The requester's queue pair.
    pub from: QpConfig,
    /// The responder's.
    pub to: QpConfig,
    /// Memory of the requester's end.
    pub local: &'a mut Memory,
    /// Memory of the responder's end.
    pub remote: &'a mut Memory,
    /// Receives come from a shared queue.
    pub shared: bool,
    /// Nothing of what the requester sends arrives.
    pub silence: bool,
}

/// How a message meets its receive.
enum Landing {
    Whole,
    /// The receive is wrong from this byte on.
    Upto(usize, u8, u8),
}

impl Direction<'_> {
    /// Executes requests in order; `receives` are those that the responder has posted, or will.
    pub fn execute(&mut self, requests: &[Request], receives: &[Receive]) -> Outcome {
        let mut out = Outcome::default();
        let mut receives: VecDeque<Receive> = receives.iter().cloned().collect();
        for r in requests {
            let mut fate = Fate {
                payload: Vec::new(),
                result: Vec::new(),
                refusal: None,
                local_failure: false,
            };
            let ended = if out.requester_fails {
                status::WR_FLUSH_ERR
            } else {
                self.one(r, &mut receives, &mut out, &mut fate)
            };
            out.requester_fails |= ended != status::SUCCESS;
            if ended == status::WR_FLUSH_ERR && !r.op.has_response() {
                // It may be on its way before the failure is known.
                match (&r.inline, self.local.gather(&r.pieces)) {
                    (Some(data), _) => fate.payload.clone_from(data),
                    (None, Ok(data)) => fate.payload = data,
                    (None, Err(_)) => fate.local_failure = true,
                }
            }
            if ended != status::SUCCESS || r.signaled {
                out.sends.push_back(SendDone {
                    wr_id: r.wr_id,
                    status: ended,
                    op: r.op,
                    len: if r.op.has_response() { r.len() as u32 } else { 0 },
                });
            }
            out.fates.push(fate);
        }
        if out.responder_fails && !self.shared {
            for r in receives {
                out.receives.push_back(ReceiveDone {
                    wr_id: Some(r.wr_id),
                    status: status::WR_FLUSH_ERR,
                    op: Op::Send,
                    len: 0,
                    imm: 0,
                    data: Vec::new(),
                });
            }
        }
        out
    }

    /// Executes one; its status at the requester.
    fn one(&mut self, r: &Request, receives: &mut VecDeque<Receive>, out: &mut Outcome, fate: &mut Fate) -> u8 {
        let len = r.len();
        let mtu = self.from.mtu;
        let psns = psns_of(r.op, len, mtu);
        // Here.
        if r.op.has_response() {
            if r.pieces.iter().any(|p| {
                self.local
                    .check(p.key, p.addr, p.len as usize, right::LOCAL_WRITE)
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
        let key_ok = r.op.is_send() || self.remote.check(r.rkey, r.va, len, need).is_ok();
        if r.op.takes_receive() && !self.shared {
            // The first packet of a SEND, the last of a WRITE asks for the receive.
            let asks = if r.op.is_send() { 0 } else { psns - 1 };
            if key_ok || asks == 0 {
                let Some(receive) = receives.front().cloned() else {
                    if r.op == Op::WriteImm {
                        let before = asks as usize * mtu;
                        let _ = self.remote.write(r.rkey, r.va, &fate.payload[..before], need);
                    }
                    return status::RNR_RETRY_EXC_ERR;
                };
                receives.pop_front();
                out.receives_used += 1;
                let mut done = ReceiveDone {
                    wr_id: Some(receive.wr_id),
                    status: status::SUCCESS,
                    op: r.op,
                    len: len as u32,
                    imm: r.imm,
                    data: Vec::new(),
                };
                if !key_ok {
                    done.status = status::LOC_ACCESS_ERR;
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
                        out.receives.push_back(done);
                        return refuse(out, packet, nak, None);
                    }
                    let _ = self.remote.scatter(&receive.pieces, &fate.payload);
                    if r.op == Op::SendInv && self.remote.invalidate(r.imm).is_err() {
                        done.status = status::LOC_ACCESS_ERR;
                        out.receives.push_back(done);
                        return refuse(out, psns - 1, syndrome::ACCESS, None);
                    }
                }
                out.receives.push_back(done);
            }
        } else if r.op.takes_receive() && key_ok {
            out.receives_used += 1;
            if r.op == Op::SendInv {
                let _ = self.remote.invalidate(r.imm);
            }
            let data = if r.op.is_send() {
                fate.payload.clone()
            } else {
                Vec::new()
            };
            out.receives.push_back(ReceiveDone {
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
                let _ = self.remote.write(r.rkey, r.va, &fate.payload, need);
            }
            Op::Read => {
                fate.result = self.remote.read(r.rkey, r.va, len, need).unwrap_or_default();
                let _ = self.local.scatter(&r.pieces, &fate.result);
            }
            Op::CompareSwap | Op::FetchAdd => {
                if let Ok(was) = self.remote.atomic(r.op, r.rkey, r.va, r.operands) {
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
            if self.remote.check(p.key, p.addr, n, right::LOCAL_WRITE).is_err() {
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
mod tests {
    use super::super::Piece;
    use super::super::memory::Region;
    use super::*;

    fn region(key: u32, rights: u8, fast: bool) -> Region {
        Region {
            key,
            base: 0x1000,
            rights,
            fast,
            valid: true,
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
        };
        let (mut local, mut remote) = (Memory::default(), Memory::default());
        local.add(region(1, right::LOCAL_WRITE, false));
        local.regions[0].bytes.fill(0x11);
        remote.add(region(2, 15, false));
        remote.add(region(3, 15, true));
        let mut d = Direction {
            from: config,
            to: config,
            local: &mut local,
            remote: &mut remote,
            shared: false,
            silence: false,
        };
        let out = d.execute(requests, receives);
        (out, local, remote)
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
        let (out, local, remote) = run(&[request(Op::Write, 300), request(Op::FetchAdd, 8)], &[]);
        assert!(out.sends.iter().all(|s| s.status == status::SUCCESS));
        assert_eq!(remote.regions[0].bytes[8..300], [0x11; 292]);
        assert_eq!(remote.regions[0].bytes[..8], 0x1111_1111_1111_1114u64.to_le_bytes());
        assert_eq!(local.regions[0].bytes[..8], [0x11; 8]);
    }

    #[test]
    fn a_send_that_is_too_long_ends_both_ends_in_the_packet_that_does_not_fit() {
        let (out, _, remote) = run(
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
        assert_eq!(remote.regions[0].bytes[0x400..0x600], [0x11; 0x200]);
        assert_eq!(remote.regions[0].bytes[0x600], 0);
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
        assert_eq!((out.sends[0].status, remote.regions[1].valid), (status::SUCCESS, false));
        let mut local = request(Op::Send, 8);
        local.pieces[0].key = 8;
        let (out, ..) = run(&[local], &[receive(8)]);
        assert!(out.fates[0].local_failure && out.receives.is_empty());
        assert_eq!(out.sends[0].status, status::LOC_PROT_ERR);
        let (out, ..) = run(&[request(Op::Send, 8)], &[]);
        assert_eq!(out.sends[0].status, status::RNR_RETRY_EXC_ERR);
    }
}
