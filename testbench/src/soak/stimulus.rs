// SPDX-License-Identifier: Apache-2.0
//! Random commands for `rnic_qp`: creates, installs, transitions, queries, lists and destroys of single QPs, ranges, lists and
//! records; good ones and all kinds of bad ones; unreadable host memory; error and drained reports in the middle of
//! batches; resets; a slow host.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use super::{Call, Said, Step, What, place};
use crate::model::gate::{Attrs, State, Type, attr, edge};
use crate::model::qp::{Command, Op, QpEngine, flag};
use crate::qp_bench::{BASE, Host, Manners, PROMPT, Random};

const LIST: u64 = BASE + 0x8000;
const ATTR: u64 = BASE + 0x4000;

/// Random commands from one seed.
#[derive(Debug)]
pub struct Stimulus {
    rng: Random,
    /// The type that most commands of this stretch are about.
    favourite: Type,
    commands: u64,
}

impl Stimulus {
    /// A stream of its own per seed.
    pub fn new(seed: u64) -> Self {
        Self {
            rng: Random::new(seed),
            favourite: Type::Rc,
            commands: 0,
        }
    }

    /// The steps up to and with the next command, as the model stands and for what is in the host's memory.
    pub fn next(&mut self, model: &QpEngine, host: &Host) -> Vec<Step> {
        let mut steps = Vec::new();
        let n = self.commands;
        self.commands += 1;
        if n.is_multiple_of(40) {
            self.favourite = *self.rng.pick(&[
                Type::Rc,
                Type::Rc,
                Type::Ud,
                Type::Ud,
                Type::Uc,
                Type::Uc,
                Type::Gsi,
                Type::XrcIni,
                Type::XrcTgt,
                Type::RawPacket,
                Type::Dci,
                Type::Dct,
            ]);
            steps.push(Step::Manners(Manners {
                read_latency: *self.rng.pick(&[0, 0, 20, 200]),
                drain_latency: *self.rng.pick(&[1, 30]),
                stall_one_in: *self.rng.pick(&[0, 2, 5]),
                busy_readers: self.rng.chance(1, 2),
                ..PROMPT
            }));
        }
        let mut blank = None;
        if n % 250 == 249 {
            steps.push(Step::Reset);
            let reset = blank.insert(model.clone());
            reset.reset();
        }
        let model = blank.as_ref().unwrap_or(model);
        let mut call = Call::new(Command::new(Op::Query));
        call.cmd = self.command(model, &mut call);
        let cmd = call.cmd;
        if self.rng.chance(1, 25) {
            call.broken = Some(if self.rng.chance(1, 2) {
                cmd.attr_addr
            } else {
                cmd.list_addr + 4 * self.rng.below(u64::from(cmd.count))
            });
        }
        let few = if self.rng.chance(1, 3) { self.rng.below(8) } else { 0 };
        // Reports are about the lives before the command or after it.
        let earlier = self.rng.chance(1, 2);
        if few > 0 {
            call.reports = if earlier {
                self.reports(model, true, few)
            } else {
                let mut memory = host.clone();
                place(&mut memory, &call);
                let mut after = model.clone();
                after.execute(&cmd, &memory);
                self.reports(&after, false, few)
            };
        }
        steps.push(Step::Command(Box::new(call)));
        steps
    }

    fn command(&mut self, model: &QpEngine, call: &mut Call) -> Command {
        let alive = model.qpns();
        let room = (model.len() - 2).saturating_sub(alive.len());
        match self.rng.below(100) {
            0..20 => self.create(model, call, room),
            20..75 if !alive.is_empty() => self.modify(model, call, &alive),
            75..82 if !alive.is_empty() => {
                let handle = self.handle(&alive);
                Command {
                    handle,
                    attr_addr: BASE + 0x2000,
                    ..Command::new(Op::Query)
                }
            }
            90..95 => self.list(model),
            82..90 if !alive.is_empty() => {
                let mut cmd = Command::new(Op::Destroy);
                self.targets(model, call, &alive, &mut cmd);
                cmd
            }
            _ => self.create(model, call, room),
        }
    }

