// SPDX-License-Identifier: Apache-2.0
// The RNIC: host side, control, QP engine, requester, responder and wire side joined. Edges: four TLP streams
// and an Ethernet frame stream each way.
// Contract: one clock, one synchronous reset (function-level reset is the same reset, given by whoever owns the
// configuration space). Contents of the generation and epoch tables survive it.
module rnic_core
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned DataW = 64,
    parameter int unsigned QpIdxW = 10,
    parameter int unsigned NumCq = 256,
    parameter int unsigned NumMr = 1024,
    parameter int unsigned NumSrq = 64,     // 0: no shared receive queues
    parameter int unsigned DmaTags = 64,
    parameter int unsigned ClkPeriodPs = 8000,
    parameter int unsigned MaxSqStride = 4,
    parameter int unsigned MaxRqStride = 4,
    parameter int unsigned PoolDepth = 1024,
    parameter int unsigned MaxRd = MAX_RD_ATOMIC,   // READs and atomics outstanding per QP, at most MAX_RD_ATOMIC
    parameter int unsigned WqeLines = 32,           // send WQEs of 512 bytes held (a longer one takes two)
    parameter int unsigned RqLines = 64,            // receive WQEs held
    parameter int unsigned RxBufBytes = 16384,      // payload of received requests, of responses; a packet for every 128 of them
    parameter bit Ipv6 = 1'b1,
    parameter int unsigned LocalMemLog = 0          // of a memory on the board beside the core (rnic_local_mem): capability alone
) (
    input  logic clk_i,
    input  logic rst_i,
    input  logic bus_master_en_i,
    input  logic port_up_i,
    input  mac_regs_t mac_regs_i,           // registers of the MAC block; 0 without a MAC beside the core
    // TLP streams: header held beside every beat of a packet
    input  logic             cq_valid_i,
    output logic             cq_ready_o,
    input  cq_hdr_t          cq_hdr_i,
    input  logic [DataW-1:0] cq_data_i,
    input  logic             cq_last_i,
    output logic             cc_valid_o,
    input  logic             cc_ready_i,
    output cc_hdr_t          cc_hdr_o,
    output logic [DataW-1:0] cc_data_o,
    output logic             cc_last_o,
    output logic             rq_valid_o,
    input  logic             rq_ready_i,
    output rq_hdr_t          rq_hdr_o,
    output logic [DataW-1:0] rq_data_o,
    output logic             rq_last_o,
    input  logic             rc_valid_i,
    output logic             rc_ready_o,
    input  rc_hdr_t          rc_hdr_i,
    input  logic [DataW-1:0] rc_data_i,
    input  logic             rc_last_i,
    // Ethernet frames, without preamble and FCS
    input  logic               mac_rx_valid_i,
    output logic               mac_rx_ready_o,
    input  logic [DataW-1:0]   mac_rx_data_i,
    input  logic [DataW/8-1:0] mac_rx_keep_i,
    input  logic               mac_rx_last_i,
    input  logic               mac_rx_err_i,
    output logic               mac_tx_valid_o,
    input  logic               mac_tx_ready_i,
    output logic [DataW-1:0]   mac_tx_data_o,
    output logic [DataW/8-1:0] mac_tx_keep_o,
    output logic               mac_tx_last_o
);
  // DMA read clients
  localparam int unsigned RdCtrl = 0, RdQp = 1, RdSend = 2, RdRecv = 3, RdTxReq = 4, RdTxRsp = 5, RdMr = 6;
  localparam int unsigned NumRd = 7;
  // DMA write clients
  localparam int unsigned WrCtrl = 0;  // completions of commands; and 1 (CQEs), 2 (EQEs)
  localparam int unsigned WrQp = 3, WrSend = 4, WrRecv = 5;
  localparam int unsigned NumWr = 6;
  // readers of the control section
  localparam int unsigned RdrSend = 0, RdrRecv = 1, RdrRead = 2, RdrHost = 3, RdrTx = 3;

  logic [NumRd-1:0] rd_req_valid, rd_req_ready, rd_rsp_valid, rd_rsp_ready;
  dma_rd_req_t [NumRd-1:0] rd_req;
  logic fetch_valid, fetch_ready;
  dma_rd_req_t fetch;
  logic [DataW-1:0] rd_rsp_data;
  dma_rd_ctl_t rd_rsp_ctl;
  logic [NumWr-1:0] wr_valid, wr_ready, wr_last;
  dma_wr_hdr_t [NumWr-1:0] wr_hdr;
  logic [NumWr-1:0][DataW-1:0] wr_data;

  logic [1:0] msix_valid, msix_ready;
  logic [1:0][7:0] msix_vec;

  logic enable, force_fatal, ready, fatal, qp_ready;
  fatal_reason_e fatal_reason;
  logic [63:0] cycles;
  logic [63:0] cmd_ring_base, cmd_cpl_base;
  logic [3:0] cmd_log_size;
  logic cmd_restart, cmd_producer_we;
  logic [15:0] cmd_producer_new, cmd_producer, cmd_consumer;
  logic [2:0] cmd_status;
  logic eq_db_valid, cq_db_valid;
  logic diag_valid, diag_to_send;
  logic [1:0] diag_done;                     // requester, responder
  logic [1:0][63:0] diag_data;
  diag_select_t diag;
  assign diag_to_send = 32'(diag.word) < DIAG_SEND_WORDS;
  db_eq_t eq_db;
  cq_db_t cq_db;
  logic srq_db_valid, srq_set_valid, srq_set_ready, srq_limit_valid, srq_limit_ready, srq_clr, cq_idle;
  srq_db_t srq_db;
  srq_cfg_t srq_cfg;
  logic [15:0] srq_idx, srq_limit, srq_pd, srq_cur_limit, srq_left;
  // Where there are none, the tables of the commands have two that are never valid.
  localparam int unsigned SrqTable = (NumSrq > 0) ? NumSrq : 2;
  logic [SrqTable-1:0] srq_valid;
  logic [NUM_XRCD-1:0] xrcd_valid;

  logic sq_kick_valid, rq_kick_valid, sq_cons_we, rq_cons_we;
  qp_idx_t sq_kick_idx, rq_kick_idx, sq_prod_idx, rq_prod_idx;
  ring_pos_t sq_prod, rq_prod;
  ring_pos_wr_t sq_cons, rq_cons;

  logic [6:0] cnt_rd_idx;
  logic [63:0] cnt_rd;
  cnt_t cnt_qp, cnt_ctrl, cnt_send, cnt_recv, cnt_wire;
  logic [15:0] rx_bytes, tx_bytes;

  logic qp_cmd_valid, qp_cmd_ready, qp_cpl_valid, qp_cpl_ready;
  cmd_qp_t qp_cmd;
  qp_cpl_t qp_cpl;
  logic [NUM_PD-1:0] pd_valid;
  logic [NumCq-1:0] cq_valid;
  port_cfg_t port_cfg;
  logic ref_valid;
  qp_ref_t qp_ref;

  qp_idx_t [3:0] hot_idx;
  qp_hot_t [3:0] hot;
  logic [3:0] cold_req_valid, cold_req_ready, cold_rsp_valid;
  qp_idx_t [3:0] cold_req_idx, cold_idx;
  logic [3:0] cold_valid, cold_ready;
  qp_ctx_t cold_rsp, cold_send, cold_recv;
  logic qp_evt_valid;
  qp_evt_t qp_evt;
  logic [2:0] qp_err_valid;
  qp_err_t [2:0] qp_err;
  logic sq_drained_valid;
  qp_idx_t sq_drained_idx;
  epoch_t sq_drained_epoch;

  logic [3:0] mr_req_valid, mr_req_ready, mr_rsp_valid;
  mr_req_t [3:0] mr_req;
  mr_rsp_t mr_rsp;
  // Operations on keys: by the requester; invalidation by the responder.
  logic mr_op_valid, mr_op_done, mr_inv_valid;
  mr_op_t mr_op;
  mr_inv_t mr_inv;
  mr_err_e mr_op_err;
  logic mr_inv_done;
  logic inv_mark, inv_busy;                // barrier of the responder for keys that the requester has invalidated
  logic [1:0] cqe_valid, cqe_ready;
  cqe_req_t [1:0] cqe;
  logic [2:0] eqe_valid, eqe_ready;
  eqe_req_t [2:0] eqe;

  logic [1:0] rx_desc_valid, rx_desc_ready, rx_pay_valid, rx_pay_ready, rx_pay_last;
  rx_desc_t [1:0] rx_desc;
  logic [1:0][DataW-1:0] rx_pay_data;
  logic [1:0] tx_job_valid, tx_job_ready, tx_piece_valid, tx_piece_ready, tx_done, tx_err_valid;
  tx_job_t [1:0] tx_job;
  tx_piece_t [1:0] tx_piece;
  logic [1:0][DataW-1:0] tx_piece_data;
  tx_err_t [1:0] tx_err;

  // A drain is asked by the QP engine or by the object tables, and answered when both engines stand still.
  logic drain_req_qp, drain_req_ctrl, drain_req, drain_ack, drain_ack_send, drain_ack_recv;
  assign drain_req = drain_req_qp || drain_req_ctrl;
  assign drain_ack = drain_ack_send && drain_ack_recv;

  // Requests for commands and for cold words come out of long decisions and go into others: a register between them.
  rnic_slice #(.Width($bits(dma_rd_req_t))) u_fetch (
      .clk_i, .rst_i, .in_valid_i(fetch_valid), .in_ready_o(fetch_ready), .in_data_i(fetch),
      .out_valid_o(rd_req_valid[RdCtrl]), .out_ready_i(rd_req_ready[RdCtrl]), .out_data_o(rd_req[RdCtrl])
  );
  // The requester asks by a state of its own, and a cycle more would show in the rate of small packets.
  assign {cold_valid[RdrSend], cold_idx[RdrSend], cold_req_ready[RdrSend]} = {cold_req_valid[RdrSend], cold_req_idx[RdrSend], cold_ready[RdrSend]};
  for (genvar r = RdrRecv; r < 4; r++) begin : g_cold
    rnic_slice #(.Width($bits(qp_idx_t))) u_slice (
        .clk_i, .rst_i, .in_valid_i(cold_req_valid[r]), .in_ready_o(cold_req_ready[r]), .in_data_i(cold_req_idx[r]),
        .out_valid_o(cold_valid[r]), .out_ready_i(cold_ready[r]), .out_data_o(cold_idx[r])
    );
  end

  // A fatal device starts nothing on the wire any more.
  logic run;
  assign run = enable && ready && !fatal;

  rnic_host #(
      .DataW(DataW), .QpIdxW(QpIdxW), .NumCq(NumCq), .NumMr(NumMr), .NumSrq(NumSrq), .DmaTags(DmaTags), .ClkPeriodPs(ClkPeriodPs),
      .MaxSqStride(MaxSqStride), .MaxRqStride(MaxRqStride), .MaxRd(MaxRd), .Ipv6(Ipv6), .LocalMemLog(LocalMemLog), .NumRd(NumRd), .NumWr(NumWr),
      .PatientRd(NumRd'(1) << RdCtrl), .PatientWr(NumWr'(1) << WrCtrl), .NumVecSrc(2), .NumCntSrc(5)
  ) u_host (
      .clk_i, .rst_i, .bus_master_en_i, .port_up_i, .mac_regs_i,
      .cq_valid_i, .cq_ready_o, .cq_hdr_i, .cq_data_i, .cq_last_i,
      .cc_valid_o, .cc_ready_i, .cc_hdr_o, .cc_data_o, .cc_last_o,
      .rq_valid_o, .rq_ready_i, .rq_hdr_o, .rq_data_o, .rq_last_o,
      .rc_valid_i, .rc_ready_o, .rc_hdr_i, .rc_data_i, .rc_last_i,
      .rd_req_valid_i(rd_req_valid), .rd_req_ready_o(rd_req_ready), .rd_req_i(rd_req),
      .rd_rsp_valid_o(rd_rsp_valid), .rd_rsp_ready_i(rd_rsp_ready), .rd_rsp_data_o(rd_rsp_data), .rd_rsp_ctl_o(rd_rsp_ctl),
      .wr_valid_i(wr_valid), .wr_ready_o(wr_ready), .wr_hdr_i(wr_hdr), .wr_data_i(wr_data), .wr_last_i(wr_last),
      .msix_valid_i(msix_valid), .msix_ready_o(msix_ready), .msix_vec_i(msix_vec),
      .enable_o(enable), .force_fatal_o(force_fatal), .ready_i(ready), .fatal_i(fatal), .fatal_reason_i(fatal_reason),
      .cycles_o(cycles),
      .cmd_ring_base_o(cmd_ring_base), .cmd_cpl_base_o(cmd_cpl_base), .cmd_log_size_o(cmd_log_size), .cmd_restart_o(cmd_restart),
      .cmd_producer_we_o(cmd_producer_we), .cmd_producer_o(cmd_producer_new), .cmd_producer_i(cmd_producer),
      .cmd_consumer_i(cmd_consumer), .cmd_status_i(cmd_status),
      .eq_db_valid_o(eq_db_valid), .eq_db_o(eq_db),
      .diag_valid_o(diag_valid), .diag_o(diag), .diag_done_i(|diag_done), .diag_data_i(diag_done[0] ? diag_data[0] : diag_data[1]), .cq_db_valid_o(cq_db_valid), .cq_db_o(cq_db),
      .srq_db_valid_o(srq_db_valid), .srq_db_o(srq_db),
      .db_hot_idx_o(hot_idx[RdrHost]), .db_hot_i(hot[RdrHost]),
      .sq_kick_valid_o(sq_kick_valid), .sq_kick_idx_o(sq_kick_idx), .rq_kick_valid_o(rq_kick_valid), .rq_kick_idx_o(rq_kick_idx),
      .sq_prod_idx_i(sq_prod_idx), .sq_prod_o(sq_prod), .rq_prod_idx_i(rq_prod_idx), .rq_prod_o(rq_prod),
      .sq_cons_we_i(sq_cons_we), .sq_cons_i(sq_cons), .rq_cons_we_i(rq_cons_we), .rq_cons_i(rq_cons),
      .cnt_i({cnt_wire, cnt_recv, cnt_send, cnt_ctrl, cnt_qp}), .rx_bytes_i(rx_bytes), .tx_bytes_i(tx_bytes),
      .cnt_rd_idx_i(cnt_rd_idx), .cnt_rd_o(cnt_rd)
  );

  rnic_ctrl #(
      .DataW(DataW), .QpIdxW(QpIdxW), .NumCq(NumCq), .NumMr(NumMr), .NumSrq(SrqTable), .HasSrq(NumSrq > 0), .ClkPeriodPs(ClkPeriodPs),
      .DmaTags(DmaTags), .MaxSqStride(MaxSqStride), .MaxRqStride(MaxRqStride), .MaxRd(MaxRd), .NumMrPort(4), .NumCqe(2), .NumEqe(3), .Ipv6(Ipv6), .LocalMemLog(LocalMemLog)
  ) u_ctrl (
      .clk_i, .rst_i,
      .enable_i(enable), .force_fatal_i(force_fatal), .bus_master_en_i, .cycles_i(cycles),
      .ready_o(ready), .fatal_o(fatal), .fatal_reason_o(fatal_reason),
      .cmd_ring_base_i(cmd_ring_base), .cmd_cpl_base_i(cmd_cpl_base), .cmd_log_size_i(cmd_log_size), .cmd_restart_i(cmd_restart),
      .cmd_producer_we_i(cmd_producer_we), .cmd_producer_i(cmd_producer_new), .cmd_producer_o(cmd_producer),
      .cmd_consumer_o(cmd_consumer), .cmd_status_o(cmd_status),
      .eq_db_valid_i(eq_db_valid), .eq_db_i(eq_db), .cq_db_valid_i(cq_db_valid), .cq_db_i(cq_db),
      .rd_req_valid_o(fetch_valid), .rd_req_ready_i(fetch_ready), .rd_req_o(fetch),
      .rd_rsp_valid_i(rd_rsp_valid[RdCtrl]), .rd_rsp_ready_o(rd_rsp_ready[RdCtrl]), .rd_rsp_data_i(rd_rsp_data), .rd_rsp_ctl_i(rd_rsp_ctl),
      .mr_rd_req_valid_o(rd_req_valid[RdMr]), .mr_rd_req_ready_i(rd_req_ready[RdMr]), .mr_rd_req_o(rd_req[RdMr]),
      .mr_rd_rsp_valid_i(rd_rsp_valid[RdMr]), .mr_rd_rsp_ready_o(rd_rsp_ready[RdMr]),
      .wr_valid_o(wr_valid[WrCtrl+:3]), .wr_ready_i(wr_ready[WrCtrl+:3]), .wr_hdr_o(wr_hdr[WrCtrl+:3]), .wr_data_o(wr_data[WrCtrl+:3]), .wr_last_o(wr_last[WrCtrl+:3]),
      .msix_valid_o(msix_valid), .msix_ready_i(msix_ready), .msix_vec_o(msix_vec),
      .qp_cmd_valid_o(qp_cmd_valid), .qp_cmd_ready_i(qp_cmd_ready), .qp_cmd_o(qp_cmd),
      .qp_cpl_valid_i(qp_cpl_valid), .qp_cpl_ready_o(qp_cpl_ready), .qp_cpl_i(qp_cpl), .qp_ready_i(qp_ready),
      .pd_valid_o(pd_valid), .cq_valid_o(cq_valid), .xrcd_valid_o(xrcd_valid), .port_cfg_o(port_cfg), .cq_idle_o(cq_idle),
      .srq_set_valid_o(srq_set_valid), .srq_set_ready_i(srq_set_ready), .srq_limit_valid_o(srq_limit_valid), .srq_limit_ready_i(srq_limit_ready),
      .srq_clr_o(srq_clr), .srq_idx_o(srq_idx), .srq_cfg_o(srq_cfg), .srq_limit_o(srq_limit),
      .srq_valid_i(srq_valid), .srq_pd_i(srq_pd), .srq_cur_limit_i(srq_cur_limit), .srq_left_i(srq_left),
      .ref_valid_i(ref_valid), .ref_i(qp_ref),
      .drain_req_o(drain_req_ctrl), .drain_ack_i(drain_ack),
      .mr_req_valid_i(mr_req_valid), .mr_req_ready_o(mr_req_ready), .mr_req_i(mr_req), .mr_rsp_valid_o(mr_rsp_valid), .mr_rsp_o(mr_rsp),
      .mr_op_valid_i(mr_op_valid), .mr_op_i(mr_op), .mr_op_done_o(mr_op_done), .mr_inv_valid_i(mr_inv_valid), .mr_inv_i(mr_inv),
      .mr_inv_done_o(mr_inv_done), .mr_op_err_o(mr_op_err),
      .cqe_valid_i(cqe_valid), .cqe_ready_o(cqe_ready), .cqe_i(cqe),
      .eqe_valid_i(eqe_valid), .eqe_ready_o(eqe_ready), .eqe_i(eqe),
      .qp_err_valid_o(qp_err_valid[2]), .qp_err_o(qp_err[2]),
      .port_up_i, .cnt_rd_idx_o(cnt_rd_idx), .cnt_rd_i(cnt_rd), .cnt_o(cnt_ctrl)
  );

  rnic_qp #(
      .DataW(DataW), .QpIdxW(QpIdxW), .NumCq(NumCq), .NumSrq(SrqTable), .NumHot(4), .HotLife(4'd1 << RdrRecv), .HotServe(4'd1 << RdrRead), .NumCold(4), .NumErr(3),
      .MaxSqStride(MaxSqStride), .MaxRqStride(MaxRqStride), .MaxRd(MaxRd)
  ) u_qp (
      .clk_i, .rst_i, .ready_o(qp_ready),
      .qp_cmd_valid_i(qp_cmd_valid), .qp_cmd_ready_o(qp_cmd_ready), .qp_cmd_i(qp_cmd),
      .qp_cpl_valid_o(qp_cpl_valid), .qp_cpl_ready_i(qp_cpl_ready), .qp_cpl_o(qp_cpl),
      .rd_req_valid_o(rd_req_valid[RdQp]), .rd_req_ready_i(rd_req_ready[RdQp]), .rd_req_o(rd_req[RdQp]),
      .rd_rsp_valid_i(rd_rsp_valid[RdQp]), .rd_rsp_ready_o(rd_rsp_ready[RdQp]), .rd_rsp_data_i(rd_rsp_data), .rd_rsp_ctl_i(rd_rsp_ctl),
      .wr_valid_o(wr_valid[WrQp]), .wr_ready_i(wr_ready[WrQp]), .wr_hdr_o(wr_hdr[WrQp]), .wr_data_o(wr_data[WrQp]), .wr_last_o(wr_last[WrQp]),
      .pd_valid_i(pd_valid), .cq_valid_i(cq_valid), .srq_valid_i(srq_valid), .xrcd_valid_i(xrcd_valid), .port_cfg_i(port_cfg),
      .ref_valid_o(ref_valid), .ref_o(qp_ref),
      .drain_req_o(drain_req_qp), .drain_ack_i(drain_ack),
      .hot_idx_i(hot_idx), .hot_o(hot),
      .cold_req_valid_i(cold_valid), .cold_req_ready_o(cold_ready), .cold_req_idx_i(cold_idx),
      .cold_rsp_valid_o(cold_rsp_valid), .cold_rsp_o(cold_rsp),
      .qp_evt_valid_o(qp_evt_valid), .qp_evt_o(qp_evt),
      .qp_err_valid_i(qp_err_valid), .qp_err_i(qp_err),
      .sq_drained_valid_i(sq_drained_valid), .sq_drained_idx_i(sq_drained_idx), .sq_drained_epoch_i(sq_drained_epoch),
      .eqe_valid_o(eqe_valid[0]), .eqe_ready_i(eqe_ready[0]), .eqe_o(eqe[0]),
      .cnt_o(cnt_qp)
  );

  // The table has each part of a section once: what the hot word has of it comes from there, in the same cycle.
  always_comb begin
    cold_send                 = cold_rsp;
    cold_send.hot             = hot[RdrSend];
    cold_recv                 = cold_rsp;
    cold_recv.hot.valid       = hot[RdrRecv].valid;
    cold_recv.hot.state       = hot[RdrRecv].state;
    cold_recv.hot.sq_draining = hot[RdrRecv].sq_draining;
    cold_recv.hot.access      = hot[RdrRecv].access;
    cold_recv.hot.mtu         = hot[RdrRecv].mtu;
    cold_recv.hot.epoch       = hot[RdrRecv].epoch;
  end

  rnic_send #(
      .DataW(DataW), .QpIdxW(QpIdxW), .ClkPeriodPs(ClkPeriodPs), .MaxSqStride(MaxSqStride), .PoolDepth(PoolDepth), .WqeLines(WqeLines)
  ) u_send (
      .clk_i, .rst_i, .enable_i(run), .port_cfg_i(port_cfg),
      .qp_evt_valid_i(qp_evt_valid), .qp_evt_i(qp_evt),
      .hot_idx_o(hot_idx[RdrSend]), .hot_i(hot[RdrSend]),
      .cold_req_valid_o(cold_req_valid[RdrSend]), .cold_req_ready_i(cold_req_ready[RdrSend]), .cold_req_idx_o(cold_req_idx[RdrSend]),
      .cold_rsp_valid_i(cold_rsp_valid[RdrSend]), .cold_rsp_i(cold_send),
      .sq_kick_valid_i(sq_kick_valid), .sq_kick_idx_i(sq_kick_idx), .sq_prod_idx_o(sq_prod_idx), .sq_prod_i(sq_prod),
      .sq_cons_we_o(sq_cons_we), .sq_cons_o(sq_cons),
      .rx_desc_valid_i(rx_desc_valid[1]), .rx_desc_ready_o(rx_desc_ready[1]), .rx_desc_i(rx_desc[1]),
      .rx_pay_valid_i(rx_pay_valid[1]), .rx_pay_ready_o(rx_pay_ready[1]), .rx_pay_data_i(rx_pay_data[1]), .rx_pay_last_i(rx_pay_last[1]),
      .tx_job_valid_o(tx_job_valid[0]), .tx_job_ready_i(tx_job_ready[0]), .tx_job_o(tx_job[0]),
      .tx_piece_valid_o(tx_piece_valid[0]), .tx_piece_ready_i(tx_piece_ready[0]), .tx_piece_o(tx_piece[0]), .tx_piece_data_o(tx_piece_data[0]),
      .tx_done_i(tx_done[0]), .tx_err_valid_i(tx_err_valid[0]), .tx_err_i(tx_err[0]),
      .rd_req_valid_o(rd_req_valid[RdSend]), .rd_req_ready_i(rd_req_ready[RdSend]), .rd_req_o(rd_req[RdSend]),
      .rd_rsp_valid_i(rd_rsp_valid[RdSend]), .rd_rsp_ready_o(rd_rsp_ready[RdSend]), .rd_rsp_data_i(rd_rsp_data), .rd_rsp_ctl_i(rd_rsp_ctl),
      .wr_valid_o(wr_valid[WrSend]), .wr_ready_i(wr_ready[WrSend]), .wr_hdr_o(wr_hdr[WrSend]), .wr_data_o(wr_data[WrSend]), .wr_last_o(wr_last[WrSend]),
      .mr_req_valid_o(mr_req_valid[1:0]), .mr_req_ready_i(mr_req_ready[1:0]), .mr_req_o(mr_req[1:0]), .mr_rsp_valid_i(mr_rsp_valid[1:0]), .mr_rsp_i(mr_rsp),
      .mr_op_valid_o(mr_op_valid), .mr_op_o(mr_op), .mr_op_done_i(mr_op_done), .mr_op_err_i(mr_op_err), .inv_mark_o(inv_mark), .inv_busy_i(inv_busy),
      .cqe_valid_o(cqe_valid[0]), .cqe_ready_i(cqe_ready[0]), .cqe_o(cqe[0]),
      .eqe_valid_o(eqe_valid[1]), .eqe_ready_i(eqe_ready[1]), .eqe_o(eqe[1]),
      .qp_err_valid_o(qp_err_valid[0]), .qp_err_o(qp_err[0]),
      .sq_drained_valid_o(sq_drained_valid), .sq_drained_idx_o(sq_drained_idx), .sq_drained_epoch_o(sq_drained_epoch),
      .drain_req_i(drain_req), .drain_ack_o(drain_ack_send),
      .diag_valid_i(diag_valid && diag_to_send), .diag_i(diag), .diag_done_o(diag_done[0]), .diag_data_o(diag_data[0]),
      .cnt_o(cnt_send)
  );

  rnic_recv #(
      .DataW(DataW), .QpIdxW(QpIdxW), .ClkPeriodPs(ClkPeriodPs), .MaxRqStride(MaxRqStride), .MaxRd(MaxRd), .NumSrq(NumSrq),
      .RqLines(RqLines)
  ) u_recv (
      .clk_i, .rst_i, .enable_i(run), .port_cfg_i(port_cfg),
      .qp_evt_valid_i(qp_evt_valid), .qp_evt_i(qp_evt),
      .hot_idx_o(hot_idx[RdrRead:RdrRecv]), .hot_i(hot[RdrRead:RdrRecv]),
      .cold_req_valid_o(cold_req_valid[RdrRead:RdrRecv]), .cold_req_ready_i(cold_req_ready[RdrRead:RdrRecv]), .cold_req_idx_o(cold_req_idx[RdrRead:RdrRecv]),
      .cold_rsp_valid_i(cold_rsp_valid[RdrRead:RdrRecv]), .cold_rsp_i(cold_recv),
      .rq_kick_valid_i(rq_kick_valid), .rq_kick_idx_i(rq_kick_idx), .rq_prod_idx_o(rq_prod_idx), .rq_prod_i(rq_prod),
      .rq_cons_we_o(rq_cons_we), .rq_cons_o(rq_cons),
      .srq_set_valid_i(srq_set_valid), .srq_set_ready_o(srq_set_ready), .srq_limit_valid_i(srq_limit_valid), .srq_limit_ready_o(srq_limit_ready),
      .srq_clr_i(srq_clr), .srq_idx_i(srq_idx), .srq_cfg_i(srq_cfg), .srq_limit_i(srq_limit),
      .srq_valid_o(srq_valid), .srq_pd_o(srq_pd), .srq_cur_limit_o(srq_cur_limit), .srq_left_o(srq_left),
      .srq_db_valid_i(srq_db_valid), .srq_db_i(srq_db),
      .rx_desc_valid_i(rx_desc_valid[0]), .rx_desc_ready_o(rx_desc_ready[0]), .rx_desc_i(rx_desc[0]),
      .rx_pay_valid_i(rx_pay_valid[0]), .rx_pay_ready_o(rx_pay_ready[0]), .rx_pay_data_i(rx_pay_data[0]), .rx_pay_last_i(rx_pay_last[0]),
      .tx_job_valid_o(tx_job_valid[1]), .tx_job_ready_i(tx_job_ready[1]), .tx_job_o(tx_job[1]),
      .tx_piece_valid_o(tx_piece_valid[1]), .tx_piece_ready_i(tx_piece_ready[1]), .tx_piece_o(tx_piece[1]), .tx_piece_data_o(tx_piece_data[1]),
      .tx_done_i(tx_done[1]), .tx_err_valid_i(tx_err_valid[1]), .tx_err_i(tx_err[1]),
      .rd_req_valid_o(rd_req_valid[RdRecv]), .rd_req_ready_i(rd_req_ready[RdRecv]), .rd_req_o(rd_req[RdRecv]),
      .rd_rsp_valid_i(rd_rsp_valid[RdRecv]), .rd_rsp_ready_o(rd_rsp_ready[RdRecv]), .rd_rsp_data_i(rd_rsp_data), .rd_rsp_ctl_i(rd_rsp_ctl),
      .wr_valid_o(wr_valid[WrRecv]), .wr_ready_i(wr_ready[WrRecv]), .wr_hdr_o(wr_hdr[WrRecv]), .wr_data_o(wr_data[WrRecv]), .wr_last_o(wr_last[WrRecv]),
      .mr_inv_valid_o(mr_inv_valid), .mr_inv_o(mr_inv), .mr_inv_done_i(mr_inv_done), .mr_inv_err_i(mr_op_err), .inv_mark_i(inv_mark), .inv_busy_o(inv_busy),
      .mr_req_valid_o(mr_req_valid[3:2]), .mr_req_ready_i(mr_req_ready[3:2]), .mr_req_o(mr_req[3:2]), .mr_rsp_valid_i(mr_rsp_valid[3:2]), .mr_rsp_i(mr_rsp),
      .cqe_valid_o(cqe_valid[1]), .cqe_ready_i(cqe_ready[1]), .cqe_o(cqe[1]), .cq_idle_i(cq_idle),
      .eqe_valid_o(eqe_valid[2]), .eqe_ready_i(eqe_ready[2]), .eqe_o(eqe[2]),
      .qp_err_valid_o(qp_err_valid[1]), .qp_err_o(qp_err[1]),
      .drain_req_i(drain_req), .drain_ack_o(drain_ack_recv),
      .diag_valid_i(diag_valid && !diag_to_send), .diag_i(diag), .diag_done_o(diag_done[1]), .diag_data_o(diag_data[1]),
      .cnt_o(cnt_recv)
  );

  rnic_wire #(
      .DataW(DataW), .QpIdxW(QpIdxW), .RxBufBytes(RxBufBytes), .Ipv6(Ipv6)
  ) u_wire (
      .clk_i, .rst_i, .port_cfg_i(port_cfg),
      .mac_rx_valid_i, .mac_rx_ready_o, .mac_rx_data_i, .mac_rx_keep_i, .mac_rx_last_i, .mac_rx_err_i,
      .mac_tx_valid_o, .mac_tx_ready_i, .mac_tx_data_o, .mac_tx_keep_o, .mac_tx_last_o,
      .rx_desc_valid_o(rx_desc_valid), .rx_desc_ready_i(rx_desc_ready), .rx_desc_o(rx_desc),
      .rx_pay_valid_o(rx_pay_valid), .rx_pay_ready_i(rx_pay_ready), .rx_pay_data_o(rx_pay_data), .rx_pay_last_o(rx_pay_last),
      .tx_job_valid_i(tx_job_valid), .tx_job_ready_o(tx_job_ready), .tx_job_i(tx_job),
      .tx_piece_valid_i(tx_piece_valid), .tx_piece_ready_o(tx_piece_ready), .tx_piece_i(tx_piece), .tx_piece_data_i(tx_piece_data),
      .tx_done_o(tx_done), .tx_err_valid_o(tx_err_valid), .tx_err_o(tx_err),
      .rd_req_valid_o(rd_req_valid[RdTxRsp:RdTxReq]), .rd_req_ready_i(rd_req_ready[RdTxRsp:RdTxReq]), .rd_req_o(rd_req[RdTxRsp:RdTxReq]),
      .rd_rsp_valid_i(rd_rsp_valid[RdTxRsp:RdTxReq]), .rd_rsp_ready_o(rd_rsp_ready[RdTxRsp:RdTxReq]), .rd_rsp_data_i(rd_rsp_data), .rd_rsp_ctl_i(rd_rsp_ctl),
      .cold_req_valid_o(cold_req_valid[RdrTx]), .cold_req_ready_i(cold_req_ready[RdrTx]), .cold_req_idx_o(cold_req_idx[RdrTx]),
      .cold_rsp_valid_i(cold_rsp_valid[RdrTx]), .cold_rsp_i(cold_rsp),
      .cnt_o(cnt_wire), .rx_bytes_o(rx_bytes), .tx_bytes_o(tx_bytes)
  );
endmodule
