// SPDX-License-Identifier: Apache-2.0
//! The specification as it stands in the files.

use std::path::Path;

use serde::Deserialize;

use crate::Error;

/// One input file.
#[derive(Debug, Clone)]
pub struct SourceFile {
    /// Name for messages, such as `spec/host.toml`.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// Everything from all files, in the order of the file names.
#[derive(Debug, Default)]
#[allow(missing_docs)]
pub struct Spec {
    pub(crate) consts: Vec<Const>,
    pub(crate) enums: Vec<Enum>,
    pub(crate) flags: Vec<Flags>,
    pub(crate) layouts: Vec<Layout>,
    pub(crate) headers: Vec<Layout>,
    pub(crate) opcodes: Vec<Opcode>,
    pub(crate) rnr_timer: Option<RnrTimer>,
    pub(crate) edges: Vec<Edge>,
    pub(crate) budgets: Vec<Budget>,
    pub(crate) commands: Vec<Command>,
    pub(crate) blocks: Vec<Block>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    #[serde(default, rename = "const")]
    consts: Vec<Const>,
    #[serde(default, rename = "enum")]
    enums: Vec<Enum>,
    #[serde(default)]
    flags: Vec<Flags>,
    #[serde(default, rename = "layout")]
    layouts: Vec<Layout>,
    #[serde(default, rename = "header")]
    headers: Vec<Layout>,
    #[serde(default, rename = "opcode")]
    opcodes: Vec<Opcode>,
    rnr_timer: Option<RnrTimer>,
    #[serde(default, rename = "edge")]
    edges: Vec<Edge>,
    #[serde(default, rename = "budget")]
    budgets: Vec<Budget>,
    #[serde(default, rename = "command")]
    commands: Vec<Command>,
    #[serde(default, rename = "block")]
    blocks: Vec<Block>,
}

/// A named number.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Const {
    #[serde(skip)]
    pub file: String,
    pub name: String,
    pub value: u64,
    /// Bits.
    pub width: u32,
    #[serde(default)]
    pub doc: String,
}

impl Const {
    /// Counts and sizes are plain integers in SystemVerilog, everything else is a vector of its width.
    pub fn is_count(&self) -> bool {
        self.name.starts_with("NUM_")
            || self.name.starts_with("MAX_")
            || self.name.ends_with("_BYTES")
            || self.name == "MSIX_CMD"
    }
}

/// An enumeration.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Enum {
    #[serde(skip)]
    pub file: String,
    pub name: String,
    /// Bits.
    pub width: u32,
    #[serde(default)]
    pub doc: String,
    pub values: Vec<EnumValue>,
}

/// One value of an enumeration.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnumValue {
    pub name: String,
    pub value: u64,
    #[serde(default)]
    pub doc: String,
}

/// A set of flags.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flags {
    #[serde(skip)]
    pub file: String,
    pub name: String,
    /// Bits.
    pub width: u32,
    #[serde(default)]
    pub doc: String,
    pub values: Vec<FlagBit>,
}

impl Flags {
    /// The union of all flags.
    pub fn all(&self) -> u32 {
        self.values.iter().fold(0, |mask, v| mask | 1 << v.bit)
    }

    /// The mask of the named flags; names are known to exist once the specification is checked.
    pub fn mask(&self, names: &[String]) -> u32 {
        self.values
            .iter()
            .filter(|v| names.contains(&v.name))
            .fold(0, |mask, v| mask | 1 << v.bit)
    }
}

/// One flag.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlagBit {
    pub name: String,
    pub bit: u32,
    #[serde(default)]
    pub doc: String,
}

/// A structure in memory (little-endian) or a header on the wire (big-endian).
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layout {
    #[serde(skip)]
    pub file: String,
    pub name: String,
    pub bytes: u32,
    #[serde(default)]
    pub doc: String,
    pub fields: Vec<Field>,
}

/// A field of a layout or header.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Field {
    pub name: String,
    pub byte: u32,
    /// Layout: from the least significant bit of the byte; header: from the most significant one.
    #[serde(default)]
    pub bit: u32,
    /// Bits.
    pub width: u32,
    #[serde(default)]
    pub doc: String,
}

