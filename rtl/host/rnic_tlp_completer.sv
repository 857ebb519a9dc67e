// SPDX-License-Identifier: Apache-2.0
// Completer: takes the host's requests into BAR0 apart and answers its reads.
// Contract: an access is one aligned write or read of 4 or 8 bytes with all bytes enabled and not poisoned; any other write is
// dropped and any other read answered "unsupported request", both counted. A posted write is taken in every cycle: it never
// waits, neither for the answers to reads nor for anything inside. Reads wait in FIFOs of RdDepth, which is what the host may
// have outstanding (its non-posted credits); only a further read is held back. Reads are answered in order, one after the
// other, and see every write that came before them. Registers are addressed by aligned 8 bytes with a flag per half:
// reg_we_o takes effect in its cycle, reg_re_o stays high and gets its answer in reg_rdata_i and reg_ok_i in its fifth cycle.
module rnic_tlp_completer
  import rnic_spec_pkg::*;
#(
    parameter int unsigned DataW = 64,
    parameter int unsigned RdDepth = 32
) (
    input  logic             clk_i,
    input  logic             rst_i,
    input  logic             cq_valid_i,
    output logic             cq_ready_o,
    // (reserved bits)
    // verilator lint_off UNUSEDSIGNAL
    input  cq_hdr_t          cq_hdr_i,
    // (an access has at most 8 bytes)
    input  logic [DataW-1:0] cq_data_i,
    // verilator lint_on UNUSEDSIGNAL
    input  logic             cq_last_i,
    output logic             cc_valid_o,
    input  logic             cc_ready_i,
    output cc_hdr_t          cc_hdr_o,
    output logic [DataW-1:0] cc_data_o,
    output logic             cc_last_o,
    output logic [1:0]       reg_we_o,     // per half
    output logic [BAR0_ADDR_W-1:3] reg_waddr_o,
    output logic [63:0]      reg_wdata_o,
    output logic             reg_re_o,
    output logic [BAR0_ADDR_W-1:3] reg_raddr_o,
    input  logic [63:0]      reg_rdata_i,
    input  logic [1:0]       reg_ok_i,     // the half exists
    output logic             ur_wr_o,      // a write was dropped (never in the cycle of a reg_we_o)
    output logic             ur_rd_o       // a read was refused
);
  // ---------------------------------------------------------------- what it is
  logic in_pkt_q, first, one, two, in_bar, ok;
  assign first  = cq_valid_i && cq_ready_o && !in_pkt_q;
  assign one    = cq_hdr_i.dw_len == 11'd1 && cq_hdr_i.first_be == 4'hf && cq_hdr_i.last_be == 4'h0;
  assign two    = cq_hdr_i.dw_len == 11'd2 && cq_hdr_i.first_be == 4'hf && cq_hdr_i.last_be == 4'hf && !cq_hdr_i.addr[2];
  assign in_bar = cq_hdr_i.addr[63:BAR0_ADDR_W] == '0 && cq_hdr_i.bar == 2'd0;
`ifdef RNIC_CUT_MMIO_CHECK
  assign ok     = in_bar;
`else
  assign ok     = (one || two) && in_bar && !cq_hdr_i.poisoned;
