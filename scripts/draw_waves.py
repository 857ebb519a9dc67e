#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the book's waveforms: docs/src/img/<name>.json5 (WaveDrom) to <name>.svg beside it.

--check draws nothing: it fails when a drawing is missing or was made from another source. It needs no package; drawing
needs those of scripts/requirements-docs.txt.
"""
import argparse
import hashlib
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "src" / "img"


def mark(source):
    return f"<!-- drawn by make drawings from {source.name}, sha256 {hashlib.sha256(source.read_bytes()).hexdigest()} -->"


def draw(source):
    import wavedrom

    svg = wavedrom.render(source.read_text()).tostring()
    # Of the skin's shapes, keep those in use; a white ground, as the book has dark themes.
    used = set(re.findall(r'xlink:href="#([^"]+)"', svg))
    svg = re.sub(r'<g id="([^"]+)">(?:<(?:path|rect|circle)[^>]*/>)*</g>', lambda m: m[0] if m[1] in used else "", svg)
    svg = svg.replace("</defs>", '</defs><rect width="100%" height="100%" fill="#fff" />', 1)
    # Long names in small letters, so that they stay in their clock.
    svg = re.sub(r"<tspan>([A-Z_]{11,})</tspan>", r'<tspan style="font-size:11px">\1</tspan>', svg)
    source.with_suffix(".svg").write_text(f"{svg}\n{mark(source)}\n")
    print(f"drew {source.with_suffix('.svg').relative_to(ROOT)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only see whether the drawings are fresh")
    args = parser.parse_args()
    sources = sorted(IMAGES.glob("*.json5"))
    if not args.check:
        for source in sources:
            draw(source)
        return 0
    stale = [s for s in sources if not s.with_suffix(".svg").is_file() or mark(s) not in s.with_suffix(".svg").read_text()]
    for source in stale:
        print(f"{source.with_suffix('.svg').relative_to(ROOT)} is stale: run make drawings", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
