// SPDX-License-Identifier: Apache-2.0
// Owner of the requester sections: chooses what to do next, loads the QP's context, lets the units work on it one after
// the other, commits. The only writer of the sections; so "send a packet" and "handle a response" never overlap.
// Contract: one visit at a time. A response is started only when the place unit has room, a packet only when the job
// queue has; nothing in a visit waits for either, or for the host: what cannot go on ends the visit, and the QP comes again. Order of
// choice: responses and visits in turn, visits for control (doorbells, state changes, timers, completions) and for sending in turn.
// A look (diag_*) is a visit that changes nothing, starts no unit and counts as rest: what it shows is what it would have been without it.
// A section of another life is initialised, and its records are released, before anything else is done.
// The units tell what happened (*_upd_i); what that makes of the section stands here, once for all of them. The timer is set when the
// section is committed, which is at most one visit later than what set it.
// A section is read and written in SecBeats parts: a narrow and deep memory.
module rnic_send_ctl
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
  import rnic_send_pkg::*;
#(
    parameter int unsigned QpIdxW = 10,
    parameter int unsigned ClkPeriodPs = 8000,
    parameter int unsigned InflightCap = 32,
    parameter int unsigned PoolDepth = 1024,
    parameter int unsigned SecBeats = 1
) (
    input  logic         clk_i,
    input  logic         rst_i,
    input  logic         enable_i,
    // what happens
    // A table smaller than the largest uses the low bits of an index.
    // verilator lint_off UNUSEDSIGNAL
    input  logic         qp_evt_valid_i,
    input  qp_idx_t      qp_evt_idx_i,
    input  logic         sq_kick_valid_i,
    input  qp_idx_t      sq_kick_idx_i,
    input  logic         notify_valid_i,
    output logic         notify_ready_o,
    input  qp_idx_t      notify_idx_i,
    input  logic         ready_valid_i,      // a WQE that was waited for is here
    input  qp_idx_t      ready_idx_i,
    output logic         ready_pop_o,
    input  logic         err_valid_i,        // a job failed
    output logic         err_pop_o,
    input  qp_idx_t      err_idx_i,
    input  wqe_idx_t     err_wqe_i,          // (a QP never has 256 WQEs in flight)
    // verilator lint_on UNUSEDSIGNAL
    input  epoch_t       err_epoch_i,
    input  dma_err_e     err_code_i,
    input  logic         desc_valid_i,
    output logic         desc_ready_o,
    input  qpn_t         desc_qpn_i,
    input  logic [4:0]   desc_rnr_i,         // how long the peer is not ready
    input  logic         place_room_i,
    input  logic         jobs_room_i,
    input  logic         jobs_busy_qp_i,
    input  logic         place_busy_qp_i,
    // a look at a QP: valid until done, which comes with the word
    input  logic         diag_valid_i,
    // verilator lint_off UNUSEDSIGNAL
    input  diag_select_t diag_i,
    // verilator lint_on UNUSEDSIGNAL
    output logic         diag_done_o,
    output logic [63:0]  diag_data_o,
    output look_req_t    diag_look_o,
    input  look_res_t    diag_look_i,        // whether the WQE is here, or on its way
    // context
    output qp_idx_t      hot_idx_o,          // also the index of the producer look-up
    input  qp_hot_t      hot_i,
    input  ring_pos_t    sq_prod_i,
    output logic         cold_req_valid_o,
    input  logic         cold_req_ready_i,
    input  logic         cold_rsp_valid_i,
    input  qp_ctx_t      cold_rsp_i,
    // the visit and its units
    output visit_t       visit_o,
    output logic         hot_ok_o,
    output logic         resp_start_o,
    input  logic         resp_done_i,
    input  logic         resp_stall_i,
    input  logic         resp_fetch_i,
    input  logic         resp_here_i,
    input  resp_upd_t    resp_upd_i,
    output logic         retire_start_o,
    input  logic         retire_done_i,
    input  logic         retire_again_i,
    input  logic         retire_failed_i,
    input  retire_upd_t  retire_upd_i,
    output logic         pkt_start_o,
    output logic         pkt_more_o,         // the visit may go on with another packet: nobody else has something to do
    input  logic         pkt_done_i,
    input  logic         pkt_again_i,
    input  logic         pkt_failed_i,
    input  pkt_upd_t     pkt_upd_i,
    output logic         list_free_o,        // records of an old life: section's head to tail, count
    output logic         qp_err_valid_o,
    output qp_err_t      qp_err_o,
    input  logic         stop_i,             // start nothing new
    output logic         idle_o,
    output logic         timeout_o
);
  typedef enum logic [3:0] {
    C_INIT,     // sections are cleared after reset
    C_IDLE,     // choose
    C_ADDR,     // ask for section, hot word, producer index, control section
    C_COLD,     // wait for the control section
    C_PREP,     // life, initial PSNs; what the cause itself changes
    C_RESP,     // units at work
    C_RETIRE,
    C_PKT,
    C_DIAG,     // a look: the word is given
    C_COMMIT
  } state_e;
  state_e state_q, state_d;
  typedef enum logic [1:0] {
    CAUSE_RESP,
    CAUSE_ERR,
    CAUSE_CTL,
    CAUSE_SND
  } cause_e;
  cause_e cause_q, cause_d;

  logic [QpIdxW-1:0] idx_q, idx_d;
  sq_sec_t sec_q;
  qp_ctx_t ctx_q;
  logic again_ctl_q, again_snd_q, failed_q, resp_wait_q, cold_q;
  logic diag_q, diag_d;              // the visit is a look
  logic turn_resp_q, turn_snd_q;     // last choice: a response; a visit for sending

  // ---------------------------------------------------------------- time
  localparam int unsigned AccW = $clog2(1024000 + ClkPeriodPs + 1) + 1;
  logic tick;
  logic [AccW-1:0] acc_q;      // ps until the next tick, as a negative number
  tick_t now_q;
  assign tick = !acc_q[AccW-1];
  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      acc_q <= -AccW'(1024000);
      now_q <= '0;
    end else begin
      acc_q <= acc_q + (tick ? AccW'(ClkPeriodPs) - AccW'(1024000) : AccW'(ClkPeriodPs));
      if (tick) now_q <= now_q + tick_t'(1);
    end
  end

  // ---------------------------------------------------------------- sections; spare reads look for expired timers
  // Of a record's index only the bits that the pool needs. The timer is in the first part.
  localparam int unsigned RecW = $clog2(PoolDepth);
  localparam int unsigned RestW = $bits(sq_sec_t) - 3 * $bits(rec_idx_t) - 25;
  localparam int unsigned PartW = (RestW + 3 * RecW + SecBeats - 1) / SecBeats;
  localparam int unsigned AddrW = QpIdxW + $clog2(SecBeats);
  localparam int unsigned BeatW = $clog2(SecBeats + 1);
  typedef logic [SecBeats-1:0][PartW-1:0] parts_t;
  typedef logic [BeatW-1:0] beat_t;
  // Padding is not read.
  // verilator lint_off UNUSEDSIGNAL
  // What never is anything but 0 is not kept (it goes through the parts, so it must not be there): packets begin at multiples of 256 bytes,
  // status and vendor error are small numbers. Of the WQE that fails the low bits tell (a QP never has 256 WQEs in flight).
  function automatic sq_sec_t joined(parts_t p);
    logic [SecBeats*PartW-1:0] b;
    logic [1:0] phase;
    sq_sec_t s;
    b        = p;
    s        = '0;
    {s.epoch, s.live, s.halted, s.cons, s.fresh, s.snd_wqe, s.snd_off[31:8], s.msg_len, s.next_psn, s.una_psn, s.top_psn, s.resync, s.alone, s.count, s.rd_cnt,
     s.rd_psn, phase, s.rd_lost, s.retries, s.rnr_tries, s.rem_fail, s.rem_status[4:0], s.loc_fail, s.loc_wqe[7:0], s.loc_status[4:0], s.loc_vendor[4:0],
     s.timer} = b[RestW-1:0];
    s.rd_phase = rd_phase_e'(phase);
    s.rd_rec   = rec_idx_t'(b[RestW+:RecW]);
    s.tail     = rec_idx_t'(b[RestW+RecW+:RecW]);
    s.head     = rec_idx_t'(b[RestW+2*RecW+:RecW]);
    return s;
  endfunction
  function automatic parts_t parted(sq_sec_t s);
    return (SecBeats * PartW)'({s.head[RecW-1:0], s.tail[RecW-1:0], s.rd_rec[RecW-1:0],
        s.epoch, s.live, s.halted, s.cons, s.fresh, s.snd_wqe, s.snd_off[31:8], s.msg_len, s.next_psn, s.una_psn, s.top_psn, s.resync, s.alone, s.count, s.rd_cnt,
        s.rd_psn, s.rd_phase, s.rd_lost, s.retries, s.rnr_tries, s.rem_fail, s.rem_status[4:0], s.loc_fail, s.loc_wqe[7:0], s.loc_status[4:0], s.loc_vendor[4:0],
        s.timer});
  endfunction
  // verilator lint_on UNUSEDSIGNAL
  function automatic logic [AddrW-1:0] part_at(logic [QpIdxW-1:0] idx, beat_t beat);
    return AddrW'(32'(idx) * SecBeats + 32'(beat));
  endfunction

  logic sec_we, sec_re, scan_read, scan_q, scan_hit, load, last_beat, move;   // move: all parts one place on
  logic [QpIdxW-1:0] scan_idx_q;
  logic [AddrW-1:0] sec_raddr;
  logic [PartW-1:0] sec_rd, sec_wdata;
  parts_t sec_parts, sec_load;
  beat_t beat_q;                     // the part that is written, or comes
  // verilator lint_off UNUSEDSIGNAL
  sq_timer_t timer_rd;               // (what it means matters to a mutation only)
  // verilator lint_on UNUSEDSIGNAL
  tick_t late, late_q;               // how long the deadline is past, by its sign
  assign timer_rd  = sq_timer_t'(sec_rd[$bits(sq_timer_t)-1:0]);
  assign late      = now_q - timer_rd.deadline;
  assign load      = state_q == C_COLD && beat_q != beat_t'(SecBeats);
  assign last_beat = beat_q == beat_t'(SecBeats - 1);
  assign move      = load || (state_q == C_COMMIT && !last_beat);
  assign scan_read = !(state_q inside {C_ADDR, C_COLD, C_INIT, C_COMMIT}) && !scan_q;
