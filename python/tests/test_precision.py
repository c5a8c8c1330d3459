"""Quantized models and errors beside float64."""

import math
import os

import numpy as np
import prony
import pytest


@pytest.fixture(scope="module")
def samples():
    return np.random.default_rng(1).random((40, 1, 8, 8), np.float32)


def test_quantize(digits, samples, tmp_path):
    path, kept = tmp_path / "out.onnx", tmp_path / "ranges.calibration.json"
    made = prony.quantize(digits, path, calibrate={"image": samples}, keep_calibration=kept)
    assert isinstance(made, prony.Model) and path.exists() and kept.exists()
    assert [row["quantized"] for row in made.layers] == [True] * 4
    assert all(math.isnan(row["error"]) for row in made.layers)
    name = prony.Session(digits).input_names[0]
    floats = prony.Session(digits).run({name: samples})
    codes = prony.Session(made, precision="int8").run({name: samples})
    for key, value in floats.items():
        assert 0 < np.abs(value - codes[key]).max() < 0.1 * (value.max() - value.min())
    again = prony.quantize(digits, calibrate=kept)  # in memory, from the ranges that were kept
    assert np.array_equal(list(prony.Session(again).run({name: samples}).values())[0], list(codes.values())[0])


def test_quantize_without_data(digits):
    made = prony.quantize(digits)
    assert {row["op"]: row["quantized"] for row in made.layers} == {"Conv": False, "Gemm": True}


def test_quantize_weights(digits, tmp_path):
    path = tmp_path / "weights.onnx"
    errors = []
    for options in (dict(bits=8), dict(search_scales=True, zero_points=True), dict(search_scales=True), {}):
        made = prony.quantize_weights(digits, path, **options)
        assert [row["op"] for row in made.layers] == ["Gemm"] and made.layers[0]["quantized"]
        assert path.read_bytes().count(b"MatMulNBits") == 1
        errors.append(made.layers[0]["error"])
    assert errors == sorted(errors) and 0 < errors[0] < 0.02 < errors[-1] < 0.2
    made = prony.quantize_weights(digits, block=64)  # in memory
    image = np.zeros((1, 1, 8, 8), np.float32)
    output, = prony.Session(made).run({"image": image}).values()
    assert output.shape == (1, 10)
    for options, text in ((dict(bits=5), "bits 5: wanted 4 or 8"), (dict(block=24), "block 24: wanted a power of two")):
        with pytest.raises(prony.InvalidArgument, match=text):
            prony.quantize_weights(digits, **options)


def test_what_cannot_be_quantized(digits, samples, tmp_path):
    with pytest.raises(prony.InvalidArgument, match="minmax, percentile or entropy"):
        prony.quantize(digits, calibrate={"image": samples}, method="best")
    with pytest.raises(prony.Error, match="other"):
        prony.quantize(digits, calibrate={"other": samples})
    with pytest.raises(prony.FileError):
        prony.quantize(digits, calibrate=tmp_path / "none.npz")
    bad = samples.copy()
    bad[3, 0, 2, 2] = np.nan
    with pytest.raises(prony.Error, match="holds NaN or infinity"):
        prony.quantize(digits, tmp_path / "never.onnx", calibrate={"image": bad})
    assert not os.path.exists(tmp_path / "never.onnx")
    with pytest.raises(prony.Error, match="quantized model"):
        prony.Session(digits, precision="int8").prepare()


def test_accuracy(digits, samples):
    report = prony.profile(digits, runs=2, accuracy=True)
    errors = report["accuracy"]
    assert errors["compared"] > 0 and 0 < report.metrics["output_error"] < 1e-5
    made = prony.quantize(digits, calibrate={"image": samples})
    coarse = prony.profile(made, runs=2, accuracy=True, reference=digits, accuracy_samples=3)
    assert coarse["accuracy"]["sampled"] <= 4 and coarse.metrics["output_error"] > 1e-4
    assert not prony.compare(report, coarse).ok


def test_against_another_runtime(digits, samples):
    session = prony.Session(digits)
    outputs = session.run({session.input_names[0]: samples})
    given = {key: value + np.float32(1e-3) for key, value in outputs.items()}
    report = prony.profile(digits, {session.input_names[0]: samples}, runs=2, against=given)
    value = list(outputs.values())[0]
    assert abs(report.metrics["output_error"] * (value.max() - value.min()) - 1e-3) < 1e-5
    with pytest.raises(prony.ShapeMismatch):
        prony.profile(digits, runs=2, against={key: value[:1, :2] for key, value in outputs.items()})
    with pytest.raises(prony.InvalidArgument, match="unknown output 'other'"):
        prony.profile(digits, runs=2, against={"other": value})
