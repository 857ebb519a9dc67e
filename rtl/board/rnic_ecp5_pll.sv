// SPDX-License-Identifier: Apache-2.0
// Clocks of a board with an ECP5 and an oscillator of 100 MHz: 125 MHz for the transmit side of RGMII, and the core's clock for everything else.
// 100 MHz / 4 * 5 = 125 MHz; the VCO runs at 750 MHz (125 * 6, within its 400 to 800), the second output divides it by BOARD_SYS_DIV.
// Contract: clocks are good while locked_o is high; it is asynchronous.
module rnic_ecp5_pll
  import rnic_spec_pkg::*;
(
    input  logic clk100_i,
    output logic clk_gtx_o,
    output logic clk_sys_o,
    output logic locked_o
);
  /* verilator lint_off PINCONNECTEMPTY */  // outputs that nobody uses
  (* FREQUENCY_PIN_CLKI = "100", FREQUENCY_PIN_CLKOP = "125",
     ICP_CURRENT = "12", LPF_RESISTOR = "8", MFG_ENABLE_FILTEROPAMP = "1", MFG_GMCREF_SEL = "2" *)
  EHXPLLL #(
      .PLLRST_ENA("DISABLED"), .INTFB_WAKE("DISABLED"), .STDBY_ENABLE("DISABLED"), .DPHASE_SOURCE("DISABLED"),
      .OUTDIVIDER_MUXA("DIVA"), .OUTDIVIDER_MUXB("DIVB"), .OUTDIVIDER_MUXC("DIVC"), .OUTDIVIDER_MUXD("DIVD"),
      .CLKI_DIV(4), .CLKFB_DIV(5), .FEEDBK_PATH("CLKOP"),
      .CLKOP_ENABLE("ENABLED"), .CLKOP_DIV(6), .CLKOP_CPHASE(2), .CLKOP_FPHASE(0),
      .CLKOS_ENABLE("ENABLED"), .CLKOS_DIV(BOARD_SYS_DIV), .CLKOS_CPHASE(2), .CLKOS_FPHASE(0)
  ) u_pll (
      .RST(1'b0), .STDBY(1'b0), .CLKI(clk100_i), .CLKFB(clk_gtx_o), .CLKOP(clk_gtx_o), .CLKOS(clk_sys_o), .CLKOS2(), .CLKOS3(),
      .CLKINTFB(), .INTLOCK(), .REFCLK(), .LOCK(locked_o), .PHASESEL0(1'b0), .PHASESEL1(1'b0), .PHASEDIR(1'b1), .PHASESTEP(1'b1),
      .PHASELOADREG(1'b1), .PLLWAKESYNC(1'b0), .ENCLKOP(1'b0), .ENCLKOS(1'b0), .ENCLKOS2(1'b0), .ENCLKOS3(1'b0)
  );
  /* verilator lint_on PINCONNECTEMPTY */
endmodule
