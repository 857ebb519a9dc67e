// SPDX-License-Identifier: Apache-2.0
//! Whether a scenario makes sense: names, ranges, order. Nothing runs before all of it holds.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use openrnic_sim::model::DATA_WIDTHS;
use openrnic_spec::{CounterId, MAX_RECORDS, MAX_SGE, Opcode, WqeOpcode};
use toml::Spanned;

use crate::host_fault;
use crate::scenario::{
    AttrDef, AvDef, BadScenario, Fill, HostDef, Modify, Piece, Refused, Scenario, Step, Transfer, What,
};
use crate::value::{QpRef, nearest};

type Result<T = ()> = std::result::Result<T, BadScenario>;

/// The largest table that the device can be built with.
const MAX_QPS: u32 = 1 << 16;

/// The same queue pairs, as (group, first, end).
struct Names<'a> {
    s: &'a Scenario,
    nics: Vec<&'a str>,
    /// Region to NIC and bytes.
    mrs: BTreeMap<&'a str, (&'a str, usize)>,
    pds: BTreeMap<&'a str, &'a str>,
    cqs: BTreeMap<&'a str, &'a str>,
    srqs: BTreeMap<&'a str, &'a str>,
    /// Group to NIC, count and sizes.
    groups: BTreeMap<&'a str, Group<'a>>,
    made: BTreeSet<&'a str>,
    connected: BTreeSet<&'a str>,
}

#[derive(Clone, Copy)]
struct Group<'a> {
    nic: &'a str,
    count: usize,
    send_sge: usize,
    recv_sge: usize,
    max_inline: usize,
}

/// Checks what types cannot.
///
/// # Errors
/// The first mistake.
pub fn check(s: &Scenario) -> Result {
    let mut names = objects(s)?;
    for step in &s.steps {
        names.step(step)?;
    }
    Ok(())
}

fn fail<T>(s: &Scenario, span: Range<usize>, what: impl Into<String>) -> Result<T> {
    Err(s.bad(&span, what))
}

fn find<'n, 'a>(
    s: &Scenario,
    kind: &str,
    name: &Spanned<String>,
    mut known: impl Iterator<Item = &'a str> + Clone + 'n,
) -> Result {
    let wanted = name.get_ref().as_str();
    if known.clone().any(|k| k == wanted) {
        return Ok(());
    }
    let hint = match nearest(wanted, known.clone()) {
        Some(n) => format!("; did you mean `{n}`?"),
        None => match known.next() {
            Some(first) => {
                let all: Vec<&str> = std::iter::once(first).chain(known).take(12).collect();
                format!("; there are {}", all.join(", "))
            }
            None => "; none is defined".to_owned(),
        },
    };
    fail(s, name.span(), format!("there is no {kind} `{wanted}`{hint}"))
}

fn probability(s: &Scenario, name: &str, value: &Option<Spanned<f64>>) -> Result {
    match value {
        Some(v) if !(0.0..=1.0).contains(v.get_ref()) => fail(
            s,
            v.span(),
            format!("{name} = {}: a probability lies between 0 and 1", v.get_ref()),
        ),
        _ => Ok(()),
    }
}

fn one_of(s: &Scenario, what: &str, value: &Option<Spanned<String>>, known: &[&str]) -> Result {
    match value {
        Some(v) if !known.contains(&v.get_ref().as_str()) => fail(
            s,
            v.span(),
            format!("{what} `{}`: one of {} is possible", v.get_ref(), known.join(", ")),
        ),
        _ => Ok(()),
    }
}

fn fill(s: &Scenario, value: &Spanned<Fill>) -> Result {
    match value.get_ref() {
        Fill::Byte(_) => Ok(()),
        Fill::Kind(kind) if ["zero", "random", "count"].contains(&kind.as_str()) => Ok(()),
        Fill::Kind(kind) => fail(
            s,
            value.span(),
            format!("fill `{kind}`: a byte, \"zero\", \"random\" or \"count\" is possible"),
        ),
    }
}

