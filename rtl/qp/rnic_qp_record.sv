// SPDX-License-Identifier: Apache-2.0
// The attribute record at hand, out of a store of the records of a batch.
// Contract: a single record (batch_i low) is at hand one cycle after its last beat, or where Parts is 1 one cycle after read_i; it stays.
// Of a batch a record is read in Parts parts, one a cycle (read_i with row and part, ascending): it is whole two cycles after its last part was
// asked for where Parts is more than 1, else one; what was there before stands in the cycle after the next record's first part is asked for.
// hold_i (with read_i low) holds it for that cycle.
module rnic_qp_record
  import rnic_spec_pkg::*;
#(
    parameter int unsigned DataW = 64,
    parameter int unsigned Parts = 1,        // at most RecLane
    localparam int unsigned RecLane = 512 / DataW,
    localparam int unsigned PartW = (Parts > 1) ? $clog2(Parts) : 1
) (
    input  logic clk_i,
    // as they arrive
    // verilator lint_off UNUSEDSIGNAL
    input  logic batch_i,
    // verilator lint_on UNUSEDSIGNAL
    input  logic [RecLane-1:0] we_i,
    input  logic [5:0] wrow_i,
    input  logic [DataW-1:0] wdata_i,
    // verilator lint_off UNUSEDSIGNAL
    input  logic hold_i,
    input  logic [PartW-1:0] part_i,
    // verilator lint_on UNUSEDSIGNAL
    input  logic read_i,
    input  logic [5:0] row_i,
    output qp_attr_t rec_o
);
  if (Parts == 1) begin : g_whole
    rnic_qp_ram_we #(
        .LaneW(DataW),
        .NumLane(RecLane),
        .Depth(MAX_RECORDS)
    ) u_store (
        .clk_i, .we_i, .waddr_i(wrow_i), .wdata_i({RecLane{wdata_i}}), .re_i(read_i), .raddr_i(row_i), .rdata_o(rec_o)
    );
  end else begin : g_parts
    localparam int unsigned NumLane = (RecLane + Parts - 1) / Parts;
    localparam int unsigned StoreW = NumLane * DataW;
    logic [StoreW-1:0] part;
    logic [NumLane-1:0] lane_we;
    logic [PartW-1:0] wpart;
    logic take_q;
    logic [PartW-1:0] part_q;
    logic [511:0] rec_q;
    always_comb begin
      lane_we = '0;
      wpart   = '0;
      for (int unsigned l = 0; l < RecLane; l++)
        if (we_i[l]) begin
          lane_we[l%NumLane] = 1'b1;
          wpart              = PartW'(l / NumLane);
        end
    end
    rnic_qp_ram_we #(
        .LaneW(DataW),
        .NumLane(NumLane),
        .Depth(MAX_RECORDS << PartW)
    ) u_store (
        .clk_i, .we_i(batch_i ? lane_we : '0), .waddr_i({wrow_i, wpart}), .wdata_i({NumLane{wdata_i}}),
        .re_i(read_i), .raddr_i({row_i, part_i}), .rdata_o(part)
    );
    // A single record is taken as it arrives: it never sees the store.
    always_ff @(posedge clk_i) begin
      take_q <= read_i || (take_q && hold_i);
      if (read_i) part_q <= part_i;
      for (int unsigned l = 0; l < RecLane; l++)
        if (batch_i ? take_q && !hold_i && part_q == PartW'(l / NumLane) : we_i[l])
          rec_q[DataW*l+:DataW] <= batch_i ? part[DataW*(l%NumLane)+:DataW] : wdata_i;
    end
    assign rec_o = rec_q;
    always_ff @(posedge clk_i) if (hold_i) a_hold_alone : assert (!read_i);
  end
endmodule
