// SPDX-License-Identifier: Apache-2.0
//! A device made of plain Rust: config space, registers, a command processor with a simple gate, queues
//! in host memory. It does what a test tells it, lies included.
#![allow(clippy::unwrap_used)]
#![allow(dead_code)] // each test file uses a part

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use openrnic_driver::spec::*;
use openrnic_driver::{Bus, BusError, DmaBuf, MsiMessage};

/// What the mock does wrong.
#[derive(Clone, Default)]
pub struct Lies {
    pub absent: bool,
    pub magic: Option<u32>,
    pub block_loop: bool,
    pub never_ready: bool,
    /// Commands are taken and never completed.
    pub mute: bool,
    pub refuse_ranges: Option<CmdStatus>,
    /// Replaces the bytes of the next completions (but for the phase).
    pub completions: VecDeque<[u8; 32]>,
    /// Completes in reverse order, this many at a time.
    pub reverse: usize,
    /// Completions that a resized queue never wrote, but counts.
    pub resize_skips: u32,
}

pub struct MockQp {
    pub state: QpState,
    pub qp_type: QpType,
    pub attr: QpAttr,
    pub create: CmdQp,
    pub place: u32,
}

#[derive(Default)]
pub struct MockCq {
    pub base: u64,
    pub log: u32,
    pub written: u32,
    /// Index of the first entry of this ring.
    pub origin: u32,
    pub consumer: u32,
    /// Count and period.
    pub moderation: (u16, u16),
    pub armed: bool,
    pub eq: u8,
}

pub struct State {
    pub config: [u32; 64],
    pub regs: BTreeMap<u64, u32>,
    pub memory: Vec<u8>,
    pub base: u64,
    pub next: u64,
    pub bufs: BTreeMap<u64, usize>,
    pub cycle: u64,
    pub lies: Lies,
    pub fetched: u32,
    pub completed: u32,
    pub held: Vec<CmdCompletion>,
    pub qps: BTreeMap<u32, MockQp>,
    pub cqs: BTreeMap<u32, MockCq>,
    pub eqs: BTreeMap<u32, (u64, u32, u32)>,
    pub mrs: BTreeMap<u32, CmdMr>,
    pub pds: u32,
    /// SRQs: how they were made, limit, WQEs that wait.
    pub srqs: BTreeMap<u32, (CmdSrq, u32, u32)>,
    pub xrcds: u32,
    pub doorbells: Vec<(u64, u64)>,
    pub interrupts: Vec<u16>,
    pub commands: Vec<[u8; 64]>,
    pub resets: u32,
    pub next_generation: u32,
}

#[derive(Clone)]
pub struct Mock(pub Rc<RefCell<State>>);

const PCIE: usize = 0x40 / 4;
const MSIX: usize = 0x80 / 4;

impl Mock {
    pub fn new() -> Self {
        let mut config = [0; 64];
        config[0] = u32::from(PCI_DEVICE_ID) << 16 | u32::from(PCI_VENDOR_ID);
        config[1] = 1 << 20;
        config[4] = 4;
        config[0x34 / 4] = 0x40;
        config[PCIE] = 0x8010;
        config[PCIE + 1] = 1 | 1 << 28;
        config[MSIX] = (NUM_MSIX - 1) << 16 | 0x11;
        config[MSIX + 1] = MSIX_TABLE_BASE;
        let base = 0x10_0000_0000;
        Self(Rc::new(RefCell::new(State {
            config,
            regs: BTreeMap::new(),
            memory: vec![0; 4 << 20],
            base,
            next: base,
            bufs: BTreeMap::new(),
            cycle: 0,
            lies: Lies::default(),
            fetched: 0,
            completed: 0,
            held: Vec::new(),
            qps: BTreeMap::new(),
            cqs: BTreeMap::new(),
            eqs: BTreeMap::new(),
            mrs: BTreeMap::new(),
            pds: 0,
            srqs: BTreeMap::new(),
            xrcds: 0,
            doorbells: Vec::new(),
            interrupts: Vec::new(),
            commands: Vec::new(),
            resets: 0,
            next_generation: 1,
        })))
    }

    pub fn lying(lies: Lies) -> Self {
        let mock = Self::new();
        mock.0.borrow_mut().lies = lies;
        mock
    }

    pub fn with<R>(&self, f: impl FnOnce(&mut State) -> R) -> R {
        f(&mut self.0.borrow_mut())
    }

