// SPDX-License-Identifier: Apache-2.0
// The responder's transmit source: ACKs, NAKs and READ responses in the order in which they are handed over.
// Contract: jobs of both sides are taken round robin, held until ready; a READ job's piece follows from the READ engine alone, after
// its job. At most Credit jobs are under way, reported failures included, so that a failure always finds room here.
// Failures wait in order until taken. busy_o: a job is under way or a failure waits.
// under_way_o: jobs under way, which end in order, one with each tx_done_i. keyed_o: of these, how many until the youngest is over that may
// read through key_i; job_i[1].rkey tells of a READ response with payload. Keys are told apart by a part of their index, so that it may
// be more than needed.
module rnic_resp_tx
  import rnic_pkg::*;
#(
    parameter int unsigned Credit = 16,
    localparam int unsigned LvlW = $clog2(Credit + 1)
) (
    input  logic      clk_i,
    input  logic      rst_i,
    output logic      busy_o,
    output logic [LvlW-1:0] under_way_o,
    // verilator lint_off UNUSEDSIGNAL
    input  logic [31:0] key_i,
    // verilator lint_on UNUSEDSIGNAL
    output logic [LvlW-1:0] keyed_o,
    // [0] responder, [1] READ engine
    input  logic [1:0]    job_valid_i,
    output logic [1:0]    job_ready_o,
    input  tx_job_t [1:0] job_i,
    // transmit source
    output logic      tx_job_valid_o,
    input  logic      tx_job_ready_i,
    output tx_job_t   tx_job_o,
    input  logic      tx_done_i,
    input  logic      tx_err_valid_i,
    input  tx_err_t   tx_err_i,
    // failures
    output logic      err_valid_o,
    input  logic      err_ready_i,
    output tx_err_t   err_o
);
  logic [LvlW-1:0] under_way_q, errs;
  logic [1:0] grant, req;
  logic pick, fire, room, err_room;

  assign room = (LvlW + 1)'(under_way_q) + (LvlW + 1)'(errs) < (LvlW + 1)'(Credit);
  assign req  = room ? job_valid_i : '0;
  assign fire = tx_job_valid_o && tx_job_ready_i;
  rnic_arb_rr #(.N(2)) u_arb (
      .clk_i, .rst_i, .req_i(req), .advance_i(fire), .lock_i(1'b0), .grant_o(grant), .idx_o(pick)
  );
  assign tx_job_valid_o = |grant;
  assign tx_job_o       = job_i[pick];
  assign job_ready_o    = tx_job_ready_i ? grant : '0;

  rnic_fifo #(.Width($bits(tx_err_t)), .Depth(Credit)) u_errs (
      .clk_i, .rst_i, .in_valid_i(tx_err_valid_i), .in_ready_o(err_room), .in_data_i(tx_err_i),
      .out_valid_o(err_valid_o), .out_ready_i(err_ready_i), .out_data_o(err_o), .level_o(errs)
  );
  assign busy_o = under_way_q != '0 || err_valid_o;

  always_ff @(posedge clk_i) begin
    if (rst_i) under_way_q <= '0;
    else under_way_q <= under_way_q + LvlW'(fire) - LvlW'(tx_done_i);
  end
  assign under_way_o = under_way_q;

  // Through which key each job reads, oldest first.
  typedef struct packed {
    logic       reads;
    logic [7:0] key;
  } tag_t;
  tag_t tag_q [Credit];
  tag_t tag_new;
  logic [$clog2(Credit)-1:0] slot;
  assign tag_new = '{reads: pick && job_i[1].payload_len != '0, key: job_i[1].rkey[15:8]};
  assign slot    = $bits(slot)'(under_way_q) - $bits(slot)'(tx_done_i);
  always_ff @(posedge clk_i) begin
    if (tx_done_i) for (int unsigned i = 0; i + 1 < Credit; i++) tag_q[i] <= tag_q[i+1];
    if (fire) tag_q[slot] <= tag_new;
  end
  always_comb begin
    keyed_o = '0;
    for (int unsigned i = 0; i < Credit; i++) if (LvlW'(i) < under_way_q && tag_q[i].reads && tag_q[i].key == key_i[15:8]) keyed_o = LvlW'(i + 1);
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      if (tx_err_valid_i) a_room_for_failure : assert (err_room);
      if (tx_done_i) a_done_belongs_to_job : assert (under_way_q != '0);
    end
  end
endmodule
