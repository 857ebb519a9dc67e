// SPDX-License-Identifier: Apache-2.0
//! What the book shows of the numbers: tables and pictures, and the points behind them as JSON.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, ensure};
use serde_json::json;

use crate::Bench;
use crate::memory::part;
use crate::plot::{Grid, Line, Panel, Style};
use crate::report::number;
use crate::sweep::{Allowed, FAR_NS, How, OPS, Op, Sweep};

const TABLES: &str = "docs/src/numbers_tables.md";
const PICTURES: &str = "docs/src/img";

/// Every measured point, to be drawn elsewhere.
pub fn numbers(bench: &Bench, path: &str) -> anyhow::Result<()> {
    if bench.sweeps.is_empty() {
        return Ok(());
    }
    put(path, &(serde_json::to_string_pretty(&json!(bench.sweeps))? + "\n"))
}

/// Tables and pictures of the book. All of it is written, or nothing.
pub fn write(bench: &Bench) -> anyhow::Result<()> {
    ensure!(
        !bench.sweeps.is_empty() && !bench.memories.is_empty(),
        "the book shows the parts batch and memory: measure both"
    );
    let mut page = String::from("<!-- Written by `make bench ARGS=\"full --book\"`; do not edit. -->\n\n");
    figures(&mut page, bench);
    memory(&mut page, bench);
    for sweep in &bench.sweeps {
        cycles(&mut page, sweep)?;
    }
    put(TABLES, &page)?;
    for width in [64, 512] {
        let of_width = || bench.sweeps.iter().filter(|s| s.setup.width == width);
        // The table with the most points: it shows single commands, too.
        let most = of_width().max_by_key(|s| s.points.len());
        let Some(log_qp) = most.map(|s| s.setup.log_qp) else {
            continue;
        };
        let sweeps: Vec<&Sweep> = of_width().filter(|s| s.setup.log_qp == log_qp).collect();
        put(&format!("{PICTURES}/qp_batches_{width}.svg"), &picture(&sweeps)?)?;
    }
    Ok(())
}

fn put(path: &str, text: &str) -> anyhow::Result<()> {
    if let Some(dir) = Path::new(path).parent() {
        std::fs::create_dir_all(dir).with_context(|| format!("creating {}", dir.display()))?;
    }
    std::fs::write(path, text).with_context(|| format!("writing {path}"))
}

/// All that was held to a limit, but for the speed of the machine.
fn figures(page: &mut String, bench: &Bench) {
    page.push_str("## Figures and limits\n\n| What | Figure | Limit | Kept |\n|---|--:|--:|---|\n");
    for row in bench.report.rows().filter(|r| !r.unit.ends_with("/s")) {
        let _ = writeln!(
            page,
            "| {} | {} {} | {} | {} |",
            row.name, row.value, row.unit, row.limit, row.met
        );
    }
    page.push('\n');
}

fn memory(page: &mut String, bench: &Bench) {
    let total: f64 = bench.memories.iter().map(|m| m.bits).sum();
    page.push_str("## Memory per queue pair\n\n");
    let _ = writeln!(
        page,
        "Counted in the elaborated RTL at 64 bits with a table of 1024: every array whose depth follows the table. In all {} bits, \
         {} bytes.\n\n| Block | Memory | Bits per QP |\n|---|---|--:|",
        number(total),
        number((total / 8.0).ceil())
    );
    for m in &bench.memories {
        let block = part(&m.path);
        let rest = m.path.strip_prefix(block).unwrap_or("").trim_start_matches('.');
        let rest = rest.strip_suffix(".mem").unwrap_or(rest);
        let _ = writeln!(page, "| `{block}` | `{rest}` | {} |", number(m.bits));
    }
    page.push('\n');
}

/// Cycles per QP of one device.
fn cycles(page: &mut String, sweep: &Sweep) -> anyhow::Result<()> {
    let setup = sweep.setup;
    let sizes = sweep.sizes();
    let _ = write!(
        page,
        "## {} bits, table of {}, host {} ns away\n\nCycles per QP: one command, and in brackets a command each.\n\n|",
        setup.width,
        setup.table(),
        setup.far_ns
    );
    for n in &sizes {
        let _ = write!(page, " | {n}");
    }
    let _ = writeln!(page, " |\n|---{}|", "|--:".repeat(sizes.len()));
    for op in OPS {
        let _ = write!(page, "| {}", op.name());
        for &n in &sizes {
            let batch = sweep.at(op, How::Range, n).context("a batch was not measured")?;
            let _ = write!(page, " | {}", number(batch.per_qp()));
            if let Some(single) = sweep.at(op, How::Single, n) {
                let _ = write!(page, " ({})", number(single.per_qp()));
            }
        }
        page.push_str(" |\n");
    }
    page.push('\n');
    if setup.far_ns == 0 {
        others(page, sweep)?;
    }
    Ok(())
}

