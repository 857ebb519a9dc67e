// SPDX-License-Identifier: Apache-2.0
// Sequencer of the QP commands. Pass 1 looks at every QP and changes nothing; pass 2 changes every QP and cannot fail.
// Contract: one command at a time; its completion stands until taken. Items move through stages, one a cycle: S0 asks the table, S1 has the
// answer (pass 2: writes), S2 is the gate's second half, S3 has the verdict. The first offender in the order of the batch ends the command with nothing
// changed. One MODIFY by number needs no second look: it is written in the cycle of its verdict. After new lives (DESTROY, ->RESET) the completion waits for the barrier through the data path.
// Records that come in parts (RecParts) are judged as they arrive; should their read fail in the end, nothing that was found in them counts.
// What names attributes of both halves of a section takes two cycles to write where these share a RAM (Split).
module rnic_qp_batch
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned DataW = 64,
    parameter int unsigned QpIdxW = 8,
    parameter int unsigned GenW = 16,
    parameter int unsigned RecParts = 1,
    parameter bit Split = 1'b0,
    localparam int unsigned PartW = (RecParts > 1) ? $clog2(RecParts) : 1,
    localparam int unsigned AttrW = QP_ATTR_BIT_W
) (
    input  logic clk_i,
    input  logic rst_i,
    output logic ready_o,
    // commands
    input  logic cmd_valid_i, output logic cmd_ready_o, input cmd_qp_t cmd_i,
    output logic cpl_valid_o, input logic cpl_ready_i, output qp_cpl_t cpl_o,
    // judge of parameters
    output cmd_qp_t cmd_o, input cmd_status_e chk_status_i, input logic [31:0] chk_detail_i,
    input  logic chk_send_cq_i, input logic chk_recv_cq_i,
    // hardware errors: they are applied while idle_o; quiet_i: none is waiting
    output logic idle_o, input logic quiet_i,
    // table: own read port, cold port, write port
    output logic own_re_o, output logic [QpIdxW-1:0] own_idx_o, input qp_hot_t own_hot_i, input logic own_used_i,
    input  logic own_notify_i, input logic [7:0] own_port_i, input logic own_peer_i, input qp_uses_t own_uses_i,
    output logic cold_req_valid_o, input logic cold_req_ready_i, input logic cold_rsp_valid_i,
    // verilator lint_off UNUSEDSIGNAL
    input  qp_ctx_t cold_rsp_i,                  // (but for what the own port has)
    // verilator lint_on UNUSEDSIGNAL
    output logic we_o, output logic peer_first_o, output logic [QpIdxW-1:0] widx_o, output qp_hot_t hot_o, output logic used_o, output logic notify_o, output logic [7:0] port_o,
    output logic create_we_o, output qp_create_t create_o, output logic [AttrW-1:0] path_we_o, output qp_path_t path_o,
    output logic new_life_o,
    // gate
    output logic [3:0] gate_type_o, output qp_state_e gate_state_o, output logic gate_draining_o, output logic gate_to_init_o, output logic [7:0] gate_port_o,
    input  logic gate_ok_i, input gate_rule_e gate_rule_i, input logic [31:0] gate_detail_i,
    // allocator and marks
    input  logic alloc_ready_i, input logic [QpIdxW:0] free_cnt_i, output logic list_start_o, input logic list_valid_i, output logic list_ready_o, input logic [QpIdxW-1:0] list_idx_i,
    output logic search_start_o, input logic search_done_i, input logic found_i, input logic [QpIdxW-1:0] start_i,
    output logic put_valid_o, output logic put_free_o,
    input  logic mark_ready_i, output logic mark_fill_o, output logic mark_op_o, output logic mark_set_o, input logic mark_bit_i,
    output logic mark_walk_o, input logic mark_valid_i, output logic mark_take_o, input logic [QpIdxW-1:0] mark_idx_i,
    // host memory
    output logic fetch_start_o, output logic fetch_records_o, output logic fetch_abort_o, input logic fetch_idle_i, input logic fetch_err_i,
    input  logic item_valid_i, output logic item_ready_o, input logic [31:0] item_i,
    input  logic [6:0] rec_have_i, output logic rec_batch_o, output logic rec_hold_o,
    output logic rec_re_o, output logic [5:0] rec_row_o, output logic [PartW-1:0] rec_part_o, input qp_attr_t rec_i,
    output logic out_start_o, output logic [18:0] out_len_o, input logic out_room_i, input logic out_idle_i,
    output logic out_word_o, output logic [31:0] word_o, output logic out_beat_o, output logic [DataW-1:0] beat_o,
    // walk of LIST_QP, which tells the numbers itself
    output logic walk_start_o, input logic walk_done_i, input logic [QpIdxW:0] walk_count_i, input logic [QpIdxW-1:0] walk_next_i,
    // effects
    output logic ref_valid_o, output qp_ref_t ref_o,
    output logic drain_req_o, input logic drain_ack_i,
    output cnt_t cnt_o
);
  localparam int unsigned QueryBeats = 1024 / DataW;
  localparam logic [15:0] NoCq = 16'hffff;      // a type without this queue refers to none

  typedef enum logic [3:0] {
    ST_INIT,     // after reset: every entry is read, made invalid, its epoch advanced
    ST_IDLE,     // waiting for a command
    ST_LOOK,     // object tables are looked up
    ST_JUDGE,    // parameters are judged
    ST_CHECK,    // the verdict on them
    ST_FETCH,    // records are on their way
    ST_GATE,     // INSTALL: the record against the edge RESET->INIT
    ST_ALLOC,    // CREATE: is there room?
    ST_SEARCH,   // CREATE: a range is searched
    ST_PASS1,    // every QP is looked at
    ST_PASS2,    // every QP is changed
    ST_QUERY,    // the section is written to the host, beat by beat
    ST_LIST,     // the table is walked
    ST_SETTLE,   // what is under way ends; after a refusal marks are cleared
    ST_DRAIN,    // barrier through the data path
    ST_CPL       // the completion waits to be taken
  } state_e;
  state_e state_q;

  // ---------------------------------------------------------------- the command
  cmd_qp_t cmd_q;
  logic is_install, is_create, is_modify, is_destroy, is_query, is_list, use_list, records, contiguous, requested, by_range, tell_list, single;
  logic [16:0] count;
  assign cmd_o      = cmd_q;
  assign count      = 17'(cmd_q.count);
  // Decoded in ST_LOOK, so that decisions that go far begin at a register.
  typedef struct packed {
    logic is_install;
    logic is_create;
    logic is_modify;
    logic is_destroy;
    logic is_query;
    logic is_list;
    logic use_list;
    logic records;
    logic requested;
    logic contiguous;
    logic by_range;
    logic tell_list;
    logic single;
  } decoded_t;
  decoded_t decoded, decoded_q;
  always_comb begin
    decoded.is_install = cmd_q.opcode == CMD_OPCODE_INSTALL_QP;
    decoded.is_create  = cmd_q.opcode == CMD_OPCODE_CREATE_QP || decoded.is_install;
    decoded.is_modify  = cmd_q.opcode == CMD_OPCODE_MODIFY_QP;
    decoded.is_destroy = cmd_q.opcode == CMD_OPCODE_DESTROY_QP;
    decoded.is_query   = cmd_q.opcode == CMD_OPCODE_QUERY_QP;
    decoded.is_list    = cmd_q.opcode == CMD_OPCODE_LIST_QP;
    decoded.use_list   = cmd_q.flags[CMD_FLAG_LIST];
    decoded.records    = cmd_q.flags[CMD_FLAG_RECORDS];
    decoded.requested  = cmd_q.flags[CMD_FLAG_REQUESTED];
    decoded.contiguous = cmd_q.flags[CMD_FLAG_CONTIGUOUS] && !decoded.requested;
    decoded.by_range   = decoded.is_create ? (decoded.contiguous || decoded.requested) : !decoded.use_list;
    decoded.tell_list  = decoded.is_create && !cmd_q.flags[CMD_FLAG_CONTIGUOUS] && cmd_q.list_addr != '0;
    decoded.single     = decoded.is_modify && decoded.by_range && count == 17'd1;
