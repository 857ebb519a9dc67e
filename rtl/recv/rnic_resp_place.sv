// SPDX-License-Identifier: Apache-2.0
// Places the payload of one accepted request: finds where it goes (receive WQE elements for a SEND, R_Key and address for a
// WRITE), judges all of it, and only then writes the first byte. Also checks the key of a READ or an atomic, and throws payload away.
// A WQE of a shared receive queue is read for a WRITE with immediate, too: its link is the queue's next head.
// Contract: start_i with its fields, held until done_o (one cycle). status_o, vendor_err_o, next_o, unread_o and the new position are right
// then. On any status but OK no byte of the packet is written. The payload itself may still be on its way then: pay_busy_o is high
// until its last beat has been accepted by the write client, or thrown away (pay_end_o in that cycle). One payload moves at a
// time; the next packet is judged meanwhile and waits with its done_o until its own one moves.
module rnic_resp_place
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned DataW = 64,
    parameter int unsigned QpIdxW = 10,
    parameter int unsigned MaxRqStride = 4,
    parameter int unsigned RqLines = 64
) (
    input  logic         clk_i,
    input  logic         rst_i,
    input  logic         start_i,
    input  logic         discard_i,         // only throw the payload away
    input  logic         is_send_i,         // else one key and address
    input  logic         take_i,            // the WQE is to be taken from a shared receive queue
    input  pay_len_t     payload_len_i,
    input  logic [15:0]  pd_i,              // for R_Keys
    input  qpn_t         qpn_i,
    input  logic [15:0]  wqe_pd_i,          // for the keys of the WQE
    // SEND: the WQE and the place in it
    input  qp_idx_t      qp_idx_i,
    input  epoch_t       epoch_i,
    input  wqe_idx_t     wqe_idx_i,
    input  logic [63:0]  rq_base_i,
    input  logic [3:0]   log_rq_i,
    input  logic [3:0]   log_stride_i,
    input  logic         inval_i,
    // where it begins: for a SEND element and byte in it, else the address
    input  logic [63:0]  place_i,
    // WRITE, READ, atomic: what to look up; not looked up when key_len is 0
    input  logic [31:0]  rkey_i,
    input  logic [31:0]  key_len_i,
    input  logic [3:0]   key_access_i,
    output logic         done_o,
    output wc_status_e   status_o,          // SUCCESS; LOC_LEN_ERR, LOC_QP_OP_ERR, LOC_PROT_ERR of a SEND; LOC_ACCESS_ERR of a key
    output logic [7:0]   vendor_err_o,
    output wqe_idx_t     next_o,            // of the WQE: slot of the one after it
    output logic         unread_o,          // the WQE could not be read: nothing is known of it
    output logic [63:0]  place_o,           // where the next packet begins
    output logic [63:0]  key_addr_o,        // bus address that the key led to
    output logic         pay_busy_o,
    output logic         pay_end_o,
    // payload
    input  logic         pay_valid_i,
    output logic         pay_ready_o,
    input  logic [DataW-1:0] pay_data_i,
    input  logic         pay_last_i,
    // services
    output logic         mr_req_valid_o,
    input  logic         mr_req_ready_i,
    output mr_req_t      mr_req_o,
    input  logic         mr_rsp_valid_i,
    input  mr_rsp_t      mr_rsp_i,
    output logic         rd_req_valid_o,
    input  logic         rd_req_ready_i,
    output dma_rd_req_t  rd_req_o,
    input  logic         rd_rsp_valid_i,
    output logic         rd_rsp_ready_o,
    input  logic [DataW-1:0] rd_rsp_data_i,
    input  dma_rd_ctl_t  rd_rsp_ctl_i,
    output logic         wr_valid_o,
    input  logic         wr_ready_i,
    output dma_wr_hdr_t  wr_hdr_o,
    output logic [DataW-1:0] wr_data_o,
    output logic         wr_last_o
);
  typedef enum logic [3:0] {
    StIdle,   // waits for a packet
    StWqe,    // waits for the receive WQE
    StSge,    // reads an element
    StWalk,   // cuts off what fits into it
    StKey,    // asks for the key
    StKeyAns, // waits for the answer
    StGo,     // judged: pieces go to the scatter unit
    StDrop,   // hands the rest of the payload to be thrown away
    StDone    // answers
  } state_e;
  state_e state_q;
  // Where an element is not at hand as a whole, its length and key are read again for its next piece.
  localparam state_e SendNext = (DataW < 128) ? StSge : StWalk;
  typedef struct packed {
    logic [63:0] addr;
    pay_len_t    len;
    logic        last;
  } piece_t;

  // Where the next byte goes: of a SEND the element and the byte in it, else its address. An offset never runs over its 32 bits.
  typedef struct packed {
    logic [26:0] none;
    logic [4:0]  sge;
    logic [31:0] off;
  } place_t;
  pay_len_t left_q;               // bytes without a place yet
  // verilator lint_off UNUSEDSIGNAL
  place_t at_q;                   // (an address is more)
  // verilator lint_on UNUSEDSIGNAL
  wc_status_e status_q;
  logic [7:0] vendor_q;

  // ---------------------------------------------------------------- receive WQE
  logic fetch_rsp, fetch_err, unread_q;
  dma_err_e fetch_dma_err;
  logic [4:0] num_sge;
  logic [63:0] sge_addr;
  logic [31:0] sge_length, sge_lkey;
  rnic_rq_fetch #(.DataW(DataW), .QpIdxW(QpIdxW), .MaxRqStride(MaxRqStride), .LogLines($clog2(RqLines))) u_fetch (
      .clk_i, .rst_i, .req_valid_i(state_q == StWqe), .qp_idx_i, .epoch_i, .wqe_idx_i, .fresh_i(take_i), .rq_base_i, .log_rq_i, .log_stride_i,
      .rsp_valid_o(fetch_rsp), .err_o(fetch_err), .dma_err_o(fetch_dma_err), .num_sge_o(num_sge), .next_o,
      .sge_idx_i(at_q.sge[3:0]), .sge_len_i(state_q == StSge), .sge_addr_o(sge_addr), .sge_length_o(sge_length), .sge_lkey_o(sge_lkey), .inval_i,
      .rd_req_valid_o, .rd_req_ready_i, .rd_req_o, .rd_rsp_valid_i, .rd_rsp_ready_o, .rd_rsp_data_i, .rd_rsp_ctl_i
  );

  // ---------------------------------------------------------------- the next piece
  logic [31:0] room, key_q;
  pay_len_t take, want, got;
  logic [31:0] key_len_q;         // what the next look-up judges; of a WRITE's first packet and a READ the whole message
  assign room = sge_length - at_q.off;
  assign take = (room < 32'(left_q)) ? pay_len_t'(room) : left_q;
  assign mr_req_o = '{
      key: key_q, va: is_send_i ? sge_addr + 64'(at_q.off) : at_q, len: key_len_q, pd: is_send_i ? wqe_pd_i : pd_i, qpn: is_send_i ? '0 : qpn_i,
      access: is_send_i ? 4'(1 << ACCESS_LOCAL_WRITE) : key_access_i, judge: !is_send_i && key_access_i[ACCESS_REMOTE_READ]
  };
  assign mr_req_valid_o = state_q == StKey;

  logic key_ok;
