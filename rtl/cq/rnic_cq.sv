// SPDX-License-Identifier: Apache-2.0
// Completion queues: contexts, CQE writer, doorbells and arming.
// Contract: CQEs are taken round robin, one at a time, and written in the order taken. A completion for a full queue is taken and not
// written: the queue is in error from then on, CQ_ERR is raised once, and each QP that still completes into it is reported
// (qp_err). The event of an armed queue is asked for after its CQE was accepted by the write service. Doorbells are never held
// back. Each array has one writer: prod, fired and bad the CQE writer, cons and armed the doorbell (create goes through both).
module rnic_cq
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned DataW = 64,
    parameter int unsigned NumCq = 256,
    parameter int unsigned NumReq = 2,
    localparam int unsigned CqW = $clog2(NumCq)
) (
    input  logic clk_i,
    input  logic rst_i,
    input  logic [63:0] cycles_i,
    // commands
    input  logic set_valid_i,                // held until set_ready_o
    output logic set_ready_o,
    input  logic clr_i,
    input  logic [CqW-1:0] idx_i,
    input  logic [4:0] log_size_i,
    input  logic [7:0] eq_i,
    input  logic [7:0] uar_i,
    input  logic [63:0] base_i,
    output logic [NumCq-1:0] valid_o,
    input  logic db_valid_i,
    input  cq_db_t db_i,
    input  logic [NumReq-1:0] req_valid_i,
    output logic [NumReq-1:0] req_ready_o,
    input  cqe_req_t [NumReq-1:0] req_i,
    output logic wr_valid_o,
    input  logic wr_ready_i,
    output dma_wr_hdr_t wr_hdr_o,
    output logic [DataW-1:0] wr_data_o,
    output logic wr_last_o,
    output logic eqe_valid_o,
    input  logic eqe_ready_i,
    output eqe_req_t eqe_o,
    output logic qp_err_valid_o,
    output qp_err_t qp_err_o,
    output logic written_o,
    output logic overrun_o,
    output logic db_drop_qpn_o,
    output logic db_drop_page_o,
    output logic db_drop_range_o
);
  localparam int unsigned ReqW = (NumReq > 1) ? $clog2(NumReq) : 1;
  typedef struct packed {
    logic [4:0]  log_size;
    logic [7:0]  eq;
    logic [63:0] base;
  } ctx_t;

  logic [NumCq-1:0] valid_q;
  assign valid_o = valid_q;
  // CQE writer's
  logic [23:0] prod_q[NumCq];                // CQEs written
  logic [23:0] sol_q[NumCq];                 // CQEs written up to the last solicited one
  logic fired_q[NumCq];                      // armed when it differs from arm_q
  logic bad_q[NumCq];
  // doorbell's
  logic [23:0] cons_q[NumCq];
  logic arm_q[NumCq];
  logic only_q[NumCq];                       // solicited completions only
  logic [7:0] uar_q[NumCq];

  typedef enum logic [2:0] {
    Idle,    // nothing under way
    Look,    // context is read
    Write,   // CQE goes out
    Decide,  // fire?
    Event    // EQE is asked for
  } state_e;
  state_e state_q;

  // ---------------------------------------------------------------- create and doorbell, one stage
  logic db2_valid_q, db_ok, db_live, db_page, db_range;
  cq_db_t db2_q;
  logic [CqW-1:0] db_cq;
  logic kick_valid, set_fire;
  assign set_ready_o = state_q == Idle && !db2_valid_q;
  assign set_fire    = set_valid_i && set_ready_o;
  assign db_cq    = CqW'(db2_q.db.cqn);
  assign db_live  = db2_q.db.cqn < 24'(NumCq) && valid_q[db_cq];
  assign db_page  = uar_q[db_cq] == db2_q.uar;
  assign db_range = (db2_q.db.consumer - cons_q[db_cq]) <= (prod_q[db_cq] - cons_q[db_cq]);
  assign db_ok    = db2_valid_q && db_live && db_page && db_range;
  assign db_drop_qpn_o   = db2_valid_q && !db_live;
  assign db_drop_page_o  = db2_valid_q && db_live && !db_page;
  assign db_drop_range_o = db2_valid_q && db_live && db_page && !db_range;
  assign kick_valid      = db_ok && db2_q.db.arm;
  always_ff @(posedge clk_i) begin
    db2_valid_q <= !rst_i && db_valid_i;
    db2_q       <= db_i;
    if (db_ok || set_fire) cons_q[set_fire ? idx_i : db_cq] <= set_fire ? '0 : db2_q.db.consumer;
    if (set_fire || kick_valid) begin
      arm_q[set_fire ? idx_i : db_cq]  <= set_fire ? 1'b0 : !fired_q[db_cq];
      only_q[set_fire ? idx_i : db_cq] <= !set_fire && db2_q.db.solicited_only;
    end
    if (set_fire) uar_q[idx_i] <= uar_i;
  end

  // Armed queues that may already hold what they wait for.
  logic chk_valid, chk_ready;
  logic [CqW-1:0] chk_idx;
  rnic_pend_set #(.IdxW(CqW), .NumSet(1)) u_check (
      .clk_i, .rst_i, .set_valid_i(kick_valid), .set_idx_i(db_cq), .clr_valid_i(1'b0), .clr_idx_i('0),
      .pick_valid_o(chk_valid), .pick_ready_i(chk_ready), .pick_idx_o(chk_idx)
  );

  // ---------------------------------------------------------------- CQE writer
  logic [NumReq-1:0] grant;
  logic [ReqW-1:0] pick;
  logic take, live, full, armed, sent, wr_start, wr_busy;
  cqe_req_t req_q;
  logic [CqW-1:0] cq_q;
  logic is_check_q;                          // Decide without a new CQE
  ctx_t ctx, new_ctx;
  eqe_req_t eqe_q;
  rnic_arb_rr #(.N(NumReq)) u_arb (
      .clk_i, .rst_i, .req_i(req_valid_i), .advance_i(take), .lock_i(1'b0), .grant_o(grant), .idx_o(pick)
  );
  assign take        = state_q == Idle && |req_valid_i && !set_valid_i;
  assign req_ready_o = grant & {NumReq{take}};
  assign chk_ready   = state_q == Idle && !(|req_valid_i) && !set_valid_i;
  assign new_ctx     = '{log_size: log_size_i, eq: eq_i, base: base_i};

  logic [CqW-1:0] ctx_idx;
  assign ctx_idx = take ? CqW'(req_i[pick].cqn) : chk_idx;
  rnic_ram #(.Width($bits(ctx_t)), .Depth(NumCq)) u_ctx (
      .clk_i, .we_i(set_fire), .waddr_i(idx_i), .wdata_i(new_ctx), .re_i(state_q == Idle), .raddr_i(ctx_idx), .rdata_o(ctx)
  );

  logic [23:0] prod, slot;
  assign prod  = prod_q[cq_q];
  assign slot  = prod & ((24'd1 << ctx.log_size) - 24'd1);
  assign live  = req_q.cqn < 16'(NumCq) && valid_q[cq_q];
  assign full  = (prod - cons_q[cq_q]) >= (24'd1 << ctx.log_size) || bad_q[cq_q];
  assign armed = arm_q[cq_q] != fired_q[cq_q];
  assign wr_start = state_q == Look && !is_check_q && live && !full;

  cqe_t cqe;
  always_comb begin
    cqe            = '0;
    cqe.qpn        = req_q.qpn;
    cqe.opcode     = req_q.opcode;
    cqe.wqe_index  = req_q.wqe_index;
    cqe.status     = req_q.status;
    cqe.grh        = req_q.grh;
    cqe.with_imm   = req_q.with_imm;
    cqe.with_inv   = req_q.with_inv;
    cqe.phase      = !(1'(prod >> ctx.log_size));
    cqe.byte_len   = req_q.byte_len;
    cqe.imm        = req_q.imm;
    cqe.src_qpn    = req_q.src_qpn;
    cqe.vendor_err = req_q.vendor_err;
    cqe.timestamp  = cycles_i;
  end
  rnic_entry_wr #(.DataW(DataW)) u_wr (
      .clk_i, .rst_i, .start_i(wr_start), .busy_o(wr_busy), .addr_i(ctx.base + {35'd0, slot, 5'd0}), .entry_i(cqe), .done_o(sent),
      .wr_valid_o, .wr_ready_i, .wr_hdr_o, .wr_data_o, .wr_last_o
  );
  assign written_o = sent;
  assign overrun_o = state_q == Look && !is_check_q && live && full;
  assign qp_err_valid_o = overrun_o;
  assign qp_err_o       = '{idx: req_q.qp_idx, epoch: req_q.epoch, to_sqe: 1'b0};
  assign eqe_valid_o    = state_q == Event;
  assign eqe_o          = eqe_q;

  logic unseen;                              // the queue holds what the armed one waits for
  assign unseen = only_q[cq_q] ? $signed(sol_q[cq_q] - cons_q[cq_q]) > 0 : prod != cons_q[cq_q];

  always_ff @(posedge clk_i) begin
    unique case (state_q)
      Idle: begin
        if (take) begin
          req_q      <= req_i[pick];
          cq_q       <= CqW'(req_i[pick].cqn);
          is_check_q <= 1'b0;
          state_q    <= Look;
        end else if (chk_valid && chk_ready) begin
          cq_q       <= chk_idx;
          is_check_q <= 1'b1;
          state_q    <= Decide;
        end
      end
      Look: begin
        state_q <= Idle;
        if (live && !full) state_q <= Write;
        else if (live && !bad_q[cq_q]) begin
          state_q <= Event;
          eqe_q   <= '{eqn: 8'd0, event_type: EVENT_TYPE_CQ_ERR, number: 32'(cq_q)};
        end
      end
      Write: if (sent) state_q <= Decide;
      Decide: begin
        state_q <= Idle;
        if (valid_q[cq_q] && armed && unseen) begin
          state_q <= Event;
          eqe_q   <= '{eqn: ctx.eq, event_type: EVENT_TYPE_CQ_COMP, number: 32'(cq_q)};
        end
      end
      default: if (eqe_ready_i) state_q <= Idle;
    endcase
    if (sent || set_fire) prod_q[set_fire ? idx_i : cq_q] <= set_fire ? '0 : prod + 24'd1;
    if ((sent && req_q.solicited) || set_fire) sol_q[set_fire ? idx_i : cq_q] <= set_fire ? '0 : prod + 24'd1;
    if ((state_q == Decide && valid_q[cq_q] && armed && unseen) || set_fire) fired_q[set_fire ? idx_i : cq_q] <= set_fire ? 1'b0 : arm_q[cq_q];
    if (overrun_o || set_fire) bad_q[set_fire ? idx_i : cq_q] <= !set_fire;
    if (set_fire) valid_q[idx_i] <= 1'b1;
    if (clr_i) valid_q[idx_i] <= 1'b0;
    if (rst_i) begin
      state_q <= Idle;
      valid_q <= '0;
    end
  end
  always_ff @(posedge clk_i) if (!rst_i && wr_start) a_writer_free : assert (!wr_busy);
endmodule
