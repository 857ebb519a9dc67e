#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Spreads the block RAMs of a board's image over the FPGA's rows of them: writes constraints/<board>-<image>.bels.

    spread_rams.py BOARD [--image rnic] [--seed 1]

A placer puts as many block RAMs as a row has into the rows in the middle, and their nets crowd there until no router finds a way. This places the netlist
of the last `bitstream.py` run once without such constraints, asks of each block RAM where what it talks to lies, and shares them out evenly: rows by the order
of those places from top to bottom, within a row from left to right. bitstream.py then holds them there. To be run again when memories come or go.
"""
import argparse
import collections
import json
import re
import sys
import tomllib

from ecp5 import ROOT
from pnr import bels_file, nextpnr, run

RAM = "DP16KD"
# Nets with more ends tell nothing about where something belongs.
WIDE = 40


def site(bel):
    x, y, name = re.fullmatch(r"X(\d+)/Y(\d+)/(\w+)", bel).groups()
    return int(x), int(y), name


def spread(cells):
    """Cells of a placed netlist (of nextpnr): {name of a block RAM: its new bel}."""
    placed = {n: c for n, c in cells.items() if "NEXTPNR_BEL" in c["attributes"]}
    at = {n: tuple(int(v) for v in re.match(r"X(\d+)/Y(\d+)/", c["attributes"]["NEXTPNR_BEL"]).groups()) for n, c in placed.items()}
    rams = {n: site(c["attributes"]["NEXTPNR_BEL"]) for n, c in placed.items() if c["type"] == RAM}
    ends = collections.defaultdict(list)
    for name, cell in placed.items():
        for bits in cell["connections"].values():
            for bit in bits:
                if isinstance(bit, int):
                    ends[bit].append(name)

    def centre(ram):
        near = [at[o] for bits in placed[ram]["connections"].values() for b in bits if isinstance(b, int) and len(ends[b]) < WIDE for o in ends[b] if o not in rams]
        return tuple(sum(v) / len(near) for v in zip(*near)) if near else rams[ram][:2]

    centres = {ram: centre(ram) for ram in rams}
    rows = sorted({y for _, y, _ in rams.values()})
    # All rows have the same sites; those of the fullest row are all that are seen.
    columns = sorted(max(([(x, n) for x, y, n in rams.values() if y == row] for row in rows), key=len))
    order, where = sorted(rams, key=lambda r: centres[r][1]), {}
    cuts = [round(len(order) * i / len(rows)) for i in range(len(rows) + 1)]
    for row, first, last in zip(rows, cuts, cuts[1:]):
        members = sorted(order[first:last], key=lambda r: centres[r][0])
        for i, ram in enumerate(members):
            x, name = columns[int((i + 0.5) * len(columns) / len(members))]
            where[ram] = f"X{x}/Y{row}/{name}"
    return where


def main():
    boards = tomllib.loads((ROOT / "constraints" / "boards.toml").read_text())
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("board", choices=boards)
    parser.add_argument("--image", default="rnic")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    device, work = boards[args.board], ROOT / "out" / "bitstream" / f"{args.board}-{args.image}"
    netlist, placed = work / "netlist.json", work / "placed.json"
    if not netlist.is_file():
        print(f"{netlist.relative_to(ROOT)} is not there: run make bitstream BOARD={args.board} IMAGE={args.image}", file=sys.stderr)
        return 1
    bound = ["--lpf", f"constraints/{args.board}.lpf", "--no-route", "--write", placed.relative_to(ROOT)]
    code, _ = run("placement", nextpnr(device, netlist, args.seed, *bound), work / "placement.log")
    if code != 0:
        return 1
    modules = json.loads(placed.read_text())["modules"]
    where = spread(next(m for m in modules.values() if int(m["attributes"].get("top", "0"), 2))["cells"])
    file = bels_file(args.board, args.image)
    rows = sorted(where.items(), key=lambda r: (site(r[1])[1], site(r[1])[0]))
    file.write_text("# Written by scripts/spread_rams.py: where block RAMs are held.\n" + "".join(f"{bel} {ram}\n" for ram, bel in rows))
    print(f"wrote {file.relative_to(ROOT)}: {len(rows)} block RAMs, by row {dict(collections.Counter(site(b)[1] for b in where.values()))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
