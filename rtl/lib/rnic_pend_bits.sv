// SPDX-License-Identifier: Apache-2.0
// A flip-flop per index with a round-robin picker, for small sets whose bits can be cleared from outside (a large one without that: rnic_pend_set).
// Setting is never refused: at most one entry per index.
// Contract: set ports (one per source) set a bit each cycle; pick_valid_o offers one set index, round robin over
// the table; pick_ready_i takes it and clears its bit (a set in that same cycle wins: the bit stays). clr_* clears a
// bit (a set in the same cycle wins; an offer of that index is withdrawn). The offer is made one word (64
// bits) at a time: after a set an index is offered within 2 + (words in between that hold bits) picks.
module rnic_pend_bits #(
    parameter int unsigned IdxW = 8,
    parameter int unsigned NumSet = 2
) (
    input  logic                         clk_i,
    input  logic                         rst_i,
    input  logic [NumSet-1:0]            set_valid_i,
    input  logic [NumSet-1:0][IdxW-1:0]  set_idx_i,
    input  logic                         clr_valid_i,
    input  logic [IdxW-1:0]              clr_idx_i,
    output logic                         pick_valid_o,
    input  logic                         pick_ready_i,
    output logic [IdxW-1:0]              pick_idx_o
);
  localparam int unsigned LowW = (IdxW > 6) ? 6 : IdxW;
  localparam int unsigned WordB = 1 << LowW;
  localparam int unsigned NumWord = 1 << (IdxW - LowW);
  localparam int unsigned WordW = (NumWord > 1) ? $clog2(NumWord) : 1;

  logic [WordB-1:0] pend_q[NumWord];
  logic [NumWord-1:0] any_q;   // summary: word holds a bit (may be stale-high for a cycle)
  logic [WordW-1:0] cur_q;     // word that is being offered
  logic [LowW-1:0] after_q;    // bits below were offered in this visit

  function automatic logic [WordW-1:0] word_of(logic [IdxW-1:0] i);
    return WordW'(i >> LowW);
  endfunction
  // verilator lint_off UNUSEDSIGNAL
  // (only the low bits of an index name a bit of its word)
  function automatic logic [LowW-1:0] bit_of(logic [IdxW-1:0] i);
    return LowW'(i);
  endfunction
  // verilator lint_on UNUSEDSIGNAL

  logic [WordB-1:0] word, word_ahead;
  logic [LowW-1:0] first;
  logic found;
  always_comb begin
    word       = pend_q[cur_q];
    word_ahead = word & ({WordB{1'b1}} << after_q);
    found      = word_ahead != '0;
    first      = '0;
    for (int unsigned i = WordB; i > 0; i--) if (word_ahead[i-1]) first = LowW'(i - 1);
  end

  logic [WordW-1:0] next_word;
  always_comb begin
    next_word = cur_q;
    for (int unsigned k = NumWord; k > 0; k--) begin
      automatic logic [WordW-1:0] w = WordW'((32'(cur_q) + k) % NumWord);
      if (any_q[w]) next_word = w;
    end
  end

  assign pick_valid_o = found;
  assign pick_idx_o   = IdxW'(IdxW'(cur_q) << LowW) | IdxW'(first);

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      for (int unsigned w = 0; w < NumWord; w++) pend_q[w] <= '0;
      any_q   <= '0;
      cur_q   <= '0;
      after_q <= '0;
    end else begin
      // Later statements win: clears first, sets last.
      if (!found) begin
        if (word == '0) any_q[cur_q] <= 1'b0;
        cur_q   <= next_word;
        after_q <= '0;
      end
      if (clr_valid_i) pend_q[word_of(clr_idx_i)][bit_of(clr_idx_i)] <= 1'b0;
      if (found && pick_ready_i) begin
        pend_q[cur_q][first] <= 1'b0;
        if (first == LowW'(WordB - 1)) begin
          cur_q   <= next_word;
          after_q <= '0;
        end else begin
          after_q <= first + LowW'(1);
        end
      end
      for (int unsigned s = 0; s < NumSet; s++) begin
        if (set_valid_i[s]) begin
          pend_q[word_of(set_idx_i[s])][bit_of(set_idx_i[s])] <= 1'b1;
          any_q[word_of(set_idx_i[s])] <= 1'b1;
        end
      end
    end
  end
endmodule
