"""Operators written in Python.

    registry = prony.Registry()

    @registry.operator("Scale2", domain="mine", infer=lambda node, x: (x.dtype, x.shape), cost=lambda node, x: x.size)
    def scale(node, x):
        return 2 * x

    session = prony.Session("model.onnx", operators=registry)

Every operator states its cost, so that the totals stay right. An operator takes precedence over a built-in one of the same name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Mapping, Optional, Sequence, TypeVar, Union

from . import _prony

__all__ = ["Registry", "TensorInfo", "Node", "builtin_operators"]

Node = _prony.Node


@dataclass(frozen=True)
class TensorInfo:
    """Type, shape and possibly the value of a tensor, before it is computed."""

    dtype: str  #: numpy's name
    shape: Optional[tuple[int, ...]]  #: None: only the run determines it
    value: Any = None  #: a copy of the elements if they are known already

    @property
    def size(self) -> int:
        """The number of elements; 0 if the shape is unknown."""
        count = 1 if self.shape is not None else 0
        for extent in self.shape or ():
            count *= extent
        return max(count, 0)


Inferred = Union[TensorInfo, tuple[Any, Optional[Sequence[int]]]]
Infer = Callable[..., Union[Inferred, Sequence[Inferred]]]
Cost = Callable[..., Union[int, Mapping[str, int]]]
Run = Callable[..., Any]
F = TypeVar("F", bound=Run)
_COUNTS = ("macs", "madds", "flops", "special", "int_ops", "bytes_read", "bytes_written", "parameters")
_Raw = Optional[tuple[str, Optional[tuple[int, ...]], Any]]


def _info(raw: _Raw) -> Optional[TensorInfo]:
    return None if raw is None else TensorInfo(*raw)


def _type_name(dtype: Any) -> str:
    if isinstance(dtype, str):
        return dtype
    import numpy as np

    return str(np.dtype(dtype).name)


def _pair(inferred: Any) -> tuple[str, Optional[tuple[int, ...]]]:
    if isinstance(inferred, TensorInfo):
        return _type_name(inferred.dtype), inferred.shape
    dtype, shape = inferred
    return _type_name(dtype), None if shape is None else tuple(int(extent) for extent in shape)


def _several(made: Any, count: int, what: str) -> list[Any]:
    single = isinstance(made, TensorInfo) or not isinstance(made, (list, tuple)) or (
        what == "infer" and isinstance(made, tuple) and len(made) == 2 and not isinstance(made[0], (TensorInfo, tuple, list)))
    outputs = [made] if single else list(made)
    if len(outputs) != count:
        raise ValueError(f"{what} returned {len(outputs)} outputs; the node has {count}")
    return outputs


def _counts(made: Any) -> dict[str, int]:
    """Checks the counts that a cost function returned: known keys, no negative number."""
    counts = {}
    for key, value in (made if isinstance(made, Mapping) else {"flops": made}).items():
        if key not in _COUNTS:
            raise ValueError(f"cost: unknown key {key!r}; allowed: {', '.join(_COUNTS)}")
        try:
            counts[key] = int(value)
        except (TypeError, ValueError, OverflowError):
            counts[key] = -1
        if not 0 <= counts[key] < 1 << 63:
            raise ValueError(f"cost: {key!r} is {value!r}; wanted a number from 0 below 2**63")
    return counts


class Registry(_prony.Registry):
    """Operators for models that are loaded with this registry. A model keeps its registry alive."""

    def add(self, name: str, run: Run, *, infer: Infer, cost: Cost, domain: str = "", since: int = 1) -> None:
        """Defines an operator.

        run(node, *arrays) -> array, or one per output. The arrays are copies: run may write to them, keep them, return them, or give
        them to another session. An omitted optional input is None.
        infer(node, *infos) -> (type, shape) of the output, or a list of them; shape None: it depends on data, and infer is called again
        in the run, when infos have a value.
        cost(node, *infos) -> FLOPs, or {"macs", "madds", "flops", "special", "int_ops", "bytes_read", "bytes_written", "parameters"}; the
        general rule counts a key that is left out. Another key or a negative number makes the call fail.
        domain, since: of ONNX; "" is ai.onnx.
        node: name, op_type, domain, opset, threads, get(attribute, default), cancelled().
        """

        def infer_all(node: Node, inputs: list[_Raw], outputs: int) -> list[tuple[str, Optional[tuple[int, ...]]]]:
            return [_pair(one) for one in _several(infer(node, *map(_info, inputs)), outputs, "infer")]

        def cost_all(node: Node, inputs: list[_Raw], outputs: list[_Raw]) -> dict[str, int]:
            return _counts(cost(node, *map(_info, inputs)))

        def run_all(node: Node, inputs: list[_Raw], outputs: int) -> list[Any]:
            return _several(run(node, *(None if raw is None else raw[2] for raw in inputs)), outputs, "run")

        self._add(domain, name, since, infer_all, cost_all, run_all)

    def operator(self, name: str, *, infer: Infer, cost: Cost, domain: str = "", since: int = 1) -> Callable[[F], F]:
        """Does the same as `add`, as a decorator of the run function."""

        def define(run: F) -> F:
            self.add(name, run, infer=infer, cost=cost, domain=domain, since=since)
            return run

        return define


def builtin_operators() -> list[dict[str, Any]]:
    """Returns the built-in operators: domain, name, since_opset, types, cost (formula in words), kernels."""
    return _prony.operators()
