// SPDX-License-Identifier: Apache-2.0
//! Random command sequences through `rnic_qp` and the reference model: creates, installs, transitions, queries and
//! destroys of single QPs, ranges, lists and records; good ones and all kinds of bad ones; error and drained
//! reports in the middle of batches; a slow host. After every command completion, host memory, references,
//! told changes and the whole table must be the model's.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use openrnic_testbench::model::gate::{Attrs, State, Type, attr, edge};
use openrnic_testbench::model::qp::{Command, Op, Params, QpEngine, Status, flag};
use openrnic_testbench::qp_bench::{BASE, Manners, QpBench, Random, RawChange, RawCompletion, Report};

const LIST: u64 = BASE + 0x8000;
const ATTR: u64 = BASE + 0x4000;

fn seed() -> u64 {
    let seed = std::env::var("OPENRNIC_SEED")
        .ok()
        .and_then(|s| s.parse().ok())
        .unwrap_or(1);
    println!("OPENRNIC_SEED={seed}");
    seed
}

struct Stimulus {
    rng: Random,
    /// The type that most commands of this stretch are about.
    favourite: Type,
}

impl Stimulus {
    fn command(&mut self, model: &QpEngine, bench: &mut QpBench) -> Command {
        let alive = model.qpns();
        let room = (model.len() - 2).saturating_sub(alive.len());
        match self.rng.below(100) {
            0..20 => self.create(model, bench, room),
            20..75 if !alive.is_empty() => self.modify(model, bench, &alive),
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
                self.targets(model, bench, &alive, &mut cmd);
                cmd
            }
            _ => self.create(model, bench, room),
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

    fn create(&mut self, model: &QpEngine, bench: &mut QpBench, room: usize) -> Command {
        let r = &mut self.rng;
        let most = if r.chance(1, 3) { room as u64 + 1 } else { 6 };
        let coarsest = if r.chance(1, 8) { 16 } else { 5 };
        let mut cmd = Command {
            op: if r.chance(1, 2) { Op::Install } else { Op::Create },
            flags: if r.chance(1, 2) { flag::SIG_ALL } else { 0 },
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
            bench.host.write(ATTR, &request.to_bytes());
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
    fn targets(&mut self, model: &QpEngine, bench: &mut QpBench, alive: &[u32], cmd: &mut Command) -> Vec<u32> {
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
                for (i, qpn) in list.iter().enumerate() {
                    bench.host.write(cmd.list_addr + 4 * i as u64, &qpn.to_le_bytes());
                }
                list
            }
        }
    }

    fn modify(&mut self, model: &QpEngine, bench: &mut QpBench, alive: &[u32]) -> Command {
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
        let targets = self.targets(model, bench, &group, &mut cmd);
        let about = |qpn: u32| {
            let qp = model.entry(model.find(qpn).or(model.find(group[0])).unwrap());
            (Type::from_code(qp.qp_type).unwrap(), qp.state, qp.attrs.port)
        };
        let (t, state, port) = about(targets[0]);
        if targets.len() <= 64 && self.rng.chance(1, 3) {
            cmd.flags |= flag::RECORDS;
            let mut to = self.goal(t, state);
            for (k, qpn) in targets.iter().enumerate() {
                let (t, state, port) = about(*qpn);
                if self.rng.chance(1, 10) {
                    to = self.goal(t, state);
                }
                let request = self.request_to(t, state, to, port, 300);
                bench.host.write(cmd.attr_addr + 64 * k as u64, &request.to_bytes());
            }
        } else {
            let request = self.request(t, state, port);
            bench.host.write(cmd.attr_addr, &request.to_bytes());
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
    fn reports(&mut self, model: &QpEngine, n: u64) -> Vec<Report> {
        let mut reports: BTreeMap<u32, Report> = BTreeMap::new();
        for _ in 0..n {
            let at_rest: Vec<u32> = (0..model.len() as u32).filter(|i| model.entry(*i).draining).collect();
            let index = if !at_rest.is_empty() && self.rng.chance(1, 2) {
                *self.rng.pick(&at_rest)
            } else {
                self.rng.below(model.len() as u64) as u32
            };
            let qp = model.entry(index);
            let epoch = if self.rng.chance(1, 6) {
                qp.epoch.wrapping_sub(1).max(1)
            } else {
                qp.epoch
            };
            let after = 1 + self.rng.below(60);
            let report = if qp.state == State::Sqd && self.rng.chance(2, 3) {
                Report::Drained { after, index, epoch }
            } else {
                Report::Error {
                    after,
                    source: self.rng.below(3) as usize,
                    index,
                    epoch,
                    to_sqe: self.rng.chance(1, 2),
                }
            };
            reports.insert(index, report);
        }
        // One report a cycle and port.
        let mut taken = std::collections::BTreeSet::new();
        reports
            .into_values()
            .filter(|r| match r {
                Report::Error { after, source, .. } => taken.insert((*after, *source)),
                Report::Drained { after, .. } => taken.insert((*after, 9)),
            })
            .collect()
    }
}

fn run(data_width: u32, log_table: u32, gen_bits: u32, commands: u32) {
    let seed = seed();
    let mut model = QpEngine::new(Params {
        log_table,
        gen_bits,
        ..Params::default()
    });
    model.pds = [3, 255].into();
    model.cqs = [0, 5, 200].into();
    model.limits.pkeys = [0xffff, 0, 0x8001, 0, 0, 0, 0, 0];
    let mut bench = QpBench::new(data_width, log_table, gen_bits);
    model.srqs = [0, 9, 63].into();
    model.xrcds = [3, 15].into();
    bench.configure(model.pds.clone(), model.cqs.clone(), &model.limits);
    bench.share(model.srqs.clone(), model.xrcds.clone());
    bench.seed(seed);
    let mut s = Stimulus {
        rng: Random::new(seed ^ u64::from(data_width) << 32),
        favourite: Type::Rc,
    };
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    for n in 0..commands {
        if n % 40 == 0 {
            s.favourite = *s.rng.pick(&[
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
            bench.manners = Manners {
                read_latency: *s.rng.pick(&[0, 0, 20, 200]),
                drain_latency: *s.rng.pick(&[1, 30]),
                stall_one_in: *s.rng.pick(&[0, 2, 5]),
                busy_readers: s.rng.chance(1, 2),
            };
        }
        if n % 250 == 249 {
            bench.reset();
            model.reset();
        }
        let cmd = s.command(&model, &mut bench);
        if s.rng.chance(1, 25) {
            let addr = if s.rng.chance(1, 2) {
                cmd.attr_addr
            } else {
                cmd.list_addr + 4 * s.rng.below(u64::from(cmd.count))
            };
            bench.host.break_at(addr, 1);
        }
        let mut memory = bench.host.clone();
        let before = model.clone();
        let outcome = model.execute(&cmd, &memory);
        let few = if s.rng.chance(1, 3) { s.rng.below(8) } else { 0 };
        // Reports are about the lives before the command or after it.
        let reports = if s.rng.chance(1, 2) {
            s.reports(&before, few)
        } else {
            s.reports(&model, few)
        };
        for (addr, bytes) in &outcome.writes {
            memory.write(*addr, bytes);
        }
        let barriers = bench.barriers;
        bench.events.clear();
        let (completion, _) = bench.run_with(&cmd, &reports);
        let told = bench.changes.clone();

        let context = format!("command {n} of seed {seed}: {cmd:?}");
        assert_eq!(completion, RawCompletion::from(outcome.completion), "{context}");
        assert_eq!(
            told,
            outcome.changes.iter().map(|c| RawChange::from(*c)).collect::<Vec<_>>(),
            "{context}"
        );
        assert!(bench.host == memory, "host memory after {context}");
        assert_eq!(bench.barriers - barriers, u32::from(outcome.drained), "{context}");
        let mut refs: Vec<_> = outcome
            .refs
            .iter()
            .map(|r| (r.n, r.pd, r.send_cq.unwrap_or(0xffff), r.recv_cq.unwrap_or(0xffff)))
            .collect();
        let mut got_refs = bench.refs.clone();
        refs.sort_unstable();
        got_refs.sort_unstable();
        assert_eq!(got_refs, refs, "{context}");
        let mut shared: Vec<_> = outcome.refs.iter().map(|r| (r.in_xrcd, r.srq)).collect();
        let mut got_shared = bench.shared.clone();
        shared.sort_unstable();
        got_shared.sort_unstable();
        assert_eq!(got_shared, shared, "{context}");

        // Then the reports take effect.
        let mut expected = Vec::new();
        let mut events = Vec::new();
        for r in &reports {
            match *r {
                Report::Error {
                    index, epoch, to_sqe, ..
                } => expected.extend(model.hardware_error(index, epoch, to_sqe)),
                Report::Drained { index, epoch, .. } => {
                    if let Some((change, event)) = model.drained(index, epoch) {
                        expected.push(change);
                        if event {
                            events.push(model.qpn(index));
                        }
                    }
                }
            }
        }
        for _ in 0..8 + 6 * reports.len() {
            bench.cycle();
        }
        let mut expected: Vec<RawChange> = expected.into_iter().map(RawChange::from).collect();
        let mut late = bench.changes[told.len()..].to_vec();
        expected.sort_unstable();
        late.sort_unstable();
        assert_eq!(late, expected, "reports {reports:?} in {context}");
        bench.events.sort_unstable();
        events.sort_unstable();
        assert_eq!(bench.events, events, "events in {context}");
        bench.check_table(&model, &context);
        bench.host.mend();
        let what = match outcome.completion.status {
            Status::GateRefused => format!("{:?} refused by rule {}", cmd.op, outcome.completion.rule),
            status => format!("{:?} {status:?}", cmd.op),
        };
        *seen.entry(what).or_default() += 1;
        *seen
            .entry(format!("count {}", outcome.completion.count.min(9).next_power_of_two()))
            .or_default() += 1;
        for qpn in model.qpns() {
            *seen.entry(format!("{:?}", model.state(qpn).unwrap())).or_default() += 1;
        }
        if !outcome.changes.is_empty() && !reports.is_empty() {
            *seen.entry("batch with reports".into()).or_default() += 1;
        }
        *seen.entry("event".into()).or_default() += events.len() as u32;
    }
    println!("{seen:#?}");
    for must in [
        "Create Ok",
        "Install Ok",
        "Modify Ok",
        "Query Ok",
        "Destroy Ok",
        "Modify BadHandle",
        "Modify Duplicate",
        "Modify DmaError",
        "Modify ReservedSet",
        "Create NoResources",
        "Create BadParam",
        "Modify refused by rule 1",
        "Modify refused by rule 2",
        "Modify refused by rule 3",
        "Modify refused by rule 4",
        "Modify refused by rule 5",
        "Modify refused by rule 6",
        "count 16",
        "batch with reports",
        "event",
        "Init",
        "Rtr",
        "Rts",
        "Sqd",
        "Sqe",
        "Err",
    ] {
        assert!(seen.get(must).is_some_and(|n| *n > 0), "the run has not seen: {must}");
    }
}

#[test]
fn random_commands_do_what_the_model_does_64_bits() {
    run(64, 6, 3, 6000);
}

#[test]
fn random_commands_do_what_the_model_does_512_bits() {
    run(512, 6, 3, 6000);
}