    /// All, or by state, type and PD; from anywhere in the table; sometimes with something wrong.
    fn list(&mut self, model: &QpEngine) -> Command {
        let r = &mut self.rng;
        let size = model.len() as u64;
        let mut cmd = Command {
            handle: if r.chance(1, 2) { 0 } else { r.below(size) as u32 },
            count: if r.chance(1, 2) { size } else { 1 + r.below(size) } as u32,
            by_state: r.chance(1, 3).then(|| r.below(7) as u8),
            by_type: r.chance(1, 3),
            by_pd: r.chance(1, 3),
            qp_type: self.favourite as u8,
            pd: *r.pick(&[3, 255]),
            list_addr: LIST + 64 * r.below(4),
            ..Command::new(Op::List)
        };
        match r.below(40) {
            0 => cmd.handle = size as u32,
            1 => cmd.count = size as u32 + 1,
            2 => cmd.by_state = Some(7),
            3 => (cmd.by_type, cmd.qp_type) = (true, r.below(16) as u8),
            4 => cmd.list_addr += 4,
            _ => {}
        }
        cmd
    }

    fn create(&mut self, model: &QpEngine, call: &mut Call, room: usize) -> Command {
        let r = &mut self.rng;
        let most = if r.chance(1, 3) { room as u64 + 1 } else { 6 };
        let coarsest = if r.chance(1, 8) { 16 } else { 5 };
        let mut cmd = Command {
            op: if r.chance(1, 2) { Op::Install } else { Op::Create },
            flags: if r.chance(1, 2) { flag::SIG_ALL } else { flag::FAST_REG },
            count: 1 + r.below(most) as u32,
            qp_type: if r.chance(9, 10) {
                self.favourite
            } else {
                *r.pick(&Type::ALL)
            } as u8,
            pd: *r.pick(&[3, 255]),
            send_cq: *r.pick(&[0, 5, 200]),
            recv_cq: *r.pick(&[0, 5, 200]),
            uar: r.below(32) as u8,
            log_sq: r.below(16) as u8,
            log_rq: r.below(16) as u8,
            log_sq_stride: r.below(5) as u8,
            log_rq_stride: r.below(5) as u8,
            sq_base: r.bits() & !63,
            rq_base: r.bits() & !63,
            sq_pitch: r.bits() as u32 & !63,
            rq_pitch: r.bits() as u32 & !63,
            list_addr: LIST + 64 * r.below(4),
            ..Command::new(Op::Create)
        };
        match r.below(6) {
            0 | 1 => {
                cmd.flags |= flag::CONTIGUOUS;
                cmd.align_log2 = r.below(coarsest) as u8;
            }
            2 => {
                cmd.flags |= flag::REQUESTED;
                cmd.count = 1;
                cmd.handle = if cmd.qp_type == Type::Gsi as u8 {
                    1
                } else {
                    r.below(16 * model.len() as u64) as u32
                };
                if r.chance(1, 2) {
                    cmd.list_addr = 0;
                }
            }
            _ => {}
        }
        match Type::from_code(cmd.qp_type) {
            Some(Type::XrcTgt) => cmd.pd = *r.pick(&[3, 15]),
            Some(t @ (Type::Rc | Type::Uc | Type::Ud | Type::Dct)) if t == Type::Dct || r.chance(1, 3) => {
                cmd.flags |= flag::USE_SRQ;
                cmd.srq = *r.pick(&[0, 9, 63]);
                cmd.rq_base = r.bits();
                cmd.rq_pitch = r.bits() as u32;
                cmd.log_rq_stride = r.below(16) as u8;
            }
            _ => {}
        }
        if cmd.op == Op::Install {
            cmd.attr_addr = ATTR;
            let t = Type::from_code(cmd.qp_type).unwrap();
            let request = self.request(t, State::Reset, 1);
            call.records = vec![request];
        }
        // Sometimes something is wrong.
        let r = &mut self.rng;
        if r.chance(1, 8) {
            match r.below(11) {
                10 => cmd.srq = r.below(80) as u16,
                0 => cmd.count = 0,
                1 => cmd.count = model.len() as u32 + r.below(3) as u32,
                2 => cmd.qp_type = r.below(16) as u8,
                3 => cmd.pd = r.below(300) as u16,
                4 => cmd.send_cq = r.below(300) as u16,
                5 => cmd.uar = r.below(256) as u8,
                6 => cmd.flags |= 1 << r.below(8),
                7 => cmd.list_addr = LIST + 4 * r.below(64),
                8 => cmd.sq_pitch = r.bits() as u32,
                _ => cmd.log_sq_stride = r.below(16) as u8,
            }
        }
        cmd
    }

