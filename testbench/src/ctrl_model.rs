// SPDX-License-Identifier: Apache-2.0
//! What the control block must answer to a command: an independent model of its objects.
#![allow(clippy::expect_used, clippy::indexing_slicing)]

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::ctrl_bench::{Cmd, Invalidate, Mr, NUM_CQ, NUM_MR, Ref};
use crate::ctrl_srq::NUM_SRQ;

/// CmdStatus.
#[allow(missing_docs)]
pub mod status {
    pub const OK: u8 = 0;
    pub const BAD_OPCODE: u8 = 1;
    pub const RESERVED_SET: u8 = 2;
    pub const BAD_HANDLE: u8 = 3;
    pub const BAD_PARAM: u8 = 4;
    pub const NO_RESOURCES: u8 = 5;
    pub const IN_USE: u8 = 6;
    pub const UNSUPPORTED: u8 = 10;
    pub const FATAL: u8 = 12;
    pub const TOO_SMALL: u8 = 14;
    pub const IN_ERROR: u8 = 15;
}
use status::*;

/// Protection domains of the device.
pub const NUM_PD: u32 = 256;
/// The commands that exist.
pub const OPCODES: [u8; 28] = [
    0x01, 0x02, 0x08, 0x09, 0x0a, 0x10, 0x11, 0x18, 0x19, 0x1a, 0x20, 0x21, 0x28, 0x29, 0x40, 0x41, 0x42, 0x43, 0x44,
    0x45, 0x30, 0x31, 0x32, 0x33, 0x38, 0x39, 0x22, 0x23,
];
/// XRC domains of the device.
pub const NUM_XRCD: u32 = 16;

/// Bits of a command that may be set: those that the command reads.
pub fn readable(opcode: u8) -> [u8; 64] {
    let mut mask = [0; 64];
    let mut allow = |from: usize, to: usize| mask[from..=to].fill(0xff);
    allow(0, 0);
    allow(2, 3);
    let flags = match opcode {
        0x01 | 0x02 => {
            allow(56, 63);
            0
        }
        0x08 => {
            allow(4, 14);
            mask[15] = 1;
            0
        }
        0x09 => {
            allow(4, 7);
            allow(16, 31);
            0
        }
        0x0a => {
            allow(4, 9);
            0
        }
        0x10 | 0x38 => 0,
        0x11 | 0x19 | 0x21 | 0x29 | 0x31 | 0x33 | 0x39 => {
            allow(4, 7);
            0
        }
        0x18 => {
            allow(8, 13);
            allow(16, 43);
            0
        }
        0x1a => {
            allow(4, 11);
            allow(13, 13);
            allow(16, 43);
            mask[14] = 7;
            0
        }
        0x20 => {
            allow(8, 10);
            allow(16, 23);
            0
        }
        0x22 => {
            allow(4, 7);
            allow(12, 15);
            0
        }
        0x23 | 0x28 => {
            allow(4, 8);
            allow(16, 23);
            0
        }
        0x30 => {
            allow(8, 11);
            allow(16, 23);
            0
        }
        0x32 => {
            allow(4, 7);
            allow(12, 13);
            0
        }
        0x40 => {
            allow(4, 22);
            allow(24, 55);
            0x4f
        }
        0x41 => {
            allow(4, 10);
            allow(48, 63);
            0x30
        }
        0x42 => {
            allow(4, 10);
            allow(56, 63);
            0
        }
        0x43 => {
            allow(4, 10);
            allow(48, 55);
            0x10
        }
        0x44 => {
            allow(4, 22);
            allow(24, 63);
            0x4f
        }
        0x45 => {
            allow(4, 10);
            allow(12, 13);
            allow(48, 55);
            mask[11] = 0x0f;
            mask[23] = 0x3f;
            0
        }
        _ => return [0; 64],
    };
    mask[1] = flags;
    mask
}

