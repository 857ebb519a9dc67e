// SPDX-License-Identifier: Apache-2.0
// What an accepted command makes of a control section: old hot word and command in, new section and enables out.
// Contract: combinational. Attributes that a command does not name keep their value, but in a new life all begin at zero.
module rnic_qp_apply
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    localparam int unsigned AttrW = QP_ATTR_BIT_W
) (
    // the one that is high
    input  logic      create_i,          // CREATE and INSTALL
    input  logic      modify_i,
    input  logic      destroy_i,
    // verilator lint_off UNUSEDSIGNAL
    // (upper bits that the gate has judged to be zero; fields of other commands)
    input  logic      attr_valid_i,      // with create: INSTALL
    input  qp_attr_t  attr_i,
    input  cmd_qp_t   cmd_i,
    // verilator lint_on UNUSEDSIGNAL
    input  gen_t      gen_i,             // create: the new generation
    input  logic [63:0] sq_base_i,
    input  logic [63:0] rq_base_i,
    input  logic [15:0] send_cq_i,
    input  logic [15:0] recv_cq_i,
    // section as it is
    input  qp_hot_t   hot_i,
    input  logic      used_i,
    input  logic      notify_i,
    input  logic [7:0] port_i,
    // section as it becomes
    output qp_hot_t   hot_o,
    output logic      used_o,
    output logic      notify_o,
    output logic [7:0] port_o,
    output qp_create_t create_o,
    output logic [AttrW-1:0] path_we_o,
    output qp_path_t  path_o,
    output logic      new_life_o
);
  function automatic epoch_t epoch_after(epoch_t e);
`ifdef RNIC_CUT_QP_EPOCH
    return e;
`else
    return (e == '1) ? epoch_t'(1) : e + epoch_t'(1);   // 0 is no life
`endif
  endfunction

  logic [AttrW-1:0] m;                   // attributes that count
  logic to_reset, to_sqd;
  assign m        = (modify_i || (create_i && attr_valid_i)) ? attr_i.mask[AttrW-1:0] : '0;
  assign to_reset = modify_i && m[QP_ATTR_BIT_STATE] && attr_i.qp_state == QP_STATE_RESET;
  assign to_sqd   = modify_i && m[QP_ATTR_BIT_STATE] && attr_i.qp_state == QP_STATE_SQD && hot_i.state == QP_STATE_RTS;
  assign new_life_o = create_i || destroy_i || to_reset;

  always_comb begin
    hot_o    = hot_i;
    used_o   = used_i;
    notify_o = notify_i;
    port_o   = port_i;
    // The mark falls with the state that it belongs to.
    hot_o.sq_draining = to_sqd || (hot_i.sq_draining && !(m[QP_ATTR_BIT_STATE] && attr_i.qp_state != QP_STATE_SQD));
    if (new_life_o) begin
      hot_o.epoch       = epoch_after(hot_i.epoch);
      hot_o.state       = QP_STATE_RESET;
      hot_o.sq_draining = 1'b0;
      hot_o.access      = '0;
      hot_o.mtu         = '0;
      notify_o          = 1'b0;
      port_o            = '0;
    end
    if (create_i) begin
      hot_o.valid      = 1'b1;
      hot_o.qp_type    = cmd_i.qp_type;
      hot_o.sq_sig_all = cmd_i.flags[CMD_FLAG_SIG_ALL];
      hot_o.has_srq    = cmd_i.flags[CMD_FLAG_USE_SRQ];
      hot_o.uar        = cmd_i.uar;
      hot_o.log_sq     = cmd_i.log_sq;
      hot_o.log_rq     = cmd_i.log_rq;
      hot_o.gen        = gen_i;
      used_o           = 1'b1;
    end
    if (destroy_i) hot_o.valid = 1'b0;
    if (m[QP_ATTR_BIT_STATE]) hot_o.state = qp_state_e'(attr_i.qp_state);
    if (m[QP_ATTR_BIT_ACCESS_FLAGS]) hot_o.access = attr_i.access_flags[3:1];
    if (m[QP_ATTR_BIT_PATH_MTU]) hot_o.mtu = attr_i.path_mtu[2:0];
    if (m[QP_ATTR_BIT_PORT]) port_o = attr_i.port;
    // The wish to hear of the end of draining is part of the request to drain.
    if (to_sqd) notify_o = m[QP_ATTR_BIT_EN_SQD_ASYNC_NOTIFY] && attr_i.en_sqd_async_notify;
  end

  assign create_o = '{
    fast_reg: cmd_i.flags[CMD_FLAG_FAST_REG], pd: cmd_i.pd, send_cq: send_cq_i, recv_cq: recv_cq_i, srq: cmd_i.srq,
    log_sq_stride: cmd_i.log_sq_stride, log_rq_stride: cmd_i.log_rq_stride,
    sq_base: sq_base_i, rq_base: rq_base_i
  };

  always_comb begin
    path_we_o = new_life_o ? '1 : m;
    if (to_sqd) path_we_o[QP_ATTR_BIT_EN_SQD_ASYNC_NOTIFY] = 1'b1;
    path_o = '0;
    if (m[QP_ATTR_BIT_PORT])       path_o.port               = attr_i.port;
    if (m[QP_ATTR_BIT_PKEY_INDEX]) path_o.pkey_index         = attr_i.pkey_index;
    if (m[QP_ATTR_BIT_RQ_PSN])     path_o.rq_psn             = attr_i.rq_psn[23:0];
    if (m[QP_ATTR_BIT_SQ_PSN])     path_o.sq_psn             = attr_i.sq_psn[23:0];
    if (m[QP_ATTR_BIT_DEST_QPN])   path_o.dest_qpn           = attr_i.dest_qpn[23:0];
    if (m[QP_ATTR_BIT_QKEY] || m[QP_ATTR_BIT_RATE_LIMIT]) path_o.qkey = attr_i.qkey;
    if (m[QP_ATTR_BIT_TIMEOUT])    path_o.timeout            = attr_i.timeout[4:0];
    if (m[QP_ATTR_BIT_RETRY_CNT])  path_o.retry_cnt          = attr_i.retry_cnt[2:0];
    if (m[QP_ATTR_BIT_RNR_RETRY])  path_o.rnr_retry          = attr_i.rnr_retry[2:0];
    if (m[QP_ATTR_BIT_MIN_RNR_TIMER])      path_o.min_rnr_timer      = attr_i.min_rnr_timer[4:0];
    if (m[QP_ATTR_BIT_MAX_QP_RD_ATOMIC])   path_o.max_rd_atomic      = attr_i.max_rd_atomic;
    if (m[QP_ATTR_BIT_MAX_DEST_RD_ATOMIC]) path_o.max_dest_rd_atomic = attr_i.max_dest_rd_atomic;
    if (m[QP_ATTR_BIT_PATH_MIG_STATE])     path_o.path_mig_state     = attr_i.path_mig_state;
    if (m[QP_ATTR_BIT_AV]) begin
      path_o.dgid          = attr_i.dgid;
      path_o.dmac          = attr_i.dmac;
      path_o.vlan          = attr_i.vlan;
      path_o.sgid_index    = attr_i.sgid_index;
      path_o.hop_limit     = attr_i.hop_limit;
      path_o.traffic_class = attr_i.traffic_class;
      path_o.flow_label    = attr_i.flow_label;
    end
    path_o.en_sqd_async_notify = notify_o;
  end

`ifdef FORMAL_QP_APPLY
`include "rnic_qp_apply.svh"
`endif
endmodule
