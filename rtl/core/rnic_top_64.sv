// SPDX-License-Identifier: Apache-2.0
// The core at 64 bits with flat ports of literal width, as simulators and netlists want them.
module rnic_top_64
  import rnic_spec_pkg::*;
#(
    parameter int unsigned QpIdxW = 10
) (
    input  logic         clk_i,
    input  logic         rst_i,
    input  logic         bus_master_en_i,
    input  logic         port_up_i,
    input  logic         cq_valid_i,
    output logic         cq_ready_o,
    input  logic [127:0] cq_hdr_i,
    input  logic [63:0] cq_data_i,
    input  logic         cq_last_i,
    output logic         cc_valid_o,
    input  logic         cc_ready_i,
    output logic [127:0] cc_hdr_o,
    output logic [63:0] cc_data_o,
    output logic         cc_last_o,
    output logic         rq_valid_o,
    input  logic         rq_ready_i,
    output logic [127:0] rq_hdr_o,
    output logic [63:0] rq_data_o,
    output logic         rq_last_o,
    input  logic         rc_valid_i,
    output logic         rc_ready_o,
    input  logic [127:0] rc_hdr_i,
    input  logic [63:0] rc_data_i,
    input  logic         rc_last_i,
    input  logic         mac_rx_valid_i,
    output logic         mac_rx_ready_o,
    input  logic [63:0] mac_rx_data_i,
    input  logic [7:0]  mac_rx_keep_i,
    input  logic         mac_rx_last_i,
    input  logic         mac_rx_err_i,
    output logic         mac_tx_valid_o,
    input  logic         mac_tx_ready_i,
    output logic [63:0] mac_tx_data_o,
    output logic [7:0]  mac_tx_keep_o,
    output logic         mac_tx_last_o
);
  rnic_core #(
      .DataW(32'd64),
      .QpIdxW(QpIdxW),
      .ClkPeriodPs(32'd8000)
  ) u_core (
      .cq_hdr_i(cq_hdr_t'(cq_hdr_i)),
      .rc_hdr_i(rc_hdr_t'(rc_hdr_i)),
      .mac_regs_i('0),   // the MAC is outside
      .*
  );
endmodule
