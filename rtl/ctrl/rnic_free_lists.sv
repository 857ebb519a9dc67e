// SPDX-License-Identifier: Apache-2.0
// Free indices of several object tables, in one memory: of each table those never used first, in order, then those given back, oldest first, so
// that a number is reused as late as possible.
// Contract: valid_o offers a table's idx_o, take_i removes it; put_i gives put_idx_i back. One take or put at a time, four cycles apart at least:
// by then the table's next index is offered, or one that was given back to an empty table. Reset makes all free, and takes 3 * Lists cycles.
module rnic_free_lists #(
    parameter int unsigned Lists = 5,
    parameter int unsigned IdxW = 10,
    parameter logic [Lists-1:0][IdxW:0] First = '0,      // lowest index of each table
    parameter logic [Lists-1:0][IdxW:0] N = '1           // number behind the highest
) (
    input  logic clk_i,
    input  logic rst_i,
    output logic [Lists-1:0] valid_o,
    output logic [Lists-1:0][IdxW-1:0] idx_o,
    input  logic [Lists-1:0] take_i,
    input  logic [Lists-1:0] put_i,
    input  logic [IdxW-1:0] put_idx_i
);
  localparam int unsigned ListW = $clog2(Lists);
  logic [ListW-1:0] sel_q, asked;            // the table that is served
  logic init_q, put_q, read_q, more, waits;
  logic [Lists-1:0] valid_q;
  logic [Lists-1:0][IdxW-1:0] idx_q;
  logic [IdxW-1:0] put_idx_q, back;
  logic [IdxW:0] fresh_mem[1<<ListW], rd_mem[1<<ListW], wr_mem[1<<ListW];
  logic [IdxW:0] fresh, rd, wr;
  assign valid_o = valid_q;
  assign idx_o   = idx_q;
  assign fresh   = fresh_mem[sel_q];
  assign rd      = rd_mem[sel_q];
  assign wr      = wr_mem[sel_q];
  assign more    = fresh != N[sel_q];
  assign waits   = !valid_q[sel_q];
  always_comb begin
    asked = '0;
    for (int unsigned i = 0; i < Lists; i++) if (take_i[i] || put_i[i]) asked = ListW'(i);
  end
  rnic_ram #(.Width(IdxW), .Depth(1 << (ListW + IdxW)), .Bypass(1'b0)) u_back (
      .clk_i, .we_i(put_q), .waddr_i({sel_q, wr[IdxW-1:0]}), .wdata_i(put_idx_q), .re_i(1'b1), .raddr_i({sel_q, rd[IdxW-1:0]}), .rdata_o(back)
  );

  logic busy, use_fresh, use_back;
  assign busy      = (take_i | put_i) != '0;
  assign use_fresh = !init_q && !busy && !put_q && !read_q && waits && more;
  assign use_back  = !init_q && !busy && read_q;
  always_ff @(posedge clk_i) begin
    if (init_q || use_fresh) fresh_mem[sel_q] <= init_q ? First[sel_q] : fresh + (IdxW + 1)'(1);
    if (init_q || use_back) rd_mem[sel_q] <= init_q ? '0 : rd + (IdxW + 1)'(1);
    if (init_q || put_q) wr_mem[sel_q] <= init_q ? '0 : wr + (IdxW + 1)'(1);
    for (int unsigned i = 0; i < Lists; i++) if ((use_fresh || use_back) && sel_q == ListW'(i)) idx_q[i] <= use_back ? back : fresh[IdxW-1:0];
    if (use_fresh || use_back) valid_q[sel_q] <= 1'b1;
    put_q  <= 1'b0;
    read_q <= 1'b0;
    if (init_q || (!busy && !put_q && !read_q && !(waits && (more || rd != wr)))) begin
      sel_q <= (sel_q == ListW'(Lists - 1)) ? '0 : sel_q + ListW'(1);
      if (sel_q == ListW'(Lists - 1)) init_q <= 1'b0;
    end
    if (!init_q && !busy && !put_q && !read_q && waits && !more && rd != wr) read_q <= 1'b1;
    if (busy) begin
      sel_q     <= asked;
      put_q     <= put_i != '0;
      put_idx_q <= put_idx_i;
      valid_q   <= valid_q & ~take_i;
    end
    if (rst_i) begin
      sel_q   <= '0;
      init_q  <= 1'b1;
      put_q   <= 1'b0;
      read_q  <= 1'b0;
      valid_q <= '0;
    end
    if (!rst_i) begin
      if (busy) a_one_at_a_time : assert (((take_i | put_i) & ((take_i | put_i) - Lists'(1))) == '0 && !init_q && !put_q);
      a_take_what_is_there : assert ((take_i & ~valid_q) == '0);
      if (put_q) a_put_fits : assert ((wr - rd) != (IdxW + 1)'(1 << IdxW));
    end
  end
endmodule
