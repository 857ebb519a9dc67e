// SPDX-License-Identifier: Apache-2.0
// The QP engine's control half: allocator, table, gate, batches. The only writer of every control section.
// Contract: one command at a time, in order; its completion stands until taken. Hardware errors and "drained" marks
// are taken while no batch is under way and applied then; a read of a hot word in the cycle of a write sees the new word.
module rnic_qp
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned DataW = 64,
    parameter int unsigned QpIdxW = 10,
    parameter int unsigned NumCq = 256,
    parameter int unsigned NumHot = 4,
    parameter int unsigned NumCold = 4,
    parameter int unsigned NumErr = 3
) (
    input  logic clk_i,
    input  logic rst_i,
    output logic ready_o,                                            // tables are clear
    // commands (opcode one of the QP commands, reserved bits already checked) and their completions
    input  logic qp_cmd_valid_i, output logic qp_cmd_ready_o, input cmd_qp_t qp_cmd_i,
    output logic qp_cpl_valid_o, input logic qp_cpl_ready_i, output qp_cpl_t qp_cpl_o,
    // DMA: attribute records and QPN lists in, QPN lists and queries out
    output logic rd_req_valid_o, input logic rd_req_ready_i, output dma_rd_req_t rd_req_o,
    input  logic rd_rsp_valid_i, output logic rd_rsp_ready_o, input logic [DataW-1:0] rd_rsp_data_i, input dma_rd_ctl_t rd_rsp_ctl_i,
    output logic wr_valid_o, input logic wr_ready_i, output dma_wr_hdr_t wr_hdr_o, output logic [DataW-1:0] wr_data_o, output logic wr_last_o,
    // what exists
    input  logic [NUM_PD-1:0] pd_valid_i, input logic [NumCq-1:0] cq_valid_i, input port_cfg_t port_cfg_i,
    output logic ref_valid_o, output qp_ref_t ref_o,
    // barrier through the data path: request is held until ack
    output logic drain_req_o, input logic drain_ack_i,
    // readers of the hot word (answer one cycle later) and of the whole control section (one request a cycle, arbitrated)
    input  qp_idx_t [NumHot-1:0] hot_idx_i, output qp_hot_t [NumHot-1:0] hot_o,
    input  logic [NumCold-1:0] cold_req_valid_i, output logic [NumCold-1:0] cold_req_ready_o, input qp_idx_t [NumCold-1:0] cold_req_idx_i,
    output logic [NumCold-1:0] cold_rsp_valid_o, output qp_ctx_t cold_rsp_o, // valid for one cycle: the reader takes it
    // told to everybody
    output logic qp_evt_valid_o, output qp_evt_t qp_evt_o,
    // asked by the data path (never refused)
    input  logic [NumErr-1:0] qp_err_valid_i, input qp_err_t [NumErr-1:0] qp_err_i,
    input  logic sq_drained_valid_i, input qp_idx_t sq_drained_idx_i, input epoch_t sq_drained_epoch_i,
    // SQ_DRAINED
    output logic eqe_valid_o, input logic eqe_ready_i, output eqe_req_t eqe_o,
    output cnt_t cnt_o
);
endmodule
