// SPDX-License-Identifier: Apache-2.0
// Command completions: 32-byte entries with a phase bit, into a ring as long as the command ring, then the interrupt.
// Contract: completions are taken one at a time (a small FIFO) and written in order; done_o marks each accepted write; the interrupt is asked
// for after it, several completions may share one.
module rnic_cmd_cpl
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned DataW = 64
) (
    input  logic clk_i,
    input  logic rst_i,
    input  logic restart_i,
    input  logic [63:0] cpl_base_i,
    input  logic [3:0] log_size_i,
    input  logic cpl_valid_i,
    output logic cpl_ready_o,
    input  cmd_completion_t cpl_i,           // phase is filled in here
    output logic wr_valid_o,
    input  logic wr_ready_i,
    output dma_wr_hdr_t wr_hdr_o,
    output logic [DataW-1:0] wr_data_o,
    output logic wr_last_o,
    output logic done_o,
    output logic empty_o,
    output logic msix_valid_o,
    input  logic msix_ready_i
);
  logic valid, start, busy;
  cmd_completion_t head, entry;
  logic [15:0] cnt_q, slot;
  // verilator lint_off PINCONNECTEMPTY
  rnic_fifo #(.Width($bits(cmd_completion_t)), .Depth(2)) u_fifo (
      .clk_i, .rst_i, .in_valid_i(cpl_valid_i), .in_ready_o(cpl_ready_o), .in_data_i(cpl_i),
      .out_valid_o(valid), .out_ready_i(start), .out_data_o(head), .level_o()
  );
  // verilator lint_on PINCONNECTEMPTY
  assign start   = valid && !busy;
  assign empty_o = !valid && !busy;
  assign slot    = cnt_q & ((16'd1 << log_size_i) - 16'd1);
  always_comb begin
    entry       = head;
    entry.phase = !(1'(cnt_q >> log_size_i));
  end
  rnic_entry_wr #(.DataW(DataW)) u_wr (
      .clk_i, .rst_i, .start_i(start), .busy_o(busy), .addr_i(cpl_base_i + {43'd0, slot, 5'd0}), .entry_i(entry), .done_o,
      .wr_valid_o, .wr_ready_i, .wr_hdr_o, .wr_data_o, .wr_last_o
  );
  always_ff @(posedge clk_i) begin
    if (start) cnt_q <= cnt_q + 16'd1;
    if (msix_valid_o && msix_ready_i) msix_valid_o <= 1'b0;
    if (done_o) msix_valid_o <= 1'b1;
    if (restart_i || rst_i) cnt_q <= '0;
    if (rst_i) msix_valid_o <= 1'b0;
  end
endmodule
