# SPDX-License-Identifier: Apache-2.0
"""How the RTL becomes cells of the ECP5: Yosys's recipe and what its cells add up to. For synth.py, bitstream.py and gates.py.

The recipe is `synth_ecp5` with differences: assertions are no hardware; tables of constants are no block RAM; comparisons with constants and
sums of up to SHORT_SUM bits take no carry chain; abc9 maps to tables of up to five inputs, in three rounds, with the delays of block RAMs. (Against `abc -lut 4` of an image: 4 % fewer LUTs and
longest paths of 23 ns instead of 28. Tables of up to seven inputs: neither smaller nor faster.)
Large parts may be kept apart until they are mapped: passes over one module of 40,000 cells take many times longer than over six parts of it.
"""
import importlib.util
import json
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
MAP = [
    "scratchpad -copy abc9.script.flow3 abc9.script",
    "abc9 -W 600 -maxlut 5",  # a net takes 600 ps; no tables beyond five inputs, two LUT4 and a multiplexer
    "clean",
    "techmap -map +/lattice/cells_map_trellis.v",
    "opt_lut_ins -tech lattice",
    "clean",
]
SHORT_SUM = 8
# Of another clock than the rest. Mapped as one with a core whose paths are longer, it would get tables that are small and slow.
FAST_PARTS = ["rnic_mac"]
CORE_PARTS = ["rnic_host", "rnic_ctrl", "rnic_qp", "rnic_send", "rnic_recv", "rnic_wire"]


def listed(path):
    """The files that a file list names."""
    lines = (ROOT / path).read_text().splitlines()
    files = [l.strip() for l in lines if l.strip() and not l.strip().startswith(("//", "#"))]
    missing = [f for f in files if not (ROOT / f).is_file()]
    if missing:
        raise SystemExit(f"{path} lists what is not there: {', '.join(missing)}")
    return files


def recipe(top, files, params, stat, netlist=None, parts=(), fast=(), by_part=None, defines=(), verilog=None, smoke=False):
    """A Yosys script. `params` by name; `parts`: modules that are made smaller one by one before they are mapped as one; `fast`: modules that are mapped
    by themselves; `stat`, `netlist` (JSON), `verilog`: files that it leaves. `by_part`: a file for statistics of parts, each mapped by itself. `smoke`: ends when memories have
    become block RAMs and distributed RAMs, and nothing is a latch."""
    apart = [f"setattr -mod -set keep_hierarchy 1 {m} {m}$*" for m in [*parts, *fast]]
    lines = [
        # Assertions are no hardware, but what leads to them would be mapped.
        f"read_slang --ignore-assertions --unroll-limit 100000 {'--keep-hierarchy ' if apart else ''}--top {top} "
        + " ".join([f"-G {k}={v}" for k, v in params.items()] + [f"-D {d}" for d in defines]) + " " + " ".join(str(f) for f in files),
        f"hierarchy -check -top {top}",
        *apart,
        # Tables of constants stay logic: as block RAMs they take 16 of them, with little in each.
        "memory_map -rom-only",
        f"synth_ecp5 -cmp2softlogic -top {top} -run begin:{'map_ffram' if smoke else 'map_gates'}",
        *([] if smoke else [f"techmap -map +/techmap.v t:$alu r:Y_WIDTH<={SHORT_SUM} %i", f"synth_ecp5 -cmp2softlogic -top {top} -run map_gates:map_luts"]),
        "check -latchonly -assert",
    ]
    if smoke:
        return "\n".join([*lines, f"tee -q -o {stat} stat -json"]) + "\n"
    lines.append(_ram_delays())
    if by_part:
        lines += ["design -save unmapped", *MAP, f"tee -q -o {by_part} stat -json", "design -load unmapped"]
    if parts:
        lines += [*[f"setattr -mod -unset keep_hierarchy {m} {m}$*" for m in parts], "flatten", "clean", "opt -fast"]
    lines += [*MAP, "hierarchy -check", f"tee -q -o {stat} stat -json", "blackbox =A:whitebox"]
    if netlist:
        lines += ["setattr -mod -unset keep_hierarchy *", "flatten", "clean", "check -noinit", f"write_json {netlist}"]
    if verilog:
        # Bit by bit: what goes round through two bits of a vector is no loop.
        lines += ["splitnets", f"write_verilog -noattr {verilog}"]
    return "\n".join(lines) + "\n"


def _ram_delays():
    """For Yosys: block RAMs answer late. Its own shell of DP16KD has no delays, so that ABC takes their outputs for early ones."""
    shells = pathlib.Path(importlib.util.find_spec("pyosys").submodule_search_locations[0]) / "share" / "lattice" / "cells_sim_ecp5.v"
    shell = re.search(r"\(\* blackbox \*\)\s*module DP16KD\(.*?(?=endmodule)", shells.read_text(), re.S).group(0)
    # Picoseconds after the output of a flip-flop.
    arcs = [f"(posedge CLK{port} => (DO{port}{i} : 1'bx)) = 4150;" for port in "AB" for i in range(18)]
    return "\n".join(["read_verilog -overwrite -lib -specify <<EOT", shell, "specify", *arcs, "endspecify", "endmodule", "EOT"])


def cells(stat):
    """What a design takes, and its parts by name, of the statistics that the recipe leaves."""
    text = pathlib.Path(stat).read_text()
    modules = json.loads(text[text.index("{"):])["modules"]
    of = {name.lstrip("\\").split("$")[0]: _sum(m["num_cells_by_type"]) for name, m in modules.items()}
    return {key: sum(part[key] for part in of.values()) for key in _sum({})} | {"parts": of}


def _sum(by_type):
    lut4, carry, dpr = by_type.get("LUT4", 0), by_type.get("CCU2C", 0), by_type.get("TRELLIS_DPR16X4", 0)
    return {
        # A CCU2C takes two LUTs, a 16x4 distributed RAM four and two more for its write port.
        "lut4": lut4 + 2 * carry + 6 * dpr, "lut4_logic": lut4, "carry": carry, "dpr16x4": dpr,
        "ff": by_type.get("TRELLIS_FF", 0), "ebr": by_type.get("DP16KD", 0), "mult": by_type.get("MULT18X18D", 0),
    }
