// SPDX-License-Identifier: Apache-2.0
// Shared pool of in-flight records: linked lists whose heads and tails their owner keeps, and the list of free ones.
// Contract: append_i takes record new_idx_o (only while avail_o), links it behind append_tail_i when append_link_i.
// free_i returns a whole list (head to tail, count records). rd_en_i: record and successor one cycle later, held
// until the next read; reading has priority over the block's own reads. append_i and free_i never in the same cycle.
// free_cnt_o counts the free records. After reset all are free.
module rnic_inflight
  import rnic_send_pkg::*;
#(
    parameter int unsigned Depth = 1024
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
    output rec_t        rd_rec_o,
    output rec_idx_t    rd_next_o,
    output logic [12:0] free_cnt_o
);
  localparam int unsigned AddrW = $clog2(Depth);
  if (Depth < 2 || Depth > 4096) begin : g_depth
    $fatal(1, "Depth must be 2 to 4096");
  end

  // Records that were never used are taken in turn (no list has to be built after reset), then those of the list.
  logic [12:0] bump_q, list_cnt_q;
  rec_idx_t list_head_q, list_next_q;
  logic next_valid_q;   // list_next_q is the successor of list_head_q
  logic next_req_q;     // its read was made in the last cycle
  logic from_list, next_read;

  assign from_list  = list_cnt_q != '0 && next_valid_q;
  assign avail_o    = from_list || bump_q != 13'(Depth);
  assign new_idx_o  = from_list ? list_head_q : rec_idx_t'(bump_q);
  assign free_cnt_o = list_cnt_q + (13'(Depth) - bump_q);
  assign next_read  = !rd_en_i && !next_valid_q && !next_req_q && list_cnt_q != '0 && !free_i && !append_i;

  rnic_ram #(.Width($bits(rec_t)), .Depth(Depth)) u_rec (
      .clk_i, .we_i(append_i), .waddr_i(new_idx_o[AddrW-1:0]), .wdata_i(append_rec_i),
      .re_i(rd_en_i), .raddr_i(rd_idx_i[AddrW-1:0]), .rdata_o(rd_rec_o)
  );
  rec_idx_t link_rd;
  rnic_ram #(.Width($bits(rec_idx_t)), .Depth(Depth)) u_link (
      .clk_i, .we_i((append_i && append_link_i) || free_i),
      .waddr_i(free_i ? free_tail_i[AddrW-1:0] : append_tail_i[AddrW-1:0]), .wdata_i(free_i ? list_head_q : new_idx_o),
      .re_i(rd_en_i || next_read), .raddr_i(rd_en_i ? rd_idx_i[AddrW-1:0] : list_head_q[AddrW-1:0]), .rdata_o(link_rd)
  );
  // The owner's answer must hold although the block reads for itself.
  rec_idx_t link_held_q;
  logic own_q;
  assign rd_next_o = own_q ? link_rd : link_held_q;

  always_ff @(posedge clk_i) begin
    if (own_q) link_held_q <= link_rd;
    if (rst_i) begin
      own_q        <= 1'b0;
      bump_q       <= '0;
      list_cnt_q   <= '0;
      list_head_q  <= '0;
      next_valid_q <= 1'b0;
      next_req_q   <= 1'b0;
    end else begin
      own_q      <= rd_en_i;
      next_req_q <= next_read;
      if (next_req_q) begin
        list_next_q  <= link_rd;
        next_valid_q <= 1'b1;
      end
      if (append_i) begin
        if (from_list) begin
          list_head_q  <= list_next_q;
          list_cnt_q   <= list_cnt_q - 13'd1;
          next_valid_q <= 1'b0;
        end else begin
          bump_q <= bump_q + 13'd1;
        end
      end
      if (free_i) begin
        list_head_q  <= free_head_i;
        list_cnt_q   <= list_cnt_q + 13'(free_count_i);
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
