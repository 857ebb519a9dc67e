// SPDX-License-Identifier: Apache-2.0
// Types that the modules of the requester (rtl/send) share.
package rnic_send_pkg;
  import rnic_spec_pkg::*;
  import rnic_pkg::*;

  typedef logic [11:0] rec_idx_t;   // in-flight record
  typedef logic [5:0]  line_idx_t;  // line of the WQE cache
  typedef logic [35:0] tick_t;      // 1.024 us
  typedef logic [3:0]  inv_num_t;   // barrier of the responder that a LOCAL_INV waits for

  typedef enum logic [2:0] {
    KIND_SEND,
    KIND_WRITE,
    KIND_READ,
    KIND_CMP_SWAP,
    KIND_FETCH_ADD,
    KIND_LOCAL    // no packet: an operation on a memory key, done already; len is the number of its barrier and the opcode of its completion
  } kind_e;
  // A request whose response brings data: its number is limited, a fence waits for it, its response is the acknowledge.
  function automatic logic has_response(kind_e k);
    return k inside {KIND_READ, KIND_CMP_SWAP, KIND_FETCH_ADD};
  endfunction
  function automatic logic is_atomic(kind_e k);
    return k inside {KIND_CMP_SWAP, KIND_FETCH_ADD};
  endfunction

  // In-flight record: a message with PSNs that has not completed.
  typedef struct packed {
    wqe_idx_t    wqe;
    psn_t        first;
    psn_t        last;
    logic [31:0] len;
    kind_e       kind;
    logic        signaled;
  } rec_t;

  // What the next packet of the oldest READ's (or atomic's) responses may be.
  typedef enum logic [1:0] {
    RD_FIRST,   // FIRST or ONLY
    RD_MORE,    // MIDDLE or LAST
    RD_ANY      // asked again: packets of both requests may come
  } rd_phase_e;

  // A section's timer.
  typedef struct packed {
    tick_t       deadline;
    logic        rnr_wait;    // it is the end of an RNR wait
    logic        on;
  } sq_timer_t;

  // Requester section of a QP. Window: una <= next <= top (as distances from una); WQEs: cons <= snd <= fresh.
  typedef struct packed {
    rec_idx_t    head;        // list of records
    rec_idx_t    tail;
    rec_idx_t    rd_rec;      // record of the oldest READ or atomic that is not answered
    epoch_t      epoch;
    logic        live;        // PSNs were taken from the control section
    logic        halted;      // a WQE failed: nothing but flushing until a new life
    wqe_idx_t    cons;        // oldest WQE that has not completed
    wqe_idx_t    fresh;       // first WQE without PSNs: those before have records
    wqe_idx_t    snd_wqe;     // WQE of the next packet
    logic [31:0] snd_off;     // its place in the message
    logic [31:0] msg_len;     // length of that message while snd_off is not 0
    psn_t        next_psn;    // of the next packet
    psn_t        una_psn;     // oldest one not acknowledged
    psn_t        top_psn;     // first one never used
    logic        resync;      // the send pointer goes back (or on) to una_psn
    logic        alone;       // a record covers more than MaxSmallPsn PSNs: it stands alone
    logic [7:0]  count;       // records
    logic [4:0]  rd_cnt;      // READs and atomics sent and not answered
    psn_t        rd_psn;      // PSN of the response that the oldest of them waits for
    rd_phase_e   rd_phase;
    logic        rd_lost;     // its loss was seen and acted upon
    logic [2:0]  retries;     // since the last progress
    logic [2:0]  rnr_tries;
    logic        rem_fail;    // the WQE that holds una_psn fails with rem_status
    logic [7:0]  rem_status;
    logic        loc_fail;    // WQE loc_wqe fails with loc_status when it is the oldest; sending stops before it
    wqe_idx_t    loc_wqe;
    logic [7:0]  loc_status;
    logic [7:0]  loc_vendor;
    sq_timer_t   timer;
  } sq_sec_t;

  // What a unit makes of the visited section: what happened, and the values that only the unit knows. What that changes, the section's
  // owner knows (rnic_send_ctl).
  typedef struct packed {
    logic        moved;       // everything before ack_psn is acknowledged, which is progress
    psn_t        ack_psn;
    logic        retry;       // what was sent from una_psn on is lost: again, if there is a retry left
    logic        lost;        // the loss of the oldest READ's response is being acted upon
    logic        rnr;         // the peer was not ready: again,
    logic        rnr_wait;    // after the time that it named
    logic        rem_fail;
    logic [7:0]  rem_status;
    logic        loc_fail;    // the sink of the READ loc_wqe
    wqe_idx_t    loc_wqe;
    logic [7:0]  loc_status;
    logic [7:0]  loc_vendor;
    logic        taken;       // the response before ack_psn, of the oldest READ or atomic
    logic        answered;    // with that it has all
    logic        rd_next;     // the oldest one is now rd_rec, whose first response has rd_psn
    rec_idx_t    rd_rec;
    psn_t        rd_psn;
  } resp_upd_t;
  typedef struct packed {
    logic        pop;         // the oldest WQE has completed
    logic        fail;        // the same, and it failed: nothing is sent any more
    logic        flush;       // the same, flushed; the queue's beginning goes with it
    logic        clear;       // all records are given back
    rec_idx_t    next;        // pop: the record after it
  } retire_upd_t;
  typedef struct packed {
    logic        seek;        // the send pointer went to una_psn
    logic        sent;        // it went over a packet
    logic        fail;        // the WQE there fails
    wqe_idx_t    snd_wqe;     // seek, sent
    logic [31:0] snd_off;
    logic [31:0] msg_len;
    psn_t        next_psn;
    logic        top;         // sent: the PSN was never used
    logic        timed;       // and something may get lost
    logic        fresh;       // the message has no record yet: it gets rec_new
    logic        is_read;
    logic        alone;
    rec_idx_t    rec_new;
    logic [7:0]  loc_status;  // fail
    logic [7:0]  loc_vendor;
  } pkt_upd_t;

  // More PSNs than this: the message stands alone in the list, so that distances stay below 2^23.
  // (a block that is linted alone may not use it)
  // verilator lint_off UNUSEDPARAM
  localparam int unsigned MaxSmallPsn = 65536;
  // verilator lint_on UNUSEDPARAM

  // The visit of a QP, as its owner shows it to the units that work on it.
  typedef struct packed {
    qp_idx_t  idx;
    qp_ctx_t  ctx;            // hot: live
    wqe_idx_t prod;
    sq_sec_t  sec;
  } visit_t;

  // What a WQE and the section make of the next packet.
  typedef struct packed {
    logic        bad;         // malformed, or nothing that the QP can do
    logic        is_read;     // READ or atomic
    logic        is_atomic;
    logic        is_cmp;      // with a compare operand
    logic        is_local;    // an operation without a packet
    logic        fresh;       // first packet of a message that has no record
    logic        first;
    logic        sent_before; // its PSN was used
    logic        is_small;    // at most MaxSmallPsn PSNs
    logic [31:0] mtu;         // of the path, in bytes
    logic [31:0] left;        // bytes of the message from this packet on
    pay_len_t    n;           // payload
  } plan_t;

  // WQE cache: look-up, and fetch into the line that was looked up.
  typedef struct packed {
    logic     valid;
    logic     resp;           // the lines of the response side
    logic     want;           // when the line is on its way: tell when it is here
    wqe_idx_t wqe;            // of the visited QP
  } look_req_t;
  typedef struct packed {
    logic      hit;
    logic      pend;          // on its way
    logic      room;          // not here, and a fetch can start
    dma_err_e  err;           // of a hit
    line_idx_t line;
  } look_res_t;
  typedef struct packed {
    logic        valid;
    logic        want;        // tell when it is here
  } fetch_req_t;
  typedef struct packed {
    logic      valid;
    line_idx_t line;
    logic [6:0] beat;
  } line_rd_t;

  typedef enum logic [1:0] {
    WALK_SUM,     // add up the lengths
    WALK_CHECK,   // judge the keys of len bytes from off on
    WALK_PIECES,  // the same, and give the pieces
    WALK_INLINE   // give inline data as pieces
  } walk_mode_e;
  typedef struct packed {
    logic        start;
    walk_mode_e  mode;
    line_idx_t   line;
    logic [4:0]  nsge;
    logic [31:0] off;
    logic [31:0] len;
    logic [3:0]  access;
  } walk_req_t;
  typedef struct packed {
    logic        done;        // one cycle; the rest is valid with it
    mr_err_e     err;
    logic [35:0] sum;
  } walk_res_t;

  // Ticks of the transport timer: at least 4.096 us * 2^code.
  function automatic tick_t timeout_ticks(logic [4:0] code);
    return (tick_t'(4) << code) | tick_t'(1);
  endfunction
  function automatic tick_t rnr_ticks(logic [4:0] code);
    // A table: what the code says is only known when it is asked for.
    logic [31:0][19:0] table_v;
    for (int unsigned i = 0; i < 32; i++) table_v[i] = 20'(((rnr_timer_ns(5'(i)) + 32'd1023) >> 10) + 32'd1);
    return tick_t'(table_v[code]);
  endfunction

  // Something to send, or to send again.
  // Functions of a few fields.
  // verilator lint_off UNUSEDSIGNAL
  function automatic logic has_work(sq_sec_t s, wqe_idx_t prod);
    return !s.halted && !s.timer.rnr_wait && !s.rem_fail && (s.snd_wqe != prod || s.snd_off != '0 || s.resync) &&
        !(s.loc_fail && s.snd_wqe == s.loc_wqe && !s.resync);
  endfunction
  // verilator lint_on UNUSEDSIGNAL

  // SGE slots of a WQE of 64 << stride bytes, at most MAX_SGE.
  function automatic logic [4:0] sge_slots(logic [3:0] stride);
    case (stride)
      4'd0: return 5'd2;
      4'd1: return 5'd6;
      4'd2: return 5'd14;
      default: return 5'd16;
    endcase
  endfunction

endpackage
