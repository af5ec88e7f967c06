"""Finds and reads the files of data sets: of one in a directory, or of all variants of an experiment."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet

# The version of docs/schema.md that this package reads.
SCHEMA_VERSION = 11

# What an experiment has done, beside the data sets of its variants.
EXPERIMENT = "experiment.json"

# Types of columns that a table without files would have.
_TIME = pa.timestamp("us", "UTC")
_TEXTS = {
    "run_id",
    "comm",
    "thread_name",
    "category",
    "energy_label",
    "main_class",
    "service",
    "container",
    "domain",
    "label",
}
_FRAME = pa.struct([(name, pa.string()) for name in ("class", "method", "signature", "module", "kind")])


class DataSetError(Exception):
    """A directory is not a data set, or what is selected is not in it. The message says what to do."""


@dataclass(frozen=True)
class Store:
    """A directory with a folder for each table."""

    root: Path
    # The variant of an experiment that it has the runs of.
    variant: str | None = None
    # The runs that count; all if None.
    runs: frozenset[str] | None = None

    def files(self, table: str) -> list[Path]:
        """Files of a table, in the order of dates, hosts and names."""
        return sorted(self.root.glob(f"{table}/date=*/host=*/*.parquet"))

    def columns(self, table: str) -> list[str]:
        """Names of a table's columns; none if it has no file."""
        return [name for file in self.files(table)[:1] for name in _attempt(file, pa.parquet.read_schema, file).names]

    def read(self, table: str, columns: Sequence[str]) -> pa.Table:
        """These columns of all rows of a table."""
        files = [str(file) for file in self.files(table)]
        if not files:
            return pa.table({name: pa.array([], _type_of(name)) for name in columns})
        return _attempt(self.root / table, lambda: pa.dataset.dataset(files, format="parquet").to_table(list(columns)))


def find(path: Path) -> list[Store]:
    """The data set in a directory, or those of the experiment in it."""
    if str(path).startswith(("s3:", "gs:", "az:")):
        raise DataSetError(f"opening the data set {path}: it is in a bucket: copy it to a directory first")
    if not path.is_dir():
        raise DataSetError(
            f"opening the data set {path}: there is no such directory: name the directory that --output named"
        )
    if (path / EXPERIMENT).is_file():
        stores = _of_experiment(path)
    else:
        stores = (
            [Store(path)] if Store(path).files("runs") else [Store(each, each.name) for each in sorted(path.iterdir())]
        )
    stores = [store for store in stores if store.files("runs")]
    if not stores:
        raise DataSetError(
            f"opening the data set {path}: there is no run in it: name the directory that --output named"
        )
    for file in (file for store in stores for file in store.files("runs")):
        _check_version(file)
    return stores


def _of_experiment(path: Path) -> list[Store]:
    file = path / EXPERIMENT
    try:
        log = json.loads(file.read_text(encoding="utf-8"))
        runs = frozenset(str(run["run_id"]) for run in log["runs"])
        # A folder stands in the experiment's directory, whatever the file says.
        return [Store(path / Path(each["folder"]).name, str(each["name"]), runs) for each in log["variants"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataSetError(
            f"reading {file}: {error!r}: the file is damaged: copy it anew from where it was recorded"
        ) from error


def _check_version(file: Path) -> None:
    metadata = _attempt(file, pa.parquet.read_metadata, file).metadata or {}
    found = metadata.get(b"joular_bpf.schema_version", b"").decode("utf-8", "replace")
    if not found:
        raise DataSetError(f"reading {file}: it is not a file of joular-bpf: name the directory that --output named")
    if found != str(SCHEMA_VERSION):
        is_newer = found.isdecimal() and int(found) > SCHEMA_VERSION
        advice = "install a newer joular" if is_newer else "install the joular of the version that recorded it"
        raise DataSetError(
            f"reading {file}: it has schema version {found!r}, this joular reads version {SCHEMA_VERSION}: {advice}"
        )


def _attempt(path: Path, read: Any, *arguments: Any) -> Any:
    """Reads; what Arrow cannot read is a data set's error."""
    try:
        return read(*arguments)
    except PermissionError as error:
        raise DataSetError(f"reading {path}: {error}: read it as its owner or with sudo") from error
    except FileNotFoundError as error:
        raise DataSetError(f"reading {path}: {error}: it went away meanwhile, try again") from error
    except (pa.ArrowException, OSError) as error:
        raise DataSetError(
            f"reading {path}: {error}: the file is damaged: copy it anew from where it was recorded"
        ) from error


def _type_of(column: str) -> Any:
    if column in _TEXTS:
        return pa.string()
    if column == "frames":
        return pa.list_(_FRAME)
    if column in ("ambiguous", "is_target"):
        return pa.bool_()
    if column == "labels":
        return pa.list_(pa.string())
    return _TIME if column.endswith("_start") else pa.int64()
