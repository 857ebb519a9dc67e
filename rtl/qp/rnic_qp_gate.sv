// SPDX-License-Identifier: Apache-2.0
// The gate: may this QP take this attribute record? A table (type, state, next state) gives legality and masks, then
// the values are judged. It changes nothing itself.
// Contract: one question a cycle; the answer stands two cycles after its question. ok_o means that
// no rule refuses; else rule_o is the first of gate_rule_e that does, and detail_o the attributes it is about.
module rnic_qp_gate
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned MaxRd = MAX_RD_ATOMIC    // READs and atomics outstanding that the build has slots for
) (
    input  logic        clk_i,
    // question
    input  logic [3:0]  qp_type_i,
    input  qp_state_e   state_i,       // the QP's own, whatever the caller believes
    input  logic        draining_i,    // SQD, and the send queue is not at rest yet
    input  logic        to_init_i,     // INSTALL: no other state than INIT may be asked for
    input  logic [7:0]  port_i,        // port of the context, for an address vector given without PORT
    // verilator lint_off UNUSEDSIGNAL
    // (what has no bad value is not looked at)
    input  qp_attr_t    attr_i,
    input  port_cfg_t   port_cfg_i,
    // verilator lint_on UNUSEDSIGNAL
    // answer
    output logic        ok_o,
    output gate_rule_e  rule_o,
    output logic [31:0] detail_o
);
  localparam int unsigned PkeyW = $clog2(NUM_PKEY);

  logic [31:0] mask;
  logic [2:0]  next;
  qp_edge_t    way;
  logic [31:0] missing, excess, bad;

  assign mask = attr_i.mask;
  assign next = mask[QP_ATTR_BIT_STATE] ? attr_i.qp_state : state_i;
  assign way  = qp_edge(qp_type_i, state_i, next);

  // Every required attribute must be there and no other than the allowed ones. STATE is neither.
  assign missing = 32'(way.req_mask) & ~mask;
  assign excess  = mask & ~(32'(way.allow_mask) | (32'd1 << QP_ATTR_BIT_STATE));

  // ---------------------------------------------------------------- values
  logic [7:0] port_eff;
  logic [14:0] pkey_low;                // a P_Key whose low 15 bits are zero is no key
  assign port_eff = mask[QP_ATTR_BIT_PORT] ? attr_i.port : port_i;
  assign pkey_low = port_cfg_i.pkey[attr_i.pkey_index[PkeyW-1:0]][14:0];

  logic other_ip;                       // (an entry that is empty may be filled later)
  gid_idx_t gid_idx;
  assign gid_idx  = gid_idx_t'(attr_i.sgid_index);
`ifdef RNIC_CUT_QP_GATE_IP
  assign other_ip = 1'b0;
`else
  assign other_ip = gid_is_v4(attr_i.dgid) ? port_cfg_i.gid_v6[gid_idx] : port_cfg_i.gid_v4[gid_idx];
`endif

  always_comb begin
    bad = '0;
    bad[QP_ATTR_BIT_PKEY_INDEX] = 32'(attr_i.pkey_index) >= NUM_PKEY || pkey_low == '0;
    bad[QP_ATTR_BIT_PORT]       = attr_i.port == '0 || 32'(attr_i.port) > NUM_PORTS;
    // RoCE addresses by GID alone, from an entry of the port that the QP stands on and of the same version of IP.
    bad[QP_ATTR_BIT_AV]         = !attr_i.is_global || 32'(attr_i.sgid_index) >= NUM_GID || attr_i.av_port == '0
        || 32'(attr_i.av_port) > NUM_PORTS || attr_i.av_port != port_eff || other_ip;
    bad[QP_ATTR_BIT_PATH_MTU]   = attr_i.path_mtu == '0 || attr_i.path_mtu > 8'(MTU_4096) || attr_i.path_mtu > 8'(port_cfg_i.mtu);
    bad[QP_ATTR_BIT_TIMEOUT]    = attr_i.timeout > 8'd31;
    bad[QP_ATTR_BIT_RETRY_CNT]  = attr_i.retry_cnt > 8'd7;
    bad[QP_ATTR_BIT_RNR_RETRY]  = attr_i.rnr_retry > 8'd7;
    bad[QP_ATTR_BIT_RQ_PSN]     = attr_i.rq_psn[31:24] != '0;
    bad[QP_ATTR_BIT_MAX_QP_RD_ATOMIC]   = 32'(attr_i.max_rd_atomic) > MaxRd;
    bad[QP_ATTR_BIT_ALT_PATH]   = 1'b1; // no path migration on RoCE
    bad[QP_ATTR_BIT_MIN_RNR_TIMER]      = attr_i.min_rnr_timer > 8'd31;
    bad[QP_ATTR_BIT_SQ_PSN]     = attr_i.sq_psn[31:24] != '0;
    bad[QP_ATTR_BIT_MAX_DEST_RD_ATOMIC] = 32'(attr_i.max_dest_rd_atomic) > MaxRd;
    bad[QP_ATTR_BIT_PATH_MIG_STATE]     = attr_i.path_mig_state == 2'd3;
    bad[QP_ATTR_BIT_DEST_QPN]   = attr_i.dest_qpn[31:24] != '0;
    bad &= mask;
`ifdef RNIC_CUT_QP_GATE_VALUE
    bad = '0;
`endif
  end

  // ---------------------------------------------------------------- the first rule that refuses
  logic        wrong_cur_q, illegal_q, draining_q;
  logic [31:0] missing_q, excess_q, bad_q;

  always_ff @(posedge clk_i) begin
    wrong_cur_q <= mask[QP_ATTR_BIT_CUR_STATE] && attr_i.cur_qp_state != state_i;
    illegal_q   <= !way.legal || (to_init_i && next != QP_STATE_INIT);
    missing_q   <= missing;
    excess_q    <= excess;
    bad_q       <= bad;
    draining_q  <= draining_i && next != QP_STATE_ERR && next != QP_STATE_RESET;
`ifdef RNIC_CUT_QP_GATE_CUR
    wrong_cur_q <= 1'b0;
`endif
`ifdef RNIC_CUT_QP_GATE_EDGE
    illegal_q   <= 1'b0;
`endif
`ifdef RNIC_CUT_QP_GATE_MISSING
    missing_q   <= '0;
`endif
`ifdef RNIC_CUT_QP_GATE_EXCESS
    excess_q    <= '0;
`endif
`ifdef RNIC_CUT_QP_GATE_DRAINING
    draining_q  <= 1'b0;
`endif
  end

  gate_rule_e  rule;
  logic [31:0] detail;
  always_comb begin
    rule   = GATE_RULE_NONE;
    detail = '0;
    if (wrong_cur_q) begin
      rule = GATE_RULE_WRONG_CUR_STATE;
    end else if (illegal_q) begin
      rule = GATE_RULE_ILLEGAL_EDGE;
    end else if (missing_q != '0) begin
      rule   = GATE_RULE_MISSING_ATTRS;
      detail = missing_q;
    end else if (excess_q != '0) begin
      rule   = GATE_RULE_EXCESS_ATTRS;
      detail = excess_q;
    end else if (bad_q != '0) begin
      rule   = GATE_RULE_BAD_VALUE;
      detail = bad_q & (~bad_q + 32'd1);   // the lowest
    end else if (draining_q) begin
      rule = GATE_RULE_DRAINING;
    end
  end

  always_ff @(posedge clk_i) begin
    rule_o   <= rule;
    detail_o <= detail;
    ok_o     <= rule == GATE_RULE_NONE;
  end
endmodule
