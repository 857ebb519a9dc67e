// SPDX-License-Identifier: Apache-2.0
//! The QP control plane over batch sizes: cycles per QP for every operation, one command for all beside one command each, in the
//! same run on a whole NIC, with a host that answers at once and with one that is 500 ns away.

use anyhow::{Context, ensure};
use openrnic_driver::bus::{Bus, DmaBuf};
use openrnic_driver::spec::{CmdFlag, CmdOpcode, CmdQp, MAX_RECORDS, Mtu, QpAttrBit, QpState, QpType};
use openrnic_driver::{
    AddressVector, CmdResult, CompletionQueue, CqInit, Device, Gid, OpenParams, ProtectionDomain, Psn, QpAttr, Qpn,
    attr,
};
use openrnic_sim::model::NicSpec;
use openrnic_sim::pcie::HostParams;
use openrnic_sim::{NicBus, World, WorldParams};
use serde::Serialize;

use crate::control::LOG_LARGE;
use crate::report::{Limit, Report};

/// Sizes of batches; the whole table comes on top.
const SIZES: [u32; 7] = [1, 4, 16, 64, 256, 1024, 4096];
/// Entries of the command ring, and the most commands that are posted at once.
const LOG_RING: u32 = 12;
/// Two indices of a table are reserved.
const RESERVED: u32 = 2;
/// What a visit of the requester to a QP takes at most that has nothing to send.
const VISIT_CYCLES: u64 = 16;
/// One way between host and device in the second half of the runs.
pub const FAR_NS: u64 = 500;

/// What is done to queue pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Op {
    /// CREATE_QP.
    Create,
    /// INSTALL_QP: creation and RESET→INIT.
    Install,
    /// RESET→INIT.
    Init,
    /// INIT→RTR.
    Rtr,
    /// RTR→RTS.
    Rts,
    /// RTS→SQD.
    Sqd,
    /// SQD→ERR.
    Err,
    /// ERR→RESET.
    Reset,
    /// DESTROY_QP.
    Destroy,
}

/// All of them, in the order of tables and plots.
pub const OPS: [Op; 9] = [
    Op::Create,
    Op::Install,
    Op::Init,
    Op::Rtr,
    Op::Rts,
    Op::Sqd,
    Op::Err,
    Op::Reset,
    Op::Destroy,
];
/// A life: what a QP goes through, step by step, and then that of one that is installed.
const LIFE: [Op; 10] = [
    Op::Create,
    Op::Init,
    Op::Rtr,
    Op::Rts,
    Op::Sqd,
    Op::Err,
    Op::Reset,
    Op::Destroy,
    Op::Install,
    Op::Destroy,
];

impl Op {
    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Install => "INSTALL",
            Self::Init => "RESET→INIT",
            Self::Rtr => "INIT→RTR",
            Self::Rts => "RTR→RTS",
            Self::Sqd => "RTS→SQD",
            Self::Err => "SQD→ERR",
            Self::Reset => "ERR→RESET",
            Self::Destroy => "DESTROY",
        }
    }

    fn opcode(self) -> CmdOpcode {
        match self {
            Self::Create => CmdOpcode::CreateQp,
            Self::Install => CmdOpcode::InstallQp,
            Self::Destroy => CmdOpcode::DestroyQp,
            _ => CmdOpcode::ModifyQp,
        }
    }

    /// The attributes that it sets.
    fn attr(self) -> Option<(QpAttr, QpAttrBit)> {
        let state = |qp_state| QpAttr {
            qp_state,
            ..QpAttr::default()
        };
        Some(match self {
            Self::Create | Self::Destroy => return None,
            Self::Install | Self::Init => (state(QpState::Init), attr::INIT_MASK),
            Self::Rtr => {
                let av = AddressVector {
                    dgid: Gid::from_ipv4([10, 0, 0, 2]),
                    dmac: Some([2, 0, 0, 0, 0, 2]),
                    ..AddressVector::default()
                };
                let attr = QpAttr {
                    av,
                    path_mtu: Mtu::Mtu1024,
                    dest_qpn: Qpn(100),
                    rq_psn: Psn::new(7),
                    ..state(QpState::Rtr)
                };
                (attr, attr::RTR_MASK)
            }
            Self::Rts => {
                let attr = QpAttr {
                    sq_psn: Psn::new(9),
                    timeout: 14,
                    ..state(QpState::Rts)
                };
                (attr, attr::RTS_MASK)
            }
            Self::Sqd => (state(QpState::Sqd), QpAttrBit::STATE),
            Self::Err => (state(QpState::Err), QpAttrBit::STATE),
            Self::Reset => (state(QpState::Reset), QpAttrBit::STATE),
        })
    }
}

