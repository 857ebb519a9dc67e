// SPDX-License-Identifier: Apache-2.0
// Command completions: 32-byte entries with a phase bit into a ring as long as the command ring, then the interrupt.
// Contract: a completion is taken when the one before has been accepted by the write service; done_o marks that moment. The interrupt is
// asked for after it, one for all completions since the last one taken. A restart of the ring starts at entry 0 and phase 1, and
// a completion still being written to the old ring is not counted.
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
    input  cmd_completion_t cpl_i,           // the phase is filled in here
    output logic wr_valid_o,
    input  logic wr_ready_i,
    output dma_wr_hdr_t wr_hdr_o,
    output logic [DataW-1:0] wr_data_o,
    output logic wr_last_o,
    output logic done_o,
    output logic msix_valid_o,
    input  logic msix_ready_i
);
  logic start, busy, sent, old_q;
  cmd_completion_t entry;
  logic [15:0] cnt_q, slot;
  assign cpl_ready_o = !busy;
  assign start       = cpl_valid_i && !busy;
  assign slot        = cnt_q & ((16'd1 << log_size_i) - 16'd1);
  assign done_o      = sent && !old_q && !restart_i;
  always_comb begin
    entry = cpl_i;
`ifdef RNIC_CUT_CMD_PHASE
    entry.phase = 1'b1;
`else
    entry.phase = !(1'(cnt_q >> log_size_i));
`endif
  end
  rnic_entry_wr #(.DataW(DataW)) u_wr (
      .clk_i, .rst_i, .start_i(start), .busy_o(busy), .addr_i(cpl_base_i + {43'd0, slot, 5'd0}), .entry_i(entry), .done_o(sent),
      .wr_valid_o, .wr_ready_i, .wr_hdr_o, .wr_data_o, .wr_last_o
  );
  always_ff @(posedge clk_i) begin
    if (start) cnt_q <= cnt_q + 16'd1;
    if (sent) old_q <= 1'b0;
    if (msix_valid_o && msix_ready_i) msix_valid_o <= 1'b0;
    if (done_o) msix_valid_o <= 1'b1;
    if (restart_i) begin
      cnt_q <= '0;
      old_q <= (busy && !sent) || start;
    end
    if (rst_i) begin
      cnt_q        <= '0;
      old_q        <= 1'b0;
      msix_valid_o <= 1'b0;
    end
  end
endmodule
