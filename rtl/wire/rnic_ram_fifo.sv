// SPDX-License-Identifier: Apache-2.0
// FIFO in block RAM whose writer decides later: words become visible when they are committed, or are taken back.
// Contract: in_ready_o does not depend on in_valid_i. commit_i makes all words written so far visible, one written in
// the same cycle included; rollback_i takes back all that are not committed, one written in the same cycle included
// (never both). A committed word is visible two cycles later; then a word a cycle without gaps. out_data_o is stable
// while out_valid_o waits for out_ready_i. It holds Depth words (a power of two) and one more at the output.
module rnic_ram_fifo #(
    parameter int unsigned Width = 64,
    parameter int unsigned Depth = 512
) (
    input  logic             clk_i,
    input  logic             rst_i,
    input  logic             in_valid_i,
    output logic             in_ready_o,
    input  logic [Width-1:0] in_data_i,
    input  logic             commit_i,
    input  logic             rollback_i,
    output logic             out_valid_o,
    input  logic             out_ready_i,
    output logic [Width-1:0] out_data_o
);
  localparam int unsigned AddrW = $clog2(Depth);
  if (Depth != (1 << AddrW) || Depth < 2) begin : g_depth
    $fatal(1, "Depth must be a power of two");
  end

  // One bit more than an address, so that full and empty differ.
  logic [AddrW:0] wr_q, wr_d, vis_q, rd_q;
  logic we, re, valid_q;

  assign in_ready_o  = (wr_q - rd_q) != (AddrW + 1)'(Depth);
  assign we          = in_valid_i && in_ready_o;
  assign wr_d        = wr_q + (AddrW + 1)'(we);
  assign re          = (rd_q != vis_q) && (!valid_q || out_ready_i);
  assign out_valid_o = valid_q;

  // Never read where it is written: only what is visible is read, and that is not overwritten. Saying so spares synthesis
  // the registers that would keep the old word.
  logic [Width-1:0] mem[Depth];
  logic clash;
  assign clash = we && wr_q[AddrW-1:0] == rd_q[AddrW-1:0];
  always_ff @(posedge clk_i) begin
    if (we) mem[wr_q[AddrW-1:0]] <= in_data_i;
    if (re && !clash) out_data_o <= mem[rd_q[AddrW-1:0]];
  end

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      wr_q    <= '0;
      vis_q   <= '0;
      rd_q    <= '0;
      valid_q <= 1'b0;
    end else begin
      wr_q <= rollback_i ? vis_q : wr_d;
      if (commit_i) vis_q <= wr_d;
      if (re) rd_q <= rd_q + (AddrW + 1)'(1);
      valid_q <= re || (valid_q && !out_ready_i);
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i && re) a_no_clash : assert (!clash);
    if (!rst_i) a_commit_or_rollback : assert (!(commit_i && rollback_i));
  end
endmodule
