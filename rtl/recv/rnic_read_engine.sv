// SPDX-License-Identifier: Apache-2.0
// READ engine: answers the READs that the responder has accepted, one response packet per visit, QPs in turn. The only
// writer of the progress sections. Results of atomics, which the responder has executed, are sent in their turn among them.
// Contract: push_i writes a slot (never refused: the responder looks at the progress first) and wakes the QP. A visit looks
// up the key for its own part, hands over job and pieces, and commits; empty_valid_o tells that no slot of a QP is left, after all
// its jobs were handed over. The progress at
// look_idx_i, taken while look_read_i is high, stands two cycles later and follows every change until the next one. The responder's section tells how many
// were pushed: head_i, a cycle after head_ready_i. A key that has gone replaces the response
// by NAK 0x62, a page list that cannot be read by NAK 0x63; a payload that the host did not deliver (tx_err) is followed by NAK 0x63; both halt the QP, raise an event
// and ask for ERR. While drain_i is high no visit begins but for failed payloads; idle_o: nothing is under way.
// After each response the slot holds what is left of its READ: place, length, next PSN. A push in that cycle goes first,
// and so does what empty_hold_i stands for.
module rnic_read_engine
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned QpIdxW = 10,
    parameter int unsigned PtrW = 4                // log2 of slots per QP
) (
    input  logic         clk_i,
    input  logic         rst_i,
    input  logic         enable_i,
    input  logic         drain_i,
    output logic         idle_o,
    // control section
    output qp_idx_t      hot_idx_o,
    // verilator lint_off UNUSEDSIGNAL
    // (a part of the context is for others; indices are as wide as the largest table needs)
    input  qp_hot_t      hot_i,
    input  qp_ctx_t      cold_rsp_i,
    input  qp_idx_t      push_idx_i,
    input  qp_idx_t      look_idx_i,
    input  tx_err_t      tx_err_i,
    // verilator lint_on UNUSEDSIGNAL
    output logic         cold_req_valid_o,
    input  logic         cold_req_ready_i,
    output qp_idx_t      cold_req_idx_o,
    input  logic         cold_rsp_valid_i,
    // from the responder
    input  logic         push_i,
    input  logic [PtrW-1:0] push_ptr_i,            // slot
    input  logic         push_dup_i,
    input  logic         push_atomic_i,            // push_va_i is the result of an atomic
    input  psn_t         push_psn_i,
    input  logic [63:0]  push_va_i,
    input  logic [31:0]  push_rkey_i,
    input  logic [31:0]  push_len_i,               // (of an atomic: anything)
    input  logic [23:0]  push_msn_i,
    input  logic         look_read_i,
    output epoch_t       look_epoch_o,
    output logic         look_halted_o,
    output logic [PtrW:0] look_pop_o,
    output logic [PtrW:0] look_new_done_o,
    input  logic         head_ready_i,             // never beside look_read_i or a push
    output logic [QpIdxW-1:0] head_idx_o,
    input  epoch_t       head_epoch_i,
    input  logic [PtrW:0] head_push_i,
    output logic         empty_valid_o,
    output logic [QpIdxW-1:0] empty_idx_o,
    input  logic         empty_hold_i,             // not in this cycle
    // transmit
    output logic         job_valid_o,
    input  logic         job_ready_i,
    output tx_job_t      job_o,
    output logic         piece_valid_o,
    input  logic         piece_ready_i,
    output tx_piece_t    piece_o,
    input  logic         tx_err_valid_i,
    output logic         tx_err_ready_o,
    // services
    output logic         mr_req_valid_o,
    input  logic         mr_req_ready_i,
    output mr_req_t      mr_req_o,
    input  logic         mr_rsp_valid_i,
    input  mr_rsp_t      mr_rsp_i,
    output logic         eqe_valid_o,
    input  logic         eqe_ready_i,
    output eqe_req_t     eqe_o,
    output logic         qp_err_valid_o,           // held until granted
    input  logic         qp_err_ready_i,
    output qp_err_t      qp_err_o
);
  typedef struct packed {
    epoch_t      epoch;
    logic        halted;
    logic [PtrW:0] pop;        // READs and atomics answered
    logic [PtrW:0] new_done;   // of these, the ones that were no duplicates
  } sec_t;
  typedef struct packed {
    epoch_t      epoch;
    logic [PtrW:0] push;
  } head_t;
  typedef struct packed {
    logic        dup;
    logic        atomic;
    logic        begun;        // its first response was handed over
    psn_t        psn;          // of the next response
    logic [63:0] va;           // what is left of it
    logic [31:0] len;
    logic [23:0] msn;
    logic [31:0] rkey;
  } slot_t;
  typedef enum logic [3:0] {
    StIdle,    // chooses a QP or a failed payload
    StLoad,    // section, head and hot word are being read
    StLook,    // the hot word is here: its epoch tells whether the section is of this life
    StSlot,    // the oldest slot is being read; waits for the context
    StPart,    // cuts the packet
    StKey,     // asks for the key
    StKeyAns,  // waits for the answer
    StCheck,   // life and state, as they are now
    StJob,     // hands over the response
    StPiece,   // and its payload
    StCommit,  // section is written
    StFail,    // likewise, halted
    StNak,     // hands over the NAK
    StEvent,   // error event
    StErr      // asks for ERR
  } state_e;
  state_e state_q, state_d;

  // ---------------------------------------------------------------- which QP
  logic pick_valid, begin_pick, begin_err, again;
  logic [QpIdxW-1:0] pick_idx, idx;
  qp_idx_t idx_q;
  logic err_q;                 // the visit is for a failed payload
  psn_t err_psn_q;
  assign begin_err      = state_q == StIdle && tx_err_valid_i;
  assign begin_pick     = state_q == StIdle && !tx_err_valid_i && pick_valid && enable_i && !drain_i;
  assign tx_err_ready_o = state_q == StIdle;
  assign idle_o         = state_q == StIdle;
  assign idx            = idx_q[QpIdxW-1:0];
  rnic_pend_set #(.IdxW(QpIdxW), .NumSet(1)) u_pend (
      .clk_i, .rst_i, .set_valid_i(again || push_i), .set_idx_i(push_i ? push_idx_i[QpIdxW-1:0] : idx),
      .pick_valid_o(pick_valid), .pick_ready_i(begin_pick), .pick_idx_o(pick_idx)
  );

  // ---------------------------------------------------------------- sections, heads and slots
  // Beside each section stands the MSN of the READ begun last, for a payload that fails later.
  localparam int unsigned WordW = ($bits(sec_t) > 24) ? $bits(sec_t) : 24;
  logic sec_we, msn_we, slot_we, step;
  sec_t sec_raw, s_q, n;
  head_t head;
  slot_t slot_in, slot;
  // verilator lint_off UNUSEDSIGNAL
  slot_t slot_rest;            // (what changes is written)
  // verilator lint_on UNUSEDSIGNAL
  logic [WordW-1:0] word;
  logic [QpIdxW-1:0] look_idx;
  assign look_idx = look_idx_i[QpIdxW-1:0];
  rnic_ram #(.Width(WordW), .Depth(2 << QpIdxW), .Bypass(1'b0)) u_sections (
      .clk_i, .we_i(sec_we || msn_we), .waddr_i({idx, msn_we}), .wdata_i(msn_we ? WordW'(slot.msn) : WordW'(n)),
      .re_i(1'b1), .raddr_i(look_read_i ? {look_idx, 1'b0} : {idx, state_q == StSlot}), .rdata_o(word)
  );
  assign sec_raw = sec_t'(word);
  // What the responder looks at.
  logic look_new, look_read_q;               // it is being written; it was read
  sec_t look_q;
  assign look_new = sec_we && idx == look_idx;
  always_ff @(posedge clk_i) begin
    look_read_q <= look_read_i && !look_new;
    if (look_new || look_read_q) look_q <= look_new ? n : sec_raw;
  end
  assign {look_epoch_o, look_halted_o, look_pop_o, look_new_done_o} = look_q;
  // (the responder writes its section a cycle after a push, and then no READ is read)
  assign head_idx_o = idx;
  assign head       = '{epoch: head_epoch_i, push: head_push_i};
  // The slot that is read is written by nobody else: a QP has no more pushes than slots.
  assign slot_in = '{
      dup: push_dup_i, atomic: push_atomic_i, begun: 1'b0, psn: push_psn_i, va: push_va_i, rkey: push_rkey_i, len: push_len_i, msn: push_msn_i
  };
  assign slot_we = push_i || step;
  // What no response changes stands apart, and only a push writes it: three columns of block RAM and seven for the rest.
  localparam int unsigned FixW = 54;
  logic [$bits(slot_t)-FixW-1:0] slot_top;
  logic [FixW-1:0] slot_fix;
  logic [QpIdxW+PtrW-1:0] slot_at, slot_waddr;
  assign slot_at    = {idx, s_q.pop[PtrW-1:0]};
  assign slot_waddr = push_i ? {push_idx_i[QpIdxW-1:0], push_ptr_i} : slot_at;
  assign slot       = slot_t'({slot_top, slot_fix});
  rnic_ram #(.Width(FixW), .Depth(1 << (QpIdxW + PtrW)), .Bypass(1'b0)) u_slots_fix (
      .clk_i, .we_i(push_i), .waddr_i({push_idx_i[QpIdxW-1:0], push_ptr_i}), .wdata_i(slot_in[FixW-1:0]),
      .re_i(state_q == StSlot), .raddr_i(slot_at), .rdata_o(slot_fix)
  );
  rnic_ram #(.Width($bits(slot_t) - FixW), .Depth(1 << (QpIdxW + PtrW)), .Bypass(1'b0)) u_slots (
      .clk_i, .we_i(slot_we), .waddr_i(slot_waddr), .wdata_i(push_i ? slot_in[$bits(slot_t)-1:FixW] : slot_rest[$bits(slot_t)-1:FixW]),
      .re_i(state_q == StSlot), .raddr_i(slot_at), .rdata_o(slot_top)
  );
  // Taken when the hot word is here: it tells whether they are of this life.
  epoch_t epoch_q;
  logic [PtrW:0] push_q;
  sec_t s_now;
  always_comb begin
    s_now = sec_raw;
    if (sec_raw.epoch != hot_i.epoch) begin
      s_now       = '0;
      s_now.epoch = hot_i.epoch;
    end
  end
  always_ff @(posedge clk_i) begin
    if (state_q == StLook) begin
      s_q    <= s_now;
      push_q <= (head.epoch == hot_i.epoch) ? head.push : '0;
    end
  end

  logic serving, live;
  assign serving = hot_i.state == QP_STATE_RTR || hot_i.state == QP_STATE_RTS || hot_i.state == QP_STATE_SQD || hot_i.state == QP_STATE_SQE;
  assign live    = hot_i.valid && hot_i.epoch == epoch_q && serving && !s_q.halted;

  // ---------------------------------------------------------------- the packet
  gen_t gen_q;
  logic [2:0] mtu_q;
  logic [15:0] pd_q;
  pay_len_t mtu, part, part_q;
  logic first_q, last_q;
  logic [63:0] addr_q, addr2_q;              // of its bytes, and of those in the next page
  pay_len_t len_q, want, got;                // in the first page; asked for; found
  logic more_q, list_err_q;                  // the packet goes on in the next page; its page list could not be read
  logic last;
  assign mtu  = mtu_bytes(mtu_q);
  assign last = slot.atomic || (slot.len[31:13] == '0 && slot.len[12:0] <= mtu);
  assign part = slot.atomic ? '0 : last ? pay_len_t'(slot.len) : mtu;
  // The place of the next look-up; and when the response is out, of what is left.
  logic [63:0] va;
  pay_len_t further;
  assign further = (state_q == StCommit) ? part_q : more_q ? len_q : '0;
  assign va      = slot.va + 64'(further);
  always_comb begin
    slot_rest       = slot;
    slot_rest.begun = 1'b1;
    slot_rest.psn   = slot.psn + psn_t'(1);
    slot_rest.va    = va;
    slot_rest.len   = slot.len - 32'(part_q);
  end
  assign mr_req_valid_o = state_q == StKey;
  assign mr_req_o = '{key: slot.rkey, va: va, len: 32'(want), pd: pd_q,
      qpn: make_qpn(gen_q, idx_q, QpIdxW), access: 4'(1 << ACCESS_REMOTE_READ), judge: 1'b0};
  // A page has room for a packet, so that two pieces are enough.
  assign want = more_q ? part_q - len_q : part_q;
