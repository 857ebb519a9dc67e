// SPDX-License-Identifier: Apache-2.0
// Device counters: pulses gather in small accumulators, a walker adds one after the other to 64-bit sums in block RAM.
// Contract: no pulse is lost, also when several sources pulse the same counter in one cycle. A sum lags by a round of the
// walker, at most 2 * NUM_CNT cycles. a_re_i asks for a sum (at most every other cycle: it costs the walker a step), b_idx_i always
// does; answers one cycle later. Reset clears: until the first round is over both read as 0.
module rnic_counters
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned NumSrc = 2
) (
    input  logic clk_i,
    input  logic rst_i,
    input  cnt_t [NumSrc-1:0] cnt_i,
    input  logic [15:0] rx_bytes_i,
    input  logic [15:0] tx_bytes_i,
    input  logic [12:0] pcie_rd_bytes_i,
    input  logic [12:0] pcie_wr_bytes_i,
    input  logic a_re_i,
    input  logic [6:0] a_idx_i,
    output logic [63:0] a_data_o,
    input  logic [6:0] b_idx_i,
    output logic [63:0] b_data_o
);
  localparam int unsigned Round = 2 * NUM_CNT + 2;        // cycles at most
  localparam int unsigned AccW = $clog2(Round * NumSrc + 1);
  localparam int unsigned ByteAccW = 16 + $clog2(Round + 1);
  localparam int unsigned NumBytes = 4;

  logic [AccW-1:0] acc_q[NUM_CNT];
  logic [ByteAccW-1:0] byte_acc_q[NumBytes];
  logic [NumBytes-1:0][15:0] byte_inc;
  assign byte_inc = {16'(pcie_wr_bytes_i), 16'(pcie_rd_bytes_i), tx_bytes_i, rx_bytes_i};

  // Which counter is a sum of bytes, and which.
  function automatic logic [2:0] byte_sel(logic [6:0] c);
    unique case (c)
      COUNTER_ID_RX_BYTES: return 3'b100;
      COUNTER_ID_TX_BYTES: return 3'b101;
      COUNTER_ID_PCIE_RD_BYTES: return 3'b110;
      COUNTER_ID_PCIE_WR_BYTES: return 3'b111;
      default: return 3'b000;
    endcase
  endfunction

  // First step: take an accumulator and look up its sum. Second step: write the new sum.
  logic [6:0] idx_q, idx2_q;
  logic step, we_q, first_q, first2_q, a_void_q, b_void_q;
  logic [ByteAccW-1:0] add_q;
  logic [2:0] bsel;
  logic [63:0] sum, new_sum, b_sum;
  assign step    = !a_re_i;
  assign bsel    = byte_sel(idx_q);
  assign new_sum = (first2_q ? 64'd0 : sum) + 64'(add_q);

  always_ff @(posedge clk_i) begin
    for (int unsigned c = 0; c < NUM_CNT; c++) begin
      automatic logic [AccW-1:0] inc = '0;
`ifdef RNIC_CUT_CNT_SUM
      for (int unsigned s = 0; s < NumSrc; s++) inc = inc | AccW'(cnt_i[s][c]);
`else
      for (int unsigned s = 0; s < NumSrc; s++) inc = inc + AccW'(cnt_i[s][c]);
`endif
      acc_q[c] <= ((step && idx_q == 7'(c)) ? '0 : acc_q[c]) + inc;
    end
    for (int unsigned c = 0; c < NumBytes; c++)
      byte_acc_q[c] <= ((step && bsel == {1'b1, 2'(c)}) ? '0 : byte_acc_q[c]) + ByteAccW'(byte_inc[c]);
    if (step) begin
      add_q    <= bsel[2] ? byte_acc_q[bsel[1:0]] : ByteAccW'(acc_q[idx_q]);
      idx2_q   <= idx_q;
      first2_q <= first_q;
      idx_q    <= (idx_q == 7'(NUM_CNT - 1)) ? '0 : idx_q + 7'd1;
      if (idx_q == 7'(NUM_CNT - 1)) first_q <= 1'b0;
    end
    we_q     <= step;
    a_void_q <= first_q || first2_q;
    b_void_q <= first_q || first2_q;
    if (rst_i) begin
      for (int unsigned c = 0; c < NUM_CNT; c++) acc_q[c] <= '0;
      for (int unsigned c = 0; c < NumBytes; c++) byte_acc_q[c] <= '0;
      we_q     <= 1'b0;
      idx_q    <= '0;
      first_q  <= 1'b1;
      first2_q <= 1'b1;
    end
  end

  // A sum that is being written is not the one that is looked up: the walker is one ahead, but a reader may meet it.
  rnic_ram #(.Width(64), .Depth(NUM_CNT)) u_sum (
      .clk_i, .we_i(we_q), .waddr_i(idx2_q), .wdata_i(new_sum), .re_i(1'b1), .raddr_i(a_re_i ? a_idx_i : idx_q), .rdata_o(sum)
  );
  rnic_ram #(.Width(64), .Depth(NUM_CNT)) u_copy (
      .clk_i, .we_i(we_q), .waddr_i(idx2_q), .wdata_i(new_sum), .re_i(1'b1), .raddr_i(b_idx_i), .rdata_o(b_sum)
  );
  assign a_data_o = a_void_q ? '0 : sum;
  assign b_data_o = b_void_q ? '0 : b_sum;
endmodule
