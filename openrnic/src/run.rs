// SPDX-License-Identifier: Apache-2.0
//! Runs a scenario: the objects, then step by step.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail, ensure};
use openrnic_driver::{
    BatchInit, CompletionQueue, Counters, CqInit, Cqn, Device, Error, GateRefusal, MemoryRegion, MrInit, Numbering,
    OpenParams, PostErrorKind, ProtectionDomain, QpBatch, QpCap, QpInit, QueuePair, RKey, RecvWr, SendWr, Sge,
    SharedReceiveQueue, WorkCompletion, XrcDomain,
};
use openrnic_sim::rng::Stream;
use openrnic_spec::{
    Access, CmdStatus, CounterId, DB_RQ, DB_SQ, DbQueue, MrKind, Mtu, Opcode, QpAttr, QpAttrBit, QpState, QpType,
    UAR_BASE, UAR_BYTES, WcStatus, qp_edge,
};

use crate::attrs::{NicAddress, differences, named, record};
use crate::frame::{self, FrameSpec};
use crate::scenario::{
    AttrDef, Completions, Connect, Create, ExpectCounters, ExpectEvent, ExpectFrames, ExpectMemory, ExpectQp, Fill,
    Inject, Modify, Piece, PostRecv, PostSend, QpDef, Refused, Scenario, Step, What,
};
use crate::value::{Mac, QpRef};
use crate::world::{Sim, SimBus, SimOptions};

/// How to run a scenario. What is `None` comes from the file, then from the default.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// Seed.
    pub seed: Option<u64>,
    /// Width of the data path in bits.
    pub data_width: Option<usize>,
    /// Capture file.
    pub pcap: Option<PathBuf>,
    /// Trace file.
    pub wave: Option<PathBuf>,
    /// When a wait runs out, tell of each queue pair what it waits for.
    pub on_stall: bool,
}

/// What a run did.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    /// The seed used.
    pub seed: u64,
    /// The width used.
    pub data_width: usize,
    /// Queue pairs made.
    pub qps: u64,
    /// Batch commands: what, queue pairs, clock cycles as the device measured them.
    pub batches: Vec<(String, u32, u32)>,
    /// Transitions that the gate refused, as expected: step's line and message.
    pub refusals: Vec<(usize, String)>,
    /// Messages that were checked, by operation.
    pub messages: BTreeMap<&'static str, u64>,
    /// Payload bytes that were compared.
    pub bytes: u64,
    /// Clock cycles.
    pub cycles: u64,
    /// Simulated time.
    pub time_ns: u64,
    /// Counters by NIC.
    pub counters: Vec<(String, Counters)>,
    /// RoCE frames by NIC: sent opcodes and how many.
    pub frames: Vec<(String, Vec<(u8, u64)>)>,
    /// Steps done.
    pub steps: usize,
}

/// A NIC with its driver and the objects that scenarios use unnamed.
pub(crate) struct Nic {
    pub(crate) name: String,
    pub(crate) device: Device<SimBus>,
    pub(crate) pd: ProtectionDomain<SimBus>,
    pub(crate) cq: CompletionQueue<SimBus>,
    mark: Counters,
}

/// A group of queue pairs that was made.
pub(crate) struct Group {
    pub(crate) nic: usize,
    pub(crate) qps: Vec<QueuePair<SimBus>>,
    batch: QpBatch<SimBus>,
    pub(crate) send_cq: Cqn,
    pub(crate) recv_cq: Cqn,
    /// Peer of each: NIC.
    peers: Vec<Option<usize>>,
    pub(crate) pd: ProtectionDomain<SimBus>,
}

/// A run under way.
pub struct Run<'a> {
    pub(crate) s: &'a Scenario,
    pub(crate) sim: Sim,
    pub(crate) nics: Vec<Nic>,
    addresses: Vec<NicAddress>,
    pds: BTreeMap<&'a str, ProtectionDomain<SimBus>>,
    mrs: BTreeMap<&'a str, MemoryRegion<SimBus>>,
    cqs: BTreeMap<&'a str, CompletionQueue<SimBus>>,
    /// Shared receive queues with their NICs; XRC domains by NIC.
    pub(crate) srqs: BTreeMap<String, (usize, SharedReceiveQueue<SimBus>)>,
    pub(crate) xrcds: BTreeMap<usize, XrcDomain<SimBus>>,
    pub(crate) groups: BTreeMap<&'a str, Group>,
    frame_mark: BTreeMap<(usize, bool, u8), u64>,
    pub(crate) wait_cycles: u64,
    pub(crate) rng: Stream,
    pub(crate) next_wr: u64,
    pub(crate) summary: Summary,
    /// A wait ran out of its budget.
    pub(crate) stalled: bool,
}

pub(crate) type Qps = Vec<QueuePair<SimBus>>;

/// Rights of a region unless it says otherwise.
const MR_ACCESS: Access = Access(Access::LOCAL_WRITE.0 | Access::REMOTE_WRITE.0 | Access::REMOTE_READ.0);

/// TIMEOUT of `connect`: 1 ms, so that a lost last packet is sent again well within the wait of a step.
const CONNECT_TIMEOUT: u8 = 8;

/// Entries of a NIC's own completion queue.
const OWN_CQ: u32 = 4096;

impl<'a> Run<'a> {
    /// Makes the world and brings the NICs up, with all objects but the queue pairs.
    ///
    /// # Errors
    /// What went wrong, in words.
    pub fn new(s: &'a Scenario, options: &RunOptions) -> Result<Self> {
        let seed = options.seed.or(s.doc.sim.seed).unwrap_or(1);
        let data_width = options
            .data_width
            .or(s.doc.sim.data_width.as_ref().map(|w| *w.get_ref()))
            .unwrap_or(64);
        let sim_options = SimOptions {
            seed,
            data_width,
            pcap: options.pcap.clone(),
            wave: options.wave.clone(),
        };
        let sim = Sim::new(&s.doc, &sim_options)?;
        let wait_cycles = s.doc.sim.wait_cycles.unwrap_or(2_000_000);
        let mut addresses: Vec<NicAddress> = Vec::new();
        for (i, nic) in s.doc.nic.iter().enumerate() {
            let nic = nic.get_ref();
            let number = i as u8 + 1;
            addresses.push(NicAddress {
                name: nic.name.get_ref().clone(),
                mac: nic.mac.unwrap_or(Mac([2, 0, 0, 0, 0, number])).0,
                gids: match &nic.gids {
                    Some(gids) => gids.iter().map(|g| g.0).collect(),
                    None => vec![openrnic_driver::Gid::from_ipv4([10, 0, 0, number])],
                },
            });
        }
        let mut run = Self {
            s,
            sim,
            nics: Vec::new(),
            addresses,
            pds: BTreeMap::new(),
            mrs: BTreeMap::new(),
            cqs: BTreeMap::new(),
            srqs: BTreeMap::new(),
            xrcds: BTreeMap::new(),
            groups: BTreeMap::new(),
            frame_mark: BTreeMap::new(),
            wait_cycles,
            rng: Stream::new(seed, "scenario", 0),
            next_wr: 1,
            summary: Summary {
                seed,
                data_width,
                ..Summary::default()
            },
            stalled: false,
        };
        for i in 0..s.doc.nic.len() {
            let nic = run
                .bring_up(i)
                .with_context(|| format!("NIC `{}` does not come up", run.addresses[i].name))?;
            run.nics.push(nic);
        }
        run.objects(None)?;
        run.make_srqs(None)?;
        run.mark()?;
        Ok(run)
    }

