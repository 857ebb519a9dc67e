// SPDX-License-Identifier: Apache-2.0
// Store-and-forward buffer of received packets: the payload becomes visible when the packet is committed. Their descriptors
// are in rnic_rx_desc.
// Contract: pay_valid_i is never refused. A packet's beats come before end_i or with it, the next packet's later;
// end_i && commit_i makes the packet visible, end_i alone forgets it. Without room for all of it (desc_room_i: for its
// descriptor) a packet is dropped whole: overflow_o is high in the cycle of its commit, else take_o. Out: payload beats in the
// packets' order, held until pay_ready_i, visible 2 cycles after the commit.
module rnic_rx_buf #(
    parameter int unsigned DataW = 64,
    parameter int unsigned BufBytes = 8192    // payload, a power of two
) (
    input  logic             clk_i,
    input  logic             rst_i,
    input  logic             pay_valid_i,
    input  logic [DataW-1:0] pay_data_i,
    input  logic             pay_last_i,
    input  logic             end_i,
    input  logic             commit_i,
    input  logic             desc_room_i,
    output logic             take_o,
    output logic             overflow_o,
    output logic             pay_valid_o,
    input  logic             pay_ready_i,
    output logic [DataW-1:0] pay_data_o,
    output logic             pay_last_o
);
  localparam int unsigned Beats = BufBytes * 8 / DataW;

  logic pay_room, lost_q, lost;
`ifdef RNIC_CUT_RX_OVERFLOW
  assign lost = 1'b0;
`else
  assign lost = lost_q || (pay_valid_i && !pay_room);
`endif
  assign take_o     = end_i && commit_i && !lost && desc_room_i;
  assign overflow_o = end_i && commit_i && !take_o;
  always_ff @(posedge clk_i) lost_q <= !rst_i && lost && !end_i;

  rnic_ram_fifo #(.Width(DataW + 1), .Depth(Beats)) u_pay (
      .clk_i, .rst_i, .in_valid_i(pay_valid_i), .in_ready_o(pay_room), .in_data_i({pay_last_i, pay_data_i}),
      .commit_i(take_o), .rollback_i(end_i && !take_o),
      .out_valid_o(pay_valid_o), .out_ready_i(pay_ready_i), .out_data_o({pay_last_o, pay_data_o})
  );
endmodule
