// SPDX-License-Identifier: Apache-2.0
// Completion queues: contexts, CQE writer, doorbells and arming.
// Contract: CQEs are taken round robin, one at a time, and written in the order taken. A completion for a full queue is taken and not
// written: the queue is in error from then on, CQ_ERR goes to event queue 0 once, and each QP that still completes into it is reported
// (qp_err). One for a queue that does not exist is taken and forgotten. The event of an armed queue is asked for after
// its CQE was accepted by the write service. A doorbell is never held back: a wrong queue, page or consumer index is dropped and told.
// A set is taken in a cycle without a doorbell under way. idle_o: no CQE or event of the writer is under way.
// Every word has one writer: wrs the CQE writer, dbs the doorbell (both are started by a set).
module rnic_cq
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned DataW = 64,
    parameter int unsigned NumCq = 256,
    parameter int unsigned NumReq = 2,
    localparam int unsigned CqW = $clog2(NumCq),
    localparam int unsigned EqW = $clog2(NUM_EQ)
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
    input  logic [EqW-1:0] eq_i,
    input  logic [7:0] uar_i,
    input  logic [57:0] base_i,              // bits 63:6 of the address
    output logic [NumCq-1:0] valid_o,
    output logic idle_o,
    // doorbells
    input  logic db_valid_i,
    // verilator lint_off UNUSEDSIGNAL
    input  cq_db_t db_i,                     // (reserved bits)
    // verilator lint_on UNUSEDSIGNAL
    // completions
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
    // counters
    output logic written_o,
    output logic overrun_o,
    output logic db_drop_qpn_o,
    output logic db_drop_page_o,
    output logic db_drop_range_o
);
  localparam int unsigned ReqW = (NumReq > 1) ? $clog2(NumReq) : 1;
  typedef struct packed {
    logic [4:0]     log_size;
    logic [EqW-1:0] eq;
    logic [57:0]    base;
  } ctx_t;
  typedef struct packed {                    // CQE writer's
    logic        bad;                        // overrun: in error
    logic        fired;                      // armed while this differs from dbs.arm
    logic [23:0] prod;                       // CQEs written
    logic [23:0] sol;                        // the same, up to the last solicited one
  } wrs_t;
  typedef struct packed {                    // doorbell's
    logic [7:0]  uar;
    logic        arm;
    logic        only;                       // solicited completions only
    logic [23:0] cons;
  } dbs_t;

  typedef enum logic [2:0] {
    ST_IDLE,    // nothing under way
    ST_LOOK,    // context is here
    ST_WRITE,   // CQE goes out
    ST_DECIDE,  // is it what an armed queue waits for?
    ST_EVENT    // EQE is asked for
  } state_e;
  state_e state_q;
  logic [NumCq-1:0] valid_q;
  logic set_fire, db2_valid_q, wrs_we;
  wrs_t wrs, wrs_new;
  logic [CqW-1:0] wrs_idx;
  assign valid_o     = valid_q;
  assign idle_o      = state_q == ST_IDLE;
  assign set_ready_o = state_q == ST_IDLE && !db2_valid_q;
  assign set_fire    = set_valid_i && set_ready_o;

  // ---------------------------------------------------------------- doorbell: read, then judge and write
  cq_db_t db2_q;
  logic [CqW-1:0] db_cq;
  // verilator lint_off UNUSEDSIGNAL
  wrs_t db_wrs;                              // (the doorbell looks at prod and fired)
  // verilator lint_on UNUSEDSIGNAL
  dbs_t db_old, dbs_new;
  logic db_live, db_page, db_range, db_ok, db_arm;
  assign db_cq    = CqW'(db2_q.db.cqn);
  assign db_live  = 32'(db2_q.db.cqn) < NumCq && valid_q[db_cq];
`ifdef RNIC_CUT_CQ_DB_PAGE
  assign db_page  = 1'b1;
`else
  assign db_page  = db_old.uar == db2_q.uar;
`endif
`ifdef RNIC_CUT_CQ_DB_RANGE
  assign db_range = 1'b1;
