// SPDX-License-Identifier: Apache-2.0
// BAR0 registers: self-describing blocks (identification, capabilities, control, command ring, event queues), the windows of
// counters and MSI-X, and the way to the doorbell pages.
// Contract: a write takes effect in its cycle; an answer to re_i stands two cycles later in rdata_o, and rok_o tells whether
// the address exists. Writes to read-only or missing registers are counted (bad_write_o) and change nothing.
module rnic_bar_regs
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned DataW = 64,
    parameter int unsigned QpIdxW = 10,
    parameter int unsigned NumCq = 256,
    parameter int unsigned NumMr = 1024,
    parameter int unsigned DmaTags = 64,
    parameter int unsigned ClkPeriodPs = 8000,
    parameter int unsigned MaxSqStride = 3,
    parameter int unsigned MaxRqStride = 4
) (
    input  logic clk_i,
    input  logic rst_i,
    input  logic we_i,
    input  logic we64_i,
    input  logic [17:0] waddr_i,
    input  logic [63:0] wdata_i,
    input  logic re_i,
    input  logic [17:0] raddr_i,
    output logic [63:0] rdata_o,
    output logic rok_o,
    output logic bad_write_o,
    // registers
    input  logic port_up_i,
    output logic enable_o,
    output logic force_fatal_o,
    input  logic ready_i,
    input  logic fatal_i,
    input  fatal_reason_e fatal_reason_i,
    output logic [10:0] mps_o,
    output logic [10:0] mrrs_o,
    output logic [31:0] cpl_timeout_o,
    output logic [63:0] cycles_o,
    output logic [63:0] cmd_ring_base_o,
    output logic [63:0] cmd_cpl_base_o,
    output logic [3:0] cmd_log_size_o,
    output logic cmd_restart_o,
    output logic cmd_producer_we_o,
    output logic [15:0] cmd_producer_o,
    input  logic [15:0] cmd_producer_i,
    input  logic [15:0] cmd_consumer_i,
    input  logic [2:0] cmd_status_i,
    output logic eq_db_valid_o,
    output db_eq_t eq_db_o,
    // windows
    output logic [6:0] cnt_idx_o,
    input  logic [63:0] cnt_data_i,          // one cycle later
    output logic tbl_we_o,
    output logic [11:0] tbl_raddr_o,
    input  logic [63:0] tbl_rdata_i,
    input  logic [NUM_MSIX-1:0] pba_i
);
  logic [19:0][31:0] caps;
  rnic_caps #(
      .DataW(DataW), .QpIdxW(QpIdxW), .NumCq(NumCq), .NumMr(NumMr), .DmaTags(DmaTags), .ClkPeriodPs(ClkPeriodPs),
      .MaxSqStride(MaxSqStride), .MaxRqStride(MaxRqStride)
  ) u_caps (.caps_o(caps));
  localparam logic [31:0] ForceFatal = 32'h4641_5441;

  logic [63:0] cycles_q;
  assign cycles_o = cycles_q;

  // ---------------------------------------------------------------- read
  // One 32-bit register, by its byte offset.
  function automatic logic [32:0] rd32(logic [17:0] a, logic [31:0] status, fatal_reason_e reason);
    logic [31:0] v;
    logic ok;
    ok = 1'b1;
    v  = '0;
    unique case (a)
      BLK_ID_BASE: v = BLK_ID_TYPE;
      BLK_ID_BASE + 18'd4: v = 32'(BLK_ID_NEXT);
      REG_ID_MAGIC: v = DEV_MAGIC;
      REG_ID_VERSION: v = DEV_VERSION;
      BLK_CAPS_BASE: v = BLK_CAPS_TYPE;
      BLK_CAPS_BASE + 18'd4: v = 32'(BLK_CAPS_NEXT);
      BLK_CTRL_BASE: v = BLK_CTRL_TYPE;
      BLK_CTRL_BASE + 18'd4: v = 32'(BLK_CTRL_NEXT);
      REG_CTRL_ENABLE: v = 32'(enable_o);
      REG_CTRL_STATUS: v = status;
      REG_CTRL_FATAL_REASON: v = 32'(reason);
      REG_CTRL_MPS: v = 32'(mps_o);
      REG_CTRL_MRRS: v = 32'(mrrs_o);
      REG_CTRL_CPL_TIMEOUT: v = cpl_timeout_o;
      REG_CTRL_CYCLES: v = cycles_q[31:0];
      REG_CTRL_CYCLES + 18'd4: v = cycles_q[63:32];
      BLK_CMD_BASE: v = BLK_CMD_TYPE;
      BLK_CMD_BASE + 18'd4: v = 32'(BLK_CMD_NEXT);
      REG_CMD_RING_BASE: v = cmd_ring_base_o[31:0];
      REG_CMD_RING_BASE + 18'd4: v = cmd_ring_base_o[63:32];
      REG_CMD_CPL_BASE: v = cmd_cpl_base_o[31:0];
      REG_CMD_CPL_BASE + 18'd4: v = cmd_cpl_base_o[63:32];
      REG_CMD_LOG_SIZE: v = 32'(cmd_log_size_o);
      REG_CMD_PRODUCER: v = 32'(cmd_producer_i);
      REG_CMD_CONSUMER: v = 32'(cmd_consumer_i);
      REG_CMD_RING_STATUS: v = 32'(cmd_status_i);
      BLK_EQ_BASE: v = BLK_EQ_TYPE;
      BLK_EQ_BASE + 18'd4: v = 32'(BLK_EQ_NEXT);
      REG_EQ_DOORBELL, REG_EQ_DOORBELL + 18'd4, REG_CTRL_FORCE_FATAL: v = '0;
      default: ok = 1'b0;
    endcase
    if (a >= REG_CAPS_LOG_QP && a <= REG_CAPS_MAX_RQ_STRIDE) begin
      ok = 1'b1;
      v  = caps[5'((a - REG_CAPS_LOG_QP) >> 2)];
    end
    return {ok, v};
  endfunction

  logic [17:0] ra_q;
  logic [32:0] lo, hi;
  logic [31:0] status;
  logic in_cnt, in_tbl, in_pba;
  assign status = {29'd0, port_up_i, fatal_i, ready_i};
  assign lo     = rd32(ra_q, status, fatal_reason_i);
  assign hi     = rd32(ra_q + 18'd4, status, fatal_reason_i);
  assign in_cnt = ra_q >= 18'(COUNTERS_BASE) && ra_q < 18'(COUNTERS_BASE) + 18'(8 * NUM_CNT);
  assign in_tbl = ra_q >= 18'(MSIX_TABLE_BASE) && ra_q < 18'(MSIX_TABLE_BASE) + 18'(16 * NUM_MSIX);
  assign in_pba = ra_q >= 18'(MSIX_PBA_BASE) && ra_q < 18'(MSIX_PBA_BASE) + 18'd8;
  assign cnt_idx_o   = raddr_i[9:3];
  assign tbl_raddr_o = ra_q[11:0];
  always_ff @(posedge clk_i) begin
    if (re_i) ra_q <= raddr_i;
    // Second cycle: the counter's answer is there.
    rok_o   <= lo[32] || in_cnt || in_tbl || in_pba;
    rdata_o <= {hi[32] ? hi[31:0] : 32'd0, lo[31:0]};
    if (in_cnt) rdata_o <= ra_q[2] ? {32'd0, cnt_data_i[63:32]} : cnt_data_i;
    if (in_tbl) rdata_o <= tbl_rdata_i;
    if (in_pba) rdata_o <= ra_q[2] ? '0 : 64'(pba_i);
  end

  // ---------------------------------------------------------------- write
  function automatic logic size_ok(logic [31:0] v);
    return v == 32'd128 || v == 32'd256 || v == 32'd512 || v == 32'd1024;
  endfunction
  logic w_tbl, w_known;
  logic [31:0] w32;
  assign w32      = wdata_i[31:0];
  assign w_tbl    = waddr_i >= 18'(MSIX_TABLE_BASE) && waddr_i < 18'(MSIX_TABLE_BASE) + 18'(16 * NUM_MSIX);
  assign tbl_we_o = we_i && w_tbl;
  always_comb begin
    w_known = w_tbl || waddr_i >= 18'(UAR_BASE);
    unique case (waddr_i)
      REG_CTRL_ENABLE, REG_CTRL_FORCE_FATAL, REG_CTRL_MPS, REG_CTRL_MRRS, REG_CTRL_CPL_TIMEOUT, REG_CMD_LOG_SIZE, REG_CMD_PRODUCER,
      REG_CMD_RING_BASE, REG_CMD_RING_BASE + 18'd4, REG_CMD_CPL_BASE, REG_CMD_CPL_BASE + 18'd4: w_known = 1'b1;
      REG_EQ_DOORBELL: w_known = we64_i;
      default: ;
    endcase
  end
  assign bad_write_o = we_i && !w_known;

  always_ff @(posedge clk_i) begin
    cycles_q          <= cycles_q + 64'd1;
    force_fatal_o     <= 1'b0;
    cmd_restart_o     <= 1'b0;
    cmd_producer_we_o <= 1'b0;
    eq_db_valid_o     <= 1'b0;
    eq_db_o           <= db_eq_t'(wdata_i);
    cmd_producer_o    <= w32[15:0];
    if (we_i) begin
      unique case (waddr_i)
        REG_CTRL_ENABLE: enable_o <= w32[0];
        REG_CTRL_FORCE_FATAL: force_fatal_o <= w32 == ForceFatal;
        REG_CTRL_MPS: if (size_ok(w32)) mps_o <= w32[10:0];
        REG_CTRL_MRRS: if (size_ok(w32)) mrrs_o <= (w32 > 32'd512) ? 11'd512 : w32[10:0];
        REG_CTRL_CPL_TIMEOUT: cpl_timeout_o <= w32;
        REG_CMD_RING_BASE: begin
          cmd_ring_base_o[31:0] <= w32;
          if (we64_i) cmd_ring_base_o[63:32] <= wdata_i[63:32];
        end
        REG_CMD_RING_BASE + 18'd4: cmd_ring_base_o[63:32] <= w32;
        REG_CMD_CPL_BASE: begin
          cmd_cpl_base_o[31:0] <= w32;
          if (we64_i) cmd_cpl_base_o[63:32] <= wdata_i[63:32];
        end
        REG_CMD_CPL_BASE + 18'd4: cmd_cpl_base_o[63:32] <= w32;
        REG_CMD_LOG_SIZE: begin
          cmd_log_size_o <= w32[3:0];
          cmd_restart_o  <= 1'b1;
        end
        REG_CMD_PRODUCER: cmd_producer_we_o <= 1'b1;
        REG_EQ_DOORBELL: eq_db_valid_o <= we64_i;
        default: ;
      endcase
    end
    if (rst_i) begin
      cycles_q        <= '0;
      enable_o        <= 1'b0;
      mps_o           <= 11'd256;
      mrrs_o          <= 11'd512;
      cpl_timeout_o   <= 32'd50_000;
      cmd_ring_base_o <= '0;
      cmd_cpl_base_o  <= '0;
      cmd_log_size_o  <= '0;
      cmd_restart_o     <= 1'b0;
      cmd_producer_we_o <= 1'b0;
      eq_db_valid_o     <= 1'b0;
      force_fatal_o     <= 1'b0;
    end
  end
endmodule
