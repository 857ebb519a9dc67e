# SPDX-License-Identifier: Apache-2.0
"""Tables in the book between the marks of a target, `<!-- make NAME: begin -->` and `end`. For synth.py and bitstream.py."""
from ecp5 import ROOT


def as_markdown(rows):
    """A table of lists of cells, the first of them the titles; all but the first column to the right."""
    out = [rows[0], ["---"] + ["--:"] * (len(rows[0]) - 1)] + rows[1:]
    return "".join(f"| {' | '.join(row)} |\n" for row in out).replace(" %", "&nbsp;%")


def put(page, name, tables):
    """Replaces what stands between the marks of target `name` in a page of the book, a path below docs/src."""
    file = ROOT / "docs" / "src" / page
    begin, end = f"<!-- make {name}: begin -->\n", f"<!-- make {name}: end -->"
    before, found, rest = file.read_text().partition(begin)
    _, ended, after = rest.partition(end)
    if not (found and ended):
        raise SystemExit(f"{file.relative_to(ROOT)} has no marks for the tables: put in the lines {begin.strip()} and {end}")
    file.write_text(before + begin + "\n" + "\n".join(as_markdown(t) for t in tables) + "\n" + end + after)
    print(f"wrote the tables in {file.relative_to(ROOT)}")
