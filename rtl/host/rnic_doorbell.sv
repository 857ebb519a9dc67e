// SPDX-License-Identifier: Apache-2.0
// Doorbells of send and receive queues: checks, running producer indices, and a kick to the engine.
// Contract: one doorbell a cycle, never held back. A doorbell is accepted when its QPN lives, it came through the QP's own page, the
// state takes posts, and the producer lies between the old producer and the consumer plus the ring; otherwise it is dropped and
// counted, and nothing changes. Indices of another life read as 0.
module rnic_doorbell
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned QpIdxW = 10
) (
    input  logic clk_i,
    input  logic rst_i,
    // a write into a doorbell page
    input  logic db_valid_i,
    input  logic db_whole_i,                 // one 64-bit write
    input  logic [7:0] db_uar_i,
    input  logic [11:0] db_off_i,
    input  logic [63:0] db_data_i,
    output logic cq_db_valid_o,
    output cq_db_t cq_db_o,
    output qp_idx_t db_hot_idx_o,
    // (not all of the hot word matters to a doorbell)
    // verilator lint_off UNUSEDSIGNAL
    input  qp_hot_t db_hot_i,
    // verilator lint_on UNUSEDSIGNAL
    output logic sq_kick_valid_o,
    output qp_idx_t sq_kick_idx_o,
    output logic rq_kick_valid_o,
    output qp_idx_t rq_kick_idx_o,
    input  qp_idx_t sq_prod_idx_i,
    output ring_pos_t sq_prod_o,
    input  qp_idx_t rq_prod_idx_i,
    output ring_pos_t rq_prod_o,
    input  logic sq_cons_we_i,
    input  ring_pos_wr_t sq_cons_i,
    input  logic rq_cons_we_i,
    input  ring_pos_wr_t rq_cons_i,
    output logic ok_o,
    output logic drop_qpn_o,
    output logic drop_page_o,
    output logic drop_state_o,
    output logic drop_range_o,
    output logic drop_format_o
);
  // (reserved bits)
  // verilator lint_off UNUSEDSIGNAL
  db_queue_t db;
    // verilator lint_on UNUSEDSIGNAL
  logic is_sq, is_rq, is_cq;
  assign db    = db_queue_t'(db_data_i);
  assign is_sq = db_valid_i && db_whole_i && db_off_i == DB_SQ;
  assign is_rq = db_valid_i && db_whole_i && db_off_i == DB_RQ;
  assign is_cq = db_valid_i && db_whole_i && db_off_i == DB_CQ;
  assign db_hot_idx_o = qpn_idx(db.qpn, QpIdxW);

  // second stage
  logic sq_q, rq_q;
  logic [7:0] uar_q;
  qpn_t qpn_q;
  wqe_idx_t new_q;
  qp_idx_t idx_q;
  ring_pos_t sq_prod, rq_prod, sq_cons, rq_cons, prod, cons;
  wqe_idx_t old_v, cons_v, ahead_new, ahead_old;
  logic [3:0] log_size;
  logic qpn_ok, page_ok, state_ok, range_ok, hit, ok;

  always_ff @(posedge clk_i) begin
    sq_q  <= !rst_i && is_sq;
    rq_q  <= !rst_i && is_rq;
    uar_q <= db_uar_i;
    qpn_q <= db.qpn;
    idx_q <= db_hot_idx_o;
    new_q <= db.producer;
    cq_db_valid_o <= !rst_i && is_cq;
    cq_db_o       <= '{uar: db_uar_i, db: db_cq_t'(db_data_i)};
    drop_format_o <= !rst_i && db_valid_i && !(is_sq || is_rq || is_cq);
  end

  assign hit      = sq_q || rq_q;
  assign prod     = sq_q ? sq_prod : rq_prod;
  assign cons     = sq_q ? sq_cons : rq_cons;
  assign old_v    = (prod.epoch == db_hot_i.epoch) ? prod.val : '0;
  assign cons_v   = (cons.epoch == db_hot_i.epoch) ? cons.val : '0;
  assign log_size = sq_q ? db_hot_i.log_sq : db_hot_i.log_rq;
  assign ahead_new = new_q - cons_v;
  assign ahead_old = old_v - cons_v;
  assign qpn_ok   = db_hot_i.valid && qpn_gen(qpn_q, QpIdxW) == db_hot_i.gen;
  assign page_ok  = uar_q == db_hot_i.uar;
  assign range_ok = ahead_new <= (16'd1 << log_size) && ahead_new >= ahead_old;
  always_comb begin
    if (sq_q) state_ok = db_hot_i.state inside {QP_STATE_RTS, QP_STATE_SQD, QP_STATE_SQE, QP_STATE_ERR};
    else state_ok = db_hot_i.state != QP_STATE_RESET && !db_hot_i.has_srq;
  end
  assign ok           = hit && qpn_ok && page_ok && state_ok && range_ok;
  assign ok_o         = ok;
  assign drop_qpn_o   = hit && !qpn_ok;
  assign drop_page_o  = hit && qpn_ok && !page_ok;
  assign drop_state_o = hit && qpn_ok && page_ok && !state_ok;
  assign drop_range_o = hit && qpn_ok && page_ok && state_ok && !range_ok;

  localparam int unsigned PosW = $bits(ring_pos_t);
  logic [PosW-1:0] new_pos;
  assign new_pos = ring_pos_t'{epoch: db_hot_i.epoch, val: new_q};
  // (an index is as wide as the largest build needs)
  // verilator lint_off UNUSEDSIGNAL
  function automatic logic [QpIdxW-1:0] low(qp_idx_t i);
    return QpIdxW'(i);
  endfunction
  // verilator lint_on UNUSEDSIGNAL
  rnic_ram #(.Width(PosW), .Depth(1 << QpIdxW)) u_sq_prod (
      .clk_i, .we_i(ok && sq_q), .waddr_i(low(idx_q)), .wdata_i(new_pos), .re_i(1'b1), .raddr_i(low(db_hot_idx_o)), .rdata_o(sq_prod)
  );
  rnic_ram #(.Width(PosW), .Depth(1 << QpIdxW)) u_sq_prod_engine (
      .clk_i, .we_i(ok && sq_q), .waddr_i(low(idx_q)), .wdata_i(new_pos), .re_i(1'b1), .raddr_i(low(sq_prod_idx_i)), .rdata_o(sq_prod_o)
  );
  rnic_ram #(.Width(PosW), .Depth(1 << QpIdxW)) u_rq_prod (
      .clk_i, .we_i(ok && rq_q), .waddr_i(low(idx_q)), .wdata_i(new_pos), .re_i(1'b1), .raddr_i(low(db_hot_idx_o)), .rdata_o(rq_prod)
  );
  rnic_ram #(.Width(PosW), .Depth(1 << QpIdxW)) u_rq_prod_engine (
      .clk_i, .we_i(ok && rq_q), .waddr_i(low(idx_q)), .wdata_i(new_pos), .re_i(1'b1), .raddr_i(low(rq_prod_idx_i)), .rdata_o(rq_prod_o)
  );
  rnic_ram #(.Width(PosW), .Depth(1 << QpIdxW)) u_sq_cons (
      .clk_i, .we_i(sq_cons_we_i), .waddr_i(low(sq_cons_i.idx)), .wdata_i(sq_cons_i.pos), .re_i(1'b1), .raddr_i(low(db_hot_idx_o)), .rdata_o(sq_cons)
  );
  rnic_ram #(.Width(PosW), .Depth(1 << QpIdxW)) u_rq_cons (
      .clk_i, .we_i(rq_cons_we_i), .waddr_i(low(rq_cons_i.idx)), .wdata_i(rq_cons_i.pos), .re_i(1'b1), .raddr_i(low(db_hot_idx_o)), .rdata_o(rq_cons)
  );

  // The kick follows the new producer index by a cycle, so that the engine reads the new one.
  always_ff @(posedge clk_i) begin
    sq_kick_valid_o <= !rst_i && ok && sq_q;
    sq_kick_idx_o   <= idx_q;
    rq_kick_valid_o <= !rst_i && ok && rq_q;
    rq_kick_idx_o   <= idx_q;
  end
endmodule
