// SPDX-License-Identifier: Apache-2.0
//! Queue pairs: one, and in batches.

use std::collections::BTreeSet;

use openrnic_spec::{
    self as spec, CmdFlag, CmdOpcode, CmdQp, CmdStatus, DB_RQ, DB_SQ, DbQueue, MAX_RECORDS, QpAttrBit, QpState, QpType,
    RqWqe, SqWqe, SqWqeMr, WqeOpcode,
};

use crate::attr::{QpAttr, QuirkContext, linux_quirks};
use crate::bus::{Bus, DmaBuf};
use crate::cmd::CmdResult;
use crate::cq::CompletionQueue;
use crate::device::{Core, Device, lock};
use crate::error::{ATOMIC_BYTES, Doing, Error, PostError, PostErrorKind, Result};
use crate::pd::ProtectionDomain;
use crate::ring::WorkQueue;
use crate::types::{Cqn, Qpn, Srqn, XrcdHandle};
use crate::wr::{RecvWr, SendWr, Sge};

/// Bytes of a send WQE before its SGEs.
const SQ_HEADER: usize = 32;
/// Bytes of a receive WQE before its SGEs.
pub(crate) const RQ_HEADER: usize = 16;

/// Sizes of a queue pair, as ibv_qp_cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QpCap {
    /// Send work requests outstanding.
    pub max_send_wr: u32,
    /// Receive work requests outstanding.
    pub max_recv_wr: u32,
    /// SGEs of a send.
    pub max_send_sge: u32,
    /// SGEs of a receive.
    pub max_recv_sge: u32,
    /// Bytes of inline data.
    pub max_inline_data: u32,
}

impl Default for QpCap {
    fn default() -> Self {
        Self {
            max_send_wr: 16,
            max_recv_wr: 16,
            max_send_sge: 1,
            max_recv_sge: 1,
            max_inline_data: 0,
        }
    }
}

/// A queue pair to create, as ibv_qp_init_attr.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QpInit {
    /// Its type.
    pub qp_type: QpType,
    /// Where sends complete.
    pub send_cq: Cqn,
    /// Where receives complete.
    pub recv_cq: Cqn,
    /// Where receives come from instead of a receive queue; `max_recv_wr` and `max_recv_sge` mean nothing then.
    pub srq: Option<Srqn>,
    /// XRC_TGT: the domain that it belongs to, instead of the protection domain.
    pub xrcd: Option<XrcdHandle>,
    /// Sizes wanted; those made may be larger ([`QueuePair::cap`]).
    pub cap: QpCap,
    /// Every send completes with a completion, signaled or not.
    pub sq_sig_all: bool,
    /// REG_MR may be posted, which names bus addresses: for QPs of the kernel. Without it a REG_MR is refused.
    pub fast_reg: bool,
    /// Doorbell page.
    pub uar: u8,
    /// QPN wanted (one QP only); `None`: any.
    pub qpn: Option<Qpn>,
}

impl QpInit {
    /// A queue pair that completes to one queue, with default sizes.
    pub fn new<B: Bus>(qp_type: QpType, cq: &CompletionQueue<B>) -> Self {
        Self {
            qp_type,
            send_cq: cq.cqn(),
            recv_cq: cq.cqn(),
            srq: None,
            xrcd: None,
            cap: QpCap::default(),
            sq_sig_all: false,
            fast_reg: false,
            uar: 0,
            qpn: None,
        }
    }
}

/// How the numbers of a batch are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Numbering {
    /// Any numbers.
    #[default]
    Any,
    /// One range; any numbers when the device finds no free range, or none with one new generation.
    PreferRange,
    /// One range, or the error NO_COMMON_GENERATION or NO_RESOURCES.
    Range,
}

/// How to create a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BatchInit {
    /// How the numbers are chosen.
    pub numbering: Numbering,
    /// A range starts at a multiple of `1 << align_log2`; 0 to 15.
    pub align_log2: u8,
}

impl BatchInit {
    /// A contiguous range if there is one.
    pub fn range() -> Self {
        Self {
            numbering: Numbering::PreferRange,
            align_log2: 0,
        }
    }
}

/// The rings of the QPs that one command created; freed with the last of them.
pub(crate) struct RingMem {
    pub(crate) bufs: Vec<DmaBuf>,
    users: usize,
}

/// What the driver keeps of a QP.
pub(crate) struct QpSw {
    qp_type: QpType,
    state: QpState,
    port: u8,
    send_cq: Cqn,
    recv_cq: Cqn,
    pub(crate) srq: Option<Srqn>,
    uar: u8,
    cap: QpCap,
    rings: u64,
    pub(crate) sq: WorkQueue,
    pub(crate) rq: WorkQueue,
}

/// A queue pair as the device holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QpQuery {
    /// Its number.
    pub qpn: Qpn,
    /// Its state.
    pub state: QpState,
    /// Its attributes.
    pub attr: QpAttr,
    /// In SQD: work started before is not complete yet.
    pub sq_draining: bool,
    /// Type, domain, queues and rings, as the device wrote them.
    pub init: spec::QpInit,
    /// Attributes as the device wrote them.
    pub record: spec::QpAttr,
}

/// A queue pair.
pub struct QueuePair<B: Bus> {
    device: Device<B>,
    qpn: Qpn,
    life: u64,
}

impl<B: Bus> Clone for QueuePair<B> {
    fn clone(&self) -> Self {
        Self {
            device: self.device.clone(),
            ..*self
        }
    }
}

/// Several queue pairs that one command moves.
pub struct QpBatch<B: Bus> {
    device: Device<B>,
    qpns: Vec<Qpn>,
    range: bool,
    created: CmdResult,
    life: u64,
}

