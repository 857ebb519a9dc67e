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
  dma_wr_hdr_t hdr;
  logic gb_valid, gb_ready, beats_ready, split_ready, room;
  logic [CntW-1:0] in_cnt, gb_cnt;
  logic [LaneW-1:0] part;                  // bytes of the last beat, 0: all
  assign hdr        = wr_hdr_i[sel_q];
  assign room       = beats_ready && (mid_q || split_ready);
  assign in_fire    = wr_valid_i[sel_q] && room;
  assign wr_ready_o = NumWr'(room) << sel_q;
  assign part       = LaneW'(hdr.len);
  assign in_cnt     = (wr_last_i[sel_q] && part != '0) ? CntW'(part) : CntW'(B);

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
  logic [DataW-1:0] gb_in, gb_data;
`ifdef RNIC_CUT_DMA_WR_AHEAD
  localparam int unsigned Ahead = 1;
`else
  localparam int unsigned Ahead = 4;
`endif
  // verilator lint_off PINCONNECTEMPTY
  rnic_fifo #(.Width(CntW + DataW), .Depth(Ahead)) u_beats (
      .clk_i, .rst_i, .in_valid_i(wr_valid_i[sel_q] && (mid_q || split_ready)), .in_ready_o(beats_ready),
      .in_data_i({in_cnt, wr_data_i[sel_q]}), .out_valid_o(gb_valid), .out_ready_i(gb_ready), .out_data_o({gb_cnt, gb_in}), .level_o()
  );
  // verilator lint_on PINCONNECTEMPTY
  logic [CntW-1:0] avail, want;
  logic fire;
  rnic_gearbox #(.Bytes(B)) u_gb (
      .clk_i, .rst_i, .clear_i(1'b0), .in_valid_i(gb_valid), .in_ready_o(gb_ready), .in_data_i(gb_in), .in_cnt_i(gb_cnt), .out_data_o(gb_data), .avail_o(avail), .take_i(fire), .take_cnt_i(want)
  );

  // ---------------------------------------------------------------- TLPs
  logic piece_valid, piece_ready, piece_last;
  rq_hdr_t piece_hdr;
  logic [1:0] piece_skip;
  logic [10:0] piece_bytes;
  // verilator lint_off PINCONNECTEMPTY
  rnic_dma_split u_split (
      .clk_i, .rst_i, .max_i(mps_i), .in_valid_i(wr_valid_i[sel_q] && !mid_q && beats_ready), .in_ready_o(split_ready),
      .in_addr_i(hdr.addr), .in_len_i(13'(hdr.len)), .in_meta_i(1'b0), .hold_i(1'b0),
      .out_valid_o(piece_valid), .out_ready_i(piece_ready), .out_hdr_o(piece_hdr), .out_skip_o(piece_skip),
      .out_bytes_o(piece_bytes), .out_last_o(piece_last), .out_meta_o()
  );
  // verilator lint_on PINCONNECTEMPTY

  // How many bytes the next beat takes is known a cycle ahead: whether they are there decides everything behind.
  logic tlp_valid_q, msg_end_q, last_q;
  rq_hdr_t hdr_q;
  logic [1:0] skip_q;                      // lanes of the next beat that stay free in front
  logic [10:0] left_q, left_after;         // bytes of this TLP
  logic [CntW-1:0] want_q, lanes;
  assign want        = want_q;
  assign lanes       = CntW'(B) - CntW'(piece_skip);
  assign left_after  = left_q - 11'(want_q);
  assign rq_want_o   = tlp_valid_q;
  assign rq_valid_o  = tlp_valid_q && avail >= want;
  assign fire        = rq_valid_o && rq_ready_i;
  assign rq_last_o   = last_q;
  assign rq_data_o   = gb_data << {skip_q, 3'b000};
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
      skip_q    <= piece_skip;
      left_q    <= piece_bytes;
      want_q    <= (piece_bytes > 11'(lanes)) ? lanes : CntW'(piece_bytes);
      last_q    <= piece_bytes <= 11'(lanes);
      msg_end_q <= piece_last;
    end else if (fire) begin
      skip_q <= '0;
      left_q <= left_after;
      want_q <= (left_after > 11'(B)) ? CntW'(B) : CntW'(left_after);
      last_q <= left_after <= 11'(B);
    end
    if (rst_i) tlp_valid_q <= 1'b0;
    else if (piece_ready) tlp_valid_q <= piece_valid;
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
  always_ff @(posedge clk_i) begin
    if (!rst_i && in_fire) begin
      chk_left_q <= (mid_q ? chk_left_q : 13'(hdr.len)) - 13'(in_cnt);
      a_last_where_the_length_ends : assert (wr_last_i[sel_q] == ((mid_q ? chk_left_q : 13'(hdr.len)) <= 13'(B)));
      a_few_messages_inside : assert (!taken || pending_q != 4'hf);
    end
  end
endmodule