impl Field {
    /// First bit, counted from the start of the structure in its own order.
    pub fn start(&self) -> u32 {
        self.byte * 8 + self.bit
    }

    /// One past the last bit.
    pub fn end(&self) -> u32 {
        self.start() + self.width
    }

    /// Whether the field covers whole bytes.
    pub fn is_bytes(&self) -> bool {
        self.bit == 0 && self.width.is_multiple_of(8)
    }
}

/// A piece of a layout: a field or a gap.
#[derive(Debug)]
pub enum Piece<'a> {
    /// A field.
    Field(&'a Field),
    /// Reserved bits.
    Gap {
        /// `rsvd_<n>`, numbered from the start.
        name: String,
        /// First bit.
        start: u32,
        /// Bits.
        width: u32,
    },
}

impl Piece<'_> {
    /// Bits.
    pub fn width(&self) -> u32 {
        match self {
            Piece::Field(f) => f.width,
            Piece::Gap { width, .. } => *width,
        }
    }

    /// First bit.
    pub fn start(&self) -> u32 {
        match self {
            Piece::Field(f) => f.start(),
            Piece::Gap { start, .. } => *start,
        }
    }
}

impl Layout {
    /// Fields and gaps from the first bit to the last.
    pub fn pieces(&self) -> Vec<Piece<'_>> {
        let mut fields: Vec<&Field> = self.fields.iter().collect();
        fields.sort_by_key(|f| f.start());
        let mut out = Vec::new();
        let mut at = 0;
        let mut gaps = 0;
        let mut gap = |out: &mut Vec<_>, from: u32, to: u32| {
            if to > from {
                out.push(Piece::Gap {
                    name: format!("rsvd_{gaps}"),
                    start: from,
                    width: to - from,
                });
                gaps += 1;
            }
        };
        for f in fields {
            gap(&mut out, at, f.start());
            at = f.end();
            out.push(Piece::Field(f));
        }
        gap(&mut out, at, self.bytes * 8);
        out
    }
}

/// One opcode of the BTH.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Opcode {
    #[serde(skip)]
    pub file: String,
    pub name: String,
    pub value: u8,
    pub transport: String,
    pub kind: Kind,
    pub dir: Dir,
    pub pos: Pos,
    pub headers: Vec<String>,
    pub payload: Payload,
    #[serde(default)]
    pub with_imm: bool,
    #[serde(default)]
    pub with_inv: bool,
}

impl Opcode {
    /// Whether the extended header follows the BTH.
    pub fn has(&self, header: &str) -> bool {
        self.headers.iter().any(|h| h == header)
    }

    /// The boolean properties by name, in the order of the SystemVerilog structure.
    pub fn props(&self) -> Vec<(&'static str, bool)> {
        vec![
            ("is_request", self.dir == Dir::Request),
            ("is_response", self.dir == Dir::Response),
            ("first", self.pos == Pos::First),
            ("middle", self.pos == Pos::Middle),
            ("last", self.pos == Pos::Last),
            ("only", self.pos == Pos::Only),
            ("is_send", self.kind == Kind::Send),
            ("is_write", self.kind == Kind::Write),
            ("is_read_req", self.kind == Kind::ReadReq),
            ("is_read_resp", self.kind == Kind::ReadResp),
            ("is_ack", self.kind == Kind::Ack),
            ("is_atomic_req", self.kind == Kind::AtomicReq),
            ("is_atomic_ack", self.kind == Kind::AtomicAck),
            ("is_cnp", self.kind == Kind::Cnp),
            ("has_reth", self.has("Reth")),
            ("has_aeth", self.has("Aeth")),
            ("has_imm", self.has("ImmDt")),
            ("has_ieth", self.has("Ieth")),
            ("has_deth", self.has("Deth")),
            ("has_atomiceth", self.has("AtomicEth")),
            ("has_atomicack", self.has("AtomicAckEth")),
            ("has_xrceth", self.has("XrcEth")),
            ("pay_full", self.payload == Payload::Mtu),
            ("pay_min1", self.payload == Payload::OneToMtu),
            ("pay_none", self.payload == Payload::None),
        ]
    }
}