impl<B: Bus> Clone for QpBatch<B> {
    fn clone(&self) -> Self {
        Self {
            device: self.device.clone(),
            qpns: self.qpns.clone(),
            ..*self
        }
    }
}

// -------------------------------------------------------------------- creation

struct Shape {
    log_sq: u32,
    log_rq: u32,
    log_sq_stride: u32,
    log_rq_stride: u32,
    cap: QpCap,
}

impl Shape {
    /// Rounds the sizes up to what rings can have.
    fn of(init: &QpInit, caps: &crate::regs::DeviceCaps) -> Result<Self> {
        let mut cap = init.cap;
        if init.srq.is_some() {
            (cap.max_recv_wr, cap.max_recv_sge) = (0, 0);
        }
        for (what, value, max) in [
            ("max_send_wr", cap.max_send_wr, caps.max_qp_wr()),
            ("max_recv_wr", cap.max_recv_wr, caps.max_qp_wr()),
            ("max_send_sge", cap.max_send_sge, caps.max_sge),
            ("max_recv_sge", cap.max_recv_sge, caps.max_sge),
            ("max_inline_data", cap.max_inline_data, caps.max_inline),
        ] {
            if value > max {
                return Err(Error::invalid(format!("{what} {value}: the device has at most {max}")));
            }
        }
        let log = |n: u32| n.max(1).next_power_of_two().trailing_zeros();
        let stride = |unit: usize, need: usize, max: u32, what: &str| {
            let log_stride = log(need.div_ceil(unit) as u32);
            if log_stride > max {
                let unit = unit << max;
                return Err(Error::invalid(format!(
                    "a {what} WQE of {need} bytes: the device has at most {unit}"
                )));
            }
            Ok(log_stride)
        };
        let sq_need = SQ_HEADER + (16 * cap.max_send_sge as usize).max(cap.max_inline_data as usize);
        let rq_need = RQ_HEADER + 16 * cap.max_recv_sge as usize;
        let log_sq_stride = stride(SqWqe::BYTES, sq_need, caps.max_sq_stride, "send")?;
        let log_rq_stride = stride(RqWqe::BYTES, rq_need, caps.max_rq_stride, "receive")?;
        let sq_room = ((SqWqe::BYTES << log_sq_stride) - SQ_HEADER) as u32;
        let rq_room = ((RqWqe::BYTES << log_rq_stride) - RQ_HEADER) as u32;
        let (log_sq, log_rq) = (log(cap.max_send_wr), log(cap.max_recv_wr));
        Ok(Self {
            log_sq,
            log_rq,
            log_sq_stride,
            log_rq_stride,
            cap: QpCap {
                max_send_wr: 1 << log_sq,
                max_recv_wr: if init.srq.is_some() { 0 } else { 1 << log_rq },
                max_send_sge: (sq_room / 16).min(caps.max_sge),
                max_recv_sge: if init.srq.is_some() {
                    0
                } else {
                    (rq_room / 16).min(caps.max_sge)
                },
                max_inline_data: sq_room.min(caps.max_inline),
            },
        })
    }

    fn sq_pitch(&self) -> usize {
        SqWqe::BYTES << (self.log_sq_stride + self.log_sq)
    }

    fn rq_pitch(&self) -> usize {
        (RqWqe::BYTES << (self.log_rq_stride + self.log_rq)).next_multiple_of(64)
    }
}

pub(crate) fn create_one<B: Bus>(pd: &ProtectionDomain<B>, init: &QpInit) -> Result<QueuePair<B>> {
    let batch = create_batch(pd, 1, init, &BatchInit::default(), None)?;
    batch
        .qps()
        .into_iter()
        .next()
        .ok_or_else(|| Error::protocol("CREATE_QP made no QP"))
}

