// SPDX-License-Identifier: Apache-2.0
// What a look at a queue pair shows of its requester: the first words of a QpLive, from the visit that the look is.
// Contract: combinational. same_life_i: the section is of the life at hand; wqe_i answers whether the next WQE is on chip or on its way.
// Words from DIAG_SEND_WORDS on are the responder's, and 0 here.
module rnic_send_look
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
  import rnic_send_pkg::*;
#(
    parameter int unsigned QpIdxW = 10,
    parameter int unsigned InflightCap = 32
) (
    // verilator lint_off UNUSEDSIGNAL
    input  visit_t      visit_i,
    input  look_res_t   wqe_i,
    // verilator lint_on UNUSEDSIGNAL
    input  logic        same_life_i,
    input  logic        enable_i,
    input  logic        stop_i,
    input  logic        tx_busy_i,
    input  logic        rx_busy_i,
    input  tick_t       late_i,
    input  logic [2:0]  word_i,
    output logic [63:0] word_o
);
  // verilator lint_off UNUSEDSIGNAL
  qp_hot_t hot;
  sq_sec_t sec;
  qp_path_t path;
  qp_live_t live;
  // verilator lint_on UNUSEDSIGNAL
  assign hot  = visit_i.ctx.hot;
  assign sec  = visit_i.sec;
  assign path = visit_i.ctx.path;
  always_comb begin
    live               = '0;
    live.qpn           = make_qpn(hot.gen, visit_i.idx, QpIdxW);
    live.state         = hot.state;
    live.sq_draining   = hot.sq_draining;
    live.valid         = hot.valid;
    live.live          = sec.live && same_life_i;
    live.halted        = sec.halted;
    live.enabled       = enable_i;
    live.resync        = sec.resync;
    live.rnr_wait      = sec.timer.rnr_wait;
    live.timer_on      = sec.timer.on;
    live.rem_fail      = sec.rem_fail;
    live.loc_fail      = sec.loc_fail;
    live.alone         = sec.alone;
    live.records_full  = sec.count >= 8'(InflightCap) || (sec.alone && sec.count != '0);
    live.stopped       = stop_i;
    live.wqe_here      = wqe_i.hit;
    live.wqe_pending   = wqe_i.pend;
    live.tx_waiting    = tx_busy_i;
    live.rx_waiting    = rx_busy_i;
    live.records       = sec.count;
    live.rd_count      = sec.rd_cnt;
    live.sq_prod       = visit_i.prod;
    live.sq_cons       = sec.cons;
    live.sq_fresh      = sec.fresh;
    live.snd_wqe       = sec.snd_wqe;
    live.snd_off       = sec.snd_off;
    live.msg_len       = sec.msg_len;
    live.next_psn      = sec.next_psn;
    live.retries       = sec.retries;
    live.una_psn       = sec.una_psn;
    live.rnr_tries     = sec.rnr_tries;
    live.top_psn       = sec.top_psn;
    live.retry_cnt     = path.retry_cnt;
    live.rnr_retry     = path.rnr_retry;
    live.max_rd_atomic = path.max_rd_atomic;
    live.rd_psn        = sec.rd_psn;
    live.timeout       = path.timeout;
    live.late          = late_i;
  end
  always_comb begin
    word_o = '0;
`ifndef RNIC_CUT_DIAG_SEND
    for (int unsigned w = 0; w < DIAG_SEND_WORDS; w++) if (word_i == 3'(w)) word_o = live[64*w+:64];
`endif
  end
endmodule
