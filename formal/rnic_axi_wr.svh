// SPDX-License-Identifier: Apache-2.0
// Properties of rnic_axi_wr, read at its end under FORMAL_AXI_WR. TLPs of any length and place come at any pace, the bus takes what and when
// it likes and answers what it was given; one double word of a TLP, chosen freely, is followed. Assumed: a TLP is offered until it is
// taken, with one header, as many beats as its length says; the memory never gives up (dead_i).
//
//   p_beats    WLAST stands at the beat that AWLEN names
//   p_hold_aw  an address that was offered and not taken stays as it is
//   p_hold_w   a beat that was offered and not taken stays as it is
//   p_word     each double word stands in the beat and lane of its address, with its bytes enabled as its TLP says
//   p_none     lanes outside the TLP are not enabled
//   p_idle     idle only when every burst that began has been answered
  localparam int unsigned F_MAX = 16;                // double words of a TLP here
  logic f_first_q = 1'b1;
  logic f_wait_q, f_aw_q, f_w_q, f_mid_q, f_under_q, f_got_q;
  rq_hdr_t f_hdr_q;
  logic [DataW-1:0] f_data_q, f_wdata_q;
  logic [DataW/8-1:0] f_wstrb_q;
  logic [AddrW+7:0] f_ar_q;
  logic f_last_q;
  logic [10:0] f_in_q, f_out_q, f_dw_q;              // beats of the TLP, of the burst; the double word that is followed
  logic [31:0] f_word_q;
  logic [OpenW:0] f_open_q;
  logic [10:0] f_tlp_beats, f_at;
  logic [3:0] f_be;
  assign f_tlp_beats = (hdr_i.dw_len + 11'(Dws - 1)) >> OffW;
  assign f_at        = f_dw_q + 11'(off);
  assign f_be        = (f_dw_q == '0) ? hdr_i.first_be : (f_dw_q == hdr_i.dw_len - 11'd1) ? hdr_i.last_be : 4'hf;
  logic f_none;
  always_comb begin
    f_none = 1'b1;
    for (int unsigned d = 0; d < Dws; d++)
      if (11'(f_out_q << OffW) + 11'(d) < 11'(off) || 11'(f_out_q << OffW) + 11'(d) >= dws_all) f_none &= wstrb_o[4*d+:4] == '0;
  end
  always_ff @(posedge clk_i) begin
    f_first_q <= 1'b0;
    f_wait_q  <= !rst_i && valid_i && !ready_o;
    f_hdr_q   <= hdr_i;
    if (f_mid_q && !valid_i) f_hdr_q <= f_hdr_q;
    f_data_q  <= data_i;
    f_last_q  <= last_i;
    f_aw_q    <= !rst_i && awvalid_o && !awready_i;
    f_w_q     <= !rst_i && wvalid_o && !wready_i;
    f_ar_q    <= {awaddr_o, awlen_o};
    f_wdata_q <= wdata_o;
    f_wstrb_q <= wstrb_o;
    if (valid_i && ready_o) begin
      f_mid_q <= !last_i;
      f_in_q  <= last_i ? '0 : f_in_q + 11'd1;
    end
    if (wvalid_o && wready_i) begin
      f_out_q <= f_out_q + 11'd1;
      if (f_in_q == f_dw_q >> OffW && !tail_q) f_word_q <= data_i[32*f_dw_q[OffW-1:0]+:32];
    end
    if (burst_end) f_out_q <= '0;
    f_open_q <= f_open_q + (OpenW + 1)'(burst_end) - (OpenW + 1)'(bvalid_i);
    f_under_q <= (awvalid_o || f_under_q) && !burst_end;
    if (f_first_q) m_reset : assume (rst_i);
    else begin
      m_one_reset : assume (!rst_i);
      m_alive : assume (!dead_i);
      if (f_wait_q) m_offered : assume (valid_i && hdr_i == f_hdr_q && data_i == f_data_q && last_i == f_last_q);
      if (f_mid_q && valid_i) m_header : assume (hdr_i == f_hdr_q);
      m_length : assume (hdr_i.dw_len >= 11'd1 && hdr_i.dw_len <= 11'(F_MAX));
      if (valid_i) m_last : assume (last_i == (f_in_q == f_tlp_beats - 11'd1));
      m_answer : assume (!bvalid_i || f_open_q != '0);
      f_dw_q <= f_dw_q;
    end
    if (rst_i) begin
      f_in_q    <= '0;
      f_out_q   <= '0;
      f_open_q  <= '0;
      f_mid_q   <= 1'b0;
      f_under_q <= 1'b0;
    end

    if (!rst_i && !f_first_q) begin
      if (wvalid_o) p_beats : assert (wlast_o == (f_out_q == beats - 11'd1) && f_out_q < beats);
      if (f_aw_q) p_hold_aw : assert (awvalid_o && {awaddr_o, awlen_o} == f_ar_q);
      if (f_w_q) p_hold_w : assert (wvalid_o && wdata_o == f_wdata_q && wstrb_o == f_wstrb_q);
      if (wvalid_o && f_dw_q < hdr_i.dw_len && f_out_q == f_at >> OffW)
        p_word : assert (wdata_o[32*f_at[OffW-1:0]+:32] == ((f_in_q == f_dw_q >> OffW && !tail_q) ? data_i[32*f_dw_q[OffW-1:0]+:32] : f_word_q) &&
                         wstrb_o[4*f_at[OffW-1:0]+:4] == f_be);
      if (wvalid_o) p_none : assert (f_none);
      if (idle_o) p_idle : assert (f_open_q == '0 && f_out_q == '0);

      // ---------------------------------------------------------------- induction
      i_open : assert (f_open_q == (OpenW + 1)'(open_q) && open_q <= OpenW'(MaxOpen));
      i_beats : assert (dw_q == 11'(f_out_q << OffW) && f_mid_q == (f_in_q != '0));
      if (valid_i) i_in : assert (w_done_q ? (f_out_q == beats && f_in_q == f_tlp_beats - 11'd1) : f_out_q < beats);
      if (valid_i && !w_done_q) i_pace : assert (f_out_q == f_in_q + 11'(tail_q) && (!tail_q || f_in_q == f_tlp_beats - 11'd1));
      if (!valid_i) i_gap : assert (!tail_q && !w_done_q && f_out_q == f_in_q);
      i_wait : assert (aw_wait_q == f_aw_q && (!aw_wait_q || {addr_q, len_q} == f_ar_q));
      i_under : assert (begun_q == f_under_q);
      i_room : assert (!begun_q || open_q != OpenW'(MaxOpen));
      i_done : assert (!(w_done_q && tail_q));
      i_begun : assert (begun_q || (f_out_q == '0 && !aw_wait_q && !w_done_q));
      if (f_mid_q) i_known : assert (f_in_q < (f_hdr_q.dw_len + 11'(Dws - 1)) >> OffW && f_hdr_q.dw_len >= 11'd1 && f_hdr_q.dw_len <= 11'(F_MAX));
      if (f_out_q != '0 && !w_done_q && !tail_q && f_in_q != '0 && f_dw_q >> OffW == f_in_q - 11'd1)
        i_held : assert (held_q[32*f_dw_q[OffW-1:0]+:32] == f_word_q);
      if (tail_q && f_dw_q >> OffW == f_in_q) i_tail : assert (held_q[32*f_dw_q[OffW-1:0]+:32] == f_word_q);

      c_tail : cover (wvalid_o && tail_q && wready_i);
      c_data_first : cover (w_done_q && awready_i);
      c_full : cover (open_q == OpenW'(MaxOpen) && valid_i);
    end
  end
