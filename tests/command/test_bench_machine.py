#!/usr/bin/env python3
"""`prony machine` and `prony bench` over a matrix, as their users meet them.

    test_bench_machine.py PRONY SOURCE_DIR [unittest options]
"""
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import command_case

PRONY, SOURCE = "", ""
DONE, FAILED, USAGE, VERDICT = 0, 1, 2, 3


class BenchMachineTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.cache = os.path.join(folder.name, "cache")
        self.folder = folder.name
        self.digits = os.path.join(SOURCE, "models", "digits.onnx")
        self.fixed = os.path.join(SOURCE, "tests", "data", "if_two_branch.onnx")

    def run_command(self, *arguments, cache=None):
        env = dict(os.environ, XDG_CACHE_HOME=cache or self.cache)
        for sanitizer in ("ASAN_OPTIONS", "UBSAN_OPTIONS"):
            env[sanitizer] = env.get(sanitizer, "") + ":exitcode=99"
        ran = subprocess.run([PRONY, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env,
                             stdin=subprocess.DEVNULL, timeout=300)
        self.assertIn(ran.returncode, (DONE, FAILED, USAGE, VERDICT), ran.stderr.decode(errors="replace")[-3000:])
        return ran.returncode, ran.stdout.decode(), ran.stderr.decode()

    def succeed(self, *arguments, **options):
        code, out, err = self.run_command(*arguments, **options)
        self.assertEqual((code, err), (DONE, ""), "%s: %s%s" % (arguments, out, err))
        return out

    def measure(self, *arguments, **options):
        return json.loads(self.succeed("machine", "-t", "0.05", "--json", "-", *arguments, **options))

    def kept(self):
        return glob.glob(os.path.join(self.cache, "prony", "*"))

    # ---- machine

    def test_peaks_are_measured_once_and_kept(self):
        first = self.measure()
        self.assertEqual(first["schema"], "prony.machine/1")
        self.assertEqual(len(self.kept()), 1)
        with open(self.kept()[0], encoding="utf-8") as file:
            self.assertEqual(json.load(file), first)
        self.assertIn(first["processor"], os.path.basename(self.kept()[0]))
        self.mark_kept(busy=False)
        first.pop("busy", None)
        self.assertEqual(self.measure(), first)
        again = self.measure("--no-cache")
        self.assertNotEqual(again["compute"], first["compute"])
        self.assertEqual(len(self.kept()), 1)
        threads = {row["threads"] for row in first["compute"] if row["precision"] == "fp32"}
        self.assertTrue({1, first["cores"]} <= threads)
        levels = {(row["level"], row["access"]) for row in first["bandwidth"] if row["threads"] == 1}
        self.assertTrue({("DRAM", "read"), ("DRAM", "write"), ("DRAM", "copy")} <= levels)
        for row in first["compute"] + first["bandwidth"]:
            self.assertGreater(row.get("flops_per_second", row.get("bytes_per_second")), 0)
            self.assertGreater(row["trials"], 0)
            self.assertGreater(row["trial_ns"], 0)
        self.assertTrue(first["method"])

    def mark_kept(self, busy):
        with open(self.kept()[0], encoding="utf-8") as file:
            document = json.load(file)
        document.pop("busy", None)
        if busy:
            document["busy"] = True
        with open(self.kept()[0], "w", encoding="utf-8") as file:
            json.dump(document, file)

    def test_busy_rates_stand_until_the_next_measurement(self):
        first = self.measure()
        self.mark_kept(busy=True)
        report = json.loads(self.succeed("profile", self.digits, "-r", "20", "-w", "1", "--json", "-"))
        self.assertIs(report["roof"]["busy"], True)
        text = " ".join(self.succeed("profile", self.digits, "-r", "20", "-w", "1").split())
        self.assertIn("measured on a busy machine", text)
        code, out, err = self.run_command("machine", "-t", "0.05", "--json", "-")
        self.assertEqual(code, DONE)
        self.assertIn("busy machine; measuring again", err)
        self.assertNotEqual(json.loads(out)["compute"], first["compute"])
        self.mark_kept(busy=False)
        report = json.loads(self.succeed("profile", self.digits, "-r", "20", "-w", "1", "--json", "-"))
        self.assertNotIn("busy", report["roof"])

    def test_the_table_says_how(self):
        out = self.succeed("machine", "-t", "0.05")
        for word in ("fp32", "GFLOP/s", "DRAM", "best", "trials", "load", self.cache):
            self.assertIn(word, out)
        self.assertLessEqual(max(len(line) for line in out.splitlines() if not line.startswith("saved in")), 80)
        self.assertEqual(self.succeed("machine", "-q"), "")

    def test_a_damaged_file_is_measured_again_and_said(self):
        self.measure()
        path = self.kept()[0]
        for damage in ("", "{", "{\"schema\": \"prony.machine/1\"}", "\0" * 100):
            with open(path, "w", encoding="utf-8") as file:
                file.write(damage)
            code, out, err = self.run_command("machine", "-t", "0.05", "--json", "-")
            self.assertEqual(code, DONE)
            self.assertIn("measuring again", err)
            self.assertIn(path, err)
            with open(path, encoding="utf-8") as file:
                self.assertEqual(json.load(file), json.loads(out))
        self.assertEqual(self.kept(), [path])

    def test_one_rate_of_kernels_and_one_of_the_model(self):
        """Kernels may execute other FLOPs than the model has: every output names both rates."""
        self.measure()
        path = os.path.join(self.folder, "report.json")
        out = " ".join(self.succeed("profile", self.digits, "-x", "1", "-r", "50", "--json", path).split())
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
        model = report["totals"]["flops"] / report["latency_ns"]["mean"]
        executed = report["totals"].get("executed_flops", report["totals"]["flops"]) / report["latency_ns"]["mean"]
        self.assertIn("Kernels execute %.1f GFLOP/s" % executed, out)
        shown = float(re.search(r"model FLOPs ([0-9.]+) GFLOP/s", out).group(1))
        self.assertAlmostEqual(shown, model, delta=1e-3 * model)
        self.assertEqual("(%.1f by the model's FLOPs)" % model in out, abs(model - executed) > 0.005 * model, out)
        self.assertNotIn("achieved", out)

    def test_more_threads_than_kept_are_measured(self):
        one = self.measure("-x", 1)
        self.mark_kept(busy=False)
        self.assertEqual({row["threads"] for row in one["compute"]}, {1})
        code, out, err = self.run_command("machine", "-t", "0.05", "-x", 2, "--json", "-")
        self.assertEqual(code, DONE)
        self.assertIn("1 of 2 threads", err)
        self.assertEqual(json.loads(out)["cores"], 2)

    def test_a_folder_that_cannot_be_written_fails_but_shows(self):
        blocked = os.path.join(self.folder, "file")
        with open(blocked, "w", encoding="utf-8"):
            pass
        code, out, err = self.run_command("machine", "-t", "0.05", cache=blocked)
        self.assertEqual(code, FAILED)
        self.assertIn(blocked, err)
        self.assertIn("GFLOP/s", out)

    def test_wrong_usage(self):
        for arguments in (["machine", "x"], ["machine", "-b", "1"], ["machine", "-x", "0"], ["machine", "--no-cache=1"]):
            code, out, err = self.run_command(*arguments)
            self.assertEqual((code, out), (USAGE, ""), err)

    def test_profile_has_bounds_once_the_peaks_are_known(self):
        command = ["profile", self.digits, "-r", 20, "-w", 2, "-x", 1, "--json", "-"]
        without = json.loads(self.succeed(*command))
        self.assertNotIn("roof", without)
        self.assertEqual(self.kept(), [])
        peaks = self.measure("-x", 1)
        report = json.loads(self.succeed(*command))
        self.assertEqual(report["roof"]["compute"][0]["flops_per_second"], peaks["compute"][0]["flops_per_second"])
        for row in report["operators"]:
            self.assertNotIn("bound", without["operators"][row["index"]])
            self.assertIn(row["bound"], ("compute", "memory", "overhead"))
            self.assertEqual(row["bound"] == "overhead", row["percent_of_roof"] < 10)
        out = self.succeed("profile", self.digits, "-r", 20, "-w", 2, "-x", 1, "--all")
        self.assertIn("What dominates, and why", out)
        self.assertIn("GFLOP/s, DRAM", out)

    # ---- bench

    def test_one_configuration_is_as_before(self):
        self.measure("-x", 1)
        report = json.loads(self.succeed("bench", self.digits, "-r", 30, "-w", 2, "-b", 4, "-x", "1", "-p", "fp32", "--json",
                                         "-"))
        self.assertEqual(report["schema"], "prony.report/1")
        self.assertGreater(report["latency_ns"]["median"], 0)
        self.assertEqual((report["config"]["batch"], report["config"]["intra_op_threads"]), (4, 1))
        self.assertNotIn("roof", report)

    def test_a_busy_machine_decides_nothing(self):
        path, matrix = os.path.join(self.folder, "m.json"), ["bench", self.digits, "-x", "1", "-b", "1,2", "-t", "0.5"]
        with command_case.busy_machine():
            out = self.succeed(*matrix, "--json", path)
            decided = self.succeed(*matrix, "--ignore-load")
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        self.assertEqual({report["disturbance"]["verdict"] for report in document["reports"]}, {"busy"})
        self.assertIs(document["verdict"]["undecided"], True)
        self.assertIn("the machine was busy, so the verdicts are undecided", " ".join(out.split()))
        self.assertEqual([line.endswith(", undecided") for line in out.splitlines() if line.startswith(("best", "lowest"))], [True, True])
        self.assertLessEqual(max(map(len, out.splitlines())), 80)
        self.assertNotIn("undecided", decided)

    def test_a_matrix_has_a_report_each_and_a_verdict(self):
        command = ["bench", self.digits, "-r", 40, "-w", 3, "--batch", "1,4,8", "-x", "1,2", "--precision", "fp32"]
        matrix = json.loads(self.succeed(*command, "--json", "-"))
        reports, verdict = matrix["reports"], matrix["verdict"]
        self.assertEqual({(r["config"]["batch"], r["config"]["intra_op_threads"]) for r in reports},
                         {(b, x) for b in (1, 4, 8) for x in (1, 2)})
        for report in reports:
            self.assertEqual((report["schema"], report["latency_ns"]["runs"]), ("prony.report/1", 40))
        fastest = min(r["latency_ns"]["median"] for r in reports)
        named = reports[verdict["latency"]["report"]]
        self.assertEqual((named["latency_ns"]["median"], verdict["latency"]["median_ns"]), (fastest, fastest))
        self.assertEqual(named["config"]["batch"], verdict["latency"]["batch"])
        most = max(r["throughput"]["samples_per_second"] for r in reports)
        self.assertAlmostEqual(verdict["throughput"]["samples_per_second"], most, delta=most * 1e-9)
        for key in ("throughput", "latency"):
            self.assertNotIn(verdict[key]["report"], verdict[key]["not_told_apart_from"])
        out = self.succeed(*command)
        rows = re.findall(r"^ +([148]) +([12]) +[\d.]+ [mun]s .* 40$", out, re.M)
        self.assertEqual(sorted(rows), [(b, x) for b in "148" for x in "12"])
        self.assertLessEqual(max(map(len, out.splitlines())), 80)
        self.assertIn("too few", self.succeed("bench", self.digits, "-r", 3, "-w", 1, "-b", "1,4"))
        self.assertIn("best throughput  batch ", out)
        self.assertIn("lowest latency   batch ", out)

    def test_outputs_do_not_depend_on_the_threads_of_a_matrix(self):
        matrix = json.loads(self.succeed("bench", self.digits, "-r", 10, "-w", 1, "-x", "1-3", "--json", "-"))
        self.assertEqual(len({r["output_sha256"] for r in matrix["reports"]}), 1)
        self.assertEqual([r["config"]["intra_op_threads"] for r in matrix["reports"]], [1, 2, 3])

    def test_a_matrix_goes_to_a_file_whole_or_not_at_all(self):
        path = os.path.join(self.folder, "matrix.json")
        out = self.succeed("bench", self.digits, "-r", 10, "-w", 1, "-b", "1,2", "--json", path)
        self.assertIn("best throughput", out)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(len(json.load(file)["reports"]), 2)
        code, _, err = self.run_command("bench", self.digits, "-r", 10, "-w", 1, "-b", "1,2", "--json",
                                        os.path.join(self.folder, "none", "x"))
        self.assertEqual(code, FAILED)
        self.assertIn("none", err)

    def test_thresholds_hold_for_every_configuration(self):
        command = ["bench", self.digits, "-r", 10, "-w", 1, "-b", "1,2"]
        self.succeed(*command, "--threshold", "latency:1000s")
        code, out, err = self.run_command(*command, "--threshold", "latency:1ns")
        self.assertEqual(code, VERDICT, out + err)

    def test_wrong_lists(self):
        for option, value in (("-x", "1,"), ("-x", "0,1"), ("-x", "4-2"), ("-x", "1,,2"), ("-x", "a"), ("-b", "1-"),
                              ("-b", "1,0"), ("-b", "-1"), ("-b", "1 2"), ("-b", ""), ("-y", "1,x")):
            code, out, err = self.run_command("bench", self.digits, option, value)
            self.assertEqual((code, out), (USAGE, ""), (option, value, err))
        code, _, err = self.run_command("bench", self.digits, "-x", "1-20", "-b", "1-20")
        self.assertEqual(code, USAGE)
        self.assertIn("400 configurations", err)
        code, _, err = self.run_command("profile", self.digits, "-b", "1,2")
        self.assertEqual(code, USAGE)

    def test_a_configuration_that_cannot_run_is_named(self):
        code, _, err = self.run_command("bench", self.digits, "-r", 10, "-w", 1, "-p", "fp32,int9")
        self.assertEqual(code, FAILED)
        self.assertIn("int9", err)
        self.assertIn("configuration of", err)


if __name__ == "__main__":
    PRONY, SOURCE = sys.argv[1], sys.argv[2]
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=1)
