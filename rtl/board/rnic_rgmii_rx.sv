// SPDX-License-Identifier: Apache-2.0
// RGMII to GMII at 1000 Mbit/s on the ECP5: both edges of the PHY's clock into one byte.
// Contract: outputs are registers of clk_i, the PHY's clock (RXC), which has passed the FPGA's clock tree. The PHY delays RXC against its data
// (internal delay mode), the data is delayed here by DataDelay steps of 25 ps. rx_er_o is RX_DV xor RX_ER undone.
module rnic_rgmii_rx #(
    parameter int unsigned DataDelay = 0
) (
    input  logic       clk_i,
    input  logic       rst_i,
    input  logic       rgmii_rx_ctl_i,
    input  logic [3:0] rgmii_rxd_i,
    output logic       rx_dv_o,
    output logic       rx_er_o,
    output logic [7:0] rxd_o
);
  logic [4:0] pin, delayed, rise, fall;
  assign pin = {rgmii_rx_ctl_i, rgmii_rxd_i};
  for (genvar i = 0; i < 5; i++) begin : g_pin
    DELAYG #(.DEL_MODE("USER_DEFINED"), .DEL_VALUE(DataDelay)) u_delay (.A(pin[i]), .Z(delayed[i]));
    // Q0: what the rising edge saw; Q1: the falling edge behind it. Both leave with the next rising edge.
    IDDRX1F u_ddr (.SCLK(clk_i), .RST(rst_i), .D(delayed[i]), .Q0(rise[i]), .Q1(fall[i]));
  end
  always_ff @(posedge clk_i) begin
    rx_dv_o <= rise[4];
    rx_er_o <= rise[4] ^ fall[4];
    rxd_o   <= {fall[3:0], rise[3:0]};
  end
endmodule
