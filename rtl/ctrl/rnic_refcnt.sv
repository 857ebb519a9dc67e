// SPDX-License-Identifier: Apache-2.0
// Reference counts: of PDs by queue pairs, regions and SRQs, of XRC domains and SRQs by queue pairs, of CQs by queue pairs (as send and as
// receive queue apart).
// Contract: one update a cycle from each of the two ports, never refused, and never in the same cycle: a region or SRQ is made or freed by the
// executor, queue pairs change while the executor waits for the QP engine. A CQ handle that cannot exist (0xFFFF: none) counts nothing.
// ask_i: the answer stands one cycle later and counts every update before it; ask_ok_o is low in a cycle in which an update
// takes the read port: ask again. After reset the counts are cleared; ready_o tells when.
module rnic_refcnt
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned QpIdxW = 10,
    parameter int unsigned NumCq = 256,
    parameter int unsigned NumMr = 1024,
    parameter int unsigned NumSrq = 64,
    parameter bit HasSrq = 1'b1
) (
    input  logic clk_i,
    input  logic rst_i,
    output logic ready_o,
    input  logic ref_valid_i,
    // verilator lint_off UNUSEDSIGNAL
    // (SRQs in a build without them)
    input  qp_ref_t ref_i,
    // verilator lint_on UNUSEDSIGNAL
    input  logic mr_valid_i,                 // a region or SRQ begins or ceases to use a PD
    input  logic mr_inc_i,
    // verilator lint_off UNUSEDSIGNAL
    // (handles in the table: judged elsewhere)
    input  logic [15:0] mr_pd_i,
    input  logic [15:0] ask_idx_i,           // PD, CQ, SRQ or XRC domain
    input  logic ask_xrcd_i,                 // an XRC domain, not a PD
    // verilator lint_on UNUSEDSIGNAL
    output logic ask_ok_o,
    output logic pd_used_o,
    output logic cq_used_o,
    output logic srq_used_o,
    output logic xrcd_used_o
);
  localparam int unsigned PdW = $clog2(NUM_PD);
  localparam int unsigned CqW = $clog2(NumCq);
  localparam int unsigned SrqW = $clog2(NumSrq);
  localparam int unsigned XrcdW = $clog2(NUM_XRCD);
  localparam int unsigned Domains = NUM_PD + NUM_XRCD;   // XRC domains stand behind the PDs
  localparam int unsigned DomW = $clog2(Domains);
  localparam int unsigned N1 = (Domains > NumCq) ? Domains : NumCq;
  localparam int unsigned N = (NumSrq > N1) ? NumSrq : N1;
  localparam int unsigned NW = $clog2(N + 1);
  localparam int unsigned QpW = QpIdxW + 1;                                      // every QP
  localparam int unsigned RefW = $clog2((1 << QpIdxW) + NumMr + NumSrq + 1);     // and every region and SRQ

  logic [NW-1:0] clear_q;
  logic clearing;
  assign clearing = clear_q != NW'(N);
  assign ready_o  = !clearing;

  // An update reads, and writes one cycle later; the RAM passes a write on to a read in its cycle.
  logic update, dom_up_q, inc_q, send_q, recv_q;
  logic [RefW-1:0] by_q;                     // what an update adds
  logic [PdW-1:0] pd_addr;
  logic [DomW-1:0] dom_addr, dom_q;
  logic in_xrcd;
  logic [CqW-1:0] send_addr, send_idx_q, recv_addr, recv_idx_q;
  logic [RefW-1:0] dom_cnt;
  logic [QpW-1:0] send_cnt, recv_cnt;
  assign update    = ref_valid_i || mr_valid_i;
  assign ask_ok_o  = !update;
  assign pd_addr   = ref_valid_i ? PdW'(ref_i.pd) : mr_valid_i ? PdW'(mr_pd_i) : PdW'(ask_idx_i);
  assign send_addr = ref_valid_i ? CqW'(ref_i.send_cq) : CqW'(ask_idx_i);
  assign recv_addr = ref_valid_i ? CqW'(ref_i.recv_cq) : CqW'(ask_idx_i);
  assign in_xrcd   = ref_valid_i ? ref_i.in_xrcd : !mr_valid_i && ask_xrcd_i;
  assign dom_addr  = in_xrcd ? DomW'(NUM_PD) + DomW'(XrcdW'(pd_addr)) : DomW'(pd_addr);
  assign xrcd_used_o = dom_cnt != '0;
  assign pd_used_o = dom_cnt != '0;
  assign cq_used_o = send_cnt != '0 || recv_cnt != '0;

  rnic_ram #(.Width(RefW), .Depth(Domains)) u_dom (
      .clk_i, .we_i(dom_up_q || clearing), .waddr_i(clearing ? DomW'(clear_q) : dom_q),
      .wdata_i(clearing ? '0 : dom_cnt + by_q), .re_i(1'b1), .raddr_i(dom_addr), .rdata_o(dom_cnt)
  );
  rnic_ram #(.Width(QpW), .Depth(NumCq)) u_send (
      .clk_i, .we_i(send_q || clearing), .waddr_i(clearing ? CqW'(clear_q) : send_idx_q),
      .wdata_i(clearing ? '0 : send_cnt + QpW'(by_q)), .re_i(1'b1), .raddr_i(send_addr), .rdata_o(send_cnt)
  );
  rnic_ram #(.Width(QpW), .Depth(NumCq)) u_recv (
      .clk_i, .we_i(recv_q || clearing), .waddr_i(clearing ? CqW'(clear_q) : recv_idx_q),
      .wdata_i(clearing ? '0 : recv_cnt + QpW'(by_q)), .re_i(1'b1), .raddr_i(recv_addr), .rdata_o(recv_cnt)
  );
  if (HasSrq) begin : g_srq
    logic srq_q;
    logic [SrqW-1:0] srq_addr, srq_idx_q;
    logic [QpW-1:0] srq_cnt;
    assign srq_addr   = ref_valid_i ? SrqW'(ref_i.srq) : SrqW'(ask_idx_i);
    assign srq_used_o = srq_cnt != '0;
    rnic_ram #(.Width(QpW), .Depth(NumSrq)) u_srq (
        .clk_i, .we_i(srq_q || clearing), .waddr_i(clearing ? SrqW'(clear_q) : srq_idx_q),
        .wdata_i(clearing ? '0 : srq_cnt + QpW'(by_q)), .re_i(1'b1), .raddr_i(srq_addr), .rdata_o(srq_cnt)
    );
    always_ff @(posedge clk_i) begin
      srq_q     <= ref_valid_i && ref_i.has_srq && !rst_i;
      srq_idx_q <= srq_addr;
      if (!rst_i && srq_q && !inc_q) a_srq_not_below_zero : assert (srq_cnt >= -QpW'(by_q));
    end
  end else begin : g_no_srq
    assign srq_used_o = 1'b0;
  end

  always_ff @(posedge clk_i) begin
    dom_up_q   <= update && !rst_i;
    send_q     <= ref_valid_i && 32'(ref_i.send_cq) < NumCq && !rst_i;
`ifdef RNIC_CUT_CQ_RECV_REF
    recv_q     <= 1'b0;
`else
    recv_q     <= ref_valid_i && 32'(ref_i.recv_cq) < NumCq && !rst_i;
`endif
    inc_q      <= ref_valid_i ? ref_i.inc : mr_inc_i;
    by_q       <= ref_valid_i ? (ref_i.inc ? RefW'(ref_i.n) : -RefW'(ref_i.n)) : mr_inc_i ? RefW'(1) : '1;
    dom_q      <= dom_addr;
    send_idx_q <= send_addr;
    recv_idx_q <= recv_addr;
    if (rst_i) clear_q <= '0;
    else if (clearing) clear_q <= clear_q + NW'(1);
    if (!rst_i) begin
      a_one_at_a_time : assert (!(ref_valid_i && mr_valid_i));
      a_after_clear : assert (!(update && clearing));
      if (dom_up_q && !inc_q) a_domain_not_below_zero : assert (dom_cnt >= -by_q);
      if (send_q && !inc_q) a_send_not_below_zero : assert (send_cnt >= -QpW'(by_q));
      if (recv_q && !inc_q) a_recv_not_below_zero : assert (recv_cnt >= -QpW'(by_q));
    end
  end
endmodule
