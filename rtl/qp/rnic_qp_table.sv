// SPDX-License-Identifier: Apache-2.0
// Storage of the control sections: hot word (a copy per reader), create word (what it refers to twice), path word.
// The cold words are two halves of about the same width: "ring" is what CREATE sets, what INIT and RTS add, and of the hot word what a life
// never changes; "peer" is what RTR sets. With ColdBeats 2 both lie in one RAM, one behind the other, since a block RAM is deeper than
// most tables; with 1 beside each other.
// Contract: one write a cycle, whole in that cycle: hot word, and where enabled create word and the path attributes named by
// path_we_i (bits of QpAttrBit). With ColdBeats 2, what names attributes of both halves within a life (qp_path_split) writes the peer half alone in a
// cycle before (peer_first_i, we_i low). A new life leaves the peer half as it was and says so (own_peer_o low): nobody may look at it before
// it is set, which is whole the first time. Hot readers and the own port: answer one cycle after the index; for hot readers a read in the
// cycle of a write sees the new word, for the own port it gives nothing of use. Some hot readers know less (HotLife, HotServe). Cold port: requests are granted round robin (ready);
// the answer stands ColdBeats cycles after the grant, or later when the entry is being written, for one cycle; a section is never a mix of
// before and after. Of the hot word it has what a life never changes, of the path neither port nor notify.
module rnic_qp_table
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned QpIdxW = 8,
    parameter int unsigned NumCq = 256,
    parameter int unsigned NumSrq = 64,
    parameter int unsigned NumHot = 4,
    parameter bit [NumHot-1:0] HotLife = '0,     // readers of what may change in a life, and has_srq
    parameter bit [NumHot-1:0] HotServe = '0,    // readers of generation, epoch, MTU and whether requests are served (RTS) or not (RESET)
    parameter int unsigned NumCold = 5,
    parameter int unsigned ColdBeats = 1,
    localparam int unsigned AttrW = QP_ATTR_BIT_W
) (
    input  logic clk_i,
    input  logic rst_i,
    // write
    input  logic              we_i,
    input  logic              peer_first_i,
    input  logic [QpIdxW-1:0] widx_i,
    input  qp_hot_t           hot_i,
    input  logic              used_i,            // the index has had a life: its generation is spent
    input  logic              notify_i,          // en_sqd_async_notify, beside the hot word for the owner of the table
    // verilator lint_off UNUSEDSIGNAL
    // (what the gate lets through fits NUM_PORTS, NUM_PKEY and the tables of objects; what the own port alone has)
    input  logic [7:0]        port_i,            // path.port, likewise
    // verilator lint_on UNUSEDSIGNAL
    input  logic              new_life_i,
    input  logic              create_we_i,
    input  logic [AttrW-1:0]  path_we_i,
    // verilator lint_off UNUSEDSIGNAL
    input  qp_create_t        create_i,
    input  qp_path_t          path_i,
    // verilator lint_on UNUSEDSIGNAL
    // own read port
    input  logic              own_re_i,
    input  logic [QpIdxW-1:0] own_idx_i,
    output qp_hot_t           own_hot_o,         // holds while own_re_i is low, as do the next five
    output logic              own_used_o,
    output logic              own_notify_o,
    output logic [7:0]        own_port_o,
    output logic              own_peer_o,        // the peer half is of this life
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
  localparam int unsigned PortW = $clog2(NUM_PORTS + 1);
  localparam int unsigned OwnW = HotW + 3 + PortW;
  localparam int unsigned PdW = $clog2(NUM_PD);
  localparam int unsigned CqW = $clog2(NumCq) + 1;   // one more: no queue is all ones
  localparam int unsigned SrqW = $clog2(NumSrq);
  localparam int unsigned PkeyW = $clog2(NUM_PKEY);

  initial if (ColdBeats < 1 || ColdBeats > 2 || (HotLife & HotServe) != '0) $fatal(1, "ColdBeats, HotLife or HotServe out of range: %m");

  function automatic logic [15:0] cq_number(logic [CqW-1:0] c);
    return 16'(signed'(c));
  endfunction

  // ---------------------------------------------------------------- own port and hot readers
  logic [OwnW-1:0] own_rdata;
  logic [PortW-1:0] own_port;
  logic peer_named, peer_set;
  assign peer_named = (path_we_i & QP_PATH_PEER) != '0 && !new_life_i;
  assign peer_set   = !new_life_i && (own_peer_o || peer_named);
  // Nobody looks at the own port's answer to an entry that was being written.
  rnic_ram #(
      .Width(OwnW),
      .Depth(Depth),
      .Bypass(1'b0)
  ) u_own (
      .clk_i,
      .we_i, .waddr_i(widx_i), .wdata_i({used_i, notify_i, peer_set, PortW'(port_i), hot_i}),
      .re_i(own_re_i), .raddr_i(own_idx_i), .rdata_o(own_rdata)
  );
  assign {own_used_o, own_notify_o, own_peer_o, own_port, own_hot_o} = own_rdata;
  assign own_port_o = 8'(own_port);
  typedef struct packed {
    logic [PdW-1:0]  pd;
    logic [CqW-1:0]  send_cq;
    logic [CqW-1:0]  recv_cq;
    logic [SrqW-1:0] srq;
  } uses_t;
  uses_t uses;
  rnic_ram #(
      .Width($bits(uses_t)),
      .Depth(Depth),
      .Bypass(1'b0)
  ) u_uses (
      .clk_i,
      .we_i(create_we_i), .waddr_i(widx_i), .wdata_i({PdW'(create_i.pd), CqW'(create_i.send_cq), CqW'(create_i.recv_cq), SrqW'(create_i.srq)}),
      .re_i(own_re_i), .raddr_i(own_idx_i), .rdata_o(uses)
  );
  assign own_uses_o = '{pd: 16'(uses.pd), send_cq: cq_number(uses.send_cq), recv_cq: cq_number(uses.recv_cq), srq: 16'(uses.srq)};

  // A block RAM is 36 bits wide.
  typedef struct packed {
    logic      valid;
    qp_state_e state;
    logic      sq_draining;
    logic      has_srq;
    logic [2:0] access;
    logic [2:0] mtu;
    epoch_t    epoch;
  } life_t;
  typedef struct packed {
    logic      serves;
    logic [2:0] mtu;
    gen_t      gen;
    epoch_t    epoch;
  } serve_t;
  for (genvar r = 0; r < NumHot; r++) begin : g_hot
    if (HotLife[r]) begin : g_life
      life_t life;
      rnic_ram #(.Width($bits(life_t)), .Depth(Depth)) u_hot (
          .clk_i,
          .we_i, .waddr_i(widx_i), .wdata_i({hot_i.valid, hot_i.state, hot_i.sq_draining, hot_i.has_srq, hot_i.access, hot_i.mtu, hot_i.epoch}),
          .re_i(1'b1), .raddr_i(hot_idx_i[r][QpIdxW-1:0]), .rdata_o(life)
      );
      always_comb begin
        hot_o[r]             = '0;
        hot_o[r].valid       = life.valid;
        hot_o[r].state       = life.state;
        hot_o[r].sq_draining = life.sq_draining;
        hot_o[r].has_srq     = life.has_srq;
        hot_o[r].access      = life.access;
        hot_o[r].mtu         = life.mtu;
        hot_o[r].epoch       = life.epoch;
      end
    end else if (HotServe[r]) begin : g_serve
      serve_t serve;
      logic serves;
      assign serves = hot_i.valid && hot_i.state inside {QP_STATE_RTR, QP_STATE_RTS, QP_STATE_SQD, QP_STATE_SQE};
      rnic_ram #(.Width($bits(serve_t)), .Depth(Depth)) u_hot (
          .clk_i,
          .we_i, .waddr_i(widx_i), .wdata_i({serves, hot_i.mtu, hot_i.gen, hot_i.epoch}),
          .re_i(1'b1), .raddr_i(hot_idx_i[r][QpIdxW-1:0]), .rdata_o(serve)
      );
      always_comb begin
        hot_o[r]       = '0;
        hot_o[r].valid = serve.serves;
        hot_o[r].state = serve.serves ? QP_STATE_RTS : QP_STATE_RESET;
        hot_o[r].mtu   = serve.mtu;
        hot_o[r].gen   = serve.gen;
        hot_o[r].epoch = serve.epoch;
      end
    end else begin : g_all
      rnic_ram #(.Width(HotW), .Depth(Depth)) u_hot (
          .clk_i,
          .we_i, .waddr_i(widx_i), .wdata_i(hot_i),
          .re_i(1'b1), .raddr_i(hot_idx_i[r][QpIdxW-1:0]), .rdata_o(hot_o[r])
      );
    end
  end

  // ---------------------------------------------------------------- cold words: a write enable per attribute, in lanes of nine bits (the byte of a block RAM)
  typedef struct packed {
    logic       fast_reg;
    logic [PdW-1:0] pd;
    logic [CqW-1:0] send_cq;
    logic [CqW-1:0] recv_cq;
    logic [15:0] srq;
    logic [3:0] log_sq_stride;
    logic [3:0] log_rq_stride;
    logic [57:0] sq_base;              // of 64 bytes
    logic [63:0] rq_base;
    logic [3:0] qp_type;               // of the hot word
    logic       sq_sig_all;
    logic       has_srq;
    logic [7:0] uar;
    logic [3:0] log_sq;
    logic [3:0] log_rq;
    gen_t       gen;
  } fixed_t;
  localparam int unsigned FixedW = $bits(fixed_t);
  localparam int unsigned FixedLane = (FixedW + 8) / 9;
  typedef struct packed {
    logic [9*FixedLane-1:0] fixed;
    logic [35:0] qkey;
    logic [26:0] sq_psn;
    logic [8:0]  pkey_index;
    logic [8:0]  timeout;
    logic [8:0]  retry_cnt;
    logic [8:0]  rnr_retry;
    logic [8:0]  max_rd_atomic;
    logic [8:0]  path_mig_state;
  } ring_t;
  localparam int unsigned RingLane = $bits(ring_t) / 9;
  typedef struct packed {
    logic [242:0] av;
    logic [26:0]  dest_qpn;
    logic [26:0]  rq_psn;
    logic [8:0]   min_rnr_timer;
    logic [8:0]   max_dest_rd_atomic;
  } peer_t;
  localparam int unsigned PeerLane = $bits(peer_t) / 9;
  localparam int unsigned AvW = $bits({path_i.dgid, path_i.dmac, path_i.vlan, path_i.sgid_index, path_i.hop_limit,
                                       path_i.traffic_class, path_i.flow_label});

  ring_t ring_in;
  peer_t peer_in;
  logic [RingLane-1:0] ring_lanes;
  logic [PeerLane-1:0] peer_lanes;
  always_comb begin
    ring_in                    = '0;
    ring_in.fixed[FixedW-1:0]  = {create_i.fast_reg, PdW'(create_i.pd), CqW'(create_i.send_cq), CqW'(create_i.recv_cq), create_i.srq,
                                  create_i.log_sq_stride, create_i.log_rq_stride, create_i.sq_base[63:6], create_i.rq_base,
                                  hot_i.qp_type, hot_i.sq_sig_all, hot_i.has_srq, hot_i.uar, hot_i.log_sq, hot_i.log_rq, hot_i.gen};
    ring_in.qkey               = 36'(path_i.qkey);
    ring_in.sq_psn             = 27'(path_i.sq_psn);
    ring_in.pkey_index         = 9'(PkeyW'(path_i.pkey_index));
    ring_in.timeout            = 9'(path_i.timeout);
    ring_in.retry_cnt          = 9'(path_i.retry_cnt);
    ring_in.rnr_retry          = 9'(path_i.rnr_retry);
    ring_in.max_rd_atomic      = 9'(path_i.max_rd_atomic);
    ring_in.path_mig_state     = 9'(path_i.path_mig_state);
    peer_in                    = '0;
    peer_in.av[AvW-1:0]        = {path_i.dgid, path_i.dmac, path_i.vlan, path_i.sgid_index, path_i.hop_limit,
                                  path_i.traffic_class, path_i.flow_label};
    peer_in.dest_qpn           = 27'(path_i.dest_qpn);
    peer_in.rq_psn             = 27'(path_i.rq_psn);
    peer_in.min_rnr_timer      = 9'(path_i.min_rnr_timer);
    peer_in.max_dest_rd_atomic = 9'(path_i.max_dest_rd_atomic);
  end
  assign ring_lanes = {
    {FixedLane{create_we_i}},
    {4{path_we_i[QP_ATTR_BIT_QKEY] || path_we_i[QP_ATTR_BIT_RATE_LIMIT]}},   // a raw packet QP keeps its rate there
    {3{path_we_i[QP_ATTR_BIT_SQ_PSN]}},
    path_we_i[QP_ATTR_BIT_PKEY_INDEX],
    path_we_i[QP_ATTR_BIT_TIMEOUT],
    path_we_i[QP_ATTR_BIT_RETRY_CNT],
    path_we_i[QP_ATTR_BIT_RNR_RETRY],
    path_we_i[QP_ATTR_BIT_MAX_QP_RD_ATOMIC],
    path_we_i[QP_ATTR_BIT_PATH_MIG_STATE]
  };
  // What is written first in a life is written whole.
  assign peer_lanes = !peer_named ? '0 : !own_peer_o ? '1 : {
    {27{path_we_i[QP_ATTR_BIT_AV]}},
    {3{path_we_i[QP_ATTR_BIT_DEST_QPN]}},
    {3{path_we_i[QP_ATTR_BIT_RQ_PSN]}},
    path_we_i[QP_ATTR_BIT_MIN_RNR_TIMER],
    path_we_i[QP_ATTR_BIT_MAX_DEST_RD_ATOMIC]
  };

  // ---------------------------------------------------------------- arbitration of the cold port
  logic [NumCold-1:0] grant, can;
  logic [QpIdxW-1:0] cold_idx;
  logic cold_re, cold_busy, writes;
  logic [NumCold-1:0] held;                    // the entry is being written: not now
  assign writes = we_i || peer_first_i;
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
    for (int unsigned r = 0; r < NumCold; r++) can[r] = cold_req_valid_i[r] && !cold_busy && !held[r];
    cold_idx = '0;
    for (int unsigned r = 0; r < NumCold; r++) if (grant[r]) cold_idx |= cold_req_idx_i[r][QpIdxW-1:0];
  end

  // verilator lint_off UNUSEDSIGNAL
  // (lanes are padded to nine bits)
  ring_t ring;
  peer_t peer;
  // verilator lint_on UNUSEDSIGNAL
  if (ColdBeats == 1) begin : g_beside
    assign cold_busy = 1'b0;
    always_comb begin
      for (int unsigned r = 0; r < NumCold; r++) held[r] = writes && cold_req_idx_i[r][QpIdxW-1:0] == widx_i;
      // The last client is the writer itself: it does not read what it writes in that cycle, so its index needs no look.
      held[NumCold-1] = 1'b0;
    end
    always_ff @(posedge clk_i) cold_rsp_valid_o <= rst_i ? '0 : grant;
    rnic_qp_ram_we #(.LaneW(9), .NumLane(RingLane), .Depth(Depth)) u_ring (
        .clk_i, .we_i(ring_lanes), .waddr_i(widx_i), .wdata_i(ring_in), .re_i(cold_re), .raddr_i(cold_idx), .rdata_o(ring)
    );
    rnic_qp_ram_we #(.LaneW(9), .NumLane(PeerLane), .Depth(Depth)) u_peer (
        .clk_i, .we_i(peer_lanes), .waddr_i(widx_i), .wdata_i(peer_in), .re_i(cold_re), .raddr_i(cold_idx), .rdata_o(peer)
    );
  end else begin : g_behind
    // First the peer half, then the other. A write to the entry in one of these cycles: both once more. A grant does not wait for it: that the entry is being written
    // is known late in a cycle, and a grant goes far.
    localparam int unsigned NumLane = (RingLane > PeerLane) ? RingLane : PeerLane;
    logic second_q, again_q, first_lost_q, clash, peer_write;
    logic [NumCold-1:0] who_q;
    logic [QpIdxW-1:0] idx_q;
    logic [9*NumLane-1:0] half;
    logic [9*PeerLane-1:0] peer_q;
    assign cold_busy  = second_q || again_q;
    assign held       = '0;
    assign clash      = first_lost_q || (writes && widx_i == idx_q);
    assign peer_write = peer_first_i || ring_lanes == '0;
    always_ff @(posedge clk_i) begin
      cold_rsp_valid_o <= (second_q && !clash) ? who_q : '0;
      second_q         <= cold_re || (again_q && !clash);
      again_q          <= cold_busy && clash;
      first_lost_q     <= cold_re && writes && widx_i == cold_idx;
