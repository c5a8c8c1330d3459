"""Measurements: one model, several in turns, a matrix of configurations."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional, Sequence

from . import _prony
from ._frames import Rows, Totalled
from ._options import Threads, session_dict
from .report import Report
from .session import ModelSource, Session, open_model

if TYPE_CHECKING:
    import pandas

    from .operators import Registry

__all__ = ["profile", "inspect", "bench", "Bench", "count_params", "estimate_ops", "trace_io_sizes", "count_presets"]

Progress = Callable[[int, float, float], object]  #: runs done, seconds, relative error of the median (nan: not known)


def profile_sessions(sessions: Sequence[Session], inputs: Optional[Sequence[Optional[Mapping[str, Any]]]] = None, *, runs: int = 0,
                     seconds: float = 0.0, warmup: int = -1, keep_samples: bool = False, trace_threads: bool = True,
                     measure_cost: bool = True, count_hardware: bool = False, seed: int = 0,
                     progress: Optional[Progress] = None) -> list[Report]:
    """Measures sessions in turns, so that a disturbance affects all of them, and returns one report each.

    inputs[i] (None: generated) are bound to sessions[i]."""
    for i, session in enumerate(sessions):
        given = inputs[i] if inputs is not None else None
        session._prepare(None if given is None else dict(given), seed)
    options = dict(runs=runs, seconds=seconds, warmup=warmup, keep_samples=keep_samples, trace_threads=trace_threads,
                   measure_cost=measure_cost and len(sessions) == 1, count_hardware=count_hardware, progress=progress)
    return _prony.profile(list(sessions), options)


def profile(model: ModelSource, inputs: Optional[Mapping[str, Any]] = None, *, threads: Threads = "auto", inter_op: Threads = 1,
            precision: str = "fp32", dims: Optional[Mapping[str, int]] = None, shapes: Optional[Mapping[str, Sequence[int]]] = None,
            batch: Optional[int] = None, rewrites: bool = True, reuse: bool = True, affinity: Optional[str] = None, memory_limit: int = 0,
            max_loop_trips: int = 0, operators: Optional["Registry"] = None, runs: int = 0, seconds: float = 0.0, warmup: int = -1,
            keep_samples: bool = False, trace_threads: bool = True, measure_cost: bool = True, count_hardware: bool = False,
            count: Optional[str] = None, seed: int = 0, accuracy: bool = False, accuracy_samples: int = 0,
            reference: Optional[ModelSource] = None, against: Optional[Mapping[str, Any]] = None,
            progress: Optional[Progress] = None, device: Optional[str] = None, device_memory_limit: int = 0,
            device_split: str = "auto") -> Report:
    """Runs a model repeatedly and reports where time and memory go.

    model: path, bytes or prony.Model. inputs: {name: array}; None: generated from `seed` (floats uniform in [-0.5, 0.5), integers and
    bools in {0, 1}).
    threads … operators, device … device_split: see prony.Session.
    runs: measured runs; 0: until the median is known to 1 %, or until `seconds` (0: 5) have passed. warmup: runs before; -1: detected.
    keep_samples: keep each operator's time in each run. trace_threads: record each thread's work. measure_cost: measure the cost of
    the measurement itself.
    count_hardware: cycles, instructions and cache misses, if the system kernel provides them. count: a counting preset.
    accuracy: compare one more run with a float64 reference: errors of operators and outputs (report["accuracy"],
        docs/guides/accuracy_profile.md).
    accuracy_samples: operators whose own error is measured; 0: all. reference: a model to take as the reference, such as the float
    model of a quantized one. against: {output: array} of another runtime, for the same inputs.
    progress(runs, seconds, error): called several times during the measurement.
    Ctrl-C ends the measurement with KeyboardInterrupt.
    """
    with Session(model, threads=threads, inter_op=inter_op, precision=precision, dims=dims, shapes=shapes, batch=batch, rewrites=rewrites,
                 reuse=reuse, affinity=affinity, memory_limit=memory_limit, max_loop_trips=max_loop_trips, operators=operators,
                 device=device, device_memory_limit=device_memory_limit, device_split=device_split) as session:
        report = profile_sessions([session], [inputs], runs=runs, seconds=seconds, warmup=warmup, keep_samples=keep_samples,
                                  trace_threads=trace_threads, measure_cost=measure_cost, count_hardware=count_hardware, seed=seed,
                                  progress=progress)[0]
        if accuracy or against is not None:
            held = None if reference is None else open_model(reference, operators)
            _prony.accuracy(report, session, dict(samples=accuracy_samples, reference=held, outputs_only=not accuracy,
                                                  against=None if against is None else dict(against)))
    return report if count is None else report.set_count(count)


def inspect(model: ModelSource, *, operators: Optional["Registry"] = None, count: Optional[str] = None, **options: Any) -> Report:
    """Returns the static report: parameters, shapes, counts, memory. Nothing runs. options: dims, shapes, batch of prony.Session."""
    report = open_model(model, operators)._inspect(session_dict({**options, "ask": True}))
    return report if count is None else report.set_count(count)


class Bench:
    """The results of prony.bench: `rows` and `frame` have one row per configuration, `reports` the same order."""

    def __init__(self, rows: list[dict[str, Any]], reports: list[Report]) -> None:
        self.rows = Rows(rows, title="configurations")
        self.reports = reports

    @property
    def frame(self) -> "pandas.DataFrame":
        """threads, inter_op, batch, median_ns, median_low_ns and median_high_ns (95 %), p90_ns, samples_per_second."""
        return self.rows.frame

    def best(self, key: str = "samples_per_second") -> dict[str, Any]:
        """Returns the row with the largest `key`; for a time (…_ns), the smallest."""
        rows = sorted(self.rows, key=lambda row: float(row[key]))
        return rows[0] if key.endswith("_ns") else rows[-1]

    def __repr__(self) -> str:
        return repr(self.rows)

    def _repr_html_(self) -> str:
        return self.rows._repr_html_()


def bench(model: ModelSource, *, threads: Sequence[Threads] = ("auto",), inter_op: Sequence[Threads] = (1,),
          batches: Sequence[Optional[int]] = (None,), runs: int = 0, seconds: float = 0.0, operators: Optional["Registry"] = None,
          progress: Optional[Progress] = None, **options: Any) -> Bench:
    """Latency and throughput of every combination of threads, inter-op workers and batch sizes, measured in turns. Operators are not
    timed inside of these runs. seconds: of each configuration. options: as of prony.Session."""
    shared = open_model(model, operators)
    wanted = list(itertools.product(threads, inter_op, batches))
    sessions = [Session(shared, threads=t, inter_op=y, batch=b, profiled=False, **options) for t, y, b in wanted]
    try:
        reports = profile_sessions(sessions, runs=runs, seconds=seconds, trace_threads=False, measure_cost=False, progress=progress)
    finally:
        for session in sessions:
            session.close()
    rows = []
    for report in reports:
        latency, config = report.latency_ns, report.data["config"]
        low, high = latency["median_ci95"]
        rows.append(dict(threads=config["intra_op_threads"], inter_op=config["inter_op_threads"], batch=config.get("batch"),
                         runs=latency["runs"], median_ns=latency["median"], median_low_ns=low, median_high_ns=high, min_ns=latency["min"],
                         p90_ns=latency["p90"], samples_per_second=report.data["throughput"]["samples_per_second"]))
    return Bench(rows, reports)


def count_params(model: ModelSource, **options: Any) -> Totalled:
    """Weights and buffers, elements, of the whole model (`.total`) and of each layer that has any: layer, name, op, types,
    trainable, buffers, bits (of both), share (0 to 1)."""
    return Totalled(open_model(model)._rows("params", session_dict(options)), title="parameters")


def estimate_ops(model: ModelSource, *, count: Optional[str] = None, **options: Any) -> Totalled:
    """Counted work of the whole model (`.total`) and of each layer: macs, madds, flops, special, int_ops, count, share."""
    return Totalled(open_model(model)._rows("ops", session_dict(options), count), title="operations")


def trace_io_sizes(model: ModelSource, **options: Any) -> Rows:
    """Inputs and outputs of every layer: layer, name, op, output (or input), position, type, shape, elements, bits."""
    return Rows(open_model(model)._rows("io", session_dict(options)), title="inputs and outputs")


def count_presets() -> list[str]:
    """Names of the tools whose way of counting can be chosen."""
    return _prony.count_presets()
