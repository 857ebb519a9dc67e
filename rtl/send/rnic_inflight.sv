// SPDX-License-Identifier: Apache-2.0
// Shared pool of in-flight records: linked lists whose heads and tails their owner keeps, and the list of free ones.
// Contract: append_i takes record new_idx_o (only while avail_o), links it behind append_tail_i when append_link_i.
// free_i returns a whole list (head to tail, count records). rd_en_i: record and successor when rd_here_o is high again, one cycle
// later (with Parts > 1: as many and two), held until the next read; reading has priority over the block's own reads. append_i and free_i
// never in the same cycle, and with Parts > 1 neither they nor a read in the Parts cycles after an append_i.
// With Parts > 1 a record is kept in so many parts, one below the other, and its link under them: a memory that is narrow and deep.
// free_cnt_o counts the free records. After reset all are free.
module rnic_inflight
  import rnic_send_pkg::*;
#(
    parameter int unsigned Depth = 1024,
    parameter int unsigned Parts = 1          // or 3
) (
    input  logic        clk_i,
    input  logic        rst_i,
    output logic        avail_o,
    output rec_idx_t    new_idx_o,
    input  logic        append_i,
    input  rec_t        append_rec_i,
    // The pool may be smaller than an index allows.
    // verilator lint_off UNUSEDSIGNAL
    input  logic        append_link_i,
    input  rec_idx_t    append_tail_i,
    input  logic        free_i,
    input  rec_idx_t    free_head_i,
    input  rec_idx_t    free_tail_i,
    input  logic [7:0]  free_count_i,
    input  logic        rd_en_i,
    input  rec_idx_t    rd_idx_i,
    // verilator lint_on UNUSEDSIGNAL
    output logic        rd_here_o,
    output rec_t        rd_rec_o,
    output rec_idx_t    rd_next_o,
    output logic [12:0] free_cnt_o
);
  localparam int unsigned AddrW = $clog2(Depth);
  if (Depth < 2 || Depth > 4096) begin : g_depth
    $fatal(1, "Depth must be 2 to 4096");
  end

  // Records that were never used are taken in turn (no list has to be built after reset), then those of the list.
  logic [AddrW:0] bump_q, list_cnt_q;
  logic [AddrW-1:0] list_head_q, list_next_q;
  logic next_valid_q;   // list_next_q is the successor of list_head_q
  logic next_req_q;     // its read was made in the last cycle
  logic from_list, next_read, idle;   // idle: no read of the owner's is under way

  assign from_list  = list_cnt_q != '0 && next_valid_q;
  assign avail_o    = from_list || bump_q != (AddrW + 1)'(Depth);
  assign new_idx_o  = from_list ? rec_idx_t'(list_head_q) : rec_idx_t'(bump_q[AddrW-1:0]);
  assign free_cnt_o = 13'(list_cnt_q) + (13'(Depth) - 13'(bump_q));
  assign next_read  = !rd_en_i && idle && !next_valid_q && !next_req_q && list_cnt_q != '0 && !free_i && !append_i;

  rec_idx_t link_rd, link_to;
  logic [AddrW-1:0] link_at;
  assign link_at = free_i ? free_tail_i[AddrW-1:0] : append_tail_i[AddrW-1:0];
  assign link_to = free_i ? rec_idx_t'(list_head_q) : new_idx_o;
  // The owner's answer must hold although the block reads for itself.
  rec_idx_t link_held_q;
  logic own_q;                  // the owner's link comes
  assign rd_next_o = own_q ? link_rd : link_held_q;
  if (Parts == 1) begin : g_wide
    rnic_ram #(.Width($bits(rec_t)), .Depth(Depth), .Bypass(1'b0)) u_rec (
        .clk_i, .we_i(append_i), .waddr_i(new_idx_o[AddrW-1:0]), .wdata_i(append_rec_i),
        .re_i(rd_en_i), .raddr_i(rd_idx_i[AddrW-1:0]), .rdata_o(rd_rec_o)
    );
    rnic_ram #(.Width($bits(rec_idx_t)), .Depth(Depth), .Bypass(1'b0)) u_link (
        .clk_i, .we_i((append_i && append_link_i) || free_i), .waddr_i(link_at), .wdata_i(link_to),
        .re_i(rd_en_i || next_read), .raddr_i(rd_en_i ? rd_idx_i[AddrW-1:0] : list_head_q), .rdata_o(link_rd)
    );
    assign idle      = 1'b1;
    assign rd_here_o = 1'b1;
    always_ff @(posedge clk_i) own_q <= !rst_i && rd_en_i;
  end else begin : g_parts
    localparam int unsigned PartW = ($bits(rec_t) + Parts - 1) / Parts;
    if (Parts != 3) begin : g_three
      $fatal(1, "Parts must be 1 or 3");
    end
    // An append writes the record's first part at once, then what is kept here, then the link.
    logic [1:0][PartW-1:0] rest_q;
    logic [AddrW-1:0] new_q, tail_q, rd_idx_q;
    logic link_q;
    logic [1:0] wr_q, rd_q, rd_part_q;     // part that is written, read; that comes
    logic reads_q, comes_q;
    // verilator lint_off UNUSEDSIGNAL
    logic [2:0][PartW-1:0] rec_q;          // (padding)
    // verilator lint_on UNUSEDSIGNAL
    logic [PartW-1:0] rdata;
    logic we;
    logic [AddrW+1:0] waddr, raddr;
    logic [PartW-1:0] wdata;
    always_comb begin
      we    = append_i || free_i || (wr_q inside {2'd1, 2'd2}) || (wr_q == 2'd3 && link_q);
      waddr = {new_q, wr_q};
      wdata = (wr_q == 2'd1) ? rest_q[0] : rest_q[1];
      if (append_i) begin
        waddr = {new_idx_o[AddrW-1:0], 2'd0};
        wdata = PartW'(append_rec_i);
      end else if (free_i) begin
        waddr = {link_at, 2'd3};
        wdata = PartW'(link_to);
      end else if (wr_q == 2'd3) begin
        waddr = {tail_q, 2'd3};
        wdata = PartW'(new_q);
      end
      raddr = {list_head_q, 2'd3};
      if (rd_en_i) raddr = {rd_idx_i[AddrW-1:0], 2'd0};
      else if (reads_q) raddr = {rd_idx_q, rd_q};
    end
    rnic_ram #(.Width(PartW), .Depth(4 * Depth), .Bypass(1'b0)) u_ram (
        .clk_i, .we_i(we), .waddr_i(waddr), .wdata_i(wdata), .re_i(rd_en_i || reads_q || next_read), .raddr_i(raddr), .rdata_o(rdata)
    );
    assign idle      = !reads_q;
    assign own_q     = comes_q && rd_part_q == 2'd3;
    assign link_rd   = rec_idx_t'(rdata);
    assign rd_rec_o  = $bits(rec_t)'(rec_q);
    assign rd_here_o = !reads_q && !(comes_q && !own_q);
    always_ff @(posedge clk_i) begin
      if (append_i) begin
        rest_q <= (2 * PartW)'(append_rec_i >> PartW);
        new_q  <= new_idx_o[AddrW-1:0];
        tail_q <= append_tail_i[AddrW-1:0];
        link_q <= append_link_i;
      end
      if (rd_en_i) rd_idx_q <= rd_idx_i[AddrW-1:0];
      for (int unsigned i = 0; i < 3; i++) if (comes_q && rd_part_q == 2'(i)) rec_q[i] <= rdata;
      rd_q      <= rd_en_i ? 2'd1 : rd_q + 2'd1;
      rd_part_q <= rd_en_i ? 2'd0 : rd_q;
      if (rst_i) begin
        wr_q    <= '0;
        reads_q <= 1'b0;
        comes_q <= 1'b0;
      end else begin
        wr_q    <= (append_i || wr_q != '0) ? wr_q + 2'd1 : '0;
        reads_q <= rd_en_i || (reads_q && rd_q != 2'd3);
        comes_q <= rd_en_i || reads_q;
      end
    end
    always_ff @(posedge clk_i) begin
      if (!rst_i) begin
        if (append_i || free_i) a_written : assert (wr_q == '0);
        if (rd_en_i) a_no_read_of_a_new_one : assert (!append_i && wr_q == '0);
        if (rd_en_i || reads_q || next_read) a_no_clash : assert (!(we && waddr == raddr));
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (own_q) link_held_q <= link_rd;
    if (rst_i) begin
      bump_q       <= '0;
      list_cnt_q   <= '0;
      list_head_q  <= '0;
      next_valid_q <= 1'b0;
      next_req_q   <= 1'b0;
    end else begin
      next_req_q <= next_read;
      if (next_req_q) begin
        list_next_q  <= link_rd[AddrW-1:0];
        next_valid_q <= 1'b1;
      end
      if (append_i) begin
        if (from_list) begin
          list_head_q  <= list_next_q;
          list_cnt_q   <= list_cnt_q - (AddrW + 1)'(1);
          next_valid_q <= 1'b0;
        end else begin
          bump_q <= bump_q + (AddrW + 1)'(1);
        end
      end
      if (free_i) begin
        list_head_q  <= free_head_i[AddrW-1:0];
        list_cnt_q   <= list_cnt_q + (AddrW + 1)'(free_count_i);
        next_valid_q <= 1'b0;
        next_req_q   <= 1'b0;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      if (append_i) a_available : assert (avail_o);
      a_one_writer : assert (!(append_i && free_i));
      if (free_i) a_accounts : assert (32'(free_cnt_o) + 32'(free_count_i) <= Depth && free_count_i != '0);
    end
  end
endmodule
