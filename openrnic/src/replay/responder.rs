// SPDX-License-Identifier: Apache-2.0
//! The RTL as the recorded responder: it gets the recorded requests, and its answers stand beside the recorded ones.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use anyhow::{Context, Result, bail};
use openrnic_driver::{MemoryRegion, RecvWr};
use openrnic_sim::NicBus;
use openrnic_spec::{AethSyndrome, MrKind, Opcode};
use openrnic_testbench::wire::Roce;

use super::bed::{Bed, BedParams, QpPlan};
use super::fields;
use super::flow::{Event, Flow, is_rnr};
use super::{Difference, Line, Side, Transcript};

/// A key that no region has.
const NO_KEY: u32 = 0xffff_ff00;
/// Turned around in the QPN of a frame that was recorded as misdirected.
const NOT_A_QP: u32 = 0x80_0000;
/// Longest region that a recording may ask for.
const MAX_REGION: u64 = 16 << 20;

/// Addresses of a request: key, first byte, bytes.
fn target(e: &Event) -> Option<(u32, u64, u64)> {
    match (e.roce.ext.reth, e.roce.ext.atomic) {
        (Some(r), _) => Some((r.rkey, r.va, u64::from(r.dma_len))),
        (_, Some(a)) => Some((a.rkey, a.va, 8)),
        _ => None,
    }
}

/// A region that stands for a recorded one, and what it should hold.
struct Region {
    mr: MemoryRegion<NicBus>,
    base: u64,
    shadow: Vec<u8>,
}

impl Region {
    /// Where `len` bytes from `va` on stand in it, if they do.
    fn at(&self, va: u64, len: usize) -> Option<Range<usize>> {
        let at = usize::try_from(va.checked_sub(self.base)?).ok()?;
        let end = at.checked_add(len)?;
        (end <= self.shadow.len()).then_some(at..end)
    }

    /// Makes the memory hold `data` before the peer reads it: the recorded host had changed it.
    fn hold(&mut self, va: u64, data: &[u8]) -> Result<()> {
        if let Some(at) = self.at(va, data.len())
            && self.shadow[at.clone()] != *data
        {
            self.mr.write(at.start, data)?;
            self.note(va, data);
        }
        Ok(())
    }

    /// `data` is there from now on.
    fn note(&mut self, va: u64, data: &[u8]) {
        if let Some(at) = self.at(va, data.len()) {
            self.shadow[at].copy_from_slice(data);
        }
    }
}

/// One receive that was posted: offset in the region, and what shall have come there.
struct Posted {
    number: usize,
    offset: usize,
    expect: Vec<u8>,
}

struct Player<'a> {
    flow: &'a Flow,
    bed: Bed,
    regions: BTreeMap<u32, Region>,
    receive: MemoryRegion<NicBus>,
    receive_used: usize,
    posted: Vec<Posted>,
    taken: BTreeSet<u32>,
    absent: &'a [u32],
}

/// Plays the requests of a conversation.
///
/// # Errors
/// As simulator and driver say; a recording that asks for what a simulated host cannot have.
pub fn play(params: &BedParams, flow: &Flow, absent: &[u32], verbatim: bool) -> Result<Transcript> {
    let Some(first) = flow.events.iter().find(|e| e.request) else {
        bail!("no request was recorded")
    };
    let rnr = flow.responses().filter_map(Event::syndrome).find(|s| is_rnr(*s));
    let plan = QpPlan {
        responder: true,
        qpn: verbatim.then_some(flow.qpn),
        peer_qpn: flow.peer_qpn.unwrap_or(0x12_3456),
        psn: first.psn(),
        rnr_timer: rnr.map_or(12, |s| s & 0x1f),
    };
    let bed = Bed::new(params, flow, &plan)?;
    let regions = regions(&bed, flow)?;
    let bytes: usize = flow.events.iter().map(|e| e.roce.payload.len()).sum();
    let receive = bed.region(None, bytes + 64 * flow.events.len())?;
    let mut player = Player {
        flow,
        bed,
        regions,
        receive,
        receive_used: 0,
        posted: Vec::new(),
        taken: BTreeSet::new(),
        absent,
    };
    player.run()
}

