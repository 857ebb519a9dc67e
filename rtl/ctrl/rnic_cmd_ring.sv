// SPDX-License-Identifier: Apache-2.0
// Command ring: fetches 64-byte commands ahead of the executor.
// Contract: commands come out in ring order. A doorbell beyond the ring (or backwards) is refused and remembered (status bit 1). A ring that
// cannot be read stops for good (status bit 2, dma_err_o). Writing LOG_SIZE restarts it at entry 0; answers to reads of the
// old ring are thrown away. done_i counts a command whose completion has been accepted.
module rnic_cmd_ring
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned DataW = 64,
    parameter int unsigned Depth = 8
) (
    input  logic clk_i,
    input  logic rst_i,
    input  logic go_i,                       // enabled, bus master, not fatal
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
    input  logic done_i
);
  localparam int unsigned Beats = 512 / DataW;
  localparam int unsigned BeatW = (Beats > 1) ? $clog2(Beats) : 1;
  localparam logic [15:0] Burst = 16'd4;     // commands per read
  logic running_q, refused_q, broken_q;
  logic [15:0] prod_q, fetch_q, cons_q, size, slot, n, to_end, waiting;
  logic [4:0] held_q;                        // asked for and not yet taken by the executor
  logic [3:0] open_q, stale_q;               // reads under way; those of an earlier ring
  assign producer_o = prod_q;
  assign consumer_o = cons_q;
  assign status_o   = {broken_q, refused_q, running_q && !broken_q};

  assign size    = 16'd1 << log_size_i;
  assign slot    = fetch_q & (size - 16'd1);
  assign to_end  = size - slot;
  assign waiting = prod_q - fetch_q;
  always_comb begin
    n = (waiting < Burst) ? waiting : Burst;
    if (to_end < n) n = to_end;
    if (16'(Depth) - 16'(held_q) < n) n = 16'(Depth) - 16'(held_q);
  end
  assign rd_req_valid_o = running_q && !broken_q && go_i && n != '0 && stale_q == '0 && (n == waiting || n == Burst || n == to_end);
  assign rd_req_o       = '{addr: ring_base_i + {42'd0, slot, 6'd0}, len: n << 6};
  assign rd_rsp_ready_o = 1'b1;

  logic fire, rsp_end, take, full_cmd;
  logic [511:0] gather;
  logic [BeatW-1:0] beat_q;
  assign fire     = rd_req_valid_o && rd_req_ready_i;
  assign rsp_end  = rd_rsp_valid_i && rd_rsp_ctl_i.last;
  assign full_cmd = rd_rsp_valid_i && beat_q == BeatW'(Beats - 1) && stale_q == '0 && !broken_q;
  assign dma_err_o = rsp_end && rd_rsp_ctl_i.err != DMA_ERR_OK && stale_q == '0 && !broken_q;
  if (Beats > 1) begin : g_gather
    logic [511-DataW:0] earlier_q;
    assign gather = {rd_rsp_data_i, earlier_q};
    always_ff @(posedge clk_i) if (rd_rsp_valid_i) earlier_q <= gather[511:DataW];
  end else begin : g_whole
    assign gather = rd_rsp_data_i;
  end
  // The error of a read is known with its last beat: what it brought is kept back until then.
  logic [15:0] ok_cmds_q;                    // commands of this read, in the FIFO but not released
  logic fifo_valid, fifo_ready;
  logic [15:0] released_q;
  assign cmd_valid_o = fifo_valid && released_q != '0;
  assign take        = cmd_valid_o && cmd_ready_i;
  logic flush_q;
  logic fifo_in_ready;
  // verilator lint_off PINCONNECTEMPTY
  rnic_fifo #(.Width(512), .Depth(Depth)) u_fifo (
      .clk_i, .rst_i(rst_i || flush_q), .in_valid_i(full_cmd), .in_ready_o(fifo_in_ready), .in_data_i(gather),
      .out_valid_o(fifo_valid), .out_ready_i(fifo_ready), .out_data_o(cmd_o), .level_o()
  );
  // verilator lint_on PINCONNECTEMPTY
  assign fifo_ready = take;

  logic [15:0] ahead_new, ahead_old;
  assign ahead_new = producer_i - cons_q;
  assign ahead_old = prod_q - cons_q;

  always_ff @(posedge clk_i) begin
    flush_q <= restart_i;
    if (rd_rsp_valid_i) begin
      beat_q   <= (beat_q == BeatW'(Beats - 1)) ? '0 : beat_q + BeatW'(1);
    end
    if (producer_we_i && running_q) begin
      if (ahead_new <= size && ahead_new >= ahead_old) prod_q <= producer_i;
      else refused_q <= 1'b1;
    end
    if (fire) fetch_q <= fetch_q + n;
    if (done_i) cons_q <= cons_q + 16'd1;
    held_q <= held_q + (fire ? 5'(n) : 5'd0) - 5'(take);
    open_q <= open_q + 4'(fire) - 4'(rsp_end);
    if (stale_q != '0 && rsp_end) stale_q <= stale_q - 4'd1;
    ok_cmds_q  <= rsp_end ? '0 : ok_cmds_q + 16'(full_cmd);
    released_q <= released_q + ((rsp_end && !dma_err_o && stale_q == '0 && !broken_q) ? ok_cmds_q + 16'(full_cmd) : 16'd0) - 16'(take);
    if (dma_err_o) broken_q <= 1'b1;
    if (restart_i || rst_i) begin
      running_q  <= !rst_i && log_size_i >= 4'd1 && log_size_i <= 4'd12;
      refused_q  <= 1'b0;
      broken_q   <= 1'b0;
      prod_q     <= '0;
      fetch_q    <= '0;
      cons_q     <= '0;
      held_q     <= '0;
      stale_q    <= rst_i ? '0 : open_q + 4'(fire) - 4'(rsp_end);
      ok_cmds_q  <= '0;
      released_q <= '0;
    end
    if (rst_i) begin
      open_q <= '0;
      beat_q <= '0;
      flush_q <= 1'b0;
    end
    if (!rst_i && full_cmd && !flush_q) a_room_was_kept : assert (fifo_in_ready);
  end
endmodule
