// SPDX-License-Identifier: Apache-2.0
// Transmitter of a serial line: 8 data bits, least significant first, no parity, one stop bit; Div clock cycles a bit.
// Contract: ready_o is high when the line is free for the next byte; a byte is on the line for 10 Div cycles. tx_o is a register.
module rnic_uart_tx #(
    parameter int unsigned Div = 108
) (
    input  logic       clk_i,
    input  logic       rst_i,
    input  logic       valid_i,
    output logic       ready_o,
    input  logic [7:0] data_i,
    output logic       tx_o
);
  localparam int unsigned CntW = $clog2(Div);
  logic [CntW-1:0] cnt_q;
  logic [8:0] shift_q;       // data and stop bit, filled up with ones
  logic [3:0] left_q;        // bits still to go, the one on the line included
  logic tick;
  assign tick    = cnt_q == '0;
  assign ready_o = left_q == '0;

  always_ff @(posedge clk_i) begin
    cnt_q <= tick ? CntW'(Div - 1) : cnt_q - CntW'(1);
    if (ready_o) begin
      cnt_q <= CntW'(Div - 1);
      tx_o  <= 1'b1;
      if (valid_i) begin
        tx_o    <= 1'b0;
        shift_q <= {1'b1, data_i};
        left_q  <= 4'd10;
      end
    end else if (tick) begin
      left_q  <= left_q - 4'd1;
      shift_q <= {1'b1, shift_q[8:1]};
      tx_o    <= shift_q[0];
    end
    if (rst_i) begin
      left_q <= '0;
      tx_o   <= 1'b1;
    end
  end
endmodule
