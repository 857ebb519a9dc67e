// SPDX-License-Identifier: Apache-2.0
// DMA write service: one posted stream from all write clients.
// Contract: the arbiter grants a client from the first to the last beat of its message; messages leave in the order in which
// they were accepted, split at the maximum payload size and at 4 KiB, aligned to double words with byte enables. accepted_o
// counts messages whose last beat was taken, sent_o those whose last TLP is on the link.
module rnic_dma_wr
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned DataW = 64,
    parameter int unsigned NumWr = 7
) (
    input  logic clk_i,
    input  logic rst_i,
    input  logic go_i,                       // bus master enabled
    input  logic [10:0] mps_i,
    input  logic [NumWr-1:0] wr_valid_i,
    output logic [NumWr-1:0] wr_ready_o,
    input  dma_wr_hdr_t [NumWr-1:0] wr_hdr_i,
    input  logic [NumWr-1:0][DataW-1:0] wr_data_i,
    input  logic [NumWr-1:0] wr_last_i,
    output logic [7:0] accepted_o,
    output logic [7:0] sent_o,
    output logic rq_valid_o,
    input  logic rq_ready_i,
    output rq_hdr_t rq_hdr_o,
    output logic [DataW-1:0] rq_data_o,
    output logic rq_last_o,
    output logic [15:0] bytes_o              // link bytes of TLPs that end in this cycle
);
  localparam int unsigned B = DataW / 8;
  localparam int unsigned CntW = $clog2(B + 1);
  localparam int unsigned ClW = (NumWr > 1) ? $clog2(NumWr) : 1;

  // ---------------------------------------------------------------- in
  logic [NumWr-1:0] grant;
  logic [ClW-1:0] pick;
  logic any, in_fire, gb_ready, hdr_ready, first_q, room;
  logic [15:0] in_left_q, in_left;
  logic [CntW-1:0] in_cnt;
  assign any     = |wr_valid_i;
  assign room    = gb_ready && (hdr_ready || !first_q);
  assign in_fire = any && wr_valid_i[pick] && room;
  assign wr_ready_o = grant & {NumWr{room}};
  assign in_left = first_q ? wr_hdr_i[pick].len : in_left_q;
  assign in_cnt  = (in_left > 16'(B)) ? CntW'(B) : CntW'(in_left);

  rnic_arb_rr #(.N(NumWr)) u_arb (
      .clk_i, .rst_i, .req_i(wr_valid_i), .advance_i(in_fire && wr_last_i[pick]), .lock_i(!first_q), .grant_o(grant), .idx_o(pick)
  );

  logic [DataW-1:0] gb_data;
  logic [CntW-1:0] avail, take_cnt;
  logic take;
  rnic_gearbox #(.Bytes(B)) u_gb (
      .clk_i, .rst_i, .clear_i(1'b0), .in_valid_i(in_fire), .in_ready_o(gb_ready), .in_data_i(wr_data_i[pick]), .in_cnt_i(in_cnt),
      .out_data_o(gb_data), .avail_o(avail), .take_i(take), .take_cnt_i(take_cnt)
  );

  logic hdr_valid, hdr_pop;
  dma_wr_hdr_t hdr;
  // verilator lint_off PINCONNECTEMPTY
  rnic_fifo #(.Width($bits(dma_wr_hdr_t)), .Depth(4)) u_hdrs (
      .clk_i, .rst_i, .in_valid_i(in_fire && first_q), .in_ready_o(hdr_ready), .in_data_i(wr_hdr_i[pick]),
      .out_valid_o(hdr_valid), .out_ready_i(hdr_pop), .out_data_o(hdr), .level_o()
  );
  // verilator lint_on PINCONNECTEMPTY

  // ---------------------------------------------------------------- out
  logic [15:0] msg_off_q;                    // bytes of the message in finished TLPs
  logic [15:0] tlp_off_q;                    // payload bytes of this TLP already sent
  logic [63:0] at;
  logic [15:0] msg_left, chunk, to_bound, tlp_left;
  logic [1:0] skip;
  logic [CntW-1:0] want;
  logic tlp_first, fire;
  assign at        = hdr.addr + 64'(msg_off_q);
  assign msg_left  = hdr.len - msg_off_q;
  assign to_bound  = 16'(mps_i) - (at[15:0] & (16'(mps_i) - 16'd1));
  assign chunk     = (msg_left < to_bound) ? msg_left : to_bound;
  assign tlp_first = tlp_off_q == '0;
  assign skip      = tlp_first ? at[1:0] : 2'd0;
  assign tlp_left  = chunk - tlp_off_q;
  assign want      = (tlp_left > 16'(B) - 16'(skip)) ? CntW'(B) - CntW'(skip) : CntW'(tlp_left);
  assign rq_valid_o = hdr_valid && go_i && avail >= want;
  assign fire       = rq_valid_o && rq_ready_i;
  assign take       = fire;
  assign take_cnt   = want;
  assign rq_data_o  = (gb_data & ~({DataW{1'b1}} << {want, 3'b000})) << {skip, 3'b000};
  assign rq_last_o  = tlp_left == 16'(want);
  assign hdr_pop    = fire && rq_last_o && chunk == msg_left;

  logic [10:0] dw;
  logic [2:0] end_bytes;
  assign dw        = 11'((16'(at[1:0]) + chunk + 16'd3) >> 2);
  assign end_bytes = 3'((3'(at[1:0]) + 3'(chunk[1:0])) & 3'd3);
  always_comb begin
    automatic logic [3:0] fbe, lbe;
    fbe = 4'hf << at[1:0];
    lbe = (end_bytes == 3'd0) ? 4'hf : 4'hf >> (3'd4 - end_bytes);
    rq_hdr_o          = '0;
    rq_hdr_o.addr     = {at[63:2], 2'b00};
    rq_hdr_o.dw_len   = dw;
    rq_hdr_o.wr       = 1'b1;
    rq_hdr_o.first_be = (dw == 11'd1) ? fbe & lbe : fbe;
    rq_hdr_o.last_be  = (dw == 11'd1) ? 4'h0 : lbe;
  end
  assign bytes_o = (fire && rq_last_o) ? 16'({dw, 2'b00}) + 16'(TLP_OVERHEAD_BYTES) : 16'd0;

  always_ff @(posedge clk_i) begin
    if (in_fire) begin
      first_q   <= wr_last_i[pick];
      in_left_q <= in_left - 16'(in_cnt);
      if (wr_last_i[pick]) accepted_o <= accepted_o + 8'd1;
    end
    if (fire) begin
      tlp_off_q <= rq_last_o ? '0 : tlp_off_q + 16'(want);
      if (rq_last_o) msg_off_q <= hdr_pop ? '0 : msg_off_q + chunk;
      if (hdr_pop) sent_o <= sent_o + 8'd1;
    end
    if (rst_i) begin
      first_q    <= 1'b1;
      accepted_o <= '0;
      sent_o     <= '0;
      msg_off_q  <= '0;
      tlp_off_q  <= '0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i && in_fire) begin
      a_length_not_zero : assert (wr_hdr_i[pick].len != '0 && wr_hdr_i[pick].len <= 16'd4096);
      a_last_where_the_length_ends : assert (wr_last_i[pick] == (in_left <= 16'(B)));
    end
  end
endmodule
