// SPDX-License-Identifier: Apache-2.0
// Cache of send WQEs, keyed by QP, life epoch and post number; a line holds a whole WQE, read from the host when asked.
// Contract: look_i (a pulse): the answer is valid from the next cycle on until the next look-up. fetch_i (a pulse, only
// when the answer has room) reads into the line that was looked up; kill_i invalidates that line. With `want` the QP is
// named on ready_* when its WQE is here, and the line is kept for it until ready_pop_i (so a fetch that was waited for is
// always used); for a line of the response side resp_here_o pulses instead. A line that is on its way is never taken
// by another. At most Fetches reads of the send side are under way or waiting at ready_*, one of the response side.
// rd_*: a beat of a line, one cycle later. Epochs make lines of an old life unreachable; a post number comes again only
// after every other one was sent through the same lines.
module rnic_wqe_cache
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
  import rnic_send_pkg::*;
#(
    parameter int unsigned DataW = 64,
    parameter int unsigned QpIdxW = 10,
    parameter int unsigned MaxSqStride = 4,
    parameter int unsigned SendLines = 32,   // a power of two
    parameter int unsigned RespLines = 8,    // a power of two
    parameter int unsigned Fetches = 4
) (
    input  logic             clk_i,
    input  logic             rst_i,
    input  look_req_t        look_i,
    output look_res_t        look_o,
    input  fetch_req_t       fetch_i,
    input  logic             kill_i,
    output logic             ready_valid_o,
    output qp_idx_t          ready_idx_o,
    input  logic             ready_pop_i,
    output logic             resp_here_o,
    input  line_rd_t         rd_i,
    output logic [DataW-1:0] rd_data_o,
    output logic             busy_o,         // reads of the host are under way
    // DMA
    output logic             rd_req_valid_o,
    input  logic             rd_req_ready_i,
    output dma_rd_req_t      rd_req_o,
    input  logic             rd_rsp_valid_i,
    output logic             rd_rsp_ready_o,
    input  logic [DataW-1:0] rd_rsp_data_i,
    input  dma_rd_ctl_t      rd_rsp_ctl_i
);
  localparam int unsigned Lines = SendLines + RespLines;
  localparam int unsigned LineW = $clog2(Lines);
  localparam int unsigned Beats = (64 << MaxSqStride) * 8 / DataW;
  localparam int unsigned BeatW = (Beats > 1) ? $clog2(Beats) : 1;
  localparam int unsigned SendW = $clog2(SendLines);
  localparam int unsigned RespW = $clog2(RespLines);
  if (Lines > 64) begin : g_lines
    $fatal(1, "at most 64 lines");
  end
  typedef logic [LineW-1:0] ln_t;
  typedef struct packed {
    qp_idx_t  idx;
    epoch_t   epoch;
    wqe_idx_t wqe;
  } tag_t;

  // ---------------------------------------------------------------- look-up
  // Consecutive WQEs of a QP lie in consecutive lines; QPs start far apart.
  // Low bits of the key choose the line.
  // verilator lint_off UNUSEDSIGNAL
  function automatic ln_t line_of(look_req_t l);
    logic [SendW-1:0] spread;
    for (int unsigned i = 0; i < SendW; i++) spread[i] = l.idx[SendW-1-i];
    return l.resp ? ln_t'(SendLines) + ln_t'(RespW'(l.idx)) : ln_t'(SendW'(SendW'(l.wqe) + spread));
  endfunction
  // verilator lint_on UNUSEDSIGNAL

  tag_t tag_rd, key_q;
  ln_t line_q;
  logic resp_q, want_look_q;
  logic [Lines-1:0] valid_q, pend_q, lock_q, want_q;
  dma_err_e err_q[Lines];
  logic same, arrive, in_last;
  ln_t in_line;
  qp_idx_t in_idx;
  logic [3:0] used_q;          // send side: on their way, or waiting at ready_*
  logic resp_out_q;            // response side: on its way

  rnic_ram #(.Width($bits(tag_t)), .Depth(Lines)) u_tag (
      .clk_i, .we_i(fetch_i.valid), .waddr_i(line_q), .wdata_i(key_q),
      .re_i(look_i.valid), .raddr_i(line_of(look_i)), .rdata_o(tag_rd)
  );
  always_comb begin
    same        = valid_q[line_q] && tag_rd == key_q;
    look_o      = '0;
    look_o.hit  = same && !pend_q[line_q];
    look_o.pend = same && pend_q[line_q];
    look_o.room = !same && !pend_q[line_q] && !lock_q[line_q] && (resp_q ? !resp_out_q : used_q < 4'(Fetches));
    look_o.err  = err_q[line_q];
    look_o.line = line_idx_t'(line_q);
  end

  // ---------------------------------------------------------------- reads of the host, answered in order
  logic req_in_ready, out_in_ready, out_valid;
  logic [2:0] req_level, out_level;
  rnic_fifo #(.Width($bits(dma_rd_req_t)), .Depth(Fetches + 1)) u_req (
      .clk_i, .rst_i, .in_valid_i(fetch_i.valid), .in_ready_o(req_in_ready), .in_data_i({fetch_i.addr, fetch_i.len}),
      .out_valid_o(rd_req_valid_o), .out_ready_i(rd_req_ready_i), .out_data_o(rd_req_o), .level_o(req_level)
  );
  rnic_fifo #(.Width(LineW + $bits(qp_idx_t)), .Depth(Fetches + 1)) u_out (
      .clk_i, .rst_i, .in_valid_i(fetch_i.valid), .in_ready_o(out_in_ready), .in_data_i({line_q, key_q.idx}),
      .out_valid_o(out_valid), .out_ready_i(arrive), .out_data_o({in_line, in_idx}), .level_o(out_level)
  );
  logic [BeatW-1:0] beat_q;
  logic want_now, send_side;
  assign rd_rsp_ready_o = 1'b1;
  assign in_last   = rd_rsp_ctl_i.last;
  assign arrive    = rd_rsp_valid_i && in_last;
  assign send_side = in_line < ln_t'(SendLines);
  // A look-up may say "want" in the very cycle in which the line arrives.
  assign want_now  = want_q[in_line] || (want_look_q && look_o.pend && line_q == in_line);
  assign busy_o    = out_valid;

  logic ready_in, ready_in_ready;
  ln_t ready_line;
  logic [2:0] ready_level;
  assign ready_in = arrive && send_side && want_now;
  rnic_fifo #(.Width(LineW + $bits(qp_idx_t)), .Depth(Fetches)) u_ready (
      .clk_i, .rst_i, .in_valid_i(ready_in), .in_ready_o(ready_in_ready), .in_data_i({in_line, in_idx}),
      .out_valid_o(ready_valid_o), .out_ready_i(ready_pop_i), .out_data_o({ready_line, ready_idx_o}), .level_o(ready_level)
  );
  assign resp_here_o = arrive && !send_side;

  rnic_ram #(.Width(DataW), .Depth(Lines * Beats), .Bypass(1'b0)) u_data (
      .clk_i, .we_i(rd_rsp_valid_i), .waddr_i($clog2(Lines * Beats)'(32'(in_line) * Beats + 32'(beat_q))), .wdata_i(rd_rsp_data_i),
      .re_i(rd_i.valid), .raddr_i($clog2(Lines * Beats)'(32'(rd_i.line) * Beats + 32'(BeatW'(rd_i.beat)))), .rdata_o(rd_data_o)
  );

  always_ff @(posedge clk_i) begin
    if (look_i.valid) begin
      key_q  <= '{idx: look_i.idx, epoch: look_i.epoch, wqe: look_i.wqe};
      line_q <= line_of(look_i);
      resp_q <= look_i.resp;
    end
    if (arrive) err_q[in_line] <= rd_rsp_ctl_i.err;
    if (rst_i) begin
      valid_q     <= '0;
      pend_q      <= '0;
      lock_q      <= '0;
      want_q      <= '0;
      want_look_q <= 1'b0;
      used_q      <= '0;
      resp_out_q  <= 1'b0;
      beat_q      <= '0;
    end else begin
      want_look_q <= look_i.valid && look_i.want;
      if (rd_rsp_valid_i) beat_q <= in_last ? '0 : beat_q + BeatW'(1);
      if (want_look_q && look_o.pend) want_q[line_q] <= 1'b1;
      if (kill_i) valid_q[line_q] <= 1'b0;
      if (arrive) begin
        pend_q[in_line] <= 1'b0;
        want_q[in_line] <= 1'b0;
        if (ready_in) lock_q[in_line] <= 1'b1;
        if (!send_side) resp_out_q <= 1'b0;
      end
      if (ready_pop_i) lock_q[ready_line] <= 1'b0;
      if (fetch_i.valid) begin
        valid_q[line_q] <= 1'b1;
        pend_q[line_q]  <= 1'b1;
        want_q[line_q]  <= fetch_i.want;
        if (resp_q) resp_out_q <= 1'b1;
      end
      used_q <= used_q + 4'(fetch_i.valid && !resp_q) - 4'(arrive && send_side && !want_now) - 4'(ready_pop_i);
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      if (fetch_i.valid) a_room : assert (look_o.room && req_in_ready && out_in_ready);
      if (ready_in) a_ready_room : assert (ready_in_ready);
      if (rd_rsp_valid_i) a_asked_for : assert (out_valid);
      a_levels : assert (req_level <= out_level && 4'(ready_level) <= used_q);
    end
  end
  if (QpIdxW > 16 || SendW > 16) begin : g_widths
    $fatal(1, "index too wide");
  end
endmodule
