"""Reports: costs and measurements of a model."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

from . import _prony
from ._frames import Row, Rows
from ._options import PathLike
from .errors import InvalidArgument

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes

    from .judge import Check

__all__ = ["Report", "load_report"]

_COUNTS = ("macs", "madds", "flops", "special", "int_ops", "parameters", "count")
_FORMS = {".json": "json", ".html": "html", ".htm": "html", ".csv": "csv", ".tex": "latex", ".txt": "text", ".svg": "svg", ".dot": "dot",
          ".folded": "folded"}
_LEVELS = {"layers": 2, "operators": 4, "modules": 8, "nested": 16}


def _flat(row: Row, renamed: dict[str, str], dropped: frozenset[str]) -> Row:
    """Flattens a row: time_ns {mean, …} becomes time_mean_ns, …"""
    made: Row = {}
    for key, value in row.items():
        if key in dropped:
            continue
        if key == "time_ns" and value is None:
            continue
        if key == "time_ns" and isinstance(value, dict):
            made.update({f"time_{part}_ns": number for part, number in value.items()})
        else:
            made[renamed.get(key, key)] = value
    return made


def _shapes(ports: Optional[list[Optional[Row]]]) -> list[Optional[str]]:
    return [None if port is None else f"{port.get('type', '?')}{port.get('shape')}" for port in ports or []]


_LAYER_NAMES = {"bytes": "traffic_bytes", "share": "time_share", "bytes_read": "read_bytes", "bytes_written": "written_bytes",
                "memory_bytes": "output_bytes"}
_OPERATOR_NAMES = {**_LAYER_NAMES, "arithmetic_intensity": "arithmetic_intensity_flop_per_byte"}
_MODULE_NAMES = {"share": "time_share", "time_ns": "time_mean_ns"}
_TYPE_NAMES = {"time_ns": "time_mean_ns"}


class Report(_prony.Report):
    """A report: the model, its layers as the file has them, and the operators that ran.

    `data` is the document prony.report/1 (docs/reference/report.md) as dicts and lists; `report["latency_ns"]` reads a key of it.
    `layers`, `operators`, `modules`, `types`, `memory_timeline` are pandas frames with units in the column names. `rows(level)` returns
    the same as lists of dicts. `plot(kind)` draws with matplotlib. `save(path)` writes JSON, HTML, CSV, … by the suffix.
    Times are nanoseconds, sizes bytes, shares fractions of 1.
    """

    _data: Optional[dict[str, Any]] = None

    @property
    def data(self) -> dict[str, Any]:
        """The document prony.report/1."""
        if self._data is None:
            self._data = json.loads(self._write("json", {"memory": True}))
        assert self._data is not None
        return self._data

    def __getitem__(self, key: str) -> Any:
        return self.data[key]

    def __contains__(self, key: object) -> bool:
        return key in self.data

    def get(self, key: str, default: Any = None) -> Any:
        """Returns the value of a key of the document, or the default."""
        return self.data.get(key, default)

    # ---- values

    @property
    def name(self) -> str:
        """The model's name, without folders."""
        return os.path.basename(str(self.data["model"].get("name", "")))

    @property
    def measured(self) -> bool:
        """True if the model ran; False for a static report."""
        return "latency_ns" in self.data

    @property
    def latency_ns(self) -> dict[str, Any]:
        """Statistics of the latency, ns: mean, median, min, max, std, p50 … p999, median_ci95, samples."""
        if not self.measured:
            raise InvalidArgument("the report has no latency: it is static")
        return dict(self.data["latency_ns"])

    @property
    def totals(self) -> dict[str, Any]:
        """Sums over all layers: macs, flops, parameters, bytes_read, …"""
        return dict(self.data["totals"])

    @property
    def memory(self) -> dict[str, Any]:
        """Bytes of the plan, the weights and the process."""
        return dict(self.data.get("memory", {}))

    @property
    def metrics(self) -> dict[str, Optional[float]]:
        """{key: value} of every metric; None: the report lacks its data."""
        return {row["key"]: row.get("value") for row in json.loads(self._metrics())["metrics"]}

    @property
    def critical_path(self) -> tuple[list[int], int]:
        """The longest dependency chain: (indices of its operators, its time in ns)."""
        return self._critical_path()

    def layer_samples(self, layer: int) -> list[int]:
        """Returns a layer's time in each run, ns. The profile needs keep_samples=True."""
        return self._samples(layer)

    def set_count(self, preset: Optional[str]) -> "Report":
        """Adds the counts of another tool (prony.count_presets()); None removes them. Returns the report itself."""
        self._set_count(preset)
        self._data = None
        return self

    # ---- rows and frames

    def rows(self, level: str) -> Rows:
        """Returns "layers", "operators", "modules", "types", "memory_timeline", "memory_events", "weights" or "nested" (layers in
        subgraphs): rows as dicts, with units in the names."""
        makers = {"layers": self._layer_rows, "operators": self._operator_rows, "modules": self._module_rows, "types": self._type_rows,
                  "memory_timeline": self._timeline_rows, "memory_events": self._event_rows, "weights": self._weight_rows,
                  "nested": self._nested_rows}
        if level not in makers:
            raise InvalidArgument(f"unknown rows {level!r}; wanted one of {', '.join(makers)}")
        return makers[level]()

    def _layer_rows(self) -> Rows:
        dropped = frozenset({"facts", "sources", "inputs", "outputs"})
        kernels = {row["index"]: row.get("kernel") for row in self.data.get("operators", [])}
        executed: list[Row] = []
        folded: list[Row] = []
        for row in self.data.get("layers", []):
            flat = _flat(row, _LAYER_NAMES, dropped)
            made = {key: flat.pop(key) for key in ("index", "name", "module", "op") if key in flat}
            made["kernel"] = kernels.get(row.get("operator"))
            made.update(flat)
            made["inputs"], made["outputs"] = _shapes(row.get("inputs")), _shapes(row.get("outputs"))
            (folded if row.get("folded") else executed).append(made)
        return Rows(executed + folded, title="layers")

    def _operator_rows(self) -> Rows:
        dropped = frozenset({"parallel", "trace", "kernel_facts", "kernel_best", "reasons", "counters"})
        rows = []
        for row in self.data.get("operators", []):
            made = _flat(row, _OPERATOR_NAMES, dropped)
            made.setdefault("bound", None)  # the roofline's, if this machine was measured
            made.setdefault("percent_of_roof", None)
            made["reason"] = next((r["text"] for r in row.get("reasons", [])), None)
            rows.append(made)
        return Rows(rows, title="operators")

    def _module_rows(self) -> Rows:
        return Rows([_flat(row, _MODULE_NAMES, frozenset()) for row in self.data.get("modules", [])], title="modules")

    def _type_rows(self) -> Rows:
        share = "time_share" if self.measured else "flops_share"
        names = {**_TYPE_NAMES, "share": share, "cumulative": "cumulative_" + share}
        return Rows([_flat(row, names, frozenset()) for row in self._types()],
                    title="operator types")

    def _timeline_rows(self) -> Rows:
        names = {row["index"]: row["name"] for row in self.data.get("operators", [])}
        points = self.data.get("memory", {}).get("timeline", [])
        return Rows([{"step": p["step"], "operator": names.get(p["step"]), "live_bytes": p["live_bytes"]} for p in points],
                    ["step", "operator", "live_bytes"], "memory timeline")

    def _event_rows(self) -> Rows:
        return Rows(self.data.get("memory", {}).get("events", []), title="memory events")

    def _weight_rows(self) -> Rows:
        return Rows(self.data.get("weights", []), title="weights")

    def _nested_rows(self) -> Rows:
        return Rows([_flat(row, _LAYER_NAMES, frozenset({"sources", "facts"})) for row in self.data.get("nested_layers", [])],
                    title="layers in subgraphs")

    def _frame(self, level: str) -> "pandas.DataFrame":
        return self.rows(level).frame

    @property
    def layers(self) -> "pandas.DataFrame":
        """One row per node of the model: counts (macs, flops, …), kernel (None: no kernel ran), traffic_bytes, time_mean_ns,
        time_share (0 to 1), output_bytes, … The order is the model's; nodes folded at load time come last, without times."""
        return self._frame("layers")

    @property
    def operators(self) -> "pandas.DataFrame":
        """One row per executed kernel: time_mean_ns, flops_per_second, arithmetic_intensity_flop_per_byte, percent_of_roof,
        bound, reason, …"""
        return self._frame("operators")

    @property
    def modules(self) -> "pandas.DataFrame":
        """One row per module, parents before children; sums include submodules: path, macs, parameters, time_mean_ns, time_share, …"""
        return self._frame("modules")

    @property
    def types(self) -> "pandas.DataFrame":
        """One row per operator type, the slowest first."""
        return self._frame("types")

    @property
    def memory_timeline(self) -> "pandas.DataFrame":
        """One row per step: live_bytes of the arena."""
        return self._frame("memory_timeline")

    @property
    def memory_events(self) -> "pandas.DataFrame":
        """One row per allocation or release in the arena."""
        return self._frame("memory_events")

    @property
    def weights(self) -> "pandas.DataFrame":
        """One row per weight tensor: elements, bytes, layer, trainable."""
        return self._frame("weights")

    # ---- formats

    def write(self, form: str = "text", **options: Any) -> str:
        """Returns the report as text, json, csv, latex, trace (Chrome trace events), folded (flame graphs), dot, svg (chart=…) or html.
        Options: width, top, sort, filter ("name=*conv*"), levels (of "layers", "operators", "modules", "nested"), all, color, chart."""
        levels = options.pop("levels", ())
        bits = 0
        for level in [levels] if isinstance(levels, str) else levels:
            if level != "model" and level not in _LEVELS:
                raise InvalidArgument(f"unknown level {level!r}; wanted model, {', '.join(_LEVELS)}")
            bits |= _LEVELS.get(level, 1)
        if bits:
            options["levels"] = bits
        return self._write(form, options)

    def save(self, path: PathLike, form: Optional[str] = None, **options: Any) -> None:
        """Writes a file, by way of a temporary name. The suffix decides the format (.json .html .csv .tex .txt .svg .dot .folded)."""
        form = form or _FORMS.get(Path(path).suffix.lower())
        if form is None:
            raise InvalidArgument(f"{path}: unknown suffix; give form=, one of {', '.join(sorted(set(_FORMS.values())))}, trace")
        if form == "json":
            options.setdefault("memory", True)
        self._save(os.fspath(path), form, options)

    def check(self, *thresholds: str) -> "Check":
        """Checks the report against thresholds such as "latency:20ms" or "memory:200MiB"."""
        from .judge import check

        return check(self, *thresholds)

    def plot(self, kind: str = "layers", ax: Optional["Axes"] = None, **options: Any) -> "Axes":
        """Draws "roofline", "latency", "memory", "layers" or "types" with matplotlib; returns the axes. `top`: bars of "layers"."""
        from .plots import plot_report

        drawn: "Axes" = plot_report(self, kind, ax, **options)
        return drawn

    def __str__(self) -> str:
        return self.write("text", width=110)

    def __repr__(self) -> str:
        from ._text import amount, duration

        what = f"median {duration(self.latency_ns['median'])}" if self.measured else "static"
        macs, parameters = amount(self.totals["macs"], "MACs"), amount(self.totals["parameters"])
        return f"<prony.Report of {self.name}: {what}, {macs}, {parameters} parameters>"

    def _repr_html_(self) -> str:
        from ._card import report_card

        return report_card(self)

    def __reduce__(self) -> Any:
        return (_restore, (self.name or "report", self._write("json", {"memory": True})))


def _restore(name: str, text: str) -> Report:
    return _prony.load_report(name, text.encode())


def load_report(path: PathLike) -> Report:
    """Reads a report in JSON, written by this package or the command."""
    return _prony.load_report(os.fspath(path), Path(path).read_bytes())
