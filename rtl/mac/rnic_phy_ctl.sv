// SPDX-License-Identifier: Apache-2.0
// Brings a PHY up and watches its link: hardware reset, search for its address, the board's settings, then its state again and again.
// Contract: state_o as rnic_spec_pkg has it; link_o is high in PHY_STATE_UP alone (a register: it may cross clocks). A PHY is asked for link, autonegotiation and both ends' 1000BASE-T full
// duplex in registers that IEEE 802.3 22.2.4 defines for every PHY (1, 9, 10); a link of another speed or half duplex is PHY_STATE_OTHER_MODE. A
// PHY that does not answer any more is reset again. Settings: NumInit times read, change of the bits of mask, write.
module rnic_phy_ctl
  import rnic_spec_pkg::*;
#(
    parameter int unsigned ResetCycles = 1_000_000,   // reset low, and then high before the first access
    parameter int unsigned PollCycles = 500_000,
    parameter int unsigned MdcHalf = 12,
    parameter int unsigned NumInit = 0,
    // {register, mask, value}, the first in the lowest bits
    parameter logic [((NumInit > 0) ? NumInit : 1)-1:0][36:0] Init = '0
) (
    input  logic       clk_i,
    input  logic       rst_i,
    output phy_state_e state_o,
    output logic       link_o,
    output logic [4:0] phy_addr_o,
    output logic       phy_rst_n_o,
    output logic       mdc_o,
    output logic       mdio_o,
    output logic       mdio_oe_o,
    input  logic       mdio_i
);
  localparam int unsigned MaxCycles = (ResetCycles > PollCycles) ? ResetCycles : PollCycles;
  localparam int unsigned WaitW = $clog2(MaxCycles + 1);
  localparam int unsigned IdxW = (NumInit > 1) ? $clog2(NumInit) : 1;
  // IEEE 802.3 22.2.4
  localparam logic [4:0] RegBmsr = 5'd1, RegId1 = 5'd2, RegCtl1000 = 5'd9, RegStat1000 = 5'd10;

  typedef enum logic [3:0] {
    S_RESET,
    S_AFTER,       // the PHY starts
    S_FIND,
    S_SET_READ,
    S_SET_WRITE,
    S_PAUSE,
    S_BMSR,
    S_CTL1000,
    S_STAT1000
  } state_e;
  state_e state_q;
  logic [WaitW-1:0] wait_q;
  logic [IdxW-1:0] idx_q;
  logic link_q, own_q, asked_q, waited;
  assign waited = wait_q == '0;

  logic start, busy, done, ack, is_write;
  logic [4:0] reg_addr;
  logic [15:0] rdata, wdata;
  logic [36:0] init;
  assign init     = Init[(NumInit > 1) ? idx_q : '0];
  assign is_write = state_q == S_SET_WRITE;
  assign wdata    = (rdata & ~init[31:16]) | (init[15:0] & init[31:16]);
  always_comb begin
    unique case (state_q)
      S_SET_READ, S_SET_WRITE: reg_addr = init[36:32];
      S_BMSR:                  reg_addr = RegBmsr;
      S_CTL1000:               reg_addr = RegCtl1000;
      S_STAT1000:              reg_addr = RegStat1000;
      default:                 reg_addr = RegId1;
    endcase
  end
  assign start = !asked_q && !busy && !done && state_q != S_RESET && state_q != S_AFTER && state_q != S_PAUSE;
  rnic_mdio #(.Half(MdcHalf)) u_mdio (
      .clk_i, .rst_i, .start_i(start), .write_i(is_write), .phy_i(phy_addr_o), .reg_i(reg_addr), .wdata_i(wdata), .busy_o(busy), .done_o(done),
      .ack_o(ack), .rdata_o(rdata), .mdc_o, .mdio_o, .mdio_oe_o, .mdio_i
  );

  logic up, other;
`ifdef RNIC_CUT_PHY_SPEED
  assign up     = link_q;
`else
  // Advertised here, able there.
  assign up     = link_q && own_q && rdata[11];
`endif
  assign other  = link_q && !up;

  always_ff @(posedge clk_i) begin
    if (!waited) wait_q <= wait_q - WaitW'(1);
    if (start) asked_q <= 1'b1;
    if (done) asked_q <= 1'b0;
    unique case (state_q)
      S_RESET: begin
        phy_rst_n_o <= 1'b0;
        phy_addr_o  <= '0;
        idx_q       <= '0;
        if (waited) begin
          state_q <= S_AFTER;
          wait_q  <= WaitW'(ResetCycles);
        end
      end
      S_AFTER: begin
        phy_rst_n_o <= 1'b1;
        if (waited && phy_rst_n_o) state_q <= S_FIND;
      end
      S_FIND:
      if (done) begin
        if (ack && rdata != 16'h0000 && rdata != 16'hffff) begin
          state_q <= (NumInit > 0) ? S_SET_READ : S_BMSR;
        end else begin
          phy_addr_o <= phy_addr_o + 5'd1;
          if (phy_addr_o == 5'd31) state_o <= PHY_STATE_NONE;
        end
      end
      S_SET_READ: if (done) state_q <= S_SET_WRITE;
      S_SET_WRITE:
      if (done) begin
        idx_q   <= idx_q + IdxW'(1);
        state_q <= (32'(idx_q) + 1 == NumInit) ? S_PAUSE : S_SET_READ;
        wait_q  <= WaitW'(PollCycles);
      end
      S_PAUSE: if (waited) state_q <= S_BMSR;
      S_BMSR:
      if (done) begin
        link_q  <= rdata[2] && rdata[5];       // link, negotiated
        state_q <= S_CTL1000;
      end
      S_CTL1000:
      if (done) begin
        own_q   <= rdata[9];
        state_q <= S_STAT1000;
      end
      default:
      if (done) begin
        link_o  <= up;
        state_o <= up ? PHY_STATE_UP : other ? PHY_STATE_OTHER_MODE : PHY_STATE_NO_LINK;
        state_q <= S_PAUSE;
        wait_q  <= WaitW'(PollCycles);
      end
    endcase
    // It was there and is not any more.
    if (done && !ack && (state_q == S_BMSR || state_q == S_CTL1000 || state_q == S_STAT1000 || state_q == S_SET_READ)) begin
      state_q <= S_RESET;
      wait_q  <= WaitW'(ResetCycles);
      state_o <= PHY_STATE_RESET;
      link_o  <= 1'b0;
    end
    if (rst_i) begin
      state_q     <= S_RESET;
      wait_q      <= WaitW'(ResetCycles);
      asked_q     <= 1'b0;
      state_o     <= PHY_STATE_RESET;
      link_o      <= 1'b0;
      phy_rst_n_o <= 1'b0;
    end
  end
endmodule
