#!/usr/bin/env python3
"""The command as its users meet it: usage, shapes, inputs, models; exit status, messages, what goes to which stream.

    test_command.py PRONY SOURCE_DIR [unittest options]
"""
import json
import os
import re
import resource
import struct
import subprocess
import unittest

import command_case
import onnx_bytes as ob
from command_case import DONE, FAILED, USAGE, CommandTest, Schema, run


def limit_address_space(kibibytes):
    """`ulimit -v`, for run(prepare=...)."""
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (kibibytes << 10, kibibytes << 10))


@unittest.skipIf("QEMU_LD_PREFIX" in os.environ, "the limit would be that of the emulator")
class AddressSpace(CommandTest):
    """Libraries that wait for memory for ever must not be used without memory: nothing here may hang."""

    def setUp(self):
        super().setUp()
        with open(command_case.PRONY, "rb") as program:
            if b"__asan_init" in program.read():
                self.skipTest("AddressSanitizer itself needs more address space than there is")

    def test_short_address_space(self):
        for kibibytes in (80000, 150000, 200000, 300000, 400000, 600000):
            for arguments in (["--version"], ["ops"], ["run", self.digits, "-x", "2"], ["profile", self.lenet, "-r", "2", "-x", "1"]):
                code, _, err = run(*arguments, prepare=limit_address_space(kibibytes), seconds=60)
                self.assertIn(code, (DONE, FAILED), (kibibytes, arguments, err))
                if kibibytes >= 200000 and arguments[0] in ("--version", "ops", "profile"):
                    self.assertEqual(code, DONE, (kibibytes, arguments, err))

    def test_products_of_float64(self):
        model = self.save("f64.onnx", ob.graph([ob.node("MatMul", ["a", "b"], ["y"])],
                                               [ob.value("a", ob.DOUBLE, [70, 300]), ob.value("b", ob.DOUBLE, [300, 90])],
                                               [ob.value("y", ob.DOUBLE, [70, 90])]))
        kernels, results = {}, {}
        for name, limit in (("free", None), ("bounded", limit_address_space(2000000)), ("short", limit_address_space(200000)),
                            ("ample", limit_address_space(1 << 36))):
            folder = self.path(name)
            self.succeed("run", model, "-q", "--output-dir", folder, prepare=limit, seconds=60)
            results[name] = self.read(os.path.join(folder, "output_0.npy"))[-70 * 90 * 8:]
            report = json.loads(self.succeed("profile", model, "-r", "2", "--json", "-", prepare=limit, seconds=60))
            kernels[name] = report["operators"][0]["kernel"]
        self.assertEqual((kernels["bounded"], kernels["short"]), ("matmul_ref", "matmul_ref"))
        self.assertEqual(results["bounded"], results["short"])
        free = resource.getrlimit(resource.RLIMIT_AS)[0] == resource.getrlimit(resource.RLIMIT_DATA)[0] == resource.RLIM_INFINITY
        if "openblas" in report["system"]["libraries"] and free and not os.environ.get("PRONY_MAX_ISA"):
            self.assertEqual((kernels["free"], kernels["ample"]), ("matmul_f64_openblas", "matmul_f64_openblas"))
            self.assertEqual(results["free"], results["ample"])
        for a, b in zip(struct.iter_unpack("<d", results["free"]), struct.iter_unpack("<d", results["short"])):
            self.assertAlmostEqual(a[0], b[0], 12)


