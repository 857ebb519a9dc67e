// SPDX-License-Identifier: Apache-2.0
// Command ring and executor, PD/MR/CQ/EQ objects with reference counts, port configuration, memory key lookup,
// completion and event writers.
// Contract: commands complete in ring order; every wait is bounded by the DMA completion time-out.
module rnic_ctrl
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned DataW = 64,
    parameter int unsigned QpIdxW = 10,
    parameter int unsigned NumCq = 256,
    parameter int unsigned NumMr = 1024,
    parameter int unsigned ClkPeriodPs = 8000,
    parameter int unsigned NumMrPort = 4,
    parameter int unsigned NumCqe = 2,
    parameter int unsigned NumEqe = 3
) (
    input  logic clk_i,
    input  logic rst_i,
    // registers
    input  logic enable_i, input logic force_fatal_i, input logic bus_master_en_i, input logic [63:0] cycles_i,
    output logic ready_o, output logic fatal_o, output fatal_reason_e fatal_reason_o,
    input  logic [63:0] cmd_ring_base_i, input logic [63:0] cmd_cpl_base_i, input logic [3:0] cmd_log_size_i, input logic cmd_restart_i,
    input  logic cmd_producer_we_i, input logic [15:0] cmd_producer_i, output logic [15:0] cmd_producer_o, output logic [15:0] cmd_consumer_o, output logic [2:0] cmd_status_o,
    input  logic eq_db_valid_i, input db_eq_t eq_db_i,
    input  logic cq_db_valid_i, input cq_db_t cq_db_i,
    // DMA: command fetch; completions and query results; CQEs; EQEs
    output logic rd_req_valid_o, input logic rd_req_ready_i, output dma_rd_req_t rd_req_o,
    input  logic rd_rsp_valid_i, output logic rd_rsp_ready_o, input logic [DataW-1:0] rd_rsp_data_i, input dma_rd_ctl_t rd_rsp_ctl_i,
    output logic [2:0] wr_valid_o, input logic [2:0] wr_ready_i, output dma_wr_hdr_t [2:0] wr_hdr_o, output logic [2:0][DataW-1:0] wr_data_o, output logic [2:0] wr_last_o,
    output logic [1:0] msix_valid_o, input logic [1:0] msix_ready_i, output logic [1:0][7:0] msix_vec_o, // 0 event queues, 1 command completions
    // QP commands
    output logic qp_cmd_valid_o, input logic qp_cmd_ready_i, output cmd_qp_t qp_cmd_o,
    input  logic qp_cpl_valid_i, output logic qp_cpl_ready_o, input qp_cpl_t qp_cpl_i,
    input  logic qp_ready_i,
    output logic [NUM_PD-1:0] pd_valid_o, output logic [NumCq-1:0] cq_valid_o, output port_cfg_t port_cfg_o,
    input  logic ref_valid_i, input qp_ref_t ref_i,
    output logic drain_req_o, input logic drain_ack_i,
    // memory keys: answer to each port in the order of its requests
    input  logic [NumMrPort-1:0] mr_req_valid_i, output logic [NumMrPort-1:0] mr_req_ready_o, input mr_req_t [NumMrPort-1:0] mr_req_i,
    output logic [NumMrPort-1:0] mr_rsp_valid_o, output mr_rsp_t mr_rsp_o,   // valid for one cycle: the asker takes it
    // completions and events
    input  logic [NumCqe-1:0] cqe_valid_i, output logic [NumCqe-1:0] cqe_ready_o, input cqe_req_t [NumCqe-1:0] cqe_i,
    input  logic [NumEqe-1:0] eqe_valid_i, output logic [NumEqe-1:0] eqe_ready_o, input eqe_req_t [NumEqe-1:0] eqe_i,
    output logic qp_err_valid_o, output qp_err_t qp_err_o,           // CQ overrun
    input  logic port_up_i,                                          // link state: PORT_ACTIVE and PORT_ERR events
    output logic [6:0] cnt_rd_idx_o, input logic [63:0] cnt_rd_i,
    output cnt_t cnt_o
);
endmodule
