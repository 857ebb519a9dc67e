// SPDX-License-Identifier: Apache-2.0
// Sends frames back to where they came from: destination and source address change places, the rest stays. For bringing up a board's PHY and cable.
// Contract: looped are good frames of 60 bytes or more whose destination is mac_i (first byte on the wire in bits 7:0) and whose source is a single
// station's other than mac_i, so that no two such boards send a frame in circles. A frame that finds no room is dropped whole. in_ready_o is
// always high. Frames leave when all of them is here. Counters wrap.
module rnic_loopback #(
    parameter int unsigned Depth = 1024   // words of 8 bytes
) (
    input  logic        clk_i,
    input  logic        rst_i,
    input  logic [47:0] mac_i,
    input  logic        in_valid_i,
    output logic        in_ready_o,
    input  logic [63:0] in_data_i,
    input  logic [7:0]  in_keep_i,
    input  logic        in_last_i,
    input  logic        in_err_i,
    output logic        out_valid_o,
    input  logic        out_ready_i,
    output logic [63:0] out_data_o,
    output logic [7:0]  out_keep_o,
    output logic        out_last_o,
    output logic [15:0] looped_o,
    output logic [15:0] dropped_o      // for want of room
);
  typedef struct packed {
    logic        last;
    logic [7:0]  keep;
    logic [63:0] data;
  } beat_t;
  // One beat waits for its successor: the first needs four bytes of the second.
  beat_t held_q, put;
  logic held_valid_q, first_q, second_q, ours_q, lost_q, flush_q;
  logic [3:0] beats_q;
  logic put_valid, room, good, commit, rollback;
  logic [47:0] src;
  assign in_ready_o = 1'b1;
  assign src        = {in_data_i[31:0], held_q.data[63:48]};

  logic [31:0] dst_rest_q;    // bytes 2 to 5 of the destination, which go into the second beat
  always_comb begin
    put = held_q;
    if (first_q) put.data = {held_q.data[15:0], src};
    else if (second_q) put.data = {held_q.data[63:32], dst_rest_q};
  end
  assign put_valid = held_valid_q && (in_valid_i || flush_q);
  assign good      = ours_q && beats_q == 4'd8 && !lost_q && !(put_valid && !room);
  // The last beat's verdict came with it into ours_q.
  assign commit    = flush_q && good;
  assign rollback  = flush_q && !good;

  always_ff @(posedge clk_i) begin
    flush_q <= in_valid_i && in_last_i;
    if (in_valid_i) begin
      held_q       <= '{last: in_last_i, keep: in_keep_i, data: in_data_i};
      held_valid_q <= 1'b1;
      if (!held_valid_q || flush_q) begin
        first_q <= 1'b1;
        second_q <= 1'b0;
        ours_q  <= in_data_i[47:0] == mac_i && !in_err_i;
        lost_q  <= 1'b0;
        beats_q <= 4'd1;
      end else begin
        first_q  <= 1'b0;
        second_q <= first_q;
        if (first_q) dst_rest_q <= held_q.data[47:16];
        if ((first_q && (src[0] || src == mac_i)) || in_err_i) ours_q <= 1'b0;
        // 60 bytes are seven beats and a half.
        if (beats_q < 4'd7 || (beats_q == 4'd7 && in_keep_i[3])) beats_q <= beats_q + 4'd1;
      end
    end else if (flush_q) begin
      held_valid_q <= 1'b0;
    end
    if (put_valid && !room) lost_q <= !flush_q;
    if (commit) looped_o <= looped_o + 16'd1;
    if (flush_q && ours_q && beats_q == 4'd8 && (lost_q || !room)) dropped_o <= dropped_o + 16'd1;
    if (rst_i) begin
      held_valid_q <= 1'b0;
      flush_q      <= 1'b0;
      looped_o     <= '0;
      dropped_o    <= '0;
    end
  end

  beat_t out;
  rnic_ram_fifo #(.Width($bits(beat_t)), .Depth(Depth)) u_fifo (
      .clk_i, .rst_i, .in_valid_i(put_valid), .in_ready_o(room), .in_data_i(put), .commit_i(commit), .rollback_i(rollback),
      .out_valid_o, .out_ready_i, .out_data_o(out)
  );
  assign {out_last_o, out_keep_o, out_data_o} = out;
endmodule
