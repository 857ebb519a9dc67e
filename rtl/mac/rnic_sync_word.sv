// SPDX-License-Identifier: Apache-2.0
// A word into another clock's domain by request and acknowledge, again and again: what comes out is the word as it stood at one moment.
// Contract: for words whose every value need not be seen (counters, states). data_o is a value that src_data_i had at one edge of
// src_clk_i, and never goes back to an older one; when src_clk_i stands still it holds. Both sides are reset from one request (rnic_reset_sync): request and
// acknowledge must begin equal, else two rounds would be under way at a time.
module rnic_sync_word #(
    parameter int unsigned Width = 32
) (
    input  logic             src_clk_i,
    input  logic             src_rst_i,
    input  logic [Width-1:0] src_data_i,
    input  logic             dst_clk_i,
    input  logic             dst_rst_i,
    output logic [Width-1:0] data_o
);
  logic req_q, ack_q, req_seen, ack_seen;
  logic [Width-1:0] hold_q;
  rnic_sync_bit u_req (.clk_i(src_clk_i), .d_i(req_q), .q_o(req_seen));
  rnic_sync_bit u_ack (.clk_i(dst_clk_i), .d_i(ack_q), .q_o(ack_seen));
  // hold_q changes only when a new request is seen, and that is made only after the word before was taken.
  always_ff @(posedge src_clk_i) begin
    ack_q <= req_seen && !src_rst_i;
    if (ack_q != req_seen) hold_q <= src_data_i;
  end
  always_ff @(posedge dst_clk_i) begin
    if (ack_seen == req_q) begin
      data_o <= hold_q;
      req_q  <= !req_q;
    end
    if (dst_rst_i) begin
      req_q  <= 1'b0;
      data_o <= '0;
    end
  end

`ifdef FORMAL_SYNC_WORD
`include "rnic_sync_word.svh"
`endif
endmodule