`ifdef RNIC_CUT_QP_COLD_LOST
      first_lost_q     <= 1'b0;
`endif
      if (cold_re) begin
        who_q <= grant;
        idx_q <= cold_idx;
      end
      if (second_q) peer_q <= half[9*PeerLane-1:0];
      if (rst_i) begin
        cold_rsp_valid_o <= '0;
        second_q         <= 1'b0;
        again_q          <= 1'b0;
        first_lost_q     <= 1'b0;
      end
    end
    rnic_qp_ram_we #(.LaneW(9), .NumLane(NumLane), .Depth(2 * Depth), .Any(1'b1)) u_halves (
        .clk_i,
        .we_i(peer_write ? NumLane'(peer_lanes) : NumLane'(ring_lanes)), .waddr_i({widx_i, peer_write}),
        .wdata_i(peer_write ? (9 * NumLane)'(peer_in) : (9 * NumLane)'(ring_in)),
        .re_i(cold_busy || cold_re), .raddr_i({cold_busy ? idx_q : cold_idx, !second_q}), .rdata_o(half)
    );
    assign peer = peer_q;
    assign ring = half[9*RingLane-1:0];
    logic first_q;
    always_ff @(posedge clk_i) begin
      first_q <= peer_first_i;
      if (!rst_i) a_one_half : assert (peer_first_i || ring_lanes == '0 || !peer_named || first_q);
    end
  end

  // ---------------------------------------------------------------- a section
  fixed_t fixed;
  assign fixed = ring.fixed[FixedW-1:0];
  always_comb begin
    cold_rsp_o                          = '0;
    cold_rsp_o.hot.qp_type              = fixed.qp_type;
    cold_rsp_o.hot.sq_sig_all           = fixed.sq_sig_all;
    cold_rsp_o.hot.has_srq              = fixed.has_srq;
    cold_rsp_o.hot.uar                  = fixed.uar;
    cold_rsp_o.hot.log_sq               = fixed.log_sq;
    cold_rsp_o.hot.log_rq               = fixed.log_rq;
    cold_rsp_o.hot.gen                  = fixed.gen;
    cold_rsp_o.create = '{
        fast_reg: fixed.fast_reg, pd: 16'(fixed.pd), send_cq: cq_number(fixed.send_cq), recv_cq: cq_number(fixed.recv_cq), srq: fixed.srq,
        log_sq_stride: fixed.log_sq_stride, log_rq_stride: fixed.log_rq_stride, sq_base: {fixed.sq_base, 6'd0}, rq_base: fixed.rq_base
    };
    {cold_rsp_o.path.dgid, cold_rsp_o.path.dmac, cold_rsp_o.path.vlan, cold_rsp_o.path.sgid_index, cold_rsp_o.path.hop_limit,
     cold_rsp_o.path.traffic_class, cold_rsp_o.path.flow_label} = peer.av[AvW-1:0];
    cold_rsp_o.path.dest_qpn            = peer.dest_qpn[23:0];
    cold_rsp_o.path.rq_psn              = peer.rq_psn[23:0];
    cold_rsp_o.path.min_rnr_timer       = peer.min_rnr_timer[4:0];
    cold_rsp_o.path.max_dest_rd_atomic  = peer.max_dest_rd_atomic[7:0];
    cold_rsp_o.path.qkey                = ring.qkey[31:0];
    cold_rsp_o.path.sq_psn              = ring.sq_psn[23:0];
    cold_rsp_o.path.pkey_index          = 16'(ring.pkey_index[PkeyW-1:0]);
    cold_rsp_o.path.timeout             = ring.timeout[4:0];
    cold_rsp_o.path.retry_cnt           = ring.retry_cnt[2:0];
    cold_rsp_o.path.rnr_retry           = ring.rnr_retry[2:0];
    cold_rsp_o.path.max_rd_atomic       = ring.max_rd_atomic[7:0];
    cold_rsp_o.path.path_mig_state      = ring.path_mig_state[1:0];
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i && (create_we_i || path_we_i != '0)) a_one_write : assert (writes && !(we_i && peer_first_i));
    if (!rst_i && new_life_i && we_i && !create_we_i) a_old_ring : assert (path_we_i == '1);
  end
endmodule
