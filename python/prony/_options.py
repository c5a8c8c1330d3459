"""Session options. Every function that makes a session takes them under the same names."""

from __future__ import annotations

import os
from typing import Any, Mapping, Optional, Sequence, Union

from typing import TypedDict

PathLike = Union[str, "os.PathLike[str]"]
Threads = Union[int, str, None]


class SessionOptions(TypedDict, total=False):
    """threads: threads inside an operator, or "auto" (one per usable core); inter_op: workers that run operators side by side, or "auto";
    precision: "fp32", "fp32-strict", "fast", "bf16", "fp16", "int8" (of a quantized model), "int8-weights", "int4-weights";
    dims: {symbol: size} of free dimensions; shapes: {input: shape}; batch: first dimension of every input;
    max_dims: {symbol: largest size} of free dimensions that change from run to run: one plan serves all sizes up to it;
    rewrites: False runs the model's own nodes unfused; reuse: False gives each tensor its own buffer; affinity: core list such as "0-3,8";
    device: "opencl", "opencl:1" or "opencl:NAME": operators run on an OpenCL device; device_memory_limit: bytes there; device_split:
    operators that may stay on the processor: "auto" (for memory or for their copies), "memory" or "none";
    memory_limit: bytes; max_loop_trips: of a Loop."""

    threads: Threads
    inter_op: Threads
    precision: str
    dims: Optional[Mapping[str, int]]
    max_dims: Optional[Mapping[str, int]]
    shapes: Optional[Mapping[str, Sequence[int]]]
    batch: Optional[int]
    rewrites: bool
    reuse: bool
    affinity: Optional[str]
    device: Optional[str]
    device_memory_limit: int
    device_split: str
    memory_limit: int
    max_loop_trips: int


def threads_number(value: Threads, automatic: int) -> int:
    if value is None or value == "auto":
        return automatic
    if isinstance(value, str):
        raise ValueError(f"threads: a number or 'auto', not {value!r}")
    return value


def session_dict(options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the options as the extension takes them."""
    known = set(SessionOptions.__annotations__) | {"profiled", "memory", "helped", "ask"}
    unknown = set(options) - known
    if unknown:
        raise TypeError(f"unknown option: {', '.join(sorted(unknown))}; known options: {', '.join(sorted(known))}")
    made = dict(options)
    made["threads"] = threads_number(options.get("threads"), 0)
    made["inter_op"] = threads_number(options.get("inter_op", 1), -1)
    for key in ("dims", "max_dims", "shapes"):
        if made.get(key) is not None:
            made[key] = dict(made[key])
    return made
