"""A drop-in for code written for ONNX Runtime's Python interface:

    import prony.onnxruntime as ort      # instead of: import onnxruntime as ort

Names, shapes, types and kinds of errors are those of ONNX Runtime for the common calls: InferenceSession, SessionOptions, RunOptions,
io_binding, OrtValue, providers. Everything runs on the processor. Prony stores and ignores options without meaning here (arenas,
logging, configuration entries, provider options); docs/reference/python.md lists them.
"""

from __future__ import annotations

import os
import time
import warnings
from typing import Any, Iterable, Mapping, Optional, Sequence, Union

import numpy as np

from . import _prony, errors
from ._options import PathLike
from ._ort import (ExecutionMode, ExecutionOrder, Fail, GraphOptimizationLevel, InvalidArgument, InvalidGraph,
                   InvalidProtobuf, ModelMetadata, NodeArg, NoSuchFile, NotImplemented, OrtDevice, OrtValue, RunOptions,
                   RuntimeException, SessionOptions, on_cpu, translated)
from .session import Model, ValueInfo, Session

__all__ = ["ExecutionMode", "ExecutionOrder", "Fail", "GraphOptimizationLevel", "IOBinding", "InferenceSession",
           "InvalidArgument", "InvalidGraph", "InvalidProtobuf", "ModelMetadata", "NoSuchFile", "NodeArg", "NotImplemented",
           "OrtDevice", "OrtValue", "RunOptions", "RuntimeException",
           "SessionIOBinding", "SessionOptions", "__version__", "get_all_providers", "get_available_providers",
           "get_build_info", "get_device", "get_version_string", "set_default_logger_severity", "set_default_logger_verbosity", "set_seed"]

__version__ = "1.17.0"  #: of ONNX Runtime, whose interface this is
_PROVIDER = "CPUExecutionProvider"


class IOBinding:
    """Inputs and outputs that stay bound from run to run."""

    def __init__(self, session: "InferenceSession") -> None:
        self._session = session
        self._inputs: dict[str, Any] = {}
        self._given: dict[str, Any] = {}
        self._wanted: list[str] = []
        self._made: dict[str, Any] = {}

    def bind_cpu_input(self, name: str, array: Any) -> None:
        """Binds an array. The run reads the values that it holds at its start."""
        self._session._input(name)
        self._inputs[name] = array

    def bind_input(self, name: str, device_type: str, device_id: int, element_type: Any, shape: Sequence[int], buffer_ptr: int) -> None:
        """Binds memory by its address, which must stay valid."""
        on_cpu(device_type)
        self._session._input(name)
        self._inputs[name] = _memory(element_type, shape, buffer_ptr)

    def bind_ortvalue_input(self, name: str, value: OrtValue) -> None:
        self._session._input(name)
        self._inputs[name] = value.numpy()

    def _want(self, name: str) -> None:
        self._session._output(name)
        if name not in self._wanted:
            self._wanted.append(name)

    def bind_output(self, name: str, device_type: str = "cpu", device_id: int = 0, element_type: Any = None,
                    shape: Optional[Sequence[int]] = None,
                    buffer_ptr: Optional[int] = None) -> None:
        """Asks for an output. With an address, the run writes it there."""
        on_cpu(device_type)
        self._want(name)
        self._given.pop(name, None)
        if buffer_ptr is not None:
            self._given[name] = _memory(element_type, shape or (), buffer_ptr)

    def bind_ortvalue_output(self, name: str, value: OrtValue) -> None:
        self._want(name)
        self._given[name] = value.numpy()

    def synchronize_inputs(self) -> None:
        """Does nothing: runs are synchronous."""

    def synchronize_outputs(self) -> None:
        """Does nothing: runs are synchronous."""

    def get_outputs(self) -> list[OrtValue]:
        """Returns the outputs of the last run, in the order of binding."""
        return [OrtValue(self._made[name]) for name in self._wanted if name in self._made]

    get_outputs_as_ortvaluevector = get_outputs

    def copy_outputs_to_cpu(self) -> list[Any]:
        """Returns the arrays of the last run."""
        return [self._made[name] for name in self._wanted if name in self._made]

    def clear_binding_inputs(self) -> None:
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        self._wanted.clear()
        self._given.clear()
        self._made.clear()


SessionIOBinding = IOBinding


class _Memory:
    """Bytes at an address, for numpy's array interface."""

    def __init__(self, interface: dict[str, Any]) -> None:
        self.__array_interface__ = interface


