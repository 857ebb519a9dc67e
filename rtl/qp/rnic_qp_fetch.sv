// SPDX-License-Identifier: Apache-2.0
// Reads the inputs of a QP command: attribute records into a buffer, or a QPN list as a stream.
// Contract: start_i (only while idle_o) with the address and the number of items. Records (at most 64): one read; rec_we_o writes
// them lane by lane as they arrive, rec_have_o counts them; all are there when idle_o is high again, and good when err_o is low then. List:
// reads of 256 bytes, two under way at most, into a buffer that always has room; items come out in order, one a cycle, and only out of reads
// that ended well; they wait while records are fetched. err_o: a read failed (then item_valid_o ends early). abort_i: no new reads, items are
// dropped, idle_o when all answers are in. The buffer stands outside (buf_*: a FIFO of 128 items, emptied with a list's start).
module rnic_qp_fetch
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned DataW = 64,
    localparam int unsigned RecLane = 512 / DataW
) (
    input  logic clk_i,
    input  logic rst_i,
    input  logic start_i,
    input  logic records_i,                  // records, else list
    input  logic [63:0] addr_i,
    input  logic [16:0] items_i,             // 1 or more
    input  logic abort_i,
    output logic idle_o,
    output logic err_o,                      // held until the next start
    // records
    output logic [RecLane-1:0] rec_we_o,
    output logic [5:0] rec_row_o,
    output logic [6:0] rec_have_o,           // whole ones that have arrived
    output logic [DataW-1:0] rec_data_o,
    // list
    output logic buf_push_o,
    input  logic buf_ready_i,
    input  logic buf_valid_i,
    output logic buf_pop_o,
    input  logic [DataW-1:0] buf_data_i,
    output logic item_valid_o,
    input  logic item_ready_i,
    output logic [31:0] item_o,
    // DMA
    output logic rd_req_valid_o, input logic rd_req_ready_i, output dma_rd_req_t rd_req_o,
    input  logic rd_rsp_valid_i, output logic rd_rsp_ready_o, input logic [DataW-1:0] rd_rsp_data_i, input dma_rd_ctl_t rd_rsp_ctl_i
);
  localparam int unsigned ChunkItems = 64;
  localparam int unsigned ItemLane = DataW / 32;
  localparam int unsigned LaneW = $clog2(ItemLane);
  localparam int unsigned RecLaneW = (RecLane > 1) ? $clog2(RecLane) : 1;

  logic records_q, err_q, drop_q;
  logic [63:0] addr_q;
  logic [16:0] ask_q;                        // items not asked for yet
  logic [7:0]  come_q;                       // asked for and not arrived
  logic [16:0] due_q;                        // items that have not arrived yet, asked for or not
  logic [7:0]  have_q;                       // items in the buffer, all of them good
  logic [6:0]  chunk;
  logic [1:0]  open_q;                       // reads under way
  logic        take_req, beat, last, bad;

  // ---------------------------------------------------------------- requests
  assign chunk = (ask_q > 17'(ChunkItems)) ? 7'(ChunkItems) : 7'(ask_q);
  assign rd_req_valid_o = (ask_q != '0) && (records_q || (open_q != 2'd2 && come_q + have_q <= 8'(ChunkItems)));
  assign rd_req_o.addr  = addr_q;
  assign rd_req_o.len   = records_q ? 16'(ask_q) << 6 : 16'(chunk) << 2;
  assign take_req       = rd_req_valid_o && rd_req_ready_i;
  assign rd_rsp_ready_o = 1'b1;
  assign beat           = rd_rsp_valid_i;
  assign last           = beat && rd_rsp_ctl_i.last;
  assign bad            = rd_rsp_ctl_i.err != DMA_ERR_OK;
  assign idle_o         = (ask_q == '0) && (open_q == '0);
  assign err_o          = err_q;

  logic [7:0] chunk_in;                     // items of the read that is arriving
  assign chunk_in = (due_q > 17'(ChunkItems)) ? 8'(ChunkItems) : 8'(due_q);

  // ---------------------------------------------------------------- records
  logic [RecLaneW-1:0] rec_lane_q;
  logic [6:0] rec_row_q;
  assign rec_we_o   = (beat && records_q) ? RecLane'(1) << rec_lane_q : '0;
  assign rec_row_o  = rec_row_q[5:0];
  assign rec_have_o = rec_row_q;
  assign rec_data_o = rd_rsp_data_i;

  // ---------------------------------------------------------------- list
  logic [LaneW-1:0] lane_q;
  logic take_item, push;
  assign push = beat && !records_q && !drop_q;
  assign buf_push_o   = push;
  assign buf_pop_o    = take_item && lane_q == LaneW'(ItemLane - 1);
  assign item_valid_o = have_q != '0;
  assign item_o       = buf_data_i[32*lane_q+:32];
  assign take_item    = item_valid_o && item_ready_i;

  always_ff @(posedge clk_i) begin
    if (beat) begin
      rec_lane_q <= (rec_lane_q == RecLaneW'(RecLane - 1)) ? '0 : rec_lane_q + RecLaneW'(1);
      if (rec_lane_q == RecLaneW'(RecLane - 1)) rec_row_q <= rec_row_q + 7'd1;
    end
    if (rst_i) begin
      ask_q     <= '0;
      come_q    <= '0;
      due_q     <= '0;
      have_q    <= '0;
      open_q    <= '0;
      err_q     <= 1'b0;
      drop_q    <= 1'b0;
      records_q <= 1'b0;
    end else begin
      if (take_req) begin
        ask_q  <= records_q ? '0 : ask_q - 17'(chunk);
        addr_q <= addr_q + 64'(4 * ChunkItems);
      end
      if (take_item) lane_q <= lane_q + LaneW'(1);
      open_q <= open_q + 2'(take_req) - 2'(last);
      come_q <= come_q + (take_req ? 8'(chunk) : '0) - (last ? chunk_in : '0);
      have_q <= have_q - 8'(take_item) + ((last && !bad && !records_q && !drop_q) ? chunk_in : '0);
      if (last) begin
        due_q <= due_q - 17'(chunk_in);
        if (bad) err_q <= 1'b1;
      end
`ifdef RNIC_CUT_QP_DMA_ERR
      err_q <= 1'b0;
`endif
      if (abort_i || (last && bad)) drop_q <= 1'b1;
      // A request that is offered stays offered; what would follow it is given up.
      if (drop_q && (rd_req_ready_i || !rd_req_valid_o)) ask_q <= '0;
      if (abort_i) have_q <= '0;
      if (start_i) begin
        records_q  <= records_i;
        addr_q     <= addr_i;
        ask_q      <= items_i;
        due_q      <= items_i;
        come_q     <= '0;
        if (!records_i) begin
          have_q <= '0;
          lane_q <= '0;
        end
        rec_lane_q <= '0;
        rec_row_q  <= '0;
        err_q      <= 1'b0;
        drop_q     <= 1'b0;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      if (start_i) a_start_idle : assert (idle_o);
      if (beat) a_awaited : assert (open_q != '0);
      if (push) a_room : assert (buf_ready_i);
      if (item_valid_o) a_there : assert (buf_valid_i);
    end
  end
endmodule
