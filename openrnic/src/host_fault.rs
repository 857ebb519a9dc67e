// SPDX-License-Identifier: Apache-2.0
//! Step `host_fault`: the host fails reads of the device that are still to come.

use anyhow::{Result, anyhow, ensure};
use openrnic_sim::pcie::{CompletionFault, Which};
use serde::Deserialize;
use toml::Spanned;

use crate::run::Run;
use crate::value::QpRef;

/// How a read can fail.
pub const FAULTS: [&str; 6] = ["unsupported", "abort", "poison", "drop", "drop_last", "delay"];
/// The rings of a queue pair.
pub const QUEUES: [&str; 2] = ["send", "recv"];

/// Step `host_fault`: which reads of a NIC fail, and how. One of `mr`, `qp` with `queue`, `commands` and `nth`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostFault {
    /// NIC whose host it is.
    pub nic: Spanned<String>,
    /// One of [`FAULTS`].
    pub fault: Spanned<String>,
    /// Reads that touch this region.
    #[serde(default)]
    pub mr: Option<Spanned<String>>,
    /// From this byte of it on.
    #[serde(default)]
    pub offset: usize,
    /// So many bytes; by default up to its end.
    #[serde(default)]
    pub bytes: Option<usize>,
    /// Reads of this queue pair's work requests.
    #[serde(default)]
    pub qp: Option<Spanned<QpRef>>,
    /// One of [`QUEUES`].
    #[serde(default)]
    pub queue: Option<Spanned<String>>,
    /// Reads of the command ring.
    #[serde(default)]
    pub commands: bool,
    /// The n-th read from now on, whatever it is, counted from 0.
    #[serde(default)]
    pub nth: Option<u64>,
    /// How many reads; by default 1.
    #[serde(default)]
    pub count: Option<u64>,
    /// Of `delay`: that much later.
    #[serde(default)]
    pub delay_ns: Option<u64>,
}

impl HostFault {
    /// What is wrong with the step, apart from names.
    pub fn mistake(&self) -> Option<String> {
        let targets = [self.mr.is_some(), self.qp.is_some(), self.commands, self.nth.is_some()];
        let given = targets.iter().filter(|t| **t).count();
        if given != 1 {
            return Some("give one of `mr`, `qp` (with `queue`), `commands = true` and `nth`".into());
        }
        if self.qp.is_some() != self.queue.is_some() {
            return Some("`qp` and `queue` go together".into());
        }
        if (self.fault.get_ref() == "delay") != self.delay_ns.is_some() {
            return Some("`delay` and `delay_ns` go together".into());
        }
        if self.nth.is_some() && self.count.is_some() {
            return Some("`nth` is one read: `count` does not go with it".into());
        }
        None
    }
}

impl Run<'_> {
    pub(crate) fn host_fault(&mut self, nic: usize, f: &HostFault) -> Result<()> {
        let fault = match f.fault.get_ref().as_str() {
            "unsupported" => CompletionFault::Unsupported,
            "abort" => CompletionFault::Abort,
            "poison" => CompletionFault::Poison,
            "drop" => CompletionFault::Drop,
            "drop_last" => CompletionFault::DropLast,
            _ => CompletionFault::Delay(f.delay_ns.unwrap_or(0)),
        };
        let times = f.count.unwrap_or(1);
        let which = if let Some(nth) = f.nth {
            Which::Nth(nth)
        } else {
            let (start, len) = self.faulty_range(nic, f)?;
            Which::Range { start, len, times }
        };
        self.sim.host_fault(nic, which, fault)
    }

    fn faulty_range(&mut self, nic: usize, f: &HostFault) -> Result<(u64, u64)> {
        if let Some(mr) = &f.mr {
            let mr = self.mr(mr.get_ref())?;
            let bytes = f.bytes.unwrap_or(mr.length().saturating_sub(f.offset));
            return Ok((mr.bus_addr(f.offset)?, bytes as u64));
        }
        if let Some(qp) = &f.qp {
            let qps = self.qps(qp.get_ref())?;
            ensure!(qps.len() == 1, "`{}` names {} queue pairs", qp.get_ref(), qps.len());
            let init = qps[0].query()?.init;
            let recv = f.queue.as_ref().is_some_and(|q| q.get_ref() == "recv");
            return Ok(if recv {
                (init.rq_base(), 32 << (init.log_rq() + init.log_rq_stride()))
            } else {
                (init.sq_base(), 64 << (init.log_sq() + init.log_sq_stride()))
            });
        }
        let registers = self.nics[nic].device.registers()?;
        let register = |name: &str| {
            let found = registers.iter().find(|(n, _)| n == name);
            found
                .map(|r| r.1)
                .ok_or_else(|| anyhow!("the device has no register {name}"))
        };
        Ok((register("CMD.RING_BASE")?, 64 << register("CMD.LOG_SIZE")?))
    }
}
