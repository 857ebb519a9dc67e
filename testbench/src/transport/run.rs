// SPDX-License-Identifier: Apache-2.0
//! Carries an episode out: two RTL NICs with their drivers, random hosts and a random wire, many connections, rounds of work. After
//! each round, when everything is quiet, memories, completions, events, states and counters must be those of the model.

mod arming;
mod compare;
mod keys;
mod objects;
mod work;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::rc::Rc;

use openrnic_driver::spec::{Access, CounterId, MrKind, Mtu, QpState};
use openrnic_driver::{
    AddressVector, CompletionQueue, Counters as DeviceCounters, Gid, Iova, LKey, MemoryRegion, MrInit, OpenParams,
    Pages, Psn, QpAttr, QpCap, QueuePair, RKey, RecvWr, SendWr, Sge, SharedReceiveQueue, SrqInit, WorkCompletion, attr,
};
use openrnic_sim::NicBus;
use openrnic_sim::pcie::{HostParams, Split};
use openrnic_sim::rng::Stream;
use openrnic_sim::wire::{Action, Direction as Way, FaultRates, Rule, WireParams, frame};
use serde::{Deserialize, Serialize};

use super::completions::{Outcome, ReceiveDone, Round, Seen, SendDone};
use super::counters::{Counters, UNKNOWN};
use super::judge::{Address, Judge};
use super::memory::{Memory, Region};
use super::stimulus::{self, Area, Fault, Ground, Key, LONGEST, Places, Plan, SPAN, Sort};
use super::{Difference, Gate, Op, Piece, QpConfig, Receive, Request, event, right, status};
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
    /// Half of the connections have one, and only such as concern keys.
    pub key_faults: bool,
    /// Hosts are slow and restless.
    pub rough_hosts: bool,
    /// Keys come and go by work requests.
    pub keys: bool,
    /// Some connections are over IPv6.
    pub v6: bool,
    /// Completion queues are armed.
    pub armed: bool,
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
            key_faults: false,
            rough_hosts: true,
            keys: true,
            v6: true,
            armed: true,
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
pub const MUST: [&str; 66] = [
    "operation Send",
    "operation SendImm",
    "operation SendInv",
    "operation Write",
    "operation WriteImm",
    "operation Read",
    "operation CompareSwap",
    "operation FetchAdd",
    "RegMr completed with status 0",
    "LocalInv completed with status 0",
    "BindMw completed with status 0",
    "RegMr completed with status 6",
    "LocalInv completed with status 6",
    "BindMw completed with status 6",
    "requests that wait for the other end",
    "registrations invalidated by the peer",
    "windows invalidated by the peer",
    "READs through registrations",
    "WRITEs through registrations",
    "atomics through registrations",
    "READs through windows",
    "WRITEs through windows",
    "atomics through windows",
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
    "fault StaleKey",
    "fault OthersWindow",
    "fault KeyOperation",
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
    "connections over IPv6",
    "connections over IPv4",
    "queue events: any",
    "queue events: solicited",
    "completions that raise no event",
    "rounds judged strictly",
];

/// One connection as the run knows it.
struct Slot {
    number: u64,
    life: u64,
    qps: [Qp; 2],
    configs: [QpConfig; 2],
    places: [Places; 2],
    regions: [[Mr; 2]; 2],
    /// Memory behind keys that come and go, what the driver has of these keys, and what the model knows of them: one of each.
    backing: [Vec<keys::Backing>; 2],
    handles: [Vec<keys::Handle>; 2],
    keys: [Vec<Key>; 2],
    shared: [bool; 2],
    plan: Plan,
    outcomes: [Outcome; 2],
    to_send: [VecDeque<Request>; 2],
    late: [VecDeque<(u64, Receive)>; 2],
    /// Of each direction: requests before this one have completed at the requester; have used their receives.
    sent: [usize; 2],
    received: [usize; 2],
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
    v6_gids: [Gid; 2],
    memory: [Memory; 2],
    slots: Vec<Slot>,
    shared: [Option<Shared>; 2],
    /// The queues of each end, that of sends first.
    watches: [[arming::Watch; 2]; 2],
    report: Report,
    baseline: [DeviceCounters; 2],
    rng: Stream,
}

