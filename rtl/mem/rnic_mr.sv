// SPDX-License-Identifier: Apache-2.0
// Memory keys: table of regions and the lookup service of all engines.
// Contract: one lookup every Beats cycles, ports served round robin. A request is held until it is taken, which is known two cycles after its
// entry began to be read: the answer comes in the next cycle or, through a page list, later (rnic_mr_pages), while the other ports go on; a
// lookup that finds the page lists busy is not taken, and read again when they are free. A port asks again when it has its answer.
// All of [va, va+len) is judged, in this
// order: key, PD, QP (of a window), access, range (wrap of address plus length included); then the address of its first byte is given, with the
// number of bytes that follow it in host memory. What an operation (rnic_mr_op) changes holds for every lookup taken after it is done;
// what was taken before is for the asker to wait for. After reset the table is cleared; ready_o tells when.
// Table: two words an entry, in one RAM read twice (Beats 2) or side by side (Beats 1): what identifies, with the address where the
// region begins; where it lies, with its length.
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
    // operations: by the requester, by the responder (INV), by the executor (contract: rnic_mr_op)
    input  logic op_valid_i,
    input  mr_op_t op_i,
    output logic op_done_o,
    input  logic inv_valid_i,
    input  mr_inv_t inv_i,
    output logic inv_done_o,
    input  logic cmd_valid_i,
    input  mr_op_t cmd_i,
    input  logic [IdxW-1:0] cmd_idx_i,
    input  mr_kind_e cmd_kind_i,
    input  logic cmd_lock_i,
    output logic cmd_done_o,
    output mr_err_e op_err_o,                // of all three
    output mr_id_t look_o,
    output logic look_bound_o,
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
  // A narrow data path has time to read an entry in two beats.
  localparam int unsigned Beats = (DataW < 256) ? 2 : 1;
  localparam int unsigned Ports = NumPort + 1;           // the last one looks up the region of a window
  localparam int unsigned PortW = $clog2(Ports);
  localparam int unsigned IdW = IdxW + $bits(mr_id_t);
  localparam int unsigned AW = (IdW > 64) ? IdW : 64;    // id and region; host address
  localparam int unsigned BW = 72;                       // va and low page offset; length and the rest of it

  logic [IdxW:0] clear_q;
  logic clearing;
  assign clearing = clear_q != (IdxW + 1)'(NumMr);
  assign ready_o  = !clearing;

  // ---------------------------------------------------------------- operations
  logic hold, op_rd, op_rd_ready, we_id, we_first, we_second, bind_valid, bind_ready, bind_done;
  logic [IdxW-1:0] op_ridx, op_widx, new_parent, parent;
  mr_id_t id, new_id, new_cleared;
  logic [63:0] new_va, new_host, bind_host;
  logic [48:0] new_length;
  logic [29:0] new_offset, bind_offset;
  logic [4:0] bind_log;
  rnic_mr_op #(.NumMr(NumMr)) u_op (
      .clk_i, .rst_i, .ready_i(!clearing), .op_valid_i, .op_i, .op_done_o, .inv_valid_i, .inv_i, .inv_done_o, .cmd_valid_i, .cmd_i, .cmd_idx_i,
      .cmd_kind_i, .lock_i(cmd_lock_i), .cmd_done_o, .err_o(op_err_o), .look_o, .look_bound_o,
      .hold_o(hold), .rd_valid_o(op_rd), .rd_ready_i(op_rd_ready), .rd_idx_o(op_ridx), .id_i(id), .parent_i(parent),
      .we_id_o(we_id), .we_first_o(we_first), .we_second_o(we_second), .widx_o(op_widx), .id_o(new_id), .parent_o(new_parent),
      .va_o(new_va), .length_o(new_length), .host_addr_o(new_host), .page_offset_o(new_offset),
      .bind_valid_o(bind_valid), .bind_ready_i(bind_ready), .bind_done_i(bind_done), .bind_err_i(rsp_o.err), .bind_host_i(bind_host),
      .bind_log_i(bind_log), .bind_offset_i(bind_offset)
  );

  // ---------------------------------------------------------------- grant
  typedef struct packed {
    mr_req_t     r;
    logic [16:0] more;                       // length above the lookups' 32 bits
    logic        bind_;                      // of the region of a window, which needs access bit 4
  } look_t;
  look_t [Ports-1:0] all;
  logic [Ports-1:0] grant, ask, busy_q, wait_q, rsp_valid, taken;   // busy: the port waits for an answer; wait: for page lists
  logic [PortW-1:0] pick;
  logic fire, pages_free, page_valid, page_take, v1_q;
  look_t look, req_q;
  always_comb begin
    for (int unsigned i = 0; i < NumPort; i++) all[i] = '{r: req_i[i], more: '0, bind_: 1'b0};
    all[NumPort]          = '0;
    all[NumPort].r.key    = op_i.lkey;
    all[NumPort].r.va     = op_i.va;
    all[NumPort].r.len    = op_i.length[31:0];
    all[NumPort].more     = op_i.length[48:32];
    all[NumPort].r.pd     = op_i.pd;
    all[NumPort].r.access = 4'(op_i.access[ACCESS_REMOTE_WRITE] || op_i.access[ACCESS_REMOTE_ATOMIC]) << ACCESS_LOCAL_WRITE;
    all[NumPort].bind_    = 1'b1;
  end
  assign ask  = {bind_valid, req_valid_i} & ~busy_q & ~(pages_free ? '0 : wait_q);
  // With one beat an answer through a page list needs a cycle that nobody else takes.
  assign fire = |ask && !clearing && !hold && ((Beats == 2) ? !v1_q : !page_valid);
  rnic_arb_rr #(.N(Ports)) u_arb (
      .clk_i, .rst_i, .req_i(ask), .advance_i(fire), .lock_i(1'b0), .grant_o(grant), .idx_o(pick)
  );
  // One of them is let through: smaller than a choice by number.
  always_comb begin
    look = '0;
    for (int unsigned i = 0; i < Ports; i++) look |= {$bits(look_t){grant[i]}} & all[i];
  end

  // ---------------------------------------------------------------- table: nobody reads what is being written
  logic re_first;
  logic [IdxW-1:0] widx, ridx;
  logic [AW-1:0] a_new, a_first;
  // verilator lint_off UNUSEDSIGNAL
  // (a bit more than needed)
  logic [AW-1:0] a_second;
  logic [BW-1:0] b_new, b_next, b_first, b_second;
  // verilator lint_on UNUSEDSIGNAL
  assign widx     = clearing ? IdxW'(clear_q) : op_widx;
  assign ridx     = op_rd ? op_ridx : IdxW'(look.r.key >> 8);
  // Of an entry that does not exist nothing else is looked at.
  always_comb begin
    new_cleared       = new_id;
    new_cleared.valid = new_id.valid && !clearing;
  end
  assign a_new    = AW'({new_parent, new_cleared});
  assign b_new    = {new_va, new_offset[7:0]};
  assign b_next   = BW'({new_length, new_offset[29:8]});
  assign re_first = fire || (op_rd && op_rd_ready);
  assign {parent, id} = a_first[IdW-1:0];
  if (Beats == 2) begin : g_two
    logic [IdxW:0] raddr;
    assign op_rd_ready = !v1_q;
    assign raddr       = v1_q ? {IdxW'(req_q.r.key >> 8), 1'b1} : {ridx, 1'b0};
    rnic_ram #(.Width(AW), .Depth(2 * NumMr), .Bypass(1'b0)) u_a (
        .clk_i, .we_i(clearing || we_id || we_second), .waddr_i({widx, we_second}), .wdata_i(we_second ? AW'(new_host) : a_new),
        .re_i(re_first || v1_q), .raddr_i(raddr), .rdata_o(a_first)
    );
    rnic_ram #(.Width(BW), .Depth(2 * NumMr), .Bypass(1'b0)) u_b (
        .clk_i, .we_i(we_first || we_second), .waddr_i({widx, we_second}), .wdata_i(we_second ? b_next : b_new),
        .re_i(re_first || v1_q), .raddr_i(raddr), .rdata_o(b_first)
    );
    assign a_second = a_first;
    assign b_second = b_first;
  end else begin : g_one
    logic [63:0] a_here;
    logic [BW-1:0] b_here;
    assign op_rd_ready = 1'b1;
    rnic_ram #(.Width(AW), .Depth(NumMr), .Bypass(1'b0)) u_a (
        .clk_i, .we_i(clearing || we_id), .waddr_i(widx), .wdata_i(a_new), .re_i(re_first), .raddr_i(ridx), .rdata_o(a_first)
    );
    rnic_ram #(.Width(BW), .Depth(NumMr), .Bypass(1'b0)) u_b (
        .clk_i, .we_i(we_first), .waddr_i(widx), .wdata_i(b_new), .re_i(re_first), .raddr_i(ridx), .rdata_o(b_first)
    );
    rnic_ram #(.Width(64), .Depth(NumMr), .Bypass(1'b0)) u_a_second (
        .clk_i, .we_i(we_second), .waddr_i(widx), .wdata_i(new_host), .re_i(re_first), .raddr_i(ridx), .rdata_o(a_here)
    );
    rnic_ram #(.Width(BW), .Depth(NumMr), .Bypass(1'b0)) u_b_second (
        .clk_i, .we_i(we_second), .waddr_i(widx), .wdata_i(b_next), .re_i(re_first), .raddr_i(ridx), .rdata_o(b_here)
    );
    always_ff @(posedge clk_i) begin
      a_second <= AW'(a_here);
      b_second <= b_here;
    end
  end

  // ---------------------------------------------------------------- first word: who asks for what
  logic in_table_q, judge2_q, ge2_q, v2_q, v3_q;
  // verilator lint_off UNUSEDSIGNAL
  logic bind2_q;                             // (who the cuts are for)
  // verilator lint_on UNUSEDSIGNAL
  logic [PortW-1:0] port1_q, port2_q, port3_q;
  mr_err_e early, early_q;
  logic [63:0] off_q;
  logic [48:0] len2_q;
  logic [4:0] log2_q;
  logic [7:0] offset2_q;
  logic bad_live, bad_key, bad_pd, bad_qp, bad_access;
  assign bad_live   = !id.live;
  assign bad_key    = id.key != req_q.r.key[7:0];
  assign bad_pd     = id.pd != req_q.r.pd;
  assign bad_qp     = id.kind == MR_KIND_WINDOW && id.qpn != req_q.r.qpn;
  assign bad_access = ({req_q.bind_, req_q.r.access} & ~id.access) != '0;
  always_comb begin
    early = MR_ERR_OK;
    if (!id.valid || !in_table_q) early = MR_ERR_KEY;
    else if (req_q.bind_ && id.kind == MR_KIND_WINDOW) early = MR_ERR_KEY;
