// SPDX-License-Identifier: Apache-2.0
// Packs beats of 1 to Bytes bytes (from lane 0 up) to full beats; the last one of a packet may be part full and ends it: the next
// packet begins in a beat of its own.
// Contract: both sides held until ready. in_last_i: last beat of its packet. A beat comes out with the beat in that fills it or
// ends the packet, in the same cycle, with that one's in_meta_i; what that one has beyond it follows a cycle later, in which nothing
// is taken, when the packet ends there. in_turn_i: lanes by which the first beat of a packet is to be turned upwards, so that its
// bytes begin in lane 0; zero beside all others. Of lanes behind a packet's last byte nothing is promised. in_ready_o depends on
// out_ready_i, out_valid_o on in_valid_i.
module rnic_packer #(
    parameter int unsigned Bytes = 8,
    parameter int unsigned MetaW = 1,
    localparam int unsigned CntW = $clog2(Bytes + 1)
) (
    input  logic               clk_i,
    input  logic               rst_i,
    input  logic               in_valid_i,
    output logic               in_ready_o,
    input  logic [8*Bytes-1:0] in_data_i,
    input  logic [CntW-1:0]    in_cnt_i,
    input  logic               in_last_i,
    input  logic [$clog2(Bytes)-1:0] in_turn_i = '0,
    input  logic [MetaW-1:0]   in_meta_i,
    output logic               out_valid_o,
    input  logic               out_ready_i,
    output logic [8*Bytes-1:0] out_data_o,
    output logic               out_last_o,
    output logic [MetaW-1:0]   out_meta_o
);
  localparam int unsigned LaneW = $clog2(Bytes);
  if (Bytes != (1 << LaneW) || Bytes < 2) begin : g_bytes
    $fatal(1, "Bytes must be a power of two");
  end
  logic [8*Bytes-1:0] rest_q, turned;
  logic [LaneW-1:0] fill_q;              // bytes in rest_q
  logic spill_q, emit, spill, in_fire;   // spill: what is left is the packet's last beat
  logic [MetaW-1:0] meta_q;
  logic [CntW-1:0] total;                // at most 2 * Bytes - 1
  assign total      = CntW'(fill_q) + in_cnt_i;
  assign emit       = total[CntW-1] || in_last_i;
  assign spill      = in_last_i && total[CntW-1] && total[LaneW-1:0] != '0;
  assign in_ready_o = !spill_q && (!emit || out_ready_i);
  assign in_fire    = in_valid_i && in_ready_o;

  // Turned to where the rest ends; a rotation in powers of two costs one choice per bit and stage.
  always_comb begin
    turned = in_data_i;
    for (int unsigned k = 0; k < LaneW; k++) if (fill_q[k] || in_turn_i[k]) turned = (8 * Bytes)'({turned, turned} >> (8 * Bytes - (8 << k)));
    for (int unsigned i = 0; i < Bytes; i++) out_data_o[8*i+:8] = (LaneW'(i) < fill_q) ? rest_q[8*i+:8] : turned[8*i+:8];
  end
  assign out_valid_o = spill_q || (in_valid_i && emit);
  assign out_last_o  = spill_q || (in_last_i && !spill);
  assign out_meta_o  = spill_q ? meta_q : in_meta_i;

  always_ff @(posedge clk_i) begin
    for (int unsigned i = 0; i < Bytes; i++) if (in_fire && (emit || LaneW'(i) >= fill_q)) rest_q[8*i+:8] <= turned[8*i+:8];
    if (in_fire) meta_q <= in_meta_i;
    if (rst_i) begin
      fill_q  <= '0;
      spill_q <= 1'b0;
    end else if (in_fire) begin
      fill_q  <= (in_last_i && !spill) ? '0 : total[LaneW-1:0];
      spill_q <= spill;
    end else if (spill_q && out_ready_i) begin
      fill_q  <= '0;
      spill_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i && in_fire) a_beat_not_empty : assert (in_cnt_i != '0 && in_cnt_i <= CntW'(Bytes));
  end
endmodule
