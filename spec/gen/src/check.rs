// SPDX-License-Identifier: Apache-2.0
//! Whether the specification contradicts itself.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{Const, Edge, Enum, Flags, Layout, Opcode, Spec};
use crate::{Error, model, names};

type Check = Result<(), Error>;

fn bad(file: &str, item: impl Into<String>, message: impl Into<String>) -> Error {
    Error::Invalid {
        file: file.to_owned(),
        item: item.into(),
        message: message.into(),
    }
}

/// Checks every value, name and reference.
///
/// # Errors
/// The first contradiction found, as [`Error::Invalid`].
pub fn check(spec: &Spec) -> Check {
    spec.consts.iter().try_for_each(check_const)?;
    spec.enums.iter().try_for_each(check_enum)?;
    spec.flags.iter().try_for_each(check_flags)?;
    for (kind, list) in [("layout", &spec.layouts), ("header", &spec.headers)] {
        list.iter().try_for_each(|l| check_layout(kind, l))?;
    }
    check_top_names(spec)?;
    check_opcodes(spec)?;
    check_rnr(spec)?;
    check_edges(spec)?;
    check_budgets(spec)?;
    check_commands(spec)?;
    check_blocks(spec)
}

fn fits(value: u64, width: u32) -> bool {
    width >= 64 || value >> width == 0
}

fn is_upper(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_uppercase())
        && name
            .chars()
            .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

fn is_lower(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

fn is_camel(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_uppercase()) && name.chars().all(|c| c.is_ascii_alphanumeric())
}

fn check_const(c: &Const) -> Check {
    let item = || format!("const {}", c.name);
    if !is_upper(&c.name) {
        return Err(bad(&c.file, item(), "name is not UPPER_CASE"));
    }
    if !(1..=64).contains(&c.width) {
        return Err(bad(&c.file, item(), format!("width {} is not 1 to 64", c.width)));
    }
    if !fits(c.value, c.width) {
        return Err(bad(
            &c.file,
            item(),
            format!("value {:#x} does not fit {} bits", c.value, c.width),
        ));
    }
    if c.is_count() && !fits(c.value, 32) {
        return Err(bad(&c.file, item(), "a count must fit 32 bits"));
    }
    Ok(())
}

fn check_enum(e: &Enum) -> Check {
    let item = || format!("enum {}", e.name);
    if !is_camel(&e.name) {
        return Err(bad(&e.file, item(), "name is not CamelCase"));
    }
    if !(1..=8).contains(&e.width) {
        return Err(bad(&e.file, item(), format!("width {} is not 1 to 8", e.width)));
    }
    if e.values.is_empty() {
        return Err(bad(&e.file, item(), "no values"));
    }
    let mut names_seen = BTreeSet::new();
    let mut values_seen = BTreeMap::new();
    for v in &e.values {
        let item = || format!("enum {}, value {}", e.name, v.name);
        if !is_upper(&v.name) {
            return Err(bad(&e.file, item(), "name is not UPPER_CASE"));
        }
        if !fits(v.value, e.width) {
            return Err(bad(
                &e.file,
                item(),
                format!("{:#x} does not fit {} bits", v.value, e.width),
            ));
        }
        if !names_seen.insert(&v.name) {
            return Err(bad(&e.file, item(), "name used twice"));
        }
        if let Some(other) = values_seen.insert(v.value, &v.name) {
            return Err(bad(&e.file, item(), format!("same value {:#x} as {other}", v.value)));
        }
    }
    Ok(())
}

fn check_flags(f: &Flags) -> Check {
    let item = || format!("flags {}", f.name);
    if !is_camel(&f.name) {
        return Err(bad(&f.file, item(), "name is not CamelCase"));
    }
    if !(1..=32).contains(&f.width) {
        return Err(bad(&f.file, item(), format!("width {} is not 1 to 32", f.width)));
    }
    let mut names_seen = BTreeSet::new();
    let mut bits_seen = BTreeMap::new();
    for v in &f.values {
        let item = || format!("flags {}, flag {}", f.name, v.name);
        if !is_upper(&v.name) {
            return Err(bad(&f.file, item(), "name is not UPPER_CASE"));
        }
        if v.bit >= f.width {
            return Err(bad(
                &f.file,
                item(),
                format!("bit {} is outside {} bits", v.bit, f.width),
            ));
        }
        if !names_seen.insert(&v.name) {
            return Err(bad(&f.file, item(), "name used twice"));
        }
        if let Some(other) = bits_seen.insert(v.bit, &v.name) {
            return Err(bad(&f.file, item(), format!("same bit {} as {other}", v.bit)));
        }
    }
    Ok(())
}

