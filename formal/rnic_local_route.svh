// SPDX-License-Identifier: Apache-2.0
// Properties of rnic_local_route, read at its end under FORMAL_LOCAL_ROUTE. Core, host and memory do as they like within their streams'
// contract: what is offered stays offered, and a TLP's header stays the same.
//
//   p_target   a request goes to the memory exactly when its address lies in the window, else to the host
//   p_read     a local read is handed over only when no local write is unanswered
//   p_host     a write to the host begins only when no local write is unanswered
//   p_whole    a completion that has begun goes on from its source to its last beat
//   p_turns    no source waits while the other sends one completion after the other
  logic f_first_q = 1'b1;
  logic f_begun_q, f_source_q, f_held_q, f_cut_q;
  rq_hdr_t f_hdr_q;
  logic [1:0] f_host_wait_q;
  always_ff @(posedge clk_i) begin
    f_first_q <= 1'b0;
    f_hdr_q   <= rq_hdr_i;
    f_held_q  <= !rst_i && rq_valid_i && !rq_ready_o;
    if (rq_valid_i && rq_ready_o) f_cut_q <= !rst_i && !rq_last_i;
    if (rc_valid_o && rc_ready_i) begin
      f_begun_q  <= !rc_last_o;
      f_source_q <= loc_rc_valid_i && loc_rc_ready_o;
    end
    // Completions of the memory that have gone out since the host waits.
    if (!host_rc_valid_i || host_rc_ready_o) f_host_wait_q <= '0;
    else if (loc_rc_valid_i && loc_rc_ready_o && loc_rc_last_i && f_host_wait_q != '1) f_host_wait_q <= f_host_wait_q + 2'd1;
    if (f_first_q) m_reset : assume (rst_i);
    else begin
      m_one_reset : assume (!rst_i);
      if (f_held_q) m_offered : assume (rq_valid_i && rq_hdr_i == f_hdr_q);
      if (f_cut_q && rq_valid_i) m_header : assume (rq_hdr_i == f_hdr_q);
      m_read : assume (rq_hdr_i.wr || rq_last_i);
    end
    if (f_cut_q && !rq_valid_i) f_hdr_q <= f_hdr_q;
    if (rst_i) begin
      f_begun_q     <= 1'b0;
      f_host_wait_q <= '0;
      f_cut_q       <= 1'b0;
    end

    if (!rst_i && !f_first_q) begin
      p_target : assert ((!(wr_valid_o || rd_valid_o) || rq_hdr_i.addr[63:LogSize] == Base[63:LogSize]) &&
                         (!host_rq_valid_o || rq_hdr_i.addr[63:LogSize] != Base[63:LogSize]));
      if (rd_valid_o) p_read : assert (wr_idle_i);
      if (host_rq_valid_o && rq_hdr_i.wr && !f_cut_q) p_host : assert (wr_idle_i);
      if (f_begun_q && rc_valid_o) p_whole : assert (rc_hdr_o == (f_source_q ? loc_rc_hdr_i : host_rc_hdr_i) && (f_source_q ? loc_rc_valid_i : host_rc_valid_i));
      p_turns : assert (f_host_wait_q <= 2'd1);

      // ---------------------------------------------------------------- induction
      i_cpl : assert (in_cpl_q == f_begun_q && (!f_begun_q || from_q == f_source_q));
      i_turn : assert (f_host_wait_q == '0 || (from_q && !in_cpl_q));
      i_cut : assert (!in_write_q || f_cut_q);
      if (f_cut_q) i_host : assert (in_write_q == (f_hdr_q.addr[63:LogSize] != Base[63:LogSize]) && f_hdr_q.wr);

      c_order : cover (rq_valid_i && host_rq_ready_i && rq_hdr_i.wr && rq_hdr_i.addr[63:LogSize] != Base[63:LogSize] && !wr_idle_i);
      c_both : cover (rc_valid_o && rc_ready_i && host_rc_valid_i && loc_rc_valid_i && !f_begun_q && rc_last_o);
      c_read : cover (rd_valid_o && rd_ready_i);
    end
  end
