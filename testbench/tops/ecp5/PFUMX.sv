// SPDX-License-Identifier: Apache-2.0
// Multiplexer of an ECP5 slice: makes a table of five inputs of two of four.
module PFUMX (
    input  logic ALUT, BLUT, C0,
    output logic Z
);
  assign Z = C0 ? ALUT : BLUT;
endmodule
