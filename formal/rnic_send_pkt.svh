// SPDX-License-Identifier: Apache-2.0
// Properties of rnic_send_pkt, read at its end under FORMAL_SEND_PKT:
//
//   p_hand_over   a packet is handed over, and a local operation begun, only while the QP's life and state are those of the visit
  always_ff @(posedge clk_i) begin
    if (!rst_i && (push_o || local_start_o)) p_hand_over : assert (hot_ok_i);
    c_packet : cover (!rst_i && push_o);
  end
