# SPDX-License-Identifier: Apache-2.0
"""Tests of what the scripts about size and clocks compute: python -m unittest scripts/test_scripts.py (make lint runs them)."""
import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import floorplan  # noqa: E402
import paths  # noqa: E402
import pnr  # noqa: E402
import tables  # noqa: E402


def cell(kind, inputs, outputs):
    """A cell of a netlist, its pins by name with the net of each."""
    return {
        "type": kind,
        "port_directions": dict.fromkeys(inputs, "input") | dict.fromkeys(outputs, "output"),
        "connections": {pin: [net] for pin, net in (inputs | outputs).items()},
    }


def netlist(**between):
    """Net 2 leaves a flip-flop, net 9 enters another one; the cells given stand between them."""
    cells = {
        "from": cell("TRELLIS_FF", {"CLK": 1, "DI": "0"}, {"Q": 2}),
        "to": cell("TRELLIS_FF", {"CLK": 1, "DI": 9}, {"Q": 10}),
    }
    names = {"start_q": {"bits": [2]}, "end_q": {"bits": [10]}}
    return paths.Netlist({"cells": cells | between, "netnames": names}, None)


class Paths(unittest.TestCase):
    def longest(self, found):
        ns, bit, end = max(found.ends())
        self.assertEqual((found.start(bit), end), ("start_q", "end_q"))
        return round(ns, 2)

    def test_a_table_costs_itself_and_a_net(self):
        one = netlist(t=cell("LUT4", {"A": 2, "B": "0", "C": "0", "D": "1"}, {"Z": 9}))
        two = netlist(t=cell("LUT4", {"A": 2}, {"Z": 3}), u=cell("LUT4", {"D": 3}, {"Z": 9}))
        self.assertEqual(self.longest(one), round(0.45 + 0.75 + 0.24 + 0.75 + 0.3, 2))
        self.assertEqual(self.longest(two), round(self.longest(one) + 0.24 + 0.75, 2))

    def test_a_slices_multiplexer_has_no_net_before_it(self):
        tables_of_5 = netlist(
            a=cell("LUT4", {"A": 2}, {"Z": 3}), b=cell("LUT4", {"B": 2}, {"Z": 4}), m=cell("PFUMX", {"ALUT": 3, "BLUT": 4, "C0": "0"}, {"Z": 9})
        )
        self.assertEqual(self.longest(tables_of_5), round(0.45 + 0.75 + 0.24 + 0.15 + 0.75 + 0.3, 2))

    def test_a_carry_chain_goes_on_without_nets(self):
        chain = netlist(
            a=cell("CCU2C", {"A0": 2}, {"COUT": 3}), b=cell("CCU2C", {"CIN": 3}, {"COUT": 4}), c=cell("CCU2C", {"CIN": 4}, {"S1": 9})
        )
        self.assertEqual(self.longest(chain), round(0.45 + 0.75 + 0.5 + 0.07 + 0.44 + 0.75 + 0.3, 2))

    def test_a_net_with_many_readers_is_slower(self):
        many = {f"r{i}": cell("LUT4", {"A": 2}, {"Z": 100 + i}) for i in range(200)}
        self.assertEqual(self.longest(netlist(t=cell("LUT4", {"A": 2}, {"Z": 9}), **many)), round(0.45 + 0.75 + 0.35 + 0.5 + 0.24 + 0.75 + 0.3, 2))

    def test_a_cell_without_delays_is_refused(self):
        with self.assertRaisesRegex(SystemExit, "no delays known of WIDEFN9"):
            netlist(t=cell("WIDEFN9", {"A": 2}, {"Z": 9}))


LOG = """\
Info: \t              DP16KD:     147/    208    70%
Info: \t        TRELLIS_COMB:   50159/  83640    59%
Info: Max frequency for clock '$glbnet$clk_gtx': 241.31 MHz (PASS at 125.00 MHz)
Info: Max frequency for clock '$glbnet$clk_sys': 45.71 MHz (PASS at 34.09 MHz)
Info: Routing globals...
Info: Max frequency for clock '$glbnet$clk_gtx': 120.50 MHz (FAIL at 125.00 MHz)
Info: Max frequency for clock '$glbnet$clk_sys': 40.00 MHz (PASS at 34.09 MHz)
"""


