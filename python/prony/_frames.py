"""Rows as pandas frames. The first frame imports pandas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterable, Iterator, Mapping, Optional, Sequence, overload

from .errors import Error

if TYPE_CHECKING:
    import pandas

Row = dict[str, Any]


class PackageMissing(Error, ImportError):
    """An optional package is not installed."""


def _pandas() -> Any:
    try:
        import pandas
    except ImportError as reason:
        raise PackageMissing("frames need pandas (Debian: python3-pandas; pip: prony[pandas]); .rows(…) has the same as a list of "
                             "dicts") from reason
    return pandas


def pyplot() -> Any:
    try:
        from matplotlib import pyplot as module
    except ImportError as reason:
        raise PackageMissing("plots need matplotlib (Debian: python3-matplotlib; pip: prony[plot])") from reason
    return module


def frame(rows: Iterable[Mapping[str, Any]], columns: Optional[Sequence[str]] = None, index: Optional[str] = None) -> "pandas.DataFrame":
    made = _pandas().DataFrame(list(rows), columns=list(columns) if columns else None)
    return made.set_index(index) if index and index in made.columns else made


class Rows(Sequence[Row]):
    """A list of rows, each a dict; `frame` is the same as a pandas.DataFrame."""

    def __init__(self, rows: Iterable[Row], columns: Optional[Sequence[str]] = None, title: str = "") -> None:
        self._rows = list(rows)
        self._columns = columns
        self.title = title

    @overload
    def __getitem__(self, index: int) -> Row: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Row]: ...

    def __getitem__(self, index: "int | slice") -> "Row | Sequence[Row]":
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    @property
    def frame(self) -> "pandas.DataFrame":
        """The rows as a pandas.DataFrame."""
        return frame(self._rows, self._columns)

    def __repr__(self) -> str:
        from ._text import table

        return table(self._rows, self._columns, self.title)

    def _repr_html_(self) -> str:
        from ._text import html_table

        return html_table(self._rows, self._columns, self.title)


class Totalled(Rows):
    """Rows; the first one is the whole model."""

    @property
    def total(self) -> Row:
        """The row of the whole model."""
        return self[0]

    @property
    def layers(self) -> Rows:
        """The rows without the whole model."""
        return Rows(self._rows[1:], self._columns, self.title)
