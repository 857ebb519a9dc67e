// SPDX-License-Identifier: Apache-2.0
// Ethernet MAC for 1000BASE-T full duplex: the core's frame streams on one side, a GMII (8 bits, 125 MHz each way) on the other, three clocks.
// Contract: mac_tx_*: AXI-Stream, frames without FCS, 1 to MaxBytes bytes (a longer one is dropped and counted in tx_long_o); a frame leaves when all of it is
// here. mac_rx_*: frames without FCS, mac_rx_err_o with the last beat of a bad one; whole frames only, what finds no room is dropped whole and counted.
// Every beat but the last is full, lanes are filled from 0. clk_i has any relation to the other clocks but must be faster than an eighth of gtx_clk_i.
// arst_i resets the GMII's two domains; it is the asynchronous request from which rst_i was made (rnic_reset_sync). gmii_rx_clk_i may stand still at any time. link_i low: nothing is received, what is to be sent is thrown away.
// Counters are those of their own clock, a few cycles late.
module rnic_mac
  import rnic_mac_pkg::*;
#(
    parameter int unsigned Depth = 1024,     // words of 8 bytes in each FIFO
    // The longest frame of the core: Ethernet header with tag 18, IPv6 40, UDP 8, BTH 12, RETH 16 and immediate data 4, MTU 4096, ICRC 4: 4198.
    parameter int unsigned MaxBytes = 4224
) (
    input  logic        arst_i,
    input  logic        clk_i,
    input  logic        rst_i,
    input  logic        link_i,
    input  logic        mac_tx_valid_i,
    output logic        mac_tx_ready_o,
    input  logic [63:0] mac_tx_data_i,
    input  logic [7:0]  mac_tx_keep_i,
    input  logic        mac_tx_last_i,
    output logic        mac_rx_valid_o,
    input  logic        mac_rx_ready_i,
    output logic [63:0] mac_rx_data_o,
    output logic [7:0]  mac_rx_keep_o,
    output logic        mac_rx_last_o,
    output logic        mac_rx_err_o,
    output mac_rx_cnt_t rx_cnt_o,
    output mac_tx_cnt_t tx_cnt_o,
    output logic [15:0] tx_long_o,
    input  logic        gtx_clk_i,
    output logic        gmii_tx_en_o,
    output logic [7:0]  gmii_txd_o,
    input  logic        gmii_rx_clk_i,
    input  logic        gmii_rx_dv_i,
    input  logic        gmii_rx_er_i,
    input  logic [7:0]  gmii_rxd_i
);
  localparam int unsigned WordW = $bits(mac_word_t);
  localparam int unsigned MaxWords = (MaxBytes + 7) / 8;
  if (MaxWords > Depth - 1) begin : g_depth
    $fatal(1, "a frame of MaxBytes must fit into the FIFO");
  end

  // ---------------------------------------------------------------- resets and the link's state
  logic gtx_rst, rx_rst, gtx_link, rx_link;
  rnic_reset_sync u_gtx_rst (.clk_i(gtx_clk_i), .arst_i, .rst_o(gtx_rst));
  rnic_reset_sync u_rx_rst (.clk_i(gmii_rx_clk_i), .arst_i, .rst_o(rx_rst));
  rnic_sync_bit u_gtx_link (.clk_i(gtx_clk_i), .d_i(link_i), .q_o(gtx_link));
  rnic_sync_bit u_rx_link (.clk_i(gmii_rx_clk_i), .d_i(link_i), .q_o(rx_link));
  // A receive clock that stands still keeps old pointers: the FIFO is not read before that clock has run and reset them.
  logic rx_rst_seen;
  rnic_sync_bit u_rx_alive (.clk_i, .d_i(rx_rst), .q_o(rx_rst_seen));

  // ---------------------------------------------------------------- transmit
  logic tx_fifo_ready, tx_fifo_valid, tx_fifo_take, tx_valid, tx_ready, tx_long, tx_swallow_q, tx_fire;
  mac_word_t tx_in, tx_fifo_out, tx_out;
  logic [$clog2(MaxWords + 1)-1:0] tx_words_q;
  assign tx_long        = 32'(tx_words_q) == MaxWords && !tx_swallow_q;
  assign mac_tx_ready_o = tx_fifo_ready || tx_swallow_q || tx_long;
  assign tx_fire        = mac_tx_valid_i && mac_tx_ready_o;
  always_comb begin
    tx_in      = '0;
    tx_in.data = mac_tx_data_i;
    tx_in.last = mac_tx_last_i;
    for (int unsigned i = 0; i < 8; i++) if (mac_tx_keep_i[i]) tx_in.cnt = 3'(i + 1);
  end
  always_ff @(posedge clk_i) begin
    if (tx_fire) begin
      tx_words_q   <= mac_tx_last_i ? '0 : tx_words_q + $bits(tx_words_q)'(!tx_long && !tx_swallow_q);
      tx_swallow_q <= (tx_swallow_q || tx_long) && !mac_tx_last_i;
      if (tx_long) tx_long_o <= tx_long_o + 16'd1;
    end
    if (rst_i) begin
      tx_words_q   <= '0;
      tx_swallow_q <= 1'b0;
      tx_long_o    <= '0;
    end
  end
  rnic_async_fifo #(.Width(WordW), .Depth(Depth)) u_tx_fifo (
      .wr_clk_i(clk_i), .wr_rst_i(rst_i), .wr_valid_i(mac_tx_valid_i && !tx_swallow_q && !tx_long), .wr_ready_o(tx_fifo_ready), .wr_data_i(tx_in),
      .commit_i(tx_fire && mac_tx_last_i && !tx_swallow_q && !tx_long), .rollback_i(tx_fire && tx_long),
      .rd_clk_i(gtx_clk_i), .rd_rst_i(gtx_rst), .rd_valid_o(tx_fifo_valid), .rd_ready_i(tx_fifo_take), .rd_data_o(tx_fifo_out)
  );
  // The block RAM is late and may lie far away: what it says goes into a register without a choice before it. Behind that, at half the rate (four times
  // what is needed), a buffer from which the sender takes words without a gap.
  logic tx_near_valid, tx_near_take;
  mac_word_t tx_near;
  rnic_slice #(.Width(WordW)) u_tx_slice (
      .clk_i(gtx_clk_i), .rst_i(gtx_rst), .in_valid_i(tx_fifo_valid), .in_ready_o(tx_fifo_take), .in_data_i(tx_fifo_out),
      .out_valid_o(tx_near_valid), .out_ready_i(tx_near_take), .out_data_o(tx_near)
  );
  rnic_skid #(.Width(WordW)) u_tx_skid (
      .clk_i(gtx_clk_i), .rst_i(gtx_rst), .in_valid_i(tx_near_valid), .in_ready_o(tx_near_take), .in_data_i(tx_near),
      .out_valid_o(tx_valid), .out_ready_i(tx_ready), .out_data_o(tx_out)
  );
  mac_tx_cnt_t tx_cnt;
  rnic_mac_tx u_tx (
      .clk_i(gtx_clk_i), .rst_i(gtx_rst), .link_i(gtx_link), .in_valid_i(tx_valid), .in_ready_o(tx_ready), .in_i(tx_out),
      .tx_en_o(gmii_tx_en_o), .txd_o(gmii_txd_o), .cnt_o(tx_cnt)
  );
  rnic_sync_word #(.Width($bits(mac_tx_cnt_t))) u_tx_cnt (
      .src_clk_i(gtx_clk_i), .src_rst_i(gtx_rst), .src_data_i(tx_cnt), .dst_clk_i(clk_i), .dst_rst_i(rst_i), .data_o(tx_cnt_o)
  );

  // ---------------------------------------------------------------- receive
  logic rx_in_valid, rx_in_ready, rx_commit, rx_rollback;
  mac_word_t rx_in, rx_out;
  mac_rx_cnt_t rx_cnt;
  rnic_mac_rx #(.MaxBytes(MaxBytes)) u_rx (
      .clk_i(gmii_rx_clk_i), .rst_i(rx_rst), .en_i(rx_link), .dv_i(gmii_rx_dv_i), .er_i(gmii_rx_er_i), .rxd_i(gmii_rxd_i),
      .out_valid_o(rx_in_valid), .out_ready_i(rx_in_ready), .out_o(rx_in), .commit_o(rx_commit), .rollback_o(rx_rollback), .cnt_o(rx_cnt)
  );
  rnic_async_fifo #(.Width(WordW), .Depth(Depth)) u_rx_fifo (
      .wr_clk_i(gmii_rx_clk_i), .wr_rst_i(rx_rst), .wr_valid_i(rx_in_valid), .wr_ready_o(rx_in_ready), .wr_data_i(rx_in),
      .commit_i(rx_commit), .rollback_i(rx_rollback),
      .rd_clk_i(clk_i), .rd_rst_i(rst_i || rx_rst_seen), .rd_valid_o(mac_rx_valid_o), .rd_ready_i(mac_rx_ready_i), .rd_data_o(rx_out)
  );
  assign mac_rx_data_o = rx_out.data;
  assign mac_rx_last_o = rx_out.last;
  assign mac_rx_err_o  = rx_out.err && rx_out.last;
  assign mac_rx_keep_o = (rx_out.cnt == 3'd0) ? 8'hff : 8'((9'd1 << rx_out.cnt) - 9'd1);
  rnic_sync_word #(.Width($bits(mac_rx_cnt_t))) u_rx_cnt (
      .src_clk_i(gmii_rx_clk_i), .src_rst_i(rx_rst), .src_data_i(rx_cnt), .dst_clk_i(clk_i), .dst_rst_i(rst_i || rx_rst_seen), .data_o(rx_cnt_o)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_i && mac_tx_valid_i) begin
      a_full_or_last : assert (mac_tx_last_i || (&mac_tx_keep_i));
      a_from_lane_0 : assert (mac_tx_keep_i != '0 && (mac_tx_keep_i & (mac_tx_keep_i + 8'd1)) == '0);
    end
  end
endmodule