`ifdef RNIC_CUT_TIMEOUT
  assign scan_hit  = scan_q && timer_rd.on && timer_rd.rnr_wait && !late[$bits(tick_t)-1];
`else
  assign scan_hit  = scan_q && timer_rd.on && !late[$bits(tick_t)-1];
`endif
  // A part that passes through the top needs the bit that is left over there.
  localparam int unsigned Rest = SecBeats * PartW - (RestW + 3 * RecW);
  if (Rest == 0) begin : g_fits
    assign sec_parts = parted(sec_q);
  end else begin : g_rest
    logic [Rest-1:0] rest_q;
    assign sec_parts = parted(sec_q) | {rest_q, {(SecBeats * PartW - Rest) {1'b0}}};
    always_ff @(posedge clk_i) if (move) rest_q <= sec_load[SecBeats-1][PartW-1-:Rest];
  end
  always_comb begin
    sec_re    = scan_read || state_q == C_ADDR || (load && !last_beat);
    sec_raddr = part_at(scan_idx_q, '0);
    if (state_q == C_ADDR) sec_raddr = part_at(idx_q, '0);
    if (state_q == C_COLD) sec_raddr = part_at(idx_q, beat_q + beat_t'(1));
    // In at the top, out at the bottom.
    sec_load = sec_parts;
    for (int unsigned i = 1; i < SecBeats; i++) sec_load[i-1] = sec_parts[i];
    if (load) sec_load[SecBeats-1] = sec_rd;
  end
  assign sec_wdata = sec_parts[0];
  // Never read where it is written: the states exclude each other.
  rnic_ram #(.Width(PartW), .Depth(SecBeats << QpIdxW), .Bypass(1'b0)) u_sec (
      .clk_i, .we_i(sec_we), .waddr_i(part_at(idx_q, beat_q)), .wdata_i(sec_wdata),
      .re_i(sec_re), .raddr_i(sec_raddr), .rdata_o(sec_rd)
  );
  always_ff @(posedge clk_i) begin
    if (load && beat_q == '0) late_q <= late;
  end

  // ---------------------------------------------------------------- who has something to do
  logic own_ctl, own_snd, ctl_valid, ctl_take, snd_valid, snd_take, third_valid, third_ready;
  logic [QpIdxW-1:0] ctl_idx, snd_idx, third_idx;
  // A port of the set for what never waits, doorbells and state changes each; what may wait takes the one that is free.
  assign third_valid    = own_ctl || notify_valid_i || scan_hit;
  assign third_ready    = !(sq_kick_valid_i && qp_evt_valid_i);
  assign third_idx      = own_ctl ? idx_q : notify_valid_i ? QpIdxW'(notify_idx_i) : scan_idx_q;
  assign notify_ready_o = !own_ctl && third_ready;
  rnic_pend_set #(.IdxW(QpIdxW), .NumSet(2)) u_ctl (
      .clk_i, .rst_i, .set_valid_i({qp_evt_valid_i || (third_valid && sq_kick_valid_i), sq_kick_valid_i || third_valid}),
      .set_idx_i({qp_evt_valid_i ? QpIdxW'(qp_evt_idx_i) : third_idx, sq_kick_valid_i ? QpIdxW'(sq_kick_idx_i) : third_idx}),
      .pick_valid_o(ctl_valid), .pick_ready_i(ctl_take), .pick_idx_o(ctl_idx)
  );
  // What is being offered is not put in once more: else a QP that is alone would always see itself waiting.
  rnic_pend_set #(.IdxW(QpIdxW), .NumSet(1)) u_snd (
      .clk_i, .rst_i, .set_valid_i(own_snd && !(snd_valid && snd_idx == idx_q)), .set_idx_i(idx_q),
      .pick_valid_o(snd_valid), .pick_ready_i(snd_take), .pick_idx_o(snd_idx)
  );

  // ---------------------------------------------------------------- the visit
  logic sending_state, epoch_ok, same_life;
  logic expired;
  logic [7:0] err_at, err_window, loc_at;   // (a QP never has 256 WQEs in flight)
  assign hot_idx_o     = qp_idx_t'(idx_q);
  assign sending_state = hot_i.state == QP_STATE_RTS || hot_i.state == QP_STATE_SQD;
  assign same_life     = ctx_q.hot.epoch == hot_i.epoch;
  assign epoch_ok      = sec_q.epoch == hot_i.epoch;
`ifdef RNIC_CUT_SEND_EPOCH
  assign hot_ok_o      = hot_i.valid && sending_state;
