// SPDX-License-Identifier: Apache-2.0
// DMA read service: cuts requests at the max read request size, keeps up to Tags reads under way, and gives the data back in
// the order of the requests, whatever order the completions come in.
// Contract: requests are taken round robin, short ones (127 bytes) one a cycle of the same client, others one in two (what a client may rely on stands beside the
// types in rnic_pkg). Patient clients give way: while another client asks, or had reads under way in the last 64 cycles, one of their requests is taken in
// PatientWait cycles.
// A tag and its rows in the reorder buffer are reserved before a read is issued, so completions always sink: rc_ready_o is
// constant. A read is issued after all writes accepted before its request (wr_pending_i, wr_sent_i: see rnic_dma_wr).
// Unsuccessful, poisoned, malformed and missing completions end in err beside the request's last beat.
module rnic_dma_rd
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned DataW = 64,
    parameter int unsigned Tags = 64,
    parameter int unsigned NumRd = 6,
    parameter int unsigned BufBytes = Tags * 512,  // reorder buffer, a power of two, 2048 or more
    parameter logic [NumRd-1:0] Patient = '0,
    parameter int unsigned PatientWait = 65536 / DataW   // four commands of 64 bytes then take 1/32 of the link
) (
    input  logic clk_i,
    input  logic rst_i,
    input  logic [10:0] mrrs_i,
    input  logic [23:0] timeout_i,
    input  logic [NumRd-1:0] rd_req_valid_i,
    output logic [NumRd-1:0] rd_req_ready_o,
    input  dma_rd_req_t [NumRd-1:0] rd_req_i,
    output logic [NumRd-1:0] rd_rsp_valid_o,
    input  logic [NumRd-1:0] rd_rsp_ready_i,
    output logic [DataW-1:0] rd_rsp_data_o,
    output dma_rd_ctl_t rd_rsp_ctl_o,
    input  logic [3:0] wr_pending_i,
    input  logic wr_sent_i,
    output logic rq_valid_o,
    input  logic rq_ready_i,
    output rq_hdr_t rq_hdr_o,
    input  logic rc_valid_i,
    output logic rc_ready_o,
    input  rc_hdr_t rc_hdr_i,
    input  logic [DataW-1:0] rc_data_i,
    input  logic rc_last_i,
    output logic cnt_abort_o,
    output logic cnt_poison_o,
    output logic cnt_timeout_o,
    output logic cnt_malformed_o,
    output logic cnt_unexpected_o,
    output logic [7:0] open_o,               // requests of clients that are not patient without all of their data, 255 at most
    output logic [12:0] bytes_o              // link bytes of reads and completions in the cycle before
);
  localparam int unsigned B = DataW / 8;
  localparam int unsigned LaneW = $clog2(B);
  localparam int unsigned CntW = $clog2(B + 1);
  localparam int unsigned TagW = $clog2(Tags);
  localparam int unsigned ClW = (NumRd > 1) ? $clog2(NumRd) : 1;
  localparam int unsigned Rows = BufBytes / B;
  localparam int unsigned RowW = $clog2(Rows);
  localparam int unsigned MaxUsed = 1024 / B;
  localparam int unsigned UsedW = $clog2(MaxUsed + 1);
  localparam int unsigned OpenW = $clog2(Tags + 16);   // under way: one read each or more, and what is being cut and given
  if ((1 << RowW) != Rows || BufBytes < 2048 || (1 << TagW) != Tags) begin : g_params
    $fatal(1, "%m: Tags and BufBytes must be powers of two, BufBytes at least 2048");
  end
  if ((1 << $clog2(PatientWait)) != PatientWait || PatientWait < 2) begin : g_patient
    $fatal(1, "%m: PatientWait must be a power of two, 2 or more");
  end

  logic [23:0] now_q, until_q;             // and when what begins now is too late
  always_ff @(posedge clk_i) begin
    if (rst_i) now_q <= '0;
    else now_q <= now_q + 24'd1;
    until_q <= now_q + timeout_i;
  end

  // ---------------------------------------------------------------- taking requests
  // Who is served is a register, so that nobody's ready depends on who asks in this cycle. The one that was served last stays, unless others ask.
  logic [ClW-1:0] sel_q, next;
  logic [NumRd-1:0] may, others, asking;
  logic req_valid, req_ready, req_fire, busy, due, patient_waits, eager_fire, eager_end, hurry, switch_now;
  logic [OpenW-1:0] open_q;                // requests of the others under way
  logic [5:0] quiet_q;                     // cycles since: a pause between payloads is too short for a command to cost nothing
  logic [$clog2(PatientWait)-1:0] waited_q;
  assign eager_fire    = req_fire && !Patient[sel_q];
  assign eager_end     = rd_rsp_ctl_o.last && |(rd_rsp_valid_o & rd_rsp_ready_i & ~Patient);
  assign open_o        = (32'(open_q) > 255) ? '1 : 8'(open_q);
  assign busy          = open_q != '0 || quiet_q != '1 || |(rd_req_valid_i & ~Patient);
  assign patient_waits = |(rd_req_valid_i & Patient);
`ifdef RNIC_CUT_DMA_RD_PATIENT
  assign due           = 1'b1;
`else
  assign due           = waited_q == '1;
`endif
  assign may           = (busy && !due) ? rd_req_valid_i & ~Patient : rd_req_valid_i;
  assign others        = may & ~(NumRd'(1) << sel_q);
  // Whose turn has come after its wait does not let one more pass.
  assign hurry         = due && patient_waits && !Patient[sel_q] && !req_ready;
  assign asking        = hurry ? others & Patient : (req_fire || !req_valid) ? others : '0;
  assign switch_now    = asking != '0;
  always_ff @(posedge clk_i) begin
    if (rst_i) open_q <= '0;
    else open_q <= open_q + OpenW'(eager_fire) - OpenW'(eager_end);
    if (rst_i) quiet_q <= '1;
    else if (eager_fire || open_q != '0) quiet_q <= '0;
    else if (quiet_q != '1) quiet_q <= quiet_q + 6'd1;
    if (rst_i || !patient_waits || (req_fire && Patient[sel_q])) waited_q <= '0;
    else if (!due) waited_q <= waited_q + 1'b1;
    if (rst_i) sel_q <= '0;
    else if (switch_now) sel_q <= next;
    if (!rst_i && eager_fire && !eager_end) a_open_fits : assert (open_q != '1);
  end
  // A patient client that has the way is held back there, too.
  logic held_q;
  always_ff @(posedge clk_i) held_q <= (busy && !due) || (req_fire && Patient[sel_q]);
  assign req_valid      = rd_req_valid_i[sel_q] && !(Patient[sel_q] && held_q);
  assign req_fire       = req_valid && req_ready;
  assign rd_req_ready_o = NumRd'(req_ready && !(Patient[sel_q] && held_q)) << sel_q;
  // verilator lint_off PINCONNECTEMPTY
  rnic_arb_rr #(.N(NumRd)) u_arb (
      .clk_i, .rst_i, .req_i(asking), .advance_i(switch_now), .lock_i(1'b0), .grant_o(), .idx_o(next)
  );
  // verilator lint_on PINCONNECTEMPTY

  // Each client's request has a register that is cleared unless it is the one that is taken: what is left to choose among them
  // is an OR. None is taken to wait there behind a long one: whose turn it is would be settled too early.
  logic st_valid_q, st_short, split_ready;
  logic [ClW-1:0] st_client_q;
  dma_rd_req_t [NumRd-1:0] st_q;
  // (a length has 13 bits)
  // verilator lint_off UNUSEDSIGNAL
  dma_rd_req_t st;
  // verilator lint_on UNUSEDSIGNAL
  assign st_short  = st.len[12:7] == '0;
  assign req_ready = split_ready && (!st_valid_q || st_short);
  always_comb begin
    st = '0;
    for (int unsigned c = 0; c < NumRd; c++) st |= st_q[c];
  end
  always_ff @(posedge clk_i) begin
    if (rst_i) st_valid_q <= 1'b0;
    else st_valid_q <= req_fire || (st_valid_q && !split_ready);
    if (req_ready) st_client_q <= sel_q;
    for (int unsigned c = 0; c < NumRd; c++) begin
      if (req_ready && sel_q != ClW'(c)) st_q[c] <= '0;
      else if (req_ready) st_q[c] <= rd_req_i[c];
    end
  end

  // Writes that must be on the link before the request that is being cut.
  logic [3:0] ahead_q;
  logic hold;
`ifdef RNIC_CUT_DMA_ORDER
  assign hold = 1'b0;
`else
  assign hold = ahead_q != '0;
`endif
  always_ff @(posedge clk_i) begin
    if (rst_i) ahead_q <= '0;
    else if (st_valid_q && split_ready) ahead_q <= wr_pending_i;
    else if (wr_sent_i && ahead_q != '0) ahead_q <= ahead_q - 4'd1;
  end

  logic piece_valid, piece_ready, piece_last;
  rq_hdr_t piece_hdr;
  logic [1:0] piece_skip;
  logic [10:0] piece_bytes;
  logic [ClW-1:0] piece_client;
  rnic_dma_split #(.MetaW(ClW)) u_split (
      .clk_i, .rst_i, .max_i(mrrs_i), .in_valid_i(st_valid_q), .in_ready_o(split_ready),
      .in_addr_i(st.addr), .in_len_i(13'(st.len)), .in_meta_i(st_client_q), .hold_i(hold),
      .out_valid_o(piece_valid), .out_ready_i(piece_ready), .out_hdr_o(piece_hdr), .out_skip_o(piece_skip),
      .out_bytes_o(piece_bytes), .out_last_o(piece_last), .out_meta_o(piece_client)
  );

  // ---------------------------------------------------------------- issue
  logic tag_valid, issue, free_valid, free_rest, room_q;
  logic [TagW-1:0] tag, free_tag;
  logic [RowW-1:0] row_q, row_d, free_row;
  logic [6:0] addr_low;
  logic [UsedW-1:0] rows;
  assign addr_low    = {piece_hdr.addr[6:2], piece_skip};
  // Aligned blocks touched.
  assign rows        = UsedW'((12'(addr_low[LaneW-1:0]) + 12'(piece_bytes) + 12'(B - 1)) >> LaneW);
  assign rq_valid_o  = piece_valid && tag_valid && room_q;
  assign issue       = rq_valid_o && rq_ready_i;
  assign piece_ready = issue;
  assign row_d       = issue ? row_q + RowW'(rows) : row_q;
  always_comb begin
    rq_hdr_o     = piece_hdr;
    rq_hdr_o.tag = 10'(tag);
  end
  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      row_q  <= '0;
      room_q <= 1'b0;
    end else begin
      row_q  <= row_d;
      // Room for the largest read: rows in use are those from free_row up to row_d, never all.
