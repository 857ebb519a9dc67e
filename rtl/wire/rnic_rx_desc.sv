// SPDX-License-Identifier: Apache-2.0
// Descriptors of received packets: two queues, [0] requests and [1] responses, in one block RAM. A descriptor is some 360
// bits wide (460 with IPv6): it goes in and out in words, at 64 bits of data path in 2, at 512 in one. Packets come no
// faster than their words.
// Contract: take_i (one at a time, Words cycles apart at least) puts desc_i, which holds for Words cycles, at the end of its
// queue; room_o tells whether there is room. Out: each queue in its order, held until ready, and neither waits for the other. A descriptor is
// visible Words + 3 cycles after take_i (2 with a single word) when no other stands before it; behind one, in the cycle after that was taken, when
// that stood there long enough. Each queue holds NumDesc descriptors and one more.
// Fields that a packet's headers do not have hold whatever stands in their place; those that only requests have are zero in responses.
module rnic_rx_desc
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned DataW = 64,
    parameter int unsigned NumDesc = 64,      // packets per queue, a power of two
    parameter bit Ipv6 = 1'b1                 // else every source address is an IPv4 one
) (
    input  logic           clk_i,
    input  logic           rst_i,
    input  logic [1:0]     take_i,
    output logic [1:0]     room_o,
    // (of an IPv4-mapped GID the last four bytes are stored)
    // verilator lint_off UNUSEDSIGNAL
    input  rx_raw_t        desc_i,
    // verilator lint_on UNUSEDSIGNAL
    output logic [1:0]     valid_o,
    input  logic [1:0]     ready_i,
    output rx_desc_t [1:0] desc_o
);
  localparam int unsigned SrcW = Ipv6 ? 128 : 32;
  // Without what follows from the rest, so that 360 bits are enough over IPv4: ten columns of block RAM in two words. The pad fills the
  // payload up to words of four bytes; the transports of requests and responses are four, so that two bits name one.
  typedef struct packed {
    logic [1:0]  transport;
    logic [4:0]  operation;
    logic        se;
    logic        ack_req;
    logic [15:0] pkey;
    qpn_t        dest_qpn;
    psn_t        psn;
    logic [1:0]  ecn;
    logic [SrcW-1:0] src;
    logic [NUM_GID-1:0] gid_hit;
    pay_len_t    payload_len;
    logic [8*ATOMIC_ETH_BYTES-1:0] ext;
  } word_t;
  localparam int unsigned Width = $bits(word_t);
  // Cycles between the ends of two packets: the shortest that is taken is a frame of 58 bytes, and the one before may come a cycle late.
  localparam int unsigned Apart = (DataW == 64) ? 7 : (DataW == 128) ? 3 : (DataW == 256) ? 2 : 1;
  localparam int unsigned Needed = (Width + 72 * (DataW / 64) - 1) / (72 * (DataW / 64));
  // At 64 bits fewer and wider: with a power of two no place is lost, and a choice between two words is one table a bit.
  localparam int unsigned Words = (DataW == 64) ? 2 : (Needed < Apart) ? Needed : Apart;
  localparam int unsigned WordW = (Width + Words - 1) / Words;

  word_t in;
  word_t [1:0] out;
  // RC 0, UC 1, UD 3, XRC 5 (as 2)
  function automatic logic [2:0] transport_of(logic [1:0] t);
    return {t == 2'd2, t == 2'd3, t != 2'd0};
  endfunction
  assign in = '{transport: {desc_i.opcode[7] || desc_i.opcode[6], desc_i.opcode[5] && !desc_i.opcode[7]}, operation: desc_i.opcode[4:0],
                se: desc_i.se, ack_req: desc_i.ack_req, pkey: desc_i.pkey,
                dest_qpn: desc_i.dest_qpn, psn: desc_i.psn, ecn: desc_i.ecn, src: desc_i.sgid[127-:SrcW], gid_hit: desc_i.gid_hit,
                payload_len: desc_i.payload_len, ext: desc_i.ext};

  if (Words == 1) begin : g_whole
    for (genvar c = 0; c < 2; c++) begin : g_queue
      rnic_ram_fifo #(.Width(Width), .Depth(NumDesc)) u_fifo (
          .clk_i, .rst_i, .in_valid_i(take_i[c]), .in_ready_o(room_o[c]), .in_data_i(in), .commit_i(take_i[c]), .rollback_i(1'b0),
          .out_valid_o(valid_o[c]), .out_ready_i(ready_i[c]), .out_data_o(out[c])
      );
    end
  end else begin : g_words
    localparam int unsigned SlotW = $clog2(NumDesc);
    localparam int unsigned KW = $clog2(Words);
    localparam int unsigned AllW = Words * WordW;

    // ---------------------------------------------------------------- in, word by word
    logic [1:0][SlotW-1:0] wr_q;
    logic [1:0][SlotW+1:0] all_q;          // taken and not yet given
    logic [1:0][SlotW:0] here_q;           // in the RAM, or on their way there word by word: a word is read a cycle after it is written
    logic [KW-1:0] k_q, k;
    logic busy_q, cls_q, cls, we, put;
    logic [Words-1:0][WordW-1:0] in_words;
    assign in_words = AllW'(in);
    assign cls      = busy_q ? cls_q : take_i[1];
    assign k        = busy_q ? k_q : '0;
    assign we       = busy_q || (|take_i);
    assign put      = busy_q && k_q == KW'(Words - 1);
    for (genvar c = 0; c < 2; c++) begin : g_room
      assign room_o[c] = 32'(all_q[c]) <= NumDesc;
    end
    always_ff @(posedge clk_i) begin
      if (!busy_q) cls_q <= take_i[1];
      k_q    <= k + KW'(1);
      busy_q <= !rst_i && we && !put;
      for (int unsigned c = 0; c < 2; c++) begin
        if (put && cls == 1'(c)) wr_q[c] <= wr_q[c] + SlotW'(1);
        if (rst_i) wr_q[c] <= '0;
      end
    end

    // ---------------------------------------------------------------- out: fetched beside what is being offered, then moved there
    logic [1:0][SlotW-1:0] rd_q;
    logic [1:0] full_q, move, may, valid_q;
    logic fetch_q, fcls_q, fcls, go, last, shift_q, shift_last_q, shift_cls_q;
    logic [KW-1:0] f_q, f;
    logic [WordW-1:0] rdata;
    // The register of a queue's next one is filled when the last word is on its way: the flag is set with the fetch.
    logic [1:0] claim_q;
    logic [1:0][AllW-1:0] stage_q;
    word_t [1:0] out_q;
    for (genvar c = 0; c < 2; c++) begin : g_may
      assign may[c]  = here_q[c] != '0 && (!claim_q[c] || move[c]);
      assign move[c] = full_q[c] && (!valid_q[c] || ready_i[c]);
    end
    assign go   = fetch_q || (|may);
    assign fcls = fetch_q ? fcls_q : (may[1] && (!may[0] || !fcls_q));
    assign f    = fetch_q ? f_q : '0;
    assign last = fetch_q && f_q == KW'(Words - 1);
    rnic_ram #(.Width(WordW), .Depth(1 << (1 + SlotW + KW)), .Bypass(1'b0)) u_words (
        .clk_i, .we_i(we), .waddr_i({cls, wr_q[cls], k}), .wdata_i(in_words[k]), .re_i(go), .raddr_i({fcls, rd_q[fcls], f}), .rdata_o(rdata)
    );
    always_ff @(posedge clk_i) begin
      if (!fetch_q && (|may)) fcls_q <= fcls;
      f_q          <= f + KW'(1);
      fetch_q      <= !rst_i && go && !last;
      shift_q      <= !rst_i && go;
      shift_last_q <= last;
      shift_cls_q  <= fcls;
      for (int unsigned c = 0; c < 2; c++) begin
        if (shift_q && shift_cls_q == 1'(c)) stage_q[c] <= {rdata, stage_q[c][AllW-1:WordW]};
        if (move[c]) out_q[c] <= word_t'(stage_q[c]);
        if (last && fcls == 1'(c)) rd_q[c] <= rd_q[c] + SlotW'(1);
        if (rst_i) begin
          rd_q[c]    <= '0;
          full_q[c]  <= 1'b0;
          claim_q[c] <= 1'b0;
          valid_q[c] <= 1'b0;
          here_q[c]  <= '0;
          all_q[c]   <= '0;
        end else begin
          if (!fetch_q && go && fcls == 1'(c)) claim_q[c] <= 1'b1;
          else if (move[c]) claim_q[c] <= 1'b0;
          if (shift_q && shift_last_q && shift_cls_q == 1'(c)) full_q[c] <= 1'b1;
          else if (move[c]) full_q[c] <= 1'b0;
          valid_q[c] <= move[c] || (valid_q[c] && !ready_i[c]);
          here_q[c]  <= here_q[c] + (SlotW + 1)'(take_i[c]) - (SlotW + 1)'(!fetch_q && go && fcls == 1'(c));
          all_q[c]   <= all_q[c] + (SlotW + 2)'(take_i[c]) - (SlotW + 2)'(valid_q[c] && ready_i[c]);
        end
      end
    end
    assign valid_o = valid_q;
    assign out     = out_q;

    word_t held_q;
    always_ff @(posedge clk_i) begin
      held_q <= in;
      if (!rst_i) begin
        a_one_at_a_time : assert (take_i == '0 || (!busy_q && take_i != 2'b11));
        if (busy_q) a_held : assert (in == held_q);
        a_room : assert ((take_i & ~room_o) == '0);
        // A place that is being emptied counts no more, and is not written: one stands at the output by then.
        a_slots : assert (32'(here_q[0]) + 32'(fetch_q && !fcls_q) <= NumDesc && 32'(here_q[1]) + 32'(fetch_q && fcls_q) <= NumDesc);
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i && take_i != '0) begin
      a_transport : assert (transport_of(in.transport) == desc_i.opcode[7:5]);
      a_pad : assert (desc_i.pad == 2'd0 - desc_i.payload_len[1:0]);
    end
  end

  // ---------------------------------------------------------------- the extended headers told apart
  for (genvar c = 0; c < 2; c++) begin : g_desc
    word_t w;
    assign w = out[c];
    // Of each, some fields.
    // verilator lint_off UNUSEDSIGNAL
    opcode_info_t info;
    atomic_eth_t atomic;
    reth_t reth;
    aeth_t aeth;
    deth_t deth;
    // verilator lint_on UNUSEDSIGNAL
    localparam int unsigned ExtW = 8 * ATOMIC_ETH_BYTES;
    logic [7:0] opcode;
    assign opcode = {transport_of(w.transport), w.operation};
    assign info   = opcode_info(opcode);
    assign atomic = w.ext;
    assign reth   = w.ext[ExtW-1-:8*RETH_BYTES];
    assign aeth   = w.ext[ExtW-1-:8*AETH_BYTES];
    assign deth   = w.ext[ExtW-1-:8*DETH_BYTES];
    // ImmDt is the last of the extended headers: behind nothing, DETH or RETH.
    logic [31:0] imm;
    always_comb begin
      imm = w.ext[ExtW-1-:32];
      if (info.has_deth) imm = w.ext[ExtW-1-8*DETH_BYTES-:32];
      if (info.has_reth) imm = w.ext[ExtW-1-8*RETH_BYTES-:32];
    end
    always_comb begin
      desc_o[c] = '0;
      desc_o[c].opcode      = opcode;
      desc_o[c].se          = w.se;
      desc_o[c].ack_req     = w.ack_req;
      desc_o[c].pad         = 2'd0 - w.payload_len[1:0];
      desc_o[c].pkey        = w.pkey;
      desc_o[c].dest_qpn    = w.dest_qpn;
      desc_o[c].psn         = w.psn;
      desc_o[c].ecn         = w.ecn;
      desc_o[c].sgid        = {32'd0, 16'hffff, 80'd0};
      desc_o[c].sgid[127-:SrcW] = w.src;
      desc_o[c].gid_hit     = w.gid_hit;
      desc_o[c].payload_len = w.payload_len;
      if (c == 0) begin
        desc_o[c].va       = reth.va;
        desc_o[c].rkey     = info.has_ieth ? w.ext[ExtW-1-:32] : reth.rkey;
        desc_o[c].dma_len  = reth.dma_length;
        desc_o[c].swap_add = atomic.swap_add;
        desc_o[c].compare  = atomic.compare;
        desc_o[c].imm      = {imm[7:0], imm[15:8], imm[23:16], imm[31:24]};
        desc_o[c].qkey     = deth.qkey;
        desc_o[c].src_qpn  = deth.src_qp;
      end else begin
        desc_o[c].swap_add = w.ext[ExtW-1-8*AETH_BYTES-:64];
        desc_o[c].syndrome = aeth.syndrome;
        desc_o[c].msn      = aeth.msn;
      end
    end
  end
endmodule
