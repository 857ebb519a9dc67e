// SPDX-License-Identifier: Apache-2.0
// LambdaConcept ECPIX-5 (LFE5UM5G-85F or -45F, BG554): Ethernet, serial line of its USB, RGB LEDs. Pins: constraints/ecpix5.lpf.
// PHY: Microchip KSZ9031RNX. It delays the receive clock itself (1.2 ns) and not the transmit clock, so the FPGA delays that one by 2 ns.
module ecpix5
  import rnic_spec_pkg::*;
#(
    parameter bit Loopback = 1'b0,
    parameter int unsigned Baud = 1_000_000,             // more in simulation alone
    parameter int unsigned PhyResetCycles = BOARD_VCO_HZ / BOARD_SYS_DIV / 33,   // 30 ms; shorter in simulation alone, as this:
    parameter int unsigned PhyPollCycles = BOARD_VCO_HZ / BOARD_SYS_DIV / 66     // 15 ms
) (
    input  logic       clk100_i,
    input  logic       rst_n_i,
    input  logic       uart_rx_i,
    output logic       uart_tx_o,
    output logic       eth_tx_clk_o,
    output logic       eth_tx_ctl_o,
    output logic [3:0] eth_txd_o,
    input  logic       eth_rx_clk_i,
    input  logic       eth_rx_ctl_i,
    input  logic [3:0] eth_rxd_i,
    output logic       eth_rst_n_o,
    output logic       eth_mdc_o,
    inout  wire        eth_mdio_io,
    output logic [3:0] led_r_n_o,
    output logic [3:0] led_g_n_o,
    output logic [3:0] led_b_n_o
);
  (* keep *) logic clk_gtx, clk_sys;   // the constraints name them
  logic locked, mdio_in, mdio_out, mdio_oe;
  logic link, activity, error, heartbeat, up;
  rnic_ecp5_pll u_pll (.clk100_i, .clk_gtx_o(clk_gtx), .clk_sys_o(clk_sys), .locked_o(locked));
  TRELLIS_IO #(.DIR("BIDIR")) u_mdio (.B(eth_mdio_io), .I(mdio_out), .T(!mdio_oe), .O(mdio_in));
  rnic_board #(.Loopback(Loopback), .Baud(Baud), .PhyResetCycles(PhyResetCycles), .PhyPollCycles(PhyPollCycles), .TxClkDelay(80)) u_board (
      .clk_sys_i(clk_sys), .clk_gtx_i(clk_gtx), .locked_i(locked), .rst_n_i, .uart_rx_i, .uart_tx_o,
      .rgmii_tx_clk_o(eth_tx_clk_o), .rgmii_tx_ctl_o(eth_tx_ctl_o), .rgmii_txd_o(eth_txd_o),
      .rgmii_rx_clk_i(eth_rx_clk_i), .rgmii_rx_ctl_i(eth_rx_ctl_i), .rgmii_rxd_i(eth_rxd_i),
      .phy_rst_n_o(eth_rst_n_o), .mdc_o(eth_mdc_o), .mdio_o(mdio_out), .mdio_oe_o(mdio_oe), .mdio_i(mdio_in),
      .led_link_o(link), .led_activity_o(activity), .led_error_o(error), .led_heartbeat_o(heartbeat), .led_up_o(up)
  );
  // Shine when low. LED 0: heartbeat blue; LED 1: link green; LED 2: activity green; LED 3: error red, session green.
  assign led_r_n_o = ~{error, 3'b000};
  assign led_g_n_o = ~{up && !error, activity, link, 1'b0};
  assign led_b_n_o = ~{3'b000, heartbeat};
endmodule
