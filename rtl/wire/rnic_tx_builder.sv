// SPDX-License-Identifier: Apache-2.0
// Takes complete jobs from the two sources in turn, reads the context of their QP and writes the headers: IPv4 or IPv6,
// UDP, BTH and extended headers, and tells what the Ethernet header needs. While a frame leaves, the next one is prepared.
// The version of IP is that of the path's dgid; an empty entry of the GID table counts as the address zero.
// Contract: head_*: see rnic_tx_payload and rnic_tx_jobs; [0] are requests, [1] responses. hdr_valid_o with everything about a frame is held until hdr_ready_i, the job is
// removed then. A job that failed is removed without a frame once all frames before it are out (idle_i):
// fail_o pulses for its source with fail_err_o. 8 to 10 cycles from job to hdr_valid_o when the context comes at once.
// Only headers that a job has fields for: RETH, AETH, AtomicETH, AtomicAckETH, ImmDt, IETH. Bytes are in lanes, the first one in bits 7:0.
module rnic_tx_builder
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned QpIdxW = 10,
    parameter bit Ipv6 = 1'b1,
    localparam int unsigned HdrMax = (Ipv6 ? IPV6_HDR_BYTES : IPV4_HDR_BYTES) + UDP_HDR_BYTES + BTH_BYTES + ATOMIC_ETH_BYTES
) (
    input  logic             clk_i,
    input  logic             rst_i,
    // Of both, most is for others.
    /* verilator lint_off UNUSEDSIGNAL */
    input  port_cfg_t        port_cfg_i,
    input  qp_ctx_t          cold_rsp_i,
    /* verilator lint_on UNUSEDSIGNAL */
    input  logic [1:0]       head_valid_i,
    input  dma_err_e [1:0]   head_err_i,
    output logic             head_src_o,         // whose job is looked at
    input  tx_head_t         head_job_i,
    output logic [1:0]       head_pop_o,
    output logic             cold_req_valid_o,
    input  logic             cold_req_ready_i,
    output qp_idx_t          cold_req_idx_o,
    input  logic             cold_rsp_valid_i,
    input  logic             idle_i,
    output logic [1:0]       fail_o,
    output tx_err_t          fail_err_o,
    output logic             hdr_valid_o,
    input  logic             hdr_ready_i,
    output logic             hdr_src_o,
    output logic [8*HdrMax-1:0] hdr_ip_o,        // IP header and what follows up to the payload
    output logic [6:0]       hdr_ip_len_o,
    output logic [15:0]      hdr_ip_total_o,     // IP header to pad, without the ICRC
    output logic [47:0]      hdr_dmac_o,
    output logic [15:0]      hdr_vlan_o,         // bit 15: the frame is tagged
    output logic             hdr_v6_o,
    output logic             hdr_count_o,        // the packet's kind has a counter
    output counter_id_e      hdr_cnt_o
);
  typedef enum logic [2:0] {
    StIdle,   // waits for a complete job
    StFail,   // waits for the frames before a failed job to leave
    StAsk,    // asks for the context
    StWait,   // waits for the context
    StCalc,   // source port and header checksum, step by step
    StReady   // offers the frame
  } state_e;
  state_e state_q, state_d;

  // ---------------------------------------------------------------- the job
  logic src_q, any, pick, take;
  tx_head_t job;
  /* verilator lint_off UNUSEDSIGNAL */
  opcode_info_t info;          // a cycle after the job
  /* verilator lint_on UNUSEDSIGNAL */
  assign job        = head_job_i;
  assign head_src_o = src_q;
  always_ff @(posedge clk_i) info <= opcode_info(job.opcode);
  rnic_tx_arb u_arb (.clk_i, .rst_i, .req_i(head_valid_i), .take_i(take), .any_o(any), .pick_o(pick));

  // ---------------------------------------------------------------- what is kept of the context
  typedef struct packed {
    logic [47:0] dmac;
    logic [15:0] vlan;
    logic [7:0]  hop_limit;
    logic [7:0]  traffic_class;
    logic        v6;
    gid_t        sgid;
    gid_t        dgid;
    logic [19:0] flow_label;
    logic [15:0] pkey;
    qpn_t        dest_qpn;
  } peer_t;
  peer_t peer_q;
  /* verilator lint_off UNUSEDSIGNAL */
  qp_path_t path;
  /* verilator lint_on UNUSEDSIGNAL */
  assign path = cold_rsp_i.path;

  // The GID table once more: as a RAM it costs a fraction of a choice among registers.
  gid_t gid_mem[NUM_GID];
  gid_idx_t gid_idx;
  gid_t our_gid;
  assign gid_idx = gid_idx_t'(path.sgid_index);
  assign our_gid = (port_cfg_i.gid_v4[gid_idx] || port_cfg_i.gid_v6[gid_idx]) ? gid_mem[gid_idx] : '0;
  always_ff @(posedge clk_i) if (port_cfg_i.gid_wr.valid) gid_mem[port_cfg_i.gid_wr.idx] <= port_cfg_i.gid_wr.gid;

  logic sport_start;
  logic [15:0] sport;
  rnic_tx_sport u_sport (
      .clk_i, .start_i(sport_start), .lqpn_i(make_qpn(cold_rsp_i.hot.gen, job.qp_idx, QpIdxW)),
      .rqpn_i(path.dest_qpn), .flow_label_i(path.flow_label), .sport_o(sport)
  );
  assign sport_start = state_q == StWait && cold_rsp_valid_i;
  always_ff @(posedge clk_i) begin
    if (sport_start) begin
      peer_q <= '{
          dmac: path.dmac, vlan: path.vlan, hop_limit: path.hop_limit, traffic_class: path.traffic_class,
