// SPDX-License-Identifier: Apache-2.0
// Finds completion queues whose event moderation period is over.
// Contract: we_i tells of a queue whether its period runs, and until when by now_o (microseconds; the longest period ahead at most).
// One queue is looked at per cycle, in turn: exp_valid_o with its number, held until exp_ready_i, comes at most NumCq cycles and what
// earlier ones waited after now_o reached due_i (a wait as long as the longest period would make it late by as much more).
// It comes again each round until the queue's word is changed; a word of an earlier
// life may bring it for a queue that is gone: who takes it looks at the queue.
module rnic_cq_timer
  import rnic_pkg::*;
#(
    parameter int unsigned NumCq = 256,
    parameter int unsigned ClkPeriodPs = 8000,
    localparam int unsigned CqW = $clog2(NumCq)
) (
    input  logic clk_i,
    input  logic rst_i,
    output cq_time_t now_o,
    input  logic we_i,
    input  logic [CqW-1:0] idx_i,
    input  logic run_i,
    input  cq_time_t due_i,
    output logic exp_valid_o,
    input  logic exp_ready_i,
    output logic [CqW-1:0] exp_idx_o
);
  localparam int unsigned PsPerUs = 1_000_000;
  localparam int unsigned AccW = $clog2(PsPerUs + ClkPeriodPs + 1);
  if (ClkPeriodPs == 0 || ClkPeriodPs > PsPerUs) begin : g_clock
    $fatal(1, "ClkPeriodPs must be the clock period, one microsecond at most");
  end
  logic [AccW-1:0] acc, acc_q;               // picoseconds of this microsecond
  cq_time_t now_q;
  assign acc   = acc_q + AccW'(ClkPeriodPs);
  assign now_o = now_q;
  always_ff @(posedge clk_i) begin
    acc_q <= (acc >= AccW'(PsPerUs)) ? acc - AccW'(PsPerUs) : acc;
    if (acc >= AccW'(PsPerUs)) now_q <= now_q + cq_time_t'(1);
    if (rst_i) begin
      acc_q <= '0;
      now_q <= '0;
    end
  end

  logic run, move;
  cq_time_t due;
  // verilator lint_off UNUSEDSIGNAL
  cq_time_t late;                            // (its sign)
  // verilator lint_on UNUSEDSIGNAL
  logic [CqW-1:0] idx_q, rd_idx_q;
  assign late        = now_q - due;
`ifdef RNIC_CUT_CQ_MOD_PERIOD
  assign exp_valid_o = 1'b0 && run && !late[CQ_PERIOD_W];
`else
  assign exp_valid_o = run && !late[CQ_PERIOD_W];
`endif
  assign exp_idx_o   = rd_idx_q;
  assign move        = !exp_valid_o || exp_ready_i;
  // What is written in the cycle in which it is read is seen in the next round.
  rnic_ram #(.Width($bits(cq_time_t) + 1), .Depth(NumCq), .Bypass(1'b0), .Old(1'b1)) u_due (
      .clk_i, .we_i, .waddr_i(idx_i), .wdata_i({run_i, due_i}), .re_i(move), .raddr_i(idx_q), .rdata_o({run, due})
  );
  always_ff @(posedge clk_i) begin
    if (move) begin
      rd_idx_q <= idx_q;
      idx_q    <= (idx_q == CqW'(NumCq - 1)) ? '0 : idx_q + CqW'(1);
    end
    if (rst_i) begin
      rd_idx_q <= '0;
      idx_q    <= '0;
    end
  end

`ifdef FORMAL_CQ_TIMER
`include "rnic_cq_timer.svh"
`endif
endmodule
