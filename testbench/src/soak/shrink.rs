// SPDX-License-Identifier: Apache-2.0
//! From the steps that show a difference to the fewest and plainest that still show one of that kind, each try on a fresh bench.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Difference, Judge, Setup, Step};
use crate::model::qp::{Op, Outcome, flag};

/// A difference with the steps that show it: what a replay file holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replay {
    /// What is built.
    pub setup: Setup,
    /// What it shows.
    pub difference: Difference,
    /// From power-up to the difference.
    pub steps: Vec<Step>,
}

impl Replay {
    /// Number of its commands.
    pub fn commands(&self) -> usize {
        self.steps.iter().filter(|s| matches!(s, Step::Command(_))).count()
    }

    /// As a file: JSON, one step a line.
    ///
    /// # Errors
    /// None that is known.
    pub fn to_json(&self) -> anyhow::Result<String> {
        let mut out = format!(
            "{{\n\"setup\": {},\n\"difference\": {},\n\"steps\": [\n",
            serde_json::to_string(&self.setup)?,
            serde_json::to_string(&self.difference)?
        );
        for (i, step) in self.steps.iter().enumerate() {
            let comma = if i + 1 < self.steps.len() { "," } else { "" };
            writeln!(out, "{}{comma}", serde_json::to_string(step)?)?;
        }
        out.push_str("]\n}\n");
        Ok(out)
    }

    /// Reads a file.
    ///
    /// # Errors
    /// A file that is not there or no replay.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        serde_json::from_str(&text).with_context(|| format!("{} is no replay file", path.display()))
    }

    /// Carries the steps out again, and tells each. Returns the difference that shows, if one does.
    pub fn run(&self, mut tell: impl FnMut(&Step, Option<&Outcome>)) -> Option<Difference> {
        let mut judge = match Judge::new(&self.setup) {
            Ok(judge) => judge,
            Err(difference) => return Some(difference),
        };
        for step in &self.steps {
            match judge.step(step) {
                Ok(outcome) => tell(step, outcome.as_ref()),
                Err(difference) => {
                    tell(step, None);
                    return Some(difference);
                }
            }
        }
        None
    }
}

/// A step with the numbers of the QPs that it has made.
#[derive(Clone)]
struct Made {
    step: Step,
    made: Vec<u32>,
}

struct Shrinker<'a> {
    setup: &'a Setup,
    kind: String,
    until: Instant,
}

/// Shrinks steps that show `difference` at their end. Takes no more than about `time`.
pub fn shrink(setup: &Setup, steps: &[Step], difference: &Difference, time: Duration) -> Replay {
    let mut s = Shrinker {
        setup,
        kind: difference.kind.clone(),
        until: Instant::now() + time,
    };
    let raw: Vec<Made> = steps
        .iter()
        .map(|step| Made {
            step: step.clone(),
            made: Vec::new(),
        })
        .collect();
    // Once as it was, for the numbers of the QPs.
    let mut best = match s.run(&raw) {
        Some(first) => first,
        None => {
            return Replay {
                setup: setup.clone(),
                difference: difference.clone(),
                steps: steps.to_vec(),
            };
        }
    };
    // What stands before the last reset is often of no matter.
    for (at, _) in best
        .0
        .iter()
        .enumerate()
        .filter(|(_, m)| m.step == Step::Reset)
        .rev()
        .take(3)
        .collect::<Vec<_>>()
    {
        if let Some(better) = s.run(best.0.split_at(at + 1).1) {
            best = better;
            break;
        }
    }
    loop {
        let before = best.0.clone();
        s.drop_steps(&mut best);
        s.plainer(&mut best);
        let same = before.len() == best.0.len() && before.iter().zip(&best.0).all(|(a, b)| a.step == b.step);
        if same || s.late() {
            break;
        }
    }
    Replay {
        setup: setup.clone(),
        difference: best.1,
        steps: best.0.into_iter().map(|m| m.step).collect(),
    }
}

impl Shrinker<'_> {
    fn late(&self) -> bool {
        Instant::now() > self.until
    }

    /// Runs them on a fresh bench. When they show a difference of the kind that is looked for: the steps up to it, as
    /// they were run. The numbers in a step are those of the run that it is taken from; when a QP has another number in this run
    /// its users follow.
    fn run(&mut self, steps: &[Made]) -> Option<(Vec<Made>, Difference)> {
        let mut judge = Judge::new(self.setup).ok()?;
        let mut names: BTreeMap<u32, u32> = BTreeMap::new();
        let mut done = Vec::new();
        for m in steps {
            let step = renamed(&m.step, &names, judge.model.len() as u32);
            match judge.step(&step) {
                Ok(outcome) => {
                    let mut made = Vec::new();
                    if let (Step::Command(call), Some(outcome)) = (&step, &outcome) {
                        made = judge.made(call, outcome);
                    }
                    names.extend(m.made.iter().copied().zip(made.iter().copied()));
                    done.push(Made { step, made });
                }
                Err(difference) => {
                    let made = Vec::new();
                    done.push(Made { step, made });
                    return (difference.kind == self.kind).then_some((done, difference));
                }
            }
        }
        None
    }

    /// Drops as many steps as possible: first in large pieces, then one by one.
    fn drop_steps(&mut self, best: &mut (Vec<Made>, Difference)) {
        let mut piece = best.0.len().div_ceil(2);
        while piece > 0 {
            let mut at = 0;
            while at < best.0.len() && !self.late() {
                let mut fewer = best.0.clone();
                fewer.drain(at..(at + piece).min(fewer.len()));
                match self.run(&fewer) {
                    Some(better) => *best = better,
                    None => at += piece,
                }
            }
            piece = if piece == 1 { 0 } else { piece.div_ceil(2) };
        }
    }

    /// Makes each step plainer: shorter batches, fewer reports, zeros.
    fn plainer(&mut self, best: &mut (Vec<Made>, Difference)) {
        let mut at = 0;
        while at < best.0.len() {
            // A candidate that is taken changes the step: look again, and try none twice.
            let mut tried = BTreeSet::new();
            while let Some(better) = self.plainer_at(&best.0, at, &mut tried) {
                *best = better;
            }
            at += 1;
        }
    }

    fn plainer_at(
        &mut self,
        best: &[Made],
        at: usize,
        tried: &mut BTreeSet<String>,
    ) -> Option<(Vec<Made>, Difference)> {
        for candidate in plainer_steps(&best.get(at)?.step) {
            if self.late() {
                return None;
            }
            let new = serde_json::to_string(&candidate).is_ok_and(|key| tried.insert(key));
            if new {
                let mut steps = best.to_vec();
                steps[at].step = candidate;
                if let Some(better) = self.run(&steps) {
                    return Some(better);
                }
            }
        }
        None
    }
}

