// SPDX-License-Identifier: Apache-2.0
//! Bits of memory per queue pair, counted in the elaborated RTL: Verilator elaborates the NIC with two sizes of the QP table; the
//! arrays that are twice as deep in the larger one belong to the queue pairs.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail, ensure};
use serde_json::Value;

use crate::report::{Limit, Report};

/// log2 of the table whose memory is told, and of the one it is compared with.
const TABLES: [u32; 2] = [10, 11];
/// Names of the instances in front of the parts of the core.
const PREFIX: &str = "u_core.";

/// Bits per QP of one memory of the core.
pub struct Memory {
    /// Instance path below the core.
    pub path: String,
    /// Bits per QP.
    pub bits: f64,
}

/// The memories of a NIC of that width that grow with the QP table.
pub fn memories(width: u32) -> anyhow::Result<Vec<Memory>> {
    let [small, large] = TABLES.map(|log| arrays(width, log));
    let (small, large) = (small?, large?);
    let mut list = Vec::new();
    for (path, array) in &small {
        if large.get(path).is_some_and(|l| l.depth == 2 * array.depth) {
            let path = path.split_once(PREFIX).map_or(path.as_str(), |(_, rest)| rest);
            list.push(Memory {
                path: path.to_owned(),
                bits: array.depth as f64 * array.width as f64 / f64::from(1u32 << TABLES[0]),
            });
        }
    }
    ensure!(!list.is_empty(), "no memory grows with the QP table");
    list.sort_by(|a, b| b.bits.total_cmp(&a.bits).then(a.path.cmp(&b.path)));
    Ok(list)
}

/// Tells of all of them, and holds the hot word to its budget.
pub fn memory(report: &mut Report) -> anyhow::Result<Vec<Memory>> {
    let list = memories(64)?;
    let total: f64 = list.iter().map(|m| m.bits).sum();
    report.info("memory per QP, 64 bits", total, "bits");
    let mut parts: BTreeMap<&str, f64> = BTreeMap::new();
    for m in &list {
        *parts.entry(part(&m.path)).or_default() += m.bits;
    }
    for (part, bits) in parts {
        report.info(format!("memory per QP in {part}, 64 bits"), bits, "bits");
    }
    // One copy per reader: the copies are alike.
    let hot = list
        .iter()
        .find(|m| m.path.contains("u_hot."))
        .context("no copy of the hot word")?;
    report.measured(
        "control word that is replicated per reader",
        hot.bits,
        "bits",
        Limit::budget("hot_control_word")?,
    );
    Ok(list)
}

/// The block of the core that a memory belongs to.
pub fn part(path: &str) -> &str {
    path.split('.').next().unwrap_or(path)
}

/// An array: elements, and bits of one.
struct Array {
    depth: u64,
    width: u64,
}

/// Every array of the NIC by hierarchical name.
fn arrays(width: u32, log_qp: u32) -> anyhow::Result<BTreeMap<String, Array>> {
    let top = format!("rnic_top_{width}");
    let out = Path::new("out").join(format!("elaborated_{width}_{log_qp}"));
    std::fs::create_dir_all(&out).with_context(|| format!("creating {}", out.display()))?;
    let run = Command::new("verilator")
        .args([
            "--json-only",
            "--flatten",
            "--no-timing",
            "-Wno-fatal",
            "-Wno-lint",
            "-f",
            "rtl/rnic.f",
        ])
        .args(["--top-module", &top, &format!("-GQpIdxW={log_qp}"), "--Mdir"])
        .arg(&out)
        .output()
        .context("running verilator (is .tools/bin in the search path?)")?;
    if !run.status.success() {
        bail!("verilator: {}", String::from_utf8_lossy(&run.stderr));
    }
    let file = out.join(format!("V{top}.tree.json"));
    let text = std::fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
    std::fs::remove_dir_all(&out).with_context(|| format!("removing {}", out.display()))?;
    let tree: Value = serde_json::from_str(&text).with_context(|| format!("parsing {}", file.display()))?;
    let mut found = Found::default();
    found.walk(&tree);
    let mut arrays = BTreeMap::new();
    for (name, kind) in &found.vars {
        if let Some(array) = found.array(kind)? {
            arrays.insert((*name).to_owned(), array);
        }
    }
    Ok(arrays)
}

/// Variables and types of Verilator's tree.
#[derive(Default)]
struct Found<'a> {
    types: HashMap<&'a str, &'a Value>,
    vars: Vec<(&'a str, &'a str)>,
}

impl<'a> Found<'a> {
    fn walk(&mut self, node: &'a Value) {
        match node {
            Value::Array(list) => list.iter().for_each(|n| self.walk(n)),
            Value::Object(fields) => {
                let kind = text(node, "type");
                if kind.ends_with("DTYPE") {
                    self.types.insert(text(node, "addr"), node);
                } else if kind == "VAR" {
                    self.vars.push((text(node, "name"), text(node, "dtypep")));
                }
                fields.values().for_each(|n| self.walk(n));
            }
            _ => {}
        }
    }

    /// A type without the names that stand for it.
    fn resolve(&self, at: &str) -> anyhow::Result<&'a Value> {
        let mut node = self.types.get(at).with_context(|| format!("no type {at}"))?;
        while matches!(text(node, "type"), "REFDTYPE" | "ENUMDTYPE") {
            let to = text(node, "refDTypep");
            node = self.types.get(to).with_context(|| format!("no type {to}"))?;
        }
        Ok(node)
    }

    fn array(&self, at: &str) -> anyhow::Result<Option<Array>> {
        let node = self.resolve(at)?;
        if text(node, "type") != "UNPACKARRAYDTYPE" {
            return Ok(None);
        }
        Ok(Some(Array {
            depth: declared(node)?,
            width: self.bits(text(node, "refDTypep"))?,
        }))
    }

    fn bits(&self, at: &str) -> anyhow::Result<u64> {
        let node = self.resolve(at)?;
        match text(node, "type") {
            "UNPACKARRAYDTYPE" | "PACKARRAYDTYPE" => Ok(declared(node)? * self.bits(text(node, "refDTypep"))?),
            "STRUCTDTYPE" => {
                let members = node
                    .get("membersp")
                    .and_then(Value::as_array)
                    .context("a struct without members")?;
                members.iter().map(|m| self.bits(text(m, "dtypep"))).sum()
            }
            "MEMBERDTYPE" => self.bits(text(node, "refDTypep")),
            "BASICDTYPE" => Ok(match text(node, "range") {
                "" if matches!(text(node, "keyword"), "int" | "integer") => 32,
                "" => 1,
                range => span(range).with_context(|| format!("range {range}"))?,
            }),
            other => bail!("bits of a {other} are not known"),
        }
    }
}

fn text<'a>(node: &'a Value, key: &str) -> &'a str {
    node.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Elements of an array.
fn declared(node: &Value) -> anyhow::Result<u64> {
    let range = text(node, "declRange");
    span(range).with_context(|| format!("range {range}"))
}

/// Elements of `[0:255]` or `7:0`.
fn span(range: &str) -> Option<u64> {
    let (left, right) = range.trim_matches(['[', ']']).split_once(':')?;
    let (left, right): (i64, i64) = (left.parse().ok()?, right.parse().ok()?);
    Some(left.abs_diff(right) + 1)
}
