#!/usr/bin/env python3
"""prony bench --scenario and --with-load: usage, what the figures say of one another, the JSON document.

    test_load.py PRONY SOURCE_DIR [unittest options]
"""
import json
import os

import command_case
import onnx_bytes as ob
from command_case import DONE, FAILED, USAGE, VERDICT, CommandTest, Schema, run


class Load(CommandTest):
    def load(self, *arguments, wanted=DONE):
        """The document of a short load."""
        code, out, error = run("bench", self.digits, "-x", 1, *arguments, "--json", "-")
        self.assertEqual(code, wanted, error)
        document = json.loads(out)
        self.assertEqual(Schema("load").problems(document), [])
        result = document["result"]
        self.assertEqual(len(result["samples_ns"]), result["queries"] - result["failed"])
        self.assertEqual(result["latency_ns"]["count"], len(result["samples_ns"]))
        if result["samples_ns"]:
            self.assertEqual(result["latency_ns"]["max"], max(result["samples_ns"]))
        return document

    def test_wrong_usage(self):
        for arguments, why in (
                (["--scenario", "poisson"], "single, multi, server or offline"),
                (["--scenario", ""], "single, multi, server or offline"),
                (["--scenario", "server"], "needs --latency-bound"),
                (["--scenario", "server", "--latency-bound", "0ms"], "above 0"),
                (["--scenario", "server", "--latency-bound", "-5ms"], "above 0"),
                (["--scenario", "server", "--latency-bound", "nan"], "above 0"),
                (["--scenario", "server", "--latency-bound", "20"], "with its unit"),
                (["--scenario", "server", "--latency-bound", "20ms", "--rate", "0"], "from 1e-6 to 1e9, got '0'"),
                (["--scenario", "server", "--latency-bound", "20ms", "--rate", "-3"], "from 1e-6 to 1e9, got '-3'"),
                (["--scenario", "server", "--latency-bound", "20ms", "--rate", "nan"], "from 1e-6 to 1e9, got 'nan'"),
                (["--scenario", "server", "--latency-bound", "20ms", "--rate", "inf"], "from 1e-6 to 1e9, got 'inf'"),
                (["--scenario", "server", "--latency-bound", "20ms", "--rate", "5x"], "from 1e-6 to 1e9, got '5x'"),
                (["--scenario", "server", "--latency-bound", "20ms", "-r", "5"], "-r with --scenario server needs --rate"),
                (["--scenario", "single", "--rate", "5"], "--rate needs"),
                (["--scenario", "single", "--streams", "2"], "one stream"),
                (["--scenario", "offline", "--latency-bound", "1ms"], "no --latency-bound"),
                (["--scenario", "multi", "-x", "1,2"], "one configuration"),
                (["--scenario", "multi", "--threshold", "p90:1ms"], "cannot be combined with --threshold"),
                (["--scenario", "single", "--samples-per-query", "2"], "needs --scenario multi"),
                (["--scenario", "offline", "--batch-window", "1ms"], "needs a --max-batch"),
                (["--scenario", "offline", "--max-batch", "4", "-b", "2"], "one sample: no -b"),
                (["--scenario", "single", "--percentile", "100"], "50 to 99.9"),
                (["--streams", "0"], "a number from 1"), (["--streams", "1025"], "a number from 1"),
                (["--streams", "x"], "a number from 1"), (["--max-batch", "0", "--scenario", "offline"], "a number from 1"),
                (["--max-batch", "4"], "need a --scenario"), (["--rate", "4"], "need a --scenario"),
                (["--scenario", "single", "-x", "0"], "1024 such as 1,2,4-8, or auto, got '0'"),
                (["--scenario", "single", "-x", "100000"], "or auto, got '100000'")):
            code, out, error = run("bench", self.digits, *arguments)
            self.assertEqual((code, out), (USAGE, ""), arguments)
            self.assertIn(why, error)

    def test_single(self):
        document = self.load("--scenario", "single", "-r", 200)
        result, config = document["result"], document["config"]
        self.assertEqual((result["queries"], config["percentile"], config["sessions"]), (200, 0.9, 1))
        self.assertTrue(result["percentile"]["valid"])
        self.assertEqual(result["percentile"]["queries_needed"], 64)  # LoadGen's early stopping
        ordered = sorted(result["samples_ns"])
        self.assertEqual(result["percentile"]["value_ns"], ordered[179])
        self.assertEqual(result["percentile"]["bound99_ns"], ordered[200 - 1 - 10])  # P(Bin(200, 0.1) <= 10) is 0.8 %, of 11 1.7 %
        self.assertFalse(result["latency_ns"]["valid"]["p99"])
        self.assertEqual(result["bound"], None)
        few = self.load("--scenario", "single", "-r", 63)["result"]["percentile"]
        self.assertEqual((few["valid"], few["bound99_ns"]), (False, None))

    def test_multi(self):
        document = self.load("--scenario", "multi", "-r", 40, "--samples-per-query", 5, "--streams", 2)
        result = document["result"]
        self.assertEqual((result["queries"], result["samples"], document["config"]["requests_per_query"]), (40, 200, 5))
        self.assertEqual((result["percentile"]["valid"], result["percentile"]["queries_needed"]), (False, 662))

    def test_offline_with_batches(self):
        document = self.load("--scenario", "offline", "-r", 300, "--max-batch", 8, "--batch-window", "5ms", "--streams", 2)
        self.assertEqual(document["batching"]["sizes"], [1, 2, 4, 8])
        self.assertLess(document["batching"]["largest_difference"], 1e-5)
        self.assertGreater(document["result"]["mean_batch"], 1)
        self.assertEqual((document["result"]["queries"], document["result"]["failed"]), (300, 0))
        plain = self.load("--streams", 2, "-r", 50)
        self.assertEqual((plain["scenario"], plain["batching"], plain["config"]["sessions"]), ("offline", None, 2))
        self.assertEqual(self.load("--streams", 1, "-r", 10, "-b", 3)["result"]["samples"], 30)

    def test_server_at_a_rate(self):
        bound = ["--scenario", "server", "--latency-bound", "10s", "--rate", 2000, "-r", 700]
        document = self.load(*bound)
        result = document["result"]
        self.assertEqual((result["queries"], result["late"], result["bound"]), (700, 0, "kept"))
        self.assertAlmostEqual(result["goodput_per_second"], result["queries_per_second"], delta=1e-6 * result["queries_per_second"])
        for mine, others in (("min", "latency_ns"), ("max", "latency_ns")):  # the wait before a run is part of the latency
            self.assertLessEqual(result["queue_ns"][mine], result[others][mine])
        self.assertGreaterEqual(result["queue_ns"]["max"], result["issue_lag_ns"]["max"])
        self.assertEqual(document["search"], None)
        self.assertEqual(self.load(*bound[:-1], 100)["result"]["bound"], "cannot tell")
        late = self.load("--scenario", "server", "--latency-bound", "1ns", "--rate", 2000, "-r", 100, wanted=VERDICT)
        self.assertEqual((late["result"]["bound"], late["result"]["late"], late["result"]["goodput_per_second"]), ("missed", 100, 0))

    def test_server_search(self):
        document = self.load("--scenario", "server", "--latency-bound", "30s", "-t", 0.2, "--streams", 2, "--percentile", 90)
        search = document["search"]
        self.assertTrue(all(step["kept"] for step in search["steps"]))  # a bound that no rate misses in so short a time
        self.assertEqual(search["largest_rate"], search["steps"][-1]["rate"])
        self.assertEqual((search["interval"], search["kept_rate"], search["precise"], search["precision"]),
                         ([search["largest_rate"], None], search["largest_rate"], True, 0.05))
        self.assertEqual(document["result"]["bound"], "kept")
        none = self.load("--scenario", "server", "--latency-bound", "1ns", "-t", 0.2, wanted=VERDICT)
        self.assertEqual(none["search"]["largest_rate"], None)
        self.assertFalse(none["search"]["precise"])
        self.assertEqual((none["search"]["interval"], none["search"]["kept_rate"]), (None, None))
        self.assertFalse(any(step["kept"] for step in none["search"]["steps"]))

    def test_models_that_cannot_be_batched(self):
        path = os.path.join(self.folder, "fixed.onnx")
        graph = ob.graph([ob.node("Neg", ["x"], ["y"])], [ob.value("x", ob.FLOAT, [1, 4])], [ob.value("y", ob.FLOAT, [1, 4])])
        with open(path, "wb") as file:
            file.write(ob.model(graph))
        code, out, error = run("bench", path, "--scenario", "offline", "--max-batch", 4, "-r", 5)
        self.assertEqual((code, out), (FAILED, ""))
        self.assertIn("input 'x' has a first dimension fixed to 1", error)
        self.assertEqual(run("bench", path, "--scenario", "offline", "--max-batch", 1, "-r", 5)[0], DONE)
        graph = ob.graph([ob.node("Softmax", ["x"], ["y"], axis=0)], [ob.value("x", ob.FLOAT, ["N", 4])],
                         [ob.value("y", ob.FLOAT, ["N", 4])])
        with open(path, "wb") as file:
            file.write(ob.model(graph))
        out = self.succeed("bench", path, "--scenario", "offline", "--max-batch", 4, "-r", 50)
        self.assertIn("this model mixes", out)

    def test_with_load(self):
        cores = len(os.sched_getaffinity(0))
        report = json.loads(self.succeed("bench", self.digits, "-r", 10, "-w", 1, "--with-load", "--json", "-"))
        self.assertEqual(report["config"]["background_threads"], cores)
        self.assertNotIn("background_threads", json.loads(self.succeed("bench", self.digits, "-r", 5, "--json", "-"))["config"])
        out = self.succeed("bench", self.digits, "-r", 10, "-w", 1, "--with-load")
        self.assertIn("with %d busy thread" % cores, " ".join(out.split()))
        self.assertIn("of another process", self.succeed("bench", self.digits, "-r", 5, "-w", 1, "-b", "1,2", "--with-load"))
        self.assertEqual(self.load("--scenario", "single", "-r", 70, "--with-load")["config"]["background_threads"], cores)

    def test_text(self):
        for arguments in (["single", "-r", 70], ["multi", "-r", 5, "--streams", 3], ["offline", "-r", 50, "--max-batch", 16],
                          ["server", "--latency-bound", "1s", "-t", 0.2, "--percentile", 50],
                          ["server", "--latency-bound", "5s", "--rate", 500, "-r", 80, "--max-batch", 4, "--batch-window", "2ms"]):
            out = self.succeed("bench", self.digits, "-x", 1, "--scenario", *arguments)
            self.assertLessEqual(max(map(len, out.splitlines())), 80, out)
            self.assertIn("queries/s", out)
            # One largest rate, and no other metric of that name.
            searched = arguments[0] == "server" and "--rate" not in arguments
            self.assertEqual(out.count("largest rate"), searched, out)
            if searched:
                self.assertRegex(out, r"kept p50, with 99 % confidence|not confirmed: no phase kept p50 with 99 % confidence")
                self.assertRegex(out, r"phase at [0-9.e+]+ queries/s")
        self.assertIn("counts from the time a query was due", out)
        code, out, _ = run("bench", self.digits, "--scenario", "single", "-r", 20, "-q")
        self.assertEqual((code, out), (DONE, ""))


if __name__ == "__main__":
    command_case.main()
