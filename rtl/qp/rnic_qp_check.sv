// SPDX-License-Identifier: Apache-2.0
// Judges the parameters of a QP command, before any QP is looked at.
// Contract: cmd_i is held; the answer stands two cycles later for a command that creates (object tables are looked up in the
// first cycle), one cycle later for the others.
// status_o OK, or the first thing wrong with detail_o its byte offset in the command. The order is that of the statements.
// With a shared receive queue nothing is asked of the fields that describe a receive ring.
module rnic_qp_check
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned QpIdxW = 8,
    parameter int unsigned GenW = 16,
    parameter int unsigned NumCq = 256,
    parameter int unsigned NumSrq = 64,
    parameter int unsigned MaxSqStride = 4,
    parameter int unsigned MaxRqStride = 4
) (
    input  logic clk_i,
    // verilator lint_off UNUSEDSIGNAL
    // (tag; reserved bits but for the flags are judged before)
    input  cmd_qp_t cmd_i,
    // verilator lint_on UNUSEDSIGNAL
    input  logic [NUM_PD-1:0] pd_valid_i,
    input  logic [NumCq-1:0] cq_valid_i,
    input  logic [NumSrq-1:0] srq_valid_i,
    input  logic [NUM_XRCD-1:0] xrcd_valid_i,
    output cmd_status_e status_o,
    output logic [31:0] detail_o,
    // of the type
    output logic has_send_cq_o,
    output logic has_recv_cq_o
);
  localparam int unsigned PdW = $clog2(NUM_PD);
  localparam int unsigned CqW = $clog2(NumCq);

  localparam int unsigned SrqW = $clog2(NumSrq);
  localparam int unsigned XrcdW = $clog2(NUM_XRCD);

  logic pd_ok_q, send_cq_ok_q, recv_cq_ok_q, srq_ok_q, in_xrcd, use_srq, may_use_srq;
  // An XRC target belongs to an XRC domain instead of a PD.
`ifdef RNIC_CUT_XRC_TGT_DOMAIN
  assign in_xrcd     = 1'b0;
`else
  assign in_xrcd     = cmd_i.qp_type == QP_TYPE_XRC_TGT;
`endif
  assign use_srq     = cmd_i.flags[CMD_FLAG_USE_SRQ];
  assign may_use_srq = cmd_i.qp_type == QP_TYPE_RC || cmd_i.qp_type == QP_TYPE_UC || cmd_i.qp_type == QP_TYPE_UD || cmd_i.qp_type == QP_TYPE_DCT;
  always_ff @(posedge clk_i) begin
    pd_ok_q      <= in_xrcd ? 32'(cmd_i.pd) < NUM_XRCD && xrcd_valid_i[cmd_i.pd[XrcdW-1:0]]
                            : 32'(cmd_i.pd) < NUM_PD && pd_valid_i[cmd_i.pd[PdW-1:0]];
    srq_ok_q     <= 32'(cmd_i.srq) < NumSrq && srq_valid_i[cmd_i.srq[SrqW-1:0]];
    send_cq_ok_q <= 32'(cmd_i.send_cq) < NumCq && cq_valid_i[cmd_i.send_cq[CqW-1:0]];
    recv_cq_ok_q <= 32'(cmd_i.recv_cq) < NumCq && cq_valid_i[cmd_i.recv_cq[CqW-1:0]];
  end

  logic is_create, is_install, is_modify, is_destroy, is_query, is_list, known_type;
  logic contiguous, requested, use_list, records;
  logic [7:0] rsvd_flags;
  logic [31:0] table_size;
  assign is_install = cmd_i.opcode == CMD_OPCODE_INSTALL_QP;
  assign is_create  = cmd_i.opcode == CMD_OPCODE_CREATE_QP || is_install;
  assign is_modify  = cmd_i.opcode == CMD_OPCODE_MODIFY_QP;
  assign is_destroy = cmd_i.opcode == CMD_OPCODE_DESTROY_QP;
  assign is_query   = cmd_i.opcode == CMD_OPCODE_QUERY_QP;
  assign is_list    = cmd_i.opcode == CMD_OPCODE_LIST_QP;
  assign contiguous = cmd_i.flags[CMD_FLAG_CONTIGUOUS];
  assign requested  = cmd_i.flags[CMD_FLAG_REQUESTED];
  assign use_list   = cmd_i.flags[CMD_FLAG_LIST];
  assign records    = cmd_i.flags[CMD_FLAG_RECORDS];
  assign table_size = 32'd1 << QpIdxW;
  assign rsvd_flags = 8'(cmd_rsvd_mask(cmd_i.opcode) >> 8);

  assign has_send_cq_o = cmd_i.qp_type != QP_TYPE_XRC_TGT && cmd_i.qp_type != QP_TYPE_DCT;
  assign has_recv_cq_o = cmd_i.qp_type != QP_TYPE_XRC_TGT && cmd_i.qp_type != QP_TYPE_XRC_INI;

  always_comb begin
    unique case (cmd_i.qp_type)
      QP_TYPE_GSI, QP_TYPE_RC, QP_TYPE_UC, QP_TYPE_UD, QP_TYPE_DCI, QP_TYPE_DCT, QP_TYPE_RAW_PACKET, QP_TYPE_XRC_INI,
      QP_TYPE_XRC_TGT: known_type = 1'b1;
      default: known_type = 1'b0;
    endcase
  end

  // A number that may be asked for: index 1 is the GSI QP with generation 0, and nothing else is; all ones is multicast.
  logic want_ok, want_gsi;
  assign want_gsi = cmd_i.handle == 32'd1;
  assign want_ok  = (cmd_i.handle >> (QpIdxW + GenW)) == '0 && cmd_i.handle != 32'(QPN_MULTICAST)
      && cmd_i.handle[QpIdxW-1:0] != '0 && (cmd_i.handle[QpIdxW-1:0] != QpIdxW'(1) || want_gsi);

  cmd_status_e status;
  logic [5:0] detail;
  always_comb begin
    status = CMD_STATUS_OK;
    detail = '0;
    if (!is_create && !is_modify && !is_destroy && !is_query && !is_list) begin
      status = CMD_STATUS_UNSUPPORTED;
    end else if ((cmd_i.flags & rsvd_flags) != '0) begin
      status = CMD_STATUS_RESERVED_SET;         // a flag that the command does not know
    end else if (cmd_i.count == '0 || 32'(cmd_i.count) > table_size || ((requested || is_query) && cmd_i.count != 24'd1)
        || (records && 32'(cmd_i.count) > MAX_RECORDS)) begin
      status = CMD_STATUS_BAD_PARAM;
      detail = 6'd8;
    end else if (is_list) begin
      if (cmd_i.handle >= table_size) begin
        status = CMD_STATUS_BAD_PARAM;
        detail = 6'd4;
      end else if (cmd_i.by_type && !known_type) begin
        status = CMD_STATUS_BAD_PARAM;
        detail = 6'd11;
      end else if (cmd_i.by_state && cmd_i.state > 3'(QP_STATE_ERR)) begin
        status = CMD_STATUS_BAD_PARAM;
        detail = 6'd23;
      end else if (cmd_i.list_addr[5:0] != '0) begin
        status = CMD_STATUS_BAD_PARAM;
        detail = 6'd48;
      end
    end else if (!is_create) begin
      if (use_list && cmd_i.list_addr[5:0] != '0) begin
        status = CMD_STATUS_BAD_PARAM;
        detail = 6'd48;
      end else if (!is_destroy && cmd_i.attr_addr[5:0] != '0) begin
        status = CMD_STATUS_BAD_PARAM;
        detail = 6'd56;
      end
    end else if (!known_type || (cmd_i.qp_type == QP_TYPE_GSI && !requested)) begin
      status = CMD_STATUS_BAD_PARAM;
      detail = 6'd11;
`ifndef RNIC_CUT_QP_SRQ_TYPE
    end else if (use_srq ? !may_use_srq : cmd_i.qp_type == QP_TYPE_DCT) begin
      status = CMD_STATUS_BAD_PARAM;            // a DCT receives from nowhere else
      detail = 6'd1;
