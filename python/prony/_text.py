"""Numbers and tables as text and HTML."""

from __future__ import annotations

import html
from typing import Any, Iterable, Mapping, Optional, Sequence


def duration(ns: Optional[float]) -> str:
    """1234567 -> "1.23 ms" """
    if ns is None:
        return "-"
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if abs(ns) >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.3g} ns"


def amount(value: Optional[float], unit: str = "") -> str:
    """4089284608, "MACs" -> "4.09 GMACs" """
    if value is None:
        return "-"
    for prefix, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= size:
            return f"{value / size:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}".rstrip()


def size(value: Optional[float]) -> str:
    """102228128 -> "97.5 MiB" """
    if value is None:
        return "-"
    for prefix, scale in (("GiB", 2.0 ** 30), ("MiB", 2.0 ** 20), ("KiB", 2.0 ** 10)):
        if abs(value) >= scale:
            return f"{value / scale:.3g} {prefix}"
    return f"{value:.0f} B"


def cell(key: str, value: Any) -> str:
    if value is None or value == []:
        return "-"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, (list, tuple)):
        return ", ".join(cell(key, item) for item in value)
    return str(value)


def _columns(rows: Sequence[Mapping[str, Any]], columns: Optional[Sequence[str]]) -> list[str]:
    return list(columns) if columns else list(dict.fromkeys(key for row in rows for key in row))


def table(rows: Sequence[Mapping[str, Any]], columns: Optional[Sequence[str]] = None, title: str = "", most: int = 60) -> str:
    names = _columns(rows, columns)
    lines = [names] + [[cell(name, row.get(name)) for name in names] for row in rows[:most]]
    widths = [max(len(line[i]) for line in lines) for i in range(len(names))]
    numeric = [all(isinstance(row.get(name), (int, float, type(None))) for row in rows) for name in names]
    shown = ["  ".join(text.rjust(w) if n else text.ljust(w) for text, w, n in zip(line, widths, numeric)).rstrip() for line in lines]
    if len(rows) > most:
        shown.append(f"… {len(rows) - most} more")
    return "\n".join(([title] if title else []) + shown)


def html_table(rows: Sequence[Mapping[str, Any]], columns: Optional[Sequence[str]] = None, title: str = "", most: int = 60) -> str:
    names = _columns(rows, columns)
    head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell(name, row.get(name)))}</td>" for name in names) + "</tr>"
                   for row in rows[:most])
    more = f"<p>… {len(rows) - most} more</p>" if len(rows) > most else ""
    caption = f"<caption>{html.escape(title)}</caption>" if title else ""
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def bar(share: float, color: str = "#4477aa") -> str:
    width = max(0.0, min(1.0, share)) * 100
    return (f'<div style="background:#e4e4e4;width:120px;height:10px;display:inline-block">'
            f'<div style="background:{color};width:{width:.1f}%;height:10px"></div></div>')


def escaped(parts: Iterable[Any]) -> str:
    return "".join(html.escape(str(part)) for part in parts)
