// SPDX-License-Identifier: Apache-2.0
// Free tags of the DMA reads. A tag comes back as late as possible (first freed, first used), and one whose completions may
// still be on their way rests for a time-out first, so that a late completion meets no new read.
// Contract: tag_o is free while tag_valid_o is high, and taken with take_i. One tag a cycle comes back with free_valid_i; free_rest_i
// sends it to rest.
module rnic_dma_tags #(
    parameter int unsigned Tags = 64,
    localparam int unsigned TagW = $clog2(Tags)
) (
    input  logic            clk_i,
    input  logic            rst_i,
    input  logic [23:0]     now_i,         // cycles, modulo 2^24
    input  logic [23:0]     until_i,       // and when a time-out is over that begins now
    output logic            tag_valid_o,
    output logic [TagW-1:0] tag_o,
    input  logic            take_i,
    input  logic            free_valid_i,
    input  logic            free_rest_i,
    input  logic [TagW-1:0] free_tag_i
);
  typedef struct packed {
    logic [TagW-1:0] tag;
    logic [23:0]     limit;
  } rest_t;
  logic free_in_valid, free_in_ready, free_out_valid, rest_in, rest_in_ready, rest_valid, rest_end;
  logic [TagW-1:0] free_in, free_out;
  rest_t rest;

  // After reset each tag is new once.
  logic [TagW:0] fresh_q;
  logic fresh;
  assign fresh       = fresh_q != (TagW + 1)'(Tags);
  assign tag_valid_o = fresh || free_out_valid;
  assign tag_o       = fresh ? fresh_q[TagW-1:0] : free_out;
  always_ff @(posedge clk_i) begin
    if (rst_i) fresh_q <= '0;
    else if (take_i && fresh) fresh_q <= fresh_q + (TagW + 1)'(1);
  end

  logic rested;
  assign rested = $signed(rest.limit - now_i) < 0;   // less than half of its range otherwise
`ifdef RNIC_CUT_DMA_TAG_REST
  assign rest_in = 1'b0;
`else
  assign rest_in = free_valid_i && free_rest_i;
`endif
  assign rest_end      = rest_valid && rested && !(free_valid_i && !rest_in);
  assign free_in_valid = (free_valid_i && !rest_in) || rest_end;
  assign free_in       = (free_valid_i && !rest_in) ? free_tag_i : rest.tag;

  // verilator lint_off PINCONNECTEMPTY
  rnic_fifo #(.Width(TagW), .Depth(Tags)) u_free (
      .clk_i, .rst_i, .in_valid_i(free_in_valid), .in_ready_o(free_in_ready), .in_data_i(free_in),
      .out_valid_o(free_out_valid), .out_ready_i(take_i && !fresh), .out_data_o(free_out), .level_o()
  );
  rnic_fifo #(.Width($bits(rest_t)), .Depth(Tags)) u_rest (
      .clk_i, .rst_i, .in_valid_i(rest_in), .in_ready_o(rest_in_ready), .in_data_i({free_tag_i, until_i}),
      .out_valid_o(rest_valid), .out_ready_i(rest_end), .out_data_o(rest), .level_o()
  );
  // verilator lint_on PINCONNECTEMPTY

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      a_free_has_room : assert (!free_in_valid || free_in_ready);
      a_rest_has_room : assert (!rest_in || rest_in_ready);
      a_take_only_a_free_one : assert (!take_i || tag_valid_o);
    end
  end
endmodule
