// SPDX-License-Identifier: Apache-2.0
// Port configuration: MAC, MTU and state of the port, GID and P_Key tables, told to everybody; events of the port's state.
// Contract: a setting takes effect in the next cycle. After reset the port is down, P_Key 0 is the default one (0xFFFF), GIDs
// are empty. A GID is kept by its IPv4 address; one of another kind is not kept (gid_ok_o tells), since the data path is IPv4. The
// port is active when its link is up and the driver set it up; each change is told to event queue 0, held until taken.
module rnic_port_cfg
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
(
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
  localparam int unsigned GidW = $clog2(NUM_GID);
  localparam int unsigned PkeyW = $clog2(NUM_PKEY);
  port_cfg_t cfg_q;
  logic mapped, told_q, now_q, evt_q;        // told_q: state last told; evt_q: an event waits
  assign cfg_o = cfg_q;
  // Byte 0 of the GID is in bits 7:0: ten zero bytes, two of ones, the address.
  assign mapped   = gid_i[79:0] == '0 && gid_i[95:80] == 16'hffff;
  assign gid_ok_o = mapped || gid_i == '0;

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
    if (set_gid_i) begin
      cfg_q.gid_v4[GidW'(idx_i)] <= mapped;
      cfg_q.gid_ip[GidW'(idx_i)] <= {gid_i[103:96], gid_i[111:104], gid_i[119:112], gid_i[127:120]};
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
