// SPDX-License-Identifier: Apache-2.0
// Allocator of table indices: which are free, the lowest free ones one by one, and a free aligned range.
// Contract: index 0 and 1 are never free. List: list_start_i with a number that free_cnt_o covers; the lowest free indices
// come out in ascending order, one a cycle plus one cycle per full word, and are taken as they come. Range: search_start_i;
// search_done_o pulses with found_o and start_o (held until the next search) after a cycle per word of the table (at most 32, or table/64) and
// 4 more at most, the lowest
// range is found, nothing is taken. Single: put_* marks one index free or taken. One of the three at a time.
module rnic_qp_alloc
  import rnic_pkg::*;
#(
    parameter int unsigned QpIdxW = 8
) (
    input  logic              clk_i,
    input  logic              rst_i,
    output logic              ready_o,          // low after reset until all is marked free
    output logic [QpIdxW:0]   free_cnt_o,
    // list
    input  logic              list_start_i,
    input  logic [QpIdxW:0]   list_n_i,
    output logic              list_valid_o,
    input  logic              list_ready_i,
    output logic [QpIdxW-1:0] list_idx_o,
    // range
    input  logic              search_start_i,
    input  logic [QpIdxW:0]   search_n_i,
    input  logic [3:0]        search_align_i,   // log2; both held during the search
    output logic              search_done_o,
    output logic              found_o,
    output logic [QpIdxW-1:0] start_o,
    // single
    input  logic              put_valid_i,
    input  logic              put_free_i,
    input  logic [QpIdxW-1:0] put_idx_i
);
  localparam int unsigned LowW = qp_word_log(QpIdxW);
  localparam int unsigned WordB = 1 << LowW;
  localparam int unsigned NumWord = 1 << (QpIdxW - LowW);
  localparam int unsigned WordW = (NumWord > 1) ? $clog2(NumWord) : 1;
  localparam int unsigned PosW = 18;            // positions up to two tables long, without overflow

  logic [WordB-1:0] word;
  logic scan_q;                                 // words are being read
  logic [WordW-1:0] scan_w_q;

  rnic_qp_bitmap #(
      .IdxW(QpIdxW),
      .Ones(1'b1)
  ) u_free (
      .clk_i, .rst_i,
      .fill_i(1'b0), .ready_o,
      .op_valid_i(put_valid_i), .op_set_i(put_free_i), .op_idx_i(put_idx_i),
      // verilator lint_off PINCONNECTEMPTY
      .bit_o(),   // whether an index is free is known before it is put
      // verilator lint_on PINCONNECTEMPTY
      .walk_start_i(list_start_i), .walk_n_i(list_n_i),
      .out_valid_o(list_valid_o), .out_ready_i(list_ready_i), .out_idx_o(list_idx_o),
      .word_rd_i(scan_q), .word_idx_i(scan_w_q), .word_o(word)
  );

  // ---------------------------------------------------------------- how many are free
  logic [QpIdxW:0] free_q;
  assign free_cnt_o = free_q;
  always_ff @(posedge clk_i) begin
    if (rst_i) free_q <= (QpIdxW + 1)'((1 << QpIdxW) - 2);
    else if (list_start_i) free_q <= free_q - list_n_i;
    else if (put_valid_i) free_q <= put_free_i ? free_q + (QpIdxW + 1)'(1) : free_q - (QpIdxW + 1)'(1);
  end

  // ---------------------------------------------------------------- range search, stage A: one word
  // A run of n free bits inside the word is two overlapping runs of p, p the largest power of two up to n.
  logic [LowW:0] n_small;                       // n where it fits a word
  logic          small_n;
  logic [LowW:0] pow_n;
  logic [WordB-1:0] run[LowW+1];                // run[k]: bit i starts 2^k free bits
  logic [WordB-1:0] run_sel;
  logic [WordB-1:0] low_taken, high_taken, drow;
  logic [LowW:0] lead, top;                     // free bits from the bottom; where the free bits at the top begin

  assign small_n = 32'(search_n_i) <= WordB;
  assign n_small = (LowW + 1)'(search_n_i);
  always_comb begin
    run[0] = word;
    for (int unsigned k = 1; k <= LowW; k++) run[k] = run[k-1] & (run[k-1] >> (1 << (k - 1)));
    run_sel = word;
    pow_n   = (LowW + 1)'(1);
    for (int unsigned k = 0; k <= LowW; k++)
      if (n_small[k]) begin
        run_sel = run[k];
        pow_n   = (LowW + 1)'(1 << k);
      end
    // Lowest and highest taken place, each alone (a carry chain, not a chain of multiplexers); then their numbers.
    low_taken = ~word & (word + WordB'(1));
    for (int unsigned i = 0; i < WordB; i++) drow[i] = word[WordB-1-i];
    high_taken = ~drow & (drow + WordB'(1));
    lead = (word == '1) ? (LowW + 1)'(WordB) : '0;
    top  = '0;
    for (int unsigned i = 0; i < WordB; i++) begin
      if (low_taken[i]) lead |= (LowW + 1)'(i);
      if (high_taken[i]) top |= (LowW + 1)'(WordB - i);
    end
  end

  // Places where a range may start.
  logic [WordB-1:0] place;
  logic [15:0] below;                           // 2^align - 1
  always_comb begin
    below = (16'd1 << search_align_i) - 16'd1;
`ifdef RNIC_CUT_QP_ALIGN
    below = 16'd0;
`endif
    for (int unsigned i = 0; i < WordB; i++) place[i] = (below & (16'(scan_w_q) << LowW | 16'(i))) == 16'd0;
  end

  logic a_valid_q, a_last_q, a_full_q;
  logic [WordB-1:0] a_run_q, a_place_q;
  logic [LowW:0] a_lead_q, a_top_q, a_shift_q;
  logic [WordW-1:0] a_w_q;

  // ---------------------------------------------------------------- stage B: hits in the word; a run carried over words
  logic carry_q, b_valid_q, b_last_q, b_carry_hit_q;
  logic [WordB-1:0] b_hits_q;
  logic [PosW-1:0] base, carry_end_q, begin_pos;
  logic [QpIdxW-1:0] carry_start_q, b_base_q, b_start_q;

  assign base = PosW'(a_w_q) << LowW;
  assign begin_pos = (base + PosW'(a_top_q) + PosW'(below)) & ~PosW'(below);

  // ---------------------------------------------------------------- stage C: the lowest of them
  logic [WordB-1:0] first_hit;
  logic [LowW-1:0] in_pos;
  logic hit;
  assign hit = b_valid_q && (b_carry_hit_q || b_hits_q != '0);
  always_comb begin
    first_hit = b_hits_q & (~b_hits_q + WordB'(1));
    in_pos = '0;
    for (int unsigned i = 0; i < WordB; i++) if (first_hit[i]) in_pos |= LowW'(i);
  end

  always_ff @(posedge clk_i) begin
    search_done_o <= 1'b0;
    a_valid_q <= scan_q;
    a_last_q  <= scan_w_q == WordW'(NumWord - 1);
    a_full_q  <= &word;
    a_run_q   <= run_sel;
    a_place_q <= place;
    a_lead_q  <= lead;
    a_top_q   <= top;
    a_shift_q <= n_small - pow_n;
    a_w_q     <= scan_w_q;
    if (scan_q) begin
      scan_w_q <= scan_w_q + WordW'(1);
      if (scan_w_q == WordW'(NumWord - 1)) scan_q <= 1'b0;
    end

    b_valid_q     <= a_valid_q;
    b_last_q      <= a_last_q;
    b_hits_q      <= small_n ? (a_run_q & (a_run_q >> a_shift_q)) & a_place_q : '0;
    b_carry_hit_q <= carry_q && (base + PosW'(a_lead_q) >= carry_end_q);
    b_base_q      <= QpIdxW'(base);
    b_start_q     <= carry_start_q;
    if (a_valid_q && !(a_full_q && carry_q)) begin
      carry_q       <= a_top_q != (LowW + 1)'(WordB);
      carry_start_q <= QpIdxW'(begin_pos);
      carry_end_q   <= begin_pos + PosW'(search_n_i);
    end

    if (hit) begin
      found_o   <= 1'b1;
      start_o   <= b_carry_hit_q ? b_start_q : b_base_q | QpIdxW'(in_pos);
      scan_q    <= 1'b0;
      a_valid_q <= 1'b0;
      b_valid_q <= 1'b0;
    end
    if (hit || (b_valid_q && b_last_q)) search_done_o <= 1'b1;
    if (search_start_i) begin
      scan_q   <= 1'b1;
      scan_w_q <= '0;
      carry_q  <= 1'b0;
      found_o  <= 1'b0;
    end
    if (rst_i) begin
      scan_q        <= 1'b0;
      a_valid_q     <= 1'b0;
      b_valid_q     <= 1'b0;
      search_done_o <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      if (list_start_i) a_list_fits : assert (list_n_i != '0 && list_n_i <= free_q);
      if (put_valid_i) a_not_reserved : assert (put_idx_i > QpIdxW'(1));
    end
  end

`ifdef FORMAL_QP_ALLOC
`include "rnic_qp_alloc.svh"
`endif
endmodule
