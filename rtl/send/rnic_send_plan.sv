// SPDX-License-Identifier: Apache-2.0
// Plans the next packet of a QP: judges its WQE, cuts the packet out of the message, and says what job, record and
// section follow.
// Contract: combinational. The section's send pointer stands at wqe_i; len_i is the message length, npsn_i the PSNs of what is left
// of it (both only known later than the rest: bad, is_read, fresh and first do not depend on them).
module rnic_send_plan
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
  import rnic_send_pkg::*;
(
    // The structs are shared; this unit needs a part of them.
    // verilator lint_off UNUSEDSIGNAL
    input  visit_t      visit_i,
    input  sq_wqe_t     wqe_i,      // its first 32 bytes
    // verilator lint_on UNUSEDSIGNAL
    input  logic [31:0] len_i,
    input  logic [24:0] npsn_i,
    input  logic [63:0] compare_i,  // compare operand
    input  rec_idx_t    rec_new_i,
    output plan_t       plan_o,
    output tx_job_t     job_o,
    output rec_t        rec_o,      // of a fresh message
    output sq_sec_t     sec_o       // the section after the packet
);
  sq_sec_t sec;
  assign sec = visit_i.sec;

  kind_e kind;
  logic known, with_imm, with_inv, is_read, is_local, atomic, inl;
  always_comb begin
    known    = 1'b1;
    with_imm = 1'b0;
    with_inv = 1'b0;
    kind     = KIND_SEND;
    case (wqe_i.opcode)
      WQE_OPCODE_SEND: ;
      WQE_OPCODE_SEND_WITH_IMM: with_imm = 1'b1;
      WQE_OPCODE_SEND_WITH_INV: with_inv = 1'b1;
      WQE_OPCODE_RDMA_WRITE: kind = KIND_WRITE;
      WQE_OPCODE_RDMA_WRITE_WITH_IMM: begin
        kind     = KIND_WRITE;
        with_imm = 1'b1;
      end
      WQE_OPCODE_RDMA_READ: kind = KIND_READ;
      WQE_OPCODE_ATOMIC_CMP_AND_SWP: kind = KIND_CMP_SWAP;
      WQE_OPCODE_ATOMIC_FETCH_AND_ADD: kind = KIND_FETCH_ADD;
      WQE_OPCODE_LOCAL_INV, WQE_OPCODE_REG_MR, WQE_OPCODE_BIND_MW: kind = KIND_LOCAL;
      default: known = 1'b0;
    endcase
  end
  assign is_read  = has_response(kind);
  assign atomic   = is_atomic(kind);
  assign is_local = kind == KIND_LOCAL;
  assign inl     = wqe_i.inline_data;

  // A QP that was not created for it names no bus addresses: what a process writes into its send queue reaches no other memory.
  logic bad_wqe, may_reg;
`ifdef RNIC_CUT_FAST_REG
  assign may_reg = 1'b1;
`else
  assign may_reg = visit_i.ctx.create.fast_reg || wqe_i.opcode != 8'(WQE_OPCODE_REG_MR);
`endif
  logic [9:0] inline_max;
  assign inline_max = 10'((10'd64 << visit_i.ctx.create.log_sq_stride) - 10'd32);
  assign bad_wqe = !known || (inl ? (is_read || wqe_i.inline_length > 32'(inline_max)) : wqe_i.num_sge > 8'(sge_slots(visit_i.ctx.create.log_sq_stride))) ||
      // The compare operand of an atomic stands where a second element would.
      (atomic && wqe_i.num_sge != 8'd1) || (is_read && visit_i.ctx.path.max_rd_atomic == '0) ||
      (is_local && (inl || wqe_i.num_sge != '0 || !may_reg));

  // ---------------------------------------------------------------- message and packet
  logic [3:0] shift;
  logic [31:0] mtu, left;
  logic fresh, first, last_pkt, is_small;
  pay_len_t n;
  psn_t adv;
  assign shift    = 4'd7 + 4'(visit_i.ctx.hot.mtu);
  assign mtu      = 32'd1 << shift;
  assign left     = len_i - sec.snd_off;
  assign fresh    = sec.snd_wqe == sec.fresh && sec.snd_off == '0;
  assign first    = sec.snd_off == '0;
  assign last_pkt = left <= mtu;
  assign n        = is_read ? '0 : last_pkt ? pay_len_t'(left) : pay_len_t'(mtu);
  assign adv      = is_local ? '0 : is_read ? psn_t'(npsn_i) : psn_t'(1);
  assign is_small = npsn_i <= 25'(MaxSmallPsn);

  logic sent_before;
  assign sent_before = psn_t'(sec.next_psn - sec.una_psn) < psn_t'(sec.top_psn - sec.una_psn);

  function automatic logic [7:0] opcode_of(kind_e k, logic imm, logic inv, logic f, logic l);
    case (k)
      KIND_SEND: return f ? (l ? (inv ? OPC_RC_SEND_ONLY_INV : imm ? OPC_RC_SEND_ONLY_IMM : OPC_RC_SEND_ONLY) : OPC_RC_SEND_FIRST)
                          : (l ? (inv ? OPC_RC_SEND_LAST_INV : imm ? OPC_RC_SEND_LAST_IMM : OPC_RC_SEND_LAST) : OPC_RC_SEND_MIDDLE);
      KIND_WRITE: return f ? (l ? (imm ? OPC_RC_WRITE_ONLY_IMM : OPC_RC_WRITE_ONLY) : OPC_RC_WRITE_FIRST)
                           : (l ? (imm ? OPC_RC_WRITE_LAST_IMM : OPC_RC_WRITE_LAST) : OPC_RC_WRITE_MIDDLE);
      KIND_CMP_SWAP: return OPC_RC_CMP_SWAP;
      KIND_FETCH_ADD: return OPC_RC_FETCH_ADD;
      default: return OPC_RC_READ_REQUEST;
    endcase
  endfunction

  always_comb begin
    job_o             = '0;
    job_o.qp_idx      = visit_i.idx;
    job_o.opcode      = opcode_of(kind, with_imm, with_inv, first, last_pkt);
`ifdef RNIC_CUT_SOLICITED
    job_o.se          = 1'b0;
