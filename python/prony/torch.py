"""Profiles a PyTorch module: exports it to ONNX, measures it, and joins the rows with named_modules(). Needs torch and onnx.

    report = prony.torch.profile(model, (x,), threads=2)
    report.module_frame         # one row per submodule, with its class and parameters
"""

from __future__ import annotations

import inspect
import os
import re
import tempfile
from typing import TYPE_CHECKING, Any, Mapping, Optional, Sequence

from . import profiling
from ._frames import Row, Rows
from .errors import InvalidArgument
from .report import Report
from .session import Model

if TYPE_CHECKING:
    import pandas

__all__ = ["export", "profile", "inspect_module", "ModuleReport"]


def _torch() -> Any:
    import importlib

    return importlib.import_module("torch")


def _names(module: Any, count: int, keywords: Sequence[str]) -> list[str]:
    """Names the inputs after forward()'s parameters."""
    try:
        parameters = [p.name for p in inspect.signature(module.forward).parameters.values()
                      if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    except (TypeError, ValueError):
        parameters = []
    names = parameters[:count] if len(parameters) >= count else [f"input_{i}" for i in range(count)]
    return names + list(keywords)


def _flat(values: Any) -> list[Any]:
    torch = _torch()
    if isinstance(values, torch.Tensor):
        return [values]
    if isinstance(values, Mapping):
        return [tensor for value in values.values() for tensor in _flat(value)]
    if isinstance(values, (list, tuple)):
        return [tensor for value in values for tensor in _flat(value)]
    return []


def export(module: Any, example_inputs: Any, path: str, *, kwargs: Optional[Mapping[str, Any]] = None, opset: int = 13,
           input_names: Optional[Sequence[str]] = None, dynamic_axes: Optional[Mapping[str, Any]] = None) -> list[str]:
    """Writes the module as an ONNX file and returns the names of its inputs. The export uses inference mode (eval); afterwards the module
    has its former mode."""
    torch = _torch()
    inputs = example_inputs if isinstance(example_inputs, tuple) else (example_inputs,)
    given = dict(kwargs or {})
    tensors = len(_flat(inputs))
    names = list(input_names) if input_names else _names(module, tensors, list(given)) if tensors == len(inputs) else [
        f"input_{i}" for i in range(tensors + len(given))]
    training = module.training
    module.eval()
    try:
        with torch.no_grad():
            torch.onnx.export(module, (*inputs, given) if given else inputs, path, input_names=names, opset_version=opset,
                              dynamic_axes=dict(dynamic_axes) if dynamic_axes else None)
    finally:
        module.train(training)
    return names


class ModuleReport(Report):
    """A prony.Report with the module's own names: `module_rows` and `module_frame` join it with named_modules()."""

    _modules: dict[str, Row] = {}

    @property
    def module_rows(self) -> Rows:
        """One row per submodule that ran: path (as named_modules() has it), class_name, own_parameters, macs, flops,
        parameters, time_mean_ns, time_share, layers; parents before children."""
        found: dict[str, Row] = {}
        for row in self.rows("modules"):
            path = _module_path(str(row["path"]))
            if path in self._modules and path not in found:
                found[path] = {**self._modules[path],
                               **{key: value for key, value in row.items() if key not in ("path", "type", "children")}}
        return Rows([found[path] for path in self._modules if path in found], title="modules")

    @property
    def module_frame(self) -> "pandas.DataFrame":
        """Returns `module_rows` as a pandas.DataFrame with the path as index."""
        return self.module_rows.frame.set_index("path")


def _module_path(path: str) -> str:
    """The exporter's "layer1/layer1.0/conv1" is named_modules()'s "layer1.0.conv1": each component repeats or extends the one before."""
    made = ""
    for part in path.split("/") if path else []:
        if made and (part == made or part.startswith(made + ".")):
            made = part
        else:
            last = made.split(".")[-1] if made else ""
            made = f"{made[: -len(last)]}{part}" if last and part.startswith(last + ".") else f"{made}.{part}" if made else part
    return re.sub(r"\.+", ".", made)


def _described(module: Any) -> dict[str, Row]:
    return {path: {"path": path, "class_name": type(child).__name__,
                   "own_parameters": sum(p.numel() for p in child.parameters(recurse=False))} for path, child in module.named_modules()}


def _with_modules(report: Report, module: Any) -> ModuleReport:
    report.__class__ = ModuleReport
    assert isinstance(report, ModuleReport)
    report._modules = _described(module)
    return report


def profile(module: Any, example_inputs: Any, *, kwargs: Optional[Mapping[str, Any]] = None, opset: int = 13,
            keep: Optional[str] = None, **options: Any) -> ModuleReport:
    """Exports a torch.nn.Module, profiles it on the example inputs, and joins the rows with named_modules().

    example_inputs: arguments of forward(), a tensor or a tuple; kwargs: arguments by name. opset: of the export. keep: path for the
    ONNX file.
    options: see prony.profile.
    """
    tensors = _flat(example_inputs if isinstance(example_inputs, tuple) else (example_inputs,)) + _flat(dict(kwargs or {}))
    with tempfile.TemporaryDirectory() as folder:
        path = keep or os.path.join(folder, f"{type(module).__name__}.onnx")
        export(module, example_inputs, path, kwargs=kwargs, opset=opset)
        model = Model(path, copy=keep is None)
        ports = model.inputs
        if len(ports) > len(tensors):
            raise InvalidArgument(f"the exported model has {len(ports)} inputs; got {len(tensors)} tensors")
        given = _matched([port.name for port in ports], tensors, module, example_inputs, kwargs)
        report = profiling.profile(model, given, **options)
    return _with_modules(report, module)


def _matched(ports: list[str], tensors: list[Any], module: Any, example_inputs: Any, kwargs: Optional[Mapping[str, Any]]) -> dict[str, Any]:
    """Matches inputs by name: the exporter drops inputs that no node reads."""
    inputs = example_inputs if isinstance(example_inputs, tuple) else (example_inputs,)
    names = _names(module, len(inputs), list(kwargs or {})) if len(_flat(inputs)) == len(inputs) else []
    arrays = [tensor.detach().cpu().numpy() for tensor in tensors]
    named = dict(zip(names, arrays)) if len(names) == len(arrays) else {}
    return {port: named[port] for port in ports} if all(port in named for port in ports) else dict(zip(ports, arrays))


def inspect_module(module: Any, example_inputs: Any, *, kwargs: Optional[Mapping[str, Any]] = None, opset: int = 13) -> ModuleReport:
    """Returns the static report of a module: counts and sizes, joined with named_modules(). Nothing runs."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, f"{type(module).__name__}.onnx")
        export(module, example_inputs, path, kwargs=kwargs, opset=opset)
        report = profiling.inspect(Model(path, copy=True))
    return _with_modules(report, module)
