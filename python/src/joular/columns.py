"""Computes with columns: expressions of a table's columns, numbers for keys, units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset

# A unit at the end of a column's name, what takes its place, and what of it makes one of that.
_UNITS = {"_uj": ("_joules", 1e6), "_uj2": ("_joules2", 1e12), "_ns": ("_seconds", 1e9)}

# Origins of energy, from the strongest to the weakest.
LABELS = pa.array(["measured", "measured_coarsely", "reported", "modelled_by_processor", "modelled", "replayed"])
_ESTIMATES = pa.array(["modelled_by_processor", "modelled"])


def real(column: str) -> Any:
    """A column of integers, as floating-point numbers."""
    return pc.field(column).cast(pa.float64())


def derive(table: pa.Table, **columns: Any) -> pa.Table:
    """The table with more columns, which are expressions of its own. One of the same name is replaced."""
    wanted = {name: pc.field(name) for name in table.column_names} | columns
    return pa.dataset.dataset(table).to_table(columns=wanted)


def append(table: pa.Table, **columns: Any) -> pa.Table:
    """The table with more columns, which are as long as it is."""
    for name, column in columns.items():
        table = table.append_column(name, column)
    return table


def sums(table: pa.Table, by: Sequence[str], *columns: str, **others: str) -> pa.Table:
    """Sums of columns by key; `others` have an aggregation of their own. All keep their names."""
    wanted = [(name, "sum") for name in columns] + list(others.items())
    found = table.group_by(list(by)).aggregate(wanted)
    # Keys come first or last, by the version of pyarrow.
    values = [found.column(f"{name}_{what}") for name, what in wanted]
    return pa.table([found.column(name) for name in by] + values, [*by, *(name for name, _ in wanted)])


def numbered(table: pa.Table, by: Sequence[str]) -> Any:
    """A number for each row, equal for equal keys: 0, 1, 2, … in the order in which keys come."""
    numbers = pa.repeat(pa.scalar(0, pa.int64()), table.num_rows)
    for name in by:
        codes = _codes(table.column(name))
        most = pc.max(codes).as_py() or 0
        # Numbers are below that of rows, so their products fit.
        numbers = _codes(pc.add(pc.multiply(numbers, most + 1), codes))
    return numbers


def _codes(column: Any) -> Any:
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return array.dictionary_encode(null_encoding="encode").indices.cast(pa.int64())


def latest(table: pa.Table, by: Sequence[str], order: str) -> pa.Table:
    """The last row of each key."""
    ordered = table.sort_by(order)
    rows = append(ordered.select(list(by)), row=pa.array(range(ordered.num_rows), pa.int64()))
    return ordered.take(sums(rows, by, row="max").sort_by("row").column("row"))


def weakness(label: Any) -> Any:
    """How little labels promise, as numbers, so that the greatest is the weakest; null without an energy source."""
    return pc.index_in(label, LABELS)


def with_label(table: pa.Table) -> pa.Table:
    """Names the weakest label in place of its number, and says whether a model computes the energy."""
    labels = LABELS.take(table.column("energy_label").combine_chunks())
    return append(table.drop_columns("energy_label"), energy_label=labels, modelled=is_modelled(labels))


def is_modelled(labels: Any) -> Any:
    """Whether figures are estimates, because a model computes them."""
    return pc.is_in(labels, _ESTIMATES)


def in_units(table: pa.Table) -> pa.Table:
    """Joules and seconds in place of integers of µJ and ns, under names that say so."""
    columns, names = [], []
    for name, column in zip(table.column_names, table.columns):
        unit = next((unit for unit in _UNITS if name.endswith(unit)), None)
        if unit is not None:
            into, per = _UNITS[unit]
            name, column = name[: -len(unit)] + into, pc.divide(column.cast(pa.float64()), per)
        columns.append(column)
        names.append(name)
    return pa.table(columns, [name.removeprefix("energy_") if name == "energy_joules" else name for name in names])