    fn bring_up(&self, i: usize) -> Result<Nic> {
        let def = self.s.doc.nic[i].get_ref();
        let mut params = OpenParams {
            dma_timeout_cycles: def.dma_timeout_cycles,
            ..OpenParams::default()
        };
        if let Some(n) = &def.command_ring {
            params.log_cmd_ring = n.get_ref().trailing_zeros();
        }
        if let Some(n) = def.host.as_ref().and_then(|h| h.max_read_request.as_ref()) {
            params.max_read_request = *n.get_ref();
        }
        let device = Device::open(self.sim.bus(i)?, params)?;
        self.configure(i, device)
    }

    /// Port, addresses and the objects that every NIC has.
    fn configure(&self, i: usize, device: Device<SimBus>) -> Result<Nic> {
        let def = self.s.doc.nic[i].get_ref();
        let address = &self.addresses[i];
        device.set_port(1, address.mac, def.mtu.map_or(Mtu::Mtu4096, |m| m.0), true)?;
        for (index, gid) in address.gids.iter().enumerate() {
            device.set_gid(index as u32, *gid)?;
        }
        let pkeys = def.pkeys.clone().unwrap_or_else(|| vec![0xffff]);
        for (index, pkey) in pkeys.iter().enumerate() {
            device.set_pkey(index as u32, *pkey)?;
        }
        for other in &self.addresses {
            for gid in &other.gids {
                device.add_neighbour(*gid, other.mac)?;
            }
        }
        let pd = device.alloc_pd()?;
        let cq = device.create_cq(&CqInit::entries(OWN_CQ))?;
        Ok(Nic {
            name: address.name.clone(),
            device,
            pd,
            cq,
            mark: Counters::default(),
        })
    }

    /// Makes protection domains, completion queues and regions: of all NICs, or of one that was reset.
    fn objects(&mut self, of: Option<usize>) -> Result<()> {
        let s = self.s;
        let only = of.map(|nic| self.nics[nic].name.clone());
        let wanted = |nic: &toml::Spanned<String>| only.as_ref().is_none_or(|n| n == nic.get_ref());
        for pd in s.doc.pd.iter().map(toml::Spanned::get_ref).filter(|pd| wanted(&pd.nic)) {
            let made = self.nics[self.nic(pd.nic.get_ref())?].device.alloc_pd()?;
            self.pds.insert(pd.name.get_ref(), made);
        }
        for cq in s.doc.cq.iter().map(toml::Spanned::get_ref).filter(|cq| wanted(&cq.nic)) {
            let init = CqInit {
                entries: *cq.entries.get_ref(),
                vector: cq.vector.unwrap_or(1),
                ..CqInit::default()
            };
            let made = self.nics[self.nic(cq.nic.get_ref())?]
                .device
                .create_cq(&init)
                .with_context(|| format!("completion queue `{}`", cq.name.get_ref()))?;
            self.cqs.insert(cq.name.get_ref(), made);
        }
        for mr in s.doc.mr.iter().map(toml::Spanned::get_ref).filter(|mr| wanted(&mr.nic)) {
            let pd = self.pd(
                mr.pd.as_ref().map(|p| p.get_ref().as_str()),
                self.nic(mr.nic.get_ref())?,
            )?;
            let mut init = MrInit::new(*mr.bytes.get_ref(), mr.access.map_or(MR_ACCESS, |a| a.0));
            init.iova = mr.iova.map(openrnic_driver::Iova);
            if mr.fast_reg {
                init.kind = MrKind::FastReg;
            }
            let made = pd
                .register(&init)
                .with_context(|| format!("memory region `{}`", mr.name.get_ref()))?;
            if let Some(fill) = &mr.fill {
                let data = self.content(fill.get_ref(), *mr.bytes.get_ref());
                made.write(0, &data)?;
            }
            self.mrs.insert(mr.name.get_ref(), made);
        }
        Ok(())
    }

    fn content(&mut self, fill: &Fill, bytes: usize) -> Vec<u8> {
        match fill {
            Fill::Byte(b) => vec![*b; bytes],
            Fill::Kind(kind) if kind == "random" => self.random(bytes),
            Fill::Kind(kind) if kind == "count" => (0..bytes).map(|i| (i % 251) as u8).collect(),
            Fill::Kind(_) => vec![0; bytes],
        }
    }

