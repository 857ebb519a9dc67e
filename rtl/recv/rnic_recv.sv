// SPDX-License-Identifier: Apache-2.0
// Responder: request checks, placement, receive WQEs, shared receive queues, ACK and NAK, READ responses.
// The only writer of the responder sections.
//
//   request packet -> rnic_responder (rnic_resp_check, rnic_resp_place: rnic_rq_fetch, rnic_scatter) -> ACK, NAK -+
//                          | READ slots                                                                         rnic_resp_tx
//                     rnic_read_engine -> READ responses, late NAK ---------------------------------------------+
//
// Contract: requests are served one at a time, in order of arrival; every payload beat is taken, of dropped packets too.
// Per packet: section committed, consumer index, payload accepted by the write client, CQE, events, ACK or NAK. Receive
// queues of QPs in ERR are flushed one WQE at a time. With enable_i low packets are dropped and nothing else happens.
//
// Errors (the receive WQE in use reports them; an event does when there is none). The QP is silent from the commit
// on; the NAK leaves after the READ responses before it, and ERR is asked for when it was handed over:
//   opcode sequence, operation not built, length, DMALen, access flags, alignment,
//   too many READs and atomics                                                            0x61  REM_INV_REQ_ERR or QP_REQ_ERR
//   receive too short                                                                      0x61  LOC_LEN_ERR
//   remote key (CQE when a WRITE with immediate has its receive WQE)                       0x62  LOC_ACCESS_ERR or QP_ACCESS_ERR
//   key that a SEND cannot invalidate (its payload is placed then)                         0x62  LOC_ACCESS_ERR
//   local key of a receive                                                                 0x63  LOC_PROT_ERR
//   receive WQE malformed or not readable                                                  0x63  LOC_QP_OP_ERR
//   WQE of a shared receive queue not readable                                             0x63  QP_FATAL; the WQE stays in the queue
//   payload of a READ response, or memory of an atomic, not readable                       0x63  QP_FATAL
module rnic_recv
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned DataW = 64,
    parameter int unsigned QpIdxW = 10,
    parameter int unsigned ClkPeriodPs = 8000,
    parameter int unsigned MaxRqStride = 4,
    parameter int unsigned MaxRd = MAX_RD_ATOMIC,
    parameter int unsigned RqLines = 64,
    parameter int unsigned NumSrq = 64,    // 0: no shared receive queues
    localparam int unsigned SrqBits = (NumSrq > 0) ? NumSrq : 2
) (
    input  logic clk_i,
    input  logic rst_i,
    input  logic enable_i,
    input  port_cfg_t port_cfg_i,
    // control section
    input  logic qp_evt_valid_i, input qp_evt_t qp_evt_i,
    output qp_idx_t [1:0] hot_idx_o, input qp_hot_t [1:0] hot_i,    // [0] responder, [1] READ engine; answer one cycle later
    output logic [1:0] cold_req_valid_o, input logic [1:0] cold_req_ready_i, output qp_idx_t [1:0] cold_req_idx_o, input logic [1:0] cold_rsp_valid_i, input qp_ctx_t cold_rsp_i,
    // queue indices
    input  logic rq_kick_valid_i, input qp_idx_t rq_kick_idx_i,
    output qp_idx_t rq_prod_idx_o, input ring_pos_t rq_prod_i,       // answer one cycle later
    output logic rq_cons_we_o, output ring_pos_wr_t rq_cons_o,
    // shared receive queues: commands (see rnic_srq), doorbells
    input  logic srq_set_valid_i, output logic srq_set_ready_o, input logic srq_limit_valid_i, output logic srq_limit_ready_o, input logic srq_clr_i,
    input  logic [15:0] srq_idx_i, input srq_cfg_t srq_cfg_i, input logic [15:0] srq_limit_i,
    output logic [SrqBits-1:0] srq_valid_o, output logic [15:0] srq_pd_o, output logic [15:0] srq_cur_limit_o, output logic [15:0] srq_left_o,
    input  logic srq_db_valid_i, input srq_db_t srq_db_i,
    // requests from the wire
    input  logic rx_desc_valid_i, output logic rx_desc_ready_o, input rx_desc_t rx_desc_i,
    input  logic rx_pay_valid_i, output logic rx_pay_ready_o, input logic [DataW-1:0] rx_pay_data_i, input logic rx_pay_last_i,
    // transmit
    output logic tx_job_valid_o, input logic tx_job_ready_i, output tx_job_t tx_job_o,
    output logic tx_piece_valid_o, input logic tx_piece_ready_i, output tx_piece_t tx_piece_o, output logic [DataW-1:0] tx_piece_data_o,
    input  logic tx_done_i, input logic tx_err_valid_i, input tx_err_t tx_err_i,
    // DMA: WQE fetch, payload placement
    output logic rd_req_valid_o, input logic rd_req_ready_i, output dma_rd_req_t rd_req_o,
    input  logic rd_rsp_valid_i, output logic rd_rsp_ready_o, input logic [DataW-1:0] rd_rsp_data_i, input dma_rd_ctl_t rd_rsp_ctl_i,
    output logic wr_valid_o, input logic wr_ready_i, output dma_wr_hdr_t wr_hdr_o, output logic [DataW-1:0] wr_data_o, output logic wr_last_o,
    // invalidation of keys
    output logic mr_inv_valid_o, output mr_inv_t mr_inv_o, input logic mr_inv_done_i, input mr_err_e mr_inv_err_i,
    // barrier for keys that the requester has invalidated (rnic_resp_barrier)
    input  logic inv_mark_i, output logic inv_busy_o,
    // memory keys
    output logic [1:0] mr_req_valid_o, input logic [1:0] mr_req_ready_i, output mr_req_t [1:0] mr_req_o, input logic [1:0] mr_rsp_valid_i, input mr_rsp_t mr_rsp_i,
    // completions, events, errors
    output logic cqe_valid_o, input logic cqe_ready_i, output cqe_req_t cqe_o, input logic cq_idle_i,
    output logic eqe_valid_o, input logic eqe_ready_i, output eqe_req_t eqe_o,
    output logic qp_err_valid_o, output qp_err_t qp_err_o,
    // barrier: ack rises when nothing that began before the request is under way any more, and falls with it
    input  logic drain_req_i, output logic drain_ack_o,
    // a look at a queue pair (rnic_responder)
    input  logic diag_valid_i, input diag_select_t diag_i, output logic diag_done_o, output logic [63:0] diag_data_o,
    output cnt_t cnt_o
);
  localparam int unsigned PtrW = (MaxRd > 1) ? $clog2(MaxRd) : 1;
  if (ClkPeriodPs == 0) begin : g_clock
    $fatal(1, "ClkPeriodPs must be the clock period");  // this side times nothing yet
  end

  logic resp_idle, read_idle, tx_busy;
  logic rd_push, rd_push_dup, rd_push_atomic, rd_halted, rd_empty_valid, rd_empty_hold, rd_look, rd_head_ready;
  logic [QpIdxW-1:0] rd_head_idx;
  logic [PtrW:0] rd_head_push;
  epoch_t rd_head_epoch;
  qp_idx_t rd_idx;
  epoch_t rd_epoch;
  logic [PtrW-1:0] rd_push_ptr;
  logic [PtrW:0] rd_pop, rd_new_done;
  psn_t rd_push_psn;
  logic [63:0] rd_push_va;
  logic [31:0] rd_push_rkey, rd_push_len;
  logic [23:0] rd_push_msn;
  logic [QpIdxW-1:0] rd_empty_idx;
  logic packet_idle, pay_busy, pay_end, own_mark, own_busy;
  localparam int unsigned Credit = 16;           // frames under way
  logic [$clog2(Credit+1)-1:0] tx_count, tx_keyed;
  logic [1:0] job_valid, job_ready, err_valid, err_ready;
  logic [2:0] e_valid, e_ready;
  tx_job_t [1:0] job;
  eqe_req_t [2:0] e;
  qp_err_t [1:0] err;
  logic tx_err_valid, tx_err_ready;
  tx_err_t tx_err;

  logic srq_get, srq_take, srq_busy;
  logic [15:0] srq_get_idx;
  wqe_idx_t srq_next;
  srq_head_t srq_head;
  cnt_t cnt_resp, cnt_srq;
  assign cnt_o = cnt_resp | cnt_srq;   // they count different things
  if (NumSrq > 0) begin : g_srq
    rnic_srq #(.NumSrq(NumSrq)) u_srq (
        .clk_i, .rst_i, .busy_o(srq_busy), .set_valid_i(srq_set_valid_i), .set_ready_o(srq_set_ready_o), .clr_i(srq_clr_i),
        .limit_valid_i(srq_limit_valid_i), .limit_ready_o(srq_limit_ready_o), .idx_i(srq_idx_i), .get_idx_i(srq_get_idx),
        .cfg_i(srq_cfg_i), .limit_i(srq_limit_i), .valid_o(srq_valid_o), .look_pd_o(srq_pd_o), .look_limit_o(srq_cur_limit_o), .look_left_o(srq_left_o),
        .db_valid_i(srq_db_valid_i), .db_i(srq_db_i), .get_i(srq_get), .head_o(srq_head), .take_i(srq_take), .next_i(srq_next),
        .eqe_valid_o(e_valid[2]), .eqe_ready_i(e_ready[2]), .eqe_o(e[2]), .cnt_o(cnt_srq)
    );
  end else begin : g_no_srq
    // Commands are refused before they come here; a doorbell is for a queue that is not there.
    assign {srq_busy, srq_valid_o, srq_pd_o, srq_cur_limit_o, srq_left_o, e_valid[2]} = '0;
    assign {srq_set_ready_o, srq_limit_ready_o} = '1;
    assign srq_head = '0;
    assign e[2]     = '0;
    always_ff @(posedge clk_i) begin
      cnt_srq <= '0;
      cnt_srq[COUNTER_ID_DB_DROP_QPN] <= srq_db_valid_i && !rst_i;
    end
    // verilator lint_off UNUSEDSIGNAL
    logic unused;
    // verilator lint_on UNUSEDSIGNAL
    assign unused = ^{
        srq_set_valid_i, srq_limit_valid_i, srq_clr_i, srq_idx_i, srq_cfg_i, srq_limit_i, srq_db_i, srq_get, srq_get_idx, srq_take, srq_next, e_ready[2]
    };
  end

  rnic_responder #(.DataW(DataW), .QpIdxW(QpIdxW), .MaxRqStride(MaxRqStride), .PtrW(PtrW), .HasSrq(NumSrq > 0), .RqLines(RqLines)) u_responder (
      .clk_i, .rst_i, .enable_i, .drain_i(drain_req_i), .idle_o(resp_idle),
      .packet_idle_o(packet_idle), .pay_busy_o(pay_busy), .pay_end_o(pay_end), .diag_valid_i, .diag_i, .diag_done_o, .diag_data_o, .port_cfg_i,
      .qp_evt_valid_i, .qp_evt_i, .rq_kick_idx_i, .hot_idx_o(hot_idx_o[0]), .hot_i(hot_i[0]),
      .cold_req_valid_o(cold_req_valid_o[0]), .cold_req_ready_i(cold_req_ready_i[0]), .cold_req_idx_o(cold_req_idx_o[0]),
      .cold_rsp_valid_i(cold_rsp_valid_i[0]), .cold_rsp_i,
      .rq_kick_valid_i, .rq_prod_idx_o, .rq_prod_i, .rq_cons_we_o, .rq_cons_o,
      .srq_get_o(srq_get), .srq_idx_o(srq_get_idx), .srq_i(srq_head), .srq_take_o(srq_take), .srq_next_o(srq_next),
      .rx_desc_valid_i, .rx_desc_ready_o, .rx_desc_i, .rx_pay_valid_i, .rx_pay_ready_o, .rx_pay_data_i, .rx_pay_last_i,
      .rd_push_o(rd_push), .rd_idx_o(rd_idx), .rd_push_ptr_o(rd_push_ptr), .rd_push_dup_o(rd_push_dup), .rd_push_atomic_o(rd_push_atomic),
      .rd_push_psn_o(rd_push_psn), .rd_push_va_o(rd_push_va), .rd_push_rkey_o(rd_push_rkey), .rd_push_len_o(rd_push_len), .rd_push_msn_o(rd_push_msn),
      .rd_epoch_i(rd_epoch), .rd_halted_i(rd_halted), .rd_pop_i(rd_pop), .rd_new_done_i(rd_new_done),
      .rd_empty_valid_i(rd_empty_valid), .rd_empty_idx_i(rd_empty_idx), .rd_empty_hold_o(rd_empty_hold),
      .rd_look_o(rd_look), .rd_head_ready_o(rd_head_ready), .rd_head_idx_i(rd_head_idx), .rd_head_epoch_o(rd_head_epoch), .rd_head_push_o(rd_head_push),
      .job_valid_o(job_valid[0]), .job_ready_i(job_ready[0]), .job_o(job[0]),
      .inv_valid_o(mr_inv_valid_o), .inv_o(mr_inv_o), .inv_done_i(mr_inv_done_i), .inv_err_i(mr_inv_err_i), .inv_mark_o(own_mark), .inv_busy_i(own_busy),
      .mr_req_valid_o(mr_req_valid_o[0]), .mr_req_ready_i(mr_req_ready_i[0]), .mr_req_o(mr_req_o[0]), .mr_rsp_valid_i(mr_rsp_valid_i[0]), .mr_rsp_i,
      .rd_req_valid_o, .rd_req_ready_i, .rd_req_o, .rd_rsp_valid_i, .rd_rsp_ready_o, .rd_rsp_data_i, .rd_rsp_ctl_i,
      .wr_valid_o, .wr_ready_i, .wr_hdr_o, .wr_data_o, .wr_last_o,
      .cqe_valid_o, .cqe_ready_i, .cqe_o, .cq_idle_i,
      .eqe_valid_o(e_valid[0]), .eqe_ready_i(e_ready[0]), .eqe_o(e[0]),
      .qp_err_valid_o(err_valid[0]), .qp_err_ready_i(err_ready[0]), .qp_err_o(err[0]), .cnt_o(cnt_resp)
  );

  rnic_read_engine #(.QpIdxW(QpIdxW), .PtrW(PtrW)) u_read_engine (
      .clk_i, .rst_i, .enable_i, .drain_i(drain_req_i), .idle_o(read_idle),
      .hot_idx_o(hot_idx_o[1]), .hot_i(hot_i[1]),
      .cold_req_valid_o(cold_req_valid_o[1]), .cold_req_ready_i(cold_req_ready_i[1]), .cold_req_idx_o(cold_req_idx_o[1]),
      .cold_rsp_valid_i(cold_rsp_valid_i[1]), .cold_rsp_i,
      .push_i(rd_push), .push_idx_i(rd_idx), .push_ptr_i(rd_push_ptr), .push_dup_i(rd_push_dup), .push_atomic_i(rd_push_atomic),
      .push_psn_i(rd_push_psn), .push_va_i(rd_push_va), .push_rkey_i(rd_push_rkey), .push_len_i(rd_push_len), .push_msn_i(rd_push_msn),
      .head_ready_i(rd_head_ready), .head_idx_o(rd_head_idx), .head_epoch_i(rd_head_epoch), .head_push_i(rd_head_push),
      .look_idx_i(rd_idx), .look_read_i(rd_look), .look_epoch_o(rd_epoch), .look_halted_o(rd_halted), .look_pop_o(rd_pop), .look_new_done_o(rd_new_done),
      .empty_valid_o(rd_empty_valid), .empty_idx_o(rd_empty_idx), .empty_hold_i(rd_empty_hold),
      .job_valid_o(job_valid[1]), .job_ready_i(job_ready[1]), .job_o(job[1]),
      .piece_valid_o(tx_piece_valid_o), .piece_ready_i(tx_piece_ready_i), .piece_o(tx_piece_o),
      .tx_err_valid_i(tx_err_valid), .tx_err_ready_o(tx_err_ready), .tx_err_i(tx_err),
      .mr_req_valid_o(mr_req_valid_o[1]), .mr_req_ready_i(mr_req_ready_i[1]), .mr_req_o(mr_req_o[1]), .mr_rsp_valid_i(mr_rsp_valid_i[1]), .mr_rsp_i,
      .eqe_valid_o(e_valid[1]), .eqe_ready_i(e_ready[1]), .eqe_o(e[1]),
      .qp_err_valid_o(err_valid[1]), .qp_err_ready_i(err_ready[1]), .qp_err_o(err[1])
  );
  assign tx_piece_data_o = '0;   // no piece is inline

  rnic_resp_tx #(.Credit(Credit), .QpIdxW(QpIdxW)) u_tx (
      .clk_i, .rst_i, .busy_o(tx_busy), .under_way_o(tx_count), .key_i(mr_inv_o.key), .keyed_o(tx_keyed), .job_valid_i(job_valid), .job_ready_o(job_ready), .job_i(job),
      .tx_job_valid_o, .tx_job_ready_i, .tx_job_o, .tx_done_i, .tx_err_valid_i, .tx_err_i,
      .err_valid_o(tx_err_valid), .err_ready_i(tx_err_ready), .err_o(tx_err)
  );

  // Of a SEND with invalidate all writes lie before its completion anyway; what is left are READs through its key.
  rnic_resp_barrier #(.CntW($bits(tx_count))) u_own_barrier (
      .clk_i, .rst_i, .mark_i(own_mark), .busy_o(own_busy), .packet_idle_i(1'b1), .pay_busy_i(1'b0), .pay_end_i(1'b0),
      .read_idle_i(read_idle), .tx_count_i(tx_keyed), .tx_done_i
  );
  logic wait_packet_idle, wait_pay_busy, wait_read_idle;
  logic [$bits(tx_count)-1:0] wait_frames;
