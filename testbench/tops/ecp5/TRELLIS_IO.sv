// SPDX-License-Identifier: Apache-2.0
// Behaviour of a pad of the ECP5 for both directions: T high lets go of it.
/* verilator lint_off UNUSEDPARAM */  // of the silicon
module TRELLIS_IO #(
    parameter string DIR = "BIDIR"
) (
    inout  wire  B,
    input  logic I,
    input  logic T,
    output logic O
);
  assign B = T ? 1'bz : I;
  assign O = B;
endmodule
/* verilator lint_on UNUSEDPARAM */
