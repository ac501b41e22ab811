"""Results on a terminal: tables whose numbers can be compared, and a bar while work is long."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from threading import Lock, Timer

import numpy as np
import pyarrow as pa
from pyarrow import types
from rich import box
from rich.console import Console, Group, RenderableType
from rich.progress import BarColumn, Progress, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

__all__ = ["Bar", "cells", "emit_table", "is_terminal", "print_lines", "printable"]

_NULL = "NULL"
_GAP = 3
_HEADER = 12  # a name up to this long stays whole
_DIGITS = 5  # significant, of a column's largest number


def is_terminal() -> bool:
    """Whether a person looks at stdout (Rich's own answer can be forced by the environment)."""
    return sys.stdout.isatty()


def print_lines(lines: Iterable[str], console: Console) -> None:
    """Lines as they are, and an empty one."""
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    console.print()


def emit_table(
    table: pa.Table, width: int, last: int | None = 20, drawn: int | None = None
) -> RenderableType:
    """The last emits as a table; columns that do not fit go below, behind the same keys.

    Only the first ``drawn`` of them are filled in, where the whole table would have them.
    """
    shown = table if last is None else table.slice(max(0, table.num_rows - last))
    names = shown.column_names
    keys = names.index("emit_at") + 1 if "emit_at" in names else 0
    columns = [_Column(names[i], shown.column(i), i < keys) for i in range(len(names))]
    blocks: list[RenderableType] = []
    for block in _blocks(columns, width):
        blocks += ["", _block(block, drawn)] if blocks else [_block(block, drawn)]
    if shown.num_rows < table.num_rows:
        blocks.append(Text(f"the last {shown.num_rows} of {table.num_rows:,} emits", style="dim"))
    elif table.num_rows == 0:
        blocks.append(Text("no emits", style="dim"))
    return Group(*blocks)


class _Column:
    """A column's cells, and the room they need with the gap before the next column."""

    def __init__(self, name: str, values: pa.ChunkedArray, key: bool) -> None:
        self.cells = cells(values)
        self.header = _folded(printable(name, keep="\n"), max(map(len, self.cells), default=0))
        self.key = key
        self.right = _is_number(values.type)
        lines = [*self.header.split("\n"), *self.cells]
        self.width = max(map(len, lines)) + _GAP


def _folded(name: str, width: int) -> str:
    """A long name on several lines, broken after its underscores: narrow numbers stay together.

    >>> _folded("eu_attribution_share", 8)
    'eu_\\nattribution_\\nshare'
    """
    lines = [""]
    for piece in re.findall(r"[^_]*_+|[^_]+", name):
        if lines[-1] and len(lines[-1] + piece) > max(width, _HEADER):
            lines.append("")
        lines[-1] += piece
    return "\n".join(lines)


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


def _block(columns: list[_Column], drawn: int | None) -> Table:
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, show_edge=False)
    for column in columns:
        table.add_column(
            Text(column.header),
            justify="right" if column.right else "left",
            style="cyan" if column.key else "",
            vertical="bottom",
            no_wrap=True,
            min_width=column.width - _GAP,
        )
    for row in zip(*(column.cells[:drawn] for column in columns), strict=True):
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

    Called with what is done and what there is in all, as the engine does, from any thread; until
    the first call (the first run of all compiles) it only shows that something is going on. Not
    shown when stderr is no terminal.
    """

    def __init__(self, console: Console, patience: float = 0.5) -> None:
        self._console = console
        self._patience = patience
        self._lock = Lock()
        self._timer: Timer | None = None
        self._progress: Progress | None = None
        self._at: tuple[int, int] | None = None

    def start(self) -> None:
        """Begin to wait: the bar appears when patience is over."""
        if self._console.is_terminal:
            self._timer = Timer(self._patience, self._appear)
            self._timer.daemon = True
            self._timer.start()

    def __call__(self, done: int, total: int) -> None:
        with self._lock:
            self._at = (done, total)
            self._update()

    def _appear(self) -> None:
        with self._lock:
            if self._timer is None:
                return
            columns = ("{task.description}", BarColumn(), TimeRemainingColumn())
            self._progress = Progress(*columns, console=self._console, transient=True)
            self._progress.add_task("starting", total=None)
            self._update()
            self._progress.start()

    def _update(self) -> None:
        if self._progress is not None and self._at is not None:
            done, total = self._at
            task = self._progress.task_ids[0]
            self._progress.update(
                task, description=f"{done:,} of {total:,}", completed=done, total=total
            )

    def clear(self) -> None:
        """Take the bar away, so that something else can be shown."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            if self._progress is not None:
                self._progress.stop()
            self._timer, self._progress, self._at = None, None, None