`endif

  always_ff @(posedge clk_i) begin
    reg_waddr_o <= cq_hdr_i.addr[BAR0_ADDR_W-1:3];
    reg_wdata_o <= two ? cq_data_i[63:0] : {2{cq_data_i[31:0]}};
    if (rst_i) begin
      in_pkt_q <= 1'b0;
      reg_we_o <= '0;
      ur_wr_o  <= 1'b0;
    end else begin
      if (cq_valid_i && cq_ready_o) in_pkt_q <= !cq_last_i;
      reg_we_o <= (first && cq_hdr_i.wr && ok) ? (two ? 2'b11 : cq_hdr_i.addr[2] ? 2'b10 : 2'b01) : 2'b00;
      ur_wr_o  <= first && cq_hdr_i.wr && !ok;
    end
  end

  // ---------------------------------------------------------------- reads wait
  // One of no access is answered with its length, and only the low bits of its address.
  typedef struct packed {
    logic        ok;
    logic        two;        // of an access: 8 bytes
    logic [10:0] upper;      // of an access: address; otherwise double words
    logic [6:2]  lower;
    logic [9:0]  tag;
    logic [15:0] requester_id;
  } rd_t;
  rd_t rd_in, rd_mid, rd;
  logic rd_room, mid_valid, mid_ready, rd_valid, rd_ready;
  if (BAR0_ADDR_W > 18) begin : g_addr
    $fatal(1, "%m: an address has no room");
  end
  assign rd_in = '{
    ok: ok, two: two, upper: ok ? 11'(cq_hdr_i.addr[BAR0_ADDR_W-1:7]) : cq_hdr_i.dw_len, lower: cq_hdr_i.addr[6:2],
    tag: cq_hdr_i.tag, requester_id: cq_hdr_i.requester_id
  };
  // Two in a row, of the depth that distributed RAM has: no choice between two memories.
  // verilator lint_off PINCONNECTEMPTY
  rnic_fifo #(.Width($bits(rd_t)), .Depth(RdDepth / 2)) u_reads (
      .clk_i, .rst_i, .in_valid_i(cq_valid_i && !in_pkt_q && !cq_hdr_i.wr), .in_ready_o(rd_room), .in_data_i(rd_in),
      .out_valid_o(mid_valid), .out_ready_i(mid_ready), .out_data_o(rd_mid), .level_o()
  );
  rnic_fifo #(.Width($bits(rd_t)), .Depth(RdDepth / 2)) u_older (
      .clk_i, .rst_i, .in_valid_i(mid_valid), .in_ready_o(mid_ready), .in_data_i(rd_mid),
      .out_valid_o(rd_valid), .out_ready_i(rd_ready), .out_data_o(rd), .level_o()
  );
  // verilator lint_on PINCONNECTEMPTY
`ifdef RNIC_CUT_MMIO_POSTED_SINKS
  assign cq_ready_o = !rd_valid;
`else
  assign cq_ready_o = rd_room || cq_hdr_i.wr || in_pkt_q;
`endif

  // ---------------------------------------------------------------- and are answered
  // The oldest read is shown to the registers, which look it up; then its completion is offered.
  localparam logic [2:0] LookEnd = 3'd4, Answer = 3'd5;
  logic [2:0] state_q;
  logic good, good_q;
  logic [63:0] data_q;
  assign reg_re_o    = rd_valid && state_q != Answer;
  assign reg_raddr_o = {rd.upper[BAR0_ADDR_W-8:0], rd.lower[6:3]};
  assign good        = rd.ok && (rd.two ? |reg_ok_i : reg_ok_i[rd.lower[2]]);
  assign ur_rd_o     = state_q == LookEnd && !good;
  assign rd_ready    = state_q == Answer && cc_ready_i;
  always_ff @(posedge clk_i) begin
    if (state_q == LookEnd) begin
      good_q <= good;
      data_q <= {reg_rdata_i[63:32], (rd.lower[2] && !rd.two) ? reg_rdata_i[63:32] : reg_rdata_i[31:0]};
    end
    if (rst_i || rd_ready) state_q <= '0;
    else if (reg_re_o) state_q <= state_q + 3'd1;
  end
  assign cc_valid_o = state_q == Answer;
  assign cc_last_o  = 1'b1;
  assign cc_data_o  = DataW'(data_q);
  logic [10:0] dw_len;
  assign dw_len = rd.ok ? (rd.two ? 11'd2 : 11'd1) : rd.upper;
  always_comb begin
    cc_hdr_o              = '0;
    cc_hdr_o.lower_addr   = {rd.lower, 2'b00};
    cc_hdr_o.byte_count   = {dw_len, 2'b00};
    cc_hdr_o.status       = good_q ? CPL_STATUS_SC : CPL_STATUS_UR;
    cc_hdr_o.dw_len       = !good_q ? '0 : rd.two ? 11'd2 : 11'd1;
    cc_hdr_o.tag          = rd.tag;
    cc_hdr_o.requester_id = rd.requester_id;
  end
endmodule
