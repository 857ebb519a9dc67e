// SPDX-License-Identifier: Apache-2.0
//! From the steps that show a difference to a scenario file, which `openrnic run` carries out on a whole NIC: every command as its bits
//! are, with what the reference model says that its completion and host memory must be, and at the end the whole table, read
//! back. The model runs with the NIC's own sizes; objects and queue pairs have the numbers that they have there.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::{Call, Replay, Step, place};
use crate::model::gate::Type;
use crate::model::qp::{Command, HostMemory, Op, Outcome, Params, QpEngine, Status, flag};
use crate::qp_bench::Host;

/// Where the model's host has records and list. (The scenario's are elsewhere: a command there has offsets.)
const RECORDS: u64 = 0x1_0000_0000;
const LIST: u64 = 0x2_0000_0000;

/// A scenario, and what of the steps it does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The file's text.
    pub toml: String,
    /// What a scenario cannot say, in words: reports of the data path in the middle of a command have no place in it.
    pub left_out: Vec<String>,
}

/// What a command finds in host memory.
#[derive(Default)]
struct Memory {
    records: Vec<u8>,
    list: Vec<u8>,
    broken: Option<(u64, u64)>,
}

impl HostMemory for Memory {
    fn read(&self, addr: u64, len: usize) -> Option<Vec<u8>> {
        if self
            .broken
            .is_some_and(|(start, end)| addr < end && start < addr + len as u64)
        {
            return None;
        }
        let (base, from) = if addr >= LIST {
            (LIST, &self.list)
        } else {
            (RECORDS, &self.records)
        };
        let at = addr.checked_sub(base).map_or(0, |a| a as usize);
        let mut out = from.get(at..(at + len).min(from.len())).unwrap_or_default().to_vec();
        out.resize(len, 0);
        Some(out)
    }
}

/// Objects of the bench and the numbers that they have on the NIC: those that scenarios make are numbered from 0.
fn number(there: &BTreeSet<u16>, wanted: u16) -> u16 {
    let made = there.len() as u16;
    match there.iter().position(|n| *n == wanted) {
        Some(at) => at as u16,
        // What is not there is not there on the NIC either.
        None if wanted < made => wanted + made,
        None => wanted,
    }
}

struct Writer {
    bench: QpEngine,
    host: Host,
    nic: QpEngine,
    /// QPN on the bench to QPN on the NIC.
    names: BTreeMap<u32, u32>,
    out: String,
    left_out: Vec<String>,
}

/// Writes a shrunk difference as a scenario.
pub fn scenario(replay: &Replay) -> Written {
    let setup = &replay.setup;
    let mut bench = QpEngine::new(Params {
        log_table: setup.log_table,
        gen_bits: setup.gen_bits,
        ..Params::default()
    });
    super::surroundings(&mut bench);
    let mut nic = QpEngine::new(Params::default());
    nic.limits = bench.limits;
    let numbers = |of: &BTreeSet<u16>| (0..of.len() as u16).collect();
    nic.pds = numbers(&bench.pds);
    nic.cqs = numbers(&bench.cqs);
    nic.srqs = numbers(&bench.srqs);
    nic.xrcds = numbers(&bench.xrcds);
    let mut w = Writer {
        host: Host::for_model(),
        bench,
        nic,
        names: BTreeMap::new(),
        out: String::new(),
        left_out: Vec::new(),
    };
    w.head(replay);
    for step in &replay.steps {
        match step {
            Step::Reset => {
                w.bench.reset();
                w.nic.reset();
                w.step("reset_nic", &[("nic", "\"a\"".into())]);
                w.domains();
            }
            // How fast host and data path are is the scenario's own affair.
            Step::Manners(_) => {}
            Step::Command(call) => w.call(call),
        }
    }
    w.whole_table();
    Written {
        toml: w.out,
        left_out: w.left_out,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut s, b| {
        let _ = write!(s, "{b:02x}");
        s
    })
}

fn status_name(status: Status) -> &'static str {
    match status {
        Status::Ok => "OK",
        Status::ReservedSet => "RESERVED_SET",
        Status::BadHandle => "BAD_HANDLE",
        Status::BadParam => "BAD_PARAM",
        Status::NoResources => "NO_RESOURCES",
        Status::InUse => "IN_USE",
        Status::GateRefused => "GATE_REFUSED",
        Status::Duplicate => "DUPLICATE",
        Status::NoCommonGeneration => "NO_COMMON_GENERATION",
        Status::Unsupported => "UNSUPPORTED",
        Status::DmaError => "DMA_ERROR",
    }
}

fn rule_name(rule: u8) -> Option<&'static str> {
    Some(match rule {
        1 => "WRONG_CUR_STATE",
        2 => "ILLEGAL_EDGE",
        3 => "MISSING_ATTRS",
        4 => "EXCESS_ATTRS",
        5 => "BAD_VALUE",
        6 => "DRAINING",
        _ => return None,
    })
}

