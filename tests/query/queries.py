"""Random tables and random continuous queries over them, as a person would type them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pyarrow as pa
from hypothesis import strategies as st

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SCHEMA = pa.schema(
    {
        "at": pa.timestamp("us", "UTC"),
        "x": pa.float64(),
        "y": pa.int64(),
        "s": pa.string(),
        "b": pa.bool_(),
        "k": pa.string(),
        "g": pa.int64(),
    }
)
REGISTERED = {
    "p0": "s = 'a'",
    "p1": "x > 0",
    "p2": "b",
    "p3": "p0 OR NOT p2",
}
REGISTER = "".join(f"REGISTER PREDICATE {n} AS ({c}) ON t;\n" for n, c in REGISTERED.items())
INLINE = (
    *("y BETWEEN 0 AND 2", "s IN ('a', 'ab', NULL)", "s LIKE 'a%'", "x IS NULL", "y <> 1"),
    *("x >= y", "b IS TRUE", "b", "s <=> k", "HOUR(at) = 23", "y * 2 > 3", "TRUE", "FALSE"),
    *("k = 'EU' AND y > 0", "NULL", "at < TIMESTAMP '1970-01-01 00:00:05'", "COALESCE(y, 0) = 0"),
)
MEASURES = ("x", "y", "x + y", "x * 2.5 - y", "-x", "x / y", "y % 3", "ABS(x)", "y * y")
GAMES = ("SUM", "AVG", "VAR_POP", "VAR_SAMP", "VARIANCE", "COUNT")
MOMENTS = ("M3", "M4")
# A coalition more doubles the work of the oracle, which enumerates the moment games.
MOST_PLAYERS = 6

Row = dict[str, Any]


class Query(NamedTuple):
    """A SELECT over ``t`` in the parts a test may vary."""

    items: tuple[str, ...]
    window: str
    where: str = ""
    emit: str = "CHANGES"

    def __str__(self) -> str:
        where = f"WHERE {self.where}\n" if self.where else ""
        return (
            f"SELECT {', '.join(self.items)}\nFROM t {where}"
            f"WINDOW w AS ({self.window})\nEMIT {self.emit};"
        )


def floats() -> st.SearchStrategy[st.SearchStrategy[float]]:
    """What the measures of one table are like."""
    tens = st.integers(-9, 12).map(lambda power: 10.0**power)
    return st.sampled_from(
        [
            st.sampled_from([0.0, -0.0, 1.0, -1.5, 2.5, 0.1, 40.0]),
            st.floats(-1e6, 1e6).map(lambda value: round(value, 6)),
            st.integers(-1000, 1000).map(lambda step: 1e9 + step * 1e-3),
            st.tuples(tens, st.floats(-1, 1).map(lambda v: round(v, 3))).map(lambda p: p[0] * p[1]),
        ]
    )


@st.composite
def tables(draw: st.DrawFn, max_rows: int = 40) -> list[Row]:
    """Rows with equal times, times before 1970, NULLs, in any order or in order."""
    size = draw(st.integers(0, max_rows))
    ticks = draw(st.sampled_from([1_000_000, 500_000, 1]))
    spread = draw(st.sampled_from([3, 30, 100]))  # crowded, or with gaps between the windows
    times = st.integers(-spread, spread).map(lambda t: EPOCH + timedelta(microseconds=t * ticks))
    cells: dict[str, st.SearchStrategy[Any]] = {
        "at": times,
        "x": draw(floats()),
        "y": st.integers(-3, 3),
        "s": st.sampled_from(["a", "ab", "", "é"]),
        "b": st.booleans(),
        "k": st.sampled_from(["EU", "US", "eu", "￿", "\U0001f600"]),
        "g": st.sampled_from([-1, 2, 10, 2**53, 2**53 + 1]),
    }
    columns: dict[str, list[Any]] = {}
    for name, cell in cells.items():
        some = cell if name == "at" or draw(st.booleans()) else st.none() | cell
        columns[name] = draw(st.lists(some, min_size=size, max_size=size))
    if draw(st.booleans()):
        columns["at"].sort()
    return [{name: values[row] for name, values in columns.items()} for row in range(size)]


@st.composite
def predicates(draw: st.DrawFn, depth: int = 2) -> str:
    """Registered, compositional or inline, as it comes."""
    shape = draw(st.integers(0, 5)) if depth else 5
    if shape == 0:
        return f"NOT ({draw(predicates(depth - 1))})"
    if shape == 1:
        word = draw(st.sampled_from(["AND", "OR"]))
        left, right = draw(predicates(depth - 1)), draw(predicates(depth - 1))
        return f"({left}) {word} ({right})"
    if draw(st.booleans()):
        return draw(st.sampled_from(list(REGISTERED)))
    return draw(st.sampled_from(INLINE))


@st.composite
def items(draw: st.DrawFn, moments: bool) -> str:
    """One item of a SELECT, without an alias."""
    game = draw(st.sampled_from((*GAMES, *MOMENTS) if moments else GAMES))
    measure = draw(st.sampled_from(MEASURES))
    if game == "COUNT":
        measure = draw(st.sampled_from(["*", "x", "s", "b", "at", "x + y"]))
    aggregate = f"{game}({measure})"
    match draw(st.integers(0, 4)):
        case 0:
            return aggregate
        case 1:
            return f"SHAPLEY_DELTA({aggregate}, {draw(predicates())})"
    parts = draw(st.sampled_from(["", "", " WITH (SHARE, LIFT)", " WITH (LIFT)"]))
    return f"SHAPLEY_ATTRIBUTE({aggregate}, {draw(predicates())}{parts})"


@st.composite
def windows(draw: st.DrawFn, rows: int) -> tuple[str, bool]:
    """A WINDOW clause, and whether its windows are small enough for the moment games."""
    keys = draw(st.lists(st.sampled_from(["k", "g", "b"]), max_size=2, unique=True))
    partition = f"PARTITION BY {', '.join(keys)} " if keys else ""
    order = f"{partition}ORDER BY at{draw(st.sampled_from(['', '', ', y', ', k, x']))} "
    slide = draw(st.integers(1, 7))
    if draw(st.booleans()):
        span = slide * draw(st.integers(1, 4))
        unit = draw(st.sampled_from(["SECOND", "MILLISECOND"]))
        # whole seconds or a thousandth of them: never more than a few hundred instants
        if unit == "MILLISECOND":
            slide, span = slide * 500, span * 500
        frame = f"RANGE INTERVAL '{span}' {unit} PRECEDING SLIDE INTERVAL {slide} {unit}"
        return order + frame, rows <= MOST_PLAYERS
    size = draw(st.integers(1, 10) | st.sampled_from([50, 10_000]))
    frame = draw(
        st.sampled_from(
            [f"ROWS {size} PRECEDING", f"ROWS BETWEEN {size - 1} PRECEDING AND CURRENT ROW"]
        )
    )
    slid = "" if slide == 1 and draw(st.booleans()) else f" SLIDE {slide} ROWS"
    return order + frame + slid, size <= MOST_PLAYERS


@st.composite
def queries(draw: st.DrawFn, rows: int) -> Query:
    """A SELECT for a table of so many rows."""
    window, moments = draw(windows(rows))
    asked = draw(st.lists(items(moments), min_size=1, max_size=4))
    named = tuple(f"{item} AS a{i}" if i % 2 else item for i, item in enumerate(asked))
    where = draw(predicates()) if draw(st.integers(0, 2)) == 0 else ""
    emit = draw(st.sampled_from(["CHANGES", "CHANGES", "FINAL"]))
    return Query(named, window, where, emit)


def arrow(rows: Sequence[Row]) -> pa.Table:
    """The rows as an Arrow table."""
    return pa.Table.from_pylist(list(rows), schema=SCHEMA)
