"""The numbers in README.md: read from the records, written between two markers.

``python -m evaluation.benchmarks.readme`` measures nothing. What has no record has no line.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from evaluation.benchmarks.record import HERE, RESULTS

__all__ = ["BEGIN", "END", "block_of", "main", "render", "updated"]

README = HERE.parents[1] / "README.md"
BEGIN = "<!-- benchmarks:begin -->"
END = "<!-- benchmarks:end -->"

Record = Mapping[str, Any]


class Line(NamedTuple):
    """One comparison: what IDS took and what the other took, both in seconds."""

    question: str
    ours: float
    other: str
    theirs: float
    file: str


def render(directory: Path = RESULTS) -> str:
    """The table of all records in ``directory``, as Markdown."""
    records = {name: _read(directory / f"{name}.json") for name in _READERS}
    lines = [line for name, record in records.items() if record for line in _READERS[name](record)]
    if not lines:
        return "No measurements are kept yet: `make bench` makes them."
    table = ["| question | IDS | the other | other ÷ IDS | made by |", "|---|---:|---|---:|---|"]
    table += [_row(line) for line in lines]
    return "\n".join([*table, "", _machine([r for r in records.values() if r])])


def updated(text: str, table: str) -> str:
    """The README with ``table`` between its markers."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table}\n{END}{after}"


def block_of(text: str) -> str:
    """What stands between the markers of a README."""
    return text.partition(BEGIN)[2].partition(END)[0].strip("\n")


def _read(path: Path) -> Record | None:
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def _row(line: Line) -> str:
    ratio = line.theirs / line.ours
    digits = 0 if ratio >= 100 else 1 if ratio >= 10 else 2
    name = line.file.rpartition("/")[2]
    return (
        f"| {line.question} | {_span(line.ours)} | {line.other}: {_span(line.theirs)} "
        f"| {ratio:,.{digits}f} × | [{name}]({line.file}) |"
    )


def _span(seconds: float) -> str:
    for size, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def _machine(records: list[Record]) -> str:
    """Where the numbers were taken; records of several machines name them all."""
    told = dict.fromkeys(
        f"{m['cores']} cores, {m['platform']}, Python {m['python']}"
        for m in (record["machine"] for record in records)
    )
    return (
        f"Best of several turns (questions: the median), side by side in one run, on "
        f"{'; '.join(told)}. A ratio above 1 means that IDS is faster."
    )


def _best(record: Record) -> dict[str, float]:
    return {label: one["best_s"] for label, one in record["contenders"].items()}


def _slide(record: Record) -> Iterator[Line]:
    best, rows = _best(record), record["rows"]
    literal = "Algorithm 1, literally"
    asked = f"a slide of one row, N = {record['window']:,}, K = {record['predicates']}"
    for label, added in (
        ("IDS, from codes and values", ""),
        ("IDS, the slide loop", ", atoms and digits given"),
    ):
        theirs = best[literal] / rows
        yield Line(
            asked + added,
            best[label] / rows,
            literal,
            theirs,
            "evaluation/benchmarks/bench_slide.py",
        )


def _extremes(record: Record, asked: str) -> Iterator[Line]:
    """The last contender next to the first: does the cost grow?"""
    best, rows = _best(record), record["rows"]
    first, *_, last = best
    ours, theirs = best[last] / rows, best[first] / rows
    yield Line(
        f"{asked}, {last}",
        ours,
        f"IDS itself, {first}",
        theirs,
        "evaluation/benchmarks/bench_slide.py",
    )


def _by_window(record: Record) -> Iterator[Line]:
    return _extremes(record, "the same slide, a larger window")


def _by_predicates(record: Record) -> Iterator[Line]:
    return _extremes(record, "the same slide, more predicates")


def _recounted(record: Record) -> Iterator[Line]:
    recounted = _best(record)["one slide, recounted"]
    maintained = recounted / record["times_faster"]
    asked = f"a slide of one row, N = {record['window']:,}"
    yield Line(
        asked, maintained, "the window recounted", recounted, "evaluation/benchmarks/bench_slide.py"
    )


