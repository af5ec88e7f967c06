"""Ten questions to a data set, in SQL (DuckDB).

Usage: with_duckdb.py DATASET [QUESTION…] [--json]
"""

import os

import duckdb

import answers


def ask(dataset, sql):
    connection = duckdb.connect()
    for table in ["branches", "jvms", "methods", "processes", "stacks", "threads", "windows"]:
        # A path is a value, not part of the SQL.
        files = os.path.join(dataset, table, "**", "*.parquet")
        connection.from_parquet(files, hive_partitioning=True).create_view(table)
    return connection.execute(sql).fetchall()


def methods(dataset):
    """self microjoules and samples by method"""
    return ask(
        dataset,
        """SELECT method, sum(self_uj)::BIGINT AS uj, sum(self_samples)::BIGINT AS samples
           FROM methods GROUP BY method ORDER BY uj DESC, method LIMIT 10""",
    )


def callers(dataset):
    """total microjoules by method, with what it calls; overloads call each other, so each has its own row"""
    return ask(
        dataset,
        """SELECT method, coalesce(signature, module, '') AS which, sum(total_uj)::BIGINT AS uj
           FROM methods GROUP BY method, which ORDER BY uj DESC, method, which LIMIT 10""",
    )


def packages(dataset):
    """self microjoules by package; code outside of Java is one row"""
    return ask(
        dataset,
        """WITH named AS (
             SELECT self_uj, CASE WHEN kind IN
               ('interpreted', 'compiled', 'compiled-c1', 'compiled-c2', 'inlined', 'native-wrapper')
               THEN regexp_replace(method, '[.][^.]*$', '') END AS class FROM methods)
           SELECT CASE WHEN class IS NULL THEN '[not Java]'
                       WHEN contains(class, '.') THEN regexp_replace(class, '[.][^.]*$', '') ELSE '' END AS package,
                  sum(self_uj)::BIGINT AS uj
           FROM named GROUP BY 1 ORDER BY uj DESC, package LIMIT 10""",
    )


def processes(dataset):
    """microjoules and average watts by process"""
    return ask(
        dataset,
        """WITH times AS (
             SELECT run_id, sum(window_ns) AS ns
             FROM (SELECT DISTINCT run_id, window_index, window_ns FROM windows) GROUP BY run_id)
           SELECT comm, pid, sum(energy_uj)::BIGINT AS uj, round(sum(energy_uj) * 1e3 / any_value(ns), 6) AS watts
           FROM threads JOIN times USING (run_id)
           GROUP BY run_id, pid, process_start, comm ORDER BY uj DESC, comm, pid LIMIT 10""",
    )


def threads(dataset):
    """microjoules and CPU time by thread name and category"""
    return ask(
        dataset,
        """SELECT thread_name, category, sum(energy_uj)::BIGINT AS uj, sum(cpu_ns)::BIGINT AS cpu_ns
           FROM threads GROUP BY ALL ORDER BY uj DESC, thread_name, category LIMIT 10""",
    )


def gc(dataset):
    """microjoules by JVM: total, own work (collection, compilation, VM, …), collection, compilation"""
    return ask(
        dataset,
        """SELECT comm, pid, sum(energy_uj)::BIGINT AS uj, sum(vm_tax_uj)::BIGINT AS tax,
                  sum(gc_uj)::BIGINT AS gc, sum(jit_uj)::BIGINT AS jit
           FROM jvms GROUP BY run_id, pid, process_start, comm ORDER BY uj DESC, comm, pid""",
    )


def evolution(dataset):
    """window, measured and attributed microjoules"""
    return ask(
        dataset,
        """SELECT window_index, sum(measured_uj)::BIGINT AS measured, sum(attributed_uj)::BIGINT AS attributed
           FROM windows WHERE domain IS NOT NULL GROUP BY run_id, window_index ORDER BY run_id, window_index""",
    )


def kinds(dataset):
    """microjoules by kind of code"""
    return ask(
        dataset, "SELECT kind, sum(self_uj)::BIGINT AS uj FROM methods GROUP BY kind ORDER BY uj DESC, kind"
    )


def branches(dataset):
    """microjoules by call branch, root to leaf"""
    return ask(
        dataset,
        """WITH paths AS (SELECT branch_id, min(folded) AS folded FROM stacks GROUP BY branch_id)
           SELECT folded, sum(energy_uj)::BIGINT AS uj FROM branches JOIN paths USING (branch_id)
           GROUP BY branch_id, folded ORDER BY uj DESC, folded LIMIT 10""",
    )


def audit(dataset):
    """domain and label; microjoules measured, of targets, idle, of others; uncertain readings"""
    return ask(
        dataset,
        """SELECT domain, label, sum(measured_uj)::BIGINT AS measured, sum(attributed_uj)::BIGINT AS attributed,
                  sum(static_uj)::BIGINT AS idle, sum(unattributed_uj)::BIGINT AS others,
                  count(*) FILTER (WHERE ambiguous) AS uncertain
           FROM windows WHERE domain IS NOT NULL GROUP BY domain, label ORDER BY domain, label""",
    )


QUESTIONS = [methods, callers, packages, processes, threads, gc, evolution, kinds, branches, audit]

if __name__ == "__main__":
    answers.main({question.__name__: question for question in QUESTIONS})
