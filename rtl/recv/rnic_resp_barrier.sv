// SPDX-License-Identifier: Apache-2.0
// Barrier of the responder for an invalidated key: tells when everything is over that may have been judged before a moment: the
// packet at hand, the payload on its way, the READ engine's visit, and the frames whose payload is still to be read from the host.
// Contract: mark_i is a pulse, only while busy_o is low; busy_o is high from the next cycle on until all of that moment is over. What
// begins later does not prolong it, and nothing is held up by it. Writes count as over when the write client has accepted them: a completion
// that is handed over later is later on the link. Its bound is that of a packet, a visit and a transmitted frame: time-outs of the host.
module rnic_resp_barrier #(
    parameter int unsigned CntW = 5
) (
    input  logic            clk_i,
    input  logic            rst_i,
    input  logic            mark_i,
    output logic            busy_o,
    input  logic            packet_idle_i,   // no packet is at hand
    input  logic            pay_busy_i,      // a payload is on its way, one at a time; pay_end_i in its last cycle
    input  logic            pay_end_i,
    input  logic            read_idle_i,     // no visit of the READ engine
    input  logic [CntW-1:0] tx_count_i,      // frames to wait for: they end in order
    input  logic            tx_done_i        // one has ended; tx_count_i includes it still
);
  logic packet_q, pay_q, read_q;             // it was at hand, and is
  logic [CntW-1:0] frames_q;
  logic pay_now, packet_over, read_over;
  assign pay_now     = pay_busy_i && !pay_end_i;
  assign packet_over = packet_q && packet_idle_i;
  assign read_over   = read_q && read_idle_i;
  assign busy_o      = packet_q || pay_q || read_q || frames_q != '0;

  always_ff @(posedge clk_i) begin
    // The payload of a packet may still move when the packet is over.
    if (mark_i || packet_over) pay_q <= pay_now;
    else if (pay_end_i) pay_q <= 1'b0;
    if (mark_i) packet_q <= !packet_idle_i;
    else if (packet_over) packet_q <= 1'b0;
    // A visit hands its frame over before it ends.
    if (mark_i) read_q <= !read_idle_i;
    else if (read_over) read_q <= 1'b0;
    if ((mark_i && read_idle_i) || read_over) frames_q <= tx_count_i - CntW'(tx_done_i && tx_count_i != '0);
    else if (tx_done_i && frames_q != '0) frames_q <= frames_q - CntW'(1);
    if (rst_i) begin
      packet_q <= 1'b0;
      pay_q    <= 1'b0;
      read_q   <= 1'b0;
      frames_q <= '0;
    end
  end

  always_ff @(posedge clk_i) if (!rst_i && mark_i) a_one_at_a_time : assert (!busy_o);

`ifdef FORMAL_RESP_BARRIER
`include "rnic_resp_barrier.svh"
`endif
endmodule
