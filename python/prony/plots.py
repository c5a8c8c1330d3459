"""Plots with matplotlib. Each function draws on axes and returns them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Optional

from ._frames import pyplot
from .errors import InvalidArgument

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .report import Report
    from .study import Study

_COLORS = {"compute": "#4477aa", "memory": "#cc6677", "overhead": "#ddaa33", "unknown": "#888888", None: "#888888"}


def _axes(ax: Optional["Axes"], width: float = 7.0, height: float = 4.2) -> Any:
    if ax is not None:
        return ax
    _, made = pyplot().subplots(figsize=(width, height), layout="constrained")
    return made


def _short(name: str, most: int = 34) -> str:
    return name if len(name) <= most else "…" + name[1 - most:]


def _milliseconds(ns: float) -> tuple[float, str]:
    """Chooses a readable unit for times of this size: (its length in ns, its name)."""
    for size, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if ns >= size:
            return size, unit
    return 1.0, "ns"


def _measured(report: "Report", what: str) -> None:
    if not report.measured:
        raise InvalidArgument(f"a plot of {what} needs a measured report; this one is static")


def layers(report: "Report", ax: Optional["Axes"], top: int = 20) -> Any:
    """Draws bars of the slowest layers; for a static report, the layers with most FLOPs."""
    key, label = ("time_mean_ns", "time per run") if report.measured else ("flops", "FLOPs")
    rows = sorted((r for r in report.rows("layers") if r.get(key)), key=lambda r: -float(r[key]))[:top]
    unit, name = _milliseconds(rows[0][key]) if rows and report.measured else (1.0, "")
    axes: Any = _axes(ax, 7.5, 1.2 + 0.26 * max(len(rows), 3))
    types = list(dict.fromkeys(r["op"] for r in rows))
    colors = pyplot().get_cmap("tab10")
    for i, row in enumerate(rows):
        axes.barh(i, row[key] / unit, color=colors(types.index(row["op"]) % 10), label=row["op"])
    axes.set_yticks(range(len(rows)), [_short(r["name"]) for r in rows], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel(f"{label} ({name})" if name else label)
    handles, labels = axes.get_legend_handles_labels()
    unique = dict(zip(labels, handles))
    axes.legend(unique.values(), unique.keys(), fontsize=8, loc="lower right")
    axes.set_title(f"{report.name}: layers")
    return axes


def types(report: "Report", ax: Optional["Axes"]) -> Any:
    """Draws bars of operator types by their share."""
    rows = list(report.rows("types"))
    key = "time_share" if report.measured else "flops_share"
    axes: Any = _axes(ax, 7.0, 1.2 + 0.28 * max(len(rows), 3))
    bars = axes.barh(range(len(rows)), [100 * r[key] for r in rows], color="#4477aa")
    axes.bar_label(bars, [f"{100 * r[key]:.1f} %" for r in rows], fontsize=8, padding=3)
    axes.set_yticks(range(len(rows)), [r["op"] for r in rows], fontsize=9)
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.set_xlabel("share of the time (%)" if report.measured else "share of the FLOPs (%)")
    axes.set_title(f"{report.name}: operator types")
    return axes


def latency(report: "Report", ax: Optional["Axes"]) -> Any:
    """Draws the runs in order, and the median with its 95 % interval."""
    _measured(report, "latency")
    stats = report.latency_ns
    samples = stats["samples"]
    unit, name = _milliseconds(stats["median"])
    axes: Any = _axes(ax)
    axes.plot(range(len(samples)), [s / unit for s in samples], ".", markersize=3, color="#4477aa", label="a run")
    low, high = stats["median_ci95"]
    axes.axhspan(low / unit, high / unit, color="#cc6677", alpha=0.35, linewidth=0)
    axes.axhline(stats["median"] / unit, color="#cc6677", linewidth=1, label="median and its 95 % interval")
    top = sorted(samples)[min(len(samples) - 1, int(0.99 * len(samples)))]
    beyond = sum(s > 1.3 * top for s in samples)
    if beyond:
        axes.set_ylim(top=1.3 * top / unit)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("run" + (f" ({beyond} beyond the picture)" if beyond else ""))
    axes.set_ylabel(f"latency ({name})")
    axes.legend(fontsize=8, loc="best")
    axes.set_title(f"{report.name}: latency of {stats['runs']} runs")
    return axes


def memory(report: "Report", ax: Optional["Axes"]) -> Any:
    """Draws the live bytes of the arena per step, below the arena's size."""
    points = report.rows("memory_timeline")
    if not points:
        raise InvalidArgument("the report has no memory timeline: nothing ran, or the report was saved without memory=True")
    most = max(max(p["live_bytes"] for p in points), report.memory.get("planned_bytes") or 1)
    scale, unit = (2.0 ** 20, "MiB") if most >= 2 ** 20 else (2.0 ** 10, "KiB") if most >= 2 ** 10 else (1.0, "bytes")
    axes: Any = _axes(ax)
    steps, live = [p["step"] for p in points], [p["live_bytes"] / scale for p in points]
    axes.fill_between(steps, live, step="mid", color="#4477aa", alpha=0.6, label="live")
    axes.step(steps, live, where="mid", color="#4477aa", linewidth=1)
    planned, bound = report.memory.get("planned_bytes"), report.memory.get("lower_bound_bytes")
    if planned:
        axes.axhline(planned / scale, color="#cc6677", linewidth=1, label="planned")
    if bound and bound != planned:
        axes.axhline(bound / scale, color="#ddaa33", linewidth=1, linestyle="--", label="lower bound")
    axes.set_ylim(0, 1.25 * most / scale)
    axes.set_xlabel("operator, in order of execution")
    axes.set_ylabel(f"arena ({unit})")
    axes.legend(fontsize=8, loc="upper right", ncols=3)
    axes.set_title(f"{report.name}: memory over a run")
    return axes


