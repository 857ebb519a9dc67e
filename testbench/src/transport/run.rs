// SPDX-License-Identifier: Apache-2.0
//! Carries an episode out: two RTL NICs with their drivers, random hosts and a random wire, many connections, rounds of work. After
//! each round, when everything is quiet, memories, completions, events, states and counters must be those of the model.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::rc::Rc;

use openrnic_driver::spec::{Access, CounterId, MrKind, Mtu, QpState, WqeOpcode};
use openrnic_driver::{
    AddressVector, CompletionQueue, Counters as DeviceCounters, Iova, LKey, MemoryRegion, MrInit, OpenParams, Pages,
    Psn, QpAttr, QpCap, QueuePair, RKey, RecvWr, SendWr, Sge, SharedReceiveQueue, SrqInit, WorkCompletion, attr,
};
use openrnic_sim::NicBus;
use openrnic_sim::pcie::{HostParams, Split};
use openrnic_sim::rng::Stream;
use openrnic_sim::wire::{Action, Direction as Way, FaultRates, Rule, WireParams, frame};
use serde::{Deserialize, Serialize};

use super::completions::{Direction, Outcome, ReceiveDone, Seen, SendDone};
use super::counters::{Counters, UNKNOWN};
use super::judge::{Address, Judge};
use super::memory::{Memory, Region};
use super::stimulus::{self, Area, FAST, Fault, Ground, LONGEST, Places, Plan, SPAN};
use super::{Difference, Op, Piece, QpConfig, Receive, Request, event, right, status};
use crate::e2e::{Pair, PairParams};

type Qp = QueuePair<NicBus>;
type Mr = MemoryRegion<NicBus>;

/// Everything that decides an episode.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Setup {
    /// Width of the data path in bits.
    pub data_width: usize,
    /// Seed of everything.
    pub seed: u64,
    /// Connections, by number; each does the same whichever others there are.
    pub connections: Vec<u64>,
    /// Rounds, by number.
    pub rounds: Vec<u64>,
    /// Requests of a direction in a round at most.
    pub most: usize,
    /// The wire does things to frames.
    pub bad_wire: bool,
    /// Work has faults.
    pub faults: bool,
    /// Hosts are slow and restless.
    pub rough_hosts: bool,
    /// Switches that take features out of the RTL.
    pub cuts: Vec<String>,
}

impl Setup {
    /// A whole episode.
    pub fn new(data_width: usize, seed: u64, connections: u64, rounds: u64) -> Self {
        Self {
            data_width,
            seed,
            connections: (0..connections).collect(),
            rounds: (0..rounds).collect(),
            most: usize::MAX,
            bad_wire: true,
            faults: true,
            rough_hosts: true,
            cuts: Vec::new(),
        }
    }
}

/// What an episode has seen.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Clock cycles simulated.
    pub cycles: u64,
    /// Rounds carried out.
    pub rounds: u64,
    /// By name, how often.
    pub seen: BTreeMap<String, u64>,
}

impl Report {
    fn add(&mut self, name: &str, n: u64) {
        if n > 0 {
            *self.seen.entry(name.to_owned()).or_default() += n;
        }
    }

    /// Takes another one in.
    pub fn merge(&mut self, other: &Self) {
        self.cycles += other.cycles;
        self.rounds += other.rounds;
        for (name, n) in &other.seen {
            self.add(name, *n);
        }
    }
}

/// What a run of some length must have seen, else its stimulus is too narrow, or nothing was lost.
pub const MUST: [&str; 43] = [
    "operation Send",
    "operation SendImm",
    "operation SendInv",
    "operation Write",
    "operation WriteImm",
    "operation Read",
    "operation CompareSwap",
    "operation FetchAdd",
    "fault BadKey",
    "fault Range",
    "fault RegionRight",
    "fault QueueRight",
    "fault Unaligned",
    "fault ShortReceive",
    "fault BadReceive",
    "fault BadInvalidate",
    "fault BadLocal",
    "fault NotReady",
    "fault Silence",
    "wire: frames lost",
    "wire: frames doubled",
    "wire: frames held back",
    "wire: frames changed",
    "wire: frames flagged by the MAC",
    "packets sent again",
    "gone back: told",
    "gone back: time-out",
    "responses behind a gap (implied NAK)",
    "responses that nothing waits for",
    "requests that were duplicates",
    "READs executed again",
    "atomics answered again",
    "requests out of sequence",
    "RNR NAKs",
    "NAKs sequence error",
    "NAKs invalid request",
    "NAKs remote access error",
    "NAKs remote operational error",
    "PSN wraps",
    "messages without bytes",
    "messages inline",
    "messages fenced",
    "rounds judged strictly",
];

/// One connection as the run knows it.
struct Slot {
    number: u64,
    life: u64,
    qps: [Qp; 2],
    configs: [QpConfig; 2],
    places: [Places; 2],
    fast: [Option<Mr>; 2],
    regions: [[Mr; 2]; 2],
    shared: [bool; 2],
    plan: Plan,
    outcomes: [Outcome; 2],
    to_send: [VecDeque<Request>; 2],
    late: [VecDeque<(u64, Receive)>; 2],
    receives_used: [u64; 2],
    /// It gave up for want of luck: nothing is compared.
    void: bool,
}

/// A shared receive queue of an end.
struct Shared {
    srq: SharedReceiveQueue<NicBus>,
    region: Mr,
    area: Area,
    free: Vec<usize>,
    waiting: BTreeMap<u64, Receive>,
    late: VecDeque<u64>,
}