`ifdef RNIC_CUT_DMA_ROOM
      room_q <= 1'b1;
`else
      room_q <= RowW'(row_d - free_row) < RowW'(Rows - MaxUsed);
`endif
    end
  end

  rnic_dma_tags #(.Tags(Tags)) u_tags (
      .clk_i, .rst_i, .now_i(now_q), .until_i(until_q), .tag_valid_o(tag_valid), .tag_o(tag), .take_i(issue),
      .free_valid_i(free_valid), .free_rest_i(free_rest), .free_tag_i(free_tag)
  );

  // ---------------------------------------------------------------- completions, reorder buffer, delivery
  logic row_we, row_re, done, expired;
  logic [RowW-1:0] row_waddr, row_raddr;
  logic [DataW-1:0] row_wdata, row_rdata;
  logic [CntW-1:0] row_wcnt, row_rcnt;
  logic [TagW-1:0] done_tag;
  logic [UsedW-1:0] done_rows;
  dma_err_e done_err;
  logic cpl_begins;
  assign rc_ready_o = 1'b1;
  rnic_dma_cpl #(.DataW(DataW), .Tags(Tags), .Rows(Rows)) u_cpl (
      .clk_i, .rst_i, .issue_valid_i(issue), .issue_tag_i(tag), .issue_addr_i(addr_low), .issue_bytes_i(piece_bytes), .issue_row_i(row_q),
      .rc_valid_i, .rc_hdr_i, .rc_data_i, .rc_last_i,
      .row_we_o(row_we), .row_o(row_waddr), .row_data_o(row_wdata), .row_cnt_o(row_wcnt),
      .done_tag_i(done_tag), .done_o(done), .done_err_o(done_err), .done_rows_o(done_rows), .expired_i(expired), .given_up_o(cnt_timeout_o),
      .abort_o(cnt_abort_o), .poison_o(cnt_poison_o), .malformed_o(cnt_malformed_o), .unexpected_o(cnt_unexpected_o), .begins_o(cpl_begins)
  );
  rnic_ram #(.Width(CntW + DataW), .Depth(Rows), .Bypass(1'b0)) u_rows (
      .clk_i, .we_i(row_we), .waddr_i(row_waddr), .wdata_i({row_wcnt, row_wdata}),
      .re_i(row_re), .raddr_i(row_raddr), .rdata_o({row_rcnt, row_rdata})
  );
  rnic_dma_deliver #(.DataW(DataW), .Tags(Tags), .Rows(Rows), .NumRd(NumRd)) u_deliver (
      .clk_i, .rst_i, .now_i(now_q), .until_i(until_q),
      .issue_valid_i(issue), .issue_tag_i(tag), .issue_client_i(piece_client), .issue_last_i(piece_last), .issue_bytes_i(piece_bytes),
      .issue_skip_i(piece_skip), .issue_rows_i(rows),
      .done_tag_o(done_tag), .done_i(done), .done_err_i(done_err), .done_rows_i(done_rows), .expired_o(expired), .given_up_i(cnt_timeout_o),
      .row_re_o(row_re), .row_o(row_raddr), .row_data_i(row_rdata), .row_cnt_i(row_rcnt),
      .free_valid_o(free_valid), .free_rest_o(free_rest), .free_tag_o(free_tag), .free_row_o(free_row),
      .rsp_valid_o(rd_rsp_valid_o), .rsp_ready_i(rd_rsp_ready_i), .rsp_data_o(rd_rsp_data_o), .rsp_ctl_o(rd_rsp_ctl_o)
  );

  logic [10:0] cpl_dw_q;
  logic [3:0] over_q;
  always_ff @(posedge clk_i) begin
    cpl_dw_q <= cpl_begins ? rc_hdr_i.dw_len : '0;
    over_q   <= (cpl_begins ? 4'(TLP_OVERHEAD_BYTES / 4) : '0) + (issue ? 4'(TLP_OVERHEAD_BYTES / 4) : '0);
  end
  assign bytes_o = {cpl_dw_q + 11'(over_q), 2'b00};
endmodule
