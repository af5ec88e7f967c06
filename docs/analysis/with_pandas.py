"""Ten questions to a data set, with pandas.

Usage: with_pandas.py DATASET [QUESTION…] [--json]
"""

import pandas

import answers

PROCESS = ["run_id", "pid", "process_start", "process"]


def table(data, name):
    """A table in joules, whose processes have their main class."""
    # As plain objects, pandas takes names that differ only after a NUL for one name.
    frame = data.table(name).to_pandas(types_mapper=pandas.ArrowDtype)
    return frame.assign(process=frame.main_class.fillna(frame.comm)) if "main_class" in frame else frame


def sums(frame, by, *columns):
    """Sums to the microjoule, in which the data set counts."""
    return frame.groupby(by, dropna=False)[list(columns)].sum().round(6).reset_index()


def top(frame, column, by, count=10):
    """The largest; equal ones by name."""
    ordered = frame.sort_values([column, *by], ascending=[False] + [True] * len(by))
    return ordered if count is None else ordered.head(count)


def answer(frame, **columns):
    """Columns under these headings, and their rows."""
    return list(columns), frame[list(columns.values())].astype(object).values.tolist()


def methods(data):
    """methods by self energy"""
    found = sums(table(data, "methods"), ["method"], "self_joules", "self_samples")
    return answer(top(found, "self_joules", ["method"]), method="method", joules="self_joules", samples="self_samples")


def callers(data):
    """methods by energy with what they call; overloads call each other, so each has its own row"""
    named = table(data, "methods")
    named["which"] = named["signature"].fillna(named["module"]).fillna("")
    found = sums(named, ["method", "which"], "total_joules")
    found = top(found, "total_joules", ["method", "which"])
    return answer(found, method="method", which="which", total_joules="total_joules")


def packages(data):
    """packages by self energy; code outside of Java is one row"""
    named = table(data, "methods")
    # Package, class, name: the last two parts go.
    package = named["method"].str.replace(r"[.]?[^.]*[.][^.]*$", "", regex=True)
    named["package"] = package.where(named["kind"].isin(answers.JAVA), "[not Java]")
    found = top(sums(named, ["package"], "self_joules"), "self_joules", ["package"])
    return answer(found, package="package", joules="self_joules")


def processes(data):
    """processes by energy, and their average power"""
    windows = table(data, "windows").drop_duplicates(["run_id", "window_index"])
    times = windows.groupby("run_id").window_seconds.sum().rename("seconds").reset_index()
    found = sums(table(data, "threads"), PROCESS, "joules").merge(times, on="run_id")
    found["watts"] = (found.joules / found.seconds).round(6)
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
    windows = table(data, "windows").dropna(subset="domain")
    figures = {name: name for name in ["measured_joules", "attributed_joules"]}
    return answer(sums(windows, ["run_id", "window_index"], *figures), window_index="window_index", **figures)


def kinds(data):
    """kinds of code by energy"""
    found = sums(table(data, "methods"), ["kind"], "self_joules")
    return answer(top(found, "self_joules", ["kind"], None), kind="kind", joules="self_joules")


def branches(data):
    """call branches by energy, root to leaf"""
    paths = table(data, "stacks").groupby("branch_id").folded.min().reset_index()
    found = sums(table(data, "branches"), ["branch_id"], "joules").merge(paths, on="branch_id")
    return answer(top(found, "joules", ["folded"]), folded="folded", joules="joules")


def audit(data):
    """how all energy was divided: of targets, idle, of others; and readings that are uncertain"""
    windows = table(data, "windows").dropna(subset="domain")
    windows["ambiguous"] = windows["ambiguous"].fillna(False).astype("int64")
    figures = {f"{name}_joules": f"{name}_joules" for name in ["measured", "attributed", "static", "unattributed"]}
    found = sums(windows, ["domain", "label"], *figures, "ambiguous")
    return answer(found, domain="domain", label="label", **figures, uncertain="ambiguous")


QUESTIONS = [methods, callers, packages, processes, threads, gc, evolution, kinds, branches, audit]

if __name__ == "__main__":
    answers.main({question.__name__: question for question in QUESTIONS})
