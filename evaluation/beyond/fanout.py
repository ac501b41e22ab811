"""How far K predicates divide a window: live atoms, what they cost, and what their limit does."""

from collections.abc import Callable, Sequence
from functools import partial
from math import fsum, isclose
from statistics import median
from time import perf_counter

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

import ids
from evaluation.bench import Bench, filled, registered
from evaluation.step import Findings, Repeated, Row, Size, Step, in_turns
from ids.kernels.slide import slide
from ids.model import Scale
from ids.state import cut_column

SCHEMAS = {
    "exclusive": "exclusive categories",
    "thresholds": "overlapping ranges",
    "nested": "a hierarchy",
    "crossed": "categories of four columns",
    "independent": "independent Booleans",
}
_BATCH, _SLIDES, _ASKED = 1_000, 4, 5  # rows of a slide; slides and questions of a repetition
_COMBINATION = "p0 AND NOT p1"


def steps(size: Size) -> list[Step]:
    """One step for each K, over all schemas, and one that walks up to the limit and past it."""
    about, first = size.of(quick=(0.4, 11), full=(2.0, 15))
    cases = {str(k): [(schema, k) for schema in SCHEMAS] for k in (8, 16, 32, 64)}
    cases["limit"] = [("independent", k) for k in (first, first + 1, first + 2, first + 4)]
    return [
        Step(f"beyond-fanout-{name}", f"live atoms, {name}", about, partial(_divide, name, every))
        for name, every in cases.items()
    ]