/// Free numbers: new ones first, then those given back, oldest first.
#[derive(Debug, Clone)]
struct Free {
    fresh: std::ops::Range<u32>,
    used: VecDeque<u32>,
}

impl Free {
    fn new(fresh: std::ops::Range<u32>) -> Self {
        Self {
            fresh,
            used: VecDeque::new(),
        }
    }

    fn take(&mut self) -> Option<u32> {
        self.fresh.next().or_else(|| self.used.pop_front())
    }
}

/// The objects of a device.
#[derive(Debug, Clone)]
pub struct Objects {
    pd_free: Free,
    cq_free: Free,
    mr_free: Free,
    srq_free: Free,
    xrcd_free: Free,
    /// PDs and what refers to them.
    pds: BTreeMap<u32, u32>,
    /// CQs: event queue, QPs that send, QPs that receive.
    cqs: BTreeMap<u32, (u32, u32, u32)>,
    /// SRQs: PD, QPs that receive from them.
    srqs: BTreeMap<u32, (u32, u32)>,
    /// XRC domains and the QPs in them.
    xrcds: BTreeMap<u32, u32>,
    /// Event queues.
    eqs: BTreeMap<u32, ()>,
    /// Regions by index.
    mrs: BTreeMap<u32, Mr>,
    /// Of these, keys under which nothing is registered at present.
    idle: BTreeSet<u32>,
}

impl Default for Objects {
    fn default() -> Self {
        Self {
            pd_free: Free::new(0..NUM_PD),
            cq_free: Free::new(0..NUM_CQ),
            mr_free: Free::new(1..NUM_MR),
            srq_free: Free::new(0..NUM_SRQ),
            xrcd_free: Free::new(0..NUM_XRCD),
            srqs: BTreeMap::new(),
            xrcds: BTreeMap::new(),
            pds: BTreeMap::new(),
            cqs: BTreeMap::new(),
            eqs: BTreeMap::new(),
            mrs: BTreeMap::new(),
            idle: BTreeSet::new(),
        }
    }
}

/// Bits 0 to 4: local write, remote write, remote read, remote atomic, window binding.
fn access_fits(access: u8) -> bool {
    let needs_local_write = access & 0b1010 != 0;
    access < 32 && (!needs_local_write || access & 1 == 1)
}

/// What is wrong with the memory behind a region.
fn check_place(mr: &Mr, idle: bool, window: bool) -> Result<(), (u8, u32)> {
    check(mr.log_page == 0 || (12..=30).contains(&mr.log_page), BAD_PARAM, 13)?;
    let long = if window {
        mr.length == 0
    } else {
        (1..=1 << 48).contains(&mr.length)
    };
    check(idle || long, BAD_PARAM, 24)?;
    let ends = |from: u64| u128::from(from) + u128::from(mr.length) <= 1 << 64;
    check(idle || ends(mr.va), BAD_PARAM, 16)?;
    let list = mr.log_page != 0;
    let placed = if list {
        mr.host_addr.is_multiple_of(64)
    } else {
        idle || ends(mr.host_addr)
    };
    check(placed, BAD_PARAM, 32)?;
    check(mr.page_offset < 1 << mr.log_page, BAD_PARAM, 40)
}

type Verdict = Result<u32, (u8, u32)>;

fn le(cmd: &Cmd, at: usize, len: usize) -> u64 {
    (0..len).rev().fold(0, |v, i| v << 8 | u64::from(cmd.0[at + i]))
}

fn check(ok: bool, status: u8, detail: u32) -> Result<(), (u8, u32)> {
    if ok { Ok(()) } else { Err((status, detail)) }
}

impl Objects {
    /// Handles that exist: PDs, CQs, keys, event queues.
    pub fn handles(&self) -> [Vec<u32>; 4] {
        [
            self.pds.keys().copied().collect(),
            self.cqs.keys().copied().collect(),
            self.mrs.iter().map(|(i, m)| i << 8 | u32::from(m.key)).collect(),
            self.eqs.keys().copied().collect(),
        ]
    }

