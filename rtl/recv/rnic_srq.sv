// SPDX-License-Identifier: Apache-2.0
// Shared receive queues: what they are, how many WQEs wait in each and where the oldest stands, doorbells, the limit and its event.
// Contract: set and limit are held until their ready; clr is one cycle, of a queue that no QP refers to. look_*: of idx_i, one cycle
// later. head_o is that of get_idx_i from the second cycle after get_i on, and follows what happens to the queue one cycle late. take_i
// (which get_idx_i was got for, at least two cycles before the next get_i): the WQE at the head is the taker's, next_i is the head from then
// on. A doorbell is never held back: a wrong queue, page or producer index is dropped and counted. The limit is judged after
// each take and when it is set: with fewer WQEs waiting it becomes 0 and the event is asked for. busy_o: an event is being handed over.
// Each word has one writer: cfg the set, prod the doorbell, pos the taker, limit the judge; a set starts them all.
module rnic_srq
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned NumSrq = 64,
    localparam int unsigned SrqW = $clog2(NumSrq)
) (
    input  logic clk_i,
    input  logic rst_i,
    output logic busy_o,
    // commands
    input  logic set_valid_i,
    output logic set_ready_o,
    input  logic clr_i,
    input  logic limit_valid_i,
    output logic limit_ready_o,
    // verilator lint_off UNUSEDSIGNAL
    // (numbers are as wide as the largest table needs)
    input  logic [15:0] idx_i,
    input  logic [15:0] get_idx_i,
    // verilator lint_on UNUSEDSIGNAL
    input  srq_cfg_t cfg_i,
    input  logic [15:0] limit_i,
    output logic [NumSrq-1:0] valid_o,
    output logic [15:0] look_pd_o,
    output logic [15:0] look_limit_o,
    output logic [15:0] look_left_o,          // WQEs that wait
    // doorbells
    input  logic db_valid_i,
    // verilator lint_off UNUSEDSIGNAL
    input  srq_db_t db_i,                     // (reserved bits)
    // verilator lint_on UNUSEDSIGNAL
    // responder
    input  logic get_i,
    output srq_head_t head_o,
    input  logic take_i,
    input  wqe_idx_t next_i,
    // limit event
    output logic eqe_valid_o,
    input  logic eqe_ready_i,
    output eqe_req_t eqe_o,
    output cnt_t cnt_o
);
  typedef struct packed {
    wqe_idx_t head;                           // slot
    wqe_idx_t taken;                          // WQEs taken since it was created, modulo 65536
  } pos_t;

  logic [SrqW-1:0] idx, get_idx_q, got_idx;
  logic set_fire, limit_fire, db_q, db_ok, take_q, judged;
  assign idx = SrqW'(idx_i);

  // ---------------------------------------------------------------- words
  logic prod_we, pos_we, limit_we;
  logic [SrqW-1:0] db_idx, db_idx_q, prod_idx, pos_idx, limit_idx;
  wqe_idx_t new_q, prod_new;
  pos_t pos_new;
  logic [15:0] limit_new;
  assign prod_we   = set_fire || db_ok;
  assign prod_idx  = set_fire ? idx : db_idx_q;
  assign prod_new  = set_fire ? '0 : new_q;
  assign pos_we    = set_fire || take_i;
  assign pos_idx   = set_fire ? idx : got_idx;
  assign limit_we  = set_fire || limit_fire || judged;
  assign limit_idx = (set_fire || limit_fire) ? idx : got_idx;

  // Three readers: commands, doorbells, the responder.
  // verilator lint_off UNUSEDSIGNAL
  // (each reads its own part)
  pos_t [2:0] pos;
  // verilator lint_on UNUSEDSIGNAL
  wqe_idx_t [2:0] prod;
  logic [15:0] look_pd;
  logic [7:0] db_page;
  logic [3:0] db_log_size;
  srq_cfg_t got_cfg;
  logic [2:0][SrqW-1:0] raddr;
  assign raddr = {got_idx, db_idx, idx};
  for (genvar r = 0; r < 3; r++) begin : g_reader
    rnic_ram #(.Width($bits(wqe_idx_t)), .Depth(NumSrq)) u_prod (
        .clk_i, .we_i(prod_we), .waddr_i(prod_idx), .wdata_i(prod_new), .re_i(1'b1), .raddr_i(raddr[r]), .rdata_o(prod[r])
    );
    rnic_ram #(.Width($bits(pos_t)), .Depth(NumSrq)) u_pos (
        .clk_i, .we_i(pos_we), .waddr_i(pos_idx), .wdata_i(pos_new), .re_i(1'b1), .raddr_i(raddr[r]), .rdata_o(pos[r])
    );
  end
  rnic_ram #(.Width(16), .Depth(NumSrq)) u_look_pd (
      .clk_i, .we_i(set_fire), .waddr_i(idx), .wdata_i(cfg_i.pd), .re_i(1'b1), .raddr_i(idx), .rdata_o(look_pd)
  );
  rnic_ram #(.Width(12), .Depth(NumSrq)) u_db_cfg (
      .clk_i, .we_i(set_fire), .waddr_i(idx), .wdata_i({cfg_i.uar, cfg_i.log_size}), .re_i(1'b1), .raddr_i(db_idx), .rdata_o({db_page, db_log_size})
  );
  // Nobody takes from a queue that is just being made: no bypass.
  localparam int unsigned GotW = $bits(srq_cfg_t) - 8;
  rnic_ram #(.Width(GotW), .Depth(NumSrq), .Bypass(1'b0)) u_cfg (
      .clk_i, .we_i(set_fire), .waddr_i(idx), .wdata_i({cfg_i.pd, cfg_i.log_size, cfg_i.log_stride, cfg_i.base}), .re_i(1'b1), .raddr_i(got_idx),
      .rdata_o({got_cfg.pd, got_cfg.log_size, got_cfg.log_stride, got_cfg.base})
  );
  assign got_cfg.uar = '0;     // (the responder does not ask)
  logic [15:0] look_limit, got_limit;
  rnic_ram #(.Width(16), .Depth(NumSrq)) u_limit_look (
      .clk_i, .we_i(limit_we), .waddr_i(limit_idx), .wdata_i(limit_new), .re_i(1'b1), .raddr_i(idx), .rdata_o(look_limit)
  );
  rnic_ram #(.Width(16), .Depth(NumSrq)) u_limit (
      .clk_i, .we_i(limit_we), .waddr_i(limit_idx), .wdata_i(limit_new), .re_i(1'b1), .raddr_i(got_idx), .rdata_o(got_limit)
  );

  // ---------------------------------------------------------------- commands
  assign set_ready_o   = !db_q && !take_i && !take_q;
  assign limit_ready_o = !take_i && !take_q;
  assign set_fire      = set_valid_i && set_ready_o;
  assign limit_fire    = limit_valid_i && limit_ready_o;
  assign look_pd_o     = look_pd;
  assign look_limit_o  = look_limit;
  assign look_left_o   = prod[0] - pos[0].taken;

  // ---------------------------------------------------------------- doorbells
  logic [7:0] db_uar_q;
  logic known_q, db_page_ok, db_range_ok;
  wqe_idx_t ahead_new, ahead_old;
  assign db_idx    = SrqW'(db_i.db.srqn);
  assign ahead_new = new_q - pos[1].taken;
  assign ahead_old = prod[1] - pos[1].taken;
