#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lists every clock-domain crossing of the board tops and fails on one that is not of a known kind.

    cdc.py [BOARD...] [--image loopback|rnic|all] [--list]
    cdc.py --self-test          bad crossings, each put into a copy of its file, must be found

The netlist is Yosys's, flattened, before anything is optimised. A crossing is a flip-flop, a write port of a memory or a register of a pad whose inputs
are reached through logic by one of another clock, by a pin that is no clock, or by the lock of the PLL. Known kinds: KINDS below. What is found goes to out/cdc/.
"""
import argparse
import importlib.util
import json
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "out" / "cdc"

# Sequential cells of the netlist: clock, inputs that the clock samples, asynchronous inputs, outputs.
FF = {
    "$dff": ("CLK", ["D"], [], ["Q"]), "$dffe": ("CLK", ["D", "EN"], [], ["Q"]), "$sdff": ("CLK", ["D", "SRST"], [], ["Q"]),
    "$sdffe": ("CLK", ["D", "SRST", "EN"], [], ["Q"]), "$sdffce": ("CLK", ["D", "SRST", "EN"], [], ["Q"]),
    "$adff": ("CLK", ["D"], ["ARST"], ["Q"]), "$adffe": ("CLK", ["D", "EN"], ["ARST"], ["Q"]),
    "$aldff": ("CLK", ["D"], ["ALOAD", "AD"], ["Q"]), "$aldffe": ("CLK", ["D", "EN"], ["ALOAD", "AD"], ["Q"]),
    "$memwr_v2": ("CLK", ["ADDR", "DATA", "EN"], [], []),
    "IDDRX1F": ("SCLK", ["D", "RST"], [], ["Q0", "Q1"]), "ODDRX1F": ("SCLK", ["D0", "D1", "RST"], [], []),
}
IGNORED = {"$check", "$print", "$scopeinfo", "$meminit_v2", "$assert", "$cover", "$assume"}
OPAQUE = {"EHXPLLL"}     # its outputs are clocks, and a lock that is asynchronous

KINDS = {
    "bit": "a bit, straight from a register or a pin, into rnic_sync_bit",
    "gray": "a Gray coded pointer of rnic_async_fifo into its rnic_sync_bit",
    "fifo": "a word of rnic_async_fifo's memory into its output register",
    "word": "the held word of rnic_sync_word into its output register",
    "reset": "a pin or the PLL's lock into the asynchronous input of rnic_reset_sync",
    "uart": "the pin of the serial line into the two registers of rnic_uart_rx",
    "pad": "a pin into the input register of its pad, whose clock comes from the same PHY",
}


def listed(path):
    lines = (ROOT / path).read_text().splitlines()
    return [l.strip() for l in lines if l.strip() and not l.strip().startswith("//")]


def netlist(board, image, changed=None):
    """The flattened module. `changed`: file -> text that takes its place."""
    files = listed("rtl/rnic.f") + listed("rtl/board/board.f") + ["rtl/board/ecp5_shells.v"]
    shells = importlib.util.find_spec("pyosys").submodule_search_locations[0] + "/share/ecp5/cells_bb.v"
    with tempfile.TemporaryDirectory() as tmp:
        for file, text in (changed or {}).items():
            copy = Path(tmp) / Path(file).name
            copy.write_text(text)
            files[files.index(file)] = str(copy)
        out, script = Path(tmp) / "flat.json", Path(tmp) / "flat.ys"
        script.write_text(
            f"read_slang --unroll-limit 100000 --top {board} -G Loopback={int(image == 'loopback')} {' '.join(files)} {shells}\n"
            f"proc\nflatten\nopt_clean\nwrite_json {out}\n"
        )
        done = subprocess.run([sys.executable, ROOT / "scripts" / "yosys.py", "-q", "-s", script], cwd=ROOT, capture_output=True, text=True)
        if not out.exists():
            sys.exit(f"cdc: Yosys cannot read {board}:\n{(done.stdout + done.stderr)[-2000:]}")
        return json.loads(out.read_text())["modules"][board]


class Netlist:
    """Who drives what, and from which clocks."""

    def __init__(self, module):
        self.cells = module["cells"]
        self.driver = {}          # bit -> (cell, port), or (None, name of a pin)
        self.clock_names = {}
        for name, port in module["ports"].items():
            for bit in port["bits"] if port["direction"] != "output" else []:
                self.driver[bit] = (None, name)
        self.writers = {}         # memory -> its write ports
        for name, cell in self.cells.items():
            if cell["type"] == "$memwr_v2":
                self.writers.setdefault(cell["parameters"]["MEMID"], []).append(name)
            for port, bits in cell["connections"].items():
                if cell["port_directions"].get(port) == "output" or (cell["type"] == "TRELLIS_IO" and port == "O"):
                    for bit in bits:
                        self.driver.setdefault(bit, (name, port))
        # Anything that has a clock and is not understood must not be passed over.
        for name, cell in self.cells.items():
            known = cell["type"] in FF or cell["type"] in IGNORED or cell["type"] in OPAQUE or cell["type"] == "$memrd_v2"
            if not known and any(p in cell["connections"] for p in ("CLK", "SCLK", "ECLK", "GCLK")):
                sys.exit(f"cdc: {name}: no rule for cells of type {cell['type']}")
        self.nets = {}
        for name, net in module["netnames"].items():
            for i, bit in enumerate(net["bits"]):
                label = name if len(net["bits"]) == 1 else f"{name}[{i}]"
                if bit not in self.nets or len(label) < len(self.nets[bit]):
                    self.nets[bit] = label
        self.memo = {}

    def clock(self, cell):
        """Name of the clock net of a sequential cell."""
        bit = self.cells[cell]["connections"][FF[self.cells[cell]["type"]][0]][0]
        return self.nets.get(bit, str(bit))

    def source(self, bit):
        """What a bit is: a constant (None), ("pin", name), ("ff", cell), ("lock", cell), ("mem", memory), or ("logic", cell)."""
        if isinstance(bit, str) or bit not in self.driver:
            return None
        cell, port = self.driver[bit]
        if cell is None:
            return ("pin", port)
        kind = self.cells[cell]["type"]
        if kind in FF:
            return ("ff", cell)
        if kind in OPAQUE:
            return ("lock", cell)
        if kind == "TRELLIS_IO":
            return self.source(self.cells[cell]["connections"]["B"][0])
        return ("logic", cell)

    def behind(self, cell):
        """All that reaches a cell of logic: sources, as a set."""
        if cell in self.memo:
            return self.memo[cell]
        # Depth first without recursion; a loop of logic gets what its other members have.
        order, seen, stack = [], set(), [cell]
        while stack:
            c = stack.pop()
            if c in seen or c in self.memo:
                continue
            seen.add(c)
            order.append(c)
            stack.extend(s[1] for s in self.inputs(c) if s[0] == "logic")
        for _ in range(2):
            for c in reversed(order):
                found = self.memo.get(c, frozenset())
                for s in self.inputs(c):
                    found |= {s} if s[0] != "logic" else self.memo.get(s[1], frozenset())
                self.memo[c] = found
        return self.memo[cell]

    def inputs(self, cell):
        c = self.cells[cell]
        found = set()
        for port, bits in c["connections"].items():
            if c["port_directions"].get(port) == "output":
                continue
            found |= {s for s in map(self.source, bits) if s}
        if c["type"] == "$memrd_v2":
            if int(c["parameters"]["CLK_ENABLE"], 2):
                sys.exit(f"cdc: {cell}: a read port with a clock of its own")
            found.add(("mem", c["parameters"]["MEMID"]))
        return found

    def domain(self, source):
        kind, what = source
        if kind == "ff":
            return self.clock(what)
        if kind == "mem":
            clocks = {self.clock(w) for w in self.writers.get(what, [])}
            return clocks.pop() if len(clocks) == 1 else "no writer" if not clocks else "several clocks"
        return f"{kind} {what}"


def place(name, cell):
    """Instance, register and module of a cell. A module's file has its name."""
    path = name.split("$")[-1] if name.startswith("$driver$") else ""
    src = cell["attributes"].get("src", "")
    return path.rsplit(".", 1)[0], path.rsplit(".", 1)[-1], Path(src.split(":")[0]).stem


