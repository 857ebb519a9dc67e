// SPDX-License-Identifier: Apache-2.0
// A set of indices with a round-robin picker: "this QP has something to do". Setting is never refused, so no queue can fill.
// Contract: each set port (one per source) puts an index in each cycle. pick_valid_o offers one and keeps offering it until pick_ready_i takes it. What
// was put in is offered at least once after that cycle; an index that is put in several times before its row is looked at, once only; one that is put in
// while it is being offered, or waits in the row under way, once more. Rows take turns, so that each index is offered after one pass of the others at most.
// Empty, an index is offered in the next cycle, and after a row has come to its end one cycle is lost.
// Each port keeps rows of bits in distributed RAM and tells in a flip-flop per row whether the row holds anything; without that its bits do not count, so
// that taking a row out is one cleared flip-flop, and reset needs no sweep.
module rnic_pend_set #(
    parameter int unsigned IdxW = 8,
    parameter int unsigned NumSet = 2
) (
    input  logic                         clk_i,
    input  logic                         rst_i,
    input  logic [NumSet-1:0]            set_valid_i,
    input  logic [NumSet-1:0][IdxW-1:0]  set_idx_i,
    output logic                         pick_valid_o,
    input  logic                         pick_ready_i,
    output logic [IdxW-1:0]              pick_idx_o
);
  localparam int unsigned ColW = (IdxW + 1) / 2;
  localparam int unsigned NumCol = 1 << ColW;
  localparam int unsigned NumRow = 1 << (IdxW - ColW);
  localparam int unsigned RowW = (NumRow > 1) ? $clog2(NumRow) : 1;
  typedef logic [NumCol-1:0] row_t;

  // ---------------------------------------------------------------- what waits
  logic [NumSet-1:0][NumRow-1:0] held_q;   // the row holds something
  row_t [NumSet-1:0] found;                // what each port holds of the row that comes next
  logic [NumRow-1:0] waiting, beyond;
  logic [RowW-1:0] row_q, next;
  row_t work_q, merged, first;
  logic empty, fetch;
  logic [NumSet-1:0] direct;
  logic [ColW-1:0] col;

  always_comb begin
    waiting = '0;
    for (int unsigned s = 0; s < NumSet; s++) waiting |= held_q[s];
  end
  // The next row beyond the last one, else the lowest.
  always_comb begin
    for (int unsigned r = 0; r < NumRow; r++) beyond[r] = waiting[r] && RowW'(r) > row_q;
    next = '0;
    for (int unsigned r = NumRow; r > 0; r--) if ((beyond != '0) ? beyond[r-1] : waiting[r-1]) next = RowW'(r - 1);
  end
  assign empty = work_q == '0;
  assign fetch = empty && waiting != '0;
  // Into an empty set the first port's index goes without a detour.
  always_comb begin
    direct = '0;
    for (int unsigned s = NumSet; s > 0; s--) if (set_valid_i[s-1]) direct = NumSet'(1) << (s - 1);
    if (!empty || waiting != '0) direct = '0;
  end

  always_comb begin
    merged = '0;
    for (int unsigned s = 0; s < NumSet; s++) merged |= found[s];
  end
  for (genvar s = 0; s < NumSet; s++) begin : g_port
    (* ram_style = "distributed" *)
    row_t rows_q[NumRow];
    logic [RowW-1:0] row;
    row_t bit_in, old;
    assign row      = RowW'(set_idx_i[s] >> ColW);
    assign bit_in   = row_t'(1) << ColW'(set_idx_i[s]);
    // A row that is being taken out begins anew.
    assign old      = (held_q[s][row] && !(fetch && row == next)) ? rows_q[row] : '0;
    assign found[s] = held_q[s][next] ? rows_q[next] : '0;
    always_ff @(posedge clk_i) begin
      if (set_valid_i[s] && !direct[s]) rows_q[row] <= old | bit_in;
    end
    always_ff @(posedge clk_i) begin
      if (rst_i) begin
        held_q[s] <= '0;
      end else begin
        if (fetch) held_q[s][next] <= 1'b0;
        if (set_valid_i[s] && !direct[s]) held_q[s][row] <= 1'b1;   // wins over the line before
      end
    end
  end

  // ---------------------------------------------------------------- the row under way
  assign pick_valid_o = !empty;
  always_comb begin
    col = '0;
    for (int unsigned c = NumCol; c > 0; c--) if (work_q[c-1]) col = ColW'(c - 1);
    first = row_t'(1) << col;
  end
  assign pick_idx_o = IdxW'({row_q, col});

  logic [IdxW-1:0] direct_idx;
  always_comb begin
    direct_idx = '0;
    for (int unsigned s = 0; s < NumSet; s++) if (direct[s]) direct_idx |= set_idx_i[s];
  end
  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      work_q <= '0;
      row_q  <= '0;
    end else if (fetch) begin
      work_q <= merged;
      row_q  <= next;
    end else if (direct != '0) begin
      work_q <= row_t'(1) << ColW'(direct_idx);
      row_q  <= RowW'(direct_idx >> ColW);
    end else if (pick_ready_i) begin
      work_q <= work_q & ~first;
    end
  end

  // A held row has a bit: what is fetched is never nothing.
  always_ff @(posedge clk_i) begin
    if (!rst_i && fetch) a_fetched : assert (merged != '0);
  end
`ifdef FORMAL_PEND_SET
`include "rnic_pend_set.svh"
`endif
endmodule
