// SPDX-License-Identifier: Apache-2.0
// Gathers the payloads of one transmit source: jobs and pieces in, complete jobs with their payload on chip out.
// Contract: in: a job's length (job_push_i, 8 jobs under way at most, so that the latencies of their DMA reads overlap), then pieces that add up
// to it (none for 0), each held until ready. Pieces of a job are taken after the job. A DMA read is
// asked for only when the buffer has room for the whole job, so that its data always sinks.
// Out, in the jobs' order: head_valid_o when a job's payload is complete; head_err_o tells that a DMA read
// failed: then there is no payload. head_pop_i: the job leaves; its payload beats (packed, zero above the end) are
// taken apart from it, before or after. From head_valid_o on the payload comes a beat a cycle without gaps.
module rnic_tx_payload
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned DataW = 64,
    parameter int unsigned BufBytes = 8192,  // at least 4096, a power of two
    parameter bit Responses = 1'b0           // the jobs are responses: none of their pieces is inline
) (
    input  logic             clk_i,
    input  logic             rst_i,
    input  logic             job_push_i,
    input  pay_len_t         job_len_i,
    input  logic             piece_valid_i,
    output logic             piece_ready_o,
    input  tx_piece_t        piece_i,
    input  logic [DataW-1:0] piece_data_i,
    output logic             rd_req_valid_o,
    input  logic             rd_req_ready_i,
    output dma_rd_req_t      rd_req_o,
    input  logic             rd_rsp_valid_i,
    output logic             rd_rsp_ready_o,
    input  logic [DataW-1:0] rd_rsp_data_i,
    input  dma_rd_ctl_t      rd_rsp_ctl_i,
    output logic             head_valid_o,
    output dma_err_e         head_err_o,
    input  logic             head_pop_i,
    output logic             pay_valid_o,
    input  logic             pay_ready_i,
    output logic [DataW-1:0] pay_data_o
);
  localparam int unsigned Bytes = DataW / 8;
  localparam int unsigned CntW = $clog2(Bytes + 1);
  localparam int unsigned LaneW = $clog2(Bytes);
  localparam int unsigned Beats = BufBytes / Bytes;
  localparam int unsigned RoomW = $clog2(Beats + 1);
  localparam int unsigned NumJob = 8;
  localparam int unsigned NumPiece = 8;
  if (BufBytes < 4096) begin : g_buf
    $fatal(1, "BufBytes must hold one payload");
  end

  function automatic logic [RoomW-1:0] beats_of(pay_len_t len);
    return RoomW'((32'(len) + Bytes - 1) / Bytes);
  endfunction

  // ---------------------------------------------------------------- jobs
  // Their lengths, for the gathering and the writing side, which run ahead of each other. Neither can be full when there are no more jobs
  // than that.
  logic glen_valid, glen_pop, wlen_valid, wlen_pop;
  pay_len_t glen, wlen;
  /* verilator lint_off PINCONNECTEMPTY */
  logic glen_ready, wlen_ready, done_ready;
  rnic_fifo #(.Width($bits(pay_len_t)), .Depth(NumJob)) u_glen (
      .clk_i, .rst_i, .in_valid_i(job_push_i), .in_ready_o(glen_ready), .in_data_i(job_len_i),
      .out_valid_o(glen_valid), .out_ready_i(glen_pop), .out_data_o(glen), .level_o()
  );
  rnic_fifo #(.Width($bits(pay_len_t)), .Depth(NumJob)) u_wlen (
      .clk_i, .rst_i, .in_valid_i(job_push_i), .in_ready_o(wlen_ready), .in_data_i(job_len_i),
      .out_valid_o(wlen_valid), .out_ready_i(wlen_pop), .out_data_o(wlen), .level_o()
  );

  // ---------------------------------------------------------------- pieces: reads go out, order is noted
  typedef struct packed {
    logic             is_inline;
    logic             last;      // of its job
    pay_len_t         len;
    logic [DataW-1:0] data;
  } note_t;
  // verilator lint_off UNUSEDSIGNAL
  note_t note_in;
  // verilator lint_on UNUSEDSIGNAL
  note_t note_next;
  localparam int unsigned NoteW = Responses ? $bits(note_t) - DataW : $bits(note_t);   // (an inline piece's bytes are the low bits)
  logic [NoteW-1:0] note_bits;
  logic note_push, note_ready, note_valid, note_pop;
  logic gathering_q, start, room_ok;
  pay_len_t want_q;              // bytes of the job that no piece covers yet
  logic [RoomW-1:0] room_q, room_take, room_give;

