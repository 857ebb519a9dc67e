// SPDX-License-Identifier: Apache-2.0
// Receive WQEs: read from host memory once, then served from a cache.
// Contract: req_valid_i with its fields is held until rsp_valid_o, which is high for one cycle: then either err_o (the
// read failed, dma_err_o tells how; or the WQE is malformed) or num_sge_o is right and the elements stand at the read
// port (one cycle after sge_idx_i; below 128 bits length and key after sge_len_i, the address without) until the next request. A line belongs to the QPs with the same low index bits
// and is named by index, life and post number; inval_i, beside qp_idx_i and never while a request stands, forgets the line of a QP whose WQE is completed, since a post number
// comes again after 65536 posts. fresh_i: the WQE is read whatever the line holds (a slot of a shared receive queue says nothing of what it
// holds now). next_o is the header's link. 3 cycles on a hit; on a miss the host's answer, bounded by the completion time-out.
module rnic_rq_fetch
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned DataW = 64,
    parameter int unsigned QpIdxW = 10,
    parameter int unsigned MaxRqStride = 4,
    parameter int unsigned LogLines = 6
) (
    input  logic         clk_i,
    input  logic         rst_i,
    input  logic         req_valid_i,
    // verilator lint_off UNUSEDSIGNAL
    // (indices are as wide as the largest table needs)
    input  qp_idx_t      qp_idx_i,
    // verilator lint_on UNUSEDSIGNAL
    input  epoch_t       epoch_i,
    input  wqe_idx_t     wqe_idx_i,
    input  logic         fresh_i,
    input  logic [63:0]  rq_base_i,
    input  logic [3:0]   log_rq_i,
    input  logic [3:0]   log_stride_i,
    output logic         rsp_valid_o,
    output logic         err_o,
    output dma_err_e     dma_err_o,
    output logic [4:0]   num_sge_o,
    output wqe_idx_t     next_o,
    input  logic [3:0]   sge_idx_i,
    input  logic         sge_len_i,
    output logic [63:0]  sge_addr_o,
    output logic [31:0]  sge_length_o,
    output logic [31:0]  sge_lkey_o,
    input  logic         inval_i,
    // DMA
    output logic         rd_req_valid_o,
    input  logic         rd_req_ready_i,
    output dma_rd_req_t  rd_req_o,
    input  logic         rd_rsp_valid_i,
    output logic         rd_rsp_ready_o,
    input  logic [DataW-1:0] rd_rsp_data_i,
    input  dma_rd_ctl_t  rd_rsp_ctl_i
);
  localparam int unsigned LineW = (QpIdxW < LogLines) ? QpIdxW : LogLines;
  localparam int unsigned Lines = 1 << LineW;
  // Elements that fit the largest stride: the header takes the place of one.
  localparam int unsigned LineSge = ((2 << MaxRqStride) - 1 < MAX_SGE) ? (2 << MaxRqStride) - 1 : MAX_SGE;

  typedef struct packed {
    logic [QpIdxW-1:0] qp_idx;
    epoch_t     epoch;
    wqe_idx_t   wqe_idx;
    logic [4:0] num_sge;
  } tag_t;
  typedef enum logic [2:0] {
    StIdle,   // waits for a request, reads the line's tag
    StTag,    // compares it
    StAsk,    // asks for the WQE
    StData,   // takes it in
    StDone    // answers
  } state_e;
  state_e state_q;

  logic [LineW-1:0] line;
  logic [Lines-1:0] valid_q;
  tag_t tag, want;
  logic hit, fill, fill_ok;
  assign line = qp_idx_i[LineW-1:0];
  rnic_ram #(.Width($bits(tag_t)), .Depth(Lines), .Bypass(1'b0)) u_tag (
      .clk_i, .we_i(fill && fill_ok), .waddr_i(line), .wdata_i(want), .re_i(state_q == StIdle), .raddr_i(line), .rdata_o(tag)
  );
`ifdef RNIC_CUT_RECV_WQE_CACHE
  assign hit = 1'b0;
`elsif RNIC_CUT_SRQ_FRESH
  assign hit = valid_q[line] && tag.qp_idx == want.qp_idx && tag.epoch == want.epoch && tag.wqe_idx == want.wqe_idx;
`elsif RNIC_CUT_RECV_WQE_TAG
  assign hit = valid_q[line] && tag.wqe_idx == want.wqe_idx;
`else
  assign hit = valid_q[line] && !fresh_i && tag.qp_idx == want.qp_idx && tag.epoch == want.epoch && tag.wqe_idx == want.wqe_idx;
