// SPDX-License-Identifier: Apache-2.0
// UDP source port of a connection by the rule of Linux (rdma_calc_flow_label, rdma_flow_label_to_udp_sport): the flow
// label if it is not zero, else a hash of the product of the two QPNs, which is the same at both ends.
// Contract: start_i takes the operands; sport_o is right from 5 cycles later until the next start_i.
module rnic_tx_sport
  import rnic_pkg::*;
(
    input  logic        clk_i,
    input  logic        start_i,
    input  qpn_t        lqpn_i,
    input  qpn_t        rqpn_i,
    input  logic [19:0] flow_label_i,
    output logic [15:0] sport_o
);
  qpn_t a_q, b_q, hi_q, lo_q;
  logic [2:0] step_q;
  logic [29:0] sum;
  logic [19:0] given_q, label;
  // Six bits of the multiplier a cycle.
  assign sum = 30'(hi_q) + 30'(a_q) * 30'(b_q[5:0]);
  always_ff @(posedge clk_i) begin
    if (start_i) begin
      a_q     <= lqpn_i;
      b_q     <= rqpn_i;
      hi_q    <= '0;
      lo_q    <= '0;
      step_q  <= 3'd4;
      given_q <= flow_label_i;
    end else if (step_q != '0) begin
      b_q    <= b_q >> 6;
      hi_q   <= sum[29:6];
      lo_q   <= {sum[5:0], lo_q[23:6]};
      step_q <= step_q - 3'd1;
    end
  end
  // v ^= v >> 20; v ^= v >> 40 of the 48-bit product; the low 20 bits
  assign label = (given_q != '0) ? given_q : lo_q[19:0] ^ {hi_q[15:0], lo_q[23:20]} ^ {12'b0, hi_q[23:16]};
`ifdef RNIC_CUT_TX_SPORT
  assign sport_o = 16'hc000;
`else
  assign sport_o = {2'b11, label[13:0] ^ {8'b0, label[19:14]}};
`endif
endmodule
