// SPDX-License-Identifier: Apache-2.0
// Owner of the requester sections: chooses what to do next, loads the QP's context, lets the units work on it one after
// the other, commits. The only writer of the sections; so "send a packet" and "handle a response" never overlap.
// Contract: one visit at a time. A response is started only when the place unit has room, a packet only when the job
// queue has; nothing in a visit waits for either, or for the host: what cannot go on ends the visit, and the QP comes again. Order of
// choice: responses and visits in turn, visits for control (doorbells, state changes, timers, completions) and for sending in turn.
// A look (diag_*) is a visit that changes nothing, starts no unit and counts as rest: what it shows is what it would have been without it.
// A section of another life is initialised, and its records are released, before anything else is done. At the commit life is
// checked again: on a mismatch nothing is written.
module rnic_send_ctl
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
  import rnic_send_pkg::*;
#(
    parameter int unsigned QpIdxW = 10,
    parameter int unsigned ClkPeriodPs = 8000,
    parameter int unsigned InflightCap = 32
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
    // verilator lint_on UNUSEDSIGNAL
    input  epoch_t       err_epoch_i,
    input  wqe_idx_t     err_wqe_i,
    input  dma_err_e     err_code_i,
    input  logic         desc_valid_i,
    output logic         desc_ready_o,
    input  qpn_t         desc_qpn_i,
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
    input  logic         resp_upd_i,
    input  sq_sec_t      resp_sec_i,
    output logic         retire_start_o,
    input  logic         retire_done_i,
    input  logic         retire_again_i,
    input  logic         retire_failed_i,
    input  logic         retire_upd_i,
    input  sq_sec_t      retire_sec_i,
    output logic         pkt_start_o,
    output logic         pkt_more_o,         // the visit may go on with another packet: nobody else has something to do
    input  logic         pkt_done_i,
    input  logic         pkt_again_i,
    input  logic         pkt_failed_i,
    input  logic         pkt_upd_i,
    input  sq_sec_t      pkt_sec_i,
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
  sq_sec_t sec_q, sec_rd;
  qp_ctx_t ctx_q;
  logic again_ctl_q, again_snd_q, failed_q, resp_wait_q;
  logic diag_q, diag_d;              // the visit is a look
  logic turn_resp_q, turn_snd_q;     // last choice: a response; a visit for sending

  // ---------------------------------------------------------------- time
  localparam int unsigned AccW = $clog2(1024000 + ClkPeriodPs + 1);
  logic [AccW-1:0] acc_q;
  tick_t now_q;
  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      acc_q <= '0;
      now_q <= '0;
    end else if (acc_q + AccW'(ClkPeriodPs) >= AccW'(1024000)) begin
      acc_q <= acc_q + AccW'(ClkPeriodPs) - AccW'(1024000);
      now_q <= now_q + tick_t'(1);
    end else begin
      acc_q <= acc_q + AccW'(ClkPeriodPs);
    end
  end

  // ---------------------------------------------------------------- sections; spare reads look for expired timers
  logic sec_we, scan_read, scan_q, scan_hit;
  logic [QpIdxW-1:0] scan_idx_q;
  // Its sign tells whether the deadline has passed.
  // verilator lint_off UNUSEDSIGNAL
  tick_t scan_late;
  // verilator lint_on UNUSEDSIGNAL
  assign scan_read = state_q != C_ADDR && state_q != C_COLD && state_q != C_INIT && !scan_q;
  assign scan_late = now_q - sec_rd.deadline;
`ifdef RNIC_CUT_TIMEOUT
  assign scan_hit  = scan_q && sec_rd.timer_on && sec_rd.rnr_wait && !scan_late[$bits(tick_t)-1];
`else
  assign scan_hit  = scan_q && sec_rd.timer_on && !scan_late[$bits(tick_t)-1];
