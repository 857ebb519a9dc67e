// SPDX-License-Identifier: Apache-2.0
// Completes WQEs of the visited QP in order: those acknowledged, the one that failed, and in an error state all the rest
// as flushed.
// Contract: start_i is a pulse; visit_i is steady but for its section, which is what the owner makes of upd_o. done_o pulses
// with again_o: something was short for the moment, visit again. A completion goes to cqe_* only while cqe_ready_i; the consumer
// index is published in the same cycle (so before the completion can reach the host). Nothing completes while a
// packet of its WQE still waits for its payload (jobs_busy_*), or data of a READ is not yet written (place_busy_*: the
// place unit wakes the QP), and no LOCAL_INV while its barrier at the responder is open (inv_open_i of inv_num_o): until then an access
// that was judged before may still reach the host's memory. A flushed one promises nothing.
module rnic_send_retire
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
  import rnic_send_pkg::*;
#(
    parameter int unsigned QpIdxW = 10
) (
    input  logic         clk_i,
    input  logic         rst_i,
    input  logic         start_i,
    input  visit_t       visit_i,
    output logic         done_o,
    output logic         again_o,
    output retire_upd_t  upd_o,
    input  logic         jobs_busy_qp_i,
    input  logic         jobs_busy_wqe_i,   // of WQE cons
    input  logic         place_busy_qp_i,
    input  logic         place_busy_wqe_i,
    output inv_num_t     inv_num_o,
    input  logic         inv_open_i,
    output logic         rec_rd_o,
    output rec_idx_t     rec_idx_o,
    // This unit needs a part of a record.
    // verilator lint_off UNUSEDSIGNAL
    input  rec_t         rec_i,
    // verilator lint_on UNUSEDSIGNAL
    input  logic         rec_past_i,        // it lies before una_psn
    input  rec_idx_t     rec_next_i,
    input  logic         rec_here_i,
    output logic         rec_free_o,
    output rec_idx_t     rec_free_tail_o,   // from the section's head on
    output logic [7:0]   rec_free_count_o,
    output logic         cqe_valid_o,
    input  logic         cqe_ready_i,
    output cqe_req_t     cqe_o,
    output logic         cons_we_o,
    output ring_pos_wr_t cons_o,
    output logic         failed_o,          // the QP is halted from here on
    output logic         drained_o          // SQD: nothing is under way
);
  typedef enum logic [1:0] {
    R_IDLE,
    R_EVAL,    // what is the oldest?
    R_REC,     // its record is here
    R_FLUSH    // error state: release what was in flight, complete the rest
  } state_e;
  state_e state_q, state_d;

  // the structs are shared; this unit needs a part of them.
  // verilator lint_off UNUSEDSIGNAL
  visit_t v;
  sq_sec_t sec;
  // verilator lint_on UNUSEDSIGNAL
  logic err_state, complete, inv_wait, fail, fail_busy, pop, flush, clear, idle_all;
  logic [7:0] status, vendor;
  assign v         = visit_i;
  assign sec       = visit_i.sec;
  assign err_state = v.ctx.hot.state == QP_STATE_ERR || v.ctx.hot.state == QP_STATE_SQE;
  assign complete  = rec_past_i;
  assign fail_busy = jobs_busy_wqe_i || place_busy_wqe_i;
  assign inv_num_o = rec_i.len[8+:$bits(inv_num_t)];
  assign inv_wait  = rec_i.kind == KIND_LOCAL && rec_i.len[7:0] == 8'(WC_OPCODE_LOCAL_INV) && inv_open_i;
  // (Without records cons is fresh.)
  assign idle_all  = sec.count == '0 && sec.snd_wqe == sec.fresh && sec.snd_off == '0 && !sec.loc_fail;

  // What the WQE at cons fails with.
  logic loc_now;
  assign loc_now = sec.loc_fail && sec.loc_wqe[7:0] == sec.cons[7:0];   // (a QP never has 256 WQEs in flight)
  assign status  = loc_now ? sec.loc_status : sec.rem_status;
  assign vendor  = loc_now ? sec.loc_vendor : VENDOR_ERR_NONE;

  always_comb begin
    state_d          = state_q;
    done_o           = 1'b0;
    again_o          = 1'b0;
    rec_rd_o         = 1'b0;
    rec_idx_o        = sec.head;
    rec_free_o       = 1'b0;
    rec_free_tail_o  = sec.head;
    rec_free_count_o = 8'd1;
    failed_o         = 1'b0;
    drained_o        = 1'b0;
    fail             = 1'b0;
    pop              = 1'b0;
    flush            = 1'b0;
    clear            = 1'b0;
    case (state_q)
      R_IDLE: if (start_i) state_d = R_EVAL;
      R_EVAL: begin
        if (sec.halted) begin
          if (err_state) begin
            state_d = R_FLUSH;
          end else begin
            done_o  = 1'b1;
            state_d = R_IDLE;
          end
        end else if (loc_now) begin
          fail = 1'b1;
        end else if (sec.count != '0) begin
          rec_rd_o = 1'b1;
          state_d  = R_REC;
        end else if (err_state) begin
          state_d = R_FLUSH;
        end else begin
          drained_o = v.ctx.hot.state == QP_STATE_SQD && v.ctx.hot.sq_draining && idle_all;
          done_o    = 1'b1;
          state_d   = R_IDLE;
        end
      end
      R_REC:
      if (rec_here_i) begin
        if (complete) begin
          state_d = R_EVAL;
          if (jobs_busy_wqe_i || place_busy_wqe_i || inv_wait || !cqe_ready_i) begin
            again_o = !place_busy_wqe_i;
            done_o  = 1'b1;
            state_d = R_IDLE;
          end else begin
            pop        = 1'b1;
            rec_free_o = 1'b1;
          end
        end else if (sec.rem_fail) begin
          fail = 1'b1;
        end else if (err_state) begin
          state_d = R_FLUSH;
        end else begin
          done_o  = 1'b1;
          state_d = R_IDLE;
        end
      end
      default: begin  // R_FLUSH
        if (jobs_busy_qp_i || place_busy_qp_i) begin
          again_o = 1'b1;
          done_o  = 1'b1;
          state_d = R_IDLE;
        end else if (sec.count != '0) begin
          rec_free_o       = 1'b1;
          rec_free_tail_o  = sec.tail;
          rec_free_count_o = sec.count;
          clear            = 1'b1;
        end else if (sec.cons == v.prod) begin
          done_o  = 1'b1;
          state_d = R_IDLE;
        end else if (!cqe_ready_i) begin
          again_o = 1'b1;
          done_o  = 1'b1;
          state_d = R_IDLE;
        end else begin
          flush = 1'b1;
        end
      end
    endcase
    if (fail) begin
      done_o  = 1'b1;
      state_d = R_IDLE;
      if (fail_busy || !cqe_ready_i) begin
        fail    = 1'b0;
        again_o = 1'b1;
      end else begin
        again_o        = err_state;
        failed_o       = 1'b1;
      end
    end
  end
  assign upd_o = '{pop: pop, fail: fail, flush: flush, clear: clear, next: rec_next_i};

  always_comb begin
    cqe_o           = '0;
    cqe_o.cqn       = v.ctx.create.send_cq;
    cqe_o.qp_idx    = v.idx;
    cqe_o.epoch     = sec.epoch;
    cqe_o.qpn       = make_qpn(v.ctx.hot.gen, v.idx, QpIdxW);
    cqe_o.wqe_index = sec.cons;
    cqe_o.solicited = !pop;
    cqe_o.status    = WC_STATUS_WR_FLUSH_ERR;
    cqe_o.opcode    = WC_OPCODE_SEND;
    if (pop) begin
      cqe_o.status   = WC_STATUS_SUCCESS;
      cqe_o.byte_len = rec_i.len;
      case (rec_i.kind)
        KIND_WRITE: cqe_o.opcode = WC_OPCODE_RDMA_WRITE;
        KIND_READ: cqe_o.opcode = WC_OPCODE_RDMA_READ;
        KIND_CMP_SWAP: cqe_o.opcode = WC_OPCODE_COMP_SWAP;
        KIND_FETCH_ADD: cqe_o.opcode = WC_OPCODE_FETCH_ADD;
        KIND_LOCAL: begin
          cqe_o.opcode   = rec_i.len[7:0];
          cqe_o.byte_len = '0;
        end
        default: ;
      endcase
    end else if (fail) begin
      cqe_o.status     = status;
      cqe_o.vendor_err = vendor;
    end
`ifdef RNIC_CUT_FLUSH
    cqe_valid_o = (pop && rec_i.signaled) || fail;
    cons_we_o   = pop || fail;
`else
    cqe_valid_o = (pop && rec_i.signaled) || fail || flush;
    cons_we_o   = pop || fail || flush;
`endif
    cons_o      = '{idx: v.idx, pos: '{epoch: sec.epoch, val: sec.cons + wqe_idx_t'(1)}};
  end

  always_ff @(posedge clk_i) begin
    if (rst_i) state_q <= R_IDLE;
    else state_q <= state_d;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      if (start_i) a_idle : assert (state_q == R_IDLE);
      if (drained_o) a_all_completed : assert (sec.cons == sec.fresh);
      if (pop) a_in_order : assert (rec_i.wqe == sec.cons);
    end
  end
endmodule
