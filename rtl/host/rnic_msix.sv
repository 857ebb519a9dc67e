// SPDX-License-Identifier: Apache-2.0
// MSI-X: vector table, pending bits, and interrupts as 4-byte messages of a DMA write client.
// Contract: a source is taken at once and its vector marked pending; requests for a vector that is still pending become one
// interrupt. A pending vector that is not masked is sent: the message enters the posted stream after the request was taken, so
// behind every write accepted before it. Address and data are those of the moment in which it is sent (read in two cycles). Table: per vector address low
// and high, data, control (bit 0: masked); masked after reset. Vectors outside of the table are ignored. Table by aligned 8 bytes:
// a write takes effect in its cycle, a read (tbl_re_i, which keeps an interrupt back) answers in the same cycle.
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
    input  logic [1:0] tbl_we_i,             // per half
    input  logic [3:0] tbl_waddr_i,          // {vector, second half of its entry}
    input  logic [63:0] tbl_wdata_i,
    input  logic tbl_re_i,
    input  logic [3:0] tbl_raddr_i,
    output logic [63:0] tbl_rdata_o,
    output logic [NUM_MSIX-1:0] pba_o,
    output logic wr_valid_o,
    input  logic wr_ready_i,
    output dma_wr_hdr_t wr_hdr_o,
    output logic [DataW-1:0] wr_data_o,
    output logic sent_o
);
  if (NUM_MSIX > 8) begin : g_vectors
    $fatal(1, "%m: tables are made for 8 vectors");
  end
  // Low halves: address and data, one after the other, so that a message is read in two cycles. High halves: address.
  logic [31:0] lo[16], hi[8];
  logic [7:0] mask_q, pend_q, open;
  logic [2:0] wvec, vec, vec_q;
  logic [3:0] at;                          // the one read port, for the host and for what is sent
  logic half_q;                            // the address was read
  assign at   = tbl_re_i ? tbl_raddr_i : half_q ? {vec_q, 1'b1} : {vec, 1'b0};
  assign wvec = tbl_waddr_i[3:1];
  assign tbl_rdata_o = {tbl_raddr_i[0] ? {31'd0, mask_q[tbl_raddr_i[3:1]]} : hi[at[3:1]], lo[at]};
  always_ff @(posedge clk_i) begin
    if (tbl_we_i[0]) lo[tbl_waddr_i] <= tbl_wdata_i[31:0];
    if (tbl_we_i[1] && !tbl_waddr_i[0]) hi[wvec] <= tbl_wdata_i[63:32];
    if (rst_i) mask_q <= '1;
    else if (tbl_we_i[1] && tbl_waddr_i[0]) mask_q[wvec] <= tbl_wdata_i[32];
  end

`ifdef RNIC_CUT_MSIX_MASK
  assign open = pend_q;
`else
  assign open = pend_q & ~mask_q;
`endif
  always_comb begin
    vec = '0;
    for (int unsigned v = 8; v > 0; v--) if (open[v-1]) vec = 3'(v - 1);
  end

  logic busy_q, start;
  logic [63:0] addr_q;
  logic [31:0] data_q;
  assign start        = (open != '0) && !busy_q && !half_q && !tbl_re_i;
  assign msix_ready_o = '1;
  assign pba_o        = pend_q[NUM_MSIX-1:0];
  always_ff @(posedge clk_i) begin
    if (start) begin
      addr_q <= {hi[at[3:1]], lo[at][31:2], 2'b00};
      vec_q  <= vec;
      pend_q[vec] <= 1'b0;
    end
    if (half_q) data_q <= lo[at];
    for (int unsigned s = 0; s < NumSrc; s++)
      if (msix_valid_i[s] && msix_vec_i[s] < 8'(NUM_MSIX)) pend_q[msix_vec_i[s][2:0]] <= 1'b1;
    if (rst_i) begin
      pend_q <= '0;
      busy_q <= 1'b0;
      half_q <= 1'b0;
    end else begin
      if (start) half_q <= 1'b1;
      else if (!tbl_re_i) half_q <= 1'b0;
      if (half_q && !tbl_re_i) busy_q <= 1'b1;
      else if (wr_ready_i) busy_q <= 1'b0;
    end
  end
  assign wr_valid_o = busy_q;
  assign wr_hdr_o   = '{addr: addr_q, len: 16'd4};
  assign wr_data_o  = DataW'(data_q);
  assign sent_o     = busy_q && wr_ready_i;
endmodule
