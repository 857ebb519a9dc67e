// SPDX-License-Identifier: Apache-2.0
// Transmit side of the MAC at the GMII (8 bits, 125 MHz): preamble, start of frame, padding to 60 bytes, FCS, gap of 12 bytes.
// Contract: in: words of whole frames; the next word of a frame is there when the one before is used up (the FIFO before it
// holds whole frames). If not, the frame ends there with a wrong FCS, its rest is thrown away, and it is counted. Frames that wait leave
// with a gap of exactly 12 bytes. A frame that begins while link_i is low is taken and thrown away. GMII outputs are registers.
module rnic_mac_tx
  import rnic_mac_pkg::*;
(
    input  logic        clk_i,
    input  logic        rst_i,
    input  logic        link_i,
    input  logic        in_valid_i,
    output logic        in_ready_o,
    /* verilator lint_off UNUSEDSIGNAL */  // err: of the receive side
    input  mac_word_t   in_i,
    /* verilator lint_on UNUSEDSIGNAL */
    output logic        tx_en_o,
    output logic [7:0]  txd_o,
    output mac_tx_cnt_t cnt_o
);
  localparam int unsigned MinBytes = 60;   // without FCS (IEEE 802.3 3.2.8)
  localparam int unsigned Gap = 12;        // bytes between frames (4.4.2)
  typedef enum logic [2:0] {
    T_IDLE,
    T_PREAMBLE,
    T_DATA,
    T_PAD,
    T_FCS,
    T_GAP,
    T_SKIP      // throw away up to the last word
  } state_e;
  state_e state_q;
  logic [3:0] n_q;          // bytes of this state so far
  logic [2:0] lane_q;
  logic [5:0] len_q;        // bytes of the frame, up to MinBytes
  logic poison_q, skip_q;   // FCS to be wrong; words of this frame are still to come

  // A byte is chosen in one cycle and joins the CRC in the next: memory, choice and CRC in one are too slow.
  typedef enum logic [1:0] {
    B_IDLE,
    B_HEAD,     // preamble
    B_BODY,
    B_FCS
  } kind_e;
  kind_e kind_q;
  logic [7:0] byte_q;
  logic [31:0] crc_q;
  always_ff @(posedge clk_i) begin
    tx_en_o <= kind_q != B_IDLE && !rst_i;
    txd_o   <= byte_q;
    unique case (kind_q)
      B_HEAD: crc_q <= '1;
      B_BODY: crc_q <= rnic_link_pkg::crc32_byte(crc_q, byte_q);
      B_FCS: begin
        // The wrong FCS is the right one inverted: no other frame's (IEEE 802.3 has no code for it).
        txd_o <= poison_q ? crc_q[7:0] : ~crc_q[7:0];
        crc_q <= crc_q >> 8;
      end
      default: ;
    endcase
  end

  logic last_lane, ends;
  assign last_lane = lane_q == in_i.cnt - 3'd1;
  assign ends      = in_i.last && last_lane;
  assign in_ready_o = (state_q == T_DATA && last_lane) || state_q == T_SKIP;

  logic long_enough;  // with the byte of this cycle
`ifdef RNIC_CUT_MAC_PAD
  assign long_enough = 1'b1;
`else
  assign long_enough = len_q >= 6'(MinBytes - 1);
`endif

  always_ff @(posedge clk_i) begin
    kind_q <= B_IDLE;
    byte_q <= 8'h00;
    n_q    <= n_q + 4'd1;
    if ((state_q == T_DATA || state_q == T_PAD) && len_q < 6'(MinBytes)) len_q <= len_q + 6'd1;
    unique case (state_q)
      T_PREAMBLE: begin
        kind_q   <= B_HEAD;
        byte_q   <= (n_q == 4'd7) ? 8'hd5 : 8'h55;
        len_q    <= '0;
        lane_q   <= '0;
        if (n_q == 4'd7) begin
          poison_q <= 1'b0;
          state_q  <= T_DATA;
        end
      end
      T_DATA: begin
        kind_q <= B_BODY;
        byte_q <= in_i.data[{lane_q, 3'b000}+:8];
        lane_q <= last_lane ? '0 : lane_q + 3'd1;
        n_q    <= '0;
        if (!in_valid_i) begin
          byte_q         <= 8'h00;
          cnt_o.underrun <= cnt_o.underrun + 16'd1;
          state_q        <= T_FCS;
`ifndef RNIC_CUT_MAC_POISON
          poison_q       <= 1'b1;
`endif
          skip_q         <= 1'b1;
        end else if (ends) begin
          state_q <= long_enough ? T_FCS : T_PAD;
        end
      end
      T_PAD: begin
        kind_q <= B_BODY;
        n_q    <= '0;
        if (long_enough) state_q <= T_FCS;
      end
      T_FCS: begin
        kind_q <= B_FCS;
        if (n_q == 4'd3) begin
          state_q    <= T_GAP;
          n_q        <= '0;
          cnt_o.sent <= cnt_o.sent + 32'(!poison_q);
        end
      end
      T_GAP:
`ifdef RNIC_CUT_MAC_GAP
      if (n_q == 4'(Gap - 2)) begin
`else
      if (n_q == 4'(Gap - 1)) begin
`endif
        n_q     <= '0;
        skip_q  <= 1'b0;
        state_q <= skip_q ? T_SKIP : (in_valid_i && link_i) ? T_PREAMBLE : T_IDLE;
      end
      T_SKIP: if (in_valid_i && in_i.last) state_q <= T_IDLE;
      default: begin
        n_q <= '0;
        if (in_valid_i) begin
          state_q <= link_i ? T_PREAMBLE : T_SKIP;
          if (!link_i) cnt_o.no_link <= cnt_o.no_link + 16'd1;
        end
      end
    endcase
    if (rst_i) begin
      state_q <= T_IDLE;
      skip_q  <= 1'b0;
      kind_q  <= B_IDLE;
      cnt_o   <= '0;
    end
  end
endmodule
