// SPDX-License-Identifier: Apache-2.0
// Storage of the control sections: hot word (a copy per reader), create word (what it refers to twice), path word.
// Contract: one write a cycle, whole in that cycle: hot word, and where enabled create word and the path attributes named by
// path_we_i (bits of QpAttrBit). Hot readers and the own port: answer one cycle after the index; a read in the cycle of
// a write sees the new word. Cold port: requests are granted round robin (ready), the answer stands one cycle after the grant, for
// one cycle; an entry is not granted in the cycle in which it is written, so a section is never a mix of before and after.
module rnic_qp_table
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned QpIdxW = 8,
    parameter int unsigned NumHot = 4,
    parameter int unsigned NumCold = 5,
    localparam int unsigned AttrW = QP_ATTR_BIT_W
) (
    input  logic clk_i,
    input  logic rst_i,
    // write
    input  logic              we_i,
    input  logic [QpIdxW-1:0] widx_i,
    input  qp_hot_t           hot_i,
    input  logic              used_i,            // the index has had a life: its generation is spent
    input  logic              notify_i,          // en_sqd_async_notify, beside the hot word for the owner of the table
    // verilator lint_off UNUSEDSIGNAL
    // (what the gate lets through fits NUM_PORTS)
    input  logic [7:0]        port_i,            // path.port, likewise
    // verilator lint_on UNUSEDSIGNAL
    input  logic              create_we_i,
    input  qp_create_t        create_i,
    input  logic [AttrW-1:0]  path_we_i,
    input  qp_path_t          path_i,
    // own read port
    input  logic              own_re_i,
    input  logic [QpIdxW-1:0] own_idx_i,
    output qp_hot_t           own_hot_o,         // holds while own_re_i is low, as do the next four
    output logic              own_used_o,
    output logic              own_notify_o,
    output logic [7:0]        own_port_o,
    output qp_uses_t          own_uses_o,
    // readers of the hot word
    // verilator lint_off UNUSEDSIGNAL
    // (an index is as wide as the largest table needs)
    input  qp_idx_t [NumHot-1:0] hot_idx_i,
    // verilator lint_on UNUSEDSIGNAL
    output qp_hot_t [NumHot-1:0] hot_o,
    // readers of all
    input  logic    [NumCold-1:0] cold_req_valid_i,
    output logic    [NumCold-1:0] cold_req_ready_o,
    // verilator lint_off UNUSEDSIGNAL
    input  qp_idx_t [NumCold-1:0] cold_req_idx_i,
    // verilator lint_on UNUSEDSIGNAL
    output logic    [NumCold-1:0] cold_rsp_valid_o,
    output qp_ctx_t               cold_rsp_o
);
  localparam int unsigned Depth = 1 << QpIdxW;
  localparam int unsigned HotW = $bits(qp_hot_t);
  localparam int unsigned CreateW = $bits(qp_create_t);
  localparam int unsigned PortW = $clog2(NUM_PORTS + 1);
  localparam int unsigned OwnW = HotW + 2 + PortW;

  // ---------------------------------------------------------------- own port and hot readers
  logic [OwnW-1:0] own_rdata;
  logic [PortW-1:0] own_port;
  rnic_ram #(
      .Width(OwnW),
      .Depth(Depth)
  ) u_own (
      .clk_i,
      .we_i, .waddr_i(widx_i), .wdata_i({used_i, notify_i, PortW'(port_i), hot_i}),
      .re_i(own_re_i), .raddr_i(own_idx_i), .rdata_o(own_rdata)
  );
  assign {own_used_o, own_notify_o, own_port, own_hot_o} = own_rdata;
  assign own_port_o = 8'(own_port);
  rnic_ram #(
      .Width($bits(qp_uses_t)),
      .Depth(Depth)
  ) u_uses (
      .clk_i,
      .we_i(create_we_i), .waddr_i(widx_i), .wdata_i({create_i.pd, create_i.send_cq, create_i.recv_cq, create_i.srq}),
      .re_i(own_re_i), .raddr_i(own_idx_i), .rdata_o(own_uses_o)
  );

  for (genvar r = 0; r < NumHot; r++) begin : g_hot
    rnic_ram #(
        .Width(HotW),
        .Depth(Depth)
    ) u_hot (
        .clk_i,
        .we_i, .waddr_i(widx_i), .wdata_i(hot_i),
        .re_i(1'b1), .raddr_i(hot_idx_i[r][QpIdxW-1:0]), .rdata_o(hot_o[r])
    );
  end

  // ---------------------------------------------------------------- arbitration of the cold port
  logic [NumCold-1:0] grant, can;
  logic [QpIdxW-1:0] cold_idx;
  logic cold_re;
  rnic_arb_rr #(
      .N(NumCold)
  ) u_arb (
      .clk_i, .rst_i,
      .req_i(can), .advance_i(cold_re), .lock_i(1'b0), .grant_o(grant),
      // verilator lint_off PINCONNECTEMPTY
      .idx_o()   // one-hot is what is used here
      // verilator lint_on PINCONNECTEMPTY
  );
  assign cold_re = |grant;
  assign cold_req_ready_o = grant;
  always_comb begin
    for (int unsigned r = 0; r < NumCold; r++)
      can[r] = cold_req_valid_i[r] && !(we_i && cold_req_idx_i[r][QpIdxW-1:0] == widx_i);
    // The last client is the writer itself: it does not read what it writes in that cycle, so its index needs no look.
    can[NumCold-1] = cold_req_valid_i[NumCold-1];
    cold_idx = '0;
    for (int unsigned r = 0; r < NumCold; r++) if (grant[r]) cold_idx |= cold_req_idx_i[r][QpIdxW-1:0];
  end
  always_ff @(posedge clk_i) cold_rsp_valid_o <= rst_i ? '0 : grant;

  // ---------------------------------------------------------------- cold words
  rnic_qp_ram_we #(
      .LaneW(HotW),
      .NumLane(1),
      .Depth(Depth)
  ) u_cold_hot (
      .clk_i,
      .we_i, .waddr_i(widx_i), .wdata_i(hot_i),
      .re_i(cold_re), .raddr_i(cold_idx), .rdata_o(cold_rsp_o.hot)
  );
  rnic_qp_ram_we #(
      .LaneW(CreateW),
      .NumLane(1),
      .Depth(Depth)
  ) u_create (
      .clk_i,
      .we_i(create_we_i), .waddr_i(widx_i), .wdata_i(create_i),
      .re_i(cold_re), .raddr_i(cold_idx), .rdata_o(cold_rsp_o.create)
  );

  // Path word: one RAM, a write enable per attribute, in lanes of nine bits (the byte of a block RAM).
  typedef struct packed {
    logic [242:0] av;
    logic [35:0]  qkey;
    logic [26:0]  dest_qpn;
    logic [26:0]  sq_psn;
    logic [26:0]  rq_psn;
    logic [17:0]  pkey_index;
    logic [8:0]   port;
    logic [8:0]   timeout;
    logic [8:0]   retry_cnt;
    logic [8:0]   rnr_retry;
    logic [8:0]   min_rnr_timer;
    logic [8:0]   max_rd_atomic;
    logic [8:0]   max_dest_rd_atomic;
    logic [8:0]   path_mig_state;
    logic [8:0]   en_sqd_async_notify;
  } row_t;
  localparam int unsigned NumLane = $bits(row_t) / 9;
  localparam int unsigned AvW = $bits({path_i.dgid, path_i.dmac, path_i.vlan, path_i.sgid_index, path_i.hop_limit,
                                       path_i.traffic_class, path_i.flow_label});

  row_t row_in;
  logic [NumLane-1:0] lane_we;
  // verilator lint_off UNUSEDSIGNAL
  // (lanes are padded to nine bits)
  row_t row_out;
  // verilator lint_on UNUSEDSIGNAL
  always_comb begin
    row_in                     = '0;
    row_in.av[AvW-1:0]         = {path_i.dgid, path_i.dmac, path_i.vlan, path_i.sgid_index, path_i.hop_limit,
                                  path_i.traffic_class, path_i.flow_label};
    row_in.qkey                = 36'(path_i.qkey);
    row_in.dest_qpn            = 27'(path_i.dest_qpn);
    row_in.sq_psn              = 27'(path_i.sq_psn);
    row_in.rq_psn              = 27'(path_i.rq_psn);
    row_in.pkey_index          = 18'(path_i.pkey_index);
    row_in.port                = 9'(path_i.port);
    row_in.timeout             = 9'(path_i.timeout);
    row_in.retry_cnt           = 9'(path_i.retry_cnt);
    row_in.rnr_retry           = 9'(path_i.rnr_retry);
    row_in.min_rnr_timer       = 9'(path_i.min_rnr_timer);
    row_in.max_rd_atomic       = 9'(path_i.max_rd_atomic);
    row_in.max_dest_rd_atomic  = 9'(path_i.max_dest_rd_atomic);
    row_in.path_mig_state      = 9'(path_i.path_mig_state);
    row_in.en_sqd_async_notify = 9'(path_i.en_sqd_async_notify);
  end
  assign lane_we = {
    {27{path_we_i[QP_ATTR_BIT_AV]}},
    {4{path_we_i[QP_ATTR_BIT_QKEY] || path_we_i[QP_ATTR_BIT_RATE_LIMIT]}},   // a raw packet QP keeps its rate there
    {3{path_we_i[QP_ATTR_BIT_DEST_QPN]}},
    {3{path_we_i[QP_ATTR_BIT_SQ_PSN]}},
    {3{path_we_i[QP_ATTR_BIT_RQ_PSN]}},
    {2{path_we_i[QP_ATTR_BIT_PKEY_INDEX]}},
    path_we_i[QP_ATTR_BIT_PORT],
    path_we_i[QP_ATTR_BIT_TIMEOUT],
    path_we_i[QP_ATTR_BIT_RETRY_CNT],
    path_we_i[QP_ATTR_BIT_RNR_RETRY],
    path_we_i[QP_ATTR_BIT_MIN_RNR_TIMER],
    path_we_i[QP_ATTR_BIT_MAX_QP_RD_ATOMIC],
    path_we_i[QP_ATTR_BIT_MAX_DEST_RD_ATOMIC],
    path_we_i[QP_ATTR_BIT_PATH_MIG_STATE],
    path_we_i[QP_ATTR_BIT_EN_SQD_ASYNC_NOTIFY]
  };
  rnic_qp_ram_we #(
      .LaneW(9),
      .NumLane(NumLane),
      .Depth(Depth)
  ) u_path (
      .clk_i,
      .we_i(lane_we), .waddr_i(widx_i), .wdata_i(row_in),
      .re_i(cold_re), .raddr_i(cold_idx), .rdata_o(row_out)
  );
  always_comb begin
    {cold_rsp_o.path.dgid, cold_rsp_o.path.dmac, cold_rsp_o.path.vlan, cold_rsp_o.path.sgid_index, cold_rsp_o.path.hop_limit,
     cold_rsp_o.path.traffic_class, cold_rsp_o.path.flow_label} = row_out.av[AvW-1:0];
    cold_rsp_o.path.qkey                = row_out.qkey[31:0];
    cold_rsp_o.path.dest_qpn            = row_out.dest_qpn[23:0];
    cold_rsp_o.path.sq_psn              = row_out.sq_psn[23:0];
    cold_rsp_o.path.rq_psn              = row_out.rq_psn[23:0];
    cold_rsp_o.path.pkey_index          = row_out.pkey_index[15:0];
    cold_rsp_o.path.port                = row_out.port[7:0];
    cold_rsp_o.path.timeout             = row_out.timeout[4:0];
    cold_rsp_o.path.retry_cnt           = row_out.retry_cnt[2:0];
    cold_rsp_o.path.rnr_retry           = row_out.rnr_retry[2:0];
    cold_rsp_o.path.min_rnr_timer       = row_out.min_rnr_timer[4:0];
    cold_rsp_o.path.max_rd_atomic       = row_out.max_rd_atomic[7:0];
    cold_rsp_o.path.max_dest_rd_atomic  = row_out.max_dest_rd_atomic[7:0];
    cold_rsp_o.path.path_mig_state      = row_out.path_mig_state[1:0];
    cold_rsp_o.path.en_sqd_async_notify = row_out.en_sqd_async_notify[0];
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i && (create_we_i || path_we_i != '0)) a_one_write : assert (we_i);
  end
endmodule