`ifdef RNIC_CUT_TX_IPV6
          v6: 1'b0,
`else
          v6: Ipv6 && !gid_is_v4(path.dgid),
`endif
          sgid: our_gid, dgid: path.dgid, flow_label: path.flow_label,
          pkey: port_cfg_i.pkey[path.pkey_index[$clog2(NUM_PKEY)-1:0]], dest_qpn: path.dest_qpn
      };
    end
  end

  // ---------------------------------------------------------------- lengths and checksum
  logic [1:0] pad;
  logic [15:0] l4_total, ip_total, add_a, add_b;
  logic part;                  // the body ends within a word
  logic [1:0] body_odd;        // bytes beyond whole words (none, when it is padded)
  logic [31:0] sip, dip;               // of IPv4
  logic [19:0] acc_q;
  logic [16:0] fold;
  logic [15:0] checksum_q;
  logic [2:0] step_q;
`ifdef RNIC_CUT_TX_PAD
  assign pad          = 2'd0;
  assign part         = 1'b0;
  assign body_odd     = job.payload_len[1:0];
`else
  assign pad          = 2'd0 - job.payload_len[1:0];
  assign part         = job.payload_len[1:0] != '0;
  assign body_odd     = '0;
`endif
  // In words of four bytes; the body's part of one is the carry into the sum.
  localparam int unsigned L4Words = (UDP_HDR_BYTES + BTH_BYTES) / 4;
  logic [4:0] ext_words, ip_words, hdr_words;
  logic [11:0] l4_sum, l4_words;   // (the lengths stand two cycles after the job, with its context at the earliest)
  // verilator lint_off UNUSEDSIGNAL
  logic carry;
  // verilator lint_on UNUSEDSIGNAL
  assign ext_words = 5'(info.ext_len >> 2) + 5'(L4Words + ICRC_BYTES / 4);
  assign ip_words  = peer_q.v6 ? 5'(IPV6_HDR_BYTES / 4) : 5'(IPV4_HDR_BYTES / 4);
  assign hdr_words = (peer_q.v6 ? 5'(IPV6_HDR_BYTES / 4 + L4Words) : 5'(IPV4_HDR_BYTES / 4 + L4Words)) + 5'(info.ext_len >> 2);
  always_ff @(posedge clk_i) l4_words <= l4_sum;
  assign {l4_sum, carry} = {1'b0, job.payload_len[12:2], 1'b1} + {7'd0, ext_words, part};
  assign hdr_ip_len_o = {hdr_words, 2'b00};
  assign l4_total     = {2'b00, l4_words, body_odd};
  assign ip_total     = {2'b00, l4_words + 12'(IPV4_HDR_BYTES / 4), body_odd};
  // Bytes 12 to 15 of an IPv4-mapped GID.
  assign sip          = {peer_q.sgid[103:96], peer_q.sgid[111:104], peer_q.sgid[119:112], peer_q.sgid[127:120]};
  assign dip          = {peer_q.dgid[103:96], peer_q.dgid[111:104], peer_q.dgid[119:112], peer_q.dgid[127:120]};
  assign fold         = 17'(acc_q[15:0]) + 17'(acc_q[19:16]);
  ipv4_hdr_t ip;
  always_comb begin
    ip = '0;
    ip.version        = 4'd4;
    ip.ihl            = 4'd5;
    {ip.dscp, ip.ecn} = peer_q.traffic_class;
    ip.total_length   = ip_total;
    ip.df             = 1'b1;
    ip.ttl            = peer_q.hop_limit;
    ip.protocol       = IP_PROTO_UDP;
    ip.src_addr       = sip;
    ip.dst_addr       = dip;
`ifndef RNIC_CUT_TX_IP_CHECKSUM
    ip.checksum       = checksum_q;
`endif
  end
  ipv6_hdr_t ip6;
  assign ip6 = '{version: 4'd6, dscp: peer_q.traffic_class[7:2], ecn: peer_q.traffic_class[1:0],
                 flow_label: peer_q.flow_label, payload_length: l4_total, next_header: IP_PROTO_UDP,
                 hop_limit: peer_q.hop_limit, src_addr: gid_swap(peer_q.sgid), dst_addr: gid_swap(peer_q.dgid)};
  always_comb begin
    case (step_q)
      3'd0: {add_a, add_b} = {8'h45, peer_q.traffic_class, ip_total};
      3'd1: {add_a, add_b} = {16'h4000, peer_q.hop_limit, IP_PROTO_UDP};
      3'd2: {add_a, add_b} = sip;
      3'd3: {add_a, add_b} = dip;
      default: {add_a, add_b} = '0;
    endcase
  end
  always_ff @(posedge clk_i) begin
    step_q <= (state_q == StCalc) ? step_q + 3'd1 : '0;
    acc_q  <= ((step_q == '0) ? '0 : acc_q) + 20'(add_a) + 20'(add_b);
    if (step_q == 3'd4) checksum_q <= ~(fold[15:0] + 16'(fold[16]));
  end

  // ---------------------------------------------------------------- headers
  udp_hdr_t udp;
  bth_t bth;
  logic [8*ATOMIC_ETH_BYTES-1:0] ext;
  always_comb begin
    // No checksum, over IPv6 either: the ICRC covers what it would (as Soft-RoCE).
    udp = '{src_port: sport, dst_port: ROCE_UDP_PORT, length: l4_total, checksum: '0};
    bth = '0;
    bth.opcode  = job.opcode;
    bth.se      = job.se;
    bth.mig_req = 1'b1;
    bth.pad_cnt = pad;
    bth.pkey    = peer_q.pkey;
    bth.dest_qp = peer_q.dest_qpn;
    bth.ack_req = job.ack_req;
    bth.psn     = job.psn;
    ext = '0;
    for (int unsigned i = 0; i < ATOMIC_ETH_BYTES; i += 4)
      if (i < 32'(info.ext_len)) ext[8*(ATOMIC_ETH_BYTES-i)-1-:32] = job.ext[8*(ATOMIC_ETH_BYTES-i)-1-:32];
  end
  logic [8*HdrMax-1:0] ip_be;
  always_comb begin
    ip_be = '0;
    ip_be[8*HdrMax-1-:$bits({ip, udp, bth, ext})] = {ip, udp, bth, ext};
    if (peer_q.v6) ip_be = (8*HdrMax)'({ip6, udp, bth, ext});
  end
`ifdef RNIC_CUT_TX_VLAN
  assign hdr_vlan_o = '0;
`else
  assign hdr_vlan_o = peer_q.vlan;
`endif
  assign hdr_dmac_o = peer_q.dmac;
  assign hdr_v6_o   = peer_q.v6;
  always_comb for (int unsigned i = 0; i < HdrMax; i++) hdr_ip_o[8*i+:8] = ip_be[8*(HdrMax-1-i)+:8];
  assign hdr_ip_total_o = {2'b00, l4_words + 12'(ip_words - 5'(ICRC_BYTES / 4)), body_odd};
  assign hdr_src_o      = src_q;

  logic [7:0] syndrome;
  assign syndrome = job.ext[8*ATOMIC_ETH_BYTES-1-:8];
  always_comb begin
    hdr_count_o = 1'b1;
    hdr_cnt_o   = COUNTER_ID_TX_REQUESTS;
    if (info.is_read_resp || info.is_atomic_ack) begin
      hdr_cnt_o = COUNTER_ID_TX_READ_RESPONSES;
    end else if (info.is_ack) begin
      case (syndrome[7:5])
        3'd0: hdr_cnt_o = COUNTER_ID_TX_ACKS;
        3'd1: hdr_cnt_o = COUNTER_ID_TX_RNR_NAKS;
        default:
          case (syndrome)
            AETH_SYNDROME_NAK_PSN_SEQ:    hdr_cnt_o = COUNTER_ID_TX_NAK_PSN_SEQ;
            AETH_SYNDROME_NAK_INV_REQ:    hdr_cnt_o = COUNTER_ID_TX_NAK_INV_REQ;
            AETH_SYNDROME_NAK_REM_ACCESS: hdr_cnt_o = COUNTER_ID_TX_NAK_REM_ACCESS;
            AETH_SYNDROME_NAK_REM_OP:     hdr_cnt_o = COUNTER_ID_TX_NAK_REM_OP;
            default:                      hdr_count_o = 1'b0;
          endcase
      endcase
    end else if (!info.is_request) begin
      hdr_count_o = 1'b0;
    end
  end

  // ---------------------------------------------------------------- sequence
  logic pop, failing;
  assign take             = state_q == StIdle && any;
  assign cold_req_valid_o = state_q == StAsk;
  assign cold_req_idx_o   = job.qp_idx;
  assign hdr_valid_o      = state_q == StReady;
  assign failing          = state_q == StFail && idle_i;
  assign pop              = failing || (hdr_valid_o && hdr_ready_i);
  assign head_pop_o       = {pop && src_q, pop && !src_q};
  assign fail_o           = {failing && src_q, failing && !src_q};
  assign fail_err_o       = '{qp_idx: job.qp_idx, psn: job.psn, err: head_err_i[src_q]};
  always_comb begin
    state_d = state_q;
    case (state_q)
      StIdle:  if (any) state_d = (head_err_i[pick] != DMA_ERR_OK) ? StFail : StAsk;
      StFail:  if (idle_i) state_d = StIdle;
      StAsk:   if (cold_req_ready_i) state_d = StWait;
      StWait:  if (cold_rsp_valid_i) state_d = StCalc;
      StCalc:  if (step_q == 3'd4) state_d = StReady;
      StReady: if (hdr_ready_i) state_d = StIdle;
      default: state_d = StIdle;
    endcase
  end
  always_ff @(posedge clk_i) begin
    state_q <= rst_i ? StIdle : state_d;
    if (take) src_q <= pick;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i && hdr_valid_o) begin
      a_known_headers : assert (info.valid && !info.has_deth && !info.has_xrceth && !info.is_cnp);
      a_kind : assert (src_q ? !info.is_request : info.is_request);
      a_no_payload : assert (!info.pay_none || job.payload_len == '0);
    end
  end
endmodule
