// SPDX-License-Identifier: Apache-2.0
//! Objects of an episode: regions, shared receive queues, queue pairs and their connections.

use super::*;

impl Episode {
    /// A region, in the device and in the model; `pages`: of pages that lie anywhere, beginning at this place in the first one.
    pub(super) fn region(
        &mut self,
        rng: &mut Stream,
        end: usize,
        len: usize,
        rights: u8,
        pages: Option<usize>,
        kind: MrKind,
    ) -> Outcomes<(Mr, Area)> {
        let pages = pages.map(|offset| Pages {
            offset,
            scatter: rng.bits(),
            ..Pages::default()
        });
        let iova = if rng.chance(0.5) {
            None
        } else {
            Some(Iova(rng.bits() >> 8 & !7))
        };
        let init = MrInit {
            iova,
            pages,
            key: rng.bits() as u8,
            kind,
            ..MrInit::new(len, Access(u32::from(rights)))
        };
        let mr = self.pair.ends[end].pd.register(&init).map_err(bench)?;
        let bytes: Vec<u8> = (0..len).map(|_| rng.bits() as u8).collect();
        mr.write(0, &bytes).map_err(bench)?;
        let area = Area {
            key: mr.rkey().0,
            base: mr.iova().0,
            len,
        };
        self.memory[end].add(Region {
            key: area.key,
            base: area.base,
            rights,
            fast: kind == MrKind::FastReg,
            bytes,
        });
        Ok((mr, area))
    }

    /// A region that stays, in one piece or of pages.
    pub(super) fn lasting(&mut self, rng: &mut Stream, end: usize, len: usize, rights: u8) -> Outcomes<(Mr, Area)> {
        let pages = rng.chance(0.3).then(|| rng.below(512) as usize * 8);
        self.region(rng, end, len, rights, pages, MrKind::Region)
    }

    pub(super) fn make_shared(&mut self, end: usize) -> Outcomes<Shared> {
        let mut rng = Stream::new(self.setup.seed, "transport shared", end as u64);
        let (region, area) = self.lasting(&mut rng, end, 63 * LONGEST, right::LOCAL_WRITE)?;
        let srq = self.pair.ends[end]
            .pd
            .create_srq(&SrqInit {
                max_wr: 63,
                max_sge: 2,
                uar: 0,
            })
            .map_err(bench)?;
        Ok(Shared {
            srq,
            region,
            area,
            free: (0..63).collect(),
            waiting: BTreeMap::new(),
            late: VecDeque::new(),
        })
    }

    pub(super) fn make_slot(&mut self, number: u64) -> Outcomes<Slot> {
        let mut rng = Stream::new(self.setup.seed, "transport slot", number);
        let both = right::LOCAL_WRITE | right::REMOTE_WRITE | right::REMOTE_READ | right::REMOTE_ATOMIC;
        let mut regions = Vec::new();
        let mut places = Vec::new();
        for end in 0..2 {
            let (own, own_area) = self.lasting(&mut rng, end, SPAN, right::LOCAL_WRITE)?;
            let (window, window_area) = self.lasting(&mut rng, end, SPAN, both)?;
            regions.push([own, window]);
            places.push(Places {
                own: own_area,
                window: window_area,
            });
        }
        // Few of them: a queue is no longer than what waits in it.
        let shared = [0, 1].map(|end: usize| self.shared[end].is_some() && number < 4 && rng.chance(0.7));
        let (qps, configs) = self.connect(number, 0, shared)?;
        let backing = [self.make_backing(number, 0)?, self.make_backing(number, 1)?];
        let (Ok(regions), Ok(places)) = (<[[Mr; 2]; 2]>::try_from(regions), <[Places; 2]>::try_from(places)) else {
            return Err(Difference::new("bench", "two ends have two regions each"));
        };
        Ok(Slot {
            number,
            life: 0,
            qps,
            configs,
            places,
            regions,
            backing,
            handles: Default::default(),
            keys: Default::default(),
            shared,
            plan: Plan::default(),
            outcomes: Default::default(),
            to_send: Default::default(),
            late: Default::default(),
            sent: [0; 2],
            received: [0; 2],
            receives_used: [0, 0],
            void: false,
        })
    }

