// SPDX-License-Identifier: Apache-2.0
// Properties of rnic_cq_timer, read at its end under FORMAL_CQ_TIMER, for one queue chosen freely and kept. Periods begin, end and change as
// they like; the table holds anything at the start.
//
//   p_true    the queue is told only when its period ran, and was over, by the word that was read of it
//   p_held    what is told and not taken is told again, of the same queue, for as long as its time lies less than half a round behind
//   p_found   a queue whose period is over, and stays so, is told before the table has been gone through once more
//   p_clock   no picosecond is lost between two cycles, and none is told twice
  logic f_first_q = 1'b1, f_second_q = 1'b0;       // two cycles of reset: what is read in the first is of any queue
  logic [CqW-1:0] f_sym_q, f_last_q, f_far;
  logic [CqW:0] f_moves_q;                         // entries passed while it should have been told
  logic f_run_q, f_read_run_q, f_due, f_held_q, f_ran_q;
  cq_time_t f_due_q, f_read_due_q, f_late, f_read_late, f_now_q;
  logic [AccW-1:0] f_acc_q;
  assign f_late      = now_q - f_due_q;
  assign f_read_late = now_q - f_read_due_q;
  assign f_due       = f_run_q && !f_late[CQ_PERIOD_W];
  assign f_far       = f_sym_q - idx_q;            // entries until it is read
  always_ff @(posedge clk_i) begin
    f_first_q  <= 1'b0;
    f_second_q <= f_first_q;
    f_sym_q   <= f_sym_q;
    f_last_q  <= exp_idx_o;
    // In the next cycle it is not yet half a round behind, whatever the clock does.
    f_held_q  <= exp_valid_o && !exp_ready_i && late != {1'b0, {CQ_PERIOD_W{1'b1}}};
    f_ran_q   <= !rst_i;
    f_now_q   <= now_q;
    f_acc_q   <= acc_q;
    if (f_first_q) begin
      m_reset : assume (rst_i);
      m_table : assume (u_due.mem[f_sym_q] == {f_run_q, f_due_q});
    end else m_one_reset : assume (rst_i == f_second_q);
    if (rst_i) m_taken : assume (exp_ready_i);
    if (we_i && idx_i == f_sym_q) {f_run_q, f_due_q} <= {run_i, due_i};
    if (move && idx_q == f_sym_q) {f_read_run_q, f_read_due_q} <= {f_run_q, f_due_q};
    if (rst_i || !f_due || (we_i && idx_i == f_sym_q) || (exp_valid_o && exp_idx_o == f_sym_q)) f_moves_q <= '0;
    else if (move) f_moves_q <= f_moves_q + (CqW + 1)'(1);

    if (!rst_i && !f_first_q) begin
      if (exp_valid_o && exp_idx_o == f_sym_q) p_true : assert (f_read_run_q && !f_read_late[CQ_PERIOD_W]);
      if (f_held_q) p_held : assert (exp_valid_o && exp_idx_o == f_last_q);
      p_found : assert (32'(f_moves_q) <= NumCq);
      if (f_ran_q) p_clock : assert (32'(acc_q) + 32'(PsPerUs) * 32'(cq_time_t'(now_q - f_now_q)) == 32'(f_acc_q) + ClkPeriodPs && 32'(cq_time_t'(now_q - f_now_q)) <= 1);

      c_told : cover (exp_valid_o && exp_ready_i && exp_idx_o == f_sym_q && now_q != '0);
      c_held : cover (f_held_q && !exp_ready_i);
      c_changed : cover (exp_valid_o && exp_idx_o == f_sym_q && !f_run_q);

      // ---------------------------------------------------------------- induction
      i_acc : assert (32'(acc_q) < PsPerUs && 32'(idx_q) < NumCq);
      i_table : assert (u_due.mem[f_sym_q] == {f_run_q, f_due_q});
      if (rd_idx_q == f_sym_q) i_read : assert ({run, due} == {f_read_run_q, f_read_due_q});
      // Not told yet: it is still to be read, or was read when it was not due.
      if (f_moves_q != '0) i_moves : assert (32'(f_moves_q) + 32'(f_far) < NumCq || (rd_idx_q == f_sym_q && {run, due} == {f_run_q, f_due_q}));
    end
  end