    /// A handle, mostly of a QP that is there.
    fn handle(&mut self, alive: &[u32]) -> u32 {
        let qpn = *self.rng.pick(alive);
        if self.rng.chance(1, 16) {
            qpn ^ 1 << self.rng.below(26)
        } else {
            qpn
        }
    }

    /// Fills in which QPs: one, a range or a list. Returns them as far as they exist.
    fn targets(&mut self, model: &QpEngine, call: &mut Call, alive: &[u32], cmd: &mut Command) -> Vec<u32> {
        match self.rng.below(4) {
            0 => {
                cmd.handle = self.handle(alive);
                vec![cmd.handle]
            }
            1 => {
                cmd.handle = self.handle(alive);
                // As far as the numbers run on, and sometimes one too far.
                let beyond = u64::from(self.rng.chance(1, 8));
                let run = (0..)
                    .take_while(|i| model.find(cmd.handle.wrapping_add(*i)).is_some())
                    .count() as u64;
                cmd.count = 1 + self.rng.below(run + beyond) as u32;
                (0..cmd.count).map(|i| cmd.handle.wrapping_add(i)).collect()
            }
            _ => {
                let mut list: Vec<u32> = alive.to_vec();
                // Shuffle, cut, and sometimes spoil.
                for i in (1..list.len()).rev() {
                    list.swap(i, self.rng.below(i as u64 + 1) as usize);
                }
                let most = if self.rng.chance(1, 3) { list.len() as u64 } else { 8 };
                list.truncate(1 + self.rng.below(most) as usize);
                if self.rng.chance(1, 8) {
                    let (a, b) = (
                        self.rng.below(list.len() as u64) as usize,
                        self.rng.below(list.len() as u64) as usize,
                    );
                    list[a] = list[b];
                }
                if self.rng.chance(1, 8) {
                    let a = self.rng.below(list.len() as u64) as usize;
                    list[a] ^= 1 << self.rng.below(32);
                }
                cmd.flags |= flag::LIST;
                cmd.count = list.len() as u32;
                cmd.list_addr = LIST + 64 * self.rng.below(4);
                call.list.clone_from(&list);
                list
            }
        }
    }

    fn modify(&mut self, model: &QpEngine, call: &mut Call, alive: &[u32]) -> Command {
        let mut cmd = Command {
            attr_addr: ATTR + 64 * self.rng.below(4),
            ..Command::new(Op::Modify)
        };
        // Of QPs in one state, so that a batch has a chance.
        let mut by_state: BTreeMap<(u8, u8), Vec<u32>> = BTreeMap::new();
        for qpn in alive {
            let qp = model.entry(model.find(*qpn).unwrap());
            by_state.entry((qp.qp_type, qp.state as u8)).or_default().push(*qpn);
        }
        let groups: Vec<Vec<u32>> = by_state.into_values().collect();
        let group = if self.rng.chance(9, 10) {
            self.rng.pick(&groups).clone()
        } else {
            alive.to_vec()
        };
        let targets = self.targets(model, call, &group, &mut cmd);
        let about = |qpn: u32| {
            let qp = model.entry(model.find(qpn).or(model.find(group[0])).unwrap());
            (Type::from_code(qp.qp_type).unwrap(), qp.state, qp.attrs.port)
        };
        let (t, state, port) = about(targets[0]);
        if targets.len() <= 64 && self.rng.chance(1, 3) {
            cmd.flags |= flag::RECORDS;
            let mut to = self.goal(t, state);
            for qpn in &targets {
                let (t, state, port) = about(*qpn);
                if self.rng.chance(1, 10) {
                    to = self.goal(t, state);
                }
                let request = self.request_to(t, state, to, port, 300);
                call.records.push(request);
            }
        } else {
            let request = self.request(t, state, port);
            call.records = vec![request];
        }
        if self.rng.chance(1, 60) {
            cmd.count += 1;
        }
        cmd
    }