def _made(
    schema: str, rng: np.random.Generator, rows: int, count: int
) -> tuple[dict[str, pa.Array], list[str]]:
    """Columns, and so many conditions over them."""
    every, levels = range(count), count.bit_length()

    def words(of: int) -> pa.DictionaryArray:
        codes = pa.array(rng.integers(0, of, rows).astype(np.int32))
        return pa.DictionaryArray.from_arrays(codes, pa.array([f"c{k}" for k in range(of)]))

    match schema:
        case "exclusive":  # at most one holds, and some rows are of categories that none names
            return {"a": words(count + 6)}, [f"a = 'c{k}'" for k in every]
        case "thresholds":  # each is within the one before
            return {"x": pa.array((count + 1) * rng.random(rows) - 1)}, [f"x > {k}" for k in every]
        case "nested":  # halved at every level: node k stands over the nodes 2k and 2k + 1
            width = {k: 2 ** (levels + 1 - k.bit_length()) for k in range(1, count + 1)}
            ends = [(k * w - 2**levels, (k + 1) * w - 2**levels - 1) for k, w in width.items()]
            conditions = [f"x BETWEEN {low} AND {high}" for low, high in ends]
            return {"x": pa.array(rng.integers(0, 2**levels, rows))}, conditions
        case "crossed":  # one of each column may hold, in any combination
            columns = {name: words(count // 4 + 1) for name in ("d0", "d1", "d2", "d3")}
            return columns, [f"{name} = 'c{k}'" for name in columns for k in range(count // 4)]
        case _:  # every combination is as likely
            drawn = rng.integers(0, 2, (rows, count), dtype=np.int8).astype(np.bool_)
            return {f"b{k}": pa.array(drawn[:, k]) for k in every}, [f"b{k}" for k in every]


def signatures(truths: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint32]:
    """Each row's atom, numbered in no particular order: equal rows of truths, equal numbers."""
    packed = np.ascontiguousarray(np.packbits(truths, axis=1))
    whole = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
    return np.unique(whole, return_inverse=True)[1].ravel().astype(np.uint32)


class Divided:
    """One schema's engine, its window full, with more of its stream to slide over."""

    def __init__(self, bench: Bench, schema: str, predicates: int) -> None:
        # a small window has a limit that it can reach, a large one the engine's own
        self.window, limit = bench.size.of(quick=(10_000, 2**12), full=(100_000, 2**16))
        self.facts: Row = {
            "schema": schema, "label": SCHEMAS[schema], "predicates": predicates,
            "window": self.window, "limit": limit,
        }  # fmt: skip
        self.turns, self.met = bench.size.repetitions + 1, 0
        rows = self.window + self.turns * (_SLIDES * _BATCH + _ASKED)
        rng = bench.rng(f"{schema} {predicates}")
        columns, conditions = _made(schema, rng, rows, predicates)
        self.y = np.rint(rng.lognormal(np.log(40.0), 0.5, rows) * 1e6) / 1e6
        self.table = pa.table({**columns, "y": self.y})
        evaluated = duckdb.from_arrow(self.table).project(", ".join(conditions)).fetchnumpy()
        self.truths = np.column_stack([*evaluated.values()])  # bool[rows, K], by DuckDB
        self.engine = ids.Engine(ids.CountWindow(self.window), "y", atom_limit=limit)
        registered(self.engine, {f"p{k}": condition for k, condition in enumerate(conditions)})
        self.ingest(self.window, self.window)

    def ingest(self, rows: int, batch: int) -> None:
        filled(self.engine, self.table.slice(self.met, rows), batch)
        self.met += rows

    def kernel(self) -> Callable[[], None]:
        """The slide loop alone, a row at a time, over a window of an eighth of all rows."""
        atoms = signatures(self.truths)
        scale = Scale.fit_column(self.y, float(self.y.max()), float(self.y.min()), 2)
        assert scale is not None
        digits, centre = cut_column(self.y, scale), np.zeros(scale.digits, np.int64)
        summaries = np.zeros((int(atoms.max()) + 1, scale.words), np.int64)

        def work() -> None:
            summaries.fill(0)
            slide(summaries, atoms, digits, len(atoms) // 8, centre, scale.layout)

        return work

    def asked(self) -> dict[str, Repeated]:
        """Microseconds of both questions, each just after a slide: no answer is remembered."""
        spent = {name: np.empty((self.turns, _ASKED)) for name in ("p0", _COMBINATION)}
        for turn in np.ndindex(self.turns, _ASKED):
            self.ingest(1, 1)
            for condition, times in spent.items():
                start = perf_counter()
                self.engine.attribute("AVG", condition)
                times[turn] = 1e6 * (perf_counter() - start)
        return {name: Repeated.of(map(median, times[1:])) for name, times in spent.items()}

    def check(self) -> int:
        """How many atoms live by the truths; an engine that has others, or other sums, is wrong."""
        inside = slice(self.met - self.window, self.met)
        truths, y = self.truths[inside], self.y[inside]
        live = len(np.unique(signatures(truths)))
        members = {"p0": truths[:, 0], _COMBINATION: truths[:, 0] & ~truths[:, 1]}
        for condition, held in members.items():
            found = self.engine.attribute("SUM", condition).value or 0.0
            if not isclose(found, fsum(y[held]), rel_tol=1e-12):
                raise AssertionError(f"{self.facts}: SUM of {condition} is {found}")
        if self.engine.atoms not in (0, live):
            raise AssertionError(f"{self.facts}: {self.engine.atoms} atoms, and {live} live")
        return live


def _divide(name: str, cases: Sequence[tuple[str, int]], bench: Bench) -> Findings:
    """Everything timed side by side, then checked."""
    divided = {f"{schema} {k}": Divided(bench, schema, k) for schema, k in cases}
    moves = {case: partial(one.ingest, _SLIDES * _BATCH, _BATCH) for case, one in divided.items()}
    slides = in_turns(moves, bench.size.repetitions)
    refined = {case: one.kernel() for case, one in divided.items() if one.engine.atoms}
    loops, found = in_turns(refined, bench.size.repetitions), list[Row]()
    for case, one in divided.items():
        asked, live, held, loop = one.asked(), one.check(), one.engine.memory(), loops.get(case)
        found.append({
            **one.facts, "signatures": live, "refined": one.engine.atoms > 0,
            "bytes": held.summaries + held.atoms, "retained": held.retained,
            "slide_ns": slides[case].scaled(1e9 / (_SLIDES * _BATCH)),
            "kernel_ns": None if loop is None else loop.scaled(1e9 / len(one.y)),
            "marginal_us": asked["p0"], "combination_us": asked[_COMBINATION],
            "combination_by": one.engine.attribute("AVG", _COMBINATION).mechanism,
        })  # fmt: skip
    return {"beyond_fanout_limit" if name == "limit" else "beyond_fanout": found}
