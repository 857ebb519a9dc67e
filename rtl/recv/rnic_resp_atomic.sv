// SPDX-License-Identifier: Apache-2.0
// Executes the atomics of the responder, one at a time, and remembers their results: a duplicate is answered from here and never
// executed again. Numbers are in host order in memory, and as numbers on all ports.
// Contract: start_i with its fields, held until done_o (one cycle). With dup_i the result of psn_i is looked up: found_o tells. Otherwise
// 8 bytes at addr_i are read, and written when they are to change; err_o tells that the host did not deliver them: then nothing
// was written. busy_i: a payload before it is still on its way; the read waits for its end, and the write was accepted when done_o is
// high, so that nothing of this device comes between the two. A result is remembered at slot next_i, which the caller moves on when
// it commits; full_i: all slots hold results of this life, else those below next_i do. A duplicate takes at most 2 cycles per slot.
module rnic_resp_atomic
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned DataW = 64,
    parameter int unsigned QpIdxW = 10,
    parameter int unsigned PtrW = 4                // log2 of results per QP
) (
    input  logic         clk_i,
    input  logic         rst_i,
    input  logic         start_i,
    input  logic         dup_i,
    input  logic         busy_i,
    input  logic [QpIdxW-1:0] idx_i,
    input  psn_t         psn_i,
    input  logic         is_cmp_i,                 // CMP_SWAP, else FETCH_ADD
    input  logic [63:0]  swap_add_i,
    input  logic [63:0]  compare_i,
    input  logic [63:0]  addr_i,
    input  logic [PtrW-1:0] next_i,
    input  logic         full_i,
    output logic         done_o,
    output logic         found_o,
    output dma_err_e     err_o,
    output logic [63:0]  orig_o,                   // what the memory held before
    // DMA
    output logic         rd_req_valid_o,
    input  logic         rd_req_ready_i,
    output dma_rd_req_t  rd_req_o,
    input  logic         rd_rsp_valid_i,
    // verilator lint_off UNUSEDSIGNAL
    // (8 bytes are one beat)
    input  logic [DataW-1:0] rd_rsp_data_i,
    input  dma_rd_ctl_t  rd_rsp_ctl_i,
    // verilator lint_on UNUSEDSIGNAL
    output logic         wr_valid_o,
    input  logic         wr_ready_i,
    output dma_wr_hdr_t  wr_hdr_o,
    output logic [DataW-1:0] wr_data_o
);
  localparam int unsigned Bytes = 8;
  typedef enum logic [2:0] {
    StIdle,   // waits for a request
    StAsk,    // asks for the memory
    StData,   // waits for it
    StWrite,  // writes it back
    StSlot,   // reads a remembered result
    StSeek,   // is it the one?
    StDone    // answers
  } state_e;
  typedef struct packed {
    psn_t        psn;
    logic [63:0] orig;
  } result_t;
  state_e state_q;
  result_t slot;
  logic [PtrW-1:0] seek_q;
  logic [PtrW:0] left_q;         // slots not looked at
  logic [63:0] orig_q, new_q, sum;
  logic found_q, changes;
  dma_err_e err_q;

  logic [63:0] mem;
  assign mem = rd_rsp_data_i[63:0];
  assign sum = mem + swap_add_i;
`ifdef RNIC_CUT_ATOMIC_COMPARE
  assign changes = 1'b1;
`else
  assign changes = !is_cmp_i || mem == compare_i;
`endif

  // Of the newest results, newest first: as many as a peer may have outstanding.
  rnic_ram #(.Width($bits(result_t)), .Depth(1 << (QpIdxW + PtrW)), .Bypass(1'b0)) u_results (
      .clk_i, .we_i(done_o && !dup_i && err_q == DMA_ERR_OK), .waddr_i({idx_i, next_i}), .wdata_i({psn_i, orig_q}),
      .re_i(state_q == StSlot), .raddr_i({idx_i, seek_q}), .rdata_o(slot)
  );

  assign rd_req_valid_o = state_q == StAsk;
  assign rd_req_o       = '{addr: addr_i, len: 16'(Bytes)};
  assign wr_valid_o     = state_q == StWrite;
  assign wr_hdr_o       = '{addr: addr_i, len: 16'(Bytes)};
  assign wr_data_o      = DataW'(new_q);
  assign done_o         = state_q == StDone;
  assign found_o        = found_q;
  assign err_o          = err_q;
  assign orig_o         = orig_q;

  logic hold;
`ifdef RNIC_CUT_ATOMIC_ORDER
  assign hold = 1'b0;
`else
  assign hold = busy_i;
`endif
  always_ff @(posedge clk_i) begin
    if (rd_rsp_valid_i || state_q == StSeek) orig_q <= (state_q == StSeek) ? slot.orig : mem;
    if (rd_rsp_valid_i) new_q <= is_cmp_i ? swap_add_i : sum;
    case (state_q)
      StIdle: begin
        found_q <= 1'b0;
        err_q   <= DMA_ERR_OK;
        seek_q  <= next_i - PtrW'(1);
        left_q  <= full_i ? (PtrW + 1)'(1 << PtrW) : (PtrW + 1)'(next_i);
        if (start_i && dup_i) state_q <= StSlot;
        else if (start_i && !hold) state_q <= StAsk;
      end
      StAsk: if (rd_req_ready_i) state_q <= StData;
      StData:
        if (rd_rsp_valid_i) begin
          err_q   <= rd_rsp_ctl_i.err;
          state_q <= (rd_rsp_ctl_i.err == DMA_ERR_OK && changes) ? StWrite : StDone;
        end
      StWrite: if (wr_ready_i) state_q <= StDone;
      StSlot: begin
        seek_q  <= seek_q - PtrW'(1);
        left_q  <= left_q - (PtrW + 1)'(1);
        state_q <= (left_q == '0) ? StDone : StSeek;
      end
      StSeek: begin
        found_q <= slot.psn == psn_i;
        state_q <= (slot.psn == psn_i) ? StDone : StSlot;
      end
      default: state_q <= StIdle;
    endcase
    if (rst_i) state_q <= StIdle;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      if (state_q != StIdle) a_start_held : assert (start_i);
      if (rd_rsp_valid_i) a_answer_expected : assert (state_q == StData && rd_rsp_ctl_i.last);
    end
  end
endmodule
