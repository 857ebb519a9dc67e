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
endmodule
