// SPDX-License-Identifier: Apache-2.0
// Wire side: receive checks, parser, ICRC, store-and-forward buffers; transmit gather, header builder, ICRC.
// Contract: mac_rx_ready_o is always high; a frame is judged whole before anybody sees it. A transmit source hands over a
// job, then pieces that add up to its payload_len (none for 0); jobs of a source leave in order; a frame starts when its payload is on
// chip and has no gaps. tx_done pulses once per job, sent or failed, in the order of the source's jobs.
// Unused lanes of the last payload beat are zero. Frames are sent without Ethernet padding and FCS: both are the MAC's.
// The P_Key, addresses and destination of a job are those that its QP has when the frame is built.
module rnic_wire
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned DataW = 64,
    parameter int unsigned QpIdxW = 10,
    parameter int unsigned RxBufBytes = 16384,  // payload of received requests, of responses: a power of two each
    parameter int unsigned RxNumDesc = RxBufBytes / 128,  // packets in each of the two: a power of two
    parameter int unsigned TxBufBytes = (DataW >= 256) ? 32768 : 8192, // payload per source, 8192 or more: a power of two
    parameter bit Ipv6 = 1'b1                   // else IPv4 alone
) (
    input  logic clk_i,
    input  logic rst_i,
    input  port_cfg_t port_cfg_i,
    // Ethernet frames without preamble and FCS
    input  logic mac_rx_valid_i, output logic mac_rx_ready_o, input logic [DataW-1:0] mac_rx_data_i, input logic [DataW/8-1:0] mac_rx_keep_i, input logic mac_rx_last_i, input logic mac_rx_err_i,
    output logic mac_tx_valid_o, input logic mac_tx_ready_i, output logic [DataW-1:0] mac_tx_data_o, output logic [DataW/8-1:0] mac_tx_keep_o, output logic mac_tx_last_o,
    // received packets: [0] requests, [1] responses; payload beats are packed, ceil(payload_len / (DataW/8)) of them, none for 0
    output logic [1:0] rx_desc_valid_o, input logic [1:0] rx_desc_ready_i, output rx_desc_t [1:0] rx_desc_o,
    output logic [1:0] rx_pay_valid_o, input logic [1:0] rx_pay_ready_i, output logic [1:0][DataW-1:0] rx_pay_data_o, output logic [1:0] rx_pay_last_o,
    // transmit sources: [0] requester, whose jobs are requests, [1] responder, whose jobs are responses
    input  logic [1:0] tx_job_valid_i, output logic [1:0] tx_job_ready_o, input tx_job_t [1:0] tx_job_i,
    input  logic [1:0] tx_piece_valid_i, output logic [1:0] tx_piece_ready_o, input tx_piece_t [1:0] tx_piece_i, input logic [1:0][DataW-1:0] tx_piece_data_i,
    output logic [1:0] tx_done_o,
    output logic [1:0] tx_err_valid_o, output tx_err_t [1:0] tx_err_o,  // one cycle, beside tx_done
    // DMA reads of payload, one client per source
    output logic [1:0] rd_req_valid_o, input logic [1:0] rd_req_ready_i, output dma_rd_req_t [1:0] rd_req_o,
    input  logic [1:0] rd_rsp_valid_i, output logic [1:0] rd_rsp_ready_o, input logic [DataW-1:0] rd_rsp_data_i, input dma_rd_ctl_t rd_rsp_ctl_i,
    // context of a job's QP
    output logic cold_req_valid_o, input logic cold_req_ready_i, output qp_idx_t cold_req_idx_o, input logic cold_rsp_valid_i, input qp_ctx_t cold_rsp_i,
    output cnt_t cnt_o, output logic [15:0] rx_bytes_o, output logic [15:0] tx_bytes_o
);
  localparam int unsigned Bytes = DataW / 8;
  localparam int unsigned CntW = $clog2(Bytes + 1);
  localparam int unsigned IpHdrMax = (Ipv6 ? IPV6_HDR_BYTES : IPV4_HDR_BYTES) + UDP_HDR_BYTES + BTH_BYTES + ATOMIC_ETH_BYTES;

  // ---------------------------------------------------------------- receive
  logic ip_valid, ip_first, ip_last, dmac_ok, ipv4, ipv6, mac_err;
  logic [DataW-1:0] ip_data;
  logic [CntW-1:0] ip_cnt;
  logic [15:0] ip_frame_len;
  assign mac_rx_ready_o = 1'b1;
  rnic_rx_mac #(.DataW(DataW)) u_rx_mac (
      .clk_i, .rst_i, .mac_i(port_cfg_i.mac), .mac_rx_valid_i, .mac_rx_data_i, .mac_rx_keep_i, .mac_rx_last_i,
      .mac_rx_err_i, .ip_valid_o(ip_valid), .ip_first_o(ip_first), .ip_last_o(ip_last), .ip_data_o(ip_data),
      .ip_cnt_o(ip_cnt), .dmac_ok_o(dmac_ok), .ipv4_o(ipv4), .ipv6_o(ipv6), .err_o(mac_err), .frame_len_o(ip_frame_len)
  );

  logic pay_valid, pay_last, pay_request, fin_valid, rx_drop, rx_request, rx_response;
  logic [DataW-1:0] pay_data;
  logic [15:0] fin_len;
  counter_id_e rx_drop_cnt;
  rx_raw_t fin_desc;
  rnic_rx_parse #(.DataW(DataW), .Ipv6(Ipv6)) u_rx_parse (
      .clk_i, .rst_i, .gid_v4_i(port_cfg_i.gid_v4), .gid_v6_i(port_cfg_i.gid_v6), .gid_i(port_cfg_i.gid), .ip_valid_i(ip_valid),
      .ip_first_i(ip_first), .ip_last_i(ip_last), .ip_data_i(ip_data), .ip_cnt_i(ip_cnt), .dmac_ok_i(dmac_ok),
      .ipv4_i(ipv4), .ipv6_i(ipv6), .err_i(mac_err), .frame_len_i(ip_frame_len), .pay_valid_o(pay_valid), .pay_data_o(pay_data),
      .pay_last_o(pay_last), .pay_request_o(pay_request), .fin_valid_o(fin_valid), .drop_o(rx_drop),
      .drop_cnt_o(rx_drop_cnt), .request_o(rx_request), .response_o(rx_response), .desc_o(fin_desc),
      .frame_len_o(fin_len)
  );

  logic [1:0] overflow, desc_room, take;
  for (genvar c = 0; c < 2; c++) begin : g_rx_buf
    rnic_rx_buf #(.DataW(DataW), .BufBytes(RxBufBytes)) u_rx_buf (
        .clk_i, .rst_i, .pay_valid_i(pay_valid && pay_request == (c == 0)), .pay_data_i(pay_data), .pay_last_i(pay_last),
        .end_i(fin_valid), .commit_i((c == 0) ? rx_request : rx_response), .desc_room_i(desc_room[c]), .take_o(take[c]), .overflow_o(overflow[c]),
        .pay_valid_o(rx_pay_valid_o[c]), .pay_ready_i(rx_pay_ready_i[c]), .pay_data_o(rx_pay_data_o[c]),
        .pay_last_o(rx_pay_last_o[c])
    );
  end
  rnic_rx_desc #(.DataW(DataW), .NumDesc(RxNumDesc), .Ipv6(Ipv6)) u_rx_desc (
      .clk_i, .rst_i, .take_i(take), .room_o(desc_room), .desc_i(fin_desc), .valid_o(rx_desc_valid_o), .ready_i(rx_desc_ready_i), .desc_o(rx_desc_o)
  );

  // ---------------------------------------------------------------- transmit
  logic [1:0] head_valid, head_pop, src_pay_valid, src_pay_ready;
  dma_err_e [1:0] head_err;
  logic head_src;
  logic [1:0] job_push, pay_ready;
  tx_head_t head_job;
  logic [1:0][DataW-1:0] src_pay_data;
  rnic_tx_jobs #(.QpIdxW(QpIdxW)) u_tx_jobs (
      .clk_i, .rst_i, .job_valid_i(tx_job_valid_i), .job_ready_o(tx_job_ready_o), .job_i(tx_job_i), .pay_ready_i(pay_ready),
      .push_o(job_push),
      .src_i(head_src), .head_o(head_job), .pop_i(head_pop)
  );
  for (genvar s = 0; s < 2; s++) begin : g_tx_payload
    rnic_tx_payload #(.DataW(DataW), .BufBytes(TxBufBytes), .Responses(s == 1)) u_tx_payload (
        .clk_i, .rst_i, .job_valid_i(tx_job_valid_i[s]), .job_ready_o(pay_ready[s]), .job_push_i(job_push[s]), .job_len_i(tx_job_i[s].payload_len),
        .piece_valid_i(tx_piece_valid_i[s]), .piece_ready_o(tx_piece_ready_o[s]), .piece_i(tx_piece_i[s]),
        .piece_data_i(tx_piece_data_i[s]), .rd_req_valid_o(rd_req_valid_o[s]), .rd_req_ready_i(rd_req_ready_i[s]),
        .rd_req_o(rd_req_o[s]), .rd_rsp_valid_i(rd_rsp_valid_i[s]), .rd_rsp_ready_o(rd_rsp_ready_o[s]),
        .rd_rsp_data_i, .rd_rsp_ctl_i, .head_valid_o(head_valid[s]), .head_err_o(head_err[s]),
        .head_pop_i(head_pop[s]), .pay_valid_o(src_pay_valid[s]), .pay_ready_i(src_pay_ready[s]),
        .pay_data_o(src_pay_data[s])
    );
  end

  logic hdr_valid, hdr_ready, hdr_src, hdr_v6, hdr_count, tx_idle, mac_idle;
  logic [8*IpHdrMax-1:0] hdr_ip;
  logic [6:0] hdr_ip_len;
  logic [15:0] hdr_ip_total;
  logic [47:0] hdr_dmac;
  logic [15:0] hdr_vlan;
  logic [1:0] tx_fail;
  tx_err_t tx_fail_err;
  counter_id_e hdr_cnt;
  rnic_tx_builder #(.QpIdxW(QpIdxW), .Ipv6(Ipv6)) u_tx_builder (
      .clk_i, .rst_i, .port_cfg_i, .head_valid_i(head_valid), .head_err_i(head_err), .head_src_o(head_src), .head_job_i(head_job),
      .head_pop_o(head_pop), .cold_req_valid_o, .cold_req_ready_i, .cold_req_idx_o, .cold_rsp_valid_i, .cold_rsp_i,
      .idle_i(tx_idle), .fail_o(tx_fail), .fail_err_o(tx_fail_err), .hdr_valid_o(hdr_valid), .hdr_ready_i(hdr_ready),
      .hdr_src_o(hdr_src), .hdr_ip_o(hdr_ip), .hdr_ip_len_o(hdr_ip_len), .hdr_ip_total_o(hdr_ip_total),
      .hdr_dmac_o(hdr_dmac), .hdr_vlan_o(hdr_vlan), .hdr_v6_o(hdr_v6), .hdr_count_o(hdr_count), .hdr_cnt_o(hdr_cnt)
  );

  // The frame goes to both at once: its headers before the payload here, the Ethernet header there.
  logic join_ready, meta_ready, join_src_q, join_pay_ready, tx_ip_valid, tx_ip_ready, tx_ip_last, join_busy;
  logic [DataW-1:0] tx_ip_data;
  logic [CntW-1:0] tx_ip_cnt;
  assign hdr_ready = join_ready && meta_ready;
  always_ff @(posedge clk_i) if (hdr_valid && hdr_ready) join_src_q <= hdr_src;
  assign src_pay_ready = {join_pay_ready && join_src_q, join_pay_ready && !join_src_q};
  rnic_tx_prefix #(.DataW(DataW), .HdrMax(IpHdrMax), .Unit(4), .BackToBack(1'b1)) u_tx_join (
      .clk_i, .rst_i, .start_valid_i(hdr_valid && meta_ready), .start_ready_o(join_ready), .start_hdr_i(hdr_ip),
      .start_hdr_len_i(hdr_ip_len), .start_total_i(hdr_ip_total[12:0]), .body_valid_i(src_pay_valid[join_src_q]),
      .body_ready_o(join_pay_ready), .body_data_i(src_pay_data[join_src_q]), .out_valid_o(tx_ip_valid),
      .out_ready_i(tx_ip_ready), .out_data_o(tx_ip_data), .out_cnt_o(tx_ip_cnt), .out_last_o(tx_ip_last),
      .busy_o(join_busy)
  );

  logic done_valid, done_src, done_count;
  counter_id_e done_cnt;
  logic [15:0] done_len;
  rnic_tx_mac #(.DataW(DataW)) u_tx_mac (
      .clk_i, .rst_i, .meta_valid_i(hdr_valid && join_ready), .meta_ready_o(meta_ready), .mac_i(port_cfg_i.mac), .meta_dmac_i(hdr_dmac),
      .meta_vlan_i(hdr_vlan), .meta_v6_i(hdr_v6), .meta_ip_total_i(hdr_ip_total), .meta_src_i(hdr_src), .meta_count_i(hdr_count),
      .meta_cnt_i(hdr_cnt), .ip_valid_i(tx_ip_valid), .ip_ready_o(tx_ip_ready), .ip_data_i(tx_ip_data),
      .ip_cnt_i(tx_ip_cnt), .ip_last_i(tx_ip_last), .mac_tx_valid_o, .mac_tx_ready_i, .mac_tx_data_o, .mac_tx_keep_o,
      .mac_tx_last_o, .done_valid_o(done_valid), .done_src_o(done_src), .done_count_o(done_count),
      .done_cnt_o(done_cnt), .done_len_o(done_len), .idle_o(mac_idle)
  );
  assign tx_idle        = mac_idle && !join_busy;
  assign tx_done_o      = {done_valid && done_src, done_valid && !done_src} | tx_fail;
  assign tx_err_valid_o = tx_fail;
  assign tx_err_o       = {2{tx_fail_err}};

  // ---------------------------------------------------------------- counters
  assign rx_bytes_o = fin_valid ? fin_len : '0;
  assign tx_bytes_o = done_valid ? done_len : '0;
  always_comb begin
    cnt_o = '0;
    if (rx_drop) cnt_o[rx_drop_cnt] = 1'b1;
    cnt_o[COUNTER_ID_RX_FRAMES]        = fin_valid;
    cnt_o[COUNTER_ID_RX_DROP_OVERFLOW] = |overflow;
    cnt_o[COUNTER_ID_RX_REQUESTS]      = rx_request && !overflow[0];
    cnt_o[COUNTER_ID_RX_RESPONSES]     = rx_response && !overflow[1];
    if (done_valid && done_count) cnt_o[done_cnt] = 1'b1;
    cnt_o[COUNTER_ID_TX_FRAMES]        = done_valid;
  end
endmodule
