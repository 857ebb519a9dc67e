// SPDX-License-Identifier: Apache-2.0
// GMII to RGMII at 1000 Mbit/s on the ECP5: low nibble and TX_EN with the rising edge, high nibble and TX_EN xor TX_ER with the falling one.
// Contract: inputs are registers of clk_i. rgmii_tx_clk_o is clk_i, later than the data by ClkDelay steps of 25 ps. RGMII 2.0 wants data stable around
// the clock's edges: whoever receives has the clock 1.5 to 2 ns later. Where the PHY does that itself ClkDelay is 0, else 80 (2 ns).
module rnic_rgmii_tx #(
    parameter int unsigned ClkDelay = 0
) (
    input  logic       clk_i,
    input  logic       rst_i,
    input  logic       tx_en_i,
    input  logic       tx_er_i,
    input  logic [7:0] txd_i,
    output logic       rgmii_tx_clk_o,
    output logic       rgmii_tx_ctl_o,
    output logic [3:0] rgmii_txd_o
);
  // Clock and data leave through the same kind of register and delay cell, so that they differ by the delay's setting alone.
  logic [5:0] first, second, ddr, pin;
  assign first  = {1'b1, tx_en_i, txd_i[3:0]};
  assign second = {1'b0, tx_en_i ^ tx_er_i, txd_i[7:4]};
  for (genvar i = 0; i < 6; i++) begin : g_pin
    ODDRX1F u_ddr (.SCLK(clk_i), .RST(rst_i), .D0(first[i]), .D1(second[i]), .Q(ddr[i]));
    DELAYG #(.DEL_MODE("USER_DEFINED"), .DEL_VALUE((i == 5) ? ClkDelay : 0)) u_delay (.A(ddr[i]), .Z(pin[i]));
  end
  assign {rgmii_tx_clk_o, rgmii_tx_ctl_o, rgmii_txd_o} = pin;
endmodule
