"""Models and sessions."""

from __future__ import annotations

import os
import threading
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Mapping, NamedTuple, Optional, Sequence, Union

from . import _prony
from ._options import PathLike, Threads, session_dict
from .errors import ClosedError

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    from .generation import Generator
    from .operators import Registry
    from .report import Report
    from .serving import Monitor

__all__ = ["Model", "Session", "ValueInfo", "FreeDim"]


class ValueInfo(NamedTuple):
    """An input or output, as the model declares it."""

    name: str
    kind: str  #: "tensor", "sequence" or "optional"
    dtype: str  #: element type as numpy spells it; "bfloat16", "int4" and the like come as integers of their width
    shape: Optional[tuple[Optional[int], ...]]  #: None: a dimension that is free; no tuple: not even the rank is declared
    dim_names: tuple[Optional[str], ...]  #: symbols of free dimensions


class FreeDim(NamedTuple):
    """A free dimension of the inputs, and the size that a session gives it."""

    name: str  #: as `dims` takes it
    input: str
    axis: int
    value: Optional[int]  #: None: nothing tells, and a session that needs it asks
    reason: str
    example: Optional[int]  #: where nothing tells, a value for which the shapes fit


class Model(_prony.Model):
    """A loaded model: immutable, shared by sessions and threads.

    source: path of an ONNX file, or its bytes (without external data).
    operators: a prony.Registry of operators written in Python.
    copy: read the file instead of mapping it. Do not write to a mapped file: replace it by renaming another one.
    memory_limit: heap of the model and all its sessions, bytes; 0: no bound.
    data_folder: folder of external data; None: the model's folder.
    name: for messages about a model from bytes.
    """

    def __new__(cls, source: Union[PathLike, bytes], *, operators: Optional["Registry"] = None, copy: bool = False, memory_limit: int = 0,
                data_folder: Optional[str] = None, name: str = "model") -> "Model":
        return super().__new__(cls, source, name=name, operators=operators, copy=copy, memory_limit=memory_limit, data_folder=data_folder)

    @property
    def inputs(self) -> list[ValueInfo]:
        """The inputs, in the model's order."""
        return [ValueInfo(*row) for row in self._inputs]

    @property
    def optional_inputs(self) -> list[ValueInfo]:
        """Inputs that may be omitted: the model has a default for each, its initializer of that name."""
        return [ValueInfo(*row) for row in self._optional_inputs]

    @property
    def outputs(self) -> list[ValueInfo]:
        """The outputs, in the model's order."""
        return [ValueInfo(*row) for row in self._outputs]

    def free_dims(self, **options: Any) -> list[FreeDim]:
        """Returns the free dimensions of the inputs, and the sizes that a session with these options gives them."""
        rows = self._free_dims(session_dict({**options, "ask": True}))
        return [FreeDim(r["name"], r["input"], r["axis"], r["value"] if r["value"] >= 0 else None, r["reason"],
                        r["example"] if r["example"] >= 0 else None) for r in rows]

    def extract(self, path: PathLike, *, inputs: Sequence[str] = (), outputs: Sequence[str] = (), **options: Any) -> None:
        """Saves the part between `inputs` and `outputs` as a model. Empty lists mean the model's own inputs and outputs."""
        self._extract(list(inputs), list(outputs), os.fspath(path), session_dict(options))


ModelSource = Union[PathLike, bytes, _prony.Model]


def open_model(source: ModelSource, operators: Optional["Registry"] = None) -> _prony.Model:
    """Returns the model, loaded if necessary."""
    if isinstance(source, _prony.Model):
        if operators is not None:
            raise ValueError("a loaded model takes no operators: give them to prony.Model")
        return source
    return Model(source, operators=operators)


_executor_lock = threading.Lock()  # guards Session._executor, of all sessions: it is held for moments


