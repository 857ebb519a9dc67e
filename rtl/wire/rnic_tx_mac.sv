// SPDX-License-Identifier: Apache-2.0
// Makes Ethernet frames of packets: computes the ICRC and appends it, puts the Ethernet header before, drives the MAC.
// Contract: meta_valid_i with what its header needs, held until meta_ready_o, before or with the packet's first beat; then
// its beats (packed, IP header first, up to the pad) without gaps as far as ip_ready_o allows. mac_tx_*: AXI-Stream;
// within a frame mac_tx_valid_o does not fall, and not between frames that wait. done_valid_o pulses when the MAC has taken a frame's
// last beat.
// Frames are not padded to the 60 bytes of Ethernet (the shortest is 58): the MAC does that.
module rnic_tx_mac
  import rnic_spec_pkg::*;
#(
    parameter int unsigned DataW = 64,
    localparam int unsigned EthMax = 18,
    localparam int unsigned Bytes = DataW / 8,
    localparam int unsigned CntW = $clog2(Bytes + 1)
) (
    input  logic                clk_i,
    input  logic                rst_i,
    input  logic                meta_valid_i,
    output logic                meta_ready_o,
    input  logic [47:0]         mac_i,             // our address, the first byte on the wire in bits 7:0
    input  logic [47:0]         meta_dmac_i,
    input  logic [15:0]         meta_vlan_i,       // bit 15: the frame is tagged
    input  logic                meta_v6_i,
    // (far below 8192)
    // verilator lint_off UNUSEDSIGNAL
    input  logic [15:0]         meta_ip_total_i,   // bytes of the packet without ICRC
    // verilator lint_on UNUSEDSIGNAL
    input  logic                meta_src_i,
    input  logic                meta_count_i,
    input  counter_id_e         meta_cnt_i,
    input  logic                ip_valid_i,
    output logic                ip_ready_o,
    input  logic [DataW-1:0]    ip_data_i,
    input  logic [CntW-1:0]     ip_cnt_i,
    input  logic                ip_last_i,
    output logic                mac_tx_valid_o,
    input  logic                mac_tx_ready_i,
    output logic [DataW-1:0]    mac_tx_data_o,
    output logic [Bytes-1:0]    mac_tx_keep_o,
    output logic                mac_tx_last_o,
    output logic                done_valid_o,
    output logic                done_src_o,
    output logic                done_count_o,
    output counter_id_e         done_cnt_o,
    output logic [15:0]         done_len_o,
    output logic                idle_o
);
  localparam int unsigned NumCrc = 16;    // frames whose ICRC is made
  localparam int unsigned NumBeat = 16;
  localparam int unsigned IcrcLat = (DataW == 64) ? 2 : 3 + $clog2(Bytes / 4);
  // A frame that is not all here may start when its ICRC is sure to be in time: it is ready IcrcLat + 1 cycles after the
  // last beat came in, and by then at least as many beats had to leave before that one.
  localparam int unsigned StartLevel = IcrcLat + 3;
  if (StartLevel + 1 > NumBeat) begin : g_depth
    $fatal(1, "too few beats to hide the ICRC's latency");
  end

  // ---------------------------------------------------------------- beats, frames and ICRCs wait for each other
  typedef struct packed {
    logic [47:0]         dmac;
    logic [15:0]         vlan;
    logic                v6;
    logic [12:0]         ip_total;
    logic                src;
    logic                count;
    counter_id_e         cnt;
  } meta_t;
  meta_t meta_in, meta;
  logic meta_valid, meta_pop;
  assign meta_in = '{dmac: meta_dmac_i, vlan: meta_vlan_i, v6: meta_v6_i, ip_total: meta_ip_total_i[12:0], src: meta_src_i,
                     count: meta_count_i, cnt: meta_cnt_i};
  /* verilator lint_off PINCONNECTEMPTY */
  // (of the frame that waits and the next one; a memory for more would be larger)
  rnic_skid #(.Width($bits(meta_t))) u_meta (
      .clk_i, .rst_i, .in_valid_i(meta_valid_i), .in_ready_o(meta_ready_o), .in_data_i(meta_in),
      .out_valid_o(meta_valid), .out_ready_i(meta_pop), .out_data_o(meta)
  );

  logic beat_valid, beat_pop, beat_last;
  logic [DataW-1:0] beat;
  logic [CntW-1:0] beat_cnt;
  logic [$clog2(NumBeat+1)-1:0] level;
  rnic_fifo #(.Width(DataW + CntW + 1), .Depth(NumBeat)) u_beats (
      .clk_i, .rst_i, .in_valid_i(ip_valid_i), .in_ready_o(ip_ready_o), .in_data_i({ip_last_i, ip_cnt_i, ip_data_i}),
      .out_valid_o(beat_valid), .out_ready_i(beat_pop), .out_data_o({beat_last, beat_cnt, beat}), .level_o(level)
  );

  logic first_q, made_valid, crc_ready, crc_valid, crc_pop;
  logic [$clog2(NumCrc+1)-1:0] crc_level;
  logic [31:0] made, crc;
  always_ff @(posedge clk_i) begin
    if (rst_i) first_q <= 1'b1;
    else if (ip_valid_i && ip_ready_o) first_q <= ip_last_i;
  end
  rnic_icrc #(.DataW(DataW), .Check(1'b0)) u_icrc (
      .clk_i, .rst_i, .valid_i(ip_valid_i && ip_ready_o), .first_i(first_q), .last_i(ip_last_i), .data_i(ip_data_i),
      .cnt_i(ip_cnt_i), .valid_o(made_valid), .ok_o(), .crc_o(made)
  );
  rnic_fifo #(.Width(32), .Depth(NumCrc)) u_crcs (
      .clk_i, .rst_i, .in_valid_i(made_valid), .in_ready_o(crc_ready), .in_data_i(made),
      .out_valid_o(crc_valid), .out_ready_i(crc_pop), .out_data_o(crc), .level_o(crc_level)
  );
  /* verilator lint_on PINCONNECTEMPTY */

  // ---------------------------------------------------------------- packet and ICRC as one stream
  logic tail_q;  // the packet filled its last beat: the ICRC has one of its own
  logic body_valid, body_ready, full_last;
  logic [DataW-1:0] body, crc_beat;
  assign full_last = beat_cnt == CntW'(Bytes);
