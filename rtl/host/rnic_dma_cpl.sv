// SPDX-License-Identifier: Apache-2.0
// Completions of the DMA reads: checks each against what its tag waits for and puts its beats into the tag's rows of the
// reorder buffer.
// Contract: every completion beat is taken in its cycle. Completions of a tag come in address order, cut at multiples of 64 bytes
// (read completion boundary), those of different tags in any order. A completion starts a row of its own; a row tells how
// many bytes it holds, from lane 0 up; but those of a read's first row stand where they do in their double word. Rows needed never
// exceed the aligned blocks of DataW/8 bytes that the read touches.
// A tag ends (done) with its last byte, with an unsuccessful completion, or with one that does not fit; a poisoned one marks it. A
// completion for a tag that is not outstanding is counted and dropped. Several outcomes a tag can have: the first stays.
// done_*_o are the state of done_tag_i in the same cycle: done_o is high when it is not outstanding, and then its rows are readable
// (unless it was given up).
module rnic_dma_cpl
  import rnic_spec_pkg::*;
#(
    parameter int unsigned DataW = 64,
    parameter int unsigned Tags = 64,
    parameter int unsigned Rows = 4096,
    localparam int unsigned TagW = $clog2(Tags),
    localparam int unsigned RowW = $clog2(Rows),
    localparam int unsigned CntW = $clog2(DataW / 8 + 1),
    localparam int unsigned UsedW = $clog2(1024 * 8 / DataW + 1)   // rows of the largest read
) (
    input  logic             clk_i,
    input  logic             rst_i,
    // a read is issued
    input  logic             issue_valid_i,
    input  logic [TagW-1:0]  issue_tag_i,
    input  logic [6:0]       issue_addr_i,   // byte address, low bits
    input  logic [10:0]      issue_bytes_i,
    input  logic [RowW-1:0]  issue_row_i,    // its first row
    // completions
    input  logic             rc_valid_i,
    // (reserved bits)
    // verilator lint_off UNUSEDSIGNAL
    input  rc_hdr_t          rc_hdr_i,
    // verilator lint_on UNUSEDSIGNAL
    input  logic [DataW-1:0] rc_data_i,
    input  logic             rc_last_i,
    // rows
    output logic             row_we_o,
    output logic [RowW-1:0]  row_o,
    output logic [DataW-1:0] row_data_o,
    output logic [CntW-1:0]  row_cnt_o,
    // the tag that delivery waits for
    input  logic [TagW-1:0]  done_tag_i,
    output logic             done_o,
    output dma_err_e         done_err_o,
    output logic [UsedW-1:0] done_rows_o,    // rows that hold its bytes
    input  logic             expired_i,      // it has waited too long: give it up unless it ends now
    output logic             given_up_o,
    output logic             abort_o,
    output logic             poison_o,
    output logic             malformed_o,
    output logic             unexpected_o,
    output logic             begins_o        // a completion begins in this cycle
);
  localparam int unsigned B = DataW / 8;
  localparam int unsigned BeatDwLog = $clog2(DataW / 32);
  localparam int unsigned LaneW = $clog2(B);

  // What a tag expects next. The first completion is held against what was issued, later ones against what the one before left.
  typedef struct packed {
    logic [6:0]  addr;
    logic [10:0] left;
  } want_t;
  typedef struct packed {
    logic [UsedW-1:0] rows;
    dma_err_e         err;
  } res_t;
  typedef struct packed {
    want_t           want;
    logic [RowW-1:0] row;
  } issued_t;

  logic [Tags-1:0] out_q, started_q;       // outstanding; has had a completion
  want_t want_mem[Tags];
  res_t res_mem[Tags];
  issued_t issued;
  logic [TagW-1:0] rc_tag;
  assign rc_tag = TagW'(rc_hdr_i.tag);
  rnic_ram #(.Width($bits(issued_t)), .Depth(Tags), .Bypass(1'b0)) u_issued (
      .clk_i, .we_i(issue_valid_i), .waddr_i(issue_tag_i), .wdata_i({issue_addr_i, issue_bytes_i, issue_row_i}),
      .re_i(1'b1), .raddr_i(rc_tag), .rdata_o(issued)
  );

  // ---------------------------------------------------------------- first stage: the beat beside what was issued
  logic valid_q, last_q, first_q, in_cpl_q;
  // (reserved bits)
  // verilator lint_off UNUSEDSIGNAL
  rc_hdr_t hdr_q;
  // verilator lint_on UNUSEDSIGNAL
  logic [DataW-1:0] data_q;
  always_ff @(posedge clk_i) begin
    hdr_q   <= rc_hdr_i;
    data_q  <= rc_data_i;
    last_q  <= rc_last_i;
    first_q <= !in_cpl_q;
    if (rst_i) begin
      valid_q  <= 1'b0;
      in_cpl_q <= 1'b0;
    end else begin
      valid_q <= rc_valid_i;
      if (rc_valid_i) in_cpl_q <= !rc_last_i;
    end
  end

  // ---------------------------------------------------------------- checks, on the first beat
  logic [TagW-1:0] tag;
  logic known;
  want_t want;
  res_t res;
  logic [1:0] skip;
  logic [10:0] end_dw;                     // double words if this completion is the last one
  logic [10:0] dw_bytes;
  logic success, fits, final_c;
  assign tag      = TagW'(hdr_q.tag);
  assign known    = out_q[tag] && hdr_q.tag < 10'(Tags);
  assign skip     = hdr_q.lower_addr[1:0];
  assign end_dw   = 11'((hdr_q.byte_count + 13'(skip) + 13'd3) >> 2);
  assign final_c  = hdr_q.dw_len == end_dw;
  assign dw_bytes = {hdr_q.dw_len[8:0], 2'b00} - 11'(skip);
  assign success  = hdr_q.status == CPL_STATUS_SC;
  always_comb begin
    want = started_q[tag] ? want_mem[tag] : issued.want;
    res  = started_q[tag] ? res_mem[tag] : '{rows: '0, err: DMA_ERR_OK};
    fits = hdr_q.lower_addr == want.addr && hdr_q.byte_count == 13'(want.left) &&
           (final_c || (hdr_q.dw_len < end_dw && hdr_q.dw_len != '0 && 4'(hdr_q.lower_addr[5:2]) + hdr_q.dw_len[3:0] == 4'd0));
  end

  // ---------------------------------------------------------------- running over its beats
  // What the first beat found out stands in registers for the others.
  typedef struct packed {
    logic            ok;                   // its bytes count
    logic            fin;                  // brings the tag's last byte
    want_t           want;                 // the tag afterwards
    res_t            res;
    logic [RowW-1:0] row;                  // of this beat
    logic [LaneW-1:0] last;                // its last lane, in its last beat
    logic [9:0]      more;                 // beats that follow
  } cpl_t;
  cpl_t c, c_q;
  logic [1:0] shift;
  logic [10:0] last_dw;
  assign last_dw = hdr_q.dw_len - 11'd1;
  always_comb begin
    c     = c_q;
    shift = 2'd0;
    if (first_q) begin
      c.ok            = success && fits;
      c.fin           = final_c;
      c.last          = {last_dw[BeatDwLog-1:0], final_c ? hdr_q.byte_count[1:0] + skip - 2'd1 : 2'd3};
      c.more          = 10'(last_dw >> BeatDwLog);
      c.row           = issued.row + RowW'(res.rows);
      c.res.rows      = res.rows + UsedW'(c.more) + UsedW'(1);
      c.res.err       = res.err;
      c.want.addr     = want.addr + dw_bytes[6:0];
      c.want.left     = want.left - dw_bytes;
      shift           = skip;
    end
  end
  logic [CntW-1:0] cnt;
  assign cnt = CntW'((c.more == '0) ? c.last : LaneW'(B - 1)) - CntW'(shift) + CntW'(1);
  always_ff @(posedge clk_i) begin
    if (valid_q) begin
      c_q      <= c;
      c_q.row  <= c.row + RowW'(1);
      c_q.more <= c.more - 10'd1;
      if (last_q != (c.more == '0)) c_q.ok <= 1'b0;   // beats and length contradict each other
    end
  end

  // ---------------------------------------------------------------- verdict, on the last beat
  logic judge, cut, fin;                   // fin: the tag ends
  dma_err_e err;
  assign cut   = !c.ok || c.more != '0;
  assign judge = valid_q && last_q && known;
  always_comb begin
    err = DMA_ERR_OK;
`ifndef RNIC_CUT_DMA_POISON
    if (hdr_q.poisoned) err = DMA_ERR_POISON;
`endif
`ifndef RNIC_CUT_DMA_CPL_CHECK
    if (cut) err = DMA_ERR_MALFORMED;
`endif
`ifndef RNIC_CUT_DMA_ABORT
    if (!success) err = DMA_ERR_ABORT;
`endif
  end
  assign fin          = judge && (c.fin || err == DMA_ERR_ABORT || err == DMA_ERR_MALFORMED);
  assign abort_o      = judge && err == DMA_ERR_ABORT;
  assign malformed_o  = judge && err == DMA_ERR_MALFORMED;
  assign poison_o     = judge && err == DMA_ERR_POISON;
  assign unexpected_o = valid_q && first_q && !known;
  assign begins_o     = rc_valid_i && !in_cpl_q;

  // A tag whose completion ends just now is not given up.
  assign given_up_o = expired_i && out_q[done_tag_i] && !(fin && tag == done_tag_i);

  logic fin_q;
  logic [TagW-1:0] fin_tag_q;
  always_ff @(posedge clk_i) begin
    row_o      <= c.row;
    row_data_o <= data_q;
    row_cnt_o  <= cnt;
    fin_tag_q  <= tag;
    if (judge) begin
      want_mem[tag]  <= c.want;
      res_mem[tag]   <= '{rows: c.res.rows, err: (c.res.err != DMA_ERR_OK) ? c.res.err : err};
      started_q[tag] <= 1'b1;
    end
    if (fin) out_q[tag] <= 1'b0;
    if (given_up_o) out_q[done_tag_i] <= 1'b0;
    if (issue_valid_i) begin
      out_q[issue_tag_i]     <= 1'b1;
      started_q[issue_tag_i] <= 1'b0;
    end
    if (rst_i) begin
      row_we_o <= 1'b0;
      fin_q    <= 1'b0;
      out_q    <= '0;
    end else begin
      row_we_o <= valid_q && known && c.ok;
      fin_q    <= fin;
    end
  end

  res_t done_res;
  assign done_res    = res_mem[done_tag_i];
`ifdef RNIC_CUT_DMA_REORDER
  assign done_o      = out_q != '1;
`else
  // The last row is written in the cycle behind the end.
  assign done_o      = !out_q[done_tag_i] && !(fin_q && fin_tag_q == done_tag_i);
`endif
  assign done_err_o  = done_res.err;
  assign done_rows_o = done_res.rows;

  always_ff @(posedge clk_i) begin
    if (!rst_i && issue_valid_i) a_tag_is_free : assert (!out_q[issue_tag_i] && !(fin_q && fin_tag_q == issue_tag_i));
  end
endmodule
