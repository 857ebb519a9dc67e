// SPDX-License-Identifier: Apache-2.0
// RC responder: takes request packets one at a time from check to acknowledge, flushes receive queues of QPs in ERR, takes WQEs from
// shared receive queues, and is the only writer of the responder sections.
// Contract: each packet's payload beats are all taken. For each packet in this order: all of it judged, section committed (the context
// must still be of the same life and serve) and consumer index published; payload accepted by the write client; CQE, events, ACK or NAK
// handed over. While a payload is on its way the next packet is judged, and a QP that stays the same is not read again; a READ is
// handed on only when every payload before it was accepted. A response that must not overtake READ responses of its QP waits in the section
// until rd_empty_* tells that they are all handed over. One receive WQE is flushed per visit; packets and visits take
// turns. While drain_i is high nothing new begins; idle_o: nothing is under way. A QP that waits for the host or a
// key lookup holds up the packets behind it, for at most the completion time-out of a WQE read; so does a SEND with invalidate, until
// the READ responses that were judged with its key are read from the host (writes are in order anyway). That waits for nothing of this module.
// A shared receive queue: the first packet of a SEND and a WRITE with immediate take the WQE at its head when they are committed. One that
// cannot be read stays (its link is unknown): the QP fails with QP_FATAL. In ERR a WQE that was taken is flushed, then LAST_WQE_REACHED
// tells that no further completion comes. A QP that leaves for RESET or is destroyed flushes it, too, before the barrier is answered: its slot
// would be lost otherwise; whoever polls removes that completion with the others of the old life.
// A look (diag_*) reads what a visit reads, changes nothing and counts as rest.
module rnic_responder
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned DataW = 64,
    parameter int unsigned QpIdxW = 10,
    parameter int unsigned MaxRqStride = 4,
    parameter int unsigned PtrW = 4                // log2 of READ slots per QP
) (
    input  logic         clk_i,
    input  logic         rst_i,
    input  logic         enable_i,
    input  logic         drain_i,
    output logic         idle_o,
    // for rnic_resp_barrier: no packet is at hand; a payload is on its way, and ends
    output logic         packet_idle_o,
    output logic         pay_busy_o,
    output logic         pay_end_o,
    // a look at a QP: valid until done, which comes with the word
    input  logic         diag_valid_i,
    // verilator lint_off UNUSEDSIGNAL
    input  diag_select_t diag_i,
    // verilator lint_on UNUSEDSIGNAL
    output logic         diag_done_o,
    output logic [63:0]  diag_data_o,
    input  port_cfg_t    port_cfg_i,
    // control section
    input  logic         qp_evt_valid_i,
    // verilator lint_off UNUSEDSIGNAL
    // (a new life needs no action: the section's epoch tells; indices are as wide as the largest table needs)
    input  qp_evt_t      qp_evt_i,
    input  qp_idx_t      rq_kick_idx_i,
    // verilator lint_on UNUSEDSIGNAL
    output qp_idx_t      hot_idx_o,
    // verilator lint_off UNUSEDSIGNAL
    input  qp_hot_t      hot_i,
    // verilator lint_on UNUSEDSIGNAL
    output logic         cold_req_valid_o,
    input  logic         cold_req_ready_i,
    output qp_idx_t      cold_req_idx_o,
    input  logic         cold_rsp_valid_i,
    input  qp_ctx_t      cold_rsp_i,
    // receive queue
    input  logic         rq_kick_valid_i,
    output qp_idx_t      rq_prod_idx_o,
    input  ring_pos_t    rq_prod_i,
    output logic         rq_cons_we_o,
    output ring_pos_wr_t rq_cons_o,
    // shared receive queues (rnic_srq)
    output logic         srq_get_o,
    output logic [15:0]  srq_idx_o,
    input  srq_head_t    srq_i,
    output logic         srq_take_o,
    output wqe_idx_t     srq_next_o,
    // requests
    input  logic         rx_desc_valid_i,
    output logic         rx_desc_ready_o,
    input  rx_desc_t     rx_desc_i,
    input  logic         rx_pay_valid_i,
    output logic         rx_pay_ready_o,
    input  logic [DataW-1:0] rx_pay_data_i,
    input  logic         rx_pay_last_i,
    // READ engine: new slot; where it stands (answer one cycle after rd_idx_o); no READ of a QP is left
    output logic         rd_push_o,
    output qp_idx_t      rd_idx_o,
    output epoch_t       rd_push_epoch_o,
    output logic [PtrW:0] rd_push_ptr_o,           // count of pushes, this one not included
    output logic         rd_push_dup_o,
    output logic         rd_push_atomic_o,         // rd_push_va_o is the result of an atomic
    output psn_t         rd_push_psn_o,
    output logic [63:0]  rd_push_va_o,
    output logic [31:0]  rd_push_rkey_o,
    output logic [31:0]  rd_push_len_o,
    output logic [23:0]  rd_push_msn_o,
    input  epoch_t       rd_epoch_i,
    input  logic         rd_halted_i,
    input  logic [PtrW:0] rd_pop_i,                // READs answered
    input  logic [PtrW:0] rd_new_done_i,           // of these, the ones that were no duplicates
    input  logic         rd_empty_valid_i,
    input  logic [QpIdxW-1:0] rd_empty_idx_i,
    // ACK and NAK
    output logic         job_valid_o,
    input  logic         job_ready_i,
    output tx_job_t      job_o,
    // invalidation of a key (rnic_mr): held until done
    output logic         inv_valid_o,
    output mr_inv_t      inv_o,
    input  logic         inv_done_i,
    input  mr_err_e      inv_err_i,
    output logic         inv_mark_o,               // barrier of what reads through that key
    input  logic         inv_busy_i,
    // services
    output logic         mr_req_valid_o,
    input  logic         mr_req_ready_i,
    output mr_req_t      mr_req_o,
    input  logic         mr_rsp_valid_i,
    input  mr_rsp_t      mr_rsp_i,
    output logic         rd_req_valid_o,
    input  logic         rd_req_ready_i,
    output dma_rd_req_t  rd_req_o,
    input  logic         rd_rsp_valid_i,
    output logic         rd_rsp_ready_o,
    input  logic [DataW-1:0] rd_rsp_data_i,
    input  dma_rd_ctl_t  rd_rsp_ctl_i,
    output logic         wr_valid_o,
    input  logic         wr_ready_i,
    output dma_wr_hdr_t  wr_hdr_o,
    output logic [DataW-1:0] wr_data_o,
    output logic         wr_last_o,
    output logic         cqe_valid_o,
    input  logic         cqe_ready_i,
    output cqe_req_t     cqe_o,
    input  logic         cq_idle_i,                // what was taken is written
    output logic         eqe_valid_o,
    input  logic         eqe_ready_i,
    output eqe_req_t     eqe_o,
    output logic         qp_err_valid_o,           // one cycle, held until granted
    input  logic         qp_err_ready_i,
    output qp_err_t      qp_err_o,
    output cnt_t         cnt_o
);
  typedef struct packed {
    epoch_t      epoch;
    logic        halted;       // an error was found: nothing more until the next life
    logic        comm_est;     // the event was raised
    logic        last_told;    // LAST_WQE_REACHED was raised
    logic        nak_sent;     // sequence or RNR NAK sent, the packet it names has not come yet
    psn_t        epsn;
    logic [23:0] msn;
    logic        in_send;      // message in progress
    logic        in_write;
    wqe_idx_t    head;         // receive WQE in use or to be used next; of a shared receive queue: slot of the one in use
    logic [4:0]  sge;          // place in it
    logic [31:0] sge_off;
    logic [31:0] done;         // bytes of the message so far
    logic [63:0] va;           // WRITE: next address
    logic [31:0] rkey;
    logic [31:0] dma_len;
    logic        def_valid;    // a response waits for the READ responses before it
    logic [7:0]  def_synd;
    logic [PtrW-1:0] at_next;  // slot of the next atomic's result
    logic        at_full;      // all slots hold results
    logic [PtrW:0] rd_push;    // READs and atomics given to the READ engine
    logic [PtrW:0] rd_new;     // of these, the ones that were no duplicates
  } sec_t;

  typedef enum logic [3:0] {
    StIdle,    // chooses a packet or a visit
    StLoad,    // section, hot word, producer index and READ progress are being read; context is asked for
    StLook,    // they are here; a visit looks whether there is something to do
    StCold,    // waits for the context
    StCheck,   // verdict is being formed
    StPlace,   // payload is placed or thrown away
    StAtomic,  // an atomic is executed, or its result looked up
    StInv,     // the key of a SEND with invalidate is invalidated, once its payload is placed
    StGone,    // READ responses that were judged with the key before are read from the host
    StCommit   // section is written, or all is dropped, once the hand-overs of the one before are done
  } state_e;
  state_e state_q, state_d;
  logic commit, at_commit;      // the section is written; the packet or visit comes to its end
  logic out_idle;              // hand-overs of the packet before are done

  // ---------------------------------------------------------------- work: packets and visits take turns
  logic visit_q;               // what is under way is a visit
  logic left_q;                // of a QP that left a shared receive queue
  logic pick_valid, pick, last_packet_q, begin_packet, begin_visit, begin_left, begin_diag, again, left_valid;
  logic diag_q;                // what is under way is a look
  logic [QpIdxW-1:0] pick_idx, visit_idx, left_idx;
  qp_idx_t idx_q;
  // verilator lint_off UNUSEDSIGNAL
  rx_desc_t d_q;
  qp_ctx_t ctx_q;
  // verilator lint_on UNUSEDSIGNAL
  // Visits that the barrier waits for go first.
  assign begin_left      = state_q == StIdle && left_valid;
  assign begin_diag      = state_q == StIdle && diag_valid_i && !diag_done_o && !begin_left;
  assign begin_visit     = state_q == StIdle && enable_i && !drain_i && pick_valid && !begin_left && !begin_diag && (!rx_desc_valid_i || last_packet_q);
  assign begin_packet    = state_q == StIdle && !drain_i && rx_desc_valid_i && !begin_visit && !begin_left && !begin_diag;
  assign rx_desc_ready_o = begin_packet;
  assign pick            = begin_visit;
  assign visit_idx       = idx_q[QpIdxW-1:0];
  rnic_pend_set #(.IdxW(QpIdxW), .NumSet(4)) u_visits (
      .clk_i, .rst_i,
      .set_valid_i({again, rd_empty_valid_i, rq_kick_valid_i, qp_evt_valid_i && qp_evt_i.state == QP_STATE_ERR}),
      .set_idx_i({visit_idx, rd_empty_idx_i, rq_kick_idx_i[QpIdxW-1:0], qp_evt_i.idx[QpIdxW-1:0]}), .pick_valid_o(pick_valid), .pick_ready_i(pick), .pick_idx_o(pick_idx)
  );
  rnic_pend_set #(.IdxW(QpIdxW), .NumSet(1)) u_left (
      .clk_i, .rst_i,
