#!/usr/bin/env python3
"""Works the figures of `prony profile --accuracy` out again, by numpy in float64, and compares them digit by digit.

    python3 tests/peers/check_accuracy.py --prony BUILD/prony [--precision P] MODEL.onnx...

Every tensor of the model becomes an output of a copy, so that `prony run` saves the values that the profile compares (the model's own
nodes run, unfused). Needs numpy and onnx (to read the file alone). A figure passes if it differs by less than 1e-6 of itself, as sums in
another order make the references differ by 1e-16 of the values and so errors by 1e-9 of themselves; or, where the error is exact
to the last digits of float64 (codes, sums of few terms), by as much of the range as a float64 has digits for.
Exit status: 0 all agree, 1 it could not be checked, 3 a figure differs.
"""
import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import helper, numpy_helper


def attributes(node):
    return {a.name: helper.get_attribute_value(a) for a in node.attribute}


def pads_of(a, rank):
    return a.get("pads", [0] * (2 * rank))


def windows(x, kernel, strides, pads, dilations, fill, ceil=False):
    """[N, C, out h, out w, kernel h, kernel w] of a padded image."""
    shape = []
    padding = [(0, 0), (0, 0)]
    for i in range(2):
        extent = x.shape[2 + i] + pads[i] + pads[2 + i] - (kernel[i] - 1) * dilations[i] - 1
        count = (-(-extent // strides[i]) if ceil else extent // strides[i]) + 1
        shape.append(count)
        more = max(0, (count - 1) * strides[i] + (kernel[i] - 1) * dilations[i] + 1 - x.shape[2 + i] - pads[i] - pads[2 + i])
        padding.append((pads[i], pads[2 + i] + more))
    p = np.pad(x, padding, constant_values=fill)
    s = p.strides
    return np.lib.stride_tricks.as_strided(
        p, (x.shape[0], x.shape[1], *shape, *kernel),
        (s[0], s[1], s[2] * strides[0], s[3] * strides[1], s[2] * dilations[0], s[3] * dilations[1]))


def conv(a, x, w, b=None):
    group = a.get("group", 1)
    view = windows(x, w.shape[2:], a.get("strides", [1, 1]), pads_of(a, 2), a.get("dilations", [1, 1]), 0.0)
    each, out = x.shape[1] // group, w.shape[0] // group
    parts = []
    for g in range(group):
        v = view[:, g * each:(g + 1) * each]
        n, _, h, wide = v.shape[:4]
        rows = v.transpose(0, 2, 3, 1, 4, 5).reshape(n * h * wide, -1)
        parts.append((rows @ w[g * out:(g + 1) * out].reshape(out, -1).T).reshape(n, h, wide, out).transpose(0, 3, 1, 2))
    y = np.concatenate(parts, axis=1)
    return y if b is None else y + b.reshape(1, -1, 1, 1)


def pool(a, x, how):
    kernel = a["kernel_shape"]
    view = windows(x, kernel, a.get("strides", [1, 1]), pads_of(a, 2), a.get("dilations", [1, 1]),
                   -np.inf if how == "max" else 0.0, a.get("ceil_mode", 0))
    if how == "max":
        return view.max(axis=(4, 5))
    assert not any(pads_of(a, 2)) and not a.get("ceil_mode", 0)
    return view.mean(axis=(4, 5))


def gemm(a, x, w, c=None):
    x, w = (x.T if a.get("transA") else x), (w.T if a.get("transB") else w)
    y = np.float64(np.float32(a.get("alpha", 1))) * (x @ w)
    return y if c is None else y + np.float64(np.float32(a.get("beta", 1))) * c


def along(value, rank, axis):
    return value if value.ndim == 0 or value.size == 1 else value.reshape([-1 if i == axis else 1 for i in range(rank)])


def quantize(a, x, scale, zero=np.uint8(0)):
    axis = a.get("axis", 1) % x.ndim if x.ndim else 0
    info = np.iinfo(zero.dtype)
    codes = np.rint(x / along(scale, x.ndim, axis)) + along(zero.astype(np.float64), x.ndim, axis)
    return np.clip(codes, info.min, info.max).astype(zero.dtype)


def dequantize(a, x, scale, zero=None):
    axis = a.get("axis", 1) % x.ndim if x.ndim else 0
    codes = x.astype(np.float64)
    if zero is not None:
        codes = codes - along(zero.astype(np.float64), x.ndim, axis)
    return codes * along(scale, x.ndim, axis)


def softmax(a, x):
    e = np.exp(x - x.max(axis=a.get("axis", -1), keepdims=True))
    return e / e.sum(axis=a.get("axis", -1), keepdims=True)


def reshape(a, x, shape):
    return x.reshape([x.shape[i] if d == 0 else int(d) for i, d in enumerate(shape)])


def flatten(a, x):
    axis = a.get("axis", 1)
    return x.reshape(int(np.prod(x.shape[:axis])), -1)


OPERATORS = {
    "Conv": conv, "Gemm": gemm, "MatMul": lambda a, x, w: x @ w, "Relu": lambda a, x: np.maximum(x, 0),
    "Clip": lambda a, x, low=None, high=None: np.clip(x, low, high), "Add": lambda a, x, y: x + y, "Sub": lambda a, x, y: x - y,
    "Mul": lambda a, x, y: x * y, "Div": lambda a, x, y: x / y, "MaxPool": lambda a, x: pool(a, x, "max"),
    "AveragePool": lambda a, x: pool(a, x, "average"), "GlobalAveragePool": lambda a, x: x.mean(axis=(2, 3), keepdims=True),
    "Concat": lambda a, *x: np.concatenate(x, axis=a["axis"]), "Pad": lambda a, x, pads, value=0.0: np.pad(
        x, np.asarray(pads).reshape(2, -1).T, constant_values=value),
    "Flatten": flatten, "Reshape": reshape, "Identity": lambda a, x: x, "Softmax": softmax, "Tanh": lambda a, x: np.tanh(x),
    "Sigmoid": lambda a, x: 1 / (1 + np.exp(-x)), "Transpose": lambda a, x: x.transpose(a.get("perm")),
    "BatchNormalization": lambda a, x, s, b, m, v: (
        (x - along(m, x.ndim, 1)) / np.sqrt(along(v, x.ndim, 1) + np.float64(np.float32(a.get("epsilon", 1e-5))))
        * along(s, x.ndim, 1) + along(b, x.ndim, 1)),
    "QuantizeLinear": quantize, "DequantizeLinear": dequantize,
}


def wide(x):
    return x.astype(np.float64) if x.dtype.kind == "f" else x


def ulp(r, dtype):
    info = np.finfo(dtype)
    size = np.maximum(np.abs(r), float(info.tiny))
    return np.ldexp(1.0, np.frexp(size)[1] - 1 - info.nmant)


def figures(y, r, scale, zero):
    units = 1.0 if y.dtype.kind != "f" else ulp(np.maximum(np.abs(r), np.abs(y)), y.dtype)
    y, r = y.astype(np.float64), r.astype(np.float64)
    if scale is not None:
        y, r, units = (y - zero) * scale, (r - zero) * scale, scale
    e = np.abs(y - r)
    span = r.max() - r.min() if r.max() > r.min() else abs(r.max())
    found = {"max_abs": e.max(), "range": span, "ulp": (e / units).max(), "elements": e.size,
             "max_rel": 0.0 if e.max() == 0 else e.max() / span, "beyond": (e > 1e-3 * span).mean()}
    if e.any() and r.any():
        found["snr_db"] = 10 * math.log10((r * r).sum() / (e * e).sum())
    return found, np.abs(r).max()


def compare(name, kind, wanted, largest, got):
    """Lines that report differences."""
    noise = 64 * np.finfo(np.float64).eps * largest  # of the references, whose sums have another order
    for key, value in wanted.items():
        have = got.get(key)
        if have is None:
            yield f"{name} {kind}.{key}: missing, wanted {value!r}"
            continue
        slack = 1e-6 * abs(value)
        if key == "max_abs" or key == "range":
            slack += noise
        elif key == "max_rel":
            slack += noise / wanted["range"] if wanted["range"] else 0
        elif key == "ulp":
            slack += 1e-4 * abs(value) + 1e-6
        elif key == "snr_db":
            slack = 1e-5
        if abs(have - value) > slack:
            yield f"{name} {kind}.{key}: {have!r}, numpy {value!r}"


def check(prony, path, precision, folder):
    model = onnx.load(str(path))
    graph = model.graph
    inputs = {i.name for i in graph.initializer}
    known = {v.name for v in graph.output}
    for node in graph.node:
        if node.op_type == "Constant":
            continue
        for name in node.output:
            if name and name not in known:
                graph.output.append(helper.make_empty_tensor_value_info(name))
    copy = folder / "copy.onnx"
    onnx.save(model, str(copy))
    options = ["--no-rewrites", "-x", "1", "-b", "1"] + (["-p", precision] if precision else [])
    feeds = {}
    rng = np.random.default_rng(7)
    for i in graph.input:
        if i.name in inputs:
            continue
        shape = [d.dim_value or 1 for d in i.type.tensor_type.shape.dim]
        feeds[i.name] = rng.uniform(-1, 1, shape).astype(np.float32)
        np.save(folder / f"in_{len(feeds)}.npy", feeds[i.name])
        options += ["-i", f"{i.name}={folder}/in_{len(feeds)}.npy"]
    subprocess.run([prony, "run", str(copy), "--output-dir", str(folder / "out"), "-q", *options], check=True)
    report = json.loads(subprocess.run([prony, "profile", str(copy), "-r", "1", "-w", "0", "--accuracy", "--json", "-", *options],
                                       check=True, capture_output=True, text=True).stdout)
    measured = dict(feeds)
    for k, out in enumerate(graph.output):
        measured[out.name] = np.load(folder / "out" / f"output_{k}.npy")
    constants = {i.name: numpy_helper.to_array(i) for i in graph.initializer}
    chain = {name: wide(x) for name, x in {**constants, **feeds}.items()}
    errors = {layer["name"]: layer["error"] for layer in report["layers"]}
    compared, problems = 0, []
    for node in graph.node:
        a = attributes(node)
        if node.op_type == "Constant":
            constants[node.output[0]] = numpy_helper.to_array(a["value"])
            chain[node.output[0]] = wide(constants[node.output[0]])
            continue
        if node.op_type not in OPERATORS:
            raise SystemExit(f"{path}: {node.op_type} is not written in numpy here")
        run = OPERATORS[node.op_type]
        names = [n for n in node.input]
        own = run(a, *[wide(constants[n] if n in constants else measured[n]) if n else None for n in names])
        chain[node.output[0]] = run(a, *[chain[n] if n else None for n in names])
        error = errors.get(node.name, {})
        if "own" not in error:
            continue
        scale = zero = None
        if node.op_type == "QuantizeLinear" and constants[names[1]].size == 1:
            scale = float(constants[names[1]])
            zero = float(constants[names[2]]) if len(names) > 2 else 0.0
        y = measured[node.output[0]]
        for kind, r in (("own", own), ("accumulated", chain[node.output[0]])):
            wanted, largest = figures(y, r, scale, zero)
            if node.op_type == "QuantizeLinear":
                largest = 0
            problems += compare(f"{node.name} ({node.op_type})", kind, wanted, largest, error[kind])
            compared += len(wanted)
    return compared, problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prony", required=True)
    parser.add_argument("--precision")
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    args = parser.parse_args()
    failed = False
    for path in args.models:
        with tempfile.TemporaryDirectory() as folder:
            compared, problems = check(args.prony, path, args.precision, pathlib.Path(folder))
        print(f"{path.name}: {compared} figures, {len(problems)} differ")
        for line in problems[:20]:
            print("  " + line)
        failed |= bool(problems) or compared == 0
    return 3 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
