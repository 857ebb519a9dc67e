// SPDX-License-Identifier: Apache-2.0
//! The Ethernet MAC on a bench: three clocks of any periods, the core's frame streams on one side, a PHY's GMII or RGMII on the
//! other. Made for tests: a broken contract panics. Frames are made and judged here, with a CRC of another hand.
#![allow(clippy::expect_used)]

use std::collections::VecDeque;

use crc::{CRC_32_ISO_HDLC, Crc, Table};
use openrnic_sim::model::{BlockBuilder, BlockModel, PortId};
use openrnic_sim::rng::Stream;

static CRC: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISO_HDLC);

/// Shortest frame without FCS, in bytes.
pub const MIN_BYTES: usize = 60;
/// Longest frame without FCS, in bytes: parameter `MaxBytes` of `rnic_mac`.
pub const MAX_BYTES: usize = 4224;
/// Idle bytes between two frames.
pub const GAP: usize = 12;

/// FCS of a frame, as it follows on the wire.
pub fn fcs(frame: &[u8]) -> [u8; 4] {
    CRC.checksum(frame).to_le_bytes()
}

/// A frame with its FCS.
pub fn with_fcs(frame: &[u8]) -> Vec<u8> {
    [frame, &fcs(frame)].concat()
}

/// A frame as a sender without padding hands it over, filled up to the minimum.
pub fn padded(frame: &[u8]) -> Vec<u8> {
    let mut out = frame.to_vec();
    out.resize(frame.len().max(MIN_BYTES), 0);
    out
}

/// What a line carries in one byte time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Symbol {
    /// Carrier (RX_DV, TX_EN).
    pub dv: bool,
    /// Error (RX_ER, TX_ER).
    pub er: bool,
    /// The byte.
    pub data: u8,
}

/// A carrier of these bytes, without errors.
pub fn carrier(bytes: &[u8]) -> Vec<Symbol> {
    let symbol = |data: &u8| Symbol {
        dv: true,
        er: false,
        data: *data,
    };
    bytes.iter().map(symbol).collect()
}

/// Preamble, start of frame and these bytes.
pub fn wire_frame(bytes: &[u8]) -> Vec<Symbol> {
    let mut out = vec![0x55; 7];
    out.push(0xd5);
    out.extend(bytes);
    carrier(&out)
}

/// What a PHY received from the MAC between two silences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// Idle byte times before it.
    pub gap: usize,
    /// Everything from the preamble to the FCS.
    pub bytes: Vec<u8>,
}

impl Sent {
    /// The frame without preamble and FCS.
    ///
    /// # Panics
    /// When preamble or FCS are not as they should be.
    #[track_caller]
    pub fn frame(&self) -> &[u8] {
        assert_eq!(self.bytes[..8], [0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0xd5]);
        assert!(self.fcs_good(), "FCS of {} bytes", self.bytes.len());
        &self.bytes[8..self.bytes.len() - 4]
    }

    /// Whether the FCS is right.
    pub fn fcs_good(&self) -> bool {
        let body = &self.bytes[8..];
        let (frame, tail) = body.split_at(body.len() - 4);
        fcs(frame) == tail
    }
}

/// What the core received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// The frame without FCS.
    pub bytes: Vec<u8>,
    /// Error flag of its last beat.
    pub err: bool,
}

/// One clock: time of its next edge, and how its period changes. Times are in femtoseconds.
#[derive(Debug, Clone)]
pub struct Clock {
    /// Period now.
    pub period: u64,
    /// Change of the period with each cycle; it turns round at the ends of `range`.
    pub drift: i64,
    /// Shortest and longest period.
    pub range: (u64, u64),
    /// Largest random displacement of an edge.
    pub jitter: u64,
    /// A clock that stands still has no edges.
    pub stopped: bool,
    high: bool,
    next: u64,
}

impl Clock {
    /// A steady clock of this period in picoseconds.
    pub fn steady(period_ps: u64) -> Self {
        let period = period_ps * 1000;
        Self {
            period,
            drift: 0,
            range: (period, period),
            jitter: 0,
            stopped: false,
            high: false,
            next: period / 3,
        }
    }

    /// A clock that wanders by this many parts per million around its period, with jittering edges.
    pub fn wandering(period_ps: u64, ppm: u64, seed: u64) -> Self {
        let mut clock = Self::steady(period_ps);
        let span = clock.period * ppm / 1_000_000;
        clock.range = (clock.period - span, clock.period + span);
        clock.drift = 1 + (seed % 7) as i64;
        clock.jitter = clock.period / 20;
        clock.next = clock.period / 3 + seed * 7919 % clock.period;
        clock
    }
}

