"""What the pipeline on Spark, the bits, the late rows and the taxi months say, in words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from evaluation.beyond.scaling import CORES, IN_PROCESS
from evaluation.beyond.stretches import NAMES, stretches
from evaluation.chapter import Section, Table, Tables
from evaluation.formatting import duration, interval, number, power, times
from evaluation.repeated import Repeated

__all__ = ["show"]

_YES = {True: "yes", False: "no"}


def show(tables: Tables) -> Section:
    """All four, as far as there are rows of them."""
    remarks: list[str] = []
    shown: list[Table] = []
    for table, say, draw_up in (
        ("beyond_scaling", _scaling_remark, _scaling_table),
        ("beyond_bits", _bits_remark, _bits_table),
        ("beyond_late", _late_remark, _late_table),
        ("beyond_taxi", _taxi_remark, _taxi_table),
    ):
        if tables.filled([table]):
            remarks.append(say(tables))
            shown.append(draw_up(tables))
    return Section(remarks=remarks, tables=shown)


def _by_rows(tables: Tables) -> dict[int, dict[int, Repeated]]:
    """Seconds by rows, then by cores."""
    found: dict[int, dict[int, Repeated]] = {}
    for row in sorted(tables["beyond_scaling"], key=lambda row: row["rows"]):
        found.setdefault(row["rows"], {})[row["cores"]] = row["seconds"]
    return found


def _scaling_remark(tables: Tables) -> str:
    found = _by_rows(tables)
    rows, spent = list(found.items())[-1]
    one, two = (spent[cores] for cores in CORES)
    speed_up, here = one.over(two), spent[IN_PROCESS]
    said = (
        f"{number(rows)} rows from Parquet to the last emit take Spark {interval(one)} s on one "
        f"core and {interval(two)} s on two, {interval(speed_up)} times as fast; in process "
        f"the same query takes {interval(here)} s."
    )
    first, before = next(iter(found.items()))
    small, large = before[2].mean / first, two.mean / rows
    if small > large:
        said += (
            f" On two cores a row costs {duration(small)} of {number(first)} rows and "
            f"{duration(large)} of {number(rows)}: much of a small run is Spark's own planning, "
            "which does not grow with the rows."
        )
    longer = two.mean / here.mean
    if longer > 1:
        said += (
            f" On one machine, then, Spark takes {times(longer)} as long as the process alone: it "
            "is for data that is there already, or that no one machine holds."
        )
    return said


def _scaling_table(tables: Tables) -> Table:
    rows = []
    for count, spent in _by_rows(tables).items():
        one, two, here = (spent[cores] for cores in (*CORES, IN_PROCESS))
        rows.append([
            number(count), interval(one), interval(two), interval(one.over(two)),
            power(count / two.mean), duration(two.mean / count), interval(here),
            power(count / here.mean),
        ])  # fmt: skip
    header = [
        "rows", "1 core (s)", "2 cores (s)", "speed-up", "rows/s on 2", "a row on 2",
        "in process (s)", "rows/s in process",
    ]  # fmt: skip
    note = "A window of 10 minutes that slides by one, two attributions; ± half a 95 % t-interval."
    return Table("Spark over cores and rows", header, rows, note)


def _cases(tables: Tables) -> dict[tuple[str, str], list[dict[str, Any]]]:
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in tables["beyond_bits"]:
        found.setdefault((row["workload"], row["window"]), []).append(row)
    return found


def _distinct(rows: Iterable[dict[str, Any]]) -> int:
    return len({row["digest"] for row in rows})


def _bits_remark(tables: Tables) -> str:
    cases = _cases(tables)
    ways = max(len(rows) for rows in cases.values())
    most = max(_distinct(rows) for rows in cases.values())
    same = "give one table" if most == 1 else f"give up to {most} different tables"
    said = (
        f"In process and on Spark, over every partitioning, file layout, row order and cut into "
        f"micro-batches that was tried ({ways} ways), the same script and rows {same}, compared "
        "by the SHA-256 of the exact bits."
    )
    plain = tables["beyond_plain"]
    if plain:
        moved = [row["distinct"] for row in plain]
        worst = max(plain, key=lambda row: row["spread"])
        said += (
            f" Spark's own SUM, AVG and VAR_POP of doubles give {_span(moved)} different tables "
            f"over {plain[0]['ways']} of these ways, at most "
            f"{power(worst['spread'])} apart ({worst['aggregate']} of {worst['workload']})."
        )
    return said


def _span(counts: list[int]) -> str:
    return " to ".join(map(str, dict.fromkeys((min(counts), max(counts)))))


def _bits_table(tables: Tables) -> Table:
    cases = _cases(tables)
    rows = [
        [
            workload, f"IDS, {window} window", str(len(ways)), str(_distinct(ways)),
            "0" if _distinct(ways) == 1 else "–",
        ]
        for (workload, window), ways in cases.items()
    ]  # fmt: skip
    rows += [
        [
            row["workload"], f"Spark's {row['aggregate']}, 10-minute windows", str(row["ways"]),
            str(row["distinct"]), power(row["spread"]),
        ]
        for row in tables["beyond_plain"]
    ]  # fmt: skip
    header = ["workload", "what", "ways", "different tables", "worst relative difference"]
    return Table("The same rows, cut in different ways", header, rows, _ways_note(cases))


def _ways_note(cases: dict[tuple[str, str], list[dict[str, Any]]]) -> str:
    longest = max(cases.values(), key=len)
    return f"The ways: {'; '.join(row['way'] for row in longest)}."


def _late_remark(tables: Tables) -> str:
    rows = tables["beyond_late"]
    enough = [row for row in rows if row["allowed_minutes"] >= row["delay_minutes"]]
    less = [row for row in rows if row["allowed_minutes"] < row["delay_minutes"]]
    late = max(row["late"] for row in rows)
    of_all = max(row["rows"] for row in rows)
    said = (
        f"Of {number(of_all)} rows {number(late)} came out of order, up to "
        f"{rows[0]['delay_minutes']} minutes late."
    )
    if enough:
        alike = sum(row["like_batch"] for row in enough)
        said += (
            f" Where as much lateness is allowed, the answers have the bits of the ordered batch "
            f"({alike} of {len(enough)} runs) and {_dropped(enough)} rows are dropped."
        )
    if less:
        right = sum(row["dropped"] == row["expected"] and row["like_kept"] for row in less)
        said += (
            f" Where less is allowed, {_dropped(less)} are dropped and reported; the count is the "
            f"one expected, and the answers those of the rows that are left, in {right} of "
            f"{len(less)} runs."
        )
    return said


def _dropped(rows: Iterable[dict[str, Any]]) -> str:
    counts = sorted({row["dropped"] for row in rows})
    return " to ".join(number(count) for count in dict.fromkeys((counts[0], counts[-1])))


def _late_table(tables: Tables) -> Table:
    rows = [
        [
            row["way"], f"{row['delay_minutes']} min", f"{row['allowed_minutes']} min",
            number(row["late"]), number(row["dropped"]), number(row["expected"]),
            number(row["answers"]), _YES[row["like_batch"]], _YES[row["like_kept"]],
        ]
        for row in sorted(
            tables["beyond_late"], key=lambda row: (row["way"], -row["allowed_minutes"])
        )
    ]  # fmt: skip
    header = [
        "way", "late by up to", "allowed", "out of order", "dropped", "expected", "answers",
        "as the ordered batch", "as a batch of the rows kept",
    ]  # fmt: skip
    note = "A stream holds a row against the watermark its micro-batch began with, the engine each"
    return Table("Late rows", header, rows, f"{note} row against the newest before it.")


def _taxi_remark(tables: Tables) -> str:
    run = tables["beyond_taxi"][0]
    months = "one month" if run["months"] == 1 else f"{run['months']} months"
    bits = "the same bits" if run["alike"] else "different bits"
    said = (
        f"{number(run['trips'])} taxi trips of {months} give {number(run['emits'])} hourly emits, "
        f"{bits} on Spark and in process; {run['checked']} of their numbers recomputed in "
        f"fractions differ by {power(run['worst'])} of the aggregate at most."
    )
    found = stretches(tables["beyond_taxi_days"])
    if len(found) < 2:
        return said
    first, last = found[0], found[-1]
    moved = {name: last.parts[name] - first.parts[name] for name in NAMES}
    parts = ", ".join(
        f"{name} {_signed(moved[name])}" for name in sorted(NAMES, key=lambda n: -abs(moved[n]))
    )
    return said + (
        f" Between {first.label} and {last.label} a week's average fare went from "
        f"${first.average:.2f} to ${last.average:.2f}; the {_signed(last.average - first.average)} "
        f"is made up of {parts}."
    )


def _taxi_table(tables: Tables) -> Table:
    rows = [
        [
            row["way"], number(row["trips"]), number(row["emits"]), interval(row["seconds"]),
            power(row["trips"] / row["seconds"].mean), _YES[row["alike"]],
            f"{power(row['worst'])} of {row['checked']}",
        ]
        for row in tables["beyond_taxi"]
    ]  # fmt: skip
    header = ["way", "trips", "emits", "seconds", "trips/s", "bits alike", "worst deviation"]
    note = (
        "A week's window, sliding by the hour. Worst deviation: of the numbers recomputed in "
        "fractions, relative to the aggregate."
    )
    return Table("The months of taxi trips", header, rows, note)


def _signed(dollars: float) -> str:
    return f"{'+' if dollars >= 0 else '−'}${abs(dollars):.2f}"
