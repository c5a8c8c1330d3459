#!/usr/bin/env python3
"""prony scale, with budgets of tenths of seconds: no test looks at how long anything took.

    test_scale.py PRONY SOURCE_DIR [unittest options]
"""
import csv
import io
import json
import os
import statistics
import resource
import shutil
import signal
import subprocess
import time
import xml.etree.ElementTree

import command_case
import onnx_bytes as ob
from command_case import DONE, FAILED, USAGE, VERDICT, CommandTest, Schema, run

QUICK = ["--processes", "3", "-r", "20", "-w", "2"]


class ScaleTest(CommandTest):
    def study(self, *arguments, codes=(DONE,)):
        path = self.path("study.json")
        code, _, err = run("scale", self.digits, *arguments, "--json", path, "-q", *([] if "--resume" in arguments else ["--overwrite"]))
        self.assertIn(code, codes, err)
        return self.load(path)

    def load(self, path):
        study = json.loads(self.read(path))
        self.assertEqual(Schema("study").problems(study), [])
        return study

    def start(self, path, *arguments):
        """The command, running, and the process id of the first child it starts."""
        environment = dict(os.environ, XDG_CACHE_HOME=self.path("cache"))
        started = subprocess.Popen([command_case.PRONY, "scale", self.digits, *map(str, arguments), "--json", path, "-q"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
        self.addCleanup(lambda: started.poll() is None and started.kill())
        return started

    def child_of(self, process):
        """A worker of this study; None once the study has ended."""
        while process.poll() is None:
            with open("/proc/%d/task/%d/children" % (process.pid, process.pid)) as file:
                children = file.read().split()
            for child in children:
                try:
                    with open("/proc/%s/cmdline" % child, "rb") as file:
                        if b"worker" in file.read().split(b"\0"):
                            return int(child)
                except OSError:
                    pass
            time.sleep(0.005)
        return None

    def wait_for_blocks(self, path, count):
        for _ in range(6000):
            if os.path.exists(path) and len(json.loads(self.read(path))["blocks"]) >= count:
                return
            time.sleep(0.01)
        self.fail("no block was written")


class Plan(ScaleTest):
    def test_the_document(self):
        study = self.study("-x", "1,2", *QUICK)
        plan = study["plan"]
        self.assertEqual([(c["intra_op_threads"], c["baseline"], c["again"]) for c in plan["configurations"]],
                         [(1, True, False), (2, False, False), (1, True, True)])
        self.assertEqual(sorted(plan["order"]), [0, 0, 0, 1, 1, 1, 2, 2, 2])
        for round_ in range(3):
            self.assertEqual(sorted(plan["order"][3 * round_:3 * round_ + 3]), [0, 1, 2])
        planned = [b for b in study["blocks"] if not b["again"]]
        self.assertEqual([b["configuration"] for b in planned], plan["order"])
        self.assertTrue(all(len(b["samples_ns"]) == 20 and len(b["operators"]) == len(plan["configurations"][0]["operators"])
                            for b in planned))
        self.assertLessEqual(len(study["blocks"]) - 9, 9 // 4)
        results = study["results"]
        self.assertEqual((results[0]["speedup"], results[0]["efficiency"]), (1, 1))
        self.assertAlmostEqual(results[1]["efficiency"], results[1]["speedup"] / 2)
        self.assertAlmostEqual(results[1]["karp_flatt"], (1 / results[1]["speedup"] - 0.5) / 0.5)
        self.assertEqual({f["reason"][:14] for law in ("amdahl", "usl") for f in study["fits"][law]}, {"too few points"})
        self.assertEqual(study["manifest"]["model"]["sha256"], json.loads(
            self.succeed("inspect", self.digits, "--json", "-"))["model"]["sha256"])
        self.assertIn(study["manifest"]["model"]["sha256"], study["statement"])
        self.assertEqual({o["configuration"] for o in study["operators"]}, {1})
        lost = [o["lost_ns"] for o in study["operators"]]
        self.assertEqual(lost, sorted(lost, reverse=True))

    def test_order_follows_the_seed(self):
        few = ["-x", "1,2,3,4", "--processes", "2", "-r", "3", "-w", "1"]
        first, again, other = (self.study(*few, "-S", seed)["plan"]["order"] for seed in ("1", "1", "2"))
        self.assertEqual(first, again)
        self.assertNotEqual(first, other)

    def test_points_beyond_the_quota_are_labelled_and_left_out_of_the_laws(self):
        study = self.study("-x", "1,2,512", "--processes", "1", "-r", "3", "-w", "1")
        self.assertEqual([c["beyond_quota"] for c in study["plan"]["configurations"]][-2:], [True, False])
        self.assertIn("!", self.succeed("scale", self.digits, "-x", "512", "--processes", "1", "-r", "3", "-w", "1"))

    def paired(self, study, base, other):
        """Ratios by rounds, of the blocks behind the results; empty if too few rounds have both."""
        sides = []
        for configuration in (base, other):
            blocks = [b for b in study["blocks"] if b["configuration"] == configuration and not b.get("failure")]
            quiet = [b for b in blocks if b["disturbed"] is None]
            sides.append(quiet if len(quiet) >= 3 else blocks)
        medians = [{b["process"]: statistics.median(b["samples_ns"]) for b in side if not b["again"]} for side in sides]
        rounds = medians[0].keys() & medians[1].keys()
        enough = len(rounds) >= 3 and 4 * len(rounds) >= 3 * min(map(len, sides))
        return [medians[0][r] / medians[1][r] for r in rounds] if enough else []

    def test_replicas_run_at_once(self):
        study = self.study("-x", "1", "--replicas", "1,2", "--processes", "3", "-t", "0.2", "-w", "2")
        configurations = study["plan"]["configurations"]
        self.assertEqual([c.get("replicas", 1) for c in configurations], [1, 2, 1])
        self.assertEqual([r["configuration"] for r in study["replicas"]], [1])
        replicated = study["replicas"][0]
        self.assertEqual((replicated["single"], replicated["replicas"]), (0, 2))
        self.assertGreaterEqual(replicated["rounds"], 3)
        self.assertAlmostEqual(replicated["efficiency"], replicated["speedup"] / 2)
        self.assertEqual((study["results"][1]["speedup"], study["results"][1]["samples_per_second"]),
                         (None, replicated["samples_per_second"]))
        blocks = study["blocks"]
        for first, second in zip(blocks, blocks[1:]):
            if first["configuration"] == 1 and "replica" not in first:
                self.assertEqual((second.get("replica"), second["process"], second["before"]), (1, first["process"], first["before"]))
                self.assertNotEqual(first["samples_ns"], second["samples_ns"])
        self.assertEqual(self.study("--resume")["blocks"], blocks)
        self.refuse(USAGE, ["--replicas", "-r"], "scale", self.digits, "--replicas", "2", "-r", "5")
        self.refuse(USAGE, ["--replicas"], "scale", self.digits, "--replicas", "0")

    def test_a_killed_replica_fails_its_round(self):
        path = self.path("study.json")
        process = self.start(path, "-x", "1", "--replicas", "3", "--processes", "2", "-t", "3", "--budget", "8s", "--overwrite")
        victim = None
        while victim is None and process.poll() is None:
            workers = self.workers_of(process)
            victim = workers[1] if len(workers) == 3 else None
            time.sleep(0.005)
        os.kill(victim, signal.SIGKILL)
        self.assertEqual(process.wait(), DONE, process.stderr.read())
        failed = [b for b in self.load(path)["blocks"] if "failure" in b]
        self.assertEqual([("signal 9" in b["failure"], b["configuration"]) for b in failed], [(True, 1)])

    def workers_of(self, process):
        with open("/proc/%d/task/%d/children" % (process.pid, process.pid)) as file:
            return [int(child) for child in file.read().split()]

    def test_weak_scaling(self):
        study = self.study("-x", "1,2", "-b", "2", "--weak", *QUICK)
        self.assertEqual([c["batch"] for c in study["plan"]["configurations"]], [2, 4, 2])
        self.assertEqual([c["samples"] for c in study["plan"]["configurations"]], [2, 4, 2])
        first, second = study["results"][:2]
        ratios = self.paired(study, 0, 1)
        self.assertAlmostEqual(second["efficiency"], statistics.median(ratios) if ratios
                               else first["median_ns"] / second["median_ns"])
        self.assertTrue(all(r["karp_flatt"] is None for r in study["results"]))

    def test_a_configuration_that_cannot_run_is_named(self):
        study = self.study("-x", "1", "-p", "fp32,fp99", *QUICK)
        refused = [c for c in study["plan"]["configurations"] if "refused" in c]
        self.assertEqual({c["precision"] for c in refused}, {"fp99"})
        self.assertTrue(all("fp99" in c["refused"] for c in refused))
        code, _, err = run("scale", self.digits, "-p", "fp99", *QUICK, "-q")
        self.assertEqual(code, FAILED, err)

    def test_budget(self):
        study = self.study("-x", "1,2", "--processes", "50", "--budget", "4s")
        planned = [b for b in study["blocks"] if not b["again"]]
        self.assertLessEqual(len(planned), 150)  # all of them, where the machine is fast enough
        self.assertGreaterEqual(len(planned), 9)
        self.assertEqual(study["plan"]["budget_seconds"], 4)

    def test_wrong_usage(self):
        for arguments in (["-x", "0"], ["-x", "100000"], ["--budget", "soon"], ["--processes", "0"], ["--svg", "pie=F"],
                          ["--resume"], ["--resume", "--repeat", "F"], ["--resume", "-x", "2", "--json", "F"]):
            self.assertEqual(run("scale", self.digits, *arguments)[0], USAGE, arguments)
        self.assertNotRegex(self.succeed("--help"), r"(?m)^  worker")

    def test_arguments_reach_the_processes(self):
        model = self.save("free.onnx", ob.graph([ob.node("Relu", ["x"], ["y"])], [ob.value("x", ob.FLOAT, ["n", 3])],
                                                [ob.value("y", ob.FLOAT, ["n", 3])]))
        path = self.path("free.json")
        self.succeed("scale", model, "--dim", "n=7", "--no-rewrites", *QUICK, "-x", "1", "--json", path, "-q")
        study = self.load(path)
        self.assertEqual(study["plan"]["arguments"], ["--dim", "n=7", "--no-rewrites"])
        self.assertEqual(study["plan"]["configurations"][0]["samples"], 7)

    def test_limits_reach_the_processes(self):
        limits = ["--memory-limit", "3GiB", "--time-limit", "3000s", "--max-loop-trips", "123456789012345678", "--copy-model"]
        path = self.path("limits.json")
        process = self.start(path, *QUICK, "-x", "1", *limits)
        words = []
        while not words and self.child_of(process):
            try:
                with open("/proc/%d/cmdline" % self.child_of(process), "rb") as file:
                    words = file.read().decode().split("\0")
            except (OSError, TypeError):
                pass
        self.assertEqual(process.wait(120), DONE, process.stderr.read())
        process.stdout.close()
        process.stderr.close()
        at = words.index("--memory-limit")
        self.assertEqual(words[at:at + len(limits)], limits)
        self.assertEqual(self.load(path)["plan"]["arguments"], [])

    def test_a_limit_that_a_process_meets_is_named(self):
        body = ob.graph([ob.node("Add", ["v", "x"], ["w"]), ob.node("Identity", ["go"], ["on"])],
                        [ob.value("i", ob.INT64, []), ob.value("go", ob.BOOL, []), ob.value("v", ob.FLOAT, [2])],
                        [ob.value("on", ob.BOOL, []), ob.value("w", ob.FLOAT, [2])])
        model = self.save("loop.onnx", ob.graph([ob.node("Loop", ["n", "", "x"], ["y"], name="outer", body=("graph", body))],
                                                [ob.value("x", ob.FLOAT, [2])], [ob.value("y", ob.FLOAT, [2])],
                                                [ob.int64s("n", [], [2 ** 40])]))
        _, out, err = run("scale", model, *QUICK, "-x", "1", "--max-loop-trips", "1000")
        self.assertIn("did not stop after 1000 trips", out + err)


class Forms(ScaleTest):
    def test_every_form(self):
        names = {name: self.path(name) for name in ("s.csv", "s.html", "speedup.svg", "operators.svg", "timeline.svg", "eff.svg")}
        study = self.study("-x", "1,2", *QUICK, "--csv", names["s.csv"], "--html", names["s.html"], "--plot", names["speedup.svg"],
                           "--svg", "operators=" + names["operators.svg"], "--svg", "timeline=" + names["timeline.svg"],
                           "--svg", "efficiency=" + names["eff.svg"])
        rows = list(csv.DictReader(io.StringIO(self.read(names["s.csv"]).decode())))
        self.assertEqual([int(r["latency_ns"]) for r in rows], [t for b in study["blocks"] for t in b["samples_ns"]])
        page = self.read(names["s.html"]).decode()
        self.assertEqual(page.count("<svg"), 4)
        data = page.split('id="data">')[1].split("</script>")[0]
        self.assertEqual(json.loads(data)["plan"], study["plan"])
        for name in names.values():
            if name.endswith(".svg"):
                xml.etree.ElementTree.fromstring(self.read(name))

    def test_text_fits_the_terminal(self):
        text = self.succeed("scale", self.digits, "-x", "1,2", *QUICK)
        self.assertLessEqual(max(map(len, text.splitlines())), 80)
        self.assertTrue(text.splitlines()[1].startswith("Data quality: "))
        self.assertIn("too few points: a fit needs", text)

    def test_json_on_stdout_is_alone(self):
        code, out, _ = run("scale", self.digits, "-x", "1", *QUICK, "--json", "-")
        self.assertEqual(code, DONE)
        self.assertEqual(json.loads(out)["schema"], "prony.study/1")


class Repeat(ScaleTest):
    def setUp(self):
        super().setUp()
        self.first = self.path("first.json")
        self.succeed("scale", self.digits, "-x", "1,2", "--processes", "6", "-r", "20", "-w", "2", "--json", self.first, "-q")

    def edited(self, name, change):
        study = json.loads(self.read(self.first))
        change(study)
        return self.write(name, json.dumps(study).encode())

    def repeat(self, earlier, codes):
        path = self.path("second.json")
        code, out, err = run("scale", self.digits, "--repeat", earlier, "--json", path)
        self.assertIn(code, codes, err)
        return self.load(path), out

    def test_same_plan_and_a_verdict_each(self):
        study, out = self.repeat(self.first, (DONE, VERDICT))
        self.assertEqual(study["plan"]["order"], json.loads(self.read(self.first))["plan"]["order"])
        self.assertEqual([row["configuration"] for row in study["comparison"]], [0, 1, 2])
        self.assertEqual(study["manifest_differences"], [])
        self.assertIn("Compared with the earlier study", out)

    def test_the_model_is_found_by_the_study(self):
        """Without MODEL: the path in the study, or the study's folder; another model of that name is refused."""
        home = self.path("home")
        os.makedirs(home)
        model, study = os.path.join(home, "m.onnx"), os.path.join(home, "s.json")
        shutil.copy(self.digits, model)
        self.succeed("scale", model, "-x", "1", "--processes", "3", "-r", "5", "-w", "1", "--json", study, "-q")
        self.assertEqual(self.load(study)["environment"]["model_path"], os.path.realpath(model))
        code, out, err = run("scale", "--repeat", study)
        self.assertIn(code, (DONE, VERDICT), err)
        self.assertIn("m.onnx: the study's model, unchanged", out)
        away = self.path("away")
        os.rename(home, away)
        code, out, err = run("scale", "--repeat", os.path.join(away, "s.json"))
        self.assertIn(code, (DONE, VERDICT), err)
        shutil.copy(self.lenet, os.path.join(away, "m.onnx"))
        self.refuse(FAILED, ["changed", "name the model"], "scale", "--repeat", os.path.join(away, "s.json"))
        os.remove(os.path.join(away, "m.onnx"))
        self.refuse(FAILED, ["missing", "name the model"], "scale", "--repeat", os.path.join(away, "s.json"))
        self.refuse(USAGE, ["MODEL is missing"], "scale")

    def test_a_replication_may_be_cheaper(self):
        path = self.path("cheap.json")
        code, out, err = run("scale", self.digits, "--repeat", self.first, "--budget", "1s", "--json", path)
        self.assertIn(code, (DONE, VERDICT), err)
        study = self.load(path)
        self.assertEqual(study["plan"]["budget_seconds"], 1)
        self.assertIn("budget in seconds (0: none): 1, was 0", study["manifest_differences"])
        self.assertIn("budget in seconds (0: none): 1, was 0", out)

    def test_the_environment_is_recorded_and_compared(self):
        path, again = self.path("env.json"), self.path("again.json")
        self.succeed("scale", self.digits, "-x", "1", "--processes", "3", "-r", "5", "--json", path, "-q",
                     environment={"OMP_NUM_THREADS": "3", "PRONY_MAX_ISA": "avx2"})
        environment = self.load(path)["environment"]
        self.assertIn("OMP_NUM_THREADS=3", environment["variables"])
        self.assertIn("PRONY_MAX_ISA=avx2", environment["variables"])
        run("scale", self.digits, "--repeat", path, "--json", again, "-q")
        self.assertTrue(any(line.startswith("environment variables: ") and "was" in line and "OMP_NUM_THREADS=3" in line
                            for line in self.load(again)["manifest_differences"]))
        old = self.edited("old.json", lambda study: study.pop("environment"))  # as older versions wrote it
        study, _ = self.repeat(old, (DONE, VERDICT))
        self.assertEqual(study["manifest_differences"], [])

    def test_a_study_is_shown_from_its_file(self):
        page, table = self.path("page.html"), self.path("table.md")
        text = self.succeed("scale", self.first, "--html", page, "--markdown", table)
        self.assertTrue(text.splitlines()[1].startswith("Data quality: "))
        self.assertEqual(self.read(page).decode().count("<svg"), 4)
        self.assertIn("### Results", self.read(table).decode())
        self.refuse(USAGE, ["is a study"], "scale", self.first, "--repeat", self.first)

    def test_another_machine_is_named_first(self):
        def move(study):
            study["manifest"]["system"].update(cpu_model="Elsewhere 9000", host_name="elsewhere")
        study, out = self.repeat(self.edited("moved.json", move), (DONE, VERDICT))
        self.assertTrue(any("Elsewhere 9000" in line for line in study["manifest_differences"]))
        self.assertLess(out.index("Elsewhere 9000"), out.index("speed-up"))

    def test_a_large_difference_is_never_called_the_same(self):
        def slow(study):
            for block in study["blocks"]:
                block["samples_ns"] = [100 * t for t in block["samples_ns"]]
        study, _ = self.repeat(self.edited("slow.json", slow), (DONE, VERDICT))
        self.assertNotIn("same", {row["verdict"] for row in study["comparison"]})
        self.assertTrue(all(row["effect"] < 0.5 for row in study["comparison"]))

    def test_damaged_files_are_refused(self):
        text = self.read(self.first)
        cut = self.write("cut.json", text[:len(text) // 2])
        self.refuse(FAILED, ["cut.json"], "scale", self.digits, "--repeat", cut)
        for name, words, change in [
                ("version.json", ["version", "prony.study/2"], lambda s: s.update(schema="prony.study/2")),
                ("report.json", ["not the schema of a study"], lambda s: s.update(schema="prony.report/1")),
                ("order.json", ["order", "77"], lambda s: s["plan"]["order"].append(77)),
                ("block.json", ["blocks[0]", "configuration"], lambda s: s["blocks"][0].update(configuration=9)),
                ("samples.json", ["samples_ns"], lambda s: s["blocks"][1].update(samples_ns=[1, -5])),
                ("threads.json", ["configuration"], lambda s: s["plan"]["configurations"][1].update(intra_op_threads=99999)),
                ("plan.json", ["plan"], lambda s: s.pop("plan")),
                ("parts.json", ["operators"], lambda s: s["blocks"][0]["operators"].pop()),
                ("model.json", ["another model"], lambda s: s["manifest"]["model"].update(sha256="0" * 64))]:
            self.refuse(FAILED, [name] + words, "scale", self.digits, "--repeat", self.edited(name, change))
        self.refuse(FAILED, ["another model"], "scale", self.lenet, "--repeat", self.first)


class Trouble(ScaleTest):
    LONG = ["-x", "1,2", "--processes", "3", "-r", "2000", "-w", "2"]

    def test_interrupted_and_resumed(self):
        for number in (signal.SIGINT, signal.SIGKILL):
            path = self.path("interrupted_%d.json" % number)
            process = self.start(path, *self.LONG)
            self.wait_for_blocks(path, 2)
            process.send_signal(number)
            _, err = process.communicate(timeout=120)
            kept = self.load(path)
            self.assertGreaterEqual(len(kept["blocks"]), 2)
            if number == signal.SIGINT:
                self.assertEqual(process.returncode, 128 + number)
                self.assertIn(b"--resume", err)
            self.refuse(FAILED, ["unfinished", "--resume"], "scale", self.digits, "-x", "1", "--json", path)
            self.assertIn(run("scale", self.digits, "--resume", "--json", path, "-q")[0], (DONE,))
            resumed = self.load(path)
            self.assertEqual(resumed["blocks"][:len(kept["blocks"])], kept["blocks"])
            self.refuse(FAILED, ["a finished study", "--resume", "--overwrite"], "scale", self.digits, "-x", "1", "--json", path)
            self.assertEqual(self.load(path), resumed)
            self.assertEqual([b["configuration"] for b in resumed["blocks"] if not b["again"]], resumed["plan"]["order"])

    def test_a_killed_child_is_recorded_and_the_study_goes_on(self):
        path = self.path("killed.json")
        process = self.start(path, *self.LONG)
        child = self.child_of(process)
        os.kill(child, signal.SIGKILL)
        self.assertEqual(process.wait(timeout=120), DONE, process.stderr.read())
        study = self.load(path)
        failures = [b["failure"] for b in study["blocks"] if "failure" in b]
        self.assertEqual(len(failures), 1)
        self.assertIn("killed by signal 9", failures[0])
        self.assertGreaterEqual(len(study["blocks"]), 9)

    def test_a_hung_child_is_ended_and_recorded(self):
        path = self.path("hung.json")
        process = self.start(path, "-x", "1", "--processes", "2", "-r", "2000", "-w", "2", "--timeout", "8")
        os.kill(self.child_of(process), signal.SIGSTOP)
        self.assertEqual(process.wait(timeout=200), DONE, process.stderr.read())
        failures = [b["failure"] for b in self.load(path)["blocks"] if "failure" in b]
        self.assertTrue(any("no answer within 8 s" in f for f in failures), failures)

    def test_a_full_disk_loses_nothing(self):
        """The file may not grow beyond the first blocks: they stay, and the study ends with a message."""
        path = self.path("full.json")
        self.succeed("scale", self.digits, "-x", "1", "--processes", "1", "-r", "3", "-w", "1", "--json", path, "-q")
        before = self.read(path)

        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        ran = subprocess.run([command_case.PRONY, "scale", self.digits, "-x", "1", *QUICK, "--json", path, "--overwrite"], preexec_fn=limit,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
        self.assertEqual(ran.returncode, FAILED)
        self.assertIn(b"the study continues in memory", ran.stderr)
        self.assertIn(b"Data quality", ran.stdout)
        self.assertEqual(self.read(path), before)
        self.assertEqual([name for name in os.listdir(self.folder) if "tmp" in name], [])


if __name__ == "__main__":
    command_case.main()
