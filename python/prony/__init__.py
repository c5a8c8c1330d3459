"""Prony: an ONNX inference engine that measures itself.

    import prony

    report = prony.profile("resnet50.onnx", threads=2)
    report.layers                       # pandas.DataFrame, units in the names of the columns; .operators, .modules, .types
    report.plot("roofline")             # matplotlib; also "latency", "memory", "layers", "types"
    report.save("report.html")

    session = prony.Session("model.onnx", threads=2)
    outputs = session.run({"x": x})     # numpy arrays in and out, without copies

Measuring: profile, inspect, bench, scale (threads), evaluate (accuracy), count_params, estimate_ops, trace_io_sizes, machine.
Precision: quantize, quantize_weights, profile(accuracy=True). Judging: compare, check, recommend. Reading back: load_report, load_study.
Running: Model, Session, Registry (operators in Python). Serving: Batcher, Session.run_async, Session.monitor.
Elsewhere: prony.onnxruntime (drop-in for ONNX Runtime's Python API), prony.backend (ONNX's backend API), prony.torch.profile
(a PyTorch module). Errors are prony.Error and its classes. docs/guides/python.md is the guide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import errors
from ._version import VERSION as __version__
from .errors import (Busy, Cancelled, ClosedError, Error, FileError, ForkError, InternalError, InvalidArgument, InvalidModel, LimitExceeded,
                     NeedsDimension, OutOfMemory, OutOfRange, ShapeMismatch, ThresholdMissed, Unsupported, VersionError)
from . import _prony

if _prony.version != __version__:
    raise VersionError(f"the package is version {__version__}, the library in {_prony.__file__} is {_prony.version}: reinstall one "
                       "of them")

from .session import FreeDim, Model, Session, ValueInfo

if TYPE_CHECKING:
    from ._frames import PackageMissing, Rows
    from .generation import Generator
    from .judge import Advice, Check, Comparison, check, compare, evaluate, machine, recommend
    from .operators import Node, Registry, TensorInfo, builtin_operators
    from .profiling import Bench, bench, count_params, count_presets, estimate_ops, inspect, profile, trace_io_sizes
    from .quantization import Quantized, quantize, quantize_weights
    from .report import Report, load_report
    from .serving import Batcher, Monitor
    from .study import Study, load_study, scale

# Imported on first use: programs that only run models do not wait for the rest.
_LATER = {
    "_frames": ("PackageMissing", "Rows"),
    "generation": ("Generator",),
    "judge": ("Advice", "Check", "Comparison", "check", "compare", "evaluate", "machine", "recommend"),
    "operators": ("Node", "Registry", "TensorInfo", "builtin_operators"),
    "profiling": ("Bench", "bench", "count_params", "count_presets", "estimate_ops", "inspect", "profile", "trace_io_sizes"),
    "quantization": ("Quantized", "quantize", "quantize_weights"),
    "report": ("Report", "load_report"),
    "serving": ("Batcher", "Monitor"),
    "study": ("Study", "load_study", "scale"),
}

__all__ = ["Advice", "Batcher", "Bench", "Busy", "Cancelled", "Check", "ClosedError", "Comparison", "Error", "FileError", "ForkError",
           "FreeDim", "Generator", "InternalError", "InvalidArgument", "InvalidModel", "LimitExceeded", "Model", "Monitor",
           "NeedsDimension", "Node", "OutOfMemory", "OutOfRange", "PackageMissing", "Quantized", "Registry", "Report", "Rows", "Session",
           "ShapeMismatch", "Study", "TensorInfo", "ThresholdMissed", "Unsupported", "ValueInfo", "VersionError", "__version__", "bench",
           "build", "builtin_operators", "check", "compare", "count_params", "count_presets", "errors", "estimate_ops", "evaluate",
           "inspect", "load_report", "load_study", "machine", "memory_in_use", "profile", "quantize", "quantize_weights", "recommend",
           "scale", "set_memory_limit", "trace_io_sizes"]


def build() -> dict[str, str]:
    """Returns the build: version, git_commit, compiler, compiler_flags, isa, libraries."""
    return _prony.build()


def memory_in_use() -> int:
    """Returns the heap bytes that the library holds now."""
    return _prony.memory_in_use()


def set_memory_limit(limit: int) -> None:
    """Bounds the heap bytes of all models, sessions and reports of this process together; 0: no bound.

    An allocation beyond the bound raises LimitExceeded."""
    _prony.set_memory_limit(limit)


def __getattr__(name: str) -> object:
    for module, names in _LATER.items():
        if name in names:
            import importlib

            found = getattr(importlib.import_module(f".{module}", __name__), name)
            globals()[name] = found
            return found
    if name in ("backend", "onnxruntime", "torch"):
        import importlib

        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
