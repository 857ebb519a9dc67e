// SPDX-License-Identifier: Apache-2.0
//! The world: NICs, their hosts, the wire between them, one clock.
//!
//! Everything is decided by one seed and happens on one thread, cycle by cycle: the surroundings set
//! the inputs, all NICs see the rising edge, the surroundings take the outputs.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;

use crate::device::Device;
use crate::error::{SimError, Violation};
use crate::model::{NicModel, NicSpec};
use crate::pcie::{HostParams, MmioError, ReadId, RootPort};
use crate::waves;
use crate::wire::{Tap, TapPoints, Wire, WireParams};

/// How to make a world. Start from the default and change what matters.
#[derive(Debug, Clone)]
pub struct WorldParams {
    /// Seed of all randomness.
    pub seed: u64,
    /// Number of NICs.
    pub nics: usize,
    /// The NIC to build; all are of the same kind.
    pub nic: NicSpec,
    /// Every NIC's host; see also [`WorldParams::hosts`].
    pub host: HostParams,
    /// Hosts that differ from [`WorldParams::host`]: NIC number and its host.
    pub hosts: Vec<(usize, HostParams)>,
    /// The wire.
    pub wire: WireParams,
    /// Capture file (pcapng).
    pub capture: Option<PathBuf>,
    /// Which frames the capture holds.
    pub capture_points: TapPoints,
    /// Trace file (FST) of all NICs; its signal groups are written beside it.
    pub trace: Option<PathBuf>,
    /// End a step with an error when a device breaks a rule. Otherwise only
    /// [`World::take_violations`] tells.
    pub stop_on_violation: bool,
}

impl Default for WorldParams {
    fn default() -> Self {
        Self {
            seed: 1,
            nics: 2,
            nic: NicSpec::new(64),
            host: HostParams::default(),
            hosts: Vec::new(),
            wire: WireParams::default(),
            capture: None,
            capture_points: TapPoints::default(),
            trace: None,
            stop_on_violation: true,
        }
    }
}

/// A world that several handles use ([`crate::NicBus`]).
pub type SharedWorld = Rc<RefCell<World>>;

enum Nic {
    Rtl(Box<NicModel>),
    Other(Box<dyn Device>),
}

impl Nic {
    fn device(&mut self) -> &mut dyn Device {
        match self {
            Self::Rtl(model) => model.as_mut(),
            Self::Other(device) => device.as_mut(),
        }
    }
}

/// NICs, hosts and wire.
pub struct World {
    nics: Vec<Nic>,
    hosts: Vec<RootPort>,
    wire: Wire,
    cycle: u64,
    clk_period_ps: u64,
    seed: u64,
    tracing: bool,
    stop_on_violation: bool,
    violations: Vec<Violation>,
}

impl World {
    /// Builds the NICs' model if the cache lacks it, and makes the world. All functions start in reset.
    ///
    /// # Errors
    /// Parameters that make no sense, a model that cannot be built, files that cannot be written.
    pub fn new(params: &WorldParams) -> Result<Self, SimError> {
        let mut spec = params.nic.clone();
        spec.trace = params.trace.is_some();
        let mut nics: Vec<Nic> = Vec::with_capacity(params.nics);
        for number in 0..params.nics {
            let peer = match nics.first() {
                Some(Nic::Rtl(first)) if spec.trace => Some(first.as_ref()),
                _ => None,
            };
            let seed = params.seed.wrapping_add(number as u64);
            nics.push(Nic::Rtl(Box::new(NicModel::new(
                &spec,
                &format!("nic{number}"),
                seed,
                peer,
            )?)));
        }
        if let (Some(path), Some(Nic::Rtl(first))) = (&params.trace, nics.first_mut()) {
            first.instance().trace_open(path)?;
            waves::save_groups(path, first.instance().top(), params.nics)?;
        }
        Self::assemble(params, nics, spec.clk_period_ps())
    }

    /// A world of other devices: scripted ones, for tests of the surroundings.
    ///
    /// # Errors
    /// As [`new`](Self::new); also when the devices' widths differ.
    pub fn with_devices(params: &WorldParams, devices: Vec<Box<dyn Device>>) -> Result<Self, SimError> {
        let nics = devices.into_iter().map(Nic::Other).collect();
        Self::assemble(params, nics, params.nic.clk_period_ps())
    }