`ifdef RNIC_CUT_SRQ_LEFT
      .set_valid_i(1'b0),
`else
      .set_valid_i(qp_evt_valid_i && qp_evt_i.left_srq),
`endif
      .set_idx_i(qp_evt_i.idx[QpIdxW-1:0]),
      .pick_valid_o(left_valid), .pick_ready_i(begin_left), .pick_idx_o(left_idx)
  );
  // A QP is in that set once at most: its command waits for the barrier.
  logic [QpIdxW:0] left_cnt_q;
  always_ff @(posedge clk_i) begin
`ifndef RNIC_CUT_SRQ_LEFT
    left_cnt_q <= left_cnt_q + (QpIdxW + 1)'(qp_evt_valid_i && qp_evt_i.left_srq) - (QpIdxW + 1)'(begin_left);
`endif
    if (rst_i) left_cnt_q <= '0;
  end
  logic pay_busy, pay_end;
  assign idle_o = (state_q == StIdle || diag_q) && out_idle && !pay_busy && left_cnt_q == '0;
  assign packet_idle_o = state_q == StIdle;
  assign pay_busy_o    = pay_busy;
  assign pay_end_o     = pay_end;

  // ---------------------------------------------------------------- sections and what belongs to them
  logic sec_we;
  sec_t sec_d, sec_raw, s_now, s_q, s, n;
  rnic_ram #(.Width($bits(sec_t)), .Depth(1 << QpIdxW)) u_sections (
      .clk_i, .we_i(sec_we), .waddr_i(visit_idx), .wdata_i(sec_d),
      .re_i(state_q == StLoad), .raddr_i(visit_idx), .rdata_o(sec_raw)
  );
  logic [PtrW:0] rd_pop, rd_new_done, rd_used, rd_used_new;
  logic rd_same, rd_none, rd_halted;
  wqe_idx_t prod;
  always_comb begin
    s_now = sec_raw;
`ifdef RNIC_CUT_RECV_EPOCH
    if (sec_raw.epoch == '0) begin
`else
    if (sec_raw.epoch != ctx_q.hot.epoch && !left_q) begin
`endif
      s_now       = '0;
      s_now.epoch = ctx_q.hot.epoch;
      s_now.epsn  = ctx_q.path.rq_psn;
    end
  end
  // Taken when the context is here, so that nothing behind it starts at the outputs of a block RAM.
  assign s = s_q;
  assign rd_same     = rd_epoch_i == s.epoch;
  assign rd_pop      = rd_same ? rd_pop_i : '0;
  assign rd_new_done = rd_same ? rd_new_done_i : '0;
  assign rd_halted   = rd_same && rd_halted_i;
  assign rd_used     = s.rd_push - rd_pop;
  assign rd_used_new = s.rd_new - rd_new_done;
  assign rd_none     = rd_used == '0;
  assign prod        = (rq_prod_i.epoch == s.epoch) ? rq_prod_i.val : '0;

  assign hot_idx_o        = idx_q;
  assign rd_idx_o         = idx_q;
  assign rq_prod_idx_o    = idx_q;
  assign cold_req_idx_o   = idx_q;

  // ---------------------------------------------------------------- shared receive queue
  logic use_srq, srq_new, unread;
  wqe_idx_t wqe_now;           // the receive WQE in use, or that would be used
  assign use_srq   = ctx_q.hot.has_srq;
  assign wqe_now   = (use_srq && !s.in_send) ? srq_i.head : s.head;
  assign srq_get_o = cold_rsp_valid_i;
  assign srq_idx_o = cold_rsp_i.create.srq;

  // ---------------------------------------------------------------- verdict
  typedef struct packed {
    logic drop, ignore, gap, dup_ack, dup_read, dup_atomic, nak, rnr, exec, dup;
    logic [23:0] psns;
  } verdict_t;
  verdict_t v, v_q;
  counter_id_e drop_cnt, drop_cnt_q;
  // verilator lint_off UNUSEDSIGNAL
  opcode_info_t info;
  // verilator lint_on UNUSEDSIGNAL
  assign info = opcode_info(d_q.opcode);
  rnic_resp_check #(.QpIdxW(QpIdxW), .CountW(PtrW + 1)) u_check (
      .enable_i, .port_cfg_i, .desc_i(d_q), .ctx_i(ctx_q),
      .halted_i(s.halted || rd_halted), .epsn_i(s.epsn), .in_send_i(s.in_send), .in_write_i(s.in_write),
      .msg_done_i(s.done), .msg_len_i(s.dma_len),
      .reads_i(rd_used_new), .read_full_i(rd_used[PtrW]), .rq_avail_i(use_srq ? srq_i.avail : prod != s.head),
      .drop_o(v.drop), .drop_cnt_o(drop_cnt), .ignore_o(v.ignore), .gap_o(v.gap), .dup_ack_o(v.dup_ack), .dup_read_o(v.dup_read), .dup_atomic_o(v.dup_atomic),
      .nak_o(v.nak), .rnr_o(v.rnr), .exec_o(v.exec), .dup_o(v.dup), .psns_o(v.psns)
  );

  // ---------------------------------------------------------------- placement
  logic starts, ends, place_done, cons_we;
  wc_status_e place_status;
  logic [7:0] place_vendor;
  logic [4:0] place_sge;
  logic [31:0] place_off, key_len;
  logic [63:0] key_addr;
  logic in_atomic, place_rd, place_rsp_ready, place_wr, place_wr_last, at_rd, at_wr;
  dma_rd_req_t place_rd_req, at_rd_req;
  dma_wr_hdr_t place_wr_hdr, at_wr_hdr;
  logic [DataW-1:0] place_wr_data, at_wr_data;
  wqe_idx_t place_next, next_q;
  assign starts = info.first || info.only;
  assign ends   = info.last || info.only;
  assign srq_new = use_srq && ((info.is_send && starts) || (info.is_write && info.has_imm));
  // The first packet of a WRITE and a READ are judged for the whole length, later packets of a WRITE each for its part:
  // the region may have gone meanwhile. No key and no address is looked at for length 0 (C9-88).
  assign key_len = info.is_atomic_req ? 32'd8 : starts ? d_q.dma_len : 32'(d_q.payload_len);
  rnic_resp_place #(.DataW(DataW), .QpIdxW(QpIdxW), .MaxRqStride(MaxRqStride)) u_place (
      .qpn_i(d_q.dest_qpn),
      .clk_i, .rst_i, .start_i(state_q == StPlace), .discard_i(!v_q.exec), .is_send_i(info.is_send), .take_i(srq_new), .payload_len_i(d_q.payload_len),
