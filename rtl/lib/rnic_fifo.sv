// SPDX-License-Identifier: Apache-2.0
// Synchronous FIFO, first word falls through, any depth of 1 or more.
// Contract: in_ready_o does not depend on in_valid_i; a word is visible one cycle after it is taken; order is kept;
// out_data_o is stable while out_valid_o waits for out_ready_i. level_o counts the words inside.
module rnic_fifo #(
    parameter int unsigned Width = 32,
    parameter int unsigned Depth = 4,
    localparam int unsigned PtrW = (Depth > 1) ? $clog2(Depth) : 1,
    localparam int unsigned LvlW = $clog2(Depth + 1)
) (
    input  logic             clk_i,
    input  logic             rst_i,
    input  logic             in_valid_i,
    output logic             in_ready_o,
    input  logic [Width-1:0] in_data_i,
    output logic             out_valid_o,
    input  logic             out_ready_i,
    output logic [Width-1:0] out_data_o,
    output logic [LvlW-1:0]  level_o
);
  logic [Width-1:0] mem[Depth];
  logic [PtrW-1:0] wr_q, rd_q;
  logic [LvlW-1:0] lvl_q;

  function automatic logic [PtrW-1:0] inc(logic [PtrW-1:0] p);
    return (p == PtrW'(Depth - 1)) ? '0 : p + PtrW'(1);
  endfunction

  assign in_ready_o  = lvl_q != LvlW'(Depth);
  assign out_valid_o = lvl_q != '0;
  assign out_data_o  = mem[rd_q];
  assign level_o     = lvl_q;

  always_ff @(posedge clk_i) begin
    if (in_valid_i && in_ready_o) mem[wr_q] <= in_data_i;
    if (rst_i) begin
      wr_q  <= '0;
      rd_q  <= '0;
      lvl_q <= '0;
    end else begin
      if (in_valid_i && in_ready_o) wr_q <= inc(wr_q);
      if (out_valid_o && out_ready_i) rd_q <= inc(rd_q);
      lvl_q <= lvl_q + LvlW'(in_valid_i && in_ready_o) - LvlW'(out_valid_o && out_ready_i);
    end
  end
endmodule
