"""Makes a model of what one step of a language model's decoder does with weights: a row of activations through the
matrix products of every layer.

    /usr/bin/python3 models/decoder_step.py --out FILE [--layers 12] [--width 768] [--rows 1] [--bits 0]

A layer is x + proj(qkv(norm(x))) and x + down(gelu(up(norm(x)))), as in GPT-2 without the attention over former tokens, which reads no
weights. Weights are random. --bits 2, 4 or 8: products are MatMulNBits of com.microsoft, in blocks of 32 with zero points.
"""
import argparse

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Maker:
    def __init__(self, bits):
        self.bits, self.nodes, self.tensors, self.random = bits, [], [], np.random.default_rng(0)

    def constant(self, name, array):
        self.tensors.append(numpy_helper.from_array(array, name))
        return name

    def node(self, op, inputs, output, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [output], name=output, **attributes))
        return output

    def product(self, x, name, depth, columns):
        if not self.bits:
            weights = (self.random.standard_normal((depth, columns), dtype=np.float32) * 0.02)
            y = self.node("MatMul", [x, self.constant(name + ".weight", weights)], name + ".product")
        else:
            blocks = depth // 32
            codes = self.random.integers(0, 256, (columns, blocks, 4 * self.bits), dtype=np.uint8)
            scales = np.full((columns, blocks), 0.04 / 2**self.bits, np.float32)
            zeros = self.random.integers(0, 256, (columns, (blocks * self.bits + 7) // 8), dtype=np.uint8)
            y = self.node("MatMulNBits", [x, self.constant(name + ".codes", codes), self.constant(name + ".scales", scales),
                                          self.constant(name + ".zeros", zeros)], name + ".product", domain="com.microsoft",
                          K=depth, N=columns, bits=self.bits, block_size=32)
        return self.node("Add", [y, self.constant(name + ".bias", np.zeros(columns, np.float32))], name)

    def norm(self, x, name, width):
        scale, bias = np.ones(width, np.float32), np.zeros(width, np.float32)
        return self.node("LayerNormalization", [x, self.constant(name + ".scale", scale), self.constant(name + ".shift", bias)],
                         name, axis=-1)

    def layer(self, x, name, width):
        qkv = self.product(self.norm(x, name + "/norm1", width), name + "/qkv", width, 3 * width)
        v = self.node("Slice", [qkv, "start", "end", "axis"], name + "/value")
        x = self.node("Add", [x, self.product(v, name + "/proj", width, width)], name + "/sum1")
        up = self.product(self.norm(x, name + "/norm2", width), name + "/up", width, 4 * width)
        up = self.node("Gelu", [up], name + "/gelu", domain="com.microsoft")
        return self.node("Add", [x, self.product(up, name + "/down", 4 * width, width)], name + "/sum2")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--rows", type=int, default=1)
    parser.add_argument("--bits", type=int, default=0)
    options = parser.parse_args()
    m = Maker(options.bits)
    for name, value in ("start", 2 * options.width), ("end", 3 * options.width), ("axis", 1):
        m.constant(name, np.array([value], np.int64))
    x = "x"
    for i in range(options.layers):
        x = m.layer(x, f"layer{i}", options.width)

    def value(name):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, [options.rows, options.width])

    graph = helper.make_graph(m.nodes, "decoder_step", [value("x")], [value(x)], m.tensors)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), options.out)


if __name__ == "__main__":
    main()
