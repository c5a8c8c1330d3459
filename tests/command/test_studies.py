#!/usr/bin/env python3
"""Studies side by side (prony compare A B of two studies, prony scale --join), and the scripts of docs/plots and docs/examples.

    test_studies.py PRONY SOURCE_DIR [unittest options]
"""
import csv
import io
import json
import os
import py_compile
import shutil
import subprocess
import xml.etree.ElementTree

import command_case
from command_case import DONE, USAGE, VERDICT, CommandTest, Schema, run

QUICK = ["--processes", "5", "-r", "20", "-w", "2", "-q"]


class StudiesTest(CommandTest):
    def study(self, name, *arguments):
        path = self.path(name)
        code, _, err = run("scale", self.digits, *arguments, *QUICK, "--json", path)
        self.assertEqual(code, DONE, err)
        return path

    def changed(self, path, name, change):
        study = json.loads(self.read(path))
        change(study)
        return self.write(name, json.dumps(study).encode())

    def slower(self, path, name, times=3):
        def change(study):
            study["manifest"]["system"]["cpu_model"] = "Another processor"
            for block in study["blocks"]:
                block["samples_ns"] = [times * ns for ns in block["samples_ns"]]
        return self.changed(path, name, change)

    def document(self, path):
        document = json.loads(self.read(path))
        self.assertEqual(list(Schema("studies").problems(document)), [])
        return document


class Compare(StudiesTest):
    def test_a_slower_machine_is_found_and_described(self):
        a = self.study("a.json", "-x", "1,2")
        b = self.slower(a, "b.json")
        out, page = self.path("out.json"), self.path("page.html")
        code, text, err = run("compare", a, b, "--json", out, "--html", page, "--no-color")
        self.assertIn("processor: Another processor, was", text)
        document = self.document(out)
        self.assertEqual([s["name"] for s in document["studies"]], ["a.json", "b.json"])
        self.assertTrue(any("Another processor" in line for line in document["studies"][1]["manifest_differences"]))
        for configuration in document["configurations"]:
            first, second = configuration["results"]
            self.assertNotIn("ratio", first)
            self.assertAlmostEqual(second["ratio"], 3, places=6)
            self.assertIn(second["verdict"], ("different", "cannot tell"))  # the latter where blocks were disturbed
        verdicts = [c["results"][1]["verdict"] for c in document["configurations"]]
        self.assertEqual(code, VERDICT if "different" in verdicts else DONE, err)
        self.assertEqual(text.count("  different"), verdicts.count("different"))
        html = self.read(page).decode()
        self.assertEqual(html.count("<svg"), 2)
        self.assertNotIn("<script", html)
        self.assertIn("Another processor", html)

    def test_a_study_does_not_differ_from_itself(self):
        a = self.study("a.json", "-x", "1")
        code, text, err = run("compare", a, a)
        self.assertEqual(code, DONE, err)
        self.assertIn("same machine, system and build", text)

    def test_plans_may_differ(self):
        a, b = self.study("a.json", "-x", "1,2"), self.study("b.json", "-x", "1", "-b", "4")
        out = self.path("out.json")
        code, text, err = run("compare", a, b, "--json", out)
        self.assertIn(code, (DONE, VERDICT), err)
        self.assertIn("batch 4", text)
        for configuration in self.document(out)["configurations"]:
            self.assertEqual(len(configuration["results"]), 1)
            self.assertNotIn("ratio", configuration["results"][0])

    def test_a_study_and_a_report(self):
        a = self.study("a.json", "-x", "1")
        code, _, err = run("compare", a, self.digits)
        self.assertEqual(code, USAGE)
        self.assertIn("is a study, but '%s' is not" % self.digits, err)


class Join(StudiesTest):
    def test_any_number(self):
        a = self.study("a.json", "-x", "1,2")
        others = [self.slower(a, "%d.json" % times, times) for times in (2, 4)]
        table, chart = self.path("results.csv"), self.path("chart.svg")
        code, _, err = run("scale", "--join", a, *others, "--csv", table, "--plot", chart, "-q")
        self.assertEqual(code, DONE, err)
        rows = list(csv.DictReader(io.StringIO(self.read(table).decode())))
        self.assertEqual(len(rows), 9)
        self.assertEqual([r["study"] for r in rows[::3]], ["a.json", "2.json", "4.json"])
        for i in range(3):
            self.assertAlmostEqual(float(rows[6 + i]["median_ns"]) / float(rows[i]["median_ns"]), 4, places=6)
        xml.etree.ElementTree.fromstring(self.read(chart))

    def test_wrong_usage(self):
        for words in (["--join"], ["--join", "a.json", "--resume"], ["a.json", "b.json"]):
            self.assertEqual(run("scale", *words)[0], USAGE, words)
        self.assertNotEqual(run("scale", "--join", self.digits)[0], DONE)


class Scripts(StudiesTest):
    def share(self, *names):
        return os.path.join(command_case.SOURCE, "docs", *names)

    def test_gnuplot_draws_the_tables(self):
        if not shutil.which("gnuplot"):
            self.skipTest("no gnuplot (Debian: gnuplot-nox)")
        a = self.study("a.json", "-x", "1,2")
        results, samples = self.path("results.csv"), self.path("samples.csv")
        self.assertEqual(run("scale", "--join", a, self.slower(a, "b.json"), "--csv", results, "-q")[0], DONE)
        self.assertEqual(run("scale", a, "--csv", samples, "-q")[0], DONE)
        for script, table in (("scaling.gp", results), ("samples.gp", samples)):
            out = self.path(script + ".svg")
            drawn = subprocess.run(["gnuplot", "-e", "csv='%s'; out='%s'" % (table, out), self.share("plots", script)],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertEqual((drawn.returncode, drawn.stderr), (0, b""), script)
            picture = self.read(out).decode()
            xml.etree.ElementTree.fromstring(picture)
            if script == "scaling.gp":
                self.assertIn("b.json", picture)

    def test_r_reads_the_scripts(self):
        if not shutil.which("Rscript"):
            self.skipTest("no Rscript (Debian: r-base-core)")
        for script in ("scaling.R", "samples.R"):
            subprocess.run(["Rscript", "-e", "invisible(parse('%s'))" % self.share("plots", script)], check=True)

    def test_examples_compile(self):
        for path in (self.share("examples", "reframe", "prony_scale.py"), self.share("examples", "ramble", "application.py")):
            py_compile.compile(path, cfile=self.path("compiled"), doraise=True)

    def test_the_examples_find_their_keys(self):
        """The ReFrame test's figures, by a stand-in for its framework."""
        study = json.loads(self.read(self.study("study.json", "-x", "1,2")))
        source = self.read(self.share("examples", "reframe", "prony_scale.py")).decode()
        body = source[source.index("    def results(self):"):]
        body = "\n".join(line for line in body.splitlines() if not line.strip().startswith("@"))
        space = {}
        exec("class Test:\n" + body, space)  # pylint: disable=exec-used
        test = space["Test"]()
        test.study = lambda: type("Deferred", (), {"evaluate": staticmethod(lambda: study)})
        self.assertGreater(test.serial_latency(), 0)
        self.assertGreater(test.best_throughput(), 0)
        self.assertGreaterEqual(test.best_speedup(), 1)


if __name__ == "__main__":
    command_case.main()