    pub(crate) fn random(&mut self, bytes: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes + 8);
        while out.len() < bytes {
            out.extend(self.rng.bits().to_le_bytes());
        }
        out.truncate(bytes);
        out
    }

    // ---------------------------------------------------------------- names

    pub(crate) fn nic(&self, name: &str) -> Result<usize> {
        self.addresses
            .iter()
            .position(|n| n.name == name)
            .ok_or_else(|| anyhow!("there is no NIC `{name}`"))
    }

    pub(crate) fn pd(&self, name: Option<&str>, nic: usize) -> Result<ProtectionDomain<SimBus>> {
        match name {
            None => Ok(self.nics[nic].pd.clone()),
            Some(name) => self
                .pds
                .get(name)
                .cloned()
                .ok_or_else(|| anyhow!("there is no protection domain `{name}`")),
        }
    }

    pub(crate) fn mr(&self, name: &str) -> Result<&MemoryRegion<SimBus>> {
        self.mrs
            .get(name)
            .ok_or_else(|| anyhow!("there is no memory region `{name}` (any more)"))
    }

    pub(crate) fn group(&self, r: &QpRef) -> Result<(&Group, Range<usize>)> {
        let group = self.groups.get(r.group.as_str()).ok_or_else(|| {
            anyhow!(
                "the queue pairs of `{}` do not exist: was their creation expected to fail?",
                r.group
            )
        })?;
        Ok((group, r.range.clone().unwrap_or(0..group.qps.len())))
    }

    pub(crate) fn qps(&self, r: &QpRef) -> Result<Qps> {
        let (group, range) = self.group(r)?;
        group
            .qps
            .get(range)
            .map(<[_]>::to_vec)
            .ok_or_else(|| anyhow!("`{r}`: the group has {} queue pairs", group.qps.len()))
    }

    pub(crate) fn cq(&self, nic: usize, cqn: Cqn) -> Result<CompletionQueue<SimBus>> {
        let mine = &self.nics[nic].cq;
        if mine.cqn() == cqn {
            return Ok(mine.clone());
        }
        let s = self.s;
        let named = s
            .doc
            .cq
            .iter()
            .map(toml::Spanned::get_ref)
            .filter(|c| *c.nic.get_ref() == self.nics[nic].name);
        named
            .filter_map(|c| self.cqs.get(c.name.get_ref().as_str()))
            .find(|c| c.cqn() == cqn)
            .cloned()
            .ok_or_else(|| anyhow!("NIC `{}` has no completion queue {cqn}", self.nics[nic].name))
    }

    /// The group's name and place of a queue pair, for messages.
    pub(crate) fn name_of(&self, nic: usize, qpn: openrnic_driver::Qpn) -> String {
        for (name, group) in self.groups.iter().filter(|(_, g)| g.nic == nic) {
            if let Some(i) = group.qps.iter().position(|q| q.qpn() == qpn) {
                return format!("{name}[{i}] (QPN {qpn})");
            }
        }
        format!("QPN {qpn}")
    }

    // ---------------------------------------------------------------- steps

    /// Does one step.
    ///
    /// # Errors
    /// What was expected and what is there instead.
    pub fn step(&mut self, step: &'a Step) -> Result<()> {
        match &step.what {
            What::Create(c) => self.create(c, false, step.line)?,
            What::Install(c) => self.create(c, true, step.line)?,
            What::Modify(m) => self.modify(m, step.line)?,
            What::Connect(c) => self.connect(c)?,
            What::Transfer(t) => self.transfer(t)?,
            What::PostSend(p) => self.post_send(p)?,
            What::PostRecv(p) => self.post_recv(p)?,
            What::PostSrq(p) => self.post_srq(p)?,
            What::SrqLimit(l) => self.srq_limit(l)?,
            What::ExpectSrq(e) => self.expect_srq(e)?,
            What::DestroySrq(d) => self.destroy_srq(d)?,
            What::Completions(c) => self.completions(c)?,
            What::ExpectQp(e) => self.expect_qp(e)?,
            What::ExpectMemory(e) => self.expect_memory(e)?,
            What::ExpectFrames(e) => self.expect_frames(e)?,
            What::ExpectCounters(e) => self.expect_counters(e)?,
            What::ExpectEvent(e) => self.expect_event(e)?,
            What::Inject(i) => self.inject(i)?,
            What::Disturb(d) => self.sim.disturb(self.nic(d.from.get_ref())?, d),
            What::HostFault(f) => self.host_fault(self.nic(f.nic.get_ref())?, f)?,
            What::Wait(w) => {
                let from_us = w.us.map(|us| us * 1_000_000 / self.sim.clk_period_ps());
                self.sim.run(w.cycles.or(from_us).unwrap_or(0))?;
            }
            What::Doorbell(d) => {
                let qpn = match &d.qp {
                    Some(qp) => self.qps(qp.get_ref())?[0].qpn().0,
                    None => d.qpn.unwrap_or(0),
                };
                let offset = match &d.queue {
                    Some(q) if q.get_ref() == "recv" => u32::from(DB_RQ),
                    Some(_) => u32::from(DB_SQ),
                    None => d.offset.as_ref().map_or(0, |o| *o.get_ref()),
                };
                let page = d.page.as_ref().map_or(0, |p| *p.get_ref());
                let at = u64::from(UAR_BASE + page * UAR_BYTES + offset);
                let value = DbQueue::new().with_qpn(qpn & 0xff_ffff).with_producer(d.producer);
                let device = &self.nics[self.nic(d.nic.get_ref())?].device;
                device.with_bus(|bus| openrnic_driver::Bus::mmio_write64(bus, at, u64::from_le_bytes(value.0)))??;
            }
            What::Command(c) => {
                let nic = self.nic(c.nic.get_ref())?;
                self.raw_command(nic, c)?;
            }
            What::Fill(f) => {
                let mr = self.mr(f.mr.get_ref())?.clone();
                let data = self.content(
                    f.with.get_ref(),
                    f.bytes.unwrap_or(mr.length().saturating_sub(f.offset)),
                );
                mr.write(f.offset, &data)?;
            }
            What::Destroy(d) => {
                let (group, range) = self.group(d.qps.get_ref())?;
                let outcome = if range.len() == group.qps.len() {
                    group.batch.destroy()
                } else {
                    let qpns: Vec<_> = group.qps[range].iter().map(QueuePair::qpn).collect();
                    self.nics[group.nic].device.batch(&qpns)?.destroy()
                };
                expect_status(outcome.map(drop), d.fails.map(|f| f.0))?;
            }
            What::Deregister(d) => {
                self.mr(d.mr.get_ref())?.deregister()?;
                self.mrs.remove(d.mr.get_ref().as_str());
            }
            What::ResetNic(r) => {
                let i = self.nic(r.nic.get_ref())?;
                self.nics[i].device.reset()?;
                let device = self.nics[i].device.clone();
                self.nics[i] = self.configure(i, device)?;
                self.groups.retain(|_, g| g.nic != i);
                self.forget_shared(i);
                self.objects(Some(i))?;
                self.make_srqs(Some(i))?;
                self.nics[i].mark = self.nics[i].device.counters()?;
            }
            What::Mark(_) => self.mark()?,
        }
        self.summary.steps += 1;
        Ok(())
    }

    fn mark(&mut self) -> Result<()> {
        for i in 0..self.nics.len() {
            self.nics[i].mark = self.nics[i].device.counters()?;
            for sent in [false, true] {
                for (opcode, count) in self.sim.all_frames(i, sent) {
                    self.frame_mark.insert((i, sent, opcode), count);
                }
            }
        }
        Ok(())
    }

    fn create(&mut self, c: &'a Create, install: bool, line: usize) -> Result<()> {
        let s = self.s;
        let name = c.qps.get_ref().as_str();
        let def: &QpDef = s
            .doc
            .qp
            .iter()
            .map(toml::Spanned::get_ref)
            .find(|d| d.name.get_ref() == name)
            .ok_or_else(|| anyhow!("there is no group `{name}`"))?;
        let nic = self.nic(def.nic.get_ref())?;
        let pd = self.pd(def.pd.as_ref().map(|p| p.get_ref().as_str()), nic)?;
        let cqn = |cq: &Option<toml::Spanned<String>>| match cq {
            None => Ok(None),
            Some(name) => match self.cqs.get(name.get_ref().as_str()) {
                Some(cq) => Ok(Some(cq.cqn())),
                None => Err(anyhow!("there is no completion queue `{}`", name.get_ref())),
            },
        };
        let send_cq = cqn(&def.cq)?.unwrap_or(self.nics[nic].cq.cqn());
        let recv_cq = cqn(&def.recv_cq)?.unwrap_or(send_cq);
        let count = def.count.as_ref().map_or(1, |c| *c.get_ref());
        let qp_type = def.qp_type.map_or(QpType::Rc, |t| t.0);
        let xrcd = if qp_type == QpType::XrcTgt {
            Some(self.xrcd(nic)?)
        } else {
            None
        };
        let init = QpInit {
            qp_type,
            send_cq,
            recv_cq,
            srq: self.srqn(&def.srq)?,
            xrcd,
            cap: QpCap {
                max_send_wr: def.max_send_wr.unwrap_or(32),
                max_recv_wr: def.max_recv_wr.unwrap_or(32),
                max_send_sge: def.max_send_sge.unwrap_or(4),
                max_recv_sge: def.max_recv_sge.unwrap_or(4),
                max_inline_data: def.max_inline.unwrap_or(0),
            },
            sq_sig_all: def.sig_all.unwrap_or(false),
            // No step posts REG_MR.
            fast_reg: false,
            uar: def.page.unwrap_or(0),
            qpn: def.qpn.as_ref().map(|q| openrnic_driver::Qpn(*q.get_ref())),
        };
        let numbering = match def.contiguous.as_ref().map(|c| c.get_ref().as_str()) {
            Some("no") => Numbering::Any,
            Some("require") => Numbering::Range,
            _ if count == 1 => Numbering::Any,
            _ => Numbering::PreferRange,
        };
        let batch = BatchInit {
            numbering,
            align_log2: def.align_log2.as_ref().map_or(0, |a| *a.get_ref()),
        };
        let outcome = if install {
            let edge = qp_edge(init.qp_type, QpState::Reset, QpState::Init);
            let (mask, attrs) = self.mask(c.attrs.as_ref(), c.mask.map(|m| m.0), Some(QpState::Init), edge);
            let record = record(
                &attrs,
                Some(QpState::Init),
                mask,
                self.dest(&attrs)?,
                &self.addresses,
                self.other(nic),
            );
            pd.install_qps_raw(count, &init, &batch, record)
        } else {
            pd.create_qps(count, &init, &batch)
        };
        let made = match self.refusal(outcome, c.refused.as_ref(), c.fails.map(|f| f.0), line)? {
            Some(made) => made,
            None => return Ok(()),
        };
        let what = format!("{} {name}", if install { "INSTALL_QP" } else { "CREATE_QP" });
        self.summary.batches.push((what, count, made.created().exec_cycles));
        self.summary.qps += u64::from(count);
        let qps = made.qps();
        let peers = vec![None; qps.len()];
        self.groups.insert(
            name,
            Group {
                nic,
                qps,
                batch: made,
                send_cq,
                recv_cq,
                peers,
                pd,
            },
        );
        Ok(())
    }

    fn other(&self, nic: usize) -> usize {
        (0..self.addresses.len()).find(|i| *i != nic).unwrap_or(nic)
    }

    fn dest(&self, attrs: &AttrDef) -> Result<Option<u32>> {
        match &attrs.dest {
            Some(dest) => Ok(self.qps(dest.get_ref())?.first().map(|q| q.qpn().0)),
            None => Ok(None),
        }
    }

    /// The mask that is sent, and the attributes that the step gives.
    fn mask(
        &self,
        attrs: Option<&AttrDef>,
        explicit: Option<QpAttrBit>,
        to: Option<QpState>,
        edge: Option<openrnic_spec::QpEdge>,
    ) -> (QpAttrBit, AttrDef) {
        let state = if to.is_some() {
            QpAttrBit::STATE
        } else {
            QpAttrBit::EMPTY
        };
        let given = attrs.cloned().unwrap_or_default();
        let mask = match (explicit, attrs) {
            (Some(mask), _) => mask,
            (None, Some(attrs)) => named(attrs) | state,
            (None, None) => edge.map_or(QpAttrBit::EMPTY, |e| e.required) | state,
        };
        (mask, given)
    }

    /// Judges an outcome that may be meant to be a refusal. `None`: it was one, as meant.
    fn refusal<T>(
        &mut self,
        outcome: openrnic_driver::Result<T>,
        refused: Option<&Refused>,
        fails: Option<CmdStatus>,
        line: usize,
    ) -> Result<Option<T>> {
        match (outcome, refused, fails) {
            (Ok(value), None, None) => Ok(Some(value)),
            (Ok(_), Some(refused), _) => {
                bail!(
                    "expected the gate to refuse ({}), but it let the transition pass",
                    expectation(refused)
                )
            }
            (Ok(_), _, Some(status)) => bail!("expected the command to fail with {status}, but it succeeded"),
            (Err(Error::Gate(refusal)), Some(wanted), _) => {
                self.check_refusal(&refusal, wanted)?;
                self.summary.refusals.push((line, refusal.to_string()));
                Ok(None)
            }
            (Err(e), _, Some(status)) if e.status() == Some(status) => Ok(None),
            (Err(e), Some(refused), _) => {
                Err(anyhow!(e).context(format!("expected the gate to refuse ({})", expectation(refused))))
            }
            (Err(e), _, Some(status)) => Err(anyhow!(e).context(format!("expected the status {status}"))),
            (Err(e), None, None) => Err(e.into()),
        }
    }

    fn check_refusal(&self, refusal: &GateRefusal, wanted: &Refused) -> Result<()> {
        if let Some(rule) = &wanted.rule {
            ensure!(
                rule.0 == refusal.rule,
                "expected a refusal by {}, got: {refusal}",
                expectation(wanted)
            );
        }
        if let Some(attrs) = &wanted.attrs {
            ensure!(
                attrs.0 == refusal.attrs,
                "expected a refusal by {}, got: {refusal}",
                expectation(wanted)
            );
        }
        if let Some(offender) = &wanted.offender
            && let Some(qp) = self.qps(offender.get_ref())?.first()
        {
            let (wanted, got) = (qp.qpn(), refusal.offender);
            ensure!(
                wanted == got,
                "expected {} ({wanted}) as the offender, got {got}",
                offender.get_ref()
            );
        }
        Ok(())
    }

    fn modify(&mut self, m: &'a Modify, line: usize) -> Result<()> {
        let mut qps = Qps::new();
        let mut range = m.qps.get_ref().0.len() == 1;
        let mut nic = 0;
        for r in &m.qps.get_ref().0 {
            let (group, places) = self.group(r)?;
            nic = group.nic;
            range &= places.len() == group.qps.len();
            qps.extend(self.qps(r)?);
        }
        let to = m.to.map(|t| t.0);
        let expected_failure = m.refused.is_some() || m.fails.is_some();
        // Enough to see that nothing changed, without a query for each of thousands.
        let witnesses: Qps = qps.iter().take(64).cloned().collect();
        let before = if expected_failure {
            Some(self.snapshot(&witnesses))
        } else {
            None
        };
        let records: Vec<QpAttr> = match &m.each {
            None => {
                let mut records = Vec::new();
                let wanted = if m.one_by_one {
                    qps.as_slice()
                } else {
                    qps.get(..1).unwrap_or(&[])
                };
                for qp in wanted {
                    records.push(self.record_for(qp, nic, m.attrs.as_ref(), m.mask.map(|x| x.0), to)?);
                }
                records
            }
            Some(each) => {
                let mut records = Vec::new();
                for (qp, attrs) in qps.iter().zip(each.get_ref()) {
                    records.push(self.record_for(qp, nic, Some(attrs), m.mask.map(|x| x.0), to)?);
                }
                records
            }
        };
        let target = to.map_or_else(|| "MODIFY_QP".to_owned(), |t| format!("MODIFY_QP to {t}"));
        if m.one_by_one {
            for (qp, record) in qps.iter().zip(&records) {
                let outcome = qp.modify_raw(record);
                self.refusal(outcome, m.refused.as_ref(), m.fails.map(|f| f.0), line)
                    .with_context(|| self.name_of(nic, qp.qpn()))?;
            }
        } else {
            let qpns: Vec<_> = qps.iter().map(QueuePair::qpn).collect();
            let batch = match m.qps.get_ref().0.first() {
                Some(r) if range => self.group(r)?.0.batch.clone(),
                _ => self.nics[nic].device.batch(&qpns)?,
            };
            let outcome = match (&m.each, records.first()) {
                (Some(_), _) => batch.modify_each_raw(&records),
                (None, Some(record)) => batch.modify_raw(record),
                (None, None) => bail!("no queue pair is named"),
            };
            if let Some(done) = self.refusal(outcome, m.refused.as_ref(), m.fails.map(|f| f.0), line)? {
                self.summary.batches.push((target, qpns.len() as u32, done.exec_cycles));
            }
        }
        if let Some(before) = before {
            let after = self.snapshot(&witnesses);
            for ((qp, b), a) in witnesses.iter().zip(before).zip(after) {
                ensure!(
                    a == b,
                    "the refused command changed {}: before {b}, after {a}",
                    self.name_of(nic, qp.qpn())
                );
            }
        }
        Ok(())
    }

    /// What the device says of queue pairs, or why it says nothing.
    fn snapshot(&self, qps: &[QueuePair<SimBus>]) -> Vec<String> {
        let show = |qp: &QueuePair<SimBus>| match qp.query() {
            Ok(q) => format!("{:?} {:?}", q.record, q.init),
            Err(e) => e.to_string(),
        };
        qps.iter().map(show).collect()
    }

    fn record_for(
        &self,
        qp: &QueuePair<SimBus>,
        nic: usize,
        attrs: Option<&AttrDef>,
        mask: Option<QpAttrBit>,
        to: Option<QpState>,
    ) -> Result<QpAttr> {
        let edge = match (to, attrs, mask) {
            (Some(to), None, None) => {
                let query = qp.query()?;
                let qp_type = QpType::try_from(query.init.qp_type()).unwrap_or(QpType::Rc);
                qp_edge(qp_type, query.state, to)
            }
            _ => None,
        };
        let (mask, attrs) = self.mask(attrs, mask, to, edge);
        Ok(record(
            &attrs,
            to,
            mask,
            self.dest(&attrs)?,
            &self.addresses,
            self.other(nic),
        ))
    }

    fn connect(&mut self, c: &'a Connect) -> Result<()> {
        let sides = [c.a.get_ref(), c.b.get_ref()];
        let (qa, qb) = (self.qps(sides[0])?, self.qps(sides[1])?);
        let (na, nb) = (self.group(sides[0])?.0.nic, self.group(sides[1])?.0.nic);
        let psns: Vec<(u32, u32)> = (0..qa.len())
            .map(|i| match &c.psn {
                Some(psn) => (
                    (psn.get_ref() + i as u32) & 0xff_ffff,
                    (psn.get_ref() + i as u32) & 0xff_ffff,
                ),
                None => (self.rng.below(1 << 24) as u32, self.rng.below(1 << 24) as u32),
            })
            .collect();
        let rd_atomic = c.rd_atomic.unwrap_or(4);
        for to in [QpState::Rtr, QpState::Rts] {
            for (own, peer, own_nic, peer_nic, flip) in [(&qa, &qb, na, nb, false), (&qb, &qa, nb, na, true)] {
                let records: Vec<QpAttr> = psns
                    .iter()
                    .zip(peer)
                    .map(|((psn_a, psn_b), peer)| {
                        let (own_psn, peer_psn) = if flip { (psn_b, psn_a) } else { (psn_a, psn_b) };
                        let attrs = AttrDef {
                            path_mtu: c.path_mtu,
                            dest_qpn: Some(peer.qpn().0),
                            rq_psn: Some(*peer_psn),
                            sq_psn: Some(*own_psn),
                            max_rd_atomic: Some(rd_atomic),
                            max_dest_rd_atomic: Some(rd_atomic),
                            min_rnr_timer: c.min_rnr_timer,
                            timeout: Some(c.timeout.unwrap_or(CONNECT_TIMEOUT)),
                            retry_cnt: c.retry_cnt,
                            rnr_retry: c.rnr_retry,
                            ..AttrDef::default()
                        };
                        let cur = if to == QpState::Rtr {
                            QpState::Init
                        } else {
                            QpState::Rtr
                        };
                        let required = qp_edge(QpType::Rc, cur, to).map_or(QpAttrBit::EMPTY, |e| e.required);
                        record(
                            &attrs,
                            Some(to),
                            required | QpAttrBit::STATE,
                            None,
                            &self.addresses,
                            peer_nic,
                        )
                    })
                    .collect();
                let device = self.nics[own_nic].device.clone();
                if c.one_by_one {
                    for (qp, record) in own.iter().zip(&records) {
                        qp.modify_raw(record).with_context(|| self.name_of(own_nic, qp.qpn()))?;
                    }
                    continue;
                }
                // A command takes 64 records.
                for (part, records) in own.chunks(64).zip(records.chunks(64)) {
                    let qpns: Vec<_> = part.iter().map(QueuePair::qpn).collect();
                    let done = match records {
                        [one] => part[0].modify_raw(one)?,
                        many => device.batch(&qpns)?.modify_each_raw(many)?,
                    };
                    let what = format!("MODIFY_QP to {to} (records)");
                    self.summary.batches.push((what, qpns.len() as u32, done.exec_cycles));
                }
            }
        }
        for (side, peer) in [(sides[0], nb), (sides[1], na)] {
            let range = self.group(side)?.1;
            if let Some(group) = self.groups.get_mut(side.group.as_str()) {
                for i in range {
                    if let Some(place) = group.peers.get_mut(i) {
                        *place = Some(peer);
                    }
                }
            }
        }
        Ok(())
    }

    // ---------------------------------------------------------------- work

    pub(crate) fn pieces(&self, pieces: &[Piece]) -> Result<Vec<Sge>> {
        let mut out = Vec::new();
        for p in pieces {
            let mr = self.mr(p.mr.get_ref())?;
            let lkey = p.lkey.map_or(mr.lkey(), openrnic_driver::LKey);
            out.push(Sge {
                addr: mr.iova().offset(p.offset),
                length: p.bytes,
                lkey,
            });
        }
        Ok(out)
    }

    fn post_send(&mut self, p: &PostSend) -> Result<()> {
        let sges = self.pieces(&p.sg)?;
        let invalidate = match &p.invalidate {
            Some(name) => Some(self.mr(name.get_ref())?.rkey().0),
            None => None,
        };
        let (addr, rkey) = match &p.remote {
            Some(name) => {
                let mr = self.mr(name.get_ref())?;
                (mr.iova().offset(p.remote_offset as u64), mr.rkey())
            }
            None => (openrnic_driver::Iova(p.remote_offset as u64), RKey(0)),
        };
        for qp in self.qps(p.qps.get_ref())? {
            let mut list = Vec::new();
            for _ in 0..p.count.as_ref().map_or(1, |c| *c.get_ref()) {
                let mut wr = SendWr::new(self.next_wr, p.op.0, sges.clone());
                self.next_wr += 1;
                wr.inline_data = p.inline.as_ref().map(|h| h.0.clone());
                wr.signaled = !p.unsignaled;
                wr.solicited = p.solicited;
                wr.fence = p.fence;
                wr.imm = invalidate.unwrap_or(p.imm);
                wr.atomic = (p.compare.unwrap_or(0), p.swap_add.unwrap_or(0));
                wr.remote_addr = addr;
                wr.rkey = p.rkey.map_or(rkey, RKey);
                list.push(wr);
            }
            expect_post(qp.post_send(&list), p.fails.as_ref().map(|f| f.get_ref().as_str()))?;
        }
        Ok(())
    }

    fn post_recv(&mut self, p: &PostRecv) -> Result<()> {
        let sges = self.pieces(&p.sg)?;
        for qp in self.qps(p.qps.get_ref())? {
            let mut list = Vec::new();
            for _ in 0..p.count.as_ref().map_or(1, |c| *c.get_ref()) {
                list.push(RecvWr {
                    wr_id: self.next_wr,
                    sges: sges.clone(),
                });
                self.next_wr += 1;
            }
            expect_post(qp.post_recv(&list), p.fails.as_ref().map(|f| f.get_ref().as_str()))?;
        }
        Ok(())
    }

    fn completions(&mut self, c: &Completions) -> Result<()> {
        let (nic, cq) = match (&c.cq, &c.nic) {
            (Some(name), _) => {
                let s = self.s;
                let def = s.doc.cq.iter().map(toml::Spanned::get_ref).find(|d| d.name == *name);
                let cq = self.cqs.get(name.get_ref().as_str()).cloned();
                match (def, cq) {
                    (Some(def), Some(cq)) => (self.nic(def.nic.get_ref())?, cq),
                    _ => bail!("there is no completion queue `{}`", name.get_ref()),
                }
            }
            (None, Some(nic)) => {
                let nic = self.nic(nic.get_ref())?;
                (nic, self.nics[nic].cq.clone())
            }
            (None, None) => bail!("no completion queue is named"),
        };
        let count = c.count.unwrap_or(1);
        if count == 0 {
            let wait = c.wait_cycles.unwrap_or(10_000);
            self.sim.run(wait)?;
            let got = cq.poll(1)?;
            return match got.first() {
                None => Ok(()),
                Some(wc) => bail!(
                    "expected no completion within {wait} cycles, got {}",
                    self.describe(nic, wc)
                ),
            };
        }
        let status = c.status.map_or(WcStatus::Success, |s| s.0);
        let qps: Option<Vec<_>> = match &c.qps {
            Some(r) => Some(self.qps(r.get_ref())?.iter().map(QueuePair::qpn).collect()),
            None => None,
        };
        let got = cq.wait(count, c.wait_cycles.unwrap_or(self.wait_cycles))?;
        for (i, wc) in got.iter().enumerate() {
            let wrong = |what: String| {
                anyhow!(
                    "completion {} of {count}: expected {what}, got {}",
                    i + 1,
                    self.describe(nic, wc)
                )
            };
            ensure!(wc.status == status, wrong(format!("status {status}")));
            if let Some(qps) = &qps {
                ensure!(qps.contains(&wc.qpn), wrong("another queue pair".into()));
            }
            if let Some(opcode) = c.opcode {
                ensure!(wc.opcode == opcode.0, wrong(format!("opcode {}", opcode.0)));
            }
            if let Some(bytes) = c.bytes {
                ensure!(wc.byte_len == bytes, wrong(format!("{bytes} bytes")));
            }
            if let Some(imm) = c.imm {
                ensure!(wc.imm == Some(imm), wrong(format!("immediate {imm:#x}")));
            }
            if let Some(name) = &c.invalidated {
                let key = self.mr(name.get_ref())?.rkey();
                ensure!(
                    wc.invalidated == Some(key),
                    wrong(format!("the key {:#x} of `{}` invalidated", key.0, name.get_ref()))
                );
            }
        }
        Ok(())
    }

    /// A completion in words.
    pub(crate) fn describe(&self, nic: usize, wc: &WorkCompletion) -> String {
        let mut text = format!("{} of {}: {}", wc.opcode, self.name_of(nic, wc.qpn), wc.status);
        if wc.status == WcStatus::Success {
            text += &format!(", {} bytes", wc.byte_len);
            if let Some(imm) = wc.imm {
                text += &format!(", immediate {imm:#x}");
            }
            if let Some(key) = wc.invalidated {
                text += &format!(", key {:#x} invalidated", key.0);
            }
        } else if wc.vendor_err != 0 {
            text += &format!(
                ", vendor error {:#04x} {}",
                wc.vendor_err,
                wc.vendor_name().unwrap_or("")
            );
        }
        text
    }

    // ---------------------------------------------------------------- expectations

    fn expect_qp(&mut self, e: &ExpectQp) -> Result<()> {
        let (group, _) = self.group(e.qps.get_ref())?;
        let nic = group.nic;
        for qp in self.qps(e.qps.get_ref())? {
            let name = self.name_of(nic, qp.qpn());
            if let Some(status) = e.fails {
                expect_status(qp.query().map(drop), Some(status.0)).with_context(|| name.clone())?;
                continue;
            }
            let start = self.sim.cycle();
            let query = loop {
                let query = qp.query().with_context(|| name.clone())?;
                let wait = e.wait_cycles.unwrap_or(0);
                let there = e.state.is_none_or(|s| s.0 == query.state);
                let over = self.sim.cycle() - start >= wait;
                self.stalled |= over && !there && wait != 0;
                if there || over {
                    break query;
                }
                self.sim.run(64)?;
            };
            if let Some(state) = e.state {
                ensure!(
                    query.state == state.0,
                    "{name}: expected state {}, is {}",
                    state.0,
                    query.state
                );
            }
            if let Some(attrs) = &e.attrs {
                let mask = named(attrs);
                let want = record(attrs, None, mask, self.dest(attrs)?, &self.addresses, self.other(nic));
                let wrong = differences(&want, &query.record, mask);
                ensure!(wrong.is_empty(), "{name}: {}", wrong.join("; "));
            }
        }
        Ok(())
    }

    fn expect_memory(&self, e: &ExpectMemory) -> Result<()> {
        let mr = self.mr(e.mr.get_ref())?;
        let bytes = match (&e.hex, e.bytes) {
            (Some(hex), _) => hex.0.len(),
            (None, Some(bytes)) => bytes,
            (None, None) => mr.length().saturating_sub(e.offset),
        };
        let got = mr.read(e.offset, bytes)?;
        let want = match (&e.same_as, e.byte, &e.hex) {
            (Some(other), ..) => self.mr(other.get_ref())?.read(e.same_offset, bytes)?,
            (_, Some(byte), _) => vec![byte; bytes],
            (.., Some(hex)) => hex.0.clone(),
            _ => bail!("nothing to compare with"),
        };
        compare(&format!("memory region `{}`", e.mr.get_ref()), e.offset, &want, &got)
    }

    /// Lets time pass until `done`, at most so long; then it is judged.
    fn until(&mut self, cycles: Option<u64>, mut done: impl FnMut(&mut Self) -> Result<bool>) -> Result<()> {
        let start = self.sim.cycle();
        let wait = cycles.unwrap_or(self.wait_cycles.min(100_000));
        while !done(self)? {
            if self.sim.cycle() - start >= wait {
                self.stalled = true;
                break;
            }
            self.sim.run(64)?;
        }
        Ok(())
    }

    fn expect_frames(&mut self, e: &ExpectFrames) -> Result<()> {
        let nic = self.nic(e.nic.get_ref())?;
        let sent = e.direction.as_ref().is_none_or(|d| d.get_ref() == "sent");
        let count = |run: &Self, opcode: Opcode| {
            let code = u8::from(opcode);
            run.sim.frames(nic, sent, code) - run.frame_mark.get(&(nic, sent, code)).copied().unwrap_or(0)
        };
        let mut wanted = Vec::new();
        for (name, amount) in &e.opcodes {
            let opcode = Opcode::ALL.iter().find(|o| o.name() == name.get_ref());
            wanted.push((*opcode.ok_or_else(|| anyhow!("unknown opcode"))?, *amount));
        }
        self.until(e.wait_cycles, |run| {
            Ok(wanted.iter().all(|(o, a)| count(run, *o) >= a.low()))
        })?;
        let how = if sent { "sent" } else { "received" };
        for (opcode, amount) in wanted {
            let got = count(self, opcode);
            ensure!(
                amount.holds(got),
                "NIC `{}` {how} {got} {opcode}, expected {amount}",
                e.nic.get_ref()
            );
        }
        Ok(())
    }

    fn expect_counters(&mut self, e: &ExpectCounters) -> Result<()> {
        let nic = self.nic(e.nic.get_ref())?;
        let mut wanted = Vec::new();
        for (name, amount) in &e.counters {
            let id = CounterId::ALL.iter().find(|c| c.name() == name.get_ref());
            wanted.push((*id.ok_or_else(|| anyhow!("unknown counter"))?, *amount));
        }
        self.until(e.wait_cycles, |run| {
            let now = run.nics[nic].device.counters()?.since(&run.nics[nic].mark);
            Ok(wanted.iter().all(|(id, a)| now.get(*id) >= a.low()))
        })?;
        let now = self.nics[nic].device.counters()?.since(&self.nics[nic].mark);
        for (id, amount) in wanted {
            let got = now.get(id);
            ensure!(
                amount.holds(got),
                "NIC `{}`: {id} is {got}, expected {amount}",
                e.nic.get_ref()
            );
        }
        Ok(())
    }

    fn expect_event(&mut self, e: &ExpectEvent) -> Result<()> {
        let nic = self.nic(e.nic.get_ref())?;
        let number = match &e.qp {
            Some(qp) => self.qps(qp.get_ref())?.first().map(|q| q.qpn().0),
            None => self.srqn(&e.srq)?.map(|n| u32::from(n.0)),
        };
        let mut found = false;
        let mut others = Vec::new();
        self.until(e.wait_cycles, |run| {
            while let Some(event) = run.nics[nic].device.get_async_event()? {
                if event.event == e.event.0 && number.is_none_or(|n| n == event.number) {
                    found = true;
                    return Ok(true);
                }
                others.push(format!("{} of {:#x}", event.event, event.number));
            }
            Ok(false)
        })?;
        let what = if others.is_empty() {
            "no event at all".to_owned()
        } else {
            format!("only {}", others.join(", "))
        };
        ensure!(
            found,
            "expected the event {} at NIC `{}`, {what} came",
            e.event.0,
            e.nic.get_ref()
        );
        Ok(())
    }

    fn inject(&mut self, i: &Inject) -> Result<()> {
        let nic = self.nic(i.nic.get_ref())?;
        let mut frame = match (&i.hex, &i.to) {
            (Some(hex), _) => hex.0.clone(),
            (None, Some(to)) => self.packet(i, nic, to.get_ref())?,
            (None, None) => bail!("no frame is given"),
        };
        if let Some(cut) = &i.cut {
            frame.truncate(*cut.get_ref());
        }
        for _ in 0..i.count.as_ref().map_or(1, |c| *c.get_ref()) {
            self.sim.inject(nic, &frame, i.mac_error)?;
        }
        Ok(())
    }

    fn packet(&mut self, i: &Inject, nic: usize, to: &QpRef) -> Result<Vec<u8>> {
        let (group, range) = self.group(to)?;
        let qp = group.qps[range.start].clone();
        let peer = group
            .peers
            .get(range.start)
            .copied()
            .flatten()
            .ok_or_else(|| anyhow!("`{to}` has no peer"))?;
        let query = qp.query()?;
        let own = &self.addresses[nic];
        let other = &self.addresses[peer];
        let pkeys = self.s.doc.nic[nic]
            .get_ref()
            .pkeys
            .clone()
            .unwrap_or_else(|| vec![0xffff]);
        let pkey = pkeys.get(usize::from(query.attr.pkey_index)).copied().unwrap_or(0xffff);
        let mut spec = FrameSpec {
            dmac: i.dmac.map_or(own.mac, |m| m.0),
            smac: other.mac,
            sip: i.sip.map(|g| g.0).or(other.gids.first().copied()).unwrap_or_default(),
            dip: i.dip.map(|g| g.0).or(own.gids.first().copied()).unwrap_or_default(),
            opcode: i
                .opcode_byte
                .unwrap_or(u8::from(i.opcode.map_or(Opcode::RcSendOnly, |o| o.0))),
            tver: i.tver.as_ref().map_or(0, |t| *t.get_ref()),
            pkey: i.pkey.unwrap_or(pkey),
            qpn: i.qpn.unwrap_or(qp.qpn().0),
            psn: i.psn.unwrap_or(query.attr.rq_psn.get()),
            bad_icrc: i.bad_icrc,
            bad_checksum: i.bad_checksum,
            ..FrameSpec::default()
        };
        if let Some(port) = i.udp_port {
            spec.udp_port = port;
        }
        if spec.bad_checksum && spec.dip.ipv4().is_none() {
            bail!(
                "bad_checksum: the frame goes to {}, and IPv6 has no header checksum",
                spec.dip
            );
        }
        spec.payload = self.random(i.payload.as_ref().map_or(0, |p| *p.get_ref()));
        Ok(frame::build(&spec))
    }

    /// What each queue pair waits for, when `error` is that of a wait that ran out of its budget.
    pub fn stall_report(&self, error: &anyhow::Error) -> Option<String> {
        let waited = |e: &Error| matches!(e, Error::Timeout { .. });
        if !self.stalled && !error.chain().any(|e| e.downcast_ref().is_some_and(waited)) {
            return None;
        }
        let mut out = String::new();
        let mut idle = Vec::new();
        for (name, group) in &self.groups {
            for (i, qp) in group.qps.iter().enumerate() {
                let title = format!("{name}[{i}] on `{}`", self.nics[group.nic].name);
                match qp.diagnose() {
                    Ok(d) if d.is_idle() => idle.push(title),
                    Ok(d) => out += &format!("{title}: {d}\n"),
                    // It was destroyed, or its NIC was reset.
                    Err(Error::Stale { .. }) => {}
                    Err(e) => out += &format!("{title}: {e}\n"),
                }
            }
        }
        if !idle.is_empty() {
            out += &format!("{} with nothing to do: {}\n", idle.len(), idle.join(", "));
        }
        if out.is_empty() {
            out += "there is no queue pair\n";
        }
        Some(out)
    }

    /// Ends the run.
    ///
    /// # Errors
    /// What went wrong, in words.
    pub fn finish(mut self) -> Result<Summary> {
        for nic in &self.nics {
            self.summary.counters.push((nic.name.clone(), nic.device.counters()?));
        }
        for (i, nic) in self.nics.iter().enumerate() {
            self.summary
                .frames
                .push((nic.name.clone(), self.sim.all_frames(i, true)));
        }
        self.summary.cycles = self.sim.cycle();
        self.summary.time_ns = self.sim.time_ns();
        self.sim.flush()?;
        Ok(self.summary)
    }

    /// Makes capture and trace readable, whatever happened.
    pub fn flush(&self) {
        // The run has failed already; that the capture could not be written either is no news.
        let _ = self.sim.flush();
    }

    /// Simulated time in nanoseconds.
    pub fn time_ns(&self) -> u64 {
        self.sim.time_ns()
    }

    /// Seed and width in use.
    pub fn settings(&self) -> (u64, usize) {
        (self.summary.seed, self.summary.data_width)
    }
}

