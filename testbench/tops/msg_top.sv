// SPDX-License-Identifier: Apache-2.0
// A message at the place where its next packet begins: the packet that rnic_send_plan makes of it, and what rnic_resp_check says to that
// packet. Both keep no state, so every place of the longest message can be looked at without sending what lies before it.
module msg_top
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
  import rnic_send_pkg::*;
(
    input  logic clk_i,
    input  logic rst_i,
    input  logic [7:0]  opcode_i,            // WqeOpcode
    input  logic [2:0]  mtu_i,
    input  logic [31:0] len_i,               // of the message
    input  logic [31:0] off_i,               // where the packet begins
    input  logic [24:0] npsn_i,              // PSNs of what is left
    input  logic [31:0] claim_i,             // DMALen as the responder knows it from the first packet
    output logic [7:0]  pkt_opcode_o,
    output logic [12:0] pkt_len_o,
    output logic [31:0] pkt_dma_len_o,
    output logic [63:0] pkt_va_o,
    output logic        ends_o,              // the next packet is that of another message
    output logic [31:0] next_off_o,
    output logic [23:0] psns_o,              // PSNs that the packet takes at the requester, and at the responder
    output logic [23:0] resp_psns_o,
    output logic [23:0] last_psn_o,          // of the record that a fresh message gets; the first one is 0x80_0000
    output logic        alone_o,
    output logic        exec_o,
    output logic        nak_o
);
  localparam psn_t First = 24'h80_0000;
  visit_t v;
  sq_wqe_t wqe;
  // verilator lint_off UNUSEDSIGNAL
  plan_t plan;
  tx_job_t job;
  rec_t rec;
  pkt_upd_t upd;
  logic drop, ignore, gap, dup_ack, dup_read, dup_atomic, rnr, dup;
  counter_id_e drop_cnt;
  logic [31:0] rest;
  opcode_info_t info;
  // verilator lint_on UNUSEDSIGNAL
  always_comb begin
    v                         = '0;
    v.ctx.hot.valid           = 1'b1;
    v.ctx.hot.state           = QP_STATE_RTS;
    v.ctx.hot.qp_type         = QP_TYPE_RC;
    v.ctx.hot.access          = '1;
    v.ctx.hot.mtu             = mtu_i;
    v.ctx.path.max_rd_atomic  = 8'd16;
    v.ctx.path.max_dest_rd_atomic = 8'd16;
    v.ctx.path.dgid           = {32'h0100_000a, 16'hffff, 80'd0};
    v.prod                    = 16'd1;
    v.sec.live                = 1'b1;
    v.sec.fresh               = (off_i == '0) ? 16'd0 : 16'd1;
    v.sec.snd_off             = off_i;
    v.sec.msg_len             = len_i;
    v.sec.next_psn            = First;
    v.sec.una_psn             = First;
    v.sec.top_psn             = First;
    wqe                       = '0;
    wqe.opcode                = opcode_i;
    wqe.num_sge               = 8'd1;
    wqe.remote_va             = 64'hffff_ffff_7fff_fff0;
  end
  rnic_send_plan u_plan (
      .visit_i(v), .wqe_i(wqe), .len_i, .more_i(psn_t'(npsn_i - 25'd1)),
      // A READ takes all PSNs of its response.
      .step_i((opcode_i == 8'(WQE_OPCODE_RDMA_READ)) ? psn_t'(npsn_i - 25'd1) : '0), .less_i(1'b0), .next_i(1'b0), .compare_i('0), .rec_new_i('0), .plan_o(plan), .job_o(job), .rec_o(rec), .upd_o(upd)
  );
  assign pkt_opcode_o  = job.opcode;
  assign pkt_len_o     = job.payload_len;
  assign pkt_dma_len_o = job.dma_len;
  assign pkt_va_o      = job.va;
  assign ends_o        = upd.snd_wqe != '0;
  assign next_off_o    = upd.snd_off;
  assign psns_o        = upd.next_psn - First;
  assign last_psn_o    = rec.last;
  assign alone_o       = upd.alone;

  logic [23:0] resp_psns;
  logic resp_more;
  port_cfg_t cfg;
  rx_desc_t desc;
  logic send, write;
  assign send  = opcode_i == 8'(WQE_OPCODE_SEND);
  assign write = opcode_i == 8'(WQE_OPCODE_RDMA_WRITE);
  always_comb begin
    cfg             = '0;
    cfg.pkey[0]     = 16'hffff;
    cfg.gid_v4[0]   = 1'b1;
    cfg.gid[0]      = 128'h0200000a_ffff0000_00000000_00000000;   // ::ffff:10.0.0.2, byte 0 lowest
    desc            = '0;
    desc.opcode     = job.opcode;
    desc.pkey       = 16'hffff;
    desc.psn        = job.psn;
    desc.sgid       = v.ctx.path.dgid;
    desc.gid_hit[0] = 1'b1;
    desc.payload_len = job.payload_len;
    desc.dma_len    = job.dma_len;
  end
  rnic_resp_check u_check (
      .enable_i(1'b1), .port_cfg_i(cfg), .desc_i(desc), .ctx_i(v.ctx), .halted_i(1'b0), .epsn_i(First), .in_send_i(send && off_i != '0),
      .in_write_i(write && off_i != '0), .msg_full_i(off_i[31]), .msg_left_i(claim_i - off_i), .reads_i('0), .read_full_i(1'b0), .rq_avail_i(1'b1),
      .drop_o(drop), .drop_cnt_o(drop_cnt), .ignore_o(ignore), .gap_o(gap), .dup_ack_o(dup_ack), .dup_read_o(dup_read), .dup_atomic_o(dup_atomic),
      .nak_o, .rnr_o(rnr), .exec_o, .dup_o(dup), .psns_o(resp_psns), .psns_more_o(resp_more), .rest_o(rest), .info_o(info)
  );
  assign resp_psns_o = resp_psns + 24'(resp_more);
  logic unused;
  assign unused = ^{clk_i, rst_i};
endmodule
