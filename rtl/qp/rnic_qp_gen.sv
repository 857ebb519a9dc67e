// SPDX-License-Identifier: Apache-2.0
// Generations of new QPs: the upper bits of a QPN change with every life of its index, so that a stale packet or handle is refused.
// Contract: clear_i before a command; look_i once for every index of a range, then none_o is right (with last_idx_i, the range's last index) and
// gen_o, for the index at hand: of a range the common one, beyond all that were used there; a requested one as asked;
// else the next one. 0xffffff is never made. taken_o: the requested number is alive or was the index's last life.
module rnic_qp_gen
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned QpIdxW = 8,
    parameter int unsigned GenW = 16
) (
    input  logic clk_i,
    input  logic clear_i,
    input  logic look_i,
    input  logic contiguous_i,
    input  logic requested_i,
    input  logic [31:0] handle_i,           // the requested number
    // index at hand
    input  logic [QpIdxW-1:0] idx_i,
    input  logic valid_i,
    input  logic used_i,
    // verilator lint_off UNUSEDSIGNAL
    // (as wide as the smallest table needs)
    input  gen_t gen_i,
    // verilator lint_on UNUSEDSIGNAL
    output gen_t gen_o,
    output logic taken_o,
    // range
    input  logic [QpIdxW-1:0] last_idx_i,
    output logic none_o
);
  localparam bit HasMulticast = GenW + QpIdxW == 24;   // the number 0xffffff can be made

  logic [GenW-1:0] max_q, common, next, wanted;
  logic any_q;

  assign common = any_q ? max_q + GenW'(1) : '0;
  assign next   = GenW'(gen_i) + GenW'(1);
  assign wanted = GenW'(handle_i >> QpIdxW);
  // Index 1 has generation 0 for ever: a well-known QP.
  assign taken_o = valid_i || (used_i && GenW'(gen_i) == wanted && idx_i != QpIdxW'(1));

  always_comb begin
    none_o = any_q && max_q == '1;
    if (HasMulticast && common == '1 && last_idx_i == '1) none_o = 1'b1;
`ifdef RNIC_CUT_QP_COMMON_GEN
    none_o = 1'b0;
`endif
    gen_o = used_i ? gen_t'(next) : '0;
    if (HasMulticast && next == '1 && idx_i == '1) gen_o = '0;
    if (contiguous_i) gen_o = gen_t'(common);
    if (requested_i) gen_o = gen_t'(wanted);
`ifdef RNIC_CUT_QP_NEW_GEN
    gen_o = '0;
`endif
  end

  always_ff @(posedge clk_i) begin
    if (look_i && used_i) begin
      any_q <= 1'b1;
      if (!any_q || GenW'(gen_i) > max_q) max_q <= GenW'(gen_i);
    end
    if (clear_i) begin
      any_q <= 1'b0;
      max_q <= '0;
    end
  end
endmodule