/// An episode under way.
pub struct Episode {
    setup: Setup,
    pair: Pair,
    judge: Rc<RefCell<Judge>>,
    silent: Rc<RefCell<BTreeSet<(usize, u32)>>>,
    memory: [Memory; 2],
    slots: Vec<Slot>,
    shared: [Option<Shared>; 2],
    report: Report,
    baseline: [DeviceCounters; 2],
    rng: Stream,
}

const BUDGET: u64 = 6_000_000;
const MTUS: [Mtu; 5] = [Mtu::Mtu256, Mtu::Mtu512, Mtu::Mtu1024, Mtu::Mtu2048, Mtu::Mtu4096];

type Outcomes<T> = Result<T, Difference>;

fn bench(e: impl std::fmt::Display) -> Difference {
    Difference::new("bench", e.to_string())
}

fn host(rng: &mut Stream) -> HostParams {
    HostParams {
        read_latency_ns: 50 + rng.below(700),
        read_jitter_ns: rng.below(500),
        write_latency_ns: 20 + rng.below(300),
        write_jitter_ns: rng.below(200),
        mmio_latency_ns: 20 + rng.below(300),
        mmio_jitter_ns: rng.below(300),
        split: [Split::Never, Split::Always, Split::Random][rng.below(3) as usize],
        reorder: rng.chance(0.7),
        stall: [0.0, 0.0, 0.1, 0.3][rng.below(4) as usize],
        max_payload: [128, 256, 512][rng.below(3) as usize],
        ..HostParams::default()
    }
}

impl Episode {
    /// Brings two NICs up and connects; `capture`: where the frames go.
    ///
    /// # Errors
    /// What the devices did wrong, or why there are none.
    pub fn new(setup: &Setup, capture: Option<PathBuf>) -> Outcomes<Self> {
        let mut rng = Stream::new(setup.seed, "transport episode", 0);
        let mut params = PairParams::new(setup.data_width, setup.seed);
        let (drawn, drawn_wire) = (host(&mut rng), rng.below(2000));
        if setup.rough_hosts {
            params.host = drawn;
        }
        // A wire that is slower than the receivers, most of the time: a receiver that has no room loses frames.
        let full = setup.data_width as f64 / if setup.data_width <= 64 { 8.0 } else { 4.0 };
        let shares = if setup.data_width <= 64 {
            [0.25, 0.35, 0.5, 1.0]
        } else {
            [0.03, 0.06, 0.12, 0.5]
        };
        let share = shares[rng.below(4) as usize];
        params.wire = WireParams {
            latency_ns: 50 + drawn_wire,
            rate_gbps: Some(full * share),
            ..WireParams::default()
        };
        params.capture = capture;
        params.defines.clone_from(&setup.cuts);
        params.open = OpenParams::default();
        let pair = Pair::new(params).map_err(bench)?;
        let address = |n: usize| Address {
            mac: pair.ends[n].mac,
            ip: [10, 0, 0, n as u8 + 1],
        };
        let judge = Rc::new(RefCell::new(Judge::new([address(0), address(1)])));
        let silent: Rc<RefCell<BTreeSet<(usize, u32)>>> = Rc::default();
        {
            let mut world = pair.world.borrow_mut();
            let period = world.clk_period_ps();
            let told = judge.clone();
            world.wire().observe(move |e| {
                let now = e.cycle * period / 1000;
                let mut judge = told.borrow_mut();
                match e.direction {
                    Way::Out => judge.sent(e.nic, e.frame, now),
                    Way::In => judge.received(e.nic, e.frame, e.mac_error, now),
                }
            });
            for from in 0..2 {
                let silent = silent.clone();
                let matches =
                    move |f: &[u8]| frame::bth(f).is_some_and(|b| silent.borrow().contains(&(from, b.dest_qp())));
                world.wire().add_rule(Rule {
                    from: Some(from),
                    matches: Box::new(matches),
                    skip: 0,
                    times: u64::MAX,
                    action: Action::Drop,
                });
                let rates = FaultRates {
                    loss: rng.below(4) as f64 * 0.01,
                    duplicate: rng.below(4) as f64 * 0.01,
                    reorder: rng.below(4) as f64 * 0.01,
                    reorder_ns: 1000 + rng.below(30_000),
                    corrupt: rng.below(3) as f64 * 0.01,
                    mac_error: rng.below(3) as f64 * 0.005,
                    congestion: 0.0,
                };
                if setup.bad_wire {
                    world.wire().set_faults(from, rates).map_err(bench)?;
                }
            }
        }
        let baseline = [
            pair.ends[0].device.counters().map_err(bench)?,
            pair.ends[1].device.counters().map_err(bench)?,
        ];
        let mut episode = Self {
            setup: setup.clone(),
            judge,
            silent,
            memory: [Memory::default(), Memory::default()],
            slots: Vec::new(),
            shared: [None, None],
            report: Report::default(),
            baseline,
            rng,
            pair,
        };
        for end in 0..2 {
            if episode.rng.chance(0.35) {
                episode.shared[end] = Some(episode.make_shared(end)?);
            }
        }
        for number in setup.connections.clone() {
            let slot = episode.make_slot(number)?;
            episode.slots.push(slot);
        }
        episode.events()?;
        Ok(episode)
    }

    fn now(&self) -> u64 {
        self.pair.world.borrow().time_ns()
    }

    fn cycle(&self) -> u64 {
        self.pair.world.borrow().cycle()
    }

