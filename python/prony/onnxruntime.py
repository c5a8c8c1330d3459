"""A drop-in for code that is written for ONNX Runtime's Python interface:

    import prony.onnxruntime as ort      # instead of: import onnxruntime as ort

Names, shapes, types and kinds of errors are those of ONNX Runtime for the common calls: InferenceSession, SessionOptions, RunOptions,
io_binding, OrtValue, providers. Everything runs on the processor. Options that Prony has no use for (optimisation level, profiling
prefix, logging, provider options) are kept and read back, and do nothing; docs/python.md lists them.
"""

from __future__ import annotations

import enum
import os
import time
import warnings
from typing import Any, Iterable, Mapping, Optional, Sequence, Union

import numpy as np

from . import _prony, errors
from ._options import PathLike
from .session import Model, Port, Session

__all__ = ["ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel", "IOBinding", "InferenceSession", "ModelMetadata", "NodeArg", "OrtDevice",
           "OrtValue", "RunOptions", "SessionIOBinding", "SessionOptions", "__version__", "get_all_providers", "get_available_providers",
           "get_build_info", "get_device", "get_version_string", "set_default_logger_severity", "set_default_logger_verbosity", "set_seed"]

__version__ = "1.17.0"  #: of ONNX Runtime, whose interface this is
_PROVIDER = "CPUExecutionProvider"

# ---- errors: ONNX Runtime's classes, each also the prony.Error that it comes of


class Fail(errors.Error, RuntimeError):
    """ONNX Runtime's Fail."""


class InvalidArgument(Fail):
    """ONNX Runtime's InvalidArgument."""


class NoSuchFile(Fail):
    """ONNX Runtime's NoSuchFile."""


class InvalidProtobuf(Fail):
    """ONNX Runtime's InvalidProtobuf."""


class InvalidGraph(Fail):
    """ONNX Runtime's InvalidGraph."""


class NotImplemented(Fail):  # noqa: A001
    """ONNX Runtime's NotImplemented."""


class RuntimeException(Fail):
    """ONNX Runtime's RuntimeException."""


def _translated(error: errors.Error, loading: bool = False) -> Exception:
    """What ONNX Runtime would raise."""
    kinds: list[tuple[type[errors.Error], type[Fail]]] = [
        (errors.FileError, NoSuchFile), (errors.InvalidModel, InvalidProtobuf if loading else InvalidGraph), (errors.Unsupported, NotImplemented),
        (errors.InvalidArgument, InvalidArgument), (errors.ShapeMismatch, InvalidArgument), (errors.NeedsDimension, InvalidArgument),
        (errors.OutOfRange, RuntimeException)]
    kind = next((made for given, made in kinds if isinstance(error, given)), Fail)
    return kind(f"[ONNXRuntimeError] : {kind.__name__} : {error}")


# ---- options


class GraphOptimizationLevel(enum.IntEnum):
    """ORT_DISABLE_ALL runs the model's own nodes unfused; the others are all the same here."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    """ORT_PARALLEL runs operators side by side, on inter_op_num_threads workers."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(enum.IntEnum):
    """Read back only."""

    DEFAULT = 0
    PRIORITY_BASED = 1


