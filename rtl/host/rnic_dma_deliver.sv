// SPDX-License-Identifier: Apache-2.0
// Delivery of the DMA reads: takes the reads in the order in which they were issued, waits for each one's completions or its
// time-out, and gives the clients their requests as packed byte streams.
// Contract: issue_*: one per cycle, never refused (at most Tags inside). A request is one or more reads; its beats are full
// but the last, its error is the first one of its reads, and stands beside the last beat. Reads that failed deliver as many
// bytes as they should, all zero. The stream of rows has no pauses between the reads of a request; between requests there may be one of a cycle. free_*: the tag of a read is no longer
// needed; free_row_o: rows before this one are not needed any more. Of lanes behind a request's last byte nothing is promised.
module rnic_dma_deliver
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned DataW = 64,
    parameter int unsigned Tags = 64,
    parameter int unsigned Rows = 4096,
    parameter int unsigned NumRd = 6,
    localparam int unsigned TagW = $clog2(Tags),
    localparam int unsigned RowW = $clog2(Rows),
    localparam int unsigned CntW = $clog2(DataW / 8 + 1),
    localparam int unsigned UsedW = $clog2(1024 * 8 / DataW + 1),
    localparam int unsigned ClW = (NumRd > 1) ? $clog2(NumRd) : 1
) (
    input  logic             clk_i,
    input  logic             rst_i,
    input  logic [23:0]      now_i,
    input  logic [23:0]      until_i,        // and when a read is too late that is issued now
    // a read is issued
    input  logic             issue_valid_i,
    input  logic [TagW-1:0]  issue_tag_i,
    input  logic [ClW-1:0]   issue_client_i,
    input  logic             issue_last_i,   // last read of its request
    input  logic [10:0]      issue_bytes_i,
    input  logic [1:0]       issue_skip_i,   // lanes of its first row before its first byte
    input  logic [UsedW-1:0] issue_rows_i,   // rows reserved
    // state of the oldest read
    output logic [TagW-1:0]  done_tag_o,
    input  logic             done_i,
    input  dma_err_e         done_err_i,
    input  logic [UsedW-1:0] done_rows_i,
    output logic             expired_o,
    input  logic             given_up_i,
    // rows, data one cycle later
    output logic             row_re_o,
    output logic [RowW-1:0]  row_o,
    input  logic [DataW-1:0] row_data_i,
    input  logic [CntW-1:0]  row_cnt_i,
    output logic             free_valid_o,
    output logic             free_rest_o,    // more completions may come for this tag
    output logic [TagW-1:0]  free_tag_o,
    output logic [RowW-1:0]  free_row_o,
    // clients
    output logic [NumRd-1:0] rsp_valid_o,
    input  logic [NumRd-1:0] rsp_ready_i,
    output logic [DataW-1:0] rsp_data_o,
    output dma_rd_ctl_t      rsp_ctl_o
);
  localparam int unsigned B = DataW / 8;
  localparam int unsigned LaneW = $clog2(B);

  // ---------------------------------------------------------------- order of the reads
  typedef struct packed {
    logic [TagW-1:0]  tag;
    logic [ClW-1:0]   client;
    logic             last;
    logic [10:0]      bytes;
    logic [1:0]       skip;
    logic [UsedW-1:0] rows;
    logic [23:0]      limit;
  } read_t;
  read_t head;
  logic head_valid, order_ready, load;
  // verilator lint_off PINCONNECTEMPTY
  rnic_fifo #(.Width($bits(read_t)), .Depth(Tags)) u_order (
      .clk_i, .rst_i, .in_valid_i(issue_valid_i), .in_ready_o(order_ready),
      .in_data_i({issue_tag_i, issue_client_i, issue_last_i, issue_bytes_i, issue_skip_i, issue_rows_i, until_i}),
      .out_valid_o(head_valid), .out_ready_i(load), .out_data_o(head), .level_o()
  );
  // verilator lint_on PINCONNECTEMPTY

  // The oldest read is the first to time out, so only its age matters.
  logic given_up_q, ready;
  dma_err_e err;
  assign done_tag_o = head.tag;
  logic late;
  assign late       = $signed(head.limit - now_i) < 0;   // less than half of its range otherwise
`ifdef RNIC_CUT_DMA_TIMEOUT
  assign expired_o  = 1'b0;
`else
  assign expired_o  = head_valid && late;
