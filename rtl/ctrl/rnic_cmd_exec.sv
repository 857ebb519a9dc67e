// SPDX-License-Identifier: Apache-2.0
// Command executor: judges a command, does it or lets the QP engine do it, and hands its completion over.
// Contract: one command at a time, in ring order; the fetch of the next ones and the writing of the completion before go on beside it.
// A refused command changes nothing. Destroying a region, a CQ or an SRQ makes it unusable first, and changing a region changes it first, then waits for one barrier
// through the engines, then completes. Every wait on others is bounded: a barrier by 2^DrainLog cycles, a QP command by four times
// that, both by 4096 cycles once the device is fatal; a wait that ends so completes with FATAL and pulses timeout_o.
// A command that is under way when the ring is restarted is done, but its completion is not written.
module rnic_cmd_exec
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned NumCq = 256,
    parameter int unsigned NumMr = 1024,
    parameter int unsigned NumSrq = 64,
    parameter bit HasSrq = 1'b1,
    parameter int unsigned MaxRqStride = 4,
    parameter int unsigned DrainLog = 22,
    localparam int unsigned CqW = $clog2(NumCq),
    localparam int unsigned MrW = $clog2(NumMr),
    localparam int unsigned SrqW = $clog2(NumSrq),
    localparam int unsigned EqW = $clog2(NUM_EQ)
) (
    input  logic clk_i,
    input  logic rst_i,
    input  logic restart_i,
    input  logic fatal_i,
    output logic timeout_o,
    input  logic cmd_valid_i,
    output logic cmd_ready_o,
    input  logic [511:0] cmd_i,
    input  logic cmd_rsvd_i,                 // it has a reserved bit set
    output logic [511:0] cmd_o,              // the one under way
    output logic cpl_valid_o,
    input  logic cpl_ready_i,
    output cmd_completion_t cpl_o,
    // QP commands
    output logic qp_cmd_valid_o,
    input  logic qp_cmd_ready_i,
    input  logic qp_cpl_valid_i,
    output logic qp_cpl_ready_o,
    input  qp_cpl_t qp_cpl_i,
    output logic drain_req_o,
    input  logic drain_ack_i,
    // what exists; the views of one object are those of cmd_o's handle, of a CQ that of cq_idx_o
    output logic [NUM_PD-1:0] pd_valid_o,
    input  logic cq_valid_i,
    input  logic [NUM_EQ-1:0] eq_valid_i,
    input  logic [NumSrq-1:0] srq_valid_i,
    output logic [NUM_XRCD-1:0] xrcd_valid_o,
    input  logic ask_ok_i,
    input  logic pd_used_i,
    input  logic cq_used_i,
    input  logic srq_used_i,
    input  logic xrcd_used_i,
    input  logic [15:0] srq_pd_i,
    input  logic [15:0] srq_limit_i,
    input  logic [15:0] srq_left_i,
    input  logic mr_valid_i,
    input  logic [7:0] mr_key_i,
    input  logic [15:0] mr_pd_i,
    input  mr_kind_e mr_kind_i,
    input  logic mr_bound_i,
    input  logic gid_ok_i,
    // what is done to the tables, with the parameters of cmd_o
    output logic mr_op_valid_o,              // contract: rnic_mr_op
    output mr_op_e mr_op_o,
    output logic mr_lock_o,
    input  logic mr_op_done_i,
    output logic [MrW-1:0] mr_idx_o,
    output logic mr_ref_o,                   // a region or SRQ begins (mr_ref_inc_o) or ceases to use a PD
    output logic mr_ref_inc_o,
    output logic [15:0] mr_ref_pd_o,
    output logic cq_op_valid_o,              // contract: rnic_cq
    input  logic cq_op_done_i,
    output cq_op_e cq_op_o,
    input  cmd_status_e cq_status_i,
    input  logic [23:0] cq_prod_i,
    output logic cq_clr_o,
    output logic [CqW-1:0] cq_idx_o,
    input  logic cq_idle_i,
    output logic srq_set_valid_o,
    input  logic srq_set_ready_i,
    output logic srq_limit_valid_o,
    input  logic srq_limit_ready_i,
    output logic srq_clr_o,
    output logic [SrqW-1:0] srq_idx_o,
    output logic eq_set_o,
    output logic eq_clr_o,
    input  logic eq_idle_i,
    output logic set_port_o,
    output logic set_gid_o,
    output logic set_pkey_o,
    output logic query_start_o,
    input  logic query_done_i
);
  localparam int unsigned PdW = $clog2(NUM_PD);
  localparam int unsigned XrcdW = $clog2(NUM_XRCD);
  localparam int unsigned WaitW = DrainLog + 3;
  localparam int unsigned GraceLog = (DrainLog < 12) ? DrainLog : 12;

  typedef enum logic [3:0] {
    ST_IDLE,      // no command
    ST_CHECK,     // tables are looked up
    ST_ACT,       // judged: done now, or begun
    ST_MR_OP,     // the key table makes, changes or drops an entry
    ST_CQ_OP,     // the CQ block makes, modifies or resizes a queue when it is idle
    ST_SRQ_SET,   // likewise the SRQ block a new queue or limit
    ST_QP_SEND,   // command is offered to the QP engine
    ST_QP_WAIT,   // QP engine works
    ST_QUERY,     // result is written
    ST_DRAIN,     // barrier through the engines
    ST_CQ_SETTLE, // what the CQ block had taken goes out
    ST_EQ_SETTLE, // what the EQ block had taken goes out
    ST_CPL        // completion is offered
  } state_e;
  state_e state_q;
  logic [511:0] cmd_q;
  logic rsvd_q;
  // verilator lint_off UNUSEDSIGNAL
  cmd_header_t hdr;                          // (the parameters are read where they are used)
  cmd_mr_t mr;
  cmd_cq_t cq;
  cmd_srq_t srq;
  // verilator lint_on UNUSEDSIGNAL
  assign hdr   = cmd_q;
  assign mr    = cmd_q;
  assign cq    = cmd_q;
  assign srq   = cmd_q;
  assign cmd_o = cmd_q;
  assign cmd_ready_o = state_q == ST_IDLE;

  // ---------------------------------------------------------------- free numbers, and what refers to an event queue
  logic pd_free, cq_free, mr_free, srq_free, xrcd_free, pd_make, mr_make, pd_free_put, cq_put, mr_put, srq_put, xrcd_make, xrcd_put, srq_set, cq_set;
  logic [PdW-1:0] pd_new, pd_idx, pd_asked;
  logic [CqW-1:0] cq_new, cq_idx;
  logic [MrW-1:0] mr_new, mr_idx;
  logic [SrqW-1:0] srq_new, srq_idx;
  logic [XrcdW-1:0] xrcd_new, xrcd_idx;
  logic [NUM_PD-1:0] pd_valid_q;
  logic [NUM_XRCD-1:0] xrcd_valid_q;
  assign pd_valid_o = pd_valid_q;
  assign pd_idx     = (hdr.opcode == CMD_OPCODE_CREATE_PD) ? pd_new : pd_asked;
  assign cq_idx     = CqW'(hdr.handle);
  assign mr_idx     = MrW'(hdr.handle >> 8);
  assign srq_idx    = SrqW'(hdr.handle);
  assign xrcd_idx   = xrcd_make ? xrcd_new : XrcdW'(hdr.handle);
  assign xrcd_valid_o = xrcd_valid_q;
  // Numbers of all tables: as wide as the longest of them.
  localparam int unsigned N1 = (NumMr > NUM_PD) ? NumMr : NUM_PD;
  localparam int unsigned N2 = (NumCq > NumSrq) ? NumCq : NumSrq;
  localparam int unsigned NumW = $clog2((N1 > N2) ? N1 : N2);
  localparam logic [4:0][NumW:0] Counts = {(NumW + 1)'(NUM_XRCD), (NumW + 1)'(NumSrq), (NumW + 1)'(NumCq), (NumW + 1)'(NumMr), (NumW + 1)'(NUM_PD)};
  // verilator lint_off UNUSEDSIGNAL
  logic [4:0][NumW-1:0] num;                 // (of a short table short)
  // verilator lint_on UNUSEDSIGNAL
  assign {xrcd_new, srq_new, cq_new, mr_new, pd_new} = {XrcdW'(num[4]), SrqW'(num[3]), CqW'(num[2]), MrW'(num[1]), PdW'(num[0])};
  rnic_free_lists #(.Lists(5), .IdxW(NumW), .First({{3{(NumW + 1)'(0)}}, (NumW + 1)'(1), (NumW + 1)'(0)}), .N(Counts)) u_free (
      .clk_i, .rst_i, .valid_o({xrcd_free, srq_free, cq_free, mr_free, pd_free}), .idx_o(num),
      .take_i({xrcd_make, srq_set, cq_set, mr_make, pd_make}), .put_i({xrcd_put, srq_put, cq_put, mr_put, pd_free_put}),
      .put_idx_i(mr_put ? NumW'(mr_idx) : NumW'(hdr.handle))
  );
  // The bits that tell which PDs exist, a row at a time: they are read in a memory beside them, where a row counts once it was written.
  localparam int unsigned RowW = (PdW > 4) ? 4 : PdW;
  localparam int unsigned Rows = 1 << RowW;
  localparam int unsigned Cols = NUM_PD / Rows;
  logic [Cols-1:0] pd_mem[Rows];
  logic [Cols-1:0] pd_row, pd_row_new;
  logic [Rows-1:0] row_used_q;
  logic pd_valid;
  assign pd_row   = row_used_q[pd_idx[RowW-1:0]] ? pd_mem[pd_idx[RowW-1:0]] : '0;
  assign pd_valid = 1'(pd_row >> (pd_idx >> RowW));
  always_comb for (int unsigned j = 0; j < Cols; j++) pd_row_new[j] = ((pd_idx >> RowW) == PdW'(j)) ? pd_make : pd_row[j];

  logic [EqW-1:0] cq_eq, ref_eq;             // event queue of the CQ named by the handle; the one whose count is looked at
  logic [CqW:0] eq_ref_q[NUM_EQ];
  logic [CqW:0] eq_ref;
  // Nobody uses what is read while a queue is made.
  rnic_ram #(.Width(EqW), .Depth(NumCq), .Bypass(1'b0)) u_cq_eq (
      .clk_i, .we_i(cq_set), .waddr_i(cq_new), .wdata_i(EqW'(cq.eq)), .re_i(1'b1), .raddr_i(cq_idx), .rdata_o(cq_eq)
  );
  assign ref_eq = (hdr.opcode == CMD_OPCODE_CREATE_CQ) ? EqW'(cq.eq) : (hdr.opcode == CMD_OPCODE_DESTROY_CQ) ? cq_eq : EqW'(hdr.handle);
  assign eq_ref = eq_ref_q[ref_eq];

  cmd_status_e status;
  logic [31:0] detail;
  rnic_cmd_check #(.NumCq(NumCq), .NumMr(NumMr), .NumSrq(NumSrq), .HasSrq(HasSrq), .MaxRqStride(MaxRqStride)) u_check (
      .clk_i, .cmd_i(cmd_q), .rsvd_i(rsvd_q), .fatal_i, .pd_o(pd_asked), .pd_valid_i(pd_valid), .cq_valid_i, .eq_valid_i, .eq_used_i(eq_ref != '0), .srq_valid_i,
      .xrcd_valid_i(xrcd_valid_q), .pd_used_i, .cq_used_i, .srq_used_i, .xrcd_used_i, .mr_valid_i, .mr_key_i, .mr_kind_i, .mr_bound_i,
      .pd_free_i(pd_free), .cq_free_i(cq_free), .mr_free_i(mr_free), .srq_free_i(srq_free), .xrcd_free_i(xrcd_free), .gid_ok_i,
      .status_o(status), .detail_o(detail)
  );

  // ---------------------------------------------------------------- what is done
  logic act;
  assign act            = state_q == ST_ACT && status == CMD_STATUS_OK;
  assign pd_make        = act && hdr.opcode == CMD_OPCODE_CREATE_PD;
  assign pd_free_put    = act && hdr.opcode == CMD_OPCODE_DESTROY_PD;
  // An entry is looked at first, and nobody changes it until it was judged and what is to be done to it is done.
  logic rereg, mr_looks, mr_op_end, mr_looked_q, mr_drop;
  assign rereg          = hdr.opcode == CMD_OPCODE_REREG_MR;
  assign mr_looks       = rereg || hdr.opcode == CMD_OPCODE_DESTROY_MR;
  assign mr_op_valid_o  = (state_q == ST_CHECK && mr_looks && !mr_looked_q) || state_q == ST_MR_OP;
  assign mr_op_o        = (state_q == ST_CHECK) ? MR_OP_LOOK : rereg ? MR_OP_REREG : (hdr.opcode == CMD_OPCODE_CREATE_MR) ? MR_OP_MAKE : MR_OP_DROP;
  assign mr_lock_o      = state_q inside {ST_CHECK, ST_ACT, ST_MR_OP};
  assign mr_op_end      = state_q == ST_MR_OP && mr_op_done_i;
  assign mr_make        = mr_op_end && hdr.opcode == CMD_OPCODE_CREATE_MR;
  assign mr_drop        = mr_op_end && hdr.opcode == CMD_OPCODE_DESTROY_MR;
  assign mr_idx_o       = (hdr.opcode == CMD_OPCODE_CREATE_MR) ? mr_new : mr_idx;
  assign xrcd_make      = act && hdr.opcode == CMD_OPCODE_CREATE_XRCD;
  assign xrcd_put       = act && hdr.opcode == CMD_OPCODE_DESTROY_XRCD;
  assign srq_set_valid_o   = state_q == ST_SRQ_SET && hdr.opcode == CMD_OPCODE_CREATE_SRQ;
  assign srq_limit_valid_o = state_q == ST_SRQ_SET && hdr.opcode == CMD_OPCODE_MODIFY_SRQ;
  assign srq_set        = srq_set_valid_o && srq_set_ready_i;
  assign srq_clr_o      = act && hdr.opcode == CMD_OPCODE_DESTROY_SRQ;
  assign srq_idx_o      = (hdr.opcode == CMD_OPCODE_CREATE_SRQ) ? srq_new : srq_idx;
  logic mr_pd_old, mr_pd_new;                // a region leaves its PD, and enters another
  assign mr_pd_old      = act && rereg && mr.change[MR_CHANGE_PD];
  assign mr_pd_new      = mr_op_end && rereg && mr.change[MR_CHANGE_PD];
`ifdef RNIC_CUT_SRQ_PD_REF
  assign mr_ref_o       = mr_make || mr_drop || mr_pd_old || mr_pd_new;
`else
  assign mr_ref_o       = mr_make || mr_drop || srq_set || srq_clr_o || mr_pd_old || mr_pd_new;
`endif
  assign mr_ref_inc_o   = mr_make || srq_set || mr_pd_new;
  assign mr_ref_pd_o    = (mr_make || mr_pd_new) ? mr.pd : srq_set ? srq.pd : srq_clr_o ? srq_pd_i : mr_pd_i;
  assign cq_op_valid_o  = state_q == ST_CQ_OP;
  assign cq_op_o        = (hdr.opcode == CMD_OPCODE_CREATE_CQ) ? CQ_OP_CREATE : (hdr.opcode == CMD_OPCODE_MODIFY_CQ) ? CQ_OP_MODIFY : CQ_OP_RESIZE;
  assign cq_set         = cq_op_valid_o && cq_op_done_i && hdr.opcode == CMD_OPCODE_CREATE_CQ;
  assign cq_clr_o       = act && hdr.opcode == CMD_OPCODE_DESTROY_CQ;
  assign cq_idx_o       = (hdr.opcode == CMD_OPCODE_CREATE_CQ) ? cq_new : cq_idx;
  assign eq_set_o       = act && hdr.opcode == CMD_OPCODE_CREATE_EQ;
  assign eq_clr_o       = act && hdr.opcode == CMD_OPCODE_DESTROY_EQ;
  assign set_port_o     = act && hdr.opcode == CMD_OPCODE_SET_PORT;
  assign set_gid_o      = act && hdr.opcode == CMD_OPCODE_SET_GID;
  assign set_pkey_o     = act && hdr.opcode == CMD_OPCODE_SET_PKEY;
  assign query_start_o  = act && (hdr.opcode == CMD_OPCODE_QUERY_DEVICE || hdr.opcode == CMD_OPCODE_QUERY_COUNTERS);
  assign qp_cmd_valid_o = state_q == ST_QP_SEND;
  assign qp_cpl_ready_o = state_q == ST_QP_WAIT || fatal_i;   // one that comes too late is thrown away

  // A number is free again when nothing of its old object can happen any more.
  logic settled;
  assign settled = state_q == ST_EQ_SETTLE && eq_idle_i;
  assign cq_put  = settled && hdr.opcode == CMD_OPCODE_DESTROY_CQ;
  assign srq_put = settled && hdr.opcode == CMD_OPCODE_DESTROY_SRQ;
  assign mr_put  = state_q == ST_DRAIN && drain_req_o && drain_ack_i && hdr.opcode == CMD_OPCODE_DESTROY_MR;

  // ---------------------------------------------------------------- bounds
  logic [WaitW-1:0] wait_q;
  logic fatal_seen_q, waits, expired, gone_q;   // gone_q: the command belongs to a ring that was restarted
  assign waits     = state_q == ST_QP_SEND || state_q == ST_QP_WAIT || state_q == ST_DRAIN;
`ifdef RNIC_CUT_CMD_BOUND
  assign expired   = waits && fatal_i && !fatal_i;
`else
  assign expired   = waits && fatal_i == fatal_seen_q
      && (fatal_i ? wait_q[GraceLog] : (state_q == ST_DRAIN) ? wait_q[DrainLog] : wait_q[DrainLog+2]);
`endif
  assign timeout_o = expired;

  cmd_completion_t res_q;
  logic [31:0] cycles_q;
  assign cpl_valid_o = state_q == ST_CPL && !gone_q;
  always_comb begin
    cpl_o             = res_q;
    cpl_o.exec_cycles = cycles_q;
  end

  // ---------------------------------------------------------------- what the completion tells
  logic qp_told, resize_told, resize_bad;
  logic [31:0] made;                         // of a command that is done now, or begun
  assign qp_told     = state_q == ST_QP_WAIT && qp_cpl_valid_i;
  assign resize_told = state_q == ST_CQ_OP && cq_op_done_i && hdr.opcode == CMD_OPCODE_RESIZE_CQ;
  assign resize_bad  = resize_told && cq_status_i != CMD_STATUS_OK;
  always_comb begin
    made = hdr.handle;
    unique case (hdr.opcode)
      CMD_OPCODE_CREATE_PD: made = 32'(pd_new);
      CMD_OPCODE_CREATE_MR: made = {24'(mr_new), mr.key};
      CMD_OPCODE_REREG_MR: made[7:0] = mr.key;
      CMD_OPCODE_CREATE_CQ: made = 32'(cq_new);
      CMD_OPCODE_CREATE_XRCD: made = 32'(xrcd_new);
      CMD_OPCODE_CREATE_SRQ: if (HasSrq) made = 32'(srq_new);
      CMD_OPCODE_QUERY_SRQ: if (HasSrq) made = 32'(srq_left_i);
      default: ;
    endcase
  end
  always_ff @(posedge clk_i) begin
    if (state_q == ST_ACT) begin
      res_q.tag    <= hdr.tag;
      res_q.opcode <= hdr.opcode;
    end
    {res_q.rsvd_0, res_q.phase, res_q.rsvd_1, res_q.exec_cycles} <= '0;
    // Each of its own: what is cleared then, and loaded else.
    if (state_q == ST_ACT) {res_q.rule, res_q.offender, res_q.offender_index} <= '0;
    else if (qp_told) {res_q.rule, res_q.offender, res_q.offender_index} <= {qp_cpl_i.rule, qp_cpl_i.offender, qp_cpl_i.offender_index};
    if (state_q == ST_ACT) res_q.count <= (HasSrq && act && hdr.opcode == CMD_OPCODE_QUERY_SRQ) ? 32'(srq_limit_i) : '0;
    else if (qp_told || (resize_told && !resize_bad)) res_q.count <= (state_q == ST_CQ_OP) ? 32'(cq_prod_i) : qp_cpl_i.count;
    if (state_q == ST_ACT || qp_told) res_q.detail <= (state_q == ST_ACT) ? detail : qp_cpl_i.detail;
    if (expired) res_q.status <= CMD_STATUS_FATAL;
    else if (state_q == ST_ACT || qp_told || resize_told) res_q.status <= (state_q == ST_ACT) ? status : (state_q == ST_CQ_OP) ? cq_status_i : qp_cpl_i.status;
    if (expired || resize_bad || (state_q == ST_ACT && !act)) res_q.handle <= '0;
    else if (state_q == ST_ACT || qp_told) res_q.handle <= (state_q == ST_ACT) ? made : qp_cpl_i.handle;
  end

  always_ff @(posedge clk_i) begin
    if (state_q == ST_CHECK) cycles_q <= '0;
    else cycles_q <= cycles_q + 32'd1;
    fatal_seen_q <= fatal_i;
    wait_q       <= (!waits || fatal_i != fatal_seen_q) ? '0 : wait_q + WaitW'(1);
    if (restart_i && state_q != ST_IDLE) gone_q <= 1'b1;
    unique case (state_q)
      ST_IDLE: begin
        gone_q <= 1'b0;
        if (cmd_valid_i && !restart_i) begin
          cmd_q   <= cmd_i;
          rsvd_q  <= cmd_rsvd_i;
          state_q <= ST_CHECK;
          mr_looked_q <= 1'b0;
        end
      end
      ST_CHECK: begin
        if (mr_op_done_i) mr_looked_q <= 1'b1;
        // Reference counts must not be looked up while one is being updated.
        if (ask_ok_i && (!mr_looks || mr_looked_q)) state_q <= ST_ACT;
      end
      ST_ACT: begin
        state_q <= ST_CPL;
        if (act) begin
          unique case (hdr.opcode)
            CMD_OPCODE_CREATE_MR, CMD_OPCODE_REREG_MR, CMD_OPCODE_DESTROY_MR: state_q <= ST_MR_OP;
            CMD_OPCODE_CREATE_CQ, CMD_OPCODE_MODIFY_CQ, CMD_OPCODE_RESIZE_CQ: state_q <= ST_CQ_OP;
            CMD_OPCODE_CREATE_SRQ, CMD_OPCODE_MODIFY_SRQ: state_q <= ST_SRQ_SET;
            CMD_OPCODE_DESTROY_CQ, CMD_OPCODE_DESTROY_SRQ: state_q <= ST_DRAIN;
            CMD_OPCODE_CREATE_EQ, CMD_OPCODE_DESTROY_EQ: state_q <= ST_EQ_SETTLE;
            CMD_OPCODE_QUERY_DEVICE, CMD_OPCODE_QUERY_COUNTERS: state_q <= ST_QUERY;
            CMD_OPCODE_CREATE_QP, CMD_OPCODE_INSTALL_QP, CMD_OPCODE_MODIFY_QP, CMD_OPCODE_DESTROY_QP, CMD_OPCODE_QUERY_QP, CMD_OPCODE_LIST_QP:
            state_q <= ST_QP_SEND;
            default: ;
          endcase
        end
      end
      ST_MR_OP: if (mr_op_done_i) state_q <= (hdr.opcode == CMD_OPCODE_CREATE_MR) ? ST_CPL : ST_DRAIN;
      ST_CQ_OP: if (cq_op_done_i) state_q <= ST_CPL;
      ST_SRQ_SET: if ((srq_set_valid_o && srq_set_ready_i) || (srq_limit_valid_o && srq_limit_ready_i)) state_q <= ST_CPL;
      ST_QP_SEND: if (qp_cmd_ready_i) state_q <= ST_QP_WAIT;
      ST_QP_WAIT: if (qp_cpl_valid_i) state_q <= ST_CPL;
      ST_QUERY: if (query_done_i) state_q <= ST_CPL;
      ST_DRAIN: begin
`ifdef RNIC_CUT_CMD_DRAIN
        state_q <= ST_CQ_SETTLE;
`else
        // An answer to an earlier request is waited out first.
        drain_req_o <= drain_req_o ? !drain_ack_i : !drain_ack_i && !expired;
        if (drain_req_o && drain_ack_i)
          state_q <= (hdr.opcode == CMD_OPCODE_DESTROY_CQ) ? ST_CQ_SETTLE : (hdr.opcode == CMD_OPCODE_DESTROY_SRQ) ? ST_EQ_SETTLE : ST_CPL;
`endif
      end
      ST_CQ_SETTLE: if (cq_idle_i) state_q <= ST_EQ_SETTLE;
      ST_EQ_SETTLE: if (eq_idle_i) state_q <= ST_CPL;
      default: if (cpl_ready_i || gone_q) state_q <= ST_IDLE;
    endcase
    if (expired) begin
      state_q     <= ST_CPL;
      drain_req_o <= 1'b0;
    end
    if (pd_make || pd_free_put) begin
      pd_mem[pd_idx[RowW-1:0]]     <= pd_row_new;
      row_used_q[pd_idx[RowW-1:0]] <= 1'b1;
      for (int unsigned j = 0; j < Cols; j++) pd_valid_q[j*Rows+32'(pd_idx[RowW-1:0])] <= pd_row_new[j];
    end
    if (xrcd_make || xrcd_put) xrcd_valid_q[xrcd_idx] <= xrcd_make;
    if (cq_set || cq_clr_o) eq_ref_q[ref_eq] <= cq_set ? eq_ref + (CqW + 1)'(1) : eq_ref - (CqW + 1)'(1);
    if (rst_i) begin
      state_q      <= ST_IDLE;
      pd_valid_q   <= '0;
      row_used_q   <= '0;
      xrcd_valid_q <= '0;
      drain_req_o  <= 1'b0;
      fatal_seen_q <= 1'b0;
      gone_q       <= 1'b0;
      for (int unsigned i = 0; i < NUM_EQ; i++) eq_ref_q[i] <= '0;
    end
  end

`ifdef FORMAL_CMD_EXEC
`include "rnic_cmd_exec.svh"
`endif
endmodule