/// The regions that the recorded responder must have had: per accepted key, all that was asked of it.
fn regions(bed: &Bed, flow: &Flow) -> Result<BTreeMap<u32, Region>> {
    let mut extents: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    let mut lent: BTreeSet<u32> = BTreeSet::new();
    for (i, e) in flow.events.iter().enumerate() {
        if let Some(key) = e
            .roce
            .ext
            .ieth
            .filter(|_| e.request && e.roce.icrc_ok() && !refused(flow, i))
        {
            lent.insert(key);
        }
        let Some((key, va, len)) = target(e) else { continue };
        if !e.request || refused(flow, i) || !e.roce.icrc_ok() {
            continue;
        }
        let end = va
            .checked_add(len)
            .context("a recorded request wraps the address space")?;
        let extent = extents.entry(key).or_insert((va, end));
        *extent = (extent.0.min(va), extent.1.max(end));
    }
    for key in &lent {
        extents.entry(*key).or_insert((0, 8));
    }
    let mut out = BTreeMap::new();
    for (key, (va, end)) in extents {
        let len = (end - va).max(8);
        if len > MAX_REGION {
            bail!("key {key:#x} was used for {len} bytes: a replay has at most {MAX_REGION} for one region");
        }
        let kind = if lent.contains(&key) {
            MrKind::FastReg
        } else {
            MrKind::Region
        };
        let mr = bed.region_of(kind, Some(va), len as usize)?;
        let shadow = vec![0xa5; len as usize];
        mr.write(0, &shadow)?;
        out.insert(key, Region { mr, base: va, shadow });
    }
    Ok(out)
}

/// The recorded responder refused the key or the address of the message that starts here.
fn refused(flow: &Flow, i: usize) -> bool {
    let psns: BTreeSet<u32> = flow.message(i).iter().map(|e| e.psn()).collect();
    flow.answers_to(i)
        .any(|e| e.says(AethSyndrome::NakRemAccess) && psns.contains(&e.psn()))
}

