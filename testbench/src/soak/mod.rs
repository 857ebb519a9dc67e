// SPDX-License-Identifier: Apache-2.0
//! The differential test of `rnic_qp`: steps that can be kept, repeated and shrunk, and the judge that carries each of them out on
//! the RTL and on the reference model and compares all that a host or the data path can see.

mod scale;
mod scenario;
mod shrink;
mod stimulus;

pub use scale::{Scale, ScaleReport, scale};
pub use scenario::{Written, scenario};
pub use shrink::{Replay, shrink};
pub use stimulus::Stimulus;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use openrnic_sim::model::{BlockBuilder, BlockModel, Effort};
use serde::{Deserialize, Serialize};

use crate::model::gate::{Attrs, State};
use crate::model::qp::{Command, Op, Outcome, Params, QpEngine, Status};
use crate::qp_bench::{Host, Manners, QpBench, RawChange, RawCompletion, Report};

/// What is built, and from which seed the bench's stalls are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    /// Data width.
    pub data_width: u32,
    /// log2 of the table.
    pub log_table: u32,
    /// Generation bits of a QPN.
    pub gen_bits: u32,
    /// Seed of the stalls.
    pub seed: u64,
    /// A feature of the RTL that is taken out: its switch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<String>,
    /// The compiler shall work for a long run.
    #[serde(skip)]
    pub long: bool,
}

impl Setup {
    /// The builder of that block.
    pub fn builder(&self) -> BlockBuilder {
        let mut builder = QpBench::builder(self.data_width, self.log_table, self.gen_bits);
        if let Some(cut) = &self.cut {
            builder = builder.define(cut);
        }
        if self.long {
            builder = builder.effort(Effort::Full);
        }
        builder
    }
}

/// One step of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// The block is reset.
    Reset,
    /// From now on host and data path behave so.
    Manners(Manners),
    /// A command with all that belongs to it.
    Command(Box<Call>),
}

/// A command, what the host writes before it, and what the data path reports while it runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// The command.
    pub cmd: Command,
    /// QPNs written to its list address.
    #[serde(default)]
    pub list: Vec<u32>,
    /// Records written to its attribute address.
    #[serde(default)]
    pub records: Vec<Attrs>,
    /// A byte that cannot be read while it runs.
    #[serde(default)]
    pub broken: Option<u64>,
    /// Reports.
    #[serde(default)]
    pub reports: Vec<Said>,
}

impl Call {
    /// Nothing but the command.
    pub fn new(cmd: Command) -> Self {
        Self {
            cmd,
            list: Vec::new(),
            records: Vec::new(),
            broken: None,
            reports: Vec::new(),
        }
    }
}

/// A report about a QP in one of its lives, made so many cycles after the command was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    /// Cycles.
    pub after: u64,
    /// Index of the QP.
    pub index: u32,
    /// The life before the command, not the one after it.
    pub earlier: bool,
    /// The life before that one: a report that comes too late.
    pub late: bool,
    /// What is reported.
    pub what: What,
}

/// What the data path reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum What {
    Drained,
    Error { source: usize, to_sqe: bool },
}

/// Writes list and records of a call to the host.
pub fn place(host: &mut Host, call: &Call) {
    for (i, qpn) in call.list.iter().enumerate() {
        host.write(call.cmd.list_addr + 4 * i as u64, &qpn.to_le_bytes());
    }
    for (i, record) in call.records.iter().enumerate() {
        host.write(call.cmd.attr_addr + 64 * i as u64, &record.to_bytes());
    }
    if let Some(addr) = call.broken {
        host.break_at(addr, 1);
    }
}

/// Where RTL and model differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// What differs: completion, changes, memory, barriers, references, late changes, events, table; or `bench`: the
    /// block broke a contract of its ports, or hangs.
    pub kind: String,
    /// Both sides.
    pub text: String,
}

/// What a run has seen.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    results: BTreeMap<(u8, u8, u8), (String, u64)>,
    states: [u64; 7],
    others: BTreeMap<&'static str, u64>,
}

impl Seen {
    fn note(&mut self, cmd: &Command, outcome: &Outcome) {
        let c = outcome.completion;
        let name = || match c.status {
            Status::GateRefused => format!("{:?} refused by rule {}", cmd.op, c.rule),
            status => format!("{:?} {status:?}", cmd.op),
        };
        let key = (cmd.op as u8, c.status as u8, c.rule);
        self.results.entry(key).or_insert_with(|| (name(), 0)).1 += 1;
        let size = match c.count {
            0 => "count 0",
            1 => "count 1",
            2..=8 => "count to 8",
            _ => "count above 8",
        };
        *self.others.entry(size).or_default() += 1;
    }

    /// By name, how often.
    pub fn counts(&self) -> BTreeMap<String, u64> {
        let results = self.results.values().cloned();
        let states = State::ALL.iter().map(|s| (format!("{s:?}"), self.states[*s as usize]));
        let others = self.others.iter().map(|(k, n)| ((*k).to_owned(), *n));
        results.chain(states).chain(others).filter(|(_, n)| *n > 0).collect()
    }
}

