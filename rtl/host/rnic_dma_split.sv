// SPDX-License-Identifier: Apache-2.0
// Cuts a transfer {address, length} into the pieces that one TLP each may carry, with the TLP's header.
// Contract: pieces end at the multiples of max_i (a power of two, 128 to 1024, that stays while a transfer is inside), so none is longer than max_i, none crosses
// 4 KiB, and only the first one of a transfer can start inside a double word. in_*: taken when in_valid_i && in_ready_o;
// out_*: held until out_ready_i. While hold_i is high the transfer inside gives no further piece. One piece a cycle, two cycles
// after the transfer was taken. Write and tag of the header are left zero.
module rnic_dma_split
  import rnic_spec_pkg::*;
#(
    parameter int unsigned MetaW = 1   // what goes beside the transfer
) (
    input  logic             clk_i,
    input  logic             rst_i,
    input  logic [10:0]      max_i,
    input  logic             in_valid_i,
    output logic             in_ready_o,
    input  logic [63:0]      in_addr_i,
    input  logic [12:0]      in_len_i,
    input  logic [MetaW-1:0] in_meta_i,
    input  logic             hold_i,
    output logic             out_valid_o,
    input  logic             out_ready_i,
    output rq_hdr_t          out_hdr_o,
    output logic [1:0]       out_skip_o,   // lanes of the first double word before the first byte
    output logic [10:0]      out_bytes_o,
    output logic             out_last_o,   // last piece of the transfer
    output logic [MetaW-1:0] out_meta_o
);
  logic req_valid_q, piece_valid_q, piece_last_q;
  logic [63:0] piece_addr_q;
  logic [51:0] page_q;                     // where the transfer begins: of 4 KiB it meets two at most
  logic [11:0] low_q;                      // where the next piece begins
  logic crossed_q;                         // it is in the second one
  logic [12:0] left_q;
  logic [10:0] piece_bytes_q;
  logic [MetaW-1:0] meta_q, piece_meta_q;

  // Where a piece ends and whether it is the last is found out when its transfer, or the piece before it, goes in: it decides who may come next.
  logic [10:0] mask, room_q, room_d;
  logic [12:0] left_d;
  logic [5:0] block;                       // of 128 bytes, behind this piece
  logic move, last, last_q, more, piece_free;
  assign mask       = max_i - 11'd1;
  assign block      = {1'b0, low_q[11], low_q[10:7] | mask[10:7]} + 6'd1;
  assign left_d     = more ? left_q - 13'(room_q) : in_len_i;
  assign room_d     = max_i - (more ? '0 : in_addr_i[10:0] & mask);
`ifdef RNIC_CUT_DMA_SPLIT
  assign last       = 1'b1;
`else
  assign last       = last_q;
`endif
  assign more       = req_valid_q && !last;
  assign piece_free = !piece_valid_q || out_ready_i;
  assign move       = req_valid_q && !hold_i && piece_free;
  assign in_ready_o = !req_valid_q || (move && last);

  always_ff @(posedge clk_i) begin
    if (!req_valid_q || move) begin
      low_q     <= more ? {block[4:0], 7'd0} : in_addr_i[11:0];
      crossed_q <= more && (crossed_q || block[5]);
      left_q <= left_d;
      room_q <= room_d;
      last_q <= left_d <= 13'(room_d);
      if (!more) begin
        page_q <= in_addr_i[63:12];
        meta_q <= in_meta_i;
      end
    end
    if (piece_free) begin
      piece_addr_q  <= {page_q + 52'(crossed_q), low_q};
      piece_bytes_q <= last ? left_q[10:0] : room_q;
      piece_last_q  <= last;
      piece_meta_q  <= meta_q;
    end
    if (rst_i) begin
      req_valid_q   <= 1'b0;
      piece_valid_q <= 1'b0;
    end else begin
      if (in_ready_o) req_valid_q <= in_valid_i;
      if (piece_free) piece_valid_q <= move;
    end
  end

  // Byte enables: PCIe base specification 2.2.5.
  logic [12:0] span;                       // bytes with the lanes in front
  logic [3:0] first_be, last_be;
  logic one;
  assign span     = 13'(piece_bytes_q) + 13'(piece_addr_q[1:0]) + 13'd3;
  assign one      = span[12:2] == 11'd1;
  assign first_be = 4'hf << piece_addr_q[1:0];
  assign last_be  = 4'hf >> (2'd3 - span[1:0]);
  always_comb begin
    out_hdr_o          = '0;
    out_hdr_o.addr     = {piece_addr_q[63:2], 2'b00};
    out_hdr_o.dw_len   = span[12:2];
    out_hdr_o.first_be = one ? first_be & last_be : first_be;
    out_hdr_o.last_be  = one ? 4'h0 : last_be;
  end
  assign out_valid_o = piece_valid_q;
  assign out_skip_o  = piece_addr_q[1:0];
  assign out_bytes_o = piece_bytes_q;
  assign out_last_o  = piece_last_q;
  assign out_meta_o  = piece_meta_q;

  always_ff @(posedge clk_i) begin
    if (!rst_i && in_valid_i && in_ready_o)
      a_length_1_to_4096 : assert (in_len_i != '0 && in_len_i <= 13'd4096);
  end
endmodule
