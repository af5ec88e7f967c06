"""What is selected, what is refused, and with which words."""

import json
import pathlib
import shutil
import tempfile
import unittest
from datetime import datetime, timezone

import joular
import pyarrow.parquet
from recorded import experiment, recorded, report, rolled_up, sql


def uj(table, column):
    return sum(round(row[column] * 1e6) for row in table.to_pylist())


class Selections(unittest.TestCase):
    def setUp(self):
        self.data = joular.load(recorded("two_jvms"))

    def test_of_processes(self):
        pids = [row["pid"] for row in self.data.processes().to_pylist()]
        for selected, expected in [
            (self.data.select(process=pids[0]), pids[:1]),
            (self.data.select(process=pids), pids),
            (self.data.select(process="java"), pids),
            (self.data.select(process=str(pids[1])), pids[1:]),
            (self.data.select(main_class="H*"), pids),
            (self.data.select(main_class=["Nothing", "Hot"][1:], process=pids[1]), pids[1:]),
        ]:
            self.assertEqual([row["pid"] for row in selected.processes().to_pylist()], expected)
            self.assertEqual({row["pid"] for row in selected.methods().to_pylist()}, set(expected))
            energies = [
                uj(selected.methods(), "self_joules"),
                uj(selected.branches(), "joules"),
                uj(selected.threads(), "joules"),
            ]
            watts = selected.power().to_pylist()
            energies.append(sum(round((row["selected_watts"] or 0) * row["seconds"] * 1e6) for row in watts))
            self.assertEqual(energies, [uj(selected.processes(), "joules")] * 4)

    def test_of_time_is_that_of_a_report(self):
        starts = [row["start"] for row in self.data.power().to_pylist()]
        part = self.data.select(since=starts[2], until=starts[5].isoformat())
        self.assertEqual([row["start"] for row in part.power().to_pylist()], starts[2:5])
        times = ["--since", starts[2].isoformat(), "--until", starts[5].isoformat()]
        expected = sum(row["self_uj"] for row in report(recorded("two_jvms"), "--by", "method", *times))
        self.assertEqual(uj(part.methods(), "self_joules"), expected)
        nothing = self.data.select(since=datetime(2100, 1, 1, tzinfo=timezone.utc))
        for table in (
            nothing.processes(),
            nothing.methods(),
            nothing.branches(),
            nothing.power(3),
            nothing.power(by="process"),
        ):
            self.assertEqual(len(table), 0, table)

    def test_a_time_without_a_zone_is_refused(self):
        with self.assertRaisesRegex(ValueError, "no time zone: write 2026-01-01T00:00:00Z"):
            self.data.select(since="2026-01-01T00:00:00").power()

    def test_a_name_that_nothing_has_is_refused_with_those_that_there_are(self):
        for condition, words in [
            ({"main_class": "hot"}, "selecting main_class 'hot': nothing is called so; there are: Hot"),
            ({"process": 1}, "selecting process 1"),
            ({"container": "web"}, "there are: none"),
            ({"run": "first"}, "there are: example-"),
            ({"label": "app=shop"}, "there are: none"),
            ({"variant": "new"}, "there are: none"),
        ]:
            with self.assertRaisesRegex(joular.DataSetError, words):
                self.data.select(**condition)

    def test_a_per_and_a_bucket_that_mean_nothing_are_refused(self):
        with self.assertRaisesRegex(ValueError, "write process, command, run or all"):
            self.data.methods(per="thread")
        with self.assertRaisesRegex(ValueError, "write a number of seconds above 0"):
            self.data.power(every=0)


class Experiments(unittest.TestCase):
    def test_have_the_runs_that_count_of_all_variants(self):
        data = joular.load(experiment())
        self.assertEqual(data.variants, ["old", "new"])
        self.assertEqual([row["variant"] for row in data.runs.to_pylist()].count("new"), 1)
        self.assertEqual(len(data.runs), 2)
        for variant, name in (("old", "two_jvms"), ("new", "io")):
            part = data.select(variant=variant)
            [(whole,)] = sql(recorded(name), "SELECT sum(attributed_uj)::BIGINT FROM {windows}")
            self.assertEqual(uj(part.methods(per="all"), "self_joules"), whole)
            of_run = [row for row in data.methods(per="run").to_pylist() if row["variant"] == variant]
            self.assertEqual(sum(round(row["self_joules"] * 1e6) for row in of_run), whole)

    def test_the_last_recording_is_the_one_that_began_last(self):
        data = joular.load(experiment())
        last = max(data.runs.to_pylist(), key=lambda row: row["started"])["run_id"]
        self.assertEqual([row["run_id"] for row in joular.load(experiment(), run="last").runs.to_pylist()], [last])

    def test_data_sets_in_folders_are_opened_without_a_list_of_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("two_jvms", "io"):
                shutil.copytree(recorded(name), pathlib.Path(folder, name))
            shutil.copytree(recorded("io"), pathlib.Path(folder, "same"))
            data = joular.load(folder)
            self.assertEqual(data.variants, ["io", "same", "two_jvms"])
            # A copy has the same run, which counts once for each.
            self.assertEqual(
                uj(data.select(variant="same").methods(), "self_joules"),
                uj(joular.load(recorded("io")).methods(), "self_joules"),
            )
            pathlib.Path(folder, "experiment.json").write_text(json.dumps({"variants": 1, "runs": []}))
            with self.assertRaisesRegex(joular.DataSetError, "experiment.json.*the file is damaged"):
                joular.load(folder)