def crossings(net):
    """(kind or None, from, clock, to, clock), a line for each pair."""
    found = []
    for name, cell in net.cells.items():
        if cell["type"] not in FF:
            continue
        _, sampled, asynchronous, _ = FF[cell["type"]]
        clock = net.clock(name)
        inst, reg, module = place(name, cell)
        for ports, is_async in ((sampled, False), (asynchronous, True)):
            direct, logic, by_logic = set(), set(), set()
            for port in ports:
                for bit in cell["connections"][port]:
                    s = net.source(bit)
                    if s and s[0] == "logic":
                        by_logic.add(s[1])
                    elif s:
                        direct.add(s)
            for c in by_logic:
                logic |= net.behind(c)
            for source in sorted(direct | logic):
                home = net.domain(source)
                if home in (clock, "no writer") and not is_async:
                    continue
                kind = judge(net, cell, name, inst, reg, module, source, source in logic, is_async)
                label = source[1].split("$")[-1] if source[0] in ("ff", "mem") else f"{source[0]} {source[1]}"
                found.append((kind, label, home, f"{inst}.{reg}" if reg else name, clock))
    return found


def judge(net, cell, name, inst, reg, module, source, through_logic, is_async):
    """The kind of a crossing, or None for a bad one."""
    what, who = source
    source_inst, source_reg, source_module = place(who, net.cells[who]) if what == "ff" else ("", "", "")
    if is_async:
        return "reset" if module == "rnic_reset_sync" and what in ("pin", "lock") else None
    if cell["type"] == "IDDRX1F":
        if what == "pin":
            return "pad"
        return None
    if module == "rnic_sync_bit" and reg == "meta_q" and not through_logic and what in ("ff", "pin"):
        if len(cell["connections"]["D"]) == 1:
            return "bit"
        parent = inst.rsplit(".", 1)[0]
        gray = source_module == "rnic_async_fifo" and source_inst == parent and source_reg in ("pub_gray_q", "rd_gray_q")
        return "gray" if gray else None
    if module == "rnic_async_fifo" and reg == "rd_data_o" and what == "mem" and who.lstrip("\\") == f"{inst}.mem":
        return "fifo"
    if module == "rnic_sync_word" and reg == "data_o" and what == "ff" and (source_inst, source_reg) == (inst, "hold_q"):
        return "word"
    # Its shift register: the pin goes into one of its two bits, straight.
    if module == "rnic_uart_rx" and reg == "sync_q" and what == "pin":
        return "uart"
    return None


