// SPDX-License-Identifier: Apache-2.0
// Requester: doorbell, scheduler, WQE fetch, segmenter, in-flight pool, ACK and READ response handling, timers.
// The only writer of the requester sections.
// rnic_send_ctl owns the sections and visits one QP at a time; in a visit the units rnic_send_resp, rnic_send_retire and rnic_send_pkt
// work on the section in turn and share WQE cache, list walker and record pool. Jobs (rnic_send_jobs) and received data
// (rnic_send_place) stream beside that.
module rnic_send
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
  import rnic_send_pkg::*;
#(
    parameter int unsigned DataW = 64,
    parameter int unsigned QpIdxW = 10,
    parameter int unsigned ClkPeriodPs = 8000,
    parameter int unsigned MaxSqStride = 4,
    parameter int unsigned PoolDepth = 1024,
    parameter int unsigned InflightCap = 32,
    parameter int unsigned WqeLines = 32
) (
    input  logic clk_i,
    input  logic rst_i,
    input  logic enable_i,
    input  port_cfg_t port_cfg_i,
    // control section
    // verilator lint_off UNUSEDSIGNAL
    // (shared receive queues are not its business)
    input  logic qp_evt_valid_i, input qp_evt_t qp_evt_i,
    // verilator lint_on UNUSEDSIGNAL
    output qp_idx_t hot_idx_o, input qp_hot_t hot_i,                // answer one cycle later
    output logic cold_req_valid_o, input logic cold_req_ready_i, output qp_idx_t cold_req_idx_o, input logic cold_rsp_valid_i, input qp_ctx_t cold_rsp_i,
    // queue indices
    input  logic sq_kick_valid_i, input qp_idx_t sq_kick_idx_i,
    output qp_idx_t sq_prod_idx_o, input ring_pos_t sq_prod_i,       // answer one cycle later
    output logic sq_cons_we_o, output ring_pos_wr_t sq_cons_o,
    // responses from the wire
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
    // memory keys
    output logic [1:0] mr_req_valid_o, input logic [1:0] mr_req_ready_i, output mr_req_t [1:0] mr_req_o, input logic [1:0] mr_rsp_valid_i, input mr_rsp_t mr_rsp_i,
    output logic mr_op_valid_o, output mr_op_t mr_op_o, input logic mr_op_done_i, input mr_err_e mr_op_err_i,
    // barrier of the responder for invalidated keys (rnic_resp_barrier)
    output logic inv_mark_o, input logic inv_busy_i,
    // completions, events, errors
    output logic cqe_valid_o, input logic cqe_ready_i, output cqe_req_t cqe_o,
    output logic eqe_valid_o, input logic eqe_ready_i, output eqe_req_t eqe_o,
    output logic qp_err_valid_o, output qp_err_t qp_err_o,
    output logic sq_drained_valid_o, output qp_idx_t sq_drained_idx_o, output epoch_t sq_drained_epoch_o,
    // barrier: ack rises when nothing that began before the request is under way any more, and falls with it
    input  logic drain_req_i, output logic drain_ack_o,
    // a look at a queue pair (rnic_send_ctl)
    input  logic diag_valid_i, input diag_select_t diag_i, output logic diag_done_o, output logic [63:0] diag_data_o,
    output cnt_t cnt_o
);
  localparam int unsigned InlineB = (DataW / 8 < 32) ? DataW / 8 : 32;
  localparam int unsigned WqeW = (InflightCap > 2) ? $clog2(InflightCap) : 1;

  visit_t visit;
  logic hot_ok, idle, timed_out;

  // ---------------------------------------------------------------- units at work on the visit
  logic resp_start, resp_busy, resp_done, resp_stall, resp_kill, resp_rec_rd, resp_push, resp_discard, resp_notify, resp_value;
  resp_upd_t resp_upd;
  retire_upd_t retire_upd;
  pkt_upd_t pkt_upd;
  look_req_t resp_look, pkt_look, diag_look, look;
  fetch_req_t resp_fetch, pkt_fetch, fetch;
  look_res_t look_res;
  line_rd_t resp_line, pkt_line, walk_line, line_rd;
  walk_req_t resp_walk, pkt_walk, walk;
  walk_res_t walk_res;
  rec_idx_t resp_rec_idx, retire_rec_idx, pkt_rec_idx, rec_next, rec_new, retire_free_tail;
  wqe_idx_t resp_wqe;
  rec_t rec, rec_append_rec;
  cnt_t resp_cnt;
  rec_t rec_put;
  inv_num_t inv_new, inv_num;
  logic rec_here, rec_past;
  psn_t rec_at;
  logic [31:0] rec_off;
  logic inv_open;
  logic local_start, local_done;
  logic [255:0] local_half;
  line_idx_t local_line;
  line_rd_t local_rd;
  wc_status_e local_status;
  logic [7:0] local_vendor;
  logic retire_start, retire_done, retire_again, retire_rec_rd, retire_free, retire_failed, retire_drained;
  logic [7:0] retire_free_count;
  logic pkt_start, pkt_more, pkt_done, pkt_again, pkt_failed, pkt_rec_rd, rec_avail, rec_append, job_push, job_drop, resent;
  tx_job_t job;
  logic [DataW-1:0] line_data;
  logic cqe_in_valid, cqe_in_ready;
  cqe_req_t cqe_in;
  logic jobs_room, jobs_busy_qp, jobs_busy_wqe, jobs_idle, place_room, place_busy_qp, place_busy_wqe, place_idle;
  logic in_resp_q;   // the walker works for the response side

  rnic_send_resp #(.DataW(DataW), .QpIdxW(QpIdxW)) u_resp (
      .clk_i, .rst_i, .start_i(resp_start), .visit_i(visit), .desc_i(rx_desc_i), .port_cfg_i, .busy_o(resp_busy), .done_o(resp_done), .stall_o(resp_stall),
      .upd_o(resp_upd), .look_o(resp_look), .look_i(look_res), .fetch_o(resp_fetch), .kill_o(resp_kill),
      .rd_o(resp_line), .rd_data_i(line_data), .walk_o(resp_walk), .walk_i(walk_res), .rec_rd_o(resp_rec_rd), .rec_idx_o(resp_rec_idx), .rec_i(rec),
      .rec_at_i(rec_at), .rec_off_i(rec_off), .rec_next_i(rec_next), .rec_here_i(rec_here),
      .push_o(resp_push), .push_discard_o(resp_discard), .push_notify_o(resp_notify), .push_value_o(resp_value), .push_wqe_o(resp_wqe), .cnt_o(resp_cnt)
  );
  rnic_send_retire #(.QpIdxW(QpIdxW)) u_retire (
      .clk_i, .rst_i, .start_i(retire_start), .visit_i(visit), .done_o(retire_done), .again_o(retire_again), .upd_o(retire_upd),