def _roofs(report: "Report") -> tuple[Optional[float], list[tuple[str, float]]]:
    """Returns the roofs for the largest measured thread count that does not exceed the report's threads."""
    roof = report.data.get("roof") or {}
    config = report.data.get("config") or {}
    ran = int(config.get("intra_op_threads") or 1) * int(config.get("inter_op_threads") or 1)
    counts = {r["threads"] for r in roof.get("compute", []) if r["threads"] <= max(ran, 1)}
    most = max(counts, default=0)
    peak = max((r["flops_per_second"] for r in roof.get("compute", [])
                if r.get("precision") == "fp32" and r["threads"] == most), default=None)
    return peak, [(r["level"], r["bytes_per_second"]) for r in roof.get("memory", []) if r["threads"] == most]


def roofline(report: "Report", ax: Optional["Axes"]) -> Any:
    """Draws operators by arithmetic intensity and rate, under this machine's roofs (prony.machine(measure=True) measures them)."""
    _measured(report, "the roofline")
    rows = [r for r in report.rows("operators") if r.get("arithmetic_intensity_flop_per_byte") and r.get("flops_per_second")]
    if not rows:
        raise InvalidArgument("the report has no operator that computes")
    axes: Any = _axes(ax, 7.0, 4.8)
    executed = [(r.get("executed_flops") or r["flops"]) / r["flops"] for r in rows]  # by the kernel; flops are the model's
    x = [r["arithmetic_intensity_flop_per_byte"] * part for r, part in zip(rows, executed)]
    y = [r["flops_per_second"] * part for r, part in zip(rows, executed)]
    whole = sum(r.get("time_mean_ns") or 0 for r in rows) or 1
    for bound in dict.fromkeys(r.get("bound") for r in rows):
        mine = [i for i, r in enumerate(rows) if r.get("bound") == bound]
        area = [12 + 400 * (rows[i].get("time_mean_ns") or 0) / whole for i in mine]
        axes.scatter([x[i] for i in mine], [y[i] for i in mine], s=area, alpha=0.75, color=_COLORS.get(bound, "#888888"),
                   label=f"bound by {bound}" if bound not in (None, "unknown") else "operators")
    peak, levels = _roofs(report)
    left, right = min(x) / 3, max(x) * 3
    if peak:
        right = max(right, 3 * peak / min((speed for _, speed in levels), default=peak))
        axes.axhline(peak, color="black", linewidth=1)
        axes.annotate(f"{peak / 1e9:.0f} GFLOP/s", (right, peak), fontsize=8, ha="right", va="bottom")
    for i, (level, speed) in enumerate(levels):
        end = peak / speed if peak else right
        axes.plot([left, end], [left * speed, end * speed], color="black", linewidth=0.8, linestyle=("-", "--", "-.", ":")[i % 4],
                label=f"{level}, {speed / 1e9:.0f} GB/s")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(left, right)
    axes.set_ylim(min(y) / 3, 3 * max(y + ([peak] if peak else [])))
    axes.set_xlabel("arithmetic intensity (FLOP/byte)")
    axes.set_ylabel("FLOP/s")
    axes.legend(fontsize=8, loc="lower right")
    axes.set_title(f"{report.name}: roofline" + ("" if peak else " (no peaks yet: prony.machine(measure=True))"))
    return axes


