#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the constraints of the boards: every bit of every port of the top has a pin and an electrical standard, no pin twice, every clock a frequency.

    check_lpf.py [BOARD...]      --self-test: each kind of fault is put into a copy and must be found
"""
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Clocks: ports that are clocks, and the nets of the PLL in every top.
CLOCK_PORT = re.compile(r"^(clk\w*|\w*_rx_clk)_i$")
CLOCK_NETS = ["clk_gtx", "clk_sys"]


PLL = "rtl/board/rnic_ecp5_pll.sv"
# MHz of 1000BASE-T's GMII, either way.
LINE_MHZ = 125


def clocks_of(pll, oscillator):
    """What the PLL makes of an oscillator's MHz: clk_gtx and clk_sys; and faults, when its VCO is not that of spec/."""
    consts = {c["name"]: c.get("value") for c in tomllib.loads((ROOT / "spec/params.toml").read_text())["const"]}
    divider = {name: int(value) for name, value in re.findall(r"\.(CLKI_DIV|CLKFB_DIV|CLKOP_DIV)\((\d+)\)", pll)}
    missing = {"CLKI_DIV", "CLKFB_DIV", "CLKOP_DIV"} - divider.keys()
    if missing:
        raise SystemExit(f"{PLL}: no number is seen for {', '.join(sorted(missing))}, so its clocks cannot be checked: write .NAME(number)")
    gtx = oscillator / divider["CLKI_DIV"] * divider["CLKFB_DIV"]  # fed back from CLKOP
    vco = gtx * divider["CLKOP_DIV"]
    wanted = consts["BOARD_VCO_HZ"] / 1e6
    return {"clk_gtx": gtx, "clk_sys": vco / consts["BOARD_SYS_DIV"]}, [] if vco == wanted else [f"{PLL}: the VCO has {vco} MHz, spec/params.toml says {wanted}"]


def ports(text):
    """Bits of the ports of the first module, as an LPF names them."""
    header = re.sub(r"//[^\n]*", "", text)
    header = header[header.index(") (") if ") (" in header else header.index("("):]
    header = header[: header.index(");")]
    bits = []
    for width, name in re.findall(r"\b(?:input|output|inout)\s+(?:logic|wire)\s*(?:\[(\d+):0\])?\s*(\w+)", header):
        bits += [f"{name}[{i}]" for i in range(int(width) + 1)] if width else [name]
    return bits


def faults_of(name, top, lpf, pll):
    lpf = re.sub(r"#[^\n]*", "", lpf)
    sites = re.findall(r'LOCATE COMP "([^"]+)" SITE "(\w+)";', lpf)
    types = re.findall(r'IOBUF PORT "([^"]+)" IO_TYPE=\w+[^;]*;', lpf)
    port_clocks = dict(re.findall(r'FREQUENCY PORT "([^"]+)" ([\d.]+) MHZ;', lpf))
    net_clocks = dict(re.findall(r'FREQUENCY NET "([^"]+)" ([\d.]+) MHZ;', lpf))
    wanted = ports(top)
    faults = []
    if not wanted:
        faults.append("the top has no ports")
    located = [p for p, _ in sites]
    for what, there in (("pin", located), ("IO_TYPE", types)):
        faults += [f"port {p} has no {what}" for p in wanted if p not in there]
        faults += [f"{p} has a {what}, but is no port" for p in there if p not in wanted]
        faults += [f"{p} has two of {what}" for p in sorted(set(there)) if there.count(p) > 1]
    pins = [s for _, s in sites]
    faults += [f"pin {s} is given twice" for s in sorted(set(pins)) if pins.count(s) > 1]
    faults += [f"clock {p} has no FREQUENCY" for p in wanted if CLOCK_PORT.match(p) and p not in port_clocks]
    faults += [f"clock {n} has no FREQUENCY" for n in CLOCK_NETS if n not in net_clocks]
    made, wrong = clocks_of(pll, float(port_clocks.get("clk100_i", 0)))
    told = {n: float(mhz) for n, mhz in net_clocks.items()} | {p: float(mhz) for p, mhz in port_clocks.items() if p.endswith("rx_clk_i")}
    faults += wrong + [f"{n} has {mhz} MHz, it is {made.get(n, LINE_MHZ):.3f}" for n, mhz in told.items() if abs(mhz - made.get(n, LINE_MHZ)) > 0.001]
    if made["clk_gtx"] != LINE_MHZ:
        faults.append(f"{PLL}: clk_gtx is {made['clk_gtx']} MHz, GMII wants {LINE_MHZ}")
    faults += [f"{p} has a FREQUENCY, but is no clock" for p in port_clocks if p not in wanted or not CLOCK_PORT.match(p)]
    rest = re.sub(r'(LOCATE COMP|IOBUF PORT|FREQUENCY (PORT|NET)|BLOCK (RESETPATHS|ASYNCPATHS))[^;]*;', "", lpf).split()
    if rest:
        faults.append(f"not understood: {' '.join(rest[:8])}")
    return [f"constraints/{name}.lpf: {f}" for f in faults]