`ifdef RNIC_CUT_READ_PAGE
  assign got  = want;
`else
  assign got  = (mr_rsp_i.room < want) ? mr_rsp_i.room : want;
`endif

  logic key_ok;
`ifdef RNIC_CUT_READ_KEY
  assign key_ok = 1'b1;
`else
  assign key_ok = mr_rsp_i.err == MR_ERR_OK;
`endif

  logic [7:0] synd_q;          // of the NAK
  logic [23:0] msn_q;
  always_comb begin
    n = s_q;
    if (state_q == StFail) begin
      n.halted = 1'b1;
    end else begin
      n.pop      = s_q.pop + (PtrW + 1)'(last_q);
      n.new_done = s_q.new_done + (PtrW + 1)'(last_q && !slot.dup);
    end
  end
  logic committed;
  assign committed     = state_q == StCommit && !push_i && !empty_hold_i;
  assign step          = committed && !last_q;
  assign msn_we        = state_q == StCheck && live;
  assign sec_we        = committed || (state_q == StFail && live);
  assign again         = committed && n.pop != push_q;
  assign empty_valid_o = committed && n.pop == push_q;
  assign empty_idx_o   = idx;

  always_comb begin
    job_o             = '0;
    job_o.qp_idx      = idx_q;
    // A READ that a NAK answers is not completed.
    job_o.msn         = ((err_q && state_q == StNak) ? msn_q : slot.msn) - 24'(state_q == StNak);
    job_o.rkey        = slot.rkey;       // for rnic_resp_tx
    job_o.syndrome    = AETH_SYNDROME_ACK_NO_CREDIT;
    job_o.psn         = slot.psn;
    job_o.payload_len = part_q;
    if (first_q) job_o.opcode = last_q ? OPC_RC_READ_RESP_ONLY : OPC_RC_READ_RESP_FIRST;
    else job_o.opcode = last_q ? OPC_RC_READ_RESP_LAST : OPC_RC_READ_RESP_MIDDLE;
    if (slot.atomic) job_o.opcode = OPC_RC_ATOMIC_ACK;
    job_o.swap_add    = slot.va;
    if (state_q == StNak) begin
      job_o.opcode      = OPC_RC_ACKNOWLEDGE;
      job_o.payload_len = '0;
      job_o.syndrome    = synd_q;
      if (err_q) job_o.psn = err_psn_q;
    end
  end
  assign job_valid_o   = state_q == StJob || state_q == StNak;
  assign piece_valid_o = state_q == StPiece;
  logic second_q;
  assign piece_o       = second_q ? '{addr: addr2_q, len: part_q - len_q, is_inline: 1'b0} : '{addr: addr_q, len: len_q, is_inline: 1'b0};

  assign hot_idx_o      = idx_q;
  assign cold_req_idx_o = idx_q;
  logic cold_asked_q, cold_here_q;
  logic worth;
  assign worth            = live && s_q.pop != push_q;
  assign cold_req_valid_o = state_q == StSlot && !err_q && !cold_asked_q && worth;

  assign qp_err_valid_o = state_q == StErr;
  assign qp_err_o       = '{idx: idx_q, epoch: epoch_q, to_sqe: 1'b0};
  assign eqe_valid_o    = state_q == StEvent;
  always_comb begin
    eqe_o            = '0;
    // No work request reports a payload that our own host did not deliver: QP_FATAL.
    eqe_o.event_type = (err_q || list_err_q) ? EVENT_TYPE_QP_FATAL : EVENT_TYPE_QP_ACCESS_ERR;
    eqe_o.number     = 32'(make_qpn(gen_q, idx_q, QpIdxW));
  end

  always_comb begin
    state_d = state_q;
    case (state_q)
      StIdle:   if (begin_err || begin_pick) state_d = StLoad;
      StLoad:   if (head_ready_i) state_d = StLook;
      StLook:   state_d = StSlot;
      StSlot: begin
