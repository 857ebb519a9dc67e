// SPDX-License-Identifier: Apache-2.0
//! Lives by the million on a large table: created, connected and destroyed in batches of random size, with the generations going
//! round many times. No leak, no number given twice, and operations that take as long at the end as at the beginning.

use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};

use super::{Call, Difference, Judge, Setup, Step};
use crate::model::gate::{State, Type};
use crate::model::qp::{Command, Op, Outcome, Status, flag};
use crate::qp_bench::{BASE, Random};
use crate::qp_pair::{create, legal};

/// What to run.
#[derive(Debug, Clone)]
pub struct Scale {
    /// The block.
    pub setup: Setup,
    /// Lives to go through.
    pub lives: u64,
    /// Largest batch.
    pub batch: u32,
    /// Pieces of the run whose pace is told.
    pub windows: u64,
}

/// What came out.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ScaleReport {
    /// Lives begun, and all ended.
    pub lives: u64,
    /// Commands.
    pub commands: u64,
    /// Times that a number came back, after its generation had gone round.
    pub numbers_again: u64,
    /// Most QPs at one time.
    pub most: usize,
    /// Cycles per QP by operation, for each window.
    pub cycles_per_qp: BTreeMap<String, Vec<f64>>,
    /// Cycles in all.
    pub cycles: u64,
}

impl ScaleReport {
    /// Greatest departure of a window from the mean of its operation, in per cent.
    pub fn spread(&self) -> f64 {
        self.cycles_per_qp
            .values()
            .map(|windows| {
                let mean = windows.iter().sum::<f64>() / windows.len().max(1) as f64;
                windows
                    .iter()
                    .map(|w| (w / mean - 1.0).abs() * 100.0)
                    .fold(0.0, f64::max)
            })
            .fold(0.0, f64::max)
    }
}

const ATTR: u64 = BASE + 0x40;
const LIST: u64 = BASE + 0x1000;

struct Run<'a> {
    judge: Judge,
    rng: Random,
    live: Vec<u32>,
    /// Whose these are, apart from the model.
    alive: HashSet<u32>,
    ever: HashSet<u32>,
    report: ScaleReport,
    window: BTreeMap<&'static str, (u64, u64)>,
    scale: &'a Scale,
}

fn leak(text: String) -> Difference {
    Difference {
        kind: "scale".into(),
        text,
    }
}

impl Run<'_> {
    fn command(&mut self, what: &'static str, call: Call) -> Result<Outcome, Difference> {
        let n = u64::from(call.cmd.count);
        let before = self.judge.bench.cycles();
        let outcome = self.judge.step(&Step::Command(Box::new(call.clone())))?;
        let outcome = outcome.ok_or_else(|| leak("no outcome".into()))?;
        if outcome.completion.status != Status::Ok {
            return Err(leak(format!("{:?} {:?}", call.cmd, outcome.completion)));
        }
        // The judge lets eight cycles pass after each command.
        let entry = self.window.entry(what).or_default();
        entry.0 += self.judge.bench.cycles() - before - 8;
        entry.1 += n;
        self.report.commands += 1;
        Ok(outcome)
    }

    /// A batch size: as often small as large.
    fn size(&mut self, most: usize) -> u32 {
        let log = self.rng.below(u64::from(self.scale.batch.ilog2()) + 1);
        let n = (1 << log) + self.rng.below(1 << log);
        n.min(u64::from(self.scale.batch)).min(most as u64) as u32
    }

    fn begin(&mut self, n: u32) -> Result<Vec<u32>, Difference> {
        let install = self.rng.chance(1, 2);
        let mut call = Call::new(Command {
            list_addr: LIST,
            ..create(n)
        });
        if install {
            call.cmd.op = Op::Install;
            call.cmd.attr_addr = ATTR;
            call.records = vec![legal(Type::Rc, State::Init)];
        }
        let what = if install { "install" } else { "create" };
        let outcome = self.command(what, call.clone())?;
        let made = self.judge.made(&call, &outcome);
        if self.judge.bench.host.words(LIST, n as usize) != made {
            return Err(leak("the host's list is not what was made".into()));
        }
        for qpn in &made {
            if !self.alive.insert(*qpn) {
                return Err(leak(format!("{qpn:#x} was given again while it lives")));
            }
            self.report.numbers_again += u64::from(!self.ever.insert(*qpn));
        }
        self.report.lives += u64::from(n);
        self.report.most = self.report.most.max(self.alive.len());
        for step in [State::Init, State::Rtr, State::Rts] {
            if step == State::Init && install {
                continue;
            }
            let mut call = self.listed(Op::Modify, &made);
            call.cmd.attr_addr = ATTR;
            call.records = vec![legal(Type::Rc, step)];
            self.command("connect", call)?;
        }
        Ok(made)
    }

    fn listed(&self, op: Op, qpns: &[u32]) -> Call {
        let mut call = Call::new(Command {
            flags: flag::LIST,
            count: qpns.len() as u32,
            list_addr: LIST,
            ..Command::new(op)
        });
        call.list = qpns.to_vec();
        call
    }

    fn end(&mut self, n: usize) -> Result<(), Difference> {
        let mut dead = Vec::new();
        for _ in 0..n {
            let k = self.rng.below(self.live.len() as u64) as usize;
            dead.push(self.live.swap_remove(k));
        }
        let call = self.listed(Op::Destroy, &dead);
        self.command("destroy", call)?;
        for qpn in &dead {
            self.alive.remove(qpn);
        }
        Ok(())
    }
}