impl Player<'_> {
    fn run(&mut self) -> Result<Transcript> {
        let flow = self.flow;
        let mut rtl: Vec<(usize, Roce)> = Vec::new();
        for (i, e) in flow.events.iter().enumerate().filter(|(_, e)| e.request) {
            if e.lost {
                continue;
            }
            self.prepare(i, e)
                .with_context(|| format!("before frame {}", e.number))?;
            let frame = self.mapped(i, e);
            self.bed
                .inject(&frame)
                .with_context(|| format!("at frame {}", e.number))?;
            rtl.extend(self.bed.take_frames()?.into_iter().map(|r| (i, r)));
        }
        let mut out = self.beside(&rtl);
        self.memory(&mut out)?;
        self.bed.finish()?;
        Ok(out)
    }

    /// What the recorded host did before the request came: a receive posted, memory written.
    fn prepare(&mut self, i: usize, e: &Event) -> Result<()> {
        if !e.roce.icrc_ok() || self.absent.contains(&e.roce.bth.dest_qpn) {
            return Ok(());
        }
        let rnr = self.flow.syndrome_of(i).is_some_and(is_rnr);
        if e.takes_receive() && !rnr && self.taken.insert(e.psn()) {
            self.post(i, e)?;
        }
        let (Some(info), Some((key, va, _))) = (e.info(), target(e)) else {
            return Ok(());
        };
        let data = if info.is_read_req {
            self.read_data(i)
        } else {
            let message = self.flow.message(i);
            message.iter().flat_map(|p| p.roce.payload.clone()).collect()
        };
        let original = self.flow.answers_to(i).find_map(|r| r.roce.ext.atomic_ack);
        let Some(region) = self.regions.get_mut(&key) else {
            return Ok(());
        };
        if info.is_read_req {
            region.hold(va, &data)?;
        } else if let (Some(original), Some(a)) = (original, e.roce.ext.atomic)
            && self.taken.insert(e.psn())
        {
            region.hold(va, &original.to_le_bytes())?;
            let new = if info.opcode == Opcode::RcFetchAdd {
                original.wrapping_add(a.swap_add)
            } else if original == a.compare {
                a.swap_add
            } else {
                original
            };
            region.note(va, &new.to_le_bytes());
        } else if info.is_write && !refused(self.flow, i) {
            region.note(va, &data);
        }
        Ok(())
    }

    /// The data of a READ as recorded, up to the first packet that was not.
    fn read_data(&self, i: usize) -> Vec<u8> {
        let Some(e) = self.flow.events.get(i) else {
            return Vec::new();
        };
        (0..e.psns(self.flow.mtu))
            .map_while(|n| {
                let psn = e.psn().wrapping_add(n) & 0xff_ffff;
                let mut answers = self.flow.answers_to(i);
                answers.find(|r| r.psn() == psn && r.is_read_data())
            })
            .flat_map(|r| r.roce.payload.clone())
            .collect()
    }

    fn post(&mut self, i: usize, e: &Event) -> Result<()> {
        let message = if e.is(|i| i.is_send) {
            self.flow.message(i)
        } else {
            Vec::new()
        };
        let mut expect: Vec<u8> = Vec::new();
        let mut room = None;
        for packet in message {
            expect.extend(&packet.roce.payload);
            let nak = self
                .flow
                .responses()
                .any(|r| r.psn() == packet.psn() && r.says(AethSyndrome::NakRemOp));
            if nak && room.is_none() {
                // Too long by this packet, as recorded.
                room = Some(expect.len().saturating_sub(1));
            }
        }
        let length = room.unwrap_or(expect.len());
        if room.is_some() {
            expect.clear();
        }
        let offset = self.receive_used;
        self.receive_used += length.next_multiple_of(64);
        let sges = if length == 0 {
            Vec::new()
        } else {
            vec![self.receive.sge(offset, length as u32)]
        };
        self.bed.qp.post_recv(&[RecvWr {
            wr_id: e.number as u64,
            sges,
        }])?;
        self.posted.push(Posted {
            number: e.number,
            offset,
            expect,
        });
        Ok(())
    }

    /// The request with the simulated numbers in it.
    fn mapped(&self, i: usize, e: &Event) -> Vec<u8> {
        let mut roce = e.roce.clone();
        let ok = roce.icrc_ok();
        let own = self.bed.qp.qpn().0;
        roce.bth.dest_qpn = if self.absent.contains(&roce.bth.dest_qpn) {
            own ^ NOT_A_QP
        } else {
            own
        };
        let key = |recorded: u32| match self.regions.get(&recorded) {
            Some(region) if !refused(self.flow, i) => region.mr.rkey().0,
            _ => NO_KEY,
        };
        if let Some(reth) = &mut roce.ext.reth {
            reth.rkey = key(reth.rkey);
        }
        if let Some(atomic) = &mut roce.ext.atomic {
            atomic.rkey = key(atomic.rkey);
        }
        if let Some(ieth) = &mut roce.ext.ieth {
            *ieth = key(*ieth);
        }
        roce = roce.seal();
        if !ok {
            roce.icrc ^= 1;
        }
        roce.emit()
    }

    /// Recorded and RTL's answers side by side, below the request that made the RTL answer.
    fn beside(&self, rtl: &[(usize, Roce)]) -> Transcript {
        let recorded: Vec<&Event> = self.flow.responses().collect();
        let a: Vec<&Roce> = recorded.iter().map(|e| &e.roce).collect();
        let b: Vec<&Roce> = rtl.iter().map(|(_, r)| r).collect();
        let mut out = Transcript::new(Side::Responder);
        // Request -> its lines. A recorded answer without one of the RTL goes where the one before it went.
        let mut below: BTreeMap<usize, Vec<fields::Aligned>> = BTreeMap::new();
        let mut at = self.flow.events.iter().position(|e| e.request).unwrap_or(0);
        for (i, j) in fields::align(&a, &b) {
            if let Some((request, _)) = j.and_then(|j| rtl.get(j)) {
                at = *request;
            } else if let Some(answer) = i.and_then(|i| recorded.get(i)) {
                let psn = answer.psn();
                let exact = self
                    .flow
                    .events
                    .iter()
                    .position(|e| e.request && !e.lost && e.psn() == psn && e.number < answer.number);
                at = exact.unwrap_or(at).max(at);
            }
            below.entry(at).or_default().push((i, j));
        }
        for (i, e) in self.flow.events.iter().enumerate().filter(|(_, e)| e.request) {
            out.lines.push(Line::given(e));
            for (r, s) in below.remove(&i).unwrap_or_default() {
                let (r, s) = (
                    r.and_then(|r| recorded.get(r)),
                    s.and_then(|s| rtl.get(s)).map(|(_, r)| r),
                );
                let number = r.map_or(e.number, |r| r.number);
                out.compare(number, r.map(|r| &r.roce), s);
            }
        }
        out
    }

    /// What the host sees afterwards.
    fn memory(&self, out: &mut Transcript) -> Result<()> {
        let request = self.flow.events.iter().find(|e| e.request).map_or(0, |e| e.number);
        for (key, region) in &self.regions {
            let now = region.mr.read(0, region.shadow.len())?;
            if let Some(at) = now.iter().zip(&region.shadow).position(|(a, b)| a != b) {
                out.differences.push(Difference {
                    side: Side::Responder,
                    frame: request,
                    field: "memory".to_owned(),
                    recorded: format!("key {key:#x}, byte {at}: {:#04x}", region.shadow[at]),
                    rtl: format!("{:#04x}", now[at]),
                    reason: None,
                });
            }
        }
        let completions = self.bed.cq.poll(1024)?;
        let received: BTreeSet<u64> = completions
            .iter()
            .filter(|c| c.status == openrnic_spec::WcStatus::Success)
            .map(|c| c.wr_id)
            .collect();
        for p in &self.posted {
            let now = self.receive.read(p.offset, p.expect.len())?;
            // A refused or half recorded message completes nothing.
            let done = received.contains(&(p.number as u64));
            if done && now != p.expect {
                let at = now.iter().zip(&p.expect).position(|(a, b)| a != b).unwrap_or(0);
                out.differences.push(Difference {
                    side: Side::Responder,
                    frame: p.number,
                    field: "received".to_owned(),
                    recorded: format!("byte {at}: {:#04x}", p.expect[at]),
                    rtl: format!("{:#04x}", now[at]),
                    reason: None,
                });
            }
        }
        out.completions = received.len();
        Ok(())
    }
}
