// SPDX-License-Identifier: Apache-2.0
// Translation through page lists: bus address of a byte of a region whose pages lie anywhere in host memory. A list is an array of
// 64-bit bus addresses, one a page, in host memory; a cache of its 64-byte lines stands here.
// Contract: req_valid_i, only while free_o is high, hands over one translation; list_i, log_page_i and pos_i stand until it is free again. The
// answer is held until rsp_ready_i. rsp_room_o: bytes from the address on that lie in the same page, at most 4096. req_place_i: only at_o
// (where in the list the page stands) and in_page_o are asked for. flush_i: what was read from host
// memory until then is not used again but for the answer under way. A list that cannot be read answers MR_ERR_LIST. One
// translation at a time: 4 cycles when the line is here (two more beside a narrow data path, whose tags are read in halves, and then one for
// each factor of 16 and of 2 in pages larger than 4096 bytes), else one DMA read of 64 bytes, whose data always sinks.
// A line is here when its tag is of the present epoch, which each flush ends; when the numbers run out all tags are swept, and so after reset.
module rnic_mr_pages
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned DataW = 64,
    parameter int unsigned PortW = 2,
    parameter int unsigned Lines = 64        // of 64 bytes, a power of two
) (
    input  logic clk_i,
    input  logic rst_i,
    input  logic flush_i,
    output logic free_o,
    input  logic req_valid_i,
    input  logic [PortW-1:0] req_port_i,
    input  logic req_place_i,
    input  logic [63:0] list_i,              // bus address of the list, a multiple of 8
    input  logic [4:0] log_page_i,           // MIN_MR_LOG_PAGE to MAX_MR_LOG_PAGE
    input  logic [48:0] pos_i,               // of the byte, from the beginning of the first page on
    output logic rsp_valid_o,
    input  logic rsp_ready_i,
    output logic [PortW-1:0] rsp_port_o,
    output mr_err_e rsp_err_o,
    output logic [63:0] rsp_addr_o,
    output pay_len_t rsp_room_o,
    output logic [63:0] at_o,
    output logic [29:0] in_page_o,
    output logic rd_req_valid_o,
    input  logic rd_req_ready_i,
    output dma_rd_req_t rd_req_o,
    input  logic rd_rsp_valid_i,
    output logic rd_rsp_ready_o,
    input  logic [DataW-1:0] rd_rsp_data_i,
    input  dma_rd_ctl_t rd_rsp_ctl_i
);
  localparam bit Narrow = DataW < 256;
  localparam int unsigned LineW = $clog2(Lines);
  localparam int unsigned Beats = 512 / DataW;           // of a line
  localparam int unsigned BeatW = (Beats > 1) ? $clog2(Beats) : 1;
  localparam int unsigned Words = DataW / 64;            // addresses in a beat
  localparam int unsigned WordW = (Words > 1) ? $clog2(Words) : 1;
  localparam int unsigned TagW = 58 - LineW;
  localparam int unsigned HalfW = (TagW + 1) / 2;
  localparam int unsigned EpochW = 8;
  localparam int unsigned MinLog = MIN_MR_LOG_PAGE;
  localparam int unsigned MidW = MAX_MR_LOG_PAGE - MinLog;   // bits of a place in the largest page above those in the smallest

  typedef enum logic [3:0] {
    PG_IDLE,
    PG_PAGE,    // which page, and where in it
    PG_TAG,     // the cache is being read
    PG_HALF,    // the first half of the tag is here
    PG_CMP,     // is the line here?
    PG_ASK,     // asks for it
    PG_FILL,    // it comes
    PG_LOW,     // the first half of its tag is written
    PG_KEEP,    // its tag is written, and the address read
    PG_ANSWER
  } state_e;
  state_e state_q;

  // ---------------------------------------------------------------- page, and place in it
  // Step by step, or at once where there is no time for steps.
  logic [PortW-1:0] port_q;
  logic place_q, no_steps;
  logic [4:0] steps_q;
  logic [48-MinLog:0] page_q;
  logic [MidW-1:0] mask_q, mid;
  logic last_part;
  logic [29:0] in_page;
  // The two address bits below an entry are 0.
  // verilator lint_off UNUSEDSIGNAL
  logic [63:0] at_q;                         // bus address of the list entry
  // verilator lint_on UNUSEDSIGNAL
  assign mid       = pos_i[MinLog+:MidW] & mask_q;
  assign in_page   = 30'({mid, pos_i[MinLog-1:0]});
  assign last_part = mid == mask_q;
  assign at_o      = at_q;
  assign in_page_o = in_page;
  assign no_steps  = steps_q == '0;

  // ---------------------------------------------------------------- lines
  logic [LineW-1:0] line, sweep_idx_q;
  logic [TagW-1:0] tag;
  logic [BeatW-1:0] beat_q;
  logic [DataW-1:0] data_here;
  logic fill, sweep_q, keep, hit, kept_ok_q;
  logic [EpochW-1:0] epoch_q, asked_q;       // asked: the one in which the line was asked for
  logic [63:0] entry_here;
  assign line = at_q[6+:LineW];
  assign tag  = at_q[63-:TagW];
  assign fill = state_q == PG_FILL && rd_rsp_valid_i;
  assign keep = state_q == PG_KEEP;
  assign free_o = state_q == PG_IDLE && !sweep_q;
  // An epoch of 0 never is.
  logic [EpochW-1:0] kept;
  assign kept = (sweep_q || !kept_ok_q) ? '0 : asked_q;
  if (Narrow) begin : g_halves
    logic [EpochW+HalfW-1:0] out, low, high;
    logic low_ok_q, match;
    assign low  = (EpochW + HalfW)'(tag[HalfW-1:0]);
    assign high = {kept, HalfW'(tag[TagW-1:HalfW])};
    rnic_ram #(.Width(EpochW + HalfW), .Depth(2 * Lines), .Bypass(1'b0)) u_tags (
        .clk_i, .we_i(sweep_q || keep || state_q == PG_LOW), .waddr_i(sweep_q ? {sweep_idx_q, 1'b1} : {line, keep}), .wdata_i((sweep_q || keep) ? high : low),
        .re_i(1'b1), .raddr_i({line, state_q == PG_HALF}), .rdata_o(out)
    );
`ifdef RNIC_CUT_PAGE_TAG
    assign match = 1'b1;
    always_ff @(posedge clk_i) low_ok_q <= out[0] == tag[0];
`else
    assign match = out[HalfW-1:0] == HalfW'(tag[TagW-1:HalfW]);
    always_ff @(posedge clk_i) low_ok_q <= out[HalfW-1:0] == tag[HalfW-1:0];
`endif
    assign hit = low_ok_q && match && out[HalfW+:EpochW] == epoch_q && !sweep_q;
  end else begin : g_whole
    logic [TagW-1:0] tag_here;
    logic [EpochW-1:0] epoch_here;
    logic match;
    rnic_ram #(.Width(EpochW + TagW), .Depth(Lines), .Bypass(1'b0)) u_tags (
        .clk_i, .we_i(sweep_q || keep), .waddr_i(sweep_q ? sweep_idx_q : line), .wdata_i({kept, tag}),
        .re_i(1'b1), .raddr_i(line), .rdata_o({epoch_here, tag_here})
    );
`ifdef RNIC_CUT_PAGE_TAG
    assign match = tag_here[0] == tag[0];
`else
    assign match = tag_here == tag;
`endif
    assign hit = match && epoch_here == epoch_q && !sweep_q;
  end
  if (Beats > 1) begin : g_beats
    logic [BeatW-1:0] beat;
    assign beat = at_q[5-:BeatW];
    rnic_ram #(.Width(DataW), .Depth(Lines * Beats), .Bypass(1'b0)) u_lines (
        .clk_i, .we_i(fill), .waddr_i({line, beat_q}), .wdata_i(rd_rsp_data_i), .re_i(1'b1), .raddr_i({line, beat}), .rdata_o(data_here)
    );
  end else begin : g_beat
    rnic_ram #(.Width(DataW), .Depth(Lines), .Bypass(1'b0)) u_lines (
        .clk_i, .we_i(fill), .waddr_i(line), .wdata_i(rd_rsp_data_i), .re_i(1'b1), .raddr_i(line), .rdata_o(data_here)
    );
  end
  if (Words > 1) begin : g_words
    logic [Words-1:0][63:0] here;
    assign here       = data_here;
    assign entry_here = here[at_q[3+:WordW]];
  end else begin : g_word
    assign entry_here = data_here;
  end

  // ---------------------------------------------------------------- answer
  mr_err_e err_q;
  assign rsp_valid_o    = state_q == PG_ANSWER;
  assign rsp_port_o     = port_q;
  assign rsp_err_o      = err_q;
  assign rsp_addr_o     = entry_here + 64'(in_page);
  assign rsp_room_o     = pay_len_t'(4096) - (last_part ? pay_len_t'(pos_i[11:0]) : '0);
  assign rd_req_valid_o = state_q == PG_ASK;
  assign rd_req_o       = '{addr: {at_q[63:6], 6'd0}, len: 16'd64};
  assign rd_rsp_ready_o = 1'b1;

  always_ff @(posedge clk_i) begin
    unique case (state_q)
      PG_IDLE: begin
        port_q  <= req_port_i;
        place_q <= req_place_i;
        err_q   <= MR_ERR_OK;
        if (Narrow) begin
          page_q  <= pos_i[48:MinLog];
          mask_q  <= '0;
          steps_q <= log_page_i - 5'(MinLog);
        end else begin
          page_q  <= (49 - MinLog)'(pos_i >> log_page_i);
          mask_q  <= MidW'(((30'd1 << log_page_i) - 30'd1) >> MinLog);
          steps_q <= '0;
        end
        if (req_valid_i) state_q <= PG_PAGE;
      end
      PG_PAGE: begin
        at_q <= list_i + {64'(page_q) << 3};
        if (steps_q >= 5'd4) begin
          page_q  <= page_q >> 4;
          mask_q  <= {mask_q[MidW-5:0], 4'hf};
          steps_q <= steps_q - 5'd4;
        end else if (!no_steps) begin
          page_q  <= page_q >> 1;
          mask_q  <= {mask_q[MidW-2:0], 1'b1};
          steps_q <= steps_q - 5'd1;
        end else begin
          state_q <= place_q ? PG_ANSWER : PG_TAG;
        end
      end
      PG_TAG: state_q <= Narrow ? PG_HALF : PG_CMP;
      PG_HALF: state_q <= PG_CMP;
      PG_CMP: begin
        beat_q    <= '0;
        asked_q   <= epoch_q;
        kept_ok_q <= 1'b0;
        state_q   <= hit ? PG_ANSWER : PG_ASK;
      end
      PG_ASK: if (rd_req_ready_i) state_q <= PG_FILL;
      PG_FILL:
      if (rd_rsp_valid_i) begin
        beat_q <= beat_q + BeatW'(1);
        if (rd_rsp_ctl_i.last) begin
`ifdef RNIC_CUT_PAGE_LIST_ERR
          err_q   <= MR_ERR_OK;
`else
          err_q   <= (rd_rsp_ctl_i.err == DMA_ERR_OK) ? MR_ERR_OK : MR_ERR_LIST;
`endif
          kept_ok_q <= rd_rsp_ctl_i.err == DMA_ERR_OK;
          state_q   <= Narrow ? PG_LOW : PG_KEEP;
        end
      end
      PG_LOW: if (!sweep_q) state_q <= PG_KEEP;
      PG_KEEP: if (!sweep_q) state_q <= PG_ANSWER;
      default: if (rsp_ready_i) state_q <= PG_IDLE;
    endcase
    if (sweep_q) begin
      sweep_idx_q <= sweep_idx_q + LineW'(1);
      if (sweep_idx_q == LineW'(Lines - 1)) sweep_q <= 1'b0;
    end
`ifndef RNIC_CUT_PAGE_FLUSH
    if (flush_i) begin
      epoch_q <= epoch_q + EpochW'(1);
      if (epoch_q == '1) begin
        epoch_q     <= EpochW'(1);
        sweep_q     <= 1'b1;
        sweep_idx_q <= '0;
        asked_q     <= '0;
      end
    end
`endif
    if (rst_i) begin
      state_q     <= PG_IDLE;
      epoch_q     <= EpochW'(1);
      sweep_q     <= 1'b1;
      sweep_idx_q <= '0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      if (req_valid_i) a_free : assert (free_o);
      if (req_valid_i) a_page_size : assert (log_page_i >= 5'(MIN_MR_LOG_PAGE) && log_page_i <= 5'(MAX_MR_LOG_PAGE));
      if (req_valid_i) a_list_aligned : assert (list_i[2:0] == '0);
      if (rd_rsp_valid_i) a_asked : assert (state_q == PG_FILL);
    end
  end
endmodule
