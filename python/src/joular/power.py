"""Computes watts over time, of the machine and of what is selected."""

from __future__ import annotations

from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from joular.columns import append, derive, is_modelled, real, sums
from joular.rows import Rows

By = Literal["process", "command", "category"]

_AUDIT = ["measured_uj", "attributed_uj", "static_uj", "unattributed_uj"]
_BUCKET = ["run", "start"]


def table(rows: Rows, every: float | None, by: By | None) -> pa.Table:
    """A row for each bucket, and for each that used anything in it if `by` says what."""
    keys = {None: [], "process": ["pid", "main_class", "comm"], "command": ["command"], "category": ["category"]}
    threads = rows.of("threads", ["window_start", "pid", "process_start", "category", "energy_uj"])
    threads = _bucketed(threads, every)
    if by is None:
        found = sums(_bucketed(rows.of("windows", ["window_start", *_AUDIT]), every), _BUCKET, *_AUDIT)
        selected = sums(threads, _BUCKET, "energy_uj").rename_columns([*_BUCKET, "selected_uj"])
        found, energies = found.join(selected, _BUCKET), [*_AUDIT, "selected_uj"]
    else:
        threads = append(threads, command=rows.processes.column("command").take(threads.column("process")))
        found, energies = sums(threads, [*_BUCKET, by], "energy_uj"), ["energy_uj"]
        found = rows.of_process(found, keys[by]) if by == "process" else found
    found = found.join(sums(_bucketed(rows.windows, every), _BUCKET, "window_ns"), _BUCKET)
    found = found.sort_by([(name, "ascending") for name in ("start", "run", *keys[by])])
    length = real("window_ns")
    watts = {f"{name.removesuffix('uj')}watts".removeprefix("energy_"): real(name) * 1e3 / length for name in energies}
    found = append(derive(found, seconds=length / 1e9, **watts), run_id=rows.of_run(found, "run_id"))
    found = append(found, modelled=is_modelled(rows.of_run(found, "energy_label")))
    return found.select(["run_id", "start", "seconds", *keys[by], *watts, "modelled"])


def _bucketed(rows: pa.Table, every: float | None) -> pa.Table:
    """Rows with the start of their bucket: of their window, or of so many seconds of the wall clock."""
    start = rows.column("window_start")
    if every is not None:
        if not every > 0:
            raise ValueError(f"every is {every}: write a number of seconds above 0")
        us = max(round(every * 1e6), 1)
        start = pc.multiply(pc.divide(start.cast(pa.int64()), us), us).cast(start.type)
    return append(rows, start=start)
