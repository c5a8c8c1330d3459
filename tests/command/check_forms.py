#!/usr/bin/env python3
"""The output forms of a report: each is read back by a reader that is not Prony's, and compared with the JSON report.
check_forms_page.py tests the HTML page in a browser.

    check_forms.py PRONY SOURCE_DIR [unittest options]

Tests that need a missing program (LaTeX, pandas, Graphviz) are skipped with a message.
"""
import csv
import io
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

import forms_case
from forms_case import CHARTS, DONE, FAILED, FORMULA, HOSTILE, USAGE, hostile_model, long_model, read, run


class Forms(unittest.TestCase):
    """The formats of one profile of the embedded model, and of one of a model with a hostile name."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="prony-forms-")
        cls.digits, cls.hostile = cls.path("digits"), cls.path("hostile")
        hostile_model(cls.path("hostile.onnx"))
        for model, out in ((None, cls.digits), (cls.path("hostile.onnx"), cls.hostile)):
            code, output, error = run("profile", *([model] if model else []), "-r", 70, "-w", 5, "-q", "--no-progress", "--output-dir", out)
            assert code == DONE and not output, (code, output, error)
        cls.report = json.loads(read(cls.digits + "/report.json"))
        cls.odd_report = json.loads(read(cls.hostile + "/report.json"))

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder, name)

    def rows(self, folder, name):
        text = read("%s/%s.csv" % (folder, name))
        return list(csv.DictReader(io.StringIO(text, newline=""), strict=True))

    # ---- CSV ----

    def test_csv_agrees_with_json(self):
        for name in ("layers", "operators", "modules"):
            rows, wanted = self.rows(self.digits, name), self.report[name]
            self.assertEqual(len(rows), len(wanted), name)
            for row, want in zip(rows, wanted):
                for key in ("macs", "flops", "parameters"):
                    self.assertEqual(int(row[key]), want[key], (name, key))
                time = want["time_ns"] if name == "modules" else want["time_ns"] and want["time_ns"]["mean"]
                self.assertEqual(row["time_mean_ns"], "" if time is None else str(time))
                self.assertAlmostEqual(float(row["share"] or 0), want["share"] or 0, 12)
        for total in ("macs", "madds", "flops", "special", "int_ops", "parameters"):
            self.assertEqual(sum(int(r[total]) for r in self.rows(self.digits, "layers")), self.report["totals"][total])
            self.assertEqual(sum(int(r[total]) for r in self.rows(self.digits, "operators")), self.report["totals"][total])
        self.assertEqual(self.rows(self.digits, "modules")[0]["path"], "__root__")
        model, = self.rows(self.digits, "model")
        self.assertEqual(int(model["latency_median_ns"]), self.report["latency_ns"]["median"])
        self.assertEqual(int(model["planned_bytes"]), self.report["memory"]["planned_bytes"])

    def test_csv_columns_have_one_type(self):
        text = {"name", "module", "op", "type", "input_shapes", "output_shapes", "kernel", "backend", "path", "parent", "layers",
                "time_kind"}
        real = {"share", "operator_share", "arithmetic_intensity", "flops_per_second"}
        truth = {"folded", "dynamic", "time_attributed"}
        for name in ("layers", "operators", "modules"):
            for row in self.rows(self.digits, name):
                for key, value in row.items():
                    if key in truth:
                        self.assertIn(value, ("True", "False"), key)
                    elif key in real:
                        float(value or 0)
                    elif key not in text:
                        self.assertRegex(value, r"^(\d+)?$", key)

    def test_csv_in_pandas(self):
        program = ("import json, pandas, sys\n"
                   "print(json.dumps({f: {c: [str(t), int(frame[c].sum()) if str(t) == 'int64' else None]\n"
                   "                      for c, t in frame.dtypes.items()}\n"
                   "  for f in sys.argv[2:] for frame in [pandas.read_csv('%s/%s.csv' % (sys.argv[1], f))]}))")
        for python in (sys.executable, "/usr/bin/python3"):
            ran = subprocess.run([python, "-c", program, self.digits, "layers", "operators", "modules", "model"], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, timeout=120, check=False)
            if b"No module named" not in ran.stderr:
                break
        else:
            self.skipTest("pandas (Debian: python3-pandas) is not installed")
        self.assertEqual(ran.returncode, 0, ran.stderr.decode())
        frames = json.loads(ran.stdout)
        for level in ("layers", "operators", "modules", "model"):
            for column, kind in (("macs", "int64"), ("flops", "int64"), ("parameters", "int64"), ("share", "float64"), ("folded", "bool"),
                                 ("op", "object"), ("time_mean_ns", "int64"), ("latency_median_ns", "int64"), ("kernel", "object")):
                if column in frames[level] and not (level, column) == ("layers", "time_mean_ns"):
                    self.assertEqual(frames[level][column][0], kind, (level, column))
        for level in ("layers", "operators"):
            self.assertEqual(frames[level]["flops"][1], self.report["totals"]["flops"])

    def test_csv_quotes(self):
        rows = self.rows(self.hostile, "layers")
        self.assertEqual(self.odd_report["layers"][0]["name"], HOSTILE)
        self.assertEqual(rows[0]["name"], HOSTILE.replace("\n", "?").replace("\u2028", "?"))
        self.assertEqual(self.odd_report["layers"][2]["name"], FORMULA)
        self.assertEqual(rows[2]["name"], "'=HYPERLINK(\"x\");?[2J??")
        raw = read(self.hostile + "/layers.csv")
        self.assertNotRegex(raw, r'(^|,)"?[=+@-]')
        self.assertIn('""', raw)
        self.assertEqual(len(re.findall(r"\r\n", raw)), 1 + len(self.odd_report["layers"]))

    def test_csv_names_and_levels(self):
        table = self.path("t.csv")
        self.assertEqual(run("profile", "-r", 3, "-q", "--csv", table)[0], DONE)
        self.assertEqual(sorted(f for f in os.listdir(self.folder) if f.startswith("t") and f.endswith(".csv")),
                         ["t.csv", "t_model.csv", "t_modules.csv", "t_operators.csv"])
        self.assertTrue(read(table).startswith("index,name,module,op"))
        code, output, error = run("profile", "-r", 3, "--csv", "-", "--level", "operator")
        self.assertEqual((code, error), (DONE, ""))
        self.assertTrue(output.startswith("index,name,op,kernel,backend"))
        self.assertEqual(len(list(csv.reader(io.StringIO(output)))), 1 + len(self.report["operators"]))
        static = list(csv.DictReader(io.StringIO(run("inspect", forms_case.SOURCE + "/models/digits.onnx", "--csv", "-")[1])))
        self.assertNotIn("time_mean_ns", static[0])
        self.assertEqual(sum(int(r["flops"]) for r in static), self.report["totals"]["flops"])

    # ---- trace ----

    def check_trace(self, trace, report):
        events = trace["traceEvents"]
        tracks, flows = {}, {"s": {}, "f": {}}
        for e in events:
            self.assertIn(e["ph"], "XMCsf")
            self.assertIsInstance(e["name"], str)
            self.assertIsInstance(e["pid"], int)
            self.assertIsInstance(e["tid"], int)
            if e["ph"] != "M":
                self.assertIsInstance(e["ts"], (int, float))
                self.assertGreaterEqual(e["ts"], 0)
            if e["ph"] == "X":
                self.assertGreaterEqual(e["dur"], 0)
                self.assertIsInstance(e["args"], dict)
                tracks.setdefault(e["tid"], []).append(e)
            elif e["ph"] == "C":
                self.assertTrue(e["args"] and all(isinstance(v, (int, float)) for v in e["args"].values()))
            elif e["ph"] in "sf":
                self.assertNotIn(e["id"], flows[e["ph"]])
                flows[e["ph"]][e["id"]] = e
        for track in tracks.values():  # slices of a track may nest, but never cross
            open_until = []
            for e in sorted(track, key=lambda e: (e["ts"], -e["dur"])):
                while open_until and open_until[-1] <= e["ts"] + 1e-6:
                    open_until.pop()
                if open_until:
                    self.assertLessEqual(e["ts"] + e["dur"], open_until[-1] + 1e-6, e["name"])
                open_until.append(e["ts"] + e["dur"])
        self.assertEqual(set(flows["s"]), set(flows["f"]))
        for ends in flows.values():
            for e in ends.values():
                self.assertTrue(any(x["ts"] <= e["ts"] <= x["ts"] + x["dur"] for x in tracks[e["tid"]]), e)
        named = {e["tid"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
        self.assertEqual(named, set(tracks))
        operators = {e["args"]["operator"]: e for e in events if e.get("cat") == "operator"}
        layers = {e["args"]["layer"]: e for e in events if e.get("cat") == "layer"}
        self.assertEqual(set(operators), {o["index"] for o in report["operators"]})
        self.check_threads(events, operators, report)
        self.assertEqual(set(layers), {layer for o in report["operators"] for layer in o["layers"]})
        self.assertEqual(set(flows["s"]), set(layers))
        for o in report["operators"]:
            event = operators[o["index"]]
            self.assertEqual((event["name"], event["args"]["kernel"], event["args"]["flops"]), (o["name"], o["kernel"], o["flops"]))
            self.assertAlmostEqual(event["ts"] * 1000, o["trace"]["start_ns"], 3)
            self.assertAlmostEqual((event["ts"] + event["dur"]) * 1000, o["trace"]["end_ns"], 3)
        whole, = (e for e in events if e.get("cat") == "run")
        self.assertAlmostEqual(whole["dur"] * 1000, report["latency_ns"]["traced_run"], 3)
        live = [e for e in events if e["ph"] == "C"]
        self.assertEqual(max(e["args"]["live_bytes"] for e in live), max(p["live_bytes"] for p in report["memory"]["timeline"]))

    def check_threads(self, events, operators, report):
        """Each thread's part of each operator lies within it, as the report says."""
        names = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
        parts = {}
        for e in events:
            if e.get("cat") == "thread":
                parts.setdefault(e["args"]["operator"], []).append(e)
        if not any("team" in o["trace"] for o in report["operators"]):  # too small for teams
            self.assertEqual(parts, {})
            return
        self.assertEqual(set(parts), set(operators))
        for o in report["operators"]:
            whole, team = operators[o["index"]], o["trace"].get("team", [])
            self.assertEqual(len(parts[o["index"]]), max(1, len(team)))
            self.assertEqual(len({e["tid"] for e in parts[o["index"]]}), len(parts[o["index"]]))
            for e in parts[o["index"]]:
                self.assertEqual(e["name"], o["name"])
                self.assertGreaterEqual(e["ts"] + 1e-6, whole["ts"])
                self.assertLessEqual(e["ts"] + e["dur"], whole["ts"] + whole["dur"] + 1e-6)
                self.assertLessEqual(e["args"]["busy_ns"], e["dur"] * 1000 + 1e-3)
            for e, share in zip(parts[o["index"]], team):
                self.assertIn(": thread %d" % share["thread"], names[e["tid"]])
                self.assertAlmostEqual(e["ts"] * 1000, share["start_ns"], 3)
                self.assertEqual((e["args"]["busy_ns"], e["args"]["tasks"]), (share["busy_ns"], share["tasks"]))

    def test_threads_in_a_trace(self):
        code, out, error = run("profile", "-b", 64, "-r", 5, "-w", 1, "-x", 2, "-q", "--memory", "--json", self.path("teams.json"),
                               "--trace", self.path("teams_trace.json"))
        self.assertEqual((code, out), (DONE, ""), error)
        shares = [o["trace"]["team"] for o in json.loads(read(self.path("teams.json")))["operators"] if "team" in o["trace"]]
        self.assertTrue(shares and all(0 <= s["thread"] < 2 and s["tasks"] > 0 for team in shares for s in team))
        trace, report = json.loads(read(self.path("teams_trace.json"))), json.loads(read(self.path("teams.json")))
        self.check_trace(trace, report)
        self.assertIn("worker 0: thread 0 (its own)", {e["args"].get("name") for e in trace["traceEvents"] if e["ph"] == "M"})
        # A saved report can be traced again.
        code, _, error = run("inspect", self.path("teams.json"), "-q", "--trace", self.path("again.json"))
        self.assertEqual(code, DONE, error)
        self.assertEqual(read(self.path("again.json")), read(self.path("teams_trace.json")))

    def test_trace(self):
        for folder, report in ((self.digits, self.report), (self.hostile, self.odd_report)):
            self.check_trace(json.loads(read(folder + "/trace.json")), report)

    def test_trace_needs_a_run(self):
        code, _, error = run("inspect", forms_case.SOURCE + "/models/digits.onnx", "--trace", self.path("none.json"))
        self.assertEqual(code, FAILED)
        self.assertIn("timestamps", error)
        self.assertFalse(os.path.exists(self.path("none.json")))

    # ---- folded, DOT, LaTeX ----

    def test_folded(self):
        lines = read(self.digits + "/stacks.folded").splitlines()
        total = 0
        for line in lines:
            stack, count = line.rsplit(" ", 1)
            total += int(count)
            self.assertTrue(stack.startswith("digits (embedded);"), line)
        self.assertEqual(total, sum(o["time_ns"]["mean"] for o in self.report["operators"]))
        self.assertTrue(any(";0;Conv " in line for line in lines), lines)
        for line in read(self.hostile + "/stacks.folded").rstrip("\n").split("\n"):
            self.assertRegex(line, r"^[^;]+(;[^;]+)+ \d+$")
            self.assertNotRegex(line, r"[\x00-\x1f\x7f-\x9f]")

    def test_dot(self):
        for folder, report in ((self.digits, self.report), (self.hostile, self.odd_report)):
            text = read(folder + "/graph.dot")
            edges = [(int(a), int(b)) for a, b in re.findall(r"^  n(\d+) -> n(\d+);$", text, re.M)]
            wanted = [(s, layer["index"]) for layer in report["layers"] for s in layer["sources"] if s is not None]
            self.assertEqual(sorted(edges), sorted(wanted))
            self.assertGreaterEqual(len(edges), 2)
            self.assertEqual(len(re.findall(r'^  n\d+ \[label="', text, re.M)), len(report["layers"]))
            self.assertGreater(len(set(re.findall(r'fillcolor="(#\w{6})"', text))), 1)
            if shutil.which("dot"):
                subprocess.run(["dot", "-Tsvg", "-o", os.devnull, folder + "/graph.dot"], check=True, timeout=60)
        drawn = self.path("drawn.svg")
        self.assertEqual(run("profile", "-r", 3, "-q", "--dot", drawn)[0], DONE)
        self.assertIn("<svg", read(drawn))

    def test_latex(self):
        for folder in (self.digits, self.hostile):
            text = read(folder + "/report.tex")
            self.assertTrue(text.isascii())
            plain = re.sub(r"\\.", "", text)
            self.assertEqual(plain.count("{"), plain.count("}"))
            for rule in (r"\toprule", r"\midrule", r"\bottomrule"):
                self.assertIn(rule, text)
        self.assertEqual(len(re.findall(r"^\d+ & ", read(self.digits + "/report.tex"), re.M)),
                         len(self.report["layers"]) + len(self.report["operators"]))
        code, text, _ = run("inspect", forms_case.SOURCE + "/models/digits.onnx", "--latex", "-", "--level", "layer", "--top", 3)
        self.assertEqual((code, len(re.findall(r"^\d+ & ", text, re.M))), (DONE, 3))

    def test_latex_compiles(self):
        if not shutil.which("pdflatex"):
            self.skipTest("pdflatex (Debian: texlive-latex-recommended) is not installed")
        around = self.path("around.tex")
        with open(around, "w", encoding="utf-8") as file:
            file.write("\\documentclass{article}\\usepackage{array,booktabs,longtable}\\begin{document}Before.\n"
                       "\\input{%s/report.tex}\nAfter.\\end{document}\n" % self.digits)
        for source in (self.digits + "/report.tex", self.hostile + "/report.tex", around):
            ran = subprocess.run(["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "-output-directory", self.folder, source],
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=120, check=False,
                                 env=dict(os.environ, HOME=self.folder, TEXMFVAR=self.folder + "/texmf-var"))
            self.assertEqual(ran.returncode, 0, ran.stdout[-2000:].decode(errors="replace"))

    # ---- SVG ----

    def test_svg(self):
        space = "{http://www.w3.org/2000/svg}"
        for folder, report in ((self.digits, self.report), (self.hostile, self.odd_report)):
            for chart in CHARTS:
                root = ElementTree.fromstring(read("%s/%s.svg" % (folder, chart)))
                self.assertEqual(root.tag, space + "svg")
                tips = [t for e in root.iter() if e is not root for t in e.findall(space + "title")]
                count = {"layers": sum(bool(layer["time_ns"] and layer["share"] > 0) for layer in report["layers"]),
                         "roofline": sum(bool(o["flops"] and o["time_ns"]["mean"]) for o in report["operators"]),
                         "graph": sum(not layer["folded"] for layer in report["layers"]),
                         "memory": report["memory"]["allocations"],
                         "runs": 0, "latency": 5, "types": 2, "modules": 2}[chart]
                (self.assertGreaterEqual if chart in ("latency", "types", "modules") else self.assertEqual)(len(tips), count, chart)
                for element in root.iter():
                    for key in ("x", "y", "width", "height", "cx", "cy"):
                        if key in element.attrib:
                            self.assertRegex(element.attrib[key], r"^-?\d+\.\d\d$")
        edges = ElementTree.fromstring(read(self.digits + "/graph.svg")).iter(space + "path")
        self.assertEqual(len(list(edges)), sum(s is not None for layer in self.report["layers"] for s in layer["sources"]))

    def test_a_deep_graph_folds_into_columns(self):
        model = self.path("deep.onnx")
        long_model(model, 300)
        code, picture, error = run("inspect", model, "-q", "--svg", "graph=-")
        self.assertEqual((code, error), (DONE, ""))
        root = ElementTree.fromstring(picture)
        width, height = (float(root.get(key)) for key in ("width", "height"))
        self.assertTrue(1 < width / height < 2, (width, height))
        boxes = [[float(e.get(key)) for key in ("x", "y", "width", "height")]
                 for e in root.iter("{http://www.w3.org/2000/svg}rect") if e.get("data-layer")]
        self.assertEqual(len(boxes), 300)
        self.assertEqual(len({(x, y) for x, y, _, _ in boxes}), 300)
        columns = sorted({x for x, _, _, _ in boxes})
        self.assertTrue(all(b - a >= boxes[0][2] + 20 for a, b in zip(columns, columns[1:])))
        self.assertTrue(all(x >= 0 and x + w <= width and y + h <= height for x, y, w, h in boxes))

    def test_svg_options(self):
        chart = self.path("one.svg")
        self.assertEqual(run("profile", "-r", 3, "-q", "--svg", "roofline=" + chart)[0], DONE)
        self.assertIn("prony machine", read(chart))
        code, _, error = run("profile", "-r", 3, "--svg", "pie=" + chart)
        self.assertEqual(code, USAGE)
        self.assertIn("roofline", error)
        code, _, error = run("inspect", forms_case.SOURCE + "/models/digits.onnx", "--svg", "latency=" + chart)
        self.assertEqual(code, FAILED)
        self.assertIn("latenc", error)

    # ---- files ----

    def test_folder_has_every_form(self):
        self.assertEqual(set(os.listdir(self.digits)),
                         {"report.txt", "report.json", "report.html", "report.tex", "trace.json", "stacks.folded", "graph.dot",
                          "layers.csv", "operators.csv", "modules.csv", "model.csv", "output_0.npy"} | {c + ".svg" for c in CHARTS})

    def test_one_form_on_stdout(self):
        code, output, error = run("profile", "-r", 3, "--json", "-", "--csv", "-")
        self.assertEqual((code, output), (USAGE, ""))
        self.assertIn("only one export can go there", error)
        code, output, _ = run("profile", "-r", 3, "--folded", "-", "--html", self.path("beside.html"))
        self.assertEqual(code, DONE)
        self.assertTrue(output.startswith("digits (embedded);"))
        self.assertIn("</html>", read(self.path("beside.html")))

    def forms(self, name):
        file = self.path(name)
        return [("--%s" % form, file) for form in ("json", "csv", "html", "latex", "trace", "folded", "dot")] + \
               [("--svg", chart + "=" + file) for chart in CHARTS]

    def test_failure_leaves_the_old_file(self):
        for number, (option, value) in enumerate(self.forms("kept")):
            with open(self.path("kept"), "w", encoding="utf-8") as file:
                file.write("old %d" % number)
            before = set(os.listdir(self.folder))
            code, _, error = run("profile", "-r", 3, "-q", option, value, limit_bytes=300)
            self.assertEqual(code, FAILED, (option, error))
            self.assertIn("kept", error)
            self.assertRegex(error, "File too large|No space")
            self.assertEqual(read(self.path("kept")), "old %d" % number)
            self.assertEqual(set(os.listdir(self.folder)), before, "a temporary file is left behind")

    def test_outputs_and_streams_at_the_size_limit(self):
        folder = self.path("limited")
        code, _, error = run("run", forms_case.SOURCE + "/models/digits.onnx", "--output-dir", folder, limit_bytes=100)
        self.assertEqual((code, os.listdir(folder)), (FAILED, []), error)
        self.assertIn("File too large", error)
        stream = self.path("limited.txt")
        with open(stream, "wb") as file:
            ran = subprocess.run([forms_case.PRONY, "ops"], stdout=file, stderr=subprocess.PIPE, timeout=300, check=False,
                                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300)))
        self.assertEqual((ran.returncode, os.path.getsize(stream)), (FAILED, 300))
        self.assertIn(b"File too large", ran.stderr)

    def test_unwritable_path(self):
        for option, value in self.forms("no/such/folder"):
            code, _, error = run("profile", "-r", 3, "-q", option, value)
            self.assertEqual(code, FAILED)
            self.assertIn("no/such/folder", error)
            self.assertIn("No such file", error)
        with open(self.path("plain"), "w", encoding="utf-8"):
            pass
        code, _, error = run("profile", "-r", 3, "-q", "--output-dir", self.path("plain"))
        self.assertEqual(code, FAILED)
        self.assertIn("plain", error)

    def test_saved_report_has_the_same_forms(self):
        for option, file in (("--csv", "layers.csv"), ("--trace", "trace.json"), ("--folded", "stacks.folded"), ("--dot", "graph.dot"),
                             ("--latex", "report.tex")):
            code, output, error = run("inspect", self.digits + "/report.json", option, "-")
            self.assertEqual((code, error), (DONE, ""))
            with open("%s/%s" % (self.digits, file), "rb") as kept:
                self.assertEqual(output, kept.read().decode(), option)
        for chart in CHARTS:
            code, output, error = run("inspect", self.digits + "/report.json", "--svg", chart + "=-")
            self.assertEqual((code, error, output), (DONE, "", read("%s/%s.svg" % (self.digits, chart))))

    # ---- HTML, as text ----

    def test_html_holds_the_report(self):
        for folder in (self.digits, self.hostile):
            page = read(folder + "/report.html")
            data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S).group(1)
            self.assertEqual(json.loads(data), json.loads(read(folder + "/report.json")))
            self.assertNotIn("<", data)
            self.assertEqual(re.findall(r'(?:src|href)="(?!data:|#)[^"]*"', re.sub(r"<script.*?</script>", "", page, flags=re.S)), [])
            self.assertNotRegex(page, r"@import|url\(")


if __name__ == "__main__":
    forms_case.main()
