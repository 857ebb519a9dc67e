// SPDX-License-Identifier: Apache-2.0
// A board's image (loopback or RNIC) with flat ports: MDIO taken apart, as the bench's PHY model has no pad. The oscillator's input runs at the frequency of the PLL's
// VCO (see tops/ecp5/EHXPLLL.sv). Board: 0 versa5g, 1 ecpix5.
module board_top #(
    parameter int unsigned Board = 0,
    parameter bit Loopback = 1'b1,
    parameter int unsigned Baud = 1_000_000
) (
    input  logic       vco_i,
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
    input  logic       phy_drives_i,   // the PHY pulls MDIO to phy_value_i
    input  logic       phy_value_i,
    output logic       mdio_o,         // what stands on the wire, pulled up
    output logic       link_o,         // LEDs, high when they shine
    output logic       activity_o,
    output logic       error_o,
    output logic       up_o
);
  wire mdio;
  pullup (mdio);
  assign mdio   = phy_drives_i ? phy_value_i : 1'bz;
  assign mdio_o = mdio;
  if (Board == 0) begin : g_versa5g
    logic [7:0] led_n;
    versa5g #(.Loopback(Loopback), .Baud(Baud), .PhyResetCycles(100), .PhyPollCycles(100)) u_board (
        .clk100_i(vco_i), .rst_n_i, .uart_rx_i, .uart_tx_o, .eth_tx_clk_o, .eth_tx_ctl_o, .eth_txd_o,
        .eth_rx_clk_i, .eth_rx_ctl_i, .eth_rxd_i, .eth_rst_n_o, .eth_mdc_o, .eth_mdio_io(mdio), .led_n_o(led_n)
    );
    assign {up_o, error_o, activity_o, link_o} = ~led_n[4:1];
  end else begin : g_ecpix5
    logic [3:0] r_n, g_n, b_n;
    ecpix5 #(.Loopback(Loopback), .Baud(Baud), .PhyResetCycles(100), .PhyPollCycles(100)) u_board (
        .clk100_i(vco_i), .rst_n_i, .uart_rx_i, .uart_tx_o, .eth_tx_clk_o, .eth_tx_ctl_o, .eth_txd_o,
        .eth_rx_clk_i, .eth_rx_ctl_i, .eth_rxd_i, .eth_rst_n_o, .eth_mdc_o, .eth_mdio_io(mdio),
        .led_r_n_o(r_n), .led_g_n_o(g_n), .led_b_n_o(b_n)
    );
    assign {up_o, error_o, activity_o, link_o} = {!g_n[3] && r_n[3], !r_n[3], !g_n[2], !g_n[1]};
  end
endmodule