`else
    job_o.se          = wqe_i.solicited && last_pkt && (kind == KIND_SEND || (kind == KIND_WRITE && with_imm));
`endif
`ifdef RNIC_CUT_ACK_REQ_16
    job_o.ack_req     = is_read || last_pkt;
`else
    job_o.ack_req     = is_read || last_pkt || sec.next_psn[3:0] == 4'hf;
`endif
    job_o.psn         = sec.next_psn;
    job_o.payload_len = n;
    job_o.va          = wqe_i.remote_va + 64'(sec.snd_off);   // a RETH not at offset 0 is that of a READ asked for again
    job_o.rkey        = with_inv ? wqe_i.imm : wqe_i.rkey;   // the key to invalidate stands where an immediate would
    job_o.dma_len     = left;
    job_o.imm         = wqe_i.imm;
    job_o.swap_add    = wqe_i.swap_add;
    job_o.compare     = (kind == KIND_CMP_SWAP) ? compare_i : '0;
    rec_o = '{wqe: sec.snd_wqe, first: sec.next_psn, last: sec.next_psn + psn_t'(npsn_i) - psn_t'(1), len: len_i, kind: kind,
`ifdef RNIC_CUT_SIG_ALL
              signaled: wqe_i.signaled};
`else
              signaled: wqe_i.signaled || visit_i.ctx.hot.sq_sig_all};
`endif
    if (is_local) begin
      // It stands in the list without PSNs: complete when everything before it is.
      rec_o.last = sec.next_psn - psn_t'(1);
      rec_o.len  = (wqe_i.opcode == 8'(WQE_OPCODE_REG_MR)) ? 32'(WC_OPCODE_REG_MR) : (wqe_i.opcode == 8'(WQE_OPCODE_BIND_MW)) ? 32'(WC_OPCODE_BIND_MW)
                 : 32'(WC_OPCODE_LOCAL_INV);
    end
  end

  // Section after the packet.
  always_comb begin
    sec_o = sec;
    if (fresh) begin
      sec_o.tail  = rec_new_i;
      if (sec.count == '0) sec_o.head = rec_new_i;
      sec_o.count = sec.count + 8'd1;
      sec_o.fresh = sec.fresh + wqe_idx_t'(1);
      sec_o.alone = !is_small && !is_local;
      if (is_read) begin
        sec_o.rd_cnt = sec.rd_cnt + 5'd1;
        if (sec.rd_cnt == '0) begin
          sec_o.rd_rec   = rec_new_i;
          sec_o.rd_psn   = sec.next_psn;
          sec_o.rd_phase = RD_FIRST;
          sec_o.rd_lost  = 1'b0;
        end
      end
    end
    sec_o.next_psn = sec.next_psn + adv;
    if (!sent_before) sec_o.top_psn = sec_o.next_psn;
    if (is_read || is_local || last_pkt) begin
      sec_o.snd_wqe = sec.snd_wqe + wqe_idx_t'(1);
      sec_o.snd_off = '0;
    end else begin
      sec_o.snd_off = sec.snd_off + mtu;
      sec_o.msg_len = len_i;
    end
    if (!sec.timer_on && !is_local) sec_o = timer_restart(sec_o, visit_i.ctx.path.timeout, visit_i.now);
  end

  assign plan_o = '{bad: bad_wqe, is_read: is_read, is_atomic: atomic, is_cmp: kind == KIND_CMP_SWAP, is_local: is_local, fresh: fresh,
                     first: first, sent_before: sent_before, is_small: is_small, shift: shift, left: left, n: n};
endmodule
