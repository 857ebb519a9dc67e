// SPDX-License-Identifier: Apache-2.0
//! Carries an episode out: two RTL NICs with their drivers, random hosts and a random wire, many connections, rounds of work. After
//! each round, when everything is quiet, memories, completions, events, states and counters must be those of the model.

mod compare;
mod objects;
mod work;

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
}
