// SPDX-License-Identifier: Apache-2.0
//! Traffic both ways between one QP of each end of a [`Pair`], on completion queues of its own: a WRITE, a SEND and a
//! READ of each end, every byte of the regions checked, those around included. It shows that the rest of a device
//! goes on while a test does something to one part of it.

use openrnic_driver::spec::{Mtu, QpState, WcStatus};
use openrnic_driver::{CompletionQueue, CqInit, MemoryRegion, QpAttr, QueuePair, RecvWr, SendWr, attr};
use openrnic_sim::NicBus;

use crate::e2e::{Fail, Pair, all_access};

/// Bytes of each message.
pub const LEN: u32 = 3000;
const SPAN: usize = 16_000;
/// Where in the destination WRITE, SEND and READ put their bytes.
const PLACES: [usize; 3] = [101, 5003, 10_006];
/// Where in the source they come from.
const FROM: [usize; 3] = [7, 4001, 9002];
const GUARD: u8 = 0xa7;

/// A byte pattern that differs from place to place and seed to seed.
pub fn pattern(seed: u64) -> impl Fn(usize) -> u8 {
    move |i| {
        ((i as u64)
            .wrapping_mul(2_654_435_761)
            .wrapping_add(seed.wrapping_mul(40_503))
            >> 7) as u8
    }
}

/// One connected pair of QPs with all that its traffic needs.
pub struct Flow {
    /// The QPs.
    pub qps: [QueuePair<NicBus>; 2],
    cqs: [CompletionQueue<NicBus>; 2],
    src: [MemoryRegion<NicBus>; 2],
    dst: [MemoryRegion<NicBus>; 2],
    seed: u64,
}

impl Flow {
    /// Makes the objects and connects the QPs.
    ///
    /// # Errors
    /// As the driver says.
    pub fn new(pair: &Pair, mtu: Mtu, seed: u64) -> Result<Self, Fail> {
        let cq = |n: usize| pair.ends[n].device.create_cq(&CqInit::entries(64));
        let cqs = [cq(0)?, cq(1)?];
        let qp = |n: usize| -> Result<QueuePair<NicBus>, Fail> {
            let mut init = pair.ends[n].qp_init();
            (init.send_cq, init.recv_cq) = (cqs[n].cqn(), cqs[n].cqn());
            let qp = pair.ends[n].pd.create_qp(&init)?;
            let to_init = QpAttr {
                qp_state: QpState::Init,
                ..QpAttr::default()
            };
            qp.modify(&to_init, attr::INIT_MASK)?;
            Ok(qp)
        };
        let qps = [qp(0)?, qp(1)?];
        pair.connect([&qps[0], &qps[1]], mtu, [0xff_fff0, 0x1234])?;
        let src = |n: usize| pair.ends[n].region(SPAN, all_access(), pattern(seed + n as u64));
        let dst = |n: usize| pair.ends[n].region(SPAN, all_access(), |_| GUARD);
        Ok(Self {
            qps,
            cqs,
            src: [src(0)?, src(1)?],
            dst: [dst(0)?, dst(1)?],
            seed,
        })
    }

    /// Posts a receive, a WRITE, a SEND and a READ on each end.
    ///
    /// # Errors
    /// As the driver says.
    pub fn post(&self) -> Result<(), Fail> {
        for n in 0..2 {
            self.dst[n].write(0, &[GUARD; SPAN])?;
            let sges = vec![self.dst[n].sge(PLACES[1], LEN)];
            self.qps[n].post_recv(&[RecvWr { wr_id: 40, sges }])?;
        }
        for n in 0..2 {
            let (src, dst) = (&self.src, &self.dst);
            let to = dst[1 - n].sge(PLACES[0], 1).addr;
            let from = src[1 - n].sge(FROM[2], 1).addr;
            self.qps[n].post_send(&[
                SendWr::write(41, vec![src[n].sge(FROM[0], LEN)], to, dst[1 - n].rkey()),
                SendWr::send(42, vec![src[n].sge(FROM[1], LEN)]),
                SendWr::read(43, vec![dst[n].sge(PLACES[2], LEN)], from, src[1 - n].rkey()),
            ])?;
        }
        Ok(())
    }

    /// Waits until all that [`Self::post`] posted is done, within `cycles`, and looks at every byte.
    ///
    /// # Errors
    /// As the driver says, and what is wrong.
    pub fn finish(&self, cycles: u64) -> Result<(), Fail> {
        for n in 0..2 {
            let mut done = self.cqs[n].wait(4, cycles)?;
            done.sort_by_key(|wc| wc.wr_id);
            let got: Vec<_> = done.iter().map(|wc| (wc.wr_id, wc.status)).collect();
            if got != [40, 41, 42, 43].map(|id| (id, WcStatus::Success)) {
                return Err(format!("end {n}: {got:?}").into());
            }
        }
        for n in 0..2 {
            let (own, other) = (self.seed + n as u64, self.seed + 1 - n as u64);
            let mut want = vec![GUARD; SPAN];
            for (place, from) in PLACES.into_iter().zip(FROM) {
                for i in 0..LEN as usize {
                    want[place + i] = pattern(other)(from + i);
                }
            }
            let got = self.dst[n].read(0, SPAN)?;
            if let Some(at) = (0..SPAN).find(|i| got[*i] != want[*i]) {
                return Err(format!("end {n}: byte {at} is {:#x}, not {:#x}", got[at], want[at]).into());
            }
            let got = self.src[n].read(0, SPAN)?;
            if let Some(at) = (0..SPAN).find(|i| got[*i] != pattern(own)(*i)) {
                return Err(format!("end {n}: byte {at} of the source has changed").into());
            }
        }
        Ok(())
    }

    /// Both.
    ///
    /// # Errors
    /// As both.
    pub fn round(&self, cycles: u64) -> Result<(), Fail> {
        self.post()?;
        self.finish(cycles)
    }
}
