// SPDX-License-Identifier: Apache-2.0
// Store-and-forward buffer of received packets: payload and descriptor become visible when the packet is committed.
// Contract: pay_valid_i is never refused. A packet's beats come before end_i or with it, the next packet's later;
// end_i && commit_i makes the packet visible, end_i alone forgets it. Without room for all of it a packet is dropped
// whole: overflow_o is high in the cycle of its commit. Out: descriptors and payload beats in the packets' order, each
// side held until its ready. A packet is visible 2 cycles after its commit, payload not later than its descriptor.
module rnic_rx_buf
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned DataW = 64,
    parameter int unsigned BufBytes = 8192,   // payload, a power of two
    parameter int unsigned NumDesc = 64,      // packets, a power of two
    parameter bit Responses = 1'b0,           // fields that only requests have are not stored
    parameter bit Ipv6 = 1'b1                 // else every source address is an IPv4 one
) (
    input  logic             clk_i,
    input  logic             rst_i,
    input  logic             pay_valid_i,
    input  logic [DataW-1:0] pay_data_i,
    input  logic             pay_last_i,
    input  logic             end_i,
    input  logic             commit_i,
    // Not all of it is stored in either kind.
    /* verilator lint_off UNUSEDSIGNAL */
    input  rx_desc_t         desc_i,
    /* verilator lint_on UNUSEDSIGNAL */
    output logic             overflow_o,
    output logic             desc_valid_o,
    input  logic             desc_ready_i,
    output rx_desc_t         desc_o,
    output logic             pay_valid_o,
    input  logic             pay_ready_i,
    output logic [DataW-1:0] pay_data_o,
    output logic             pay_last_o
);
  localparam int unsigned Beats = BufBytes * 8 / DataW;

  logic pay_room, desc_room, lost_q, lost, take;
`ifdef RNIC_CUT_RX_OVERFLOW
  assign lost = 1'b0;
`else
  assign lost = lost_q || (pay_valid_i && !pay_room);
`endif
  assign take       = end_i && commit_i && !lost && desc_room;
  assign overflow_o = end_i && commit_i && !take;
  always_ff @(posedge clk_i) lost_q <= !rst_i && lost && !end_i;

  rnic_ram_fifo #(.Width(DataW + 1), .Depth(Beats)) u_pay (
      .clk_i, .rst_i, .in_valid_i(pay_valid_i), .in_ready_o(pay_room), .in_data_i({pay_last_i, pay_data_i}),
      .commit_i(take), .rollback_i(end_i && !take),
      .out_valid_o(pay_valid_o), .out_ready_i(pay_ready_i), .out_data_o({pay_last_o, pay_data_o})
  );

  // Of an IPv4-mapped GID the last four bytes are stored.
  localparam int unsigned SrcW = Ipv6 ? 128 : 32;

  // What a descriptor needs. An atomic request shares its place with the fields of the others.
  typedef struct packed {
    logic [7:0]  opcode;
    logic        se;
    logic        ack_req;
    logic [1:0]  pad;
    logic [15:0] pkey;
    qpn_t        dest_qpn;
    psn_t        psn;
    logic [1:0]  ecn;
    logic [SrcW-1:0] src;
    logic [NUM_GID-1:0] gid_hit;
    pay_len_t    payload_len;
  } common_t;
  common_t common, common_out;
  assign common = '{opcode: desc_i.opcode, se: desc_i.se, ack_req: desc_i.ack_req, pad: desc_i.pad, pkey: desc_i.pkey,
                    dest_qpn: desc_i.dest_qpn, psn: desc_i.psn, ecn: desc_i.ecn, src: desc_i.sgid[127-:SrcW],
                    gid_hit: desc_i.gid_hit,
                    payload_len: desc_i.payload_len};
  // Zero where a field is not stored.
  function automatic rx_desc_t base(common_t c);
    rx_desc_t d;
    d = '0;
    d.opcode = c.opcode;
    d.se = c.se;
    d.ack_req = c.ack_req;
    d.pad = c.pad;
    d.pkey = c.pkey;
    d.dest_qpn = c.dest_qpn;
    d.psn = c.psn;
    d.ecn = c.ecn;
    d.sgid = {32'd0, 16'hffff, 80'd0};
    d.sgid[127-:SrcW] = c.src;
    d.gid_hit = c.gid_hit;
    d.payload_len = c.payload_len;
    return d;
  endfunction

  if (Responses) begin : g_responses
    typedef struct packed {
      common_t     common;
      logic [63:0] swap_add;
      logic [7:0]  syndrome;
      logic [23:0] msn;
    } word_t;
    word_t in, out;
    assign in = '{common: common, swap_add: desc_i.swap_add, syndrome: desc_i.syndrome, msn: desc_i.msn};
    rnic_ram_fifo #(.Width($bits(word_t)), .Depth(NumDesc)) u_desc (
        .clk_i, .rst_i, .in_valid_i(take), .in_ready_o(desc_room), .in_data_i(in), .commit_i(take), .rollback_i(1'b0),
        .out_valid_o(desc_valid_o), .out_ready_i(desc_ready_i), .out_data_o(out)
    );
    assign common_out = out.common;
    always_comb begin
      desc_o          = base(common_out);
      desc_o.swap_add = out.swap_add;
      desc_o.syndrome = out.syndrome;
      desc_o.msn      = out.msn;
    end
  end else begin : g_requests
    typedef struct packed {
      logic [31:0] dma_len;
      logic [31:0] imm;
      logic [31:0] qkey;
      qpn_t        src_qpn;
      logic [7:0]  zero;
    } other_t;
    typedef struct packed {
      common_t      common;
      logic         atomic;
      logic [63:0]  va;
      logic [31:0]  rkey;
      logic [127:0] rest;   // swap_add and compare of an atomic request, else other_t
    } word_t;
    word_t in, out;
    other_t other;
    /* verilator lint_off UNUSEDSIGNAL */  // its zeros
    other_t other_out;
    /* verilator lint_on UNUSEDSIGNAL */
    logic atomic;
    assign atomic    = opcode_info(desc_i.opcode).is_atomic_req;
    assign other     = '{dma_len: desc_i.dma_len, imm: desc_i.imm, qkey: desc_i.qkey, src_qpn: desc_i.src_qpn, zero: '0};
    assign in        = '{common: common, atomic: atomic, va: desc_i.va, rkey: desc_i.rkey,
                         rest: atomic ? {desc_i.swap_add, desc_i.compare} : other};
    rnic_ram_fifo #(.Width($bits(word_t)), .Depth(NumDesc)) u_desc (
        .clk_i, .rst_i, .in_valid_i(take), .in_ready_o(desc_room), .in_data_i(in), .commit_i(take), .rollback_i(1'b0),
        .out_valid_o(desc_valid_o), .out_ready_i(desc_ready_i), .out_data_o(out)
    );
    assign common_out = out.common;
    assign other_out  = out.rest;
    always_comb begin
      desc_o      = base(common_out);
      desc_o.va   = out.va;
      desc_o.rkey = out.rkey;
      if (out.atomic) begin
        {desc_o.swap_add, desc_o.compare} = out.rest;
      end else begin
        desc_o.dma_len = other_out.dma_len;
        desc_o.imm     = other_out.imm;
        desc_o.qkey    = other_out.qkey;
        desc_o.src_qpn = other_out.src_qpn;
      end
    end
  end
endmodule
