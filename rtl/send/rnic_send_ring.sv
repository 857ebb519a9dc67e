// SPDX-License-Identifier: Apache-2.0
// FIFO in block RAM whose writer decides later: words become visible when they are committed, or are taken back. A word is kept in
// parts of PartW bits, one below the other: a memory that is narrow and deep. A word whose bit 0 is set is a short one, of which
// only the low ShortW bits count.
// Contract: room_o: at least half of the memory, Depth / 2 parts, is free. A word may come when the parts of the one before are written
// (as many cycles as it has parts), and is never refused: the writer counts on room_o. commit_i makes all words so far visible, one
// that came in the same cycle included; rollback_i takes back all that are not committed, likewise (never both). No word comes
// while one that was committed is still being written. A word is visible two cycles after its last part, then one as often as its parts
// allow. out_data_o is stable while out_valid_o waits for out_ready_i; above a short word it is undefined.
module rnic_send_ring #(
    parameter int unsigned Width = 78,
    parameter int unsigned PartW = 36,
    parameter int unsigned ShortW = Width,
    parameter int unsigned Depth = 512,       // parts, a power of two
    localparam int unsigned Parts = (Width + PartW - 1) / PartW,
    localparam int unsigned ShortParts = (ShortW + PartW - 1) / PartW,
    localparam int unsigned AddrW = $clog2(Depth),
    localparam int unsigned CntW = $clog2(Parts + 1)
) (
    input  logic             clk_i,
    input  logic             rst_i,
    output logic             room_o,
    input  logic             in_valid_i,
    input  logic [Width-1:0] in_data_i,
    input  logic             commit_i,
    input  logic             rollback_i,
    output logic             out_valid_o,
    input  logic             out_ready_i,
    output logic [Width-1:0] out_data_o
);
  if (Depth != (1 << AddrW) || Depth < 2) begin : g_depth
    $fatal(1, "Depth must be a power of two");
  end
  typedef logic [AddrW:0] ptr_t;              // one bit more than an address, so that full and empty differ
  typedef logic [CntW-1:0] cnt_t;
  function automatic cnt_t parts_of(logic short);
    return (short && ShortW != Width) ? cnt_t'(ShortParts) : cnt_t'(Parts);
  endfunction

  // ---------------------------------------------------------------- parts in
  ptr_t wr_q, wr_d, vis_q, rd_q, used;
  logic we, commit, commit_q;
  cnt_t left_q, left;                         // parts of the word that are not written
  logic [PartW-1:0] wdata, rdata;
  assign used   = wr_q - rd_q;
  assign room_o = used <= ptr_t'(Depth / 2);
  assign we     = in_valid_i || left_q != '0;
  assign left   = in_valid_i ? parts_of(in_data_i[0]) - cnt_t'(1) : left_q - cnt_t'(left_q != '0);
  assign commit = (commit_i || commit_q) && left == '0;
  assign wr_d   = wr_q + ptr_t'(we);
  if (Parts > 1) begin : g_parts_in
    logic [(Parts-1)*PartW-1:0] rest_q;       // they
    always_ff @(posedge clk_i) rest_q <= in_valid_i ? ((Parts - 1) * PartW)'(in_data_i >> PartW) : rest_q >> PartW;
    assign wdata = (left_q != '0) ? rest_q[PartW-1:0] : in_data_i[PartW-1:0];
  end else begin : g_whole_in
    assign wdata = PartW'(in_data_i);
  end

  // ---------------------------------------------------------------- memory: only what is visible is read, and that is not written
  logic re, valid_q, pop;
  rnic_ram #(.Width(PartW), .Depth(Depth), .Bypass(1'b0)) u_ram (
      .clk_i, .we_i(we), .waddr_i(wr_q[AddrW-1:0]), .wdata_i(wdata), .re_i(re), .raddr_i(rd_q[AddrW-1:0]), .rdata_o(rdata)
  );
  assign re = rd_q != vis_q && (!valid_q || pop);

  // ---------------------------------------------------------------- parts out
  if (Parts > 1) begin : g_parts_out
    // verilator lint_off UNUSEDSIGNAL
    logic [Parts-1:0][PartW-1:0] word_q;      // (padding)
    // verilator lint_on UNUSEDSIGNAL
    logic full_q, last;
    cnt_t at_q;
    assign pop         = valid_q && (!full_q || out_ready_i);
    assign last        = at_q + cnt_t'(1) == parts_of((at_q == '0) ? rdata[0] : word_q[0][0]);
    assign out_valid_o = full_q;
    assign out_data_o  = Width'(word_q);
    always_ff @(posedge clk_i) begin
      for (int unsigned i = 0; i < Parts; i++) if (pop && at_q == cnt_t'(i)) word_q[i] <= rdata;
      if (rst_i) begin
        full_q <= 1'b0;
        at_q   <= '0;
      end else begin
        if (pop || out_ready_i) full_q <= pop && last;
        if (pop) at_q <= last ? '0 : at_q + cnt_t'(1);
      end
    end
  end else begin : g_whole_out
    assign pop         = out_ready_i;
    assign out_valid_o = valid_q;
    assign out_data_o  = Width'(rdata);
  end

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      wr_q     <= '0;
      vis_q    <= '0;
      rd_q     <= '0;
      left_q   <= '0;
      commit_q <= 1'b0;
      valid_q  <= 1'b0;
    end else begin
      wr_q     <= rollback_i ? vis_q : wr_d;
      left_q   <= rollback_i ? '0 : left;
      commit_q <= (commit_i || commit_q) && !commit;
      if (commit) vis_q <= wr_d;
      if (re) rd_q <= rd_q + ptr_t'(1);
      valid_q <= re || (valid_q && !pop);
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      if (in_valid_i) a_one_after_the_other : assert (left_q == '0 && !commit_q);
      if (we) a_room : assert (used != ptr_t'(Depth));
      if (re) a_no_clash : assert (!(we && wr_q[AddrW-1:0] == rd_q[AddrW-1:0]));
      a_commit_or_rollback : assert (!((commit_i || commit_q) && rollback_i));
    end
  end
endmodule
