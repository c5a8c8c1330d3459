"""Makes int8 forms of some test models: QuantizeLinear/DequantizeLinear pairs (QDQ) around every operator.

    /usr/bin/python3 models/quantize_models.py --out DIR --packages DIR [NAME ...]     (no NAME: all of them)
    /usr/bin/python3 models/quantize_models.py --list

Each model is exported with its BatchNormalization folded, run once in ONNX Runtime (PACKAGES holds node_modules) with
every intermediate value as an output, and rewritten with the ranges seen. Weights become int8 with one scale per output
channel, biases int32 with the product of the input's and the weight's scale, activations uint8 with a zero point or
int8 without. An activation function's input is not quantised, and operators that only move values keep the scale of
their input. These are the conventions of ONNX Runtime's own quantizer, its "reduce_range" included: weights stay
within +-64, because the pairwise 16-bit sums of its AVX2 kernels would saturate.

The forms with "_pow2" have all scales rounded up to powers of two. Then every product and sum is exact in float32 and in
integers alike, so that any two correct engines must give the same bits. Scales of any size leave values next to a
rounding boundary that depend on the order of the sums, and a network of random weights grows one such value, unseen
at first, into several steps at its outputs.
"""
import argparse
import copy
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import torch
from onnx import helper, numpy_helper

import export_models

RUNNER = pathlib.Path(__file__).resolve().parent / "ort_run.mjs"
CALIBRATION_BATCH = 8
WEIGHTED = {"Conv", "Gemm"}
MOVING = {"MaxPool", "Flatten", "Reshape"}  # the output holds values of the input, in the input's scale
CLAMPING = {"Relu", "Clip"}  # the range of what is stored after it is all that matters

WEIGHT_LIMIT = 64

# name of the int8 form: (float model, type of activations, scales are powers of two)
MODELS = {
    "small_cnn_int8": ("small_cnn", np.int8, False),
    "small_cnn_int8_pow2": ("small_cnn", np.int8, True),
    "mobilenet_v2_int8": ("mobilenet_v2", np.uint8, False),
    "mobilenet_v2_int8_pow2": ("mobilenet_v2", np.uint8, True),
    "resnet18_int8": ("resnet18", np.uint8, False),
    "resnet18_int8_pow2": ("resnet18", np.uint8, True),
    "resnet50_int8": ("resnet50", np.uint8, False),
    "resnet50_int8_pow2": ("resnet50", np.uint8, True),
}


def calibrate(model, inputs, packages, folder):
    """The range (low, high), zero included, of every activation in a run on the inputs."""
    names = list(dict.fromkeys([out for node in model.graph.node for out in node.output]))
    probe = copy.deepcopy(model)
    del probe.graph.output[:]
    probe.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in names)
    onnx.save(probe, str(folder / "probe.onnx"))
    np.save(folder / "calibration.npy", inputs)
    source = model.graph.input[0].name
    subprocess.run(["node", str(RUNNER), str(packages), str(folder / "probe.onnx"), str(folder / "values"),
                    f"{source}={folder / 'calibration.npy'}"], check=True)
    values = {source: inputs}
    values.update((name, np.load(folder / "values" / f"output_{k}.npy")) for k, name in enumerate(names))
    return {name: (min(0.0, float(v.min())), max(0.0, float(v.max()))) for name, v in values.items()
            if v.dtype == np.float32}


