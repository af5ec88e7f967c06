"""Ten questions to a data set, with polars, read lazily, column by column.

Usage: with_polars.py DATASET [QUESTION…] [--json]
"""

import os

import polars
from polars import col, lit

import answers

PROCESS = ["run_id", "pid", "process_start", "comm"]


def table(dataset, name):
    return polars.scan_parquet(os.path.join(dataset, name), hive_partitioning=True)


def sums(frame, by, *columns):
    return frame.group_by([col(name).cast(polars.String) if name in TEXTS else col(name) for name in by]).agg(
        [col(column).sum() for column in columns]
    )


# Dictionaries sort by code, not by name, so columns that order rows become text.
TEXTS = {"method", "package", "comm", "thread_name", "category", "kind", "domain", "label", "folded"}


def top(frame, column, by, count=10):
    """The largest; equal ones by name."""
    ordered = frame.sort([column, *by], descending=[True] + [False] * len(by))
    return ordered if count is None else ordered.head(count)


def rows(frame, *columns):
    return frame.select(columns).collect().rows()


def methods(dataset):
    """self microjoules and samples by method"""
    found = sums(table(dataset, "methods"), ["method"], "self_uj", "self_samples")
    return rows(top(found, "self_uj", ["method"]), "method", "self_uj", "self_samples")


def callers(dataset):
    """total microjoules by method, with what it calls; overloads call each other, so each has its own row"""
    which = polars.coalesce(col("signature").cast(polars.String), col("module").cast(polars.String), lit(""))
    found = sums(table(dataset, "methods").with_columns(which.alias("which")), ["method", "which"], "total_uj")
    return rows(top(found, "total_uj", ["method", "which"]), "method", "which", "total_uj")


def packages(dataset):
    """microjoules by package; code outside of Java by itself"""
    # Package, class, name: the last two parts go.
    package = col("method").cast(polars.String).str.replace(r"[.]?[^.]*[.][^.]*$", "")
    is_java = col("kind").cast(polars.String).is_in(answers.JAVA)
    name = polars.when(is_java).then(package).otherwise(lit("[not Java]")).alias("package")
    found = sums(table(dataset, "methods").with_columns(name), ["package"], "self_uj")
    return rows(top(found, "self_uj", ["package"]), "package", "self_uj")


def processes(dataset):
    """microjoules and average watts by process"""
    windows = table(dataset, "windows").unique(["run_id", "window_index"])
    times = windows.group_by("run_id").agg(col("window_ns").sum().alias("ns"))
    found = sums(table(dataset, "threads"), PROCESS, "energy_uj").join(times, on="run_id")
    found = found.with_columns((col("energy_uj") * 1e3 / col("ns")).round(6).alias("watts"))
    return rows(top(found, "energy_uj", ["comm", "pid"]), "comm", "pid", "energy_uj", "watts")


def threads(dataset):
    """microjoules and CPU time by thread name and category"""
    by = ["thread_name", "category"]
    found = sums(table(dataset, "threads"), by, "energy_uj", "cpu_ns")
    return rows(top(found, "energy_uj", by), *by, "energy_uj", "cpu_ns")


def gc(dataset):
    """microjoules by JVM: total, own work (collection, compilation, VM, …), collection, compilation"""
    figures = ["energy_uj", "vm_tax_uj", "gc_uj", "jit_uj"]
    found = sums(table(dataset, "jvms"), PROCESS, *figures)
    return rows(top(found, "energy_uj", ["comm", "pid"], None), "comm", "pid", *figures)


def evolution(dataset):
    """window, measured and attributed microjoules"""
    figures = ["measured_uj", "attributed_uj"]
    windows = table(dataset, "windows").drop_nulls("domain")
    found = sums(windows, ["run_id", "window_index"], *figures).sort("run_id", "window_index")
    return rows(found, "window_index", *figures)


def kinds(dataset):
    """microjoules by kind of code"""
    found = sums(table(dataset, "methods"), ["kind"], "self_uj")
    return rows(top(found, "self_uj", ["kind"], None), "kind", "self_uj")


def branches(dataset):
    """microjoules by call branch, root to leaf"""
    paths = table(dataset, "stacks").group_by("branch_id").agg(col("folded").cast(polars.String).min())
    found = sums(table(dataset, "branches"), ["branch_id"], "energy_uj").join(paths, on="branch_id")
    return rows(top(found, "energy_uj", ["folded"]), "folded", "energy_uj")


def audit(dataset):
    """domain and label; microjoules measured, of targets, idle, of others; uncertain readings"""
    windows = table(dataset, "windows").drop_nulls("domain").with_columns(col("ambiguous").cast(polars.Int64))
    figures = ["measured_uj", "attributed_uj", "static_uj", "unattributed_uj", "ambiguous"]
    found = sums(windows, ["domain", "label"], *figures).sort("domain", "label")
    return rows(found, "domain", "label", *figures)


QUESTIONS = [methods, callers, packages, processes, threads, gc, evolution, kinds, branches, audit]

if __name__ == "__main__":
    answers.main({question.__name__: question for question in QUESTIONS})
