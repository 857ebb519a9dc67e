// SPDX-License-Identifier: Apache-2.0
// Operations on memory keys: the only writer of the key table. Of commands: MAKE, DROP, REREG, and LOOK, which tells of an entry
// and keeps the others out while lock_i is high, so that what the executor does next is done to what it has seen.
// Contract: a request (op_*, inv_*, cmd_*) is held until its done pulses, with err beside it. One at a time, the askers in turn.
//   INV    key (registered at present), kind (an ordinary region is not invalidated so), PD, the window's QP, windows bound to it
//   REG    key (its index) of a FAST_REG, not registered at present, PD
//   BIND   key (its index) of a window that is not bound, PD; the region as by a lookup that needs MW_BIND, and LOCAL_WRITE where the
//          window lets others write. The window holds the region's translation; the region counts its windows.
//   MAKE, DROP, REREG  were judged by the executor
// Table: read port while rd_ready_i (id_i stands one cycle later and until the next read of anybody); while hold_o is high nobody else reads,
// so nobody sees half of a change.
module rnic_mr_op
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned NumMr = 1024,
    localparam int unsigned IdxW = $clog2(NumMr)
) (
    input  logic clk_i,
    input  logic rst_i,
    input  logic ready_i,                    // the table is clear
    // verilator lint_off UNUSEDSIGNAL
    // (each asker uses its part of an operation)
    input  logic op_valid_i,
    input  mr_op_t op_i,
    output logic op_done_o,
    input  logic inv_valid_i,
    input  mr_inv_t inv_i,
    output logic inv_done_o,
    input  logic cmd_valid_i,
    input  mr_op_t cmd_i,                    // its key: lkey; its entry: cmd_idx_i
    // verilator lint_on UNUSEDSIGNAL
    input  logic [IdxW-1:0] cmd_idx_i,
    input  mr_kind_e cmd_kind_i,
    input  logic lock_i,
    output logic cmd_done_o,
    output mr_err_e err_o,                   // of all three
    output mr_id_t look_o,                   // what LOOK saw
    output logic look_bound_o,               // windows are bound to it
    // table
    output logic hold_o,
    output logic rd_valid_o,
    input  logic rd_ready_i,
    output logic [IdxW-1:0] rd_idx_o,
    input  mr_id_t id_i,
    input  logic [IdxW-1:0] parent_i,
    output logic we_id_o,
    output logic we_first_o,                 // va and the first part of the page offset
    output logic we_second_o,                // the rest of the translation
    output logic [IdxW-1:0] widx_o,
    output mr_id_t id_o,
    output logic [IdxW-1:0] parent_o,
    output logic [63:0] va_o,
    output logic [48:0] length_o,
    output logic [63:0] host_addr_o,
    output logic [29:0] page_offset_o,
    // lookup of a BIND's region, with op_i's parameters
    output logic bind_valid_o,
    input  logic bind_ready_i,
    input  logic bind_done_i,                // its answer
    input  mr_err_e bind_err_i,
    input  logic [63:0] bind_host_i,         // of the window's first byte, or of its place in the page list
    input  logic [4:0] bind_log_i,
    input  logic [29:0] bind_offset_i
);
  typedef enum logic [3:0] {
    OP_IDLE,    // chooses
    OP_OWN,     // the entry is being read
    OP_JUDGE,   // it is here
    OP_BIND,    // the region is looked up
    OP_PLACE,   // its answer is waited for
    OP_AGAIN,   // the entry is being read again
    OP_FIRST,   // judged: its first words are written
    OP_SECOND,  // its second ones
    OP_REGION,  // the region whose windows are counted is being read
    OP_COUNT,   // it is here, and written
    OP_DONE
  } op_e;
  op_e op_q;
  logic [1:0] port_q, pick;                  // 0 requester, 1 responder, 2 executor
  logic [2:0] ask;
  logic locked_q, window, cmd, moves, counts_q, bound;
  mr_op_e op;
  logic [31:0] key;
  logic [15:0] pd;
  qpn_t qpn;
  logic [IdxW-1:0] own, region_q;
  mr_err_e err, err_q;
  logic [63:0] host_q;
  logic [4:0] log_q;
  logic [29:0] offset_q;

  // Between what the executor looks at and what it does to it nobody else comes.
  assign ask = (locked_q && lock_i) ? {cmd_valid_i, 2'b00} : {cmd_valid_i, inv_valid_i, op_valid_i};
  /* verilator lint_off PINCONNECTEMPTY */
  rnic_arb_rr #(.N(3)) u_arb (
      .clk_i, .rst_i, .req_i((op_q == OP_IDLE && ready_i) ? ask : '0), .advance_i(op_q == OP_IDLE && ready_i && |ask), .lock_i(1'b0), .grant_o(), .idx_o(pick)
  );
  /* verilator lint_on PINCONNECTEMPTY */
  assign cmd   = port_q == 2'd2;
  assign op    = cmd ? cmd_i.op : (port_q == 2'd1) ? MR_OP_INV : op_i.op;
  assign key   = (port_q == 2'd1) ? inv_i.key : op_i.key;
  assign pd    = (port_q == 2'd1) ? inv_i.pd : op_i.pd;
  assign qpn   = (port_q == 2'd1) ? inv_i.qpn : op_i.qpn;
  assign own   = cmd ? cmd_idx_i : IdxW'(key >> 8);
  assign window  = op == MR_OP_BIND;
  assign bound = id_i.kind != MR_KIND_WINDOW && id_i.qpn[IdxW:0] != '0;
  // The operation gives the entry a translation.
  assign moves = window || op == MR_OP_REG || op == MR_OP_MAKE || (op == MR_OP_REREG && cmd_i.change[MR_CHANGE_TRANSLATION]);

  logic here;
  assign here = key >> 8 < 32'(NumMr) && id_i.valid;
  always_comb begin
    err = MR_ERR_OK;
    case (op)
      MR_OP_INV: begin
        if (!here || !id_i.live || id_i.key != key[7:0]) err = MR_ERR_KEY;
`ifndef RNIC_CUT_MR_INV_KIND
        else if (id_i.kind == MR_KIND_REGION) err = MR_ERR_ACCESS;
`endif
`ifndef RNIC_CUT_MR_INV_PD
        else if (id_i.pd != pd) err = MR_ERR_PD;
`endif
`ifndef RNIC_CUT_MR_INV_QP
        else if (id_i.kind == MR_KIND_WINDOW && id_i.qpn != qpn) err = MR_ERR_QP;
`endif
`ifndef RNIC_CUT_MR_INV_BOUND
        else if (bound) err = MR_ERR_IN_USE;
`endif
      end
      MR_OP_REG: begin
        if (!here || id_i.kind != MR_KIND_FAST_REG) err = MR_ERR_KEY;
`ifndef RNIC_CUT_MR_REG_LIVE
        else if (id_i.live) err = MR_ERR_IN_USE;
`endif
`ifndef RNIC_CUT_MR_REG_PD
        else if (id_i.pd != pd) err = MR_ERR_PD;
`endif
      end
      MR_OP_BIND: begin
        if (!here || id_i.kind != MR_KIND_WINDOW) err = MR_ERR_KEY;
`ifndef RNIC_CUT_MW_BIND_LIVE
        else if (id_i.live) err = MR_ERR_IN_USE;
`endif
        else if (id_i.pd != pd) err = MR_ERR_PD;
      end
      default: ;
    endcase
  end

  // ---------------------------------------------------------------- the entry as it becomes
  // What nobody looks at is what costs nothing: the region of what is no window, for one. Of each field one source is let through: the command,
  // the operation, or what stands there; what the lookup of a BIND brought is 0 in all other operations.
  logic count, one_more, of_cmd, of_op, key_cmd, key_op, pd_cmd, access_cmd;
  logic [4:0] op_access;
  assign count      = op_q == OP_COUNT;
  assign one_more   = window;
  assign of_cmd     = cmd;
  assign of_op      = !cmd && !window;
  assign key_cmd    = !count && (op == MR_OP_MAKE || op == MR_OP_REREG);
  assign key_op     = !count && (window || op == MR_OP_REG);
  assign pd_cmd     = !count && (op == MR_OP_MAKE || (op == MR_OP_REREG && cmd_i.change[MR_CHANGE_PD]));
  assign access_cmd = !count && (op == MR_OP_MAKE || (op == MR_OP_REREG && cmd_i.change[MR_CHANGE_ACCESS]));
  always_comb begin
    op_access = op_i.access[4:0];
    if (window) begin
      op_access[ACCESS_LOCAL_WRITE] = 1'b0;
      op_access[ACCESS_MW_BIND]     = 1'b0;
    end
  end
  always_comb begin
    id_o     = id_i;
    parent_o = count ? parent_i : IdxW'(op_i.lkey >> 8);
    id_o.key    = ({8{key_cmd}} & cmd_i.lkey[7:0]) | ({8{key_op}} & op_i.key[7:0]) | ({8{!key_cmd && !key_op}} & id_i.key);
    id_o.access = ({5{access_cmd}} & cmd_i.access[4:0]) | ({5{key_op}} & op_access) | ({5{!access_cmd && !key_op}} & id_i.access);
    if (pd_cmd) id_o.pd = cmd_i.pd;
    if (count) begin
      id_o.qpn[IdxW:0] = id_i.qpn[IdxW:0] + (one_more ? (IdxW + 1)'(1) : '1);
    end else begin
      id_o.valid = op != MR_OP_DROP;
      id_o.live  = (op == MR_OP_MAKE) ? cmd_i.length != '0 : !(op == MR_OP_DROP || op == MR_OP_INV);
      id_o.qpn   = ({24{window}} & op_i.qpn) | ({24{!window && op != MR_OP_MAKE}} & id_i.qpn);
      if (op == MR_OP_MAKE) id_o.kind = cmd_kind_i;
      if (moves) id_o.log_page = ({5{of_cmd}} & cmd_i.log_page) | ({5{of_op}} & op_i.log_page) | log_q;
    end
  end
  assign va_o          = ({64{of_cmd}} & cmd_i.va) | ({64{of_op || (window && !op_i.access[ACCESS_ZERO_BASED])}} & op_i.va);
  assign length_o      = cmd ? cmd_i.length : op_i.length;
  assign host_addr_o   = ({64{of_cmd}} & cmd_i.host_addr) | ({64{of_op}} & op_i.host_addr) | host_q;
  assign page_offset_o = ({30{of_cmd}} & cmd_i.page_offset) | ({30{of_op}} & op_i.page_offset) | offset_q;

  assign hold_o      = !(op_q inside {OP_IDLE, OP_BIND, OP_PLACE, OP_DONE});
  assign rd_valid_o  = op_q inside {OP_OWN, OP_AGAIN, OP_REGION};
  assign rd_idx_o    = (op_q == OP_REGION) ? region_q : own;
  assign widx_o      = count ? region_q : own;
  assign we_id_o     = op_q == OP_FIRST || count;
  assign we_first_o  = op_q == OP_FIRST && moves;
  assign we_second_o = op_q == OP_SECOND;
  assign bind_valid_o = op_q == OP_BIND;
  assign op_done_o   = op_q == OP_DONE && port_q == 2'd0;
  assign inv_done_o  = op_q == OP_DONE && port_q == 2'd1;
  assign cmd_done_o  = op_q == OP_DONE && cmd;
  assign err_o       = err_q;

  always_ff @(posedge clk_i) begin
    if (op_q == OP_IDLE) {host_q, log_q, offset_q} <= '0;
    else if (op_q == OP_PLACE) {host_q, log_q, offset_q} <= {bind_host_i, bind_log_i, bind_offset_i};
    if (!lock_i) locked_q <= 1'b0;
    unique case (op_q)
      OP_IDLE:
      if (ready_i && |ask) begin
        port_q <= pick;
        op_q   <= OP_OWN;
      end
      OP_OWN: if (rd_ready_i) op_q <= OP_JUDGE;
      OP_JUDGE: begin
        err_q    <= err;
        region_q <= window ? IdxW'(op_i.lkey >> 8) : parent_i;
        counts_q <= window || ((op == MR_OP_INV || op == MR_OP_DROP) && id_i.kind == MR_KIND_WINDOW && id_i.live);
        if (op == MR_OP_LOOK) begin
          look_o       <= id_i;
`ifdef RNIC_CUT_MW_COUNT
          look_bound_o <= 1'b0;
`else
          look_bound_o <= bound;
`endif
          locked_q     <= 1'b1;
        end
        op_q <= (err != MR_ERR_OK || op == MR_OP_LOOK) ? OP_DONE : window ? OP_BIND : OP_FIRST;
      end
      OP_BIND: if (bind_ready_i) op_q <= OP_PLACE;
      OP_PLACE: begin
        err_q <= bind_err_i;
        if (bind_done_i) op_q <= (bind_err_i != MR_ERR_OK) ? OP_DONE : OP_AGAIN;
      end
      OP_AGAIN: if (rd_ready_i) op_q <= OP_FIRST;
      OP_FIRST: op_q <= moves ? OP_SECOND : counts_q ? OP_REGION : OP_DONE;
      OP_SECOND: op_q <= counts_q ? OP_REGION : OP_DONE;
      OP_REGION: if (rd_ready_i) op_q <= OP_COUNT;
      OP_COUNT: op_q <= OP_DONE;
      default: op_q <= OP_IDLE;
    endcase
    if (rst_i) begin
      op_q     <= OP_IDLE;
      locked_q <= 1'b0;
    end
    if (!rst_i) begin
      if (op_q != OP_IDLE) a_op_held : assert (port_q == 2'd0 ? op_valid_i : port_q == 2'd1 ? inv_valid_i : cmd_valid_i);
      if (count && !one_more) a_window_counted : assert (id_i.qpn[IdxW:0] != '0);
    end
  end
endmodule