class Quantizer:
    """Rewrites one graph; nodes come out in the order of the source."""

    def __init__(self, graph, ranges, dtype, pow2):
        self.graph, self.ranges, self.dtype, self.pow2 = graph, ranges, dtype, pow2
        self.weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
        self.readers = {}
        for node in graph.node:
            for name in node.input:
                self.readers.setdefault(name, []).append(node)
        self.nodes, self.constants, self.stored, self.scales = [], {}, {}, {}

    def constant(self, name, array):
        self.constants[name] = numpy_helper.from_array(np.asarray(array), name)
        return name

    def fitted(self, scale):
        return np.exp2(np.ceil(np.log2(scale))).astype(np.float32) if self.pow2 else np.float32(scale)

    def activation_scale(self, low, high):
        """Scale and zero point that cover [low, high]."""
        if self.dtype is np.int8:
            return self.fitted(max(-low, high) / 127), np.int8(0)
        scale = self.fitted((high - low) / 255)
        return scale, np.uint8(np.clip(np.rint(-low / scale), 0, 255))

    def pair(self, name, scale, zero_point):
        """Stores an activation in 8 bits; what reads it reads it from there."""
        self.scales[name] = (scale, zero_point)
        parts = [self.constant(f"{name}_scale", scale), self.constant(f"{name}_zero_point", zero_point)]
        self.nodes.append(helper.make_node("QuantizeLinear", [name, *parts], [f"{name}_q"], f"{name}_QuantizeLinear"))
        self.nodes.append(
            helper.make_node("DequantizeLinear", [f"{name}_q", *parts], [f"{name}_dq"], f"{name}_DequantizeLinear"))
        self.stored[name] = f"{name}_dq"

    def dequantized(self, name, array, scale):
        """A constant of integers with one scale per row."""
        parts = [self.constant(f"{name}_q", array), self.constant(f"{name}_scale", scale)]
        self.nodes.append(helper.make_node("DequantizeLinear", parts, [f"{name}_dq"], f"{name}_DequantizeLinear", axis=0))
        return f"{name}_dq"

    def weighted_inputs(self, node):
        """Weights and bias of a Conv, or of a Gemm with transposed weights, as int8 and int32."""
        weight = self.weights[node.input[1]]
        scale = self.fitted(np.abs(weight).reshape(len(weight), -1).max(1) / WEIGHT_LIMIT)
        per_row = scale.reshape(-1, *[1] * (weight.ndim - 1))
        names = [self.dequantized(node.input[1], np.rint(weight / per_row).astype(np.int8), scale)]
        if len(node.input) > 2:
            scale = self.scales[node.input[0]][0] * scale
            bias = np.rint(self.weights[node.input[2]].astype(np.float64) / scale).astype(np.int32)
            names.append(self.dequantized(node.input[2], bias, scale))
        return names

    def add(self, node):
        changed = copy.deepcopy(node)
        if not node.input:  # a Constant, such as a bound of Clip
            self.nodes.append(changed)
            return
        changed.input[0] = self.stored.get(node.input[0], node.input[0])
        if node.op_type in WEIGHTED:
            changed.input[1:] = self.weighted_inputs(node)
        else:
            changed.input[1:] = [self.stored.get(name, name) for name in node.input[1:]]
            for name in node.input[1:]:
                if name in self.weights:
                    self.constant(name, self.weights[name])
        self.nodes.append(changed)
        out = node.output[0]
        readers = self.readers.get(out, [])
        if len(readers) == 1 and readers[0].op_type in CLAMPING:
            return
        kept = self.scales.get(node.input[0]) if node.op_type in MOVING else None
        self.pair(out, *(kept or self.activation_scale(*self.ranges[out])))

    def run(self):
        source = self.graph.input[0].name
        self.pair(source, *self.activation_scale(*self.ranges[source]))
        for node in self.graph.node:
            self.add(node)
        for value in self.graph.output:
            value.name = self.stored[value.name]
        del self.graph.node[:]
        self.graph.node.extend(self.nodes)
        del self.graph.initializer[:]
        self.graph.initializer.extend(self.constants.values())


def quantize(name, out, packages):
    source, dtype, pow2 = MODELS[name]
    spec = copy.copy(export_models.MODELS[source])
    spec.keep_bn = False
    with tempfile.TemporaryDirectory(prefix="prony-quantize-") as folder:
        folder = pathlib.Path(folder)
        model = onnx.load(str(export_models.export(source, spec, folder)[0]))
        torch.manual_seed(export_models.SEED + 1)
        ranges = calibrate(model, spec.inputs(CALIBRATION_BATCH)[0].numpy(), packages, folder)
        Quantizer(model.graph, ranges, dtype, pow2).run()
    onnx.checker.check_model(model)
    path = out / f"{name}.onnx"
    partial = path.with_suffix(".part")
    onnx.save(model, str(partial))
    partial.rename(path)
    return path


def main():
    parser = argparse.ArgumentParser(description="Makes int8 QDQ forms of test models.")
    parser.add_argument("--out", type=pathlib.Path, metavar="DIR", help="folder for NAME.onnx; made if absent")
    parser.add_argument("--packages", type=pathlib.Path, metavar="DIR", help="folder that holds node_modules")
    parser.add_argument("--list", action="store_true", help="names the models and stops")
    parser.add_argument("names", nargs="*", metavar="NAME")
    args = parser.parse_args()
    if args.list:
        print("\n".join(MODELS))
        return
    unknown = [name for name in args.names if name not in MODELS]
    if unknown or not args.out or not args.packages:
        parser.error(f"no such model: {', '.join(unknown)}" if unknown else "--out and --packages are required")
    torch.set_num_threads(1)
    args.out.mkdir(parents=True, exist_ok=True)
    for name in args.names or MODELS:
        path = quantize(name, args.out, args.packages)
        print(f"{name:20} {path.stat().st_size / 1e6:8.2f} MB", flush=True)


if __name__ == "__main__":
    sys.exit(main())
