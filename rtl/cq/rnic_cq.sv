// SPDX-License-Identifier: Apache-2.0
// Completion queues: contexts, CQE writer, doorbells, arming, event moderation and resizing.
// Contract: CQEs are taken round robin, one at a time, and written in the order taken. A completion for a full queue is taken and not
// written: the queue is in error from then on, CQ_ERR goes to event queue 0 once, and each QP that still completes into it is reported
// (qp_err). One for a queue that does not exist is taken and forgotten. The event of an armed queue is asked for after
// its CQE was accepted by the write service. A doorbell is never held back: a wrong queue, page or consumer index is dropped and told.
// Moderation (period not 0): the event waits until count completions are not taken yet, the queue is full, or the period has run since the first of them
// was seen by an armed queue; armed for solicited ones, those are counted that came since. No event is lost: what an armed queue waits for
// and has, the period ends.
// A command (op) is done between two CQEs, a CREATE in a cycle without a doorbell under way. RESIZE: the CQEs before op_prod_o are accepted in the
// old ring, which is not written any more; indices and arming go on. Refused (op_status_o), it changes nothing.
// idle_o: no CQE or event of the writer is under way.
// Every word has one writer: wrs the CQE writer, dbs the doorbell (both are started by a CREATE).
// Beside a narrow data path, which has time for it, the context stands in the RAM of the writer's words and is read in the cycle before them, and
// the doorbell's words are read by both of one RAM: the writer waits for a cycle without a doorbell.
module rnic_cq
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned DataW = 64,
    parameter int unsigned NumCq = 256,
    parameter int unsigned NumReq = 2,
    parameter int unsigned ClkPeriodPs = 8000,
    localparam int unsigned CqW = $clog2(NumCq),
    localparam int unsigned EqW = $clog2(NUM_EQ)
) (
    input  logic clk_i,
    input  logic rst_i,
    input  logic [63:0] cycles_i,
    // commands
    input  logic op_valid_i,                 // held with all that follows until op_done_o
    output logic op_done_o,
    input  cq_op_e op_i,
    output cmd_status_e op_status_o,         // with op_done_o
    output logic [23:0] op_prod_o,           // with op_done_o of a RESIZE: index of the first CQE in the new ring
    input  logic clr_i,
    input  logic [CqW-1:0] idx_i,
    input  logic [4:0] log_size_i,
    input  logic [EqW-1:0] eq_i,
    input  logic [7:0] uar_i,
    input  logic [57:0] base_i,              // bits 63:6 of the address
    input  logic [15:0] count_i,
    input  cq_period_t period_i,             // microseconds
    output logic [NumCq-1:0] valid_o,
    output logic there_o,                    // idx_i exists
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
    logic [16:0]    org;                     // index of the ring's first CQE, of which slot and lap take no more
  } ctx_t;
  typedef struct packed {                    // CQE writer's, what the doorbell looks at
    logic        fired;                      // armed while this differs from dbs.arm
    logic [23:0] prod;                       // CQEs written
  } seen_t;
  typedef struct packed {                    // all of it
    seen_t       s;
    logic        bad;                        // overrun: in error
    logic [23:0] sol;                        // prod at the last solicited one
    logic [15:0] count;                      // moderation
    cq_period_t  period;                     // 0: none
    logic        run;                        // the period runs, until due
    cq_time_t    due;
    logic [15:0] nsol;                       // solicited ones since the queue waits for one
  } wrs_t;
  typedef struct packed {                    // doorbell's
    logic [7:0]  uar;
    logic        arm;
    logic        only;                       // solicited completions only
    logic [23:0] cons;
  } dbs_t;

  typedef enum logic [2:0] {
    ST_IDLE,    // nothing under way
    ST_CTX,     // context is here, where it is read first; or the words of a queue that was modified are read again
    ST_MAKE,    // a new queue: its context is written
    ST_OP,      // words of the queue that is modified or resized are here
    ST_LOOK,    // context is here
    ST_WRITE,   // CQE goes out
    ST_DECIDE,  // is it what an armed queue waits for?
    ST_EVENT    // EQE is asked for
  } state_e;
  localparam bit Narrow = DataW < 256;
  state_e state_q, next_q;                   // next: after ST_CTX
  logic make, op_look, set_fire, db2_valid_q, wrs_we, seen_we, bump;
  logic [CqW-1:0] db_cq, cq_q;
  logic wr_start, sent, sweep_q, fresh;      // fresh: the doorbell's words are those of the queue being served
  wrs_t wrs, wrs_new;
  seen_t seen;
  logic [CqW-1:0] wrs_idx;
  assign idle_o    = state_q == ST_IDLE;
  assign make      = state_q == ST_IDLE && op_valid_i && op_i == CQ_OP_CREATE && !sweep_q;
  assign set_fire  = state_q == ST_MAKE && !db2_valid_q;
  assign op_look   = state_q == ST_IDLE && op_valid_i && op_i != CQ_OP_CREATE;
  assign op_done_o = set_fire || (state_q == ST_OP && fresh);

  // ---------------------------------------------------------------- which queues exist
  // A row of them at a time: three memories beside the bits, one for each who looks. They are cleared after a reset.
  localparam int unsigned RowW = (CqW > 4) ? 4 : CqW;
  localparam int unsigned Rows = 1 << RowW;
  localparam int unsigned Cols = (1 << CqW) / Rows;
  logic [Cols-1:0] there_mem[Rows], there_db_mem[Rows], there_writer_mem[Rows];
  logic [Cols-1:0] there_row, there_new;
  logic [Rows*Cols-1:0] valid_q;
  logic [RowW-1:0] row, sweep_row_q;
  logic there_db, there_writer;
  assign valid_o      = valid_q[NumCq-1:0];
  assign row          = sweep_q ? sweep_row_q : idx_i[RowW-1:0];
  assign there_row    = there_mem[idx_i[RowW-1:0]];
  assign there_o      = !sweep_q && 1'(there_row >> (idx_i >> RowW));
  assign there_db     = !sweep_q && 1'(there_db_mem[db_cq[RowW-1:0]] >> (db_cq >> RowW));
  assign there_writer = !sweep_q && 1'(there_writer_mem[cq_q[RowW-1:0]] >> (cq_q >> RowW));
  always_comb for (int unsigned j = 0; j < Cols; j++) there_new[j] = !sweep_q && (((idx_i >> RowW) == CqW'(j)) ? set_fire : there_row[j]);
  always_ff @(posedge clk_i) begin
    if (sweep_q || set_fire || clr_i) begin
      there_mem[row]        <= there_new;
      there_db_mem[row]     <= there_new;
      there_writer_mem[row] <= there_new;
      for (int unsigned j = 0; j < Cols; j++) valid_q[j*Rows+32'(row)] <= there_new[j];
    end
    if (sweep_q) begin
      sweep_row_q <= sweep_row_q + RowW'(1);
      if (sweep_row_q == '1) sweep_q <= 1'b0;
    end
    if (rst_i) begin
      valid_q     <= '0;
      sweep_q     <= 1'b1;
      sweep_row_q <= '0;
    end
  end

  // ---------------------------------------------------------------- doorbell: read, then judge and write
  cq_db_t db2_q;
  seen_t db_wrs;
  dbs_t db_old, dbs_new;
  logic db_live, db_page, db_range, db_ok, db_arm;
  // verilator lint_off UNUSEDSIGNAL
  logic [23:0] db_ahead;                     // (of a build whose range is not judged)
  // verilator lint_on UNUSEDSIGNAL
  assign db_cq    = CqW'(db2_q.db.cqn);
  assign db_live  = 32'(db2_q.db.cqn) < NumCq && there_db;
`ifdef RNIC_CUT_CQ_DB_PAGE
  assign db_page  = 1'b1;
`else
  assign db_page  = db_old.uar == db2_q.uar;
`endif
`ifdef RNIC_CUT_CQ_DB_RANGE
  assign db_range = 1'b1;
`else
  // It never holds more than 2^16.
  assign db_ahead = db2_q.db.consumer - db_old.cons;
  assign db_range = db_ahead[23:17] == '0 && db_ahead[16:0] <= 17'(db_wrs.prod - db_old.cons);
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

  logic [CqW-1:0] db_raddr, dbs_waddr, look_idx;
  logic dbs_we;
  // verilator lint_off UNUSEDSIGNAL
  dbs_t dbs;                                 // (the page matters to the doorbell alone)
  // verilator lint_on UNUSEDSIGNAL
  assign db_raddr  = CqW'(db_i.db.cqn);
  assign dbs_we    = db_ok || set_fire;
  assign dbs_waddr = set_fire ? idx_i : db_cq;
  rnic_ram #(.Width($bits(dbs_t)), .Depth(NumCq)) u_dbs_doorbell (
      .clk_i, .we_i(dbs_we), .waddr_i(dbs_waddr), .wdata_i(dbs_new), .re_i(1'b1), .raddr_i((Narrow && !db_valid_i) ? look_idx : db_raddr), .rdata_o(db_old)
  );
  if (Narrow) begin : g_dbs_shared
    assign dbs   = db_old;
    assign fresh = !db2_valid_q;
  end else begin : g_dbs_writer
    assign fresh = 1'b1;
    rnic_ram #(.Width($bits(dbs_t)), .Depth(NumCq)) u_dbs_writer (
        .clk_i, .we_i(dbs_we), .waddr_i(dbs_waddr), .wdata_i(dbs_new), .re_i(1'b1), .raddr_i(look_idx), .rdata_o(dbs)
    );
  end
  rnic_ram #(.Width($bits(seen_t)), .Depth(NumCq)) u_wrs_doorbell (
      .clk_i, .we_i(seen_we), .waddr_i(wrs_idx), .wdata_i(seen), .re_i(1'b1), .raddr_i(db_raddr), .rdata_o(db_wrs)
  );
  ctx_t ctx, ctx_new;
  logic resized, ctx_we;
  logic [16:0] org_new;
  assign ctx_we  = make || resized;
  assign ctx_new = '{log_size: log_size_i, eq: make ? eq_i : ctx.eq, base: base_i, org: make ? '0 : org_new};
  if (Narrow) begin : g_narrow
    localparam int unsigned W = $bits(wrs_t);
    ctx_t ctx_q;
    logic again_q, start_q;
    // A CQE is counted in the first cycle in which it goes out: what is written is read again before it is looked at.
    assign bump = start_q;
    rnic_ram #(.Width(W), .Depth(2 * NumCq), .Bypass(1'b0)) u_words (
        .clk_i, .we_i(ctx_we || wrs_we), .waddr_i(ctx_we ? {1'b1, idx_i} : {1'b0, wrs_idx}), .wdata_i(ctx_we ? W'(ctx_new) : wrs_new),
        .re_i(1'b1), .raddr_i({state_q == ST_IDLE, look_idx}), .rdata_o(wrs)
    );
    always_ff @(posedge clk_i) begin
      start_q <= wr_start && !rst_i;
      again_q <= state_q == ST_OP;
      if (state_q == ST_CTX && !again_q) ctx_q <= ctx_t'(wrs[$bits(ctx_t)-1:0]);
    end
    assign ctx = ctx_q;
  end else begin : g_wide
    assign bump = sent;
    rnic_ram #(.Width($bits(wrs_t)), .Depth(NumCq)) u_wrs_writer (
        .clk_i, .we_i(wrs_we), .waddr_i(wrs_idx), .wdata_i(wrs_new), .re_i(1'b1), .raddr_i(look_idx), .rdata_o(wrs)
    );
    // Nobody uses what is read of a context in the cycle in which it is written.
    rnic_ram #(.Width($bits(ctx_t)), .Depth(NumCq), .Bypass(1'b0)) u_ctx (
        .clk_i, .we_i(ctx_we), .waddr_i(idx_i), .wdata_i(ctx_new), .re_i(1'b1), .raddr_i(look_idx), .rdata_o(ctx)
    );
  end

  // Queues whose period is over.
  cq_time_t now;
  logic exp_valid, list_ready;
  logic [CqW-1:0] exp_idx;
  rnic_cq_timer #(.NumCq(NumCq), .ClkPeriodPs(ClkPeriodPs)) u_timer (
      .clk_i, .rst_i, .now_o(now), .we_i(wrs_we), .idx_i(wrs_idx), .run_i(wrs_new.run), .due_i(wrs_new.due),
      .exp_valid_o(exp_valid), .exp_ready_i(list_ready && !db_arm), .exp_idx_o(exp_idx)
  );

  // Queues that were armed: they may already hold what they wait for. Should more be armed than the list holds, all queues are
  // looked at once: nothing is lost, and nothing is held back.
  logic chk_valid, chk_take, list_valid, scan_q, again_q;
  logic [CqW-1:0] chk_idx, list_idx, scan_idx_q;
  // verilator lint_off PINCONNECTEMPTY
  rnic_fifo #(.Width(CqW), .Depth(4)) u_armed (
      .clk_i, .rst_i, .in_valid_i(db_arm || exp_valid), .in_ready_o(list_ready), .in_data_i(db_arm ? db_cq : exp_idx),
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
  logic idle_free, take, live, full, unseen, hit, chk_turn_q;
  cqe_req_t req_q;
  eqe_req_t eqe_q;
  rnic_arb_rr #(.N(NumReq)) u_arb (
      .clk_i, .rst_i, .req_i(req_valid_i), .advance_i(take), .lock_i(1'b0), .grant_o(grant), .idx_o(pick)
  );
  assign idle_free   = state_q == ST_IDLE && !op_valid_i;
  assign chk_take    = idle_free && chk_valid && (chk_turn_q || req_valid_i == '0);
  assign take        = idle_free && req_valid_i != '0 && !chk_take;
  assign req_ready_o = take ? grant : '0;
  // While a queue is being served its words are read again every cycle: what the doorbell changes is seen.
  assign look_idx    = (state_q != ST_IDLE) ? cq_q : op_valid_i ? idx_i : chk_take ? chk_idx : CqW'(req_i[pick].cqn);

  logic [16:0] pos, left;                    // of the next CQE since the ring began; CQEs not taken, 2^16 at most
  logic [15:0] slot;
  assign pos  = 17'(wrs.s.prod) - ctx.org;
  assign left = 17'(wrs.s.prod - dbs.cons);
  assign slot = 16'(pos) & 16'((17'd1 << ctx.log_size) - 17'd1);
  assign live = 32'(req_q.cqn) < NumCq && there_writer;
`ifdef RNIC_CUT_CQ_OVERRUN
  assign full = wrs.bad;
`else
  assign full = left >= (17'd1 << ctx.log_size) || wrs.bad;
`endif
  assign wr_start  = state_q == ST_LOOK && fresh && live && !full;
  assign overrun_o = state_q == ST_LOOK && fresh && live && full;
  assign written_o = sent;
  // What the armed queue waits for is there, and the driver has not seen it.
`ifdef RNIC_CUT_CQ_SOLICITED
  assign unseen = left != '0;
`else
  assign unseen = dbs.only ? $signed(wrs.sol - dbs.cons) > 0 : left != '0;
`endif
  // Moderation: it may wait for more.
  logic decide, waits, enough, period_over;
  logic [16:0] waiting;
  // verilator lint_off UNUSEDSIGNAL
  cq_time_t late;                            // (its sign)
  // verilator lint_on UNUSEDSIGNAL
  assign late        = now - wrs.due;
  assign period_over = wrs.run && !late[CQ_PERIOD_W];
`ifdef RNIC_CUT_CQ_MOD_SOLICITED
  assign waiting     = left;
`else
  assign waiting     = dbs.only ? 17'(wrs.nsol) : left;
`endif
`ifdef RNIC_CUT_CQ_MOD_COUNT
  assign enough      = 1'b1;
`else
  assign enough      = wrs.period == '0 || (wrs.count != '0 && waiting >= 17'(wrs.count)) || period_over || full;
`endif
  assign decide      = state_q == ST_DECIDE && fresh;
  assign waits       = decide && there_writer && dbs.arm != wrs.s.fired && unseen;
  assign hit         = waits && enough;

  // ---------------------------------------------------------------- commands
  logic modify;
  cq_period_t period_new;
  assign modify     = state_q == ST_OP && fresh && op_i == CQ_OP_MODIFY;
  assign resized    = state_q == ST_OP && fresh && op_i == CQ_OP_RESIZE && op_status_o == CMD_STATUS_OK;
  assign op_prod_o  = wrs.s.prod;
  assign period_new = (count_i == 16'd1) ? '0 : period_i;
`ifdef RNIC_CUT_CQ_RESIZE_ORG
  assign org_new    = '0;
`else
  assign org_new    = 17'(wrs.s.prod);
`endif
  always_comb begin
    op_status_o = CMD_STATUS_OK;
    if (state_q == ST_OP && op_i == CQ_OP_RESIZE) begin
`ifndef RNIC_CUT_CQ_RESIZE_SMALL
      if (left > (17'd1 << log_size_i)) op_status_o = CMD_STATUS_TOO_SMALL;
`endif
`ifndef RNIC_CUT_CQ_RESIZE_ERROR
      if (wrs.bad) op_status_o = CMD_STATUS_IN_ERROR;
`endif
    end
  end

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
    cqe.phase      = !(1'(pos >> ctx.log_size));
    cqe.byte_len   = req_q.byte_len;
    cqe.imm        = req_q.imm;
    cqe.src_qpn    = req_q.src_qpn;
    cqe.vendor_err = req_q.vendor_err;
    cqe.timestamp  = cycles_i;
  end
  // verilator lint_off PINCONNECTEMPTY
  rnic_entry_wr #(.DataW(DataW)) u_wr (
      .clk_i, .rst_i, .start_i(wr_start), .busy_o(), .addr_i({ctx.base, 6'd0} + {43'd0, slot, 5'd0}), .entry_i(cqe), .done_o(sent),
      .wr_valid_o, .wr_ready_i, .wr_hdr_o, .wr_data_o, .wr_last_o
  );
  // verilator lint_on PINCONNECTEMPTY
  assign qp_err_valid_o = overrun_o;
  assign qp_err_o       = '{idx: req_q.qp_idx, epoch: req_q.epoch, to_sqe: 1'b0};
  assign eqe_valid_o    = state_q == ST_EVENT;
  assign eqe_o          = eqe_q;

  always_comb begin
    wrs_we  = set_fire || bump || overrun_o || decide || modify;
    wrs_idx = set_fire ? idx_i : cq_q;
    wrs_new = wrs;
    if (bump) begin
      wrs_new.s.prod = wrs.s.prod + 24'd1;
      if (req_q.solicited || req_q.status != WC_STATUS_SUCCESS) begin
        wrs_new.sol  = wrs.s.prod + 24'd1;
        wrs_new.nsol = wrs.nsol + 16'd1;
      end
    end
    if (overrun_o) wrs_new.bad = 1'b1;
    if (hit) wrs_new.s.fired = dbs.arm;
    if (decide) begin
      wrs_new.run = waits && !enough;
      if (!wrs.run) wrs_new.due = now + cq_time_t'(wrs.period);
      if (!(waits && !enough)) wrs_new.nsol = '0;
    end
    if (modify) begin
      wrs_new.count  = count_i;
      wrs_new.period = period_new;
      wrs_new.due    = wrs.due + cq_time_t'(period_new) - cq_time_t'(wrs.period);
    end
    if (set_fire) wrs_new = '0;
    // The doorbell sees a CQE that was accepted.
    seen_we = set_fire || decide;
    seen    = set_fire ? '0 : '{fired: hit ? dbs.arm : wrs.s.fired, prod: wrs.s.prod};
  end

  always_ff @(posedge clk_i) begin
    unique case (state_q)
      ST_IDLE: begin
        if (make) begin
          state_q <= ST_MAKE;
        end else if (op_look) begin
          cq_q    <= idx_i;
          next_q  <= ST_OP;
          state_q <= Narrow ? ST_CTX : ST_OP;
        end else if (chk_take) begin
          cq_q       <= chk_idx;
          next_q     <= ST_DECIDE;
          state_q    <= Narrow ? ST_CTX : ST_DECIDE;
          chk_turn_q <= 1'b0;
        end else if (take) begin
          req_q      <= req_i[pick];
          cq_q       <= CqW'(req_i[pick].cqn);
          next_q     <= ST_LOOK;
          state_q    <= Narrow ? ST_CTX : ST_LOOK;
          chk_turn_q <= 1'b1;
        end
      end
      ST_CTX: state_q <= next_q;
      ST_MAKE: if (set_fire) state_q <= ST_IDLE;
      // An armed queue is judged by its new moderation at once; a period that runs counts from where it began.
`ifdef RNIC_CUT_CQ_MOD_ANEW
      ST_OP: if (fresh) state_q <= ST_IDLE;
`else
      ST_OP:
      if (fresh) begin
        next_q  <= ST_DECIDE;
        state_q <= (op_i != CQ_OP_MODIFY) ? ST_IDLE : Narrow ? ST_CTX : ST_DECIDE;
      end
`endif
      ST_LOOK:
      if (fresh) begin
        state_q <= wr_start ? ST_WRITE : (overrun_o && !wrs.bad) ? ST_EVENT : ST_IDLE;
        eqe_q   <= '{eqn: 8'd0, event_type: EVENT_TYPE_CQ_ERR, number: 32'(cq_q)};
      end
      ST_WRITE: if (sent) state_q <= ST_DECIDE;
      ST_DECIDE:
      if (fresh) begin
        state_q <= hit ? ST_EVENT : ST_IDLE;
        eqe_q   <= '{eqn: 8'(ctx.eq), event_type: EVENT_TYPE_CQ_COMP, number: 32'(cq_q)};
      end
      default: if (eqe_ready_i) state_q <= ST_IDLE;
    endcase
    if (rst_i) begin
      state_q    <= ST_IDLE;
      chk_turn_q <= 1'b0;
    end
    if (!rst_i && decide && wrs_new.run) a_moderated : assert (wrs.period != '0 && !hit);
    if (!rst_i) a_op_or_clear : assert (!(op_valid_i && clr_i));
    if (!rst_i && state_q == ST_OP) a_op_held : assert (op_valid_i && op_i != CQ_OP_CREATE && idx_i == cq_q && there_writer);
  end
endmodule