/// What an opcode does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Kind {
    Send,
    Write,
    ReadReq,
    ReadResp,
    Ack,
    AtomicReq,
    AtomicAck,
    Cnp,
}

/// Who sends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Dir {
    Request,
    Response,
    None,
}

/// A packet's place in its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Pos {
    First,
    Middle,
    Last,
    Only,
    None,
}

/// How long the payload may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[allow(missing_docs)]
pub enum Payload {
    #[serde(rename = "mtu")]
    Mtu,
    #[serde(rename = "1..mtu")]
    OneToMtu,
    #[serde(rename = "0..mtu")]
    ZeroToMtu,
    #[serde(rename = "none")]
    None,
}

impl Payload {
    /// As it stands in the files.
    pub fn text(self) -> &'static str {
        match self {
            Payload::Mtu => "mtu",
            Payload::OneToMtu => "1..mtu",
            Payload::ZeroToMtu => "0..mtu",
            Payload::None => "none",
        }
    }
}

/// RNR NAK timer codes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RnrTimer {
    #[serde(skip)]
    pub file: String,
    pub unit: String,
    pub values: Vec<u32>,
}

/// Transitions with the same end.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edge {
    #[serde(skip)]
    pub file: String,
    pub from: Vec<String>,
    pub to: String,
    pub rules: Vec<EdgeRule>,
}

/// What a transition asks of some QP types.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EdgeRule {
    pub types: Vec<String>,
    #[serde(default)]
    pub required: Vec<String>,
    #[serde(default)]
    pub optional: Vec<String>,
}

/// A transition of one QP type.
#[derive(Debug)]
pub struct Transition<'a> {
    pub qp_type: &'a str,
    pub from: &'a str,
    pub to: &'a str,
    pub rule: &'a EdgeRule,
}

/// A bound on a measured value.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    #[serde(skip)]
    pub file: String,
    pub name: String,
    pub value: f64,
    pub unit: String,
    pub comparison: String,
    pub measured: String,
    /// A miss is told and does not fail the bench yet.
    #[serde(default)]
    pub later: bool,
}

/// What a command reads.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    #[serde(skip)]
    pub file: String,
    pub opcode: String,
    pub layout: String,
    #[serde(default)]
    pub flags: Vec<String>,
    pub fields: Vec<String>,
    #[serde(default)]
    pub doc: String,
    #[serde(default)]
    pub returns: String,
}

impl Command {
    /// Fields that every command reads.
    pub const COMMON: [&str; 3] = ["opcode", "flags", "tag"];
}

/// A block of registers.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Block {
    #[serde(skip)]
    pub file: String,
    pub name: String,
    pub base: u32,
    #[serde(rename = "type")]
    pub block_type: u16,
    #[serde(default = "one")]
    pub version: u16,
    #[serde(default)]
    pub doc: String,
    pub regs: Vec<Reg>,
}

fn one() -> u16 {
    1
}

/// A register.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reg {
    pub name: String,
    /// From the block's base.
    pub offset: u32,
    /// Bits.
    #[serde(default = "thirty_two")]
    pub width: u32,
    pub access: String,
    #[serde(default)]
    pub doc: String,
}

fn thirty_two() -> u32 {
    32
}

/// All `*.toml` files of a directory, sorted by name.
pub fn read_sources(dir: &Path) -> Result<Vec<SourceFile>, Error> {
    let io = |path: &Path| {
        let file = path.display().to_string();
        move |source| Error::Io { file, source }
    };
    let mut out = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(io(dir))? {
        let path = entry.map_err(io(dir))?.path();
        if path.extension().is_some_and(|e| e == "toml") && path.file_name().is_some_and(|n| n != "Cargo.toml") {
            let text = std::fs::read_to_string(&path).map_err(io(&path))?;
            let name = path
                .file_name()
                .map(|n| n.to_string_lossy().into_owned())
                .unwrap_or_default();
            out.push(SourceFile {
                name: format!("spec/{name}"),
                text,
            });
        }
    }
    out.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(out)
}

