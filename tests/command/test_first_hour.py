#!/usr/bin/env python3
"""A new user's first steps: free dimensions, values on the command line, files that are not models, mistyped words.

    test_first_hour.py PRONY SOURCE_DIR [unittest options]
"""
import gzip
import io
import json
import os
import pickle
import re
import shlex
import struct
import subprocess
import zipfile

import command_case
import onnx_bytes as ob
from command_case import DONE, FAILED, USAGE, CommandTest, run


class FreeDimensions(CommandTest):
    def image_model(self, name="net.onnx", dims=("batch", 3, "height", "width"), **options):
        """A pool over 4 x 4 and a sum: sizes below 4 do not fit."""
        nodes = [ob.node("AveragePool", ["x"], ["p"], kernel_shape=[4, 4], strides=[4, 4], name="pool"),
                 ob.node("GlobalAveragePool", ["p"], ["y"])]
        return self.save(name, ob.graph(nodes, [ob.value("x", ob.FLOAT, list(dims))], [ob.value("y", ob.FLOAT, None)], **options))

    def question(self, *arguments):
        code, out, err = run(*arguments)
        self.assertEqual((code, out), (FAILED, ""), err)
        return err

    def hint(self, text):
        """The command in the message, without `prony`."""
        line = next(line for line in text.splitlines() if line.startswith("  prony "))
        return shlex.split(line)[1:]

    def test_every_free_dimension_is_listed_with_its_option(self):
        model = self.image_model()
        for command in ("run", "inspect", "profile", "bench", "recommend", "metrics"):
            text = self.question(command, model)
            for part in ("leaves 2 dimensions", "--dim height=N   axis 2 of x: needs a value", "--dim width=N   axis 3 of x",
                         "--dim batch=N   axis 0 of x: is 1 (the batch; also -b N)", "--dim '*'=1"):
                self.assertIn(part, text)
        self.assertIn("leaves 2 dimensions", self.question("compare", model, model))

    def test_the_hint_of_the_message_works(self):
        for dims in (("batch", 3, "height", "width"), (None, 3, None, None), ("N", 3, "h h", 48), ("n", 3, 48, "it's")):
            model = self.image_model(dims=dims)
            hint = self.hint(self.question("run", model))
            self.assertEqual(run(*hint, "-x", "1")[0], DONE, hint)

    def test_a_leading_batch_is_one_and_line_one_says_so(self):
        model = self.image_model(dims=("batch", 3, 8, 8))

        def first(*arguments):
            """Line 1, or line 2 if line 1 reports a busy machine."""
            lines = self.succeed(*arguments).splitlines()
            return lines[1] if ": times are too high" in lines[0] else lines[0]

        self.assertTrue(first("inspect", model).endswith("net.onnx  assumed: batch=1"))
        self.assertTrue(first("run", model).endswith("(assumed: batch=1)"))
        self.assertTrue(first("profile", model, "-r", "3").endswith("assumed: batch=1"))
        self.assertTrue(first("bench", model, "-r", "3", "-x", "1,2").endswith("(assumed: batch=1)"))
        self.assertTrue(first("recommend", model, "-r", "3").endswith("(assumed: batch=1)"))
        self.assertTrue(first("check", model, "-r", "3", "--threshold", "latency:1h").endswith("(assumed: batch=1)"))
        self.assertEqual(self.report("inspect", model)["config"]["assumed_dims"],
                         [{"name": "batch", "value": 1, "reason": "batch"}])
        self.assertNotIn("assumed", self.succeed("inspect", model, "-b", "1"))
        self.assertEqual(self.report("inspect", model, "-b", "2")["config"]["assumed_dims"], [])

    def test_all_at_once_and_by_axis(self):
        model = self.image_model(dims=(None, 3, None, "w"))

        def shape(*options):
            return self.report("inspect", model, *options)["model"]["inputs"][0]["shape"]

        self.assertEqual(shape("--dim", "*=8"), [8, 3, 8, 8])
        self.assertEqual(shape("--dim", "x.2=9", "--dim", "x.3=5"), [1, 3, 9, 5])
        self.assertEqual(shape("--dim", "*=8", "--dim", "x.2=9", "--dim", "w=4", "-b", "2"), [2, 3, 9, 4])
        self.refuse(FAILED, ["'x.1'", "'x.0', 'x.2', 'w'"], "inspect", model, "--dim", "x.1=9")

    def test_errors_name_the_dimension_they_follow_from(self):
        model = self.image_model()
        text = self.refuse(FAILED, ["pool", "height=2", "width=3", "batch=1 (assumed)"], "run", model, "--dim", "height=2",
                           "--dim", "width=3")
        self.assertNotIn("height=2 (assumed)", text)
        self.refuse(FAILED, ["height=1"], "inspect", model, "--dim", "*=1")

    def test_what_the_model_tells(self):
        model = self.image_model(value_infos=[ob.value("p", ob.FLOAT, ["batch", 3, 12, 16])])
        report = self.report("inspect", model)
        self.assertEqual(report["model"]["inputs"][0]["shape"], [1, 3, 48, 64])
        self.assertEqual([(d["name"], d["value"], d["reason"]) for d in report["config"]["assumed_dims"]],
                         [("batch", 1, "batch"), ("height", 48, "declared shapes"), ("width", 64, "declared shapes")])
        # A declared shape that does not depend on the input determines nothing.
        self.question("inspect", self.image_model("b.onnx", value_infos=[ob.value("y", ob.FLOAT, ["batch", 3, 1, 1])]))

    def test_metadata(self):
        graph = ob.graph([ob.node("GlobalAveragePool", ["x"], ["y"])], [ob.value("x", ob.FLOAT, ["batch", 3, "height", "width"])],
                         [ob.value("y", ob.FLOAT, None)])

        def entry(key, value):
            return ob.chunk(14, ob.chunk(1, key) + ob.chunk(2, value))

        model = self.write("yolo.onnx", ob.model(graph) + entry("stride", "32") + entry("imgsz", "[480, 640]"))
        report = self.report("inspect", model)
        self.assertEqual(report["model"]["inputs"][0]["shape"], [1, 3, 480, 640])
        self.assertEqual({d["reason"] for d in report["config"]["assumed_dims"]}, {"batch", "metadata imgsz"})

    def test_names_are_never_cut(self):
        names = ["dynamic_dimension_number_%d_of_the_input" % i for i in range(4)]
        model = self.image_model(dims=names)
        text = self.succeed("inspect", model, *(part for n in names for part in ("--dim", n + "=8")))
        for name in names:
            self.assertIn(name + "=8", text)
        self.assertLessEqual(max(map(len, text.splitlines())), 80)

    def test_a_sequence_is_asked_for(self):
        model = self.save("text.onnx", ob.graph([ob.node("Cast", ["ids"], ["y"], to=ob.FLOAT)],
                                                [ob.value("ids", ob.INT64, ["batch_size", "sequence_length"])],
                                                [ob.value("y", ob.FLOAT, None)]))
        self.assertIn("--dim sequence_length=128", self.question("run", model))
        self.succeed("run", model, "-i", "ids=[101, 2023, 102]")
        self.assertEqual(self.report("run", model, "-i", "ids=[101,2023,102]")["model"]["inputs"][0]["shape"], [1, 3])


