#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Size of each block on the ECP5: one Yosys per block, a table, and out/synth/report.json.

Blocks stand in constraints/blocks.toml. Names given on the command line select some of them.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "out" / "synth"


def read_blocks(path):
    """The small part of TOML that blocks.toml uses: works with Python before 3.11, too."""
    try:
        import tomllib
    except ModuleNotFoundError:
        from pip._vendor import tomli as tomllib
    data = tomllib.loads(path.read_text())
    blocks = []
    for block in data["block"]:
        unknown = set(block) - {"name", "module", "params"}
        if unknown or "module" not in block:
            sys.exit(f"{path}: a block needs module, may have name and params; found {sorted(block)}")
        block.setdefault("params", {})
        block.setdefault("name", block["module"])
        blocks.append(block)
    names = [b["name"] for b in blocks]
    if len(set(names)) != len(names):
        sys.exit(f"{path}: block names must differ")
    return data["device"], blocks


def sources():
    lines = (ROOT / "rtl" / "rnic.f").read_text().splitlines()
    return [l.strip() for l in lines if l.strip() and not l.strip().startswith(("//", "#"))]


def synth(block, files):
    """Runs Yosys on one block and returns its cells by type."""
    directory = OUT / block["name"]
    directory.mkdir(parents=True, exist_ok=True)
    params = " ".join(f"-G {k}={v}" for k, v in block["params"].items())
    top = block["module"]
    script = directory / "synth.ys"
    script.write_text(
        f"read_slang --unroll-limit 100000 --top {top} {params} {' '.join(files)}\n"
        f"synth_ecp5 -top {top} -json {directory / 'netlist.json'}\n"
        f"tee -q -o {directory / 'stat.json'} stat -json\n"
    )
    started = time.monotonic()
    run = subprocess.run(
        [sys.executable, ROOT / "scripts" / "yosys.py", "-s", script],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )
    (directory / "yosys.log").write_text(run.stdout)
    seconds = time.monotonic() - started
    if run.returncode != 0:
        tail = "\n".join(run.stdout.strip().splitlines()[-8:])
        return {"name": block["name"], "error": tail or f"yosys ended with {run.returncode}", "seconds": seconds}
    text = (directory / "stat.json").read_text()
    cells = json.loads(text[text.index("{"):])["design"]["num_cells_by_type"]
    lut4, carry, dpr = cells.get("LUT4", 0), cells.get("CCU2C", 0), cells.get("TRELLIS_DPR16X4", 0)
    return {
        "name": block["name"], "module": top, "params": block["params"], "seconds": round(seconds, 1),
        # A CCU2C takes two LUTs, a 16x4 distributed RAM four and two more for its write port.
        "lut4": lut4 + 2 * carry + 6 * dpr, "lut4_logic": lut4, "carry": carry, "dpr16x4": dpr,
        "ff": cells.get("TRELLIS_FF", 0), "ebr": cells.get("DP16KD", 0), "mult": cells.get("MULT18X18D", 0),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="blocks to synthesise; all when none is named")
    parser.add_argument("-j", type=int, default=os.cpu_count() or 1, help="processes")
    args = parser.parse_args()
    device, blocks = read_blocks(ROOT / "constraints" / "blocks.toml")
    unknown = set(args.names) - {b["name"] for b in blocks}
    if unknown:
        sys.exit(f"no such block: {', '.join(sorted(unknown))}")
    blocks = [b for b in blocks if not args.names or b["name"] in args.names]
    files = sources()
    OUT.mkdir(parents=True, exist_ok=True)
    results = {}
    with concurrent.futures.ThreadPoolExecutor(args.j) as pool:
        running = {pool.submit(synth, b, files): b for b in blocks}
        for done, future in enumerate(concurrent.futures.as_completed(running), 1):
            result = future.result()
            results[result["name"]] = result
            print(f"[{done}/{len(blocks)}] {result['name']}: {result['seconds']:.0f} s"
                  + (" FAILED" if "error" in result else ""), flush=True)
    rows = [results[b["name"]] for b in blocks]
    good = [r for r in rows if "error" not in r]
    width = max([len("block")] + [len(r["name"]) for r in rows])
    print(f"\n{'block':{width}} {'LUT4':>7} {'of which carry':>14} {'DPR16':>6} {'FF':>7} {'EBR':>4} {'MULT':>4}")
    for r in good:
        print(f"{r['name']:{width}} {r['lut4']:7} {2 * r['carry']:14} {r['dpr16x4']:6} {r['ff']:7} {r['ebr']:4} {r['mult']:4}")
    print(f"\n{device['name']}: {device['lut4']} LUT4, {device['ebr']} EBR")
    report = {"device": device, "blocks": rows}
    (OUT / "report.json").write_text(json.dumps(report, indent=1) + "\n")
    print(f"wrote {(OUT / 'report.json').relative_to(ROOT)}")
    for r in rows:
        if "error" in r:
            print(f"\n{r['name']} failed (log: out/synth/{r['name']}/yosys.log):\n{r['error']}", file=sys.stderr)
    return 0 if len(good) == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
