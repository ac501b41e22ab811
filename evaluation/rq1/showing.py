"""What is said of RQ1: the paper's table with ours beside it, and what differs."""

from __future__ import annotations

from evaluation.chapter import Comparison, Section, Tables
from evaluation.formatting import number, power
from evaluation.recount import CLOSED
from evaluation.rq1 import paper
from evaluation.rq1.enumeration import GAMES
from evaluation.rq1.findings import ERRORS, Found, worst
from evaluation.rq1.tabulating import tables_of

__all__ = ["show"]

_WHAT = {
    "absolute": "max abs err against enumeration (|y| < 1,000; the paper's y unknown)",
    "relative": "max rel err against enumeration",
    "delta": "max rel delta err",
    "residual": "max rel Efficiency residual",
}
_QUICK = "a quick run has fewer; a full one has at least the paper's"


def show(tables: Tables) -> Section:
    """All of it, from the rows alone."""
    found = Found(tables)
    return Section(_remarks(found), _comparisons(found), tables_of(found))


def _comparisons(found: Found) -> list[Comparison]:
    enumerated = [count for game in paper.PRINTED if (count := found.cases(game)) is not None]
    cases = Comparison(
        "cases enumerated, each game", "", paper.CASES, min(enumerated, default=None), "higher",
        paper.TABLE, _QUICK,
    )  # fmt: skip
    errors = [
        Comparison(
            f"{game}: {_WHAT[column]}", "", getattr(printed, column), found.errors(game)[column],
            "lower", paper.TABLE, _reason(found, game, column),
        )
        for game, printed in paper.PRINTED.items()
        for column in ERRORS
    ]  # fmt: skip
    bounds = [
        Comparison(
            f"the text's bound for all five games: {_WHAT[column]}", "", bound,
            worst([found.errors(game) for game in CLOSED], column), "lower", paper.SECTION,
        )
        for column, bound in paper.BOUNDS.items()
    ]  # fmt: skip
    slides = Comparison(
        "slides of each replay", "", paper.SLIDES, found.slides, "higher", paper.SECTION, _QUICK
    )
    replayed = len(found.workloads) or None
    return [
        cases,
        *errors,
        *bounds,
        slides,
        Comparison(
            "workloads replayed", "", 4, replayed, "higher", paper.SECTION,
            "a workload whose rows were not given is left out",
        ),
    ]  # fmt: skip


def _reason(found: Found, game: str, column: str) -> str:
    off, units = found.errors(game)["relative"], found.units(game)
    if column == "relative" and off and units:
        # No case is off by more than units · 2⁻⁵³ · (|share| + |lift|): the rest is cancellation.
        cancelled = off / (units * 2.0**-53)
        return (
            f"set by one case, in which share and lift cancel all but 1 part in {cancelled:,.0f}, "
            "and cases are random; relative to |share| + |lift| no case is off by more than "
            f"{number(units, 2)} times 2⁻⁵³"
        )
    if column == "residual":
        return "one or two units in the last place: each atom's attribution is rounded by itself"
    return ""


def _remarks(found: Found) -> list[str]:
    return [*_of_enumeration(found), *_of_replays(found), *_of_restoring(found), *_of_drift(found)]


def _of_enumeration(found: Found) -> list[str]:
    cases = found.cases("AVG")
    if cases is None:
        return []
    units = {game: found.units(game) for game in GAMES}
    paper_games = max(units[game] or 0.0 for game in CLOSED)
    others = max(units[game] or 0.0 for game in GAMES if game not in CLOSED)
    off = worst([found.errors(game) for game in CLOSED], "relative")
    return [
        f"The engine was held to the definition in {number(cases)} cases a game, N from 0 to 12: "
        "all 2^N coalitions in whole numbers, so the oracle itself has no error. Each window is "
        "reached by deltas: as many rows came before and have left.",
        f"No error of the paper's games exceeds {number(paper_games, 2)} times 2⁻⁵³ of "
        f"|share| + |lift|. Relative to the exact value, or where that is 0 to the aggregate, the "
        f"largest is {power(off)}: there share and lift nearly cancel, and how nearly is a matter "
        f"of which windows were drawn. M3 and M4, which the paper does not have, reach "
        f"{number(others, 2)} times 2⁻⁵³: a lift of theirs is a sum of larger terms that cancel.",
    ]


def _of_replays(found: Found) -> list[str]:
    if not found.compared or found.slides is None:
        return []
    telescoped = worst(found.emits, "telescoped")
    units = worst([*found.deltas, *found.emits], "units")
    last = ""
    if telescoped is not None:
        last = (
            " The SHAPLEY_DELTAs of all slides add up to the last attribution within "
            f"{power(telescoped)} of the largest."
        )
    zero = (
        " Sums are whole numbers: what an expiry takes back is what its insertion added, so the "
        "delta error is not small but zero."
    )
    return [
        f"After {number(found.slides)} slides on each of {', '.join(found.workloads)}, "
        f"{number(found.differing)} of {number(found.compared)} answers kept by deltas differ from "
        f"the recomputed one in any bit.{'' if found.differing else zero}",
        f"Against whole-number arithmetic the same answers are off by at most {number(units, 2)} "
        f"times 2⁻⁵³ of |share| + |lift|: the last roundings, whatever the stream's length.{last}",
    ]


def _of_restoring(found: Found) -> list[str]:
    if not found.restored:
        return []
    differing = sum(row["differing"] for row in found.restored)
    answers = sum(row["answers"] for row in found.restored)
    return [
        "Half way every engine was checkpointed and restored in a process of its own, which took "
        "the remaining rows in batches of another size; at the end "
        f"{number(differing)} of {number(answers)} answers differ from the run that never stopped."
    ]


def _of_drift(found: Found) -> list[str]:
    if not found.drift:
        return []
    last = max(row["slides"] for row in found.drift)
    ours, raw, compensated = (
        worst((row for row in found.drift if row["state"] == state), "var_pop")
        for state in ("IDS", "doubles, += and -=", "doubles, centred and compensated")
    )
    return [
        f"Over {number(last)} slides of one row, asked along the way, IDS is never off by more "
        f"than {power(ours)} in VAR_POP; sums of doubles are by up to {power(raw)}, centred and "
        f"compensated ones by {power(compensated)}, given a centre that fits the stream. IDS needs "
        "none."
    ]
