// SPDX-License-Identifier: Apache-2.0
// Both kinds of rnic_icrc beside each other: one is given whole packets and checks, the other is given them without
// their last four bytes and makes.
module icrc_top #(
    parameter int unsigned DataW = 64,
    localparam int unsigned CntW = $clog2(DataW / 8 + 1)
) (
    input  logic             clk_i,
    input  logic             rst_i,
    input  logic             check_valid_i,
    input  logic             check_first_i,
    input  logic             check_last_i,
    input  logic [DataW-1:0] check_data_i,
    input  logic [CntW-1:0]  check_cnt_i,
    output logic             check_valid_o,
    output logic             check_ok_o,
    input  logic             make_valid_i,
    input  logic             make_first_i,
    input  logic             make_last_i,
    input  logic [DataW-1:0] make_data_i,
    input  logic [CntW-1:0]  make_cnt_i,
    output logic             make_valid_o,
    output logic [31:0]      make_crc_o
);
  rnic_icrc #(.DataW(DataW), .Check(1'b1)) u_check (
      .clk_i, .rst_i, .valid_i(check_valid_i), .first_i(check_first_i), .last_i(check_last_i), .data_i(check_data_i),
      .cnt_i(check_cnt_i), .valid_o(check_valid_o), .ok_o(check_ok_o), .crc_o()
  );
  rnic_icrc #(.DataW(DataW), .Check(1'b0)) u_make (
      .clk_i, .rst_i, .valid_i(make_valid_i), .first_i(make_first_i), .last_i(make_last_i), .data_i(make_data_i),
      .cnt_i(make_cnt_i), .valid_o(make_valid_o), .ok_o(), .crc_o(make_crc_o)
  );
endmodule
