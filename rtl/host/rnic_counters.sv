// SPDX-License-Identifier: Apache-2.0
// Device counters: pulses gather in small accumulators, which never stop and never start anew. They stand in banks whose walkers
// go round together; each looks at one after the other, and keeps a longer count in distributed RAM. In turn, one bank's counts
// go on to 64-bit sums in block RAM. Whoever takes over a count compares it with what it knew: what has come since is the
// difference, modulo its width.
// Contract: no pulse is lost, also when several sources pulse the same counter in one cycle, which only those of Multi do. A sum
// lags by a round through all banks, at most Round + 8 cycles. a_data_o is the sum of a_idx_i in the fourth cycle in which that
// stands beside a_re_i and from then on, and zero a cycle after a_re_i is low; b_data_o is that of b_idx_i one cycle earlier.
// Reset clears: until the first round is over both read as 0.
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
  // A walker comes back after Per cycles: four bits tell up to 15 pulses. An odd number, so that two turns of every other step
  // come to each place once.
  localparam int unsigned Per = 15;
  localparam int unsigned Banks = (NUM_CNT + Per - 1) / Per;
  localparam int unsigned Round = 2 * Banks * Per;        // cycles from one addition to a sum to the next
  localparam int unsigned AccW = (NumSrc > 1) ? $clog2(Per * NumSrc + 1) : 5;
  localparam int unsigned SumW = $clog2(Round * NumSrc + 1);
  localparam int unsigned ByteAccW = 16 + $clog2(Round + 1);
  localparam int unsigned NumBytes = 4;

  // What more than one source counts: the others need no sum of pulses, and less room for them.
  localparam cnt_t Multi = (cnt_t'(1) << COUNTER_ID_MMIO_UR) | (cnt_t'(1) << COUNTER_ID_DB_ACCEPTED) |
                           (cnt_t'(1) << COUNTER_ID_DB_DROP_QPN) | (cnt_t'(1) << COUNTER_ID_DB_DROP_PAGE) |
                           (cnt_t'(1) << COUNTER_ID_DB_DROP_RANGE) | (cnt_t'(1) << COUNTER_ID_RX_DROP_QPN) |
                           (cnt_t'(1) << COUNTER_ID_RX_DROP_QP_TYPE) | (cnt_t'(1) << COUNTER_ID_RX_DROP_QP_STATE) |
                           (cnt_t'(1) << COUNTER_ID_RX_DROP_ADDR) | (cnt_t'(1) << COUNTER_ID_RX_DROP_PKEY);
  // Sums of bytes, which nobody pulses.
  localparam logic [NumBytes-1:0][6:0] ByteIds = {
    7'(COUNTER_ID_PCIE_WR_BYTES), 7'(COUNTER_ID_PCIE_RD_BYTES), 7'(COUNTER_ID_TX_BYTES), 7'(COUNTER_ID_RX_BYTES)
  };
  localparam cnt_t Bytes = (cnt_t'(1) << ByteIds[0]) | (cnt_t'(1) << ByteIds[1]) | (cnt_t'(1) << ByteIds[2]) | (cnt_t'(1) << ByteIds[3]);

  // A pulse moves four bits on to the next of 16 states: a shift costs one look-up table where counting costs five.
  function automatic logic [3:0] after(logic [3:0] s);
    return {s[2:0], s[3] ^ s[2] ^ (s[2:0] == '0)};
  endfunction
  function automatic logic [3:0] number(logic [3:0] s);
    logic [3:0] at, n;
    at = '0;
    n  = '0;
    for (int unsigned i = 0; i < 16; i++) begin
      if (s == at) n = 4'(i);
      at = after(at);
    end
    return n;
  endfunction

  // Steps: look at an accumulator (j_q); count on, and look up its sum when it is its turn (j1_q, b_q, idx_q: b_q * Per + j1_q);
  // add (add_q); write (we_q).
  logic [3:0] j_q, j1_q, j2_q;
  logic [$clog2(Banks)-1:0] b_q;
  logic [6:0] idx_q, idx2_q, idx3_q;
  logic serve_q;                             // every other step of the walkers is taken over to a sum
  logic add_q, we_q, byte_q, turn_end, bank_end, round_end;
  logic new_q, first_q;                      // the first turn, the first round
  assign turn_end  = j1_q == 4'(Per - 1);
  assign bank_end  = turn_end && !serve_q;
  assign round_end = bank_end && 32'(b_q) == Banks - 1;

  logic [Banks-1:0][SumW-1:0] val_q;         // the count that is taken over; 0 of all other banks
  for (genvar b = 0; b < Banks; b++) begin : g_bank
    // What the walker looks at: 0 of all other places.
    logic [Per-1:0][3:0] once;
    logic [Per-1:0][AccW-1:0] many;
    logic [Per-1:0] multi;
    for (genvar j = 0; j < Per; j++) begin : g_acc
      localparam int unsigned C = b * Per + j;
      localparam bit Used = C < NUM_CNT && !Bytes[C%NUM_CNT];
      assign multi[j] = Used && Multi[C%NUM_CNT];
      if (Used) begin : g_counter
        logic [NumSrc-1:0] pulses;
        for (genvar s = 0; s < NumSrc; s++) begin : g_src
          assign pulses[s] = cnt_i[s][C];
        end
        if (Multi[C]) begin : g_many
          localparam int unsigned IncW = $clog2(NumSrc + 1);
          logic [IncW-1:0] inc_q;
          logic [AccW-1:0] acc_q, seen_q;
          assign once[j] = '0;
          assign many[j] = seen_q;
          always_ff @(posedge clk_i) begin
`ifdef RNIC_CUT_CNT_SUM
            inc_q  <= rst_i ? '0 : IncW'(|pulses);
`else
            inc_q  <= rst_i ? '0 : IncW'($countones(pulses));
`endif
            acc_q  <= rst_i ? '0 : acc_q + AccW'(inc_q);
            seen_q <= (rst_i || j_q != 4'(j)) ? '0 : acc_q;
          end
        end else begin : g_once
          logic inc_q;
          logic [3:0] acc_q, seen_q;
          assign once[j] = seen_q;
          assign many[j] = '0;
          always_ff @(posedge clk_i) begin
            inc_q <= !rst_i && |pulses;
            if (rst_i) acc_q <= '0;
            else if (inc_q) acc_q <= after(acc_q);
            seen_q <= (rst_i || j_q != 4'(j)) ? '0 : acc_q;
            if (!rst_i) a_one_source : assert ((pulses & (pulses - NumSrc'(1))) == '0);
          end
        end
      end else begin : g_none
        assign once[j] = '0;
        assign many[j] = '0;
      end
    end
    logic [3:0] one;
    logic [AccW-1:0] now;
    always_comb begin
      one = '0;
      now = '0;
      for (int unsigned j = 0; j < Per; j++) begin
        one |= once[j];
        now |= many[j];
      end
      now[3:0] |= number(one);
    end

    // The low bits become what the accumulator has; when that is less than before, it has passed zero. Four bits, or all of one
    // of Multi.
    logic [SumW-1:0] sums[16];
    logic [SumW-1:0] old_q, total, total_q;
    logic passed, passed_all, is_multi;
    logic [AccW-4:0] mid;
    assign is_multi = multi[j1_q];
    assign passed   = now[3:0] < old_q[3:0];
    assign mid      = {1'b0, old_q[AccW-1:4]} + (AccW - 3)'(passed);
    assign passed_all = is_multi ? {1'b0, now[AccW-1:4]} < mid : mid[AccW-4];
    assign total    = {old_q[SumW-1:AccW] + (SumW - AccW)'(passed_all), is_multi ? now[AccW-1:4] : mid[AccW-5:0], now[3:0]};
    always_ff @(posedge clk_i) begin
      old_q      <= (rst_i || new_q) ? '0 : sums[j_q];
      total_q    <= total;
      val_q[b]   <= (32'(b_q) != b) ? '0 : total;
      sums[j2_q] <= total_q;
    end
  end

  logic [NumBytes-1:0][ByteAccW-1:0] taken_q;
  logic [NumBytes-1:0] take;
  for (genvar c = 0; c < NumBytes; c++) begin : g_bytes
    localparam int unsigned IncW = (c < 2) ? 16 : 13;
    localparam int unsigned W = ByteAccW - 16 + IncW;
    logic [IncW-1:0] inc;
    logic [W-1:0] acc_q, now;
    assign inc     = (c == 0) ? IncW'(rx_bytes_i) : (c == 1) ? IncW'(tx_bytes_i) : (c == 2) ? IncW'(pcie_rd_bytes_i) : IncW'(pcie_wr_bytes_i);
    assign now     = acc_q + W'(inc);
    assign take[c] = serve_q && idx_q == ByteIds[c];
    // Taken with what comes in that cycle: then it starts from zero, which costs nothing.
    always_ff @(posedge clk_i) begin
      acc_q      <= (rst_i || take[c]) ? '0 : now;
      taken_q[c] <= (rst_i || !take[c]) ? '0 : ByteAccW'(now);
    end
  end

  // ---------------------------------------------------------------- sums
  // Looked up in one cycle, added to in the next, written in the third: in the other two the host looks.
  (* no_rw_check *)
  logic [63:0] mem[Banks*Per];
  (* no_rw_check *)
  logic [63:0] copy[Banks*Per];
  logic [63:0] sum, sum_q, copied;
  logic [6:0] raddr;
  logic hit_q;
  logic [SumW-1:0] val, since;
  logic [ByteAccW-1:0] taken, more;
`ifndef FORMAL_ANY_TABLE
  initial
    for (int unsigned i = 0; i < Banks * Per; i++) begin
      mem[i]  = '0;
      copy[i] = '0;
    end
`endif
  always_comb begin
    val   = '0;
    taken = '0;
    for (int unsigned b = 0; b < Banks; b++) val |= val_q[b];
    for (int unsigned c = 0; c < NumBytes; c++) taken |= taken_q[c];
    since = val - sum[SumW-1:0];
    more  = byte_q ? taken : ByteAccW'(since);
  end
  assign raddr    = serve_q ? idx_q : a_idx_i;
  assign b_data_o = hit_q ? sum_q : copied;
  always_ff @(posedge clk_i) begin
    sum    <= first_q ? '0 : mem[raddr];
    copied <= first_q ? '0 : copy[b_idx_i];
    if (we_q) begin
      mem[idx3_q]  <= sum_q;
      copy[idx3_q] <= sum_q;
    end
    hit_q <= we_q && idx3_q == b_idx_i && !first_q;
    if (add_q) sum_q <= sum + 64'(more);
    if (!a_re_i) a_data_o <= '0;
    else if (!add_q) a_data_o <= sum;
    if (!rst_i) a_not_looked_at : assert (!we_q || raddr != idx3_q);
  end

  always_ff @(posedge clk_i) begin
    j_q    <= (j_q == 4'(Per - 1)) ? '0 : j_q + 4'd1;
    j1_q   <= j_q;
    j2_q   <= j1_q;
    byte_q <= take != '0;
    idx2_q <= idx_q;
    idx3_q <= idx2_q;
    if (serve_q) idx_q <= turn_end ? idx_q - 7'(Per - 2) : idx_q + 7'd2;
    if (bank_end) b_q <= b_q + 1'b1;
    if (round_end) begin
      b_q   <= '0;
      idx_q <= '0;
    end
    if (rst_i) begin
      j_q     <= 4'd1;
      j1_q    <= '0;
      b_q     <= '0;
      idx_q   <= '0;
      serve_q <= 1'b1;
      add_q   <= 1'b0;
      we_q    <= 1'b0;
      new_q   <= 1'b1;
      first_q <= 1'b1;
    end else begin
      serve_q <= !serve_q;
      add_q   <= serve_q;
      we_q    <= add_q;
      if (j_q == 4'(Per - 1)) new_q <= 1'b0;
      if (round_end) first_q <= 1'b0;
    end
  end
endmodule
