// SPDX-License-Identifier: Apache-2.0
//! What a run did, as tables.

use comfy_table::{CellAlignment, Table, presets::UTF8_FULL_CONDENSED};
use openrnic_spec::Opcode;

use crate::run::Summary;

fn table(header: &[&str]) -> Table {
    let mut t = Table::new();
    t.load_preset(UTF8_FULL_CONDENSED).set_header(header);
    t
}

fn numbers_right(t: &mut Table, from: usize) {
    for i in from..t.column_count() {
        if let Some(column) = t.column_mut(i) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

/// `1234567` as `1,234,567`.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// Simulated time with a unit that fits.
pub fn time(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.3} us", ns as f64 / 1e3),
        _ => format!("{:.3} ms", ns as f64 / 1e6),
    }
}

/// The summary of a run.
pub fn summary(name: &str, s: &Summary) -> String {
    let mut out = String::new();
    if !s.batches.is_empty() {
        let mut t = table(&["command", "queue pairs", "cycles", "cycles per QP"]);
        for (what, n, cycles) in &s.batches {
            let per = f64::from(*cycles) / f64::from((*n).max(1));
            t.add_row([
                what.clone(),
                n.to_string(),
                grouped(u64::from(*cycles)),
                format!("{per:.2}"),
            ]);
        }
        numbers_right(&mut t, 1);
        out += &format!("{t}\n");
    }
    for (line, refusal) in &s.refusals {
        out += &format!("refused as expected (line {line}): {refusal}\n");
    }
    let mut t = table(&["", name]);
    t.add_row(["steps".to_owned(), s.steps.to_string()]);
    t.add_row(["queue pairs made".to_owned(), s.qps.to_string()]);
    for (op, n) in &s.messages {
        t.add_row([format!("{op} messages"), grouped(*n)]);
    }
    t.add_row(["payload bytes checked".to_owned(), grouped(s.bytes)]);
    t.add_row(["clock cycles".to_owned(), grouped(s.cycles)]);
    t.add_row(["simulated time".to_owned(), time(s.time_ns)]);
    t.add_row(["data path".to_owned(), format!("{} bits", s.data_width)]);
    t.add_row(["seed".to_owned(), s.seed.to_string()]);
    numbers_right(&mut t, 1);
    out += &format!("{t}\n");

    let names: Vec<&str> = s.counters.iter().map(|(n, _)| n.as_str()).collect();
    let mut header = vec!["counter"];
    header.extend(&names);
    let mut t = table(&header);
    if let Some((_, first)) = s.counters.first() {
        for (id, _) in first.iter() {
            let values: Vec<u64> = s.counters.iter().map(|(_, c)| c.get(id)).collect();
            if values.iter().any(|v| *v != 0) {
                let mut row = vec![id.to_string()];
                row.extend(values.iter().map(|v| grouped(*v)));
                t.add_row(row);
            }
        }
    }
    numbers_right(&mut t, 1);
    out += &format!("{t}\n");

    let mut header = vec!["frames sent"];
    header.extend(&names);
    let mut t = table(&header);
    let mut opcodes: Vec<u8> = s.frames.iter().flat_map(|(_, f)| f.iter().map(|(o, _)| *o)).collect();
    opcodes.sort_unstable();
    opcodes.dedup();
    for opcode in opcodes {
        let mut row = vec![Opcode::try_from(opcode).map_or_else(|_| format!("{opcode:#04x}"), |o| o.to_string())];
        for (_, frames) in &s.frames {
            row.push(grouped(
                frames.iter().find(|(o, _)| *o == opcode).map_or(0, |(_, n)| *n),
            ));
        }
        t.add_row(row);
    }
    numbers_right(&mut t, 1);
    if t.row_count() > 0 {
        out += &format!("{t}\n");
    }
    out
}
