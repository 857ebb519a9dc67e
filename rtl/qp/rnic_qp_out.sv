// SPDX-License-Identifier: Apache-2.0
// Writes the outputs of a QP command: a QPN list (4 bytes at a time) or a query (whole beats).
// Contract: start_i (only while idle_o) with address and length in bytes; then exactly that much is given, a word or a beat
// a cycle, never refused, but only begun while room_o was high a cycle before. It leaves as messages of 256 bytes (the last may be
// shorter), each begun only when it is complete here, so that nobody waits behind a half-made one. idle_o: all is accepted. The buffer
// stands outside (buf_*: a FIFO of BufBeats, empty at start_i), since no command both reads a list and writes one.
module rnic_qp_out
  import rnic_pkg::*;
#(
    parameter int unsigned DataW = 64,
    localparam int unsigned Depth = 2 * 256 * 8 / DataW,    // messages of 256 bytes
    localparam int unsigned LvlW = $clog2(Depth + 1)
) (
    input  logic clk_i,
    input  logic rst_i,
    input  logic start_i,
    input  logic [63:0] addr_i,
    input  logic [18:0] len_i,               // bytes, a multiple of 4
    input  logic word_valid_i,
    input  logic [31:0] word_i,
    input  logic beat_valid_i,
    input  logic [DataW-1:0] beat_i,
    output logic buf_push_o,
    output logic [DataW-1:0] buf_data_o,
    input  logic buf_ready_i,
    input  logic buf_valid_i,
    output logic buf_pop_o,
    input  logic [DataW-1:0] buf_data_i,
    input  logic [LvlW-1:0] buf_level_i,
    output logic room_o,
    output logic idle_o,
    output logic wr_valid_o, input logic wr_ready_i, output dma_wr_hdr_t wr_hdr_o, output logic [DataW-1:0] wr_data_o, output logic wr_last_o
);
  localparam int unsigned BeatB = DataW / 8;
  localparam int unsigned MsgB = 256;
  localparam int unsigned NumLane = DataW / 32;
  localparam int unsigned LaneW = $clog2(NumLane);

  // ---------------------------------------------------------------- words become beats
  logic [DataW-1:0] packed_beat;
  logic [NumLane-1:0][31:0] pack_q;          // words that wait for the rest of their beat
  logic [LaneW-1:0] lane_q;
  logic [18:0] give_q;                       // bytes still to be given
  logic push;
  // Beyond the last word of a list the beat holds anything: nobody is given it.
  for (genvar l = 0; l < NumLane; l++) begin : g_lane
    assign packed_beat[32*l+:32] = beat_valid_i ? beat_i[32*l+:32] : (32'(lane_q) > l) ? pack_q[l] : word_i;
    always_ff @(posedge clk_i) if (lane_q == LaneW'(l)) pack_q[l] <= word_i;
  end
  assign push = beat_valid_i || (word_valid_i && (lane_q == LaneW'(NumLane - 1) || give_q == 19'd4));

  assign buf_push_o = push;
  assign buf_data_o = packed_beat;
  assign wr_data_o  = buf_data_i;
  assign room_o     = buf_level_i <= LvlW'(Depth - 2);

  // ---------------------------------------------------------------- messages
  logic send_q;
  logic [63:0] addr_q;
  logic [18:0] left_q;                       // bytes not sent, from addr_q on
  logic [15:0] len_q;                        // of the message under way
  logic [LvlW-1:0] beats_q;
  logic [15:0] len_next;
  logic [LvlW-1:0] beats_next;

  assign len_next   = (left_q > 19'(MsgB)) ? 16'(MsgB) : 16'(left_q);
  assign beats_next = LvlW'((len_next + 16'(BeatB - 1)) / 16'(BeatB));
  assign wr_valid_o = send_q;
  assign wr_hdr_o   = '{addr: addr_q, len: len_q};
  assign wr_last_o  = beats_q == LvlW'(1);
  assign buf_pop_o  = send_q && wr_ready_i;
  assign idle_o     = left_q == '0;

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      send_q <= 1'b0;
      left_q <= '0;
      give_q <= '0;
    end else begin
      if (word_valid_i) begin
        lane_q <= lane_q + LaneW'(1);
        give_q <= give_q - 19'd4;
      end
      if (beat_valid_i) give_q <= give_q - 19'(BeatB);
      if (!send_q) begin
        if (left_q != '0 && buf_level_i >= beats_next) begin
          send_q  <= 1'b1;
          len_q   <= len_next;
          beats_q <= beats_next;
        end
      end else if (wr_ready_i) begin
        beats_q <= beats_q - LvlW'(1);
        if (wr_last_o) begin
          send_q <= 1'b0;
          left_q <= left_q - 19'(len_q);
          addr_q <= addr_q + 64'(len_q);
        end
      end
      if (start_i) begin
        addr_q <= addr_i;
        left_q <= len_i;
        give_q <= len_i;
        lane_q <= '0;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      if (start_i) a_start_idle : assert (idle_o);
      if (push) a_room : assert (buf_ready_i && give_q != '0);
      if (send_q) a_complete : assert (buf_valid_i);
    end
  end
endmodule
