// SPDX-License-Identifier: Apache-2.0
// Distributed RAM of 16 words of 4 bits: written at the rising clock, read at once.
module TRELLIS_DPR16X4 #(
    parameter string WCKMUX = "WCK",
    parameter string WREMUX = "WRE",
    parameter logic [63:0] INITVAL = 64'h0
) (
    input  logic [3:0] DI,
    input  logic [3:0] WAD,
    input  logic       WRE,
    input  logic       WCK,
    input  logic [3:0] RAD,
    output logic [3:0] DO
);
  logic [3:0] mem[16];
  initial begin
    if (WCKMUX != "WCK" || WREMUX != "WRE") $error("TRELLIS_DPR16X4: a mode that this model does not have");
    for (int i = 0; i < 16; i++) mem[i] = INITVAL[4*i+:4];
  end
  always_ff @(posedge WCK) if (WRE) mem[WAD] <= DI;
  assign DO = mem[RAD];
endmodule
