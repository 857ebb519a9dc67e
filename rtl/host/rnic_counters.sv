// SPDX-License-Identifier: Apache-2.0
// Device counters: pulses gather in small accumulators. They stand in banks whose walkers go round together, each adding one after
// the other to a larger sum in distributed RAM; in turn, one bank's sums go on to 64-bit sums in block RAM.
// Contract: no pulse is lost, also when several sources pulse the same counter in one cycle, which only those of Multi do. A sum
// lags by a round through all banks, at most 2 * NUM_CNT + 8 cycles. a_re_i asks for a sum (at most every other cycle: it costs the walkers a step), b_idx_i always
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
  localparam int unsigned Banks = 5;
  localparam int unsigned Per = (NUM_CNT + Banks - 1) / Banks;
  localparam int unsigned Turn = 2 * Per + 2;             // cycles from one visit of an accumulator to the next, at most
  localparam int unsigned AccW = $clog2(Turn * NumSrc + 1);
  localparam int unsigned SumW = $clog2(Banks * Turn * NumSrc + 1);
  localparam int unsigned ByteAccW = 16 + $clog2(Banks * Turn + 1);
  localparam int unsigned NumBytes = 4;
  if (Per > 16) begin : g_per
    $fatal(1, "%m: a bank has 16 places");
  end

  // What more than one source counts: the others need no sum of pulses, and less room for them.
  localparam cnt_t Multi = (cnt_t'(1) << COUNTER_ID_MMIO_UR) | (cnt_t'(1) << COUNTER_ID_DB_ACCEPTED) |
                           (cnt_t'(1) << COUNTER_ID_DB_DROP_QPN) | (cnt_t'(1) << COUNTER_ID_DB_DROP_PAGE) |
                           (cnt_t'(1) << COUNTER_ID_DB_DROP_RANGE) | (cnt_t'(1) << COUNTER_ID_RX_DROP_QPN) |
                           (cnt_t'(1) << COUNTER_ID_RX_DROP_QP_TYPE) | (cnt_t'(1) << COUNTER_ID_RX_DROP_QP_STATE) |
                           (cnt_t'(1) << COUNTER_ID_RX_DROP_ADDR) | (cnt_t'(1) << COUNTER_ID_RX_DROP_PKEY);

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

  // First step: take a bank's sum and look up that of the counter. Second step: write the new one.
  logic [6:0] idx_q, idx2_q;                 // counter: b_q * Per + j_q
  logic [$clog2(Banks)-1:0] b_q;
  logic [3:0] j_q;
  logic step, turn_end, round_end, we_q, first_q, first2_q, new_q, a_void_q, b_void_q;
  logic [ByteAccW-1:0] add_q;
  logic [2:0] bsel;
  logic [63:0] sum, new_sum, b_sum;
  assign step      = !a_re_i;
  assign bsel      = byte_sel(idx_q);
  assign turn_end  = j_q == 4'(Per - 1);
  assign round_end = turn_end && 32'(b_q) == Banks - 1;
  assign new_sum   = (first2_q ? 64'd0 : sum) + 64'(add_q);

  // An accumulator is taken with what it gets in that cycle: then it starts from zero, which costs nothing.
  logic [Banks-1:0][SumW-1:0] total;
  for (genvar b = 0; b < Banks; b++) begin : g_bank
    logic [Per-1:0][AccW-1:0] now;
    for (genvar j = 0; j < Per; j++) begin : g_acc
      localparam int unsigned C = b * Per + j;
      if (C < NUM_CNT) begin : g_counter
        localparam bit Sum = Multi[C];
        localparam int unsigned IncW = Sum ? $clog2(NumSrc + 1) : 1;
        localparam int unsigned W = Sum ? AccW : $clog2(Turn + 1);
        logic [NumSrc-1:0] pulses;
        logic [IncW-1:0] inc, inc_q;
        logic [W-1:0] acc_q, next;
        for (genvar s = 0; s < NumSrc; s++) begin : g_src
          assign pulses[s] = cnt_i[s][C];
        end
`ifdef RNIC_CUT_CNT_SUM
        assign inc = IncW'(|pulses);
`else
        assign inc = Sum ? IncW'($countones(pulses)) : IncW'(|pulses);
`endif
        assign next   = acc_q + W'(inc_q);
        assign now[j] = AccW'(next);
        always_ff @(posedge clk_i) begin
          inc_q <= rst_i ? '0 : inc;
          if (rst_i || (step && j_q == 4'(j))) acc_q <= '0;
          else acc_q <= next;
          if (!rst_i && !Sum) a_one_source : assert ((pulses & (pulses - NumSrc'(1))) == '0);
        end
      end else begin : g_none
        assign now[j] = '0;
      end
    end
    logic [SumW-1:0] sums[16];
    assign total[b] = (new_q ? '0 : sums[j_q]) + SumW'(now[j_q]);
    always_ff @(posedge clk_i) if (step) sums[j_q] <= (32'(b_q) == b) ? '0 : total[b];
  end
  logic [NumBytes-1:0][ByteAccW-1:0] byte_now;
  for (genvar c = 0; c < NumBytes; c++) begin : g_bytes
    localparam int unsigned IncW = (c < 2) ? 16 : 13;
    logic [IncW-1:0] inc;
    logic [ByteAccW-1:0] acc_q;
    assign inc         = (c == 0) ? IncW'(rx_bytes_i) : (c == 1) ? IncW'(tx_bytes_i) : (c == 2) ? IncW'(pcie_rd_bytes_i) : IncW'(pcie_wr_bytes_i);
    assign byte_now[c] = acc_q + ByteAccW'(inc);
    always_ff @(posedge clk_i) begin
      if (rst_i || (step && bsel == {1'b1, 2'(c)})) acc_q <= '0;
      else acc_q <= byte_now[c];
    end
  end

  always_ff @(posedge clk_i) begin
    if (step) begin
      add_q    <= bsel[2] ? byte_now[bsel[1:0]] : ByteAccW'(total[b_q]);
      idx2_q   <= idx_q;
      first2_q <= first_q;
      j_q      <= turn_end ? '0 : j_q + 4'd1;
      if (turn_end) b_q <= round_end ? '0 : b_q + 1'b1;
      idx_q    <= round_end ? '0 : idx_q + 7'd1;
      if (turn_end) new_q <= 1'b0;
      if (round_end) first_q <= 1'b0;
    end
    we_q     <= step && 32'(idx_q) < NUM_CNT;
    a_void_q <= first_q || first2_q;
    b_void_q <= first_q || first2_q;
    if (rst_i) begin
      we_q     <= 1'b0;
      idx_q    <= '0;
      j_q      <= '0;
      b_q      <= '0;
      new_q    <= 1'b1;
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
