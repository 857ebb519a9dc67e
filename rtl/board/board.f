// File list of the board tops, beside that of the core (rtl/rnic.f). They use primitives of the ECP5: Yosys has shells of them, their behaviour for
// simulation stands in testbench/tops/ecp5.
rtl/board/rnic_ecp5_pll.sv
rtl/board/rnic_loopback.sv
rtl/board/rnic_report.sv
rtl/board/rnic_rgmii_rx.sv
rtl/board/rnic_rgmii_tx.sv
rtl/board/rnic_board.sv
rtl/board/ecpix5.sv
rtl/board/versa5g.sv
