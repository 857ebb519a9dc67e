// SPDX-License-Identifier: Apache-2.0
// Writes a table of 64-bit words to the host: the device's capabilities or its counters.
// Contract: start_i (while idle) takes address and number of words; the words are asked for by index (idx_o) and answered one cycle later
// (word_i); done_o marks the cycle in which the last beat is accepted.
module rnic_query_wr
  import rnic_pkg::*;
#(
    parameter int unsigned DataW = 64
) (
    input  logic clk_i,
    input  logic rst_i,
    input  logic start_i,
    input  logic [63:0] addr_i,
    input  logic [6:0] words_i,
    output logic [6:0] idx_o,
    input  logic [63:0] word_i,
    output logic done_o,
    output logic wr_valid_o,
    input  logic wr_ready_i,
    output dma_wr_hdr_t wr_hdr_o,
    output logic [DataW-1:0] wr_data_o,
    output logic wr_last_o
);
  localparam int unsigned PerBeat = DataW / 64;
  localparam int unsigned LaneW = (PerBeat > 1) ? $clog2(PerBeat) : 1;
  typedef enum logic [1:0] {
    Idle,   // nothing asked
    Ask,    // index is out
    Take,   // word is here
    Send    // beat is offered
  } state_e;
  state_e state_q;
  logic [63:0] addr_q;
  logic [6:0] words_q, idx_q;
  logic [LaneW-1:0] lane_q;
  logic [PerBeat-1:0][63:0] beat_q;
  logic last_word;
  assign last_word  = idx_q == words_q - 7'd1;
  assign idx_o      = idx_q;
  assign wr_valid_o = state_q == Send;
  assign wr_hdr_o   = '{addr: addr_q, len: {6'd0, words_q, 3'd0}};
  assign wr_data_o  = beat_q;
  assign wr_last_o  = last_word;
  assign done_o     = state_q == Send && wr_ready_i && last_word;

  always_ff @(posedge clk_i) begin
    unique case (state_q)
      Idle:
      if (start_i) begin
        addr_q  <= addr_i;
        words_q <= words_i;
        idx_q   <= '0;
        lane_q  <= '0;
        beat_q  <= '0;
        state_q <= Ask;
      end
      Ask: state_q <= Take;
      Take: begin
        beat_q[lane_q] <= word_i;
        lane_q         <= lane_q + LaneW'(1);
        if (lane_q == LaneW'(PerBeat - 1) || last_word) state_q <= Send;
        else begin
          idx_q   <= idx_q + 7'd1;
          state_q <= Ask;
        end
      end
      default:
      if (wr_ready_i) begin
        idx_q   <= idx_q + 7'd1;
        lane_q  <= '0;
        beat_q  <= '0;
        state_q <= last_word ? Idle : Ask;
      end
    endcase
    if (rst_i) state_q <= Idle;
  end
endmodule
