// SPDX-License-Identifier: Apache-2.0
//! The simulated world as scenarios use it: everything that touches the simulator is here.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;

use anyhow::{Context, Result};
use openrnic_sim::model::NicSpec;
use openrnic_sim::pcie::{CompletionFault, HostParams, Split, Which};
use openrnic_sim::wire::{Action, Direction, FaultRates, Rule, TapPoints, WireParams, frame};
use openrnic_sim::{NicBus, SharedWorld, World, WorldParams};

use crate::scenario::{Disturb, Doc, HostDef};

/// The bus of a simulated NIC.
pub type SimBus = NicBus;

/// How to make the world.
#[derive(Debug, Clone)]
pub struct SimOptions {
    /// Seed.
    pub seed: u64,
    /// Width of the data path in bits.
    pub data_width: usize,
    /// Capture file.
    pub pcap: Option<PathBuf>,
    /// Trace file.
    pub wave: Option<PathBuf>,
}

/// Frames seen: (NIC, sent, opcode) to how many.
type FrameLog = BTreeMap<(usize, bool, u8), u64>;

/// The world of a scenario.
pub struct Sim {
    world: SharedWorld,
    frames: Rc<RefCell<FrameLog>>,
}

fn host(def: Option<&HostDef>) -> HostParams {
    let Some(d) = def else { return HostParams::default() };
    let mut h = if d.ideal == Some(true) {
        HostParams::ideal()
    } else {
        HostParams::default()
    };
    macro_rules! take {
        ($($f:ident),*) => { $(if let Some(v) = d.$f { h.$f = v; })* };
    }
    take!(
        read_latency_ns,
        read_jitter_ns,
        write_latency_ns,
        write_jitter_ns,
        mmio_latency_ns,
        mmio_jitter_ns,
        reorder
    );
    if let Some(v) = &d.memory_mib {
        h.memory_bytes = v.get_ref() << 20;
    }
    if let Some(v) = &d.stall {
        h.stall = *v.get_ref();
    }
    if let Some(v) = &d.max_payload {
        h.max_payload = u64::from(*v.get_ref());
    }
    if let Some(v) = &d.split {
        h.split = match v.get_ref().as_str() {
            "never" => Split::Never,
            "always" => Split::Always,
            _ => Split::Random,
        };
    }
    h
}

impl Sim {
    /// Builds the NICs if need be, and the world around them.
    ///
    /// # Errors
    /// The simulator's own.
    pub fn new(doc: &Doc, options: &SimOptions) -> Result<Self> {
        let w = &doc.wire;
        let rate = |v: &Option<toml::Spanned<f64>>| v.as_ref().map_or(0.0, |v| *v.get_ref());
        let default = WireParams::default();
        let faults = FaultRates {
            loss: rate(&w.loss),
            duplicate: rate(&w.duplicate),
            reorder: rate(&w.reorder),
            reorder_ns: w.reorder_ns.unwrap_or(2000),
            corrupt: rate(&w.corrupt),
            mac_error: rate(&w.mac_error),
            congestion: rate(&w.congestion),
        };
        let both = doc.sim.capture.as_ref().is_some_and(|c| c.get_ref() == "both_ends");
        let params = WorldParams {
            seed: options.seed,
            nics: doc.nic.len(),
            nic: NicSpec::new(options.data_width),
            hosts: doc
                .nic
                .iter()
                .map(|n| host(n.get_ref().host.as_ref()))
                .enumerate()
                .collect(),
            wire: WireParams {
                latency_ns: w.latency_ns.unwrap_or(default.latency_ns),
                rate_gbps: w.rate_gbps.as_ref().map(|r| *r.get_ref()),
                faults,
                ..default
            },
            capture: options.pcap.clone(),
            capture_points: if both { TapPoints::BothEnds } else { TapPoints::Senders },
            trace: options.wave.clone(),
            ..WorldParams::default()
        };
        let mut world = World::new(&params).context("the simulated world cannot be made")?;
        let frames = Rc::new(RefCell::new(FrameLog::new()));
        let log = Rc::clone(&frames);
        world.wire().observe(move |event| {
            if let Some(bth) = frame::bth(event.frame)
                && let Ok(mut log) = log.try_borrow_mut()
            {
                *log.entry((event.nic, event.direction == Direction::Out, bth.opcode()))
                    .or_default() += 1;
            }
        });
        Ok(Self {
            world: world.shared(),
            frames,
        })
    }