`else
  assign hot_ok_o      = hot_i.valid && epoch_ok && sending_state;
`endif
  assign expired       = sec_q.timer.on && !late_q[$bits(tick_t)-1] && sending_state && !sec_q.halted && !sec_q.rem_fail;
  assign err_at        = err_wqe_i[7:0] - sec_q.cons[7:0];
  assign err_window    = sec_q.fresh[7:0] - sec_q.cons[7:0];
  assign loc_at        = sec_q.loc_wqe[7:0] - sec_q.cons[7:0];

  always_comb begin
    visit_o         = '0;
    visit_o.idx     = qp_idx_t'(idx_q);
    visit_o.ctx     = ctx_q;
    visit_o.ctx.hot = hot_i;
    // Does not change in a life that sends; the word's own way out of its RAM is long.
    visit_o.ctx.hot.mtu = ctx_q.hot.mtu;
    visit_o.prod    = (sq_prod_i.epoch == hot_i.epoch) ? sq_prod_i.val : '0;
    visit_o.sec     = sec_q;
    visit_o.sec.loc_wqe[15:8] = sec_q.snd_wqe[15:8];
  end

  // What the cause itself changes: a failed job, of which what was acknowledged meanwhile is no error any more; a timer.
  logic prep, err_take, rnr_end, lost_all;
  assign prep    = state_q == C_PREP && same_life && epoch_ok && !diag_q && (sec_q.live || !sending_state);
