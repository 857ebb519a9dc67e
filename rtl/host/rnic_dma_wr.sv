// SPDX-License-Identifier: Apache-2.0
// DMA write service: the messages of all write clients become one stream of posted TLPs.
// Contract: a client keeps the way from the first to the last beat of its message; its header is held beside every beat.
// Messages leave in the order in which their last beats were taken, cut at max payload size and 4 KiB, aligned to double words
// with byte enables. A client that is served last stays on the way while nobody else asks, so that its next message follows without
// a pause, on the link, too, when its TLPs have two beats or more; others are served round robin, one message each. Patient clients give way: while another client asks, or goes on, they are
// served once in PatientWait cycles. Of lanes that no byte enable names nothing is promised.
// pending_o: messages taken whole (one of this cycle included) whose last TLP beat is not yet handed over; sent_o: one
// is handed over in this cycle. rq_valid_o does not depend on rq_ready_i.
module rnic_dma_wr
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned DataW = 64,
    parameter int unsigned NumWr = 7,
    parameter logic [NumWr-1:0] Patient = '0,
    parameter int unsigned PatientWait = 256
) (
    input  logic clk_i,
    input  logic rst_i,
    input  logic [10:0] mps_i,
    input  logic [NumWr-1:0] wr_valid_i,
    output logic [NumWr-1:0] wr_ready_o,
    input  dma_wr_hdr_t [NumWr-1:0] wr_hdr_i,
    input  logic [NumWr-1:0][DataW-1:0] wr_data_i,
    input  logic [NumWr-1:0] wr_last_i,
    output logic [3:0] pending_o,
    output logic sent_o,
    output logic rq_want_o,                  // a TLP is under way or about to start (a register)
    output logic rq_valid_o,
    input  logic rq_ready_i,
    output rq_hdr_t rq_hdr_o,
    output logic [DataW-1:0] rq_data_o,
    output logic rq_last_o
);
  localparam int unsigned B = DataW / 8;
  localparam int unsigned LaneW = $clog2(B);
  localparam int unsigned CntW = $clog2(B + 1);
  localparam int unsigned ClW = (NumWr > 1) ? $clog2(NumWr) : 1;
  if ((1 << $clog2(PatientWait)) != PatientWait || PatientWait < 2) begin : g_params
    $fatal(1, "%m: PatientWait must be a power of two, 2 or more");
  end

  // ---------------------------------------------------------------- who is on the way
  logic [ClW-1:0] sel_q, next;
  logic [NumWr-1:0] others, eager, asking;
  logic mid_q, switch_may, switch_now, in_fire;   // mid_q: past the first beat of a message
  logic due, waiting;
  logic [$clog2(PatientWait)-1:0] waited_q;
  // verilator lint_off PINCONNECTEMPTY
  rnic_arb_rr #(.N(NumWr)) u_arb (
      .clk_i, .rst_i, .req_i(asking), .advance_i(switch_now), .lock_i(1'b0), .grant_o(), .idx_o(next)
  );
  // verilator lint_on PINCONNECTEMPTY
  assign others     = wr_valid_i & ~(NumWr'(1) << sel_q);
  assign eager      = others & ~Patient;
  assign waiting    = (others & Patient) != '0;
`ifdef RNIC_CUT_DMA_WR_PATIENT
  assign due        = 1'b1;
`else
  assign due        = waited_q == '1;
`endif
  assign switch_may = (in_fire && wr_last_i[sel_q]) || (!mid_q && !wr_valid_i[sel_q]);
  always_comb begin
    asking = '0;
    if (switch_may) begin
      if (due) asking = others;
      else if (eager != '0) asking = eager;
      // Whether a message follows the one that ends shows a cycle later.
      else if (Patient[sel_q] || !wr_valid_i[sel_q]) asking = others;
    end
  end
  assign switch_now = asking != '0;
  always_ff @(posedge clk_i) begin
    if (rst_i || !waiting || (switch_now && Patient[next])) waited_q <= '0;
    else if (!due) waited_q <= waited_q + 1'b1;
  end

  // ---------------------------------------------------------------- in
  // Each client's beat has a register that is cleared unless it is the one that is taken: what is left to choose among them is
  // an OR.
  typedef struct packed {
    dma_wr_hdr_t      hdr;
    logic [DataW-1:0] data;
  } in_t;
  in_t [NumWr-1:0] st_q;
  // (a length has 13 bits)
  // verilator lint_off UNUSEDSIGNAL
  in_t st;
  // verilator lint_on UNUSEDSIGNAL
  logic st_valid_q, st_first_q, beat_valid, beat_take, beats_ready, split_ready, room;
  assign room       = !st_valid_q || (beats_ready && (!st_first_q || split_ready));
  assign in_fire    = wr_valid_i[sel_q] && room;
  assign wr_ready_o = NumWr'(room) << sel_q;
  always_comb begin
    st = '0;
    for (int unsigned c = 0; c < NumWr; c++) st |= st_q[c];
  end
  always_ff @(posedge clk_i) begin
    if (rst_i) st_valid_q <= 1'b0;
    else if (room) st_valid_q <= wr_valid_i[sel_q];
    if (room) st_first_q <= !mid_q;
    for (int unsigned c = 0; c < NumWr; c++) begin
      if (room && sel_q != ClW'(c)) st_q[c] <= '0;
      else if (room) st_q[c] <= {wr_hdr_i[c], wr_data_i[c]};
    end
  end

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      sel_q <= '0;
      mid_q <= 1'b0;
    end else begin
      if (in_fire) mid_q <= !wr_last_i[sel_q];
      if (switch_now) sel_q <= next;
    end
  end

  // The header of a message takes three cycles to become that of a TLP: as many beats wait here when the link is busy, so that the
  // next message follows without a pause.
  logic [DataW-1:0] beat;
`ifdef RNIC_CUT_DMA_WR_AHEAD
  localparam int unsigned Ahead = 1;
`else
  localparam int unsigned Ahead = 4;
`endif
  // verilator lint_off PINCONNECTEMPTY
  rnic_fifo #(.Width(DataW), .Depth(Ahead)) u_beats (
      .clk_i, .rst_i, .in_valid_i(st_valid_q && (!st_first_q || split_ready)), .in_ready_o(beats_ready),
      .in_data_i(st.data), .out_valid_o(beat_valid), .out_ready_i(beat_take), .out_data_o(beat), .level_o()
  );
  // verilator lint_on PINCONNECTEMPTY
  // ---------------------------------------------------------------- TLPs
  logic piece_valid, piece_ready, piece_last;
  rq_hdr_t piece_hdr;
  logic [1:0] piece_skip;
  // (where the last lane lies is all that matters of its length)
  // verilator lint_off UNUSEDSIGNAL
  logic [10:0] piece_bytes;
  // verilator lint_on UNUSEDSIGNAL
  // verilator lint_off PINCONNECTEMPTY
  rnic_dma_split u_split (
      .clk_i, .rst_i, .max_i(mps_i), .in_valid_i(st_valid_q && st_first_q && beats_ready), .in_ready_o(split_ready),
      .in_addr_i(st.hdr.addr), .in_len_i(13'(st.hdr.len)), .in_meta_i(1'b0), .hold_i(1'b0),
      .out_valid_o(piece_valid), .out_ready_i(piece_ready), .out_hdr_o(piece_hdr), .out_skip_o(piece_skip),
      .out_bytes_o(piece_bytes), .out_last_o(piece_last), .out_meta_o()
  );
  // verilator lint_on PINCONNECTEMPTY

  // Whether the next beat of a TLP takes a beat of the client's is known a cycle ahead: it decides everything behind. It takes
  // none when the TLP ends with what is left over from the beat before: those are as many bytes as the message's address lies
  // behind its double word (first TLP, which begins there) or behind a whole beat (the others, which begin at one).
  localparam int unsigned NumDw = B / 4;
  logic tlp_valid_q, msg_end_q, last_q, need_q, fire, next_last;
  logic begins_q, late_q;                  // the next TLP is the first one of its message; this one is not
  rq_hdr_t hdr_q;
  logic [LaneW-1:0] off_q;                 // of the message's address
  logic [LaneW-1:0] end_d, end_q;          // last lane of this TLP
  logic [10:0] left_q;                     // double words of this TLP
  assign end_d       = LaneW'(piece_bytes) + LaneW'(piece_skip) - LaneW'(1);
  assign next_last   = left_q <= 11'(2 * NumDw);
  assign rq_want_o   = tlp_valid_q;
  assign rq_valid_o  = tlp_valid_q && (!need_q || beat_valid);
  assign fire        = rq_valid_o && rq_ready_i;
  assign beat_take   = fire && need_q;
  assign rq_last_o   = last_q;
  assign rq_hdr_o    = hdr_q;
  assign sent_o      = fire && rq_last_o && msg_end_q;
  assign piece_ready = !tlp_valid_q || (fire && rq_last_o);

  always_ff @(posedge clk_i) begin
    if (piece_ready) begin
      hdr_q     <= piece_hdr;
      hdr_q.wr  <= 1'b1;
`ifdef RNIC_CUT_DMA_WR_BE
      hdr_q.first_be <= 4'hf;
`endif
      if (begins_q) off_q <= {piece_hdr.addr[LaneW-1:2], piece_skip};
      late_q    <= !begins_q;
      left_q    <= piece_hdr.dw_len;
      end_q     <= end_d;
      last_q    <= piece_hdr.dw_len <= 11'(NumDw);
      need_q    <= begins_q || piece_hdr.dw_len > 11'(NumDw) || end_d >= off_q;
      msg_end_q <= piece_last;
    end else if (fire) begin
      left_q <= left_q - 11'(NumDw);
      last_q <= next_last;
      need_q <= !next_last || end_q >= (late_q ? off_q : LaneW'(off_q[1:0]));
    end
    if (rst_i) begin
      tlp_valid_q <= 1'b0;
      begins_q    <= 1'b1;
    end else if (piece_ready) begin
      tlp_valid_q <= piece_valid;
      if (piece_valid) begins_q <= piece_last;
    end
  end

  // The stream is first put on the double words of its address, which is all that the first TLP of a message needs; the others
  // need it turned by whole double words, too, with those that were left over in front. So a TLP that ends and one that begins
  // may share a beat.
  logic [23:0] front_q;                    // bytes left over: the last ones of the beat before
  logic [NumDw-1:0][31:0] even, turned, rest_q, out_data;
  logic [LaneW-3:0] turn;
  assign turn = off_q[LaneW-1:2];
  always_comb begin
    even = DataW'({beat, front_q} >> {2'd3 - off_q[1:0], 3'b000});
    for (int unsigned i = 0; i < NumDw; i++) turned[i] = even[(LaneW-2)'(i)-turn];
    for (int unsigned i = 0; i < NumDw; i++) out_data[i] = !late_q ? even[i] : ((LaneW - 2)'(i) < turn) ? rest_q[i] : turned[i];
  end
  assign rq_data_o = out_data;
  always_ff @(posedge clk_i) if (beat_take) front_q <= beat[DataW-1-:24];
  if (NumDw == 2) begin : g_half
    // Nothing is left over without a turn.
    assign rest_q[1] = '0;
    always_ff @(posedge clk_i) if (beat_take) rest_q[0] <= even[1];
  end else begin : g_rest
    always_ff @(posedge clk_i) if (beat_take) rest_q <= turned;
  end

  // ---------------------------------------------------------------- order
  logic taken;
  logic [3:0] pending_q;
  assign taken     = in_fire && wr_last_i[sel_q];
  assign pending_o = pending_q + 4'(taken) - 4'(sent_o);
  always_ff @(posedge clk_i) begin
    if (rst_i) pending_q <= '0;
    else pending_q <= pending_o;
  end

  logic [12:0] chk_left_q;
  logic [CntW-1:0] in_cnt;
  // (its length)
  // verilator lint_off UNUSEDSIGNAL
  dma_wr_hdr_t hdr;
  // verilator lint_on UNUSEDSIGNAL
  assign hdr    = wr_hdr_i[sel_q];
  assign in_cnt = (wr_last_i[sel_q] && hdr.len[LaneW-1:0] != '0) ? CntW'(hdr.len[LaneW-1:0]) : CntW'(B);
  always_ff @(posedge clk_i) begin
    if (!rst_i && in_fire) begin
      chk_left_q <= (mid_q ? chk_left_q : 13'(hdr.len)) - 13'(in_cnt);
      a_last_where_the_length_ends : assert (wr_last_i[sel_q] == ((mid_q ? chk_left_q : 13'(hdr.len)) <= 13'(B)));
      a_few_messages_inside : assert (!taken || pending_q != 4'hf);
    end
  end
endmodule