    /// Where to go from there; mostly onwards.
    fn goal(&mut self, t: Type, from: State) -> State {
        let legal: Vec<State> = State::ALL
            .into_iter()
            .filter(|to| edge(t, from, *to).is_some())
            .collect();
        let onwards: Vec<State> = legal
            .iter()
            .copied()
            .filter(|to| !matches!(to, State::Reset | State::Err))
            .collect();
        match self.rng.below(20) {
            0 => *self.rng.pick(&State::ALL),
            1..3 if !legal.is_empty() => *self.rng.pick(&legal),
            _ if !onwards.is_empty() => *self.rng.pick(&onwards),
            _ => State::Reset,
        }
    }

    fn request(&mut self, t: Type, from: State, port: u8) -> Attrs {
        let to = self.goal(t, from);
        self.request_to(t, from, to, port, 5)
    }

    /// A request that is wrong once in so many.
    fn request_to(&mut self, t: Type, from: State, to: State, port: u8, wrong_one_in: u64) -> Attrs {
        let r = &mut self.rng;
        let wild = r.attrs();
        let way = edge(t, from, to).map_or((r.bits() as u32, 0), |e| (e.required, e.optional & !attr::ALT_PATH));
        let mut a = Attrs {
            mask: attr::STATE | way.0 | way.1 & r.bits() as u32,
            qp_state: to as u8,
            cur_qp_state: from as u8,
            ..wild
        };
        let wrong = if r.chance(1, wrong_one_in) { r.below(9) } else { 99 };
        match wrong {
            0 | 1 => a.mask ^= 1 << r.below(32),
            2 => a.cur_qp_state = r.below(8) as u8,
            3 => a.reserved = true,
            _ => {}
        }
        if wrong != 4 {
            // In range; else as it comes.
            a.pkey_index = 0;
            a.port = 1;
            a.av_port = if a.has(attr::PORT) { 1 } else { port };
            a.path_mtu = a.path_mtu.clamp(1, 5);
            a.timeout &= 31;
            a.retry_cnt &= 7;
            a.rnr_retry &= 7;
            a.min_rnr_timer &= 31;
            a.max_rd_atomic &= 15;
            a.max_dest_rd_atomic &= 15;
            a.rq_psn &= 0xff_ffff;
            a.sq_psn &= 0xff_ffff;
            a.dest_qpn &= 0xff_ffff;
            a.path_mig_state &= 1;
            a.sgid_index &= 15;
            a.is_global = true;
        }
        match wrong {
            5 => a.pkey_index = r.below(9) as u16,
            6 => a.timeout = r.bits() as u8,
            7 => a.dest_qpn = r.bits() as u32,
            8 => a.sq_psn = r.bits() as u32,
            _ => {}
        }
        a
    }

    /// Reports that the data path makes while a command runs: at most one per source and QP, and either
    /// an error or a drained mark for a QP.
    fn reports(&mut self, model: &QpEngine, earlier: bool, n: u64) -> Vec<Said> {
        let mut reports: BTreeMap<u32, Said> = BTreeMap::new();
        for _ in 0..n {
            let at_rest: Vec<u32> = (0..model.len() as u32).filter(|i| model.entry(*i).draining).collect();
            let index = if !at_rest.is_empty() && self.rng.chance(1, 2) {
                *self.rng.pick(&at_rest)
            } else {
                self.rng.below(model.len() as u64) as u32
            };
            let qp = model.entry(index);
            let late = self.rng.chance(1, 6);
            let after = 1 + self.rng.below(60);
            let what = if qp.state == State::Sqd && self.rng.chance(2, 3) {
                What::Drained
            } else {
                What::Error {
                    source: self.rng.below(3) as usize,
                    to_sqe: self.rng.chance(1, 2),
                }
            };
            let said = Said {
                after,
                index,
                earlier,
                late,
                what,
            };
            reports.insert(index, said);
        }
        // One report a cycle and port.
        let mut taken = std::collections::BTreeSet::new();
        reports
            .into_values()
            .filter(|r| match r.what {
                What::Error { source, .. } => taken.insert((r.after, source)),
                What::Drained => taken.insert((r.after, 9)),
            })
            .collect()
    }
}
