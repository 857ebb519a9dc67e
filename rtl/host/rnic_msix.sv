// SPDX-License-Identifier: Apache-2.0
// MSI-X: vector table, pending bits, and interrupts as 4-byte writes into the posted stream.
// Contract: a source's vector is taken at once and marked pending; a pending, unmasked vector goes out as a write client like any
// other, so behind everything that was accepted before. Two requests for a vector that is still pending are one
// interrupt. Table: 16 bytes per vector (address low, address high, data, control with bit 0 masked), masked after reset.
module rnic_msix
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned DataW = 64,
    parameter int unsigned NumSrc = 2
) (
    input  logic clk_i,
    input  logic rst_i,
    input  logic [NumSrc-1:0] msix_valid_i,
    output logic [NumSrc-1:0] msix_ready_o,
    input  logic [NumSrc-1:0][7:0] msix_vec_i,
    input  logic tbl_we_i,
    input  logic tbl_we64_i,
    // (double words: bits 1:0 are not looked at)
    // verilator lint_off UNUSEDSIGNAL
    input  logic [11:0] tbl_waddr_i,         // byte offset in the table
    // verilator lint_on UNUSEDSIGNAL
    input  logic [63:0] tbl_wdata_i,
    // (double words: bits 1:0 are not looked at)
    // verilator lint_off UNUSEDSIGNAL
    input  logic [11:0] tbl_raddr_i,
    // verilator lint_on UNUSEDSIGNAL
    output logic [63:0] tbl_rdata_o,         // same cycle, 8 bytes at an 8-byte offset or 4 at a 4-byte one
    output logic [NUM_MSIX-1:0] pba_o,
    output logic wr_valid_o,
    input  logic wr_ready_i,
    output dma_wr_hdr_t wr_hdr_o,
    output logic [DataW-1:0] wr_data_o,
    output logic sent_o
);
  localparam int unsigned VecW = $clog2(NUM_MSIX);
  logic [31:0] tbl_q[4*NUM_MSIX];
  logic [NUM_MSIX-1:0] pend_q, open;
  logic [VecW-1:0] vec_q, vec;
  logic busy_q, found;

  assign msix_ready_o = '1;
  assign pba_o        = pend_q;
  always_comb begin
    found = 1'b0;
    vec   = '0;
    for (int unsigned v = 0; v < NUM_MSIX; v++) open[v] = pend_q[v] && !tbl_q[4*v+3][0];
    for (int unsigned v = NUM_MSIX; v > 0; v--) begin
      if (open[v-1]) begin
        found = 1'b1;
        vec   = VecW'(v - 1);
      end
    end
  end
  assign wr_valid_o = busy_q;
  assign wr_hdr_o   = '{addr: {tbl_q[4*vec_q+1], tbl_q[4*vec_q]}, len: 16'd4};
  assign wr_data_o  = DataW'(tbl_q[4*vec_q+2]);
  assign sent_o     = busy_q && wr_ready_i;

  // The table is written and read by double words.
  localparam int unsigned TblW = $clog2(4 * NUM_MSIX);
  logic [9:0] ridx, widx;
  assign ridx = tbl_raddr_i[11:2];
  assign widx = tbl_waddr_i[11:2];
  always_comb begin
    tbl_rdata_o = '0;
    if (ridx < 10'(4 * NUM_MSIX)) tbl_rdata_o[31:0] = tbl_q[TblW'(ridx)];
    if (ridx + 10'd1 < 10'(4 * NUM_MSIX)) tbl_rdata_o[63:32] = tbl_q[TblW'(ridx+10'd1)];
  end

  always_ff @(posedge clk_i) begin
    if (tbl_we_i && widx < 10'(4 * NUM_MSIX)) tbl_q[TblW'(widx)] <= tbl_wdata_i[31:0];
    if (tbl_we_i && tbl_we64_i && widx + 10'd1 < 10'(4 * NUM_MSIX)) tbl_q[TblW'(widx+10'd1)] <= tbl_wdata_i[63:32];
    if (busy_q && wr_ready_i) busy_q <= 1'b0;
    if (!busy_q && found) begin
      busy_q      <= 1'b1;
      vec_q       <= vec;
      pend_q[vec] <= 1'b0;
    end
    for (int unsigned s = 0; s < NumSrc; s++)
      if (msix_valid_i[s] && msix_vec_i[s] < 8'(NUM_MSIX)) pend_q[VecW'(msix_vec_i[s])] <= 1'b1;
    if (rst_i) begin
      busy_q <= 1'b0;
      pend_q <= '0;
      for (int unsigned v = 0; v < NUM_MSIX; v++) tbl_q[4*v+3] <= 32'd1;
    end
  end
endmodule