`endif
  assign ready = head_valid && (done_i || given_up_q);
  assign err   = given_up_q ? DMA_ERR_TIMEOUT : done_err_i;
  always_ff @(posedge clk_i) begin
    if (rst_i || load) given_up_q <= 1'b0;
    else if (given_up_i) given_up_q <= 1'b1;
  end
  assign free_valid_o = load;
  assign free_tag_o   = head.tag;
  assign free_rest_o  = given_up_q || done_err_i == DMA_ERR_MALFORMED;

  // ---------------------------------------------------------------- rows, packed to the beats of a request
  logic cur_valid_q, cur_void_q, cur_last_q, cur_end, step, adv;
  logic [ClW-1:0] cur_client_q;
  dma_err_e cur_err_q;                     // of the request so far: the first one of its reads
  logic [RowW-1:0] cur_row_q, cur_after_q; // one read's rows begin where those of the one before end
  logic [UsedW-1:0] cur_rows_q;            // rows to read; full beats, of a read that failed
  logic [LaneW-1:0] cur_part_q;            // bytes beyond the full beats of one that failed
  logic [LaneW-1:0] cur_turn_q, row_turn_q;
  logic row_valid_q, row_void_q, row_last_q, pack_ready;
  logic [ClW-1:0] row_client_q;
  dma_err_e row_err_q;
  logic [CntW-1:0] void_cnt_q;
  assign adv      = !row_valid_q || pack_ready;
  assign step     = cur_valid_q && adv;
  assign cur_end  = cur_rows_q == UsedW'(!(cur_void_q && cur_part_q != '0));
  assign load     = ready && (!cur_valid_q || (step && cur_end));
  assign row_re_o = step;
  assign row_o    = cur_row_q;

  logic begins_q;                          // the next read is the first one of its request
  always_ff @(posedge clk_i) begin
    if (step) begin
      cur_row_q    <= cur_row_q + RowW'(1);
      cur_rows_q   <= cur_rows_q - UsedW'(1);
      cur_turn_q   <= '0;
      row_turn_q   <= cur_turn_q;
      row_void_q   <= cur_void_q;
      row_last_q   <= cur_end && cur_last_q;
      row_client_q <= cur_client_q;
      row_err_q    <= cur_err_q;
      void_cnt_q   <= (cur_end && cur_part_q != '0) ? CntW'(cur_part_q) : CntW'(B);
    end
    if (load) begin
      cur_void_q   <= err != DMA_ERR_OK;
      cur_row_q    <= cur_after_q;
      cur_rows_q   <= (err != DMA_ERR_OK) ? UsedW'(head.bytes >> LaneW) : done_rows_i;
      cur_part_q   <= LaneW'(head.bytes);
      cur_turn_q   <= LaneW'(0) - LaneW'(head.skip);
      cur_after_q  <= cur_after_q + RowW'(head.rows);
      cur_last_q   <= head.last;
      cur_client_q <= head.client;
      if (begins_q || cur_err_q == DMA_ERR_OK) cur_err_q <= err;
    end
    if (rst_i) begin
      cur_valid_q <= 1'b0;
      row_valid_q <= 1'b0;
      free_row_o  <= '0;
      cur_after_q <= '0;
      begins_q    <= 1'b1;
    end else begin
      if (load) cur_valid_q <= 1'b1;
      else if (step && cur_end) cur_valid_q <= 1'b0;
      if (adv) row_valid_q <= cur_valid_q;
      if (step && cur_end) free_row_o <= cur_after_q;
      if (load) begins_q <= head.last;
    end
  end

  typedef struct packed {
    logic [ClW-1:0] client;
    dma_err_e       err;
  } told_t;
  told_t told;
  logic pack_valid, pack_last, out_ready;
  logic [DataW-1:0] pack_data;
  rnic_packer #(.Bytes(B), .MetaW($bits(told_t))) u_packer (
      .clk_i, .rst_i, .in_valid_i(row_valid_q), .in_ready_o(pack_ready), .in_data_i(row_void_q ? '0 : row_data_i),
      .in_cnt_i(row_void_q ? void_cnt_q : row_cnt_i), .in_last_i(row_last_q), .in_turn_i(row_turn_q), .in_meta_i({row_client_q, row_err_q}),
      .out_valid_o(pack_valid), .out_ready_i(out_ready), .out_data_o(pack_data), .out_last_o(pack_last), .out_meta_o(told)
  );

  typedef struct packed {
    logic [ClW-1:0]   client;
    dma_rd_ctl_t      ctl;
    logic [DataW-1:0] data;
  } out_t;
  out_t out_in, out;
  logic out_valid;
  assign out_in = '{client: told.client, ctl: '{last: pack_last, err: pack_last ? told.err : DMA_ERR_OK}, data: pack_data};
  rnic_skid #(.Width($bits(out_t))) u_out (
      .clk_i, .rst_i, .in_valid_i(pack_valid), .in_ready_o(out_ready), .in_data_i(out_in),
      .out_valid_o(out_valid), .out_ready_i(rsp_ready_i[out.client]), .out_data_o(out)
  );
  assign rsp_valid_o = NumRd'(out_valid) << out.client;
  assign rsp_data_o  = out.data;
  assign rsp_ctl_o   = out.ctl;

  always_ff @(posedge clk_i) begin
    if (!rst_i) a_order_has_room : assert (!issue_valid_i || order_ready);
  end
endmodule
