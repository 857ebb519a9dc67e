// SPDX-License-Identifier: Apache-2.0
// Reads (MRd) of the memory on the board as AXI4 read bursts; their answers as completions with data (CplD).
// Contract: one read is one INCR burst of whole beats, ID 0, answered in order by one completion. A burst is asked for only when
// there is room for all of its completion, so that what comes is taken at once (but for one cycle after a burst that ends off its lane). A
// burst in which a beat came with an answer other than OKAY, or with RLAST where it does not belong, becomes a completion without data,
// status Completer Abort. With dead_i (the memory has not answered in its time) every read is answered so; those that were under way are
// not answered (the core's completion time-out ends them).
// idle_o: nothing is asked for that has not come.
// Source: AMBA AXI4 (IHI 0022), A3.4; PCIe base spec 2.2.9 (byte count, lower address), 2.3.1.1.
module rnic_axi_rd
  import rnic_spec_pkg::*;
#(
    parameter int unsigned DataW = 64,
    parameter int unsigned AddrW = 14,
    parameter int unsigned BufBeats = 512,           // beats of completions kept, a power of two, at least the largest read
    parameter int unsigned MaxOpen = 16
) (
    input  logic             clk_i,
    input  logic             rst_i,
    input  logic             dead_i,
    input  logic             valid_i,
    output logic             ready_o,
    // (the bits above the window and the reserved ones)
    // verilator lint_off UNUSEDSIGNAL
    input  rq_hdr_t          hdr_i,
    // verilator lint_on UNUSEDSIGNAL
    output logic             idle_o,
    output logic             arvalid_o,
    input  logic             arready_i,
    output logic [AddrW-1:0] araddr_o,
    output logic [7:0]       arlen_o,
    input  logic             rvalid_i,
    output logic             rready_o,
    input  logic [DataW-1:0] rdata_i,
    input  logic [1:0]       rresp_i,
    input  logic             rlast_i,
    output logic             rc_valid_o,
    input  logic             rc_ready_i,
    output rc_hdr_t          rc_hdr_o,
    output logic [DataW-1:0] rc_data_o,
    output logic             rc_last_o
);
  localparam int unsigned Dws = DataW / 32;
  localparam int unsigned OffW = $clog2(Dws);
  localparam int unsigned RoomW = $clog2(BufBeats + 1);
  localparam int unsigned OpenW = $clog2(MaxOpen + 1);

  // What the answer needs to know of the request.
  typedef struct packed {
    logic [9:0]      tag;
    logic [10:0]     dw_len;
    logic [12:0]     byte_count;
    logic [6:0]      lower_addr;
    logic [OffW-1:0] off;
  } ask_t;
  typedef struct packed {
    logic failed;
    ask_t ask;
  } answer_t;

  // ---------------------------------------------------------------- asking
  // Bytes of a double word that its enables leave out in front: the fourth one is enabled when no other is.
  function automatic logic [1:0] left_out(logic [2:0] be);
    return be[0] ? 2'd0 : be[1] ? 2'd1 : be[2] ? 2'd2 : 2'd3;
  endfunction
  ask_t ask, asked;
  logic [10:0] beats_bus, beats_cpl;
  logic [RoomW-1:0] room_q;                  // beats of the buffer that nobody has asked for
  logic [OpenW-1:0] open_q;                  // reads whose completion has not gone out
  // verilator lint_off UNUSEDSIGNAL
  logic [1:0][OpenW-1:0] unused_level;
  // verilator lint_on UNUSEDSIGNAL
  logic ask_ready, asked_valid, may, fire, dead_fire, answer_ready, burst_end, fail_now, now_done;
  always_comb begin
    automatic logic [2:0] behind = (hdr_i.dw_len == 11'd1) ? hdr_i.first_be[3:1] : hdr_i.last_be[3:1];
    automatic logic [1:0] skip = left_out(hdr_i.first_be[2:0]);
    automatic logic [1:0] rest = left_out({behind[0], behind[1], behind[2]});
    ask.tag        = hdr_i.tag;
    ask.dw_len     = hdr_i.dw_len;
    ask.byte_count = {hdr_i.dw_len, 2'b00} - 13'(skip) - 13'(rest);
    ask.lower_addr = {hdr_i.addr[6:2], skip};
    ask.off        = hdr_i.addr[2+:OffW];
  end
  assign beats_bus = (hdr_i.dw_len + 11'(ask.off) + 11'(Dws - 1)) >> OffW;
  assign beats_cpl = (hdr_i.dw_len + 11'(Dws - 1)) >> OffW;
  assign may       = open_q != OpenW'(MaxOpen) && 11'(room_q) >= beats_cpl;
  assign arvalid_o = valid_i && may && !dead_i;
  assign araddr_o  = AddrW'({hdr_i.addr[AddrW-1:2+OffW], (2 + OffW)'(0)});
  assign arlen_o   = 8'(beats_bus - 11'd1);
  assign fire      = arvalid_o && arready_i;
  assign ready_o   = dead_i ? answer_ready : (may && arready_i);
  assign dead_fire = dead_i && valid_i && answer_ready;

  rnic_fifo #(.Width($bits(ask_t)), .Depth(MaxOpen)) u_asks (
      .clk_i, .rst_i(rst_i || dead_i), .in_valid_i(fire), .in_ready_o(ask_ready), .in_data_i(ask),
      .out_valid_o(asked_valid), .out_ready_i(burst_end), .out_data_o(asked), .level_o(unused_level[0])
  );
  assign idle_o = !asked_valid;

  // ---------------------------------------------------------------- what comes: moved to lane 0, kept until all of it is known
  logic [DataW-1:0] held_q, moved;
  logic [10:0] come_q;                       // beats of the burst so far
  logic bad_q, bad, r_fire, r_last, whole, more, tail_q, put;
  assign rready_o = !tail_q;
  assign r_fire   = rvalid_i && rready_o && asked_valid;
  assign r_last   = 11'((come_q + 11'd1) << OffW) >= asked.dw_len + 11'(asked.off);
