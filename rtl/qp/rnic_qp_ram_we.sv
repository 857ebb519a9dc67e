// SPDX-License-Identifier: Apache-2.0
// RAM with a write enable per lane: one write port, one read port, read data one cycle after the address.
// Contract: the user does not read an address in the cycle in which it is written (an assertion watches), or with Any does not use
// what that gives (simulation and proofs return it inverted); so neither copy registers nor a mix of old and new lanes exist. Contents start at zero
// and survive reset. LaneW 9 is the byte of a block RAM.
module rnic_qp_ram_we #(
    parameter int unsigned LaneW = 9,
    parameter int unsigned NumLane = 4,
    parameter int unsigned Depth = 64,
    parameter bit Any = 1'b0,
    localparam int unsigned Width = LaneW * NumLane,
    localparam int unsigned AddrW = (Depth > 1) ? $clog2(Depth) : 1
) (
    input  logic               clk_i,
    input  logic [NumLane-1:0] we_i,
    input  logic [AddrW-1:0]   waddr_i,
    input  logic [Width-1:0]   wdata_i,
    input  logic               re_i,
    input  logic [AddrW-1:0]   raddr_i,
    output logic [Width-1:0]   rdata_o    // holds while re_i is low
);
  (* no_rw_check = Any *)
  logic [Width-1:0] mem[Depth];
  logic clash;
  assign clash = we_i != '0 && waddr_i == raddr_i;

  initial for (int unsigned i = 0; i < Depth; i++) mem[i] = '0;

  always_ff @(posedge clk_i) begin
    for (int unsigned l = 0; l < NumLane; l++) if (we_i[l]) mem[waddr_i][LaneW*l+:LaneW] <= wdata_i[LaneW*l+:LaneW];
    if (re_i && (Any || !clash)) rdata_o <= mem[raddr_i];
`ifdef VERILATOR
    if (Any && re_i && clash) rdata_o <= ~mem[raddr_i];
`elsif FORMAL
    if (Any && re_i && clash) rdata_o <= ~mem[raddr_i];
`endif
  end

  always_ff @(posedge clk_i) if (re_i && !Any) a_no_clash : assert (!clash);
endmodule
