// SPDX-License-Identifier: Apache-2.0
// Memory keys: table of regions and the lookup service of all engines.
// Contract: one lookup a cycle, ports served round robin, the answer two cycles after the grant; each port gets its
// answers in the order of its requests. Checks in this order: key, PD, access, range (wrap of address plus length included). An
// entry written or invalidated in a cycle is seen by every lookup granted later.
module rnic_mr
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned NumMr = 1024,
    parameter int unsigned NumPort = 4,
    localparam int unsigned IdxW = $clog2(NumMr)
) (
    input  logic clk_i,
    input  logic rst_i,
    // table, written by the command executor
    input  logic set_i,                      // make entry idx_i
    input  logic clr_i,                      // invalidate it
    input  logic [IdxW-1:0] idx_i,
    input  logic [7:0] key_i,
    input  logic [15:0] pd_i,
    input  logic [3:0] access_i,
    input  logic [63:0] va_i,
    // (at most 2^48)
    // verilator lint_off UNUSEDSIGNAL
    input  logic [63:0] length_i,
    // verilator lint_on UNUSEDSIGNAL
    input  logic [63:0] host_addr_i,
    input  logic [IdxW-1:0] look_idx_i,      // executor's view of an entry, same cycle
    output logic look_valid_o,
    output logic [7:0] look_key_o,
    output logic [15:0] look_pd_o,
    // lookups
    input  logic [NumPort-1:0] req_valid_i,
    output logic [NumPort-1:0] req_ready_o,
    input  mr_req_t [NumPort-1:0] req_i,
    output logic [NumPort-1:0] rsp_valid_o,
    output mr_rsp_t rsp_o
);
  localparam int unsigned PortW = (NumPort > 1) ? $clog2(NumPort) : 1;
  typedef struct packed {
    logic [7:0]  key;
    logic [15:0] pd;
    logic [3:0]  access;
    logic [63:0] va;
    logic [48:0] length;
    logic [63:0] host_addr;
  } entry_t;

  logic [NumMr-1:0] valid_q;
  logic [23:0] small_q[NumMr];               // {key, pd} once more, for the executor
  logic [NumPort-1:0] grant;
  logic [PortW-1:0] pick;
  rnic_arb_rr #(.N(NumPort)) u_arb (
      .clk_i, .rst_i, .req_i(req_valid_i), .advance_i(|req_valid_i), .lock_i(1'b0), .grant_o(grant), .idx_o(pick)
  );
  assign req_ready_o = grant;

  entry_t new_entry, e;
  assign new_entry = '{key: key_i, pd: pd_i, access: access_i, va: va_i, length: length_i[48:0], host_addr: host_addr_i};
  mr_req_t req_q;
  logic [IdxW-1:0] ridx;
  logic s1_q, s1_valid_q, s1_high_q;
  logic [PortW-1:0] s1_port_q;
  assign ridx = IdxW'(req_i[pick].key >> 8);

  rnic_ram #(.Width($bits(entry_t)), .Depth(NumMr)) u_table (
      .clk_i, .we_i(set_i), .waddr_i(idx_i), .wdata_i(new_entry), .re_i(1'b1), .raddr_i(ridx), .rdata_o(e)
  );

  logic [63:0] off;
  logic key_ok, pd_ok, access_ok, range_ok;
  assign off       = req_q.va - e.va;
  assign key_ok    = s1_valid_q && !s1_high_q && e.key == req_q.key[7:0];
  assign pd_ok     = e.pd == req_q.pd;
  assign access_ok = (req_q.access & ~e.access) == '0;
  // No wrap: the offset lies in the region, and so does what follows it.
  assign range_ok  = req_q.va >= e.va && 49'(req_q.len) <= e.length && off <= 64'(e.length - 49'(req_q.len));

  always_ff @(posedge clk_i) begin
    s1_q       <= !rst_i && |req_valid_i;
    s1_port_q  <= pick;
    req_q      <= req_i[pick];
    s1_high_q  <= (req_i[pick].key >> 8) >= 32'(NumMr);
    s1_valid_q <= (set_i && idx_i == ridx) || (valid_q[ridx] && !(clr_i && idx_i == ridx));
    rsp_valid_o            <= '0;
    rsp_valid_o[s1_port_q] <= s1_q && !rst_i;
    rsp_o.addr             <= e.host_addr + off;
`ifdef RNIC_CUT_MR_RANGE
    rsp_o.err <= !key_ok ? MR_ERR_KEY : !pd_ok ? MR_ERR_PD : !access_ok ? MR_ERR_ACCESS : MR_ERR_OK;
`else
    rsp_o.err <= !key_ok ? MR_ERR_KEY : !pd_ok ? MR_ERR_PD : !access_ok ? MR_ERR_ACCESS : !range_ok ? MR_ERR_RANGE : MR_ERR_OK;
`endif
    if (set_i) begin
      valid_q[idx_i] <= 1'b1;
      small_q[idx_i] <= {key_i, pd_i};
    end
    if (clr_i) valid_q[idx_i] <= 1'b0;
    if (rst_i) valid_q <= '0;
  end
  assign look_valid_o             = valid_q[look_idx_i];
  assign {look_key_o, look_pd_o} = small_q[look_idx_i];
endmodule