`endif
  rnic_ram #(.Width($bits(sq_sec_t)), .Depth(1 << QpIdxW)) u_sec (
      .clk_i, .we_i(sec_we), .waddr_i(idx_q), .wdata_i((state_q == C_INIT) ? '0 : sec_q),
      .re_i(state_q == C_ADDR || scan_read), .raddr_i((state_q == C_ADDR) ? idx_q : scan_idx_q), .rdata_o(sec_rd)
  );

  // ---------------------------------------------------------------- who has something to do
  logic own_ctl, own_snd, ctl_valid, ctl_take, snd_valid, snd_take, third_valid;
  logic [QpIdxW-1:0] ctl_idx, snd_idx, third_idx;
  assign third_valid    = own_ctl || notify_valid_i || scan_hit;
  assign third_idx      = own_ctl ? idx_q : notify_valid_i ? QpIdxW'(notify_idx_i) : scan_idx_q;
  assign notify_ready_o = !own_ctl;
  rnic_pend_set #(.IdxW(QpIdxW), .NumSet(3)) u_ctl (
      .clk_i, .rst_i, .set_valid_i({third_valid, qp_evt_valid_i, sq_kick_valid_i}),
      .set_idx_i({third_idx, QpIdxW'(qp_evt_idx_i), QpIdxW'(sq_kick_idx_i)}),
      .pick_valid_o(ctl_valid), .pick_ready_i(ctl_take), .pick_idx_o(ctl_idx)
  );
  rnic_pend_set #(.IdxW(QpIdxW), .NumSet(1)) u_snd (
      .clk_i, .rst_i, .set_valid_i(own_snd), .set_idx_i(idx_q),
      .pick_valid_o(snd_valid), .pick_ready_i(snd_take), .pick_idx_o(snd_idx)
  );

  // ---------------------------------------------------------------- the visit
  logic sending_state, epoch_ok, same_life;
  // Its sign tells whether the deadline has passed.
  // verilator lint_off UNUSEDSIGNAL
  tick_t late;
  // verilator lint_on UNUSEDSIGNAL
  logic expired;
  wqe_idx_t err_at, err_window;
  assign hot_idx_o     = qp_idx_t'(idx_q);
  assign sending_state = hot_i.state == QP_STATE_RTS || hot_i.state == QP_STATE_SQD;
  assign same_life     = ctx_q.hot.epoch == hot_i.epoch;
  assign epoch_ok      = sec_q.epoch == hot_i.epoch;
`ifdef RNIC_CUT_SEND_EPOCH
  assign hot_ok_o      = hot_i.valid && sending_state;
`else
  assign hot_ok_o      = hot_i.valid && epoch_ok && sending_state;
`endif
  assign late          = now_q - sec_q.deadline;
  assign expired       = sec_q.timer_on && !late[$bits(tick_t)-1] && sending_state && !sec_q.halted && !sec_q.rem_fail;
  assign err_at        = err_wqe_i - sec_q.cons;
  assign err_window    = sec_q.fresh - sec_q.cons;

  always_comb begin
    visit_o         = '0;
    visit_o.idx     = qp_idx_t'(idx_q);
    visit_o.ctx     = ctx_q;
    visit_o.ctx.hot = hot_i;
    visit_o.prod    = (sq_prod_i.epoch == hot_i.epoch) ? sq_prod_i.val : '0;
    visit_o.sec     = sec_q;
    visit_o.now     = now_q;
  end

  // What the cause itself changes.
  sq_sec_t sec_prep;
  always_comb begin
    sec_prep  = sec_q;
    timeout_o = 1'b0;
    if (cause_q == CAUSE_ERR) begin
      // What was acknowledged meanwhile is no error any more.
