"""Answers questions to a data set: joules of processes, threads, methods and branches, watts over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from joular import paths, power, sampled
from joular.columns import append, derive, in_units, is_modelled, latest, real, sums, weakness, with_label
from joular.rows import Rows, joined
from joular.sampled import Per
from joular.selection import Patterns, Selection, recording_of
from joular.store import DataSetError, find
from joular.table import Table

if TYPE_CHECKING:
    from joular.plot import Plots

_OF_PROCESS = ["host", "pid", "process_start", "main_class", "comm", "service", "container"]
_OF_THREAD = ["window_start", "pid", "process_start", "tid", "thread_start", "thread_name", "category"]
# Equal energies are ordered by these.
_NAMES = ["pid", "comm", "command", "method", "folded", "signature", "module", "tid"]


def load(path: str | PathLike[str], *, run: Patterns | None = None) -> DataSet:
    """Opens the data set that joular-bpf wrote to a local directory, or all data sets of an experiment's directory.

    `run` selects runs by their ids; "last" is the recording that began last. Raises DataSetError if there is none.
    """
    root = Path(path)
    return DataSet(Rows(root.resolve().name, find(root), Selection())).select(run=run)


class DataSet:
    """A data set, or the part of it that is selected. All tables are of this part."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def select(
        self,
        *,
        run: Patterns | None = None,
        variant: Patterns | None = None,
        process: Patterns | None = None,
        main_class: Patterns | None = None,
        service: Patterns | None = None,
        container: Patterns | None = None,
        label: Patterns | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
    ) -> DataSet:
        """The part that meets these conditions, too; a condition takes the place of an earlier one of its kind.

        Names are exact or patterns with *, ? and […]; a list has alternatives. `process` is a pid, or a process name,
        main class or container. `label` is KEY=VALUE of a pod or host. Times have a time zone, and `until` is the first
        moment that is too late. Raises DataSetError if nothing in the data set is called so.
        """
        given = {name: value for name, value in locals().items() if name != "self" and value is not None}
        part = Rows(self._rows.directory, self._rows.stores, replace(self._rows.selection, **given))
        _ = part.processes  # Now, because a name may be mistyped.
        return DataSet(part)

    @property
    def name(self) -> str:
        """The directory's name, with the variant's if one is selected."""
        return self._rows.name

    @property
    def origin(self) -> str:
        """How the energy came about, the weakest of all runs: measured, reported, modelled, …"""
        return self._rows.origin

    @property
    def variants(self) -> list[str]:
        """Names of the experiment's variants; empty if this is not an experiment."""
        return [store.variant for store in self._rows.stores if store.variant is not None]

    @property
    def recordings(self) -> int:
        """How many recordings the selection has. --rotate cuts one into several runs."""
        return len({recording_of(run) for run in self._rows.runs.column("run_id").to_pylist()})

    @property
    def runs(self) -> Table:
        """The runs, each with its sums and what it ran on."""
        runs = self._rows.runs.drop_columns(["machine", "store", "run"])
        runs = append(runs, modelled=is_modelled(runs.column("energy_label")))
        return Table(in_units(runs), self.title("Runs"))

    def windows(self) -> Table:
        """Energy domains in windows. What belongs to a whole window is repeated on the rows of its domains."""
        return self.table("windows")

    def table(self, name: str) -> Table:
        """The rows of a table of docs/schema.md as they were recorded, in joules and with processes' main classes."""
        columns = self._rows.columns(name)
        if "window_start" not in columns:
            raise DataSetError(f"reading table {name} of {self.name}: there is none: docs/schema.md lists the tables")
        rows = self._rows.of(name, columns)
        if "process" in rows.column_names:
            rows = append(rows, main_class=self._rows.processes.column("main_class").take(rows.column("process")))
        for label in {"energy_label", "label"} & set(columns):
            rows = append(rows, modelled=is_modelled(rows.column(label)))
        rows = rows.select([column for column in rows.column_names if column not in ("machine", "run", "process")])
        return Table(in_units(rows), self.title(f"Table {name}"))

    def processes(self) -> Table:
        """Energy of processes, which is exact; watts over all windows of their host."""
        rows = self._threads(["process"])
        rows = append(rows, machine=self._rows.processes.column("machine").take(rows.column("process")))
        rows = rows.join(sums(self._rows.windows, ["machine"], "window_ns"), "machine")
        rows = derive(rows, watts=real("energy_uj") * 1e3 / real("window_ns"))
        rows = self._rows.of_process(rows, _OF_PROCESS).drop_columns(["machine", "window_ns", "process"])
        return self._ranked("Processes", rows, "energy_uj")

    def threads(self) -> Table:
        """Energy of threads, which is exact."""
        rows = self._threads(["process", "tid", "thread_start"])
        rows = self._rows.of_process(rows, ["host", "pid", "main_class", "comm"]).drop_columns("process")
        return self._ranked("Threads", rows, "energy_uj")

    def methods(self, per: Per = "process", java: bool = False) -> Table:
        """Energy of methods with 95 % intervals: `self` of paths that end in one, `total` of paths that it is on.

        Rows of a process, of all processes of one name, of a run, or of all are summed, as `per` says. With `java`,
        native and kernel code counts for the Java code that called it. Figures are those of
        `joular-bpf report --no-infer --exact-names`.
        """
        stacks = self._rows.read("stacks", ["stack_id", "window_start", "frames"])
        rows = sampled.groups(self._rows, *paths.methods(stacks, java), per)
        return self._ranked("Methods by self energy", rows, "self_uj")

    def branches(self, per: Per = "process") -> Table:
        """Energy of call branches, from root to leaf, with 95 % intervals."""
        stacks = self._rows.read("stacks", ["stack_id", "window_start", "branch_id", "depth", "folded"])
        rows = sampled.groups(self._rows, *paths.branches(stacks), per)
        rows = rows.select([name for name in rows.column_names if not name.startswith("total_")])
        names = [name.removeprefix("self_") for name in rows.column_names]
        names = ["energy_uj" if name == "uj" else name for name in names]
        return self._ranked("Call branches", rows.rename_columns(names), "energy_uj")

    def power(self, every: float | None = None, by: power.By | None = None) -> Table:
        """Watts over time: of windows, or of so many seconds.

        A row is about the windows that start in it, and divides by their length, whether or not they fill it. Without
        `by`: what was measured, its parts by the audit, and what is selected of it. With `by`: of each process, name of
        processes, or category of threads that used anything.
        """
        title = "Power" if by is None else f"Power by {by}"
        return Table(power.table(self._rows, every, by), self.title(title))

    @property
    def plot(self) -> Plots:
        """Charts of the selection, by matplotlib."""
        from joular.plot import Plots

        return Plots(self)

    def title(self, what: str) -> str:
        """Says of what something is, and how the energy came about."""
        return f"{what}: {self.name}, {self.origin}"

    def _threads(self, by: Sequence[str]) -> pa.Table:
        """Sums of threads by key, with their latest names if the key has threads."""
        rows = self._rows.of("threads", [*_OF_THREAD, "energy_uj", "cpu_ns", "samples", "energy_label", "ambiguous"])
        rows = derive(rows, energy_label=weakness(pc.field("energy_label")))
        found = sums(rows, by, "energy_uj", "cpu_ns", "samples", energy_label="max", ambiguous="any")
        if "tid" not in by:
            return found
        return joined(found, latest(rows, by, "window_start").select([*by, "thread_name", "category"]), by, "inner")

    def _ranked(self, what: str, rows: pa.Table, first: str) -> Table:
        names = [name for name in _NAMES if name in rows.column_names]
        rows = with_label(rows).sort_by([(first, "descending"), *((name, "ascending") for name in names)])
        return Table(in_units(rows), self.title(what))
