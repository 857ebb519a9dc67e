// SPDX-License-Identifier: Apache-2.0
//! The RTL as the recorded requester: it gets the same work requests and the recorded answers, and its frames stand
//! beside the recorded ones.

use std::collections::{BTreeSet, VecDeque};

use anyhow::{Context, Result, bail};
use openrnic_driver::{Iova, MemoryRegion, RKey, SendWr};
use openrnic_sim::NicBus;
use openrnic_spec::{Opcode, WqeOpcode};
use openrnic_testbench::wire::Roce;

use super::bed::{Bed, BedParams, QpPlan};
use super::flow::{Event, Flow, after, is_nak};
use super::{Line, Side, Transcript};

/// Longest wait for a frame that is sent at once.
const PROMPT: u64 = 20_000;
/// Longest wait for one that a timer sends again: several transport time-outs, or the longest RNR timer in use.
const PATIENT: u64 = 400_000;

struct Player<'a> {
    flow: &'a Flow,
    bed: Bed,
    local: MemoryRegion<NicBus>,
    used: usize,
    /// Frames that it has sent and that stand beside no recorded one yet.
    waiting: VecDeque<Roce>,
    /// Messages that read: where their data goes, and what shall be there.
    reads: Vec<(usize, usize, Vec<u8>)>,
}

/// Posts what the recorded requester had posted and gives it the recorded answers.
///
/// # Errors
/// As simulator and driver say; a recording that asks for what no work request can say.
pub fn play(params: &BedParams, flow: &Flow, verbatim: bool) -> Result<Transcript> {
    let Some(first) = flow.events.iter().find(|e| e.request) else {
        bail!("no request was recorded")
    };
    let plan = QpPlan {
        responder: false,
        qpn: flow.peer_qpn.filter(|_| verbatim),
        peer_qpn: flow.qpn,
        psn: first.psn(),
        rnr_timer: 12,
    };
    let bed = Bed::new(params, flow, &plan)?;
    let bytes: usize = flow
        .events
        .iter()
        .map(|e| e.roce.payload.len() + e.roce.ext.reth.map_or(8, |r| r.dma_len as usize) + 64)
        .sum();
    let local = bed.region(None, bytes)?;
    let mut player = Player {
        flow,
        bed,
        local,
        used: 0,
        waiting: VecDeque::new(),
        reads: Vec::new(),
    };
    player.run()
}

