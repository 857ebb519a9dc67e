// SPDX-License-Identifier: Apache-2.0
// Writes one 32-byte queue entry to the host.
// Contract: start_i (only while busy_o is low) takes entry and address; done_o marks the cycle in which the last beat is accepted.
module rnic_entry_wr
  import rnic_pkg::*;
#(
    parameter int unsigned DataW = 64
) (
    input  logic clk_i,
    input  logic rst_i,
    input  logic start_i,
    output logic busy_o,
    input  logic [63:0] addr_i,
    input  logic [255:0] entry_i,
    output logic done_o,
    output logic wr_valid_o,
    input  logic wr_ready_i,
    output dma_wr_hdr_t wr_hdr_o,
    output logic [DataW-1:0] wr_data_o,
    output logic wr_last_o
);
  localparam int unsigned Beats = (DataW >= 256) ? 1 : 256 / DataW;
  localparam int unsigned BeatW = (Beats > 1) ? $clog2(Beats) : 1;
  logic [255:0] entry_q;
  logic [63:0] addr_q;
  logic [BeatW-1:0] beat_q;
  logic busy_q;
  assign busy_o     = busy_q;
  assign wr_valid_o = busy_q;
  assign wr_hdr_o   = '{addr: addr_q, len: 16'd32};
  assign wr_data_o  = DataW'(entry_q);
  assign wr_last_o  = beat_q == BeatW'(Beats - 1);
  assign done_o     = busy_q && wr_ready_i && wr_last_o;
  always_ff @(posedge clk_i) begin
    if (rst_i) busy_q <= 1'b0;
    else if (start_i) begin
      busy_q  <= 1'b1;
      beat_q  <= '0;
      entry_q <= entry_i;
      addr_q  <= addr_i;
    end else if (busy_q && wr_ready_i) begin
      beat_q  <= beat_q + BeatW'(1);
      if (DataW < 256) entry_q <= entry_q >> (DataW % 256);
      if (wr_last_o) busy_q <= 1'b0;
    end
    if (!rst_i && start_i) a_start_when_free : assert (!busy_q);
  end
endmodule
