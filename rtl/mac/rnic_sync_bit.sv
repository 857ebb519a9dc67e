// SPDX-License-Identifier: Apache-2.0
// Two-flop synchroniser: the only way of a level into another clock's domain.
// Contract: d_i comes straight from a flip-flop or a pin (no logic between: a glitch would be sampled). A change arrives 2 or 3 edges
// of clk_i later. Bits of a vector arrive each at its own time: a vector must be Gray coded, one bit changing at a time.
module rnic_sync_bit #(
    parameter int unsigned Width = 1
) (
    input  logic             clk_i,
    input  logic [Width-1:0] d_i,
    output logic [Width-1:0] q_o
);
  // The names are what the crossing check (scripts/cdc.py) and a timing tool look for; both stages are kept as they are.
  (* keep, async_reg = "true" *) logic [Width-1:0] meta_q;
  (* keep, async_reg = "true" *) logic [Width-1:0] sync_q;
  always_ff @(posedge clk_i) begin
    meta_q <= d_i;
    sync_q <= meta_q;
  end
  assign q_o = sync_q;
endmodule