    fn run(&mut self, cycles: u64) -> Outcomes<()> {
        let done = self.pair.run(cycles);
        // What the judge saw first comes first.
        self.judged()?;
        done.map_err(|e| Difference::new("rtl", e.to_string()))
    }

    fn judged(&mut self) -> Outcomes<()> {
        let Some(d) = self.judge.borrow().difference.clone() else {
            return Ok(());
        };
        // Frames that a receiver had no room for arrived and were lost all the same: the judge cannot know which. Memories,
        // completions, events and states are compared in such a round as in any other.
        for end in 0..2 {
            let lost = self.pair.ends[end]
                .device
                .counter(CounterId::RxDropOverflow)
                .map_err(bench)?;
            if lost > self.baseline[end].get(CounterId::RxDropOverflow) {
                let mut judge = self.judge.borrow_mut();
                judge.difference = None;
                judge.muted = true;
                drop(judge);
                self.report.add(
                    "rounds whose frames were not judged to the end: no room at a receiver",
                    1,
                );
                return Ok(());
            }
        }
        Err(d)
    }

    // ---------------------------------------------------------------- objects

    /// A region, in the device and in the model.
    fn region(&mut self, rng: &mut Stream, end: usize, len: usize, rights: u8, fast: bool) -> Outcomes<(Mr, Area)> {
        let pages = (!fast && rng.chance(0.3)).then(|| Pages {
            offset: rng.below(512) as usize * 8,
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
            kind: if fast { MrKind::FastReg } else { MrKind::Region },
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
            fast,
            valid: true,
            bytes,
        });
        Ok((mr, area))
    }

    fn forget_region(&mut self, end: usize, mr: &Mr) -> Outcomes<()> {
        let key = mr.rkey().0;
        self.memory[end].regions.retain(|r| r.key != key);
        mr.deregister().map_err(bench)?;
        Ok(())
    }

