// SPDX-License-Identifier: Apache-2.0
// Command ring: fetches 64-byte commands ahead of the executor, several per read.
// Contract: commands come out in ring order, held until taken; at most Depth are fetched ahead. A doorbell beyond the ring, backwards,
// or while the ring does not run is refused and remembered (status bit 1). A ring that cannot be read stops for good (status
// bit 2, dma_err_o pulses); of the read that failed nothing comes out. Writing LOG_SIZE restarts it at entry 0; what reads of the old
// ring bring is thrown away. cmd_rsvd_o: a reserved bit of the command is set (seen as its words go by). done_i counts a command whose completion has been accepted. rd_rsp_ready_o is always high.
module rnic_cmd_ring
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned DataW = 64,
    parameter int unsigned Depth = 8         // commands, a power of two, at least 4
) (
    input  logic clk_i,
    input  logic rst_i,
    input  logic go_i,                       // may read: tables clear, enabled, bus master
    input  logic [63:0] ring_base_i,
    input  logic [3:0] log_size_i,
    input  logic restart_i,
    input  logic producer_we_i,
    input  logic [15:0] producer_i,
    output logic [15:0] producer_o,
    output logic [15:0] consumer_o,
    output logic [2:0] status_o,
    output logic dma_err_o,
    output logic rd_req_valid_o,
    input  logic rd_req_ready_i,
    output dma_rd_req_t rd_req_o,
    input  logic rd_rsp_valid_i,
    output logic rd_rsp_ready_o,
    input  logic [DataW-1:0] rd_rsp_data_i,
    input  dma_rd_ctl_t rd_rsp_ctl_i,
    output logic cmd_valid_o,
    input  logic cmd_ready_i,
    output logic [511:0] cmd_o,
    output logic cmd_rsvd_o,
    input  logic done_i
);
  localparam int unsigned Beats = 512 / DataW;
  localparam int unsigned BeatW = (Beats > 1) ? $clog2(Beats) : 1;
  localparam int unsigned HeldW = $clog2(Depth + 1);
  localparam logic [15:0] Burst = 16'd4;     // commands per read

  logic running_q, refused_q, broken_q;
  logic [15:0] prod_q, fetch_q, cons_q, size;
  assign size       = 16'd1 << log_size_i;
  assign producer_o = prod_q;
  assign consumer_o = cons_q;
  assign status_o   = {broken_q, refused_q, running_q && !broken_q};

  // ---------------------------------------------------------------- doorbell
  logic [15:0] ahead_new, ahead_old;
  logic db_ok;
  assign ahead_new = producer_i - cons_q;
  assign ahead_old = prod_q - cons_q;
`ifdef RNIC_CUT_CMD_DB_RANGE
  assign db_ok = running_q;
`else
  assign db_ok = running_q && ahead_new <= size && ahead_new >= ahead_old;
`endif

  // ---------------------------------------------------------------- reads
  logic [15:0] slot, to_end, waiting, want, want_q;
  logic offered_q;                           // a read that waits to be accepted is the one that was offered
  logic [HeldW-1:0] held_q;                  // asked for, and not yet in the command register
  logic [3:0] open_q, stale_q;               // reads under way; those of an earlier ring among them
  logic fire, rsp_end, mine, got_cmd;
  assign slot    = fetch_q & (size - 16'd1);
  assign to_end  = size - slot;
  assign waiting = prod_q - fetch_q;
  always_comb begin
    want = (waiting < Burst) ? waiting : Burst;
    if (to_end < want) want = to_end;
`ifndef RNIC_CUT_CMD_READ_STABLE
    if (offered_q) want = want_q;
`endif
  end
  assign rd_req_valid_o = running_q && !broken_q && go_i && want != '0 && stale_q == '0 && 16'(held_q) + want <= 16'(Depth);
  assign rd_req_o       = '{addr: ring_base_i + {42'd0, slot, 6'd0}, len: want << 6};
  assign rd_rsp_ready_o = 1'b1;
  assign fire           = rd_req_valid_o && rd_req_ready_i;
  assign rsp_end        = rd_rsp_valid_i && rd_rsp_ctl_i.last;
  assign mine           = stale_q == '0 && !broken_q;
  assign dma_err_o      = rsp_end && mine && !restart_i && rd_rsp_ctl_i.err != DMA_ERR_OK;

  // An error is known with the last beat: what a read brought becomes visible then, or not at all.
  logic word_valid, word_ready, in_ready;
  logic [DataW-1:0] word;
  rnic_ram_fifo #(.Width(DataW), .Depth(Depth * Beats)) u_words (
      .clk_i, .rst_i(rst_i || restart_i), .in_valid_i(rd_rsp_valid_i && mine), .in_ready_o(in_ready), .in_data_i(rd_rsp_data_i),
      .commit_i(rsp_end && mine && !dma_err_o), .rollback_i(dma_err_o),
      .out_valid_o(word_valid), .out_ready_i(word_ready), .out_data_o(word)
  );

  // ---------------------------------------------------------------- one command, word by word
  logic [511:0] cmd_q;
  logic [BeatW-1:0] beat_q;
  logic full_q, take, rsvd_q;
  logic [7:0] op_q, op;
  logic [511:0] mask;
  assign op         = (beat_q == '0) ? word[7:0] : op_q;   // it stands in the first word
  assign mask       = cmd_rsvd_mask(op);
  assign cmd_rsvd_o = rsvd_q;
  assign cmd_o       = cmd_q;
  assign cmd_valid_o = full_q;
  assign take        = full_q && cmd_ready_i;
  assign word_ready  = !full_q || take;
  assign got_cmd     = word_valid && word_ready && beat_q == BeatW'(Beats - 1);

  always_ff @(posedge clk_i) begin
    if (word_valid && word_ready) begin
      cmd_q  <= 512'({word, cmd_q} >> DataW);
      op_q   <= op;
      rsvd_q <= (rsvd_q && beat_q != '0) || (word & mask[32'(beat_q)*DataW+:DataW]) != '0;
      beat_q <= got_cmd ? '0 : beat_q + BeatW'(1);
    end
    if (got_cmd) full_q <= 1'b1;
    else if (take) full_q <= 1'b0;
    if (producer_we_i) begin
      if (db_ok) prod_q <= producer_i;
      else refused_q <= 1'b1;
    end
    if (fire) fetch_q <= fetch_q + want;
    offered_q <= rd_req_valid_o && !rd_req_ready_i;
    want_q    <= want;
    if (done_i) cons_q <= cons_q + 16'd1;
    held_q <= held_q + (fire ? HeldW'(want) : '0) - HeldW'(got_cmd);
    open_q <= open_q + 4'(fire) - 4'(rsp_end);
    if (stale_q != '0 && rsp_end) stale_q <= stale_q - 4'd1;
    if (dma_err_o) broken_q <= 1'b1;
    if (restart_i || rst_i) begin
      running_q <= !rst_i && log_size_i >= 4'd1 && log_size_i <= 4'd12;
      refused_q <= 1'b0;
      broken_q  <= 1'b0;
      prod_q    <= '0;
      fetch_q   <= '0;
      cons_q    <= '0;
      held_q    <= '0;
      beat_q    <= '0;
      full_q    <= 1'b0;
      offered_q <= 1'b0;
      stale_q   <= rst_i ? '0 : open_q + 4'(fire) - 4'(rsp_end);
    end
    if (rst_i) open_q <= '0;
    if (!rst_i && !restart_i && rd_rsp_valid_i && mine) a_room_was_kept : assert (in_ready);
    if (!rst_i && rd_rsp_valid_i) a_asked : assert (open_q != '0);
  end
endmodule
