// SPDX-License-Identifier: Apache-2.0
// Free indices First to N-1 of an object table: those never used first, in order, then those given back, oldest first, so that a
// number is reused as late as possible.
// Contract: valid_o offers idx_o, take_i removes it. An index given back is offered four cycles later at the earliest. Reset makes all free.
module rnic_free_list #(
    parameter int unsigned N = 256,
    parameter int unsigned First = 0,
    localparam int unsigned IdxW = $clog2(N)
) (
    input  logic            clk_i,
    input  logic            rst_i,
    output logic            valid_o,
    output logic [IdxW-1:0] idx_o,
    input  logic            take_i,
    input  logic            put_i,
    input  logic [IdxW-1:0] put_idx_i
);
  logic [IdxW:0] fresh_q;
  logic is_fresh, used_valid, put_ready;
  logic [IdxW-1:0] used_idx;
  assign is_fresh = fresh_q != (IdxW + 1)'(N);
  assign valid_o  = is_fresh || used_valid;
  assign idx_o    = is_fresh ? IdxW'(fresh_q) : used_idx;

  rnic_ram_fifo #(.Width(IdxW), .Depth(1 << IdxW)) u_used (
      .clk_i, .rst_i, .in_valid_i(put_i), .in_ready_o(put_ready), .in_data_i(put_idx_i), .commit_i(put_i), .rollback_i(1'b0),
      .out_valid_o(used_valid), .out_ready_i(take_i && !is_fresh), .out_data_o(used_idx)
  );

  always_ff @(posedge clk_i) begin
    if (rst_i) fresh_q <= (IdxW + 1)'(First);
    else if (take_i && is_fresh) fresh_q <= fresh_q + (IdxW + 1)'(1);
    if (!rst_i && take_i) a_take_what_is_there : assert (valid_o);
    if (!rst_i && put_i) a_put_fits : assert (put_ready);
  end
endmodule