class SessionOptions:
    """Options of a session. intra_op_num_threads, inter_op_num_threads (with ORT_PARALLEL), graph_optimization_level (ORT_DISABLE_ALL),
    add_free_dimension_override_by_name and enable_mem_reuse count; the others are kept."""

    def __init__(self) -> None:
        self.intra_op_num_threads = 0
        self.inter_op_num_threads = 0
        self.execution_mode = ExecutionMode.ORT_SEQUENTIAL
        self.execution_order = ExecutionOrder.DEFAULT
        self.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.enable_cpu_mem_arena = True
        self.enable_mem_pattern = True
        self.enable_mem_reuse = True
        self.enable_profiling = False
        self.profile_file_prefix = "onnxruntime_profile_"
        self.optimized_model_filepath = ""
        self.log_severity_level = 2
        self.log_verbosity_level = 0
        self.logid = ""
        self.use_deterministic_compute = False
        self._entries: dict[str, str] = {}
        self._dims: dict[str, int] = {}
        self._registry: Optional[_prony.Registry] = None

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Keeps an entry."""
        self._entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        """The entry, or a Fail as of ONNX Runtime."""
        if key not in self._entries:
            raise RuntimeException(f"SessionOptions does not have configuration with key: {key}")
        return self._entries[key]

    def add_free_dimension_override_by_name(self, name: str, value: int) -> None:
        """Fixes a free dimension by its symbol."""
        self._dims[name] = int(value)

    def add_free_dimension_override_by_denotation(self, denotation: str, value: int) -> None:
        """Denotations are not read: refused rather than ignored."""
        raise NotImplemented("free dimensions are overridden by name here")

    def register_custom_ops(self, registry: _prony.Registry) -> None:
        """Operators in Python (prony.Registry), in place of a library."""
        self._registry = registry

    def register_custom_ops_library(self, path: str) -> None:
        """ONNX Runtime's libraries of operators cannot be loaded."""
        raise NotImplemented(f"{path}: operator libraries of ONNX Runtime cannot be loaded; give a prony.Registry to register_custom_ops")

    def _session(self) -> dict[str, Any]:
        parallel = self.execution_mode == ExecutionMode.ORT_PARALLEL
        return dict(threads=self.intra_op_num_threads or "auto",
                    inter_op=(self.inter_op_num_threads or "auto") if parallel else 1, dims=self._dims or None,
                    rewrites=self.graph_optimization_level != GraphOptimizationLevel.ORT_DISABLE_ALL, reuse=self.enable_mem_reuse)


class RunOptions:
    """Options of a run: `terminate` ends it with an error; the others are kept."""

    def __init__(self) -> None:
        self.log_severity_level = 2
        self.log_verbosity_level = 0
        self.logid = ""
        self.only_execute_path_to_fetches = False
        self.training_mode = False
        self._entries: dict[str, str] = {}
        self._terminate = False
        self._running: list[Session] = []

    @property
    def terminate(self) -> bool:
        """True calls off runs with these options, also those under way in other threads."""
        return self._terminate

    @terminate.setter
    def terminate(self, value: bool) -> None:
        self._terminate = bool(value)
        for session in list(self._running) if value else []:
            session.cancel()

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Keeps an entry."""
        self._entries[key] = value

    def get_run_config_entry(self, key: str) -> str:
        """The entry."""
        if key not in self._entries:
            raise RuntimeException(f"RunOptions does not have configuration with key: {key}")
        return self._entries[key]


# ---- what is known of a model

_ELEMENTS = {"float32": "float", "float64": "double", "bfloat16": "bfloat16", "string": "string"}
_NUMPY = {"float": "float32", "double": "float64", "string": "object", "bfloat16": "uint16"}


class NodeArg:
    """An input or output: name, type ("tensor(float)"), shape (numbers, symbols, None)."""

    def __init__(self, port: Port) -> None:
        self.name = port.name
        self.shape: list[Union[int, str, None]] = []
        if port.shape is not None:
            self.shape = [extent if extent is not None else symbol for extent, symbol in zip(port.shape, port.dim_names)]
        inner = f"tensor({_ELEMENTS.get(port.dtype, port.dtype)})"
        self.type = {"tensor": inner, "sequence": f"seq({inner})", "optional": f"optional({inner})"}[port.kind]

    def __repr__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"


class ModelMetadata:
    """What the file says of itself."""

    def __init__(self, model: Mapping[str, Any]) -> None:
        self.producer_name = str(model.get("producer") or "")
        self.graph_name = str(model.get("graph_name") or "")
        self.domain = str(model.get("domain") or "")
        self.description = str(model.get("description") or "")
        self.graph_description = ""
        self.version = int(model.get("model_version") or 0)
        self.custom_metadata_map: dict[str, str] = dict(model.get("metadata") or {})


class OrtDevice:
    """Where memory lies: the processor's."""

    def __init__(self, kind: str = "cpu", index: int = 0) -> None:
        _on_cpu(kind)
        self._kind, self._index = kind, index

    @staticmethod
    def make(kind: str, index: int = 0) -> "OrtDevice":
        return OrtDevice(kind, index)

    def device_type(self) -> str:
        return self._kind

    def device_id(self) -> int:
        return self._index

    @staticmethod
    def cpu() -> int:
        return 0


def _on_cpu(device: str) -> None:
    if str(device).lower() not in ("cpu", "cuda_pinned"):
        raise RuntimeException(f"there is no device '{device}'; Prony runs on the processor: use 'cpu'")


