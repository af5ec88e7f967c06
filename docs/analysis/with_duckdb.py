"""Ten questions to a data set, in SQL (DuckDB).

Usage: with_duckdb.py DATASET [QUESTION…] [--json]
"""

import duckdb

import answers

TABLES = ["branches", "jvms", "methods", "stacks", "threads", "windows"]


def ask(data, sql):
    """Columns and rows of a statement on tables in joules, whose processes have their main class."""
    connection = duckdb.connect()
    for table in TABLES:
        if table in sql.replace("_", " ").split():
            connection.register(table, data.table(table).arrow)
    found = connection.execute(sql)
    return [column[0] for column in found.description], found.fetchall()


def methods(data):
    """methods by self energy"""
    return ask(
        data,
        """SELECT method, round(sum(self_joules), 6) AS joules, sum(self_samples)::BIGINT AS samples
           FROM methods GROUP BY method ORDER BY joules DESC, method LIMIT 10""",
    )


def callers(data):
    """methods by energy with what they call; overloads call each other, so each has its own row"""
    return ask(
        data,
        """SELECT method, coalesce(signature, module, '') AS which, round(sum(total_joules), 6) AS total_joules
           FROM methods GROUP BY method, which ORDER BY total_joules DESC, method, which LIMIT 10""",
    )


def packages(data):
    """packages by self energy; code outside of Java is one row"""
    return ask(
        data,
        """WITH named AS (
             SELECT self_joules, CASE WHEN kind IN
               ('interpreted', 'compiled', 'compiled-c1', 'compiled-c2', 'inlined', 'native-wrapper')
               THEN regexp_replace(method, '[.][^.]*$', '') END AS class FROM methods )
           SELECT CASE WHEN class IS NULL THEN '[not Java]'
                       WHEN contains(class, '.') THEN regexp_replace(class, '[.][^.]*$', '') ELSE '' END AS package,
                  round(sum(self_joules), 6) AS joules
           FROM named GROUP BY 1 ORDER BY joules DESC, package LIMIT 10""",
    )


def processes(data):
    """processes by energy, and their average power"""
    return ask(
        data,
        """WITH times AS (
             SELECT run_id, sum(window_seconds) AS seconds
             FROM (SELECT DISTINCT run_id, window_index, window_seconds FROM windows ) GROUP BY run_id)
           SELECT coalesce(main_class, comm) AS process, pid, round(sum(joules), 6) AS joules,
                  round(sum(joules) / any_value(seconds), 6) AS watts
           FROM threads JOIN times USING (run_id)
           GROUP BY run_id, pid, process_start, process ORDER BY joules DESC, process, pid LIMIT 10""",
    )


def threads(data):
    """threads by energy, by their names and categories"""
    return ask(
        data,
        """SELECT thread_name, category, round(sum(joules), 6) AS joules, round(sum(cpu_seconds), 6) AS cpu_seconds
           FROM threads GROUP BY ALL ORDER BY joules DESC, thread_name, category LIMIT 10""",
    )


def gc(data):
    """what JVMs use for themselves (collection, compilation, VM, …), of it for collection and for compilation"""
    return ask(
        data,
        """SELECT coalesce(main_class, comm) AS process, pid, round(sum(joules), 6) AS joules,
                  round(sum(vm_tax_joules), 6) AS vm_tax_joules, round(sum(gc_joules), 6) AS gc_joules,
                  round(sum(jit_joules), 6) AS jit_joules
           FROM jvms GROUP BY run_id, pid, process_start, process ORDER BY joules DESC, process, pid""",
    )


def evolution(data):
    """energy of windows: measured, and of the targets"""
    return ask(
        data,
        """SELECT window_index, round(sum(measured_joules), 6) AS measured_joules,
                  round(sum(attributed_joules), 6) AS attributed_joules
           FROM windows WHERE domain IS NOT NULL GROUP BY run_id, window_index ORDER BY run_id, window_index""",
    )


def kinds(data):
    """kinds of code by energy"""
    return ask(
        data,
        """SELECT kind, round(sum(self_joules), 6) AS joules
           FROM methods GROUP BY kind ORDER BY joules DESC, kind""",
    )


def branches(data):
    """call branches by energy, root to leaf"""
    return ask(
        data,
        """WITH paths AS (SELECT branch_id, min(folded) AS folded FROM stacks GROUP BY branch_id)
           SELECT folded, round(sum(joules), 6) AS joules FROM branches JOIN paths USING (branch_id)
           GROUP BY branch_id, folded ORDER BY joules DESC, folded LIMIT 10""",
    )


def audit(data):
    """how all energy was divided: of targets, idle, of others; and readings that are uncertain"""
    return ask(
        data,
        """SELECT domain, label, round(sum(measured_joules), 6) AS measured_joules,
                  round(sum(attributed_joules), 6) AS attributed_joules,
                  round(sum(static_joules), 6) AS static_joules,
                  round(sum(unattributed_joules), 6) AS unattributed_joules,
                  count(*) FILTER (WHERE ambiguous) AS uncertain
           FROM windows WHERE domain IS NOT NULL GROUP BY domain, label ORDER BY domain, label""",
    )


QUESTIONS = [methods, callers, packages, processes, threads, gc, evolution, kinds, branches, audit]

if __name__ == "__main__":
    answers.main({question.__name__: question for question in QUESTIONS})
