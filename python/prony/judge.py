"""Comparisons, thresholds, advice, accuracy, and the peaks of this machine."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional, Sequence, Union

from . import _prony
from ._frames import Row, Rows
from ._options import PathLike, Threads
from .errors import Error, InvalidArgument, OutOfMemory, ThresholdMissed
from .profiling import Progress, profile_sessions
from .report import Report, load_report
from .session import ModelSource, Session, open_model

if TYPE_CHECKING:
    import pandas

    from .operators import Registry

__all__ = ["compare", "Comparison", "check", "Check", "recommend", "Advice", "evaluate", "machine"]

Target = Union[Report, PathLike, bytes, _prony.Model]


def _is_report(target: Target) -> bool:
    return isinstance(target, Report) or (isinstance(target, (str, os.PathLike)) and Path(target).suffix.lower() == ".json")


def _report(target: Any) -> Report:
    return target if isinstance(target, Report) else load_report(target)


def _named(rows: Sequence[Row]) -> list[Row]:
    """Renames a_ns to a_time_ns: the unit stays at the end."""
    names = {"a_ns": "a_time_ns", "b_ns": "b_time_ns", "difference_ns": "time_difference_ns"}
    return [{names.get(key, key): value for key, value in row.items()} for row in rows]


class Comparison:
    """Two reports side by side; `a` is the baseline. `data` is the document prony.comparison/1, `str()` the command's text.

    ok: no metric got worse. regressions: the metrics that got worse. notes: other differences, and reasons for weak verdicts."""

    def __init__(self, text: str, data: dict[str, Any], a: Report, b: Report) -> None:
        self.text, self.data, self.a, self.b = text, data, a, b

    @property
    def regressions(self) -> list[str]:
        return list(self.data["regressions"])

    @property
    def ok(self) -> bool:
        return not self.regressions

    @property
    def notes(self) -> list[str]:
        return list(self.data["notes"])

    def rows(self, what: str) -> Rows:
        """"metrics", "layers", "types" or "nested", as dicts."""
        keys = {"metrics": "metrics", "layers": "layers", "types": "operator_types", "nested": "nested_layers"}
        if what not in keys:
            raise InvalidArgument(f"unknown rows {what!r}; wanted one of {', '.join(keys)}")
        return Rows(_named(self.data.get(keys[what], [])), title=what)

    @property
    def metrics(self) -> "pandas.DataFrame":
        """One row per metric that both reports have: key, unit, a, b, difference, ratio, ratio_ci95, p, evidence, verdict."""
        return self.rows("metrics").frame

    @property
    def layers(self) -> "pandas.DataFrame":
        """One row per layer that both reports have: a_time_ns, b_time_ns, time_difference_ns, ratio, p, verdict."""
        return self.rows("layers").frame

    @property
    def types(self) -> "pandas.DataFrame":
        """One row per operator type that both reports have."""
        return self.rows("types").frame

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from ._text import html_table

        judged = [row for row in self.rows("metrics") if row["verdict"] in ("better", "worse", "cannot tell")] or list(self.rows("metrics"))
        notes = "".join(f"<li>{note}</li>" for note in map(_escape, self.notes))
        title = f"{self.a.name} and {self.b.name}: {'no regression' if self.ok else 'worse: ' + ', '.join(self.regressions)}"
        return html_table(judged, ["key", "unit", "a", "b", "ratio", "verdict"], title) + (f"<ul>{notes}</ul>" if notes else "")


def _escape(text: str) -> str:
    import html

    return html.escape(text)


def compare(a: Target, b: Target, *, noise: float = 0.01, names: Optional[tuple[str, str]] = None, keys: Optional[Sequence[str]] = None,
            ignore_load: bool = False, runs: int = 0, seconds: float = 0.0, **options: Any) -> Comparison:
    """Compares two reports (or their JSON files), or two models, measured in turns on the same inputs. `a` is the baseline.

    noise: smaller relative differences count as noise. names: two names for the output. keys: compare only these metrics.
    ignore_load: judge even if the machine's load differed. runs, seconds, options: of the measurement; see prony.profile.
    """
    if _is_report(a) != _is_report(b):
        raise InvalidArgument("compare takes two reports or two models, not one of each")
    if _is_report(a):
        first, second = _report(a), _report(b)
    else:
        first, second = _measure([a, b], runs, seconds, options)  # type: ignore[list-item]
    given = dict(noise=noise, ignore_load=ignore_load, keys=",".join(keys) if keys else None, first_name=names[0] if names else None,
                 second_name=names[1] if names else None)
    document, text = _prony.compare(first, second, given)
    return Comparison(text, json.loads(document), first, second)


def _measure(models: Sequence[ModelSource], runs: int, seconds: float, options: Mapping[str, Any]) -> list[Report]:
    sessions: list[Session] = []
    try:
        for model in models:
            sessions.append(Session(model, **options))
        return profile_sessions(sessions, runs=runs, seconds=seconds)
    finally:
        for session in sessions:
            session.close()


class Check:
    """Results of thresholds on a report. `ok` is True if no threshold was missed. `data` is prony.check/1, `str()` the command's text."""

    def __init__(self, text: str, data: dict[str, Any]) -> None:
        self.text, self.data = text, data

    @property
    def rows(self) -> Rows:
        """One row per threshold: metric, limit, value, outcome, margin, …"""
        return Rows(next(value for value in self.data.values() if isinstance(value, list)), title="thresholds")

    @property
    def ok(self) -> bool:
        """True if every metric is known and no threshold is missed. As for `prony check`, a limit within the interval ("open") and a
        time of a busy machine ("withheld") are not missed."""
        return all(row["outcome"] in ("met", "open", "withheld") for row in self.rows)

    def raise_for_misses(self) -> None:
        """Raises prony.ThresholdMissed with the text unless `ok` is True."""
        if not self.ok:
            raise ThresholdMissed(self.text)

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.rows._repr_html_()


