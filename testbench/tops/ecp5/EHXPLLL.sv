// SPDX-License-Identifier: Apache-2.0
// Stands for the ECP5's PLL in simulation without time: CLKI is driven at the frequency of the VCO, and outputs divide it. LOCK comes after 64 cycles
// of it. The ratio that a real one keeps between CLKI and its outputs is checked against the VCO's range.
/* verilator lint_off UNUSEDPARAM */  // analog settings
module EHXPLLL #(
    parameter string PLLRST_ENA = "DISABLED",
    parameter string INTFB_WAKE = "DISABLED",
    parameter string STDBY_ENABLE = "DISABLED",
    parameter string DPHASE_SOURCE = "DISABLED",
    parameter string OUTDIVIDER_MUXA = "DIVA",
    parameter string OUTDIVIDER_MUXB = "DIVB",
    parameter string OUTDIVIDER_MUXC = "DIVC",
    parameter string OUTDIVIDER_MUXD = "DIVD",
    parameter string FEEDBK_PATH = "CLKOP",
    parameter string CLKOP_ENABLE = "ENABLED",
    parameter string CLKOS_ENABLE = "DISABLED",
    parameter int unsigned CLKI_DIV = 1,
    parameter int unsigned CLKFB_DIV = 1,
    parameter int unsigned CLKOP_DIV = 8,
    parameter int unsigned CLKOP_CPHASE = 0,
    parameter int unsigned CLKOP_FPHASE = 0,
    parameter int unsigned CLKOS_DIV = 8,
    parameter int unsigned CLKOS_CPHASE = 0,
    parameter int unsigned CLKOS_FPHASE = 0
) (
    input  logic CLKI,
    input  logic CLKFB,
    input  logic PHASESEL1,
    input  logic PHASESEL0,
    input  logic PHASEDIR,
    input  logic PHASESTEP,
    input  logic PHASELOADREG,
    input  logic STDBY,
    input  logic PLLWAKESYNC,
    input  logic RST,
    input  logic ENCLKOP,
    input  logic ENCLKOS,
    input  logic ENCLKOS2,
    input  logic ENCLKOS3,
    output logic CLKOP,
    output logic CLKOS,
    output logic CLKOS2,
    output logic CLKOS3,
    output logic LOCK,
    output logic INTLOCK,
    output logic REFCLK,
    output logic CLKINTFB
);
  localparam int unsigned Input = 100;   // MHz, the boards' oscillator
  localparam int unsigned Vco = Input / CLKI_DIV * CLKFB_DIV * CLKOP_DIV;
  if (Vco < 400 || Vco > 800) begin : g_vco
    $fatal(1, "the VCO runs at 400 to 800 MHz");
  end
  /* verilator lint_off PROCASSINIT */  // silicon has no reset either
  logic [7:0] op_q = '0;
  logic [7:0] os_q = '0;
  logic [6:0] lock_q = '0;
  /* verilator lint_on PROCASSINIT */
  always_ff @(posedge CLKI) begin
    op_q   <= (op_q == 8'(CLKOP_DIV - 1)) ? '0 : op_q + 8'd1;
    os_q   <= (os_q == 8'(CLKOS_DIV - 1)) ? '0 : os_q + 8'd1;
    CLKOP  <= op_q < 8'(CLKOP_DIV / 2);
    CLKOS  <= os_q < 8'(CLKOS_DIV / 2);
    if (!lock_q[6]) lock_q <= lock_q + 7'd1;
  end
  assign LOCK = lock_q[6];
  assign {CLKOS2, CLKOS3, INTLOCK, REFCLK, CLKINTFB} = '0;
  /* verilator lint_off UNUSEDSIGNAL */
  logic unused;
  assign unused = &{CLKFB, PHASESEL1, PHASESEL0, PHASEDIR, PHASESTEP, PHASELOADREG, STDBY, PLLWAKESYNC, RST, ENCLKOP, ENCLKOS, ENCLKOS2, ENCLKOS3};
  /* verilator lint_on UNUSEDSIGNAL */
endmodule
/* verilator lint_on UNUSEDPARAM */