/// How the queue pairs of an operation are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum How {
    /// One command, contiguous range.
    Range,
    /// One command, list of QPNs in host memory.
    List,
    /// One command with a record for each, contiguous range.
    Records,
    /// One command with a record for each, list of QPNs.
    ListedRecords,
    /// A command each, all posted at once.
    Single,
}

/// A device on which control commands are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Setup {
    /// Bits of the data path.
    pub width: u32,
    /// log2 of the QP table.
    pub log_qp: u32,
    /// Nanoseconds between host and device, each way.
    pub far_ns: u64,
}

impl Setup {
    /// Entries of the table.
    pub fn table(self) -> u32 {
        1 << self.log_qp
    }

    /// The most QPs that there can be.
    pub fn whole(self) -> u32 {
        self.table() - RESERVED
    }

    /// Bytes of a beat.
    fn beat(self) -> f64 {
        f64::from(self.width) / 8.0
    }
}

/// One measured point.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Point {
    /// What was done.
    pub op: Op,
    /// How the QPs were named.
    pub how: How,
    /// To how many QPs.
    pub n: u32,
    /// From the first doorbell to the last completion in host memory.
    pub cycles: u64,
    /// From command decoded to completion handed over, as the device measures it; 0 for single commands.
    pub exec: u32,
}

impl Point {
    /// First doorbell to last completion, per QP.
    pub fn per_qp(&self) -> f64 {
        self.cycles as f64 / f64::from(self.n)
    }
}

/// The points of one device.
#[derive(Debug, Serialize)]
pub struct Sweep {
    /// The device.
    pub setup: Setup,
    /// What was measured.
    pub points: Vec<Point>,
}

impl Sweep {
    /// A point, if it was measured.
    pub fn at(&self, op: Op, how: How, n: u32) -> Option<&Point> {
        self.points.iter().find(|p| p.op == op && p.how == how && p.n == n)
    }

    /// The points of a line, by size.
    pub fn line(&self, op: Op, how: How) -> impl Iterator<Item = &Point> {
        self.points.iter().filter(move |p| p.op == op && p.how == how)
    }

    /// Sizes of batches that were measured.
    pub fn sizes(&self) -> Vec<u32> {
        self.line(Op::Create, How::Range).map(|p| p.n).collect()
    }
}

/// One NIC, its driver, and buffers for commands that the bench writes itself.
pub struct Lab {
    setup: Setup,
    device: Device<NicBus>,
    pd: ProtectionDomain<NicBus>,
    cq: CompletionQueue<NicBus>,
    rings: DmaBuf,
    records: DmaBuf,
    list: DmaBuf,
}

impl Lab {
    /// Brings the device up.
    pub fn new(setup: Setup) -> anyhow::Result<Self> {
        let mut nic = NicSpec::new(setup.width as usize);
        nic.params.push(("QpIdxW".to_owned(), setup.log_qp.to_string()));
        let host = HostParams {
            // A read goes to the host and comes back.
            read_latency_ns: 2 * setup.far_ns,
            write_latency_ns: setup.far_ns,
            mmio_latency_ns: setup.far_ns,
            ..HostParams::ideal()
        };
        let world = World::new(&WorldParams {
            nics: 1,
            nic,
            host,
            ..WorldParams::default()
        })?
        .shared();
        let params = OpenParams {
            log_cmd_ring: LOG_RING,
            ..OpenParams::default()
        };
        let device = Device::open(NicBus::new(&world, 0)?, params)?;
        device.set_port(1, [2, 0, 0, 0, 0, 1], Mtu::Mtu4096, true)?;
        device.set_gid(0, Gid::from_ipv4([10, 0, 0, 1]))?;
        let pd = device.alloc_pd()?;
        let cq = device.create_cq(&CqInit::entries(64))?;
        let alloc =
            |bytes: usize| -> anyhow::Result<DmaBuf> { Ok(device.with_bus(|bus| bus.dma_alloc(bytes, 4096))??) };
        Ok(Self {
            setup,
            rings: alloc(4096)?,
            records: alloc(64 * MAX_RECORDS as usize)?,
            list: alloc(4 * setup.table() as usize)?,
            device,
            pd,
            cq,
        })
    }

