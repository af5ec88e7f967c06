"""Reads the rows of the selection: of its runs, of windows that are whole, of its processes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from joular.columns import LABELS, append, latest, numbered, sums, weakness
from joular.selection import Selection
from joular.store import DataSetError, Store

PROCESS = ["machine", "pid", "process_start"]
_WINDOW = ["run", "window_start"]
_OF_PROCESS = ["window_start", "pid", "process_start", "comm", "main_class"]
_OF_PROCESS += ["service", "container", "container_name", "labels"]


class Rows:
    """Files and what is selected of them. Beside keys, tables have numbers: `run`, `machine` and `process`."""

    def __init__(self, name: str, stores: Sequence[Store], selection: Selection) -> None:
        self.directory = name
        # A part that has one variant of an experiment is called so.
        self.name = f"{name}/{selection.variant}" if isinstance(selection.variant, str) else name
        self.stores = list(stores)
        self.selection = selection

    @property
    def origin(self) -> str:
        """The weakest label of the runs, in words."""
        weakest = pc.max(weakness(self.runs.column("energy_label"))).as_py()
        return "no energy source" if weakest is None else str(LABELS[weakest]).replace("_", " ")

    def columns(self, table: str) -> list[str]:
        return list(dict.fromkeys(column for store in self.stores for column in store.columns(table)))

    def read(self, table: str, columns: Sequence[str]) -> pa.Table:
        """Rows of a table, whatever is selected."""
        stores = [store for store in self.stores if store.files(table)] or self.stores[:1]
        return pa.concat_tables([store.read(table, columns) for store in stores], promote_options="permissive")

    @cached_property
    def runs(self) -> pa.Table:
        parts = []
        for place, store in enumerate(self.stores):
            part = store.read("runs", store.columns("runs"))
            if store.runs is not None:
                part = part.filter(pc.is_in(part.column("run_id"), pa.array(store.runs, pa.string())))
            variant = pa.repeat(pa.scalar(store.variant, pa.string()), part.num_rows)
            parts.append(append(part, variant=variant, store=pa.repeat(pa.scalar(place, pa.int64()), part.num_rows)))
        runs = pa.concat_tables(parts, promote_options="permissive").sort_by("started")
        if runs.num_rows == 0:
            raise DataSetError(f"opening the data set {self.name}: no run of it is complete: wait until one has ended")
        runs = append(runs, machine=numbered(runs, ["hostname", "machine_id", "instance_id"]))
        runs = self.selection.of_runs(runs)
        return append(runs, run=pa.array(range(runs.num_rows), pa.int64())).combine_chunks()

    @cached_property
    def windows(self) -> pa.Table:
        """Each window once. They are written last: rows of others are not complete."""
        windows = self._of_runs("windows", ["window_start", "window_ns"])
        return self.selection.of_windows(sums(windows, [*_WINDOW, "machine"], window_ns="max"))

    @cached_property
    def processes(self) -> pa.Table:
        """What was last known of each process."""
        rows = self._of_runs("processes", _OF_PROCESS)
        rows = latest(rows.filter(pc.is_valid(rows.column("process_start"))), PROCESS, "window_start")
        host, labels = (self.of_run(rows, column) for column in ("hostname", "labels"))
        command = pc.coalesce(rows.column("main_class"), rows.column("comm"))
        rows = self.selection.of_processes(append(rows, host=host, host_labels=labels, command=command))
        return append(rows, process=pa.array(range(rows.num_rows), pa.int64())).combine_chunks()

    def of(self, table: str, columns: Sequence[str]) -> pa.Table:
        """Rows of the selected windows and processes."""
        rows = self._of_runs(table, columns)
        if table in ("processes", "stacks"):
            return rows  # Which are of all windows after theirs.
        rows = joined(rows, self.windows.select(_WINDOW), _WINDOW, "inner")
        if "process_start" not in columns:
            return rows
        kind = "inner" if self.selection.is_of_processes() else "left outer"
        rows = joined(rows, self.processes.select([*PROCESS, "process"]), PROCESS, kind)
        if pc.any(pc.and_(pc.is_null(rows.column("process")), pc.is_valid(rows.column("pid")))).as_py():
            raise self.incomplete(table, "a process is not in table processes")
        return rows

    def incomplete(self, table: str, what: str) -> DataSetError:
        return DataSetError(f"reading table {table} of {self.name}: {what}: copy that table, too")

    def of_run(self, rows: pa.Table, column: str) -> Any:
        """What is known of the rows' runs."""
        return self.runs.column(column).take(rows.column("run"))

    def of_process(self, rows: pa.Table, columns: Sequence[str]) -> pa.Table:
        """Rows with what is known of their processes before all else."""
        known = self.processes.take(rows.column("process")).select(list(columns))
        return pa.table([*known.columns, *rows.columns], [*columns, *rows.column_names])

    def _of_runs(self, table: str, columns: Sequence[str]) -> pa.Table:
        """Rows of the selected runs. Two variants may have copies of one run, whose id is the same."""
        columns, parts = list(dict.fromkeys(["run_id", *columns])), []
        selected = [self.stores[place] for place in sorted(set(self.runs.column("store").to_pylist()))]
        for store in [store for store in selected if store.files(table)] or selected[:1]:
            part, place = store.read(table, columns), self.stores.index(store)
            runs = self.runs.filter(pc.equal(self.runs.column("store"), place))
            known = pc.index_in(part.column("run_id"), runs.column("run_id").combine_chunks())
            parts.append(append(part, run=runs.column("run").take(known), machine=runs.column("machine").take(known)))
        rows = pa.concat_tables(parts, promote_options="permissive")
        return rows.filter(pc.is_valid(rows.column("run")))


def joined(rows: pa.Table, others: pa.Table, keys: Sequence[str], kind: str) -> pa.Table:
    """Rows with the columns of others that have the same key, in their order. Arrow joins no lists: rows are taken."""
    places = append(rows.select(list(keys)), row=pa.array(range(rows.num_rows), pa.int64()))
    places = places.join(others, list(keys), join_type=kind).sort_by("row")
    more = {name: places.column(name) for name in others.column_names if name not in keys}
    return append(rows.take(places.column("row")), **more)
