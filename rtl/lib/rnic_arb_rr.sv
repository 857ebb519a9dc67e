// SPDX-License-Identifier: Apache-2.0
// Round-robin arbiter. grant_o is one-hot of req_i (zero without a request), searched from the one after the
// last granted. Contract: the pointer moves when advance_i is high; while advance_i is low and the granted
// request stays, the grant stays (lock_i keeps it for the beats of a message).
module rnic_arb_rr #(
    parameter int unsigned N = 2,
    localparam int unsigned IdxW = (N > 1) ? $clog2(N) : 1
) (
    input  logic            clk_i,
    input  logic            rst_i,
    input  logic [N-1:0]    req_i,
    input  logic            advance_i,  // the granted request was served (its last beat)
    input  logic            lock_i,     // keep the last grant: a message is under way
    output logic [N-1:0]    grant_o,
    output logic [IdxW-1:0] idx_o
);
  logic [IdxW-1:0] last_q, held_q, pick;
  logic held_valid_q;

  always_comb begin
    pick = last_q;
    // The lowest one beyond the last granted, else the lowest of all.
    for (int unsigned i = N; i > 0; i--) if (req_i[i-1]) pick = IdxW'(i - 1);
    for (int unsigned i = N; i > 0; i--) if (req_i[i-1] && IdxW'(i - 1) > last_q) pick = IdxW'(i - 1);
    if (held_valid_q) pick = held_q;
  end

  assign idx_o   = pick;
  assign grant_o = req_i & (N'(1) << pick);

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      last_q       <= IdxW'(N - 1);
      held_valid_q <= 1'b0;
    end else if (advance_i) begin
      last_q       <= pick;
      held_valid_q <= 1'b0;
    end else begin
      held_valid_q <= lock_i || (|req_i);
    end
    held_q <= pick;
  end
endmodule
