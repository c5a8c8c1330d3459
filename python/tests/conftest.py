"""What the tests share: models that are written here, without the package onnx."""

import os
import pathlib
import sys

os.environ.setdefault("MPLBACKEND", "agg")
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "command"))

import numpy as np  # noqa: E402
import onnx_bytes as ob  # noqa: E402
import pytest  # noqa: E402


@pytest.fixture(scope="session")
def root():
    return ROOT


@pytest.fixture(scope="session")
def digits():
    return str(ROOT / "models" / "digits.onnx")


def mlp_bytes(rows="N", dtype=ob.FLOAT):
    """y = Relu(x w + b), x [N, 8], y [N, 32]"""
    random = np.random.default_rng(1)
    w, b = random.standard_normal((8, 32)), random.standard_normal(32)
    return ob.model(ob.graph([ob.node("Gemm", ["x", "w", "b"], ["h"], name="/fc/Gemm"), ob.node("Relu", ["h"], ["y"], name="/act/Relu")],
                             [ob.value("x", dtype, [rows, 8])], [ob.value("y", dtype, [rows, 32])],
                             [ob.floats("w", [8, 32], w.ravel().tolist()), ob.floats("b", [32], b.tolist())]))


@pytest.fixture(scope="session")
def mlp():
    return mlp_bytes()


def mlp_expected(x):
    random = np.random.default_rng(1)
    w, b = random.standard_normal((8, 32)).astype(np.float32), random.standard_normal(32).astype(np.float32)
    return np.maximum(x @ w + b, 0)


@pytest.fixture
def x():
    return np.random.default_rng(0).standard_normal((3, 8)).astype(np.float32)


def one_node(op, inputs, outputs, opset=13, domain="", **attributes):
    """A model of one node; inputs and outputs: (name, type, dims)"""
    node = ob.node(op, [i[0] for i in inputs], [o[0] for o in outputs], name="node", domain=domain, **attributes)
    return ob.model(ob.graph([node], [ob.value(*i) for i in inputs], [ob.value(*o) for o in outputs]), opset,
                    [(domain, 1)] if domain else [])


def resident_bytes():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
