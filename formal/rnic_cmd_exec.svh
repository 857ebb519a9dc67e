// SPDX-License-Identifier: Apache-2.0
// Properties of rnic_cmd_exec, read at its end under FORMAL_CMD_EXEC. The engines around it answer within FE cycles (contracts of rnic_cq,
// rnic_srq, rnic_eq, rnic_mr, rnic_refcnt and rnic_cmd_query while the host takes what is written, each budgeted by a test); the QP engine and the
// barrier may answer whenever they like, or never. A fatal condition comes at any time and stays.
//
//   p_bound           a command that is accepted has its completion within FN cycles, whatever the QP engine and the barrier do
//   p_refused         an object command that is refused has changed nothing: no object is made, freed or set
//   p_once            nothing is done twice for one command
//   p_barrier         a region that is changed, a region, CQ or SRQ that is destroyed completes with OK only after a barrier that was asked for after its end
//   p_late            a number is free again only after that
  localparam int unsigned FE = 3;
  localparam int unsigned FQp = 1 << (DrainLog + 2);       // longest wait for the QP engine
  localparam int unsigned FDrain = 1 << DrainLog;          // for a barrier
  localparam int unsigned FGrace = 1 << GraceLog;          // for either, of a device that is fatal
  localparam int unsigned FFatal = FGrace + 2;             // what a fatal condition in the middle adds
  localparam int unsigned FLast = ((FQp > FDrain + 3 * FE) ? FQp : FDrain + 3 * FE) + FFatal + 3;
  localparam int unsigned FN = FE + 1 + FLast;
  logic f_first_q = 1'b1;
  logic [15:0] f_t_q, f_age_q;                             // cycles in this state; since the command
  logic f_acked_q, f_fatal_q;
  logic [3:0] f_effects_q;
  state_e f_state_q;
  logic [NUM_PD-1:0] f_pd_q;
  logic [NUM_XRCD-1:0] f_xrcd_q;
  logic f_effect, f_ends;
  assign f_effect = mr_op_end || (cq_op_valid_o && cq_op_done_i && (hdr.opcode != CMD_OPCODE_RESIZE_CQ || cq_status_i == CMD_STATUS_OK)) || cq_clr_o || srq_set || (srq_limit_valid_o && srq_limit_ready_i)
      || srq_clr_o || eq_set_o || eq_clr_o || set_port_o || set_gid_o || set_pkey_o || pd_make || pd_free_put || xrcd_make || xrcd_put;
  assign f_ends   = hdr.opcode == CMD_OPCODE_DESTROY_MR || hdr.opcode == CMD_OPCODE_DESTROY_CQ || hdr.opcode == CMD_OPCODE_DESTROY_SRQ
      || hdr.opcode == CMD_OPCODE_REREG_MR;

  // What is left of a wait that the executor itself bounds.
  logic [31:0] f_limit, f_wait;
  assign f_limit = fatal_seen_q ? FGrace : (state_q == ST_DRAIN) ? FDrain : FQp;
  assign f_wait  = f_limit - 32'(wait_q) + (fatal_seen_q ? 32'd0 : FFatal);
  // Cycles to the completion, at most.
  logic [31:0] f_rank;
  always_comb
    case (state_q)
      ST_IDLE, ST_CPL: f_rank = 0;
      ST_CHECK: f_rank = FE - 32'(f_t_q) + 1 + FLast;
      ST_ACT: f_rank = 1 + FLast;
      ST_QP_SEND, ST_QP_WAIT: f_rank = f_wait + 1;
      ST_DRAIN: f_rank = f_wait + 1 + 2 * FE;
      ST_MR_OP: f_rank = FE - 32'(f_t_q) + FDrain + FFatal + 1 + 2 * FE;
      ST_CQ_SETTLE: f_rank = FE - 32'(f_t_q) + FE;
      default: f_rank = FE - 32'(f_t_q);
    endcase

  // The state changes in the next cycle.
  logic f_leaves;
  always_comb
    case (state_q)
      ST_CHECK: f_leaves = ask_ok_i && (!mr_looks || mr_looked_q);
      ST_MR_OP: f_leaves = mr_op_done_i;
      ST_CQ_OP: f_leaves = cq_op_done_i;
      ST_SRQ_SET: f_leaves = (srq_set_valid_o && srq_set_ready_i) || (srq_limit_valid_o && srq_limit_ready_i);
      ST_QUERY: f_leaves = query_done_i;
      ST_CQ_SETTLE: f_leaves = cq_idle_i;
      ST_EQ_SETTLE: f_leaves = eq_idle_i;
      default: f_leaves = 1'b1;
    endcase

  always_ff @(posedge clk_i) begin
    f_first_q <= 1'b0;
    if (f_first_q) m_reset : assume (rst_i);
    else m_one_reset : assume (!rst_i);
    f_state_q <= state_q;
    f_fatal_q <= fatal_i && !rst_i;
    f_t_q     <= (rst_i || f_leaves) ? '0 : f_t_q + 16'd1;
    f_age_q   <= (rst_i || state_q inside {ST_IDLE, ST_CPL}) ? '0 : f_age_q + 16'd1;
    if (rst_i || state_q == ST_IDLE) begin
      f_effects_q <= '0;
      f_acked_q   <= 1'b0;
      f_pd_q      <= pd_valid_q;
      f_xrcd_q    <= xrcd_valid_q;
    end else begin
      if (f_effect) f_effects_q <= f_effects_q + 4'd1;
      if (state_q == ST_DRAIN && drain_req_o && drain_ack_i) f_acked_q <= 1'b1;
    end
    if (f_fatal_q) m_fatal_stays : assume (fatal_i);
    if (rst_i) m_not_fatal : assume (!fatal_i);
    // The engines.
    if (32'(f_t_q) == FE - 1) begin
      if (state_q == ST_CHECK) m_ask : assume (ask_ok_i && (!mr_looks || mr_looked_q));
      if (state_q == ST_MR_OP) m_mr_op : assume (mr_op_done_i);
      if (state_q == ST_CQ_OP) m_cq_op : assume (cq_op_done_i);
      if (state_q == ST_SRQ_SET) m_srq_set : assume (srq_set_ready_i && srq_limit_ready_i);
      if (state_q == ST_QUERY) m_query : assume (query_done_i);
      if (state_q == ST_CQ_SETTLE) m_cq_idle : assume (cq_idle_i);
      if (state_q == ST_EQ_SETTLE) m_eq_idle : assume (eq_idle_i);
    end
  end
  always_ff @(posedge clk_i)
    if (!rst_i && !f_first_q) begin
      p_bound : assert (32'(f_age_q) <= FN);
      if (state_q == ST_CPL && res_q.status != CMD_STATUS_OK && res_q.status != CMD_STATUS_FATAL)
        p_refused : assert (f_effects_q == '0 && pd_valid_q == f_pd_q && xrcd_valid_q == f_xrcd_q);
      p_once : assert (f_effects_q <= 4'd1);
      if (state_q == ST_CPL && res_q.status == CMD_STATUS_OK && f_ends) p_barrier : assert (f_acked_q);
      if (cq_put || srq_put || mr_put) p_late : assert (f_effects_q == 4'd1 && (f_acked_q || (state_q == ST_DRAIN && drain_req_o && drain_ack_i)));

      // ---------------------------------------------------------------- induction
      i_state : assert (state_q <= ST_CPL);
      i_seen : assert (fatal_seen_q == f_fatal_q);
      if (!(state_q inside {ST_IDLE, ST_CPL})) i_rank : assert (32'(f_age_q) + f_rank <= FN);
      if (state_q inside {ST_IDLE, ST_CPL}) i_age : assert (32'(f_age_q) <= FN);
      if (state_q inside {ST_QP_SEND, ST_QP_WAIT, ST_DRAIN}) i_wait : assert (32'(wait_q) <= f_limit);
      else if (state_q != ST_IDLE) i_no_wait : assert (32'(wait_q) <= FQp + 1);
      if (state_q inside {ST_QP_SEND, ST_DRAIN} && f_state_q == ST_ACT) i_wait_begins : assert (wait_q == '0);
      if (state_q inside {ST_CHECK, ST_MR_OP, ST_CQ_OP, ST_SRQ_SET, ST_QUERY, ST_CQ_SETTLE, ST_EQ_SETTLE}) i_t : assert (32'(f_t_q) < FE);
      else if (state_q != ST_CPL || f_state_q != ST_CPL) i_t0 : assert (f_t_q == '0);
      if (state_q inside {ST_CHECK, ST_ACT, ST_MR_OP, ST_CQ_OP, ST_SRQ_SET, ST_QP_SEND, ST_QP_WAIT, ST_QUERY})
        i_nothing_yet : assert (f_effects_q == '0 && pd_valid_q == f_pd_q && xrcd_valid_q == f_xrcd_q);
      if (state_q == ST_MR_OP) i_mr_op : assert (f_ends || hdr.opcode == CMD_OPCODE_CREATE_MR);
      if (state_q == ST_CQ_OP) i_cq_op : assert (hdr.opcode inside {CMD_OPCODE_CREATE_CQ, CMD_OPCODE_MODIFY_CQ, CMD_OPCODE_RESIZE_CQ});
      if (state_q == ST_SRQ_SET) i_srq_set : assert (hdr.opcode inside {CMD_OPCODE_CREATE_SRQ, CMD_OPCODE_MODIFY_SRQ});
      if (state_q inside {ST_QP_SEND, ST_QP_WAIT}) i_qp : assert (!f_ends);
      if (state_q == ST_QUERY) i_query : assert (!f_ends);
      if (state_q inside {ST_CQ_SETTLE, ST_EQ_SETTLE, ST_DRAIN}) i_one : assert (f_effects_q == 4'd1 && pd_valid_q == f_pd_q && xrcd_valid_q == f_xrcd_q);
      if (state_q == ST_DRAIN) i_drain : assert (f_ends);
      if (state_q == ST_CQ_SETTLE) i_cq_settle : assert (hdr.opcode == CMD_OPCODE_DESTROY_CQ && f_acked_q);
      if (state_q == ST_EQ_SETTLE) i_eq_settle : assert (hdr.opcode inside {CMD_OPCODE_DESTROY_CQ, CMD_OPCODE_DESTROY_SRQ, CMD_OPCODE_CREATE_EQ, CMD_OPCODE_DESTROY_EQ} && (f_acked_q || !f_ends));
      if (state_q inside {ST_MR_OP, ST_CQ_OP, ST_SRQ_SET, ST_QP_SEND, ST_QUERY, ST_DRAIN, ST_CQ_SETTLE, ST_EQ_SETTLE}) i_ok : assert (res_q.status == CMD_STATUS_OK);
      if (state_q == ST_QP_WAIT) i_ok_wait : assert (res_q.status == CMD_STATUS_OK);

      c_refused : cover (cpl_valid_o && res_q.status == CMD_STATUS_IN_USE);
      c_drained : cover (cpl_valid_o && f_acked_q && hdr.opcode == CMD_OPCODE_DESTROY_MR);
      c_expired : cover (expired && state_q == ST_QP_WAIT && !fatal_i);
      c_grace : cover (expired && fatal_i && state_q == ST_DRAIN);
      c_cq_small : cover (cpl_valid_o && res_q.status == CMD_STATUS_TOO_SMALL);
      c_cq : cover (cpl_valid_o && res_q.status == CMD_STATUS_OK && hdr.opcode == CMD_OPCODE_CREATE_CQ);
    end
