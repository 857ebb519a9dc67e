// SPDX-License-Identifier: Apache-2.0
// Device counters: pulses gather in small accumulators, a walker adds them to 64-bit sums in block RAM.
// Contract: no pulse is lost; a sum lags by at most one round of the walker (NUM_CNT + 1 cycles times two). Two read ports, answers one
// cycle later. Reset clears the sums within one round.
module rnic_counters
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
(
    input  logic clk_i,
    input  logic rst_i,
    input  cnt_t cnt_i,
    input  logic [15:0] rx_bytes_i,
    input  logic [15:0] tx_bytes_i,
    input  logic [15:0] pcie_rd_bytes_i,
    input  logic [15:0] pcie_wr_bytes_i,
    input  logic [6:0] a_idx_i,
    output logic [63:0] a_data_o,
    input  logic [6:0] b_idx_i,
    output logic [63:0] b_data_o
);
  localparam int unsigned NumBytes = 4;
  localparam int unsigned AccW = 9;
  localparam int unsigned ByteAccW = 25;
  logic [AccW-1:0] acc_q[NUM_CNT];
  logic [ByteAccW-1:0] bacc_q[NumBytes];
  logic [NumBytes-1:0][15:0] binc;
  assign binc = {pcie_wr_bytes_i, pcie_rd_bytes_i, tx_bytes_i, rx_bytes_i};

  function automatic logic is_bytes(logic [6:0] c);
    return c == COUNTER_ID_RX_BYTES || c == COUNTER_ID_TX_BYTES || c == COUNTER_ID_PCIE_RD_BYTES || c == COUNTER_ID_PCIE_WR_BYTES;
  endfunction
  function automatic logic [1:0] byte_acc(logic [6:0] c);
    unique case (c)
      COUNTER_ID_TX_BYTES: return 2'd1;
      COUNTER_ID_PCIE_RD_BYTES: return 2'd2;
      COUNTER_ID_PCIE_WR_BYTES: return 2'd3;
      default: return 2'd0;
    endcase
  endfunction

  logic [6:0] idx_q;
  logic wr_q, clear_q;                       // second half of a step; first round after reset
  logic [63:0] sum, new_sum;
  logic [ByteAccW-1:0] add;
  assign add     = is_bytes(idx_q) ? bacc_q[byte_acc(idx_q)] : ByteAccW'(acc_q[idx_q]);
  assign new_sum = (clear_q ? 64'd0 : sum) + 64'(add);

  rnic_ram #(.Width(64), .Depth(NUM_CNT), .Bypass(1'b0)) u_sum (
      .clk_i, .we_i(wr_q), .waddr_i(idx_q), .wdata_i(new_sum), .re_i(1'b1), .raddr_i(idx_q), .rdata_o(sum)
  );
  rnic_ram #(.Width(64), .Depth(NUM_CNT), .Bypass(1'b1)) u_a (
      .clk_i, .we_i(wr_q), .waddr_i(idx_q), .wdata_i(new_sum), .re_i(1'b1), .raddr_i(a_idx_i), .rdata_o(a_data_o)
  );
  rnic_ram #(.Width(64), .Depth(NUM_CNT), .Bypass(1'b1)) u_b (
      .clk_i, .we_i(wr_q), .waddr_i(idx_q), .wdata_i(new_sum), .re_i(1'b1), .raddr_i(b_idx_i), .rdata_o(b_data_o)
  );

  always_ff @(posedge clk_i) begin
    for (int unsigned c = 0; c < NUM_CNT; c++) acc_q[c] <= acc_q[c] + AccW'(cnt_i[c]);
    for (int unsigned c = 0; c < NumBytes; c++) bacc_q[c] <= bacc_q[c] + ByteAccW'(binc[c]);
    wr_q <= !wr_q;
    if (wr_q) begin
      if (is_bytes(idx_q)) bacc_q[byte_acc(idx_q)] <= ByteAccW'(binc[byte_acc(idx_q)]);
      else acc_q[idx_q] <= AccW'(cnt_i[idx_q]);
      idx_q <= (idx_q == 7'(NUM_CNT - 1)) ? '0 : idx_q + 7'd1;
      if (idx_q == 7'(NUM_CNT - 1)) clear_q <= 1'b0;
    end
    if (rst_i) begin
      for (int unsigned c = 0; c < NUM_CNT; c++) acc_q[c] <= '0;
      for (int unsigned c = 0; c < NumBytes; c++) bacc_q[c] <= '0;
      wr_q    <= 1'b0;
      idx_q   <= '0;
      clear_q <= 1'b1;
    end
  end
endmodule
