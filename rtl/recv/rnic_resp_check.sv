// SPDX-License-Identifier: Apache-2.0
// Judges one request packet of the RC responder against its QP: what to do with it, before anything happens.
// Contract: combinational; exactly one verdict is high. The order of the checks is the order of the text: silent drops
// (number, type, state, addresses, P_Key), the PSN, then for the expected PSN sequence of opcodes, length, permission,
// alignment of an atomic, READ and atomic resources (NAK 0x61 each), and the receive queue (RNR NAK). Memory keys are judged later, by rnic_resp_place.
module rnic_resp_check
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned QpIdxW = 10,
    parameter int unsigned CountW = 5
) (
    input  logic              enable_i,
    // verilator lint_off UNUSEDSIGNAL
    // (of port, packet and context only a part is judged here)
    input  port_cfg_t         port_cfg_i,
    input  rx_desc_t          desc_i,
    input  qp_ctx_t           ctx_i,
    // verilator lint_on UNUSEDSIGNAL
    // the responder's section
    input  logic              halted_i,
    input  psn_t              epsn_i,
    input  logic              in_send_i,        // a SEND has begun and not ended
    input  logic              in_write_i,       // likewise a WRITE
    input  logic              msg_full_i,       // 2^31 bytes of that message have come
    input  logic [31:0]       msg_left_i,       // bytes of that WRITE to come
    // resources
    input  logic [CountW-1:0] reads_i,          // READs and atomics accepted and not answered
    input  logic              read_full_i,      // no slot for one more, duplicates included
    input  logic              rq_avail_i,       // a receive WQE is there
    // verdict
    output logic              drop_o,           // silently, counted as drop_cnt_o
    output counter_id_e       drop_cnt_o,
    output logic              ignore_o,         // silently, as if lost
    output logic              gap_o,            // PSN ahead of the expected one
    output logic              dup_ack_o,        // duplicate: acknowledge again
    output logic              dup_read_o,       // duplicate READ: execute again
    output logic              dup_atomic_o,     // duplicate atomic: answer with the result it had
    output logic              nak_o,            // invalid request
    output logic              rnr_o,            // no receive WQE
    output logic              exec_o,
    output logic              dup_o,            // any duplicate, for the counter
    output logic [23:0]       psns_o,           // PSNs that the request takes: these,
    output logic              psns_more_o,      // and one more
    output logic [31:0]       rest_o,           // bytes of the WRITE to come after this packet
    output opcode_info_t      info_o            // of the packet, as an RC request
);
  // verilator lint_off UNUSEDSIGNAL
  opcode_info_t info;
  qp_hot_t hot;
  // verilator lint_on UNUSEDSIGNAL
  // Those of RC alone: others are dropped for their type.
  assign info   = opcode_info({TRANSPORT_RC, desc_i.opcode[4:0]});
  assign info_o = info;
  assign hot  = ctx_i.hot;

  // ---------------------------------------------------------------- silent drops
  logic qpn_ok, type_ok, state_ok, addr_ok, pkey_ok;
  logic [15:0] pkey;
`ifdef RNIC_CUT_RECV_GENERATION
  assign qpn_ok   = hot.valid;
`else
  assign qpn_ok   = hot.valid && hot.gen == qpn_gen(desc_i.dest_qpn, QpIdxW);
`endif
  assign type_ok  = hot.qp_type == QP_TYPE_RC && desc_i.opcode[7:5] == TRANSPORT_RC && info.is_request;
  assign state_ok = enable_i && !halted_i
      && (hot.state == QP_STATE_RTR || hot.state == QP_STATE_RTS || hot.state == QP_STATE_SQD || hot.state == QP_STATE_SQE);
  // From the peer to the own entry of the GID table: the version of IP is part of both.
  assign addr_ok  = desc_i.sgid == ctx_i.path.dgid && ctx_i.path.sgid_index < 8'(NUM_GID)
      && desc_i.gid_hit[gid_idx_t'(ctx_i.path.sgid_index)];
  // Partitions: the low 15 bits agree, and one of the two is a full member.
  assign pkey     = port_cfg_i.pkey[ctx_i.path.pkey_index[$clog2(NUM_PKEY)-1:0]];
  assign pkey_ok  = ctx_i.path.pkey_index < 16'(NUM_PKEY) && pkey[14:0] != '0 && pkey[14:0] == desc_i.pkey[14:0]
      && (pkey[15] || desc_i.pkey[15]);

  always_comb begin
    drop_o     = 1'b1;
    drop_cnt_o = COUNTER_ID_RX_DROP_QPN;
    if (!qpn_ok) drop_cnt_o = COUNTER_ID_RX_DROP_QPN;
    else if (!type_ok) drop_cnt_o = COUNTER_ID_RX_DROP_QP_TYPE;
`ifndef RNIC_CUT_RECV_STATE
    else if (!state_ok) drop_cnt_o = COUNTER_ID_RX_DROP_QP_STATE;
`endif
`ifndef RNIC_CUT_RECV_ADDR
    else if (!addr_ok) drop_cnt_o = COUNTER_ID_RX_DROP_ADDR;
