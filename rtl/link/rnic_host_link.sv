// SPDX-License-Identifier: Apache-2.0
// The host link of a board without PCIe: the core's TLP streams (64 bits) and the control bits of its function, over a serial line
// (spec/link.toml). The host process is the root complex.
// Contract: until a host has begun a session and let the core run, core_rst_o is high. A TLP that was taken arrives once and in order in its session, whatever the
// line loses or changes, or never when the session ends; completions to the core never wait for requests of the core. Nothing here waits for the host but
// with a bound of its own on the host's side. Asynchronous: rx_i alone.
module rnic_host_link
  import rnic_spec_pkg::*;
#(
    parameter int unsigned Div = 108,                 // clock cycles a bit
    parameter int unsigned RetryCycles = 2_500_000,   // until what was not acknowledged is sent again
    parameter int unsigned ClkPeriodPs = 8000
) (
    input  logic clk_i,
    input  logic rst_i,
    input  logic rx_i,
    output logic tx_o,
    output logic up_o,             // a session has begun
    output logic bad_frame_o,      // pulse: something came that was no frame
    // to the core
    output logic core_rst_o,
    output logic bus_master_en_o,
    output logic cq_valid_o, input  logic cq_ready_i, output logic [127:0] cq_hdr_o, output logic [63:0] cq_data_o, output logic cq_last_o,
    input  logic cc_valid_i, output logic cc_ready_o, input  logic [127:0] cc_hdr_i, input  logic [63:0] cc_data_i, input  logic cc_last_i,
    input  logic rq_valid_i, output logic rq_ready_o, input  logic [127:0] rq_hdr_i, input  logic [63:0] rq_data_i, input  logic rq_last_i,
    output logic rc_valid_o, input  logic rc_ready_i, output logic [127:0] rc_hdr_o, output logic [63:0] rc_data_o, output logic rc_last_o
);
  logic in_valid, in_err, out_valid, out_ready;
  logic [7:0] in_byte, out_byte, session, expect_seq, free, peer_ack, peer_window;
  logic hello, ack_due, peer_valid, run, run_q, last;
  logic [127:0] hdr;
  logic [63:0] data;

  rnic_uart_rx #(.Div(Div)) u_uart_rx (.clk_i, .rst_i, .rx_i, .valid_o(in_valid), .err_o(in_err), .data_o(in_byte));
  rnic_uart_tx #(.Div(Div)) u_uart_tx (.clk_i, .rst_i, .valid_i(out_valid), .ready_o(out_ready), .data_i(out_byte), .tx_o);
  rnic_link_rx u_rx (
      .clk_i, .rst_i, .byte_valid_i(in_valid), .byte_err_i(in_err), .byte_i(in_byte),
      .hello_o(hello), .up_o, .session_o(session), .expect_o(expect_seq), .free_o(free), .ack_due_o(ack_due),
      .peer_valid_o(peer_valid), .peer_ack_o(peer_ack), .peer_window_o(peer_window), .bad_o(bad_frame_o),
      .run_o(run), .bus_master_o(bus_master_en_o), .cq_valid_o, .cq_ready_i, .rc_valid_o, .rc_ready_i, .hdr_o(hdr), .data_o(data), .last_o(last)
  );
  rnic_link_tx #(.RetryCycles(RetryCycles), .ClkPeriodPs(ClkPeriodPs)) u_tx (
      .clk_i, .rst_i, .clear_i(hello), .up_i(up_o), .session_i(session), .expect_i(expect_seq), .free_i(free), .ack_due_i(ack_due),
      .peer_valid_i(peer_valid), .peer_ack_i(peer_ack), .peer_window_i(peer_window), .run_i(run_q),
      .cc_valid_i, .cc_ready_o, .cc_hdr_i, .cc_data_i, .cc_last_i, .rq_valid_i, .rq_ready_o, .rq_hdr_i, .rq_data_i, .rq_last_i,
      .byte_valid_o(out_valid), .byte_ready_i(out_ready), .byte_o(out_byte)
  );
  // What the core offers while it is in reset is nothing.
  always_ff @(posedge clk_i) begin
    run_q      <= run && !rst_i;
    core_rst_o <= rst_i || !run;
  end
  assign cq_hdr_o  = hdr;
  assign rc_hdr_o  = hdr;
  assign cq_data_o = data;
  assign rc_data_o = data;
  assign cq_last_o = last;
  assign rc_last_o = last;
endmodule
