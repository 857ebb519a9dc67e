// SPDX-License-Identifier: Apache-2.0
// Properties of rnic_qp_batch, read at its end under FORMAL, where every signal of the module has its name. Everything around it
// is free: table, gate, allocator, marks, host, data path, at any time, within what the assumptions say.
//
//   p_refused_unchanged  a command that is refused has written nothing
//   p_whole              a command that is accepted has written as many entries as it names, each once
//   p_reads_only         QUERY and LIST write nothing
//   p_idle               between commands it writes nothing, so that an error applied there meets no half-done batch
//   p_barrier            a DESTROY completes after the barrier that follows its last write
//   p_told               a refusal by the gate has a rule
//   p_told_count         the completion of a command that is refused names no changed QP
//   i_*                  what the induction needs to know of the states
  logic f_first_q = 1'b1;
  logic [17:0] f_n_q;                        // entries written by the command
  logic f_acked_q;                           // the barrier was answered since the last write
  always_ff @(posedge clk_i) begin
    f_first_q <= 1'b0;
    if (f_first_q) m_reset : assume (rst_i);
    if (rst_i || accept) f_n_q <= '0;
    else if (write) f_n_q <= f_n_q + 18'd1;
    if (rst_i || accept || write) f_acked_q <= 1'b0;
    else if (drain_req_q && drain_ack_i) f_acked_q <= 1'b1;
  end

  logic f_change, f_pre;
  assign f_change = is_create || is_modify || is_destroy;
  assign f_pre    = state_q inside {ST_LOOK, ST_JUDGE, ST_CHECK, ST_FETCH, ST_GATE, ST_ALLOC, ST_SEARCH};

  always_ff @(posedge clk_i)
    if (!rst_i && !f_first_q) begin
      // What the judge of parameters and the gate promise.
      if (state_q == ST_CHECK && chk_status_i == CMD_STATUS_OK)
        m_params : assume (count != '0 && count <= 17'd1 << QpIdxW && (!is_query || count == 17'd1) && (f_change || is_query || is_list));
      // What pass 1 saw in the table is there in pass 2: nobody else writes it meanwhile (p_idle, and proof qp_table).
      if (write) m_table : assume (own_hot_i.valid == !is_create);
      // No type has an address before RTR.
      if (write && is_install) m_init : assume ((rec_i.mask[AttrW-1:0] & QP_PATH_PEER) == '0);
      m_status : assume (chk_status_i != CMD_STATUS_GATE_REFUSED);
      m_gate : assume (gate_ok_i == (gate_rule_i == GATE_RULE_NONE));

      if (cpl_valid_o && cpl_o.status != CMD_STATUS_OK) p_refused_unchanged : assert (f_n_q == '0);
      if (cpl_valid_o && cpl_o.status == CMD_STATUS_OK && f_change) p_whole : assert (f_n_q == 18'(count));
      if (is_query || is_list) p_reads_only : assert (!write);
      if (idle_o) p_idle : assert (!we_o);
      if (cpl_valid_o && cpl_o.status == CMD_STATUS_OK && is_destroy) p_barrier : assert (f_acked_q);
      if (cpl_valid_o && cpl_o.status != CMD_STATUS_OK) p_told_count : assert (cpl_o.count == '0);
      if (cpl_valid_o && cpl_o.status == CMD_STATUS_GATE_REFUSED) p_told : assert (cpl_o.rule != GATE_RULE_NONE);

      // ---------------------------------------------------------------- induction
      i_state : assert (state_q <= ST_CPL);
      if (!(state_q inside {ST_INIT, ST_IDLE, ST_LOOK})) i_decoded : assert (decoded_q == decoded);
      if (!(state_q inside {ST_INIT, ST_IDLE})) i_ok : assert (ok_q == (cpl_q.status == CMD_STATUS_OK));
      if (!(state_q inside {ST_INIT, ST_IDLE, ST_SETTLE, ST_CPL})) i_ok_until_fail : assert (ok_q);
      if (!(state_q inside {ST_INIT, ST_IDLE, ST_SETTLE, ST_DRAIN, ST_CPL})) i_no_count_yet : assert (cpl_q.count == '0);
      if (!ok_q && !(state_q inside {ST_INIT, ST_IDLE})) i_no_count : assert (cpl_q.count == '0);
      if (!(state_q inside {ST_INIT, ST_IDLE})) i_void : assert (!(void_q && ok_q));
      if (f_pre) i_k0 : assert (k_q == '0);
      if (f_pre || pass1 || state_q inside {ST_QUERY, ST_LIST}) i_none_yet : assert (f_n_q == '0);
      if (state_q inside {ST_FETCH, ST_GATE, ST_ALLOC, ST_SEARCH, ST_PASS1, ST_PASS2, ST_QUERY, ST_LIST})
        i_params : assert (count != '0 && count <= 17'd1 << QpIdxW && (!is_query || count == 17'd1));
      if (state_q inside {ST_FETCH}) i_fetch : assert (is_modify || is_install);
      if (state_q == ST_GATE) i_gate : assert (is_install && $countones({s1_valid_q, s2_valid_q, s3_valid_q}) == 1);
      if (state_q == ST_GATE && s1_valid_q) i_gate_s1 : assert (s1_last_q);
      if (state_q == ST_GATE && s2_valid_q) i_gate_s2 : assert (s2_last_q);
      if (state_q == ST_GATE && s3_valid_q) i_gate_s3 : assert (s3_last_q);
      if (state_q inside {ST_ALLOC, ST_SEARCH}) i_alloc : assert (is_create);
      if (state_q == ST_JUDGE) i_judge : assert (is_create);
      if (state_q == ST_PASS2) i_pass2 : assert (f_change && !single);
      if (state_q == ST_QUERY) i_query : assert (is_query);
      if (state_q == ST_LIST) i_list : assert (is_list);
      if (pass1) i_pass1 : assert (f_change || is_query);
      if (!(state_q inside {ST_INIT, ST_GATE, ST_PASS1, ST_PASS2, ST_QUERY})) i_empty : assert (!s1_valid_q && !s2_valid_q && !s3_valid_q);
      if (state_q inside {ST_INIT, ST_PASS2, ST_QUERY}) i_no_verdicts : assert (!s2_valid_q && !s3_valid_q);
      if (state_q inside {ST_INIT, ST_PASS1, ST_PASS2, ST_QUERY}) begin
        i_k : assert (k_q <= end_k);
        if (s1_valid_q) i_s1 : assert (s1_k_q < k_q && s1_last_q == (s1_k_q + 17'd1 == end_k));
        if (s2_valid_q) i_s2 : assert (s2_k_q < k_q && s2_last_q == (s2_k_q + 17'd1 == end_k));
        if (s3_valid_q) i_s3 : assert (s3_k_q < k_q && s3_last_q == (s3_k_q + 17'd1 == end_k));
        if (s1_valid_q && s2_valid_q) i_s12 : assert (s2_k_q < s1_k_q);
        if (s2_valid_q && s3_valid_q) i_s23 : assert (s3_k_q < s2_k_q);
        if (s1_valid_q && s3_valid_q) i_s13 : assert (s3_k_q < s1_k_q);
      end
      if (state_q == ST_PASS2) i_written : assert (f_n_q + 18'(s1_valid_q) == 18'(k_q) && (s1_valid_q || k_q != end_k));
      if (state_q inside {ST_SETTLE, ST_DRAIN, ST_CPL}) begin
        if (ok_q && f_change) i_all_written : assert (f_n_q == 18'(count) && count != '0);
        if (!ok_q || !f_change) i_none_written : assert (f_n_q == '0);
        i_op : assert (f_change || is_query || is_list || !ok_q);
      end
      if (is_destroy && f_n_q != '0 && state_q != ST_IDLE) i_drain : assert (drain_q);
      if (state_q == ST_DRAIN) i_drains : assert (drain_q && ok_q);
      if (state_q != ST_DRAIN) i_no_request : assert (!drain_req_q);
      if (state_q inside {ST_SETTLE, ST_CPL} && cpl_q.status == CMD_STATUS_GATE_REFUSED) i_rule : assert (cpl_q.rule != GATE_RULE_NONE);
      if (state_q == ST_CPL && ok_q && drain_q) i_acked : assert (f_acked_q);

      // Nothing above is empty.
      c_create : cover (cpl_valid_o && is_create && !is_install && cpl_o.status == CMD_STATUS_OK && count == 17'd3);
      c_install : cover (cpl_valid_o && is_install && cpl_o.status == CMD_STATUS_OK);
      c_modify : cover (cpl_valid_o && is_modify && use_list && cpl_o.status == CMD_STATUS_OK && count == 17'd2);
      c_single : cover (cpl_valid_o && single && cpl_o.status == CMD_STATUS_OK);
      c_destroy : cover (cpl_valid_o && is_destroy && cpl_o.status == CMD_STATUS_OK && count == 17'd2);
      c_third : cover (cpl_valid_o && cpl_o.status == CMD_STATUS_GATE_REFUSED && cpl_o.offender_index == 32'd2);
      c_duplicate : cover (cpl_valid_o && cpl_o.status == CMD_STATUS_DUPLICATE);
      c_dma : cover (cpl_valid_o && cpl_o.status == CMD_STATUS_DMA_ERROR);
      c_list : cover (cpl_valid_o && is_list && cpl_o.status == CMD_STATUS_OK);
      c_query : cover (cpl_valid_o && is_query && cpl_o.status == CMD_STATUS_OK);
    end
