#!/usr/bin/env python3
"""quantize -p int4-weights and int8-weights, with the decoders of models/export_decoders.py: what is written, that it generates, and
that ONNX Runtime computes the same. That last test needs ONNX Runtime's library, by PRONY_ORT_LIB; it is skipped without.

    test_quantize_weights_command.py PRONY SOURCE_DIR [unittest options]
"""
import json
import os
import unittest

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

    def test_refusals(self):
        model = decoders.export(self.path("gpt2.onnx"), "gpt2")
        out = ("-o", self.path("none.onnx"))
        self.refuse(USAGE, ["--block"], "quantize", model, "-p", "int4-weights", "--block", "8", *out)
        self.refuse(USAGE, ["'--block' needs 16, 32, 64, 128 or 256, got '48'"], "quantize", model, "-p", "int4-weights", "--block",
                    "48", *out)
        self.refuse(USAGE, ["--search-scales need -p int4-weights"], "quantize", model, "--search-scales", *out)
        self.refuse(USAGE, ["--calibrate", "need -p int8"], "quantize", model, "-p", "int4-weights", "--calibrate", "x.npz", *out)
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