`ifdef RNIC_CUT_QP_SINGLE
    decoded.single     = 1'b0;
`endif
  end
  always_ff @(posedge clk_i) decoded_q <= decoded;
  assign {is_install, is_create, is_modify, is_destroy, is_query, is_list, use_list, records, requested, contiguous, by_range, tell_list, single} = decoded_q;

  // ---------------------------------------------------------------- S0: which QP
  logic [16:0] k_q, end_k;                       // item; how many there are
  logic [31:0] qpn_q, s0_qpn;                    // of a range: the running QPN (its low bits: the running index)
  logic over_q;                                  // the range has run out of the table
  logic s0_more, s0_src, s0_issue, s0_early;
  logic fail, verdict, pass_done;                // of the sequence, below
  logic hold;                                    // S1 is written in two cycles: this is the first
  logic rec_here;                                // the record of item k will be at hand in S1
  logic asked_q;                                 // QUERY: the section is asked for
  logic [QpIdxW-1:0] idx_buf[MAX_RECORDS];       // record batch by list: index of item k
  logic s1_valid_q, s1_last_q, s1_over_q;
  logic [16:0] s1_k_q;
  logic [31:0] s1_qpn_q;
  logic [QpIdxW-1:0] s1_idx;

  always_comb begin
    end_k = count;
    if (state_q == ST_INIT) end_k = 17'd1 << QpIdxW;
    if (state_q == ST_QUERY) end_k = 17'(QueryBeats);
    s0_more = k_q != end_k;
    s0_src  = 1'b0;
    s0_qpn  = qpn_q;
    list_ready_o = 1'b0;
    mark_take_o  = 1'b0;
    item_ready_o = 1'b0;
    cold_req_valid_o = 1'b0;
    s0_early         = 1'b0;
    unique case (state_q)
      ST_FETCH: begin
        // What is written in two cycles is looked up one earlier.
        s0_early = Split && single && !records && fetch_idle_i && !fetch_err_i && qp_path_split(rec_i.mask[AttrW-1:0]);
        s0_src   = 1'b1;
        s0_issue = s0_early;
      end
      ST_INIT: begin
        s0_src   = 1'b1;
        s0_issue = s0_more;
      end
      ST_PASS1: begin
        s0_src       = by_range || item_valid_i;
        s0_qpn       = by_range ? qpn_q : item_i;
        s0_issue     = s0_more && s0_src && rec_here;
        item_ready_o = s0_issue;
      end
      ST_PASS2: begin
        if (by_range) begin
          s0_src = 1'b1;
        end else if (is_create) begin
          s0_src = list_valid_i;
          s0_qpn = 32'(list_idx_i);
        end else if (records) begin
          s0_src = 1'b1;
          s0_qpn = 32'(idx_buf[k_q[5:0]]);
        end else begin
          s0_src = mark_valid_i;
          s0_qpn = 32'(mark_idx_i);
        end
        s0_issue     = s0_more && s0_src && rec_here && !hold && (!tell_list || out_room_i);
        list_ready_o = s0_issue && is_create && !by_range;
        mark_take_o  = s0_issue && !is_create && !by_range && !records;
      end
      ST_QUERY: begin
        s0_src           = 1'b1;
        s0_qpn           = cmd_q.handle;
        cold_req_valid_o = s0_more && !asked_q;
        s0_issue         = s0_more && asked_q && cold_rsp_valid_i;
      end
      default: s0_issue = 1'b0;
    endcase
  end
  // Read whether or not the item is issued: S1 looks only at what was issued in the cycle before. After the last item of
  // pass 1 its answer stands.
  assign own_re_o  = state_q == ST_INIT || s0_early || (state_q == ST_PASS1 && s0_more) || (state_q == ST_PASS2 && !hold);
  assign own_idx_o = s0_qpn[QpIdxW-1:0];
  // Records: a part a cycle, so that the record is whole in S1; the next one's first part may be asked for when it goes there.
  logic in_pass;
  assign in_pass     = state_q == ST_PASS1 || state_q == ST_PASS2;
  assign rec_batch_o = records;
  assign rec_hold_o  = hold;
  if (RecParts == 1) begin : g_rec_whole
    assign rec_here   = 1'b1;
    assign rec_re_o   = records ? ((state_q == ST_PASS1 && s0_more) || (state_q == ST_PASS2 && !hold)) : (state_q == ST_FETCH && fetch_idle_i);
    assign rec_row_o  = (state_q == ST_FETCH) ? '0 : k_q[5:0];
    assign rec_part_o = '0;
    // verilator lint_off UNUSEDSIGNAL
    logic unused_have;
    // verilator lint_on UNUSEDSIGNAL
    assign unused_have = ^{rec_have_i, in_pass};
  end else begin : g_rec_parts
    logic [PartW:0] part_q;                      // of item k: parts asked for
    logic [16:0] row;
    assign rec_here   = !records || part_q == (PartW + 1)'(RecParts);
    assign row        = s0_issue ? k_q + 17'd1 : k_q;
    assign rec_row_o  = row[5:0];
    assign rec_part_o = s0_issue ? '0 : part_q[PartW-1:0];
    assign rec_re_o   = records && in_pass && !hold && (s0_issue || part_q != (PartW + 1)'(RecParts)) && row != end_k
        && (row[6:0] < rec_have_i);
    always_ff @(posedge clk_i) begin
      if (s0_issue || !in_pass || pass_done) part_q <= (PartW + 1)'(rec_re_o);
      else if (rec_re_o) part_q <= part_q + (PartW + 1)'(1);
      if (!in_pass || pass_done) part_q <= '0;
    end
  end
  assign s1_idx    = s1_qpn_q[QpIdxW-1:0];

  // ---------------------------------------------------------------- S1 of pass 1: handle, mark, gate
  logic s1_bad, pass1;
  gen_t s1_gen;
  assign pass1    = state_q == ST_PASS1;
  assign s1_gen   = gen_t'((s1_qpn_q >> QpIdxW) & 32'((1 << GenW) - 1));
  always_comb begin
    s1_bad = s1_over_q || (s1_qpn_q >> (QpIdxW + GenW)) != '0 || !own_hot_i.valid || own_hot_i.gen != s1_gen;
