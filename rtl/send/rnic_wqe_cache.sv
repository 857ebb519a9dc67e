// SPDX-License-Identifier: Apache-2.0
// Cache of send WQEs, keyed by QP, life epoch and post number; a line holds a whole WQE, read from the host when asked. A WQE of
// 1024 bytes takes two lines of the send side, an even one and the next; the response side needs no more than its first 512 bytes.
// Contract: look_i (a pulse): the answer is valid from the next cycle on until the next look-up. fetch_i (a pulse, only
// when the answer has room) reads into the line that was looked up; kill_i invalidates that line. With `want` the QP is
// named on ready_* when its WQE is here, and the line is kept for it until ready_pop_i (so a fetch that was waited for is
// always used); for a line of the response side resp_here_o pulses instead. A line that is on its way is never taken
// by another. One request waits for the host at a time. At most Fetches reads of the send side are under way or waiting at ready_*, one of the response side.
// rd_*: a beat of a line, one cycle later. visit_*: the QP that looks up and fetches. Epochs make lines of an old life unreachable; a post number comes again only
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
    // A small table uses the low bits of an index; of a context only what tells where the queue lies.
    // verilator lint_off UNUSEDSIGNAL
    input  qp_idx_t          visit_idx_i,
    input  epoch_t           visit_epoch_i,
    input  qp_ctx_t          visit_ctx_i,
    // verilator lint_on UNUSEDSIGNAL
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
  localparam int unsigned LineStride = (MaxSqStride > 3) ? 3 : MaxSqStride;
  localparam int unsigned Beats = (64 << LineStride) * 8 / DataW;
  localparam int unsigned DataAddrW = $clog2(Lines * Beats);
  localparam int unsigned SendW = $clog2(SendLines);
  localparam int unsigned RespW = $clog2(RespLines);
  if (Lines > 64 || SendLines < 4 || MaxSqStride > 4) begin : g_lines
    $fatal(1, "at most 64 lines; a WQE of at most two of at least four");
  end
  typedef logic [LineW-1:0] ln_t;
  typedef logic [QpIdxW-1:0] idx_t;
  typedef struct packed {
    idx_t     idx;
    epoch_t   epoch;
    wqe_idx_t wqe;
  } tag_t;

  // ---------------------------------------------------------------- look-up
  // Consecutive WQEs of a QP lie in consecutive lines; QPs start far apart.
  // Low bits of the key choose the line.
  // verilator lint_off UNUSEDSIGNAL
  function automatic ln_t line_of(look_req_t l, qp_idx_t idx, logic two);
    logic [SendW-1:0] spread;
    for (int unsigned i = 0; i < SendW; i++) spread[i] = idx[SendW-1-i];
    if (l.resp) return ln_t'(SendLines) + ln_t'(RespW'(idx));
    if (two) return ln_t'({SendW'(SendW'(l.wqe << 1) + spread) >> 1, 1'b0});
    return ln_t'(SendW'(SendW'(l.wqe) + spread));
  endfunction
  // verilator lint_on UNUSEDSIGNAL
  logic two;                   // the visited QP's WQEs take two lines
  assign two = MaxSqStride > LineStride && visit_ctx_i.create.log_sq_stride > 4'(LineStride);

  tag_t tag_rd, key_q;
  ln_t line_q;
  logic resp_q, want_look_q;
  logic [Lines-1:0] valid_q, pend_q, lock_q, want_q;
  logic [SendLines/2-1:0] two_q;   // the pair's even line holds a WQE of two
  logic [SendW-1:0] buddy;
  logic both, req_valid_q;         // both lines of the pair are concerned; a request waits for the host
  dma_err_e err_q[Lines];
  logic same, arrive, in_last;
  ln_t in_line;
  idx_t in_idx, ready_idx;
  logic [3:0] used_q, used_d;  // send side: on their way, or waiting at ready_*
  logic resp_out_q;            // response side: on its way

  rnic_ram #(.Width($bits(tag_t)), .Depth(Lines), .Bypass(1'b0)) u_tag (
      .clk_i, .we_i(fetch_i.valid), .waddr_i(line_q), .wdata_i(key_q),
      .re_i(look_i.valid), .raddr_i(line_of(look_i, visit_idx_i, two)), .rdata_o(tag_rd)
  );
  assign buddy = SendW'(line_q) ^ SendW'(1);
  assign both  = !resp_q && MaxSqStride > LineStride && (two || two_q[buddy[SendW-1:1]]);
  always_comb begin
    same        = valid_q[line_q] && tag_rd == key_q;
    look_o      = '0;
    look_o.hit  = same && !pend_q[line_q];
    look_o.pend = same && pend_q[line_q];
    look_o.room = !same && !pend_q[line_q] && !lock_q[line_q] && (resp_q ? !resp_out_q : used_q < 4'(Fetches)) && !req_valid_q &&
        !(both && (pend_q[ln_t'(buddy)] || lock_q[ln_t'(buddy)]));
    look_o.err  = err_q[line_q];
    look_o.line = line_idx_t'(line_q);
  end

  // ---------------------------------------------------------------- reads of the host, answered in order
  logic out_in_ready, out_valid;
  /* verilator lint_off UNUSEDSIGNAL */
  logic [2:0] out_level;
  /* verilator lint_on UNUSEDSIGNAL */
  dma_rd_req_t req_q;
  wqe_idx_t slot;
  logic [3:0] stride;
  assign stride         = visit_ctx_i.create.log_sq_stride;
  assign slot           = key_q.wqe & ((wqe_idx_t'(1) << visit_ctx_i.hot.log_sq) - wqe_idx_t'(1));
  assign rd_req_valid_o = req_valid_q;
  assign rd_req_o       = req_q;
  always_ff @(posedge clk_i) begin
    if (fetch_i.valid) req_q <= '{addr: visit_ctx_i.create.sq_base + 64'({20'(slot) << stride[2:0], 6'd0}), len: 16'd64 << ((resp_q && two) ? 4'(LineStride) : stride)};
    req_valid_q <= !rst_i && (fetch_i.valid || (req_valid_q && !rd_req_ready_i));
  end
  rnic_fifo #(.Width(LineW + QpIdxW), .Depth(Fetches + 1)) u_out (
      .clk_i, .rst_i, .in_valid_i(fetch_i.valid), .in_ready_o(out_in_ready), .in_data_i({line_q, key_q.idx}),
      .out_valid_o(out_valid), .out_ready_i(arrive), .out_data_o({in_line, in_idx}), .level_o(out_level)
  );
  logic [6:0] beat_q;
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
  rnic_fifo #(.Width(LineW + QpIdxW), .Depth(Fetches)) u_ready (
      .clk_i, .rst_i, .in_valid_i(ready_in), .in_ready_o(ready_in_ready), .in_data_i({in_line, in_idx}),
      .out_valid_o(ready_valid_o), .out_ready_i(ready_pop_i), .out_data_o({ready_line, ready_idx}), .level_o(ready_level)
  );
  assign ready_idx_o = qp_idx_t'(ready_idx);
  assign resp_here_o = arrive && !send_side;

  rnic_ram #(.Width(DataW), .Depth(Lines * Beats), .Bypass(1'b0)) u_data (
      .clk_i, .we_i(rd_rsp_valid_i), .waddr_i(DataAddrW'(32'(in_line) * Beats + 32'(beat_q))), .wdata_i(rd_rsp_data_i),
      .re_i(rd_i.valid), .raddr_i(DataAddrW'(32'(rd_i.line) * Beats + 32'(rd_i.beat))), .rdata_o(rd_data_o)
  );

  // At most two leave, and one comes.
  always_comb begin
    used_d = used_q;
    case ({fetch_i.valid && !resp_q, arrive && send_side && !want_now, ready_pop_i})
      3'b100: used_d = used_q + 4'd1;
      3'b010, 3'b001, 3'b111: used_d = used_q - 4'd1;
      3'b011: used_d = used_q - 4'd2;
      default: ;
    endcase
  end
  always_ff @(posedge clk_i) begin
    if (look_i.valid) begin
      key_q  <= '{idx: idx_t'(visit_idx_i), epoch: visit_epoch_i, wqe: look_i.wqe};
      line_q <= line_of(look_i, visit_idx_i, two);
      resp_q <= look_i.resp;
    end
    if (arrive) err_q[in_line] <= rd_rsp_ctl_i.err;
    if (rst_i) begin
      valid_q     <= '0;
      pend_q      <= '0;
      lock_q      <= '0;
      want_q      <= '0;
      two_q       <= '0;
      want_look_q <= 1'b0;
      used_q      <= '0;
      resp_out_q  <= 1'b0;
      beat_q      <= '0;
    end else begin
      want_look_q <= look_i.valid && look_i.want;
      if (rd_rsp_valid_i) beat_q <= in_last ? '0 : beat_q + 7'd1;
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
        else two_q[buddy[SendW-1:1]] <= two;
        if (both) valid_q[ln_t'(buddy)] <= 1'b0;
      end
      used_q <= used_d;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      if (fetch_i.valid) a_room : assert (look_o.room && out_in_ready);
      a_not_both : assert (!(fetch_i.valid && look_i.valid));
      if (rd_i.valid) a_not_what_arrives : assert (!(rd_rsp_valid_i && 32'(in_line) * Beats + 32'(beat_q) == 32'(rd_i.line) * Beats + 32'(rd_i.beat)));
      if (ready_in) a_ready_room : assert (ready_in_ready);
      if (rd_rsp_valid_i) a_asked_for : assert (out_valid);
      a_levels : assert ((out_valid || !req_valid_q) && 4'(ready_level) <= used_q);
    end
  end
  if (QpIdxW > 16 || SendW > 16) begin : g_widths
    $fatal(1, "index too wide");
  end
endmodule
