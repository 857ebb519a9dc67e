// SPDX-License-Identifier: Apache-2.0
// Takes the Ethernet header (with or without one 802.1Q tag) off: gives the packet from its IP header on.
// Contract: never refuses a beat; a beat every cycle, frames back to back. In: every beat but the last is full, lanes are
// filled from 0. Out: per frame at least one beat, every one but the last full, lanes above the end zero; a frame that
// ends within its Ethernet header gives one beat of 0 bytes. dmac_ok_o, ipv4_o and ipv6_o hold for every beat of the frame,
// err_o (MAC error in any beat) and frame_len_o for its last. Bytes that a short frame lacks count as zero.
// Latency: 2 cycles, a frame's last beat 1 or 2.
module rnic_rx_mac
  import rnic_spec_pkg::*;
#(
    parameter int unsigned DataW = 64,
    localparam int unsigned Bytes = DataW / 8,
    localparam int unsigned CntW = $clog2(Bytes + 1)
) (
    input  logic             clk_i,
    input  logic             rst_i,
    input  logic [47:0]      mac_i,        // first byte on the wire in bits 7:0
    input  logic             mac_rx_valid_i,
    input  logic [DataW-1:0] mac_rx_data_i,
    input  logic [Bytes-1:0] mac_rx_keep_i,
    input  logic             mac_rx_last_i,
    input  logic             mac_rx_err_i,
    output logic             ip_valid_o,
    output logic             ip_first_o,
    output logic             ip_last_o,
    output logic [DataW-1:0] ip_data_o,
    output logic [CntW-1:0]  ip_cnt_o,     // bytes of this beat
    output logic             dmac_ok_o,
    output logic             ipv4_o,       // the EtherType says IPv4
    output logic             ipv6_o,
    output logic             err_o,
    output logic [15:0]      frame_len_o   // bytes with the Ethernet header
);
  // Where the header ends: beat and lane, without and with a tag.
  localparam int unsigned HdrBytes = ETH_HDR_BYTES;
  localparam int unsigned TagBytes = ETH_HDR_BYTES + VLAN_TAG_BYTES;
  localparam int unsigned HdrBeat = HdrBytes / Bytes;
  localparam int unsigned HdrLane = HdrBytes % Bytes;
  localparam int unsigned TagBeat = TagBytes / Bytes;
  localparam int unsigned TagLane = TagBytes % Bytes;
  // Where the EtherTypes stand.
  localparam int unsigned TypeBeat = 12 / Bytes;
  localparam int unsigned TypeLane = 12 % Bytes;
  localparam int unsigned InnerBeat = 16 / Bytes;
  localparam int unsigned InnerLane = 16 % Bytes;

  logic [DataW-1:0] data, prev_q;
  logic [CntW-1:0] cnt;
  always_comb begin
    cnt = '0;
    for (int unsigned i = 0; i < Bytes; i++) begin
      data[8*i+:8] = mac_rx_keep_i[i] ? mac_rx_data_i[8*i+:8] : 8'h00;
      if (mac_rx_keep_i[i]) cnt = CntW'(i + 1);
    end
  end

  logic [1:0] idx_q;  // beat of the frame, stops at 3
  logic tagged_d, tagged_q, ipv4_d, ipv4_q, ipv6_d, ipv6_q, dmac_ok_d, dmac_ok_q, err_d, err_q;
  logic [15:0] len_d, len_q;
  logic [15:0] outer, inner;
  assign outer = {data[8*TypeLane+:8], data[8*TypeLane+8+:8]};
  assign inner = {data[8*InnerLane+:8], data[8*InnerLane+8+:8]};
  always_comb begin
    tagged_d  = tagged_q;
    ipv4_d    = ipv4_q;
    ipv6_d    = ipv6_q;
    dmac_ok_d = dmac_ok_q;
    err_d     = err_q || mac_rx_err_i;
    len_d     = (len_q >= 16'hff00) ? len_q : len_q + 16'(cnt);
    if (idx_q == 2'd0) begin
      tagged_d  = 1'b0;
      ipv4_d    = 1'b0;
      ipv6_d    = 1'b0;
      dmac_ok_d = data[47:0] == mac_i;
`ifdef RNIC_CUT_RX_DMAC
      dmac_ok_d = 1'b1;
`endif
      err_d     = mac_rx_err_i;
      len_d     = 16'(cnt);
    end
    if (idx_q == 2'(TypeBeat)) begin
      tagged_d = outer == ETHERTYPE_VLAN;
      ipv4_d   = outer == ETHERTYPE_IPV4;
      ipv6_d   = outer == ETHERTYPE_IPV6;
`ifdef RNIC_CUT_RX_VLAN
      tagged_d = 1'b0;
`endif
    end
    if (idx_q == 2'(InnerBeat) && tagged_d) begin
      ipv4_d = inner == ETHERTYPE_IPV4;
      ipv6_d = inner == ETHERTYPE_IPV6;
    end
  end

  // A beat behind the header's last one completes a beat of the packet; what then is left when the frame ends is
  // flushed in the next cycle, in which the next frame's first beat completes nothing.
  logic behind, at_hdr, flush_q, first_q, emit, emit_last;
  logic [CntW-1:0] lane, flush_cnt_q, emit_cnt;
  logic [2*DataW-1:0] pair;
  assign behind = tagged_q ? idx_q > 2'(TagBeat) : idx_q > 2'(HdrBeat);
  assign at_hdr = tagged_d ? idx_q == 2'(TagBeat) : idx_q == 2'(HdrBeat);
  assign lane   = tagged_q ? CntW'(TagLane) : CntW'(HdrLane);
  assign pair   = {data, prev_q};

  logic ends_here;  // the frame's last bytes fit into the beat that its last beat completes
  assign ends_here = mac_rx_last_i && cnt <= lane;
  always_comb begin
    emit      = flush_q;
    emit_last = 1'b1;
    emit_cnt  = flush_cnt_q;
    if (!flush_q) begin
      emit      = mac_rx_valid_i && behind;
      emit_last = ends_here;
      emit_cnt  = ends_here ? CntW'(Bytes) - lane + cnt : CntW'(Bytes);
    end
  end

  always_ff @(posedge clk_i) begin
    ip_valid_o  <= emit && !rst_i;
    ip_first_o  <= first_q;
    ip_last_o   <= emit_last;
    ip_cnt_o    <= emit_cnt;
    dmac_ok_o   <= dmac_ok_q;
    ipv4_o      <= ipv4_q;
    ipv6_o      <= ipv6_q;
    err_o       <= flush_q ? err_q : err_d;
    frame_len_o <= flush_q ? len_q : len_d;
    for (int unsigned i = 0; i < Bytes; i++)
      ip_data_o[8*i+:8] <= (CntW'(i) >= emit_cnt) ? 8'h00 : tagged_q ? pair[8*(TagLane+i)+:8] : pair[8*(HdrLane+i)+:8];

    if (mac_rx_valid_i) begin
      prev_q    <= data;
      tagged_q  <= tagged_d;
      ipv4_q    <= ipv4_d;
      ipv6_q    <= ipv6_d;
      dmac_ok_q <= dmac_ok_d;
      err_q     <= err_d;
      len_q     <= len_d;
    end
    // Within the header nothing is left; in its last beat, what stands above it.
    flush_cnt_q <= behind ? cnt - lane : !at_hdr ? '0 : tagged_d ? (cnt > CntW'(TagLane) ? cnt - CntW'(TagLane) : '0)
                                                                  : (cnt > CntW'(HdrLane) ? cnt - CntW'(HdrLane) : '0);
    if (rst_i) begin
      idx_q   <= '0;
      flush_q <= 1'b0;
      first_q <= 1'b1;
    end else begin
      if (mac_rx_valid_i) idx_q <= mac_rx_last_i ? 2'd0 : (idx_q == 2'd3) ? idx_q : idx_q + 2'd1;
      flush_q <= mac_rx_valid_i && mac_rx_last_i && !(behind && ends_here);
      if (emit) first_q <= emit_last;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i && mac_rx_valid_i) begin
      a_full_or_last : assert (mac_rx_last_i || (&mac_rx_keep_i));
      a_from_lane_0 : assert ((mac_rx_keep_i & (mac_rx_keep_i + Bytes'(1))) == '0);
      a_one_at_a_time : assert (!(flush_q && behind));
    end
  end
endmodule