pub(crate) fn create_batch<B: Bus>(
    pd: &ProtectionDomain<B>,
    count: u32,
    init: &QpInit,
    batch: &BatchInit,
    record: Option<spec::QpAttr>,
) -> Result<QpBatch<B>> {
    let mut core = lock(&pd.device.core)?;
    core.alive(pd.life, "protection domain", pd.handle)?;
    let table = 1u32 << core.info.caps.log_qp.min(23);
    if count == 0 || count > table {
        return Err(Error::invalid(format!(
            "a batch of {count} QPs: 1 to {table} are possible"
        )));
    }
    if batch.align_log2 > 15 {
        return Err(Error::invalid(format!(
            "align_log2 {}: 0 to 15 are possible",
            batch.align_log2
        )));
    }
    if init.qpn.is_some() && count != 1 {
        return Err(Error::invalid("a requested QPN goes with one QP, not with a batch"));
    }
    let shape = Shape::of(init, &core.info.caps)?;
    for cqn in [init.send_cq, init.recv_cq] {
        if !core.cqs.contains_key(&cqn) {
            return Err(Error::Stale {
                what: format!("completion queue {cqn}"),
            });
        }
    }
    if let Some(srq) = init.srq
        && !core.srqs.contains_key(&srq)
    {
        return Err(Error::Stale {
            what: format!("shared receive queue {srq}"),
        });
    }
    if let Some(xrcd) = init.xrcd
        && !core.xrcds.contains(&xrcd)
    {
        return Err(Error::Stale {
            what: format!("XRC domain {xrcd}"),
        });
    }
    if init.xrcd.is_some() != (init.qp_type == QpType::XrcTgt) {
        return Err(Error::invalid(
            "an XRC domain goes with QPs of type XRC_TGT, which need one, and with no others",
        ));
    }
    let n = count as usize;
    let sq = core
        .bus
        .dma_alloc(n * shape.sq_pitch(), 64)
        .doing("allocating send rings")?;
    let rq = match init.srq {
        Some(_) => Ok(None),
        None => core
            .bus
            .dma_alloc(n * shape.rq_pitch(), 64)
            .map(Some)
            .doing("allocating receive rings"),
    };
    let rq = match rq {
        Ok(rq) => rq,
        Err(e) => {
            core.bus.dma_free(sq).doing("freeing send rings")?;
            return Err(e);
        }
    };
    let bufs: Vec<DmaBuf> = [Some(sq), rq].into_iter().flatten().collect();
    let made = create_numbered(&mut core, pd, count, init, batch, record, &shape, (sq, rq));
    let (qpns, range, created) = match made {
        Ok(made) => made,
        Err(e) => {
            // After a timeout the device may still make the QPs and read the rings: keep them until reset.
            if e.status().is_some() {
                for buf in bufs {
                    core.bus.dma_free(buf).doing("freeing rings")?;
                }
            } else {
                let key = core.next_ring;
                core.next_ring += 1;
                core.rings.insert(key, RingMem { bufs, users: 0 });
            }
            return Err(e);
        }
    };
    let rings = core.next_ring;
    core.next_ring += 1;
    core.rings.insert(rings, RingMem { bufs, users: n });
    for (i, qpn) in qpns.iter().enumerate() {
        let state = record
            .and_then(|r| QpState::try_from(r.qp_state()).ok())
            .unwrap_or(QpState::Reset);
        let sw = QpSw {
            qp_type: init.qp_type,
            state,
            port: record.map_or(0, |r| r.port()),
            send_cq: init.send_cq,
            recv_cq: init.recv_cq,
            srq: init.srq,
            uar: init.uar,
            cap: shape.cap,
            rings,
            sq: WorkQueue::new(
                sq.addr + (i * shape.sq_pitch()) as u64,
                shape.log_sq,
                SqWqe::BYTES << shape.log_sq_stride,
            ),
            rq: WorkQueue::new(
                rq.map_or(0, |rq| rq.addr + (i * shape.rq_pitch()) as u64),
                shape.log_rq,
                RqWqe::BYTES << shape.log_rq_stride,
            ),
        };
        core.qps.insert(qpn.0, sw);
    }
    let life = core.life;
    drop(core);
    Ok(QpBatch {
        device: pd.device.clone(),
        qpns,
        range,
        created,
        life,
    })
}

/// CREATE_QP or INSTALL_QP; returns the numbers, whether they are a range, and the completion.
#[allow(clippy::too_many_arguments)] // private, one caller
fn create_numbered<B: Bus>(
    core: &mut Core<B>,
    pd: &ProtectionDomain<B>,
    count: u32,
    init: &QpInit,
    batch: &BatchInit,
    record: Option<spec::QpAttr>,
    shape: &Shape,
    (sq, rq): (DmaBuf, Option<DmaBuf>),
) -> Result<(Vec<Qpn>, bool, CmdResult)> {
    let range = batch.numbering != Numbering::Any;
    let mut flags = CmdFlag::EMPTY;
    if range {
        flags |= CmdFlag::CONTIGUOUS;
    }
    if init.qpn.is_some() {
        flags |= CmdFlag::REQUESTED;
    }
    if init.sq_sig_all {
        flags |= CmdFlag::SIG_ALL;
    }
    if init.fast_reg {
        flags |= CmdFlag::FAST_REG;
    }
    if init.srq.is_some() {
        flags |= CmdFlag::USE_SRQ;
    }
    // One buffer: the attribute record, then the list.
    let listed = !range && count > 1;
    let bytes = 64 + if listed { 4 * count as usize } else { 0 };
    let buf = core.bus.dma_alloc(bytes, 64).doing("allocating a list of QPNs")?;
    let opcode = if record.is_some() {
        CmdOpcode::InstallQp
    } else {
        CmdOpcode::CreateQp
    };
    if let Some(record) = &record {
        core.bus
            .dma_write(buf.addr, record.as_bytes())
            .doing("writing an attribute record")?;
    }
    let command = CmdQp::new()
        .with_opcode(opcode.into())
        .with_flags(flags.0 as u8)
        .with_handle(init.qpn.map_or(0, |q| q.0))
        .with_count(count & 0xff_ffff)
        .with_qp_type(u8::from(init.qp_type) & 0xf)
        .with_align_log2(if range { batch.align_log2 } else { 0 })
        .with_pd(init.xrcd.map_or(pd.handle.0, |xrcd| xrcd.0))
        .with_srq(init.srq.map_or(0, |srq| srq.0))
        .with_send_cq(init.send_cq.0)
        .with_recv_cq(init.recv_cq.0)
        .with_uar(init.uar)
        .with_log_sq(shape.log_sq as u8)
        .with_log_rq(shape.log_rq as u8)
        .with_log_sq_stride(shape.log_sq_stride as u8)
        .with_log_rq_stride(shape.log_rq_stride as u8)
        .with_sq_base(sq.addr)
        .with_rq_base(rq.map_or(0, |rq| rq.addr))
        .with_sq_pitch(shape.sq_pitch() as u32)
        .with_rq_pitch(shape.rq_pitch() as u32)
        .with_list_addr(if listed { buf.addr + 64 } else { 0 })
        .with_attr_addr(if record.is_some() { buf.addr } else { 0 });
    let mut qpns = Vec::new();
    let result = core.command_with(command.0, count, buf, |core, buf, result| {
        if result.count != count {
            return Err(Error::protocol(format!(
                "{opcode} of {count} QPs says that it made {}",
                result.count
            )));
        }
        if listed {
            let mut list = vec![0; 4 * count as usize];
            core.bus
                .dma_read(buf.addr + 64, &mut list)
                .doing("reading a list of QPNs")?;
            qpns = list
                .chunks_exact(4)
                .map(|c| Qpn(c.first_chunk().map_or(0, |b| u32::from_le_bytes(*b))))
                .collect();
        } else {
            qpns = (0..count).map(|i| Qpn(result.handle.wrapping_add(i))).collect();
        }
        let mut seen = BTreeSet::new();
        for qpn in &qpns {
            if qpn.0 == 0 || qpn.0 >= 0xff_ffff || core.qps.contains_key(&qpn.0) || !seen.insert(qpn.0) {
                return Err(Error::protocol(format!(
                    "{opcode} returned QPN {qpn}, which cannot be new (reserved, in use, or given twice)"
                )));
            }
        }
        Ok(())
    });
    // No free range, or none with a generation that is new to all of it: single places may still do.
    let no_range = |e: &Error| matches!(e.status(), Some(CmdStatus::NoCommonGeneration | CmdStatus::NoResources));
    match result {
        Ok(result) => Ok((qpns, range || count == 1, result)),
        Err(e) if batch.numbering == Numbering::PreferRange && no_range(&e) => {
            create_numbered(core, pd, count, init, &BatchInit::default(), record, shape, (sq, rq))
        }
        Err(e) => Err(e),
    }
}

