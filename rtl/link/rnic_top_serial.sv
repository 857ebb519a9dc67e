// SPDX-License-Identifier: Apache-2.0
// The core at 64 bits behind the host link: a serial line instead of PCIe. A board top adds clock, MAC and pins to it.
module rnic_top_serial
  import rnic_spec_pkg::*;
#(
    parameter int unsigned QpIdxW = 8,
    parameter int unsigned NumCq = 256,
    parameter int unsigned NumMr = 1024,
    parameter int unsigned NumSrq = 64,
    parameter int unsigned DmaTags = 64,
    parameter int unsigned PoolDepth = 1024,
    parameter int unsigned MaxRd = 16,
    parameter bit Ipv6 = 1'b1,
    parameter int unsigned Div = 108,                 // clock cycles a bit of the serial line
    parameter int unsigned RetryCycles = 2_500_000,
    parameter int unsigned ClkPeriodPs = 8000
) (
    input  logic        clk_i,
    input  logic        rst_i,
    input  logic        rx_i,
    output logic        tx_o,
    output logic        up_o,
    output logic        bad_frame_o,
    input  logic        port_up_i,
    input  logic        mac_rx_valid_i,
    output logic        mac_rx_ready_o,
    input  logic [63:0] mac_rx_data_i,
    input  logic [7:0]  mac_rx_keep_i,
    input  logic        mac_rx_last_i,
    input  logic        mac_rx_err_i,
    output logic        mac_tx_valid_o,
    input  logic        mac_tx_ready_i,
    output logic [63:0] mac_tx_data_o,
    output logic [7:0]  mac_tx_keep_o,
    output logic        mac_tx_last_o
);
  logic core_rst, bus_master_en;
  logic cq_valid, cq_ready, cq_last, cc_valid, cc_ready, cc_last, rq_valid, rq_ready, rq_last, rc_valid, rc_ready, rc_last;
  logic [127:0] cq_hdr, rc_hdr;
  cc_hdr_t cc_hdr;
  rq_hdr_t rq_hdr;
  logic [63:0] cq_data, cc_data, rq_data, rc_data;
  rnic_host_link #(.Div(Div), .RetryCycles(RetryCycles), .ClkPeriodPs(ClkPeriodPs)) u_link (
      .clk_i, .rst_i, .rx_i, .tx_o, .up_o, .bad_frame_o, .core_rst_o(core_rst), .bus_master_en_o(bus_master_en),
      .cq_valid_o(cq_valid), .cq_ready_i(cq_ready), .cq_hdr_o(cq_hdr), .cq_data_o(cq_data), .cq_last_o(cq_last),
      .cc_valid_i(cc_valid), .cc_ready_o(cc_ready), .cc_hdr_i(cc_hdr), .cc_data_i(cc_data), .cc_last_i(cc_last),
      .rq_valid_i(rq_valid), .rq_ready_o(rq_ready), .rq_hdr_i(rq_hdr), .rq_data_i(rq_data), .rq_last_i(rq_last),
      .rc_valid_o(rc_valid), .rc_ready_i(rc_ready), .rc_hdr_o(rc_hdr), .rc_data_o(rc_data), .rc_last_o(rc_last)
  );
  rnic_core #(
      .DataW(32'd64), .QpIdxW(QpIdxW), .NumCq(NumCq), .NumMr(NumMr), .NumSrq(NumSrq), .DmaTags(DmaTags), .ClkPeriodPs(ClkPeriodPs),
      .PoolDepth(PoolDepth), .MaxRd(MaxRd), .Ipv6(Ipv6)
  ) u_core (
      .clk_i, .rst_i(core_rst), .bus_master_en_i(bus_master_en), .port_up_i,
      .cq_valid_i(cq_valid), .cq_ready_o(cq_ready), .cq_hdr_i(cq_hdr_t'(cq_hdr)), .cq_data_i(cq_data), .cq_last_i(cq_last),
      .cc_valid_o(cc_valid), .cc_ready_i(cc_ready), .cc_hdr_o(cc_hdr), .cc_data_o(cc_data), .cc_last_o(cc_last),
      .rq_valid_o(rq_valid), .rq_ready_i(rq_ready), .rq_hdr_o(rq_hdr), .rq_data_o(rq_data), .rq_last_o(rq_last),
      .rc_valid_i(rc_valid), .rc_ready_o(rc_ready), .rc_hdr_i(rc_hdr_t'(rc_hdr)), .rc_data_i(rc_data), .rc_last_i(rc_last),
      .mac_rx_valid_i, .mac_rx_ready_o, .mac_rx_data_i, .mac_rx_keep_i, .mac_rx_last_i, .mac_rx_err_i,
      .mac_tx_valid_o, .mac_tx_ready_i, .mac_tx_data_o, .mac_tx_keep_o, .mac_tx_last_o
  );
endmodule
