// SPDX-License-Identifier: Apache-2.0
// Behaviour of the ECP5's input register for both edges (FPGA-TN-02035): what a rising edge of SCLK and the falling one behind it saw leaves
// with the next rising edge, in Q0 and Q1.
/* verilator lint_off UNUSEDPARAM */  // of the silicon
module IDDRX1F #(
    parameter string GSR = "ENABLED"
) (
    input  logic D,
    input  logic SCLK,
    input  logic RST,
    output logic Q0,
    output logic Q1
);
  logic rise_q, fall_q;
  always_ff @(negedge SCLK) fall_q <= D;
  always_ff @(posedge SCLK) begin
    rise_q <= D;
    Q0     <= rise_q && !RST;
    Q1     <= fall_q && !RST;
  end
endmodule
/* verilator lint_on UNUSEDPARAM */
