// SPDX-License-Identifier: Apache-2.0
// Hardware errors and "send queue drained" marks: kept one per QP and source, applied while no command is under way.
// Contract: inputs are never refused. While run_i is high one QP is handled every second cycle: its state goes to ERR (to SQE for a
// UC or UD send error in RTS), or its draining mark falls; what belongs to an earlier life is dropped. quiet_o: nothing
// is kept (run_i may only fall while it is high). SQ_DRAINED is offered on eqe_* until taken; the next QP waits for it.
module rnic_qp_err
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned QpIdxW = 8,
    parameter int unsigned NumErr = 3
) (
    input  logic clk_i,
    input  logic rst_i,
    // verilator lint_off UNUSEDSIGNAL
    // (an index is as wide as the largest table needs)
    input  logic [NumErr-1:0] err_valid_i,
    input  qp_err_t [NumErr-1:0] err_i,
    input  logic drained_valid_i,
    input  qp_idx_t drained_idx_i,
    input  epoch_t drained_epoch_i,
    // verilator lint_on UNUSEDSIGNAL
    input  logic run_i,
    output logic quiet_o,
    // the table
    output logic own_re_o,
    output logic [QpIdxW-1:0] own_idx_o,
    input  qp_hot_t own_hot_i,
    input  logic own_notify_i,
    output logic we_o,
    output logic [QpIdxW-1:0] widx_o,
    output qp_hot_t hot_o,
    // SQ_DRAINED
    output logic eqe_valid_o,
    input  logic eqe_ready_i,
    output eqe_req_t eqe_o
);
  localparam int unsigned Depth = 1 << QpIdxW;
  localparam logic [2:0] QuietCycles = 3'd4;    // an entry is offered at most so long after it was set

  // ---------------------------------------------------------------- what was reported
  logic [NumErr-1:0][QpIdxW-1:0] err_idx;
  logic [QpIdxW-1:0] drained_idx, err_pick_idx, drained_pick_idx;
  logic err_pend, drained_pend, pick_err, pick_drained;

  always_comb for (int unsigned s = 0; s < NumErr; s++) err_idx[s] = err_i[s].idx[QpIdxW-1:0];
  assign drained_idx = drained_idx_i[QpIdxW-1:0];

  rnic_pend_set #(
      .IdxW(QpIdxW),
      .NumSet(NumErr)
  ) u_err_pend (
      .clk_i, .rst_i,
      .set_valid_i(err_valid_i), .set_idx_i(err_idx), .clr_valid_i(1'b0), .clr_idx_i('0),
      .pick_valid_o(err_pend), .pick_ready_i(pick_err), .pick_idx_o(err_pick_idx)
  );
  rnic_pend_set #(
      .IdxW(QpIdxW),
      .NumSet(1)
  ) u_drained_pend (
      .clk_i, .rst_i,
      .set_valid_i(drained_valid_i), .set_idx_i(drained_idx), .clr_valid_i(1'b0), .clr_idx_i('0),
      .pick_valid_o(drained_pend), .pick_ready_i(pick_drained), .pick_idx_o(drained_pick_idx)
  );

  // The life that a report is about stands per QP and source; epoch 0 is no life, so an empty place fits none.
  logic [NumErr-1:0] src_sqe;
  epoch_t [NumErr-1:0] src_epoch;
  epoch_t drained_epoch;
  for (genvar s = 0; s < NumErr; s++) begin : g_src
    rnic_ram #(
        .Width(1 + $bits(epoch_t)),
        .Depth(Depth)
    ) u_life (
        .clk_i,
        .we_i(err_valid_i[s]), .waddr_i(err_idx[s]), .wdata_i({err_i[s].to_sqe, err_i[s].epoch}),
        .re_i(pick_err), .raddr_i(err_pick_idx), .rdata_o({src_sqe[s], src_epoch[s]})
    );
  end
  rnic_ram #(
      .Width($bits(epoch_t)),
      .Depth(Depth)
  ) u_drained (
      .clk_i,
      .we_i(drained_valid_i), .waddr_i(drained_idx), .wdata_i(drained_epoch_i),
      .re_i(pick_drained), .raddr_i(drained_pick_idx), .rdata_o(drained_epoch)
  );

  // ---------------------------------------------------------------- applied
  logic judge_err_q, judge_drained_q;           // the words of widx_o stand at the outputs of the RAMs
  logic [QpIdxW-1:0] idx_q;
  logic [2:0] quiet_q;
  logic any_err, any_sqe, datagram, alive, may_pick, eqe_valid_q;
  eqe_req_t eqe_q;

  assign may_pick     = run_i && !judge_err_q && !judge_drained_q && !eqe_valid_q;
  assign pick_err     = may_pick && err_pend;
  assign pick_drained = may_pick && drained_pend && !err_pend;
  assign own_re_o     = pick_err || pick_drained;
  assign own_idx_o    = pick_err ? err_pick_idx : drained_pick_idx;
  assign quiet_o      = (quiet_q == QuietCycles) && !err_pend && !drained_pend;
  assign alive     = own_hot_i.valid && own_hot_i.state != QP_STATE_RESET && own_hot_i.state != QP_STATE_ERR;
  assign datagram  = own_hot_i.qp_type == QP_TYPE_UC || own_hot_i.qp_type == QP_TYPE_UD || own_hot_i.qp_type == QP_TYPE_GSI;

  always_comb begin
    any_err = 1'b0;
    any_sqe = 1'b0;
    for (int unsigned s = 0; s < NumErr; s++) begin
      automatic logic fits = src_epoch[s] == own_hot_i.epoch;
