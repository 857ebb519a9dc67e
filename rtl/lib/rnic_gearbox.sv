// SPDX-License-Identifier: Apache-2.0
// Byte gearbox: takes beats of 1 to Bytes bytes (from lane 0 up), gives beats of as many bytes as the
// taker asks for (from lane 0 up), in order. It concatenates, splits and shifts byte streams (rnic_packer only concatenates, for half
// the cost).
// Contract: in: in_cnt_i bytes (1..Bytes) are taken when in_valid_i && in_ready_o. out: avail_o tells how many
// bytes stand in out_data_o (0..Bytes, lanes above are zero); the taker removes take_cnt_i (0..avail_o) bytes in
// the cycle in which take_i is high. clear_i drops everything. Throughput: a full beat a cycle. Latency: 1.
// in_ready_o depends on take_i and take_cnt_i, which must not depend on it.
// An assertion fails when more is taken than is there.
module rnic_gearbox #(
    parameter int unsigned Bytes = 8,
    localparam int unsigned CntW = $clog2(Bytes + 1),
    localparam int unsigned FillW = $clog2(2 * Bytes + 1)
) (
    input  logic               clk_i,
    input  logic               rst_i,
    input  logic               clear_i,
    input  logic               in_valid_i,
    output logic               in_ready_o,
    input  logic [8*Bytes-1:0] in_data_i,
    input  logic [CntW-1:0]    in_cnt_i,
    output logic [8*Bytes-1:0] out_data_o,
    output logic [CntW-1:0]    avail_o,
    input  logic               take_i,
    input  logic [CntW-1:0]    take_cnt_i
);
  // A ring of two beats: bytes are written where they stay, and the taker's window is turned to lane 0. Two rotations by
  // a lane number are a fraction of two shifters over two beats.
  localparam int unsigned LaneW = $clog2(Bytes);
  if (Bytes != (1 << LaneW) || Bytes < 2) begin : g_bytes
    $fatal(1, "Bytes must be a power of two");
  end
  logic [2*Bytes-1:0][7:0] ring_q;
  logic [LaneW:0] wr_q, rd_q;   // ring positions
  logic [FillW-1:0] fill_q, fill_left;
  logic in_fire;

  assign fill_left  = take_i ? fill_q - FillW'(take_cnt_i) : fill_q;
  // A whole beat fits on top of what this cycle leaves: without counting what is being taken, a stream that stands at an
  // odd lane would only get a beat every other cycle.
  assign in_ready_o = fill_left <= FillW'(Bytes);
  assign in_fire    = in_valid_i && in_ready_o;
  assign avail_o    = (fill_q > FillW'(Bytes)) ? CntW'(Bytes) : CntW'(fill_q);

  logic [Bytes-1:0][7:0] turned_in, window;
  always_comb begin
    for (int unsigned i = 0; i < Bytes; i++) begin
      turned_in[i] = in_data_i[{LaneW'(i)-wr_q[LaneW-1:0], 3'b000}+:8];
      window[i]    = ring_q[{rd_q[LaneW]^(LaneW'(i)<rd_q[LaneW-1:0]), LaneW'(i)}];
    end
    for (int unsigned i = 0; i < Bytes; i++)
      out_data_o[8*i+:8] = (CntW'(i) < avail_o) ? window[LaneW'(i)+rd_q[LaneW-1:0]] : 8'h00;
  end

  always_ff @(posedge clk_i) begin
    for (int unsigned p = 0; p < 2 * Bytes; p++)
      if (in_fire && {1'b0, (LaneW + 1)'(p) - wr_q} < (LaneW + 2)'(in_cnt_i)) ring_q[p] <= turned_in[p%Bytes];
    if (rst_i || clear_i) begin
      fill_q <= '0;
      wr_q   <= '0;
      rd_q   <= '0;
    end else begin
      fill_q <= fill_left + (in_fire ? FillW'(in_cnt_i) : '0);
      if (in_fire) wr_q <= wr_q + (LaneW + 1)'(in_cnt_i);
      if (take_i) rd_q <= rd_q + (LaneW + 1)'(take_cnt_i);
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i && take_i) a_take_what_is_there : assert (FillW'(take_cnt_i) <= fill_q);
    if (!rst_i && in_valid_i && in_ready_o)
      a_beat_not_empty : assert (in_cnt_i != '0 && in_cnt_i <= CntW'(Bytes));
  end
endmodule