/// Batches by list and with records: decoded to completed, beside what is allowed.
fn others(page: &mut String, sweep: &Sweep) -> anyhow::Result<()> {
    let allowed = Allowed::new()?;
    page.push_str("| Named how | Operation | QPs | Cycles, decoded to completed | Allowed |\n|---|---|--:|--:|--:|\n");
    for (how, what) in [
        (How::List, "by list"),
        (How::Records, "by range, a record each"),
        (How::ListedRecords, "by list, a record each"),
    ] {
        for op in OPS {
            for p in sweep.line(op, how) {
                let limit = allowed.of(sweep.setup, how, p.n);
                let _ = writeln!(
                    page,
                    "| {what} | {} | {} | {} | {} |",
                    op.name(),
                    p.n,
                    p.exec,
                    number(limit)
                );
            }
        }
    }
    page.push('\n');
    Ok(())
}

/// Styles of the picture: batched and one by one, near and far host.
const STYLES: [Style; 4] = [
    Style {
        name: "one command, host at once",
        colour: "#0b6e4f",
        dash: "",
        marks: true,
    },
    Style {
        name: "one command, host 500 ns away",
        colour: "#0b6e4f",
        dash: "5 3",
        marks: true,
    },
    Style {
        name: "a command each, host at once",
        colour: "#c8501e",
        dash: "",
        marks: true,
    },
    Style {
        name: "a command each, host 500 ns away",
        colour: "#c8501e",
        dash: "5 3",
        marks: true,
    },
];

fn picture(sweeps: &[&Sweep]) -> anyhow::Result<String> {
    let setup = sweeps.first().context("nothing to draw")?.setup;
    let line = |op: Op, how: How, far_ns: u64, style: usize| Line {
        style,
        points: sweeps
            .iter()
            .filter(|s| s.setup.far_ns == far_ns)
            .flat_map(|s| s.line(op, how))
            .map(|p| (f64::from(p.n), p.per_qp()))
            .collect(),
    };
    let panels: Vec<Panel> = OPS
        .into_iter()
        .map(|op| Panel {
            title: op.name().to_owned(),
            lines: vec![
                line(op, How::Single, FAR_NS, 3),
                line(op, How::Single, 0, 2),
                line(op, How::Range, FAR_NS, 1),
                line(op, How::Range, 0, 0),
            ],
        })
        .collect();
    let values = || panels.iter().flat_map(|p| &p.lines).flat_map(|l| &l.points);
    let most = values().map(|p| p.0).fold(4.0, f64::max);
    let highest = values().map(|p| p.1).fold(10.0, f64::max);
    let mut x_ticks: Vec<(f64, String)> = (0..)
        .map(|i| 4f64.powi(i))
        .take_while(|n| *n < 1.5 * most)
        .map(|n| {
            (
                n,
                if n >= 4096.0 {
                    format!("{}k", n / 1024.0)
                } else {
                    number(n)
                },
            )
        })
        .collect();
    if x_ticks.last().is_some_and(|t| t.0 < most) {
        x_ticks.push((most, String::new()));
    }
    let mut y_ticks = Vec::new();
    for decade in 0.. {
        for step in [1.0, 2.0, 5.0] {
            let value = step * 10f64.powi(decade);
            y_ticks.push((value, number(value)));
        }
        if y_ticks.last().is_some_and(|t: &(f64, String)| t.0 >= highest) {
            break;
        }
    }
    while y_ticks.len() > 1 && y_ticks[y_ticks.len() - 2].0 >= highest {
        y_ticks.pop();
    }
    let grid = Grid {
        title: format!(
            "Clock cycles per queue pair, {} bits, table of {}",
            setup.width,
            setup.table()
        ),
        x_name: "queue pairs per batch (one command), or commands posted at once (a command each)".to_owned(),
        y_name: "cycles per queue pair, first doorbell to last completion in host memory".to_owned(),
        x_ticks,
        y_ticks,
        styles: STYLES.to_vec(),
        panels,
        columns: 3,
    };
    Ok(grid.svg())
}