`ifdef RNIC_CUT_SRQ_DB_PAGE
  assign db_page_ok = 1'b1;
`else
  assign db_page_ok = db_page == db_uar_q;
`endif
  // One slot is always free.
`ifdef RNIC_CUT_SRQ_DB_RANGE
  assign db_range_ok = 1'b1;
`else
  assign db_range_ok = ahead_new < (16'd1 << db_log_size) && ahead_new >= ahead_old;
`endif
  assign db_ok = db_q && known_q && db_page_ok && db_range_ok;
  always_ff @(posedge clk_i) begin
    db_q     <= db_valid_i && !rst_i;
    known_q  <= 32'(db_i.db.srqn) < NumSrq && valid_o[db_idx] && !(clr_i && idx == db_idx);
    db_idx_q <= db_idx;
    db_uar_q <= db_i.uar;
    new_q    <= db_i.db.producer;
    cnt_o    <= '0;
    if (!rst_i) begin
      cnt_o[COUNTER_ID_DB_ACCEPTED]   <= db_ok;
      cnt_o[COUNTER_ID_DB_DROP_QPN]   <= db_q && !known_q;
      cnt_o[COUNTER_ID_DB_DROP_PAGE]  <= db_q && known_q && !db_page_ok;
      cnt_o[COUNTER_ID_DB_DROP_RANGE] <= db_q && known_q && db_page_ok && !db_range_ok;
    end
  end

  // ---------------------------------------------------------------- responder
  assign got_idx = get_i ? SrqW'(get_idx_i) : get_idx_q;
  always_comb begin
    pos_new = '{head: next_i & ~(16'hffff << got_cfg.log_size), taken: pos[2].taken + wqe_idx_t'(1)};
