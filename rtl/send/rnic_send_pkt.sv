// SPDX-License-Identifier: Apache-2.0
// Sends packets of the visited QP: finds the place in the queue, reads the WQE, judges it, plans the packet, hands over
// job and pieces; and the next packet, as long as more_i says that nobody else waits. Within a message it begins with the plan.
// Contract: start_i is a pulse; visit_i is steady but for its section, which is what the owner makes of upd_o. done_o pulses
// with the outcome: again_o: visit the QP again (more to send, or something was short for the moment); failed_o: a WQE failed locally.
// Neither: something else will wake it (a WQE that is being fetched, an acknowledge, a doorbell). Started only while the job queue
// has room (room_i); the next packet waits for that, as long as more_i. hot_ok_i: the QP's life and state are still those of the visit; else nothing is handed over.
module rnic_send_pkt
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
  import rnic_send_pkg::*;
#(
    parameter int unsigned DataW = 64,
    parameter int unsigned InflightCap = 32   // records of one QP, at most 128
) (
    input  logic             clk_i,
    input  logic             rst_i,
    input  logic             start_i,
    input  visit_t           visit_i,
    input  logic             hot_ok_i,
    input  logic             more_i,
    input  logic             room_i,
    output logic             done_o,
    output logic             again_o,
    output logic             failed_o,
    output pkt_upd_t         upd_o,
    // WQE cache
    output look_req_t        look_o,
    input  look_res_t        look_i,
    output fetch_req_t       fetch_o,
    output line_rd_t         rd_o,
    input  logic [DataW-1:0] rd_data_i,
    output walk_req_t        walk_o,
    input  walk_res_t        walk_i,
    // in-flight records
    output logic             rec_rd_o,
    output rec_idx_t         rec_idx_o,
    // This unit needs a part of a record.
    // verilator lint_off UNUSEDSIGNAL
    input  rec_t             rec_i,
    // verilator lint_on UNUSEDSIGNAL
    input  logic             rec_past_i,     // it lies before una_psn
    input  logic [31:0]      rec_off_i,      // una_psn's place in its message
    input  rec_idx_t         rec_next_i,
    input  logic             rec_here_i,
    input  logic             rec_avail_i,
    input  rec_idx_t         rec_new_i,
    output logic             rec_append_o,
    output rec_t             rec_o,
    // local operation
    output logic             local_start_o,
    output logic [255:0]     local_half_o,
    output line_idx_t        local_line_o,
    input  logic             local_done_i,
    input  wc_status_e       local_status_i,
    input  logic [7:0]       local_vendor_i,
    // transmit queue
    output logic             push_o,
    output logic             drop_o,
    output tx_job_t          job_o,
    output logic             resent_o
);
  localparam int unsigned HdrBeats = (DataW >= 256) ? 1 : 256 / DataW;
  localparam int unsigned AtomicBytes = 8;
  // The compare operand: byte 48 of the WQE.
  localparam int unsigned CmpBeat = 384 / DataW;
  localparam int unsigned CmpShift = 384 % DataW;

  // Mutation switches: a feature taken out must turn its test red.
`ifdef RNIC_CUT_FENCE
  localparam bit Fence = 1'b0;
`else
  localparam bit Fence = 1'b1;
`endif
`ifdef RNIC_CUT_MAX_RD_ATOMIC
  localparam bit LimitReads = 1'b0;
`else
  localparam bit LimitReads = 1'b1;
`endif
`ifdef RNIC_CUT_WQE_FORMAT
  localparam bit CheckFormat = 1'b0;
`else
  localparam bit CheckFormat = 1'b1;
`endif
`ifdef RNIC_CUT_MSG_LENGTH
  localparam bit CheckLength = 1'b0;
`else
  localparam bit CheckLength = 1'b1;
`endif
`ifdef RNIC_CUT_ATOMIC_RESULT
  localparam bit CheckResult = 1'b0;
`else
  localparam bit CheckResult = 1'b1;
`endif
`ifdef RNIC_CUT_GATHER_KEYS
  localparam bit CheckKeys = 1'b0;
`else
  localparam bit CheckKeys = 1'b1;
`endif
`ifdef RNIC_CUT_READ_SINK_ACCESS
  localparam logic [3:0] SinkAccess = 4'b0;
`else
  localparam logic [3:0] SinkAccess = 4'b1 << ACCESS_LOCAL_WRITE;
