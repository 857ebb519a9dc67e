// SPDX-License-Identifier: Apache-2.0
// Event queues: writes EQEs and raises the MSI-X vector of an armed queue (queue n: vector n).
// Contract: events are taken round robin, one at a time; an event for a queue that does not exist is taken and forgotten. A full queue
// loses the event and says so (overrun_o beside overrun_eq_o: a fatal condition), but holds nobody up. The interrupt is asked for
// after the EQE was accepted by the write service. A doorbell moves the consumer index (not beyond the producer, else it is
// ignored) and may arm; with entries unseen it fires at once. idle_o: no EQE is under way, and no queue is being made.
// The queues' words are read one queue at a time: a doorbell goes first, and the writer and a new queue (set_i; its parameters stand until idle_o) wait for
// a cycle without one.
module rnic_eq
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned DataW = 64,
    parameter int unsigned NumReq = 6,
    localparam int unsigned EqW = $clog2(NUM_EQ)
) (
    input  logic clk_i,
    input  logic rst_i,
    input  logic [63:0] cycles_i,
    // commands
    input  logic set_i,
    input  logic clr_i,
    input  logic [EqW-1:0] idx_i,
    input  logic [4:0] log_size_i,
    input  logic [57:0] base_i,              // bits 63:6 of the address
    output logic [NUM_EQ-1:0] valid_o,
    output logic idle_o,
    // doorbell
    input  logic db_valid_i,
    // verilator lint_off UNUSEDSIGNAL
    input  db_eq_t db_i,                     // (reserved bits)
    // verilator lint_on UNUSEDSIGNAL
    // events
    input  logic [NumReq-1:0] req_valid_i,
    output logic [NumReq-1:0] req_ready_o,
    input  eqe_req_t [NumReq-1:0] req_i,
    output logic wr_valid_o,
    input  logic wr_ready_i,
    output dma_wr_hdr_t wr_hdr_o,
    output logic [DataW-1:0] wr_data_o,
    output logic wr_last_o,
    output logic msix_valid_o,
    input  logic msix_ready_i,
    output logic [7:0] msix_vec_o,
    output logic written_o,
    output logic overrun_o,
    output logic [EqW-1:0] overrun_eq_o
);
  localparam int unsigned ReqW = (NumReq > 1) ? $clog2(NumReq) : 1;
  localparam int unsigned NumArb = 1 << ReqW;  // a power of two: the arbiter then needs no remainder
  logic [NUM_EQ-1:0] valid_q, armed_q, fire_q;   // fire_q: the vector waits to be raised
  logic [57:0] base_mem[NUM_EQ];
  logic [4:0] log_mem[NUM_EQ];
  logic [57:0] base;
  logic [4:0] log;
  assign valid_o = valid_q;

  // ---------------------------------------------------------------- words: indices of one queue
  typedef enum logic [1:0] {
    ST_IDLE,    // takes an event
    ST_LOOK,    // its queue is looked at
    ST_WRITE,   // EQE goes out
    ST_COUNT    // and is counted
  } state_e;
  state_e state_q;
  logic [23:0] prod_mem[NUM_EQ], cons_mem[NUM_EQ];
  logic [23:0] prod, cons;
  logic [16:0] used;                         // 2^16 at most
  logic [EqW-1:0] eq_q, db_eq, at;
  logic set_q, set_now, db_ok, count;        // set: a queue is to be made
  assign db_eq = EqW'(db_i.eqn);
  assign at    = db_valid_i ? db_eq : eq_q;
  // An EQE that was accepted counts, also in the cycle in which it is not written down yet.
  assign prod  = prod_mem[at] + 24'(state_q == ST_COUNT && at == eq_q);
  assign cons  = cons_mem[at];
  assign base  = base_mem[eq_q];
  assign log   = log_mem[eq_q];
  assign used  = 17'(prod) - 17'(cons);
  assign set_now = set_q && !db_valid_i && state_q != ST_COUNT;
  assign count   = state_q == ST_COUNT && !db_valid_i;
  always_ff @(posedge clk_i) begin
    if (set_now || count) prod_mem[set_now ? idx_i : eq_q] <= set_now ? '0 : prod;
    if (set_i) base_mem[idx_i] <= base_i;
    if (set_i) log_mem[idx_i] <= log_size_i;
    if (set_now || db_ok) cons_mem[db_ok ? db_eq : idx_i] <= db_ok ? db_i.consumer : '0;
  end

  // ---------------------------------------------------------------- EQE writer
  // verilator lint_off UNUSEDSIGNAL
  logic [NumArb-1:0] grant;                  // (of clients that exist)
  // verilator lint_on UNUSEDSIGNAL
  logic [ReqW-1:0] pick;
  logic take, start, full, sent, look;
  // verilator lint_off UNUSEDSIGNAL
  eqe_req_t req, req_q;                      // (a number of a queue that exists is short)
  // verilator lint_on UNUSEDSIGNAL
  logic [63:0] time_q;
  assign req    = (32'(pick) < NumReq) ? req_i[pick] : '0;
`ifdef RNIC_CUT_EQ_OVERRUN
  assign full   = 1'b0;
`else
  // It never holds more than its size.
  assign full   = 1'(used >> log);
`endif
  assign take   = req_valid_i != '0 && state_q == ST_IDLE && !set_q;
  assign look   = state_q == ST_LOOK && !db_valid_i;
  assign start  = look && !full;
  rnic_arb_rr #(.N(NumArb)) u_arb (
      .clk_i, .rst_i, .req_i(NumArb'(req_valid_i)), .advance_i(take), .lock_i(1'b0), .grant_o(grant), .idx_o(pick)
  );
  assign req_ready_o  = take ? NumReq'(grant) : '0;
  assign overrun_o    = look && full;
  assign overrun_eq_o = eq_q;
  assign idle_o       = state_q == ST_IDLE && !set_q;
  assign written_o    = sent;

  eqe_t eqe;
  logic [23:0] slot;
  assign slot = prod & ((24'd1 << log) - 24'd1);
  always_comb begin
    eqe           = '0;
    eqe.event_    = req_q.event_type;
`ifdef RNIC_CUT_EQ_PHASE
    eqe.phase     = 1'b1;
`else
    eqe.phase     = !(1'(prod >> log));
`endif
    eqe.number    = req_q.number;
    eqe.timestamp = time_q;
  end
  // verilator lint_off PINCONNECTEMPTY
  rnic_entry_wr #(.DataW(DataW)) u_wr (
      .clk_i, .rst_i, .start_i(start), .busy_o(), .addr_i({base, 6'd0} + {35'd0, slot, 5'd0}), .entry_i(eqe), .done_o(sent),
      .wr_valid_o, .wr_ready_i, .wr_hdr_o, .wr_data_o, .wr_last_o
  );
  // verilator lint_on PINCONNECTEMPTY

  // ---------------------------------------------------------------- interrupts and doorbell
  logic [EqW-1:0] vec_q;
  logic vec_valid_q, db_range, unseen;
  // verilator lint_off UNUSEDSIGNAL
  logic [23:0] ahead;                        // (of a build whose range is not judged)
  // verilator lint_on UNUSEDSIGNAL
  assign ahead        = db_i.consumer - cons;
  assign msix_valid_o = vec_valid_q;
  assign msix_vec_o   = 8'(vec_q);
`ifdef RNIC_CUT_EQ_DB_RANGE
  assign db_range     = 1'b1;
`else
  assign db_range     = ahead[23:17] == '0 && ahead[16:0] <= used;
`endif
  assign db_ok        = db_valid_i && 32'(db_i.eqn) < NUM_EQ && valid_q[db_eq] && db_range;
  assign unseen       = db_i.consumer != prod;

  always_ff @(posedge clk_i) begin
    // A vector that was offered stays until it is taken.
    if (!vec_valid_q || msix_ready_i) begin
      vec_valid_q <= fire_q != '0;
      for (int unsigned i = NUM_EQ; i > 0; i--) if (fire_q[i-1]) vec_q <= EqW'(i - 1);
      for (int unsigned i = 0; i < NUM_EQ; i++) if (fire_q[i] && (fire_q & ((NUM_EQ'(1) << i) - NUM_EQ'(1))) == '0) fire_q[i] <= 1'b0;
    end
    unique case (state_q)
      ST_IDLE: begin
        req_q  <= req;
        eq_q   <= EqW'(req.eqn);
        time_q <= cycles_i;
        if (take && 32'(req.eqn) < NUM_EQ && valid_q[EqW'(req.eqn)]) state_q <= ST_LOOK;
      end
      ST_LOOK: if (!db_valid_i) state_q <= full ? ST_IDLE : ST_WRITE;
      ST_WRITE: if (sent) state_q <= ST_COUNT;
      default: if (!db_valid_i) state_q <= ST_IDLE;
    endcase
    if (db_ok && db_i.arm) begin
      armed_q[db_eq] <= !unseen;
      if (unseen) fire_q[db_eq] <= 1'b1;
    end
    if (sent && (armed_q[eq_q] || (db_ok && db_eq == eq_q && db_i.arm))) begin
      armed_q[eq_q] <= 1'b0;
      fire_q[eq_q]  <= 1'b1;
    end
    if (set_i) begin
      set_q <= 1'b1;
    end
    if (set_now) begin
      set_q          <= 1'b0;
      valid_q[idx_i] <= 1'b1;
      armed_q[idx_i] <= 1'b0;
      fire_q[idx_i]  <= 1'b0;
    end
    if (clr_i) valid_q[idx_i] <= 1'b0;
    if (rst_i) begin
      valid_q     <= '0;
      armed_q     <= '0;
      fire_q      <= '0;
      vec_valid_q <= 1'b0;
      state_q     <= ST_IDLE;
      set_q       <= 1'b0;
    end
    if (!rst_i && set_now) a_set_when_idle : assert (state_q == ST_IDLE || eq_q != idx_i);
    if (!rst_i && look) a_not_above_its_size : assert (used <= (17'd1 << log));
  end
endmodule
