// SPDX-License-Identifier: Apache-2.0
// Properties of rnic_responder, read at its end under FORMAL_RESPONDER. Packets, visits, hot words and control sections come as they like: QPs
// are destroyed and made anew at any moment; the sections, the receive WQEs and the host's answers are anything.
//
//   p_one_life    a packet is judged, and its payload placed, with section and control section of one life
//   p_commit      it takes effect (section, completion, event, response, READ, receive WQE) only if that is still the life of the QP, which
//                 lives and serves
//   p_visit       a visit takes effect only in that life, too; but what a QP that has left took from a shared receive queue
//                 comes back once, and only in the life after
//   p_written     what is written is of that life, or nothing at all (a QP that has left)
//   p_producer    a producer index of another life counts as 0, and so do the READs of another life
//   p_look        a look commits nothing and asks for nothing
//   p_told        what leaves names that life: completion, consumer index
  logic f_first_q = 1'b1;
  logic f_cold_q;                    // the control section is asked for
  logic f_used;                      // section and context are in use
  epoch_t f_left_q;                  // what a visit to a QP that has left found
  logic f_commit_q, f_gone_q;        // a commit a cycle ago; of a QP that has left
  epoch_t f_life_q;                  // its life then
  assign f_used = state_q inside {StCheck, StPlace, StAtomic, StInv, StGone, StCommit};
  always_ff @(posedge clk_i) begin
    f_first_q <= 1'b0;
    f_commit_q <= !rst_i && commit;
    f_gone_q   <= left_q;
    f_life_q   <= hot_i.epoch;
    if (f_first_q) m_reset : assume (rst_i);
    else m_one_reset : assume (!rst_i);
    // Answers come to questions.
    f_cold_q <= !rst_i && ((f_cold_q && !cold_rsp_valid_i) || (cold_req_valid_o && cold_req_ready_i));
    if (cold_rsp_valid_i) m_cold : assume (f_cold_q && cold_asked_q && !cold_here_q);
    // A control section is of a life (epochs begin at 1).
    if (cold_rsp_valid_i) m_life : assume (cold_rsp_i.hot.epoch != '0);

    // The command that ended a life completes only after the visit to what it left (idle_o is low): no other life begins meanwhile.
    if (state_q == StWorth) f_left_q <= hot_i.epoch;
    // It leaves in place that the QP had a shared receive queue: only for such QPs left_srq is told.
    if (left_q && cold_rsp_valid_i) m_srq : assume (cold_rsp_i.hot.has_srq);
    if (left_q && state_q inside {StCold, StCommit}) m_barrier : assume (hot_i.epoch == f_left_q);

    if (!rst_i && !f_first_q) begin
      if (f_used && !left_q) p_one_life : assert (s.epoch == ctx_q.hot.epoch);
      if (commit && !visit_q) p_commit : assert (hot_i.valid && hot_i.epoch == s.epoch && hot_i.state inside {QP_STATE_RTR, QP_STATE_RTS, QP_STATE_SQD, QP_STATE_SQE});
      if (commit && visit_q)
        p_visit : assert (left_q ? hot_i.epoch == ((s.epoch == '1) ? epoch_t'(1) : s.epoch + epoch_t'(1)) && s.in_send : hot_i.valid && hot_i.epoch == s.epoch);
      if (f_commit_q) p_written : assert (f_gone_q ? s_q == '0 : s.epoch == f_life_q);
      p_producer : assert (prod == ((rq_prod_i.epoch == s.epoch) ? rq_prod_i.val : '0) && (rd_epoch_i == s.epoch || (rd_pop == '0 && rd_new_done == '0 && !rd_halted)));
      if (diag_q) p_look : assert (!commit && !at_commit && !cold_req_valid_o && !begin_packet && !begin_visit && !begin_left);
      if (commit) p_told : assert (cqe.epoch == s.epoch && rq_cons_o.pos.epoch == s.epoch && cqe.qp_idx == idx_q);

      // ---------------------------------------------------------------- induction
      i_state : assert (state_q <= StCommit);
      if (diag_q) i_look : assert (state_q inside {StLoad, StLook, StWorth} && visit_q && !left_q);
      if (left_q && state_q != StIdle) i_left : assert (visit_q);
      if (left_q && state_q == StCommit) i_raw : assert (cold_here_q);
      if (left_q && cold_here_q && state_q != StIdle) i_srq : assert (ctx_q.hot.has_srq);
      if (left_q && state_q inside {StCold, StCommit}) i_ended : assert (f_left_q == ((s.epoch == '1) ? epoch_t'(1) : s.epoch + epoch_t'(1)) && s.in_send);
      if (cold_here_q && state_q != StIdle) i_asked : assert (cold_asked_q && !f_cold_q);
      if (f_cold_q) i_cold : assert (cold_asked_q && !cold_here_q && (state_q == StCold || (!visit_q && state_q inside {StLoad, StLook})));
      if (f_used && state_q != StCommit) i_packet : assert (!visit_q);
      if (visit_q && state_q == StCommit) i_here : assert (cold_here_q);
      if (visit_q && state_q != StIdle) i_gone : assert (!here_q);
      if (state_q == StWorth) i_worth : assert (visit_q);
      if (load_q) i_load : assert (state_q inside {StLoad, StLook});
      if (here_q && state_q == StIdle) i_stay : assert (s.epoch == ctx_q.hot.epoch);

      c_packet : cover (commit && !visit_q && ok);
      c_old_section : cover (state_q == StCold && cold_here_q && !left_q && s.epoch != ctx_q.hot.epoch && s.epoch != '0);
      c_life_ends : cover (at_commit && !visit_q && v_q.exec && !live);
      c_left : cover (commit && left);
      c_look : cover (diag_done_o);
      c_flush : cover (commit && flush);
    end
  end