    /// Writes a CQE with the phase that is right.
    pub fn cqe(&self, cqn: u32, entry: Cqe) {
        self.with(|s| s.write_cqe(cqn, entry));
    }

    /// Writes an EQE with the phase that is right.
    pub fn eqe(&self, eqn: u32, event: u8, number: u32) {
        self.with(|s| s.write_eqe(eqn, event, number));
    }
}

impl State {
    fn at(&self, addr: u64, len: usize) -> Option<usize> {
        let (start, size) = self.bufs.range(..=addr).next_back()?;
        (addr + len as u64 <= start + *size as u64).then(|| (addr - self.base) as usize)
    }

    pub fn get(&self, addr: u64, len: usize) -> Vec<u8> {
        let at = self
            .at(addr, len)
            .unwrap_or_else(|| panic!("device read of {len} at {addr:#x}: not mapped"));
        self.memory[at..at + len].to_vec()
    }

    pub fn put(&mut self, addr: u64, data: &[u8]) {
        let at = self
            .at(addr, data.len())
            .unwrap_or_else(|| panic!("device write of {} at {addr:#x}: not mapped", data.len()));
        self.memory[at..at + data.len()].copy_from_slice(data);
    }

    fn reg(&self, reg: u32) -> u32 {
        self.regs.get(&u64::from(reg)).copied().unwrap_or(0)
    }

    fn reg64(&self, reg: u32) -> u64 {
        u64::from(self.reg(reg + 4)) << 32 | u64::from(self.reg(reg))
    }

    pub fn write_cqe(&mut self, cqn: u32, entry: Cqe) {
        let Some(cq) = self.cqs.get_mut(&cqn) else { return };
        let place = cq.written - cq.origin;
        let slot = place & ((1 << cq.log) - 1);
        let entry = entry.with_phase(place >> cq.log & 1 == 0);
        cq.written += 1;
        let (at, armed, eq) = (cq.base + 32 * u64::from(slot), std::mem::take(&mut cq.armed), cq.eq);
        self.put(at, entry.as_bytes());
        if armed {
            self.write_eqe(u32::from(eq), EventType::CqComp.into(), cqn);
        }
    }

    pub fn write_eqe(&mut self, eqn: u32, event: u8, number: u32) {
        let (base, log, written) = self.eqs[&eqn];
        let slot = written & ((1 << log) - 1);
        let entry = Eqe::new()
            .with_event(event)
            .with_number(number)
            .with_phase(written >> log & 1 == 0);
        self.put(base + 32 * u64::from(slot), entry.as_bytes());
        self.eqs.insert(eqn, (base, log, written + 1));
        self.interrupts.push(eqn as u16);
    }

    fn read_reg(&self, off: u64) -> u32 {
        let off32 = off as u32;
        if let Some(block) = BLOCKS.iter().find(|b| b.base == off32) {
            return u32::from(block.block_type) | u32::from(block.version) << 16;
        }
        if let Some(block) = BLOCKS.iter().find(|b| b.base + 4 == off32) {
            return if self.lies.block_loop { 0 } else { block.next } | if self.lies.block_loop { 0x100 } else { 0 };
        }
        match off32 {
            regs::ID_MAGIC => self.lies.magic.unwrap_or(DEV_MAGIC),
            regs::ID_VERSION => DEV_VERSION,
            regs::CAPS_LOG_QP => 10,
            regs::CAPS_NUM_CQ | regs::CAPS_NUM_MR => 64,
            regs::CAPS_NUM_PD => 16,
            regs::CAPS_NUM_EQ => NUM_EQ,
            regs::CAPS_NUM_UAR => 32,
            regs::CAPS_DATA_W => 64,
            regs::CAPS_CLK_PERIOD_PS => 8000,
            regs::CAPS_DMA_TAGS => 64,
            regs::CAPS_MAX_SGE => 16,
            regs::CAPS_MAX_INLINE => 512,
            regs::CAPS_QP_TYPES | regs::CAPS_QP_TYPES_DATA => 0x1c,
            regs::CAPS_MAX_RD_ATOMIC | regs::CAPS_NUM_GID => 16,
            regs::CAPS_NUM_PORTS => 1,
            regs::CAPS_NUM_PKEY => 8,
            regs::CAPS_WQE_OPCODES => 0x1f,
            regs::CAPS_MAX_SQ_STRIDE => 4,
            regs::CAPS_MAX_RQ_STRIDE => 4,
            regs::CAPS_NUM_SRQ => 8,
            regs::CAPS_NUM_XRCD => 16,
            regs::CTRL_STATUS => u32::from(!self.lies.never_ready),
            _ => self.reg(off32),
        }
    }

