#!/usr/bin/env python3
"""The command as its users meet it: exit status, messages, what goes to which stream, files, the JSON report.

    test_command.py PRONY SOURCE_DIR [unittest options]
"""
import hashlib
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import unittest

import onnx_bytes as ob

PRONY, SOURCE = "", ""
DONE, FAILED, USAGE, VERDICT = 0, 1, 2, 3


def run(*arguments, environment=None):
    """Exit status, stdout and stderr; neither stream is a terminal. A crash fails the test at once."""
    env = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR", "TERM")}
    env.update(environment or {})
    for sanitizer in ("ASAN_OPTIONS", "UBSAN_OPTIONS"):  # whose findings must not pass for a status of the command's own
        env[sanitizer] = env.get(sanitizer, "") + ":exitcode=99"
    ran = subprocess.run([PRONY, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, timeout=300,
                         stdin=subprocess.DEVNULL)
    if ran.returncode not in (DONE, FAILED, USAGE, VERDICT):
        raise AssertionError("%s ended with %d: %s" % (arguments, ran.returncode, ran.stderr.decode(errors="replace")[-3000:]))
    return ran.returncode, ran.stdout.decode(), ran.stderr.decode()


class Schema:
    """As much of JSON Schema as docs/report.schema.json uses."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.root = json.load(file)

    def types(self, value):
        if value is None:
            return {"null"}
        if isinstance(value, bool):
            return {"boolean"}
        if isinstance(value, int):
            return {"integer", "number"}
        return {{float: "number", str: "string", list: "array", dict: "object"}[type(value)]}

    def problems(self, value, rule=None, path="report"):
        rule = self.root if rule is None else rule
        if "$ref" in rule:
            target = self.root
            for part in rule["$ref"].lstrip("#/").split("/"):
                target = target[part]
            yield from self.problems(value, target, path)
        allowed = rule.get("type", [])
        allowed = [allowed] if isinstance(allowed, str) else allowed
        if allowed and not self.types(value) & set(allowed):
            yield "%s is %s, not %s" % (path, self.types(value), allowed)
            return
        if "const" in rule and value != rule["const"] or "enum" in rule and value not in rule["enum"]:
            yield "%s cannot be %r" % (path, value)
        if "pattern" in rule and isinstance(value, str) and not re.search(rule["pattern"], value):
            yield "%s: %r does not match %s" % (path, value, rule["pattern"])
        if isinstance(value, (int, float)) and not rule.get("minimum", value) <= value <= rule.get("maximum", value):
            yield "%s: %r is out of range" % (path, value)
        if "oneOf" in rule and sum(not list(self.problems(value, r, path)) for r in rule["oneOf"]) != 1:
            yield "%s fits none or several of its forms" % path
        if isinstance(value, list):
            if not rule.get("minItems", 0) <= len(value) <= rule.get("maxItems", len(value)):
                yield "%s has %d items" % (path, len(value))
            for i, item in enumerate(value):
                yield from self.problems(item, rule.get("items", {}), "%s[%d]" % (path, i))
        if isinstance(value, dict):
            known = rule.get("properties", {})
            yield from ("%s.%s is missing" % (path, key) for key in rule.get("required", []) if key not in value)
            for key, item in value.items():
                yield from self.problems(item, known.get(key, rule.get("additionalProperties", {})), "%s.%s" % (path, key))
                if known and key not in known:
                    yield "%s.%s is not in the schema" % (path, key)


class CommandTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.digits = os.path.join(SOURCE, "models", "digits.onnx")
        self.lenet = os.path.join(SOURCE, "tests", "data", "lenet5.onnx")
        self.branches = os.path.join(SOURCE, "tests", "data", "if_two_branch.onnx")

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data)
        return self.path(name)

    def read(self, path):
        with open(path, "rb") as file:
            return file.read()

    def save(self, name, graph, **options):
        return self.write(name, ob.model(graph, **options))

    def succeed(self, *arguments, **options):
        code, out, err = run(*arguments, **options)
        self.assertEqual((code, err), (DONE, ""), "%s: %s%s" % (arguments, out, err))
        return out

    def refuse(self, code, words, *arguments):
        """The command ends with `code`, and stderr has all of `words`; nothing goes to stdout."""
        got, out, err = run(*arguments)
        self.assertEqual((got, out), (code, ""), "%s: %s%s" % (arguments, out, err))
        for word in words:
            self.assertIn(word, err)
        self.assertTrue(err.startswith("prony"), err)
        return err

    def report(self, *arguments):
        return json.loads(self.succeed(*arguments, "--json", "-"))


class Usage(CommandTest):
    def test_help_and_version(self):
        header = self.read(os.path.join(SOURCE, "include", "prony.h")).decode()
        version = re.search(r'PRONY_VERSION "([\d.]+)"', header).group(1)
        self.assertEqual(self.succeed("--version"), "prony %s\n" % version)
        commands = ("inspect", "run", "profile", "bench", "verify", "ops", "compare", "check", "recommend")
        text = self.succeed("--help")
        for name in commands:
            self.assertRegex(text, r"\n  %s " % name)
            own = self.succeed(name, "--help")
            self.assertIn("prony %s" % name, own)
            self.assertLessEqual(max(map(len, own.splitlines())), 80)
        self.assertLessEqual(max(map(len, text.splitlines())), 80)

    def test_help_of_a_command_shows_what_it_takes(self):
        for name, argument in (("inspect", [self.lenet]), ("ops", []), ("verify", [self.folder])):
            text = self.succeed(name, "--help")
            for option, value in (("--top", "3"), ("--seed", "1"), ("--output-dir", self.folder), ("--runs", "1")):
                code = run(name, *argument, option, value)[0]
                self.assertEqual(code == USAGE, option not in text, "%s %s" % (name, option))

    def test_wrong_usage(self):
        for words, arguments in (
                (["no command", "frobnicate"], ["frobnicate"]),
                (["scale", "not built"], ["scale", self.lenet]),
                (["MODEL is missing"], ["inspect"]),
                (["'b' is one argument too many"], ["inspect", "a", "b"]),
                (["no option '--nonsense'"], ["run", "m", "--nonsense"]),
                (["no option '-z'"], ["run", "m", "-qz"]),
                (["'--quiet=3'", "takes no value"], ["run", "m", "--quiet=3"]),
                (["--json needs a value"], ["run", "m", "--json"]),
                (["-x needs a value"], ["run", "m", "-x"]),
                (["--scenario", "not built"], ["profile", "m", "--scenario", "f"]),
                (["latency", "no unit"], ["bench", "m", "--threshold", "p50:3"]),
                (["'inspect' has no use for --runs"], ["inspect", "m", "--top", "3", "--runs", "4"]),
                (["'inspect' has no use for -r"], ["inspect", "m", "-r", "4"]),
                (["'ops' has no use for --top"], ["ops", "--top", "3"]),
                (["-x '1,2'"], ["profile", "m", "-x", "1,2"]),
                (["-x '0'"], ["run", "m", "-x", "0"]),
                (["-b '0'"], ["run", "m", "-b", "0"]),
                (["-t 'nan'"], ["profile", "m", "-t", "nan"]),
                (["--level"], ["profile", "m", "--level", "floor"]),
                (["'N' is not NAME=VALUE"], ["run", "m", "--dim", "N"]),
                (["'N'", "'many'"], ["run", "m", "--dim", "N=many"]),
                (["'x'", "1x3x224x224"], ["run", "m", "--shape", "x=1x"]),
                (["-i"], ["profile", "-i", "image=x.npy"]),
                (["--count 'ptflops'", "fvcore"], ["inspect", "m", "--count", "ptflops"]),
                (["--depth '0'"], ["inspect", "m", "--depth", "0"]),
                (["--filter"], ["ops", "--filter", "kernel=x"])):
            self.refuse(USAGE, words, *arguments)
        self.assertEqual(run()[0], USAGE)

    def test_what_is_not_built_is_refused_by_name(self):
        self.refuse(FAILED, ["'bf16'", "fp32"], "run", self.lenet, "-p", "bf16")
        self.refuse(FAILED, ["2 inter-op threads"], "run", self.lenet, "-y", "2")
        self.succeed("run", self.lenet, "-p", "fp32", "-y", "1", "-x", "1")

    def test_unknown_keys_of_tables(self):
        for option, value in (("--sort", "colour"), ("--sort", "macs,time"), ("--filter", "shape=x"), ("--filter", "Conv"),
                              ("--filter", "name")):
            self.refuse(USAGE, [option, value, "name"], "inspect", self.lenet, option, value)


class Shapes(CommandTest):
    def two_inputs(self):
        return self.save("two.onnx", ob.graph(
            [ob.node("Add", ["a", "b"], ["y"])], [ob.value("a", ob.FLOAT, ["N", 3]), ob.value("b", ob.FLOAT, ["N", 3])],
            [ob.value("y", ob.FLOAT, ["N", 3])]))

    def shape(self, *arguments):
        return [port["shape"] for port in self.report("run", *arguments, "-x", "1")["model"]["outputs"]][0]

    def test_batch_of_a_free_dimension(self):
        self.assertEqual(self.shape(self.lenet, "-b", "3"), [3, 10])
        self.assertEqual(self.shape(self.two_inputs(), "--batch", "4"), [4, 3])

    def test_batch_of_a_fixed_dimension(self):
        fixed = self.save("fixed.onnx", ob.graph([ob.node("Relu", ["x"], ["y"])], [ob.value("x", ob.FLOAT, [2, 3])],
                                                 [ob.value("y", ob.FLOAT, [2, 3])]))
        for command in ("run", "inspect", "profile", "bench"):
            self.refuse(FAILED, ["'x'", "2", "4"], command, fixed, "-b", "4")
        self.assertEqual(self.shape(fixed, "-b", "2"), [2, 3])

    def test_named_dimensions(self):
        two = self.two_inputs()
        self.assertEqual(self.shape(two, "--dim", "N=5"), [5, 3])
        self.refuse(FAILED, ["'M'"], "run", two, "--dim", "M=5")
        self.refuse(FAILED, ["'N'", "5", "6"], "run", two, "--dim", "N=5", "-b", "6")
        self.refuse(FAILED, ["'N'", "5", "6"], "run", two, "--dim", "N=5", "--dim", "N=6")

    def test_whole_shapes(self):
        two = self.two_inputs()
        # What is said of the second input holds for the first one.
        self.assertEqual(self.shape(two, "--shape", "b=7x3"), [7, 3])
        self.refuse(FAILED, ["'N'", "7", "8"], "run", two, "--shape", "b=7x3", "--shape", "a=8x3")
        self.refuse(FAILED, ["'b'", "[?, 3]", "[7, 4]"], "run", two, "--shape", "b=7x4")
        self.refuse(FAILED, ["'b'", "[7, 3, 1]"], "inspect", two, "--shape", "b=7x3x1")
        self.refuse(FAILED, ["'c'", "'a', 'b'"], "run", two, "--shape", "c=7x3")

    def test_empty_batch(self):
        self.assertEqual(self.shape(self.two_inputs(), "--dim", "N=0"), [0, 3])
        self.assertEqual(self.shape(self.lenet, "--dim", "batch=0"), [0, 10])

    def test_undeclared_shape(self):
        free = self.save("free.onnx", ob.graph([ob.node("Relu", ["x"], ["y"])], [ob.value("x", ob.FLOAT, None)],
                                               [ob.value("y", ob.FLOAT, None)]))
        self.refuse(FAILED, ["'x'", "--shape"], "run", free)
        self.assertEqual(self.shape(free, "--shape", "x=2x5"), [2, 5])
        self.succeed("inspect", free)


class Inputs(CommandTest):
    VALUES = (0.5, -1.0, 2.0, -3.5, 0.0, 8.0)

    def setUp(self):
        super().setUp()
        self.model = self.save("scale.onnx", ob.graph(
            [ob.node("Mul", ["x", "two"], ["twice"]), ob.node("Cast", ["twice"], ["whole"], to=ob.INT64)],
            [ob.value("x", ob.FLOAT, ["N", 3])], [ob.value("whole", ob.INT64, ["N", 3]), ob.value("twice", ob.FLOAT, ["N", 3])],
            [ob.floats("two", [], [2.0])]))
        self.data = struct.pack("<6f", *self.VALUES)

    def outputs(self, *arguments):
        self.succeed("run", self.model, "-x", "1", "-q", "--output-dir", self.path("out"), *arguments)
        return [ob.read_npy(self.path("out/output_%d.npy" % k)) for k in range(2)]

    def expect_values(self, *arguments):
        whole, twice = self.outputs(*arguments)
        self.assertEqual(twice, ("<f4", (2, 3), struct.pack("<6f", *(2 * v for v in self.VALUES))))
        self.assertEqual(whole, ("<i8", (2, 3), struct.pack("<6q", *(int(2 * v) for v in self.VALUES))))
        self.assertEqual(sorted(os.listdir(self.path("out"))), ["output_0.npy", "output_1.npy"])

    def test_npy_pb_and_raw(self):
        self.expect_values("-i", "x=" + self.write("x.npy", ob.npy("<f4", (2, 3), self.data)))
        self.expect_values("-i", "x=" + self.write("x.pb", ob.tensor("any", ob.FLOAT, [2, 3], self.data)))
        self.expect_values("-b", "2", "-i", "x=" + self.write("x.bin", self.data))
        self.expect_values("--shape", "x=2x3", "-i", "x=" + self.path("x.bin"))
        self.expect_values("--dim", "N=2", "-i", "x=" + self.path("x.bin"))

    def test_generated_inputs_follow_the_seed(self):
        first, again, other = (self.outputs("-b", "2", *seed) for seed in ([], ["-S", "0"], ["-S", "1"]))
        self.assertEqual(first, again)
        self.assertNotEqual(first, other)
        values = struct.unpack("<6f", first[1][2])
        self.assertTrue(all(-1 <= v < 1 for v in values) and len(set(values)) > 3, values)

    def test_refusals_name_both_sides(self):
        def wrong(words, data, name="x", file="bad.npy", *more):
            self.refuse(FAILED, words, "run", self.model, "-i", "%s=%s" % (name, self.write(file, data)), *more)

        wrong(["'x'", "float32[?, 3]", "float64[2, 3]"], ob.npy("<f8", (2, 3), struct.pack("<6d", *self.VALUES)))
        wrong(["'x'", "float32[?, 3]", "float32[3, 2]"], ob.npy("<f4", (3, 2), self.data))
        wrong(["'x'", "float32[?, 3]", "float32[6]"], ob.npy("<f4", (6,), self.data))
        wrong(["'z'", "'x'"], ob.npy("<f4", (2, 3), self.data), "z")
        wrong(["bad.bin", "24", "36"], self.data, "x", "bad.bin", "-b", "3")
        wrong(["'x'", "2", "5"], ob.npy("<f4", (2, 3), self.data), "x", "bad.npy", "-b", "5")
        wrong(["'x'", "--shape"], ob.npy("<f4", (2, 3), self.data), "x", "bad.npy", "--shape", "x=1x3")
        wrong(["'x'", "'N'", "2", "5"], ob.npy("<f4", (2, 3), self.data), "x", "bad.npy", "--dim", "N=5")
        wrong(["bad.npy"], b"\x93NUMPY\x01\x00\xff\xff")
        wrong(["bad.pb"], b"\xff\xff\xff", "x", "bad.pb")
        self.refuse(FAILED, ["gone.npy", "No such file"], "run", self.model, "-i", "x=" + self.path("gone.npy"))
        good = "x=" + self.write("x.npy", ob.npy("<f4", (2, 3), self.data))
        self.refuse(FAILED, ["'x'", "twice"], "run", self.model, "-i", good, "-i", good)


class Reports(CommandTest):
    @classmethod
    def setUpClass(cls):
        cls.schema = Schema(os.path.join(SOURCE, "docs", "report.schema.json"))

    def check(self, report):
        self.assertEqual(list(self.schema.problems(report)), [])
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
        self.assertEqual(len(full["latency_ns"]["samples"]), 5)
        self.assertTrue(full["memory"]["events"] and full["memory"]["timeline"])

    def test_the_schema_check_can_fail(self):
        report = self.report("inspect", self.lenet)
        report["totals"]["macs"] = -1
        del report["model"]["nodes"]
        report["layers"][0]["op"] = 3
        self.assertEqual(len(list(self.schema.problems(report))), 3)

    def test_levels_agree(self):
        report = self.report("profile", self.digits, "-x", "1", "-r", "3")
        for key in ("macs", "madds", "flops", "special", "int_ops", "parameters"):
            total = report["totals"][key]
            self.assertEqual(sum(row[key] for row in report["layers"]), total, key)
            self.assertEqual(sum(row[key] for row in report["operators"]), total, key)
        self.assertEqual(report["totals"], self.totals_of(self.report("inspect", self.digits), report))

    def totals_of(self, static, full):
        """The static totals; what is known only after planning is taken from `full`."""
        return {**static["totals"], "operators": full["totals"]["operators"], "conserved": full["totals"]["conserved"]}

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
        for arguments in (["inspect", self.lenet], ["ops"], ["verify", os.path.join(SOURCE, "models")]):
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
                ran = subprocess.run([PRONY, *arguments], stdout=full, stderr=subprocess.PIPE, timeout=60)
            self.assertEqual(ran.returncode, FAILED, arguments)
            self.assertTrue(ran.stderr, arguments)

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
            self.assertTrue(op["cost"] and op["kernels"], op["name"])
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
                          ["bench", self.lenet, "-x", "1", "-r", "3"], ["profile", self.digits, "-x", "1", "-r", "3", "--memory"]):
            text = self.succeed(*arguments)
            self.assertNotIn("\x1b", text)
            self.assertNotIn("\r", text)
            self.assertLessEqual(max(map(len, text.splitlines())), 80, arguments)

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
        self.assertEqual([row[1] for row in some if row[0].isdigit()], ["/0/Conv", "/3/Conv"])

    def test_width_follows_columns(self):
        wide = self.lines("inspect", self.lenet, environment={"COLUMNS": "120"})
        self.assertLessEqual(max(map(len, wide)), 120)
        for columns in ("0", "-5", "1", "nonsense", "99999999999"):
            self.assertLessEqual(max(map(len, self.lines("inspect", self.lenet, environment={"COLUMNS": columns}))), 160)

    def test_colour_on_a_terminal_only(self):
        import pty
        for arguments, environment, coloured in (([], {}, True), (["--no-color"], {}, False), ([], {"NO_COLOR": "1"}, False),
                                                 ([], {"TERM": "dumb"}, False)):
            env = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS")}
            env.update({"TERM": "xterm", **environment})
            leader, follower = pty.openpty()
            process = subprocess.Popen([PRONY, "inspect", self.lenet, *arguments], stdout=follower, env=env)
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

    def test_quiet(self):
        for arguments in (["inspect", self.lenet], ["run", self.lenet, "-x", "1"], ["profile", "-x", "1", "-r", "2"],
                          ["bench", self.lenet, "-x", "1", "-r", "2"]):
            self.assertEqual(self.succeed(*arguments, "-q"), "")


class Models(CommandTest):
    def test_unsupported_operators_are_named_and_the_rest_is_shown(self):
        model = self.save("future.onnx", ob.graph(
            [ob.node("Conv", ["x", "w"], ["c"]), ob.node("Blur", ["c"], ["b"], domain="com.example"),
             ob.node("Frobnicate", ["b"], ["f"]), ob.node("Blur", ["f"], ["y"], domain="com.example")],
            [ob.value("x", ob.FLOAT, ["N", 1, 4, 4])], [ob.value("y", ob.FLOAT, None)],
            [ob.floats("w", [2, 1, 1, 1], [1.0, 2.0])]), domains=[("com.example", 3)])
        text = self.succeed("inspect", model)
        report = self.report("inspect", model)
        self.assertEqual([row["op"] for row in report["layers"]], ["Conv", "Blur", "Frobnicate", "Blur"])
        self.assertEqual(report["totals"]["macs"], 32)
        self.assertIn("Conv", text)
        self.assertEqual(len(report["unsupported_operators"]), 2)
        for command in ("run", "profile", "bench"):
            self.refuse(FAILED, ["com.example::Blur-3 (2 nodes)", "ai.onnx::Frobnicate-13 (1 node)"], command, model)
        for name in ("com.example::Blur-3", "ai.onnx::Frobnicate-13"):
            self.assertIn(name, text)
            self.assertTrue(any(name in entry for entry in report["unsupported_operators"]))

    def test_damaged_files(self):
        whole = self.read(self.lenet)
        huge = ob.integer(1, 8) + b"\x3a" + ob.varint(1 << 62) + b"\x00" * 64
        dims = ob.graph([ob.node("Relu", ["w"], ["y"])], [], [ob.value("y", ob.FLOAT, [1])],
                        [ob.tensor("w", ob.FLOAT, [1 << 40, 1 << 40], b"")])
        short = ob.graph([ob.node("Relu", ["w"], ["y"])], [], [ob.value("y", ob.FLOAT, [1])],
                         [ob.tensor("w", ob.FLOAT, [1 << 30], b"\0\0\0\0")])
        loop = ob.graph([ob.node("Relu", ["b"], ["a"]), ob.node("Relu", ["a"], ["b"])], [], [ob.value("b", ob.FLOAT, [1])])
        for name, data in (("empty", b""), ("zeros", bytes(1000)), ("text", b"not a model at all\n" * 50),
                           ("half", whole[:len(whole) // 2]), ("start", whole[:20]), ("end", whole[:-1]), ("huge", huge),
                           ("dims", ob.model(dims)), ("short", ob.model(short)), ("loop", ob.model(loop)),
                           ("nothing", ob.model(ob.graph([ob.node("Relu", ["x"], ["y"])], [], [ob.value("y", ob.FLOAT, [1])])))):
            path = self.write(name + ".onnx", data)
            for command in ("inspect", "run", "profile"):
                err = self.refuse(FAILED, [name + ".onnx"], command, path)
                self.assertLess(len(err), 1200)
        self.refuse(FAILED, [self.folder], "inspect", self.folder)
        self.refuse(FAILED, ["gone.onnx", "No such file"], "inspect", self.path("gone.onnx"))

    def test_nodes_that_lack_what_they_need(self):
        for op, words, inputs, outputs in (("Add", ["input 0"], ["", "x"], ["y"]), ("Add", ["1 inputs", "2"], ["x"], ["y"]),
                                           ("Add", ["output 0"], ["x", "x"], [""]), ("Sum", ["input 1"], ["x", "", "x"], ["y"])):
            model = self.save("lacking.onnx", ob.graph(
                [ob.node(op, inputs, outputs), ob.node("Relu", ["x"], ["z"])], [ob.value("x", ob.FLOAT, [2])],
                [ob.value("z", ob.FLOAT, [2])]))
            for command in ("inspect", "run"):
                self.refuse(FAILED, words + [op, "lacking.onnx"], command, model)

    def test_names_that_would_steer_a_terminal(self):
        name = b"\xff\x1b[31mred\n\x07"
        good = self.save("good.onnx", ob.graph([ob.node("Relu", ["x"], [name], name=name)], [ob.value("x", ob.FLOAT, [2])],
                                               [ob.value(name, ob.FLOAT, [2])]))
        bad = self.save("bad.onnx", ob.graph([ob.node("Relu", [name], ["y"], name=name)], [], [ob.value("y", ob.FLOAT, [2])]))
        os.makedirs(self.path("set/test_data_set_0"))
        self.write("set/model.onnx", self.read(bad))
        for arguments in (["inspect", good], ["run", good, "-x", "1"], ["profile", good, "-x", "1", "-r", "2"], ["inspect", bad],
                          ["run", bad], ["verify", self.path("set")]):
            ran = subprocess.run([PRONY, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
            self.assertFalse(set(ran.stdout + ran.stderr) & {0x1b, 7, 127}, arguments)
        for arguments in (["inspect", good], ["profile", good, "-x", "1", "-r", "2"], ["verify", self.path("set")]):
            out = subprocess.run([PRONY, *arguments, "--json", "-"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60).stdout
            json.loads(out.decode("utf-8"))

    def test_dimensions_that_no_memory_holds(self):
        model = self.save("huge.onnx", ob.graph([ob.node("Relu", ["x"], ["y"])], [ob.value("x", ob.FLOAT, ["N", "M"])],
                                                [ob.value("y", ob.FLOAT, ["N", "M"])]))
        for extent in (1 << 31, 1 << 40, (1 << 63) - 1):
            self.refuse(FAILED, ["huge.onnx"], "run", model, "--shape", "x=%dx%d" % (extent, extent))
            self.refuse(FAILED, ["huge.onnx", "'x'", "too large"], "inspect", model, "--shape", "x=%dx%d" % (extent, extent))

    def one(self, nodes, outputs, inputs=(("x", ["N", 2]),), initializers=(), values=(1.0, -2.0), shape=(1, 2)):
        """Runs a model of float tensors, x given; the outputs' values."""
        model = self.save("one.onnx", ob.graph(nodes, [ob.value(n, ob.FLOAT, d) for n, d in inputs],
                                               [ob.value(o, ob.FLOAT, None) for o in outputs], initializers))
        data = self.write("x.npy", ob.npy("<f4", shape, struct.pack("<%df" % len(values), *values)))
        results = []
        for more in ([], ["--no-rewrites"]):
            self.succeed("run", model, "-x", "1", "-q", "-i", "x=" + data, "--output-dir", self.path("out"), *more)
            files = [ob.read_npy(self.path("out/output_%d.npy" % k)) for k in range(len(outputs))]
            results.append([list(struct.unpack("<%df" % (len(d) // 4), d)) for _, _, d in files])
        self.assertEqual(results[0], results[1])
        self.succeed("profile", model, "-x", "1", "-q", "-r", "2", "-i", "x=" + data)
        self.succeed("inspect", model, "-q")
        return results[0]

    def test_odd_outputs(self):
        relu = ob.node("Relu", ["x"], ["y"])
        constant = [ob.floats("c", [3], [3.0, 4.0, 5.0])]
        self.assertEqual(self.one([relu], ["x"]), [[1, -2]])
        self.assertEqual(self.one([relu], ["x", "y", "x"]), [[1, -2], [1, 0], [1, -2]])
        self.assertEqual(self.one([relu], ["c", "y"], initializers=constant), [[3, 4, 5], [1, 0]])
        self.assertEqual(self.one([relu], ["y", "y"]), [[1, 0], [1, 0]])
        self.assertEqual(self.one([], ["x"]), [[1, -2]])
        flat = ob.node("Flatten", ["x"], ["f"], axis=0)
        self.assertEqual(self.one([flat], ["f"]), [[1, -2]])
        self.assertEqual(self.one([flat, ob.node("Relu", ["f"], ["y"])], ["f", "x", "y"]), [[1, -2], [1, -2], [1, 0]])
        self.assertEqual(self.one([ob.node("Identity", ["x"], ["i"]), ob.node("Identity", ["i"], ["j"])], ["j", "i"]),
                         [[1, -2], [1, -2]])
        folded = ob.node("Add", ["c", "c"], ["d"])
        self.assertEqual(self.one([folded, relu], ["d", "y"], initializers=constant), [[6, 8, 10], [1, 0]])
        # A value that is read after an operator could have worked on it in place, and one that is joined twice.
        self.assertEqual(self.one([relu, ob.node("Neg", ["y"], ["n"])], ["n", "y"]), [[-1, -0.0], [1, 0]])
        join = [relu, ob.node("Concat", ["y", "x", "y"], ["j"], axis=1), ob.node("Neg", ["y"], ["n"])]
        self.assertEqual(self.one(join, ["j", "n", "y"]), [[1, 0, 1, -2, 1, 0], [-1, -0.0], [1, 0]])
        parts = [ob.node("Split", ["x"], ["a", "b"], axis=1), ob.node("Relu", ["b"], ["r"]),
                 ob.node("Concat", ["r", "a"], ["j"], axis=1)]
        self.assertEqual(self.one(parts, ["j", "a", "b"]), [[0, 1], [1], [-2]])

    def test_empty_scalar_and_unused_inputs(self):
        relu = ob.node("Relu", ["x"], ["y"])
        self.assertEqual(self.one([relu], ["y"], values=(), shape=(0, 2)), [[]])
        total = ob.node("ReduceSum", ["x"], ["y"], keepdims=0)
        self.assertEqual(self.one([total], ["y"], values=(), shape=(0, 2)), [[0]])
        self.assertEqual(self.one([relu], ["y"], [("x", [])], values=(-7.0,), shape=()), [[0]])
        self.assertEqual(self.one([relu], ["y"], [("x", ["N", 2]), ("unused", [5, "M"])]), [[1, 0]])

    def test_nested_branches(self):
        inner = [ob.node("Neg", ["x"], ["n"]), ob.node("Mul", ["n", "r"], ["i1"])]
        other = [ob.node("Exp", ["zero"], ["i2"])]
        outer_then = [ob.node("Relu", ["x"], ["r"]),
                      ob.node("If", ["c2"], ["t"], then_branch=("graph", ob.graph(inner, outputs=[ob.value("i1", ob.FLOAT, None)])),
                              else_branch=("graph", ob.graph(other, outputs=[ob.value("i2", ob.FLOAT, None)])))]
        outer_else = [ob.node("Add", ["x", "x"], ["e"])]
        nodes = [ob.node("ReduceSum", ["x"], ["s"], keepdims=0), ob.node("Greater", ["s", "zero"], ["c1"]),
                 ob.node("ReduceMax", ["x"], ["m"], keepdims=0), ob.node("Greater", ["m", "five"], ["c2"]),
                 ob.node("If", ["c1"], ["y"], then_branch=("graph", ob.graph(outer_then, outputs=[ob.value("t", ob.FLOAT, None)])),
                         else_branch=("graph", ob.graph(outer_else, outputs=[ob.value("e", ob.FLOAT, None)])))]
        constants = [ob.floats("zero", [], [0.0]), ob.floats("five", [], [5.0])]
        self.assertEqual(self.one(nodes, ["y"], initializers=constants, values=(1.0, -2.0)), [[2, -4]])
        self.assertEqual(self.one(nodes, ["y"], initializers=constants, values=(9.0, -2.0)), [[-81, 0]])
        self.assertEqual(self.one(nodes, ["y"], initializers=constants, values=(3.0, -2.0)), [[1]])

    def test_shapes_that_data_decides(self):
        nodes = [ob.node("NonZero", ["x"], ["where"]), ob.node("Cast", ["where"], ["y"], to=ob.FLOAT),
                 ob.node("Relu", ["x"], ["r"])]
        self.assertEqual(self.one(nodes, ["y", "r"], values=(0.0, 3.0)), [[0, 1], [0, 3]])
        self.assertEqual(self.one(nodes, ["y", "r"], values=(0.0, 0.0)), [[], [0, 0]])

    def test_constants_that_double_again_and_again(self):
        nodes = [ob.node("Add", ["c%d" % i, "c%d" % i], ["c%d" % (i + 1)]) for i in range(100)]
        nodes.append(ob.node("Mul", ["x", "c100"], ["y"]))
        start = [ob.floats("c0", [1], [2.0 ** -100])]
        self.assertEqual(self.one(nodes, ["y"], initializers=start), [[1, -2]])

    def test_dropout_when_data_asks_for_it(self):
        model = self.save("dropout.onnx", ob.graph(
            [ob.node("Dropout", ["x", "ratio", "training"], ["y"], seed=1)],
            [ob.value("x", ob.FLOAT, [64]), ob.value("training", ob.BOOL, [])], [ob.value("y", ob.FLOAT, [64])],
            [ob.floats("ratio", [], [0.5])]))
        values = [float(i + 1) for i in range(64)]
        data = "x=" + self.write("x.npy", ob.npy("<f4", (64,), struct.pack("<64f", *values)))
        for name, byte in (("no", b"\0"), ("yes", b"\1")):
            flag = "training=" + self.write(name + ".npy", ob.npy("|b1", (), byte))
            self.succeed("run", model, "-q", "-i", data, "-i", flag, "--output-dir", self.path(name))
            got = struct.unpack("<64f", ob.read_npy(self.path(name + "/output_0.npy"))[2])
            if name == "no":
                self.assertEqual(list(got), values)
            else:
                self.assertTrue(all(g in (0, 2 * v) for g, v in zip(got, values)), got)
                self.assertEqual({g == 0 for g in got}, {True, False})

    def test_long_chains_take_linear_time(self):
        def seconds(count):
            nodes = [ob.node("Relu" if i % 2 else "Neg", ["v%d" % i], ["v%d" % (i + 1)]) for i in range(count)]
            model = self.save("chain.onnx", ob.graph(nodes, [ob.value("v0", ob.FLOAT, [8])],
                                                     [ob.value("v%d" % count, ob.FLOAT, [8])]))
            phases = self.report("profile", model, "-x", "1", "-r", "1", "-w", "0")["phases_ns"]
            return sum(phases[key] for key in ("load", "bind", "rewrite", "plan")) * 1e-9
        short, long = (min(seconds(count) for _ in range(3)) for count in (2500, 10000))
        # Four times the nodes: four times the time if linear, sixteen if quadratic.
        self.assertLess(long, 9 * short)


class Verify(CommandTest):
    def case(self, name, want):
        folder = self.path(name)
        os.makedirs(folder + "/test_data_set_0")
        self.save(name + "/model.onnx", ob.graph([ob.node("Neg", ["x"], ["y"])], [ob.value("x", ob.FLOAT, [2])],
                                                 [ob.value("y", ob.FLOAT, [2])]))
        self.write(name + "/test_data_set_0/input_0.pb", ob.floats("x", [2], [1.0, 2.0]))
        self.write(name + "/test_data_set_0/output_0.pb", ob.floats("y", [2], want))
        return folder

    def test_verdicts(self):
        good = self.case("good", [-1.0, -2.0])
        self.assertIn("1 passed, 0 failed", self.succeed("verify", good))
        bad = self.case("bad", [-1.0, -2.5])
        code, out, _ = run("verify", bad)
        self.assertEqual(code, VERDICT)
        self.assertRegex(out, r"fail .*bad\n.*1 of 2 elements differ")
        code, out, err = run("verify", self.folder, "--json", "-")
        verdicts = {os.path.basename(c["case"]): c["verdict"] for c in json.loads(out)["cases"]}
        self.assertEqual((code, verdicts, err), (VERDICT, {"good": "pass", "bad": "fail"}, ""))
        self.write("bad/model.onnx", ob.model(ob.graph([ob.node("Frobnicate", ["x"], ["y"])], [ob.value("x", ob.FLOAT, [2])],
                                                      [ob.value("y", ob.FLOAT, [2])])))
        code, out, _ = run("verify", bad)
        self.assertEqual(code, VERDICT)
        self.assertIn("unsupported", out)
        os.makedirs(self.path("void"))
        for folder, word in (("void", "no model.onnx"), ("nowhere", "No such file")):
            code, _, err = run("verify", self.path(folder), "-q")
            self.assertEqual(code, FAILED)
            self.assertIn(word, err)


    def made(self, name, nodes, dtype, dims, want, functions=(), opset=21, domains=(), initializers=()):
        """One case without inputs; its verdict."""
        os.makedirs(self.path(name + "/test_data_set_0"))
        data = ob.model(ob.graph(nodes, [], [ob.value("y", dtype, dims)], initializers), opset, domains)
        self.write(name + "/model.onnx", data + b"".join(ob.chunk(25, f) for f in functions))
        self.write(name + "/test_data_set_0/output_0.pb", want)
        code, out, err = run("verify", self.path(name), "--json", "-")
        self.assertEqual(err, "")
        [case] = json.loads(out)["cases"]
        self.assertEqual(code, DONE if case["verdict"] == "pass" else VERDICT)
        return case["verdict"], case["reason"]

    def test_what_is_drawn_at_random(self):
        draw = ob.node("RandomUniform", [], ["y"], shape=[4], low=2.0, high=3.0)
        zeros = ob.floats("y", [4], [0.0] * 4)
        verdict, reason = self.made("uniform", [draw], ob.FLOAT, [4], zeros)
        self.assertEqual(verdict, "pass")
        self.assertIn("random", reason)
        verdict, reason = self.made("shape", [draw], ob.FLOAT, [4], ob.floats("y", [3], [0.0] * 3))
        self.assertEqual(verdict, "fail")
        self.assertIn("got float32[4], want float32[3]", reason)
        # 2 is what is left of [2.1, 2.9].
        narrow = [ob.node("RandomUniform", [], ["u"], shape=[4], low=2.1, high=2.9), ob.node("Cast", ["u"], ["y"], to=ob.INT32)]
        verdict, reason = self.made("range", narrow, ob.INT32, [4], ob.tensor("y", ob.INT32, [4], bytes(16)))
        self.assertEqual((verdict, "random" in reason), ("pass", True))
        # Deep inside of a function, and changed by what follows.
        function = (ob.chunk(1, "Draw") + ob.chunk(10, "local") + ob.chunk(5, "z") +
                    ob.chunk(7, ob.node("RandomNormal", [], ["z"], shape=[4])) + ob.chunk(9, ob.chunk(1, "") + ob.integer(2, 21)))
        nodes = [ob.node("Draw", [], ["d"], domain="local"), ob.node("Exp", ["d"], ["y"])]
        verdict, reason = self.made("function", nodes, ob.FLOAT, [4], zeros, [function], domains=(("local", 1),))
        self.assertEqual((verdict, "random" in reason), ("pass", True))
        # Only the shape of what was drawn is used: nothing is random any more.
        nodes = [ob.node("RandomNormal", [], ["d"], shape=[4]), ob.node("Shape", ["d"], ["s"]),
                 ob.node("Cast", ["s"], ["y"], to=ob.FLOAT)]
        self.assertEqual(self.made("size", nodes, ob.FLOAT, [1], ob.floats("y", [1], [5.0]))[0], "fail")

    def test_element_types(self):
        def cast(name, dtype, values, want):
            numbers = [ob.floats("x", [len(values)], values)]
            return self.made(name, [ob.node("Cast", ["x"], ["y"], to=dtype)], dtype, [len(values)], want, initializers=numbers)
        int4 = 22
        # Three elements of 4 bits, low bits first: what follows the last one counts for nothing.
        self.assertEqual(cast("int4", int4, [1.0, -2.0, 3.0], ob.tensor("y", int4, [3], b"\xe1\xf3"))[0], "pass")
        verdict, reason = cast("int4_wrong", int4, [1.0, -2.0, 3.0], ob.tensor("y", int4, [3], b"\xe1\x0d"))
        self.assertEqual(verdict, "fail")
        self.assertIn("1 of 3 elements differ; worst at 2: got 3, want -3", reason)
        # NumPy has no bfloat16: its bits stand in a uint16 tensor.
        bits = b"".join(struct.pack("<f", v)[2:] for v in (1.0, float("nan"), -2.5))
        values = [1.0, float("nan"), -2.5]
        self.assertEqual(cast("bfloat16", ob.BFLOAT16, values, ob.tensor("y", 4, [3], bits))[0], "pass")
        self.assertEqual(cast("nan", ob.DOUBLE, values, ob.tensor("y", ob.DOUBLE, [3], struct.pack("<3d", *values)))[0], "pass")
        # The worst element, not the first; 64-bit integers exactly.
        big = [2 ** 62 + 1, 5, 7]
        numbers = [ob.int64s("x", [3], big)]
        verdict, reason = self.made("int64", [ob.node("Identity", ["x"], ["y"])], ob.INT64, [3],
                                    ob.int64s("y", [3], [2 ** 62, 5, -93]), initializers=numbers)
        self.assertEqual(verdict, "fail")
        self.assertIn("2 of 3 elements differ; worst at 2: got 7, want -93", reason)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    PRONY, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