/// Names that the generated types use for themselves.
const METHOD_NAMES: &[&str] = &["as_bytes", "from_bytes", "rsvd_ok", "new", "default"];

fn check_layout(kind: &str, l: &Layout) -> Check {
    let item = || format!("{kind} {}", l.name);
    if !is_camel(&l.name) {
        return Err(bad(&l.file, item(), "name is not CamelCase"));
    }
    if l.bytes == 0 {
        return Err(bad(&l.file, item(), "no bytes"));
    }
    let mut seen = BTreeSet::new();
    for f in &l.fields {
        let item = || format!("{kind} {}, field {}", l.name, f.name);
        if !is_lower(&f.name) {
            return Err(bad(&l.file, item(), "name is not lower_case"));
        }
        if METHOD_NAMES.contains(&f.name.as_str()) || ["rsvd_", "set_"].iter().any(|p| f.name.starts_with(p)) {
            return Err(bad(&l.file, item(), "name collides with a generated one"));
        }
        if !seen.insert(names::rust_field(&f.name)) {
            return Err(bad(&l.file, item(), "name used twice"));
        }
        if f.bit > 7 {
            return Err(bad(&l.file, item(), format!("bit {} is not 0 to 7", f.bit)));
        }
        if f.width == 0 || f.width > 64 && !(f.width == 128 && f.is_bytes()) {
            return Err(bad(
                &l.file,
                item(),
                format!("width {} is not 1 to 64, nor 128 in whole bytes", f.width),
            ));
        }
        if f.end() > l.bytes * 8 {
            return Err(bad(
                &l.file,
                item(),
                format!("ends at bit {} of {}", f.end(), l.bytes * 8),
            ));
        }
    }
    let mut sorted: Vec<_> = l.fields.iter().collect();
    sorted.sort_by_key(|f| f.start());
    for pair in sorted.windows(2) {
        if pair[1].start() < pair[0].end() {
            return Err(bad(
                &l.file,
                format!("{kind} {}, field {}", l.name, pair[1].name),
                format!("overlaps {}", pair[0].name),
            ));
        }
    }
    Ok(())
}

/// Names of types and constants must be unique across all files and kinds.
fn check_top_names(spec: &Spec) -> Check {
    let mut types: BTreeMap<&str, &str> = BTreeMap::new();
    let all_types = spec
        .enums
        .iter()
        .map(|e| ("enum", &e.name, &e.file))
        .chain(spec.flags.iter().map(|e| ("flags", &e.name, &e.file)))
        .chain(spec.layouts.iter().map(|e| ("layout", &e.name, &e.file)))
        .chain(spec.headers.iter().map(|e| ("header", &e.name, &e.file)));
    for (kind, name, file) in all_types {
        if let Some(other) = types.insert(name, file) {
            return Err(bad(
                file,
                format!("{kind} {name}"),
                format!("name already used in {other}"),
            ));
        }
    }
    let mut consts: BTreeMap<&str, &str> = BTreeMap::new();
    for c in &spec.consts {
        if let Some(other) = consts.insert(&c.name, &c.file) {
            return Err(bad(
                &c.file,
                format!("const {}", c.name),
                format!("name already used in {other}"),
            ));
        }
    }
    Ok(())
}

fn check_opcodes(spec: &Spec) -> Check {
    let transport = spec.find_enum("Transport");
    let mut by_name = BTreeSet::new();
    let mut by_value: BTreeMap<u8, &str> = BTreeMap::new();
    for op in &spec.opcodes {
        check_opcode(spec, op, transport)?;
        let item = || format!("opcode {}", op.name);
        if !by_name.insert(&op.name) {
            return Err(bad(&op.file, item(), "name used twice"));
        }
        if let Some(other) = by_value.insert(op.value, &op.name) {
            return Err(bad(
                &op.file,
                item(),
                format!("same value {:#04x} as {other}", op.value),
            ));
        }
    }
    Ok(())
}