    fn complete(&mut self, completion: CmdCompletion) {
        let log = self.reg(regs::CMD_LOG_SIZE);
        let slot = self.completed & ((1 << log) - 1);
        let bytes = self.lies.completions.pop_front().unwrap_or(completion.0);
        let entry = CmdCompletion(bytes).with_phase(self.completed >> log & 1 == 0);
        self.completed += 1;
        let at = self.reg64(regs::CMD_CPL_BASE) + 32 * u64::from(slot);
        self.put(at, entry.as_bytes());
        self.interrupts.push(MSIX_CMD as u16);
    }

    fn run_commands(&mut self) {
        let log = self.reg(regs::CMD_LOG_SIZE);
        while self.fetched & 0xffff != self.reg(regs::CMD_PRODUCER) {
            let slot = self.fetched & ((1 << log) - 1);
            self.fetched += 1;
            let raw = self.get(self.reg64(regs::CMD_RING_BASE) + 64 * u64::from(slot), 64);
            let command = CmdQp::from_bytes(&raw).unwrap();
            self.commands.push(command.0);
            if self.lies.mute {
                continue;
            }
            let done = self
                .execute(&command)
                .with_tag(command.tag())
                .with_opcode(command.opcode());
            self.held.push(done);
            if self.held.len() >= self.lies.reverse {
                for done in std::mem::take(&mut self.held).into_iter().rev() {
                    self.complete(done);
                }
            }
        }
    }

    fn qpns(&self, command: &CmdQp) -> Vec<u32> {
        if command.flags() & CmdFlag::LIST.0 as u8 != 0 {
            let list = self.get(command.list_addr(), 4 * command.count() as usize);
            list.chunks(4)
                .map(|c| u32::from_le_bytes(c.try_into().unwrap()))
                .collect()
        } else {
            (0..command.count()).map(|i| command.handle() + i).collect()
        }
    }

