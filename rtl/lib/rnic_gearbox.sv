// SPDX-License-Identifier: Apache-2.0
// Byte gearbox: takes beats of 1 to Bytes bytes (from lane 0 up), gives beats of as many bytes as the
// taker asks for (from lane 0 up), in order. It concatenates, splits and shifts byte streams; nothing else
// in the core has a byte shifter.
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
  logic [16*Bytes-1:0] buf_q, buf_shifted, in_masked;
  logic [FillW-1:0] fill_q, fill_left;

  always_comb begin
    in_masked = '0;
    for (int unsigned i = 0; i < Bytes; i++)
      in_masked[8*i+:8] = (CntW'(i) < in_cnt_i) ? in_data_i[8*i+:8] : 8'h00;
  end

  assign fill_left   = take_i ? fill_q - FillW'(take_cnt_i) : fill_q;
  assign buf_shifted = take_i ? buf_q >> {take_cnt_i, 3'b000} : buf_q;
  // A whole beat fits on top of what this cycle leaves: without counting what is being taken, a stream that stands at an
  // odd lane would only get a beat every other cycle.
  assign in_ready_o  = fill_left <= FillW'(Bytes);
  assign out_data_o  = buf_q[8*Bytes-1:0];
  assign avail_o     = (fill_q > FillW'(Bytes)) ? CntW'(Bytes) : CntW'(fill_q);

  always_ff @(posedge clk_i) begin
    if (rst_i || clear_i) begin
      fill_q <= '0;
      buf_q  <= '0;
    end else if (in_valid_i && in_ready_o) begin
      buf_q  <= buf_shifted | (in_masked << {fill_left, 3'b000});
      fill_q <= fill_left + FillW'(in_cnt_i);
    end else begin
      buf_q  <= buf_shifted;
      fill_q <= fill_left;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i && take_i) a_take_what_is_there : assert (FillW'(take_cnt_i) <= fill_q);
    if (!rst_i && in_valid_i && in_ready_o)
      a_beat_not_empty : assert (in_cnt_i != '0 && in_cnt_i <= CntW'(Bytes));
  end
endmodule
