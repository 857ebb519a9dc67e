// SPDX-License-Identifier: Apache-2.0
// A control section as QUERY_QP shows it: a QpAttr followed by a QpInit.
// Contract: combinational. The mask names every attribute that a QP keeps.
module rnic_qp_query
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
(
    input  qp_ctx_t     ctx_i,
    input  qpn_t        qpn_i,
    output logic [1023:0] data_o
);
  qp_attr_t attr;
  qp_init_t init;
  always_comb begin
    attr = '0;
    attr.mask                      = 32'(QP_ATTR_BIT_ALL);
    attr.mask[QP_ATTR_BIT_ALT_PATH] = 1'b0;
    attr.mask[QP_ATTR_BIT_CAP]      = 1'b0;
    attr.qp_state            = ctx_i.hot.state;
    attr.cur_qp_state        = ctx_i.hot.state;
    attr.en_sqd_async_notify = ctx_i.path.en_sqd_async_notify;
    attr.access_flags        = {ctx_i.hot.access, 1'b0};
    attr.path_mig_state      = ctx_i.path.path_mig_state;
    attr.pkey_index          = ctx_i.path.pkey_index;
    attr.port                = ctx_i.path.port;
    attr.path_mtu            = 8'(ctx_i.hot.mtu);
    attr.timeout             = 8'(ctx_i.path.timeout);
    attr.retry_cnt           = 8'(ctx_i.path.retry_cnt);
    attr.rnr_retry           = 8'(ctx_i.path.rnr_retry);
    attr.min_rnr_timer       = 8'(ctx_i.path.min_rnr_timer);
    attr.max_rd_atomic       = ctx_i.path.max_rd_atomic;
    attr.max_dest_rd_atomic  = ctx_i.path.max_dest_rd_atomic;
    attr.rq_psn              = 32'(ctx_i.path.rq_psn);
    attr.sq_psn              = 32'(ctx_i.path.sq_psn);
    attr.dest_qpn            = 32'(ctx_i.path.dest_qpn);
    attr.qkey                = ctx_i.path.qkey;
    attr.dgid                = ctx_i.path.dgid;
    attr.dmac                = ctx_i.path.dmac;
    attr.vlan                = ctx_i.path.vlan;
    attr.sgid_index          = ctx_i.path.sgid_index;
    attr.hop_limit           = ctx_i.path.hop_limit;
    attr.traffic_class       = ctx_i.path.traffic_class;
    attr.flow_label          = ctx_i.path.flow_label;
    attr.av_port             = ctx_i.path.port;
    attr.is_global           = 1'b1;

    init = '0;
    init.qpn           = 32'(qpn_i);
    init.qp_type       = 8'(ctx_i.hot.qp_type);
    init.qp_state      = 8'(ctx_i.hot.state);
    init.sq_sig_all    = ctx_i.hot.sq_sig_all;
    init.has_srq       = ctx_i.hot.has_srq;
    init.sq_draining   = ctx_i.hot.sq_draining;
    init.fast_reg      = ctx_i.create.fast_reg;
    init.uar           = ctx_i.hot.uar;
    init.pd            = ctx_i.create.pd;
    init.send_cq       = ctx_i.create.send_cq;
    init.recv_cq       = ctx_i.create.recv_cq;
    init.srq           = ctx_i.create.srq;
    init.log_sq        = ctx_i.hot.log_sq;
    init.log_rq        = ctx_i.hot.log_rq;
    init.log_sq_stride = ctx_i.create.log_sq_stride;
    init.log_rq_stride = ctx_i.create.log_rq_stride;
    init.epoch         = ctx_i.hot.epoch;
    init.sq_base       = ctx_i.create.sq_base;
    init.rq_base       = ctx_i.create.rq_base;
  end
  assign data_o = {init, attr};
endmodule
