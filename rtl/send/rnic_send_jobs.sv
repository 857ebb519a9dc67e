// SPDX-License-Identifier: Apache-2.0
// Transmit queue of the requester: holds jobs and their pieces until the builder takes them, and remembers each job
// until it was sent, so that nothing completes while its payload is still being read.
// Contract: while room_o, pieces of one packet may come (piece_valid_i, never refused); push_i with the job hands them over,
// drop_i takes them back. Out: a job, then its pieces. busy_*_o: a job of the QP (of its WQE) of query_* is not yet
// done. A job that failed stands at err_* until err_pop_i. idle_o: nothing inside (failed jobs apart).
module rnic_send_jobs
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned DataW = 64,
    parameter int unsigned QpIdxW = 10,
    parameter int unsigned NumJob = 16,     // jobs not yet done, a power of two
    localparam int unsigned InlineB = (DataW / 8 < 32) ? DataW / 8 : 32
) (
    input  logic                 clk_i,
    input  logic                 rst_i,
    output logic                 room_o,
    input  logic                 piece_valid_i,
    input  tx_piece_t            piece_i,
    input  logic [8*InlineB-1:0] piece_data_i,
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
    // A QP never has 256 WQEs in flight.
    // verilator lint_off UNUSEDSIGNAL
    input  wqe_idx_t             query_wqe_i,
    // verilator lint_on UNUSEDSIGNAL
    output logic                 busy_qp_o,
    output logic                 busy_wqe_o,
    output logic                 idle_o
);
  localparam int unsigned PtrW = $clog2(NumJob);
  localparam int unsigned MaxPiece = (DataW == 64) ? 64 : 32;  // of one packet: 16 SGEs across two pages each, or 480 inline bytes
  localparam int unsigned Depth = 2 * MaxPiece;
  localparam int unsigned CntW = $clog2(Depth + 2);
  localparam int unsigned JobFifo = 4;

  // ---------------------------------------------------------------- pieces; inline bytes stand in place of the address
  localparam int unsigned BodyW = (8 * InlineB > 64) ? 8 * InlineB : 64;
  typedef struct packed {
    pay_len_t         len;
    logic             is_inline;
    logic [BodyW-1:0] body;
  } store_t;
  store_t piece_in, piece_out;
  logic ring_ready, ring_valid, ring_pop;
  logic [CntW-1:0] held_q, tentative_q;

  assign piece_in = '{len: piece_i.len, is_inline: piece_i.is_inline, body: piece_i.is_inline ? BodyW'(piece_data_i) : BodyW'(piece_i.addr)};
  rnic_ram_fifo #(.Width($bits(store_t)), .Depth(Depth)) u_ring (
      .clk_i, .rst_i, .in_valid_i(piece_valid_i), .in_ready_o(ring_ready), .in_data_i(piece_in), .commit_i(push_i), .rollback_i(drop_i),
      .out_valid_o(ring_valid), .out_ready_i(ring_pop), .out_data_o(piece_out)
  );

  // ---------------------------------------------------------------- jobs
  logic job_fifo_ready, job_fifo_valid, job_pop;
  tx_job_t job_head;
  logic [2:0] job_level;
  pay_len_t left_q;           // payload of the job taken last whose pieces were not yet taken
  rnic_fifo #(.Width($bits(tx_job_t)), .Depth(JobFifo)) u_jobs (
      .clk_i, .rst_i, .in_valid_i(push_i), .in_ready_o(job_fifo_ready), .in_data_i(job_i),
      .out_valid_o(job_fifo_valid), .out_ready_i(job_pop), .out_data_o(job_head), .level_o(job_level)
  );
  assign tx_job_valid_o   = job_fifo_valid && left_q == '0;
  assign tx_job_o         = job_head;
  assign job_pop          = tx_job_valid_o && tx_job_ready_i;
  assign tx_piece_valid_o = ring_valid && left_q != '0;
  assign ring_pop         = tx_piece_valid_o && tx_piece_ready_i;
  assign tx_piece_o       = '{addr: piece_out.body[63:0], len: piece_out.len, is_inline: piece_out.is_inline};
  assign tx_piece_data_o  = DataW'(piece_out.body);

  // ---------------------------------------------------------------- jobs that are not done, oldest first
  typedef struct packed {
    epoch_t   epoch;
    wqe_idx_t wqe;
  } life_t;
  logic [NumJob-1:0][QpIdxW-1:0] idx_q;
  logic [NumJob-1:0][7:0] wqe_q;      // a QP never has 256 WQEs in flight
  life_t life_q[NumJob];
  logic [NumJob-1:0] live_q;
  logic [PtrW-1:0] wr_q, rd_q;
  logic [PtrW:0] count_q;
  logic err_ready;
  logic [PtrW:0] err_level;
  life_t oldest;
  logic [QpIdxW-1:0] err_qp;
  logic [2:0] err_bits;
  assign oldest = life_q[rd_q];

  rnic_fifo #(.Width(QpIdxW + 32 + 3), .Depth(NumJob)) u_err (
      .clk_i, .rst_i, .in_valid_i(tx_done_i && tx_err_valid_i), .in_ready_o(err_ready),
      .in_data_i({idx_q[rd_q], oldest, tx_err_i.err}), .out_valid_o(err_valid_o), .out_ready_i(err_pop_i),
      .out_data_o({err_qp, err_epoch_o, err_wqe_o, err_bits}), .level_o(err_level)
  );
  assign err_idx_o  = qp_idx_t'(err_qp);
  assign err_code_o = dma_err_e'(err_bits);

  always_comb begin
    busy_qp_o  = 1'b0;
    busy_wqe_o = 1'b0;
    for (int unsigned i = 0; i < NumJob; i++) begin
      if (live_q[i] && qp_idx_t'(idx_q[i]) == query_idx_i) begin
        busy_qp_o = 1'b1;
        if (wqe_q[i] == query_wqe_i[7:0]) busy_wqe_o = 1'b1;
      end
    end
  end
  assign idle_o = count_q == '0;
  assign room_o = held_q + CntW'(MaxPiece) <= CntW'(Depth) && job_level != 3'(JobFifo) &&
      (PtrW + 2)'(count_q) + (PtrW + 2)'(err_level) < (PtrW + 2)'(NumJob);

  always_ff @(posedge clk_i) begin
    if (push_i) begin
      idx_q[wr_q]  <= QpIdxW'(job_i.qp_idx);
      wqe_q[wr_q]  <= job_wqe_i[7:0];
      life_q[wr_q] <= '{epoch: job_epoch_i, wqe: job_wqe_i};
    end
    if (rst_i) begin
      held_q      <= '0;
      tentative_q <= '0;
      left_q      <= '0;
      live_q      <= '0;
      wr_q        <= '0;
      rd_q        <= '0;
      count_q     <= '0;
    end else begin
      if (job_pop) left_q <= job_head.payload_len;
      else if (ring_pop) left_q <= left_q - piece_out.len;
      held_q <= held_q + CntW'(piece_valid_i) - CntW'(ring_pop) - (drop_i ? tentative_q + CntW'(piece_valid_i) : '0);
      tentative_q <= (push_i || drop_i) ? '0 : tentative_q + CntW'(piece_valid_i);
      if (push_i) begin
        live_q[wr_q] <= 1'b1;
        wr_q         <= wr_q + PtrW'(1);
      end
      if (tx_done_i) begin
        live_q[rd_q] <= 1'b0;
        rd_q         <= rd_q + PtrW'(1);
      end
      count_q <= count_q + (PtrW + 1)'(push_i) - (PtrW + 1)'(tx_done_i);
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      if (piece_valid_i) a_piece_room : assert (ring_ready);
      if (push_i) a_job_room : assert (job_fifo_ready && count_q != (PtrW + 1)'(NumJob));
      if (tx_done_i) a_done_of_a_job : assert (count_q != '0);
      if (tx_err_valid_i) begin
        a_err_beside_done : assert (tx_done_i && err_ready);
        a_err_in_order : assert (QpIdxW'(tx_err_i.qp_idx) == idx_q[rd_q]);
      end
      if (ring_pop) a_pieces_add_up : assert (piece_out.len <= left_q);
    end
  end
  logic unused_psn;
  assign unused_psn = ^tx_err_i.psn;  // the order of the jobs names the WQE
endmodule
