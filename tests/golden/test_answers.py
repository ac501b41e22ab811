"""Golden answers: every small window of the golden file, through whole scripts."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

import ids

GAMES = ("SUM", "COUNT", "AVG", "VAR_POP", "VAR_SAMP", "M3", "M4")
PREDICATES = (*("p0", "p1", "p2", "p0 AND NOT p1", "p0 OR p2", "NOT (p0 OR p1 OR p2)", "TRUE"),)
CONDITIONS = {f"p{k}": f"bit{k} = 1" for k in range(3)}
REGISTER = "".join(f"REGISTER PREDICATE {n} AS ({c}) ON t;\n" for n, c in CONDITIONS.items())
TOLERANCE = Fraction(1, 10**12)


def inline(predicate: str) -> str:
    for name, condition in CONDITIONS.items():
        predicate = predicate.replace(name, f"({condition})")
    return predicate


def window(case: dict[str, Any]) -> pa.Table:
    size = len(case["y"])
    bits = {f"bit{k}": [s >> k & 1 for s in case["signature"]] for k in range(3)}
    columns = {"at": list(range(size)), "y": case["y"], **bits}
    types = {"y": pa.float64()}
    return pa.table({n: pa.array(v, types.get(n, pa.int64())) for n, v in columns.items()})


def script(games: list[str], *, registered: bool) -> str:
    asked = [
        f"SHAPLEY_ATTRIBUTE({game}(y), {p if registered else inline(p)}) AS `{game} {p}`"
        for game in games
        for p in PREDICATES
    ]
    frame = "ORDER BY at ROWS 100 PRECEDING"
    return (
        REGISTER if registered else ""
    ) + f"SELECT {', '.join(asked)} FROM t WINDOW w AS ({frame}) EMIT FINAL"


@pytest.mark.parametrize("registered", [True, False], ids=["registered", "inline"])
def test_every_golden_answer_comes_out_of_a_script(
    golden_cases: list[dict[str, Any]], registered: bool
) -> None:
    checked = 0
    for case in golden_cases:
        games = [game for game in GAMES if game in case["attribution"]]
        found = ids.sql(script(games, registered=registered), t=window(case)).to_pylist()
        assert len(found) == min(1, len(case["y"])), "an empty window emits nothing"
        for game in games if found else ():
            for predicate in PREDICATES:
                right = Fraction(case["attribution"][game][predicate])
                off = abs(Fraction(found[0][f"{game} {predicate}"]) - right)
                assert off <= TOLERANCE * (abs(right) or 1), (case["case"], game, predicate)
                checked += 1
    assert checked > 4_000
