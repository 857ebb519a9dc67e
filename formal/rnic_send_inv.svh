// SPDX-License-Identifier: Apache-2.0
// Properties of rnic_send_inv, read at its end under FORMAL_SEND_INV. Invalidations come and barriers end as they like; one invalidation is
// chosen freely and followed. Assumed: a barrier is busy only from its mark on.
//
//   p_waits    the number of an invalidation is open until a barrier is over that began after it
//   p_next     that barrier begins as soon as none runs: nobody waits for more than the one that runs and the next
//   p_one      a barrier begins only when none runs
//   p_over     no number is open when nothing was invalidated since the last barrier began and that one is over
  typedef enum logic [1:0] {F_NONE, F_WANTED, F_RUNS} f_phase_e;
  logic f_first_q = 1'b1;
  logic f_pick, f_runs_q, f_want_q, f_may_q;
  inv_num_t f_num_q;
  f_phase_e f_phase_q;
  // verilator lint_off UNDRIVEN
  (* anyseq *) logic f_any;
  // verilator lint_on UNDRIVEN
  assign f_pick = op_i && f_any && f_phase_q == F_NONE;
  always_ff @(posedge clk_i) begin
    f_first_q <= 1'b0;
    f_may_q   <= mark_o || busy_i;
    f_runs_q  <= mark_o || (f_runs_q && busy_i);
    f_want_q  <= op_i || (f_want_q && !mark_o);
    if (f_first_q) m_reset : assume (rst_i);
    else begin
      m_one_reset : assume (!rst_i);
      m_busy : assume (!busy_i || f_may_q);
    end
    unique case (f_phase_q)
      F_NONE: if (f_pick) begin
        f_phase_q <= F_WANTED;
        f_num_q   <= num_o;
      end
      F_WANTED: if (mark_o) f_phase_q <= F_RUNS;
      default: if (!busy_i) f_phase_q <= F_NONE;
    endcase
    if (rst_i) begin
      f_phase_q <= F_NONE;
      {f_runs_q, f_want_q, f_may_q} <= '0;
    end

    if (!rst_i && !f_first_q) begin
      if (f_phase_q != F_NONE && num_i == f_num_q) p_waits : assert (open_o);
      if (f_phase_q == F_WANTED && !f_runs_q) p_next : assert (mark_o);
      if (mark_o) p_one : assert (!f_runs_q && !busy_i);
      if (!f_runs_q && !f_want_q) p_over : assert (!open_o);

      // ---------------------------------------------------------------- induction
      i_state : assert (f_phase_q <= F_RUNS && runs_q == f_runs_q && want_q == f_want_q && (f_runs_q || !busy_i) && (f_may_q || !f_runs_q));
      if (f_phase_q == F_WANTED) i_wanted : assert (f_want_q && f_num_q == next_q);
      if (f_phase_q == F_RUNS) i_runs : assert (f_runs_q && f_num_q == next_q - inv_num_t'(1));

      c_at_the_mark : cover (f_phase_q == F_NONE && f_pick && mark_o);
      c_behind : cover (f_phase_q == F_WANTED && f_runs_q && busy_i);
      c_over : cover (f_phase_q == F_RUNS && !busy_i && f_want_q);
    end
  end
