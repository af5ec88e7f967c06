"""Sums are those of the files themselves, and intervals those of reports."""

import unittest

import joular
from recorded import recorded, report, rolled_up, sql

KEY = ("class", "method", "signature", "module")
FIGURES = [f"{prefix}{name}" for prefix in ("self_", "total_") for name in ("", "low_", "high_")]


def uj(joules):
    return round(joules * 1e6)


def by_method(rows):
    found = {tuple(row[name] for name in KEY): row for row in rows}
    assert len(found) == len(rows), "a method has two rows"
    return found


class Sums(unittest.TestCase):
    def test_of_methods_are_those_of_the_table(self):
        for name in ("two_jvms", "io", "allocations", "collections", "jmh"):
            data = joular.load(recorded(name))
            expected = sql(
                recorded(name),
                """SELECT pid, method, signature, module, sum(self_uj)::BIGINT, sum(total_uj)::BIGINT,
                   sum(self_samples)::BIGINT, sum(self_cpu_ns)::BIGINT FROM {methods} GROUP BY ALL
                   HAVING sum(total_uj) + sum(total_cpu_ns) + sum(total_samples) > 0""",
            )
            found = [
                (
                    row["pid"],
                    row["method"],
                    row["signature"],
                    row["module"],
                    uj(row["self_joules"]),
                    uj(row["total_joules"]),
                    row["self_samples"],
                    round(row["self_cpu_seconds"] * 1e9),
                )
                for row in data.methods().to_pylist()
            ]
            self.assertEqual(sorted(found, key=str), sorted(expected, key=str), name)

    def test_of_processes_threads_and_branches_are_all_that_targets_have(self):
        for name in ("two_jvms", "io"):
            data, [(whole,)] = (
                joular.load(recorded(name)),
                sql(recorded(name), "SELECT sum(attributed_uj)::BIGINT FROM {windows}"),
            )
            for table in (data.processes(), data.threads(), data.branches(), data.branches(per="all")):
                self.assertEqual(sum(uj(row["joules"]) for row in table.to_pylist()), whole, table.title)
            for java in (False, True):
                for per in ("process", "command", "run", "all"):
                    rows = data.methods(per, java).to_pylist()
                    self.assertEqual(sum(uj(row["self_joules"]) for row in rows), whole, f"{per} {java}")

    def test_of_threads_are_those_of_the_table(self):
        rows = joular.load(recorded("io")).threads().to_pylist()
        expected = sql(
            recorded("io"), "SELECT pid, tid, sum(energy_uj)::BIGINT, sum(samples)::BIGINT FROM {threads} GROUP BY ALL"
        )
        found = [(row["pid"], row["tid"], uj(row["joules"]), row["samples"]) for row in rows]
        self.assertEqual(sorted(found), sorted(expected))
        self.assertEqual({row["main_class"] for row in rows}, {"Io"})

    def test_any_table_has_its_rows_in_joules(self):
        data = joular.load(recorded("two_jvms"))
        [(count, tax)] = sql(recorded("two_jvms"), "SELECT count(*), sum(vm_tax_uj)::BIGINT FROM {jvms}")
        rows = data.table("jvms").to_pylist()
        self.assertEqual((len(rows), sum(uj(row["vm_tax_joules"]) for row in rows)), (count, tax))
        self.assertTrue(all(row["main_class"] == "Hot" and row["modelled"] for row in rows), rows)
        self.assertGreater(len(data.table("stacks")), 3)
        with self.assertRaisesRegex(joular.DataSetError, "there is none"):
            data.table("../runs")


class Intervals(unittest.TestCase):
    def same(self, rows, expected, figures=FIGURES):
        self.assertEqual(set(rows), set(expected))
        for key, row in rows.items():
            for figure in figures:
                # Sums of squares are taken in another order.
                difference = abs(uj(row[f"{figure}joules"]) - expected[key][f"{figure}uj"])
                self.assertLessEqual(difference, 1 if "_" in figure.strip("_") else 0, f"{key} {figure}")

    def test_of_methods_are_those_of_a_report(self):
        for name in ("two_jvms", "io", "allocations", "collections", "jmh"):
            for java in (False, True):
                rows = by_method(joular.load(recorded(name)).methods(per="all", java=java).to_pylist())
                expected = report(recorded(name), "--by", "method", "--no-infer", *(["--java"] if java else []))
                self.same(rows, by_method(expected))
                self.assertTrue(
                    any(row["self_low_uj"] < row["self_uj"] < row["self_high_uj"] for row in expected), name
                )

    def test_of_a_process_are_those_of_a_report_about_it(self):
        rows = joular.load(recorded("two_jvms")).methods().to_pylist()
        for pid in {row["pid"] for row in rows}:
            expected = report(recorded("two_jvms"), "--by", "method", "--no-infer", "--pid", pid)
            self.same(by_method([row for row in rows if row["pid"] == pid]), by_method(expected))

    def test_of_branches_are_those_of_a_report(self):
        rows = joular.load(recorded("io")).branches(per="all").to_pylist()
        rows = {
            row["branch_id"]: {f"self_{name}joules": row[f"{name}joules"] for name in ("", "low_", "high_")}
            for row in rows
        }
        # JSON of a report has ids as texts where they may be too long for a reader.
        expected = {int(row["branch_id"]): row for row in report(recorded("io"), "--by", "branch", "--no-infer")}
        self.same(rows, expected, FIGURES[:3])

    def test_of_a_rollup_are_those_of_a_report_with_what_it_infers(self):
        for name in ("two_jvms", "io"):
            rows = by_method(joular.load(rolled_up(name)).methods(per="all").to_pylist())
            self.same(rows, by_method(report(rolled_up(name), "--by", "method")))


class Power(unittest.TestCase):
    def test_is_divided_by_the_time_that_was_recorded(self):
        data = joular.load(recorded("two_jvms"))
        [(whole, targets)] = sql(
            recorded("two_jvms"), "SELECT sum(measured_uj)::BIGINT, sum(attributed_uj)::BIGINT FROM {windows}"
        )
        for every in (None, 2.5, 3, 60):
            rows = data.power(every).to_pylist()
            self.assertEqual(sum(uj(row["measured_watts"] * row["seconds"]) for row in rows), whole)
            for row in rows:
                parts = row["attributed_watts"] + row["static_watts"] + row["unattributed_watts"]
                self.assertAlmostEqual(row["measured_watts"], parts)
                self.assertAlmostEqual(row["selected_watts"], row["attributed_watts"])
                # Of a part of three seconds, a model's figure is not a third of the power.
                self.assertTrue(3 < row["measured_watts"] < 5, row)
            for by in ("process", "command", "category"):
                rows = data.power(every, by).to_pylist()
                self.assertEqual(sum(uj(row["watts"] * row["seconds"]) for row in rows), targets, f"{every} {by}")
        self.assertEqual([round(row["seconds"]) for row in data.power(3).to_pylist()], [2, 3, 3])


if __name__ == "__main__":
    unittest.main()
