"""Data sets of recordings: joular-bpf (JOULAR_BPF) makes each once, in a directory that goes at the end."""

import atexit
import functools
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

import duckdb

RECORDINGS = pathlib.Path(__file__).parents[2] / "tests/fixtures/recordings"
FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="joular-python-"))
atexit.register(shutil.rmtree, FOLDER)


def joular_bpf(*arguments):
    """What joular-bpf prints."""
    return subprocess.run(
        [os.environ["JOULAR_BPF"], *map(str, arguments)], check=True, capture_output=True, encoding="utf-8"
    ).stdout


@functools.cache
def recorded(name):
    """The data set of a recording."""
    joular_bpf("--replay", RECORDINGS / f"{name}.jrec", "--quiet", "--flush", "3s", "--output", FOLDER / name)
    return FOLDER / name


@functools.cache
def rolled_up(name):
    """A rollup of it, in windows of two seconds."""
    joular_bpf("rollup", recorded(name), "--window", "2s", "--output", FOLDER / f"{name}-rollup")
    return FOLDER / f"{name}-rollup"


@functools.cache
def experiment():
    """Laid out as an experiment of two variants, with a run that does not count."""
    folder = FOLDER / "experiment"
    for variant, name in (("old", "two_jvms"), ("new", "io"), ("new", "jmh")):
        joular_bpf("--replay", RECORDINGS / f"{name}.jrec", "--quiet", "--output", folder / variant)
    rows = duckdb.sql(f"SELECT DISTINCT run_id FROM '{folder}/*/runs/**/*.parquet'").fetchall()
    uncounted = duckdb.sql(f"SELECT run_id FROM '{recorded('jmh')}/runs/**/*.parquet'").fetchall()
    log = {
        "version": 1,
        "variants": [{"name": name, "folder": name} for name in ("old", "new")],
        "runs": [{"run_id": run} for (run,) in set(rows) - set(uncounted)],
    }
    (folder / "experiment.json").write_text(json.dumps(log))
    return folder


def sql(dataset, text):
    """Rows of a statement on the files themselves; {table} stands for a table's files."""
    tables = {each.name: f"'{each}/**/*.parquet'" for each in pathlib.Path(dataset).iterdir() if each.is_dir()}
    return duckdb.sql(text.format(**tables)).fetchall()


def report(dataset, *options):
    """The rows of a report's table with time or energy. Others have bytes or counts only."""
    said = joular_bpf("report", dataset, "--json", "--top", "0", "--exact-names", *options)
    rows = json.loads(said)["tables"][0]["rows"]
    return [row for row in rows if row["total_uj"] or row["total_cpu_ns"] or row["total_samples"]]
