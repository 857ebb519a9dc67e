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
}

impl Limit {
    /// At most this, a sum made of several budgets.
    pub fn at_most(value: f64) -> Self {
        Self {
            value,
            comparison: Comparison::AtMost,
        }
    }

    /// The budget of that name.
    pub fn budget(name: &str) -> anyhow::Result<Self> {
        let budget = spec::budget(name).with_context(|| format!("spec/budgets.toml has no budget {name}"))?;
        Ok(Self {
            value: budget.value,
            comparison: budget.comparison,
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
    fn met(&self) -> Option<bool> {
        match (self.value, self.limit) {
            _ if self.failed => Some(false),
            (Some(value), Some(limit)) => Some(limit.holds(value)),
            (Some(_), None) => None,
            (None, _) => Some(false),
        }
    }
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

    /// The table for people.
    pub fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
        table.set_header(["name", "value", "unit", "budget", "met"]);
        for figure in &self.figures {
            let right = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
            let limit = figure.limit.map(|l| format!("{} {}", l.comparison, number(l.value)));
            let met = match figure.met() {
                Some(true) => Cell::new("yes"),
                Some(false) => Cell::new("NO").add_attribute(Attribute::Bold),
                None => Cell::new(""),
            };
            table.add_row([
                Cell::new(&figure.name),
                right(figure.value.map_or_else(|| "failed".to_owned(), number)),
                Cell::new(&figure.unit),
                right(limit.unwrap_or_default()),
                met,
            ]);
        }
        table
    }

    /// Writes the list of figures; `budget` and `met` are null where there is no limit.
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
fn number(value: f64) -> String {
    if value.fract() == 0.0 {
        return format!("{value}");
    }
    format!("{value:.*}", if value.abs() < 10.0 { 2 } else { 1 })
}
