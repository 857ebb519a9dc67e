// SPDX-License-Identifier: Apache-2.0
// The MAC with its RGMII, as a board has them.
module rgmii_top
  import rnic_mac_pkg::*;
(
    input  logic        arst_i,
    input  logic        clk_i,
    input  logic        rst_i,
    input  logic        link_i,
    input  logic        mac_tx_valid_i,
    output logic        mac_tx_ready_o,
    input  logic [63:0] mac_tx_data_i,
    input  logic [7:0]  mac_tx_keep_i,
    input  logic        mac_tx_last_i,
    output logic        mac_rx_valid_o,
    input  logic        mac_rx_ready_i,
    output logic [63:0] mac_rx_data_o,
    output logic [7:0]  mac_rx_keep_o,
    output logic        mac_rx_last_o,
    output logic        mac_rx_err_o,
    output logic [127:0] rx_cnt_o,
    output logic [63:0] tx_cnt_o,
    output logic [15:0] tx_long_o,
    input  logic        gtx_clk_i,
    output logic        rgmii_tx_clk_o,
    output logic        rgmii_tx_ctl_o,
    output logic [3:0]  rgmii_txd_o,
    input  logic        rgmii_rx_clk_i,
    input  logic        rgmii_rx_ctl_i,
    input  logic [3:0]  rgmii_rxd_i
);
  logic gtx_rst, rx_rst, tx_en, rx_dv, rx_er;
  logic [7:0] txd, rxd;
  mac_rx_cnt_t rx_cnt;
  mac_tx_cnt_t tx_cnt;
  assign rx_cnt_o = rx_cnt;
  assign tx_cnt_o = tx_cnt;
  rnic_reset_sync u_gtx_rst (.clk_i(gtx_clk_i), .arst_i, .rst_o(gtx_rst));
  rnic_reset_sync u_rx_rst (.clk_i(rgmii_rx_clk_i), .arst_i, .rst_o(rx_rst));
  rnic_rgmii_tx #(.ClkDelay(80)) u_tx (
      .clk_i(gtx_clk_i), .rst_i(gtx_rst), .tx_en_i(tx_en), .tx_er_i(1'b0), .txd_i(txd), .rgmii_tx_clk_o, .rgmii_tx_ctl_o, .rgmii_txd_o
  );
  rnic_rgmii_rx u_rx (
      .clk_i(rgmii_rx_clk_i), .rst_i(rx_rst), .rgmii_rx_ctl_i, .rgmii_rxd_i, .rx_dv_o(rx_dv), .rx_er_o(rx_er), .rxd_o(rxd)
  );
  rnic_mac u_mac (
      .arst_i, .clk_i, .rst_i, .link_i, .mac_tx_valid_i, .mac_tx_ready_o, .mac_tx_data_i, .mac_tx_keep_i, .mac_tx_last_i,
      .mac_rx_valid_o, .mac_rx_ready_i, .mac_rx_data_o, .mac_rx_keep_o, .mac_rx_last_o, .mac_rx_err_o, .rx_cnt_o(rx_cnt), .tx_cnt_o(tx_cnt), .tx_long_o,
      .gtx_clk_i, .gmii_tx_en_o(tx_en), .gmii_txd_o(txd), .gmii_rx_clk_i(rgmii_rx_clk_i), .gmii_rx_dv_i(rx_dv), .gmii_rx_er_i(rx_er), .gmii_rxd_i(rxd)
  );
endmodule
