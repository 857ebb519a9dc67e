// SPDX-License-Identifier: Apache-2.0
//! Shared receive queues on the responder's bench: what a driver keeps of one, its commands and doorbells.
#![allow(clippy::unwrap_used, clippy::missing_panics_doc)]

use crate::recv_bench::{MEM_BASE, RecvBench, Sge};

/// A shared receive queue as its driver sees it: free slots in the order in which they will be posted.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct Srq {
    pub number: u16,
    pub pd: u16,
    pub uar: u8,
    pub log_size: u8,
    pub log_stride: u8,
    pub base: u64,
    /// Free slots, the first is posted next. The last one stays free.
    pub free: Vec<u16>,
    /// WQEs posted since it was created.
    pub producer: u16,
}

impl Srq {
    /// A queue of `1 << log_size` slots at `base`.
    pub fn new(number: u16, base: u64, log_size: u8) -> Self {
        Self {
            number,
            pd: 7,
            uar: 3,
            log_size,
            log_stride: 1,
            base,
            free: (0..1 << log_size).collect(),
            producer: 0,
        }
    }

    /// Bus address of a slot.
    pub fn slot(&self, slot: u16) -> u64 {
        self.base + (u64::from(slot) << (5 + self.log_stride))
    }
}

/// What the block tells of a queue: PD, limit, WQEs that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Look {
    pub pd: u16,
    pub limit: u16,
    pub left: u16,
}

impl RecvBench {
    /// Creates a shared receive queue.
    pub fn srq_create(&mut self, srq: &Srq) {
        let (pd, uar) = (u128::from(srq.pd), u128::from(srq.uar));
        let sizes = u128::from(srq.log_size) << 4 | u128::from(srq.log_stride);
        let cfg = pd << 80 | uar << 72 | sizes << 64 | u128::from(srq.base);
        let words: Vec<u32> = (0..3).map(|i| (cfg >> (32 * i)) as u32).collect();
        self.dut.set_wide("srq_cfg_i", &words);
        self.srq_command(srq.number, "srq_set");
    }

    /// Sets the limit of a queue.
    pub fn srq_limit(&mut self, number: u16, limit: u16) {
        self.dut.set("srq_limit_i", u64::from(limit));
        self.srq_command(number, "srq_limit");
    }

    fn srq_command(&mut self, number: u16, name: &str) {
        self.dut.set("srq_idx_i", u64::from(number));
        // What is known of the queue is looked up first.
        self.run(2);
        self.dut.set(&format!("{name}_valid_i"), 1);
        for _ in 0..1000 {
            self.cycle();
            if self.dut.sampled(&format!("{name}_ready_o")) == 1 {
                self.dut.set(&format!("{name}_valid_i"), 0);
                return;
            }
        }
        panic!("{name} is not taken");
    }

    /// Destroys a queue.
    pub fn srq_destroy(&mut self, number: u16) {
        self.dut.set("srq_idx_i", u64::from(number));
        self.dut.set("srq_clr_i", 1);
        self.cycle();
        self.dut.set("srq_clr_i", 0);
    }

    /// What the block tells of a queue.
    pub fn srq_look(&mut self, number: u16) -> Look {
        self.dut.set("srq_idx_i", u64::from(number));
        self.run(2);
        let get = |port| self.dut.sampled(port) as u16;
        Look {
            pd: get("srq_pd_o"),
            limit: get("srq_cur_limit_o"),
            left: get("srq_left_o"),
        }
    }

    /// A doorbell as it comes from a page.
    pub fn srq_doorbell(&mut self, uar: u8, number: u32, producer: u16) {
        let db = u128::from(uar) << 64 | u128::from(producer) << 32 | u128::from(number);
        let words: Vec<u32> = (0..3).map(|i| (db >> (32 * i)) as u32).collect();
        self.dut.set_wide("srq_db_i", &words);
        self.dut.set("srq_db_valid_i", 1);
        self.cycle();
        self.dut.set("srq_db_valid_i", 0);
        self.run(3);
    }

    /// Writes a WQE into a slot.
    pub fn srq_write(&mut self, srq: &Srq, slot: u16, next: u16, num_sge: u8, sges: &[Sge]) {
        let stride = 32usize << srq.log_stride;
        let at = (srq.slot(slot) - MEM_BASE) as usize;
        let mut wqe = vec![0u8; stride];
        wqe[0] = num_sge;
        wqe[2..4].copy_from_slice(&next.to_le_bytes());
        for (i, sge) in sges.iter().enumerate() {
            let e = &mut wqe[16 + 16 * i..32 + 16 * i];
            e[..8].copy_from_slice(&sge.addr.to_le_bytes());
            e[8..12].copy_from_slice(&sge.len.to_le_bytes());
            e[12..].copy_from_slice(&sge.lkey.to_le_bytes());
        }
        self.mem[at..at + stride].copy_from_slice(&wqe);
    }

    /// Posts a WQE and rings; returns its slot.
    pub fn srq_post(&mut self, srq: &mut Srq, sges: &[Sge]) -> u16 {
        self.srq_post_raw(srq, sges.len() as u8, sges)
    }

    /// As [`srq_post`](Self::srq_post), with any number of elements named.
    pub fn srq_post_raw(&mut self, srq: &mut Srq, num_sge: u8, sges: &[Sge]) -> u16 {
        assert!(srq.free.len() > 1, "one slot stays free");
        let slot = srq.free.remove(0);
        self.srq_write(srq, slot, srq.free[0], num_sge, sges);
        srq.producer = srq.producer.wrapping_add(1);
        self.srq_doorbell(srq.uar, u32::from(srq.number), srq.producer);
        slot
    }
}
