// SPDX-License-Identifier: Apache-2.0
// The responder's transmit source: ACKs, NAKs and READ responses in the order in which they are handed over.
// Contract: jobs of both sides are taken round robin, held until ready; a READ job's piece follows from the READ engine alone, after
// its job. At most Credit jobs are under way, reported failures included, so that a failure always finds room here.
// Failures wait in order until taken. busy_o: a job is under way or a failure waits.
// under_way_o: jobs under way, which end in order, one with each tx_done_i. keyed_o: of these, how many until the youngest is over that may
// read through key_i; job_i[1].rkey tells of a READ response with payload. Keys are told apart by a part of their index, and of each part
// only the youngest job is known, by its number modulo 256, so that it may be more than needed (but no more than are under way).
// Of a job those fields leave that an ACK, a NAK or a response has.
module rnic_resp_tx
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned Credit = 16,
    parameter int unsigned QpIdxW = 10,
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
    // verilator lint_off UNUSEDSIGNAL
    input  tx_job_t [1:0] job_i,
    // verilator lint_on UNUSEDSIGNAL
    // transmit source
    output logic      tx_job_valid_o,
    input  logic      tx_job_ready_i,
    output tx_job_t   tx_job_o,
    input  logic      tx_done_i,
    input  logic      tx_err_valid_i,
    // verilator lint_off UNUSEDSIGNAL
    input  tx_err_t   tx_err_i,             // (why it failed does not matter)
    // verilator lint_on UNUSEDSIGNAL
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
  always_comb begin
    tx_job_o             = '0;
    tx_job_o.qp_idx[QpIdxW-1:0] = pick ? job_i[1].qp_idx[QpIdxW-1:0] : job_i[0].qp_idx[QpIdxW-1:0];
    tx_job_o.opcode      = pick ? job_i[1].opcode : job_i[0].opcode;
    tx_job_o.psn         = pick ? job_i[1].psn : job_i[0].psn;
    tx_job_o.syndrome    = pick ? job_i[1].syndrome : job_i[0].syndrome;
    tx_job_o.msn         = pick ? job_i[1].msn : job_i[0].msn;
    tx_job_o.payload_len = pick ? job_i[1].payload_len : '0;
    tx_job_o.swap_add    = job_i[1].swap_add;
  end
  assign job_ready_o    = tx_job_ready_i ? grant : '0;

  logic [QpIdxW-1:0] err_idx;
  psn_t err_psn;
  rnic_fifo #(.Width(QpIdxW + $bits(psn_t)), .Depth(Credit)) u_errs (
      .clk_i, .rst_i, .in_valid_i(tx_err_valid_i), .in_ready_o(err_room), .in_data_i({tx_err_i.qp_idx[QpIdxW-1:0], tx_err_i.psn}),
      .out_valid_o(err_valid_o), .out_ready_i(err_ready_i), .out_data_o({err_idx, err_psn}), .level_o(errs)
  );
  assign err_o  = '{qp_idx: qp_idx_t'(err_idx), psn: err_psn, err: DMA_ERR_OK};
  assign busy_o = under_way_q != '0 || err_valid_o;

  always_ff @(posedge clk_i) begin
    if (rst_i) under_way_q <= '0;
    else under_way_q <= under_way_q + LvlW'(fire) - LvlW'(tx_done_i);
  end
  assign under_way_o = under_way_q;

  // The number of the youngest job that reads through a key, by a part of the key's index.
  typedef logic [7:0] num_t;
  num_t youngest[16];
  num_t num_q, age;              // of the job handed over last; how many were handed over since the youngest
  // verilator lint_off UNUSEDSIGNAL
  function automatic logic [3:0] part(logic [31:0] key);
    // verilator lint_on UNUSEDSIGNAL
    return key[11:8] ^ key[15:12];
  endfunction
  always_ff @(posedge clk_i) begin
    if (fire && pick && job_i[1].payload_len != '0) youngest[part(job_i[1].rkey)] <= num_q + num_t'(1);
    if (rst_i) num_q <= '0;
    else num_q <= num_q + num_t'(fire);
  end
  assign age     = num_q - youngest[part(key_i)];
  assign keyed_o = (age < num_t'(under_way_q)) ? LvlW'(num_t'(under_way_q) - age) : '0;

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      if (tx_err_valid_i) a_room_for_failure : assert (err_room);
      if (tx_done_i) a_done_belongs_to_job : assert (under_way_q != '0);
    end
  end
endmodule
