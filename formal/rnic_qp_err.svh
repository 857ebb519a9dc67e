// SPDX-License-Identifier: Apache-2.0
// Properties of rnic_qp_err, read at its end under FORMAL, for one QP index and one source chosen freely and kept. Reports come at any
// time, commands hold it up (run_i) as they like, events wait as they like. One reset, at the start.
//
//   p_nothing_lost    while a report is kept somewhere, quiet_o is low: no command begins over it
//   p_error           a report about the life at hand moves a living QP to ERR, but a send error of a datagram type (UC, UD, GSI)
//   p_sqe             a send error of a datagram type moves a QP in RTS to SQE
//   p_sqd             ... and one in SQD to ERR
//   p_old_life        what is about another life changes nothing
//   p_only_pending    it writes only while no command is under way at the pick
  logic f_first_q = 1'b1;
  logic [QpIdxW-1:0] f_sym_q;
  logic f_kept, f_queued, f_scanned, f_handled;
  logic f_run_q;
  assign f_kept = g_src[0].u_report.mem[f_sym_q][$bits(epoch_t)-1:0] != '0;
  always_comb begin
    f_queued = 1'b0;
    for (int unsigned k = 0; k < QueueDepth; k++)
      if (k < 32'(g_src[0].u_queue.lvl_q) && g_src[0].u_queue.mem[(32'(g_src[0].u_queue.rd_q) + k) % QueueDepth] == f_sym_q) f_queued = 1'b1;
  end
  assign f_scanned = scan_q && scan_idx_q <= f_sym_q && dirty_q[word_of(f_sym_q)];
  assign f_handled = idx_q == f_sym_q && (state_q == ST_JUDGE || (state_q inside {ST_APPLY, ST_FORGET} && erase_q[0]));

  // What was judged, a cycle later.
  logic f_judged_q, f_alive_q, f_err_q, f_sqe_q, f_any_q;
  qp_hot_t f_hot_q;
  always_ff @(posedge clk_i) begin
    f_first_q <= 1'b0;
    f_sym_q   <= f_sym_q;
    if (f_first_q) m_reset : assume (rst_i);
    else m_one_reset : assume (!rst_i);
    m_no_clear : assume (!clear_i);
    // What is written in the cycle of a reset, the walk after it clears (clear_i).
    if (rst_i) m_silent : assume (err_valid_i == '0 && !drained_valid_i);
    if (err_valid_i[0]) m_epoch : assume (err_i[0].epoch != '0);
    if (drained_valid_i) m_drained : assume (drained_epoch_i != '0);
    if (f_first_q) m_start : assume (!f_kept);
    // The table holds still between the question and the write: nobody else writes it meanwhile.
    if (f_judged_q) m_table : assume (own_hot_i == f_hot_q);
    f_judged_q <= judge && !rst_i;
    f_hot_q    <= own_hot_i;
    f_alive_q  <= own_hot_i.valid && !(own_hot_i.state inside {QP_STATE_RESET, QP_STATE_ERR});
    f_sqe_q    <= report[0].epoch == own_hot_i.epoch && report[0].to_sqe && own_hot_i.qp_type inside {QP_TYPE_UC, QP_TYPE_UD, QP_TYPE_GSI};
    f_err_q    <= report[0].epoch == own_hot_i.epoch && !(report[0].to_sqe && own_hot_i.qp_type inside {QP_TYPE_UC, QP_TYPE_UD, QP_TYPE_GSI});
    f_any_q    <= report[0].epoch == own_hot_i.epoch || report[1].epoch == own_hot_i.epoch;
    f_run_q    <= run_i;

    if (!rst_i && !f_first_q) begin
      if (f_kept) p_nothing_lost : assert (!quiet_o);
      if (f_judged_q && f_alive_q) begin
        if (f_err_q) p_error : assert (we_o && hot_o.state == QP_STATE_ERR);
        if (f_sqe_q && f_hot_q.state == QP_STATE_RTS) p_sqe : assert (we_o && hot_o.state == QP_STATE_SQE);
        if (f_sqe_q && f_hot_q.state == QP_STATE_SQD) p_sqd : assert (we_o && hot_o.state == QP_STATE_ERR);
      end
      if (we_o) p_old_life : assert (f_judged_q && f_any_q && f_alive_q);
      if (state_q == ST_JUDGE) p_only_pending : assert (f_run_q);

      // ---------------------------------------------------------------- induction
      if (f_kept) i_somewhere : assert (f_queued || f_scanned || f_handled);
      i_fifo : assert (32'(g_src[0].u_queue.lvl_q) <= QueueDepth && 32'(g_src[0].u_queue.wr_q) == (32'(g_src[0].u_queue.rd_q) + 32'(g_src[0].u_queue.lvl_q)) % QueueDepth);
      i_apply : assert ((state_q == ST_APPLY) == f_judged_q);

      c_error : cover (we_o && hot_o.state == QP_STATE_ERR && idx_q == f_sym_q);
      c_sqe : cover (we_o && hot_o.state == QP_STATE_SQE);
      c_drained : cover (eqe_valid_o);
      c_held : cover (f_kept && !run_i && f_queued);
    end
  end
