"""The parts of prony.onnxruntime besides the session: errors, options, model metadata, values."""

from __future__ import annotations

import enum
from typing import Any, Mapping, Optional, Sequence, Union

import numpy as np

from . import _prony, errors
from .session import ValueInfo, Session

# ---- errors: ONNX Runtime's classes; each is also a prony.Error


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


def translated(error: errors.Error, loading: bool = False) -> Exception:
    """Returns the exception that ONNX Runtime would raise."""
    kinds: list[tuple[type[errors.Error], type[Fail]]] = [
        (errors.FileError, NoSuchFile), (errors.InvalidModel, InvalidProtobuf if loading else InvalidGraph),
        (errors.Unsupported, NotImplemented),
        (errors.InvalidArgument, InvalidArgument), (errors.ShapeMismatch, InvalidArgument), (errors.NeedsDimension, InvalidArgument),
        (errors.OutOfRange, RuntimeException)]
    kind = next((made for given, made in kinds if isinstance(error, given)), Fail)
    return kind(f"[ONNXRuntimeError] : {kind.__name__} : {error}")


# ---- options


class GraphOptimizationLevel(enum.IntEnum):
    """ORT_DISABLE_ALL runs the model's own nodes unfused; the other levels have the same effect."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    """ORT_PARALLEL runs operators side by side, on inter_op_num_threads workers."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(enum.IntEnum):
    """Stored and returned; Prony ignores it."""

    DEFAULT = 0
    PRIORITY_BASED = 1


class SessionOptions:
    """Options of a session. Prony uses intra_op_num_threads, inter_op_num_threads (with ORT_PARALLEL), graph_optimization_level
    (ORT_DISABLE_ALL), add_free_dimension_override_by_name and enable_mem_reuse. It stores the other options and ignores them."""

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
        """Returns the entry; raises RuntimeException if it is missing."""
        if key not in self._entries:
            raise RuntimeException(f"SessionOptions does not have configuration with key: {key}")
        return self._entries[key]

    def add_free_dimension_override_by_name(self, name: str, value: int) -> None:
        """Fixes a free dimension by its symbol."""
        self._dims[name] = int(value)

    def add_free_dimension_override_by_denotation(self, denotation: str, value: int) -> None:
        """Raises NotImplemented: Prony does not read denotations."""
        raise NotImplemented("denotations are not supported; override by name")  # noqa: F901: ONNX Runtime's exception

    def register_custom_ops(self, registry: _prony.Registry) -> None:
        """Uses the operators of a prony.Registry, in place of a library."""
        self._registry = registry

    def register_custom_ops_library(self, path: str) -> None:
        """Raises NotImplemented: operator libraries of ONNX Runtime are not supported."""
        raise NotImplemented(  # noqa: F901
            f"{path}: operator libraries of ONNX Runtime are not supported; give a prony.Registry to register_custom_ops")

    def _session(self) -> dict[str, Any]:
        parallel = self.execution_mode == ExecutionMode.ORT_PARALLEL
        return dict(threads=self.intra_op_num_threads or "auto",
                    inter_op=(self.inter_op_num_threads or "auto") if parallel else 1, dims=self._dims or None,
                    rewrites=self.graph_optimization_level != GraphOptimizationLevel.ORT_DISABLE_ALL, reuse=self.enable_mem_reuse)


class RunOptions:
    """Options of a run: `terminate` ends it with an error; the others are stored and ignored."""

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
        """True cancels the runs that use these options, in other threads too."""
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


# ---- model metadata

_ELEMENTS = {"float32": "float", "float64": "double", "bfloat16": "bfloat16", "string": "string"}
_NUMPY = {"float": "float32", "double": "float64", "string": "object", "bfloat16": "uint16"}


class NodeArg:
    """An input or output: name, type ("tensor(float)"), shape (numbers, symbols, None)."""

    def __init__(self, port: ValueInfo) -> None:
        self.name = port.name
        self.shape: list[Union[int, str, None]] = []
        if port.shape is not None:
            self.shape = [extent if extent is not None else symbol for extent, symbol in zip(port.shape, port.dim_names)]
        inner = f"tensor({_ELEMENTS.get(port.dtype, port.dtype)})"
        self.type = {"tensor": inner, "sequence": f"seq({inner})", "optional": f"optional({inner})"}[port.kind]

    def __repr__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"


class ModelMetadata:
    """Metadata of the model's file."""

    def __init__(self, model: Mapping[str, Any]) -> None:
        self.producer_name = str(model.get("producer") or "")
        self.graph_name = str(model.get("graph_name") or "")
        self.domain = str(model.get("domain") or "")
        self.description = str(model.get("description") or "")
        self.graph_description = ""
        self.version = int(model.get("model_version") or 0)
        self.custom_metadata_map: dict[str, str] = dict(model.get("metadata") or {})


class OrtDevice:
    """A device; Prony knows the processor only."""

    def __init__(self, kind: str = "cpu", index: int = 0) -> None:
        on_cpu(kind)
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


def on_cpu(device: str) -> None:
    if str(device).lower() not in ("cpu", "cuda_pinned"):
        raise RuntimeException(f"unknown device '{device}'; Prony runs on the processor: use 'cpu'")


class OrtValue:
    """A tensor, sequence or optional, as runs take and return it."""

    def __init__(self, value: Any) -> None:
        self._value = value

    @staticmethod
    def ortvalue_from_numpy(array: Any, device_type: str = "cpu", device_id: int = 0) -> "OrtValue":
        """Makes a value that shares the array's memory."""
        on_cpu(device_type)
        return OrtValue(np.ascontiguousarray(array) if np.ndim(array) else np.asarray(array))

    @staticmethod
    def ortvalue_from_shape_and_type(shape: Sequence[int], element_type: Any, device_type: str = "cpu", device_id: int = 0) -> "OrtValue":
        """Makes a value with memory that a run may write to."""
        on_cpu(device_type)
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
        """Returns the number of ONNX's TensorProto.DataType."""
        numbers = {"float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "object": 8,
                   "bool": 9, "float16": 10,
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
        """Copies an array's elements into this value."""
        if np.shape(array) != np.shape(self._value) or np.asarray(array).dtype != self._value.dtype:
            raise InvalidArgument("update_inplace takes an array of the same shape and type")
        np.copyto(self._value, array)
