// SPDX-License-Identifier: Apache-2.0
// Queue of received payloads before the scatter unit: where the bytes of READ responses go, and what is thrown away.
// With push_value_i the payload is the 8 bytes value_i (result of an atomic), and nothing is taken from pay_*.
// Contract: while room_o, pieces of one packet may come (piece_valid_i, never refused; at 64 bits three cycles apart); push_i hands the packet over: its pieces,
// or with push_discard_i none (pieces given are taken back). Every packet with payload or value needs one push, in the packets' order.
// busy_*_o: a packet of the QP (of its WQE) of query_* is not yet placed. A push with push_notify_i names its
// QP at notify_* when it is placed; notify_valid_o waits for ready.
module rnic_send_place
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned DataW = 64,
    parameter int unsigned QpIdxW = 10,
    parameter int unsigned WqeW = 8            // a QP never has more than 2^WqeW WQEs in flight
) (
    input  logic             clk_i,
    input  logic             rst_i,
    output logic             room_o,
    input  logic             piece_valid_i,
    input  logic [63:0]      piece_addr_i,
    input  pay_len_t         piece_len_i,
    input  logic             piece_last_i,
    input  logic             push_i,
    input  logic             push_discard_i,
    input  logic             push_notify_i,
    input  logic             push_value_i,
    input  logic [63:0]      value_i,
    // A table smaller than the largest uses the low bits of an index.
    // verilator lint_off UNUSEDSIGNAL
    input  qp_idx_t          push_idx_i,
    input  wqe_idx_t         push_wqe_i,
    input  qp_idx_t          query_idx_i,
    input  wqe_idx_t         query_wqe_i,
    // verilator lint_on UNUSEDSIGNAL
    output logic             busy_qp_o,
    output logic             busy_wqe_o,
    output logic             idle_o,
    output logic             notify_valid_o,
    input  logic             notify_ready_i,
    output qp_idx_t          notify_idx_o,
    // payload and its place
    input  logic             pay_valid_i,
    output logic             pay_ready_o,
    input  logic [DataW-1:0] pay_data_i,
    input  logic             pay_last_i,
    output logic             wr_valid_o,
    input  logic             wr_ready_i,
    output dma_wr_hdr_t      wr_hdr_o,
    output logic [DataW-1:0] wr_data_o,
    output logic             wr_last_o
);
  localparam int unsigned NumJob = 4;
  // Room for the 32 pieces of a packet beside as many of others; at 64 bits they are kept in parts.
  localparam int unsigned Depth = (DataW == 64) ? 256 : 64;

  typedef struct packed {
    logic [63:0] addr;
    pay_len_t    len;
    logic        last;
  } piece_t;
  piece_t piece_out;
  logic ring_room, ring_valid, ring_pop;
  rnic_send_ring #(.Width($bits(piece_t)), .PartW((DataW == 64) ? 36 : $bits(piece_t)), .Depth(Depth)) u_ring (
      .clk_i, .rst_i, .room_o(ring_room), .in_valid_i(piece_valid_i), .in_data_i({piece_addr_i, piece_len_i, piece_last_i}),
      .commit_i(push_i && !push_discard_i), .rollback_i(push_i && push_discard_i), .out_valid_o(ring_valid), .out_ready_i(ring_pop), .out_data_o(piece_out)
  );

  // Packets, oldest first. give: the next whose pieces go to the scatter unit; done: the next to be placed.
  logic [NumJob-1:0][QpIdxW-1:0] idx_q;
  logic [NumJob-1:0][WqeW-1:0] wqe_q;
  logic [NumJob-1:0] discard_q, notify_q, live_q, is_value_q;
  logic [63:0] value_q;         // of the one packet that is a value; no packet begins before it is placed
  logic value_live_q;
  logic [1:0] wr_q, give_q, done_q;
  logic [2:0] ungiven_q;
  logic cmd_valid, cmd_ready, discard_valid, discard_ready, placed, given;
  logic [NumJob-1:0] tell_q;    // placed, and to be told
  logic [1:0] tell;

  // The scatter unit may take the first beat of a packet with the last of the one before: not where a value begins or ends, whose
  // beat comes from elsewhere.
  logic value_turn;
  assign value_turn    = give_q != done_q && (is_value_q[give_q] || is_value_q[done_q]);
  assign cmd_valid     = ungiven_q != '0 && !discard_q[give_q] && ring_valid && !value_turn;
  assign ring_pop      = cmd_valid && cmd_ready;
  assign discard_valid = ungiven_q != '0 && discard_q[give_q];
  assign given         = (ring_pop && piece_out.last) || (discard_valid && discard_ready);

  // The scatter unit works on the packet that is placed next.
  logic now_value, pay_ready;
  assign now_value   = live_q[done_q] && is_value_q[done_q];
  assign pay_ready_o = pay_ready && !now_value;
  rnic_scatter #(.DataW(DataW)) u_scatter (
      .clk_i, .rst_i, .cmd_valid_i(cmd_valid), .cmd_ready_o(cmd_ready), .cmd_addr_i(piece_out.addr), .cmd_len_i(piece_out.len), .cmd_last_i(piece_out.last),
      .discard_valid_i(discard_valid), .discard_ready_o(discard_ready), .done_o(placed),
      .pay_valid_i(now_value || pay_valid_i), .pay_ready_o(pay_ready), .pay_data_i(now_value ? DataW'(value_q) : pay_data_i),
      .pay_last_i(now_value || pay_last_i), .wr_valid_o, .wr_ready_i, .wr_hdr_o, .wr_data_o, .wr_last_o
  );

  always_comb begin
    busy_qp_o  = 1'b0;
    busy_wqe_o = 1'b0;
    for (int unsigned i = 0; i < NumJob; i++) begin
      if (live_q[i] && !discard_q[i] && qp_idx_t'(idx_q[i]) == query_idx_i) begin
        busy_qp_o = 1'b1;
        if (wqe_q[i] == query_wqe_i[WqeW-1:0]) busy_wqe_o = 1'b1;
      end
    end
  end
  always_comb begin
    tell = '0;
    for (int unsigned i = NumJob; i > 0; i--) if (tell_q[i-1]) tell = 2'(i - 1);
  end
  assign room_o         = !live_q[wr_q] && !tell_q[wr_q] && ring_room && !value_live_q;
  assign idle_o         = live_q == '0;
  assign notify_valid_o = tell_q != '0;
  assign notify_idx_o   = qp_idx_t'(idx_q[tell]);

  always_ff @(posedge clk_i) begin
    if (push_i) begin
      idx_q[wr_q]     <= QpIdxW'(push_idx_i);
      wqe_q[wr_q]     <= push_wqe_i[WqeW-1:0];
      discard_q[wr_q] <= push_discard_i;
      notify_q[wr_q]  <= push_notify_i;
      is_value_q[wr_q] <= push_value_i;
    end
    if (push_i && push_value_i) value_q <= value_i;
    value_live_q <= !rst_i && ((push_i && push_value_i) || (value_live_q && !(placed && is_value_q[done_q])));
    if (rst_i) begin
      live_q        <= '0;
      wr_q          <= '0;
      give_q        <= '0;
      done_q        <= '0;
      ungiven_q     <= '0;
      tell_q        <= '0;
    end else begin
      if (push_i) begin
        live_q[wr_q] <= 1'b1;
        wr_q         <= wr_q + 2'd1;
      end
      if (given) give_q <= give_q + 2'd1;
      if (placed) begin
        live_q[done_q] <= 1'b0;
        done_q         <= done_q + 2'd1;
      end
      ungiven_q <= ungiven_q + 3'(push_i) - 3'(given);
      if (notify_valid_o && notify_ready_i) tell_q[tell] <= 1'b0;
      if (placed && notify_q[done_q]) tell_q[done_q] <= 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      if (push_i) a_room : assert (!live_q[wr_q] && !tell_q[wr_q] && !value_live_q);
      if (placed) a_placed_what_is_here : assert (live_q[done_q]);
    end
  end
endmodule