def _continuous(record: Record) -> Iterator[Line]:
    best = _best(record)
    ours = best.pop("IDS")
    asked = (
        f"the paper's query over {record['rows']:,} rows, an emit at each, "
        f"N = {record['window']:,}, {record['predicates']} attributions"
    )
    for label, theirs in best.items():
        yield Line(asked, ours, label, theirs, "evaluation/benchmarks/bench_continuous.py")


def _question(record: Record) -> Iterator[Line]:
    """The costliest of each kind of question, next to the bare function asked alike."""
    took = {one["question"]: one["p50_us"] * 1e-6 for one in record["questions"]}
    for when in ("after a slide", "again and again"):
        bare = took[f"bare Python function, {when}"]
        for kind in ("registered", "compositional"):
            asked = [label for label in took if label.startswith(f"{kind}, {when}")]
            for label in asked[-1:]:
                question = f"a question to a running engine: {label}"
                file = "evaluation/benchmarks/bench_question.py"
                yield Line(question, took[label], "bare Python function", bare, file)


def _panes(record: Record) -> Iterator[Line]:
    best = _best(record)
    asked = f"exact pane sums of {record['rows']:,} rows on Spark, K = {record['predicates']}"
    file = "evaluation/benchmarks/bench_spark_panes.py"
    for label in ("plain drill-down", "panes with a pandas UDF"):
        yield Line(asked, best["exact panes"], label, best[label], file)


def _rows(record: Record) -> Iterator[Line]:
    best, other = _best(record), "Spark's window functions"
    asked = f"ROWS {record['window']:,} PRECEDING over {record['rows']:,} rows on Spark"
    file = "evaluation/benchmarks/bench_spark_rows.py"
    yield Line(asked, best["ids.spark.sql"], other, best[other], file)


def _stream(record: Record) -> Iterator[Line]:
    took, other = record["contenders"], "plain streaming groupBy"
    asked = f"a micro-batch of {record['batch']:,} rows, median"
    ours, theirs = took["ids.spark.start"]["p50_s"], took[other]["p50_s"]
    yield Line(asked, ours, other, theirs, "evaluation/benchmarks/bench_spark_stream.py")


def _scan(record: Record) -> Iterator[Line]:
    """The condition on which the scan does worst, next to each of the others."""
    worst = max(
        (one["seconds"] for one in record["conditions"]),
        key=lambda took: took["scan"] / min(took["Polars"], took["DuckDB"]),
    )
    asked = f"a condition nobody registered, N = {record['rows']:,}, scan, at its worst"
    for other, label in (("Polars", "Polars"), ("DuckDB", "DuckDB"), ("loop", "a loop in Python")):
        yield Line(
            asked, worst["scan"], label, worst[other], "evaluation/benchmarks/bench_adhoc.py"
        )


def _index(record: Record) -> Iterator[Line]:
    rare = record["selectivities"][0]
    took = rare["seconds"]
    asked = f"the same by an index, N = {record['rows']:,}, {rare['selectivity']:g} of the rows"
    for other, label in (("registered", "registered"), ("scan", "our own scan")):
        yield Line(asked, took["index"], label, took[other], "evaluation/benchmarks/bench_adhoc.py")


_READERS: dict[str, Callable[[Record], Iterator[Line]]] = {
    "slide": _slide,
    "slide_by_window": _by_window,
    "slide_by_predicates": _by_predicates,
    "slide_against_recount": _recounted,
    "continuous": _continuous,
    "question": _question,
    "adhoc_scan": _scan,
    "adhoc_index": _index,
    "spark_panes_4": _panes,
    "spark_panes_16": _panes,
    "spark_panes_64": _panes,
    "spark_rows": _rows,
    "spark_stream": _stream,
}


def main() -> None:
    """Write the table into README.md."""
    text = README.read_text(encoding="utf-8")
    README.write_text(updated(text, render()), encoding="utf-8")


if __name__ == "__main__":
    main()
