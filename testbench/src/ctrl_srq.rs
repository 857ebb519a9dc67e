// SPDX-License-Identifier: Apache-2.0
//! Shared receive queues and XRC domains on the bench of the control block: their commands, and the block that holds the
//! queues, played here.
#![allow(clippy::indexing_slicing)]

use openrnic_sim::model::BlockModel;

use crate::ctrl_bench::Cmd;

/// Shared receive queues in the benches.
pub const NUM_SRQ: u32 = 8;
/// WQEs that wait in each queue of the bench.
pub const LEFT: u16 = 0x1234;

impl Cmd {
    /// CREATE_SRQ.
    pub fn create_srq(pd: u32, uar: u8, log_size: u8, log_stride: u8, base: u64) -> Self {
        Self::new(0x30, 0)
            .with(8, &(pd as u16).to_le_bytes())
            .with(10, &[uar, log_size | log_stride << 4])
            .with(16, &base.to_le_bytes())
    }

    /// DESTROY_SRQ.
    pub fn destroy_srq(srq: u32) -> Self {
        Self::new(0x31, srq)
    }

    /// MODIFY_SRQ.
    pub fn modify_srq(srq: u32, limit: u16) -> Self {
        Self::new(0x32, srq).with(12, &limit.to_le_bytes())
    }

    /// QUERY_SRQ.
    pub fn query_srq(srq: u32) -> Self {
        Self::new(0x33, srq)
    }

    /// CREATE_XRCD.
    pub fn create_xrcd() -> Self {
        Self::new(0x38, 0)
    }

    /// DESTROY_XRCD.
    pub fn destroy_xrcd(xrcd: u32) -> Self {
        Self::new(0x39, xrcd)
    }
}

/// A queue as the control block made it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Made {
    pub pd: u16,
    pub uar: u8,
    pub log_size: u8,
    pub log_stride: u8,
    pub base: u64,
    pub limit: u16,
}

/// The block that holds the queues.
#[derive(Debug, Clone)]
pub struct SrqSide {
    /// What exists.
    pub made: [Option<Made>; NUM_SRQ as usize],
    /// Cycles that a set or a limit waits.
    pub delay: u32,
    waited: u32,
    seen: usize,
    pds: [u16; NUM_SRQ as usize],
}

impl Default for SrqSide {
    fn default() -> Self {
        Self {
            made: [None; NUM_SRQ as usize],
            delay: 0,
            waited: 0,
            seen: 0,
            pds: [0; NUM_SRQ as usize],
        }
    }
}

impl SrqSide {
    /// Inputs of a cycle.
    pub fn show(&mut self, dut: &mut BlockModel) {
        let valid = self.made.iter().rev().fold(0, |v, m| v << 1 | u64::from(m.is_some()));
        dut.set("srq_valid_i", valid);
        dut.set("srq_pd_i", u64::from(self.pds[self.seen]));
        dut.set(
            "srq_cur_limit_i",
            self.made[self.seen].map_or(0xdead, |m| u64::from(m.limit)),
        );
        dut.set("srq_left_i", u64::from(LEFT));
        let ready = u64::from(self.waited >= self.delay);
        dut.set("srq_set_ready_i", ready);
        dut.set("srq_limit_ready_i", ready);
    }

    /// What the block did in it.
    ///
    /// # Panics
    /// When it breaks its contract.
    pub fn look(&mut self, dut: &BlockModel) {
        let n = dut.get("srq_idx_o") as usize;
        let [set, limit, clr] = ["srq_set_valid_o", "srq_limit_valid_o", "srq_clr_o"].map(|p| dut.get(p) == 1);
        assert!(
            u8::from(set) + u8::from(limit) + u8::from(clr) <= 1,
            "one command at a time"
        );
        let fires = self.waited >= self.delay;
        self.waited = if (set || limit) && !fires { self.waited + 1 } else { 0 };
        if set && fires {
            let field = |lsb, width| dut.get_bits("srq_cfg_o", lsb, width);
            assert_eq!(self.made[n], None, "a queue that exists is not made again");
            self.pds[n] = field(80, 16) as u16;
            self.made[n] = Some(Made {
                pd: self.pds[n],
                uar: field(72, 8) as u8,
                log_size: field(68, 4) as u8,
                log_stride: field(64, 4) as u8,
                base: field(0, 64),
                limit: 0,
            });
        }
        if limit
            && fires
            && let Some(made) = &mut self.made[n]
        {
            made.limit = dut.get("srq_limit_o") as u16;
        }
        if clr {
            self.made[n] = None;
        }
        self.seen = n % NUM_SRQ as usize;
    }
}