impl Player<'_> {
    fn run(&mut self) -> Result<Transcript> {
        let flow = self.flow;
        let mut out = Transcript::new(Side::Requester);
        let mut posted: BTreeSet<u32> = BTreeSet::new();
        let mut next: Option<u32> = None;
        let own = self.bed.qp.qpn().0;
        for (i, e) in flow.events.iter().enumerate() {
            if e.request {
                let fresh = next.is_none_or(|n| after(e.psn(), n) >= 0);
                if fresh
                    && e.starts()
                    && posted.insert(e.psn())
                    && let Err(why) = self.post(i, e)
                {
                    out.differ(
                        e.number,
                        "work request",
                        &super::fields::name(e.roce.bth.opcode),
                        &format!("{why:#}"),
                    );
                }
                if fresh {
                    next = Some(e.psn().wrapping_add(e.psns(flow.mtu)) & 0xff_ffff);
                }
                let (before, frame) = self.frame(e.psn(), if fresh { PROMPT } else { PATIENT })?;
                for extra in before {
                    out.compare(e.number, None, Some(&extra));
                }
                out.compare(e.number, Some(&e.roce), frame.as_ref());
            } else {
                out.lines.push(Line::given(e));
                if !e.lost {
                    let mut roce = e.roce.clone();
                    let ok = roce.icrc_ok();
                    roce.bth.dest_qpn = own;
                    roce = roce.seal();
                    if !ok {
                        roce.icrc ^= 1;
                        out.differ(e.number, "icrc", "wrong", "right");
                    }
                    self.bed
                        .inject(&roce.emit())
                        .with_context(|| format!("at frame {}", e.number))?;
                }
            }
        }
        self.bed.quiet()?;
        let last = flow.events.last().map_or(0, |e| e.number);
        let mut rest: Vec<Roce> = self.waiting.drain(..).collect();
        rest.extend(self.bed.take_frames()?);
        for frame in rest {
            out.compare(last, None, Some(&frame));
        }
        for (number, offset, expect) in &self.reads {
            let now = self.local.read(*offset, expect.len())?;
            if let Some(at) = now.iter().zip(expect).position(|(a, b)| a != b) {
                out.differ(
                    *number,
                    "memory",
                    &format!("byte {at}: {:#04x}", expect[at]),
                    &format!("{:#04x}", now[at]),
                );
            }
        }
        out.completions = self.bed.cq.poll(1024)?.len();
        self.bed.finish()?;
        Ok(out)
    }

    /// The next frame with this PSN, and those before it. None within `budget` cycles: what was sent meanwhile waits.
    fn frame(&mut self, psn: u32, budget: u64) -> Result<(Vec<Roce>, Option<Roce>)> {
        let mut looked = 0;
        loop {
            let here = self.waiting.iter().skip(looked).position(|r| r.bth.psn == psn);
            if let Some(at) = here {
                let mut before: Vec<Roce> = self.waiting.drain(..=looked + at).collect();
                let frame = before.pop();
                return Ok((before, frame));
            }
            looked = self.waiting.len();
            match self.bed.next_frame(budget)? {
                Some(frame) => self.waiting.push_back(frame),
                None => return Ok((Vec::new(), None)),
            }
        }
    }

    fn room(&mut self, bytes: usize) -> usize {
        let offset = self.used;
        self.used += bytes.next_multiple_of(64);
        offset
    }

    fn post(&mut self, i: usize, e: &Event) -> Result<()> {
        let message = self.flow.message(i);
        let data: Vec<u8> = message.iter().flat_map(|p| p.roce.payload.clone()).collect();
        let last = message.last().copied().unwrap_or(e);
        let (imm, ieth) = (last.roce.ext.imm, last.roce.ext.ieth);
        let operation = match e.info() {
            Some(i) if i.is_send => match (imm, ieth) {
                (Some(_), _) => WqeOpcode::SendWithImm,
                (_, Some(_)) => WqeOpcode::SendWithInv,
                _ => WqeOpcode::Send,
            },
            Some(i) if i.is_write && imm.is_some() => WqeOpcode::RdmaWriteWithImm,
            Some(i) if i.is_write => WqeOpcode::RdmaWrite,
            Some(i) if i.is_read_req => WqeOpcode::RdmaRead,
            Some(i) if i.opcode == Opcode::RcCmpSwap => WqeOpcode::AtomicCmpAndSwp,
            Some(i) if i.opcode == Opcode::RcFetchAdd => WqeOpcode::AtomicFetchAndAdd,
            _ => bail!("no work request sends {}", super::fields::name(e.roce.bth.opcode)),
        };
        let length = match operation {
            WqeOpcode::RdmaRead => e.roce.ext.reth.map_or(0, |r| r.dma_len as usize),
            WqeOpcode::AtomicCmpAndSwp | WqeOpcode::AtomicFetchAndAdd => 8,
            _ => data.len(),
        };
        let offset = self.room(length);
        match operation {
            WqeOpcode::RdmaRead => self.expect_read(i, e, offset),
            WqeOpcode::AtomicCmpAndSwp | WqeOpcode::AtomicFetchAndAdd => {
                if let Some(original) = self.flow.answers_to(i).find_map(|r| r.roce.ext.atomic_ack) {
                    self.reads.push((e.number, offset, original.to_le_bytes().to_vec()));
                }
            }
            _ => self.local.write(offset, &data)?,
        }
        let sges = if length == 0 {
            Vec::new()
        } else {
            vec![self.local.sge(offset, length as u32)]
        };
        let mut wr = SendWr::new(e.number as u64, operation, sges);
        wr.solicited = last.roce.bth.solicited;
        wr.imm = imm.map(u32::from_be_bytes).or(ieth).unwrap_or(0);
        if let Some(reth) = e.roce.ext.reth {
            (wr.remote_addr, wr.rkey) = (Iova(reth.va), RKey(reth.rkey));
        }
        if let Some(a) = e.roce.ext.atomic {
            (wr.remote_addr, wr.rkey) = (Iova(a.va), RKey(a.rkey));
            wr.atomic = (a.compare, a.swap_add);
        }
        self.bed.qp.post_send(&[wr])?;
        Ok(())
    }

    /// A READ that was answered to its end puts the recorded data into memory.
    fn expect_read(&mut self, i: usize, e: &Event, offset: usize) {
        let (mtu, length) = (self.flow.mtu, e.roce.ext.reth.map_or(0, |r| r.dma_len as usize));
        let mut data = Vec::new();
        for n in 0..e.psns(mtu) {
            let psn = e.psn().wrapping_add(n) & 0xff_ffff;
            let answer = self.flow.events[i..].iter().find(|r| {
                !r.request && !r.lost && r.psn() == psn && r.is_read_data() && !r.syndrome().is_some_and(is_nak)
            });
            match answer {
                Some(r) => data.extend(&r.roce.payload),
                None => return,
            }
        }
        if data.len() == length {
            self.reads.push((e.number, offset, data));
        }
    }
}
