"""Code written for ONNX Runtime, run on prony.onnxruntime. ort_script.py is such code, unchanged but for the import line; where the package
onnxruntime is installed, both give the same."""

import pathlib
import re
import subprocess
import sys

import numpy as np
import prony
import prony.onnxruntime as ort
import pytest
from conftest import one_node

HERE = pathlib.Path(__file__).resolve().parent
EXPECTED = """\
classification: input 'x' tensor(float) ['N', 8], output 'y' tensor(float) ['N', 32]; (4, 32) float32
batches: [(1, 32), (2, 32), (5, 32)]
providers: ['CPUExecutionProvider']
generation: 6 tokens, int64, the same with and without a cache
io_binding: outputs are where they were bound
io_binding by address: True
ort values: [4, 32] tensor(float) 1 cpu True
run_options: terminated
errors: InvalidArgument InvalidArgument InvalidArgument ValueError RuntimeError NoSuchFile InvalidProtobuf
"""


def run_script(module):
    import os

    text = (HERE / "ort_script.py").read_text(encoding="utf-8").replace("import onnxruntime as ort", f"import {module} as ort")
    folder = os.path.dirname(os.path.dirname(prony.__file__))
    return subprocess.run([sys.executable, "-c", text, str(HERE)], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join([folder, str(HERE)])})


def test_a_script_for_onnx_runtime():
    ran = run_script("prony.onnxruntime")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == EXPECTED


def test_the_same_script_with_onnx_runtime():
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: its answers are those that were written down")
    ran = run_script("onnxruntime")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == EXPECTED


def test_arguments(mlp, x):
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_free_dimension_override_by_name("N", 3)
    options.add_session_config_entry("session.set_denormal_as_zero", "1")
    assert options.get_session_config_entry("session.set_denormal_as_zero") == "1"
    session = ort.InferenceSession(mlp, options, providers=[("CPUExecutionProvider", {"arena_extend_strategy": "kNextPowerOfTwo"})])
    np.testing.assert_allclose(session.run(["y"], {"x": x})[0], ort.InferenceSession(mlp).run(None, {"x": x})[0], rtol=1e-5, atol=1e-6)
    report = session.profile({"x": x}, runs=2)
    assert report.data["config"]["intra_op_threads"] == 1 and report.data["config"]["rewrites"] is False
    options.execution_mode = ort.ExecutionMode.ORT_PARALLEL
    options.inter_op_num_threads = 2
    np.testing.assert_array_equal(ort.InferenceSession(mlp, options).run(["y"], {"x": x})[0], session.run(["y"], {"x": x})[0])
    assert session.get_session_options() is options and session.get_provider_options() == {"CPUExecutionProvider": {}}


def test_providers(mlp):
    with pytest.warns(UserWarning, match="'CUDAExecutionProvider' is not in available"):
        session = ort.InferenceSession(mlp, providers=["CUDAExecutionProvider", "CPUExecutionProvider"])
    assert session.get_providers() == ["CPUExecutionProvider"] == ort.get_available_providers()
    with pytest.raises(RuntimeError, match="Unknown Provider Type: Nothing"):
        ort.InferenceSession(mlp, providers=["Nothing"])
    with pytest.raises(ValueError, match="same length"):
        ort.InferenceSession(mlp, providers=["CPUExecutionProvider"], provider_options=[{}, {}])


@pytest.mark.parametrize("number,name", [(1, "float"), (11, "double"), (10, "float16"), (7, "int64"), (2, "uint8"),
                                         (9, "bool"), (8, "string"),
                                         (16, "bfloat16")])
def test_type_strings(number, name):
    session = ort.InferenceSession(one_node("Identity", [("x", number, [2, "N", None])], [("y", number, None)]))
    [given], [made] = session.get_inputs(), session.get_outputs()
    assert given.type == made.type == f"tensor({name})" and given.shape == [2, "N", None] and made.name == "y"


def test_what_is_not_there(mlp):
    session = ort.InferenceSession(mlp)
    with pytest.raises(ort.Fail, match="unknown device 'cuda'"):
        session.io_binding().bind_output("y", "cuda")
    with pytest.raises(RuntimeError, match="operator libraries"):
        ort.SessionOptions().register_custom_ops_library("lib.so")
    assert isinstance(ort.Fail("x"), prony.Error)
    assert re.fullmatch(r"\d+\.\d+\.\d+", ort.__version__) and ort.get_device() == "CPU"


def test_profiling_writes_a_trace(mlp, x, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = ort.SessionOptions()
    options.enable_profiling = True
    session = ort.InferenceSession(mlp, options)
    session.run(None, {"x": x})
    assert (tmp_path / session.end_profiling()).read_text().lstrip()[0] in "[{"
