#!/usr/bin/env python3
"""prony verify: verdicts over ONNX test folders, good and bad ones.

    test_verify.py PRONY SOURCE_DIR [unittest options]
"""
import json
import os
import struct

import command_case
import onnx_bytes as ob
from command_case import DONE, FAILED, VERDICT, CommandTest, run


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
        # 2 remains of [2.1, 2.9].
        narrow = [ob.node("RandomUniform", [], ["u"], shape=[4], low=2.1, high=2.9), ob.node("Cast", ["u"], ["y"], to=ob.INT32)]
        verdict, reason = self.made("range", narrow, ob.INT32, [4], ob.tensor("y", ob.INT32, [4], bytes(16)))
        self.assertEqual((verdict, "random" in reason), ("pass", True))
        # Deep inside a function, with a change behind it.
        function = (ob.chunk(1, "Draw") + ob.chunk(10, "local") + ob.chunk(5, "z") +
                    ob.chunk(7, ob.node("RandomNormal", [], ["z"], shape=[4])) + ob.chunk(9, ob.chunk(1, "") + ob.integer(2, 21)))
        nodes = [ob.node("Draw", [], ["d"], domain="local"), ob.node("Exp", ["d"], ["y"])]
        verdict, reason = self.made("function", nodes, ob.FLOAT, [4], zeros, [function], domains=(("local", 1),))
        self.assertEqual((verdict, "random" in reason), ("pass", True))
        # Only the shape of a random value is used: no output is random.
        nodes = [ob.node("RandomNormal", [], ["d"], shape=[4]), ob.node("Shape", ["d"], ["s"]),
                 ob.node("Cast", ["s"], ["y"], to=ob.FLOAT)]
        self.assertEqual(self.made("size", nodes, ob.FLOAT, [1], ob.floats("y", [1], [5.0]))[0], "fail")

    def test_element_types(self):
        def cast(name, dtype, values, want):
            numbers = [ob.floats("x", [len(values)], values)]
            return self.made(name, [ob.node("Cast", ["x"], ["y"], to=dtype)], dtype, [len(values)], want, initializers=numbers)
        int4 = 22
        # Three elements of 4 bits, low bits first: bits after the last one are ignored.
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
    command_case.main()