def _memory(element_type: Any, shape: Sequence[int], address: int) -> Any:
    dtype = np.dtype(element_type)
    return np.asarray(_Memory({"shape": tuple(int(n) for n in shape), "typestr": dtype.str, "data": (int(address), False), "version": 3}))


# ---- the session

Source = Union[PathLike, bytes]


class InferenceSession:
    """Runs a model, as onnxruntime.InferenceSession does.

    providers: Prony has "CPUExecutionProvider". Other providers of ONNX Runtime are skipped with a warning, as ONNX
    Runtime does; unknown names raise RuntimeError.
    `session` is the prony.Session behind it, `profile()` its report.
    """

    def __init__(self, path_or_bytes: Source, sess_options: Optional[SessionOptions] = None, providers: Optional[Sequence[Any]] = None,
                 provider_options: Optional[Sequence[Mapping[Any, Any]]] = None, **kwargs: Any) -> None:
        self._options = sess_options or SessionOptions()
        self._providers = _choose(providers, provider_options)
        if isinstance(path_or_bytes, (str, os.PathLike)):
            self._model_path: Optional[str] = os.fspath(path_or_bytes)
            if not os.path.isfile(self._model_path):
                raise NoSuchFile(f"[ONNXRuntimeError] : 3 : NO_SUCHFILE : Load model from {self._model_path} failed. File doesn't exist")
        elif isinstance(path_or_bytes, bytes):
            self._model_path = None
        else:
            raise TypeError(f"Unable to load from type '{type(path_or_bytes)}'")
        try:
            model = Model(path_or_bytes, operators=self._options._registry)  # type: ignore[arg-type]
        except errors.Error as error:
            raise translated(error, loading=True) from error
        try:
            self.session = Session(model, profiled=self._options.enable_profiling, **self._options._session())
        except errors.Error as error:
            raise translated(error) from error
        self._ports = self.session.inputs, self.session.outputs
        self._required = [port.name for port in self._ports[0]]
        self._inputs = {port.name: port for port in [*self._ports[0], *self.session.optional_inputs]}
        self._outputs = self.session.output_names
        self._started = time.time_ns()

    # ---- what it is

    def get_inputs(self) -> list[NodeArg]:
        return [NodeArg(port) for port in self._ports[0]]

    def get_outputs(self) -> list[NodeArg]:
        return [NodeArg(port) for port in self._ports[1]]

    def get_overridable_initializers(self) -> list[NodeArg]:
        return [NodeArg(port) for port in self.session.optional_inputs]

    def get_modelmeta(self) -> ModelMetadata:
        return ModelMetadata(self.session.model._inspect({"ask": False}).data["model"])

    def get_providers(self) -> list[str]:
        return list(self._providers)

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        return {name: {} for name in self._providers}

    def set_providers(self, providers: Optional[Sequence[Any]] = None,
                      provider_options: Optional[Sequence[Mapping[Any, Any]]] = None) -> None:
        self._providers = _choose(providers, provider_options)

    def get_session_options(self) -> SessionOptions:
        return self._options

    def get_profiling_start_time_ns(self) -> int:
        return self._started

    def disable_fallback(self) -> None:
        """Does nothing: Prony has no fallback."""

    def enable_fallback(self) -> None:
        """Does nothing: Prony has no fallback."""

    def end_profiling(self) -> str:
        """Profiles the last inputs, writes a Chrome trace, and returns its file name."""
        name = f"{self._options.profile_file_prefix}_{time.strftime('%Y-%m-%d_%H-%M-%S')}.json"
        self.profile(runs=1, warmup=0, measure_cost=False).save(name, form="trace")
        return name

    def profile(self, inputs: Optional[Mapping[str, Any]] = None, **options: Any) -> Any:
        """Returns a prony.Report of this session. options: see prony.profile."""
        return self.session.profile(inputs, **options)

    # ---- runs

    def _input(self, name: str) -> ValueInfo:
        if name not in self._inputs:
            raise RuntimeException(f"Failed to find input name in the current model: {name}; there are {list(self._inputs)}")
        return self._inputs[name]

    def _output(self, name: str) -> None:
        if name not in self._outputs:
            raise RuntimeException(f"Failed to find output name in the current model: {name}; there are {self._outputs}")

    def _named(self, names: Optional[Iterable[str]]) -> list[str]:
        chosen = list(names) if names else self._outputs
        for name in chosen:
            if name not in self._outputs:
                raise InvalidArgument(f"[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Invalid output name: {name}")
        return chosen

    def _run(self, inputs: dict[str, Any], names: list[str], into: Optional[dict[str, Any]],
             options: Optional[RunOptions]) -> dict[str, Any]:
        missing = [name for name in self._required if name not in inputs]
        if missing:
            raise ValueError(f"Required inputs ({missing}) are missing from input feed ({list(inputs)}).")
        unknown = [name for name in inputs if name not in self._inputs]
        if unknown:
            raise InvalidArgument(f"[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Invalid input name: {unknown[0]}")
        if options is not None and options.terminate:
            raise Fail("[ONNXRuntimeError] : 1 : FAIL : Exiting due to terminate flag being set to true.")
        if options is not None:
            options._running.append(self.session)
        try:
            return self.session.run(inputs, names, into)
        except errors.Cancelled as error:
            raise Fail("[ONNXRuntimeError] : 1 : FAIL : Exiting due to terminate flag being set to true.") from error
        except errors.Error as error:
            raise translated(error) from error
        finally:
            if options is not None:
                options._running.remove(self.session)
                if options.terminate:
                    self.session._uncancel()  # it may have come when the run had ended

    def run(self, output_names: Optional[Sequence[str]], input_feed: Mapping[str, Any],
            run_options: Optional[RunOptions] = None) -> list[Any]:
        """Runs and returns the named outputs in order; None or []: all outputs."""
        names = self._named(output_names)
        feed = {name: value.numpy() if isinstance(value, OrtValue) else value for name, value in input_feed.items()}
        made = self._run(feed, names, None, run_options)
        return [made[name] for name in names]

    def run_with_ort_values(self, output_names: Optional[Sequence[str]], input_dict_ort_values: Mapping[str, OrtValue],
                            run_options: Optional[RunOptions] = None) -> list[OrtValue]:
        names = self._named(output_names)
        made = self._run({name: value.numpy() for name, value in input_dict_ort_values.items()}, names, None, run_options)
        return [OrtValue(made[name]) for name in names]

    def io_binding(self) -> IOBinding:
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: Optional[RunOptions] = None) -> None:
        iobinding._made = self._run(dict(iobinding._inputs), list(iobinding._wanted), dict(iobinding._given) or None, run_options)