fn check_opcode(spec: &Spec, op: &Opcode, transport: Option<&Enum>) -> Check {
    let fail = |message: String| Err(bad(&op.file, format!("opcode {}", op.name), message));
    if !is_upper(&op.name) {
        return fail("name is not UPPER_CASE".to_owned());
    }
    match transport.and_then(|e| e.values.iter().find(|v| v.name == op.transport)) {
        None => return fail(format!("transport {} is no value of enum Transport", op.transport)),
        Some(v) if v.value != u64::from(op.value >> 5) => {
            return fail(format!(
                "value {:#04x} does not belong to transport {}",
                op.value, op.transport
            ));
        }
        Some(_) => {}
    }
    for h in &op.headers {
        if spec.find_header(h).is_none() {
            return fail(format!("header {h} does not exist"));
        }
    }
    if spec.ext_len(op) >= 64 {
        return fail(format!(
            "{} bytes of extended headers do not fit 6 bits",
            spec.ext_len(op)
        ));
    }
    if op.with_imm != op.has("ImmDt") {
        return fail("with_imm and header ImmDt go together".to_owned());
    }
    if op.with_inv != op.has("Ieth") {
        return fail("with_inv and header Ieth go together".to_owned());
    }
    Ok(())
}

fn check_rnr(spec: &Spec) -> Check {
    let Some(table) = &spec.rnr_timer else { return Ok(()) };
    if table.unit != "ns" {
        return Err(bad(&table.file, "rnr_timer", format!("unit {} is not ns", table.unit)));
    }
    if table.values.len() != 32 {
        return Err(bad(
            &table.file,
            "rnr_timer",
            format!("{} values, not 32", table.values.len()),
        ));
    }
    Ok(())
}

fn check_edges(spec: &Spec) -> Check {
    let names_of = |name: &str| -> BTreeSet<String> {
        spec.find_enum(name)
            .map(|e| e.values.iter().map(|v| v.name.clone()).collect())
            .unwrap_or_default()
    };
    let (states, types) = (names_of("QpState"), names_of("QpType"));
    let attrs: BTreeSet<String> = spec
        .find_flags("QpAttrBit")
        .map(|f| f.values.iter().map(|v| v.name.clone()).collect())
        .unwrap_or_default();
    for edge in &spec.edges {
        check_edge(edge, &states, &types, &attrs)?;
    }
    let mut seen = BTreeSet::new();
    for t in spec.transitions() {
        if !seen.insert((t.qp_type, t.from, t.to)) {
            let file = spec
                .edges
                .iter()
                .find(|e| e.rules.iter().any(|r| std::ptr::eq(r, t.rule)))
                .map_or("", |e| &e.file);
            return Err(bad(
                file,
                format!("edge {}->{}", t.from, t.to),
                format!("given twice for {}", t.qp_type),
            ));
        }
    }
    Ok(())
}

fn check_edge(edge: &Edge, states: &BTreeSet<String>, types: &BTreeSet<String>, attrs: &BTreeSet<String>) -> Check {
    let fail = |message: String| {
        Err(bad(
            &edge.file,
            format!("edge {}->{}", edge.from.join("|"), edge.to),
            message,
        ))
    };
    for state in edge.from.iter().chain([&edge.to]) {
        if !states.contains(state) {
            return fail(format!("state {state} does not exist"));
        }
    }
    for rule in &edge.rules {
        for t in &rule.types {
            if !types.contains(t) {
                return fail(format!("QP type {t} does not exist"));
            }
        }
        let mut seen = BTreeSet::new();
        for a in rule.required.iter().chain(&rule.optional) {
            if a == "STATE" {
                return fail("STATE is implied and must not be listed".to_owned());
            }
            if !attrs.contains(a) {
                return fail(format!("attribute {a} does not exist"));
            }
            if !seen.insert(a) {
                return fail(format!("attribute {a} listed twice for {}", rule.types.join(", ")));
            }
        }
    }
    Ok(())
}

fn check_budgets(spec: &Spec) -> Check {
    let mut seen = BTreeSet::new();
    for b in &spec.budgets {
        let item = || format!("budget {}", b.name);
        if !is_lower(&b.name) {
            return Err(bad(&b.file, item(), "name is not lower_case"));
        }
        if !["<=", ">="].contains(&b.comparison.as_str()) {
            return Err(bad(
                &b.file,
                item(),
                format!("comparison {} is neither <= nor >=", b.comparison),
            ));
        }
        if !b.value.is_finite() {
            return Err(bad(&b.file, item(), "value is not finite"));
        }
        if !seen.insert(&b.name) {
            return Err(bad(&b.file, item(), "name used twice"));
        }
    }
    Ok(())
}

