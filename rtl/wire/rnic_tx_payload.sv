// SPDX-License-Identifier: Apache-2.0
// Gathers the payloads of one transmit source: jobs and pieces in, complete jobs with their payload on chip out.
// Contract: in: a job, then pieces that add up to its payload_len (none for 0); each held until ready. Pieces of a job
// are taken after the job; up to 8 jobs are under way, so that the latencies of their DMA reads overlap. A DMA read is
// asked for only when the buffer has room for the whole job, so that its data always sinks.
// Out, in the jobs' order: head_valid_o with the job when its payload is complete; head_err_o tells that a DMA read
// failed: then there is no payload. Fields of the other kind of job are zero. head_pop_i removes the job; its payload beats (packed, zero above the end) are
// taken apart from it, before or after. From head_valid_o on the payload comes a beat a cycle without gaps.
module rnic_tx_payload
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned DataW = 64,
    parameter int unsigned BufBytes = 8192,  // at least 4096, a power of two
    parameter bit Responses = 1'b0           // the jobs are responses, else requests: fields of the other kind are not kept
) (
    input  logic             clk_i,
    input  logic             rst_i,
    input  logic             job_valid_i,
    output logic             job_ready_o,
    // (of it, what its kind has)
    // verilator lint_off UNUSEDSIGNAL
    input  tx_job_t          job_i,
    // verilator lint_on UNUSEDSIGNAL
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
    output tx_job_t          head_job_o,
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
  // One queue of jobs until they leave, and the lengths once more for the gathering and the writing side, which run
  // ahead of each other. None of the others can be full when the first is not.
  logic glen_valid, glen_pop, wlen_valid, wlen_pop, job_push;
  pay_len_t glen, wlen;
  /* verilator lint_off PINCONNECTEMPTY */
  logic glen_ready, wlen_ready, job_held, done_ready;
  assign job_push = job_valid_i && job_ready_o;
  typedef struct packed {
    qp_idx_t     qp_idx;
    logic [7:0]  opcode;
    logic        se;
    logic        ack_req;
    psn_t        psn;
    pay_len_t    payload_len;
    logic [63:0] swap_add;
  } common_t;
  common_t common_in, common;
  assign common_in = '{qp_idx: job_i.qp_idx, opcode: job_i.opcode, se: job_i.se, ack_req: job_i.ack_req, psn: job_i.psn,
                       payload_len: job_i.payload_len, swap_add: job_i.swap_add};
  localparam int unsigned OwnW = Responses ? 8 + 24 : 64 + 32 + 32 + 32 + 64;
  logic [OwnW-1:0] own_in, own;
  if (Responses) begin : g_responses
    assign own_in = {job_i.syndrome, job_i.msn};
  end else begin : g_requests
    assign own_in = {job_i.va, job_i.rkey, job_i.dma_len, job_i.imm, job_i.compare};
  end
  rnic_fifo #(.Width($bits(common_t) + OwnW), .Depth(NumJob)) u_jobs (
      .clk_i, .rst_i, .in_valid_i(job_valid_i), .in_ready_o(job_ready_o), .in_data_i({common_in, own_in}),
      .out_valid_o(job_held), .out_ready_i(head_pop_i), .out_data_o({common, own}), .level_o()
  );
  always_comb begin
    head_job_o             = '0;
    head_job_o.qp_idx      = common.qp_idx;
    head_job_o.opcode      = common.opcode;
    head_job_o.se          = common.se;
    head_job_o.ack_req     = common.ack_req;
    head_job_o.psn         = common.psn;
    head_job_o.payload_len = common.payload_len;
    head_job_o.swap_add    = common.swap_add;
    if (Responses) {head_job_o.syndrome, head_job_o.msn} = own[31:0];
    else {head_job_o.va, head_job_o.rkey, head_job_o.dma_len, head_job_o.imm, head_job_o.compare} = 224'(own);
  end
  rnic_fifo #(.Width($bits(pay_len_t)), .Depth(NumJob)) u_glen (
      .clk_i, .rst_i, .in_valid_i(job_push), .in_ready_o(glen_ready), .in_data_i(job_i.payload_len),
      .out_valid_o(glen_valid), .out_ready_i(glen_pop), .out_data_o(glen), .level_o()
  );
  rnic_fifo #(.Width($bits(pay_len_t)), .Depth(NumJob)) u_wlen (
      .clk_i, .rst_i, .in_valid_i(job_push), .in_ready_o(wlen_ready), .in_data_i(job_i.payload_len),
      .out_valid_o(wlen_valid), .out_ready_i(wlen_pop), .out_data_o(wlen), .level_o()
  );

  // ---------------------------------------------------------------- pieces: reads go out, order is noted
  typedef struct packed {
    logic             is_inline;
    logic             last;      // of its job
    pay_len_t         len;
    logic [DataW-1:0] data;
  } note_t;
  note_t note_in, note;
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
  assign note_in        = '{is_inline: piece_i.is_inline, last: piece_i.len == want_q, len: piece_i.len, data: piece_data_i};
  rnic_fifo #(.Width($bits(note_t)), .Depth(NumPiece)) u_notes (
      .clk_i, .rst_i, .in_valid_i(note_push), .in_ready_o(note_ready), .in_data_i(note_in),
      .out_valid_o(note_valid), .out_ready_i(note_pop), .out_data_o(note), .level_o()
  );

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
  pay_len_t fed_q, rest;
  logic gb_valid, gb_ready, fire, piece_end;
  logic [CntW-1:0] gb_cnt;
  dma_err_e err_q, err;
  assign rest           = note.len - fed_q;
  assign piece_end      = rest <= pay_len_t'(Bytes);
  assign gb_cnt         = piece_end ? CntW'(rest) : CntW'(Bytes);
  assign gb_valid       = note_valid && (note.is_inline || rd_rsp_valid_i);
  assign fire           = gb_valid && gb_ready;
  assign note_pop       = fire && piece_end;
  assign rd_rsp_ready_o = note_valid && !note.is_inline && gb_ready;
  always_comb begin
    err = err_q;  // the first one of the job stays
    if (!note.is_inline && rd_rsp_ctl_i.last && err_q == DMA_ERR_OK) err = rd_rsp_ctl_i.err;
  end
  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      fed_q <= '0;
      err_q <= DMA_ERR_OK;
    end else if (fire) begin
      fed_q <= piece_end ? '0 : fed_q + pay_len_t'(Bytes);
      err_q <= (piece_end && note.last) ? DMA_ERR_OK : err;
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
  assign gb_in = note.is_inline ? note.data : rd_rsp_data_i;
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
      if (job_push) a_job_room : assert (glen_ready && wlen_ready);
      if (job_push) a_job_len : assert (job_i.payload_len <= pay_len_t'(4096));
      if (note_push) a_pieces_add_up : assert (piece_i.len != '0 && piece_i.len <= want_q);
      if (note_push && piece_i.is_inline) a_inline_fits : assert (piece_i.len <= pay_len_t'(Bytes));
      if (fire && !note.is_inline) a_read_in_step : assert (rd_rsp_ctl_i.last == piece_end);
      if (put) a_reserved : assert (pay_room);
      if (wlen_pop) a_done_room : assert (done_ready);
      if (head_pop_i) a_pop_valid : assert (head_valid_o && job_held);
    end
  end
endmodule
