// SPDX-License-Identifier: Apache-2.0
// Wire side: receive checks, parser, ICRC, store-and-forward buffers; transmit gather, header builder, ICRC.
// Contract: mac_rx_ready_o is always high; a frame is judged whole before anybody sees it. A transmit source hands over a
// job, then pieces that add up to its payload_len (none for 0); jobs of a source leave in order; a frame starts when its payload is on
// chip and has no gaps. tx_done pulses once per job, sent or failed.
module rnic_wire
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned DataW = 64
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
    // transmit sources: [0] requester, [1] responder
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
endmodule
