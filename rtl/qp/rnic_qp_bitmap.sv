// SPDX-License-Identifier: Apache-2.0
// A bit per QP in words of up to 64 (qp_word_log), with a walker that hands out the set bits in ascending order and clears them.
// Contract: one of four things at a time (an assertion holds the user to it): a fill (after reset and after fill_i:
// a cycle per word, ready_o low), single-bit operations (one a cycle; bit_o is the bit before the operation, in the same
// cycle), a walk (walk_start_i with the number of bits wanted, never more than are set; one bit a cycle plus one
// cycle per empty word; the stream ends by itself), or reading whole words (word_rd_i; same cycle).
module rnic_qp_bitmap
  import rnic_pkg::*;
#(
    parameter int unsigned IdxW = 8,
    parameter bit Ones = 1'b0,             // a fill sets every bit but those of index 0 and 1; else it clears all
    localparam int unsigned LowW = qp_word_log(IdxW),
    localparam int unsigned WordB = 1 << LowW,
    localparam int unsigned NumWord = 1 << (IdxW - LowW),
    localparam int unsigned WordW = (NumWord > 1) ? $clog2(NumWord) : 1
) (
    input  logic             clk_i,
    input  logic             rst_i,
    input  logic             fill_i,
    output logic             ready_o,      // neither filling nor walking
    input  logic             op_valid_i,
    input  logic             op_set_i,
    input  logic [IdxW-1:0]  op_idx_i,
    output logic             bit_o,
    input  logic             walk_start_i,
    input  logic [IdxW:0]    walk_n_i,     // 1 or more
    output logic             out_valid_o,
    input  logic             out_ready_i,
    output logic [IdxW-1:0]  out_idx_o,
    input  logic             word_rd_i,
    input  logic [WordW-1:0] word_idx_i,
    output logic [WordB-1:0] word_o
);
  typedef enum logic [1:0] {
    ST_FILL,   // a word a cycle gets its start value
    ST_IDLE,   // single bits and whole words
    ST_WALK    // handing out
  } state_e;
  state_e state_q;

  logic [WordB-1:0] mem[NumWord];
  logic [WordW-1:0] low_q;                 // words below hold no set bit; a walk starts here
  logic [WordW-1:0] fill_q;
  logic [IdxW:0]    left_q;
  logic             out_valid_q;
  logic [IdxW-1:0]  out_idx_q;

  function automatic logic [WordW-1:0] word_of(logic [IdxW-1:0] i);
    return WordW'(i >> LowW);
  endfunction

  logic [WordW-1:0] ra, wa;
  logic [WordB-1:0] word, word_new, op_bit, first_bit;
  logic [LowW-1:0] first;
  logic we, emit, out_take;

  always_comb begin
    ra = word_of(op_idx_i);
    if (word_rd_i) ra = word_idx_i;
    if (state_q == ST_WALK) ra = low_q;
  end
  assign word      = mem[ra];
  assign word_o    = word;
  assign op_bit    = WordB'(1) << op_idx_i[LowW-1:0];
  assign bit_o     = |(word & op_bit);
  assign first_bit = word & (~word + WordB'(1));
  always_comb begin
    first = '0;
    for (int unsigned i = 0; i < WordB; i++) if (first_bit[i]) first |= LowW'(i);
  end

  assign emit = (state_q == ST_WALK) && (left_q != '0) && (word != '0) && (!out_valid_q || out_take);

  always_comb begin
    we       = 1'b0;
    wa       = ra;
    word_new = op_set_i ? (word | op_bit) : (word & ~op_bit);
    unique case (state_q)
      ST_FILL: begin
        we       = 1'b1;
        wa       = fill_q;
        word_new = Ones ? ~((fill_q == '0) ? WordB'(3) : WordB'(0)) : '0;
      end
      ST_WALK: begin
        we       = emit;
        word_new = word & ~first_bit;
      end
      default: we = op_valid_i;
    endcase
  end

  // A skid keeps the taker's ready out of the search for the next bit.
  rnic_skid #(
      .Width(IdxW)
  ) u_skid (
      .clk_i, .rst_i,
      .in_valid_i(out_valid_q), .in_ready_o(out_take), .in_data_i(out_idx_q),
      .out_valid_o, .out_ready_i, .out_data_o(out_idx_o)
  );
  assign ready_o = (state_q == ST_IDLE) && !out_valid_q && !out_valid_o;

  always_ff @(posedge clk_i) begin
    if (we) mem[wa] <= word_new;
    if (emit) out_idx_q <= IdxW'(IdxW'(low_q) << LowW) | IdxW'(first);
    if (rst_i) begin
      state_q     <= ST_FILL;
      fill_q      <= '0;
      low_q       <= '0;
      left_q      <= '0;
      out_valid_q <= 1'b0;
    end else begin
      if (out_take) out_valid_q <= 1'b0;
      unique case (state_q)
        ST_FILL: begin
          fill_q <= fill_q + WordW'(1);
          low_q  <= '0;
          if (fill_q == WordW'(NumWord - 1)) begin
            fill_q  <= '0;
            state_q <= ST_IDLE;
          end
        end
        ST_WALK: begin
          if (emit) begin
            out_valid_q <= 1'b1;
            left_q      <= left_q - (IdxW + 1)'(1);
          end
          if (left_q == '0 || (emit && left_q == (IdxW + 1)'(1))) state_q <= ST_IDLE;
          else if (word == '0) low_q <= low_q + WordW'(1);
        end
        default: begin
          if (op_valid_i && op_set_i && ra < low_q) low_q <= ra;
          if (fill_i) state_q <= ST_FILL;
          if (walk_start_i) begin
            state_q <= ST_WALK;
            left_q  <= walk_n_i;
          end
        end
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      if (state_q != ST_IDLE) a_one_thing_at_a_time : assert (!op_valid_i && !walk_start_i && !fill_i && !word_rd_i);
      if (op_valid_i) a_op_alone : assert (!walk_start_i && !fill_i && !word_rd_i);
      if (state_q == ST_WALK && left_q != '0 && word == '0) a_enough_bits : assert (low_q != WordW'(NumWord - 1));
    end
  end
endmodule
