#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Size of each block on the ECP5: one Yosys per block, a table, and out/synth/report.json.

Blocks stand in constraints/blocks.toml. Names given on the command line select some of them. --book synthesises
nothing: it puts the table of the last whole run into the book.
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

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "out" / "synth"
BOOK = ROOT / "docs" / "src" / "synth.md"


def read_blocks(path):
    """Devices and blocks. pip's own TOML reader serves Python before 3.11."""
    try:
        import tomllib
    except ModuleNotFoundError:
        from pip._vendor import tomli as tomllib
    data = tomllib.loads(path.read_text())
    blocks = []
    for block in data["block"]:
        unknown = set(block) - {"name", "module", "params", "core"}
        if unknown or "module" not in block:
            sys.exit(f"{path}: a block needs module, may have name, params and core; found {sorted(block)}")
        block.setdefault("params", {})
        block.setdefault("name", block["module"])
        block.setdefault("core", False)
        blocks.append(block)
    names = [b["name"] for b in blocks]
    if len(set(names)) != len(names):
        sys.exit(f"{path}: block names must differ")
    return data["device"], blocks


def sources():
    lines = (ROOT / "rtl" / "rnic.f").read_text().splitlines()
    files = [l.strip() for l in lines if l.strip() and not l.strip().startswith(("//", "#"))]
    missing = [f for f in files if not (ROOT / f).is_file()]
    if missing:
        sys.exit(f"rtl/rnic.f lists what is not there: {', '.join(missing)}")
    return files


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


def synth(block, files):
    """Runs Yosys on one block and returns its cells by type."""
    directory = OUT / block["name"]
    directory.mkdir(parents=True, exist_ok=True)
    stat, log = directory / "stat.json", directory / "yosys.log"
    stat.unlink(missing_ok=True)
    params = " ".join(f"-G {k}={v}" for k, v in block["params"].items())
    top = block["module"]
    script = directory / "synth.ys"
    script.write_text(
        f"read_slang --unroll-limit 100000 --top {top} {params} {' '.join(files)}\n"
        f"synth_ecp5 -top {top} -json {directory / 'netlist.json'}\n"
        f"tee -q -o {stat} stat -json\n"
    )
    result = {"name": block["name"], "module": top, "params": block["params"], "core": block["core"]}
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
    text = stat.read_text()
    cells = json.loads(text[text.index("{"):])["design"]["num_cells_by_type"]
    lut4, carry, dpr = cells.get("LUT4", 0), cells.get("CCU2C", 0), cells.get("TRELLIS_DPR16X4", 0)
    return result | {
        # A CCU2C takes two LUTs, a 16x4 distributed RAM four and two more for its write port.
        "lut4": lut4 + 2 * carry + 6 * dpr, "lut4_logic": lut4, "carry": carry, "dpr16x4": dpr,
        "ff": cells.get("TRELLIS_FF", 0), "ebr": cells.get("DP16KD", 0), "mult": cells.get("MULT18X18D", 0),
    }


def run(blocks, jobs):
    """Results by name. Tells when a block ends, and every half minute what is still at work."""
    files, results = sources(), {}
    check_params(blocks, files)
    print(f"{len(blocks)} blocks, {jobs} at a time; logs in out/synth/<block>/yosys.log", flush=True)
    started = {}

    def one(block):
        started[block["name"]] = time.monotonic()
        return synth(block, files)

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        waiting = {pool.submit(one, b) for b in blocks}
        while waiting:
            done, waiting = concurrent.futures.wait(waiting, 30, concurrent.futures.FIRST_COMPLETED)
            for future in done:
                r = future.result()
                results[r["name"]] = r
                told = "FAILED" if "error" in r else f"{r['lut4']} LUT4, {r['ff']} FF, {r['ebr']} EBR"
                print(f"[{len(results)}/{len(blocks)}] {r['name']}: {told} ({r['seconds']:.0f} s, {r['mib']} MiB)", flush=True)
            if not done:
                at_work = [f"{n} ({time.monotonic() - t:.0f} s)" for n, t in started.items() if n not in results]
                print(f"  at work: {', '.join(at_work)}", flush=True)
    return results