// -------------------------------------------------------------------- commands on QPs

impl<B: Bus> Core<B> {
    fn qp(&mut self, life: u64, qpn: Qpn) -> Result<&mut QpSw> {
        self.alive(life, "queue pair", qpn)?;
        self.qps.get_mut(&qpn.0).ok_or_else(|| Error::Stale {
            what: format!("queue pair {qpn}"),
        })
    }

    /// MODIFY_QP: one record for all, or one each. QPNs as a range or a list.
    fn modify(&mut self, qpns: &[Qpn], range: bool, records: &[spec::QpAttr]) -> Result<CmdResult> {
        let Some(first) = qpns.first() else {
            return Err(Error::invalid("a batch of no QPs: name one or more"));
        };
        let each = records.len() > 1;
        let listed = !range && qpns.len() > 1;
        let room = 64 * records.len();
        let bytes = room + if listed { 4 * qpns.len() } else { 0 };
        let buf = self.bus.dma_alloc(bytes, 64).doing("allocating attribute records")?;
        let mut data: Vec<u8> = records.iter().flat_map(|r| r.0).collect();
        if listed {
            data.extend(qpns.iter().flat_map(|q| q.0.to_le_bytes()));
        }
        self.bus.dma_write(buf.addr, &data).doing("writing attribute records")?;
        let mut flags = CmdFlag::EMPTY;
        if listed {
            flags |= CmdFlag::LIST;
        }
        if each {
            flags |= CmdFlag::RECORDS;
        }
        let count = qpns.len() as u32;
        let command = CmdQp::new()
            .with_opcode(CmdOpcode::ModifyQp.into())
            .with_flags(flags.0 as u8)
            .with_handle(if listed { 0 } else { first.0 })
            .with_count(count & 0xff_ffff)
            .with_list_addr(if listed { buf.addr + room as u64 } else { 0 })
            .with_attr_addr(buf.addr);
        let result = self.command_with(command.0, count, buf, |_, _, _| Ok(()))?;
        if result.count != count {
            return Err(Error::protocol(format!(
                "MODIFY_QP of {count} QPs says that it changed {}",
                result.count
            )));
        }
        let (mut reset, mut cqns) = (BTreeSet::new(), BTreeSet::new());
        for (i, qpn) in qpns.iter().enumerate() {
            let Some(record) = records.get(i).or(records.first()) else {
                break;
            };
            let Some(qp) = self.qps.get_mut(&qpn.0) else { continue };
            qp.modified(record);
            if QpAttrBit(record.mask()).contains(QpAttrBit::STATE) && qp.state == QpState::Reset {
                reset.insert(qpn.0);
                cqns.extend([qp.send_cq, qp.recv_cq]);
            }
        }
        self.purge(&reset, &cqns)?;
        Ok(result)
    }

    fn destroy_qps(&mut self, qpns: &[Qpn], range: bool) -> Result<CmdResult> {
        let Some(first) = qpns.first() else {
            return Err(Error::invalid("a batch of no QPs: name one or more"));
        };
        let listed = !range && qpns.len() > 1;
        let buf = self
            .bus
            .dma_alloc((4 * qpns.len()).max(64), 64)
            .doing("allocating a list of QPNs")?;
        let data: Vec<u8> = qpns.iter().flat_map(|q| q.0.to_le_bytes()).collect();
        self.bus.dma_write(buf.addr, &data).doing("writing a list of QPNs")?;
        let count = qpns.len() as u32;
        let command = CmdQp::new()
            .with_opcode(CmdOpcode::DestroyQp.into())
            .with_flags(if listed { CmdFlag::LIST.0 as u8 } else { 0 })
            .with_handle(if listed { 0 } else { first.0 })
            .with_count(count & 0xff_ffff)
            .with_list_addr(if listed { buf.addr } else { 0 });
        let result = self.command_with(command.0, count, buf, |_, _, _| Ok(()))?;
        let (mut gone, mut cqns) = (BTreeSet::new(), BTreeSet::new());
        for qp in qpns.iter().filter_map(|qpn| self.qps.get(&qpn.0)) {
            cqns.extend([qp.send_cq, qp.recv_cq]);
        }
        gone.extend(qpns.iter().map(|qpn| qpn.0));
        self.purge(&gone, &cqns)?;
        for qpn in qpns {
            let Some(qp) = self.qps.remove(&qpn.0) else { continue };
            let key = qp.rings;
            let Some(rings) = self.rings.get_mut(&key) else {
                continue;
            };
            rings.users = rings.users.saturating_sub(1);
            if rings.users == 0 {
                let bufs = std::mem::take(&mut rings.bufs);
                self.rings.remove(&key);
                for buf in bufs {
                    self.bus.dma_free(buf).doing("freeing rings")?;
                }
            }
        }
        Ok(result)
    }

