// SPDX-License-Identifier: Apache-2.0
// Memory keys: table of regions and the lookup service of all engines.
// Contract: one lookup a cycle, ports served round robin, the answer three cycles after the grant, so each port gets its answers in the
// order of its requests. Checks in this order: key, PD, access, range (wrap of address plus length included). What
// is set or cleared in a cycle holds for every lookup granted in it or later. After reset the table is cleared; ready_o tells when.
// Invalidation (LOCAL_INV, SEND_INV): inv_valid_i with its request is held until inv_done_o, which pulses with inv_err_o beside it.
// Judged in this order: key (registered at present), kind (an ordinary region is not invalidated so), PD. From OK on no lookup that is
// granted finds the key; what was granted before is for the asker to wait for. One at a time, the ports in turn; it takes the turn of one lookup.
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
    input  mr_kind_e kind_i,
    input  logic [7:0] key_i,
    input  logic [15:0] pd_i,
    input  logic [3:0] access_i,
    input  logic [63:0] va_i,
    input  logic [48:0] length_i,            // 0: nothing is registered under the key yet
    input  logic [63:0] host_addr_i,
    // executor's view of entry idx_i, one cycle later
    output logic look_valid_o,
    output logic [7:0] look_key_o,
    output logic [15:0] look_pd_o,
    output mr_kind_e look_kind_o,
    // invalidation: 0 by the requester, 1 by the responder
    input  logic [1:0] inv_valid_i,
    // verilator lint_off UNUSEDSIGNAL
    input  mr_inv_t [1:0] inv_i,             // (no window is bound to a QP yet)
    // verilator lint_on UNUSEDSIGNAL
    output logic [1:0] inv_done_o,
    output mr_err_e inv_err_o,
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
    logic        live;                       // something is registered under the key
    mr_kind_e    kind;
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
  // verilator lint_off UNUSEDSIGNAL
  id_t look;                                 // (the executor need not know whether something is registered)
  // verilator lint_on UNUSEDSIGNAL
  logic inv_read, inv_write;                 // an invalidation reads or writes its entry
  logic [IdxW-1:0] inv_idx;
  assign clearing = clear_q != (IdxW + 1)'(NumMr);
  assign ready_o  = !clearing;
  assign we       = clearing || set_i || clr_i || inv_write;
  assign waddr    = clearing ? IdxW'(clear_q) : inv_write ? inv_idx : idx_i;
  always_comb begin
    new_entry = '{
        id: '{valid: set_i && !clearing, live: length_i != '0, kind: kind_i, key: key_i, pd: pd_i},
        access: access_i, va: va_i, length: length_i, host_addr: host_addr_i
    };
    if (inv_write) begin
      new_entry         = entry;
      new_entry.id.live = 1'b0;
    end
  end

  // ---------------------------------------------------------------- grant
  logic [NumPort-1:0] grant;
  logic [PortW-1:0] pick;
  logic fire;
  mr_req_t req;
  assign fire = |req_valid_i && !clearing && !inv_read;
  rnic_arb_rr #(.N(NumPort)) u_arb (
      .clk_i, .rst_i, .req_i(req_valid_i), .advance_i(fire), .lock_i(1'b0), .grant_o(grant), .idx_o(pick)
  );
  assign req_ready_o = fire ? grant : '0;
  assign req         = req_i[pick];

  rnic_ram #(.Width($bits(entry_t)), .Depth(NumMr)) u_table (
      .clk_i, .we_i(we), .waddr_i(waddr), .wdata_i(new_entry), .re_i(1'b1), .raddr_i(inv_read ? inv_idx : IdxW'(req.key >> 8)),
      .rdata_o(entry)
  );
  rnic_ram #(.Width($bits(id_t)), .Depth(NumMr)) u_look (
      .clk_i, .we_i(we), .waddr_i(waddr), .wdata_i(new_entry.id), .re_i(1'b1), .raddr_i(idx_i), .rdata_o(look)
  );
  assign look_valid_o = look.valid;
  assign look_key_o   = look.key;
  assign look_pd_o    = look.pd;
  assign look_kind_o  = look.kind;

  // ---------------------------------------------------------------- invalidation
  typedef enum logic [1:0] {
    INV_IDLE,   // chooses
    INV_READ,   // the entry is being read
    INV_JUDGE,  // it is here: written back without its registration
    INV_DONE
  } inv_e;
  inv_e inv_q;
  logic inv_port_q, inv_next_q;              // whose; who is first next
  mr_err_e inv_err, inv_err_q;
  // verilator lint_off UNUSEDSIGNAL
  mr_inv_t inv;                              // (no window is bound to a QP yet)
  // verilator lint_on UNUSEDSIGNAL
  assign inv       = inv_i[inv_port_q];
  assign inv_idx   = IdxW'(inv.key >> 8);
  assign inv_read  = inv_q == INV_READ;
  // The executor's writes come first; then the entry is read again.
  assign inv_write = inv_q == INV_JUDGE && inv_err == MR_ERR_OK && !set_i && !clr_i;
  always_comb begin
    inv_err = MR_ERR_OK;
    if (inv.key >> 8 >= 32'(NumMr) || !entry.id.valid || !entry.id.live || entry.id.key != inv.key[7:0]) inv_err = MR_ERR_KEY;
`ifndef RNIC_CUT_MR_INV_KIND
    else if (entry.id.kind != MR_KIND_FAST_REG) inv_err = MR_ERR_ACCESS;
`endif
`ifndef RNIC_CUT_MR_INV_PD
    else if (entry.id.pd != inv.pd) inv_err = MR_ERR_PD;
`endif
  end
  assign inv_done_o = (inv_q == INV_DONE) ? 2'b1 << inv_port_q : '0;
  assign inv_err_o  = inv_err_q;
  always_ff @(posedge clk_i) begin
    unique case (inv_q)
      INV_IDLE:
      if (|inv_valid_i && !clearing) begin
        inv_port_q <= inv_valid_i[inv_next_q] ? inv_next_q : !inv_next_q;
        inv_q      <= INV_READ;
      end
      INV_READ: inv_q <= INV_JUDGE;
      INV_JUDGE: begin
        inv_err_q <= inv_err;
        inv_q     <= (set_i || clr_i) ? INV_READ : INV_DONE;
      end
      default: begin
        inv_next_q <= !inv_port_q;
        inv_q      <= INV_IDLE;
      end
    endcase
    if (rst_i) begin
      inv_q      <= INV_IDLE;
      inv_next_q <= 1'b0;
    end
  end

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
`elsif RNIC_CUT_MR_LIVE
    if (!entry.id.valid || !in_table_q || entry.id.key != req_q.key[7:0]) early = MR_ERR_KEY;
`else
    if (!entry.id.valid || !entry.id.live || !in_table_q || entry.id.key != req_q.key[7:0]) early = MR_ERR_KEY;
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
      if (inv_q != INV_IDLE) a_inv_held : assert (inv_valid_i[inv_port_q]);
      if (fire) a_no_empty_access : assert (req.len != '0);
    end
  end
endmodule
