// SPDX-License-Identifier: Apache-2.0
//! The RTL package says the same as the golden bytes and the Rust tables. The comparison is an
//! elaboration-time check in a module written here and read by Verilator.
#![allow(clippy::unwrap_used)] // in the helpers of the tests, too

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;

use openrnic_spec::*;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// Output of `verilator --lint-only -Wall` over the package and some more text; `Err` when it objects.
fn lint(name: &str, module: &str) -> Result<(), String> {
    let own = root().join(".tools/bin/verilator");
    let program = if own.exists() { own } else { PathBuf::from("verilator") };
    let dir = std::env::temp_dir().join(format!("openrnic-spec-rtl-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let mut command = Command::new(&program);
    command
        .args(["--lint-only", "-Wall"])
        .arg(root().join("rtl/gen/rnic_spec_pkg.sv"));
    if !module.is_empty() {
        let file = dir.join(format!("{name}.sv"));
        std::fs::write(&file, module).unwrap();
        command.arg(file).args(["--top-module", name]);
    }
    let output = command
        .output()
        .unwrap_or_else(|e| panic!("{}: {e}; `make setup` installs it", program.display()));
    std::fs::remove_dir_all(&dir).unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() && !text.contains("%Warning") && !text.contains("%Error") {
        Ok(())
    } else {
        Err(text)
    }
}

/// A module of elaboration-time checks.
struct Checks {
    text: String,
    count: usize,
}

impl Checks {
    fn new(name: &str) -> Self {
        Checks {
            text: format!("module {name};\n  import rnic_spec_pkg::*;\n"),
            count: 0,
        }
    }

    fn line(&mut self, line: &str) {
        writeln!(self.text, "  {line}").unwrap();
    }

    fn equal(&mut self, got: &str, expected: &str) {
        self.count += 1;
        let n = self.count;
        self.line(&format!(
            "if ({got} != {expected}) begin : gen_{n} $error(\"{got} is not {expected}\"); end"
        ));
    }

    fn finish(mut self) -> String {
        self.text.push_str("endmodule\n");
        self.text
    }
}

/// Bytes from groups of hexadecimal digits; `00x56` stands for 56 zero bytes.
fn bytes(groups: &[&str]) -> Vec<u8> {
    let mut out = Vec::new();
    for word in groups.iter().flat_map(|g| g.split_whitespace()) {
        match word.split_once('x') {
            Some((byte, times)) => {
                out.resize(
                    out.len() + times.parse::<usize>().unwrap(),
                    u8::from_str_radix(byte, 16).unwrap(),
                );
            }
            None => out.push(u8::from_str_radix(word, 16).unwrap()),
        }
    }
    out
}

/// A literal as wide as the bytes.
fn literal(bytes: impl DoubleEndedIterator<Item = u8>, len: usize, little_endian: bool) -> String {
    let digits: String = if little_endian {
        bytes.rev().map(|b| format!("{b:02x}")).collect()
    } else {
        bytes.map(|b| format!("{b:02x}")).collect()
    };
    format!("{}'h{digits}", len * 8)
}

/// The value of a field as the golden bytes give it.
enum Value {
    Number(u128),
    Bytes(Vec<u8>),
}

macro_rules! value_from {
    ($($ty:ty),*) => {
        $(impl From<$ty> for Value {
            fn from(v: $ty) -> Self {
                Value::Number(v as u128)
            }
        })*
    };
}
value_from!(bool, u8, u16, u32, u64);

impl<const N: usize> From<[u8; N]> for Value {
    fn from(v: [u8; N]) -> Self {
        Value::Bytes(v.to_vec())
    }
}

struct Golden {
    name: &'static str,
    bytes: Vec<u8>,
    reserved: bool,
    fields: Vec<(&'static str, Value)>,
}

macro_rules! goldens {
    ($($name:ident [$($hex:literal)+] { $($field:ident, $with:ident = $value:expr;)* })*) => {
        fn goldens() -> Vec<Golden> {
            vec![$(Golden {
                name: stringify!($name),
                bytes: bytes(&[$($hex),+]),
                reserved: $name::RESERVED.iter().any(|b| *b != 0),
                fields: vec![$((stringify!($field), Value::from(typed($name::$with, $value)))),*],
            }),*]
        }
    };
}

/// `value`, with the type that the builder of its field takes.
fn typed<S, T>(_builder: fn(S, T) -> S, value: T) -> T {
    value
}

include!("../../tests/golden.rs");

/// The descriptions of all layouts and headers: (kind, table).
fn descriptions() -> Vec<(bool, toml::Table)> {
    let mut out = Vec::new();
    for entry in std::fs::read_dir(root().join("spec")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "toml") {
            let file: toml::Table = std::fs::read_to_string(&path).unwrap().parse().unwrap();
            for (kind, little_endian) in [("layout", true), ("header", false)] {
                for item in file.get(kind).and_then(|v| v.as_array()).into_iter().flatten() {
                    out.push((little_endian, item.as_table().unwrap().clone()));
                }
            }
        }
    }
    out
}

/// `CmdQp` → `cmd_qp`.
fn snake(name: &str) -> String {
    let mut out = String::new();
    for (i, c) in name.chars().enumerate() {
        if c.is_ascii_uppercase() && i > 0 {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

fn verdict(name: &str, checks: Checks, at_least: usize) {
    assert!(checks.count >= at_least, "only {} checks", checks.count);
    if let Err(text) = lint(name, &checks.finish()) {
        panic!("{text}");
    }
}

#[test]
fn the_package_is_lint_clean() {
    lint("package", "").unwrap();
}

#[test]
fn a_wrong_expectation_is_seen() {
    let mut checks = Checks::new("wrong");
    checks.equal("QP_STATE_RTS", "3'h4");
    let text = lint("wrong", &checks.finish()).unwrap_err();
    assert!(text.contains("QP_STATE_RTS is not 3'h4"), "{text}");
}

#[test]
fn structures_hold_the_golden_bytes() {
    let descriptions = descriptions();
    let mut checks = Checks::new("golden");
    for g in goldens() {
        let (little_endian, table) = descriptions
            .iter()
            .find(|d| d.1["name"].as_str() == Some(g.name))
            .unwrap();
        let ty = snake(g.name);
        let len = g.bytes.len();
        let instance = format!("G_{}", ty.to_ascii_uppercase());
        checks.line(&format!(
            "localparam {ty}_t {instance} = {ty}_t'({});",
            literal(g.bytes.iter().copied(), len, *little_endian)
        ));
        checks.equal(&format!("{}_BYTES", ty.to_ascii_uppercase()), &len.to_string());
        checks.equal(&format!("$bits({ty}_t)"), &(len * 8).to_string());
        checks.equal(&format!("{ty}_rsvd_ok({instance})"), "1'b1");
        checks.equal(&format!("{ty}_rsvd_ok('1)"), if g.reserved { "1'b0" } else { "1'b1" });
        for (field, value) in &g.fields {
            let described = |name: &str| {
                let fields = table["fields"].as_array().unwrap();
                fields
                    .iter()
                    .find(|f| f["name"].as_str() == Some(name))
                    .map(|f| f["width"].as_integer().unwrap())
            };
            // In Rust, `with_x` is `has_x`, and keywords end with `_`; in the RTL, only the latter.
            let with = field
                .strip_prefix("has_")
                .map(|rest| format!("with_{rest}"))
                .unwrap_or_default();
            let (name, width) = match (
                described(field),
                described(field.trim_end_matches('_')),
                described(&with),
            ) {
                (Some(width), _, _) | (None, Some(width), _) => ((*field).to_owned(), width),
                (None, None, Some(width)) => (with, width),
                _ => panic!("{}.{field}", g.name),
            };
            let expected = match value {
                Value::Number(n) => format!("{width}'h{n:x}"),
                Value::Bytes(b) => literal(b.iter().copied(), b.len(), *little_endian),
            };
            checks.equal(&format!("{instance}.{name}"), &expected);
        }
    }
    verdict("golden", checks, 300);
}

#[test]
fn every_opcode_has_the_properties_of_the_rust_table() {
    let mut checks = Checks::new("opcodes");
    for op in 0..=255u8 {
        let info = opcode_info(op);
        let of = |f: fn(&OpcodeInfo) -> bool| info.is_some_and(f);
        let properties = [
            ("valid", info.is_some()),
            ("is_request", of(|i| i.is_request)),
            ("is_response", of(|i| i.is_response)),
            ("first", of(|i| i.first)),
            ("middle", of(|i| i.middle)),
            ("last", of(|i| i.last)),
            ("only", of(|i| i.only)),
            ("is_send", of(|i| i.is_send)),
            ("is_write", of(|i| i.is_write)),
            ("is_read_req", of(|i| i.is_read_req)),
            ("is_read_resp", of(|i| i.is_read_resp)),
            ("is_ack", of(|i| i.is_ack)),
            ("is_atomic_req", of(|i| i.is_atomic_req)),
            ("is_atomic_ack", of(|i| i.is_atomic_ack)),
            ("is_cnp", of(|i| i.is_cnp)),
            ("has_reth", of(|i| i.has_reth)),
            ("has_aeth", of(|i| i.has_aeth)),
            ("has_imm", of(|i| i.has_imm)),
            ("has_ieth", of(|i| i.has_ieth)),
            ("has_deth", of(|i| i.has_deth)),
            ("has_atomiceth", of(|i| i.has_atomiceth)),
            ("has_atomicack", of(|i| i.has_atomicack)),
            ("has_xrceth", of(|i| i.has_xrceth)),
            ("pay_full", of(|i| i.pay_full)),
            ("pay_min1", of(|i| i.pay_min1)),
            ("pay_none", of(|i| i.pay_none)),
        ];
        checks.line(&format!("localparam opcode_info_t O_{op} = opcode_info(8'h{op:02x});"));
        let names: Vec<String> = properties.iter().map(|p| format!("O_{op}.{}", p.0)).collect();
        let bits: String = properties.iter().map(|p| if p.1 { '1' } else { '0' }).collect();
        checks.equal(
            &format!("{{{}}}", names.join(", ")),
            &format!("{}'b{bits}", properties.len()),
        );
        checks.equal(
            &format!("O_{op}.ext_len"),
            &format!("6'd{}", info.map_or(0, |i| i.ext_len)),
        );
    }
    for op in Opcode::ALL {
        checks.equal(&format!("OPC_{}", op.name()), &format!("8'h{:02x}", *op as u8));
    }
    // Nothing in the structure that is not compared here.
    checks.equal("$bits(opcode_info_t)", "32");
    verdict("opcodes", checks, 512);
}

#[test]
fn every_transition_is_that_of_the_rust_table() {
    let mut checks = Checks::new("transitions");
    for t in 0..16u8 {
        for cur in 0..8u8 {
            for next in 0..8u8 {
                let edge = match (QpType::try_from(t), QpState::try_from(cur), QpState::try_from(next)) {
                    (Ok(t), Ok(cur), Ok(next)) => qp_edge(t, cur, next),
                    _ => None,
                };
                let (required, allowed) = edge.map_or((0, 0), |e| (e.required.bits(), e.allowed.bits()));
                let name = format!("E_{t}_{cur}_{next}");
                checks.line(&format!(
                    "localparam qp_edge_t {name} = qp_edge(4'd{t}, 3'd{cur}, 3'd{next});"
                ));
                checks.equal(
                    &format!("{{{name}.legal, {name}.req_mask, {name}.allow_mask}}"),
                    &format!("{{1'b{}, 26'h{required:x}, 26'h{allowed:x}}}", u8::from(edge.is_some())),
                );
            }
        }
    }
    verdict("transitions", checks, 1024);
}

#[test]
fn codes_registers_and_masks_are_those_of_the_rust_tables() {
    let mut checks = Checks::new("tables");
    macro_rules! codes {
        ($($ty:ident $prefix:literal $width:literal;)*) => {
            $(
                for v in $ty::ALL {
                    let name = v.name();
                    let name = if name.starts_with($prefix) { name.to_owned() } else { format!("{}{name}", $prefix) };
                    checks.equal(&name, &format!("{}'h{:x}", $width, *v as u8));
                }
                checks.equal(&format!("{}COUNT", $prefix), &$ty::ALL.len().to_string());
            )*
        };
    }
    codes! {
        CplStatus "CPL_STATUS_" 3; QpState "QP_STATE_" 3; QpType "QP_TYPE_" 4; Mtu "MTU_" 3; CmdOpcode "CMD_OPCODE_" 8;
        CmdStatus "CMD_STATUS_" 8; GateRule "GATE_RULE_" 8; WqeOpcode "WQE_OPCODE_" 8; WcOpcode "WC_OPCODE_" 8;
        WcStatus "WC_STATUS_" 8; EventType "EVENT_TYPE_" 8; AethSyndrome "AETH_SYNDROME_" 8; DmaErr "DMA_ERR_" 3;
        MrErr "MR_ERR_" 3; FatalReason "FATAL_REASON_" 4; CounterId "COUNTER_ID_" 7; Transport "TRANSPORT_" 3;
    }
    macro_rules! bits {
        ($($ty:ident $prefix:literal;)*) => {
            $(
                for (flag, name) in $ty::NAMES {
                    checks.equal(&format!("{}{name}", $prefix), &flag.bits().trailing_zeros().to_string());
                }
                checks.equal(&format!("32'({}ALL)", $prefix), &format!("32'h{:x}", $ty::ALL.bits()));
            )*
        };
    }
    bits! { QpAttrBit "QP_ATTR_BIT_"; Access "ACCESS_"; CmdFlag "CMD_FLAG_"; }
    for block in BLOCKS {
        checks.equal(
            &format!("32'(BLK_{}_BASE)", block.name),
            &format!("32'h{:x}", block.base),
        );
        let word = u32::from(block.version) << 16 | u32::from(block.block_type);
        checks.equal(&format!("BLK_{}_TYPE", block.name), &format!("32'h{word:x}"));
        checks.equal(&format!("BLK_{}_NEXT", block.name), &format!("32'h{:x}", block.next));
        for reg in block.regs {
            checks.equal(
                &format!("32'(REG_{}_{})", block.name, reg.name),
                &format!("32'h{:x}", reg.offset),
            );
        }
    }
    checks.equal("32'd1 << BAR0_ADDR_W", "BAR0_BYTES");
    for code in 0..32u8 {
        checks.equal(
            &format!("rnr_timer_ns(5'd{code})"),
            &format!("32'd{}", rnr_timer_ns(code)),
        );
    }
    for op in 0..=255u8 {
        let command = CmdOpcode::try_from(op).ok().and_then(command);
        checks.equal(
            &format!("cmd_known(8'h{op:02x})"),
            &format!("1'b{}", u8::from(command.is_some())),
        );
        let reserved = command.map_or([0xff; 64], |c| c.reserved);
        checks.equal(
            &format!("cmd_rsvd_mask(8'h{op:02x})"),
            &literal(reserved.iter().copied(), 64, true),
        );
    }
    checks.equal("DEV_MAGIC", &format!("32'h{DEV_MAGIC:x}"));
    checks.equal("ROCE_UDP_PORT", &format!("16'd{ROCE_UDP_PORT}"));
    checks.equal("NUM_UAR", &format!("{NUM_UAR}"));
    verdict("tables", checks, 800);
}
