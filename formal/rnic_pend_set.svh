// SPDX-License-Identifier: Apache-2.0
// Properties of rnic_pend_set, read at its end under FORMAL_PEND_SET, for one index chosen freely and kept. Sources set and the consumer takes as they like.
//
//   p_true    an index is offered no more often than it was put in, and twice at most for what came before the first offer was taken
//   p_held    an offer stays until it is taken
//   p_live    while an index waits, there is an offer in every second cycle at least
//   p_turn    while an index waits, the consumer takes fewer others than the set has indices and one row more
  logic f_first_q = 1'b1, f_held_q, f_due_q, f_none_q, f_set, f_took, f_rows, f_work;
  logic [IdxW-1:0] f_sym_q, f_last_q;
  logic [1:0] f_owed_q;
  logic [31:0] f_sum;
  logic [IdxW+1:0] f_takes_q, f_ahead, f_left;
  logic [RowW-1:0] f_srow, f_gap;
  logic [ColW-1:0] f_scol;
  assign {f_srow, f_scol} = f_sym_q;
  assign f_took = pick_valid_o && pick_ready_i && pick_idx_o == f_sym_q;
  assign f_work = row_q == f_srow && work_q[f_scol];
  always_comb begin
    f_set = 1'b0;
    f_sum = 32'(f_owed_q) - 32'(f_took);
    for (int unsigned s = 0; s < NumSet; s++) begin
      f_set |= set_valid_i[s] && set_idx_i[s] == f_sym_q;
      f_sum += 32'(set_valid_i[s] && set_idx_i[s] == f_sym_q);
    end
  end
  logic [NumSet-1:0] f_port;
  for (genvar s = 0; s < NumSet; s++) begin : g_f_port
    assign f_port[s] = held_q[s][f_srow] && g_port[s].rows_q[f_srow][f_scol];
    // A row that is held has a bit.
    for (genvar r = 0; r < NumRow; r++) begin : g_f_row
      always_ff @(posedge clk_i) if (!rst_i && !f_first_q) i_row : assert (!held_q[s][r] || g_port[s].rows_q[r] != '0);
    end
  end
  assign f_rows = f_port != '0;
  assign f_gap  = f_srow - row_q - RowW'(1);   // rows before its own, when it waits in the rows
  always_comb begin
    f_left  = '0;
    f_ahead = '0;
    for (int unsigned c = 0; c < NumCol; c++) begin
      f_left += (IdxW + 2)'(work_q[c]);
      if (ColW'(c) <= f_scol) f_ahead += (IdxW + 2)'(work_q[c]);
    end
  end
  always_ff @(posedge clk_i) begin
    f_first_q <= 1'b0;
    f_sym_q   <= f_sym_q;
    f_last_q  <= pick_idx_o;
    f_held_q  <= !rst_i && pick_valid_o && !pick_ready_i;
    f_none_q  <= !rst_i && !pick_valid_o && f_due_q;
    if (f_first_q) m_reset : assume (rst_i);
    else m_one_reset : assume (!rst_i);
    if (rst_i) begin
      f_due_q   <= 1'b0;
      f_owed_q  <= '0;
      f_takes_q <= '0;
    end else begin
      if (f_set) f_due_q <= 1'b1;
      else if (f_took) f_due_q <= 1'b0;
      f_owed_q <= (f_sum > 2) ? 2'd2 : 2'(f_sum);
      if (!f_due_q || f_took) f_takes_q <= '0;
      else if (pick_valid_o && pick_ready_i) f_takes_q <= f_takes_q + (IdxW + 2)'(1);
    end
    if (!rst_i && !f_first_q) begin
      if (pick_valid_o && pick_idx_o == f_sym_q) p_true : assert (f_owed_q != '0);
      if (f_held_q) p_held : assert (pick_valid_o && pick_idx_o == f_last_q);
      if (f_none_q) p_live : assert (pick_valid_o);
      if (f_due_q) p_turn : assert (32'(f_takes_q) < (1 << IdxW) + NumCol);

      c_twice : cover (f_owed_q == 2'd2 && f_took);
      c_late : cover (f_due_q && 32'(f_takes_q) >= (1 << IdxW) - 1);

      // ---------------------------------------------------------------- induction
      i_owed : assert (32'(f_owed_q) >= 32'(f_rows) + 32'(f_work));
      i_due : assert (!f_due_q || f_rows || f_work);
      if (f_work) i_work : assert (32'(f_takes_q) + 32'(f_ahead) <= (1 << IdxW) + NumCol);
      else if (f_rows) i_wait : assert (32'(f_takes_q) + 32'(f_left) + NumCol * (32'(f_gap) + 1) <= (1 << IdxW) + NumCol);
    end
  end
