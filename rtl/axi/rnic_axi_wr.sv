// SPDX-License-Identifier: Apache-2.0
// Posted writes (MWr) into the memory on the board as AXI4 write bursts.
// Contract: one TLP is one INCR burst of whole beats (its bytes by strobes, its double words moved to their lanes), ID 0;
// a TLP stays inside 4 KiB, so does its burst. At most MaxOpen bursts wait for their answer. idle_o: none is under way or waits. An
// answer other than OKAY pulses bad_o: a posted write cannot tell. With dead_i (the memory has not answered in its time) writes are
// taken and thrown away, what was begun on the bus is left standing.
// Source: AMBA AXI4 (IHI 0022), A3.4 (bursts), A3.4.3 (strobes); PCIe byte enables (base spec 2.2.5).
module rnic_axi_wr
  import rnic_spec_pkg::*;
#(
    parameter int unsigned DataW = 64,
    parameter int unsigned AddrW = 14,
    parameter int unsigned MaxOpen = 8
) (
    input  logic               clk_i,
    input  logic               rst_i,
    input  logic               dead_i,
    input  logic               valid_i,
    output logic               ready_o,
    // (the bits above the window and the reserved ones)
    // verilator lint_off UNUSEDSIGNAL
    input  rq_hdr_t            hdr_i,
    // verilator lint_on UNUSEDSIGNAL
    input  logic [DataW-1:0]   data_i,
    input  logic               last_i,
    output logic               idle_o,
    output logic               bad_o,
    output logic               awvalid_o,
    input  logic               awready_i,
    output logic [AddrW-1:0]   awaddr_o,
    output logic [7:0]         awlen_o,
    output logic               wvalid_o,
    input  logic               wready_i,
    output logic [DataW-1:0]   wdata_o,
    output logic [DataW/8-1:0] wstrb_o,
    output logic               wlast_o,
    input  logic               bvalid_i,
    output logic               bready_o,
    input  logic [1:0]         bresp_i
);
  localparam int unsigned Dws = DataW / 32;         // double words of a beat
  localparam int unsigned OffW = $clog2(Dws);
  localparam int unsigned OpenW = $clog2(MaxOpen + 1);

  logic [OffW-1:0] off;                             // lane of the first double word
  logic [10:0] dws_all;                             // double words, those before the first in its beat included
  logic [10:0] beats;
  assign off     = hdr_i.addr[2+:OffW];
  assign dws_all = hdr_i.dw_len + 11'(off);
  assign beats   = (dws_all + 11'(Dws - 1)) >> OffW;

  // A beat on the bus holds the end of the beat before and the beginning of this one. The last one may hold only an end: tail.
  logic [DataW-1:0] held_q, moved;
  logic [10:0] dw_q;                                // double word of the burst in lane 0 (those before the first counted)
  logic begun_q, aw_wait_q, w_done_q, tail_q, w_fire, burst_end, final_beat;
  logic [AddrW-1:0] addr_q;
  logic [7:0] len_q;
  logic [OpenW-1:0] open_q;
  logic may_begin, live;
  assign live      = !dead_i;
  assign may_begin = begun_q || open_q != OpenW'(MaxOpen);
  always_comb begin
    automatic logic [2*DataW-1:0] both = {data_i, held_q};
    moved = DataW'(both >> (32'(DataW) - 32 * 32'(off)));
    if (tail_q) moved = DataW'(held_q >> (32'(DataW) - 32 * 32'(off)));
  end
  assign final_beat = dw_q + 11'(Dws) >= dws_all;
  assign wdata_o    = moved;
  assign wlast_o    = final_beat;
  always_comb begin
    for (int unsigned d = 0; d < Dws; d++) begin
      automatic logic [10:0] dw = dw_q + 11'(d);
      automatic logic [3:0] be = 4'hf;
`ifndef RNIC_CUT_LOCAL_STROBE
      if (dw == 11'(off)) be = hdr_i.first_be;
      else if (dw == dws_all - 11'd1) be = hdr_i.last_be;
`endif
      wstrb_o[4*d+:4] = (dw < 11'(off) || dw >= dws_all) ? 4'h0 : be;
    end
  end
  // Address and data go out side by side, neither waits for the other to be taken. An address that waits is kept: the TLP may pause.
  assign awvalid_o = live && (aw_wait_q || (valid_i && may_begin && !begun_q));
  assign awaddr_o  = aw_wait_q ? addr_q : AddrW'({hdr_i.addr[AddrW-1:2+OffW], (2 + OffW)'(0)});
  assign awlen_o   = aw_wait_q ? len_q : 8'(beats - 11'd1);
  assign wvalid_o  = live && valid_i && may_begin && !w_done_q;
  assign w_fire    = wvalid_o && wready_i;
  assign burst_end = (w_done_q || (w_fire && final_beat)) && (awvalid_o ? awready_i : begun_q);
  // The last beat of the TLP is kept for the tail when there is one.
  assign ready_o   = dead_i || burst_end || (w_fire && !last_i);
  assign bready_o  = 1'b1;
  assign idle_o    = dead_i || (open_q == '0 && !begun_q);
  assign bad_o     = bvalid_i && live && bresp_i != 2'b00;

  always_ff @(posedge clk_i) begin
    if (w_fire) held_q <= data_i;
    addr_q <= awaddr_o;
    len_q  <= awlen_o;
    if (rst_i || dead_i) begin
      begun_q   <= 1'b0;
      aw_wait_q <= 1'b0;
      w_done_q  <= 1'b0;
      tail_q    <= 1'b0;
      dw_q      <= '0;
      open_q    <= '0;
    end else begin
      if (awvalid_o) begun_q <= 1'b1;
      aw_wait_q <= awvalid_o && !awready_i;
      if (w_fire) begin
        dw_q     <= dw_q + 11'(Dws);
        tail_q   <= !final_beat && last_i;
        w_done_q <= final_beat;
      end
      if (burst_end) begin
        begun_q  <= 1'b0;
        w_done_q <= 1'b0;
        dw_q     <= '0;
      end
      open_q <= open_q + OpenW'(burst_end) - OpenW'(bvalid_i);
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i && live && valid_i) a_burst : assert (beats >= 11'd1 && beats <= 11'd256);
    if (!rst_i && live && bvalid_i) a_answer_of_something : assert (open_q != '0);
  end
`ifdef FORMAL_AXI_WR
`include "rnic_axi_wr.svh"
`endif
endmodule
