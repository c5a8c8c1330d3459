#!/usr/bin/env python3
"""The judging commands, on made-up reports whose answer is known, and on models.

    test_judgement.py PRONY SOURCE_DIR [unittest options]
"""
import copy
import json
import os
import random
import re
import statistics
import sys

import command_case
import onnx_bytes as ob
from command_case import DONE, FAILED, USAGE, VERDICT, run

MS = 1000000


def quantile(ordered, permille):
    return ordered[max(0, -(-len(ordered) * permille // 1000) - 1)]


def latencies(median_ns, spread, count=200, seed=1):
    """Uniform around the median, `spread` of it to each side."""
    draw = random.Random(seed)
    return [round(median_ns * (1 + spread * (2 * draw.random() - 1))) for _ in range(count)]


class Judgement(command_case.CommandTest):
    base = None

    def setUp(self):
        super().setUp()
        if Judgement.base is None:
            Judgement.base = self.report("profile", self.lenet, "-r", "2", "-w", "1", "-x", "1")

    def made(self, name, samples, scale=1.0, change=None, processes=8):
        """A report on lenet5 with these latencies, of that many processes; the times of layers and operators are `scale` times
        some made-up ones. The machine was quiet."""
        report = copy.deepcopy(self.base)
        ordered = sorted(samples)
        names = {"p50": 500, "p90": 900, "p95": 950, "p99": 990, "p999": 999}
        needs = {"p90": 64, "p95": 130, "p99": 662, "p999": 6636}
        report["latency_ns"] = {
            "mean": round(statistics.mean(samples)), "min": ordered[0], "max": ordered[-1],
            "std": round(statistics.stdev(samples)) if len(samples) > 1 else 0,
            "median": int(statistics.median(samples)), **{k: quantile(ordered, v) for k, v in names.items()},
            "unsupported_quantiles": [k for k, v in needs.items() if len(samples) < v],
            "median_ci95": [ordered[0], ordered[-1]], "runs": len(samples), "warmup_detected": True,
            "stop_reason": "runs done", "samples": samples}
        if processes > 1 and len(samples) >= processes:
            report["latency_ns"]["process_runs"] = [len(samples) * (p + 1) // processes - len(samples) * p // processes
                                                    for p in range(processes)]
        report["disturbance"] = {"others_share": 0.01, "steal_share": 0.0, "waited_share": 0.0, "involuntary_switches": 0,
                                 "verdict": "quiet"}
        report["config"]["runs"] = len(samples)
        for rows in (report["layers"], report["operators"]):
            for i, row in enumerate(rows):
                if row.get("time_ns"):
                    mean = round((i + 1) * 10000 * scale)
                    row["time_ns"] = {"mean": mean, "median": mean, "min": mean, "max": mean, "std": round(mean / 100)}
        if change:
            change(report)
        return self.write(name, json.dumps(report).encode())

    def compare(self, expected, *arguments):
        """The document and its metrics by key. `expected` None: the verdict is up to chance, or to other tests."""
        code, out, err = run("compare", *arguments, "--json", "-")
        self.assertEqual(err, "", out)
        document = json.loads(out)
        self.assertEqual(code, VERDICT if document["regressions"] else DONE)
        self.assertIn(expected, (code, None), out)
        self.assertEqual(document["schema"], "prony.comparison/1")
        return document, {row["key"]: row for row in document["metrics"]}

    # ---- compare ----

    def test_slower_is_a_regression(self):
        a = self.made("a.json", latencies(10 * MS, 0.02))
        b = self.made("b.json", latencies(round(12.5 * MS), 0.02, seed=2), 1.25)
        document, metrics = self.compare(VERDICT, a, b)
        latency, throughput = metrics["latency"], metrics["throughput"]
        self.assertEqual((latency["verdict"], latency["evidence"], latency["better"]), ("worse", "runs", "smaller"))
        self.assertAlmostEqual(latency["ratio"], 1.25, delta=0.01)
        self.assertAlmostEqual(latency["p"], 2 / 12870)  # all 8 processes of one side above all 8 of the other
        low, high = latency["ratio_ci95"]
        self.assertTrue(1.22 < low < latency["ratio"] < high < 1.28, latency)
        self.assertEqual((throughput["verdict"], throughput["better"]), ("worse", "larger"))
        self.assertTrue(throughput["ratio_ci95"][0] < throughput["ratio"] < throughput["ratio_ci95"][1] < 1, throughput)
        self.assertEqual(metrics["latency_p90"]["evidence"], "interval")
        self.assertEqual(metrics["latency_p90"]["verdict"], "worse")
        self.assertNotIn("latency_p99", metrics)
        self.assertEqual(metrics["latency_max"]["evidence"], "single")
        self.assertEqual(metrics["latency_max"]["verdict"], "none")
        self.assertEqual(metrics["macs"]["verdict"], "same")
        self.assertIn("latency", document["regressions"])
        self.assertEqual(document["notes"], [])
        self.assertTrue(document["layers"] and all(row["verdict"] == "worse" for row in document["layers"] if row["a_ns"]))
        types = {row["name"]: row for row in document["operator_types"]}
        self.assertEqual(types["Conv"]["verdict"], "worse")
        self.assertAlmostEqual(types["Conv"]["ratio"], 1.25, delta=0.001)
        text = run("compare", a, b)[1]
        self.assertIn("worse: latency, ", text)

    def test_faster_equal_and_noisy(self):
        a = self.made("a.json", latencies(10 * MS, 0.02))
        faster = self.made("faster.json", latencies(9 * MS, 0.02, seed=2), 0.9)
        document, metrics = self.compare(DONE, a, faster)
        self.assertEqual(metrics["latency"]["verdict"], "better")
        self.assertEqual(metrics["throughput"]["verdict"], "better")
        self.assertEqual(document["regressions"], [])
        document, metrics = self.compare(DONE, a, a)
        self.assertEqual({row["verdict"] for row in document["metrics"]} - {"none", "same"}, set())
        self.assertEqual(metrics["latency"]["ratio"], 1)
        self.assertEqual({row["verdict"] for row in document["layers"] + document["operator_types"]} - {"same", "none"}, set())
        # 3 % slower in a scatter of 40 % to each side: the interval is wider than that.
        noisy = self.made("noisy.json", latencies(10 * MS, 0.4, 40, seed=3))
        slower = self.made("slower.json", latencies(round(10.3 * MS), 0.4, 40, seed=4))
        self.assertEqual(self.compare(DONE, noisy, slower)[1]["latency"]["verdict"], "same")

    def test_one_process_each(self):
        """Two processes of one model differ by as much; --strict takes the doubt as worse."""
        a = self.made("a.json", latencies(10 * MS, 0.02), processes=1)
        b = self.made("b.json", latencies(round(10.5 * MS), 0.02, seed=2), 1.05, processes=1)
        document, metrics = self.compare(DONE, a, b)
        self.assertEqual((metrics["latency"]["verdict"], metrics["throughput"]["verdict"]), ("cannot tell", "cannot tell"))
        self.assertIn("--processes 10", " ".join(document["notes"]))
        self.assertLess(metrics["latency"]["ratio_ci95"][0], 1)
        self.assertEqual({row["verdict"] for row in document["layers"] if row["a_ns"]}, {"cannot tell"})
        self.assertEqual(run("compare", a, b, "-q", "--strict")[0], VERDICT)
        self.assertEqual(run("compare", b, a, "-q", "--strict")[0], DONE)
        self.assertEqual(run("compare", a, a, "-q", "--strict")[0], DONE)
        c = self.made("c.json", latencies(round(12.5 * MS), 0.02, seed=2), 1.25, processes=1)
        self.compare(VERDICT, a, c)

    def test_damaged_processes(self):
        for runs, why in (([100, 99], "belong to no process"), ([100, 101], "sum to 200"), ([200, 0], "runs of each process"),
                          ([], "belong to no process"), (["x"], "process_runs")):
            def change(report):
                report["latency_ns"]["process_runs"] = runs
            a = self.made("a.json", latencies(10 * MS, 0.02), change=change)
            self.refuse(FAILED, [why, "a.json"], "compare", a, a)

    def test_measuring_in_processes(self):
        for command in ("profile", "bench"):
            f = self.path(command + ".json")
            out = self.succeed(command, self.lenet, "-r", "6", "-w", "1", "-x", "1", "--processes", "3", "--json", f,
                               "--threshold", "latency:100s")
            self.assertRegex(out, "of 3 processes, with medians from")
            self.assertRegex(out, r"Thresholds\n(.*\n)*latency .* met")
            report = json.loads(self.read(f))
            self.assertEqual(report["latency_ns"]["process_runs"], [6, 6, 6])
            self.assertEqual((report["latency_ns"]["runs"], len(report["latency_ns"]["samples"])), (18, 18))
            self.assertEqual(report["config"]["runs"], 18)
            self.assertEqual(command_case.Schema("report").problems(report), [])
            self.assertEqual(run("compare", f, f, "-q")[0], DONE)
        out = self.succeed("profile", "--processes", "2", "-r", "2")  # the model inside
        self.assertIn("of 2 processes", out)
        for arguments in (["profile", self.lenet, "--topk", "1"], ["profile", self.lenet, "--output-dir", self.path("d")],
                          ["bench", self.lenet, "-x", "1,2"], ["bench", self.lenet, "--streams", "2"]):
            self.refuse(USAGE, ["--processes"], *arguments, "--processes", "2")
        self.refuse(FAILED, ["No such file"], "profile", self.path("none.onnx"), "--processes", "2")

    def test_noise_threshold(self):
        """A certain difference of half a per cent counts only below a lower threshold."""
        a = self.made("a.json", latencies(10 * MS, 0.002))
        b = self.made("b.json", latencies(round(10.05 * MS), 0.002, seed=2))
        metrics = self.compare(DONE, a, b)[1]
        self.assertEqual(metrics["latency"]["verdict"], "same")
        self.assertAlmostEqual(metrics["latency"]["p"], 2 / 12870)
        self.assertEqual(self.compare(VERDICT, a, b, "--noise", "0.1")[1]["latency"]["verdict"], "worse")
        self.assertEqual(self.compare(VERDICT, a, b, "--noise", "0%")[0]["noise"], sys.float_info.min)
        slower = self.made("slower.json", latencies(11 * MS, 0.002, seed=2), 1.1)
        self.compare(DONE, a, slower, "--noise", "20")

    def test_chosen_metrics_alone_decide(self):
        a = self.made("a.json", latencies(10 * MS, 0.02))
        b = self.made("b.json", latencies(12 * MS, 0.02, seed=2), 1.2)
        document, metrics = self.compare(DONE, a, b, "--metrics", "memory,macs")
        self.assertEqual(set(metrics), {"memory", "macs"})
        self.assertEqual(document["regressions"], [])
        self.compare(VERDICT, a, b, "--metrics", "memory,latency")
        self.refuse(USAGE, ["no metric 'speed'"], "compare", a, b, "--metrics", "memory,speed")

    def test_latency_throughput_and_memory_decide(self):
        """Explanatory metrics do not fail a model, unless they are requested."""
        samples = latencies(10 * MS, 0.02)

        def more(report):
            report["memory"]["allocations"] = 64
            report["memory"]["plan_gap"] += 0.2

        def fewer(report):
            report["memory"]["allocations"] = 58

        a, b = self.made("a.json", samples, change=fewer), self.made("b.json", samples, change=more)
        document, metrics = self.compare(DONE, a, b)
        self.assertEqual((metrics["allocations"]["verdict"], metrics["allocations"]["decides"]), ("worse", False))
        self.assertEqual(document["regressions"], [])
        self.assertEqual({key for key, row in metrics.items() if row["decides"]},
                         {"latency", "throughput", "held_memory", "session_memory"})
        self.assertIn("2 other metrics are worse, but do not count", self.succeed("compare", a, b))
        document, metrics = self.compare(VERDICT, a, b, "--metrics", "allocations,latency")
        self.assertEqual((set(metrics), document["regressions"]), ({"allocations", "latency"}, ["allocations"]))
        document, metrics = self.compare(VERDICT, a, b, "--metrics", "all")
        self.assertEqual(document["regressions"], ["plan_gap", "allocations"])
        self.assertTrue(all(row["decides"] for row in metrics.values()))

    def test_held_memory_decides_beyond_its_scatter(self):
        samples = latencies(10 * MS, 0.02)

        def held(bytes):
            def change(report):
                report["memory"]["held"]["resident_bytes"] = bytes
            return change

        a = self.made("a.json", samples, change=held(100 << 20))
        self.compare(DONE, a, self.made("b.json", samples, change=held(104 << 20)))
        document, metrics = self.compare(VERDICT, a, self.made("b.json", samples, change=held(106 << 20)))
        self.assertEqual(document["regressions"], ["held_memory"])
        small = self.made("small.json", samples, change=held(10 << 20))
        self.compare(DONE, small, self.made("b.json", samples, change=held(11 << 20)))  # a tenth, but 1 MiB
        self.compare(VERDICT, small, self.made("b.json", samples, change=held(13 << 20)))

    def test_the_verdict_comes_first_and_ten_rows(self):
        a = self.made("a.json", latencies(10 * MS, 0.02))
        b = self.made("b.json", latencies(15 * MS, 0.02, seed=2), 1.5)
        code, out, err = run("compare", a, b)
        self.assertEqual((code, err), (VERDICT, ""))
        lines = out.splitlines()
        self.assertLessEqual(max(map(len, lines)), 80)
        verdict = lines.index("2 metrics are worse, 0 better, of held_memory, session_memory, latency and")
        self.assertTrue(lines[verdict - 2].startswith("B  "), out)
        self.assertIn("  worse: latency, ", out[:out.index("Metrics")])

        def rows(text, title):
            table = text[text.index("\n" + title):].split("\n\n")[0].splitlines()[3:]
            return [line.split()[0] for line in table if not re.match("not shown|[0-9]+ metrics do not", line)]

        few, every = rows(out, "Metrics"), rows(self.run_compare(a, b, "--all"), "Metrics")
        self.assertLessEqual(len(few), 10)
        self.assertEqual(len(rows(out, "Layers")), 10)
        # Throughput and other metrics of the same mean are one ratio, and one row.
        self.assertTrue({"latency", "throughput"} <= set(few), few)
        self.assertFalse({"latency_mean", "flops_per_second", "bytes_per_second"} & set(few), few)
        self.assertRegex(out, r"not shown: [0-9]+ with the same ratio as a row above")
        self.assertTrue({"latency_mean", "flops_per_second", "bytes_per_second"} <= set(every), every)
        self.assertNotIn("not shown", self.run_compare(a, b, "--all"))
        self.assertGreater(len(rows(self.run_compare(a, b, "--all"), "Layers")), 10)

    def run_compare(self, *arguments):
        code, out, err = run("compare", *arguments)
        self.assertEqual((code, err), (VERDICT, ""))
        return out

    def test_few_runs_cannot_tell(self):
        a, b = self.made("a.json", [10 * MS, 10 * MS + 1, 10 * MS + 2]), self.made("b.json", [12 * MS, 12 * MS + 1, 12 * MS + 2])
        document, metrics = self.compare(DONE, a, b)
        self.assertAlmostEqual(metrics["latency"]["p"], 0.1)  # 2 of 20 arrangements
        self.assertEqual(metrics["latency"]["verdict"], "same")
        self.assertTrue(any("A has only 3 runs" in note for note in document["notes"]), document["notes"])

    def test_exact_metrics(self):
        samples = latencies(10 * MS, 0.02)

        def grow(report):
            report["memory"]["planned_bytes"] *= 2
            report["memory"]["external_fragmentation"] += 0.005

        a, b = self.made("a.json", samples), self.made("b.json", samples, change=grow)
        document, metrics = self.compare(VERDICT, a, b)
        self.assertEqual((metrics["planned_memory"]["verdict"], metrics["planned_memory"]["evidence"]), ("worse", "exact"))
        self.assertEqual(metrics["planned_memory"]["ratio"], 2)
        # Fractions count by their difference: half a point is below the threshold, whatever the ratio.
        self.assertEqual(metrics["external_fragmentation"]["verdict"], "same")
        self.assertEqual(self.compare(DONE, b, a)[1]["planned_memory"]["verdict"], "better")

    def test_what_differs_is_said(self):
        def other(report):
            report["model"].update(name="other.onnx", sha256="0" * 64, nodes=99)
            report["config"].update(intra_op_threads=7, batch=8, rewrites=False)
            report["system"].update(host_name="elsewhere", compiler="another")
            report["layers"][0]["name"] = "renamed"

        samples = latencies(10 * MS, 0.02)
        a, b = self.made("a.json", samples), self.made("b.json", samples, change=other)
        document, metrics = self.compare(None, a, b)
        notes = "\n".join(document["notes"])
        for words in ("models differ: lenet5.onnx", "other.onnx (99 nodes)", "batch differs: 1 and 8", "threads differs: 1 and 7",
                      "rewriting differs: on and off", "different machines", "elsewhere", "compiler differs"):
            self.assertIn(words, notes)
        self.assertEqual(document["a"]["only_layers"], [self.base["layers"][0]["name"]])
        self.assertEqual(document["b"]["only_layers"], ["renamed"])
        self.assertEqual(metrics["throughput"]["ratio"], 8)  # the batch counts
        self.assertEqual(metrics["throughput"]["verdict"], "better")
        text = run("compare", a, b)[1]
        self.assertLess(text.index("models differ"), text.index("Metrics"))

    def test_reports_without_times(self):
        a = self.path("a.json")
        self.succeed("inspect", self.lenet, "-q", "--json", a)
        document, metrics = self.compare(DONE, a, self.made("b.json", latencies(10 * MS, 0.02)))
        self.assertNotIn("latency", metrics)
        self.assertEqual(document["layers"], [])
        self.assertIn("A was not measured and has no times", document["notes"])

    def test_two_models(self):
        document, metrics = self.compare(None, self.lenet, self.digits, "-r", "12")
        self.assertEqual((document["a"]["runs"], document["b"]["runs"]), (12, 12))
        self.assertEqual(metrics["parameters"]["a"], 61706)
        self.assertTrue(any("the models differ" in note for note in document["notes"]))
        self.assertGreater(metrics["latency"]["a"], metrics["latency"]["b"])
        same, metrics = self.compare(None, self.lenet, self.lenet, "-r", "5")
        self.assertEqual(len(same["layers"]), len([row for row in self.base["layers"] if row.get("time_ns")]))
        self.assertEqual(metrics["macs"]["verdict"], "same")

    def test_compare_writes_files(self):
        a = self.made("a.json", latencies(10 * MS, 0.02))
        f = self.path("comparison.json")
        text = self.succeed("compare", a, a, "--json", f)
        self.assertIn("0 metrics are worse", text)
        self.assertEqual(json.loads(self.read(f))["schema"], "prony.comparison/1")
        self.assertEqual(self.succeed("compare", a, a, "-q"), "")
        before = self.read(f)
        code, out, err = run("compare", a, a, "--json", os.path.join(f, "below"))
        self.assertEqual((code, out), (FAILED, ""))
        self.assertIn("cannot write", err)
        self.assertEqual(self.read(f), before)

    # ---- check ----

    def check(self, expected, *arguments):
        code, out, err = run("check", *arguments, "--json", "-")
        self.assertEqual(code, expected, out + err)
        document = json.loads(out)
        self.assertEqual((document["schema"], document["passed"]), ("prony.check/1", code == DONE))
        return {row["metric"]: row for row in document["thresholds"]}, err

    def test_thresholds_met_and_missed(self):
        a = self.made("a.json", latencies(10 * MS, 0.02))
        rows, err = self.check(DONE, a, "--threshold", "latency:0.0101s", "throughput:90samples/s", "memory:2MiB",
                               "--threshold", "p90:11ms", "plan_gap:50%", "macs:1MMACs")
        self.assertEqual(err, "")
        self.assertEqual({row["outcome"] for row in rows.values()}, {"met"})
        self.assertEqual(set(rows), {"latency", "throughput", "memory", "latency_p90", "plan_gap", "macs"})
        self.assertEqual((rows["latency"]["limit"], rows["memory"]["limit"]), (10100000, 2 << 20))
        self.assertEqual((rows["latency"]["bound"], rows["throughput"]["bound"]), ("at most", "at least"))
        rows, err = self.check(VERDICT, a, "--threshold", "latency:9ms", "throughput:101samples/s", "memory:2MiB")
        self.assertEqual([rows[k]["outcome"] for k in ("latency", "throughput", "memory")], ["missed", "missed", "met"])
        self.assertLess(rows["latency"]["margin"], 0)
        self.assertIn("latency is", err)
        self.assertIn("wanted at most 9.000 ms", err)
        self.assertIn("wanted at least 101 samples/s", err)
        self.assertNotIn("memory is", err)
        self.assertIn("MISSED", run("check", a, "--threshold", "latency:9ms")[1])

    def test_held_is_what_profile_calls_held(self):
        """The limit on memory applies to the memory of the process; the sum of weights and arena is another metric."""
        path = self.path("held.json")
        out = self.succeed("profile", self.lenet, "-r", "20", "--json", path)
        with open(path, encoding="utf-8") as file:
            memory = json.load(file)["memory"]
        held = memory["held"]["resident_bytes"]
        self.assertGreaterEqual(memory["peak_rss_bytes"], held)
        self.assertIn("Memory  %.2f MiB held after the runs" % (held / 2**20), out)
        rows, _ = self.check(DONE, path, "--threshold", "held_memory:%dB" % held, "held:%dB" % held, "peak_resident:10GiB",
                             "arena:%dB" % memory["planned_bytes"], "session_memory:1GiB")
        self.assertEqual((rows["held_memory"]["value"], rows["planned_memory"]["value"]), (held, memory["planned_bytes"]))
        self.assertEqual(rows["session_memory"]["value"], memory["packed_weight_bytes"] + memory["planned_bytes"])
        rows, err = self.check(VERDICT, path, "--threshold", "held_memory:%dB" % (held - 1), "memory:%dB" % (
            memory["weight_bytes"] + memory["packed_weight_bytes"] + memory["planned_bytes"]))
        self.assertEqual((rows["held_memory"]["outcome"], rows["memory"]["outcome"]), ("missed", "met"))
        self.assertIn("held_memory is", err)
        # A model is measured for it; for a process with two models nothing is known.
        self.check(DONE, self.lenet, "-r", "5", "--threshold", "held_memory:10GiB")
        self.assertNotIn("held_memory", self.compare(None, self.lenet, self.digits, "-r", "5")[1])
        with open(os.path.join(command_case.SOURCE, "README.md"), encoding="utf-8") as file:
            self.assertIn("held_memory:200MiB", file.read())

    def test_undecided(self):
        """Beyond the limit, but within chance: passes visibly; fails with --strict."""
        a = self.made("a.json", latencies(10 * MS, 0.02))
        limit = "latency:%dns" % (json.loads(self.read(a))["latency_ns"]["median"] - 1000)
        rows, err = self.check(DONE, a, "--threshold", limit)
        self.assertEqual(rows["latency"]["outcome"], "open")
        self.assertRegex(err, r"within noise \(.* to .*\), so undecided")
        self.assertIn("within noise", run("check", a, "--threshold", limit)[1])
        code, out, err = run("check", a, "--threshold", limit, "--strict", "--json", "-")
        self.assertEqual((code, json.loads(out)["undecided"]), (VERDICT, 1))
        self.assertIn("--strict counts it as missed", err)
        self.check(DONE, a, "--threshold", "latency:11ms", "--strict")

        def busy(report):
            report["disturbance"] = {"others_share": 0.5, "waited_share": 0.4, "involuntary_switches": 9, "verdict": "busy"}
        b = self.made("b.json", latencies(10 * MS, 0.02), change=busy)
        rows, err = self.check(FAILED, b, "--threshold", "latency:9.9ms")
        self.assertEqual(rows["latency"]["outcome"], "withheld")
        self.assertEqual(run("check", b, "--threshold", "latency:9.9ms", "--strict")[0], VERDICT)

    def test_order_of_target_and_thresholds(self):
        a = self.made("a.json", latencies(10 * MS, 0.02))
        self.succeed("check", "--threshold", "latency:11ms", "throughput:1samples/s", a)
        self.succeed("check", "--threshold", "latency:11ms", a, "--threshold", "throughput:1samples/s")
        self.assertEqual(run("check", "--threshold", "latency:11ms", "throughput:1000samples/s", a)[0], VERDICT)

    def test_what_is_not_known_does_not_pass(self):
        a = self.made("a.json", latencies(10 * MS, 0.02))
        rows, err = self.check(FAILED, a, "--threshold", "latency:1s", "p99:1s")
        self.assertEqual(rows["latency_p99"]["outcome"], "unknown")
        self.assertIn("needs 662 runs", err)
        self.check(VERDICT, a, "--threshold", "latency:1ms", "p99:1s")

    def test_wrong_thresholds(self):
        a = self.made("a.json", latencies(10 * MS, 0.02))
        for words, threshold in ((["latency", "no unit", "ms"], "latency:100"), (["latency", "unit", "100MB"], "latency:100MB"),
                                 (["throughput", "samples/s"], "throughput:1000"), (["unknown metric", "latncy"], "latncy:1ms"),
                                 (["METRIC:VALUE"], "latency"), (["latency", "not a number"], "latency:fast"),
                                 (["layers", "no better or worse direction"], "layers:3"), (["memory", "1GHz"], "memory:1GHz")):
            self.refuse(USAGE, words, "check", a, "--threshold", threshold)
        self.refuse(USAGE, ["--threshold", "missing"], "check", a)
        self.refuse(USAGE, ["no unit"], "check", a, "--threshold", "latency:11ms", "memory:12")

    def test_models_are_measured(self):
        rows, _ = self.check(DONE, self.lenet, "-r", "5", "--threshold", "latency:100s", "parameters:61706")
        self.assertEqual(rows["parameters"]["value"], 61706)
        self.check(VERDICT, self.lenet, "-r", "5", "--threshold", "latency:1ns")

    def test_profile_and_bench_take_thresholds(self):
        for command in ("profile", "bench"):
            out = self.succeed(command, self.lenet, "-r", "5", "--threshold", "latency:100s")
            self.assertRegex(out, r"Thresholds\n(.*\n)*latency .* met")
            f = self.path(command + ".json")
            code, out, err = run(command, self.lenet, "-r", "5", "-q", "--json", f, "--threshold", "latency:1ns", "macs:1GMACs")
            self.assertEqual((code, out), (VERDICT, ""))
            self.assertIn("wanted at most 1 ns", err)
            self.assertNotIn("macs", err)
            self.assertEqual(json.loads(self.read(f))["schema"], "prony.report/1")
            code, out, err = run(command, self.lenet, "-r", "5", "--json", "-", "--threshold", "latency:1ns")
            self.assertEqual((code, json.loads(out)["schema"]), (VERDICT, "prony.report/1"))
        self.succeed("profile", "-r", "2", "-q", "--threshold", "accuracy:90%")

    # ---- recommend ----

    def recommend(self, *arguments):
        document = json.loads(self.succeed("recommend", *arguments, "--json", "-"))
        self.assertEqual(document["schema"], "prony.recommendation/1")
        advice = {row["topic"]: row for row in document["recommendations"]}
        for row in advice.values():
            self.assertTrue(row["reason"] and row["gain_text"] and row["action"], row)
            self.assertGreater(row["gain"], 0, row)
            self.assertIn(row["basis"], ("measured", "computed"))
        considered = {row["topic"]: row["reason"] for row in document["considered"]}
        self.assertEqual(set(advice) | set(considered), {"batch", "threads", "fusion", "precision", "overhead", "memory"})
        return advice, considered

    def roof(self, flops, bandwidth):
        return {"method": "made up", "compute": [{"precision": "fp32", "threads": 1, "flops_per_second": flops}],
                "memory": [{"level": "DRAM", "threads": 1, "bytes_per_second": bandwidth}]}

    def test_nothing_to_recommend(self):
        def good(report):
            report["coverage"]["time_share"] = 0.999
            report["system"]["caches"] = []
            for row in report["operators"]:
                row.update(bytes_read=100, bytes_written=0, flops=row["time_ns"]["mean"])
            report["roof"] = self.roof(1e9, 1e9)  # every operator at the roof of arithmetic

        a = self.made("a.json", latencies(10 * MS, 0.02), change=good)
        advice, considered = self.recommend(a)
        self.assertEqual(advice, {})
        self.assertIn("no other batch size was measured", considered["batch"])
        self.assertIn("Nothing to recommend.", self.succeed("recommend", a))

    def test_overhead(self):
        def slow(report):
            report["coverage"]["time_share"] = 0.9
            report["roof"] = self.roof(1e15, 1e15)

        operators = len(self.base["operators"])
        whole = 10000 * operators * (operators + 1) // 2
        a = self.made("a.json", [whole] * 20, change=slow)
        row = self.recommend(a)[0]["overhead"]
        self.assertEqual((row["basis"], row["metric"]), ("computed", "latency"))
        self.assertEqual(row["gain"], 1)  # all of the operators' time and what lies between: no more than everything
        self.assertIn("%d small operators" % operators, row["reason"])

        def between(report):
            report["coverage"]["time_share"] = 0.9

        row = self.recommend(self.made("b.json", [whole] * 20, change=between))[0]["overhead"]
        self.assertAlmostEqual(row["gain"], 0.1, places=6)

    def test_precision_of_memory_bound_weights(self):
        """One Gemm whose traffic is all weights, at the memory roof: three quarters of its time can go."""
        operators = len(self.base["operators"])
        whole = 10000 * operators * (operators + 1) // 2

        def bound(report):
            report["coverage"]["time_share"] = 1
            report["system"]["caches"] = []
            report["roof"] = self.roof(1e12, 1e9)
            gemm = next(row for row in report["operators"] if row["op"] == "Gemm")
            weights = sum(w["bytes"] for w in report["weights"]
                          if report["layers"][w["layer"]].get("operator") == gemm["index"])
            gemm.update(bytes_read=weights, bytes_written=0)
            gemm["time_ns"]["mean"] = weights  # 1 GB/s
            self.expected = 0.75 * weights / whole
            for row in report["operators"]:
                if row is not gemm:
                    row.update(bytes_read=0, bytes_written=0, flops=1000 * row["time_ns"]["mean"])

        row = self.recommend(self.made("a.json", [whole] * 20, change=bound))[0]["precision"]
        self.assertEqual(row["basis"], "computed")
        self.assertAlmostEqual(row["gain"], self.expected, places=6)

    def test_fusion_missed(self):
        """A Relu that cannot be part of its convolution because the convolution's output is read twice."""
        w = ob.floats("w", [4, 4, 1, 1], [0.5] * 16)
        graph = ob.graph([ob.node("Conv", ["x", "w"], ["c"], name="conv"), ob.node("Relu", ["c"], ["r"], name="relu"),
                          ob.node("Sigmoid", ["c"], ["s"], name="sigmoid"), ob.node("Add", ["r", "s"], ["y"], name="add")],
                         [ob.value("x", ob.FLOAT, [1, 4, 64, 64])], [ob.value("y", ob.FLOAT, [1, 4, 64, 64])], [w])
        f = self.path("a.json")
        self.succeed("profile", self.save("m.onnx", graph), "-r", "20", "-q", "--json", f)
        report = json.loads(self.read(f))
        relu = next(row for row in report["operators"] if row["name"] == "relu")
        row = self.recommend(f)[0]["fusion"]
        self.assertEqual(row["basis"], "computed")
        self.assertIn("relu (its input has other readers)", row["reason"])
        self.assertAlmostEqual(row["gain"], relu["time_ns"]["mean"] / report["latency_ns"]["mean"], places=6)

    def test_memory(self):
        def gap(report):
            report["memory"].update(planned_bytes=1 << 20, lower_bound_bytes=1 << 19, plan_gap=0.5)

        row = self.recommend(self.made("a.json", latencies(10 * MS, 0.02), change=gap))[0]["memory"]
        self.assertEqual((row["metric"], row["basis"], row["gain_text"]), ("memory", "computed", "at most 512 KiB"))

    def test_a_model_is_measured_beside_variants(self):
        advice, considered = self.recommend(self.lenet, "-r", "12", "-x", "1")
        for topic, text in (("batch", "batch"), ("threads", "thread")):
            if topic in advice:
                self.assertEqual(advice[topic]["basis"], "measured")
                self.assertIn(text, advice[topic]["reason"])
            else:  # on a busy machine the output has no more
                self.assertNotIn("no other", considered[topic])
                self.assertRegex(considered[topic], text + "|^cannot tell: other processes took")
        # A fixed batch leaves no variants.
        fixed = self.save("fixed.onnx", ob.graph([ob.node("Relu", ["x"], ["y"])], [ob.value("x", ob.FLOAT, [1, 8])],
                                                 [ob.value("y", ob.FLOAT, [1, 8])]))
        self.assertIn("no other batch size was measured", self.recommend(fixed, "-r", "3")[1]["batch"])

    def test_precisions_are_measured(self):
        """Each precision has a line with its error; none is lost from the list."""
        target = [self.lenet, "-r", "8", "-x", "1"]
        document = json.loads(self.succeed("recommend", *target, "-p", "fp32,bf16,int8-weights", "--json", "-"))
        lines = [row.get("action", "") + row["reason"] for key in ("recommendations", "considered") for row in document[key]
                 if row["topic"] == "precision"]
        for name in ("bf16", "int8-weights"):
            line = [text for text in lines if text.startswith(name) or "-p " + name in text]
            self.assertEqual(len(line), 1, lines)
            self.assertRegex(line[0], "differ by up to 0[.][0-9]+ of their range from those of fp32, the worst of 5 generated")
        self.assertTrue(any(text.startswith("the Pareto set (latency, memory, error) of 3 precisions: ") for text in lines))
        self.refuse(FAILED, ["bf17", "bf16"], "recommend", *target, "-p", "fp32,bf17")
        self.refuse(USAGE, ["it cannot be int8"], "recommend", *target, "-p", "int8,fp32")

    def test_errors_are_compared(self):
        """--accuracy: both beside the first model in float64, as metrics and as the operators that lose most."""
        coarse = self.path("coarse.onnx")
        self.succeed("quantize", self.lenet, "-q", "-o", coarse)
        status, out, err = run("compare", self.lenet, coarse, "--accuracy", "-r", "3", "--json", self.path("c.json"))
        self.assertEqual(status, VERDICT, err)
        with open(self.path("c.json"), encoding="utf-8") as file:
            rows = {row["key"]: row for row in json.load(file)["metrics"]}
        self.assertLess(rows["output_error"]["a"], 1e-5)
        self.assertGreater(rows["output_error"]["b"], 1e-4)
        self.assertEqual((rows["output_error"]["verdict"], rows["output_error"]["evidence"]), ("worse", "exact"))
        self.assertGreater(rows["operator_error"]["b"], rows["operator_error"]["a"])
        self.assertRegex(out, r"\nA: '.*has the largest own error")
        self.assertRegex(out, r"\nB: '.*has the largest own error")
        report = self.path("r.json")
        self.succeed("profile", self.lenet, "-r", "3", "-q", "--json", report)
        self.refuse(USAGE, ["is a report; --accuracy needs a model"], "compare", report, coarse, "--accuracy", "-r", "3")
        self.succeed("profile", self.lenet, "-r", "3", "-q", "--accuracy", "--threshold", "output_error:1e-5")

    # ---- bad input, alike for all ----

    def test_bad_targets(self):
        good = self.made("good.json", latencies(10 * MS, 0.02))
        text = self.read(good)
        other = self.write("other.json", text.replace(b"prony.report/1", b"prony.report/2"))
        cut = self.write("cut.json", text[:len(text) // 2])
        for command in (["check", "--threshold", "latency:1s"], ["recommend"], ["compare", good]):
            self.refuse(FAILED, ["other.json", "prony.report/2", "prony.report/1"], *command, other)
            self.refuse(FAILED, ["cut.json"], *command, cut)
            self.refuse(FAILED, ["nowhere"], *command, self.path("nowhere"))
            self.refuse(USAGE, ["is missing"], command[0])
        self.refuse(USAGE, ["one argument too many"], "compare", good, good, good)
        self.refuse(USAGE, ["is a report", "options for runs"], "compare", good, good, "-r", "3")
        self.refuse(USAGE, ["is a report"], "check", good, "-b", "3", "--threshold", "latency:1s")
        self.refuse(USAGE, ["--noise"], "compare", good, good, "--noise", "-1")
        self.refuse(FAILED, ["cannot write"], "recommend", good, "-q", "--json", self.path("no/such/folder.json"))


if __name__ == "__main__":
    command_case.main()
