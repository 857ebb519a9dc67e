// SPDX-License-Identifier: Apache-2.0
// Command executor: decodes one command at a time, does what concerns PDs, regions, CQs, event queues and the port itself, hands QP commands on,
// and makes the completion.
// Contract: commands complete in the order given. A refused command changes nothing. Every wait is bounded: QP commands by their own
// contract, a drain by DrainCycles, after which the device is fatal (drain_timeout_o) and the command ends with FATAL.
module rnic_cmd_exec
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned NumCq = 256,
    parameter int unsigned NumMr = 1024,
    parameter int unsigned DrainCycles = 1 << 22,
    localparam int unsigned PdW = $clog2(NUM_PD),
    localparam int unsigned CqW = $clog2(NumCq),
    localparam int unsigned MrW = $clog2(NumMr),
    localparam int unsigned EqW = $clog2(NUM_EQ)
) (
    input  logic clk_i,
    input  logic rst_i,
    input  logic fatal_i,
    input  logic cmd_valid_i,
    output logic cmd_ready_o,
    input  logic [511:0] cmd_i,
    output logic cpl_valid_o,
    input  logic cpl_ready_i,
    output cmd_completion_t cpl_o,
    output logic refused_o,
    output logic ok_o,
    // QP commands
    output logic qp_cmd_valid_o,
    input  logic qp_cmd_ready_i,
    output cmd_qp_t qp_cmd_o,
    input  logic qp_cpl_valid_i,
    output logic qp_cpl_ready_o,
    input  qp_cpl_t qp_cpl_i,
    // objects
    output logic [NUM_PD-1:0] pd_valid_o,
    input  logic pd_used_i,
    input  logic cq_used_i,
    output logic [15:0] ask_pd_o,
    output logic [15:0] ask_cq_o,
    output logic ref_mr_valid_o,
    output logic ref_mr_inc_o,
    output logic [15:0] ref_mr_pd_o,
    input  logic [NumCq-1:0] cq_valid_i,
    output logic cq_set_valid_o,
    input  logic cq_set_ready_i,
    output logic cq_clr_o,
    output logic [CqW-1:0] cq_idx_o,
    output cmd_cq_t cq_cmd_o,
    input  logic [NUM_EQ-1:0] eq_valid_i,
    output logic eq_set_o,
    output logic eq_clr_o,
    output logic [EqW-1:0] eq_idx_o,
    output cmd_eq_t eq_cmd_o,
    output logic mr_set_o,
    output logic mr_clr_o,
    output logic [MrW-1:0] mr_idx_o,
    output cmd_mr_t mr_cmd_o,
    input  logic mr_look_valid_i,
    input  logic [7:0] mr_look_key_i,
    input  logic [15:0] mr_look_pd_i,
    // port
    output logic set_port_o,
    output logic set_gid_o,
    output logic set_pkey_o,
    input  logic gid_ok_i,
    output logic [511:0] cmd_o,              // the command under way, for whoever reads its fields
    // queries
    output logic query_start_o,
    output logic query_counters_o,
    input  logic query_done_i,
    output logic drain_req_o,
    input  logic drain_ack_i,
    output logic drain_timeout_o
);
  typedef enum logic [3:0] {
    Idle,      // no command
    Decode,    // the command is registered: judge and dispatch
    Scan,      // look for a free entry, one a cycle
    Refs,      // the reference counts answer in the next cycle
    Destroy,   // used?
    CqSet,     // the CQ writer takes the new context
    QpGo,      // the QP block takes the command
    QpWait,    // and answers
    Query,     // results go out
    Drain,     // barrier after a deregistration
    Done       // completion is offered
  } state_e;
  state_e state_q;
  logic [511:0] cmd_q;
  // (of each layout, only the fields that are judged here)
  // verilator lint_off UNUSEDSIGNAL
  cmd_header_t h;
  cmd_port_t c_port;
  cmd_out_t c_out;
  // verilator lint_on UNUSEDSIGNAL
  cmd_mr_t c_mr;
  cmd_cq_t c_cq;
  cmd_eq_t c_eq;
  assign h      = cmd_header_t'(cmd_q);
  assign c_port = cmd_port_t'(cmd_q);
  assign c_out  = cmd_out_t'(cmd_q);
  assign c_mr   = cmd_mr_t'(cmd_q);
  assign c_cq   = cmd_cq_t'(cmd_q);
  assign c_eq   = cmd_eq_t'(cmd_q);
  assign cmd_o  = cmd_q;

  logic [NUM_PD-1:0] pd_q;
  assign pd_valid_o = pd_q;
  // Search pointers go round, so that a handle is not used again at once.
  logic [PdW-1:0] pd_ptr_q;
  logic [CqW-1:0] cq_ptr_q;
  logic [MrW-1:0] mr_ptr_q;
  logic [16:0] steps_q;
  logic [31:0] exec_q, drain_cnt_q;
  cmd_completion_t cpl_q;

  logic is_qp, is_query, is_create, out_aligned;
  logic [63:0] mr_end_va, mr_end_host;
  assign is_qp    = h.opcode[7:4] == 4'h4;
  assign is_query = h.opcode == CMD_OPCODE_QUERY_DEVICE || h.opcode == CMD_OPCODE_QUERY_COUNTERS;
  assign is_create = h.opcode == CMD_OPCODE_CREATE_PD || h.opcode == CMD_OPCODE_CREATE_MR || h.opcode == CMD_OPCODE_CREATE_CQ;
  assign out_aligned = c_out.out_addr[5:0] == '0;
  assign mr_end_va   = c_mr.va + c_mr.length - 64'd1;
  assign mr_end_host = c_mr.host_addr + c_mr.length - 64'd1;

  // ---------------------------------------------------------------- judgement of everything but QP commands
  cmd_status_e verdict;
  logic [31:0] verdict_detail;
  logic writes_remote;
  assign writes_remote = c_mr.access[ACCESS_REMOTE_WRITE] || c_mr.access[ACCESS_REMOTE_ATOMIC];
  always_comb begin
    verdict        = CMD_STATUS_OK;
    verdict_detail = '0;
    if (fatal_i) verdict = CMD_STATUS_FATAL;
    else if (!cmd_known(h.opcode)) verdict = CMD_STATUS_BAD_OPCODE;
    else if ((cmd_q & cmd_rsvd_mask(h.opcode)) != '0) verdict = CMD_STATUS_RESERVED_SET;
    else
      unique case (h.opcode)
        CMD_OPCODE_QUERY_DEVICE, CMD_OPCODE_QUERY_COUNTERS: if (!out_aligned) bad(32'd56);
        CMD_OPCODE_SET_PORT:
        if (h.handle == '0 || h.handle > 32'(NUM_PORTS)) verdict = CMD_STATUS_BAD_HANDLE;
        else if (c_port.mac == '0 || c_port.mac[0]) bad(32'd8);
        else if (c_port.mtu < 8'(MTU_256) || c_port.mtu > 8'(MTU_4096)) bad(32'd14);
        CMD_OPCODE_SET_GID:
        if (h.handle >= 32'(NUM_GID)) verdict = CMD_STATUS_BAD_HANDLE;
        else if (!gid_ok_i) verdict = CMD_STATUS_UNSUPPORTED;
        CMD_OPCODE_SET_PKEY: if (h.handle >= 32'(NUM_PKEY)) verdict = CMD_STATUS_BAD_HANDLE;
        CMD_OPCODE_DESTROY_PD: if (h.handle >= 32'(NUM_PD) || !pd_q[PdW'(h.handle)]) verdict = CMD_STATUS_BAD_HANDLE;
        CMD_OPCODE_CREATE_MR:
        if (c_mr.pd >= 16'(NUM_PD) || !pd_q[PdW'(c_mr.pd)]) verdict = CMD_STATUS_BAD_HANDLE;
        else if (c_mr.access[7:4] != '0 || (writes_remote && !c_mr.access[ACCESS_LOCAL_WRITE])) bad(32'd10);
        else if (c_mr.length == '0 || c_mr.length > (64'd1 << 48)) bad(32'd24);
        else if (mr_end_va < c_mr.va) bad(32'd16);
        else if (mr_end_host < c_mr.host_addr) bad(32'd32);
        CMD_OPCODE_DESTROY_MR:
        if (h.handle[31:8] >= 24'(NumMr) || !mr_look_valid_i || mr_look_key_i != h.handle[7:0]) verdict = CMD_STATUS_BAD_HANDLE;
        CMD_OPCODE_CREATE_CQ:
        if (c_cq.log_size == '0 || c_cq.log_size > 8'd16) bad(32'd8);
        else if (c_cq.eq >= 8'(NUM_EQ) || !eq_valid_i[EqW'(c_cq.eq)]) bad(32'd9);
        else if (c_cq.uar >= 8'(NUM_UAR)) bad(32'd10);
        else if (c_cq.base[5:0] != '0) bad(32'd16);
        CMD_OPCODE_DESTROY_CQ: if (h.handle >= 32'(NumCq) || !cq_valid_i[CqW'(h.handle)]) verdict = CMD_STATUS_BAD_HANDLE;
        CMD_OPCODE_CREATE_EQ:
        if (h.handle >= 32'(NUM_EQ)) verdict = CMD_STATUS_BAD_HANDLE;
        else if (eq_valid_i[EqW'(h.handle)]) verdict = CMD_STATUS_IN_USE;
        else if (c_eq.log_size == '0 || c_eq.log_size > 8'd16) bad(32'd8);
        else if (c_eq.base[5:0] != '0) bad(32'd16);
        CMD_OPCODE_DESTROY_EQ: if (h.handle >= 32'(NUM_EQ) || !eq_valid_i[EqW'(h.handle)]) verdict = CMD_STATUS_BAD_HANDLE;
        default: ;
      endcase
  end
  function automatic void bad(logic [31:0] offset);
    verdict        = CMD_STATUS_BAD_PARAM;
    verdict_detail = offset;
  endfunction

  logic go, free_here, give_up;
  logic [CqW-1:0] cq_next;
  assign go = state_q == Decode && verdict == CMD_STATUS_OK;
  always_comb begin
    unique case (h.opcode)
      CMD_OPCODE_CREATE_PD: begin
        free_here = !pd_q[pd_ptr_q] && pd_ptr_q != '0;
        give_up   = steps_q == 17'(NUM_PD);
      end
      CMD_OPCODE_CREATE_CQ: begin
        free_here = !cq_valid_i[cq_ptr_q];
        give_up   = steps_q == 17'(NumCq);
      end
      default: begin
        free_here = !mr_look_valid_i && mr_ptr_q != '0;
        give_up   = steps_q == 17'(NumMr);
      end
    endcase
  end
  logic take_entry, destroy_now, used;
  assign take_entry  = state_q == Scan && free_here;
  assign used        = (h.opcode == CMD_OPCODE_DESTROY_PD) ? pd_used_i : (h.opcode == CMD_OPCODE_DESTROY_CQ) ? cq_used_i : 1'b0;
  assign destroy_now = state_q == Destroy && !used;
  assign cq_next     = cq_ptr_q;

  assign ask_pd_o       = h.handle[15:0];
  assign ask_cq_o       = h.handle[15:0];
  assign mr_idx_o       = (h.opcode == CMD_OPCODE_CREATE_MR) ? mr_ptr_q : MrW'(h.handle >> 8);
  assign mr_cmd_o       = c_mr;
  assign mr_set_o       = take_entry && h.opcode == CMD_OPCODE_CREATE_MR;
  assign mr_clr_o       = destroy_now && h.opcode == CMD_OPCODE_DESTROY_MR;
  assign ref_mr_valid_o = mr_set_o || mr_clr_o;
  assign ref_mr_inc_o   = mr_set_o;
  assign ref_mr_pd_o    = mr_set_o ? c_mr.pd : mr_look_pd_i;
  assign cq_set_valid_o = state_q == CqSet;
  assign cq_clr_o       = destroy_now && h.opcode == CMD_OPCODE_DESTROY_CQ;
  assign cq_idx_o       = (h.opcode == CMD_OPCODE_CREATE_CQ) ? cq_next : CqW'(h.handle);
  assign cq_cmd_o       = c_cq;
  assign eq_set_o       = go && h.opcode == CMD_OPCODE_CREATE_EQ;
  assign eq_clr_o       = go && h.opcode == CMD_OPCODE_DESTROY_EQ;
  assign eq_idx_o       = EqW'(h.handle);
  assign eq_cmd_o       = c_eq;
  assign set_port_o     = go && h.opcode == CMD_OPCODE_SET_PORT;
  assign set_gid_o      = go && h.opcode == CMD_OPCODE_SET_GID;
  assign set_pkey_o     = go && h.opcode == CMD_OPCODE_SET_PKEY;
  assign query_start_o    = go && is_query;
  assign query_counters_o = h.opcode == CMD_OPCODE_QUERY_COUNTERS;
  assign qp_cmd_valid_o   = state_q == QpGo;
  assign qp_cmd_o         = cmd_qp_t'(cmd_q);
  assign qp_cpl_ready_o   = state_q == QpWait;
  assign drain_req_o      = state_q == Drain;
  assign drain_timeout_o  = state_q == Drain && drain_cnt_q == 32'(DrainCycles);
  assign cmd_ready_o      = state_q == Idle;
  assign cpl_valid_o      = state_q == Done;
  always_comb begin
    cpl_o             = cpl_q;
    cpl_o.exec_cycles = exec_q;
  end
  assign ok_o      = cpl_valid_o && cpl_ready_i && cpl_q.status == CMD_STATUS_OK;
  assign refused_o = cpl_valid_o && cpl_ready_i && cpl_q.status != CMD_STATUS_OK;

  always_ff @(posedge clk_i) begin
    exec_q      <= exec_q + 32'd1;
    drain_cnt_q <= (state_q == Drain) ? drain_cnt_q + 32'd1 : '0;
    unique case (state_q)
      Idle:
      if (cmd_valid_i) begin
        cmd_q   <= cmd_i;
        exec_q  <= '0;
        state_q <= Decode;
      end
      Decode: begin
        cpl_q        <= '0;
        cpl_q.tag    <= h.tag;
        cpl_q.opcode <= h.opcode;
        cpl_q.status <= verdict;
        cpl_q.detail <= verdict_detail;
        cpl_q.handle <= (verdict == CMD_STATUS_OK) ? h.handle : '0;
        steps_q      <= '0;
        if (verdict != CMD_STATUS_OK) state_q <= Done;
        else if (is_qp) state_q <= QpGo;
        else if (is_query) state_q <= Query;
        else if (is_create) state_q <= Scan;
        else if (h.opcode == CMD_OPCODE_DESTROY_PD || h.opcode == CMD_OPCODE_DESTROY_CQ || h.opcode == CMD_OPCODE_DESTROY_MR) state_q <= Refs;
        else state_q <= Done;
      end
      Scan: begin
        steps_q <= steps_q + 17'd1;
        if (free_here) begin
          state_q <= Done;
          unique case (h.opcode)
            CMD_OPCODE_CREATE_PD: begin
              pd_q[pd_ptr_q] <= 1'b1;
              cpl_q.handle   <= 32'(pd_ptr_q);
              pd_ptr_q       <= pd_ptr_q + PdW'(1);
            end
            CMD_OPCODE_CREATE_CQ: begin
              cpl_q.handle <= 32'(cq_ptr_q);
              state_q      <= CqSet;
            end
            default: begin
              cpl_q.handle <= {24'(mr_ptr_q), c_mr.key};
              mr_ptr_q     <= mr_ptr_q + MrW'(1);
            end
          endcase
        end else begin
          pd_ptr_q <= pd_ptr_q + PdW'(h.opcode == CMD_OPCODE_CREATE_PD);
          cq_ptr_q <= cq_ptr_q + CqW'(h.opcode == CMD_OPCODE_CREATE_CQ);
          mr_ptr_q <= mr_ptr_q + MrW'(h.opcode == CMD_OPCODE_CREATE_MR);
          if (give_up) begin
            cpl_q.status <= CMD_STATUS_NO_RESOURCES;
            cpl_q.handle <= '0;
            state_q      <= Done;
          end
        end
      end
      Refs: state_q <= Destroy;
      Destroy: begin
        if (used) begin
`ifdef RNIC_CUT_IN_USE
          state_q <= Done;
`else
          cpl_q.status <= CMD_STATUS_IN_USE;
          state_q      <= Done;
`endif
        end else begin
          if (h.opcode == CMD_OPCODE_DESTROY_PD) pd_q[PdW'(h.handle)] <= 1'b0;
          state_q <= (h.opcode == CMD_OPCODE_DESTROY_MR) ? Drain : Done;
        end
      end
      CqSet:
      if (cq_set_ready_i) begin
        cq_ptr_q <= cq_ptr_q + CqW'(1);
        state_q  <= Done;
      end
      QpGo: if (qp_cmd_ready_i) state_q <= QpWait;
      QpWait:
      if (qp_cpl_valid_i) begin
        cpl_q.status         <= qp_cpl_i.status;
        cpl_q.rule           <= qp_cpl_i.rule;
        cpl_q.handle         <= qp_cpl_i.handle;
        cpl_q.count          <= qp_cpl_i.count;
        cpl_q.offender       <= qp_cpl_i.offender;
        cpl_q.detail         <= qp_cpl_i.detail;
        cpl_q.offender_index <= qp_cpl_i.offender_index;
        state_q              <= Done;
      end
      Query: if (query_done_i) state_q <= Done;
      Drain:
      if (drain_ack_i) state_q <= Done;
      else if (drain_timeout_o) begin
        cpl_q.status <= CMD_STATUS_FATAL;
        state_q      <= Done;
      end
      default: if (cpl_ready_i) state_q <= Idle;
    endcase
    if (rst_i) begin
      state_q  <= Idle;
      pd_q     <= '0;
      pd_ptr_q <= PdW'(1);
      cq_ptr_q <= CqW'(1);
      mr_ptr_q <= MrW'(1);
    end
  end
endmodule
