// SPDX-License-Identifier: Apache-2.0
// Judges a received packet and takes it apart. Verdicts in this order, the first that fails counts: MAC error, DMAC, not
// RoCE, IP header, lengths, opcode, TVer, ICRC, destination address. An IPv6 header with an extension header behind it is
// "not RoCE", and without Ipv6 every IPv6 packet is. Its traffic class, flow label and hop limit (RFC 8200 section 3: 0
// included) tell a receiver nothing, and neither does a UDP checksum: the ICRC covers what it would.
// Contract: in: the stream of rnic_rx_mac, a beat every cycle. Out: payload beats of a packet, then (or with the last
// of them) fin_valid_o with the verdict: drop_o names the counter of a refused packet; a good one is a request, a
// response or neither (CNP: taken, and nothing follows). The payload of a packet that is refused may have been given in
// part. desc_o holds in the cycle of fin_valid_o and, of a good packet, until the next one that could be good ends: a packet has
// 44 bytes at least, in front of it 14.
// Latency: fin_valid_o 5 cycles after the packet's last beat, 4 at 64 bits. Extended headers behind an XRCETH are not taken apart: no
// QP type with a data path has them.
module rnic_rx_parse
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned DataW = 64,
    parameter bit Ipv6 = 1'b1,
    localparam int unsigned Bytes = DataW / 8,
    localparam int unsigned CntW = $clog2(Bytes + 1)
) (
    input  logic             clk_i,
    input  logic             rst_i,
    input  logic [NUM_GID-1:0] gid_v4_i,
    input  logic [NUM_GID-1:0] gid_v6_i,
    input  gid_t [NUM_GID-1:0] gid_i,
    input  logic             ip_valid_i,
    input  logic             ip_first_i,
    input  logic             ip_last_i,
    input  logic [DataW-1:0] ip_data_i,
    input  logic [CntW-1:0]  ip_cnt_i,
    input  logic             dmac_ok_i,
    input  logic             ipv4_i,
    input  logic             ipv6_i,
    input  logic             err_i,
    input  logic [15:0]      frame_len_i,
    output logic             pay_valid_o,
    output logic [DataW-1:0] pay_data_o,
    output logic             pay_last_o,
    output logic             pay_request_o,   // beside pay_valid_o: of a request or of a response
    output logic             fin_valid_o,
    output logic             drop_o,
    output counter_id_e      drop_cnt_o,
    output logic             request_o,       // good, and a request
    output logic             response_o,
    output rx_raw_t          desc_o,
    output logic [15:0]      frame_len_o
);
  localparam int unsigned IpMax = Ipv6 ? IPV6_HDR_BYTES : IPV4_HDR_BYTES;
  // From UDP up to the longest extended header (AtomicETH).
  localparam int unsigned L4Min = UDP_HDR_BYTES + BTH_BYTES;
  localparam int unsigned L4Max = L4Min + ATOMIC_ETH_BYTES;
  localparam int unsigned IcrcLat = (DataW == 64) ? 2 : 3;

  // ---------------------------------------------------------------- ICRC and header checksum, while the beats wait
  // What the packet claims to have from this beat on; whether all of that is there, and as much as a good packet has at least.
  localparam int unsigned LaneW = $clog2(Bytes);
  localparam int unsigned MinLen = IPV4_HDR_BYTES + L4Min + ICRC_BYTES;
  logic [15:0] left_q, left;
  logic [3:0] idx_q, idx;
  logic odd_q, odd, left_last, cut, enough;
  assign idx       = ip_first_i ? '0 : idx_q;
  assign left_last = left[15:LaneW] == '0 || left == 16'(Bytes);
  assign cut       = left[15:LaneW+1] != '0 || (LaneW + 1)'(left) > (LaneW + 1)'(ip_cnt_i);
  assign enough    = 32'(idx) > MinLen / Bytes || (32'(idx) == MinLen / Bytes && 32'(ip_cnt_i) >= MinLen % Bytes);
  always_comb begin
    left = left_q;
    if (ip_first_i) left = {ip_data_i[23:16], ip_data_i[31:24]};  // IPv4 total length
    // IPv6 payload length (what does not fit 16 bits then is too long anyway)
    if (ip_first_i && ipv6_i && Ipv6) left = {ip_data_i[39:32], ip_data_i[47:40]} + 16'(IPV6_HDR_BYTES);
    odd = ip_first_i ? left[1:0] != '0 : odd_q;
  end
  always_ff @(posedge clk_i) begin
    if (ip_valid_i) begin
      left_q <= left_last ? '0 : {left[15:LaneW] - (16 - LaneW)'(1), left[LaneW-1:0]};
      idx_q  <= (idx == 4'd15) ? idx : idx + 4'd1;
      odd_q  <= odd;
    end
  end

  // Ethernet padding is not covered: the stream ends where the IP packet does.
  logic crc_valid, crc_last, icrc_valid, icrc_ok;
  logic [CntW-1:0] crc_cnt;
`ifdef RNIC_CUT_RX_TRIM
  assign crc_valid = ip_valid_i;
  assign crc_last  = ip_last_i;
  assign crc_cnt   = ip_cnt_i;
`else
  assign crc_valid = ip_valid_i && left != '0 && !odd;
  assign crc_last  = left_last;
  assign crc_cnt   = CntW'(left);   // (looked at in the last beat alone)
`endif
  /* verilator lint_off PINCONNECTEMPTY */
  rnic_icrc #(.DataW(DataW), .Check(1'b1)) u_icrc (
      .clk_i, .rst_i, .valid_i(crc_valid), .first_i(ip_first_i), .last_i(crc_last), .data_i(ip_data_i),
      .cnt_i(crc_cnt), .valid_o(icrc_valid), .ok_o(icrc_ok), .crc_o()
  );
  /* verilator lint_on PINCONNECTEMPTY */

  // Sum of the header's words: of the beat, of the packet; where the ICRC takes 3 cycles, one more to stand beside the waiting beat.
  localparam int unsigned SumBeats = (IPV4_HDR_BYTES + Bytes - 1) / Bytes;
  localparam int unsigned SumTail = (IPV4_HDR_BYTES - (SumBeats - 1) * Bytes) / 2;   // words of its last beat
  logic [19:0] words, words_more, beat_sum_q, sum_q, sum_dly;
  logic sum_valid_q, sum_first_q;
  always_comb begin
    words      = '0;
    words_more = '0;
    for (int unsigned w = 0; w < SumTail; w++) words = words + 20'({ip_data_i[16*w+:8], ip_data_i[16*w+8+:8]});
    for (int unsigned w = SumTail; SumBeats > 1 && w < Bytes / 2; w++)
      words_more = words_more + 20'({ip_data_i[16*w+:8], ip_data_i[16*w+8+:8]});
  end
  always_ff @(posedge clk_i) begin
    beat_sum_q  <= words + ((32'(idx) + 1 < SumBeats) ? words_more : '0);
    sum_valid_q <= ip_valid_i && 32'(idx) < SumBeats;
    sum_first_q <= ip_first_i;
    if (sum_valid_q) sum_q <= (sum_first_q ? '0 : sum_q) + beat_sum_q;
  end
  if (IcrcLat == 2) begin : g_sum
    assign sum_dly = sum_q;
  end else begin : g_sum_later
    logic [19:0] sum_dly_q;
    always_ff @(posedge clk_i) sum_dly_q <= sum_q;
    assign sum_dly = sum_dly_q;
  end

  // ---------------------------------------------------------------- the waiting beats
  typedef struct packed {
    logic             first;
    logic             last;
    logic [DataW-1:0] data;
    logic             dmac_ok;
    logic             ipv4;
    logic             ipv6;
    logic             err;
    logic             cut;       // (of the last beat)
    logic             enough;
    logic [15:0]      frame_len;
  } beat_t;
  beat_t dly_q[IcrcLat];
  logic [IcrcLat-1:0] dly_valid_q;
  always_ff @(posedge clk_i) begin
    dly_q[0] <= '{first: ip_first_i, last: ip_last_i, data: ip_data_i, dmac_ok: dmac_ok_i, ipv4: ipv4_i,
                  ipv6: ipv6_i && Ipv6, err: err_i, cut: cut, enough: enough, frame_len: frame_len_i};
    for (int unsigned k = 1; k < IcrcLat; k++) dly_q[k] <= dly_q[k-1];
    dly_valid_q <= rst_i ? '0 : {dly_valid_q[IcrcLat-2:0], ip_valid_i};
  end

  // ---------------------------------------------------------------- header collection
  beat_t d;
  logic d_valid, ok_q, ok_d, end_q, dmac_ok_q, ipv4_q, v6_q, err_q, cut_q, enough_q, sum_ok_q;
  logic [3:0] d_idx_q, d_idx;
  logic [15:0] frame_len_q;
  // Where a cut packet ends, what stood there before stays, but for the words that are looked at before the lengths.
  // By words of four bytes, of which the first is in bits 7:0: the headers behind the IP header have a place of their own.
  logic [IpMax/4-1:0][31:0] ip_q;
  logic [L4Max/4-1:0][31:0] l4_q;
  // What the opcode says (of it, this and that does not matter here), and the bytes in front of the payload in words of four.
  // verilator lint_off UNUSEDSIGNAL
  opcode_info_t info;
  logic [31:0] bth_word;       // the BTH's first
  // verilator lint_on UNUSEDSIGNAL
  logic [4:0] hdr_words_q;
  logic [3:0] bth_idx;
  assign bth_idx  = d.ipv6 ? 4'((IPV6_HDR_BYTES + UDP_HDR_BYTES) / Bytes) : 4'((IPV4_HDR_BYTES + UDP_HDR_BYTES) / Bytes);
  assign bth_word = d.ipv6 ? d.data[8*((IPV6_HDR_BYTES+UDP_HDR_BYTES)%Bytes)+:32] : d.data[8*((IPV4_HDR_BYTES+UDP_HDR_BYTES)%Bytes)+:32];
  function automatic logic [3:0] opcode_ext_words(logic [7:0] opcode);
    // verilator lint_off UNUSEDSIGNAL
    opcode_info_t i;
    // verilator lint_on UNUSEDSIGNAL
    i = opcode_info(opcode);
    return i.ext_len[5:2];
  endfunction
  assign d       = dly_q[IcrcLat-1];
  assign d_valid = dly_valid_q[IcrcLat-1];
  assign d_idx   = d.first ? '0 : d_idx_q;
  // The result belongs to the beat that leaves the line in this cycle.
  assign ok_d    = (icrc_valid && icrc_ok) || (!d.first && ok_q);
  always_ff @(posedge clk_i) begin
    end_q <= d_valid && d.last && !rst_i;
    if (d_valid) begin
      for (int unsigned w = 0; w < IpMax / 4; w++) begin
        if (d_idx == 4'(4 * w / Bytes)) ip_q[w] <= d.data[8*(4*w%Bytes)+:32];
        else if (w == 2 && d.first) ip_q[w] <= '0;
      end
      for (int unsigned w = 0; w < L4Max / 4; w++) begin
        if (d_idx == (d.ipv6 ? 4'((IPV6_HDR_BYTES + 4 * w) / Bytes) : 4'((IPV4_HDR_BYTES + 4 * w) / Bytes)))
          l4_q[w] <= d.ipv6 ? d.data[8*((IPV6_HDR_BYTES+4*w)%Bytes)+:32] : d.data[8*((IPV4_HDR_BYTES+4*w)%Bytes)+:32];
        else if (w == 0 && d.first) l4_q[w] <= '0;
      end
      // The opcode is looked up on its way in. Until then no beat is behind the headers: those of the packet before may have been shorter.
      if (d.first) hdr_words_q <= '1;
      if (d_idx == bth_idx) begin
        info        <= opcode_info(bth_word[7:0]);
        hdr_words_q <= (d.ipv6 ? 5'((IPV6_HDR_BYTES + L4Min) / 4) : 5'((IPV4_HDR_BYTES + L4Min) / 4)) + 5'(opcode_ext_words(bth_word[7:0]));
      end
      d_idx_q     <= (d_idx == 4'd15) ? d_idx : d_idx + 4'd1;
      cut_q       <= d.cut;
      enough_q    <= d.enough;
      ok_q        <= ok_d;
      dmac_ok_q   <= d.dmac_ok;
      ipv4_q      <= d.ipv4;
      v6_q        <= d.ipv6;
      err_q       <= d.err;
      frame_len_q <= d.frame_len;
      sum_ok_q    <= 17'(sum_dly[15:0]) + 17'(sum_dly[19:16]) == 17'hffff;
    end
  end

  // ---------------------------------------------------------------- what the headers say
  // Network order: the first byte on the wire in the highest bits.
  logic [8*IPV6_HDR_BYTES-1:0] ip_be;
  logic [8*L4Max-1:0] l4_be;
  always_comb begin
    ip_be = '0;
    for (int unsigned i = 0; i < IpMax; i++) ip_be[8*(IPV6_HDR_BYTES-1-i)+:8] = ip_q[i/4][8*(i%4)+:8];
    for (int unsigned i = 0; i < L4Max; i++) l4_be[8*(L4Max-1-i)+:8] = l4_q[i/4][8*(i%4)+:8];
  end
  // Many fields tell a receiver nothing (source port, UDP checksum, identification), and the sum is checked above.
  /* verilator lint_off UNUSEDSIGNAL */
  ipv4_hdr_t ip;
  ipv6_hdr_t ip6;
  udp_hdr_t udp;
  bth_t bth;
  /* verilator lint_on UNUSEDSIGNAL */
  logic [8*ATOMIC_ETH_BYTES-1:0] ext;
  assign ip  = ip_be[8*IPV6_HDR_BYTES-1-:8*IPV4_HDR_BYTES];
  assign ip6 = ip_be;
  assign {udp, bth, ext} = l4_be;

  // Lengths in words of four bytes, which a good packet has a whole number of: what the packet claims may lie below zero.
  logic [14:0] total;
  logic signed [15:0] body;    // payload and pad
  pay_len_t pay_len;
  logic odd_total, len_bad, pay_ok, no_body;
  assign total     = v6_q ? 15'(ip6.payload_length[15:2]) + 15'(IPV6_HDR_BYTES / 4) : 15'(ip.total_length[15:2]);
  assign odd_total = (v6_q ? ip6.payload_length[1:0] : ip.total_length[1:0]) != '0;
  assign body      = $signed(16'(total)) - 16'(5'(hdr_words_q + 5'(ICRC_BYTES / 4)));
  assign no_body   = body == '0;
  assign pay_len   = {body[10:0], 2'b00} - pay_len_t'(bth.pad_cnt);
  assign pay_ok    = !body[15] && (body[14:10] == '0 || body[14:0] == 15'd1024) && !(no_body && bth.pad_cnt != '0);
  always_comb begin
    len_bad = !pay_ok || cut_q || odd_total ||
              udp.length != (v6_q ? ip6.payload_length : ip.total_length - 16'(IPV4_HDR_BYTES)) ||
              (info.pay_none && !no_body) || ((info.pay_min1 || info.pay_full) && no_body);
  end

  // Source and destination as GIDs. The last four bytes are compared for both, those before for IPv6.
  gid_t sgid, dgid6;
  logic [31:0] dgid_tail;
  logic [NUM_GID-1:0] gid_hit;
  assign sgid = v6_q ? gid_swap(ip6.src_addr) : gid_swap({80'd0, 16'hffff, ip.src_addr});
  assign dgid6 = gid_swap(ip6.dst_addr);
  assign dgid_tail = v6_q ? dgid6[127:96] : {ip.dst_addr[7:0], ip.dst_addr[15:8], ip.dst_addr[23:16], ip.dst_addr[31:24]};
  always_comb begin
    for (int unsigned g = 0; g < NUM_GID; g++)
      gid_hit[g] = gid_i[g][127:96] == dgid_tail && (v6_q ? gid_v6_i[g] && gid_i[g][95:0] == dgid6[95:0] : gid_v4_i[g]);
  end

  // An IP header of another shape has no UDP header where we look for it: it is refused as what it is.
  logic ip_shape_bad;
  assign ip_shape_bad = v6_q ? ip6.version != 4'd6
                             : ip.version != 4'd4 || ip.ihl != 4'd5 || ip.mf || ip.fragment_offset != '0;

  localparam int unsigned NumFail = 9;
  localparam counter_id_e FailCnt[NumFail] = '{
      COUNTER_ID_RX_DROP_MAC_ERR, COUNTER_ID_RX_DROP_DMAC, COUNTER_ID_RX_DROP_NOT_ROCE, COUNTER_ID_RX_DROP_IP_HDR,
      COUNTER_ID_RX_DROP_LENGTH, COUNTER_ID_RX_DROP_OPCODE, COUNTER_ID_RX_DROP_TVER, COUNTER_ID_RX_DROP_ICRC,
      COUNTER_ID_RX_DROP_DIP};
  logic [NumFail-1:0] fail, fail_q;
  always_comb begin
    fail = '0;
    fail[0] = err_q;
    fail[1] = !dmac_ok_q;
    fail[2] = !(ipv4_q || v6_q) || (v6_q ? ip6.next_header : ip.protocol) != IP_PROTO_UDP ||
              (!ip_shape_bad && udp.dst_port != ROCE_UDP_PORT);
    fail[3] = ip_shape_bad || (!v6_q && (ip.ttl == '0 || !sum_ok_q));
    fail[4] = len_bad;
    fail[5] = !info.valid;
    fail[6] = bth.tver != '0;
    fail[7] = !ok_q;
    fail[8] = gid_hit == '0;
`ifdef RNIC_CUT_RX_MAC_ERR
    fail[0] = 1'b0;
`endif
`ifdef RNIC_CUT_RX_IPV6
    fail[2] = fail[2] || v6_q;
`endif
`ifdef RNIC_CUT_RX_NOT_ROCE
    fail[2] = 1'b0;
`endif
`ifdef RNIC_CUT_RX_IP_HDR
    fail[3] = 1'b0;
`endif
`ifdef RNIC_CUT_RX_LENGTH
    fail[4] = 1'b0;
`endif
`ifdef RNIC_CUT_RX_OPCODE
    fail[5] = 1'b0;
`endif
`ifdef RNIC_CUT_RX_TVER
    fail[6] = 1'b0;
`endif
`ifdef RNIC_CUT_RX_ICRC
    fail[7] = 1'b0;
`endif
`ifdef RNIC_CUT_RX_DIP
    fail[8] = 1'b0;
`endif
  end

  rx_raw_t desc;
  assign desc = '{
      opcode: bth.opcode, se: bth.se, ack_req: bth.ack_req, pad: bth.pad_cnt, pkey: bth.pkey, dest_qpn: bth.dest_qp, psn: bth.psn,
      ecn: v6_q ? ip6.ecn : ip.ecn, sgid: sgid, gid_hit: gid_hit, payload_len: pay_len, ext: ext
  };

  logic request_q, response_q;
  always_ff @(posedge clk_i) begin
    fin_valid_o   <= end_q && !rst_i;
    fail_q        <= fail;
    request_q     <= info.is_request;
    response_q    <= info.is_response;
    pay_request_o <= info.is_request;
    frame_len_o   <= frame_len_q;
    // A packet that is too short to be good leaves what stands here: the one before it may still be on its way from here.
    if (end_q && enough_q) desc_o <= desc;
  end
  always_comb begin
    drop_cnt_o = FailCnt[NumFail-1];
    for (int unsigned k = NumFail; k > 0; k--) if (fail_q[k-1]) drop_cnt_o = FailCnt[k-1];
  end
  assign drop_o     = fin_valid_o && (|fail_q);
  assign request_o  = fin_valid_o && !(|fail_q) && request_q;
  assign response_o = fin_valid_o && !(|fail_q) && response_q;

  rnic_rx_align #(.DataW(DataW)) u_align (
      .clk_i, .rst_i, .beat_valid_i(d_valid), .beat_idx_i(d_idx), .beat_data_i(d.data), .end_i(end_q),
      .hdr_len_i({hdr_words_q, 2'b00}), .len_i(pay_len), .en_i(pay_ok && (info.is_request || info.is_response)),
      .pay_valid_o, .pay_data_o, .pay_last_o
  );

  always_ff @(posedge clk_i) begin
    // The line is as long as the ICRC takes.
    if (!rst_i && icrc_valid) a_icrc_in_step : assert (d_valid);
  end
endmodule