/// How the PHY is joined.
enum Line {
    Gmii {
        tx_en: PortId,
        txd: PortId,
        dv: PortId,
        er: PortId,
        rxd: PortId,
    },
    /// Both edges; the PHY delays both clocks, so what stands after an edge belongs to it.
    Rgmii {
        tx_ctl: PortId,
        txd: PortId,
        rx_ctl: PortId,
        rxd: PortId,
    },
}

/// Ports of the core's side.
struct Ports {
    clk: [PortId; 3],
    tx_valid: PortId,
    tx_ready: PortId,
    tx_data: PortId,
    tx_keep: PortId,
    tx_last: PortId,
    rx_valid: PortId,
    rx_ready: PortId,
    rx_data: PortId,
    rx_keep: PortId,
    rx_last: PortId,
    rx_err: PortId,
}

/// The core's clock.
pub const SYS: usize = 0;
/// The transmit clock.
pub const GTX: usize = 1;
/// The receive clock.
pub const RX: usize = 2;

/// The bench.
pub struct MacBench {
    /// The model.
    pub dut: BlockModel,
    /// The clocks: [`SYS`], [`GTX`], [`RX`].
    pub clocks: [Clock; 3],
    /// Probability that the core offers a beat in a cycle (a frame that has begun is not held up).
    pub give: f64,
    /// Probability that the core takes a beat in a cycle.
    pub take: f64,
    /// Symbols that the PHY has still to give.
    pub line: VecDeque<Symbol>,
    /// What the MAC sent.
    pub sent: Vec<Sent>,
    /// What the core got.
    pub received: Vec<Received>,
    ports: Ports,
    side: Line,
    rng: Stream,
    to_send: VecDeque<Vec<u8>>,
    offered: usize,
    offering: bool,
    taking: bool,
    getting: Vec<u8>,
    gap: usize,
    sending: Option<Sent>,
    low: (bool, u8),
    on_line: Symbol,
    /// Femtoseconds since the start.
    pub now: u64,
}

impl MacBench {
    /// A bench of `rnic_mac` at its GMII.
    pub fn gmii(clocks: [Clock; 3], seed: u64) -> Self {
        Self::new(BlockModel::builder("rnic_mac"), clocks, seed)
    }

    /// A bench of any top with these ports.
    ///
    /// # Panics
    /// When the model cannot be built.
    pub fn new(builder: BlockBuilder, clocks: [Clock; 3], seed: u64) -> Self {
        let dut = builder.random_init(seed | 1).build().expect("the model");
        let has = |name: &str| dut.ports().iter().any(|p| p.name == name);
        let side = if has("gmii_tx_en_o") {
            Line::Gmii {
                tx_en: dut.port("gmii_tx_en_o"),
                txd: dut.port("gmii_txd_o"),
                dv: dut.port("gmii_rx_dv_i"),
                er: dut.port("gmii_rx_er_i"),
                rxd: dut.port("gmii_rxd_i"),
            }
        } else {
            Line::Rgmii {
                tx_ctl: dut.port("rgmii_tx_ctl_o"),
                txd: dut.port("rgmii_txd_o"),
                rx_ctl: dut.port("rgmii_rx_ctl_i"),
                rxd: dut.port("rgmii_rxd_i"),
            }
        };
        let rx_clk = if has("gmii_rx_clk_i") {
            "gmii_rx_clk_i"
        } else {
            "rgmii_rx_clk_i"
        };
        let ports = Ports {
            clk: [dut.port("clk_i"), dut.port("gtx_clk_i"), dut.port(rx_clk)],
            tx_valid: dut.port("mac_tx_valid_i"),
            tx_ready: dut.port("mac_tx_ready_o"),
            tx_data: dut.port("mac_tx_data_i"),
            tx_keep: dut.port("mac_tx_keep_i"),
            tx_last: dut.port("mac_tx_last_i"),
            rx_valid: dut.port("mac_rx_valid_o"),
            rx_ready: dut.port("mac_rx_ready_i"),
            rx_data: dut.port("mac_rx_data_o"),
            rx_keep: dut.port("mac_rx_keep_o"),
            rx_last: dut.port("mac_rx_last_o"),
            rx_err: dut.port("mac_rx_err_o"),
        };
        let mut bench = Self {
            dut,
            clocks,
            give: 1.0,
            take: 1.0,
            line: VecDeque::new(),
            sent: Vec::new(),
            received: Vec::new(),
            ports,
            side,
            rng: Stream::new(seed, "mac", 0),
            to_send: VecDeque::new(),
            offered: 0,
            offering: false,
            taking: false,
            getting: Vec::new(),
            gap: 0,
            sending: None,
            low: (false, 0),
            on_line: Symbol::default(),
            now: 0,
        };
        bench.reset();
        bench.dut.set("link_i", 1);
        bench.run_ns(2000);
        // What registers held before the reset is no frame.
        bench.sent.clear();
        bench.received.clear();
        bench
    }

