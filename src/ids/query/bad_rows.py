"""Finds bad rows, which cannot be aggregated, and writes them to a folder with their reasons.

On Spark, ``spark_bad_rows`` produces the same reasons, errors and files.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ids.errors import DataError, SinkError
from ids.model import FIRST_INSTANT, LAST_INSTANT, Kind, Table, render, unused
from ids.plan import SelectPlan
from ids.predicates import Measure
from ids.sink import write
from ids.source import Source, to_table, unfit_rows

Rows = npt.NDArray[np.int64]

# Reasons for a bad row, each of which names a column or an expression.
NULL_TIME = "NULL event time {!r}"
FAR_TIME = "event time {!r} outside the years 1 to 9999"
NAN = "NaN of {!r}"
INFINITE = "an infinite value of {!r}"

_ROW, _REASON = "ids_row", "ids_reason"


def bad_row_error(reason: str, table: str, where: str) -> DataError:
    """Return the error for a bad row in a query without ``bad_rows``."""
    return DataError(
        f"{reason} in {table}, {where}; leave such rows out with WHERE, "
        "or set them aside with bad_rows='DIR'"
    )


def file_stem(table: str) -> str:
    """Return the name of the file for a table's bad rows, without its extension."""
    return table.replace(os.sep, "_")


def notes(columns: Collection[str]) -> tuple[str, str]:
    """Return names for the two columns that are added to bad rows: row number and reason."""
    return unused(_ROW, columns), unused(_REASON, columns)


class BadRowsFolder:
    """Writes a table's bad rows to ``DIR/TABLE.parquet``, each with its row number and reason.

    There is one object per query. All queries of a script that read the same table share
    ``reasons`` (keyed by row), so that the file contains the bad rows of all queries, each once.
    """

    def __init__(self, directory: Path, table: str, reasons: dict[int, str]) -> None:
        self._directory = directory
        self._file = directory / f"{file_stem(table)}.parquet"
        self._reasons = reasons
        self.rows = 0

    def add(self, source: Source, reasons: Mapping[int, str]) -> None:
        """Add rows of ``source`` (row number to reason), and rewrite the file."""
        for row, reason in reasons.items():
            known = self._reasons.get(row)
            if known is None:
                self._reasons[row] = reason
            elif reason not in known.split("; "):
                self._reasons[row] = f"{known}; {reason}"
        self.rows += len(reasons)
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SinkError(f"cannot create {self._directory}: {error.strerror}") from error
        rows = sorted(self._reasons)
        table = to_table(source.read(source.schema).take(np.array(rows, np.int64)))
        texts = [source.where(row) for row in rows], [self._reasons[row] for row in rows]
        for name, text in zip(notes(source.schema), texts, strict=True):
            table = table.append_column(name, pa.array(text, "string"))
        write(table, self._file)


def find_bad_rows(
    plan: SelectPlan,
    source: Source,
    table: Table,
    measures: Sequence[Measure | None],
    kept: Rows | None,
) -> dict[int, str]:
    """Return a dict from each bad row's position in the table, ascending, to its first reason.

    ``kept`` contains the source rows that satisfy WHERE, or None if the table has all of them.
    """
    faults: list[tuple[npt.NDArray[np.bool_], str]] = []
    time = table.columns[plan.order_by[0]]
    if time.valid is not None:
        faults.append((~time.valid, NULL_TIME.format(plan.order_by[0])))
    if time.kind is Kind.TIME and time.values.size:
        times = time.values.astype(np.int64, copy=False)
        if times.min() < FIRST_INSTANT or times.max() > LAST_INSTANT:
            outside = (times < FIRST_INSTANT) | (times > LAST_INSTANT)
            faults.append((outside, FAR_TIME.format(plan.order_by[0])))
    for expression, one in zip(plan.measures, measures, strict=True):
        if one is not None and expression is not None and one.first_bad >= 0:
            text = render(expression)
            faults.append((np.isnan(one.values), NAN.format(text)))
            faults.append((np.isinf(one.values), INFINITE.format(text)))
    reasons: dict[int, str] = {}
    for mask, reason in reversed(faults):
        reasons |= dict.fromkeys(np.flatnonzero(mask).tolist(), reason)
    unfit, why = unfit_rows(source, plan.columns)
    if kept is not None:
        inside = np.isin(unfit, kept)
        unfit = np.searchsorted(kept, unfit[inside]).astype(np.int64)
        why = [reason for reason, is_inside in zip(why, inside, strict=True) if is_inside]
    reasons |= zip(unfit.tolist(), why, strict=True)
    return dict(sorted(reasons.items()))
