// SPDX-License-Identifier: Apache-2.0
// Properties of rnic_sync_word, read at its end under FORMAL: two clocks that come when they like. Begins after reset.
//
//   p_still  when the receiver takes the held word, that has not changed since the receiver's last edge and does not change with this one
//   p_round  one change of request or acknowledge is under way at a time
  logic f_src_first_q = 1'b1;
  logic f_dst_first_q = 1'b1;   // until either clock has come
  logic [Width-1:0] f_hold_q;   // the held word at the receiver's last edge
  logic [5:0] f_ring;           // from request to acknowledge
  assign f_ring = {req_q, u_req.meta_q, u_req.sync_q, ack_q, u_ack.meta_q, u_ack.sync_q};
  logic [4:0] f_edges;
  assign f_edges = f_ring[5:1] ^ f_ring[4:0];
  logic f_again_q = 1'b0;       // a second round
  always_ff @(posedge src_clk_i) f_src_first_q <= 1'b0;
  always_ff @(posedge dst_clk_i) begin
    f_dst_first_q <= 1'b0;
    f_hold_q      <= hold_q;
    if (req_q && ack_seen) f_again_q <= 1'b1;
  end
  always_comb begin
    if (f_src_first_q && f_dst_first_q) m_start : assume (f_ring == '0 && f_hold_q == hold_q);
    m_running : assume (!src_rst_i && !dst_rst_i);
    p_round : assert ((f_edges & (f_edges - 5'd1)) == '0);
    // Where the acknowledge has been sampled, so has the word beside it.
    if (u_ack.meta_q == ack_q) i_sampled : assert (f_hold_q == hold_q);
    if (ack_seen == req_q) p_still : assert (f_hold_q == hold_q && ack_q == req_seen);
    c_rounds : cover (f_again_q && req_q && !ack_seen && data_o == '1);
  end