    /// Handles that exist: SRQs, XRC domains.
    pub fn shared(&self) -> [Vec<u32>; 2] {
        [
            self.srqs.keys().copied().collect(),
            self.xrcds.keys().copied().collect(),
        ]
    }

    /// Regions by key.
    pub fn region(&self, key: u32) -> Option<&Mr> {
        self.mrs.get(&(key >> 8)).filter(|m| u32::from(m.key) == key & 0xff)
    }

    /// QPs begin or cease to use their objects.
    pub fn refer(&mut self, r: &Ref) {
        let add = |v: &mut u32| *v = if r.inc { *v + r.n } else { *v - r.n };
        let domains = if r.in_xrcd { &mut self.xrcds } else { &mut self.pds };
        add(domains.get_mut(&u32::from(r.pd)).expect("a domain that exists"));
        if let Some((_, n)) = self.srqs.get_mut(&u32::from(r.srq)) {
            add(n);
        }
        if let Some((_, s, _)) = self.cqs.get_mut(&u32::from(r.send_cq)) {
            add(s);
        }
        if let Some((_, _, s)) = self.cqs.get_mut(&u32::from(r.recv_cq)) {
            add(s);
        }
    }

    /// Status, handle and detail that a command gets (of a QP command: only whether it gets to the QP engine);
    /// a command that is not refused is done.
    pub fn judge(&mut self, cmd: &Cmd) -> (u8, u32, u32) {
        match self.run(cmd) {
            Ok(handle) => (OK, handle, 0),
            Err((status, detail)) => (status, 0, detail),
        }
    }