`ifdef RNIC_CUT_READ_FAIL
        if (err_q) state_d = StIdle;
`else
        if (err_q) state_d = !live ? StIdle : look_read_i ? StSlot : StFail;
`endif
        else if (!cold_asked_q) state_d = worth ? StSlot : StIdle;
        else if (cold_here_q) state_d = StPart;
      end
      StPart:   state_d = (part == '0) ? StCheck : StKey;
      StKey:    if (mr_req_ready_i) state_d = StKeyAns;
      StKeyAns: if (mr_rsp_valid_i) state_d = !key_ok ? StFail : (got != want) ? StKey : StCheck;
      StCheck:  state_d = live ? StJob : StIdle;
      StJob:    if (job_ready_i) state_d = (part_q == '0) ? StCommit : StPiece;
      StPiece:  if (piece_ready_i && (second_q || !more_q)) state_d = StCommit;
`ifdef RNIC_CUT_READ_TURNS
      StCommit: if (committed) state_d = (n.pop != push_q) ? StLoad : StIdle;
`else
      StCommit: if (committed) state_d = StIdle;
`endif
      StFail:   state_d = live ? StNak : StIdle;
      StNak:    if (job_ready_i) state_d = StEvent;
      StEvent:  if (eqe_ready_i) state_d = StErr;
      StErr:    if (qp_err_ready_i) state_d = StIdle;
      default:  state_d = StIdle;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (begin_err || begin_pick) begin
      list_err_q <= 1'b0;
      idx_q     <= begin_err ? tx_err_i.qp_idx : qp_idx_t'(pick_idx);
      err_q     <= begin_err;
      err_psn_q <= tx_err_i.psn;
    end
    if (state_q == StIdle) begin
      cold_asked_q <= 1'b0;
      cold_here_q  <= 1'b0;
    end else begin
      if (cold_req_valid_o && cold_req_ready_i) cold_asked_q <= 1'b1;
      if (cold_rsp_valid_i) cold_here_q <= 1'b1;
    end
    if (state_q == StLook) begin
      gen_q   <= hot_i.gen;
      mtu_q   <= hot_i.mtu;
      epoch_q <= hot_i.epoch;
    end
    if (cold_rsp_valid_i) pd_q <= cold_rsp_i.create.pd;
    if (state_q == StFail) msn_q <= word[23:0];
    if (state_q == StPart) begin
      part_q  <= part;
      first_q <= !slot.begun;
      last_q  <= last;
    end
    if (state_q == StPart) begin
      more_q     <= 1'b0;
      list_err_q <= 1'b0;
    end
    if (state_q == StKeyAns && mr_rsp_valid_i) begin
      if (more_q) addr2_q <= mr_rsp_i.addr;
      else addr_q <= mr_rsp_i.addr;
      if (!more_q) len_q <= got;
      if (got != want) more_q <= 1'b1;
      list_err_q <= mr_rsp_i.err == MR_ERR_LIST;
    end
    second_q <= state_q == StPiece && (second_q || piece_ready_i);
    synd_q  <= (err_q || list_err_q) ? AETH_SYNDROME_NAK_REM_OP : AETH_SYNDROME_NAK_REM_ACCESS;
    state_q <= state_d;
    if (rst_i) state_q <= StIdle;
  end

`ifdef FORMAL_READ_ENGINE
`include "rnic_read_engine.svh"
`endif
endmodule
