// SPDX-License-Identifier: Apache-2.0
// Properties of rnic_doorbell, read at its end under FORMAL_DOORBELL, for one QP index and one of its queues chosen freely and kept.
// Doorbells, hot words and consumer indices come as they like; the tables hold anything at the start, of any life.
//
//   p_live       a doorbell is accepted only for a QPN that lives as it was named: index and generation, through the QP's own page
//   p_this_life  what stands in the tables counts only when it is of the life at hand: the producer moves on from the last one accepted in
//                this life (else from 0), and not beyond the consumer of this life (else 0) plus the ring
//   p_kept       a producer index changes only by an accepted doorbell, and is of its life then; both copies are one
//   p_kick       no engine is woken for a doorbell that was dropped
  logic f_first_q = 1'b1;
  logic f_rq_q, f_ok_q;
  logic [QpIdxW-1:0] f_sym_q;
  ring_pos_t f_prod_q, f_cons_q, f_cons_read_q;    // as the tables should have them; the consumer as it was when the doorbell came
  wqe_idx_t f_old, f_cons;
  logic f_here;
  assign f_here = hit && rq_q == f_rq_q && idx_q == f_sym_q;
  assign f_old  = (f_prod_q.epoch == db_hot_i.epoch) ? f_prod_q.val : '0;
  assign f_cons = (f_cons_read_q.epoch == db_hot_i.epoch) ? f_cons_read_q.val : '0;
  always_ff @(posedge clk_i) begin
    f_first_q <= 1'b0;
    f_sym_q   <= f_sym_q;
    f_rq_q    <= f_rq_q;
    f_ok_q    <= ok && !rst_i;
    if (f_first_q) begin
      m_reset : assume (rst_i && !ok);
      m_table : assume (u_prod.mem[{f_rq_q, f_sym_q}] == f_prod_q && (f_rq_q ? u_rq_prod.mem[f_sym_q] : u_sq_prod.mem[f_sym_q]) == f_prod_q);
      m_cons : assume ((f_rq_q ? u_rq_cons.mem[f_sym_q] : u_sq_cons.mem[f_sym_q]) == f_cons_q);
    end
    if (f_here && ok) f_prod_q <= '{epoch: db_hot_i.epoch, val: new_q};
    if (f_rq_q ? rq_cons_we_i && QpIdxW'(rq_cons_i.idx) == f_sym_q : sq_cons_we_i && QpIdxW'(sq_cons_i.idx) == f_sym_q) begin
      f_cons_q      <= f_rq_q ? rq_cons_i.pos : sq_cons_i.pos;
      f_cons_read_q <= f_rq_q ? rq_cons_i.pos : sq_cons_i.pos;
    end else begin
      f_cons_read_q <= f_cons_q;
    end

    if (!f_first_q) begin
      if (ok) p_live : assert (hit && db_hot_i.valid && qpn_gen(qpn_q, QpIdxW) == db_hot_i.gen && QpIdxW'(qpn_q) == idx_q && uar_q == db_hot_i.uar);
      if (f_here && ok)
        p_this_life : assert (wqe_idx_t'(new_q - f_cons) <= (wqe_idx_t'(1) << (f_rq_q ? db_hot_i.log_rq : db_hot_i.log_sq))
            && wqe_idx_t'(new_q - f_cons) >= wqe_idx_t'(f_old - f_cons));
      p_kept : assert (u_prod.mem[{f_rq_q, f_sym_q}] == f_prod_q && (f_rq_q ? u_rq_prod.mem[f_sym_q] : u_sq_prod.mem[f_sym_q]) == f_prod_q);
      if (sq_kick_valid_o || rq_kick_valid_o) p_kick : assert (f_ok_q);

      // ---------------------------------------------------------------- induction
      i_cons : assert ((f_rq_q ? u_rq_cons.mem[f_sym_q] : u_sq_cons.mem[f_sym_q]) == f_cons_q);
      if (f_here) i_read : assert (prod == f_prod_q && cons == f_cons_read_q);
      if (hit) i_idx : assert (idx_q == QpIdxW'(qpn_q) && !(sq_q && rq_q));

      c_next : cover (f_here && ok && f_prod_q.epoch == db_hot_i.epoch && f_old != '0 && f_cons != '0);
      c_new_life : cover (f_here && ok && f_prod_q.epoch != db_hot_i.epoch && f_prod_q.val != '0);
      c_back_to_back : cover (f_here && ok && f_ok_q);
      c_refused : cover (f_here && !ok && qpn_ok && page_ok && state_ok);
    end
  end