class OrtValue:
    """A tensor, sequence or optional that is handed from run to run."""

    def __init__(self, value: Any) -> None:
        self._value = value

    @staticmethod
    def ortvalue_from_numpy(array: Any, device_type: str = "cpu", device_id: int = 0) -> "OrtValue":
        """On the array's own memory."""
        _on_cpu(device_type)
        return OrtValue(np.ascontiguousarray(array) if np.ndim(array) else np.asarray(array))

    @staticmethod
    def ortvalue_from_shape_and_type(shape: Sequence[int], element_type: Any, device_type: str = "cpu", device_id: int = 0) -> "OrtValue":
        """Memory that a run may write to."""
        _on_cpu(device_type)
        return OrtValue(np.empty(tuple(shape), element_type))

    def numpy(self) -> Any:
        """The array itself."""
        return self._value

    def shape(self) -> list[int]:
        return list(np.shape(self._value))

    def data_type(self) -> str:
        if isinstance(self._value, list):
            return "seq(tensor)"
        name = np.asarray(self._value).dtype.name
        return f"tensor({'string' if name == 'object' else _ELEMENTS.get(name, name)})"

    def element_type(self) -> int:
        """The number of ONNX's TensorProto.DataType."""
        numbers = {"float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "object": 8, "bool": 9, "float16": 10,
                   "float64": 11, "uint32": 12, "uint64": 13, "complex64": 14, "complex128": 15}
        return numbers[np.asarray(self._value).dtype.name]

    def device_name(self) -> str:
        return "cpu"

    def data_ptr(self) -> int:
        return int(self._value.ctypes.data)

    def has_value(self) -> bool:
        return self._value is not None

    def is_tensor(self) -> bool:
        return isinstance(self._value, np.ndarray)

    def is_tensor_sequence(self) -> bool:
        return isinstance(self._value, list)

    def update_inplace(self, array: Any) -> None:
        """Copies an array's elements to this memory."""
        if np.shape(array) != np.shape(self._value) or np.asarray(array).dtype != self._value.dtype:
            raise InvalidArgument("update_inplace takes an array of the same shape and type")
        np.copyto(self._value, array)


class IOBinding:
    """Inputs and outputs that stay bound from run to run."""

    def __init__(self, session: "InferenceSession") -> None:
        self._session = session
        self._inputs: dict[str, Any] = {}
        self._given: dict[str, Any] = {}
        self._wanted: list[str] = []
        self._made: dict[str, Any] = {}

    def bind_cpu_input(self, name: str, array: Any) -> None:
        """Binds an array; what stands in it when the run begins counts."""
        self._session._input(name)
        self._inputs[name] = array

    def bind_input(self, name: str, device_type: str, device_id: int, element_type: Any, shape: Sequence[int], buffer_ptr: int) -> None:
        """Binds memory by its address, which has to stay valid."""
        _on_cpu(device_type)
        self._session._input(name)
        self._inputs[name] = _memory(element_type, shape, buffer_ptr)

    def bind_ortvalue_input(self, name: str, value: OrtValue) -> None:
        self._session._input(name)
        self._inputs[name] = value.numpy()

    def _want(self, name: str) -> None:
        self._session._output(name)
        if name not in self._wanted:
            self._wanted.append(name)

    def bind_output(self, name: str, device_type: str = "cpu", device_id: int = 0, element_type: Any = None, shape: Optional[Sequence[int]] = None,
                    buffer_ptr: Optional[int] = None) -> None:
        """Asks for an output; with an address, it is made there."""
        _on_cpu(device_type)
        self._want(name)
        self._given.pop(name, None)
        if buffer_ptr is not None:
            self._given[name] = _memory(element_type, shape or (), buffer_ptr)

    def bind_ortvalue_output(self, name: str, value: OrtValue) -> None:
        self._want(name)
        self._given[name] = value.numpy()

    def synchronize_inputs(self) -> None:
        """Nothing to wait for."""

    def synchronize_outputs(self) -> None:
        """Nothing to wait for."""

    def get_outputs(self) -> list[OrtValue]:
        """Of the last run, in the order in which they were bound."""
        return [OrtValue(self._made[name]) for name in self._wanted if name in self._made]

    get_outputs_as_ortvaluevector = get_outputs

    def copy_outputs_to_cpu(self) -> list[Any]:
        """The arrays of the last run."""
        return [self._made[name] for name in self._wanted if name in self._made]

    def clear_binding_inputs(self) -> None:
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        self._wanted.clear()
        self._given.clear()
        self._made.clear()


