// SPDX-License-Identifier: Apache-2.0
// FIFO in block RAM between two clocks, whose writer decides later: words become visible when they are committed, or are taken back.
// Contract: write side (wr_clk_i): wr_ready_o does not depend on wr_valid_i; commit_i makes all words written so far visible, one written in the
// same cycle included; rollback_i takes back all that are not committed, one written in the same cycle included (never both). Committed
// words become visible one by one, one each cycle of wr_clk_i: a reader that takes fewer than one word per such cycle sees no gap within what was
// committed at once. Read side (rd_clk_i): rd_data_o is stable while rd_valid_o waits for rd_ready_i; a word a cycle. It holds at least Depth - 1 words (Depth
// is a power of two). Any two clocks, also none for a while. Both resets are given together, wr_rst_i ending before or after rd_rst_i; the side
// that is out of reset first finds it empty.
module rnic_async_fifo #(
    parameter int unsigned Width = 69,
    parameter int unsigned Depth = 1024
) (
    input  logic             wr_clk_i,
    input  logic             wr_rst_i,
    input  logic             wr_valid_i,
    output logic             wr_ready_o,
    input  logic [Width-1:0] wr_data_i,
    input  logic             commit_i,
    input  logic             rollback_i,
    input  logic             rd_clk_i,
    input  logic             rd_rst_i,
    output logic             rd_valid_o,
    input  logic             rd_ready_i,
    output logic [Width-1:0] rd_data_o
);
  localparam int unsigned AddrW = $clog2(Depth);
  if (Depth != (1 << AddrW) || Depth < 2) begin : g_depth
    $fatal(1, "Depth must be a power of two");
  end
  // One bit more than an address, so that full and empty differ.
  typedef logic [AddrW:0] ptr_t;

  function automatic ptr_t to_gray(ptr_t b);
    return b ^ (b >> 1);
  endfunction
  function automatic ptr_t from_gray(ptr_t g);
    ptr_t b;
    b = '0;
    for (int unsigned i = 0; i <= AddrW; i++) b ^= g >> i;
    return b;
  endfunction

  // ---------------------------------------------------------------- write side
  // Only pub_gray_q crosses: it follows the commit by one a cycle, so one bit of it changes at a time.
  ptr_t wr_q, wr_d, commit_q, pub_q, pub_d, pub_gray_q, rd_gray_seen, rd_seen_q;
  logic we, room_q;
  assign wr_ready_o = room_q;
  assign we         = wr_valid_i && wr_ready_o;
  assign wr_d       = wr_q + ptr_t'(we);
  assign pub_d      = pub_q + ptr_t'(pub_q != commit_q);

  logic [Width-1:0] mem[Depth];
  always_ff @(posedge wr_clk_i) if (we) mem[wr_q[AddrW-1:0]] <= wr_data_i;

  always_ff @(posedge wr_clk_i) begin
    if (wr_rst_i) begin
      wr_q       <= '0;
      commit_q   <= '0;
      pub_q      <= '0;
      pub_gray_q <= '0;
      rd_seen_q  <= '0;
      room_q     <= 1'b0;
    end else begin
      // From registers alone: as if a word were written in this cycle.
      rd_seen_q  <= from_gray(rd_gray_seen);
      room_q     <= (wr_q - rd_seen_q) < ptr_t'(Depth - 1);
      wr_q <= rollback_i ? commit_q : wr_d;
      if (commit_i) commit_q <= wr_d;
      pub_q      <= pub_d;
      pub_gray_q <= to_gray(pub_d);
    end
  end

  // ---------------------------------------------------------------- read side
  ptr_t rd_q, rd_d, rd_gray_q, pub_gray_seen;
  logic re;
  assign re   = (rd_gray_q != pub_gray_seen) && (!rd_valid_o || rd_ready_i);
  assign rd_d = rd_q + ptr_t'(re);
  always_ff @(posedge rd_clk_i) if (re) rd_data_o <= mem[rd_q[AddrW-1:0]];
  always_ff @(posedge rd_clk_i) begin
    if (rd_rst_i) begin
      rd_q       <= '0;
      rd_gray_q  <= '0;
      rd_valid_o <= 1'b0;
    end else begin
      rd_q       <= rd_d;
      rd_gray_q  <= to_gray(rd_d);
      rd_valid_o <= re || (rd_valid_o && !rd_ready_i);
    end
  end

  // ---------------------------------------------------------------- between them
  rnic_sync_bit #(.Width(AddrW + 1)) u_rd (.clk_i(wr_clk_i), .d_i(rd_gray_q), .q_o(rd_gray_seen));
  rnic_sync_bit #(.Width(AddrW + 1)) u_pub (.clk_i(rd_clk_i), .d_i(pub_gray_q), .q_o(pub_gray_seen));

  always_ff @(posedge wr_clk_i) begin
    if (!wr_rst_i) a_commit_or_rollback : assert (!(commit_i && rollback_i));
  end

`ifdef FORMAL_ASYNC_FIFO
`include "rnic_async_fifo.svh"
`endif
endmodule
