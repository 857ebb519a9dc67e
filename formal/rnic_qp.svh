// SPDX-License-Identifier: Apache-2.0
// Properties of rnic_qp with its real table, read at its end under FORMAL_QP_ENGINE, for one QP index chosen freely and kept. With
// FORMAL_ANY_TABLE the table may hold anything at the start and is not cleared after reset: what holds for the next
// command then holds for every command, whatever came before. Commands are MODIFY and DESTROY, of any form; what CREATE makes of a section
// is proof qp_apply, what it may take is proof qp_alloc.
//
//   p_writers       a section's hot word changes only in a write by an accepted command or by a hardware error, and becomes what that writes
//   p_one_writer    a command and a hardware error never write in the same cycle
//   p_edge          MODIFY changes a QP only along an edge of the second transcription of the table, with every attribute that it
//                   requires and none that it does not allow
//   p_cur_state     ... and only if the state that the caller assumed is the QP's own
//   p_rows_*        port and P_Key index change only where the table lists them, or with a new life
//   p_stale         MODIFY and DESTROY by number change only a QP that lives under that very number, generation included
//   p_identity      type, doorbell page, ring sizes, generation and validity change with a new life alone
//   p_life          DESTROY begins a new life, with the entry not valid (CREATE: proof qp_apply)
//   p_epoch         a new life has a new epoch, never 0; without a new life the epoch stays
//   p_hardware      a hardware error changes nothing but the state (to ERR, to SQE) and the draining mark, of a living QP of that epoch
  import qp_table_oracle_pkg::*;
  logic f_first_q = 1'b1;
  logic [QpIdxW-1:0] f_sym_q;
  logic [$bits(qp_hot_t)-1:0] f_bits;
  qp_hot_t f_old;
  logic f_cmd, f_err;
  oracle_t f_row;
  logic [31:0] f_mask;
  assign f_bits = u_table.u_own.mem[f_sym_q][$bits(qp_hot_t)-1:0];
  assign f_old  = f_bits;
  assign f_cmd  = cmd_we && ready_o && widx == f_sym_q;
  assign f_err  = err_we && widx == f_sym_q;
  assign f_mask = rec.mask;
  assign f_row  = oracle(f_old.qp_type, 3'(f_old.state), 3'(hot.state));

  logic [$bits(qp_hot_t)-1:0] f_bits_q;
  logic f_wrote_q;                                 // in the cycle before
  always_ff @(posedge clk_i) begin
    f_bits_q  <= (f_cmd || f_err) ? hot : f_bits;
    f_wrote_q <= !rst_i && !f_first_q;
    if (!rst_i && !f_first_q && f_wrote_q) p_writers : assert (f_bits == f_bits_q);
  end

  // What is written, but for what a hardware error may change.
  qp_hot_t f_rest;
  always_comb begin
    f_rest             = hot;
    f_rest.state       = f_old.state;
    f_rest.sq_draining = f_old.sq_draining;
  end

  logic f_modify, f_destroy, f_by_number;
  assign f_modify    = cmd.opcode == CMD_OPCODE_MODIFY_QP;
  assign f_destroy   = cmd.opcode == CMD_OPCODE_DESTROY_QP;
  assign f_by_number = !cmd.flags[CMD_FLAG_LIST];

  // The host: a read is answered in beats, one read at a time, with or without an error, whenever it likes.
  logic [15:0] f_beats_q;
  always_ff @(posedge clk_i) begin
    f_first_q <= 1'b0;
    f_sym_q   <= f_sym_q;
    if (f_first_q) m_reset : assume (rst_i);
    else m_one_reset : assume (!rst_i);
    if (f_first_q) m_quiet_start : assume (!cmd_we && !err_we && rec_we == '0);   // what comes before reset
    if (rst_i) f_beats_q <= '0;
    else if (rd_req_valid_o && rd_req_ready_i) f_beats_q <= (rd_req_o.len + 16'(DataW / 8) - 16'd1) / 16'(DataW / 8);
    else if (rd_rsp_valid_i) f_beats_q <= f_beats_q - 16'd1;
    if (f_beats_q != '0) m_one_read : assume (!rd_req_ready_i);
    if (f_beats_q == '0) m_no_answer : assume (!rd_rsp_valid_i);
    m_last : assume (rd_rsp_ctl_i.last == (f_beats_q == 16'd1));
    if (!drain_req_o) m_no_ack : assume (!drain_ack_i);
    m_commands : assume (qp_cmd_i.opcode inside {CMD_OPCODE_MODIFY_QP, CMD_OPCODE_DESTROY_QP});
    if (f_first_q) m_starts : assume (!(cmd.opcode inside {CMD_OPCODE_CREATE_QP, CMD_OPCODE_INSTALL_QP}));
    // A state is one of seven, in the table as elsewhere.
    m_states : assume (f_old.state <= QP_STATE_ERR);
  end

  always_ff @(posedge clk_i)
    if (!rst_i && !f_first_q) begin
      p_one_writer : assert (!(cmd_we && err_we));
      if (f_cmd && f_modify) begin
        p_edge : assert (f_row.legal && (32'(f_row.req) & ~(f_mask | 32'd1)) == '0 && (f_mask & ~(32'(f_row.allow) | 32'd1)) == '0);
        if (f_mask[1]) p_cur_state : assert (rec.cur_qp_state == 3'(f_old.state));
        if (!new_life && path_we[QP_ATTR_BIT_PORT]) p_rows_port : assert (f_row.allow[5]);
        if (!new_life && path_we[QP_ATTR_BIT_PKEY_INDEX]) p_rows_pkey : assert (f_row.allow[4]);
      end
      if (f_cmd && (f_modify || f_destroy) && f_by_number && cmd.count == 24'd1)
        p_stale : assert (f_old.valid && 24'(cmd.handle) == make_qpn(f_old.gen, qp_idx_t'(f_sym_q), QpIdxW) && cmd.handle[31:24] == '0);
      if (f_cmd && f_modify)
        p_identity : assert (hot.valid && f_old.valid && hot.qp_type == f_old.qp_type && hot.gen == f_old.gen && hot.uar == f_old.uar
            && hot.log_sq == f_old.log_sq && hot.log_rq == f_old.log_rq && hot.sq_sig_all == f_old.sq_sig_all);
      if (f_cmd) p_epoch : assert (new_life ? hot.epoch != f_old.epoch && hot.epoch != '0 : hot.epoch == f_old.epoch);
      if (f_cmd && f_destroy) p_life : assert (new_life && !hot.valid);
      if (f_err)
        p_hardware : assert (f_old.valid && !create_we && path_we == '0 && f_rest == f_old && hot.sq_draining <= f_old.sq_draining
            && (hot.state == f_old.state || hot.state inside {QP_STATE_ERR, QP_STATE_SQE}));
      c_modify : cover (f_cmd && f_modify);
      c_rtr : cover (f_cmd && f_modify && hot.state == QP_STATE_RTR);
      c_destroy : cover (f_cmd && f_destroy);
      c_error : cover (f_err && hot.state == QP_STATE_ERR);
      c_sqe : cover (f_err && hot.state == QP_STATE_SQE);
    end
