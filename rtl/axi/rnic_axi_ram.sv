// SPDX-License-Identifier: Apache-2.0
// Block RAM behind an AXI4 subordinate port, with a second way in for what fills it on the board (data acquisition).
// Contract: AXI4, INCR bursts of whole beats, one ID; bursts of writes one after the other, bursts of reads one after the
// other, both at the same time; a beat a cycle each. Every answer is OKAY. The second way in (put_*) writes whole beats; AXI writes come first, put_ready_o
// tells. A read in the cycle of a write to the same beat returns the old one. Contents start at zero and survive reset.
module rnic_axi_ram #(
    parameter int unsigned DataW = 64,
    parameter int unsigned LogSize = 14,
    localparam int unsigned Bytes = DataW / 8,
    localparam int unsigned BeatW = LogSize - $clog2(Bytes)
) (
    input  logic               clk_i,
    input  logic               rst_i,
    input  logic               s_awvalid_i,
    output logic               s_awready_o,
    // (bursts are of whole beats)
    // verilator lint_off UNUSEDSIGNAL
    input  logic [LogSize-1:0] s_awaddr_i,
    // verilator lint_on UNUSEDSIGNAL
    input  logic               s_wvalid_i,
    output logic               s_wready_o,
    input  logic [DataW-1:0]   s_wdata_i,
    input  logic [Bytes-1:0]   s_wstrb_i,
    input  logic               s_wlast_i,
    output logic               s_bvalid_o,
    input  logic               s_bready_i,
    output logic [1:0]         s_bresp_o,
    input  logic               s_arvalid_i,
    output logic               s_arready_o,
    // verilator lint_off UNUSEDSIGNAL
    input  logic [LogSize-1:0] s_araddr_i,
    // verilator lint_on UNUSEDSIGNAL
    input  logic [7:0]         s_arlen_i,
    output logic               s_rvalid_o,
    input  logic               s_rready_i,
    output logic [DataW-1:0]   s_rdata_o,
    output logic [1:0]         s_rresp_o,
    output logic               s_rlast_o,
    input  logic               put_valid_i,
    output logic               put_ready_o,
    input  logic [BeatW-1:0]   put_beat_i,
    input  logic [DataW-1:0]   put_data_i
);
  // ---------------------------------------------------------------- writes
  logic writing_q, b_q;
  logic [BeatW-1:0] waddr_q;
  logic w_fire;
  assign s_awready_o = !writing_q && !b_q;
  assign s_wready_o  = writing_q;
  assign w_fire      = s_wvalid_i && s_wready_o;
  assign s_bvalid_o  = b_q;
  assign s_bresp_o   = 2'b00;
  assign put_ready_o = !w_fire;
  always_ff @(posedge clk_i) begin
    if (s_awvalid_i && s_awready_o) waddr_q <= s_awaddr_i[LogSize-1-:BeatW];
    else if (w_fire) waddr_q <= waddr_q + BeatW'(1);
    if (rst_i) begin
      writing_q <= 1'b0;
      b_q       <= 1'b0;
    end else begin
      if (s_awvalid_i && s_awready_o) writing_q <= 1'b1;
      if (w_fire && s_wlast_i) writing_q <= 1'b0;
      if (w_fire && s_wlast_i) b_q <= 1'b1;
      else if (s_bready_i) b_q <= 1'b0;
    end
  end

  // ---------------------------------------------------------------- reads: the address runs one beat ahead of what goes out
  logic reading_q, out_q, out_last_q, step;
  logic [BeatW-1:0] raddr_q;
  logic [7:0] left_q;
  assign s_arready_o = !reading_q;
  assign step        = reading_q && (!out_q || s_rready_i);
  assign s_rvalid_o  = out_q;
  assign s_rlast_o   = out_last_q;
  assign s_rresp_o   = 2'b00;
  always_ff @(posedge clk_i) begin
    if (s_arvalid_i && s_arready_o) begin
      raddr_q <= s_araddr_i[LogSize-1-:BeatW];
      left_q  <= s_arlen_i;
    end else if (step) begin
      raddr_q <= raddr_q + BeatW'(1);
      left_q  <= left_q - 8'd1;
    end
    if (step) out_last_q <= left_q == '0;
    if (rst_i) begin
      reading_q <= 1'b0;
      out_q     <= 1'b0;
    end else begin
      if (s_arvalid_i && s_arready_o) reading_q <= 1'b1;
      else if (step && left_q == '0) reading_q <= 1'b0;
      out_q <= step || (out_q && !s_rready_i);
    end
  end

  // A RAM for each lane: that is how byte enables map on any FPGA.
  logic we;
  assign we = w_fire || put_valid_i;
  for (genvar b = 0; b < Bytes; b++) begin : g_lane
    rnic_ram #(.Width(8), .Depth(1 << BeatW), .Bypass(1'b0), .Old(1'b1)) u_lane (
        .clk_i, .we_i(we && (!w_fire || s_wstrb_i[b])), .waddr_i(w_fire ? waddr_q : put_beat_i),
        .wdata_i(w_fire ? s_wdata_i[8*b+:8] : put_data_i[8*b+:8]), .re_i(step), .raddr_i(raddr_q), .rdata_o(s_rdata_o[8*b+:8])
    );
  end
endmodule