`ifdef RNIC_CUT_SRQ_NEXT
    pos_new.head = (pos[2].head + wqe_idx_t'(1)) & ~(16'hffff << got_cfg.log_size);
`endif
    if (set_fire) pos_new = '0;
  end
  always_ff @(posedge clk_i) begin
    get_idx_q <= got_idx;
    take_q    <= take_i && !rst_i;
    head_o    <= '{cfg: got_cfg, avail: prod[2] != pos[2].taken, head: pos[2].head};
  end

  // ---------------------------------------------------------------- limit
  logic below_set, below_take, evt_valid, evt_take;
  logic [SrqW-1:0] evt_idx, evt_idx_q;
  assign below_set  = limit_fire && look_left_o < limit_i;
`ifdef RNIC_CUT_SRQ_LIMIT
  assign below_take = 1'b0;
`else
  assign below_take = take_q && prod[2] - pos[2].taken < got_limit;
`endif
  assign judged     = below_take;
`ifdef RNIC_CUT_SRQ_DISARM
  assign limit_new  = limit_fire ? limit_i : set_fire ? '0 : got_limit;
`else
  assign limit_new  = (limit_fire && !below_set) ? limit_i : '0;
`endif
  rnic_pend_bits #(.IdxW(SrqW), .NumSet(2)) u_events (
      .clk_i, .rst_i, .set_valid_i({below_set, below_take}), .set_idx_i({idx, got_idx}),
      .clr_valid_i(clr_i), .clr_idx_i(idx), .pick_valid_o(evt_valid), .pick_ready_i(evt_take), .pick_idx_o(evt_idx)
  );
  assign evt_take = evt_valid && !eqe_valid_o && !clr_i;
  assign eqe_o    = '{eqn: 8'd0, event_type: EVENT_TYPE_SRQ_LIMIT_REACHED, number: 32'(evt_idx_q)};
  assign busy_o   = eqe_valid_o;
  always_ff @(posedge clk_i) begin
    if (eqe_ready_i) eqe_valid_o <= 1'b0;
    if (evt_take) begin
      eqe_valid_o <= 1'b1;
      evt_idx_q   <= evt_idx;
    end
    if (set_fire) valid_o[idx] <= 1'b1;
    if (clr_i) valid_o[idx] <= 1'b0;
    if (rst_i) begin
      eqe_valid_o <= 1'b0;
      valid_o     <= '0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      if (take_i) a_take_what_waits : assert (valid_o[get_idx_q] && prod[2] != pos[2].taken);
      if (take_i || take_q) a_one_after_the_other : assert (!get_i);
      a_one_command : assert (2'(set_valid_i) + 2'(limit_valid_i) + 2'(clr_i) <= 2'd1);
    end
  end
endmodule