def texts(board):
    return (ROOT / f"rtl/board/{board}.sv").read_text(), (ROOT / f"constraints/{board}.lpf").read_text(), (ROOT / PLL).read_text()


def check(board):
    """What is wrong with a board's constraints, a line each."""
    return faults_of(board, *texts(board))


def self_test(board):
    """Faults that must be found, each put into a copy."""
    top, lpf, pll = texts(board)
    cases = {
        "a port without a pin": lpf.replace('LOCATE COMP "uart_tx_o"', 'LOCATE COMP "uart_o"'),
        "a bit of a vector without a pin": re.sub(r'LOCATE COMP "eth_txd_o\[2\]"[^\n]*\n', "", lpf),
        "a port without a standard": re.sub(r'IOBUF PORT "eth_mdio_io"[^\n]*\n', "", lpf),
        "a pin twice": re.sub(r'(COMP "eth_rxd_i\[1\]" SITE )"\w+"', r'\1"' + re.search(r'"eth_rxd_i\[0\]" SITE "(\w+)"', lpf)[1] + '"', lpf),
        "an input clock without a frequency": re.sub(r'FREQUENCY PORT "eth_rx_clk_i"[^\n]*\n', "", lpf),
        "a PLL clock without a frequency": re.sub(r'FREQUENCY NET "clk_gtx"[^\n]*\n', "", lpf),
        "a core's clock that is not the PLL's": re.sub(r'"clk_sys" [\d.]+', '"clk_sys" 50', lpf),
        "a transmit clock that is not the PLL's": re.sub(r'"clk_gtx" [\d.]+', '"clk_gtx" 100', lpf),
        "a receive clock that is not GMII's": re.sub(r'"eth_rx_clk_i" [\d.]+', '"eth_rx_clk_i" 25', lpf),
        "an oscillator that the PLL was not made for": re.sub(r'"clk100_i" [\d.]+', '"clk100_i" 50', lpf),
        "a line that nobody reads": lpf + 'LOCAT COMP "x" SITE "A1";\n',
    }
    missed = [f"{board}: {name} is not found" for name, text in cases.items() if text == lpf or not faults_of(board, top, text, pll)]
    plls = {"another VCO": pll.replace(".CLKOP_DIV(6)", ".CLKOP_DIV(5)"), "another feedback": pll.replace(".CLKFB_DIV(5)", ".CLKFB_DIV(4)")}
    return missed + [f"{board}: {name} is not found" for name, text in plls.items() if text == pll or not faults_of(board, top, lpf, text)]


def main():
    known = list(tomllib.loads((ROOT / "constraints/boards.toml").read_text()))
    args = sys.argv[1:]
    boards = [a for a in args if not a.startswith("-")] or known
    faults = []
    for board in boards:
        faults += self_test(board) if "--self-test" in args else check(board)
        top, *_ = texts(board)
        print(f"check_lpf: {board}, {len(ports(top))} pins" + (", seeded faults" if "--self-test" in args else ""))
    print("\n".join(faults), end="\n" if faults else "", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