`ifdef RNIC_CUT_TX_ERR
  assign err_take = 1'b0;
`else
  assign err_take = prep && cause_q == CAUSE_ERR && err_epoch_i == sec_q.epoch && err_at < err_window && !sec_q.halted &&
      !(sec_q.loc_fail && loc_at <= err_at);
`endif
  logic timed_out;
  assign timed_out = prep && !(cause_q inside {CAUSE_RESP, CAUSE_ERR}) && expired;
  assign rnr_end   = timed_out && sec_q.timer.rnr_wait;
  assign lost_all  = timed_out && !sec_q.timer.rnr_wait && !jobs_busy_qp_i;   // else what it waits for was not even sent
  assign timeout_o = lost_all;

  // ---------------------------------------------------------------- what happens to a section
  logic retry, spent, again, kick, kick_q, set_timer, begins;
  logic rnr_q;                       // the peer was not ready, a cycle ago: how long stands in the descriptor still
  logic [2:0] retries, rnr_tries;
  tick_t deadline;
  psn_t put_psn;
  wqe_idx_t cons_next;
  assign retry     = lost_all || resp_upd_i.retry;
  assign retries   = resp_upd_i.moved ? 3'd0 : sec_q.retries;
  assign rnr_tries = resp_upd_i.moved ? 3'd0 : sec_q.rnr_tries;
`ifdef RNIC_CUT_RETRY_LIMIT
  assign spent     = 1'b0;
