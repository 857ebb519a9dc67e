// SPDX-License-Identifier: Apache-2.0
// Plans the next packet of a QP: judges its WQE, cuts the packet out of the message, and says what job, record and
// section follow.
// Contract: combinational. The section's send pointer stands at wqe_i; len_i is the message length, more_i the PSNs of what is left
// of it beyond one, 0 of a local operation (both only known later than the rest: bad, is_read, fresh and first do not depend on them).
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
    input  psn_t        more_i,
    input  psn_t        step_i,     // more_i where the packet takes them all
    input  logic        less_i,     // left is one byte less
    input  logic        next_i,     // snd_wqe is the WQE that is needed next: the same at its beginning, else the one behind it
    input  logic [63:0] compare_i,  // compare operand
    input  rec_idx_t    rec_new_i,
    output plan_t       plan_o,
    output tx_job_t     job_o,
    output rec_t        rec_o,      // of a fresh message
    output pkt_upd_t    upd_o       // what the packet makes of the section
);
  // verilator lint_off UNUSEDSIGNAL
  sq_sec_t sec;
  // verilator lint_on UNUSEDSIGNAL
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
  assign bad_wqe = !known || (inl ? (is_read || (wqe_i.inline_length[31:10] != '0 || wqe_i.inline_length[9:0] > inline_max)) : wqe_i.num_sge > 8'(sge_slots(visit_i.ctx.create.log_sq_stride))) ||
      // The compare operand of an atomic stands where a second element would.
      (atomic && wqe_i.num_sge != 8'd1) || (is_read && visit_i.ctx.path.max_rd_atomic == '0) ||
      (is_local && (inl || wqe_i.num_sge != '0 || !may_reg));

  // ---------------------------------------------------------------- message and packet
  logic [31:0] mtu, left;
  // verilator lint_off UNUSEDSIGNAL
  logic carry;
  // verilator lint_on UNUSEDSIGNAL
  logic fresh, first, last_pkt, is_small;
  pay_len_t n;
  psn_t last_psn;              // of the message
  assign mtu      = 32'(mtu_bytes(visit_i.ctx.hot.mtu));
  // (The lowest bit carries the 1 into one adder: a sum of three would be two.)
  assign {left, carry} = {len_i, 1'b1} + {~sec.snd_off, !less_i};
  assign fresh    = sec.snd_wqe == sec.fresh && sec.snd_off == '0;
  assign first    = sec.snd_off == '0;
  assign last_pkt = left[31:13] == '0 && left[12:0] <= mtu[12:0];
  assign n        = is_read ? '0 : last_pkt ? pay_len_t'(left) : pay_len_t'(mtu);
  assign last_psn = sec.next_psn + more_i;
  assign is_small = more_i < psn_t'(MaxSmallPsn);

  logic sent_before;
  // It lies between una and top, both included.
  assign sent_before = sec.next_psn != sec.top_psn;

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
    rec_o = '{wqe: sec.snd_wqe, first: sec.next_psn, last: last_psn, len: len_i, kind: kind,
`ifdef RNIC_CUT_SIG_ALL
              signaled: wqe_i.signaled};
`else
              signaled: wqe_i.signaled || visit_i.ctx.hot.sq_sig_all};
`endif
    if (is_local) begin
      // It stands in the list without PSNs: complete when everything before it is (rnic_send looks at the kind).
      rec_o.len[7:0] = (wqe_i.opcode == 8'(WQE_OPCODE_REG_MR)) ? 8'(WC_OPCODE_REG_MR) : (wqe_i.opcode == 8'(WQE_OPCODE_BIND_MW)) ? 8'(WC_OPCODE_BIND_MW)
                     : 8'(WC_OPCODE_LOCAL_INV);
    end
  end

  // The section after the packet.
  logic ends;
  assign ends = is_read || is_local || last_pkt;
  always_comb begin
    upd_o          = '0;
    upd_o.sent     = 1'b1;
    upd_o.fresh    = fresh;
    upd_o.is_read  = is_read;
    upd_o.alone    = !is_small && !is_local;
    upd_o.rec_new  = rec_new_i;
    upd_o.top      = !sent_before;
    upd_o.timed    = !is_local;
    upd_o.snd_wqe  = sec.snd_wqe + ((next_i ? !first : ends) ? 16'd1 : 16'd0);
    upd_o.snd_off  = ends ? '0 : sec.snd_off + mtu;
    upd_o.msg_len  = len_i;
    upd_o.next_psn = sec.next_psn + step_i + psn_t'(!is_local);
  end

  assign plan_o = '{bad: bad_wqe, is_read: is_read, is_atomic: atomic, is_cmp: kind == KIND_CMP_SWAP, is_local: is_local, fresh: fresh,
                     first: first, sent_before: sent_before, is_small: is_small, mtu: mtu, left: left, n: n};
endmodule