    /// Posts commands at once; cycles from the first doorbell to the last completion in memory, and what they returned.
    fn run(&self, commands: &[CmdQp]) -> anyhow::Result<(u64, Vec<CmdResult>)> {
        let device = &self.device;
        let start = device.now_cycles()?;
        let tickets = commands
            .iter()
            .map(|c| device.submit(c.0))
            .collect::<Result<Vec<_>, _>>()?;
        let patience = 100_000 + 2000 * commands.len() as u64 + 64 * u64::from(self.setup.table());
        while device.outstanding()? > 0 {
            ensure!(
                device.now_cycles()? - start < patience,
                "{} of {} commands are not complete after {patience} cycles",
                device.outstanding()?,
                commands.len()
            );
            device.advance(1)?;
        }
        let cycles = device.now_cycles()? - start;
        let results = tickets
            .into_iter()
            .map(|t| device.wait(t))
            .collect::<Result<Vec<_>, _>>()?;
        Ok((cycles, results))
    }

    /// A command of that kind without names.
    fn command(&self, op: Op, n: u32) -> CmdQp {
        let command = CmdQp::new().with_opcode(op.opcode().into()).with_count(n);
        let command = match op.attr() {
            Some(_) => command.with_attr_addr(self.records.addr),
            None => command,
        };
        if !matches!(op, Op::Create | Op::Install) {
            return command;
        }
        // Nothing is posted: all QPs may name the same rings.
        command
            .with_qp_type(u8::from(QpType::Rc))
            .with_pd(self.pd.handle().0)
            .with_send_cq(self.cq.cqn().0)
            .with_recv_cq(self.cq.cqn().0)
            .with_sq_base(self.rings.addr)
            .with_rq_base(self.rings.addr)
    }

    /// Puts the operation's record into host memory, `n` times.
    fn put_records(&self, op: Op, n: u32) -> anyhow::Result<()> {
        if let Some((attr, mask)) = op.attr() {
            let record = attr.record(mask)?;
            for i in 0..u64::from(n) {
                let at = self.records.addr + 64 * i;
                self.device.with_bus(|bus| bus.dma_write(at, record.as_bytes()))??;
            }
        }
        Ok(())
    }

    /// One command for `n` QPs; `first` is the first of a range. Returns the point and the first QPN.
    pub fn batch(&self, op: Op, how: How, n: u32, first: u32) -> anyhow::Result<(Point, u32)> {
        self.put_records(
            op,
            if matches!(how, How::Records | How::ListedRecords) {
                n
            } else {
                1
            },
        )?;
        let listed = matches!(how, How::List | How::ListedRecords);
        let creates = matches!(op, Op::Create | Op::Install);
        let mut flags = CmdFlag::EMPTY;
        match (creates, listed) {
            (true, false) => flags |= CmdFlag::CONTIGUOUS,
            (false, true) => flags |= CmdFlag::LIST,
            _ => {}
        }
        if matches!(how, How::Records | How::ListedRecords) {
            flags |= CmdFlag::RECORDS;
        }
        let mut command = self.command(op, n).with_flags(flags.0 as u8);
        if listed {
            command = command.with_list_addr(self.list.addr);
        } else if !creates {
            command = command.with_handle(first);
        }
        let what = || format!("{} of {n} QPs ({how:?})", op.name());
        let (cycles, results) = self.run(&[command]).with_context(what)?;
        let result = results.first().with_context(what)?;
        ensure!(result.count == n, "{} says that it did {}", what(), result.count);
        let point = Point {
            op,
            how,
            n,
            cycles,
            exec: result.exec_cycles,
        };
        Ok((point, result.handle))
    }

