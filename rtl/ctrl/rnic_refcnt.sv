// SPDX-License-Identifier: Apache-2.0
// Reference counts of PDs (QPs and regions) and CQs (as send and as receive queue).
// Contract: one update a cycle from each of the two ports, never refused (the executor's own PD updates and those of the QP block come at
// different times: one command runs at once). A CQ handle of 0xFFFF counts nothing. A question is answered one cycle later, counting
// everything that came before it. After reset the counts are cleared; ready_o tells when.
module rnic_refcnt
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned NumCq = 256
) (
    input  logic clk_i,
    input  logic rst_i,
    output logic ready_o,
    input  logic ref_valid_i,
    input  qp_ref_t ref_i,
    input  logic mr_valid_i,                 // a region begins or ceases to use a PD
    input  logic mr_inc_i,
    // (handles were judged: the low bits name the entry)
    // verilator lint_off UNUSEDSIGNAL
    input  logic [15:0] mr_pd_i,
    input  logic [15:0] ask_pd_i,
    input  logic [15:0] ask_cq_i,
    // verilator lint_on UNUSEDSIGNAL
    output logic pd_used_o,
    output logic cq_used_o
);
  localparam int unsigned PdW = $clog2(NUM_PD);
  localparam int unsigned CqW = $clog2(NumCq);
  localparam int unsigned N = (NUM_PD > NumCq) ? NUM_PD : NumCq;
  localparam int unsigned NW = $clog2(N + 1);
  localparam int unsigned RefW = 18;

  logic [NW-1:0] clear_q;
  logic clearing;
  assign clearing = clear_q != NW'(N);
  assign ready_o  = !clearing;

  // An update reads, and writes one cycle later; the RAM passes a write on to a read in its cycle.
  logic up_q, inc_q, pd_up_q;
  logic [16:0] n_q;
  logic [PdW-1:0] pd_q, pd_addr;
  logic [CqW-1:0] s_q, r_q, s_addr, r_addr;
  logic s_on_q, r_on_q;
  logic [RefW-1:0] pd_cnt, s_cnt, r_cnt, pd_new, s_new, r_new;
  assign pd_addr = ref_valid_i ? PdW'(ref_i.pd) : mr_valid_i ? PdW'(mr_pd_i) : PdW'(ask_pd_i);
  assign s_addr  = ref_valid_i ? CqW'(ref_i.send_cq) : CqW'(ask_cq_i);
  assign r_addr  = ref_valid_i ? CqW'(ref_i.recv_cq) : CqW'(ask_cq_i);
  assign pd_new  = inc_q ? pd_cnt + RefW'(n_q) : pd_cnt - RefW'(n_q);
  assign s_new   = inc_q ? s_cnt + RefW'(n_q) : s_cnt - RefW'(n_q);
  assign r_new   = inc_q ? r_cnt + RefW'(n_q) : r_cnt - RefW'(n_q);

  rnic_ram #(.Width(RefW), .Depth(NUM_PD)) u_pd (
      .clk_i, .we_i(pd_up_q || clearing), .waddr_i(clearing ? PdW'(clear_q) : pd_q), .wdata_i(clearing ? '0 : pd_new),
      .re_i(1'b1), .raddr_i(pd_addr), .rdata_o(pd_cnt)
  );
  rnic_ram #(.Width(RefW), .Depth(NumCq)) u_send (
      .clk_i, .we_i((up_q && s_on_q) || clearing), .waddr_i(clearing ? CqW'(clear_q) : s_q), .wdata_i(clearing ? '0 : s_new),
      .re_i(1'b1), .raddr_i(s_addr), .rdata_o(s_cnt)
  );
  rnic_ram #(.Width(RefW), .Depth(NumCq)) u_recv (
      .clk_i, .we_i((up_q && r_on_q) || clearing), .waddr_i(clearing ? CqW'(clear_q) : r_q), .wdata_i(clearing ? '0 : r_new),
      .re_i(1'b1), .raddr_i(r_addr), .rdata_o(r_cnt)
  );
  assign pd_used_o = pd_cnt != '0;
  assign cq_used_o = s_cnt != '0 || r_cnt != '0;

  always_ff @(posedge clk_i) begin
    up_q    <= ref_valid_i && !rst_i;
    pd_up_q <= (ref_valid_i || mr_valid_i) && !rst_i;
    inc_q   <= ref_valid_i ? ref_i.inc : mr_inc_i;
    n_q     <= ref_valid_i ? ref_i.n : 17'd1;
    pd_q    <= pd_addr;
    s_q     <= s_addr;
    r_q     <= r_addr;
    s_on_q  <= ref_i.send_cq < 16'(NumCq);
    r_on_q  <= ref_i.recv_cq < 16'(NumCq);
    if (rst_i) clear_q <= '0;
    else if (clearing) clear_q <= clear_q + NW'(1);
    if (!rst_i) a_one_at_a_time : assert (!(ref_valid_i && mr_valid_i));
  end
endmodule
