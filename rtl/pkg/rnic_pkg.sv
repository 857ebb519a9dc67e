// SPDX-License-Identifier: Apache-2.0
// Internal types of the core: what blocks hand to each other. Layouts that the host or the wire sees
// come from rnic_spec_pkg (generated); nothing of that kind is typed here again.
// Index fields are as wide as the largest build needs; a block uses the low bits its parameters ask for.
package rnic_pkg;
  import rnic_spec_pkg::*;

  typedef logic [15:0] qp_idx_t;   // index into the QP table
  typedef logic [15:0] epoch_t;    // life epoch of a QP (create and ->RESET advance it)
  typedef logic [15:0] gen_t;      // generation: the QPN bits above the index
  typedef logic [23:0] qpn_t;
  typedef logic [23:0] psn_t;
  typedef logic [15:0] wqe_idx_t;  // post number modulo 65536
  typedef logic [12:0] pay_len_t;  // payload bytes of one packet, 0 to 4096

  // ---------------------------------------------------------------- QP context, control section
  // Writer: the gate (rnic_qp_ctl), and nobody else.

  // Hot word: at most 72 bits, replicated per reader.
  typedef struct packed {
    logic      valid;
    qp_state_e state;
    logic [3:0] qp_type;           // qp_type_e
    logic      sq_draining;
    logic      sq_sig_all;
    logic      has_srq;
    logic [2:0] access;            // REMOTE_ATOMIC, REMOTE_READ, REMOTE_WRITE
    logic [2:0] mtu;               // mtu_e
    logic [7:0] uar;
    logic [3:0] log_sq;
    logic [3:0] log_rq;
    gen_t      gen;
    epoch_t    epoch;
  } qp_hot_t;

  // Cold word, set by create.
  typedef struct packed {
    logic        fast_reg;         // REG_MR may be posted
    logic [15:0] pd;
    logic [15:0] send_cq;
    logic [15:0] recv_cq;
    logic [15:0] srq;
    logic [3:0]  log_sq_stride;    // send WQE: 64 << n bytes
    logic [3:0]  log_rq_stride;    // receive WQE: 32 << n bytes
    logic [63:0] sq_base;
    logic [63:0] rq_base;
  } qp_create_t;

  // Cold word, set by transitions.
  typedef struct packed {
    logic [7:0]   port;
    logic [15:0]  pkey_index;
    psn_t         rq_psn;          // initial values: requester and responder keep the running ones
    psn_t         sq_psn;
    qpn_t         dest_qpn;
    logic [31:0]  qkey;
    logic [4:0]   timeout;
    logic [2:0]   retry_cnt;
    logic [2:0]   rnr_retry;
    logic [4:0]   min_rnr_timer;
    logic [7:0]   max_rd_atomic;
    logic [7:0]   max_dest_rd_atomic;
    logic [1:0]   path_mig_state;
    logic         en_sqd_async_notify;
    logic [127:0] dgid;            // byte 0 of the GID in bits 7:0 (memory order)
    logic [47:0]  dmac;            // first byte on the wire in bits 7:0
    logic [15:0]  vlan;
    logic [7:0]   sgid_index;
    logic [7:0]   hop_limit;
    logic [7:0]   traffic_class;
    logic [19:0]  flow_label;
  } qp_path_t;

  typedef struct packed {
    qp_hot_t    hot;
    qp_create_t create;
    qp_path_t   path;
  } qp_ctx_t;

  // Attributes of the half of the path that RTR sets; the others stand with what CREATE sets (rnic_qp_table).
  localparam logic [QP_ATTR_BIT_W-1:0] QP_PATH_PEER =
      QP_ATTR_BIT_W'(1) << QP_ATTR_BIT_AV | QP_ATTR_BIT_W'(1) << QP_ATTR_BIT_DEST_QPN | QP_ATTR_BIT_W'(1) << QP_ATTR_BIT_RQ_PSN
      | QP_ATTR_BIT_W'(1) << QP_ATTR_BIT_MIN_RNR_TIMER | QP_ATTR_BIT_W'(1) << QP_ATTR_BIT_MAX_DEST_RD_ATOMIC;
  localparam logic [QP_ATTR_BIT_W-1:0] QP_PATH_RING =
      QP_ATTR_BIT_W'(1) << QP_ATTR_BIT_QKEY | QP_ATTR_BIT_W'(1) << QP_ATTR_BIT_RATE_LIMIT | QP_ATTR_BIT_W'(1) << QP_ATTR_BIT_SQ_PSN
      | QP_ATTR_BIT_W'(1) << QP_ATTR_BIT_PKEY_INDEX | QP_ATTR_BIT_W'(1) << QP_ATTR_BIT_TIMEOUT | QP_ATTR_BIT_W'(1) << QP_ATTR_BIT_RETRY_CNT
      | QP_ATTR_BIT_W'(1) << QP_ATTR_BIT_RNR_RETRY | QP_ATTR_BIT_W'(1) << QP_ATTR_BIT_MAX_QP_RD_ATOMIC
      | QP_ATTR_BIT_W'(1) << QP_ATTR_BIT_PATH_MIG_STATE;
  // Of these, what a request within a life names of both is written in two steps where the halves share a RAM.
  function automatic logic qp_path_split(logic [QP_ATTR_BIT_W-1:0] named);
    return (named & QP_PATH_PEER) != '0 && (named & QP_PATH_RING) != '0;
  endfunction

  // Told by the gate in the cycle in which a control section changes; 1 per cycle, never refused.
  typedef struct packed {
    logic      left_srq;           // ->RESET or destroy of a QP with a shared receive queue
    qp_idx_t   idx;
    epoch_t    epoch;              // the new one
    qp_state_e state;              // the new one
    logic      new_life;           // epoch advanced: create, ->RESET, destroy
  } qp_evt_t;

  // Asked of the gate by a data path that found a fatal condition. Never refused (a bit per QP).
  typedef struct packed {
    qp_idx_t idx;
    epoch_t  epoch;                // of the context that failed; the gate ignores an old one
    logic    to_sqe;               // UC/UD send error: SQE instead of ERR
  } qp_err_t;

  // ---------------------------------------------------------------- port configuration (broadcast)
  typedef logic [127:0] gid_t;             // byte 0 of the GID in bits 7:0 (memory order)
  typedef logic [$clog2(NUM_GID)-1:0] gid_idx_t;
  typedef struct packed {
    logic     valid;
    gid_idx_t idx;
    gid_t     gid;
  } gid_wr_t;
  typedef struct packed {
    logic [47:0]               mac;        // first byte on the wire in bits 7:0
    logic [2:0]                mtu;
    logic                      up;
    logic [NUM_PKEY-1:0][15:0] pkey;
    logic [NUM_GID-1:0]        gid_v4;     // entry holds an IPv4-mapped GID: IPv4 on the wire
    logic [NUM_GID-1:0]        gid_v6;     // entry holds another GID: IPv6; neither: it is empty
    gid_t [NUM_GID-1:0]        gid;
    gid_wr_t                   gid_wr;     // the write that shows in the table in the next cycle, for copies of it
  } port_cfg_t;

  // ---------------------------------------------------------------- DMA service
  // Read: request {addr, len}; the data comes back as a packed byte stream (first byte of addr in lane 0
  // of the first beat, every beat full but the last), in the order of the client's requests. The client
  // has room for all of it before it asks: rsp_ready stays high but for bounded pauses.
  typedef struct packed {
    logic [63:0] addr;
    logic [15:0] len;              // bytes, 1 to 4096 (any alignment, may cross 4 KiB)
  } dma_rd_req_t;
  typedef struct packed {
    logic      last;               // last beat of the request
    dma_err_e  err;                // on last: how it ended; with an error the data is void but complete in count
  } dma_rd_ctl_t;                  // beside rsp_data
  // Write: a packed byte stream with the header held beside every beat; one message stays whole and in
  // order in the posted stream. "Accepted" means: last beat taken. What is accepted earlier is earlier
  // on the link, and earlier than any read accepted later.
  typedef struct packed {
    logic [63:0] addr;
    logic [15:0] len;              // bytes, 1 to 4096
  } dma_wr_hdr_t;

  // ---------------------------------------------------------------- memory keys
  typedef struct packed {
    logic [31:0] key;
    logic [63:0] va;
    logic [31:0] len;              // bytes, 1 or more (a zero length is not asked)
    logic [15:0] pd;
    qpn_t        qpn;              // of a remote access: a window answers to the QP that it is bound to; 0: local
    logic [3:0]  access;           // Access bits 3:0 that the region must have; 0: local read
    logic        judge;            // only judged: the address does not matter
  } mr_req_t;
  typedef struct packed {
    mr_err_e     err;
    pay_len_t    room;             // bytes from there on that follow each other in host memory, 1 to 4096; the asker goes on behind them
    logic [63:0] addr;             // bus address of va, when err is OK
  } mr_rsp_t;
  // Operation on a key by a work request (LOCAL_INV, REG_MR, BIND_MW) or a command.
  typedef enum logic [2:0] {
    MR_OP_INV,
    MR_OP_REG,
    MR_OP_BIND,
    MR_OP_REREG,                   // command: what change names
    MR_OP_MAKE,                    // command: a new entry
    MR_OP_DROP,                    // command: no entry any more; a window is unbound, whatever its QP and PD
    MR_OP_LOOK                     // command: changes nothing
  } mr_op_e;
  typedef struct packed {
    mr_op_e      op;
    logic [31:0] key;              // REG, BIND: with the new variable part
    logic [15:0] pd;               // of the QP; REREG: the new one
    qpn_t        qpn;
    logic [2:0]  change;           // MrChange
    logic [5:0]  access;           // Access
    logic [63:0] va;
    logic [48:0] length;
    logic [63:0] host_addr;
    logic [4:0]  log_page;
    logic [29:0] page_offset;
    logic [31:0] lkey;             // BIND: the region
  } mr_op_t;
  // First word of an entry of the key table (contract: rnic_mr).
  typedef struct packed {
    logic        valid;
    logic        live;             // something is registered under the key
    mr_kind_e    kind;
    logic [7:0]  key;
    logic [15:0] pd;
    logic [4:0]  access;
    qpn_t        qpn;              // a window's; of a region the number of windows bound to it
    logic [4:0]  log_page;         // 0: no page list
  } mr_id_t;
  // Invalidation of a key by SEND_INV.
  typedef struct packed {
    logic [31:0] key;
    logic [15:0] pd;               // of the QP
    qpn_t        qpn;              // the QP: a window is invalidated by the QP that it is bound to
  } mr_inv_t;

  // ---------------------------------------------------------------- completions and events
  typedef struct packed {
    logic [15:0] cqn;
    qp_idx_t     qp_idx;           // for the error path of an overrun
    epoch_t      epoch;
    logic        solicited;        // SE of a receive, or any failure
    qpn_t        qpn;
    logic [7:0]  opcode;           // wc_opcode_e
    wqe_idx_t    wqe_index;
    logic [7:0]  status;           // wc_status_e
    logic        with_imm;
    logic        with_inv;
    logic        grh;
    logic [31:0] byte_len;
    logic [31:0] imm;              // as in cqe_t
    qpn_t        src_qpn;
    logic [7:0]  vendor_err;
  } cqe_req_t;

  typedef enum logic [1:0] {
    CQ_OP_CREATE,
    CQ_OP_MODIFY,                  // event moderation
    CQ_OP_RESIZE
  } cq_op_e;

  typedef struct packed {
    logic [7:0]  eqn;              // event queue
    logic [7:0]  event_type;       // event_type_e
    logic [31:0] number;           // QPN, CQ, SRQ or port
  } eqe_req_t;

  // ---------------------------------------------------------------- wire side
  // What a transmit source hands to the builder; the payload (payload_len bytes) is on chip by then.
  // Addresses, P_Key and destination come from the context of qp_idx.
  typedef struct packed {
    qp_idx_t     qp_idx;
    logic [7:0]  opcode;
    logic        se;
    logic        ack_req;
    psn_t        psn;
    pay_len_t    payload_len;
    logic [63:0] va;               // RETH, AtomicETH
    logic [31:0] rkey;             // RETH, AtomicETH; IETH
    logic [31:0] dma_len;          // RETH
    logic [7:0]  syndrome;         // AETH
    logic [23:0] msn;              // AETH
    logic [31:0] imm;              // ImmDt, first byte on the wire in bits 7:0 (as in sq_wqe_t)
    logic [63:0] swap_add;         // AtomicETH; AtomicAckETH
    logic [63:0] compare;          // AtomicETH
  } tx_job_t;

  // The same with its extended headers as they stand in the packet, the first byte in the highest bits (rnic_tx_jobs).
  typedef struct packed {
    qp_idx_t     qp_idx;
    logic [7:0]  opcode;
    logic        se;
    logic        ack_req;
    psn_t        psn;
    pay_len_t    payload_len;
    logic [8*ATOMIC_ETH_BYTES-1:0] ext;
  } tx_head_t;

  // One piece of a packet's payload to be gathered by rnic_tx_payload.
  typedef struct packed {
    logic [63:0] addr;             // bus address (not used by an inline piece)
    pay_len_t    len;              // bytes, 1 or more; an inline piece: at most DataW/8
    logic        is_inline;        // the bytes stand beside the piece, from lane 0 up
  } tx_piece_t;

  // A job whose payload could not be read: it was not sent.
  typedef struct packed {
    qp_idx_t  qp_idx;
    psn_t     psn;
    dma_err_e err;
  } tx_err_t;

  // ---------------------------------------------------------------- commands for the QP control block
  typedef struct packed {
    cmd_status_e status;
    gate_rule_e  rule;
    logic [31:0] handle;           // first QPN
    logic [31:0] count;
    logic [31:0] offender;
    logic [31:0] detail;
    logic [31:0] offender_index;
  } qp_cpl_t;

  // What a QP refers to, beside the hot word for the owner of the table: a copy of these fields of the create word, so that
  // destroying and listing need no turn at the port of the whole sections.
  typedef struct packed {
    logic [15:0] pd;
    logic [15:0] send_cq;
    logic [15:0] recv_cq;
    logic [15:0] srq;
  } qp_uses_t;

  // Reference counts: n QPs begin (inc) or cease to use these objects. 1 per cycle, never refused.
  typedef struct packed {
    logic        in_xrcd;          // pd is an XRC domain
    logic        has_srq;
    logic [15:0] srq;
    logic        inc;
    logic [16:0] n;
    logic [15:0] pd;
    logic [15:0] send_cq;
    logic [15:0] recv_cq;
  } qp_ref_t;

  // Doorbell of a completion queue, from page uar.
  typedef struct packed {
    logic [7:0] uar;
    db_cq_t     db;
  } cq_db_t;

  // Doorbell of a shared receive queue, from page uar.
  typedef struct packed {
    logic [7:0] uar;
    db_srq_t    db;
  } srq_db_t;

  // Parameters of a shared receive queue, and what the responder takes next from it.
  typedef struct packed {
    logic [15:0] pd;
    logic [7:0]  uar;
    logic [3:0]  log_size;
    logic [3:0]  log_stride;       // receive WQE: 32 << n bytes
    logic [63:0] base;
  } srq_cfg_t;
  typedef struct packed {
    srq_cfg_t    cfg;
    logic        avail;            // a WQE waits
    wqe_idx_t    head;             // slot of the oldest
  } srq_head_t;

  // verilator lint_on UNUSEDPARAM

  // Running index of a queue, with the life it belongs to.
  typedef struct packed {
    epoch_t   epoch;
    wqe_idx_t val;
  } ring_pos_t;
  typedef struct packed {
    qp_idx_t   idx;
    ring_pos_t pos;
  } ring_pos_wr_t;

  // A received RoCE packet, headers checked and taken apart; the payload stands beside it.
  typedef struct packed {
    logic [7:0]  opcode;
    logic        se;
    logic        ack_req;
    logic [1:0]  pad;
    logic [15:0] pkey;
    qpn_t        dest_qpn;
    psn_t        psn;
    logic [1:0]  ecn;
    gid_t        sgid;             // source address; of IPv4 as a mapped GID
    logic [NUM_GID-1:0] gid_hit;   // entries of the GID table that hold the destination address
    pay_len_t    payload_len;      // bytes after extended headers, without pad and ICRC
    logic [63:0] va;               // RETH, AtomicETH
    logic [31:0] rkey;             // RETH, AtomicETH; IETH
    logic [31:0] dma_len;          // RETH
    logic [63:0] swap_add;         // AtomicETH; AtomicAckETH
    logic [63:0] compare;          // AtomicETH
    logic [7:0]  syndrome;         // AETH
    logic [23:0] msn;              // AETH
    logic [31:0] imm;              // ImmDt, first byte on the wire in bits 7:0
    logic [31:0] qkey;             // DETH
    qpn_t        src_qpn;          // DETH
  } rx_desc_t;

  // The same before the extended headers are told apart: they stand as they came, the first byte in the highest bits.
  typedef struct packed {
    logic [7:0]  opcode;
    logic        se;
    logic        ack_req;
    logic [1:0]  pad;
    logic [15:0] pkey;
    qpn_t        dest_qpn;
    psn_t        psn;
    logic [1:0]  ecn;
    gid_t        sgid;
    logic [NUM_GID-1:0] gid_hit;
    pay_len_t    payload_len;
    logic [8*ATOMIC_ETH_BYTES-1:0] ext;
  } rx_raw_t;

  localparam int unsigned NUM_CNT = 68;  // counters (CounterId); a block pulses the bit of what happened
  typedef logic [NUM_CNT-1:0] cnt_t;

  // Registers of the CAPS block, the first in bits 31:0.
  localparam int unsigned NUM_CAPS = (32'(REG_CAPS_LOCAL_MEM_LOG_SIZE) - 32'(REG_CAPS_LOG_QP)) / 4 + 1;
  typedef logic [NUM_CAPS-1:0][31:0] caps_t;

  // The registers of the MAC block in their order, from PHY_STATUS on.
  localparam int unsigned NUM_MAC_REGS = (32'(REG_MAC_TX_LONG) - 32'(REG_MAC_PHY_STATUS)) / 4 + 1;
  typedef logic [NUM_MAC_REGS-1:0][31:0] mac_regs_t;

  // Event moderation: a period in microseconds, and a clock that tells what is at most one period ahead from what is past.
  localparam int unsigned CQ_PERIOD_W = $clog2(MAX_CQ_PERIOD + 1);
  typedef logic [CQ_PERIOD_W-1:0] cq_period_t;
  typedef logic [CQ_PERIOD_W:0] cq_time_t;

  // ---------------------------------------------------------------- helpers
  // A GID is an IPv4 address: ten bytes of zero, two of ones, the address.
  function automatic logic gid_is_v4(gid_t gid);
    return (gid & {32'd0, {96{1'b1}}}) == {32'd0, 16'hffff, 80'd0};
  endfunction
  // The other order of the bytes: on the wire the first one is in the highest bits.
  function automatic gid_t gid_swap(gid_t gid);
    gid_t x;
    for (int unsigned i = 0; i < 16; i++) x[8*i+:8] = gid[8*(15-i)+:8];
    return x;
  endfunction
  // Signed 24-bit distance a - b (positive: a is later).
  function automatic logic signed [23:0] psn_diff(psn_t a, psn_t b);
    return $signed(a - b);
  endfunction
  function automatic pay_len_t mtu_bytes(logic [2:0] m);
    return pay_len_t'(13'd128 << m);
  endfunction
  function automatic gen_t qpn_gen(qpn_t qpn, int unsigned idx_w);
    return gen_t'(qpn >> idx_w);
  endfunction
  function automatic qp_idx_t qpn_idx(qpn_t qpn, int unsigned idx_w);
    return qp_idx_t'(qpn & ((24'd1 << idx_w) - 24'd1));
  endfunction
  // Sets of QPs are kept in words that are looked at one a cycle: 32 words are no longer than any batch has time for, and the words of a large
  // table have 64 bits at most.
  function automatic int unsigned qp_word_log(int unsigned idx_w);
    if (idx_w <= 3) return idx_w;
    if (idx_w <= 8) return 3;
    return (idx_w > 11) ? 6 : idx_w - 5;
  endfunction
  function automatic qpn_t make_qpn(gen_t g, qp_idx_t idx, int unsigned idx_w);
    return (qpn_t'(g) << idx_w) | qpn_t'(idx);
  endfunction
endpackage