/// Goes through that many lives. `tell` hears how many are done.
///
/// # Errors
/// A difference between RTL and model, a leak, or a number given twice.
pub fn scale(scale: &Scale, mut tell: impl FnMut(u64)) -> Result<ScaleReport, Difference> {
    let mut judge = Judge::new(&scale.setup)?;
    judge.whole_table = false;
    // The host's memory holds a list of the whole table.
    judge
        .bench
        .host
        .grow((LIST - BASE) as usize + (4 << scale.setup.log_table));
    let room = judge.model.len() - 2;
    let mut run = Run {
        judge,
        rng: Random::new(scale.setup.seed),
        live: Vec::new(),
        alive: HashSet::new(),
        ever: HashSet::new(),
        report: ScaleReport::default(),
        window: BTreeMap::new(),
        scale,
    };
    // The table is full once at the beginning, then about half full.
    let fill = |run: &mut Run<'_>| -> Result<(), Difference> {
        while run.live.len() < room {
            let n = run.scale.batch.min((room - run.live.len()) as u32);
            let made = run.begin(n)?;
            run.live.extend(made);
        }
        Ok(())
    };
    fill(&mut run)?;
    while run.live.len() > room / 2 {
        let n = (scale.batch as usize).min(run.live.len() - room / 2);
        run.end(n)?;
    }
    run.window.clear();
    let first = run.report.lives;
    let mut windows = 0;
    while run.report.lives < scale.lives {
        let full = run.live.len();
        let grow = if full < room / 3 {
            true
        } else if full > room * 2 / 3 {
            false
        } else {
            run.rng.chance(1, 2)
        };
        if grow {
            let n = run.size(room - full);
            let made = run.begin(n)?;
            run.live.extend(made);
        } else {
            let n = run.size(full);
            run.end(n as usize)?;
        }
        let due = first + (windows + 1) * scale.lives.saturating_sub(first) / scale.windows;
        if run.report.lives >= due {
            windows += 1;
            tell(run.report.lives);
            for (what, (cycles, n)) in std::mem::take(&mut run.window) {
                let per_qp = cycles as f64 / n.max(1) as f64;
                let list = run.report.cycles_per_qp.entry(what.into()).or_default();
                list.push((per_qp * 100.0).round() / 100.0);
            }
            run.judge.bench.check_table(&run.judge.model, "after a window");
        }
    }
    // No leak: every place can be had again, then every one is given back.
    fill(&mut run)?;
    let mut call = Call::new(Command {
        count: room as u32 + 2,
        list_addr: LIST,
        ..Command::new(Op::List)
    });
    call.cmd.handle = 0;
    let outcome = run.judge.step(&Step::Command(Box::new(call)))?;
    let found = outcome.map_or(0, |o| o.completion.count as usize);
    let listed: HashSet<u32> = run.judge.bench.host.words(LIST, found).into_iter().collect();
    if found != room || listed != run.alive {
        return Err(leak(format!("LIST finds {found} of {room} QPs")));
    }
    while !run.live.is_empty() {
        let n = (scale.batch as usize).min(run.live.len());
        run.end(n)?;
    }
    run.judge.whole_table = true;
    run.judge.step(&Step::Command(Box::new(Call::new(Command {
        count: room as u32 + 2,
        list_addr: LIST,
        ..Command::new(Op::List)
    }))))?;
    run.report.cycles = run.judge.bench.cycles();
    Ok(run.report)
}