`ifdef RNIC_CUT_RECV_LKEY
  assign key_ok = mr_rsp_i.err == MR_ERR_OK || is_send_i;
`elsif RNIC_CUT_RECV_RKEY
  assign key_ok = mr_rsp_i.err == MR_ERR_OK || !is_send_i;
`elsif RNIC_CUT_RECV_REKEY
  assign key_ok = mr_rsp_i.err == MR_ERR_OK || (!is_send_i && key_len_i == 32'(payload_len_i));
`else
  // An atomic does not cross from one page to the next.
  assign key_ok = mr_rsp_i.err == MR_ERR_OK && (is_send_i || !key_access_i[ACCESS_REMOTE_ATOMIC] || mr_rsp_i.room >= pay_len_t'(8));
`endif

  // ---------------------------------------------------------------- judged pieces wait here for the verdict on all
  logic piece_push, piece_ready, piece_valid, cmd_ready, discard_ready, scatter_done, go;
  piece_t piece_in, piece;
  assign piece_push = state_q == StKeyAns && mr_rsp_valid_i && key_ok && left_q != '0;
  // A piece ends where the page does.
  assign want       = is_send_i ? pay_len_t'(key_len_q) : left_q;
`ifdef RNIC_CUT_RECV_PAGE
  assign got        = want;
`else
  assign got        = (mr_rsp_i.room < want) ? mr_rsp_i.room : want;
`endif
  assign piece_in   = '{addr: mr_rsp_i.addr, len: got, last: left_q == got};
`ifdef RNIC_CUT_RECV_JUDGE_FIRST
  assign go         = state_q != StDrop;
`else
  assign go         = state_q == StGo;
`endif
  /* verilator lint_off PINCONNECTEMPTY */
  rnic_fifo #(.Width($bits(piece_t)), .Depth(2 * MAX_SGE)) u_pieces (
      .clk_i, .rst_i(rst_i || state_q == StDone), .in_valid_i(piece_push), .in_ready_o(piece_ready), .in_data_i(piece_in),
      .out_valid_o(piece_valid), .out_ready_i(go && cmd_ready), .out_data_o(piece), .level_o()
  );
  /* verilator lint_on PINCONNECTEMPTY */
  rnic_scatter #(.DataW(DataW)) u_scatter (
      .clk_i, .rst_i,
      .cmd_valid_i(go && piece_valid), .cmd_ready_o(cmd_ready), .cmd_addr_i(piece.addr), .cmd_len_i(piece.len), .cmd_last_i(piece.last),
      .discard_valid_i(state_q == StDrop), .discard_ready_o(discard_ready), .done_o(scatter_done),
      .pay_valid_i, .pay_ready_o, .pay_data_i, .pay_last_i,
      .wr_valid_o, .wr_ready_i, .wr_hdr_o, .wr_data_o, .wr_last_o
  );

  // The payload on its way: of the packet that is judged, or of the one before it.
  logic moves, pay_busy_q;
  assign moves      = (state_q == StGo && piece_valid && cmd_ready && piece.last) || (state_q == StDrop && discard_ready);
  assign pay_busy_o = pay_busy_q;
  assign pay_end_o  = scatter_done;
  always_ff @(posedge clk_i) begin
    if (rst_i) pay_busy_q <= 1'b0;
    else if (moves) pay_busy_q <= 1'b1;
    else if (scatter_done) pay_busy_q <= 1'b0;
  end

  assign done_o       = state_q == StDone;
  assign status_o     = status_q;
  assign vendor_err_o = vendor_q;
  assign unread_o     = unread_q;
  assign place_o      = at_q;

  logic no_payload;
  state_e drop_state, key_state;
  assign key_state  = (key_len_i == '0) ? StDone : StKey;
  assign no_payload = payload_len_i == '0;
`ifdef RNIC_CUT_RECV_DISCARD
  assign drop_state = StDone;
`else
  assign drop_state = no_payload ? StDone : StDrop;
`endif

  // Where it stands, and what is looked up next.
  logic begins, walks, skips, found;
  pay_len_t left;
  assign begins = state_q == StIdle;
  assign walks  = state_q == StWalk;
  assign skips  = walks && room == '0;
  assign found  = state_q == StKeyAns && mr_rsp_valid_i;
  assign left   = left_q - got;
  always_ff @(posedge clk_i) begin
    if (begins || skips || found) at_q <= begins ? place_i : skips ? {at_q.none, at_q.sge + 5'd1, 32'd0} : at_q + 64'(got);
    if (begins || found) left_q <= begins ? payload_len_i : left;
    if (begins || walks) key_q <= begins ? rkey_i : sge_lkey;
    if (begins || walks || found) key_len_q <= begins ? key_len_i : 32'(walks ? take : left);
    if (found) key_addr_o <= mr_rsp_i.addr;
  end

  always_ff @(posedge clk_i) begin
    case (state_q)
      StIdle: begin
        status_q <= WC_STATUS_SUCCESS;
        vendor_q <= VENDOR_ERR_NONE;
        unread_q <= 1'b0;
        if (start_i) begin
          if (discard_i) state_q <= drop_state;
          else if (is_send_i || take_i) state_q <= StWqe;
          else state_q <= key_state;
        end
      end
      StWqe:
        if (fetch_rsp) begin
          state_q <= !is_send_i ? key_state : no_payload ? StDone : StSge;
          if (fetch_err) begin
            unread_q <= fetch_dma_err != DMA_ERR_OK;
            status_q <= WC_STATUS_LOC_QP_OP_ERR;
            vendor_q <= 8'(fetch_dma_err);
            state_q  <= drop_state;
          end
        end
      StSge: state_q <= StWalk;
      StWalk: begin
        if (at_q.sge >= num_sge) begin
`ifndef RNIC_CUT_RECV_TOO_LONG
          status_q <= WC_STATUS_LOC_LEN_ERR;
`endif
          state_q  <= StDrop;
        end else if (room == '0) begin
          state_q <= StSge;
        end else begin
          state_q <= StKey;
        end
      end
      StKey: if (mr_req_ready_i) state_q <= StKeyAns;
      StKeyAns:
        if (mr_rsp_valid_i) begin
          if (!key_ok) begin
            status_q <= is_send_i ? WC_STATUS_LOC_PROT_ERR : WC_STATUS_LOC_ACCESS_ERR;
            vendor_q <= 8'h10 | 8'(mr_rsp_i.err);
            state_q  <= drop_state;
            // The page list is ours: the peer did nothing wrong.
            if (!is_send_i && mr_rsp_i.err == MR_ERR_LIST) begin
              status_q <= WC_STATUS_LOC_QP_OP_ERR;
              unread_q <= 1'b1;
            end
          end else if (no_payload) begin
            state_q <= StDone;
          end else begin
            state_q   <= (left_q == got) ? StGo : is_send_i ? SendNext : StKey;
          end
        end
      StGo:   if (moves) state_q <= StDone;
      StDrop: if (moves) state_q <= StDone;
      default: state_q <= StIdle;
    endcase
    if (rst_i) state_q <= StIdle;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      if (state_q != StIdle) a_start_held : assert (start_i);
      if (piece_push) a_room_for_piece : assert (piece_ready);
      if (wr_valid_o) a_judged_before_written : assert (state_q == StGo || pay_busy_q);
      if (moves) a_one_payload_moves : assert (!no_payload && (!pay_busy_q || scatter_done));
    end
  end
endmodule
