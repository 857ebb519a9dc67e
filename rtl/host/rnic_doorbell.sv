// SPDX-License-Identifier: Apache-2.0
// Doorbells of send and receive queues: checks, running producer indices, and a kick to the engine.
// Contract: one doorbell a cycle, never held back: an index and a kick per QP, no queue. A doorbell is accepted when its QPN
// lives (index and generation), it came through the QP's own page, the state takes posts, and the producer lies between the
// old producer and the consumer plus the ring; otherwise it is dropped and counted under the first of these rules that it
// breaks, and nothing changes. Indices of another life count as 0. *_prod_o: as stored, one cycle after *_prod_idx_i; the kick
// comes one cycle after the new index can be read. Doorbells of completion queues and shared receive queues are handed on with
// their page.
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
    output logic srq_db_valid_o,
    output srq_db_t srq_db_o,
    output qp_idx_t db_hot_idx_o,
    // (not all of the hot word matters to a doorbell)
    // verilator lint_off UNUSEDSIGNAL
    input  qp_hot_t db_hot_i,                // answer one cycle later
    // verilator lint_on UNUSEDSIGNAL
    output logic sq_kick_valid_o,
    output qp_idx_t sq_kick_idx_o,
    output logic rq_kick_valid_o,
    output qp_idx_t rq_kick_idx_o,
    // (an index is as wide as the largest build needs)
    // verilator lint_off UNUSEDSIGNAL
    input  qp_idx_t sq_prod_idx_i,
    output ring_pos_t sq_prod_o,
    input  qp_idx_t rq_prod_idx_i,
    output ring_pos_t rq_prod_o,
    input  logic sq_cons_we_i,
    input  ring_pos_wr_t sq_cons_i,
    input  logic rq_cons_we_i,
    input  ring_pos_wr_t rq_cons_i,
    // verilator lint_on UNUSEDSIGNAL
    output cnt_t cnt_o
);
  // ---------------------------------------------------------------- which one
  db_queue_t db;
  db_cq_t cq_db;
  db_srq_t srq_db;
  logic is_sq, is_rq, is_cq, is_srq;
  assign db           = db_queue_t'(db_data_i);
  assign cq_db        = db_cq_t'(db_data_i);
  assign srq_db       = db_srq_t'(db_data_i);
  assign is_sq        = db_valid_i && db_whole_i && db_off_i == DB_SQ && db_queue_rsvd_ok(db);
  assign is_rq        = db_valid_i && db_whole_i && db_off_i == DB_RQ && db_queue_rsvd_ok(db);
  assign is_cq        = db_valid_i && db_whole_i && db_off_i == DB_CQ && db_cq_rsvd_ok(cq_db);
  assign is_srq       = db_valid_i && db_whole_i && db_off_i == DB_SRQ && db_srq_rsvd_ok(srq_db);
  assign db_hot_idx_o = qpn_idx(db.qpn, QpIdxW);

  logic sq_q, rq_q, bad_q;
  logic [7:0] uar_q;
  qpn_t qpn_q;
  wqe_idx_t new_q;
  logic [QpIdxW-1:0] idx_q;
  always_ff @(posedge clk_i) begin
    sq_q          <= !rst_i && is_sq;
    rq_q          <= !rst_i && is_rq;
    bad_q         <= !rst_i && db_valid_i && !(is_sq || is_rq || is_cq || is_srq);
    cq_db_valid_o <= !rst_i && is_cq;
    cq_db_o       <= '{uar: db_uar_i, db: cq_db};
    srq_db_valid_o <= !rst_i && is_srq;
    srq_db_o       <= '{uar: db_uar_i, db: srq_db};
    uar_q         <= db_uar_i;
    qpn_q         <= db.qpn;
    idx_q         <= QpIdxW'(db.qpn);
    new_q         <= db.producer;
  end

  // ---------------------------------------------------------------- checks, beside the hot word
  ring_pos_t prod, sq_cons, rq_cons, cons, new_pos;
  wqe_idx_t old_v, cons_v, ahead_new, ahead_old;
  logic [3:0] log_size;
  logic hit, qpn_ok, page_ok, state_ok, range_ok, ok;
  assign hit       = sq_q || rq_q;
  assign cons      = sq_q ? sq_cons : rq_cons;
`ifdef RNIC_CUT_DB_EPOCH
  assign old_v     = prod.val;
  assign cons_v    = cons.val;
`else
  assign old_v     = (prod.epoch == db_hot_i.epoch) ? prod.val : '0;
  assign cons_v    = (cons.epoch == db_hot_i.epoch) ? cons.val : '0;