class Refusals(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.data = pathlib.Path(folder.name, "data")
        shutil.copytree(recorded("two_jvms"), self.data)

    def refuses(self, words, use=lambda data: data):
        with self.assertRaisesRegex(joular.DataSetError, words):
            use(joular.load(self.data))

    def files(self, table):
        return sorted(self.data.glob(f"{table}/**/*.parquet"))

    def test_of_what_is_no_data_set(self):
        shutil.rmtree(self.data)
        self.refuses("there is no such directory: name the directory that --output named")
        self.data.mkdir()
        self.refuses("there is no run in it")
        with self.assertRaisesRegex(joular.DataSetError, "it is in a bucket: copy it"):
            joular.load("s3://bucket/data")

    def test_of_other_versions_of_the_schema(self):
        [file] = self.files("runs")
        for version, words in [
            ("99", "install a newer joular"),
            ("9", "install the joular of the version"),
            ("", "not a file of joular-bpf"),
        ]:
            rows = pyarrow.parquet.read_table(file)
            metadata = {"joular_bpf.schema_version": version} if version else {}
            pyarrow.parquet.write_table(rows.replace_schema_metadata(metadata), file)
            self.refuses(words)

    def test_of_damaged_files(self):
        for table, use in [("threads", joular.DataSet.threads), ("runs", lambda data: data)]:
            file = self.files(table)[-1]
            whole = file.read_bytes()
            file.write_bytes(whole[: len(whole) // 2])
            self.refuses("the file is damaged: copy it anew", use)
            file.write_bytes(whole)

    def test_of_tables_that_were_not_copied(self):
        for table, use in [("processes", joular.DataSet.threads), ("stacks", joular.DataSet.methods)]:
            shutil.move(self.data / table, self.data / "away")
            self.refuses("copy that table, too", use)
            shutil.move(self.data / "away", self.data / table)

    def test_rows_of_windows_that_are_not_whole_do_not_count(self):
        # Windows are written last: without their last file, the other tables have rows too many.
        whole = uj(joular.load(self.data).threads(), "joules")
        self.files("windows")[-1].unlink()
        data = joular.load(self.data)
        [(left,)] = sql(self.data, "SELECT sum(attributed_uj)::BIGINT FROM {windows}")
        self.assertEqual({uj(data.threads(), "joules"), uj(data.methods(), "self_joules")}, {left})
        self.assertLess(left, whole)

    def test_a_run_without_windows_is_empty_and_no_error(self):
        for table in self.data.glob("[a-z]*"):
            if table.name != "runs":
                shutil.rmtree(table)
        shutil.copytree(self.data, self.data.with_name("experiment") / "a")
        shutil.copytree(self.data, self.data.with_name("experiment") / "b")
        self.assertEqual(len(joular.load(self.data.with_name("experiment")).methods()), 0)
        data = joular.load(self.data)
        for table in (
            data.processes(),
            data.threads(),
            data.methods(),
            data.branches(),
            data.power(),
            data.power(by="process"),
        ):
            self.assertEqual(len(table), 0, table)
        self.assertEqual(len(data.runs), 1)


class Rollups(unittest.TestCase):
    def test_have_the_same_energy(self):
        for name in ("two_jvms", "io"):
            data, rolled = joular.load(recorded(name)), joular.load(rolled_up(name))
            for table in (joular.DataSet.processes, joular.DataSet.threads):
                self.assertEqual(uj(table(rolled), "joules"), uj(table(data), "joules"))
            self.assertEqual(uj(rolled.methods(), "self_joules"), uj(data.methods(), "self_joules"))


if __name__ == "__main__":
    unittest.main()
