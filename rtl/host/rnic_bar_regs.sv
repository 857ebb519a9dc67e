// SPDX-License-Identifier: Apache-2.0
// BAR0 registers: self-describing blocks (identification, capabilities, control, command ring, event queues, MAC), the windows onto
// counters and MSI-X, and the way to the doorbell pages.
// Contract: everything is addressed by aligned 8 bytes with a flag per half (a 32-bit register each; a 64-bit register may be
// written by halves, but for doorbells). A write takes effect in its cycle, outputs follow one cycle later. The answer to re_i, which
// stays high with its address, stands in rdata_o and ok_o (the half exists) in its fifth cycle. Writes to read-only or missing registers change nothing and
// are counted (bad_write_o); values that a register does not know are ignored. Reads of doorbells give 0.
module rnic_bar_regs
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned DataW = 64,
    parameter int unsigned QpIdxW = 10,
    parameter int unsigned NumCq = 256,
    parameter int unsigned NumMr = 1024,
    parameter int unsigned NumSrq = 64,
    parameter int unsigned DmaTags = 64,
    parameter int unsigned ClkPeriodPs = 8000,
    parameter int unsigned MaxSqStride = 4,
    parameter int unsigned MaxRqStride = 4,
    parameter int unsigned MaxRd = MAX_RD_ATOMIC,
    parameter bit Ipv6 = 1'b1,
    parameter int unsigned LocalMemLog = 0
) (
    input  logic clk_i,
    input  logic rst_i,
    input  logic [1:0] we_i,
    input  logic [BAR0_ADDR_W-1:3] waddr_i,
    input  logic [63:0] wdata_i,
    input  logic re_i,
    input  logic [BAR0_ADDR_W-1:3] raddr_i,
    output logic [63:0] rdata_o,
    output logic [1:0] ok_o,
    output logic bad_write_o,
    // registers
    input  logic port_up_i,
    input  mac_regs_t mac_regs_i,
    output logic enable_o,
    output logic force_fatal_o,
    input  logic ready_i,
    input  logic fatal_i,
    input  fatal_reason_e fatal_reason_i,
    output logic [10:0] mps_o,
    output logic [10:0] mrrs_o,
    output logic [23:0] cpl_timeout_o,
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
    // a look at a queue pair: asked until it is answered
    output logic diag_valid_o,
    output diag_select_t diag_o,
    input  logic diag_done_i,
    input  logic [63:0] diag_data_i,
    input  logic [7:0] diag_reads_i,
    // windows
    output logic cnt_re_o,
    output logic [6:0] cnt_idx_o,
    input  logic [63:0] cnt_data_i,          // in the fourth cycle; zero when nobody asks
    output logic [1:0] tbl_we_o,
    output logic tbl_re_o,
    output logic [3:0] tbl_raddr_o,
    input  logic [63:0] tbl_rdata_i,         // same cycle
    input  logic [NUM_MSIX-1:0] pba_i,
    // doorbell pages
    output logic db_valid_o,
    output logic db_whole_o                  // one 64-bit write
);
  caps_t caps;
  rnic_caps #(
      .DataW(DataW), .QpIdxW(QpIdxW), .NumCq(NumCq), .NumMr(NumMr), .NumSrq(NumSrq), .DmaTags(DmaTags), .ClkPeriodPs(ClkPeriodPs),
      .MaxSqStride(MaxSqStride), .MaxRqStride(MaxRqStride), .MaxRd(MaxRd), .Ipv6(Ipv6), .LocalMemLog(LocalMemLog)
  ) u_caps (.caps_o(caps));
  localparam logic [31:0] ForceFatal = 32'h4641_5441;
  // Time-outs are told apart by half the range of a 24-bit cycle counter; a shorter one than this no host could keep.
  localparam logic [31:0] TimeoutMin = 32'd64, TimeoutMax = 32'h007f_ffff;
  typedef logic [BAR0_ADDR_W-1:0] addr_t;

  logic [63:0] cycles_q;
  assign cycles_o = cycles_q;

  // ---------------------------------------------------------------- read
  typedef struct packed {
    logic        ok;
    logic [31:0] value;
  } word_t;
  logic [31:0] status;
  logic [63:0] diag_data_q;
  diag_status_t diag_status;
  always_comb begin
    diag_status       = '0;
    diag_status.busy  = diag_valid_o;
    diag_status.reads = diag_reads_i;
  end
  assign status = {29'd0, port_up_i, fatal_i, ready_i};

  // Which registers exist, and those that never change.
  function automatic word_t fixed(addr_t a);
    word_t r;
    r = '{ok: 1'b1, value: '0};
    unique case (a)
      BLK_ID_BASE: r.value = BLK_ID_TYPE;
      BLK_ID_BASE + addr_t'(4): r.value = BLK_ID_NEXT;
      REG_ID_MAGIC: r.value = DEV_MAGIC;
      REG_ID_VERSION: r.value = DEV_VERSION;
      BLK_CAPS_BASE: r.value = BLK_CAPS_TYPE;
      BLK_CAPS_BASE + addr_t'(4): r.value = BLK_CAPS_NEXT;
      BLK_CTRL_BASE: r.value = BLK_CTRL_TYPE;
      BLK_CTRL_BASE + addr_t'(4): r.value = BLK_CTRL_NEXT;
      REG_CTRL_ENABLE, REG_CTRL_STATUS, REG_CTRL_FATAL_REASON, REG_CTRL_FORCE_FATAL, REG_CTRL_MPS, REG_CTRL_MRRS,
      REG_CTRL_CPL_TIMEOUT, REG_CTRL_CYCLES, REG_CTRL_CYCLES + addr_t'(4): ;
      BLK_CMD_BASE: r.value = BLK_CMD_TYPE;
      BLK_CMD_BASE + addr_t'(4): r.value = BLK_CMD_NEXT;
      REG_CMD_RING_BASE, REG_CMD_RING_BASE + addr_t'(4), REG_CMD_CPL_BASE, REG_CMD_CPL_BASE + addr_t'(4),
      REG_CMD_LOG_SIZE, REG_CMD_PRODUCER, REG_CMD_CONSUMER, REG_CMD_RING_STATUS: ;
      BLK_EQ_BASE: r.value = BLK_EQ_TYPE;
      BLK_EQ_BASE + addr_t'(4): r.value = BLK_EQ_NEXT;
      REG_EQ_DOORBELL, REG_EQ_DOORBELL + addr_t'(4): ;
      BLK_DIAG_BASE: r.value = BLK_DIAG_TYPE;
      BLK_DIAG_BASE + addr_t'(4): r.value = BLK_DIAG_NEXT;
      REG_DIAG_SELECT, REG_DIAG_STATUS, REG_DIAG_DATA, REG_DIAG_DATA + addr_t'(4): ;
      BLK_MAC_BASE: r.value = BLK_MAC_TYPE;
      BLK_MAC_BASE + addr_t'(4): r.value = BLK_MAC_NEXT;
      default: r.ok = 1'b0;
    endcase
    if (a >= REG_CAPS_LOG_QP && a <= REG_CAPS_LOCAL_MEM_LOG_SIZE) r = '{ok: 1'b1, value: caps[5'((a - REG_CAPS_LOG_QP) >> 2)]};
    if (a >= REG_MAC_PHY_STATUS && a <= REG_MAC_TX_LONG) r.ok = 1'b1;
    return r;
  endfunction

  // The others by their 8 bytes.
  localparam int unsigned NumCtl = 12, NumMac = (NUM_MAC_REGS + 1) / 2, NumWords = NumCtl + NumMac;
  localparam logic [NumCtl-1:0][BAR0_ADDR_W-1:0] CtlAddr = {
    BAR0_ADDR_W'(MSIX_PBA_BASE),
    REG_DIAG_DATA, REG_DIAG_SELECT, REG_CMD_CONSUMER, REG_CMD_LOG_SIZE, REG_CMD_CPL_BASE, REG_CMD_RING_BASE,
    REG_CTRL_CYCLES, REG_CTRL_CPL_TIMEOUT, REG_CTRL_MPS, REG_CTRL_FATAL_REASON, REG_CTRL_ENABLE
  };
  logic [NumWords-1:0][63:0] words;
  assign words = {
    (64 * NumMac)'(mac_regs_i),
    64'(pba_i),
    diag_data_q, diag_status, 32'(diag_o), {29'd0, cmd_status_i}, 32'(cmd_consumer_i), 32'(cmd_producer_i), 32'(cmd_log_size_o),
    cmd_cpl_base_o, cmd_ring_base_o,
    cycles_q, 64'(cpl_timeout_o), 32'(mrrs_o), 32'(mps_o), 64'(fatal_reason_i), status, 32'(enable_o)
  };

  // Windows; addresses below stand for 8 bytes.
  function automatic logic in_range(logic [BAR0_ADDR_W-1:3] a, int unsigned base, int unsigned bytes);
    return a >= (BAR0_ADDR_W - 3)'(base / 8) && a < (BAR0_ADDR_W - 3)'((base + bytes) / 8);
  endfunction
  function automatic logic in_counters(logic [BAR0_ADDR_W-1:3] a);
    return in_range(a, COUNTERS_BASE, 8 * NUM_CNT);
  endfunction
  function automatic logic in_table(logic [BAR0_ADDR_W-1:3] a);
    return in_range(a, MSIX_TABLE_BASE, 16 * NUM_MSIX);
  endfunction
  function automatic logic in_pages(logic [BAR0_ADDR_W-1:3] a);
    return in_range(a, UAR_BASE, UAR_BYTES * NUM_UAR);
  endfunction

  // Each word has a register that is cleared unless its address is asked for: what is left to choose among them is an OR.
  logic [BAR0_ADDR_W-1:3] ra_q;
  word_t lo, hi;
  logic [NumWords-1:0][63:0] word_q;
  logic [63:0] fixed_q, entry_q;
  logic at_table;
  assign lo          = fixed({ra_q, 3'b000});
  assign hi          = fixed({ra_q, 3'b100});
  assign cnt_idx_o   = ra_q[9:3];            // the window is aligned
  assign tbl_raddr_o = ra_q[6:3];
  assign at_table    = in_table(ra_q);
  for (genvar k = 0; k < NumWords; k++) begin : g_word
    localparam logic [BAR0_ADDR_W-1:0] At = (k < NumCtl) ? CtlAddr[k%NumCtl] : REG_MAC_PHY_STATUS + addr_t'(8 * (k - NumCtl));
    always_ff @(posedge clk_i) word_q[k] <= (ra_q != At[BAR0_ADDR_W-1:3]) ? '0 : words[k];
  end
  logic asked_q;
  assign tbl_re_o = asked_q && at_table;
  assign cnt_re_o = asked_q && in_counters(ra_q);
  always_ff @(posedge clk_i) begin
    ra_q       <= raddr_i;
    asked_q    <= re_i && !rst_i;
    ok_o       <= {hi.ok, lo.ok} | {2{in_counters(ra_q) || at_table || in_range(ra_q, MSIX_PBA_BASE, 8) || in_pages(ra_q)}};
    fixed_q    <= {hi.value, lo.value};
    entry_q    <= at_table ? tbl_rdata_i : '0;
  end
  always_comb begin
    rdata_o = fixed_q | entry_q | cnt_data_i;
    for (int unsigned k = 0; k < NumWords; k++) rdata_o |= word_q[k];
  end

  // ---------------------------------------------------------------- write
  logic [1:0] known;
  addr_t wlo, whi;
  logic whole;
  assign whole       = we_i == 2'b11;
  assign wlo         = {waddr_i, 3'b000};
  assign whi         = {waddr_i, 3'b100};
  assign tbl_we_o    = in_table(waddr_i) ? we_i : '0;
  assign db_valid_o  = (|we_i) && in_pages(waddr_i);
  assign db_whole_o  = whole;
  // (a register's address names its half and its 8 bytes)
  // verilator lint_off UNUSEDSIGNAL
  function automatic logic hit(logic [1:0] we, logic [BAR0_ADDR_W-1:3] a, addr_t which);
    return we[which[2]] && a == which[BAR0_ADDR_W-1:3];
  endfunction
  // The half that holds a register.
  function automatic logic [31:0] half(logic [63:0] d, addr_t which);
    return which[2] ? d[63:32] : d[31:0];
  endfunction
  // verilator lint_on UNUSEDSIGNAL
  function automatic logic writable(addr_t a, logic both);
    unique case (a)
      REG_CTRL_ENABLE, REG_CTRL_FORCE_FATAL, REG_CTRL_MPS, REG_CTRL_MRRS, REG_CTRL_CPL_TIMEOUT, REG_CMD_LOG_SIZE, REG_CMD_PRODUCER, REG_DIAG_SELECT,
      REG_CMD_RING_BASE, REG_CMD_RING_BASE + addr_t'(4), REG_CMD_CPL_BASE, REG_CMD_CPL_BASE + addr_t'(4): return 1'b1;
      REG_EQ_DOORBELL, REG_EQ_DOORBELL + addr_t'(4): return both;
      default: return 1'b0;
    endcase
  endfunction
  assign known       = {writable(whi, whole), writable(wlo, whole)} | {2{in_table(waddr_i) || in_pages(waddr_i)}};
  assign bad_write_o = |(we_i & ~known);

  function automatic logic size_ok(logic [31:0] v);
    return v == 32'd128 || v == 32'd256 || v == 32'd512 || v == 32'd1024;
  endfunction

  always_ff @(posedge clk_i) begin
    automatic logic [31:0] w;
    cycles_q          <= cycles_q + 64'd1;
    eq_db_o           <= db_eq_t'(wdata_i);
    eq_db_valid_o     <= whole && waddr_i == REG_EQ_DOORBELL[BAR0_ADDR_W-1:3];
    force_fatal_o     <= hit(we_i, waddr_i, REG_CTRL_FORCE_FATAL) && half(wdata_i, REG_CTRL_FORCE_FATAL) == ForceFatal;
    w = half(wdata_i, REG_CMD_PRODUCER);
    cmd_producer_o    <= w[15:0];
    cmd_producer_we_o <= hit(we_i, waddr_i, REG_CMD_PRODUCER);
    w = half(wdata_i, REG_CTRL_ENABLE);
    if (hit(we_i, waddr_i, REG_CTRL_ENABLE)) enable_o <= w[0];
    w = half(wdata_i, REG_CTRL_MPS);
    if (hit(we_i, waddr_i, REG_CTRL_MPS) && size_ok(w)) mps_o <= w[10:0];
    w = half(wdata_i, REG_CTRL_MRRS);
    if (hit(we_i, waddr_i, REG_CTRL_MRRS) && size_ok(w)) mrrs_o <= w[10:0];
    w = half(wdata_i, REG_CTRL_CPL_TIMEOUT);
    if (hit(we_i, waddr_i, REG_CTRL_CPL_TIMEOUT)) cpl_timeout_o <= (w > TimeoutMax) ? TimeoutMax[23:0] : (w < TimeoutMin) ? TimeoutMin[23:0] : w[23:0];
    for (int unsigned h = 0; h < 2; h++) begin
      if (we_i[h] && waddr_i == REG_CMD_RING_BASE[BAR0_ADDR_W-1:3]) cmd_ring_base_o[32*h+:32] <= wdata_i[32*h+:32];
      if (we_i[h] && waddr_i == REG_CMD_CPL_BASE[BAR0_ADDR_W-1:3]) cmd_cpl_base_o[32*h+:32] <= wdata_i[32*h+:32];
    end
    w = half(wdata_i, REG_CMD_LOG_SIZE);
    cmd_restart_o <= hit(we_i, waddr_i, REG_CMD_LOG_SIZE) && w >= 32'd1 && w <= 32'd12;
    if (hit(we_i, waddr_i, REG_CMD_LOG_SIZE) && w >= 32'd1 && w <= 32'd12) cmd_log_size_o <= w[3:0];
    if (diag_done_i) diag_data_q <= diag_data_i;
    w = half(wdata_i, REG_DIAG_SELECT);
    if (diag_done_i) begin
      diag_valid_o <= 1'b0;
    end else if (hit(we_i, waddr_i, REG_DIAG_SELECT) && !diag_valid_o) begin
      diag_valid_o  <= 1'b1;
      diag_o        <= diag_select_t'(w);
      diag_o.rsvd_0 <= '0;
    end
    if (rst_i) begin
      diag_valid_o      <= 1'b0;
      diag_o            <= '0;
      diag_data_q       <= '0;
      cycles_q          <= '0;
      enable_o          <= 1'b0;
      mps_o             <= 11'd256;
      mrrs_o            <= 11'd512;
      cpl_timeout_o     <= 24'd50_000;
      cmd_ring_base_o   <= '0;
      cmd_cpl_base_o    <= '0;
      cmd_log_size_o    <= '0;
      cmd_restart_o     <= 1'b0;
      cmd_producer_we_o <= 1'b0;
      eq_db_valid_o     <= 1'b0;
      force_fatal_o     <= 1'b0;
    end
  end
endmodule
