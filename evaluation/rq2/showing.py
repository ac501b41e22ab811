"""RQ2 in words and tables."""

from __future__ import annotations

from evaluation.chapter import Section, Table, Tables
from evaluation.formatting import duration, interval, number, power, times
from evaluation.rq2 import algorithm1, alternatives, on_spark, paper
from evaluation.rq2.comparing import comparisons
from evaluation.rq2.findings import cells, latencies, overall, span
from evaluation.rq2.latency import AFTER, AGAIN, ANEW, BARE
from evaluation.rq2.maintaining import ATOMS, EVERYTHING

__all__ = ["show"]

_READINGS = (ANEW, AFTER, AGAIN)


def show(tables: Tables) -> Section:
    """What was found, with every number taken from the rows."""
    remarks = [*_on_throughput(tables), *_on_algorithm1(tables)]
    remarks += [*_on_alternatives(tables), *_on_latency(tables)]
    makers = (_throughput_table, _speedup_table, _algorithm1_table)
    shown = [make(tables) for make in (*makers, _alternatives_table, _latency_table)]
    return Section(remarks, comparisons(tables), [table for table in shown if table.rows])


def _on_throughput(tables: Tables) -> list[str]:
    everywhere, flat = span(cells(tables, kept=ATOMS)), overall(tables, 1)
    all_kept = overall(tables, 1, EVERYTHING)
    if everywhere is None or flat is None or all_kept is None:
        return []
    alike = cells(tables, kept=ATOMS, step=1, game="VAR", predicates=4)
    by_window = span(alike, "ids_tuples_s")
    assert by_window is not None
    return [
        f"The slide loop does not look at N: from N = {alike[0]['window']:,} to "
        f"{alike[-1]['window']:,} it takes {power(by_window[0])} to {power(by_window[1])} tuples/s "
        f"(K = 4, |Δ| = 1), while a scan of every window falls as 1/N.",
        f"With atoms alone kept, the speed-up over all cells is {times(everywhere[0])} to "
        f"{times(everywhere[1])}. A slide touches 2|Δ| rows where a scan touches N, so that about "
        f"N / 2|Δ| is to be expected.",
        f"Where the marginals and the window are kept beside the atoms, as in Algorithm 1, the "
        f"median at |Δ| = 1 is {power(all_kept)} tuples/s in place of {power(flat)}: each row is "
        f"added in several places, to integers of up to 128 bits. The engine does so once for a "
        f"batch, not for a row, which is what the cells of |Δ| = 10 and 100 measure.",
    ]


def _on_algorithm1(tables: Tables) -> list[str]:
    rows = {row["contender"]: row for row in tables["rq2_algorithm1"]}
    if not {algorithm1.LOOP, algorithm1.WHOLE, algorithm1.ALL, algorithm1.LITERAL} <= rows.keys():
        return []
    cost = {label: row["ns_per_tuple"].mean for label, row in rows.items()}
    literal = cost[algorithm1.LITERAL]
    return [
        f"Algorithm 1 taken literally, in compensated doubles and compiled, takes "
        f"{number(literal)} ns a tuple on this machine. The slide loop of IDS takes "
        f"{number(cost[algorithm1.LOOP])} ns, {number(cost[algorithm1.WHOLE])} ns with signatures "
        f"and digits counted in, and {number(cost[algorithm1.ALL])} ns where it keeps all that "
        f"Algorithm 1 keeps; its sums are exact."
    ]


def _on_alternatives(tables: Tables) -> list[str]:
    rows = {row["contender"]: row for row in tables["rq2_alternatives"]}
    remarks = []
    if alternatives.OURS in rows:
        ours = rows[alternatives.OURS]
        others = [
            f"{label} {times(row['times_ours'].mean)}"
            for label, row in rows.items()
            if row["rows"] == ours["rows"] and label != alternatives.OURS
        ]
        remarks.append(
            f"The paper's Listing 1 with four regions and N = {ours['window']:,} runs through "
            f"ids.sql at {power(ours['rows_s'].mean)} rows/s, an emit at each row. On the same "
            f"rows the others take as many times as long: {', '.join(others)}."
        )
    if {on_spark.FUNCTIONS, on_spark.SPARK_SQL} <= rows.keys():
        spark, mine = rows[on_spark.FUNCTIONS], rows[on_spark.SPARK_SQL]
        remarks.append(
            f"Spark's window functions add up the frame anew at every row: "
            f"{number(spark['rows_s'].mean)} rows/s over {spark['rows']:,} rows with "
            f"N = {spark['window']:,}, and they stop at counts, sums and sums of squares. "
            f"ids.spark.sql answers on the same rows at {number(mine['rows_s'].mean)} rows/s; "
            f"most of its time is probably the start of its jobs."
        )
    return remarks


