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


def core_mhz():
    """The clock of a board's core, from spec/."""
    consts = {c["name"]: c.get("value") for c in tomllib.loads((ROOT / "spec/params.toml").read_text())["const"]}
    return consts["BOARD_VCO_HZ"] / consts["BOARD_SYS_DIV"] / 1e6


def ports(text):
    """Bits of the ports of the first module, as an LPF names them."""
    header = re.sub(r"//[^\n]*", "", text)
    header = header[header.index(") (") if ") (" in header else header.index("("):]
    header = header[: header.index(");")]
    bits = []
    for width, name in re.findall(r"\b(?:input|output|inout)\s+(?:logic|wire)\s*(?:\[(\d+):0\])?\s*(\w+)", header):
        bits += [f"{name}[{i}]" for i in range(int(width) + 1)] if width else [name]
    return bits


def faults_of(name, top, lpf):
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
    core = net_clocks.get("clk_sys")
    if core and abs(float(core) - core_mhz()) > 0.001:
        faults.append(f"clk_sys has {core} MHz, spec/params.toml says {core_mhz():.3f}")
    faults += [f"{p} has a FREQUENCY, but is no clock" for p in port_clocks if p not in wanted or not CLOCK_PORT.match(p)]
    rest = re.sub(r'(LOCATE COMP|IOBUF PORT|FREQUENCY (PORT|NET)|BLOCK (RESETPATHS|ASYNCPATHS))[^;]*;', "", lpf).split()
    if rest:
        faults.append(f"not understood: {' '.join(rest[:8])}")
    return [f"constraints/{name}.lpf: {f}" for f in faults]


def texts(board):
    return (ROOT / f"rtl/board/{board}.sv").read_text(), (ROOT / f"constraints/{board}.lpf").read_text()


def check(board):
    """What is wrong with a board's constraints, a line each."""
    return faults_of(board, *texts(board))


def self_test(board):
    """Faults that must be found, each put into a copy."""
    top, lpf = texts(board)
    cases = {
        "a port without a pin": lpf.replace('LOCATE COMP "uart_tx_o"', 'LOCATE COMP "uart_o"'),
        "a bit of a vector without a pin": re.sub(r'LOCATE COMP "eth_txd_o\[2\]"[^\n]*\n', "", lpf),
        "a port without a standard": re.sub(r'IOBUF PORT "eth_mdio_io"[^\n]*\n', "", lpf),
        "a pin twice": re.sub(r'(COMP "eth_rxd_i\[1\]" SITE )"\w+"', r'\1"' + re.search(r'"eth_rxd_i\[0\]" SITE "(\w+)"', lpf)[1] + '"', lpf),
        "an input clock without a frequency": re.sub(r'FREQUENCY PORT "eth_rx_clk_i"[^\n]*\n', "", lpf),
        "a PLL clock without a frequency": re.sub(r'FREQUENCY NET "clk_gtx"[^\n]*\n', "", lpf),
        "a core's clock that is not the PLL's": re.sub(r'"clk_sys" [\d.]+', '"clk_sys" 50', lpf),
        "a line that nobody reads": lpf + 'LOCAT COMP "x" SITE "A1";\n',
    }
    return [f"{board}: {name} is not found" for name, text in cases.items() if text == lpf or not faults_of(board, top, text)]


def main():
    known = list(tomllib.loads((ROOT / "constraints/boards.toml").read_text()))
    args = sys.argv[1:]
    boards = [a for a in args if not a.startswith("-")] or known
    faults = []
    for board in boards:
        faults += self_test(board) if "--self-test" in args else check(board)
        top, _ = texts(board)
        print(f"check_lpf: {board}, {len(ports(top))} pins" + (", seeded faults" if "--self-test" in args else ""))
    print("\n".join(faults), end="\n" if faults else "", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