/// Where the IPv6 address stands in the table of GIDs; the IPv4 one is entry 0.
const V6_GID: u32 = 1;
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
            ip6: std::net::Ipv6Addr::new(0xfd77, 0, 0x1234, 0, 0xabcd, 0, 0, n as u16 + 1).octets(),
        };
        for n in 0..2 {
            let gid = Gid(address(n).ip6);
            pair.ends[n].device.set_gid(V6_GID, gid).map_err(bench)?;
        }
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
            v6_gids: [0, 1].map(|n| Gid(address(n).ip6)),
            judge,
            silent,
            memory: [Memory::default(), Memory::default()],
            slots: Vec::new(),
            shared: [None, None],
            watches: Default::default(),
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
        self.arm(round)?;
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
                "connection {}: QPs {:#x} {:#x}, MTU {}, IPv6 {}, shared {:?}, fault {:?}",
                slot.number,
                slot.configs[0].qpn,
                slot.configs[1].qpn,
                slot.configs[0].mtu,
                slot.configs[0].v6,
                slot.shared,
                slot.plan.fault
            ));
            for (from, work) in slot.plan.work.iter().enumerate() {
                for r in &work.requests {
                    let named = r.named.map_or(String::new(), |n| format!(", {n:x?}"));
                    let after = r.after.map_or(String::new(), |g| format!(", after {g:?}"));
                    out.push(format!(
                        "  from end {from}: {:?} of {} bytes, va {:#x}, rkey {:#x}, imm {:#x}{}{}{}{named}{after}, wr_id {:#x}",
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
            if self.setup.keys {
                self.make_keys(at, round)?;
            }
            let others_window = [0, 1].map(|end| self.others_window(at, end));
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
                    key_faults: self.setup.key_faults,
                    keys: &slot.keys,
                    others_window,
                },
            );
            let work = &slot.plan.work;
            let silent = |from: usize| slot.plan.fault == Some((Fault::Silence, from));
            slot.outcomes = Round {
                configs: slot.configs,
                shared: slot.shared,
                silence: [silent(0), silent(1)],
                requests: work.each_ref().map(|w| w.requests.as_slice()),
                receives: work.each_ref().map(|w| w.receives.as_slice()),
            }
            .execute(&mut self.memory);
            slot.keys.clone_from(&slot.plan.keys);
            (slot.sent, slot.received) = ([0; 2], [0; 2]);
            for from in 0..2 {
                let work = &slot.plan.work[from];
                if slot.outcomes[from].fates.len() != work.requests.len() {
                    return Err(bench(format!("connection {}: work that waits for ever", slot.number)));
                }
                slot.to_send[from] = work.requests.iter().cloned().collect();
                if slot.plan.fault == Some((Fault::Silence, from)) {
                    self.silent.borrow_mut().insert((from, slot.configs[1 - from].qpn));
                }
                for r in &work.requests {
                    self.report.add(&format!("operation {:?}", r.op), 1);
                    self.report
                        .add("messages without bytes", u64::from(r.is_empty() && !r.op.is_key()));
                    self.report.add("messages inline", u64::from(r.inline.is_some()));
                    self.report.add("messages fenced", u64::from(r.fence));
                    self.report
                        .add("requests that wait for the other end", u64::from(r.after.is_some()));
                    if let Some(used) = key_use(&slot.plan, 1 - from, r) {
                        self.report.add(used, 1);
                    }
                }
            }
            if let Some((fault, _)) = slot.plan.fault {
                self.report.add(&format!("fault {fault:?}"), 1);
            }
        }
        Ok(())
    }
}

/// How a request concerns a key of the other end that comes and goes.
fn key_use(plan: &Plan, to: usize, r: &Request) -> Option<&'static str> {
    let sort = |key: u32| plan.keys[to].iter().find(|k| k.key >> 8 == key >> 8).map(|k| k.sort);
    match r.op {
        Op::SendInv => match sort(r.imm)? {
            Sort::Window => Some("windows invalidated by the peer"),
            _ => Some("registrations invalidated by the peer"),
        },
        op if op.is_send() || op.is_key() || r.is_empty() => None,
        op => match (sort(r.rkey)?, op) {
            (Sort::Window, Op::Read) => Some("READs through windows"),
            (Sort::Window, op) if op.is_atomic() => Some("atomics through windows"),
            (Sort::Window, _) => Some("WRITEs through windows"),
            (_, Op::Read) => Some("READs through registrations"),
            (_, op) if op.is_atomic() => Some("atomics through registrations"),
            _ => Some("WRITEs through registrations"),
        },
    }
}
