// SPDX-License-Identifier: Apache-2.0
// Properties of rnic_qp_alloc, read at its end under FORMAL. The user is free within the contract: one of list, search and put at a
// time, lists no longer than what is free, an index put only from the other side.
//
//   p_no_double_grant   an index that a list grants is not live
//   p_reserved          indices 0 and 1 are never handed out
//   p_bits              at rest the bitmap holds exactly the indices that are not live
//   p_count             free_cnt_o, the live ones and those promised by a list are the table, at any time
//   p_range             a range that the search finds is free, inside the table and aligned; it is the lowest one
//   p_none              when it finds none, there is none
//   p_bounded           a search takes table/64 + 4 cycles at most
  localparam int unsigned FDepth = 1 << QpIdxW;
  localparam int unsigned FBound = NumWord + 4;
  typedef logic [QpIdxW:0] f_cnt_t;
  logic f_first_q = 1'b1;
  logic [FDepth-1:0] f_live_q;                         // handed out and not given back
  f_cnt_t f_promised_q;                                // promised by a list and not handed out yet
  logic f_listing, f_take, f_search_q;
  logic [4:0] f_age_q;                                 // of the search
  f_cnt_t f_n_q;
  logic [3:0] f_align_q;
  assign f_listing = f_promised_q != '0;
  assign f_take    = list_valid_o && list_ready_i;

  // States of the bitmap, by number (a name does not cross a hierarchy here).
  localparam logic [1:0] FFill = 2'd0, FIdle = 2'd1, FWalk = 2'd2;
  logic [1:0] f_state;
  assign f_state = 2'(u_free.state_q);

  // What the list has taken out of the bitmap and not handed out yet.
  logic [FDepth-1:0] f_way, f_free;
  f_cnt_t f_way_n;
  always_comb begin
    f_way   = '0;
    f_way_n = '0;
    if (u_free.out_valid_q) begin
      f_way[u_free.out_idx_q] = 1'b1;
      f_way_n += f_cnt_t'(1);
    end
    if (u_free.u_skid.out_valid_q) begin
      f_way[u_free.u_skid.out_q] = 1'b1;
      f_way_n += f_cnt_t'(1);
    end
    if (u_free.u_skid.spare_valid_q) begin
      f_way[u_free.u_skid.spare_q] = 1'b1;
      f_way_n += f_cnt_t'(1);
    end
    for (int unsigned i = 0; i < FDepth; i++) f_free[i] = u_free.mem[i>>LowW][i[LowW-1:0]];
  end

  // The lowest place where the range fits, by plain words.
  logic f_fits;
  logic [QpIdxW-1:0] f_lowest;
  always_comb begin
    f_fits   = 1'b0;
    f_lowest = '0;
    for (int unsigned s = FDepth; s > 0; s--) begin
      automatic logic ok = ((s - 1) & ((32'd1 << f_align_q) - 32'd1)) == 0 && s - 1 + 32'(f_n_q) <= FDepth;
      for (int unsigned i = 0; i < FDepth; i++) if (i >= s - 1 && i < s - 1 + 32'(f_n_q) && (f_live_q[i] || i < 2)) ok = 1'b0;
      if (ok) begin
        f_fits   = 1'b1;
        f_lowest = QpIdxW'(s - 1);
      end
    end
  end

  always_ff @(posedge clk_i) begin
    f_first_q <= 1'b0;
    if (f_first_q) m_reset : assume (rst_i);
    if (rst_i) begin
      f_live_q     <= '0;
      f_promised_q <= '0;
      f_search_q   <= 1'b0;
      f_age_q      <= '0;
    end else begin
      if (f_take) f_live_q[list_idx_o] <= 1'b1;
      if (put_valid_i) f_live_q[put_idx_i] <= !put_free_i;
      f_promised_q <= list_start_i ? list_n_i : f_promised_q - f_cnt_t'(f_take);
      f_age_q      <= search_start_i ? '0 : f_age_q + 5'(f_age_q != '1);
      if (search_start_i) begin
        f_search_q <= 1'b1;
        f_n_q      <= search_n_i;
        f_align_q  <= search_align_i;
      end else if (search_done_o) begin
        f_search_q <= 1'b0;
      end
      // The contract.
      m_one : assume (32'(list_start_i) + 32'(search_start_i) + 32'(put_valid_i) <= 1);
      if (!ready_o || f_listing || f_search_q) m_alone : assume (!list_start_i && !search_start_i && !put_valid_i);
      if (list_start_i) m_list : assume (list_n_i != '0 && list_n_i <= free_cnt_o);
      if (put_valid_i) m_put : assume (put_idx_i > QpIdxW'(1) && f_live_q[put_idx_i] == put_free_i);
      if (search_start_i) m_search : assume (search_n_i != '0 && search_n_i <= f_cnt_t'(FDepth));
      if (f_search_q) m_held : assume (search_n_i == f_n_q && search_align_i == f_align_q);
    end

    if (!rst_i && !f_first_q) begin
      if (f_take) p_no_double_grant : assert (!f_live_q[list_idx_o]);
      if (f_take) p_reserved : assert (list_idx_o > QpIdxW'(1));
      if (ready_o && !f_listing) p_bits : assert (f_free == {~f_live_q[FDepth-1:2], 2'b00});
      p_count : assert (32'(free_cnt_o) + 32'($countones(f_live_q)) + 32'(f_promised_q) == FDepth - 2);
      if (f_search_q && search_done_o) begin
        p_none : assert (found_o == f_fits);
        if (found_o) p_range : assert (start_o == f_lowest);
      end
      if (f_search_q) p_bounded : assert (32'(f_age_q) <= FBound);

      // ---------------------------------------------------------------- induction
      i_state : assert (f_state inside {FFill, FIdle, FWalk});
      i_reserved : assert (f_live_q[1:0] == '0);
      if (f_state == FFill) i_fill : assert (f_live_q == '0 && !f_listing && f_way_n == '0 && !f_search_q);
      else begin
        i_split : assert ((f_free & (f_live_q | f_way)) == '0 && (f_free | f_live_q | f_way) == {{FDepth - 2{1'b1}}, 2'b00});
        i_apart : assert ((f_way & f_live_q) == '0 && $countones(f_way) == 32'(f_way_n));
        i_low : assert ((f_free & ((FDepth'(1) << (32'(u_free.low_q) << LowW)) - FDepth'(1))) == '0);
      end
      if (f_state == FWalk) i_walk : assert (u_free.left_q + f_way_n == f_promised_q && !f_search_q);
      i_bound : assert (32'(f_promised_q) <= FDepth - 2 && (f_state != FWalk || u_free.left_q <= f_promised_q) && 32'(free_cnt_o) <= FDepth - 2);
      if (f_state != FWalk) i_rest : assert (f_way_n == f_promised_q);
      i_skid : assert (!u_free.u_skid.spare_valid_q || u_free.u_skid.out_valid_q);
      if (f_search_q) i_search : assert (f_state == FIdle && !f_listing);
      if (!f_search_q) i_no_search : assert (!scan_q && !a_valid_q && !b_valid_q);
      i_words : assert (NumWord > 1 || (32'(u_free.fill_q) == 0 && 32'(u_free.low_q) == 0 && (!scan_q || 32'(scan_w_q) == 0)));

      c_full : cover (ready_o && free_cnt_o == '0);
      c_back : cover (ready_o && !f_listing && $countones(f_live_q) == 2 && $past(put_valid_i && put_free_i));
      c_found : cover (search_done_o && found_o && f_n_q == f_cnt_t'(3) && start_o > QpIdxW'(3));
      c_not_found : cover (search_done_o && !found_o && $countones(f_live_q) == 2);
    end
  end
