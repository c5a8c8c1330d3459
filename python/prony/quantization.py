"""Models on codes of 8 bits, made of float models."""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING, Any, Mapping, Optional, Union

from . import _prony
from ._options import PathLike, session_dict
from .session import Model, ModelSource, open_model

if TYPE_CHECKING:
    from .operators import Registry

__all__ = ["Quantized", "quantize"]


class Quantized(Model):
    """A model on codes, which sessions take as any other. layers: rows of what could be quantized: name, op, quantized (False: it
    stays in float), error (what quantizing it alone does to the outputs, as part of their range; nan: not measured)."""

    layers: list[dict[str, Any]]


def quantize(model: ModelSource, path: Optional[PathLike] = None, *, calibrate: Union[None, PathLike, Mapping[str, Any]] = None,
             method: str = "minmax", preprocess: Optional[str] = None, keep_calibration: Optional[PathLike] = None,
             keep_accuracy: float = 0.0, power_of_two: bool = False, operators: Optional["Registry"] = None, **options: Any) -> Quantized:
    """A standard QDQ model (docs/guides/quantize.md) of a float model, written to `path` (None: it is only loaded).

    calibrate: samples that show the ranges of activations: {input: array [N, …]}, a folder, .npz or list
        (docs/reference/data_formats.md), or a
    .calibration.json that was kept; None: ranges are found in each run, and convolutions stay in float.
    method: "minmax", "percentile" or "entropy". preprocess: of images. keep_calibration: where the ranges are saved.
    keep_accuracy: as many layers stay in float as keep the outputs on the samples within this part of their range.
    power_of_two: scales that integers and floats compute alike. options: dims, shapes, batch, threads as of prony.Session.
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
