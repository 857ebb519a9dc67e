// SPDX-License-Identifier: Apache-2.0
// Handles one response of the visited QP: ACK, NAK, RNR NAK, a packet of READ data, or the result of an atomic (whose data
// stands in the descriptor: it goes the way of a payload of 8 bytes).
// Contract: start_i is a pulse; desc_i is steady until done_o. visit_i is steady but for its section, which is what the owner makes
// of upd_o: what happened, in the cycle in which it is told. done_o pulses with the outcome: stall_o: the READ's WQE is being fetched, nothing was done, come again when
// it is here; otherwise the descriptor is consumed, and every packet with payload (or with push_value_o) has made one push_o to the place
// unit (which has room when this starts). Bytes are pushed only when opcode, PSN, length and all keys were judged.
module rnic_send_resp
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
  import rnic_send_pkg::*;
#(
    parameter int unsigned DataW = 64,
    parameter int unsigned QpIdxW = 10
) (
    input  logic             clk_i,
    input  logic             rst_i,
    input  logic             start_i,
    input  visit_t           visit_i,
    input  rx_desc_t         desc_i,
    input  port_cfg_t        port_cfg_i,
    output logic             busy_o,
    output logic             done_o,
    output logic             stall_o,
    output resp_upd_t        upd_o,
    output look_req_t        look_o,
    // This unit needs a part of these.
    // verilator lint_off UNUSEDSIGNAL
    input  look_res_t        look_i,
    output fetch_req_t       fetch_o,
    output logic             kill_o,
    output line_rd_t         rd_o,
    input  logic [DataW-1:0] rd_data_i,
    output walk_req_t        walk_o,
    input  walk_res_t        walk_i,
    output logic             rec_rd_o,
    output rec_idx_t         rec_idx_o,
    input  rec_t             rec_i,
    // verilator lint_on UNUSEDSIGNAL
    input  psn_t             rec_at_i,         // packets of its message before this one
    input  logic [31:0]      rec_off_i,        // and their bytes
    input  rec_idx_t         rec_next_i,
    input  logic             rec_here_i,
    output logic             push_o,
    output logic             push_discard_o,
    output logic             push_notify_o,
    output logic             push_value_o,     // the 8 bytes beside it instead of a received payload
    output wqe_idx_t         push_wqe_o,
    output cnt_t             cnt_o
);
`ifdef RNIC_CUT_READ_SINK_KEYS
  localparam bit SinkKeys = 1'b0;
`else
  localparam bit SinkKeys = 1'b1;
`endif

  typedef enum logic [3:0] {
    A_IDLE,
    A_CHECK,    // is it for us? what is it?
    A_JUDGE,    // opcode and length against the oldest READ's record; look up its WQE
    A_LOOK,     // in the lines of the send side?
    A_LOOK2,    // in those of the response side? if not, fetch
    A_HDR,      // number of SGEs
    A_WALK,     // keys and places
    A_TAKE,     // take it: section, payload
    A_NEXT,     // READ complete: which is the next?
    A_NEXT2,
    A_DROP      // consume, throw the payload away
  } state_e;
  state_e state_q, state_d;

  // the structs are shared; this unit needs a part of them.
  // verilator lint_off UNUSEDSIGNAL
  visit_t v;
  rx_desc_t d;
  opcode_info_t info;
  logic [DataW-1:0] beat;
  sq_sec_t sec;
  // verilator lint_on UNUSEDSIGNAL
  assign v    = visit_i;
  assign d    = desc_i;
  assign info = opcode_info(desc_i.opcode);
  assign sec  = visit_i.sec;
  assign beat = rd_data_i;

  logic refused;
  cnt_t refused_cnt;
  rnic_send_admit #(.QpIdxW(QpIdxW)) u_admit (.visit_i, .desc_i, .port_cfg_i, .refused_o(refused), .cnt_o(refused_cnt));

  // ---------------------------------------------------------------- where it stands in the window
  // Distances stay below 2^23 (the longest window is as long): their signs tell.
  // verilator lint_off UNUSEDSIGNAL
  psn_t ahead, beyond, to_read;
  // verilator lint_on UNUSEDSIGNAL
  logic in_window, at_read, past_read;
  assign ahead     = d.psn - sec.una_psn;
  assign beyond    = d.psn - sec.top_psn;
  assign to_read   = sec.rd_psn - d.psn;
`ifdef RNIC_CUT_PSN_WINDOW
  assign in_window = 1'b1;