    fn make_shared(&mut self, end: usize) -> Outcomes<Shared> {
        let mut rng = Stream::new(self.setup.seed, "transport shared", end as u64);
        let (region, area) = self.region(&mut rng, end, 63 * LONGEST, right::LOCAL_WRITE, false)?;
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

    fn make_slot(&mut self, number: u64) -> Outcomes<Slot> {
        let mut rng = Stream::new(self.setup.seed, "transport slot", number);
        let both = right::LOCAL_WRITE | right::REMOTE_WRITE | right::REMOTE_READ | right::REMOTE_ATOMIC;
        let mut regions = Vec::new();
        let mut places = Vec::new();
        for end in 0..2 {
            let (own, own_area) = self.region(&mut rng, end, SPAN, right::LOCAL_WRITE, false)?;
            let (window, window_area) = self.region(&mut rng, end, SPAN, both, false)?;
            regions.push([own, window]);
            places.push(Places {
                own: own_area,
                window: window_area,
                fast: None,
            });
        }
        // Few of them: a queue is no longer than what waits in it.
        let shared = [0, 1].map(|end: usize| self.shared[end].is_some() && number < 4 && rng.chance(0.7));
        let (qps, configs) = self.connect(number, 0, shared)?;
        let (Ok(regions), Ok(places)) = (<[[Mr; 2]; 2]>::try_from(regions), <[Places; 2]>::try_from(places)) else {
            return Err(Difference::new("bench", "two ends have two regions each"));
        };
        Ok(Slot {
            number,
            life: 0,
            qps,
            configs,
            places,
            fast: [None, None],
            regions,
            shared,
            plan: Plan::default(),
            outcomes: Default::default(),
            to_send: Default::default(),
            late: Default::default(),
            receives_used: [0, 0],
            void: false,
        })
    }

    /// A new pair of queue pairs, known to the judge.
    fn connect(&mut self, number: u64, life: u64, shared: [bool; 2]) -> Outcomes<([Qp; 2], [QpConfig; 2])> {
        let mut rng = Stream::new(self.setup.seed ^ life << 40, "transport connection", number);
        let mtu = rng.below(5) as usize;
        let max = [1, 2, 4, 8][rng.below(4) as usize];
        // Patient where many wait.
        let timeout = if self.setup.connections.len() > 12 { 6 } else { 5 };
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
                    dgid: other.gid,
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
        self.report.add("connections", 1);
        Ok((qps, configs))
    }

    // ---------------------------------------------------------------- a round

    /// All rounds.
    ///
    /// # Errors
    /// The first difference.
    pub fn all(&mut self) -> Outcomes<()> {
        for round in self.setup.rounds.clone() {
            self.round(round)?;
        }
        Ok(())
    }

    /// One round.
    ///
    /// # Errors
    /// The first difference.
    pub fn round(&mut self, round: u64) -> Outcomes<()> {
        self.prepare(round)?;
        self.post()?;
        self.wait()?;
        self.quiet()?;
        self.compare(round)?;
        self.renew()?;
        self.report.rounds += 1;
        self.report.cycles = self.cycle();
        Ok(())
    }

    /// The work of the round under way, a line for each request, for people.
    pub fn work(&self) -> Vec<String> {
        let mut out = Vec::new();
        for slot in &self.slots {
            out.push(format!(
                "connection {}: QPs {:#x} {:#x}, MTU {}, shared {:?}, fault {:?}",
                slot.number,
                slot.configs[0].qpn,
                slot.configs[1].qpn,
                slot.configs[0].mtu,
                slot.shared,
                slot.plan.fault
            ));
            for (from, work) in slot.plan.work.iter().enumerate() {
                for r in &work.requests {
                    out.push(format!(
                        "  from end {from}: {:?} of {} bytes, va {:#x}, rkey {:#x}, imm {:#x}{}{}{}, wr_id {:#x}",
                        r.op,
                        r.len(),
                        r.va,
                        r.rkey,
                        r.imm,
                        if r.fence { ", fence" } else { "" },
                        if r.signaled { "" } else { ", unsignaled" },
                        if r.inline.is_some() { ", inline" } else { "" },
                        r.wr_id
                    ));
                }
            }
        }
        out
    }

    /// Makes the capture readable up to now; that it cannot be written is for the capture's reader to see.
    pub fn flush(&self) {
        if let Err(e) = self.pair.world.borrow_mut().flush() {
            println!("capture: {e}");
        }
    }

    /// What the report says up to now.
    pub fn report(&self) -> Report {
        let mut report = self.report.clone();
        report.cycles = self.cycle();
        let mut world = self.pair.world.borrow_mut();
        for nic in 0..2 {
            let stats = world.wire().stats(nic);
            for (name, n) in [
                ("wire: frames", stats.sent),
                ("wire: frames lost", stats.dropped),
                ("wire: frames doubled", stats.duplicated),
                ("wire: frames held back", stats.delayed),
                ("wire: frames changed", stats.changed),
                ("wire: frames flagged by the MAC", stats.mac_errors),
            ] {
                report.add(name, n);
            }
        }
        report
    }

    fn prepare(&mut self, round: u64) -> Outcomes<()> {
        for at in 0..self.slots.len() {
            for end in 0..2 {
                let slot = &self.slots[at];
                if slot.fast[end].is_none() {
                    let mut rng = Stream::new(
                        self.setup.seed ^ round << 32,
                        "transport fast",
                        slot.number * 2 + end as u64,
                    );
                    if rng.chance(0.3) {
                        let rights = right::LOCAL_WRITE | right::REMOTE_WRITE;
                        let (mr, area) = self.region(&mut rng, end, FAST, rights, true)?;
                        self.slots[at].fast[end] = Some(mr);
                        self.slots[at].places[end].fast = Some(area);
                    }
                }
            }
            let slot = &mut self.slots[at];
            let mut rng = Stream::new(self.setup.seed ^ round << 32, "transport plan", slot.number);
            slot.plan = stimulus::plan(
                &mut rng,
                &Ground {
                    configs: slot.configs,
                    places: slot.places,
                    shared: slot.shared,
                    memory: &self.memory,
                    most: self.setup.most,
                    faults: self.setup.faults,
                },
            );
            for from in 0..2 {
                let to = 1 - from;
                let [first, second] = &mut self.memory;
                let (local, remote) = if from == 0 { (first, second) } else { (second, first) };
                let silence = slot.plan.fault == Some((Fault::Silence, from));
                let work = &slot.plan.work[from];
                let outcome = Direction {
                    from: slot.configs[from],
                    to: slot.configs[to],
                    local,
                    remote,
                    shared: slot.shared[to],
                    silence,
                }
                .execute(&work.requests, &work.receives);
                slot.outcomes[from] = outcome;
                slot.to_send[from] = work.requests.iter().cloned().collect();
                if silence {
                    self.silent.borrow_mut().insert((from, slot.configs[to].qpn));
                }
                for r in &work.requests {
                    self.report.add(&format!("operation {:?}", r.op), 1);
                    self.report.add("messages without bytes", u64::from(r.is_empty()));
                    self.report.add("messages inline", u64::from(r.inline.is_some()));
                    self.report.add("messages fenced", u64::from(r.fence));
                }
            }
            if let Some((fault, _)) = slot.plan.fault {
                self.report.add(&format!("fault {fault:?}"), 1);
            }
        }
        Ok(())
    }

    /// Receives, then sends of all connections in turns.
    fn post(&mut self) -> Outcomes<()> {
        for at in 0..self.slots.len() {
            for from in 0..2 {
                let work = self.slots[at].plan.work[from].clone();
                let early = work.receives.len() - work.late;
                self.post_receives(at, 1 - from, &work.receives[..early])?;
                let now = self.cycle();
                for r in &work.receives[early..] {
                    let due = now + 1000 + self.rng.below(30_000);
                    self.slots[at].late[1 - from].push_back((due, r.clone()));
                }
            }
        }
        let shared_late = self.rng.chance(0.2);
        for end in 0..2 {
            let need: u64 = self
                .slots
                .iter()
                .filter(|s| s.shared[end])
                .map(|s| s.outcomes[1 - end].receives_used)
                .sum();
            let now = self.cycle();
            let Some(shared) = &mut self.shared[end] else { continue };
            let missing = (need as usize)
                .saturating_sub(shared.waiting.len())
                .min(shared.free.len());
            let late = if shared_late {
                self.rng.below(missing as u64 + 1) as usize
            } else {
                0
            };
            shared.late = (0..late).map(|_| now + 1000 + self.rng.below(20_000)).collect();
            for _ in 0..missing - late {
                self.post_shared(end)?;
            }
        }
        self.run(1500)?;
        loop {
            let waiting: Vec<(usize, usize)> = (0..self.slots.len())
                .flat_map(|at| [(at, 0), (at, 1)])
                .filter(|(at, from)| !self.slots[*at].to_send[*from].is_empty())
                .collect();
            if waiting.is_empty() {
                return Ok(());
            }
            let (at, from) = waiting[self.rng.below(waiting.len() as u64) as usize];
            let chunk = 1 + self.rng.below(5) as usize;
            let slot = &mut self.slots[at];
            let left = slot.to_send[from].len();
            let done = slot.plan.work[from].requests.len() - left;
            let requests: Vec<Request> = slot.to_send[from].drain(..chunk.min(left)).collect();
            let fates = &slot.outcomes[from].fates[done..];
            {
                let mut judge = self.judge.borrow_mut();
                if let Some(c) = judge.connections.get_mut(&(slot.number as usize)) {
                    for (r, f) in requests.iter().zip(fates) {
                        c.flows[from].requester.post(
                            r.clone(),
                            f.payload.clone(),
                            f.result.clone(),
                            f.refusal,
                            f.local_failure,
                        );
                    }
                }
            }
            let list: Vec<SendWr> = requests.iter().map(send_wr).collect();
            slot.qps[from].post_send(&list).map_err(bench)?;
            let pause = self.rng.chance(0.3);
            if pause {
                let cycles = 1 + self.rng.below(300);
                self.run(cycles)?;
            }
            self.poll()?;
            self.post_late()?;
        }
    }

    fn post_receives(&mut self, at: usize, end: usize, receives: &[Receive]) -> Outcomes<()> {
        if receives.is_empty() {
            return Ok(());
        }
        let now = self.now();
        let slot = &self.slots[at];
        if let Some(c) = self.judge.borrow_mut().connections.get_mut(&(slot.number as usize)) {
            for _ in receives {
                c.flows[1 - end].responder.post_receive(now);
            }
        }
        let list: Vec<RecvWr> = receives.iter().map(recv_wr).collect();
        slot.qps[end].post_recv(&list).map_err(bench)
    }

    fn post_shared(&mut self, end: usize) -> Outcomes<()> {
        let wr_id = self.rng.bits() >> 1;
        let first = 1 + self.rng.below(300) as u32;
        let pick = self.rng.bits();
        let Some(shared) = &mut self.shared[end] else {
            return Ok(());
        };
        if shared.free.is_empty() {
            return Ok(());
        }
        let n = shared.free.swap_remove(pick as usize % shared.free.len());
        let addr = shared.area.base + (n * LONGEST) as u64;
        let piece = |addr, len| Piece {
            addr,
            len,
            key: shared.area.key,
        };
        let receive = Receive {
            wr_id,
            pieces: vec![
                piece(addr, first),
                piece(addr + u64::from(first), LONGEST as u32 - first),
            ],
        };
        shared.srq.post_recv(&[recv_wr(&receive)]).map_err(bench)?;
        shared.waiting.insert(wr_id, receive);
        Ok(())
    }

    fn post_late(&mut self) -> Outcomes<()> {
        let now = self.cycle();
        for at in 0..self.slots.len() {
            for end in 0..2 {
                while self.slots[at].late[end].front().is_some_and(|(due, _)| *due <= now) {
                    if let Some((_, r)) = self.slots[at].late[end].pop_front() {
                        self.report.add("receives posted late", 1);
                        self.post_receives(at, end, &[r])?;
                    }
                }
            }
        }
        for end in 0..2 {
            let due = match &mut self.shared[end] {
                Some(s) => {
                    let n = s.late.iter().filter(|d| **d <= now).count();
                    s.late.retain(|d| *d > now);
                    n
                }
                None => 0,
            };
            for _ in 0..due {
                self.report.add("receives posted late", 1);
                self.post_shared(end)?;
            }
        }
        Ok(())
    }

    /// Until everything has completed that must.
    fn wait(&mut self) -> Outcomes<()> {
        let start = self.cycle();
        loop {
            self.poll()?;
            self.post_late()?;
            let open = |s: &&Slot| {
                !s.void && s.outcomes.iter().any(|o| !o.sends.is_empty() || !o.receives.is_empty())
                    || s.late.iter().any(|l| !l.is_empty())
            };
            if !self.slots.iter().any(|s| open(&s)) {
                return Ok(());
            }
            if self.cycle() - start > BUDGET {
                let stuck: Vec<String> = self
                    .slots
                    .iter()
                    .filter(open)
                    .map(|s| {
                        format!(
                            "connection {} (QPs {:#x}, {:#x}): {:?}, {:?}",
                            s.number,
                            s.configs[0].qpn,
                            s.configs[1].qpn,
                            s.outcomes.each_ref().map(|o| o.sends.front().cloned()),
                            s.outcomes.each_ref().map(|o| o.receives.front().cloned().map(|mut r| {
                                r.data.clear();
                                r
                            })),
                        )
                    })
                    .collect();
                return Err(Difference::new("completion missing", stuck.join("; ")));
            }
            self.run(200)?;
        }
    }

    fn poll(&mut self) -> Outcomes<()> {
        for end in 0..2 {
            let (send_cq, recv_cq) = (self.pair.ends[end].send_cq.clone(), self.pair.ends[end].recv_cq.clone());
            for wc in all(&send_cq)? {
                self.send_completion(end, &wc)?;
            }
            for wc in all(&recv_cq)? {
                self.receive_completion(end, &wc)?;
            }
        }
        self.judged()
    }

    fn slot_of(&mut self, end: usize, wc: &WorkCompletion) -> Outcomes<usize> {
        let at = self.slots.iter().position(|s| s.configs[end].qpn == wc.qpn.0);
        at.ok_or_else(|| Difference::new("completion", format!("end {end}: {wc:?}: nobody has this QP")))
    }

    fn send_completion(&mut self, end: usize, wc: &WorkCompletion) -> Outcomes<()> {
        let at = self.slot_of(end, wc)?;
        self.report.add("completions", 1);
        let seen = seen(wc);
        let slot = &mut self.slots[at];
        if slot.void {
            return Ok(());
        }
        let due: Option<SendDone> = slot.outcomes[end].sends.front().cloned();
        if seen.status == status::RETRY_EXC_ERR && due.as_ref().is_none_or(|d| d.status != seen.status) {
            // Bad luck, if it really tried so often: a NAK that ends its sender is not repeated when it is lost.
            let judge = self.judge.borrow();
            let tries = judge
                .connections
                .get(&(slot.number as usize))
                .map_or(0, |c| c.flows[end].requester.most_tries);
            if tries >= u32::from(slot.configs[end].retry_cnt) {
                drop(judge);
                self.report.add("given up by bad luck", 1);
                return self.give_up(at);
            }
        }
        let Some(due) = due else {
            return Err(Difference::new(
                "send completion",
                format!("end {end}: {wc:?}: nothing is due"),
            ));
        };
        due.matches(wc.qpn.0, &seen)?;
        slot.outcomes[end].sends.pop_front();
        self.report.add(&format!("completed with status {}", seen.status), 1);
        Ok(())
    }

    fn receive_completion(&mut self, end: usize, wc: &WorkCompletion) -> Outcomes<()> {
        let at = self.slot_of(end, wc)?;
        self.report.add("completions", 1);
        let slot = &mut self.slots[at];
        let receive = match &mut self.shared[end] {
            Some(shared) if slot.shared[end] => match shared.waiting.remove(&wc.wr_id) {
                Some(r) => {
                    if let Some(p) = r.pieces.first() {
                        shared.free.push(((p.addr - shared.area.base) as usize) / LONGEST);
                    }
                    Some(r)
                }
                None => {
                    return Err(Difference::new(
                        "receive completion",
                        format!("end {end}: {wc:?}: no such receive waits in the shared queue"),
                    ));
                }
            },
            _ => None,
        };
        if slot.void {
            return Ok(());
        }
        let due: Option<ReceiveDone> = slot.outcomes[1 - end].receives.front().cloned();
        let Some(due) = due else {
            return Err(Difference::new(
                "receive completion",
                format!("end {end}: {wc:?}: nothing is due"),
            ));
        };
        due.matches(wc.qpn.0, &seen(wc))?;
        slot.outcomes[1 - end].receives.pop_front();
        if let Some(r) = receive {
            self.report.add("receives of a shared queue", 1);
            let _ = self.memory[end].scatter(&r.pieces, &due.data);
        }
        Ok(())
    }

    /// A connection whose frames were lost too often: ends it without a comparison.
    fn give_up(&mut self, at: usize) -> Outcomes<()> {
        let slot = &mut self.slots[at];
        slot.void = true;
        slot.late = Default::default();
        for outcome in &mut slot.outcomes {
            outcome.sends.clear();
            outcome.receives.clear();
        }
        for qp in &slot.qps {
            qp.to_err().map_err(bench)?;
        }
        if let Some(c) = self.judge.borrow_mut().connections.get_mut(&(slot.number as usize)) {
            for flow in &mut c.flows {
                flow.responder.silent = true;
            }
        }
        Ok(())
    }

    /// Until no frame has come for a while.
    fn quiet(&mut self) -> Outcomes<()> {
        let start = self.cycle();
        let mut frames = self.judge.borrow().frames;
        let mut since = self.cycle();
        loop {
            self.run(500)?;
            self.poll()?;
            let now = self.judge.borrow().frames;
            let idle = self.pair.world.borrow().is_idle();
            if now != frames || !idle {
                frames = now;
                since = self.cycle();
            }
            if self.cycle() - since > 3000 {
                return Ok(());
            }
            if self.cycle() - start > BUDGET {
                return Err(Difference::new(
                    "no rest",
                    "frames are sent for ever although everything has completed",
                ));
            }
        }
    }

    // ---------------------------------------------------------------- comparison

    fn compare(&mut self, round: u64) -> Outcomes<()> {
        let now = self.now();
        // Counters.
        let mut counted = Vec::new();
        for end in 0..2 {
            let all = self.pair.ends[end].device.counters().map_err(bench)?;
            counted.push(all.since(&self.baseline[end]));
            self.baseline[end] = all;
        }
        let overflow: Vec<u64> = counted.iter().map(|c| c.get(CounterId::RxDropOverflow)).collect();
        let lost_inside = overflow.iter().any(|n| *n > 0);
        let failed = self.slots.iter().any(|s| s.void || s.plan.fault.is_some());
        let muted = self.judge.borrow().muted;
        let strict = !lost_inside && !failed;
        self.report
            .add("frames for which a receiver had no room", overflow.iter().sum());
        self.report.add(
            if strict {
                "rounds judged strictly"
            } else {
                "rounds with failures"
            },
            1,
        );
        {
            let mut judge = self.judge.borrow_mut();
            let judge = &mut *judge;
            let mut losses = [0, 0];
            let mut timeouts = [0, 0];
            for slot in &self.slots {
                let Some(c) = judge.connections.get_mut(&(slot.number as usize)) else {
                    continue;
                };
                for from in 0..2 {
                    let flow = &mut c.flows[from];
                    let dead = slot.void || slot.outcomes.iter().any(|o| o.requester_fails || o.responder_fails);
                    if !lost_inside && !slot.void {
                        flow.responder.settled(&flow.requester, now)?;
                    }
                    if !dead && !muted {
                        flow.requester.settled()?;
                    }
                    losses[1 - from] += flow.responder.internal_losses;
                    timeouts[from] += flow.requester.counts.timeouts;
                    let (r, s) = (flow.requester.counts, flow.responder.counts);
                    judge.counters[from].range("RETRANSMISSIONS", 0, r.again);
                    let unsure = if s.unsure { UNKNOWN } else { 0 };
                    judge.counters[1 - from].range("RX_DUPLICATES", 0, s.duplicates + unsure);
                    judge.counters[1 - from].range("RX_OUT_OF_SEQUENCE", 0, s.ahead + unsure);
                    for (name, n) in [
                        ("packets sent again", r.again),
                        ("gone back: told", r.told),
                        ("gone back: time-out", r.timeouts),
                        ("responses behind a gap (implied NAK)", r.implied),
                        ("responses that nothing waits for", r.ghosts),
                        ("requests that were duplicates", s.duplicates),
                        ("READs executed again", s.reads_again),
                        ("atomics answered again", s.atomics_again),
                        ("requests out of sequence", s.ahead),
                    ] {
                        self.report.add(name, n);
                    }
                }
            }
            for end in 0..2 {
                if muted {
                    judge.counters[end] = Counters::default();
                    continue;
                }
                if losses[end] > overflow[end] {
                    return Err(Difference::new(
                        "request lost",
                        format!(
                            "end {end} took {} delivered requests as lost, and had no room for {}",
                            losses[end], overflow[end]
                        ),
                    ));
                }
                let read = |name: &str| {
                    counted[end]
                        .iter()
                        .find(|(id, _)| id.name() == name)
                        .map_or(0, |(_, n)| n)
                };
                judge.counters[end].matches(end, strict, read)?;
                judge.counters[end].nothing_else(end, read)?;
                if read("TIMEOUTS") < timeouts[end] {
                    return Err(Difference::new(
                        "counter",
                        format!(
                            "end {end}: TIMEOUTS is {}, and it went back {} times untold",
                            read("TIMEOUTS"),
                            timeouts[end]
                        ),
                    ));
                }
                for (name, counter) in [
                    ("RNR NAKs", "TX_RNR_NAKS"),
                    ("NAKs sequence error", "TX_NAK_PSN_SEQ"),
                    ("NAKs invalid request", "TX_NAK_INV_REQ"),
                    ("NAKs remote access error", "TX_NAK_REM_ACCESS"),
                    ("NAKs remote operational error", "TX_NAK_REM_OP"),
                    ("ACKs", "TX_ACKS"),
                ] {
                    self.report.add(name, judge.counters[end].get(counter));
                }
                judge.counters[end] = Counters::default();
            }
            for slot in &self.slots {
                if let Some(c) = judge.connections.get_mut(&(slot.number as usize)) {
                    for flow in &mut c.flows {
                        flow.requester.counts = Default::default();
                        flow.responder.counts = Default::default();
                        flow.responder.internal_losses = 0;
                    }
                }
            }
        }
        // Memory.
        for at in 0..self.slots.len() {
            let slot = &self.slots[at];
            for end in 0..2 {
                let regions: Vec<&Mr> = slot.regions[end].iter().chain(&slot.fast[end]).collect();
                for mr in regions {
                    same_memory(
                        &mut self.memory[end],
                        mr,
                        slot.void,
                        end,
                        &format!("connection {}", slot.number),
                    )?;
                }
            }
        }
        for end in 0..2 {
            if let Some(shared) = &self.shared[end] {
                let void = self.slots.iter().any(|s| s.void && s.shared[end]);
                same_memory(&mut self.memory[end], &shared.region, void, end, "the shared queue")?;
            }
        }
        // Events and states.
        let mut due: [BTreeMap<(u8, u32), u64>; 2] = Default::default();
        let mut excused = BTreeSet::new();
        for slot in &self.slots {
            for (end, due) in due.iter_mut().enumerate() {
                let qpn = slot.configs[end].qpn;
                let dead = slot.outcomes[end].requester_fails || slot.outcomes[1 - end].responder_fails;
                if slot.void {
                    excused.insert((end, qpn));
                    continue;
                }
                if let Some(event) = slot.outcomes[1 - end].event {
                    *due.entry((event, qpn)).or_default() += 1;
                }
                if dead && slot.shared[end] {
                    *due.entry((event::LAST_WQE_REACHED, qpn)).or_default() += 1;
                }
            }
        }
        let came = self.events()?;
        for (end, events) in came.into_iter().enumerate() {
            let mut got: BTreeMap<(u8, u32), u64> = BTreeMap::new();
            for e in events {
                if !excused.contains(&(end, e.1)) {
                    *got.entry(e).or_default() += 1;
                }
            }
            if got != due[end] {
                return Err(Difference::new(
                    "events",
                    format!("end {end}: {got:x?} came, {:x?} are due", due[end]),
                ));
            }
        }
        let sample = if self.slots.is_empty() {
            0
        } else {
            round as usize % self.slots.len()
        };
        for (at, slot) in self.slots.iter().enumerate() {
            for end in 0..2 {
                let dead = slot.outcomes[end].requester_fails || slot.outcomes[1 - end].responder_fails;
                if slot.void || !dead && at != sample {
                    continue;
                }
                let state = slot.qps[end].query().map_err(bench)?.state;
                let want = if dead { QpState::Err } else { QpState::Rts };
                if state != want {
                    let text = format!(
                        "QP {:#x} of end {end} is in {state:?}, not {want:?}",
                        slot.configs[end].qpn
                    );
                    return Err(Difference::new("state", text));
                }
            }
        }
        Ok(())
    }

    fn events(&self) -> Outcomes<[Vec<(u8, u32)>; 2]> {
        let of = |end: usize| -> Outcomes<Vec<(u8, u32)>> {
            Ok(self.pair.ends[end]
                .events()
                .map_err(bench)?
                .into_iter()
                .map(|(e, n)| (u8::from(e), n))
                .collect())
        };
        Ok([of(0)?, of(1)?])
    }

    /// Connections that have failed, and some that have not, are made anew; nothing is remembered of the round.
    fn renew(&mut self) -> Outcomes<()> {
        for at in 0..self.slots.len() {
            let slot = &mut self.slots[at];
            let failed = slot.void || slot.outcomes.iter().any(|o| o.requester_fails || o.responder_fails);
            for from in 0..2 {
                slot.receives_used[1 - from] += slot.outcomes[from].receives_used;
            }
            {
                let mut judge = self.judge.borrow_mut();
                if judge.muted {
                    judge.resume();
                }
                if let Some(c) = judge.connections.get_mut(&(slot.number as usize)) {
                    for from in 0..2 {
                        let wraps = c.flows[from].requester.forget();
                        self.report.add("PSN wraps", wraps);
                        c.flows[from].responder.forget(slot.receives_used[1 - from]);
                    }
                }
            }
            // A key that is gone goes.
            for end in 0..2 {
                let fast = self.slots[at].places[end].fast;
                let gone = fast.is_some_and(|a| self.memory[end].find(a.key).is_none());
                if gone || self.slots[at].void {
                    self.slots[at].places[end].fast = None;
                    if let Some(mr) = self.slots[at].fast[end].take() {
                        self.forget_region(end, &mr)?;
                    }
                }
            }
            let slot = &mut self.slots[at];
            if failed || slot.plan.renew {
                self.silent
                    .borrow_mut()
                    .retain(|(_, qpn)| !slot.configs.iter().any(|c| c.qpn == *qpn));
                for qp in &slot.qps {
                    qp.destroy().map_err(bench)?;
                }
                self.judge.borrow_mut().disconnect(slot.number as usize);
                slot.life += 1;
                let (number, life, shared) = (slot.number, slot.life, slot.shared);
                let (qps, configs) = self.connect(number, life, shared)?;
                let slot = &mut self.slots[at];
                slot.qps = qps;
                slot.configs = configs;
                slot.receives_used = [0, 0];
                slot.void = false;
            }
        }
        Ok(())
    }
}

fn all(cq: &CompletionQueue<NicBus>) -> Outcomes<Vec<WorkCompletion>> {
    cq.poll(256).map_err(bench)
}

fn same_memory(memory: &mut Memory, mr: &Mr, void: bool, end: usize, whose: &str) -> Outcomes<()> {
    let key = mr.rkey().0;
    let Some(region) = memory.regions.iter_mut().find(|r| r.key == key) else {
        return Err(Difference::new("bench", format!("no region {key:#x}")));
    };
    let got = mr.read(0, region.bytes.len()).map_err(bench)?;
    if void {
        region.bytes = got;
        return Ok(());
    }
    if got == region.bytes {
        return Ok(());
    }
    let wrong: Vec<usize> = (0..got.len()).filter(|i| got[*i] != region.bytes[*i]).collect();
    let (first, last) = (wrong[0], wrong[wrong.len() - 1]);
    Err(Difference::new(
        "memory",
        format!(
            "end {end}, {whose}, region {key:#x}: {} bytes differ, from {:#x} to {:#x}; the first is {:#04x}, not {:#04x}",
            wrong.len(),
            region.base + first as u64,
            region.base + last as u64,
            got[first],
            region.bytes[first]
        ),
    ))
}

fn seen(wc: &WorkCompletion) -> Seen {
    Seen {
        wr_id: wc.wr_id,
        status: u8::from(wc.status),
        opcode: u8::from(wc.opcode),
        len: wc.byte_len,
        imm: wc.imm,
        invalidated: wc.invalidated.map(|k| k.0),
    }
}

fn sge(p: &Piece) -> Sge {
    Sge {
        addr: Iova(p.addr),
        length: p.len,
        lkey: LKey(p.key),
    }
}

fn recv_wr(r: &Receive) -> RecvWr {
    RecvWr {
        wr_id: r.wr_id,
        sges: r.pieces.iter().map(sge).collect(),
    }
}

fn send_wr(r: &Request) -> SendWr {
    let opcode = match r.op {
        Op::Send => WqeOpcode::Send,
        Op::SendImm => WqeOpcode::SendWithImm,
        Op::SendInv => WqeOpcode::SendWithInv,
        Op::Write => WqeOpcode::RdmaWrite,
        Op::WriteImm => WqeOpcode::RdmaWriteWithImm,
        Op::Read => WqeOpcode::RdmaRead,
        Op::CompareSwap => WqeOpcode::AtomicCmpAndSwp,
        Op::FetchAdd => WqeOpcode::AtomicFetchAndAdd,
    };
    SendWr {
        inline_data: r.inline.clone(),
        signaled: r.signaled,
        solicited: r.solicited,
        fence: r.fence,
        imm: r.imm,
        remote_addr: Iova(r.va),
        rkey: RKey(r.rkey),
        atomic: r.operands,
        ..SendWr::new(r.wr_id, opcode, r.pieces.iter().map(sge).collect())
    }
}
