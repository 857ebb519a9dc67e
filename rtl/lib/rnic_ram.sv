// SPDX-License-Identifier: Apache-2.0
// Simple dual-port RAM: one write port, one read port, read data one cycle after the address.
// Contract: a read in the cycle of a write to the same address returns
//   with Bypass      the new word (costs Width LUTs and flip-flops);
//   with Old alone   the old one (about as much, where the memory itself does not give it);
//   with neither     anything: the reader promises not to use it. This is a block RAM and nothing else. Simulation and proofs
//                    return the word inverted, so that a reader who breaks the promise is found.
// Contents start at zero (FPGA configuration) and survive reset.
module rnic_ram #(
    parameter int unsigned Width = 32,
    parameter int unsigned Depth = 64,
    parameter bit Bypass = 1'b1,
    parameter bit Old = 1'b0,
    localparam int unsigned AddrW = (Depth > 1) ? $clog2(Depth) : 1
) (
    input  logic             clk_i,
    input  logic             we_i,
    input  logic [AddrW-1:0] waddr_i,
    input  logic [Width-1:0] wdata_i,
    input  logic             re_i,
    input  logic [AddrW-1:0] raddr_i,
    output logic [Width-1:0] rdata_o    // holds while re_i is low
);
  localparam bit Any = !Bypass && !Old;
  (* no_rw_check = Any *)
  logic [Width-1:0] mem[Depth];
  logic [Width-1:0] rdata_q;

`ifndef FORMAL_ANY_TABLE
  initial for (int unsigned i = 0; i < Depth; i++) mem[i] = '0;
`endif

  always_ff @(posedge clk_i) if (we_i) mem[waddr_i] <= wdata_i;

  if (Bypass) begin : g_bypass
    // The array is not read where the new word is taken: synthesis then need not build what it returns there.
    logic             hit, hit_q;
    logic [Width-1:0] new_q;
    assign hit = we_i && (waddr_i == raddr_i);
    always_ff @(posedge clk_i) begin
      if (re_i && !hit) rdata_q <= mem[raddr_i];
      if (re_i) begin
        hit_q <= hit;
        new_q <= wdata_i;
      end
    end
    assign rdata_o = hit_q ? new_q : rdata_q;
  end else begin : g_plain
    always_ff @(posedge clk_i) begin
      if (re_i) rdata_q <= mem[raddr_i];
`ifdef VERILATOR
      if (Any && re_i && we_i && waddr_i == raddr_i) rdata_q <= ~mem[raddr_i];
`elsif FORMAL
      if (Any && re_i && we_i && waddr_i == raddr_i) rdata_q <= ~mem[raddr_i];
`endif
    end
    assign rdata_o = rdata_q;
  end
endmodule