COLUMNS = [("LUT4", "lut4"), ("of which carry", "carry2"), ("DPR16X4", "dpr16x4"), ("FF", "ff"), ("EBR", "ebr"), ("MULT", "mult")]


def table(rows, devices):
    """Lines of the table: header, blocks, and, when the whole core was measured, its sum and shares of devices."""
    lines = [["block"] + [title for title, _ in COLUMNS]]
    with_carry = [r | {"carry2": 2 * r["carry"]} for r in rows]
    lines += [[r["name"]] + [f"{r[key]:,}" for _, key in COLUMNS] for r in with_carry]
    core = [r for r in with_carry if r["core"]]
    if core:
        total = {key: sum(r[key] for r in core) for _, key in COLUMNS}
        lines.append(["the core's blocks"] + [f"{total[key]:,}" for _, key in COLUMNS])
        for d in devices:
            lines.append([f"of an {d['name']}"] + [f"{100 * total[key] / d[key]:.0f} %" if key in d else "" for _, key in COLUMNS])
    return lines


def as_markdown(lines):
    rows = [lines[0], ["---"] + ["--:"] * (len(lines[0]) - 1)] + lines[1:]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows).replace(" %", "&nbsp;%")


def into_book(blocks):
    file = OUT / "report.json"
    report = json.loads(file.read_text()) if file.is_file() else {"blocks": []}
    wanted, there = [b["name"] for b in blocks], [r["name"] for r in report["blocks"] if "error" not in r]
    if wanted != there:
        sys.exit(f"{file.relative_to(ROOT)} lacks {', '.join(sorted(set(wanted) - set(there)) or ['its order'])}: run make synth first")
    lines = table(report["blocks"], report["devices"])
    text = BOOK.read_text()
    begin, end = "<!-- make synth: begin -->\n", "<!-- make synth: end -->"
    before, rest = text.split(begin)
    BOOK.write_text(before + begin + "\n" + as_markdown(lines) + "\n" + end + rest.split(end)[1])
    print(f"wrote the table in {BOOK.relative_to(ROOT)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="blocks to synthesise; all when none is named")
    parser.add_argument("-j", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--book", action="store_true", help="put the table of the last whole run into the book")
    args = parser.parse_args()
    devices, blocks = read_blocks(ROOT / "constraints" / "blocks.toml")
    unknown = set(args.names) - {b["name"] for b in blocks}
    if unknown:
        sys.exit(f"no such block: {', '.join(sorted(unknown))}; there are {', '.join(b['name'] for b in blocks)}")
    if args.book:
        into_book(blocks)
        return 0
    whole = not args.names
    blocks = [b for b in blocks if whole or b["name"] in args.names]
    OUT.mkdir(parents=True, exist_ok=True)
    results = run(blocks, args.j)
    rows = [results[b["name"]] for b in blocks]
    good = [r for r in rows if "error" not in r]
    whole = whole and len(good) == len(rows)
    lines = table(good, devices if whole else [])
    if not whole:
        lines = [l for l in lines if l[0] != "the core's blocks"]
    if not good:
        lines = []
    widths = [max(len(l[i]) for l in lines) for i in range(len(COLUMNS) + 1)] if lines else []
    print()
    for line in lines:
        print(f"{line[0]:{widths[0]}}  " + "  ".join(f"{cell:>{w}}" for cell, w in zip(line[1:], widths[1:])))
    report = {"devices": devices, "blocks": rows}
    (OUT / "report.json").write_text(json.dumps(report, indent=1) + "\n")
    print(f"\nwrote {(OUT / 'report.json').relative_to(ROOT)}")
    for r in rows:
        if "error" in r:
            print(f"\n{r['name']} failed (log: out/synth/{r['name']}/yosys.log):\n{r['error']}", file=sys.stderr)
    return 0 if len(good) == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
