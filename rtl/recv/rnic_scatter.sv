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
// across packets when the next one's piece waits; a piece that ends inside a beat costs one short beat.
// Latency: 1 cycle from a piece to its first beat; beats of payload pass through in the cycle in which they are taken.
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
  logic        all_in_q;                     // the packet's last beat was taken

  // A beat out has its bytes from behind the first off_q bytes of the beat taken last, then from the next one. 0: nothing of it is left.
  logic [Bytes-1:0][7:0] prev_q, joint;
  logic [DataW-1:0] turned;
  logic [LaneW-1:0] off_q, off;
  logic [LaneW-1:0] odd;                     // bytes of the piece's last beat beyond whole beats
  logic whole, more, take, wr_fire, piece_end, drop_end, packet_end;

  assign whole       = left_q[$bits(left_q)-1:LaneW] != '0;
  assign odd         = left_q[LaneW-1:0];
  assign more        = off_q == '0 || whole || CntW'(off_q) + CntW'(odd) > CntW'(Bytes);
  assign off         = whole ? off_q : off_q + odd;
  always_comb begin
    for (int unsigned i = 0; i < Bytes; i++) joint[i] = (off_q != '0 && LaneW'(i) >= off_q) ? prev_q[i] : pay_data_i[8*i+:8];
    // In powers of two: one choice per bit and stage.
    turned = joint;
    for (int unsigned k = 0; k < LaneW; k++) if (off_q[k]) turned = DataW'({turned, turned} >> (8 << k));
  end
  assign wr_valid_o  = piece_q && (!more || pay_valid_i);
  assign wr_data_o   = turned;
  assign wr_hdr_o    = hdr_q;
  assign wr_last_o   = left_q <= pay_len_t'(Bytes);
  assign wr_fire     = wr_valid_o && wr_ready_i;
  assign piece_end   = wr_fire && wr_last_o;
  assign pay_ready_o = drop_q ? !all_in_q : (piece_q && more && wr_ready_i);
  assign take        = pay_valid_i && pay_ready_o;
  assign drop_end    = drop_q && (all_in_q || (pay_valid_i && pay_last_i));
  assign packet_end  = (piece_end && piece_last_q) || drop_end;

`ifdef RNIC_CUT_SCATTER_EARLY
  assign cmd_ready_o     = !drop_q && !piece_q;
`else
  assign cmd_ready_o     = !drop_q && (!piece_q || piece_end);
`endif
  assign discard_ready_o = !drop_q && !piece_q;
  assign done_o          = packet_end;

  always_ff @(posedge clk_i) begin
    if (take) prev_q <= pay_data_i;
    if (cmd_valid_i && cmd_ready_o) begin
      hdr_q        <= '{addr: cmd_addr_i, len: 16'(cmd_len_i)};
      left_q       <= cmd_len_i;
      piece_last_q <= cmd_last_i;
    end else if (wr_fire) begin
      left_q <= left_q - pay_len_t'(Bytes);
    end
    if (rst_i) begin
      piece_q  <= 1'b0;
      drop_q   <= 1'b0;
      all_in_q <= 1'b0;
      off_q    <= '0;
    end else begin
      if (cmd_valid_i && cmd_ready_o) piece_q <= 1'b1;
      else if (piece_end) piece_q <= 1'b0;
      if (drop_end) drop_q <= 1'b0;
      else if (discard_valid_i && discard_ready_o) drop_q <= 1'b1;
      if (packet_end) all_in_q <= 1'b0;
      else if (take && pay_last_i) all_in_q <= 1'b1;
      // What is behind the payload's end falls away.
      if (packet_end) off_q <= '0;
      else if (wr_fire) off_q <= off;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      a_one_command : assert (!(cmd_valid_i && discard_valid_i));
      if (cmd_valid_i && cmd_ready_o)
        a_piece_length : assert (cmd_len_i != '0 && cmd_len_i <= pay_len_t'(4096));
      // Pieces cover the whole payload: at the end of the last one nothing of the packet is still outside.
      if (piece_end && piece_last_q) a_payload_taken : assert (all_in_q || (take && pay_last_i));
      if (piece_q && all_in_q) a_no_more : assert (!more);
    end
  end
endmodule
