// SPDX-License-Identifier: Apache-2.0
// Receive side of the MAC at the GMII (8 bits, 125 MHz): finds frames, takes preamble and FCS off, judges them, packs 8 bytes into a word.
// Contract: out: words of a frame in order, then commit_o with its last word (err in it when the frame is bad: FCS, shorter than 64 bytes with FCS,
// longer than MaxBytes, RX_ER within), or rollback_o when a word found no room (out_ready_i low): such a frame is dropped whole. Of a frame that is
// too long nothing beyond MaxBytes comes. What has fewer than 5 bytes comes not at all, it is counted. While en_i is low at a frame's
// start the frame is not looked at. Frames may follow each other with any gap of one byte or more, preambles may be of any length.
module rnic_mac_rx
  import rnic_mac_pkg::*;
#(
    parameter int unsigned MaxBytes = 4224   // without FCS
) (
    input  logic        clk_i,
    input  logic        rst_i,
    input  logic        en_i,
    input  logic        dv_i,
    input  logic        er_i,
    input  logic [7:0]  rxd_i,
    output logic        out_valid_o,
    input  logic        out_ready_i,
    output mac_word_t   out_o,
    output logic        commit_o,
    output logic        rollback_o,
    output mac_rx_cnt_t cnt_o
);
  localparam int unsigned MinBytes = 60;             // without FCS
  localparam int unsigned LenW = $clog2(MaxBytes + 2);
  localparam logic [31:0] Residue = 32'hdebb20e3;    // state after a frame and its FCS
  typedef enum logic [2:0] {
    R_IDLE,
    R_PREAMBLE,
    R_DATA,
    R_END,       // a frame is judged; otherwise as R_IDLE
    R_SKIP       // until the carrier is gone
  } state_e;
  state_e state_q;

  logic dv_q, er_q;
  logic [7:0] rxd_q;
  always_ff @(posedge clk_i) begin
    dv_q  <= dv_i && !rst_i;
    er_q  <= er_i;
    rxd_q <= rxd_i;
  end

  // The last four bytes wait: they may be the FCS. What is older goes into the word; a full word waits for one byte more, as it may be the last.
  logic [3:0][7:0] tail_q;
  logic [2:0] tail_cnt_q;
  logic [7:0][7:0] acc_q;
  logic [3:0] acc_cnt_q;
  logic [LenW-1:0] len_q;       // bytes without FCS, up to MaxBytes + 1
  logic fits_q, over_q, runt_q, good_fcs_q;   // registers: they judge, and count, in one cycle
  logic [31:0] crc_q;
  logic bad_er_q, lost_q;

  logic take, fits, over, ends, good_fcs, runt, bad, full, lost;
  assign take     = state_q == R_DATA && dv_q && tail_cnt_q[2];   // never more than 4
  assign fits     = fits_q;            // len_q < MaxBytes
`ifdef RNIC_CUT_MAC_OVERSIZE
  assign over     = 1'b0;
`else
  assign over     = over_q;            // len_q > MaxBytes
`endif
  assign ends     = state_q == R_END;
`ifdef RNIC_CUT_MAC_FCS
  assign good_fcs = 1'b1;
`else
  assign good_fcs = good_fcs_q;
`endif
`ifdef RNIC_CUT_MAC_RUNT
  assign runt     = 1'b0;
`else
  assign runt     = runt_q;            // len_q < MinBytes
`endif
  assign bad      = bad_er_q || over || runt || !good_fcs;

  assign full     = acc_cnt_q[3];      // never more than 8

  // Out of registers: where the word goes may lie far away.
  logic end_q;
  always_ff @(posedge clk_i) begin
    out_valid_o <= (take && full && fits) || (ends && acc_cnt_q != '0);
    out_o       <= '{err: bad, last: ends, cnt: acc_cnt_q[2:0], data: acc_q};
    end_q       <= ends && !rst_i;
    lost_q      <= lost && !end_q && !rst_i;
  end
  assign lost = lost_q || (out_valid_o && !out_ready_i);
`ifdef RNIC_CUT_MAC_DROP
  assign commit_o   = end_q && out_valid_o;
  assign rollback_o = 1'b0;
`else
  assign commit_o   = end_q && out_valid_o && !lost;
  assign rollback_o = end_q && lost;
`endif

  always_ff @(posedge clk_i) begin
    good_fcs_q <= crc_q == Residue;
    unique case (state_q)
      R_IDLE, R_PREAMBLE, R_END: begin
        tail_cnt_q <= '0;
        acc_cnt_q  <= '0;
        len_q      <= '0;
        fits_q     <= 1'b1;
        over_q     <= 1'b0;
        runt_q     <= 1'b1;
        crc_q      <= '1;
        bad_er_q   <= 1'b0;
        if (!dv_q) begin
          state_q <= R_IDLE;
          if (state_q == R_PREAMBLE) cnt_o.junk <= cnt_o.junk + 16'd1;
        end else if (rxd_q == 8'hd5 && !er_q) begin
          state_q <= en_i ? R_DATA : R_SKIP;
        end else if (rxd_q == 8'h55 && !er_q) begin
          state_q <= R_PREAMBLE;
        end else begin
          state_q    <= R_SKIP;
          cnt_o.junk <= cnt_o.junk + 16'd1;
        end
      end
      R_DATA:
      if (dv_q) begin
        crc_q  <= rnic_link_pkg::crc32_byte(crc_q, rxd_q);
        tail_q <= {tail_q[2:0], rxd_q};
        if (tail_cnt_q != 3'd4) tail_cnt_q <= tail_cnt_q + 3'd1;
`ifndef RNIC_CUT_MAC_RX_ER
        if (er_q) bad_er_q <= 1'b1;
`endif
        if (take && len_q <= LenW'(MaxBytes)) len_q <= len_q + LenW'(1);
        if (take && len_q == LenW'(MaxBytes - 1)) fits_q <= 1'b0;
        if (take && len_q == LenW'(MaxBytes)) over_q <= 1'b1;
        if (take && len_q == LenW'(MinBytes - 1)) runt_q <= 1'b0;
        if (take && fits) begin
          acc_q[full?3'd0 : acc_cnt_q[2:0]] <= tail_q[3];
          acc_cnt_q <= full ? 4'd1 : acc_cnt_q + 4'd1;
        end
      end else begin
        state_q <= R_END;
      end
      default: if (!dv_q) state_q <= R_IDLE;
    endcase
    if (ends) begin
      if (bad_er_q) cnt_o.er <= cnt_o.er + 16'd1;
      else if (over) cnt_o.oversize <= cnt_o.oversize + 16'd1;
      else if (runt) cnt_o.runt <= cnt_o.runt + 16'd1;
      else if (!good_fcs) cnt_o.fcs <= cnt_o.fcs + 16'd1;
      else cnt_o.good <= cnt_o.good + 32'd1;
    end
    if (end_q && lost) cnt_o.drop <= cnt_o.drop + 16'd1;
    if (rst_i) begin
      state_q <= R_SKIP;
      cnt_o   <= '0;
    end
  end
endmodule