fn host(s: &Scenario, h: &HostDef) -> Result {
    probability(s, "stall", &h.stall)?;
    one_of(s, "split", &h.split, &["never", "always", "random"])?;
    for (what, value, max) in [
        ("max_payload", &h.max_payload, 1024),
        ("max_read_request", &h.max_read_request, 1024),
    ] {
        if let Some(v) = value
            && !((128..=max).contains(v.get_ref()) && v.get_ref().is_power_of_two())
        {
            return fail(
                s,
                v.span(),
                format!("{what} = {}: 128, 256, 512 or 1024 is possible", v.get_ref()),
            );
        }
    }
    match &h.memory_mib {
        Some(v) if !(1..=1024).contains(v.get_ref()) => fail(
            s,
            v.span(),
            format!("memory_mib = {}: 1 to 1024 is possible", v.get_ref()),
        ),
        _ => Ok(()),
    }
}

fn objects(s: &Scenario) -> Result<Names<'_>> {
    let doc = &s.doc;
    if let Some(w) = &doc.sim.data_width
        && !DATA_WIDTHS.contains(w.get_ref())
    {
        let built = DATA_WIDTHS.map(|w| w.to_string()).join(", ");
        return fail(
            s,
            w.span(),
            format!("data_width = {}: {built} are possible", w.get_ref()),
        );
    }
    one_of(s, "capture", &doc.sim.capture, &["senders", "both_ends"])?;
    let w = &doc.wire;
    for (name, value) in [
        ("loss", &w.loss),
        ("duplicate", &w.duplicate),
        ("reorder", &w.reorder),
        ("corrupt", &w.corrupt),
        ("mac_error", &w.mac_error),
        ("congestion", &w.congestion),
    ] {
        probability(s, name, value)?;
    }
    if let Some(rate) = &w.rate_gbps
        && !(*rate.get_ref() > 0.0 && rate.get_ref().is_finite())
    {
        return fail(
            s,
            rate.span(),
            format!("rate_gbps = {}: a rate is above 0", rate.get_ref()),
        );
    }
    let mut names = Names {
        s,
        nics: Vec::new(),
        mrs: BTreeMap::new(),
        pds: BTreeMap::new(),
        cqs: BTreeMap::new(),
        srqs: BTreeMap::new(),
        groups: BTreeMap::new(),
        made: BTreeSet::new(),
        connected: BTreeSet::new(),
    };
    let twice = |name: &Spanned<String>, kind: &str| {
        fail(
            s,
            name.span(),
            format!("there are two {kind} called `{}`", name.get_ref()),
        )
    };
    for nic in doc.nic.iter().map(Spanned::get_ref) {
        if names.nics.contains(&nic.name.get_ref().as_str()) {
            return twice(&nic.name, "NICs");
        }
        names.nics.push(nic.name.get_ref());
        if let Some(h) = &nic.host {
            host(s, h)?;
        }
        if let Some(n) = &nic.command_ring
            && !(n.get_ref().is_power_of_two() && (2..=4096).contains(n.get_ref()))
        {
            return fail(
                s,
                n.span(),
                format!("command_ring = {}: a power of two from 2 to 4096", n.get_ref()),
            );
        }
        if let Some(gids) = &nic.gids
            && gids.len() > 16
        {
            return fail(s, nic.name.span(), format!("{} GIDs: 16 are possible", gids.len()));
        }
        if let Some(pkeys) = &nic.pkeys
            && pkeys.len() > 8
        {
            return fail(s, nic.name.span(), format!("{} P_Keys: 8 are possible", pkeys.len()));
        }
    }
    if names.nics.is_empty() || names.nics.len() > 8 {
        return fail(
            s,
            0..0,
            format!("{} NICs: 1 to 8 [[nic]] tables are possible", names.nics.len()),
        );
    }
    for pd in doc.pd.iter().map(Spanned::get_ref) {
        names.nic(&pd.nic)?;
        if names.pds.insert(pd.name.get_ref(), pd.nic.get_ref()).is_some() {
            return twice(&pd.name, "protection domains");
        }
    }
    for mr in doc.mr.iter().map(Spanned::get_ref) {
        names.nic(&mr.nic)?;
        names.pd(mr.pd.as_ref(), mr.nic.get_ref())?;
        if !(1..=(1 << 28)).contains(mr.bytes.get_ref()) {
            return fail(
                s,
                mr.bytes.span(),
                format!("bytes = {}: 1 to 268435456 is possible", mr.bytes.get_ref()),
            );
        }
        if let Some(f) = &mr.fill {
            fill(s, f)?;
        }
        if names
            .mrs
            .insert(mr.name.get_ref(), (mr.nic.get_ref(), *mr.bytes.get_ref()))
            .is_some()
        {
            return twice(&mr.name, "memory regions");
        }
    }
    for cq in doc.cq.iter().map(Spanned::get_ref) {
        names.nic(&cq.nic)?;
        if !(1..=65_536).contains(cq.entries.get_ref()) {
            return fail(
                s,
                cq.entries.span(),
                format!("entries = {}: 1 to 65536 is possible", cq.entries.get_ref()),
            );
        }
        if names.cqs.insert(cq.name.get_ref(), cq.nic.get_ref()).is_some() {
            return twice(&cq.name, "completion queues");
        }
    }
    for srq in doc.srq.iter().map(Spanned::get_ref) {
        names.nic(&srq.nic)?;
        names.pd(srq.pd.as_ref(), srq.nic.get_ref())?;
        if !(1..1 << 15).contains(srq.max_wr.get_ref()) {
            return fail(
                s,
                srq.max_wr.span(),
                format!("max_wr = {}: 1 to 32767 is possible", srq.max_wr.get_ref()),
            );
        }
        if let Some(n) = &srq.max_sge
            && *n.get_ref() > MAX_SGE
        {
            return fail(
                s,
                n.span(),
                format!("max_sge = {}: at most {MAX_SGE} is possible", n.get_ref()),
            );
        }
        if names.srqs.insert(srq.name.get_ref(), srq.nic.get_ref()).is_some() {
            return twice(&srq.name, "shared receive queues");
        }
    }
    for qp in doc.qp.iter().map(Spanned::get_ref) {
        names.nic(&qp.nic)?;
        if let Some(srq) = &qp.srq {
            let its = names.srq(srq)?;
            names.same_nic("shared receive queue", srq, its, qp.nic.get_ref())?;
        }
        names.pd(qp.pd.as_ref(), qp.nic.get_ref())?;
        for cq in [&qp.cq, &qp.recv_cq].into_iter().flatten() {
            names.cq(cq, qp.nic.get_ref())?;
        }
        one_of(s, "contiguous", &qp.contiguous, &["prefer", "require", "no"])?;
        let count = qp.count.as_ref().map_or(1, |c| *c.get_ref());
        if !(1..=MAX_QPS).contains(&count) {
            let span = qp.count.as_ref().map_or(qp.name.span(), Spanned::span);
            return fail(s, span, format!("count = {count}: 1 to {MAX_QPS} is possible"));
        }
        if let Some(a) = &qp.align_log2
            && *a.get_ref() > 15
        {
            return fail(
                s,
                a.span(),
                format!("align_log2 = {}: 0 to 15 is possible", a.get_ref()),
            );
        }
        if let Some(q) = &qp.qpn {
            if count != 1 {
                return fail(s, q.span(), "qpn goes with a group of one");
            }
            if *q.get_ref() > 0xff_ffff {
                return fail(s, q.span(), format!("qpn = {:#x}: 24 bits are possible", q.get_ref()));
            }
        }
        for (what, value) in [("max_send_sge", qp.max_send_sge), ("max_recv_sge", qp.max_recv_sge)] {
            if let Some(v) = value
                && v > MAX_SGE
            {
                return fail(
                    s,
                    qp.name.span(),
                    format!("{what} = {v}: at most {MAX_SGE} is possible"),
                );
            }
        }
        let group = Group {
            nic: qp.nic.get_ref(),
            count: count as usize,
            send_sge: qp.max_send_sge.unwrap_or(4) as usize,
            recv_sge: qp.max_recv_sge.unwrap_or(4) as usize,
            max_inline: qp.max_inline.unwrap_or(0) as usize,
        };
        if names.groups.insert(qp.name.get_ref(), group).is_some() {
            return twice(&qp.name, "groups of queue pairs");
        }
    }
    Ok(names)
}