/// What a run of some length must have seen, else its stimulus is too narrow.
pub const MUST: [&str; 27] = [
    "Create Ok",
    "Install Ok",
    "Modify Ok",
    "Query Ok",
    "Destroy Ok",
    "List Ok",
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
    "count above 8",
    "batch with reports",
    "event",
    "Init",
    "Rtr",
    "Rts",
    "Sqd",
    "Sqe",
    "Err",
];

/// RTL and model, step by step.
pub struct Judge {
    /// The block on its bench.
    pub bench: QpBench,
    /// The model.
    pub model: QpEngine,
    /// Whether the whole table is compared after each command.
    pub whole_table: bool,
    /// What was seen.
    pub seen: Seen,
}

impl Judge {
    /// Both as after power-up.
    ///
    /// # Errors
    /// A block that does not even come out of reset.
    ///
    /// # Panics
    /// When the block cannot be built.
    pub fn new(setup: &Setup) -> Result<Self, Difference> {
        #[allow(clippy::expect_used)]
        let dut = setup.builder().build().expect("rnic_qp builds");
        Self::around(dut, setup)
    }

    /// As [`new`](Self::new), around a block that is built already.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn around(dut: BlockModel, setup: &Setup) -> Result<Self, Difference> {
        let mut model = QpEngine::new(Params {
            log_table: setup.log_table,
            gen_bits: setup.gen_bits,
            ..Params::default()
        });
        surroundings(&mut model);
        let bench = guarded(|| {
            let mut bench = QpBench::around(dut);
            bench.configure(model.pds.clone(), model.cqs.clone(), &model.limits);
            bench.share(model.srqs.clone(), model.xrcds.clone());
            bench.seed(setup.seed);
            bench
        })?;
        Ok(Self {
            bench,
            model,
            whole_table: true,
            seen: Seen::default(),
        })
    }

    /// Carries out a step on both. A command's outcome is the model's.
    ///
    /// # Errors
    /// The difference. Nothing more can be done with this judge then.
    pub fn step(&mut self, step: &Step) -> Result<Option<Outcome>, Difference> {
        match step {
            Step::Reset => {
                guarded(|| self.bench.reset())?;
                self.model.reset();
                Ok(None)
            }
            Step::Manners(manners) => {
                self.bench.manners = *manners;
                Ok(None)
            }
            Step::Command(call) => self.call(call).map(Some),
        }
    }

    fn call(&mut self, call: &Call) -> Result<Outcome, Difference> {
        let Call { cmd, reports, .. } = call;
        let before = (!reports.is_empty()).then(|| self.model.clone());
        guarded(|| place(&mut self.bench.host, call))?;
        let mut memory = self.bench.host.clone();
        let outcome = guarded(|| {
            let outcome = self.model.execute(cmd, &memory);
            for (addr, bytes) in &outcome.writes {
                memory.write(*addr, bytes);
            }
            outcome
        })?;
        let reports: Vec<Report> = reports
            .iter()
            .map(|said| {
                let model = before.as_ref().filter(|_| said.earlier).unwrap_or(&self.model);
                let index = said.index & (model.len() as u32 - 1);
                let epoch = model.entry(index).epoch;
                let epoch = if said.late { epoch.wrapping_sub(1).max(1) } else { epoch };
                let after = said.after;
                match said.what {
                    What::Drained => Report::Drained { after, index, epoch },
                    What::Error { source, to_sqe } => Report::Error {
                        after,
                        source,
                        index,
                        epoch,
                        to_sqe,
                    },
                }
            })
            .collect();
        let barriers = self.bench.barriers;
        self.bench.events.clear();
        let (completion, _) = guarded(|| self.bench.run_with(cmd, &reports))?;
        same("completion", &completion, &RawCompletion::from(outcome.completion))?;
        let told: Vec<RawChange> = outcome.changes.iter().map(|c| RawChange::from(*c)).collect();
        same("changes", &self.bench.changes, &told)?;
        if let Some((addr, got, expected)) = self.bench.host.first_difference(&memory) {
            let text = format!("at {addr:#x}: RTL {got:#04x}, model {expected:#04x}");
            return Err(Difference {
                kind: "memory".into(),
                text,
            });
        }
        let barriers = self.bench.barriers - barriers;
        same("barriers", &barriers, &u32::from(outcome.drained))?;
        let mut refs: Vec<_> = outcome
            .refs
            .iter()
            .map(|r| (r.n, r.pd, r.send_cq.unwrap_or(0xffff), r.recv_cq.unwrap_or(0xffff)))
            .collect();
        let mut got_refs = self.bench.refs.clone();
        refs.sort_unstable();
        got_refs.sort_unstable();
        same("references", &got_refs, &refs)?;
        let mut shared: Vec<_> = outcome.refs.iter().map(|r| (r.in_xrcd, r.srq)).collect();
        let mut got_shared = self.bench.shared.clone();
        shared.sort_unstable();
        got_shared.sort_unstable();
        same("shared references", &got_shared, &shared)?;

        // Then the reports take effect.
        let mut expected = Vec::new();
        let mut events = Vec::new();
        for r in &reports {
            match *r {
                Report::Error {
                    index, epoch, to_sqe, ..
                } => expected.extend(self.model.hardware_error(index, epoch, to_sqe)),
                Report::Drained { index, epoch, .. } => {
                    if let Some((change, event)) = self.model.drained(index, epoch) {
                        expected.push(change);
                        if event {
                            events.push(self.model.qpn(index));
                        }
                    }
                }
            }
        }
        guarded(|| {
            for _ in 0..8 + 6 * reports.len() {
                self.bench.cycle();
            }
        })?;
        let mut expected: Vec<RawChange> = expected.into_iter().map(RawChange::from).collect();
        let mut late = self.bench.changes.get(told.len()..).unwrap_or_default().to_vec();
        expected.sort_unstable();
        late.sort_unstable();
        same("late changes", &late, &expected)?;
        self.bench.events.sort_unstable();
        events.sort_unstable();
        same("events", &self.bench.events, &events)?;
        if self.whole_table {
            guarded(|| self.bench.check_table(&self.model, "")).map_err(|d| Difference {
                kind: "table".into(),
                ..d
            })?;
        }
        self.bench.host.mend();

        let seen = &mut self.seen;
        seen.note(cmd, &outcome);
        if self.whole_table {
            for qp in (0..self.model.len() as u32)
                .map(|i| self.model.entry(i))
                .filter(|q| q.valid)
            {
                seen.states[qp.state as usize] += 1;
            }
        }
        if !outcome.changes.is_empty() && !reports.is_empty() {
            *seen.others.entry("batch with reports").or_default() += 1;
        }
        if !events.is_empty() {
            *seen.others.entry("event").or_default() += events.len() as u64;
        }
        Ok(outcome)
    }

    /// Numbers of the QPs that a command has made, given its outcome.
    pub fn made(&self, call: &Call, outcome: &Outcome) -> Vec<u32> {
        if !matches!(call.cmd.op, Op::Create | Op::Install) {
            return Vec::new();
        }
        outcome.changes.iter().map(|c| self.model.qpn(c.index)).collect()
    }
}

