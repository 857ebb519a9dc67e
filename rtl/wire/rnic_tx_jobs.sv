// SPDX-License-Identifier: Apache-2.0
// Transmit jobs of both sources until they leave, in one memory, with their extended headers as they will stand in the packet.
// Contract: job_* [0] requests, [1] responses, each held until ready; one is taken a cycle, when its source's payload side takes it, too
// (pay_ready_i), and push_o tells whose. Up to 8 of a source
// are inside. head_o is the oldest job of source src_i; pop_i removes a source's oldest. What stands in ext behind the extended headers of the opcode is undefined.
module rnic_tx_jobs
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned QpIdxW = 10
) (
    input  logic          clk_i,
    input  logic          rst_i,
    input  logic [1:0]    job_valid_i,
    output logic [1:0]    job_ready_o,
    // (fields of the other kind are not looked at, and of indices the low bits)
    // verilator lint_off UNUSEDSIGNAL
    input  tx_job_t [1:0] job_i,
    // verilator lint_on UNUSEDSIGNAL
    input  logic [1:0]    pay_ready_i,
    output logic [1:0]    push_o,
    input  logic          src_i,
    output tx_head_t      head_o,
    input  logic [1:0]    pop_i
);
  localparam int unsigned PtrW = 3;    // log2 of jobs per source
  typedef struct packed {
    logic [QpIdxW-1:0] qp_idx;
    logic [7:0]  opcode;
    logic        se;
    logic        ack_req;
    psn_t        psn;
    pay_len_t    payload_len;
    logic [8*ATOMIC_ETH_BYTES-1:0] ext;
  } word_t;
  word_t mem[2 << PtrW];
  word_t in, out;
  logic [1:0][PtrW:0] wr_q, rd_q;      // one bit more than an index
  logic [1:0] room;
  logic src;

  for (genvar s = 0; s < 2; s++) begin : g_room
    assign room[s] = pay_ready_i[s] && wr_q[s] != {!rd_q[s][PtrW], rd_q[s][PtrW-1:0]};
  end
  assign src         = job_valid_i[1] && room[1];
  assign job_ready_o = {room[1], room[0] && !src};
  assign push_o      = job_valid_i & job_ready_o;

  // ---------------------------------------------------------------- the extended headers, first byte in the highest bits
  // verilator lint_off UNUSEDSIGNAL
  opcode_info_t info;
  // verilator lint_on UNUSEDSIGNAL
  logic [31:0] imm;
  assign info = opcode_info(job_i[0].opcode);
  assign imm  = {job_i[0].imm[7:0], job_i[0].imm[15:8], job_i[0].imm[23:16], job_i[0].imm[31:24]};
  always_comb begin
    in = '{qp_idx: job_i[src].qp_idx[QpIdxW-1:0], opcode: job_i[src].opcode, se: job_i[src].se, ack_req: job_i[src].ack_req,
           psn: job_i[src].psn, payload_len: job_i[src].payload_len, ext: {job_i[0].va, job_i[0].rkey, job_i[0].dma_len, imm, job_i[0].compare}};
    // ImmDt and IETH alone, AtomicETH
    if (!info.has_reth && !info.has_atomiceth) in.ext[223:192] = info.has_imm ? imm : job_i[0].rkey;
    if (info.has_atomiceth) in.ext[127:64] = job_i[0].swap_add;
    // AETH, AtomicAckETH
    if (src) in.ext[223:128] = {job_i[1].syndrome, job_i[1].msn, job_i[1].swap_add};
  end

  assign out    = mem[{src_i, rd_q[src_i][PtrW-1:0]}];
  assign head_o = '{qp_idx: qp_idx_t'(out.qp_idx), opcode: out.opcode, se: out.se, ack_req: out.ack_req, psn: out.psn,
                    payload_len: out.payload_len, ext: out.ext};

  always_ff @(posedge clk_i) begin
    if (push_o != '0) mem[{src, wr_q[src][PtrW-1:0]}] <= in;
    for (int unsigned s = 0; s < 2; s++) begin
      if (rst_i) begin
        wr_q[s] <= '0;
        rd_q[s] <= '0;
      end else begin
        wr_q[s] <= wr_q[s] + (PtrW + 1)'(push_o[s]);
        rd_q[s] <= rd_q[s] + (PtrW + 1)'(pop_i[s]);
      end
    end
    if (!rst_i) a_pop_valid : assert ((!pop_i[0] || wr_q[0] != rd_q[0]) && (!pop_i[1] || wr_q[1] != rd_q[1]));
  end
endmodule