`else
  assign db_range = (db2_q.db.consumer - db_old.cons) <= (db_wrs.prod - db_old.cons);
`endif
  assign db_ok    = db2_valid_q && db_live && db_page && db_range;
  assign db_arm   = db_ok && db2_q.db.arm;
  assign db_drop_qpn_o   = db2_valid_q && !db_live;
  assign db_drop_page_o  = db2_valid_q && db_live && !db_page;
  assign db_drop_range_o = db2_valid_q && db_live && db_page && !db_range;
  always_comb begin
    dbs_new      = db_old;
    dbs_new.cons = db2_q.db.consumer;
    if (db_arm) begin
      dbs_new.arm  = !db_wrs.fired;
      dbs_new.only = db2_q.db.solicited_only;
    end
    if (set_fire) dbs_new = '{uar: uar_i, arm: 1'b0, only: 1'b0, cons: '0};
  end
  always_ff @(posedge clk_i) begin
    db2_valid_q <= !rst_i && db_valid_i;
    db2_q       <= db_i;
  end

  logic [CqW-1:0] db_raddr, dbs_waddr, look_idx, cq_q;
  logic dbs_we;
  // verilator lint_off UNUSEDSIGNAL
  dbs_t dbs;                                 // (the page matters to the doorbell alone)
  // verilator lint_on UNUSEDSIGNAL
  assign db_raddr  = CqW'(db_i.db.cqn);
  assign dbs_we    = db_ok || set_fire;
  assign dbs_waddr = set_fire ? idx_i : db_cq;
  rnic_ram #(.Width($bits(dbs_t)), .Depth(NumCq)) u_dbs_doorbell (
      .clk_i, .we_i(dbs_we), .waddr_i(dbs_waddr), .wdata_i(dbs_new), .re_i(1'b1), .raddr_i(db_raddr), .rdata_o(db_old)
  );
  rnic_ram #(.Width($bits(dbs_t)), .Depth(NumCq)) u_dbs_writer (
      .clk_i, .we_i(dbs_we), .waddr_i(dbs_waddr), .wdata_i(dbs_new), .re_i(1'b1), .raddr_i(look_idx), .rdata_o(dbs)
  );
  rnic_ram #(.Width($bits(wrs_t)), .Depth(NumCq)) u_wrs_doorbell (
      .clk_i, .we_i(wrs_we), .waddr_i(wrs_idx), .wdata_i(wrs_new), .re_i(1'b1), .raddr_i(db_raddr), .rdata_o(db_wrs)
  );
  rnic_ram #(.Width($bits(wrs_t)), .Depth(NumCq)) u_wrs_writer (
      .clk_i, .we_i(wrs_we), .waddr_i(wrs_idx), .wdata_i(wrs_new), .re_i(1'b1), .raddr_i(look_idx), .rdata_o(wrs)
  );
  ctx_t ctx;
  rnic_ram #(.Width($bits(ctx_t)), .Depth(NumCq)) u_ctx (
      .clk_i, .we_i(set_fire), .waddr_i(idx_i), .wdata_i({log_size_i, eq_i, base_i}), .re_i(1'b1), .raddr_i(look_idx), .rdata_o(ctx)
  );

  // Queues that were armed: they may already hold what they wait for. Should more be armed than the list holds, all queues are
  // looked at once: nothing is lost, and nothing is held back.
  logic chk_valid, chk_take, list_valid, list_ready, scan_q, again_q;
  logic [CqW-1:0] chk_idx, list_idx, scan_idx_q;
  // verilator lint_off PINCONNECTEMPTY
  rnic_fifo #(.Width(CqW), .Depth(4)) u_armed (
      .clk_i, .rst_i, .in_valid_i(db_arm), .in_ready_o(list_ready), .in_data_i(db_cq),
      .out_valid_o(list_valid), .out_ready_i(chk_take), .out_data_o(list_idx), .level_o()
  );
  // verilator lint_on PINCONNECTEMPTY
  assign chk_valid = list_valid || scan_q;
  assign chk_idx   = list_valid ? list_idx : scan_idx_q;
  always_ff @(posedge clk_i) begin
    if (chk_take && !list_valid) begin
      scan_idx_q <= scan_idx_q + CqW'(1);
      if (scan_idx_q == CqW'(NumCq - 1)) begin
        scan_idx_q <= '0;
        scan_q     <= again_q;
        again_q    <= 1'b0;
      end
    end
`ifndef RNIC_CUT_CQ_ARM_SCAN
    if (db_arm && !list_ready) begin
      scan_q  <= 1'b1;
      again_q <= scan_q;
    end
`endif
    if (rst_i) begin
      scan_q     <= 1'b0;
      again_q    <= 1'b0;
      scan_idx_q <= '0;
    end
  end

  // ---------------------------------------------------------------- CQE writer
  logic [NumReq-1:0] grant;
  logic [ReqW-1:0] pick;
  logic idle_free, take, live, full, wr_start, sent, unseen, hit, chk_turn_q;
  cqe_req_t req_q;
  eqe_req_t eqe_q;
  rnic_arb_rr #(.N(NumReq)) u_arb (
      .clk_i, .rst_i, .req_i(req_valid_i), .advance_i(take), .lock_i(1'b0), .grant_o(grant), .idx_o(pick)
  );
  assign idle_free   = state_q == ST_IDLE && !set_valid_i;
  assign chk_take    = idle_free && chk_valid && (chk_turn_q || req_valid_i == '0);
  assign take        = idle_free && req_valid_i != '0 && !chk_take;
  assign req_ready_o = take ? grant : '0;
  // While a queue is being served its words are read again every cycle: what the doorbell changes is seen.
  assign look_idx    = (state_q != ST_IDLE) ? cq_q : chk_take ? chk_idx : CqW'(req_i[pick].cqn);

  logic [23:0] slot;
  assign slot = wrs.prod & ((24'd1 << ctx.log_size) - 24'd1);
  assign live = 32'(req_q.cqn) < NumCq && valid_q[cq_q];
`ifdef RNIC_CUT_CQ_OVERRUN
  assign full = wrs.bad;
`else
  assign full = (wrs.prod - dbs.cons) >= (24'd1 << ctx.log_size) || wrs.bad;
`endif
  assign wr_start  = state_q == ST_LOOK && live && !full;
  assign overrun_o = state_q == ST_LOOK && live && full;
  assign written_o = sent;
  // What the armed queue waits for is there, and the driver has not seen it.
`ifdef RNIC_CUT_CQ_SOLICITED
  assign unseen = wrs.prod != dbs.cons;
`else
  assign unseen = dbs.only ? $signed(wrs.sol - dbs.cons) > 0 : wrs.prod != dbs.cons;
`endif
  assign hit = state_q == ST_DECIDE && valid_q[cq_q] && dbs.arm != wrs.fired && unseen;

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
    cqe.phase      = !(1'(wrs.prod >> ctx.log_size));
    cqe.byte_len   = req_q.byte_len;
    cqe.imm        = req_q.imm;
    cqe.src_qpn    = req_q.src_qpn;
    cqe.vendor_err = req_q.vendor_err;
    cqe.timestamp  = cycles_i;
  end
  // verilator lint_off PINCONNECTEMPTY
  rnic_entry_wr #(.DataW(DataW)) u_wr (
      .clk_i, .rst_i, .start_i(wr_start), .busy_o(), .addr_i({ctx.base, 6'd0} + {35'd0, slot, 5'd0}), .entry_i(cqe), .done_o(sent),
      .wr_valid_o, .wr_ready_i, .wr_hdr_o, .wr_data_o, .wr_last_o
  );
  // verilator lint_on PINCONNECTEMPTY
  assign qp_err_valid_o = overrun_o;
  assign qp_err_o       = '{idx: req_q.qp_idx, epoch: req_q.epoch, to_sqe: 1'b0};
  assign eqe_valid_o    = state_q == ST_EVENT;
  assign eqe_o          = eqe_q;

  always_comb begin
    wrs_we  = set_fire || sent || overrun_o || hit;
    wrs_idx = set_fire ? idx_i : cq_q;
    wrs_new = wrs;
    if (sent) begin
      wrs_new.prod = wrs.prod + 24'd1;
      if (req_q.solicited || req_q.status != WC_STATUS_SUCCESS) wrs_new.sol = wrs.prod + 24'd1;
    end
    if (overrun_o) wrs_new.bad = 1'b1;
    if (hit) wrs_new.fired = dbs.arm;
    if (set_fire) wrs_new = '0;
  end

  always_ff @(posedge clk_i) begin
    unique case (state_q)
      ST_IDLE: begin
        if (chk_take) begin
          cq_q       <= chk_idx;
          state_q    <= ST_DECIDE;
          chk_turn_q <= 1'b0;
        end else if (take) begin
          req_q      <= req_i[pick];
          cq_q       <= CqW'(req_i[pick].cqn);
          state_q    <= ST_LOOK;
          chk_turn_q <= 1'b1;
        end
      end
      ST_LOOK: begin
        state_q <= wr_start ? ST_WRITE : (overrun_o && !wrs.bad) ? ST_EVENT : ST_IDLE;
        eqe_q   <= '{eqn: 8'd0, event_type: EVENT_TYPE_CQ_ERR, number: 32'(cq_q)};
      end
      ST_WRITE: if (sent) state_q <= ST_DECIDE;
      ST_DECIDE: begin
        state_q <= hit ? ST_EVENT : ST_IDLE;
        eqe_q   <= '{eqn: 8'(ctx.eq), event_type: EVENT_TYPE_CQ_COMP, number: 32'(cq_q)};
      end
      default: if (eqe_ready_i) state_q <= ST_IDLE;
    endcase
    if (set_fire || clr_i) valid_q[idx_i] <= set_fire;
    if (rst_i) begin
      state_q    <= ST_IDLE;
      valid_q    <= '0;
      chk_turn_q <= 1'b0;
    end
    if (!rst_i) a_set_or_clear : assert (!(set_valid_i && clr_i));
  end
endmodule
