#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every local link, anchor and picture of the built book (docs/book) leads somewhere, and no page needs the network."""
import html
import pathlib
import re
import sys
from urllib.parse import unquote

BOOK = pathlib.Path(__file__).resolve().parent.parent / "docs" / "book"


def main():
    pages = {p: p.read_text() for p in BOOK.rglob("*.html") if p.name not in ("print.html", "404.html", "toc.html")}
    anchors = {p: set(re.findall(r'id="([^"]+)"', text)) for p, text in pages.items()}
    wrong = [] if pages else [f"{BOOK} holds no page"]
    for page, text in pages.items():
        for kind, link in re.findall(r'(href|src)="([^"]+)"', text):
            link = html.unescape(link)
            if re.match(r"https?:|//", link):
                if kind == "src":
                    wrong.append(f"{page.name}: {link} is on the network")
                continue
            file, _, anchor = link.partition("#")
            target = (page.parent / unquote(file)).resolve() if file else page
            if not target.exists():
                wrong.append(f"{page.name}: {link} leads nowhere")
            elif anchor and target in anchors and unquote(anchor) not in anchors[target]:
                wrong.append(f"{page.name}: {link}: no such heading")
    print("\n".join(wrong), file=sys.stderr, end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
