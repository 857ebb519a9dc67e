// SPDX-License-Identifier: Apache-2.0
// Completer: takes the host's requests into BAR0 apart and answers its reads.
// Contract: a posted write is taken in every cycle (it never waits); reads wait in a FIFO of RdDepth, and only a further read
// is held back when that is full. An access is one aligned write or read of 4 or 8 bytes with all bytes enabled; any other
// write is dropped and any other read is answered "unsupported request", both counted (ur_o). Reads are answered in order; a read
// sees every write that came before it. reg_re_o asks for a value that reg_rdata_i shows two cycles later.
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
    // (reserved bits, and what only other requests use)
    // verilator lint_off UNUSEDSIGNAL
    input  cq_hdr_t          cq_hdr_i,
    // verilator lint_on UNUSEDSIGNAL
    // (an access has at most 8 bytes)
    // verilator lint_off UNUSEDSIGNAL
    input  logic [DataW-1:0] cq_data_i,
    // verilator lint_on UNUSEDSIGNAL
    input  logic             cq_last_i,
    output logic             cc_valid_o,
    input  logic             cc_ready_i,
    output cc_hdr_t          cc_hdr_o,
    output logic [DataW-1:0] cc_data_o,
    output logic             cc_last_o,
    output logic             reg_we_o,
    output logic             reg_we64_o,   // 8 bytes
    output logic [17:0]      reg_waddr_o,
    output logic [63:0]      reg_wdata_o,
    output logic             reg_re_o,
    output logic [17:0]      reg_raddr_o,
    input  logic [63:0]      reg_rdata_i,
    input  logic             reg_rok_i,    // the address exists
    output logic             ur_o
);
  typedef struct packed {
    logic        ok;
    logic        two;
    logic [17:0] addr;
    logic [9:0]  tag;
    logic [15:0] rid;
  } rd_t;

  logic in_pkt_q, one, two, shape_ok, in_map;
  assign one      = cq_hdr_i.dw_len == 11'd1 && cq_hdr_i.first_be == 4'hf && cq_hdr_i.last_be == 4'h0;
  assign two      = cq_hdr_i.dw_len == 11'd2 && cq_hdr_i.first_be == 4'hf && cq_hdr_i.last_be == 4'hf && !cq_hdr_i.addr[2];
  assign in_map   = cq_hdr_i.addr[63:18] == '0 && cq_hdr_i.bar == 2'd0;
  assign shape_ok = (one || two) && in_map && !cq_hdr_i.poisoned;

  logic rd_in_ready, rd_valid, rd_ready, first;
  rd_t rd_in, rd_out;
  assign first      = cq_valid_i && !in_pkt_q;
  assign cq_ready_o = cq_hdr_i.wr || in_pkt_q || rd_in_ready;
  assign rd_in      = '{ok: shape_ok, two: cq_hdr_i.dw_len == 11'd2, addr: cq_hdr_i.addr[17:0], tag: cq_hdr_i.tag, rid: cq_hdr_i.requester_id};

  // verilator lint_off PINCONNECTEMPTY
  rnic_fifo #(.Width($bits(rd_t)), .Depth(RdDepth)) u_reads (
      .clk_i, .rst_i,
      .in_valid_i(first && !cq_hdr_i.wr), .in_ready_o(rd_in_ready), .in_data_i(rd_in),
      .out_valid_o(rd_valid), .out_ready_i(rd_ready), .out_data_o(rd_out), .level_o()
  );
  // verilator lint_on PINCONNECTEMPTY

  always_ff @(posedge clk_i) begin
    reg_we_o    <= !rst_i && first && cq_hdr_i.wr && shape_ok;
    reg_we64_o  <= two;
    reg_waddr_o <= cq_hdr_i.addr[17:0];
    reg_wdata_o <= two ? cq_data_i[63:0] : {32'h0, cq_data_i[31:0]};
    if (rst_i) in_pkt_q <= 1'b0;
    else if (cq_valid_i && cq_ready_o) in_pkt_q <= !cq_last_i;
  end

  typedef enum logic [1:0] {
    Idle,    // no read under way
    Wait1,   // the register file looks it up
    Wait2,   // its answer is registered
    Answer   // completion offered
  } state_e;
  state_e state_q;
  logic ok_q;
  logic [63:0] data_q;

  assign reg_re_o    = state_q == Idle && rd_valid;
  assign reg_raddr_o = rd_out.addr;
  assign rd_ready    = state_q == Answer && cc_ready_i;
  assign cc_valid_o  = state_q == Answer;
  assign cc_last_o   = 1'b1;
  assign cc_data_o   = DataW'(data_q);
  always_comb begin
    cc_hdr_o              = '0;
    cc_hdr_o.lower_addr   = rd_out.addr[6:0];
    cc_hdr_o.byte_count   = rd_out.two ? 13'd8 : 13'd4;
    cc_hdr_o.status       = ok_q ? CPL_STATUS_SC : CPL_STATUS_UR;
    cc_hdr_o.dw_len       = !ok_q ? 11'd0 : rd_out.two ? 11'd2 : 11'd1;
    cc_hdr_o.tag          = rd_out.tag;
    cc_hdr_o.requester_id = rd_out.rid;
  end

  always_ff @(posedge clk_i) begin
    if (rst_i) state_q <= Idle;
    else
      unique case (state_q)
        Idle: if (rd_valid) state_q <= Wait1;
        Wait1: state_q <= Wait2;
        Wait2: begin
          state_q <= Answer;
          ok_q    <= rd_out.ok && reg_rok_i;
          data_q  <= reg_rdata_i;
        end
        default: if (cc_ready_i) state_q <= Idle;
      endcase
  end
  assign ur_o = (first && cq_hdr_i.wr && !shape_ok) || (state_q == Wait2 && !(rd_out.ok && reg_rok_i));
endmodule