`ifdef RNIC_CUT_LOCAL_INV_PLACED
  assign {wait_packet_idle, wait_pay_busy} = 2'b10;
`else
  assign {wait_packet_idle, wait_pay_busy} = {packet_idle, pay_busy};
`endif
`ifdef RNIC_CUT_LOCAL_INV_READ
  assign {wait_read_idle, wait_frames} = {1'b1, {$bits(tx_count) {1'b0}}};
`else
  assign {wait_read_idle, wait_frames} = {read_idle, tx_count};
`endif
  rnic_resp_barrier #(.CntW($bits(tx_count))) u_barrier (
      .clk_i, .rst_i, .mark_i(inv_mark_i), .busy_o(inv_busy_o), .packet_idle_i(wait_packet_idle), .pay_busy_i(wait_pay_busy), .pay_end_i(pay_end),
      .read_idle_i(wait_read_idle), .tx_count_i(wait_frames), .tx_done_i
  );

  // Events of all, in turn.
  logic [2:0] e_grant;
  logic [1:0] e_pick;
  rnic_arb_rr #(.N(3)) u_events (
      .clk_i, .rst_i, .req_i(e_valid), .advance_i(eqe_valid_o && eqe_ready_i), .lock_i(1'b0), .grant_o(e_grant), .idx_o(e_pick)
  );
  assign eqe_valid_o = |e_grant;
  assign eqe_o       = e[e_pick];
  assign e_ready     = eqe_ready_i ? e_grant : '0;

  // One request for ERR a cycle; the second of two waits.
  assign qp_err_valid_o = |err_valid;
  assign qp_err_o       = err_valid[0] ? err[0] : err[1];
  assign err_ready      = {!err_valid[0], 1'b1};

  // Both have come to rest after the request was seen, and every frame is out.
  logic drained_q;
  assign drain_ack_o = drain_req_i && drained_q;
`ifdef RNIC_CUT_RECV_DRAIN
  always_ff @(posedge clk_i) drained_q <= !rst_i && drain_req_i;
`else
  always_ff @(posedge clk_i) drained_q <= !rst_i && drain_req_i && resp_idle && read_idle && !tx_busy && !srq_busy;
`endif
endmodule
