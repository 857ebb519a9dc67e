#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Size of cores and blocks on the ECP5: one Yosys for each, tables, and out/synth/report.json.

What is measured stands in constraints/blocks.toml. Names given on the command line select some of it. A core above its limit is a failure. --place takes
cores through nextpnr as well, once for each seed, on the device that their entry names: worst, median and best Fmax. --book synthesises nothing: it puts
the tables of the last run into the book.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import time

import ecp5
import pnr
from ecp5 import ROOT
from tables import put

OUT = ROOT / "out" / "synth"


def read_blocks(path):
    """Devices and blocks. pip's own TOML reader serves Python before 3.11."""
    try:
        import tomllib
    except ModuleNotFoundError:
        from pip._vendor import tomli as tomllib
    data = tomllib.loads(path.read_text())
    blocks = []
    for kind, allowed in (("core", {"name", "params", "limit", "place"}), ("block", {"name", "module", "params"})):
        for block in data[kind]:
            unknown = set(block) - allowed
            if unknown or not {"name", "module"} & set(block):
                sys.exit(f"{path}: a {kind} has {', '.join(sorted(allowed))}; found {sorted(block)}")
            if kind == "core":
                block["module"] = "rnic_core"
            block.setdefault("params", {})
            block.setdefault("name", block["module"])
            block["core"] = kind == "core"
            blocks.append(block)
    devices = [d["name"] for d in data["device"]]
    lost = [b["name"] for b in blocks if b.get("place", devices[0]) not in devices]
    if lost:
        sys.exit(f"{path}: {', '.join(lost)}: place names one of {', '.join(devices)}")
    names = [b["name"] for b in blocks]
    if len(set(names)) != len(names):
        sys.exit(f"{path}: block names must differ")
    return data["device"], blocks


def check_params(blocks, files):
    """A parameter that a module does not have would be ignored without a word."""
    for block in blocks:
        file = next((f for f in files if pathlib.Path(f).stem == block["module"]), None)
        if file is None:
            sys.exit(f"blocks.toml: rtl/rnic.f lists no module {block['module']}")
        text = (ROOT / file).read_text()
        for name in block["params"]:
            if not re.search(rf"^\s*parameter\b[^=]*\b{name}\s*=", text, re.MULTILINE):
                sys.exit(f"blocks.toml: {block['name']}: {file} has no parameter {name}")


def why(status, log):
    """What a failing Yosys said, or what became of it."""
    lines = log.read_text(errors="replace").strip().splitlines()
    told = [l for l in lines if "error:" in l.lower()] or lines[-8:]
    if os.WIFSIGNALED(status):
        signal = os.WTERMSIG(status)
        told.append(f"ended by signal {signal}" + (" (out of memory?)" if signal == 9 else ""))
    return "\n".join(told) or f"Yosys ended with {os.waitstatus_to_exitcode(status)} and said nothing"


