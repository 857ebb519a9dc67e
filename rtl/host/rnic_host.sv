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
    parameter int unsigned DmaTags = 64,
    parameter int unsigned ClkPeriodPs = 8000,
    parameter int unsigned MaxSqStride = 3,
    parameter int unsigned MaxRqStride = 4,
    parameter int unsigned NumRd = 5,
    parameter int unsigned NumWr = 6,
    parameter int unsigned NumVecSrc = 2
) (
    input  logic clk_i,
    input  logic rst_i,
    input  logic bus_master_en_i,
    input  logic port_up_i,
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
    output logic cq_db_valid_o, output cq_db_t cq_db_o,
    // doorbells of send and receive queues: checked against the hot word; running producer indices read by the engines
    output qp_idx_t db_hot_idx_o, input qp_hot_t db_hot_i,          // answer one cycle later
    output logic sq_kick_valid_o, output qp_idx_t sq_kick_idx_o,    // send queue has a new producer index
    output logic rq_kick_valid_o, output qp_idx_t rq_kick_idx_o,
    input  qp_idx_t sq_prod_idx_i, output ring_pos_t sq_prod_o,     // answer one cycle later; another epoch reads as 0
    input  qp_idx_t rq_prod_idx_i, output ring_pos_t rq_prod_o,
    input  logic sq_cons_we_i, input ring_pos_wr_t sq_cons_i,       // consumer indices, for the range check of doorbells
    input  logic rq_cons_we_i, input ring_pos_wr_t rq_cons_i,
    // counters
    input  cnt_t cnt_i, input logic [15:0] rx_bytes_i, input logic [15:0] tx_bytes_i,
    input  logic [6:0] cnt_rd_idx_i, output logic [63:0] cnt_rd_o   // answer one cycle later
);
  // ---------------------------------------------------------------- BAR0
  logic reg_we, reg_we64, reg_re, reg_rok, tlp_ur, bad_write, tbl_we;
  logic [17:0] reg_waddr, reg_raddr;
  logic [63:0] reg_wdata, reg_rdata, cnt_bar, tbl_rdata;
  logic [6:0] cnt_bar_idx;
  logic [11:0] tbl_raddr;
  logic [NUM_MSIX-1:0] pba;
  logic [10:0] mps, mrrs;
  logic [31:0] cpl_timeout;

  rnic_tlp_completer #(.DataW(DataW)) u_completer (
      .clk_i, .rst_i, .cq_valid_i, .cq_ready_o, .cq_hdr_i, .cq_data_i, .cq_last_i, .cc_valid_o, .cc_ready_i, .cc_hdr_o, .cc_data_o, .cc_last_o,
      .reg_we_o(reg_we), .reg_we64_o(reg_we64), .reg_waddr_o(reg_waddr), .reg_wdata_o(reg_wdata),
      .reg_re_o(reg_re), .reg_raddr_o(reg_raddr), .reg_rdata_i(reg_rdata), .reg_rok_i(reg_rok), .ur_o(tlp_ur)
  );

  rnic_bar_regs #(
      .DataW(DataW), .QpIdxW(QpIdxW), .NumCq(NumCq), .NumMr(NumMr), .DmaTags(DmaTags), .ClkPeriodPs(ClkPeriodPs),
      .MaxSqStride(MaxSqStride), .MaxRqStride(MaxRqStride)
  ) u_regs (
      .clk_i, .rst_i, .we_i(reg_we), .we64_i(reg_we64), .waddr_i(reg_waddr), .wdata_i(reg_wdata),
      .re_i(reg_re), .raddr_i(reg_raddr), .rdata_o(reg_rdata), .rok_o(reg_rok), .bad_write_o(bad_write),
      .port_up_i, .enable_o, .force_fatal_o, .ready_i, .fatal_i, .fatal_reason_i,
      .mps_o(mps), .mrrs_o(mrrs), .cpl_timeout_o(cpl_timeout), .cycles_o,
      .cmd_ring_base_o, .cmd_cpl_base_o, .cmd_log_size_o, .cmd_restart_o, .cmd_producer_we_o, .cmd_producer_o,
      .cmd_producer_i, .cmd_consumer_i, .cmd_status_i, .eq_db_valid_o, .eq_db_o,
      .cnt_idx_o(cnt_bar_idx), .cnt_data_i(cnt_bar), .tbl_we_o(tbl_we), .tbl_raddr_o(tbl_raddr), .tbl_rdata_i(tbl_rdata), .pba_i(pba)
  );

  // ---------------------------------------------------------------- doorbells
  logic db_ok, db_qpn, db_page, db_state, db_range, db_format;
  logic [17:0] db_at;
  assign db_at = reg_waddr - 18'(UAR_BASE);
  rnic_doorbell #(.QpIdxW(QpIdxW)) u_doorbell (
      .clk_i, .rst_i,
      .db_valid_i(reg_we && reg_waddr >= 18'(UAR_BASE)), .db_whole_i(reg_we64 && db_at < 18'(UAR_BYTES * NUM_UAR)),
      .db_uar_i({2'b00, db_at[17:12]}), .db_off_i(db_at[11:0]), .db_data_i(reg_wdata),
      .cq_db_valid_o, .cq_db_o, .db_hot_idx_o, .db_hot_i,
      .sq_kick_valid_o, .sq_kick_idx_o, .rq_kick_valid_o, .rq_kick_idx_o, .sq_prod_idx_i, .sq_prod_o, .rq_prod_idx_i, .rq_prod_o,
      .sq_cons_we_i, .sq_cons_i, .rq_cons_we_i, .rq_cons_i,
      .ok_o(db_ok), .drop_qpn_o(db_qpn), .drop_page_o(db_page), .drop_state_o(db_state), .drop_range_o(db_range), .drop_format_o(db_format)
  );

  // ---------------------------------------------------------------- DMA
  logic [7:0] wr_accepted, wr_sent;
  logic rd_valid, rd_ready, wq_valid, wq_ready, wq_last;
  rq_hdr_t rd_hdr, wq_hdr;
  logic [DataW-1:0] wq_data;
  logic [15:0] rd_bytes, wr_bytes;
  logic c_abort, c_poison, c_timeout, c_malformed, c_unexpected, c_msix;
  logic mx_valid;
  logic [NumWr:0] wr_ready;
  dma_wr_hdr_t mx_hdr;
  logic [DataW-1:0] mx_data;

  rnic_dma_rd #(.DataW(DataW), .Tags(DmaTags), .NumRd(NumRd)) u_rd (
      .clk_i, .rst_i, .go_i(bus_master_en_i), .mrrs_i(mrrs), .timeout_i(cpl_timeout),
      .rd_req_valid_i, .rd_req_ready_o, .rd_req_i, .rd_rsp_valid_o, .rd_rsp_ready_i, .rd_rsp_data_o, .rd_rsp_ctl_o,
      .wr_accepted_i(wr_accepted), .wr_sent_i(wr_sent),
      .rq_valid_o(rd_valid), .rq_ready_i(rd_ready), .rq_hdr_o(rd_hdr),
      .rc_valid_i, .rc_ready_o, .rc_hdr_i, .rc_data_i, .rc_last_i,
      .cnt_abort_o(c_abort), .cnt_poison_o(c_poison), .cnt_timeout_o(c_timeout), .cnt_malformed_o(c_malformed), .cnt_unexpected_o(c_unexpected),
      .bytes_o(rd_bytes)
  );
  rnic_msix #(.DataW(DataW), .NumSrc(NumVecSrc)) u_msix (
      .clk_i, .rst_i, .msix_valid_i, .msix_ready_o, .msix_vec_i,
      .tbl_we_i(tbl_we), .tbl_we64_i(reg_we64), .tbl_waddr_i(reg_waddr[11:0]), .tbl_wdata_i(reg_wdata), .tbl_raddr_i(tbl_raddr), .tbl_rdata_o(tbl_rdata),
      .pba_o(pba), .wr_valid_o(mx_valid), .wr_ready_i(wr_ready[NumWr]), .wr_hdr_o(mx_hdr), .wr_data_o(mx_data), .sent_o(c_msix)
  );
  rnic_dma_wr #(.DataW(DataW), .NumWr(NumWr + 1)) u_wr (
      .clk_i, .rst_i, .go_i(bus_master_en_i), .mps_i(mps),
      .wr_valid_i({mx_valid, wr_valid_i}), .wr_ready_o(wr_ready), .wr_hdr_i({mx_hdr, wr_hdr_i}), .wr_data_i({mx_data, wr_data_i}), .wr_last_i({1'b1, wr_last_i}),
      .accepted_o(wr_accepted), .sent_o(wr_sent),
      .rq_valid_o(wq_valid), .rq_ready_i(wq_ready), .rq_hdr_o(wq_hdr), .rq_data_o(wq_data), .rq_last_o(wq_last), .bytes_o(wr_bytes)
  );
  assign wr_ready_o = wr_ready[NumWr-1:0];

  // One stream of requests: a write keeps the way to its last beat, otherwise both take turns.
  typedef struct packed {
    rq_hdr_t          hdr;
    logic [DataW-1:0] data;
    logic             last;
  } rq_t;
  rq_t rq_in, rq_out;
  logic rq_in_valid, rq_in_ready, in_wr_q, turn_rd_q, sel_rd;
  assign sel_rd      = !in_wr_q && rd_valid && (turn_rd_q || !wq_valid);
  assign rq_in_valid = sel_rd ? rd_valid : wq_valid;
  assign rq_in       = sel_rd ? '{hdr: rd_hdr, data: '0, last: 1'b1} : '{hdr: wq_hdr, data: wq_data, last: wq_last};
  assign rd_ready    = sel_rd && rq_in_ready;
  assign wq_ready    = !sel_rd && rq_in_ready;
  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      in_wr_q   <= 1'b0;
      turn_rd_q <= 1'b0;
    end else if (rq_in_valid && rq_in_ready) begin
      in_wr_q   <= !sel_rd && !wq_last;
      turn_rd_q <= !sel_rd;
    end
  end
  rnic_skid #(.Width($bits(rq_t))) u_rq (
      .clk_i, .rst_i, .in_valid_i(rq_in_valid), .in_ready_o(rq_in_ready), .in_data_i(rq_in),
      .out_valid_o(rq_valid_o), .out_ready_i(rq_ready_i), .out_data_o(rq_out)
  );
  assign rq_hdr_o  = rq_out.hdr;
  assign rq_data_o = rq_out.data;
  assign rq_last_o = rq_out.last;

  // ---------------------------------------------------------------- counters
  cnt_t cnt;
  always_comb begin
    cnt = cnt_i;
    cnt[COUNTER_ID_DB_ACCEPTED]        |= db_ok;
    cnt[COUNTER_ID_DB_DROP_QPN]        |= db_qpn;
    cnt[COUNTER_ID_DB_DROP_PAGE]       |= db_page;
    cnt[COUNTER_ID_DB_DROP_STATE]      |= db_state;
    cnt[COUNTER_ID_DB_DROP_RANGE]      |= db_range;
    cnt[COUNTER_ID_DB_DROP_FORMAT]     |= db_format;
    cnt[COUNTER_ID_MSIX_SENT]          |= c_msix;
    cnt[COUNTER_ID_DMA_RD_ABORT]       |= c_abort;
    cnt[COUNTER_ID_DMA_RD_POISON]      |= c_poison;
    cnt[COUNTER_ID_DMA_RD_TIMEOUT]     |= c_timeout;
    cnt[COUNTER_ID_DMA_RD_MALFORMED]   |= c_malformed;
    cnt[COUNTER_ID_DMA_CPL_UNEXPECTED] |= c_unexpected;
    cnt[COUNTER_ID_MMIO_UR]            |= tlp_ur || bad_write;
  end
  rnic_counters u_counters (
      .clk_i, .rst_i, .cnt_i(cnt), .rx_bytes_i, .tx_bytes_i, .pcie_rd_bytes_i(rd_bytes), .pcie_wr_bytes_i(wr_bytes),
      .a_idx_i(cnt_bar_idx), .a_data_o(cnt_bar), .b_idx_i(cnt_rd_idx_i), .b_data_o(cnt_rd_o)
  );
endmodule
