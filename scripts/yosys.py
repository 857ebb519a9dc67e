#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Yosys (the native library of pyosys) with the part of yosys's command line that the flow uses.

    yosys [-q] [-l LOG] [-s SCRIPT]... [-p COMMANDS]... [FILE.sv | FILE.il | FILE.ys]...

Commands of -p are separated by newlines or by ' ; '.
"""
import argparse
import importlib.metadata
import os
import sys
import tempfile

from pyosys import libyosys as ys


def main() -> int:
    parser = argparse.ArgumentParser(prog="yosys", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("-q", action="store_true", help="print nothing but errors")
    parser.add_argument("-l", metavar="LOG", help="write the log to a file")
    parser.add_argument("-s", metavar="SCRIPT", action="append", default=[], help="run a script file")
    parser.add_argument("-p", metavar="COMMANDS", action="append", default=[], help="run commands")
    parser.add_argument("-V", "--version", action="store_true", help="print the version")
    parser.add_argument("files", nargs="*", help="files to read first")
    args = parser.parse_args()

    design = ys.Design()
    if args.version:
        print(importlib.metadata.version("pyosys"))
        return 0
    readers = {".ys": "script", ".il": "read_rtlil"}
    lines = [f"{readers.get(os.path.splitext(f)[1], 'read_slang')} {f}" for f in args.files]
    lines += [f"script {s}" for s in args.s]
    for commands in args.p:
        lines += commands.replace(" ; ", "\n").split("\n")
    with tempfile.NamedTemporaryFile("w", suffix=".ys", delete=False) as script:
        script.write("\n".join(line.strip() for line in lines) + "\n")
    tee = "tee " + ("-q " if args.q else "") + (f"-o {args.l} " if args.l else "") if args.q or args.l else ""
    try:
        ys.run_pass(f"{tee}script {script.name}", design)
    finally:
        os.unlink(script.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