`ifdef RNIC_CUT_TX_ERR
      if (1'b0 && err_epoch_i == sec_q.epoch && err_at < err_window && !sec_q.halted &&
`else
      if (err_epoch_i == sec_q.epoch && err_at < err_window && !sec_q.halted &&
`endif
          !(sec_q.loc_fail && wqe_idx_t'(sec_q.loc_wqe - sec_q.cons) <= err_at)) begin
        sec_prep.loc_fail   = 1'b1;
        sec_prep.loc_wqe    = err_wqe_i;
        sec_prep.loc_status = WC_STATUS_LOC_PROT_ERR;
        sec_prep.loc_vendor = 8'(err_code_i);
      end
    end else if (cause_q != CAUSE_RESP && expired) begin
      if (sec_q.rnr_wait) begin
        sec_prep.rnr_wait = 1'b0;
      end else if (!jobs_busy_qp_i) begin   // else what it waits for was not even sent
        timeout_o = state_q == C_PREP && same_life && epoch_ok;
`ifdef RNIC_CUT_RETRY_LIMIT
        if (1'b0) begin
`else
        if (sec_q.retries >= ctx_q.path.retry_cnt) begin
`endif
          sec_prep.rem_fail   = 1'b1;
          sec_prep.rem_status = WC_STATUS_RETRY_EXC_ERR;
        end else begin
          sec_prep.retries = sec_q.retries + 3'd1;
          sec_prep.resync  = 1'b1;
          sec_prep.rd_lost = 1'b0;
          if (sec_q.rd_cnt != '0) sec_prep.rd_phase = RD_ANY;
        end
      end
      sec_prep = timer_restart(sec_prep, ctx_q.path.timeout, now_q);
    end
  end

  logic may, visits, go_resp, go_ctl, go_snd, work, list_free;
  assign may     = enable_i && !stop_i;
  assign visits  = ctl_valid || (jobs_room_i && (ready_valid_i || snd_valid));
  assign go_resp = desc_valid_i && place_room_i && !resp_wait_q && !(turn_resp_q && visits);
  assign go_snd  = jobs_room_i && (ready_valid_i || snd_valid) && !(turn_snd_q && ctl_valid);
  assign go_ctl  = ctl_valid;
  assign work    = sending_state && has_work(sec_q, visit_o.prod);
  assign list_free_o = list_free;

  // One packet a visit when others wait. Bounded all the same, since timers are looked up where the section is committed.
  logic [3:0] burst_q;
  assign pkt_more_o = may && jobs_room_i && burst_q != '1 && !(desc_valid_i && place_room_i && !resp_wait_q) &&
      !err_valid_i && !ready_valid_i && !snd_valid && !ctl_valid;
  always_ff @(posedge clk_i) begin
    if (pkt_start_o) burst_q <= '0;
    else if (pkt_upd_i) burst_q <= burst_q + 4'd1;
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
        idx_d  = idx_q + QpIdxW'(1);
        if (idx_q == '1) state_d = C_IDLE;
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
      C_COLD: if (cold_rsp_valid_i) state_d = C_PREP;
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
        own_ctl = again_ctl_q || !epoch_ok;
        own_snd = again_snd_q;
        state_d = C_IDLE;
`ifdef RNIC_CUT_SEND_TURNS
        if (again_snd_q && jobs_room_i) begin
          own_snd = 1'b0;
          state_d = C_ADDR;
        end
`endif
      end
    endcase
  end

  assign desc_ready_o   = resp_done_i && !resp_stall_i;
  assign qp_err_valid_o = state_q == C_COMMIT && failed_q && epoch_ok;
  assign qp_err_o       = '{idx: qp_idx_t'(idx_q), epoch: sec_q.epoch, to_sqe: ctx_q.hot.qp_type inside {QP_TYPE_UC, QP_TYPE_UD, QP_TYPE_GSI}};
  assign idle_o         = state_q == C_IDLE || diag_q;

  // ---------------------------------------------------------------- a look
  assign diag_look_o = '{valid: diag_q && state_q == C_PREP, resp: 1'b0, want: 1'b0, idx: qp_idx_t'(idx_q), epoch: sec_q.epoch, wqe: sec_q.snd_wqe};
  assign diag_done_o = state_q == C_DIAG;
  rnic_send_look #(.QpIdxW(QpIdxW), .InflightCap(InflightCap)) u_look (
      .visit_i(visit_o), .same_life_i(epoch_ok), .enable_i, .stop_i, .tx_busy_i(jobs_busy_qp_i), .rx_busy_i(place_busy_qp_i), .late_i(late),
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
    if (state_q == C_COLD && cold_rsp_valid_i) begin
      ctx_q <= cold_rsp_i;
      sec_q <= sec_rd;
    end
    if (state_q == C_PREP && same_life && !diag_q) begin
      if (!epoch_ok) begin
        sec_q <= sec_init(hot_i.epoch);
      end else if (!sec_q.live && sending_state) begin
        sec_q.live     <= 1'b1;
        sec_q.next_psn <= ctx_q.path.sq_psn;
        sec_q.una_psn  <= ctx_q.path.sq_psn;
        sec_q.top_psn  <= ctx_q.path.sq_psn;
      end else begin
        sec_q <= sec_prep;
      end
    end
    if (resp_upd_i) sec_q <= resp_sec_i;
    if (retire_upd_i) sec_q <= retire_sec_i;
    if (pkt_upd_i) sec_q <= pkt_sec_i;

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
      a_one_update : assert (32'(resp_upd_i) + 32'(retire_upd_i) + 32'(pkt_upd_i) <= 1);
      if (resp_upd_i) a_resp_at_work : assert (state_q == C_RESP);
      if (retire_upd_i) a_retire_at_work : assert (state_q == C_RETIRE);
      if (pkt_upd_i) a_pkt_at_work : assert (state_q == C_PKT);
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