/// The step with the numbers that its QPs have now.
fn renamed(step: &Step, names: &BTreeMap<u32, u32>, table: u32) -> Step {
    let Step::Command(call) = step else {
        return step.clone();
    };
    let now = |qpn: u32| names.get(&qpn).copied().unwrap_or(qpn);
    let mut call = call.clone();
    if matches!(call.cmd.op, Op::Modify | Op::Query | Op::Destroy) {
        call.cmd.handle = now(call.cmd.handle);
    }
    for qpn in &mut call.list {
        *qpn = now(*qpn);
    }
    for said in &mut call.reports {
        let place = names.iter().find(|(old, _)| *old & (table - 1) == said.index);
        said.index = place.map_or(said.index, |(_, new)| new & (table - 1));
    }
    Step::Command(call)
}

/// Plainer ones, the boldest first.
fn plainer_steps(step: &Step) -> Vec<Step> {
    let mut out = Vec::new();
    let Step::Command(call) = step else {
        return out;
    };
    let mut with = |f: &dyn Fn(&mut super::Call)| {
        let mut c = call.clone();
        f(&mut c);
        let s = Step::Command(c);
        if s != *step {
            out.push(s);
        }
    };
    let n = call.cmd.count as usize;
    with(&|c| c.reports.clear());
    with(&|c| c.broken = None);
    // Shorter batches.
    let has_list = call.cmd.flags & flag::LIST != 0 && call.list.len() == n;
    let has_records = call.cmd.flags & flag::RECORDS != 0 && call.records.len() == n;
    let keep = |c: &mut super::Call, range: std::ops::Range<usize>| {
        c.cmd.count = range.len() as u32;
        if has_list {
            c.list = c.list[range.clone()].to_vec();
        }
        if has_records {
            c.records = c.records[range].to_vec();
        }
    };
    if n > 1 && (has_list || has_records || call.list.is_empty()) {
        with(&|c| keep(c, n - 1..n));
        with(&|c| keep(c, 0..1));
        with(&|c| keep(c, 0..n / 2));
        with(&|c| keep(c, n / 2..n));
        with(&|c| keep(c, 0..n - 1));
        with(&|c| keep(c, 1..n));
    }
    // A list of one is no list, a record of one no batch.
    if has_list && n == 1 {
        with(&|c| {
            c.cmd.handle = c.list[0];
            c.list.clear();
            c.cmd.flags &= !flag::LIST;
        });
    }
    if has_records && n == 1 {
        with(&|c| c.cmd.flags &= !flag::RECORDS);
    }
    if call.list.len() > n {
        with(&|c| c.list.truncate(n));
    }
    // Bit by bit of the masks, then zeros wherever they do.
    for bit in 0..32 {
        for k in 0..call.records.len() {
            with(&|c| c.records[k].mask &= !(1 << bit));
        }
        with(&|c| c.cmd.flags &= !(1u32.wrapping_shl(bit) as u8));
    }
    let Ok(value) = serde_json::to_value(&**call) else {
        return out;
    };
    let mut paths = Vec::new();
    leaves(&value, &mut String::new(), &mut paths);
    for path in paths {
        let mut v = value.clone();
        let Some(leaf) = v.pointer_mut(&path) else { continue };
        *leaf = match leaf {
            Value::Bool(true) => Value::Bool(false),
            Value::Number(n) if n.as_u64() != Some(0) => Value::from(0),
            _ => continue,
        };
        if let Ok(call) = serde_json::from_value(v) {
            out.push(Step::Command(Box::new(call)));
        }
    }
    // Single reports, and reports that come early.
    for k in 0..call.reports.len() {
        let mut c = call.clone();
        c.reports.remove(k);
        out.push(Step::Command(c));
    }
    out
}

fn leaves(value: &Value, path: &mut String, out: &mut Vec<String>) {
    let mut child = |name: &str, v: &Value| {
        let len = path.len();
        path.push('/');
        path.push_str(name);
        leaves(v, path, out);
        path.truncate(len);
    };
    match value {
        Value::Object(map) => map.iter().for_each(|(k, v)| child(k, v)),
        Value::Array(list) => list.iter().enumerate().for_each(|(i, v)| child(&i.to_string(), v)),
        _ => out.push(path.clone()),
    }
}
