"""Sums what samples divide: energy of methods and branches, their own and with what they call, with intervals."""

from __future__ import annotations

from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from joular import intervals
from joular.columns import append, derive, numbered, real, sums, weakness
from joular.rows import PROCESS, Rows

# What rows are apart by.
Per = Literal["process", "command", "run", "all"]

_ROW = ["window_start", "pid", "process_start", "stack_id", "energy_uj", "cpu_ns", "samples", "by_bytes_uj"]
_ROW += ["energy_label", "ambiguous"]
# Of a rollup: what light windows get by samples of several.
_POOLED = ["inferred_uj", "inferred_cpu_ns", "squares_uj2", "inferred_squares_uj2", "unsampled_uj"]
# What figures of a group are called in the end, in this order.
_INTO = {"energy": "uj", "low_uj": "low_uj", "high_uj": "high_uj", "cpu_ns": "cpu_ns", "samples": "samples"}
_PREFIXES = ("self_", "total_")
f = pc.field


def groups(rows: Rows, members: pa.Table, named: pa.Table, per: Per) -> pa.Table:
    """Energy of groups of stacks in each scope. `members` has each stack's groups, `named` what they are called."""
    entries, scopes = _entries(rows, per)
    is_known = pc.is_in(entries.column("stack_id"), members.column("stack_id").combine_chunks())
    if pc.any(pc.invert(is_known)).as_py():
        raise rows.incomplete("branches", "a stack is not in table stacks")
    figures = [*intervals.FIGURES, "cpu_ns"]
    zeros = {name: pc.scalar(0.0 if name == "squares" else 0) for name in figures}
    parts = entries.join(members, "stack_id", join_type="inner")
    own = {f"self_{name}": pc.if_else(f("leaf"), f(name), zeros[name]) for name in figures}
    parts = derive(parts, **own, **{f"total_{name}": f(name) for name in figures})
    names = [f"{prefix}{name}" for prefix in _PREFIXES for name in figures]
    parts = sums(parts, ["scope", "group", "thread"], *names, energy_label="max", ambiguous="any")
    found = sums(parts, ["scope", "group"], *names, energy_label="max", ambiguous="any")
    threads = intervals.threads_of(entries)
    for prefix in _PREFIXES:
        found = found.join(intervals.with_intervals(parts, threads, prefix), ["scope", "group"])
    found = found.join(named, "group")
    columns = {name: name for name in named.column_names if name != "group"}
    columns |= {f"{prefix}{name}": f"{prefix}{into}" for prefix in _PREFIXES for name, into in _INTO.items()}
    columns |= {"energy_label": "energy_label", "ambiguous": "ambiguous"}
    known = scopes.take(found.column("scope")) if scopes.num_columns else pa.table({})
    return pa.table([*known.columns, *found.select(list(columns)).columns], [*known.column_names, *columns.values()])


def _entries(rows: Rows, per: Per) -> tuple[pa.Table, pa.Table]:
    """What threads spent on each stack, and what scopes are called. In a rollup, threads are those of a category."""
    is_rollup = "squares_uj2" in rows.columns("branches")
    of_thread = ["category"] if is_rollup else ["tid", "thread_start"]
    found = rows.of("branches", [*_ROW, *of_thread, *(_POOLED if is_rollup else [])])
    if is_rollup:
        found = derive(found, squares=real("squares_uj2") + real("inferred_squares_uj2"), unsampled=f("unsampled_uj"))
        found = derive(found, energy=f("energy_uj") + f("inferred_uj"), cpu_ns=f("cpu_ns") + f("inferred_cpu_ns"))
    else:
        by_samples, samples = real("energy_uj") - real("by_bytes_uj"), real("samples")
        squares = by_samples * by_samples / pc.max_element_wise(samples, pc.scalar(1.0))
        squares = pc.if_else(samples > 0.0, squares, pc.scalar(0.0))
        found = derive(found, squares=squares, unsampled=pc.scalar(0), energy=f("energy_uj"))
    numbers, scopes = _scopes(rows, found, per)
    found = append(found, scope=numbers, thread=numbered(found, [*PROCESS, *of_thread]))
    found = derive(found, energy_label=weakness(f("energy_label")))
    figures = ["energy", "by_bytes_uj", "samples", "unsampled", "squares", "cpu_ns"]
    found = sums(found, ["scope", "thread", "stack_id"], *figures, energy_label="max", ambiguous="any")
    is_sampled = (f("samples") > 0) | (f("unsampled") > 0)
    return derive(found, sampled=pc.if_else(is_sampled, f("energy") - f("by_bytes_uj"), pc.scalar(0))), scopes


def _scopes(rows: Rows, found: pa.Table, per: Per) -> tuple[Any, pa.Table]:
    """The number of each row's scope, and a table with what scopes are called."""
    if per == "process":
        return found.column("process"), rows.processes.select(["host", "pid", "process_start", "main_class", "comm"])
    if per == "command":
        commands = rows.processes.column("command").combine_chunks().dictionary_encode()
        numbers = commands.indices.cast(pa.int64()).take(found.column("process"))
        return numbers, pa.table({"command": commands.dictionary})
    if per == "run":
        return found.column("run"), rows.runs.select(["run_id", "variant"])
    if per == "all":
        return pa.repeat(pa.scalar(0, pa.int64()), found.num_rows), pa.table({})
    raise ValueError(f"per is {per!r}: write process, command, run or all")