`ifdef RNIC_CUT_SRQ_PD
      .pd_i(ctx_q.create.pd), .wqe_pd_i(ctx_q.create.pd),
`else
      .pd_i(ctx_q.create.pd), .wqe_pd_i(use_srq ? srq_i.cfg.pd : ctx_q.create.pd),
`endif
      .qp_idx_i(idx_q), .epoch_i(s.epoch), .wqe_idx_i(wqe_now), .rq_base_i(use_srq ? srq_i.cfg.base : ctx_q.create.rq_base),
      .log_rq_i(use_srq ? srq_i.cfg.log_size : ctx_q.hot.log_rq), .log_stride_i(use_srq ? srq_i.cfg.log_stride : ctx_q.create.log_rq_stride),
      .sge_i(starts ? '0 : s.sge), .sge_off_i(starts ? '0 : s.sge_off), .inval_i(cons_we),
      .rkey_i(starts ? d_q.rkey : s.rkey), .va_i(starts ? d_q.va : s.va), .key_len_i(key_len),
      .key_access_i(info.is_read_req ? 4'(1 << ACCESS_REMOTE_READ) : info.is_atomic_req ? 4'(1 << ACCESS_REMOTE_ATOMIC) : 4'(1 << ACCESS_REMOTE_WRITE)),
      .done_o(place_done), .status_o(place_status), .vendor_err_o(place_vendor), .next_o(place_next), .unread_o(unread), .sge_o(place_sge), .sge_off_o(place_off), .key_addr_o(key_addr),
      .pay_busy_o(pay_busy), .pay_end_o(pay_end),
      .pay_valid_i(rx_pay_valid_i), .pay_ready_o(rx_pay_ready_o), .pay_data_i(rx_pay_data_i), .pay_last_i(rx_pay_last_i),
      .mr_req_valid_o, .mr_req_ready_i, .mr_req_o, .mr_rsp_valid_i, .mr_rsp_i,
      .rd_req_valid_o(place_rd), .rd_req_ready_i, .rd_req_o(place_rd_req), .rd_rsp_valid_i(rd_rsp_valid_i && !in_atomic), .rd_rsp_ready_o(place_rsp_ready),
      .rd_rsp_data_i, .rd_rsp_ctl_i,
      .wr_valid_o(place_wr), .wr_ready_i(wr_ready_i && !at_wr), .wr_hdr_o(place_wr_hdr), .wr_data_o(place_wr_data), .wr_last_o(place_wr_last)
  );

  // ---------------------------------------------------------------- invalidation
  // After the payload, before the completion. Of a key that cannot be invalidated the completion tells; the payload is placed then.
  logic inv_q, invalidates;
  qpn_t qpn;
  assign qpn = make_qpn(ctx_q.hot.gen, idx_q, QpIdxW);
`ifdef RNIC_CUT_SEND_INV
  assign invalidates = 1'b0;