    /// A command each, for QPs `qpns`; creation gives them. Returns the point and the QPNs.
    fn single(&self, op: Op, n: u32, qpns: &[u32]) -> anyhow::Result<(Point, Vec<u32>)> {
        self.put_records(op, 1)?;
        let commands: Vec<CmdQp> = (0..n as usize)
            .map(|i| self.command(op, 1).with_handle(qpns.get(i).copied().unwrap_or(0)))
            .collect();
        let (cycles, results) = self.run(&commands).with_context(|| format!("{n} x {}", op.name()))?;
        let point = Point {
            op,
            how: How::Single,
            n,
            cycles,
            exec: 0,
        };
        Ok((point, results.iter().map(|r| r.handle).collect()))
    }

    /// All steps of a life in batches by range.
    pub fn life(&self, n: u32) -> anyhow::Result<Vec<Point>> {
        let mut first = 0;
        let mut points = Vec::new();
        for op in LIFE {
            let (point, handle) = self.batch(op, How::Range, n, first)?;
            first = handle;
            points.push(point);
            if matches!(op, Op::Sqd | Op::Reset) {
                self.settle(n, first)?;
            }
        }
        points.pop(); // the second DESTROY, of QPs in INIT
        Ok(points)
    }

    /// Lets the data path go through `n` QPs whose state has changed, and what it reports be applied. Otherwise the next
    /// command would be measured together with that. QUERY is executed when all reports are applied.
    fn settle(&self, n: u32, qpn: u32) -> anyhow::Result<()> {
        self.device.advance(VISIT_CYCLES * u64::from(n))?;
        let query = CmdQp::new()
            .with_opcode(CmdOpcode::QueryQp.into())
            .with_handle(qpn)
            .with_count(1)
            .with_attr_addr(self.records.addr);
        self.run(&[query]).context("QUERY_QP")?;
        Ok(())
    }

    /// The same, command by command.
    fn life_single(&self, n: u32) -> anyhow::Result<Vec<Point>> {
        let mut qpns = Vec::new();
        let mut points = Vec::new();
        for op in LIFE {
            let (point, handles) = self.single(op, n, &qpns)?;
            qpns = handles;
            points.push(point);
        }
        points.pop();
        Ok(points)
    }

    /// Creation, RESET→INIT and destruction by list.
    fn by_list(&self, n: u32) -> anyhow::Result<Vec<Point>> {
        [Op::Create, Op::Init, Op::Destroy]
            .into_iter()
            .map(|op| Ok(self.batch(op, How::List, n, 0)?.0))
            .collect()
    }

    /// INIT→RTR and RTR→RTS with a record for each QP.
    fn records(&self, n: u32) -> anyhow::Result<Vec<Point>> {
        let mut points = Vec::new();
        for how in [How::Records, How::ListedRecords] {
            let listed = how == How::ListedRecords;
            let uniform = if listed { How::List } else { How::Range };
            let (_, first) = self.batch(Op::Create, uniform, n, 0)?;
            self.batch(Op::Init, uniform, n, first)?;
            points.push(self.batch(Op::Rtr, how, n, first)?.0);
            points.push(self.batch(Op::Rts, how, n, first)?.0);
            self.batch(Op::Destroy, uniform, n, first)?;
        }
        Ok(points)
    }
}

/// What the budgets allow a command to take, decoded to completed.
pub struct Allowed {
    per_qp: f64,
    fixed: f64,
    divisor: f64,
    per_record: f64,
}

impl Allowed {
    /// From `spec/budgets.toml`.
    pub fn new() -> anyhow::Result<Self> {
        Ok(Self {
            per_qp: Limit::budget("uniform_batch_per_qp")?.value(),
            fixed: Limit::budget("uniform_batch_fixed")?.value(),
            divisor: Limit::budget("batch_table_divisor")?.value(),
            per_record: Limit::budget("record_batch_per_qp")?.value(),
        })
    }

    /// For that batch.
    pub fn of(&self, setup: Setup, how: How, n: u32) -> f64 {
        let fixed = self.fixed + f64::from(setup.table()) / self.divisor;
        let list = (4.0 * f64::from(n) / setup.beat()).ceil();
        let records = self.per_record + 64.0 / setup.beat();
        let n = f64::from(n);
        match how {
            How::Range | How::Single => fixed + self.per_qp * n,
            How::List => fixed + self.per_qp * n + list,
            How::Records => fixed + records * n,
            How::ListedRecords => fixed + records * n + list,
        }
    }
}