fn check_commands(spec: &Spec) -> Check {
    let Some(opcodes) = spec.find_enum("CmdOpcode") else {
        return Ok(());
    };
    let flags = spec.find_flags("CmdFlag");
    let mut seen = BTreeSet::new();
    for c in &spec.commands {
        let fail = |message: String| Err(bad(&c.file, format!("command {}", c.opcode), message));
        if !opcodes.values.iter().any(|v| v.name == c.opcode) {
            return fail("no value of enum CmdOpcode".to_owned());
        }
        if !seen.insert(&c.opcode) {
            return fail("given twice".to_owned());
        }
        let Some(layout) = spec.layouts.iter().find(|l| l.name == c.layout) else {
            return fail(format!("layout {} does not exist", c.layout));
        };
        let common = model::Command::COMMON.iter().map(|name| (*name).to_owned());
        for name in common.chain(c.fields.iter().cloned()) {
            if !layout.fields.iter().any(|f| f.name == name) {
                return fail(format!("layout {} has no field {name}", c.layout));
            }
        }
        for name in &c.flags {
            if !flags.is_some_and(|f| f.values.iter().any(|v| v.name == *name)) {
                return fail(format!("flag {name} does not exist"));
            }
        }
    }
    if !spec.commands.is_empty()
        && let Some(v) = opcodes.values.iter().find(|v| !seen.contains(&v.name))
    {
        return Err(bad(
            &opcodes.file,
            format!("enum CmdOpcode, value {}", v.name),
            "no [[command]] says what it reads",
        ));
    }
    Ok(())
}

fn check_blocks(spec: &Spec) -> Check {
    let limit = 1u64 << spec.bar0_addr_width();
    let mut ends: Vec<(u32, u32, &model::Block)> = Vec::new();
    let mut names_seen = BTreeSet::new();
    let mut types_seen = BTreeSet::new();
    for b in &spec.blocks {
        let item = || format!("block {}", b.name);
        if !is_upper(&b.name) {
            return Err(bad(&b.file, item(), "name is not UPPER_CASE"));
        }
        if !names_seen.insert(&b.name) || !types_seen.insert(b.block_type) {
            return Err(bad(&b.file, item(), "name or type used twice"));
        }
        if b.base % 8 != 0 {
            return Err(bad(
                &b.file,
                item(),
                format!("base {:#x} is not 8-byte aligned", b.base),
            ));
        }
        let mut regs: Vec<_> = b.regs.iter().collect();
        regs.sort_by_key(|r| r.offset);
        let mut at = 8;
        let mut reg_names = BTreeSet::new();
        for r in regs {
            let fail = |message: String| Err(bad(&b.file, format!("block {}, register {}", b.name, r.name), message));
            if !is_upper(&r.name) {
                return fail("name is not UPPER_CASE".to_owned());
            }
            if !reg_names.insert(&r.name) {
                return fail("name used twice".to_owned());
            }
            if r.width != 32 && r.width != 64 {
                return fail(format!("width {} is neither 32 nor 64", r.width));
            }
            if !["ro", "rw", "wo"].contains(&r.access.as_str()) {
                return fail(format!("access {} is not ro, rw or wo", r.access));
            }
            if r.offset % (r.width / 8) != 0 {
                return fail(format!("offset {:#x} is not aligned to its width", r.offset));
            }
            if r.offset < at {
                return fail(format!("offset {:#x} overlaps what ends at {at:#x}", r.offset));
            }
            at = r.offset + r.width / 8;
        }
        if u64::from(b.base) + u64::from(at) > limit {
            return Err(bad(&b.file, item(), "ends beyond BAR0"));
        }
        ends.push((b.base, b.base + at, b));
    }
    ends.sort_by_key(|e| e.0);
    for pair in ends.windows(2) {
        if pair[1].0 < pair[0].1 {
            return Err(bad(
                &pair[1].2.file,
                format!("block {}", pair[1].2.name),
                format!("overlaps block {}", pair[0].2.name),
            ));
        }
    }
    Ok(())
}

/// Every identifier of the RTL package once, with what it stands for.
pub fn check_identifiers<'a>(identifiers: impl Iterator<Item = (&'a str, String)>) -> Check {
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    for (what, identifier) in identifiers {
        if let Some(other) = seen.insert(identifier.clone(), what) {
            return Err(bad(
                "spec",
                what,
                format!("identifier {identifier} of the RTL package is also made by {other}"),
            ));
        }
    }
    Ok(())
}