    fn execute(&mut self, command: &CmdQp) -> CmdCompletion {
        let ok = CmdCompletion::new();
        let fail = |status: CmdStatus| CmdCompletion::new().with_status(status.into());
        let Ok(opcode) = CmdOpcode::try_from(command.opcode()) else {
            return fail(CmdStatus::BadOpcode);
        };
        let reserved = openrnic_driver::spec::command(opcode).unwrap().reserved;
        if command.0.iter().zip(reserved).any(|(b, r)| b & r != 0) {
            return fail(CmdStatus::ReservedSet);
        }
        match opcode {
            CmdOpcode::CreatePd => {
                self.pds += 1;
                ok.with_handle(self.pds)
            }
            CmdOpcode::CreateMr => {
                let mr = CmdMr(command.0);
                let key = (self.mrs.len() as u32 + 1) << 8 | u32::from(mr.key());
                self.mrs.insert(key, mr);
                ok.with_handle(key)
            }
            CmdOpcode::DestroyMr => match self.mrs.remove(&command.handle()) {
                Some(_) => ok,
                None => fail(CmdStatus::BadHandle),
            },
            CmdOpcode::CreateCq => {
                let cq = CmdCq(command.0);
                let number = self.cqs.len() as u32;
                let log = u32::from(cq.log_size());
                self.cqs.insert(
                    number,
                    MockCq {
                        base: cq.base(),
                        log,
                        eq: cq.eq(),
                        ..Default::default()
                    },
                );
                ok.with_handle(number)
            }
            CmdOpcode::ModifyCq => match self.cqs.get_mut(&command.handle()) {
                Some(cq) => {
                    let given = CmdCq(command.0);
                    cq.moderation = (given.event_count(), given.event_period());
                    ok
                }
                None => fail(CmdStatus::BadHandle),
            },
            CmdOpcode::ResizeCq => match self.cqs.get_mut(&command.handle()) {
                Some(cq) if cq.written - cq.consumer > 1 << CmdCq(command.0).log_size() => fail(CmdStatus::TooSmall),
                Some(cq) => {
                    let given = CmdCq(command.0);
                    (cq.base, cq.log, cq.origin) = (given.base(), u32::from(given.log_size()), cq.written);
                    ok.with_handle(command.handle())
                        .with_count(cq.written + self.lies.resize_skips)
                }
                None => fail(CmdStatus::BadHandle),
            },
            CmdOpcode::CreateSrq => {
                let number = self.srqs.len() as u32 + 5;
                self.srqs.insert(number, (CmdSrq(command.0), 0, 0));
                ok.with_handle(number)
            }
            CmdOpcode::DestroySrq => {
                let used = self.qps.values().any(|qp| {
                    qp.create.flags() & CmdFlag::USE_SRQ.0 as u8 != 0 && u32::from(qp.create.srq()) == command.handle()
                });
                match self.srqs.remove(&command.handle()) {
                    Some(srq) if used => {
                        self.srqs.insert(command.handle(), srq);
                        fail(CmdStatus::InUse)
                    }
                    Some(_) => ok,
                    None => fail(CmdStatus::BadHandle),
                }
            }
            CmdOpcode::ModifySrq => match self.srqs.get_mut(&command.handle()) {
                Some((_, limit, _)) => {
                    *limit = u32::from(CmdSrq(command.0).limit());
                    ok
                }
                None => fail(CmdStatus::BadHandle),
            },
            CmdOpcode::QuerySrq => match self.srqs.get(&command.handle()) {
                Some((_, limit, waiting)) => ok.with_handle(*waiting).with_count(*limit),
                None => fail(CmdStatus::BadHandle),
            },
            CmdOpcode::CreateXrcd => {
                self.xrcds += 1;
                ok.with_handle(self.xrcds + 6)
            }
            CmdOpcode::CreateEq => {
                let eq = CmdEq(command.0);
                self.eqs.insert(eq.handle(), (eq.base(), u32::from(eq.log_size()), 0));
                ok
            }
            CmdOpcode::CreateQp | CmdOpcode::InstallQp => {
                if let Some(status) = self.lies.refuse_ranges
                    && command.flags() & CmdFlag::CONTIGUOUS.0 as u8 != 0
                {
                    return fail(status);
                }
                let n = command.count();
                let first = self.next_generation << 10 | 2;
                self.next_generation += 1;
                let contiguous = command.flags() & CmdFlag::CONTIGUOUS.0 as u8 != 0;
                let qpns: Vec<u32> = (0..n).map(|i| first + if contiguous { i } else { 2 * i }).collect();
                for (place, qpn) in qpns.iter().enumerate() {
                    let qp = MockQp {
                        state: QpState::Reset,
                        qp_type: QpType::try_from(command.qp_type()).unwrap(),
                        attr: QpAttr::new(),
                        create: *command,
                        place: place as u32,
                    };
                    self.qps.insert(*qpn, qp);
                }
                if opcode == CmdOpcode::InstallQp {
                    let record = QpAttr::from_bytes(&self.get(command.attr_addr(), 64)).unwrap();
                    if let Some(refused) = self.modify(&qpns, &[record]) {
                        for qpn in qpns {
                            self.qps.remove(&qpn);
                        }
                        return refused;
                    }
                }
                if command.list_addr() != 0 {
                    let list: Vec<u8> = qpns.iter().flat_map(|q| q.to_le_bytes()).collect();
                    self.put(command.list_addr(), &list);
                }
                ok.with_handle(first).with_count(n)
            }
            CmdOpcode::ModifyQp => {
                let qpns = self.qpns(command);
                let each = command.flags() & CmdFlag::RECORDS.0 as u8 != 0;
                let n = if each { qpns.len() } else { 1 };
                let raw = self.get(command.attr_addr(), 64 * n);
                let records: Vec<QpAttr> = raw.chunks(64).map(|c| QpAttr::from_bytes(c).unwrap()).collect();
                self.modify(&qpns, &records)
                    .unwrap_or_else(|| ok.with_count(qpns.len() as u32))
            }
            CmdOpcode::DestroyQp => {
                let qpns = self.qpns(command);
                if let Some(i) = qpns.iter().position(|q| !self.qps.contains_key(q)) {
                    return fail(CmdStatus::BadHandle)
                        .with_offender(qpns[i])
                        .with_offender_index(i as u32);
                }
                for qpn in &qpns {
                    self.qps.remove(qpn);
                }
                ok.with_count(qpns.len() as u32)
            }
            CmdOpcode::QueryQp => {
                let Some(qp) = self.qps.get(&command.handle()) else {
                    return fail(CmdStatus::BadHandle);
                };
                let init = QpInit::new()
                    .with_qpn(command.handle())
                    .with_qp_type(qp.qp_type.into())
                    .with_qp_state(qp.state.into());
                let mut out = qp.attr.0.to_vec();
                out.extend(init.0);
                self.put(command.attr_addr(), &out);
                ok
            }
            CmdOpcode::QueryCounters => {
                let out: Vec<u8> = (0..CounterId::ALL.len() as u64)
                    .flat_map(|i| (i * 3).to_le_bytes())
                    .collect();
                self.put(CmdOut(command.0).out_addr(), &out);
                ok
            }
            CmdOpcode::ListQp => {
                let chosen = |q: &MockQp| {
                    (!command.by_state() || command.state() == u8::from(q.state))
                        && (!command.by_type() || command.qp_type() == u8::from(q.qp_type))
                        && (!command.by_pd() || command.pd() == q.create.pd())
                };
                let all: Vec<u32> = self.qps.iter().filter(|(_, q)| chosen(q)).map(|(n, _)| *n).collect();
                let from = command.handle() as usize;
                let part: Vec<u32> = all.iter().skip(from).take(command.count() as usize).copied().collect();
                let list: Vec<u8> = part.iter().flat_map(|q| q.to_le_bytes()).collect();
                if !list.is_empty() {
                    self.put(command.list_addr(), &list);
                }
                let end = from + part.len();
                ok.with_count(part.len() as u32)
                    .with_handle(if end < all.len() { end as u32 } else { 0 })
            }
            _ => ok,
        }
    }