`else
  assign invalidates = info.has_ieth && v_q.exec && place_status == WC_STATUS_SUCCESS;
`endif
  assign inv_valid_o = inv_q;
  assign inv_mark_o  = state_q == StInv && state_d == StGone;
  assign inv_o       = '{key: d_q.rkey, pd: ctx_q.create.pd, qpn: qpn};
`ifdef RNIC_CUT_SEND_INV_ORDER
  always_ff @(posedge clk_i) inv_q <= !rst_i && state_q == StInv && !inv_done_i;
`else
  always_ff @(posedge clk_i) inv_q <= !rst_i && state_q == StInv && !pay_busy && !inv_done_i;
`endif

  // ---------------------------------------------------------------- atomics
  logic at_done, at_found, at_found_q;
  dma_err_e at_err, at_err_q;
  logic [63:0] at_orig, at_orig_q;
  rnic_resp_atomic #(.DataW(DataW), .QpIdxW(QpIdxW), .PtrW(PtrW)) u_atomic (
      .clk_i, .rst_i, .start_i(in_atomic), .dup_i(v_q.dup_atomic), .busy_i(pay_busy), .idx_i(visit_idx), .psn_i(d_q.psn),
      .is_cmp_i(d_q.opcode == OPC_RC_CMP_SWAP), .swap_add_i(d_q.swap_add), .compare_i(d_q.compare), .addr_i(key_addr),
      .next_i(s.at_next), .full_i(s.at_full), .done_o(at_done), .found_o(at_found), .err_o(at_err), .orig_o(at_orig),
      .rd_req_valid_o(at_rd), .rd_req_ready_i, .rd_req_o(at_rd_req), .rd_rsp_valid_i(rd_rsp_valid_i && in_atomic), .rd_rsp_data_i, .rd_rsp_ctl_i,
      .wr_valid_o(at_wr), .wr_ready_i, .wr_hdr_o(at_wr_hdr), .wr_data_o(at_wr_data)
  );
  // Both never have something to do at once: an atomic waits for the payload before it.
  assign in_atomic      = state_q == StAtomic;
  assign rd_req_valid_o = place_rd || at_rd;
  assign rd_req_o       = at_rd ? at_rd_req : place_rd_req;
  assign rd_rsp_ready_o = in_atomic || place_rsp_ready;
  assign wr_valid_o     = place_wr || at_wr;
  assign wr_hdr_o       = at_wr ? at_wr_hdr : place_wr_hdr;
  assign wr_data_o      = at_wr ? at_wr_data : place_wr_data;
  assign wr_last_o      = at_wr || place_wr_last;
  wc_status_e status_q;
  logic [7:0] vendor_q;
  logic unread_q;              // the WQE at the head of a shared receive queue could not be read: it stays there
  logic [4:0] sge_q;
  logic [31:0] off_q;

  // ---------------------------------------------------------------- what the packet or visit leads to
  logic serving, live, flush, send_deferred;
  assign serving = hot_i.state == QP_STATE_RTR || hot_i.state == QP_STATE_RTS || hot_i.state == QP_STATE_SQD || hot_i.state == QP_STATE_SQE;
  // The life and state as they are now, not as they were when the packet began.
  assign live    = hot_i.valid && hot_i.epoch == s.epoch;
`ifdef RNIC_CUT_RECV_FLUSH
  assign flush   = 1'b0;
