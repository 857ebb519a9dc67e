// SPDX-License-Identifier: Apache-2.0
// The transition table a second time, for the proofs: as masks of ibv_qp_attr_mask, STATE included, transcribed from the table of the
// Linux core (GSI as UD without PORT; DCI and DCT as mlx5), not from spec/. Types and states as verbs number them; DCI 5, DCT 6.
// Contract: a pure function; what it does not name is illegal.
package qp_table_oracle_pkg;
  typedef struct packed {
    logic        legal;
    logic [25:0] req;     // required, STATE included
    logic [25:0] allow;   // required or optional
  } oracle_t;

  function automatic oracle_t oracle(logic [3:0] qp_type, logic [2:0] from, logic [2:0] to);
    case ({qp_type, from, to})
      // RESET->RESET
      {4'd1, 3'd0, 3'd0}, {4'd2, 3'd0, 3'd0}, {4'd3, 3'd0, 3'd0}, {4'd4, 3'd0, 3'd0}, {4'd5, 3'd0, 3'd0}, {4'd8, 3'd0, 3'd0}, {4'd9, 3'd0, 3'd0}, {4'd10, 3'd0, 3'd0}:
      return '{legal: 1'b1, req: 26'h0000001, allow: 26'h0000001};
      // RESET->INIT
      {4'd8, 3'd0, 3'd1}:
      return '{legal: 1'b1, req: 26'h0000021, allow: 26'h0000021};
      // RESET->INIT
      {4'd5, 3'd0, 3'd1}:
      return '{legal: 1'b1, req: 26'h0000031, allow: 26'h0000031};
      // RESET->INIT
      {4'd2, 3'd0, 3'd1}, {4'd3, 3'd0, 3'd1}, {4'd6, 3'd0, 3'd1}, {4'd9, 3'd0, 3'd1}, {4'd10, 3'd0, 3'd1}:
      return '{legal: 1'b1, req: 26'h0000039, allow: 26'h0000039};
      // RESET->INIT
      {4'd1, 3'd0, 3'd1}:
      return '{legal: 1'b1, req: 26'h0000051, allow: 26'h0000051};
      // RESET->INIT
      {4'd4, 3'd0, 3'd1}:
      return '{legal: 1'b1, req: 26'h0000071, allow: 26'h0000071};
      // INIT->RESET
      {4'd1, 3'd1, 3'd0}, {4'd2, 3'd1, 3'd0}, {4'd3, 3'd1, 3'd0}, {4'd4, 3'd1, 3'd0}, {4'd5, 3'd1, 3'd0}, {4'd8, 3'd1, 3'd0}, {4'd9, 3'd1, 3'd0}, {4'd10, 3'd1, 3'd0}:
      return '{legal: 1'b1, req: 26'h0000001, allow: 26'h0000001};
      // INIT->INIT
      {4'd8, 3'd1, 3'd1}:
      return '{legal: 1'b1, req: 26'h0000001, allow: 26'h0000001};
      // INIT->INIT
      {4'd5, 3'd1, 3'd1}:
      return '{legal: 1'b1, req: 26'h0000001, allow: 26'h0000031};
      // INIT->INIT
      {4'd2, 3'd1, 3'd1}, {4'd3, 3'd1, 3'd1}, {4'd9, 3'd1, 3'd1}, {4'd10, 3'd1, 3'd1}:
      return '{legal: 1'b1, req: 26'h0000001, allow: 26'h0000039};
      // INIT->INIT
      {4'd1, 3'd1, 3'd1}:
      return '{legal: 1'b1, req: 26'h0000001, allow: 26'h0000051};
      // INIT->INIT
      {4'd4, 3'd1, 3'd1}:
      return '{legal: 1'b1, req: 26'h0000001, allow: 26'h0000071};
      // INIT->RTR
      {4'd8, 3'd1, 3'd2}:
      return '{legal: 1'b1, req: 26'h0000001, allow: 26'h0000001};
      // INIT->RTR
      {4'd1, 3'd1, 3'd2}, {4'd4, 3'd1, 3'd2}:
      return '{legal: 1'b1, req: 26'h0000001, allow: 26'h0000051};
      // INIT->RTR
      {4'd5, 3'd1, 3'd2}:
      return '{legal: 1'b1, req: 26'h0000101, allow: 26'h0000191};
      // INIT->RTR
      {4'd6, 3'd1, 3'd2}:
      return '{legal: 1'b1, req: 26'h0008181, allow: 26'h0008181};
      // INIT->RTR
      {4'd3, 3'd1, 3'd2}, {4'd9, 3'd1, 3'd2}:
      return '{legal: 1'b1, req: 26'h0101181, allow: 26'h0105199};
      // INIT->RTR
      {4'd2, 3'd1, 3'd2}, {4'd10, 3'd1, 3'd2}:
      return '{legal: 1'b1, req: 26'h0129181, allow: 26'h012d199};
      // INIT->ERR
      {4'd1, 3'd1, 3'd6}, {4'd2, 3'd1, 3'd6}, {4'd3, 3'd1, 3'd6}, {4'd4, 3'd1, 3'd6}, {4'd5, 3'd1, 3'd6}, {4'd8, 3'd1, 3'd6}, {4'd9, 3'd1, 3'd6}, {4'd10, 3'd1, 3'd6}:
      return '{legal: 1'b1, req: 26'h0000001, allow: 26'h0000001};
      // RTR->RESET
      {4'd1, 3'd2, 3'd0}, {4'd2, 3'd2, 3'd0}, {4'd3, 3'd2, 3'd0}, {4'd4, 3'd2, 3'd0}, {4'd5, 3'd2, 3'd0}, {4'd8, 3'd2, 3'd0}, {4'd9, 3'd2, 3'd0}, {4'd10, 3'd2, 3'd0}:
      return '{legal: 1'b1, req: 26'h0000001, allow: 26'h0000001};
      // RTR->RTS
      {4'd8, 3'd2, 3'd3}:
      return '{legal: 1'b1, req: 26'h0000001, allow: 26'h2000001};
      // RTR->RTS
      {4'd1, 3'd2, 3'd3}, {4'd4, 3'd2, 3'd3}:
      return '{legal: 1'b1, req: 26'h0010001, allow: 26'h0010043};
      // RTR->RTS
      {4'd3, 3'd2, 3'd3}:
      return '{legal: 1'b1, req: 26'h0010001, allow: 26'h005400b};
      // RTR->RTS
      {4'd10, 3'd2, 3'd3}:
      return '{legal: 1'b1, req: 26'h0010201, allow: 26'h005c20b};
      // RTR->RTS
      {4'd5, 3'd2, 3'd3}:
      return '{legal: 1'b1, req: 26'h0012e01, allow: 26'h001ae01};
      // RTR->RTS
      {4'd9, 3'd2, 3'd3}:
      return '{legal: 1'b1, req: 26'h0012e01, allow: 26'h0056e0b};
      // RTR->RTS
      {4'd2, 3'd2, 3'd3}:
      return '{legal: 1'b1, req: 26'h0012e01, allow: 26'h005ee0b};
      // RTR->ERR
      {4'd1, 3'd2, 3'd6}, {4'd2, 3'd2, 3'd6}, {4'd3, 3'd2, 3'd6}, {4'd4, 3'd2, 3'd6}, {4'd5, 3'd2, 3'd6}, {4'd8, 3'd2, 3'd6}, {4'd9, 3'd2, 3'd6}, {4'd10, 3'd2, 3'd6}:
      return '{legal: 1'b1, req: 26'h0000001, allow: 26'h0000001};
      // RTS->RESET
      {4'd1, 3'd3, 3'd0}, {4'd2, 3'd3, 3'd0}, {4'd3, 3'd3, 3'd0}, {4'd4, 3'd3, 3'd0}, {4'd5, 3'd3, 3'd0}, {4'd8, 3'd3, 3'd0}, {4'd9, 3'd3, 3'd0}, {4'd10, 3'd3, 3'd0}:
      return '{legal: 1'b1, req: 26'h0000001, allow: 26'h0000001};
      // RTS->RTS
      {4'd1, 3'd3, 3'd3}, {4'd4, 3'd3, 3'd3}:
      return '{legal: 1'b1, req: 26'h0000001, allow: 26'h0000043};
      // RTS->RTS
      {4'd5, 3'd3, 3'd3}:
      return '{legal: 1'b1, req: 26'h0000001, allow: 26'h0008001};
      // RTS->RTS
      {4'd3, 3'd3, 3'd3}, {4'd9, 3'd3, 3'd3}:
      return '{legal: 1'b1, req: 26'h0000001, allow: 26'h004400b};
      // RTS->RTS
      {4'd2, 3'd3, 3'd3}, {4'd10, 3'd3, 3'd3}:
      return '{legal: 1'b1, req: 26'h0000001, allow: 26'h004c00b};
      // RTS->RTS
      {4'd8, 3'd3, 3'd3}:
      return '{legal: 1'b1, req: 26'h0000001, allow: 26'h2000001};
      // RTS->SQD
      {4'd8, 3'd3, 3'd4}:
      return '{legal: 1'b1, req: 26'h0000001, allow: 26'h0000001};
      // RTS->SQD
      {4'd1, 3'd3, 3'd4}, {4'd2, 3'd3, 3'd4}, {4'd3, 3'd3, 3'd4}, {4'd4, 3'd3, 3'd4}, {4'd9, 3'd3, 3'd4}, {4'd10, 3'd3, 3'd4}:
      return '{legal: 1'b1, req: 26'h0000001, allow: 26'h0000005};
      // RTS->ERR
      {4'd1, 3'd3, 3'd6}, {4'd2, 3'd3, 3'd6}, {4'd3, 3'd3, 3'd6}, {4'd4, 3'd3, 3'd6}, {4'd5, 3'd3, 3'd6}, {4'd8, 3'd3, 3'd6}, {4'd9, 3'd3, 3'd6}, {4'd10, 3'd3, 3'd6}:
      return '{legal: 1'b1, req: 26'h0000001, allow: 26'h0000001};
      // SQD->RESET
      {4'd1, 3'd4, 3'd0}, {4'd2, 3'd4, 3'd0}, {4'd3, 3'd4, 3'd0}, {4'd4, 3'd4, 3'd0}, {4'd5, 3'd4, 3'd0}, {4'd8, 3'd4, 3'd0}, {4'd9, 3'd4, 3'd0}, {4'd10, 3'd4, 3'd0}:
      return '{legal: 1'b1, req: 26'h0000001, allow: 26'h0000001};
      // SQD->RTS
      {4'd8, 3'd4, 3'd3}:
      return '{legal: 1'b1, req: 26'h0000001, allow: 26'h0000001};
      // SQD->RTS
      {4'd1, 3'd4, 3'd3}, {4'd4, 3'd4, 3'd3}:
      return '{legal: 1'b1, req: 26'h0000001, allow: 26'h0000043};
      // SQD->RTS
      {4'd3, 3'd4, 3'd3}, {4'd9, 3'd4, 3'd3}:
      return '{legal: 1'b1, req: 26'h0000001, allow: 26'h004400b};
      // SQD->RTS
      {4'd2, 3'd4, 3'd3}, {4'd10, 3'd4, 3'd3}:
      return '{legal: 1'b1, req: 26'h0000001, allow: 26'h004c00b};
      // SQD->SQD
      {4'd8, 3'd4, 3'd4}:
      return '{legal: 1'b1, req: 26'h0000001, allow: 26'h0000001};
      // SQD->SQD
      {4'd1, 3'd4, 3'd4}, {4'd4, 3'd4, 3'd4}:
      return '{legal: 1'b1, req: 26'h0000001, allow: 26'h0000051};
      // SQD->SQD
      {4'd3, 3'd4, 3'd4}:
      return '{legal: 1'b1, req: 26'h0000001, allow: 26'h0044099};
      // SQD->SQD
      {4'd9, 3'd4, 3'd4}:
      return '{legal: 1'b1, req: 26'h0000001, allow: 26'h0046eb9};
      // SQD->SQD
      {4'd10, 3'd4, 3'd4}:
      return '{legal: 1'b1, req: 26'h0000001, allow: 26'h006c2b9};
      // SQD->SQD
      {4'd2, 3'd4, 3'd4}:
      return '{legal: 1'b1, req: 26'h0000001, allow: 26'h006eeb9};
      // SQD->ERR
      {4'd1, 3'd4, 3'd6}, {4'd2, 3'd4, 3'd6}, {4'd3, 3'd4, 3'd6}, {4'd4, 3'd4, 3'd6}, {4'd5, 3'd4, 3'd6}, {4'd8, 3'd4, 3'd6}, {4'd9, 3'd4, 3'd6}, {4'd10, 3'd4, 3'd6}:
      return '{legal: 1'b1, req: 26'h0000001, allow: 26'h0000001};
      // SQE->RESET
      {4'd1, 3'd5, 3'd0}, {4'd2, 3'd5, 3'd0}, {4'd3, 3'd5, 3'd0}, {4'd4, 3'd5, 3'd0}, {4'd5, 3'd5, 3'd0}, {4'd8, 3'd5, 3'd0}, {4'd9, 3'd5, 3'd0}, {4'd10, 3'd5, 3'd0}:
      return '{legal: 1'b1, req: 26'h0000001, allow: 26'h0000001};
      // SQE->RTS
      {4'd2, 3'd5, 3'd3}, {4'd8, 3'd5, 3'd3}, {4'd9, 3'd5, 3'd3}, {4'd10, 3'd5, 3'd3}:
      return '{legal: 1'b1, req: 26'h0000001, allow: 26'h0000001};
      // SQE->RTS
      {4'd3, 3'd5, 3'd3}:
      return '{legal: 1'b1, req: 26'h0000001, allow: 26'h000000b};
      // SQE->RTS
      {4'd1, 3'd5, 3'd3}, {4'd4, 3'd5, 3'd3}:
      return '{legal: 1'b1, req: 26'h0000001, allow: 26'h0000043};
      // SQE->ERR
      {4'd1, 3'd5, 3'd6}, {4'd2, 3'd5, 3'd6}, {4'd3, 3'd5, 3'd6}, {4'd4, 3'd5, 3'd6}, {4'd5, 3'd5, 3'd6}, {4'd8, 3'd5, 3'd6}, {4'd9, 3'd5, 3'd6}, {4'd10, 3'd5, 3'd6}:
      return '{legal: 1'b1, req: 26'h0000001, allow: 26'h0000001};
      // ERR->RESET
      {4'd1, 3'd6, 3'd0}, {4'd2, 3'd6, 3'd0}, {4'd3, 3'd6, 3'd0}, {4'd4, 3'd6, 3'd0}, {4'd5, 3'd6, 3'd0}, {4'd8, 3'd6, 3'd0}, {4'd9, 3'd6, 3'd0}, {4'd10, 3'd6, 3'd0}:
      return '{legal: 1'b1, req: 26'h0000001, allow: 26'h0000001};
      // ERR->ERR
      {4'd1, 3'd6, 3'd6}, {4'd2, 3'd6, 3'd6}, {4'd3, 3'd6, 3'd6}, {4'd4, 3'd6, 3'd6}, {4'd5, 3'd6, 3'd6}, {4'd8, 3'd6, 3'd6}, {4'd9, 3'd6, 3'd6}, {4'd10, 3'd6, 3'd6}:
      return '{legal: 1'b1, req: 26'h0000001, allow: 26'h0000001};
      default: return '0;
    endcase
  endfunction
endpackage
