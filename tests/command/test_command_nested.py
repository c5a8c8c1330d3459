#!/usr/bin/env python3
"""Rows of subgraphs in the command's output: under their If or Loop in every format, without changing the model's sums,
and refusals that name the whole path.

    test_command_nested.py PRONY SOURCE_DIR [unittest options]
"""
import csv
import io
import json
import os
import struct

import chromium
import command_case
import onnx_bytes as ob
from command_case import DONE, FAILED, Schema, run

QUICK = ["-r", "20", "-w", "2", "-x", "1", "--no-progress"]
HOSTILE = 'in/</script><script>throw 1</script>,"\'&;\n=1'
COUNTS = ("macs", "madds", "flops", "special", "int_ops")


def decoder(trips=10):
    """An If, in whose then_branch a Loop runs an If in every trip; its last node has a name that is markup, quotes and separators."""
    inner = {"then_branch": ("graph", ob.graph([ob.node("MatMul", ["c", "w"], ["m"], name="/dec/inner/MatMul")], [],
                                               [ob.value("m", ob.FLOAT, [4, 8])])),
             "else_branch": ("graph", ob.graph([ob.node("Abs", ["c"], ["n"], name="/dec/inner/Abs")], [],
                                               [ob.value("n", ob.FLOAT, [4, 8])]))}
    body = ob.graph([ob.node("Identity", ["go"], ["on"], name="/dec/body/Keep"),
                     ob.node("Less", ["i", "three"], ["early"], name="/dec/body/Less"),
                     ob.node("If", ["early"], ["made"], name="/dec/body/Inner", **inner),
                     ob.node("Add", ["made", "c"], ["next"], name=HOSTILE)],
                    [ob.value("i", ob.INT64, []), ob.value("go", ob.BOOL, []), ob.value("c", ob.FLOAT, [4, 8])],
                    [ob.value("on", ob.BOOL, []), ob.value("next", ob.FLOAT, [4, 8])])
    then = ob.graph([ob.node("Loop", ["trips", "", "x"], ["z"], name="/dec/Loop", body=("graph", body))], [],
                    [ob.value("z", ob.FLOAT, [4, 8])])
    other = ob.graph([ob.node("Neg", ["x"], ["u"], name="/dec/Neg")], [], [ob.value("u", ob.FLOAT, [4, 8])])
    weights = ob.floats("w", [8, 8], [0.01 * (i % 5) for i in range(64)])
    return ob.model(ob.graph([ob.node("If", ["run"], ["out"], name="/dec/Outer", then_branch=("graph", then),
                                      else_branch=("graph", other))],
                             [ob.value("run", ob.BOOL, []), ob.value("x", ob.FLOAT, [4, 8])], [ob.value("out", ob.FLOAT, [4, 8])],
                             [weights, ob.tensor("three", ob.INT64, [], struct.pack("<q", 3)),
                              ob.tensor("trips", ob.INT64, [], struct.pack("<q", trips))]), opset=16)


