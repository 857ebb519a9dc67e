// SPDX-License-Identifier: Apache-2.0
// Local operations of a send queue, LOCAL_INV, REG_MR and BIND_MW: reads the rest of the WQE, judges its form, and has rnic_mr do it.
// Contract: start_i is a pulse, with the WQE's line and first half held until done_o, which pulses with status and vendor error. No
// host is waited for. A WQE that makes no sense is LOC_QP_OP_ERR, one that the key or region refuses MW_BIND_ERR ("memory
// management operation error" in IBTA); nothing is changed then.
module rnic_send_local
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
  import rnic_send_pkg::*;
#(
    parameter int unsigned DataW = 64
) (
    input  logic             clk_i,
    input  logic             rst_i,
    input  logic             start_i,
    input  line_idx_t        line_i,
    input  logic [255:0]     half_i,         // the WQE's first half
    input  logic [15:0]      pd_i,
    input  qpn_t             qpn_i,
    output line_rd_t         rd_o,
    // verilator lint_off UNUSEDSIGNAL
    input  logic [DataW-1:0] rd_data_i,      // (at 512 bits the first half stands beside the second)
    // verilator lint_on UNUSEDSIGNAL
    output logic             op_valid_o,
    output mr_op_t           op_o,
    input  logic             op_done_i,
    input  mr_err_e          op_err_i,
    output logic             done_o,
    output wc_status_e       status_o,
    output logic [7:0]       vendor_o
);
  localparam int unsigned Beats = (DataW >= 256) ? 1 : 256 / DataW;    // of half a WQE
  localparam int unsigned First = (DataW >= 512) ? 0 : Beats;

  typedef enum logic [1:0] {
    L_IDLE,
    L_READ,    // the second half comes
    L_FORM,    // it is here: does it make sense?
    L_OP       // rnic_mr works
  } state_e;
  state_e state_q;
  logic [2:0] beat_q;
  logic [255:0] rest_q;
  // verilator lint_off UNUSEDSIGNAL
  sq_wqe_mr_t wqe;                           // (flags are the visit's business, reserved bits nobody's)
  // verilator lint_on UNUSEDSIGNAL
  assign wqe      = {rest_q, half_i};
  // What ends with the address space still fits. No length beyond LenW bits does, so that only what begins in its last part can run over.
  localparam int unsigned LenW = MAX_MR_LOG_LENGTH;
  function automatic logic runs_over(logic [63:0] from, logic [LenW:0] length);
    logic [LenW:0] last;
    last = {1'b0, from[LenW-1:0]} + length;
    return &from[63:LenW] && (last[LenW] && last[LenW-1:0] != '0);
  endfunction
  logic va_over, host_over;
  assign va_over   = runs_over(wqe.va, wqe.length[LenW:0]);
  assign host_over = runs_over(wqe.host_addr, wqe.length[LenW:0]);

  logic reg_mr, bind_mw, lengths_ok, pages_ok, access_ok, form_ok;
  logic beyond_page;
  assign reg_mr     = wqe.opcode == 8'(WQE_OPCODE_REG_MR);
  assign bind_mw    = wqe.opcode == 8'(WQE_OPCODE_BIND_MW);
  always_comb begin
    beyond_page = 1'b0;
    for (int unsigned i = 0; i < $bits(wqe.page_offset); i++) if (wqe.page_offset[i] && (i >= 32 || i >= 32'(wqe.log_page[4:0]))) beyond_page = 1'b1;
  end
  assign lengths_ok = wqe.length != '0 && wqe.length <= 64'd1 << MAX_MR_LOG_LENGTH && !va_over;
  assign pages_ok   = ((wqe.log_page == '0) ? !host_over : wqe.log_page >= 8'(MIN_MR_LOG_PAGE) && wqe.log_page <= 8'(MAX_MR_LOG_PAGE) && wqe.host_addr[5:0] == '0) &&
      !beyond_page;
  always_comb begin
    access_ok = 1'b1;
    // What a region lets others write it must let its owner write; a window gives rights to others only.
    if (reg_mr)
      access_ok = (wqe.access & ~8'h1f) == '0 && (wqe.access[ACCESS_LOCAL_WRITE] || !(wqe.access[ACCESS_REMOTE_WRITE] || wqe.access[ACCESS_REMOTE_ATOMIC]));
    if (bind_mw) access_ok = (wqe.access & ~8'h2e) == '0;
  end
`ifdef RNIC_CUT_LOCAL_FORM
  assign form_ok = 1'b1;
`else
  assign form_ok = (!reg_mr && !bind_mw) || (lengths_ok && access_ok && (bind_mw || pages_ok));
`endif

  always_comb begin
    op_o             = '0;
    op_o.op          = reg_mr ? MR_OP_REG : bind_mw ? MR_OP_BIND : MR_OP_INV;
    op_o.key         = wqe.rkey;
    op_o.pd          = pd_i;
    op_o.qpn         = qpn_i;
    op_o.access      = wqe.access[5:0];
    op_o.va          = wqe.va;
    op_o.length      = 49'(wqe.length);
    op_o.host_addr   = wqe.host_addr;
    op_o.log_page    = wqe.log_page[4:0];
    op_o.page_offset = wqe.page_offset[29:0];
    op_o.lkey        = wqe.lkey;
  end
  assign op_valid_o = state_q == L_OP;
  assign rd_o       = '{valid: state_q == L_READ && 32'(beat_q) != Beats, line: line_i, beat: 7'(First) + 7'(beat_q)};

  always_comb begin
    done_o   = 1'b0;
    status_o = WC_STATUS_SUCCESS;
    vendor_o = VENDOR_ERR_NONE;
    if (state_q == L_FORM && !form_ok) begin
      done_o   = 1'b1;
      status_o = WC_STATUS_LOC_QP_OP_ERR;
    end else if (state_q == L_OP && op_done_i) begin
      done_o = 1'b1;
      if (op_err_i != MR_ERR_OK) begin
        status_o = WC_STATUS_MW_BIND_ERR;
        vendor_o = 8'h10 | 8'(op_err_i);
      end
    end
  end

  always_ff @(posedge clk_i) begin
    unique case (state_q)
      L_IDLE: begin
        beat_q <= '0;
        if (start_i) state_q <= L_READ;
      end
      L_READ: begin
        beat_q <= beat_q + 3'd1;
        if (32'(beat_q) == Beats) state_q <= L_FORM;
      end
      L_FORM: state_q <= form_ok ? L_OP : L_IDLE;
      default: if (op_done_i) state_q <= L_IDLE;
    endcase
    if (rst_i) state_q <= L_IDLE;
  end
  if (DataW >= 256) begin : g_one
    always_ff @(posedge clk_i) if (state_q == L_READ) rest_q <= rd_data_i[DataW-1-:256];
  end else begin : g_beats
    always_ff @(posedge clk_i) if (state_q == L_READ) rest_q <= {rd_data_i, rest_q[255:DataW]};
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      if (start_i) a_idle : assert (state_q == L_IDLE);
      if (op_done_i) a_asked : assert (state_q == L_OP);
    end
  end
endmodule