    fn assemble(params: &WorldParams, mut nics: Vec<Nic>, clk_period_ps: u64) -> Result<Self, SimError> {
        let widths: Vec<usize> = nics.iter_mut().map(|nic| nic.device().data_bytes()).collect();
        let width = widths.first().copied().unwrap_or(8);
        if widths.iter().any(|other| *other != width) {
            return Err(SimError::Params {
                what: format!("NICs of {widths:?} byte lanes: all must have the same"),
            });
        }
        if let Some((number, _)) = params.hosts.iter().find(|(number, _)| *number >= nics.len()) {
            let count = nics.len();
            return Err(SimError::Params {
                what: format!("a host for NIC {number}: there are {count}, counted from 0"),
            });
        }
        let mut wire = Wire::new(nics.len(), width, params.wire.clone(), clk_period_ps, params.seed)?;
        if let Some(path) = &params.capture {
            wire.set_tap(Tap::create(
                path,
                nics.len(),
                wire.bits_per_second(),
                params.capture_points,
            )?);
        }
        let host = |number: usize| {
            let own = params.hosts.iter().find(|(n, _)| *n == number).map(|(_, host)| host);
            RootPort::new(number, own.unwrap_or(&params.host).clone(), clk_period_ps, params.seed)
        };
        Ok(Self {
            hosts: (0..nics.len()).map(host).collect(),
            nics,
            wire,
            cycle: 0,
            clk_period_ps,
            seed: params.seed,
            tracing: params.trace.is_some(),
            stop_on_violation: params.stop_on_violation,
            violations: Vec::new(),
        })
    }

    /// Makes it a world that several handles use.
    pub fn shared(self) -> SharedWorld {
        Rc::new(RefCell::new(self))
    }

    /// One clock cycle of everything.
    ///
    /// # Errors
    /// A failed assertion of the RTL, a broken rule, a capture that cannot be written. After an
    /// assertion nothing further works; after the others one may go on.
    pub fn step(&mut self) -> Result<(), SimError> {
        let now = self.cycle;
        for (number, (nic, host)) in self.nics.iter_mut().zip(&mut self.hosts).enumerate() {
            let device = nic.device();
            host.drive(now, device);
            if host.in_reset() {
                self.wire.hold(now, number, device);
            }
            self.wire.drive(now, number, device);
        }
        if self.tracing {
            self.traced_clock()?;
        } else {
            for nic in &mut self.nics {
                nic.device().clock()?;
            }
        }
        for (number, (nic, host)) in self.nics.iter_mut().zip(&mut self.hosts).enumerate() {
            let device = nic.device();
            if !host.in_reset() {
                self.wire.collect(now, number, device);
            }
            host.collect(now, device);
            if !host.violations().is_empty() {
                self.violations.append(host.violations());
            }
        }
        if !self.wire.violations().is_empty() {
            self.violations.append(self.wire.violations());
        }
        self.cycle += 1;
        if let Some(error) = self.wire.take_failure() {
            return Err(error);
        }
        if self.stop_on_violation && !self.violations.is_empty() {
            return Err(SimError::Violation(self.violations.remove(0)));
        }
        Ok(())
    }

    /// All NICs share one trace: it is dumped when all of them are evaluated.
    fn traced_clock(&mut self) -> Result<(), SimError> {
        let mut outcome = Ok(());
        for half in 0..2 {
            for nic in &mut self.nics {
                let device = nic.device();
                let done = if half == 0 { device.settle() } else { device.edge() };
                if outcome.is_ok() {
                    outcome = done;
                }
            }
            if let Some(Nic::Rtl(first)) = self.nics.first_mut() {
                first
                    .instance()
                    .trace_dump(self.cycle * self.clk_period_ps + half * self.clk_period_ps / 2);
            }
        }
        if outcome.is_err()
            && let Some(Nic::Rtl(first)) = self.nics.first_mut()
        {
            first.instance().trace_close();
        }
        Ok(outcome?)
    }

    /// Several clock cycles.
    ///
    /// # Errors
    /// As [`step`](Self::step).
    pub fn run(&mut self, cycles: u64) -> Result<(), SimError> {
        for _ in 0..cycles {
            self.step()?;
        }
        Ok(())
    }

