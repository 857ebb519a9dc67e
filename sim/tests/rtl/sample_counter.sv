// SPDX-License-Identifier: Apache-2.0
// Counts; the example of how a bench drives a block. Wide ports and an assertion are here to be tested.
module sample_counter #(
    parameter int unsigned Width = 8,
    parameter int unsigned WideW = 100
) (
    input  logic             clk_i,
    input  logic             rst_i,
    input  logic             en_i,
    input  logic             forbidden_i,
    input  logic [WideW-1:0] wide_i,
    output logic             ready_o,    // combinational
    output logic [Width-1:0] count_o,
    output logic [WideW-1:0] wide_o
);
  assign ready_o = !en_i;
  always_ff @(posedge clk_i) begin
    if (en_i) count_o <= count_o + 1;
    wide_o <= ~wide_i;
    if (rst_i) count_o <= '0;
  end
  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      assert (!forbidden_i) else $error("forbidden_i was set");
    end
  end
endmodule
