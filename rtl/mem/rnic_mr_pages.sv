// SPDX-License-Identifier: Apache-2.0
// Translation through page lists: bus address of a byte of a region whose pages lie anywhere in host memory. A list is an array of
// 64-bit bus addresses, one a page, in host memory; a cache of its 64-byte lines stands here.
// Contract: req_valid_i hands over one translation, never refused: at most NumPort are inside, one a port. The answer is held
// until rsp_ready_i. rsp_room_o: bytes from the address on that lie in the same page, at most 4096. flush_i: what was read from host
// memory until then is not used again but for the answers under way. A list that cannot be read answers MR_ERR_LIST. One
// translation at a time, in order of arrival: 4 cycles when the line is here, else one DMA read of 64 bytes, whose data always sinks.
module rnic_mr_pages
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned DataW = 64,
    parameter int unsigned NumPort = 4,
    parameter int unsigned Lines = 64,       // of 64 bytes, a power of two
    localparam int unsigned PortW = (NumPort > 1) ? $clog2(NumPort) : 1
) (
    input  logic clk_i,
    input  logic rst_i,
    input  logic flush_i,
    input  logic req_valid_i,
    input  logic [PortW-1:0] req_port_i,
    input  logic [63:0] req_list_i,          // bus address of the list, a multiple of 8
    input  logic [4:0] req_log_page_i,       // MIN_MR_LOG_PAGE to MAX_MR_LOG_PAGE
    input  logic [48:0] req_pos_i,           // of the byte, from the beginning of the first page on
    output logic rsp_valid_o,
    input  logic rsp_ready_i,
    output logic [PortW-1:0] rsp_port_o,
    output mr_err_e rsp_err_o,
    output logic [63:0] rsp_addr_o,
    output pay_len_t rsp_room_o,
    output logic rd_req_valid_o,
    input  logic rd_req_ready_i,
    output dma_rd_req_t rd_req_o,
    input  logic rd_rsp_valid_i,
    output logic rd_rsp_ready_o,
    input  logic [DataW-1:0] rd_rsp_data_i,
    input  dma_rd_ctl_t rd_rsp_ctl_i
);
  localparam int unsigned LineW = $clog2(Lines);
  localparam int unsigned Beats = 512 / DataW;           // of a line
  localparam int unsigned BeatW = (Beats > 1) ? $clog2(Beats) : 1;
  localparam int unsigned Words = DataW / 64;            // addresses in a beat
  localparam int unsigned WordW = (Words > 1) ? $clog2(Words) : 1;
  localparam int unsigned TagW = 58 - LineW;

  typedef struct packed {
    logic [PortW-1:0] port;
    logic [63:0] list;
    logic [4:0]  log_page;
    logic [48:0] pos;
  } job_t;
  typedef enum logic [2:0] {
    PG_IDLE,    // takes the oldest translation apart
    PG_TAG,     // the cache is being read
    PG_CMP,     // is the line here?
    PG_ASK,     // asks for it
    PG_FILL,    // it comes
    PG_ANSWER
  } state_e;
  state_e state_q;

  job_t job;
  logic job_valid, job_ready, job_pop;
  /* verilator lint_off PINCONNECTEMPTY */
  rnic_fifo #(.Width($bits(job_t)), .Depth(NumPort)) u_jobs (
      .clk_i, .rst_i, .in_valid_i(req_valid_i), .in_ready_o(job_ready),
      .in_data_i({req_port_i, req_list_i, req_log_page_i, req_pos_i}),
      .out_valid_o(job_valid), .out_ready_i(job_pop), .out_data_o(job), .level_o()
  );
  /* verilator lint_on PINCONNECTEMPTY */
  assign job_pop = state_q == PG_IDLE;

  // ---------------------------------------------------------------- page, and place in it
  logic [PortW-1:0] port_q;
  logic [29:0] mask, in_page, in_page_q;
  logic [30:0] rest;
  pay_len_t room_q;
  // The two address bits below an entry are 0.
  // verilator lint_off UNUSEDSIGNAL
  logic [63:0] at_q;                         // bus address of the list entry
  // verilator lint_on UNUSEDSIGNAL
  assign mask    = (30'd1 << job.log_page) - 30'd1;
  assign in_page = job.pos[29:0] & mask;
  assign rest    = {1'b0, mask} + 31'd1 - {1'b0, in_page};

  // ---------------------------------------------------------------- lines
  logic [LineW-1:0] line;
  logic [TagW-1:0] tag, tag_here;
  logic [Lines-1:0] valid_q;
  logic [BeatW-1:0] beat, beat_q;
  logic [DataW-1:0] data_here;
  logic fill, mine, killed_q;
  logic [63:0] entry_q, entry_here, entry_in;
  assign line = at_q[6+:LineW];
  assign tag  = at_q[63-:TagW];
  assign fill = state_q == PG_FILL && rd_rsp_valid_i;
  rnic_ram #(.Width(TagW), .Depth(Lines)) u_tags (
      .clk_i, .we_i(fill && rd_rsp_ctl_i.last), .waddr_i(line), .wdata_i(tag), .re_i(1'b1), .raddr_i(line), .rdata_o(tag_here)
  );
  if (Beats > 1) begin : g_beats
    assign beat = at_q[5-:BeatW];
    rnic_ram #(.Width(DataW), .Depth(Lines * Beats)) u_lines (
        .clk_i, .we_i(fill), .waddr_i({line, beat_q}), .wdata_i(rd_rsp_data_i), .re_i(1'b1), .raddr_i({line, beat}), .rdata_o(data_here)
    );
  end else begin : g_beat
    assign beat = '0;
    rnic_ram #(.Width(DataW), .Depth(Lines)) u_lines (
        .clk_i, .we_i(fill), .waddr_i(line), .wdata_i(rd_rsp_data_i), .re_i(1'b1), .raddr_i(line), .rdata_o(data_here)
    );
  end
  if (Words > 1) begin : g_words
    logic [Words-1:0][63:0] here, in;
    assign here       = data_here;
    assign in         = rd_rsp_data_i;
    assign entry_here = here[at_q[3+:WordW]];
    assign entry_in   = in[at_q[3+:WordW]];
  end else begin : g_word
    assign entry_here = data_here;
    assign entry_in   = rd_rsp_data_i;
  end
  assign mine = beat_q == beat;

  // ---------------------------------------------------------------- answer
  mr_err_e err_q;
  assign rsp_valid_o    = state_q == PG_ANSWER;
  assign rsp_port_o     = port_q;
  assign rsp_err_o      = err_q;
  assign rsp_addr_o     = entry_q + 64'(in_page_q);
  assign rsp_room_o     = room_q;
  assign rd_req_valid_o = state_q == PG_ASK;
  assign rd_req_o       = '{addr: {at_q[63:6], 6'd0}, len: 16'd64};
  assign rd_rsp_ready_o = 1'b1;

  logic hit;
`ifdef RNIC_CUT_PAGE_TAG
  assign hit = valid_q[line] && tag_here[0] == tag[0];
`else
  assign hit = valid_q[line] && tag_here == tag;
`endif

  always_ff @(posedge clk_i) begin
    unique case (state_q)
      PG_IDLE: begin
        port_q    <= job.port;
        in_page_q <= in_page;
        room_q    <= (rest > 31'd4096) ? pay_len_t'(4096) : pay_len_t'(rest);
        at_q      <= job.list + {12'd0, job.pos >> job.log_page, 3'd0};
        err_q     <= MR_ERR_OK;
        if (job_valid) state_q <= PG_TAG;
      end
      PG_TAG: state_q <= PG_CMP;
      PG_CMP: begin
        entry_q <= entry_here;
        beat_q  <= '0;
        state_q <= hit ? PG_ANSWER : PG_ASK;
      end
      PG_ASK: if (rd_req_ready_i) state_q <= PG_FILL;
      PG_FILL:
      if (rd_rsp_valid_i) begin
        beat_q <= beat_q + BeatW'(1);
        if (mine) entry_q <= entry_in;
        if (rd_rsp_ctl_i.last) begin
`ifdef RNIC_CUT_PAGE_LIST_ERR
          err_q   <= MR_ERR_OK;
`else
          err_q   <= (rd_rsp_ctl_i.err == DMA_ERR_OK) ? MR_ERR_OK : MR_ERR_LIST;
`endif
          state_q <= PG_ANSWER;
        end
      end
      default: if (rsp_ready_i) state_q <= PG_IDLE;
    endcase
    // A line that was asked for before a flush is not kept.
    if (state_q == PG_CMP) killed_q <= flush_i;
    else if (flush_i) killed_q <= 1'b1;
    if (fill) valid_q[line] <= rd_rsp_ctl_i.last && rd_rsp_ctl_i.err == DMA_ERR_OK && !killed_q;
`ifdef RNIC_CUT_PAGE_FLUSH
    if (rst_i) valid_q <= '0;
`else
    if (rst_i || flush_i) valid_q <= '0;
`endif
    if (rst_i) state_q <= PG_IDLE;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      if (req_valid_i) a_room : assert (job_ready);
      if (req_valid_i) a_page_size : assert (req_log_page_i >= 5'(MIN_MR_LOG_PAGE) && req_log_page_i <= 5'(MAX_MR_LOG_PAGE));
      if (req_valid_i) a_list_aligned : assert (req_list_i[2:0] == '0);
      if (rd_rsp_valid_i) a_asked : assert (state_q == PG_FILL);
    end
  end
endmodule