`else
  assign flush   = visit_q && live && hot_i.state == QP_STATE_ERR && !hot_i.has_srq && prod != s.head;
`endif
  // What a QP has taken from a shared receive queue comes back once.
  logic last, left, ended;
  assign ended   = hot_i.epoch == ((sec_raw.epoch == '1) ? epoch_t'(1) : sec_raw.epoch + epoch_t'(1));   // the section is of the life before
  assign last    = visit_q && !left_q && live && hot_i.state == QP_STATE_ERR && hot_i.has_srq && !s.last_told;
  assign left    = left_q && ended && s.in_send;
  assign send_deferred = visit_q && live && serving && s.def_valid && rd_none && !rd_halted;

  event_type_e event_type;
  logic fatal, ok, wqe_used, do_cqe, do_event, do_comm, respond, do_job, do_err;
  logic ignore, to_engine;
  // Of an atomic that old nothing is known any more.
  assign ignore    = v_q.ignore || (v_q.dup_atomic && !at_found_q);
  assign to_engine = info.is_read_req || info.is_atomic_req;
  logic [7:0] synd;
  wc_status_e cqe_status;
  always_comb begin
    n          = s;
    ok         = !visit_q && v_q.exec && status_q == WC_STATUS_SUCCESS;
    fatal      = !visit_q && (v_q.nak || (v_q.exec && status_q != WC_STATUS_SUCCESS));
    // An error is reported by the receive WQE in use; a WRITE with immediate uses one once it is there.
    wqe_used   = s.in_send || (v_q.exec && (info.is_send || (info.is_write && info.has_imm)) && !(use_srq && unread_q));
    do_cqe     = 1'b0;
    do_event   = 1'b0;
    respond    = 1'b0;
    synd       = AETH_SYNDROME_ACK_NO_CREDIT;
    do_err     = 1'b0;
    cqe_status = WC_STATUS_SUCCESS;
`ifdef RNIC_CUT_RECV_COMM_EST
    do_comm    = 1'b0;
`else
    do_comm    = !visit_q && ctx_q.hot.state == QP_STATE_RTR && !s.comm_est && !v_q.drop;
`endif
    n.comm_est = s.comm_est || do_comm;

    if (ok) begin
      n.nak_sent = 1'b0;
      n.epsn     = s.epsn + v_q.psns;
      n.in_send  = info.is_send && !ends;
      n.in_write = info.is_write && !ends;
      n.sge      = ends ? '0 : sge_q;
      n.sge_off  = ends ? '0 : off_q;
      n.done     = (starts ? '0 : s.done) + 32'(d_q.payload_len);
      if (info.is_write) begin
        n.va      = (starts ? d_q.va : s.va) + 64'(d_q.payload_len);
        n.rkey    = starts ? d_q.rkey : s.rkey;
        n.dma_len = starts ? d_q.dma_len : s.dma_len;
      end
      if (ends) n.msn = s.msn + 24'd1;
      if (srq_new) n.head = wqe_now;
      if (info.is_atomic_req) begin
        n.at_next = s.at_next + PtrW'(1);
        n.at_full = s.at_full || s.at_next == '1;
      end
      if (to_engine) begin
        n.rd_push = s.rd_push + (PtrW + 1)'(1);
        n.rd_new  = s.rd_new + (PtrW + 1)'(1);
      end
      do_cqe  = ends && wqe_used;
      respond = d_q.ack_req && !to_engine;
      // The packet that a waiting NAK names has come after all: what remains of the NAK is that it acknowledges.
      if (s.def_valid) n.def_synd = AETH_SYNDROME_ACK_NO_CREDIT;
    end else if (fatal) begin
`ifndef RNIC_CUT_RECV_HALT
      n.halted  = 1'b1;
`endif
      n.in_send = 1'b0;
      do_cqe    = wqe_used;
`ifndef RNIC_CUT_RECV_EVENT
      do_event  = !wqe_used;
`endif
      respond   = 1'b1;
      case (v_q.nak ? WC_STATUS_REM_INV_REQ_ERR : status_q)
        WC_STATUS_REM_INV_REQ_ERR, WC_STATUS_LOC_LEN_ERR: synd = AETH_SYNDROME_NAK_INV_REQ;
        WC_STATUS_LOC_ACCESS_ERR: synd = AETH_SYNDROME_NAK_REM_ACCESS;
        default: synd = AETH_SYNDROME_NAK_REM_OP;
      endcase
      cqe_status = v_q.nak ? WC_STATUS_REM_INV_REQ_ERR : status_q;
    end else if (!visit_q && v_q.gap) begin
      n.nak_sent = 1'b1;
      respond    = !s.nak_sent;
      synd       = AETH_SYNDROME_NAK_PSN_SEQ;
`ifdef RNIC_CUT_RECV_GAP_ONCE
      respond    = 1'b1;
`endif
    end else if (!visit_q && v_q.rnr) begin
      n.nak_sent = 1'b1;
      respond    = 1'b1;
      synd       = 8'(AETH_SYNDROME_RNR_BASE) | 8'(ctx_q.path.min_rnr_timer);
    end else if (!visit_q && v_q.dup_ack) begin
`ifndef RNIC_CUT_RECV_DUP_ACK
      respond = 1'b1;
`endif
    end else if (!visit_q && (v_q.dup_read || v_q.dup_atomic)) begin
      n.rd_push = s.rd_push + (PtrW + 1)'(1);
    end else if (flush) begin
      n.in_send  = 1'b0;
      do_cqe     = 1'b1;
      cqe_status = WC_STATUS_WR_FLUSH_ERR;
    end else if (last) begin
`ifndef RNIC_CUT_SRQ_FLUSH
      n.in_send   = 1'b0;
      do_cqe      = s.in_send;
      cqe_status  = WC_STATUS_WR_FLUSH_ERR;
`endif
`ifndef RNIC_CUT_SRQ_LAST
      n.last_told = 1'b1;
      do_event    = 1'b1;
`endif
    end else if (left) begin
      n          = '0;
      do_cqe     = enable_i;
      cqe_status = WC_STATUS_WR_FLUSH_ERR;
    end else if (send_deferred) begin
      respond = 1'b1;
      synd    = s.def_synd;
    end
    if (do_cqe && !use_srq) n.head = s.head + wqe_idx_t'(1);

    // An ACK does not take the place of a NAK that waits, since both name the same PSN.
    if (respond && n.def_valid && synd == AETH_SYNDROME_ACK_NO_CREDIT) synd = n.def_synd;
    do_job = respond;
    if (respond) begin
      n.def_valid = 1'b0;
`ifndef RNIC_CUT_RECV_DEFER
      if (!rd_none) begin
        n.def_valid = 1'b1;
        n.def_synd  = synd;
        do_job      = 1'b0;
      end
`endif
    end
    // ERR is asked for when the NAK leaves: in ERR the READ responses before it would never be sent.
`ifdef RNIC_CUT_RECV_QP_ERR
    do_err = 1'b0;
`else
    do_err = do_job && n.halted;
`endif
    event_type = last ? EVENT_TYPE_QP_LAST_WQE_REACHED : (unread_q || at_err_q != DMA_ERR_OK) ? EVENT_TYPE_QP_FATAL
               : (synd == AETH_SYNDROME_NAK_REM_ACCESS) ? EVENT_TYPE_QP_ACCESS_ERR : EVENT_TYPE_QP_REQ_ERR;
  end

`ifdef RNIC_CUT_RECV_OVERLAP
  assign at_commit = state_q == StCommit && out_idle && !pay_busy;
`elsif RNIC_CUT_RECV_READ_LAST
  assign at_commit = state_q == StCommit && out_idle;
`else
  assign at_commit = state_q == StCommit && out_idle && !(pay_busy && !visit_q && info.is_read_req);
`endif
`ifdef RNIC_CUT_RECV_RECHECK
  assign commit  = at_commit && (visit_q ? (flush || last || left || send_deferred) : (!v_q.drop && !ignore));
`else
  assign commit  = at_commit && (visit_q ? (flush || last || left || send_deferred) : (live && serving && !v_q.drop && !ignore));
`endif
  assign sec_we  = commit;
  assign srq_take_o = commit && !visit_q && srq_new && v_q.exec && !unread_q;
  assign srq_next_o = next_q;
  assign sec_d   = n;
  assign cons_we = commit && do_cqe;
  assign again   = commit && flush && prod != n.head;
`ifdef RNIC_CUT_RECV_CONS
  assign rq_cons_we_o = 1'b0;
`else
  assign rq_cons_we_o = cons_we && !use_srq;
`endif
  assign rq_cons_o    = '{idx: idx_q, pos: '{epoch: s.epoch, val: n.head}};

  // ---------------------------------------------------------------- READ slots
  assign rd_push_o       = commit && !visit_q && (v_q.dup_read || v_q.dup_atomic || (ok && to_engine));
  assign rd_push_epoch_o = s.epoch;
  assign rd_push_ptr_o   = s.rd_push;
  assign rd_push_dup_o   = v_q.dup_read || v_q.dup_atomic;
  assign rd_push_atomic_o = info.is_atomic_req;
  assign rd_push_psn_o   = d_q.psn;
  assign rd_push_va_o    = info.is_atomic_req ? at_orig_q : d_q.va;
  assign rd_push_rkey_o  = d_q.rkey;
  assign rd_push_len_o   = info.is_atomic_req ? '0 : d_q.dma_len;
  assign rd_push_msn_o   = n.msn;

  // ---------------------------------------------------------------- what is handed over after the commit
  cqe_req_t cqe;
  always_comb begin
    cqe           = '0;
    cqe.cqn       = ctx_q.create.recv_cq;
    cqe.qp_idx    = idx_q;
    cqe.epoch     = s.epoch;
    cqe.solicited = (!visit_q && d_q.se) || cqe_status != WC_STATUS_SUCCESS;
    cqe.qpn       = qpn;
    cqe.opcode    = (info.is_write && !s.in_send && !visit_q) ? WC_OPCODE_RECV_RDMA_WITH_IMM : WC_OPCODE_RECV;
    cqe.wqe_index = wqe_now;
    cqe.status    = cqe_status;
    if (cqe_status == WC_STATUS_SUCCESS) begin
      cqe.with_imm = info.has_imm;
      cqe.with_inv = info.has_ieth;
      cqe.byte_len = n.done;
      cqe.imm      = info.has_imm ? d_q.imm : info.has_ieth ? d_q.rkey : '0;
    end else if (!visit_q && v_q.exec) begin
      cqe.vendor_err = vendor_q;
    end
  end
  // An ACK names the last PSN that was executed, a NAK the one that was not.
  rnic_resp_out u_out (
      .clk_i, .rst_i, .commit_i(commit), .hold_i(pay_busy && !pay_end), .release_i(pay_end), .idle_o(out_idle), .qp_idx_i(idx_q), .epoch_i(s.epoch), .qpn_i(qpn),
      .do_comm_i(do_comm), .do_cqe_i(do_cqe), .cqe_i(cqe),
`ifdef RNIC_CUT_SRQ_SETTLE
      .settle_i(1'b0),
`else
      .settle_i(last || (left && enable_i)),
`endif
      .cq_idle_i,
      .do_event_i(do_event), .event_i(event_type), .do_job_i(do_job), .syndrome_i(synd),
      .psn_i((synd == AETH_SYNDROME_ACK_NO_CREDIT) ? n.epsn - psn_t'(1) : n.epsn), .msn_i(n.msn), .do_err_i(do_err),
      .job_valid_o, .job_ready_i, .job_o, .cqe_valid_o, .cqe_ready_i, .cqe_o, .eqe_valid_o, .eqe_ready_i, .eqe_o,
      .qp_err_valid_o, .qp_err_ready_i, .qp_err_o
  );

  always_comb begin
    cnt_o = '0;
    if (at_commit && !visit_q) begin
      if (v_q.drop) cnt_o[drop_cnt_q] = 1'b1;
      else if (!(live && serving)) cnt_o[COUNTER_ID_RX_DROP_QP_STATE] = 1'b1;
      else begin
        cnt_o[COUNTER_ID_RX_DUPLICATES]      = v_q.dup;
        cnt_o[COUNTER_ID_RX_OUT_OF_SEQUENCE] = v_q.gap;
      end
    end
  end

  // ---------------------------------------------------------------- sequence
  logic cold_asked_q, cold_here_q;
  // The QP of the packet before: its section is here, and its control section has not changed since it was read. (The head of a
  // shared receive queue is looked up with the context.)
  logic here_q, changes, stay;
`ifdef RNIC_CUT_RECV_STAY_EVT
  assign changes = 1'b0;
`else
  assign changes = qp_evt_valid_i && qp_evt_i.idx[QpIdxW-1:0] == visit_idx;
`endif
`ifdef RNIC_CUT_RECV_STAY
  assign stay = 1'b0;
`else
  assign stay = begin_packet && here_q && !changes && !ctx_q.hot.has_srq && qpn_idx(rx_desc_i.dest_qpn, QpIdxW) == idx_q;
`endif
  // A visit asks only when it has something to do: most doorbells are for queues that need no flush.
  assign cold_req_valid_o = !cold_asked_q && (state_q == StCold || (!visit_q && (state_q == StLoad || state_q == StLook)));
  logic worth;
  assign worth = !diag_q && (!visit_q || (left_q ? sec_raw.in_send && ended : hot_i.state == QP_STATE_ERR || (sec_raw.def_valid && sec_raw.epoch == hot_i.epoch)));
  always_comb begin
    state_d = state_q;
    case (state_q)
      StIdle:   if (begin_packet || begin_visit || begin_left || begin_diag) state_d = stay ? StCheck : StLoad;
      StLoad:   state_d = StLook;
      StLook:   state_d = worth ? StCold : StIdle;
      StCold:   if (cold_here_q) state_d = visit_q ? StCommit : StCheck;
      StCheck:  state_d = StPlace;
      StPlace:
        if (place_done)
          state_d = (info.is_atomic_req && (v_q.dup_atomic || (v_q.exec && place_status == WC_STATUS_SUCCESS))) ? StAtomic
                  : invalidates ? StInv : StCommit;
      StAtomic: if (at_done) state_d = StCommit;
`ifdef RNIC_CUT_SEND_INV_BARRIER
      StInv:    if (inv_done_i) state_d = StCommit;
`else
      StInv:    if (inv_done_i) state_d = (inv_err_i == MR_ERR_OK) ? StGone : StCommit;
`endif
      StGone:   if (!inv_busy_i) state_d = StCommit;
      StCommit: if (at_commit) state_d = StIdle;
      default:  state_d = StIdle;
    endcase
  end

  // What a look shows: straight from the look-ups, since no context is asked for.
  // verilator lint_off UNUSEDSIGNAL
  qp_live_t shown;             // (the requester has the other words)
  // verilator lint_on UNUSEDSIGNAL
  always_comb begin
    shown             = '0;
    shown.epsn        = sec_raw.epsn;
    shown.recv_live   = sec_raw.epoch == hot_i.epoch;
    shown.recv_halted = sec_raw.halted || (rd_epoch_i == sec_raw.epoch && rd_halted_i);
    shown.nak_sent    = sec_raw.nak_sent;
    shown.in_send     = sec_raw.in_send;
    shown.in_write    = sec_raw.in_write;
    shown.ack_waiting = sec_raw.def_valid;
    shown.msn         = sec_raw.msn;
    shown.rd_waiting  = 6'((PtrW + 1)'(sec_raw.rd_push - ((rd_epoch_i == sec_raw.epoch) ? rd_pop_i : '0)));
    shown.rq_prod     = (rq_prod_i.epoch == hot_i.epoch) ? rq_prod_i.val : '0;
    shown.rq_next     = sec_raw.head;
    shown.msg_done    = sec_raw.done;
  end

  always_ff @(posedge clk_i) begin
    if (begin_packet || begin_visit || begin_left || begin_diag) begin
      idx_q         <= begin_left ? qp_idx_t'(left_idx) : begin_diag ? qpn_idx(diag_i.qpn, QpIdxW) : begin_visit ? qp_idx_t'(pick_idx) : qpn_idx(rx_desc_i.dest_qpn, QpIdxW);
      visit_q       <= !begin_packet;
      left_q        <= begin_left;
      if (!begin_diag) last_packet_q <= begin_packet;
    end
    if (begin_packet) begin
      d_q      <= rx_desc_i;
      unread_q <= 1'b0;
      at_err_q <= DMA_ERR_OK;
    end
    if (cold_rsp_valid_i) ctx_q <= cold_rsp_i;
    if (state_q == StCold) s_q <= s_now;
    else if (sec_we) s_q <= n;
    if (rst_i || changes || (state_q == StIdle && state_d == StLoad)) here_q <= 1'b0;
    else if (cold_req_valid_o && cold_req_ready_i && !visit_q) here_q <= 1'b1;
    if (state_q == StCheck) begin
      v_q        <= v;
      drop_cnt_q <= drop_cnt;
    end
    if (place_done) begin
      status_q <= place_status;
      vendor_q <= place_vendor;
      unread_q <= unread;
      next_q   <= place_next;
      sge_q    <= place_sge;
      off_q    <= place_off;
    end
    if (at_done) begin
      at_found_q <= at_found;
      at_orig_q  <= at_orig;
      at_err_q   <= at_err;
      if (at_err != DMA_ERR_OK) status_q <= WC_STATUS_LOC_QP_OP_ERR;
    end
    if (inv_done_i && inv_err_i != MR_ERR_OK) begin
      status_q <= WC_STATUS_LOC_ACCESS_ERR;
      vendor_q <= 8'h10 | 8'(inv_err_i);
    end
    if (state_q == StIdle) begin
      cold_asked_q <= 1'b0;
      cold_here_q  <= 1'b0;
    end else begin
      if (cold_req_valid_o && cold_req_ready_i) cold_asked_q <= 1'b1;
      if (cold_rsp_valid_i) cold_here_q <= 1'b1;
    end
    state_q     <= state_d;
    diag_q      <= begin_diag || (diag_q && state_d != StIdle);
    diag_done_o <= state_q == StLook && diag_q;
`ifdef RNIC_CUT_DIAG_RECV
    diag_data_o <= '0;
`else
    diag_data_o <= '0;
    for (int unsigned w = DIAG_SEND_WORDS; w < QP_LIVE_BYTES / 8; w++) if (diag_i.word == 3'(w)) diag_data_o <= shown[64*w+:64];
`endif
    if (rst_i) begin
      diag_q        <= 1'b0;
      diag_done_o   <= 1'b0;
      state_q       <= StIdle;
      last_packet_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      if (rd_push_o) a_slot_free : assert (!rd_used[PtrW]);
      if (inv_done_i) a_invalidation_expected : assert (inv_q);
      if (cold_rsp_valid_i) a_context_expected : assert (cold_asked_q && !cold_here_q);
      if (diag_q) a_look_changes_nothing : assert (!commit && !at_commit && !cold_req_valid_o);
      if (commit) a_no_two_messages : assert (!(n.in_send && n.in_write));
    end
  end

`ifdef FORMAL_RESPONDER
`include "rnic_responder.svh"
`endif
endmodule
