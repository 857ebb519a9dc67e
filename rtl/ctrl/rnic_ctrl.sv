// SPDX-License-Identifier: Apache-2.0
// Command ring and executor, PD/MR/CQ/EQ objects with reference counts, port configuration, memory key lookup,
// completion and event writers.
// Contract: commands complete in ring order; every wait is bounded by the DMA completion time-out, or by 2^DrainLog cycles when an
// engine does not answer a barrier. A fatal condition is remembered until reset, with its first reason, told once by
// DEVICE_FATAL, and completes every later command with FATAL. Contracts of the services: rnic_mr, rnic_cq, rnic_eq.
// A completion is accepted before its interrupt, a CQE before its EQE, an EQE before its interrupt.
module rnic_ctrl
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned DataW = 64,
    parameter int unsigned QpIdxW = 10,
    parameter int unsigned NumCq = 256,
    parameter int unsigned NumMr = 1024,
    parameter int unsigned NumSrq = 64,
    parameter bit HasSrq = 1'b1,                // else CREATE_SRQ is not supported, and there are none
    parameter int unsigned ClkPeriodPs = 8000,
    parameter int unsigned DmaTags = 64,
    parameter int unsigned MaxSqStride = 4,
    parameter int unsigned MaxRqStride = 4,
    parameter int unsigned MaxRd = MAX_RD_ATOMIC,
    parameter int unsigned NumMrPort = 4,
    parameter int unsigned NumCqe = 2,
    parameter int unsigned NumEqe = 3,
    parameter int unsigned DrainLog = 22,
    parameter bit Ipv6 = 1'b1,                  // else GIDs are IPv4-mapped alone
    parameter int unsigned LocalMemLog = 0      // memory on the board: told, nothing else
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
    // page lists; data and control beside those of the commands
    output logic mr_rd_req_valid_o, input logic mr_rd_req_ready_i, output dma_rd_req_t mr_rd_req_o,
    input  logic mr_rd_rsp_valid_i, output logic mr_rd_rsp_ready_o,
    output logic [2:0] wr_valid_o, input logic [2:0] wr_ready_i, output dma_wr_hdr_t [2:0] wr_hdr_o, output logic [2:0][DataW-1:0] wr_data_o, output logic [2:0] wr_last_o,
    output logic [1:0] msix_valid_o, input logic [1:0] msix_ready_i, output logic [1:0][7:0] msix_vec_o, // 0 event queues, 1 command completions
    // QP commands
    output logic qp_cmd_valid_o, input logic qp_cmd_ready_i, output cmd_qp_t qp_cmd_o,
    input  logic qp_cpl_valid_i, output logic qp_cpl_ready_o, input qp_cpl_t qp_cpl_i,
    input  logic qp_ready_i,
    output logic [NUM_PD-1:0] pd_valid_o, output logic [NumCq-1:0] cq_valid_o, output logic [NUM_XRCD-1:0] xrcd_valid_o, output port_cfg_t port_cfg_o,
    input  logic ref_valid_i, input qp_ref_t ref_i,
    output logic drain_req_o, input logic drain_ack_i,
    // shared receive queues: set and limit are held until ready, idx stands for all; what is known of idx comes one cycle later
    output logic srq_set_valid_o, input logic srq_set_ready_i, output logic srq_limit_valid_o, input logic srq_limit_ready_i, output logic srq_clr_o,
    output logic [15:0] srq_idx_o, output srq_cfg_t srq_cfg_o, output logic [15:0] srq_limit_o,
    input  logic [NumSrq-1:0] srq_valid_i, input logic [15:0] srq_pd_i, input logic [15:0] srq_cur_limit_i, input logic [15:0] srq_left_i,
    // memory keys: a port asks again when it has its answer
    input  logic [NumMrPort-1:0] mr_req_valid_i, output logic [NumMrPort-1:0] mr_req_ready_o, input mr_req_t [NumMrPort-1:0] mr_req_i,
    output logic [NumMrPort-1:0] mr_rsp_valid_o, output mr_rsp_t mr_rsp_o,   // valid for one cycle: the asker takes it
    // operations on keys by the requester, invalidation by the responder (contract: rnic_mr)
    input  logic mr_op_valid_i, input mr_op_t mr_op_i, output logic mr_op_done_o,
    input  logic mr_inv_valid_i, input mr_inv_t mr_inv_i, output logic mr_inv_done_o, output mr_err_e mr_op_err_o,   // the error of both
    // completions and events
    input  logic [NumCqe-1:0] cqe_valid_i, output logic [NumCqe-1:0] cqe_ready_o, input cqe_req_t [NumCqe-1:0] cqe_i,
    input  logic [NumEqe-1:0] eqe_valid_i, output logic [NumEqe-1:0] eqe_ready_o, input eqe_req_t [NumEqe-1:0] eqe_i,
    output logic qp_err_valid_o, output qp_err_t qp_err_o,           // CQ overrun
    output logic cq_idle_o,                                          // every completion taken so far is written
    input  logic port_up_i,                                          // link state: PORT_ACTIVE and PORT_ERR events
    output logic [6:0] cnt_rd_idx_o, input logic [63:0] cnt_rd_i,
    output cnt_t cnt_o
);
  localparam int unsigned CqW = $clog2(NumCq);
  localparam int unsigned MrW = $clog2(NumMr);
  localparam int unsigned EqW = $clog2(NUM_EQ);

  // ---------------------------------------------------------------- commands: ring, executor, completions
  logic cmd_valid, cmd_ready, cpl_valid, cpl_ready, cpl_done, ring_err, timeout, fetched_rsvd;
  logic [511:0] fetched, cmd;
  cmd_completion_t cpl;
  rnic_cmd_ring #(.DataW(DataW)) u_ring (
      .clk_i, .rst_i, .go_i(enable_i && bus_master_en_i && ready_o),
      .ring_base_i(cmd_ring_base_i), .log_size_i(cmd_log_size_i), .restart_i(cmd_restart_i), .producer_we_i(cmd_producer_we_i),
      .producer_i(cmd_producer_i), .producer_o(cmd_producer_o), .consumer_o(cmd_consumer_o), .status_o(cmd_status_o), .dma_err_o(ring_err),
      .rd_req_valid_o, .rd_req_ready_i, .rd_req_o, .rd_rsp_valid_i, .rd_rsp_ready_o, .rd_rsp_data_i, .rd_rsp_ctl_i,
      .cmd_valid_o(cmd_valid), .cmd_ready_i(cmd_ready), .cmd_o(fetched), .cmd_rsvd_o(fetched_rsvd), .done_i(cpl_done)
  );

  logic ask_ok, pd_used, cq_used, srq_used, xrcd_used, gid_ok, mr_lock, mr_ref, mr_ref_inc, cq_op_valid, cq_op_done, cq_clr, cq_idle;
  logic cq_there, eq_set, eq_clr, eq_idle, set_port, set_gid, set_pkey, query_start, query_done;
  cq_op_e cq_op;
  cmd_status_e cq_status;
  logic [23:0] cq_prod;
  logic [15:0] mr_ref_pd;
  // verilator lint_off UNUSEDSIGNAL
  mr_id_t mr_look;                           // (of the entry that a command names the executor need not know all)
  // verilator lint_on UNUSEDSIGNAL
  logic mr_bound, mr_cmd_valid, mr_cmd_done;
  mr_op_e mr_cmd_op;
  mr_op_t mr_cmd;
  logic [MrW-1:0] mr_idx;
  logic [CqW-1:0] cq_idx;
  logic [NUM_EQ-1:0] eq_valid;
  assign qp_cmd_o = cmd;
  logic [$clog2(NumSrq)-1:0] srq_idx;
  rnic_cmd_exec #(.NumCq(NumCq), .NumMr(NumMr), .NumSrq(NumSrq), .HasSrq(HasSrq), .MaxRqStride(MaxRqStride), .DrainLog(DrainLog)) u_exec (
      .clk_i, .rst_i, .restart_i(cmd_restart_i), .fatal_i(fatal_o), .timeout_o(timeout),
      .cmd_valid_i(cmd_valid), .cmd_ready_o(cmd_ready), .cmd_i(fetched), .cmd_rsvd_i(fetched_rsvd), .cmd_o(cmd),
      .cpl_valid_o(cpl_valid), .cpl_ready_i(cpl_ready), .cpl_o(cpl),
      .qp_cmd_valid_o, .qp_cmd_ready_i, .qp_cpl_valid_i, .qp_cpl_ready_o, .qp_cpl_i, .drain_req_o, .drain_ack_i,
      .pd_valid_o, .cq_valid_i(cq_there), .eq_valid_i(eq_valid), .ask_ok_i(ask_ok), .pd_used_i(pd_used), .cq_used_i(cq_used),
      .mr_valid_i(mr_look.valid), .mr_key_i(mr_look.key), .mr_pd_i(mr_look.pd), .mr_kind_i(mr_look.kind), .mr_bound_i(mr_bound),
      .mr_op_valid_o(mr_cmd_valid), .mr_op_o(mr_cmd_op), .mr_lock_o(mr_lock), .mr_op_done_i(mr_cmd_done), .gid_ok_i(gid_ok),
      .srq_valid_i, .xrcd_valid_o, .srq_used_i(srq_used), .xrcd_used_i(xrcd_used), .srq_pd_i, .srq_limit_i(srq_cur_limit_i), .srq_left_i,
      .srq_set_valid_o, .srq_set_ready_i, .srq_limit_valid_o, .srq_limit_ready_i, .srq_clr_o, .srq_idx_o(srq_idx),
      .mr_idx_o(mr_idx), .mr_ref_o(mr_ref), .mr_ref_inc_o(mr_ref_inc), .mr_ref_pd_o(mr_ref_pd),
      .cq_op_valid_o(cq_op_valid), .cq_op_done_i(cq_op_done), .cq_op_o(cq_op), .cq_status_i(cq_status), .cq_prod_i(cq_prod), .cq_clr_o(cq_clr), .cq_idx_o(cq_idx), .cq_idle_i(cq_idle),
      .eq_set_o(eq_set), .eq_clr_o(eq_clr), .eq_idle_i(eq_idle),
      .set_port_o(set_port), .set_gid_o(set_gid), .set_pkey_o(set_pkey), .query_start_o(query_start), .query_done_i(query_done)
  );

  // The parameters of the command under way.
  // verilator lint_off UNUSEDSIGNAL
  // (each layout reads its own part of the same bits)
  cmd_header_t hdr;
  cmd_port_t p_port;
  cmd_gid_t p_gid;
  cmd_pkey_t p_pkey;
  cmd_mr_t p_mr;
  cmd_cq_t p_cq;
  cmd_eq_t p_eq;
  cmd_srq_t p_srq;
  cmd_out_t p_out;
  // verilator lint_on UNUSEDSIGNAL
  assign hdr    = cmd;
  assign p_port = cmd;
  assign p_gid  = cmd;
  assign p_pkey = cmd;
  assign p_mr   = cmd;
  assign p_cq   = cmd;
  assign p_eq   = cmd;
  assign p_srq  = cmd;
  assign p_out  = cmd;
  always_comb begin
    mr_cmd             = '0;
    mr_cmd.op          = mr_cmd_op;
    mr_cmd.lkey        = 32'(p_mr.key);
    mr_cmd.pd          = p_mr.pd;
    mr_cmd.change      = p_mr.change;
    mr_cmd.access      = 6'(p_mr.access);
    mr_cmd.va          = p_mr.va;
    mr_cmd.length      = 49'(p_mr.length);
    mr_cmd.host_addr   = p_mr.host_addr;
    mr_cmd.log_page    = 5'(p_mr.log_page);
    mr_cmd.page_offset = 30'(p_mr.page_offset);
  end
  assign srq_idx_o   = 16'(srq_idx);
  assign srq_cfg_o   = '{pd: p_srq.pd, uar: p_srq.uar, log_size: p_srq.log_size, log_stride: p_srq.log_stride, base: p_srq.base};
  assign srq_limit_o = p_srq.limit;
  assign cq_idle_o   = cq_idle;

  // Completions and query results leave through one client. A query begins when the completion before it is out, and the
  // executor hands no completion over while it runs.
  logic cw_valid, cw_last, qw_valid, qw_last;
  dma_wr_hdr_t cw_hdr, qw_hdr;
  logic [DataW-1:0] cw_data, qw_data;
  assign wr_valid_o[0] = cw_valid || qw_valid;
  assign wr_hdr_o[0]   = cw_valid ? cw_hdr : qw_hdr;
  assign wr_data_o[0]  = cw_valid ? cw_data : qw_data;
  assign wr_last_o[0]  = cw_valid ? cw_last : qw_last;
  rnic_cmd_cpl #(.DataW(DataW)) u_cpl (
      .clk_i, .rst_i, .restart_i(cmd_restart_i), .cpl_base_i(cmd_cpl_base_i), .log_size_i(cmd_log_size_i),
      .cpl_valid_i(cpl_valid), .cpl_ready_o(cpl_ready), .cpl_i(cpl),
      .wr_valid_o(cw_valid), .wr_ready_i(wr_ready_i[0]), .wr_hdr_o(cw_hdr), .wr_data_o(cw_data), .wr_last_o(cw_last),
      .done_o(cpl_done), .msix_valid_o(msix_valid_o[1]), .msix_ready_i(msix_ready_i[1])
  );
  assign msix_vec_o[1] = 8'(MSIX_CMD);
  caps_t caps;
  rnic_caps #(
      .DataW(DataW), .QpIdxW(QpIdxW), .NumCq(NumCq), .NumMr(NumMr), .NumSrq(HasSrq ? NumSrq : 0), .DmaTags(DmaTags), .ClkPeriodPs(ClkPeriodPs),
      .MaxSqStride(MaxSqStride), .MaxRqStride(MaxRqStride), .MaxRd(MaxRd), .Ipv6(Ipv6), .LocalMemLog(LocalMemLog)
  ) u_caps (.caps_o(caps));
  rnic_cmd_query #(.DataW(DataW)) u_query (
      .clk_i, .rst_i, .caps_i(caps), .start_i(query_start), .counters_i(hdr.opcode == CMD_OPCODE_QUERY_COUNTERS), .addr_i(p_out.out_addr),
      .done_o(query_done), .cnt_rd_idx_o, .cnt_rd_i,
      .wr_valid_o(qw_valid), .wr_ready_i(wr_ready_i[0] && !cw_valid), .wr_hdr_o(qw_hdr), .wr_data_o(qw_data), .wr_last_o(qw_last)
  );

  // ---------------------------------------------------------------- objects
  logic refcnt_ready, mr_ready;
  assign ready_o = refcnt_ready && mr_ready && qp_ready_i;
  rnic_refcnt #(.QpIdxW(QpIdxW), .NumCq(NumCq), .NumMr(NumMr), .NumSrq(NumSrq), .HasSrq(HasSrq)) u_refcnt (
      .clk_i, .rst_i, .ready_o(refcnt_ready), .ref_valid_i, .ref_i, .mr_valid_i(mr_ref), .mr_inc_i(mr_ref_inc), .mr_pd_i(mr_ref_pd),
      .ask_idx_i(16'(hdr.handle)), .ask_xrcd_i(hdr.opcode == CMD_OPCODE_DESTROY_XRCD), .ask_ok_o(ask_ok), .pd_used_o(pd_used), .cq_used_o(cq_used),
      .srq_used_o(srq_used), .xrcd_used_o(xrcd_used)
  );

  logic port_evt_valid, port_evt_ready, cq_evt_valid, cq_evt_ready, fatal_evt_q, fatal_evt_ready;
  eqe_req_t port_evt, cq_evt, fatal_evt;
  rnic_port_cfg #(.Ipv6(Ipv6)) u_port (
      .clk_i, .rst_i, .port_up_i, .set_port_i(set_port), .mac_i(p_port.mac), .mtu_i(3'(p_port.mtu)), .up_i(p_port.up),
      .set_gid_i(set_gid), .set_pkey_i(set_pkey), .idx_i(8'(hdr.handle)), .gid_i(p_gid.gid), .pkey_i(p_pkey.pkey), .gid_ok_o(gid_ok),
      .cfg_o(port_cfg_o), .eqe_valid_o(port_evt_valid), .eqe_ready_i(port_evt_ready), .eqe_o(port_evt)
  );

  rnic_mr #(.DataW(DataW), .NumMr(NumMr), .NumPort(NumMrPort)) u_mr (
      .clk_i, .rst_i, .ready_o(mr_ready),
      .op_valid_i(mr_op_valid_i), .op_i(mr_op_i), .op_done_o(mr_op_done_o), .inv_valid_i(mr_inv_valid_i), .inv_i(mr_inv_i), .inv_done_o(mr_inv_done_o),
      .cmd_valid_i(mr_cmd_valid), .cmd_i(mr_cmd), .cmd_idx_i(mr_idx), .cmd_kind_i(mr_kind_e'(p_mr.kind[1:0])), .cmd_lock_i(mr_lock), .cmd_done_o(mr_cmd_done),
      .op_err_o(mr_op_err_o), .look_o(mr_look), .look_bound_o(mr_bound),
      .req_valid_i(mr_req_valid_i), .req_ready_o(mr_req_ready_o), .req_i(mr_req_i), .rsp_valid_o(mr_rsp_valid_o), .rsp_o(mr_rsp_o),
      .rd_req_valid_o(mr_rd_req_valid_o), .rd_req_ready_i(mr_rd_req_ready_i), .rd_req_o(mr_rd_req_o),
      .rd_rsp_valid_i(mr_rd_rsp_valid_i), .rd_rsp_ready_o(mr_rd_rsp_ready_o), .rd_rsp_data_i, .rd_rsp_ctl_i
  );

  logic cqe_written, cq_overrun, cq_drop_qpn, cq_drop_page, cq_drop_range, eqe_written, eq_overrun;
  logic [EqW-1:0] overrun_eq;
  rnic_cq #(.DataW(DataW), .NumCq(NumCq), .NumReq(NumCqe), .ClkPeriodPs(ClkPeriodPs)) u_cq (
      .clk_i, .rst_i, .cycles_i, .op_valid_i(cq_op_valid), .op_done_o(cq_op_done), .op_i(cq_op), .op_status_o(cq_status), .op_prod_o(cq_prod),
      .clr_i(cq_clr), .idx_i(cq_idx), .count_i(p_cq.event_count), .period_i(cq_period_t'(p_cq.event_period)),
      .log_size_i(5'(p_cq.log_size)), .eq_i(EqW'(p_cq.eq)), .uar_i(p_cq.uar), .base_i(58'(p_cq.base >> 6)), .valid_o(cq_valid_o), .there_o(cq_there), .idle_o(cq_idle),
      .db_valid_i(cq_db_valid_i), .db_i(cq_db_i), .req_valid_i(cqe_valid_i), .req_ready_o(cqe_ready_o), .req_i(cqe_i),
      .wr_valid_o(wr_valid_o[1]), .wr_ready_i(wr_ready_i[1]), .wr_hdr_o(wr_hdr_o[1]), .wr_data_o(wr_data_o[1]), .wr_last_o(wr_last_o[1]),
      .eqe_valid_o(cq_evt_valid), .eqe_ready_i(cq_evt_ready), .eqe_o(cq_evt), .qp_err_valid_o, .qp_err_o,
      .written_o(cqe_written), .overrun_o(cq_overrun), .db_drop_qpn_o(cq_drop_qpn), .db_drop_page_o(cq_drop_page), .db_drop_range_o(cq_drop_range)
  );

  rnic_eq #(.DataW(DataW), .NumReq(NumEqe + 3)) u_eq (
      .clk_i, .rst_i, .cycles_i, .set_i(eq_set), .clr_i(eq_clr), .idx_i(EqW'(hdr.handle)), .log_size_i(5'(p_eq.log_size)),
      .base_i(58'(p_eq.base >> 6)), .valid_o(eq_valid), .idle_o(eq_idle), .db_valid_i(eq_db_valid_i), .db_i(eq_db_i),
      .req_valid_i({fatal_evt_q, port_evt_valid, cq_evt_valid, eqe_valid_i}),
      .req_ready_o({fatal_evt_ready, port_evt_ready, cq_evt_ready, eqe_ready_o}), .req_i({fatal_evt, port_evt, cq_evt, eqe_i}),
      .wr_valid_o(wr_valid_o[2]), .wr_ready_i(wr_ready_i[2]), .wr_hdr_o(wr_hdr_o[2]), .wr_data_o(wr_data_o[2]), .wr_last_o(wr_last_o[2]),
      .msix_valid_o(msix_valid_o[0]), .msix_ready_i(msix_ready_i[0]), .msix_vec_o(msix_vec_o[0]),
      .written_o(eqe_written), .overrun_o(eq_overrun), .overrun_eq_o(overrun_eq)
  );

  // ---------------------------------------------------------------- fatal conditions
  fatal_reason_e reason;
  always_comb begin
    reason = FATAL_REASON_NONE;
    if (ring_err) reason = FATAL_REASON_CMD_RING_DMA;
    else if (eq_overrun) reason = FATAL_REASON_EQ_OVERRUN;
    else if (timeout) reason = FATAL_REASON_DRAIN_TIMEOUT;
    else if (force_fatal_i) reason = FATAL_REASON_HOST_REQUEST;
  end
  assign fatal_o   = fatal_reason_o != FATAL_REASON_NONE;
  assign fatal_evt = '{eqn: 8'd0, event_type: EVENT_TYPE_DEVICE_FATAL, number: 32'(fatal_reason_o)};
  always_ff @(posedge clk_i) begin
    if (fatal_evt_q && fatal_evt_ready) fatal_evt_q <= 1'b0;
    if (!fatal_o && reason != FATAL_REASON_NONE) begin
      fatal_reason_o <= reason;
      // The queue that overran takes no more.
      fatal_evt_q    <= !(reason == FATAL_REASON_EQ_OVERRUN && overrun_eq == '0);
    end
    if (rst_i) begin
      fatal_reason_o <= FATAL_REASON_NONE;
      fatal_evt_q    <= 1'b0;
    end
  end

  always_comb begin
    cnt_o = '0;
    cnt_o[COUNTER_ID_CMD_OK]        = cpl_valid && cpl_ready && cpl.status == CMD_STATUS_OK;
    cnt_o[COUNTER_ID_CMD_REFUSED]   = cpl_valid && cpl_ready && cpl.status != CMD_STATUS_OK;
    cnt_o[COUNTER_ID_CQE_WRITTEN]   = cqe_written;
    cnt_o[COUNTER_ID_CQ_OVERRUN]    = cq_overrun;
    cnt_o[COUNTER_ID_EQE_WRITTEN]   = eqe_written;
    cnt_o[COUNTER_ID_EQ_OVERRUN]    = eq_overrun;
    cnt_o[COUNTER_ID_DB_DROP_QPN]   = cq_drop_qpn;
    cnt_o[COUNTER_ID_DB_DROP_PAGE]  = cq_drop_page;
    cnt_o[COUNTER_ID_DB_DROP_RANGE] = cq_drop_range;
  end
endmodule
