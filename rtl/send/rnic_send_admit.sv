// SPDX-License-Identifier: Apache-2.0
// Is a response for the QP that it names? QPN, type, state, addresses and P_Key, in this order.
// Contract: combinational. refused_o with the one counter to be pulsed for it. A QP that has failed takes no response.
module rnic_send_admit
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
  import rnic_send_pkg::*;
#(
    parameter int unsigned QpIdxW = 10
) (
    // The structs are shared; this unit needs a part of them.
    // verilator lint_off UNUSEDSIGNAL
    input  visit_t    visit_i,
    input  rx_desc_t  desc_i,
    input  port_cfg_t port_cfg_i,
    // verilator lint_on UNUSEDSIGNAL
    output logic      refused_o,
    output cnt_t      cnt_o
);
  logic [15:0] our_pkey;
  logic bad_qpn, bad_type, bad_state, bad_addr, bad_pkey;
  assign our_pkey  = port_cfg_i.pkey[$clog2(NUM_PKEY)'(visit_i.ctx.path.pkey_index)];
`ifdef RNIC_CUT_RESP_QPN
  assign bad_qpn   = !visit_i.ctx.hot.valid;
`else
  assign bad_qpn   = !visit_i.ctx.hot.valid || visit_i.ctx.hot.gen != qpn_gen(desc_i.dest_qpn, QpIdxW);
`endif
  assign bad_type  = visit_i.ctx.hot.qp_type != QP_TYPE_RC || desc_i.opcode[7:5] != 3'(TRANSPORT_RC);
  assign bad_state = !(visit_i.ctx.hot.state == QP_STATE_RTS || visit_i.ctx.hot.state == QP_STATE_SQD) || visit_i.sec.halted || visit_i.sec.rem_fail;
`ifdef RNIC_CUT_RESP_ADDR
  assign bad_addr  = 1'b0;
`else
  assign bad_addr  = desc_i.sgid != visit_i.ctx.path.dgid || !desc_i.gid_hit[gid_idx_t'(visit_i.ctx.path.sgid_index)];
`endif
  // At least one full member, low 15 bits equal and not zero.
`ifdef RNIC_CUT_RESP_PKEY
  assign bad_pkey  = 1'b0;
`else
  assign bad_pkey  = desc_i.pkey[14:0] != our_pkey[14:0] || desc_i.pkey[14:0] == '0 || !(desc_i.pkey[15] || our_pkey[15]);
`endif
  assign refused_o = bad_qpn || bad_type || bad_state || bad_addr || bad_pkey;

  always_comb begin
    cnt_o = '0;
    cnt_o[COUNTER_ID_RX_DROP_QPN]      = bad_qpn;
    cnt_o[COUNTER_ID_RX_DROP_QP_TYPE]  = !bad_qpn && bad_type;
    cnt_o[COUNTER_ID_RX_DROP_QP_STATE] = !bad_qpn && !bad_type && bad_state;
    cnt_o[COUNTER_ID_RX_DROP_ADDR]     = !bad_qpn && !bad_type && !bad_state && bad_addr;
    cnt_o[COUNTER_ID_RX_DROP_PKEY]     = !bad_qpn && !bad_type && !bad_state && !bad_addr && bad_pkey;
  end
endmodule
