// SPDX-License-Identifier: Apache-2.0
// Transmit queue of the requester: holds jobs and their pieces until the builder takes them, and remembers each job
// until it was sent, so that nothing completes while its payload is still being read.
// Contract: while room_o, pieces of one packet may come (piece_valid_i, never refused; at 64 bits three cycles apart, inline
// ones two); push_i with the job hands them over,
// drop_i takes them back. Out: a job, then its pieces. busy_*_o: a job of the QP (of its WQE) of query_* is not yet
// done. A job that failed stands at err_* until err_pop_i. idle_o: nothing inside (failed jobs apart).
module rnic_send_jobs
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned DataW = 64,
    parameter int unsigned QpIdxW = 10,
    parameter int unsigned WqeW = 8,                              // a QP never has more than 2^WqeW WQEs in flight
    parameter int unsigned NumJob = 16,                           // jobs not yet done, a power of two
    parameter int unsigned JobFifo = (DataW >= 256) ? 4 : 1,      // of these, not yet taken by the builder
    localparam int unsigned InlineB = (DataW / 8 < 32) ? DataW / 8 : 32
) (
    input  logic                 clk_i,
    input  logic                 rst_i,
    output logic                 room_o,
    input  logic                 piece_valid_i,
    input  tx_piece_t            piece_i,
    input  logic [8*InlineB-1:0] piece_data_i,
    input  logic                 piece_last_i,
    input  logic                 push_i,
    input  logic                 drop_i,
    input  tx_job_t              job_i,
    input  epoch_t               job_epoch_i,
    input  wqe_idx_t             job_wqe_i,
    // builder
    output logic                 tx_job_valid_o,
    input  logic                 tx_job_ready_i,
    output tx_job_t              tx_job_o,
    output logic                 tx_piece_valid_o,
    input  logic                 tx_piece_ready_i,
    output tx_piece_t            tx_piece_o,
    output logic [DataW-1:0]     tx_piece_data_o,
    input  logic                 tx_done_i,
    input  logic                 tx_err_valid_i,
    input  tx_err_t              tx_err_i,
    // failed jobs
    output logic                 err_valid_o,
    input  logic                 err_pop_i,
    output qp_idx_t              err_idx_o,
    output epoch_t               err_epoch_o,
    output wqe_idx_t             err_wqe_o,
    output dma_err_e             err_code_o,
    // what is under way
    input  qp_idx_t              query_idx_i,
    // verilator lint_off UNUSEDSIGNAL
    input  wqe_idx_t             query_wqe_i,
    // verilator lint_on UNUSEDSIGNAL
    output logic                 busy_qp_o,
    output logic                 busy_wqe_o,
    output logic                 idle_o
);
  localparam int unsigned PtrW = $clog2(NumJob);
  // ---------------------------------------------------------------- pieces; inline bytes stand in place of the address
  // Room for two packets: each of 16 SGEs across two pages, or 992 inline bytes. At 64 bits pieces are kept in parts.
  localparam int unsigned BodyW = (8 * InlineB > 64) ? 8 * InlineB : 64;
  localparam bit Parts = DataW == 64;
  localparam int unsigned Depth = Parts ? 512 : (DataW == 128) ? 128 : 64;
  typedef struct packed {
    pay_len_t         len;
    logic [BodyW-1:0] body;
    logic             last;
    logic             is_inline;
  } store_t;
  localparam int unsigned ShortW = $bits(store_t) - 13 + $clog2(InlineB + 1);   // an inline piece's length is short
  store_t piece_in, piece_out;
  logic ring_room, ring_valid, ring_pop;

  assign piece_in = '{len: piece_i.len, is_inline: piece_i.is_inline, last: piece_last_i, body: piece_i.is_inline ? BodyW'(piece_data_i) : BodyW'(piece_i.addr)};
  rnic_send_ring #(.Width($bits(store_t)), .PartW(Parts ? 36 : $bits(store_t)), .ShortW(Parts ? ShortW : $bits(store_t)), .Depth(Depth)) u_ring (
      .clk_i, .rst_i, .room_o(ring_room), .in_valid_i(piece_valid_i), .in_data_i(piece_in), .commit_i(push_i), .rollback_i(drop_i),
      .out_valid_o(ring_valid), .out_ready_i(ring_pop), .out_data_o(piece_out)
  );

  // ---------------------------------------------------------------- jobs
  logic job_ready, job_valid, job_pop;
  tx_job_t job_head;
  logic pieces_q;             // pieces of the job taken last are still to be taken
  if (JobFifo > 1) begin : g_fifo
    // verilator lint_off UNUSEDSIGNAL
    logic [$clog2(JobFifo+1)-1:0] level;
    // verilator lint_on UNUSEDSIGNAL
    rnic_fifo #(.Width($bits(tx_job_t)), .Depth(JobFifo)) u_jobs (
        .clk_i, .rst_i, .in_valid_i(push_i), .in_ready_o(job_ready), .in_data_i(job_i),
        .out_valid_o(job_valid), .out_ready_i(job_pop), .out_data_o(job_head), .level_o(level)
    );
  end else begin : g_one
    logic full_q;
    tx_job_t job_q;
    assign job_ready = !full_q;
    assign job_valid = full_q;
    assign job_head  = job_q;
    always_ff @(posedge clk_i) begin
      if (push_i) job_q <= job_i;
      full_q <= !rst_i && (push_i || (full_q && !job_pop));
    end
  end
  assign tx_job_valid_o   = job_valid && !pieces_q;
  assign tx_job_o         = job_head;
  assign job_pop          = tx_job_valid_o && tx_job_ready_i;
  assign tx_piece_valid_o = ring_valid && pieces_q;
  assign ring_pop         = tx_piece_valid_o && tx_piece_ready_i;
  always_comb begin
    tx_piece_o = '{addr: piece_out.body[63:0], len: piece_out.len, is_inline: piece_out.is_inline};
    if (piece_out.is_inline) tx_piece_o.len = pay_len_t'(piece_out.len[$clog2(InlineB+1)-1:0]);
  end
  assign tx_piece_data_o  = DataW'(piece_out.body);

  // ---------------------------------------------------------------- jobs that are not done, oldest first; then those that failed
  typedef struct packed {
    logic [QpIdxW-1:0] idx;
    epoch_t   epoch;
    wqe_idx_t wqe;
  } life_t;
  typedef logic [PtrW:0] ptr_t;       // one bit more than an index
  logic [NumJob-1:0][QpIdxW-1:0] idx_q;
  logic [NumJob-1:0][WqeW-1:0] wqe_q;
  life_t life_q[NumJob];
  logic [2:0] code_q[NumJob];         // how it failed
  logic [NumJob-1:0] live_q, fail_q;
  ptr_t wr_q, rd_q, free_q, held;     // done are those before rd; those before free are not kept any more
  logic [PtrW-1:0] wr, rd, oldest;
  life_t life;
  assign wr          = wr_q[PtrW-1:0];
  assign rd          = rd_q[PtrW-1:0];
  assign oldest      = free_q[PtrW-1:0];
  assign held        = wr_q - free_q;
  assign life        = life_q[oldest];
  assign err_valid_o = free_q != rd_q && fail_q[oldest];
  assign err_idx_o   = qp_idx_t'(life.idx);
  assign err_epoch_o = life.epoch;
  assign err_wqe_o   = life.wqe;
  assign err_code_o  = dma_err_e'(code_q[oldest]);

  always_comb begin
    busy_qp_o  = 1'b0;
    busy_wqe_o = 1'b0;
    for (int unsigned i = 0; i < NumJob; i++) begin
      if (live_q[i] && qp_idx_t'(idx_q[i]) == query_idx_i) begin
        busy_qp_o = 1'b1;
        if (wqe_q[i] == query_wqe_i[WqeW-1:0]) busy_wqe_o = 1'b1;
      end
    end
  end
  assign idle_o = wr_q == rd_q;
  assign room_o = ring_room && job_ready && held != ptr_t'(NumJob);

  always_ff @(posedge clk_i) begin
    if (push_i) begin
      idx_q[wr]  <= QpIdxW'(job_i.qp_idx);
      wqe_q[wr]  <= job_wqe_i[WqeW-1:0];
      life_q[wr] <= '{idx: QpIdxW'(job_i.qp_idx), epoch: job_epoch_i, wqe: job_wqe_i};
    end
    if (tx_done_i) begin
      fail_q[rd] <= tx_err_valid_i;
      code_q[rd] <= tx_err_i.err;
    end
    if (rst_i) begin
      pieces_q <= 1'b0;
      live_q   <= '0;
      wr_q     <= '0;
      rd_q     <= '0;
      free_q   <= '0;
    end else begin
      if (job_pop) pieces_q <= job_head.payload_len != '0;
      else if (ring_pop && piece_out.last) pieces_q <= 1'b0;
      if (push_i) live_q[wr] <= 1'b1;
      if (tx_done_i) live_q[rd] <= 1'b0;
      wr_q <= wr_q + ptr_t'(push_i);
      rd_q <= rd_q + ptr_t'(tx_done_i);
      if (free_q != rd_q && (!fail_q[oldest] || err_pop_i)) free_q <= free_q + ptr_t'(1);
    end
  end

  // Payload of the job taken last whose pieces were not yet taken.
  pay_len_t left_q;
  always_ff @(posedge clk_i) begin
    if (rst_i) left_q <= '0;
    else if (job_pop) left_q <= job_head.payload_len;
    else if (ring_pop) left_q <= left_q - tx_piece_o.len;
    if (!rst_i) begin
      if (push_i) a_job_room : assert (job_ready && held != ptr_t'(NumJob));
      if (tx_done_i) a_done_of_a_job : assert (wr_q != rd_q);
      if (err_pop_i) a_failed : assert (err_valid_o);
      if (tx_err_valid_i) begin
        a_err_beside_done : assert (tx_done_i);
        a_err_in_order : assert (QpIdxW'(tx_err_i.qp_idx) == idx_q[rd]);
      end
      if (ring_pop) a_pieces_add_up : assert (piece_out.last ? tx_piece_o.len == left_q : tx_piece_o.len < left_q);
    end
  end
  logic unused_psn;
  assign unused_psn = ^tx_err_i.psn;  // the order of the jobs names the WQE
endmodule
