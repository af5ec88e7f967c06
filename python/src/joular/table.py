"""Holds a table of results: Arrow's, with a title; shown with headings, and given to pandas and polars."""

from __future__ import annotations

import html
import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa

# Most rows that are shown, and characters of a cell.
_SHOWN = 20
_WIDEST = 60


@dataclass(frozen=True, repr=False)
class Table:
    """Rows under a title. Names of columns say units: joules, seconds, watts."""

    arrow: pa.Table
    title: str

    def to_pandas(self, **options: Any) -> Any:
        """A DataFrame of pandas; options are those of pyarrow.Table.to_pandas."""
        needed("pandas", "pandas")
        return self.arrow.to_pandas(**options)

    def to_polars(self) -> Any:
        """A DataFrame of polars."""
        return needed("polars", "polars").from_arrow(self.arrow)

    def to_pylist(self) -> list[dict[str, Any]]:
        """A dictionary for each row."""
        rows: list[dict[str, Any]] = self.arrow.to_pylist()
        return rows

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.arrow.__arrow_c_stream__(requested_schema)

    @property
    def columns(self) -> list[str]:
        return list(self.arrow.column_names)

    def __len__(self) -> int:
        return int(self.arrow.num_rows)

    def head(self, rows: int) -> Table:
        """The first rows."""
        return Table(self.arrow.slice(0, rows), self.title)

    def select(self, columns: Sequence[str]) -> Table:
        """Some of the columns."""
        return Table(self.arrow.select(list(columns)), self.title)

    def __repr__(self) -> str:
        rows = self._cells()
        of_type = [self.arrow.schema.field(name).type for name in self.arrow.column_names]
        widths = [max(map(len, column)) for column in zip(self.columns, *rows)]

        def line(cells: Sequence[str]) -> str:
            padded = (
                cell.rjust(width) if pa.types.is_integer(type) or pa.types.is_floating(type) else cell.ljust(width)
                for cell, width, type in zip(cells, widths, of_type)
            )
            return "  ".join(padded).rstrip()

        return "\n".join([self._heading(), line(self.columns), *map(line, rows)])

    def _repr_html_(self) -> str:
        def row(tag: str, cells: Sequence[str]) -> str:
            return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

        body = "".join(row("td", cells) for cells in self._cells())
        return f"<table><caption>{html.escape(self._heading())}</caption>{row('th', self.columns)}{body}</table>"

    def _heading(self) -> str:
        more = f", the first {_SHOWN} of {len(self)} rows" if len(self) > _SHOWN else ""
        return harmless(self.title) + more

    def _cells(self) -> list[list[str]]:
        return [[short(_shown(value)) for value in row.values()] for row in self.head(_SHOWN).to_pylist()]


def harmless(text: str) -> str:
    """A text whose characters all are what they look like. Names come from processes, which may be hostile."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def short(name: str) -> str:
    """A harmless text. Of one that is long, the parameters go first, and the end stays: there are class and method."""
    name = harmless(name)
    function, opened, _ = name.partition("(")
    if len(name) > _WIDEST and function and opened and ";" not in name:
        name = f"{function}(…)"
    return name if len(name) <= _WIDEST else "…" + name[1 - _WIDEST :]


def needed(module: str, extra: str) -> Any:
    """A module that not all users have."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"this needs {module.split('.')[0]}: pip install 'joular[{extra}]'") from error


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1e4 else f"{value:.0f}"
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%SZ")
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value)