`ifdef RNIC_CUT_LOCAL_ERROR
  assign bad      = bad_q || rlast_i != r_last;
`else
  assign bad      = bad_q || rresp_i != 2'b00 || rlast_i != r_last;
`endif
  // A beat of the completion is whole when the beat after it has come, unless both stand in the same lanes.
  always_comb begin
    automatic logic [2*DataW-1:0] both = (asked.off == '0) ? {DataW'(0), rdata_i} : {rdata_i, held_q};
    if (tail_q) both = {DataW'(0), held_q};
    moved = DataW'(both >> (32 * 32'(asked.off)));
  end
  assign whole     = asked.off == '0 || come_q != '0;
  // Where the last beat of the bus brings more than fits behind what is held, one more beat follows.
  assign more      = asked.off != '0 && 11'(come_q << OffW) < asked.dw_len;
  assign put       = tail_q || (r_fire && whole);
  assign burst_end = tail_q || (r_fire && r_last && !more);
  assign fail_now  = tail_q ? bad_q : bad;

  logic data_ready, data_valid, data_take, commit;
  logic [DataW-1:0] data;
  assign commit = burst_end && !fail_now;
  rnic_ram_fifo #(.Width(DataW), .Depth(BufBeats)) u_data (
      .clk_i, .rst_i, .in_valid_i(put), .in_ready_o(data_ready), .in_data_i(moved), .commit_i(commit), .rollback_i(burst_end && fail_now),
      .out_valid_o(data_valid), .out_ready_i(data_take), .out_data_o(data)
  );
  always_ff @(posedge clk_i) begin
    if (r_fire) held_q <= rdata_i;
    if (rst_i || dead_i) begin
      come_q <= '0;
      bad_q  <= 1'b0;
      tail_q <= 1'b0;
    end else begin
      if (r_fire) begin
        come_q <= come_q + 11'd1;
        bad_q  <= bad;
        tail_q <= r_last && more;
      end
      if (burst_end) begin
        come_q <= '0;
        bad_q  <= 1'b0;
        tail_q <= 1'b0;
      end
    end
  end

  // ---------------------------------------------------------------- answering
  answer_t answer, now;
  logic now_valid, last_out;
  logic [10:0] out_q;                        // double words of the completion that went out
  assign answer = dead_i ? '{failed: 1'b1, ask: ask} : '{failed: fail_now, ask: asked};
  rnic_fifo #(.Width($bits(answer_t)), .Depth(MaxOpen)) u_answers (
      .clk_i, .rst_i, .in_valid_i(dead_i ? dead_fire : burst_end), .in_ready_o(answer_ready), .in_data_i(answer),
      .out_valid_o(now_valid), .out_ready_i(now_done), .out_data_o(now), .level_o(unused_level[1])
  );
  assign last_out   = now.failed || out_q + 11'(Dws) >= now.ask.dw_len;
  assign rc_valid_o = now_valid && (now.failed || data_valid);
  assign rc_data_o  = now.failed ? '0 : data;
  assign rc_last_o  = last_out;
  assign data_take  = rc_valid_o && rc_ready_i && !now.failed;
  assign now_done   = rc_valid_o && rc_ready_i && last_out;
  always_comb begin
    rc_hdr_o            = '0;
    rc_hdr_o.tag        = now.ask.tag;
    rc_hdr_o.dw_len     = now.failed ? '0 : now.ask.dw_len;
    rc_hdr_o.status     = now.failed ? CPL_STATUS_CA : CPL_STATUS_SC;
    rc_hdr_o.byte_count = now.ask.byte_count;
    rc_hdr_o.lower_addr = now.ask.lower_addr;
  end

  // Room comes back with each beat that goes out, and with what was asked for in vain.
  logic [RoomW-1:0] vain;
  assign vain = (burst_end && fail_now) ? RoomW'((asked.dw_len + 11'(Dws - 1)) >> OffW) : '0;
  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      room_q <= RoomW'(BufBeats);
      open_q <= '0;
      out_q  <= '0;
    end else begin
      room_q <= room_q - (fire ? RoomW'(beats_cpl) : '0) + RoomW'(data_take) + vain;
      open_q <= open_q + OpenW'(fire || dead_fire) - OpenW'(now_done);
      if (rc_valid_o && rc_ready_i) out_q <= last_out ? '0 : out_q + 11'(Dws);
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i && fire) a_burst : assert (ask_ready && beats_bus >= 11'd1 && beats_bus <= 11'd256 && beats_cpl <= 11'(BufBeats));
    if (!rst_i && put) a_room_was_kept : assert (data_ready);
    if (!rst_i && burst_end && !dead_i) a_answer_has_room : assert (answer_ready);
    if (!rst_i && !dead_i && rvalid_i) a_asked_for : assert (asked_valid);
  end
endmodule
