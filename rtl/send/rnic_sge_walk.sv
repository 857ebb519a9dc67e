// SPDX-License-Identifier: Apache-2.0
// Walks the scatter/gather list (or the inline data) of a cached WQE: adds up lengths, judges keys, gives pieces.
// Contract: req_i.start is a pulse with the request beside it; res_o.done pulses when the walk has ended, err and sum
// beside it. The bytes [off, off+len) must lie inside the list, else the walk ends with MR_ERR_RANGE. Pieces come in order, are never
// refused (the taker has room for a whole packet: two pieces an SGE, since a piece ends at the end of its page), and are void when the walk ends with an error; piece_last_o marks the last.
// At 64 bits inline pieces come every other cycle, others have three cycles for themselves at least.
// Inline pieces hold at most InlineB bytes, from lane 0 up; off must be a multiple of 32 then.
module rnic_sge_walk
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
  import rnic_send_pkg::*;
#(
    parameter int unsigned DataW = 64,
    localparam int unsigned Bytes = DataW / 8,
    localparam int unsigned InlineB = (Bytes < 32) ? Bytes : 32
) (
    input  logic                   clk_i,
    input  logic                   rst_i,
    input  walk_req_t              req_i,
    input  logic [15:0]            pd_i,          // of the keys; steady
    output walk_res_t              res_o,
    output line_rd_t               rd_o,
    input  logic [DataW-1:0]       rd_data_i,
    output logic                   mr_req_valid_o,
    input  logic                   mr_req_ready_i,
    output mr_req_t                mr_req_o,
    input  logic                   mr_rsp_valid_i,
    input  mr_rsp_t                mr_rsp_i,
    output logic                   piece_valid_o,
    output tx_piece_t              piece_o,
    output logic [8*InlineB-1:0]   piece_data_o,
    output logic                   piece_last_o
);
  localparam int unsigned PerBeat = (DataW >= 128) ? DataW / 128 : 1;  // SGEs in a beat

  typedef enum logic [2:0] {
    W_IDLE,
    W_LOW,     // 64 bits only: the SGE's second half is asked for
    W_SGE,     // the SGE is here
    W_EVAL,    // does it hold bytes of the range?
    W_ASK,     // key look-up
    W_ANSWER,
    W_INLINE   // a beat of inline data is here
  } state_e;
  state_e state_q, state_d;

  // Offset and length are counted elsewhere.
  // verilator lint_off UNUSEDSIGNAL
  walk_req_t r_q;
  // verilator lint_on UNUSEDSIGNAL
  sge_t sge_q, sge_now;
  logic [4:0] i_q, i_next;      // SGE
  logic [9:0] off_q;            // of the inline data to come
  // Sum of the lengths so far; or the complement of the bytes before the range in this and later SGEs: then adding an SGE's length
  // tells by the sign whether it ends before the range, gives the complement for the next one, and with 1 more what the range has
  // room for in this one.
  logic [35:0] acc_q, acc;
  // verilator lint_off UNUSEDSIGNAL
  logic carry;
  // verilator lint_on UNUSEDSIGNAL
  logic [31:0] left_q, left;    // bytes of the range still to come
  logic [31:0] room, take, take_q, got;   // take_q: what was asked for; of inline data a whole piece
  logic all, all_q;             // it is all that is left of the range
  logic whole;                  // and the answer holds for all of it
  logic is_sum, more_inline, pause_q;

  // ---------------------------------------------------------------- reading the line
  function automatic logic [6:0] beat_of(logic [4:0] i);
    return (DataW >= 128) ? 7'((32'(i) + 2) / PerBeat) : 7'(4 + 2 * 32'(i));
  endfunction
  if (DataW >= 128) begin : g_wide
    localparam int unsigned LaneW = (PerBeat > 1) ? $clog2(PerBeat) : 1;
    logic [PerBeat-1:0][127:0] sges;
    assign sges    = rd_data_i;
    assign sge_now = sge_t'((PerBeat > 1) ? sges[LaneW'(i_q + 5'd2)] : sges[0]);
  end else begin : g_narrow
    logic [63:0] addr_q;
    always_ff @(posedge clk_i) if (state_q == W_LOW) addr_q <= rd_data_i;
    assign sge_now = sge_t'({rd_data_i, addr_q});
  end

  // Inline data: byte 32 + off of the WQE.
  logic [9:0] inl_pos;
  assign inl_pos = 10'd32 + off_q;
  logic half_q;
  if (InlineB < Bytes) begin : g_half
    assign piece_data_o = half_q ? rd_data_i[DataW/2+:8*InlineB] : rd_data_i[0+:8*InlineB];
  end else begin : g_whole
    logic unused_half;
    assign unused_half  = half_q;
    assign piece_data_o = rd_data_i[8*InlineB-1:0];
  end

  assign i_next      = i_q + 5'd1;
  assign is_sum      = r_q.mode == WALK_SUM;
  // (The lowest bit carries the 1 into one adder: a sum of three would be two.)
  assign {acc, carry} = {acc_q, 1'b1} + {(state_q == W_ANSWER) ? ~36'(mr_rsp_i.room) : 36'(sge_q.length), state_q != W_EVAL};
  assign room        = acc[31:0];
  assign all         = left_q <= room;
  assign take        = all ? left_q : room;
  // A piece ends where the page does; what has no address is judged at once.
`ifdef RNIC_CUT_WALK_PAGE
  assign whole       = 1'b1;
`else
  assign whole       = r_q.mode inside {WALK_CHECK, WALK_INLINE} || (take_q[31:13] == '0 && take_q[12:0] <= mr_rsp_i.room);
`endif
  assign got         = whole ? take_q : 32'(mr_rsp_i.room);
  assign more_inline = left_q > InlineB;
  assign left        = left_q - got;

  always_comb begin
    state_d        = state_q;
    res_o          = '0;
    res_o.err      = MR_ERR_OK;
    res_o.sum      = acc_q;
    rd_o           = '{valid: 1'b0, line: r_q.line, beat: beat_of(i_q)};
    mr_req_valid_o = 1'b0;
    mr_req_o       = '{key: sge_q.lkey, va: sge_q.addr + {32'd0, ~acc_q[31:0]}, len: take, pd: pd_i, qpn: '0, access: r_q.access, judge: r_q.mode == WALK_CHECK};
    piece_valid_o  = 1'b0;
    piece_o        = '{addr: mr_rsp_i.addr, len: pay_len_t'(got), is_inline: 1'b0};
    piece_last_o   = whole && all_q;
    case (state_q)
      W_IDLE:
      if (req_i.start) begin
        if (req_i.mode == WALK_INLINE) begin
          rd_o    = '{valid: 1'b1, line: req_i.line, beat: 7'((10'd32 + req_i.off[9:0]) / 10'(Bytes))};
          state_d = W_INLINE;
        end else begin
          rd_o    = '{valid: 1'b1, line: req_i.line, beat: beat_of('0)};
          state_d = (DataW >= 128) ? W_SGE : W_LOW;
        end
      end
      W_LOW: begin
        rd_o.valid = 1'b1;
        rd_o.beat  = beat_of(i_q) + 7'd1;
        state_d    = W_SGE;
      end
      W_SGE: state_d = W_EVAL;
      W_EVAL: begin
        // Also the way on to the next SGE, and the end of the list.
        if (i_q == r_q.nsge || (!is_sum && left_q == '0)) begin
          res_o.done = 1'b1;
          res_o.err  = (!is_sum && left_q != '0) ? MR_ERR_RANGE : MR_ERR_OK;
          state_d    = W_IDLE;
        end else if (!is_sum && !acc[35]) begin
          state_d = W_ASK;
        end else begin
          rd_o.valid = 1'b1;
          rd_o.beat  = beat_of(i_next);
          state_d    = (DataW >= 128) ? W_SGE : W_LOW;
        end
      end
      W_ASK: begin
        mr_req_valid_o = 1'b1;
        if (mr_req_ready_i) state_d = W_ANSWER;
      end
      W_ANSWER:
      if (mr_rsp_valid_i) begin
        if (mr_rsp_i.err != MR_ERR_OK) begin
          res_o.done = 1'b1;
          res_o.err  = mr_rsp_i.err;
          state_d    = W_IDLE;
        end else begin
          piece_valid_o = r_q.mode == WALK_PIECES;
          if (piece_last_o) begin
            res_o.done = 1'b1;
            state_d    = W_IDLE;
          end else if (!whole) begin
            state_d    = (DataW == 64) ? W_EVAL : W_ASK;   // (and by it back to W_ASK: three cycles for the piece)
          end else begin
            rd_o.valid = 1'b1;
            rd_o.beat  = beat_of(i_next);
            state_d    = (DataW >= 128) ? W_SGE : W_LOW;
          end
        end
      end
      default:
      if (!pause_q) begin  // W_INLINE
        piece_valid_o     = 1'b1;
        piece_o.is_inline = 1'b1;   // (with an address that nobody looks at)
        if (!more_inline) piece_o.len[$clog2(InlineB+1)-1:0] = left_q[$clog2(InlineB+1)-1:0];
        piece_last_o      = !more_inline;
        rd_o.valid        = more_inline;
        rd_o.beat         = 7'((inl_pos + 10'(InlineB)) / 10'(Bytes));
        if (!more_inline) begin
          res_o.done = 1'b1;
          state_d    = W_IDLE;
        end
      end
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (rst_i) state_q <= W_IDLE;
    else state_q <= state_d;
    pause_q <= DataW == 64 && state_q == W_INLINE && !pause_q;
    case (state_q)
      W_IDLE: begin
        r_q    <= req_i;
        i_q    <= '0;
        off_q  <= req_i.off[9:0];
        acc_q  <= (req_i.mode == WALK_SUM) ? '0 : ~36'(req_i.off);
        left_q <= req_i.len;
        take_q <= InlineB;
        half_q <= !req_i.off[5];  // byte 32 stands in the upper half of a 64-byte beat
      end
      W_SGE: sge_q <= sge_now;
      W_EVAL:
      if (state_d != W_ASK && state_d != W_IDLE) begin
        i_q    <= i_next;
        acc_q  <= acc;
      end
      W_ASK: begin
        take_q <= take;
        all_q  <= all;
      end
      W_ANSWER:
      if (mr_rsp_valid_i) begin
        left_q <= left;
        acc_q  <= acc;
        if (whole) i_q <= i_next;
      end
      W_INLINE:
      if (!pause_q) begin
        off_q  <= off_q + 10'(InlineB);
        left_q <= left;
        half_q <= !half_q;
      end
      default: ;
    endcase
    if (state_q == W_ANSWER && mr_rsp_valid_i && whole) acc_q <= '1;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      a_idle : assert (!req_i.start || state_q == W_IDLE);
      if (req_i.start && req_i.mode == WALK_INLINE) a_inline : assert (req_i.off[4:0] == '0 && req_i.len != '0);
      if (mr_req_valid_o) a_not_empty : assert (take != '0);
    end
  end
endmodule