impl<'a> Names<'a> {
    fn fail<T>(&self, span: Range<usize>, what: impl Into<String>) -> Result<T> {
        fail(self.s, span, what)
    }

    fn nic(&self, name: &Spanned<String>) -> Result {
        find(self.s, "NIC", name, self.nics.iter().copied())
    }

    fn same_nic(&self, kind: &str, name: &Spanned<String>, its: &str, nic: &str) -> Result {
        if its == nic {
            return Ok(());
        }
        self.fail(
            name.span(),
            format!("{kind} `{}` belongs to NIC `{its}`, not to `{nic}`", name.get_ref()),
        )
    }

    fn pd(&self, name: Option<&Spanned<String>>, nic: &str) -> Result {
        let Some(name) = name else { return Ok(()) };
        find(self.s, "protection domain", name, self.pds.keys().copied())?;
        self.same_nic(
            "protection domain",
            name,
            self.pds.get(name.get_ref().as_str()).copied().unwrap_or(""),
            nic,
        )
    }

    fn cq(&self, name: &Spanned<String>, nic: &str) -> Result {
        find(self.s, "completion queue", name, self.cqs.keys().copied())?;
        self.same_nic(
            "completion queue",
            name,
            self.cqs.get(name.get_ref().as_str()).copied().unwrap_or(""),
            nic,
        )
    }