def _on_latency(tables: Tables) -> list[str]:
    anew, after = latencies(tables, "marginal", ANEW), latencies(tables, "marginal", AFTER)
    again = latencies(tables, "marginal", AGAIN)
    both = latencies(tables, "compositional", ANEW)
    bare = {reading: [*latencies(tables, BARE, reading).values()] for reading in (ANEW, AFTER)}
    if not (anew and after and again and both and all(bare.values())):
        return []
    few, many = min(anew), max(anew)
    printed = {(line.path, line.predicates): line.p50 for line in paper.LATENCIES}
    return [
        f"Computed anew, a registered predicate is answered in {number(anew[few])} µs at K = {few} "
        f"and {number(anew[many])} µs at K = {many}, where the paper has "
        f"{number(printed['marginal', few])} and {number(printed['marginal', many])} µs; a "
        f"compositional question in {number(both[many])} µs at K = {many} "
        f"({number(printed['compositional', many])}). The bare closed form, a Python function of "
        f"six floats, takes {number(bare[ANEW][0])} µs of it.",
        f"Right after a slide, when the caches hold other data, the same takes "
        f"{number(after[many])} µs, and the bare closed form {number(bare[AFTER][0])} µs. Until "
        f"the window moves, an answer is remembered: {number(again[many])} µs.",
    ]


def _throughput_table(tables: Tables) -> Table:
    """The paper's Figure 2(a)."""
    rows = sorted(
        cells(tables, game="VAR", predicates=4),
        key=lambda row: (row["kept"], row["step"], row["window"]),
    )
    return Table(
        "Incremental maintenance and a scan of every window (VAR: m, A and B; K = 4)",
        ("kept", "|Δ|", "N", "IDS, tuples/s", "scan, tuples/s", "IDS, slides/s", "speed-up"),
        [
            (
                row["kept"],
                str(row["step"]),
                f"{row['window']:,}",
                power(row["ids_tuples_s"].median, 3),
                power(row["scan_tuples_s"].median, 3),
                power(row["ids_slides_s"].median, 3),
                times(row["speedup"].median),
            )
            for row in rows
        ],
        "Both kernels are compiled, and both left the same integers in every cell. Scans are timed "
        "on a few slides (two to four at N = 10⁶) and counted per slide. Medians of the "
        "repetitions, each column's own; the records hold every repetition and the AVG game.",
    )


def _speedup_table(tables: Tables) -> Table:
    """The paper's Figure 2(b)."""
    found = cells(tables, game="VAR", step=1)
    windows = sorted({int(row["window"]) for row in found})
    lines: dict[tuple[str, int, int], list[str]] = {
        (row["kept"], row["predicates"], row["live"]): [] for row in found
    }
    for line in lines:
        same = [row for row in found if (row["kept"], row["predicates"]) == line[:2]]
        by_window = {row["window"]: times(row["speedup"].median) for row in same}
        lines[line] = [by_window.get(window, "") for window in windows]
    return Table(
        "Speed-up over a scan at |Δ| = 1, by the number of predicates",
        ("kept", "K", "live atoms", *(f"N = {window:,}" for window in windows)),
        [(kept, str(k), str(live), *lines[kept, k, live]) for kept, k, live in sorted(lines)],
    )


def _algorithm1_table(tables: Tables) -> Table:
    return Table(
        "A slide of one row, beside Algorithm 1 taken literally",
        ("", "N", "K", "ns a tuple", "times as fast"),
        [
            (
                row["contender"],
                f"{row['window']:,}",
                str(row["predicates"]),
                interval(row["ns_per_tuple"]),
                times(row["times_faster"].mean),
            )
            for row in tables["rq2_algorithm1"]
        ],
    )


def _alternatives_table(tables: Tables) -> Table:
    return Table(
        "The same query by other means",
        ("", "rows", "N", "time", "rows/s", "times as long as IDS"),
        [
            (
                row["contender"],
                f"{row['rows']:,}",
                f"{row['window']:,}",
                duration(row["seconds"].mean),
                power(row["rows_s"].mean, 3),
                times(row["times_ours"].mean),
            )
            for row in tables["rq2_alternatives"]
        ],
        "Spark runs fewer rows, many of them while the window fills, which favours it; its "
        "ratio is to IDS on those rows. Its window functions give count, sum and sum of squares "
        "and no attribution. All but IDS sum in doubles. Means of the repetitions, each column's "
        "own.",
    )


def _latency_table(tables: Tables) -> Table:
    """The paper's Table 5, our three readings beside it."""
    found = {(row["predicates"], row["path"], row["reading"]): row for row in tables["rq2_latency"]}
    lines = []
    for line in paper.LATENCIES:
        ours = [found.get((line.predicates, line.path, reading)) for reading in _READINGS]
        if None in ours:
            continue
        p50s, p99s = ([number(r[p].mean) for r in ours if r] for p in ("p50", "p99"))
        live = ours[0]["live"] if ours[0] else ""
        lines.append(
            (str(line.predicates), f"{live} ({line.live})", line.path,
             *p50s, number(line.p50), *p99s, number(line.p99))
        )  # fmt: skip
    heads = [f"{p}, {of}" for p in ("p50", "p99") for of in (*_READINGS, "paper")]
    return Table(
        "Library attribution latency, µs at N = 10⁴",
        ("K", "live atoms (paper)", "path", *heads),
        lines,
        "The compositional question is the union of two registered predicates (K = 1: the "
        "complement of the one). The paper does not say whether its window moved between "
        "questions; its prototype is not said to remember answers.",
    )