`ifdef RNIC_CUT_TX_ROOM
  assign room_ok  = 1'b1;
`else
  assign room_ok  = room_q >= beats_of(glen);
`endif
  assign start    = !gathering_q && glen_valid && glen != '0 && room_ok;
  assign glen_pop = start || (!gathering_q && glen_valid && glen == '0);

  assign rd_req_o       = '{addr: piece_i.addr, len: 16'(piece_i.len)};
  assign rd_req_valid_o = gathering_q && piece_valid_i && !piece_i.is_inline && note_ready;
  assign piece_ready_o  = gathering_q && note_ready && (piece_i.is_inline || rd_req_ready_i);
  assign note_push      = piece_valid_i && piece_ready_o;
  assign note_in        = '{is_inline: piece_i.is_inline && !Responses, last: piece_i.len == want_q, len: piece_i.len, data: piece_data_i};
  rnic_fifo #(.Width(NoteW), .Depth(NumPiece)) u_notes (
      .clk_i, .rst_i, .in_valid_i(note_push), .in_ready_o(note_ready), .in_data_i(note_in[$bits(note_t)-1-:NoteW]),
      .out_valid_o(note_valid), .out_ready_i(note_pop), .out_data_o(note_bits), .level_o()
  );
  assign note_next = Responses ? {note_bits[NoteW-1-:$bits(note_t)-DataW], {DataW {1'b0}}} : note_t'(note_bits);

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      gathering_q <= 1'b0;
      want_q      <= '0;
      room_q      <= RoomW'(Beats);
    end else begin
      if (start) begin
        gathering_q <= 1'b1;
        want_q      <= glen;
      end else if (note_push) begin
        want_q <= want_q - piece_i.len;
        if (note_in.last) gathering_q <= 1'b0;
      end
      room_q <= room_q - room_take + room_give;
    end
  end

  // ---------------------------------------------------------------- bytes into the packer, in the pieces' order
  // The piece at hand stands in a register, and what is left of it counts down.
  pay_len_t left_q;
  // verilator lint_off UNUSEDSIGNAL
  note_t note;                 // (its length is in left_q)
  // verilator lint_on UNUSEDSIGNAL
  logic here_q, gb_valid, gb_ready, fire, piece_end;
  logic [CntW-1:0] gb_cnt;
  dma_err_e err_q, err;
  assign piece_end      = left_q <= pay_len_t'(Bytes);
  assign gb_cnt         = piece_end ? CntW'(left_q) : CntW'(Bytes);
  assign gb_valid       = here_q && (note.is_inline || rd_rsp_valid_i);
  assign fire           = gb_valid && gb_ready;
  assign note_pop       = note_valid && (!here_q || (fire && piece_end));
  assign rd_rsp_ready_o = here_q && !note.is_inline && gb_ready;
  always_comb begin
    err = err_q;  // the first one of the job stays
    if (!note.is_inline && rd_rsp_ctl_i.last && err_q == DMA_ERR_OK) err = rd_rsp_ctl_i.err;
  end
  always_ff @(posedge clk_i) begin
    if (note_pop) note <= note_next;
    if (note_pop || fire) left_q <= note_pop ? note_next.len : left_q - pay_len_t'(Bytes);
    if (rst_i) begin
      here_q <= 1'b0;
      err_q  <= DMA_ERR_OK;
    end else begin
      here_q <= note_pop || (here_q && !(fire && piece_end));
      if (fire) err_q <= (piece_end && note.last) ? DMA_ERR_OK : err;
    end
  end

  // ---------------------------------------------------------------- packed beats into the buffer
  // How the job's reads ended stands beside its last beat.
  logic [2:0] verdict_bits;
  dma_err_e verdict;
  logic [DataW-1:0] gb_in, gb_data, beat;
  logic packed_valid, put, job_end, job_empty, failed, pay_room;
  logic [LaneW-1:0] part;                // bytes of the job's last beat, 0: all
  assign verdict   = dma_err_e'(verdict_bits);
  assign job_empty = wlen_valid && wlen == '0;
  assign put       = packed_valid && wlen_valid && !job_empty;
  assign wlen_pop  = job_empty || (put && job_end);
  assign part      = LaneW'(wlen);
`ifdef RNIC_CUT_TX_DMA_ERR
  assign failed = 1'b0;
