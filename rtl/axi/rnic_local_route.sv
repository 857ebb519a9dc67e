// SPDX-License-Identifier: Apache-2.0
// Parts the core's requests: those into the window of the memory on the board go to it, all others to the host; the
// completions of both come back as one stream.
// Contract: a TLP is in the window when its address is Base in the bits above LogSize. Order is kept where somebody could see
// it: a local read waits until every local write before it has been answered, a write to the host (a completion, an event, an
// interrupt: "the data are there") does so, too. Reads of the host pass local writes, as nothing connects them. Writes to the
// host before local ones are not waited for: what tells of them must lie in host memory, too. A completion keeps the way to its
// last beat; both sources take turns.
// Source: PCIe ordering of posted writes and reads (a read pushes writes before it), here across two targets.
module rnic_local_route
  import rnic_spec_pkg::*;
#(
    parameter int unsigned DataW = 64,
    parameter int unsigned LogSize = 14,
    parameter logic [63:0] Base = LOCAL_MEM_BASE
) (
    input  logic             clk_i,
    input  logic             rst_i,
    // the core
    input  logic             rq_valid_i,
    output logic             rq_ready_o,
    // (only address and kind decide the way)
    // verilator lint_off UNUSEDSIGNAL
    input  rq_hdr_t          rq_hdr_i,
    // verilator lint_on UNUSEDSIGNAL
    input  logic             rq_last_i,
    output logic             rc_valid_o,
    input  logic             rc_ready_i,
    output rc_hdr_t          rc_hdr_o,
    output logic [DataW-1:0] rc_data_o,
    output logic             rc_last_o,
    // the host
    output logic             host_rq_valid_o,
    input  logic             host_rq_ready_i,
    input  logic             host_rc_valid_i,
    output logic             host_rc_ready_o,
    input  rc_hdr_t          host_rc_hdr_i,
    input  logic [DataW-1:0] host_rc_data_i,
    input  logic             host_rc_last_i,
    // the memory on the board; header and data of requests are the core's
    output logic             wr_valid_o,
    input  logic             wr_ready_i,
    input  logic             wr_idle_i,       // every local write that was taken has been answered
    output logic             rd_valid_o,
    input  logic             rd_ready_i,
    input  logic             loc_rc_valid_i,
    output logic             loc_rc_ready_o,
    input  rc_hdr_t          loc_rc_hdr_i,
    input  logic [DataW-1:0] loc_rc_data_i,
    input  logic             loc_rc_last_i
);
  // ---------------------------------------------------------------- requests
  logic local_hit, clear, in_write_q;
  assign local_hit = rq_hdr_i.addr[63:LogSize] == Base[63:LogSize];
`ifdef RNIC_CUT_LOCAL_ORDER
  assign clear     = 1'b1;
`else
  assign clear     = wr_idle_i || in_write_q;       // a write to the host that has begun goes on
`endif
  assign wr_valid_o      = rq_valid_i && local_hit && rq_hdr_i.wr;
  assign rd_valid_o      = rq_valid_i && local_hit && !rq_hdr_i.wr && clear;
  assign host_rq_valid_o = rq_valid_i && !local_hit && (!rq_hdr_i.wr || clear);
  always_comb begin
    if (!local_hit) rq_ready_o = host_rq_ready_i && (!rq_hdr_i.wr || clear);
    else if (rq_hdr_i.wr) rq_ready_o = wr_ready_i;
    else rq_ready_o = rd_ready_i && clear;
  end
  always_ff @(posedge clk_i) begin
    if (rst_i) in_write_q <= 1'b0;
    else if (host_rq_valid_o && host_rq_ready_i) in_write_q <= rq_hdr_i.wr && !rq_last_i;
  end

  // ---------------------------------------------------------------- completions
  logic in_cpl_q, from_q, from;      // from: 1 the memory on the board
  assign from = in_cpl_q ? from_q : (from_q ? !host_rc_valid_i : loc_rc_valid_i);
  assign rc_valid_o      = from ? loc_rc_valid_i : host_rc_valid_i;
  assign rc_hdr_o        = from ? loc_rc_hdr_i : host_rc_hdr_i;
  assign rc_data_o       = from ? loc_rc_data_i : host_rc_data_i;
  assign rc_last_o       = from ? loc_rc_last_i : host_rc_last_i;
  assign loc_rc_ready_o  = from && rc_ready_i;
  assign host_rc_ready_o = !from && rc_ready_i;
  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      in_cpl_q <= 1'b0;
      from_q   <= 1'b0;
    end else if (rc_valid_o && rc_ready_i) begin
      in_cpl_q <= !rc_last_o;
      from_q   <= from;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i) a_one_target : assert ($onehot0({wr_valid_o, rd_valid_o, host_rq_valid_o}));
  end
`ifdef FORMAL_LOCAL_ROUTE
`include "rnic_local_route.svh"
`endif
endmodule
