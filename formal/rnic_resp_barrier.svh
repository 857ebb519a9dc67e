// SPDX-License-Identifier: Apache-2.0
// Properties of rnic_resp_barrier, read at its end under FORMAL_RESP_BARRIER. Packets, payloads, visits and frames come and end as they like;
// of the frames one is chosen freely and followed. Assumed: frames that are counted end one by one, and none is forgotten.
//
//   p_packet   busy until the packet that was at hand at the mark is over
//   p_payload  busy until the payload is over that moved at the mark, or when that packet was over
//   p_read     busy until the READ engine's visit of that moment is over
//   p_frames   busy until any frame is out that was under way at the mark, or when that visit was over
//   p_end      not busy when all of these are over: what begins later does not prolong it
  logic f_first_q = 1'b1;
  logic f_packet_q, f_pay_q, f_read_q, f_frame_q;
  logic f_packet_over, f_read_over;
  logic [CntW-1:0] f_pick_q, f_left_q, f_all_q, f_now;      // the chosen frame: so many must end; so many are waited for; under way after this cycle
  logic [CntW-1:0] f_floor_q;                               // the count does not fall below it
  assign f_packet_over = f_packet_q && packet_idle_i;
  assign f_read_over   = f_read_q && read_idle_i;
  assign f_now         = tx_count_i - CntW'(tx_done_i);
  always_ff @(posedge clk_i) begin
    f_first_q <= 1'b0;
    f_pick_q  <= f_pick_q;
    f_floor_q <= f_now;
    if (f_first_q) m_reset : assume (rst_i);
    else m_one_reset : assume (!rst_i);
    m_done : assume (!tx_done_i || tx_count_i != '0);
    if (!f_first_q) m_count : assume (tx_count_i >= f_floor_q);
    if (!f_first_q) m_mark : assume (!mark_i || !busy_o);

    if (mark_i) f_packet_q <= !packet_idle_i;
    else if (packet_idle_i) f_packet_q <= 1'b0;
    // A payload ends in the cycle of pay_end_i.
    if ((mark_i || f_packet_over) && pay_busy_i && !pay_end_i) f_pay_q <= 1'b1;
    else if (pay_end_i || mark_i || (f_packet_over && !pay_busy_i)) f_pay_q <= 1'b0;
    if (mark_i) f_read_q <= !read_idle_i;
    else if (read_idle_i) f_read_q <= 1'b0;
    // The chosen one is under way at the mark, or when the visit ends.
    if ((mark_i || f_read_over) && !(f_frame_q && !mark_i)) begin
      f_frame_q <= f_pick_q < f_now;
      f_left_q  <= f_pick_q + CntW'(1);
    end else if (f_frame_q && tx_done_i) begin
      f_left_q  <= f_left_q - CntW'(1);
      f_frame_q <= f_left_q != CntW'(1);
    end
    if (mark_i ? read_idle_i : f_read_over) f_all_q <= f_now;
    else if (mark_i) f_all_q <= '0;
    else if (tx_done_i && f_all_q != '0) f_all_q <= f_all_q - CntW'(1);
    if (rst_i) {f_packet_q, f_pay_q, f_read_q, f_frame_q, f_all_q} <= '0;

    if (!rst_i && !f_first_q) begin
      if (f_packet_q) p_packet : assert (busy_o);
      if (f_pay_q) p_payload : assert (busy_o);
      if (f_read_q) p_read : assert (busy_o);
      if (f_frame_q) p_frames : assert (busy_o);
      if (!f_packet_q && !f_pay_q && !f_read_q && f_all_q == '0) p_end : assert (!busy_o);

      // ---------------------------------------------------------------- induction
      i_packet : assert (packet_q == f_packet_q && pay_q == f_pay_q && read_q == f_read_q && frames_q == f_all_q);
      if (f_read_q) i_visit : assert (frames_q == '0);
      if (f_frame_q) i_frame : assert (f_left_q != '0 && f_left_q <= (f_read_q ? f_floor_q : frames_q));
      i_count : assert (frames_q <= f_floor_q);

      c_payload_behind : cover (f_pay_q && !f_packet_q && f_all_q != '0);
      c_visit : cover (f_read_over && f_frame_q && !f_packet_q);
      c_later : cover (f_all_q == CntW'(1) && tx_count_i > CntW'(3) && !f_pay_q && pay_busy_i && !packet_idle_i && !f_packet_q);
    end
  end