`ifdef RNIC_CUT_MR_KEY
    else if (req_q.bind_ && (bad_live || bad_key)) early = MR_ERR_KEY;
`elsif RNIC_CUT_MR_LIVE
    else if ((req_q.bind_ && bad_live) || bad_key) early = MR_ERR_KEY;
`else
    else if (bad_live || bad_key) early = MR_ERR_KEY;
`endif
`ifdef RNIC_CUT_MR_PD
    else if (req_q.bind_ && bad_pd) early = MR_ERR_PD;
`elsif RNIC_CUT_MW_BIND_PD
    else if (!req_q.bind_ && bad_pd) early = MR_ERR_PD;
`else
    else if (bad_pd) early = MR_ERR_PD;
`endif
`ifndef RNIC_CUT_MW_QP
    else if (bad_qp) early = MR_ERR_QP;
`endif
`ifdef RNIC_CUT_MR_ACCESS
    else if (req_q.bind_ && bad_access) early = MR_ERR_ACCESS;
`elsif RNIC_CUT_MW_BIND_ACCESS
    else if (!req_q.bind_ && bad_access) early = MR_ERR_ACCESS;
`else
    else if (bad_access) early = MR_ERR_ACCESS;
`endif
  end

  // ---------------------------------------------------------------- second word: does it lie inside, and where
  logic [63:0] host, host_q, addr_q;
  logic [48:0] pos_q;                        // place counted from the beginning of the first page
  logic [49:0] end2;                         // of the access, in the region
  logic [4:0] log3_q;                        // page size
  logic in_range, range_ok, paged, paged_q, again, to_pages;
  mr_err_e err_q;
  assign host   = a_second[63:0];
  assign end2   = {1'b0, off_q[48:0]} + {1'b0, len2_q};
  // A region does not wrap, so neither does what lies in it.
  assign in_range = ge2_q && off_q[63:49] == '0 && end2 <= {1'b0, b_second[22+:49]};
