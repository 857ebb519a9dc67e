// SPDX-License-Identifier: Apache-2.0
// Numbers the barriers of the responder that LOCAL_INVs wait for before they complete: each invalidation belongs to the next barrier that
// begins, together with those of all other queue pairs until then, so that none waits for more than two.
// Contract: op_i pulses when a key was invalidated, num_o beside it is the number to be kept with it. open_o tells of num_i whether its
// barrier is not over yet. Numbers come again: of an old one open_o may be high without need, for as long as a barrier takes.
// mark_o, busy_i: see rnic_resp_barrier.
module rnic_send_inv
  import rnic_send_pkg::*;
(
    input  logic     clk_i,
    input  logic     rst_i,
    input  logic     op_i,
    output inv_num_t num_o,
    input  inv_num_t num_i,
    output logic     open_o,
    output logic     mark_o,
    input  logic     busy_i
);
  inv_num_t next_q;            // of the barrier that begins next
  logic want_q, runs_q;        // it is wanted; the one before it is not over
  assign mark_o = want_q && !runs_q;
  // One that begins in this cycle may have looked already.
  assign num_o  = next_q + inv_num_t'(mark_o);
`ifdef RNIC_CUT_LOCAL_INV_BARRIER
  assign open_o = 1'b0 && num_i == next_q;
`else
  assign open_o = (want_q && num_i == next_q) || (runs_q && num_i == next_q - inv_num_t'(1));
`endif

  always_ff @(posedge clk_i) begin
    next_q <= next_q + inv_num_t'(mark_o);
    want_q <= op_i || (want_q && !mark_o);
    runs_q <= mark_o || (runs_q && busy_i);
    if (rst_i) begin
      next_q <= '0;
      want_q <= 1'b0;
      runs_q <= 1'b0;
    end
  end

`ifdef FORMAL_SEND_INV
`include "rnic_send_inv.svh"
`endif
endmodule
