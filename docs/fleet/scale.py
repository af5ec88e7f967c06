"""Measures what a fleet's minutes cost: bytes, and seconds of questions and of a compaction, by number of hosts.

Usage: scale.py DATA WORK HOSTS [HOSTS ...]

DATA is what one host shipped (a bundle for each run, in `raw`), or its rollup (`joular-bpf rollup`). Its files are copied to
WORK as those of so many hosts, each with a name and runs of its own, and asked with DuckDB through fleet.py. Prints one JSON
object per number of hosts.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import time

import pyarrow as pa
import pyarrow.parquet as pq

FLEET = pathlib.Path(__file__).parent / "fleet.py"
QUESTIONS = ["services", "methods", "hosts", "vm_tax", "cost"]
SETTINGS = ["--set", "price=0.3", "--set", "grams=250", "--set", "pue=1.4"]


def renamed(runs, host):
    """Ids of runs as another host's."""
    return pa.array([f"{host}-{run}" for run in runs.to_pylist()], runs.type)


def renamed_rows(rows, host):
    """The rows of a table, which is a column of a bundle, as another host's."""
    structs = rows.values
    fields = list(structs.type)
    columns = [renamed(column, host) if field.name == "run_id" else column for field, column in zip(fields, structs.flatten())]
    return pa.ListArray.from_arrays(rows.offsets, pa.StructArray.from_arrays(columns, fields=fields), type=rows.type)


def copy(data, fleet, host):
    """The data set of one host as another one's. The file's settings are those of joular-bpf's writer that matter."""
    has_bundles = (data / "raw").is_dir()
    for file in sorted(data.glob("raw/date=*/hour=*/group=*/host=*/*.parquet" if has_bundles else "*/date=*/host=*/*.parquet")):
        folder = (fleet / file.relative_to(data)).parent.with_name(f"host={host}")
        folder.mkdir(parents=True, exist_ok=True)
        with pq.ParquetFile(file) as parquet:
            rows = parquet.read()
        for number, field in enumerate(rows.schema):
            column = rows.column(number).combine_chunks()
            if has_bundles:
                rows = rows.set_column(number, field, renamed_rows(column, host))
            elif field.name == "run_id":
                rows = rows.set_column(number, field, renamed(column, host))
        pq.write_table(rows, folder / f"{host}-{file.name}", compression="zstd")


def seconds(*arguments):
    start = time.monotonic()
    answer = subprocess.run([sys.executable, FLEET, "duckdb", *arguments], capture_output=True, text=True)
    if answer.returncode != 0:
        sys.exit(answer.stderr)
    return round(time.monotonic() - start, 3), answer.stdout


def size(folder):
    return sum(file.stat().st_size for file in folder.rglob("*.parquet"))


data, work, *counts = sys.argv[1:]
fleet, compacted = pathlib.Path(work) / "fleet", pathlib.Path(work) / "compacted"
hosts = 0
for count in sorted(map(int, counts)):
    while hosts < count:
        hosts += 1
        copy(pathlib.Path(data), fleet, f"node-{hosts}")
    figures = {"hosts": count, "bytes": size(fleet), "files": len(list(fleet.rglob("*.parquet")))}
    # What every start of fleet.py costs is told apart.
    figures["start_s"] = seconds(fleet)[0]
    for question in QUESTIONS:
        figures[f"{question}_s"], answer = seconds(fleet, question, *SETTINGS)
        if question == "hosts":
            figures["measured_uj"] = sum(row["measured_uj"] for row in json.loads(answer)["rows"])
    shutil.rmtree(compacted, ignore_errors=True)
    figures["compact_s"] = seconds(fleet, "--compact", compacted)[0]
    for table in ("minutes", "hourly"):
        figures[f"{table}_bytes"] = size(compacted / table)
    print(json.dumps(figures), flush=True)
