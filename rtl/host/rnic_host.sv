// SPDX-License-Identifier: Apache-2.0
// Host side: TLP endpoint, BAR0 registers, doorbell pages, DMA read and write service, MSI-X, counters.
// Contract: see the DMA types in rnic_pkg. Clients: see rnic_core.
module rnic_host
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned DataW = 64,
    parameter int unsigned QpIdxW = 10,
    parameter int unsigned NumCq = 256,
    parameter int unsigned NumMr = 1024,
    parameter int unsigned NumSrq = 64,
    parameter int unsigned DmaTags = 64,
    parameter int unsigned ClkPeriodPs = 8000,
    parameter int unsigned MaxSqStride = 4,
    parameter int unsigned MaxRqStride = 4,
    parameter int unsigned MaxRd = MAX_RD_ATOMIC,
    parameter bit Ipv6 = 1'b1,
    parameter int unsigned LocalMemLog = 0,
    parameter int unsigned NumRd = 5,
    parameter int unsigned NumWr = 6,
    parameter logic [NumRd-1:0] PatientRd = NumRd'(1),   // clients that give way to the others: commands; so do interrupts
    parameter logic [NumWr-1:0] PatientWr = NumWr'(1),
    parameter int unsigned NumVecSrc = 2,
    parameter int unsigned NumCntSrc = 1   // sources that may pulse the same counter in one cycle
) (
    input  logic clk_i,
    input  logic rst_i,
    input  logic bus_master_en_i,
    input  logic port_up_i,
    input  mac_regs_t mac_regs_i,
    // TLP edges: header held beside every beat of a packet
    input  logic cq_valid_i, output logic cq_ready_o, input cq_hdr_t cq_hdr_i, input logic [DataW-1:0] cq_data_i, input logic cq_last_i,
    output logic cc_valid_o, input  logic cc_ready_i, output cc_hdr_t cc_hdr_o, output logic [DataW-1:0] cc_data_o, output logic cc_last_o,
    output logic rq_valid_o, input  logic rq_ready_i, output rq_hdr_t rq_hdr_o, output logic [DataW-1:0] rq_data_o, output logic rq_last_o,
    input  logic rc_valid_i, output logic rc_ready_o, input rc_hdr_t rc_hdr_i, input logic [DataW-1:0] rc_data_i, input logic rc_last_i,
    // DMA read clients (data and control are one bus for all; rsp_valid names the client)
    input  logic [NumRd-1:0] rd_req_valid_i, output logic [NumRd-1:0] rd_req_ready_o, input dma_rd_req_t [NumRd-1:0] rd_req_i,
    output logic [NumRd-1:0] rd_rsp_valid_o, input logic [NumRd-1:0] rd_rsp_ready_i, output logic [DataW-1:0] rd_rsp_data_o, output dma_rd_ctl_t rd_rsp_ctl_o,
    // DMA write clients
    input  logic [NumWr-1:0] wr_valid_i, output logic [NumWr-1:0] wr_ready_o, input dma_wr_hdr_t [NumWr-1:0] wr_hdr_i, input logic [NumWr-1:0][DataW-1:0] wr_data_i, input logic [NumWr-1:0] wr_last_i,
    // interrupts: taken after everything that was accepted on the write clients before
    input  logic [NumVecSrc-1:0] msix_valid_i, output logic [NumVecSrc-1:0] msix_ready_o, input logic [NumVecSrc-1:0][7:0] msix_vec_i,
    // control registers
    output logic enable_o, output logic force_fatal_o,
    input  logic ready_i, input logic fatal_i, input fatal_reason_e fatal_reason_i,
    output logic [63:0] cycles_o,
    output logic [63:0] cmd_ring_base_o, output logic [63:0] cmd_cpl_base_o, output logic [3:0] cmd_log_size_o, output logic cmd_restart_o,
    output logic cmd_producer_we_o, output logic [15:0] cmd_producer_o, input logic [15:0] cmd_producer_i, input logic [15:0] cmd_consumer_i, input logic [2:0] cmd_status_i,
    output logic eq_db_valid_o, output db_eq_t eq_db_o,
    output logic diag_valid_o, output diag_select_t diag_o, input logic diag_done_i, input logic [63:0] diag_data_i,
    output logic cq_db_valid_o, output cq_db_t cq_db_o,
    output logic srq_db_valid_o, output srq_db_t srq_db_o,
    // doorbells of send and receive queues: checked against the hot word; running producer indices read by the engines
    output qp_idx_t db_hot_idx_o, input qp_hot_t db_hot_i,          // answer one cycle later
    output logic sq_kick_valid_o, output qp_idx_t sq_kick_idx_o,    // send queue has a new producer index
    output logic rq_kick_valid_o, output qp_idx_t rq_kick_idx_o,
    input  qp_idx_t sq_prod_idx_i, output ring_pos_t sq_prod_o,     // answer one cycle later, as stored: of another epoch it means 0
    input  qp_idx_t rq_prod_idx_i, output ring_pos_t rq_prod_o,
    input  logic sq_cons_we_i, input ring_pos_wr_t sq_cons_i,       // consumer indices, for the range check of doorbells
    input  logic rq_cons_we_i, input ring_pos_wr_t rq_cons_i,
    // counters
    input  cnt_t [NumCntSrc-1:0] cnt_i, input logic [15:0] rx_bytes_i, input logic [15:0] tx_bytes_i,
    input  logic [6:0] cnt_rd_idx_i, output logic [63:0] cnt_rd_o   // answer one cycle later
);
  // ---------------------------------------------------------------- BAR0
  logic [1:0] reg_we, reg_ok, tbl_we;
  logic [BAR0_ADDR_W-1:3] reg_waddr, reg_raddr;
  logic [63:0] reg_wdata, reg_rdata, cnt_bar, tbl_rdata;
  logic reg_re, tbl_re, ur_wr, ur_rd, bad_write, cnt_bar_re, db_valid, db_whole;
  logic [6:0] cnt_bar_idx;
  logic [3:0] tbl_raddr;
  logic [NUM_MSIX-1:0] pba;
  logic [10:0] mps, mrrs;
  logic [23:0] cpl_timeout;
  rnic_tlp_completer #(.DataW(DataW)) u_completer (
      .clk_i, .rst_i, .cq_valid_i, .cq_ready_o, .cq_hdr_i, .cq_data_i, .cq_last_i, .cc_valid_o, .cc_ready_i, .cc_hdr_o, .cc_data_o, .cc_last_o,
      .reg_we_o(reg_we), .reg_waddr_o(reg_waddr), .reg_wdata_o(reg_wdata),
      .reg_re_o(reg_re), .reg_raddr_o(reg_raddr), .reg_rdata_i(reg_rdata), .reg_ok_i(reg_ok), .ur_wr_o(ur_wr), .ur_rd_o(ur_rd)
  );
  logic [7:0] rd_open;                   // reads of host memory under way
  rnic_bar_regs #(
      .DataW(DataW), .QpIdxW(QpIdxW), .NumCq(NumCq), .NumMr(NumMr), .NumSrq(NumSrq), .DmaTags(DmaTags), .ClkPeriodPs(ClkPeriodPs),
      .MaxSqStride(MaxSqStride), .MaxRqStride(MaxRqStride), .MaxRd(MaxRd), .Ipv6(Ipv6), .LocalMemLog(LocalMemLog)
  ) u_regs (
      .clk_i, .rst_i, .we_i(reg_we), .waddr_i(reg_waddr), .wdata_i(reg_wdata),
      .re_i(reg_re), .raddr_i(reg_raddr), .rdata_o(reg_rdata), .ok_o(reg_ok), .bad_write_o(bad_write),
      .port_up_i, .mac_regs_i, .enable_o, .force_fatal_o, .ready_i, .fatal_i, .fatal_reason_i,
      .mps_o(mps), .mrrs_o(mrrs), .cpl_timeout_o(cpl_timeout), .cycles_o,
      .cmd_ring_base_o, .cmd_cpl_base_o, .cmd_log_size_o, .cmd_restart_o, .cmd_producer_we_o, .cmd_producer_o,
      .cmd_producer_i, .cmd_consumer_i, .cmd_status_i, .eq_db_valid_o, .eq_db_o,
      .diag_valid_o, .diag_o, .diag_done_i, .diag_data_i, .diag_reads_i(rd_open),
      .cnt_re_o(cnt_bar_re), .cnt_idx_o(cnt_bar_idx), .cnt_data_i(cnt_bar), .tbl_we_o(tbl_we), .tbl_re_o(tbl_re), .tbl_raddr_o(tbl_raddr), .tbl_rdata_i(tbl_rdata),
      .pba_i(pba), .db_valid_o(db_valid), .db_whole_o(db_whole)
  );

  cnt_t cnt_db;
  rnic_doorbell #(.QpIdxW(QpIdxW)) u_doorbell (
      .clk_i, .rst_i, .db_valid_i(db_valid), .db_whole_i(db_whole),
      .db_uar_i(8'(reg_waddr[BAR0_ADDR_W-1:12]) - 8'(UAR_BASE / UAR_BYTES)), .db_off_i({reg_waddr[11:3], 3'b000}), .db_data_i(reg_wdata),
      .cq_db_valid_o, .cq_db_o, .srq_db_valid_o, .srq_db_o, .db_hot_idx_o, .db_hot_i,
      .sq_kick_valid_o, .sq_kick_idx_o, .rq_kick_valid_o, .rq_kick_idx_o, .sq_prod_idx_i, .sq_prod_o, .rq_prod_idx_i, .rq_prod_o,
      .sq_cons_we_i, .sq_cons_i, .rq_cons_we_i, .rq_cons_i, .cnt_o(cnt_db)
  );

  // ---------------------------------------------------------------- DMA and interrupts
  logic [3:0] wr_pending;
  logic wr_sent, rd_valid, rd_ready, wq_want, wq_valid, wq_ready, wq_last, mx_valid;
  rq_hdr_t rd_hdr, wq_hdr;
  logic [DataW-1:0] wq_data, mx_data;
  logic [12:0] rd_bytes, wr_bytes;
  logic c_abort, c_poison, c_timeout, c_malformed, c_unexpected, c_msix;
  logic [NumWr:0] wr_ready;
  dma_wr_hdr_t mx_hdr;
  rnic_dma_rd #(.DataW(DataW), .Tags(DmaTags), .NumRd(NumRd), .Patient(PatientRd)) u_rd (
      .clk_i, .rst_i, .mrrs_i(mrrs), .timeout_i(cpl_timeout),
      .rd_req_valid_i, .rd_req_ready_o, .rd_req_i, .rd_rsp_valid_o, .rd_rsp_ready_i, .rd_rsp_data_o, .rd_rsp_ctl_o,
      .open_o(rd_open), .wr_pending_i(wr_pending), .wr_sent_i(wr_sent), .rq_valid_o(rd_valid), .rq_ready_i(rd_ready), .rq_hdr_o(rd_hdr),
      .rc_valid_i, .rc_ready_o, .rc_hdr_i, .rc_data_i, .rc_last_i,
      .cnt_abort_o(c_abort), .cnt_poison_o(c_poison), .cnt_timeout_o(c_timeout), .cnt_malformed_o(c_malformed),
      .cnt_unexpected_o(c_unexpected), .bytes_o(rd_bytes)
  );
  rnic_msix #(.DataW(DataW), .NumSrc(NumVecSrc)) u_msix (
      .clk_i, .rst_i, .msix_valid_i, .msix_ready_o, .msix_vec_i,
      .tbl_we_i(tbl_we), .tbl_waddr_i(reg_waddr[6:3]), .tbl_wdata_i(reg_wdata), .tbl_re_i(tbl_re), .tbl_raddr_i(tbl_raddr), .tbl_rdata_o(tbl_rdata), .pba_o(pba),
      .wr_valid_o(mx_valid), .wr_ready_i(wr_ready[NumWr]), .wr_hdr_o(mx_hdr), .wr_data_o(mx_data), .sent_o(c_msix)
  );
  rnic_dma_wr #(.DataW(DataW), .NumWr(NumWr + 1), .Patient({1'b1, PatientWr})) u_wr (
      .clk_i, .rst_i, .mps_i(mps),
      .wr_valid_i({mx_valid, wr_valid_i}), .wr_ready_o(wr_ready), .wr_hdr_i({mx_hdr, wr_hdr_i}), .wr_data_i({mx_data, wr_data_i}),
      .wr_last_i({1'b1, wr_last_i}), .pending_o(wr_pending), .sent_o(wr_sent),
      .rq_want_o(wq_want), .rq_valid_o(wq_valid), .rq_ready_i(wq_ready), .rq_hdr_o(wq_hdr), .rq_data_o(wq_data), .rq_last_o(wq_last)
  );
  assign wr_ready_o = wr_ready[NumWr-1:0];
  rnic_tlp_requester #(.DataW(DataW)) u_requester (
      .clk_i, .rst_i, .bus_master_en_i, .rd_valid_i(rd_valid), .rd_ready_o(rd_ready), .rd_hdr_i(rd_hdr),
      .wr_want_i(wq_want), .wr_valid_i(wq_valid), .wr_ready_o(wq_ready), .wr_hdr_i(wq_hdr), .wr_data_i(wq_data), .wr_last_i(wq_last),
      .rq_valid_o, .rq_ready_i, .rq_hdr_o, .rq_data_o, .rq_last_o, .wr_bytes_o(wr_bytes)
  );

  // ---------------------------------------------------------------- counters
  // Two sources for what can happen twice in a cycle.
  cnt_t [1:0] cnt_own;
  always_comb begin
    cnt_own    = '0;
    cnt_own[0] = cnt_db;
    cnt_own[0][COUNTER_ID_MSIX_SENT]          = c_msix;
    cnt_own[0][COUNTER_ID_DMA_RD_ABORT]       = c_abort;
    cnt_own[0][COUNTER_ID_DMA_RD_POISON]      = c_poison;
    cnt_own[0][COUNTER_ID_DMA_RD_TIMEOUT]     = c_timeout;
    cnt_own[0][COUNTER_ID_DMA_RD_MALFORMED]   = c_malformed;
    cnt_own[0][COUNTER_ID_DMA_CPL_UNEXPECTED] = c_unexpected;
    cnt_own[0][COUNTER_ID_MMIO_UR]            = ur_wr || bad_write;
    cnt_own[1][COUNTER_ID_MMIO_UR]            = ur_rd;
  end
  rnic_counters #(.NumSrc(NumCntSrc + 2)) u_counters (
      .clk_i, .rst_i, .cnt_i({cnt_own, cnt_i}), .rx_bytes_i, .tx_bytes_i, .pcie_rd_bytes_i(rd_bytes), .pcie_wr_bytes_i(wr_bytes),
      .a_re_i(cnt_bar_re), .a_idx_i(cnt_bar_idx), .a_data_o(cnt_bar), .b_idx_i(cnt_rd_idx_i), .b_data_o(cnt_rd_o)
  );
endmodule
