// SPDX-License-Identifier: Apache-2.0
// Properties of rnic_send_ctl, read at its end under FORMAL_SEND_CTL, for one QP index chosen freely and kept. Hot words and control
// sections change as they like at any time (QPs are destroyed and made anew in the middle of a visit); the requester's sections hold anything at
// the start. What the units tell cannot name another life; they tell it only while they are at work.
//
//   p_begin       a unit begins with a section of the life that hot word and control section are of, and with no other
//   p_first       a section of another life is left as a new one: nothing of it remains
//   p_hot_ok      the units are told that they may hand over only while the QP lives, in that life, and may send
//   p_producer    a producer index of another life counts as 0
//   p_written     a section is written at the end of a visit, and is then of the life that the visit found
//   p_others      a visit leaves the sections of other QPs as they are
//   p_begin_later so it is with what begins later in the visit
//   p_look        a look starts no unit, writes no section and gives nothing back
//   p_error       an error is reported of the life that the visit was about
  logic f_first_q = 1'b1;
  logic f_new_q, f_freed_q;          // an old section was met a cycle ago; its records were given back
  logic [QpIdxW-1:0] f_sym_q;
  epoch_t f_life_q, f_new_life_q;    // what the visit found
  parts_t f_sec_q;                   // the section as it should stand
  sq_sec_t f_new_sec;
  logic f_table;                     // and stands
  always_comb begin
    f_table = 1'b1;
    for (int unsigned i = 0; i < SecBeats; i++) if (u_sec.mem[part_at(f_sym_q, beat_t'(i))] != f_sec_q[i]) f_table = 1'b0;
    f_new_sec       = '0;
    f_new_sec.epoch = f_new_life_q;
  end
  always_ff @(posedge clk_i) begin
    f_first_q <= 1'b0;
    f_sym_q   <= f_sym_q;
    if (f_first_q) begin
      m_reset : assume (rst_i);
      m_table : assume (f_table);
    end else begin
      m_one_reset : assume (!rst_i);
    end
    // A unit changes the section only while it is at work.
    if (state_q != C_RESP) m_resp : assume (resp_upd_i == '0);
    if (state_q != C_RETIRE) m_retire : assume (retire_upd_i == '0);
    if (state_q != C_PKT) m_pkt : assume (pkt_upd_i == '0);

    if (state_q == C_PREP && same_life) f_life_q <= hot_i.epoch;
    f_new_q      <= !rst_i && state_q == C_PREP && same_life && !epoch_ok && !diag_q;
    f_new_life_q <= hot_i.epoch;
    f_freed_q    <= list_free_o;
    for (int unsigned i = 0; i < SecBeats; i++) if (sec_we && part_at(idx_q, beat_q) == part_at(f_sym_q, beat_t'(i))) f_sec_q[i] <= sec_wdata;

    if (!rst_i && !f_first_q) begin
      if (state_q == C_PREP && (resp_start_o || retire_start_o)) p_begin : assert (sec_q.epoch == hot_i.epoch && ctx_q.hot.epoch == hot_i.epoch);
      if (pkt_start_o || (state_q == C_RESP && retire_start_o)) p_begin_later : assert (sec_q.epoch == f_life_q);
      if (diag_q) p_look : assert (!sec_we && !resp_start_o && !retire_start_o && !pkt_start_o && !list_free_o && !own_ctl && !own_snd && !timeout_o && !qp_err_valid_o && !ready_pop_o && !ctl_take && !snd_take && !err_pop_o);
      if (f_new_q) p_first : assert (sec_q == f_new_sec && state_q == C_PREP);
      if (hot_ok_o) p_hot_ok : assert (hot_i.valid && hot_i.epoch == sec_q.epoch && hot_i.state inside {QP_STATE_RTS, QP_STATE_SQD});
      p_producer : assert (visit_o.prod == ((sq_prod_i.epoch == hot_i.epoch) ? sq_prod_i.val : '0));
      if (sec_we && state_q != C_INIT) p_written : assert (state_q == C_COMMIT && sec_q.epoch == f_life_q && hot_idx_o == qp_idx_t'(idx_q));
      p_others : assert (f_table);
      if (qp_err_valid_o) p_error : assert (qp_err_o.epoch == f_life_q && qp_err_o.idx == qp_idx_t'(idx_q) && hot_i.epoch == f_life_q);

      // ---------------------------------------------------------------- induction
      if (state_q inside {C_RESP, C_RETIRE, C_PKT, C_COMMIT}) i_life : assert (sec_q.epoch == f_life_q);
      i_beat : assert ((state_q inside {C_INIT, C_COMMIT}) ? beat_q < beat_t'(SecBeats) : (state_q inside {C_COLD, C_PREP}) ? beat_q <= beat_t'(SecBeats) : beat_q == '0);
      i_state : assert (state_q <= C_COMMIT);
      i_look : assert (diag_q ? state_q inside {C_ADDR, C_COLD, C_PREP, C_DIAG} && cause_q == CAUSE_RESP : state_q != C_DIAG);

      c_old : cover (f_new_q && f_freed_q);
      c_packet : cover (pkt_start_o);
      c_response : cover (state_q == C_COMMIT && cause_q == CAUSE_RESP);
      c_life_ends : cover (state_q == C_COMMIT && !epoch_ok);
      c_look : cover (diag_done_o);
      c_error : cover (qp_err_valid_o);
    end
  end