    /// A new pair of queue pairs, known to the judge.
    pub(super) fn connect(&mut self, number: u64, life: u64, shared: [bool; 2]) -> Outcomes<([Qp; 2], [QpConfig; 2])> {
        let mut rng = Stream::new(self.setup.seed ^ life << 40, "transport connection", number);
        let mtu = rng.below(5) as usize;
        let max = [1, 2, 4, 8][rng.below(4) as usize];
        // Patient where many wait.
        let timeout = if self.setup.connections.len() > 12 { 6 } else { 5 };
        let v6 = rng.chance(0.35) && self.setup.v6;
        let mut configs = [0, 1].map(|_| {
            let all = right::REMOTE_WRITE | right::REMOTE_READ | right::REMOTE_ATOMIC;
            QpConfig {
                qpn: 0,
                mtu: 256 << mtu,
                sq_psn: if rng.chance(0.4) {
                    0xff_ffff - rng.below(60) as u32
                } else {
                    rng.bits() as u32 & 0xff_ffff
                },
                timeout: timeout + rng.below(2) as u8,
                retry_cnt: 7,
                rnr_retry: if rng.chance(0.3) { 1 + rng.below(3) as u8 } else { 7 },
                min_rnr_timer: 1 + rng.below(10) as u8,
                max_rd_atomic: max,
                rights: if rng.chance(0.25) {
                    all & !(2 << rng.below(3))
                } else {
                    all
                },
                v6,
            }
        });
        if shared[0] || shared[1] {
            // Who else takes from the queue is not known.
            for c in &mut configs {
                c.rnr_retry = 7;
            }
        }
        let mut qps = Vec::new();
        for end in 0..2 {
            let e = &self.pair.ends[end];
            let mut init = e.qp_init();
            // The right to post REG_MR.
            init.fast_reg = self.setup.keys;
            init.cap = QpCap {
                max_send_wr: 32,
                max_recv_wr: 32,
                max_send_sge: 4,
                max_recv_sge: 4,
                max_inline_data: 64,
            };
            init.srq = self.shared[end].as_ref().filter(|_| shared[end]).map(|s| s.srq.srqn());
            let qp = e.pd.create_qp(&init).map_err(bench)?;
            configs[end].qpn = qp.qpn().0;
            qps.push(qp);
        }
        let Ok(qps) = <[Qp; 2]>::try_from(qps) else {
            return Err(Difference::new("bench", "two ends have one queue pair each"));
        };
        for end in 0..2 {
            let (own, peer) = (&configs[end], &configs[1 - end]);
            let other = &self.pair.ends[1 - end];
            let to_init = QpAttr {
                qp_state: QpState::Init,
                access_flags: Access(u32::from(own.rights)),
                ..QpAttr::default()
            };
            let rtr = QpAttr {
                qp_state: QpState::Rtr,
                av: AddressVector {
                    dgid: if v6 { self.v6_gids[1 - end] } else { other.gid },
                    sgid_index: if v6 { V6_GID as u8 } else { 0 },
                    dmac: Some(other.mac),
                    ..AddressVector::default()
                },
                path_mtu: MTUS[mtu],
                dest_qpn: qps[1 - end].qpn(),
                rq_psn: Psn::new(peer.sq_psn),
                max_dest_rd_atomic: 16,
                min_rnr_timer: own.min_rnr_timer,
                ..QpAttr::default()
            };
            let rts = QpAttr {
                qp_state: QpState::Rts,
                sq_psn: Psn::new(own.sq_psn),
                timeout: own.timeout,
                retry_cnt: own.retry_cnt,
                rnr_retry: own.rnr_retry,
                max_rd_atomic: own.max_rd_atomic,
                ..QpAttr::default()
            };
            for (attr, mask) in [(to_init, attr::INIT_MASK), (rtr, attr::RTR_MASK), (rts, attr::RTS_MASK)] {
                qps[end].modify(&attr, mask).map_err(bench)?;
            }
        }
        self.judge.borrow_mut().connect(number as usize, configs, shared);
        let version = if v6 {
            "connections over IPv6"
        } else {
            "connections over IPv4"
        };
        self.report.add(version, 1);
        Ok((qps, configs))
    }
}