_KNOWN = ("TensorrtExecutionProvider", "CUDAExecutionProvider", "ROCMExecutionProvider", "MIGraphXExecutionProvider",
          "OpenVINOExecutionProvider",
          "DnnlExecutionProvider", "CoreMLExecutionProvider", "DmlExecutionProvider", "XnnpackExecutionProvider", "QNNExecutionProvider",
          "AzureExecutionProvider", "WebGpuExecutionProvider", _PROVIDER)


def _choose(providers: Optional[Sequence[Any]], options: Optional[Sequence[Mapping[Any, Any]]]) -> list[str]:
    if options is not None and providers is not None and len(options) != len(providers):
        raise ValueError("'providers' and 'provider_options' should be the same length if both are given.")
    for provider in providers or ():
        name = provider[0] if isinstance(provider, tuple) else provider
        if not isinstance(name, str):
            raise ValueError("Provider names must be strings, or tuples of a string and a dict.")
        if name not in _KNOWN:
            raise RuntimeError(f"Unknown Provider Type: {name}; there are {list(_KNOWN)}")
        if name != _PROVIDER:
            warnings.warn(f"Specified provider '{name}' is not in available provider names. Available providers: '{_PROVIDER}'",
                          stacklevel=3)
    return [_PROVIDER]


def get_available_providers() -> list[str]:
    return [_PROVIDER]


def get_all_providers() -> list[str]:
    return list(_KNOWN)


def get_device() -> str:
    return "CPU"


def get_version_string() -> str:
    return __version__


def get_build_info() -> str:
    """Returns the build of Prony."""
    build = _prony.build()
    return f"Prony {build['version']} ({build['git_commit']}), {build['compiler']}, {build['libraries']}"


def set_default_logger_severity(level: int) -> None:
    """Does nothing: Prony writes no log."""


def set_default_logger_verbosity(level: int) -> None:
    """Does nothing: Prony writes no log."""


def set_seed(seed: int) -> None:
    """Does nothing: random operators without a seed use the library's own generator."""