    /// The NIC of a shared receive queue.
    fn srq(&self, name: &Spanned<String>) -> Result<&'a str> {
        find(self.s, "shared receive queue", name, self.srqs.keys().copied())?;
        Ok(self.srqs.get(name.get_ref().as_str()).copied().unwrap_or(""))
    }

    fn mr(&self, name: &Spanned<String>) -> Result<(&'a str, usize)> {
        find(self.s, "memory region", name, self.mrs.keys().copied())?;
        Ok(self.mrs.get(name.get_ref().as_str()).copied().unwrap_or(("", 0)))
    }

    fn mr_range(&self, name: &Spanned<String>, offset: usize, bytes: Option<usize>) -> Result<usize> {
        let (_, length) = self.mr(name)?;
        let bytes = bytes.unwrap_or(length.saturating_sub(offset));
        match offset.checked_add(bytes) {
            Some(end) if end <= length && bytes > 0 => Ok(bytes),
            _ => self.fail(
                name.span(),
                format!(
                    "{bytes} bytes from {offset} on: memory region `{}` has {length} bytes",
                    name.get_ref()
                ),
            ),
        }
    }

    /// A reference to queue pairs that exist at this step.
    fn qps(&self, span: Range<usize>, r: &QpRef) -> Result<(Group<'a>, usize)> {
        let (group, n) = self.group(span.clone(), r)?;
        if !self.made.contains(r.group.as_str()) {
            return self.fail(
                span,
                format!(
                    "the queue pairs of `{}` do not exist yet: a step `create` or `install` makes them",
                    r.group
                ),
            );
        }
        Ok((group, n))
    }

    fn group(&self, span: Range<usize>, r: &QpRef) -> Result<(Group<'a>, usize)> {
        let name = Spanned::new(span.clone(), r.group.clone());
        find(self.s, "group of queue pairs", &name, self.groups.keys().copied())?;
        let Some(group) = self.groups.get(r.group.as_str()).copied() else {
            return self.fail(span, "unknown group");
        };
        let range = r.range.clone().unwrap_or(0..group.count);
        if range.end > group.count {
            return self.fail(
                span,
                format!("`{r}`: the group has {} queue pairs, counted from 0", group.count),
            );
        }
        Ok((group, range.len()))
    }

    fn spanned(&self, r: &Spanned<QpRef>) -> Result<(Group<'a>, usize)> {
        self.qps(r.span(), r.get_ref())
    }

    fn av(&self, av: &AvDef) -> Result {
        if let Some(nic) = &av.nic {
            self.nic(nic)?;
        }
        if let Some(f) = &av.flow_label
            && *f.get_ref() > 0xf_ffff
        {
            return self.fail(
                f.span(),
                format!("flow_label = {:#x}: 20 bits are possible", f.get_ref()),
            );
        }
        if let Some(v) = &av.vlan
            && *v.get_ref() > 0x7fff
        {
            return self.fail(v.span(), format!("vlan = {:#x}: PCP and ID have 15 bits", v.get_ref()));
        }
        Ok(())
    }

    fn attrs(&self, span: &Range<usize>, attrs: &AttrDef) -> Result {
        if attrs.path_mtu.is_some() && attrs.path_mtu_code.is_some() {
            return self.fail(
                span.clone(),
                "path_mtu and path_mtu_code are two ways to give one attribute",
            );
        }
        if let (Some(dest), Some(_)) = (&attrs.dest, attrs.dest_qpn) {
            return self.fail(dest.span(), "dest and dest_qpn are two ways to give one attribute");
        }
        if let Some(m) = &attrs.path_mig_state
            && *m.get_ref() > 3
        {
            return self.fail(
                m.span(),
                format!("path_mig_state = {}: 2 bits are possible", m.get_ref()),
            );
        }
        if let Some(dest) = &attrs.dest {
            let (_, n) = self.spanned(dest)?;
            if n != 1 {
                return self.fail(
                    dest.span(),
                    format!("`{}` names {n} queue pairs: a destination is one", dest.get_ref()),
                );
            }
        }
        attrs.av.as_ref().map_or(Ok(()), |av| self.av(av))
    }

    fn refused(&self, refused: &Option<Refused>, fails: bool, span: &Range<usize>) -> Result {
        let Some(refused) = refused else { return Ok(()) };
        if fails {
            return self.fail(
                span.clone(),
                "`refused` and `fails` exclude each other: a refusal has the status GATE_REFUSED",
            );
        }
        if refused.rule.is_none() {
            return self.fail(span.clone(), "`refused` needs a rule: { rule = \"MISSING_ATTRS\" }");
        }
        match &refused.offender {
            Some(offender) => self.group(offender.span(), offender.get_ref()).map(drop),
            None => Ok(()),
        }
    }

    fn pieces(&self, pieces: &[Piece], nic: &str) -> Result {
        for piece in pieces {
            let (its, _) = self.mr(&piece.mr)?;
            self.same_nic("memory region", &piece.mr, its, nic)?;
        }
        Ok(())
    }

    fn positive(&self, what: &str, value: &Option<Spanned<u32>>) -> Result {
        match value {
            Some(v) if !(1..=100_000).contains(v.get_ref()) => {
                self.fail(v.span(), format!("{what} = {}: 1 to 100000 is possible", v.get_ref()))
            }
            _ => Ok(()),
        }
    }

    fn step(&mut self, step: &'a Step) -> Result {
        let s = self.s;
        let span = &step.span;
        match &step.what {
            What::Create(c) | What::Install(c) => {
                self.group(
                    c.qps.span(),
                    &QpRef {
                        group: c.qps.get_ref().clone(),
                        range: None,
                    },
                )?;
                if self.made.contains(c.qps.get_ref().as_str()) {
                    return self.fail(
                        c.qps.span(),
                        format!("the queue pairs of `{}` exist already", c.qps.get_ref()),
                    );
                }
                if step.name == "create" && (c.attrs.is_some() || c.mask.is_some() || c.refused.is_some()) {
                    return self.fail(
                        span.clone(),
                        "a `create` has no attributes: `install` creates and moves to INIT",
                    );
                }
                if let Some(attrs) = &c.attrs {
                    self.attrs(span, attrs)?;
                }
                self.refused(&c.refused, c.fails.is_some(), span)?;
                if c.refused.is_none() && c.fails.is_none() {
                    self.made.insert(c.qps.get_ref());
                }
            }
            What::Modify(m) => self.modify(span, m)?,
            What::Connect(c) => {
                let (_, na) = self.spanned(&c.a)?;
                let (_, nb) = self.spanned(&c.b)?;
                if na != nb {
                    return self.fail(
                        c.b.span(),
                        format!("`a` names {na} queue pairs, `b` {nb}: each needs a peer"),
                    );
                }
                if let Some(psn) = &c.psn
                    && *psn.get_ref() > 0xff_ffff
                {
                    return self.fail(psn.span(), format!("psn = {:#x}: 24 bits are possible", psn.get_ref()));
                }
                self.connected.insert(&c.a.get_ref().group);
                self.connected.insert(&c.b.get_ref().group);
            }
            What::Transfer(t) => self.transfer(t)?,
            What::PostSend(p) => {
                let (group, _) = self.spanned(&p.qps)?;
                self.pieces(&p.sg, group.nic)?;
                for region in p.remote.iter().chain(&p.invalidate) {
                    self.mr(region)?;
                }
                if p.inline.is_some() && !p.sg.is_empty() {
                    return self.fail(span.clone(), "`sg` and `inline` exclude each other");
                }
                self.positive("count", &p.count)?;
                one_of(
                    s,
                    "fails",
                    &p.fails,
                    &["full", "state", "sges", "opcode", "inline", "atomic", "data_path"],
                )?;
            }
            What::PostRecv(p) => {
                let (group, _) = self.spanned(&p.qps)?;
                self.pieces(&p.sg, group.nic)?;
                self.positive("count", &p.count)?;
                one_of(s, "fails", &p.fails, &["full", "state", "sges", "shared", "data_path"])?;
            }
            What::PostSrq(p) => {
                let nic = self.srq(&p.srq)?;
                self.pieces(&p.sg, nic)?;
                self.positive("count", &p.count)?;
                one_of(s, "fails", &p.fails, &["full", "sges"])?;
            }
            What::SrqLimit(l) => drop(self.srq(&l.srq)?),
            What::ExpectSrq(e) => {
                self.srq(&e.srq)?;
                if e.waiting.is_none() && e.limit.is_none() {
                    return self.fail(span.clone(), "nothing is expected: give `waiting` or `limit`");
                }
            }
            What::DestroySrq(d) => drop(self.srq(&d.srq)?),
            What::Completions(c) => {
                match (&c.cq, &c.nic) {
                    (Some(cq), None) => find(s, "completion queue", cq, self.cqs.keys().copied())?,
                    (None, Some(nic)) => self.nic(nic)?,
                    _ => return self.fail(span.clone(), "name either the `cq` or the `nic` (for its own queue)"),
                }
                if let Some(qps) = &c.qps {
                    self.group(qps.span(), qps.get_ref())?;
                }
                if let Some(region) = &c.invalidated {
                    self.mr(region)?;
                }
            }
            What::ExpectQp(e) => {
                self.spanned(&e.qps)?;
                if let Some(attrs) = &e.attrs {
                    self.attrs(span, attrs)?;
                }
                if e.state.is_none() && e.attrs.is_none() && e.fails.is_none() {
                    return self.fail(span.clone(), "nothing is expected: give `state`, `attrs` or `fails`");
                }
            }
            What::ExpectMemory(e) => {
                let bytes = self.mr_range(&e.mr, e.offset, e.bytes)?;
                let ways = [e.same_as.is_some(), e.byte.is_some(), e.hex.is_some()];
                if ways.iter().filter(|w| **w).count() != 1 {
                    return self.fail(span.clone(), "give one of `same_as`, `byte` and `hex`");
                }
                if let Some(other) = &e.same_as {
                    self.mr_range(other, e.same_offset, Some(bytes))?;
                }
                if let Some(hex) = &e.hex
                    && e.bytes.is_some_and(|b| b != hex.0.len())
                {
                    return self.fail(
                        span.clone(),
                        format!("`hex` has {} bytes, `bytes` says {bytes}", hex.0.len()),
                    );
                }
            }
            What::ExpectFrames(e) => {
                self.nic(&e.nic)?;
                one_of(s, "direction", &e.direction, &["sent", "received"])?;
                for name in e.opcodes.keys() {
                    find(s, "packet opcode", name, Opcode::ALL.iter().map(|o| o.name()))?;
                }
            }
            What::ExpectCounters(e) => {
                self.nic(&e.nic)?;
                for name in e.counters.keys() {
                    find(s, "counter", name, CounterId::ALL.iter().map(|c| c.name()))?;
                }
            }
            What::ExpectEvent(e) => {
                self.nic(&e.nic)?;
                if let Some(qp) = &e.qp {
                    self.group(qp.span(), qp.get_ref())?;
                }
                if let Some(srq) = &e.srq {
                    let its = self.srq(srq)?;
                    self.same_nic("shared receive queue", srq, its, e.nic.get_ref())?;
                }
            }
            What::Inject(i) => {
                self.nic(&i.nic)?;
                match (&i.hex, &i.to) {
                    (Some(_), None) => {}
                    (None, Some(to)) => {
                        let (group, n) = self.spanned(to)?;
                        if n != 1 {
                            return self.fail(
                                to.span(),
                                format!("`{}` names {n} queue pairs: a frame goes to one", to.get_ref()),
                            );
                        }
                        self.same_nic(
                            "the group",
                            &Spanned::new(to.span(), to.get_ref().group.clone()),
                            group.nic,
                            i.nic.get_ref(),
                        )?;
                        if !self.connected.contains(to.get_ref().group.as_str()) {
                            return self.fail(
                                to.span(),
                                "a frame to a queue pair needs a peer: connect it first, or give `hex`",
                            );
                        }
                    }
                    _ => {
                        return self.fail(
                            span.clone(),
                            "give either the whole frame as `hex` or a queue pair as `to`",
                        );
                    }
                }
                if let Some(p) = &i.payload
                    && *p.get_ref() > 4096
                {
                    return self.fail(p.span(), format!("payload = {}: at most 4096", p.get_ref()));
                }
                if let Some(v) = &i.tver
                    && *v.get_ref() > 15
                {
                    return self.fail(v.span(), format!("tver = {}: 4 bits are possible", v.get_ref()));
                }
                if let Some(c) = &i.cut
                    && *c.get_ref() == 0
                {
                    return self.fail(c.span(), "cut = 0: at least one byte must be left");
                }
                self.positive("count", &i.count)?;
            }
            What::Disturb(d) => {
                self.nic(&d.from)?;
                let actions = ["drop", "duplicate", "delay", "flip_bit", "mac_error", "mark_congestion"];
                if !actions.contains(&d.action.get_ref().as_str()) {
                    let what = format!(
                        "action `{}`: one of {} is possible",
                        d.action.get_ref(),
                        actions.join(", ")
                    );
                    return self.fail(d.action.span(), what);
                }
                if d.action.get_ref() == "delay" && d.delay_ns.is_none() {
                    return self.fail(d.action.span(), "`delay` needs `delay_ns`");
                }
                if d.action.get_ref() == "flip_bit" && d.bit.is_none() {
                    return self.fail(d.action.span(), "`flip_bit` needs `bit`");
                }
            }
            What::HostFault(f) => {
                self.nic(&f.nic)?;
                let fault = Some(f.fault.clone());
                one_of(s, "fault", &fault, &host_fault::FAULTS)?;
                one_of(s, "queue", &f.queue, &host_fault::QUEUES)?;
                if let Some(what) = f.mistake() {
                    return self.fail(span.clone(), what);
                }
                if let Some(mr) = &f.mr {
                    self.mr_range(mr, f.offset, f.bytes)?;
                    let (its, _) = self.mr(mr)?;
                    self.same_nic("memory region", mr, its, f.nic.get_ref())?;
                }
                if let Some(qp) = &f.qp {
                    let (group, n) = self.spanned(qp)?;
                    if n != 1 || group.nic != f.nic.get_ref() {
                        return self.fail(qp.span(), "the work requests of one queue pair of the NIC");
                    }
                }
            }
            What::Wait(w) => match (w.cycles, w.us) {
                (Some(1..=100_000_000), None) | (None, Some(1..=1_000_000)) => {}
                (Some(_), None) | (None, Some(_)) => {
                    return self.fail(span.clone(), "1 to 100000000 cycles or 1 to 1000000 us are possible");
                }
                _ => return self.fail(span.clone(), "give either `cycles` or `us`"),
            },
            What::Doorbell(d) => {
                self.nic(&d.nic)?;
                one_of(s, "queue", &d.queue, &["send", "recv"])?;
                if let Some(p) = &d.page
                    && *p.get_ref() >= openrnic_spec::NUM_UAR
                {
                    return self.fail(
                        p.span(),
                        format!("page = {}: there are {}", p.get_ref(), openrnic_spec::NUM_UAR),
                    );
                }
                if let Some(o) = &d.offset
                    && (*o.get_ref() % 8 != 0 || *o.get_ref() >= 4096)
                {
                    return self.fail(
                        o.span(),
                        format!("offset = {}: a multiple of 8 below 4096", o.get_ref()),
                    );
                }
                if d.queue.is_some() == d.offset.is_some() {
                    return self.fail(span.clone(), "give either `queue` or `offset`");
                }
                match (&d.qp, d.qpn) {
                    (Some(qp), None) => {
                        let (group, n) = self.spanned(qp)?;
                        if n != 1 || group.nic != d.nic.get_ref() {
                            return self.fail(qp.span(), "a doorbell is rung for one queue pair of the NIC");
                        }
                    }
                    (None, Some(qpn)) if qpn <= 0xff_ffff => {}
                    _ => return self.fail(span.clone(), "give either `qp` or `qpn` (24 bits)"),
                }
            }
            What::Command(c) => {
                self.nic(&c.nic)?;
                if let Some((span, what)) = c.mistake() {
                    return self.fail(span, what);
                }
            }
            What::Fill(f) => {
                self.mr_range(&f.mr, f.offset, f.bytes)?;
                fill(s, &f.with)?;
            }
            What::Destroy(d) => {
                self.spanned(&d.qps)?;
                let group = d.qps.get_ref().group.as_str();
                let whole = d.qps.get_ref().range.is_none();
                if d.fails.is_none() && whole {
                    // Gone for `create`; still known, so that stale use can be shown.
                    self.connected.remove(group);
                }
            }
            What::Deregister(d) => {
                self.mr(&d.mr)?;
            }
            What::ResetNic(r) => {
                self.nic(&r.nic)?;
                let gone: Vec<&str> = self
                    .groups
                    .iter()
                    .filter(|(_, g)| g.nic == r.nic.get_ref())
                    .map(|(n, _)| *n)
                    .collect();
                for group in gone {
                    self.made.remove(group);
                    self.connected.remove(group);
                }
            }
            What::Mark(_) => {}
        }
        Ok(())
    }

    fn modify(&self, span: &Range<usize>, m: &Modify) -> Result {
        let mut total = 0;
        let mut nic = None;
        for r in &m.qps.get_ref().0 {
            let (group, n) = self.qps(m.qps.span(), r)?;
            total += n;
            if *nic.get_or_insert(group.nic) != group.nic {
                return self.fail(m.qps.span(), "a batch belongs to one NIC");
            }
        }
        if total == 0 {
            return self.fail(m.qps.span(), "no queue pair is named");
        }
        if let Some(attrs) = &m.attrs {
            self.attrs(span, attrs)?;
        }
        if let Some(each) = &m.each {
            if m.attrs.is_some() || m.one_by_one {
                return self.fail(each.span(), "`each` excludes `attrs` and `one_by_one`");
            }
            if each.get_ref().len() != total || total > MAX_RECORDS as usize {
                let what = format!(
                    "{} records for {total} queue pairs: one each, {MAX_RECORDS} at most",
                    each.get_ref().len()
                );
                return self.fail(each.span(), what);
            }
            for attrs in each.get_ref() {
                self.attrs(&each.span(), attrs)?;
            }
        }
        self.refused(&m.refused, m.fails.is_some(), span)
    }

    fn transfer(&self, t: &Transfer) -> Result {
        let (from, n) = self.spanned(&t.from)?;
        let (to, m) = self.spanned(&t.to)?;
        if n != m {
            return self.fail(
                t.to.span(),
                format!("`from` names {n} queue pairs, `to` {m}: each needs its peer"),
            );
        }
        let op = t.op.get_ref().0;
        use WqeOpcode::{RdmaRead, RdmaWrite, RdmaWriteWithImm, Send, SendWithImm};
        if !matches!(op, Send | SendWithImm | RdmaWrite | RdmaWriteWithImm | RdmaRead) {
            let what = format!("a transfer by {op}: SEND, SEND_WITH_IMM, RDMA_WRITE, RDMA_WRITE_WITH_IMM or RDMA_READ");
            return self.fail(t.op.span(), what);
        }
        for bytes in t.bytes.get_ref() {
            if *bytes > 1 << 24 {
                return self.fail(
                    t.bytes.span(),
                    format!("{bytes} bytes in one message: at most 16777216 here"),
                );
            }
            if t.inline && *bytes > from.max_inline {
                let what = format!("{bytes} bytes inline: the group has max_inline = {}", from.max_inline);
                return self.fail(t.bytes.span(), what);
            }
        }
        if t.inline && op == RdmaRead {
            return self.fail(t.op.span(), "a READ has no inline data");
        }
        if t.bytes.get_ref().is_empty() {
            return self.fail(t.bytes.span(), "no message: give one length or more");
        }
        for (what, value, max) in [
            ("sges", &t.sges, from.send_sge),
            ("recv_sges", &t.recv_sges, to.recv_sge),
        ] {
            if let Some(v) = value
                && !(1..=max).contains(v.get_ref())
            {
                return self.fail(v.span(), format!("{what} = {}: the group has 1 to {max}", v.get_ref()));
            }
        }
        match &t.misalign {
            Some(v) if *v.get_ref() > 63 => self.fail(
                v.span(),
                format!("misalign = {}: 0 to 63 bytes are possible", v.get_ref()),
            ),
            _ => Ok(()),
        }
    }
}
