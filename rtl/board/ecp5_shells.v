// SPDX-License-Identifier: Apache-2.0
// Shell of a cell of the ECP5 that Yosys has no shell of its own for: a pad (nextpnr knows it). T high lets go of B.
(* blackbox *)
module TRELLIS_IO #(
    parameter DIR = "INPUT"
) (
    (* iopad_external_pin *)
    inout  B,
    input  I,
    input  T,
    output O
);
endmodule