`else
  assign in_window = !ahead[23] && beyond[23];
`endif
  assign at_read   = sec.rd_cnt != '0 && d.psn == sec.rd_psn;
  assign past_read = sec.rd_cnt != '0 && to_read[23];

  logic is_ack, is_rnr, is_nak, with_data;
  assign with_data = info.is_read_resp || info.is_atomic_ack;
  assign is_ack = d.syndrome[7:5] == 3'b000;
  assign is_rnr = d.syndrome[7:5] == 3'b001;
  assign is_nak = d.syndrome[7:5] == 3'b011 && d.syndrome[4:0] <= 5'd3;

  // A READ before it that has no answer: its response is lost (implied NAK), and what is before that is acknowledged.
  logic lost_read, after, moved, lost_retry;
  psn_t ack_psn;
  logic [2:0] rnr_tries;
  assign lost_read  = past_read || (info.is_ack && at_read && is_ack);
  // An ACK, and data that is taken, acknowledge the PSN itself; else what is before it.
  assign after      = (info.is_ack && is_ack) || state_q == A_TAKE;
  assign ack_psn    = (lost_read ? sec.rd_psn : d.psn) + psn_t'(!lost_read && after);
  assign moved      = ack_psn != sec.una_psn;
  assign lost_retry = !sec.rd_lost || moved;
  assign rnr_tries  = moved ? 3'd0 : sec.rnr_tries;

  // ---------------------------------------------------------------- READ data
  pay_len_t mtu;
  pay_len_t left;              // (of the message from this packet on, in its last one: no more than the packet)
  logic last_pkt, bad_resp;
  assign mtu      = mtu_bytes(v.ctx.hot.mtu);
  assign left     = rec_i.len[12:0] - rec_off_i[12:0];
  assign last_pkt = d.psn == rec_i.last;
  always_comb begin
    bad_resp = 1'b0;
    if (is_atomic(rec_i.kind) != info.is_atomic_ack) bad_resp = 1'b1;
    if (last_pkt != (info.last || info.only)) bad_resp = 1'b1;
    if (sec.rd_phase == RD_FIRST && !(info.first || info.only)) bad_resp = 1'b1;
    if (sec.rd_phase == RD_MORE && !(info.middle || info.last)) bad_resp = 1'b1;
    if (!info.is_atomic_ack && d.payload_len != (last_pkt ? left : mtu)) bad_resp = 1'b1;
