// SPDX-License-Identifier: Apache-2.0
// Properties of rnic_read_engine, read at its end under FORMAL_READ_ENGINE. READs, hot words, control sections, keys and errors come as they
// like: QPs are destroyed and made anew at any moment; sections and slots hold anything at the start.
//
//   p_this_life   the section that a visit works with is of the life that the hot word told at its start, or a new one
//   p_slots       slots of another life count as none
//   p_live        a response or a NAK is handed over only if the QP lived, in that life, and served a cycle before it was offered
//   p_written     what is written is of that life
//   p_error       an error is reported of that life
  logic f_first_q = 1'b1;
  epoch_t f_life_q;                  // what the visit found
  logic f_serves_q, f_offer_q;       // a cycle ago the QP lived in that life and served; the hand-over was on offer already
  head_t f_head_q;
  logic f_slot_q;                    // not the first cycle of StSlot
  always_ff @(posedge clk_i) begin
    f_first_q <= 1'b0;
    if (f_first_q) m_reset : assume (rst_i);
    else m_one_reset : assume (!rst_i);
    if (state_q == StLook) f_life_q <= hot_i.epoch;
    f_head_q   <= head;
    f_slot_q   <= state_q == StSlot;
    f_serves_q <= hot_i.valid && hot_i.epoch == f_life_q && hot_i.state inside {QP_STATE_RTR, QP_STATE_RTS, QP_STATE_SQD, QP_STATE_SQE};
    f_offer_q  <= job_valid_o;
    if (!rst_i && !f_first_q) begin
      if (state_q inside {StSlot, StPart, StKey, StKeyAns, StCheck, StJob, StPiece, StCommit, StFail, StNak, StEvent, StErr})
        p_this_life : assert (s_q.epoch == f_life_q);
      if (state_q == StSlot && !f_slot_q) p_slots : assert (push_q == ((f_head_q.epoch == f_life_q) ? f_head_q.push : '0));
      if (job_valid_o && !f_offer_q) p_live : assert (f_serves_q);
      if (sec_we) p_written : assert (n.epoch == f_life_q && state_q inside {StCommit, StFail});
      if (qp_err_valid_o) p_error : assert (qp_err_o.epoch == f_life_q && qp_err_o.idx == idx_q);

      // ---------------------------------------------------------------- induction
      if (!(state_q inside {StIdle, StLoad, StLook})) i_life : assert (epoch_q == f_life_q);
      i_state : assert (state_q <= StErr);

      c_response : cover (job_valid_o && job_ready_i && state_q == StJob);
      c_old : cover (state_q == StLook && sec_raw.epoch != hot_i.epoch && sec_raw.epoch != '0);
      c_life_ends : cover (state_q == StCheck && hot_i.epoch != epoch_q);
      c_nak : cover (job_valid_o && state_q == StNak);
    end
  end
