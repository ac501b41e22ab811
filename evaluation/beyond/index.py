"""Questions nobody registered: what a scan takes, and what an index could be made of."""

from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter
from timeit import repeat
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap

import ids
from evaluation.bench import Bench
from evaluation.step import Findings, Repeated, Row, Size, Step, in_turns
from ids.model import Column, ColumnData, In, Kind, Literal, Table
from ids.state import Index, Retained

Ints = npt.NDArray[np.int64]
Holds = Callable[[Any], bool]

# Each as the engine and SQL take it, and as a Python function of a trip.
_CONDITIONS: dict[str, Holds] = {
    "PULocationID = 74": lambda t: t.PULocationID == 74,
    "PULocationID = 207": lambda t: t.PULocationID == 207,
    "payment_type IN (1, 2)": lambda t: t.payment_type in (1, 2),
    "trip_distance > 5 AND payment_type = 1": lambda t: t.trip_distance > 5 and t.payment_type == 1,
    "store_and_fwd_flag = 'N' AND PULocationID <> 74": lambda t: (
        t.store_and_fwd_flag == "N" and t.PULocationID != 74
    ),
    "fare_amount < 10 OR DOLocationID = 42": lambda t: t.fare_amount < 10 or t.DOLocationID == 42,
}
_BATCH = 1_000
_ZONES = 261  # as frequent as 1/1, 1/2, …; the last is rare
_CHOSEN = {2e-5: [260], 1e-3: [159], 0.1: [1, 7], 0.6: [*range(20)]}  # by their share of the rows


def steps(size: Size) -> list[Step]:
    """The scan over taxi trips; the structures over zones made at random."""
    scan, structures = size.of(quick=(2.0, 4.0), full=(10.0, 60.0))
    return [
        Step("beyond-scan", "a condition nobody registered, by a scan", scan, _scan, ("nyc",)),
        Step("beyond-structures", "what an index could be", structures, _structures),
    ]


def _scan(bench: Bench) -> Findings:
    """Polars and DuckDB find the rows and sum what AVG needs; the loop is the paper's mechanism."""
    names = ["PULocationID", "DOLocationID", "payment_type", "store_and_fwd_flag"]
    names += ["trip_distance", "fare_amount"]
    months = [pq.read_table(file, columns=names) for file in bench.trips[:-1]]
    trips = pa.concat_tables(months, promote_options="permissive").combine_chunks()
    trips = trips.slice(0, bench.size.of(quick=20_000, full=200_000))
    engine = ids.Engine(ids.CountWindow(trips.num_rows), "fare_amount")
    engine.ingest(trips)
    tuples = list(trips.to_pandas().itertuples(index=False))
    polars, duck, found = pl.SQLContext(trips=pl.from_arrow(trips)), duckdb.connect(), list[Row]()
    duck.from_arrow(trips).create("trips")
    for condition, holds in _CONDITIONS.items():
        query = f"SELECT count(fare_amount), sum(fare_amount) FROM trips WHERE {condition}"
        held = duck.execute(query).fetchall()[0][0]
        if held != _loop(tuples, holds):
            raise AssertionError(f"the loop finds other rows of {condition}")
        contenders: dict[str, Callable[[], object]] = {
            "scan": partial(_ask_anew, engine, condition),
            "Polars": polars.execute(query).collect,
            "DuckDB": lambda query=query: duck.execute(query).fetchall(),  # type: ignore[misc]
        }
        spent = in_turns(contenders, 5 * bench.size.repetitions)
        # the loop by itself: it would leave none of the others' columns in the cache
        spent |= in_turns({"loop": partial(_loop, tuples, holds)}, bench.size.repetitions)
        facts: Row = {"rows": trips.num_rows, "condition": condition, "held": held}
        found += [{**facts, "contender": name, "seconds": time} for name, time in spent.items()]
    return {"beyond_scan": found}


def _loop(trips: Sequence[Any], holds: Holds) -> int:
    """One trip after the other, in Python; no condition holds on what is missing."""
    count, total, squares = 0, 0.0, 0.0
    for trip in trips:
        if holds(trip):
            count += 1
            total += trip.fare_amount
            squares += trip.fare_amount * trip.fare_amount
    return count


def _ask_anew(engine: ids.Engine, condition: str) -> ids.Attribution:
    """Asked as if for the first time since a slide; the plan is known."""
    engine._questions.forget_answers()
    return engine.attribute("AVG", condition)


