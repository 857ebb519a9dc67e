// SPDX-License-Identifier: Apache-2.0
// Sending half of the host link: the core's TLP streams to frames to bytes (spec/link.toml).
// Contract: a TLP is taken while a slot is free, whole, completions before requests; it stays in its slot until the other end has
// acknowledged it. Frames go out in order, as many as the other end has room for; when RetryCycles pass without an acknowledgement of
// something new, everything from the oldest on goes out again, and one frame even when there is no room: its acknowledgement tells of room.
// An acknowledgement that is due goes with the next frame, or by itself when there is none. clear_i begins a session: slots are empty, the numbers begin
// anew, a WELCOME goes first. A TLP that is longer than a frame is cut (the host finds that it is shorter than it says).
module rnic_link_tx
  import rnic_spec_pkg::*;
  import rnic_link_pkg::*;
#(
    parameter int unsigned RetryCycles = 2_500_000,
    parameter int unsigned ClkPeriodPs = 8000
) (
    input  logic clk_i,
    input  logic rst_i,
    // from the receiving half
    input  logic clear_i,
    input  logic up_i,
    input  logic [7:0] session_i,
    input  logic [7:0] expect_i,
    input  logic [7:0] free_i,
    input  logic ack_due_i,
    input  logic peer_valid_i,
    input  logic [7:0] peer_ack_i,
    input  logic [7:0] peer_window_i,
    // from the core
    input  logic run_i,
    input  logic cc_valid_i, output logic cc_ready_o, input logic [127:0] cc_hdr_i, input logic [63:0] cc_data_i, input logic cc_last_i,
    input  logic rq_valid_i, output logic rq_ready_o, input logic [127:0] rq_hdr_i, input logic [63:0] rq_data_i, input logic rq_last_i,
    // line
    output logic byte_valid_o,
    input  logic byte_ready_i,
    output logic [7:0] byte_o
);
  localparam int unsigned SlotW = $clog2(LINK_SLOTS);
  localparam int unsigned MaxWords = LINK_MAX_PAYLOAD / 8;
  localparam int unsigned WordW = $clog2(MaxWords + 1);
  localparam int unsigned TimerW = $clog2(RetryCycles + 1);

  // ---------------------------------------------------------------- slots: numbers of frames, of which the low bits are the slot
  logic [7:0] una_q, next_q, tail_q, limit_q;   // oldest not acknowledged; next to go out; next to be filled; end of the room
  logic room, fill_done;
  logic slot_rq_q[LINK_SLOTS];
  logic [WordW-1:0] slot_words_q[LINK_SLOTS];
  assign room = 8'(tail_q - una_q) < 8'(LINK_SLOTS);

  typedef enum logic [1:0] {
    F_IDLE,
    F_LOW,     // halves of the header
    F_HIGH,
    F_BEAT
  } fill_e;
  fill_e fill_q;
  logic rq_q;                            // the stream that is taken
  logic [WordW-1:0] k_q;
  logic we, beat, cut;
  logic [63:0] wdata;
  assign cc_ready_o = fill_q == F_BEAT && !rq_q;
  assign rq_ready_o = fill_q == F_BEAT && rq_q;
  assign beat       = (cc_valid_i && cc_ready_o) || (rq_valid_i && rq_ready_o);
  assign cut        = k_q == WordW'(MaxWords);
  assign fill_done  = beat && (rq_q ? rq_last_i : cc_last_i);
  assign we         = fill_q == F_LOW || fill_q == F_HIGH || (beat && !cut);
  always_comb begin
    unique case (fill_q)
      F_LOW: wdata = rq_q ? rq_hdr_i[63:0] : cc_hdr_i[63:0];
      F_HIGH: wdata = rq_q ? rq_hdr_i[127:64] : cc_hdr_i[127:64];
      default: wdata = rq_q ? rq_data_i : cc_data_i;
    endcase
  end
  always_ff @(posedge clk_i) begin
    unique case (fill_q)
      F_IDLE: begin
        k_q  <= '0;
        rq_q <= !cc_valid_i;
        if (run_i && room && (cc_valid_i || rq_valid_i)) fill_q <= F_LOW;
      end
      F_LOW: fill_q <= F_HIGH;
      F_HIGH: fill_q <= F_BEAT;
      default: if (fill_done) fill_q <= F_IDLE;
    endcase
    if (we) k_q <= k_q + WordW'(1);
    if (fill_done) begin
      slot_rq_q[tail_q[SlotW-1:0]]    <= rq_q;
      slot_words_q[tail_q[SlotW-1:0]] <= cut ? k_q : k_q + WordW'(1);
      tail_q                          <= tail_q + 8'd1;
    end
    if (rst_i || clear_i || !run_i) fill_q <= F_IDLE;
    if (rst_i || clear_i) tail_q <= '0;
  end

  // ---------------------------------------------------------------- what was acknowledged, and when to send again
  logic [TimerW-1:0] timer_q;
  logic late, news, probe_q;
  logic [7:0] got;                       // frames newly acknowledged
  assign got  = peer_ack_i - una_q;
