// SPDX-License-Identifier: Apache-2.0
// Command ring and executor, PD/MR/CQ/EQ objects with reference counts, port configuration, memory key lookup,
// completion and event writers.
// Contract: commands complete in ring order; every wait is bounded by the DMA completion time-out.
module rnic_ctrl
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned DataW = 64,
    parameter int unsigned QpIdxW = 10,
    parameter int unsigned NumCq = 256,
    parameter int unsigned NumMr = 1024,
    parameter int unsigned ClkPeriodPs = 8000,
    parameter int unsigned DmaTags = 64,
    parameter int unsigned MaxSqStride = 3,
    parameter int unsigned MaxRqStride = 4,
    parameter int unsigned NumMrPort = 4,
    parameter int unsigned NumCqe = 2,
    parameter int unsigned NumEqe = 3
) (
    input  logic clk_i,
    input  logic rst_i,
    // registers
    input  logic enable_i, input logic force_fatal_i, input logic bus_master_en_i, input logic [63:0] cycles_i,
    output logic ready_o, output logic fatal_o, output fatal_reason_e fatal_reason_o,
    input  logic [63:0] cmd_ring_base_i, input logic [63:0] cmd_cpl_base_i, input logic [3:0] cmd_log_size_i, input logic cmd_restart_i,
    input  logic cmd_producer_we_i, input logic [15:0] cmd_producer_i, output logic [15:0] cmd_producer_o, output logic [15:0] cmd_consumer_o, output logic [2:0] cmd_status_o,
    input  logic eq_db_valid_i, input db_eq_t eq_db_i,
    input  logic cq_db_valid_i, input cq_db_t cq_db_i,
    // DMA: command fetch; completions and query results; CQEs; EQEs
    output logic rd_req_valid_o, input logic rd_req_ready_i, output dma_rd_req_t rd_req_o,
    input  logic rd_rsp_valid_i, output logic rd_rsp_ready_o, input logic [DataW-1:0] rd_rsp_data_i, input dma_rd_ctl_t rd_rsp_ctl_i,
    output logic [2:0] wr_valid_o, input logic [2:0] wr_ready_i, output dma_wr_hdr_t [2:0] wr_hdr_o, output logic [2:0][DataW-1:0] wr_data_o, output logic [2:0] wr_last_o,
    output logic [1:0] msix_valid_o, input logic [1:0] msix_ready_i, output logic [1:0][7:0] msix_vec_o, // 0 event queues, 1 command completions
    // QP commands
    output logic qp_cmd_valid_o, input logic qp_cmd_ready_i, output cmd_qp_t qp_cmd_o,
    input  logic qp_cpl_valid_i, output logic qp_cpl_ready_o, input qp_cpl_t qp_cpl_i,
    input  logic qp_ready_i,
    output logic [NUM_PD-1:0] pd_valid_o, output logic [NumCq-1:0] cq_valid_o, output port_cfg_t port_cfg_o,
    input  logic ref_valid_i, input qp_ref_t ref_i,
    output logic drain_req_o, input logic drain_ack_i,
    // memory keys: answer to each port in the order of its requests
    input  logic [NumMrPort-1:0] mr_req_valid_i, output logic [NumMrPort-1:0] mr_req_ready_o, input mr_req_t [NumMrPort-1:0] mr_req_i,
    output logic [NumMrPort-1:0] mr_rsp_valid_o, output mr_rsp_t mr_rsp_o,   // valid for one cycle: the asker takes it
    // completions and events
    input  logic [NumCqe-1:0] cqe_valid_i, output logic [NumCqe-1:0] cqe_ready_o, input cqe_req_t [NumCqe-1:0] cqe_i,
    input  logic [NumEqe-1:0] eqe_valid_i, output logic [NumEqe-1:0] eqe_ready_o, input eqe_req_t [NumEqe-1:0] eqe_i,
    output logic qp_err_valid_o, output qp_err_t qp_err_o,           // CQ overrun
    input  logic port_up_i,                                          // link state: PORT_ACTIVE and PORT_ERR events
    output logic [6:0] cnt_rd_idx_o, input logic [63:0] cnt_rd_i,
    output cnt_t cnt_o
);
  localparam int unsigned CqW = $clog2(NumCq);
  localparam int unsigned MrW = $clog2(NumMr);
  localparam int unsigned EqW = $clog2(NUM_EQ);

  // Sources of events: the outside ones, then our own.
  localparam int unsigned EvtCq = NumEqe, EvtPort = NumEqe + 1, EvtFatal = NumEqe + 2;
  localparam int unsigned NumEvt = NumEqe + 3;
  logic [NumEvt-1:0] eqe_valid, eqe_ready;
  eqe_req_t [NumEvt-1:0] eqe;

  // ---------------------------------------------------------------- fatal state
  logic fatal_q, ring_err, eq_overrun, drain_timeout, evt_fatal_q;
  fatal_reason_e reason_q;
  assign fatal_o        = fatal_q;
  assign fatal_reason_o = reason_q;
  always_ff @(posedge clk_i) begin
    if (!fatal_q && (force_fatal_i || ring_err || eq_overrun || drain_timeout)) begin
      fatal_q     <= 1'b1;
      evt_fatal_q <= !eq_overrun;
      reason_q    <= ring_err ? FATAL_REASON_CMD_RING_DMA : eq_overrun ? FATAL_REASON_EQ_OVERRUN : drain_timeout ? FATAL_REASON_DRAIN_TIMEOUT : FATAL_REASON_HOST_REQUEST;
    end
    if (eqe_ready[EvtFatal]) evt_fatal_q <= 1'b0;
    if (rst_i) begin
      fatal_q     <= 1'b0;
      evt_fatal_q <= 1'b0;
      reason_q    <= FATAL_REASON_NONE;
    end
  end

  // ---------------------------------------------------------------- command ring and executor
  logic cmd_valid, cmd_ready, cpl_valid, cpl_ready, cpl_done, cpl_empty;
  logic [511:0] cmd, cmd_now;
  cmd_completion_t cpl;
  logic refs_ready, pd_used, cq_used;
  logic [15:0] ask_pd, ask_cq, ref_mr_pd;
  logic ref_mr_valid, ref_mr_inc;
  logic cq_set_valid, cq_set_ready, cq_clr, eq_set, eq_clr, mr_set, mr_clr;
  logic [CqW-1:0] cq_idx;
  logic [EqW-1:0] eq_idx;
  logic [MrW-1:0] mr_idx;
  // (of a command, only the fields that are meant for the block)
  // verilator lint_off UNUSEDSIGNAL
  cmd_cq_t cq_cmd;
  cmd_eq_t eq_cmd;
  cmd_mr_t mr_cmd;
  // verilator lint_on UNUSEDSIGNAL
  logic [NUM_EQ-1:0] eq_valid;
  logic mr_look_valid, set_port, set_gid, set_pkey, gid_ok;
  logic [7:0] mr_look_key;
  logic [15:0] mr_look_pd;
  logic query_start, query_counters, query_done, query_busy_q;
  logic c_ok, c_refused;

  assign ready_o = refs_ready && qp_ready_i;

  rnic_cmd_ring #(.DataW(DataW)) u_ring (
      .clk_i, .rst_i, .go_i(enable_i && bus_master_en_i && ready_o), .ring_base_i(cmd_ring_base_i), .log_size_i(cmd_log_size_i), .restart_i(cmd_restart_i),
      .producer_we_i(cmd_producer_we_i), .producer_i(cmd_producer_i), .producer_o(cmd_producer_o), .consumer_o(cmd_consumer_o), .status_o(cmd_status_o), .dma_err_o(ring_err),
      .rd_req_valid_o, .rd_req_ready_i, .rd_req_o, .rd_rsp_valid_i, .rd_rsp_ready_o, .rd_rsp_data_i, .rd_rsp_ctl_i,
      .cmd_valid_o(cmd_valid), .cmd_ready_i(cmd_ready), .cmd_o(cmd), .done_i(cpl_done)
  );

  rnic_cmd_exec #(.NumCq(NumCq), .NumMr(NumMr)) u_exec (
      .clk_i, .rst_i, .fatal_i(fatal_q),
      .cmd_valid_i(cmd_valid), .cmd_ready_o(cmd_ready), .cmd_i(cmd), .cpl_valid_o(cpl_valid), .cpl_ready_i(cpl_ready), .cpl_o(cpl),
      .refused_o(c_refused), .ok_o(c_ok),
      .qp_cmd_valid_o, .qp_cmd_ready_i, .qp_cmd_o, .qp_cpl_valid_i, .qp_cpl_ready_o, .qp_cpl_i,
      .pd_valid_o, .pd_used_i(pd_used), .cq_used_i(cq_used), .ask_pd_o(ask_pd), .ask_cq_o(ask_cq),
      .ref_mr_valid_o(ref_mr_valid), .ref_mr_inc_o(ref_mr_inc), .ref_mr_pd_o(ref_mr_pd),
      .cq_valid_i(cq_valid_o), .cq_set_valid_o(cq_set_valid), .cq_set_ready_i(cq_set_ready), .cq_clr_o(cq_clr), .cq_idx_o(cq_idx), .cq_cmd_o(cq_cmd),
      .eq_valid_i(eq_valid), .eq_set_o(eq_set), .eq_clr_o(eq_clr), .eq_idx_o(eq_idx), .eq_cmd_o(eq_cmd),
      .mr_set_o(mr_set), .mr_clr_o(mr_clr), .mr_idx_o(mr_idx), .mr_cmd_o(mr_cmd),
      .mr_look_valid_i(mr_look_valid), .mr_look_key_i(mr_look_key), .mr_look_pd_i(mr_look_pd),
      .set_port_o(set_port), .set_gid_o(set_gid), .set_pkey_o(set_pkey), .gid_ok_i(gid_ok), .cmd_o(cmd_now),
      .query_start_o(query_start), .query_counters_o(query_counters), .query_done_i(query_done),
      .drain_req_o, .drain_ack_i, .drain_timeout_o(drain_timeout)
  );

  // Completions and query results share a write client: a query is over before its completion starts, and starts when the
  // completion before it is out.
  logic cw_valid, cw_ready, cw_last, qw_valid, qw_ready, qw_last, query_go_q;
  dma_wr_hdr_t cw_hdr, qw_hdr;
  logic [DataW-1:0] cw_data, qw_data;
  rnic_cmd_cpl #(.DataW(DataW)) u_cpl (
      .clk_i, .rst_i, .restart_i(cmd_restart_i), .cpl_base_i(cmd_cpl_base_i), .log_size_i(cmd_log_size_i),
      .cpl_valid_i(cpl_valid), .cpl_ready_o(cpl_ready), .cpl_i(cpl),
      .wr_valid_o(cw_valid), .wr_ready_i(cw_ready), .wr_hdr_o(cw_hdr), .wr_data_o(cw_data), .wr_last_o(cw_last),
      .done_o(cpl_done), .empty_o(cpl_empty), .msix_valid_o(msix_valid_o[1]), .msix_ready_i(msix_ready_i[1])
  );
  assign msix_vec_o[1] = 8'(MSIX_CMD);

  // Capabilities as QUERY_DEVICE gives them: the registers of the CAPS block in their order, two to a word.
  logic [19:0][31:0] caps;
  rnic_caps #(
      .DataW(DataW), .QpIdxW(QpIdxW), .NumCq(NumCq), .NumMr(NumMr), .DmaTags(DmaTags), .ClkPeriodPs(ClkPeriodPs),
      .MaxSqStride(MaxSqStride), .MaxRqStride(MaxRqStride)
  ) u_caps (.caps_o(caps));
  logic [63:0] query_word, caps_q;
  logic [6:0] query_idx;
  // (only its address)
  // verilator lint_off UNUSEDSIGNAL
  cmd_out_t out_cmd;
  // verilator lint_on UNUSEDSIGNAL
  assign out_cmd = cmd_out_t'(cmd_now);
  always_ff @(posedge clk_i) begin
    caps_q <= (query_idx < 7'd10) ? caps[2*query_idx[3:0]+:2] : '0;
    if (query_start) query_go_q <= 1'b1;
    else if (cpl_empty) query_go_q <= 1'b0;
    if (query_go_q && cpl_empty) query_busy_q <= 1'b1;
    if (query_done) query_busy_q <= 1'b0;
    if (rst_i) begin
      query_go_q   <= 1'b0;
      query_busy_q <= 1'b0;
    end
  end
  assign query_word = query_counters ? cnt_rd_i : caps_q;
  assign cnt_rd_idx_o = query_idx;
  rnic_query_wr #(.DataW(DataW)) u_query (
      .clk_i, .rst_i, .start_i(query_go_q && cpl_empty), .addr_i(out_cmd.out_addr), .words_i(query_counters ? 7'(NUM_CNT) : 7'(DEVICE_CAPS_BYTES / 8)),
      .idx_o(query_idx), .word_i(query_word), .done_o(query_done),
      .wr_valid_o(qw_valid), .wr_ready_i(qw_ready), .wr_hdr_o(qw_hdr), .wr_data_o(qw_data), .wr_last_o(qw_last)
  );
  assign wr_valid_o[0] = query_busy_q ? qw_valid : cw_valid;
  assign wr_hdr_o[0]   = query_busy_q ? qw_hdr : cw_hdr;
  assign wr_data_o[0]  = query_busy_q ? qw_data : cw_data;
  assign wr_last_o[0]  = query_busy_q ? qw_last : cw_last;
  assign qw_ready      = query_busy_q && wr_ready_i[0];
  assign cw_ready      = !query_busy_q && wr_ready_i[0];

  // ---------------------------------------------------------------- objects
  rnic_refcnt #(.NumCq(NumCq)) u_refs (
      .clk_i, .rst_i, .ready_o(refs_ready), .ref_valid_i, .ref_i, .mr_valid_i(ref_mr_valid), .mr_inc_i(ref_mr_inc), .mr_pd_i(ref_mr_pd),
      .ask_pd_i(ask_pd), .ask_cq_i(ask_cq), .pd_used_o(pd_used), .cq_used_o(cq_used)
  );
  // (of a command, only the fields that are meant for the block)
  // verilator lint_off UNUSEDSIGNAL
  cmd_port_t port_cmd;
  cmd_gid_t gid_cmd;
  cmd_pkey_t pkey_cmd;
  // verilator lint_on UNUSEDSIGNAL
  assign port_cmd = cmd_port_t'(cmd_now);
  assign gid_cmd  = cmd_gid_t'(cmd_now);
  assign pkey_cmd = cmd_pkey_t'(cmd_now);
  rnic_port_cfg u_port (
      .clk_i, .rst_i, .set_port_i(set_port), .mac_i(port_cmd.mac), .mtu_i(port_cmd.mtu[2:0]), .up_i(port_cmd.up),
      .set_gid_i(set_gid), .set_pkey_i(set_pkey), .idx_i(gid_cmd.handle[15:0]), .gid_i(gid_cmd.gid), .pkey_i(pkey_cmd.pkey),
      .gid_ok_o(gid_ok), .cfg_o(port_cfg_o)
  );
  rnic_mr #(.NumMr(NumMr), .NumPort(NumMrPort)) u_mr (
      .clk_i, .rst_i, .set_i(mr_set), .clr_i(mr_clr), .idx_i(mr_idx), .key_i(mr_cmd.key), .pd_i(mr_cmd.pd), .access_i(mr_cmd.access[3:0]),
      .va_i(mr_cmd.va), .length_i(mr_cmd.length), .host_addr_i(mr_cmd.host_addr),
      .look_idx_i(mr_idx), .look_valid_o(mr_look_valid), .look_key_o(mr_look_key), .look_pd_o(mr_look_pd),
      .req_valid_i(mr_req_valid_i), .req_ready_o(mr_req_ready_o), .req_i(mr_req_i), .rsp_valid_o(mr_rsp_valid_o), .rsp_o(mr_rsp_o)
  );

  // ---------------------------------------------------------------- completions and events
  logic c_cqe, c_cq_overrun, c_eqe, c_db_qpn, c_db_page, c_db_range;

  rnic_cq #(.DataW(DataW), .NumCq(NumCq), .NumReq(NumCqe)) u_cq (
      .clk_i, .rst_i, .cycles_i, .set_valid_i(cq_set_valid), .set_ready_o(cq_set_ready), .clr_i(cq_clr), .idx_i(cq_idx),
      .log_size_i(cq_cmd.log_size[4:0]), .eq_i(cq_cmd.eq), .uar_i(cq_cmd.uar), .base_i(cq_cmd.base), .valid_o(cq_valid_o),
      .db_valid_i(cq_db_valid_i), .db_i(cq_db_i), .req_valid_i(cqe_valid_i), .req_ready_o(cqe_ready_o), .req_i(cqe_i),
      .wr_valid_o(wr_valid_o[1]), .wr_ready_i(wr_ready_i[1]), .wr_hdr_o(wr_hdr_o[1]), .wr_data_o(wr_data_o[1]), .wr_last_o(wr_last_o[1]),
      .eqe_valid_o(eqe_valid[EvtCq]), .eqe_ready_i(eqe_ready[EvtCq]), .eqe_o(eqe[EvtCq]),
      .qp_err_valid_o, .qp_err_o, .written_o(c_cqe), .overrun_o(c_cq_overrun),
      .db_drop_qpn_o(c_db_qpn), .db_drop_page_o(c_db_page), .db_drop_range_o(c_db_range)
  );

  // Port state: PORT_ACTIVE and PORT_ERR when link and configuration change; both in order, the newest state wins.
  logic port_now, port_told_q;
  assign port_now = port_up_i && port_cfg_o.up;
  always_ff @(posedge clk_i) begin
    if (rst_i) port_told_q <= 1'b0;
    else if (eqe_valid[EvtPort] && eqe_ready[EvtPort]) port_told_q <= eqe[EvtPort].event_type == EVENT_TYPE_PORT_ACTIVE;
  end
  logic port_evt_q;
  always_ff @(posedge clk_i) begin
    if (rst_i) port_evt_q <= 1'b0;
    else if (!port_evt_q || eqe_ready[EvtPort]) port_evt_q <= !port_evt_q && port_now != port_told_q;
  end
  assign eqe_valid[EvtPort]  = port_evt_q;
  assign eqe[EvtPort]        = '{eqn: 8'd0, event_type: port_told_q ? EVENT_TYPE_PORT_ERR : EVENT_TYPE_PORT_ACTIVE, number: 32'd1};
  assign eqe_valid[EvtFatal] = evt_fatal_q;
  assign eqe[EvtFatal]       = '{eqn: 8'd0, event_type: EVENT_TYPE_DEVICE_FATAL, number: 32'd0};
  assign eqe_valid[NumEqe-1:0] = eqe_valid_i;
  assign eqe[NumEqe-1:0]       = eqe_i;
  assign eqe_ready_o           = eqe_ready[NumEqe-1:0];

  rnic_eq #(.DataW(DataW), .NumReq(NumEvt)) u_eq (
      .clk_i, .rst_i, .cycles_i, .set_i(eq_set), .clr_i(eq_clr), .idx_i(eq_idx), .log_size_i(eq_cmd.log_size[4:0]), .base_i(eq_cmd.base),
      .valid_o(eq_valid), .db_valid_i(eq_db_valid_i), .db_i(eq_db_i), .req_valid_i(eqe_valid), .req_ready_o(eqe_ready), .req_i(eqe),
      .wr_valid_o(wr_valid_o[2]), .wr_ready_i(wr_ready_i[2]), .wr_hdr_o(wr_hdr_o[2]), .wr_data_o(wr_data_o[2]), .wr_last_o(wr_last_o[2]),
      .msix_valid_o(msix_valid_o[0]), .msix_ready_i(msix_ready_i[0]), .msix_vec_o(msix_vec_o[0]), .written_o(c_eqe), .overrun_o(eq_overrun)
  );

  always_comb begin
    cnt_o = '0;
    cnt_o[COUNTER_ID_CMD_OK]        = c_ok;
    cnt_o[COUNTER_ID_CMD_REFUSED]   = c_refused;
    cnt_o[COUNTER_ID_CQE_WRITTEN]   = c_cqe;
    cnt_o[COUNTER_ID_CQ_OVERRUN]    = c_cq_overrun;
    cnt_o[COUNTER_ID_EQE_WRITTEN]   = c_eqe;
    cnt_o[COUNTER_ID_EQ_OVERRUN]    = eq_overrun;
    cnt_o[COUNTER_ID_DB_DROP_QPN]   = c_db_qpn;
    cnt_o[COUNTER_ID_DB_DROP_PAGE]  = c_db_page;
    cnt_o[COUNTER_ID_DB_DROP_RANGE] = c_db_range;
  end
endmodule
