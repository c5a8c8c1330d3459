"""ONNX's backend interface (onnx.backend.base), for tools and test suites that use it. Needs the package onnx.

    import prony.backend as backend
    outputs = backend.run_model(onnx.load("model.onnx"), [x])
"""

from __future__ import annotations

from typing import Any, Mapping, Optional, Sequence

import numpy as np
import onnx
from onnx import helper
from onnx.backend.base import Backend, BackendRep, namedtupledict

from ._arrays import bfloat16_bits
from .errors import InvalidArgument, Unsupported
from .session import ValueInfo, Session

__all__ = ["PronyBackend", "PronyBackendRep", "prepare", "run_model", "run_node", "supports_device", "is_compatible"]


def _given(port: ValueInfo, value: Any) -> Any:
    """Converts bfloat16, which onnx holds as float32."""
    if port.dtype == "bfloat16" and isinstance(value, np.ndarray) and value.dtype == np.float32:
        return bfloat16_bits(value)
    return value


class PronyBackendRep(BackendRep):  # type: ignore[misc]
    """A prepared model."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._inputs, self._outputs = session.inputs, session.outputs
        self._tuple = namedtupledict("Outputs", [port.name for port in self._outputs])

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Runs on inputs: arrays in the model's order, {name: array}, or a single array. Returns the outputs as a named tuple."""
        if isinstance(inputs, Mapping):
            given = dict(inputs)
        else:
            several = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
            if len(several) != len(self._inputs):
                raise InvalidArgument(f"{len(several)} inputs given; the model takes {len(self._inputs)}")
            given = {port.name: value for port, value in zip(self._inputs, several)}
        outputs = self.session.run({port.name: _given(port, given[port.name]) for port in self._inputs if port.name in given})
        made: tuple[Any, ...] = self._tuple(*(outputs[port.name] for port in self._outputs))
        return made


class PronyBackend(Backend):  # type: ignore[misc]
    """onnx.backend.base.Backend over prony.Session. Keywords may be options of a session: threads, inter_op, dims, …"""

    @classmethod
    def is_compatible(cls, model: Any, device: str = "CPU", **kwargs: Any) -> bool:
        """Returns True if every operator of the model can run."""
        try:
            Session(model.SerializeToString()).close()
        except Unsupported:
            return False
        return True

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **kwargs: Any) -> PronyBackendRep:
        """Prepares a model: an onnx.ModelProto, its bytes, or a path."""
        if not cls.supports_device(device):
            raise InvalidArgument(f"unknown device {device!r}; wanted CPU")
        source = model.SerializeToString() if isinstance(model, onnx.ModelProto) else model
        return PronyBackendRep(Session(source, **kwargs))

    @classmethod
    def run_model(cls, model: Any, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
        """Prepares and runs."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(cls, node: Any, inputs: Any, device: str = "CPU", outputs_info: Optional[Sequence[tuple[Any, Sequence[int]]]] = None,
                 **kwargs: Any) -> tuple[Any, ...]:
        """Runs one node on arrays. outputs_info: (type, shape) of each output, checked if given. opset_version: the opset of ai.onnx."""
        version = kwargs.pop("opset_version", onnx.defs.onnx_opset_version())
        arrays = [np.asarray(value) for value in (inputs if isinstance(inputs, (list, tuple)) else [inputs])]
        names = [name for name in node.input if name]
        types = onnx.mapping.NP_TYPE_TO_TENSOR_TYPE
        ports = [helper.make_tensor_value_info(name, types[array.dtype], array.shape) for name, array in zip(names, arrays)]
        if outputs_info is None:
            results = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        else:
            results = [helper.make_tensor_value_info(name, types[np.dtype(dtype)], shape)
                       for name, (dtype, shape) in zip(node.output, outputs_info) if name]
        domains = {"": version, node.domain: version if node.domain == "" else 1}
        graph = helper.make_graph([node], "node", ports, results)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid(domain, number) for domain, number in domains.items()])
        return cls.run_model(model, arrays, device, **kwargs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Returns True for CPU."""
        return device.split(":")[0] == "CPU"


is_compatible = PronyBackend.is_compatible
prepare = PronyBackend.prepare
run_model = PronyBackend.run_model
run_node = PronyBackend.run_node
supports_device = PronyBackend.supports_device
