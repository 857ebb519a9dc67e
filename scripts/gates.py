#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Netlist of a block in cells of the ECP5, as Verilog, for simulation at gate level: prints the path of the netlist.

    gates.py MODULE --into DIRECTORY [-G NAME=VALUE]... [-D NAME]... FILE...

The recipe is that of `make synth` and `make bitstream`. The same sources and parameters give the same directory, in which the netlist is made once.
Models of the cells stand in testbench/tops/ecp5/.
"""
import argparse
import fcntl
import hashlib
import pathlib
import re
import subprocess
import sys

import ecp5


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("module")
    parser.add_argument("--into", type=pathlib.Path, required=True)
    parser.add_argument("-G", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("-D", action="append", default=[], metavar="NAME")
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    args = parser.parse_args()
    params = dict(g.split("=", 1) for g in args.G)
    script = ecp5.recipe(args.module, args.files, params, "stat.json", defines=args.D, verilog=f"{args.module}.v")
    digest = hashlib.sha256(script.encode())
    for file in args.files:
        digest.update(file.read_bytes())
    directory = args.into / f"gates-{args.module}-{digest.hexdigest()[:16]}"
    directory.mkdir(parents=True, exist_ok=True)
    netlist, log, done = directory / f"{args.module}.v", directory / "yosys.log", directory / "complete"
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            (directory / "synth.ys").write_text(script)
            with log.open("w") as output:
                code = subprocess.run([sys.executable, ecp5.ROOT / "scripts" / "yosys.py", "-s", "synth.ys"], cwd=directory,
                                      stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT).returncode
            if code != 0:
                errors = [l for l in log.read_text(errors="replace").splitlines() if "error" in l.lower()]
                print(f"no netlist of {args.module} (log: {log}):\n" + "\n".join(errors[-8:]), file=sys.stderr)
                return 1
            # Block RAMs that start with nothing say so 64 times. A bit of a port that is read back inside is no loop, though one of the whole vector.
            text = re.sub(r"\.INITVAL_[0-9A-F]{2}\(320'[hb][0x_]+\),?\s*", "", netlist.read_text())
            netlist.write_text("/* verilator lint_off PINMISSING */\n/* verilator lint_off UNOPTFLAT */\n" + text)
            done.touch()
    print(netlist)
    return 0


if __name__ == "__main__":
    sys.exit(main())
