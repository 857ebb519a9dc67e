# SPDX-License-Identifier: Apache-2.0
"""The book's list of properties (docs/src/gen/properties.md): the words of each from the file where it stands, the times from
out/formal/report.json. `formal.py --book` writes it; every run of formal.py compares the words with it."""
import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "src" / "gen" / "properties.md"
HEAD = """# Properties, one by one

Written by `make formal ARGS=--book` from the files of `formal/` and the last runs of `make formal` (`ARGS=--all` runs the long ones, too). What the proofs are about, and
how far they go, stands in [Proofs](../proofs.md). Times are seconds of one core; *bugs* is the number of seeded bugs that the
property must find, and has found. Covers and bugs are looked for at a smaller size where `formal/proofs.toml` says so.
"""


def words(proof: dict) -> dict[str, str]:
    """What each property of a proof says, from the list at the head of its file: a name, its words, lines that go on further to the right."""
    found: dict[str, str] = {}
    last = None
    for line in (ROOT / proof["text"]).read_text().splitlines():
        if not line.startswith("//"):
            if found:
                break
            continue
        if item := re.match(r"//   ([pi]_[\w*]+)\s+(\S.*)", line):
            last = item[1]
            found[last] = item[2]
        elif last and (more := re.match(r"//     +(\S.*)", line)):
            found[last] += " " + more[1]
        else:
            last = None
    return {name: text for name, text in found.items() if name.startswith("p_")}


def covered(name: str, names: dict[str, str]) -> bool:
    """Has a property its words, by its own name or as one of a group (`p_rows_*`)?"""
    return name in names or any(n.endswith("*") and name.startswith(n[:-1]) for n in names)


def wordless(proof: dict, properties: list[str]) -> list[str]:
    """Properties that the head of their file does not put in words, and words without a property."""
    names = words(proof)
    said = [f"{proof['name']}: {p} has no words in {proof['text']}" for p in properties if not covered(p, names)]
    ghosts = [n for n in names if not any(p == n or (n.endswith("*") and p.startswith(n[:-1])) for p in properties)]
    return said + [f"{proof['name']}: {proof['text']} speaks of {n}, which is not there" for n in ghosts]


def section(proof: dict, runs: list[dict]) -> tuple[list[str], list[str]]:
    """The words of a proof in the book, and the line that tells its times (or that it was not run)."""
    own = {r["run"]: r for r in runs if r["proof"] == proof["name"]}
    how = "for all time (k-induction)" if proof["mode"] == "prove" else f"{proof['depth']} cycles (bounded)"
    size = ", ".join(f"`{k}` = {v}" for k, v in proof.get("params", {}).items())
    title = [f"## {proof['name']}", "", f"`{proof['text']}`, {how}" + (f", {size}" if size else "") + "."]
    if "prove" not in own:
        times = "Not run."
    else:
        hunted = [r for n, r in own.items() if n not in ("prove", "cover")]
        bad = [n for n, r in own.items() if not r["good"]]
        times = f"Proof {own['prove']['cpu']:.0f} s" + (f", covers {own['cover']['cpu']:.0f} s" if "cover" in own else "")
        times += f", {len(hunted)} seeded bugs {sum(r['cpu'] for r in hunted):.0f} s" if hunted else ""
        times += f". **Not as it should be: {', '.join(bad)}.**" if bad else "."
    if "like" in proof:
        return title + ["", f"The properties of `{proof['like']}`."], [times]
    rows = ["", "| Property | In words | Bugs |", "|---|---|--:|"]
    for name, text in words(proof).items():
        bugs = [b for b in proof.get("bug", []) if b["property"] == name or (name.endswith("*") and b["property"].startswith(name[:-1]))]
        rows.append(f"| `{name}` | {text.replace('|', chr(92) + '|')} | {len(bugs)} |")
    return title + rows, [times]


def write(proofs: list[dict]) -> None:
    """Writes the page from the last report."""
    runs = json.loads((ROOT / "out/formal/report.json").read_text())
    out = [HEAD]
    for proof in proofs:
        text, times = section(proof, runs)
        out += text[:3] + times + text[3:] + [""]
    PAGE.write_text("\n".join(out))


def stale(proofs: list[dict]) -> list[str]:
    """Sections of the page that are not what the files say now (times apart)."""
    page = PAGE.read_text() if PAGE.exists() else ""
    bad = []
    for proof in proofs:
        text, _ = section(proof, [])
        lines = page.split(f"{text[0]}\n", 1)[-1].split("\n## ", 1)[0].splitlines() if f"{text[0]}\n" in page else []
        if lines[:2] + lines[3:] != text[1:] + [""] and lines[:2] + lines[3:] != text[1:]:
            bad.append(f"{proof['name']}: {PAGE.relative_to(ROOT)} is not what {proof['text']} says: make formal ARGS=--book")
    return bad