/// What exists around the block, and what its port allows.
fn surroundings(model: &mut QpEngine) {
    model.pds = [3, 255].into();
    model.cqs = [0, 5, 200].into();
    model.srqs = [0, 9, 63].into();
    model.xrcds = [3, 15].into();
    model.limits.pkeys = [0xffff, 0, 0x8001, 0, 0, 0, 0, 0];
}

fn same<T: PartialEq + std::fmt::Debug>(kind: &str, got: &T, expected: &T) -> Result<(), Difference> {
    if got == expected {
        return Ok(());
    }
    Err(Difference {
        kind: kind.into(),
        text: format!("RTL {got:?}, model {expected:?}"),
    })
}

thread_local! {
    static GUARDED: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// The bench panics when the block breaks a contract: here that is a difference like any other.
fn guarded<T>(f: impl FnOnce() -> T) -> Result<T, Difference> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let told = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !GUARDED.get() {
                told(info);
            }
        }));
    });
    GUARDED.set(true);
    let done = catch_unwind(AssertUnwindSafe(f));
    GUARDED.set(false);
    done.map_err(|payload| {
        let text = payload
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| payload.downcast_ref::<&str>().map(|s| (*s).to_owned()));
        Difference {
            kind: "bench".into(),
            text: text.unwrap_or_default(),
        }
    })
}

/// Where a run of random commands has come to.
pub struct Episode {
    /// The judge.
    pub judge: Judge,
    stimulus: Stimulus,
    /// All steps so far.
    pub steps: Vec<Step>,
}

impl Episode {
    /// Begins one.
    ///
    /// # Errors
    /// As [`Judge::new`].
    pub fn new(setup: &Setup) -> Result<Self, Difference> {
        Ok(Self::with(Judge::new(setup)?, setup))
    }

    /// Around a judge.
    pub fn with(judge: Judge, setup: &Setup) -> Self {
        Self {
            judge,
            stimulus: Stimulus::new(setup.seed ^ u64::from(setup.data_width) << 32),
            steps: Vec::new(),
        }
    }

    /// One command more.
    ///
    /// # Errors
    /// The difference that it showed.
    pub fn command(&mut self) -> Result<(), Difference> {
        let next = self.stimulus.next(&self.judge.model, &self.judge.bench.host);
        for step in next {
            // Kept first: the step that shows a difference is part of the story.
            self.steps.push(step);
            if let Some(step) = self.steps.last() {
                self.judge.step(step)?;
            }
        }
        Ok(())
    }
}
