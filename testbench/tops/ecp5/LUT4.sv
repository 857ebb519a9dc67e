// SPDX-License-Identifier: Apache-2.0
// Four-input table of the ECP5: Z is the bit of INIT that {D, C, B, A} names.
module LUT4 #(
    parameter logic [15:0] INIT = 16'h0000
) (
    input  logic A, B, C, D,
    output logic Z
);
  assign Z = INIT[{D, C, B, A}];
endmodule
