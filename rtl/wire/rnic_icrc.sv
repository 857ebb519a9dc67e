// SPDX-License-Identifier: Apache-2.0
// The invariant CRC of RoCEv2 over an IP-first packed stream (byte 0 of the IPv4 or IPv6 header in lane 0 of the first
// beat). Fields that routers change count as ones, and eight 0xff bytes stand for the LRH (IBTA annex A17.3.3).
// Check: the stream ends with the ICRC; ok_o tells whether it is right. Otherwise: the stream ends before the ICRC;
// crc_o is the word to append, its bits 7:0 first.
// Contract: a beat every cycle, never refused, also of different frames back to back; gaps anywhere. Every beat but the
// last is full; the last holds cnt_i bytes (a multiple of 4, at least 4), what stands in the lanes above is ignored.
// valid_o pulses some cycles after the last beat: 2 at 64 bits, else 3, and with Check = 0 one more per halving of the tail
// (2 at 128 bits, 4 at 512). A first beat without a last beat before it starts anew.
module rnic_icrc
  import rnic_spec_pkg::*;
  import rnic_crc_pkg::*;
#(
    parameter int unsigned DataW = 64,
    parameter bit Check = 1'b1,
    localparam int unsigned Bytes = DataW / 8,
    localparam int unsigned CntW = $clog2(Bytes + 1)
) (
    input  logic             clk_i,
    input  logic             rst_i,
    input  logic             valid_i,
    input  logic             first_i,
    input  logic             last_i,
    input  logic [DataW-1:0] data_i,
    input  logic [CntW-1:0]  cnt_i,    // bytes of the last beat
    output logic             valid_o,
    output logic             ok_o,     // Check
    output logic [31:0]      crc_o     // !Check
);
  if (DataW != 64 && DataW != 128 && DataW != 256 && DataW != 512) begin : g_width
    $fatal(1, "DataW must be 64, 128, 256 or 512");
  end
  localparam int unsigned Dwords = Bytes / 4;
  localparam int unsigned ZW = $clog2(Dwords);  // a tail lacks 0 to Dwords - 1 words

  // Bits that count as ones, by their place in the packet; the last of them is in byte 52 (BTH byte 4 behind IPv6).
  localparam int unsigned HeadBeats = (53 + Bytes - 1) / Bytes;
  localparam int unsigned HeadW = HeadBeats * DataW;
  localparam int unsigned IdxW = $clog2(HeadBeats + 1);
  // IPv4: TOS 1, TTL 8, checksum 10 and 11; UDP checksum 26 and 27; BTH byte 4 (FECN, BECN) 32
  localparam logic [HeadW-1:0] OnesV4 = (HeadW'(8'hff) << (8 * 1)) | (HeadW'(8'hff) << (8 * 8)) | (HeadW'(16'hffff) << (8 * 10)) |
                                        (HeadW'(16'hffff) << (8 * 26)) | (HeadW'(8'hff) << (8 * 32));
  // IPv6: traffic class and flow label 0 (low half) to 3, hop limit 7; UDP checksum 46 and 47; BTH byte 4 52
  localparam logic [HeadW-1:0] OnesV6 = HeadW'(32'hffff_ff0f) | (HeadW'(8'hff) << (8 * 7)) | (HeadW'(16'hffff) << (8 * 46)) |
                                        (HeadW'(8'hff) << (8 * 52));

  // Bits that count as ones
  logic [IdxW-1:0] idx_q, idx;
  logic v6_q, v6;
  logic [DataW-1:0] ones;
  assign idx = first_i ? '0 : idx_q;
  assign v6  = first_i ? data_i[7:4] == 4'd6 : v6_q;
  always_comb begin
    ones = '0;
    for (int unsigned k = 0; k < HeadBeats; k++) if (idx == IdxW'(k)) ones = v6 ? OnesV6[k*DataW+:DataW] : OnesV4[k*DataW+:DataW];
`ifdef RNIC_CUT_ICRC_MASK
    ones = '0;
`endif
  end
  always_ff @(posedge clk_i) begin
    if (valid_i) begin
      idx_q <= (idx == IdxW'(HeadBeats)) ? idx : idx + IdxW'(1);
      v6_q  <= v6;
    end
  end

  if (DataW == 64) begin : g_narrow
    // One matrix for the beat and the state, which joins its first word. A tail of four bytes stands in the upper word with the state, zeros
    // below: what is before both counts for nothing.
    logic short_in, valid_q, first_q, last_q, short_q, done_q;
    logic [63:0] placed_q, sum;
    logic [31:0] state_q, state;
    function automatic logic [31:0] step(logic [63:0] beat);
      logic [63+CRC_TERMS_64:0] x;
      x = (64 + CRC_TERMS_64)'(beat);
      for (int unsigned i = 0; i < CRC_TERMS_64; i++) x[64+i] = ^(x & CRC_TERM_64[i]);
      for (int unsigned b = 0; b < 32; b++) step[b] = ^(x & CRC_ROW_64[b]);
    endfunction
    assign short_in = last_i && cnt_i == CntW'(4);
    assign state    = first_q ? ICRC_SEED : state_q;
    assign sum      = placed_q ^ (short_q ? {state, 32'd0} : {32'd0, state});
    always_ff @(posedge clk_i) begin
      valid_q  <= valid_i && !rst_i;
      first_q  <= first_i;
      last_q   <= last_i;
      short_q  <= short_in;
      placed_q <= short_in ? {data_i[31:0] | ones[31:0], 32'd0} : data_i | ones;
      if (valid_q) state_q <= step(sum);
      done_q <= valid_q && last_q && !rst_i;
    end
    assign valid_o = done_q;
    assign ok_o    = Check && state_q == CRC_RESIDUE[0];
    assign crc_o   = ~state_q;
  end else begin : g_wide
    // Stage 1: masked beat, zeros above the tail
    logic [DataW-1:0] masked;
    always_comb begin
      masked = '0;
      for (int unsigned d = 0; d < Dwords; d++)
        if (!last_i || CntW'(4 * d) < cnt_i) masked[32*d+:32] = data_i[32*d+:32] | ones[32*d+:32];
    end

    logic s1_valid_q, s1_first_q, s1_last_q;
    logic [ZW-1:0] s1_z_q;
    logic [DataW-1:0] s1_data_q;
    always_ff @(posedge clk_i) begin
      s1_valid_q <= valid_i && !rst_i;
      s1_first_q <= first_i;
      s1_last_q  <= last_i;
      s1_z_q     <= ZW'(Dwords - 32'(cnt_i >> 2));
      s1_data_q  <= masked;
    end

    // Stage 2: what the beat adds; stage 3: the state
    logic [31:0] data_part, state_part, seed_part, part_q, state_q;
    logic s2_valid_q, s2_first_q, s2_last_q, s3_valid_q;
    logic [ZW-1:0] s2_z_q, s3_z_q;
    if (DataW == 128) begin : g_128
      for (genvar b = 0; b < 32; b++) begin : g_row
        assign data_part[b]  = ^(s1_data_q & CRC_DATA_128[b]);
        assign state_part[b] = ^(state_q & CRC_STATE_128[b]);
      end
      assign seed_part = CRC_SEED_128;
    end else if (DataW == 256) begin : g_256
      for (genvar b = 0; b < 32; b++) begin : g_row
        assign data_part[b]  = ^(s1_data_q & CRC_DATA_256[b]);
        assign state_part[b] = ^(state_q & CRC_STATE_256[b]);
      end
      assign seed_part = CRC_SEED_256;
    end else begin : g_512
      for (genvar b = 0; b < 32; b++) begin : g_row
        assign data_part[b]  = ^(s1_data_q & CRC_DATA_512[b]);
        assign state_part[b] = ^(state_q & CRC_STATE_512[b]);
      end
      assign seed_part = CRC_SEED_512;
    end

    always_ff @(posedge clk_i) begin
      s2_valid_q <= s1_valid_q && !rst_i;
      s2_first_q <= s1_first_q;
      s2_last_q  <= s1_last_q;
      s2_z_q     <= s1_z_q;
      part_q     <= data_part;
      s3_valid_q <= s2_valid_q && s2_last_q && !rst_i;
      s3_z_q     <= s2_z_q;
      if (s2_valid_q) state_q <= (s2_first_q ? seed_part : state_part) ^ part_q;
    end

    if (Check) begin : g_check
      // The state after a right ICRC and z zero words is a constant.
      assign valid_o = s3_valid_q;
      assign ok_o    = state_q == CRC_RESIDUE[4'(s3_z_q)];
      assign crc_o   = '0;
    end else begin : g_make
      // The tail was filled up with zeros: take them back, half as many in each stage.
      localparam logic [3:0][31:0][31:0] Back = {CRC_BACK_8, CRC_BACK_4, CRC_BACK_2, CRC_BACK_1};
      logic [ZW:0] valid;
      logic [ZW:0][31:0] state;
      // The last stage has nothing left to take back.
      // verilator lint_off UNUSEDSIGNAL
      logic [ZW:0][ZW-1:0] z;
      // verilator lint_on UNUSEDSIGNAL
      assign valid[ZW] = s3_valid_q;
      assign state[ZW] = state_q;
      assign z[ZW]     = s3_z_q;
      for (genvar k = 0; k < ZW; k++) begin : g_back
        logic [31:0] back;
        for (genvar b = 0; b < 32; b++) begin : g_row
          assign back[b] = ^(state[k+1] & Back[k][b]);
        end
        always_ff @(posedge clk_i) begin
          valid[k] <= valid[k+1] && !rst_i;
          state[k] <= z[k+1][k] ? back : state[k+1];
          z[k]     <= z[k+1];
        end
      end
      assign valid_o = valid[0];
      assign ok_o    = 1'b0;
      assign crc_o   = ~state[0];
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i && valid_i && last_i) a_tail : assert (cnt_i != '0 && cnt_i[1:0] == 2'b00 && cnt_i <= CntW'(Bytes));
  end
endmodule
