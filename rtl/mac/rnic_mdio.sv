// SPDX-License-Identifier: Apache-2.0
// MDIO master, clause 22 (IEEE 802.3 22.2.4.5): one read or write of a PHY's register at a time.
// Contract: start_i while busy_o is low takes write_i, phy_i, reg_i, wdata_i; done_o pulses at its end, with ack_o (a read that
// the PHY answered: it pulled the turnaround low) and rdata_o, which stay until the next start. MDC has a period of 2 * Half cycles and
// rests low between frames. mdio_o changes with MDC's falling edge; mdio_i (a pin, synchronised here: 2 cycles) is sampled with the
// rising one. MDC has 2.5 MHz at most.
module rnic_mdio #(
    parameter int unsigned Half = 12
) (
    input  logic        clk_i,
    input  logic        rst_i,
    input  logic        start_i,
    input  logic        write_i,
    input  logic [4:0]  phy_i,
    input  logic [4:0]  reg_i,
    input  logic [15:0] wdata_i,
    output logic        busy_o,
    output logic        done_o,
    output logic        ack_o,
    output logic [15:0] rdata_o,
    output logic        mdc_o,
    output logic        mdio_o,
    output logic        mdio_oe_o,
    input  logic        mdio_i
);
  localparam int unsigned HalfW = $clog2(Half);
  localparam int unsigned Preamble = 32;
  logic mdio;
  rnic_sync_bit u_mdio (.clk_i, .d_i(mdio_i), .q_o(mdio));

  logic [HalfW-1:0] half_q;
  logic [5:0] bit_q;           // bit of the frame that is on the line
  logic [31:0] shift_q;        // ST, OP, PHYAD, REGAD, TA, data
  logic write_q, tail_q, tick;
  assign tick = half_q == HalfW'(Half - 1);

  always_ff @(posedge clk_i) begin
    done_o <= 1'b0;
    half_q <= tick ? '0 : half_q + HalfW'(1);
    if (!busy_o) begin
      half_q <= '0;
      bit_q  <= '0;
      if (start_i) begin
        busy_o    <= 1'b1;
        write_q   <= write_i;
        shift_q   <= {2'b01, write_i ? 2'b01 : 2'b10, phy_i, reg_i, 2'b10, wdata_i};
        mdio_o    <= 1'b1;
        mdio_oe_o <= 1'b1;
      end
    end else if (tick) begin
      mdc_o <= !mdc_o && !tail_q;
      if (tail_q) begin
        // The PHY may hold the last bit of a read this long.
        tail_q <= 1'b0;
        busy_o <= 1'b0;
        done_o <= 1'b1;
      end else if (!mdc_o) begin
        // Rising edge: what the PHY drives since the one before (it may take 300 ns, 22.3.4).
        if (bit_q == 6'(Preamble + 15)) ack_o <= !mdio && !write_q;
        if (bit_q >= 6'(Preamble + 16)) rdata_o <= {rdata_o[14:0], mdio};
      end else begin
        // falling edge: the next bit
        bit_q <= bit_q + 6'd1;
        if (bit_q >= 6'(Preamble - 1)) {mdio_o, shift_q} <= {shift_q, 1'b1};
        // A read gives the line away for turnaround and data.
        if (bit_q == 6'(Preamble + 13) && !write_q) mdio_oe_o <= 1'b0;
        if (bit_q == 6'd63) begin
          tail_q    <= 1'b1;
          mdio_oe_o <= 1'b0;
        end
      end
    end
    if (rst_i) begin
      busy_o    <= 1'b0;
      tail_q    <= 1'b0;
      mdc_o     <= 1'b0;
      mdio_oe_o <= 1'b0;
    end
  end
endmodule
