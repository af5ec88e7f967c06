"""Asks the minutes of a fleet, and compacts them, with DuckDB, ClickHouse or Spark.

Usage: fleet.py ENGINE DATA [QUESTION ...] [--set NAME=VALUE ...] [--compact OUT [--hour 2026-03-01T12]]

DATA is a directory of rollups of any number of hosts: a place that they ship to (a file of all tables
for each run, in `raw`), or what `joular-bpf rollup` writes (a folder for each table). ENGINE is duckdb,
clickhouse, or spark; with Spark, DATA and OUT are what all its workers can read and write.
A QUESTION is a file of docs/fleet/sql without its ending. Prints one JSON object per question.

The SQL is the same text for the three engines. What differs is here: how tables are opened, how
a view is made, and how files are written. Amounts are integers everywhere: DuckDB's sums of 64
bits have 128 and would become floating point in Parquet, so the SQL casts them back.
"""

import argparse
import datetime
import json
import pathlib
import shutil
import sys

SQL = pathlib.Path(__file__).parent / "sql"
TABLES = ["methods", "processes", "jvms", "windows"]
# Each may use those before it.
VIEWS = ["names", "minutes", "hourly"]
QUESTIONS = ["services", "methods", "hosts", "vm_tax", "regressions", "cost"]
# Settings that are not texts.
FIGURES = ["work_before", "work_after", "price", "grams", "pue"]
# Minima and maxima of these then tell which files and row groups a question needs.
ORDERS = {
    "minutes": "service, method, window_start, host, run_id, pid, process_start, signature, module, kind",
    "hourly": "service, method, version, signature, module, kind, energy_label",
}


def has_bundles(data):
    """Whether the runs are files of all tables. A run that is there in both forms would count twice."""
    has = {folder: next(pathlib.Path(data, folder).rglob("*.parquet"), None) for folder in ["raw", "runs"]}
    if all(has.values()):
        sys.exit(f"{data} has runs in raw/ and runs in folders of tables: name a place that has one of the two")
    return has["raw"] is not None


def quoted_with_quotes(value):
    return "'" + str(value).replace("'", "''") + "'"


def quoted_with_backslashes(value):
    return "'" + str(value).replace("\\", "\\\\").replace("'", "\\'") + "'"


class DuckDB:
    quoted = staticmethod(quoted_with_quotes)

    def __init__(self, data):
        import duckdb

        self.connection = duckdb.connect()
        self.connection.execute("SET TimeZone = 'UTC'")
        # Without types, a host called 7 is a number.
        options = "union_by_name = true, hive_partitioning = true, hive_types = {'date': DATE, 'host': VARCHAR}"
        for table in TABLES:
            if has_bundles(data):
                files = f"read_parquet({self.quoted(f'{data}/raw/**/*.parquet')}, {options})"
                self.view(table, f"SELECT date, host, unnest({table}, max_depth := 2) FROM {files}")
            else:
                files = f"read_parquet({self.quoted(f'{data}/{table}/**/*.parquet')}, {options})"
                self.view(table, f"SELECT * FROM {files}")

    def view(self, name, select):
        self.connection.execute(f"CREATE VIEW {name} AS {select}")

    def rows(self, select):
        answer = self.connection.execute(select)
        names = [column[0] for column in answer.description]
        return [dict(zip(names, row)) for row in answer.fetchall()]

    def write(self, select, folder):
        file = WholeFile(folder)
        self.connection.execute(f"COPY ({select}) TO {self.quoted(file.partial)} (FORMAT parquet, COMPRESSION zstd)")
        file.publish()


