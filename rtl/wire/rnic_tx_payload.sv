// SPDX-License-Identifier: Apache-2.0
// Gathers the payloads of one transmit source: jobs and pieces in, complete jobs with their payload on chip out.
// Contract: in: a job's length (job_valid_i, held until job_push_i tells that the job is taken, which may be when job_ready_o is high; 8 at most are
// under way, so that the latencies of their DMA reads overlap), then pieces that add up to it (none for 0), each held until ready. The next job is
// taken after the pieces of the one before, and only when the buffer has room for the whole job, so that the data of its DMA reads always sinks.
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
    input  logic             job_valid_i,
    output logic             job_ready_o,
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
  localparam int unsigned NumPiece = 16;     // pieces and jobs without any under way
  if (BufBytes < 4096) begin : g_buf
    $fatal(1, "BufBytes must hold one payload");
  end

  // ---------------------------------------------------------------- jobs and pieces: reads go out, order is noted
  logic gathering_q, taken_q;
  typedef struct packed {
    logic             is_inline;
    logic             last;      // of its job
    logic             nothing;   // a job without payload
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
  logic piece_push, room_ok;
  pay_len_t want_q;              // bytes of the job that no piece covers yet
  logic [RoomW-1:0] room_q, room_give;
  logic [RoomW-1:0] need_q;      // of the job that stood there a cycle ago
  logic seen_q;                  // it stands there still

  // Where there is no room for the largest one, a job is looked at for a cycle.
`ifdef RNIC_CUT_TX_ROOM
  assign room_ok  = 1'b1;
`else
  assign room_ok  = room_q >= RoomW'(4096 / Bytes) || (seen_q && room_q >= need_q);
`endif
  // The room that a job takes counts from the cycle after it was taken on.
  assign job_ready_o = !gathering_q && !taken_q && room_ok && note_ready;

  assign rd_req_o       = '{addr: piece_i.addr, len: 16'(piece_i.len)};
  assign rd_req_valid_o = gathering_q && piece_valid_i && !piece_i.is_inline && note_ready;
  assign piece_ready_o  = gathering_q && note_ready && (piece_i.is_inline || rd_req_ready_i);
  assign piece_push     = piece_valid_i && piece_ready_o;
  assign note_push      = piece_push || (job_push_i && job_len_i == '0);
  assign note_in        = '{is_inline: (piece_i.is_inline && !Responses) || !gathering_q, last: piece_i.len == want_q, nothing: !gathering_q, len: piece_i.len,
                            data: piece_data_i};
  /* verilator lint_off PINCONNECTEMPTY */
  rnic_fifo #(.Width(NoteW), .Depth(NumPiece)) u_notes (
      .clk_i, .rst_i, .in_valid_i(note_push), .in_ready_o(note_ready), .in_data_i(note_in[$bits(note_t)-1-:NoteW]),
      .out_valid_o(note_valid), .out_ready_i(note_pop), .out_data_o(note_bits), .level_o()
  );
  /* verilator lint_on PINCONNECTEMPTY */
  assign note_next = Responses ? {note_bits[NoteW-1-:$bits(note_t)-DataW], {DataW {1'b0}}} : note_t'(note_bits);

  always_ff @(posedge clk_i) begin
    need_q <= RoomW'((32'(job_len_i) + Bytes - 1) / Bytes);
    seen_q <= job_valid_i && !job_push_i;
    if (!gathering_q) want_q <= job_len_i;
    else if (piece_push) want_q <= want_q - piece_i.len;
    if (rst_i) begin
      gathering_q <= 1'b0;
      taken_q     <= 1'b0;
      room_q      <= RoomW'(Beats);
    end else begin
      taken_q <= job_push_i;
      if (job_push_i) gathering_q <= job_len_i != '0;
      else if (piece_push && note_in.last) gathering_q <= 1'b0;
      room_q <= room_q - (taken_q ? need_q : '0) + room_give;
    end
  end

  // ---------------------------------------------------------------- bytes into the packer, in the pieces' order
  // The piece at hand stands in a register, and what is left of it counts down.
  pay_len_t left_q;
  // verilator lint_off UNUSEDSIGNAL
  note_t note;                 // (its length is in left_q)
  // verilator lint_on UNUSEDSIGNAL
  logic here_q, gb_valid, gb_ready, fire, piece_end, nothing, packed_valid;
  logic [CntW-1:0] gb_cnt;
  dma_err_e err_q, err;
  assign piece_end      = left_q <= pay_len_t'(Bytes);
  assign gb_cnt         = piece_end ? CntW'(left_q) : CntW'(Bytes);
  assign gb_valid       = here_q && !note.nothing && (note.is_inline || rd_rsp_valid_i);
  assign fire           = gb_valid && gb_ready;
  assign nothing        = here_q && note.nothing && !packed_valid;
  assign note_pop       = note_valid && (!here_q || (fire && piece_end) || nothing);
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
      here_q <= note_pop || (here_q && !(fire && piece_end) && !nothing);
      if (fire) err_q <= (piece_end && note.last) ? DMA_ERR_OK : err;
    end
  end

  // ---------------------------------------------------------------- packed beats into the buffer
  // How the job's reads ended stands beside its last beat. That one holds as many bytes as the lengths of the notes add up to, modulo beats: in the
  // cycle in which its last note goes in, or when it is what the packer had left, a cycle later.
  logic [2:0] verdict_bits;
  dma_err_e verdict;
  logic [DataW-1:0] gb_in, gb_data, beat;
  logic job_end, failed, pay_room, begins_q;
  logic [LaneW-1:0] part, part_now, part_q;  // bytes of the job's last beat, 0: all
  logic [RoomW-1:0] beats_q;             // of the job, in the buffer
  assign verdict  = dma_err_e'(verdict_bits);
  assign part_now = (begins_q ? '0 : part_q) + LaneW'(left_q);
  assign part     = fire ? part_now : part_q;
  always_ff @(posedge clk_i) begin
    if (fire && piece_end) part_q <= part_now;
    if (rst_i) begin
      begins_q <= 1'b1;
      beats_q  <= '0;
    end else begin
      if (fire && piece_end) begins_q <= note.last;
      if (packed_valid) beats_q <= job_end ? '0 : beats_q + RoomW'(1);
    end
  end
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
      .out_ready_i(1'b1), .out_data_o(gb_data), .out_last_o(job_end), .out_meta_o(verdict_bits)
  );
  rnic_ram_fifo #(.Width(DataW), .Depth(Beats)) u_pay (
      .clk_i, .rst_i, .in_valid_i(packed_valid), .in_ready_o(pay_room), .in_data_i(beat),
      .commit_i(packed_valid && job_end && !failed), .rollback_i(packed_valid && job_end && failed),
      .out_valid_o(pay_valid_o), .out_ready_i(pay_ready_i), .out_data_o(pay_data_o)
  );
  assign room_give = RoomW'(pay_valid_o && pay_ready_i) + ((packed_valid && job_end && failed) ? beats_q + RoomW'(1) : '0);

  // Jobs that are complete, in their order.
  logic [2:0] head_err_bits;
  logic done_push, done_ready;
  assign done_push = (packed_valid && job_end) || nothing;
  /* verilator lint_off PINCONNECTEMPTY */
  rnic_fifo #(.Width(3), .Depth(NumJob)) u_done (
      .clk_i, .rst_i, .in_valid_i(done_push), .in_ready_o(done_ready),
      .in_data_i((nothing || !failed) ? DMA_ERR_OK : verdict),
      .out_valid_o(head_valid_o), .out_ready_i(head_pop_i), .out_data_o(head_err_bits), .level_o()
  );
  /* verilator lint_on PINCONNECTEMPTY */
  assign head_err_o = dma_err_e'(head_err_bits);

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      if (job_push_i) a_job_ready : assert (job_valid_i && job_ready_o);
      if (job_push_i) a_job_len : assert (job_len_i <= pay_len_t'(4096));
      if (piece_push) a_pieces_add_up : assert (piece_i.len != '0 && piece_i.len <= want_q);
      if (piece_push && piece_i.is_inline) a_inline_fits : assert (piece_i.len <= pay_len_t'(Bytes));
      if (fire && !note.is_inline) a_read_in_step : assert (rd_rsp_ctl_i.last == piece_end);
      if (packed_valid) a_reserved : assert (pay_room);
      if (done_push) a_done_room : assert (done_ready);
      if (head_pop_i) a_pop_valid : assert (head_valid_o);
      if (piece_push && Responses) a_not_inline : assert (!piece_i.is_inline);
    end
  end
endmodule
