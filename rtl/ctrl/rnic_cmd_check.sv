// SPDX-License-Identifier: Apache-2.0
// Judges a command before anything is done: opcode, reserved bits (rsvd_i: one is set), and for all but the QP commands also handle and parameters.
// Contract: cmd_i is held; the answer is right from the second cycle on. The views marked "later" belong to cmd_i's handle and stand
// from the second cycle on, the others are looked up in the first. status_o OK, or the first thing wrong with detail_o its
// byte offset in the command. The order is that of the statements.
module rnic_cmd_check
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned NumCq = 256,
    parameter int unsigned NumMr = 1024,
    parameter int unsigned NumSrq = 64,
    parameter bit HasSrq = 1'b1,
    parameter int unsigned MaxRqStride = 4,
    localparam int unsigned PdW = $clog2(NUM_PD)
) (
    input  logic clk_i,
    // verilator lint_off UNUSEDSIGNAL
    input  logic [511:0] cmd_i,              // (the rest is the QP engine's)
    // verilator lint_on UNUSEDSIGNAL
    input  logic rsvd_i,
    input  logic fatal_i,
    output logic [PdW-1:0] pd_o,             // the PD that is asked for
    input  logic pd_valid_i,
    input  logic cq_valid_i,                 // the CQ of the handle
    input  logic [NUM_EQ-1:0] eq_valid_i,
    input  logic eq_used_i,                  // the event queue of the handle
    input  logic [NumSrq-1:0] srq_valid_i,
    input  logic [NUM_XRCD-1:0] xrcd_valid_i,
    input  logic pd_used_i,                  // later
    input  logic cq_used_i,                  // later
    input  logic srq_used_i,                 // later
    input  logic xrcd_used_i,                // later
    input  logic mr_valid_i,                 // later
    input  logic [7:0] mr_key_i,             // later
    input  mr_kind_e mr_kind_i,              // later
    input  logic mr_bound_i,                 // later
    input  logic pd_free_i,                  // there is a free PD
    input  logic cq_free_i,
    input  logic mr_free_i,
    input  logic srq_free_i,
    input  logic xrcd_free_i,
    input  logic gid_ok_i,
    output cmd_status_e status_o,
    output logic [31:0] detail_o
);
  localparam int unsigned EqW = $clog2(NUM_EQ);
  localparam int unsigned SrqW = $clog2(NumSrq);
  localparam int unsigned XrcdW = $clog2(NUM_XRCD);
  // verilator lint_off UNUSEDSIGNAL
  // (each reads its own part of the same bits)
  cmd_header_t hdr;
  cmd_port_t port;
  cmd_pkey_t pkey;
  cmd_mr_t mr;
  cmd_cq_t cq;
  cmd_eq_t eq;
  cmd_srq_t srq;
  cmd_out_t out;
  // verilator lint_on UNUSEDSIGNAL
  assign hdr  = cmd_i;
  assign port = cmd_i;
  assign pkey = cmd_i;
  assign mr   = cmd_i;
  assign cq   = cmd_i;
  assign eq   = cmd_i;
  assign srq  = cmd_i;
  assign out  = cmd_i;

  // ---------------------------------------------------------------- first cycle
  localparam int unsigned LenW = MAX_MR_LOG_LENGTH;
  logic pd_named, few;
  logic [15:0] pd, num;
  logic [31:0] eqn;
  logic [LenW:0] va_end, host_end;           // behind the last byte
  logic known_q, pd_ok_q, cq_ok_q, srq_ok_q, xrcd_ok_q, eq_ok_q, eq_there_q, eq_used_q, va_wrap_q, host_wrap_q;
  logic [31:0] handle;
  assign handle   = hdr.handle;
  assign few      = handle >> 16 == '0;      // what a table of 2^16 objects may hold
  assign num      = 16'(handle);
  assign pd_named = hdr.opcode == CMD_OPCODE_CREATE_MR || hdr.opcode == CMD_OPCODE_REREG_MR || hdr.opcode == CMD_OPCODE_CREATE_SRQ;
  assign pd       = (hdr.opcode == CMD_OPCODE_CREATE_SRQ) ? srq.pd : pd_named ? mr.pd : num;
  assign pd_o     = pd[PdW-1:0];
  assign eqn      = (hdr.opcode == CMD_OPCODE_CREATE_CQ) ? 32'(cq.eq) : handle;
  // Of a length that exists: who is too long is told so first. An end of exactly 2^64 does not wrap: the last byte is still there.
  assign va_end   = {1'b0, mr.va[LenW-1:0]} + mr.length[LenW:0];
  assign host_end = {1'b0, mr.host_addr[LenW-1:0]} + mr.length[LenW:0];
  always_ff @(posedge clk_i) begin
    known_q     <= cmd_known(hdr.opcode);
    pd_ok_q     <= (pd_named || few) && 32'(pd) < NUM_PD && pd_valid_i;
    cq_ok_q     <= few && 32'(num) < NumCq && cq_valid_i;
    srq_ok_q    <= HasSrq && few && 32'(num) < NumSrq && srq_valid_i[num[SrqW-1:0]];
    xrcd_ok_q   <= few && 32'(num) < NUM_XRCD && xrcd_valid_i[num[XrcdW-1:0]];
    eq_there_q  <= eqn < NUM_EQ;
    eq_ok_q     <= eqn < NUM_EQ && eq_valid_i[eqn[EqW-1:0]];
    eq_used_q   <= eq_used_i;
    va_wrap_q   <= mr.va[63:LenW] == '1 && va_end[LenW] && va_end[LenW-1:0] != '0;
    host_wrap_q <= mr.host_addr[63:LenW] == '1 && host_end[LenW] && host_end[LenW-1:0] != '0;
  end

  // ---------------------------------------------------------------- second cycle
  function automatic logic ring_ok(logic [7:0] log_size);
    return log_size >= 8'd1 && log_size <= 8'(MAX_CQ_LOG_SIZE);
  endfunction
  // What a region lets others write it must let its owner write (ibv_reg_mr(3)).
  logic access_ok, mr_alloc;
  logic too_long;
  logic bad_offset;                          // none but 0 where there are no pages to have an offset in
  logic [31:0] mr_where;                     // offset of what is wrong with the memory behind it; 0: nothing
  logic mr_create;
  assign mr_create = hdr.opcode == CMD_OPCODE_CREATE_MR;
  always_comb begin
    mr_where = '0;
    if (mr.log_page != '0 && (mr.log_page < 8'(MIN_MR_LOG_PAGE) || mr.log_page > 8'(MAX_MR_LOG_PAGE))) mr_where = 32'd13;
    else if ((mr_create && mr.kind == 8'(MR_KIND_WINDOW)) ? mr.length != '0 : (mr.length == '0 && !(mr_create && mr_alloc)) || too_long) mr_where = 32'd24;
    else if (va_wrap_q && !(mr_create && mr_alloc)) mr_where = 32'd16;
    else if ((mr.log_page == '0) ? host_wrap_q && !(mr_create && mr_alloc) : mr.host_addr[5:0] != '0) mr_where = 32'd32;
    else if (bad_offset) mr_where = 32'd40;
  end
  assign too_long = mr.length[63:MAX_MR_LOG_LENGTH+1] != '0 || (mr.length[MAX_MR_LOG_LENGTH] && mr.length[MAX_MR_LOG_LENGTH-1:0] != '0);
  // A page size is one of a list or 0: bits from there on.
  always_comb begin
    bad_offset = mr.page_offset[31:MAX_MR_LOG_PAGE] != '0 || (mr.log_page == '0 && mr.page_offset[MIN_MR_LOG_PAGE-1:0] != '0);
    for (int unsigned i = MIN_MR_LOG_PAGE; i < MAX_MR_LOG_PAGE; i++) if (mr.page_offset[i] && mr.log_page[4:0] <= 5'(i)) bad_offset = 1'b1;
  end
  assign mr_alloc  = mr.kind != 8'(MR_KIND_REGION) && mr.length == '0;     // nothing is registered yet
  assign access_ok = (mr.access & (~ACCESS_ALL | 8'd1 << ACCESS_ZERO_BASED)) == '0
      && (mr.access[ACCESS_LOCAL_WRITE] || !(mr.access[ACCESS_REMOTE_WRITE] || mr.access[ACCESS_REMOTE_ATOMIC]));

  always_comb begin
    status_o = CMD_STATUS_OK;
    detail_o = '0;
    if (fatal_i) begin
      status_o = CMD_STATUS_FATAL;
    end else if (!known_q) begin
      status_o = CMD_STATUS_BAD_OPCODE;
`ifndef RNIC_CUT_CMD_RESERVED
    end else if (rsvd_i) begin
      status_o = CMD_STATUS_RESERVED_SET;
`endif
    end else begin
      unique case (hdr.opcode)
        CMD_OPCODE_QUERY_DEVICE, CMD_OPCODE_QUERY_COUNTERS:
        if (out.out_addr[5:0] != '0) {status_o, detail_o} = {CMD_STATUS_BAD_PARAM, 32'd56};
        CMD_OPCODE_SET_PORT:
        if (!few || num != 16'd1) {status_o, detail_o} = {CMD_STATUS_BAD_HANDLE, 32'd4};
        else if (port.mac == '0 || port.mac[0]) {status_o, detail_o} = {CMD_STATUS_BAD_PARAM, 32'd8};  // none, or a group's
        else if (port.mtu < 8'(MTU_256) || port.mtu > 8'(MTU_4096)) {status_o, detail_o} = {CMD_STATUS_BAD_PARAM, 32'd14};
        CMD_OPCODE_SET_GID:
        if (!few || 32'(num) >= NUM_GID) {status_o, detail_o} = {CMD_STATUS_BAD_HANDLE, 32'd4};
        else if (!gid_ok_i) {status_o, detail_o} = {CMD_STATUS_UNSUPPORTED, 32'd16};
        CMD_OPCODE_SET_PKEY:
        if (!few || 32'(num) >= NUM_PKEY) {status_o, detail_o} = {CMD_STATUS_BAD_HANDLE, 32'd4};
        else if (pkey.pkey == 16'h8000) {status_o, detail_o} = {CMD_STATUS_BAD_PARAM, 32'd8};  // no such partition
        CMD_OPCODE_CREATE_PD: if (!pd_free_i) status_o = CMD_STATUS_NO_RESOURCES;
        CMD_OPCODE_DESTROY_PD:
        if (!pd_ok_q) {status_o, detail_o} = {CMD_STATUS_BAD_HANDLE, 32'd4};
`ifndef RNIC_CUT_PD_IN_USE
        else if (pd_used_i) status_o = CMD_STATUS_IN_USE;
`endif
        CMD_OPCODE_CREATE_MR:
        if (!pd_ok_q) {status_o, detail_o} = {CMD_STATUS_BAD_HANDLE, 32'd8};
        else if (!access_ok) {status_o, detail_o} = {CMD_STATUS_BAD_PARAM, 32'd10};
        else if (mr.kind > 8'(MR_KIND_WINDOW)) {status_o, detail_o} = {CMD_STATUS_BAD_PARAM, 32'd12};
        else if (mr_where != '0) {status_o, detail_o} = {CMD_STATUS_BAD_PARAM, mr_where};
        else if (!mr_free_i) status_o = CMD_STATUS_NO_RESOURCES;
        CMD_OPCODE_DESTROY_MR:
        if (handle >> 8 >= NumMr || !mr_valid_i || (mr_kind_i == MR_KIND_REGION && mr_key_i != handle[7:0])) {status_o, detail_o} = {CMD_STATUS_BAD_HANDLE, 32'd4};
`ifndef RNIC_CUT_MR_IN_USE
        else if (mr_bound_i) status_o = CMD_STATUS_IN_USE;
`endif
        CMD_OPCODE_REREG_MR:
        if (handle >> 8 >= NumMr || !mr_valid_i || mr_kind_i != MR_KIND_REGION || mr_key_i != handle[7:0]) {status_o, detail_o} = {CMD_STATUS_BAD_HANDLE, 32'd4};
        else if (mr.change == '0) {status_o, detail_o} = {CMD_STATUS_BAD_PARAM, 32'd14};
        else if (mr.change[MR_CHANGE_PD] && !pd_ok_q) {status_o, detail_o} = {CMD_STATUS_BAD_HANDLE, 32'd8};
        else if (mr.change[MR_CHANGE_ACCESS] && !access_ok) {status_o, detail_o} = {CMD_STATUS_BAD_PARAM, 32'd10};
        else if (mr.change[MR_CHANGE_TRANSLATION] && mr_where != '0) {status_o, detail_o} = {CMD_STATUS_BAD_PARAM, mr_where};
        else if (mr_bound_i) status_o = CMD_STATUS_IN_USE;
        CMD_OPCODE_CREATE_CQ:
        if (!ring_ok(cq.log_size)) {status_o, detail_o} = {CMD_STATUS_BAD_PARAM, 32'd8};
        else if (!eq_ok_q) {status_o, detail_o} = {CMD_STATUS_BAD_HANDLE, 32'd9};
        else if (32'(cq.uar) >= NUM_UAR) {status_o, detail_o} = {CMD_STATUS_BAD_PARAM, 32'd10};
        else if (cq.base[5:0] != '0) {status_o, detail_o} = {CMD_STATUS_BAD_PARAM, 32'd16};
        else if (!cq_free_i) status_o = CMD_STATUS_NO_RESOURCES;
        CMD_OPCODE_MODIFY_CQ:
        if (!cq_ok_q) {status_o, detail_o} = {CMD_STATUS_BAD_HANDLE, 32'd4};
        else if (cq.event_period > 16'(MAX_CQ_PERIOD)) {status_o, detail_o} = {CMD_STATUS_BAD_PARAM, 32'd14};
        CMD_OPCODE_RESIZE_CQ:                // what waits in it is judged by the CQ block, when it stands still
        if (!cq_ok_q) {status_o, detail_o} = {CMD_STATUS_BAD_HANDLE, 32'd4};
        else if (!ring_ok(cq.log_size)) {status_o, detail_o} = {CMD_STATUS_BAD_PARAM, 32'd8};
        else if (cq.base[5:0] != '0) {status_o, detail_o} = {CMD_STATUS_BAD_PARAM, 32'd16};
        CMD_OPCODE_DESTROY_CQ:
        if (!cq_ok_q) {status_o, detail_o} = {CMD_STATUS_BAD_HANDLE, 32'd4};
`ifndef RNIC_CUT_CQ_IN_USE
        else if (cq_used_i) status_o = CMD_STATUS_IN_USE;
`endif
        CMD_OPCODE_CREATE_SRQ:
        if (!HasSrq) status_o = CMD_STATUS_UNSUPPORTED;
        else if (!pd_ok_q) {status_o, detail_o} = {CMD_STATUS_BAD_HANDLE, 32'd8};
        else if (32'(srq.uar) >= NUM_UAR) {status_o, detail_o} = {CMD_STATUS_BAD_PARAM, 32'd10};
        else if (srq.log_size == '0 || 32'(srq.log_stride) > MaxRqStride) {status_o, detail_o} = {CMD_STATUS_BAD_PARAM, 32'd11};
        else if (srq.base[5:0] != '0) {status_o, detail_o} = {CMD_STATUS_BAD_PARAM, 32'd16};
        else if (!srq_free_i) status_o = CMD_STATUS_NO_RESOURCES;
        CMD_OPCODE_MODIFY_SRQ, CMD_OPCODE_QUERY_SRQ: if (!srq_ok_q) {status_o, detail_o} = {CMD_STATUS_BAD_HANDLE, 32'd4};
        CMD_OPCODE_DESTROY_SRQ:
        if (!srq_ok_q) {status_o, detail_o} = {CMD_STATUS_BAD_HANDLE, 32'd4};
`ifndef RNIC_CUT_SRQ_IN_USE
        else if (srq_used_i) status_o = CMD_STATUS_IN_USE;
`endif
        CMD_OPCODE_CREATE_XRCD: if (!xrcd_free_i) status_o = CMD_STATUS_NO_RESOURCES;
        CMD_OPCODE_DESTROY_XRCD:
        if (!xrcd_ok_q) {status_o, detail_o} = {CMD_STATUS_BAD_HANDLE, 32'd4};
`ifndef RNIC_CUT_XRCD_IN_USE
        else if (xrcd_used_i) status_o = CMD_STATUS_IN_USE;
`endif
        CMD_OPCODE_CREATE_EQ:
        if (!eq_there_q) {status_o, detail_o} = {CMD_STATUS_BAD_HANDLE, 32'd4};
        else if (eq_ok_q) status_o = CMD_STATUS_IN_USE;
        else if (!ring_ok(eq.log_size)) {status_o, detail_o} = {CMD_STATUS_BAD_PARAM, 32'd8};
        else if (eq.base[5:0] != '0) {status_o, detail_o} = {CMD_STATUS_BAD_PARAM, 32'd16};
        CMD_OPCODE_DESTROY_EQ:
        if (!eq_ok_q) {status_o, detail_o} = {CMD_STATUS_BAD_HANDLE, 32'd4};
        else if (eq_used_q) status_o = CMD_STATUS_IN_USE;
        default: ;                           // a QP command: the QP engine judges the rest
      endcase
    end
  end
endmodule
