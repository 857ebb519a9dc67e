// SPDX-License-Identifier: Apache-2.0
// Memory keys: table of regions and the lookup service of all engines.
// Contract: one lookup a cycle, ports served round robin, the answer three cycles after the grant, so each port gets its answers in the
// order of its requests. Checks in this order: key, PD, access, range (wrap of address plus length included). What
// is set or cleared in a cycle holds for every lookup granted in it or later. After reset the table is cleared; ready_o tells when.
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
    output logic ready_o,
    // table, written by the command executor
    input  logic set_i,                      // make entry idx_i
    input  logic clr_i,                      // invalidate it
    input  logic [IdxW-1:0] idx_i,
    input  logic [7:0] key_i,
    input  logic [15:0] pd_i,
    input  logic [3:0] access_i,
    input  logic [63:0] va_i,
    input  logic [48:0] length_i,
    input  logic [63:0] host_addr_i,
    // executor's view of entry idx_i, one cycle later
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
    logic        valid;
    logic [7:0]  key;
    logic [15:0] pd;
  } id_t;
  typedef struct packed {
    id_t         id;
    logic [3:0]  access;
    logic [63:0] va;
    logic [48:0] length;
    logic [63:0] host_addr;
  } entry_t;

  logic [IdxW:0] clear_q;
  logic clearing, we;
  logic [IdxW-1:0] waddr;
  entry_t new_entry, entry;
  id_t look;
  assign clearing = clear_q != (IdxW + 1)'(NumMr);
  assign ready_o  = !clearing;
  assign we       = clearing || set_i || clr_i;
  assign waddr    = clearing ? IdxW'(clear_q) : idx_i;
  assign new_entry = '{
          id: '{valid: set_i && !clearing, key: key_i, pd: pd_i}, access: access_i, va: va_i, length: length_i, host_addr: host_addr_i
      };

  // ---------------------------------------------------------------- grant
  logic [NumPort-1:0] grant;
  logic [PortW-1:0] pick;
  logic fire;
  mr_req_t req;
  assign fire = |req_valid_i && !clearing;
  rnic_arb_rr #(.N(NumPort)) u_arb (
      .clk_i, .rst_i, .req_i(req_valid_i), .advance_i(fire), .lock_i(1'b0), .grant_o(grant), .idx_o(pick)
  );
  assign req_ready_o = clearing ? '0 : grant;
  assign req         = req_i[pick];

  rnic_ram #(.Width($bits(entry_t)), .Depth(NumMr)) u_table (
      .clk_i, .we_i(we), .waddr_i(waddr), .wdata_i(new_entry), .re_i(1'b1), .raddr_i(IdxW'(req.key >> 8)), .rdata_o(entry)
  );
  rnic_ram #(.Width($bits(id_t)), .Depth(NumMr)) u_look (
      .clk_i, .we_i(we), .waddr_i(waddr), .wdata_i(new_entry.id), .re_i(1'b1), .raddr_i(idx_i), .rdata_o(look)
  );
  assign look_valid_o = look.valid;
  assign look_key_o   = look.key;
  assign look_pd_o    = look.pd;

  // ---------------------------------------------------------------- checks: the entry is here, then what was computed from it
  logic v1_q, v2_q, in_table_q;
  logic [PortW-1:0] port1_q, port2_q;
  mr_req_t req_q;
  mr_err_e early, early_q;
  logic [63:0] off_q, host_q;
  logic [48:0] room_q;                       // how far into the region an access of this length may begin
  logic fits_q, range_ok;

  always_comb begin
    early = MR_ERR_OK;
`ifdef RNIC_CUT_MR_KEY
    if (!entry.id.valid || !in_table_q) early = MR_ERR_KEY;
`else
    if (!entry.id.valid || !in_table_q || entry.id.key != req_q.key[7:0]) early = MR_ERR_KEY;
`endif
`ifndef RNIC_CUT_MR_PD
    else if (entry.id.pd != req_q.pd) early = MR_ERR_PD;
`endif
`ifndef RNIC_CUT_MR_ACCESS
    else if ((req_q.access & ~entry.access) != '0) early = MR_ERR_ACCESS;
`endif
  end
  // A region does not wrap, so neither does what lies in it.
`ifdef RNIC_CUT_MR_RANGE
  assign range_ok = fits_q || !fits_q;
`else
  assign range_ok = fits_q && off_q <= 64'(room_q);
`endif

  always_ff @(posedge clk_i) begin
    v1_q       <= !rst_i && fire;
    port1_q    <= pick;
    req_q      <= req;
    in_table_q <= (req.key >> 8) < 32'(NumMr);

    v2_q    <= !rst_i && v1_q;
    port2_q <= port1_q;
    early_q <= early;
    off_q   <= req_q.va - entry.va;
    host_q  <= entry.host_addr;
    fits_q  <= req_q.va >= entry.va && 49'(req_q.len) <= entry.length;
    room_q  <= entry.length - 49'(req_q.len);

    rsp_valid_o <= (v2_q && !rst_i) ? NumPort'(1) << port2_q : '0;
    rsp_o.addr  <= host_q + off_q;
    rsp_o.err   <= (early_q != MR_ERR_OK) ? early_q : range_ok ? MR_ERR_OK : MR_ERR_RANGE;

`ifdef RNIC_CUT_MR_CLEAR
    if (rst_i) clear_q <= (IdxW + 1)'(NumMr) - (IdxW + 1)'(8);
`else
    if (rst_i) clear_q <= '0;
`endif
    else if (clearing) clear_q <= clear_q + (IdxW + 1)'(1);
    if (!rst_i) begin
      a_table_after_clear : assert (!(clearing && (set_i || clr_i)));
      a_set_or_clear : assert (!(set_i && clr_i));
      if (fire) a_no_empty_access : assert (req.len != '0);
    end
  end
endmodule
