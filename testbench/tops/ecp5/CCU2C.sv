// SPDX-License-Identifier: Apache-2.0
// Two bits of a carry chain (FPGA-TN-02205): each half is a table of four inputs, of which the lower quarter generates, and a carry that INJECT1 = "YES"
// keeps out of the sum.
module CCU2C #(
    parameter logic [15:0] INIT0 = 16'h0000,
    parameter logic [15:0] INIT1 = 16'h0000,
    parameter string INJECT1_0 = "YES",
    parameter string INJECT1_1 = "YES"
) (
    input  logic CIN,
    input  logic A0, B0, C0, D0,
    input  logic A1, B1, C1, D1,
    output logic S0, S1, COUT
);
  localparam bit Yes0 = INJECT1_0 == "YES";
  localparam bit Yes1 = INJECT1_1 == "YES";
  logic prop0, prop1, gen0, gen1, mid;
  assign prop0   = INIT0[{D0, C0, B0, A0}];
  assign gen0   = !Yes0 && INIT0[{2'b00, B0, A0}];
  assign S0   = prop0 ^ (!Yes0 && CIN);
  assign mid   = prop0 ? CIN : gen0;
  assign prop1   = INIT1[{D1, C1, B1, A1}];
  assign gen1   = !Yes1 && INIT1[{2'b00, B1, A1}];
  assign S1   = prop1 ^ (!Yes1 && mid);
  assign COUT = prop1 ? mid : gen1;
endmodule
