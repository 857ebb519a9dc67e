// SPDX-License-Identifier: Apache-2.0
// Properties of rnic_async_fifo, read at its end under FORMAL: two clocks that come when they like, one running away from the other or standing still.
// A bit that changes while it is sampled is seen old or new: as only one bit of a pointer changes at a time, that is the same as being sampled just before or
// just after, which free clocks contain. Begins after reset (what reset does with a clock that stands still is tested by testbench/tests/mac.rs). The writer is
// free within the contract: commit and rollback never at once.
//
//   p_order      the n-th committed word, for any n, is the n-th that comes out
//   p_committed  what is offered was committed, and nothing else is
//   p_full       never more than Depth words are in the memory: none is written over before it was read
//   p_stable     what is offered and not taken is offered again, unchanged
//   p_gray       of what crosses to the other clock one bit changes at a time
//   p_pub_gray   the pointer that crosses is the Gray code of the one that follows the commits
//   p_rd_gray    the pointer that crosses back is the Gray code of the read pointer
//   p_chain      each side's view of the other is late and never ahead, and never more than Depth words late
  logic f_wr_first_q = 1'b1;
  logic f_rd_first_q = 1'b1;   // until either clock has come
  logic f_first;
  assign f_first = f_wr_first_q && f_rd_first_q;
  // Which write, commit, read comes next, modulo 16; any one number is followed.
  logic [3:0] f_wr_q, f_commit_q, f_rd_q, f_n_q;
  logic [Width-1:0] f_word_q, f_last_q;
  logic f_waits_q;
  ptr_t f_pub_old_q, f_rd_old_q;

  always_ff @(posedge wr_clk_i) begin
    if (we && f_wr_q == f_n_q) f_word_q <= wr_data_i;
    f_wr_q <= rollback_i ? f_commit_q : f_wr_q + 4'(we);
    if (commit_i) f_commit_q <= f_wr_q + 4'(we);
    f_n_q       <= f_n_q;
    f_pub_old_q <= pub_gray_q;
  end
  always_ff @(posedge rd_clk_i) begin
    f_rd_q     <= f_rd_q + 4'(re);
    f_waits_q  <= rd_valid_o && !rd_ready_i;
    f_last_q   <= rd_data_o;
    f_rd_old_q <= rd_gray_q;
  end
  always_ff @(posedge wr_clk_i) f_wr_first_q <= 1'b0;
  always_ff @(posedge rd_clk_i) f_rd_first_q <= 1'b0;

  // Distances along the chain of views, oldest first.
  ptr_t f_pub_meta, f_pub_sync, f_rd_meta, f_rd_sync;
  assign f_pub_meta = from_gray(u_pub.meta_q);
  assign f_pub_sync = from_gray(u_pub.sync_q);
  assign f_rd_meta  = from_gray(u_rd.meta_q);
  assign f_rd_sync  = from_gray(u_rd.sync_q);
  function automatic logic [AddrW+4:0] f_far(ptr_t from, ptr_t to);
    return (AddrW + 5)'(ptr_t'(to - from));
  endfunction
  logic [AddrW+4:0] f_all;
  assign f_all = f_far(rd_seen_q, f_rd_sync) + f_far(f_rd_sync, f_rd_meta) + f_far(f_rd_meta, rd_q) + f_far(rd_q, f_pub_sync) + f_far(f_pub_sync, f_pub_meta) +
      f_far(f_pub_meta, pub_q) + f_far(pub_q, commit_q) + f_far(commit_q, wr_q);
  logic [3:0] f_inside;
  assign f_inside = f_commit_q - f_rd_q;
  function automatic logic f_one(ptr_t a, ptr_t b);
    return ((a ^ b) & ((a ^ b) - ptr_t'(1))) == '0;
  endfunction

  always_comb begin
    if (f_first) begin
      m_start : assume ({wr_q, commit_q, pub_q, pub_gray_q, rd_q, rd_gray_q, rd_valid_o, rd_seen_q, room_q} == '0);
      m_views : assume ({u_pub.meta_q, u_pub.sync_q, u_rd.meta_q, u_rd.sync_q} == '0);
      m_count : assume ({f_wr_q, f_commit_q, f_rd_q, f_waits_q, f_pub_old_q, f_rd_old_q} == '0);
    end
    m_running : assume (!wr_rst_i && !rd_rst_i);
    m_contract : assume (!(commit_i && rollback_i));
    p_chain : assert (f_all <= (AddrW + 5)'(Depth));
    p_pub_gray : assert (pub_gray_q == to_gray(pub_q));
    p_rd_gray : assert (rd_gray_q == to_gray(rd_q));
    if (room_q) i_room : assert (f_far(rd_seen_q, wr_q) < (AddrW + 5)'(Depth));
    p_full : assert (f_far(rd_q, wr_q) <= (AddrW + 5)'(Depth));
    p_committed : assert (ptr_t'(f_inside) == ptr_t'(commit_q - rd_q) && f_inside <= 4'(Depth) && f_wr_q - f_commit_q <= 4'(Depth) &&
                          ptr_t'(f_wr_q) == wr_q && ptr_t'(f_rd_q) == rd_q);
    if (rd_valid_o && f_rd_q - 4'd1 == f_n_q) p_order : assert (rd_data_o == f_word_q);
    // What is still inside is where it will be read.
    if (4'(f_n_q - f_rd_q) < 4'(f_wr_q - f_rd_q)) i_inside : assert (mem[f_n_q[AddrW-1:0]] == f_word_q);
    if (f_waits_q) p_stable : assert (rd_valid_o && rd_data_o == f_last_q);
    p_gray : assert (f_one(pub_gray_q, f_pub_old_q) && f_one(rd_gray_q, f_rd_old_q));
    c_full : cover (f_far(rd_q, wr_q) == (AddrW + 5)'(Depth) && !wr_ready_o);
    c_wrapped : cover (f_rd_q == 4'd5 && rd_valid_o);
    c_rolled_back : cover (rollback_i && f_wr_q - f_commit_q == 4'd2 && f_commit_q == 4'd1);
  end
