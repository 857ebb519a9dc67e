#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plans where a design lies on the FPGA, so that its nets find ways: writes constraints/<name>.bels and constraints/<name>.room.

    floorplan.py NAME [--seed 1] [--keep-bels] [--refine]

NAME is an image (ecpix5-rnic) or a core that constraints/blocks.toml places (core_256); its netlist is that of the last run of bitstream.py or synth.py, which
take the plan from then on.

A placer wants short wires and crowds what belongs together, until no router finds ways for all nets. Two things are done about that, each from a placement:
- block RAMs are held. The placer puts as many as a row has into the rows in the middle. Without constraints it is asked of each block RAM where what it talks to lies,
  and they are shared out evenly: rows by the order of those places from top to bottom, within a row from left to right. (--keep-bels: as the file has it.)
- room is left between tables. With block RAMs held, two rounds of routing tell where wires are wanted by several nets. The quarter of the boxes of 6x6 tiles
  that lies where most are gets no tables in every other row, the next half as many, the next three quarters, the last all.

--refine looks at the plan that is there instead: where wires are still wanted by several nets after 14 rounds with it in force, a box gets one level more.

To be run again when memories come or go (bitstream.py refuses a list that does not fit), or when routing does not end.
"""
import argparse
import collections
import csv
import json
import pathlib
import re
import sys
import tomllib

import pnr
import synth
from ecp5 import ROOT

RAM = "DP16KD"
# Of routing, until the crowd is known.
ROUNDS = 2
# The same with a plan in force: what is left then does not go away by itself.
LATE_ROUNDS = 14
# How far from a box what is left counts as its own, in tiles.
NEAR = 2
# How far around its middle a box counts overused wires, in tiles: a crowd spreads beyond what makes it.
AROUND = 9
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


def levels(crowd):
    """Rows of boxes, a digit each, from overused wires: crowd[x][y] of each tile."""
    across, down = -(-len(crowd) // pnr.BOX), -(-len(crowd[0]) // pnr.BOX)

    def around(box):
        low, high = pnr.BOX * box + pnr.BOX // 2 - AROUND, pnr.BOX * box + pnr.BOX // 2 + AROUND
        return slice(max(low, 0), high)

    def mean(x, y):
        near = [tile for column in crowd[around(x)] for tile in column[around(y)]]
        return sum(near) / len(near)

    heat = {(x, y): mean(x, y) for y in range(down) for x in range(across)}
    order = sorted(heat.values())
    quarters = [order[n * len(order) // 4 - 1] for n in (1, 2, 3)]
    return ["".join(str(sum(heat[x, y] > quarter for quarter in quarters)) for x in range(across)) for y in range(down)]


def raised(rows, crowd):
    """Rows of boxes with one level more for each that has an overused wire in it or near it."""

    def near(box):
        return slice(max(pnr.BOX * box - NEAR, 0), pnr.BOX * (box + 1) + NEAR)

    def level(x, y):
        left = any(tile for column in crowd[near(x)] for tile in column[near(y)])
        return str(min(int(rows[y][x]) + left, int(max(pnr.EMPTY))))

    return ["".join(level(x, y) for x in range(len(rows[y]))) for y in range(len(rows))]


def design(name):
    """What nextpnr is told of a design: its device, its folder, and constraints as options."""
    boards = tomllib.loads((ROOT / "constraints" / "boards.toml").read_text())
    devices, blocks = synth.read_blocks(ROOT / "constraints" / "blocks.toml")
    named = {f"{board}-{image}": (boards[board], ROOT / "out" / "bitstream" / f"{board}-{image}", ["--lpf", f"constraints/{board}.lpf"])
             for board in boards for image in ("loopback", "rnic")}
    for block in blocks:
        if "place" in block:
            named[block["name"]] = (next(d for d in devices if d["name"] == block["place"]), synth.OUT / block["name"], pnr.OUT_OF_CONTEXT)
    if name not in named:
        sys.exit(f"no design {name}; there are {', '.join(named)}")
    return named[name]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep-bels", action="store_true", help="hold block RAMs where they are held now")
    parser.add_argument("--refine", action="store_true", help="more room where the plan that is there leaves wires short")
    args = parser.parse_args()
    device, work, bound = design(args.name)
    bels, room = pnr.plan_files(args.name)
    netlist, placed = work / "netlist.json", work / "placed.json"
    if not netlist.is_file():
        print(f"{netlist.relative_to(ROOT)} is not there: run bitstream.py or synth.py first", file=sys.stderr)
        return 1
    if not (args.keep_bels or args.refine):
        told = pnr.for_nextpnr(netlist, work, {})
        code, _ = pnr.run("placement", pnr.nextpnr(device, told, args.seed, *bound, "--no-route", "--write", placed.relative_to(ROOT)), work / "placement.log")
        if code != 0:
            return 1
        modules = json.loads(placed.read_text())["modules"]
        where = spread(next(m for m in modules.values() if int(m["attributes"].get("top", "0"), 2))["cells"])
        rows = sorted(where.items(), key=lambda r: (site(r[1])[1], site(r[1])[0]))
        bels.write_text("# Written by scripts/floorplan.py: where block RAMs are held.\n" + "".join(f"{bel} {ram}\n" for ram, bel in rows))
        print(f"wrote {bels.relative_to(ROOT)}: {len(rows)} block RAMs, by row {dict(collections.Counter(site(b)[1] for b in where.values()))}", flush=True)
    before = pnr.read_room(room) if args.refine else []
    if args.refine and not before:
        print(f"{room.relative_to(ROOT)} is not there: nothing to refine", file=sys.stderr)
        return 1
    rounds = LATE_ROUNDS if args.refine else ROUNDS
    told, heat = pnr.for_nextpnr(netlist, work, pnr.read_bels(bels), pnr.empty_sites(device, before)), work / "heat"
    routed = pnr.nextpnr(device, told, args.seed, *bound, "--router", "router2", "--router2-heatmap", heat.relative_to(ROOT))
    code, _ = pnr.run(f"{rounds} rounds of routing", routed, work / "heat.log", until=f"iter={rounds} wires=")
    if code != 0:
        return 1
    with pathlib.Path(f"{heat}_congestion_by_coordinate_{rounds}.csv").open() as table:
        crowd = [[int(cell) for cell in row if cell] for row in csv.reader(table)]
    boxes = raised(before, crowd) if args.refine else levels(crowd)
    about = f"# Written by scripts/floorplan.py: room between tables, a digit for each {pnr.BOX}x{pnr.BOX} tiles, as the FPGA is seen from above.\n"
    room.write_text(about + "# Of the tables in every other row there stay empty: 0 none, 1 a quarter, 2 half, 3 all.\n" + "\n".join(boxes) + "\n")
    print(room.read_text() + f"wrote {room.relative_to(ROOT)}: {len(pnr.empty_sites(device, boxes)):,} of {device['lut4']:,} tables stay empty")
    return 0


if __name__ == "__main__":
    sys.exit(main())
