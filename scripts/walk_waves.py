#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Takes the waveforms of the book's walk out of a trace of scenarios/one_install.toml.

    openrnic run scenarios/one_install.toml --wave out/one_install.fst
    scripts/walk_waves.py out/one_install.fst        # needs fst2vcd, of GTKWave
    make drawings

Writes docs/src/img/walk_refusal.json5 and walk_install.json5: the two MODIFY commands inside of the QP engine, clock by
clock. Clocks in which nothing changes are drawn as a gap.
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "src" / "img"
QP = "nic0.rnic_top_64.u_core.u_qp."
BATCH = QP + "u_batch."


def enum(file, prefix):
    """Names by value of an enum of the RTL: numbered ones of the package, or in order."""
    text = (ROOT / file).read_text()
    numbered = re.findall(rf"\b{prefix}_(\w+) = \d+'[hd]([0-9a-f]+)", text)
    if numbered:
        return {int(value, 16): name for name, value in numbered}
    return dict(enumerate(re.findall(rf"^    {prefix}_(\w+),?(?= *//|$)", text, re.MULTILINE)))


SPEC = "rtl/gen/rnic_spec_pkg.sv"
STATES = enum("rtl/qp/rnic_qp_batch.sv", "ST")
QP_STATES, RULES, STATUSES = enum(SPEC, "QP_STATE"), enum(SPEC, "GATE_RULE"), enum(SPEC, "CMD_STATUS")
ATTRS = {value: name for value, name in ((int(v), n) for n, v in re.findall(r"QP_ATTR_BIT_(\w+) = (?:\d+'d)?(\d+)", (ROOT / SPEC).read_text())) if name != "W"}


def attrs(mask):
    return " ".join(ATTRS.get(i, str(i)) for i in range(32) if mask >> i & 1) or "none"


# Lane: label, signal, how a value reads (None: a bit), the bit that says when it matters.
LANES = [
    ("command taken", BATCH + "accept", None, None),
    ("state_q", BATCH + "state_q", lambda v: STATES.get(v, v), None),
    ("record arrives", QP + "u_fetch.beat", None, None),
    ("S0 asks the table", BATCH + "s0_issue", None, None),
    ("S1 own state", BATCH + "own_hot_i.state", lambda v: QP_STATES.get(v, v), BATCH + "s1_valid_q"),
    ("S1 asked for", BATCH + "rec_i.qp_state", lambda v: QP_STATES.get(v, v), BATCH + "s1_valid_q"),
    ("S2 missing", QP + "u_gate.missing_q", attrs, BATCH + "s2_valid_q"),
    ("S3 rule", BATCH + "gate_rule_i", lambda v: RULES.get(v, v), BATCH + "s3_valid_q"),
    ("we_o", BATCH + "we_o", None, None),
    ("hot_o.state", BATCH + "hot_o.state", lambda v: QP_STATES.get(v, v), BATCH + "we_o"),
    ("completion", BATCH + "cpl_o.status", lambda v: STATUSES.get(v, v), BATCH + "cpl_valid_o"),
]
CLOCK, ACCEPT, DONE, MODIFY = QP + "clk_i", BATCH + "accept", BATCH + "cpl_valid_o", BATCH + "is_modify"


def cycles(vcd):
    """One dictionary of values per rising edge: what holds from that edge to the next."""
    wanted = {CLOCK, DONE, MODIFY} | {s for _, signal, _, when in LANES for s in (signal, when) if s}
    names, scope, now, table = {}, [], {}, []
    with vcd.open() as lines:
        for line in lines:
            if line.startswith("$scope"):
                scope.append(line.split()[2])
            elif line.startswith("$upscope"):
                scope.pop()
            elif line.startswith("$var"):
                name = ".".join(scope + [line.split()[4]])
                if name in wanted:
                    names.setdefault(line.split()[3], []).append(name)
            elif line.startswith("$enddefinitions"):
                break
        missing = wanted - {n for several in names.values() for n in several}
        if missing:
            sys.exit(f"the trace lacks {', '.join(sorted(missing))}")
        clock, rose = False, False
        for line in lines:
            if line[0] == "#":
                if rose:
                    table.append(dict(now))
                rose = False
            elif line[0] in "01bxz":
                value, code = line[1:].split() if line[0] == "b" else (line[0], line[1:].strip())
                for name in names.get(code, ()):
                    now[name] = int(value.replace("x", "0").replace("z", "0"), 2)
                    if name == CLOCK:
                        rose, clock = (not clock and now[name] == 1), now[name] == 1
    return table


def lane(label, values, read):
    wave, data, last = "", [], object()
    for value in values:
        if value == "gap":
            wave += "|"
        elif value == last:
            wave += "."
        elif value is None:
            wave += "0"
        elif read is None:
            wave += str(value)
        else:
            wave += "="
            data.append(str(read(value)))
        last = last if value == "gap" else value
    return {"name": label, "wave": wave} | ({"data": data} if data else {})


def picture(name, title, part):
    rows = [[row[s] if when is None or row[when] else None for row in part] for _, s, _, when in LANES]
    columns, kept, k = list(zip(*rows)), [], 0
    numbers = []
    while k < len(columns):
        end = k
        while end + 1 < len(columns) and columns[end + 1] == columns[k]:
            end += 1
        if end - k >= 2:
            kept += [columns[k], ["gap"] * len(LANES)]
            numbers += [str(k), ""]
        else:
            kept += columns[k:end + 1]
            numbers += [str(i) for i in range(k, end + 1)]
        k = end + 1
    rows = list(zip(*kept))
    signal = [{"name": "clk_i", "wave": "p" + "".join("|" if n == "" else "." for n in numbers[1:])}]
    signal.append({"name": "clock", "wave": "".join("=" if n else "|" for n in numbers), "data": [n for n in numbers if n]})
    signal += [lane(label, values, read) for (label, _, read, _), values in zip(LANES, rows)]
    file = IMAGES / f"{name}.json5"
    lines = ",\n  ".join(json.dumps(s) for s in signal)
    file.write_text(f'{{"signal": [\n  {lines}\n],\n"head": {json.dumps({"text": title})},\n"config": {{"hscale": 2}}}}\n')
    done = next(k for k, row in enumerate(part) if row[DONE])
    print(f"wrote {file.relative_to(ROOT)}: {done} clocks to the completion")


def main():
    if len(sys.argv) != 2 or not shutil.which("fst2vcd"):
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as directory:
        vcd = pathlib.Path(directory) / "trace.vcd"
        subprocess.run(["fst2vcd", "-f", sys.argv[1], "-o", vcd], check=True)
        table = cycles(vcd)
    walks = []
    for start, row in enumerate(table):
        if row[ACCEPT]:
            end = next(k for k in range(start + 1, len(table)) if table[k][DONE])
            if table[end][MODIFY]:
                walks.append(table[start:end + 2])
    if len(walks) != 2:
        sys.exit(f"the trace holds {len(walks)} MODIFY commands, not the two of scenarios/one_install.toml")
    picture("walk_refusal", "RESET to INIT without its port", walks[0])
    picture("walk_install", "RESET to INIT", walks[1])


if __name__ == "__main__":
    main()