`endif
`ifdef RNIC_CUT_WQE_DMA_ERR
  localparam bit CheckFetch = 1'b0;
`else
  localparam bit CheckFetch = 1'b1;
`endif
`ifdef RNIC_CUT_SQD
  localparam bit StopInSqd = 1'b0;
`else
  localparam bit StopInSqd = 1'b1;
`endif
`ifdef RNIC_CUT_INFLIGHT_CAP
  localparam int unsigned MaxRecords = 255;
`else
  localparam int unsigned MaxRecords = InflightCap;
`endif
`ifdef RNIC_CUT_WQE_PREFETCH
  localparam bit Prefetch = 1'b0;
`else
  localparam bit Prefetch = 1'b1;
`endif

  typedef enum logic [3:0] {
    P_IDLE,
    P_SEEK,    // a record of the list is read
    P_SEEK2,   // is una_psn in it?
    P_GATE,    // may a packet be sent? look up its WQE
    P_LOOK,    // the cache's answer
    P_HDR,     // beats of the WQE's fixed part
    P_PARSE,   // judge it
    P_CMP,     // compare operand of an atomic
    P_SUM,     // message length
    P_LEN,     // judge the length; what follows from it
    P_PLAN,    // this packet; walk its pieces
    P_WALK,    // their keys
    P_PUSH,    // hand it over
    P_LOCAL,   // no packet: the operation is being done
    P_NEXT     // is the next WQE in the cache? fetch it
  } state_e;
  state_e state_q, state_d;

  // the struct is shared; this unit needs a part of it.
  // verilator lint_off UNUSEDSIGNAL
  visit_t v;
  sq_wqe_t wqe;
  // verilator lint_on UNUSEDSIGNAL
  sq_sec_t sec;
  assign v   = visit_i;
  assign sec = visit_i.sec;

  // ---------------------------------------------------------------- WQE
  logic [255:0] hdr_q;
  logic [2:0] beat_q;
  logic [63:0] compare_q;
  line_idx_t line_q;
  assign wqe = sq_wqe_t'({256'b0, hdr_q});

  // ---------------------------------------------------------------- message and packet
  logic [35:0] len_q;                 // message
  psn_t more_q;                       // PSNs of what is left beyond one
  psn_t step_q;                       // the same of a READ or atomic, which takes them all; else 0
  plan_t pl;
  pkt_upd_t upd_sent;
  rnic_send_plan u_plan (
      .visit_i, .wqe_i(wqe), .len_i(len_q[31:0]), .more_i(more_q), .step_i(step_q), .less_i(state_q == P_LEN), .next_i(state_q == P_NEXT),
      .compare_i(compare_q), .rec_new_i, .plan_o(pl), .job_o, .rec_o, .upd_o(upd_sent)
  );

  logic behind, allowed, rtype, inl, none_left;
  // What is left, less one, is negative (the message has at most 2^31 bytes, and no place in it is beyond).
  assign none_left = pl.left[31];
  // verilator lint_off UNUSEDSIGNAL
  psn_t in_window;      // (its sign tells: only the end of the longest window is as far)
  // verilator lint_on UNUSEDSIGNAL
  assign in_window = sec.next_psn - sec.una_psn;
  assign behind  = in_window[23] && sec.next_psn != sec.top_psn;
  assign allowed = has_work(sec, v.prod) && (v.ctx.hot.state == QP_STATE_RTS ||
                   (v.ctx.hot.state == QP_STATE_SQD && (!StopInSqd || !pl.first || sec.snd_wqe != sec.fresh)));
  assign rtype   = v.ctx.hot.qp_type == QP_TYPE_RC;
  assign inl     = wqe.inline_data;

  // The WQE that is needed next: known when the message's last packet, or the first of several, has been handed over.
  wqe_idx_t next_wqe;
  logic prefetch;
  assign next_wqe = upd_sent.snd_wqe;
  assign prefetch = Prefetch && next_wqe != v.prod && (pl.first || sec.snd_off == pl.mtu);

  // ---------------------------------------------------------------- a WQE that fails before its packet
  logic fail;
  logic [7:0] fail_status, fail_vendor;
  rec_idx_t walk_rec_q;      // seeking
  logic [7:0] walk_left_q;
  logic in_this;
  logic nxt_q;               // P_NEXT: the answer is here
  logic local_q;             // a local operation was done in this visit: its completion takes another one
  assign local_half_o = hdr_q;
  assign local_line_o = line_q;

  // The first record that does not end before una.
  assign in_this = rec_i.kind != KIND_LOCAL && !rec_past_i;

  always_comb begin
    state_d      = state_q;
    done_o       = 1'b0;
    again_o      = 1'b0;
    failed_o     = 1'b0;
    upd_o            = upd_sent;
    upd_o.seek       = 1'b0;
    upd_o.sent       = 1'b0;
    upd_o.fail       = 1'b0;
    look_o       = '{valid: 1'b0, resp: 1'b0, want: 1'b1, wqe: sec.snd_wqe};
    fetch_o      = '{valid: 1'b0, want: 1'b1};
    rd_o         = '{valid: 1'b0, line: line_q, beat: 7'(beat_q)};
    walk_o       = '{start: 1'b0, mode: WALK_SUM, line: line_q, nsge: wqe.num_sge[4:0], off: sec.snd_off, len: pl.is_read ? pl.left : 32'(pl.n), access: '0};
    rec_rd_o     = 1'b0;
    rec_idx_o    = walk_rec_q;
    rec_append_o = 1'b0;
    push_o       = 1'b0;
    drop_o       = 1'b0;
    resent_o     = 1'b0;
    local_start_o = 1'b0;
    fail         = 1'b0;
    fail_status  = WC_STATUS_LOC_QP_OP_ERR;
    fail_vendor  = VENDOR_ERR_NONE;
    case (state_q)
      P_IDLE: if (start_i) state_d = ((sec.resync || behind) && !sec.halted && !sec.rem_fail && !sec.timer.rnr_wait) ? P_SEEK : P_GATE;
      P_SEEK: begin
        rec_rd_o = 1'b1;
        state_d  = P_SEEK2;
        if (walk_left_q == '0) begin
          // Nothing is outstanding: on with the first WQE that was never sent.
          upd_o.seek = 1'b1;
          rec_rd_o   = 1'b0;
          state_d    = P_GATE;
        end
      end
      P_SEEK2:
      if (rec_here_i) begin
        state_d = P_SEEK;
        if (in_this) begin
          upd_o.seek = 1'b1;
          state_d    = P_GATE;
        end
      end
      P_GATE: begin
        look_o.valid = 1'b1;
        state_d      = P_LOOK;
        if (!allowed) begin
          look_o.valid = 1'b0;
          done_o       = 1'b1;
          state_d      = P_IDLE;
        end else if (!rtype) begin
          look_o.valid = 1'b0;
          fail         = 1'b1;
        end else if (pl.fresh && (sec.count >= 8'(MaxRecords) || (sec.alone && sec.count != '0))) begin
          look_o.valid = 1'b0;
          done_o       = 1'b1;
          state_d      = P_IDLE;
        end else if (pl.fresh && !rec_avail_i) begin
          look_o.valid = 1'b0;
          done_o       = 1'b1;
          again_o      = 1'b1;
          state_d      = P_IDLE;
        end
      end
      P_LOOK: begin
        if (CheckFetch && look_i.hit && look_i.err != DMA_ERR_OK) begin
          fail        = 1'b1;
          fail_vendor = 8'(look_i.err);
        end else if (look_i.hit) begin
          rd_o    = '{valid: 1'b1, line: look_i.line, beat: '0};
          state_d = P_HDR;
        end else begin
          // Fetched, or being fetched: the cache names the QP when it is here. Else try again.
          fetch_o.valid = look_i.room;
          again_o       = !look_i.room && !look_i.pend;
          done_o        = 1'b1;
          state_d       = P_IDLE;
        end
      end
      P_HDR: begin
        rd_o.valid = 1'b1;
        if (32'(beat_q) == HdrBeats) begin
          rd_o.valid = 1'b0;
          state_d    = P_PARSE;
        end
      end
      P_PARSE: begin
        state_d = P_LEN;
        if (CheckFormat && pl.bad) begin
          fail = 1'b1;
        end else if (Fence && pl.fresh && wqe.fence && (pl.is_local ? sec.count != '0 : sec.rd_cnt != '0)) begin
          done_o  = 1'b1;   // woken when the READs and atomics (before a local operation: all) have completed
          state_d = P_IDLE;
        end else if (pl.is_local && !pl.fresh) begin
          upd_o.sent = 1'b1;   // done before what is now sent again
          state_d    = P_NEXT;
        end else if (pl.is_local) begin
          local_start_o = hot_ok_i;
          done_o        = !hot_ok_i;
          again_o       = !hot_ok_i;
          state_d       = hot_ok_i ? P_LOCAL : P_IDLE;
        end else if (LimitReads && pl.fresh && pl.is_read && 8'(sec.rd_cnt) >= v.ctx.path.max_rd_atomic) begin
          done_o  = 1'b1;
          state_d = P_IDLE;
        end else if (pl.is_cmp) begin
          rd_o    = '{valid: 1'b1, line: line_q, beat: 7'(CmpBeat)};
          state_d = P_CMP;
        end else if ((pl.first || pl.is_read) && !inl) begin
          walk_o.start = 1'b1;
          state_d      = P_SUM;
        end
      end
      P_CMP: begin
        walk_o.start = 1'b1;
        state_d      = P_SUM;
      end
      P_SUM: if (walk_i.done) state_d = P_LEN;
      P_LEN: begin
        state_d = P_PLAN;
        if (CheckLength && (len_q[35:32] != '0 || (len_q[31] && len_q[30:0] != '0) || (CheckResult && pl.is_atomic && len_q < 36'(AtomicBytes)))) begin
          fail        = 1'b1;
          fail_status = WC_STATUS_LOC_LEN_ERR;
        end else if (none_left && !pl.first) begin
          fail = 1'b1;      // the host changed a WQE that is being sent
        end
      end
      P_PLAN: begin
        state_d = P_PUSH;
        if (pl.fresh && !pl.is_small && sec.count != '0) begin
          done_o  = 1'b1;   // woken by the acknowledge of what is before it
          state_d = P_IDLE;
        end else if (pl.is_read && pl.left != '0) begin
          walk_o.start  = 1'b1;
          walk_o.mode   = WALK_CHECK;
          walk_o.access = SinkAccess;
          state_d       = P_WALK;
        end else if (pl.n != '0) begin
          walk_o.start = 1'b1;
          walk_o.mode  = inl ? WALK_INLINE : WALK_PIECES;
          state_d      = P_WALK;
        end
      end
      P_WALK:
      if (walk_i.done) begin
        state_d = P_PUSH;
        if (CheckKeys && walk_i.err != MR_ERR_OK) begin
          fail        = 1'b1;
          fail_status = WC_STATUS_LOC_PROT_ERR;
          fail_vendor = 8'h10 | 8'(walk_i.err);
        end
      end
      P_PUSH: begin
        if (hot_ok_i) begin
          push_o       = 1'b1;
          upd_o.sent   = 1'b1;
          rec_append_o = pl.fresh;
          resent_o     = pl.sent_before;
          state_d      = P_NEXT;
        end else begin
          drop_o  = 1'b1;
          done_o  = 1'b1;
          again_o = 1'b1;
          state_d = P_IDLE;
        end
      end
      P_LOCAL:
      if (local_done_i) begin
        if (local_status_i != WC_STATUS_SUCCESS) begin
          fail        = 1'b1;
          fail_status = local_status_i;
          fail_vendor = local_vendor_i;
        end else if (hot_ok_i) begin
          upd_o.sent   = 1'b1;
          rec_append_o = 1'b1;
          state_d      = P_NEXT;
        end else begin
          done_o  = 1'b1;
          again_o = 1'b1;
          state_d = P_IDLE;
        end
      end
      default: begin  // P_NEXT; snd_wqe is the next packet's WQE by now
        // Of a life that is over the producer index is not known any more: nothing is read beyond it.
        look_o.valid = prefetch && !nxt_q && hot_ok_i;
        look_o.wqe   = next_wqe;
        look_o.want  = 1'b0;
        if (nxt_q || !look_o.valid) begin
          fetch_o.valid = nxt_q && look_i.room && hot_ok_i;
          fetch_o.want  = 1'b0;
`ifdef RNIC_CUT_SEND_STAY
          if (1'b0) begin
`else
          if (more_i && hot_ok_i && has_work(sec, v.prod)) begin
`endif
            if (room_i) state_d = pl.first ? P_GATE : P_PLAN;
          end else begin
            done_o  = 1'b1;
            again_o = has_work(sec, v.prod) || local_q;
            state_d = P_IDLE;
          end
        end
      end
    endcase
    if (fail) begin
      upd_o.fail = 1'b1;
      drop_o     = 1'b1;
      done_o     = 1'b1;
      failed_o   = 1'b1;
      state_d    = P_IDLE;
    end
    upd_o.loc_status = fail_status;
    upd_o.loc_vendor = fail_vendor;
    // What only a packet that was sent changes.
    upd_o.top   = upd_sent.top && upd_o.sent;
    upd_o.timed = upd_sent.timed && upd_o.sent;
    upd_o.fresh = upd_sent.fresh && upd_o.sent;
    if (state_q == P_SEEK) begin
      upd_o.snd_wqe  = sec.fresh;
      upd_o.snd_off  = '0;
    end else if (state_q == P_SEEK2) begin
      upd_o.snd_wqe  = rec_i.wqe;
      upd_o.snd_off  = rec_off_i;
      upd_o.msg_len  = rec_i.len;
    end
    // (With nothing outstanding una is top.)
    if (state_q inside {P_SEEK, P_SEEK2}) upd_o.next_psn = sec.una_psn;
  end

  always_ff @(posedge clk_i) begin
    if (rst_i) state_q <= P_IDLE;
    else state_q <= state_d;
    nxt_q <= state_q == P_NEXT && look_o.valid;
    if (state_q == P_IDLE) local_q <= 1'b0;
    else if (state_q == P_LOCAL && local_done_i) local_q <= 1'b1;
    case (state_q)
      P_IDLE: begin
        walk_rec_q  <= sec.head;
        walk_left_q <= sec.count;
      end
      P_SEEK2:
      if (rec_here_i) begin
        walk_rec_q  <= rec_next_i;
        walk_left_q <= walk_left_q - 8'd1;
      end
      P_LOOK: begin
        line_q <= look_i.line;
        beat_q <= 3'd1;
      end
      P_HDR: begin
        beat_q <= beat_q + 3'd1;
        if (HdrBeats == 1) hdr_q <= 256'(rd_data_i);
        else hdr_q <= 256'({rd_data_i, hdr_q} >> DataW);
      end
      P_PARSE: len_q <= inl ? 36'(wqe.inline_length[9:0]) : 36'(sec.msg_len);   // (what is longer is bad)
      P_CMP: compare_q <= 64'(rd_data_i >> CmpShift);
      P_SUM: if (walk_i.done) len_q <= walk_i.sum;
      P_LEN: begin
        more_q <= psn_t'(pl.left[31:7] >> v.ctx.hot.mtu);   // (one less)
        step_q <= psn_t'(pl.left[31:7] >> v.ctx.hot.mtu);
      end
      default: ;
    endcase
    // (Of a local operation both stay 0.)
    if (state_q == P_HDR || (state_q == P_LEN && (none_left || pl.is_atomic))) more_q <= '0;
    if (state_q == P_HDR || (state_q == P_LEN && (none_left || pl.is_atomic || !pl.is_read))) step_q <= '0;
    // Of a longer element an atomic fills the first bytes.
    if (state_q == P_LEN && pl.is_atomic) len_q <= 36'(AtomicBytes);
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      if (start_i) a_idle : assert (state_q == P_IDLE);
      if (state_q == P_SEEK && upd_o.seek) a_nothing_outstanding : assert (sec.una_psn == sec.top_psn);
      if (push_o && pl.fresh) a_record : assert (rec_avail_i && 32'(sec.count) < InflightCap);
      if (push_o) a_window : assert (psn_t'((upd_o.top ? upd_o.next_psn : sec.top_psn) - sec.una_psn) <= 24'h800000);
    end
  end

`ifdef FORMAL_SEND_PKT
`include "rnic_send_pkt.svh"
`endif
endmodule