`ifdef RNIC_CUT_QP_HANDLE_GEN
    s1_bad = s1_over_q || !own_hot_i.valid;
`endif
  end
  assign gate_type_o     = is_install ? cmd_q.qp_type : own_hot_i.qp_type;
  assign gate_state_o    = is_install ? QP_STATE_RESET : own_hot_i.state;
  assign gate_draining_o = !is_install && own_hot_i.sq_draining;
  assign gate_to_init_o  = is_install;
  assign gate_port_o     = is_install ? '0 : own_port_i;
  always_comb begin
    mark_op_o  = pass1 && s1_valid_q && use_list && !s1_bad;
    mark_set_o = 1'b1;
    if (state_q == ST_PASS2) begin
      mark_op_o  = s1_valid_q && use_list && records && !hold;  // else the walk clears them
      mark_set_o = 1'b0;
    end
  end

  logic s2_valid_q, s2_last_q, s2_bad_q, s2_dup_q, s2_rsvd_q, s2_taken_q;
  logic [16:0] s2_k_q;
  logic [31:0] s2_qpn_q;
  gen_t gen_new;
  logic gen_none, s1_taken;
  rnic_qp_gen #(
      .QpIdxW(QpIdxW),
      .GenW(GenW)
  ) u_gen (
      .clk_i,
      .clear_i(state_q == ST_IDLE), .look_i(pass1 && s1_valid_q), .contiguous_i(contiguous), .requested_i(requested), .handle_i(cmd_q.handle),
      .idx_i(s1_idx), .valid_i(own_hot_i.valid), .used_i(own_used_i), .gen_i(own_hot_i.gen), .gen_o(gen_new), .taken_o(s1_taken),
      .last_idx_i(s2_qpn_q[QpIdxW-1:0]), .none_o(gen_none)
  );

  // ---------------------------------------------------------------- S2: all but the gate; S3: verdict
  cmd_status_e s2_status, s3_own_q, s3_status;
  logic s3_valid_q, s3_last_q;
  logic [16:0] s3_k_q;
  logic [31:0] s3_qpn_q;
  always_comb begin
    s2_status = CMD_STATUS_OK;
    if (is_create && pass1) begin
      if (requested && s2_taken_q) s2_status = CMD_STATUS_IN_USE;
      else if (contiguous && s2_last_q && gen_none) s2_status = CMD_STATUS_NO_COMMON_GENERATION;
    end else if (s2_bad_q) begin
      s2_status = CMD_STATUS_BAD_HANDLE;
    end else if (s2_dup_q) begin
      s2_status = CMD_STATUS_DUPLICATE;
    end else if ((is_modify || is_install) && s2_rsvd_q) begin
      s2_status = CMD_STATUS_RESERVED_SET;
    end
    s3_status = s3_own_q;
    if (s3_own_q == CMD_STATUS_OK && (is_modify || is_install) && !gate_ok_i) s3_status = CMD_STATUS_GATE_REFUSED;
  end

  // ---------------------------------------------------------------- S1 of pass 2: the change
  logic write, write_pass2, write_single, split, half_q;   // half_q: the first of two cycles is over
  logic [63:0] sq_base_q, rq_base_q;
  qp_hot_t apply_hot;
  logic [AttrW-1:0] apply_path_we;
  logic [1023:0] section;
  logic [31:0] new_qpn;
  assign split        = Split && is_modify && !half_q && qp_path_split(rec_i.mask[AttrW-1:0])
      && !(rec_i.mask[QP_ATTR_BIT_STATE] && rec_i.qp_state == QP_STATE_RESET);
  assign write_pass2  = s1_valid_q && state_q == ST_PASS2;
  assign write_single = single && pass1 && verdict;
  assign write   = (write_pass2 || write_single) && !split;
  assign hold    = write_pass2 && split;
  assign peer_first_o = (write_pass2 || write_single) && split;
  assign new_qpn = 32'(make_qpn(gen_new, qp_idx_t'(s1_idx), QpIdxW));

  rnic_qp_apply u_apply (
      .create_i(is_create), .modify_i(is_modify), .destroy_i(is_destroy),
      .attr_valid_i(is_install), .attr_i(rec_i), .cmd_i(cmd_q),
      .gen_i(gen_new), .sq_base_i(sq_base_q), .rq_base_i(rq_base_q),
      .send_cq_i(chk_send_cq_i ? cmd_q.send_cq : NoCq), .recv_cq_i(chk_recv_cq_i ? cmd_q.recv_cq : NoCq),
      .hot_i(own_hot_i), .used_i(own_used_i), .notify_i(own_notify_i), .port_i(own_port_i),
      .hot_o(apply_hot), .used_o, .notify_o, .port_o, .create_o, .path_we_o(apply_path_we), .path_o, .new_life_o
  );
  // The section, with what the own port has of it; what this life has not set yet is zero.
  qp_ctx_t shown;
  always_comb begin
    shown                          = cold_rsp_i;
    shown.hot                      = own_hot_i;
    shown.path.port                = own_port_i;
    shown.path.en_sqd_async_notify = own_notify_i;
    if (!own_peer_i) begin
      shown.path.dgid               = '0;
      shown.path.dmac               = '0;
      shown.path.vlan               = '0;
      shown.path.sgid_index         = '0;
      shown.path.hop_limit          = '0;
      shown.path.traffic_class      = '0;
      shown.path.flow_label         = '0;
      shown.path.dest_qpn           = '0;
      shown.path.rq_psn             = '0;
      shown.path.min_rnr_timer      = '0;
      shown.path.max_dest_rd_atomic = '0;
    end
  end
  rnic_qp_query u_query (
      .ctx_i(shown), .qpn_i(qpn_t'(cmd_q.handle)), .data_o(section)
  );

  assign we_o        = write || (s1_valid_q && state_q == ST_INIT);
  assign widx_o      = (single && pass1) ? s3_qpn_q[QpIdxW-1:0] : s1_idx;
  assign create_we_o = write && is_create;
  assign path_we_o   = (write || peer_first_o) ? apply_path_we : '0;
  assign put_valid_o = write && ((is_create && by_range) || is_destroy) && s1_idx > QpIdxW'(1);
  assign put_free_o  = is_destroy;
  assign out_word_o  = write && tell_list;
  assign word_o      = new_qpn;
  assign out_beat_o  = state_q == ST_QUERY && s0_issue;
  // Beats as ANDs and ORs: half of a section is zero.
  always_comb begin
    beat_o = '0;
    for (int unsigned b = 0; b < QueryBeats; b++) beat_o |= section[DataW*b+:DataW] & {DataW{k_q[$clog2(QueryBeats)-1:0] == $clog2(QueryBeats)'(b)}};
  end
  always_comb begin
    hot_o = apply_hot;
    if (state_q == ST_INIT) begin
      // Nothing of the life before the reset may be taken for one after it: number and epoch go on from where they were.
      hot_o             = own_hot_i;
`ifndef RNIC_CUT_QP_INIT_CLEARS
      hot_o.valid       = 1'b0;
`endif
      hot_o.state       = QP_STATE_RESET;
      hot_o.sq_draining = 1'b0;
      hot_o.epoch       = (own_hot_i.epoch == '1) ? epoch_t'(1) : own_hot_i.epoch + epoch_t'(1);
`ifdef RNIC_CUT_QP_INIT_KEEPS
      hot_o.gen         = '0;
      hot_o.epoch       = epoch_t'(1);
`endif
    end
  end

  // ---------------------------------------------------------------- sequence
  logic accept, enough_q, drain_q, drain_req_q, unmark_q, ok_q;
  cmd_status_e fail_status;
  logic [31:0] fail_detail;
  qp_cpl_t cpl_q;
  assign idle_o      = state_q == ST_IDLE;
  assign ready_o     = state_q != ST_INIT;
  assign cmd_ready_o = idle_o && quiet_i && alloc_ready_i && mark_ready_i;
  assign accept      = cmd_valid_i && cmd_ready_o;
  assign verdict     = s3_valid_q && s3_last_q && !fail;
  assign pass_done   = verdict && !(write_single && split);
  assign cpl_valid_o = state_q == ST_CPL;
  assign cpl_o       = cpl_q;
  assign drain_req_o = drain_req_q;

  // Records that are judged as they arrive: their read has failed.
  logic settled, voided;                         // what is under way has ended; and the records were none
  logic by_parts, rec_void, void_q;              // void_q: something was found in them before their end
  assign by_parts = RecParts > 1 && is_modify && records;
  assign rec_void = by_parts && pass1 && fetch_idle_i && fetch_err_i;
  always_comb begin
    fail        = 1'b0;
    fail_status = s3_status;
    fail_detail = (s3_status == CMD_STATUS_GATE_REFUSED) ? gate_detail_i : '0;
    unique case (state_q)
      ST_CHECK: begin
        fail        = chk_status_i != CMD_STATUS_OK;
        fail_status = chk_status_i;
        fail_detail = chk_detail_i;
      end
      ST_FETCH: begin
        fail        = fetch_idle_i && fetch_err_i;
        fail_status = CMD_STATUS_DMA_ERROR;
        fail_detail = '0;
      end
      ST_ALLOC: begin
        fail        = !by_range && !enough_q;
        fail_status = CMD_STATUS_NO_RESOURCES;
        fail_detail = '0;
      end
      ST_SEARCH: begin
        fail        = search_done_i && !found_i;
        fail_status = CMD_STATUS_NO_RESOURCES;
        fail_detail = '0;
      end
      ST_GATE, ST_PASS1: begin
        fail = s3_valid_q && s3_status != CMD_STATUS_OK;
        if (rec_void) begin
          fail        = 1'b1;
          fail_status = CMD_STATUS_DMA_ERROR;
          fail_detail = '0;
        end else if (!fail && pass1 && !by_range && fetch_err_i && !item_valid_i && !s1_valid_q && !s2_valid_q && !s3_valid_q && s0_more) begin
          fail        = 1'b1;
          fail_status = CMD_STATUS_DMA_ERROR;
          fail_detail = '0;
        end
      end
      default: ;
    endcase
  end

  logic fetch_recs, fetch_list, go_pass2;
  // A list goes first where records are judged as they arrive, else the record.
  logic list_first;
  assign list_first      = by_parts && use_list;
  assign fetch_recs      = !fail && (is_modify || is_install) && (list_first ? state_q == ST_FETCH && fetch_idle_i : state_q == ST_CHECK);
  assign fetch_list      = use_list && !fail && ((state_q == ST_CHECK && (is_destroy || list_first)) || (state_q == ST_FETCH && fetch_idle_i && !list_first));
  assign fetch_start_o   = fetch_recs || fetch_list;
  assign fetch_records_o = fetch_recs;
  assign fetch_abort_o   = state_q == ST_SETTLE && !ok_q;
  assign list_start_o    = state_q == ST_ALLOC && !fail && !by_range;
  assign search_start_o  = state_q == ST_ALLOC && contiguous;
  assign go_pass2        = list_start_o || (pass1 && pass_done && !is_query && !single);
  assign walk_start_o    = state_q == ST_CHECK && !fail && is_list;
  assign mark_walk_o     = go_pass2 && use_list && !records;
  assign mark_fill_o     = state_q == ST_SETTLE && unmark_q;
  assign out_start_o     = (go_pass2 && tell_list) || (pass1 && pass_done && is_query);
  assign out_len_o       = is_query ? 19'd128 : 19'(count) << 2;

  always_ff @(posedge clk_i) begin
    cnt_o       <= '0;
    ref_valid_o <= 1'b0;
    // Stages
    half_q     <= peer_first_o;
    if (!hold) begin
      s1_valid_q <= s0_issue && !fail;
      s1_k_q     <= k_q;
      s1_qpn_q   <= s0_qpn;
      s1_over_q  <= by_range && over_q;
      s1_last_q  <= k_q + 17'd1 == end_k;
    end
    if (s0_issue) begin
      k_q    <= k_q + 17'd1;
      over_q <= over_q || (qpn_q[QpIdxW-1:0] == '1);
    end
    s2_valid_q <= s1_valid_q && (pass1 || state_q == ST_GATE) && !fail;
    s2_k_q     <= s1_k_q;
    s2_qpn_q   <= s1_qpn_q;
    s2_last_q  <= s1_last_q;
    s2_bad_q   <= s1_bad && pass1;
    s2_dup_q   <= mark_bit_i && pass1 && use_list;
`ifdef RNIC_CUT_QP_DUPLICATE
    s2_dup_q   <= 1'b0;
`endif
    s2_rsvd_q  <= !qp_attr_rsvd_ok(rec_i);
    s2_taken_q <= s1_taken;
    if (!(write_single && split) || fail) begin
      s3_valid_q <= s2_valid_q && !fail;
      s3_k_q     <= s2_k_q;
      s3_qpn_q   <= s2_qpn_q;
      s3_last_q  <= s2_last_q;
      s3_own_q   <= s2_status;
    end
    asked_q <= state_q == ST_QUERY && ((cold_req_valid_o && cold_req_ready_i) || (asked_q && !cold_rsp_valid_i));
    enough_q   <= 17'(free_cnt_i) >= count;
    if (s1_valid_q && pass1 && records && use_list) idx_buf[s1_k_q[5:0]] <= s1_idx;
    if (write) begin
      if (new_life_o && !is_create) drain_q <= 1'b1;
      // References fall before the barrier: their objects outlive it, since nothing destroys them while this command is under way.
      if (is_destroy) begin
        ref_valid_o <= 1'b1;
        ref_o       <= '{inc: 1'b0, n: 17'd1, in_xrcd: own_hot_i.qp_type == QP_TYPE_XRC_TGT, pd: own_uses_i.pd, send_cq: own_uses_i.send_cq,
                         recv_cq: own_uses_i.recv_cq, has_srq: own_hot_i.has_srq, srq: own_uses_i.srq};
      end
    end
    if (go_pass2 && is_create) begin
      ref_valid_o <= 1'b1;
      ref_o       <= '{inc: 1'b1, n: count, in_xrcd: cmd_q.qp_type == QP_TYPE_XRC_TGT, pd: cmd_q.pd, send_cq: create_o.send_cq,
                       recv_cq: create_o.recv_cq, has_srq: cmd_q.flags[CMD_FLAG_USE_SRQ], srq: cmd_q.srq};
    end
`ifdef RNIC_CUT_QP_REF
    ref_valid_o <= 1'b0;
`endif

    unique case (state_q)
      ST_INIT: if (s1_valid_q && s1_last_q) state_q <= ST_IDLE;
      ST_IDLE: begin
        k_q    <= '0;
        over_q <= 1'b0;
        void_q <= 1'b0;
        if (accept) begin
          cmd_q     <= cmd_i;
          drain_q   <= 1'b0;
          ok_q      <= 1'b1;
          state_q   <= ST_LOOK;
        end
      end
      ST_LOOK: state_q <= decoded.is_create ? ST_JUDGE : ST_CHECK; // only what creates refers to objects
      ST_JUDGE: state_q <= ST_CHECK;
      ST_CHECK: begin
        state_q <= (is_create && !is_install) ? ST_ALLOC : (by_parts && !use_list) ? ST_PASS1 : is_modify || is_install ? ST_FETCH : is_list ? ST_LIST : ST_PASS1;
      end
      ST_FETCH:
      if (fetch_idle_i) begin
        state_q <= is_install ? ST_GATE : ST_PASS1;
        if (is_install && !fail) begin
          s1_valid_q <= 1'b1;
          s1_last_q  <= 1'b1;
        end
      end
      ST_GATE: if (pass_done) state_q <= ST_ALLOC;
      ST_ALLOC: state_q <= contiguous ? ST_SEARCH : requested ? ST_PASS1 : ST_PASS2;
      ST_SEARCH:
      if (search_done_i) state_q <= ST_PASS1;
      ST_PASS1:
      if (pass_done) begin
        k_q     <= '0;
        state_q <= is_query ? ST_QUERY : single ? ST_SETTLE : ST_PASS2;
      end
      ST_PASS2: if (s1_valid_q && s1_last_q && !hold) state_q <= ST_SETTLE;
      ST_QUERY: if (s1_valid_q && s1_last_q) state_q <= ST_SETTLE;
      ST_LIST:
      if (walk_done_i) begin
        state_q <= ST_SETTLE;
      end
      ST_SETTLE: begin
        unmark_q <= 1'b0;
        if (settled) begin
          state_q <= (drain_q && ok_q) ? ST_DRAIN : ST_CPL;
`ifdef RNIC_CUT_QP_DRAIN
          state_q <= ST_CPL;
`endif
          if (!voided && cpl_q.status == CMD_STATUS_GATE_REFUSED)
            unique case (cpl_q.rule)
              GATE_RULE_WRONG_CUR_STATE: cnt_o[COUNTER_ID_GATE_WRONG_CUR_STATE] <= 1'b1;
              GATE_RULE_ILLEGAL_EDGE:    cnt_o[COUNTER_ID_GATE_ILLEGAL_EDGE] <= 1'b1;
              GATE_RULE_MISSING_ATTRS:   cnt_o[COUNTER_ID_GATE_MISSING_ATTRS] <= 1'b1;
              GATE_RULE_EXCESS_ATTRS:    cnt_o[COUNTER_ID_GATE_EXCESS_ATTRS] <= 1'b1;
              GATE_RULE_BAD_VALUE:       cnt_o[COUNTER_ID_GATE_BAD_VALUE] <= 1'b1;
              GATE_RULE_DRAINING:        cnt_o[COUNTER_ID_GATE_DRAINING] <= 1'b1;
              default: ;
            endcase
        end
      end
      ST_DRAIN: begin
        // The last barrier's answer must be gone before a new one is asked for.
        drain_req_q <= !drain_ack_i;
        if (drain_req_q && drain_ack_i) state_q <= ST_CPL;
      end
      ST_CPL: if (cpl_ready_i) state_q <= ST_IDLE;
      default: ;
    endcase

    if (fail) begin
      void_q   <= by_parts && pass1 && !fetch_idle_i;
      ok_q     <= 1'b0;
      unmark_q <= use_list && pass1;
      state_q  <= ST_SETTLE;
`ifdef RNIC_CUT_QP_ALL_OR_NOTHING
      // Those before the offender are changed all the same.
      if (pass1 && !is_create && s3_valid_q && s3_k_q != '0) begin
        cmd_q.count <= 24'(s3_k_q);
        k_q         <= '0;
        unmark_q    <= 1'b0;
        state_q     <= ST_PASS2;
      end
`endif
    end

    if (rst_i) begin
      state_q     <= ST_INIT;
`ifdef FORMAL_ANY_TABLE
      state_q     <= ST_IDLE;
`endif
      cmd_q.opcode <= '0;
      k_q         <= '0;
      over_q      <= 1'b0;
      s1_valid_q  <= 1'b0;
      s2_valid_q  <= 1'b0;
      s3_valid_q  <= 1'b0;
      drain_req_q <= 1'b0;
      half_q      <= 1'b0;
      asked_q     <= 1'b0;
      unmark_q    <= 1'b0;
      cnt_o       <= '0;
      ref_valid_o <= 1'b0;
    end
  end

  // Registers of their own: an enable for each field, and no way back from a register to itself.
  assign settled = state_q == ST_SETTLE && !unmark_q && mark_ready_i && fetch_idle_i && out_idle_i;
  assign voided  = settled && void_q && fetch_err_i;
  logic qpn_load;
`ifdef RNIC_CUT_QP_ALL_OR_NOTHING
  assign qpn_load = state_q == ST_LOOK || (state_q == ST_SEARCH && search_done_i) || (pass1 && (pass_done || fail));
`else
  assign qpn_load = state_q == ST_LOOK || (state_q == ST_SEARCH && search_done_i) || (pass1 && pass_done);
`endif
  always_ff @(posedge clk_i) begin
    if (qpn_load || s0_issue) qpn_q <= !qpn_load ? qpn_q + 32'd1 : (contiguous && state_q != ST_LOOK) ? 32'(start_i) : cmd_q.handle;
    if (rst_i) qpn_q <= '0;
    if (accept || write) begin
      sq_base_q <= accept ? cmd_i.sq_base : sq_base_q + 64'(cmd_q.sq_pitch);
      rq_base_q <= accept ? cmd_i.rq_base : rq_base_q + 64'(cmd_q.rq_pitch);
    end
    // The first QP that is named, or made; of a list, where to go on.
    if ((s1_valid_q && s1_k_q == '0 && (is_create ? write : pass1)) || walk_done_i)
      cpl_q.handle <= is_list ? 32'(walk_next_i) : is_create ? new_qpn : s1_qpn_q;
    if (settled && ok_q) cpl_q.count <= is_list ? 32'(walk_count_i) : 32'(count);
    if (fail) begin
      cpl_q.status <= fail_status;
      cpl_q.detail <= fail_detail;
      if (state_q == ST_GATE || (pass1 && !rec_void && fail_status != CMD_STATUS_NO_COMMON_GENERATION)) begin
        cpl_q.rule           <= (fail_status == CMD_STATUS_GATE_REFUSED) ? gate_rule_i : GATE_RULE_NONE;
        // INSTALL has no QP yet.
        cpl_q.offender       <= (s3_valid_q && pass1) ? s3_qpn_q : '0;
        cpl_q.offender_index <= 32'(s3_valid_q ? s3_k_q : k_q);
      end
    end
    if (accept || voided || (fail && rec_void)) cpl_q.handle <= '0;
    if (accept || voided) begin
      {cpl_q.count, cpl_q.detail, cpl_q.offender, cpl_q.offender_index} <= '0;
      cpl_q.rule   <= GATE_RULE_NONE;
      cpl_q.status <= accept ? CMD_STATUS_OK : CMD_STATUS_DMA_ERROR;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      if (write && !is_create) a_pass2_alive : assert (own_hot_i.valid);
      if (write && is_install) a_no_peer_yet : assert ((rec_i.mask[AttrW-1:0] & QP_PATH_PEER) == '0);
      if (write && is_create) a_pass2_free : assert (!own_hot_i.valid);
    end
  end

`ifdef FORMAL_QP_BATCH
`include "rnic_qp_batch.svh"
`endif
endmodule
