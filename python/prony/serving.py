"""Serving: combines requests of many threads into runs, and monitors the runs of a session."""

from __future__ import annotations

import asyncio
import atexit
import weakref
from collections import deque
from concurrent.futures import Future
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional

from . import _prony
from ._options import session_dict
from .errors import BY_STATUS, Error
from .session import ModelSource, Session, open_model

if TYPE_CHECKING:
    from .operators import Registry

__all__ = ["Batcher", "Monitor"]

Outputs = dict[str, Any]
_open: "weakref.WeakSet[Batcher]" = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """Ends the threads of batchers while they can still call Python."""
    for batcher in list(_open):
        batcher.close(drop=True)


class Batcher(_prony.Batcher):
    """Serves requests of many threads with a few sessions, and combines them into runs along the first dimension.

        with prony.Batcher("model.onnx", max_batch=8, max_wait_ms=2) as batcher:
            outputs = batcher.run({"x": x})             # waits; from any thread
            future = batcher.submit({"x": x})           # concurrent.futures.Future
            outputs = await batcher.run_async({"x": x})

    model: path, bytes of an ONNX file, or a prony.Model. sessions: number of parallel runs. max_batch: samples in one run; 1: requests are
    not combined. max_wait_ms: a request waits this long for others; 0: it is combined only with waiting ones. max_queue:
    requests that may wait; 0: 65536. Further requests raise LimitExceeded. Other options: see prony.Session.

    Requests are combined if each has one sample (first dimension 1) and the same types and shapes. Combine requests only for models that
    compute each sample of a batch alone. `trial` compares combined runs with single ones on generated inputs.
    """

    def __new__(cls, model: ModelSource, *, sessions: int = 1, max_batch: int = 1, max_wait_ms: float = 0.0, max_queue: int = 0,
                operators: Optional["Registry"] = None, **options: Any) -> "Batcher":
        opened = open_model(model, operators)
        made = super().__new__(cls, opened, session_dict({"profiled": False, **options, "ask": True}), sessions, max_batch,
                               round(max_wait_ms * 1e6), max_queue)
        _open.add(made)
        return made

    def submit(self, inputs: Mapping[str, Any]) -> "Future[Outputs]":
        """Queues a request and returns its future. The arrays belong to the batcher until the future is done. A future cannot be
        cancelled. Callbacks of the future run on a thread of the batcher."""
        future: "Future[Outputs]" = Future()

        def done(status: int, message: str, outputs: Optional[Outputs], batch: int, queue_ns: int, run_ns: int) -> None:
            if outputs is not None:
                future.set_result(outputs)
            else:
                future.set_exception(BY_STATUS.get(status, Error)(message))

        future.set_running_or_notify_cancel()
        self._submit(dict(inputs), done)
        return future

    def run(self, inputs: Mapping[str, Any]) -> Outputs:
        """Queues a request and waits for its outputs, {name: array}."""
        return self.submit(inputs).result()

    async def run_async(self, inputs: Mapping[str, Any]) -> Outputs:
        """Does the same as run, for asyncio. A cancelled task leaves its request in the queue."""
        return await asyncio.wrap_future(self.submit(inputs))

    def close(self, drop: bool = False) -> None:
        """Serves the waiting requests (drop: they raise Cancelled) and ends the threads. Later requests raise ClosedError."""
        _open.discard(self)
        self._close(drop)

    def __enter__(self) -> "Batcher":
        return self

    def __exit__(self, kind: Optional[type[BaseException]], value: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.close(drop=kind is not None)


class Monitor:
    """Monitors the runs of a session (Session.monitor): samples one run in `every`, and checks each run against the limits.

    samples: the last samples, dicts of run, latency_ns, latency (statistics of the runs since the sample before), operators (index,
    name, op, kernel, time_ns), arena_bytes, resident_bytes and overhead (the share of the run time that monitoring costs).
    alerts: the last alerts, dicts of kind ("latency" or "memory"), run, value and threshold (ns, or bytes).
    """

    def __init__(self, session: Session, every: int, latency_above_ms: Optional[float], memory_above: Optional[int],
                 on_sample: Optional[Callable[[dict[str, Any]], object]], on_alert: Optional[Callable[[dict[str, Any]], object]],
                 keep: int) -> None:
        if every < 1:
            raise ValueError(f"every: at least 1, not {every}")
        self.samples: "deque[dict[str, Any]]" = deque(maxlen=keep)
        self.alerts: "deque[dict[str, Any]]" = deque(maxlen=keep)
        self._session = session
        session._monitor(every, round((latency_above_ms or 0) * 1e6), memory_above or 0, on_sample or self.samples.append,
                         on_alert or self.alerts.append)

    def stop(self) -> None:
        """Ends monitoring; samples and alerts stay."""
        if not self._session.closed:
            self._session._monitor(0, 0, 0, None, None)

    def __enter__(self) -> "Monitor":
        return self

    def __exit__(self, kind: Optional[type[BaseException]], value: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.stop()
