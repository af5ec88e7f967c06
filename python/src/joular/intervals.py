"""Computes 95 % intervals of sampled energy, as joular-bpf does: docs/reports.md explains the formula.

A thread's energy is exact, and samples show which of its parts have it. A part of a thread has `energy`, of which
samples divide `sampled`, by so many `samples` with a sum of `squares`. Each thread gets z² samples more, of which a
group has the share that it has of all threads. Intervals are Wilson's, with the threads' variance.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from joular.columns import derive, real, sums

# Standard deviations on either side: 95 % of a normal distribution.
DEVIATIONS = 1.959963985
# Samples that are added to each thread.
PRIOR = DEVIATIONS * DEVIATIONS

FIGURES = ("energy", "sampled", "samples", "squares")
f = pc.field


def threads_of(entries: pa.Table) -> pa.Table:
    """What samples divide of each thread, by scope."""
    wholes = sums(entries, ["scope", "thread"], "sampled", "samples", "squares")
    wholes = derive(wholes, all=real("samples") + PRIOR)
    return derive(wholes, linear=f("squares") * PRIOR / f("all"))


def with_intervals(parts: pa.Table, threads: pa.Table, prefix: str) -> pa.Table:
    """Ends of intervals of groups, µJ, of figures whose names begin so. `parts` are what groups have of threads."""
    scopes = derive(threads, quadratic=f("linear") * PRIOR / f("all"), sampled=real("sampled"))
    scopes = sums(scopes, ["scope"], "sampled", "squares", "linear", "quadratic")
    scopes = scopes.rename_columns(["scope", "all_sampled", "all_squares", "all_linear", "all_quadratic"])
    groups = sums(_seen(parts, threads, prefix), ["scope", "group"], "energy", "sampled", "constant", "linear")
    groups = groups.join(scopes, "scope")
    exact, sampled = f("energy") - f("sampled"), real("sampled")
    is_exact = ((f("sampled") == 0) & (exact > 0)) | (f("all_sampled") <= 0) | (f("all_squares") <= 0)
    # Exact rows must not divide by zero.
    of_threads, squares = (_or_one(f(name)) for name in ("all_sampled", "all_squares"))
    share = pc.min_element_wise(sampled / of_threads, pc.scalar(1.0))
    variance = share * (f("all_linear") - share * f("all_quadratic")) + f("constant") - share * f("linear")
    whole = of_threads * of_threads
    z2 = squares * PRIOR / whole
    centre, spread = share + z2 / 2.0, pc.max_element_wise(variance / whole, pc.scalar(0.0)) + z2 * z2 / (4.0 * PRIOR)
    half = pc.sqrt(spread) * DEVIATIONS
    low = pc.max_element_wise((centre - half) / (z2 + 1.0), pc.scalar(0.0))
    high = pc.min_element_wise((centre + half) / (z2 + 1.0), pc.scalar(1.0))
    ends = (_micro_joules(end * of_threads) + exact for end in (low, high))
    ends = (pc.if_else(is_exact, f("energy"), end) for end in ends)
    low, high = pc.min_element_wise(next(ends), f("energy")), pc.max_element_wise(next(ends), f("energy"))
    return derive(groups, **{f"{prefix}low_uj": low, f"{prefix}high_uj": high}).select(
        ["scope", "group", f"{prefix}low_uj", f"{prefix}high_uj"]
    )


def _seen(parts: pa.Table, threads: pa.Table, prefix: str) -> pa.Table:
    """What each part of a thread adds to its group."""
    of_threads = threads.rename_columns(["scope", "thread", "of_sampled", "of_samples", "of_squares", "all", "linear"])
    names = {name: f(prefix + name) for name in FIGURES}
    rows = derive(parts, **names).join(of_threads.drop_columns("linear"), ["scope", "thread"])
    share = pc.min_element_wise(real("sampled") / _or_one(real("of_sampled")), pc.scalar(1.0))
    share = real("of_samples") * share / f("all")
    squares = real("of_samples") * f("squares") / f("all")
    is_seen = f("of_sampled") > 0
    constant = (pc.scalar(1.0) - share) * squares
    linear = (share * f("of_squares") + squares) * PRIOR / f("all")
    return derive(rows, **{name: _if(is_seen, value) for name, value in [("constant", constant), ("linear", linear)]})


def _if(condition: Any, value: Any) -> Any:
    return pc.if_else(condition, value, pc.scalar(0.0))


def _or_one(value: Any) -> Any:
    return pc.if_else(value > 0.0, value, pc.scalar(1.0))


def _micro_joules(energy: Any) -> Any:
    return pc.round(energy, round_mode="half_towards_infinity").cast(pa.int64())
