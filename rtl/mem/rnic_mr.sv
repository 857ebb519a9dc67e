// SPDX-License-Identifier: Apache-2.0
// Memory keys: table of regions and the lookup service of all engines.
// Contract: one lookup a cycle, ports served round robin; a port asks again when it has its answer. The answer comes three cycles
// after the grant; through a page list later (rnic_mr_pages), while the other ports go on. All of [va, va+len) is judged, in this
// order: key, PD, QP (of a window), access, range (wrap of address plus length included); then the address of its first byte is given, with the
// number of bytes that follow it in host memory. What is set or cleared in a cycle holds for every lookup granted in it or
// later. After reset the table is cleared; ready_o tells when.
// Operations: the request (op_*, inv_*, cmd_*) is held until its done pulses, with err beside it. One at a time, the askers in turn.
// What an operation changes holds for every lookup granted after it; what was granted before is for the asker to wait for.
//   INV    key (registered at present), kind (an ordinary region is not invalidated so), PD, the window's QP, windows bound to it
//   REG    key (its index) of a FAST_REG, not registered at present, PD
//   BIND   key (its index) of a window that is not bound, PD; the region: key, PD, MW_BIND and LOCAL_WRITE where the window lets others
//          write, range. The window holds the region's translation; the region counts its windows.
//   REREG, UNBIND  were judged by the executor
module rnic_mr
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned DataW = 64,
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
    input  logic [4:0] access_i,
    input  logic [63:0] va_i,
    input  logic [48:0] length_i,            // 0: nothing is registered under the key yet
    input  logic [63:0] host_addr_i,         // of the first byte, or of the page list
    input  logic [4:0] log_page_i,           // 0: no page list
    input  logic [29:0] page_offset_i,       // of the first byte in its page
    // executor's view of entry idx_i, one cycle later
    output logic look_valid_o,
    output logic [7:0] look_key_o,
    output logic [15:0] look_pd_o,
    output mr_kind_e look_kind_o,
    output logic look_bound_o,               // windows are bound to it
    // operations: by the requester, by the responder (INV), by the executor (REREG, UNBIND)
    input  logic op_valid_i,
    input  mr_op_t op_i,
    output logic op_done_o,
    input  logic inv_valid_i,
    input  mr_inv_t inv_i,
    output logic inv_done_o,
    input  logic cmd_valid_i,
    input  mr_op_t cmd_i,
    output logic cmd_done_o,
    output mr_err_e op_err_o,                // of all three
    // lookups
    input  logic [NumPort-1:0] req_valid_i,
    output logic [NumPort-1:0] req_ready_o,
    input  mr_req_t [NumPort-1:0] req_i,
    output logic [NumPort-1:0] rsp_valid_o,
    output mr_rsp_t rsp_o,
    // page lists
    output logic rd_req_valid_o,
    input  logic rd_req_ready_i,
    output dma_rd_req_t rd_req_o,
    input  logic rd_rsp_valid_i,
    output logic rd_rsp_ready_o,
    input  logic [DataW-1:0] rd_rsp_data_i,
    input  dma_rd_ctl_t rd_rsp_ctl_i
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
    logic [4:0]  access;
    qpn_t        qpn;                        // a window's
    logic [IdxW-1:0] parent;                 // the region that it is bound to
    logic [63:0] va;
    logic [48:0] length;
    logic [63:0] host_addr;
    logic [4:0]  log_page;
    logic [29:0] page_offset;
  } entry_t;

  logic [IdxW:0] clear_q;
  logic clearing, we;
  logic [IdxW-1:0] waddr;
  entry_t new_entry, entry;
  // verilator lint_off UNUSEDSIGNAL
  id_t look;                                 // (the executor need not know whether something is registered)
  // verilator lint_on UNUSEDSIGNAL
  logic op_read, op_write;                   // an operation reads or writes an entry
  logic [IdxW-1:0] op_idx, op_raddr;
  entry_t op_entry;
  assign clearing = clear_q != (IdxW + 1)'(NumMr);
  assign ready_o  = !clearing;
  assign we       = clearing || set_i || clr_i || op_write;
  assign waddr    = clearing ? IdxW'(clear_q) : op_write ? op_idx : idx_i;
  always_comb begin
    new_entry = '{
        id: '{valid: set_i && !clearing, live: length_i != '0, kind: kind_i, key: key_i, pd: pd_i},
        access: access_i, qpn: '0, parent: '0, va: va_i, length: length_i, host_addr: host_addr_i,
        log_page: log_page_i, page_offset: page_offset_i
    };
    if (op_write) new_entry = op_entry;
  end

  // ---------------------------------------------------------------- grant
  logic [NumPort-1:0] grant, ask, busy_q;    // busy: the port waits for an answer
  logic [PortW-1:0] pick;
  logic fire, hold;                          // hold: an answer through a page list needs a cycle
  mr_req_t req;
  assign ask  = req_valid_i & ~busy_q;
  assign fire = |ask && !clearing && !op_read && !hold;
  rnic_arb_rr #(.N(NumPort)) u_arb (
      .clk_i, .rst_i, .req_i(ask), .advance_i(fire), .lock_i(1'b0), .grant_o(grant), .idx_o(pick)
  );
  assign req_ready_o = fire ? grant : '0;
  assign req         = req_i[pick];

  rnic_ram #(.Width($bits(entry_t)), .Depth(NumMr)) u_table (
      .clk_i, .we_i(we), .waddr_i(waddr), .wdata_i(new_entry), .re_i(1'b1), .raddr_i(op_read ? op_raddr : IdxW'(req.key >> 8)),
      .rdata_o(entry)
  );
  rnic_ram #(.Width($bits(id_t)), .Depth(NumMr)) u_look (
      .clk_i, .we_i(we), .waddr_i(waddr), .wdata_i(new_entry.id), .re_i(1'b1), .raddr_i(idx_i), .rdata_o(look)
  );
  assign look_valid_o = look.valid;
  assign look_key_o   = look.key;
  assign look_pd_o    = look.pd;
  assign look_kind_o  = look.kind;

  // ---------------------------------------------------------------- operations
  typedef enum logic [2:0] {
    OP_IDLE,    // chooses
    OP_READ,    // the entry is being read
    OP_FIRST,   // it is here; the region that it concerns is being read
    OP_SECOND,  // that is here, too
    OP_RANGE,   // the window's place in it
    OP_WRITE,   // judged: written
    OP_DONE
  } op_e;
  op_e op_q;
  logic [1:0] op_port_q, op_pick;            // 0 requester, 1 responder, 2 executor
  logic [2:0] op_ask;
  mr_op_t op_now, o_q;
  // verilator lint_off UNUSEDSIGNAL
  entry_t a_q, b_q;                          // the key's own; the region's (its QP and region mean nothing)
  // verilator lint_on UNUSEDSIGNAL
  logic [IdxW:0] binds, binds_a_q, binds_b_q, look_binds; // windows bound
  logic [63:0] delta_q;
  logic [48:0] place;
  logic inside_q, second_in_table, touched, bind_we;
  logic [IdxW-1:0] second, second_q;
  mr_err_e op_err, op_err_q;
  logic op_idle;
  assign op_idle = op_q == OP_IDLE && !clearing;
  assign op_ask  = {cmd_valid_i, inv_valid_i, op_valid_i};
  /* verilator lint_off PINCONNECTEMPTY */
  rnic_arb_rr #(.N(3)) u_op_arb (
      .clk_i, .rst_i, .req_i(op_idle ? op_ask : '0), .advance_i(op_idle && |op_ask), .lock_i(1'b0), .grant_o(), .idx_o(op_pick)
  );
  /* verilator lint_on PINCONNECTEMPTY */
  always_comb begin
    op_now = op_i;
    if (op_pick == 2'd1) begin
      op_now     = '0;
      op_now.op  = MR_OP_INV;
      op_now.key = inv_i.key;
      op_now.pd  = inv_i.pd;
      op_now.qpn = inv_i.qpn;
    end else if (op_pick == 2'd2) begin
      op_now = cmd_i;
    end
  end
  assign op_idx   = IdxW'(o_q.key >> 8);
  assign second   = (o_q.op == MR_OP_BIND) ? IdxW'(o_q.lkey >> 8) : (entry.id.kind == MR_KIND_WINDOW) ? entry.parent : op_idx;
  assign op_read  = op_q == OP_READ || op_q == OP_FIRST;
  assign op_raddr = (op_q == OP_READ) ? op_idx : second;
  assign second_in_table = o_q.lkey >> 8 < 32'(NumMr);

  // Windows of each region: what the operations read, and the executor's view.
  logic bind_one;
  rnic_ram #(.Width(IdxW + 1), .Depth(NumMr)) u_binds (
      .clk_i, .we_i(clearing || bind_we), .waddr_i(clearing ? IdxW'(clear_q) : second_q), .wdata_i(clearing ? '0 : bind_one ? binds_b_q + (IdxW + 1)'(1) : binds_b_q - (IdxW + 1)'(1)),
      .re_i(1'b1), .raddr_i(op_raddr), .rdata_o(binds)
  );
  rnic_ram #(.Width(IdxW + 1), .Depth(NumMr)) u_look_binds (
      .clk_i, .we_i(clearing || bind_we), .waddr_i(clearing ? IdxW'(clear_q) : second_q), .wdata_i(clearing ? '0 : bind_one ? binds_b_q + (IdxW + 1)'(1) : binds_b_q - (IdxW + 1)'(1)),
      .re_i(1'b1), .raddr_i(idx_i), .rdata_o(look_binds)
  );
`ifdef RNIC_CUT_MW_COUNT
  assign look_bound_o = look_binds[IdxW] && !look_binds[IdxW];
`else
  assign look_bound_o = look_binds != '0;
`endif

  logic here, writes;
  assign here   = o_q.key >> 8 < 32'(NumMr) && a_q.id.valid;
  assign writes = o_q.access[ACCESS_REMOTE_WRITE] || o_q.access[ACCESS_REMOTE_ATOMIC];
  always_comb begin
    op_err = MR_ERR_OK;
    case (o_q.op)
      MR_OP_INV: begin
        if (!here || !a_q.id.live || a_q.id.key != o_q.key[7:0]) op_err = MR_ERR_KEY;
`ifndef RNIC_CUT_MR_INV_KIND
        else if (a_q.id.kind == MR_KIND_REGION) op_err = MR_ERR_ACCESS;
`endif
`ifndef RNIC_CUT_MR_INV_PD
        else if (a_q.id.pd != o_q.pd) op_err = MR_ERR_PD;
`endif
`ifndef RNIC_CUT_MR_INV_QP
        else if (a_q.id.kind == MR_KIND_WINDOW && a_q.qpn != o_q.qpn) op_err = MR_ERR_QP;
`endif
`ifndef RNIC_CUT_MR_INV_BOUND
        else if (binds_a_q != '0) op_err = MR_ERR_IN_USE;
`endif
      end
      MR_OP_REG: begin
        if (!here || a_q.id.kind != MR_KIND_FAST_REG) op_err = MR_ERR_KEY;
`ifndef RNIC_CUT_MR_REG_LIVE
        else if (a_q.id.live) op_err = MR_ERR_IN_USE;
`endif
`ifndef RNIC_CUT_MR_REG_PD
        else if (a_q.id.pd != o_q.pd) op_err = MR_ERR_PD;
`endif
      end
      MR_OP_BIND: begin
        if (!here || a_q.id.kind != MR_KIND_WINDOW) op_err = MR_ERR_KEY;
`ifndef RNIC_CUT_MW_BIND_LIVE
        else if (a_q.id.live) op_err = MR_ERR_IN_USE;
`endif
        else if (a_q.id.pd != o_q.pd) op_err = MR_ERR_PD;
        else if (!second_in_table || !b_q.id.valid || !b_q.id.live || b_q.id.key != o_q.lkey[7:0] || b_q.id.kind == MR_KIND_WINDOW) op_err = MR_ERR_KEY;
`ifndef RNIC_CUT_MW_BIND_PD
        else if (b_q.id.pd != o_q.pd) op_err = MR_ERR_PD;
`endif
`ifndef RNIC_CUT_MW_BIND_ACCESS
        else if (!b_q.access[ACCESS_MW_BIND] || (writes && !b_q.access[ACCESS_LOCAL_WRITE])) op_err = MR_ERR_ACCESS;
`endif
`ifndef RNIC_CUT_MW_BIND_RANGE
        else if (!inside_q) op_err = MR_ERR_RANGE;
`endif
      end
      default: ;
    endcase
  end

  // The entry as it becomes.
  assign place = 49'(delta_q) + 49'(b_q.page_offset);
  always_comb begin
    op_entry = a_q;
    case (o_q.op)
      MR_OP_REG, MR_OP_BIND: begin
        op_entry.id.live     = 1'b1;
        op_entry.id.key      = o_q.key[7:0];
        op_entry.access      = o_q.access[4:0];
        op_entry.qpn         = o_q.qpn;
        op_entry.parent      = second_q;
        op_entry.va          = o_q.va;
        op_entry.length      = o_q.length;
        op_entry.host_addr   = o_q.host_addr;
        op_entry.log_page    = o_q.log_page;
        op_entry.page_offset = o_q.page_offset;
        if (o_q.op == MR_OP_BIND) begin
          // A window begins in the page where it begins, so that its list is a part of the region's.
          op_entry.access[ACCESS_LOCAL_WRITE] = 1'b0;
          op_entry.access[ACCESS_MW_BIND]     = 1'b0;
          op_entry.va          = o_q.access[ACCESS_ZERO_BASED] ? '0 : o_q.va;
          op_entry.log_page    = b_q.log_page;
          op_entry.page_offset = (b_q.log_page == '0) ? '0 : place[29:0] & ((30'd1 << b_q.log_page) - 30'd1);
          op_entry.host_addr   = b_q.host_addr + ((b_q.log_page == '0) ? delta_q : {12'd0, place >> b_q.log_page, 3'd0});
        end
      end
      MR_OP_REREG: begin
        op_entry.id.key = o_q.lkey[7:0];
        if (o_q.change[MR_CHANGE_PD]) op_entry.id.pd = o_q.pd;
        if (o_q.change[MR_CHANGE_ACCESS]) op_entry.access = o_q.access[4:0];
        if (o_q.change[MR_CHANGE_TRANSLATION]) begin
          op_entry.va          = o_q.va;
          op_entry.length      = o_q.length;
          op_entry.host_addr   = o_q.host_addr;
          op_entry.log_page    = o_q.log_page;
          op_entry.page_offset = o_q.page_offset;
        end
      end
      default: op_entry.id.live = 1'b0;
    endcase
  end
  // The executor's writes come first; then everything is read again.
  assign touched  = set_i || clr_i;
  assign op_write = op_q == OP_WRITE && op_err == MR_ERR_OK && !touched;
  assign bind_one = o_q.op == MR_OP_BIND;
  assign bind_we  = op_write && a_q.id.kind == MR_KIND_WINDOW && (bind_one || a_q.id.live);
  assign op_done_o  = op_q == OP_DONE && op_port_q == 2'd0;
  assign inv_done_o = op_q == OP_DONE && op_port_q == 2'd1;
  assign cmd_done_o = op_q == OP_DONE && op_port_q == 2'd2;
  assign op_err_o   = op_err_q;
  always_ff @(posedge clk_i) begin
    unique case (op_q)
      OP_IDLE:
      if (op_idle && |op_ask) begin
        op_port_q <= op_pick;
        o_q       <= op_now;
        op_q      <= OP_READ;
      end
      OP_READ: op_q <= OP_FIRST;
      OP_FIRST: begin
        a_q       <= entry;
        binds_a_q <= binds;
        second_q  <= second;
        op_q      <= touched ? OP_READ : OP_SECOND;
      end
      OP_SECOND: begin
        b_q       <= entry;
        binds_b_q <= binds;
        op_q      <= touched ? OP_READ : OP_RANGE;
      end
      OP_RANGE: begin
        delta_q  <= o_q.va - b_q.va;
        inside_q <= o_q.va >= b_q.va && o_q.length <= b_q.length && o_q.va - b_q.va <= 64'(b_q.length - o_q.length);
        op_q     <= touched ? OP_READ : OP_WRITE;
      end
      OP_WRITE: begin
        op_err_q <= op_err;
        op_q     <= touched ? OP_READ : OP_DONE;
      end
      default: op_q <= OP_IDLE;
    endcase
    if (rst_i) op_q <= OP_IDLE;
  end

  // ---------------------------------------------------------------- checks: the entry is here, then what was computed from it
  logic v1_q, v2_q, v3_q, in_table_q;
  logic [PortW-1:0] port1_q, port2_q, port3_q;
  mr_req_t req_q;
  mr_err_e early, early_q, err_q;
  logic [63:0] off_q, host_q, addr_q, list_q;
  logic [48:0] room_q;                       // how far into the region an access of this length may begin
  logic [48:0] pos_q;                        // place counted from the beginning of the first page
  logic [4:0] log2_q, log3_q;                // page size
  logic [29:0] page_offset_q;
  logic judge_q, paged_q;
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
`ifndef RNIC_CUT_MW_QP
    else if (entry.id.kind == MR_KIND_WINDOW && entry.qpn != req_q.qpn) early = MR_ERR_QP;
`endif
`ifndef RNIC_CUT_MR_ACCESS
    else if ((req_q.access & ~entry.access[3:0]) != '0) early = MR_ERR_ACCESS;
`endif
  end
  // A region does not wrap, so neither does what lies in it.
`ifdef RNIC_CUT_MR_RANGE
  assign range_ok = fits_q || !fits_q;
`else
  assign range_ok = fits_q && off_q <= 64'(room_q);
`endif

  logic page_valid, page_take, to_pages;
  logic [PortW-1:0] page_port;
  mr_err_e page_err;
  logic [63:0] page_addr;
  pay_len_t page_room;
  rnic_mr_pages #(.DataW(DataW), .NumPort(NumPort)) u_pages (
      .clk_i, .rst_i, .flush_i(set_i || clr_i || op_write), .req_valid_i(to_pages), .req_port_i(port3_q), .req_list_i(list_q), .req_log_page_i(log3_q), .req_pos_i(pos_q),
      .rsp_valid_o(page_valid), .rsp_ready_i(page_take), .rsp_port_o(page_port), .rsp_err_o(page_err), .rsp_addr_o(page_addr), .rsp_room_o(page_room),
      .rd_req_valid_o, .rd_req_ready_i, .rd_req_o, .rd_rsp_valid_i, .rd_rsp_ready_o, .rd_rsp_data_i, .rd_rsp_ctl_i
  );
  // Answers: those of the pipeline come when they come; the other takes the first cycle that is free.
  assign to_pages  = v3_q && paged_q;
  assign hold      = page_valid;
  assign page_take = page_valid && !v3_q;
  always_comb begin
    rsp_valid_o = '0;
    rsp_o       = '{err: err_q, room: pay_len_t'(4096), addr: addr_q};
    if (page_take) begin
      rsp_valid_o = NumPort'(1) << page_port;
      rsp_o       = '{err: page_err, room: page_room, addr: page_addr};
    end else if (v3_q && !paged_q) begin
      rsp_valid_o = NumPort'(1) << port3_q;
    end
  end

  always_ff @(posedge clk_i) begin
    v1_q       <= !rst_i && fire;
    port1_q    <= pick;
    req_q      <= req;
    in_table_q <= (req.key >> 8) < 32'(NumMr);

    v2_q          <= !rst_i && v1_q;
    port2_q       <= port1_q;
    early_q       <= early;
    off_q         <= req_q.va - entry.va;
    host_q        <= entry.host_addr;
    fits_q        <= req_q.va >= entry.va && 49'(req_q.len) <= entry.length;
    room_q        <= entry.length - 49'(req_q.len);
    log2_q        <= entry.log_page;
    page_offset_q <= entry.page_offset;
    judge_q       <= req_q.judge;

    v3_q    <= !rst_i && v2_q;
    port3_q <= port2_q;
    addr_q  <= host_q + off_q;
    err_q   <= (early_q != MR_ERR_OK) ? early_q : range_ok ? MR_ERR_OK : MR_ERR_RANGE;
    list_q  <= host_q;
    pos_q   <= off_q[48:0] + 49'(page_offset_q);
    log3_q  <= log2_q;
    paged_q <= early_q == MR_ERR_OK && range_ok && log2_q != '0 && !judge_q;

    busy_q  <= rst_i ? '0 : (busy_q | (fire ? grant : '0)) & ~rsp_valid_o;

`ifdef RNIC_CUT_MR_CLEAR
    if (rst_i) clear_q <= (IdxW + 1)'(NumMr) - (IdxW + 1)'(8);
`else
    if (rst_i) clear_q <= '0;
`endif
    else if (clearing) clear_q <= clear_q + (IdxW + 1)'(1);
    if (!rst_i) begin
      a_table_after_clear : assert (!(clearing && (set_i || clr_i)));
      a_set_or_clear : assert (!(set_i && clr_i));
      if (op_q != OP_IDLE) a_op_held : assert (op_ask[op_port_q]);
      if (bind_we && !bind_one) a_window_counted : assert (binds_b_q != '0);
      if (fire) a_no_empty_access : assert (req.len != '0);
    end
  end
endmodule