    fn run(&mut self, cmd: &Cmd) -> Verdict {
        let op = cmd.0[0];
        check(OPCODES.contains(&op), BAD_OPCODE, 0)?;
        let mask = readable(op);
        check((0..64).all(|i| cmd.0[i] & !mask[i] == 0), RESERVED_SET, 0)?;
        let handle = le(cmd, 4, 4) as u32;
        match op {
            0x01 | 0x02 => check(cmd.0[56].is_multiple_of(64), BAD_PARAM, 56)?,
            0x08 => {
                check(handle == 1, BAD_HANDLE, 4)?;
                check(le(cmd, 8, 6) != 0 && cmd.0[8] & 1 == 0, BAD_PARAM, 8)?;
                check((1..=5).contains(&cmd.0[14]), BAD_PARAM, 14)?;
            }
            0x09 => {
                check(handle < 16, BAD_HANDLE, 4)?;
            }
            0x0a => {
                check(handle < 8, BAD_HANDLE, 4)?;
                check(le(cmd, 8, 2) != 0x8000, BAD_PARAM, 8)?;
            }
            0x10 => {
                let pd = self.pd_free.take().ok_or((NO_RESOURCES, 0))?;
                self.pds.insert(pd, 0);
                return Ok(pd);
            }
            0x11 => {
                let users = self.pds.get(&handle).ok_or((BAD_HANDLE, 4))?;
                check(*users == 0, IN_USE, 0)?;
                self.pds.remove(&handle);
                self.pd_free.used.push_back(handle);
            }
            0x18 => return self.create_mr(cmd),
            0x19 => {
                let named = self.mrs.get(&(handle >> 8));
                let mr = named.filter(|m| m.kind != 0 || u32::from(m.key) == handle & 0xff);
                let pd = u32::from(mr.ok_or((BAD_HANDLE, 4))?.pd);
                self.mrs.remove(&(handle >> 8));
                self.idle.remove(&(handle >> 8));
                self.mr_free.used.push_back(handle >> 8);
                *self.pds.get_mut(&pd).expect("a region's PD exists") -= 1;
            }
            0x1a => return self.rereg_mr(cmd, handle),
            0x20 => {
                let [log_size, eq, uar] = [cmd.0[8], cmd.0[9], cmd.0[10]];
                check((1..=16).contains(&log_size), BAD_PARAM, 8)?;
                check(self.eqs.contains_key(&u32::from(eq)), BAD_HANDLE, 9)?;
                check(uar < 32, BAD_PARAM, 10)?;
                check(cmd.0[16].is_multiple_of(64), BAD_PARAM, 16)?;
                let cq = self.cq_free.take().ok_or((NO_RESOURCES, 0))?;
                self.cqs.insert(cq, (u32::from(eq), 0, 0));
                return Ok(cq);
            }
            0x21 => {
                let (_, senders, receivers) = self.cqs.get(&handle).ok_or((BAD_HANDLE, 4))?;
                check(*senders == 0 && *receivers == 0, IN_USE, 0)?;
                self.cqs.remove(&handle);
                self.cq_free.used.push_back(handle);
            }
            0x22 => {
                check(self.cqs.contains_key(&handle), BAD_HANDLE, 4)?;
                check(le(cmd, 14, 2) < 4096, BAD_PARAM, 14)?;
            }
            // (Nothing waits in the queues of this model.)
            0x23 => {
                check(self.cqs.contains_key(&handle), BAD_HANDLE, 4)?;
                check((1..=16).contains(&cmd.0[8]), BAD_PARAM, 8)?;
                check(cmd.0[16].is_multiple_of(64), BAD_PARAM, 16)?;
            }
            0x30 => {
                let pd = le(cmd, 8, 2) as u32;
                check(self.pds.contains_key(&pd), BAD_HANDLE, 8)?;
                check(cmd.0[10] < 32, BAD_PARAM, 10)?;
                check(cmd.0[11] & 15 != 0 && cmd.0[11] >> 4 <= 4, BAD_PARAM, 11)?;
                check(cmd.0[16].is_multiple_of(64), BAD_PARAM, 16)?;
                let srq = self.srq_free.take().ok_or((NO_RESOURCES, 0))?;
                *self.pds.get_mut(&pd).expect("it exists") += 1;
                self.srqs.insert(srq, (pd, 0));
                return Ok(srq);
            }
            0x31 => {
                let (pd, users) = *self.srqs.get(&handle).ok_or((BAD_HANDLE, 4))?;
                check(users == 0, IN_USE, 0)?;
                *self.pds.get_mut(&pd).expect("an SRQ's PD exists") -= 1;
                self.srqs.remove(&handle);
                self.srq_free.used.push_back(handle);
            }
            0x32 => check(self.srqs.contains_key(&handle), BAD_HANDLE, 4)?,
            0x33 => {
                check(self.srqs.contains_key(&handle), BAD_HANDLE, 4)?;
                return Ok(u32::from(crate::ctrl_srq::LEFT));
            }
            0x38 => {
                let xrcd = self.xrcd_free.take().ok_or((NO_RESOURCES, 0))?;
                self.xrcds.insert(xrcd, 0);
                return Ok(xrcd);
            }
            0x39 => {
                let users = self.xrcds.get(&handle).ok_or((BAD_HANDLE, 4))?;
                check(*users == 0, IN_USE, 0)?;
                self.xrcds.remove(&handle);
                self.xrcd_free.used.push_back(handle);
            }
            0x28 => {
                check(handle < 4, BAD_HANDLE, 4)?;
                check(!self.eqs.contains_key(&handle), IN_USE, 0)?;
                check((1..=16).contains(&cmd.0[8]), BAD_PARAM, 8)?;
                check(cmd.0[16].is_multiple_of(64), BAD_PARAM, 16)?;
                self.eqs.insert(handle, ());
            }
            0x29 => {
                check(self.eqs.contains_key(&handle), BAD_HANDLE, 4)?;
                check(self.cqs.values().all(|(eq, _, _)| *eq != handle), IN_USE, 0)?;
                self.eqs.remove(&handle);
            }
            _ => {}
        }
        Ok(handle)
    }

