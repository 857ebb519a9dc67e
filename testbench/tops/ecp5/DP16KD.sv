// SPDX-License-Identifier: Apache-2.0
// Block RAM of 18 Kbit (FPGA-TN-02204): two ports of 1, 2, 4, 9 or 18 bits, or, with 36 bits, port A that writes and port B that reads. Words of 18 and 36
// bits are written by bytes of nine, which the lowest address bits enable. What a port reads while it writes is told by WRITEMODE. Output registers and
// contents from the start are not there: a netlist that asks for contents does not build. A reset works with the clock (RESETMODE "SYNC"); one that is
// asynchronous must never come.
/* verilator lint_off UNUSEDSIGNAL */  // without output registers their enables have no effect
module DP16KD #(
    parameter int DATA_WIDTH_A = 18,
    parameter int DATA_WIDTH_B = 18,
    parameter string REGMODE_A = "NOREG",
    parameter string REGMODE_B = "NOREG",
    parameter string RESETMODE = "SYNC",
    parameter string ASYNC_RESET_RELEASE = "SYNC",
    parameter string WRITEMODE_A = "NORMAL",
    parameter string WRITEMODE_B = "NORMAL",
    parameter string CSDECODE_A = "0b000",
    parameter string CSDECODE_B = "0b000",
    parameter string CLKAMUX = "CLKA",
    parameter string CLKBMUX = "CLKB",
    parameter string GSR = "AUTO"
) (
    input  logic DIA0, DIA1, DIA2, DIA3, DIA4, DIA5, DIA6, DIA7, DIA8, DIA9, DIA10, DIA11, DIA12, DIA13, DIA14, DIA15, DIA16, DIA17,
    input  logic ADA0, ADA1, ADA2, ADA3, ADA4, ADA5, ADA6, ADA7, ADA8, ADA9, ADA10, ADA11, ADA12, ADA13,
    input  logic CEA, OCEA, CLKA, WEA, RSTA, CSA2, CSA1, CSA0,
    output logic DOA0, DOA1, DOA2, DOA3, DOA4, DOA5, DOA6, DOA7, DOA8, DOA9, DOA10, DOA11, DOA12, DOA13, DOA14, DOA15, DOA16, DOA17,
    input  logic DIB0, DIB1, DIB2, DIB3, DIB4, DIB5, DIB6, DIB7, DIB8, DIB9, DIB10, DIB11, DIB12, DIB13, DIB14, DIB15, DIB16, DIB17,
    input  logic ADB0, ADB1, ADB2, ADB3, ADB4, ADB5, ADB6, ADB7, ADB8, ADB9, ADB10, ADB11, ADB12, ADB13,
    input  logic CEB, OCEB, CLKB, WEB, RSTB, CSB2, CSB1, CSB0,
    output logic DOB0, DOB1, DOB2, DOB3, DOB4, DOB5, DOB6, DOB7, DOB8, DOB9, DOB10, DOB11, DOB12, DOB13, DOB14, DOB15, DOB16, DOB17
);
  initial begin
    if (REGMODE_A != "NOREG" || REGMODE_B != "NOREG" || CSDECODE_A != "0b000" ||
        CSDECODE_B != "0b000" || CLKAMUX != "CLKA" || CLKBMUX != "CLKB" || GSR == "ENABLED")
      $error("DP16KD: a mode that this model does not have");
  end
  logic [8:0] mem[2048];
  logic [35:0] di;
  logic [17:0] dia, dib;
  logic [13:0] ada, adb;
  logic [35:0] qb;
  logic [17:0] qa;
  assign dia = {DIA17, DIA16, DIA15, DIA14, DIA13, DIA12, DIA11, DIA10, DIA9, DIA8, DIA7, DIA6, DIA5, DIA4, DIA3, DIA2, DIA1, DIA0};
  assign dib = {DIB17, DIB16, DIB15, DIB14, DIB13, DIB12, DIB11, DIB10, DIB9, DIB8, DIB7, DIB6, DIB5, DIB4, DIB3, DIB2, DIB1, DIB0};
  assign di  = {dib, dia};
  assign ada = {ADA13, ADA12, ADA11, ADA10, ADA9, ADA8, ADA7, ADA6, ADA5, ADA4, ADA3, ADA2, ADA1, ADA0};
  assign adb = {ADB13, ADB12, ADB11, ADB10, ADB9, ADB8, ADB7, ADB6, ADB5, ADB4, ADB3, ADB2, ADB1, ADB0};
  assign {DOA17, DOA16, DOA15, DOA14, DOA13, DOA12, DOA11, DOA10, DOA9, DOA8, DOA7, DOA6, DOA5, DOA4, DOA3, DOA2, DOA1, DOA0} = (DATA_WIDTH_B == 36) ? qb[17:0] : qa;
  assign {DOB17, DOB16, DOB15, DOB14, DOB13, DOB12, DOB11, DOB10, DOB9, DOB8, DOB7, DOB6, DOB5, DOB4, DOB3, DOB2, DOB1, DOB0} = (DATA_WIDTH_B == 36) ? qb[35:18] : qb[17:0];

  // The nine bits that hold it, and where in them.
  function automatic logic [35:0] look(logic [13:0] a, int w);
    unique case (w)
      36: return {mem[{a[13:5], 2'd3}], mem[{a[13:5], 2'd2}], mem[{a[13:5], 2'd1}], mem[{a[13:5], 2'd0}]};
      18: return 36'({mem[{a[13:4], 1'b1}], mem[{a[13:4], 1'b0}]});
      9: return 36'(mem[a[13:3]]);
      4: return 36'(mem[a[13:3]][4*a[2]+:4]);
      2: return 36'(mem[a[13:3]][2*a[2:1]+:2]);
      default: return 36'(mem[a[13:3]][4'(a[2:0])]);
    endcase
  endfunction
  task automatic put(logic [13:0] a, int w, logic [35:0] d);
    unique case (w)
      36: for (int i = 0; i < 4; i++) if (a[i]) mem[{a[13:5], 2'(i)}] <= d[9*i+:9];
      18: for (int i = 0; i < 2; i++) if (a[i]) mem[{a[13:4], 1'(i)}] <= d[9*i+:9];
      9: mem[a[13:3]] <= d[8:0];
      4: mem[a[13:3]][4*a[2]+:4] <= d[3:0];
      2: mem[a[13:3]][2*a[2:1]+:2] <= d[1:0];
      default: mem[a[13:3]][4'(a[2:0])] <= d[0];
    endcase
  endtask
  // What is read of a word that is being written by the same port: nothing new, the new word, or the old one.
  always_ff @(posedge CLKA) begin
    if ((RSTA || RSTB) && RESETMODE != "SYNC") $error("DP16KD: an asynchronous reset, which this model does not have");
    if (CEA && !CSA0 && !CSA1 && !CSA2) begin
      if (WEA) put(ada, DATA_WIDTH_A, di);
      if (RSTA) qa <= '0;
      else if (!WEA || WRITEMODE_A == "READBEFOREWRITE") qa <= 18'(look(ada, DATA_WIDTH_A));
      else if (WRITEMODE_A == "WRITETHROUGH") qa <= dia;
    end
  end
  always_ff @(posedge CLKB) begin
    if (CEB && !CSB0 && !CSB1 && !CSB2) begin
      if (WEB) put(adb, DATA_WIDTH_B, 36'(dib));
      if (RSTB) qb <= '0;
      else if (!WEB || WRITEMODE_B == "READBEFOREWRITE") qb <= look(adb, DATA_WIDTH_B);
      else if (WRITEMODE_B == "WRITETHROUGH") qb <= 36'(dib);
    end
  end
endmodule
