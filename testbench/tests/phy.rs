// SPDX-License-Identifier: Apache-2.0
//! `rnic_phy_ctl` and `rnic_mdio` against a PHY that speaks clause 22: found at any address, set up, watched.
#![allow(clippy::unwrap_used)]

use openrnic_sim::model::BlockModel;
use openrnic_testbench::phy_model::Phy;

/// `MdcHalf` of 12 makes 2.1 MHz of it.
const CLOCK_HZ: u64 = 50_000_000;

const RESET: u64 = 0;
const NONE: u64 = 1;
const NO_LINK: u64 = 2;
const OTHER_MODE: u64 = 3;
const UP: u64 = 4;

struct Bench {
    dut: BlockModel,
    phy: Phy,
}

impl Bench {
    fn new(phy: Phy) -> Self {
        // {register 0, mask 8000, value 8000}, {register 21, mask 0030, value 0030}
        let init = (u128::from(0x8000_8000_u64) << 37) | u128::from(21_u64 << 32 | 0x0030_0030);
        let mut dut = BlockModel::builder("rnic_phy_ctl")
            .param("ResetCycles", 200)
            .param("PollCycles", 300)
            .param("MdcHalf", 12)
            .param("NumInit", 2)
            .param("Init", format!("74'h{init:x}"))
            .random_init(1)
            .build()
            .unwrap();
        dut.reset(4);
        Self { dut, phy }
    }

    fn run(&mut self, cycles: u64) {
        for _ in 0..cycles {
            // In hardware reset a PHY does not answer.
            if self.dut.get("phy_rst_n_o") == 0 {
                self.phy.reset();
            }
            let master = (self.dut.get("mdio_oe_o") == 1).then(|| self.dut.get("mdio_o") == 1);
            assert!(master.is_none() || self.phy.driven().is_none(), "both drive MDIO");
            // Pulled up.
            let wire = master.or(self.phy.driven()).unwrap_or(true);
            self.phy.cycle(self.dut.get("mdc_o") == 1, wire);
            self.dut.set("mdio_i", u64::from(wire));
            self.dut.clock();
        }
    }

    #[track_caller]
    fn run_until(&mut self, state: u64, cycles: u64) {
        for _ in 0..cycles / 20 {
            self.run(20);
            if self.dut.get("state_o") == state {
                return;
            }
        }
        panic!("state {} after {cycles} cycles, not {state}", self.dut.get("state_o"));
    }
}

#[test]
fn a_phy_is_found_at_any_address_set_up_and_its_link_told() {
    for addr in [0, 1, 7, 31] {
        let mut phy = Phy::new(addr, CLOCK_HZ);
        phy.link(true, true);
        let mut bench = Bench::new(phy);
        assert_eq!((bench.dut.get("state_o"), bench.dut.get("phy_rst_n_o")), (RESET, 0));
        bench.run(150);
        assert_eq!(bench.dut.get("phy_rst_n_o"), 0, "reset is held");
        bench.run_until(UP, 100_000);
        assert_eq!(
            (bench.dut.get("link_o"), bench.dut.get("phy_addr_o")),
            (1, u64::from(addr))
        );
        // Read, change of the bits of the mask alone, write; in order.
        let settings: Vec<_> = bench
            .phy
            .log
            .iter()
            .filter(|l| l.0 || l.1 == 21 || l.1 == 0)
            .copied()
            .collect();
        let expected = [
            (false, 21, 0x1046),
            (true, 21, 0x1076),
            (false, 0, 0),
            (true, 0, 0x8000),
        ];
        assert_eq!(settings, expected);
    }
}

#[test]
fn a_link_that_is_not_1000base_t_full_duplex_is_told_and_not_used() {
    let mut phy = Phy::new(3, CLOCK_HZ);
    phy.link(false, false);
    let mut bench = Bench::new(phy);
    bench.run_until(NO_LINK, 100_000);
    assert_eq!(bench.dut.get("link_o"), 0);
    // 100 Mbit/s: a link, but the partner has no 1000BASE-T.
    bench.phy.link(true, false);
    bench.run_until(OTHER_MODE, 30_000);
    assert_eq!(bench.dut.get("link_o"), 0);
    bench.phy.link(true, true);
    bench.run_until(UP, 30_000);
    // This end does not offer it.
    bench.phy.regs[9] = 0;
    bench.run_until(OTHER_MODE, 30_000);
    assert_eq!(bench.dut.get("link_o"), 0);
    bench.phy.regs[9] = 0x0200;
    bench.run_until(UP, 30_000);
    assert_eq!(bench.dut.get("link_o"), 1);
    // Link without negotiation that has ended.
    bench.phy.regs[1] &= !0x20;
    bench.run_until(NO_LINK, 30_000);
    assert_eq!(bench.dut.get("link_o"), 0);
}

#[test]
fn a_phy_that_does_not_answer_is_told_and_one_that_goes_is_reset_and_found_again() {
    let mut phy = Phy::new(2, CLOCK_HZ);
    phy.link(true, true);
    phy.there = false;
    let mut bench = Bench::new(phy);
    bench.run_until(NONE, 100_000);
    bench.phy.there = true;
    bench.run_until(UP, 200_000);
    bench.phy.there = false;
    bench.run_until(RESET, 30_000);
    assert_eq!((bench.dut.get("link_o"), bench.dut.get("phy_rst_n_o")), (0, 0));
    bench.phy.there = true;
    bench.phy.addr = 5;
    bench.run_until(UP, 200_000);
    assert_eq!(bench.dut.get("phy_addr_o"), 5);
}
