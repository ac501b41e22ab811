"""What a report says of itself: how it was made, and how often the paper's numbers were met."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from evaluation.chapter import Chapter, Comparison
from evaluation.formatting import number, power
from evaluation.records import Record

if TYPE_CHECKING:
    from evaluation.publishing import Edition

__all__ = [
    "BETTER",
    "KEY",
    "LONG",
    "PAPER",
    "UNEXPLAINED",
    "VERDICTS",
    "WARNING",
    "facts",
    "heading",
    "left_out",
    "printed",
    "quantity",
    "reasons",
    "tallies",
    "verdict",
]

BETTER = {"lower": "↓", "higher": "↑", "same": "(=)", "neither": ""}
"""The direction of the better number, as it is printed after the quantity."""

KEY = (
    "↓ lower is better, ↑ higher is better, (=) should be the same. The ratio is ours over the "
    "paper's. Within 5 % is equal; where ours should be the same, within 25 %."
)
"""Beneath each table of comparisons."""

VERDICTS = ("better", "equal", "worse", "no verdict")
"""The heads of a tally's columns."""

LONG = 30
"""Rows: a table that has more is folded up until a reader asks for it."""

UNEXPLAINED = "no reason is known."

PAPER = (
    "an Apple M2 Pro (10 cores, 16 GiB), one thread, CPython 3.12.9, NumPy 2.4, Numba 0.66; its "
    "nyc are yellow taxi trips of January 2024"
)
"""What the paper's numbers were made with (§9, Setup, and Table 3)."""

WARNING = (
    "This is a quick run: its sizes are small ones, so that it takes minutes, and its numbers are "
    "not to be held against the paper's. A run without --quick has the paper's sizes."
)


def facts(edition: Edition) -> list[tuple[str, str]]:
    """How the records were made; where they differ, every answer is there."""
    told = edition.records
    count, left = len(told), sum(bool(record["skipped"]) for record in told)
    steps = _steps(count) + (f", of which {left} left out" if left else "")
    sizes = {"full": "full: the paper's own, where it states them", "quick": "quick: small ones"}
    machine = _each(
        told,
        lambda r: f"{r['machine']['cores']} cores, {r['machine']['platform']}",
    )
    return [
        ("Sizes", sizes.get(edition.size, edition.size)),
        ("Measured in", f"{_span(sum(record['seconds'] for record in told))}, {steps}"),
        ("Machine", machine),
        ("The paper's", PAPER),
        ("Trips of nyc", _trips(told)),
        ("Load before a step", _loads([record["machine"]["load_before"] for record in told])),
        ("Python", _each(told, lambda r: r["machine"]["python"])),
        ("Versions", _versions(told)),
        ("Commit", _each(told, lambda r: _commit(r["commit"]))),
    ]


def _trips(told: Sequence[Record]) -> str:
    """The files of trips, the first and the last by name."""
    files = sorted({name for record in told for name in record.get("trips", ())})
    if len(files) < 3:
        return ", ".join(files) or "none"
    return f"{len(files)} files, {files[0]} to {files[-1]}"


def tallies(edition: Edition) -> list[tuple[Chapter, list[int]]]:
    """How often each chapter that compares itself has each of the VERDICTS."""
    compared = [part for part in edition.parts if part.section.comparisons]
    return [(part.chapter, _tally(part.section.comparisons)) for part in compared]


def verdict(edition: Edition) -> str:
    """The whole evaluation in a sentence or two."""
    compared = [one for part in edition.parts for one in part.section.comparisons]
    better, equal, worse, neither = _tally(compared)
    if not (judged := better + equal + worse):
        return "None of the paper's numbers was measured in this run."
    said = (
        f"{better} of {judged} numbers are better than the paper's, {equal} equal, {worse} worse."
    )
    if neither:
        said += (
            f" {neither} have no verdict: not measured here, of a method that is not ours, or of "
            "quantities that are not alike."
        )
    return said


def heading(chapter: Chapter) -> str:
    """The chapter's title, after the research question's number."""
    if chapter.key.startswith("rq") and not chapter.title.lower().startswith(chapter.key):
        return f"{chapter.key.upper()}: {chapter.title}"
    return chapter.title


def quantity(value: float | None, unit: str) -> str:
    """Our number and its unit; a million and more as a power of ten; a dash where there is none."""
    if value is None:
        return "–"
    return f"{power(value, 3) if abs(value) >= 1e6 else number(value)} {unit}".rstrip()


def printed(value: float | None, unit: str) -> str:
    """The paper's number with the figures that it prints, which are those that were typed.

    One that was worked out of others has more than anybody prints: it is shown like ours.

    >>> printed(0.006, "%"), printed(7.3e7, ""), printed(1303601, "×"), printed(44 / 4.6, "")
    ('0.006 %', '7.3×10⁷', '1,303,601 ×', '9.57')
    """
    if value is None:
        return "–"
    figures = len(f"{float(value):.11e}".partition("e")[0].rstrip("0").replace(".", "").lstrip("-"))
    if figures > 7:
        return quantity(value, unit)
    short = figures <= 3 and abs(value) >= 1e6
    return f"{power(value, figures) if short else number(value, figures)} {unit}".rstrip()


def reasons(comparisons: Sequence[Comparison]) -> dict[str, list[Comparison]]:
    """Those that are worse, by the reason given."""
    found: dict[str, list[Comparison]] = {}
    for one in comparisons:
        if one.verdict == "worse":
            found.setdefault(one.reason or UNEXPLAINED, []).append(one)
    return found


def left_out(skipped: dict[str, str]) -> list[tuple[str, list[str]]]:
    """Each reason, with the steps that were left out for it."""
    reasons = dict.fromkeys(skipped.values())
    return [(why, [step for step, its in skipped.items() if its == why]) for why in reasons]


def _tally(comparisons: Iterable[Comparison]) -> list[int]:
    counts = Counter(comparison.verdict for comparison in comparisons)
    return [counts["better"], counts["equal"], counts["worse"], counts[""]]


def _each(told: Iterable[Record], answer: Callable[[Record], str]) -> str:
    """The answer of every record; several, with the number of steps behind each."""
    counts = Counter(map(answer, told))
    if len(counts) == 1:
        return next(iter(counts))
    return "; ".join(f"{answered} ({_steps(count)})" for answered, count in counts.items())


def _steps(count: int) -> str:
    return f"{count} step{'' if count == 1 else 's'}"


def _commit(commit: str | None) -> str:
    if commit is None:
        return "none: not run from a repository"
    name, changes, _ = commit.partition("+changes")
    return name[:12] + (" with uncommitted changes" if changes else "")


def _versions(told: Iterable[Record]) -> str:
    found: dict[str, dict[str, None]] = {}
    for record in told:
        for package, version in record["versions"].items():
            found.setdefault(package, {})[version] = None
    return ", ".join(f"{package} {' and '.join(found[package])}" for package in found)


def _loads(loads: Iterable[float]) -> str:
    low, high = min(loads := list(loads)), max(loads)
    return f"{low:.1f}" if f"{low:.1f}" == f"{high:.1f}" else f"{low:.1f} to {high:.1f}"


def _span(seconds: float) -> str:
    """Seconds as a person says them: ``1 h 23 min``, ``4 min 5 s``, ``12 s``."""
    whole = round(seconds)
    hours, minutes, rest = whole // 3600, whole % 3600 // 60, whole % 60
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
