// SPDX-License-Identifier: Apache-2.0
//! A board's top from pin to pin: oscillator, PHY over MDIO, both edges of RGMII, serial line, LEDs.

use std::collections::VecDeque;

use openrnic_driver::spec::{BOARD_SYS_DIV, BOARD_VCO_HZ};
use openrnic_sim::model::{BlockBuilder, BlockModel, Effort, PortId};

use crate::mac_bench::{Symbol, wire_frame, with_fcs};
use crate::phy_model::Phy;

/// VCO cycles in one of the line's clock of 125 MHz.
const LINE: u64 = 6;

/// VCO cycles in one of the clock that the RNIC runs by.
pub const SYS: u64 = BOARD_SYS_DIV as u64;

/// Its frequency.
pub const SYS_HZ: u64 = BOARD_VCO_HZ as u64 / SYS;

/// A board's top with a PHY at its pins.
pub struct Board {
    /// The top.
    pub dut: BlockModel,
    /// What answers over MDIO.
    pub phy: Phy,
    /// What will arrive on RGMII, a symbol per 8 ns; idle when empty.
    pub line: VecDeque<Symbol>,
    /// What was sent on RGMII, symbol by symbol, idle ones too; to be drained.
    pub out: VecDeque<Symbol>,
    on_line: Symbol,
    /// Frames that were sent: preamble, frame, FCS.
    pub sent: Vec<Vec<u8>>,
    sending: Vec<u8>,
    tx_clk: bool,
    low: (bool, u8),
    tick: u64,
    ids: Vec<PortId>,
}

impl Board {
    /// The loopback image of a board: 0 versa5g, 1 ecpix5.
    pub fn loopback(board: u32) -> Self {
        Self::new(Self::builder().param("Board", board).random_init(3))
    }

    /// The RNIC's image, with a serial line of `baud`. Registers start at 0: at random, the core's assertions would fire in the cycles
    /// before the reset has come through its synchroniser.
    pub fn rnic(board: u32, baud: u32) -> Self {
        let builder = Self::builder().param("Board", board).param("Loopback", 0);
        Self::new(builder.param("Baud", baud).effort(Effort::Full))
    }

    fn builder() -> BlockBuilder {
        let mut builder = BlockModel::builder("board_top").source("testbench/tops/board_top.sv");
        for cell in ["DELAYG", "IDDRX1F", "ODDRX1F", "EHXPLLL", "TRELLIS_IO"] {
            builder = builder.source(format!("testbench/tops/ecp5/{cell}.sv"));
        }
        builder
    }

    #[allow(clippy::expect_used)]
    fn new(builder: BlockBuilder) -> Self {
        let mut dut = builder.build().expect("the board's top builds");
        dut.set("uart_rx_i", 1);
        let ids = [
            "vco_i",
            "eth_rx_clk_i",
            "eth_rx_ctl_i",
            "eth_rxd_i",
            "eth_tx_clk_o",
            "eth_tx_ctl_o",
            "eth_txd_o",
        ];
        let ids = ids.map(|n| dut.port(n)).to_vec();
        let mut phy = Phy::new(1, SYS_HZ);
        // Answers come in cycles of the RNIC's clock.
        phy.link(false, false);
        let mut board = Self {
            dut,
            phy,
            line: VecDeque::new(),
            out: VecDeque::new(),
            on_line: Symbol::default(),
            sent: Vec::new(),
            sending: Vec::new(),
            tx_clk: false,
            low: (false, 0),
            tick: 0,
            ids,
        };
        // The button, until the PLL has locked.
        board.run(3000);
        board.dut.set("rst_n_i", 1);
        board.sent.clear();
        board.out.clear();
        board.sending.clear();
        board
    }

    /// Cycles of the VCO.
    pub fn run(&mut self, ticks: u64) {
        for _ in 0..ticks {
            self.dut.set_id(self.ids[0], 0);
            self.dut.eval();
            self.dut.set_id(self.ids[0], 1);
            // The PHY's clock has a phase of its own; data changes a quarter of its cycle before an edge.
            match self.tick % LINE {
                0 => self.dut.set_id(self.ids[1], 1),
                1 => self.give(self.on_line.dv != self.on_line.er, self.on_line.data >> 4),
                3 => self.dut.set_id(self.ids[1], 0),
                4 => {
                    self.on_line = self.line.pop_front().unwrap_or_default();
                    self.give(self.on_line.dv, self.on_line.data & 15);
                }
                _ => {}
            }
            self.dut.eval();
            self.take();
            if self.tick.is_multiple_of(SYS) {
                self.mdio();
            }
            self.tick += 1;
        }
    }

    fn give(&mut self, ctl: bool, nibble: u8) {
        self.dut.set_id(self.ids[2], u64::from(ctl));
        self.dut.set_id(self.ids[3], u64::from(nibble));
    }

    fn take(&mut self) {
        let clk = self.dut.get_id(self.ids[4]) == 1;
        if clk == self.tx_clk {
            return;
        }
        self.tx_clk = clk;
        let (ctl, nibble) = (self.dut.get_id(self.ids[5]) == 1, self.dut.get_id(self.ids[6]) as u8);
        if clk {
            self.low = (ctl, nibble);
            return;
        }
        let data = self.low.1 | nibble << 4;
        self.out.push_back(Symbol {
            dv: self.low.0,
            er: self.low.0 != ctl,
            data,
        });
        if self.low.0 {
            self.sending.push(data);
        } else if !self.sending.is_empty() {
            self.sent.push(std::mem::take(&mut self.sending));
        }
    }

    fn mdio(&mut self) {
        if self.dut.get("eth_rst_n_o") == 0 {
            self.phy.reset();
        }
        // The model drives what it says, on the wire that the top pulls up.
        let wire = self.dut.get("mdio_o") == 1;
        self.phy.cycle(self.dut.get("eth_mdc_o") == 1, wire);
        self.dut.set("phy_drives_i", u64::from(self.phy.driven().is_some()));
        self.dut.set("phy_value_i", u64::from(self.phy.driven() == Some(true)));
    }

    /// A frame arrives, with its FCS and a gap.
    pub fn arrive(&mut self, frame: &[u8]) {
        self.line.extend(wire_frame(&with_fcs(frame)));
        self.line.extend([Symbol::default(); 12]);
    }

    /// Runs until something holds, looking every 300 cycles of the VCO.
    ///
    /// # Panics
    /// When it does not within `ticks` of them.
    #[track_caller]
    pub fn until(&mut self, what: &str, ticks: u64, mut done: impl FnMut(&Self) -> bool) {
        for _ in 0..ticks / 300 {
            if done(self) {
                return;
            }
            self.run(300);
        }
        panic!("{what}: not within {ticks} cycles of the VCO");
    }
}