`ifdef RNIC_CUT_QP_ERR_EPOCH
      fits = src_epoch[s] != '0;
`endif
      if (fits && src_sqe[s] && datagram) any_sqe = 1'b1;
      else if (fits) any_err = 1'b1;
    end
    we_o   = 1'b0;
    widx_o = idx_q;
    hot_o  = own_hot_i;
    hot_o.sq_draining = 1'b0;
    if (judge_err_q && alive) begin
      // A send error outside RTS (the queue was being drained) leaves no state that SQE could return to: ERR.
      if (any_err || (any_sqe && own_hot_i.state == QP_STATE_SQD)) begin
        we_o        = 1'b1;
        hot_o.state = QP_STATE_ERR;
      end else if (any_sqe && own_hot_i.state == QP_STATE_RTS) begin
        we_o        = 1'b1;
        hot_o.state = QP_STATE_SQE;
      end
    end
`ifdef RNIC_CUT_QP_ERR
    we_o = 1'b0;
`endif
    if (judge_drained_q) we_o = own_hot_i.valid && own_hot_i.state == QP_STATE_SQD && own_hot_i.sq_draining
        && drained_epoch == own_hot_i.epoch;
  end

  assign eqe_valid_o = eqe_valid_q;
  assign eqe_o       = eqe_q;

  always_ff @(posedge clk_i) begin
    if (own_re_o) idx_q <= own_idx_o;
    if (judge_drained_q) begin
      eqe_q <= '{eqn: '0, event_type: EVENT_TYPE_SQ_DRAINED,
                 number: 32'(make_qpn(own_hot_i.gen, qp_idx_t'(idx_q), QpIdxW))};
    end
    if (rst_i) begin
      judge_err_q     <= 1'b0;
      judge_drained_q <= 1'b0;
      quiet_q         <= '0;
      eqe_valid_q     <= 1'b0;
    end else begin
      judge_err_q     <= pick_err;
      judge_drained_q <= pick_drained;
      if (err_valid_i != '0 || drained_valid_i || err_pend || drained_pend) quiet_q <= '0;
      else if (quiet_q != QuietCycles) quiet_q <= quiet_q + 3'd1;
      if (eqe_ready_i) eqe_valid_q <= 1'b0;
      if (judge_drained_q && we_o && own_notify_i) eqe_valid_q <= 1'b1;
    end
  end
endmodule
