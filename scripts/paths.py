#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Longest paths of a netlist before anything is placed, by what ends them: seconds instead of nextpnr's half hour.

    paths.py NETLIST TOP [--groups 30] [--to NAME] [--cut REGEX]

NETLIST is JSON of Yosys in cells of the ECP5 (out/synth/<core>/netlist.json, out/bitstream/<board>-<image>/netlist.json). Delays are rough: cells as
nextpnr has them at speed 8, a net by its fan-out; nextpnr's estimates of placed cores were 0.8 to 1.1 of it. Bits of a register and copies of a block are one
group. --to prints a path of the first group whose name holds NAME. --cut takes nets whose name matches for registers: what would be left if a
register stood there.
"""
import argparse
import collections
import json
import pathlib
import re

# Nanoseconds. What starts a path, from its clock; what ends it, setup.
LAUNCH = {"TRELLIS_FF": 0.45, "DP16KD": 4.6, "MULT18X18D": 3.0}
SETUP = 0.3
NET = 0.75
ENDS = {"TRELLIS_FF": ("DI", "CE", "LSR"), "TRELLIS_DPR16X4": ("DI", "WAD", "WRE"), "DP16KD": None, "MULT18X18D": None}
FIRST, SECOND = ("A0", "B0", "C0", "D0"), ("A1", "B1", "C1", "D1")
# By cell and output: inputs that it depends on, with the delay.
ARCS = {
    ("LUT4", "Z"): [(pin, 0.24) for pin in "ABCD"],
    ("CCU2C", "S0"): [(pin, 0.44) for pin in (*FIRST, "CIN")],
    ("CCU2C", "S1"): [(pin, 0.7) for pin in FIRST] + [(pin, 0.44) for pin in (*SECOND, "CIN")],
    ("CCU2C", "COUT"): [(pin, 0.5) for pin in (*FIRST, *SECOND)] + [("CIN", 0.07)],
    ("TRELLIS_DPR16X4", "DO"): [("RAD", 0.3)],
    # Multiplexers of a slice: from tables beside them, without a net.
    ("PFUMX", "Z"): [("ALUT", 0.15 - NET), ("BLUT", 0.15 - NET), ("C0", 0.2)],
    ("L6MUX21", "Z"): [("D0", 0.15 - NET), ("D1", 0.15 - NET), ("SD", 0.2)],
}
# Pads, clocks and notes: no paths between registers go through them.
BESIDE = {"TRELLIS_IO", "IDDRX1F", "ODDRX1F", "DELAYG", "EHXPLLL", "$scopeinfo"}


class Netlist:
    def __init__(self, module, cut):
        self.cells = module["cells"]
        strange = {c["type"] for c in self.cells.values()} - BESIDE - set(LAUNCH) - {kind for kind, _ in ARCS}
        if strange:  # paths would seem to begin there
            raise SystemExit(f"no delays known of {', '.join(sorted(strange))}: add them to ARCS or BESIDE in {pathlib.Path(__file__).name}")
        self.driver, self.fanout, self.names = {}, collections.Counter(), {}
        self.arrival, self.before = {}, {}
        for name, net in module["netnames"].items():
            for i, bit in enumerate(net["bits"]):
                if isinstance(bit, int):
                    told = name if len(net["bits"]) == 1 else f"{name}[{i}]"
                    if bit not in self.names or self.names[bit].startswith("$") or (len(told) < len(self.names[bit]) and not told.startswith("$")):
                        self.names[bit] = told
                    if cut and re.search(cut, name):
                        self.arrival[bit], self.before[bit] = LAUNCH["TRELLIS_FF"], None
        for name, cell in self.cells.items():
            for pin, direction in cell["port_directions"].items():
                for bit in cell["connections"].get(pin, []):
                    if direction == "output":
                        self.driver[bit] = (name, pin)
                    else:
                        self.fanout[bit] += 1

    def net_delay(self, bit):
        if self.driver.get(bit, ("", ""))[1] == "COUT":
            return 0.0
        many = self.fanout[bit]
        return NET + (0.35 if many > 16 else 0.15 if many > 4 else 0.0) + (0.5 if many > 100 else 0.0)

    def inputs(self, bit):
        name, pin = self.driver[bit]
        cell = self.cells[name]
        return [(b, delay) for p, delay in ARCS.get((cell["type"], pin), []) for b in cell["connections"].get(p, []) if isinstance(b, int)]

    def time(self, bit):
        """When a net is there, in ns after the clock. Works with a stack: paths are longer than Python calls deep."""
        stack, open_ = [bit], set()
        while stack:
            at = stack[-1]
            if at in self.arrival:
                stack.pop()
                continue
            kind = self.cells[self.driver[at][0]]["type"] if at in self.driver else None
            if kind is None or kind in LAUNCH:
                self.arrival[at], self.before[at] = LAUNCH.get(kind, 0.0), None
                continue
            inputs = self.inputs(at)
            missing = [b for b, _ in inputs if b not in self.arrival]
            if missing and at not in open_:
                open_.add(at)
                stack += missing
                continue
            best = max(((self.arrival.get(b, 0.0) + self.net_delay(b) + delay, b) for b, delay in inputs), default=(0.0, None))
            self.arrival[at], self.before[at] = best
        return self.arrival[bit]

    def ends(self):
        """All ends of paths: (ns, net, name of the end)."""
        for name, cell in self.cells.items():
            if cell["type"] not in ENDS:
                continue
            pins = ENDS[cell["type"]] or [p for p, d in cell["port_directions"].items() if d == "input" and not p.startswith("CLK")]
            owner = self.names.get(cell["connections"]["Q"][0], name) if cell["type"] == "TRELLIS_FF" else name
            for pin in pins:
                for bit in cell["connections"].get(pin, []):
                    if isinstance(bit, int):
                        yield self.time(bit) + self.net_delay(bit) + SETUP, bit, group(owner) + ("" if pin == "DI" else "/" + re.sub(r"\d+$", "", pin))

    def path(self, bit):
        out = []
        while bit is not None:
            out.append(bit)
            bit = self.before[bit]
        return out[::-1]

    def start(self, bit):
        first = self.path(bit)[0]
        owner = self.driver.get(first, (None, None))[0]
        kind = self.cells[owner]["type"] if owner else None
        return group(owner if kind in ("DP16KD", "MULT18X18D") else self.names.get(first, "?"))


def group(name):
    """Bits, copies and lanes of a thing under one name."""
    name = re.sub(r"\$(techmap|auto|abc).*", "$", name)
    name = re.sub(r"\[\d+\]", "[]", re.sub(r"(\.\d+)+$", "", name))
    return name.removeprefix("$flatten\\").replace("u_board.g_rnic.u_rnic.u_core.", "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("netlist", type=pathlib.Path)
    parser.add_argument("top")
    parser.add_argument("--groups", type=int, default=30)
    parser.add_argument("--to", metavar="NAME")
    parser.add_argument("--cut", metavar="REGEX")
    args = parser.parse_args()
    netlist = Netlist(json.loads(args.netlist.read_text())["modules"][args.top], args.cut)
    ends = sorted(netlist.ends(), key=lambda e: -e[0])
    print(f"{len(ends):,} ends of paths; longer than " + ", ".join(f"{ns} ns: {sum(e[0] > ns for e in ends):,}" for ns in (12, 16, 20, 24, 28)))
    groups = {}
    for ns, bit, end in ends:
        groups.setdefault(end, []).append((ns, bit))
    for end, members in list(groups.items())[: args.groups]:
        ns, bit = members[0]
        print(f"{ns:5.1f} ns {len(netlist.path(bit)):3} cells  x{len(members):<4} {netlist.start(bit)} -> {end}")
    wanted = next((end for end in groups if args.to and args.to in end), None)
    if args.to and wanted is None:
        raise SystemExit(f"no end of a path is called {args.to}")
    if wanted:
        print(f"\nto {wanted}:")
        for bit in netlist.path(groups[wanted][0][1]):
            owner, pin = netlist.driver.get(bit, ("", "input"))
            kind = netlist.cells[owner]["type"] if owner else "port"
            print(f"{netlist.arrival[bit]:6.2f}  {kind:15} {pin:5} to {netlist.fanout[bit]:<4} {group(netlist.names.get(bit, '?'))}")


if __name__ == "__main__":
    main()
