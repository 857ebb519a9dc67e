// SPDX-License-Identifier: Apache-2.0
// Completer: takes the host's requests into BAR0 apart and answers its reads.
// Contract: an access is one aligned write or read of 4 or 8 bytes with all bytes enabled and not poisoned; any other write is
// dropped and any other read answered "unsupported request", both counted. A posted write is taken in every cycle: it never
// waits, neither for the answers to reads nor for anything inside. Reads wait in a FIFO of RdDepth, which is what the host may
// have outstanding (its non-posted credits); only a further read is held back. Reads are answered in order, one after the
// other, and see every write that came before them. Registers are addressed by aligned 8 bytes with a flag per half:
// reg_we_o takes effect in its cycle, reg_re_o gets its answer in reg_rdata_i and reg_ok_i two cycles later.
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
  typedef struct packed {
    logic                   ok;
    logic [10:0]            dw_len;
    logic [BAR0_ADDR_W-1:2] addr;
    logic [9:0]             tag;
    logic [15:0]            requester_id;
  } rd_t;
  rd_t rd;
  logic rd_room, rd_valid, rd_ready;
  // verilator lint_off PINCONNECTEMPTY
  rnic_fifo #(.Width($bits(rd_t)), .Depth(RdDepth)) u_reads (
      .clk_i, .rst_i, .in_valid_i(cq_valid_i && !in_pkt_q && !cq_hdr_i.wr), .in_ready_o(rd_room),
      .in_data_i({ok, cq_hdr_i.dw_len, cq_hdr_i.addr[BAR0_ADDR_W-1:2], cq_hdr_i.tag, cq_hdr_i.requester_id}),
      .out_valid_o(rd_valid), .out_ready_i(rd_ready), .out_data_o(rd), .level_o()
  );
  // verilator lint_on PINCONNECTEMPTY
`ifdef RNIC_CUT_MMIO_POSTED_SINKS
  assign cq_ready_o = !rd_valid;
`else
  assign cq_ready_o = rd_room || cq_hdr_i.wr || in_pkt_q;
`endif

  // ---------------------------------------------------------------- and are answered
  typedef enum logic [1:0] {
    Idle,    // the oldest read is shown to the registers
    Look1,   // they look it up
    Look2,   // their answer is here
    Answer   // completion offered
  } state_e;
  state_e state_q;
  logic good, good_q;
  logic [63:0] data_q;
  assign reg_re_o    = state_q == Idle && rd_valid;
  assign reg_raddr_o = rd.addr[BAR0_ADDR_W-1:3];
  assign good        = rd.ok && (rd.dw_len[0] ? reg_ok_i[rd.addr[2]] : |reg_ok_i);
  assign ur_rd_o     = state_q == Look2 && !good;
  assign rd_ready    = state_q == Answer && cc_ready_i;
  always_ff @(posedge clk_i) begin
    if (state_q == Look2) begin
      good_q <= good;
      data_q <= (rd.addr[2] && rd.dw_len[0]) ? 64'(reg_rdata_i[63:32]) : reg_rdata_i;
    end
    if (rst_i) state_q <= Idle;
    else
      unique case (state_q)
        Idle: if (rd_valid) state_q <= Look1;
        Look1: state_q <= Look2;
        Look2: state_q <= Answer;
        default: if (cc_ready_i) state_q <= Idle;
      endcase
  end
  assign cc_valid_o = state_q == Answer;
  assign cc_last_o  = 1'b1;
  assign cc_data_o  = DataW'(data_q);
  always_comb begin
    cc_hdr_o              = '0;
    cc_hdr_o.lower_addr   = {rd.addr[6:2], 2'b00};
    cc_hdr_o.byte_count   = {rd.dw_len, 2'b00};
    cc_hdr_o.status       = good_q ? CPL_STATUS_SC : CPL_STATUS_UR;
    cc_hdr_o.dw_len       = good_q ? rd.dw_len : '0;
    cc_hdr_o.tag          = rd.tag;
    cc_hdr_o.requester_id = rd.requester_id;
  end
endmodule
