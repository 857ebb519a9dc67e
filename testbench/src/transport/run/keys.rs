// SPDX-License-Identifier: Apache-2.0
//! Keys that come and go by work requests: the driver's objects, and what the model knows of them.

use openrnic_driver::spec::WqeOpcode;
use openrnic_driver::{FastRegion, MemoryWindow, Named};

use super::super::memory::Kind;
use super::super::stimulus::BACKING;
use super::*;

/// Memory behind a key.
pub(super) struct Backing {
    sort: Sort,
    pub(super) mr: Mr,
    area: Area,
    /// Place of its first byte in its first page.
    offset: usize,
}

/// A key as the driver has it.
pub(super) enum Handle {
    Fast(FastRegion<NicBus>),
    /// Registered by the command that made it, with memory of its own.
    Made(Mr),
    Window(MemoryWindow<NicBus>),
}

impl Handle {
    fn key(&self) -> u32 {
        match self {
            Self::Fast(h) => h.rkey().0,
            Self::Made(h) => h.rkey().0,
            Self::Window(h) => h.rkey().0,
        }
    }

    fn free(&self) -> Outcomes<()> {
        match self {
            Self::Fast(h) => h.dealloc(),
            Self::Made(h) => h.deregister(),
            Self::Window(h) => h.dealloc(),
        }
        .map_err(bench)
    }
}

impl Episode {
    /// Memory for the keys of one end of a connection: which sorts it has.
    pub(super) fn make_backing(&mut self, number: u64, end: usize) -> Outcomes<Vec<Backing>> {
        let mut out = Vec::new();
        if !self.setup.keys {
            return Ok(out);
        }
        let mut rng = Stream::new(self.setup.seed, "transport backing", number * 2 + end as u64);
        for (sort, share) in [(Sort::Fast, 0.8), (Sort::Source, 0.4), (Sort::Window, 0.6)] {
            if rng.chance(share) {
                let offset = 8 * rng.below(512) as usize;
                let rights = right::LOCAL_WRITE | right::MW_BIND;
                let (mr, area) = self.region(&mut rng, end, BACKING, rights, Some(offset), MrKind::Region)?;
                out.push(Backing { sort, mr, area, offset });
            }
        }
        Ok(out)
    }

    /// The keys of a connection that has none yet.
    pub(super) fn make_keys(&mut self, at: usize, round: u64) -> Outcomes<()> {
        for end in 0..2 {
            let slot = &self.slots[at];
            if !slot.handles[end].is_empty() {
                continue;
            }
            let mut rng = Stream::new(
                self.setup.seed ^ round << 32,
                "transport keys",
                slot.number * 2 + end as u64,
            );
            let wanted: Vec<(Sort, Area, usize)> =
                slot.backing[end].iter().map(|b| (b.sort, b.area, b.offset)).collect();
            let (mut handles, mut keys) = (Vec::new(), Vec::new());
            for (sort, area, offset) in wanted {
                let pd = &self.pair.ends[end].pd;
                let mut live = None;
                let handle = match sort {
                    Sort::Window => Handle::Window(pd.alloc_mw().map_err(bench)?),
                    Sort::Fast if rng.chance(0.3) => {
                        let rights = right::LOCAL_WRITE | right::REMOTE_WRITE;
                        let (mr, area) = self.region(&mut rng, end, 1024, rights, None, MrKind::FastReg)?;
                        live = Some((area, rights));
                        Handle::Made(mr)
                    }
                    _ => Handle::Fast(pd.alloc_mr(1).map_err(bench)?),
                };
                match &handle {
                    Handle::Window(h) => self.memory[end].allocate(h.rkey().0, Kind::Window { qpn: 0, region: 0 }),
                    Handle::Fast(h) => self.memory[end].allocate(h.rkey().0, Kind::Fast),
                    Handle::Made(_) => {}
                }
                let mut key = Key::new(sort, handle.key(), area, offset);
                key.live = live;
                handles.push(handle);
                keys.push(key);
            }
            let slot = &mut self.slots[at];
            slot.handles[end] = handles;
            slot.keys[end] = keys;
        }
        Ok(())
    }

    /// All keys of a connection go: what they name is not known any more, or their queue pairs go.
    pub(super) fn free_keys(&mut self, at: usize) -> Outcomes<()> {
        for end in 0..2 {
            self.slots[at].keys[end].clear();
            for handle in std::mem::take(&mut self.slots[at].handles[end]) {
                handle.free()?;
                self.memory[end].free(handle.key());
            }
        }
        Ok(())
    }

    /// A window of another connection's queue pair at this end. (It is there only as long as that connection is: this one fault
    /// depends on another connection.)
    pub(super) fn others_window(&self, at: usize, end: usize) -> Option<Area> {
        let n = self.slots.len();
        let others = (1..n).map(|step| &self.slots[(at + step) % n]);
        others
            .flat_map(|s| &s.keys[end])
            .filter(|k| k.sort == Sort::Window)
            .find_map(|k| k.live.map(|(area, _)| area))
    }
}

impl Slot {
    /// Regions whose bytes are compared, of one end.
    pub(super) fn compared(&self, end: usize) -> Vec<&Mr> {
        let made = self.handles[end].iter().filter_map(|h| match h {
            Handle::Made(mr) => Some(mr),
            _ => None,
        });
        self.regions[end]
            .iter()
            .chain(self.backing[end].iter().map(|b| &b.mr))
            .chain(made)
            .collect()
    }

    /// What was waited for has been seen.
    pub(super) fn passes(&self, gate: &Gate) -> bool {
        let seen = if gate.received { &self.received } else { &self.sent };
        self.void || gate.request < seen[gate.from]
    }

    /// The driver's request for an operation on a key of this end.
    pub(super) fn key_wr(&self, end: usize, r: &Request) -> Outcomes<SendWr> {
        let opcode = match r.op {
            Op::RegMr => WqeOpcode::RegMr,
            Op::BindMw => WqeOpcode::BindMw,
            _ => WqeOpcode::LocalInv,
        };
        let mut named = None;
        if let Some(n) = &r.named {
            let mut what = Named {
                addr: Iova(n.base),
                length: n.len,
                access: Access(u32::from(n.rights)),
                lkey: LKey(n.region),
                host_addr: 0,
                log_page: 0,
                page_offset: 0,
            };
            let backing = self.backing[end].iter().find(|b| b.area.key == n.region);
            if let Some(backing) = backing.filter(|_| r.op == Op::RegMr) {
                if n.one_piece {
                    what.host_addr = backing.mr.bus_addr(n.at).map_err(bench)?;
                } else {
                    what.host_addr = backing.mr.page_list_addr().map_err(bench)?.unwrap_or_default();
                    what.log_page = Pages::default().log_page;
                    what.page_offset = (backing.offset + n.at) as u32;
                }
            }
            named = Some(what);
        }
        Ok(SendWr {
            signaled: r.signaled,
            fence: r.fence,
            rkey: RKey(r.rkey),
            named,
            ..SendWr::new(r.wr_id, opcode, Vec::new())
        })
    }
}
