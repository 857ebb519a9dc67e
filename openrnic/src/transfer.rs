// SPDX-License-Identifier: Apache-2.0
//! Step `transfer`: messages between pairs with every byte checked. Buffers are registered for the step,
//! destinations are poisoned, and 64 guard bytes before and behind each must stay as they were.

use std::collections::{BTreeMap, VecDeque};

use anyhow::{Result, bail, ensure};
use openrnic_driver::{CompletionQueue, Cqn, MemoryRegion, MrInit, Qpn, RecvWr, SendWr, Sge};
use openrnic_spec::{Access, WcOpcode, WcStatus, WqeOpcode};

use crate::run::{Qps, Run, compare};
use crate::scenario::Transfer;
use crate::world::SimBus;

const GUARD: usize = 64;
const POISON: u8 = 0xa5;

/// One message.
struct Message {
    pair: usize,
    bytes: usize,
    /// First byte of the payload in either region.
    at: usize,
    imm: Option<u32>,
    send_wr: u64,
    recv_wr: u64,
}

impl Run<'_> {
    pub(crate) fn transfer(&mut self, t: &Transfer) -> Result<()> {
        let op = t.op.get_ref().0;
        let (froms, tos) = (self.qps(t.from.get_ref())?, self.qps(t.to.get_ref())?);
        let is_send = matches!(op, WqeOpcode::Send | WqeOpcode::SendWithImm);
        let has_imm = matches!(op, WqeOpcode::SendWithImm | WqeOpcode::RdmaWriteWithImm);
        let is_read = op == WqeOpcode::RdmaRead;

        let misalign = t.misalign.as_ref().map_or(0, |m| *m.get_ref());
        let mut messages = Vec::new();
        let mut end = 0;
        for pair in 0..froms.len() {
            for bytes in t.bytes.get_ref() {
                let at = end + GUARD + misalign;
                end = (at + bytes + GUARD).next_multiple_of(64);
                let imm = has_imm.then(|| self.rng.bits() as u32);
                let (send_wr, recv_wr) = (self.next_wr, self.next_wr + 1);
                self.next_wr += 2;
                messages.push(Message {
                    pair,
                    bytes: *bytes,
                    at,
                    imm,
                    send_wr,
                    recv_wr,
                });
            }
        }

        // Data flows from `source` to `sink`; with a READ the requester is the sink.
        let (from, to) = (self.group(t.from.get_ref())?.0, self.group(t.to.get_ref())?.0);
        let (from_pd, to_pd) = (from.pd.clone(), to.pd.clone());
        let cqs = [(from.nic, from.send_cq), (to.nic, to.recv_cq)];
        let (from_nic, to_nic) = (from.nic, to.nic);
        let (source_pd, sink_pd) = if is_read { (to_pd, from_pd) } else { (from_pd, to_pd) };
        let source = source_pd.register(&MrInit::new(end, Access::LOCAL_WRITE | Access::REMOTE_READ))?;
        let sink = sink_pd.register(&MrInit::new(end, Access::LOCAL_WRITE | Access::REMOTE_WRITE))?;
        let data = self.random(end);
        source.write(0, &data)?;
        sink.write(0, &vec![POISON; end])?;

        let sges = t.sges.as_ref().map_or(1, |s| *s.get_ref());
        let recv_sges = t.recv_sges.as_ref().map_or(1, |s| *s.get_ref());
        // As many messages at a time as all queues hold.
        let mut room = usize::MAX;
        for qp in froms.iter().chain(&tos) {
            let cap = qp.cap()?;
            room = room.min(cap.max_send_wr.min(cap.max_recv_wr) as usize);
        }
        let per_pair = t.bytes.get_ref().len();
        let mut first = 0;
        while first < per_pair {
            let last = (first + room.max(1)).min(per_pair);
            let part: Vec<&Message> = (0..froms.len())
                .flat_map(|pair| {
                    messages
                        .get(pair * per_pair + first..pair * per_pair + last)
                        .unwrap_or(&[])
                })
                .collect();
            if is_send || has_imm {
                for m in &part {
                    let sges = if is_send {
                        split(&sink, m.at, m.bytes, recv_sges)
                    } else {
                        Vec::new()
                    };
                    tos[m.pair].post_recv(&[RecvWr { wr_id: m.recv_wr, sges }])?;
                }
            }
            for m in &part {
                let local = if is_read { &sink } else { &source };
                let remote = if is_read { &source } else { &sink };
                let mut wr = SendWr::new(m.send_wr, op, split(local, m.at, m.bytes, sges));
                if !is_send {
                    wr.remote_addr = remote.iova().offset(m.at as u64);
                    wr.rkey = remote.rkey();
                }
                wr.imm = m.imm.unwrap_or(0);
                if t.inline {
                    wr = wr.with_inline(data.get(m.at..m.at + m.bytes).unwrap_or(&[]).to_vec());
                }
                froms[m.pair].post_send(&[wr])?;
            }
            self.collect(&part, [&froms, &tos], cqs, is_send || has_imm, op)?;
            first = last;
        }

        let mut want = vec![POISON; end];
        for m in &messages {
            want[m.at..m.at + m.bytes].copy_from_slice(&data[m.at..m.at + m.bytes]);
        }
        let sink_nic = if is_read { from_nic } else { to_nic };
        let got = sink.read(0, end)?;
        for m in &messages {
            let what = format!(
                "{op} of {} bytes, pair {} ({} to {}): destination at NIC `{}`",
                m.bytes,
                m.pair,
                self.name_of(from_nic, froms[m.pair].qpn()),
                self.name_of(to_nic, tos[m.pair].qpn()),
                self.nics[sink_nic].name
            );
            compare(&what, 0, &want[m.at..m.at + m.bytes], &got[m.at..m.at + m.bytes])?;
        }
        compare("guard bytes around the destinations", 0, &want, &got)?;
        compare("source of the messages", 0, &data, &source.read(0, end)?)?;
        source.deregister()?;
        sink.deregister()?;

        *self.summary.messages.entry(op.name()).or_default() += messages.len() as u64;
        self.summary.bytes += messages.iter().map(|m| m.bytes as u64).sum::<u64>();
        Ok(())
    }

    /// Waits for all completions of both sides and checks each.
    fn collect(
        &mut self,
        part: &[&Message],
        [froms, tos]: [&Qps; 2],
        cqs: [(usize, Cqn); 2],
        receives: bool,
        op: WqeOpcode,
    ) -> Result<()> {
        // What is still to come, by queue pair and side, in order.
        let mut left: BTreeMap<(usize, Qpn, bool), VecDeque<&Message>> = BTreeMap::new();
        for m in part {
            left.entry((cqs[0].0, froms[m.pair].qpn(), false))
                .or_default()
                .push_back(m);
            if receives {
                left.entry((cqs[1].0, tos[m.pair].qpn(), true))
                    .or_default()
                    .push_back(m);
            }
        }
        let mut queues: Vec<(usize, CompletionQueue<SimBus>)> = vec![(cqs[0].0, self.cq(cqs[0].0, cqs[0].1)?)];
        if receives && cqs[0] != cqs[1] {
            queues.push((cqs[1].0, self.cq(cqs[1].0, cqs[1].1)?));
        }
        let start = self.sim.cycle();
        let mut quiet = start;
        while !left.is_empty() {
            for (nic, queue) in &queues {
                for wc in queue.poll(256)? {
                    quiet = self.sim.cycle();
                    let key = (*nic, wc.qpn, wc.is_recv);
                    let Some(m) = left.get_mut(&key).and_then(VecDeque::pop_front) else {
                        bail!("a completion that nothing waits for: {}", self.describe(*nic, &wc));
                    };
                    if left.get(&key).is_some_and(VecDeque::is_empty) {
                        left.remove(&key);
                    }
                    ensure!(
                        wc.status == WcStatus::Success,
                        "{op} of {} bytes failed: {}",
                        m.bytes,
                        self.describe(*nic, &wc)
                    );
                    let (wr, opcode) = match (wc.is_recv, op) {
                        (true, WqeOpcode::RdmaWriteWithImm) => (m.recv_wr, WcOpcode::RecvRdmaWithImm),
                        (true, _) => (m.recv_wr, WcOpcode::Recv),
                        (false, WqeOpcode::RdmaRead) => (m.send_wr, WcOpcode::RdmaRead),
                        (false, WqeOpcode::RdmaWrite | WqeOpcode::RdmaWriteWithImm) => (m.send_wr, WcOpcode::RdmaWrite),
                        (false, _) => (m.send_wr, WcOpcode::Send),
                    };
                    ensure!(wc.wr_id == wr, "completions out of order: {}", self.describe(*nic, &wc));
                    ensure!(
                        wc.opcode == opcode,
                        "expected opcode {opcode}, got {}",
                        self.describe(*nic, &wc)
                    );
                    let has_length = wc.is_recv || op == WqeOpcode::RdmaRead;
                    if has_length && wc.byte_len as usize != m.bytes {
                        bail!("expected {} bytes, got {}", m.bytes, self.describe(*nic, &wc));
                    }
                    if wc.is_recv && wc.imm != m.imm {
                        let imm = m.imm.map_or_else(|| "none".into(), |i| format!("{i:#x}"));
                        bail!("expected immediate {imm}, got {}", self.describe(*nic, &wc));
                    }
                }
            }
            if left.is_empty() {
                break;
            }
            if self.sim.cycle() - quiet >= self.wait_cycles {
                self.stalled = true;
                let missing: usize = left.values().map(VecDeque::len).sum();
                let first = left.keys().next().map(|(nic, qpn, is_recv)| {
                    let side = if *is_recv { "receive" } else { "send" };
                    format!("a {side} of {}", self.name_of(*nic, *qpn))
                });
                bail!(
                    "{op}: no completion for {} clock cycles, {missing} are missing, the first of them {}",
                    self.wait_cycles,
                    first.unwrap_or_default()
                );
            }
            self.sim.run(32)?;
        }
        Ok(())
    }
}

/// `bytes` from `at` on in `n` pieces of about the same length.
fn split(mr: &MemoryRegion<SimBus>, at: usize, bytes: usize, n: usize) -> Vec<Sge> {
    let n = n.min(bytes);
    (0..n)
        .map(|i| {
            let (from, to) = (bytes * i / n, bytes * (i + 1) / n);
            mr.sge(at + from, (to - from) as u32)
        })
        .collect()
}