class Nextpnr(unittest.TestCase):
    def test_what_was_routed_counts(self):
        clocks, used = pnr.told(LOG)
        self.assertEqual(clocks["$glbnet$clk_gtx"], {"mhz": 120.5, "target": 125.0})
        self.assertEqual(clocks["$glbnet$clk_sys"], {"mhz": 40.0, "target": 34.09})
        self.assertEqual(used, {"DP16KD": [147, 208], "TRELLIS_COMB": [50159, 83640]})

    def test_settings_go_to_the_top_and_nothing_else_changes(self):
        design = {"modules": {"LUT4": {"attributes": {"blackbox": "1"}}, "board": {"attributes": {"top": "00000001"}, "cells": {}}}}
        with tempfile.TemporaryDirectory() as directory:
            file = pathlib.Path(directory) / "netlist.json"
            file.write_text(json.dumps(design))
            copy = json.loads(pnr.for_nextpnr(file, file.parent, {}).read_text())
        self.assertEqual(copy["modules"]["board"].pop("settings"), pnr.SETTINGS)
        self.assertEqual(copy, design)

    def test_rams_are_held_where_the_list_says_and_a_list_that_does_not_fit_is_refused(self):
        rams = {name: {"type": "DP16KD", "attributes": {}} for name in ("a.0", "a.1")}
        design = {"modules": {"board": {"attributes": {"top": "1"}, "cells": rams | {"f": {"type": "TRELLIS_FF", "attributes": {}}}}}}
        with tempfile.TemporaryDirectory() as directory:
            file, bels = pathlib.Path(directory) / "netlist.json", pathlib.Path(directory) / "x.bels"
            file.write_text(json.dumps(design))
            bels.write_text("# why\nX4/Y22/EBR0 a.0\nX6/Y46/EBR1 a.1\n")
            cells = json.loads(pnr.for_nextpnr(file, file.parent, pnr.read_bels(bels)).read_text())["modules"]["board"]["cells"]
            self.assertEqual([c["attributes"] for c in cells.values()], [{"BEL": "X4/Y22/EBR0"}, {"BEL": "X6/Y46/EBR1"}, {}])
            for told in ("X4/Y22/EBR0 a.0\n", "X4/Y22/EBR0 a.0\nX6/Y46/EBR1 a.1\nX8/Y46/EBR2 a.2\n"):
                bels.write_text(told)
                with self.assertRaisesRegex(SystemExit, "does not fit the netlist"):
                    pnr.for_nextpnr(file, file.parent, pnr.read_bels(bels))
        self.assertEqual(pnr.read_bels(pathlib.Path("no/such.bels")), {})

    def test_empty_sites_are_held_by_tables_that_nobody_reads(self):
        design = {"modules": {"board": {"attributes": {"top": "1"}, "cells": {}}}}
        with tempfile.TemporaryDirectory() as directory:
            file = pathlib.Path(directory) / "netlist.json"
            file.write_text(json.dumps(design))
            cells = json.loads(pnr.for_nextpnr(file, file.parent, {}, ["X4/Y3/SLICED.K1"]).read_text())["modules"]["board"]["cells"]
        (held,) = cells.values()
        self.assertEqual((held["type"], held["attributes"], held["connections"]), ("LUT4", {"BEL": "X4/Y3/SLICED.K1"}, {}))

    def test_a_plans_boxes_leave_sites_in_every_other_row(self):
        device = {"device": "--um5g-85k"}
        self.assertEqual(len(pnr.tiles(device)), 83_640 // len(pnr.SITES))
        rows = ["0" * 21] * 16
        self.assertEqual(pnr.tiles({"device": "--85k"}), pnr.tiles(device))
        with self.assertRaisesRegex(SystemExit, "--hx8k is none of nextpnr's options for an ECP5"):
            pnr.tiles({"device": "--hx8k"})
        self.assertEqual(pnr.empty_sites(device, rows), [])
        self.assertEqual(pnr.empty_sites(device, []), [])
        for level, share in (("1", 2), ("2", 4), ("3", 8)):
            rows[2] = "00" + level + "0" * 18
            found = pnr.empty_sites(device, rows)
            # Rows 13, 15 and 17 of the box's six columns.
            self.assertEqual(len(found), 3 * 6 * share)
            self.assertEqual({bel.split("/")[1] for bel in found}, {"Y13", "Y15", "Y17"})
        for wrong in (["0" * 21] * 15, ["0" * 20] * 16, ["4" * 21] * 16):
            with self.assertRaisesRegex(SystemExit, "do not fit the device"):
                pnr.empty_sites(device, wrong)

    def test_the_plans_that_are_there_fit_their_devices(self):
        plans = sorted(file.stem for file in (pnr.ROOT / "constraints").glob("*.room"))
        self.assertIn("ecpix5-rnic", plans)
        for name in plans:
            bels, room = pnr.plan_files(name)
            held = pnr.read_bels(bels)
            self.assertEqual(len(held), len(set(held.values())), name)
            empty = pnr.empty_sites(floorplan.design(name)[0], pnr.read_room(room))
            self.assertGreater(len(empty), 1000, name)

    def test_a_tool_is_ended_when_it_has_said_what_was_waited_for(self):
        log = pnr.ROOT / "out" / "test_scripts.log"
        log.parent.mkdir(exist_ok=True)
        command = [sys.executable, "-c", "import time; print('iter=2 wires=', flush=True); time.sleep(600)"]
        code, seconds = pnr.run("a tool", command, log, until="iter=2 wires=")
        self.assertEqual(code, 0)
        self.assertLess(seconds, 60)
        self.assertNotEqual(pnr.run("a tool", [sys.executable, "-c", "raise SystemExit('error: no')"], log, until="iter=2")[0], 0)

    def test_no_configuration_is_asked_of_a_design_without_pins(self):
        config = pnr.ROOT / "out" / "seed1.cfg"
        self.assertIn("--textcfg", pnr.bound("constraints/ecpix5.lpf", config))
        self.assertNotIn("--textcfg", pnr.bound(None, config))

    def test_worst_median_and_best_of_what_was_routed(self):
        runs = [{"good": good, "clocks": {"c": {"mhz": mhz}}} for good, mhz in ((True, 40.0), (True, 44.0), (False, 90.0), (True, 41.0))]
        self.assertEqual(pnr.spread(runs), {"worst": 40.0, "median": 41.0, "best": 44.0})
        self.assertIsNone(pnr.spread(runs[2:3]))


class Spread(unittest.TestCase):
    def test_rows_share_the_rams_by_where_their_neighbours_lie(self):
        # Four in one row, which is full, and two in another; each talks to a flip-flop of its own.
        sites = ["X4/Y22/EBR0", "X6/Y22/EBR1", "X8/Y22/EBR2", "X10/Y22/EBR3", "X4/Y46/EBR0", "X6/Y46/EBR1"]
        cells = {}
        for i, bel in enumerate(sites):
            cells[f"r{i}"] = {"type": "DP16KD", "attributes": {"NEXTPNR_BEL": bel}, "connections": {"DOA0": [i]}}
            cells[f"f{i}"] = {"type": "TRELLIS_FF", "attributes": {"NEXTPNR_BEL": f"X{20 - i}/Y{60 - 10 * i}/SLICEA.FF0"}, "connections": {"DI": [i]}}
        where = floorplan.spread(cells)
        rows = {row: sorted(r for r, bel in where.items() if f"/Y{row}/" in bel) for row in (22, 46)}
        self.assertEqual(rows, {22: ["r3", "r4", "r5"], 46: ["r0", "r1", "r2"]})
        # Left to right, too, and no two at a place.
        self.assertEqual([where[r] for r in ("r5", "r4", "r3")], ["X4/Y22/EBR0", "X8/Y22/EBR2", "X10/Y22/EBR3"])
        self.assertEqual(len(set(where.values())), 6)


class Room(unittest.TestCase):
    def test_most_room_where_most_wires_are_wanted(self):
        crowd = [[0] * 60 for _ in range(60)]
        for x in range(12, 18):
            for y in range(30, 36):
                crowd[x][y] = 5
        rows = floorplan.levels(crowd)
        self.assertEqual((len(rows), {len(row) for row in rows}), (10, {10}))
        # The crowd's box and those that it reaches into; nothing is wanted twice elsewhere, and nothing left empty.
        self.assertEqual([x for x in range(10) if rows[5][x] == "3"], [1, 2, 3])
        self.assertEqual({row.count("3") for row in rows}, {0, 3})
        self.assertEqual(sum(row.count("0") for row in rows), 91)

    def test_a_quarter_of_the_boxes_each(self):
        rows = floorplan.levels([[x + 100 * y for y in range(60)] for x in range(60)])
        self.assertEqual([sum(row.count(level) for row in rows) for level in "0123"], [25] * 4)
        self.assertEqual((rows[0], rows[9]), ("0" * 10, "3" * 10))

    def test_what_is_left_raises_its_box_and_those_that_it_touches(self):
        crowd = [[0] * 30 for _ in range(30)]
        crowd[15][15] = 1  # the middle of a box
        crowd[24][3] = 4   # at an edge: the box before it, too
        self.assertEqual(floorplan.raised(["01230", "12301", "23012", "30123", "01230"], crowd), ["01231", "12301", "23112", "30123", "01230"])

    def test_designs_by_name(self):
        device, work, bound = floorplan.design("ecpix5-rnic")
        self.assertEqual((device["device"], work.name, bound), ("--um5g-85k", "ecpix5-rnic", ["--lpf", "constraints/ecpix5.lpf"]))
        self.assertEqual(floorplan.design("core_256")[2], pnr.OUT_OF_CONTEXT)
        with self.assertRaisesRegex(SystemExit, "no design core_255; there are versa5g-loopback"):
            floorplan.design("core_255")


class Tables(unittest.TestCase):
    def test_titles_first_and_numbers_to_the_right(self):
        rows = [["What", "LUT4"], ["core", "44 (53 %)"]]
        self.assertEqual(tables.as_markdown(rows), "| What | LUT4 |\n| --- | --: |\n| core | 44 (53&nbsp;%) |\n")


if __name__ == "__main__":
    unittest.main()