class Blocks:
    """Ours: blocks of rows in the order of their values."""

    def __init__(self) -> None:
        self.retained = Retained({"zone": Kind.NUMBER})
        self.index = Index(["zone"], self.retained.kinds)

    def slide(self, coming: npt.NDArray[Any], going: npt.NDArray[Any]) -> float:
        """Rows come and as many of the oldest go; returns the seconds of its own upkeep."""
        table = Table({"zone": ColumnData(Kind.NUMBER, coming)}, len(coming))
        tags = np.zeros(len(coming), np.uint32)
        self.retained.insert(self.retained.block(table, tags))
        self.retained.expire(len(going))
        start = perf_counter()
        self.index.follow(self.retained)
        return perf_counter() - start

    def find(self, zones: Sequence[int]) -> Ints:
        """The ascending places of the rows of these zones, 0 the oldest."""
        condition = In(Column("zone"), tuple(map(Literal, zones)))
        access = self.index.access(condition, self.retained)
        assert access is not None
        return access.places(self.retained)

    @property
    def nbytes(self) -> int:
        return self.index.nbytes


class Roaring:
    """A compressed bitmap of row numbers for each value; otherwise like ``Blocks``."""

    def __init__(self) -> None:
        self.bitmaps = [BitMap() for _ in range(_ZONES)]
        self.first = self.last = 0

    def slide(self, coming: Ints, going: Ints) -> float:
        start = perf_counter()
        order = np.argsort(coming, kind="stable")
        zones, starts = np.unique(coming[order], return_index=True)
        places = np.split((order + self.last).astype(np.uint32), starts[1:])
        for zone, rows in zip(zones.tolist(), places, strict=True):
            self.bitmaps[zone].update(rows)
        for zone in np.unique(going).tolist():
            self.bitmaps[zone].remove_range(self.first, self.first + len(going))
        self.first, self.last = self.first + len(going), self.last + len(coming)
        return perf_counter() - start

    def find(self, zones: Sequence[int]) -> Ints:
        several = [self.bitmaps[zone] for zone in zones]
        rows = BitMap.union(*several) if len(several) > 1 else several[0]
        return np.asarray(rows.to_array()).astype(np.int64) - self.first

    @property
    def nbytes(self) -> int:
        return sum(len(bitmap.serialize()) for bitmap in self.bitmaps)


def _structures(bench: Bench) -> Findings:
    """Each follows a window, then is asked for rows; a bitmap has nothing to say of doubles."""
    window, slides = bench.size.of(quick=(50_000, 10), full=(1_000_000, 262))
    rows = window + bench.size.repetitions * slides * _BATCH
    rng, share = np.random.default_rng(1), 1 / np.arange(1.0, _ZONES)
    zones = rng.choice(_ZONES, rows, p=[*(share * (1 - 2e-5) / share.sum()), 2e-5])
    structures: dict[str, Blocks | Roaring] = {"sorted blocks": Blocks(), "roaring": Roaring()}
    doubles = {"sorted blocks, doubles": Blocks()}
    kept, asked = list[Row](), list[Row]()
    for name, structure in (structures | doubles).items():
        column: Any = rng.lognormal(2.5, 0.6, rows) if name in doubles else zones
        for start in range(0, window, 50_000):
            structure.slide(column[start : start + 50_000], column[:0])
        spent = [
            structure.slide(column[at : at + _BATCH], column[at - window :][:_BATCH])
            for at in range(window, rows, _BATCH)
        ]
        upkeep = Repeated.of(1e9 / _BATCH * np.reshape(spent, (-1, slides)).mean(axis=1))
        facts: Row = {"structure": name, "window": window, "ns_per_row": upkeep}
        kept.append({**facts, "bytes_per_row": structure.nbytes / window})
    for selectivity, chosen in _CHOSEN.items():
        expected = np.flatnonzero(np.isin(zones[-window:], chosen))
        for name, structure in structures.items():
            if not np.array_equal(structure.find(chosen), expected):
                raise AssertionError(f"{name} finds other rows")
            facts = {"selectivity": selectivity, "rows": len(expected), "structure": name}
            times = Repeated.of(repeat(partial(structure.find, chosen), number=100, repeat=9))
            asked.append({**facts, "us": times.scaled(1e6 / 100)})
    return {"beyond_structures": kept, "beyond_structures_asked": asked}
