// SPDX-License-Identifier: Apache-2.0
// Proof about rnic_qp_gate: it says yes exactly when the second transcription of the table and the plain words of the value rules do,
// for every type, state, mask and value; and it names the first rule that refuses, with its attributes.
// Contract: every input is free in every cycle.
//
//   p_verdict  accepted if and only if the second table has the edge, every attribute that it requires is named, none that it does not
//              allow, and no value rule refuses
//   p_rule     the rule that is told is the first one that refuses, in the order of the book
//   p_detail   the attributes that are told are the ones which that rule is about
module prove_qp_gate
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
  import qp_table_oracle_pkg::*;
(
    input logic       clk_i,
    input logic [3:0] qp_type_i,
    input logic [2:0] state_i,
    input logic       draining_i,
    input logic       to_init_i,
    input logic [7:0] port_i,
    input qp_attr_t   attr_i,
    input port_cfg_t  port_cfg_i
);
  logic ok;
  gate_rule_e rule;
  logic [31:0] detail;
  rnic_qp_gate dut (
      .clk_i, .qp_type_i, .state_i(qp_state_e'(state_i)), .draining_i, .to_init_i, .port_i, .attr_i, .port_cfg_i,
      .ok_o(ok), .rule_o(rule), .detail_o(detail)
  );

  // ---------------------------------------------------------------- what should come out
  logic [2:0] next;
  oracle_t row;
  logic [31:0] mask, missing, excess, bad;
  logic wrong_cur, illegal, draining;
  assign mask = attr_i.mask;
  assign next = mask[0] ? attr_i.qp_state : state_i;
  assign row  = oracle(qp_type_i, state_i, next);
  always_comb begin
    wrong_cur = mask[1] && attr_i.cur_qp_state != state_i;
    illegal   = !row.legal || (to_init_i && next != 3'd1);
    // STATE is implied: it is neither missing nor too much.
    missing   = 32'(row.req) & ~mask & ~32'd1;
    excess    = mask & ~(32'(row.allow) | 32'd1);
    draining  = draining_i && !(next inside {3'd0, 3'd6});
    bad       = '0;
    if (mask[4]) bad[4] = attr_i.pkey_index > 16'd7 || port_cfg_i.pkey[attr_i.pkey_index[2:0]][14:0] == 15'd0;
    if (mask[5]) bad[5] = attr_i.port != 8'd1;
    if (mask[7])
      bad[7] = !attr_i.is_global || attr_i.sgid_index > 8'd15 || attr_i.av_port != 8'd1 || attr_i.av_port != (mask[5] ? attr_i.port : port_i)
          || (attr_i.dgid[79:0] == 80'd0 && attr_i.dgid[95:80] == 16'hffff
              ? port_cfg_i.gid_v6[attr_i.sgid_index[3:0]] : port_cfg_i.gid_v4[attr_i.sgid_index[3:0]]);
    if (mask[8]) bad[8] = !(attr_i.path_mtu inside {[8'd1 : 8'd5]}) || attr_i.path_mtu > 8'(port_cfg_i.mtu);
    if (mask[9]) bad[9] = attr_i.timeout >= 8'd32;
    if (mask[10]) bad[10] = attr_i.retry_cnt >= 8'd8;
    if (mask[11]) bad[11] = attr_i.rnr_retry >= 8'd8;
    if (mask[12]) bad[12] = attr_i.rq_psn >= 32'h100_0000;
    if (mask[13]) bad[13] = attr_i.max_rd_atomic > 8'd16;
    if (mask[14]) bad[14] = 1'b1;
    if (mask[15]) bad[15] = attr_i.min_rnr_timer >= 8'd32;
    if (mask[16]) bad[16] = attr_i.sq_psn >= 32'h100_0000;
    if (mask[17]) bad[17] = attr_i.max_dest_rd_atomic > 8'd16;
    if (mask[18]) bad[18] = attr_i.path_mig_state == 2'd3;
    if (mask[20]) bad[20] = attr_i.dest_qpn >= 32'h100_0000;
  end

  gate_rule_e want_rule;
  logic [31:0] want_detail, lowest;
  always_comb begin
    lowest = '0;
    for (int i = 31; i >= 0; i--) if (bad[i]) lowest = 32'd1 << i;
    want_rule   = GATE_RULE_NONE;
    want_detail = '0;
    if (draining) want_rule = GATE_RULE_DRAINING;
    if (bad != '0) {want_rule, want_detail} = {GATE_RULE_BAD_VALUE, lowest};
    if (excess != '0) {want_rule, want_detail} = {GATE_RULE_EXCESS_ATTRS, excess};
    if (missing != '0) {want_rule, want_detail} = {GATE_RULE_MISSING_ATTRS, missing};
    if (illegal) {want_rule, want_detail} = {GATE_RULE_ILLEGAL_EDGE, 32'd0};
    if (wrong_cur) {want_rule, want_detail} = {GATE_RULE_WRONG_CUR_STATE, 32'd0};
  end

  // The answer stands two cycles after its question.
  gate_rule_e rule_1, rule_2;
  logic [31:0] detail_1, detail_2;
  logic [1:0] age_q;
  initial age_q = '0;
  always_ff @(posedge clk_i) begin
    if (age_q != 2'd3) age_q <= age_q + 2'd1;
    {rule_1, detail_1} <= {want_rule, want_detail};
    {rule_2, detail_2} <= {rule_1, detail_1};
    if (age_q >= 2'd2) begin
      p_verdict : assert (ok == (rule_2 == GATE_RULE_NONE));
      p_rule : assert (rule == rule_2);
      p_detail : assert (detail == detail_2);
      // Nothing above is empty: each kind of answer exists.
      c_ok : cover (ok);
      c_draining : cover (rule == GATE_RULE_DRAINING);
      c_bad_value : cover (rule == GATE_RULE_BAD_VALUE);
      c_excess : cover (rule == GATE_RULE_EXCESS_ATTRS);
      c_missing : cover (rule == GATE_RULE_MISSING_ATTRS);
      c_illegal : cover (rule == GATE_RULE_ILLEGAL_EDGE);
      c_wrong_cur : cover (rule == GATE_RULE_WRONG_CUR_STATE);
    end
  end

  // Every edge of the table is accepted, for one type at least.
  function automatic logic exists(logic [2:0] from, logic [2:0] to);
    exists = 1'b0;
    for (int unsigned t = 0; t < 16; t++) begin
      automatic oracle_t r = oracle(4'(t), from, to);
      if (r.legal) exists = 1'b1;
    end
  endfunction
  logic [2:0] from_1, from_2, to_1, to_2;
  always_ff @(posedge clk_i) begin
    {from_1, to_1} <= {state_i, next};
    {from_2, to_2} <= {from_1, to_1};
  end
  for (genvar f = 0; f < 7; f++) begin : g_from
    for (genvar g = 0; g < 7; g++) begin : g_to
      if (exists(3'(f), 3'(g))) begin : g_edge
        always_ff @(posedge clk_i) if (age_q >= 2'd2) c_edge : cover (ok && from_2 == 3'(f) && to_2 == 3'(g));
      end
    end
  end
endmodule
