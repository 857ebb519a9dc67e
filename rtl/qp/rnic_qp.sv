// SPDX-License-Identifier: Apache-2.0
// The QP engine's control half: allocator, table, gate, batches. The only writer of every control section.
// Contract: one command at a time, in order; its completion stands until taken. Hardware errors and "drained" marks are never
// refused; they are applied while no command is under way, and before the next one. A read of a hot word in the cycle of a write
// sees the new word; the cold port answers one cycle after the grant, or in narrow builds (up to 128 bits) two or more, and a section is never
// seen half changed; what of it the hot word has is to be taken from there, in the cycle of the answer. qp_evt follows its
// change by one cycle: whoever reads because of it sees the new section. rd_rsp_ready_o is always high.
module rnic_qp
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned DataW = 64,
    parameter int unsigned QpIdxW = 10,
    parameter int unsigned NumCq = 256,
    parameter int unsigned NumSrq = 64,
    parameter int unsigned NumHot = 4,
    parameter bit [NumHot-1:0] HotLife = '0,    // what which reader needs: rnic_qp_table
    parameter bit [NumHot-1:0] HotServe = '0,
    parameter int unsigned NumCold = 4,
    parameter int unsigned NumErr = 3,
    parameter int unsigned MaxSqStride = 4,
    parameter int unsigned MaxRqStride = 4,
    parameter int unsigned MaxRd = MAX_RD_ATOMIC,
    parameter int unsigned GenW = (QpIdxW < 8) ? 16 : 24 - QpIdxW   // generation bits of a QPN; less for tests alone
) (
    input  logic clk_i,
    input  logic rst_i,
    output logic ready_o,                                            // tables are clear
    // commands (opcode one of the QP commands, reserved bits already checked) and their completions
    input  logic qp_cmd_valid_i, output logic qp_cmd_ready_o, input cmd_qp_t qp_cmd_i,
    output logic qp_cpl_valid_o, input logic qp_cpl_ready_i, output qp_cpl_t qp_cpl_o,
    // DMA: attribute records and QPN lists in, QPN lists and queries out
    output logic rd_req_valid_o, input logic rd_req_ready_i, output dma_rd_req_t rd_req_o,
    input  logic rd_rsp_valid_i, output logic rd_rsp_ready_o, input logic [DataW-1:0] rd_rsp_data_i, input dma_rd_ctl_t rd_rsp_ctl_i,
    output logic wr_valid_o, input logic wr_ready_i, output dma_wr_hdr_t wr_hdr_o, output logic [DataW-1:0] wr_data_o, output logic wr_last_o,
    // what exists
    input  logic [NUM_PD-1:0] pd_valid_i, input logic [NumCq-1:0] cq_valid_i, input port_cfg_t port_cfg_i,
    input  logic [NumSrq-1:0] srq_valid_i, input logic [NUM_XRCD-1:0] xrcd_valid_i,
    output logic ref_valid_o, output qp_ref_t ref_o,
    // barrier through the data path: request is held until ack
    output logic drain_req_o, input logic drain_ack_i,
    // readers of the hot word (answer one cycle later) and of the whole control section (one request a cycle, arbitrated)
    input  qp_idx_t [NumHot-1:0] hot_idx_i, output qp_hot_t [NumHot-1:0] hot_o,
    input  logic [NumCold-1:0] cold_req_valid_i, output logic [NumCold-1:0] cold_req_ready_o, input qp_idx_t [NumCold-1:0] cold_req_idx_i,
    output logic [NumCold-1:0] cold_rsp_valid_o, output qp_ctx_t cold_rsp_o, // valid for one cycle: the reader takes it
    // told to everybody
    output logic qp_evt_valid_o, output qp_evt_t qp_evt_o,
    // asked by the data path (never refused)
    input  logic [NumErr-1:0] qp_err_valid_i, input qp_err_t [NumErr-1:0] qp_err_i,
    input  logic sq_drained_valid_i, input qp_idx_t sq_drained_idx_i, input epoch_t sq_drained_epoch_i,
    // SQ_DRAINED
    output logic eqe_valid_o, input logic eqe_ready_i, output eqe_req_t eqe_o,
    output cnt_t cnt_o
);
  localparam int unsigned AttrW = QP_ATTR_BIT_W;
  // A narrow build has the time to read its RAMs in beats.
  localparam int unsigned ColdBeats = (DataW <= 128) ? 2 : 1;
  localparam int unsigned RecParts = (DataW <= 64) ? 3 : (DataW <= 128) ? 2 : 1;
  localparam int unsigned PartW = (RecParts > 1) ? $clog2(RecParts) : 1;

  initial begin
    if (QpIdxW < 3 || QpIdxW > 16 || GenW < 1 || GenW > 16 || QpIdxW + GenW > 24) $fatal(1, "QpIdxW or GenW out of range: %m");
    if (MaxRd < 1 || MaxRd > MAX_RD_ATOMIC) $fatal(1, "MaxRd must be 1 to MAX_RD_ATOMIC: %m");
    if (DataW != 64 && DataW != 128 && DataW != 256 && DataW != 512) $fatal(1, "DataW must be 64, 128, 256 or 512: %m");
  end

  // ---------------------------------------------------------------- table, and who writes it: a command or an error, never both
  logic own_re, cmd_own_re, err_own_re, own_used, own_notify, own_peer, peer_first;
  logic [QpIdxW-1:0] cmd_own_idx, err_own_idx, widx, cmd_widx, err_widx;
  logic [7:0] own_port;
  qp_uses_t own_uses;
  qp_hot_t own_hot, hot, cmd_hot, err_hot;
  logic cmd_we, err_we, cmd_used, cmd_notify, create_we, new_life;
  logic [7:0] cmd_port;
  qp_create_t create;
  logic [AttrW-1:0] path_we;
  qp_path_t path;
  logic cold_req_valid, cold_req_ready;
  logic [QpIdxW-1:0] own_idx;
  logic walk_start, walk_busy, walk_done, walk_own_re;
  logic [QpIdxW:0] walk_count;
  logic [QpIdxW-1:0] walk_next, walk_idx;
  logic [NumCold:0] cold_ready;
  logic [NumCold:0] cold_rsp_valid;

  assign own_idx = walk_busy ? walk_idx : cmd_own_idx;
  assign own_re = cmd_own_re || err_own_re || walk_own_re;
  assign widx   = err_we ? err_widx : cmd_widx;
  assign hot    = err_we ? err_hot : cmd_hot;
  assign {cold_req_ready, cold_req_ready_o} = cold_ready;
  assign cold_rsp_valid_o = cold_rsp_valid[NumCold-1:0];

  rnic_qp_table #(
      .QpIdxW(QpIdxW),
      .NumCq(NumCq),
      .NumSrq(NumSrq),
      .NumHot(NumHot),
      .HotLife(HotLife),
      .HotServe(HotServe),
      .NumCold(NumCold + 1),
      .ColdBeats(ColdBeats)
  ) u_table (
      .clk_i, .rst_i,
      .we_i(cmd_we || err_we), .peer_first_i(peer_first), .widx_i(widx), .hot_i(hot), .new_life_i(cmd_we && new_life),
      .used_i(err_we ? own_used : cmd_used), .notify_i(err_we ? own_notify : cmd_notify), .port_i(err_we ? own_port : cmd_port),
      .create_we_i(create_we), .create_i(create), .path_we_i(path_we), .path_i(path),
      .own_re_i(own_re), .own_idx_i(err_own_re ? err_own_idx : own_idx),
      .own_hot_o(own_hot), .own_used_o(own_used), .own_notify_o(own_notify), .own_port_o(own_port), .own_peer_o(own_peer), .own_uses_o(own_uses),
      .hot_idx_i, .hot_o,
      .cold_req_valid_i({cold_req_valid, cold_req_valid_i}), .cold_req_ready_o(cold_ready),
      .cold_req_idx_i({qp_idx_t'(cmd_own_idx), cold_req_idx_i}), .cold_rsp_valid_o(cold_rsp_valid), .cold_rsp_o
  );

  always_ff @(posedge clk_i) begin
    qp_evt_valid_o <= !rst_i && ready_o && (cmd_we || err_we);
    qp_evt_o       <= '{idx: qp_idx_t'(widx), epoch: hot.epoch, state: hot.state, new_life: !err_we && new_life,
                        left_srq: !err_we && new_life && !create_we && cmd_hot.has_srq};
  end

  // ---------------------------------------------------------------- hardware errors
  logic idle, quiet;
  rnic_qp_err #(
      .QpIdxW(QpIdxW),
      .NumErr(NumErr)
  ) u_err (
      .clk_i, .rst_i,
      .err_valid_i(qp_err_valid_i), .err_i(qp_err_i),
      .drained_valid_i(sq_drained_valid_i), .drained_idx_i(sq_drained_idx_i), .drained_epoch_i(sq_drained_epoch_i),
      .clear_i(!ready_o && cmd_we), .clear_idx_i(cmd_widx), .run_i(idle), .quiet_o(quiet),
      .own_re_o(err_own_re), .own_idx_o(err_own_idx), .own_hot_i(own_hot), .own_notify_i(own_notify),
      .we_o(err_we), .widx_o(err_widx), .hot_o(err_hot),
      .eqe_valid_o, .eqe_ready_i, .eqe_o
  );

  // ---------------------------------------------------------------- commands
  cmd_qp_t cmd;
  cmd_status_e chk_status;
  logic [31:0] chk_detail;
  logic chk_send_cq, chk_recv_cq;
  rnic_qp_check #(
      .QpIdxW(QpIdxW),
      .GenW(GenW),
      .NumCq(NumCq),
      .NumSrq(NumSrq),
      .MaxSqStride(MaxSqStride),
      .MaxRqStride(MaxRqStride)
  ) u_check (
      .clk_i, .cmd_i(cmd), .pd_valid_i, .cq_valid_i, .srq_valid_i, .xrcd_valid_i,
      .status_o(chk_status), .detail_o(chk_detail), .has_send_cq_o(chk_send_cq), .has_recv_cq_o(chk_recv_cq)
  );

  logic [3:0] gate_type;
  qp_state_e gate_state;
  logic gate_draining, gate_to_init, gate_ok;
  logic [7:0] gate_port;
  gate_rule_e gate_rule;
  logic [31:0] gate_detail;
  qp_attr_t rec;
  rnic_qp_gate #(.MaxRd(MaxRd)) u_gate (
      .clk_i,
      .qp_type_i(gate_type), .state_i(gate_state), .draining_i(gate_draining), .to_init_i(gate_to_init), .port_i(gate_port), .attr_i(rec), .port_cfg_i,
      .ok_o(gate_ok), .rule_o(gate_rule), .detail_o(gate_detail)
  );

  logic [QpIdxW:0] free_cnt;
  logic alloc_ready, list_start, list_valid, list_ready, search_start, search_done, found, put_valid, put_free;
  logic [QpIdxW-1:0] list_idx, start;
  rnic_qp_alloc #(
      .QpIdxW(QpIdxW)
  ) u_alloc (
      .clk_i, .rst_i, .ready_o(alloc_ready), .free_cnt_o(free_cnt),
      .list_start_i(list_start), .list_n_i((QpIdxW + 1)'(cmd.count)), .list_valid_o(list_valid), .list_ready_i(list_ready), .list_idx_o(list_idx),
      .search_start_i(search_start), .search_n_i((QpIdxW + 1)'(cmd.count)), .search_align_i(cmd.align_log2),
      .search_done_o(search_done), .found_o(found), .start_o(start),
      .put_valid_i(put_valid), .put_free_i(put_free), .put_idx_i(cmd_widx)
  );

  logic mark_ready, mark_fill, mark_op, mark_set, mark_bit, mark_walk, mark_valid, mark_take;
  logic [QpIdxW-1:0] mark_idx;
  rnic_qp_bitmap #(
      .IdxW(QpIdxW)
  ) u_marks (
      .clk_i, .rst_i, .fill_i(mark_fill), .ready_o(mark_ready),
      .op_valid_i(mark_op), .op_set_i(mark_set), .op_idx_i(cmd_widx), .bit_o(mark_bit),
      .walk_start_i(mark_walk), .walk_n_i((QpIdxW + 1)'(cmd.count)), .out_valid_o(mark_valid), .out_ready_i(mark_take), .out_idx_o(mark_idx),
      .word_rd_i(1'b0), .word_idx_i('0),
      // verilator lint_off PINCONNECTEMPTY
      .word_o()   // marks are handed out by the walk alone
      // verilator lint_on PINCONNECTEMPTY
  );

  // The buffer of a list that is read, or of what is written.
  localparam int unsigned BufBeats = 2 * 256 * 8 / DataW;
  localparam int unsigned BufLvlW = $clog2(BufBeats + 1);
  logic in_push, in_pop, out_push, out_pop, buf_ready, buf_valid, out_start;
  logic [DataW-1:0] out_data, buf_head;
  logic [BufLvlW-1:0] buf_level;

  logic fetch_start, fetch_records, fetch_abort, fetch_idle, fetch_err, item_valid, item_ready;
  logic [31:0] item;
  logic [512/DataW-1:0] rec_we;
  logic [5:0] rec_wrow, rec_row;
  logic [DataW-1:0] rec_wdata;
  logic rec_re, rec_batch, rec_hold;
  logic [6:0] rec_have;
  logic [PartW-1:0] rec_part;
  rnic_qp_fetch #(
      .DataW(DataW)
  ) u_fetch (
      .clk_i, .rst_i, .start_i(fetch_start), .records_i(fetch_records), .addr_i(fetch_records ? cmd.attr_addr : cmd.list_addr),
      .items_i((fetch_records && !cmd.flags[CMD_FLAG_RECORDS]) ? 17'd1 : 17'(cmd.count)), .abort_i(fetch_abort),
      .idle_o(fetch_idle), .err_o(fetch_err),
      .rec_we_o(rec_we), .rec_row_o(rec_wrow), .rec_have_o(rec_have), .rec_data_o(rec_wdata),
      .buf_push_o(in_push), .buf_ready_i(buf_ready), .buf_valid_i(buf_valid), .buf_pop_o(in_pop), .buf_data_i(buf_head),
      .item_valid_o(item_valid), .item_ready_i(item_ready), .item_o(item),
      .rd_req_valid_o, .rd_req_ready_i, .rd_req_o, .rd_rsp_valid_i, .rd_rsp_ready_o, .rd_rsp_data_i, .rd_rsp_ctl_i
  );
  rnic_qp_record #(
      .DataW(DataW),
      .Parts(RecParts)
  ) u_record (
      .clk_i, .batch_i(rec_batch), .we_i(rec_we), .wrow_i(rec_wrow), .wdata_i(rec_wdata),
      .hold_i(rec_hold), .part_i(rec_part), .read_i(rec_re), .row_i(rec_row), .rec_o(rec)
  );

  rnic_fifo #(
      .Width(DataW),
      .Depth(BufBeats)
  ) u_buf (
      .clk_i, .rst_i(rst_i || out_start || (fetch_start && !fetch_records)),
      .in_valid_i(in_push || out_push), .in_ready_o(buf_ready), .in_data_i(out_push ? out_data : rd_rsp_data_i),
      .out_valid_o(buf_valid), .out_ready_i(in_pop || out_pop), .out_data_o(buf_head), .level_o(buf_level)
  );

  logic out_room, out_idle, out_word, out_beat;
  logic [18:0] out_len;
  logic [31:0] word;
  logic [DataW-1:0] beat;
  logic cmd_out_start, list_out_start, list_out_word;
  logic [18:0] cmd_out_len, list_out_len;
  logic [31:0] cmd_word, list_word;
  assign out_start = cmd_out_start || list_out_start;
  assign out_len   = list_out_start ? list_out_len : cmd_out_len;
  assign word      = list_out_word ? list_word : cmd_word;
  rnic_qp_out #(
      .DataW(DataW)
  ) u_out (
      .clk_i, .rst_i, .start_i(out_start), .addr_i(cmd.opcode == CMD_OPCODE_QUERY_QP ? cmd.attr_addr : cmd.list_addr), .len_i(out_len),
      .word_valid_i(out_word || list_out_word), .word_i(word), .beat_valid_i(out_beat), .beat_i(beat), .room_o(out_room), .idle_o(out_idle),
      .buf_push_o(out_push), .buf_data_o(out_data), .buf_ready_i(buf_ready), .buf_valid_i(buf_valid), .buf_pop_o(out_pop), .buf_data_i(buf_head), .buf_level_i(buf_level),
      .wr_valid_o, .wr_ready_i, .wr_hdr_o, .wr_data_o, .wr_last_o
  );

  // LIST_QP has the own port while the sequencer waits for it.
  rnic_qp_list #(
      .QpIdxW(QpIdxW)
  ) u_list (
      .clk_i, .rst_i, .start_i(walk_start), .cmd_i(cmd), .busy_o(walk_busy), .done_o(walk_done), .count_o(walk_count), .next_o(walk_next),
      .own_re_o(walk_own_re), .own_idx_o(walk_idx), .own_hot_i(own_hot),
      .own_pd_i(own_uses.pd),
      .out_start_o(list_out_start), .out_len_o(list_out_len), .out_room_i(out_room), .out_word_o(list_out_word), .word_o(list_word)
  );

  rnic_qp_batch #(
      .DataW(DataW),
      .QpIdxW(QpIdxW),
      .GenW(GenW),
      .RecParts(RecParts),
      .Split(ColdBeats > 1)
  ) u_batch (
      .clk_i, .rst_i, .ready_o,
      .cmd_valid_i(qp_cmd_valid_i), .cmd_ready_o(qp_cmd_ready_o), .cmd_i(qp_cmd_i),
      .cpl_valid_o(qp_cpl_valid_o), .cpl_ready_i(qp_cpl_ready_i), .cpl_o(qp_cpl_o),
      .cmd_o(cmd), .chk_status_i(chk_status), .chk_detail_i(chk_detail), .chk_send_cq_i(chk_send_cq), .chk_recv_cq_i(chk_recv_cq),
      .idle_o(idle), .quiet_i(quiet),
      .own_re_o(cmd_own_re), .own_idx_o(cmd_own_idx), .own_hot_i(own_hot), .own_used_i(own_used), .own_notify_i(own_notify), .own_port_i(own_port), .own_peer_i(own_peer), .own_uses_i(own_uses),
      .cold_req_valid_o(cold_req_valid), .cold_req_ready_i(cold_req_ready), .cold_rsp_valid_i(cold_rsp_valid[NumCold]), .cold_rsp_i(cold_rsp_o),
      .we_o(cmd_we), .peer_first_o(peer_first), .widx_o(cmd_widx), .hot_o(cmd_hot), .used_o(cmd_used), .notify_o(cmd_notify), .port_o(cmd_port),
      .create_we_o(create_we), .create_o(create), .path_we_o(path_we), .path_o(path), .new_life_o(new_life),
      .gate_type_o(gate_type), .gate_state_o(gate_state), .gate_draining_o(gate_draining), .gate_to_init_o(gate_to_init), .gate_port_o(gate_port),
      .gate_ok_i(gate_ok), .gate_rule_i(gate_rule), .gate_detail_i(gate_detail),
      .alloc_ready_i(alloc_ready), .free_cnt_i(free_cnt), .list_start_o(list_start), .list_valid_i(list_valid), .list_ready_o(list_ready), .list_idx_i(list_idx),
      .search_start_o(search_start), .search_done_i(search_done), .found_i(found), .start_i(start), .put_valid_o(put_valid), .put_free_o(put_free),
      .mark_ready_i(mark_ready), .mark_fill_o(mark_fill), .mark_op_o(mark_op), .mark_set_o(mark_set), .mark_bit_i(mark_bit),
      .mark_walk_o(mark_walk), .mark_valid_i(mark_valid), .mark_take_o(mark_take), .mark_idx_i(mark_idx),
      .fetch_start_o(fetch_start), .fetch_records_o(fetch_records), .fetch_abort_o(fetch_abort), .fetch_idle_i(fetch_idle), .fetch_err_i(fetch_err),
      .item_valid_i(item_valid), .item_ready_o(item_ready), .item_i(item), .rec_have_i(rec_have), .rec_batch_o(rec_batch), .rec_hold_o(rec_hold),
      .rec_re_o(rec_re), .rec_row_o(rec_row), .rec_part_o(rec_part), .rec_i(rec),
      .out_start_o(cmd_out_start), .out_len_o(cmd_out_len), .out_room_i(out_room), .out_idle_i(out_idle),
      .out_word_o(out_word), .word_o(cmd_word), .out_beat_o(out_beat), .beat_o(beat),
      .walk_start_o(walk_start), .walk_done_i(walk_done), .walk_count_i(walk_count), .walk_next_i(walk_next),
      .ref_valid_o, .ref_o, .drain_req_o, .drain_ack_i, .cnt_o
  );

`ifdef FORMAL_QP_ENGINE
`include "rnic_qp.svh"
`endif
endmodule