class Literals(CommandTest):
    def setUp(self):
        super().setUp()
        self.model = self.save("id.onnx", ob.graph(
            [ob.node("Identity", ["x"], ["y"]), ob.node("Identity", ["n"], ["m"]), ob.node("Identity", ["f"], ["g"])],
            [ob.value("x", ob.FLOAT, ["N", 3]), ob.value("n", ob.INT64, []), ob.value("f", ob.BOOL, [2])],
            [ob.value("y", ob.FLOAT, None), ob.value("m", ob.INT64, None), ob.value("g", ob.BOOL, None)]))

    def outputs(self, *values):
        arguments = [part for value in values for part in ("-i", value)]
        self.succeed("run", self.model, "-q", "--output-dir", self.path("out"), *arguments)
        return [ob.read_npy(self.path("out/output_%d.npy" % k)) for k in range(3)]

    def test_forms(self):
        y, m, g = self.outputs("x=[[1,2,3],[4.5,-5e-1,6]]", "n=16000", "f=[true,false]")
        self.assertEqual(y, ("<f4", (2, 3), struct.pack("<6f", 1, 2, 3, 4.5, -0.5, 6)))
        self.assertEqual(m, ("<i8", (), struct.pack("<q", 16000)))
        self.assertEqual(g, ("|b1", (2,), b"\1\0"))
        y, m, g = self.outputs("x=[1,2,3]", "n=9223372036854775807", "f=ones")
        self.assertEqual(y[1:], ((1, 3), struct.pack("<3f", 1, 2, 3)))
        self.assertEqual((m[2], g[2]), (struct.pack("<q", 2 ** 63 - 1), b"\1\1"))
        y, m, g = self.outputs("x=zeros", "n=-3", "f=false")
        self.assertEqual((y[2], m[2], g[2]), (bytes(12), struct.pack("<q", -3), b"\0\0"))
        y, m, g = self.outputs("x=0.25", "n=uniform:5:9")
        self.assertEqual(y[2], struct.pack("<3f", 0.25, 0.25, 0.25))
        self.assertIn(struct.unpack("<q", m[2])[0], range(5, 10))
        y, m, g = self.outputs("x=uniform:10:11")
        self.assertTrue(all(10 <= v < 11 for v in struct.unpack("<3f", y[2])))

    def test_a_file_of_that_name_goes_first(self):
        folder = os.getcwd()
        self.addCleanup(os.chdir, folder)
        os.chdir(self.folder)
        self.write("ones", struct.pack("<3f", 7, 8, 9))
        self.assertEqual(self.outputs("x=ones")[0][2], struct.pack("<3f", 7, 8, 9))

    def test_the_size_of_a_raw_file_tells_a_free_dimension(self):
        self.assertEqual(self.outputs("x=" + self.write("x.bin", bytes(24)))[0][1], (2, 3))

    def test_refused(self):
        for words, value in ((["'n'", "16000.5", "int64"], "n=16000.5"), (["[1, 2]", "[?, 3]"], "x=[[1,2]]"),
                             (["'f'", "'2'", "bool"], "f=2"), (["neither a file", "uniform"], "n=many"), (["'[1,'"], "x=[1,"),
                             (["uniform:2:1"], "x=uniform:2:1"), (["'[[1],2]'"], "x=[[1],2]")):
            self.refuse(FAILED, words, "run", self.model, "-i", value)