class Usage(CommandTest):
    def test_help_and_version(self):
        header = self.read(os.path.join(command_case.SOURCE, "include", "prony.h")).decode()
        version = re.search(r'PRONY_VERSION "([\d.]+)"', header).group(1)
        self.assertEqual(self.succeed("--version").splitlines()[0], "prony %s" % version)
        commands = ("inspect", "run", "profile", "bench", "verify", "ops", "compare", "check", "recommend")
        text = self.succeed("--help")
        for name in commands:
            self.assertRegex(text, r"\n  %s " % name)
            for own in (self.succeed(name, "--help"), self.succeed(name, "--help-all")):
                self.assertIn("prony %s" % name, own)
                self.assertLessEqual(max(map(len, own.splitlines())), 80)
        self.assertLessEqual(max(map(len, text.splitlines())), 80)

    def test_help_of_a_command_shows_what_it_takes(self):
        for name, argument in (("inspect", [self.lenet]), ("ops", []), ("verify", [self.folder])):
            text = self.succeed(name, "--help-all")
            for option, value in (("--top", "3"), ("--seed", "1"), ("--output-dir", self.folder), ("--runs", "1")):
                code = run(name, *argument, option, value)[0]
                self.assertEqual(code == USAGE, option not in text, "%s %s" % (name, option))

    def test_wrong_usage(self):
        for words, arguments in (
                (["unknown command", "frobnicate"], ["frobnicate"]),
                (["MODEL is missing"], ["inspect"]),
                (["'b' is one argument too many"], ["inspect", "a", "b"]),
                (["unknown option '--nonsense'"], ["run", "m", "--nonsense"]),
                (["unknown option '-z'"], ["run", "m", "-qz"]),
                (["--quiet takes no value, got '3'"], ["run", "m", "--quiet=3"]),
                (["--json needs a value"], ["run", "m", "--json"]),
                (["-x needs a value"], ["run", "m", "-x"]),
                (["'profile' does not take --scenario", "bench"], ["profile", "m", "--scenario", "single"]),
                (["latency", "no unit"], ["bench", "m", "--threshold", "p50:3"]),
                (["'inspect' does not take --runs", "profile"], ["inspect", "m", "--top", "3", "--runs", "4"]),
                (["'inspect' does not take -r", "profile"], ["inspect", "m", "-r", "4"]),
                (["'ops' does not take --top", "profile"], ["ops", "--top", "3"]),
                (["--intra-op", "'1,2'", "1 to 1024", "lists"], ["profile", "m", "-x", "1,2"]),
                (["--intra-op", "'0'", "1 to 1024"], ["run", "m", "-x", "0"]),
                (["--inter-op", "'0'", "auto"], ["run", "m", "-y", "0"]),
                (["--inter-op", "'100000'", "1024"], ["profile", "m", "-y", "100000"]),
                (["--inter-op", "'many'", "1024"], ["eval", "m", "d", "-y", "many"]),
                (["--batch", "'0'", "from 1"], ["run", "m", "-b", "0"]),
                (["--seconds", "'nan'", "above 0"], ["profile", "m", "-t", "nan"]),
                (["--level", "'floor'", "model, layer, operator, module or nested"], ["profile", "m", "--level", "floor"]),
                (["--dim needs NAME=N, got 'N'"], ["run", "m", "--dim", "N"]),
                (["--dim N", "'many'", "from 0"], ["run", "m", "--dim", "N=many"]),
                (["--shape x", "1x3x224x224", "got '1x2x'"], ["run", "m", "--shape", "x=1x2x"]),
                (["--shard", "mpirun"], ["run", "m", "--shard", "2"]),
                (["--send-model", "mpirun"], ["scale", "m", "--send-model"]),
                (["-i"], ["profile", "-i", "image=x.npy"]),
                (["--count", "'ptflops'", "fvcore"], ["inspect", "m", "--count", "ptflops"]),
                (["--depth", "'0'", "1 to 1000"], ["inspect", "m", "--depth", "0"]),
                (["--filter"], ["ops", "--filter", "kernel=x"])):
            self.refuse(USAGE, words, *arguments)
        self.assertEqual(run()[0], USAGE)

    def test_core_lists(self):
        for wrong in ("", "x", "1-0", "0-", "4096", "0,,1", "0;1"):
            code, out, error = run("bench", self.digits, "-r", 1, "--affinity", wrong)
            self.assertEqual((code, out), (USAGE, ""))
            self.assertIn("is not a core list such as 0-3,8", error)
        allowed = sorted(os.sched_getaffinity(0))
        for cores, used, said in (("%d" % allowed[0], str(allowed[0]), None), ("4094,4095", None, "none of these processors"),
                                  ("%d,4095" % allowed[0], str(allowed[0]), "processor 4095 does not exist")):
            code, out, error = run("profile", self.digits, "-r", 3, "--affinity", cores, "--json", "-")
            self.assertEqual(code, DONE)
            config = json.loads(out)["config"]
            self.assertEqual((config["affinity"], config["affinity_used"]), (cores, used))
            self.assertEqual(said is None, config["affinity_failure"] is None)
            if said:
                self.assertIn("--affinity %s: " % cores, error)
                self.assertIn(said, error)
                self.assertIn(said, config["affinity_failure"])
            else:
                self.assertEqual(error, "")

    def test_what_is_not_built_is_refused_by_name(self):
        self.refuse(FAILED, ["'int3'", "fp32", "fast", "bf16", "int8", "this processor"], "run", self.lenet, "-p", "int3")
        for precision in ("fp32", "fast", "bf16"):
            self.succeed("run", self.lenet, "-p", precision, "-y", "1", "-x", "1")

    def test_kernels_by_measurement(self):
        folder = {"XDG_CACHE_HOME": self.path("cache")}

        def tuned(*more, environment=folder):
            status, out, error = run("profile", self.lenet, "-x", "1", "-r", "2", "-w", "1", "--json", "-", *more, environment=environment)
            self.assertEqual((status, error), (DONE, ""))
            report = json.loads(out)
            self.assertEqual(Schema("report").problems(report), [])
            return report

        self.assertNotIn("tuning", tuned())
        first, second, anew = tuned("--tune"), tuned("--tune"), tuned("--tune", "--no-cache")
        measured = first["tuning"]["measured"]
        self.assertGreater(measured, 0)
        self.assertEqual([first["tuning"]["kept"], second["tuning"]["kept"], second["tuning"]["measured"]], [0, measured, 0])
        self.assertEqual([anew["tuning"]["kept"], anew["tuning"]["measured"]], [0, measured])
        self.assertTrue(first["tuning"]["file"].startswith(folder["XDG_CACHE_HOME"]))
        for choice in second["tuning"]["choices"]:
            self.assertEqual(second["operators"][choice["operator"]]["kernel"], choice["kernel"])
            self.assertIn(choice["kernel"], [t["kernel"] for t in choice["tried"]])
        self.assertEqual(first["output_sha256"], second["output_sha256"])
        with open(first["tuning"]["file"], "w", encoding="utf-8") as file:
            file.write("{")
        self.assertIn("measured again", tuned("--tune")["tuning"]["note"])
        self.assertIn("measurements are not saved", tuned("--tune", environment={"XDG_CACHE_HOME": "/dev/null"})["tuning"]["note"])
        strict = tuned("--tune", "-p", "fp32-strict")["tuning"]
        self.assertEqual([strict["operators"], strict["measured"]], [0, 0])
        self.assertIn("with several kernels take another one", self.succeed("profile", self.lenet, "-x", "1", "-r", "2", "--tune"))
        self.refuse(USAGE, ["'inspect' does not take --tune"], "inspect", self.lenet, "--tune")

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
        fixed = self.save("fixed.onnx", ob.graph([ob.node("Relu", ["x"], ["y"])], [ob.value("x", ob.FLOAT, [2, 3])],
                                                 [ob.value("y", ob.FLOAT, [2, 3])]))
        self.assertEqual(self.shape(two, "--dim", "N=5"), [5, 3])
        self.refuse(FAILED, ["'M'", "the model has 'N'"], "run", two, "--dim", "M=5")
        self.refuse(FAILED, ["'M'", "the model has none"], "inspect", fixed, "--dim", "M=5")
        self.refuse(FAILED, ["'N'", "5", "6"], "run", two, "--dim", "N=5", "-b", "6")
        self.refuse(FAILED, ["'N'", "5", "6"], "run", two, "--dim", "N=5", "--dim", "N=6")

    def test_whole_shapes(self):
        two = self.two_inputs()
        # A size for the second input applies to the first one too.
        self.assertEqual(self.shape(two, "--shape", "b=7x3"), [7, 3])
        self.refuse(FAILED, ["'N'", "7", "8"], "run", two, "--shape", "b=7x3", "--shape", "a=8x3")
        self.refuse(FAILED, ["'b'", "[?, 3]", "[7, 4]"], "run", two, "--shape", "b=7x4")
        self.refuse(FAILED, ["'b'", "[7, 3, 1]"], "inspect", two, "--shape", "b=7x3x1")
        self.refuse(FAILED, ["'c'", "'a', 'b'"], "run", two, "--shape", "c=7x3")

    def test_empty_batch(self):
        self.assertEqual(self.shape(self.two_inputs(), "--dim", "N=0"), [0, 3])
        self.assertEqual(self.shape(self.lenet, "--dim", "batch=0"), [0, 10])

    def test_largest_extents(self):
        two = self.two_inputs()
        self.assertEqual(self.shape(two, "--dim", "N=5", "--max-dim", "N=50"), [5, 3])
        self.refuse(FAILED, ["dimension 'N' (axis 0) is 51, but its maximum is 50"], "run", two, "--dim", "N=51", "--max-dim", "N=50")
        self.refuse(FAILED, ["'M'", "the model has 'N'"], "run", two, "--max-dim", "M=5")
        self.refuse(USAGE, ["--max-dim N", "'0'", "from 1"], "run", two, "--max-dim", "N=0")

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

    def test_an_initializer_that_is_an_input_is_a_default(self):
        model = self.save("default.onnx", ob.graph(
            [ob.node("Mul", ["x", "k"], ["y"])], [ob.value("x", ob.FLOAT, ["N", 3]), ob.value("k", ob.FLOAT, [1])],
            [ob.value("y", ob.FLOAT, ["N", 3])], [ob.floats("k", [1], [2.0])]))
        for given, want in (([], 2.0), (["-i", "k=[5]"], 5.0)):
            self.succeed("run", model, "-b", "2", "-q", "-i", "x=ones", *given, "--output-dir", self.path("out"))
            self.assertEqual(ob.read_npy(self.path("out/output_0.npy")), ("<f4", (2, 3), struct.pack("<6f", *[want] * 6)))
        ports = self.report("profile", model, "-r", "2", "-i", "k=[5]")["model"]["inputs"]
        self.assertEqual([port["name"] for port in ports], ["x", "k"])

    def test_a_domain_that_is_not_imported(self):
        gelu = self.save("gelu.onnx", ob.graph([ob.node("Gelu", ["x"], ["y"], domain="com.microsoft")],
                                               [ob.value("x", ob.FLOAT, [3])], [ob.value("y", ob.FLOAT, [3])]))
        x = self.write("gelu_x.npy", ob.npy("<f4", (3,), struct.pack("<3f", 1, -2, 3)))
        self.succeed("run", gelu, "-i", "x=" + x, "-q", "--output-dir", self.path("out"))
        with open(self.path("out/output_0.npy"), "rb") as file:
            y = struct.unpack("<3f", file.read()[-12:])
        for got, want in zip(y, (0.8413447, -0.0455003, 2.9959503)):
            self.assertAlmostEqual(got, want, places=6)
        self.assertIn("does not import com.microsoft 1: assumed", self.succeed("inspect", gelu))
        self.assertEqual(self.report("inspect", gelu)["assumed_imports"], ["com.microsoft 1"])
        self.assertNotIn("assumed_imports", self.report("inspect", self.lenet))
        scaler = self.save("scaler.onnx", ob.graph([ob.node("Binarizer", ["x"], ["y"], domain="ai.onnx.ml")],
                                                   [ob.value("x", ob.FLOAT, [3])], [ob.value("y", ob.FLOAT, [3])]))
        self.refuse(FAILED, ["ai.onnx.ml::Binarizer (1 node; the model does not import ai.onnx.ml)"], "run", scaler)

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
            ran = subprocess.run([command_case.PRONY, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
            self.assertFalse(set(ran.stdout + ran.stderr) & {0x1b, 7, 127}, arguments)
        for arguments in (["inspect", good], ["profile", good, "-x", "1", "-r", "2"], ["verify", self.path("set")]):
            out = subprocess.run([command_case.PRONY, *arguments, "--json", "-"], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, timeout=60).stdout
            json.loads(out.decode("utf-8"))

    def test_dimensions_that_no_memory_holds(self):
        model = self.save("huge.onnx", ob.graph([ob.node("Relu", ["x"], ["y"])], [ob.value("x", ob.FLOAT, ["N", "M"])],
                                                [ob.value("y", ob.FLOAT, ["N", "M"])]))
        for extent in (1 << 31, 1 << 40, (1 << 63) - 1):
            self.refuse(FAILED, ["huge.onnx"], "run", model, "--shape", "x=%dx%d" % (extent, extent))
            self.refuse(FAILED, ["huge.onnx", "'x'", "too large"], "inspect", model, "--shape", "x=%dx%d" % (extent, extent))

    def test_memory_limit(self):
        model = self.save("grows.onnx", ob.graph([ob.node("NonZero", ["x"], ["s0"])] +
                                                 [ob.node("Concat", ["s%d" % i] * 2, ["s%d" % (i + 1)], axis=1) for i in range(24)],
                                                 [ob.value("x", ob.FLOAT, [8])], [ob.value("s24", ob.INT64, None)]))
        data = self.write("x.npy", ob.npy("<f4", (8,), struct.pack("<8f", *[1.0] * 8)))
        refused = ["grows.onnx", "(Concat)", "the memory limit is 33554432"]
        for name in ("run", "profile", "bench", "metrics"):
            more = [] if name == "run" else ["-r", "1"]
            self.refuse(FAILED, refused, name, model, "-x", "1", "-i", "x=" + data, "--memory-limit", "32MiB", *more)
        self.refuse(FAILED, ["the memory limit is 30000"], "inspect", model, "--memory-limit", "30kB")
        self.succeed("run", model, "-x", "1", "-q", "-i", "x=" + data, "--memory-limit", "none")
        for wrong in ("", "0", "2 potatoes", "-1", "99999999999999999999GiB"):
            self.refuse(USAGE, ["--memory-limit"], "run", model, "--memory-limit", wrong)
        self.refuse(USAGE, ["does not take --memory-limit"], "ops", "--memory-limit", "1GiB")
        os.environ["PRONY_MEMORY_LIMIT"] = "32MiB"
        try:
            self.refuse(FAILED, refused, "run", model, "-x", "1", "-i", "x=" + data)
            self.succeed("run", model, "-x", "1", "-q", "-i", "x=" + data, "--memory-limit", "9GiB")
            os.environ["PRONY_MEMORY_LIMIT"] = "much"
            self.refuse(USAGE, ["PRONY_MEMORY_LIMIT"], "run", model)
        finally:
            del os.environ["PRONY_MEMORY_LIMIT"]

    def test_a_cap_of_instruction_sets_that_nobody_knows_is_refused(self):
        before = os.environ.get("PRONY_MAX_ISA")
        level = self.report("run", os.path.join(command_case.SOURCE, "models", "digits.onnx"), "-x", "1")["system"]["isa_used"]
        arm = level in ("neon", "dotprod", "i8mm") or os.uname().machine == "aarch64"
        names, other = ("scalar, neon, dotprod, i8mm", "avx2") if arm else ("scalar, avx2, avx512, amx", "neon")
        try:
            for wrong in ("avx1024", "avx", "scalar, avx2", ",", other):
                os.environ["PRONY_MAX_ISA"] = wrong
                self.refuse(USAGE, ["PRONY_MAX_ISA", repr(wrong), names], "ops")
            for right in ("", "scalar", "NEON" if arm else "AVX2", "i8mm" if arm else "amx"):
                os.environ["PRONY_MAX_ISA"] = right
                self.succeed("ops")
        finally:
            os.environ.pop("PRONY_MAX_ISA")
            if before is not None:
                os.environ["PRONY_MAX_ISA"] = before

    def one(self, nodes, outputs, inputs=(("x", ["N", 2]),), initializers=(), values=(1.0, -2.0), shape=(1, 2)):
        """Runs a model of float tensors, x given; the outputs' values."""
        model = self.save("one.onnx", ob.graph(nodes, [ob.value(n, ob.FLOAT, d) for n, d in inputs],
                                               [ob.value(o, ob.FLOAT, None) for o in outputs], initializers))
        data = self.write("x.npy", ob.npy("<f4", shape, struct.pack("<%df" % len(values), *values)))
        results = []
        for more in ([], ["--no-rewrites"], ["--no-reuse"]):
            self.succeed("run", model, "-x", "1", "-q", "-i", "x=" + data, "--output-dir", self.path("out"), *more)
            files = [ob.read_npy(self.path("out/output_%d.npy" % k)) for k in range(len(outputs))]
            results.append([list(struct.unpack("<%df" % (len(d) // 4), d)) for _, _, d in files])
        self.assertEqual(results[0], results[1])
        self.assertEqual(results[0], results[2])
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
        # A value read after an operator that could work in place on it, and one that is joined twice.
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

    def test_work_beyond_64_bits(self):
        """Each layer's bytes fit into 64 bits, their sum does not: the message blames the model."""
        model = self.save("wide.onnx", ob.graph([ob.node("Neg", [a], [b]) for a, b in ("xu", "uv", "vz")],
                                                [ob.value("x", ob.INT8, [2**63 - 1])], [ob.value("z", ob.INT8, [2**63 - 1])]))
        self.refuse(FAILED, ["Neg_2", "overflows 64 bits"], "inspect", model)

    def test_long_chains(self):
        """Quadratic time in the number of nodes would exceed run()'s time limit."""
        count = 100000
        nodes = [ob.node("Relu" if i % 2 else "Neg", ["v%d" % i], ["v%d" % (i + 1)]) for i in range(count)]
        model = self.save("chain.onnx", ob.graph(nodes, [ob.value("v0", ob.FLOAT, [8])],
                                                 [ob.value("v%d" % count, ob.FLOAT, [8])]))
        report = self.report("profile", model, "-x", "1", "-r", "1", "-w", "0")
        self.assertEqual(len(report["layers"]), count)


if __name__ == "__main__":
    command_case.main()
