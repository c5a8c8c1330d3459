#!/usr/bin/env python3
"""quantize -p int4-weights and int8-weights, with the decoders of models/export_decoders.py: what is written, that it generates, and
that ONNX Runtime computes the same. That last test needs ONNX Runtime's library, by PRONY_ORT_LIB; it is skipped without.

    test_quantize_weights_command.py PRONY SOURCE_DIR [unittest options]
"""
import json
import os
import struct
import unittest
import zipfile

import command_case
import decoders
import onnx_bytes as ob
from command_case import FAILED, USAGE, CommandTest

DIMS = ("--dim", "batch_size=2", "--dim", "sequence_length=5", "--dim", "past_sequence_length=3", "--dim",
        "past_sequence_length + sequence_length=8")
WAYS = ((), ("--zero-points",), ("--search-scales", "--block", "64"))


class QuantizeWeights(CommandTest):
    def quantized(self, model, precision, *options):
        out = self.path("out.onnx")
        self.text = self.succeed("quantize", model, "-p", precision, "-o", out, *options)
        return out

    def ids(self, model):
        return self.succeed("run", model, "--generate", "new=12", "--prompt-ids", "1,2,3,4,5")

    def test_decoders_generate(self):
        for kind, layers in (("gpt2", 25), ("llama", 29), ("gpt2-no-cache", 25)):
            model = decoders.export(self.path(kind + ".onnx"), kind, "4")
            made = self.quantized(model, "int8-weights")
            self.assertIn("%d layers with 8-bit weights in blocks of 32" % layers, self.text)
            self.assertEqual(self.ids(made).split(",")[0], self.ids(model).split(",")[0], kind)
            for way in WAYS:
                four = self.quantized(model, "int4-weights", *way)
                self.assertLess(os.path.getsize(four), 0.36 * os.path.getsize(model))  # tables of GPT-2 stay
                self.assertEqual(len(self.ids(four).split(",")), 12)
                self.assertEqual(self.read(four).count(b"MatMulNBits"), layers)

    def test_better_scales_change_less(self):
        model = decoders.export(self.path("llama.onnx"), "llama")
        changes = []
        for way in ((), ("--search-scales",), ("--search-scales", "--zero-points")):
            self.quantized(model, "int4-weights", *way)
            changes.append(float(self.text.split("change by ")[1].split(" %")[0]))
        self.assertEqual(changes, sorted(changes, reverse=True))
        self.assertLess(changes[1], changes[0])

    def test_int4_weights_of_a_session_are_near(self):
        """The precision int4-weights rounds the same weights in blocks of 32."""
        model = decoders.export(self.path("gpt2.onnx"), "gpt2", "4")
        dims = (*DIMS, "-q")
        self.succeed("run", model, *dims, "--output-dir", self.path("floats"))
        self.succeed("run", self.quantized(model, "int4-weights"), *dims, "--output-dir", self.path("file"))
        self.succeed("run", model, "-p", "int4-weights", *dims, "--output-dir", self.path("session"))
        floats, file, session = (ob.read_npy(self.path(name + "/output_0.npy"))[2] for name in ("floats", "file", "session"))

        def distance(a, b):
            return (sum((p - q) ** 2 for p, q in zip(a, b)) / len(a)) ** 0.5
        self.assertLess(distance(file, floats), 1.5 * distance(session, floats))

    def uneven(self, name):
        """A decoder whose RMSNorms make every fifth channel ten times as large, and ids to read."""
        data = bytearray(self.read(decoders.export(self.path("even.onnx"), "llama", "4")))
        at, norms = 0, 0
        while (at := data.find(b".weight\x4a", at + 1)) >= 0:
            if b"norm" not in data[at - 7:at]:
                continue
            raw = at + 8 + len(ob.varint(4 * 128))
            self.assertEqual(bytes(data[at + 8:raw]), ob.varint(4 * 128))
            for k in range(0, 128, 5):
                data[raw + 4 * k:raw + 4 * k + 4] = struct.pack("<f", 10.0)
            norms += 1
        self.assertEqual(norms, 9)
        with open(self.path(name), "wb") as file:
            file.write(data)
        ids = [(7919 * k * k + 31 * k) % 1000 for k in range(400)]
        with open(self.path("ids.npy"), "wb") as file:
            file.write(ob.npy("<i8", [2, 200], struct.pack("<400q", *ids)))
        return self.path(name), self.path("ids.npy")

    def outputs(self, model):
        self.succeed("run", model, *DIMS, "-q", "--seed", "3", "--output-dir", self.path("o"))
        _, _, raw = ob.read_npy(self.path("o/output_0.npy"))
        return struct.unpack("<%df" % (len(raw) // 4), raw)

    def test_calibration_follows_the_activations(self):
        model, ids = self.uneven("uneven.onnx")
        exact, errors, files = self.outputs(model), [], []
        for way in ((), ("--search-scales",), ("--calibrate", ids), ("--calibrate", ids, "--max-length", "64", "-x", "2")):
            made = self.outputs(self.quantized(model, "int4-weights", *way))
            errors.append(sum((a - b) ** 2 for a, b in zip(exact, made)) ** 0.5)
            files.append(self.read(self.path("out.onnx")))
        self.assertLess(errors[2], 0.9 * errors[1])
        self.assertLess(errors[2], 0.9 * errors[0])
        self.assertNotEqual(files[2], files[3])  # other windows
        self.assertIn("weights   weighted  layer", self.text)
        lines = [line.split() for line in self.text.splitlines() if line.endswith("(MatMul)")]
        self.assertEqual(len(lines), 29)
        self.assertGreater(sum(float(line[2]) < float(line[0]) for line in lines), 20)  # the weighted error, beside the plain one
        self.quantized(model, "int4-weights", "--calibrate", ids, "-x", "2")
        self.assertEqual(self.read(self.path("out.onnx")), files[2])

    def test_samples_calibrate_other_models(self):
        weights = [((37 * i * i + 11 * i) % 101 - 50) / 50 for i in range(32 * 8)]
        nodes = [ob.node("MatMul", ["x", "w"], ["y"], "product"), ob.node("MatMul", ["y", "v"], ["z"], "last")]
        model = self.save("m.onnx", ob.graph(nodes, inputs=[ob.value("x", ob.FLOAT, ["n", 32])],
                                             outputs=[ob.value("z", ob.FLOAT, ["n", 2])],
                                             initializers=[ob.floats("w", [32, 8], weights), ob.floats("v", [8, 2], weights[:16])]))
        rows = [((17 * i) % 23 - 11) * (20 if i % 4 == 0 else 1) for i in range(6 * 32)]
        samples = self.path("samples.npz")
        with zipfile.ZipFile(samples, "w") as file:
            file.writestr("x.npy", ob.npy("<f4", [6, 32], struct.pack("<%df" % len(rows), *rows)))
        self.quantized(model, "int4-weights", "--calibrate", samples)
        self.assertRegex(self.text, r"[0-9.]+ % +[0-9.]+ %  product \(MatMul\)")
        self.assertIn("stays in float: last (MatMul); K is 8, wanted 16 or more", self.text)
        other = self.path("other.npz")
        for name, dims, values, words in (("q", [6, 16], rows[:96], ["input 'x'", "[1, 16]"]), ("x", [0, 32], [], ["other.npz"]),
                                          ("x", [6, 32], rows[:-1] + [float("nan")], ["product", "NaN"])):
            with zipfile.ZipFile(other, "w") as file:
                file.writestr(name + ".npy", ob.npy("<f4", dims, struct.pack("<%df" % len(values), *values)))
            self.refuse(FAILED, words, "quantize", model, "-p", "int4-weights", "--calibrate", other, "-o", self.path("none.onnx"))
        self.assertFalse(os.path.exists(self.path("none.onnx")))

    def test_calibration_refusals(self):
        model = decoders.export(self.path("llama.onnx"), "llama")
        out = ("-p", "int4-weights", "-o", self.path("none.onnx"))
        with open(self.path("none.npy"), "wb") as file:
            file.write(ob.npy("<i8", [0], b""))
        with open(self.path("floats.npy"), "wb") as file:
            file.write(ob.npy("<f4", [2], struct.pack("<2f", 1, 2)))
        for ids, words in (("1,2,96", ["id 96", "not in the vocabulary", "model.embed_tokens.weight"]),
                           (self.path("none.npy"), ["none.npy", "ids"]),
                           (self.path("floats.npy"), ["floats.npy", "int64 or int32"]), (self.path("absent.npy"), ["absent.npy"]),
                           (self.path("absent.npz"), ["absent.npz"])):
            self.refuse(FAILED, words, "quantize", model, *out, "--calibrate", ids)
        self.refuse(USAGE, ["--calibrate needs ids such as 1,2,3"], "quantize", model, *out, "--calibrate", "1,,2")
        self.refuse(USAGE, ["x.json", "ranges of activations do not help weights"], "quantize", model, *out, "--calibrate", "x.json")
        self.refuse(USAGE, ["--max-length", "--calibrate with token ids"], "quantize", model, *out, "--max-length", "16")
        self.refuse(FAILED, ["not a decoder"], "quantize", self.digits, *out, "--calibrate", "1,2,3")
        self.assertFalse(os.path.exists(self.path("none.onnx")))

    def test_refusals(self):
        model = decoders.export(self.path("gpt2.onnx"), "gpt2")
        out = ("-o", self.path("none.onnx"))
        self.refuse(USAGE, ["--block"], "quantize", model, "-p", "int4-weights", "--block", "8", *out)
        self.refuse(USAGE, ["'--block' needs 16, 32, 64, 128 or 256, got '48'"], "quantize", model, "-p", "int4-weights", "--block",
                    "48", *out)
        self.refuse(USAGE, ["--search-scales need -p int4-weights"], "quantize", model, "--search-scales", *out)
        self.refuse(USAGE, ["--calibrate-method", "need -p int8"], "quantize", model, "-p", "int4-weights", "--calibrate-method", "minmax",
                    *out)
        self.refuse(FAILED, ["nothing to quantize", "has MatMulNBits already"], "quantize", self.quantized(model, "int4-weights"), "-p",
                    "int4-weights", *out)
        self.assertFalse(os.path.exists(self.path("none.onnx")))

    def test_two_gib_are_refused_before_the_work(self):
        """A table of 2 GiB stays, in a file with holes. No weight was looked at: one that is not finite is refused otherwise."""
        rows, columns = 1 << 20, 512

        def save(table):
            return self.save("large.onnx", ob.graph(
                [ob.node("Gather", ["table", "x"], ["h"]), ob.node("MatMul", ["h", "w"], ["y"])], inputs=[ob.value("x", ob.INT64, [1])],
                outputs=[ob.value("y", ob.FLOAT, [1, 16])],
                initializers=[table, ob.floats("w", [columns, 16], [float("nan")] * columns * 16)]))
        with open(self.path("table.bin"), "wb") as file:
            file.truncate(4 * rows * columns)
        out = ("-p", "int4-weights", "-o", self.path("none.onnx"))
        self.refuse(FAILED, ["large.onnx", "quantized, it has 2 GiB or more, the limit of one ONNX file"], "quantize",
                    save(ob.external("table", ob.FLOAT, [rows, columns], "table.bin")), *out)
        self.refuse(FAILED, ["weights 'w'", "not finite"], "quantize",
                    save(ob.floats("table", [2, columns], [0.0] * 2 * columns)), *out)

    def test_onnxruntime_computes_the_same(self):
        library = os.environ.get("PRONY_ORT_LIB")
        if not library:
            raise unittest.SkipTest("PRONY_ORT_LIB is not set")
        for kind in ("gpt2", "llama"):
            model = decoders.export(self.path(kind + ".onnx"), kind, "4")
            for precision, way in [("int4-weights", way) for way in WAYS] + [("int8-weights", ())]:
                made = self.quantized(model, precision, *way)
                document = json.loads(self.succeed("versus", made, *DIMS, "-x", "1", "-r", "2", "-t", "10ms", "--processes", "1",
                                                   "--ignore-load", "--ort-lib", library, "--json", "-"))
                self.assertEqual([row["name"] for row in document["outputs"] if not row["agrees"]], [], (kind, precision, way))


if __name__ == "__main__":
    command_case.main()
