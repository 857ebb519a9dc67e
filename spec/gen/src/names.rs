// SPDX-License-Identifier: Apache-2.0
//! How a name of the specification is spelt in each language.

/// `QpAttrBit` → `qp_attr_bit`.
pub fn snake(camel: &str) -> String {
    let mut out = String::new();
    for (i, c) in camel.chars().enumerate() {
        if c.is_ascii_uppercase() && i > 0 {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

/// `QpAttrBit` → `QP_ATTR_BIT`.
pub fn upper(camel: &str) -> String {
    snake(camel).to_ascii_uppercase()
}

/// `RAW_PACKET` → `RawPacket`.
pub fn camel(upper: &str) -> String {
    upper
        .split('_')
        .map(|word| {
            let mut chars = word.chars();
            chars.next().map_or_else(String::new, |first| {
                first.to_ascii_uppercase().to_string() + &chars.as_str().to_ascii_lowercase()
            })
        })
        .collect()
}

/// The constant of an enumeration's value: `Mtu`, `MTU_256` → `MTU_256`; `QpState`, `RTS` → `QP_STATE_RTS`.
pub fn value(group: &str, name: &str) -> String {
    let prefix = upper(group) + "_";
    if name.starts_with(&prefix) {
        name.to_owned()
    } else {
        prefix + name
    }
}

/// A field's name, with `_` appended where it is a keyword of SystemVerilog or Rust.
pub fn field(name: &str) -> String {
    if KEYWORDS.contains(&name) {
        format!("{name}_")
    } else {
        name.to_owned()
    }
}

/// A field's name in Rust, where `with_` begins the builders: `with_imm` → `has_imm`.
pub fn rust_field(name: &str) -> String {
    name.strip_prefix("with_")
        .map_or_else(|| name.to_owned(), |rest| format!("has_{rest}"))
}

/// Keywords that could plausibly be field names.
const KEYWORDS: &[&str] = &[
    "alias",
    "assign",
    "assert",
    "assume",
    "automatic",
    "before",
    "begin",
    "bind",
    "bins",
    "bit",
    "break",
    "buf",
    "byte",
    "case",
    "cell",
    "chandle",
    "checker",
    "class",
    "config",
    "const",
    "constraint",
    "context",
    "continue",
    "cover",
    "cross",
    "default",
    "design",
    "disable",
    "dist",
    "do",
    "edge",
    "else",
    "end",
    "enum",
    "event",
    "export",
    "extends",
    "extern",
    "final",
    "first_match",
    "fn",
    "for",
    "force",
    "foreach",
    "forever",
    "fork",
    "function",
    "generate",
    "global",
    "if",
    "iff",
    "impl",
    "import",
    "in",
    "initial",
    "inout",
    "input",
    "inside",
    "instance",
    "int",
    "integer",
    "interface",
    "join",
    "let",
    "library",
    "local",
    "logic",
    "loop",
    "match",
    "mod",
    "modport",
    "module",
    "move",
    "mut",
    "new",
    "null",
    "or",
    "output",
    "package",
    "packed",
    "parameter",
    "posedge",
    "primitive",
    "priority",
    "process",
    "program",
    "property",
    "protected",
    "pub",
    "pure",
    "rand",
    "real",
    "ref",
    "reg",
    "release",
    "repeat",
    "restrict",
    "return",
    "self",
    "sequence",
    "shortint",
    "signed",
    "solve",
    "static",
    "string",
    "strong",
    "struct",
    "super",
    "supply0",
    "supply1",
    "table",
    "tagged",
    "task",
    "this",
    "throughout",
    "time",
    "trait",
    "tri",
    "type",
    "typedef",
    "union",
    "unique",
    "unsafe",
    "unsigned",
    "use",
    "var",
    "vectored",
    "virtual",
    "void",
    "wait",
    "wand",
    "weak",
    "where",
    "while",
    "wildcard",
    "wire",
    "with",
    "within",
    "wor",
    "xnor",
    "xor",
];