def check(board, image, show=False, changed=None, quiet=False):
    """Faults of one image, a line each."""
    net = Netlist(netlist(board, image, changed))
    clocks = sorted({net.clock(n) for n, c in net.cells.items() if c["type"] in FF})
    found = crossings(net)
    lines = [f"{kind or 'BAD':6s} {a} ({ca}) -> {b} ({cb})" for kind, a, ca, b, cb in found]
    faults = [f"{board}, {image}: {l}" for (kind, *_), l in zip(found, lines) if kind is None]
    if len(clocks) != 3:
        faults.append(f"{board}, {image}: {len(clocks)} clocks ({', '.join(clocks)}), a board has 3")
    missing = [k for k in KINDS if k not in {kind for kind, *_ in found} and not (k == "uart" and image == "loopback")]
    faults += [f"{board}, {image}: no crossing of the kind {k!r} is found, and there must be" for k in missing]
    if not quiet:
        OUT.mkdir(parents=True, exist_ok=True)
        (OUT / f"{board}-{image}.txt").write_text("\n".join(lines) + "\n")
        counts = ", ".join(f"{sum(k == kind for k, *_ in found)} {kind}" for kind in KINDS)
        print(f"cdc: {board}, {image}: {len(clocks)} clocks, {len(found)} crossings: {counts}; {sum(k is None for k, *_ in found)} bad", flush=True)
        if show:
            print("\n".join(lines))
    return faults


# Seeded bad crossings: name, file, text, what takes its place.
SEEDED = [
    ("a bit without a synchroniser", "rtl/mac/rnic_mac.sv", ".clk_i(gtx_clk_i), .rst_i(gtx_rst), .link_i(gtx_link)", ".clk_i(gtx_clk_i), .rst_i(gtx_rst), .link_i(link_i)"),
    ("logic before a synchroniser", "rtl/mac/rnic_mac.sv", "(.clk_i(gmii_rx_clk_i), .d_i(link_i)", "(.clk_i(gmii_rx_clk_i), .d_i(link_i && !rst_i)"),
    ("a word without a handshake", "rtl/mac/rnic_sync_word.sv", "data_o <= hold_q;", "data_o <= src_data_i;"),
    ("a pointer that is not Gray coded", "rtl/mac/rnic_async_fifo.sv", ".d_i(pub_gray_q)", ".d_i(pub_q)"),
    ("a pointer of the other side", "rtl/mac/rnic_async_fifo.sv", "assign re   = (rd_gray_q != pub_gray_seen)", "assign re   = (rd_gray_q != pub_gray_q)"),
    ("a reset of another clock", "rtl/mac/rnic_mac.sv", ".rd_clk_i(gtx_clk_i), .rd_rst_i(gtx_rst)", ".rd_clk_i(gtx_clk_i), .rd_rst_i(rst_i)"),
    ("an asynchronous reset outside of its module", "rtl/board/rnic_board.sv", ".clk_i(clk_gtx_i), .rst_i(gtx_rst), .tx_en_i", ".clk_i(clk_gtx_i), .rst_i(arst), .tx_en_i"),
    ("a pin that nobody synchronises", "rtl/mac/rnic_mdio.sv", "rdata_o <= {rdata_o[14:0], mdio};", "rdata_o <= {rdata_o[14:0], mdio_i};"),
]


def self_test(board):
    faults = []
    for name, file, find, put in SEEDED:
        text = (ROOT / file).read_text()
        if text.count(find) != 1:
            faults.append(f"the text of {name!r} stands {text.count(find)} times in {file}")
            continue
        told = [f for f in check(board, "loopback", changed={file: text.replace(find, put)}, quiet=True) if "BAD" in f]
        print(f"  {'found' if told else 'MISSED':6s} {name}" + (f": {told[0].split('BAD')[1].strip()[:110]}" if told else ""), flush=True)
        if not told:
            faults.append(f"a seeded bad crossing is not found: {name}")
    return faults


def main():
    boards = list(tomllib.loads((ROOT / "constraints" / "boards.toml").read_text()))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("boards", nargs="*", default=[])
    parser.add_argument("--image", choices=["loopback", "rnic", "all"], default="all")
    parser.add_argument("--list", action="store_true", help="print every crossing")
    parser.add_argument("--self-test", action="store_true")
    args = parser.parse_args()
    faults = []
    if args.self_test:
        faults = self_test((args.boards or boards)[0])
    else:
        for board in args.boards or boards:
            for image in ["loopback", "rnic"] if args.image == "all" else [args.image]:
                faults += check(board, image, args.list)
    print("\n".join(faults), end="\n" if faults else "", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
