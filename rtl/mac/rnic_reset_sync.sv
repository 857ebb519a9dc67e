// SPDX-License-Identifier: Apache-2.0
// Reset of a clock's domain: begins at once, clock or no clock, and ends with an edge of the clock.
// Contract: arst_i is asynchronous, and free of glitches (a flip-flop, a pin, the lock of a PLL). rst_o falls 4 edges of clk_i after
// arst_i fell: longer than rnic_sync_bit takes, so that what crosses into the domain is as its sender reset it.
module rnic_reset_sync (
    input  logic clk_i,
    input  logic arst_i,
    output logic rst_o
);
  (* keep, async_reg = "true" *) logic [3:0] sync_q;
  always_ff @(posedge clk_i or posedge arst_i) begin
    if (arst_i) sync_q <= '1;
    else sync_q <= {sync_q[2:0], 1'b0};
  end
  assign rst_o = sync_q[3];
endmodule