impl Spec {
    /// Parses the files; what they say is not yet checked against each other.
    ///
    /// # Errors
    /// [`Error::Syntax`], or [`Error::Invalid`] when a table that exists once stands in two files.
    pub fn parse(sources: &[SourceFile]) -> Result<Spec, Error> {
        let mut spec = Spec::default();
        for source in sources {
            let mut raw: RawFile = toml::from_str(&source.text).map_err(|e| Error::Syntax {
                file: source.name.clone(),
                message: e.to_string().trim_end().to_owned(),
            })?;
            macro_rules! take {
                ($list:ident) => {
                    for item in &mut raw.$list {
                        item.file = source.name.clone();
                    }
                    spec.$list.append(&mut raw.$list);
                };
            }
            take!(consts);
            take!(enums);
            take!(flags);
            take!(layouts);
            take!(headers);
            take!(opcodes);
            take!(edges);
            take!(budgets);
            take!(commands);
            take!(blocks);
            if let Some(mut table) = raw.rnr_timer {
                table.file = source.name.clone();
                if let Some(other) = &spec.rnr_timer {
                    return Err(Error::Invalid {
                        file: source.name.clone(),
                        item: "rnr_timer".to_owned(),
                        message: format!("already given in {}", other.file),
                    });
                }
                spec.rnr_timer = Some(table);
            }
        }
        Ok(spec)
    }

    /// The enumeration of that name.
    pub(crate) fn find_enum(&self, name: &str) -> Option<&Enum> {
        self.enums.iter().find(|e| e.name == name)
    }

    /// The flags of that name.
    pub(crate) fn find_flags(&self, name: &str) -> Option<&Flags> {
        self.flags.iter().find(|e| e.name == name)
    }

    /// The wire header of that name.
    pub(crate) fn find_header(&self, name: &str) -> Option<&Layout> {
        self.headers.iter().find(|h| h.name == name)
    }

    /// Bytes of an opcode's extended headers.
    pub(crate) fn ext_len(&self, op: &Opcode) -> u32 {
        op.headers
            .iter()
            .filter_map(|h| self.find_header(h))
            .map(|h| h.bytes)
            .sum()
    }

    /// The transition table, one entry per type, from and to, in the order of the files.
    pub(crate) fn transitions(&self) -> Vec<Transition<'_>> {
        let mut out = Vec::new();
        for edge in &self.edges {
            for from in &edge.from {
                for rule in &edge.rules {
                    for qp_type in &rule.types {
                        out.push(Transition {
                            qp_type,
                            from,
                            to: &edge.to,
                            rule,
                        });
                    }
                }
            }
        }
        out
    }

    /// The bits that must be zero in a command, by byte: those of no field it reads, and unknown flags.
    pub(crate) fn reserved_mask(&self, command: &Command) -> Vec<u8> {
        let Some(layout) = self.layouts.iter().find(|l| l.name == command.layout) else {
            return Vec::new();
        };
        let mut mask = vec![0xff; layout.bytes as usize];
        let read = |f: &&Field| Command::COMMON.contains(&f.name.as_str()) || command.fields.contains(&f.name);
        let known = self.find_flags("CmdFlag").map_or(0, |f| f.mask(&command.flags));
        for f in layout.fields.iter().filter(read) {
            for at in f.start()..f.end() {
                let unknown = f.name == "flags" && known >> (at - f.start()) & 1 == 0;
                if !unknown && let Some(byte) = mask.get_mut((at / 8) as usize) {
                    *byte &= !(1u8 << (at % 8));
                }
            }
        }
        mask
    }

    /// Bits of an address in BAR0.
    pub(crate) fn bar0_addr_width(&self) -> u32 {
        let bytes = self
            .consts
            .iter()
            .find(|c| c.name == "BAR0_BYTES")
            .map_or(1 << 32, |c| c.value);
        u64::BITS - bytes.saturating_sub(1).leading_zeros()
    }
}