    fn create_mr(&mut self, cmd: &Cmd) -> Verdict {
        let mr = Mr {
            kind: cmd.0[12],
            pd: le(cmd, 8, 2) as u16,
            access: cmd.0[10],
            key: cmd.0[11],
            va: le(cmd, 16, 8),
            length: le(cmd, 24, 8),
            host_addr: le(cmd, 32, 8),
            log_page: cmd.0[13],
            page_offset: le(cmd, 40, 4) as u32,
        };
        check(self.pds.contains_key(&u32::from(mr.pd)), BAD_HANDLE, 8)?;
        check(access_fits(mr.access), BAD_PARAM, 10)?;
        check(mr.kind < 3, BAD_PARAM, 12)?;
        let idle = mr.kind != 0 && mr.length == 0;
        check_place(&mr, idle, mr.kind == 2)?;
        let index = self.mr_free.take().ok_or((NO_RESOURCES, 0))?;
        *self.pds.get_mut(&u32::from(mr.pd)).expect("it exists") += 1;
        self.mrs.insert(index, mr);
        if idle {
            self.idle.insert(index);
        }
        Ok(index << 8 | u32::from(mr.key))
    }

    fn rereg_mr(&mut self, cmd: &Cmd, handle: u32) -> Verdict {
        let new = Mr {
            kind: 0,
            pd: le(cmd, 8, 2) as u16,
            access: cmd.0[10],
            key: cmd.0[11],
            va: le(cmd, 16, 8),
            length: le(cmd, 24, 8),
            host_addr: le(cmd, 32, 8),
            log_page: cmd.0[13],
            page_offset: le(cmd, 40, 4) as u32,
        };
        let change = cmd.0[14];
        let mut mr = *self.region(handle).filter(|m| m.kind == 0).ok_or((BAD_HANDLE, 4))?;
        check(change != 0, BAD_PARAM, 14)?;
        mr.key = new.key;
        if change & 2 != 0 {
            check(self.pds.contains_key(&u32::from(new.pd)), BAD_HANDLE, 8)?;
        }
        if change & 4 != 0 {
            check(access_fits(new.access), BAD_PARAM, 10)?;
            mr.access = new.access;
        }
        if change & 1 != 0 {
            check_place(&new, false, false)?;
            (mr.va, mr.length, mr.host_addr) = (new.va, new.length, new.host_addr);
            (mr.log_page, mr.page_offset) = (new.log_page, new.page_offset);
        }
        if change & 2 != 0 {
            *self.pds.get_mut(&u32::from(mr.pd)).expect("a region's PD exists") -= 1;
            *self.pds.get_mut(&u32::from(new.pd)).expect("it exists") += 1;
            mr.pd = new.pd;
        }
        self.mrs.insert(handle >> 8, mr);
        Ok(handle & !0xff | u32::from(mr.key))
    }

    /// What an invalidation must answer: MrErr. One that is not refused is done.
    pub fn invalidate(&mut self, i: &Invalidate) -> u8 {
        let Some(mr) = self.region(i.key).filter(|_| !self.idle.contains(&(i.key >> 8))) else {
            return 1;
        };
        if mr.kind != 1 {
            3
        } else if mr.pd != i.pd {
            2
        } else {
            self.idle.insert(i.key >> 8);
            0
        }
    }

    /// What a lookup of a memory key must answer: MrErr, and the address when that is OK.
    pub fn lookup(&self, l: &crate::ctrl_bench::Lookup) -> (u8, u64) {
        let Some(mr) = self.region(l.key).filter(|_| !self.idle.contains(&(l.key >> 8))) else {
            return (1, 0);
        };
        let end = u128::from(l.va) + u128::from(l.len);
        if mr.pd != l.pd {
            (2, 0)
        } else if l.access & !mr.access != 0 {
            (3, 0)
        } else if l.va < mr.va || end > u128::from(mr.va) + u128::from(mr.length) {
            (4, 0)
        } else {
            (0, mr.host_addr + (l.va - mr.va))
        }
    }
}
