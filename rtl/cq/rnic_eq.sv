// SPDX-License-Identifier: Apache-2.0
// Event queues: writes EQEs and raises the MSI-X vector of an armed queue.
// Contract: events are taken round robin, one at a time; an event for a queue that does not exist is taken and dropped. A full queue
// loses the event and says so (overrun_o, a fatal condition). The interrupt is asked for after the EQE was accepted by
// the write service. A doorbell moves the consumer index (not beyond the producer) and may arm; with entries unseen it
// fires at once.
module rnic_eq
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned DataW = 64,
    parameter int unsigned NumReq = 6
) (
    input  logic clk_i,
    input  logic rst_i,
    input  logic [63:0] cycles_i,
    input  logic set_i,
    input  logic clr_i,
    input  logic [$clog2(NUM_EQ)-1:0] idx_i,
    input  logic [4:0] log_size_i,
    input  logic [63:0] base_i,
    output logic [NUM_EQ-1:0] valid_o,
    input  logic db_valid_i,
    // (reserved bits)
    // verilator lint_off UNUSEDSIGNAL
    input  db_eq_t db_i,
    // verilator lint_on UNUSEDSIGNAL
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
    output logic overrun_o
);
  localparam int unsigned EqW = $clog2(NUM_EQ);
  localparam int unsigned ReqW = (NumReq > 1) ? $clog2(NumReq) : 1;
  logic [NUM_EQ-1:0] valid_q, armed_q, fire_q;
  logic [63:0] base_q[NUM_EQ];
  logic [4:0] log_q[NUM_EQ];
  logic [23:0] prod_q[NUM_EQ], cons_q[NUM_EQ];
  assign valid_o = valid_q;

  logic [NumReq-1:0] grant;
  logic [ReqW-1:0] pick;
  logic busy, start, start_ok, full, exists;
  logic [EqW-1:0] eq, eq_q;
  assign eq     = EqW'(req_i[pick].eqn);
  assign exists = req_i[pick].eqn < 8'(NUM_EQ) && valid_q[eq];
  assign full   = (prod_q[eq] - cons_q[eq]) >= (24'd1 << log_q[eq]);
  assign start  = |req_valid_i && !busy;
  assign start_ok = start && exists && !full;
  rnic_arb_rr #(.N(NumReq)) u_arb (
      .clk_i, .rst_i, .req_i(req_valid_i), .advance_i(start), .lock_i(1'b0), .grant_o(grant), .idx_o(pick)
  );
  assign req_ready_o = grant & {NumReq{!busy}};
  assign overrun_o   = start && exists && full;

  eqe_t eqe;
  always_comb begin
    eqe           = '0;
    eqe.event_    = req_i[pick].event_type;
    eqe.phase     = !(1'(prod_q[eq] >> log_q[eq]));
    eqe.number    = req_i[pick].number;
    eqe.timestamp = cycles_i;
  end
  logic [23:0] slot;
  assign slot = prod_q[eq] & ((24'd1 << log_q[eq]) - 24'd1);
  logic sent;
  rnic_entry_wr #(.DataW(DataW)) u_wr (
      .clk_i, .rst_i, .start_i(start_ok), .busy_o(busy), .addr_i(base_q[eq] + {35'd0, slot, 5'd0}), .entry_i(eqe), .done_o(sent),
      .wr_valid_o, .wr_ready_i, .wr_hdr_o, .wr_data_o, .wr_last_o
  );
  assign written_o = sent;

  // interrupts
  logic [EqW-1:0] fire_idx;
  always_comb begin
    fire_idx = '0;
    for (int unsigned i = NUM_EQ; i > 0; i--) if (fire_q[i-1]) fire_idx = EqW'(i - 1);
  end
  assign msix_valid_o = |fire_q;
  assign msix_vec_o   = 8'(fire_idx);

  logic [EqW-1:0] db_eq;
  logic db_ok;
  assign db_eq = EqW'(db_i.eqn);
  assign db_ok = db_valid_i && db_i.eqn < 8'(NUM_EQ) && valid_q[db_eq] && (db_i.consumer - cons_q[db_eq]) <= (prod_q[db_eq] - cons_q[db_eq]);

  always_ff @(posedge clk_i) begin
    if (start) eq_q <= eq;
    if (msix_valid_o && msix_ready_i) fire_q[fire_idx] <= 1'b0;
    if (db_ok) begin
      cons_q[db_eq] <= db_i.consumer;
      if (db_i.arm) begin
        armed_q[db_eq] <= db_i.consumer == prod_q[db_eq];
        if (db_i.consumer != prod_q[db_eq]) fire_q[db_eq] <= 1'b1;
      end
    end
    if (sent) begin
      prod_q[eq_q] <= prod_q[eq_q] + 24'd1;
      if (armed_q[eq_q] || (db_ok && db_eq == eq_q && db_i.arm)) begin
        fire_q[eq_q]  <= 1'b1;
        armed_q[eq_q] <= 1'b0;
      end
    end
    if (set_i) begin
      valid_q[idx_i] <= 1'b1;
      armed_q[idx_i] <= 1'b0;
      fire_q[idx_i]  <= 1'b0;
      base_q[idx_i]  <= base_i;
      log_q[idx_i]   <= log_size_i;
      prod_q[idx_i]  <= '0;
      cons_q[idx_i]  <= '0;
    end
    if (clr_i) valid_q[idx_i] <= 1'b0;
    if (rst_i) begin
      valid_q <= '0;
      armed_q <= '0;
      fire_q  <= '0;
    end
  end
endmodule
