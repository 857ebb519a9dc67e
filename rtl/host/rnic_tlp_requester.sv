// SPDX-License-Identifier: Apache-2.0
// Requester: one stream of TLPs to the host from the posted writes and the DMA reads.
// Contract: a write keeps the way to its last beat; otherwise both take turns. While the host has not enabled bus mastering
// nothing new starts (a write under way is finished). On its turn a write that is about to start (wr_want_i) keeps reads back
// until its first beat is there, so that the readiness for reads hangs on registers alone. Outputs are registered. A TLP that was taken here is ahead
// of all that are taken later.
module rnic_tlp_requester
  import rnic_spec_pkg::*;
#(
    parameter int unsigned DataW = 64
) (
    input  logic             clk_i,
    input  logic             rst_i,
    input  logic             bus_master_en_i,
    input  logic             rd_valid_i,
    output logic             rd_ready_o,
    input  rq_hdr_t          rd_hdr_i,
    input  logic             wr_want_i,
    input  logic             wr_valid_i,
    output logic             wr_ready_o,
    input  rq_hdr_t          wr_hdr_i,
    input  logic [DataW-1:0] wr_data_i,
    input  logic             wr_last_i,
    output logic             rq_valid_o,
    input  logic             rq_ready_i,
    output rq_hdr_t          rq_hdr_o,
    output logic [DataW-1:0] rq_data_o,
    output logic             rq_last_o,
    output logic [12:0]      wr_bytes_o    // link bytes of a write TLP that ended in the cycle before
);
  typedef struct packed {
    rq_hdr_t          hdr;
    logic [DataW-1:0] data;
    logic             last;
  } beat_t;
  beat_t in, out;
  logic in_valid, in_ready, go, rd_may, sel_rd, in_wr_q, rd_turn_q;

`ifdef RNIC_CUT_BUS_MASTER
  assign go       = 1'b1;
`else
  assign go       = bus_master_en_i || in_wr_q;
`endif
  assign rd_may     = !in_wr_q && (rd_turn_q || !wr_want_i);
  assign sel_rd     = rd_may && rd_valid_i;
  assign in_valid   = go && (sel_rd || wr_valid_i);
  // (nobody looks at the data of a read)
  assign in         = '{hdr: sel_rd ? rd_hdr_i : wr_hdr_i, data: wr_data_i, last: sel_rd || wr_last_i};
  assign rd_ready_o = in_ready && go && rd_may;
  assign wr_ready_o = in_ready && go && !sel_rd;

  logic ends, ended_q;
  logic [10:0] dw_q;
  assign ends = wr_valid_i && wr_ready_o && wr_last_i;
  always_ff @(posedge clk_i) begin
    ended_q <= ends;
    dw_q    <= ends ? wr_hdr_i.dw_len : '0;
  end
  assign wr_bytes_o = {dw_q + (ended_q ? 11'(TLP_OVERHEAD_BYTES / 4) : '0), 2'b00};

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      in_wr_q   <= 1'b0;
      rd_turn_q <= 1'b0;
    end else if (in_valid && in_ready) begin
      in_wr_q   <= !sel_rd && !wr_last_i;
      rd_turn_q <= !sel_rd;
    end
  end

  rnic_skid #(.Width($bits(beat_t))) u_out (
      .clk_i, .rst_i, .in_valid_i(in_valid), .in_ready_o(in_ready), .in_data_i(in),
      .out_valid_o(rq_valid_o), .out_ready_i(rq_ready_i), .out_data_o(out)
  );
  assign rq_hdr_o  = out.hdr;
  assign rq_data_o = out.data;
  assign rq_last_o = out.last;
endmodule