`ifdef RNIC_CUT_BAD_RESP
    bad_resp = 1'b0;
`endif
  end

  logic [4:0] nsge_q;
  logic [7:0] nsge_raw;
  line_idx_t line_q;
  logic resp_line_q;           // the WQE stands in a line of the response side
  logic pieces_q;              // pieces were given
  rec_idx_t walk_rec_q;
  assign nsge_raw = beat[23:16];
  assign busy_o   = state_q != A_IDLE;

  always_comb begin
    state_d        = state_q;
    done_o         = 1'b0;
    stall_o        = 1'b0;
    upd_o            = '0;
    upd_o.ack_psn    = ack_psn;
    upd_o.rem_status = WC_STATUS_BAD_RESP_ERR;
    upd_o.loc_wqe    = rec_i.wqe;
    upd_o.loc_status = WC_STATUS_LOC_PROT_ERR;
    upd_o.loc_vendor = 8'h10 | 8'(walk_i.err);
    upd_o.answered   = last_pkt;
    upd_o.rd_rec     = walk_rec_q;
    upd_o.rd_psn     = rec_i.first;
    look_o         = '{valid: 1'b0, resp: 1'b0, want: 1'b0, wqe: rec_i.wqe};
    fetch_o        = '{valid: 1'b0, want: 1'b1};
    kill_o         = 1'b0;
    rd_o           = '{valid: 1'b0, line: look_i.line, beat: '0};
    walk_o         = '{start: 1'b0, mode: WALK_PIECES, line: line_q, nsge: nsge_q, off: rec_off_i, len: info.is_atomic_ack ? 32'd8 : 32'(d.payload_len),
                       access: 4'b1 << ACCESS_LOCAL_WRITE};
    rec_rd_o       = 1'b0;
    rec_idx_o      = sec.rd_rec;
    push_o         = 1'b0;
    push_discard_o = 1'b0;
    push_notify_o  = 1'b0;
    push_value_o   = info.is_atomic_ack;
    push_wqe_o     = rec_i.wqe;
    cnt_o          = '0;
    case (state_q)
      A_IDLE: if (start_i) state_d = A_CHECK;
      A_CHECK: begin
        state_d = A_DROP;
        if (refused) begin
          cnt_o = refused_cnt;
        end else if (info.is_ack) begin
          cnt_o[COUNTER_ID_RX_ACKS]           = is_ack;
          cnt_o[COUNTER_ID_RX_RNR_NAKS]       = is_rnr;
          cnt_o[COUNTER_ID_RX_NAK_PSN_SEQ]    = d.syndrome == AETH_SYNDROME_NAK_PSN_SEQ;
          cnt_o[COUNTER_ID_RX_NAK_INV_REQ]    = d.syndrome == AETH_SYNDROME_NAK_INV_REQ;
          cnt_o[COUNTER_ID_RX_NAK_REM_ACCESS] = d.syndrome == AETH_SYNDROME_NAK_REM_ACCESS;
          cnt_o[COUNTER_ID_RX_NAK_REM_OP]     = d.syndrome == AETH_SYNDROME_NAK_REM_OP;
          cnt_o[COUNTER_ID_RX_GHOST_RESPONSES] = !(in_window && (is_ack || is_rnr || is_nak));
          if (in_window && lost_read && (is_ack || is_rnr || is_nak)) begin
`ifndef RNIC_CUT_IMPLIED_NAK
            upd_o.moved = moved;
            upd_o.retry = lost_retry;
            upd_o.lost  = 1'b1;
`endif
          end else if (in_window && (is_ack || is_rnr || is_nak)) begin
            upd_o.moved = moved;
            if (is_rnr) begin
              upd_o.rem_status = WC_STATUS_RNR_RETRY_EXC_ERR;
`ifndef RNIC_CUT_RNR_LIMIT
              upd_o.rem_fail   = rnr_tries >= v.ctx.path.rnr_retry && v.ctx.path.rnr_retry != 3'd7;
`endif
              upd_o.rnr        = !upd_o.rem_fail;
`ifndef RNIC_CUT_RNR_WAIT
              upd_o.rnr_wait   = 1'b1;
`endif
            end else if (is_nak && d.syndrome == AETH_SYNDROME_NAK_PSN_SEQ) begin