    /// Gives a reset of a microsecond.
    pub fn reset(&mut self) {
        self.dut.set("rst_i", 1);
        self.dut.set("arst_i", 1);
        self.run_ns(1000);
        // What belongs to the core's clock changes between its edges.
        self.dut.set("arst_i", 0);
        self.run_ns(300);
        self.dut.set("rst_i", 0);
        self.getting.clear();
        self.offered = 0;
    }

    /// Queues a frame of the core.
    pub fn send(&mut self, frame: &[u8]) {
        self.to_send.push_back(frame.to_vec());
    }

    /// Queues a frame on the line, its FCS added, and the smallest gap behind it.
    pub fn arrive(&mut self, frame: &[u8]) {
        self.arrive_symbols(wire_frame(&with_fcs(frame)));
    }

    /// Queues a carrier on the line and the smallest gap behind it.
    pub fn arrive_symbols(&mut self, symbols: Vec<Symbol>) {
        self.line.extend(symbols);
        self.line.extend([Symbol::default(); GAP]);
    }

    /// Runs until time has passed.
    pub fn run_ns(&mut self, ns: u64) {
        let end = self.now + ns * 1_000_000;
        while self.step(end) {}
    }

    /// Runs until all queues are empty and both directions have been silent for long.
    ///
    /// # Panics
    /// When that does not happen within a bound that depends on what is queued.
    #[track_caller]
    pub fn drain(&mut self) {
        let bytes: usize = self.to_send.iter().map(Vec::len).sum::<usize>() + self.line.len();
        let slowest = self.clocks.iter().map(|c| c.range.1).max().unwrap_or(0) / 1000;
        let bound = (bytes as u64 * 3 + 100_000) * slowest / 1000;
        let end = self.now + bound * 1_000_000;
        let mut quiet = 0;
        while quiet < 6 {
            assert!(self.now < end, "not drained within {bound} ns");
            let before = (self.sent.len(), self.received.len());
            self.run_ns(20_000);
            let idle = self.line.is_empty() && self.to_send.is_empty() && self.sending.is_none();
            let moved = before != (self.sent.len(), self.received.len());
            quiet = if idle && !moved { quiet + 1 } else { 0 };
        }
    }

    /// A field of the counters `rx_cnt_o` by name.
    ///
    /// # Panics
    /// When there is no such field.
    pub fn rx_count(&self, name: &str) -> u64 {
        let (lsb, width) = match name {
            "good" => (96, 32),
            "fcs" => (80, 16),
            "runt" => (64, 16),
            "oversize" => (48, 16),
            "er" => (32, 16),
            "junk" => (16, 16),
            "drop" => (0, 16),
            _ => panic!("no counter {name}"),
        };
        self.dut.get_bits("rx_cnt_o", lsb, width)
    }

    /// A field of the counters `tx_cnt_o` by name.
    ///
    /// # Panics
    /// When there is no such field.
    pub fn tx_count(&self, name: &str) -> u64 {
        let (lsb, width) = match name {
            "sent" => (32, 32),
            "underrun" => (16, 16),
            "no_link" => (0, 16),
            _ => panic!("no counter {name}"),
        };
        self.dut.get_bits("tx_cnt_o", lsb, width)
    }

    /// One edge of one clock, if it comes before `end`.
    fn step(&mut self, end: u64) -> bool {
        let running = (0..3).filter(|c| !self.clocks[*c].stopped);
        let Some(clock) = running.min_by_key(|c| self.clocks[*c].next) else {
            self.now = end;
            return false;
        };
        if self.clocks[clock].next >= end {
            self.now = end;
            return false;
        }
        self.now = self.clocks[clock].next;
        let rising = !self.clocks[clock].high;
        if rising && clock == SYS {
            self.core_before();
        }
        self.dut.set_id(self.ports.clk[clock], u64::from(rising));
        self.dut.eval();
        match (clock, rising) {
            (SYS, true) => self.core_after(),
            (GTX, _) => self.phy_takes(rising),
            (RX, _) => self.phy_gives(rising),
            _ => {}
        }
        self.schedule(clock);
        true
    }

    fn schedule(&mut self, clock: usize) {
        let draw = self.rng.bits();
        let c = &mut self.clocks[clock];
        if c.stopped {
            return;
        }
        c.high = !c.high;
        let wander = if c.jitter == 0 { 0 } else { draw % c.jitter };
        c.next = (c.next + c.period / 2 + wander).saturating_sub(c.jitter / 2);
        if c.drift != 0 && c.high {
            let period = c.period.saturating_add_signed(c.drift);
            if period < c.range.0 || period > c.range.1 {
                c.drift = -c.drift;
            } else {
                c.period = period;
            }
        }
    }

