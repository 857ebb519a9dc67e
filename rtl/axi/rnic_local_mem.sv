// SPDX-License-Identifier: Apache-2.0
// The way to a memory on the board: an AXI4 manager port beside the host. What the core reads and writes inside the window at Base
// (LOCAL_MEM_BASE, 2^LogSize bytes) goes to that port instead of to the host: payload of a memory region that is registered there moves at
// the speed of the memory, however slow the host link is. It stands between rnic_core and whatever carries TLPs to the host.
// Contract: the parts tell theirs (order: rnic_local_route; bursts: rnic_axi_wr, rnic_axi_rd). AXI4: one ID (0), INCR bursts of whole
// beats, at most 256, inside 4 KiB; AxSIZE, AxBURST and the rest are constants of the port. Addresses are offsets in the window. A
// memory that takes or answers nothing for Patience cycles while something is asked of it is given up until reset (dead_o): then
// writes are thrown away and reads are answered with Completer Abort, so that the core goes on. bad_write_o pulses for a write that
// the memory answered with an error.
module rnic_local_mem
  import rnic_spec_pkg::*;
#(
    parameter int unsigned DataW = 64,
    parameter int unsigned LogSize = 14,
    parameter logic [63:0] Base = LOCAL_MEM_BASE,
    parameter int unsigned BufBeats = 512,
    parameter int unsigned Patience = 65536
) (
    input  logic               clk_i,
    input  logic               rst_i,
    // the core's requests, completions for it
    input  logic               rq_valid_i,
    output logic               rq_ready_o,
    input  rq_hdr_t            rq_hdr_i,
    input  logic [DataW-1:0]   rq_data_i,
    input  logic               rq_last_i,
    output logic               rc_valid_o,
    input  logic               rc_ready_i,
    output rc_hdr_t            rc_hdr_o,
    output logic [DataW-1:0]   rc_data_o,
    output logic               rc_last_o,
    // the host's side of both
    output logic               host_rq_valid_o,
    input  logic               host_rq_ready_i,
    output rq_hdr_t            host_rq_hdr_o,
    output logic [DataW-1:0]   host_rq_data_o,
    output logic               host_rq_last_o,
    input  logic               host_rc_valid_i,
    output logic               host_rc_ready_o,
    input  rc_hdr_t            host_rc_hdr_i,
    input  logic [DataW-1:0]   host_rc_data_i,
    input  logic               host_rc_last_i,
    // AXI4 manager
    output logic               m_awvalid_o,
    input  logic               m_awready_i,
    output logic [LogSize-1:0] m_awaddr_o,
    output logic [7:0]         m_awlen_o,
    output logic               m_wvalid_o,
    input  logic               m_wready_i,
    output logic [DataW-1:0]   m_wdata_o,
    output logic [DataW/8-1:0] m_wstrb_o,
    output logic               m_wlast_o,
    input  logic               m_bvalid_i,
    output logic               m_bready_o,
    input  logic [1:0]         m_bresp_i,
    output logic               m_arvalid_o,
    input  logic               m_arready_i,
    output logic [LogSize-1:0] m_araddr_o,
    output logic [7:0]         m_arlen_o,
    input  logic               m_rvalid_i,
    output logic               m_rready_o,
    input  logic [DataW-1:0]   m_rdata_i,
    input  logic [1:0]         m_rresp_i,
    input  logic               m_rlast_i,
    // status
    output logic               bad_write_o,
    output logic               dead_o
);
  localparam int unsigned WaitW = $clog2(Patience + 1);
  logic wr_valid, wr_ready, wr_idle, rd_valid, rd_ready, rd_idle, dead_q;
  logic loc_valid, loc_ready, loc_last;
  rc_hdr_t loc_hdr;
  logic [DataW-1:0] loc_data;

  rnic_local_route #(.DataW(DataW), .LogSize(LogSize), .Base(Base)) u_route (
      .clk_i, .rst_i,
      .rq_valid_i, .rq_ready_o, .rq_hdr_i, .rq_last_i,
      .rc_valid_o, .rc_ready_i, .rc_hdr_o, .rc_data_o, .rc_last_o,
      .host_rq_valid_o, .host_rq_ready_i, .host_rc_valid_i, .host_rc_ready_o, .host_rc_hdr_i, .host_rc_data_i, .host_rc_last_i,
      .wr_valid_o(wr_valid), .wr_ready_i(wr_ready), .wr_idle_i(wr_idle), .rd_valid_o(rd_valid), .rd_ready_i(rd_ready),
      .loc_rc_valid_i(loc_valid), .loc_rc_ready_o(loc_ready), .loc_rc_hdr_i(loc_hdr), .loc_rc_data_i(loc_data), .loc_rc_last_i(loc_last)
  );
  assign host_rq_hdr_o  = rq_hdr_i;
  assign host_rq_data_o = rq_data_i;
  assign host_rq_last_o = rq_last_i;

  rnic_axi_wr #(.DataW(DataW), .AddrW(LogSize)) u_wr (
      .clk_i, .rst_i, .dead_i(dead_q), .valid_i(wr_valid), .ready_o(wr_ready), .hdr_i(rq_hdr_i), .data_i(rq_data_i), .last_i(rq_last_i),
      .idle_o(wr_idle), .bad_o(bad_write_o),
      .awvalid_o(m_awvalid_o), .awready_i(m_awready_i), .awaddr_o(m_awaddr_o), .awlen_o(m_awlen_o),
      .wvalid_o(m_wvalid_o), .wready_i(m_wready_i), .wdata_o(m_wdata_o), .wstrb_o(m_wstrb_o), .wlast_o(m_wlast_o),
      .bvalid_i(m_bvalid_i), .bready_o(m_bready_o), .bresp_i(m_bresp_i)
  );
  rnic_axi_rd #(.DataW(DataW), .AddrW(LogSize), .BufBeats(BufBeats)) u_rd (
      .clk_i, .rst_i, .dead_i(dead_q), .valid_i(rd_valid), .ready_o(rd_ready), .hdr_i(rq_hdr_i), .idle_o(rd_idle),
      .arvalid_o(m_arvalid_o), .arready_i(m_arready_i), .araddr_o(m_araddr_o), .arlen_o(m_arlen_o),
      .rvalid_i(m_rvalid_i), .rready_o(m_rready_o), .rdata_i(m_rdata_i), .rresp_i(m_rresp_i), .rlast_i(m_rlast_i),
      .rc_valid_o(loc_valid), .rc_ready_i(loc_ready), .rc_hdr_o(loc_hdr), .rc_data_o(loc_data), .rc_last_o(loc_last)
  );

  // ---------------------------------------------------------------- patience
  logic [WaitW-1:0] wait_q;
  logic wanted, moves;
  assign wanted = m_awvalid_o || m_wvalid_o || m_arvalid_o || !wr_idle || !rd_idle;
  assign moves  = (m_awvalid_o && m_awready_i) || (m_wvalid_o && m_wready_i) || (m_arvalid_o && m_arready_i) || m_bvalid_i || (m_rvalid_i && m_rready_o);
  assign dead_o = dead_q;
  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      wait_q <= '0;
      dead_q <= 1'b0;
    end else if (moves || !wanted) begin
      wait_q <= '0;
    end else if (wait_q == WaitW'(Patience)) begin
`ifndef RNIC_CUT_LOCAL_DEAD
      dead_q <= 1'b1;
`endif
    end else begin
      wait_q <= wait_q + WaitW'(1);
    end
  end
endmodule
