"""Quantization of float models: to 8 bits, and of weights alone to 4 or 8 bits."""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING, Any, Mapping, Optional, Union

from . import _prony
from ._options import PathLike, session_dict
from .session import Model, ModelSource, open_model

if TYPE_CHECKING:
    from .operators import Registry

__all__ = ["Quantized", "quantize", "quantize_weights"]


class Quantized(Model):
    """A quantized model, which sessions take as any other.

    layers: rows of the layers that can be quantized: name, op, quantized (False: it stays in float), error, reason (why it stays in
    float; None: it does not). The error is the change of the outputs if only this layer is
    quantized, as a fraction of their range (nan: not measured). Of quantize_weights, it is the change of the layer's weights, root
    mean square over root mean square."""

    layers: list[dict[str, Any]]


def quantize(model: ModelSource, path: Optional[PathLike] = None, *, calibrate: Union[None, PathLike, Mapping[str, Any]] = None,
             method: str = "minmax", preprocess: Optional[str] = None, keep_calibration: Optional[PathLike] = None,
             keep_accuracy: float = 0.0, power_of_two: bool = False, operators: Optional["Registry"] = None, **options: Any) -> Quantized:
    """Makes a standard QDQ model (docs/guides/quantize.md) of a float model. `path`: file to write; None: the model is only loaded.

    calibrate: samples for the ranges of activations: {input: array [N, …]}, a folder, .npz or list (docs/reference/data_formats.md),
    or a stored .calibration.json. None: each run finds the ranges, and convolutions stay in float.
    method: "minmax", "percentile" or "entropy". preprocess: of images. keep_calibration: file for the ranges.
    keep_accuracy: bound on the change of the outputs, as a fraction of their range. Layers stay in float until the samples meet it.
    power_of_two: scales for which integers and floats give equal results. options: dims, shapes, batch, threads of prony.Session.
    """
    shared = open_model(model, operators)
    data: Any = None
    kept: Optional[str] = None
    if isinstance(calibrate, Mapping):
        data = dict(calibrate)
    elif calibrate is not None:
        text = os.fspath(calibrate)
        if text.endswith(".json"):
            kept = text
        else:
            data = text
    given = dict(method=method, preprocess=preprocess, calibration=kept, keep_accuracy=keep_accuracy, power_of_two=power_of_two,
                 keep=None if keep_calibration is None else os.fspath(keep_calibration))
    if path is not None:
        layers = _prony.quantize(shared, data, os.fspath(path), given, session_dict(options))
        made = Quantized(path, operators=operators)
    else:
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "quantized.onnx")
            layers = _prony.quantize(shared, data, file, given, session_dict(options))
            made = Quantized(file, operators=operators, copy=True)
    made.layers = layers
    return made


def quantize_weights(model: ModelSource, path: Optional[PathLike] = None, *, bits: int = 4, block: int = 32, zero_points: bool = False,
                     search_scales: bool = False, operators: Optional["Registry"] = None) -> Quantized:
    """Makes a model with weights of 4 or 8 bits (docs/guides/quantize.md): MatMul and Gemm become MatMulNBits of com.microsoft, and
    activations stay as they are. `path`: file to write; None: the model is only loaded.

    block: weights of an output channel that share a scale, a power of two from 16 to 256. zero_points: a zero point for each block.
    search_scales: scales with the least squared error; else the largest weight decides.
    """
    shared = open_model(model, operators)
    given = dict(bits=bits, block=block, zero_points=zero_points, search_scales=search_scales)
    if path is not None:
        layers = _prony.quantize_weights(shared, os.fspath(path), given)
        made = Quantized(path, operators=operators)
    else:
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "quantized.onnx")
            layers = _prony.quantize_weights(shared, file, given)
            made = Quantized(file, operators=operators, copy=True)
    made.layers = layers
    return made