    /// Runs until `done` holds (looked at before every cycle); returns the cycles it took.
    ///
    /// # Errors
    /// As [`step`](Self::step); [`SimError::Timeout`] when it does not hold after `budget` cycles.
    pub fn run_until(
        &mut self,
        what: &str,
        budget: u64,
        mut done: impl FnMut(&mut Self) -> bool,
    ) -> Result<u64, SimError> {
        for taken in 0..=budget {
            if done(self) {
                return Ok(taken);
            }
            if taken < budget {
                self.step()?;
            }
        }
        Err(SimError::Timeout {
            what: what.to_owned(),
            budget,
            now: self.cycle,
        })
    }

    /// Clock cycles so far.
    pub fn cycle(&self) -> u64 {
        self.cycle
    }

    /// Length of a clock cycle.
    pub fn clk_period_ps(&self) -> u64 {
        self.clk_period_ps
    }

    /// Simulated time in nanoseconds.
    pub fn time_ns(&self) -> u64 {
        self.cycle * self.clk_period_ps / 1000
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Number of NICs.
    pub fn nics(&self) -> usize {
        self.nics.len()
    }

    /// The host of a NIC.
    ///
    /// # Errors
    /// [`SimError::Params`] when there is no such NIC.
    pub fn host(&mut self, nic: usize) -> Result<&mut RootPort, SimError> {
        let nics = self.nics.len();
        self.hosts.get_mut(nic).ok_or_else(|| SimError::Params {
            what: no_nic(nic, nics),
        })
    }

    /// The wire.
    pub fn wire(&mut self) -> &mut Wire {
        &mut self.wire
    }

    /// Lets a NIC receive a frame that nobody sent, from now on.
    ///
    /// # Errors
    /// As [`Wire::inject`].
    pub fn inject(&mut self, to: usize, frame: &[u8]) -> Result<(), SimError> {
        self.wire.inject(self.cycle, to, frame, false, 0)
    }

    /// Writes config space of a NIC's function.
    ///
    /// # Errors
    /// [`SimError::Params`] when there is no such NIC.
    pub fn config_write(&mut self, nic: usize, off: u16, value: u32) -> Result<(), SimError> {
        let (now, nics) = (self.cycle, self.nics.len());
        let (Some(host), Some(device)) = (self.hosts.get_mut(nic), self.nics.get_mut(nic)) else {
            return Err(SimError::Params {
                what: no_nic(nic, nics),
            });
        };
        host.config_write(off, value, now, device.device());
        Ok(())
    }

    /// Runs until a BAR read is answered, at most `budget` cycles; the read is abandoned then.
    ///
    /// # Errors
    /// As [`run_until`](Self::run_until).
    pub fn finish_read(&mut self, nic: usize, id: ReadId, budget: u64) -> Result<Result<Vec<u8>, MmioError>, SimError> {
        for _ in 0..budget {
            if let Some(outcome) = self.host(nic)?.take_read(id) {
                return Ok(outcome);
            }
            self.step()?;
        }
        let now = self.cycle;
        let host = self.host(nic)?;
        if let Some(outcome) = host.take_read(id) {
            return Ok(outcome);
        }
        host.abandon_read(id);
        Err(SimError::Timeout {
            what: "the answer to a BAR read".to_owned(),
            budget,
            now,
        })
    }

    /// Rules that devices broke and that no step reported.
    pub fn take_violations(&mut self) -> Vec<Violation> {
        std::mem::take(&mut self.violations)
    }

    /// Nothing is under way on the wire or between hosts and NICs (NICs may still be at work inside).
    pub fn is_idle(&self) -> bool {
        self.wire.is_idle() && self.hosts.iter().all(RootPort::is_idle)
    }

    /// Makes trace and capture readable up to now.
    ///
    /// # Errors
    /// [`SimError::Capture`] when the capture cannot be written.
    pub fn flush(&mut self) -> Result<(), SimError> {
        if self.tracing
            && let Some(Nic::Rtl(first)) = self.nics.first_mut()
        {
            first.instance().trace_flush();
        }
        match self.wire.tap() {
            Some(tap) => tap.flush(),
            None => Ok(()),
        }
    }
}

fn no_nic(nic: usize, nics: usize) -> String {
    format!("NIC {nic}: there are {nics}, counted from 0")
}
