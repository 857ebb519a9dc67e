#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the image of a board: Yosys, nextpnr, ecppack. Leaves report.json, log and bit in out/bitstream/<board>-<image>/.

    bitstream.py BOARD [--image loopback|rnic] [--seeds 1,2,3]
    bitstream.py --book

Boards stand in constraints/boards.toml. Images: `loopback` sends frames back to their sender, `rnic` is the whole NIC. Several seeds of the placer
may be given; the image is that of the first that meets all clocks. A clock that is missed, or a port without a pin, ends without an image.
--book makes nothing: it puts the reports that are there into the book.
"""
import argparse
import importlib.util
import json
import sys
import tomllib

import check_lpf
import ecp5
from ecp5 import ROOT
from pnr import BIN, place, run
from tables import put


def synthesise(board, image, params, work):
    netlist, stat = work / "netlist.json", work / "stat.json"
    shells = importlib.util.find_spec("pyosys").submodule_search_locations[0] + "/share/ecp5/cells_bb.v"
    script = work / "synth.ys"
    # The core, the board's tops, and Yosys's shells of the ECP5's cells.
    files = ecp5.listed("rtl/rnic.f") + ecp5.listed("rtl/board/board.f") + ["rtl/board/ecp5_shells.v", shells]
    parts = [] if image == "loopback" else ecp5.CORE_PARTS
    script.write_text(ecp5.recipe(board, files, {"Loopback": int(image == "loopback")} | params, stat, netlist, parts, ecp5.FAST_PARTS))
    code, seconds = run("synthesis", [sys.executable, ROOT / "scripts" / "yosys.py", "-s", script], work / "yosys.log")
    if code != 0:
        return None, None
    return netlist, ecp5.cells(stat) | {"seconds": seconds}


def table(boards):
    """The reports of all images as rows: what each takes, and what its clocks reached, a line for each seed."""
    rows = [["Image", "LUT4", "FF", "EBR", "seed", "receive", "transmit", "core", "image"]]
    for board in boards:
        for image in ("loopback", "rnic"):
            file = ROOT / "out" / "bitstream" / f"{board}-{image}" / "report.json"
            report = json.loads(file.read_text()) if file.is_file() else {}
            if not report.get("synth"):
                print(f"{file.relative_to(ROOT)} is not there: run make bitstream BOARD={board} IMAGE={image}")
                continue
            used = [f"{report['synth'][k]:,} ({100 * report['synth'][k] / report['device'][k]:.0f} %)" for k in ("lut4", "ff", "ebr")]
            if report.get("too_big"):
                rows.append([f"`{board}` {image}", *used, "", "", "", "", "does not fit"])
            for n, run_ in enumerate(report["runs"]):
                clocks = {net: f"{c['mhz']:.1f} of {c['target']:.1f}" for net, c in run_["clocks"].items()}
                reached = [next((told for net, told in clocks.items() if part in net), "") for part in ("rx_clk", "clk_gtx", "clk_sys")]
                rows.append([*([f"`{board}` {image}", *used] if n == 0 else [""] * 4), str(run_["seed"]), *reached, "yes" if run_["good"] else "no"])
    return rows


def main():
    boards = tomllib.loads((ROOT / "constraints" / "boards.toml").read_text())
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("board", nargs="?", choices=boards)
    parser.add_argument("--image", choices=["loopback", "rnic"], default="loopback")
    parser.add_argument("--seeds", default="1", help="seeds of the placer, by comma")
    parser.add_argument("--keep-netlist", action="store_true", help="place the netlist of the last run")
    parser.add_argument("--book", action="store_true", help="put the reports that are there into the book")
    args = parser.parse_args()
    if args.book:
        put("board.md", "bitstream", [table(boards)])
        return 0
    if not args.board:
        parser.error("which board?")
    about = boards[args.board]
    work = ROOT / "out" / "bitstream" / f"{args.board}-{args.image}"
    work.mkdir(parents=True, exist_ok=True)
    faults = check_lpf.check(args.board)
    if faults:
        print("\n".join(faults), file=sys.stderr)
        return 1
    for old in (work / "report.json", work / f"{args.board}.bit"):
        old.unlink(missing_ok=True)
    report = {"board": args.board, "image": args.image, "device": about, "runs": [], "bit": None}
    stat = work / "synth.json"
    if args.keep_netlist:
        netlist, report["synth"] = work / "netlist.json", json.loads(stat.read_text())
    else:
        netlist, report["synth"] = synthesise(args.board, args.image, {}, work)
        if netlist is None:
            return 1
        stat.write_text(json.dumps(report["synth"]))
    used = report["synth"]
    print("  " + ", ".join(f"{used[k]} of {about[k]} {name}" for k, name in (("lut4", "LUT4"), ("ff", "FF"), ("ebr", "EBR"))), flush=True)
    too_big = [k for k in ("lut4", "ff", "ebr") if used[k] > about[k]]
    if too_big:
        report["too_big"] = too_big
        print(f"the image does not fit: {', '.join(f'{used[k]} {k.upper()}, the device has {about[k]}' for k in too_big)}", file=sys.stderr)
    for seed in [] if too_big else [int(s) for s in args.seeds.split(",")]:
        result, config = place(about, netlist, seed, work, f"{args.board}-{args.image}", lpf=f"constraints/{args.board}.lpf")
        report["runs"].append(result)
        if result["good"] and report["bit"] is None:
            bit = work / f"{args.board}.bit"
            code, _ = run("image", [BIN / "yowasp-ecppack", "--compress", config.relative_to(ROOT), "--bit", bit.relative_to(ROOT)], work / "ecppack.log")
            if code == 0 and bit.exists():
                report["bit"], report["bytes"] = str(bit.relative_to(ROOT)), bit.stat().st_size
    (work / "report.json").write_text(json.dumps(report, indent=1) + "\n")
    if report["bit"] is None:
        print("no image", file=sys.stderr)
        return 1
    print(f"wrote {report['bit']} ({report['bytes']:,} bytes) and {(work / 'report.json').relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
