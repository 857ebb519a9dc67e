// SPDX-License-Identifier: Apache-2.0
// Receiving half of the host link: bytes to frames, frames to TLP streams and control bits (spec/link.toml).
// Contract: a frame counts when its flags, length, CRC and session are right; else it is dropped and told (bad_o). Of the numbered kinds only
// the one awaited next is kept, and only while a slot is free; whatever came of one, ack_due_o asks for an acknowledgement, and so does
// a slot that becomes free. Slots are emptied in order: a stream that is not taken holds up those behind it. A HELLO ends the session before: slots
// are empty, the numbers begin anew, the core is in reset until a CONTROL says otherwise. Nothing is ever held back on the line.
// Words stand as they came, least significant byte first. A completer request without payload has one beat like any other.
module rnic_link_rx
  import rnic_spec_pkg::*;
  import rnic_link_pkg::*;
(
    input  logic clk_i,
    input  logic rst_i,
    // line
    input  logic byte_valid_i,
    input  logic byte_err_i,
    input  logic [7:0] byte_i,
    // to the sending half
    output logic hello_o,                // a session begins
    output logic up_o,
    output logic [7:0] session_o,
    output logic [7:0] expect_o,         // number of the frame awaited next
    output logic [7:0] free_o,           // slots that are free
    output logic ack_due_o,
    output logic peer_valid_o,           // the other end tells
    output logic [7:0] peer_ack_o,
    output logic [7:0] peer_window_o,
    output logic bad_o,
    // to the core
    output logic run_o,
    output logic bus_master_o,
    output logic cq_valid_o, input logic cq_ready_i,
    output logic rc_valid_o, input logic rc_ready_i,
    output logic [127:0] hdr_o, output logic [63:0] data_o, output logic last_o
);
  // A CRC-32 over a whole frame, its own CRC included, ends with this (IEEE 802.3, reflected, not complemented).
  localparam logic [31:0] CrcResidue = 32'hdebb20e3;
  localparam int unsigned SlotW = $clog2(LINK_SLOTS);
  localparam int unsigned MaxWords = LINK_MAX_PAYLOAD / 8;
  localparam int unsigned WordW = $clog2(MaxWords + 1);

  // ---------------------------------------------------------------- bytes
  logic esc_q, bad_q, flag, take;
  logic [7:0] data;
  logic [15:0] n_q;                      // bytes since the flag
  logic [31:0] crc_q;
  logic [55:0] word_q;                   // the bytes of a word before its last
  logic [63:0] word;
  link_head_t head_q;
  assign flag = byte_valid_i && !byte_err_i && byte_i == LINK_FLAG;
  assign take = byte_valid_i && !flag && !(byte_i == LINK_ESCAPE && !byte_err_i);
  assign data = esc_q ? byte_i ^ LINK_ESCAPE_XOR : byte_i;
  assign word = {data, word_q};

  logic [15:0] at;                       // byte of the payload
  logic in_payload, we;
  assign at         = n_q - 16'(LINK_HEAD_BYTES);
  assign in_payload = n_q >= 16'(LINK_HEAD_BYTES) && at < head_q.payload_len;
  always_ff @(posedge clk_i) begin
    if (take) begin
      esc_q  <= 1'b0;
      n_q    <= (n_q == '1) ? n_q : n_q + 16'd1;
      crc_q  <= crc32_byte(crc_q, data);
      word_q <= word[63:8];
      if (n_q == 16'(LINK_HEAD_BYTES - 1)) head_q <= link_head_t'(word);
      if (byte_err_i) bad_q <= 1'b1;
    end else if (byte_valid_i && !flag) begin
      esc_q <= 1'b1;
    end
    if (flag || rst_i) begin
      esc_q <= 1'b0;
      bad_q <= 1'b0;
      n_q   <= '0;
      crc_q <= '1;
    end
  end

  // ---------------------------------------------------------------- frames
  logic whole, good, mine, hello, numbered, keep, size_ok;
  link_kind_e kind;
  logic [SlotW:0] used_q;
  logic full, pop;
  assign kind     = link_kind_e'(head_q.kind);
  assign whole    = flag && n_q != '0;
`ifdef RNIC_CUT_LINK_CRC
  assign good     = !bad_q && !esc_q && n_q == head_q.payload_len + 16'(LINK_HEAD_BYTES + 4) && n_q >= 16'(LINK_HEAD_BYTES + 4) && link_head_rsvd_ok(head_q) && size_ok;
`else
  assign good     = !bad_q && !esc_q && crc_q == CrcResidue && n_q == head_q.payload_len + 16'(LINK_HEAD_BYTES + 4) && n_q >= 16'(LINK_HEAD_BYTES + 4) && link_head_rsvd_ok(head_q) && size_ok;
`endif
  assign hello    = whole && good && kind == LINK_KIND_HELLO;
  assign mine     = whole && good && up_o && head_q.session == session_o && kind != LINK_KIND_HELLO;
  assign numbered = mine && kind inside {LINK_KIND_CONTROL, LINK_KIND_CQ, LINK_KIND_RC};
  assign full     = used_q == (SlotW + 1)'(LINK_SLOTS);
`ifdef RNIC_CUT_LINK_ORDER
  assign keep     = numbered && !full;
`else
  assign keep     = numbered && !full && head_q.seq == expect_o;
`endif
  always_comb begin
    unique case (kind)
      LINK_KIND_ACK, LINK_KIND_HELLO: size_ok = head_q.payload_len == '0;
      LINK_KIND_CONTROL: size_ok = head_q.payload_len == 16'(LINK_CONTROL_BYTES);
      LINK_KIND_CQ, LINK_KIND_RC: size_ok = head_q.payload_len >= 16'(CQ_HDR_BYTES + 8) && head_q.payload_len <= 16'(LINK_MAX_PAYLOAD) && head_q.payload_len[2:0] == '0;
      default: size_ok = 1'b0;
    endcase
  end
  assign hello_o       = hello;
  assign peer_valid_o  = mine;
  assign peer_ack_o    = head_q.ack;
  assign peer_window_o = head_q.window;
  assign bad_o         = whole && !good;
  assign ack_due_o     = numbered || pop;
  assign free_o        = 8'(LINK_SLOTS) - 8'(used_q);

  // ---------------------------------------------------------------- slots
  logic [SlotW-1:0] wr_q, rd_q;
  link_kind_e slot_kind_q[LINK_SLOTS];
  logic [WordW-1:0] slot_words_q[LINK_SLOTS];
  logic [WordW-1:0] k_q, k_next;         // word of the slot that is emptied
  logic [63:0] rdata;
  logic re;
  // What is not kept may be written all the same: the slot is not in use.
  assign we = take && in_payload && at[2:0] == 3'd7 && at < 16'(LINK_MAX_PAYLOAD) && !full;
  rnic_ram #(.Width(64), .Depth(LINK_SLOTS << WordW), .Bypass(1'b0)) u_slots (
      .clk_i, .we_i(we), .waddr_i({wr_q, WordW'(at >> 3)}), .wdata_i(word), .re_i(re), .raddr_i({rd_q, k_next}), .rdata_o(rdata)
  );
  always_ff @(posedge clk_i) begin
    if (keep) begin
      slot_kind_q[wr_q]  <= kind;
      slot_words_q[wr_q] <= WordW'(head_q.payload_len >> 3);
      wr_q               <= wr_q + SlotW'(1);
      expect_o           <= expect_o + 8'd1;
    end
    used_q <= used_q + (SlotW + 1)'(keep) - (SlotW + 1)'(pop);
    if (pop) rd_q <= rd_q + SlotW'(1);
    if (hello) begin
      up_o      <= 1'b1;
      session_o <= head_q.session;
    end
    if (rst_i) up_o <= 1'b0;
    if (rst_i || hello) begin
      wr_q     <= '0;
      rd_q     <= '0;
      used_q   <= '0;
      expect_o <= '0;
    end
  end

  // ---------------------------------------------------------------- to the core
  typedef enum logic [1:0] {
    R_IDLE,
    R_FIRST,   // first word: control bits, or half of the header
    R_HEAD,    // the other half
    R_BEAT
  } state_e;
  state_e state_q;
  link_kind_e now_kind;
  link_control_t control;
  logic beat;
  assign now_kind   = slot_kind_q[rd_q];
  assign control    = link_control_t'(rdata);
  assign cq_valid_o = state_q == R_BEAT && now_kind == LINK_KIND_CQ;
  assign rc_valid_o = state_q == R_BEAT && now_kind == LINK_KIND_RC;
  assign data_o     = rdata;
  assign last_o     = k_q == slot_words_q[rd_q] - WordW'(1);
  assign beat       = (cq_valid_o && cq_ready_i) || (rc_valid_o && rc_ready_i);
  assign pop        = (state_q == R_FIRST && now_kind == LINK_KIND_CONTROL) || (beat && last_o);
  assign re         = state_q != R_BEAT || beat;
  assign k_next     = (state_q == R_IDLE) ? '0 : k_q + WordW'(1);
  always_ff @(posedge clk_i) begin
    unique case (state_q)
      R_IDLE: if (used_q != '0) state_q <= R_FIRST;
      R_FIRST: begin
        hdr_o[63:0] <= rdata;
        state_q     <= (now_kind == LINK_KIND_CONTROL) ? R_IDLE : R_HEAD;
        if (now_kind == LINK_KIND_CONTROL) begin
          run_o        <= control.run;
          bus_master_o <= control.bus_master;
        end
      end
      R_HEAD: begin
        hdr_o[127:64] <= rdata;
        state_q       <= R_BEAT;
      end
      default: if (beat && last_o) state_q <= R_IDLE;
    endcase
    if (re) k_q <= k_next;
    if (rst_i || hello) begin
      state_q      <= R_IDLE;
      run_o        <= 1'b0;
      bus_master_o <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      a_slots : assert (used_q <= (SlotW + 1)'(LINK_SLOTS));
      if (pop) a_used : assert (used_q != '0);
    end
  end
  // verilator lint_off UNUSEDSIGNAL
  logic unused;
  assign unused = ^{control.rsvd_0, head_q.rsvd_0, head_q.rsvd_1};
  // verilator lint_on UNUSEDSIGNAL
endmodule
