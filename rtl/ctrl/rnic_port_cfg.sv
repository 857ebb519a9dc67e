// SPDX-License-Identifier: Apache-2.0
// Port configuration: MAC, MTU and state of the port, GID and P_Key tables, told to everybody; events of the port's state.
// Contract: a setting takes effect in the next cycle, a GID in the one after: in between gid_wr tells those who keep a copy of
// the table. After reset the port is down, P_Key 0 is the default one (0xFFFF), GIDs are empty. An all-zero GID empties its entry.
// Without Ipv6 a GID that is not IPv4-mapped is not kept (gid_ok_o tells). The port is active when its link is up and the
// driver set it up; each change is told to event queue 0, held until taken.
module rnic_port_cfg
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter bit Ipv6 = 1'b1
) (
    input  logic clk_i,
    input  logic rst_i,
    input  logic port_up_i,                  // link
    input  logic set_port_i,
    input  logic [47:0] mac_i,
    input  logic [2:0] mtu_i,
    input  logic up_i,
    input  logic set_gid_i,
    input  logic set_pkey_i,
    // verilator lint_off UNUSEDSIGNAL
    input  logic [7:0] idx_i,                // (in the table: judged before)
    // verilator lint_on UNUSEDSIGNAL
    input  logic [127:0] gid_i,
    input  logic [15:0] pkey_i,
    output logic gid_ok_o,
    output port_cfg_t cfg_o,
    output logic eqe_valid_o,
    input  logic eqe_ready_i,
    output eqe_req_t eqe_o
);
  localparam int unsigned PkeyW = $clog2(NUM_PKEY);
  port_cfg_t cfg_q;
  gid_wr_t wr;
  logic told_q, now_q, evt_q;        // told_q: state last told; evt_q: an event waits
  assign cfg_o = cfg_q;
  assign wr    = cfg_q.gid_wr;
`ifdef RNIC_CUT_GID_V6
  assign gid_ok_o = gid_is_v4(gid_i) || gid_i == '0;
`else
  assign gid_ok_o = Ipv6 || gid_is_v4(gid_i) || gid_i == '0;
`endif

  assign eqe_valid_o = evt_q;
  assign eqe_o       = '{eqn: 8'd0, event_type: told_q ? EVENT_TYPE_PORT_ACTIVE : EVENT_TYPE_PORT_ERR, number: 32'd1};

  always_ff @(posedge clk_i) begin
    now_q <= port_up_i && cfg_q.up;
    if (!evt_q) begin
      told_q <= now_q;
`ifndef RNIC_CUT_PORT_EVENT
      evt_q  <= now_q != told_q;
`endif
    end else if (eqe_ready_i) begin
      evt_q <= 1'b0;
    end
    if (set_port_i) begin
      cfg_q.mac <= mac_i;
      cfg_q.mtu <= mtu_i;
      cfg_q.up  <= up_i;
    end
    cfg_q.gid_wr.valid <= set_gid_i;
    if (set_gid_i) begin
      cfg_q.gid_wr.idx         <= gid_idx_t'(idx_i);
      cfg_q.gid_wr.gid[127:96] <= gid_i[127:96];
      cfg_q.gid_wr.gid[95:0]   <= Ipv6 ? gid_i[95:0] : gid_i[95:0] & {16'hffff, 80'd0};
    end
    if (wr.valid) begin
      cfg_q.gid[wr.idx]    <= wr.gid;
      cfg_q.gid_v4[wr.idx] <= gid_is_v4(wr.gid);
      cfg_q.gid_v6[wr.idx] <= Ipv6 && wr.gid != '0 && !gid_is_v4(wr.gid);
    end
    if (set_pkey_i) cfg_q.pkey[PkeyW'(idx_i)] <= pkey_i;
    if (rst_i) begin
      cfg_q         <= '0;
      cfg_q.mtu     <= MTU_4096;
      cfg_q.pkey[0] <= 16'hffff;
      told_q        <= 1'b0;
      now_q         <= 1'b0;
      evt_q         <= 1'b0;
    end
  end
endmodule