`ifdef RNIC_CUT_PLACE_BUSY
      .jobs_busy_qp_i(jobs_busy_qp), .jobs_busy_wqe_i(jobs_busy_wqe), .place_busy_qp_i(1'b0), .place_busy_wqe_i(1'b0),
`elsif RNIC_CUT_JOB_BUSY
      .jobs_busy_qp_i(1'b0), .jobs_busy_wqe_i(1'b0), .place_busy_qp_i(place_busy_qp), .place_busy_wqe_i(place_busy_wqe),
`else
      .jobs_busy_qp_i(jobs_busy_qp), .jobs_busy_wqe_i(jobs_busy_wqe), .place_busy_qp_i(place_busy_qp), .place_busy_wqe_i(place_busy_wqe),
`endif
      .inv_num_o(inv_num), .inv_open_i(inv_open),
      .rec_rd_o(retire_rec_rd), .rec_idx_o(retire_rec_idx), .rec_i(rec), .rec_past_i(rec_past), .rec_next_i(rec_next), .rec_here_i(rec_here), .rec_free_o(retire_free),
      .rec_free_tail_o(retire_free_tail), .rec_free_count_o(retire_free_count), .cqe_valid_o(cqe_in_valid), .cqe_ready_i(cqe_in_ready), .cqe_o(cqe_in),
      .cons_we_o(sq_cons_we_o), .cons_o(sq_cons_o), .failed_o(retire_failed), .drained_o(retire_drained)
  );
  rnic_send_pkt #(.DataW(DataW), .InflightCap(InflightCap)) u_pkt (
      .clk_i, .rst_i, .start_i(pkt_start), .visit_i(visit), .hot_ok_i(hot_ok), .more_i(pkt_more), .room_i(jobs_room), .done_o(pkt_done), .again_o(pkt_again), .failed_o(pkt_failed),
      .upd_o(pkt_upd), .look_o(pkt_look), .look_i(look_res), .fetch_o(pkt_fetch), .rd_o(pkt_line), .rd_data_i(line_data),
      .walk_o(pkt_walk), .walk_i(walk_res),
      .rec_rd_o(pkt_rec_rd), .rec_idx_o(pkt_rec_idx), .rec_i(rec), .rec_past_i(rec_past), .rec_off_i(rec_off), .rec_next_i(rec_next), .rec_here_i(rec_here), .rec_avail_i(rec_avail),
      .rec_new_i(rec_new), .rec_append_o(rec_append), .rec_o(rec_append_rec), .push_o(job_push), .drop_o(job_drop), .job_o(job), .resent_o(resent),
      .local_start_o(local_start), .local_half_o(local_half), .local_line_o(local_line), .local_done_i(local_done), .local_status_i(local_status), .local_vendor_i(local_vendor)
  );
  rnic_send_local #(.DataW(DataW)) u_local (
      .clk_i, .rst_i, .start_i(local_start), .line_i(local_line), .half_i(local_half), .pd_i(visit.ctx.create.pd),
      .qpn_i(make_qpn(visit.ctx.hot.gen, visit.idx, QpIdxW)), .rd_o(local_rd), .rd_data_i(line_data),
      .op_valid_o(mr_op_valid_o), .op_o(mr_op_o), .op_done_i(mr_op_done_i), .op_err_i(mr_op_err_i),
      .done_o(local_done), .status_o(local_status), .vendor_o(local_vendor)
  );
  rnic_send_inv u_inv (
      .clk_i, .rst_i, .op_i(mr_op_done_i && mr_op_err_i == MR_ERR_OK && mr_op_o.op == MR_OP_INV), .num_o(inv_new), .num_i(inv_num), .open_o(inv_open),
      .mark_o(inv_mark_o), .busy_i(inv_busy_i)
  );
  always_comb begin
    rec_put = rec_append_rec;
    if (rec_append_rec.kind == KIND_LOCAL) rec_put.len[8+:$bits(inv_num_t)] = inv_new;
  end
  assign sq_drained_valid_o = retire_drained;
  assign sq_drained_idx_o   = visit.idx;
  assign sq_drained_epoch_o = visit.sec.epoch;

  // ---------------------------------------------------------------- owner
  logic notify_valid, notify_ready, ready_valid, ready_pop, resp_here, job_err, job_err_pop, list_free;
  qp_idx_t notify_idx, ready_idx, job_err_idx;
  epoch_t job_err_epoch;
  wqe_idx_t job_err_wqe;
  dma_err_e job_err_code;
  rnic_send_ctl #(.QpIdxW(QpIdxW), .ClkPeriodPs(ClkPeriodPs), .InflightCap(InflightCap), .PoolDepth(PoolDepth), .SecBeats((DataW >= 256) ? 1 : 2)) u_ctl (
      .clk_i, .rst_i, .enable_i, .qp_evt_valid_i, .qp_evt_idx_i(qp_evt_i.idx), .sq_kick_valid_i, .sq_kick_idx_i,
      .notify_valid_i(notify_valid), .notify_ready_o(notify_ready), .notify_idx_i(notify_idx),
      .ready_valid_i(ready_valid), .ready_idx_i(ready_idx), .ready_pop_o(ready_pop),
      .err_valid_i(job_err), .err_pop_o(job_err_pop), .err_idx_i(job_err_idx), .err_epoch_i(job_err_epoch), .err_wqe_i(job_err_wqe), .err_code_i(job_err_code),
      .desc_valid_i(rx_desc_valid_i), .desc_ready_o(rx_desc_ready_o), .desc_qpn_i(rx_desc_i.dest_qpn), .desc_rnr_i(rx_desc_i.syndrome[4:0]),
      .place_room_i(place_room), .jobs_room_i(jobs_room), .jobs_busy_qp_i(jobs_busy_qp), .place_busy_qp_i(place_busy_qp),
      .diag_valid_i, .diag_i, .diag_done_o, .diag_data_o, .diag_look_o(diag_look), .diag_look_i(look_res),
      .hot_idx_o, .hot_i, .sq_prod_i, .cold_req_valid_o, .cold_req_ready_i, .cold_rsp_valid_i, .cold_rsp_i,
      .visit_o(visit), .hot_ok_o(hot_ok),
      .resp_start_o(resp_start), .resp_done_i(resp_done), .resp_stall_i(resp_stall), .resp_fetch_i(resp_fetch.valid), .resp_here_i(resp_here),
      .resp_upd_i(resp_upd),
      .retire_start_o(retire_start), .retire_done_i(retire_done), .retire_again_i(retire_again), .retire_failed_i(retire_failed),
      .retire_upd_i(retire_upd),
      .pkt_start_o(pkt_start), .pkt_more_o(pkt_more), .pkt_done_i(pkt_done), .pkt_again_i(pkt_again), .pkt_failed_i(pkt_failed), .pkt_upd_i(pkt_upd),
      .list_free_o(list_free), .qp_err_valid_o, .qp_err_o, .stop_i(drain_req_i), .idle_o(idle), .timeout_o(timed_out)
  );
  assign cold_req_idx_o = hot_idx_o;
  assign sq_prod_idx_o  = hot_idx_o;

  // ---------------------------------------------------------------- what the units share; only one of them works at a time
  always_comb begin
    // (Both a look and an idle packet unit name the next packet's WQE.)
    look       = resp_look.valid ? resp_look : pkt_look;
    look.valid = resp_look.valid || pkt_look.valid || diag_look.valid;
    look.want  = resp_look.valid ? resp_look.want : pkt_look.want && !diag_look.valid;
    fetch      = resp_fetch.valid ? resp_fetch : pkt_fetch;
    walk       = resp_walk.start ? resp_walk : pkt_walk;
    line_rd    = walk_line.valid ? walk_line : local_rd.valid ? local_rd : resp_line.valid ? resp_line : pkt_line;
  end
  always_ff @(posedge clk_i) if (walk.start) in_resp_q <= resp_walk.start;
  always_ff @(posedge clk_i) begin
    if (!rst_i && diag_look.valid) a_same_wqe : assert (look == diag_look && !resp_look.valid && !pkt_look.valid);
  end

  logic fetch_busy;
  rnic_wqe_cache #(.DataW(DataW), .QpIdxW(QpIdxW), .MaxSqStride(MaxSqStride), .SendLines(WqeLines)) u_cache (
      .clk_i, .rst_i, .look_i(look), .look_o(look_res), .fetch_i(fetch), .kill_i(resp_kill),
      .visit_idx_i(visit.idx), .visit_epoch_i(visit.sec.epoch), .visit_ctx_i(visit.ctx),
      .ready_valid_o(ready_valid), .ready_idx_o(ready_idx), .ready_pop_i(ready_pop), .resp_here_o(resp_here),
      .rd_i(line_rd), .rd_data_o(line_data), .busy_o(fetch_busy),
      .rd_req_valid_o, .rd_req_ready_i, .rd_req_o, .rd_rsp_valid_i, .rd_rsp_ready_o, .rd_rsp_data_i, .rd_rsp_ctl_i
  );

  logic mr_valid, piece_valid, piece_last;
  mr_req_t mr_req;
  tx_piece_t piece;
  logic [8*InlineB-1:0] piece_data;
  rnic_sge_walk #(.DataW(DataW)) u_walk (
      .clk_i, .rst_i, .req_i(walk), .pd_i(visit.ctx.create.pd), .res_o(walk_res), .rd_o(walk_line), .rd_data_i(line_data), .mr_req_valid_o(mr_valid), .mr_req_ready_i(mr_req_ready_i[0]),
      .mr_req_o(mr_req), .mr_rsp_valid_i(mr_rsp_valid_i[0]), .mr_rsp_i, .piece_valid_o(piece_valid), .piece_o(piece), .piece_data_o(piece_data), .piece_last_o(piece_last)
  );
  // One walker serves both directions, so the second look-up port stays free.
  assign mr_req_valid_o = {1'b0, mr_valid};
  assign mr_req_o       = {mr_req_t'('0), mr_req};
  logic unused_mr;
  assign unused_mr = ^{mr_req_ready_i[1], mr_rsp_valid_i[1]};

  logic [12:0] free_cnt;
  rnic_inflight #(.Depth(PoolDepth), .Parts((DataW >= 256) ? 1 : 3)) u_inflight (
      .clk_i, .rst_i, .avail_o(rec_avail), .new_idx_o(rec_new), .append_i(rec_append), .append_rec_i(rec_put),
      .append_link_i(visit.sec.count != '0), .append_tail_i(visit.sec.tail),
      .free_i(retire_free || list_free), .free_head_i(visit.sec.head), .free_tail_i(list_free ? visit.sec.tail : retire_free_tail),
      .free_count_i(list_free ? visit.sec.count : retire_free_count),
      .rd_en_i(resp_rec_rd || retire_rec_rd || pkt_rec_rd), .rd_idx_i(resp_rec_rd ? resp_rec_idx : retire_rec_rd ? retire_rec_idx : pkt_rec_idx),
      .rd_here_o(rec_here), .rd_rec_o(rec), .rd_next_o(rec_next), .free_cnt_o(free_cnt)
  );
  // Where una, or the response at hand, stands in the record that is read. Distances stay below 2^23 (see MaxSmallPsn).
  // verilator lint_off UNUSEDSIGNAL
  psn_t past;                   // (its sign tells)
  logic past_carry;
  // verilator lint_on UNUSEDSIGNAL
  assign rec_at   = (resp_busy ? rx_desc_i.psn : visit.sec.una_psn) - rec.first;
  assign rec_off  = {25'(rec_at) << visit.ctx.hot.mtu, 7'd0};
  // One less than the distance from its last PSN to una; a local operation has none, and only lets what is before it end.
  assign {past, past_carry} = {visit.sec.una_psn, 1'b1} + {~rec.last, rec.kind == KIND_LOCAL};
  assign rec_past = !past[23];
  logic unused_free;
  assign unused_free = ^free_cnt;   // for benches

  // ---------------------------------------------------------------- streams beside the visits
  rnic_send_jobs #(.DataW(DataW), .QpIdxW(QpIdxW), .WqeW(WqeW)) u_jobs (
      .clk_i, .rst_i, .room_o(jobs_room), .piece_valid_i(piece_valid && !in_resp_q), .piece_i(piece), .piece_data_i(piece_data), .piece_last_i(piece_last),
      .push_i(job_push), .drop_i(job_drop), .job_i(job), .job_epoch_i(visit.sec.epoch), .job_wqe_i(visit.sec.snd_wqe),
      .tx_job_valid_o, .tx_job_ready_i, .tx_job_o, .tx_piece_valid_o, .tx_piece_ready_i, .tx_piece_o, .tx_piece_data_o,
      .tx_done_i, .tx_err_valid_i, .tx_err_i, .err_valid_o(job_err), .err_pop_i(job_err_pop), .err_idx_o(job_err_idx), .err_epoch_o(job_err_epoch),
      .err_wqe_o(job_err_wqe), .err_code_o(job_err_code), .query_idx_i(visit.idx), .query_wqe_i(visit.sec.cons),
      .busy_qp_o(jobs_busy_qp), .busy_wqe_o(jobs_busy_wqe), .idle_o(jobs_idle)
  );
  rnic_send_place #(.DataW(DataW), .QpIdxW(QpIdxW), .WqeW(WqeW)) u_place (
      .clk_i, .rst_i, .room_o(place_room), .piece_valid_i(piece_valid && in_resp_q), .piece_addr_i(piece.addr), .piece_len_i(piece.len), .piece_last_i(piece_last),
      .push_i(resp_push), .push_discard_i(resp_discard), .push_notify_i(resp_notify), .push_value_i(resp_value), .value_i(rx_desc_i.swap_add), .push_idx_i(visit.idx), .push_wqe_i(resp_wqe),
      .query_idx_i(visit.idx), .query_wqe_i(visit.sec.cons), .busy_qp_o(place_busy_qp), .busy_wqe_o(place_busy_wqe), .idle_o(place_idle),
      .notify_valid_o(notify_valid), .notify_ready_i(notify_ready), .notify_idx_o(notify_idx),
      .pay_valid_i(rx_pay_valid_i), .pay_ready_o(rx_pay_ready_o), .pay_data_i(rx_pay_data_i), .pay_last_i(rx_pay_last_i),
      .wr_valid_o, .wr_ready_i, .wr_hdr_o, .wr_data_o, .wr_last_o
  );

  if (DataW >= 256) begin : g_cqes
    // verilator lint_off UNUSEDSIGNAL
    logic [2:0] level;
    // verilator lint_on UNUSEDSIGNAL
    rnic_fifo #(.Width($bits(cqe_req_t)), .Depth(4)) u_cqe (
        .clk_i, .rst_i, .in_valid_i(cqe_in_valid), .in_ready_o(cqe_in_ready), .in_data_i(cqe_in),
        .out_valid_o(cqe_valid_o), .out_ready_i(cqe_ready_i), .out_data_o(cqe_o), .level_o(level)
    );
  end else begin : g_cqe
    logic full_q;
    cqe_req_t cqe_q;
    assign cqe_in_ready = !full_q;
    assign cqe_valid_o  = full_q;
    assign cqe_o        = cqe_q;
    always_ff @(posedge clk_i) begin
      if (cqe_in_valid) cqe_q <= cqe_in;
      full_q <= !rst_i && (cqe_in_valid || (full_q && !cqe_ready_i));
    end
  end

  // No events come from the requester: its errors stand in completions.
  assign eqe_valid_o = 1'b0;
  assign eqe_o       = '0;
  logic unused_misc;
  assign unused_misc = ^{eqe_ready_i, qp_evt_i.epoch, qp_evt_i.state, qp_evt_i.new_life};

  // ---------------------------------------------------------------- barrier, counters
  logic ack_q;
  assign drain_ack_o = ack_q && drain_req_i;
  always_ff @(posedge clk_i) begin
    if (rst_i) ack_q <= 1'b0;
`ifdef RNIC_CUT_SEND_DRAIN
    else ack_q <= drain_req_i && idle;
`else
    else ack_q <= drain_req_i && idle && jobs_idle && place_idle && !fetch_busy && !cqe_valid_o;
`endif
  end
  always_comb begin
    cnt_o = resp_cnt;
    cnt_o[COUNTER_ID_RETRANSMISSIONS] = resent;
    cnt_o[COUNTER_ID_TIMEOUTS]        = timed_out;
  end
endmodule
