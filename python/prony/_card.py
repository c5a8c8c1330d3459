"""A report as a card in a notebook."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from ._text import amount, bar, duration, size

if TYPE_CHECKING:
    from .report import Report

_ROWS = 8


def _fact(label: str, value: str) -> str:
    return (f'<div style="display:inline-block;margin:0 1.6em .4em 0"><div style="color:#777;font-size:80%">{html.escape(label)}</div>'
            f'<div style="font-size:120%">{html.escape(value)}</div></div>')


def _facts(report: "Report") -> str:
    totals, memory, config = report.totals, report.memory, report.data["config"]
    facts = []
    if report.measured:
        latency = report.latency_ns
        low, high = latency.get("median_ci95", [None, None])
        facts.append(_fact("median latency", duration(latency["median"])))
        facts.append(_fact("95 % interval", f"{duration(low)} to {duration(high)}"))
        facts.append(_fact("runs", str(latency["runs"])))
        facts.append(_fact("threads", str(config.get("intra_op_threads"))))
    facts.append(_fact("MACs", amount(totals["macs"])))
    facts.append(_fact("FLOPs", amount(totals["flops"])))
    facts.append(_fact("parameters", amount(totals["parameters"])))
    if memory.get("peak_live_bytes") is not None:
        facts.append(_fact("arena peak", size(memory["peak_live_bytes"])))
    if memory.get("peak_rss_bytes") is not None:
        facts.append(_fact("process peak", size(memory["peak_rss_bytes"])))
    for metric in report.data.get("evaluation", []) if isinstance(report.data.get("evaluation"), list) else []:
        facts.append(_fact(str(metric.get("metric")), f"{metric.get('value'):.4g}"))
    return "".join(facts)


def _rows(report: "Report") -> str:
    if report.measured:
        rows = [(r["name"], f"{r['op']} · {r.get('kernel', '')}", r.get("share") or 0.0, duration((r.get("time_ns") or {}).get("mean")),
                 str(r.get("bound") or "")) for r in report.data["operators"]]
    else:
        whole = sum(r.get("flops", 0) for r in report.data["layers"]) or 1
        rows = [(r["name"], r["op"], r.get("flops", 0) / whole, amount(r.get("flops"), "FLOPs"), "") for r in report.data["layers"]]
    rows.sort(key=lambda row: -row[2])
    left, line = "style='text-align:left'", "style='white-space:nowrap'"
    return "".join(f"<tr {line}><td {left}>{html.escape(name)}</td><td {left}>{html.escape(what)}</td>"
                   f"<td>{bar(share)}</td><td>{100 * share:.1f} %</td><td>{html.escape(cost)}</td><td>{html.escape(bound)}</td></tr>"
                   for name, what, share, cost, bound in rows[:_ROWS])


def report_card(report: "Report") -> str:
    """Returns the card: a heading, the main values, and the most expensive rows."""
    disturbance = report.data.get("disturbance", {})
    busy = disturbance.get("verdict") == "busy"
    text = str(disturbance.get("text") or "The machine was busy with other work.")
    warning = f"<p style='color:#a50'>{html.escape(text)}</p>" if busy else ""
    level = "slowest operators" if report.measured else "layers with most FLOPs"
    system = report.data.get("system", {})
    known = (system.get("cpu_model"), f"Prony {system.get('prony_version')}")
    where = " · ".join(str(part) for part in known if part) if report.measured else ""
    return (f'<div style="border:1px solid #ccc;border-radius:6px;padding:.8em 1em;max-width:60em">'
            f'<div style="font-size:130%;margin-bottom:.5em">{html.escape(report.name)}</div>{_facts(report)}{warning}'
            f'<table style="font-size:90%"><caption>{level}</caption><tbody>{_rows(report)}</tbody></table>'
            f'<div style="color:#777;font-size:80%">{html.escape(where)}</div></div>')