`endif
  assign log_size  = sq_q ? db_hot_i.log_sq : db_hot_i.log_rq;
  assign ahead_new = new_q - cons_v;
  assign ahead_old = old_v - cons_v;
`ifdef RNIC_CUT_DB_QPN
  assign qpn_ok    = 1'b1;
`else
  assign qpn_ok    = db_hot_i.valid && qpn_gen(qpn_q, QpIdxW) == db_hot_i.gen;
`endif
`ifdef RNIC_CUT_DB_PAGE
  assign page_ok   = 1'b1;
`else
  assign page_ok   = uar_q == db_hot_i.uar;
`endif
`ifdef RNIC_CUT_DB_RANGE
  assign range_ok  = 1'b1;
`else
  assign range_ok  = ahead_new <= (16'd1 << log_size) && ahead_new >= ahead_old;
`endif
  always_comb begin
    unique case (db_hot_i.state)
      QP_STATE_RTS, QP_STATE_SQD, QP_STATE_SQE, QP_STATE_ERR: state_ok = sq_q || !db_hot_i.has_srq;
      QP_STATE_INIT, QP_STATE_RTR: state_ok = rq_q && !db_hot_i.has_srq;
      default: state_ok = 1'b0;
    endcase
`ifdef RNIC_CUT_DB_STATE
    state_ok = 1'b1;
`endif
  end
  assign ok = hit && qpn_ok && page_ok && state_ok && range_ok;
  cnt_t cnt;
  always_comb begin
    cnt = '0;
    cnt[COUNTER_ID_DB_ACCEPTED]    = ok;
    cnt[COUNTER_ID_DB_DROP_QPN]    = hit && !qpn_ok;
    cnt[COUNTER_ID_DB_DROP_PAGE]   = hit && qpn_ok && !page_ok;
    cnt[COUNTER_ID_DB_DROP_STATE]  = hit && qpn_ok && page_ok && !state_ok;
    cnt[COUNTER_ID_DB_DROP_RANGE]  = hit && qpn_ok && page_ok && state_ok && !range_ok;
    cnt[COUNTER_ID_DB_DROP_FORMAT] = bad_q;
  end
  // A cycle later, so that the checks need not reach into the counters.
  always_ff @(posedge clk_i) cnt_o <= rst_i ? '0 : cnt;

  // ---------------------------------------------------------------- running indices
  localparam int unsigned PosW = $bits(ring_pos_t);
  localparam int unsigned Depth = 1 << QpIdxW;
  assign new_pos = '{epoch: db_hot_i.epoch, val: new_q};
  rnic_ram #(.Width(PosW), .Depth(2 * Depth)) u_prod (
      .clk_i, .we_i(ok), .waddr_i({rq_q, idx_q}), .wdata_i(new_pos), .re_i(1'b1), .raddr_i({is_rq, QpIdxW'(db.qpn)}), .rdata_o(prod)
  );
  rnic_ram #(.Width(PosW), .Depth(Depth)) u_sq_prod (
      .clk_i, .we_i(ok && sq_q), .waddr_i(idx_q), .wdata_i(new_pos), .re_i(1'b1), .raddr_i(QpIdxW'(sq_prod_idx_i)), .rdata_o(sq_prod_o)
  );
  rnic_ram #(.Width(PosW), .Depth(Depth)) u_rq_prod (
      .clk_i, .we_i(ok && rq_q), .waddr_i(idx_q), .wdata_i(new_pos), .re_i(1'b1), .raddr_i(QpIdxW'(rq_prod_idx_i)), .rdata_o(rq_prod_o)
  );
  rnic_ram #(.Width(PosW), .Depth(Depth)) u_sq_cons (
      .clk_i, .we_i(sq_cons_we_i), .waddr_i(QpIdxW'(sq_cons_i.idx)), .wdata_i(sq_cons_i.pos), .re_i(1'b1), .raddr_i(QpIdxW'(db.qpn)), .rdata_o(sq_cons)
  );
  rnic_ram #(.Width(PosW), .Depth(Depth)) u_rq_cons (
      .clk_i, .we_i(rq_cons_we_i), .waddr_i(QpIdxW'(rq_cons_i.idx)), .wdata_i(rq_cons_i.pos), .re_i(1'b1), .raddr_i(QpIdxW'(db.qpn)), .rdata_o(rq_cons)
  );

  always_ff @(posedge clk_i) begin
    sq_kick_valid_o <= !rst_i && ok && sq_q;
    rq_kick_valid_o <= !rst_i && ok && rq_q;
    sq_kick_idx_o   <= qp_idx_t'(idx_q);
    rq_kick_idx_o   <= qp_idx_t'(idx_q);
  end

`ifdef FORMAL_DOORBELL
`include "rnic_doorbell.svh"
`endif
endmodule