    fn modify(&mut self, qpns: &[u32], records: &[QpAttr]) -> Option<CmdCompletion> {
        let refuse = |i: usize, rule: GateRule, detail: u32| {
            Some(
                CmdCompletion::new()
                    .with_status(CmdStatus::GateRefused.into())
                    .with_rule(rule.into())
                    .with_offender(qpns[i])
                    .with_offender_index(i as u32)
                    .with_detail(detail),
            )
        };
        for (i, qpn) in qpns.iter().enumerate() {
            let record = records.get(i).unwrap_or(&records[0]);
            let Some(qp) = self.qps.get(qpn) else {
                return Some(
                    CmdCompletion::new()
                        .with_status(CmdStatus::BadHandle.into())
                        .with_offender(*qpn),
                );
            };
            let mask = QpAttrBit(record.mask());
            let next = if mask.contains(QpAttrBit::STATE) {
                record.qp_state()
            } else {
                qp.state.into()
            };
            let Ok(next) = QpState::try_from(next) else {
                return refuse(i, GateRule::IllegalEdge, 0);
            };
            let Some(edge) = qp_edge(qp.qp_type, qp.state, next) else {
                return refuse(i, GateRule::IllegalEdge, 0);
            };
            let missing = edge.required.without(mask);
            if !missing.is_empty() {
                return refuse(i, GateRule::MissingAttrs, missing.0);
            }
            let excess = mask.without(edge.allowed);
            if !excess.is_empty() {
                return refuse(i, GateRule::ExcessAttrs, excess.0);
            }
        }
        for (i, qpn) in qpns.iter().enumerate() {
            let record = *records.get(i).unwrap_or(&records[0]);
            let qp = self.qps.get_mut(qpn).unwrap();
            if QpAttrBit(record.mask()).contains(QpAttrBit::STATE) {
                qp.state = QpState::try_from(record.qp_state()).unwrap();
            }
            qp.attr = record.with_qp_state(qp.state.into());
        }
        None
    }
}

impl Bus for Mock {
    fn config_read(&mut self, off: u16) -> Result<u32, BusError> {
        Ok(self.with(|s| {
            if s.lies.absent {
                u32::MAX
            } else {
                s.config.get(usize::from(off / 4)).copied().unwrap_or(0)
            }
        }))
    }

