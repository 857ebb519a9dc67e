// SPDX-License-Identifier: Apache-2.0
// A NIC in a hundred lines, with the pins of the real one, to test the surroundings on RTL.
// BAR0: sixteen 64-bit registers from 0x00 on; writing 0x80 (a bus address, 64-byte aligned) reads 64 bytes
// from there and writes their inverse behind them; writing 0x88 sends a 64-byte frame of the low byte;
// reading 0x90 gives {bytes, frames} received.
module stub_nic #(
    parameter int unsigned DataW = 64,
    localparam int unsigned Lanes = DataW / 8
) (
    input  logic             clk_i, rst_i, bus_master_en_i, port_up_i,
    input  logic             cq_valid_i,
    output logic             cq_ready_o,
    input  logic [127:0]     cq_hdr_i,
    input  logic [DataW-1:0] cq_data_i,
    input  logic             cq_last_i,
    output logic             cc_valid_o,
    input  logic             cc_ready_i,
    output logic [127:0]     cc_hdr_o,
    output logic [DataW-1:0] cc_data_o,
    output logic             cc_last_o,
    output logic             rq_valid_o,
    input  logic             rq_ready_i,
    output logic [127:0]     rq_hdr_o,
    output logic [DataW-1:0] rq_data_o,
    output logic             rq_last_o,
    input  logic             rc_valid_i,
    output logic             rc_ready_o,
    input  logic [127:0]     rc_hdr_i,
    input  logic [DataW-1:0] rc_data_i,
    input  logic             rc_last_i,
    input  logic             mac_rx_valid_i,
    output logic             mac_rx_ready_o,
    input  logic [DataW-1:0] mac_rx_data_i,
    input  logic [Lanes-1:0] mac_rx_keep_i,
    input  logic             mac_rx_last_i,
    input  logic             mac_rx_err_i,
    output logic             mac_tx_valid_o,
    input  logic             mac_tx_ready_i,
    output logic [DataW-1:0] mac_tx_data_o,
    output logic [Lanes-1:0] mac_tx_keep_o,
    output logic             mac_tx_last_o
);
  localparam int unsigned Beats = 64 / Lanes;
  typedef enum logic [1:0] { Idle, Ask, Wait, Answer } state_e;
  state_e state_q;
  logic [15:0][63:0] regs_q;
  logic [511:0] buf_q;
  logic [63:0] addr_q;
  logic [12:0] got_q;    // bytes of the answer that came
  logic [3:0] beat_q, tx_beat_q;
  logic tx_q;
  logic [7:0] tx_byte_q;
  logic [31:0] frames_q, bytes_q;
  logic read_q;
  logic [127:0] read_hdr_q;

  wire [63:0] cq_addr = cq_hdr_i[63:0];
  wire [63:0] value = cq_data_i[63:0];
  wire write = cq_valid_i && cq_ready_o && cq_hdr_i[76];
  wire [63:0] shown = (read_hdr_q[7:3] == 5'h12) ? {bytes_q, frames_q} : regs_q[read_hdr_q[6:3]];

  assign cq_ready_o = !read_q;
  assign cc_valid_o = read_q;
  assign cc_last_o  = 1'b1;
  wire [63:0] asked = read_hdr_q[2] ? {32'b0, shown[63:32]} : shown;
  assign cc_data_o  = DataW'(asked);
  // requester, tag, length, status, byte count, lower address
  assign cc_hdr_o   = {read_hdr_q[127:112], 6'b0, read_hdr_q[105:96], 21'b0, read_hdr_q[74:64], 32'b0,
                       read_hdr_q[74:64] == 11'd2 ? 16'd8 : 16'd4, 9'b0, read_hdr_q[6:0]};

  assign rq_valid_o = bus_master_en_i && (state_q == Ask || state_q == Answer);
  assign rq_last_o  = state_q == Ask || beat_q == 4'(Beats - 1);
  assign rq_data_o  = ~buf_q[DataW*beat_q+:DataW];
  assign rq_hdr_o   = {22'b0, 10'd5, 8'b0, 8'hff, 3'b0, state_q == Answer, 1'b0, 11'd16,
                       state_q == Answer ? addr_q + 64'd64 : addr_q};
  assign rc_ready_o = 1'b1;

  assign mac_rx_ready_o = 1'b1;
  assign mac_tx_valid_o = tx_q;
  assign mac_tx_last_o  = tx_beat_q == 4'(Beats - 1);
  assign mac_tx_keep_o  = '1;
  assign mac_tx_data_o  = {Lanes{tx_byte_q}};

  always_ff @(posedge clk_i) begin
    if (write) begin
      if (cq_addr[7] == 1'b0) begin
        if (cq_hdr_i[74:64] == 11'd2) regs_q[cq_addr[6:3]] <= value;
        else if (cq_addr[2]) regs_q[cq_addr[6:3]][63:32] <= value[31:0];
        else regs_q[cq_addr[6:3]][31:0] <= value[31:0];
      end else if (cq_addr[7:0] == 8'h80) begin
        addr_q  <= value;
        state_q <= Ask;
        got_q   <= '0;
      end else if (port_up_i) begin
        tx_q      <= 1'b1;
        tx_byte_q <= value[7:0];
        tx_beat_q <= '0;
      end
    end
    if (cq_valid_i && cq_ready_o && !cq_hdr_i[76]) begin
      read_q     <= 1'b1;
      read_hdr_q <= cq_hdr_i;
    end
    if (cc_valid_o && cc_ready_i) read_q <= 1'b0;

    beat_q <= '0;
    if (state_q == Ask && rq_valid_o && rq_ready_i) state_q <= Wait;
    if (rc_valid_i) begin
      buf_q[8*got_q[5:0]+:DataW] <= rc_data_i;
      if (got_q + 13'(Lanes) == 13'd64) state_q <= Answer;
      got_q <= got_q + 13'(Lanes);
    end
    if (state_q == Answer) begin
      beat_q <= (rq_valid_o && rq_ready_i) ? beat_q + 4'd1 : beat_q;
      if (rq_valid_o && rq_ready_i && rq_last_o) begin
        state_q <= Idle;
        beat_q  <= '0;
      end
    end

    if (mac_tx_valid_o && mac_tx_ready_i) begin
      tx_beat_q <= tx_beat_q + 4'd1;
      if (mac_tx_last_o) tx_q <= 1'b0;
    end
    if (mac_rx_valid_i) begin
      bytes_q <= bytes_q + 32'($countones(mac_rx_keep_i));
      if (mac_rx_last_i) frames_q <= frames_q + 32'd1;
    end
    if (rst_i) begin
      state_q  <= Idle;
      read_q   <= 1'b0;
      tx_q     <= 1'b0;
      regs_q   <= '0;
      frames_q <= '0;
      bytes_q  <= '0;
    end
  end

  always_ff @(posedge clk_i)
    if (!rst_i) assert (!(mac_rx_valid_i && mac_rx_err_i)) else $error("the stub takes no damaged frames");
endmodule
