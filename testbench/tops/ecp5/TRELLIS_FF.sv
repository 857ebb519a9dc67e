// SPDX-License-Identifier: Apache-2.0
// Flip-flop of a slice as synthesis uses it: rising clock, set or reset in the clock (over the enable with SRMODE LSR_OVER_CE), no asynchronous use.
module TRELLIS_FF #(
    parameter string GSR = "ENABLED",
    parameter string CEMUX = "CE",
    parameter string CLKMUX = "CLK",
    parameter string LSRMUX = "LSR",
    parameter string LSRONMUX = "LSRMUX",
    parameter string SRMODE = "LSR_OVER_CE",
    parameter string REGSET = "RESET"
) (
    input  logic CLK,
    input  logic LSR,
    input  logic CE,
    input  logic DI,
    output logic Q
);
  localparam bit Set = REGSET == "SET";
  logic enable, set;
  assign enable  = CEMUX == "1" || (CEMUX != "0" && ((CEMUX == "INV") ^ CE));
  assign set = LSRMUX != "0" && ((LSRMUX == "INV") ^ LSR);
  initial begin
    if (GSR == "ENABLED" || CLKMUX != "CLK" || LSRONMUX != "LSRMUX" || (SRMODE != "LSR_OVER_CE" && LSRMUX != "0" && LSRMUX != "LSR"))
      $error("TRELLIS_FF: a mode that this model does not have");
  end
  always_ff @(posedge CLK) begin
    if (set && (enable || SRMODE == "LSR_OVER_CE")) Q <= Set;
    else if (enable) Q <= DI;
  end
endmodule