    fn config_write(&mut self, off: u16, value: u32) -> Result<(), BusError> {
        self.with(|s| match usize::from(off / 4) {
            4 => s.config[4] = value & !(BAR0_BYTES - 1) | 4,
            5 => s.config[5] = value,
            1 => s.config[1] = s.config[1] & 0xffff_0000 | value & 0xffff,
            at if at == PCIE + 2 => {
                s.config[at] = value & 0x7fff;
                if value & 0x8000 != 0 {
                    s.resets += 1;
                    s.config[4] = 4;
                    s.config[5] = 0;
                    s.regs.clear();
                    (s.fetched, s.completed) = (0, 0);
                    s.qps.clear();
                    s.cqs.clear();
                    s.eqs.clear();
                    s.mrs.clear();
                    s.pds = 0;
                }
            }
            at if at == MSIX => s.config[at] = s.config[at] & 0x3fff_ffff | value & 0xc000_0000,
            _ => {}
        });
        Ok(())
    }

    fn mmio_read32(&mut self, off: u64) -> Result<u32, BusError> {
        Ok(self.with(|s| s.read_reg(off)))
    }

    fn mmio_read64(&mut self, off: u64) -> Result<u64, BusError> {
        Ok(self.with(|s| u64::from(s.read_reg(off)) | u64::from(s.read_reg(off + 4)) << 32))
    }

    fn mmio_write32(&mut self, off: u64, value: u32) -> Result<(), BusError> {
        self.with(|s| {
            s.regs.insert(off, value);
            if off == u64::from(regs::CMD_PRODUCER) {
                s.run_commands();
            }
        });
        Ok(())
    }

    fn mmio_write64(&mut self, off: u64, value: u64) -> Result<(), BusError> {
        self.with(|s| {
            s.regs.insert(off, value as u32);
            s.regs.insert(off + 4, (value >> 32) as u32);
            s.doorbells.push((off, value));
            if off >= u64::from(UAR_BASE) && off % 4096 == u64::from(DB_CQ) {
                let db = DbCq(value.to_le_bytes());
                if let Some(cq) = s.cqs.get_mut(&db.cqn()) {
                    cq.consumer = db.consumer();
                    cq.armed |= db.arm();
                }
            }
        });
        Ok(())
    }

    fn dma_alloc(&mut self, bytes: usize, align: usize) -> Result<DmaBuf, BusError> {
        self.with(|s| {
            let addr = s.next.next_multiple_of(align.max(64) as u64);
            let total = s.memory.len();
            if (addr - s.base) as usize + bytes > total {
                return Err(BusError::OutOfMemory { bytes, free: 0, total });
            }
            s.next = addr + bytes as u64;
            s.bufs.insert(addr, bytes);
            let at = (addr - s.base) as usize;
            s.memory[at..at + bytes].fill(0);
            Ok(DmaBuf { addr, len: bytes })
        })
    }

    fn dma_free(&mut self, buf: DmaBuf) -> Result<(), BusError> {
        match self.with(|s| s.bufs.remove(&buf.addr)) {
            Some(_) => Ok(()),
            None => Err(BusError::NotAllocated {
                addr: buf.addr,
                bytes: buf.len,
            }),
        }
    }

    fn dma_read(&mut self, addr: u64, out: &mut [u8]) -> Result<(), BusError> {
        self.with(|s| {
            let at = s
                .at(addr, out.len())
                .ok_or(BusError::NotAllocated { addr, bytes: out.len() })?;
            out.copy_from_slice(&s.memory[at..at + out.len()]);
            Ok(())
        })
    }

    fn dma_write(&mut self, addr: u64, data: &[u8]) -> Result<(), BusError> {
        self.with(|s| {
            let at = s.at(addr, data.len()).ok_or(BusError::NotAllocated {
                addr,
                bytes: data.len(),
            })?;
            s.memory[at..at + data.len()].copy_from_slice(data);
            Ok(())
        })
    }

    fn msix_message(&mut self, vector: u16) -> Result<Option<MsiMessage>, BusError> {
        Ok(Some(MsiMessage {
            addr: 0xfee0_0000,
            data: u32::from(vector),
        }))
    }

    fn take_interrupts(&mut self) -> Vec<u16> {
        self.with(|s| std::mem::take(&mut s.interrupts))
    }

    fn advance(&mut self, cycles: u64) -> Result<(), BusError> {
        self.with(|s| s.cycle += cycles);
        Ok(())
    }

    fn now_cycles(&self) -> u64 {
        self.0.borrow().cycle
    }

    fn clk_period_ps(&self) -> u64 {
        8000
    }
}
