"""Thread-scaling studies, prony.study/1: read one, or measure one in fresh processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional, Sequence

from . import _prony
from ._frames import Row, Rows
from ._options import PathLike, Threads, session_dict, threads_number
from .errors import InvalidArgument
from .session import Model

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes

__all__ = ["Study", "load_study", "scale"]


class Study(_prony.Study):
    """A thread-scaling study. `data` is the document; `results`, `blocks`, `samples`, `operators` are frames; `rows(what)` the same
    as dicts; `plot(kind)` draws; `save(path)` writes .json, .html, .csv (one row per sample) or .svg; `str()` is the command's text."""

    _data: Optional[dict[str, Any]] = None

    @property
    def data(self) -> dict[str, Any]:
        """The document prony.study/1."""
        if self._data is None:
            self._data = json.loads(self._write("json"))
        assert self._data is not None
        return self._data

    def __getitem__(self, key: str) -> Any:
        return self.data[key]

    @property
    def name(self) -> str:
        """The model's name, without folders."""
        return os.path.basename(str(self.data["manifest"]["model"].get("name", "")))

    @property
    def verdict(self) -> str:
        """Quality of the data: "good", "fair", "poor", …"""
        return str(self.data["quality"]["verdict"])

    @property
    def fits(self) -> dict[str, Any]:
        """The fitted laws: Amdahl's, Gustafson's, and the universal scalability law."""
        return dict(self.data["fits"])

    def rows(self, what: str) -> Rows:
        """Returns dicts: "results" (one per configuration), "blocks" (per process), "samples" (per run), "operators" (lost time each)."""
        makers = {"results": self._results, "blocks": self._blocks, "samples": self._samples, "operators": self._operators}
        if what not in makers:
            raise InvalidArgument(f"unknown rows {what!r}; wanted one of {', '.join(makers)}")
        return Rows(makers[what](), title=what)

    def _configuration(self, index: int) -> Row:
        c = self.data["plan"]["configurations"][index]
        return {key: c[key] for key in ("intra_op_threads", "inter_op_threads", "batch", "precision", "again")}

    def _results(self) -> list[Row]:
        return [{**self._configuration(r["configuration"]),
                 **{"median_ci95_ns" if key == "ci95" else key: value for key, value in r.items()}}
                for r in self.data["results"]]

    def _blocks(self) -> list[Row]:
        left_out = {"samples_ns", "operators", "before", "after"}
        return [{**self._configuration(b["configuration"]), **{key: value for key, value in b.items() if key not in left_out},
                 "samples": len(b.get("samples_ns", []))} for b in self.data["blocks"]]

    def _samples(self) -> list[Row]:
        return [{**self._configuration(b["configuration"]), "block": i, "process": b["process"], "run": run, "latency_ns": ns}
                for i, b in enumerate(self.data["blocks"]) for run, ns in enumerate(b.get("samples_ns", []))]

    def _operators(self) -> list[Row]:
        return [{**self._configuration(o["configuration"]), **o} for o in self.data["operators"]]

    @property
    def results(self) -> "pandas.DataFrame":
        """One row per configuration: threads, median_ns, median_ci95_ns, samples_per_second, speedup, efficiency, …"""
        return self.rows("results").frame

    @property
    def blocks(self) -> "pandas.DataFrame":
        """One row per process."""
        return self.rows("blocks").frame

    @property
    def samples(self) -> "pandas.DataFrame":
        """One row per run: latency_ns."""
        return self.rows("samples").frame

    @property
    def operators(self) -> "pandas.DataFrame":
        """One row per operator and configuration: time_ns, lost_ns, efficiency, reason."""
        return self.rows("operators").frame

    def plot(self, kind: str = "speedup", ax: Optional["Axes"] = None) -> "Axes":
        """Draws "speedup", "efficiency" or "latency" over the threads with matplotlib."""
        from .plots import plot_study

        made: "Axes" = plot_study(self, kind, ax)
        return made

    def save(self, path: PathLike, chart: Optional[str] = None) -> None:
        """Writes the study; the suffix decides the format. chart (for .svg): "speedup", "efficiency", "operators" or "timeline"."""
        suffix = os.path.splitext(os.fspath(path))[1].lower()
        if suffix == ".json":
            return self._save(os.fspath(path))
        if suffix not in (".html", ".csv", ".svg", ".txt"):
            raise InvalidArgument(f"{path}: unknown suffix; wanted .json, .html, .csv, .svg or .txt")
        text = self._write(suffix[1:], chart)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def differences(self, earlier: "Study") -> int:
        """Returns the number of configurations that differ from an earlier study of the same plan."""
        return self._compare(earlier)

    def __str__(self) -> str:
        return self._write("text")

    def __repr__(self) -> str:
        return f"<prony.Study of {self.name}: {len(self.data['results'])} configurations, data {self.verdict}>"

    def _repr_html_(self) -> str:
        from ._text import html_table

        columns = ["intra_op_threads", "inter_op_threads", "batch", "processes", "median_ns", "speedup", "efficiency"]
        return html_table(list(self.rows("results")), columns, f"{self.name}: thread scaling (data: {self.verdict})")


def load_study(path: PathLike) -> Study:
    """Reads a study that `prony scale` or Study.save wrote."""
    return _prony.load_study(os.fspath(path))


def scale(model: PathLike, *, threads: Sequence[Threads] = (), inter_op: Sequence[int] = (), batches: Sequence[int] = (),
          weak: bool = False,
          processes: int = 0, seconds: float = 0.0, runs: int = 0, warmup: int = -1, budget: float = 0.0, seed: int = 0,
          progress: Optional[Callable[[Mapping[str, Any]], object]] = None, **options: Any) -> Study:
    """Measures a thread-scaling study of a model file: each configuration in several fresh processes, in random order.

    threads: numbers; empty: 1, 2, 4 … up to the usable ones. processes: per configuration; 0: 10. seconds: per process. budget: seconds
    of the whole study, which decide the rest. weak: the batch grows with the threads. progress({done, planned, seconds_left, …}).
    options: dims, shapes, rewrites, …; see prony.Session. Ctrl-C ends the study without a result.
    """
    path = os.fspath(model)
    plan = dict(threads=[threads_number(t, 0) for t in threads], inter_op=list(inter_op), batches=list(batches), weak=weak,
                processes=processes, seconds=seconds, runs=runs, warmup=warmup, budget=budget, seed=seed)
    study = _prony.plan_study(Model(path), session_dict(options), plan)
    while (task := study._next()) is not None:
        _measure(study, path, task, options)
        if progress is not None:
            progress(study._progress())
    study._analyse()
    return study


def _measure(study: Study, path: str, task: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    order = json.dumps({"model": path, "task": dict(task), "options": {**options}})
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)}
    before = _prony.machine_state()
    started = os.times()
    done = subprocess.run([sys.executable, "-m", "prony._worker"], input=order, capture_output=True, text=True, env=environment)
    ended = os.times()
    cpu_ns = int(1e9 * (ended.children_user - started.children_user + ended.children_system - started.children_system))
    after = _prony.machine_state()
    if done.returncode == 0:
        study._add(done.stdout, None, False, cpu_ns, before, after)
    else:
        reason = (done.stderr.strip().splitlines() or [f"the process ended with {done.returncode}"])[-1]
        study._add(None, reason, done.returncode == 1, cpu_ns, before, after)
    time.sleep(0)
