// SPDX-License-Identifier: Apache-2.0
// Example of a source on the board: a counter of 64 bits that fills a memory (rnic_axi_ram's second way in) beat by beat and then
// begins at its start again, one number every Every cycles. What a data-acquisition design puts in its place has the same port.
// Contract: after reset it writes 0, 1, 2, ... to beats 0, 1, 2, ... (modulo the memory) while run_i is high; a number that was not
// taken in its time waits, none is left out. count_o is the number of those that are in memory.
module rnic_daq_counter #(
    parameter int unsigned BeatW = 11,
    parameter int unsigned Every = 8
) (
    input  logic             clk_i,
    input  logic             rst_i,
    input  logic             run_i,
    output logic             put_valid_o,
    input  logic             put_ready_i,
    output logic [BeatW-1:0] put_beat_o,
    output logic [63:0]      put_data_o,
    output logic [63:0]      count_o
);
  localparam int unsigned TickW = $clog2(Every + 1);
  logic [63:0] count_q;
  logic [TickW-1:0] tick_q;
  assign put_valid_o = run_i && tick_q == '0;
  assign put_beat_o  = BeatW'(count_q);
  assign put_data_o  = count_q;
  assign count_o     = count_q;
  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      count_q <= '0;
      tick_q  <= '0;
    end else if (put_valid_o && put_ready_i) begin
      count_q <= count_q + 64'd1;
      tick_q  <= TickW'(Every - 1);
    end else if (tick_q != '0) begin
      tick_q <= tick_q - TickW'(1);
    end
  end
endmodule