fn expectation(refused: &Refused) -> String {
    let rule = refused.rule.map_or("any rule", |r| r.0.name());
    match &refused.attrs {
        Some(attrs) => format!("{rule}({})", attrs.0),
        None => rule.to_owned(),
    }
}

pub(crate) fn expect_status(outcome: openrnic_driver::Result<()>, wanted: Option<CmdStatus>) -> Result<()> {
    match (outcome, wanted) {
        (Ok(()), None) => Ok(()),
        (Ok(()), Some(status)) => bail!("expected the command to fail with {status}, but it succeeded"),
        (Err(e), Some(status)) if e.status() == Some(status) => Ok(()),
        // A ring that is broken completes nothing: the driver says so itself.
        (Err(Error::Fatal { .. }), Some(CmdStatus::Fatal)) => Ok(()),
        (Err(e), Some(status)) => Err(anyhow!(e).context(format!("expected the status {status}"))),
        (Err(e), None) => Err(e.into()),
    }
}

pub(crate) fn expect_post(outcome: openrnic_driver::Result<()>, wanted: Option<&str>) -> Result<()> {
    match (outcome, wanted) {
        (Ok(()), None) => Ok(()),
        (Ok(()), Some(wanted)) => bail!("expected the post to fail ({wanted}), but all was posted"),
        (Err(Error::Post(e)), Some(wanted)) => {
            let kind = match e.kind {
                PostErrorKind::Full { .. } => "full",
                PostErrorKind::TooManySges { .. } => "sges",
                PostErrorKind::InlineTooLong { .. } => "inline",
                PostErrorKind::AtomicResult { .. } => "atomic",
                PostErrorKind::UnsupportedOpcode { .. } => "opcode",
                PostErrorKind::BadState { .. } => "state",
                PostErrorKind::NoDataPath { .. } => "data_path",
                PostErrorKind::SharedQueue { .. } => "shared",
            };
            ensure!(
                kind == wanted,
                "expected the post to fail with {wanted}, got {kind}: {e}"
            );
            Ok(())
        }
        (Err(e), _) => Err(e.into()),
    }
}

/// Compares memory; the message names the first byte that differs.
pub(crate) fn compare(what: &str, offset: usize, want: &[u8], got: &[u8]) -> Result<()> {
    let Some(at) = want.iter().zip(got).position(|(w, g)| w != g) else {
        return Ok(());
    };
    let end = (at + 8).min(want.len());
    let wrong = want.iter().zip(got).filter(|(w, g)| w != g).count();
    bail!(
        "{what}: byte {} differs (and {} more of {}): expected {:02x?}, is {:02x?}",
        offset + at,
        wrong - 1,
        want.len(),
        want.get(at..end).unwrap_or(&[]),
        got.get(at..end).unwrap_or(&[])
    )
}