`ifdef RNIC_CUT_MR_RANGE
  assign range_ok = in_range || !bind2_q;
`elsif RNIC_CUT_MW_BIND_RANGE
  assign range_ok = in_range || bind2_q;
`else
  assign range_ok = in_range;
`endif
  assign paged  = early_q == MR_ERR_OK && log2_q != '0 && !judge2_q;
  assign again  = paged && !pages_free;
  always_comb begin
    taken = '0;
    if (v2_q && !again) taken = Ports'(1) << port2_q;
  end
  assign {bind_ready, req_ready_o} = taken;

  logic page_free;
  logic [63:0] page_at;
  logic [PortW-1:0] page_port;
  logic [29:0] in_page;
  mr_err_e page_err;
  logic [63:0] page_addr;
  pay_len_t page_room;
  rnic_mr_pages #(.DataW(DataW), .PortW(PortW)) u_pages (
      .clk_i, .rst_i, .flush_i(we_id), .free_o(page_free), .req_valid_i(to_pages), .req_port_i(port3_q), .req_place_i(port3_q == PortW'(NumPort)),
      .list_i(host_q), .log_page_i(log3_q), .pos_i(pos_q),
      .rsp_valid_o(page_valid), .rsp_ready_i(page_take), .rsp_port_o(page_port), .rsp_err_o(page_err), .rsp_addr_o(page_addr), .rsp_room_o(page_room),
      .at_o(page_at), .in_page_o(in_page),
      .rd_req_valid_o, .rd_req_ready_i, .rd_req_o, .rd_rsp_valid_i, .rd_rsp_ready_o, .rd_rsp_data_i, .rd_rsp_ctl_i
  );
  // Answers: those of the pipeline come when they come; the other takes the first cycle that is free.
  assign to_pages   = v3_q && paged_q;
  assign pages_free = page_free && !to_pages;
  assign page_take  = page_valid && !v3_q;
  always_comb begin
    rsp_valid = '0;
    rsp_o     = '{err: err_q, room: pay_len_t'(4096), addr: addr_q};
    if (page_take) begin
      rsp_valid = Ports'(1) << page_port;
      rsp_o     = '{err: page_err, room: page_room, addr: page_addr};
    end else if (v3_q && !paged_q) begin
      rsp_valid = Ports'(1) << port3_q;
    end
  end
  assign {bind_done, rsp_valid_o} = rsp_valid;
  assign bind_host   = page_take ? page_at : addr_q;
  assign bind_log    = page_take ? log3_q : '0;
  assign bind_offset = page_take ? in_page : '0;

  always_ff @(posedge clk_i) begin
    v1_q       <= !rst_i && fire;
    if (fire) begin
      port1_q    <= pick;
      req_q      <= look;
      in_table_q <= (look.r.key >> 8) < 32'(NumMr);
    end

    v2_q           <= !rst_i && v1_q;
    port2_q        <= port1_q;
    early_q        <= early;
    {ge2_q, off_q} <= {1'b1, req_q.r.va} - {1'b0, b_first[BW-1-:64]};
    len2_q         <= {req_q.more, req_q.r.len};
    log2_q         <= id.log_page;
    offset2_q      <= b_first[7:0];
    judge2_q       <= req_q.r.judge;
    bind2_q        <= req_q.bind_;

    v3_q    <= !rst_i && v2_q && !again;
    port3_q <= port2_q;
    addr_q  <= host + off_q;
    err_q   <= (early_q != MR_ERR_OK) ? early_q : range_ok ? MR_ERR_OK : MR_ERR_RANGE;
    paged_q <= paged && range_ok;
    // What the page lists work on stands until they are free again.
    if (v2_q && paged && pages_free) begin
      host_q <= host;
      pos_q  <= off_q[48:0] + {19'd0, b_second[21:0], offset2_q};
      log3_q <= log2_q;
    end

    for (int unsigned i = 0; i < Ports; i++) begin
      if (fire && grant[i]) {busy_q[i], wait_q[i]} <= 2'b10;
      if (v2_q && again && port2_q == PortW'(i)) {busy_q[i], wait_q[i]} <= 2'b01;
      if (rsp_valid[i]) busy_q[i] <= 1'b0;
    end
    if (rst_i) {busy_q, wait_q} <= '0;

`ifdef RNIC_CUT_MR_CLEAR
    if (rst_i) clear_q <= (IdxW + 1)'(NumMr) - (IdxW + 1)'(8);
`else
    if (rst_i) clear_q <= '0;
`endif
    else if (clearing) clear_q <= clear_q + (IdxW + 1)'(1);
    if (!rst_i) begin
      if (fire) a_no_empty_access : assert (pick == PortW'(NumPort) || look.r.len != '0);
      if (v2_q) a_request_held : assert ((({bind_valid, req_valid_i} >> port2_q) & Ports'(1)) != '0);
    end
  end
endmodule
