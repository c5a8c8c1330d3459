#!/usr/bin/env python3
"""Quantization from the command line: calibration and its file, the model that is written, -p int8 of the commands that run
models, layers that stay in float, and what is refused.

    test_quantize_command.py PRONY SOURCE_DIR [unittest options]
"""
import io
import json
import os
import random
import resource
import struct
import zipfile

import command_case
import onnx_bytes as ob
from command_case import FAILED, USAGE, run


def npz(arrays):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in arrays.items():
            archive.writestr(name + ".npy", data)
    return out.getvalue()


def numbers(count, seed, scale=1.0):
    draw = random.Random(seed)
    return [draw.gauss(0, scale) for _ in range(count)]


class Digits(command_case.CommandTest):
    """On the digits network, whose accuracy is known."""

    def setUp(self):
        super().setUp()
        models = os.path.join(command_case.SOURCE, "models")
        _, _, pixels = ob.read_npy(os.path.join(models, "digits_images.npy"))
        _, _, labels = ob.read_npy(os.path.join(models, "digits_labels.npy"))
        self.pixels = [p / 16 for p in pixels]
        self.model = self.write("digits.onnx", self.read(self.digits))
        self.data = self.write("digits.npz", npz({"image": self.images(360), "labels": ob.npy("|u1", [360], labels)}))
        self.samples = self.write("samples.npz", npz({"image": self.images(100)}))
        self.kept = self.model + ".calibration.json"
        self.out = self.path("out.onnx")

    def images(self, count, first=None):
        values = self.pixels[:64 * count]
        if first is not None:
            values[0] = first
        return ob.npy("<f4", [count, 1, 8, 8], struct.pack("<%df" % len(values), *values))

    def quantize(self, *options):
        return self.succeed("quantize", self.model, "-p", "int8", "-o", self.out, "--calibrate", self.samples, *options)

    def top1(self, *arguments):
        return self.report("eval", *arguments, "-x", "1")["evaluation"]["value"]

    def test_accuracy_stays(self):
        self.assertIn("4 of 4 layers with weights compute on int8", self.quantize())
        floats = self.top1(self.model, self.data)
        for method in ("minmax", "percentile", "entropy"):
            self.quantize("--calibrate-method", method)
            self.assertEqual(json.loads(self.read(self.kept))["method"], method)
            limit = 0.003 if method == "minmax" else 0.01  # what others cut off is their choice
            self.assertLessEqual(abs(self.top1(self.out, self.data) - floats), limit, method)

    def test_everything_runs_on_integers(self):
        self.quantize()
        report = self.report("profile", self.out, "-r", "2", "-w", "0", "-x", "1")
        floats = [o["name"] for o in report["operators"] if "f32" in o["kernel"]]
        self.assertEqual(floats, [])
        self.assertEqual(sum("int8_native" in o["kernel"] for o in report["operators"]), 6)  # products and pools
        self.assertFalse([r for o in report["operators"] for r in o.get("reasons", []) if "stays in float" in r["reason"]])
        self.assertLess(report["model"]["parameter_bytes"], 0.4 * self.report("inspect", self.model)["model"]["parameter_bytes"])

    def test_the_calibration_is_used_again(self):
        self.quantize()
        first = self.read(self.out)
        found = json.loads(self.read(self.kept))
        self.assertEqual(command_case.Schema("calibration").problems(found), [])
        self.assertEqual(found["samples"], 100)
        for row in found["values"]:
            self.assertTrue(row["low"] <= 0 <= row["high"] and row["scale"] > 0 and 0 <= row["zero_point"] <= 255, row)
        again = self.write("again.calibration.json", self.read(self.kept))
        os.remove(self.kept)
        self.succeed("quantize", self.model, "-o", self.out, "--calibrate", again)
        self.assertEqual(self.read(self.out), first)
        self.assertFalse(os.path.exists(self.kept))

    def test_in_memory_it_is_the_same_model(self):
        self.quantize("-q")
        image = self.write("one.npy", self.images(1))
        self.succeed("run", self.out, "-q", "-i", "image=" + image, "--output-dir", self.path("a"))
        self.succeed("run", self.model, "-q", "-p", "int8", "--calibrate", self.samples, "-i", "image=" + image,
                     "--output-dir", self.path("b"))
        self.assertEqual(self.read(self.path("a/output_0.npy")), self.read(self.path("b/output_0.npy")))
        report = self.report("profile", self.model, "-p", "int8", "--calibrate", self.kept, "-r", "2", "-x", "1")
        self.assertEqual(report["config"]["precision"], "int8")
        # A model that computes on quantized operators already is taken as it is.
        self.assertEqual(self.report("run", self.out, "-p", "int8")["config"]["precision"], "int8")

    def test_powers_of_two_are_exact(self):
        self.quantize("-q", "--power-of-two")
        image = self.write("all.npy", self.images(360))
        outputs = []
        for extra in ([], ["--no-rewrites"], ["-x", "2"]):
            self.succeed("run", self.out, "-q", "-i", "image=" + image, "--output-dir", self.path("o"), *extra)
            outputs.append(self.read(self.path("o/output_0.npy")))
        self.assertEqual(outputs[0], outputs[1])
        self.assertEqual(outputs[0], outputs[2])

    def test_precisions_side_by_side(self):
        text = self.succeed("eval", self.model, self.data, "-p", "fp32,int8", "--calibrate", self.samples, "-x", "1")
        lines = [line.split() for line in text.splitlines() if line.startswith(("fp32", "int8"))]
        self.assertEqual([line[0] for line in lines], ["fp32", "int8"])
        self.assertEqual(lines[0][1:3], ["99.44", "%"])
        path = self.path("both.json")
        self.succeed("eval", self.model, self.data, "-p", "fp32,int8", "--calibrate", self.samples, "-q", "--json", path)
        both = json.loads(self.read(path))
        self.assertEqual(command_case.Schema("evaluations").problems(both), [])
        self.assertEqual([r["config"]["precision"] for r in both["reports"]], ["fp32", "int8"])
        self.assertLessEqual(abs(both["reports"][0]["evaluation"]["value"] - both["reports"][1]["evaluation"]["value"]), 0.003)
        bench = self.report("bench", self.model, "-p", "fp32,int8", "--calibrate", self.samples, "-r", "3", "-x", "1")
        self.assertEqual([r["config"]["precision"] for r in bench["reports"]], ["fp32", "int8"])
        self.refuse(USAGE, ["one precision"], "eval", self.model, self.data, "-p", "fp32,int8", "--calibrate", self.samples,
                    "--threshold", "top1_accuracy:50%")

    def test_a_study_of_precisions(self):
        """Ranges are determined once, and every process of the study reads them from the file."""
        study = self.report("scale", self.model, "-p", "fp32,int8", "--calibrate", self.samples, "-x", "1", "-r", "3", "--processes", "1")
        self.assertIn("--calibrate", study["plan"]["arguments"])
        self.assertIn(self.kept, study["plan"]["arguments"])
        of = study["plan"]["configurations"]
        measured = {of[r["configuration"]]["precision"] for r in study["results"] if r["processes"]}
        self.assertEqual(measured, {"fp32", "int8"})
        self.refuse(USAGE, ["prony quantize"], "scale", self.model, "-p", "int8", "--calibrate", self.samples, "--keep-accuracy", "1%")

    def test_recommended_with_data(self):
        document = self.report("recommend", self.model, "-p", "fp32,int8", "--calibrate", self.samples, "-r", "5", "-x", "1")
        rows = [row.get("action", "") + row["reason"] for key in ("recommendations", "considered") for row in document[key]
                if row["topic"] == "precision"]
        self.assertTrue(any("int8" in row and "of their range from those of fp32" in row for row in rows), rows)

    def test_the_embedded_network(self):
        report = self.report("profile", "-p", "int8", "-r", "2", "-w", "0", "-x", "1")
        self.assertEqual(report["config"]["precision"], "int8")
        self.assertLessEqual(abs(report["evaluation"]["value"] - 0.9944), 0.003)
        self.assertEqual(sum("int8_native" in o["kernel"] for o in report["operators"]), 6)
        self.refuse(USAGE, ["need a MODEL"], "profile", "-p", "int8", "--calibrate", self.samples)

    def test_layers_stay_in_float(self):
        text = self.quantize("--keep-accuracy", "0.1%")
        kept = [line for line in text.splitlines() if "stays in float" in line]
        self.assertTrue(0 < len(kept) < 4, text)
        self.assertIn("alone it would move the outputs by", kept[0])
        self.assertIn("%d of 4 layers" % (4 - len(kept)), text)
        report = self.report("profile", self.model, "-p", "int8", "--calibrate", self.samples, "--keep-accuracy", "0.1%",
                             "-r", "2", "-x", "1")
        reasons = [r["text"] for o in report["operators"] for r in o.get("reasons", []) if r["reason"] == "stays in float"]
        self.assertEqual(sum("more accuracy than allowed" in text for text in reasons), len(kept))
        self.assertNotIn("stays in float", self.quantize("--keep-accuracy", "50%"))
        self.refuse(FAILED, ["no layer can be quantized", "1e-07 %"], "quantize", self.model, "-o", self.path("none.onnx"),
                    "--calibrate", self.samples, "--keep-accuracy", "0.0000001%")
        self.assertFalse(os.path.exists(self.path("none.onnx")))

    def test_forms_of_data(self):
        self.quantize("-q")
        first = self.calibration()
        os.mkdir(self.path("files"))
        for i in range(100):
            pixels = self.pixels[64 * i:64 * i + 64]
            self.write("files/%03d.npy" % i, ob.npy("<f4", [1, 8, 8], struct.pack("<64f", *pixels)))
        names = "".join("files/%03d.npy\n" % i for i in range(100))
        for data in (self.path("files"), self.write("list.txt", names.encode())):
            self.succeed("quantize", self.model, "-q", "-o", self.out, "--calibrate", data)
            self.assertEqual(self.calibration(), first)

    def calibration(self):
        """The calibration file, without its date."""
        return {key: value for key, value in json.loads(self.read(self.kept)).items() if key != "created"}

    # ---- what is refused ----

    def refused(self, words, data, *options):
        self.refuse(FAILED, words, "quantize", self.model, "-o", self.out, "--calibrate", data, *options)
        self.assertFalse(os.path.exists(self.out))
        self.assertEqual([name for name in os.listdir(self.folder) if "out" in name], [])

    def test_bad_data(self):
        wrong = ob.npy("<f4", [3, 1, 9, 9], bytes(4 * 3 * 81))
        self.refused(["9", "8"], self.write("bad.npz", npz({"image": wrong})))
        self.refused(["no samples"], self.write("bad.npz", npz({"image": ob.npy("<f4", [0, 1, 8, 8], b"")})))
        self.refused(["input 'image'", "NaN", "samples 0 to 0"],
                     self.write("bad.npz", npz({"image": self.images(2, float("nan"))})))
        self.refused(["NaN or infinity"], self.write("bad.npz", npz({"image": self.images(2, float("inf"))})))
        self.refused(["int64"], self.write("bad.npz", npz({"image": ob.npy("<i8", [1, 1, 8, 8], bytes(512))})))
        self.refused(["nowhere.npz"], self.path("nowhere.npz"))
        os.mkdir(self.path("empty"))
        self.refused(["no samples"], self.path("empty"))
        self.assertFalse(os.path.exists(self.kept))

    def test_bad_calibrations(self):
        self.quantize("-q")
        os.remove(self.out)
        good = json.loads(self.read(self.kept))

        at = [row["name"] for row in good["values"]].index("image")

        def changed(key, value):
            bad = json.loads(json.dumps(good))
            bad["values"][at][key] = value
            return self.write("bad.json", json.dumps(bad).encode())

        name = "image"
        for value in (0, -0.5, 1e300, 1e-60):
            self.refused(["bad.json", "scale", name], changed("scale", value))
        self.refused(["bad.json"], self.write("bad.json", self.read(self.kept).replace(b'"scale": ', b'"scale": Infinity, "s": ')))
        for value in (-1, 256):
            self.refused(["bad.json", "zero_point", name, str(value)], changed("zero_point", value))
        self.refused(["bad.json", "zero_point"], changed("zero_point", 1.5))
        self.refused(["bad.json", "low", name], changed("low", 1e9))
        self.refused(["bad.json", "twice"], changed("name", good["values"][0]["name"]))
        self.refused(["no range of", name], changed("name", "another"))
        self.refused(["bad.json", "values"], self.write("bad.json", json.dumps({**good, "values": []}).encode()))
        self.refused(["bad.json", "schema"], self.write("bad.json", json.dumps({**good, "schema": "other"}).encode()))
        self.refused(["bad.json", "method"], self.write("bad.json", json.dumps({**good, "method": "guess"}).encode()))
        self.refused(["bad.json"], self.write("bad.json", b"{"))
        self.refuse(FAILED, ["another model", os.path.basename(self.kept)], "quantize", self.lenet, "-o", self.out, "--calibrate",
                    self.kept)
        self.refused(["--keep-accuracy needs samples"], self.kept, "--keep-accuracy", "1%")

    def test_a_full_disk_leaves_nothing(self):
        self.quantize("-q")
        os.remove(self.out)
        for limit in (100, 8000):
            code, out, err = run("quantize", self.model, "-o", self.out, "--calibrate", self.kept,
                                 prepare=lambda limit=limit: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
            self.assertEqual((code, out), (FAILED, ""), err)
            self.assertIn("out.onnx", err)
            self.assertEqual(sorted(os.listdir(self.folder)),
                             ["digits.npz", "digits.onnx", os.path.basename(self.kept), "samples.npz"])

    def test_a_calibration_that_cannot_be_kept(self):
        os.mkdir(self.kept)
        err = self.refuse(FAILED, [os.path.basename(self.kept)], "quantize", self.model, "-o", self.out, "--calibrate", self.samples)
        self.assertNotIn("warning", err)
        self.assertFalse(os.path.exists(self.out))
        # Running the model continues.
        code, _, err = run("run", self.model, "-p", "int8", "--calibrate", self.samples)
        self.assertEqual(code, 0, err)
        self.assertIn("warning: the calibration was not saved", err)

    def test_usage(self):
        self.refuse(USAGE, ["-o OUT.onnx is missing"], "quantize", self.model, "--calibrate", self.samples)
        self.refuse(USAGE, ["int8"], "quantize", self.model, "-o", self.out, "-p", "int4", "--calibrate", self.samples)
        self.refuse(USAGE, ["minmax, percentile or entropy"], "quantize", self.model, "-o", self.out, "--calibrate-method", "best")
        for value in ("0", "-1%", "100", "half"):
            self.refuse(USAGE, ["--keep-accuracy"], "quantize", self.model, "-o", self.out, "--keep-accuracy", value)
        self.refuse(USAGE, ["-p int8"], "run", self.model, "--calibrate", self.samples)
        self.refuse(USAGE, ["--calibrate DATA"], "run", self.model, "-p", "int8", "--keep-accuracy", "1%")
        self.quantize("-q")
        self.refuse(FAILED, ["nothing to quantize", "quantized operators already"], "quantize", self.out, "-o", self.path("twice.onnx"),
                    "--calibrate", self.samples)


class Graphs(command_case.CommandTest):
    """On graphs written by hand."""

    def weights(self, name, dims, seed, scale=0.5):
        count = 1
        for d in dims:
            count *= d
        return ob.floats(name, dims, numbers(count, seed, scale))

    def block(self, external=False):
        """Two convolutions with normalisations, one with a clamp, a sum, a pool, a concatenation and a product."""
        norm = ["scale", "shift", "mean", "variance"]
        nodes = [ob.node("Conv", ["x", "w1"], ["c1"], "first", pads=[1, 1, 1, 1]),
                 ob.node("BatchNormalization", ["c1", *norm], ["n1"], "norm"),
                 ob.node("Clip", ["n1", "zero", "six"], ["r1"], "clamp"),
                 ob.node("Conv", ["r1", "w2", "b2"], ["c2"], "second", pads=[1, 1, 1, 1]),
                 ob.node("Add", ["c2", "r1"], ["s"], "sum"), ob.node("Relu", ["s"], ["r2"], "relu"),
                 ob.node("Concat", ["r1", "r2"], ["j"], "join", axis=1),
                 ob.node("MaxPool", ["j"], ["p"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
                 ob.node("Flatten", ["p"], ["f"], "flat"), ob.node("Gemm", ["f", "w3", "b3"], ["g"], "dense", transB=1),
                 ob.node("Sigmoid", ["g"], ["y"], "end")]
        constants = [self.weights("w1", [4, 3, 3, 3], 1), self.weights("b2", [4], 2), self.weights("w3", [5, 32], 3),
                     self.weights("b3", [5], 4), ob.floats("scale", [4], [1, 0.5, 0, 2]), self.weights("shift", [4], 5),
                     self.weights("mean", [4], 6), ob.floats("variance", [4], [1, 2, 0.5, 1]), ob.floats("zero", [], [0]),
                     ob.floats("six", [], [6])]
        w2 = numbers(144, 7, 0.3)
        if external:
            self.write("w2.bin", struct.pack("<144f", *w2))
            constants.append(ob.external("w2", ob.FLOAT, [4, 4, 3, 3], "w2.bin"))
        else:
            constants.append(ob.floats("w2", [4, 4, 3, 3], w2))
        return ob.graph(nodes, [ob.value("x", ob.FLOAT, ["N", 3, 4, 4])], [ob.value("y", ob.FLOAT, ["N", 5])], constants)

    def setUp(self):
        super().setUp()
        values = numbers(48 * 20, 0)
        self.x = ob.npy("<f4", [20, 3, 4, 4], struct.pack("<960f", *values))
        self.data = self.write("x.npz", npz({"x": self.x}))
        self.out = self.path("out.onnx")

    def output(self, model, *options):
        self.succeed("run", model, "-q", "-i", "x=" + self.write("x.npy", self.x), "--output-dir", self.path("o"), *options)
        _, dims, data = ob.read_npy(self.path("o/output_0.npy"))
        return struct.unpack("<%df" % (dims[0] * dims[1]), data)

    def test_everything_between_is_on_codes(self):
        model = self.save("net.onnx", self.block())
        self.assertIn("3 of 3 layers", self.succeed("quantize", model, "-o", self.out, "--calibrate", self.data))
        floats, codes = self.output(model), self.output(self.out)
        self.assertLess(max(abs(a - b) for a, b in zip(floats, codes)), 0.05)
        self.assertGreater(max(abs(a - b) for a, b in zip(floats, codes)), 0)
        report = self.report("profile", self.out, "-r", "2", "-x", "1")
        ops = [layer["op"] for layer in report["layers"]]
        self.assertNotIn("BatchNormalization", ops)
        reasons = [r for o in report["operators"] for r in o.get("reasons", []) if r["reason"] == "stays in float"]
        # The sigmoid alone: it reads the quantized value.
        self.assertEqual([o["name"] for o in report["operators"] if o.get("reasons") and reasons[0] in o["reasons"]], ["end"])
        self.assertEqual(len(reasons), 1)
        self.succeed("quantize", model, "-q", "-o", self.out, "--calibrate", self.data, "--power-of-two")
        self.assertEqual(self.output(self.out), self.output(self.out, "--no-rewrites"))

    def test_names_of_outputs_and_captured_values_stay(self):
        """The stored form of a graph output has its name, and a subgraph reads what it read before."""
        branch = [ob.chunk(1, ob.node(op, ["c"], ["z"])) + ob.chunk(2, op) + ob.chunk(12, ob.value("z", ob.FLOAT, None))
                  for op in ("Neg", "Abs")]
        nodes = [ob.node("Conv", ["x", "w"], ["c"], "conv"),
                 ob.node("If", ["yes"], ["y"], "if", then_branch=("graph", branch[0]), else_branch=("graph", branch[1]))]
        graph = ob.graph(nodes, [ob.value("x", ob.FLOAT, [20, 3, 4, 4]), ob.value("yes", ob.BOOL, [])],
                         [ob.value("c", ob.FLOAT, [20, 4, 4, 4]), ob.value("y", ob.FLOAT, [20, 4, 4, 4])],
                         [self.weights("w", [4, 3, 1, 1], 1)])
        model = self.save("net.onnx", graph)
        data = self.write("both.npz", npz({"x": self.x, "yes": ob.npy("|b1", [20], b"\1" * 20)}))
        code, _, err = run("quantize", model, "-q", "-o", self.out, "--calibrate", data, "-b", "20")
        self.assertEqual(code, FAILED, err)  # one truth value for a batch is no sample
        graph = ob.graph(nodes, [ob.value("x", ob.FLOAT, [20, 3, 4, 4])],
                         [ob.value("c", ob.FLOAT, [20, 4, 4, 4]), ob.value("y", ob.FLOAT, [20, 4, 4, 4])],
                         [self.weights("w", [4, 3, 1, 1], 1), ob.tensor("yes", ob.BOOL, [], b"\1")])
        model = self.save("net.onnx", graph)
        self.succeed("quantize", model, "-q", "-o", self.out, "--calibrate", self.data)
        self.succeed("run", self.out, "-q", "-i", "x=" + self.write("x.npy", self.x), "--output-dir", self.path("o"))
        c, y = (struct.unpack("<1280f", ob.read_npy(self.path("o/output_%d.npy" % k))[2]) for k in (0, 1))
        self.assertEqual([-v for v in c], list(y))
        names = [p["name"] for p in self.report("inspect", self.out)["model"]["outputs"]]
        self.assertEqual(names, ["c", "y"])

    def test_external_data_stays_external(self):
        model = self.save("net.onnx", self.block())
        self.succeed("quantize", model, "-q", "-o", self.out, "--calibrate", self.data)
        wanted = self.output(self.out)
        self.assertFalse(os.path.exists(self.out + ".data"))
        nodes = [ob.node("MatMul", ["x", "v"], ["h"], "one"), ob.node("MatMul", ["h", "w"], ["y"], "two")]
        self.write("v.bin", struct.pack("<3072f", *numbers(3072, 8)))
        graph = ob.graph(nodes, [ob.value("x", ob.FLOAT, ["N", 48])], [ob.value("y", ob.FLOAT, ["N", 64])],
                         [ob.external("v", ob.FLOAT, [48, 64], "v.bin"), self.weights("w", [64, 64], 9, 0.1)])
        wide = self.save("wide.onnx", graph)
        rows = self.write("rows.npz", npz({"x": ob.npy("<f4", [20, 48], self.x[-3840:])}))
        self.succeed("quantize", wide, "-q", "-o", self.out, "--calibrate", rows)
        self.assertGreaterEqual(os.path.getsize(self.out + ".data"), 48 * 64 + 64 * 64)
        self.assertLess(os.path.getsize(self.out), 4000)
        self.succeed("run", self.out, "-q")
        self.assertEqual(len(wanted), 100)
        # Small external data is included, with the same results as from one file.
        self.succeed("quantize", self.save("net.onnx", self.block(external=True)), "-q", "-o", self.out, "--calibrate", self.data)
        self.assertEqual(self.output(self.out), wanted)

    def test_without_data(self):
        model = self.save("net.onnx", self.block())
        code, out, err = run("quantize", model, "-o", self.out)
        self.assertEqual(code, 0, err)
        self.assertIn("1 of 3 layers", out)
        self.assertIn("2 of 3 layers with weights stay in float without --calibrate DATA", err)
        floats, codes = self.output(model), self.output(self.out)
        self.assertLess(max(abs(a - b) for a, b in zip(floats, codes)), 0.02)
        self.assertNotEqual(floats, codes)
        conv = ob.graph([ob.node("Conv", ["x", "w"], ["y"], "conv")], [ob.value("x", ob.FLOAT, [1, 3, 4, 4])],
                        [ob.value("y", ob.FLOAT, [1, 4, 4, 4])], [self.weights("w", [4, 3, 1, 1], 1)])
        self.refuse(FAILED, ["without calibration data"], "run", self.save("conv.onnx", conv), "-p", "int8")

    def test_models_that_cannot_be_quantized(self):
        relu = ob.graph([ob.node("Relu", ["x"], ["y"])], [ob.value("x", ob.FLOAT, ["N", 3, 4, 4])],
                        [ob.value("y", ob.FLOAT, ["N", 3, 4, 4])])
        for graph, options, words in ((relu, {}, ["nothing to quantize"]), (self.block(), {"opset": 12}, ["opset 12", "13"])):
            model = self.save("net.onnx", graph, **options)
            self.refuse(FAILED, words, "quantize", model, "-o", self.out, "--calibrate", self.data)
        bad = ob.graph([ob.node("MatMul", ["x", "w"], ["y"], "product")], [ob.value("x", ob.FLOAT, ["N", 3])],
                       [ob.value("y", ob.FLOAT, ["N", 2])], [ob.floats("w", [3, 2], [1, 2, 3, float("inf"), 5, 6])])
        self.refuse(FAILED, ["net.onnx", "'product'", "output channel 1", "not finite"], "quantize", self.save("net.onnx", bad), "-o",
                    self.out)
        self.assertFalse(os.path.exists(self.out))


if __name__ == "__main__":
    command_case.main()
