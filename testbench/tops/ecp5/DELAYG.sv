// SPDX-License-Identifier: Apache-2.0
// Stands for the ECP5's delay cell, DEL_VALUE steps of 25 ps. Simulation here has no time within a clock's half: the signal passes.
/* verilator lint_off UNUSEDPARAM */  // of the silicon
module DELAYG #(
    parameter string DEL_MODE = "USER_DEFINED",
    parameter int unsigned DEL_VALUE = 0
) (
    input  logic A,
    output logic Z
);
  if (DEL_VALUE > 127) begin : g_range
    $fatal(1, "DEL_VALUE has 7 bits");
  end
  assign Z = A;
endmodule
/* verilator lint_on UNUSEDPARAM */