`else
  assign spent     = retries >= ctx_q.path.retry_cnt;
`endif
  assign again     = retry && !spent;
  assign cons_next = sec_q.cons + wqe_idx_t'(1);
  // The transport timer is restarted, or stopped when nothing is outstanding, at the end of the visit. An RNR wait is left alone.
  assign kick      = timed_out || resp_upd_i.moved || resp_upd_i.retry || (pkt_upd_i.timed && !sec_q.timer.on);
  assign set_timer = state_d == C_COMMIT && state_q != C_COMMIT && kick_q && !sec_q.timer.rnr_wait;
  assign deadline  = now_q + (rnr_q ? rnr_ticks(desc_rnr_i) : timeout_ticks(ctx_q.path.timeout));
  assign begins    = state_q == C_PREP && same_life && epoch_ok && !diag_q && !sec_q.live && sending_state;
  assign put_psn   = begins ? ctx_q.path.sq_psn : pkt_upd_i.next_psn;

  // Which of the changes below meet in a cycle: those of one unit.
  always_ff @(posedge clk_i) begin
    // (What is in the last part stays until the visit has ended: the life.)
    if (move) sec_q <= joined(sec_load);
    kick_q <= state_q != C_IDLE && (kick || kick_q);
    rnr_q  <= resp_upd_i.rnr;
    if (set_timer) sec_q.timer.on <= ctx_q.path.timeout != '0 && sec_q.una_psn != sec_q.top_psn;
    if (set_timer || rnr_q) sec_q.timer.deadline <= deadline;

    // The visit begins: the initial PSNs; what the cause changes.
    if (begins) begin
      sec_q.live    <= 1'b1;
      sec_q.una_psn <= ctx_q.path.sq_psn;
    end
    if (begins || pkt_upd_i.seek || pkt_upd_i.sent) sec_q.next_psn <= put_psn;
    if (begins || pkt_upd_i.top) sec_q.top_psn <= put_psn;
    if (rnr_end) sec_q.timer.rnr_wait <= 1'b0;
    if (err_take) begin
      sec_q.loc_fail   <= 1'b1;
      sec_q.loc_wqe    <= wqe_idx_t'(err_wqe_i[7:0]);
      sec_q.loc_status <= WC_STATUS_LOC_PROT_ERR;
      sec_q.loc_vendor <= 8'(err_code_i);
    end

    // A response, or none for too long.
    if (resp_upd_i.moved) begin
      sec_q.una_psn   <= resp_upd_i.ack_psn;
      sec_q.retries   <= '0;
      sec_q.rnr_tries <= '0;
    end
    if (resp_upd_i.moved || (lost_all && again)) sec_q.rd_lost <= 1'b0;
    if (resp_upd_i.lost) sec_q.rd_lost <= 1'b1;
    if (again) begin
      sec_q.retries <= retries + 3'd1;
      if (sec_q.rd_cnt != '0) sec_q.rd_phase <= RD_ANY;
    end
    if (again || resp_upd_i.rnr) sec_q.resync <= 1'b1;
    if (resp_upd_i.rnr) begin
      if (ctx_q.path.rnr_retry != 3'd7) sec_q.rnr_tries <= rnr_tries + 3'd1;
      sec_q.timer.rnr_wait <= resp_upd_i.rnr_wait;
      sec_q.timer.on       <= 1'b1;
    end
    if ((retry && spent) || resp_upd_i.rem_fail) begin
      sec_q.rem_fail   <= 1'b1;
      sec_q.rem_status <= resp_upd_i.rem_fail ? 8'(resp_upd_i.rem_status[4:0]) : WC_STATUS_RETRY_EXC_ERR;
    end
    if (resp_upd_i.loc_fail) begin
      sec_q.loc_fail   <= 1'b1;
      sec_q.loc_wqe    <= wqe_idx_t'(resp_upd_i.loc_wqe[7:0]);
      sec_q.loc_status <= 8'(resp_upd_i.loc_status[4:0]);
      sec_q.loc_vendor <= 8'(resp_upd_i.loc_vendor[4:0]);
    end
    if (resp_upd_i.taken) begin
      if (sec_q.rd_phase != RD_ANY) sec_q.rd_phase <= RD_MORE;
      sec_q.rd_psn <= resp_upd_i.ack_psn;
      if (resp_upd_i.answered) sec_q.rd_cnt <= sec_q.rd_cnt - 5'd1;
    end
    if (resp_upd_i.rd_next) begin
      // Asked for again together with the one before it, its packets may come twice.
      if (sec_q.rd_phase != RD_ANY) sec_q.rd_phase <= RD_FIRST;
      sec_q.rd_rec <= resp_upd_i.rd_rec;
      sec_q.rd_psn <= resp_upd_i.rd_psn;
    end

    // The oldest WQE completes.
    if (retire_upd_i.pop || retire_upd_i.fail || retire_upd_i.flush) sec_q.cons <= cons_next;
    if (retire_upd_i.pop) begin
      sec_q.head  <= retire_upd_i.next;
      sec_q.count <= sec_q.count - 8'd1;
      if (sec_q.count == 8'd1) sec_q.alone <= 1'b0;
    end
    // A queue that is taken up again (SQE->RTS) starts behind what was flushed.
    if (retire_upd_i.flush) begin
      sec_q.fresh   <= cons_next;
      sec_q.snd_wqe <= cons_next;
      sec_q.snd_off <= '0;
    end
    if (retire_upd_i.fail) sec_q.halted <= 1'b1;
    if (retire_upd_i.fail || retire_upd_i.clear) begin
      kick_q               <= 1'b0;
      sec_q.rem_fail       <= 1'b0;
      sec_q.loc_fail       <= 1'b0;
      sec_q.timer.on       <= 1'b0;
      sec_q.timer.rnr_wait <= 1'b0;
    end
    if (retire_upd_i.clear) begin
      sec_q.count  <= '0;
      sec_q.alone  <= 1'b0;
      sec_q.rd_cnt <= '0;
      sec_q.resync <= 1'b0;
    end

    // The send pointer moves.
    if (pkt_upd_i.seek) sec_q.resync <= 1'b0;
    if (pkt_upd_i.seek || pkt_upd_i.sent) begin
      sec_q.snd_wqe <= pkt_upd_i.snd_wqe;
      sec_q.snd_off <= {pkt_upd_i.snd_off[31:8], 8'd0};
      sec_q.msg_len <= pkt_upd_i.msg_len;
    end
    if (pkt_upd_i.fresh) begin
      sec_q.tail  <= pkt_upd_i.rec_new;
      if (sec_q.count == '0) sec_q.head <= pkt_upd_i.rec_new;
      sec_q.count <= sec_q.count + 8'd1;
      sec_q.fresh <= sec_q.fresh + wqe_idx_t'(1);
      sec_q.alone <= pkt_upd_i.alone;
      if (pkt_upd_i.is_read) begin
        sec_q.rd_cnt <= sec_q.rd_cnt + 5'd1;
        if (sec_q.rd_cnt == '0) begin
          sec_q.rd_rec   <= pkt_upd_i.rec_new;
          sec_q.rd_psn   <= sec_q.next_psn;
          sec_q.rd_phase <= RD_FIRST;
          sec_q.rd_lost  <= 1'b0;
        end
      end
    end
    if (pkt_upd_i.fail) begin
      sec_q.loc_fail   <= 1'b1;
      sec_q.loc_wqe    <= wqe_idx_t'(sec_q.snd_wqe[7:0]);
      sec_q.loc_status <= 8'(pkt_upd_i.loc_status[4:0]);
      sec_q.loc_vendor <= 8'(pkt_upd_i.loc_vendor[4:0]);
    end

    // Another life begins with nothing; so do all.
    if (state_q == C_PREP && same_life && !epoch_ok && !diag_q) begin
      sec_q       <= '0;
      sec_q.epoch <= hot_i.epoch;
    end
    if (rst_i) sec_q <= '0;
  end

  logic may, visits, go_resp, go_ctl, go_snd, work, list_free;
  assign may     = enable_i && !stop_i;
  assign visits  = ctl_valid || (jobs_room_i && (ready_valid_i || snd_valid));
  assign go_resp = desc_valid_i && place_room_i && !resp_wait_q && !(turn_resp_q && visits);
  assign go_snd  = jobs_room_i && (ready_valid_i || snd_valid) && !(turn_snd_q && ctl_valid);
  assign go_ctl  = ctl_valid;
  assign work    = sending_state && has_work(visit_o.sec, visit_o.prod);
  assign list_free_o = list_free;

  // One packet a visit when others wait. Bounded all the same, since timers are looked up where the section is committed.
  logic [3:0] burst_q;
  assign pkt_more_o = may && burst_q != '1 && !(desc_valid_i && place_room_i && !resp_wait_q) && !diag_valid_i && !err_valid_i &&
       !ready_valid_i && !snd_valid && !ctl_valid;
  always_ff @(posedge clk_i) begin
    if (pkt_start_o) burst_q <= '0;
    else if (pkt_upd_i.seek || pkt_upd_i.sent) burst_q <= burst_q + 4'd1;
  end

  always_comb begin
    state_d          = state_q;
    cause_d          = cause_q;
    idx_d            = idx_q;
    sec_we           = 1'b0;
    cold_req_valid_o = 1'b0;
    ready_pop_o      = 1'b0;
    ctl_take         = 1'b0;
    snd_take         = 1'b0;
    err_pop_o        = 1'b0;
    resp_start_o     = 1'b0;
    retire_start_o   = 1'b0;
    pkt_start_o      = 1'b0;
    list_free        = 1'b0;
    own_ctl          = 1'b0;
    own_snd          = 1'b0;
    diag_d           = diag_q;
    case (state_q)
      C_INIT: begin
        sec_we = 1'b1;
        if (last_beat) begin
          idx_d = idx_q + QpIdxW'(1);
          if (idx_q == '1) state_d = C_IDLE;
        end
      end
      C_IDLE:
      if (diag_valid_i) begin
        state_d = C_ADDR;
        cause_d = CAUSE_RESP;    // which by itself changes nothing
        diag_d  = 1'b1;
        idx_d   = QpIdxW'(qpn_idx(diag_i.qpn, QpIdxW));
      end else if (may) begin
        state_d = C_ADDR;
        diag_d  = 1'b0;
        if (go_resp) begin
          cause_d = CAUSE_RESP;
          idx_d   = QpIdxW'(qpn_idx(desc_qpn_i, QpIdxW));
        end else if (err_valid_i) begin
          cause_d = CAUSE_ERR;
          idx_d   = QpIdxW'(err_idx_i);
        end else if (go_snd) begin
          cause_d     = CAUSE_SND;
          ready_pop_o = ready_valid_i;
          snd_take    = !ready_valid_i;
          idx_d       = ready_valid_i ? QpIdxW'(ready_idx_i) : snd_idx;
        end else if (go_ctl) begin
          cause_d  = CAUSE_CTL;
          ctl_take = 1'b1;
          idx_d    = ctl_idx;
        end else begin
          state_d = C_IDLE;
        end
      end
      C_ADDR: begin
        cold_req_valid_o = 1'b1;
        if (cold_req_ready_i) state_d = C_COLD;
      end
      C_COLD: if ((cold_rsp_valid_i || cold_q) && (!load || last_beat)) state_d = C_PREP;
      C_PREP: begin
        if (!same_life) begin
          state_d = C_ADDR;      // the control section changed while it was read
        end else if (diag_q) begin
          state_d = C_DIAG;
        end else if (!epoch_ok) begin
`ifdef RNIC_CUT_OLD_LIFE
          list_free = 1'b0;
`else
          list_free = sec_q.count != '0;   // and the section is initialised
`endif
        end else if (!sec_q.live && sending_state) begin
          ;                                // its PSNs are
        end else if (cause_q == CAUSE_RESP) begin
          resp_start_o = 1'b1;
          state_d      = C_RESP;
        end else begin
          err_pop_o      = cause_q == CAUSE_ERR;
          retire_start_o = 1'b1;
          state_d        = C_RETIRE;
        end
      end
      C_RESP:
      if (resp_done_i) begin
        if (resp_stall_i) begin
          state_d = C_COMMIT;
        end else begin
          retire_start_o = 1'b1;
          state_d        = C_RETIRE;
        end
      end
      C_RETIRE:
      if (retire_done_i) begin
        state_d = C_COMMIT;
        if ((cause_q == CAUSE_CTL || cause_q == CAUSE_SND) && jobs_room_i && work && !retire_failed_i) begin
          pkt_start_o = 1'b1;
          state_d     = C_PKT;
        end
      end
      C_PKT: if (pkt_done_i) state_d = C_COMMIT;
      C_DIAG: begin
        state_d = C_IDLE;
`ifdef RNIC_CUT_DIAG_ASLEEP
        own_ctl = 1'b1;
`endif
      end
      default: begin  // C_COMMIT
        // Also when the life ended meanwhile: which records are the QP's stands there, and the next visit gives them back.
`ifdef RNIC_CUT_SEND_OLD_COMMIT
        sec_we  = epoch_ok;
`else
        sec_we  = 1'b1;
`endif
        if (last_beat) begin
          own_ctl = again_ctl_q || !epoch_ok;
          state_d = (own_ctl && !third_ready) ? C_COMMIT : C_IDLE;
          own_snd = again_snd_q && state_d == C_IDLE;
`ifdef RNIC_CUT_SEND_TURNS
          if (again_snd_q && jobs_room_i) begin
            own_snd = 1'b0;
            state_d = C_ADDR;
          end
`endif
        end
      end
    endcase
  end

  assign desc_ready_o   = resp_done_i && !resp_stall_i;
  assign qp_err_valid_o = state_q == C_COMMIT && last_beat && failed_q && epoch_ok;
  assign qp_err_o       = '{idx: qp_idx_t'(idx_q), epoch: sec_q.epoch, to_sqe: ctx_q.hot.qp_type inside {QP_TYPE_UC, QP_TYPE_UD, QP_TYPE_GSI}};
  assign idle_o         = state_q == C_IDLE || diag_q;

  // ---------------------------------------------------------------- a look
  assign diag_look_o = '{valid: diag_q && state_q == C_PREP, resp: 1'b0, want: 1'b0, wqe: sec_q.snd_wqe};
  assign diag_done_o = state_q == C_DIAG;
  rnic_send_look #(.QpIdxW(QpIdxW), .InflightCap(InflightCap)) u_look (
      .visit_i(visit_o), .same_life_i(epoch_ok), .enable_i, .stop_i, .tx_busy_i(jobs_busy_qp_i), .rx_busy_i(place_busy_qp_i), .late_i(late_q),
      .wqe_i(diag_look_i), .word_i(diag_i.word), .word_o(diag_data_o)
  );

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      state_q     <= C_INIT;
      idx_q       <= '0;
      resp_wait_q <= 1'b0;
      turn_resp_q <= 1'b0;
      turn_snd_q  <= 1'b0;
      scan_q      <= 1'b0;
      scan_idx_q  <= '0;
    end else begin
      state_q <= state_d;
      idx_q   <= idx_d;
      if (resp_here_i) resp_wait_q <= 1'b0;
      if (resp_fetch_i) resp_wait_q <= 1'b1;
      if (state_q == C_IDLE && state_d == C_ADDR && !diag_d) begin
        turn_resp_q <= cause_d == CAUSE_RESP;
        if (cause_d == CAUSE_SND || cause_d == CAUSE_CTL) turn_snd_q <= cause_d == CAUSE_SND;
      end
      scan_q <= scan_read;
      // An expired timer that could not be told now is met again in the next round.
      if (scan_q) scan_idx_q <= scan_idx_q + QpIdxW'(1);
    end
    cause_q <= cause_d;
    diag_q  <= !rst_i && diag_d && state_d != C_IDLE;
    if (state_q == C_COLD && cold_rsp_valid_i) ctx_q <= cold_rsp_i;
    cold_q <= state_q == C_COLD && (cold_q || cold_rsp_valid_i);
    if (rst_i) beat_q <= '0;
    else if (state_q == C_COMMIT && last_beat && state_d == C_COMMIT) beat_q <= beat_q;
    else if (state_q inside {C_INIT, C_COMMIT}) beat_q <= last_beat ? '0 : beat_q + beat_t'(1);
    else if (state_q == C_COLD) beat_q <= beat_q + beat_t'(load);
    else beat_q <= '0;

    if (state_q == C_ADDR) begin
      again_ctl_q <= 1'b0;
      again_snd_q <= 1'b0;
      failed_q    <= 1'b0;
    end
    if (state_q == C_RETIRE && retire_done_i) begin
      again_ctl_q <= retire_again_i;
      failed_q    <= retire_failed_i;
      // What this visit cannot do is left to one for sending.
      again_snd_q <= work && !retire_failed_i && !pkt_start_o;
    end
    if (state_q == C_PKT && pkt_done_i) begin
      again_snd_q <= pkt_again_i;
      if (pkt_failed_i) again_ctl_q <= 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      if (resp_upd_i.moved || resp_upd_i.retry || resp_upd_i.lost || resp_upd_i.rnr || resp_upd_i.rem_fail || resp_upd_i.loc_fail || resp_upd_i.taken || resp_upd_i.rd_next)
        a_resp_at_work : assert (state_q == C_RESP);
      if (retire_upd_i.pop || retire_upd_i.fail || retire_upd_i.flush || retire_upd_i.clear) a_retire_at_work : assert (state_q == C_RETIRE);
      if (pkt_upd_i.seek || pkt_upd_i.sent || pkt_upd_i.fail) a_pkt_at_work : assert (state_q == C_PKT);
      if (pkt_upd_i.top || pkt_upd_i.timed || pkt_upd_i.fresh) a_sent : assert (pkt_upd_i.sent);
      if (sec_we && sec_re) a_not_what_is_written : assert (part_at(idx_q, beat_q) != sec_raddr);
      if (resp_here_i) a_waited_for : assert (resp_wait_q);
      if (diag_q) a_look_changes_nothing : assert (!sec_we && !resp_start_o && !retire_start_o && !pkt_start_o);
    end
  end
  // the live hot word stands in for the one that came with the control section.
  // verilator lint_off UNUSEDSIGNAL
  logic unused_hot;
  assign unused_hot = ^ctx_q.hot;
  // verilator lint_on UNUSEDSIGNAL

`ifdef FORMAL_SEND_CTL
`include "rnic_send_ctl.svh"
`endif
endmodule