impl Writer {
    fn head(&mut self, replay: &Replay) {
        let kind = &replay.difference.kind;
        let text: String = replay
            .difference
            .text
            .chars()
            .filter(|c| !c.is_control())
            .take(300)
            .collect();
        let out = &mut self.out;
        let _ = writeln!(out, "# SPDX-License-Identifier: Apache-2.0");
        let _ = writeln!(
            out,
            "# Found by soak, seed {}, and shrunk. What differed ({kind}): {text}",
            replay.setup.seed
        );
        let _ = writeln!(out, "name = \"difference\"");
        let _ = writeln!(
            out,
            "description = \"RTL and reference model differed here: what the model says is expected\"\n\n[sim]\ndata_width = {}\n",
            replay.setup.data_width
        );
        let keys: Vec<String> = self.nic.limits.pkeys.iter().map(|k| format!("{k:#06x}")).collect();
        let _ = writeln!(out, "[[nic]]\nname = \"a\"\npkeys = [{}]\n", keys.join(", "));
        // One of each is the NIC's own.
        for i in 1..self.nic.pds.len() {
            let _ = writeln!(out, "[[pd]]\nname = \"pd{i}\"\nnic = \"a\"\n");
        }
        for i in 1..self.nic.cqs.len() {
            let _ = writeln!(out, "[[cq]]\nname = \"cq{i}\"\nnic = \"a\"\nentries = 16\n");
        }
        for i in 0..self.nic.srqs.len() {
            let _ = writeln!(out, "[[srq]]\nname = \"srq{i}\"\nnic = \"a\"\nmax_wr = 16\n");
        }
        self.domains();
    }

    /// XRC domains have no table in a scenario.
    fn domains(&mut self) {
        for i in 0..self.nic.xrcds.len() {
            let mut raw = [0; 2];
            raw[0] = CREATE_XRCD;
            self.step(
                "command",
                &[
                    ("nic", "\"a\"".into()),
                    ("hex", format!("\"{}\"", hex(&raw))),
                    ("handle", i.to_string()),
                ],
            );
        }
    }

    fn step(&mut self, what: &str, keys: &[(&str, String)]) {
        let _ = writeln!(self.out, "[[step]]\ndo = \"{what}\"");
        for (key, value) in keys {
            let _ = writeln!(self.out, "{key} = {value}");
        }
        self.out.push('\n');
    }

    fn renamed(&self, qpn: u32) -> u32 {
        self.names.get(&qpn).copied().unwrap_or(qpn)
    }

    fn call(&mut self, call: &Call) {
        place(&mut self.host, call);
        let cmd = call.cmd;
        // What the command finds in memory, under the numbers of the NIC.
        let count = cmd.count as usize;
        let mut memory = Memory::default();
        let mut theirs = cmd;
        let creates = matches!(cmd.op, Op::Create | Op::Install);
        let reads_list = cmd.flags & flag::LIST != 0 && matches!(cmd.op, Op::Modify | Op::Destroy);
        let writes_list = (creates || cmd.op == Op::List) && cmd.list_addr != 0;
        let reads_records = matches!(cmd.op, Op::Modify | Op::Install);
        let records = if cmd.flags & flag::RECORDS != 0 {
            count.clamp(1, 64)
        } else {
            1
        };
        let whole = self.host.clone();
        let read = |addr: u64, len: usize| -> Vec<u8> { whole.peek(addr, len) };
        if reads_list {
            memory.list = read(cmd.list_addr, 4 * count.min(self.bench.len()))
                .chunks_exact(4)
                .flat_map(|c| self.renamed(u32::from_le_bytes([c[0], c[1], c[2], c[3]])).to_le_bytes())
                .collect();
        }
        if reads_records {
            memory.records = read(cmd.attr_addr, 64 * records);
        }
        if let Some(addr) = call.broken {
            let mut break_in = |base: u64, from: u64, len: usize| {
                if (from..from + len as u64).contains(&addr) {
                    memory.broken = Some((base, base + len as u64));
                }
            };
            break_in(LIST, cmd.list_addr, memory.list.len());
            break_in(RECORDS, cmd.attr_addr, memory.records.len());
        }
        if matches!(cmd.op, Op::Modify | Op::Query | Op::Destroy) || cmd.flags & flag::REQUESTED != 0 {
            theirs.handle = self.renamed(cmd.handle);
        }
        let in_domain = Type::from_code(cmd.qp_type) == Some(Type::XrcTgt);
        theirs.pd = number(
            if in_domain && creates {
                &self.bench.xrcds
            } else {
                &self.bench.pds
            },
            cmd.pd,
        );
        theirs.send_cq = number(&self.bench.cqs, cmd.send_cq);
        theirs.recv_cq = number(&self.bench.cqs, cmd.recv_cq);
        theirs.srq = number(&self.bench.srqs, cmd.srq);
        theirs.list_addr = cmd.list_addr & 63;
        theirs.attr_addr = cmd.attr_addr & 63;

        // The model, on the bench's memory for the numbers and on the NIC's for what is expected.
        let outcome_there = self.bench.execute(&cmd, &self.host);
        for (addr, bytes) in &outcome_there.writes {
            self.host.write(*addr, bytes);
        }
        let uses_list = reads_list || writes_list;
        let uses_records = reads_records || cmd.op == Op::Query;
        let mut modelled = theirs;
        modelled.list_addr = if uses_list { LIST } else { theirs.list_addr };
        modelled.attr_addr = if uses_records { RECORDS } else { theirs.attr_addr };
        let outcome = self.nic.execute(&modelled, &memory);
        let made = |o: &Outcome, m: &QpEngine| -> Vec<u32> { o.changes.iter().map(|c| m.qpn(c.index)).collect() };
        if creates {
            let (old, new) = (made(&outcome_there, &self.bench), made(&outcome, &self.nic));
            self.names.extend(old.into_iter().zip(new));
        }

        if !call.reports.is_empty() {
            let _ = writeln!(
                self.out,
                "# The data path reports during this command: {:?}",
                call.reports
            );
            self.left_out.push(format!(
                "reports of the data path during {:?}: {:?}",
                cmd.op, call.reports
            ));
        }
        self.command(
            &theirs,
            &memory,
            writes_list.then_some(count.min(self.nic.len())),
            &outcome,
        );
        self.host.mend();
    }