class WrongFiles(CommandTest):
    def expect(self, words, data, name="model.onnx"):
        text = self.refuse(FAILED, words, "inspect", self.write(name, data))
        self.assertEqual(len(text.splitlines()), 1)
        self.assertNotIn("wire", text)

    def test_kinds(self):
        def archive(*names):
            return self.archive(names)

        header = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
        model = self.read(self.lenet)
        graph = ob.chunk(1, ob.chunk(1, "input") + ob.chunk(2, "Placeholder"))
        for words, data in (
                (["Git LFS pointer", "git lfs pull", "17000000"],
                 b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 17000000\n"),
                (["gzip", "gunzip"], gzip.compress(model)),
                (["zip archive", "unpack"], archive("model.onnx")),
                (["PyTorch", "torch.onnx.export"], archive("archive/data.pkl", "archive/data/0")),
                ([".npz", "-i"], archive("x.npy")),
                (["JSON"], b' {"nodes": []}\n'),
                (["report of Prony", "compare"], self.succeed("inspect", self.lenet, "--json", "-").encode()),
                (["web page", "raw"], b"\n<!DOCTYPE html>\n<html><body>404</body></html>"),
                (["is empty"], b""),
                (["is incomplete", "get it again"], model[:len(model) // 2]),
                (["text"], b"# LeNet\n\nDownload it from the release page.\n"),
                (["pickle", "skl2onnx"], pickle.dumps({"weights": [1.0]}, 2)),
                (["safetensors", "weights"], struct.pack("<Q", len(header)) + header + bytes(4)),
                (["TensorFlow Lite", "tf2onnx"], b"\x1c\0\0\0TFL3" + bytes(64)),
                ([".ort", ".onnx"], b"\x1c\0\0\0ORTM" + bytes(64)),
                (["GGUF"], b"GGUF\3\0\0\0" + bytes(64)),
                (["HDF5", "Keras"], b"\x89HDF\r\n\x1a\n" + bytes(64)),
                (["TensorFlow graph", "--graphdef"], graph),
                (["NumPy", "-i"], ob.npy("<f4", (1,), bytes(4))),
                (["PNG"], b"\x89PNG\r\n\x1a\n" + bytes(64)),
                (["tar archive"], b"model.onnx".ljust(257, b"\0") + b"ustar\0" + bytes(300))):
            with self.subTest(words[0]):
                self.expect(words, data)
        self.expect(["SavedModel", "--saved-model"], ob.integer(1, 1) + ob.chunk(2, ob.chunk(4, "serve")), "saved_model.pb")
        self.expect(["Core ML"], ob.integer(1, 4) + ob.chunk(2, ob.chunk(1, "x")), "net.mlmodel")

    def archive(self, names):
        data = io.BytesIO()
        with zipfile.ZipFile(data, "w") as file:
            for name in names:
                file.writestr(name, b"x" * 10)
        return data.getvalue()

    def test_folders(self):
        os.mkdir(self.path("empty"))
        os.mkdir(self.path("full"))
        self.write("full/net.onnx", self.read(self.lenet))
        self.refuse(FAILED, ["is a folder", "without an .onnx"], "run", self.path("empty"))
        self.refuse(FAILED, ["is a folder", self.path("full/net.onnx")], "run", self.path("full"))

    def test_external_data(self):
        os.mkdir(self.path("elsewhere"))
        tensor = ob.external("w", ob.FLOAT, [2], "weights.bin")
        model = self.write("net.onnx", ob.model(ob.graph([ob.node("Add", ["x", "w"], ["y"])], [ob.value("x", ob.FLOAT, [2])],
                                                         [ob.value("y", ob.FLOAT, [2])], [tensor])))
        self.refuse(FAILED, ["'weights.bin'", self.folder, "--data-folder DIR"], "run", model)
        self.write("elsewhere/weights.bin", struct.pack("<2f", 1, 2))
        self.succeed("run", model, "--data-folder", self.path("elsewhere"))
        self.write("weights.bin", b"version https://git-lfs.github.com/spec/v1\nsize 8\n")
        self.refuse(FAILED, ["'weights.bin'", "Git LFS pointer"], "run", model)


class Words(CommandTest):
    def test_suggestions(self):
        for wrong, right in (("profle", "profile"), ("inspct", "inspect"), ("becnh", "bench"), ("metric", "metrics")):
            self.refuse(USAGE, ["'%s'" % wrong, "did you mean '%s'?" % right], wrong, "m")
        self.assertNotIn("did you mean", self.refuse(USAGE, ["frobnicate"], "frobnicate"))
        for wrong, right in (("--warmpu", "--warmup"), ("--thread=2", "--threads"), ("--iteratons", "--iterations"),
                             ("--batchs", "--batch"), ("--htlm", "--html")):
            self.refuse(USAGE, ["did you mean '%s'?" % right], "profile", "m", wrong)

    def test_names_of_other_tools(self):
        def config(*options):
            return self.report("profile", self.lenet, *options)["config"]

        got = config("--threads", "1", "--iterations=7", "--warmup-runs", "2", "--batch-size", "3")
        self.assertEqual([got[key] for key in ("intra_op_threads", "runs", "warmup_runs", "batch")], [1, 7, 2, 3])
        self.assertEqual(config("--num-threads=2", "--num-runs", "3")["intra_op_threads"], 2)

    def test_renamed_options(self):
        for old, words in (("--no-help", ["run", "m"]), ("--fresh", ["machine"])):
            self.refuse(USAGE, ["unknown option '%s'" % old], *words, old)
        self.refuse(FAILED, ["nowhere.npy"], "profile", self.lenet, "-r", "2", "--expect", "nowhere.npy")
        self.refuse(USAGE, ["--resume"], "scale", self.lenet, "--weak-scaling", "--resume", "--json", self.path("study.json"))

    def test_options_of_other_commands_are_no_abbreviations(self):
        self.refuse(USAGE, ["'run' does not take --top", "profile"], "run", self.lenet, "--top", "3")  # not --topk
        self.refuse(USAGE, ["'bench' does not take --memory;"], "bench", self.lenet, "--memory", "3")  # not --memory-limit
        self.refuse(USAGE, ["'--no-re' abbreviates several options"], "profile", self.lenet, "--no-re")
        self.assertEqual(self.report("profile", self.lenet, "--ru", "3")["latency_ns"]["runs"], 3)

    def test_a_model_alone_is_profiled(self):
        self.assertEqual(self.report(self.lenet, "-r", "3")["latency_ns"]["runs"], 3)
        self.refuse(FAILED, ["prony profile", "nowhere.onnx", "No such file"], "nowhere.onnx")

    def test_help_and_version_as_words(self):
        self.assertEqual(self.succeed("help"), self.succeed("--help"))
        self.assertEqual(self.succeed("help", "bench"), self.succeed("bench", "--help"))
        self.assertEqual(self.succeed("version"), self.succeed("--version"))
        for word in ("commit", "kernels", "libraries"):
            self.assertRegex(self.succeed("version"), r"(?m)^%s +\S" % word)

    def test_suffixes(self):
        self.succeed("check", self.lenet, "-r", "2", "--threshold", "macs:1G", "flops:1T", "memory:2G", "rss:2GiB", "latency:1h",
                     "p50:10m", "parameters:1M")
        self.refuse(USAGE, ["no unit"], "check", self.lenet, "--threshold", "memory:64")
        self.refuse(USAGE, ["latency"], "check", self.lenet, "--threshold", "latency:3G")
        for text, good in (("200ms", True), ("0.1s", True), ("1e-3m", True), ("2x", False), ("0s", False), ("-1s", False)):
            code = run("profile", self.lenet, "-t", text, "-q")[0]
            self.assertEqual(code, DONE if good else USAGE, text)
        self.assertEqual(self.report("profile", self.lenet, "-r", "1k", "-w", "0")["config"]["runs"], 1000)


class Manual(CommandTest):
    def options(self, text):
        return set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text))

    def test_pages_have_every_option_of_the_help(self):
        for command in ("", "profile", "bench", "extract", "machine"):
            words = [command] if command else []
            text = self.succeed("manual", *words).replace("\\-", "-").replace("\\&", "")
            self.assertTrue(text.startswith(".TH PRONY"), text[:40])
            self.assertEqual(self.options(self.succeed(*words, "--help-all")) - self.options(text), set())
        self.refuse(USAGE, ["nothing"], "manual", "nothing")

    def test_completion(self):
        bash = self.write("prony.bash", self.succeed("completion", "bash").encode())

        def complete(*words):
            script = "source %s; COMP_WORDS=(%s); COMP_CWORD=%d; _prony; printf '%%s\\n' \"${COMPREPLY[@]}\"" % (
                bash, " ".join(shlex.quote(w) for w in words), len(words) - 1)
            done = subprocess.run(["bash", "-c", script], stdout=subprocess.PIPE, text=True, check=True, cwd=self.folder)
            return done.stdout.split()
        self.assertEqual(complete("prony", "prof"), ["profile"])
        self.assertEqual(complete("prony", "bench", "--thr"), ["--threshold"])
        self.assertNotIn("--threshold", complete("prony", "verify", "--"))
        self.assertEqual(complete("prony", "profile", "--level", "op"), ["operator"])
        self.assertEqual(complete("prony", "model.onnx", "-p", "int8-"), ["int8-weights"])
        self.assertEqual([complete("prony", command, "--svg", "e") for command in ("scale", "profile")], [["efficiency="], []])
        self.assertEqual(complete("prony", "inspect", "prony.b"), ["prony.bash"])
        self.assertIn("'*--intra-op=[", self.succeed("completion", "zsh"))
        self.assertIn("-n '__fish_seen_subcommand_from verify' -l no-rewrites", self.succeed("completion", "fish"))
        self.refuse(USAGE, ["tcsh"], "completion", "tcsh")


class Parts(CommandTest):
    def setUp(self):
        super().setUp()

        def branch(name, op):
            return "graph", ob.graph([ob.node(op, ["b", "w"], [name])], outputs=[ob.value(name, ob.FLOAT, None)])

        self.model = self.save("net.onnx", ob.graph(
            [ob.node("Add", ["x", "w"], ["a"]), ob.node("Mul", ["a", "a"], ["b"]), ob.node("ReduceSum", ["x"], ["s"], keepdims=0),
             ob.node("Greater", ["s", "zero"], ["c"]),
             ob.node("If", ["c"], ["d"], then_branch=branch("t", "Add"), else_branch=branch("e", "Sub")),
             ob.node("Neg", ["d"], ["y"])],
            [ob.value("x", ob.FLOAT, ["N", 3])], [ob.value("y", ob.FLOAT, None)],
            [ob.floats("w", [3], [1, 2, 3]), ob.floats("zero", [], [0])]))

    def outputs(self, model, *arguments):
        self.succeed("run", model, "-q", "--output-dir", self.path("out"), *arguments)
        return ob.read_npy(self.path("out/output_0.npy"))

    def test_a_part_computes_what_the_model_does(self):
        whole = self.outputs(self.model, "-b", "2", "-S", "5")
        for cut in (["--from", "b"], ["--from", "a"], ["--from", "b", "--from", "c"], ["--from", "d"], ["--to", "y"]):
            self.assertEqual(self.outputs(self.model, "-b", "2", "-S", "5", *cut), whole, cut)
        self.assertEqual(self.outputs(self.model, "-i", "x=[1,2,3]", "--from", "a", "--to", "b")[2],
                         struct.pack("<3f", 4, 16, 36))

    def test_reports(self):
        report = self.report("profile", self.model, "--from", "a", "--to", "b", "-r", "3")
        self.assertEqual([row["op"] for row in report["layers"]], ["Mul"])
        self.assertTrue(report["model"]["name"].endswith("net.onnx (part)"))
        self.assertEqual(len(self.report("bench", self.model, "--from", "d", "-r", "3")["layers"]), 1)
        self.refuse(USAGE, ["--from", "matrix"], "bench", self.model, "--from", "d", "-x", "1,2")

    def test_extracted_file(self):
        part = self.path("part.onnx")
        text = self.succeed("extract", self.model, "--from", "b", "--from", "c", "-o", part)
        self.assertIn("input   b  float32[1, 3]", text)
        b = "b=" + self.write("b.npy", ob.npy("<f4", (1, 3), struct.pack("<3f", 4, 16, 36)))
        self.assertEqual(self.outputs(part, "-i", b, "-i", "c=true")[2], struct.pack("<3f", -5, -18, -39))
        self.assertEqual(self.outputs(part, "-i", b, "-i", "c=false")[2], struct.pack("<3f", -3, -14, -33))
        # Inputs of the model that the submodel needs stay inputs; unread weights are left out.
        self.succeed("extract", self.model, "--from", "b", "-o", part)
        self.assertEqual([p["name"] for p in self.report("inspect", part)["model"]["inputs"]], ["x", "b"])
        self.succeed("extract", self.model, "--from", "d", "-o", part)
        self.assertNotIn(b"zero", self.read(part))

    def test_external_data_functions_and_declared_types(self):
        self.write("w.bin", struct.pack("<3f", 5, 6, 7))
        function = (ob.chunk(1, "Twice") + ob.chunk(4, "v") + ob.chunk(5, "r") + ob.chunk(7, ob.node("Add", ["v", "v"], ["r"])) +
                    ob.chunk(9, ob.chunk(1, "") + ob.integer(2, 13)) + ob.chunk(10, "own"))
        graph = ob.graph([ob.node("Add", ["x", "w"], ["a"]), ob.node("Twice", ["a"], ["b"], domain="own"),
                          ob.node("Add", ["b", "w"], ["y"])], [ob.value("x", ob.FLOAT, ["N", 3])],
                         [ob.value("y", ob.FLOAT, None)], [ob.external("w", ob.FLOAT, [3], "w.bin")],
                         value_infos=[ob.value("a", ob.FLOAT, ["N", 3])])
        model = self.write("net.onnx", ob.model(graph, domains=[("own", 1)]) + ob.chunk(25, function))
        os.mkdir(self.path("elsewhere"))
        part = self.path("elsewhere/part.onnx")
        self.assertIn("input   a  float32[N, 3]", self.succeed("extract", model, "--from", "a", "-o", part))
        self.assertEqual(self.outputs(part, "-i", "a=[1,1,1]")[2], struct.pack("<3f", 7, 8, 9))

    def test_refused(self):
        out = self.path("part.onnx")
        for words, arguments in ((["'nope'", "has no tensor"], ["--from", "nope"]), (["'w' is a constant"], ["--from", "w"]),
                                 (["'x' is an input"], ["--to", "x"]), (["nothing", "reads 'y'"], ["--from", "y", "--to", "b"]),
                                 (["'t'", "subgraph"], ["--to", "t"])):
            self.refuse(FAILED, words, "extract", self.model, "-o", out, *arguments)
            self.assertFalse(os.path.exists(out))
        self.refuse(USAGE, ["-o OUT.onnx is missing"], "extract", self.model, "--to", "b")
        self.refuse(USAGE, ["--from"], "extract", self.model, "-o", out)


class Counters(CommandTest):
    def test_counters_or_one_line(self):
        code, out, err = run("profile", self.lenet, "-r", "5", "--counters", "--json", self.path("r.json"))
        self.assertEqual((code, err), (DONE, ""))
        with open(self.path("r.json"), encoding="utf-8") as file:
            report = json.load(file)
        self.assertEqual(command_case.Schema("report").problems(report), [])
        if report["counters"]["missing"]:
            self.assertEqual(len([line for line in out.splitlines() if "hardware counters" in line.lower()]), 1)
            self.assertNotIn("counters", report["operators"][0])
        else:
            self.assertGreater(report["operators"][0]["counters"]["instructions"], 0)
        self.assertNotIn("counters", self.report("profile", self.lenet, "-r", "5"))


if __name__ == "__main__":
    command_case.main()
