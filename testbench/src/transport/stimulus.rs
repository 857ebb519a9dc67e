// SPDX-License-Identifier: Apache-2.0
//! Random work. What one connection does in one round depends on the seed, the round and the connection's number alone, so that
//! others can be left out of a run without changing it.
//!
//! The outcome must not depend on the order in which the wire and the hosts do things. So results and receives land in places of
//! their own; WRITEs and atomics of a direction may overlap, since they are executed in order; and what overlaps a READ before it
//! carries a fence, since a READ that is asked for again reads the memory again. Where keys come and go ([`Key`]), one end waits for
//! what the other one has done.

mod author;
mod faults;
mod keys;

use openrnic_sim::rng::Stream;

use self::author::Author;
use self::faults::possible;
use super::memory::Memory;
use super::{QpConfig, Receive, Request};

pub use self::faults::Fault;
pub use self::keys::{Key, Sort};

/// A part of a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Area {
    /// The region's key.
    pub key: u32,
    /// Address of its first byte.
    pub base: u64,
    /// Bytes.
    pub len: usize,
}

/// Memory of one end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Places {
    /// Sources ([`SOURCES`] bytes), behind them results. No peer may touch it.
    pub own: Area,
    /// What peers write and read ([`TARGETS`] bytes), behind them receives.
    pub window: Area,
}

/// Bytes of sources.
pub const SOURCES: usize = 8192;
/// Bytes that peers write and read.
pub const TARGETS: usize = 6144;
/// Bytes of each region.
pub const SPAN: usize = 49152;
/// Bytes behind each key that comes and goes.
pub const BACKING: usize = 6000;
/// Longest message.
pub const LONGEST: usize = 4500;

/// Work of one direction.
#[derive(Debug, Clone, Default)]
pub struct Work {
    /// Posted in this order.
    pub requests: Vec<Request>,
    /// What the other end posts for it.
    pub receives: Vec<Receive>,
    /// Of these, the last ones that it posts late.
    pub late: usize,
}

/// What a connection does in a round.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// Work from end 0, from end 1.
    pub work: [Work; 2],
    /// What goes wrong, in which direction.
    pub fault: Option<(Fault, usize)>,
    /// It is made anew afterwards although nothing went wrong.
    pub renew: bool,
    /// What the keys of both ends name afterwards, when nothing goes wrong.
    pub keys: [Vec<Key>; 2],
}

/// What a plan is drawn for.
pub struct Ground<'a> {
    /// Both queue pairs.
    pub configs: [QpConfig; 2],
    /// Memory of both ends.
    pub places: [Places; 2],
    /// Receives of an end come from a shared queue.
    pub shared: [bool; 2],
    /// What the memories hold.
    pub memory: &'a [Memory; 2],
    /// Requests of a direction at most.
    pub most: usize,
    /// Things may go wrong on purpose.
    pub faults: bool,
    /// In half of the connections, and only with keys.
    pub key_faults: bool,
    /// The keys of both ends.
    pub keys: &'a [Vec<Key>; 2],
    /// A window of each end that is bound to another queue pair.
    pub others_window: [Option<Area>; 2],
}

/// The plan of a connection for a round.
pub fn plan(rng: &mut Stream, ground: &Ground<'_>) -> Plan {
    let mut plan = Plan {
        renew: rng.chance(0.03),
        keys: ground.keys.clone(),
        ..Plan::default()
    };
    plan.keys.iter_mut().flatten().for_each(Key::begin);
    let (share, kinds) = if ground.key_faults {
        (0.5, &Fault::KEYS[..])
    } else {
        (0.14, &Fault::ALL[..])
    };
    let faulty = rng.chance(share) && ground.faults;
    if faulty {
        let from = rng.below(2) as usize;
        let kind = kinds[rng.below(kinds.len() as u64) as usize];
        if possible(kind, from, ground) {
            plan.fault = Some((kind, from));
        }
    }
    let mut authors = [0, 1].map(|from: usize| {
        let (quiet, fault) = match plan.fault {
            Some((kind, at)) if at == from => (false, Some(kind)),
            Some(_) => (true, None),
            None => (rng.chance(0.12), None),
        };
        let stream = Stream::new(rng.bits(), "transport work", from as u64);
        (!quiet).then(|| Author::new(stream, ground, from, fault))
    });
    // Both are written in turns, so that either may build upon what the other one has done up to then.
    loop {
        let open = |a: &Option<Author<'_>>| a.as_ref().is_some_and(|a| a.left > 0);
        let from = match [open(&authors[0]), open(&authors[1])] {
            [false, false] => break,
            [true, true] => rng.below(2) as usize,
            [first, _] => usize::from(!first),
        };
        let Some(author) = &mut authors[from] else { break };
        author.one(&mut plan.keys);
        // A completion that is waited for must come.
        let gate = author.out.requests.last().and_then(|r| r.after);
        if let Some(g) = gate.filter(|g| !g.received)
            && let Some(r) = authors[g.from].as_mut().and_then(|a| a.out.requests.get_mut(g.request))
        {
            r.signaled = true;
        }
    }
    for (work, author) in plan.work.iter_mut().zip(authors) {
        if let Some(author) = author {
            *work = author.finish();
        }
    }
    plan
}
