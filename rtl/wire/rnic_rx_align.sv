// SPDX-License-Identifier: Apache-2.0
// Cuts the payload out of a packet: from the byte behind its headers, which is a multiple of 4, payload_len bytes, moved
// to lane 0; pad, ICRC and Ethernet padding fall away.
// Contract: never refuses a beat, a beat every cycle. beat_idx_i counts the packet's beats (stops at 15); end_i is high
// in the cycle after the packet's last beat. hdr_len_i, len_i and en_i must be right from the beat after the one that
// holds the BTH's last byte until end_i. Every beat out but the last is full, lanes above the payload are zero;
// the last one comes at the latest in the cycle after end_i. A packet that ends early gives what is there.
module rnic_rx_align
  import rnic_pkg::*;
#(
    parameter int unsigned DataW = 64
) (
    input  logic             clk_i,
    input  logic             rst_i,
    input  logic             beat_valid_i,
    input  logic [3:0]       beat_idx_i,
    input  logic [DataW-1:0] beat_data_i,
    input  logic             end_i,
    input  logic [6:0]       hdr_len_i,
    input  pay_len_t         len_i,
    input  logic             en_i,        // the packet has a payload that is wanted
    output logic             pay_valid_o,
    output logic [DataW-1:0] pay_data_o,
    output logic             pay_last_o
);
  localparam int unsigned Bytes = DataW / 8;
  localparam int unsigned Dwords = Bytes / 4;
  localparam int unsigned OffW = $clog2(Dwords);

  logic [DataW-1:0] prev_q, chunk, masked;
  logic [3:0] prev_idx_q, start;
  pay_len_t done_q, left;
  logic [OffW-1:0] off;
  logic emit;

  assign start = 4'(hdr_len_i / 7'(Bytes));
  assign off   = OffW'(hdr_len_i >> 2);
  assign left  = len_i - done_q;
  // A chunk begins in the beat before and ends in this one, or the packet ended in the beat before.
  assign emit  = (beat_valid_i && beat_idx_i > start) || (end_i && prev_idx_q >= start);
  assign chunk = DataW'({beat_data_i, prev_q} >> {off, 5'b0});
  always_comb begin
    masked = '0;
    for (int unsigned i = 0; i < Bytes; i++) if (left > pay_len_t'(i)) masked[8*i+:8] = chunk[8*i+:8];
  end

  always_ff @(posedge clk_i) begin
    pay_valid_o <= emit && en_i && done_q < len_i && !rst_i;
    pay_data_o  <= masked;
    pay_last_o  <= left <= pay_len_t'(Bytes);
    if (beat_valid_i) begin
      prev_q     <= beat_data_i;
      prev_idx_q <= beat_idx_i;
    end
    if (beat_valid_i && beat_idx_i == '0) done_q <= '0;
    else if (emit && done_q < len_i) done_q <= done_q + pay_len_t'(Bytes);
  end
endmodule
