// SPDX-License-Identifier: Apache-2.0
// Receiver of a serial line: 8 data bits, least significant first, no parity, one stop bit; Div clock cycles a bit (at least 4).
// Contract: rx_i is asynchronous (two registers here). valid_o pulses with each byte; with err_o when its stop bit is missing (a break,
// another rate, a cable pulled). A start bit that is gone at its middle is none. A byte is told within half a bit after its
// stop bit's middle; nothing holds it back.
module rnic_uart_rx #(
    parameter int unsigned Div = 108
) (
    input  logic       clk_i,
    input  logic       rst_i,
    input  logic       rx_i,
    output logic       valid_o,
    output logic       err_o,
    output logic [7:0] data_o
);
  if (Div < 4) begin : g_div
    $fatal(1, "Div must be at least 4");
  end
  localparam int unsigned CntW = $clog2(Div);
  (* async_reg = "true" *) logic [1:0] sync_q;
  logic line;
  assign line = sync_q[1];

  typedef enum logic [1:0] {
    U_IDLE,    // line is high
    U_START,   // middle of the start bit
    U_BITS,    // data, then stop
    U_BREAK    // the line must come back first
  } state_e;
  state_e state_q;
  logic [CntW-1:0] cnt_q;
  logic [3:0] bit_q;
  logic tick;
  assign tick = cnt_q == '0;

  always_ff @(posedge clk_i) begin
    sync_q  <= {sync_q[0], rx_i};
    valid_o <= 1'b0;
    err_o   <= 1'b0;
    cnt_q   <= tick ? CntW'(Div - 1) : cnt_q - CntW'(1);
    unique case (state_q)
      U_IDLE: begin
        cnt_q <= CntW'(Div / 2 - 1);
        bit_q <= '0;
        if (!line) state_q <= U_START;
      end
      U_START: if (tick) state_q <= line ? U_IDLE : U_BITS;
      U_BITS:
      if (tick) begin
        bit_q <= bit_q + 4'd1;
        if (bit_q == 4'd8) begin
          valid_o <= 1'b1;
          err_o   <= !line;
          state_q <= line ? U_IDLE : U_BREAK;
        end else begin
          data_o <= {line, data_o[7:1]};
        end
      end
      default: if (line) state_q <= U_IDLE;
    endcase
    if (rst_i) begin
      sync_q  <= '1;
      state_q <= U_BREAK;
      valid_o <= 1'b0;
    end
  end
endmodule