    /// Starts a clock that stood still.
    pub fn start(&mut self, clock: usize) {
        self.clocks[clock].stopped = false;
        self.clocks[clock].next = self.now + self.clocks[clock].period;
    }

    fn core_before(&mut self) {
        let p = &self.ports;
        if self.offering && self.dut.get_id(p.tx_ready) == 1 {
            let frame = &self.to_send[0];
            self.offered += 8;
            if self.offered >= frame.len() {
                self.to_send.pop_front();
                self.offered = 0;
            }
            self.offering = false;
        }
        if self.taking && self.dut.get_id(p.rx_valid) == 1 {
            let (data, keep) = (self.dut.get_id(p.rx_data), self.dut.get_id(p.rx_keep));
            let count = keep.trailing_ones() as usize;
            assert_eq!(keep, (1u64 << count) - 1, "lanes from 0 up");
            let last = self.dut.get_id(p.rx_last) == 1;
            assert!(count > 0 && (last || count == 8), "beats are full but the last");
            self.getting.extend(&data.to_le_bytes()[..count]);
            let err = self.dut.get_id(p.rx_err) == 1;
            assert!(last || !err, "the error stands with the last beat");
            if last {
                let bytes = std::mem::take(&mut self.getting);
                self.received.push(Received { bytes, err });
            }
        }
    }

    fn core_after(&mut self) {
        let start = self.offered > 0 || self.rng.chance(self.give);
        if !self.offering && start && self.dut.get("rst_i") == 0 {
            self.offering = !self.to_send.is_empty();
        }
        if self.dut.get("rst_i") == 1 {
            self.offering = false;
        }
        let p = &self.ports;
        self.dut.set_id(p.tx_valid, u64::from(self.offering));
        if self.offering {
            let frame = &self.to_send[0];
            let beat = &frame[self.offered..frame.len().min(self.offered + 8)];
            let mut word = [0xa5; 8];
            word[..beat.len()].copy_from_slice(beat);
            self.dut.set_id(p.tx_data, u64::from_le_bytes(word));
            self.dut.set_id(p.tx_keep, (1 << beat.len()) - 1);
            self.dut.set_id(p.tx_last, u64::from(self.offered + 8 >= frame.len()));
        }
        self.taking = self.rng.chance(self.take);
        self.dut.set_id(p.rx_ready, u64::from(self.taking));
    }

    fn phy_takes(&mut self, rising: bool) {
        let symbol = match &self.side {
            Line::Gmii { tx_en, txd, .. } => {
                if !rising {
                    return;
                }
                Symbol {
                    dv: self.dut.get_id(*tx_en) == 1,
                    er: false,
                    data: self.dut.get_id(*txd) as u8,
                }
            }
            Line::Rgmii { tx_ctl, txd, .. } => {
                let (ctl, nibble) = (self.dut.get_id(*tx_ctl) == 1, self.dut.get_id(*txd) as u8);
                if rising {
                    self.low = (ctl, nibble);
                    return;
                }
                Symbol {
                    dv: self.low.0,
                    er: self.low.0 != ctl,
                    data: self.low.1 | nibble << 4,
                }
            }
        };
        assert!(!symbol.er, "the MAC never sends TX_ER");
        if symbol.dv {
            let gap = std::mem::take(&mut self.gap);
            let sending = self.sending.get_or_insert(Sent { gap, bytes: Vec::new() });
            sending.bytes.push(symbol.data);
        } else {
            self.gap += 1;
            self.sent.extend(self.sending.take());
        }
    }

    fn phy_gives(&mut self, rising: bool) {
        match &self.side {
            Line::Gmii { dv, er, rxd, .. } => {
                if rising {
                    let s = self.line.pop_front().unwrap_or_default();
                    self.dut.set_id(*dv, u64::from(s.dv));
                    self.dut.set_id(*er, u64::from(s.er));
                    self.dut.set_id(*rxd, u64::from(s.data));
                }
            }
            Line::Rgmii { rx_ctl, rxd, .. } => {
                // After the rising edge the second half, after the falling one the first half of the next.
                let s = if rising {
                    self.on_line
                } else {
                    self.on_line = self.line.pop_front().unwrap_or_default();
                    self.on_line
                };
                let (ctl, nibble) = if rising {
                    (s.dv != s.er, s.data >> 4)
                } else {
                    (s.dv, s.data & 15)
                };
                self.dut.set_id(*rx_ctl, u64::from(ctl));
                self.dut.set_id(*rxd, u64::from(nibble));
            }
        }
    }
}
