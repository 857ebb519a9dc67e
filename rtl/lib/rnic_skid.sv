// SPDX-License-Identifier: Apache-2.0
// Skid buffer: registers valid and data forward and ready backward, full throughput.
// Contract: no combinational path from input to output; order kept; out_data_o stable while it waits.
module rnic_skid #(
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
  logic             spare_valid_q, out_valid_q;
  logic [Width-1:0] spare_q, out_q;

  assign in_ready_o  = !spare_valid_q;
  assign out_valid_o = out_valid_q;
  assign out_data_o  = out_q;

  always_ff @(posedge clk_i) begin
    if (out_ready_i || !out_valid_q) begin
      if (spare_valid_q) out_q <= spare_q;
      else if (in_valid_i) out_q <= in_data_i;
    end
    if (in_ready_o) spare_q <= in_data_i;
    if (rst_i) begin
      spare_valid_q <= 1'b0;
      out_valid_q   <= 1'b0;
    end else begin
      if (out_ready_i || !out_valid_q) begin
        out_valid_q   <= spare_valid_q || in_valid_i;
        spare_valid_q <= 1'b0;
      end else if (in_valid_i && in_ready_o) begin
        spare_valid_q <= 1'b1;
      end
    end
  end
endmodule
