// SPDX-License-Identifier: Apache-2.0
// Hardware errors and "send queue drained" reports: kept per source and QP, applied while no command is under way.
// Contract: reports are never refused or lost: each stands in a table of its source (a place per QP), and its index in a short queue;
// when the queue overflows the table is searched: one cycle for 64 QPs of which none was reported. While run_i is high one QP is handled every fourth cycle (a little
// later when its sources are reporting just then): its state goes to ERR (to SQE for a UC or UD send error in RTS), or its draining
// mark falls; what belongs to an earlier life is dropped. quiet_o: nothing is kept (run_i falls only while it is high).
// SQ_DRAINED is offered on eqe_* until taken; the next QP waits for it. clear_*: forgets (walk after reset).
module rnic_qp_err
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned QpIdxW = 8,
    parameter int unsigned NumErr = 3
) (
    input  logic clk_i,
    input  logic rst_i,
    // verilator lint_off UNUSEDSIGNAL
    // (an index is as wide as the largest table needs)
    input  logic [NumErr-1:0] err_valid_i,
    input  qp_err_t [NumErr-1:0] err_i,
    input  logic drained_valid_i,
    input  qp_idx_t drained_idx_i,
    input  epoch_t drained_epoch_i,
    // verilator lint_on UNUSEDSIGNAL
    input  logic clear_i,
    input  logic [QpIdxW-1:0] clear_idx_i,
    input  logic run_i,
    output logic quiet_o,
    // the table
    output logic own_re_o,
    output logic [QpIdxW-1:0] own_idx_o,
    input  qp_hot_t own_hot_i,
    input  logic own_notify_i,
    output logic we_o,
    output logic [QpIdxW-1:0] widx_o,
    output qp_hot_t hot_o,
    // SQ_DRAINED
    output logic eqe_valid_o,
    input  logic eqe_ready_i,
    output eqe_req_t eqe_o
);
  localparam int unsigned Depth = 1 << QpIdxW;
  localparam int unsigned NumSrc = NumErr + 1;     // the last one: drained
  localparam int unsigned QueueDepth = 16;
  localparam int unsigned LowW = (QpIdxW > 6) ? 6 : QpIdxW;
  localparam int unsigned NumWord = 1 << (QpIdxW - LowW);
  localparam int unsigned WordW = (NumWord > 1) ? $clog2(NumWord) : 1;

  typedef struct packed {
    logic   to_sqe;
    epoch_t epoch;                                 // of the life it is about; 0: nothing is reported
  } report_t;

  typedef enum logic [1:0] {
    ST_PICK,     // the next index: from a queue, else of the search
    ST_JUDGE,    // hot word and reports stand at the outputs of the RAMs
    ST_APPLY,    // the change is made
    ST_FORGET    // reports are erased, each when its source is silent
  } state_e;
  state_e state_q;

  logic [QpIdxW-1:0] idx_q, scan_idx_q, pick_idx;
  logic scan_q, pick, from_queue, word_done, skip;
  logic [NumWord-1:0] dirty_q;                     // of these 64 QPs some were reported since the search last went through them
  logic [NumSrc-1:0] src_valid, in_queue, overflow, erase_q, erase, take;
  logic [NumSrc-1:0][QpIdxW-1:0] src_idx, queue_idx;
  report_t [NumSrc-1:0] src_report, report;

  function automatic logic [WordW-1:0] word_of(logic [QpIdxW-1:0] i);
    return WordW'(i >> LowW);
  endfunction

  always_comb begin
    for (int unsigned s = 0; s < NumErr; s++) begin
      src_valid[s]  = err_valid_i[s];
      src_idx[s]    = err_i[s].idx[QpIdxW-1:0];
      src_report[s] = '{to_sqe: err_i[s].to_sqe, epoch: err_i[s].epoch};
    end
    src_valid[NumErr]  = drained_valid_i;
    src_idx[NumErr]    = drained_idx_i[QpIdxW-1:0];
    src_report[NumErr] = '{to_sqe: 1'b0, epoch: drained_epoch_i};
  end

  for (genvar s = 0; s < NumSrc; s++) begin : g_src
    logic queue_ready;
    rnic_fifo #(
        .Width(QpIdxW),
        .Depth(QueueDepth)
    ) u_queue (
        .clk_i, .rst_i,
        .in_valid_i(src_valid[s]), .in_ready_o(queue_ready), .in_data_i(src_idx[s]),
        .out_valid_o(in_queue[s]), .out_ready_i(take[s]), .out_data_o(queue_idx[s]),
        // verilator lint_off PINCONNECTEMPTY
        .level_o()   // full or not is all that matters
        // verilator lint_on PINCONNECTEMPTY
    );
    assign overflow[s] = src_valid[s] && !queue_ready;
    assign erase[s]    = (state_q == ST_FORGET) && erase_q[s] && !src_valid[s];
    rnic_ram #(
        .Width($bits(report_t)),
        .Depth(Depth)
    ) u_report (
        .clk_i,
        .we_i(src_valid[s] || erase[s] || clear_i),
        .waddr_i(src_valid[s] ? src_idx[s] : clear_i ? clear_idx_i : idx_q),
        .wdata_i(src_valid[s] ? src_report[s] : '0),
        .re_i(pick), .raddr_i(pick_idx), .rdata_o(report[s])
    );
  end

  // ---------------------------------------------------------------- which QP
  always_comb begin
    pick_idx   = scan_idx_q;
    take       = '0;
    from_queue = 1'b0;
    for (int unsigned s = NumSrc; s > 0; s--)
      if (in_queue[s-1]) begin
        pick_idx   = queue_idx[s-1];
        take       = NumSrc'(1) << (s - 1);
        from_queue = 1'b1;
      end
    if (!pick) take = '0;
  end
`ifdef RNIC_CUT_QP_ERR_SKIP
  assign skip      = 1'b0;
`else
  assign skip      = scan_q && in_queue == '0 && !dirty_q[word_of(scan_idx_q)];
`endif
  assign pick      = run_i && state_q == ST_PICK && !eqe_valid_o && (in_queue != '0 || (scan_q && !skip));
  assign word_done = pick && !from_queue && scan_idx_q[LowW-1:0] == '1;
  assign own_re_o  = pick;
  assign own_idx_o = pick_idx;
  assign quiet_o   = in_queue == '0 && !scan_q && state_q == ST_PICK;

  // ---------------------------------------------------------------- what becomes of it
  logic any_err, any_sqe, drained, datagram, alive, judge, write, write_q;
  qp_state_e state, new_state_q;
  assign judge    = state_q == ST_JUDGE;
  assign alive    = own_hot_i.valid && own_hot_i.state != QP_STATE_RESET && own_hot_i.state != QP_STATE_ERR;
  assign datagram = own_hot_i.qp_type == QP_TYPE_UC || own_hot_i.qp_type == QP_TYPE_UD || own_hot_i.qp_type == QP_TYPE_GSI;
  always_comb begin
    any_err = 1'b0;
    any_sqe = 1'b0;
    for (int unsigned s = 0; s < NumErr; s++) begin
      automatic logic fits = report[s].epoch == own_hot_i.epoch;
`ifdef RNIC_CUT_QP_ERR_EPOCH
      fits = report[s].epoch != '0;
`endif
      if (fits && report[s].to_sqe && datagram) any_sqe = 1'b1;
      else if (fits) any_err = 1'b1;
    end
    drained = report[NumErr].epoch == own_hot_i.epoch && own_hot_i.sq_draining;
    write   = 1'b0;
    state   = own_hot_i.state;
    if (alive) begin
      // A send error while the queue was being drained leaves no state that SQE could return to: ERR.
      if (any_err || (any_sqe && own_hot_i.state == QP_STATE_SQD)) begin
        write = 1'b1;
        state = QP_STATE_ERR;
      end else if (any_sqe && own_hot_i.state == QP_STATE_RTS) begin
        write = 1'b1;
        state = QP_STATE_SQE;
      end
`ifdef RNIC_CUT_QP_ERR
      write = 1'b0;
      state = own_hot_i.state;
`endif
      if (!write && drained && own_hot_i.state == QP_STATE_SQD) write = 1'b1;
    end
  end

  assign we_o   = write_q && state_q == ST_APPLY;
  assign widx_o = idx_q;
  always_comb begin
    hot_o             = own_hot_i;
    hot_o.state       = new_state_q;
    hot_o.sq_draining = 1'b0;
  end

  always_ff @(posedge clk_i) begin
    if (pick) idx_q <= pick_idx;
    write_q     <= judge && write;
    new_state_q <= state;
    if (we_o)
      eqe_o <= '{eqn: '0, event_type: EVENT_TYPE_SQ_DRAINED, number: 32'(make_qpn(own_hot_i.gen, qp_idx_t'(idx_q), QpIdxW))};
    for (int unsigned s = 0; s < NumSrc; s++) begin
      if (judge) erase_q[s] <= report[s].epoch != '0;
      else if (erase[s]) erase_q[s] <= 1'b0;
      // What is reported anew is not what was judged; its index stands in the queue again.
      if ((state_q != ST_PICK) && src_valid[s] && src_idx[s] == idx_q) erase_q[s] <= 1'b0;
    end
    if (rst_i) begin
      state_q     <= ST_PICK;
      scan_q      <= 1'b0;
      eqe_valid_o <= 1'b0;
      dirty_q     <= '0;
    end else begin
      if (eqe_ready_i) eqe_valid_o <= 1'b0;
      if (we_o && hot_o.state == QP_STATE_SQD && own_notify_i) eqe_valid_o <= 1'b1;
      unique case (state_q)
        ST_PICK:   if (pick) state_q <= ST_JUDGE;
        ST_JUDGE:  state_q <= ST_APPLY;
        ST_APPLY:  state_q <= ST_FORGET;
        ST_FORGET: if ((erase_q & ~erase) == '0) state_q <= ST_PICK;
        default:   state_q <= ST_PICK;
      endcase
      if (pick && !from_queue) begin
        scan_idx_q <= scan_idx_q + QpIdxW'(1);
        if (scan_idx_q == '1) scan_q <= 1'b0;
      end else if (skip) begin
        scan_idx_q <= (scan_idx_q | QpIdxW'((1 << LowW) - 1)) + QpIdxW'(1);
        if (&(scan_idx_q | QpIdxW'((1 << LowW) - 1))) scan_q <= 1'b0;
      end
      // What is reported in the cycle in which a word is left was not seen in it: sets win.
      if (word_done) dirty_q[word_of(scan_idx_q)] <= 1'b0;
      for (int unsigned s = 0; s < NumSrc; s++) if (src_valid[s]) dirty_q[word_of(src_idx[s])] <= 1'b1;
      if (overflow != '0) begin
        scan_q     <= 1'b1;
        scan_idx_q <= '0;
      end
    end
  end

`ifdef FORMAL_QP_ERR
`include "rnic_qp_err.svh"
`endif
endmodule
