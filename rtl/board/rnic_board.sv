// SPDX-License-Identifier: Apache-2.0
// What all boards have in common: reset, RGMII, PHY, MAC, and behind it the RNIC with its host link, or (Loopback) a mirror for frames.
// Contract: clk_sys_i and clk_gtx_i (125 MHz) are good while locked_i is high; rst_n_i is a button. All pins of the PHY belong here. LEDs are high when they shall
// shine: link; activity (a frame either way, stretched); error (a frame that was bad or found no room, stretched); heartbeat, once a second; RNIC: the
// host's session is up, Loopback: PHY answers. MDIO leaves as value, output enable and input for the board's pad.
module rnic_board
  import rnic_mac_pkg::*;
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter bit Loopback = 1'b0,
    parameter int unsigned SysHz = BOARD_VCO_HZ / BOARD_SYS_DIV,   // rnic_ecp5_pll
    parameter int unsigned Baud = 1_000_000,
    parameter int unsigned QpIdxW = 8,
    parameter bit Ipv6 = 1'b0,
    parameter logic [47:0] LoopMac = 48'h01_00_52_4e_52_02,   // 02:52:4e:52:00:01, first byte in bits 7:0
    parameter int unsigned TxClkDelay = 0,
    parameter int unsigned RxDataDelay = 0,
    parameter int unsigned PhyNumInit = 0,
    parameter logic [((PhyNumInit > 0) ? PhyNumInit : 1)-1:0][36:0] PhyInit = '0,
    parameter int unsigned PhyResetCycles = SysHz / 50,       // 20 ms
    parameter int unsigned PhyPollCycles = SysHz / 100,
    parameter int unsigned BlinkCycles = SysHz / 20
) (
    input  logic       clk_sys_i,
    input  logic       clk_gtx_i,
    input  logic       locked_i,
    input  logic       rst_n_i,
    input  logic       uart_rx_i,
    output logic       uart_tx_o,
    output logic       rgmii_tx_clk_o,
    output logic       rgmii_tx_ctl_o,
    output logic [3:0] rgmii_txd_o,
    input  logic       rgmii_rx_clk_i,
    input  logic       rgmii_rx_ctl_i,
    input  logic [3:0] rgmii_rxd_i,
    output logic       phy_rst_n_o,
    output logic       mdc_o,
    output logic       mdio_o,
    output logic       mdio_oe_o,
    input  logic       mdio_i,
    output logic       led_link_o,
    output logic       led_activity_o,
    output logic       led_error_o,
    output logic       led_heartbeat_o,
    output logic       led_up_o
);
  localparam int unsigned Div = (SysHz + Baud / 2) / Baud;   // the nearest

  // ---------------------------------------------------------------- reset of each clock
  logic arst, rst, gtx_rst, rx_rst;
  assign arst = !(locked_i && rst_n_i);
  rnic_reset_sync u_rst (.clk_i(clk_sys_i), .arst_i(arst), .rst_o(rst));
  rnic_reset_sync u_gtx_rst (.clk_i(clk_gtx_i), .arst_i(arst), .rst_o(gtx_rst));
  rnic_reset_sync u_rx_rst (.clk_i(rgmii_rx_clk_i), .arst_i(arst), .rst_o(rx_rst));

  // ---------------------------------------------------------------- PHY
  phy_state_e phy_state;
  logic link;
  logic [4:0] phy_addr;
  rnic_phy_ctl #(
      .ResetCycles(PhyResetCycles), .PollCycles(PhyPollCycles), .MdcHalf(SysHz / 4_000_000), .NumInit(PhyNumInit), .Init(PhyInit)
  ) u_phy (
      .clk_i(clk_sys_i), .rst_i(rst), .state_o(phy_state), .link_o(link), .phy_addr_o(phy_addr), .phy_rst_n_o, .mdc_o, .mdio_o, .mdio_oe_o, .mdio_i
  );

  // ---------------------------------------------------------------- MAC
  logic tx_en, rx_dv, rx_er;
  logic [7:0] txd, rxd;
  rnic_rgmii_tx #(.ClkDelay(TxClkDelay)) u_rgmii_tx (
      .clk_i(clk_gtx_i), .rst_i(gtx_rst), .tx_en_i(tx_en), .tx_er_i(1'b0), .txd_i(txd), .rgmii_tx_clk_o, .rgmii_tx_ctl_o, .rgmii_txd_o
  );
  rnic_rgmii_rx #(.DataDelay(RxDataDelay)) u_rgmii_rx (
      .clk_i(rgmii_rx_clk_i), .rst_i(rx_rst), .rgmii_rx_ctl_i, .rgmii_rxd_i, .rx_dv_o(rx_dv), .rx_er_o(rx_er), .rxd_o(rxd)
  );
  logic tx_valid, tx_ready, tx_last, rx_valid, rx_ready, rx_last, rx_err;
  logic [63:0] tx_data, rx_data;
  logic [7:0] tx_keep, rx_keep;
  mac_rx_cnt_t rx_cnt;
  mac_tx_cnt_t tx_cnt;
  logic [15:0] tx_long;
  rnic_mac u_mac (
      .arst_i(arst), .clk_i(clk_sys_i), .rst_i(rst), .link_i(link),
      .mac_tx_valid_i(tx_valid), .mac_tx_ready_o(tx_ready), .mac_tx_data_i(tx_data), .mac_tx_keep_i(tx_keep), .mac_tx_last_i(tx_last),
      .mac_rx_valid_o(rx_valid), .mac_rx_ready_i(rx_ready), .mac_rx_data_o(rx_data), .mac_rx_keep_o(rx_keep), .mac_rx_last_o(rx_last), .mac_rx_err_o(rx_err),
      .rx_cnt_o(rx_cnt), .tx_cnt_o(tx_cnt), .tx_long_o(tx_long),
      .gtx_clk_i(clk_gtx_i), .gmii_tx_en_o(tx_en), .gmii_txd_o(txd),
      .gmii_rx_clk_i(rgmii_rx_clk_i), .gmii_rx_dv_i(rx_dv), .gmii_rx_er_i(rx_er), .gmii_rxd_i(rxd)
  );

  // ---------------------------------------------------------------- behind the MAC
  if (Loopback) begin : g_loopback
    logic [15:0] looped, dropped;
    rnic_loopback u_loop (
        .clk_i(clk_sys_i), .rst_i(rst), .mac_i(LoopMac),
        .in_valid_i(rx_valid), .in_ready_o(rx_ready), .in_data_i(rx_data), .in_keep_i(rx_keep), .in_last_i(rx_last), .in_err_i(rx_err),
        .out_valid_o(tx_valid), .out_ready_i(tx_ready), .out_data_o(tx_data), .out_keep_o(tx_keep), .out_last_o(tx_last),
        .looped_o(looped), .dropped_o(dropped)
    );
    // One line a second: state of the PHY and its address, then counters. docs/src/board.md names the columns.
    rnic_report #(.NumWord(15), .Div(Div), .Period(SysHz)) u_report (
        .clk_i(clk_sys_i), .rst_i(rst), .tx_o(uart_tx_o),
        .words_i({5'd0, phy_state, 3'd0, phy_addr, rx_cnt.good, rx_cnt.fcs, rx_cnt.runt, rx_cnt.oversize, rx_cnt.er, rx_cnt.junk, rx_cnt.drop,
                  tx_cnt.sent, tx_cnt.underrun, looped, dropped, tx_long})
    );
    assign led_up_o = phy_state != PHY_STATE_RESET && phy_state != PHY_STATE_NONE;
    /* verilator lint_off UNUSEDSIGNAL */  // the mirror listens to nobody; what was thrown away for want of a link is not told
    logic unused;
    assign unused = &{1'b0, uart_rx_i, tx_cnt.no_link};
    /* verilator lint_on UNUSEDSIGNAL */
  end else begin : g_rnic
    /* verilator lint_off UNUSEDSIGNAL */  // of the host link
    logic bad_frame;
    logic unused;
    assign unused = &{1'b0, bad_frame};
    /* verilator lint_on UNUSEDSIGNAL */
    mac_regs_t mac_regs;
    phy_status_t phy_status;
    function automatic int unsigned place(logic [BAR0_ADDR_W-1:0] register);
      return (32'(register) - 32'(REG_MAC_PHY_STATUS)) / 4;
    endfunction
    always_comb begin
      phy_status         = '0;
      phy_status.present = 1'b1;
      phy_status.address = phy_addr;
      phy_status.state   = phy_state;
      mac_regs                              = '0;
      mac_regs[place(REG_MAC_PHY_STATUS)]   = phy_status;
      mac_regs[place(REG_MAC_RX_GOOD)]      = rx_cnt.good;
      mac_regs[place(REG_MAC_RX_FCS)]       = 32'(rx_cnt.fcs);
      mac_regs[place(REG_MAC_RX_RUNT)]      = 32'(rx_cnt.runt);
      mac_regs[place(REG_MAC_RX_OVERSIZE)]  = 32'(rx_cnt.oversize);
      mac_regs[place(REG_MAC_RX_ER)]        = 32'(rx_cnt.er);
      mac_regs[place(REG_MAC_RX_JUNK)]      = 32'(rx_cnt.junk);
      mac_regs[place(REG_MAC_RX_DROP)]      = 32'(rx_cnt.drop);
      mac_regs[place(REG_MAC_TX_SENT)]      = tx_cnt.sent;
      mac_regs[place(REG_MAC_TX_UNDERRUN)]  = 32'(tx_cnt.underrun);
      mac_regs[place(REG_MAC_TX_NO_LINK)]   = 32'(tx_cnt.no_link);
      mac_regs[place(REG_MAC_TX_LONG)]      = 32'(tx_long);
    end
    // The size that constraints/blocks.toml measures: what a small FPGA shall take.
    rnic_top_serial #(
        .QpIdxW(QpIdxW), .NumCq(64), .NumMr(256), .NumSrq(0), .DmaTags(16), .PoolDepth(256), .MaxRd(4), .RxBufBytes(8192), .Ipv6(Ipv6), .Div(Div),
        .RetryCycles(SysHz / 50), .ClkPeriodPs(1_000_000_000 / (SysHz / 1000))
    ) u_rnic (
        .clk_i(clk_sys_i), .rst_i(rst), .rx_i(uart_rx_i), .tx_o(uart_tx_o), .up_o(led_up_o), .bad_frame_o(bad_frame), .port_up_i(link),
        .mac_regs_i(mac_regs),
        .mac_rx_valid_i(rx_valid), .mac_rx_ready_o(rx_ready), .mac_rx_data_i(rx_data), .mac_rx_keep_i(rx_keep), .mac_rx_last_i(rx_last), .mac_rx_err_i(rx_err),
        .mac_tx_valid_o(tx_valid), .mac_tx_ready_i(tx_ready), .mac_tx_data_o(tx_data), .mac_tx_keep_o(tx_keep), .mac_tx_last_o(tx_last)
    );
  end

  // ---------------------------------------------------------------- LEDs
  localparam int unsigned BeatW = $clog2(SysHz);
  localparam int unsigned BlinkW = $clog2(BlinkCycles + 1);
  logic [BeatW-1:0] beat_q;
  logic [BlinkW-1:0] activity_q, error_q;
  logic [7:0] frames_q, frames_seen_q;      // sums of counters: any change is an event
  logic [15:0] bad_q, bad_seen_q;
  assign led_link_o      = link;
  assign led_heartbeat_o = beat_q < BeatW'(SysHz / 2);
  assign led_activity_o  = activity_q != '0;
  assign led_error_o     = error_q != '0;
  always_ff @(posedge clk_sys_i) begin
    beat_q <= (beat_q == BeatW'(SysHz - 1)) ? '0 : beat_q + BeatW'(1);
    frames_q      <= tx_cnt.sent[7:0] + rx_cnt.good[7:0];
    frames_seen_q <= frames_q;
    bad_q         <= rx_cnt.fcs + rx_cnt.runt + rx_cnt.oversize + rx_cnt.er + rx_cnt.drop + tx_cnt.underrun + tx_long;
    bad_seen_q    <= bad_q;
    if (frames_q != frames_seen_q) activity_q <= BlinkW'(BlinkCycles);
    else if (activity_q != '0) activity_q <= activity_q - BlinkW'(1);
    if (bad_q != bad_seen_q) error_q <= BlinkW'(BlinkCycles);
    else if (error_q != '0) error_q <= error_q - BlinkW'(1);
    if (rst) begin
      beat_q     <= '0;
      activity_q <= '0;
      error_q    <= '0;
      frames_q   <= '0;
      bad_q      <= '0;
    end
  end
endmodule