`endif
`ifndef RNIC_CUT_RECV_PKEY
    else if (!pkey_ok) drop_cnt_o = COUNTER_ID_RX_DROP_PKEY;
`endif
    else drop_o = 1'b0;
  end

  // ---------------------------------------------------------------- PSN
  logic [23:0] behind;
  logic ahead, same;
  pay_len_t mtu;
  assign behind  = epsn_i - desc_i.psn;
  assign same    = behind == '0;
  assign ahead   = behind[23] && behind[22:0] != '0;
  assign mtu     = mtu_bytes(hot.mtu);
  // A READ takes the PSNs of its responses (9.7.3.1): at least one, 2^23 at most, which the limit on DMALen makes sure of. Whole ones,
  // and one for what is left: the sums and comparisons below take it in as a carry.
  assign psns_o      = info.is_read_req ? 24'(desc_i.dma_len[31:7] >> hot.mtu) : '0;
  assign psns_more_o = !info.is_read_req || desc_i.dma_len == '0 || desc_i.dma_len[6:0] != '0 || (desc_i.dma_len[12:7] & ~(6'h3f << hot.mtu)) != '0;

  // ---------------------------------------------------------------- the expected packet
  logic starts, ends, seq_ok, known, size_ok, sum_ok, perm_ok, reads_ok, aligned, too_big;
  logic [32:0] rest;
  assign starts    = info.first || info.only;
  assign ends      = info.last || info.only;
  assign seq_ok    = in_send_i ? (info.is_send && !starts) : in_write_i ? (info.is_write && !starts) : starts;
  assign known     = info.is_send || info.is_write || info.is_read_req || info.is_atomic_req;
  assign size_ok   = info.pay_full ? desc_i.payload_len == mtu
                   : info.pay_none ? desc_i.payload_len == '0
                   : desc_i.payload_len <= mtu && !(info.pay_min1 && desc_i.payload_len == '0);
  assign rest      = 33'(starts ? desc_i.dma_len : msg_left_i) - 33'(desc_i.payload_len);
  assign rest_o    = rest[31:0];
  // What a WRITE brings adds up to its DMALen; a message ends at 2^31 bytes.
  assign sum_ok    = !info.is_write || (ends ? rest == '0 : !rest[32]);
  assign too_big   = info.is_send ? (!starts && msg_full_i) : starts && !info.is_atomic_req && desc_i.dma_len[31] && desc_i.dma_len[30:0] != '0;
  assign perm_ok   = (!info.is_write || hot.access[ACCESS_REMOTE_WRITE-1]) && (!info.is_read_req || hot.access[ACCESS_REMOTE_READ-1])
      && (!info.is_atomic_req || hot.access[ACCESS_REMOTE_ATOMIC-1]);
  assign reads_ok  = !(info.is_read_req || info.is_atomic_req) || 8'(reads_i) < ctx_i.path.max_dest_rd_atomic;
  assign aligned   = !info.is_atomic_req || desc_i.va[2:0] == '0;

  logic bad, needs_wqe, dup;
  always_comb begin
    bad = !known || too_big;
`ifndef RNIC_CUT_RECV_SEQ
    bad = bad || !seq_ok;
`endif
`ifndef RNIC_CUT_RECV_LEN
    bad = bad || !size_ok;
`endif
`ifndef RNIC_CUT_RECV_DMALEN
    bad = bad || !sum_ok;
`endif
`ifndef RNIC_CUT_RECV_PERM
    bad = bad || !perm_ok;
`endif
`ifndef RNIC_CUT_RECV_RD_LIMIT
    bad = bad || !reads_ok;
`endif
`ifndef RNIC_CUT_ATOMIC_ALIGN
    bad = bad || !aligned;
`endif
  end
  assign needs_wqe = (info.is_send && starts) || (info.is_write && info.has_imm);

  always_comb begin
    {ignore_o, gap_o, dup_ack_o, dup_read_o, dup_atomic_o, nak_o, rnr_o, exec_o} = '0;
    dup = 1'b0;
`ifndef RNIC_CUT_RECV_PSN
    if (ahead) begin
      gap_o = !drop_o;
    end else if (!same) begin
      dup = !drop_o;
      if (info.is_send || info.is_write) dup_ack_o = dup;
      // Executed again only when all of it was executed before.
`ifndef RNIC_CUT_RECV_DUP_READ
      else if (info.is_read_req && !read_full_i && perm_ok && !too_big && {psns_o, psns_more_o} <= {behind, 1'b0}) dup_read_o = dup;
`endif
`ifdef RNIC_CUT_ATOMIC_REPLAY
      else if (info.is_atomic_req && !read_full_i) exec_o = dup;
`else
      else if (info.is_atomic_req && !read_full_i) dup_atomic_o = dup;
`endif
      else ignore_o = dup;
    end else
`endif
    if (!drop_o) begin
      if (bad) nak_o = 1'b1;
`ifndef RNIC_CUT_RECV_RNR
      else if (needs_wqe && !rq_avail_i) rnr_o = 1'b1;
`endif
      else if ((info.is_read_req || info.is_atomic_req) && read_full_i) ignore_o = 1'b1;
      else exec_o = 1'b1;
    end
  end
  assign dup_o = dup;
endmodule
