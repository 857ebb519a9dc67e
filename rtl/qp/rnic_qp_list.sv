// SPDX-License-Identifier: Apache-2.0
// LIST_QP: walks the table from an index on and tells the QPNs of those that live and are asked for.
// Contract: start_i (while the table has no other reader on the own port) with the command held until done_o, high for one cycle.
// Two walks, since the writer wants the length first: one counts up to the number asked for, one tells; nothing changes between them,
// as no command and no hardware error is applied meanwhile. One entry a cycle. count_o
// and next_o (index to go on from, 0 at the end of the table) stand with done_o.
module rnic_qp_list
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned QpIdxW = 8
) (
    input  logic clk_i,
    input  logic rst_i,
    input  logic start_i,
    // verilator lint_off UNUSEDSIGNAL
    // (fields of other commands)
    input  cmd_qp_t cmd_i,
    // verilator lint_on UNUSEDSIGNAL
    output logic busy_o,
    output logic done_o,
    output logic [QpIdxW:0] count_o,
    output logic [QpIdxW-1:0] next_o,
    // table
    output logic own_re_o,
    output logic [QpIdxW-1:0] own_idx_o,
    // verilator lint_off UNUSEDSIGNAL
    // (what is not asked for)
    input  qp_hot_t own_hot_i,
    // verilator lint_on UNUSEDSIGNAL
    input  logic [15:0] own_pd_i,
    // writer
    output logic out_start_o,
    output logic [18:0] out_len_o,
    input  logic out_room_i,
    output logic out_word_o,
    output logic [31:0] word_o
);
  typedef enum logic [1:0] {
    ST_IDLE,   // nothing asked for
    ST_COUNT,  // first walk: how many?
    ST_TELL    // second walk: which?
  } state_e;
  state_e state_q;

  logic [QpIdxW:0] idx_q, n_q, found_q;      // entry asked for next (high bit: end of the table); how many hits; of the first walk
  logic s1_valid_q, s1_end_q, s0_issue, hit, stop;
  logic [QpIdxW-1:0] s1_idx_q;
  logic end_of_table;
  assign end_of_table = idx_q[QpIdxW];
  assign busy_o       = state_q != ST_IDLE;
  assign own_re_o     = busy_o;
  assign own_idx_o    = idx_q[QpIdxW-1:0];
  assign s0_issue     = busy_o && !end_of_table && (state_q != ST_TELL || out_room_i);

  always_comb begin
    hit = s1_valid_q && own_hot_i.valid;
`ifndef RNIC_CUT_QP_LIST_FILTER
    if (cmd_i.by_state && own_hot_i.state != qp_state_e'(cmd_i.state)) hit = 1'b0;
    if (cmd_i.by_type && own_hot_i.qp_type != cmd_i.qp_type) hit = 1'b0;
    // An XRC target has a domain in the place of a PD.
    if (cmd_i.by_pd && (own_pd_i != cmd_i.pd || own_hot_i.qp_type == QP_TYPE_XRC_TGT)) hit = 1'b0;
`endif
  end
  // The walk ends at the last hit that there is room for, or with the table.
  assign stop        = s1_valid_q && ((hit && n_q + (QpIdxW + 1)'(1) == (state_q == ST_TELL ? found_q : (QpIdxW + 1)'(cmd_i.count))) || s1_end_q);
  assign out_start_o = state_q == ST_COUNT && stop && (hit || n_q != '0);
  assign out_len_o   = 19'(n_q + (QpIdxW + 1)'(hit)) << 2;
  assign out_word_o  = state_q == ST_TELL && hit;
  assign word_o      = 32'(make_qpn(own_hot_i.gen, qp_idx_t'(s1_idx_q), QpIdxW));

  always_ff @(posedge clk_i) begin
    done_o     <= 1'b0;
    s1_valid_q <= s0_issue && !stop;
    s1_idx_q   <= idx_q[QpIdxW-1:0];
    s1_end_q   <= idx_q[QpIdxW-1:0] == '1;
    if (s0_issue) idx_q <= idx_q + (QpIdxW + 1)'(1);
    if (hit) n_q <= n_q + (QpIdxW + 1)'(1);
    if (stop) begin
      n_q   <= '0;
      idx_q <= {1'b0, cmd_i.handle[QpIdxW-1:0]};
      if (state_q == ST_COUNT) begin
        found_q <= n_q + (QpIdxW + 1)'(hit);
        count_o <= n_q + (QpIdxW + 1)'(hit);
        next_o  <= s1_idx_q + QpIdxW'(1);    // past the last index it is 0
      end
      state_q <= out_start_o ? ST_TELL : ST_IDLE;
      done_o  <= !out_start_o;
    end
    if (start_i) begin
      state_q <= ST_COUNT;
      n_q     <= '0;
      idx_q   <= {1'b0, cmd_i.handle[QpIdxW-1:0]};
    end
    if (rst_i) begin
      state_q    <= ST_IDLE;
      s1_valid_q <= 1'b0;
      done_o     <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i && start_i) a_start_idle : assert (!busy_o);
  end
endmodule