def check(target: Target, *thresholds: str, **options: Any) -> Check:
    """Checks thresholds such as "latency:20ms", "throughput:1000samples/s", "memory:64MiB", "params:5M" on a report or a model.

    A model is first measured with `options`."""
    if not thresholds:
        raise InvalidArgument("check needs a threshold, such as 'latency:20ms'")
    if _is_report(target):
        report = _report(target)
    else:
        from .profiling import profile

        report = profile(target, **options)  # type: ignore[arg-type]
    document, text = _prony.check(report, list(thresholds), report.name or "report")
    return Check(text, json.loads(document))


class Advice:
    """Recommended changes. `rows`: recommendations, each with action, reason and gain. `considered`: topics without a gain."""

    def __init__(self, text: str, data: dict[str, Any], report: Report, variants: Sequence[Report]) -> None:
        self.text, self.data, self.report, self.variants = text, data, report, list(variants)

    @property
    def rows(self) -> Rows:
        return Rows(self.data["recommendations"], title="recommendations")

    @property
    def considered(self) -> Rows:
        return Rows(self.data["considered"], title="considered")

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from ._text import html_table

        return html_table(list(self.rows), ["topic", "action", "reason", "gain_text"], "recommendations")


_BATCHES = (1, 2, 4, 8, 16)


def _variants(model: _prony.Model, base: Session, batch: Optional[int], options: Mapping[str, Any]) -> list[Session]:
    """Makes sessions to compare: other batch sizes (if free), other thread counts, and rewrites if `options` turn them off."""
    made: list[Session] = []
    for other in _BATCHES if not options.get("shapes") else ():
        if other == (batch or 1):
            continue
        try:
            session = Session(model, batch=other, **options)
            session.prepare()
        except OutOfMemory:
            raise
        except Error:
            continue  # the model fixes its batch
        made.append(session)
    threads, most = 1, len(os.sched_getaffinity(0))
    others = {key: value for key, value in options.items() if key != "threads"}
    while threads <= min(most, 256):
        if threads != base.threads:
            made.append(Session(model, batch=batch, threads=threads, **others))
        threads *= 2
    if options.get("rewrites") is False:
        rewritten: dict[str, Any] = {**options, "rewrites": True}
        made.append(Session(model, batch=batch, **rewritten))
    return made


def recommend(target: Target, *, batch: Optional[int] = None, seconds: float = 2.0, operators: Optional["Registry"] = None,
              progress: Optional[Progress] = None, **options: Any) -> Advice:
    """Recommends changes, each with its measured reason.

    A report gives computed bounds only. A model is measured beside variants of itself (batch, threads), `seconds` each.
    options: see prony.Session."""
    if _is_report(target):
        report, variants, name = _report(target), [], _report(target).name
    else:
        model = open_model(target, operators)  # type: ignore[arg-type]
        base = Session(model, batch=batch, **options)
        sessions = [base]
        try:
            sessions += _variants(model, base, batch, options)
            report, *variants = profile_sessions(sessions, seconds=seconds, progress=progress)
        finally:
            for session in sessions:
                session.close()
        name = report.name
    document, text = _prony.recommend(report, variants, name or "model")
    return Advice(text, json.loads(document), report, variants)


Metric = Callable[[list[Any], Any], float]


def evaluate(model: Union[ModelSource, Session], data: Union[PathLike, Mapping[str, Any]], labels: Any = None, *,
             preprocess: Optional[str] = None, classes: Optional[PathLike] = None, batch: int = 0, output: int = 0, warmup: int = 1,
             metric: Optional[Metric] = None, metric_name: Optional[str] = None,
             progress: Optional[Callable[[int, int], object]] = None, **options: Any) -> Report:
    """Measures accuracy on labelled data, and the time of the runs. report["evaluation"] has the accuracy.

    data: a folder or file (docs/reference/data_formats.md), or {input: array [N, …]} with labels [N].
    preprocess: of images, such as "imagenet" or "resize=256,crop=224,normalize=0..1". classes: file of class names.
    batch: samples per run; 0: the batch of the model or session. output: index of the output with the scores.
    metric(outputs, labels) -> float: the value of one batch, in place of top-1 and top-5; the result is the mean over all samples.
    progress(done, samples). options: see prony.Session; only if `model` is not a session.
    """
    if isinstance(model, Session):
        if options:
            raise InvalidArgument("options cannot be given with a session: give them to prony.Session")
        session, own = model, False
    else:
        session, own = Session(model, **options), True
    arrays = isinstance(data, Mapping)
    if arrays and labels is None:
        raise InvalidArgument("labels are missing: data of arrays needs labels")
    name = metric_name or (getattr(metric, "__name__", "metric") if metric else None)
    given = dict(preprocess=preprocess, classes=None if classes is None else os.fspath(classes), batch=batch, output=output, warmup=warmup,
                 metric=metric, metric_name=name, progress=progress)
    try:
        return _prony.evaluate(session, dict(data) if isinstance(data, Mapping) else os.fspath(data), labels, given)
    finally:
        if own:
            session.close()


def machine(*, measure: bool = False, keep: bool = True, threads: Threads = 0, seconds: float = 0.0) -> Optional[dict[str, Any]]:
    """Returns the peaks of this machine, prony.machine/1: FLOP/s, and bandwidth per memory level.

    The result is the stored measurement, or None. measure=True measures (about 2 s) and stores; reports then have a roofline."""
    text = _prony.machine(measure, keep, 0 if threads in (None, "auto") else int(threads or 0), seconds)
    made: Optional[dict[str, Any]] = None if text is None else json.loads(text)
    return made