`ifdef RNIC_CUT_LINK_RETRY
  assign late = 1'b0;
`else
  assign late = timer_q == '0;
`endif
  assign news = peer_valid_i && got <= 8'(tail_q - una_q);

  // ---------------------------------------------------------------- frames to bytes
  typedef enum logic [2:0] {
    T_IDLE,
    T_OPEN,    // flag
    T_HEAD,
    T_BODY,
    T_CRC,
    T_CLOSE    // flag
  } send_e;
  send_e send_q;
  logic welcome_q, ack_due_q, sendable, pick_data, pick, go;
  link_head_t head_q, head_d;
  logic is_welcome_q;
  logic [SlotW-1:0] slot_q;
  logic [WordW+2:0] at_q;                // byte of head, body or CRC
  logic [31:0] crc_q;
  logic esc_q;                           // the escape of this byte is out
  logic [63:0] rdata, body;
  logic [7:0] raw;
  logic special, taken, step;
  logic settle_q;                        // the word of the next byte is being read
  link_welcome_t welcome;
  assign welcome   = '{clk_period_ps: 32'(ClkPeriodPs), magic: LINK_MAGIC};
  // Within the room of the other end, or the one frame that asks for it.
  assign sendable  = next_q != tail_q && (8'(next_q - una_q) < 8'(limit_q - una_q) || probe_q);
  assign pick_data = send_q == T_IDLE && !welcome_q && sendable;
  assign pick      = send_q == T_IDLE && up_i && (welcome_q || sendable || ack_due_q);
  always_comb begin
    head_d         = '0;
    head_d.kind    = welcome_q ? LINK_KIND_WELCOME : !sendable ? LINK_KIND_ACK : slot_rq_q[next_q[SlotW-1:0]] ? LINK_KIND_RQ : LINK_KIND_CC;
    head_d.session = session_i;
    head_d.seq     = pick_data ? next_q : '0;
    head_d.ack     = expect_i;
    head_d.window  = free_i;
    head_d.payload_len     = welcome_q ? 16'(LINK_WELCOME_BYTES) : !sendable ? '0 : 16'(slot_words_q[next_q[SlotW-1:0]]) << 3;
  end

  always_ff @(posedge clk_i) begin
    // Progress restarts the timer, and so does having nothing to wait for.
    timer_q <= (una_q == tail_q || late || (news && got != '0)) ? TimerW'(RetryCycles) : timer_q - TimerW'(1);
    if (pick_data && pick) begin
      next_q  <= next_q + 8'd1;
      probe_q <= 1'b0;
    end
    if (late) begin
      next_q  <= una_q;
      probe_q <= 1'b1;
    end
    if (news) begin
      una_q   <= peer_ack_i;
      limit_q <= peer_ack_i + peer_window_i;
      // What goes out again may have arrived after all.
      if (got > 8'(next_q - una_q)) next_q <= peer_ack_i;
      if (late) next_q <= peer_ack_i;
    end
    if (rst_i || clear_i) begin
      una_q   <= '0;
      next_q  <= '0;
      limit_q <= 8'(LINK_SLOTS);
      probe_q <= 1'b0;
      timer_q <= TimerW'(RetryCycles);
    end
    if (pick) ack_due_q <= 1'b0;
    if (ack_due_i) ack_due_q <= 1'b1;
    if (pick && welcome_q) welcome_q <= 1'b0;
    if (clear_i) welcome_q <= 1'b1;
    if (rst_i) {ack_due_q, welcome_q} <= '0;
  end

  rnic_ram #(.Width(64), .Depth(LINK_SLOTS << WordW), .Bypass(1'b0)) u_slots (
      .clk_i, .we_i(we), .waddr_i({tail_q[SlotW-1:0], k_q}), .wdata_i(wdata), .re_i(1'b1), .raddr_i({slot_q, WordW'(at_q >> 3)}), .rdata_o(rdata)
  );
  // The word of a byte is read a cycle before: a byte is never taken in the cycle after the one before it, a UART being slower.
  assign body = is_welcome_q ? welcome : rdata;
  always_comb begin
    unique case (send_q)
      T_HEAD: raw = 8'(64'(head_q) >> {at_q[2:0], 3'd0});
      T_BODY: raw = 8'(body >> {at_q[2:0], 3'd0});
      T_CRC: raw = 8'(~crc_q >> {at_q[1:0], 3'd0});
      default: raw = LINK_FLAG;
    endcase
  end
  assign special      = (raw == LINK_FLAG || raw == LINK_ESCAPE) && send_q inside {T_HEAD, T_BODY, T_CRC};
  assign go           = send_q != T_IDLE && !settle_q;
  assign byte_valid_o = go;
`ifdef RNIC_CUT_LINK_ESCAPE
  assign byte_o       = raw;
  assign step         = byte_valid_o && byte_ready_i;
