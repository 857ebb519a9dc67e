// SPDX-License-Identifier: Apache-2.0
// Behaviour of the ECP5's output register for both edges (FPGA-TN-02035): with a rising edge of SCLK both bits are taken; D0 stands at Q while
// SCLK is high, D1 while it is low.
/* verilator lint_off UNUSEDPARAM */  // of the silicon
module ODDRX1F #(
    parameter string GSR = "ENABLED"
) (
    input  logic SCLK,
    input  logic RST,
    input  logic D0,
    input  logic D1,
    output logic Q
);
  logic high_q, low_q;
  always_ff @(posedge SCLK) begin
    high_q <= D0 && !RST;
    low_q  <= D1 && !RST;
  end
  assign Q = SCLK ? high_q : low_q;
endmodule
/* verilator lint_on UNUSEDPARAM */
