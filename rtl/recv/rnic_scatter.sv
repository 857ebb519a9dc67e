// SPDX-License-Identifier: Apache-2.0
// Places the payload of one packet after the other into host memory: a list of pieces {address, length} cuts the
// packed payload stream into DMA writes.
// Contract: per packet either pieces, the one with cmd_last_i being the last, whose lengths add up to the payload; or
// none to some pieces (none of them with cmd_last_i) and then one discard, which takes the rest of the payload up to
// pay_last_i and throws it away. A packet without payload gets neither. cmd_* and discard_* are held until ready and
// never valid together; pieces of a packet whose payload has not come yet wait. A piece is one write message: addr and
// len beside every beat, beats full but the last, lanes above the last byte are undefined. done_o is high once per
// packet: in the cycle in which its last beat is accepted by the write client (so what is handed over from the next one on is
// later on the link) or thrown away; the first piece of the next packet may be taken in it. Throughput: a full beat a cycle also
// across pieces that are multiples of a beat, and packets that are, when the next one's piece waits; a piece that ends inside a beat
// costs one short beat, a packet that does one cycle more.
// Latency: 2 cycles.
module rnic_scatter
  import rnic_pkg::*;
#(
    parameter int unsigned DataW = 64
) (
    input  logic             clk_i,
    input  logic             rst_i,
    // pieces
    input  logic             cmd_valid_i,
    output logic             cmd_ready_o,
    input  logic [63:0]      cmd_addr_i,
    input  pay_len_t         cmd_len_i,      // bytes, 1 to 4096
    input  logic             cmd_last_i,     // last piece of the packet
    input  logic             discard_valid_i,
    output logic             discard_ready_o,
    output logic             done_o,
    // payload
    input  logic             pay_valid_i,
    output logic             pay_ready_o,
    input  logic [DataW-1:0] pay_data_i,
    input  logic             pay_last_i,
    // DMA write client
    output logic             wr_valid_o,
    input  logic             wr_ready_i,
    output dma_wr_hdr_t      wr_hdr_o,
    output logic [DataW-1:0] wr_data_o,
    output logic             wr_last_o
);
  localparam int unsigned Bytes = DataW / 8;
  localparam int unsigned CntW = $clog2(Bytes + 1);
  localparam int unsigned LaneW = $clog2(Bytes);

  logic        piece_q, piece_last_q;        // a piece is being written
  dma_wr_hdr_t hdr_q;
  pay_len_t    left_q;                       // bytes of the piece not yet written
  logic        drop_q;                       // the rest of the packet is being thrown away
  logic        all_in_q;                     // the packet's last beat is in the gearbox
  logic [LaneW-1:0] odd_q;                   // bytes of the packet's pieces so far, beyond whole beats
  logic        early;                        // the next packet's first beat may come in while the last one leaves

  logic            gb_in_valid, gb_in_ready, gb_take, gb_clear;
  logic [CntW-1:0] gb_avail, need;
  logic            wr_fire, piece_end, drop_end, packet_end;

  // The bytes behind the payload's end are never asked for: the packet's end clears them.
  rnic_gearbox #(.Bytes(Bytes)) u_gearbox (
      .clk_i, .rst_i, .clear_i(gb_clear),
      .in_valid_i(gb_in_valid), .in_ready_o(gb_in_ready), .in_data_i(pay_data_i), .in_cnt_i(CntW'(Bytes)),
      .out_data_o(wr_data_o), .avail_o(gb_avail), .take_i(gb_take), .take_cnt_i(need)
  );

  assign need        = (left_q > pay_len_t'(Bytes)) ? CntW'(Bytes) : CntW'(left_q);
  assign wr_valid_o  = piece_q && (gb_avail >= need);
  assign wr_hdr_o    = hdr_q;
  assign wr_last_o   = left_q <= pay_len_t'(Bytes);
  assign wr_fire     = wr_valid_o && wr_ready_i;
  assign gb_take     = wr_fire;
  assign piece_end   = wr_fire && wr_last_o;

`ifdef RNIC_CUT_SCATTER_EARLY
  assign early       = 1'b0;
`else
  assign early       = piece_end && piece_last_q && odd_q == '0 && cmd_valid_i;
`endif
  assign gb_in_valid = pay_valid_i && piece_q && (!all_in_q || early);
  assign pay_ready_o = drop_q ? !all_in_q : (piece_q && (!all_in_q || early) && gb_in_ready);
  assign drop_end    = drop_q && (all_in_q || (pay_valid_i && pay_last_i));
  assign packet_end  = (piece_end && piece_last_q) || drop_end;
  assign gb_clear    = packet_end && !early;   // else nothing of the packet is left

  assign cmd_ready_o     = !drop_q && (!piece_q || piece_end);
  assign discard_ready_o = !drop_q && !piece_q;
  assign done_o          = packet_end;

  always_ff @(posedge clk_i) begin
    if (cmd_valid_i && cmd_ready_o) begin
      hdr_q        <= '{addr: cmd_addr_i, len: 16'(cmd_len_i)};
      left_q       <= cmd_len_i;
      piece_last_q <= cmd_last_i;
    end else if (wr_fire) begin
      left_q <= left_q - pay_len_t'(need);
    end
    odd_q <= ((rst_i || packet_end) ? '0 : odd_q) + ((cmd_valid_i && cmd_ready_o) ? LaneW'(cmd_len_i) : '0);
    if (rst_i) begin
      piece_q  <= 1'b0;
      drop_q   <= 1'b0;
      all_in_q <= 1'b0;
    end else begin
      if (cmd_valid_i && cmd_ready_o) piece_q <= 1'b1;
      else if (piece_end) piece_q <= 1'b0;
      if (drop_end) drop_q <= 1'b0;
      else if (discard_valid_i && discard_ready_o) drop_q <= 1'b1;
      if (packet_end) all_in_q <= early && pay_valid_i && pay_ready_o && pay_last_i;
      else if (pay_valid_i && pay_ready_o && pay_last_i) all_in_q <= 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      a_one_command : assert (!(cmd_valid_i && discard_valid_i));
      if (cmd_valid_i && cmd_ready_o)
        a_piece_length : assert (cmd_len_i != '0 && cmd_len_i <= pay_len_t'(4096));
      // Pieces cover the whole payload: at the end of the last one nothing of the packet is still outside.
      if (piece_end && piece_last_q) a_payload_taken : assert (all_in_q);
      if (early) a_nothing_left : assert (gb_avail == need);
    end
  end
endmodule
