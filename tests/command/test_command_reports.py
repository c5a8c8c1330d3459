#!/usr/bin/env python3
"""The command's output: the JSON report, files, text.

    test_command_reports.py PRONY SOURCE_DIR [unittest options]
"""
import hashlib
import json
import os
import re
import struct
import subprocess

import command_case
import onnx_bytes as ob
from command_case import DONE, FAILED, CommandTest, Schema, needs_jsonschema, run


class Reports(CommandTest):
    @classmethod
    def setUpClass(cls):
        cls.schema = Schema("report")

    def check(self, report):
        self.assertEqual(self.schema.problems(report), [])
        return report

    def test_json_of_every_command_fits_the_schema(self):
        static = self.check(self.report("inspect", self.lenet))
        self.check(self.report("run", self.branches, "-x", "1"))
        full = self.check(self.report("profile", self.digits, "-x", "1", "-r", "5", "--memory"))
        self.check(self.report("bench", self.lenet, "-x", "1", "-r", "5"))
        for report in (static, full):
            self.assertEqual(report["modules"][0]["flops"], report["totals"]["flops"])
        for key in ("latency_ns", "throughput", "coverage", "overhead", "output_sha256"):
            self.assertNotIn(key, static)
            self.assertIn(key, full)
        self.assertEqual(full["latency_ns"]["runs"], 5)
        cost = full["overhead"]["paired"]
        self.assertEqual(cost["pairs"], 5)
        self.assertTrue(cost["on_ns"] > 0 and cost["off_ns"] > 0)
        self.assertLessEqual(cost["share_ci95"][0], cost["share"])
        self.assertGreaterEqual(cost["share_ci95"][1], cost["share"])
        self.assertNotIn("overhead", self.report("bench", self.lenet, "-x", "1", "-r", "5"))
        self.assertEqual(len(full["latency_ns"]["samples"]), 5)
        self.assertTrue(full["memory"]["events"] and full["memory"]["timeline"])
        self.assertEqual(full["memory"]["allocations"], full["memory"]["releases"])
        self.assertRegex(self.succeed("profile", self.digits, "-x", "1", "-r", "3", "--all"), r"allocations released +(\d+) of \1\b")
        for event in full["memory"]["events"]:
            step = min(event["step"], len(full["operators"]) - 1)
            self.assertEqual(event["time_ns"], full["operators"][step]["trace"]["end_ns" if event["release"] else "start_ns"])

    @needs_jsonschema
    def test_the_schema_check_can_fail(self):
        report = self.report("inspect", self.lenet)
        report["totals"]["macs"] = -1
        del report["model"]["nodes"]
        report["layers"][0]["op"] = 3
        self.assertEqual(len(self.schema.problems(report)), 3)

    def test_half_precision_weights_are_packed_once(self):
        """A run converts its inputs and outputs, not the weights: its working space has no room for them."""
        x, w, y = [3, 128], [128, 256], [3, 256]
        half = struct.pack("<e", 0.5) * (128 * 256)
        matmul = ob.graph([ob.node("MatMul", ["x", "w"], ["y"], name="mm")], [ob.value("x", ob.FLOAT16, x)],
                          [ob.value("y", ob.FLOAT16, y)], [ob.tensor("w", ob.FLOAT16, w, half)])
        report = self.report("profile", self.write("half.onnx", ob.model(matmul, opset=13)), "-x", "1", "-r", "3")
        self.assertEqual(report["operators"][0]["kernel"], "matmul_half_native")
        self.assertGreaterEqual(report["memory"]["packed_weight_bytes"], 4 * 128 * 256)
        self.assertLess(report["memory"]["scratch_bytes"], 4 * 128 * 256)

    def test_memory_figures_follow_from_the_events(self):
        for model, batch in ((self.digits, 3), (self.lenet, 1)):
            report = self.report("profile", model, "-x", "1", "-r", "3", "--memory", "-b", batch)
            memory, events = report["memory"], report["memory"]["events"]
            taken = [event for event in events if not event["release"]]
            given = [event for event in events if event["release"]]
            self.assertEqual((memory["allocations"], memory["releases"]), (len(taken), len(given)))
            self.assertEqual(len(taken), len(given))
            asked, bytes_given = (sum(event[key] for event in taken) for key in ("asked_bytes", "given_bytes"))
            self.assertAlmostEqual(memory["internal_fragmentation"], 1 - asked / bytes_given)
            live, peak, top = {}, 0, 0
            for event in events:
                begin, end = event["offset_bytes"], event["offset_bytes"] + event["given_bytes"]
                if event["release"]:
                    del live[event["owner"], event["tag"], begin]
                    continue
                for other in live.values():
                    self.assertTrue(end <= other[0] or other[1] <= begin, event)
                live[event["owner"], event["tag"], begin] = (begin, end)
                peak, top = max(peak, sum(b - a for a, b in live.values())), max(top, end)
            self.assertEqual((live, peak, top), ({}, memory["lower_bound_bytes"], memory["planned_bytes"]))
            self.assertEqual(memory["peak_live_bytes"], peak)
            self.assertEqual(max(point["live_bytes"] for point in memory["timeline"]), peak)
            self.assertAlmostEqual(memory["plan_gap"], 1 - peak / top)
            self.assertAlmostEqual(memory["bytes_per_sample"], top / batch)
            constants = 2 * 8 * 8 if model == self.lenet else 0  # what its Pad nodes take
            self.assertEqual(memory["weight_bytes"], sum(weight["bytes"] for weight in report["weights"]) + constants)
            self.assertEqual(memory["scratch_bytes"], max(row["scratch_bytes"] for row in report["operators"]))
            self.assertEqual(memory["heap_calls_per_run"], 0)

    def test_accuracy_stands_in_every_form(self):
        out, page, rows = self.path("out"), self.path("a.html"), self.path("a.csv")
        text = self.succeed("profile", self.lenet, "-x", "1", "-r", "2", "--accuracy", "--output-dir", out, "--html", page, "--csv", rows)
        self.assertRegex(text, r"Accuracy\n +'.*' \(.*\) has the largest own error: .* of its range")
        self.assertRegex(text, r"operator +kernel +own +dB +ulp +accum\. +dB\n")
        self.assertRegex(text, r"output 'output' differs from the reference by at most \S+, ")
        self.assertRegex(text, r"Cost:\s+one\s+run\s+of")
        report = json.loads(self.read(os.path.join(out, "report.json")))
        self.check(report)
        self.assertIn("float64", report["accuracy"]["reference"])
        for row in report["layers"] + report["operators"]:
            error = row["error"]
            self.assertNotEqual("not_compared" in error, "own" in error and "accumulated" in error, row["name"])
            for figures in (error[kind] for kind in ("own", "accumulated") if kind in error):
                self.assertLess(figures["max_rel"], 1e-5)
                self.assertGreater(figures.get("snr_db", 200), 100)
        compared = [row for row in report["operators"] if "own" in row["error"]]
        self.assertEqual((len(compared), len(report["operators"])), (report["accuracy"]["compared"], report["accuracy"]["operators"]))
        self.assertIn(b"Error along the network", self.read(os.path.join(out, "accuracy.svg")))
        self.assertIn(b"accuracyPanel", self.read(page))
        table = self.read(rows).decode().split("\r\n")
        self.assertIn("own_max_rel", table[0])
        self.assertEqual({line.count(",") for line in table[1:] if line and '"' not in line}, {table[0].count(",")})
        sampled = self.report("profile", self.lenet, "-x", "1", "-r", "2", "--accuracy", "--accuracy-samples", "2")
        self.assertEqual(sampled["accuracy"]["sampled"], 2)
        self.assertEqual(sum("own" in row["error"] for row in sampled["operators"]), 2)
        self.assertNotIn("error", self.report("profile", self.lenet, "-x", "1", "-r", "2")["layers"][0])

    def test_outputs_against_those_of_another_runtime(self):
        out = self.path("out")
        self.succeed("run", self.lenet, "-x", "1", "-q", "--output-dir", out)
        saved = os.path.join(out, "output_0.npy")
        options = ("profile", self.lenet, "-x", "1", "-r", "2")
        row = self.check(self.report(*options, "--against", saved))["accuracy"]["outputs"][0]
        self.assertEqual((row["name"], row["against"], row["error"]["max_abs"]), ("output", saved, 0))
        self.assertIn("output 'output' equals", self.succeed(*options, "--against", "output=" + saved))
        data = bytearray(self.read(saved))
        data[-4:] = struct.pack("<f", struct.unpack("<f", data[-4:])[0] + 0.5)
        other = self.write("other.npy", bytes(data))
        self.assertAlmostEqual(self.report(*options, "--against", other)["accuracy"]["outputs"][0]["error"]["max_abs"], 0.5, 5)
        data[-4:] = struct.pack("<f", float("nan"))
        for given, message in ((self.write("nan.npy", bytes(data)), "holds NaN where output 'output' has numbers"),
                               ("logits=" + saved, "unknown output 'logits'; the model's first one is 'output'"),
                               (self.path("none.npy"), "none.npy"),
                               (self.write("bad.npy", b"nothing"), "bad.npy")):
            code, _, err = run(*options, "--against", given)
            self.assertEqual(code, FAILED)
            self.assertIn(message, err)
        code, _, err = run(*options, "-b", "2", "--against", saved)
        self.assertEqual(code, FAILED)
        self.assertIn("is float32[1, 10], output 'output' is float32[2, 10]", err)
        code, _, err = run(*options, "--accuracy-samples", "0")
        self.assertEqual(code, command_case.USAGE)

    def test_levels_agree(self):
        report = self.report("profile", self.digits, "-x", "1", "-r", "3")
        for key in ("macs", "madds", "flops", "special", "int_ops", "parameters"):
            total = report["totals"][key]
            self.assertEqual(sum(row[key] for row in report["layers"]), total, key)
            self.assertEqual(sum(row[key] for row in report["operators"]), total, key)
        self.assertEqual(report["totals"], self.totals_of(self.report("inspect", self.digits), report))

    def totals_of(self, static, full):
        """The static totals; those known only after planning come from `full`."""
        planned = ("operators", "conserved", "executed_flops")
        return {**static["totals"], **{key: full["totals"][key] for key in planned if key in full["totals"]}}

    def test_threads_of_operators(self):
        code, out, _ = run("profile", "-x", 2, "-r", 20, "--json", "-")
        self.assertEqual(code, 0)
        for operator in json.loads(out)["operators"]:
            use = operator["parallel"]
            self.assertEqual(len(use["thread_busy_ns"]), 2)
            self.assertAlmostEqual(sum(use["thread_busy_ns"]), use["busy_ns"], delta=2)
            self.assertAlmostEqual(sum(use["thread_wait_ns"]), use["wait_ns"], delta=4)
            whole = use["busy_ns"] + use["wait_ns"]  # the operator's time once for each of its threads
            self.assertAlmostEqual(use["achieved_cores"], use["busy_ns"] / (whole / operator["threads"]), delta=0.02)
            self.assertAlmostEqual(use["efficiency"] * operator["threads"], use["achieved_cores"], places=9)
            self.assertTrue(1 <= use["threads_used"] <= 2 and use["imbalance"] >= 0)
            for thread in operator["trace"].get("team", []):
                self.assertIn(thread["thread"], (0, 1))

    def test_counting_presets(self):
        native = self.report("inspect", self.lenet)
        self.assertNotIn("count", native["totals"])
        for preset, factor in (("torch", 2), ("fvcore", 1), ("deeplite", 1)):
            report = self.check(self.report("inspect", self.lenet, "--count", preset))
            self.assertEqual(report["config"]["count_preset"], preset)
            self.assertEqual(report["totals"]["count"], factor * native["totals"]["macs"])
            self.assertEqual(sum(row.get("count", 0) for row in report["layers"]), report["totals"]["count"])
            self.assertEqual(report["modules"][0]["count"], report["totals"]["count"])
            self.assertIn("Tanh", report["coverage"]["uncounted_ops"])
            self.assertNotIn("time_share", report["coverage"])
        full = self.check(self.report("profile", self.digits, "-x", "1", "-r", "5", "--count", "torch"))
        self.assertTrue(0 < full["coverage"]["uncounted_time_share"] < 1)
        self.assertIn("count by torch", self.succeed("inspect", self.lenet, "--count", "torch", "--level", "model"))
        words = self.succeed("ops", "--count", "onnx-tool")
        for part in ("onnx-tool: onnx_tool/node.py at 00f5f0a", "36n", "Softmax"):
            self.assertIn(part, words)
        preset = json.loads(self.succeed("ops", "--count", "thop", "--json", "-"))
        self.assertEqual(preset["name"], "thop")
        self.assertTrue(preset["pin"] and all(rule["operators"] and rule["formula"] for rule in preset["rules"]))

    def test_model_hash_and_output_hash(self):
        report = self.report("run", self.lenet, "-x", "1", "--output-dir", self.path("out"))
        self.assertEqual(report["model"]["sha256"], hashlib.sha256(self.read(self.lenet)).hexdigest())
        data = ob.read_npy(self.path("out/output_0.npy"))[2]
        self.assertEqual(report["output_sha256"], hashlib.sha256(data).hexdigest())

    def test_outputs_do_not_depend_on_threads(self):
        for model, batch in ((self.digits, ["-b", "5"]), (self.lenet, []), (self.branches, [])):
            hashes = {self.report("run", model, *batch, "-S", "3", "-x", x)["output_sha256"] for x in (1, 2, 3, 4)}
            self.assertEqual(len(hashes), 1, model)

    def test_json_file_beside_the_text(self):
        target = self.path("report.json")
        text = self.succeed("inspect", self.lenet, "--json", target)
        self.assertIn("parameters", text)
        self.check(json.loads(self.read(target)))
        self.assertEqual(os.listdir(self.folder), ["report.json"])
        self.assertEqual(self.succeed("inspect", self.lenet, "--json", target, "-q"), "")

    def test_a_failure_keeps_the_old_file(self):
        old = self.write("old.json", b"precious")
        broken = self.write("broken.onnx", b"\x08\x08\x12\xff")
        for arguments in (["inspect", broken], ["run", broken], ["profile", broken], ["verify", self.path("nothing")]):
            self.assertEqual(run(*arguments, "--json", old)[0], FAILED)
            if arguments[0] != "verify":
                self.assertEqual(self.read(old), b"precious")
        self.assertEqual(sorted(os.listdir(self.folder)), ["broken.onnx", "old.json"])

    def test_paths_that_cannot_be_written(self):
        nowhere = self.path("no/such/folder/x.json")
        for arguments in (["inspect", self.lenet], ["ops"], ["verify", os.path.join(command_case.SOURCE, "models")]):
            code, _, err = run(*arguments, "--json", nowhere)
            self.assertEqual(code, FAILED)
            self.assertIn("no/such/folder", err)
        self.refuse(FAILED, ["no/such/folder"], "run", self.lenet, "-q", "-x", "1", "--output-dir", nowhere)
        file = self.write("file", b"x")
        self.refuse(FAILED, ["file"], "run", self.lenet, "-q", "-x", "1", "--output-dir", file)
        self.assertEqual(self.read(file), b"x")
        self.succeed("inspect", self.lenet, "-q", "--json", "/dev/null")
        self.succeed("ops", "-q", "--json", "/dev/null")
        self.assertFalse(os.path.isfile("/dev/null"))
        if os.path.exists("/dev/full"):
            for arguments in (["inspect", self.lenet], ["ops"]):
                code, _, err = run(*arguments, "-q", "--json", "/dev/full")
                self.assertEqual(code, FAILED, arguments)
                self.assertIn("No space", err)

    def test_stdout_that_cannot_be_written(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        for arguments in (["inspect", self.lenet], ["ops"], ["inspect", self.lenet, "--json", "-"], ["--help"]):
            with open("/dev/full", "w") as full:
                ran = subprocess.run([command_case.PRONY, *arguments], stdout=full, stderr=subprocess.PIPE, timeout=60)
            self.assertEqual(ran.returncode, FAILED, arguments)
            self.assertTrue(ran.stderr, arguments)

    def test_closed_streams(self):
        """A file that is opened must not take the number of a stream that the caller closed."""
        for closed in ((1,), (0, 1), (0, 1, 2)):
            target = self.path("closed.json")
            arguments = [command_case.PRONY, "profile", self.digits, "-x", "1", "-r", "3", "--json", target]
            for more, status in ((["-q"], DONE), ([], FAILED)):
                ran = subprocess.run(arguments + more, timeout=60, stderr=subprocess.DEVNULL,
                                     preexec_fn=lambda: [os.close(fd) for fd in closed])
                self.assertEqual(ran.returncode, status, closed)
            self.assertEqual(json.loads(self.read(target))["schema"], "prony.report/1")
            os.unlink(target)
        ran = subprocess.run([command_case.PRONY, "run", self.lenet], stdout=subprocess.PIPE, timeout=60,
                             preexec_fn=lambda: [os.close(fd) for fd in (0, 2)])
        self.assertEqual((ran.returncode, ran.stdout[:1] != b""), (DONE, True))

    def test_profile_without_a_model_shows_the_accuracy(self):
        text = self.succeed("profile", "-x", "1", "-r", "3")
        accuracy = float(re.search(r"accuracy ([\d.]+) %", text).group(1))
        self.assertGreaterEqual(accuracy, 97.0)
        self.assertLess(text.index("accuracy"), text.index("Latency"))
        evaluation = self.report("profile", "-x", "1", "-r", "3", "-b", "7")["evaluation"]
        self.assertEqual(evaluation["samples"], 360)
        self.assertAlmostEqual(evaluation["value"] * 100, accuracy, places=1)
        self.refuse(FAILED, ["360", "361"], "profile", "-b", "361")

    def test_ops_lists_the_table(self):
        operators = json.loads(self.succeed("ops", "--json", "-"))
        text = self.succeed("ops")
        names = {op["name"] for op in operators if op["domain"] == ""}
        self.assertTrue({"Conv", "Gemm", "If", "Softmax", "LayerNormalization"} <= names)
        for op in operators:
            self.assertTrue(op["cost"], op["name"])
            self.assertEqual(bool(op["kernels"]), op["name"] != "Gradient", op["name"])  # other operators replace it
            self.assertIn(op["name"], text)
        only = json.loads(self.succeed("ops", "--json", "-", "--filter", "name=Re*"))
        self.assertEqual([op["name"] for op in only], [op["name"] for op in operators if op["name"].startswith("Re")])


class Text(CommandTest):
    def lines(self, *arguments, **options):
        return self.succeed(*arguments, **options).splitlines()

    def table(self, title, lines):
        """Rows of the table under `title`, up to the empty line."""
        at = next(i for i, line in enumerate(lines) if line.startswith(title))
        rows = []
        for line in lines[at + 2:]:
            if not line.strip() or line.strip().startswith("total"):
                break
            rows.append(line.split())
        return rows

    def test_eighty_columns_and_no_escapes_without_a_terminal(self):
        for arguments in (["inspect", self.lenet], ["profile", "-x", "1", "-r", "3"], ["profile", self.branches, "-x", "1", "-r", "3"],
                          ["bench", self.lenet, "-x", "1", "-r", "3"], ["profile", self.digits, "-x", "1", "-r", "3", "--memory"],
                          ["run", self.lenet], ["ops"], ["ops", "--count", "deepspeed"], ["--help"],
                          ["recommend", self.digits, "-r", "3"]):
            text = self.succeed(*arguments, environment={"COLUMNS": "80"})
            self.assertNotIn("\x1b", text)
            self.assertNotIn("\r", text)
            self.assertLessEqual(max(map(len, text.splitlines())), 80, arguments)

    def deep(self):
        """Nested names, as torch.onnx writes those of a ResNet, that 80 columns do not hold."""
        names = ["/encoder/encoder.layer%d/encoder.layer%d.%d/residual_branch/convolution/Relu" % (a, a, b)
                 for a in range(3) for b in range(12)]
        nodes = [ob.node("Relu", ["t%d" % i], ["t%d" % (i + 1)], name=name) for i, name in enumerate(names)]
        return names, self.save("deep.onnx", ob.graph(nodes, [ob.value("t0", ob.FLOAT, [4])],
                                                      [ob.value("t%d" % len(names), ob.FLOAT, [4])]))

    def test_different_names_are_shown_differently(self):
        names, model = self.deep()
        for columns in ("40", "60", "80", "120"):
            lines = self.lines("inspect", model, "--level", "layer", "--all", environment={"COLUMNS": columns})
            self.assertLessEqual(max(map(len, lines)), int(columns))
            rows = [line.split() for line in lines if line.split() and line.split()[0].isdigit()]
            self.assertEqual(len(rows), len(names))
            self.assertEqual(len({row[1] for row in rows}), len(names), (columns, rows))

    def test_text_in_a_file_has_whole_names(self):
        names, model = self.deep()
        text = self.succeed("inspect", model, "--level", "layer", "--all")
        for name in names:
            self.assertIn(" %s " % name, text)

    def test_letters_of_other_languages(self):
        for name in ("gr\u00fc\u00df e.onnx", "\u043c\u043e\u0434\u0435\u043b\u044c.onnx", "\u5c64.onnx"):
            with open(self.path(name), "wb") as file:
                file.write(self.read(self.lenet))
            self.assertEqual(self.lines("inspect", self.path(name))[0], self.path(name) + "  assumed: batch=1")
            self.succeed("profile", self.path(name), "-r", "2", "-q", "--output-dir", self.path("out " + name))
            self.assertEqual(self.report("inspect", self.path(name))["model"]["name"], self.path(name))

    def test_levels(self):
        titles = {"model": "Model", "layer": "Layers", "operator": "Operators"}
        for wanted in (["model"], ["layer"], ["operator"], ["layer", "operator"]):
            lines = self.lines("profile", self.digits, "-x", "1", "-r", "3", "--level", ",".join(wanted))
            shown = [level for level, title in titles.items() if any(line.startswith(title) for line in lines)]
            self.assertEqual(shown, wanted)

    def test_modules(self):
        rows = self.table("Modules", self.lines("inspect", self.lenet, "--level", "module"))
        self.assertEqual(rows[0][0], "__root__")
        self.assertEqual(len(rows), 1 + 12)  # lenet5 is an nn.Sequential of twelve
        only = self.table("Modules", self.lines("profile", self.digits, "-x", "1", "-r", "3", "--level", "module", "--depth", "1"))
        self.assertEqual(only[0][0], "__root__")

    def test_top_sort_and_filter(self):
        rows = self.table("Layers", self.lines("inspect", self.lenet, "--level", "layer"))
        self.assertEqual(len(rows), 16)
        top = self.table("Layers", self.lines("inspect", self.lenet, "--level", "layer", "--sort", "parameters", "--top", "2"))
        self.assertEqual([row[1] for row in top][:2], ["/7/Gemm", "/9/Gemm"])
        self.assertFalse(any(row[0].isdigit() for row in top[2:]), top)
        some = self.table("Layers", self.lines("inspect", self.lenet, "--level", "layer", "--filter", "op=Conv"))
        self.assertEqual([row[1] for row in some if row[0].isdigit()], ["/3/Conv", "/0/Conv"])  # by FLOPs
        some = self.table("Layers", self.lines("inspect", self.lenet, "--level", "layer", "--filter", "op=Conv", "--all"))
        self.assertEqual([row[1] for row in some if row[0].isdigit()], ["/0/Conv", "/3/Conv"])
        both = self.lines("profile", self.digits, "-r", "3"), self.lines("profile", self.digits, "-r", "3", "--all")
        self.assertEqual([any(line.startswith(title) for line in lines) for lines in both for title in ("Layers", "Operators")],
                         [True, False, True, True])

    def test_width_follows_columns(self):
        wide = self.lines("inspect", self.lenet, environment={"COLUMNS": "120"})
        self.assertLessEqual(max(map(len, wide)), 120)
        for columns in ("0", "-5", "1", "nonsense", "99999999999"):
            self.assertLessEqual(max(map(len, self.lines("inspect", self.lenet, environment={"COLUMNS": columns}))), 160)

    def test_colour_on_a_terminal_only(self):
        for arguments, environment, coloured in (([], {}, True), (["--no-color"], {}, False), ([], {"NO_COLOR": "1"}, False),
                                                 ([], {"TERM": "dumb"}, False)):
            env = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS")}
            env.update({"TERM": "xterm", **environment})
            leader, follower = command_case.open_pty()
            process = subprocess.Popen([command_case.PRONY, "inspect", self.lenet, *arguments], stdout=follower, env=env)
            os.close(follower)
            data = b""
            while True:
                try:
                    piece = os.read(leader, 65536)
                except OSError:
                    break
                if not piece:
                    break
                data += piece
            os.close(leader)
            self.assertEqual(process.wait(60), 0)
            self.assertEqual(b"\x1b[" in data, coloured, arguments)

    def test_progress_on_a_terminal_only(self):
        arguments = ["profile", self.lenet, "-x", "1", "-t", "0.6", "-r", "100000000"]
        for more, shown in (([], True), (["--no-progress"], False), (["-q"], False)):
            leader, follower = command_case.open_pty()
            ran = subprocess.run([command_case.PRONY, *arguments, *more], stdout=subprocess.PIPE, stderr=follower, timeout=60)
            os.close(follower)
            said = b""
            try:
                said = os.read(leader, 65536)
            except OSError:
                pass
            os.close(leader)
            self.assertEqual(ran.returncode, DONE)
            self.assertEqual(b" of 100000000 runs, " in said, shown, more)
            self.assertNotIn(b"\x1b", said)
            self.assertNotIn(b" of 100000000 runs, ", ran.stdout)
        self.assertIn("stopped: time is up", self.succeed(*arguments))

    def test_names_control_no_terminal_and_no_page(self):
        """Names come from files: characters that control a terminal, end a line or reverse text are shown as '?'."""
        nasty = "\x1b]0;x\x07\x1b[31m\u009b31m\u202e\u2028\nx\u2066"
        path = self.path("plain.json")
        self.succeed("profile", self.lenet, "-x", "1", "-r", "3", "-q", "--accuracy", "--json", path)
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
        for row in report["layers"] + report["operators"]:
            row["name"] = nasty + row["name"]
        report["model"]["name"] = nasty
        bad = self.write("nasty.json", json.dumps(report).encode())
        outputs = [self.lines("compare", bad, bad), self.lines("recommend", bad), self.lines("metrics", bad, "--detailed"),
                   self.lines("check", bad, "--threshold", "latency:1h")]
        for lines in outputs:
            for line in lines:
                self.assertNotRegex(line, "[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")

    def test_quiet(self):
        for arguments in (["inspect", self.lenet], ["run", self.lenet, "-x", "1"], ["profile", "-x", "1", "-r", "2"],
                          ["bench", self.lenet, "-x", "1", "-r", "2"]):
            self.assertEqual(self.succeed(*arguments, "-q"), "")


if __name__ == "__main__":
    command_case.main()