    fn query(&mut self, qpn: Qpn) -> Result<QpQuery> {
        let buf = self.bus.dma_alloc(128, 64).doing("allocating room for a query")?;
        let command = CmdQp::new()
            .with_opcode(CmdOpcode::QueryQp.into())
            .with_handle(qpn.0)
            .with_count(1)
            .with_attr_addr(buf.addr);
        let mut bytes = [0; 128];
        self.command_with(command.0, 1, buf, |core, buf, _| {
            core.bus.dma_read(buf.addr, &mut bytes).doing("reading a query")
        })?;
        let short = |e: spec::TooShort| Error::protocol(e.to_string());
        let record = spec::QpAttr::from_bytes(&bytes).map_err(short)?;
        let init = spec::QpInit::from_bytes(&bytes[64..]).map_err(short)?;
        if init.qpn() != qpn.0 {
            return Err(Error::protocol(format!(
                "QUERY_QP of {qpn} answers for {}",
                Qpn(init.qpn())
            )));
        }
        let state = QpState::try_from(init.qp_state()).map_err(|e| Error::protocol(format!("QUERY_QP: {e}")))?;
        if let Some(qp) = self.qps.get_mut(&qpn.0) {
            qp.state = state;
        }
        let attr = QpAttr::from_record(&record)?;
        Ok(QpQuery {
            qpn,
            state,
            attr,
            sq_draining: init.sq_draining(),
            init,
            record,
        })
    }

    /// Attributes of the verbs call turned into the record for the device.
    fn verbs_record(&self, qpn: Qpn, attr: &QpAttr, mask: QpAttrBit) -> Result<spec::QpAttr> {
        let Some(qp) = self.qps.get(&qpn.0) else {
            return Err(Error::Stale {
                what: format!("queue pair {qpn}"),
            });
        };
        let context = QuirkContext {
            qp_type: qp.qp_type,
            state: qp.state,
            port: qp.port,
            privileged_qkey: self.params.privileged_qkey,
        };
        let (mut attr, mask) = linux_quirks(attr, mask, context)?;
        if mask.contains(QpAttrBit::AV) && attr.av.dmac.is_none() {
            let gid = attr.av.dgid;
            let mac = self.neighbours.get(&gid).ok_or(Error::NoNeighbour { gid })?;
            attr.av.dmac = Some(*mac);
        }
        attr.record(mask)
    }
}

impl<B: Bus> Device<B> {
    /// A handle to several QPs of this device, in any order and even twice: what one command shall name.
    /// Nothing is checked.
    ///
    /// # Errors
    /// [`Error::Reentered`].
    pub fn batch(&self, qpns: &[Qpn]) -> Result<QpBatch<B>> {
        let created = CmdResult {
            handle: 0,
            count: 0,
            exec_cycles: 0,
        };
        let life = lock(&self.core)?.life;
        Ok(QpBatch {
            device: self.clone(),
            qpns: qpns.to_vec(),
            range: false,
            created,
            life,
        })
    }

    /// A handle to a QP by number, whether it exists or not: for tests and tools.
    ///
    /// # Errors
    /// [`Error::Reentered`].
    pub fn qp(&self, qpn: Qpn) -> Result<QueuePair<B>> {
        let life = lock(&self.core)?.life;
        Ok(QueuePair {
            device: self.clone(),
            qpn,
            life,
        })
    }
}

// -------------------------------------------------------------------- handles

impl<B: Bus> QueuePair<B> {
    /// Its number.
    pub fn qpn(&self) -> Qpn {
        self.qpn
    }

    /// The number that peers may use: [`qpn`](Self::qpn), but for a DCT, which takes its number at RTR and has none before.
    ///
    /// # Errors
    /// [`Error::Stale`] when it no longer exists.
    pub fn peer_qpn(&self) -> Result<Option<Qpn>> {
        let core = lock(&self.device.core)?;
        core.alive(self.life, "queue pair", self.qpn)?;
        let Some(qp) = core.qps.get(&self.qpn.0) else {
            return Err(Error::Stale {
                what: format!("queue pair {}", self.qpn),
            });
        };
        Ok((qp.qp_type != QpType::Dct || qp.state == QpState::Rtr).then_some(self.qpn))
    }

    pub(crate) fn life(&self) -> u64 {
        self.life
    }

    /// The device.
    pub fn device(&self) -> &Device<B> {
        &self.device
    }

    /// Its sizes, rounded up.
    ///
    /// # Errors
    /// [`Error::Stale`].
    pub fn cap(&self) -> Result<QpCap> {
        Ok(lock(&self.device.core)?.qp(self.life, self.qpn)?.cap)
    }

    /// Its state as the driver last knew it: hardware may have moved it on ([`Self::query`]).
    ///
    /// # Errors
    /// [`Error::Stale`].
    pub fn state(&self) -> Result<QpState> {
        Ok(lock(&self.device.core)?.qp(self.life, self.qpn)?.state)
    }