SessionIOBinding = IOBinding


class _Memory:
    """Bytes at an address, as numpy takes them."""

    def __init__(self, interface: dict[str, Any]) -> None:
        self.__array_interface__ = interface


def _memory(element_type: Any, shape: Sequence[int], address: int) -> Any:
    dtype = np.dtype(element_type)
    return np.asarray(_Memory({"shape": tuple(int(n) for n in shape), "typestr": dtype.str, "data": (int(address), False), "version": 3}))


# ---- the session

Source = Union[PathLike, bytes]


class InferenceSession:
    """Runs a model, as onnxruntime.InferenceSession does.

    providers: "CPUExecutionProvider" is what there is; others in the list are passed over with a warning, as ONNX Runtime does, as long
    as the list has any that there is or is empty; unknown names raise ValueError.
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
            raise _translated(error, loading=True) from error
        try:
            self.session = Session(model, profiled=self._options.enable_profiling, **self._options._session())
        except errors.Error as error:
            raise _translated(error) from error
        self._ports = self.session.inputs, self.session.outputs
        self._inputs = {port.name: port for port in self._ports[0]}
        self._outputs = self.session.output_names
        self._started = time.time_ns()

    # ---- what it is

    def get_inputs(self) -> list[NodeArg]:
        return [NodeArg(port) for port in self._ports[0]]

    def get_outputs(self) -> list[NodeArg]:
        return [NodeArg(port) for port in self._ports[1]]

    def get_overridable_initializers(self) -> list[NodeArg]:
        return []

    def get_modelmeta(self) -> ModelMetadata:
        return ModelMetadata(self.session.model._inspect({"ask": False}).data["model"])

    def get_providers(self) -> list[str]:
        return list(self._providers)

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        return {name: {} for name in self._providers}

    def set_providers(self, providers: Optional[Sequence[Any]] = None, provider_options: Optional[Sequence[Mapping[Any, Any]]] = None) -> None:
        self._providers = _choose(providers, provider_options)

    def get_session_options(self) -> SessionOptions:
        return self._options

    def get_profiling_start_time_ns(self) -> int:
        return self._started

    def disable_fallback(self) -> None:
        """There is nothing to fall back to."""

    def enable_fallback(self) -> None:
        """There is nothing to fall back to."""

    def end_profiling(self) -> str:
        """Profiles what was last run and writes a Chrome trace, whose name it gives."""
        name = f"{self._options.profile_file_prefix}_{time.strftime('%Y-%m-%d_%H-%M-%S')}.json"
        self.profile(runs=1, warmup=0, measure_cost=False).save(name, form="trace")
        return name

    def profile(self, inputs: Optional[Mapping[str, Any]] = None, **options: Any) -> Any:
        """A prony.Report of this session; options as of prony.profile."""
        return self.session.profile(inputs, **options)

    # ---- runs

    def _input(self, name: str) -> Port:
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

    def _run(self, inputs: dict[str, Any], names: list[str], into: Optional[dict[str, Any]], options: Optional[RunOptions]) -> dict[str, Any]:
        missing = [name for name in self._inputs if name not in inputs]
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
            raise _translated(error) from error
        finally:
            if options is not None:
                options._running.remove(self.session)

    def run(self, output_names: Optional[Sequence[str]], input_feed: Mapping[str, Any], run_options: Optional[RunOptions] = None) -> list[Any]:
        """The outputs of these names, in their order; None or []: all of them."""
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


_KNOWN = ("TensorrtExecutionProvider", "CUDAExecutionProvider", "ROCMExecutionProvider", "MIGraphXExecutionProvider", "OpenVINOExecutionProvider",
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
            raise ValueError(f"'{name}' is no execution provider; there are {list(_KNOWN)}")
        if name != _PROVIDER:
            warnings.warn(f"Specified provider '{name}' is not in available provider names. Available providers: '{_PROVIDER}'", stacklevel=3)
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
    """Of Prony."""
    build = _prony.build()
    return f"Prony {build['version']} ({build['git_commit']}), {build['compiler']}, {build['libraries']}"


def set_default_logger_severity(level: int) -> None:
    """Prony logs nothing."""


def set_default_logger_verbosity(level: int) -> None:
    """Prony logs nothing."""


def set_seed(seed: int) -> None:
    """Random operators without a seed draw from the library's own."""