class ClickHouse:
    quoted = staticmethod(quoted_with_backslashes)

    def __init__(self, data):
        from chdb import session

        self.session = session.Session()
        # Of bundles the run's row says host and date: ClickHouse takes a host called 7, if it is the first, for a number.
        settings = ["session_timezone = 'UTC'", f"use_hive_partitioning = {int(not has_bundles(data))}"]
        self.session.query(f"SET {', '.join(settings)}")
        for table in TABLES:
            if has_bundles(data):
                files = f"file({self.quoted(f'{data}/raw/**/*.parquet')}, 'Parquet')"
                names = self.rows(f"SELECT tupleNames({table}[1]) AS names FROM {files} LIMIT 1")[0]["names"]
                columns = ", ".join(f"row.{name} AS {name}" for name in names)
                of_run = "toDate(runs[1].started) AS date, runs[1].hostname AS host"
                self.view(table, f"SELECT {of_run}, {columns} FROM {files} ARRAY JOIN {table} AS row")
            else:
                self.view(table, f"SELECT * FROM file({self.quoted(f'{data}/{table}/**/*.parquet')}, 'Parquet')")

    def view(self, name, select):
        self.session.query(f"CREATE VIEW {name} AS {select}")

    def rows(self, select):
        settings = "output_format_json_quote_64bit_integers = 0"
        answer = self.session.query(f"{select} SETTINGS {settings}", "JSON")
        return json.loads(str(answer))["data"]

    def write(self, select, folder):
        file = WholeFile(folder)
        settings = "output_format_parquet_compression_method = 'zstd', engine_file_truncate_on_insert = 1"
        self.session.query(f"INSERT INTO FUNCTION file({self.quoted(file.partial)}, 'Parquet') {select} SETTINGS {settings}")
        file.publish()


class Spark:
    quoted = staticmethod(quoted_with_backslashes)

    def __init__(self, data):
        from pyspark.sql import SparkSession

        self.spark = SparkSession.builder.appName("joular-bpf fleet").getOrCreate()
        self.spark.conf.set("spark.sql.session.timeZone", "UTC")
        # A host called 7 stays a text.
        self.spark.conf.set("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
        for table in TABLES:
            if has_bundles(data):
                rows = self.spark.read.parquet(f"{data}/raw").selectExpr("date", "host", f"inline({table})")
            else:
                rows = self.spark.read.parquet(f"{data}/{table}")
            rows.createOrReplaceTempView(table)

    def view(self, name, select):
        self.spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {name} AS {select}")

    def rows(self, select):
        return [row.asDict() for row in self.spark.sql(select).collect()]

    def write(self, select, folder):
        # Spark sorts by ranges: each file holds one, in order.
        self.spark.sql(select).write.mode("overwrite").option("compression", "zstd").parquet(str(folder))


class WholeFile:
    """A file that appears when it is complete, alone in its folder: a repetition replaces it."""

    def __init__(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.partial = folder / ".part-0.parquet.partial"

    def publish(self):
        whole = self.folder / "part-0.parquet"
        self.partial.replace(whole)
        # What another engine wrote of the same hour.
        for other in self.folder.iterdir():
            if other != whole:
                other.unlink()


ENGINES = {"duckdb": DuckDB, "clickhouse": ClickHouse, "spark": Spark}


def text_of(name, settings, quoted):
    """A file of SQL with its settings. Figures stand as they are, all else becomes a text."""
    text = (SQL / f"{name}.sql").read_text()
    for key, value in settings.items():
        text = text.replace("{" + key + "}", str(float(value)) if key in FIGURES else quoted(value))
    return text


def hours_of(engine):
    # As text, because engines have times of different types.
    found = engine.rows("SELECT DISTINCT concat('', hour_start) AS hour FROM minutes ORDER BY hour")
    return [datetime.datetime.fromisoformat(str(row["hour"])[:19]) for row in found]


def compact(engine, output, hours):
    """Writes the minutes and sums of each hour; what was there of that hour is replaced."""
    for hour in hours:
        for table, order in ORDERS.items():
            select = f"SELECT * FROM {table} WHERE hour_start = TIMESTAMP '{hour:%Y-%m-%d %H:%M:%S}' ORDER BY {order}"
            engine.write(select, pathlib.Path(output) / table / f"date={hour:%Y-%m-%d}" / f"hour={hour:%H}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("engine", choices=ENGINES)
    parser.add_argument("data")
    parser.add_argument("questions", nargs="*", choices=[*QUESTIONS, "hourly", []], metavar="QUESTION", help=", ".join(QUESTIONS))
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--compact", metavar="OUT")
    parser.add_argument("--hour", action="append", type=datetime.datetime.fromisoformat)
    arguments = parser.parse_args()
    settings = dict(item.split("=", 1) for item in arguments.set)
    engine = ENGINES[arguments.engine](pathlib.Path(arguments.data).absolute())
    for view in VIEWS:
        engine.view(view, text_of(view, settings, engine.quoted))
    if arguments.compact:
        output = pathlib.Path(arguments.compact).absolute()
        compact(engine, output, arguments.hour or hours_of(engine))
    for question in arguments.questions:
        rows = engine.rows(text_of(question, settings, engine.quoted))
        print(json.dumps({"question": question, "rows": rows}, default=str), flush=True)


if __name__ == "__main__":
    main()
