// SPDX-License-Identifier: Apache-2.0
// What a judged and placed packet, or a visit, of the responder leads to.
// Contract: combinational. Of the kinds of visit at most one is high, and none beside a packet; the verdict is that of the packet. A packet that is
// dropped or ignored leads to nothing: its outputs do not count. own_fault_i: the host did not deliver a WQE or an atomic's
// memory; wqe_lost_i: the WQE of a shared receive queue was not, so that no receive WQE reports it. reads_wait_i: READ responses are to
// be sent before: then a response waits in the section (respond_o without do_job_o).
module rnic_resp_effect
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
  import rnic_recv_pkg::*;
(
    input  logic         enable_i,
    // a visit, and its kind
    input  logic         visit_i,
    input  logic         flush_i,
    input  logic         last_i,
    input  logic         left_i,
    input  logic         send_deferred_i,
    // the packet
    // verilator lint_off UNUSEDSIGNAL
    input  verdict_t     verdict_i,
    input  opcode_info_t info_i,
    // verilator lint_on UNUSEDSIGNAL
    input  wc_status_e   status_i,
    input  logic         ack_req_i,
    input  logic         rtr_i,
    input  logic [4:0]   min_rnr_timer_i,
    input  logic         wqe_lost_i,
    input  logic         own_fault_i,
    // section
    input  logic         in_send_i,
    input  logic         comm_est_i,
    input  logic         nak_sent_i,
    input  logic         halted_i,
    input  logic         def_valid_i,
    input  logic [7:0]   def_synd_i,
    input  logic         reads_wait_i,
    // effects
    output logic         ok_o,               // executed
    output logic         fatal_o,            // the QP halts
    output logic         do_comm_o,
    output logic         do_cqe_o,
    output wc_status_e   cqe_status_o,
    output logic         do_event_o,
    output event_type_e  event_o,
    output logic         respond_o,
    output logic [7:0]   syndrome_o,
    output logic         do_job_o,           // the response leaves now
    output logic         do_err_o
);
  logic wqe_used, to_engine, ends, halts;
  assign to_engine = info_i.is_read_req || info_i.is_atomic_req;
  assign ends      = info_i.last || info_i.only;
  always_comb begin
    ok_o = !visit_i && verdict_i.exec && status_i == WC_STATUS_SUCCESS;
    fatal_o = !visit_i && (verdict_i.nak || (verdict_i.exec && status_i != WC_STATUS_SUCCESS));
    // An error is reported by the receive WQE in use; a WRITE with immediate uses one once it is there.
    wqe_used = in_send_i || (verdict_i.exec && (info_i.is_send || (info_i.is_write && info_i.has_imm)) && !wqe_lost_i);
    do_cqe_o = 1'b0;
    do_event_o = 1'b0;
    respond_o = 1'b0;
    syndrome_o = AETH_SYNDROME_ACK_NO_CREDIT;
    do_err_o = 1'b0;
    cqe_status_o = WC_STATUS_SUCCESS;
`ifdef RNIC_CUT_RECV_COMM_EST
    do_comm_o = 1'b0;
`else
    do_comm_o = !visit_i && rtr_i && !comm_est_i && !verdict_i.drop;
`endif
    if (ok_o) begin
      do_cqe_o = ends && wqe_used;
      respond_o = ack_req_i && !to_engine;
    end else if (fatal_o) begin
      do_cqe_o = wqe_used;
`ifndef RNIC_CUT_RECV_EVENT
      do_event_o = !wqe_used;
`endif
      respond_o = 1'b1;
      case (verdict_i.nak ? WC_STATUS_REM_INV_REQ_ERR : status_i)
        WC_STATUS_REM_INV_REQ_ERR, WC_STATUS_LOC_LEN_ERR: syndrome_o = AETH_SYNDROME_NAK_INV_REQ;
        WC_STATUS_LOC_ACCESS_ERR: syndrome_o = AETH_SYNDROME_NAK_REM_ACCESS;
        default: syndrome_o = AETH_SYNDROME_NAK_REM_OP;
      endcase
      cqe_status_o = verdict_i.nak ? WC_STATUS_REM_INV_REQ_ERR : status_i;
    end else if (!visit_i && verdict_i.gap) begin
      respond_o = !nak_sent_i;
      syndrome_o = AETH_SYNDROME_NAK_PSN_SEQ;
`ifdef RNIC_CUT_RECV_GAP_ONCE
      respond_o = 1'b1;
`endif
    end else if (!visit_i && verdict_i.rnr) begin
      respond_o = 1'b1;
      syndrome_o = 8'(AETH_SYNDROME_RNR_BASE) | 8'(min_rnr_timer_i);
    end else if (!visit_i && verdict_i.dup_ack) begin
`ifndef RNIC_CUT_RECV_DUP_ACK
      respond_o = 1'b1;
`endif
    end else if (flush_i) begin
      do_cqe_o = 1'b1;
      cqe_status_o = WC_STATUS_WR_FLUSH_ERR;
    end else if (last_i) begin
`ifndef RNIC_CUT_SRQ_FLUSH
      do_cqe_o = in_send_i;
      cqe_status_o = WC_STATUS_WR_FLUSH_ERR;
`endif
`ifndef RNIC_CUT_SRQ_LAST
      do_event_o = 1'b1;
`endif
    end else if (left_i) begin
      do_cqe_o = enable_i;
      cqe_status_o = WC_STATUS_WR_FLUSH_ERR;
    end else if (send_deferred_i) begin
      respond_o = 1'b1;
      syndrome_o = def_synd_i;
    end
    // An ACK does not take the place of a NAK that waits, since both name the same PSN; but when the packet that it names has come
    // after all, what remains of the NAK is that it acknowledges.
    if (respond_o && def_valid_i && !ok_o && syndrome_o == AETH_SYNDROME_ACK_NO_CREDIT) syndrome_o = def_synd_i;
    do_job_o = respond_o;
`ifndef RNIC_CUT_RECV_DEFER
    if (reads_wait_i) do_job_o = 1'b0;
`endif
    halts = halted_i;
`ifndef RNIC_CUT_RECV_HALT
    if (fatal_o) halts = 1'b1;
`endif
    // ERR is asked for when the NAK leaves: in ERR the READ responses before it would never be sent.
`ifdef RNIC_CUT_RECV_QP_ERR
    do_err_o = 1'b0;
`else
    do_err_o = do_job_o && halts;
`endif
    event_o = last_i ? EVENT_TYPE_QP_LAST_WQE_REACHED : own_fault_i ? EVENT_TYPE_QP_FATAL
            : (syndrome_o == AETH_SYNDROME_NAK_REM_ACCESS) ? EVENT_TYPE_QP_ACCESS_ERR : EVENT_TYPE_QP_REQ_ERR;
  end
endmodule
