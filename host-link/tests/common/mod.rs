// SPDX-License-Identifier: Apache-2.0
//! A serial line to RTL: levels, bit by bit, with a cable that can be pulled and bytes that change on the way.
#![allow(clippy::unwrap_used, dead_code)]

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use openrnic_link::{Line, LineError};
use openrnic_sim::model::{BlockModel, PortId};
use openrnic_sim::rng::Stream;

/// Clock cycles a bit of the boards here.
pub const DIV: u64 = 4;
/// Clock cycles until the board sends again: four of the longest frames and some.
pub const RETRY: u64 = 4 * 312 * 10 * DIV + 10_000;
/// Clock period of the RTL in picoseconds.
const CLK_PS: u64 = 8000;

/// What the line does to the bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Faults {
    /// Share of bytes of which a bit changes (start and stop bit among them).
    pub flip: f64,
    /// The cable is not plugged: both ends see a line at rest.
    pub pulled: bool,
}

/// What has passed.
#[derive(Debug, Clone, Copy, Default)]
pub struct Passed {
    pub to_board: u64,
    pub to_host: u64,
    pub flipped: u64,
}

/// One direction of the line: a byte as ten levels.
pub struct Wire {
    div: u64,
    /// Levels still to be driven, and the clock cycles left of the first.
    levels: VecDeque<bool>,
    left: u64,
}

impl Wire {
    pub fn new(div: u64) -> Self {
        Self {
            div,
            levels: VecDeque::new(),
            left: 0,
        }
    }

    pub fn put(&mut self, byte: u8) {
        self.levels.push_back(false);
        self.levels.extend((0..8).map(|i| byte >> i & 1 != 0));
        self.levels.push_back(true);
    }

    /// Whether all that was put is out.
    pub fn idle(&self) -> bool {
        self.levels.is_empty()
    }

    pub fn level(&mut self) -> bool {
        let Some(&level) = self.levels.front() else { return true };
        if self.left == 0 {
            self.left = self.div;
        }
        self.left -= 1;
        if self.left == 0 {
            self.levels.pop_front();
        }
        level
    }
}

/// Receives levels, by its own clock.
pub struct Uart {
    div: u64,
    /// Clock cycles since the start bit's edge.
    at: Option<u64>,
    bits: u16,
}

impl Uart {
    pub fn new(div: u64) -> Self {
        Self { div, at: None, bits: 0 }
    }

    pub fn see(&mut self, level: bool) -> Option<Option<u8>> {
        let at = match self.at {
            None if !level => 0,
            None => return None,
            Some(at) => at + 1,
        };
        self.at = Some(at);
        if at % self.div == self.div / 2 {
            let bit = at / self.div;
            self.bits = self.bits >> 1 | u16::from(level) << 9;
            if bit == 9 {
                self.at = None;
                return Some(level.then_some((self.bits >> 1) as u8));
            }
        }
        None
    }
}

/// RTL at the end of a serial line.
pub struct Board {
    pub dut: BlockModel,
    /// What is done with the other pins before each clock edge.
    pub pins: Box<dyn FnMut(&mut BlockModel)>,
    pub faults: Faults,
    pub passed: Passed,
    rng: Stream,
    down: Wire,
    up: Uart,
    rx: PortId,
    tx: PortId,
    div: u64,
    arrived: Vec<Option<u8>>,
    /// Clock cycles of a tick.
    tick: u64,
}

impl Board {
    /// `dut` has a line of `div` clock cycles a bit; a tick of the line is `tick` clock cycles.
    pub fn new(mut dut: BlockModel, div: u64, tick: u64, seed: u64) -> Self {
        // Inputs, too, start at random.
        let inputs: Vec<String> = dut
            .ports()
            .iter()
            .filter(|p| !p.is_output && p.name != "clk_i")
            .map(|p| p.name.clone())
            .collect();
        for name in inputs {
            dut.set_wide(&name, &[0]);
        }
        dut.set("rx_i", 1);
        dut.reset(4);
        let (rx, tx) = (dut.port("rx_i"), dut.port("tx_o"));
        Self {
            dut,
            pins: Box::new(|_| ()),
            faults: Faults::default(),
            passed: Passed::default(),
            rng: Stream::new(seed, "serial.line", 0),
            down: Wire::new(div),
            up: Uart::new(div),
            rx,
            tx,
            div,
            arrived: Vec::new(),
            tick,
        }
    }

    fn clock(&mut self) {
        let level = self.down.level();
        self.dut.set_id(self.rx, u64::from(level || self.faults.pulled));
        (self.pins)(&mut self.dut);
        self.dut.clock();
        let level = self.dut.get_id(self.tx) != 0 || self.faults.pulled;
        if let Some(byte) = self.up.see(level) {
            self.passed.to_host += 1;
            let byte = self.damage(byte);
            self.arrived.push(byte);
        }
    }

    /// A byte from the board as the host gets it.
    fn damage(&mut self, byte: Option<u8>) -> Option<u8> {
        if self.faults.flip > 0.0 && self.rng.chance(self.faults.flip) {
            self.passed.flipped += 1;
            return byte.map(|b| b ^ 1 << self.rng.below(8));
        }
        byte
    }

    fn send(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.passed.to_board += 1;
            self.down.put(byte);
            if self.faults.flip > 0.0 && self.rng.chance(self.faults.flip) {
                self.passed.flipped += 1;
                let bit = self.down.levels.len() - 1 - self.rng.below(10) as usize;
                self.down.levels[bit] ^= true;
            }
        }
    }
}

/// The host's end of the line to a board.
#[derive(Clone)]
pub struct Cable(pub Rc<RefCell<Board>>);

impl Cable {
    pub fn new(board: Board) -> Self {
        Self(Rc::new(RefCell::new(board)))
    }

    pub fn faults(&self, change: impl FnOnce(&mut Faults)) {
        change(&mut self.0.borrow_mut().faults);
    }

    pub fn passed(&self) -> Passed {
        self.0.borrow().passed
    }
}

impl Line for Cable {
    fn tick_ps(&self) -> u64 {
        self.0.borrow().tick * CLK_PS
    }

    fn tick(&mut self) -> Result<(), LineError> {
        let mut board = self.0.borrow_mut();
        for _ in 0..board.tick {
            board.clock();
        }
        Ok(())
    }

    fn ready(&self) -> bool {
        self.0.borrow().down.levels.is_empty()
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), LineError> {
        self.0.borrow_mut().send(bytes);
        Ok(())
    }

    fn receive(&mut self) -> Vec<Option<u8>> {
        std::mem::take(&mut self.0.borrow_mut().arrived)
    }
}