`ifndef RNIC_CUT_SEQ_NAK
              upd_o.retry = 1'b1;
`endif
            end else if (is_nak) begin
              upd_o.rem_fail   = 1'b1;
              upd_o.rem_status = (d.syndrome == AETH_SYNDROME_NAK_INV_REQ) ? WC_STATUS_REM_INV_REQ_ERR :
                  (d.syndrome == AETH_SYNDROME_NAK_REM_ACCESS) ? WC_STATUS_REM_ACCESS_ERR : WC_STATUS_REM_OP_ERR;
            end
          end
        end else if (with_data && in_window && at_read) begin
          rec_rd_o = 1'b1;
          state_d  = A_JUDGE;
        end else begin
          // Nothing waits for it; data behind a gap tells that the packets before it are lost.
          if (with_data && in_window && past_read) begin
            upd_o.moved = moved;
            upd_o.retry = lost_retry;
            upd_o.lost  = 1'b1;
          end
          cnt_o[COUNTER_ID_RX_GHOST_RESPONSES] = 1'b1;
        end
      end
      A_JUDGE:
      if (rec_here_i) begin
        if (bad_resp) begin
          upd_o.moved    = moved;
          upd_o.rem_fail = 1'b1;
          state_d        = A_DROP;
        end else if (d.payload_len == '0 && !info.is_atomic_ack) begin
          state_d = A_TAKE;
        end else begin
          look_o.valid = 1'b1;
          state_d      = A_LOOK;
        end
      end
      A_LOOK: begin
        if (look_i.hit) begin
          rd_o.valid = 1'b1;
          state_d    = A_HDR;
        end else begin
          look_o.valid = 1'b1;
          look_o.resp  = 1'b1;
          state_d      = A_LOOK2;
        end
      end
      A_LOOK2: begin
        if (look_i.hit) begin
          rd_o.valid = 1'b1;
          state_d    = A_HDR;
        end else begin
          fetch_o.valid = look_i.room;
          stall_o       = 1'b1;
          done_o        = 1'b1;
          state_d       = A_IDLE;
        end
      end
      A_HDR: begin
        state_d      = A_WALK;
        walk_o.start = 1'b1;
        walk_o.line  = look_i.line;
        walk_o.nsge  = (nsge_raw > 8'(sge_slots(v.ctx.create.log_sq_stride))) ? sge_slots(v.ctx.create.log_sq_stride) : nsge_raw[4:0];
        if (look_i.err != DMA_ERR_OK) begin
          walk_o.start     = 1'b0;
          kill_o           = resp_line_q;
          upd_o.moved      = moved;
          upd_o.loc_fail   = 1'b1;
          upd_o.loc_status = WC_STATUS_LOC_QP_OP_ERR;
          upd_o.loc_vendor = 8'(look_i.err);
          state_d          = A_DROP;
        end
      end
      A_WALK:
      if (walk_i.done) begin
        state_d = A_TAKE;
        if (SinkKeys && walk_i.err != MR_ERR_OK) begin
          upd_o.moved    = moved;
          upd_o.loc_fail = 1'b1;
          state_d        = A_DROP;
        end
      end
      A_TAKE: begin
        push_o        = pieces_q;
        push_notify_o = last_pkt;
        kill_o        = last_pkt && resp_line_q;
        upd_o.moved   = moved;
        upd_o.taken   = 1'b1;
        if (last_pkt && sec.rd_cnt != 5'd1) begin
          state_d = A_NEXT;
        end else begin
          done_o  = 1'b1;
          state_d = A_IDLE;
        end
      end
      A_NEXT: begin
        rec_rd_o  = 1'b1;
        rec_idx_o = walk_rec_q;
        state_d   = A_NEXT2;
      end
      A_NEXT2:
      if (rec_here_i) begin
        state_d = A_NEXT;
        if (has_response(rec_i.kind)) begin
          upd_o.rd_next = 1'b1;
          done_o        = 1'b1;
          state_d       = A_IDLE;
        end
      end
      default: begin  // A_DROP
        push_o         = d.payload_len != '0 || (info.is_atomic_ack && pieces_q);
        push_discard_o = 1'b1;
        done_o         = 1'b1;
        state_d        = A_IDLE;
      end
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (rst_i) state_q <= A_IDLE;
    else state_q <= state_d;
    case (state_q)
      A_IDLE: begin
        pieces_q    <= 1'b0;
        resp_line_q <= 1'b0;
      end
      A_LOOK2: resp_line_q <= 1'b1;
      A_HDR: begin
        line_q   <= look_i.line;
        nsge_q   <= walk_o.nsge;
        pieces_q <= 1'b1;
      end
      A_TAKE: walk_rec_q <= rec_next_i;
      A_NEXT2: if (rec_here_i) walk_rec_q <= rec_next_i;
      default: ;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      if (start_i) a_idle : assert (state_q == A_IDLE);
      if (state_q == A_JUDGE && rec_here_i && last_pkt) a_left : assert (rec_i.len - rec_off_i <= 32'(mtu));
      if (state_q == A_JUDGE && rec_here_i) a_record : assert (has_response(rec_i.kind) && rec_at_i <= psn_t'(rec_i.last - rec_i.first));
    end
  end
endmodule