`else
  assign byte_o       = !special ? raw : esc_q ? raw ^ LINK_ESCAPE_XOR : LINK_ESCAPE;
  assign step         = byte_valid_o && byte_ready_i && (!special || esc_q);
`endif
  assign taken        = byte_valid_o && byte_ready_i;
  always_ff @(posedge clk_i) begin
    settle_q <= pick || step;
    if (taken) esc_q <= special && !esc_q;
    if (pick) begin
      head_q       <= head_d;
      is_welcome_q <= welcome_q;
      slot_q       <= next_q[SlotW-1:0];
      send_q       <= T_OPEN;
      at_q         <= '0;
      crc_q        <= '1;
      esc_q        <= 1'b0;
    end else if (step) begin
      at_q <= at_q + (WordW + 3)'(1);
      if (send_q == T_HEAD || send_q == T_BODY) crc_q <= crc32_byte(crc_q, raw);
      unique case (send_q)
        T_OPEN: begin
          send_q <= T_HEAD;
          at_q   <= '0;
        end
        T_HEAD:
        if (at_q == (WordW + 3)'(LINK_HEAD_BYTES - 1)) begin
          send_q <= (head_q.payload_len == '0) ? T_CRC : T_BODY;
          at_q   <= '0;
        end
        T_BODY:
        if (16'(at_q) == head_q.payload_len - 16'd1) begin
          send_q <= T_CRC;
          at_q   <= '0;
        end
        T_CRC: if (at_q == (WordW + 3)'(3)) send_q <= T_CLOSE;
        default: send_q <= T_IDLE;
      endcase
    end
    // A session that ends in the middle of a frame leaves a frame that is cut: the flag before the WELCOME ends it.
    if (rst_i || clear_i) begin
      send_q   <= T_IDLE;
      settle_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      a_order : assert (8'(next_q - una_q) <= 8'(tail_q - una_q) && 8'(tail_q - una_q) <= 8'(LINK_SLOTS));
    end
  end
endmodule
