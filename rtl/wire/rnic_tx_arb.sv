// SPDX-License-Identifier: Apache-2.0
// Weighted round robin between the two transmit sources, packet by packet: a wheel of four turns, each belonging to one
// source; when that one has nothing, the other gets it. Each source owns at least one turn: a quarter is guaranteed.
// Contract: pick_o is the source to serve while any_o; take_i tells that it was taken and moves the wheel on.
module rnic_tx_arb #(
    parameter logic [3:0] Wheel = 4'b1010   // bit t: the source that owns turn t
) (
    input  logic       clk_i,
    input  logic       rst_i,
    input  logic [1:0] req_i,
    input  logic       take_i,
    output logic       any_o,
    output logic       pick_o
);
  if (Wheel == 4'b0000 || Wheel == 4'b1111) begin : g_wheel
    $fatal(1, "each source must own a turn");
  end
  logic [1:0] turn_q;
  assign any_o  = |req_i;
`ifdef RNIC_CUT_TX_FAIR
  assign pick_o = !req_i[0];
`else
  assign pick_o = req_i[Wheel[turn_q]] ? Wheel[turn_q] : !Wheel[turn_q];
`endif
  always_ff @(posedge clk_i) begin
    if (rst_i) turn_q <= '0;
    else if (take_i) turn_q <= turn_q + 2'd1;
  end
endmodule