class Nested(command_case.CommandTest):
    def setUp(self):
        super().setUp()
        self.model = self.write("decoder.onnx", decoder())
        self.taken = ["-i", "run=1"]

    def profiled(self, *arguments):
        path = self.path("report.json")
        self.succeed("profile", self.model, *self.taken, *QUICK, "-q", "--json", path, *arguments)
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
        self.assertEqual(Schema("report").problems(report), [])
        return report

    def rows(self, report, level):
        return {row["name"]: row for row in report["nested_" + level]}

    def check_sums(self, report):
        """Rows sum to their parent's, on both levels; the totals count the outermost once."""
        self.assertTrue(report["totals"]["conserved"])
        for level in ("layers", "operators"):
            for kind in COUNTS + (("bytes",) if level == "layers" else ()):
                inside = {}
                for row in report["nested_" + level]:
                    key = row["owner"] if row["parent"] is None else ("row", row["parent"])
                    inside[key] = inside.get(key, 0) + row[kind]
                for key, total in inside.items():
                    parent = report["nested_" + level][key[1]] if isinstance(key, tuple) else report[level][key]
                    self.assertEqual(total, parent[kind], (level, kind, parent["name"]))
        for kind in COUNTS:
            self.assertEqual(report["totals"][kind], sum(row[kind] for row in report["layers"]))

    def test_rows(self):
        report = self.profiled()
        self.check_sums(report)
        for level in ("layers", "operators"):
            rows = self.rows(report, level)
            self.assertEqual(rows["/dec/inner/MatMul"]["path"],
                             "/dec/Outer > then_branch > /dec/Loop > body > /dec/body/Inner > then_branch")
            self.assertEqual({name: rows[name]["executions"] for name in
                              ("/dec/Loop", "/dec/body/Less", "/dec/inner/MatMul", "/dec/inner/Abs", HOSTILE, "/dec/Neg")},
                             {"/dec/Loop": 1, "/dec/body/Less": 10, "/dec/inner/MatMul": 3, "/dec/inner/Abs": 7, HOSTILE: 10,
                              "/dec/Neg": 0})
        self.assertEqual(self.rows(report, "layers")["/dec/inner/MatMul"]["macs"], 3 * 4 * 8 * 8)
        self.assertEqual(self.rows(report, "operators")["/dec/Neg"]["time_ns"]["max"], 0)
        self.taken = ["-i", "run=0"]
        other = self.profiled()
        self.check_sums(other)
        self.assertEqual(self.rows(other, "layers")["/dec/Neg"]["executions"], 1)

    def test_two_workers(self):
        one, two = (self.profiled("-y", workers) for workers in ("1", "2"))
        self.check_sums(two)
        what = ("name", "path", "executions", "macs", "flops", "bytes")
        self.assertEqual(*([{key: row[key] for key in what} for row in report["nested_operators"]] for report in (one, two)))

    def test_inspect(self):
        path = self.path("i.json")
        self.succeed("inspect", self.model, "-q", "--json", path)
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
        self.assertEqual(Schema("report").problems(report), [])
        self.assertNotIn("nested_operators", report)
        row = self.rows(report, "layers")["/dec/inner/MatMul"]
        self.assertNotIn("executions", row)
        self.assertEqual(row["macs"], 4 * 8 * 8)
        text = self.succeed("inspect", self.model, "--all")
        self.assertRegex(text, r"(?s)/dec/Outer .*\n +then_branch\n.*/dec/Loop.*\n +body\n.*/dec/inner/MatMul.*\n +else_branch\n.*/dec/Neg")

    def test_text_fits_into_80_columns(self):
        text = self.succeed("profile", self.model, *self.taken, *QUICK, "--all")
        for line in text.splitlines():
            self.assertLessEqual(len(line), 80, line)
        first = self.succeed("profile", self.model, *self.taken, *QUICK)
        self.assertRegex(first, r"(?s)In short.*Inside +/dec/Outer.*Layers.*/dec/Outer +If.*then_branch")
        inside = self.succeed("profile", self.model, *self.taken, *QUICK, "--level", "nested", "--filter", "op=Abs")
        self.assertRegex(inside, r"(?s)^\nInside .*> /dec/inner/Abs.* 7 .*selected")

    def test_every_form(self):
        out = self.path("forms")
        self.succeed("profile", self.model, *self.taken, *QUICK, "-q", "--output-dir", out)
        with open(os.path.join(out, "report.json"), encoding="utf-8") as file:
            report = json.load(file)
        with open(os.path.join(out, "nested.csv"), encoding="utf-8", newline="") as file:
            table = list(csv.DictReader(io.StringIO(file.read())))
        both = [("layer", row) for row in report["nested_layers"]] + [("operator", row) for row in report["nested_operators"]]
        self.assertEqual(len(table), len(both))
        for line, (level, row) in zip(table, both):
            self.assertEqual((line["level"], line["owner"], line["parent"], line["executions"], line["flops"], line["time_mean_ns"]),
                             (level, str(row["owner"]), "" if row["parent"] is None else str(row["parent"]), str(row["executions"]),
                              str(row["flops"]), "" if row["time_ns"] is None else str(row["time_ns"]["mean"])))
        with open(os.path.join(out, "layers.csv"), encoding="utf-8", newline="") as file:
            self.assertEqual(sum(int(row["flops"]) for row in csv.DictReader(file)), report["totals"]["flops"])
        with open(os.path.join(out, "stacks.folded"), encoding="utf-8") as file:
            stacks = file.read().splitlines()
        self.assertEqual(sum(int(line.rsplit(" ", 1)[1]) for line in stacks), sum(row["time_ns"]["mean"] for row in report["layers"]))
        self.assertTrue(any(";then_branch;Loop;body;Inner [If];else_branch;Abs " in line for line in stacks), stacks)
        with open(os.path.join(out, "trace.json"), encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        outer = next(e for e in events if e.get("cat") == "operator")
        inside = [e for e in events if e.get("cat") == "nested"]
        self.assertEqual(len(inside), sum(row["executions"] > 0 for row in report["nested_operators"]))
        for event in inside:
            self.assertGreaterEqual(event["ts"], outer["ts"])
            self.assertLessEqual(round((event["ts"] + event["dur"]) * 1000), round((outer["ts"] + outer["dur"]) * 1000))
        with open(os.path.join(out, "graph.dot"), encoding="utf-8") as file:
            graph = file.read()
        self.assertIn('label="/dec/Outer > then_branch > /dec/Loop > body x 10"', graph)
        with open(os.path.join(out, "report.tex"), encoding="utf-8") as file:
            self.assertIn(r"\textit{body} $\times$10", file.read())

    def test_without_subgraphs_nothing_is_added(self):
        out = self.path("plain")
        self.succeed("profile", self.digits, *QUICK, "-q", "--output-dir", out)
        self.assertFalse(os.path.exists(os.path.join(out, "nested.csv")))
        with open(os.path.join(out, "report.json"), encoding="utf-8") as file:
            self.assertNotIn('"nested_', file.read())

    def test_comparison(self):
        a = self.path("report.json")
        self.profiled()
        code, out, err = run("compare", a, a, "--json", "-")
        self.assertEqual((code, err), (DONE, ""))
        document = json.loads(out)
        self.assertEqual(Schema("comparison").problems(document), [])
        row = next(row for row in document["nested_layers"] if row["name"].endswith("else_branch > /dec/inner/Abs"))
        self.assertEqual((row["a_executions"], row["b_executions"]), (7, 7))

    def test_bounds_name_the_whole_path(self):
        way = "node '/dec/Outer' (If), then_branch: node '/dec/Loop' (Loop)"
        code, _, err = run("profile", self.model, *self.taken, *QUICK, "--max-loop-trips", "5")
        self.assertEqual(code, FAILED)
        self.assertIn(way + ": did not stop after 5 trips", err)
        endless = self.write("endless.onnx", decoder(1 << 40))
        code, _, err = run("run", endless, *self.taken, "--time-limit", "0.5s")
        self.assertEqual(code, FAILED)
        self.assertIn(way + ", body: ", err)

    def test_an_interrupted_profile_says_where(self):
        """Each run takes long, so the limit ends it in the middle."""
        model = self.write("slow.onnx", decoder(200000))
        path = self.path("stopped.json")
        code, _, err = run("profile", model, *self.taken, "-r", "10000", "-w", "1", "-x", "1", "-q", "--time-limit", "4s", "--json", path,
                           seconds=120)
        self.assertEqual(code, FAILED)
        self.assertIn("time limit", err)
        if not os.path.exists(path):
            self.skipTest("so slow a machine that no run was finished")
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
        self.assertEqual(Schema("report").problems(report), [])
        self.check_sums(report)
        if report["latency_ns"].get("stopped_at"):
            self.assertTrue(report["latency_ns"]["stopped_at"].startswith("/dec/Outer"))
        self.assertEqual(self.rows(report, "operators")[HOSTILE]["executions"], 200000)


class Page(command_case.CommandTest):
    """The HTML tables in a browser."""

    def setUp(self):
        super().setUp()
        path = chromium.find()
        if not path:
            self.skipTest("Chromium (Debian: chromium) is not installed: the HTML page is NOT tested")
        page = self.path("page.html")
        self.succeed("profile", self.write("decoder.onnx", decoder()), "-i", "run=1", *QUICK, "-q", "--html", page)
        self.browser = chromium.Browser(path)
        self.addCleanup(self.browser.close)
        self.browser.open(page)

    def lines(self):
        return self.browser.run("[...document.querySelectorAll('#table tr.data')]"
                                ".map(row => row.cells[0].querySelector('bdi').textContent)")

    def type(self, text):
        self.browser.run("$('search').value = %s; refresh()" % json.dumps(text))

    def test_rows_open_and_close(self):
        run_js = self.browser.run
        for level in ("layers", "operators"):
            run_js("openLevel('%s'); for (const row of %s.flatMap(row => [row, ...allInside(row)])) "
                   "row.open = row.closed = false; refresh()" % (level, level))
            self.assertEqual(self.lines(), ["/dec/Outer"])
            run_js("document.querySelector('.toggle').click()")
            shown = ("/dec/Outer", "else_branch", "/dec/Neg", "then_branch", "/dec/Loop")
            self.assertEqual([name for name in self.lines() if name in shown],
                             ["/dec/Outer", "else_branch", "/dec/Neg", "then_branch", "/dec/Loop"]
                             if self.lines().index("else_branch") < self.lines().index("then_branch")
                             else ["/dec/Outer", "then_branch", "/dec/Loop", "else_branch", "/dec/Neg"])
            self.assertIn("100.0 % of the time", run_js("$('shown').textContent"))
            self.type("op:abs")
            self.assertEqual([name for name in self.lines() if name.startswith("/")],
                             ["/dec/Outer", "/dec/Loop", "/dec/body/Inner", "/dec/inner/Abs"])
            self.assertIn("0 of 1", run_js("$('shown').textContent"))
            run_js("[...document.querySelectorAll('#table tr.nested:not(.heading)')].at(-1).click()")
            body = run_js("$('row-body').innerText")
            self.assertIn("7 times per run", body)
            self.assertIn("/dec/Outer > then_branch > /dec/Loop > body > /dec/body/Inner > else_branch", body)
            run_js("$('row').close()")
            self.type("")
        self.assertIn("Inside /dec/Outer", run_js("$('findings').textContent"))
        self.assertEqual(self.browser.problems, [])


if __name__ == "__main__":
    command_case.main()
