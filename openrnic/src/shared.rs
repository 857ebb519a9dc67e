// SPDX-License-Identifier: Apache-2.0
//! Shared receive queues in scenarios: the tables, and what their steps do.

use anyhow::{Context, Result, anyhow, ensure};
use openrnic_driver::{RecvWr, SharedReceiveQueue, SrqInit, Srqn, XrcdHandle};
use serde::Deserialize;
use toml::Spanned;

use crate::run::{Run, expect_post, expect_status};
use crate::scenario::{Piece, table};
use crate::value::Named;
use crate::world::SimBus;

table! {
    /// `[[srq]]`: a shared receive queue, there from the start.
    SrqDef {
        /// Its name.
        name: Spanned<String>,
        /// NIC.
        nic: Spanned<String>,
        /// Protection domain of its receives; by default the NIC's own.
        #[serde(default)]
        pd: Option<Spanned<String>>,
        /// Receives that can be posted; rounded up to one less than a power of two.
        max_wr: Spanned<u32>,
        /// SGEs of each; by default 4.
        #[serde(default)]
        max_sge: Option<Spanned<u32>>,
        /// Doorbell page.
        #[serde(default)]
        page: Option<u8>,
    }
}

table! {
    /// Step `post_srq`: receives for whoever needs them.
    PostSrq {
        /// Which queue.
        srq: Spanned<String>,
        /// Where the message goes.
        #[serde(default)]
        sg: Vec<Piece>,
        /// How many of them; by default 1.
        #[serde(default)]
        count: Option<Spanned<u32>>,
        /// The post must fail: `"full"` or `"sges"`.
        #[serde(default)]
        fails: Option<Spanned<String>>,
    }
}

table! {
    /// Step `srq_limit`: asks for SRQ_LIMIT_REACHED.
    SrqLimit {
        /// Which queue.
        srq: Spanned<String>,
        /// Raised once when fewer receives than this wait; 0: no longer.
        limit: u16,
    }
}

table! {
    /// Step `expect_srq`: what the device says of a queue.
    ExpectSrq {
        /// Which queue.
        srq: Spanned<String>,
        /// Receives that nobody has taken.
        #[serde(default)]
        waiting: Option<u32>,
        /// Limit; 0 after its event.
        #[serde(default)]
        limit: Option<u16>,
    }
}

table! {
    /// Step `destroy_srq`.
    DestroySrq {
        /// Which queue.
        srq: Spanned<String>,
        /// The status with which the command must fail.
        #[serde(default)]
        fails: Option<Named<openrnic_spec::CmdStatus>>,
    }
}

impl Run<'_> {
    /// Creates the queues of the scenario: of all NICs, or of one that was reset.
    pub(crate) fn make_srqs(&mut self, of: Option<usize>) -> Result<()> {
        let s = self.s;
        for def in s.doc.srq.iter().map(Spanned::get_ref) {
            let nic = self.nic(def.nic.get_ref())?;
            if of.is_some_and(|of| of != nic) {
                continue;
            }
            let pd = self.pd(def.pd.as_ref().map(|p| p.get_ref().as_str()), nic)?;
            let init = SrqInit {
                max_wr: *def.max_wr.get_ref(),
                max_sge: def.max_sge.as_ref().map_or(4, |n| *n.get_ref()),
                uar: def.page.unwrap_or(0),
            };
            let name = def.name.get_ref();
            let made = pd
                .create_srq(&init)
                .with_context(|| format!("shared receive queue `{name}`"))?;
            self.srqs.insert(name.clone(), (nic, made));
        }
        Ok(())
    }

    fn srq(&self, name: &Spanned<String>) -> Result<&SharedReceiveQueue<SimBus>> {
        let srq = self.srqs.get(name.get_ref()).map(|(_, srq)| srq);
        srq.ok_or_else(|| anyhow!("there is no shared receive queue `{}` (any more)", name.get_ref()))
    }

    pub(crate) fn srqn(&self, name: &Option<Spanned<String>>) -> Result<Option<Srqn>> {
        name.as_ref()
            .map(|name| self.srq(name).map(SharedReceiveQueue::srqn))
            .transpose()
    }

    /// The XRC domain of a NIC, which is made when the first target needs it.
    pub(crate) fn xrcd(&mut self, nic: usize) -> Result<XrcdHandle> {
        if let Some(xrcd) = self.xrcds.get(&nic) {
            return Ok(xrcd.handle());
        }
        let xrcd = self.nics[nic].device.alloc_xrcd()?;
        let handle = xrcd.handle();
        self.xrcds.insert(nic, xrcd);
        Ok(handle)
    }

    /// A NIC was reset: what it shared is gone.
    pub(crate) fn forget_shared(&mut self, nic: usize) {
        self.srqs.retain(|_, (its, _)| *its != nic);
        self.xrcds.remove(&nic);
    }

    pub(crate) fn post_srq(&mut self, p: &PostSrq) -> Result<()> {
        let sges = self.pieces(&p.sg)?;
        let count = p.count.as_ref().map_or(1, |c| *c.get_ref());
        let first = self.next_wr;
        self.next_wr += u64::from(count);
        let list: Vec<RecvWr> = (first..self.next_wr)
            .map(|wr_id| RecvWr {
                wr_id,
                sges: sges.clone(),
            })
            .collect();
        let outcome = self.srq(&p.srq)?.post_recv(&list);
        expect_post(outcome, p.fails.as_ref().map(|f| f.get_ref().as_str()))
    }

    pub(crate) fn srq_limit(&mut self, l: &SrqLimit) -> Result<()> {
        Ok(self.srq(&l.srq)?.set_limit(l.limit)?)
    }

    pub(crate) fn expect_srq(&mut self, e: &ExpectSrq) -> Result<()> {
        let attr = self.srq(&e.srq)?.query()?;
        let name = e.srq.get_ref();
        if let Some(waiting) = e.waiting {
            ensure!(
                attr.waiting == waiting,
                "expected {waiting} receives to wait in `{name}`, there are {}",
                attr.waiting
            );
        }
        if let Some(limit) = e.limit {
            ensure!(
                attr.limit == limit,
                "expected the limit {limit} at `{name}`, it is {}",
                attr.limit
            );
        }
        Ok(())
    }

    pub(crate) fn destroy_srq(&mut self, d: &DestroySrq) -> Result<()> {
        let outcome = self.srq(&d.srq)?.destroy();
        let gone = outcome.is_ok();
        expect_status(outcome, d.fails.map(|f| f.0))?;
        if gone {
            self.srqs.remove(d.srq.get_ref());
        }
        Ok(())
    }
}
