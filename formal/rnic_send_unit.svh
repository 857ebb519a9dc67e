// SPDX-License-Identifier: Apache-2.0
// Property of the units of the requester (rnic_send_pkt, rnic_send_resp, rnic_send_retire), read at their ends under FORMAL_SEND_PKT,
// FORMAL_SEND_RESP, FORMAL_SEND_RETIRE: what rnic_send_ctl takes for granted of them.
//
//   p_same_life   what a unit makes of a section is of the life that the section is of
  always_ff @(posedge clk_i) begin
    if (!rst_i && upd_o) p_same_life : assert (sec_o.epoch == visit_i.sec.epoch);
    c_update : cover (!rst_i && upd_o);
  end