    /// Changes attributes, as ibv_modify_qp(3) does on Linux: PORT follows AV.port in SQD, masks of XRC QPs
    /// are cut, privileged Q_Keys are refused, the MAC address comes from the neighbour table.
    ///
    /// # Errors
    /// [`Error::Gate`] when the gate refuses: nothing changed.
    pub fn modify(&self, attr: &QpAttr, mask: QpAttrBit) -> Result<CmdResult> {
        let mut core = lock(&self.device.core)?;
        core.qp(self.life, self.qpn)?;
        let record = core.verbs_record(self.qpn, attr, mask)?;
        core.modify(&[self.qpn], true, &[record])
    }

    /// Sends a record to the device as it is, whatever it holds.
    ///
    /// # Errors
    /// [`Error::Gate`] when the gate refuses: nothing changed.
    pub fn modify_raw(&self, record: &spec::QpAttr) -> Result<CmdResult> {
        let mut core = lock(&self.device.core)?;
        core.alive(self.life, "queue pair", self.qpn)?;
        core.modify(&[self.qpn], true, &[*record])
    }

    /// Moves the QP to RESET: all work is forgotten, its completions are removed from the queues.
    ///
    /// # Errors
    /// Those of commands.
    pub fn to_reset(&self) -> Result<CmdResult> {
        self.modify(
            &QpAttr {
                qp_state: QpState::Reset,
                ..QpAttr::default()
            },
            QpAttrBit::STATE,
        )
    }

    /// Moves the QP to ERR: all work is flushed.
    ///
    /// # Errors
    /// Those of commands; RESET to ERR is refused.
    pub fn to_err(&self) -> Result<CmdResult> {
        self.modify(
            &QpAttr {
                qp_state: QpState::Err,
                ..QpAttr::default()
            },
            QpAttrBit::STATE,
        )
    }

    /// Reads the QP from the device.
    ///
    /// # Errors
    /// BAD_HANDLE when it no longer exists; those of commands.
    pub fn query(&self) -> Result<QpQuery> {
        let mut core = lock(&self.device.core)?;
        core.alive(self.life, "queue pair", self.qpn)?;
        core.query(self.qpn)
    }

    /// Destroys the QP. Its rings are freed, its completions removed from the queues.
    ///
    /// # Errors
    /// Those of commands.
    pub fn destroy(&self) -> Result<CmdResult> {
        let mut core = lock(&self.device.core)?;
        core.alive(self.life, "queue pair", self.qpn)?;
        core.destroy_qps(&[self.qpn], true)
    }

    /// Posts work requests and rings the doorbell once.
    ///
    /// # Errors
    /// [`Error::Post`] names the first request that was not posted; those before it were.
    pub fn post_send(&self, list: &[SendWr]) -> Result<()> {
        let mut core = lock(&self.device.core)?;
        let core = &mut *core;
        core.qp(self.life, self.qpn)?;
        let caps = core.info.caps;
        let Some(qp) = core.qps.get_mut(&self.qpn.0) else {
            return Err(Error::Stale {
                what: format!("queue pair {}", self.qpn),
            });
        };
        let mut failed = None;
        let mut posted = 0;
        for (bad_wr, wr) in list.iter().enumerate() {
            let checked = qp.check_send(wr, &caps).map_err(|kind| PostError {
                bad_wr,
                wr_id: wr.wr_id,
                kind,
            });
            if let Err(error) = checked {
                failed = Some(error);
                break;
            }
            let bytes = send_wqe(wr, qp.sq.stride);
            core.bus
                .dma_write(qp.sq.next_addr(), &bytes)
                .doing("writing a send WQE")?;
            qp.sq.post(wr.wr_id);
            posted += 1;
        }
        if posted > 0 {
            let db = DbQueue::new()
                .with_qpn(self.qpn.0 & 0xff_ffff)
                .with_producer(qp.sq.producer());
            let uar = qp.uar;
            core.doorbell(uar, DB_SQ, db.0)?;
        }
        failed.map_or(Ok(()), |e| Err(e.into()))
    }

    /// Posts receive work requests and rings the doorbell once.
    ///
    /// # Errors
    /// [`Error::Post`] names the first request that was not posted; those before it were.
    pub fn post_recv(&self, list: &[RecvWr]) -> Result<()> {
        let mut core = lock(&self.device.core)?;
        let core = &mut *core;
        core.qp(self.life, self.qpn)?;
        let caps = core.info.caps;
        let Some(qp) = core.qps.get_mut(&self.qpn.0) else {
            return Err(Error::Stale {
                what: format!("queue pair {}", self.qpn),
            });
        };
        let mut failed = None;
        let mut posted = 0;
        for (bad_wr, wr) in list.iter().enumerate() {
            let checked = qp.check_recv(wr, &caps).map_err(|kind| PostError {
                bad_wr,
                wr_id: wr.wr_id,
                kind,
            });
            if let Err(error) = checked {
                failed = Some(error);
                break;
            }
            let bytes = recv_wqe(wr, qp.rq.stride);
            core.bus
                .dma_write(qp.rq.next_addr(), &bytes)
                .doing("writing a receive WQE")?;
            qp.rq.post(wr.wr_id);
            posted += 1;
        }
        if posted > 0 {
            let db = DbQueue::new()
                .with_qpn(self.qpn.0 & 0xff_ffff)
                .with_producer(qp.rq.producer());
            let uar = qp.uar;
            core.doorbell(uar, DB_RQ, db.0)?;
        }
        failed.map_or(Ok(()), |e| Err(e.into()))
    }
}

impl<B: Bus> QpBatch<B> {
    /// The numbers.
    pub fn qpns(&self) -> &[Qpn] {
        &self.qpns
    }

