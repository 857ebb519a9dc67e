// SPDX-License-Identifier: Apache-2.0
// The core at 64 bits behind the host link: a serial line instead of PCIe, with memory on the board as target and source of RDMA beside
// it. A board top adds clock, MAC and pins to it.
// Contract: the parts tell theirs. DaqEvery > 0 is the example of a source on the board: a counter fills the lower half of the memory
// over and over, a number every DaqEvery cycles.
module rnic_top_serial
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned QpIdxW = 8,
    parameter int unsigned NumCq = 256,
    parameter int unsigned NumMr = 1024,
    parameter int unsigned NumSrq = 64,
    parameter int unsigned DmaTags = 64,
    parameter int unsigned PoolDepth = 1024,
    parameter int unsigned MaxRd = MAX_RD_ATOMIC,
    parameter int unsigned WqeLines = 8,                // a small board's caches
    parameter int unsigned RqLines = 16,
    parameter int unsigned RxBufBytes = 16384,
    parameter bit Ipv6 = 1'b1,
    parameter int unsigned Div = 108,                 // clock cycles a bit of the serial line
    parameter int unsigned RetryCycles = 2_500_000,
    parameter int unsigned ClkPeriodPs = 8000,
    parameter int unsigned LocalMemLog = 14,          // log2 of the bytes of the memory on the board
    parameter int unsigned DaqEvery = 0
) (
    input  logic        clk_i,
    input  logic        rst_i,
    input  logic        rx_i,
    output logic        tx_o,
    output logic        up_o,
    output logic        bad_frame_o,
    input  logic        port_up_i,
    input  mac_regs_t   mac_regs_i,
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
  // Payload of regions on the board goes to the memory there, everything else through the link.
  logic [LocalMemLog-1:0] awaddr, araddr;
  logic [7:0] awlen, arlen, wstrb;
  logic awvalid, awready, wvalid, wready, wlast, bvalid, bready, arvalid, arready, rvalid, rready, rlast, put_valid, put_ready;
  logic [63:0] wdata, rdata, put_data;
  logic [1:0] bresp, rresp;
  logic [LocalMemLog-4:0] put_beat;
  rq_hdr_t core_rq_hdr;
  rc_hdr_t core_rc_hdr;
  logic [63:0] core_rq_data, core_rc_data;
  logic core_rq_valid, core_rq_ready, core_rq_last, core_rc_valid, core_rc_ready, core_rc_last;
  // verilator lint_off UNUSEDSIGNAL
  // (block RAM answers always, and always well; its bursts end by WLAST)
  logic unused_bad_write, unused_dead;
  logic [7:0] unused_awlen;
  // verilator lint_on UNUSEDSIGNAL
  assign unused_awlen = awlen;
  rnic_local_mem #(.DataW(32'd64), .LogSize(LocalMemLog)) u_local (
      .clk_i, .rst_i(core_rst),
      .rq_valid_i(core_rq_valid), .rq_ready_o(core_rq_ready), .rq_hdr_i(core_rq_hdr), .rq_data_i(core_rq_data), .rq_last_i(core_rq_last),
      .rc_valid_o(core_rc_valid), .rc_ready_i(core_rc_ready), .rc_hdr_o(core_rc_hdr), .rc_data_o(core_rc_data), .rc_last_o(core_rc_last),
      .host_rq_valid_o(rq_valid), .host_rq_ready_i(rq_ready), .host_rq_hdr_o(rq_hdr), .host_rq_data_o(rq_data), .host_rq_last_o(rq_last),
      .host_rc_valid_i(rc_valid), .host_rc_ready_o(rc_ready), .host_rc_hdr_i(rc_hdr_t'(rc_hdr)), .host_rc_data_i(rc_data), .host_rc_last_i(rc_last),
      .m_awvalid_o(awvalid), .m_awready_i(awready), .m_awaddr_o(awaddr), .m_awlen_o(awlen),
      .m_wvalid_o(wvalid), .m_wready_i(wready), .m_wdata_o(wdata), .m_wstrb_o(wstrb), .m_wlast_o(wlast),
      .m_bvalid_i(bvalid), .m_bready_o(bready), .m_bresp_i(bresp),
      .m_arvalid_o(arvalid), .m_arready_i(arready), .m_araddr_o(araddr), .m_arlen_o(arlen),
      .m_rvalid_i(rvalid), .m_rready_o(rready), .m_rdata_i(rdata), .m_rresp_i(rresp), .m_rlast_i(rlast),
      .bad_write_o(unused_bad_write), .dead_o(unused_dead)
  );
  rnic_axi_ram #(.DataW(32'd64), .LogSize(LocalMemLog)) u_ram (
      .clk_i, .rst_i(core_rst),
      .s_awvalid_i(awvalid), .s_awready_o(awready), .s_awaddr_i(awaddr), .s_wvalid_i(wvalid), .s_wready_o(wready), .s_wdata_i(wdata),
      .s_wstrb_i(wstrb), .s_wlast_i(wlast), .s_bvalid_o(bvalid), .s_bready_i(bready), .s_bresp_o(bresp),
      .s_arvalid_i(arvalid), .s_arready_o(arready), .s_araddr_i(araddr), .s_arlen_i(arlen),
      .s_rvalid_o(rvalid), .s_rready_i(rready), .s_rdata_o(rdata), .s_rresp_o(rresp), .s_rlast_o(rlast),
      .put_valid_i(put_valid), .put_ready_o(put_ready), .put_beat_i(put_beat), .put_data_i(put_data)
  );
  if (DaqEvery > 0) begin : g_daq
    // verilator lint_off UNUSEDSIGNAL
    logic [63:0] unused_count;
    // verilator lint_on UNUSEDSIGNAL
    logic [LocalMemLog-5:0] half_beat;
    assign put_beat = {1'b0, half_beat};
    rnic_daq_counter #(.BeatW(LocalMemLog - 4), .Every(DaqEvery)) u_daq (
        .clk_i, .rst_i(core_rst), .run_i(1'b1), .put_valid_o(put_valid), .put_ready_i(put_ready), .put_beat_o(half_beat),
        .put_data_o(put_data), .count_o(unused_count)
    );
  end else begin : g_no_daq
    // verilator lint_off UNUSEDSIGNAL
    logic unused_ready;
    // verilator lint_on UNUSEDSIGNAL
    assign unused_ready = put_ready;
    assign put_valid    = 1'b0;
    assign put_beat     = '0;
    assign put_data     = '0;
  end
  rnic_core #(
      .DataW(32'd64), .QpIdxW(QpIdxW), .NumCq(NumCq), .NumMr(NumMr), .NumSrq(NumSrq), .DmaTags(DmaTags), .ClkPeriodPs(ClkPeriodPs),
      .PoolDepth(PoolDepth), .MaxRd(MaxRd), .WqeLines(WqeLines), .RqLines(RqLines), .RxBufBytes(RxBufBytes), .Ipv6(Ipv6), .LocalMemLog(LocalMemLog)
  ) u_core (
      .clk_i, .rst_i(core_rst), .bus_master_en_i(bus_master_en), .port_up_i, .mac_regs_i,
      .cq_valid_i(cq_valid), .cq_ready_o(cq_ready), .cq_hdr_i(cq_hdr_t'(cq_hdr)), .cq_data_i(cq_data), .cq_last_i(cq_last),
      .cc_valid_o(cc_valid), .cc_ready_i(cc_ready), .cc_hdr_o(cc_hdr), .cc_data_o(cc_data), .cc_last_o(cc_last),
      .rq_valid_o(core_rq_valid), .rq_ready_i(core_rq_ready), .rq_hdr_o(core_rq_hdr), .rq_data_o(core_rq_data), .rq_last_o(core_rq_last),
      .rc_valid_i(core_rc_valid), .rc_ready_o(core_rc_ready), .rc_hdr_i(core_rc_hdr), .rc_data_i(core_rc_data), .rc_last_i(core_rc_last),
      .mac_rx_valid_i, .mac_rx_ready_o, .mac_rx_data_i, .mac_rx_keep_i, .mac_rx_last_i, .mac_rx_err_i,
      .mac_tx_valid_o, .mac_tx_ready_i, .mac_tx_data_o, .mac_tx_keep_o, .mac_tx_last_o
  );
endmodule