def synth(block, files, smoke):
    """Runs Yosys on one block and returns its cells by type; with `smoke` of its memories alone."""
    directory = OUT / block["name"]
    directory.mkdir(parents=True, exist_ok=True)
    stat, log = directory / "stat.json", directory / "yosys.log"
    stat.unlink(missing_ok=True)
    top = block["module"]
    script = directory / "synth.ys"
    netlist = directory / "netlist.json" if block["core"] else None
    by_part = directory / "parts.json" if block["core"] and not smoke else None
    script.write_text(ecp5.recipe(top, files, block["params"], stat, netlist, parts=ecp5.CORE_PARTS if block["core"] else (), by_part=by_part, smoke=smoke))
    result = {"name": block["name"], "module": top, "params": block["params"], "core": block["core"], "limit": block.get("limit", {})}
    started = time.monotonic()
    with log.open("w") as output:
        yosys = subprocess.Popen([sys.executable, ROOT / "scripts" / "yosys.py", "-s", script],
                                 cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(yosys.pid, 0)
    yosys.returncode = os.waitstatus_to_exitcode(status)
    result["seconds"] = round(time.monotonic() - started, 1)
    result["mib"] = usage.ru_maxrss // 1024
    if status != 0:
        return result | {"error": why(status, log)}
    return result | ecp5.cells(stat) | ({"parts": ecp5.cells(by_part)["parts"]} if by_part else {})


def run(blocks, jobs, smoke):
    """Results by name. Tells when a block ends, and every half minute what is still at work."""
    files, results = ecp5.listed("rtl/rnic.f"), {}
    check_params(blocks, files)
    print(f"{len(blocks)} cores and blocks, {jobs} at a time; logs in out/synth/<name>/yosys.log", flush=True)
    started = {}

    def one(block):
        started[block["name"]] = time.monotonic()
        return synth(block, files, smoke)

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        waiting = {pool.submit(one, b) for b in blocks}
        while waiting:
            done, waiting = concurrent.futures.wait(waiting, 30, concurrent.futures.FIRST_COMPLETED)
            for future in done:
                r = future.result()
                results[r["name"]] = r
                lut_ff = "" if smoke else f"{r.get('lut4')} LUT4, {r.get('ff')} FF, "
                told = "FAILED" if "error" in r else f"{lut_ff}{r['ebr']} EBR"
                print(f"[{len(results)}/{len(blocks)}] {r['name']}: {told} ({r['seconds']:.0f} s, {r['mib']} MiB)", flush=True)
            if not done:
                at_work = [f"{n} ({time.monotonic() - t:.0f} s)" for n, t in started.items() if n not in results]
                print(f"  at work: {', '.join(at_work)}", flush=True)
    return results


def place(rows, blocks, devices, seeds):
    """Every core that was synthesised through nextpnr, one seed after the other; what it tells goes beside the core's cells."""
    for row in rows:
        block = next(b for b in blocks if b["name"] == row["name"])
        if not row["core"] or "error" in row or "place" not in block:
            continue
        device = next(d for d in devices if d["name"] == block["place"])
        row["placed_on"] = device["name"]
        too_big = [key for key in ("lut4", "ff", "ebr") if row[key] > device[key]]
        if too_big:
            row["too_big"] = too_big
            print(f"{row['name']}: not placed, the {device['name']} has too few {', '.join(k.upper() for k in too_big)}", flush=True)
            continue
        work = OUT / row["name"]
        row["runs"] = [pnr.place(device, work / "netlist.json", seed, work, row["name"])[0] for seed in seeds]
        row["fmax"] = pnr.spread(row["runs"])


COLUMNS = [("LUT4", "lut4"), ("of which carry", "carry2"), ("DPR16X4", "dpr16x4"), ("FF", "ff"), ("EBR", "ebr"), ("MULT", "mult")]


def line(name, row):
    return [name] + [f"{(row | {'carry2': 2 * row['carry']})[key]:,}" for _, key in COLUMNS]


def tables(rows, devices):
    """Tables as lists of lines: one for each core with its parts and its share of the devices, one of the blocks."""
    out = []
    for r in rows:
        if r["core"]:
            lines = [[r["name"]] + [title for title, _ in COLUMNS]]
            lines += [line("what joins them" if n == "rnic_core" else n, part) for n, part in r["parts"].items()]
            lines.append(line("the whole core", r))
            for d in devices:
                lines.append([f"of an {d['name']}"] + [f"{100 * r[key] / d[key]:.0f} %" if key in d else "" for _, key in COLUMNS])
            out.append(lines)
    placed = [r for r in rows if r.get("fmax")]
    if placed:
        title = ["placed and routed", "device", "seeds", "worst MHz", "median MHz", "best MHz"]
        cells = [[r["name"], r["placed_on"], str(len(r["runs"]))] + [f"{r['fmax'][key]:.1f}" for key in ("worst", "median", "best")] for r in placed]
        out.append([title] + cells)
    blocks = [r for r in rows if not r["core"]]
    if blocks:
        out.append([["block"] + [title for title, _ in COLUMNS]] + [line(r["name"], r) for r in blocks])
    return out


def above(row):
    """What of a core is more than its limit."""
    return [f"{row['name']}: {row[key]:,} {key.upper()}, the limit is {most:,}" for key, most in row["limit"].items() if row[key] > most]


def into_book(blocks):
    file = OUT / "report.json"
    report = json.loads(file.read_text()) if file.is_file() else {"blocks": []}
    if any("error" in r for r in report["blocks"]) or not report["blocks"]:
        sys.exit(f"{file.relative_to(ROOT)} has nothing, or failures: run make synth first")
    missing = [b["name"] for b in blocks if b["name"] not in [r["name"] for r in report["blocks"]]]
    if missing:
        print(f"not measured in the last run, so not in the book: {', '.join(missing)}")
    put("synth.md", "synth", tables(report["blocks"], report["devices"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="blocks to synthesise; all when none is named")
    parser.add_argument("-j", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--place", action="store_true", help="place and route the cores as well (half an hour and more for each seed)")
    parser.add_argument("--seeds", default="1,2,3,4,5", help="seeds of the placer, by comma")
    parser.add_argument("--smoke", action="store_true", help="only until memories have become block RAMs: is there a latch, are there too many of these")
    parser.add_argument("--book", action="store_true", help="put the tables of the last whole run into the book")
    args = parser.parse_args()
    devices, blocks = read_blocks(ROOT / "constraints" / "blocks.toml")
    unknown = set(args.names) - {b["name"] for b in blocks}
    if unknown:
        sys.exit(f"no such block: {', '.join(sorted(unknown))}; there are {', '.join(b['name'] for b in blocks)}")
    if args.smoke and args.place:
        parser.error("--smoke makes no netlist to place")
    if args.book:
        into_book(blocks)
        return 0
    whole = not args.names
    blocks = [b for b in blocks if whole or b["name"] in args.names]
    OUT.mkdir(parents=True, exist_ok=True)
    results = run(blocks, args.j, args.smoke)
    rows = [results[b["name"]] for b in blocks]
    good = [r for r in rows if "error" not in r]
    if args.place:
        place(rows, blocks, devices, [int(s) for s in args.seeds.split(",")])
    for lines in [] if args.smoke else tables(good, devices):
        widths = [max(len(l[i]) for l in lines) for i in range(len(lines[0]))]
        print()
        for l in lines:
            print(f"{l[0]:{widths[0]}}  " + "  ".join(f"{cell:>{w}}" for cell, w in zip(l[1:], widths[1:])))
    if not args.smoke:
        (OUT / "report.json").write_text(json.dumps({"devices": devices, "blocks": rows}, indent=1) + "\n")
        print(f"\nwrote {(OUT / 'report.json').relative_to(ROOT)}")
    for r in rows:
        if "error" in r:
            print(f"\n{r['name']} failed (log: out/synth/{r['name']}/yosys.log):\n{r['error']}", file=sys.stderr)
    too_big = [told for r in good for told in above(r)]
    if too_big:
        print("\n" + "\n".join(too_big), file=sys.stderr)
    return 0 if len(good) == len(rows) and not too_big else 1


if __name__ == "__main__":
    sys.exit(main())