    /// Whether they are one range.
    pub fn is_range(&self) -> bool {
        self.range
    }

    /// What the command returned that created the batch; all zero when it was put together otherwise.
    pub fn created(&self) -> CmdResult {
        self.created
    }

    /// A handle to each.
    pub fn qps(&self) -> Vec<QueuePair<B>> {
        self.qpns
            .iter()
            .map(|qpn| QueuePair {
                device: self.device.clone(),
                qpn: *qpn,
                life: self.life,
            })
            .collect()
    }

    /// Changes the same attributes of all by one command: of all or of none. Linux's rules apply as for
    /// [`QueuePair::modify`], judged by the first QP.
    ///
    /// # Errors
    /// [`Error::Gate`] names the first QP that the gate refused; nothing changed.
    pub fn modify(&self, attr: &QpAttr, mask: QpAttrBit) -> Result<CmdResult> {
        let mut core = lock(&self.device.core)?;
        core.alive(self.life, "a batch of queue pairs, the first of them", self.first())?;
        let record = core.verbs_record(self.first(), attr, mask)?;
        core.modify(&self.qpns, self.range, &[record])
    }

    /// Changes attributes of each by one command, 64 QPs at most: of all or of none.
    ///
    /// # Errors
    /// As [`Self::modify`]; [`Error::Invalid`] when there is not one record for each.
    pub fn modify_each(&self, attrs: &[(QpAttr, QpAttrBit)]) -> Result<CmdResult> {
        let mut core = lock(&self.device.core)?;
        core.alive(self.life, "a batch of queue pairs, the first of them", self.first())?;
        self.check_records(attrs.len())?;
        let mut records = Vec::with_capacity(attrs.len());
        for (qpn, (attr, mask)) in self.qpns.iter().zip(attrs) {
            records.push(core.verbs_record(*qpn, attr, *mask)?);
        }
        core.modify(&self.qpns, self.range, &records)
    }

    /// Sends a record to the device as it is, for all.
    ///
    /// # Errors
    /// As [`Self::modify`].
    pub fn modify_raw(&self, record: &spec::QpAttr) -> Result<CmdResult> {
        let mut core = lock(&self.device.core)?;
        core.alive(self.life, "a batch of queue pairs, the first of them", self.first())?;
        core.modify(&self.qpns, self.range, &[*record])
    }

    /// Sends records to the device as they are, one for each.
    ///
    /// # Errors
    /// As [`Self::modify_each`].
    pub fn modify_each_raw(&self, records: &[spec::QpAttr]) -> Result<CmdResult> {
        let mut core = lock(&self.device.core)?;
        core.alive(self.life, "a batch of queue pairs, the first of them", self.first())?;
        self.check_records(records.len())?;
        core.modify(&self.qpns, self.range, records)
    }

    /// Destroys all by one command: all or none.
    ///
    /// # Errors
    /// Those of commands.
    pub fn destroy(&self) -> Result<CmdResult> {
        let mut core = lock(&self.device.core)?;
        core.alive(self.life, "a batch of queue pairs, the first of them", self.first())?;
        core.destroy_qps(&self.qpns, self.range)
    }

    fn first(&self) -> Qpn {
        self.qpns.first().copied().unwrap_or_default()
    }

    fn check_records(&self, records: usize) -> Result<()> {
        if records != self.qpns.len() {
            return Err(Error::invalid(format!(
                "{records} records for {} QPs: one each is needed",
                self.qpns.len()
            )));
        }
        if records > MAX_RECORDS as usize {
            return Err(Error::invalid(format!(
                "{records} records: one command takes {MAX_RECORDS} at most; use several batches"
            )));
        }
        Ok(())
    }
}

// -------------------------------------------------------------------- work requests

impl QpSw {
    /// Whether the device moves data for QPs of this type at all.
    fn check_type(&self, caps: &crate::regs::DeviceCaps) -> std::result::Result<(), PostErrorKind> {
        if caps.has_data_path(self.qp_type) {
            Ok(())
        } else {
            Err(PostErrorKind::NoDataPath { qp_type: self.qp_type })
        }
    }

    /// Follows a change that the device has made.
    fn modified(&mut self, record: &spec::QpAttr) {
        let mask = QpAttrBit(record.mask());
        if mask.contains(QpAttrBit::PORT) {
            self.port = record.port();
        }
        if !mask.contains(QpAttrBit::STATE) {
            return;
        }
        if let Ok(state) = QpState::try_from(record.qp_state()) {
            self.state = state;
            if state == QpState::Reset {
                self.sq.clear();
                self.rq.clear();
            }
        }
    }

