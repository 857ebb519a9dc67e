// SPDX-License-Identifier: Apache-2.0
// Register slice at half rate: cuts the paths of a channel in both directions for one register a bit and no multiplexer.
// Contract: no combinational path from input to output; order kept; out_data_o stable while it waits. One item in two cycles at most: where every cycle
// counts, rnic_skid.
module rnic_slice #(
    parameter int unsigned Width = 32
) (
    input  logic             clk_i,
    input  logic             rst_i,
    input  logic             in_valid_i,
    output logic             in_ready_o,
    input  logic [Width-1:0] in_data_i,
    output logic             out_valid_o,
    input  logic             out_ready_i,
    output logic [Width-1:0] out_data_o
);
  logic valid_q;
  logic [Width-1:0] data_q;
  assign in_ready_o  = !valid_q;
  assign out_valid_o = valid_q;
  assign out_data_o  = data_q;
  always_ff @(posedge clk_i) begin
    if (!valid_q) data_q <= in_data_i;
    if (rst_i) valid_q <= 1'b0;
    else valid_q <= valid_q ? !out_ready_i : in_valid_i;
  end
endmodule
