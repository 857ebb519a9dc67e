// SPDX-License-Identifier: Apache-2.0
//! Figures beside their limits: as a table, and as JSON.

use std::time::Instant;

use anyhow::Context;
use comfy_table::{Attribute, Cell, CellAlignment, Table, presets};
use openrnic_driver::spec::{self, Comparison};
use serde_json::json;

/// A limit: the value, and on which side of it a figure has to be.
#[derive(Debug, Clone, Copy)]
pub struct Limit {
    value: f64,
    comparison: Comparison,
    /// It does not bind yet.
    later: bool,
}

impl Limit {
    /// At most this, a sum made of several budgets.
    pub fn at_most(value: f64) -> Self {
        Self {
            value,
            comparison: Comparison::AtMost,
            later: false,
        }
    }

    /// The budget of that name.
    pub fn budget(name: &str) -> anyhow::Result<Self> {
        let budget = spec::budget(name).with_context(|| format!("spec/budgets.toml has no budget {name}"))?;
        Ok(Self {
            value: budget.value,
            comparison: budget.comparison,
            later: budget.later,
        })
    }

    /// Its bare value.
    pub fn value(self) -> f64 {
        self.value
    }

    fn holds(self, measured: f64) -> bool {
        match self.comparison {
            Comparison::AtMost => measured <= self.value,
            Comparison::AtLeast => measured >= self.value,
        }
    }
}

struct Figure {
    name: String,
    /// `None`: it could not be measured.
    value: Option<f64>,
    unit: String,
    limit: Option<Limit>,
    failed: bool,
}

impl Figure {
    /// Whether a limit that binds is kept.
    fn met(&self) -> Option<bool> {
        match (self.value, self.limit) {
            _ if self.failed => Some(false),
            (Some(value), Some(limit)) if !limit.later => Some(limit.holds(value)),
            (Some(_), _) => None,
            (None, _) => Some(false),
        }
    }

    /// Whether a limit that does not bind yet would be kept.
    fn later(&self) -> Option<bool> {
        let limit = self.limit.filter(|l| l.later)?;
        self.value.map(|value| limit.holds(value))
    }
}

/// A figure as text.
pub struct Row {
    /// What was measured.
    pub name: String,
    /// The figure.
    pub value: String,
    /// Its unit.
    pub unit: String,
    /// The limit, if there is one.
    pub limit: String,
    /// Whether it is kept.
    pub met: &'static str,
}

/// All figures so far.
pub struct Report {
    started: Instant,
    figures: Vec<Figure>,
}

impl Default for Report {
    fn default() -> Self {
        Self {
            started: Instant::now(),
            figures: Vec::new(),
        }
    }
}

impl Report {
    /// Tells on standard error what is under way.
    pub fn progress(&self, what: &str) {
        eprintln!("[{:6.1} s] {what}", self.started.elapsed().as_secs_f64());
    }

    /// A figure with a limit.
    pub fn measured(&mut self, name: impl Into<String>, value: f64, unit: &str, limit: Limit) {
        self.push(name.into(), value, unit, Some(limit));
    }

    /// A figure for information.
    pub fn info(&mut self, name: impl Into<String>, value: f64, unit: &str) {
        self.push(name.into(), value, unit, None);
    }

    fn push(&mut self, name: String, value: f64, unit: &str, limit: Option<Limit>) {
        let beside = limit.map_or_else(String::new, |l| format!(" ({} {})", l.comparison, number(l.value)));
        self.progress(&format!("{name}: {} {unit}{beside}", number(value)));
        self.figures.push(Figure {
            name,
            value: Some(value),
            unit: unit.to_owned(),
            limit,
            failed: false,
        });
    }

    /// Something that could not be measured; it counts as missed.
    pub fn fail(&mut self, name: &str, error: &anyhow::Error) {
        self.progress(&format!("{name}: {error:#}"));
        self.figures.push(Figure {
            name: format!("{name}: {error:#}"),
            value: None,
            unit: String::new(),
            limit: None,
            failed: true,
        });
    }

    /// Names of the figures that miss their limit.
    pub fn missed(&self) -> Vec<&str> {
        let missed = self.figures.iter().filter(|f| f.met() == Some(false));
        missed.map(|f| f.name.as_str()).collect()
    }

    /// The figures as text.
    pub fn rows(&self) -> impl Iterator<Item = Row> {
        self.figures.iter().map(|f| Row {
            name: f.name.clone(),
            value: f.value.map_or_else(|| "failed".to_owned(), number),
            unit: f.unit.clone(),
            limit: f
                .limit
                .map_or_else(String::new, |l| format!("{} {}", l.comparison, number(l.value))),
            met: match (f.met(), f.later()) {
                (Some(true), _) => "yes",
                (Some(false), _) => "NO",
                (None, Some(true)) => "yes (binds later)",
                (None, Some(false)) => "no (binds later)",
                (None, None) => "",
            },
        })
    }

    /// The table for people.
    pub fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
        table.set_header(["name", "value", "unit", "budget", "met"]);
        for row in self.rows() {
            let right = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
            let met = Cell::new(row.met);
            table.add_row([
                Cell::new(&row.name),
                right(row.value),
                Cell::new(&row.unit),
                right(row.limit),
                if row.met == "NO" {
                    met.add_attribute(Attribute::Bold)
                } else {
                    met
                },
            ]);
        }
        table
    }

    /// Writes the list of figures; `budget`, `met` and `met_later` are null where there is no such limit.
    pub fn write(&self, path: &str) -> anyhow::Result<()> {
        let list: Vec<_> = self
            .figures
            .iter()
            .map(|f| {
                json!({
                    "name": f.name,
                    "value": f.value,
                    "unit": f.unit,
                    "budget": f.limit.map(Limit::value),
                    "met": f.met(),
                    "met_later": f.later(),
                })
            })
            .collect();
        if let Some(dir) = std::path::Path::new(path).parent() {
            std::fs::create_dir_all(dir).with_context(|| format!("creating {}", dir.display()))?;
        }
        let text = serde_json::to_string_pretty(&list)?;
        std::fs::write(path, text + "\n").with_context(|| format!("writing {path}"))
    }
}

/// Whole numbers as such, others with the digits that matter.
pub fn number(value: f64) -> String {
    if value.fract() == 0.0 {
        return format!("{value}");
    }
    format!("{value:.*}", if value.abs() < 10.0 { 2 } else { 1 })
}
