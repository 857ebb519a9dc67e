// SPDX-License-Identifier: Apache-2.0
// Proof that the command ring answers in time: rnic_cmd_ring and rnic_cmd_cpl as they are, 512 bits wide, between a host that answers
// within M cycles and an executor that needs X cycles for a command (proof cmd_exec gives its bound). Host and driver may restart the
// ring whenever they like, with reads, a command and a completion under way.
//
//   p_answer      while commands wait, one is answered at least every N cycles, N = (Depth + 4) * M + 2 * X + 8; without a restart
//                 3 * M + X + 6 are enough
//   p_quick       that
//   p_order       as many completions are written as the consumer index says, never more than were posted
//   p_offer       a read that waits to be accepted stays as it is (until the ring is restarted or stops)
//   p_ahead       never more than Depth commands are fetched ahead, and their words always find room
// "The host answers within M": a read is accepted within M cycles; of the reads under way the oldest is answered within M
// cycles after it became the oldest; a written beat is taken within M cycles. A read that fails stops the ring (that is told, see
// rnic_cmd_ring), and no answer is promised then.
module prove_cmd_ring
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
(
    input logic clk_i,
    input logic rst_i,
    input logic restart_i,
    input logic [63:0] base_i,
    input logic [3:0] log_size_i,
    input logic producer_we_i,
    input logic [15:0] producer_i,
    input logic rd_ready_i,
    input logic rsp_valid_i,
    input dma_rd_ctl_t rsp_ctl_i,
    input logic [511:0] rsp_data_i,
    input logic finish_i,
    input cmd_completion_t cpl_i,
    input logic wr_ready_i,
    input logic msix_ready_i
);
  localparam int unsigned Depth = 4;
  localparam int unsigned M = 5;
  localparam int unsigned X = 7;
  localparam int unsigned N = (Depth + 4) * M + 2 * X + 8;
  localparam int unsigned NQuick = 3 * M + X + 6;

  logic [15:0] producer, consumer;
  logic [2:0] status;
  logic dma_err, rd_valid, rsp_ready, cmd_valid, cpl_valid, cpl_ready, wr_valid, wr_last, done, msix_valid;
  logic [511:0] cmd, wr_data;
  logic cmd_rsvd;
  dma_rd_req_t rd_req;
  dma_wr_hdr_t wr_hdr;

  // ---------------------------------------------------------------- the executor: takes a command, needs its time, hands over
  logic ex_work_q, ex_offer_q, ex_gone_q, ex_busy;
  logic [7:0] ex_age_q;
  assign ex_busy   = ex_work_q || ex_offer_q;
  assign cpl_valid = ex_offer_q && !ex_gone_q;

  rnic_cmd_ring #(.DataW(512), .Depth(Depth)) ring (
      .clk_i, .rst_i, .go_i(1'b1), .ring_base_i(base_i), .log_size_i, .restart_i, .producer_we_i, .producer_i, .producer_o(producer), .consumer_o(consumer),
      .status_o(status), .dma_err_o(dma_err), .rd_req_valid_o(rd_valid), .rd_req_ready_i(rd_ready_i), .rd_req_o(rd_req),
      .rd_rsp_valid_i(rsp_valid_i), .rd_rsp_ready_o(rsp_ready), .rd_rsp_data_i(rsp_data_i), .rd_rsp_ctl_i(rsp_ctl_i),
      .cmd_valid_o(cmd_valid), .cmd_ready_i(!ex_busy), .cmd_o(cmd), .cmd_rsvd_o(cmd_rsvd), .done_i(done)
  );
  rnic_cmd_cpl #(.DataW(512)) cpl (
      .clk_i, .rst_i, .restart_i, .cpl_base_i(base_i), .log_size_i, .cpl_valid_i(cpl_valid), .cpl_ready_o(cpl_ready), .cpl_i,
      .wr_valid_o(wr_valid), .wr_ready_i, .wr_hdr_o(wr_hdr), .wr_data_o(wr_data), .wr_last_o(wr_last), .done_o(done),
      .msix_valid_o(msix_valid), .msix_ready_i
  );

  // ---------------------------------------------------------------- the host: lengths of the reads under way, the oldest first
  logic [2:0] len_q[Depth];
  logic [3:0] open_q;
  logic [7:0] rd_age_q, req_wait_q, wr_wait_q;
  logic fire, rsp_end;
  logic [2:0] want;
  logic [2:0] beats;                                  // of the oldest, still to come
  assign want    = 3'(rd_req.len >> 6);
  assign fire    = rd_valid && rd_ready_i;
  assign rsp_end = rsp_valid_i && rsp_ctl_i.last;
  assign beats   = len_q[0];
  logic len_ok;
  logic [5:0] mine_left;                              // beats to come of all
  always_comb begin
    mine_left = '0;
    len_ok    = 1'b1;
    for (int unsigned i = 0; i < Depth; i++)
      if (4'(i) < open_q) begin
        mine_left += 6'(len_q[i]);
        if (len_q[i] == '0 || len_q[i] > 3'd4) len_ok = 1'b0;
      end
  end

  logic first_q = 1'b1;
  logic [3:0] log_q;
  logic [63:0] base_q;
  logic offer_q;
  dma_rd_req_t offered_q;
  logic clean_q;                                      // nothing of a ring before is under way
  always_ff @(posedge clk_i) begin
    first_q <= 1'b0;
    if (first_q) m_reset : assume (rst_i);
    else m_one_reset : assume (!rst_i);
    if (restart_i) log_q <= log_size_i;
    else if (!rst_i) m_log : assume (log_size_i == log_q);
    if (rst_i) m_no_restart : assume (!restart_i && !rsp_valid_i);
    // The queue of reads.
    for (int unsigned i = 0; i < Depth; i++) begin
      if (rsp_end) begin
        len_q[i] <= (i + 1 < Depth) ? len_q[i+1] : 3'd0;
        if (fire && 4'(i + 1) == open_q) len_q[i] <= want;
      end else begin
        if (i == 0 && rsp_valid_i) len_q[0] <= len_q[0] - 3'd1;
        if (fire && 4'(i) == open_q) len_q[i] <= want;
      end
    end
    open_q     <= rst_i ? '0 : open_q + 4'(fire) - 4'(rsp_end);
    rd_age_q   <= (rst_i || rsp_end || open_q == '0) ? '0 : rd_age_q + 8'd1;
    req_wait_q <= (rst_i || restart_i || dma_err || !rd_valid || fire) ? '0 : req_wait_q + 8'd1;
    wr_wait_q  <= (rst_i || !wr_valid || wr_ready_i) ? '0 : wr_wait_q + 8'd1;
    if (open_q == '0) m_no_answer : assume (!rsp_valid_i);
    m_last : assume (rsp_ctl_i.last == (beats == 3'd1));
    if (open_q != '0) m_read_in_time : assume (32'(rd_age_q) + 32'(beats) <= M);
    if (32'(req_wait_q) == M - 1) m_accept_in_time : assume (rd_ready_i);
    if (32'(wr_wait_q) == M - 1) m_take_in_time : assume (wr_ready_i);
    // The executor.
    if (rst_i) begin
      {ex_work_q, ex_offer_q, ex_gone_q} <= '0;
      ex_age_q <= '0;
    end else begin
      ex_age_q <= (ex_work_q && !finish_i) ? ex_age_q + 8'd1 : '0;
      if (!ex_busy) begin
        ex_gone_q <= 1'b0;
        if (cmd_valid && !restart_i) ex_work_q <= 1'b1;
      end else if (restart_i) begin
        ex_gone_q <= 1'b1;
      end
      if (ex_work_q && finish_i) begin
        ex_work_q  <= 1'b0;
        ex_offer_q <= 1'b1;
      end
      if (ex_offer_q && (cpl_ready || ex_gone_q)) ex_offer_q <= 1'b0;
      if (ex_work_q && 32'(ex_age_q) == X - 1) m_executor : assume (finish_i);
    end
  end

  // ---------------------------------------------------------------- how long until the next answer, at most
  logic asks, answered;
  logic [7:0] age_q, quick_q, posted_q, told_q;
  logic [31:0] rem_w, rem_g, to_cmd, rank;
  assign asks     = status[0] && producer != consumer;
  assign rem_w    = wr_valid ? M - 32'(wr_wait_q) : 0;
  assign rem_g    = (ex_busy && ex_gone_q) ? (ex_work_q ? X - 32'(ex_age_q) + 1 : 1) : 0;
  always_comb begin
    if (cmd_valid) to_cmd = 0;
    else if (ring.word_valid) to_cmd = 1;
    else if (ring.u_words.rd_q != ring.u_words.vis_q) to_cmd = 2;
    else if (ring.stale_q != '0) to_cmd = M - 32'(rd_age_q) + (32'(ring.stale_q) - 1) * M + 2 * M + 3;
    else if (open_q != '0) to_cmd = M - 32'(rd_age_q) + 3;
    else to_cmd = M - 32'(req_wait_q) + M + 3;
    if (wr_valid && !cpl.old_q) rank = rem_w;
    else if (ex_busy && !ex_gone_q) rank = rem_w + (ex_work_q ? X - 32'(ex_age_q) : 0) + 1 + M;
    else rank = to_cmd + rem_w + rem_g + X + 2 + M;
  end

  logic [15:0] in_it;                                 // commands that the ring has asked for and that are not answered
  assign in_it = 16'(ring.held_q) + 16'(cmd_valid) + 16'(ex_busy && !ex_gone_q) + 16'(wr_valid && !cpl.old_q);
  logic run;
  assign run = status[0];

  always_ff @(posedge clk_i) begin
    offer_q   <= rd_valid && !rd_ready_i && !rst_i && !restart_i && !dma_err;
    offered_q <= rd_req;
    m_base : assume (rst_i || restart_i || base_i == base_q);
    base_q    <= base_i;
    age_q   <= (rst_i || restart_i || done || dma_err || !asks) ? '0 : age_q + 8'd1;
    // Since when neither reads nor a command nor a completion of a ring before stand in the way.
    clean_q <= !rst_i && !restart_i && ring.stale_q == '0 && !ex_gone_q && !cpl.old_q;
    quick_q <= (rst_i || restart_i || done || dma_err || !asks || !clean_q) ? '0 : quick_q + 8'd1;
    if (!rst_i && !first_q) begin
      p_answer : assert (32'(age_q) <= N);
      p_quick : assert (32'(quick_q) <= NQuick);
      if (run) p_order : assert (in_it <= producer - consumer || producer - consumer > 16'd4096);
      if (offer_q) p_offer : assert (rd_valid && (restart_i || rd_req == offered_q));
      if (run) p_ahead : assert (32'(ring.held_q) <= Depth && (!rsp_valid_i || !ring.mine || ring.in_ready));

      // ---------------------------------------------------------------- induction
      i_log : assert (!ring.running_q || (log_q >= 4'd1 && log_q <= 4'd12));
      i_open : assert (4'(ring.open_q) == open_q && 32'(open_q) <= Depth && (ring.stale_q == '0 || ring.stale_q == open_q));
      i_len : assert (len_ok);
      if (open_q != '0) i_rd_age : assert (32'(rd_age_q) < M); else i_rd_age0 : assert (rd_age_q == '0);
      i_waits : assert (32'(req_wait_q) < M && 32'(wr_wait_q) < M && (rd_valid || req_wait_q == '0) && (wr_valid || wr_wait_q == '0));
      i_ex : assert (!(ex_work_q && ex_offer_q) && 32'(ex_age_q) < X && (ex_work_q || ex_age_q == '0));
      i_old : assert (!cpl.old_q || wr_valid);
      i_offer : assert (offer_q == ring.offered_q || ring.broken_q);
      if (ring.offered_q) i_want : assert (ring.want_q != '0 && ring.want_q <= 16'd4 && ring.want_q <= ring.prod_q - ring.fetch_q && 32'(ring.held_q) + 32'(ring.want_q) <= Depth && ring.stale_q == '0 && 3'(ring.want_q) == 3'(offered_q.len >> 6));
      i_beat : assert (ring.beat_q == '0 && (!wr_valid || cpl.u_wr.beat_q == '0));
      i_fifo : assert (3'(ring.u_words.wr_q - ring.u_words.rd_q) <= 3'(Depth) && 3'(ring.u_words.vis_q - ring.u_words.rd_q) <= 3'(ring.u_words.wr_q - ring.u_words.rd_q));
      i_posted : assert (!ring.running_q || (16'(ring.prod_q - ring.cons_q) <= (16'd1 << log_q) && 16'(ring.fetch_q - ring.cons_q) <= 16'(ring.prod_q - ring.cons_q)));
      if (ring.running_q) i_inside : assert (16'(ring.fetch_q - ring.cons_q) == in_it);
      if (run) i_held : assert (32'(ring.held_q) <= Depth
          && 32'(ring.held_q) == 32'(3'(ring.u_words.wr_q - ring.u_words.rd_q)) + 32'(ring.word_valid) + (ring.stale_q == '0 ? 32'(mine_left) : 0));
      if (ring.broken_q) i_broken : assert (32'(ring.held_q) <= Depth
          && 32'(ring.held_q) >= 32'(3'(ring.u_words.wr_q - ring.u_words.rd_q)) + 32'(ring.word_valid) && ring.u_words.wr_q == ring.u_words.vis_q && ring.running_q);
      if (run && ring.stale_q != '0) i_stale : assert (ring.u_words.wr_q == ring.u_words.rd_q && !ring.word_valid && !cmd_valid && !rd_valid);
      if (run && ring.stale_q == '0 && open_q == '0) i_committed : assert (ring.u_words.wr_q == ring.u_words.vis_q);
      if (!ring.running_q) i_stopped : assert ((!wr_valid || cpl.old_q) && (!ex_busy || ex_gone_q) && !cmd_valid && !rd_valid && !ring.word_valid && (ring.stale_q != '0 || open_q == '0) && producer == consumer && ring.u_words.wr_q == ring.u_words.rd_q);
      if (asks) i_rank : assert (32'(age_q) + rank <= N);
      if (!asks) i_rest : assert (32'(age_q) <= 1);
      i_clean : assert (!clean_q || (ring.stale_q == '0 && !ex_gone_q && !cpl.old_q));
      if (asks && clean_q) i_quick : assert (32'(quick_q) + rank <= NQuick);
      if (!asks || !clean_q) i_quick0 : assert (32'(quick_q) <= 1);

      c_many : cover (done && 32'(consumer) == 2);
      c_ahead : cover (32'(ring.held_q) == Depth && ex_busy);
      c_stale : cover (ring.stale_q == 4'd2 && asks);
      c_gone : cover (ex_gone_q && ex_busy && cmd_valid);
      c_failed : cover (status[2]);
    end
  end
endmodule