    fn command(&mut self, cmd: &Command, memory: &Memory, room: Option<usize>, outcome: &Outcome) {
        let c = outcome.completion;
        let mut raw = *cmd;
        raw.tag = 0;
        let mut keys = vec![
            ("nic", "\"a\"".to_owned()),
            ("hex", format!("\"{}\"", hex(&raw.to_bytes()))),
            ("status", format!("\"{}\"", status_name(c.status))),
        ];
        if let Some(rule) = rule_name(c.rule) {
            keys.push(("rule", format!("\"{rule}\"")));
        }
        for (name, value) in [
            ("handle", c.handle),
            ("qps", c.count),
            ("offender", c.offender),
            ("offender_index", c.offender_index),
            ("detail", c.detail),
        ] {
            keys.push((name, format!("{value:#x}")));
        }
        if !memory.records.is_empty() {
            let rows: Vec<String> = memory.records.chunks(64).map(|r| format!("\"{}\"", hex(r))).collect();
            keys.push(("records", format!("[{}]", rows.join(", "))));
        }
        let words = |bytes: &[u8]| {
            let words: Vec<String> = bytes
                .chunks_exact(4)
                .map(|w| format!("{:#x}", u32::from_le_bytes([w[0], w[1], w[2], w[3]])))
                .collect();
            format!("[{}]", words.join(", "))
        };
        if !memory.list.is_empty() {
            keys.push(("list", words(&memory.list)));
        }
        if let Some(room) = room {
            keys.push(("list_room", room.to_string()));
        }
        if let Some((start, _)) = memory.broken {
            let which = if start == LIST { "list" } else { "records" };
            keys.push(("unreadable", format!("\"{which}\"")));
        }
        let gathered = |base: u64| -> Vec<u8> {
            let mine = outcome.writes.iter().filter(|(a, _)| (*a >= LIST) == (base == LIST));
            let mut all: Vec<u8> = Vec::new();
            for (addr, bytes) in mine {
                let at = (addr - base) as usize;
                all.resize(all.len().max(at + bytes.len()), 0);
                all[at..at + bytes.len()].copy_from_slice(bytes);
            }
            all
        };
        let (record, list) = (gathered(RECORDS), gathered(LIST));
        if !record.is_empty() {
            keys.push(("gets", format!("\"{}\"", hex(&record))));
        } else if cmd.op == Op::Query {
            keys.push(("gets", format!("\"{}\"", hex(&[0; 128]))));
        }
        if !list.is_empty() {
            keys.push(("gets_list", words(&list)));
        }
        self.step("command", &keys);
    }

    /// What the table must hold now: all numbers, and every queue pair as QUERY_QP tells it.
    fn whole_table(&mut self) {
        let _ = writeln!(self.out, "# The whole table.");
        let alive = self.nic.qpns();
        let mut list = Command::new(Op::List);
        list.count = self.nic.len() as u32;
        let mut modelled = list;
        modelled.list_addr = LIST;
        let outcome = self.nic.execute(&modelled, &Memory::default());
        self.command(&list, &Memory::default(), Some(list.count as usize), &outcome);
        for qpn in alive {
            let mut query = Command::new(Op::Query);
            query.handle = qpn;
            let mut modelled = query;
            modelled.attr_addr = RECORDS;
            let outcome = self.nic.execute(&modelled, &Memory::default());
            self.command(&query, &Memory::default(), None, &outcome);
        }
    }
}

/// CREATE_XRCD, which the QP engine does not know.
const CREATE_XRCD: u8 = 0x38;
