// SPDX-License-Identifier: Apache-2.0
// Lattice ECP5-5G Versa (LFE5UM5G-45F, BG381): its first Ethernet port, serial line of its USB, LEDs. Pins: constraints/versa5g.lpf.
// PHY: Marvell 88E1512. It delays both clocks itself (RGMII-ID): one setting in one place, no delay in the FPGA whose spread over temperature and
// placement nobody measures. That is what its pins select on this board (LiteX runs it with no delay in the FPGA); it is written all the same: page 2,
// register 21, bits 5 (receive) and 4 (transmit), which hold after a software reset (register 0, bit 15).
module versa5g
  import rnic_spec_pkg::*;
#(
    parameter bit Loopback = 1'b0,
    parameter int unsigned Baud = 1_000_000,             // more in simulation alone
    parameter int unsigned PhyResetCycles = BOARD_VCO_HZ / BOARD_SYS_DIV / 33,   // 30 ms; shorter in simulation alone, as this:
    parameter int unsigned PhyPollCycles = BOARD_VCO_HZ / BOARD_SYS_DIV / 66     // 15 ms
) (
    input  logic       clk100_i,        // differential: the other pin of the pair belongs to it
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
    output logic [7:0] led_n_o
);
  // {register, mask, value}; the first stands last
  localparam logic [3:0][36:0] PhyInit = {
    {5'd0, 16'h8000, 16'h8000}, {5'd22, 16'h00ff, 16'h0000}, {5'd21, 16'h0030, 16'h0030}, {5'd22, 16'h00ff, 16'h0002}
  };
  (* keep *) logic clk_gtx, clk_sys;   // the constraints name them
  logic locked, mdio_in, mdio_out, mdio_oe;
  logic link, activity, error, heartbeat, up;
  rnic_ecp5_pll u_pll (.clk100_i, .clk_gtx_o(clk_gtx), .clk_sys_o(clk_sys), .locked_o(locked));
  TRELLIS_IO #(.DIR("BIDIR")) u_mdio (.B(eth_mdio_io), .I(mdio_out), .T(!mdio_oe), .O(mdio_in));
  rnic_board #(.Loopback(Loopback), .Baud(Baud), .PhyResetCycles(PhyResetCycles), .PhyPollCycles(PhyPollCycles), .PhyNumInit(4), .PhyInit(PhyInit)) u_board (
      .clk_sys_i(clk_sys), .clk_gtx_i(clk_gtx), .locked_i(locked), .rst_n_i, .uart_rx_i, .uart_tx_o,
      .rgmii_tx_clk_o(eth_tx_clk_o), .rgmii_tx_ctl_o(eth_tx_ctl_o), .rgmii_txd_o(eth_txd_o),
      .rgmii_rx_clk_i(eth_rx_clk_i), .rgmii_rx_ctl_i(eth_rx_ctl_i), .rgmii_rxd_i(eth_rxd_i),
      .phy_rst_n_o(eth_rst_n_o), .mdc_o(eth_mdc_o), .mdio_o(mdio_out), .mdio_oe_o(mdio_oe), .mdio_i(mdio_in),
      .led_link_o(link), .led_activity_o(activity), .led_error_o(error), .led_heartbeat_o(heartbeat), .led_up_o(up)
  );
  // Shine when low.
  assign led_n_o = ~{3'b000, up, error, activity, link, heartbeat};
endmodule