    /// The bus of a NIC.
    ///
    /// # Errors
    /// The simulator's own.
    pub fn bus(&self, nic: usize) -> Result<SimBus> {
        Ok(NicBus::new(&self.world, nic)?)
    }

    /// Clock cycles so far.
    pub fn cycle(&self) -> u64 {
        self.world.borrow().cycle()
    }

    /// Simulated time so far.
    pub fn time_ns(&self) -> u64 {
        self.world.borrow().time_ns()
    }

    /// Length of a clock cycle.
    pub fn clk_period_ps(&self) -> u64 {
        self.world.borrow().clk_period_ps()
    }

    /// Lets time pass.
    ///
    /// # Errors
    /// The simulator's own.
    pub fn run(&self, cycles: u64) -> Result<()> {
        Ok(self.world.borrow_mut().run(cycles)?)
    }

    /// Lets a NIC receive a frame.
    ///
    /// # Errors
    /// The simulator's own.
    pub fn inject(&self, nic: usize, frame: &[u8], mac_error: bool) -> Result<()> {
        let mut world = self.world.borrow_mut();
        let now = world.cycle();
        Ok(world.wire().inject(now, nic, frame, mac_error, 0)?)
    }

    /// Adds a rule to the wire.
    pub fn disturb(&self, from: usize, d: &Disturb) {
        let action = match d.action.get_ref().as_str() {
            "duplicate" => Action::Duplicate,
            "delay" => Action::Delay(d.delay_ns.unwrap_or(0)),
            "flip_bit" => Action::FlipBit(d.bit.unwrap_or(0)),
            "mac_error" => Action::MacError,
            "mark_congestion" => Action::MarkCongestion,
            _ => Action::Drop,
        };
        let opcode = d.opcode.map(|o| u8::from(o.0));
        let matches = move |f: &[u8]| frame::bth(f).is_some_and(|b| opcode.is_none_or(|o| b.opcode() == o));
        self.world.borrow_mut().wire().add_rule(Rule {
            from: Some(from),
            matches: Box::new(matches),
            skip: d.skip,
            times: d.count.unwrap_or(1),
            action,
        });
    }

    /// Lets reads of a NIC fail.
    ///
    /// # Errors
    /// The simulator's own.
    pub fn host_fault(&self, nic: usize, which: Which, fault: CompletionFault) -> Result<()> {
        self.world.borrow_mut().host(nic)?.inject_fault(which, fault);
        Ok(())
    }

    /// RoCE frames at a NIC's port so far, by opcode.
    pub fn frames(&self, nic: usize, sent: bool, opcode: u8) -> u64 {
        self.frames.borrow().get(&(nic, sent, opcode)).copied().unwrap_or(0)
    }

    /// All RoCE frames at a NIC's port so far: opcode and how many.
    pub fn all_frames(&self, nic: usize, sent: bool) -> Vec<(u8, u64)> {
        let log = self.frames.borrow();
        log.iter()
            .filter(|((n, s, _), _)| (*n, *s) == (nic, sent))
            .map(|((_, _, o), c)| (*o, *c))
            .collect()
    }

    /// Makes capture and trace readable.
    ///
    /// # Errors
    /// The simulator's own.
    pub fn flush(&self) -> Result<()> {
        Ok(self.world.borrow_mut().flush()?)
    }
}
