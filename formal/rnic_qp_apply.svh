// SPDX-License-Identifier: Apache-2.0
// Properties of rnic_qp_apply, read at its end under FORMAL_QP_APPLY: what a command makes of a section, for every old section and command.
//
//   p_new_life     CREATE and DESTROY begin a new life, valid or not; its epoch differs from the old one and is not 0, its state is RESET
//                  (INSTALL: the state of its record), nothing is draining
//   p_nothing_left no attribute of an old life is left: all are written, those that the command does not name as zero
//   p_only_named   MODIFY within a life writes the attributes that its mask names and no others (but the wish to hear of the end of draining
//                  with RTS to SQD), and what the hot word has of the others stays
//   p_kept         ... and identity, epoch and access to it stay: type, doorbell page, ring sizes, generation, validity, SRQ
  logic f_names;                                   // the hot word's share of what the mask does not name
  always_comb begin
    f_names = (m[QP_ATTR_BIT_STATE] || hot_o.state == hot_i.state) && (m[QP_ATTR_BIT_ACCESS_FLAGS] || hot_o.access == hot_i.access)
        && (m[QP_ATTR_BIT_PATH_MTU] || hot_o.mtu == hot_i.mtu) && (m[QP_ATTR_BIT_PORT] || port_o == port_i);
    m_one : assume (32'(create_i) + 32'(modify_i) + 32'(destroy_i) == 1);
    if (create_i || destroy_i)
      p_new_life : assert (new_life_o && hot_o.valid == create_i && hot_o.epoch != hot_i.epoch && hot_o.epoch != '0 && !hot_o.sq_draining
          && (attr_valid_i || hot_o.state == QP_STATE_RESET) && (!create_i || (hot_o.gen == gen_i && used_o)));
    if (new_life_o)
      p_nothing_left : assert (path_we_o == '1 && (m[QP_ATTR_BIT_PKEY_INDEX] || path_o.pkey_index == '0) && (m[QP_ATTR_BIT_PORT] || (path_o.port == '0 && port_o == '0))
          && (m[QP_ATTR_BIT_RQ_PSN] || path_o.rq_psn == '0) && (m[QP_ATTR_BIT_SQ_PSN] || path_o.sq_psn == '0) && (m[QP_ATTR_BIT_DEST_QPN] || path_o.dest_qpn == '0)
          && (m[QP_ATTR_BIT_QKEY] || m[QP_ATTR_BIT_RATE_LIMIT] || path_o.qkey == '0) && (m[QP_ATTR_BIT_AV] || (path_o.dgid == '0 && path_o.dmac == '0 && path_o.vlan == '0))
          && (m[QP_ATTR_BIT_TIMEOUT] || path_o.timeout == '0) && (m[QP_ATTR_BIT_RETRY_CNT] || path_o.retry_cnt == '0) && (m[QP_ATTR_BIT_RNR_RETRY] || path_o.rnr_retry == '0)
          && (m[QP_ATTR_BIT_ACCESS_FLAGS] || hot_o.access == '0) && (m[QP_ATTR_BIT_PATH_MTU] || hot_o.mtu == '0) && !notify_o);
    if (modify_i && !new_life_o)
      p_only_named : assert ((path_we_o & ~(m | (to_sqd ? AttrW'(32'd1 << QP_ATTR_BIT_EN_SQD_ASYNC_NOTIFY) : '0))) == '0 && (m & ~path_we_o) == '0 && f_names);
    if (modify_i)
      p_kept : assert (hot_o.valid == hot_i.valid && hot_o.qp_type == hot_i.qp_type && hot_o.uar == hot_i.uar && hot_o.log_sq == hot_i.log_sq
          && hot_o.log_rq == hot_i.log_rq && hot_o.gen == hot_i.gen && hot_o.has_srq == hot_i.has_srq && hot_o.sq_sig_all == hot_i.sq_sig_all
          && used_o == used_i && (new_life_o || hot_o.epoch == hot_i.epoch));
    c_install : cover (create_i && attr_valid_i && hot_o.state == QP_STATE_INIT);
    c_reset : cover (modify_i && new_life_o);
    c_drain : cover (to_sqd && notify_o);
  end
