"""Selects runs, processes and time. Conditions of one kind are alternatives; those of different kinds must all hold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from joular.store import DataSetError

# A name or several, exact or with *, ? and […].
Patterns = str | int | Sequence[str | int]

# The recording that began last.
LAST = "last"


@dataclass(frozen=True)
class Selection:
    """Conditions; None allows everything."""

    run: Patterns | None = None
    variant: Patterns | None = None
    process: Patterns | None = None
    main_class: Patterns | None = None
    service: Patterns | None = None
    container: Patterns | None = None
    label: Patterns | None = None
    since: datetime | str | None = None
    until: datetime | str | None = None

    def of_runs(self, runs: pa.Table) -> pa.Table:
        """The runs that are selected."""
        rows = runs.select(["run_id", "variant"]).to_pylist()
        last = recording_of(runs.sort_by("started").column("run_id")[-1].as_py()) if rows else None

        def is_selected(row: dict[str, Any]) -> bool:
            is_last = LAST in _list(self.run) and recording_of(row["run_id"]) == last
            return (is_last or _allow(self.run, [row["run_id"]])) and _allow(self.variant, [row["variant"]])

        self._require("run", {row["run_id"] for row in rows} | {LAST})
        self._require("variant", {row["variant"] for row in rows if row["variant"] is not None})
        return runs.filter(pa.array([is_selected(row) for row in rows], pa.bool_()))

    def of_processes(self, processes: pa.Table) -> pa.Table:
        """The processes that are selected."""
        rows = processes.to_pylist()
        names: dict[str, list[list[Any]]] = {
            "process": [[row["pid"], row["comm"], row["main_class"], row["container"]] for row in rows],
            "main_class": [[row["main_class"]] for row in rows],
            "service": [[row["service"]] for row in rows],
            "container": [[row["container"], (row["container"] or "")[:12], row["container_name"]] for row in rows],
            "label": [_labels(row) for row in rows],
        }
        allowed = [True] * len(rows)
        for name, of_rows in names.items():
            self._require(name, {each for of_row in of_rows for each in of_row if each})
            allowed = [is_so and _allow(getattr(self, name), of_row) for is_so, of_row in zip(allowed, of_rows)]
        return processes.filter(pa.array(allowed, pa.bool_()))

    def is_of_processes(self) -> bool:
        return any(
            getattr(self, name) is not None for name in ("process", "main_class", "service", "container", "label")
        )

    def of_windows(self, windows: pa.Table) -> pa.Table:
        """The windows that start in the time that is selected; `until` is the first moment that is too late."""
        start = windows.column("window_start")
        if self.since is not None:
            windows = windows.filter(pc.greater_equal(start, _moment(self.since)))
        if self.until is not None:
            windows = windows.filter(pc.less(windows.column("window_start"), _moment(self.until)))
        return windows

    def _require(self, name: str, known: Iterable[Any]) -> None:
        """Each condition must be met by something: a name that is mistyped selects nothing otherwise."""
        for wanted in _list(getattr(self, name)):
            if not _allow(wanted, known):
                there = ", ".join(sorted(ascii(each)[1:-1] for each in map(str, known))[:20]) or "none"
                raise DataSetError(f"selecting {name} {wanted!r}: nothing is called so; there are: {there}")


def recording_of(run_id: str) -> str:
    """The recording that a run is part of: --rotate cuts one into several."""
    return re.sub(r"\.\d{4,}$", "", run_id)


def _labels(row: dict[str, Any]) -> list[str]:
    """Labels of a process's pod, and of its host those whose keys the pod does not have."""
    by_key = {label.split("=")[0]: label for label in [*row["host_labels"], *row["labels"]]}
    return list(by_key.values())


def _list(patterns: Patterns | None) -> list[str | int]:
    if patterns is None:
        return []
    return [patterns] if isinstance(patterns, (str, int)) else list(patterns)


def _allow(patterns: Patterns | None, names: Iterable[Any]) -> bool:
    texts = [str(name) for name in names if name is not None]
    return patterns is None or any(
        text == str(wanted) or fnmatchcase(text, str(wanted)) for wanted in _list(patterns) for text in texts
    )


def _moment(moment: datetime | str) -> Any:
    if isinstance(moment, str):
        # Python 3.10 knows no Z.
        moment = datetime.fromisoformat(moment.replace("Z", "+00:00"))
    if moment.tzinfo is None:
        raise ValueError(
            f"{moment.isoformat()} has no time zone: write {moment.isoformat()}Z for UTC, or an offset such as +01:00"
        )
    return pa.scalar(moment, pa.timestamp("us", "UTC"))
