// SPDX-License-Identifier: Apache-2.0
// DMA read service: splits requests at MRRS, keeps up to Tags reads under way, and gives the data back in the order of the
// requests, whatever order the completions come in.
// Contract: a request is taken round robin (the types in rnic_pkg say what a client may rely on). A tag and its room in the
// reorder buffer are reserved before the read is issued, so rc_ready_o is always high. A read is issued when all writes
// accepted before it are on the link (wr_accepted_i and wr_sent_i count them). An error (unsuccessful, poisoned, malformed or missing
// completion) ends up in err on the request's last beat, with the byte count complete. A tag that timed out rests for a
// further time-out, so that a late completion meets no new read.
module rnic_dma_rd
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned DataW = 64,
    parameter int unsigned Tags = 64,
    parameter int unsigned NumRd = 6,
    parameter int unsigned SlotBytes = 512   // largest MRRS
) (
    input  logic clk_i,
    input  logic rst_i,
    input  logic go_i,                       // bus master enabled
    input  logic [10:0] mrrs_i,
    input  logic [31:0] timeout_i,
    input  logic [NumRd-1:0] rd_req_valid_i,
    output logic [NumRd-1:0] rd_req_ready_o,
    input  dma_rd_req_t [NumRd-1:0] rd_req_i,
    output logic [NumRd-1:0] rd_rsp_valid_o,
    input  logic [NumRd-1:0] rd_rsp_ready_i,
    output logic [DataW-1:0] rd_rsp_data_o,
    output dma_rd_ctl_t rd_rsp_ctl_o,
    input  logic [7:0] wr_accepted_i,
    input  logic [7:0] wr_sent_i,
    output logic rq_valid_o,
    input  logic rq_ready_i,
    output rq_hdr_t rq_hdr_o,
    input  logic rc_valid_i,
    output logic rc_ready_o,
    // (reserved bits)
    // verilator lint_off UNUSEDSIGNAL
    input  rc_hdr_t rc_hdr_i,
    // verilator lint_on UNUSEDSIGNAL
    input  logic [DataW-1:0] rc_data_i,
    input  logic rc_last_i,
    output logic cnt_abort_o,
    output logic cnt_poison_o,
    output logic cnt_timeout_o,
    output logic cnt_malformed_o,
    output logic cnt_unexpected_o,
    output logic [15:0] bytes_o              // link bytes of completions and read requests in this cycle
);
  localparam int unsigned B = DataW / 8;
  localparam int unsigned CntW = $clog2(B + 1);
  localparam int unsigned TagW = $clog2(Tags);
  localparam int unsigned ClW = (NumRd > 1) ? $clog2(NumRd) : 1;
  // A completion may end in a part of a beat: one beat more for each that a read can be split into.
  localparam int unsigned SlotBeats = 1 << $clog2(SlotBytes / B + SlotBytes / 64 + 2);
  localparam int unsigned SbW = $clog2(SlotBeats);

  // ---------------------------------------------------------------- taking requests
  typedef struct packed {
    logic [ClW-1:0] client;
    dma_rd_req_t    req;
    logic [7:0]     after;                   // writes that go before
  } job_t;
  logic [NumRd-1:0] grant;
  logic [ClW-1:0] pick;
  logic job_in_ready, job_valid, job_ready;
  job_t job_in, job;

  rnic_arb_rr #(.N(NumRd)) u_arb (
      .clk_i, .rst_i, .req_i(rd_req_valid_i), .advance_i(|rd_req_valid_i && job_in_ready), .lock_i(1'b0), .grant_o(grant), .idx_o(pick)
  );
  assign rd_req_ready_o = grant & {NumRd{job_in_ready}};
  assign job_in         = '{client: pick, req: rd_req_i[pick], after: wr_accepted_i};

  // verilator lint_off PINCONNECTEMPTY
  rnic_fifo #(.Width($bits(job_t)), .Depth(4)) u_jobs (
      .clk_i, .rst_i, .in_valid_i(|rd_req_valid_i), .in_ready_o(job_in_ready), .in_data_i(job_in),
      .out_valid_o(job_valid), .out_ready_i(job_ready), .out_data_o(job), .level_o()
  );
  // verilator lint_on PINCONNECTEMPTY

  // ---------------------------------------------------------------- per tag
  logic [Tags-1:0] busy_q, done_q, rest_q;   // issued; complete; resting after a time-out
  dma_err_e err_q[Tags];
  logic [15:0] left_q[Tags];                 // bytes still to come
  logic [15:0] len_q[Tags];
  logic [6:0] low_q[Tags];                   // low address bits of the next byte
  logic [1:0] skip_q[Tags];
  logic [SbW-1:0] beats_q[Tags];
  logic [31:0] since_q[Tags];
  logic [ClW-1:0] client_q[Tags];
  logic [Tags-1:0] end_q;                    // last chunk of its request

  // ---------------------------------------------------------------- issue
  logic [TagW-1:0] head_q, tail_q;           // next tag to issue, next tag to deliver
  logic [15:0] off_q;                        // bytes of the job that are issued
  logic [63:0] at;
  logic [15:0] left, chunk, to_bound;
  logic order_ok, tag_ok, issue;
  assign at       = job.req.addr + 64'(off_q);
  assign left     = job.req.len - off_q;
  assign to_bound = 16'(mrrs_i) - (16'(at[15:0]) & (16'(mrrs_i) - 16'd1));
  assign chunk    = (left < to_bound) ? left : to_bound;
  assign order_ok = $signed(wr_sent_i - job.after) >= 0;
  assign tag_ok   = !busy_q[head_q] && !rest_q[head_q];
  assign rq_valid_o = job_valid && order_ok && tag_ok && go_i;
  assign issue      = rq_valid_o && rq_ready_i;
  assign job_ready  = issue && chunk == left;

  logic [2:0] end_bytes;                     // bytes used in the last double word
  logic [10:0] dw;
  assign dw        = 11'((16'(at[1:0]) + chunk + 16'd3) >> 2);
  assign end_bytes = 3'((3'(at[1:0]) + 3'(chunk[1:0])) & 3'd3);
  always_comb begin
    automatic logic [3:0] fbe, lbe;
    fbe = 4'hf << at[1:0];
    lbe = (end_bytes == 3'd0) ? 4'hf : 4'hf >> (3'd4 - end_bytes);
    rq_hdr_o          = '0;
    rq_hdr_o.addr     = {at[63:2], 2'b00};
    rq_hdr_o.dw_len   = dw;
    rq_hdr_o.tag      = 10'(head_q);
    rq_hdr_o.first_be = (dw == 11'd1) ? fbe & lbe : fbe;
    rq_hdr_o.last_be  = (dw == 11'd1) ? 4'h0 : lbe;
  end

  // ---------------------------------------------------------------- completions
  logic in_cpl_q, first, tag_known, fits, take_data, bad_now, is_end;
  logic [TagW-1:0] ct;
  logic [15:0] cpl_bytes;
  logic keep_q;                              // beats of this completion are stored
  logic [15:0] cpl_left_q;                   // bytes of this completion not yet stored
  logic [15:0] beat_left;
  logic [CntW-1:0] beat_cnt;
  dma_err_e bad_err;
  assign rc_ready_o = 1'b1;
  assign ct         = TagW'(rc_hdr_i.tag);
  assign first      = rc_valid_i && !in_cpl_q;
  assign tag_known  = rc_hdr_i.tag < 10'(Tags) && busy_q[ct] && !done_q[ct];
  assign cpl_bytes  = 16'({rc_hdr_i.dw_len, 2'b00}) - 16'(rc_hdr_i.lower_addr[1:0]);
  assign is_end     = cpl_bytes >= 16'(rc_hdr_i.byte_count);
  assign fits = 16'(rc_hdr_i.byte_count) == left_q[ct] && rc_hdr_i.lower_addr == low_q[ct] && rc_hdr_i.dw_len != '0 &&
                (!is_end || cpl_bytes < 16'(rc_hdr_i.byte_count) + 16'd4) && (is_end || cpl_bytes[1:0] + rc_hdr_i.lower_addr[1:0] == 2'd0) &&
                beats_q[ct] < SbW'(SlotBeats - 1);
  always_comb begin
    bad_err = DMA_ERR_OK;
    if (rc_hdr_i.status != CPL_STATUS_SC) bad_err = DMA_ERR_ABORT;
    else if (rc_hdr_i.poisoned) bad_err = DMA_ERR_POISON;
    else if (!fits) bad_err = DMA_ERR_MALFORMED;
  end
  assign bad_now   = first && tag_known && bad_err != DMA_ERR_OK;
  assign take_data = first ? tag_known && bad_err == DMA_ERR_OK : rc_valid_i && keep_q;
  // Bytes in lanes, leading ones of the first double word included.
  assign beat_left = first ? (is_end ? 16'(rc_hdr_i.byte_count) + 16'(rc_hdr_i.lower_addr[1:0]) : 16'({rc_hdr_i.dw_len, 2'b00})) : cpl_left_q;
  assign beat_cnt  = (beat_left > 16'(B)) ? CntW'(B) : CntW'(beat_left);

  logic [CntW+DataW-1:0] rob_w, rob_r;
  logic [TagW+SbW-1:0] rob_raddr;
  logic rob_re;
  assign rob_w = {beat_cnt, rc_data_i};
  rnic_ram #(.Width(CntW + DataW), .Depth(Tags * SlotBeats), .Bypass(1'b0)) u_rob (
      .clk_i, .we_i(take_data && beat_left != '0), .waddr_i({ct, beats_q[ct]}), .wdata_i(rob_w),
      .re_i(rob_re), .raddr_i(rob_raddr), .rdata_o(rob_r)
  );

  // ---------------------------------------------------------------- time-out: one tag a cycle
  logic [31:0] now_q;
  logic [TagW-1:0] scan_q;
  logic expired;
  assign expired = (now_q - since_q[scan_q]) > timeout_i;

  assign cnt_unexpected_o = first && !tag_known;
  assign cnt_abort_o      = bad_now && bad_err == DMA_ERR_ABORT;
  assign cnt_poison_o     = bad_now && bad_err == DMA_ERR_POISON;
  assign cnt_malformed_o  = bad_now && bad_err == DMA_ERR_MALFORMED;
  assign cnt_timeout_o    = busy_q[scan_q] && !done_q[scan_q] && expired && !(first && tag_known && ct == scan_q);
  assign bytes_o = (first ? 16'({rc_hdr_i.dw_len, 2'b00}) + 16'(TLP_OVERHEAD_BYTES) : 16'd0) + (issue ? 16'(TLP_OVERHEAD_BYTES) : 16'd0);

  // ---------------------------------------------------------------- delivery
  logic [SbW-1:0] rbeat_q;                   // next beat to read
  logic rd_pend_q;                           // a beat was read in the last cycle
  logic push, push_ready, pad;
  logic [15:0] push_left_q;                  // bytes of this chunk not yet pushed
  logic first_push_q;
  logic [DataW-1:0] push_data;
  logic [CntW-1:0] push_cnt, raw_cnt;
  logic [CntW-1:0] avail, take_cnt;
  logic take;
  logic chunk_valid_q;                       // push_left_q is set up for tail_q
  logic [ClW-1:0] out_client;

  typedef struct packed {
    logic [ClW-1:0] client;
    logic [15:0]    len;
    logic           is_end;
    dma_err_e       err;
  } seg_t;
  logic seg_in_ready, seg_valid, seg_ready;
  seg_t seg;
  logic open_chunk;
  assign open_chunk = !chunk_valid_q && busy_q[tail_q] && done_q[tail_q] && seg_in_ready;
  // verilator lint_off PINCONNECTEMPTY
  rnic_fifo #(.Width($bits(seg_t)), .Depth(4)) u_segs (
      .clk_i, .rst_i, .in_valid_i(open_chunk), .in_ready_o(seg_in_ready),
      .in_data_i({client_q[tail_q], len_q[tail_q], end_q[tail_q], err_q[tail_q]}),
      .out_valid_o(seg_valid), .out_ready_i(seg_ready), .out_data_o(seg), .level_o()
  );
  // verilator lint_on PINCONNECTEMPTY

  assign pad       = chunk_valid_q && err_q[tail_q] != DMA_ERR_OK;
  assign rob_raddr = {tail_q, rbeat_q};
  assign rob_re    = chunk_valid_q && !pad && (!rd_pend_q || (push && push_ready)) && push_left_q != '0;
  assign raw_cnt   = rob_r[DataW+:CntW];
  always_comb begin
    push      = chunk_valid_q && push_left_q != '0 && (pad || rd_pend_q);
    push_data = pad ? '0 : rob_r[DataW-1:0];
    push_cnt  = pad ? CntW'(B) : raw_cnt;
    if (!pad && first_push_q) begin
      push_data = rob_r[DataW-1:0] >> {skip_q[tail_q], 3'b000};
      push_cnt  = raw_cnt - CntW'(skip_q[tail_q]);
    end
    if (16'(push_cnt) > push_left_q) push_cnt = CntW'(push_left_q);
  end

  logic [DataW-1:0] gb_data;
  rnic_gearbox #(.Bytes(B)) u_gb (
      .clk_i, .rst_i, .clear_i(1'b0), .in_valid_i(push && push_cnt != '0), .in_ready_o(push_ready), .in_data_i(push_data), .in_cnt_i(push_cnt),
      .out_data_o(gb_data), .avail_o(avail), .take_i(take), .take_cnt_i(take_cnt)
  );

  // A request's beats are full across its chunks: count down the request, one segment after the other.
  logic [15:0] seg_off_q;                    // bytes of this segment already given
  logic [15:0] seg_left;
  logic [CntW-1:0] carry_q;                  // bytes held from earlier segments of the request, still to be given
  logic [15:0] out_avail;
  dma_err_e err_acc_q;
  logic give_last, give_full, absorb;
  assign seg_left  = seg.len - seg_off_q;
  assign out_avail = seg_left + 16'(carry_q);
  assign give_full = seg_valid && out_avail >= 16'(B) && avail == CntW'(B);
  assign give_last = seg_valid && seg.is_end && out_avail <= 16'(B) && 16'(avail) >= out_avail;
  assign absorb    = seg_valid && !seg.is_end && out_avail < 16'(B);
  assign out_client = seg.client;
  always_comb begin
    rd_rsp_valid_o             = '0;
    rd_rsp_valid_o[out_client] = give_full || give_last;
  end
  assign rd_rsp_data_o     = gb_data & ~({DataW{1'b1}} << {take_cnt, 3'b000});
  assign take_cnt          = give_last ? CntW'(out_avail) : CntW'(B);
  assign rd_rsp_ctl_o.last = give_last;
  assign rd_rsp_ctl_o.err  = (err_acc_q != DMA_ERR_OK) ? err_acc_q : seg.err;
  assign take              = (give_full || give_last) && rd_rsp_ready_i[out_client];
  assign seg_ready         = (take && (give_last || out_avail == 16'(B))) || absorb;

  always_ff @(posedge clk_i) begin
    now_q  <= now_q + 32'd1;
    scan_q <= (scan_q == TagW'(Tags - 1)) ? '0 : scan_q + TagW'(1);
    if (issue) begin
      busy_q[head_q]   <= 1'b1;
      done_q[head_q]   <= 1'b0;
      err_q[head_q]    <= DMA_ERR_OK;
      left_q[head_q]   <= chunk;
      len_q[head_q]    <= chunk;
      low_q[head_q]    <= at[6:0];
      skip_q[head_q]   <= at[1:0];
      beats_q[head_q]  <= '0;
      since_q[head_q]  <= now_q;
      client_q[head_q] <= job.client;
      end_q[head_q]    <= chunk == left;
      head_q           <= (head_q == TagW'(Tags - 1)) ? '0 : head_q + TagW'(1);
      off_q            <= (chunk == left) ? '0 : off_q + chunk;
    end
    // completions
    if (rc_valid_i) in_cpl_q <= !rc_last_i;
    if (first) keep_q <= tag_known && bad_err == DMA_ERR_OK;
    if (rc_valid_i) cpl_left_q <= (beat_left > 16'(B)) ? beat_left - 16'(B) : '0;
    if (take_data && beat_left != '0) beats_q[ct] <= beats_q[ct] + SbW'(1);
    if (first && tag_known && bad_err == DMA_ERR_OK) begin
      left_q[ct] <= is_end ? '0 : left_q[ct] - cpl_bytes;
      low_q[ct]  <= low_q[ct] + 7'(cpl_bytes);
    end
    if (take_data && rc_last_i) begin
      if (first ? is_end : left_q[ct] == '0) done_q[ct] <= 1'b1;
    end
    if (bad_now) begin
      done_q[ct] <= 1'b1;
      err_q[ct]  <= bad_err;
    end
    // time-out; a tag rests until a second time-out has passed
    if (cnt_timeout_o) begin
      done_q[scan_q]  <= 1'b1;
      err_q[scan_q]   <= DMA_ERR_TIMEOUT;
      rest_q[scan_q]  <= 1'b1;
      since_q[scan_q] <= now_q;
    end else if (rest_q[scan_q] && expired) rest_q[scan_q] <= 1'b0;
    // delivery into the gearbox
    if (open_chunk) begin
      chunk_valid_q <= 1'b1;
      push_left_q   <= len_q[tail_q];
      first_push_q  <= 1'b1;
      rbeat_q       <= '0;
      rd_pend_q     <= 1'b0;
    end
    if (chunk_valid_q) begin
      if (rob_re) begin
        rd_pend_q <= 1'b1;
        rbeat_q   <= rbeat_q + SbW'(1);
      end else if (push && push_ready) rd_pend_q <= 1'b0;
      if (push && push_ready) begin
        push_left_q  <= push_left_q - 16'(push_cnt);
        first_push_q <= 1'b0;
        if (push_left_q == 16'(push_cnt)) begin
          chunk_valid_q  <= 1'b0;
          busy_q[tail_q] <= 1'b0;
          tail_q         <= (tail_q == TagW'(Tags - 1)) ? '0 : tail_q + TagW'(1);
        end
      end
    end
    // delivery out of the gearbox
    if (absorb) carry_q <= CntW'(out_avail);
    if (take) begin
      // bytes carried from earlier segments leave first
      carry_q   <= '0;
      seg_off_q <= seg_off_q + 16'(take_cnt) - 16'(carry_q);
    end
    if (seg_ready) seg_off_q <= '0;
    if (seg_ready) err_acc_q <= give_last ? DMA_ERR_OK : (err_acc_q != DMA_ERR_OK) ? err_acc_q : seg.err;
    if (rst_i) begin
      busy_q        <= '0;
      done_q        <= '0;
      rest_q        <= '0;
      head_q        <= '0;
      tail_q        <= '0;
      off_q         <= '0;
      in_cpl_q      <= 1'b0;
      keep_q        <= 1'b0;
      now_q         <= '0;
      scan_q        <= '0;
      chunk_valid_q <= 1'b0;
      rd_pend_q     <= 1'b0;
      seg_off_q     <= '0;
      carry_q       <= '0;
      err_acc_q     <= DMA_ERR_OK;
    end
  end
endmodule
