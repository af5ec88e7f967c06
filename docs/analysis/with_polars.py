"""Ten questions to a data set, with polars.

Usage: with_polars.py DATASET [QUESTION…] [--json]
"""

import polars
from polars import col, lit

import answers

PROCESS = ["run_id", "pid", "process_start", "process"]


def table(data, name):
    """A table in joules, whose processes have their main class."""
    frame = data.table(name).to_polars()
    if "main_class" in frame.columns:
        frame = frame.with_columns(polars.coalesce("main_class", "comm").alias("process"))
    return frame.lazy()


def sums(frame, by, *columns):
    """Sums to the microjoule, in which the data set counts."""
    return frame.group_by(by).agg([col(column).sum().round(6) for column in columns])


def top(frame, column, by, count=10):
    """The largest; equal ones by name."""
    ordered = frame.sort([column, *by], descending=[True] + [False] * len(by))
    return ordered if count is None else ordered.head(count)


def answer(frame, **columns):
    """Columns under these headings, and their rows."""
    return list(columns), frame.select(list(columns.values())).collect().rows()


def methods(data):
    """methods by self energy"""
    found = table(data, "methods").group_by("method").agg(col("self_joules").sum().round(6), col("self_samples").sum())
    return answer(top(found, "self_joules", ["method"]), method="method", joules="self_joules", samples="self_samples")


def callers(data):
    """methods by energy with what they call; overloads call each other, so each has its own row"""
    which = polars.coalesce(col("signature"), col("module"), lit(""))
    found = sums(table(data, "methods").with_columns(which.alias("which")), ["method", "which"], "total_joules")
    found = top(found, "total_joules", ["method", "which"])
    return answer(found, method="method", which="which", total_joules="total_joules")


def packages(data):
    """packages by self energy; code outside of Java is one row"""
    # Package, class, name: the last two parts go.
    package = col("method").str.replace(r"[.]?[^.]*[.][^.]*$", "")
    name = polars.when(col("kind").is_in(answers.JAVA)).then(package).otherwise(lit("[not Java]")).alias("package")
    found = sums(table(data, "methods").with_columns(name), ["package"], "self_joules")
    return answer(top(found, "self_joules", ["package"]), package="package", joules="self_joules")


def processes(data):
    """processes by energy, and their average power"""
    windows = table(data, "windows").unique(["run_id", "window_index"])
    times = windows.group_by("run_id").agg(col("window_seconds").sum().alias("seconds"))
    found = sums(table(data, "threads"), PROCESS, "joules").join(times, on="run_id")
    found = found.with_columns((col("joules") / col("seconds")).round(6).alias("watts"))
    found = top(found, "joules", ["process", "pid"])
    return answer(found, process="process", pid="pid", joules="joules", watts="watts")


def threads(data):
    """threads by energy, by their names and categories"""
    by = ["thread_name", "category"]
    found = top(sums(table(data, "threads"), by, "joules", "cpu_seconds"), "joules", by)
    return answer(found, thread_name="thread_name", category="category", joules="joules", cpu_seconds="cpu_seconds")


def gc(data):
    """what JVMs use for themselves (collection, compilation, VM, …), of it for collection and for compilation"""
    figures = {name: name for name in ["joules", "vm_tax_joules", "gc_joules", "jit_joules"]}
    found = top(sums(table(data, "jvms"), PROCESS, *figures), "joules", ["process", "pid"], None)
    return answer(found, process="process", pid="pid", **figures)


def evolution(data):
    """energy of windows: measured, and of the targets"""
    figures = {name: name for name in ["measured_joules", "attributed_joules"]}
    windows = table(data, "windows").drop_nulls("domain")
    found = sums(windows, ["run_id", "window_index"], *figures).sort("run_id", "window_index")
    return answer(found, window_index="window_index", **figures)


def kinds(data):
    """kinds of code by energy"""
    found = sums(table(data, "methods"), ["kind"], "self_joules")
    return answer(top(found, "self_joules", ["kind"], None), kind="kind", joules="self_joules")


def branches(data):
    """call branches by energy, root to leaf"""
    paths = table(data, "stacks").group_by("branch_id").agg(col("folded").min())
    found = sums(table(data, "branches"), ["branch_id"], "joules").join(paths, on="branch_id")
    return answer(top(found, "joules", ["folded"]), folded="folded", joules="joules")


def audit(data):
    """how all energy was divided: of targets, idle, of others; and readings that are uncertain"""
    figures = {f"{name}_joules": f"{name}_joules" for name in ["measured", "attributed", "static", "unattributed"]}
    sum_of = [col(name).sum().round(6) for name in figures]
    windows = table(data, "windows").drop_nulls("domain").group_by("domain", "label")
    found = windows.agg(*sum_of, col("ambiguous").sum().alias("uncertain")).sort("domain", "label")
    return answer(found, domain="domain", label="label", **figures, uncertain="uncertain")


QUESTIONS = [methods, callers, packages, processes, threads, gc, evolution, kinds, branches, audit]

if __name__ == "__main__":
    answers.main({question.__name__: question for question in QUESTIONS})