`endif

  // ---------------------------------------------------------------- where the WQE lies
  logic [14:0] slot;
  logic [8:0] bytes;
  logic [4:0] max_sge;     // what the stride has room for
  assign slot    = wqe_idx_i[14:0] & ~(15'h7fff << log_rq_i);
  assign bytes   = (log_stride_i >= 4'd4) ? 9'd272 : 9'(9'd32 << log_stride_i);
  assign max_sge = 5'((bytes >> 4) - 9'd1);
  assign rd_req_valid_o = state_q == StAsk;
  assign rd_req_o       = '{addr: rq_base_i + (64'(slot) << (4'd5 + log_stride_i)), len: 16'(bytes)};

  // ---------------------------------------------------------------- the stream in groups of 16 bytes: header, elements
  logic grp_valid;         // (the rest of) one is here
  // verilator lint_off UNUSEDSIGNAL
  logic [31:0] head;       // the first bytes of the header (one is reserved)
  // verilator lint_on UNUSEDSIGNAL
  logic head_valid;
  logic [4:0] grp_q;       // its number
  logic grp_last;
  logic [3:0] sge_waddr;
  logic sge_we;
  assign grp_last  = grp_q == max_sge;
  assign sge_waddr = 4'(grp_q - 5'd1);
  assign sge_we    = rd_rsp_valid_i && grp_q != '0 && state_q == StData;
  if (DataW < 128) begin : g_narrow
    // A beat is half an element: first the address, then length and key.
    logic odd_q;
    logic [63:0] half;
    assign rd_rsp_ready_o = 1'b1;
    assign grp_valid      = rd_rsp_valid_i && odd_q;
    assign head_valid     = rd_rsp_valid_i && !odd_q;
    assign head           = rd_rsp_data_i[31:0];
    always_ff @(posedge clk_i) begin
      if (rst_i) odd_q <= 1'b0;
      else if (rd_rsp_valid_i) odd_q <= !odd_q;
    end
    rnic_ram #(.Width(64), .Depth(Lines * 32), .Bypass(1'b0)) u_sge (
        .clk_i, .we_i(sge_we), .waddr_i({line, sge_waddr, odd_q}), .wdata_i(rd_rsp_data_i[63:0]),
        .re_i(1'b1), .raddr_i({line, sge_idx_i, sge_len_i}), .rdata_o(half)
    );
    assign sge_addr_o                 = half;
    assign {sge_lkey_o, sge_length_o} = half;
  end else begin : g_wide
    localparam int unsigned PerBeat = DataW / 128;
    localparam int unsigned SubW = (PerBeat > 1) ? $clog2(PerBeat) : 1;
    logic [SubW-1:0] sub;
    logic [127:0] grp;
    assign sub            = SubW'(32'(grp_q) % PerBeat);
    assign rd_rsp_ready_o = 32'(sub) == PerBeat - 1 || grp_last;
    assign grp_valid      = rd_rsp_valid_i;
    assign head_valid     = rd_rsp_valid_i;
    assign grp            = rd_rsp_data_i[128*sub+:128];
    assign head           = grp[31:0];
    rnic_ram #(.Width($bits(sge_t)), .Depth(Lines * 16), .Bypass(1'b0)) u_sge (
        .clk_i, .we_i(sge_we), .waddr_i({line, sge_waddr}), .wdata_i(grp),
        .re_i(1'b1), .raddr_i({line, sge_idx_i}), .rdata_o({sge_lkey_o, sge_length_o, sge_addr_o})
    );
    logic unused;
    assign unused = sge_len_i;
  end

  logic [7:0] num_q;
  // The header is the first group, so the number is there when the last one arrives.
  assign fill    = state_q == StData && grp_valid && grp_last;
`ifdef RNIC_CUT_RECV_WQE_CHECK
  assign fill_ok = 1'b1;
`else
  assign fill_ok = rd_rsp_ctl_i.err == DMA_ERR_OK && num_q <= 8'(max_sge) && num_q <= 8'(LineSge);
`endif
  assign want    = '{qp_idx: qp_idx_i[QpIdxW-1:0], epoch: epoch_i, wqe_idx: wqe_idx_i, num_sge: num_q[4:0]};

  assign rsp_valid_o = state_q == StDone;

  always_ff @(posedge clk_i) begin
    case (state_q)
      StIdle: if (req_valid_i) state_q <= StTag;
      StTag: begin
        grp_q     <= '0;
        num_sge_o <= tag.num_sge;
        err_o     <= 1'b0;
        dma_err_o <= DMA_ERR_OK;
        state_q   <= hit ? StDone : StAsk;
      end
      StAsk: if (rd_req_ready_i) state_q <= StData;
      StData: begin
        if (head_valid && grp_q == '0) begin
          num_q  <= head[7:0];
          next_o <= head[31:16];
        end
        if (grp_valid) begin
          grp_q <= grp_q + 5'd1;
          if (grp_last) begin
            num_sge_o <= num_q[4:0];
            err_o     <= !fill_ok;
            dma_err_o <= rd_rsp_ctl_i.err;
            state_q   <= StDone;
          end
        end
      end
      default: state_q <= StIdle;
    endcase
    // A line that is being filled is void until it is whole.
    if (state_q == StAsk || inval_i || (fill && fill_ok)) valid_q[line] <= fill;
    if (rst_i) begin
      state_q <= StIdle;
      valid_q <= '0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      if (state_q != StIdle) a_request_held : assert (req_valid_i);
      if (inval_i) a_no_request : assert (state_q == StIdle && !req_valid_i);
      if (rd_rsp_valid_i) a_answer_expected : assert (state_q == StData);
      if (fill) a_length_agrees : assert (rd_rsp_ctl_i.last);
    end
  end
endmodule
