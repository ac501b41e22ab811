"""Results on a terminal: tables whose numbers can be compared, and a bar while work is long."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
from pyarrow import types
from rich import box
from rich.console import Console, Group, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

__all__ = ["Bar", "cells", "emit_table", "is_terminal", "printable"]

_NULL = "NULL"
_GAP = 3
_DIGITS = 5  # significant, of a column's largest number


def is_terminal() -> bool:
    """Whether a person looks at stdout (Rich's own answer can be forced by the environment)."""
    return sys.stdout.isatty()


def emit_table(table: pa.Table, width: int, last: int | None = 20) -> RenderableType:
    """The last emits as a table; columns that do not fit go below, behind the same keys."""
    shown = table if last is None else table.slice(max(0, table.num_rows - last))
    names = shown.column_names
    keys = names.index("emit_at") + 1 if "emit_at" in names else 0
    columns = [_Column(names[i], shown.column(i), i < keys) for i in range(len(names))]
    blocks: list[RenderableType] = [_block(block) for block in _blocks(columns, width)]
    if shown.num_rows < table.num_rows:
        blocks.append(Text(f"the last {shown.num_rows} of {table.num_rows:,} emits", style="dim"))
    elif table.num_rows == 0:
        blocks.append(Text("no emits", style="dim"))
    return Group(*blocks)


class _Column:
    """A column's cells, and the room they need with the gap before the next column."""

    def __init__(self, name: str, values: pa.ChunkedArray, key: bool) -> None:
        self.header = printable(name, keep="\n")
        self.cells = cells(values)
        self.key = key
        self.right = _is_number(values.type)
        lines = [*self.header.split("\n"), *self.cells]
        self.width = max(map(len, lines)) + _GAP


def _blocks(columns: list[_Column], width: int) -> Iterator[list[_Column]]:
    """Blocks of columns that fit the width; each repeats the keys."""
    keys = [column for column in columns if column.key]
    block: list[_Column] = []
    for column in columns:
        if len(block) > len(keys) and sum(c.width for c in [*block, column]) - _GAP > width:
            yield block
            block = list(keys)
        block.append(column)
    yield block


def _block(columns: list[_Column]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, show_edge=False)
    for column in columns:
        table.add_column(
            Text(column.header),
            justify="right" if column.right else "left",
            style="cyan" if column.key else "",
            vertical="bottom",
            no_wrap=True,
        )
    for row in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*(Text(cell, "dim" if cell == _NULL else "") for cell in row))
    return table


def _is_text(type_: pa.DataType) -> bool:
    return bool(
        types.is_string(type_) or types.is_large_string(type_) or types.is_dictionary(type_)
    )


def _is_number(type_: pa.DataType) -> bool:
    return bool(types.is_floating(type_) or types.is_integer(type_))


def cells(values: pa.ChunkedArray) -> list[str]:
    """Each value as text; the numbers of a column have the same decimals.

    >>> cells(pa.chunked_array([[1234.5, None, -0.2]]))
    ['1,234.5', 'NULL', '-0.2']
    """
    if types.is_timestamp(values.type):
        return _instants(values)
    python = values.to_pylist()
    if types.is_floating(values.type):
        spell = _speller([abs(value) for value in python if value is not None])
    elif types.is_integer(values.type):
        spell = "{:,}".format
    else:
        spell = printable
    return [_NULL if value is None else spell(value) for value in python]


def _speller(sizes: list[float]) -> Callable[[float], str]:
    largest = max((size for size in sizes if np.isfinite(size)), default=0.0)
    if largest != 0 and not 1e-4 <= largest < 1e12:
        return f"{{:.{_DIGITS - 1}e}}".format
    magnitude = int(np.floor(np.log10(largest))) if largest else 0
    return f"{{:,.{min(max(_DIGITS - 1 - magnitude, 0), 6)}f}}".format


def _instants(values: pa.ChunkedArray) -> list[str]:
    """In UTC, as exact as the most exact of them."""
    micros = values.cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_pylist()
    known = [value for value in micros if value is not None]
    whole = [u for u, size in (("s", 10**6), ("ms", 10**3)) if all(v % size == 0 for v in known)]
    unit = whole[0] if whole else "us"
    return [_NULL if value is None else _instant(value, unit) for value in micros]


def _instant(micros: int, unit: str) -> str:
    return str(np.datetime64(micros, "us").astype(f"M8[{unit}]")).replace("T", " ")


def printable(value: object, keep: str = "") -> str:
    """Text without what a terminal would obey."""
    return "".join(c if c.isprintable() or c in keep else "·" for c in str(value))


class Bar:
    """A progress bar that appears on stderr when work is long, and goes when it is done.

    Called with the rows done and the rows in all, as the engine does. Not shown when stderr is no
    terminal.
    """

    def __init__(
        self, console: Console, patience: float = 0.5, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._console = console
        self._patience = patience
        self._clock = clock
        self._began: float | None = None
        self._progress: Progress | None = None

    def __call__(self, done: int, total: int) -> None:
        if not self._console.is_terminal:
            return
        now = self._clock()
        self._began = now if self._began is None else self._began
        if self._progress is None and now - self._began >= self._patience:
            self._progress = Progress(
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
                console=self._console,
                transient=True,
            )
            self._progress.add_task("rows", total=total, completed=done)
            self._progress.start()
        if self._progress is not None:
            self._progress.update(self._progress.task_ids[0], completed=done, total=total)

    def clear(self) -> None:
        """Take the bar away, so that something else can be shown."""
        if self._progress is not None:
            self._progress.stop()
        self._progress = None
        self._began = None
