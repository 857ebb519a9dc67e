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
  import rnic_recv_pkg::*;
#(
    parameter int unsigned DataW = 64,
    parameter int unsigned QpIdxW = 10,
    parameter int unsigned MaxRqStride = 4,
    parameter int unsigned RqLines = 64,
    parameter int unsigned PtrW = 4,               // log2 of READ slots per QP
    parameter bit HasSrq = 1'b1                    // there are shared receive queues
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
    // READ engine: new slot; where it stands (from rd_look_o on); no READ of a QP is left
    output logic         rd_push_o,
    output qp_idx_t      rd_idx_o,
    output logic [PtrW-1:0] rd_push_ptr_o,         // slot
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
    output logic         rd_empty_hold_o,          // not in this cycle
    output logic         rd_look_o,                // READ progress is to be read
    output logic         rd_head_ready_o,          // pushes of a QP can be read, answer one cycle later
    input  logic [QpIdxW-1:0] rd_head_idx_i,
    output epoch_t       rd_head_epoch_o,
    output logic [PtrW:0] rd_head_push_o,
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
    logic [PtrW:0] rd_push;    // READs and atomics given to the READ engine (which reads these two)
    logic        halted;       // an error was found: nothing more until the next life
    logic        comm_est;     // the event was raised
    logic        last_told;    // LAST_WQE_REACHED was raised
    logic        nak_sent;     // sequence or RNR NAK sent, the packet it names has not come yet
    psn_t        epsn;
    logic [23:0] msn;
    logic        in_send;      // message in progress
    logic        in_write;
    wqe_idx_t    head;         // receive WQE in use or to be used next; of a shared receive queue: slot of the one in use
    logic [63:0] place;        // SEND: place in it, else the next address (rnic_resp_place)
    logic [31:0] done;         // bytes of the message so far
    logic [31:0] rkey;         // WRITE
    logic [31:0] left;         // WRITE: bytes to come
    logic        def_valid;    // a response waits for the READ responses before it
    logic [7:0]  def_synd;
    logic [PtrW-1:0] at_next;  // slot of the next atomic's result
    logic        at_full;      // all slots hold results
    logic [PtrW:0] rd_new;     // of these, the ones that were no duplicates
  } sec_t;

  typedef enum logic [3:0] {
    StIdle,    // chooses a packet or a visit
    StLoad,    // section, hot word, producer index and READ progress are being read, the section in beats; context is asked for
    StLook,    // they are here, but for the section's last beat
    StWorth,   // a visit looks whether there is something to do, a look takes what it shows
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
  // Doorbells and changes of state are never refused and have a port each. The next visit of the QP at hand and what the READ engine tells wait in
  // a register for a cycle without a doorbell; while it is taken, the READ engine waits, and so does a visit with its commit.
  logic spare_q;
  logic [QpIdxW-1:0] spare_idx_q;
  assign rd_empty_hold_o = again || spare_q;
  always_ff @(posedge clk_i) begin
    if (!spare_q) spare_idx_q <= again ? visit_idx : rd_empty_idx_i;
    spare_q <= !rst_i && (spare_q ? rq_kick_valid_i : (again || rd_empty_valid_i));
  end
  rnic_pend_set #(.IdxW(QpIdxW), .NumSet(2)) u_visits (
      .clk_i, .rst_i,
      .set_valid_i({rq_kick_valid_i || spare_q, qp_evt_valid_i && qp_evt_i.state == QP_STATE_ERR}),
      .set_idx_i({rq_kick_valid_i ? rq_kick_idx_i[QpIdxW-1:0] : spare_idx_q, qp_evt_i.idx[QpIdxW-1:0]}), .pick_valid_o(pick_valid), .pick_ready_i(pick), .pick_idx_o(pick_idx)
  );
  logic any_left;              // a QP that left waits for its visit
  if (HasSrq) begin : g_left
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
    assign any_left = left_cnt_q != '0;
  end else begin : g_no_left
    assign {left_valid, any_left} = '0;
    assign left_idx = '0;
  end
  logic pay_busy, pay_end;
  assign idle_o = (state_q == StIdle || diag_q) && out_idle && !pay_busy && !any_left;
  assign packet_idle_o = state_q == StIdle || visit_q;   // visits and looks judge no key
  assign pay_busy_o    = pay_busy;
  assign pay_end_o     = pay_end;

  // ---------------------------------------------------------------- sections and what belongs to them
  // In two beats, where the data path is narrow and has time for it: as many as fill block RAMs of 512 words and more, and a choice between two
  // is one table a bit. A commit changes the registers; the beats are written behind it, each before the next packet or visit can read it, and
  // before the next commit.
  localparam int unsigned Beats = (DataW >= 256) ? 1 : 2;
  localparam int unsigned BeatW = ($bits(sec_t) + Beats - 1) / Beats;
  localparam int unsigned BeatIdxW = (Beats > 1) ? $clog2(Beats) : 1;
  localparam logic [BeatIdxW-1:0] LastBeat = BeatIdxW'(Beats - 1);
  localparam int unsigned SlotW = QpIdxW + ((Beats > 1) ? BeatIdxW : 0);
  sec_t s, n;
  logic [Beats-1:0][BeatW-1:0] s_q;
  logic load_q, store_q;       // a beat is read; one is written
  logic [BeatIdxW-1:0] beat_q, load_beat_q, store_beat_q;
  logic [QpIdxW-1:0] store_idx_q;
  logic [BeatW-1:0] sec_rd;
  logic [SlotW-1:0] sec_waddr, sec_raddr;
  if (Beats > 1) begin : g_beats
    assign sec_waddr = {store_idx_q, store_beat_q};
    assign sec_raddr = (state_q == StLoad) ? {visit_idx, beat_q} : {rd_head_idx_i, LastBeat};
  end else begin : g_whole
    assign sec_waddr = store_idx_q;
    assign sec_raddr = (state_q == StLoad) ? visit_idx : rd_head_idx_i;
  end
  rnic_ram #(.Width(BeatW), .Depth((1 << QpIdxW) * Beats), .Bypass(1'b0)) u_sections (
      .clk_i, .we_i(store_q), .waddr_i(sec_waddr), .wdata_i(s_q[store_beat_q]),
      .re_i(1'b1), .raddr_i(sec_raddr), .rdata_o(sec_rd)
  );
  // The READ engine reads the first word of a section while none is read or written here.
  assign rd_head_ready_o = state_q != StLoad && !commit && !store_q;
  if (1) begin : g_head
    // verilator lint_off UNUSEDSIGNAL
    logic [Beats*BeatW-1:0] whole;
    sec_t sec;
    // verilator lint_on UNUSEDSIGNAL
    assign whole = {sec_rd, {(Beats - 1) * BeatW {1'b0}}};
    assign sec   = sec_t'(whole);
    assign {rd_head_epoch_o, rd_head_push_o} = {sec.epoch, sec.rd_push};
  end
  assign rd_look_o = state_q == StLoad;
  always_ff @(posedge clk_i) begin
    // From the top down: what the READ engine reads is written first.
    beat_q      <= (state_q == StLoad && Beats > 1) ? beat_q - BeatIdxW'(1) : LastBeat;
    load_q      <= state_q == StLoad && !rst_i;
    load_beat_q <= beat_q;
    store_q     <= (commit || (store_q && store_beat_q != '0)) && !rst_i;
    if (commit) store_idx_q <= visit_idx;
    store_beat_q <= (store_q && !commit && Beats > 1) ? store_beat_q - BeatIdxW'(1) : LastBeat;
  end

  logic [PtrW:0] rd_pop, rd_new_done, rd_used, rd_used_new;
  logic rd_same, rd_none, rd_halted;
  wqe_idx_t prod;
  assign s = sec_t'(s_q);
  // The section is of another life than the context: it begins anew.
  logic fresh;
`ifdef RNIC_CUT_RECV_EPOCH
  assign fresh = s.epoch == '0;
`else
  assign fresh = s.epoch != ctx_q.hot.epoch && !left_q;
`endif
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
  assign use_srq   = HasSrq && ctx_q.hot.has_srq;
  assign wqe_now   = (use_srq && !s.in_send) ? srq_i.head : s.head;
  assign srq_get_o = cold_rsp_valid_i;
  assign srq_idx_o = cold_rsp_i.create.srq;

  // ---------------------------------------------------------------- verdict
  verdict_t v, v_q;
  logic [31:0] rest;           // WRITE: bytes to come after this packet
  counter_id_e drop_cnt, drop_cnt_q;
  // verilator lint_off UNUSEDSIGNAL
  opcode_info_t info;
  // verilator lint_on UNUSEDSIGNAL
  rnic_resp_check #(.QpIdxW(QpIdxW), .CountW(PtrW + 1)) u_check (
      .enable_i, .port_cfg_i, .desc_i(d_q), .ctx_i(ctx_q),
      .halted_i(s.halted || rd_halted), .epsn_i(s.epsn), .in_send_i(s.in_send), .in_write_i(s.in_write),
      .msg_full_i(s.done[31]), .msg_left_i(s.left),
      .reads_i(rd_used_new), .read_full_i(rd_used[PtrW]), .rq_avail_i(use_srq ? srq_i.avail : prod != s.head),
      .drop_o(v.drop), .drop_cnt_o(drop_cnt), .ignore_o(v.ignore), .gap_o(v.gap), .dup_ack_o(v.dup_ack), .dup_read_o(v.dup_read), .dup_atomic_o(v.dup_atomic),
      .nak_o(v.nak), .rnr_o(v.rnr), .exec_o(v.exec), .dup_o(v.dup), .psns_o(v.psns), .psns_more_o(v.psns_more), .rest_o(rest), .info_o(info)
  );

  // ---------------------------------------------------------------- placement
  logic starts, ends, place_done, cons_we;
  wc_status_e place_status;
  logic [7:0] place_vendor;
  logic [63:0] place_next_at;
  logic [31:0] key_len;
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
  rnic_resp_place #(.DataW(DataW), .QpIdxW(QpIdxW), .MaxRqStride(MaxRqStride), .RqLines(RqLines)) u_place (
      .qpn_i(d_q.dest_qpn),
      .clk_i, .rst_i, .start_i(state_q == StPlace), .discard_i(!v_q.exec), .is_send_i(info.is_send), .take_i(srq_new), .payload_len_i(d_q.payload_len),
`ifdef RNIC_CUT_SRQ_PD
      .pd_i(ctx_q.create.pd), .wqe_pd_i(ctx_q.create.pd),
`else
      .pd_i(ctx_q.create.pd), .wqe_pd_i(use_srq ? srq_i.cfg.pd : ctx_q.create.pd),
`endif
      .qp_idx_i(idx_q), .epoch_i(s.epoch), .wqe_idx_i(wqe_now), .rq_base_i(use_srq ? srq_i.cfg.base : ctx_q.create.rq_base),
      .log_rq_i(use_srq ? srq_i.cfg.log_size : ctx_q.hot.log_rq), .log_stride_i(use_srq ? srq_i.cfg.log_stride : ctx_q.create.log_rq_stride),
      .place_i(!starts ? s.place : info.is_send ? '0 : d_q.va), .inval_i(cons_we),
      .rkey_i(starts ? d_q.rkey : s.rkey), .key_len_i(key_len),
      .key_access_i(info.is_read_req ? 4'(1 << ACCESS_REMOTE_READ) : info.is_atomic_req ? 4'(1 << ACCESS_REMOTE_ATOMIC) : 4'(1 << ACCESS_REMOTE_WRITE)),
      .done_o(place_done), .status_o(place_status), .vendor_err_o(place_vendor), .next_o(place_next), .unread_o(unread), .place_o(place_next_at), .key_addr_o(key_addr),
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
  logic [63:0] place_q;

  // ---------------------------------------------------------------- what the packet or visit leads to
  logic serving, live, flush, send_deferred;
  assign serving = hot_i.state == QP_STATE_RTR || hot_i.state == QP_STATE_RTS || hot_i.state == QP_STATE_SQD || hot_i.state == QP_STATE_SQE;
  // The life and state as they are now, not as they were when the packet began.
  assign live    = hot_i.valid && hot_i.epoch == s.epoch;
`ifdef RNIC_CUT_RECV_FLUSH
  assign flush   = 1'b0;
`else
  assign flush   = visit_q && live && hot_i.state == QP_STATE_ERR && !(HasSrq && hot_i.has_srq) && prod != s.head;
`endif
  // What a QP has taken from a shared receive queue comes back once.
  logic last, left, ended;
  assign ended   = hot_i.epoch == ((s.epoch == '1) ? epoch_t'(1) : s.epoch + epoch_t'(1));   // the section is of the life before
  assign last    = HasSrq && visit_q && !left_q && live && hot_i.state == QP_STATE_ERR && hot_i.has_srq && !s.last_told;
  assign left    = HasSrq && left_q && ended && s.in_send;
  assign send_deferred = visit_q && live && serving && s.def_valid && rd_none && !rd_halted;

  event_type_e event_type;
  logic fatal, ok, do_cqe, do_event, do_comm, respond, do_job, do_err;
  logic ignore, to_engine;
  logic [7:0] synd;
  wc_status_e cqe_status;
  // Of an atomic that old nothing is known any more.
  assign ignore    = v_q.ignore || (v_q.dup_atomic && !at_found_q);
  assign to_engine = info.is_read_req || info.is_atomic_req;
  rnic_resp_effect u_effect (
      .enable_i, .visit_i(visit_q), .flush_i(flush), .last_i(last), .left_i(left), .send_deferred_i(send_deferred),
      .verdict_i(v_q), .info_i(info), .status_i(status_q), .ack_req_i(d_q.ack_req), .rtr_i(ctx_q.hot.state == QP_STATE_RTR),
      .min_rnr_timer_i(ctx_q.path.min_rnr_timer), .wqe_lost_i(use_srq && unread_q), .own_fault_i(unread_q || at_err_q != DMA_ERR_OK),
      .in_send_i(s.in_send), .comm_est_i(s.comm_est), .nak_sent_i(s.nak_sent), .halted_i(s.halted), .def_valid_i(s.def_valid), .def_synd_i(s.def_synd),
      .reads_wait_i(!rd_none),
      .ok_o(ok), .fatal_o(fatal), .do_comm_o(do_comm), .do_cqe_o(do_cqe), .cqe_status_o(cqe_status), .do_event_o(do_event), .event_o(event_type),
      .respond_o(respond), .syndrome_o(synd), .do_job_o(do_job), .do_err_o(do_err)
  );

`ifdef RNIC_CUT_RECV_OVERLAP
  assign at_commit = state_q == StCommit && out_idle && !pay_busy && !(visit_q && spare_q);
`elsif RNIC_CUT_RECV_READ_LAST
  assign at_commit = state_q == StCommit && out_idle && !(visit_q && spare_q);
`else
  assign at_commit = state_q == StCommit && out_idle && !(visit_q ? spare_q : pay_busy && info.is_read_req);
`endif
`ifdef RNIC_CUT_RECV_RECHECK
  assign commit  = at_commit && (visit_q ? (flush || last || left || send_deferred) : (!v_q.drop && !ignore));
`else
  assign commit  = at_commit && (visit_q ? (flush || last || left || send_deferred) : (live && serving && !v_q.drop && !ignore));
`endif
  assign srq_take_o = commit && !visit_q && srq_new && v_q.exec && !unread_q;
  assign srq_next_o = next_q;
  assign cons_we = commit && do_cqe;
  assign again   = commit && flush;      // the last one finds that there is nothing left
`ifdef RNIC_CUT_RECV_CONS
  assign rq_cons_we_o = 1'b0;
`else
  assign rq_cons_we_o = cons_we && !use_srq;
`endif
  assign rq_cons_o    = '{idx: idx_q, pos: '{epoch: s.epoch, val: s.head + wqe_idx_t'(1)}};

  // The section after it: new values, and which of them are taken.
  logic engine_gets, cqe_own;
  sec_t we;
  assign engine_gets = ok ? to_engine : !visit_q && (v_q.dup_read || v_q.dup_atomic);
  assign cqe_own     = do_cqe && !use_srq;
  always_comb begin
    n           = 'x;
    n.epoch     = ctx_q.hot.epoch;
    n.halted    = 1'b1;
    n.comm_est  = 1'b1;
    n.last_told = 1'b1;
    n.nak_sent  = !ok;
    n.epsn      = psn_t'(25'({s.epsn, 1'b1} + {v_q.psns, v_q.psns_more}) >> 1);
    n.msn       = s.msn + 24'd1;
    n.in_send   = ok && info.is_send && !ends;
    n.in_write  = info.is_write && !ends;
    n.head      = srq_new ? wqe_now : s.head + wqe_idx_t'(1);
    n.place     = place_q;
    n.done      = (starts ? '0 : s.done) + 32'(d_q.payload_len);
    n.rkey      = d_q.rkey;
    n.left      = rest;
    n.def_valid = !do_job;
    n.def_synd  = (respond && !do_job) ? synd : AETH_SYNDROME_ACK_NO_CREDIT;
    n.at_next   = s.at_next + PtrW'(1);
    n.at_full   = 1'b1;
    n.rd_push   = s.rd_push + (PtrW + 1)'(1);
    n.rd_new    = s.rd_new + (PtrW + 1)'(1);

    we          = '0;
`ifndef RNIC_CUT_RECV_HALT
    we.halted   = fatal;
`endif
    we.comm_est = do_comm;
`ifndef RNIC_CUT_SRQ_LAST
    we.last_told = last;
`endif
    we.nak_sent = ok || (!visit_q && !fatal && (v_q.gap || v_q.rnr));
    we.epsn     = {$bits(psn_t) {ok}};
    we.msn      = {24{ok && ends}};
    we.in_send  = ok || fatal || flush;
`ifndef RNIC_CUT_SRQ_FLUSH
    if (last) we.in_send = 1'b1;
`endif
    we.in_write = ok;
    we.head     = {$bits(wqe_idx_t) {cqe_own || (ok && srq_new)}};
    we.place    = {64{ok}};
    we.done     = {32{ok}};
    we.rkey     = {32{ok && starts}};
    we.left     = {32{ok}};
    we.def_valid = respond;
    we.def_synd = {8{ok || (respond && !do_job)}};
    we.at_next  = {PtrW{ok && info.is_atomic_req}};
    we.at_full  = ok && info.is_atomic_req && s.at_next == '1;
    we.rd_push  = {PtrW + 1{engine_gets}};
    we.rd_new   = {PtrW + 1{ok && to_engine}};
  end
  sec_t sec_first;
  always_comb begin
    sec_first       = '0;
    sec_first.epoch = ctx_q.hot.epoch;
    sec_first.epsn  = ctx_q.path.rq_psn;
  end
  localparam int unsigned SecW = $bits(sec_t);
  logic begins;                // a new life
  assign begins = state_q == StCold && state_d != StCold && fresh;
  always_ff @(posedge clk_i) begin
    for (int unsigned i = 0; i < SecW; i++) begin
      if ((load_q && load_beat_q == BeatIdxW'(i / BeatW)) || (commit && we[i]))
        s_q[i/BeatW][i%BeatW] <= load_q ? sec_rd[i%BeatW] : n[i];
    end
    if (commit && left) s_q <= '0;
    if (begins) s_q <= (Beats * BeatW)'(sec_first);
  end

  // ---------------------------------------------------------------- READ slots
  assign rd_push_o       = commit && engine_gets;
  assign rd_push_ptr_o   = s.rd_push[PtrW-1:0];
  assign rd_push_dup_o   = v_q.dup_read || v_q.dup_atomic;
  assign rd_push_atomic_o = info.is_atomic_req;
  assign rd_push_psn_o   = d_q.psn;
  assign rd_push_va_o    = info.is_atomic_req ? at_orig_q : d_q.va;
  assign rd_push_rkey_o  = d_q.rkey;
  assign rd_push_len_o   = d_q.dma_len;
  assign rd_push_msn_o   = s.msn + 24'(ok);

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
      cqe.imm      = info.has_imm ? d_q.imm : info.has_ieth ? d_q.rkey : '0;
    end else if (!visit_q && v_q.exec) begin
      cqe.vendor_err = vendor_q;
    end
  end
  // An ACK names the last PSN that was executed, a NAK the one that was not. What is new in the section is taken a cycle later.
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
      .do_err_i(do_err), .epsn_i(s.epsn), .msn_i(s.msn), .done_i(s.done),
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
  assign worth = !diag_q && (left_q ? s.in_send && ended : hot_i.state == QP_STATE_ERR || (s.def_valid && s.epoch == hot_i.epoch));
  always_comb begin
    state_d = state_q;
    case (state_q)
      StIdle:   if (begin_packet || begin_visit || begin_left || begin_diag) state_d = stay ? StCheck : StLoad;
      StLoad:   if (beat_q == '0) state_d = StLook;
      StLook:   state_d = visit_q ? StWorth : StCold;
      StWorth:  state_d = worth ? StCold : StIdle;
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
    shown.epsn        = s.epsn;
    shown.recv_live   = s.epoch == hot_i.epoch;
    shown.recv_halted = s.halted || (rd_epoch_i == s.epoch && rd_halted_i);
    shown.nak_sent    = s.nak_sent;
    shown.in_send     = s.in_send;
    shown.in_write    = s.in_write;
    shown.ack_waiting = s.def_valid;
    shown.msn         = s.msn;
    shown.rd_waiting  = 6'((PtrW + 1)'(s.rd_push - ((rd_epoch_i == s.epoch) ? rd_pop_i : '0)));
    shown.rq_prod     = (rq_prod_i.epoch == hot_i.epoch) ? rq_prod_i.val : '0;
    shown.rq_next     = s.head;
    shown.msg_done    = s.done;
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
      place_q  <= place_next_at;
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
    diag_done_o <= state_q == StWorth && diag_q;
`ifdef RNIC_CUT_DIAG_RECV
    diag_data_o <= '0;
`else
    diag_data_o <= shown[64*DIAG_SEND_WORDS+:64];
    for (int unsigned w = DIAG_SEND_WORDS + 1; w < QP_LIVE_BYTES / 8; w++) if (diag_i.word == 3'(w)) diag_data_o <= shown[64*w+:64];
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
      if (again || rd_empty_valid_i) a_visit_is_kept : assert (!spare_q);
      if (rd_push_o) a_slot_free : assert (!rd_used[PtrW]);
      if (inv_done_i) a_invalidation_expected : assert (inv_q);
      if (cold_rsp_valid_i) a_context_expected : assert (cold_asked_q && !cold_here_q);
      if (diag_q) a_look_changes_nothing : assert (!commit && !at_commit && !cold_req_valid_o);
      if (!commit && !load_q && state_q == StCheck) a_no_two_messages : assert (!(s.in_send && s.in_write));
      if (commit) a_beats_written : assert (!store_q && !load_q);
    end
  end

`ifdef FORMAL_RESPONDER
`include "rnic_responder.svh"
`endif
endmodule