    fn check_send(&self, wr: &SendWr, caps: &crate::regs::DeviceCaps) -> std::result::Result<(), PostErrorKind> {
        self.check_type(caps)?;
        if matches!(self.state, QpState::Reset | QpState::Init | QpState::Rtr) {
            return Err(PostErrorKind::BadState { state: self.state });
        }
        use WqeOpcode::{
            AtomicCmpAndSwp, AtomicFetchAndAdd, BindMw, LocalInv, RdmaWrite, RdmaWriteWithImm, Send, SendWithImm,
            SendWithInv,
        };
        let fits_type = match self.qp_type {
            QpType::Rc | QpType::XrcIni | QpType::Dci => true,
            QpType::Uc => matches!(
                wr.opcode,
                RdmaWrite | RdmaWriteWithImm | Send | SendWithImm | SendWithInv | LocalInv | BindMw
            ),
            QpType::Ud | QpType::Gsi => matches!(wr.opcode, Send | SendWithImm),
            QpType::RawPacket => wr.opcode == Send,
            QpType::Dct | QpType::XrcTgt => false,
        };
        if !fits_type || !caps.supports_opcode(wr.opcode) {
            return Err(PostErrorKind::UnsupportedOpcode { opcode: wr.opcode });
        }
        if let Some(data) = &wr.inline_data {
            let max = self.cap.max_inline_data as usize;
            if data.len() > max {
                return Err(PostErrorKind::InlineTooLong { given: data.len(), max });
            }
        } else if wr.sges.len() > self.cap.max_send_sge as usize {
            return Err(PostErrorKind::TooManySges {
                given: wr.sges.len(),
                max: self.cap.max_send_sge as usize,
            });
        }
        if matches!(wr.opcode, AtomicCmpAndSwp | AtomicFetchAndAdd) {
            let bytes = wr.sges.iter().map(|s| u64::from(s.length)).sum();
            if wr.sges.len() != 1 || bytes < ATOMIC_BYTES || wr.inline_data.is_some() {
                return Err(PostErrorKind::AtomicResult {
                    sges: wr.sges.len(),
                    bytes,
                });
            }
        }
        if self.sq.is_full() {
            return Err(PostErrorKind::Full {
                capacity: self.sq.capacity(),
            });
        }
        Ok(())
    }

    fn check_recv(&self, wr: &RecvWr, caps: &crate::regs::DeviceCaps) -> std::result::Result<(), PostErrorKind> {
        if let Some(srq) = self.srq {
            return Err(PostErrorKind::SharedQueue { srq });
        }
        self.check_type(caps)?;
        if self.state == QpState::Reset {
            return Err(PostErrorKind::BadState { state: self.state });
        }
        if wr.sges.len() > self.cap.max_recv_sge as usize {
            return Err(PostErrorKind::TooManySges {
                given: wr.sges.len(),
                max: self.cap.max_recv_sge as usize,
            });
        }
        if self.rq.is_full() {
            return Err(PostErrorKind::Full {
                capacity: self.rq.capacity(),
            });
        }
        Ok(())
    }
}

pub(crate) fn put_sges(bytes: &mut [u8], at: usize, sges: &[Sge]) {
    for (i, sge) in sges.iter().enumerate() {
        let raw = spec::Sge::new()
            .with_addr(sge.addr.0)
            .with_length(sge.length)
            .with_lkey(sge.lkey.0);
        if let Some(place) = bytes.get_mut(at + 16 * i..at + 16 * i + 16) {
            place.copy_from_slice(raw.as_bytes());
        }
    }
}

/// The WQE of a checked request, `stride` bytes long.
fn send_wqe(wr: &SendWr, stride: usize) -> Vec<u8> {
    if matches!(wr.opcode, WqeOpcode::LocalInv | WqeOpcode::RegMr | WqeOpcode::BindMw) {
        return key_wqe(wr, stride);
    }
    let inline = wr.inline_data.as_deref();
    let imm = match wr.opcode {
        WqeOpcode::SendWithInv => wr.imm,
        _ => u32::from_le_bytes(wr.imm.to_be_bytes()),
    };
    let head = SqWqe::new()
        .with_opcode(wr.opcode.into())
        .with_signaled(wr.signaled)
        .with_solicited(wr.solicited)
        .with_fence(wr.fence)
        .with_inline_data(inline.is_some())
        .with_num_sge(if inline.is_some() { 0 } else { wr.sges.len() as u8 })
        .with_imm(imm)
        .with_remote_va(wr.remote_addr.0)
        .with_rkey(wr.rkey.0)
        .with_inline_length(inline.map_or(0, |d| d.len() as u32))
        .with_swap_add(wr.atomic.1);
    let mut bytes = head.as_bytes().to_vec();
    bytes.resize(stride.max(SqWqe::BYTES), 0);
    match inline {
        Some(data) => {
            if let Some(place) = bytes.get_mut(SQ_HEADER..SQ_HEADER + data.len()) {
                place.copy_from_slice(data);
            }
        }
        None => put_sges(&mut bytes, SQ_HEADER, &wr.sges),
    }
    if matches!(wr.opcode, WqeOpcode::AtomicCmpAndSwp | WqeOpcode::AtomicFetchAndAdd)
        && let Some(place) = bytes.get_mut(48..56)
    {
        place.copy_from_slice(&wr.atomic.0.to_le_bytes());
    }
    bytes
}

/// The WQE of an operation on a memory key.
fn key_wqe(wr: &SendWr, stride: usize) -> Vec<u8> {
    let mut wqe = SqWqeMr::new()
        .with_opcode(wr.opcode.into())
        .with_signaled(wr.signaled)
        .with_fence(wr.fence)
        .with_rkey(wr.rkey.0);
    if let Some(named) = &wr.named {
        wqe = wqe
            .with_va(named.addr.0)
            .with_host_addr(named.host_addr)
            .with_length(named.length)
            .with_lkey(named.lkey.0)
            .with_page_offset(named.page_offset)
            .with_access(named.access.0 as u8)
            .with_log_page(named.log_page);
    }
    let mut bytes = wqe.as_bytes().to_vec();
    bytes.resize(stride.max(SqWqe::BYTES), 0);
    bytes
}

/// The receive WQE of a checked request, `stride` bytes long.
fn recv_wqe(wr: &RecvWr, stride: usize) -> Vec<u8> {
    let mut bytes = RqWqe::new().with_num_sge(wr.sges.len() as u8).as_bytes().to_vec();
    bytes.resize(stride.max(RqWqe::BYTES), 0);
    put_sges(&mut bytes, RQ_HEADER, &wr.sges);
    bytes
}