`endif
    end else if (requested && (!want_ok || (cmd_i.qp_type == QP_TYPE_GSI) != want_gsi)) begin
      status = CMD_STATUS_BAD_PARAM;
      detail = 6'd4;
    end else if (!pd_ok_q) begin
      status = CMD_STATUS_BAD_HANDLE;
      detail = 6'd12;
    end else if (has_send_cq_o && !send_cq_ok_q) begin
      status = CMD_STATUS_BAD_HANDLE;
      detail = 6'd14;
    end else if (has_recv_cq_o && !recv_cq_ok_q) begin
      status = CMD_STATUS_BAD_HANDLE;
      detail = 6'd16;
`ifndef RNIC_CUT_QP_SRQ_CHECK
    end else if (use_srq && !srq_ok_q) begin
      status = CMD_STATUS_BAD_HANDLE;
      detail = 6'd18;
`endif
    end else if (32'(cmd_i.uar) >= NUM_UAR) begin
      status = CMD_STATUS_BAD_PARAM;
      detail = 6'd20;
    // verilator lint_off CMPCONST
    // (the fields are as wide as the largest ring needs, as long as MAX_LOG_RING is 15)
    end else if (32'(cmd_i.log_sq) > MAX_LOG_RING || 32'(cmd_i.log_rq) > MAX_LOG_RING) begin
    // verilator lint_on CMPCONST
      status = CMD_STATUS_BAD_PARAM;
      detail = 6'd21;
    end else if (32'(cmd_i.log_sq_stride) > MaxSqStride || (!use_srq && 32'(cmd_i.log_rq_stride) > MaxRqStride)) begin
      status = CMD_STATUS_BAD_PARAM;
      detail = 6'd22;
    end else if (cmd_i.sq_base[5:0] != '0) begin
      status = CMD_STATUS_BAD_PARAM;
      detail = 6'd24;
    end else if (!use_srq && cmd_i.rq_base[5:0] != '0) begin
      status = CMD_STATUS_BAD_PARAM;
      detail = 6'd32;
    end else if (cmd_i.count != 24'd1 && cmd_i.sq_pitch[5:0] != '0) begin
      status = CMD_STATUS_BAD_PARAM;            // else the next ring would stand askew
      detail = 6'd40;
    end else if (!use_srq && cmd_i.count != 24'd1 && cmd_i.rq_pitch[5:0] != '0) begin
      status = CMD_STATUS_BAD_PARAM;
      detail = 6'd44;
    end else if (!contiguous && (cmd_i.list_addr[5:0] != '0 || (cmd_i.list_addr == '0 && cmd_i.count != 24'd1))) begin
      status = CMD_STATUS_BAD_PARAM;            // nowhere to tell the numbers
      detail = 6'd48;
    end else if (is_install && cmd_i.attr_addr[5:0] != '0) begin
      status = CMD_STATUS_BAD_PARAM;
      detail = 6'd56;
    end
  end

  always_ff @(posedge clk_i) begin
    status_o <= status;
    detail_o <= 32'(detail);
  end
endmodule
