#!/usr/bin/env python3
"""The JSON documents of the commands that write no report, each against the JSON Schema that ships with them; and prony metrics.

    test_documents.py PRONY SOURCE_DIR [unittest options]
"""
import glob
import json
import os
import subprocess
import xml.etree.ElementTree

import command_case
import decoders
import onnx_bytes as ob
from command_case import DONE, FAILED, USAGE, VERDICT, CommandTest, Schema, run

QUICK = ["-x", "1", "-r", "12", "-w", "1"]


# They describe the program, or have a date of their own (a machine's "measured_at").
UNDATED = {"operators", "count_preset", "machine"}


class DocumentTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.environment = {"XDG_CACHE_HOME": self.path("cache")}

    def document(self, name, code, *arguments):
        """The command's document with --json -, checked against the schema of that name."""
        got, out, err = run(*arguments, "--json", "-", environment=self.environment)
        self.assertEqual(got, code, err)
        document = json.loads(out)
        self.assertEqual(Schema(name).problems(document), [])
        if name not in UNDATED:
            self.assertRegex(document["created"], r"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        return document

    def faults(self, problems):
        """Their number; a test that made them on purpose ends here where there is no validator."""
        if not command_case.jsonschema:
            self.skipTest("the schemas refuse faults: no jsonschema (Debian: python3-jsonschema)")
        return len(problems)


class Documents(DocumentTest):
    def test_every_schema_belongs_to_a_document_that_is_tested(self):
        names = {os.path.basename(path)[:-len(".schema.json")]
                 for path in glob.glob(os.path.join(command_case.SOURCE, "docs", "schemas", "*"))}
        with open(__file__, encoding="utf-8") as file:
            text = file.read()
        # Calibrations are files of `prony quantize` (test_quantize_command); test_studies has joined studies,
        # test_history_command histories, and test_capacity its documents.
        self.assertEqual({name for name in names if 'document("%s"' % name not in text},
                         {"report", "calibration", "studies", "history", "trend", "trend_check", "capacity"})

    def test_comparison(self):
        a, b = self.path("a.json"), self.path("b.json")
        self.succeed("profile", self.lenet, *QUICK, "--json", a, "-q")
        self.succeed("profile", self.digits, *QUICK, "--json", b, "-q")
        code = run("compare", a, b, "-q")[0]
        self.assertIn(code, (DONE, VERDICT))
        document = self.document("comparison", code, "compare", a, b)
        self.assertTrue(document["notes"] and document["metrics"] and document["operator_types"])
        self.assertTrue(document["a"]["only_layers"] and document["b"]["only_layers"])
        same = self.document("comparison", DONE, "compare", a, a)
        self.assertTrue(same["layers"])
        self.assertEqual(same["regressions"], [])
        del document["metrics"][0]["verdict"]
        document["noise"] = "1 %"
        self.assertEqual(self.faults(Schema("comparison").problems(document)), 2)

    def tables(self, first, *arguments):
        """Markdown, CSV and HTML of a command beside its JSON; `first` begins the CSV."""
        names = {form: self.path("tables." + form) for form in ("markdown", "csv", "html", "json")}
        code, _, err = run(*arguments, "-q", *(word for form, path in names.items() for word in ("--" + form, path)),
                           environment=self.environment)
        self.assertIn(code, (DONE, VERDICT), err)
        texts = {form: self.read(path).decode() for form, path in names.items()}
        self.assertTrue(texts["csv"].startswith(first), texts["csv"][:200])
        self.assertGreater(texts["csv"].count("\r\n"), 1)
        self.assertTrue(texts["markdown"].startswith("## "))
        self.assertIn("\n|--", texts["markdown"])
        self.assertIn("<table>", texts["html"])
        self.assertEqual(json.loads(texts["html"].split('id="data">')[1].split("</script>")[0]), json.loads(texts["json"]))
        return texts

    def test_tables_of_every_command(self):
        a, b = self.path("a.json"), self.path("b.json")
        self.succeed("profile", self.lenet, *QUICK, "--json", a, "-q")
        self.succeed("profile", self.lenet, *QUICK, "--json", b, "-q")
        self.tables("key,a,b,ratio,", "compare", a, b)
        self.assertTrue(self.read(self.path("tables_layers.csv")).startswith(b"name,op,a_ns,"))
        self.tables("metric,value_text,bound,", "check", a, "--threshold", "latency:100s")
        self.tables("topic,action,reason,", "recommend", self.lenet, "-x", "1", "-r", "5", "-p", "fp32")
        self.tables("config_batch,config_intra_op_threads,", "bench", self.lenet, *QUICK[2:], "-x", "1,2")
        self.tables("queries,failed,", "bench", self.lenet, "--scenario", "offline", "-t", "100ms", "-x", "1")
        model = self.save("doubled.onnx", ob.doubled_relu())
        self.tables("intra_op_threads,prony_median_ns,", "versus", model, "--dim", "rows=2", "-r", "3", "-t", "10ms",
                    "--processes", "3", "--ort-lib", command_case.fake_library())
        markdown = self.succeed("bench", self.lenet, *QUICK, "--markdown", "-")
        self.assertTrue(markdown.startswith("## Profile: ") and "Median latency" in markdown)

    def test_junit(self):
        path = self.path("check.xml")
        code, _, _ = run("check", self.lenet, *QUICK, "--threshold", "latency:1ns", "parameters:1M", "--junit", path, "-q",
                         environment=self.environment)
        self.assertEqual(code, VERDICT)
        suite = xml.etree.ElementTree.fromstring(self.read(path)).find("testsuite")
        self.assertEqual((suite.get("tests"), suite.get("failures"), suite.get("errors")), ("2", "1", "0"))
        self.assertEqual([case.find("failure") is not None for case in suite], [True, False])

    def test_next_steps_stand_on_terminals_alone(self):
        self.assertNotIn("next:", self.succeed("inspect", self.lenet))
        leader, follower = command_case.open_pty()
        process = subprocess.Popen([command_case.PRONY, "inspect", self.lenet, "--no-color"], stdout=follower)
        os.close(follower)
        data = b""
        while True:
            try:
                chunk = os.read(leader, 65536)
            except OSError:
                break
            if not chunk:
                break
            data += chunk
        os.close(leader)
        self.assertEqual(process.wait(), DONE)
        lines = data.decode().split("\r\n")[-3:-1]
        self.assertTrue(lines[0].startswith("next: prony profile " + self.lenet), lines)
        self.assertTrue(lines[1].startswith("      prony inspect "), lines)

    def test_versus(self):
        model = self.save("doubled.onnx", ob.doubled_relu())
        document = self.document("versus", DONE, "versus", model, "--dim", "rows=2", "-r", "3", "-t", "10ms", "--processes", "3",
                                 "--ort-lib", command_case.fake_library())
        self.assertTrue(document["results"] and document["outputs"] and document["operators"])
        del document["results"][0]["ratio"]
        document["peer"]["name"] = None
        self.assertEqual(self.faults(Schema("versus").problems(document)), 2)

    def test_versus_generation(self):
        library = os.environ.get("PRONY_ORT_LIB")
        if not library:
            self.skipTest("PRONY_ORT_LIB is not set: a decoder needs ONNX Runtime itself")
        model = decoders.export(self.path("gpt2.onnx"), "gpt2")
        document = self.document("versus_generation", DONE, "versus", model, "--generate", "prompt=4,new=3", "-x", "1", "-r", "1",
                                 "--processes", "1", "--ignore-load", "--ort-lib", library)
        self.assertEqual((document["prompt_tokens"], document["equal_ids"]), (4, 3))

    def test_generated(self):
        model = decoders.export(self.path("gpt2.onnx"), "gpt2")
        document = self.document("generated", DONE, "run", model, "--generate", "new=3", "--prompt-ids", "1,2;3")
        self.assertEqual([len(ids) for ids in document["ids"]], [3, 3])

    def test_perplexity(self):
        model = decoders.export(self.path("gpt2.onnx"), "gpt2")
        document = self.document("perplexity", DONE, "eval", model, "--token-ids", "1,2,3,4")
        self.assertEqual((document["window"], document["results"][0]["tokens"]), (4, 3))

    def test_check(self):
        met = self.document("check", DONE, "check", self.lenet, *QUICK, "--threshold", "latency:100s", "parameters:1M")
        self.assertTrue(met["passed"])
        missed = self.document("check", VERDICT, "check", self.lenet, *QUICK, "--threshold", "latency:1ns")
        self.assertEqual([row["outcome"] for row in missed["thresholds"]], ["missed"])
        static = self.path("static.json")
        self.succeed("inspect", self.lenet, "--json", static, "-q")
        unknown = self.document("check", FAILED, "check", static, "--threshold", "latency:1s")
        self.assertEqual([(row["outcome"], row["value"]) for row in unknown["thresholds"]], [("unknown", None)])

    def test_recommendation(self):
        document = self.document("recommendation", DONE, "recommend", self.digits, "-x", "1", "-t", "0.2")
        self.assertTrue(document["recommendations"] or document["considered"])
        topics = {row["topic"] for key in ("recommendations", "considered") for row in document[key]}
        self.assertEqual(topics, {"batch", "threads", "fusion", "precision", "overhead", "memory"})

    def test_matrix(self):
        document = self.document("matrix", DONE, "bench", self.digits, "-b", "1,2", *QUICK)
        self.assertEqual([report["config"]["batch"] for report in document["reports"]], [1, 2])
        document["reports"][1]["totals"]["macs"] = "many"
        self.assertEqual(self.faults(Schema("matrix").problems(document)), 1)

    def test_evaluations(self):
        os.mkdir(self.path("data"))
        self.write("data/image.npy", ob.npy("<f4", [3, 1, 8, 8], bytes(768)))
        self.write("data/labels.npy", ob.npy("|u1", [3], b"\1\2\3"))
        document = self.document("evaluations", DONE, "eval", self.digits, self.path("data"), "-p", "fp32,fast", "-x", "1")
        self.assertEqual([report["config"]["precision"] for report in document["reports"]], ["fp32", "fast"])
        document["reports"][1]["evaluation"]["value"] = "good"
        self.assertEqual(self.faults(Schema("evaluations").problems(document)), 1)

    def test_study(self):
        document = self.document("study", DONE, "scale", self.digits, "-x", "1,2", "--processes", "2", "-r", "5", "-w", "1")
        self.assertEqual(len([block for block in document["blocks"] if not block["again"]]), 6)
        document["blocks"][0]["samples_ns"] = "fast"
        self.assertEqual(self.faults(Schema("study").problems(document)), 1)

    def test_load(self):
        document = self.document("load", DONE, "bench", self.digits, "--scenario", "single", *QUICK)
        self.assertEqual((document["scenario"], document["result"]["queries"]), ("single", 12))
        document["result"]["bound"] = "perhaps"
        self.assertEqual(self.faults(Schema("load").problems(document)), 1)

    def test_machine(self):
        document = self.document("machine", DONE, "machine", "-x", "1", "-t", "0.1")
        self.assertTrue(document["compute"] and document["bandwidth"])

    def test_verification(self):
        folder = "case/test_data_set_0"
        os.makedirs(self.path(folder))
        self.save("case/model.onnx", ob.graph([ob.node("Neg", ["x"], ["y"])], [ob.value("x", ob.FLOAT, [2])],
                                              [ob.value("y", ob.FLOAT, [2])]))
        self.write(folder + "/input_0.pb", ob.floats("x", [2], [1.0, 2.0]))
        self.write(folder + "/output_0.pb", ob.floats("y", [2], [-1.0, -2.0]))
        document = self.document("verify", DONE, "verify", self.path("case"))
        self.assertEqual((document["passed"], document["failed"]), (1, 0))

    def test_operators_and_presets(self):
        self.assertGreater(len(self.document("operators", DONE, "ops")), 100)
        for preset in ("fvcore", "deepspeed", "onnx-tool", "moduleprofiler", "thop", "torch", "deeplite"):
            document = self.document("count_preset", DONE, "ops", "--count", preset)
            self.assertEqual((document["schema"], document["name"]), ("prony.count_preset/1", preset))


class Metrics(DocumentTest):
    def saved(self, *arguments):
        path = self.path("report.json")
        self.succeed(*arguments, "--json", path, "-q")
        return path

    def test_all_metrics_of_a_report(self):
        path = self.saved("profile", self.lenet, *QUICK)
        document = self.document("metrics", DONE, "metrics", path)
        self.assertTrue(document["measured"])
        rows = {row["key"]: row for row in document["metrics"]}
        report = json.loads(self.read(path))
        self.assertGreater(len(rows), 50)
        self.assertEqual(rows["macs"]["value"], report["totals"]["macs"])
        self.assertEqual((rows["latency"]["value"], rows["latency"]["unit"], rows["latency"]["better"]),
                         (report["latency_ns"]["median"], "ns", "smaller"))
        self.assertEqual(rows["throughput"]["better"], "larger")
        self.assertEqual((rows["latency_p999"]["value"], rows["latency_p999"]["value_text"]), (None, "-"))
        short = self.succeed("metrics", path)
        self.assertRegex(short, r"(?m)^latency +Execution time +[\d.]+ [mun]?s$")
        self.assertNotIn("latency_p999", short)
        self.assertNotIn("is better", short)
        long = self.succeed("metrics", path, "--detailed")
        for key, row in rows.items():
            self.assertIn("\n    %s: " % key, long)
            self.assertIn(row["name"] + " ", long)
        self.assertIn("larger is better", long)
        for text in (short, long):
            self.assertLessEqual(max(map(len, text.splitlines())), 80)

    def test_some_metrics_of_a_model(self):
        text = self.succeed("metrics", self.lenet, *QUICK, "--metrics", "parameters,latency_p999,latency")
        self.assertEqual([line.split()[0] for line in text.splitlines()[1:]], ["parameters", "latency", "latency_p999"])
        self.assertIn("assumed: batch=1", text.splitlines()[0])
        document = self.document("metrics", DONE, "metrics", self.lenet, *QUICK, "--metrics", "latency,macs")
        self.assertEqual({row["key"] for row in document["metrics"]}, {"latency", "macs"})
        self.assertGreater(next(row["value"] for row in document["metrics"] if row["key"] == "latency"), 0)

    def test_static_report(self):
        document = self.document("metrics", DONE, "metrics", self.saved("inspect", self.lenet))
        rows = {row["key"]: row["value"] for row in document["metrics"]}
        self.assertFalse(document["measured"])
        self.assertIsNone(rows["latency"])
        self.assertGreater(rows["macs"], 0)

    def test_wrong_usage(self):
        path = self.saved("inspect", self.lenet)
        self.refuse(USAGE, ["no metric 'speed'"], "metrics", path, "--metrics", "macs,speed")
        self.refuse(USAGE, ["is a report", "options for runs"], "metrics", path, "-r", "5")
        self.refuse(USAGE, ["TARGET is missing"], "metrics")
        self.refuse(USAGE, ["does not take --detailed", "metrics"], "inspect", self.lenet, "--detailed")


class Counts(DocumentTest):
    def test_bench_counts_as_profile_does(self):
        for preset, factor in (("torch", 2), ("fvcore", 1)):
            report = self.report("bench", self.lenet, *QUICK, "--count", preset)
            self.assertEqual(report["config"]["count_preset"], preset)
            self.assertEqual(report["totals"]["count"], factor * report["totals"]["macs"])
        matrix = self.document("matrix", DONE, "bench", self.digits, "-b", "1,3", *QUICK, "--count", "torch")
        counts = [report["totals"]["count"] for report in matrix["reports"]]
        self.assertEqual(counts, [2 * report["totals"]["macs"] for report in matrix["reports"]])
        text = self.succeed("bench", self.digits, "-b", "1,3", *QUICK, "--count", "torch")
        self.assertRegex(text, r"count by torch  [\d.]+ \w?.* \(batch 1\), .* \(batch 3\)")
        self.assertLessEqual(max(map(len, text.splitlines())), 80)

    def test_compare_counts_both_sides(self):
        a, b = self.path("a.json"), self.path("b.json")
        self.succeed("inspect", self.digits, "-b", "1", "--json", a, "-q")
        self.succeed("inspect", self.digits, "-b", "2", "--json", b, "-q", "--count", "fvcore")
        document = self.document("comparison", VERDICT, "compare", a, b, "--count", "torch", "--metrics", "count,macs")
        rows = {row["key"]: row for row in document["metrics"]}
        for side in "ab":
            self.assertEqual(rows["count"][side], 2 * rows["macs"][side])
        self.assertEqual(rows["count"]["verdict"], "worse")
        self.refuse(USAGE, ["--count", "'none'", "fvcore"], "compare", a, b, "--count", "none")


if __name__ == "__main__":
    command_case.main()