REPORT_KINDS: dict[str, Callable[..., Any]] = {"layers": layers, "types": types, "latency": latency, "memory": memory, "roofline": roofline}


def plot_report(report: "Report", kind: str, ax: Optional["Axes"], **options: Any) -> Any:
    if kind not in REPORT_KINDS:
        raise InvalidArgument(f"unknown plot {kind!r}; wanted one of {', '.join(REPORT_KINDS)}")
    return REPORT_KINDS[kind](report, ax, **options)


def plot_study(study: "Study", kind: str, ax: Optional["Axes"]) -> Any:
    """Draws "speedup", "efficiency" or "latency" over the threads, with 95 % intervals and the fitted laws."""
    keys = {"speedup": ("speedup", "speedup_ci95"), "efficiency": ("efficiency", "efficiency_ci95"),
            "latency": ("median_ns", "median_ci95_ns")}
    if kind not in keys:
        raise InvalidArgument(f"unknown plot {kind!r}; wanted one of {', '.join(keys)}")
    key, interval = keys[kind]
    axes: Any = _axes(ax)
    results = [r for r in study.rows("results") if not r["again"]]
    groups = dict.fromkeys((r["inter_op_threads"], r["batch"], r["precision"]) for r in results)
    unit, name = _milliseconds(min(r["median_ns"] for r in results)) if kind == "latency" else (1.0, "")
    for inter_op, batch, precision in groups:
        rows = sorted((r for r in results if (r["inter_op_threads"], r["batch"], r["precision"]) == (inter_op, batch, precision)),
                      key=lambda r: int(r["intra_op_threads"]))
        threads = [r["intra_op_threads"] for r in rows]
        values = [r[key] / unit for r in rows]
        errors = [[max(0.0, (r[key] - r[interval][0]) / unit) for r in rows], [max(0.0, (r[interval][1] - r[key]) / unit) for r in rows]]
        label = ", ".join([precision] + ([f"batch {batch}"] if batch else []) + ([f"{inter_op} workers"] if inter_op > 1 else []))
        axes.errorbar(threads, values, yerr=errors, marker="o", capsize=3, label=label)
    most = max(r["intra_op_threads"] for r in results)
    if kind == "speedup":
        axes.plot([1, most], [1, most], color="#888888", linestyle=":", label="ideal")
    if kind == "efficiency":
        axes.axhline(1, color="#888888", linestyle=":", label="ideal")
    axes.set_xticks(sorted({r["intra_op_threads"] for r in results}))
    axes.set_ylim(bottom=0)
    axes.set_xlabel("threads")
    axes.set_ylabel({"speedup": "speedup over one thread", "efficiency": "efficiency", "latency": f"median latency ({name})"}[kind])
    axes.legend(fontsize=8, loc="best")
    axes.set_title(f"{study.name}: {kind} (data: {study.verdict})")
    return axes
