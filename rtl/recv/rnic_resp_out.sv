// SPDX-License-Identifier: Apache-2.0
// Hands over what a committed packet or visit of the responder leads to, one after the other: COMM_EST event, CQE, another
// event, ACK or NAK, request for ERR.
// Contract: commit_i only while idle_o; the fields beside it are taken in that cycle, the section's a cycle later. Each hand-over is held until ready. settle_i: what
// follows the CQE waits until cq_idle_i, so that it comes after every completion. While
// the rest of a packet is handed over, the next one may be checked and placed. With hold_i beside the commit, the packet's payload
// is still on its way: nothing is handed over before release_i.
module rnic_resp_out
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
(
    input  logic        clk_i,
    input  logic        rst_i,
    input  logic        commit_i,
    input  logic        hold_i,
    input  logic        release_i,
    output logic        idle_o,
    input  qp_idx_t     qp_idx_i,
    input  epoch_t      epoch_i,
    input  qpn_t        qpn_i,
    input  logic        do_comm_i,
    input  logic        do_cqe_i,
    input  cqe_req_t    cqe_i,
    input  logic        settle_i,
    input  logic        cq_idle_i,
    input  logic        do_event_i,
    input  event_type_e event_i,
    input  logic        do_job_i,
    input  logic [7:0]  syndrome_i,
    input  logic        do_err_i,
    // the section, as the commit left it
    input  psn_t        epsn_i,
    input  logic [23:0] msn_i,
    input  logic [31:0] done_i,
    output logic        job_valid_o,
    input  logic        job_ready_i,
    output tx_job_t     job_o,
    output logic        cqe_valid_o,
    input  logic        cqe_ready_i,
    output cqe_req_t    cqe_o,
    output logic        eqe_valid_o,
    input  logic        eqe_ready_i,
    output eqe_req_t    eqe_o,
    output logic        qp_err_valid_o,
    input  logic        qp_err_ready_i,
    output qp_err_t     qp_err_o
);
  // What is still due, in the order of the bits from 0 up: COMM_EST, CQE, completions written, event, job, ERR.
  logic [5:0] due_q, first, done;
  event_type_e event_q;
  // verilator lint_off UNUSEDSIGNAL
  cqe_req_t cqe_q;             // (the length comes later)
  // verilator lint_on UNUSEDSIGNAL
  qpn_t qpn_q;
  logic [7:0] syndrome_q;
  psn_t psn_q;
  logic [23:0] msn_q;
  logic [31:0] done_q;
  qp_err_t err_q;

  logic late_q, hold_q;        // the section is taken; the payload is on its way
  always_ff @(posedge clk_i) late_q <= !rst_i && commit_i;
`ifdef RNIC_CUT_RECV_PAYLOAD_FIRST
  assign hold_q = 1'b0;
`else
  always_ff @(posedge clk_i) hold_q <= !rst_i && (commit_i ? hold_i : hold_q && !release_i);
`endif
  assign first  = (hold_q || late_q) ? '0 : due_q & (~due_q + 6'd1);
  assign done   = {qp_err_ready_i, job_ready_i, eqe_ready_i, cq_idle_i, cqe_ready_i, eqe_ready_i};
  assign idle_o = due_q == '0;

  assign cqe_valid_o    = first[1];
  assign eqe_valid_o    = first[0] || first[3];
  assign job_valid_o    = first[4];
  assign qp_err_valid_o = first[5];
  assign qp_err_o       = err_q;
  always_comb begin
    cqe_o          = cqe_q;
    cqe_o.byte_len = (cqe_q.status == WC_STATUS_SUCCESS) ? done_q : '0;
    eqe_o  = '0;        // event queue 0 takes the asynchronous events
    eqe_o.event_type = first[0] ? EVENT_TYPE_COMM_EST : event_q;
    eqe_o.number     = 32'(qpn_q);
    job_o  = '0;
    job_o.qp_idx   = err_q.idx;
    job_o.opcode   = OPC_RC_ACKNOWLEDGE;
    job_o.psn      = psn_q;
    job_o.syndrome = syndrome_q;
    job_o.msn      = msn_q;
  end

  always_ff @(posedge clk_i) begin
    if (commit_i) begin
      cqe_q      <= cqe_i;
      qpn_q      <= qpn_i;
      syndrome_q <= syndrome_i;
      event_q    <= event_i;
      err_q      <= '{idx: qp_idx_i, epoch: epoch_i, to_sqe: 1'b0};
    end
    if (late_q) begin
      // An ACK names the last PSN that was executed, a NAK the one that was not.
      psn_q  <= epsn_i - psn_t'(syndrome_q == AETH_SYNDROME_ACK_NO_CREDIT);
      msn_q  <= msn_i;
      done_q <= done_i;
    end
    if (rst_i) due_q <= '0;
    else if (commit_i) due_q <= {do_err_i, do_job_i, do_event_i, settle_i, do_cqe_i, do_comm_i};
    else due_q <= due_q & ~(first & done);
  end

  always_ff @(posedge clk_i) if (!rst_i && commit_i) a_one_at_a_time : assert (idle_o);
endmodule