/// A table on which all is measured, and how much.
#[derive(Debug, Clone, Copy)]
pub struct Extent {
    /// log2 of the table.
    log_qp: u32,
    /// Widths of the data path.
    widths: &'static [u32],
    /// The most single commands.
    single: u32,
}

/// Enough for every size of batch in a run of a few minutes.
pub const BRIEF: &[Extent] = &[Extent {
    log_qp: LOG_LARGE,
    widths: &[64, 512],
    single: 256,
}];
/// Four sizes of the table. The smallest and the largest at one width: what a command takes beyond the beats of lists and
/// records does not depend on it.
pub const FULL: &[Extent] = &[
    Extent {
        log_qp: 8,
        widths: &[64],
        single: 1024,
    },
    Extent {
        log_qp: 10,
        widths: &[64, 512],
        single: 1024,
    },
    Extent {
        log_qp: LOG_LARGE,
        widths: &[64, 512],
        single: 1024,
    },
    Extent {
        log_qp: 16,
        widths: &[64],
        single: 64,
    },
];

/// Measures every operation in every size.
pub fn sweep(report: &mut Report, extents: &[Extent]) -> anyhow::Result<Vec<Sweep>> {
    let mut sweeps = Vec::new();
    for &Extent { log_qp, widths, single } in extents {
        for &width in widths {
            for far_ns in [0, FAR_NS] {
                let setup = Setup { width, log_qp, far_ns };
                sweeps.push(one_sweep(report, setup, single)?);
            }
        }
    }
    Ok(sweeps)
}

fn one_sweep(report: &mut Report, setup: Setup, most_single: u32) -> anyhow::Result<Sweep> {
    let Setup { width, far_ns, .. } = setup;
    let place = format!("{width} bits, table of {}, host {far_ns} ns away", setup.table());
    report.progress(&format!("every operation: {place}"));
    let lab = Lab::new(setup)?;
    // After a reset the requester clears a section in two cycles at most, behind the device that says it is ready: the first barrier would wait for that.
    lab.device.advance(2 * u64::from(setup.table()))?;
    let whole = setup.whole();
    let mut sizes: Vec<u32> = SIZES.into_iter().filter(|n| *n < whole).collect();
    sizes.push(whole);
    let mut points = Vec::new();
    for &n in &sizes {
        points.extend(lab.life(n)?);
        if n <= most_single.min(1 << LOG_RING) {
            points.extend(lab.life_single(n)?);
        }
    }
    for n in [64, 1024, whole] {
        if n <= whole {
            points.extend(lab.by_list(n)?);
        }
    }
    points.extend(lab.records(MAX_RECORDS)?);
    if far_ns == 0 {
        judge(report, setup, &points)?;
    }
    Ok(Sweep { setup, points })
}

/// Holds each batch to its budget; a row tells of the one that comes closest to it.
fn judge(report: &mut Report, setup: Setup, points: &[Point]) -> anyhow::Result<()> {
    let allowed = Allowed::new()?;
    let mut row = |what: String, op: Op, how: How| {
        let share = |p: &Point| 100.0 * f64::from(p.exec) / allowed.of(setup, how, p.n);
        let of_line = points.iter().filter(|p| p.op == op && p.how == how);
        let worst = of_line.max_by(|a, b| share(a).total_cmp(&share(b)));
        if let Some(worst) = worst {
            report.measured(
                format!("{what}: {} QPs take {} cycles", worst.n, worst.exec),
                share(worst),
                "% of what is allowed",
                Limit::at_most(100.0),
            );
        }
    };
    let place = format!("{} bits, table of {}", setup.width, setup.table());
    for op in OPS {
        row(format!("{} by range, {place}", op.name()), op, How::Range);
    }
    for op in [Op::Create, Op::Init, Op::Destroy] {
        row(format!("{} by list, {place}", op.name()), op, How::List);
    }
    for op in [Op::Rtr, Op::Rts] {
        row(format!("{} with records, {place}", op.name()), op, How::Records);
        row(
            format!("{} with records by list, {place}", op.name()),
            op,
            How::ListedRecords,
        );
    }
    Ok(())
}
