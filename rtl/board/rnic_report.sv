// SPDX-License-Identifier: Apache-2.0
// Tells numbers over a serial line: again and again a line of hexadecimal words, "<word> <word> ... <word>\r\n", the highest first.
// Contract: a line begins every Period cycles with the words as they stand then; it takes (5 * NumWord + 1) characters of 10 * Div cycles, less than
// Period.
module rnic_report #(
    parameter int unsigned NumWord = 4,      // of 16 bits
    parameter int unsigned Div = 50,         // clock cycles a bit
    parameter int unsigned Period = 50_000_000
) (
    input  logic                       clk_i,
    input  logic                       rst_i,
    input  logic [NumWord-1:0][15:0]   words_i,
    output logic                       tx_o
);
  if ((5 * NumWord + 1) * 10 * Div >= Period) begin : g_period
    $fatal(1, "a line does not fit into its period");
  end
  localparam int unsigned WaitW = $clog2(Period);
  logic [WaitW-1:0] wait_q;
  logic [NumWord-1:0][15:0] shift_q;
  logic [$clog2(NumWord + 1)-1:0] left_q;   // words
  logic [2:0] pos_q;                        // digits, then a separator; after the last word two
  logic busy_q, ready;
  logic [3:0] nibble;
  logic [7:0] char;
  assign nibble = shift_q[NumWord-1][15:12];
  always_comb begin
    if (pos_q < 3'd4) char = (nibble < 4'd10) ? 8'h30 + 8'(nibble) : 8'h57 + 8'(nibble);
    else if (left_q != $bits(left_q)'(1)) char = 8'h20;
    else char = (pos_q == 3'd4) ? 8'h0d : 8'h0a;
  end
  rnic_uart_tx #(.Div(Div)) u_tx (.clk_i, .rst_i, .valid_i(busy_q), .ready_o(ready), .data_i(char), .tx_o);

  always_ff @(posedge clk_i) begin
    wait_q <= (wait_q == '0) ? WaitW'(Period - 1) : wait_q - WaitW'(1);
    if (!busy_q) begin
      pos_q <= '0;
      if (wait_q == '0) begin
        busy_q  <= 1'b1;
        shift_q <= words_i;
        left_q  <= $bits(left_q)'(NumWord);
      end
    end else if (ready) begin
      if (pos_q < 3'd4) shift_q <= shift_q << 4;
      pos_q <= pos_q + 3'd1;
      if (pos_q == 3'd4 && left_q != $bits(left_q)'(1)) begin
        pos_q  <= '0;
        left_q <= left_q - $bits(left_q)'(1);
      end
      if (pos_q == 3'd5) busy_q <= 1'b0;
    end
    if (rst_i) begin
      busy_q <= 1'b0;
      wait_q <= WaitW'(Period - 1);
    end
  end
endmodule