`ifdef RNIC_CUT_TX_ICRC
  assign crc_beat  = '0;
`else
  assign crc_beat  = DataW'(crc);
`endif
  always_comb begin
    body_valid = beat_valid;
    body       = beat;
    if (tail_q) begin
      body_valid = crc_valid;
      body       = crc_beat;
    end else if (beat_last && !full_last) begin
      body_valid = beat_valid && crc_valid;
      body       = beat | (crc_beat << {beat_cnt, 3'b000});
    end
  end
  assign beat_pop = body_valid && body_ready && !tail_q;
  assign crc_pop  = body_valid && body_ready && (tail_q || (beat_last && !full_last));
  always_ff @(posedge clk_i) begin
    if (rst_i) tail_q <= 1'b0;
    else if (body_valid && body_ready) tail_q <= !tail_q && beat_last && full_last;
  end

  // ---------------------------------------------------------------- Ethernet header before it
`ifdef RNIC_CUT_TX_BACK_TO_BACK
  localparam bit BackToBack = 1'b0;
`else
  localparam bit BackToBack = 1'b1;
`endif
  logic start_valid, start_ready, out_valid, out_ready, out_last, busy;
  logic [DataW-1:0] out_data;
  logic [CntW-1:0] out_cnt;
  logic [4:0] eth_len;
  logic [15:0] frame_len;
  logic [15:0] ethertype;
  logic [8*EthMax-1:0] eth;                // the first byte in lane 0
  assign ethertype = meta.v6 ? ETHERTYPE_IPV6 : ETHERTYPE_IPV4;
  always_comb begin
    eth = {32'd0, ethertype[7:0], ethertype[15:8], mac_i, meta.dmac};
    if (meta.vlan[15])
      eth[8*EthMax-1:96] = {ethertype[7:0], ethertype[15:8], meta.vlan[7:0], meta.vlan[14:12], 1'b0, meta.vlan[11:8], ETHERTYPE_VLAN[7:0], ETHERTYPE_VLAN[15:8]};
  end
  assign eth_len     = meta.vlan[15] ? 5'(ETH_HDR_BYTES + VLAN_TAG_BYTES) : 5'(ETH_HDR_BYTES);
  assign frame_len   = {3'd0, 13'(eth_len) + meta.ip_total + 13'(ICRC_BYTES)};
  // While a frame leaves, its ICRC may still be there, and its last beat.
  logic own_crc_q;
  always_ff @(posedge clk_i) begin
    if (rst_i) own_crc_q <= 1'b0;
    else if (meta_pop) own_crc_q <= 1'b1;
    else if (crc_pop) own_crc_q <= 1'b0;
  end
  assign start_valid = meta_valid && (32'(crc_level) > 32'(own_crc_q) || 32'(level) >= StartLevel + 32'(busy));
  assign meta_pop    = start_valid && start_ready;
  rnic_tx_prefix #(.DataW(DataW), .HdrMax(EthMax), .Unit(4), .Extra(2), .BackToBack(BackToBack)) u_eth (
      .clk_i, .rst_i, .start_valid_i(start_valid), .start_ready_o(start_ready), .start_hdr_i(eth),
      .start_hdr_len_i(eth_len), .start_total_i(frame_len[12:0]),
      .body_valid_i(body_valid), .body_ready_o(body_ready), .body_data_i(body),
      .out_valid_o(out_valid), .out_ready_i(out_ready), .out_data_o(out_data), .out_cnt_o(out_cnt), .out_last_o(out_last),
      .busy_o(busy)
  );

  // ---------------------------------------------------------------- output register, with what is told at the end
  typedef struct packed {
    logic        src;
    logic        count;
    counter_id_e cnt;
    logic [15:0] len;
  } told_t;
  told_t frame_q, told_q;
  assign out_ready = !mac_tx_valid_o || mac_tx_ready_i;
  always_ff @(posedge clk_i) begin
    if (meta_pop) frame_q <= '{src: meta.src, count: meta.count, cnt: meta.cnt, len: frame_len};
    if (rst_i) mac_tx_valid_o <= 1'b0;
    else if (out_ready) mac_tx_valid_o <= out_valid;
    if (out_ready) begin
      mac_tx_data_o <= out_data;
      mac_tx_last_o <= out_last;
      told_q        <= frame_q;
      for (int unsigned i = 0; i < Bytes; i++) mac_tx_keep_o[i] <= CntW'(i) < out_cnt;
    end
  end
  assign done_valid_o = mac_tx_valid_o && mac_tx_ready_i && mac_tx_last_o;
  assign done_src_o   = told_q.src;
  assign done_count_o = told_q.count;
  assign done_cnt_o   = told_q.cnt;
  assign done_len_o   = told_q.len;
  assign idle_o       = !meta_valid && !busy && !mac_tx_valid_o;

  logic mid_q;  // within a frame
  always_ff @(posedge clk_i) begin
    if (rst_i) mid_q <= 1'b0;
    else if (mac_tx_valid_o && mac_tx_ready_i) mid_q <= !mac_tx_last_o;
    if (!rst_i) begin
      if (mid_q) a_no_gap : assert (mac_tx_valid_o);
      if (made_valid) a_crc_room : assert (crc_ready);
      if (busy && body_ready && tail_q) a_tail_in_time : assert (crc_valid);
    end
  end
endmodule
