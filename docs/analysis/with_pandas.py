"""Ten questions to a data set, with pandas.

Usage: with_pandas.py DATASET [QUESTION…] [--json]
"""

import os

import pandas

import answers

PROCESS = ["run_id", "pid", "process_start", "comm"]


def table(dataset, name):
    # As plain objects, pandas takes names that differ only after a NUL for one name.
    frame = pandas.read_parquet(os.path.join(dataset, name), dtype_backend="pyarrow")
    names = [column for column, kind in frame.dtypes.items() if str(kind).startswith(("dictionary", "string"))]
    return frame.astype({column: "string[pyarrow]" for column in names})


def sums(frame, by, *columns):
    return frame.groupby(by, dropna=False)[list(columns)].sum().reset_index()


def top(frame, column, by, count=10):
    """The largest; equal ones by name."""
    ordered = frame.sort_values([column, *by], ascending=[False] + [True] * len(by))
    return ordered if count is None else ordered.head(count)


def rows(frame, *columns):
    return frame[list(columns)].astype(object).values.tolist()


def methods(dataset):
    """self microjoules and samples by method"""
    found = sums(table(dataset, "methods"), ["method"], "self_uj", "self_samples")
    return rows(top(found, "self_uj", ["method"]), "method", "self_uj", "self_samples")


def callers(dataset):
    """total microjoules by method, with what it calls; overloads call each other, so each has its own row"""
    named = table(dataset, "methods")
    named["which"] = named["signature"].fillna(named["module"]).fillna("")
    found = sums(named, ["method", "which"], "total_uj")
    return rows(top(found, "total_uj", ["method", "which"]), "method", "which", "total_uj")


def packages(dataset):
    """self microjoules by package; code outside of Java is one row"""
    named = table(dataset, "methods")
    # Package, class, name: the last two parts go.
    package = named["method"].str.replace(r"[.]?[^.]*[.][^.]*$", "", regex=True)
    named["package"] = package.where(named["kind"].isin(answers.JAVA), "[not Java]")
    return rows(top(sums(named, ["package"], "self_uj"), "self_uj", ["package"]), "package", "self_uj")


def processes(dataset):
    """microjoules and average watts by process"""
    windows = table(dataset, "windows").drop_duplicates(["run_id", "window_index"])
    times = windows.groupby("run_id").window_ns.sum().rename("ns").reset_index()
    found = sums(table(dataset, "threads"), PROCESS, "energy_uj").merge(times, on="run_id")
    found["watts"] = (found.energy_uj * 1e3 / found.ns).round(6)
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
    windows = table(dataset, "windows").dropna(subset="domain")
    figures = ["measured_uj", "attributed_uj"]
    found = sums(windows, ["run_id", "window_index"], *figures)
    return rows(found, "window_index", *figures)


def kinds(dataset):
    """microjoules by kind of code"""
    found = sums(table(dataset, "methods"), ["kind"], "self_uj")
    return rows(top(found, "self_uj", ["kind"], None), "kind", "self_uj")


def branches(dataset):
    """microjoules by call branch, root to leaf"""
    paths = table(dataset, "stacks").groupby("branch_id").folded.min().reset_index()
    found = sums(table(dataset, "branches"), ["branch_id"], "energy_uj").merge(paths, on="branch_id")
    return rows(top(found, "energy_uj", ["folded"]), "folded", "energy_uj")


def audit(dataset):
    """domain and label; microjoules measured, of targets, idle, of others; uncertain readings"""
    windows = table(dataset, "windows").dropna(subset="domain")
    windows["ambiguous"] = windows["ambiguous"].fillna(False).astype("int64")
    figures = ["measured_uj", "attributed_uj", "static_uj", "unattributed_uj", "ambiguous"]
    found = sums(windows, ["domain", "label"], *figures)
    return rows(found, "domain", "label", *figures)


QUESTIONS = [methods, callers, packages, processes, threads, gc, evolution, kinds, branches, audit]

if __name__ == "__main__":
    answers.main({question.__name__: question for question in QUESTIONS})
