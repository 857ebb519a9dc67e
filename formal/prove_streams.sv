// SPDX-License-Identifier: Apache-2.0
// Proof about the two hand-overs that every stream of the design passes: rnic_skid and rnic_fifo (depth 3, which is no power of two).
// The n-th word that goes in, for any n, is the n-th that comes out; what is offered stays offered and unchanged until it is taken;
// room is room. Contract of the input: none, a word may come and go as it likes.
//
//   p_skid_stable  what rnic_skid offers and nobody takes is offered again, unchanged
//   p_fifo_stable  what rnic_fifo offers and nobody takes is offered again, unchanged
//   p_skid_order   the n-th word into rnic_skid is the n-th out, for any n
//   p_fifo_order   the n-th word into rnic_fifo is the n-th out, for any n
//   p_skid_count   rnic_skid offers a word exactly when it holds one, and has room exactly when it holds fewer than two
//   p_fifo_count   rnic_fifo offers a word exactly when it holds one, has room exactly when it is not full, and tells its level
module prove_streams (
    input logic       clk_i,
    input logic       rst_i,
    input logic       skid_in_valid_i,
    input logic       skid_out_ready_i,
    input logic       fifo_in_valid_i,
    input logic       fifo_out_ready_i,
    input logic [3:0] data_i
);
  localparam int unsigned Depth = 3;
  logic skid_in_ready, skid_out_valid, fifo_in_ready, fifo_out_valid;
  logic [3:0] skid_out, fifo_out;
  logic [1:0] level;
  rnic_skid #(.Width(4)) skid (
      .clk_i, .rst_i, .in_valid_i(skid_in_valid_i), .in_ready_o(skid_in_ready), .in_data_i(data_i),
      .out_valid_o(skid_out_valid), .out_ready_i(skid_out_ready_i), .out_data_o(skid_out)
  );
  rnic_fifo #(.Width(4), .Depth(Depth)) fifo (
      .clk_i, .rst_i, .in_valid_i(fifo_in_valid_i), .in_ready_o(fifo_in_ready), .in_data_i(data_i),
      .out_valid_o(fifo_out_valid), .out_ready_i(fifo_out_ready_i), .out_data_o(fifo_out), .level_o(level)
  );

  // Numbers of the words modulo 16, more than either can hold; any one of them is followed.
  logic first_q = 1'b1;
  logic [3:0] n_q, skid_in_q, skid_out_q, fifo_in_q, fifo_out_q, skid_word_q, fifo_word_q;
  logic [3:0] skid_inside, fifo_inside, skid_pos, fifo_pos;
  assign skid_inside = skid_in_q - skid_out_q;
  assign fifo_inside = fifo_in_q - fifo_out_q;
  assign skid_pos    = n_q - skid_out_q;               // 0: it comes out next
  assign fifo_pos    = n_q - fifo_out_q;
  logic skid_wait_q, fifo_wait_q;
  logic [3:0] skid_last_q, fifo_last_q;

  always_ff @(posedge clk_i) begin
    first_q <= 1'b0;
    n_q     <= n_q;
    if (first_q) m_reset : assume (rst_i);
    if (rst_i) begin
      {skid_in_q, skid_out_q, fifo_in_q, fifo_out_q} <= '0;
      {skid_wait_q, fifo_wait_q} <= '0;
    end else begin
      if (skid_in_valid_i && skid_in_ready) begin
        skid_in_q <= skid_in_q + 4'd1;
        if (skid_in_q == n_q) skid_word_q <= data_i;
      end
      if (fifo_in_valid_i && fifo_in_ready) begin
        fifo_in_q <= fifo_in_q + 4'd1;
        if (fifo_in_q == n_q) fifo_word_q <= data_i;
      end
      if (skid_out_valid && skid_out_ready_i) skid_out_q <= skid_out_q + 4'd1;
      if (fifo_out_valid && fifo_out_ready_i) fifo_out_q <= fifo_out_q + 4'd1;
      skid_wait_q <= skid_out_valid && !skid_out_ready_i;
      fifo_wait_q <= fifo_out_valid && !fifo_out_ready_i;
      skid_last_q <= skid_out;
      fifo_last_q <= fifo_out;
    end
    if (!rst_i && !first_q) begin
      if (skid_wait_q) p_skid_stable : assert (skid_out_valid && skid_out == skid_last_q);
      if (fifo_wait_q) p_fifo_stable : assert (fifo_out_valid && fifo_out == fifo_last_q);
      if (skid_out_valid && skid_pos == 4'd0 && skid_inside != '0) p_skid_order : assert (skid_out == skid_word_q);
      if (fifo_out_valid && fifo_pos == 4'd0 && fifo_inside != '0) p_fifo_order : assert (fifo_out == fifo_word_q);
      p_skid_count : assert (skid_out_valid == (skid_inside != '0) && skid_in_ready == (skid_inside < 4'd2));
      p_fifo_count : assert (fifo_out_valid == (fifo_inside != '0) && fifo_in_ready == (fifo_inside < 4'(Depth)) && 4'(level) == fifo_inside);

      // ---------------------------------------------------------------- induction
      i_skid : assert (skid_inside == 4'(skid.out_valid_q) + 4'(skid.spare_valid_q) && (!skid.spare_valid_q || skid.out_valid_q));
      if (skid_pos < skid_inside) i_skid_word : assert (skid_word_q == (skid_pos == '0 ? skid.out_q : skid.spare_q));
      i_fifo : assert (32'(fifo.wr_q) < Depth && 32'(fifo.rd_q) < Depth && 32'(fifo.lvl_q) <= Depth && 4'(fifo.lvl_q) == fifo_inside);
      i_fifo_ptr : assert (32'(fifo.wr_q) == (32'(fifo.rd_q) + 32'(fifo.lvl_q)) % Depth);
      if (fifo_pos < fifo_inside) i_fifo_word : assert (fifo_word_q == fifo.mem[(32'(fifo.rd_q) + 32'(fifo_pos)) % Depth]);

      c_skid_full : cover (!skid_in_ready && skid_pos == 4'd1);
      c_fifo_full : cover (!fifo_in_ready && fifo_pos == 4'd2);
      c_wrap : cover (fifo_out_q == 4'd4 && fifo_out_valid);
    end
  end
endmodule
