// SPDX-License-Identifier: Apache-2.0
// The requester with the level of its record pool as a port.
module send_top
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned DataW = 64,
    parameter int unsigned QpIdxW = 10,
    parameter int unsigned ClkPeriodPs = 8000,
    parameter int unsigned MaxSqStride = 4,
    parameter int unsigned PoolDepth = 1024,
    parameter int unsigned InflightCap = 32,
    parameter int unsigned WqeLines = (DataW >= 256) ? 32 : 8
) (
    input  logic clk_i,
    input  logic rst_i,
    input  logic enable_i,
    input  port_cfg_t port_cfg_i,
    input  logic qp_evt_valid_i, input qp_evt_t qp_evt_i,
    output qp_idx_t hot_idx_o, input qp_hot_t hot_i,                output logic cold_req_valid_o, input logic cold_req_ready_i, output qp_idx_t cold_req_idx_o, input logic cold_rsp_valid_i, input qp_ctx_t cold_rsp_i,
    input  logic sq_kick_valid_i, input qp_idx_t sq_kick_idx_i,
    output qp_idx_t sq_prod_idx_o, input ring_pos_t sq_prod_i,       output logic sq_cons_we_o, output ring_pos_wr_t sq_cons_o,
    input  logic rx_desc_valid_i, output logic rx_desc_ready_o, input rx_desc_t rx_desc_i,
    input  logic rx_pay_valid_i, output logic rx_pay_ready_o, input logic [DataW-1:0] rx_pay_data_i, input logic rx_pay_last_i,
    output logic tx_job_valid_o, input logic tx_job_ready_i, output tx_job_t tx_job_o,
    output logic tx_piece_valid_o, input logic tx_piece_ready_i, output tx_piece_t tx_piece_o, output logic [DataW-1:0] tx_piece_data_o,
    input  logic tx_done_i, input logic tx_err_valid_i, input tx_err_t tx_err_i,
    output logic rd_req_valid_o, input logic rd_req_ready_i, output dma_rd_req_t rd_req_o,
    input  logic rd_rsp_valid_i, output logic rd_rsp_ready_o, input logic [DataW-1:0] rd_rsp_data_i, input dma_rd_ctl_t rd_rsp_ctl_i,
    output logic wr_valid_o, input logic wr_ready_i, output dma_wr_hdr_t wr_hdr_o, output logic [DataW-1:0] wr_data_o, output logic wr_last_o,
    output logic [1:0] mr_req_valid_o, input logic [1:0] mr_req_ready_i, output mr_req_t [1:0] mr_req_o, input logic [1:0] mr_rsp_valid_i, input mr_rsp_t mr_rsp_i,
    output logic mr_op_valid_o, output mr_op_t mr_op_o, input logic mr_op_done_i, input mr_err_e mr_op_err_i,
    output logic inv_mark_o, input logic inv_busy_i,
    output logic cqe_valid_o, input logic cqe_ready_i, output cqe_req_t cqe_o,
    output logic eqe_valid_o, input logic eqe_ready_i, output eqe_req_t eqe_o,
    output logic qp_err_valid_o, output qp_err_t qp_err_o,
    output logic sq_drained_valid_o, output qp_idx_t sq_drained_idx_o, output epoch_t sq_drained_epoch_o,
    input  logic drain_req_i, output logic drain_ack_o,
    input  logic diag_valid_i, input diag_select_t diag_i, output logic diag_done_o, output logic [63:0] diag_data_o,
    output cnt_t cnt_o,
    // free records of the pool
    output logic [12:0] free_cnt_o
);
  rnic_send #(
      .DataW(DataW), .QpIdxW(QpIdxW), .ClkPeriodPs(ClkPeriodPs), .MaxSqStride(MaxSqStride), .PoolDepth(PoolDepth),
      .InflightCap(InflightCap), .WqeLines(WqeLines)
  ) u_send (.*);
  assign free_cnt_o = u_send.u_inflight.free_cnt_o;
endmodule
