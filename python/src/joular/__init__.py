"""Reads data sets of joular-bpf: joules of Java methods, call branches, threads and processes.

`joular.load("joular-out", run="last")` opens one. docs/python.md shows what there is.
"""

from joular.dataset import DataSet, load
from joular.sampled import Per
from joular.selection import Patterns
from joular.store import DataSetError
from joular.table import Table

__all__ = ["DataSet", "DataSetError", "Patterns", "Per", "Table", "load"]