`else
  assign failed = verdict != DMA_ERR_OK;
`endif
  always_comb begin
    beat = gb_data;
    for (int unsigned i = 1; i < Bytes; i++) if (job_end && part != '0 && LaneW'(i) >= part) beat[8*i+:8] = '0;
  end
`ifdef RNIC_CUT_TX_INLINE
  assign gb_in = rd_rsp_data_i;
`else
  assign gb_in = (note.is_inline && !Responses) ? note.data : rd_rsp_data_i;
`endif
  rnic_packer #(.Bytes(Bytes), .MetaW(3)) u_packer (
      .clk_i, .rst_i, .in_valid_i(gb_valid), .in_ready_o(gb_ready), .in_data_i(gb_in), .in_cnt_i(gb_cnt),
      .in_last_i(piece_end && note.last), .in_meta_i(err), .out_valid_o(packed_valid),
      .out_ready_i(wlen_valid && !job_empty), .out_data_o(gb_data), .out_last_o(job_end), .out_meta_o(verdict_bits)
  );
  rnic_ram_fifo #(.Width(DataW), .Depth(Beats)) u_pay (
      .clk_i, .rst_i, .in_valid_i(put), .in_ready_o(pay_room), .in_data_i(beat),
      .commit_i(put && job_end && !failed), .rollback_i(put && job_end && failed),
      .out_valid_o(pay_valid_o), .out_ready_i(pay_ready_i), .out_data_o(pay_data_o)
  );
  assign room_take = start ? beats_of(glen) : '0;
  assign room_give = RoomW'(pay_valid_o && pay_ready_i) + ((put && job_end && failed) ? beats_of(wlen) : '0);

  // Jobs that are complete, in their order.
  logic [2:0] head_err_bits;
  rnic_fifo #(.Width(3), .Depth(NumJob)) u_done (
      .clk_i, .rst_i, .in_valid_i(wlen_pop), .in_ready_o(done_ready),
      .in_data_i((job_empty || !failed) ? DMA_ERR_OK : verdict),
      .out_valid_o(head_valid_o), .out_ready_i(head_pop_i), .out_data_o(head_err_bits), .level_o()
  );
  /* verilator lint_on PINCONNECTEMPTY */
  assign head_err_o = dma_err_e'(head_err_bits);

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      if (job_push_i) a_job_room : assert (glen_ready && wlen_ready);
      if (job_push_i) a_job_len : assert (job_len_i <= pay_len_t'(4096));
      if (note_push) a_pieces_add_up : assert (piece_i.len != '0 && piece_i.len <= want_q);
      if (note_push && piece_i.is_inline) a_inline_fits : assert (piece_i.len <= pay_len_t'(Bytes));
      if (fire && !note.is_inline) a_read_in_step : assert (rd_rsp_ctl_i.last == piece_end);
      if (put) a_reserved : assert (pay_room);
      if (wlen_pop) a_done_room : assert (done_ready);
      if (head_pop_i) a_pop_valid : assert (head_valid_o);
      if (note_push && Responses) a_not_inline : assert (!piece_i.is_inline);
    end
  end
endmodule