class Session(_prony.Session):
    """Runs a model.

        session = prony.Session("model.onnx", threads=2)
        outputs = session.run({"x": x})

    model: path, bytes of an ONNX file, or a prony.Model, which several sessions may share.
    threads: threads inside an operator; "auto": one per usable core. inter_op: workers that run operators side by side, or "auto".
    precision: "fp32". dims: sizes of free dimensions by their symbol. shapes: whole input shapes by name. batch: first dimension of
    every input. max_dims: largest sizes of free dimensions that change from run to run, such as a growing cache: one plan serves
    all sizes up to them, and no run binds or plans. affinity: cores, such as "0-3,8". memory_limit: bytes; 0: no
    bound. operators: a prony.Registry. device: "opencl", "opencl:1" or "opencl:NAME": operators with a kernel for it run on an OpenCL
    device. device_memory_limit: bytes there; 0: no bound but the device's. device_split: operators that may stay on the processor:
    "auto": for memory or for their copies, "memory", or "none", which refuses a model that does not fit.

    Runs read contiguous numpy arrays (and other objects with the buffer protocol or DLPack) in place, and write outputs to new arrays
    without a copy. Several threads may call a session; they take turns. Runs release the GIL. Results do not depend on the number of
    threads, to the last bit.
    """

    def __new__(cls, model: ModelSource, *, threads: Threads = "auto", inter_op: Threads = 1, precision: str = "fp32",
                dims: Optional[Mapping[str, int]] = None, max_dims: Optional[Mapping[str, int]] = None,
                shapes: Optional[Mapping[str, Sequence[int]]] = None, batch: Optional[int] = None, rewrites: bool = True,
                reuse: bool = True, profiled: bool = True, affinity: Optional[str] = None, memory_limit: int = 0, max_loop_trips: int = 0,
                operators: Optional["Registry"] = None, device: Optional[str] = None,
                device_memory_limit: int = 0, device_split: str = "auto") -> "Session":
        options = dict(threads=threads, inter_op=inter_op, precision=precision, dims=dims, max_dims=max_dims, shapes=shapes,
                       batch=batch, rewrites=rewrites, reuse=reuse, profiled=profiled, affinity=affinity,
                       memory_limit=memory_limit, max_loop_trips=max_loop_trips,
                       device=device, device_memory_limit=device_memory_limit, device_split=device_split, memory=profiled, ask=True)
        return super().__new__(cls, open_model(model, operators), session_dict(options))

    _executor: Optional["ThreadPoolExecutor"] = None

    @property
    def inputs(self) -> list[ValueInfo]:
        """The model's inputs."""
        return [ValueInfo(*row) for row in self.model._inputs]

    @property
    def optional_inputs(self) -> list[ValueInfo]:
        """Inputs that may be omitted. A run without one uses its default."""
        return [ValueInfo(*row) for row in self.model._optional_inputs]

    @property
    def outputs(self) -> list[ValueInfo]:
        """The model's outputs."""
        return [ValueInfo(*row) for row in self.model._outputs]

    def prepare(self, inputs: Optional[Mapping[str, Any]] = None) -> None:
        """Plans for the shapes of `inputs` (None: generated ones) before the first run."""
        self._prepare(None if inputs is None else dict(inputs))

    def submit(self, inputs: dict[str, Any], outputs: Optional[Sequence[str]] = None) -> "Future[dict[str, Any]]":
        """Runs on a thread of the session and returns a concurrent.futures.Future at once. Submitted runs take turns, in order.
        The arrays may not change until the future is done. prony.Batcher runs several requests together."""
        with _executor_lock:
            if self.closed:
                raise ClosedError("the session is closed")
            if self._executor is None:
                from concurrent.futures import ThreadPoolExecutor

                self._executor = ThreadPoolExecutor(1, thread_name_prefix="prony-session")
            return self._executor.submit(self.run, inputs, outputs)

    async def run_async(self, inputs: dict[str, Any], outputs: Optional[Sequence[str]] = None) -> dict[str, Any]:
        """As run, for asyncio: the event loop continues. A cancelled task does not stop a run that has begun; cancel() does."""
        import asyncio

        return await asyncio.wrap_future(self.submit(inputs, outputs))

    def close(self) -> None:
        """Releases threads, memory and held arrays, after the runs that have begun. Other submitted runs are
        cancelled. Every later call raises ClosedError."""
        with _executor_lock:
            executor, self._executor = self._executor, None
        if executor is not None:
            executor.shutdown(wait=True, cancel_futures=True)
        super().close()

    def monitor(self, *, every: int = 1000, latency_above_ms: Optional[float] = None, memory_above: Optional[int] = None,
                on_sample: Optional[Callable[[dict[str, Any]], object]] = None,
                on_alert: Optional[Callable[[dict[str, Any]], object]] = None, keep: int = 1000) -> "Monitor":
        """Watches the runs from now on; prony.Monitor describes samples and alerts. It replaces an earlier monitor of the session.

        every: one run in `every` is sampled, with the time of each operator. latency_above_ms: a run that takes longer raises an
        alert. memory_above: a sampled run alerts if the process holds more bytes. on_sample, on_alert: the running thread calls them
        with a dict; they may not use the session; without them the monitor keeps the last `keep` of each."""
        from .serving import Monitor

        return Monitor(self, every, latency_above_ms, memory_above, on_sample, on_alert, keep)

    def generator(self, prompt: Union[Sequence[int], Sequence[Sequence[int]], None] = None, *, new: Optional[int] = None,
                  **options: Any) -> "Generator":
        """Text generation with a decoder, as an iterator over the next ids; prony.Generator describes it.

            for token in session.generator([1, 2, 3], new=20): ..."""
        from .generation import Generator

        return Generator(self, prompt, new=new, **options)

    def profile(self, inputs: Optional[Mapping[str, Any]] = None, **options: Any) -> "Report":
        """Runs repeatedly and reports. inputs: None takes those of the last run, or generated ones. options: those of prony.profile,
        without the session's options."""
        from .profiling import profile_sessions

        return profile_sessions([self], None if inputs is None else [dict(inputs)], **options)[0]

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, kind: Optional[type[BaseException]], value: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.close()

    def __repr__(self) -> str:
        if self.closed:
            return "<prony.Session, closed>"
        return f"<prony.Session: {', '.join(self.input_names)} -> {', '.join(self.output_names)}, {self.threads} threads>"
