// SPDX-License-Identifier: Apache-2.0
// Puts a header before a packed byte stream.
// Contract: start_valid_i with the header (first byte in lane 0, zero above its length) and the bytes of header and body
// together, held until start_ready_o. Then ceil(total / (DataW/8)) beats come out, all full but the last, lanes above
// the end zero; meanwhile ceil(body / (DataW/8)) beats of the body are taken, whose lanes above the end must be zero.
// A beat a cycle as long as the body and the taker allow it. BackToBack: the next start is taken with the last beat.
module rnic_tx_prefix #(
    parameter int unsigned DataW = 64,
    parameter int unsigned HdrMax = 60,     // bytes
    parameter int unsigned Unit = 4,        // header lengths are multiples of this,
    parameter int unsigned Extra = 0,       // and this beyond them
    parameter int unsigned TotalMax = 8191, // bytes of header and body
    parameter bit BackToBack = 1'b1,
    localparam int unsigned Bytes = DataW / 8,
    localparam int unsigned CntW = $clog2(Bytes + 1),
    localparam int unsigned LenW = $clog2(HdrMax + 1),
    localparam int unsigned TotalW = $clog2(TotalMax + 1)
) (
    input  logic                clk_i,
    input  logic                rst_i,
    input  logic                start_valid_i,
    output logic                start_ready_o,
    input  logic [8*HdrMax-1:0] start_hdr_i,
    input  logic [LenW-1:0]     start_hdr_len_i,
    input  logic [TotalW-1:0]   start_total_i,
    input  logic                body_valid_i,
    output logic                body_ready_o,
    input  logic [DataW-1:0]    body_data_i,
    output logic                out_valid_o,
    input  logic                out_ready_i,
    output logic [DataW-1:0]    out_data_o,
    output logic [CntW-1:0]     out_cnt_o,
    output logic                out_last_o,
    output logic                busy_o
);
  localparam int unsigned HdrBeats = HdrMax / Bytes + 1;   // with what is behind a header that ends with a beat
  localparam int unsigned IdxW = (HdrBeats > 1) ? $clog2(HdrBeats) : 1;
  localparam int unsigned OffW = $clog2(Bytes / Unit);
  localparam int unsigned UnitW = $clog2(8 * Unit);

  logic busy_q, in_hdr, need_body, fire;
  // A choice among the header's beats is smaller than shifting them.
  logic [HdrBeats-1:0][DataW-1:0] hdr_q;
  logic [IdxW-1:0] idx_q;             // its beat
  logic [DataW-1:0] rest_q, head;     // what is left of the last body beat
  logic behind_q;                     // a beat of the body was given
  logic [LenW-1:0] hdr_left_q;        // below a beat: where the body begins, and as many bytes are at hand when that much is to come
  logic [TotalW-1:0] total_q;         // bytes still to give
  logic [2*DataW-1:0] body;

  assign in_hdr    = 32'(hdr_left_q) >= Bytes;
  assign need_body = !in_hdr && total_q > TotalW'(hdr_left_q);
  assign body      = need_body ? {DataW'(0), body_data_i} << {OffW'(hdr_left_q >> $clog2(Unit)), UnitW'(8 * Extra)} : '0;

  assign out_valid_o  = busy_q && (!need_body || body_valid_i);
  assign head         = behind_q ? rest_q : hdr_q[idx_q];
  assign out_data_o   = head | body[DataW-1:0];
  assign out_last_o   = total_q <= TotalW'(Bytes);
  assign out_cnt_o    = out_last_o ? CntW'(total_q) : CntW'(Bytes);
  assign fire         = out_valid_o && out_ready_i;
  assign body_ready_o = busy_q && need_body && out_ready_i;
  assign busy_o       = busy_q;
  assign start_ready_o = !busy_q || (BackToBack && fire && out_last_o);

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      busy_q <= 1'b0;
    end else begin
      if (start_valid_i && start_ready_o) busy_q <= 1'b1;
      else if (fire && out_last_o) busy_q <= 1'b0;
    end
    if (start_valid_i && start_ready_o) begin
      hdr_q      <= (HdrBeats * DataW)'(start_hdr_i);
      idx_q      <= '0;
      behind_q   <= 1'b0;
      hdr_left_q <= start_hdr_len_i;
      total_q    <= start_total_i;
    end else if (fire) begin
      total_q <= total_q - TotalW'(Bytes);
      if (in_hdr) begin
        idx_q      <= idx_q + IdxW'(1);
        hdr_left_q <= hdr_left_q - LenW'(Bytes);
      end else begin
        rest_q   <= body[DataW+:DataW];
        behind_q <= 1'b1;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i && start_valid_i) begin
      a_unit : assert (32'(start_hdr_len_i) % Unit == Extra && 32'(start_hdr_len_i) <= HdrMax);
      a_total : assert (start_total_i >= TotalW'(start_hdr_len_i) && start_total_i != '0);
    end
  end
endmodule
