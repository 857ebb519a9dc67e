// SPDX-License-Identifier: Apache-2.0
//! A PHY's two management wires: MDIO as clause 22 of IEEE 802.3 has it.

/// Cycles since an edge that nobody counted.
const IDLE: u32 = 1000;

/// The management side of a PHY. It drives bits 15 cycles (300 ns at 50 MHz, the slowest allowed) after MDC rises.
pub struct Phy {
    /// Its address.
    pub addr: u32,
    /// Whether it answers.
    pub there: bool,
    /// Its registers.
    pub regs: [u16; 32],
    /// Frames that it took: (write, register, data).
    pub log: Vec<(bool, u32, u16)>,
    ones: u32,
    bits: u32,
    count: u32,
    mdc: bool,
    due: Option<(u32, Option<bool>)>,
    driven: Option<bool>,
    since_edge: u32,
    half: u32,
    slow: u32,
}

impl Phy {
    /// A PHY at this address, without a link; cycles are those of a clock of `hz`.
    pub fn new(addr: u32, hz: u64) -> Self {
        let mut regs = [0; 32];
        regs[2] = 0x0141;
        regs[3] = 0x0dd1;
        regs[9] = 0x0300;
        regs[21] = 0x1046;
        Self {
            addr,
            there: true,
            regs,
            log: Vec::new(),
            ones: 0,
            bits: 0,
            count: 0,
            mdc: false,
            due: None,
            driven: None,
            since_edge: IDLE,
            half: hz.div_ceil(5_000_000) as u32,
            // The slowest answer that is allowed, 300 ns.
            slow: (3 * hz).div_ceil(10_000_000) as u32,
        }
    }

    /// Link state as the three registers tell it: link and negotiated, the partner's 1000BASE-T full duplex.
    pub fn link(&mut self, up: bool, gigabit: bool) {
        self.regs[1] = 0x7949 | if up { 0x24 } else { 0 };
        self.regs[10] = if gigabit { 0x0800 } else { 0 };
    }

    /// One cycle, with what stands on the two wires.
    ///
    /// # Panics
    /// When MDC is faster than clause 22 allows: 2.5 MHz.
    pub fn cycle(&mut self, mdc: bool, wire: bool) {
        if let Some((left, value)) = self.due {
            if left == 0 {
                self.driven = value;
                self.due = None;
            } else {
                self.due = Some((left - 1, value));
            }
        }
        self.since_edge += 1;
        if mdc != self.mdc {
            assert!(
                self.since_edge >= self.half,
                "MDC is faster than 2.5 MHz: {} cycles",
                self.since_edge
            );
            self.since_edge = 0;
        }
        if mdc && !self.mdc {
            self.bit(wire);
        }
        self.mdc = mdc;
    }

    /// What it drives, if it does.
    pub fn driven(&self) -> Option<bool> {
        self.driven
    }

    /// Its hardware reset.
    pub fn reset(&mut self) {
        self.count = 0;
        self.ones = 0;
        self.driven = None;
        self.due = None;
        self.since_edge = IDLE;
    }

    fn bit(&mut self, wire: bool) {
        if self.count == 0 {
            // Preamble, then the zero of the start.
            if wire {
                self.ones += 1;
                return;
            }
            let preamble = std::mem::take(&mut self.ones);
            if preamble < 32 {
                return;
            }
            self.bits = 0;
        }
        self.bits = self.bits << 1 | u32::from(wire);
        self.count += 1;
        let (op, addr, reg) = match self.count {
            14 => ((self.bits >> 10) & 3, (self.bits >> 5) & 31, self.bits & 31),
            n if n > 14 => {
                let head = self.bits >> (n - 14);
                ((head >> 10) & 3, (head >> 5) & 31, head & 31)
            }
            _ => return,
        };
        let mine = self.there && addr == self.addr;
        if op == 2 && mine && (15..=32).contains(&self.count) {
            // Behind this edge the turnaround's zero, then the data, then nothing.
            let value = match self.count {
                15 => Some(false),
                32 => None,
                n => Some(self.regs[reg as usize] >> (31 - n) & 1 == 1),
            };
            self.due = Some((self.slow, value));
        }
        if self.count == 32 {
            self.count = 0;
            let data = self.bits as u16;
            if mine {
                self.log.push((op == 1, reg, data));
            }
            if op == 1 && mine {
                self.regs[reg as usize] = data;
            }
        }
    }
}
